"""What a job expects of its files, what its record says, and which exit codes a retry can mend."""

import errno
import hashlib
import json
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from cli.command import fails, refused, run
from cli.frames import CALL, PRED, TRUE

import recdf as rd
from recdf._version import version_and_build
from recdf.cli import evaluating

pytestmark = pytest.mark.usefixtures("in_their_folder")
DAY = pd.Timestamp("2026-11-20")
STREAM = pytest.mark.parametrize("stream", [[], ["--stream"]], ids=["whole", "stream"])


def with_days(*days):
    """Write `pred` in folders of days, as a job does."""
    for day in days:
        folder = Path("pred") / f"day={day}"
        folder.mkdir(parents=True)
        PRED.to_parquet(folder / "part.parquet")
    return [word if word != "pred.parquet" else "pred" for word in CALL]


# -- what is expected


@pytest.mark.few(4)
@STREAM
@pytest.mark.parametrize(
    ("text", "sound"),
    [
        (f"rows>={len(PRED)}", True),
        (f"rows>={len(PRED) + 1}", False),
        (f"pred.rows=={len(PRED)}", True),
        (f"true.rows>{len(TRUE)}", False),
        (f"true.rows<={len(TRUE):_}", True),
        ("rows < 1,000,000", True),
    ],
)
def test_numbers_of_rows(capsys, text, sound, stream):
    code, _, err = run(capsys, *CALL, *stream, "--out", "out", "--expect", text)
    assert code == (0 if sound else 1)
    assert Path("out").exists() is sound
    assert ("refused: --" in err) is not sound


def test_check_expects_too(capsys):
    files = ("--true", "true.parquet", "--pred", "pred.parquet", "--by", "model")
    assert run(capsys, "check", *files, "--expect", "rows>=1") == run(capsys, "check", *files)
    line = refused(capsys, "check", *files, "--expect", "rows>=1", "true.rows>=1000000")
    assert line == (
        f"recdf check: refused: --true true.parquet has {len(TRUE):,} rows; --expect "
        "true.rows>=1000000\n"
    )


@pytest.mark.few(1)
@STREAM
def test_days(capsys, stream):
    call = with_days("2026-11-18", "2026-11-19", "2026-11-20")
    call = [*call, *stream]
    options = ("--duplicates", "drop")
    for days in ("3", "2", "2026-11-18..2026-11-20"):
        assert run(capsys, *call, *options, "--expect-days", days)[0] == 0
    line = refused_last(capsys, *call, *options, "--expect-days", "4")
    assert "--pred pred lacks 1 in 'day': 2026-11-17" in line
    line = refused_last(capsys, *call, *options, "--expect-days", "2026-11-18..2026-11-22")
    assert "lacks 2 in 'day': 2026-11-21, 2026-11-22" in line
    line = refused_last(capsys, *call, *options, "--expect-days", "2026-11-19..2026-11-20")
    assert "has, beside the expected ones, 1 in 'day': 2026-11-18" in line


def refused_last(capsys, *arguments):
    """The last line on stderr of a refused call."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    return err.splitlines()[-1]


def test_days_of_a_column_of_the_file(capsys):
    times = PRED.assign(shown_at=DAY + pd.to_timedelta(range(len(PRED)), unit="h"))
    times.to_parquet("pred.parquet")
    assert run(capsys, *CALL, "--day-col", "shown_at", "--expect-days", "1")[0] == 0
    assert "no column 'day'" in fails(capsys, *CALL, "--expect-days", "1")
    times.assign(shown_at="soon").to_parquet("pred.parquet")
    assert "no days in 'shown_at', or values that are none" in refused(
        capsys, *CALL, "--day-col", "shown_at", "--expect-days", "1"
    )


def test_age(capsys):
    hours = 60 * 60
    recent = pd.Timestamp.now().timestamp()
    os.utime("pred.parquet", (recent - 30 * hours, recent - 30 * hours))
    assert run(capsys, *CALL, "--max-age", "2d")[0] == 0
    line = refused(capsys, *CALL, "--max-age", "26h", "--out", "out")
    assert "the newest file of --pred pred.parquet is 30.0 h old; --max-age is 26h" in line
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--expect", "rows", "expected rows, pred.rows, true.rows or rows[COLUMN=VALUE]"),
        ("--expect", "users>=5", "expected rows, pred.rows, true.rows or rows[COLUMN=VALUE]"),
        ("--expect", "rows>=many", "expected rows, pred.rows, true.rows or rows[COLUMN=VALUE]"),
        ("--expect-days", "week", "expected 2026-11-01..2026-11-30 or a number"),
        ("--expect-days", "2026-13-01..2026-13-02", "expected 2026-11-01..2026-11-30 or a number"),
        ("--max-age", "26", "expected a number of minutes, hours or days"),
        ("--max-age", "yesterday", "expected a number of minutes, hours or days"),
    ],
)
def test_what_cannot_be_read_is_a_bad_call(capsys, option, value, words):
    PRED.assign(day="2026-11-20").to_parquet("pred.parquet")
    assert words in fails(capsys, *CALL, option, value)


# -- the record


@pytest.mark.few(1)
@STREAM
def test_the_record_of_a_run(capsys, stream):
    assert run(capsys, *CALL, *stream, "--out", "out")[0] == 0
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert record["command"] == ["recdf", *CALL, *stream, "--out", "out"]
    assert (record["recdf"], record["exit"]) == (version_and_build(), 0)
    assert record["rows"] == {"true": len(TRUE), "pred": len(PRED)}
    assert record["seconds"] >= 0
    assert pd.Timestamp(record["started"]).tz is not None
    for name in ("true", "pred"):
        data = Path(f"{name}.parquet").read_bytes()
        assert record["inputs"][name] == [
            {
                "path": f"{name}.parquet",
                "bytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
            }
        ]
    assert {one["path"] for one in record["outputs"]} == {
        "out/per_user.parquet",
        "out/summary.parquet",
    }
    equal_bytes = record["inputs"]["true"][0]["sha256"]
    assert run(capsys, *CALL, *stream, "--out", "out", "--overwrite")[0] == 0
    assert (
        json.loads(Path("out/run.json").read_text(encoding="utf-8"))["inputs"]["true"][0]["sha256"]
        == equal_bytes
    )


@pytest.mark.long
def test_each_command_has_a_record_of_its_own(capsys):
    assert run(capsys, *CALL, "--out", "out")[0] == 0
    assert run(capsys, "compare", "out", "--out", "out")[0] == 0
    assert run(capsys, "report", "out", "--out", "page.html")[0] == 0
    commands = {
        path: json.loads(Path(path).read_text(encoding="utf-8"))["command"][1]
        for path in ("out/run.json", "out/run-compare.json", "page.html.run.json")
    }
    assert list(commands.values()) == ["evaluate", "compare", "report"]
    record = json.loads(Path("page.html.run.json").read_text(encoding="utf-8"))
    assert len(record["inputs"]["results"]) == 3  # with the comparison


def test_a_finding_is_recorded_and_a_refusal_leaves_the_older_record(capsys):
    pd.concat([PRED, PRED.head(1)]).to_parquet("pred.parquet")
    assert run(capsys, *CALL, "--out", "out", "--fail-on", "warning")[0] == 1
    assert json.loads(Path("out/run.json").read_text(encoding="utf-8"))["exit"] == 1
    before = Path("out/run.json").read_bytes()
    assert run(capsys, *CALL, "--out", "out", "--overwrite", "--expect", "rows>=1000000")[0] == 1
    assert Path("out/run.json").read_bytes() == before


# -- what a retry can mend


def failing(error):
    def fails(*_, **__):
        raise error

    return fails


def wrapped(error):
    try:
        try:
            raise error
        except Exception as cause:
            raise rd.DataError("it cannot be read") from cause
    except rd.DataError as outer:
        return outer


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 4),
        (wrapped(OSError(errno.ENOSPC, "No space left on device")), 4),
        (MemoryError("3 GiB"), 4),
        (pa.ArrowMemoryError("malloc of size 5 failed"), 4),
        (OSError(errno.ESTALE, "Stale file handle"), 4),
        (OSError(errno.EACCES, "Permission denied"), 2),
        (rd.DataError("a score is infinite"), 2),
        (FileNotFoundError("true.parquet: no such file"), 2),
    ],
)
def test_exit_codes_tell_what_a_retry_can_mend(capsys, monkeypatch, error, code):
    monkeypatch.setattr(evaluating, "evaluate", failing(error))
    found, out, err = run(capsys, *CALL)
    assert (found, out, err.count("\n")) == (code, "", 1)


def test_a_file_that_was_moved_or_changed_while_it_was_read(capsys, monkeypatch):
    works = evaluating.evaluate

    def moves(*arguments, **options):
        os.replace("pred.parquet", "pred-of-today.parquet")
        return works(*arguments, **options)

    monkeypatch.setattr(evaluating, "evaluate", moves)
    code, _, err = run(capsys, *CALL)
    assert code == 4
    assert err == "recdf evaluate: error: pred.parquet changed while it was read; run this again\n"
    code, _, err = run(capsys, *CALL)
    assert (code, err.count("\n")) == (2, 1)  # it was not there at the start
    os.replace("pred-of-today.parquet", "pred.parquet")
    monkeypatch.setattr(evaluating, "read_files", failing_after_move)
    code, _, err = run(capsys, *CALL)
    assert code == 4
    assert "(true.parquet was moved or changed while it was read)" in err


def failing_after_move(*_, **__):
    os.unlink("true.parquet")
    raise rd.DataError("true.parquet cannot be read")
