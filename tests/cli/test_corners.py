"""Names that are too long, folders in the way, files that are nested too deeply: one line and code
2, before anything is written; and the commit beside the version."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from cli.command import fails, refused, run

import recdf as rd
from recdf import _version, errors

CALL = ["--true", "true.parquet", "--pred", "pred.parquet", "--by", "model"]
EVALUATE = ["evaluate", *CALL, "-m", "mrr@2"]
COMMIT = "3b2edb17a6f0" + 28 * "c"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pred = {"model": ["als", "als", "knn"], "user_id": [1, 2, 1], "item_id": ["a", "b", "b"]}
    day = {"day": ["2026-11-01", "2026-11-01", "2026-11-02"]}
    pd.DataFrame({**pred, "score": [0.5, 0.4, 0.3], "price": [1.0, 1.0, 0.5], **day}).to_parquet(
        "pred.parquet"
    )
    true = {"user_id": [1, 2], "item_id": ["a", "b"], "day": "2026-11-01"}
    pd.DataFrame(true).to_parquet("true.parquet")


def test_names_that_are_too_long(capsys):
    for out in (300 * "x", f"folder/{300 * 'x'}"):
        assert "File name too long" in fails(capsys, *EVALUATE, "--out", out)
    assert sorted(os.listdir()) == ["pred.parquet", "true.parquet"]


def test_a_folder_called_run_json(capsys):
    Path("out/run.json").mkdir(parents=True)
    assert "out/run.json: is a folder" in fails(capsys, *EVALUATE, "--out", "out")
    assert os.listdir("out") == ["run.json"]


@pytest.mark.parametrize("flag", ["--config", "--project"])
def test_files_of_options_that_are_nested_too_deeply(capsys, flag):
    Path("deep.toml").write_text("by = " + 5000 * "[", encoding="utf-8")
    assert "deep.toml is no TOML file" in fails(capsys, *EVALUATE, flag, "deep.toml")


def test_outputs_are_what_the_run_wrote(capsys):
    assert run(capsys, *EVALUATE, "--out", ".", "-q")[0] == 0
    record = json.loads(Path("run.json").read_text(encoding="utf-8"))
    assert [one["path"] for one in record["outputs"]] == ["per_user.parquet", "summary.parquet"]


def test_a_path_that_is_not_utf8(capsys):
    for words in (["--out", "b\udcff"], ["--true", "b\udcff"]):
        code, out, err = run(capsys, *EVALUATE, *words)
        assert (code, out) == (2, "")
        assert "is not UTF-8" in err


@pytest.mark.few(1)
@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_what_is_expected_of_models_and_of_true(capsys, stream):
    call = [*EVALUATE, *stream, "-q"]
    good = ["rows[model=als]>=2", "models=als,knn", "true.rows[user_id=1]==1", "rows[model=x]==0"]
    good += ["rows[price=1]==2", "rows[price=1.0]==2", "rows[price=0.5]==1"]
    days = ["true=2026-11-01..2026-11-01", "2026-11-01..2026-11-02"]
    assert run(capsys, *call, "--expect", *good, "--expect-days", *days) == (0, "", "")
    for bad, words in (
        (
            ["--expect", "rows[model=knn]>=2"],
            "has 1 rows with model knn; --expect rows[model=knn]>=2",
        ),
        (["--expect", "models=als,knn,ease"], "lacks 1 in 'model': ease"),
        (["--expect", "models=als"], "has, beside the expected ones, 1 in 'model': knn"),
        (["--expect-days", "true=2026-11-02..2026-11-02"], "--true true.parquet lacks 1 in 'day'"),
        (["--expect-days", "true=2026-11-01..2026-11-01", "1"], ""),
    ):
        if words:
            assert words in refused(capsys, *call, *bad)
        else:
            assert run(capsys, *call, *bad)[0] == 0
    assert "expected true=DAYS" in fails(capsys, *call, "--expect-days", "items=3")
    no_by = [word for word in call if word not in ("--by", "model")]
    assert "pass --by COLUMN" in fails(capsys, *no_by, "--expect", "models=als")


def test_a_library_that_cannot_be_loaded():
    absent = errors.not_loaded("rd.plot", "matplotlib", "recdf[plot]", ModuleNotFoundError("no"))
    assert isinstance(absent, rd.MissingExtraError)
    assert "is not installed" in str(absent)
    broken = ImportError("ft2font.so: failed to map segment from shared object")
    memory = errors.not_loaded("rd.plot", "matplotlib", "recdf[plot]", broken)
    assert isinstance(memory, MemoryError)
    assert "cannot be loaded: ft2font.so" in str(memory)


@pytest.mark.parametrize("how", ["head", "branch", "packed", "worktree", "stamp", "none", "broken"])
def test_the_commit_is_read_from_the_files_of_git(tmp_path, monkeypatch, how):
    package, git = tmp_path / "checkout/recdf", tmp_path / "checkout/.git"
    package.mkdir(parents=True)
    files = {
        "head": {git / "HEAD": COMMIT},
        "branch": {git / "HEAD": "ref: refs/heads/main", git / "refs/heads/main": COMMIT},
        "packed": {
            git / "HEAD": "ref: refs/heads/main",
            git / "packed-refs": f"# pack-refs\n{COMMIT} refs/heads/main",
        },
        "worktree": {
            git: f"gitdir: {tmp_path}/main/worktrees/one",
            tmp_path / "main/worktrees/one/HEAD": "ref: refs/heads/one",
            tmp_path / "main/worktrees/one/commondir": "../..",
            tmp_path / "main/refs/heads/one": COMMIT,
        },
        "stamp": {package / "_build.txt": f"{COMMIT}\n"},
        "none": {},
        "broken": {git / "HEAD": "ref: refs/heads/gone"},
    }[how]
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(_version, "__file__", str(package / "_version.py"))
    known = how not in ("none", "broken")
    found = _version.version_and_build.__wrapped__()
    assert found == rd.__version__ + ("+g3b2edb17a6f0" if known else "")


@pytest.mark.slow
def test_commands_without_docstrings():
    environment = {**os.environ, "PYTHONOPTIMIZE": "2"}
    command = [sys.executable, "-m", "recdf", *EVALUATE, "-q"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
