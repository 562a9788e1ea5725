"""Metrics that can be one ratio of sums over all lists: equal to the oracle's sums, over parts and
files too."""

import numpy as np
import pandas as pd
import pytest
from cases import case
from close import close
from oracles.registry import POOLED
from registry.oracle_check import OPTION_SETS, evaluate_under, oracle_lists
from registry.seeded import (
    BUILT_IN,
    ITEMS,
    condensed,
    counts_candidates,
    distinct,
    quietly,
    text,
    variants,
)

import recdf as rd

METRICS = [metric for metric in BUILT_IN if "pooled" in metric.defaults]
every_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)


def pooled_variants(metric):
    return [{**params, "pooled": True} for params in variants(metric)]


def summed(metric, lists, params, weight=lambda user: 1.0):
    """What the oracle sums over the lists, above over below."""
    params = {name: value for name, value in params.items() if name != "pooled"}
    parts = [(weight(user), *POOLED[metric.name](one, **params)) for user, one in lists.items()]
    below = sum(w * b for w, _, b in parts)
    return sum(w * a for w, a, _ in parts) / below if below else np.nan


def test_every_pooled_metric_has_an_oracle():
    assert POOLED.keys() == {metric.name for metric in METRICS}


@pytest.mark.few(1)
@every_metric
def test_equals_the_sums_of_the_oracle(metric):
    for number, options in enumerate(OPTION_SETS):
        tried = pooled_variants(metric)
        if options["duplicates"] == "keep":
            tried = [params for params in tried if not counts_candidates(metric, params)]
        if not tried:
            continue
        result = evaluate_under(number, [text(metric, params) for params in tried], k=3)
        assert list(result.per_user.columns) == ["user_id", "n_true", "n_pred"]
        for params, found in zip(tried, result.summary["value"], strict=True):
            with case(text(metric, params), options):
                lists = oracle_lists(number, 3)
                if options["judged_only"] and counts_candidates(metric, params):
                    lists = {user: condensed(one) for user, one in lists.items()}
                expected = summed(metric, lists, params)
                if np.isnan(expected) and options["undefined"] == "zero":
                    expected = 0.0
                assert found == close(expected)


@pytest.mark.long
@every_metric
def test_a_call_and_weights(metric):
    true, pred = distinct(3)
    true, pred = (
        true.assign(weight=true["user_id"] % 5 + 1),
        pred[pred["model"] == "a"].drop(columns="model"),
    )
    sides = {"items": ITEMS} if "candidates" in metric.needs else {}
    for weight_col in (None, "weight"):
        for params in pooled_variants(metric)[:4]:
            parts = [
                quietly(
                    metric, true[true["user_id"] == user], pred, **params, **sides, users=[user]
                )
                for user in true["user_id"].unique()
            ]
            plain = metric.per_user(true, pred, **{**params, "pooled": False}, **sides).iloc[:, -1]
            found = metric(true, pred, **params, **sides, weight_col=weight_col)
            # A pool of one list is that list, but for a list that has 0 by a rule of its own.
            assert [one if np.isfinite(one) else 0.0 for one in parts] == close(
                np.nan_to_num(plain).tolist()
            )
            assert isinstance(found, float)
            if weight_col:
                # A list of weight 3 counts as three lists.
                copies = range(5)
                many = [
                    true[true["weight"] > i].assign(user_id=true["user_id"] + 1000 * i)
                    for i in copies
                ]
                lists = [pred.assign(user_id=pred["user_id"] + 1000 * i) for i in copies]
                assert metric(pd.concat(many), pd.concat(lists), **params, **sides) == close(found)


def test_by_hand():
    true, pred = {"u": ["a", "b", "c"], "v": ["a"]}, {"u": ["a", "x", "b"], "v": ["x", "y"]}
    assert rd.precision(true, pred, k=3, pooled=True) == close(2 / 6)
    assert rd.precision(true, pred, k=3, divisor="shown", pooled=True) == close(2 / 5)
    assert rd.precision(true, pred, k=3, divisor="achievable", pooled=True) == close(2 / 4)
    assert rd.precision(true, pred, k=3, divisor="achievable") == close((2 / 3 + 0) / 2)
    # u: a before x, and b after x; v has no pair.
    assert rd.pair_accuracy(true, pred, k=3, pooled=True) == close(1 / 2)
    # u: ranks 1 and 3 of 5 items, c in the middle of places 2 to 5; v: the middle of places 1 to 5.
    places = [0, 2 / 5, (2 / 5 + 1) / 2, (1 / 5 + 1) / 2]
    assert rd.percentile_rank(true, pred, items=list("abcxy"), pooled=True) == close(
        sum(places) / 4
    )


@pytest.mark.few(1)
@every_metric
def test_files_in_parts_and_by_values(metric, tmp_path):
    true, pred = distinct(5)
    true.to_parquet(tmp_path / "true.parquet")
    pred.to_parquet(tmp_path / "pred.parquet")
    metrics = [text(metric, params) for params in pooled_variants(metric)[:4]]
    options = {"by": "model", "relevance_col": "relevance", "items": ITEMS, "k": [1, 5]}
    whole = rd.evaluate(true, pred, metrics, **options).summary
    files = rd.evaluate_parquet(
        tmp_path / "true.parquet", tmp_path / "pred.parquet", metrics, buckets=3, **options
    )
    pd.testing.assert_frame_equal(files.summary, whole, rtol=1e-12)
    for model, own in pred.groupby("model"):
        alone = rd.evaluate(
            true, own.drop(columns="model"), metrics, **{**options, "by": None}
        ).summary
        assert whole.loc[whole["model"] == model, "value"].tolist() == close(
            alone["value"].tolist()
        )


@every_metric
def test_there_is_no_value_per_user(metric):
    sides = {"items": ITEMS} if "candidates" in metric.needs else {}
    with pytest.raises(
        rd.OptionError, match="is one number for all lists, and no list has a value of it"
    ):
        metric.per_user(*distinct(3), **sides, pooled=True)
    with pytest.raises(rd.OptionError, match="is one number; with by= use evaluate"):
        metric(*distinct(3), **sides, pooled=True, by="model")
    with pytest.raises(rd.OptionError, match="is pooled; expected one number about the ranks"):
        rd.chance_level({"u": ["a"]}, text(metric, {"pooled": True}), items=ITEMS)


def test_propensities_have_no_pooled_form():
    true = pd.DataFrame({"user_id": ["u"], "item_id": ["a"], "propensity": [0.5]})
    with pytest.raises(rd.OptionError, match="pooled=True has no form with propensity_col="):
        rd.precision(true, {"u": ["a"]}, pooled=True, propensity_col="propensity")


def test_a_metric_of_ones_own_can_be_pooled(register):
    def click_share(lists, *, pooled=False):
        """Hits per shown item; larger is better, in [0, 1]."""
        return (lists.n_hits, lists.n_shown) if pooled else lists.n_hits / lists.n_shown

    made = register(click_share, "precision")
    true, pred = {"u": ["a"], "v": ["b"]}, {"u": ["a", "x", "y"], "v": ["b"]}
    assert made(true, pred, k=3) == close((1 / 3 + 1) / 2)
    assert made(true, pred, k=3, pooled=True) == close(2 / 4)
