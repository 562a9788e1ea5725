"""The oracle against numbers worked by hand."""

import math

import oracles
import pytest
from close import close
from registry.by_hand import measure, one, pred_rows, true_rows


def family(name):
    """Names of the metrics whose oracles stand in one module."""
    return [
        metric
        for metric, function in oracles.ORACLES.items()
        if function.__module__ == f"oracles.{name}"
    ]


# --------------------------------------------------------------------------------------------------
# Matching


def order_of(shown, true=(), **options):
    """Items of one list after ranking; shown as (item, score) rows."""
    rows = [{"user_id": 1, "item_id": item, "score": score} for item, score in shown]
    options = {"order": "score", "users": [1], "relevance": isinstance(true, dict), **options}
    return [
        s.item for s in oracles.match_lists(true_rows({1: true}), rows, 10, **options)[1].ranked
    ]


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        ("item_desc", [5, 10, 9, 2, 1]),
        ("item_asc", [5, 2, 9, 10, 1]),
        ("row", [5, 9, 2, 10, 1]),
        ("worst", [5, 9, 2, 10, 1]),
    ],
)
def test_ties(ties, expected):
    # 10 is the most relevant of the three tied, 2 the second, 9 is not relevant.
    rows = [(9, 0.5), (2, 0.5), (5, 0.9), (10, 0.5), (1, 0.1)]
    assert order_of(rows, {10: 3, 2: 1, 9: 0}, ties=ties) == expected


def test_worst_ties_of_equal_gain_go_by_larger_item():
    assert order_of([(1, 0.5), (3, 0.5), (2, 0.5)], [2], ties="worst") == [3, 1, 2]


def test_ties_compare_strings_by_code_point():
    assert order_of([("b", 1), ("10", 1), ("9", 1), ("B", 1)]) == ["b", "B", "9", "10"]


def test_ranks_ascend_and_tie_like_scores():
    rows = [
        {"user_id": 1, "item_id": item, "rank": rank} for item, rank in [(1, 3), (2, 1), (3, 1)]
    ]
    assert [
        s.item for s in oracles.match_lists([], rows, 10, order="rank", users="pred")[1].ranked
    ] == [3, 2, 1]


@pytest.mark.parametrize("null", [None, math.nan])
@pytest.mark.parametrize(("nan_score", "expected"), [("last", [2, 1, 4, 3]), ("drop", [2, 1])])
def test_null_scores(null, nan_score, expected):
    assert order_of([(3, null), (1, -1e9), (4, null), (2, 7)], nan_score=nan_score) == expected


def test_a_dropped_null_score_does_not_hide_the_scored_duplicate():
    assert order_of([(3, None), (1, 2), (3, 1)], nan_score="drop") == [1, 3]
    assert order_of([(3, None), (1, 2), (3, 1)], nan_score="last") == [1, 3]


def test_duplicates_drop_keeps_the_best_rank_and_the_largest_gain():
    assert order_of([(1, 0.1), (2, 0.5), (1, 0.9)]) == [1, 2]
    true = [{"user_id": 1, "item_id": 1, "relevance": g} for g in (1, 3, 2)]
    pred = [{"user_id": 1, "item_id": 1}]
    found = oracles.evaluate(true, pred, "dcg", order="row", relevance=True)
    assert found == {1: 3.0}
    assert oracles.match_lists(true, pred, 10, order="row", relevance=True)[1].n == 1


def test_duplicates_keep_matches_occurrence_by_occurrence():
    true = [{"user_id": 1, "item_id": item, "relevance": g} for item, g in ((1, 1), (1, 3), (2, 1))]
    pred = [{"user_id": 1, "item_id": item} for item in (1, 1, 1, 9)]
    options = {"order": "row", "relevance": True, "duplicates": "keep"}
    assert [s.gain for s in oracles.match_lists(true, pred, 10, **options)[1].ranked] == [
        3,
        1,
        0,
        0,
    ]
    assert oracles.evaluate(true, pred, "recall", **options) == {1: 2 / 3}
    assert oracles.evaluate(true, pred, "precision", 4, **options) == {1: 2 / 4}


def test_populations():
    true, pred = (
        true_rows({"b": [1], "a": [1], "c": {1: 0}}),
        pred_rows({"d": [1], "a": [2], "b": [1]}),
    )
    shared = {"order": "row", "relevance": False}

    def users(population):
        return list(oracles.evaluate(true, pred, "hitrate", users=population, **shared))

    assert users("true") == ["b", "a", "c"]
    assert users("pred") == ["d", "a", "b"]
    assert users("both") == ["b", "a"]
    assert users("all") == ["b", "a", "c", "d"]
    assert users(["z", "a", "z"]) == ["z", "a"]


def test_a_list_without_recommendations_scores_zero():
    names = (
        "hitrate hits precision recall f1 rprecision mapr mar mrr arhr ndcg dcg rbp err pauc pap "
        "bpref"
    )
    assert {name: one([1, 2], [], name) for name in names.split()} == dict.fromkeys(
        names.split(), 0.0
    )


def test_a_list_without_relevant_items():
    needs_candidates = {"confusion", "accuracy", "fallout", "specificity", "mcc", "percentile_rank"}
    names = {*family("relevance"), *family("ranking")} - needs_candidates
    values = {name: one({1: 0}, [1, 2], name) for name in names}
    undefined = {name for name, value in values.items() if math.isnan(value)}
    assert {
        "recall",
        "f1",
        "rprecision",
        "mapr",
        "mar",
        "ndcg",
        "auc",
        "pauc",
        "pap",
        "bpref",
        "first_rank",
    } <= undefined
    assert not undefined & {
        "precision",
        "hitrate",
        "hits",
        "mrr",
        "arhr",
        "dcg",
        "rbp",
        "err",
    }
    assert {value for value in values.values() if not math.isnan(value)} == {0.0}
    assert one({1: 0}, [1, 2], "recall", undefined="zero") == 0.0


def test_mean_skips_undefined():
    assert oracles.mean([1.0, math.nan, 0.0]) == 0.5
    assert math.isnan(oracles.mean([math.nan]))


def test_min_relevance_leaves_rows_judged():
    true = {1: 5, 2: 3, 3: 1}
    assert one(true, [2, 1], "recall", min_relevance=4) == 1.0
    assert one(true, [2, 1], "dcg", min_relevance=4) == close(5 / math.log2(3))
    assert one(true, [9, 2, 1], "mrr", min_relevance=4, judged_only=True) == 1 / 2


# --------------------------------------------------------------------------------------------------
# Metrics worked by hand: relevant a b c d e, shown a x b y (k = 4, so also c d e missed)

TRUE, SHOWN = list("abcde"), list("axby")


@pytest.mark.parametrize(
    ("metric", "k", "params", "expected"),
    [
        ("hitrate", 1, {}, 1),
        ("hits", 10, {}, 2),
        ("precision", 10, {}, 2 / 10),
        ("precision", 10, {"divisor": "shown"}, 2 / 4),
        ("precision", 10, {"divisor": "achievable"}, 2 / 5),
        ("recall", 10, {}, 2 / 5),
        ("recall", 3, {"divisor": "achievable"}, 2 / 3),
        ("f1", 10, {}, 2 * 0.2 * 0.4 / 0.6),
        ("f1", 10, {"beta": 2}, 5 * 0.2 * 0.4 / (4 * 0.2 + 0.4)),
        ("rprecision", 1, {}, 2 / 5),
        ("mapr", 10, {}, (1 + 2 / 3) / 5),
        ("mapr", 3, {"normalizer": "achievable"}, (1 + 2 / 3) / 3),
        ("mapr", 10, {"normalizer": "hits"}, (1 + 2 / 3) / 2),
        ("mapr", 10, {"normalizer": "k"}, (1 + 2 / 3) / 10),
        ("mapr", 10, {"normalizer": "shown"}, (1 + 2 / 3) / 4),
        ("mar", 10, {}, (1 / 5 + 2 / 5) / 2),
        ("mar", 10, {"normalizer": "relevant"}, (1 / 5 + 2 / 5) / 5),
        ("mar", 3, {"normalizer": "achievable"}, (1 / 5 + 2 / 5) / 3),
        ("mar", 10, {"normalizer": "k"}, (1 / 5 + 2 / 5) / 10),
        ("mrr", 10, {}, 1),
        ("mrr", 10, {"of": "all"}, (1 + 1 / 3) / 5),
        ("arhr", 10, {}, 1 + 1 / 3),
        ("arhr", 2, {}, 1),
        ("dcg", 10, {}, 1 + 1 / 2),
        ("ndcg", 2, {}, 1 / (1 + 1 / math.log2(3))),
        ("ndcg", 3, {"ideal": "k"}, 1.5 / (1 + 1 / math.log2(3) + 1 / 2)),
        ("ndcg", 10, {"ideal": "shown"}, 1.5 / (1 + 1 / math.log2(3))),
        ("ndcg", 10, {"discount": "none"}, 2 / 5),
        ("ndcg", 3, {"discount": lambda rank: 1 / rank}, (1 + 1 / 3) / (1 + 1 / 2 + 1 / 3)),
        ("dcg", 10, {"discount": "jk", "log_base": 2}, 1 + 1 / math.log2(3)),
        ("dcg", 10, {"discount": "jk", "log_base": 10}, 2),
        ("rbp", 10, {}, 0.2 * (1 + 0.8**2)),
        ("rbp", 10, {"p": 0.5}, 0.5 * (1 + 0.5**2)),
        ("err", 10, {}, 1 / 2 + (1 / 3) * (1 / 2) * (1 / 2)),
        ("err", 10, {"max_gain": 2}, 1 / 4 + (1 / 3) * (1 / 4) * (3 / 4)),
        ("auc", 10, {}, 3 / 4),
        ("auc", 2, {}, 1),
        ("auc", 1, {}, math.nan),
        # One miss above b: with k = 1 only a counts, with k = 2 b counts half.
        ("pauc", 1, {}, 1 / 5),
        ("pauc", 2, {}, (2 + 1) / (2 * 5)),
        ("pap", 1, {}, 1 / 1),
        ("pap", 2, {}, (2 + 1) / (2 * 2)),
        ("pap", 10, {}, (10 + 9) / (10 * 5)),
        ("first_rank", 10, {}, 1),
    ],
)
def test_by_hand(metric, k, params, expected):
    assert one(TRUE, SHOWN, metric, k, params) == close(expected)


def test_mapr_of_what_can_be_shown():
    assert one(["a"], list("xa"), "mapr", params={"normalizer": "shown"}) == 1 / 2
    assert one(["a"], [], "mapr", params={"normalizer": "shown"}) == 0.0
    assert math.isnan(one([], ["a"], "mapr", params={"normalizer": "shown"}))


def test_graded_gains_by_hand():
    true, shown = {"a": 1, "b": 3, "c": 2, "z": 0}, ["a", "z", "b"]
    assert one(true, shown, "dcg") == close(1 + 3 / 2)
    assert one(true, shown, "dcg", params={"gain": "exp2"}) == close(1 + 7 / 2)
    assert one(true, shown, "dcg", params={"gain": "binary"}) == close(1 + 1 / 2)
    assert one(true, shown, "ndcg") == close(2.5 / (3 + 2 / math.log2(3) + 1 / 2))
    assert one(true, shown, "ndcg", params={"ideal": "shown"}) == close(
        2.5 / (3 + 1 / math.log2(3))
    )
    assert one(true, shown, "ndcg", 3, {"ideal": "k", "gain": "exp2"}) == close(
        4.5 / (1.5 + 1 / math.log2(3))
    )
    # s = 1/8 and 7/8 at ranks 1 and 3
    assert one(true, shown, "err") == close(1 / 8 + (1 / 3) * (7 / 8) * (7 / 8))
    assert one({"a": 0.5, "b": 1}, shown, "rbp") == close(0.2 * (0.5 + 0.8**2))
    with pytest.raises(ValueError, match="gains"):
        one(true, shown, "rbp")


def test_err_takes_the_largest_gain_of_the_whole_frame():
    assert measure({1: {"a": 1}, 2: {"a": 2}}, {1: ["a"], 2: ["a"]}, "err") == [1 / 4, 3 / 4]
    assert measure({1: {"a": 1}, 2: {"a": 2}}, {1: ["a"]}, "err", users=[1]) == [1 / 4]


def test_ideal_shown_without_a_hit_is_zero():
    assert one(["a"], ["x"], "ndcg", params={"ideal": "shown"}) == 0.0


def test_auc_ties_count_half():
    assert one(["a"], {"a": 1, "x": 1, "y": 0}, "auc") == close(1.5 / 2)
    assert one(["a"], {"a": None, "x": 1, "y": None}, "auc") == close(0.5 / 2)
    assert one(["a"], ["a", "x", "y"], "auc") == 1.0


def test_auc_within_the_catalogue():
    # Of the catalogue x a are shown and b (relevant) y z tie at the bottom; v w (v relevant) and q
    # lie outside it.
    shown = {"v": 6, "w": 5, "x": 3, "a": 2, "y": 1}
    value = one(["a", "b", "q", "v"], shown, "auc", 4, {"within": "catalogue"}, items=list("abxyz"))
    assert value == close((2 + 0.5 + 0.5) / 6)


def test_confusion_over_a_catalogue():
    options = {"items": [*list("abcdexyz"), "p", "q"]}
    assert one(TRUE, SHOWN, "confusion", **options) == {"tp": 2, "fp": 2, "fn": 3, "tn": 3}
    assert one(TRUE, SHOWN, "accuracy", **options) == 5 / 10
    assert one(TRUE, SHOWN, "fallout", **options) == 2 / 5
    assert one(TRUE, SHOWN, "specificity", **options) == 3 / 5
    assert one(TRUE, SHOWN, "mcc", **options) == close((2 * 3 - 2 * 3) / math.sqrt(4 * 5 * 5 * 6))
    assert one(TRUE, list("abx"), "mcc", **options) == close(
        (2 * 4 - 1 * 3) / math.sqrt(3 * 5 * 5 * 7)
    )


def test_confusion_over_the_judged():
    true = {"a": 1, "b": 1, "x": 0, "y": 0, "z": 0}
    assert one(true, list("xqa"), "confusion", judged_only=True) == {
        "tp": 1,
        "fp": 1,
        "fn": 1,
        "tn": 2,
    }
    with pytest.raises(ValueError, match="items="):
        one(true, list("xqa"), "confusion")


def test_bpref_by_hand():
    # R = 3, N = 2; u is not judged; a has 0, b has 1 and c (not shown) none.
    true = {"a": 1, "b": 1, "c": 1, "x": 0, "y": 0}
    assert one(true, list("auxby"), "bpref") == close((1 + (1 - 1 / 2)) / 3)
    assert one(true, list("auxby"), "bpref", 3) == close(1 / 3)


def test_partial_auc_on_examples_of_rectools():
    # Docstring of PartialAUC: k = 1 gives 1, 1, 0 and k = 3 gives 1, 1, 1/3.
    true = {1: [1, 2], 2: [1, 3], 3: [1, 2]}
    pred = {1: [1, 2], 2: [3, 1, 2], 3: [3, 2]}
    assert measure(true, pred, "pauc", 1) == close([1, 1, 0])
    assert measure(true, pred, "pauc", 3) == close([1, 1, 1 / 3])
    # Its tests, user 5: hits at ranks 3, 7, 9 of 9 and one relevant item not shown.
    true, pred = {5: [1, 2, 3, 4]}, {5: [90, 91, 1, 92, 93, 94, 2, 95, 3]}
    assert measure(true, pred, "pauc", 3) == close([1 / 12])
    assert measure(true, pred, "pap", 3) == close([1 / 9])
    # Only the first k hits count in pap, all in pauc.
    assert measure({1: [1, 2, 3, 4]}, {1: [1, 2, 3, 9]}, "pap", 2) == [1.0]
    assert measure({1: [1, 2, 3, 4]}, {1: [1, 2, 3, 9]}, "pauc", 2) == [6 / 8]
    # Its tests: three relevant items, one shown at rank 1, k = 2.
    assert measure({1: [1, 2, 10]}, {1: [1]}, "pap", 2) == close([1 / 2])


def test_money_by_hand():
    true = [
        {"user_id": 1, "item_id": item, "value": v} for item, v in (("a", 10), ("b", 40), ("c", 20))
    ]
    pred = [
        {"user_id": 1, "item_id": item, "value": v} for item, v in (("x", 5), ("a", 15), ("b", 30))
    ]

    def money(metric, **options):
        return oracles.evaluate(true, pred, metric, order="row", **options)[1]

    assert money("money_precision") == 45 / 50
    assert money("money_recall") == 45 / 70
    assert money("revenue") == 45
    assert money("revenue", k=2) == 15
    assert money("money_ndcg") == close(
        (10 / math.log2(3) + 40 / 2) / (40 + 20 / math.log2(3) + 10 / 2)
    )
    assert money("money_ndcg", k=2) == close((10 / math.log2(3)) / (40 + 20 / math.log2(3)))


def test_money_from_the_item_table():
    prices = {"a": 10, "b": -4, "x": 30}
    assert (
        one(["a", "b"], ["x", "a", "b"], "money_precision", items=prices, negative="clip")
        == 10 / 40
    )
    with pytest.raises(ValueError, match="negative"):
        one(["a", "b"], ["x", "a", "b"], "money_precision", items=prices)
    with pytest.raises(ValueError, match="needs values"):
        one(["a"], ["a"], "revenue")


def test_money_without_money_is_undefined():
    prices = {"a": 0, "x": 0}
    values = {name: one(["a"], ["x", "a"], name, items=prices) for name in family("money")}
    assert values == {
        name: close(0.0 if name == "revenue" else math.nan) for name in family("money")
    }
    assert math.isnan(one(["a"], [], "money_precision", items=prices))
