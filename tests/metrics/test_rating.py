"""Rating error against scikit-learn and by hand."""

import math

import numpy as np
import oracles
import pandas as pd
import pytest
from registry.seeded import assert_close, oracle_values, records

import recdf as rd


def rated(seed=0):
    rng = np.random.default_rng(seed)
    pairs = pd.DataFrame(
        {"user_id": np.repeat(np.arange(20), 9), "item_id": np.tile(np.arange(9), 20)}
    )
    true = pairs.sample(60, random_state=seed).assign(relevance=rng.integers(0, 11, 60) / 2)
    pred = pairs.sample(110, random_state=seed + 1).assign(score=rng.normal(3, 1, 110))
    return true.reset_index(drop=True), pred.reset_index(drop=True)


RATING = ["rmse", "mae", "mse", "r2", "explained_variance"]
PROBABILITY = ["log_loss", "brier"]


def clicked(seed=0):
    """The same pairs with labels 0 and 1, and with probabilities, some of them 0 or 1."""
    true, pred = rated(seed)
    rng = np.random.default_rng(seed)
    probability = rng.integers(0, 9, len(pred)) / 8
    return true.assign(relevance=rng.integers(0, 2, len(true)) * 1.0), pred.assign(
        score=probability
    )


@pytest.mark.few(8)
@pytest.mark.parametrize(
    "name", [*RATING, *PROBABILITY, *(f"pooled_{one}" for one in (*RATING, *PROBABILITY, "auc"))]
)
def test_equals_the_oracle(name):
    true, pred = clicked() if name.endswith(("log_loss", "brier", "auc")) else rated()
    world = oracles.World(
        ratings={(r["user_id"], r["item_id"]): r["relevance"] for r in records(true)},
        scores={(r["user_id"], r["item_id"]): r["score"] for r in records(pred)},
    )
    lists = oracles.match_lists(
        records(true), records(pred), 3, order="score", relevance=True, world=world
    )
    result = rd.evaluate(true, pred, name, relevance_col="relevance")
    assert result.summary["k"].isna().all()
    expected = oracle_values(lists, name, {})
    if name.startswith("pooled"):
        assert_close(result.summary["value"], [expected])
    else:
        assert_close(result.per_user[[name]], expected)


@pytest.mark.long
def test_equals_sklearn():
    metrics = pytest.importorskip("sklearn.metrics")
    true, pred = rated(3)
    both = true.merge(pred, on=["user_id", "item_id"])
    given = {"relevance_col": "relevance"}
    mse, mae = (
        f(both["relevance"], both["score"])
        for f in (metrics.mean_squared_error, metrics.mean_absolute_error)
    )
    for ours, theirs in (
        (rd.pooled_r2, "r2_score"),
        (rd.pooled_explained_variance, "explained_variance_score"),
    ):
        expected = getattr(metrics, theirs)(both["relevance"], both["score"])
        assert ours(true, pred, **given) == pytest.approx(expected, rel=1e-12)
    assert rd.pooled_mse(true, pred, **given) == pytest.approx(mse, rel=1e-12)
    assert rd.pooled_rmse(true, pred, **given) == pytest.approx(math.sqrt(mse), rel=1e-12)
    assert rd.pooled_mae(true, pred, **given) == pytest.approx(mae, rel=1e-12)
    of_users = [
        metrics.mean_absolute_error(p["relevance"], p["score"]) for _, p in both.groupby("user_id")
    ]
    assert rd.mae(true, pred, **given) == pytest.approx(np.mean(of_users), rel=1e-12)


def test_the_threshold_of_relevance_does_not_change_ratings():
    true, pred = rated(4)
    plain = rd.pooled_mae(true, pred, relevance_col="relevance")
    assert rd.pooled_mae(true, pred, relevance_col="relevance", min_relevance=4) == plain


def test_integer_ratings_and_scores():
    true, pred = (
        {"u": {"a": 5, "b": 0}},
        pd.DataFrame({"user_id": "u", "item_id": ["a", "b"], "score": [3, 1]}),
    )
    assert rd.mae(true, pred) == 1.5
    assert rd.rmse(true, pred) == pytest.approx(math.sqrt(5 / 2))


def test_null_scores_are_no_prediction():
    true = {"u": {"a": 5, "b": 1}}
    pred = pd.DataFrame({"user_id": "u", "item_id": ["a", "b"], "score": [4.0, None]})
    assert rd.mae(true, pred, nan_score="last") == 1.0
    assert math.isnan(rd.mae({"u": {"b": 1}}, pred, nan_score="last"))


def test_what_it_needs_is_named():
    true, pred = rated()
    with pytest.raises(rd.OptionError, match=r"^rmse: needs relevance_col="):
        rd.rmse(true[["user_id", "item_id"]], pred)
    ranked = pred.rename(columns={"score": "rank"})
    with pytest.raises(rd.OptionError, match=r"^rmse: needs score_col="):
        rd.rmse(true, ranked, relevance_col="relevance")


def test_by_recommender():
    true, pred = rated(5)
    two = pd.concat([pred.assign(model="x"), pred.assign(model="y", score=pred["score"] + 1)])
    found = rd.evaluate(
        true, two, ["mae", "pooled_mae"], by="model", relevance_col="relevance"
    ).summary
    for model, part in two.groupby("model"):
        alone = [
            f(true, part.drop(columns="model"), relevance_col="relevance")
            for f in (rd.mae, rd.pooled_mae)
        ]
        assert found.loc[found["model"] == model, "value"].tolist() == pytest.approx(alone)


@pytest.mark.long
def test_probabilities_equal_sklearn():
    metrics = pytest.importorskip("sklearn.metrics")
    true, pred = clicked(6)
    both = true.merge(pred, on=["user_id", "item_id"])
    names = {
        rd.pooled_log_loss: "log_loss",
        rd.pooled_brier: "brier_score_loss",
        rd.pooled_auc: "roc_auc_score",
    }
    for ours, theirs in names.items():
        assert ours(true, pred) == pytest.approx(
            getattr(metrics, theirs)(both["relevance"], both["score"]), rel=1e-12
        )


def test_what_is_explained_by_hand():
    true = {"u": {"a": 5, "b": 1}, "v": {"a": 0.1, "b": 0.1, "c": 0.1}}
    pred = {"u": {"a": 4, "b": 0}, "v": {"a": 0.1, "b": 0.3, "c": 0.2}}
    found = rd.evaluate(
        true, pred, ["r2", "explained_variance", "pooled_r2", "pooled_explained_variance"]
    )
    # Of u: squared errors 1 + 1, squared distances 4 + 4; all errors are −1. All ratings of v are
    # equal.
    assert_close(found.per_user[["r2", "explained_variance"]], [[0.75, 1.0], [math.nan, math.nan]])
    ratings, errors = np.array([5, 1, 0.1, 0.1, 0.1]), np.array([-1, -1, 0, 0.2, 0.1])
    expected = [1 - (errors**2).mean() / ratings.var(), 1 - errors.var() / ratings.var()]
    assert_close(found.summary["value"].tail(2), expected)
    alone = rd.evaluate(
        {"v": true["v"]}, {"v": pred["v"]}, ["pooled_r2", "pooled_explained_variance"]
    )
    assert alone.summary["value"].isna().all()


def test_probabilities_by_hand():
    true, pred = {"u": {"a": 1, "b": 0, "c": 0.5}}, {"u": {"a": 1.0, "b": 1.0, "c": 0.5, "d": 0.3}}
    sure = -math.log(2**-52)
    assert rd.log_loss(true, pred) == pytest.approx((2**-52 + sure + math.log(2)) / 3)
    assert rd.brier(true, pred) == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", ["log_loss", "brier", "pooled_log_loss", "pooled_brier"])
def test_what_is_no_probability_is_refused(name):
    true, pred = clicked(7)
    with pytest.raises(
        rd.DataError, match=r"60 labels|labels \(the relevance in true\) are not: 5"
    ):
        rd.evaluate(true.assign(relevance=5.0), pred, name)
    with pytest.raises(rd.DataError, match=r"scores of pred are not: -"):
        rd.evaluate(true, pred.assign(score=-pred["score"]), name)


def test_pooled_auc_knows_one_class_and_the_threshold():
    true, pred = {"u": {"a": 4, "b": 3}}, {"u": {"a": 0.9, "b": 0.2}}
    assert math.isnan(rd.pooled_auc(true, pred))
    assert rd.pooled_auc(true, pred, min_relevance=4) == 1.0


@pytest.mark.long
def test_pooled_losses_add_up_over_files_and_the_curve_does_not(tmp_path):
    true, pred = clicked(8)
    true.to_parquet(tmp_path / "true.parquet")
    pred.to_parquet(tmp_path / "pred.parquet")
    names = [f"pooled_{one}" for one in (*RATING, *PROBABILITY)]
    found = rd.evaluate_parquet(
        tmp_path / "true.parquet", tmp_path / "pred.parquet", names, buckets=3
    )
    assert_close(found.summary["value"], rd.evaluate(true, pred, names).summary["value"])
    with pytest.raises(
        rd.OptionError, match="pooled_auc: reads 'lists', which does not add up over the parts"
    ):
        rd.evaluate_parquet(
            tmp_path / "true.parquet", tmp_path / "pred.parquet", "pooled_auc", buckets=3
        )
