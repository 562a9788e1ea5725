"""A result shows itself: rounded, aligned, cut, escaped."""

import shutil

import pandas as pd
import pytest

import recdf as rd

BAD = "<script>alert(1)</script>"


@pytest.fixture
def wide(monkeypatch):
    monkeypatch.setattr(
        shutil, "get_terminal_size", lambda *_: type("Size", (), {"columns": 150})()
    )


def result(models=("a", "b"), ks=(1, 2), metrics=("ndcg", "recall")):
    pred = pd.DataFrame({"model": list(models), "user_id": "u", "item_id": "x"})
    return rd.evaluate({"u": ["x"], "v": ["y"]}, pred, list(metrics), k=list(ks), by="model")


def test_one_row_a_model_and_metric_and_one_column_a_k(wide):
    title, head, *rows = repr(result()).splitlines()
    assert "per_user 4 × " in title
    assert head.split() == ["model", "metric", "@1", "@2", "n"]
    assert [row.split()[:2] for row in rows] == [
        ["a", "ndcg"],
        ["a", "recall"],
        ["b", "ndcg"],
        ["b", "recall"],
    ]
    # Values 1 and 0: mean .5, standard deviation √.5, standard error .5, half interval 12.706 · .5
    # (t, one degree).
    assert rows[0].split()[2:5] == ["0.5", "±", "6.4"]
    assert len({len(row) for row in (head, *rows)}) == 1


def test_a_narrow_window_has_no_intervals(monkeypatch):
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_: type("Size", (), {"columns": 36})())
    assert "±" not in repr(result())


@pytest.mark.long
def test_long_results_are_cut(wide):
    many = result(models=[f"m{i:04}" for i in range(500)], ks=range(1, 20))
    for text in (repr(many), many._repr_html_()):
        assert "970 more rows and 13 more k; .summary has all 19,000 rows" in text
    assert len(repr(many).splitlines()) == 33
    assert many._repr_html_().count("<tr>") < 45


def test_a_metric_without_k_has_a_column_of_its_own(wide):
    ratings = pd.DataFrame({"user_id": ["u"], "item_id": ["x"], "score": [3.0]})
    true = pd.DataFrame({"user_id": ["u"], "item_id": ["x"], "relevance": [4.0]})
    text = repr(rd.evaluate(true, ratings, ["mae", "ndcg@5"], relevance_col="relevance"))
    assert text.splitlines()[1].split() == ["metric", "value", "@5", "n"]


def test_every_text_is_escaped():
    bad = rd.evaluate(
        {BAD: [BAD]}, pd.DataFrame({BAD: [BAD], "user_id": BAD, "item_id": BAD}), "mrr@1", by=BAD
    )
    bad.spec["recdf"] = BAD  # as a file from elsewhere could say
    page = bad._repr_html_()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 4


def test_a_stored_result_shows_itself(tmp_path, wide):
    result().to_parquet(tmp_path / "r")
    assert repr(rd.read_parquet(tmp_path / "r")) == repr(result())
