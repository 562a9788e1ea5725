"""The digest of a side table with very many numbers tells apart what differs in one place."""

import datetime
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import recdf as rd
from recdf.matching.side_tables.digest import MANY_ROWS, SUMMED, described

N_ROWS = MANY_ROWS + 5


def digest(values, dtype=None):
    return described([pd.Series(values, name="item_id", dtype=dtype)])["digest"]


@pytest.mark.few(4)
@pytest.mark.parametrize("place", [0, SUMMED, N_ROWS - 1])
@pytest.mark.parametrize("other", [7, -1, 2**62, -(2**63)])
def test_one_other_number_changes_the_digest(place, other):
    values = np.arange(N_ROWS)
    changed = values.copy()
    changed[place] = other
    assert digest(changed) != digest(values) or other == place


def test_two_changed_signs_and_two_changed_places_change_the_digest():
    """Signs are highest bits, which weighted sums alone would lose in pairs."""
    values = np.arange(N_ROWS, dtype=float) + 1
    changed, swapped = values.copy(), values.copy()
    changed[:2] *= -1
    swapped[[3, 4]] = swapped[[4, 3]]
    assert len({digest(values), digest(changed), digest(swapped)}) == 3


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
