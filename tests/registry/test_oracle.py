"""The oracle against numbers worked by hand, the golden cases and pytrec_eval."""

import json
import math
import random
from pathlib import Path

import oracles
import pandas as pd
import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = json.loads((GOLDEN / "cases.json").read_text())


def family(name):
    """Names of the metrics whose oracles stand in one module."""
    return [metric for metric, function in oracles.ORACLES.items() if function.__module__ == f"oracles.{name}"]


def approx(expected):
    return pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


def true_rows(lists):
    """Rows of `true` from {user: [items]} or {user: {item: relevance}}."""
    rows = []
    for user, items in lists.items():
        for item in items:
            row = {"user_id": user, "item_id": item}
            rows.append({**row, "relevance": items[item]} if isinstance(items, dict) else row)
    return rows


def pred_rows(lists):
    """Rows of `pred` from {user: [items, best first]} or {user: {item: score}}."""
    rows = []
    for user, items in lists.items():
        for item in items:
            row = {"user_id": user, "item_id": item}
            rows.append({**row, "score": items[item]} if isinstance(items, dict) else row)
    return rows


def measure(true, pred, metric, k=10, **options):
    """Value per user as a list; true and pred as in true_rows and pred_rows."""
    options.setdefault("order", "score" if any("score" in row for row in pred_rows(pred)) else "row")
    options.setdefault("relevance", any("relevance" in row for row in true_rows(true)))
    return list(oracles.evaluate(true_rows(true), pred_rows(pred), metric, k, **options).values())


def one(true, shown, metric, k=10, params=None, **options):
    """Value of one list given as its items, or as item: relevance and item: score."""
    return measure({1: true}, {1: shown}, metric, k, params=params, users=[1], **options)[0]


# ---------------------------------------------------------------------------------------------------------------------
# Matching


def order_of(shown, true=(), **options):
    """Items of one list after ranking; shown as (item, score) rows."""
    rows = [{"user_id": 1, "item_id": item, "score": score} for item, score in shown]
    options = {"order": "score", "users": [1], "relevance": isinstance(true, dict), **options}
    return [s.item for s in oracles.match_lists(true_rows({1: true}), rows, 10, **options)[1].ranked]


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
    rows = [{"user_id": 1, "item_id": item, "rank": rank} for item, rank in [(1, 3), (2, 1), (3, 1)]]
    assert [s.item for s in oracles.match_lists([], rows, 10, order="rank", users="pred")[1].ranked] == [3, 2, 1]


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
    assert [s.gain for s in oracles.match_lists(true, pred, 10, **options)[1].ranked] == [3, 1, 0, 0]
    assert oracles.evaluate(true, pred, "recall", **options) == {1: 2 / 3}
    assert oracles.evaluate(true, pred, "precision", 4, **options) == {1: 2 / 4}


def test_populations():
    true, pred = true_rows({"b": [1], "a": [1], "c": {1: 0}}), pred_rows({"d": [1], "a": [2], "b": [1]})
    shared = {"order": "row", "relevance": False}

    def users(population):
        return list(oracles.evaluate(true, pred, "hitrate", users=population, **shared))

    assert users("true") == ["b", "a", "c"]
    assert users("pred") == ["d", "a", "b"]
    assert users("both") == ["b", "a"]
    assert users("all") == ["b", "a", "c", "d"]
    assert users(["z", "a", "z"]) == ["z", "a"]


def test_a_list_without_recommendations_scores_zero():
    names = "hitrate hits precision recall f1 rprecision mapr mar mrr arhr ndcg dcg rbp err pauc pap bpref"
    assert {name: one([1, 2], [], name) for name in names.split()} == dict.fromkeys(names.split(), 0.0)


def test_a_list_without_relevant_items():
    needs_candidates = {"confusion", "accuracy", "fallout", "specificity", "mcc"}
    names = {*family("relevance"), *family("ranking")} - needs_candidates
    values = {name: one({1: 0}, [1, 2], name) for name in names}
    undefined = {name for name, value in values.items() if math.isnan(value)}
    expected = {"recall", "f1", "rprecision", "mapr", "ndcg", "auc", "pauc", "pap", "bpref", "first_rank"}
    assert undefined == expected
    assert {value for value in values.values() if not math.isnan(value)} == {0.0}
    assert one({1: 0}, [1, 2], "recall", undefined="zero") == 0.0


def test_mean_skips_undefined():
    assert oracles.mean([1.0, math.nan, 0.0]) == 0.5
    assert math.isnan(oracles.mean([math.nan]))


def test_min_relevance_leaves_rows_judged():
    true = {1: 5, 2: 3, 3: 1}
    assert one(true, [2, 1], "recall", min_relevance=4) == 1.0
    assert one(true, [2, 1], "dcg", min_relevance=4) == approx(5 / math.log2(3))
    assert one(true, [9, 2, 1], "mrr", min_relevance=4, judged_only=True) == 1 / 2


# ---------------------------------------------------------------------------------------------------------------------
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
        ("dcg", 10, {"discount": "jk", "base": 2}, 1 + 1 / math.log2(3)),
        ("dcg", 10, {"discount": "jk", "base": 10}, 2),
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
    assert one(TRUE, SHOWN, metric, k, params) == approx(expected)


def test_mapr_of_what_can_be_shown():
    assert one(["a"], list("xa"), "mapr", params={"normalizer": "shown"}) == 1 / 2
    assert one(["a"], [], "mapr", params={"normalizer": "shown"}) == 0.0
    assert math.isnan(one([], ["a"], "mapr", params={"normalizer": "shown"}))


def test_graded_gains_by_hand():
    true, shown = {"a": 1, "b": 3, "c": 2, "z": 0}, ["a", "z", "b"]
    assert one(true, shown, "dcg") == approx(1 + 3 / 2)
    assert one(true, shown, "dcg", params={"gain": "exp2"}) == approx(1 + 7 / 2)
    assert one(true, shown, "dcg", params={"gain": "binary"}) == approx(1 + 1 / 2)
    assert one(true, shown, "ndcg") == approx(2.5 / (3 + 2 / math.log2(3) + 1 / 2))
    assert one(true, shown, "ndcg", params={"ideal": "shown"}) == approx(2.5 / (3 + 1 / math.log2(3)))
    assert one(true, shown, "ndcg", 3, {"ideal": "k", "gain": "exp2"}) == approx(4.5 / (1.5 + 1 / math.log2(3)))
    # s = 1/8 and 7/8 at ranks 1 and 3
    assert one(true, shown, "err") == approx(1 / 8 + (1 / 3) * (7 / 8) * (7 / 8))
    assert one({"a": 0.5, "b": 1}, shown, "rbp") == approx(0.2 * (0.5 + 0.8**2))
    with pytest.raises(ValueError, match="gains"):
        one(true, shown, "rbp")


def test_err_takes_the_largest_gain_of_the_whole_frame():
    assert measure({1: {"a": 1}, 2: {"a": 2}}, {1: ["a"], 2: ["a"]}, "err") == [1 / 4, 3 / 4]
    assert measure({1: {"a": 1}, 2: {"a": 2}}, {1: ["a"]}, "err", users=[1]) == [1 / 4]


def test_ideal_shown_without_a_hit_is_zero():
    assert one(["a"], ["x"], "ndcg", params={"ideal": "shown"}) == 0.0


def test_auc_ties_count_half():
    assert one(["a"], {"a": 1, "x": 1, "y": 0}, "auc") == approx(1.5 / 2)
    assert one(["a"], {"a": None, "x": 1, "y": None}, "auc") == approx(0.5 / 2)
    assert one(["a"], ["a", "x", "y"], "auc") == 1.0


def test_auc_within_the_catalogue():
    # Of the catalogue x a are shown and b (relevant) y z tie at the bottom; v w (v relevant) and q lie outside it.
    shown = {"v": 6, "w": 5, "x": 3, "a": 2, "y": 1}
    value = one(["a", "b", "q", "v"], shown, "auc", 4, {"within": "catalogue"}, items=list("abxyz"))
    assert value == approx((2 + 0.5 + 0.5) / 6)


def test_confusion_over_a_catalogue():
    options = {"items": [*list("abcdexyz"), "p", "q"]}
    assert one(TRUE, SHOWN, "confusion", **options) == {"tp": 2, "fp": 2, "fn": 3, "tn": 3}
    assert one(TRUE, SHOWN, "accuracy", **options) == 5 / 10
    assert one(TRUE, SHOWN, "fallout", **options) == 2 / 5
    assert one(TRUE, SHOWN, "specificity", **options) == 3 / 5
    assert one(TRUE, SHOWN, "mcc", **options) == approx((2 * 3 - 2 * 3) / math.sqrt(4 * 5 * 5 * 6))
    assert one(TRUE, list("abx"), "mcc", **options) == approx((2 * 4 - 1 * 3) / math.sqrt(3 * 5 * 5 * 7))


def test_confusion_over_the_judged():
    true = {"a": 1, "b": 1, "x": 0, "y": 0, "z": 0}
    assert one(true, list("xqa"), "confusion", judged_only=True) == {"tp": 1, "fp": 1, "fn": 1, "tn": 2}
    with pytest.raises(ValueError, match="items="):
        one(true, list("xqa"), "confusion")


def test_bpref_by_hand():
    # R = 3, N = 2; u is not judged; a has 0, b has 1 and c (not shown) none.
    true = {"a": 1, "b": 1, "c": 1, "x": 0, "y": 0}
    assert one(true, list("auxby"), "bpref") == approx((1 + (1 - 1 / 2)) / 3)
    assert one(true, list("auxby"), "bpref", 3) == approx(1 / 3)


def test_partial_auc_on_examples_of_rectools():
    # Docstring of PartialAUC: k = 1 gives 1, 1, 0 and k = 3 gives 1, 1, 1/3.
    true = {1: [1, 2], 2: [1, 3], 3: [1, 2]}
    pred = {1: [1, 2], 2: [3, 1, 2], 3: [3, 2]}
    assert measure(true, pred, "pauc", 1) == approx([1, 1, 0])
    assert measure(true, pred, "pauc", 3) == approx([1, 1, 1 / 3])
    # Its tests, user 5: hits at ranks 3, 7, 9 of 9 and one relevant item not shown.
    true, pred = {5: [1, 2, 3, 4]}, {5: [90, 91, 1, 92, 93, 94, 2, 95, 3]}
    assert measure(true, pred, "pauc", 3) == approx([1 / 12])
    assert measure(true, pred, "pap", 3) == approx([1 / 9])
    # Only the first k hits count in pap, all in pauc.
    assert measure({1: [1, 2, 3, 4]}, {1: [1, 2, 3, 9]}, "pap", 2) == [1.0]
    assert measure({1: [1, 2, 3, 4]}, {1: [1, 2, 3, 9]}, "pauc", 2) == [6 / 8]
    # Its tests: three relevant items, one shown at rank 1, k = 2.
    assert measure({1: [1, 2, 10]}, {1: [1]}, "pap", 2) == approx([1 / 2])


def test_money_by_hand():
    true = [{"user_id": 1, "item_id": item, "value": v} for item, v in (("a", 10), ("b", 40), ("c", 20))]
    pred = [{"user_id": 1, "item_id": item, "value": v} for item, v in (("x", 5), ("a", 15), ("b", 30))]

    def money(metric, **options):
        return oracles.evaluate(true, pred, metric, order="row", **options)[1]

    assert money("money_precision") == 45 / 50
    assert money("money_recall") == 45 / 70
    assert money("revenue") == 45
    assert money("revenue", k=2) == 15
    assert money("money_ndcg") == approx((10 / math.log2(3) + 40 / 2) / (40 + 20 / math.log2(3) + 10 / 2))
    assert money("money_ndcg", k=2) == approx((10 / math.log2(3)) / (40 + 20 / math.log2(3)))


def test_money_from_the_item_table():
    prices = {"a": 10, "b": -4, "x": 30}
    assert one(["a", "b"], ["x", "a", "b"], "money_precision", items=prices, negative="clip") == 10 / 40
    with pytest.raises(ValueError, match="negative"):
        one(["a", "b"], ["x", "a", "b"], "money_precision", items=prices)
    with pytest.raises(ValueError, match="needs values"):
        one(["a"], ["a"], "revenue")


def test_money_without_money_is_undefined():
    prices = {"a": 0, "x": 0}
    values = {name: one(["a"], ["x", "a"], name, items=prices) for name in family("money")}
    assert values == {name: approx(0.0 if name == "revenue" else math.nan) for name in family("money")}
    assert math.isnan(one(["a"], [], "money_precision", items=prices))


# ---------------------------------------------------------------------------------------------------------------------
# Golden cases


def lesson(metric, k=10, **params):
    """Value of the first user of the lesson, with prices on both sides."""
    case = CASES["lesson"]
    true = [{"user_id": 1, "item_id": i, "value": v} for i, v in zip(case["true"], case["prices_true"], strict=True)]
    pred = [{"user_id": 1, "item_id": i, "value": v} for i, v in zip(case["pred"], case["prices_pred"], strict=True)]
    return oracles.evaluate(true, pred, metric, k, params=params, order="row")[1]


@pytest.mark.parametrize("name", CASES["lesson"]["expected"])
def test_lesson(name):
    metric, _, k = name.partition("@")
    metric, _, parameter = metric.rstrip(")").partition("(")
    params = dict([parameter.split("=")]) if parameter else {}
    assert lesson(metric, int(k or 10), **params) == approx(CASES["lesson"]["expected"][name])


def test_lesson_of_two_users():
    case = CASES["lesson"]["two_users"]
    per_user = measure(dict(enumerate(case["true"])), dict(enumerate(case["pred"])), "mapr")
    assert per_user == approx(case["mapr per user"])
    assert oracles.mean(per_user) == approx(case["mapr"])


@pytest.mark.parametrize("case", CASES["lesson"]["money_cases"], ids=["dear", "cheap"])
def test_lesson_money_cases(case):
    pred = [{"user_id": 1, "item_id": i, "value": v} for i, v in enumerate(case["prices"])]
    true = [{"user_id": 1, "item_id": i} for i, hit in enumerate(case["hits"]) if hit]
    for metric in ("precision", "money_precision"):
        assert oracles.evaluate(true, pred, metric, 5, order="row")[1] == approx(case[f"{metric}@5"])


def test_graded():
    case = CASES["graded"]
    true, shown = dict(enumerate(case["relevance"])), dict(enumerate(case["score"]))
    assert one(true, shown, "dcg") == approx(case["dcg(gain=linear)"])
    assert one(true, shown, "ndcg") == approx(case["ndcg(gain=linear)"])
    assert one(true, shown, "ndcg", params={"ideal": "shown"}) == approx(case["ndcg(gain=linear)"])


@pytest.fixture
def textbook():
    """A function: value of a metric per user, over judged items only, liked when rated 4 or more."""
    case = CASES["textbook"]
    true, pred = [], []
    for user, (ratings, ranks) in enumerate(zip(case["ratings"], case["ranks"], strict=True)):
        for item, (rating, rank) in enumerate(zip(ratings, ranks, strict=True)):
            if rating is not None:
                true.append({"user_id": user, "item_id": item, "relevance": rating})
            if rank is not None:
                pred.append({"user_id": user, "item_id": item, "rank": rank})

    def values(metric, k=case["k"], min_relevance=4, **params):
        options = {"order": "rank", "relevance": True, "min_relevance": min_relevance, "judged_only": True}
        return list(oracles.evaluate(true, pred, metric, k, params=params, **options).values())

    return values


def test_textbook_hits(textbook):
    expected = CASES["textbook"]["expected"]
    assert textbook("mrr") == approx(expected["mrr"])
    assert oracles.mean(textbook("mrr")) == approx(expected["mrr mean"])
    assert textbook("mapr", normalizer="hits") == approx(expected["ap(normalizer=hits)"])
    assert oracles.mean(textbook("mapr", normalizer="hits")) == approx(expected["map mean"])
    at_k = [textbook("precision", k) for k in range(1, 6)]
    assert list(zip(*at_k, strict=True)) == [
        approx(row) for row in expected["precision at 1.. per user (judged items only)"]
    ]


def test_textbook_gains(textbook):
    # Here the gain is the rating itself, of liked items and of others.
    expected = CASES["textbook"]["expected"]
    jk = {"min_relevance": None, "discount": "jk", "base": 2}
    dcg, ndcg = textbook("dcg", **jk), textbook("ndcg", **jk)
    assert dcg == approx(expected["dcg(gain=linear,discount=jk,base=2)"])
    assert [d / n for d, n in zip(dcg, ndcg, strict=True)] == approx(expected["idcg"])
    assert ndcg == approx(expected["ndcg"])
    assert oracles.mean(ndcg) == approx(expected["ndcg mean"])


@pytest.mark.parametrize("metric", ["hitrate", "precision", "recall", "mrr", "mapr", "ndcg"])
def test_course(metric):
    case = CASES["course"]
    per_user = measure(case["true"], case["pred"], metric, case["k"], users="pred", undefined="zero")
    assert oracles.mean(per_user) == approx(case["expected"][metric])
    if f"{metric} per user" in case["expected"]:
        assert per_user == approx(case["expected"][f"{metric} per user"])


@pytest.mark.parametrize("model", ["random", "knn"])
def test_candidates(model):
    rows = pd.read_parquet(GOLDEN / CASES["candidates"]["file"]).to_dict("records")
    true = [{"user_id": r["object"], "item_id": r["item"], "relevance": r["relevant"]} for r in rows]
    pred = [{"user_id": r["object"], "item_id": r["item"], "score": r[model]} for r in rows]
    expected = CASES["candidates"]["expected"][model]
    for metric in ("recall", "precision"):
        per_user = list(oracles.evaluate(true, pred, metric, 4, order="score", relevance=True).values())
        assert per_user == approx(expected[f"{metric}@4"])
        assert oracles.mean(per_user) == approx(expected[f"mean_{metric}@4"])


@pytest.mark.parametrize("metric", ["hitrate", "recall", "mrr", "mapr", "ndcg"])
def test_frames(metric):
    cases = CASES["frames"][metric]
    for case in cases if isinstance(cases, list) else [cases]:
        assert oracles.mean(measure(case["true"], case["pred"], metric, case["k"])) == approx(case["value"])


MADE = {"u1": list("abc"), "u2": ["a"], "u3": ["d"], "u5": list(range(12)), "u6": list("ab")}
SENT = {"u1": list("axb"), "u2": list("xy"), "u4": list("ab"), "u5": [0, "x", 1, *"pqrstuv"], "u6": list("xab")}


@pytest.mark.parametrize(
    ("metric", "users", "params", "expected"),
    [
        ("hitrate", "true", {}, 0.600),
        ("precision", "true", {}, 0.120),
        ("recall", "true", {}, 0.367),
        ("mapr", "true", {}, 0.2556),
        ("ndcg", "true", {}, 0.3455),
        ("mrr", "true", {}, 0.500),
        ("ndcg", "true", {"ideal": "k"}, 0.1818),
        ("mapr", "true", {"normalizer": "achievable"}, 0.2611),
        ("precision", "both", {}, 0.150),
        ("recall", "both", {}, 0.458),
        ("mapr", "both", {}, 0.3194),
        ("mapr", "both", {"normalizer": "achievable"}, 0.3264),
        # LensKit takes the lists of pred; it was measured without u4, which has no truth.
        ("hitrate", "both", {}, 0.750),
        ("mrr", "both", {}, 0.625),
        ("ndcg", "both", {"discount": "jk"}, 0.4364),
    ],
)
def test_measured_numbers_of_other_libraries(metric, users, params, expected):
    value = oracles.mean(measure(MADE, SENT, metric, users=users, params=params))
    assert value == pytest.approx(expected, abs=0.0006)


# ---------------------------------------------------------------------------------------------------------------------
# pytrec_eval


def random_case(seed, levels=3, tied=False):
    """Judgements {user: {item: level}} and runs {user: {item: score}} with few items, so that lists overlap."""
    draw = random.Random(seed)
    items = [f"d{i}" for i in range(12)]
    true, pred = {}, {}
    for user in (f"u{i}" for i in range(5)):
        true[user] = {i: draw.randrange(levels) for i in draw.sample(items, draw.randint(1, 9))}
        shown = draw.sample(items, draw.randint(1, 12))
        pred[user] = {i: float(draw.randrange(3) if tied else n) for n, i in enumerate(shown)}
    return true, pred


WHOLE = 1000
TREC = {
    "P_3": ("precision", 3, {}),
    "relative_P_3": ("precision", 3, {"divisor": "achievable"}),
    "set_P": ("precision", WHOLE, {"divisor": "shown"}),
    "recall_3": ("recall", 3, {}),
    "set_recall": ("recall", WHOLE, {}),
    "success_3": ("hitrate", 3, {}),
    "num_rel_ret": ("hits", WHOLE, {}),
    "Rprec": ("rprecision", 1, {}),
    "map": ("mapr", WHOLE, {}),
    "map_cut_3": ("mapr", 3, {}),
    "recip_rank": ("mrr", WHOLE, {}),
    "bpref": ("bpref", WHOLE, {}),
    "ndcg": ("ndcg", WHOLE, {}),
    "ndcg_cut_3": ("ndcg", 3, {}),
}
TREC_REQUEST = {
    "P.3", "relative_P.3", "set_P", "recall.3", "set_recall", "success.3", "num_rel_ret", "Rprec", "map", "map_cut.3",
    "recip_rank", "bpref", "ndcg", "ndcg_cut.3", "set_F",
}  # fmt: skip


def compare_with_trec_eval(true, pred, level, measures):
    """trec_eval gives 0 where the metric is undefined, evaluates the users of both and breaks ties by larger id."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    theirs = pytrec_eval.RelevanceEvaluator(true, TREC_REQUEST, relevance_level=level).evaluate(pred)
    options = {"order": "score", "relevance": True, "min_relevance": level, "undefined": "zero"}
    for name in measures:
        metric, k, params = TREC[name]
        ours = oracles.evaluate(true_rows(true), pred_rows(pred), metric, k, params=params, **options)
        assert ours == approx({user: theirs[user][name] for user in true}), name
    for user in true:
        # set_F takes what was retrieved as the length of the list.
        ours = oracles.evaluate(true_rows(true), pred_rows(pred), "f1", len(pred[user]), **options)
        assert ours[user] == approx(theirs[user]["set_F"])


@pytest.mark.parametrize("seed", range(25))
def test_pytrec_eval(seed):
    compare_with_trec_eval(*random_case(seed), 1, TREC)


@pytest.mark.parametrize("seed", range(10))
def test_pytrec_eval_with_ties(seed):
    compare_with_trec_eval(*random_case(seed, tied=True), 1, TREC)


@pytest.mark.parametrize("seed", range(10))
def test_pytrec_eval_with_a_relevance_level(seed):
    # Its ndcg takes every level as gain, whatever the level of relevance.
    compare_with_trec_eval(*random_case(seed, levels=4), 2, [name for name in TREC if "ndcg" not in name])
