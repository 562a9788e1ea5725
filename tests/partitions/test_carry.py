"""`carry=` of evaluate_parquet: the columns that `evaluate` gives for the whole frames."""

import numpy as np
import pandas as pd
import pytest
from partitions.parquet_files import USUAL, data, write
from quick import crossed
from registry.seeded import one_null, quietly

import recdf as rd

pytestmark = pytest.mark.usefixtures("small_pieces")

OPTIONS = USUAL | {"by": "model"}
CARRY = {
    "text": "first",
    "when": "min",
    "kind": "constant",
    "some": "max",
    "number": "constant",
    "flag": "first",
}


@pytest.fixture
def paths(tmp_path):
    """Both frames in files; `pred` has columns to carry."""
    true, pred = data(12)
    user, row = pred["user_id"], np.arange(len(pred))
    pred["text"] = pd.Series(row).map("t{}".format)
    pred["when"] = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(row, unit="h")
    pred["kind"] = pd.Categorical.from_codes(user % 3, ["never", "x", "y"])
    pred["some"] = pd.Series(row, dtype="Int64").mask(user % 4 == 0)
    pred["number"], pred["flag"] = user * 2, row % 2 == 0
    return write(tmp_path, true, pred)


@pytest.mark.long
@pytest.mark.parametrize(("buckets", "users"), crossed([5, 1], ["all", "true", "pred"]))
def test_equal_to_whole_frames(paths, users, buckets):
    whole = list(map(pd.read_parquet, paths))
    expected = quietly(rd.evaluate, *whole, "hits@3", carry=CARRY, users=users, **OPTIONS)
    found = quietly(
        rd.evaluate_parquet, *paths, "hits@3", carry=CARRY, users=users, buckets=buckets, **OPTIONS
    )
    pd.testing.assert_frame_equal(one_null(found.per_user), one_null(expected.per_user), rtol=1e-12)
    assert {**found.spec, "files": None} == {**expected.spec, "files": None}


@pytest.mark.parametrize(
    ("carry", "error", "words"),
    [
        ("when_", rd.ColumnError, "pred has no column 'when_'"),
        ("text", rd.DataError, "is not constant within"),
        ({"kind": "min"}, rd.OptionError, "holds categories"),
    ],
)
def test_bad_input(paths, carry, error, words):
    with pytest.raises(error, match=words):
        rd.evaluate_parquet(*paths, "hits@3", carry=carry, buckets=3, **OPTIONS)


@pytest.mark.long
def test_a_list_without_recommendations_makes_whole_numbers_nullable_whatever_its_bucket(tmp_path):
    true = pd.DataFrame({"user_id": range(12), "item_id": 1})
    for lacking in (0, 5, 11):
        pred = pd.DataFrame(
            {"user_id": [user for user in range(12) if user != lacking], "item_id": 1}
        )
        pred["number"] = pred["user_id"] * 2
        found = rd.evaluate_parquet(*write(tmp_path, true, pred), "hits", carry="number", buckets=6)
        pd.testing.assert_frame_equal(
            found.per_user, rd.evaluate(true, pred, "hits", carry="number").per_user
        )


@pytest.mark.long
def test_ids_that_are_strings_have_an_order_as_carried_columns(tmp_path):
    """Ids of files are read as codes, which have none."""
    true, pred = (frame.assign(item_id=frame["item_id"].map("i{}".format)) for frame in data(13))
    options = OPTIONS | {"carry": {"item_id": "min"}}
    expected = quietly(rd.evaluate, true, pred, "hits@3", **options)
    paths = write(tmp_path, true, pred)
    for buckets in (1, 4):
        found = quietly(rd.evaluate_parquet, *paths, "hits@3", buckets=buckets, **options)
        pd.testing.assert_frame_equal(one_null(found.per_user), one_null(expected.per_user))
