"""Warnings about judgements that cannot tell a ranking, and about side tables that know nothing or
little."""

import re

import numpy as np
import pandas as pd
import pytest

import recdf as rd

TRUE = pd.DataFrame(
    {"user_id": [1, 1, 2], "item_id": ["a", "b", "c"], "relevance": [1.0, 1.0, 1.0]}
)
PRED = pd.DataFrame({"user_id": [1, 1, 1, 2, 2], "item_id": list("xabyc"), "rank": [1, 2, 3, 1, 2]})
ENTRIES = ["evaluate", "metric", "per_user", "files", "parts"]


@pytest.fixture(params=ENTRIES)
def call(request, tmp_path):
    """The mean of one metric, by each way in which it can be asked for."""

    def work(metric, true=TRUE, pred=PRED, **options):
        if request.param == "evaluate":
            return rd.evaluate(true, pred, f"{metric}@3", **options).summary["value"].iloc[0]
        if request.param in ("metric", "per_user"):
            function = (
                rd.METRICS[metric] if request.param == "metric" else rd.METRICS[metric].per_user
            )
            given = {"true": true} if "true" in rd.METRICS[metric].arguments else {}
            found = function(k=3, pred=pred, **given, **options)
            return found if request.param == "metric" else found[f"{metric}@3"].mean()
        for name, frame in (("true", true), ("pred", pred)):
            frame.to_parquet(tmp_path / f"{name}.parquet", index=False)
        buckets = None if request.param == "files" else 3
        paths = tmp_path / "true.parquet", tmp_path / "pred.parquet"
        return (
            rd.evaluate_parquet(*paths, f"{metric}@3", buckets=buckets, **options)
            .summary["value"]
            .iloc[0]
        )

    return work


# ------------------------------------------------------------------------------------------------
# judgements


@pytest.mark.few(1)
def test_bpref_without_judged_negatives_says_that_it_is_recall(call):
    with pytest.warns(
        rd.JudgedWarning, match=r"2 of 2 lists .* none that true judges as not relevant, .*bpref@3"
    ):
        assert call("bpref") == call("recall")
    judged = pd.concat([TRUE, TRUE[:1].assign(item_id="x", relevance=0.0)])
    call("bpref", true=judged)  # half of the lists have one
    call("ndcg")


@pytest.mark.few(1)
def test_judged_only_with_positives_alone(call):
    with pytest.warns(
        rd.JudgedWarning, match=r"2 of 2 lists .* judgements that are all alike.*judged_only=False"
    ):
        assert call("ndcg", judged_only=True) == 1.0
    call(
        "ndcg", true=TRUE.assign(relevance=[1.0, 2.0, 1.0]), judged_only=True
    )  # grades tell the ranking of a list
    call("ndcg", true=TRUE.assign(relevance=[5.0, 2.0, 4.0]), judged_only=True, min_relevance=3.0)


@pytest.mark.few(1)
def test_a_convention_of_judged_only_warns_too(call):
    with pytest.warns(rd.JudgedWarning):
        call("ndcg", like=rd.Convention("condensed", options={"judged_only": True}))
    with pytest.warns(rd.JudgedWarning):
        call("bpref", like="trec_eval")


def test_a_single_list_with_negatives_is_not_enough():
    """Nearly all lists still say nothing; the counts stand in the spec."""
    true = pd.DataFrame({"user_id": range(100), "item_id": "a", "relevance": 1.0})
    pred = pd.DataFrame({"user_id": range(100), "item_id": "a", "rank": 1})
    true = pd.concat([true, pd.DataFrame({"user_id": [5], "item_id": ["z"], "relevance": [0.0]})])
    with pytest.warns(
        rd.JudgedWarning, match=r"99 of 100 lists .*spec\['counts'\] has 'lists_without_negatives'"
    ):
        result = rd.evaluate(true, pred, "bpref")
    assert result.spec["counts"]["lists_without_negatives"] == 99


# ------------------------------------------------------------------------------------------------
# side tables

OTHERS = {
    "log": pd.DataFrame({"user_id": [7], "item_id": ["q"]}),
    "items": pd.DataFrame({"item_id": ["q", "r"], "category": ["m", "n"]}),
    "features": pd.DataFrame({"item_id": ["q", "r"], "f": [1.0, 2.0]}),
    "aspects": pd.DataFrame({"aspect": ["m"], "item_id": ["q"]}),
    "base": pd.DataFrame({"user_id": [7], "item_id": ["q"], "rank": [1]}),
    "popular": ["q", "r"],
}


@pytest.mark.few(10)
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.filterwarnings("ignore::recdf.UnknownWarning")
def test_a_side_table_without_an_item_of_the_frames(name, call):
    words = rf"{name}= has no item of true or pred.*'x', 'a'; {name}\['item_id'\]: 'q'"
    with pytest.warns(rd.NoOverlapWarning) as found:
        call("recall", **{name: OTHERS[name]}) if name in ("items",) else rd.evaluate(
            TRUE, PRED, "recall@3", **{name: OTHERS[name]}
        )
    assert any(re.search(words, str(one.message)) for one in found)


@pytest.mark.few(1)
def test_users_whom_a_log_does_not_know(call):
    log = pd.DataFrame({"user_id": [7, 8, 9], "item_id": ["a", "x", "c"]})
    with pytest.warns(
        rd.NoOverlapWarning, match=r"2 of 2 lists are of users that log= lacks\. unseen@3"
    ):
        assert call("unseen", log=log) == 1.0
    rd.surprisal(log, PRED[PRED["item_id"].isin(["a", "x", "c"])])  # it reads no users
    with pytest.warns(rd.UnknownWarning, match="1 of 2 lists are of users that log= lacks"):
        call("unseen", log=log.assign(user_id=[1, 8, 9]))


def test_users_whom_a_baseline_does_not_have():
    with pytest.warns(rd.NoOverlapWarning, match="base= has no user of the evaluated lists"):
        rd.evaluate(TRUE, PRED, "recall@3", base=PRED.assign(user_id=9))


def test_given_users_that_are_not_in_pred():
    true = pd.concat([TRUE, TRUE.assign(user_id=5)])
    with pytest.warns(rd.NoOverlapWarning, match="none of the given users is in pred"):
        rd.evaluate(true, PRED, "recall@3", users=[5])


@pytest.mark.few(1)
def test_features_of_half_of_the_items_are_said_in_counts(call):
    features = pd.DataFrame({"item_id": ["x", "a"], "f": [1.0, 2.0]})
    with pytest.warns(
        rd.UnknownWarning,
        match=r"3 of 5 recommended rows are of items without features\. ild@3 leaves",
    ):
        call("ild", features=features)
    call("ild", features=pd.DataFrame({"item_id": list("xabyc"), "f": np.arange(5.0)}))


def test_items_without_a_category_are_said_in_counts(call):
    items = pd.DataFrame({"item_id": list("xabyc"), "category": ["m", None, None, None, "n"]})
    with pytest.warns(
        rd.UnknownWarning, match="3 of 5 recommended rows are of items without a category"
    ):
        call("category_entropy", items=items)


def test_a_catalogue_that_lacks_most_items():
    with pytest.warns(
        rd.UnknownWarning, match="4 of 5 recommended rows are of items that items= lacks"
    ):
        rd.evaluate(TRUE, PRED, "coverage@3", items=["x", "q"])
    with pytest.warns(rd.NoOverlapWarning) as found:
        assert rd.coverage(["q", "r"], PRED, 3) == 0.0
    assert len(found) == 1
