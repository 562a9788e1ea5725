"""Frames of Spark: every answer, error and warning is that of `rd.evaluate` on the same rows."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from partitions.engine_cases import (
    CASES,
    ERRORS,
    WARNINGS,
    assert_same,
    frames,
    now_and_then,
    outcome,
    side_tables,
    without_part,
)
from partitions.spark_frames import to_spark

import recdf as rd
from recdf.experiments.compare import variants
from recdf.inputs.machine import Sizes, sized


def both(spark, true, pred, metrics, options, **more):
    """The outcome of Spark and that of `rd.evaluate`, whose `by` values come in ascending order
    too."""
    found = outcome(
        rd.spark.evaluate,
        to_spark(spark, true, 2),
        to_spark(spark, pred),
        metrics,
        [2, 5],
        **options,
        **more,
    )
    if options.get("by"):
        pred = pred.sort_values(options["by"], kind="stable", ignore_index=True)
    return found, outcome(rd.evaluate, true, pred, metrics, [2, 5], **options)


# What all engines share is tried on frames of Dask, where a call takes a tenth of the time:
# metrics, users, and warnings of counts that come from the same sums. The others have columns, ids
# and cells of their own.
OF_ALL_ENGINES = {
    "pooled_values_and_intents",
    "the_largest_gain_of_all",
    "items_that_nobody_judged",
    "seen_items_of_users_of_sessions",
    "all_users_of_both_frames",
    "weights_and_propensities",
    "lists_in_cells_in_their_own_order",
    "no item",
    "no item but in rows without a user",
    "one model",
    "a variant as by",
    "positives alone",
    "seen items of others",
    "a log of others",
}


def of_spark(cases):
    return [name for name in cases if name not in OF_ALL_ENGINES]


@pytest.mark.parametrize("name", of_spark(CASES))
def test_the_tables_are_those_of_evaluate(spark, name):
    true, pred, metrics, options = CASES[name]()
    if name == "keys_of_decimals_and_of_instants":
        for frame in (true, pred):
            frame["day"] = frame["day"].dt.tz_localize("UTC")  # Spark's timestamps are instants
    (result, said), (expected, expected_said) = both(spark, true, pred, metrics, options)
    if isinstance(result, Exception):
        raise result
    assert_same(
        result, expected, keys={"user_id": "int64"} if name == "nulls_that_are_dropped" else None
    )
    assert said == expected_said
    assert (
        spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch", None) is None
    )  # as before the call


@pytest.mark.parametrize("name", ERRORS)
def test_the_error_is_that_of_evaluate_without_a_java_trace(spark, name):
    (error, _), (expected, _) = both(spark, *ERRORS[name]())
    assert type(error) is type(expected)
    told, expected = (
        without_part(one).replace("rd.spark.evaluate", "evaluate") for one in (error, expected)
    )
    if name.startswith("kinds of"):  # the ids that it names are the first that Spark finds
        told, expected = told[:30], expected[:30]
    assert told.replace("partitions, cache, ", "") == expected  # an engine has more options
    assert "java" not in str(error) + "".join(getattr(error, "__notes__", []))


@pytest.mark.parametrize("name", of_spark(WARNINGS))
def test_the_warnings_are_those_of_evaluate(spark, name):
    change, options = WARNINGS[name]
    (_, said), (_, expected) = both(spark, *change(*frames(11)), "ndcg", options)
    # The ids that a warning names as examples are the first that Spark finds.
    assert [(kind, text.partition("(")[0]) for kind, text in said] == [
        (kind, text.partition("(")[0]) for kind, text in expected
    ]
    assert said


def test_one_user_with_half_of_the_rows_and_null_keys_that_make_no_hot_task(spark):
    true, pred = frames(21)
    many = pd.DataFrame({"model": "als", "user_id": 4, "item_id": range(1000, 1300), "score": 2.0})
    lost = pd.DataFrame({"model": "als", "user_id": None, "item_id": range(200), "score": 1.0})
    pred = pd.concat([pred, many, lost.astype({"user_id": "Int64"})], ignore_index=True)
    options = {"by": "model", "null_keys": "drop"}
    (result, _), (expected, _) = both(spark, true, pred, ["ndcg", "hhi"], options, partitions=5)
    assert_same(result, expected)
    assert result.spec["counts"] == {"pred_null_keys": 200}


def test_cells_that_do_not_fit_into_memory_are_spilled(spark):
    """The session has 20 MB for shuffles, and the cells of both frames have twice as much."""
    from pyspark.sql import functions as of

    wide = 10**15  # ids that no type narrower than 64 bits holds
    rows = spark.range(800_000, numPartitions=2).select(
        of.expr(f"id % 1000 * {wide}L").alias("user_id"), "id"
    )
    item = of.expr(f"id div 1000 * {wide}L").alias("item_id")
    pred = rows.select("user_id", item, of.expr("-(id div 1000) * 1.0D").alias("score"))
    true = rows.where("id % 7 = 0").select("user_id", item)
    found = rd.spark.evaluate(true, pred, ["recall", "mrr"], 7, partitions=1)
    # Items 0 to 799 are shown in this order. User u has one of seven: those i with (1000 i + u) % 7
    # = 0.
    first = pd.Series(
        [min(i for i in range(7) if (1000 * i + user) % 7 == 0) for user in range(1000)]
    )
    n_true = pd.Series(
        [sum((1000 * i + user) % 7 == 0 for i in range(800)) for user in range(1000)]
    )
    expected = [(1 / n_true).mean(), (1 / (first + 1)).mean()]
    assert found.summary["value"].tolist() == pytest.approx(expected, rel=1e-12)
    assert spilled(spark) > 0


def spilled(spark):
    """Bytes that all stages so far wrote to the disk since memory was short, as Spark's own
    counters have it."""
    context = spark.sparkContext
    none, no_quantiles = (
        context._jvm.java.util.ArrayList(),
        context._gateway.new_array(context._jvm.double, 0),
    )
    stages = context._jsc.sc().statusStore().stageList(none, False, False, no_quantiles, none)
    return sum(stages.apply(i).diskBytesSpilled() for i in range(stages.size()))


def test_many_empty_partitions(spark):
    true, pred = frames(22)
    found = rd.spark.evaluate(
        to_spark(spark, true[:3], 9), to_spark(spark, pred[:5], 40), "mrr", 5, partitions=12
    )
    expected = rd.evaluate(true[:3], pred[:5], "mrr", 5)
    pd.testing.assert_frame_equal(found.summary, expected.summary, rtol=1e-12)


def test_instants_of_the_repeated_hour_stay_two_keys(spark, tmp_path):
    """On 26 October 2025 the clock of Berlin shows 02:30 twice: at 00:30 and at 01:30 in UTC."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        seen = pa.array([1_761_438_600_000_000, 1_761_442_200_000_000], pa.timestamp("us", "UTC"))
        rows = {
            "user_id": [1, 1],
            "item_id": [2, 3],
            "score": [1.0, 1.0],
            "seen": seen,
            "again": seen,
        }
        rows = spark.createDataFrame(pa.table(rows))
        keys = ["user_id", "seen"]
        users = rows.select(*keys)
        result = rd.spark.evaluate(
            rows, rows, "mrr", 5, user_col=keys, users=users, carry="again", partitions=1
        )
        result.to_parquet(tmp_path)
        stored = rd.read_parquet(tmp_path)
        expected = [
            pd.Timestamp("2025-10-26 00:30", tz="UTC"),
            pd.Timestamp("2025-10-26 01:30", tz="UTC"),
        ]
        assert stored.per_user["seen"].tolist() == stored.per_user["again"].tolist() == expected
        assert stored == result.to_pandas()
        options = {"by": "seen", "by_in_true": False, "partitions": 1}
        assert (
            rd.spark.evaluate(rows, rows, "mrr", 5, **options).summary["seen"].tolist() == expected
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


NAMES = {
    "user_id": "u.id",
    "item_id": "[i`d",
    "score": "a b",
    "model": ".m[0]",
    "relevance": "r,;{}()",
}


def test_names_with_dots_backticks_and_other_signs(spark, tmp_path):
    true, pred = (frame.rename(columns=NAMES) for frame in frames(31))
    pred = pred.sort_values(NAMES["model"], kind="stable", ignore_index=True).assign(
        **{"`": 1, "A B": 2, "c.d": 3}
    )
    options = {
        "user_col": "u.id",
        "item_col": "[i`d",
        "score_col": "a b",
        "by": ".m[0]",
        "relevance_col": "r,;{}()",
        "carry": ["c.d", "`"],
    }
    metrics = {"a.b": "ndcg", ".z[`": "mrr"}
    result = rd.spark.evaluate(to_spark(spark, true), to_spark(spark, pred), metrics, 5, **options)
    assert_same(result, rd.evaluate(true, pred, metrics, 5, **options))
    assert result.per_user.columns == [
        ".m[0]",
        "u.id",
        "c.d",
        "`",
        "n_true",
        "n_pred",
        "a.b",
        ".z[`",
    ]
    result.to_parquet(tmp_path)
    assert rd.read_parquet(tmp_path) == result.to_pandas()
    strangers = pred.assign(**{"[i`d": pred["[i`d"] + 1000})
    with pytest.warns(rd.NoOverlapWarning, match="item"):
        rd.spark.evaluate(to_spark(spark, true), to_spark(spark, strangers), "mrr", 5, **options)


def test_names_that_differ_only_in_case(spark, tmp_path):
    true, pred = frames(32)
    given = to_spark(spark, true), to_spark(spark, pred)
    result = rd.spark.evaluate(*given, {"NDCG": "ndcg", "ndcg": "ndcg(gain=binary)"}, 5, by="model")
    assert result.to_pandas().per_user.columns[-2:].tolist() == ["NDCG", "ndcg"]
    with pytest.raises(rd.EngineError, match="column `ndcg` already exists"):
        result.to_parquet(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        result.to_parquet(tmp_path / "out")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert rd.read_parquet(tmp_path / "out") == result.to_pandas()


def test_files_whose_schemas_drift(spark, tmp_path):
    true, pred = frames(23)
    parts = [
        pred[:100].drop(columns="score"),
        pred[100:180].astype({"item_id": "int32"}),
        pred[180:],
    ]
    for number, part in enumerate(parts[::2]):
        part.to_parquet(tmp_path / f"{number}.parquet")
    read = spark.read.option("mergeSchema", True).parquet(str(tmp_path)).repartition(2)
    found = rd.spark.evaluate(
        to_spark(spark, true), read, "recall", 5, by="model", nan_score="drop"
    )
    expected = rd.evaluate(true, pd.concat(parts[::2]), "recall", 5, by="model", nan_score="drop")
    assert found.spec["counts"] == expected.spec["counts"] == {"pred_null_scores": 100}
    merged = found.summary.merge(expected.summary, on="model")
    np.testing.assert_allclose(merged["value_x"], merged["value_y"], rtol=1e-12)


def test_a_worker_that_is_killed_is_replaced(spark, tmp_path):
    mark, true, pred = str(tmp_path / "killed"), *frames(24)

    @rd.metric
    def deadly_once(lists):
        """A constant; larger is better, in [0, 1]."""
        if not os.path.exists(mark):
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.ones(len(lists))

    metrics = ["ndcg", deadly_once]
    found = rd.spark.evaluate(to_spark(spark, true), to_spark(spark, pred), metrics, 5, by="model")
    assert os.path.exists(mark)
    assert found.summary.loc[found.summary["metric"] == "deadly_once", "value"].tolist() == [
        1.0,
        1.0,
    ]


def test_jobs_that_fail_say_what_failed_and_what_to_do(spark, tmp_path):
    true, pred = frames(33)

    @rd.metric
    def hungry(lists):
        """A constant; larger is better, in [0, 1]."""
        raise MemoryError

    words = (
        r"^a job of Spark failed: a worker ran out of memory in bucket \d of 2 "
        r"\(raised in the metric hungry@5\)\."
    )
    with pytest.raises(rd.EngineError, match=words):
        rd.spark.evaluate(to_spark(spark, true), to_spark(spark, pred), hungry, 5, by="model")
    to_spark(spark, pred, 1).write.parquet(str(tmp_path / "pred"))
    stored = spark.read.parquet(str(tmp_path / "pred"))
    result = rd.spark.evaluate(to_spark(spark, true), stored, "mrr", 5, by="model")
    shutil.rmtree(tmp_path / "pred")
    for work in (result.to_pandas, lambda: result.to_parquet(tmp_path / "out")):
        with pytest.raises(
            rd.EngineError, match=r"^a job of Spark failed: a file of a frame cannot"
        ) as caught:
            work()
        assert not isinstance(caught.value.__cause__, rd.RecdfError)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@sized(Sizes(inline_bytes=10))
def test_large_side_tables_are_broadcast_and_may_be_spark_frames(spark):
    true, pred = frames(25)
    tables, users = side_tables(), pd.DataFrame({"user_id": [3, 5]})
    given = {name: to_spark(spark, table) for name, table in tables.items()}
    options = {"by": "model", "users": users}
    metrics = ["unseen", "coverage"]
    found = rd.spark.evaluate(
        to_spark(spark, true),
        to_spark(spark, pred),
        metrics,
        5,
        cache=True,
        **{**options, **given, "users": to_spark(spark, users)},
    )
    expected = rd.evaluate(
        true, pred.sort_values("model", kind="stable"), metrics, 5, **options, **tables
    )
    pd.testing.assert_frame_equal(found.summary, expected.summary, rtol=1e-12)
    assert found.per_user.count() == len(expected.per_user)


def test_a_result_is_written_by_the_executors_and_read_back(spark, tmp_path):
    true, pred = frames(26)
    result = rd.spark.evaluate(
        to_spark(spark, true), to_spark(spark, pred), ["ndcg", "hhi"], 5, by="model"
    )
    result.to_parquet(tmp_path / "out")
    stored = rd.read_parquet(tmp_path / "out")
    assert stored == result.to_pandas()
    assert len(stored.compare_models()) == 1
    assert dict(result.per_user.dtypes) == {
        "model": "string",
        "user_id": "bigint",
        "n_true": "bigint",
        "n_pred": "bigint",
        "ndcg@5": "double",
    }
    means = {
        row["model"]: row[1] for row in result.per_user.groupBy("model").avg("ndcg@5").collect()
    }
    summary = result.summary[result.summary["metric"] == "ndcg"].set_index("model")["value"]
    assert means == pytest.approx(
        summary.to_dict(), rel=1e-12
    )  # undefined values are null, which Spark leaves out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"ties": "row"},
            'ties="row" needs the order of the rows, which a Spark frame does not keep',
        ),
        (
            {"rank_col": None, "like": rd.Convention("x", order="row")},
            'like="x" takes pred in the order of its rows',
        ),
        ({"partitions": "8"}, "partitions='8'; expected an integer from 1 to 65,535"),
    ],
)
def test_what_spark_cannot_do_is_refused(spark, options, words):
    true, pred = frames(27)
    with pytest.raises(rd.OptionError) as caught:
        rd.spark.evaluate(to_spark(spark, true), to_spark(spark, pred), "mrr", 5, **options)
    assert str(caught.value).startswith(words)
    with pytest.raises(
        TypeError, match=r"^true is a DataFrame of pandas.*; expected a Spark .*createDataFrame"
    ):
        rd.spark.evaluate(true, to_spark(spark, pred), "mrr")


def test_columns_that_spark_or_arrow_cannot_compare(spark):
    row = "select 1 user_id, 2 item_id, 1.0D score, {} x"
    kinds = {
        "array(1)": "list",
        "map('a', 1)": "map",
        "named_struct('a', 1)": "struct",
        "interval '1' month": "interval",
        "make_interval(0, 0, 0, 1)": "interval",
        "parse_json('1')": "struct",
    }
    for value, kind in kinds.items():
        rows = spark.sql(row.format(value))
        of_items = [] if kind == "list" else [{"item_col": "x"}]  # a list of items is fine
        for options in ({"user_col": ["user_id", "x"]}, *of_items, {"by": "x"}, {"carry": "x"}):
            with pytest.raises(
                rd.IdTypeError, match=rf"is .*{kind}.*; .* Convert .* with \.cast\(\"string\"\)$"
            ):
                rd.spark.evaluate(rows, rows, "mrr", **options)
        with pytest.raises(rd.DataError, match=r"^pred\['x'\] holds .*; expected numbers$"):
            rd.spark.evaluate(rows, rows, "mrr", score_col="x")


def test_messages_that_name_what_spark_has(spark):
    true, pred = frames(34)
    true, pred = to_spark(spark, true), to_spark(spark, pred)
    column, words = true["user_id"], true.withColumn("user_id", true["user_id"].cast("string"))
    exact = true.withColumn("user_id", true["user_id"].cast("decimal(20, 0)"))
    for given, options, error, told in (
        (
            true,
            {"users": column},
            rd.OptionError,
            r"^users=Column<'user_id'>; valid are .* or a list, Series or frame of ids$",
        ),
        (words, {}, rd.IdTypeError, r"pred\['user_id'\]\.cast\(\"string\"\)$"),
        (
            exact,
            {},
            rd.IdTypeError,
            r"true\['user_id'\]\.cast\(\"long\"\) if all are whole numbers$",
        ),
        (
            true,
            {"cached": True},
            rd.OptionError,
            "did you mean 'cache'. Valid are k, partitions, cache, items",
        ),
    ):
        with pytest.raises(error, match=told):
            rd.spark.evaluate(given, pred, "mrr", by="model", **options)


def test_rows_that_are_kept_are_given_back(spark):
    true, pred = frames(35)
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before = len(kept())
    result = rd.spark.evaluate(
        to_spark(spark, true), to_spark(spark, pred), "mrr", 5, by="model", cache=True
    )
    assert len(kept()) == before + 2
    result.unpersist()
    result.unpersist()  # nothing is left to do
    assert len(kept()) == before
    assert result.per_user.count() == len(result.to_pandas().per_user)
    with pytest.raises(rd.NullKeyError):
        rd.spark.evaluate(
            *(to_spark(spark, now_and_then(one, "user_id")) for one in (true, pred)),
            "mrr",
            cache=True,
        )
    assert len(kept()) == before


def test_the_example_of_the_page(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[3] / "docs" / "engines.md"
    (block,) = re.findall(
        r"^```py\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.S | re.M
    )
    known = {}
    exec(block, known)
    # The gains of the second item of ann are 0, and bob has a hit of knn alone.
    recall = (
        known["result"].summary.query("metric == 'recall' and k == 2").set_index("model")["value"]
    )
    assert recall.to_dict() == {"als": 0.25, "knn": 0.5}
    assert rd.read_parquet("results/today") == known["result"].to_pandas()
    assert "ndcg@1" in capsys.readouterr().out


CONNECT = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
import recdf as rd
from recdf.experiments.compare import variants
from recdf.inputs.machine import Sizes, sized
from partitions.engine_cases import assert_same, frames, side_tables
from partitions.moment_cases import GROUPS, assert_same_moments, in_memory
from partitions.spark_frames import QUICK

@rd.metric
def my_share(lists):
    "Share of hits; larger is better, in [0, 1]."
    return lists.n_hits / lists.k

builder = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2")
for setting in QUICK.items():
    builder = builder.config(*setting)
session = builder.getOrCreate()
assert "connect" in type(session).__module__
true, pred = frames(28)
given = pd.DataFrame({"user_id": [3, 4, 5, 6, 100]})
tables = side_tables()
tables_of = [pa.Table.from_pandas(one, preserve_index=False) for one in (true, pred)]
sdf = [session.createDataFrame(one) for one in tables_of]
for n_bytes in (10, 10**9):  # as a file, and with the task
    with sized(Sizes(inline_bytes=n_bytes)):
        options = {"by": "model", "users": given, **tables}
        found = rd.spark.evaluate(*sdf, ["ndcg", my_share, "coverage"], 5, **options)
        in_order = pred.sort_values("model", kind="stable", ignore_index=True)
        same = rd.evaluate(true, in_order, ["ndcg", my_share, "coverage"], 5, **options)
        assert_same(found, same)
        asked = {"metrics": "ndcg@5", "missing": "zero", "nan": "drop"}
        moments = found.variant_moments(GROUPS, **asked)
        assert_same_moments(moments, in_memory(found, GROUPS, **asked))
in_spark = session.createDataFrame(pa.Table.from_pandas(GROUPS, preserve_index=False))
assert_same_moments(found.variant_moments(in_spark, **asked), in_memory(found, GROUPS, **asked))
try:
    rd.spark.evaluate(*sdf, "ndcg", duplicates="raise", users="pred", by=None)
except rd.DuplicateError as error:
    print("equal, and", type(error).__name__)
session.stop()
"""


@pytest.mark.slow
def test_spark_connect(spark):
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
    here, root = Path(__file__).parent, Path(rd.__file__).parents[1]
    path = os.pathsep.join(map(str, (root, here.parents[1], here)))
    done = subprocess.run(
        [sys.executable, "-c", CONNECT],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.split("\n")[-2:] == ["equal, and DuplicateError", ""], done.stderr[-3000:]


IN_SPARK = {
    "a covariate": {"covariates": "before"},
    "a regression": {"covariates": {"clicks": ["before", "views"]}},
    "gaps in strata": {"covariates": "gaps", "strata": "week", "time_col": "week"},
    "weights": {"weight_col": "weight"},
    "clusters": {"cluster": "store"},
}


@pytest.mark.parametrize("given", IN_SPARK.values(), ids=IN_SPARK)
def test_users_are_added_up_where_they_are(given, spark, monkeypatch):
    rng, n = np.random.default_rng(1), 500
    users = pd.DataFrame({"user.id": rng.permutation(n), "variant": ["A", "B"] * (n // 2)})
    users["views"] = rng.integers(1, 9, n)
    users["clicks"], users["before"] = rng.binomial(users["views"], 0.3), rng.random(n)
    users["weight"] = rng.integers(1, 4, n)
    if "cluster" in given:  # stores that were assigned whole: without it, rows would be needed
        users["store"] = np.arange(n) % 100
    users["week"] = np.arange(n) % 3
    users["gaps"] = users["before"].mask(users["user.id"] % 6 == 0)
    given = {"control": "A", "user_col": "user.id", "expected": {"A": 1, "B": 1}, **given}
    metrics = {"ctr": ("clicks", "views"), "clicks": "clicks"}
    expected = rd.compare_variants(users, metrics, **given)
    needed_frame = variants.needed_frame

    def only_labels(*given):
        found = needed_frame(*given)
        assert {*found.columns} <= {"variant", "week"}, "rows were brought into memory"
        return found

    monkeypatch.setattr(variants, "needed_frame", only_labels)
    with sized(Sizes(summed_rows=1)):
        found = rd.compare_variants(to_spark(spark, users, 2), metrics, **given)
    tables = map(pd.DataFrame, (found, expected))
    pd.testing.assert_frame_equal(*tables, rtol=1e-9, check_dtype=False)
