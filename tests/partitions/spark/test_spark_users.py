"""Users in frames of Spark are counted in buckets, as those in memory are."""

import pandas as pd
import pytest
from partitions.spark_frames import to_spark
from partitions.user_cases import CALLS, REFUSED, assert_same, assigned, with_metrics
from quick import few

import recdf as rd


@pytest.mark.parametrize("name", few(CALLS, ["health by day", "ratio"]))
def test_the_table_is_that_of_the_rows(spark, name):
    users = assigned("strings")
    users["seen"] = users["seen"].dt.tz_localize("UTC")  # Spark's timestamps are instants
    given = with_metrics("strings", users), users
    expected = CALLS[name](*given)
    assert_same(CALLS[name](*(to_spark(spark, one) for one in given)), expected)
    assert_same(CALLS[name](given[0], to_spark(spark, users)), expected)


def test_errors_have_the_words_of_memory(spark):
    for words, call in REFUSED.items():
        with pytest.raises(rd.RecdfError, match=words):
            call(to_spark(spark, assigned()))


def test_large_integers_beside_a_null_are_told_apart(spark):
    users = assigned().drop_duplicates("user_id")[["user_id", "variant", "day"]]
    users["shop"] = (users["day"] + 2**60).astype("Int64").mask(users["day"] == 1)
    found = rd.experiments.find_srm(to_spark(spark, users), "shop")
    pd.testing.assert_frame_equal(found, rd.experiments.find_srm(users, "shop"))
    assert sorted(found["level"]) == ["(null)", *(str(2**60 + day) for day in (2, 3, 4))]
