"""The files that one run writes appear together, also if a process is killed. Files of two runs are
not read as one."""

import itertools
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
from cases import case
from cli.command import fails, run
from cli.frames import PRED
from cli.shop import models
from evaluation.stored import FULL, fail_at
from killed import is_killed, killed_at, tree

import recdf as rd
from recdf.cli import main
from recdf.publishing import RUN

pytestmark = pytest.mark.slow

CALL = ["experiment", "ab", "--assignment", "groups.parquet", "--control", "A", "--missing", "zero"]
EXPERIMENT = [*CALL, "--out", "out"]
OPE = ["ope", "log.parquet", "--pred", "pred.parquet", "--by", "model", "--out", "out"]
LISTS = [
    "impressions",
    "shown.parquet",
    "--list-cols",
    "--clicked-col",
    "clicked",
    "--rank-by-time",
    "--out",
    "out",
]

# An older and a newer run of each command. The newer one writes fewer files, so that one of the
# older has to go.
RUNS = {
    "experiment": ([*EXPERIMENT, "--segment", "segment"], [*EXPERIMENT, "--metric", "hits@10"]),
    "ope": (OPE, ["ope", "log.parquet", "--pred", "one.parquet", "--by", "model", "--out", "out"]),
    "impressions": (LISTS, [*LISTS, "--relevance", "clicked=5"]),
}
EFFECTS, ESTIMATES = (
    {"health.parquet", "comparison.parquet"},
    {"ope.parquet", "ope_diagnostics.parquet"},
)
WRITTEN = {
    "experiment": ({*EFFECTS, "segments.parquet"}, EFFECTS),
    "ope": ({*ESTIMATES, "ope_comparison.parquet"}, ESTIMATES),
    "impressions": ({"true.parquet", "pred.parquet", "impressions.json"},) * 2,
}


@pytest.fixture
def inputs(folder):
    """The files that the runs read, in the current folder."""
    log = pd.DataFrame(
        {"user_id": [f"u{i % 40}" for i in range(400)], "item_id": [i % 4 for i in range(400)]}
    )
    log.assign(reward=[i % 3 % 2 for i in range(400)], propensity=0.25).to_parquet("log.parquet")
    users = sorted(set(log["user_id"]))
    pred = pd.DataFrame(
        {
            "model": ["als"] * 40 + ["bpr"] * 40,
            "user_id": users * 2,
            "item_id": [1] * 40 + [2, 3] * 20,
        }
    )
    pred.to_parquet("pred.parquet")
    pred.head(40).to_parquet("one.parquet")
    PRED[PRED["model"] == "a"].assign(clicked=[1, 0, 1, 0]).to_parquet("shown.parquet")
    return folder


def contents(folder):
    """The bytes of each file, without the record of the run, which holds times."""
    files = {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}
    return {
        name: content for name, content in files.items() if not name.lstrip(".").startswith("run")
    }


@pytest.fixture
def both(capsys, inputs):
    """What the older and the newer run of a command write."""

    def written(command):
        found = []
        for call in RUNS[command]:
            assert run(capsys, *call, "--overwrite")[0] == 0
            found.append(contents("out"))
        assert tuple(map(set, found)) == WRITTEN[command]
        return found

    return written


@pytest.mark.parametrize("command", RUNS)
def test_a_failure_at_any_rename_keeps_the_files_of_one_run(capsys, both, monkeypatch, command):
    """The older files until the manifest is in its place, and then the newer ones."""
    old, new = both(command)
    assert run(capsys, *RUNS[command][0], "--overwrite")[0] == 0
    shutil.copytree("out", "kept")
    replace = os.replace
    for step, error in itertools.product(range(1, len(old) + 2), [FULL, KeyboardInterrupt()]):
        with case(f"step {step} {error!r}"):
            shutil.rmtree("out")
            shutil.copytree("kept", "out")
            fail_at(step, monkeypatch, (os, "replace"), error)
            code, out, err = run(capsys, *RUNS[command][1], "--overwrite")
            monkeypatch.setattr(os, "replace", replace)
            assert (code, out) == (4 if error is FULL else 130, "")
            assert ("No space left" in err) is (error is FULL)
            assert contents("out") == (old if step == 1 else new)


@pytest.mark.parametrize("command", RUNS)
def test_a_failure_of_a_first_run_leaves_no_folder(capsys, inputs, monkeypatch, command):
    fail_at(1, monkeypatch, (os, "replace"))
    assert run(capsys, *RUNS[command][0])[0] == 4
    assert not Path("out").exists()


def test_lists_are_read_after_the_run_that_should_replace_them_was_killed(
    capsys, both, monkeypatch
):
    both("impressions")
    for step in range(1, 40):
        with killed_at(step, monkeypatch) as done:
            main([*LISTS, "--overwrite"])
        if is_killed(done, step) and not Path("out/pred.parquet").exists():
            break
    assert not Path("out/pred.parquet").exists()
    call = ["--true", "out/true.parquet", "--pred", "out/pred.parquet", "--allow-empty"]
    before = tree("out")
    capsys.readouterr()
    assert run(capsys, "evaluate", *call, "-m", "hits@2")[0] == 0
    assert tree("out") == before


# -- readers

REPORT = ["report", "models", "--overwrite", "--experiment", "out/comparison.parquet"]


@pytest.mark.parametrize("command", ["experiment", "ope"])
def test_each_file_has_the_digest_of_its_run(both, command):
    both(command)
    runs = {pd.read_parquet(path).attrs[RUN] for path in Path("out").glob("*.parquet")}
    assert len(runs) == 1


def test_files_of_two_runs_are_refused_by_name(capsys, both):
    old, _ = both("experiment")
    Path("out/health.parquet").write_bytes(old["health.parquet"])
    line = fails(capsys, *REPORT)  # the health beside it is not asked for
    assert "out/health.parquet" in line
    assert "out/comparison.parquet" in line
    assert "two runs" in line
    assert "two runs" in fails(capsys, *REPORT, "--health", "out/health.parquet")
    Path("old").mkdir()
    Path("out/health.parquet").rename("old/health.parquet")
    assert "two runs" in fails(capsys, *REPORT, "--health", "old/health.parquet")
    tables = {
        "experiment": pd.read_parquet("out/comparison.parquet"),
        "health": pd.read_parquet("old/health.parquet"),
    }
    with pytest.raises(rd.DataError, match="experiment and health were written by two runs"):
        rd.report(rd.read_parquet("models"), "report.html", **tables)
    assert run(capsys, *REPORT)[0] == 0


@pytest.mark.parametrize(
    ("command", "stale", "call"),
    [
        ("experiment", "segments.parquet", REPORT),
        ("ope", "ope_comparison.parquet", ["report", "models", "--off-policy", "out"]),
    ],
)
def test_a_table_that_only_the_older_run_has_is_refused_too(capsys, both, command, stale, call):
    old, _ = both(command)
    Path("out", stale).write_bytes(old[stale])
    assert stale in fails(capsys, *call)


def test_a_comparison_of_another_result_is_refused(capsys, folder):
    assert run(capsys, "compare", "models", "--baseline", "popularity", "--out", "out")[0] == 0
    call = [
        "report",
        "models",
        "--overwrite",
        "--baseline",
        "popularity",
        "--comparison",
        "out/comparison.parquet",
    ]
    assert run(capsys, *call)[0] == 0
    page = Path("report.html").read_bytes()
    of_folder = [*call[:-1], "out"]
    assert run(capsys, *of_folder)[0] == 0
    assert Path("report.html").read_bytes() == page
    models(["ndcg@10"]).to_parquet("models", overwrite=True)
    for one in (call, of_folder):
        assert "compares another result" in fails(capsys, *one)


def test_a_comparison_replaces_what_an_experiment_wrote(capsys, both):
    both("experiment")
    call = ["compare", "models", "--out", "out"]
    assert "already holds comparison.parquet" in fails(capsys, *call)
    assert run(capsys, *call, "--overwrite")[0] == 0
    assert set(contents("out")) == {"comparison.parquet"}


def test_a_broken_table_is_named(capsys, folder):
    Path("health.parquet").write_bytes(b"PAR1")
    assert "health.parquet cannot be read" in fails(
        capsys, "report", "models", "--health", "health.parquet"
    )
