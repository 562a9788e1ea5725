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
    pairs = pd.DataFrame({"user_id": np.repeat(np.arange(20), 9), "item_id": np.tile(np.arange(9), 20)})
    true = pairs.sample(60, random_state=seed).assign(relevance=rng.integers(0, 11, 60) / 2)
    pred = pairs.sample(110, random_state=seed + 1).assign(score=rng.normal(3, 1, 110))
    return true.reset_index(drop=True), pred.reset_index(drop=True)


@pytest.mark.parametrize("name", ["rmse", "mae", "pooled_rmse", "pooled_mae"])
def test_equals_the_oracle(name):
    true, pred = rated()
    world = oracles.World(
        ratings={(r["user_id"], r["item_id"]): r["relevance"] for r in records(true)},
        scores={(r["user_id"], r["item_id"]): r["score"] for r in records(pred)},
    )
    lists = oracles.match_lists(records(true), records(pred), 3, order="score", relevance=True, world=world)
    result = rd.evaluate(true, pred, name, relevance_col="relevance")
    assert result.summary["k"].isna().all()
    expected = oracle_values(lists, name, {})
    if name.startswith("pooled"):
        assert_close(result.summary["value"], [expected])
    else:
        assert_close(result.per_user[[name]], expected)


def test_equals_sklearn():
    metrics = pytest.importorskip("sklearn.metrics")
    true, pred = rated(3)
    both = true.merge(pred, on=["user_id", "item_id"])
    given = {"relevance_col": "relevance"}
    mse, mae = (f(both["relevance"], both["score"]) for f in (metrics.mean_squared_error, metrics.mean_absolute_error))
    assert rd.pooled_rmse(true, pred, **given) == pytest.approx(math.sqrt(mse), rel=1e-12)
    assert rd.pooled_mae(true, pred, **given) == pytest.approx(mae, rel=1e-12)
    of_users = [metrics.mean_absolute_error(p["relevance"], p["score"]) for _, p in both.groupby("user_id")]
    assert rd.mae(true, pred, **given) == pytest.approx(np.mean(of_users), rel=1e-12)


def test_the_threshold_of_relevance_does_not_change_ratings():
    true, pred = rated(4)
    plain = rd.pooled_mae(true, pred, relevance_col="relevance")
    assert rd.pooled_mae(true, pred, relevance_col="relevance", min_relevance=4) == plain


def test_integer_ratings_and_scores():
    true, pred = {"u": {"a": 5, "b": 0}}, pd.DataFrame({"user_id": "u", "item_id": ["a", "b"], "score": [3, 1]})
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
    found = rd.evaluate(true, two, ["mae", "pooled_mae"], by="model", relevance_col="relevance").summary
    for model, part in two.groupby("model"):
        alone = [f(true, part.drop(columns="model"), relevance_col="relevance") for f in (rd.mae, rd.pooled_mae)]
        assert found.loc[found["model"] == model, "value"].tolist() == pytest.approx(alone)
