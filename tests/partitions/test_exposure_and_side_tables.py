"""evaluate_parquet: metrics of exposure, which add up over parts, and metrics that need side
tables."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from partitions.parquet_files import USUAL, as_dtype, assert_equal, both, check, data, write
from registry.seeded import BUILT_IN, OF_ANY_FRAMES, side_tables

import recdf as rd

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("small_pieces", "nothing_left_behind"),
    pytest.mark.filterwarnings("ignore::recdf.RecdfWarning"),
]

EXPOSURE = [metric.name for metric in OF_ANY_FRAMES if metric.per == "item"]


VARIANTS = [
    "entropy(normalize=True)",
    "exposure_share(discount=none)",
    "exposure_ratio(relative_to=catalogue)",
]

VARIANTS += ["pop_reo(group_col=group)", "pop_rsp(group_col=group)"]


@pytest.mark.parametrize(
    ("users", "by"),
    [("true", None), *((users, "model") for users in ("pred", "all", "ids"))],
)
def test_every_metric_beyond_accuracy(tmp_path, users, by):
    true, pred = data(4)
    if users == "ids":
        users = [*true["user_id"].unique()[30:], 100_000]
    metrics = [*(metric.name for metric in OF_ANY_FRAMES), *VARIANTS]
    expected = check(
        write(tmp_path, true, pred), metrics, (2, 40), users=users, by=by, **side_tables(4)
    )
    assert {"pred_outside_items", "lists_without_log", "pred_without_group"} <= set(
        expected.spec["counts"]
    )
    assert expected.summary["value"].notna().any()


def test_every_metric_of_true_and_pred(tmp_path):
    metrics = [metric.name for metric in BUILT_IN]
    true, pred = data(5)
    paths = write(
        tmp_path, true.assign(relevance=true["relevance"] / 3), pred
    )  # rbp takes gains up to 1
    check(paths, metrics, (3,), by="model", value_col="value", parts=(1, 3))


@pytest.mark.parametrize(
    "options", [{"duplicates": "keep"}, {"judged_only": True}, {"undefined": "zero"}]
)
def test_exposure_under_options(tmp_path, options):
    assert len(EXPOSURE) > 10
    metrics = [*EXPOSURE, *VARIANTS]
    paths = write(tmp_path, *data(6))
    check(
        paths,
        metrics,
        (1, 5),
        by="model",
        ties="row",
        min_relevance=1.0,
        **side_tables(6),
        **options,
    )


@pytest.mark.parametrize(
    ("one", "two"), [("string", "category"), ("int32", "Int64"), ("date", "date"), ("big", "big")]
)
def test_exposure_of_each_kind_of_item(tmp_path, one, two):
    true, pred = data(7)
    tables = {name: side_tables(7)[name].copy() for name in ("items", "log")}
    if one == "string":
        kinds = [
            lambda ids: ids.map("i{}".format),
            lambda ids: ids.map("i{}".format).astype("category"),
        ]
    else:
        kinds = list(map(as_dtype, (one, two)))
    for frame, kind in zip((true, pred, *tables.values()), kinds * 2, strict=True):
        frame["item_id"] = kind(frame["item_id"])
    check(
        write(tmp_path, true, pred), [*EXPOSURE, *VARIANTS], (2,), by="model", users="all", **tables
    )


@pytest.mark.parametrize("users", ["all", "pred", "frame"])
def test_side_tables_beside_composite_keys(tmp_path, users):
    true, pred = data(10)
    for frame in (true, pred):
        frame["session"] = (frame["user_id"] % 3).map("s{}".format)
    if users == "frame":
        users = pd.concat([true, pred])[["session", "user_id"]].drop_duplicates()[::-2]
    tables = {name: side_tables(10)[name] for name in ("items", "log", "aspects")}
    metrics = ["pop_rsp", "unseen", "subtopic_recall", "exposure_ratio"]
    check(
        write(tmp_path, true, pred), metrics, user_col=["user_id", "session"], users=users, **tables
    )


def test_exposure_of_lists_that_are_not_there(tmp_path):
    true, pred = data()
    tables = {name: side_tables(1)[name] for name in ("items", "log")}
    check(write(tmp_path, true, pred.iloc[:0]), EXPOSURE, users="true", **tables)
    check(write(tmp_path, true.iloc[:0], pred), EXPOSURE, users="pred", by="model", **tables)
    check(
        write(tmp_path, true.iloc[:0], pred.iloc[:0]),
        EXPOSURE,
        users=[1, 2],
        parts=(1, 3),
        **tables,
    )


def test_exposure_beside_a_recommender_without_lists(tmp_path):
    true, pred = data()
    first = pred["model"].iloc[0]
    pred["item_id"] = pred["item_id"].astype("Int64").mask(pred["model"] == first)
    options = {"null_keys": "drop", "users": "both", "by": "model", "items": None}
    expected = check(write(tmp_path, true, pred), ["ndcg", "hhi"], **options)
    summary = expected.summary.set_index("model")
    other = ({"a", "b"} - {first}).pop()
    assert summary.loc[other, "value"].notna().all()
    assert summary.loc[first, "value"].isna().all()  # a row for each metric that was asked for
    assert len(summary) == 4


def test_nulls_and_repeats_of_side_tables_count_once(tmp_path):
    true, pred = data(8)
    tables = {
        name: table.copy()
        for name, table in side_tables(8).items()
        if name not in ("popular", "items")
    }
    for name in ("log", "aspects", "base"):
        tables[name] = pd.concat([tables[name], tables[name].head(9)], ignore_index=True).astype(
            {"item_id": "Int64"}
        )
        tables[name].loc[::7, "item_id"] = None
    expected = check(
        write(tmp_path, true, pred),
        ["popularity", "unexpectedness", "a_ndcg", "unseen", "pop_reo"],
        null_keys="drop",
        items=None,
        **tables,
    )
    assert {"log_null_keys", "aspects_null_keys", "base_null_keys"} <= set(expected.spec["counts"])


def test_side_tables_may_be_read_once_only(tmp_path):
    paths, tables = write(tmp_path, *data(9)), side_tables(9)
    once = {
        name: pa.RecordBatchReader.from_stream(pa.table(tables[name])) for name in ("log", "base")
    }
    once |= {"popular": iter(tables["popular"]), "items": iter(tables["items"]["item_id"].tolist())}
    once["features"] = pa.table(tables["features"].reset_index())
    aspects = {user: [set(part["item_id"])] for user, part in tables["aspects"].groupby("user_id")}
    metrics = ["serendipity", "coverage", "unexpectedness", "subtopic_recall"]
    found = rd.evaluate_parquet(*paths, metrics, k=3, buckets=5, aspects=aspects, **USUAL, **once)
    tables = tables | {"aspects": aspects, "items": tables["items"]["item_id"].tolist()}
    expected = rd.evaluate(*map(pd.read_parquet, paths), metrics, k=3, **USUAL, **tables)
    assert_equal(found, expected)


@pytest.fixture
def own_metrics():
    """Metrics of exposure as a caller may write them."""

    def at_rank_2(counts):
        return np.bincount(counts.item[counts.rank == 2], minlength=counts.n_items)

    @rd.metric(per="item", arguments=("pred",), bounds=(0.0, None), sums=[("at rank 2", at_rank_2)])
    def my_sum(counts):
        """Largest number of lists that show one item at rank 2."""
        return counts.summed("at rank 2", at_rank_2).max()

    @rd.metric(per="item", arguments=("pred",), bounds=(0.0, None))
    def my_lists(counts):
        """Hits of all lists."""
        return counts.lists.n_hits.sum()

    @rd.metric(per="item", arguments=("pred",), bounds=(0.0, None))
    def my_whim(counts):
        """Reads the hits where many lists are."""
        return counts.hits.sum() if counts.n_lists > 2 else counts.shown.sum()

    @rd.metric(per="item", arguments=("pred",), bounds=(0.0, None))
    def my_secret(counts):
        """Sums what its record does not name."""
        return counts.summed("at rank 2", at_rank_2).max()

    @rd.metric(per="item", arguments=("pred",))
    def my_share(counts):
        """Largest share of one item, with a warning where nothing is shown."""
        return (counts.shown / counts.shown.sum()).max()

    def is_second(counts):
        return at_rank_2(counts) > 0

    @rd.metric(per="item", arguments=("pred",), bounds=(0.0, None), sums=[("is second", is_second)])
    def my_marks(counts):
        """Number of items that some list shows at rank 2, from marks."""
        return counts.summed("is second", is_second).sum()

    def short_numbers(counts):
        return np.ones(counts.n_items, np.float16)

    def three(counts):
        return np.array([1.0, 2.0, 3.0])

    def large_each(counts):
        """Python's integers, of which numpy makes uint64 where they are beyond 2**63."""
        return np.array([2**63 // 30 * len(counts.mine)])

    large = [("at rank 2", large_each, "lists")]

    @rd.metric(per="item", arguments=("pred",), bounds=(0.0, None), sums=large)
    def my_large(counts):
        """A large integer, in a sum that has the name of another metric's."""
        return float(counts.summed("at rank 2", large_each, "lists")[0])

    short = [("short", short_numbers), ("three", three, "lists")]

    @rd.metric(per="item", arguments=("pred",), bounds=(0.0, None), sums=short)
    def my_short(counts):
        """Reads sums of short numbers, and divides those over lists where they are."""
        shares = counts.summed("three", three, "lists")
        shares /= shares.sum()
        return float(counts.summed("short", short_numbers).max() > 0) + shares[0]


@pytest.mark.usefixtures("own_metrics")
def test_a_metric_of_exposure_of_ones_own(tmp_path):
    paths = write(tmp_path, *data())
    check(
        paths, ["my_sum", "my_marks", "my_short", "my_whim", "my_large", "hhi"], (1, 5), by="model"
    )
    with pytest.raises(rd.OptionError, match=r"^my_lists@3: reads 'lists', which does not add up"):
        rd.evaluate_parquet(*paths, "my_lists@3", buckets=3, **USUAL)
    with pytest.raises(
        rd.OptionError, match=r"^my_secret@3: reads the sum 'at rank 2', which it does not name"
    ):
        rd.evaluate_parquet(*paths, "my_secret@3", buckets=8, **USUAL)
    few = write(
        tmp_path, *(frame[frame["user_id"] < 25] for frame in data())
    )  # some parts show nothing
    expected = rd.evaluate(*map(pd.read_parquet, few), "my_share", **USUAL)
    assert_equal(rd.evaluate_parquet(*few, "my_share", buckets=20, **USUAL), expected)


def test_an_undefined_metric_of_exposure_is_refused_for_the_whole_alone(tmp_path):
    true, pred = data()
    paths = write(tmp_path, true, pred)
    options = {"metrics": "pop_reo", "log": side_tables(1)["log"], "undefined": "raise"} | USUAL
    rd.evaluate_parquet(*paths, buckets=20, **options)  # most parts have no hit in the head
    paths = write(tmp_path, true, pred.assign(item_id=-1))
    with pytest.raises(rd.UndefinedMetricError, match="pop_reo@10 has no value"):
        rd.evaluate_parquet(*paths, buckets=5, **options)


def test_a_missing_side_table_is_named(tmp_path):
    paths = write(tmp_path, *data())
    for metric, name in (
        ("coverage", "items"),
        ("popularity", "log"),
        ("a_ndcg", "aspects"),
        ("ild", "features"),
    ):
        one, two = both(paths, metric, catch=rd.OptionError)
        assert one == two
        assert f"needs {name}=" in one


@pytest.mark.parametrize("duplicates", ["keep", "drop"])
@pytest.mark.parametrize("buckets", [1, 2, 4])
def test_zeros_of_both_signs_are_one_item(buckets, duplicates, tmp_path):
    frame = pd.DataFrame({"user_id": [0, 1, 2, 3], "item_id": [0.0, -0.0, 1.0, -0.0]})
    frame.to_parquet(tmp_path / "frame.parquet")
    paths = [tmp_path / "frame.parquet"] * 2
    options = {"items": [0, 1, 2], "duplicates": duplicates}
    streamed = rd.evaluate_parquet(*paths, "gini@2", buckets=buckets, **options)
    assert (
        streamed.summary["value"].item()
        == rd.evaluate(frame, frame, "gini@2", **options).summary["value"].item()
    )
