"""evaluate_parquet keeps ids as 32-bit integers where they fit: parts whose ids have different
widths."""

import pandas as pd
import pytest
from partitions.parquet_files import USUAL, assert_equal, data, write

import recdf as rd
from recdf.partitions import files_run

pytestmark = [
    pytest.mark.usefixtures("small_pieces", "nothing_left_behind"),
    pytest.mark.filterwarnings("ignore::recdf.RecdfWarning"),
]

BEYOND_32_BITS = 2**40
MANY = {"buckets": 24, "memory_limit": 10**9}  # few rows of a batch are in the same bucket


@pytest.fixture
def widths(monkeypatch):
    """The types of the item ids of all parts that were read."""
    found, read = set(), files_run.BucketCells.read

    def noted(self, bucket):
        table = read(self, bucket)
        if len(table) and "item_id" in table.column_names:  # rows, not lists of the result
            found.add(str(table.schema.field("item_id").type))
        return table

    monkeypatch.setattr(files_run.BucketCells, "read", noted)
    return found


def late_wide(columns, seed=1):
    """Frames whose last rows, those of two users, have ids beyond 32 bits."""
    true, pred = (
        frame.sort_values("user_id", kind="stable", ignore_index=True) for frame in data(seed)
    )
    late = sorted({*true["user_id"]} & {*pred["user_id"]})[-2:]
    for frame in (true, pred):
        wide = frame["user_id"].isin(late) * BEYOND_32_BITS
        for name in columns:
            frame[name] += wide
    return true, pred


@pytest.mark.long
@pytest.mark.parametrize("users", ["all", "frame"])
def test_items_beyond_32_bits_in_few_parts(tmp_path, widths, users):
    true, pred = late_wide(["item_id"])
    pred["model"] = pred["model"].map({"a": 1, "b": BEYOND_32_BITS})
    items = pd.concat([true, pred])["item_id"].unique()
    if users == "frame":
        users = pd.concat([true, pred])[["user_id"]].drop_duplicates()[::-2]
    options = {
        "k": [2],
        "by": "model",
        "items": items,
        "users": users,
        "carry": {"item_id": "first"},
        **USUAL,
    }
    metrics = ["ndcg", "recall", "hhi", "coverage", "gini"]
    expected = rd.evaluate(true, pred, metrics, **options)
    assert_equal(
        rd.evaluate_parquet(*write(tmp_path, true, pred), metrics, **options, **MANY), expected
    )
    assert widths == {"int32", "int64"}


@pytest.mark.long
def test_users_beyond_32_bits_in_few_parts(tmp_path):
    """`true` has their ids as unsigned integers, `pred` as signed ones."""
    true, pred = late_wide(["user_id"])
    true["user_id"] = (true["user_id"] + 100).astype("uint64")
    pred["user_id"] += 100
    for users in ("both", "pred"):  # files with both kinds of integers are refused with "all"
        expected = rd.evaluate(true, pred, "ndcg", users=users, **USUAL)
        assert_equal(
            rd.evaluate_parquet(*write(tmp_path, true, pred), "ndcg", users=users, **MANY, **USUAL),
            expected,
        )


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"by": "model"}], ids=["all rows", "by"])
@pytest.mark.filterwarnings("default::recdf.NoOverlapWarning")
def test_items_are_compared_across_parts_whatever_their_width(tmp_path, recwarn, widths, options):
    """Model 1 has no hit, but recommends one user the wide item that another one wants; model 2 has
    one with `by`."""
    users = range(388)
    true = pd.DataFrame({"user_id": users, "item_id": [*range(387), BEYOND_32_BITS]})
    pred = pd.DataFrame(
        {"model": 1, "user_id": users, "item_id": [BEYOND_32_BITS, *range(1001, 1388)]}
    )
    if options:
        pred = pd.concat(
            [pred, pd.DataFrame({"model": 2, "user_id": [5], "item_id": [5]})], ignore_index=True
        )
    paths = write(tmp_path, true, pred)
    rd.evaluate_parquet(*paths, "ndcg", **options, **MANY)
    assert not recwarn.list
    assert widths == {"int32", "int64"}
    pred.loc[0, "item_id"] += 1
    with pytest.warns(rd.NoOverlapWarning):
        rd.evaluate_parquet(*write(tmp_path, true, pred), "ndcg", **options, **MANY)
