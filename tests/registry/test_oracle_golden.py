"""The oracle against the golden cases and pytrec_eval."""

import random

import oracles
import pandas as pd
import pytest
from close import close
from registry.by_hand import CASES, GOLDEN, measure, one, pred_rows, true_rows

# --------------------------------------------------------------------------------------------------
# Golden cases


def lesson(metric, k=10, **params):
    """Value of the first user of the lesson, with prices on both sides."""
    case = CASES["lesson"]
    true = [
        {"user_id": 1, "item_id": i, "value": v}
        for i, v in zip(case["true"], case["prices_true"], strict=True)
    ]
    pred = [
        {"user_id": 1, "item_id": i, "value": v}
        for i, v in zip(case["pred"], case["prices_pred"], strict=True)
    ]
    return oracles.evaluate(true, pred, metric, k, params=params, order="row")[1]


@pytest.mark.parametrize("name", CASES["lesson"]["expected"])
def test_lesson(name):
    metric, _, k = name.partition("@")
    metric, _, parameter = metric.rstrip(")").partition("(")
    params = dict([parameter.split("=")]) if parameter else {}
    assert lesson(metric, int(k or 10), **params) == close(CASES["lesson"]["expected"][name])


def test_lesson_of_two_users():
    case = CASES["lesson"]["two_users"]
    per_user = measure(dict(enumerate(case["true"])), dict(enumerate(case["pred"])), "mapr")
    assert per_user == close(case["mapr per user"])
    assert oracles.mean(per_user) == close(case["mapr"])


@pytest.mark.parametrize("case", CASES["lesson"]["money_cases"], ids=["dear", "cheap"])
def test_lesson_money_cases(case):
    pred = [{"user_id": 1, "item_id": i, "value": v} for i, v in enumerate(case["prices"])]
    true = [{"user_id": 1, "item_id": i} for i, hit in enumerate(case["hits"]) if hit]
    for metric in ("precision", "money_precision"):
        assert oracles.evaluate(true, pred, metric, 5, order="row")[1] == close(case[f"{metric}@5"])


def test_graded():
    case = CASES["graded"]
    true, shown = dict(enumerate(case["relevance"])), dict(enumerate(case["score"]))
    assert one(true, shown, "dcg") == close(case["dcg(gain=linear)"])
    assert one(true, shown, "ndcg") == close(case["ndcg(gain=linear)"])
    assert one(true, shown, "ndcg", params={"ideal": "shown"}) == close(case["ndcg(gain=linear)"])


@pytest.fixture
def textbook():
    """A function: value of a metric per user, over judged items only, liked when rated 4 or
    more."""
    case = CASES["textbook"]
    true, pred = [], []
    for user, (ratings, ranks) in enumerate(zip(case["ratings"], case["ranks"], strict=True)):
        for item, (rating, rank) in enumerate(zip(ratings, ranks, strict=True)):
            if rating is not None:
                true.append({"user_id": user, "item_id": item, "relevance": rating})
            if rank is not None:
                pred.append({"user_id": user, "item_id": item, "rank": rank})

    def values(metric, k=case["k"], min_relevance=4, **params):
        options = {
            "order": "rank",
            "relevance": True,
            "min_relevance": min_relevance,
            "judged_only": True,
        }
        return list(oracles.evaluate(true, pred, metric, k, params=params, **options).values())

    return values


def test_textbook_hits(textbook):
    expected = CASES["textbook"]["expected"]
    assert textbook("mrr") == close(expected["mrr"])
    assert oracles.mean(textbook("mrr")) == close(expected["mrr mean"])
    assert textbook("mapr", normalizer="hits") == close(expected["ap(normalizer=hits)"])
    assert oracles.mean(textbook("mapr", normalizer="hits")) == close(expected["map mean"])
    at_k = [textbook("precision", k) for k in range(1, 6)]
    assert list(zip(*at_k, strict=True)) == [
        close(row) for row in expected["precision at 1.. per user (judged items only)"]
    ]


def test_textbook_gains(textbook):
    # Here the gain is the rating itself, of liked items and of others.
    expected = CASES["textbook"]["expected"]
    jk = {"min_relevance": None, "discount": "jk", "log_base": 2}
    dcg, ndcg = textbook("dcg", **jk), textbook("ndcg", **jk)
    assert dcg == close(expected["dcg(gain=linear,discount=jk,base=2)"])
    assert [d / n for d, n in zip(dcg, ndcg, strict=True)] == close(expected["idcg"])
    assert ndcg == close(expected["ndcg"])
    assert oracles.mean(ndcg) == close(expected["ndcg mean"])


@pytest.mark.parametrize("metric", ["hitrate", "precision", "recall", "mrr", "mapr", "ndcg"])
def test_course(metric):
    case = CASES["course"]
    per_user = measure(
        case["true"], case["pred"], metric, case["k"], users="pred", undefined="zero"
    )
    assert oracles.mean(per_user) == close(case["expected"][metric])
    if f"{metric} per user" in case["expected"]:
        assert per_user == close(case["expected"][f"{metric} per user"])


@pytest.mark.parametrize("model", ["random", "knn"])
def test_candidates(model):
    rows = pd.read_parquet(GOLDEN / CASES["candidates"]["file"]).to_dict("records")
    true = [
        {"user_id": r["object"], "item_id": r["item"], "relevance": r["relevant"]} for r in rows
    ]
    pred = [{"user_id": r["object"], "item_id": r["item"], "score": r[model]} for r in rows]
    expected = CASES["candidates"]["expected"][model]
    for metric in ("recall", "precision"):
        per_user = list(
            oracles.evaluate(true, pred, metric, 4, order="score", relevance=True).values()
        )
        assert per_user == close(expected[f"{metric}@4"])
        assert oracles.mean(per_user) == close(expected[f"mean_{metric}@4"])


@pytest.mark.parametrize("metric", ["hitrate", "recall", "mrr", "mapr", "ndcg"])
def test_frames(metric):
    cases = CASES["frames"][metric]
    for case in cases if isinstance(cases, list) else [cases]:
        assert oracles.mean(measure(case["true"], case["pred"], metric, case["k"])) == close(
            case["value"]
        )


MADE = {"u1": list("abc"), "u2": ["a"], "u3": ["d"], "u5": list(range(12)), "u6": list("ab")}
SENT = {
    "u1": list("axb"),
    "u2": list("xy"),
    "u4": list("ab"),
    "u5": [0, "x", 1, *"pqrstuv"],
    "u6": list("xab"),
}


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


# --------------------------------------------------------------------------------------------------
# pytrec_eval


def random_case(seed, levels=3, tied=False):
    """Judgements {user: {item: level}} and runs {user: {item: score}} with few items, so that lists
    overlap."""
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
    "P.3",
    "relative_P.3",
    "set_P",
    "recall.3",
    "set_recall",
    "success.3",
    "num_rel_ret",
    "Rprec",
    "map",
    "map_cut.3",
    "recip_rank",
    "bpref",
    "ndcg",
    "ndcg_cut.3",
    "set_F",
}


def compare_with_trec_eval(true, pred, level, measures):
    """trec_eval gives 0 where the metric is undefined, evaluates the users of both and breaks ties
    by larger id."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    theirs = pytrec_eval.RelevanceEvaluator(true, TREC_REQUEST, relevance_level=level).evaluate(
        pred
    )
    options = {"order": "score", "relevance": True, "min_relevance": level, "undefined": "zero"}
    for name in measures:
        metric, k, params = TREC[name]
        ours = oracles.evaluate(
            true_rows(true), pred_rows(pred), metric, k, params=params, **options
        )
        assert ours == close({user: theirs[user][name] for user in true}), name
    for user in true:
        # set_F takes what was retrieved as the length of the list.
        ours = oracles.evaluate(true_rows(true), pred_rows(pred), "f1", len(pred[user]), **options)
        assert ours[user] == close(theirs[user]["set_F"])


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(25))
def test_pytrec_eval(seed):
    compare_with_trec_eval(*random_case(seed), 1, TREC)


@pytest.mark.parametrize("seed", range(10))
def test_pytrec_eval_with_ties(seed):
    compare_with_trec_eval(*random_case(seed, tied=True), 1, TREC)


@pytest.mark.parametrize("seed", range(10))
def test_pytrec_eval_with_a_relevance_level(seed):
    # Its ndcg takes every level as gain, whatever the level of relevance.
    compare_with_trec_eval(
        *random_case(seed, levels=4), 2, [name for name in TREC if "ndcg" not in name]
    )
