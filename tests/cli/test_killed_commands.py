"""Every command that writes, killed at its file operations: a reader finds the files of the older
run or of the newer one, and changes nothing; the next run leaves nothing behind."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import case
from cli.command import run
from cli.frames import CALL, PRED, TRUE
from cli.shop import GROUPS, SHOP, models, shown
from killed import photographed, tree

import recdf as rd
from recdf.cli import main
from recdf.publishing import PREFIX, is_there, where

OUT = ["--out", "out"]
FRAMES = ["--true", "true.parquet", "--pred", "pred.parquet"]
EXPERIMENT = ["experiment", "ab", "--assignment", "groups.parquet", "--control", "A"]
EXPERIMENT += ["--missing", "zero"]
AB = ["--a", "a.parquet", "--b", "b.parquet"]
OPE = ["ope", "log.parquet", "--by", "model", "--pred"]
LISTS = ["impressions", "shown.parquet", "--list-cols", "--clicked-col", "clicked"]
LISTS += ["--rank-by-time"]
GATE = ["gate", "ab", "--baseline", "ab", "--out", "out", "--budget"]
VERDICTS = ["--junit", "ci/junit.xml", "--summary", "ci/summary.md"]
AUDIT = ["audit", "--true", "t.parquet", "--pred", "p.parquet", "--by", "model"]
QUANTILES = ["quantiles", "--rows", "rows.parquet", "--control", "A", "--metric", "ms"]
REPORT = ["report", "models", "--out", "out/report.html"]
SRM = ["srm", "--assignment", "groups.parquet", "--column"]

# An older and a newer run of each command.
RUNS = {
    "evaluate": ([*CALL, *OUT, "--profile"], [*CALL[:-1], *OUT]),
    "evaluate --profile": ([*CALL, *OUT, "--profile"], [*CALL[:-1], *OUT, "--profile"]),
    "evaluate --stream": ([*CALL, *OUT], [*CALL[:-1], *OUT, "--stream"]),
    "check": (["check", *FRAMES, *OUT], ["check", *FRAMES, *OUT, "-k", "1"]),
    "audit": ([*AUDIT, *OUT], [*AUDIT, *OUT, "-m", "ndcg@5"]),
    "impressions": ([*LISTS, *OUT], [*LISTS, *OUT, "--relevance", "clicked=5"]),
    "compare": (["compare", "models", *OUT], ["compare", "models", *OUT, "--metric", "ndcg@10"]),
    "leaderboard": (
        ["leaderboard", "models", *OUT],
        ["leaderboard", "models", *OUT, "--metrics", "ndcg@10"],
    ),
    "experiment": (
        [*EXPERIMENT, *OUT, "--segment", "segment"],
        [*EXPERIMENT, *OUT, "--metric", "hits@10"],
    ),
    "gate": ([*GATE, "revenue@10=-5%", *VERDICTS], [*GATE, "revenue@10=-90%", *VERDICTS]),
    "gate in one folder": (
        [*GATE, "revenue@10=-5%", "--junit", "out/junit.xml"],
        [*GATE, "revenue@10=-90%", "--junit", "out/junit.xml"],
    ),
    "diff": (["diff", "ab", "ab", *OUT], ["diff", "a.parquet", "b.parquet", *OUT]),
    "interleave": (["interleave", *AB, *OUT, "-k", "1"], ["interleave", *AB, *OUT, "-k", "2"]),
    "interleaved": (
        ["interleaved", "mixed.parquet", "--clicks", "shown.parquet", *OUT],
        ["interleaved", "mixed.parquet", "--clicks", "a.parquet", *OUT],
    ),
    "aa": (["aa", "ab", "--n", "20", *OUT], ["aa", "ab", "--n", "30", *OUT]),
    "srm": ([*SRM, "segment", *OUT], [*SRM, "group", *OUT]),
    "quantiles": (
        [*QUANTILES, "--quantiles", "0.5", *OUT],
        [*QUANTILES, "--quantiles", "0.9", *OUT],
    ),
    "plan": (
        ["plan", "ab", "--metric", "hits@10", "--rel-effect", "0.05", *OUT],
        ["plan", "ab", "--metric", "hits@10", "--rel-effect", "0.5", *OUT],
    ),
    "history": (["history", "past", *OUT], ["history", "past", *OUT, "--metric", "hits@10"]),
    "ope": ([*OPE, "targets.parquet", *OUT], [*OPE, "one.parquet", *OUT]),
    "report": (REPORT, [*REPORT, "--title", "Another"]),
    "demo": (["demo", *OUT], ["demo", *OUT]),
}
# The operations that move a name.
MOVES = {"rename", "replace", "unlink", "remove", "rmdir", "link", "symlink"}
AT_EACH_MOVE = {"evaluate", "gate"}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The files that the runs read."""
    folder = tmp_path_factory.mktemp("inputs")
    frames = {"true": TRUE, "pred": PRED, "groups": GROUPS.assign(group=GROUPS["segment"])}
    frames |= {"t": SHOP.true, "p": SHOP.pred}
    users = [f"u{i}" for i in range(40)]
    log = pd.DataFrame({"user_id": users * 10, "item_id": [i % 4 for i in range(400)]})
    frames["log"] = log.assign(reward=[i % 3 % 2 for i in range(400)], propensity=0.25)
    targets = {"model": ["als"] * 40 + ["bpr"] * 40, "user_id": users * 2}
    frames["targets"] = pd.DataFrame(targets | {"item_id": [1] * 40 + [2, 3] * 20})
    frames["one"] = frames["targets"].head(40)
    frames["shown"] = PRED[PRED["model"] == "a"].assign(clicked=[1, 0, 1, 0])
    for name, items in (("a", [1, 2]), ("b", [3, 1])):
        lists = {"user_id": np.repeat(np.arange(30), 2), "item_id": items * 30, "rank": [1, 2] * 30}
        frames[name] = pd.DataFrame(lists)
    frames["mixed"] = rd.experiments.interleave(frames["a"], frames["b"], 2)
    rows = {"user_id": np.arange(60), "ms": np.arange(60.0), "variant": ["A", "B"] * 30}
    frames["rows"] = pd.DataFrame(rows)
    for name, frame in frames.items():
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    shown().to_parquet(folder / "ab")
    models().to_parquet(folder / "models")
    for day in (1, 2, 3):
        shown().to_parquet(folder / "past" / f"2026-11-0{day}")
    return folder


def is_record(name):
    return name.startswith("run") or name.endswith("run.json")


def seen(folder):
    """The bytes of the files of a folder as a reader finds them, without the record of the run."""
    names = {path.name for path in Path(folder).rglob("*") if path.is_file()}
    paths = [Path(folder) / name for name in names if not (name[0] == "." or is_record(name))]
    return {path.name: where(path).read_bytes() for path in paths if is_there(path)}


def in_place(folder):
    paths = Path(folder).iterdir() if Path(folder).exists() else ()
    found = {path.name: path.read_bytes() for path in paths if path.is_file()}
    return {name: data for name, data in found.items() if not is_record(name)}


def wanted(command, by):
    """Whether a run is killed at the last of some operations.

    All commands write by the same module, so they share the operations among them: each begins at
    another one. Two commands are also killed after each operation that moves a name, since a reader
    sees no change by the others.
    """
    first = 1 + list(RUNS).index(command) % by
    at_each_move = command in AT_EACH_MOVE
    return lambda done: (
        (len(done) >= first and (len(done) - first) % by == 0)
        or (at_each_move and len(done) > 1 and done[-2] in MOVES)
    )


def check_each_kill(capsys, monkeypatch, tmp_path, inputs, command):
    shutil.copytree(inputs, tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    older, newer = RUNS[command]
    code, _, err = run(capsys, *older, "--overwrite")
    assert code in (0, 1, 3), err
    states = [(seen("out"), in_place("ci"))]
    for name in ("out", "ci"):
        if Path(name).exists():
            shutil.copytree(name, tmp_path / "kept" / name)
    for first in (False, True):
        monkeypatch.chdir(tmp_path / "run")
        for name in ("out", "ci"):
            shutil.rmtree(name, ignore_errors=True)
            kept = tmp_path / "kept" / name
            if kept.exists() and not first:
                shutil.copytree(kept, name)
        by = (8 if first else 5) * (4 if command == "demo" else 1)  # it writes by other commands
        copies = tmp_path / f"first={first}"
        with photographed(copies, wanted(command, by), monkeypatch) as taken:
            code = main([*newer, *([] if first else ["--overwrite"]), "-q"])
        assert code in (0, 1, 3), capsys.readouterr().err
        states.append((seen("out"), in_place("ci")))
        assert states[-1] == states[1]
        (old, old_verdicts), (new, new_verdicts) = ({}, {}) if first else states[0], states[1]
        assert taken
        # The next run is tried at one step; the commands, which write alike, share the steps.
        again = [*taken][list(RUNS).index(command) % len(taken)]
        for step, (done, folder) in taken.items():
            monkeypatch.chdir(folder)
            with case(f"{command}: first={first}, killed at {step}: {done[-3:]}"):
                before, found = tree("."), seen("out") if Path("out").exists() else {}
                assert found in (old, new)
                left = in_place("out").items()
                assert left <= old.items() or left <= new.items()
                for verdict in in_place("ci").items():
                    assert verdict in (new_verdicts if found == new else old_verdicts).items()
                assert tree(".") == before
            if step == again:
                with case(f"{command}: the run after that at {step}"):
                    capsys.readouterr()
                    assert run(capsys, *newer, "--overwrite")[0] in (0, 1, 3)
                    assert (seen("out"), in_place("ci")) == states[1]
                    assert not list(Path().rglob(f"{PREFIX}*"))


@pytest.mark.slow
@pytest.mark.parametrize("command", RUNS)
@pytest.mark.usefixtures("small_shop")
def test_each_kill_leaves_the_files_of_one_run(capsys, monkeypatch, tmp_path, inputs, command):
    check_each_kill(capsys, monkeypatch, tmp_path, inputs, command)


def test_every_command_that_writes_is_killed():
    from recdf.cli import _parser

    commands = {name.split()[0] for name in RUNS}
    assert commands == set(_parser()[1])
