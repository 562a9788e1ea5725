"""`evaluate` and `Evaluation`: schemas, metric strings, own names, the spec, and how a result shows
itself."""

import copy
import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from registry.seeded import distinct, frames, quietly

import recdf as rd

TRUE = {"u": ["a", "b"], "v": ["c"]}
PRED = {"u": ["a", "x", "b"], "v": ["x", "c"]}
SUMMARY = ["metric", "k", "value", "std", "se", "ci_low", "ci_high", "n", "n_undefined"]


def columns_of(metrics, k=10, **options):
    return list(rd.evaluate(TRUE, PRED, metrics, k, **options).per_user.columns[3:])


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("metrics", "k", "expected"),
    [
        ("ndcg@5", 10, ["ndcg@5"]),
        ("ndcg", 7, ["ndcg@7"]),
        ("ndcg", [1, 5], ["ndcg@1", "ndcg@5"]),
        ("ndcg", (5, 1, 5), ["ndcg@5", "ndcg@1"]),
        ("ndcg", range(1, 3), ["ndcg@1", "ndcg@2"]),
        ("ndcg", np.array([3]), ["ndcg@3"]),
        (["ndcg", "recall@3"], [1, 5], ["ndcg@1", "ndcg@5", "recall@3"]),
        (("ndcg", rd.recall), 5, ["ndcg@5", "recall@5"]),
        (rd.recall, 5, ["recall@5"]),
        ("mapr(normalizer=achievable)@20", 5, ["mapr(normalizer=achievable)@20"]),
        (" mapr( normalizer = achievable ) @ 20 ", 5, ["mapr(normalizer=achievable)@20"]),
        (
            "ndcg(gain=exp2,discount=none,log_base=3)",
            2,
            ["ndcg(gain=exp2,discount=none,log_base=3)@2"],
        ),
        ("map@5", 5, ["map@5"]),
        ("rprecision", [1, 5], ["rprecision"]),
        ({"mine": "ndcg@5"}, 10, ["mine"]),
        ({"mine": rd.ndcg}, 5, ["mine"]),
        ({"mine": "ndcg"}, [1, 5], ["mine@1", "mine@5"]),
        ({"mine": "ndcg(gain=exp2)@3", "yours": "ndcg@3"}, 5, ["mine", "yours"]),
        ({"r": "rprecision"}, [1, 5], ["r"]),
    ],
)
def test_columns(metrics, k, expected):
    assert columns_of(metrics, k) == expected


def test_confusion_has_four_columns():
    assert columns_of("confusion", 2, items=list("abcx")) == ["tp@2", "fp@2", "fn@2", "tn@2"]
    with pytest.raises(rd.OptionError, match="takes no own name"):
        columns_of({"mine": "confusion"}, 2, items=list("abcx"))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::recdf.UnknownWarning")
def test_aliases_compute_the_same():
    side = {"log": TRUE, "features": {item: [len(item), ord(item)] for item in "abcx"}}
    prices = {
        "items": pd.DataFrame({"item_id": list("abcx"), "price": [1.0, 2.0, 4.0, 8.0]}),
        "value_col": "price",
    }
    for metric in rd.METRICS.values():
        for alias in metric.aliases:
            options = prices if "value" in metric.needs else {}
            table = rd.evaluate(TRUE, PRED, [metric.name, alias], 2, **side, **options).per_user
            assert table[f"{alias}@2"].tolist() == table[f"{metric.name}@2"].tolist()


def test_schema():
    true, pred = frames(5)
    result = quietly(
        rd.evaluate,
        true,
        pred,
        ["ndcg", "recall", "rprecision"],
        [1, 5],
        by="model",
        score_col="score",
        nan_score="last",
    )
    per_user, summary = result.per_user, result.summary
    metrics = ["ndcg@1", "ndcg@5", "recall@1", "recall@5", "rprecision"]
    assert list(per_user.columns) == ["model", "user_id", "n_true", "n_pred", *metrics]
    assert list(map(str, per_user.dtypes[1:])) == ["int64"] * 3 + ["float64"] * 5
    assert per_user["model"].dtype == pred["model"].dtype
    assert list(summary.columns) == ["model", *SUMMARY]
    assert list(map(str, summary.dtypes[2:])) == ["Int64"] + ["float64"] * 5 + ["int64"] * 2
    assert summary["metric"].tolist() == ["ndcg", "ndcg", "recall", "recall", "rprecision"] * 2
    assert summary["k"].tolist() == [1, 5, 1, 5, pd.NA] * 2
    assert (
        summary["model"].tolist() == [pred["model"].iloc[0]] * 5 + [pred["model"].unique()[1]] * 5
    )
    for frame in (per_user, summary):
        assert isinstance(frame.index, pd.RangeIndex)
        assert frame.columns.nlevels == 1
    users = true["user_id"].drop_duplicates().tolist()
    assert per_user["user_id"].tolist() == users * 2
    assert len(summary) == 10
    assert (summary["n"] + summary["n_undefined"] == len(users)).all()


def test_lists_stand_in_order_of_first_appearance():
    true, pred = distinct(3)
    true = true.sample(frac=1, random_state=5)
    pred = pred[pred["model"] == "a"].sample(frac=1, random_state=5)
    for users, frame in (("true", true), ("pred", pred)):
        found = rd.evaluate(true, pred, "mrr@1", users=users).per_user["user_id"].tolist()
        assert found == frame["user_id"].drop_duplicates().tolist()


@pytest.mark.parametrize("users", ["true", "pred", "all"])
def test_many_lists_stand_in_order_of_first_appearance(users):
    rng = np.random.default_rng(0)
    true = pd.DataFrame(
        {"user_id": rng.integers(0, 3000, 9000), "item_id": rng.integers(0, 10**6, 9000)}
    )
    pred = pd.DataFrame(
        {"user_id": rng.integers(1000, 4000, 9000), "item_id": rng.integers(0, 10**6, 9000)}
    )
    found = quietly(rd.evaluate, true, pred, "mrr@1", users=users).per_user["user_id"].tolist()
    sources = {"true": [true], "pred": [pred], "all": [true, pred]}[users]
    assert found == pd.concat(sources)["user_id"].drop_duplicates().tolist()


def test_spec_is_json_safe_and_says_what_was_computed():
    true, pred = frames(5)
    result = quietly(
        rd.evaluate,
        true,
        pred,
        {"mine": "ndcg(gain=exp2)@3", "r": "rprecision"},
        by=["model"],
        rank_col="rank",
        relevance_col="relevance",
        min_relevance=np.float32(0.5),
        users=np.array([1, 4]),
    )
    spec = result.spec
    assert json.loads(json.dumps(spec)) == spec
    assert re.fullmatch(re.escape(rd.__version__) + r"(\+g[0-9a-f]{12})?", spec["recdf"])
    assert spec["by"] == ["model"]
    assert spec["user_col"] == ["user_id"]
    assert spec["order"] == {"by": "rank", "column": "rank"}
    assert spec["options"]["users"] == "2 given ids"
    assert spec["options"]["min_relevance"] == 0.5
    assert spec["metrics"]["mine"]["k"] == 3
    assert spec["metrics"]["mine"]["definition"].startswith(
        "ndcg(gain=exp2,discount=log,log_base=2,ideal=relevant"
    )
    assert spec["metrics"]["r"]["k"] is None
    assert spec["confidence"] == 0.95
    duplicates = {"true": true, "pred": pred}
    for role, keys in (("true", ["user_id", "item_id"]), ("pred", ["model", "user_id", "item_id"])):
        assert (
            spec["counts"].get(f"{role}_duplicates", 0) <= duplicates[role].duplicated(keys).sum()
        )
    assert result.per_user.attrs["recdf"] == result.summary.attrs["recdf"] == spec


def test_columns_of_a_result_do_not_share_memory():
    """Some metrics are the same array inside; a change of one column must stay there."""
    result = rd.evaluate(TRUE, PRED, ["hits", "confusion", "arhr"], 2, items=list("abcxy"))
    before = result.per_user.copy(deep=True)
    result.per_user.loc[0, "hits@2"] = 99.0
    result.per_user.loc[1, "n_true"] = 99
    changed = [name for name in before if not before[name].equals(result.per_user[name])]
    assert changed == ["n_true", "hits@2"]


def test_the_second_call_equals_the_first():
    true, pred = frames(6)
    options = {"by": "model", "score_col": "score", "nan_score": "last"}
    assert quietly(rd.evaluate, true, pred, "ndcg@3", **options) == quietly(
        rd.evaluate, true, pred, "ndcg@3", **options
    )


def test_min_relevance_and_judged_items_alone():
    true = {"u": {"a": 5, "b": 2}, "v": {"c": 1}}
    found = rd.evaluate(true, PRED, ["recall@3", "hitrate@3"], min_relevance=3).per_user
    assert found["n_true"].tolist() == [1, 0]
    assert found["hitrate@3"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("undefined", ["nan", "zero"])
def test_undefined(undefined):
    result = rd.evaluate({**TRUE, "w": []}, PRED, "recall@3", undefined=undefined)
    expected = np.nan if undefined == "nan" else 0.0
    np.testing.assert_array_equal(result.per_user["recall@3"], [1.0, 1.0, expected])
    assert result.summary[["value", "n", "n_undefined"]].to_numpy().tolist() == (
        [[1.0, 2, 1]] if undefined == "nan" else [[2 / 3, 3, 1]]
    )


def test_a_result_shows_itself():
    result = rd.evaluate(TRUE, PRED, "ndcg@3")
    text, page = repr(result), result._repr_html_()
    assert "2 × 4" in text
    assert "ndcg" in text
    assert page.count("<table") == 2
    assert "ndcg@3" in page


def test_html_escapes_ids():
    page = rd.evaluate({"<script>": ["a"]}, {"<script>": ["a"]}, "mrr@1")._repr_html_()
    assert "<script>" not in page


def test_by_a_day_is_a_warning_that_says_what_to_do():
    """Each day would be scored over the users of all days. Models that are told apart by a date are
    no days."""
    days = pd.to_datetime(["2026-09-01", "2026-09-02", "2026-09-03"])
    true = pd.DataFrame({"user_id": [1, 2, 3], "item_id": ["a", "a", "a"]})
    lists = true.assign(day=days)
    for pred in (lists, lists.assign(day=days.date)):
        with pytest.warns(
            rd.TimeByWarning, match=r"67% of the lists are missing .* user_col=\['user_id', 'day'\]"
        ):
            rd.evaluate(true, pred, "mrr@1", by="day")
    result = rd.evaluate(lists, lists, "mrr@1", user_col=["user_id", "day"])
    assert rd.summarize(result.per_user, by="day")["value"].tolist() == [1.0, 1.0, 1.0]
    snapshots = pd.concat([true.assign(trained=day) for day in days])
    assert len(rd.evaluate(true, snapshots, "mrr@1", by="trained").summary) == 3


def test_the_spec_travels_without_being_copied():
    """Taking a column out of a frame does not copy the spec; a pickle holds a plain dict, which
    needs no recdf."""
    result = rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1")
    assert result.per_user["mrr@1"].attrs["recdf"] is result.spec
    assert copy.deepcopy(result.per_user).attrs["recdf"] == result.spec
    again = pickle.loads(pickle.dumps(result.per_user)).attrs["recdf"]
    assert (type(again), again) == (dict, dict(result.spec))


def test_by_a_column_that_tells_users_apart_is_a_warning():
    """Each variant, or day as text, would be scored over the users of all; two models of the same
    users are fine."""
    true = pd.DataFrame({"user_id": range(10), "item_id": "a"})
    lists = true.assign(variant=["A"] * 5 + ["B"] * 5)
    with pytest.warns(rd.ByWarning, match=r"50% of the lists are missing .* carry=\['variant'\]"):
        result = rd.evaluate(true, lists, "mrr@1", by="variant")
    assert result.summary["value"].tolist() == [0.5, 0.5]
    carried = rd.evaluate(true, lists, "mrr@1", carry="variant")
    assert rd.summarize(carried, by="variant")["value"].tolist() == [1.0, 1.0]
    both = pd.concat([lists, lists.iloc[[0]].assign(variant="B")])  # user 0 has lists of both
    assert len(rd.evaluate(true, both, "mrr@1", by="variant").summary) == 2


@pytest.mark.parametrize("item_by", [["category"], {"category": 1}, {"category"}])
def test_groups_of_items_are_named_by_one_column(item_by):
    items = pd.DataFrame({"item_id": ["a"], "category": ["x"]})
    with pytest.raises(rd.OptionError, match=r"^item_by=.*; expected a name or None"):
        rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "recall@1", items=items, item_by=item_by)
