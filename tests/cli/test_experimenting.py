"""`recdf aa` and `recdf srm`."""

import json

import numpy as np
import pandas as pd
import pytest
from cli.command import fails, run
from cli.shop import SHOP

import recdf as rd


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_aa_tests_the_metrics_of_a_result(capsys):
    result = rd.evaluate(SHOP.true, SHOP.shown, ["hits@10", "ndcg@10"], users="pred")
    result.to_parquet("night")
    call = ("aa", "night", "--metric", "ndcg@10", "ctr=hits@10/n_pred", "--n", "200", "--nan", "drop")
    code, out, err = run(capsys, *call, "--out", "found", "--shares", "0.5", "0.5")
    assert (code, err) == (0, "")
    assert "recommended" in out.splitlines()[0]
    metrics = {"ndcg@10": "ndcg@10", "ctr": ("hits@10", "n_pred")}
    want = rd.experiments.aa_test(result.per_user, metrics, n=200, nan="drop")
    pd.testing.assert_frame_equal(pd.read_parquet("found/aa.parquet"), want)
    assert json.loads(run(capsys, *call, "--format", "json")[1])[0]["n_splits"] == 200
    assert run(capsys, "aa", "night", "--n", "50", "--nan", "drop", "--fail-on", "warning")[0] == 0
    assert "two shares" in fails(capsys, *call, "--shares", "1")


def test_srm_names_the_level(capsys):
    n = np.arange(4000)
    users = pd.DataFrame({"user_id": n, "variant": np.where(n % 2, "A", "B"), "browser": np.where(n % 5, "x", "y")})
    users[(users["browser"] == "x") | (users["variant"] == "A") | (n % 3 > 0)].to_csv("users.csv", index=False)
    call = ("srm", "--assignment", "users.csv", "--column", "browser")
    code, out, err = run(capsys, *call, "--out", "found")
    assert (code, err) == (0, "")
    assert out.startswith("all users: p = ")
    want = rd.experiments.find_srm(pd.read_csv("users.csv"), "browser")
    pd.testing.assert_frame_equal(pd.read_parquet("found/srm.parquet"), want, check_dtype=False)
    assert want["verdict"].tolist() == ["invalid: sample ratio", "fits"]
    assert run(capsys, *call, "--fail-on", "invalid")[0] == 1
    assert run(capsys, *call, "--expected", "A=1", "B=1", "--format", "json")[0] == 0
    assert "no column 'country'" in fails(capsys, *call[:-1], "country")
