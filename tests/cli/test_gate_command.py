"""`recdf gate`, as a pipeline calls it, and `recdf compare --fail-on worse`."""

import json
import subprocess
import sys

import pandas as pd
import pytest
from cli.command import WITH_RECDF, fails, run
from cli.shop import SHOP, models

import recdf as rd


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    """Folders new, old, bad and all, in the working folder."""
    monkeypatch.chdir(tmp_path)
    for folder, model in (("new", "knn"), ("old", "popularity"), ("bad", "random")):
        rd.evaluate(SHOP.true, SHOP.pred[SHOP.pred["model"] == model], ["ndcg@10", "recall@10"]).to_parquet(folder)
    models().to_parquet("all")
    return tmp_path


GATE = ("gate", "new", "--baseline", "old", "--budget", "ndcg@10=-2%")


def test_pass_writes_what_a_pipeline_keeps(capsys):
    code, out, err = run(capsys, *GATE, "recall@10=-0.05", "--junit", "out.xml", "--summary", "out.md", "--out", "kept")
    assert (code, err) == (0, "")
    assert out.startswith("Passed: 2 of 2 budgets are met")
    with open("out.md", encoding="utf-8") as file:
        assert file.read().startswith("### Passed: 2 of 2 budgets are met")
    with open("out.xml", encoding="utf-8") as file:
        assert 'tests="2"' in file.read()
    want = rd.gate("new", "old", {"ndcg@10": "-2%", "recall@10": -0.05}).table
    pd.testing.assert_frame_equal(pd.read_parquet("kept/gate.parquet"), want)
    with open("kept/run.json", encoding="utf-8") as file:
        record = json.load(file)
    assert record["exit"] == 0
    assert {"results", "baseline"} <= set(record["inputs"])


def test_exit_codes(capsys):
    undecided = ("gate", "new", "--baseline", "new", "--budget", "ndcg@10=-0.001")
    assert run(capsys, "gate", "bad", "--baseline", "old", "--budget", "ndcg@10=-2%", "--out", "kept")[0] == 1
    assert pd.read_parquet("kept/gate.parquet")["verdict"].tolist() == ["fail"]
    assert run(capsys, *undecided, "--out", "open")[0] == 3
    with open("open/run.json", encoding="utf-8") as file:
        assert json.load(file)["exit"] == 3
    assert run(capsys, *undecided, "--undecided", "pass")[0] == 0
    assert run(capsys, *undecided, "--undecided", "fail")[0] == 1
    assert run(capsys, *undecided, "--undecided", "pass", "--junit", "o.xml")[0] == 0
    with open("o.xml", encoding="utf-8") as file:
        assert "<skipped" in file.read()


def test_bad_calls_are_named(capsys):
    assert "nowhere" in fails(capsys, "gate", "nowhere", "--baseline", "old", "--budget", "ndcg@10=-2%")
    assert "nowhere" in fails(capsys, "gate", "new", "--baseline", "nowhere", "--budget", "ndcg@10=-2%")
    assert "allows what is better" in fails(capsys, *GATE[:-1], "ndcg@10=+2%")
    assert "expected a metric and what it may lose" in fails(capsys, *GATE[:-1], "ndcg@10")
    assert "expected a share" in fails(capsys, *GATE[:-1], "ndcg@10=-2pp")
    assert "at another k" in fails(capsys, *GATE[:-1], "ndcg@5=-2%")
    assert "country" in fails(capsys, *GATE, "--segment", "country")
    assert "has 3 values of 'model'" in fails(capsys, "gate", "all", "--baseline", "old", "--budget", "ndcg@10=-2%")
    assert "without --by" in fails(capsys, *GATE, "--model", "knn")
    assert "--budget" in fails(capsys, "gate", "new", "--baseline", "old")


def test_one_of_several_recommenders(capsys):
    call = ("gate", "all", "--model", "knn", "--baseline", "all", "--baseline-model", "popularity")
    code, out, _ = run(capsys, *call, "--budget", "ndcg@10=-2%", "--format", "json")
    assert code == 0
    want = rd.gate("new", "old", {"ndcg@10": "-2%"}).table
    assert json.loads(out)[0]["change_low"] == pytest.approx(want["change_low"].iloc[0])


def test_segments_that_were_carried(capsys):
    for folder, model in (("n", "knn"), ("o", "popularity")):
        pred = SHOP.pred[SHOP.pred["model"] == model].merge(SHOP.users[["user_id", "segment"]])
        rd.evaluate(SHOP.true, pred, "ndcg@10", carry={"segment": "constant"}).to_parquet(folder)
    call = ("gate", "n", "--baseline", "o", "--budget", "ndcg@10=-20%", "ndcg@10[segment]=-50%")
    code, out, _ = run(capsys, *call)
    assert "[segment=" in out
    assert code in (0, 3)


@pytest.mark.slow
def test_a_shell_stops_where_the_gate_does(tmp_path):
    """With `set -e` the deployment behind the gate runs only if it passed."""
    python = f"{sys.executable} -m recdf"
    for candidate, after in (("new", "deployed\n"), ("bad", "")):
        script = f"set -e; {python} gate {candidate} --baseline old --budget ndcg@10=-2% -q; echo deployed"
        done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=WITH_RECDF, capture_output=True, text=True)
        assert (done.stdout, done.returncode) == (after, 0 if after else 1)


def test_compare_fails_on_worse(capsys):
    call = ("compare", "all", "--model", "random", "--baseline", "popularity")
    assert run(capsys, *call)[0] == 0
    assert run(capsys, *call, "--fail-on", "worse")[0] == 1
    assert run(capsys, "compare", "all", "--model", "knn", "--baseline", "popularity", "--fail-on", "worse")[0] == 0
