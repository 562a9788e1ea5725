"""The command in a real shell: closed and full streams, terminals of ASCII, signals, ~, and a full disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from cli.command import WITH_RECDF, run
from cli.frames import CALL, PRED, TRUE, expected
from cli.shop import GROUPS, shown

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("in_their_folder"),
    pytest.mark.skipif(os.name == "nt", reason="the shell and the signals are of POSIX"),
]

RECDF = f"{sys.executable} -m recdf"
EVALUATE = " ".join(CALL)


def shell(script, **environment):
    """What a script does in bash, as a nightly job runs it."""
    call = ["bash", "-c", f"set -e -o pipefail\n{script}"]
    return subprocess.run(call, capture_output=True, check=False, env=WITH_RECDF | environment)


# What each command writes and prints. The shop is that of the demo, made small.
JOBS = {
    f"{EVALUATE} --out out": "per_user.parquet",
    "check --true true.parquet --pred pred.parquet --by model --out out": "findings.parquet",
    "compare result --baseline a --out out": "comparison.parquet",
    "experiment ab --assignment groups.parquet --control A --missing zero --out out": "health.parquet",
    "ope log.parquet --out out": "ope.parquet",
    "impressions shown.parquet --list-cols --clicked-col clicked --rank-by-time --out out": "true.parquet",
    "report result --out out/report.html": "report.html",
}
NAMES = [call.split()[0] for call in JOBS]


@pytest.fixture
def inputs(in_their_folder):
    expected().to_parquet("result")
    shown().to_parquet("ab")
    GROUPS.to_parquet("groups.parquet")
    log = pd.DataFrame({"user_id": range(40), "reward": [0.0, 1.0] * 20, "propensity": 0.5, "target_propensity": 0.5})
    log.to_parquet("log.parquet")
    PRED[PRED["model"] == "a"].assign(clicked=[1, 0, 1, 0]).to_parquet("shown.parquet")


CLOSED = """
import os, subprocess, sys
read, write = os.pipe()
os.close(read)  # as if `head` had ended already
sys.exit(subprocess.run(sys.argv[2:], **{sys.argv[1]: write}).returncode)
"""


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(("call", "written"), JOBS.items(), ids=NAMES)
def test_a_closed_pipe_changes_nothing_of_the_job(call, written):
    done = [sys.executable, "-c", CLOSED, "stdout", sys.executable, "-m", "recdf", *call.split()]
    ended = subprocess.run(done, capture_output=True, text=True, check=False, env=WITH_RECDF)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert Path("out", written).exists()


@pytest.mark.usefixtures("inputs")
def test_the_exit_code_behind_a_closed_pipe_is_that_of_the_job():
    pd.concat([PRED, PRED.head(1)]).to_parquet("pred.parquet")
    for stream in ("stdout", "stderr"):
        for more, code in ((["--fail-on", "warning"], 1), (["--item-col", "itm"], 2), ([], 0)):
            call = [sys.executable, "-c", CLOSED, stream, sys.executable, "-m", "recdf", *CALL, *more]
            assert subprocess.run(call, capture_output=True, check=False, env=WITH_RECDF).returncode == code


def test_a_pipe_to_head_in_a_job_that_stops_at_failures():
    done = shell(f"{RECDF} {EVALUATE} --out out | head -n 1 && test -f out/summary.parquet")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n") == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed):
    done = shell(f"{RECDF} {EVALUATE} --out out {closed}")
    assert (done.returncode, done.stderr) == (0, b"")
    result = expected()
    assert pd.read_parquet("out/summary.parquet")["value"].tolist() == result.summary["value"].tolist()
    done = shell(f"{RECDF} {EVALUATE} --item-col itm {closed}")
    assert done.returncode == 2
    assert done.stdout == b""  # no message of stderr comes out here


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("how", ["", "--format json", "--format csv"])
def test_a_full_disk_behind_stdout_is_said(how):
    done = shell(f"{RECDF} {EVALUATE} --out out {how} > /dev/full")
    assert done.returncode == 4
    assert done.stderr == b"recdf evaluate: error: stdout: No space left on device\n"
    assert Path("out/summary.parquet").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_behind_stderr_changes_nothing():
    pd.concat([PRED, PRED.head(1)]).to_parquet("pred.parquet")  # a warning
    for more, code in (("", 0), ("-v", 0), ("--fail-on warning", 1), ("--item-col itm", 2)):
        assert shell(f"{RECDF} {EVALUATE} {more} 2> /dev/full").returncode == code


# ------------------------------------------------------------------------------------------ letters

ASCII = [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]


@pytest.mark.parametrize("environment", ASCII)
def test_a_terminal_of_ascii(environment):
    frames = [frame.assign(user_id=frame["user_id"].astype(str) + "é") for frame in (TRUE, PRED)]
    frames[1]["model"] = frames[1]["model"] + "ö"
    frames[0].to_parquet("true.parquet")
    frames[1].to_parquet("pred.parquet")
    models = ["aö", "bö"] * 2
    done = shell(f"{RECDF} {EVALUATE} --out out", **environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(pd.read_parquet("out/summary.parquet")["model"]) == sorted(models)
    done = shell(f"{RECDF} {EVALUATE} --format json", **environment)
    assert sorted(row["model"] for row in json.loads(done.stdout)) == sorted(models)
    done = shell(f"{RECDF} {EVALUATE} --format csv", **environment)
    assert "aö" in done.stdout.decode("utf-8")
    done = shell(f"{RECDF} compare out --baseline c", **environment)
    assert done.returncode == 2
    assert done.stderr.isascii() is ("LC_ALL" not in environment or "PYTHONUTF8" in environment)


# ------------------------------------------------------------------------------------------ signals

STOPPED = """
import os, signal, sys
from recdf.evaluation import storage
from recdf.cli import run

numbers = [getattr(signal, name) for name in sys.argv.pop().split()]

def stop(*arguments):
    for number in numbers:
        os.kill(os.getpid(), number)
    return keep(*arguments)

keep, storage.to_table = storage.to_table, stop
run()
"""


@pytest.mark.parametrize(
    ("before", "names", "code"),
    [
        ("", "SIGHUP", 129),
        ("", "SIGTERM SIGHUP SIGINT", None),  # as systemd sends them
        ("trap '' HUP;", "SIGHUP", 0),  # as nohup starts a job
        ("trap '' HUP;", "SIGHUP SIGTERM", 143),
    ],
)
@pytest.mark.parametrize("stream", ["", "--stream"])
def test_signals(before, names, code, stream):
    Path("stopped.py").write_text(STOPPED, encoding="utf-8")
    done = shell(f"{before} TMPDIR=. {sys.executable} stopped.py {EVALUATE} {stream} --out new/out '{names}'")
    assert done.stderr == b""
    assert done.returncode in ((129, 130, 143) if code is None else (code,))
    assert Path("new").exists() is (code == 0)
    assert {path.name for path in Path().iterdir()} - {"new"} == {"true.parquet", "pred.parquet", "stopped.py"}


# ------------------------------------------------------------------------------------------ home and disk


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(("call", "written"), JOBS.items(), ids=NAMES)
def test_the_home_folder_in_every_path(capsys, call, written, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    for word in ("true", "pred", "groups", "log", "shown"):
        call = call.replace(f"{word}.parquet", f"~/{word}.parquet")
    call = call.replace(" result", " ~/result").replace(" ab", " ~/ab").replace("--out out", "--out ~/out")
    code, _, err = run(capsys, *call.split())
    assert (code, err) == (0, "")
    assert (tmp_path / "out" / written).exists()
    assert not list(Path().iterdir())


@pytest.mark.usefixtures("inputs")
def test_the_home_folder_in_a_file_of_options(tmp_path):
    Path("job.toml").write_text('true = "~/true.parquet"\nmetrics = "mrr"\nusers = "~/ids.csv"\n', encoding="utf-8")
    Path("ids.csv").write_text("user_id\n1\n", encoding="utf-8")
    script = f"cd / && {RECDF} evaluate --config=~/job.toml --pred ~/pred.parquet --by model --items=~/pred.parquet"
    done = shell(script, HOME=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("call", JOBS, ids=NAMES)
def test_a_full_disk_leaves_no_folder_and_is_said_with_its_path(call):
    """A limit of the size of files stands for a full disk: the system refuses what is written beyond it."""
    done = shell(f"ulimit -f 0; {RECDF} {call.replace('--out out', '--out new/out')} 2>&1")
    assert done.returncode == 2
    assert done.stdout.count(b"\n") == 1
    assert b"new/out" in done.stdout
    assert b"File too large" in done.stdout
    assert not Path("new").exists()
