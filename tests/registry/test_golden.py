"""Worked cases with numbers of other hands: `golden/cases.json`, in every shape that a user may
bring them."""

import json
from pathlib import Path

import pandas as pd
import pytest
from close import close

import recdf as rd

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = json.loads((GOLDEN / "cases.json").read_text(encoding="utf-8"))


# ----------------------------------------------------------------------------------------------
# lesson

LESSON = CASES["lesson"]
LESSON_TRUE = pd.DataFrame(
    {"user_id": 7, "item_id": LESSON["true"], "price": LESSON["prices_true"]}
)
LESSON_PRED = pd.DataFrame(
    {"user_id": 7, "item_id": LESSON["pred"], "price": LESSON["prices_pred"]}
)


@pytest.mark.parametrize("text", LESSON["expected"])
def test_lesson(text):
    expected = LESSON["expected"][text]
    result = rd.evaluate(LESSON_TRUE, LESSON_PRED, text, 10, value_col="price")
    assert result.summary["value"].tolist() == close([expected])
    if "(" not in text:
        name, _, k = text.partition("@")
        assert getattr(rd, name)(
            LESSON_TRUE, LESSON_PRED, k=int(k or 10), value_col="price"
        ) == close(expected)


@pytest.mark.parametrize("case", LESSON["money_cases"])
def test_money_weighs_what_precision_counts(case):
    pred = pd.DataFrame({"user_id": 1, "item_id": range(5), "price": case["prices"]})
    true = pred[[hit == 1 for hit in case["hits"]]]
    assert rd.precision(true, pred, k=5) == close(case["precision@5"])
    assert rd.money_precision(true, pred, k=5, value_col="price") == close(
        case["money_precision@5"]
    )


def test_lesson_of_two_users():
    case = LESSON["two_users"]
    true, pred = dict(enumerate(case["true"])), dict(enumerate(case["pred"]))
    assert rd.mapr.per_user(true, pred)["mapr@10"].tolist() == close(case["mapr per user"])
    assert rd.mapr(true, pred) == close(case["mapr"])


# ----------------------------------------------------------------------------------------------
# graded


def test_graded():
    case = CASES["graded"]
    frame = pd.DataFrame(
        {"user_id": 1, "item_id": range(5), "gain": case["relevance"], "score": case["score"]}
    )
    true, pred = frame.drop(columns="score"), frame.drop(columns="gain")
    assert rd.dcg(true, pred, relevance_col="gain") == close(case["dcg(gain=linear)"])
    assert rd.ndcg(true, pred, relevance_col="gain") == close(case["ndcg(gain=linear)"])
    assert rd.ndcg(true, pred, relevance_col="gain", ideal="shown") == close(
        case["ndcg(gain=linear)"]
    )
    shuffled = pred.sample(frac=1, random_state=1)
    assert rd.ndcg(true, shuffled, relevance_col="gain") == close(case["ndcg(gain=linear)"])


# ----------------------------------------------------------------------------------------------
# textbook

TEXTBOOK = CASES["textbook"]


def textbook():
    """Ratings as `true`, ranks as `pred`, only for what is rated."""
    ratings, ranks = pd.DataFrame(TEXTBOOK["ratings"]), pd.DataFrame(TEXTBOOK["ranks"])
    true = ratings.stack().rename("rating").rename_axis(["user_id", "item_id"]).reset_index()
    pred = ranks.stack().rename("rank").rename_axis(["user_id", "item_id"]).reset_index()
    return true.dropna(), pred.dropna()


def test_textbook_of_liked_items():
    true, pred = textbook()
    expected = TEXTBOOK["expected"]
    options = {"relevance_col": "rating", "min_relevance": 4, "judged_only": True}
    result = rd.evaluate(true, pred, ["mrr", "mapr(normalizer=hits)"], 5, **options)
    assert result.per_user["mrr@5"].tolist() == close(expected["mrr"])
    assert result.per_user["mapr(normalizer=hits)@5"].tolist() == close(
        expected["ap(normalizer=hits)"]
    )
    assert result.summary["value"].tolist() == close([expected["mrr mean"], expected["map mean"]])
    table = rd.evaluate(true, pred, "precision", [1, 2, 3, 4, 5], **options).per_user.filter(
        like="precision"
    )
    precision = expected["precision at 1.. per user (judged items only)"]
    assert table.to_numpy().tolist() == [close(row) for row in precision]


def test_textbook_of_ratings():
    true, pred = textbook()
    expected = TEXTBOOK["expected"]
    options = {"relevance_col": "rating", "judged_only": True, "discount": "jk", "log_base": 2}
    dcg = rd.dcg.per_user(true, pred, 5, **options)["dcg(discount=jk)@5"]
    ndcg = rd.ndcg.per_user(true, pred, 5, **options)["ndcg(discount=jk)@5"]
    assert dcg.tolist() == close(expected["dcg(gain=linear,discount=jk,base=2)"])
    assert (dcg / ndcg).tolist() == close(expected["idcg"])
    assert ndcg.tolist() == close(expected["ndcg"])
    assert rd.ndcg(true, pred, 5, **options) == close(expected["ndcg mean"])


# ----------------------------------------------------------------------------------------------
# course


@pytest.mark.parametrize("form", ["mapping", "frame"])
def test_course(form):
    case = CASES["course"]
    true, pred, expected = case["true"], case["pred"], case["expected"]
    if form == "frame":
        true, pred = rd.logs.from_dict(true), rd.logs.from_dict(pred)
    names = ["hitrate", "precision", "recall", "mrr", "mapr", "ndcg"]
    result = rd.evaluate(
        true, pred, names, case["k"], users=case["population"], undefined=case["undefined"]
    )
    assert result.summary.set_index("metric")["value"].to_dict() == close(
        {name: expected[name] for name in names}
    )
    for name in ("mapr", "ndcg"):
        assert result.per_user[f"{name}@3"].tolist() == close(expected[f"{name} per user"])
    assert result.summary["n"].tolist() == [4] * len(names)


# ----------------------------------------------------------------------------------------------
# candidates


def test_candidates():
    case = CASES["candidates"]
    frame = pd.read_parquet(GOLDEN / case["file"])
    assert " ".join(frame.columns) == case["columns"]
    true, pred = rd.logs.from_labelled(
        frame,
        relevance_col="relevant",
        score_cols=["random", "knn"],
        user_col="object",
        item_col="item",
    )
    options = {"user_col": "object", "item_col": "item", "by": "model"}
    for extra in ({}, {"judged_only": True}):  # every candidate is judged
        result = rd.evaluate(true, pred, ["recall@4", "precision@4"], **options, **extra)
        for model, expected in case["expected"].items():
            rows = result.per_user[result.per_user["model"] == model].sort_values("object")
            summary = result.summary[result.summary["model"] == model].set_index("metric")["value"]
            for name in ("recall", "precision"):
                assert rows[f"{name}@4"].tolist() == close(expected[f"{name}@4"])
                assert summary[name] == close(expected[f"mean_{name}@4"])


# ----------------------------------------------------------------------------------------------
# frames

CALLS = {
    name: cases if isinstance(cases, list) else [cases]
    for name, cases in CASES["frames"].items()
    if name != "about"
}
SIGNATURES = [
    (name, case)
    for name, cases in CALLS.items()
    for case in cases
    if name in rd.__all__ and set(case) == {"true", "pred", "k", "value"}
]


def test_every_signature_is_tried():
    assert {name for name, _ in SIGNATURES} == {"ndcg", "hitrate", "recall", "mrr", "mapr"}


@pytest.mark.parametrize("form", ["mapping", "frame", "other names", "numbers"])
@pytest.mark.parametrize(("name", "case"), SIGNATURES)
def test_call_signatures(name, case, form):
    """A list may show an item twice there ([0, 0]), which is dropped with a warning."""
    metric, true, pred, k = getattr(rd, name), case["true"], case["pred"], case["k"]
    columns = {}
    if form == "numbers":
        true, pred = ({int(user): items for user, items in lists.items()} for lists in (true, pred))
    if form in ("frame", "other names"):
        true, pred = rd.logs.from_dict(true), rd.logs.from_dict(pred)
    if form == "other names":
        columns = {"user_col": "customer", "item_col": "sku"}
        true, pred = (frame.set_axis(["customer", "sku"], axis=1) for frame in (true, pred))
    repeats = any(len(set(items)) < len(items) for items in case["pred"].values())
    if repeats:
        with pytest.warns(rd.DuplicateWarning, match="1 of pred"):
            found = metric(true, pred, k, **columns)
    else:
        found = metric(true, pred, k=k, **columns)
    assert found == close(case["value"])
    assert type(found) is float
