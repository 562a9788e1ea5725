"""Raw logs in frames of Spark: the lists, the counts and the findings are those of pandas."""

import pandas as pd
import pytest
from partitions.check_cases import CASES_OF_CHECKS, assert_same_check
from partitions.log_cases import (
    CASES_OF_LOGS,
    assert_same_findings,
    assert_same_lists,
    persons_of_another_kind,
    refused_log,
    said_of,
)
from partitions.spark_frames import to_spark

import recdf as rd

CHECKED = (
    "time_col",
    "value_col",
    "window",
    "rank_col",
    "session_gap",
    "person_col",
    "clicked_col",
)


def of_spark(frame):
    return frame.toArrow().to_pandas()


def in_utc(frame):
    """Spark's timestamps are instants, in microseconds."""
    times = "time" in frame and frame["time"].dtype.kind == "M"
    return (
        frame.assign(time=frame["time"].dt.as_unit("us").dt.tz_localize("UTC")) if times else frame
    )


# The others run in Dask, through the same code; here each job takes seconds.
OF_SPARK = (
    "clicks_purchases_and_refunds_at_the_borders",
    "nulls_that_are_dropped",
    "unusual_dtypes",
    "no_rows",
)


@pytest.mark.parametrize("name", OF_SPARK)
def test_lists_and_findings_are_those_of_pandas(spark, name):
    log, frames, options = CASES_OF_LOGS[name]()
    frames = {role: in_utc(one) for role, one in {"log": log, **frames}.items()}
    given = {role: to_spark(spark, one, 1) for role, one in frames.items()}
    expected, said = said_of(rd.from_impressions, **frames, **options)
    found, told = said_of(rd.spark.from_impressions, **given, **options, partitions=2)
    assert_same_lists(found, expected, of_spark, dtypes=False)
    assert told == said
    if name == "unusual_dtypes":
        options = {name: options[name] for name in CHECKED if name in options}
        findings = rd.spark.check_log(**given, **options, partitions=2)
        assert_same_findings(findings, rd.logs.check_log(**frames, **options))


@pytest.mark.parametrize("name", ["ids of two kinds", "a null id in one bucket"])
def test_a_refused_log_is_refused_by_argument_and_column(spark, name):
    log, clicks, options, error, words = refused_log(name)
    with pytest.raises(error, match=words) as caught:
        rd.spark.from_impressions(
            to_spark(spark, log, 1), clicks=to_spark(spark, clicks, 1), **options, partitions=2
        )
    assert "java" not in str(caught.value)


def test_the_lists_go_into_evaluate(spark):
    log, frames, options = CASES_OF_LOGS["persons_with_several_devices"]()
    given = {role: to_spark(spark, one, 1) for role, one in {"log": log, **frames}.items()}
    found = rd.spark.from_impressions(**given, **options, partitions=2)
    expected = rd.from_impressions(log, **frames, **options)
    metrics = ["hits@3", "revenue@3"]
    summary = rd.spark.evaluate(*found, metrics, **found.options, partitions=2).summary
    of_pandas = rd.evaluate(*expected, metrics, **expected.options).summary
    pd.testing.assert_frame_equal(summary, of_pandas, rtol=1e-12)
    with pytest.raises(TypeError, match="clicks is a DataFrame of pandas"):
        rd.spark.from_impressions(given["log"], clicks=log, time_col="time")


def test_findings_are_those_of_check(spark):
    true, pred, options = CASES_OF_CHECKS["ties_and_rows_twice"]()
    own = to_spark(spark, true), to_spark(spark, pred, 2)
    assert_same_check(rd.spark.check, *own, None, options, (true, pred, None))


def test_devices_beside_persons_of_another_kind_are_refused_as_in_memory(spark):
    log, clicks, persons, options = persons_of_another_kind()
    given = to_spark(spark, log, 1), to_spark(spark, clicks, 1), to_spark(spark, persons, 1)
    given = dict(zip(("log", "clicks", "persons"), given, strict=True))
    words = r"persons\['person_id'\] holds integer ids .* and clicks\['user_id'\] string ids"
    with pytest.raises(rd.IdTypeError, match=words + r".*\.cast\("):
        rd.spark.from_impressions(**given, **options, partitions=2)
    findings = rd.spark.check_log(**given, **options, partitions=2)
    expected = rd.logs.check_log(log, clicks=clicks, persons=persons, **options)
    assert_same_findings(findings, expected)
