"""Messages say what the caller meant: another word, a cut-off, the frame behind an object, the
separator of a file."""

import pandas as pd
import pytest
from cli.command import run

import recdf as rd

TRUE = pd.DataFrame({"user_id": [1, 1, 2], "item_id": ["a", "b", "c"]})
PRED = pd.DataFrame(
    {
        "model": ["m"] * 3 + ["n"] * 3,
        "user_id": [1, 1, 2] * 2,
        "item_id": ["a", "x", "c", "y", "a", "z"],
        "score": [3.0, 2.0, 1.0] * 2,
    }
)
ONE = PRED[PRED["model"] == "m"].drop(columns="model")
RESULT = rd.evaluate(TRUE, PRED, ["precision@2", "ndcg@2", "ndcg@1"], by="model")
INDEXED = pd.Series(1.0, pd.MultiIndex.from_frame(TRUE))
TOP = pd.DataFrame({"user_id": [1, 2], "model": ["m", "n"], "1": ["a", "b"], "2": ["c", "d"]})
TWICE = pd.DataFrame({"item_id": ["a", "a"], "category": ["p", "q"]})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rd.evaluate(TRUE, ONE, "ndcg@2", threshold=4), "relevance .* is min_relevance=$"),
        (lambda: rd.ndcg(TRUE, ONE, 2, threshold=4), "relevance that counts is min_relevance=$"),
        (lambda: rd.evaluate(TRUE, ONE, "ndcg@2", confidence=0.9), r"rd\.summarize\(result, conf"),
        (lambda: rd.ndcg(INDEXED, ONE, 2), r"index holds the ids: pass true\.reset_index\(\)"),
        (lambda: rd.ndcg(TRUE, ONE.groupby("user_id"), 2), "pass the frame itself: lists are"),
        (lambda: rd.ndcg(TRUE, ONE.groupby("user_id")["item_id"], 2), "pass the frame itself"),
        (lambda: rd.evaluate(TRUE, TOP, "ndcg@2", by="model"), r"pass wide=\['1', '2'\]"),
        (lambda: RESULT.compare_models(baseline="nn"), "models are .*did you mean 'n'"),
        (lambda: rd.compare_models(RESULT.per_user, baseline="mm"), "did you mean 'm'"),
        (lambda: rd.leaderboard(RESULT, baseline="nn"), "did you mean 'n'"),
        (lambda: rd.evaluate(TRUE, ONE, "categories@2", items=TWICE), r"one cell: 'a\|b', or a l"),
        (
            lambda: rd.diagnostics.compare_conventions(TRUE, ONE, 2),
            "metric 2 is an int; expected a string such as 'ndcg@10'",
        ),
        (
            lambda: rd.diagnostics.compare_conventions(TRUE, ONE, "ndcg(gain=exp2)@2"),
            "has parameters, which are here those of each convention; pass 'ndcg'",
        ),
        (
            lambda: rd.evaluate(TRUE, PRED, "user_coverage", by="model").compare_models(),
            r"no metric of the evaluation is per list \(user_coverage@10\)",
        ),
    ],
)
def test_messages(call, words):
    with pytest.raises((rd.OptionError, rd.ColumnError, rd.DataError, TypeError), match=words):
        call()


@pytest.mark.parametrize(
    ("budget", "words"),
    [("precision", "did you mean 'precision@2'"), ("ndcg@5", "evaluated at another k")],
)
def test_a_gate_names_the_metric_with_its_cut_off(budget, words):
    one = rd.evaluate(TRUE, ONE, ["precision@2", "ndcg@2"])
    with pytest.raises(rd.ColumnError, match=words):
        rd.gate(one, one, {budget: "-5%"})


def test_conventions_take_metrics_with_cut_offs():
    table = rd.diagnostics.compare_conventions(TRUE, ONE, ["ndcg@1", "recall"], 2)
    assert table.groupby("metric")["k"].unique().map(list).to_dict() == {"ndcg": [1], "recall": [2]}
    first = table[table["metric"] == "ndcg"]["value"].iloc[0]
    assert first == rd.ndcg(TRUE, ONE, 1, like=table["convention"].iloc[0])


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_file_with_another_separator_is_named(mark, tmp_path, capsys):
    one = pd.DataFrame({f"user_id{mark}item_id": [f"1{mark}a"]})
    words = "one column, .*: the separator of its file is "
    with pytest.raises(rd.ColumnError, match=words):
        rd.ndcg(one, ONE, 2)
    if mark == ";":
        one.to_csv(tmp_path / "true.csv", index=False)
        ONE.to_csv(tmp_path / "pred.csv", index=False)
        given = ["--true", tmp_path / "true.csv", "--pred", tmp_path / "pred.csv", "-m", "ndcg"]
        code, _, said = run(capsys, "evaluate", *given)
        assert code == 2
        assert "the separator of its file is ';'" in said
