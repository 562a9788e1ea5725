"""Rows of `true` with a null or negative relevance: items of the pool that nobody judged."""

import functools
import math

import numpy as np
import oracles
import pandas as pd
import pytest
from cases import case
from quick import few
from registry.oracle_check import OPTION_SETS
from registry.seeded import (
    BUILT_IN,
    ITEMS,
    assert_close,
    column_options,
    frames,
    quietly,
    records,
    text,
    variants,
)

import recdf as rd
from recdf.evaluation.spec import definitions
from recdf.metrics.strings import direction_of

# `intent_aware` asks what its inner metric asks, and needs aspects.
ASKING = [metric for metric in BUILT_IN if "not_judged" in metric.optional]
OTHERS = [
    "ndcg",
    "mapr",
    "recall",
    "precision",
    "mrr",
    "hitrate",
    "err",
    "auc",
    "f1",
    "dcg",
    "rprecision",
    "arhr",
]


GRADED = [number for number, one in enumerate(OPTION_SETS) if one["relevance"]]


@functools.cache
def with_pool(seed):
    """The seeded frames; a third of the judgements are taken back, as null or −1."""
    true, pred = frames(seed)
    rng = np.random.default_rng(seed)
    gone = rng.random(len(true)) < 0.33
    relevance = np.where(gone, rng.choice([math.nan, -1.0, -0.5], len(true)), true["relevance"])
    return true.assign(relevance=relevance), pred[pred["model"] == "a"]


@functools.cache
def of_oracle(number):
    """The options of a set, and the lists that the oracle matches under them."""
    true, pred = with_pool(number)
    options = {name: value for name, value in OPTION_SETS[number].items() if name != "undefined"}
    if options["nan_score"] == "drop" and options["order"] == "score":
        pred = pred[pred["score"].notna()]
    lists = oracles.match_lists(records(true), records(pred), 4, items=ITEMS, **options)
    return options, lists


def test_some_metrics_ask():
    assert {"bpref", "infap", "judged"} <= {metric.name for metric in ASKING}


@pytest.mark.few(6)
@pytest.mark.parametrize("metric", ASKING, ids=lambda metric: metric.name)
@pytest.mark.parametrize("number", few(GRADED, GRADED[::2]))
def test_equals_the_oracle(metric, number):
    true, pred = with_pool(number)
    options, lists = of_oracle(number)
    own, shown = column_options(options, pred)
    tried = [{}, *(params for params in variants(metric)[number % 3 :: 3] if params)]
    result = quietly(
        rd.evaluate, true, shown, [text(metric, params) for params in tried], 4, **own, items=ITEMS
    )
    expected = [
        [oracles.ORACLES[metric.name](one, **params) for params in tried] for one in lists.values()
    ]
    found = result.per_user.iloc[:, result.per_user.columns.get_loc("n_pred") + 1 :]
    assert_close(found, expected, options)


@pytest.mark.parametrize(
    "options", [{}, {"judged_only": True}, {"min_relevance": 0.5}, {"ties": "worst"}], ids=str
)
def test_other_metrics_do_not_see_them(options):
    true, pred = with_pool(3)
    options = {
        "score_col": "score",
        "nan_score": "last",
        "users": sorted(set(true["user_id"])),
        "duplicates": "drop",
        **options,
    }
    beside = quietly(rd.evaluate, true, pred, [*OTHERS, "judged"], [2, 5], **options).per_user
    without = quietly(
        rd.evaluate, true[true["relevance"] >= 0], pred, OTHERS, [2, 5], **options
    ).per_user
    assert_close(beside[without.columns], without)


def test_metrics_that_do_not_ask_refuse_them():
    for value, word in ((-1, "1 negative relevances"), (math.nan, "1 null relevances")):
        true = pd.DataFrame({"user_id": 1, "item_id": ["a", "b"], "relevance": [1.0, value]})
        with case(word), pytest.raises(rd.DataError, match=word):
            rd.ndcg(true, {1: ["a"]})
        with pytest.raises(
            rd.DataError, match="drop rows that nobody judged, or ask for judged@k too"
        ):
            rd.evaluate(true, {1: ["a"]}, ["ndcg", "recall"])
        assert rd.evaluate(true, {1: ["a", "b"]}, ["ndcg", "judged"], 2).summary[
            "value"
        ].tolist() == [1.0, 0.5]


def test_an_infinite_relevance_is_no_missing_judgement():
    true = pd.DataFrame({"user_id": 1, "item_id": ["a", "b"], "relevance": [1.0, -math.inf]})
    with pytest.raises(rd.DataError, match="1 infinite relevances"):
        rd.judged(true, {1: ["a"]})


def test_a_judgement_beats_a_missing_one():
    """The same item twice: the row with the larger gain stays, as among judged rows."""
    true = pd.DataFrame({"user_id": 1, "item_id": ["a", "a", "b"], "relevance": [-1, 0, 2]})
    with pytest.warns(rd.DuplicateWarning):
        assert rd.judged(true, {1: ["a", "b"]}, of="nonrelevant", divisor="none") == 1.0


def test_groups_of_items():
    """Each group keeps its rows of the pool."""
    true, pred = with_pool(5)
    pred = pred.assign(score=np.arange(len(pred)))
    items = pd.DataFrame({"item_id": ITEMS, "kind": ["x", "y"] * (len(ITEMS) // 2)})
    users = sorted(set(true["user_id"]))
    result = quietly(
        rd.evaluate,
        true,
        pred,
        ["infap", "bpref", "judged"],
        5,
        items=items,
        item_by="kind",
        users=users,
    )
    for kind, own in items.groupby("kind"):
        part = true[true["item_id"].isin(own["item_id"])]
        alone = quietly(
            rd.evaluate, part, pred, ["infap", "bpref", "judged"], 5, users=users
        ).summary["value"]
        found = result.summary.loc[result.summary["kind"] == kind, "value"]
        assert found.tolist() == pytest.approx(alone.tolist(), rel=1e-12)


def test_files_in_parts(tmp_path):
    """Null and negative relevances pass through files and buckets of lists, as through memory."""
    true, pred = with_pool(6)
    pred = pred.assign(score=np.arange(len(pred)))
    true.to_parquet(tmp_path / "true.parquet"), pred.to_parquet(tmp_path / "pred.parquet")
    metrics = [
        "infap",
        "judged",
        "ndcg",
        "err",
        "unrepeated",
        "user_model(model=inst)",
        "user_model(measure=residual)",
    ]
    options = {"score_col": "score", "duplicates": "drop"}
    whole = quietly(rd.evaluate, true, pred, metrics, 5, **options)
    assert whole.spec["counts"]["true_not_judged"] == int((~(true["relevance"] >= 0)).sum())
    places = [str(tmp_path / f"{name}.parquet") for name in ("true", "pred")]
    parts = quietly(rd.evaluate_parquet, *places, metrics, 5, **options, buckets=3)
    pd.testing.assert_frame_equal(parts.summary, whole.summary)
    assert parts.spec["counts"] == whole.spec["counts"]


def test_directions_and_bounds_follow_the_parameters():
    assert direction_of("judged@10").better == "larger"
    assert direction_of("judged(of=unjudged)@10").better == "smaller"
    assert direction_of("judged(of=shown,divisor=none)@10") == (None, (0.0, None), False)
    spec = rd.evaluate({1: ["a"]}, {1: ["a"]}, ["judged", "judged(of=unjudged)"]).spec
    table = definitions(spec)
    assert table["better"].tolist() == ["larger", "smaller"]
