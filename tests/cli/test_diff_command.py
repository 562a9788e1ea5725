"""`recdf diff` of two results, of two files of recommendations, and of both."""

from pathlib import Path

import pandas as pd
import pytest
from cli.command import fails, run
from cli.shop import SHOP

import recdf as rd


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder, model in (("new", "knn"), ("old", "popularity")):
        pred = SHOP.pred[SHOP.pred["model"] == model].drop(columns="model")
        rd.evaluate(SHOP.true, pred, ["ndcg@10"]).to_parquet(folder)
        pred.to_parquet(f"{folder}.parquet")


@pytest.mark.long
def test_two_results(capsys):
    code, out, err = run(capsys, "diff", "old", "new", "--out", "kept")
    assert (code, err) == (0, "")
    assert out.startswith(repr(rd.diff("old", "new")))
    pd.testing.assert_frame_equal(
        pd.read_parquet("kept/lists.parquet"), rd.diff("old", "new").per_list
    )
    assert not Path("kept/items.parquet").exists()


@pytest.mark.long
def test_two_files_of_recommendations(capsys):
    want = rd.diff(pd.read_parquet("old.parquet"), pd.read_parquet("new.parquet"), k=5)
    code, _, err = run(capsys, "diff", "old.parquet", "new.parquet", "--k", "5", "--out", "kept")
    assert (code, err) == (0, "")
    pd.testing.assert_frame_equal(pd.read_parquet("kept/items.parquet"), want.items)
    pd.testing.assert_frame_equal(pd.read_parquet("kept/summary.parquet"), want.summary)


@pytest.mark.long
def test_results_with_their_recommendations(capsys):
    code, out, _ = run(
        capsys, "diff", "old", "new", "--pred", "old.parquet", "new.parquet", "--format", "csv"
    )
    assert code == 0
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == [
        "ndcg@10",
        "overlap@10",
        "rbo@10",
    ]


def test_bad_calls_are_named(capsys):
    assert "nowhere: no such file" in fails(capsys, "diff", "nowhere", "new")
    assert "new.parquet is no result, and the other side is one" in fails(
        capsys, "diff", "old", "new.parquet"
    )
    assert "--pred holds 1; expected two" in fails(
        capsys, "diff", "old", "new", "--pred", "old.parquet"
    )
    assert "--pred stands beside two results" in fails(
        capsys, "diff", "old.parquet", "new.parquet", "--pred", "old.parquet", "new.parquet"
    )
    assert "choose from results" in fails(
        capsys, "diff", "old.parquet", "new.parquet", "--after-model", "knn"
    )
    for flag in ("--user-col", "--item-col"):
        assert "before has no column 'nope'" in fails(
            capsys, "diff", "old.parquet", "new.parquet", flag, "nope"
        )
    assert "--p" in fails(capsys, "diff", "old.parquet", "new.parquet", "--p", "2")


@pytest.mark.long
def test_one_of_several_recommenders(capsys):
    rd.evaluate(SHOP.true, SHOP.pred, ["ndcg@10"], by="model").to_parquet("all")
    SHOP.pred.to_parquet("all.parquet")
    assert "name one: --before-model" in fails(capsys, "diff", "all", "new")
    call = (
        "diff",
        "all",
        "all",
        "--before-model",
        "popularity",
        "--after-model",
        "knn",
        "--format",
        "csv",
    )
    code, out, _ = run(capsys, *call, "--pred", "all.parquet", "all.parquet")
    same = ("diff", "old", "new", "--pred", "old.parquet", "new.parquet", "--format", "csv")
    assert (code, out) == run(capsys, *same)[:2]


@pytest.mark.few(1)
@pytest.mark.parametrize("flag", ["--item-col", "--rank-col", "--score-col"])
def test_columns_of_recommendations_need_them(flag, capsys):
    said = fails(capsys, "diff", "old", "new", flag, "sku")
    assert f"{flag} sku names a column of recommendations" in said
    assert "pass their recommendations as --pred" in said
    Path("recdf.toml").write_text(f"{flag.strip('-')} = 'sku'\n", encoding="utf-8")
    code, out, _ = run(capsys, "diff", "old", "new")  # a project names the columns of all its jobs
    assert (code, out) == run(capsys, "diff", "old", "new", "--no-project")[:2]


@pytest.mark.long
def test_results_that_do_not_compare_fail_a_job_that_asks_for_it(capsys):
    pred = pd.read_parquet("new.parquet")
    rd.evaluate(SHOP.true, pred, ["ndcg@10"], ties="item_asc").to_parquet("ties")
    for folder, ended in (("ties", 1), ("old", 0)):
        code, out, err = run(
            capsys, "diff", "new", folder, "--format", "json", "--fail-on", "warning"
        )
        assert code == ended
        assert ("not comparable: option ties: item_desc before" in err) == bool(ended)
        assert out.startswith("[{")
