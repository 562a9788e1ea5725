"""`item_by=` of evaluate_parquet: metrics within groups of items, added up over parts, equal those
of whole frames."""

import pandas as pd
import pytest
from partitions.parquet_files import USUAL, data, write
from quick import crossed, few
from registry.seeded import one_null, quietly, side_tables

import recdf as rd
from recdf.partitions import source

METRICS = ["recall@3", "ndcg@5", "hits@2", "entropy@3"]

pytestmark = pytest.mark.usefixtures("small_pieces")


@pytest.fixture
def paths(tmp_path):
    return write(tmp_path, *data(11))


@pytest.mark.long
@pytest.mark.parametrize("buckets", few([7, 1], 1))
@pytest.mark.parametrize(
    ("item_by", "users"), crossed(["category", "group"], ["true", "pred", "both", "all", "ids"])
)
def test_equal_to_whole_frames(paths, buckets, users, item_by):
    true, pred = map(pd.read_parquet, paths)
    if users == "ids":
        users = [*true["user_id"].unique()[5:30], 100_000]
    options = {
        **USUAL,
        "users": users,
        "by": "model",
        "items": side_tables(11)["items"],
        "item_by": item_by,
    }
    expected = quietly(rd.evaluate, true, pred, METRICS, **options)
    found = quietly(rd.evaluate_parquet, *paths, METRICS, buckets=buckets, **options)
    assert (
        found.summary[item_by].notna().sum() >= 2 * 3 * 3
    )  # both models, three metrics, three groups
    pd.testing.assert_frame_equal(
        one_null(found.summary), one_null(expected.summary), rtol=1e-12, atol=1e-12
    )
    assert {**found.spec, "files": None} == {**expected.spec, "files": None}
    assert found.spec["item_by"] == item_by
    assert found == expected


@pytest.mark.long
def test_a_group_is_the_metric_beside_that_part_of_true(paths):
    """Without help of `evaluate` within groups: `true` holds the items of the group alone."""
    true, pred = map(pd.read_parquet, paths)
    items = pd.DataFrame({"item_id": range(14), "half": ["low"] * 7 + ["high"] * 7})
    found = quietly(
        rd.evaluate_parquet,
        *paths,
        "recall@3",
        items=items,
        item_by="half",
        by="model",
        buckets=5,
        **USUAL,
    ).summary.set_index(["half", "model"])["value"]
    for half, own in (("low", true[true["item_id"] < 7]), ("high", true[true["item_id"] >= 7])):
        expected = quietly(rd.evaluate, own, pred, "recall@3", by="model", **USUAL).summary
        for model, value in zip(expected["model"], expected["value"], strict=True):
            assert found[half, model] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"item_by": "category"}, rd.OptionError, "item_by='category' needs items="),
        (
            {"item_by": "categry", "items": side_tables(11)["items"]},
            rd.ColumnError,
            "items has no column 'categry'",
        ),
        (
            {"item_by": "value", "items": side_tables(11)["items"].assign(value=1)},
            rd.ColumnError,
            "item_by='value' is also a column of by or of the summary",
        ),
        (
            {"item_by": "model", "items": side_tables(11)["items"].assign(model=1), "by": "model"},
            rd.ColumnError,
            "item_by='model' is also a column of by",
        ),
    ],
)
def test_refused_before_rows_are_read(paths, monkeypatch, options, error, words):
    def no_rows(*_):
        raise AssertionError("rows were read")

    monkeypatch.setattr(source.Source, "batches", no_rows)
    with pytest.raises(error) as found:
        rd.evaluate_parquet(*paths, "recall@3", **USUAL, **options)
    assert words in str(found.value)
