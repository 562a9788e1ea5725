"""What callers forget: `by=`, the case of a metric's name, and that pandas drops attrs on a
merge."""

import warnings

import pandas as pd
import pytest

import recdf as rd

TRUE = pd.DataFrame({"user_id": [1, 2], "item_id": ["a", "b"]})
PRED = pd.DataFrame(
    {
        "model": ["m", "m", "n", "n"] * 2,
        "user_id": [1, 1, 1, 1, 2, 2, 2, 2],
        "item_id": ["a", "x", "y", "z", "x", "y", "b", "a"],
        "rank": [1, 2] * 4,
    }
)
USERS = pd.DataFrame({"user_id": [1, 2], "segment": ["new", "old"]})


def evaluated():
    return rd.evaluate(TRUE, PRED, "mrr@2", by="model")


def test_ranks_that_repeat_are_warned_of():
    with pytest.warns(rd.RankWarning, match="ranks repeat within a list, .* is by= missing"):
        rd.evaluate(TRUE, PRED, "mrr@2")
    with pytest.warns(rd.RankWarning, match="ranks repeat"):
        rd.mrr(TRUE, PRED, k=2)
    evaluated()  # with by= there is nothing to warn of


def test_files_are_warned_of_too(tmp_path):
    for name, frame in (("true", TRUE), ("pred", PRED)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    with pytest.warns(rd.RankWarning, match="ranks repeat"):
        rd.evaluate_parquet(
            tmp_path / "true.parquet", tmp_path / "pred.parquet", "mrr@2", buckets=3
        )


def test_null_ranks_that_are_last_by_choice_do_not_repeat():
    pred = PRED[PRED["model"] == "m"].assign(rank=[1, None, None, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rd.evaluate(TRUE, pred, "mrr@2", nan_score="last")


def test_check_names_ranks_that_repeat():
    found = rd.check(TRUE, PRED, k=2).set_index("finding")
    row = found.loc["ranks repeat within a list; is by= missing?"]
    assert (row["severity"], row["count"], row["share"]) == ("warning", 2, 1.0)
    assert not any(
        "repeat" in finding for finding in rd.check(TRUE, PRED, k=2, by="model")["finding"]
    )


@pytest.mark.parametrize(
    ("text", "column"), [("NDCG@2", "ndcg@2"), ("MaP@2", "map@2"), ("Hitrate", "hitrate@2")]
)
def test_metric_strings_in_any_case(text, column):
    found = rd.evaluate(TRUE, PRED, text, k=2, by="model").per_user
    assert found.columns[-1] == column
    other = rd.evaluate(TRUE, PRED, text.lower(), k=2, by="model").per_user
    pd.testing.assert_frame_equal(found, other)


def test_an_own_metric_with_capitals_keeps_them():
    @rd.metric
    def Own_Hits(lists):
        "Hits in the first k; larger is better."
        return lists.n_hits > 0

    assert rd.evaluate(TRUE, PRED, "Own_Hits@2", by="model").per_user.columns[-1] == "Own_Hits@2"


def test_summarize_takes_the_result_itself():
    result = evaluated()
    pd.testing.assert_frame_equal(rd.summarize(result), rd.summarize(result.per_user))
    pd.testing.assert_frame_equal(
        rd.summarize(result, by="model"), rd.summarize(result.per_user, by="model")
    )
    with pytest.raises(TypeError, match=r"expected Evaluation\.per_user, or the Evaluation itself"):
        rd.summarize("result")


def test_a_merge_does_not_pool_models():
    joined = evaluated().per_user.merge(USERS, on="user_id", validate="many_to_one")
    joined.attrs = {}
    with pytest.raises(rd.DataError, match=r"\['model', 'user_id'\].*name those in within="):
        rd.diagnostics.user_gap(joined, by="segment")
    with pytest.raises(rd.DataError, match="name those in by="):
        rd.summarize(joined)
    # By hand: model m has 1 for user 1 and 0 for user 2, model n the reverse; together they would
    # be equal.
    gaps = rd.diagnostics.user_gap(joined, by="segment", within="model")
    assert gaps[["model", "gap"]].to_numpy().tolist() == [["m", 1.0], ["n", 1.0]]
    kept = evaluated().per_user.assign(segment=["new", "old"] * 2)
    pd.testing.assert_frame_equal(rd.diagnostics.user_gap(kept, by="segment"), gaps)
    assert rd.summarize(joined, by=[], user_col=["model", "user_id"])["n"].tolist() == [4]


def test_one_key_column_needs_no_word():
    one = rd.evaluate(TRUE, PRED[PRED["model"] == "m"], "mrr@2").per_user.merge(USERS, on="user_id")
    one.attrs = {}
    assert rd.diagnostics.user_gap(one, by="segment")["gap"].tolist() == [1.0]
    assert rd.summarize(one)["n"].tolist() == [2]
