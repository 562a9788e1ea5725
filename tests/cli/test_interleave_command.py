"""`recdf interleave` and `recdf interleaved`: from two files of lists to a preference."""

import json

import numpy as np
import pandas as pd
import pytest
from cli.command import fails, run

import recdf as rd


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Two recommenders of 300 users as a.csv and b.parquet, in the working folder."""
    monkeypatch.chdir(tmp_path)
    for name, own in (("a", ["x", "y", "z"]), ("b", ["u", "v", "x"])):
        rows = pd.DataFrame({"user": np.repeat(np.arange(300), 3), "item_id": np.tile(own, 300)})
        rows["rank"] = np.tile([1, 2, 3], 300)
        rows.to_csv(f"{name}.csv", index=False)
        rows.to_parquet(f"{name}.parquet", index=False)


MIX = (
    "interleave",
    "--a",
    "a.csv",
    "--b",
    "b.parquet",
    "--user-col",
    "user",
    "-k",
    "2",
    "--out",
    "mixed",
)


def clicks_on(team):
    log = pd.read_parquet("mixed/lists.parquet")
    log[(log["team"] == team) & (log["user"] % 3 > 0)][["user", "item_id"]].to_csv(
        "clicks.csv", index=False
    )


def test_lists_are_those_of_python_and_clicks_decide(capsys):
    code, out, err = run(capsys, *MIX)
    assert (code, err) == (0, "")
    assert out.startswith("300 lists with 600 items: 300 of team a, 300 of team b, 0 of no team")
    want = rd.experiments.interleave(pd.read_csv("a.csv"), pd.read_csv("b.csv"), 2, user_col="user")
    pd.testing.assert_frame_equal(pd.read_parquet("mixed/lists.parquet"), want)
    clicks_on("b")
    call = ("interleaved", "mixed/lists.parquet", "--clicks", "clicks.csv", "--unit-col", "user")
    code, out, err = run(capsys, *call, "--out", "found")
    assert (code, err) == (0, "")
    assert all(
        said in out
        for said in ("300 users, 200 clicks", "200 users prefer b, 0 prefer a", "better")
    )
    found = pd.read_parquet("found/interleaved.parquet")
    assert found[["n_users", "effect"]].values.tolist() == [[300, "better"]]
    printed = json.loads(run(capsys, *call, "--format", "json")[1])
    assert printed[0]["diff"] == pytest.approx(found["diff"].iloc[0])


@pytest.mark.long
def test_exit_codes(capsys):
    run(capsys, *MIX)
    clicks_on("a")
    call = ("interleaved", "mixed/lists.parquet", "--clicks", "clicks.csv", "--unit-col", "user")
    assert run(capsys, *call, "--fail-on", "worse")[0] == 1
    assert run(capsys, *call, "--fail-on", "invalid")[0] == 0
    log = pd.read_parquet("mixed/lists.parquet")
    log[(log["team"] == "a") | (log["user"] % 4 > 0)].to_parquet("lost.parquet")
    assert " prefer a (sign test p = " in run(capsys, *call)[1]
    code, out, _ = run(capsys, "interleaved", "lost.parquet", *call[2:], "--fail-on", "invalid")
    assert (code, "invalid: teams out of balance" in out) == (1, True)
    assert "prefer" not in out  # of teams that are out of balance, nobody knows what users prefer
    log[:0][["user", "item_id"]].to_csv("clicks.csv", index=False)
    assert "0 users prefer b, 0 prefer a (no test possible)" in run(capsys, *call)[1]
    assert "holds lists.parquet" in fails(capsys, *MIX)
    assert "no column 'user_id'" in fails(capsys, *call[:-2])


def test_balanced_warns_in_the_words_of_the_command(capsys):
    code, _, err = run(capsys, *MIX, "--method", "balanced")
    assert code == 0
    assert "Pass --method team_draft" in err
