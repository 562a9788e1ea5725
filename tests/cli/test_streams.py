"""The command in a real shell: closed and full streams, terminals of ASCII, signals, ~, and a full
disk."""

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
    "experiment ab --assignment groups.parquet --control A --missing zero --out "
    "out": "health.parquet",
    "ope log.parquet --out out": "ope.parquet",
    "impressions shown.parquet --list-cols --clicked-col clicked --rank-by-time --out "
    "out": "true.parquet",
    "report result --out out/report.html": "report.html",
}
NAMES = [call.split()[0] for call in JOBS]


@pytest.fixture
def inputs(in_their_folder):
    expected().to_parquet("result")
    shown().to_parquet("ab")
    GROUPS.to_parquet("groups.parquet")
    log = pd.DataFrame(
        {
            "user_id": range(40),
            "reward": [0.0, 1.0] * 20,
            "propensity": 0.5,
            "target_propensity": 0.5,
        }
    )
    log.to_parquet("log.parquet")
    PRED[PRED["model"] == "a"].assign(clicked=[1, 0, 1, 0]).to_parquet("shown.parquet")


@pytest.fixture
def closed_pipe():
    """The end to write to of a pipe whose reader has ended already, as `head` does."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(("call", "written"), JOBS.items(), ids=NAMES)
def test_a_closed_pipe_changes_nothing_of_the_job(recdf, closed_pipe, call, written):
    ended = recdf(*call.split(), stdout=closed_pipe)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert Path("out", written).exists()


@pytest.mark.usefixtures("inputs")
def test_the_exit_code_behind_a_closed_pipe_is_that_of_the_job(recdf, closed_pipe):
    pd.concat([PRED, PRED.head(1)]).to_parquet("pred.parquet")
    for stream in ("stdout", "stderr"):
        for more, code in ((["--fail-on", "warning"], 1), (["--item-col", "itm"], 2), ([], 0)):
            assert recdf(*CALL, *more, **{stream: closed_pipe}).returncode == code


def test_a_pipe_to_head_in_a_job_that_stops_at_failures():
    done = shell(f"{RECDF} {EVALUATE} --out out | head -n 1 && test -f out/summary.parquet")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n") == 1


@pytest.mark.parametrize("closed", [[1], [2], [1, 2], [0, 1, 2]])
def test_closed_streams(recdf, closed):
    done = recdf(*CALL, "--out", "out", closed=closed)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (
        pd.read_parquet("out/summary.parquet")["value"].tolist()
        == expected().summary["value"].tolist()
    )
    done = recdf(*CALL, "--item-col", "itm", closed=closed)
    assert done.returncode == 2
    assert done.stdout == b""  # no message of stderr comes out here


def test_streams_that_a_shell_closes():
    done = shell(f"{RECDF} {EVALUATE} --out out <&- >&- 2>&-")
    assert (done.returncode, done.stderr) == (0, b"")
    assert (
        pd.read_parquet("out/summary.parquet")["value"].tolist()
        == expected().summary["value"].tolist()
    )
    done = shell(f"{RECDF} {EVALUATE} --item-col itm 2>&-")
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("how", ["", "--format json", "--format csv"])
def test_a_full_disk_behind_stdout_is_said(recdf, how):
    with open("/dev/full", "wb") as full:
        done = recdf(*CALL, "--out", "out", *how.split(), stdout=full.fileno())
    assert done.returncode == 2
    assert done.stderr == b"recdf evaluate: error: stdout: No space left on device\n"
    assert Path("out/summary.parquet").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_behind_stderr_changes_nothing(recdf):
    pd.concat([PRED, PRED.head(1)]).to_parquet("pred.parquet")  # a warning
    for more, code in (("", 0), ("-v", 0), ("--fail-on warning", 1), ("--item-col itm", 2)):
        with open("/dev/full", "wb") as full:
            assert recdf(*CALL, *more.split(), stderr=full.fileno()).returncode == code


# -- letters

ASCII = [
    {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


# Python decides on the encoding of a stream when it starts, so this is a real process: one for
# several calls.
SEVERAL = """
import json, sys
from recdf import cli

cli._open_streams()
codes = []
for call in json.loads(sys.argv[1]):
    codes.append(cli.main(call))
    for stream in (sys.stdout, sys.stderr):
        print(end="\\0", file=stream, flush=True)
print(json.dumps(codes))
"""


@pytest.mark.parametrize("environment", ASCII)
def test_a_terminal_of_ascii(environment):
    frames = [frame.assign(user_id=frame["user_id"].astype(str) + "é") for frame in (TRUE, PRED)]
    frames[1]["model"] = frames[1]["model"] + "ö"
    frames[0].to_parquet("true.parquet")
    frames[1].to_parquet("pred.parquet")
    models = ["aö", "bö"] * 2
    wrong = ["compare", "out", "--baseline", "c"]
    calls = [
        [*CALL, "--out", "out"],
        [*CALL, "--format", "json"],
        wrong,
        [*CALL, "--format", "csv"],
    ]
    process = [sys.executable, "-c", SEVERAL, json.dumps(calls)]
    done = subprocess.run(process, capture_output=True, check=True, env=WITH_RECDF | environment)
    _, as_json, _, as_csv, codes = done.stdout.split(b"\0")
    assert json.loads(codes) == [0, 0, 2, 0]
    assert sorted(pd.read_parquet("out/summary.parquet")["model"]) == sorted(models)
    assert sorted(row["model"] for row in json.loads(as_json)) == sorted(models)
    assert "aö" in as_csv.decode("utf-8")
    said = done.stderr.split(b"\0")
    assert [bool(text) for text in said] == [False, False, True, False, False]
    assert said[2].isascii() is ("LC_ALL" not in environment or "PYTHONUTF8" in environment)


# -- signals

STOPPED = """
import os, signal, sys
from recdf.evaluation import storage

# A suite started with nohup ignores SIGHUP, and its children inherit that.
signal.signal(
    signal.SIGHUP, signal.SIG_IGN if sys.argv.pop() == "ignored" else signal.SIG_DFL
)
numbers = [getattr(signal, name) for name in sys.argv.pop().split()]

def stop(*arguments):
    for number in numbers:
        os.kill(os.getpid(), number)
    return keep(*arguments)

keep, storage.to_table = storage.to_table, stop
"""


@pytest.mark.parametrize(
    ("before", "names", "code"),
    [
        ("", "SIGHUP", 129),
        ("", "SIGTERM SIGHUP SIGINT", None),  # as systemd sends them
        ("ignored", "SIGHUP", 0),  # as nohup starts a job
        ("ignored", "SIGHUP SIGTERM", 143),
    ],
)
@pytest.mark.parametrize("stream", ["", "--stream"])
def test_signals(recdf, before, names, code, stream):
    done = recdf(
        *CALL, *stream.split(), "--out", "new/out", names, before, script=STOPPED, TMPDIR="."
    )
    assert done.stderr == b""
    assert done.returncode in ((129, 130, 143) if code is None else (code,))
    assert Path("new").exists() is (code == 0)
    assert {path.name for path in Path().iterdir()} - {"new"} == {"true.parquet", "pred.parquet"}


# -- home and disk


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(("call", "written"), JOBS.items(), ids=NAMES)
def test_the_home_folder_in_every_path(capsys, call, written, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    for word in ("true", "pred", "groups", "log", "shown"):
        call = call.replace(f"{word}.parquet", f"~/{word}.parquet")
    call = (
        call.replace(" result", " ~/result")
        .replace(" ab", " ~/ab")
        .replace("--out out", "--out ~/out")
    )
    code, _, err = run(capsys, *call.split())
    assert (code, err) == (0, "")
    assert (tmp_path / "out" / written).exists()
    assert not list(Path().iterdir())


@pytest.mark.usefixtures("inputs")
def test_the_home_folder_in_a_file_of_options(recdf, tmp_path, monkeypatch):
    Path("job.toml").write_text(
        'true = "~/true.parquet"\nmetrics = "mrr"\nusers = "~/ids.csv"\n', encoding="utf-8"
    )
    Path("ids.csv").write_text("user_id\n1\n", encoding="utf-8")
    monkeypatch.chdir("/")
    call = "evaluate --config=~/job.toml --pred ~/pred.parquet --by model --items=~/pred.parquet"
    done = recdf(*call.split(), HOME=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("call", JOBS, ids=NAMES)
def test_a_full_disk_leaves_no_folder_and_is_said_with_its_path(recdf, call):
    """A limit of the size of files stands for a full disk: the system refuses what is written
    beyond it."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    done = recdf(*call.replace("--out out", "--out new/out").split(), script=limit)
    assert done.returncode == 2
    said = done.stdout + done.stderr
    assert said.count(b"\n") == 1
    assert b"new/out" in said
    assert b"File too large" in said
    assert not Path("new").exists()
