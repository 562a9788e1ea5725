"""Strings with digits as numbers: equal where the strings are equal, in their order, whatever
Arrow's chunks are."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recdf as rd
from recdf.inputs.codes import read_digits

TEXT = pa.large_string()


def column(*chunks):
    return pa.chunked_array(list(chunks), TEXT)


def test_numbers_by_hand():
    one, two = read_digits([column(["u000123", "u138000"], [], ["u000009"]), column(["u000123"])])
    assert one.tolist() == [123, 138000, 9]
    assert two.tolist() == [123]
    assert read_digits([column(["00000001", "99999999"])])[0].tolist() == [1, 99_999_999]
    assert read_digits([column(["user-7-0012", "user-7-0003"])])[0].tolist() == [12, 3]
    assert read_digits([column(["a", "c"])])[0].tolist() == [1, 3]  # 0x61 and 0x63


@pytest.mark.parametrize(
    "chunks",
    [
        [["u1", "u12"]],
        [["u1"], ["u12"]],
        [["u1", None]],
        [[""]],
        [],
        [["a1", "B1"]],
        [["1f", "1F"]],
        [["x12345678", "y12345678"]],
        [["prefix-one-000001", "prefix-two-000001"]],
        [["12345678901234567", "12345678901234568", "22345678901234567"]],
        [["é", "è!"]],
        [["a?", "b1"]],  # 0x3f is the sixteenth of its kind, and no decimal digit
        [["a0"], ["j0"]],
        [["a\0", "a"]],
        [[f"u{i:04d}" for i in range(2000)], ["another"]],
        [[f"u{i:04d}" for i in range(2000)], ["A0001"]],
    ],
)
def test_other_strings_are_left_to_arrow(chunks):
    assert read_digits([pa.chunked_array(chunks, TEXT)]) is None


def test_columns_of_two_lengths_are_left_to_arrow():
    assert read_digits([column(["u01"]), column(["u1"])]) is None
    assert read_digits([column(["u01"]), column([None, "u01"])]) is None


def test_offsets_of_32_and_64_bits():
    narrow = pa.chunked_array([["u07", "u01"], ["u11", "u02"]], pa.string())
    assert [found.tolist() for found in read_digits([narrow[1:], column(["u05"])])] == [
        [1, 11, 2],
        [5],
    ]


def test_slices_and_words_at_the_end_of_a_buffer():
    texts = [f"u{number:03d}" for number in range(40)]
    whole = pa.array(texts, TEXT)
    exact = pa.LargeStringArray.from_buffers(
        40, whole.buffers()[1], pa.py_buffer("".join(texts).encode())
    )
    chunks = pa.chunked_array([exact[5:7], whole[11:12], exact[38:]])
    assert read_digits([chunks, pa.chunked_array([exact])])[0].tolist() == [5, 6, 11, 38, 39]
    assert read_digits([pa.chunked_array([exact])])[0].tolist() == list(range(40))


@pytest.mark.long
@given(
    st.lists(st.text("0123456789", min_size=3, max_size=3), min_size=1, max_size=30),
    st.sampled_from(["", "u", "user_", "a prefix of more than eight bytes", "\0\0"]),
    st.integers(1, 30),
)
def test_numbers_have_the_order_of_the_strings(texts, prefix, size):
    texts = [prefix + text for text in texts]
    (numbers,) = read_digits([column(*(texts[i : i + size] for i in range(0, len(texts), size)))])
    assert np.argsort(numbers, kind="stable").tolist() == sorted(
        range(len(texts)), key=texts.__getitem__
    )
    assert len(set(numbers.tolist())) == len(set(texts))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "form", ["u{:04d}", "{:d}", "item {:x}", "{:04d}\0", "a rather long prefix {:06d}"]
)
def test_results_are_those_of_integers(form, resized):
    """Also over the edges of blocks and pieces, and beside an id of another form."""
    resized(digit_rows=4, first_rows=2)
    rng = np.random.default_rng(1)
    true, pred = (
        pd.DataFrame(
            {"user_id": rng.integers(0, 20, n), "item_id": rng.integers(0, 300, n)}
        ).drop_duplicates()
        for n in (60, 200)
    )
    pred["score"] = rng.integers(0, 3, len(pred))  # ties, which the order of the items breaks
    texts = [
        frame.assign(**{name: frame[name].map(form.format) for name in ("user_id", "item_id")})
        for frame in (true, pred)
    ]
    padded = form in ("u{:04d}", "{:04d}\0", "a rather long prefix {:06d}")
    ties = "item_desc" if padded else "row"  # other strings have another order than the integers
    found, expected = (
        rd.evaluate(*frames, ["ndcg@3", "recall@5"], ties=ties) for frames in (texts, (true, pred))
    )
    pd.testing.assert_frame_equal(
        found.per_user.drop(columns="user_id"), expected.per_user.drop(columns="user_id")
    )
