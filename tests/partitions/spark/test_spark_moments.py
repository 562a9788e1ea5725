"""Moments and pairs of models whose rows are in Spark: those of the same rows in memory."""

import pytest
from partitions.engine_cases import frames
from partitions.moment_cases import (
    CASES_OF_MOMENTS,
    GROUPS,
    OF_ROWS,
    REFUSED,
    assert_same_moments,
    in_memory,
)
from partitions.pair_cases import (
    assert_errors_of_pairs,
    assert_same_board,
    assert_same_pairs,
    results_of,
)
from partitions.spark_frames import to_spark

import recdf as rd


def evaluated(spark, true, pred, options):
    given = to_spark(spark, true, 2), to_spark(spark, pred)
    return rd.spark.evaluate(*given, ["ndcg", "first_rank"], 5, partitions=3, **options)


# The others, which differ in what is added up, are tried on frames of Dask.
OF_SPARK = [
    "segments_null_metrics_and_columns_of_the_assignment",
    "lists_of_sessions",
    "keys_of_decimals_and_of_instants",
]


@pytest.mark.parametrize("name", OF_SPARK)
def test_the_moments_are_those_of_rows_in_memory(spark, name):
    true, pred, options, groups, asked = CASES_OF_MOMENTS[name]()
    if "instants" in name:
        for frame in (true, pred, groups):
            frame["day"] = frame["day"].dt.tz_localize("UTC")  # Spark's timestamps are instants
    asked = {"nan": "drop", **asked}
    result = evaluated(spark, true, pred, options)
    expected = in_memory(result, groups, **asked)
    assert_same_moments(result.variant_moments(groups, **asked), expected)
    assert_same_moments(result.variant_moments(to_spark(spark, groups), **asked), expected)


def test_errors_have_the_words_of_memory(spark):
    result = evaluated(spark, *frames(), {"by": "model", "users": "pred"})
    for groups, options, error, words in [*REFUSED, *OF_ROWS]:
        with pytest.raises(error, match=words):
            result.variant_moments(groups, **options)
    for groups, options, error, words in OF_ROWS[:2]:
        with pytest.raises(error, match=words):
            result.variant_moments(to_spark(spark, groups), **options)
    with pytest.raises(rd.IdTypeError, match="can never match"):
        result.variant_moments(to_spark(spark, GROUPS.astype({"user_id": str})))


def test_a_metric_of_ones_own_is_zero_for_users_without_rows(spark):
    """The workers have not registered it, so they cannot know by themselves that more of it is
    better."""

    @rd.metric(bounds=(0, 1), better="larger")
    def found_first(lists):
        return (lists.n_true > 0).astype(float) * 0.5

    true, pred = frames()
    given = to_spark(spark, true, 2), to_spark(spark, pred)
    result = rd.spark.evaluate(*given, [found_first], 5, partitions=3, by="model")
    asked = {"missing": "zero", "nan": "drop"}
    expected = in_memory(result, GROUPS, **asked)
    assert expected["min"].min() == 0
    assert_same_moments(result.variant_moments(GROUPS, **asked), expected)


@pytest.mark.parametrize("name", ["folds", "segments"])
def test_models_are_compared_as_in_memory(spark, name):
    def of_spark(true, pred, options):
        given = to_spark(spark, true, 2), to_spark(spark, pred)
        return rd.spark.evaluate(
            *given, ["ndcg", "recall", "mrr@1", "first_rank"], 5, partitions=3, **options
        )

    result_under = results_of(of_spark)
    assert_same_pairs(result_under, name)
    if name == "folds":
        assert_errors_of_pairs(result_under)
    else:
        assert_same_board(result_under, "several lists of a user")
