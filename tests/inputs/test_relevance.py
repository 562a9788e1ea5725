"""A column of `true` named `relevance` is seen, as `rank` and `score` are in `pred`."""

import pandas as pd
import pytest

import recdf as rd

TRUE = pd.DataFrame({"user_id": [1, 1, 1], "item_id": ["a", "b", "c"], "relevance": [1, 0, 0]})
PRED = pd.DataFrame({"user_id": [1, 1, 1], "item_id": ["a", "b", "c"], "rank": [1, 2, 3]})


def test_judged_rows_of_relevance_0_are_no_hits():
    result = rd.evaluate(TRUE, PRED, "precision@3")
    assert result.per_user["precision@3"].tolist() == [1 / 3]
    assert result.spec["relevance"] == "relevance"
    assert rd.precision(TRUE, PRED, k=3) == 1 / 3


def test_false_refuses_the_column():
    result = rd.evaluate(TRUE, PRED, "precision@3", relevance_col=False)
    assert result.per_user["precision@3"].tolist() == [1.0]
    assert result.spec["relevance"] is None
    assert result.spec["options"]["relevance_col"] is False


def test_a_named_column_wins():
    true = TRUE.assign(grade=[0, 2, 0])
    result = rd.evaluate(true, PRED, "mrr@3", relevance_col="grade")
    assert result.per_user["mrr@3"].tolist() == [0.5]
    assert result.spec["relevance"] == "grade"


def test_a_column_with_another_task_is_not_taken():
    true = TRUE.rename(columns={"relevance": "price"}).assign(relevance=[5.0, 6.0, 7.0])
    pred = PRED.assign(relevance=[5.0, 6.0, 7.0])
    assert rd.evaluate(true, pred, "precision@3", value_col="relevance").spec["relevance"] is None
    sessions = TRUE.rename(columns={"user_id": "relevance", "relevance": "other"})
    lists = PRED.rename(columns={"user_id": "relevance"})
    assert rd.precision(sessions, lists, k=3, user_col="relevance") == 1.0


@pytest.mark.parametrize(
    ("relevance", "options", "error", "words"),
    [
        (
            ["high", "low", "low"],
            {},
            rd.DataError,
            "pass relevance_col=False if every row of true is relevant",
        ),
        (["high", "low", "low"], {"relevance_col": "relevance"}, rd.DataError, "expected numbers$"),
        ([1, -1, 0], {}, rd.DataError, "holds 1 negative relevances"),
        ([1, None, 0], {}, rd.DataError, "holds 1 null relevances"),
        (
            [1, 0, 0],
            {"relevance_col": True},
            rd.OptionError,
            "relevance_col=True; expected the name of a column",
        ),
        (
            [1, 0, 0],
            {"relevance_col": False, "min_relevance": 1},
            rd.OptionError,
            "needs relevance_col=",
        ),
    ],
)
def test_what_cannot_be_a_relevance(relevance, options, error, words):
    with pytest.raises(error, match=words):
        rd.evaluate(TRUE.assign(relevance=relevance), PRED, "mrr@3", **options)


def test_files_see_it_too(tmp_path):
    for name, frame in (("true", TRUE), ("pred", PRED)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    paths = tmp_path / "true.parquet", tmp_path / "pred.parquet"
    result = rd.evaluate_parquet(*paths, "precision@3", buckets=2)
    assert result.per_user["precision@3"].tolist() == [1 / 3]
    read = {
        "files": {"true": {"files": 1, "rows": len(TRUE)}, "pred": {"files": 1, "rows": len(PRED)}}
    }
    assert result.spec == rd.evaluate(TRUE, PRED, "precision@3").spec | read
    assert rd.evaluate_parquet(*paths, "precision@3", relevance_col=False).per_user[
        "precision@3"
    ].tolist() == [1.0]


def test_labelled_candidates_need_no_further_word():
    frame = pd.DataFrame(
        {"user_id": [1, 1], "item_id": ["a", "b"], "clicked": [0, 1], "als": [0.9, 0.2]}
    )
    true, pred = rd.logs.from_labelled(frame, relevance_col="clicked", score_cols="als")
    assert list(true.columns) == ["user_id", "item_id", "relevance"]
    assert rd.mrr.per_user(true, pred, 2, by="model")["mrr@2"].tolist() == [0.5]
    with pytest.raises(rd.ColumnError, match="a key column is named 'relevance'"):
        rd.logs.from_labelled(
            frame.rename(columns={"user_id": "relevance"}),
            relevance_col="clicked",
            score_cols="als",
            user_col="relevance",
        )


def test_check_names_a_column_of_0_and_1_that_is_not_used():
    found = rd.check(TRUE.rename(columns={"relevance": "clicked"}), PRED, k=3).set_index("finding")
    row = found.loc["a column of 0 and 1 in true is not used"]
    assert (row["severity"], row["count"], row["examples"]) == ("warning", 2, "true['clicked']")
    unused = "a column of 0 and 1 in true is not used"
    assert unused not in set(rd.check(TRUE, PRED, k=3)["finding"])
    flags = TRUE.rename(columns={"relevance": "clicked"}).astype({"clicked": bool})
    assert unused in set(rd.check(flags, PRED, k=3)["finding"])
    assert unused not in set(rd.check(flags, PRED, k=3, relevance_col="clicked")["finding"])


def test_check_says_that_every_judged_row_is_relevant():
    found = rd.check(TRUE.assign(relevance=[1, 2, 3]), PRED, k=3).set_index("finding")
    assert found.loc["every judged row is relevant", ["severity", "count"]].tolist() == ["info", 3]
    assert "every judged row is relevant" not in set(rd.check(TRUE, PRED, k=3)["finding"])
