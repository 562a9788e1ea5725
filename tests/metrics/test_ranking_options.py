"""Metrics of ranking, their options and those of intents by hand; what excludes what; directions
and bounds."""

import math

import numpy as np
import pandas as pd
import pytest
from close import close

import recdf as rd
from recdf.evaluation.spec import definitions
from recdf.metrics.strings import direction_of

TRUE = {"u": {"a": 3, "b": 1, "c": 1, "z": 0}}
PRED = {"u": ["b", "x", "a", "y"]}
# b and x share the best score, a and y the second one.
TIED = {"u": {"b": 2.0, "x": 2.0, "a": 1.0, "y": 1.0, "v": 0.0}}


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("precision(divisor=achievable_shown)@10", 2 / 3),
        ("precision(divisor=achievable_shown)@1", 1),
        ("f1(divisor=shown)@10", 2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3)),
        ("f1(divisor=shown,combine=product)@10", (2 / 4) * (2 / 3)),
        ("f1(combine=product)@10", (2 / 10) * (2 / 3)),
        ("rprecision", 2 / 3),
        ("rprecision(multiple=0.4)", 1 / 2),  # ⌊1.2 + 0.9⌋ = 2 ranks
        ("rprecision(multiple=2)", 2 / 6),
        ("rprecision(at_most=2)", 1 / 3),
        ("mapr(transform=log_odds)@10", math.log((1 + 5 / 3) / (1 + 3 - 5 / 3))),
        ("arhr(normalizer=achievable)@10", (1 + 1 / 3) / (1 + 1 / 2 + 1 / 3)),
        ("arhr(normalizer=achievable)@2", 1 / (1 + 1 / 2)),
        ("relevant_rank(of=last)@10", 3),
        ("relevant_rank(of=mean)@10", (1 * 1 + 3 * 3) / 4),
        ("dcg(of=ideal)@2", 3 + 1 / math.log2(3)),
        # At b: 1 of 3; at a: 2.5 of the whole ideal; c is missing and counts as the end of the
        # list.
        (
            "ndcg(average=hits)@1",
            (1 / 3 + 2 * 2.5 / (3 + 1 / math.log2(3) + 1 / 2)) / 3,
        ),
        # The ideal gain falls after rank 1 and ends at 3; the list is not longer than n + 1.
        ("ndcg(average=levels)@1", (1 / 3 + 2.5 / (3 + 1 / math.log2(3) + 1 / 2)) / 2),
        # b: log2(2 + 3 − 1); a: log2(2 + 3 + 1 + 1 − 4).
        ("normalized_gain", (1 / 2 + 3 / math.log2(3)) / 5),
        ("normalized_gain(gain=binary)", (1 / 1 + 1 / math.log2(3)) / 3),
        # Pairs by gain: a above b (wrong), a above x (wrong), a above y, b above x and y.
        ("pair_accuracy@4", 3 / 5),
        ("pair_accuracy(gain=binary)@4", 3 / 4),
        # Of a, b, c, z: a before b is wrong, a before c and z, b and c before z; c is not shown.
        ("pair_accuracy(within=judged)@4", 3 / 5),
        ("pap(insufficient=exclude)@3", math.nan),  # two misses, and c is missing
        ("pauc(insufficient=exclude)@2", ((2 - 0) + (2 - 1)) / (2 * 3)),
    ],
)
def test_by_hand(metric, expected):
    found = rd.evaluate(TRUE, PRED, metric).per_user.iloc[0, -1]
    assert found == close(expected)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # The worst ranks of b and a are 2 and 4.
        ("mapr(tied=worst)@5", (1 / 2 + 2 / 4) / 3),
        ("mapr(tied=worst)@3", (1 / 2) / 3),
        ("mrr(tied=worst)@5", 1 / 2),
        ("mrr(tied=worst,of=all)@5", (1 / 2 + 1 / 4) / 3),
        ("relevant_rank(of=last,tied=worst)@5", 4),
        ("relevant_rank(tied=worst)@1", math.nan),
        # Hits b, a; misses x, y, v: b before y and v, a before v; b and x, a and y are equal.
        ("auc@5", (3 + 2 / 2) / 6),
        ("auc(tied=wrong)@5", 3 / 6),
        ("auc(tied=worst)@5", 3 / 6),
        # Up to one of three misses, the curve rises from 0 to 1/2 with the tied pair.
        ("auc(max_fpr=0.25)@5", (1 + (0.25 * (0.75 / 2) / 2 - 1 / 32) / (1 / 4 - 1 / 32)) / 2),
        ("auc(max_fpr=1)@5", 4 / 6),
        ("pair_accuracy(tied=wrong)@5", 3 / 7),
        ("pair_accuracy(tied=right)@5", 5 / 7),
    ],
)
def test_equal_scores_by_hand(metric, expected):
    found = rd.evaluate(TRUE, TIED, metric).per_user.iloc[0, -1]
    assert found == close(expected)


def test_lists_without_recommendations_or_without_relevant_items():
    true = pd.DataFrame({"user_id": ["u", "v"], "item_id": ["a", "a"], "relevance": [1, 0]})
    pred = pd.DataFrame({"user_id": ["v"], "item_id": ["a"]})
    metrics = [
        "precision(divisor=achievable_shown)",
        "f1(divisor=shown)",
        "f1(divisor=shown,combine=product)",
        "f1(divisor=shown,beta=0)",
        "arhr(normalizer=achievable_shown)",
        "arhr(normalizer=achievable)",
        "ndcg(average=hits)",
        "ndcg(average=levels)",
        "normalized_gain",
        "pair_accuracy(within=judged)",
    ]
    table = rd.evaluate(true, pred, metrics).per_user.set_index("user_id").iloc[:, 2:]
    assert table.loc["u"].drop("pair_accuracy(within=judged)@10").eq(0).all()
    assert table.loc["v"].isna().all()


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("f1(combine=product,beta=2)", "weighs a harmonic mean"),
        ("mapr(transform=log_odds,normalizer=k)", "has no form with normalizer='k'"),
        ("ndcg(average=hits,ideal=k)", 'takes only ideal="relevant"'),
        ("ndcg(average=levels,tied=averaged)", 'tied="ranked"'),
        ("dcg(of=ideal,tied=averaged)", "whose order no score gives"),
        ("pair_accuracy(within=judged,tied=wrong)", "goes by ranks"),
        ("rprecision(multiple=0)", "multiple=0"),
        ("rprecision(at_most=0)", "at_most=0"),
        ("auc(max_fpr=0)", "max_fpr=0"),
        ("percentile_rank", "needs items="),
    ],
)
def test_parameters_that_exclude_each_other(metric, words):
    with pytest.raises(rd.OptionError, match=words):
        rd.evaluate(TRUE, PRED, metric)


@pytest.mark.parametrize(
    "metric",
    ["mapr(tied=worst)", "mapr(transform=log_odds)", "mrr(tied=worst)", "ndcg(average=hits)"],
)
def test_what_has_no_form_with_propensities(metric):
    true = pd.DataFrame({"user_id": ["u"], "item_id": ["a"], "propensity": [0.5]})
    with pytest.raises(rd.OptionError, match="has no form with propensity_col="):
        rd.evaluate(true, PRED, metric, propensity_col="propensity")


def test_insufficient_lists_can_be_refused():
    with pytest.raises(rd.DataError, match="1 of 1 lists have fewer than 3 misses"):
        rd.pauc(TRUE, PRED, k=3, insufficient="raise")
    assert rd.pauc(TRUE, PRED, k=2, insufficient="raise") == rd.pauc(TRUE, PRED, k=2)


def test_the_tied_metrics_of_scores_without_ties_are_those_of_ranks():
    scores = {"u": {item: -float(rank) for rank, item in enumerate(PRED["u"])}}
    for name in ("mapr", "mrr", "relevant_rank"):
        assert rd.evaluate(TRUE, scores, f"{name}(tied=worst)@4").summary["value"].item() == close(
            getattr(rd, name)(TRUE, PRED, k=4)
        )


# ------------------------------------------------------------------------------------------------
# by parameters


def test_direction_and_bounds_follow_the_parameters():
    assert direction_of("mapr@10").bounds == (0.0, 1.0)
    assert direction_of("mapr(transform=log_odds)@10").bounds == (None, None)
    assert direction_of("arhr(normalizer=achievable)@10").bounds == (0.0, 1.0)
    assert direction_of("intent_aware@10").better == "larger"
    assert direction_of("intent_aware(metric=first_rank)@10")[:2] == ("smaller", (1.0, None))
    assert direction_of("intent_aware(metric=no_such_metric)@10").better == "larger"
    result = rd.evaluate(
        {"u": ["a"], "v": ["b"]},
        {"u": ["a"], "v": ["x", "b"]},
        "intent_aware(metric=first_rank)@2",
        aspects={"u": [["a"]], "v": [["b"]]},
    )
    assert definitions(result.spec)["better"].tolist() == ["smaller"]


def test_log_odds_may_be_below_0_and_undefined_lists_count_0():
    true = pd.DataFrame(
        {"user_id": ["u", "u", "v"], "item_id": ["a", "b", "a"], "relevance": [1, 1, 0]}
    )
    pred = pd.DataFrame({"user_id": ["u"], "item_id": ["x"]})
    with pytest.warns(rd.NoOverlapWarning):
        found = rd.mapr.per_user(true, pred, transform="log_odds", undefined="zero")
    assert found.iloc[:, -1].tolist() == close([math.log(1 / 3), 0.0])


# --------------------------------------------------------------------------------------------------
# intents

WANTED = {"u": ["a", "b", "c"], "v": ["a"], "w": ["d"]}
SHOWN = {"u": ["c", "x", "a"], "v": ["x", "a"], "w": ["d"]}
NEEDS = pd.DataFrame(
    {"aspect": ["news", "news", "sport", "sport"], "item_id": ["a", "b", "b", "c"]}
)


def test_intents_by_hand():
    # u: news {a, b} has recall 1/2 and sport {b, c} 1/2; v: only news; w has no aspect.
    table = rd.evaluate(
        WANTED,
        SHOWN,
        ["intent_aware(metric=recall)@3", "intent_aware(metric=mrr)@3"],
        aspects=NEEDS,
    )
    found = table.per_user.set_index("user_id").iloc[:, 2:]
    assert found.loc["u"].tolist() == close([1 / 2, (1 / 3 + 1) / 2])
    assert found.loc["v"].tolist() == close([1, 1 / 2])
    assert found.loc["w"].isna().all()
    assert rd.intent_aware(WANTED, SHOWN, NEEDS, k=3, metric=rd.recall) == close((1 / 2 + 1) / 2)


def test_weights_of_intents():
    weights = pd.DataFrame({"aspect": ["news", "sport"], "weight": [3, 1]})
    found = rd.intent_aware.per_user(WANTED, SHOWN, NEEDS, k=3, metric="mrr", weights=weights)
    assert found.columns[-1] == "intent_aware(metric=mrr,weights=given)@3"
    assert found.iloc[:, -1].tolist() == close([0.75 / 3 + 0.25, 1 / 2, math.nan])
    of_users = pd.DataFrame({"user_id": ["u", "v"], "aspect": ["sport", "sport"], "weight": [2, 5]})
    found = rd.intent_aware.per_user(WANTED, SHOWN, NEEDS, k=3, metric="mrr", weights=of_users)
    assert found.iloc[:, -1].tolist() == close([1, math.nan, math.nan])  # v has no weight for news


def test_weights_follow_the_aspect_column_and_its_name():
    needs = NEEDS.rename(columns={"aspect": "need"})
    weights = pd.DataFrame({"need": ["news", "sport"], "weight": [1.0, 0.0]})
    assert rd.intent_aware(WANTED, SHOWN, needs, k=3, metric="mrr", weights=weights) == close(
        (1 / 3 + 1 / 2) / 2
    )


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        (
            {"aspect": ["news", "news"], "weight": [1, 2]},
            rd.DataError,
            "one row per list and aspect",
        ),
        ({"aspect": ["news", "sport"], "weight": [1, -2]}, rd.DataError, "at least 0"),
        ({"aspect": ["news", "sport"], "weight": [1, math.nan]}, rd.DataError, "at least 0"),
        ({"aspect": ["news"]}, rd.ColumnError, "weight"),
        ({"weight": [1]}, rd.ColumnError, "aspect"),
    ],
)
def test_weights_that_say_nothing(rows, error, words):
    with pytest.raises(error, match=words):
        rd.intent_aware(WANTED, SHOWN, NEEDS, metric="mrr", weights=pd.DataFrame(rows))


def test_a_flag_of_numpy_pools_as_one_of_python():
    true, pred = {"u": ["a", "b"], "v": ["c"]}, {"u": ["a", "x"], "v": ["y"]}
    found = [rd.precision(true, pred, 2, pooled=one) for one in (True, np.True_)]
    assert found == [0.25, 0.25]  # one hit of 2 · 2 places


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("ild", "takes a metric of true and pred"),
        ("confusion", "takes a metric of true and pred"),
        ("gini", "takes a metric of true and pred"),
        ("a_ndcg", "takes a metric of true and pred"),
        ("mapr@5", "without a cut-off"),
        ("precision(pooled=True)", "one value per list"),
        ("no_such_metric", "unknown metric"),
        ("precision(divisor=x)", "divisor='x'"),
    ],
)
def test_metrics_that_have_no_value_per_intent(metric, words):
    with pytest.raises(rd.OptionError, match=words):
        rd.intent_aware(WANTED, SHOWN, NEEDS, metric=metric)


def test_the_largest_gain_is_that_of_true():
    true = {"u": {"a": 1, "b": 2}}
    needs = {"u": [["a"]]}  # no aspect has the item of gain 2
    assert rd.intent_aware(true, {"u": ["a"]}, needs, metric="err") == close(1 / 4)
    assert rd.intent_aware(true, {"u": ["a"]}, needs, metric="err", max_gain=3) == close(1 / 8)


@pytest.mark.long
def test_intents_of_several_recommenders_in_files(tmp_path):
    rng = np.random.default_rng(5)
    true = pd.DataFrame(
        {"user_id": rng.integers(0, 40, 300), "item_id": rng.integers(0, 30, 300)}
    ).drop_duplicates()
    true["relevance"] = rng.integers(0, 4, len(true))
    pred = pd.DataFrame(
        {"user_id": rng.integers(0, 45, 600), "item_id": rng.integers(0, 30, 600)}
    ).drop_duplicates()
    pred["model"], pred["score"] = rng.choice(["a", "b"], len(pred)), rng.integers(0, 6, len(pred))
    aspects = pd.DataFrame({"aspect": rng.integers(0, 5, 60), "item_id": rng.integers(0, 30, 60)})
    true.to_parquet(tmp_path / "true.parquet")
    pred.to_parquet(tmp_path / "pred.parquet")
    metrics = [
        f"intent_aware(metric={one})"
        for one in ("mapr(tied=worst)", "err", "bpref", "auc", "ndcg", "pauc")
    ]
    options = {"k": [2, 9], "by": "model", "aspects": aspects}
    whole = rd.evaluate(true, pred, metrics, **options)
    files = rd.evaluate_parquet(
        tmp_path / "true.parquet", tmp_path / "pred.parquet", metrics, buckets=4, **options
    )
    pd.testing.assert_frame_equal(files.summary, whole.summary, rtol=1e-12)
    both = [
        one.per_user.sort_values(["model", "user_id"], ignore_index=True) for one in (files, whole)
    ]
    pd.testing.assert_frame_equal(*both, rtol=1e-12)


def test_the_greedy_ideal_takes_the_largest_id_of_equal_ones():
    """ndeval does so too: z comes first, after which each other item adds 1.5, although a and m
    would add 2 each."""
    aspects = {"u": [["a"], ["a", "z"], ["z", "m"], ["m"]]}
    best = 2 + 1.5 / math.log2(3)
    assert rd.a_ndcg({"u": ["a", "m", "z"]}, {"u": ["a", "m"]}, aspects, k=2) == close(
        (2 + 2 / math.log2(3)) / best
    )
    assert rd.a_ndcg(
        {"u": ["a", "m", "z"]}, {"u": ["z", "a"]}, aspects, k=2, discount="reciprocal"
    ) == close(1)


def test_lists_without_a_relevant_item_are_undefined_alike_in_evidently():
    """User b was shown z, which did not please: evidently has no such user in any of these."""
    true = pd.DataFrame({"user_id": ["a", "b"], "item_id": ["x", "z"], "relevance": [1, 0]})
    found = rd.evaluate(
        true, {"a": ["x"], "b": ["z"]}, ["recall", "mapr", "mar", "arhr"], k=5, like="evidently"
    )
    assert found.summary["value"].tolist() == [1.0, 1.0, 1.0, 1.0]
    assert rd.mar.per_user(true, {"a": ["x"], "b": ["z"]}, 5)["mar@5"].isna().tolist() == [
        False,
        True,
    ]


def test_a_convention_reaches_the_metric_inside_intent_aware():
    """One hit among two shown items, for one of two aspects: 1/2 · 1/2, and 1/2 · 1/3 where
    precision divides by k."""
    data = {"u": ["a", "b"]}, {"u": ["a", "x"]}
    aspects = {"u": [["a"], ["b"]]}
    for metric in ("precision", rd.precision):
        assert rd.intent_aware(*data, aspects, k=3, metric=metric) == close(1 / 6)
        found = rd.intent_aware(*data, aspects, k=3, metric=metric, like="tf_ranking")
        assert found == close(1 / 4)
    stated = rd.intent_aware(
        *data, aspects, k=3, metric="precision( divisor = k )", like="tf_ranking"
    )
    assert stated == close(1 / 6)
    result = rd.evaluate(*data, "intent_aware@3", aspects=aspects, like="tf_ranking")
    assert result.per_user["intent_aware@3"].tolist() == close([1 / 4])
    definition = result.spec["metrics"]["intent_aware@3"]["definition"]
    assert definition.startswith("intent_aware(metric=precision(divisor=shown),")


def test_the_even_ideal_takes_all_aspects_of_the_user():
    """Four aspects, of which no list of three repeats one; with two the third rank counts half."""
    data, disc = ({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}), [1, 1 / math.log2(3), 1 / 2]
    found = rd.a_ndcg(*data, {"u": [["a"], ["z"], ["q"], ["r"]]}, k=3, ideal="even")
    assert found == close(1 / sum(disc))
    found = rd.a_ndcg(*data, {"u": [["a"], ["b"]]}, k=3, ideal="even")
    assert found == close(1.5 / (disc[0] + disc[1] + disc[2] / 2))
