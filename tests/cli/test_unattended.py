"""The command as a nightly job calls it: exit codes, what it prints, signals, and the commands of
its page."""

import json
import os
import re
import shlex
import signal
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.command import fails, refused, run
from cli.frames import CALL, PRED, TRUE, expected

import recdf as rd
from recdf.cli import evaluating

pytestmark = pytest.mark.usefixtures("in_their_folder")

# -- exit codes

NO_ROWS = TRUE.head(0)
STRANGERS = PRED.assign(user_id=PRED["user_id"] + 100)
OTHER_ITEMS = PRED.assign(item_id=PRED["item_id"] + 100)
ONE_MODEL_OFF = PRED.assign(
    item_id=PRED["item_id"].where(PRED["model"] == "a", PRED["item_id"] + 100)
)


@pytest.mark.few(5)
@pytest.mark.parametrize("stream", [[], ["--stream"]])
@pytest.mark.parametrize(
    ("true", "pred", "words"),
    [
        (TRUE, PRED.head(0), "--pred pred.parquet has no rows"),
        (NO_ROWS, PRED, "--true true.parquet has no rows"),
        (NO_ROWS, PRED.head(0), "--true true.parquet and --pred pred.parquet have no rows"),
        (TRUE, STRANGERS, "no recommended user is in true"),
        (TRUE, OTHER_ITEMS, "no recommended item is in true"),
        (TRUE, ONE_MODEL_OFF, "1 of 2 by values"),
    ],
)
def test_what_no_honest_number_comes_from_is_refused(capsys, true, pred, words, stream):
    true.to_parquet("true.parquet")
    pred.to_parquet("pred.parquet")
    line = refused(capsys, *CALL, *stream, "--out", "out")
    assert line.startswith("recdf evaluate: refused: ")
    assert words in line
    assert "--allow-empty" in line
    assert not Path("out").exists()
    code, out, _ = run(capsys, *CALL, *stream, "--out", "out", "--allow-empty")
    assert code == 0
    assert Path("out").exists() is bool(out)


def test_a_bad_call_is_2_and_a_sound_result_0(capsys):
    assert run(capsys, *CALL)[0] == 0
    assert run(capsys, *CALL, "--item-col", "itm")[0] == 2
    Path("true.parquet").write_bytes(b"PAR1")
    assert run(capsys, *CALL)[0] == 2


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("fail_on", "code"), [([], 0), (["error"], 0), (["warning"], 1), (["error", "warning"], 1)]
)
def test_check_fails_on_what_is_asked(capsys, fail_on, code):
    pd.concat([PRED, PRED.head(1)]).to_parquet("pred.parquet")
    call = ["check", "--true", "true.parquet", "--pred", "pred.parquet", "--by", "model", "-k", "1"]
    findings = rd.check(TRUE, pd.concat([PRED, PRED.head(1)]), 1, by="model")
    assert set(findings["severity"]) >= {"warning"}
    assert "error" not in set(findings["severity"])
    found, _, err = run(capsys, *call, *(["--fail-on", *fail_on] if fail_on else []))
    assert found == code
    first = findings.loc[findings["severity"] == "warning", "finding"].iloc[0]
    assert err.startswith(f"recdf check: exit code 1, --fail-on warning: warning: {first}") == bool(
        code
    )


def test_check_writes_its_findings(capsys):
    call = [
        "check",
        "--true",
        "true.parquet",
        "--pred",
        "pred.parquet",
        "--by",
        "model",
        "--out",
        "found",
    ]
    code, out, _ = run(capsys, *call)
    assert code == 0
    assert "findings.parquet" in out
    written = pd.read_parquet("found/findings.parquet")
    assert written["finding"].tolist() == rd.check(TRUE, PRED, 10, by="model")["finding"].tolist()
    assert "pass --overwrite" in fails(capsys, *call)


@pytest.mark.long
def test_an_invalid_experiment_fails_if_asked(capsys):
    shop = rd.sample_shop()
    shop.shown.to_parquet("shown.parquet")
    shop.true.to_parquet("true.parquet")
    users = shop.assignment
    odd = users[(users["variant"] != users["variant"].iloc[0]) | (np.arange(len(users)) % 3 == 0)]
    odd.to_parquet("users.parquet")
    assert (
        run(
            capsys,
            *CALL[:3],
            "--pred",
            "shown.parquet",
            "-m",
            "hits@5",
            "--users",
            "pred",
            "--out",
            "r",
        )[0]
        == 0
    )
    control = users["variant"].iloc[0]
    call = [
        "experiment",
        "r",
        "--assignment",
        "users.parquet",
        "--control",
        control,
        "--missing",
        "zero",
    ]
    assert run(capsys, *call)[0] == 0
    code, _, err = run(capsys, *call, "--fail-on", "invalid", "warning")
    assert code == 1
    treatment = users.loc[users["variant"] != control, "variant"].iloc[0]
    assert err.splitlines()[-1].startswith(
        f"recdf experiment: exit code 1, --fail-on invalid: hits@5, {treatment} vs. {control}: "
        "invalid: sample ratio ("
    )


# -- what is printed


def test_json_and_csv_hold_every_digit_and_nothing_else(capsys):
    table = expected().summary
    code, out, err = run(capsys, *CALL, "--format", "json", "--out", "out")
    assert code == 0
    assert "wrote" in err
    rows = json.loads(out)
    assert [row["value"] for row in rows] == table["value"].tolist()
    assert [row["k"] for row in rows] == table["k"].tolist()
    assert set(rows[0]) == set(table.columns)
    _, out, err = run(capsys, *CALL, "--format", "csv")
    assert err == ""
    assert pd.read_csv(StringIO(out))["value"].tolist() == table["value"].tolist()


def test_nulls_are_null_in_json(capsys):
    TRUE.head(1).to_parquet("true.parquet")  # one user has no deviation
    rows = json.loads(run(capsys, *CALL, "--format", "json", "--allow-empty")[1])
    assert rows[0]["std"] is None


@pytest.mark.long
@pytest.mark.usefixtures("small_shop")
def test_every_command_speaks_json(capsys):
    run(capsys, *CALL, "--out", "result")
    found = json.loads(run(capsys, "compare", "result", "--format", "json", "--baseline", "a")[1])
    assert {row["model"] for row in found} == {"b"}
    found = json.loads(
        run(
            capsys,
            "check",
            "--true",
            "true.parquet",
            "--pred",
            "pred.parquet",
            "--by",
            "model",
            "--format",
            "json",
        )[1]
    )
    assert all({"finding", "severity"} <= set(row) for row in found)
    assert {"summary", "segments"} == set(json.loads(run(capsys, "demo", "--format", "json")[1]))
    (report,) = json.loads(
        run(capsys, "report", "result", "--out", "r.html", "--format", "json")[1]
    )
    assert report == {"file": "r.html", "bytes": Path("r.html").stat().st_size}
    PRED[PRED["model"] == "a"].assign(clicked=[1, 0, 1, 0]).to_parquet("log.parquet")
    call = [
        "impressions",
        "log.parquet",
        "--list-cols",
        "--clicked-col",
        "clicked",
        "--rank-by-time",
        "--out",
        "lists",
    ]
    counts = {
        (row["of"], row["count"]): row["n"]
        for row in json.loads(run(capsys, *call, "--format", "json")[1])
    }
    assert counts["log", "impressions"] == 4


def test_quiet_prints_errors_alone_and_verbose_says_more(capsys):
    assert run(capsys, *CALL, "-q", "--out", "out") == (0, "", "")
    assert "itm" in fails(capsys, *CALL, "-q", "--item-col", "itm")
    _, _, err = run(capsys, *CALL, "-v")
    assert "read --true true.parquet: 1 file, 4 rows" in err
    _, _, err = run(capsys, *CALL, "-v", "--item-col", "itm")
    assert "Traceback" in err


@pytest.mark.parametrize(
    "change",
    [
        {"score": np.nan},
        {"user_id": None},
        {"item_id": "x"},
        {"user_id": 99},
        {"user_id": 1.5},
    ],
)
def test_no_message_speaks_python(capsys, change):
    PRED.assign(**change).to_parquet("pred.parquet")
    code, _, err = run(capsys, *CALL)
    assert code in (1, 2)
    for word in ("rd.", ".astype", "=True", "null_keys", "nan_score", "by=", "user_col="):
        assert word not in err


# -- signals

STOPPED = """
import os, signal, sys
from recdf.evaluation import storage

number = getattr(signal, sys.argv.pop())

def stop(*arguments):
    os.kill(os.getpid(), number)
    return keep(*arguments)

keep, storage.to_table = storage.to_table, stop
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to send")
@pytest.mark.parametrize(
    ("stream", "name", "code"),
    [([], "SIGTERM", 143), ([], "SIGINT", 130), (["--stream"], "SIGTERM", 143)],
)
def test_sigterm_ends_like_ctrl_c(capsys, recdf, name, code, stream):
    run(capsys, *CALL, "--out", "out")
    before = {path: path.read_bytes() for path in Path("out").iterdir()}
    done = recdf(*CALL, *stream, "-k", "3", "--out", "out", "--overwrite", name, script=STOPPED)
    assert (done.returncode, done.stderr) == (code, b"")
    assert {path: path.read_bytes() for path in Path("out").iterdir()} == before


def test_the_handler_of_the_caller_comes_back(capsys):
    before = signal.getsignal(signal.SIGTERM)
    run(capsys, *CALL)
    assert signal.getsignal(signal.SIGTERM) is before


# -- the page


@pytest.mark.long
def test_the_commands_of_the_page_end_with_the_codes_that_it_gives(capsys):
    docs = Path(__file__).parents[2] / "docs"
    pages = [docs / f"{name}.md" for name in ("command_line", "command_line_files")]
    page = "".join(path.read_text(encoding="utf-8") for path in pages)
    Path("job.toml").write_text(
        re.search(r"```toml\n(.*?)```", page, flags=re.S)[1], encoding="utf-8"
    )
    commands = re.findall(r"^recdf (.*?) +# (\d+)$", page, flags=re.M)
    assert len(commands) > 8
    for command, code in commands:
        assert (command, run(capsys, *shlex.split(command))[0]) == (command, int(code))


# -- tables from elsewhere


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.assign(diff="much"), "comparison['diff'] is"),
        (
            lambda table: table.assign(n_users=None),
            "comparison['n_users'] is object; expected numbers",
        ),
        (lambda table: table.drop(columns="wins"), "comparison has no column 'wins'"),
    ],
)
def test_a_report_of_a_changed_table_says_what_is_wrong(capsys, change, words):
    assert run(capsys, *CALL, "--out", "night")[0] == 0
    assert run(capsys, "compare", "night", "--out", "night")[0] == 0
    change(pd.read_parquet("night/comparison.parquet")).to_parquet("changed.parquet")
    assert words in fails(capsys, "report", "night", "--comparison", "changed.parquet")


@pytest.mark.long
def test_a_report_of_a_table_without_rows_or_of_no_table(capsys):
    assert run(capsys, *CALL, "--out", "night")[0] == 0
    pd.DataFrame(columns=["variant"]).to_parquet("empty.parquet")
    assert "health has no column" in fails(capsys, "report", "night", "--health", "empty.parquet")
    Path("text.parquet").write_text("no parquet", encoding="utf-8")
    assert "--health text.parquet cannot be read" in fails(
        capsys, "report", "night", "--health", "text.parquet"
    )
    assert "error: --health no.parquet: no such file" in fails(
        capsys, "report", "night", "--health", "no.parquet"
    )


def test_a_defect_of_recdf_is_one_line_and_no_refusal(capsys, monkeypatch):
    monkeypatch.setattr(evaluating, "evaluate", lambda *_, **__: {}["night"])
    line = fails(capsys, *CALL)
    assert line == "recdf evaluate: error: a defect of recdf: KeyError: 'night' (-v shows where)\n"
