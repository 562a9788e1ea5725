"""`recdf aa`, `recdf srm` and `recdf quantiles`."""

import json

import numpy as np
import pandas as pd
import pytest
from cli.command import fails, run
from cli.shop import SHOP

import recdf as rd
from recdf.cli.stored_runs import label


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.long
def test_aa_tests_the_metrics_of_a_result(capsys):
    result = rd.evaluate(SHOP.true, SHOP.shown, ["hits@10", "ndcg@10"], users="pred")
    result.to_parquet("night")
    call = (
        "aa",
        "night",
        "--metric",
        "ndcg@10",
        "ctr=hits@10/n_pred",
        "--n",
        "200",
        "--nan",
        "drop",
    )
    code, out, err = run(capsys, *call, "--out", "found", "--shares", "0.5", "0.5")
    assert (code, err) == (0, "")
    assert "recommended" in out.splitlines()[0]
    metrics = {"ndcg@10": "ndcg@10", "ctr": ("hits@10", "n_pred")}
    want = rd.experiments.aa_test(result.per_user, metrics, n=200, nan="drop")
    pd.testing.assert_frame_equal(pd.read_parquet("found/aa.parquet"), want)
    assert json.loads(run(capsys, *call, "--format", "json")[1])[0]["n_splits"] == 200
    assert run(capsys, "aa", "night", "--n", "50", "--nan", "drop", "--fail-on", "warning")[0] == 0
    assert "two shares" in fails(capsys, *call, "--shares", "1")


@pytest.mark.long
def test_srm_names_the_level(capsys):
    n = np.arange(4000)
    users = pd.DataFrame(
        {"user_id": n, "variant": np.where(n % 2, "A", "B"), "browser": np.where(n % 5, "x", "y")}
    )
    users[(users["browser"] == "x") | (users["variant"] == "A") | (n % 3 > 0)].to_csv(
        "users.csv", index=False
    )
    call = ("srm", "--assignment", "users.csv", "--column", "browser")
    code, out, err = run(capsys, *call, "--out", "found")
    assert (code, err) == (0, "")
    assert out.startswith("all users: p = ")
    want = rd.experiments.find_srm(pd.read_csv("users.csv"), "browser")
    pd.testing.assert_frame_equal(pd.read_parquet("found/srm.parquet"), want, check_dtype=False)
    assert want["verdict"].tolist() == ["invalid: sample ratio", "fits"]
    code, _, err = run(capsys, *call, "--fail-on", "invalid")
    assert (code, err) == (
        1,
        "recdf srm: exit code 1, --fail-on invalid: browser, y, B: invalid: sample ratio\n",
    )
    assert run(capsys, *call, "--expected", "A=1", "B=1", "--format", "json")[0] == 0
    assert "no column 'country'" in fails(capsys, *call[:-1], "country")


@pytest.mark.long
def test_quantiles_and_parts_are_those_of_python(capsys):
    rng, n = np.random.default_rng(0), 3000
    rows = pd.DataFrame(
        {"user_id": np.arange(n) // 3, "ms": rng.gamma(2, 50, n), "spent": rng.poisson(0.3, n)}
    )
    rows["variant"] = np.where(rows["user_id"] % 2, "B", "A")
    rows.loc[rows["variant"] == "B", "ms"] *= 1.3
    rows.to_csv("rows.csv", index=False)
    call = (
        "quantiles",
        "--rows",
        "rows.csv",
        "--control",
        "A",
        "--metric",
        "ms",
        "--smaller-is-better",
        "ms",
    )
    call += ("--cluster", "user_id", "--expected", "A=1", "B=1")
    code, out, err = run(capsys, *call, "--quantiles", "0.5", "0.9", "--out", "found")
    assert (code, err) == (0, "")
    assert "ms p90" in out
    options = {"control": "A", "cluster": "user_id", "expected": {"A": 1, "B": 1}}
    want = rd.experiments.compare_quantiles(
        pd.read_csv("rows.csv"), "ms", quantiles=[0.5, 0.9], smaller_is_better="ms", **options
    )
    pd.testing.assert_frame_equal(
        pd.read_parquet("found/quantiles.parquet"), pd.DataFrame(want), check_dtype=False
    )
    assert run(capsys, *call, "--fail-on", "worse")[0] == 1
    parts = (
        "quantiles",
        "--rows",
        "rows.csv",
        "--control",
        "A",
        "--zero-inflated",
        "spent",
        "--cluster",
        "user_id",
    )
    found = json.loads(run(capsys, *parts, "--format", "json")[1])
    assert [row["metric"] for row in found] == [
        "spent",
        "spent: share above 0",
        "spent: mean above 0",
    ]
    both = [*call, "--zero-inflated", "spent", "--larger-is-better", "spent", "--out", "both"]
    assert run(capsys, *both, "--quantiles", "0.5", "0.9", "--primary", "ms")[0] == 0
    for name, alone in (("quantiles", want), ("parts", pd.DataFrame(found))):
        together = pd.read_parquet(f"both/{name}.parquet")
        assert together["effect"].tolist() == alone["effect"].tolist()
    said = fails(capsys, *both[:-2], "--smaller-is-better", "mss")
    assert "mss" in said
    assert "not compared" in said
    assert "--metric and --zero-inflated are missing" in fails(capsys, *call[:5])
    assert "no such variant" in fails(capsys, *call[:4], "C", *call[5:])


def test_all_pairs_are_compared_only_if_asked_for(capsys):
    rng, n = np.random.default_rng(1), 900
    rows = pd.DataFrame(
        {"user_id": range(n), "variant": ["A", "B", "C"] * (n // 3), "ms": rng.gamma(2, 50, n)}
    )
    rows.to_csv("rows.csv", index=False)
    call = ("quantiles", "--rows", "rows.csv", "--metric", "ms", "--quantiles", "0.5")
    found = json.loads(
        run(capsys, *call, "--all-pairs", "--correction", "holm_sidak", "--format", "json")[1]
    )
    assert [(row["treatment"], row["control"]) for row in found] == [
        ("B", "A"),
        ("C", "A"),
        ("C", "B"),
    ]
    want = rd.experiments.compare_quantiles(
        rows, "ms", quantiles=0.5, control=None, correction="holm_sidak"
    )
    assert [row["p_adj"] for row in found] == pytest.approx(want["p_adj"].tolist())
    assert "one of the arguments --control --all-pairs is required" in fails(capsys, *call)
    assert "not allowed with argument" in fails(capsys, *call, "--control", "A", "--all-pairs")


@pytest.mark.parametrize("kind", [float, int])
def test_a_number_names_its_label_however_it_is_written(kind, capsys):
    rows = pd.DataFrame(
        {"user_id": range(400), "variant": [0, 1] * 200, "ms": [1.0, 2, 3, 5] * 100}
    )
    rows.astype({"variant": kind}).to_parquet("rows.parquet")
    mixed = pd.Series([1.0, "1"], dtype=object)
    assert [label("control", text, mixed) for text in ("1", "1.00")] == ["1", 1.0]
    with pytest.raises(rd.OptionError, match="no such flag"):
        label("control", "1", pd.Series([True, False], name="flag"))
    call = ("quantiles", "--rows", "rows.parquet", "--metric", "ms", "--control")
    for text in ("0", "0.0"):
        assert json.loads(run(capsys, *call, text, "--format", "json")[1])[0]["control"] == 0
    said = fails(capsys, *call, "2")
    assert "no such variant" in said
    assert "did you mean" not in said
