"""Moments of an experiment whose rows are in Dask: those of the same rows joined in memory."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

from partitions.engine_cases import frames  # noqa: E402
from partitions.moment_cases import (  # noqa: E402
    CASES_OF_MOMENTS,
    GROUPS,
    OF_ROWS,
    REFUSED,
    assert_same_moments,
    assigned,
    in_memory,
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def to_dask(frame, npartitions=2):
    return dd.from_pandas(frame.reset_index(drop=True), npartitions=npartitions, sort=False)


def evaluated(true, pred, options, partitions=3):
    given = to_dask(true, 1), to_dask(pred, 2)
    return rd.dask.evaluate(*given, ["ndcg", "first_rank"], 5, partitions=partitions, **options)


@pytest.mark.parametrize("name", CASES_OF_MOMENTS)
def test_the_moments_are_those_of_rows_in_memory(name):
    true, pred, options, groups, asked = CASES_OF_MOMENTS[name]()
    asked = {"nan": "drop", **asked}
    with dask.config.set({"dataframe.convert-string": "decimals" not in name}):
        result = evaluated(true, pred, options)
        expected = in_memory(result, groups, **asked)
        assert_same_moments(result.variant_moments(groups, **asked), expected)
        in_dask = to_dask(groups)
        labels = {
            column: in_dask.dtypes[column]
            for column in ("variant", "segment")
            if column in expected
        }
        assert_same_moments(result.variant_moments(in_dask, **asked), expected, labels)


def test_buckets_without_users_and_models_that_few_users_or_none_have():
    true, pred = frames(5)
    pred = pred[(pred["model"] == "als") | (pred["user_id"] == 9)]
    unknown = pd.DataFrame({"model": "of none", "user_id": [1000], "item_id": 1, "score": 1.0})
    pred = pd.concat([pred, unknown], ignore_index=True)
    with pytest.warns(rd.NoOverlapWarning, match="of none"):
        result = evaluated(true, pred, {"by": "model", "users": "both"}, partitions=12)
    asked = {"missing": "zero", "nan": "drop"}
    found = result.variant_moments(GROUPS, **asked)
    shuffled = GROUPS.sample(frac=1, random_state=np.random.default_rng(0))
    pd.testing.assert_frame_equal(result.variant_moments(shuffled, **asked), found, rtol=0, atol=0)
    assert_same_moments(found, in_memory(result, GROUPS, **asked))
    table = rd.experiments.compare_variants_from_moments(
        found, control="A", by="model", details=True
    )
    rows = result.to_pandas().join_experiment(GROUPS, missing="zero")
    metrics = ["ndcg@5", "first_rank@5"]
    expected = rd.compare_variants(rows, metrics, control="A", by="model", nan="drop", details=True)
    rows_only = ["diff_without_top"]  # which units are far from the mean cannot be told from sums
    assert table[rows_only].isna().all(axis=None)
    table, expected = table.drop(columns=rows_only), expected.drop(columns=rows_only)
    pd.testing.assert_frame_equal(table, expected, rtol=1e-12, atol=1e-12)


def test_buckets_of_assigned_users_without_lists():
    true, pred, options, groups, asked = CASES_OF_MOMENTS["lists_by_variant"]()
    true, pred = (one[one["user_id"].isin([9, 10, 12])] for one in (true, pred))
    result = evaluated(true, pred, options, partitions=30)
    asked = {"nan": "drop", **asked}
    found = result.variant_moments(groups, **asked)
    assert_same_moments(found, in_memory(result, groups, **asked))


def test_an_error_of_users_without_lists_says_that_it_is_of_one_bucket():
    true = pd.DataFrame({"user_id": [0, 1], "item_id": 1})
    result = evaluated(true, true.assign(score=1.0), {}, partitions=30)
    groups = pd.DataFrame({"user_id": range(40), "variant": ["A", "B"] * 20})
    for user in (30, 31, 32):
        groups["spend"] = np.where(groups["user_id"] == user, np.inf, 1.0)
        with pytest.raises(rd.DataError, match=r"infinite in 1 .*\(found in one of 30 buckets"):
            result.variant_moments(groups, ["spend"], missing="zero")


def test_users_without_a_denominator_count_in_every_bucket():
    true = pd.DataFrame({"user_id": range(40), "item_id": 1})
    pred = true[true["user_id"] % 2 == 0].assign(score=1.0)
    groups = pd.DataFrame({"user_id": range(40), "variant": ["A", "B"] * 20, "orders": 1.0})
    ratio = {"metrics": {"r": ("first_rank@5", "n_true"), "orders": "orders"}}
    asked = ratio | {"missing": "zero", "nan": "drop"}
    result = evaluated(true, pred, {"users": "pred"}, partitions=20)
    found = result.variant_moments(groups, **asked)
    assert found.set_index(["variant", "metric"]).loc[("B", "n_true"), "n_empty"] == 20
    assert_same_moments(found, in_memory(result, groups, **asked))


def test_models_are_not_mixed_and_the_variant_is_no_segment(result):
    with pytest.raises(rd.DataError, match="a unit would mix them"):
        result.variant_moments(GROUPS, by=[], missing="zero", how="mean")
    true, pred, options, groups, asked = CASES_OF_MOMENTS["lists_by_variant"]()
    own = evaluated(true, pred, options)
    with pytest.raises(rd.OptionError, match="is the column of the variant"):
        own.variant_moments(groups, **{**asked, "by": options["by"]})


@pytest.fixture(scope="module")
def result():
    with dask.config.set(scheduler="synchronous"):
        return evaluated(*frames(), {"by": "model", "users": "pred"})


@pytest.mark.parametrize(("groups", "options", "error", "words"), REFUSED)
def test_what_needs_no_rows_is_refused_before_any_job(result, groups, options, error, words):
    def runs(*_):
        raise AssertionError("a job was started")

    with dask.config.set(scheduler=runs), pytest.raises(error, match=words):
        result.variant_moments(groups, **options)


@pytest.mark.parametrize(("groups", "options", "error", "words"), OF_ROWS)
def test_errors_of_rows_are_raised_with_the_words_of_memory(result, groups, options, error, words):
    for given in (groups, to_dask(groups)):
        with pytest.raises(error, match=words):
            result.variant_moments(given, **options)


def test_weights_warn_once():
    true, pred = frames(6)
    true["weight"] = true["user_id"] % 4 + 0.5
    result = evaluated(true, pred, {"weight_col": "weight", "by": "model"})
    with pytest.warns(rd.WeightWarning, match="weight") as caught:
        result.variant_moments(assigned(), missing="zero", nan="drop")
    assert len(caught) == 1
