"""Folders of experiments: what was found offline beside what was found online, and what cannot
stand side by side."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main


def run(words):
    """Run the command in this process and return its exit code."""
    return main([str(word) for word in words])


def experiment(folder, seed, *, effect=0.1, metric="hitrate@1", users=0):
    """Write one experiment with the command: an offline comparison of two models, and a test of two
    variants."""
    rng, n = np.random.default_rng(seed), 300
    ids = np.arange(n) + users
    true = pd.DataFrame({"user_id": ids, "item_id": 1})

    def lists(name, value, share):
        return pd.DataFrame(
            {
                name: value,
                "user_id": ids,
                "rank": 1,
                "item_id": np.where(rng.random(n) < share, 1, 2),
            }
        )

    folder.mkdir(parents=True)
    true.to_parquet(folder / "t.parquet")
    pd.concat([lists("model", "old", 0.4), lists("model", "new", 0.4 + effect)]).to_parquet(
        folder / "p.parquet"
    )
    variant = np.where(rng.permutation(n) < n // 2, "A", "B")
    pd.DataFrame({"user_id": ids, "variant": variant}).to_parquet(folder / "a.parquet")
    shown = lists("model", "x", 0.4).drop(columns="model")
    hit = rng.random(n) < np.where(variant == "B", 0.4 + effect, 0.4)
    shown.assign(item_id=np.where(hit, 1, 2)).to_parquet(folder / "s.parquet")
    off, on = folder / "offline", folder / "online"
    true_file = ["--true", folder / "t.parquet"]
    for words in (
        [
            "evaluate",
            *true_file,
            "--pred",
            folder / "p.parquet",
            "--by",
            "model",
            "-m",
            metric,
            "--out",
            off,
        ],
        ["compare", off, "--baseline", "old", "--out", off],
        ["evaluate", *true_file, "--pred", folder / "s.parquet", "-m", metric, "--out", on],
        [
            "experiment",
            on,
            "--assignment",
            folder / "a.parquet",
            "--control",
            "A",
            "--expected",
            "A=1",
            "B=1",
            "--role",
            f"{metric}=success",
            "--out",
            on,
        ],
    ):
        assert run([*words, "-q"]) == 0


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    for at in range(4):
        experiment(folder / f"test-{at}", at, effect=0.1 * at, users=1000 * at)
    return folder


@pytest.mark.long
def test_each_experiment_is_one_row_with_both_differences(archive):
    tests = rd.diagnostics.past_tests(archive)
    assert tests["experiment"].tolist() == [f"test-{at}" for at in range(4)]
    assert tests[
        ["baseline", "model", "control", "treatment"]
    ].drop_duplicates().to_numpy().tolist() == [["old", "new", "A", "B"]]
    offline = rd.read_parquet(archive / "test-2" / "offline").compare_models(baseline="old").iloc[0]
    assert tests.loc[2, "offline_hitrate@1"] == offline["diff"]
    assert tests.loc[2, "offline_hitrate@1_se"] == offline["se"]
    online = pd.read_parquet(archive / "test-2" / "online" / "comparison.parquet").iloc[0]
    assert tests.loc[2, "online_hitrate@1"] == online["diff"]


@pytest.mark.long
def test_every_run_stands_in_the_list_with_its_decision(archive):
    runs = rd.diagnostics.past_runs(archive)
    assert len(runs) == 16
    assert runs["started"].is_monotonic_increasing
    of_last = runs[runs["folder"] == "test-3/online"].set_index("command")["decided"]
    assert of_last["evaluate"] == ""
    assert of_last["experiment"].startswith("B: ")


@pytest.mark.long
def test_the_command_shows_experiments_and_the_relation_and_writes_them(archive, tmp_path, capsys):
    assert run(["history", archive, "--out", tmp_path / "out"]) == 0
    out = capsys.readouterr().out
    assert "test-3" in out
    assert "cannot tell: fewer than 10 experiments" in out
    tests = pd.read_parquet(tmp_path / "out" / "tests.parquet")
    pd.testing.assert_frame_equal(tests, rd.diagnostics.past_tests(archive))
    found = pd.read_parquet(tmp_path / "out" / "proxies.parquet").iloc[0]
    own = rd.experiments.proxy_metrics(
        tests, offline="offline_hitrate@1", online="online_hitrate@1"
    ).iloc[0]
    assert found["slope"] == own["slope"]


@pytest.mark.long
def test_experiments_with_the_same_users_are_refused(archive, tmp_path):
    shutil.copytree(archive / "test-1", tmp_path / "one")
    shutil.copytree(archive / "test-1", tmp_path / "two")
    with pytest.raises(rd.DuplicateError, match="one and two have the same users"):
        rd.diagnostics.past_tests(tmp_path)


@pytest.mark.long
def test_a_metric_whose_definition_changed_is_refused(archive, tmp_path):
    shutil.copytree(archive / "test-1", tmp_path / "one")
    experiment(tmp_path / "two", 9, metric="hitrate@1", users=9000)
    table = pd.read_parquet(tmp_path / "two" / "offline" / "comparison.parquet")
    spec = json.loads(json.dumps(table.attrs["recdf"]))
    spec["metrics"]["hitrate@1"]["definition"] = "hitrate(other=yes)@1"
    table.attrs["recdf"] = spec
    table.to_parquet(tmp_path / "two" / "offline" / "comparison.parquet")
    with pytest.raises(
        rd.DataError, match=r"is hitrate@1 in one and hitrate\(other=yes\)@1 in two"
    ):
        rd.diagnostics.past_tests(tmp_path)


@pytest.mark.long
def test_two_comparisons_of_models_in_one_experiment_are_refused(archive, tmp_path):
    shutil.copytree(archive / "test-1", tmp_path / "one")
    shutil.copytree(archive / "test-1" / "offline", tmp_path / "one" / "again")
    with pytest.raises(rd.DataError, match="both compare models"):
        rd.diagnostics.past_tests(tmp_path)


def test_a_table_of_another_program_is_no_comparison(tmp_path):
    for folder in ("own", "other"):
        (tmp_path / "test" / folder).mkdir(parents=True)
    arms = pd.DataFrame({"metric": ["ctr"], "control": ["A"], "treatment": ["B"], "diff": [0.1]})
    arms.to_parquet(tmp_path / "test" / "own" / "comparison.parquet")
    for name in ("x", "control"):
        other = pd.DataFrame({name: [1]})
        other.to_parquet(tmp_path / "test" / "other" / "comparison.parquet")
        assert not len(rd.diagnostics.past_tests(tmp_path))
    arms.head(0).to_parquet(tmp_path / "test" / "other" / "comparison.parquet")
    with pytest.raises(rd.DataError, match=r"comparison\.parquet has no rows"):
        rd.diagnostics.past_tests(tmp_path)


def test_a_record_that_is_none_is_named(tmp_path):
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(rd.DataError, match=r"run\.json is no record"):
        rd.diagnostics.past_runs(tmp_path)


def test_a_run_of_the_gate_stands_there_with_its_verdicts(tmp_path):
    record = {"command": ["recdf", "gate"], "started": "2026-11-20T02:00:00Z"}
    record |= {"seconds": 1.0, "exit": 1, "recdf": "1"}
    (tmp_path / "run.json").write_text(json.dumps(record), encoding="utf-8")
    table = pd.DataFrame({"verdict": ["pass", "fail", "pass"]})
    table.to_parquet(tmp_path / "gate.parquet")
    assert rd.diagnostics.past_runs(tmp_path)["decided"].tolist() == ["2 pass, 1 fail"]


def test_variants_of_a_result_of_several_models_are_no_comparison_of_models(tmp_path):
    shop = rd.sample_shop(n_users=120, n_items=60)
    call = {"k": 5, "by": "model"}
    result = rd.evaluate(shop.true, shop.pred, "ndcg", **call)
    shop.assignment.to_parquet(tmp_path / "a.parquet")
    for name in ("night", "test/online"):
        result.to_parquet(tmp_path / "runs" / name)
    words = ["--assignment", tmp_path / "a.parquet", "--control", "A", "--missing", "zero", "-q"]
    for name in ("night", "test/online"):
        folder = tmp_path / "runs" / name
        assert run(["experiment", folder, *words, "--out", folder]) == 0
    assert not len(rd.diagnostics.past_tests(tmp_path / "runs"))
    decided = rd.diagnostics.past_runs(tmp_path / "runs")["decided"]
    assert decided.str.contains(r"knn · B: ndcg@5 .*; popularity · B: ndcg@5 ").all()
    offline = tmp_path / "runs" / "test" / "offline"
    result.to_parquet(offline)
    assert (
        run(["compare", offline, "--model", "knn", "--baseline", "random", "--out", offline, "-q"])
        == 0
    )
    with pytest.raises(
        rd.DataError, match="test: the online comparison has several rows of a metric"
    ):
        rd.diagnostics.past_tests(tmp_path / "runs")


@pytest.mark.parametrize(("withheld", "differences"), [("", 2), ("sample_ratio", 1)])
def test_an_invalid_experiment_has_no_difference(tmp_path, withheld, differences):
    both = {"metric": ["ctr"], "diff": [0.1], "se": [0.05]}
    offline = pd.DataFrame({**both, "baseline": ["old"], "model": ["new"]})
    online = pd.DataFrame({**both, "control": ["A"], "treatment": ["B"], "withheld": [withheld]})
    for name, table in (("off", offline), ("on", online)):
        (tmp_path / "test" / name).mkdir(parents=True)
        table.to_parquet(tmp_path / "test" / name / "comparison.parquet")
    found = rd.diagnostics.past_tests(tmp_path)
    assert sum(found.columns.str.endswith("ctr")) == differences


def archived(folder, diffs, *, baseline="old", model="new", control="A", treatment="B"):
    """Write the two comparisons of one experiment; `diffs` are those of offline metrics and of
    ctr."""
    offline, ctr = diffs
    sides = (
        ("off", pd.Series(offline), {"baseline": baseline, "model": model}),
        ("on", pd.Series({"ctr": ctr}), {"control": control, "treatment": treatment}),
    )
    for name, diff, pair in sides:
        (folder / name).mkdir(parents=True)
        table = pd.DataFrame({"metric": diff.index, "diff": diff.to_numpy(), "se": 0.01, **pair})
        table.to_parquet(folder / name / "comparison.parquet")


def test_a_pair_of_models_the_other_way_round_is_refused(tmp_path):
    variants = {"control": "old", "treatment": "new"}
    archived(tmp_path / "a" / "one", ({"mrr": 0.1}, 0.2), **variants)
    assert rd.diagnostics.past_tests(tmp_path / "a")["offline_mrr"].tolist() == [0.1]
    archived(tmp_path / "b" / "one", ({"mrr": -0.1}, 0.2), baseline="new", model="old", **variants)
    with pytest.raises(rd.DataError, match=r"under the names of the variants \(new against old\)"):
        rd.diagnostics.past_tests(tmp_path / "b")


@pytest.mark.long
def test_a_metric_of_few_experiments_hides_no_relation_of_the_others(tmp_path, capsys):
    rng = np.random.default_rng(0)
    for at in range(14):
        offline = {"ndcg": rng.normal(0, 0.05)} | ({"mrr": rng.normal(0, 0.05)} if at < 5 else {})
        archived(tmp_path / "runs" / f"{at}", (offline, offline["ndcg"] / 2))
    assert run(["history", tmp_path / "runs", "--out", tmp_path / "out"]) == 0
    found = pd.read_parquet(tmp_path / "out" / "proxies.parquet")
    assert found[["offline", "n_tests"]].to_numpy().tolist() == [
        ["offline_ndcg", 14],
        ["offline_mrr", 5],
    ]
    assert found["confidence"].tolist() == [0.95, 0.95]
    tests = rd.diagnostics.past_tests(tmp_path / "runs")
    own = rd.experiments.proxy_metrics(  # of two pairs, each has half of the level
        tests, offline="offline_ndcg", online="online_ctr", confidence=0.975
    )
    numbers = ["slope", "slope_low", "slope_high", "naive_low"]
    pd.testing.assert_frame_equal(found[numbers].head(1), own[numbers])
