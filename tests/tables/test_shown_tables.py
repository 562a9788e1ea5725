"""Comparisons and findings show themselves, and are DataFrames in every other respect."""

import pickle
import shutil

import pandas as pd
import pytest

import recdf as rd
from recdf.judge.comparisons import Comparison
from recdf.tables.findings import ShownFindings

BAD = "<script>alert(1)</script>|\u202e"


@pytest.fixture
def comparison():
    users = [f"u{i}" for i in range(40)]
    values = [i % 7 / 7 for i in range(40)]
    models, scores = ["old"] * 40 + [BAD] * 40, [*values, *(value / 2 + 0.1 for value in values)]
    rows = {"model": models, "user_id": users * 2, "ndcg@5": scores}
    return rd.compare_models(pd.DataFrame(rows), "ndcg@5", baseline="old", details=True)


@pytest.fixture
def findings():
    return rd.check({"u": ["a"], BAD: ["b"]}, {"u": ["a", "x"]}, k=2)


def width(monkeypatch, columns):
    monkeypatch.setattr(
        shutil, "get_terminal_size", lambda *_: type("Size", (), {"columns": columns})()
    )


def test_a_comparison_shows_effect_interval_and_verdict(comparison, monkeypatch):
    width(monkeypatch, 200)
    text = repr(comparison)
    assert type(comparison) is Comparison
    row = comparison.iloc[0]
    assert f"{row['diff']:+.3f}".replace("-", "−") in text
    assert row["verdict"] in text
    assert len({len(line.rstrip()) for line in text.splitlines()}) <= 2
    width(monkeypatch, 90)
    narrow = repr(comparison)
    assert "means" not in narrow
    assert row["verdict"] in narrow


def test_findings_show_the_whole_effect(findings, monkeypatch):
    assert type(findings) is ShownFindings
    width(monkeypatch, 90)
    text = repr(findings)
    assert max(map(len, text.splitlines())) <= 90
    words = " ".join(text.split())
    for effect in findings["effect"]:
        assert all(word in words for word in effect.split())


def test_names_are_letters(comparison, findings):
    for table in (comparison, findings):
        page = table._repr_html_()
        assert "<script" not in page
        assert "\u202e" not in page + repr(table)
        assert "&lt;script&gt;" in page


def test_they_are_frames_in_every_other_respect(comparison, findings, tmp_path):
    for table in (comparison, findings):
        plain = pd.DataFrame(table)
        assert (
            type(table.head(1))
            is type(table[table.columns[:2]])
            is type(table.copy())
            is pd.DataFrame
        )
        pd.testing.assert_frame_equal(table, plain)
        pd.testing.assert_frame_equal(plain, table)
        assert table.equals(plain)
        assert pickle.loads(pickle.dumps(table)).equals(plain)
    plain = comparison.drop(columns=["n_resamples", "seed"])
    plain.to_parquet(tmp_path / "c.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "c.parquet"), plain)


def test_clean_data_have_no_findings():
    clean = rd.check({"u": ["a"]}, {"u": ["a", "b"]}, k=2)
    assert len(clean) == 0
    assert repr(clean) == "no findings"
    assert clean._repr_html_() == "<p>no findings</p>"


@pytest.mark.long
def test_long_tables_are_cut(comparison):
    long = Comparison(pd.concat([comparison] * 100, ignore_index=True))
    assert len(repr(long).splitlines()) < 70
    assert "40 more rows" in repr(long)
    assert long._repr_html_().count("<tr>") == 61
