"""Sessions as rented platforms give them: settings that nobody may change, "auto", and one task for
each bucket."""

import pandas as pd
import pytest
from partitions.engine_cases import assert_same, frames
from partitions.spark_frames import to_spark

import recdf as rd
from recdf.inputs.machine import Sizes, sized
from recdf.partitions.spark import SETTINGS, SparkEngine


def refuse(code):
    def refused(*given):
        from pyspark.errors import AnalysisException

        raise AnalysisException(
            f"[{code}] Cannot modify or read the value of the Spark config. SQLSTATE: 46110"
        )

    return refused


@pytest.mark.parametrize("hidden", [False, True])
def test_a_platform_that_lets_nobody_change_settings(spark, tmp_path, monkeypatch, hidden):
    true, pred = frames(61)
    given = to_spark(spark, true), to_spark(spark, pred)
    before = [spark.conf.get(name, None) for name in SETTINGS]
    with monkeypatch.context() as patch:
        patch.setattr(type(spark.conf), "set", refuse("CANNOT_MODIFY_CONFIG"))
        patch.setattr(type(spark.conf), "unset", refuse("CANNOT_MODIFY_CONFIG"))
        if hidden:
            patch.setattr(type(spark.conf), "get", refuse("CONFIG_NOT_AVAILABLE"))
        result = rd.spark.evaluate(*given, ["ndcg", "hhi"], 5, by="model", partitions=2)
        result.to_parquet((tmp_path / "out").as_uri())
        in_memory = result.to_pandas()
    in_order = pred.sort_values("model", kind="stable", ignore_index=True)
    assert_same(result, rd.evaluate(true, in_order, ["ndcg", "hhi"], 5, by="model"))
    assert rd.read_parquet(tmp_path / "out") == in_memory
    assert [spark.conf.get(name, None) for name in SETTINGS] == before


def test_the_number_of_partitions_is_read_only_where_it_is_needed(spark, monkeypatch):
    true, pred = frames(62)
    true, pred = to_spark(spark, true), to_spark(spark, pred)
    read, get = [], type(spark.conf).get

    def shown(conf, name, *default):
        read.append(name)
        return "auto" if name == "spark.sql.shuffle.partitions" else get(conf, name, *default)

    monkeypatch.setattr(type(spark.conf), "get", shown)
    found = rd.spark.evaluate(true, pred, "ndcg", 5, by="model", partitions=2)
    assert "spark.sql.shuffle.partitions" not in read
    assert SparkEngine(None, spark).n_buckets(true, pred) == 200
    monkeypatch.setattr("recdf.partitions.spark.N_PARTITIONS", 5)  # fewer tasks
    by_default = rd.spark.evaluate(true, pred, "ndcg", 5, by="model")
    pd.testing.assert_frame_equal(by_default.summary, found.summary, rtol=1e-12)
    assert by_default.per_user.rdd.getNumPartitions() == 5


@pytest.fixture
def most(spark):
    """The largest number of buckets, which the session has for the rest of a test."""
    name, most = "spark.sql.shuffle.partitions", 4
    before = spark.conf.get(name)
    spark.conf.set(name, str(most))
    yield most
    spark.conf.set(name, before)


def test_small_tables_have_few_buckets(spark, most, tmp_path):
    def n_buckets(*frames):
        return SparkEngine(None, spark).n_buckets(*frames)

    spark.range(1000).write.parquet(str(tmp_path / "rows"))
    rows, of_rdd = (
        spark.read.parquet(str(tmp_path / "rows")),
        spark.createDataFrame(spark.sparkContext.parallelize([(1,)]), ["id"]),
    )
    with sized(Sizes()):
        assert n_buckets(None, rows) == n_buckets(rows, rows) == 1
        assert n_buckets(None, spark.range(2**19)) == 3  # two full buckets
        made = rows.mapInArrow(lambda batches: batches, "id long")  # of any number of rows
        for large in (spark.range(2**40), rows.crossJoin(rows), made, of_rdd):
            assert n_buckets(rows, large) == most
    with sized(Sizes(bucket_bytes=4000)):
        assert n_buckets(None, spark.range(1000)) == 3


@pytest.mark.parametrize(("n_buckets", "users"), [(20, None), (7, range(200))])
def test_each_bucket_has_a_task_of_its_own(spark, n_buckets, users):
    """With as many partitions as buckets, the hash of Spark would leave a third of the tasks idle.

    Adaptive execution, which is on, would merge most of the others, since cells are few bytes.
    """
    from pyspark.sql import functions as of

    pred = pd.DataFrame({"user_id": range(500), "item_id": 1, "score": 1.0})
    options = {} if users is None else {"users": pd.DataFrame({"user_id": users})}
    given = to_spark(spark, pred, 2)
    with sized(Sizes(summed_buckets=2)):
        result = rd.spark.evaluate(given, given, "mrr", 5, partitions=n_buckets, **options)
    n = len(users or pred)
    assert result.summary["value"].tolist() == [1.0]
    assert result.summary["n"].tolist() == [n]
    tasks = result.per_user.groupBy(of.spark_partition_id()).count().collect()
    assert len(tasks) == n_buckets
    assert max(row["count"] for row in tasks) < 2 * n / n_buckets


def test_on_databricks_spark_writes_to_the_address_of_a_mounted_folder(monkeypatch):
    from pathlib import Path

    from recdf.partitions.spark import _address

    assert _address(Path("/Volumes/a/b c")) == "file:///Volumes/a/b%20c"  # a drive of macOS
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    assert _address(Path("/Volumes/a/b c")) == "dbfs:/Volumes/a/b c"
    assert _address(Path("/dbfs/x")) == "dbfs:/x"
    assert _address(Path("/local_disk0/x")) == "file:///local_disk0/x"
