"""Fast paths of codes: each is taken where it should be, and gives the codes of the slow one."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matching.watched import ARROW_TYPES, STRINGS, Watch, assert_same, refuse, result, shuffled

from recdf.inputs import codes as coding
from recdf.inputs import ids

# --------------------------------------------------------------------------------------------------
# codes


def test_small_ranges_of_integers_are_their_own_codes(frames, monkeypatch):
    slow = result(
        *(frame * {"user_id": 10**12, "item_id": 10**13, "score": 1} for frame in scored(frames))
    )
    refuse(monkeypatch, coding, "_encode_hashed")
    fast = result(*scored(frames))
    monkeypatch.undo()
    pd.testing.assert_frame_equal(
        fast.per_user.drop(columns="user_id"), slow.per_user.drop(columns="user_id")
    )


def scored(frames):
    """Both frames with the same columns, so that one factor for each column is enough."""
    true, pred = frames
    return true.assign(score=1.0), pred


def test_integers_give_the_same_by_hashing(frames, monkeypatch):
    for pair in (frames, tuple(map(shuffled, frames))):
        fast = result(*pair)
        watch = Watch(monkeypatch, coding, "_encode_hashed")
        monkeypatch.setattr(coding, "encode_integers", coding._encode_hashed)
        assert_same(result(*pair), fast)
        assert len(watch.calls) == 2  # users and items
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("step", "span", "direct"), [(8, 0, True), (9, 0, False), (9, 82, True), (9, 81, False)]
)
def test_direct_addressing_by_the_width_of_the_range(step, span, direct, resized):
    """At most DIRECT_SPAN numbers, or four times the rows."""
    resized(direct_span=span)
    values = np.arange(10) * step - 7
    codes = coding.encode_integers([values, values[::-1]])
    assert (codes.labels is None) == direct
    np.testing.assert_array_equal(codes.codes[0], codes.codes[1][::-1])
    assert len(set(codes.codes[0].tolist())) == 10
    assert all(0 <= code < codes.n for code in codes.codes[0].tolist())


@pytest.mark.parametrize("ties", ["item_desc", "item_asc"])
def test_ties_go_by_the_ids_however_they_are_coded(frames, ties):
    true, pred = (shuffled(frame.assign(item_id=frame["item_id"] - 40)) for frame in frames)
    pred["score"] = pred["score"].round(1)
    wide = [frame.assign(item_id=frame["item_id"] * 10**15) for frame in (true, pred)]
    assert_same(result(true, pred, ties=ties), result(*wide, ties=ties))


def test_runs_of_objects_give_the_same_as_rows_that_are_read_one_by_one(frames):
    """Of a run of equal objects the first alone is read; shuffled rows have no runs."""
    objects = [frame.astype({"user_id": object, "item_id": object}) for frame in frames]
    assert_same(result(*objects), result(*frames))
    assert_same(result(*map(shuffled, objects)), result(*frames))


def test_objects_that_compare_to_no_bool_are_read_one_by_one(frames):
    """Whether two ids are equal is itself null beside a null."""
    texts = [
        frame.astype(STRINGS).astype({"user_id": object, "item_id": object}) for frame in frames
    ]
    with_nulls = [frame.copy() for frame in texts]
    for frame in with_nulls:
        frame.loc[[0, 7, 8], "user_id"] = pd.NA
        frame.loc[20, "item_id"] = pd.NA
    without = [frame.drop(index=[0, 7, 8, 20]) for frame in texts]
    assert_same(result(*with_nulls, null_keys="drop"), result(*without))


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["str", "category", "string[pyarrow]", object])
def test_string_ids_give_the_same_as_integers(frames, dtype):
    texts = [frame.astype(STRINGS).astype({"user_id": dtype, "item_id": dtype}) for frame in frames]
    assert_same(result(*texts), result(*frames))
    assert_same(result(*map(shuffled, texts)), result(*frames))


def test_pieces_of_a_long_column_of_strings_are_encoded_at_once(frames, monkeypatch, resized):
    texts = [frame.astype(STRINGS) for frame in map(shuffled, frames)]
    texts[1].loc[[0, 7], "item_id"] = None
    slow = result(*texts, null_keys="drop")
    resized(coded_rows=2)
    for n in (2, 3):
        monkeypatch.setattr(coding, "n_threads", lambda n=n: n)
        assert_same(result(*texts, null_keys="drop"), slow)


@pytest.mark.parametrize("rows", [[], [0], [0, 0, 3, 4, 6], [2, 3], [6, 0, 3]])
def test_rows_of_chunks_of_strings(rows):
    """Ascending rows are taken chunk by chunk."""
    chunks = pa.chunked_array([["a", "b"], [], ["c", None, "a"], ["d", "e"]], pa.large_string())
    whole = chunks.to_pylist()
    for array in (chunks, chunks[1:]):
        taken = ids.IdColumn("a", "string", array).take(
            np.array([row for row in rows if row < len(array)], np.int64)
        )
        shift = len(chunks) - len(array)
        assert taken.values.to_pylist() == [whole[row + shift] for row in rows if row < len(array)]


@pytest.mark.parametrize("n", [1, 3])
def test_codes_of_strings_go_over_chunks_and_pieces(n, resized, monkeypatch):
    resized(coded_rows=3)
    monkeypatch.setattr(coding, "n_threads", lambda: n)
    chunks = pa.chunked_array(
        [["a", "bb"], [], ["c", "a"], [None, "bb"], ["d", "a", "c"]], pa.large_string()
    )
    columns = [ids.IdColumn("a", "string", one) for one in (chunks[:1], chunks)]
    column = coding.encode(columns).columns[1]
    whole = [0, 1, 2, 0, -1, 1, 3, 0, 2]
    assert len(column) == 9
    assert column.all().tolist() == whole
    for a in range(10):
        for z in range(10):
            assert column[a:z].tolist() == whole[a:z]


@pytest.mark.parametrize(
    "dtype",
    [
        "object",
        "str",
        "string[python]",
        "string[pyarrow]",
        "category",
        *map(pd.ArrowDtype, ARROW_TYPES),
    ],
    ids=str,
)
def test_labels_keep_their_dtype_and_chunks(dtype, monkeypatch):
    column = pd.concat([pd.Series(["a", "b"]), pd.Series(["c", "a", None])]).astype(dtype)
    watch = Watch(monkeypatch, ids, "_take_chunks")
    for rows in (np.array([0, 1, 1, 4]), np.array([4, 0, 2]), np.array([], np.int64)):
        pd.testing.assert_series_equal(
            ids.take_rows(column, rows), column.iloc[rows].reset_index(drop=True)
        )
    arrow = (
        isinstance(column.dtype, pd.ArrowDtype) or getattr(column.dtype, "storage", "") == "pyarrow"
    )
    assert len(watch.calls) == 3 * arrow


@pytest.mark.parametrize("dtype", ["int64", "Int64", "int64[pyarrow]", "datetime64[ns, UTC]"])
def test_labels_of_numbers_keep_their_dtype(dtype):
    column = pd.Series([7, 8, 9], dtype=dtype)
    pd.testing.assert_series_equal(
        ids.take_rows(column, np.array([2, 0])), column.iloc[[2, 0]].reset_index(drop=True)
    )


def test_chunks_of_strings_share_a_dictionary():
    """Arrow gives all chunks of one column one dictionary, which `encode` relies on."""
    chunks = pa.chunked_array([["a", "b"], ["c", None, "a"], [], ["d"]], pa.large_string())
    other = pa.chunked_array([["d", "c"]], chunks.type)
    encoded = coding.encode(
        [ids.IdColumn("a", "string", chunks), ids.IdColumn("b", "string", other)]
    )
    assert [codes.tolist() for codes in encoded.codes] == [[0, 1, 2, -1, 0, 3], [3, 2]]


def test_the_order_of_ids_is_complete_when_another_thread_reads_it(monkeypatch):
    """Blocks of lists are ranked by several threads, each of which may be the first to ask."""
    codes = coding.IdCodes([], 3, pa.array(["b", "c", "a"]))
    seen = []
    plain = np.arange

    def arange_while_another_thread_reads(*args, **options):
        monkeypatch.undo()
        seen.append(codes.rank().tolist())
        return plain(*args, **options)

    monkeypatch.setattr(np, "arange", arange_while_another_thread_reads)
    assert codes.rank().tolist() == [1, 2, 0]
    assert seen == [[1, 2, 0]]
