"""A digest tells apart tables that differ in one place, and no others."""

import datetime
from decimal import Decimal
from itertools import combinations_with_replacement
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import recdf as rd
from recdf.matching.side_tables.digest import READ, described, hashes

N_ROWS = 3 * READ + 5


def digest(values, dtype=None):
    return described([pd.Series(values, name="item_id", dtype=dtype)])["digest"]


@pytest.mark.few(4)
@pytest.mark.parametrize("place", [0, READ, N_ROWS - 1])
@pytest.mark.parametrize("other", [7, -1, 2**62, -(2**63)])
def test_one_other_number_changes_the_digest(place, other):
    values = np.arange(N_ROWS)
    changed = values.copy()
    changed[place] = other
    assert digest(changed) != digest(values) or other == place


def test_two_changed_signs_and_shuffled_columns_change_the_digest_and_shuffled_rows_do_not():
    values = np.arange(N_ROWS, dtype=float) + 1
    changed, order = values.copy(), np.random.default_rng(0).permutation(N_ROWS)
    changed[:2] *= -1
    assert len({digest(values), digest(changed), digest(-values)}) == 3
    columns = [pd.Series(values, name="x"), pd.Series(values % 7, name="y").astype(str)]
    found = described(columns)
    assert described([one.iloc[order] for one in columns]) == found
    assert described([columns[0].iloc[order], columns[1]]) != found
    assert described(columns, ordered=True) != described([one.iloc[order] for one in columns], True)


def test_two_small_numbers_of_one_sum_have_digests_of_their_own():
    """The hashes of rows are added up, and twice a number must not have twice the hash."""
    pairs = list(combinations_with_replacement(range(60), 2))
    assert len({digest(pair) for pair in pairs}) == len(pairs)


def test_texts_differ_by_each_of_their_bytes_and_by_where_they_end():
    texts = ["", "a", "b", "ab", "ba", "a" * 8, "a" * 9, "a" * 8 + "b", "é" * 9, None]
    assert len({digest([one, "z"]) for one in texts}) == len(texts)
    assert digest(["a", "bc"]) != digest(["ab", "c"])


def test_the_width_and_the_library_do_not_change_the_digest():
    values = np.arange(N_ROWS)
    assert (
        digest(values)
        == digest(values, "int32")
        == digest(values, "Int64")
        == digest(values, "int64[pyarrow]")
    )


WHOLE, DAYS = [1, 2, 3, 2**40], pd.date_range("2020", periods=4)
IDS = [UUID(int=one) for one in range(4)]
# The same values as columns of several dtypes, all of which recdf takes as equal ids.
EQUAL = {
    "numbers": [
        pd.Series(WHOLE, dtype=dtype)
        for dtype in ("int64", "uint64", "float64", "Int64", "category", object)
    ]
    + [
        pd.Series([*map(float, WHOLE)], dtype=object),
        pd.Series([*map(float, WHOLE)]).astype("category"),
        pd.Series(WHOLE, dtype=pd.ArrowDtype(pa.uint64())),
    ],
    "decimals": [
        pd.Series([*map(Decimal, ("0.5", "2", "7", "9"))]),
        pd.Series([*map(Decimal, ("0.500", "2.00", "7.00", "9.0"))]),
        pd.Series(
            [*map(Decimal, ("0.5", "2", "7", "9"))], dtype=pd.ArrowDtype(pa.decimal128(9, 4))
        ),
    ],
    "texts": [pd.Series([*"abcd"], dtype=dtype) for dtype in (object, "string", "category")],
    "times": [
        pd.Series(DAYS).astype("datetime64[s]"),
        pd.Series(DAYS).astype("datetime64[ns]"),
        pd.Series(DAYS, dtype=object),
        pd.Series(DAYS, dtype=pd.ArrowDtype(pa.timestamp("ms"))),
    ],
    "times of zones": [
        pd.Series(DAYS.tz_localize("UTC")),
        pd.Series(DAYS.tz_localize("UTC").tz_convert("Asia/Tokyo")),
        pd.Series(DAYS.tz_localize("UTC"), dtype=object),
    ],
    "dates": [
        pd.Series([*map(datetime.datetime.date, DAYS)], dtype=object),
        pd.Series([*map(datetime.datetime.date, DAYS)], dtype=pd.ArrowDtype(pa.date32())),
    ],
    "UUIDs": [
        pd.Series(IDS),
        pd.Series([one.bytes for one in IDS], dtype=pd.ArrowDtype(pa.binary(16))),
    ],
}


@pytest.mark.parametrize("kind", EQUAL)
def test_equal_values_have_one_digest_in_every_dtype(kind):
    """Models whose ids came from a frame, a file and a database are comparable."""
    assert len({described([one.rename("item_id")])["digest"] for one in EQUAL[kind]}) == 1
    truths = set()
    for items in EQUAL[kind]:
        rows = pd.DataFrame({"user_id": [1, 1, 2, 2], "item_id": items})
        truths.add(rd.evaluate(rows, rows.assign(score=1.0), ["recall"], k=3).spec["truth"])
    assert len(truths) == 1


@pytest.mark.parametrize("kind", EQUAL)
def test_the_hash_of_an_id_does_not_depend_on_the_other_ids(kind):
    """Parts of a table hold some of its ids."""
    for items in EQUAL[kind]:
        assert hashes(items).tolist() == [hashes(items[[i]])[0] for i in range(4)]


def test_half_floats_have_the_digest_of_the_other_floats():
    assert digest([0.5, 2.0], "float16") == digest([0.5, 2.0], "float32") == digest([0.5, 2.0])
    assert digest([0.5, 2.0]) != digest([0.5, 3.0])


def test_models_with_ids_of_several_dtypes_are_compared_on_one_truth():
    n = 80
    true = pd.DataFrame({"user_id": np.arange(n), "item_id": np.arange(n) % 7})
    pred = true.assign(score=1.0)
    short = pred.assign(item_id=(true["item_id"] + (true["user_id"] % 2)) % 7)
    own = {
        name: rd.evaluate(
            true.astype({"item_id": dtype}), lists.astype({"item_id": dtype}), ["recall"], k=1
        )
        for name, lists, dtype in (("all", pred, "int64"), ("half", short, "category"))
    }
    found = rd.compare_models(own, ["recall@1"], baseline="half").loc[0]
    assert (found["effect"], found["withheld"]) == ("better", "")


def test_models_with_shuffled_catalogues_are_compared():
    """A database returns rows in any order. A baseline of lists has an order of its own."""
    n = 80
    true = pd.DataFrame({"user_id": np.arange(n), "item_id": np.arange(n) % 7})
    pred = true.assign(score=1.0)
    items = pd.DataFrame({"item_id": np.arange(9), "category": [*"abcabcabc"]})
    base = pd.concat([true, true.assign(item_id=8)], ignore_index=True)
    metrics = ["recall", "categories(category_col=category)", "overlap"]
    sides = [
        rd.evaluate(true, pred, metrics, k=1, items=one, base=other).spec["side_tables"]
        for one, other in ((items, base), (items.iloc[::-1], base), (items, base.iloc[::-1]))
    ]
    assert sides[0] == sides[1]
    assert sides[0]["base"] != sides[2]["base"]
    ranked = base.assign(score=np.arange(2 * n))
    found, shuffled = (
        rd.evaluate(true, pred, metrics, k=1, items=items, base=one).spec["side_tables"]
        for one in (ranked, ranked[::-1])
    )
    assert found == shuffled
