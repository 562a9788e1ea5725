"""The output of a command: files, tables on stdout in the format of `--format`, notes and warnings
on stderr.

Contract: files are written first. With `--format json` or `csv`, stdout holds only the tables, so
that another program can read it. A reader of stdout that has ended, or a stderr that takes nothing,
does not change what the command does.

`run.json` beside a result says what was run on which files, and how it ended. The inputs are listed
before the command reads them, so that one that has gone or changed since is found.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._version import version_and_build
from ..errors import RecdfError
from ..formats.file_sets import FileSet, is_remote
from ..judge.cautions.table import UNLIKE
from ..judge.comparisons import Comparison, default_columns
from ..judge.verdict import VERDICT_COLUMNS, warnings_of
from ..publishing import (
    RUN,
    WINDOWS,
    is_hidden,
    plain_file,
    publish_text,
    published,
    refuse_files,
    write_text,
)
from ..tables.cells import brief_cells, plain_rows, to_text
from .arguments import add_arguments

FAIL_ON = ("error", "warning", "invalid", "worse", "undecided", "drift", "deviation")

STDOUT = "stdout"
# Errors of a stdout whose reader, such as `head`, has ended; Windows has the second one.
READER_ENDED = (errno.EPIPE, errno.EINVAL) if WINDOWS else (errno.EPIPE,)

# The files that one run writes together. `recdf compare` and `recdf experiment` replace each
# other's.
COMPARISON_FILES = (
    "comparison.parquet",
    "segments.parquet",
    "over_time.parquet",
    "health.parquet",
    "decision.parquet",
    "roles.parquet",
)
GATE_FILES = ("gate.parquet", "checks.parquet")
ESTIMATED = ("ope.parquet", "ope_diagnostics.parquet", "ope_comparison.parquet")
COMPARED_RESULT = "recdf_result"  # in the attrs of COMPARED: which result was compared


def add_output(command: Any, *, fail_on: bool = True) -> None:
    """Add the arguments that every command has."""
    group = command.add_argument_group("output")
    printed = (
        "of what is printed: a table for a terminal (default), or JSON or CSV with every digit"
    )
    add_arguments(group, {"--format {table,json,csv}": printed})
    add_arguments(
        group.add_mutually_exclusive_group(),
        {
            "-v --verbose": "say on stderr what is read, and trace errors",
            "-q --quiet": "print errors, and a table only if --format is given",
        },
    )
    if fail_on:
        add_arguments(
            group,
            {
                "--fail-on {" + ",".join(FAIL_ON) + "} [...]": "exit with code 1, after all is "
                "printed and written, on: error, a finding of recdf check or audit of that "
                "severity (always so there); warning, any warning, also of a row; invalid, a "
                "verdict that is invalid, or withheld because the variants are not alike; worse, "
                "an effect that is so, or the decision not to ship; undecided, the decision to "
                "keep running; deviation, a plan that was not followed; drift, data that changed",
            },
        )


def say(text: str, end: str = "\n") -> None:
    """Print on stdout."""
    try:
        print(text, end=end, flush=True)
    except OSError as error:
        if error.errno not in READER_ENDED:
            raise OSError(error.errno, error.strerror, STDOUT) from error
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: str) -> None:
    """Print on stderr, if that takes it."""
    with suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def print_tables(given: argparse.Namespace, text: str, tables: Mapping[str, pd.DataFrame]) -> None:
    """Print the tables of a result: as `text` for a terminal, or all of them as JSON, or the first
    one as CSV."""
    if given.format == "json":
        records = {name: _records(table) for name, table in tables.items()}
        plain = "utf" not in (sys.stdout.encoding or "utf").lower()
        say(
            json.dumps(
                next(iter(records.values())) if len(records) == 1 else records, ensure_ascii=plain
            )
        )
    elif given.format == "csv":
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8")  # an escape of a terminal would be another id
        say(next(iter(tables.values())).to_csv(index=False, lineterminator="\n"), end="")
    elif not given.quiet:
        say(text)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows with all digits of their numbers; infinities become null, since JSON has no
    number for them."""
    columns = {str(name): map(_json_cell, table[name].tolist()) for name in table.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _json_cell(cell: Any) -> Any:
    if (
        cell is None
        or cell is pd.NA
        or cell is pd.NaT
        or (isinstance(cell, float) and not math.isfinite(cell))
    ):
        return None
    return cell if isinstance(cell, bool | int | float | str) else str(cell)


def text_table(columns: Mapping[str, Sequence[str]]) -> str:
    """Write columns of texts for a terminal, left-aligned."""
    rows = plain_rows(zip(*columns.values(), strict=True))
    return plain_signs(to_text(list(columns), rows, ["left"] * len(columns)))


def note(given: argparse.Namespace, text: str) -> None:
    """Print a note beside the tables: on stdout for a terminal, on stderr where stdout is for
    another program."""
    if text and not given.quiet:
        (say if given.format in (None, "table") else complain)(text)


def verbose(given: argparse.Namespace, text: str) -> None:
    """Print the progress of the command on stderr if -v was given."""
    if given.verbose:
        complain(f"recdf: {text}")


def as_asked(
    given: argparse.Namespace, tables: Mapping[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """Return tables of a command that has --details, comparisons with the columns that it asks
    for."""
    return {
        name: default_columns(table, hasattr(given, "details"))
        if type(table) is Comparison
        else table
        for name, table in tables.items()
    }


def give_tables(
    given: argparse.Namespace,
    text: str,
    tables: Mapping[str, pd.DataFrame],
    printed: Mapping[str, pd.DataFrame],
    texts: Mapping[Path, str],
    said: str,
) -> None:
    """Write tables to files of --out, and texts, in one step; then print the tables, what is said
    of them, and what was written.

    Of all files that a run may write, none of an older run stays beside the new ones.
    """
    files = {given.out / f"{name}.parquet": one for name, one in tables.items() if given.out}
    if files or texts:
        written = b"".join(table.to_parquet(index=False) for table in files.values())
        run = {RUN: hashlib.sha256(written).hexdigest()}
        every = [given.out / name for name in given.writes] if files else []
        with published(every, overwrite=given.overwrite, verdicts=texts) as place:
            for path, table in files.items():
                own = pd.DataFrame(table, copy=False)
                own.attrs = table.attrs | run
                own.to_parquet(place(path), index=False)
            for path, one in texts.items():
                write_text(path, place(path), one)
    print_tables(given, text, printed)
    note(given, said)
    note(given, f"\nwrote {', '.join(map(str, files))}" if files else "")


# What `--fail-on` may name, with the sentence of a row for which it holds.
Failings = Iterable[tuple[str, str]]


def fail_on(given: argparse.Namespace, found: Failings, *, always: Sequence[str] = ()) -> int:
    """Return exit code 1 if `--fail-on` names what one of the rows is, and say on stderr which row
    that was."""
    named = getattr(given, "fail_on", None) or ()
    rows = list(
        dict.fromkeys((what, said) for what, said in found if what in always or what in named)
    )
    if rows:
        say_why(
            given,
            1,
            [said for _, said in rows],
            "" if rows[0][0] in always else f", --fail-on {rows[0][0]}",
        )
    return int(bool(rows))


def say_why(given: argparse.Namespace, code: int, rows: Sequence[str], why: str = "") -> None:
    """Say on stderr which row is the reason of an exit code, and how many there are more."""
    more = f" (and {len(rows) - 1:,} more)" if len(rows) > 1 else ""
    complain(
        f"recdf {given.command}: exit code {code}{why}: "
        f"{plain_signs(' '.join(rows[0].split()))}{more}"
    )


def plain_signs(text: str) -> str:
    """Return a text without typographic signs, which a terminal may lack."""
    return text.replace("−", "-").replace("∞", "inf").replace("–", "-")


def failing_verdicts(*tables: pd.DataFrame, decided: bool = False) -> Iterator[tuple[str, str]]:
    """Give the rows of tables of verdicts that are invalid or worse, or have a warning, each with
    its sentence.

    Where there is a decision, it says what is "worse": a guardrail may be so within its margin.
    """
    fails: dict[str, Callable[[Mapping[Any, Any]], bool]] = {
        "invalid": lambda row: row["withheld"] in UNLIKE,
        "worse": lambda row: row["effect"] == "worse" and not decided,
        "drift": lambda row: (
            row["effect"] in ("drifted", "drifts", "far_off", "missing", "too_old")
        ),
        "warning": lambda row: bool(
            warnings_of(row["remarks"]) or row["effect"] == "rejects_often"
        ),
    }
    rows = [row for table in tables for row in table.to_dict("records")]
    for what, holds in fails.items():
        for row in filter(holds, rows):
            warned = "; ".join(one for one in warnings_of(row["remarks"]) if one != row["withheld"])
            yield what, f"{row_name(row)}: {row['verdict']}" + (f" ({warned})" if warned else "")


def row_name(row: Mapping[Any, Any]) -> str:
    """Name a row by its segments, metric and pair; a row without a metric by its texts."""
    names = list(row)
    if "metric" not in names:
        names = [
            name
            for name in names
            if name not in ("better", "alike", "outliers", *VERDICT_COLUMNS) and _is_text(row[name])
        ]
        return ", ".join(row[name] for name in names)
    segments = [f"{name} {row[name]}" for name in names[: names.index("metric")]]
    sides = ("treatment", "control"), ("model", "baseline")
    pairs = [f"{row[new]} vs. {row[old]}" for new, old in sides if new in row]
    return ", ".join([*segments, str(row["metric"]), *pairs])


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


RECORD = "run.json"
HASHED_AT_ONCE, MOST_BLOCKS = 2**20, 64  # of a larger file, so many blocks are hashed
# Errors of the machine and not of the call: with more room, memory or time the same call may work.
PASSING = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ENOMEM,
    errno.EIO,
    errno.ESTALE,
    errno.EMFILE,
    errno.ENFILE,
    errno.EAGAIN,
    errno.EBUSY,
    errno.ETIMEDOUT,
    errno.ECONNRESET,
    errno.ECONNREFUSED,
    errno.ENETUNREACH,
}


def refuse_outputs(given: argparse.Namespace) -> None:
    """Check all files that a command writes before it does any work."""
    out, overwrite = getattr(given, "out", None), getattr(given, "overwrite", False)
    if out is not None:
        names = getattr(given, "writes", None)
        refuse_files([out] if names is None else [out / name for name in names], overwrite)
    for name in ("junit", "summary"):
        if (path := getattr(given, name, None)) is not None:
            refuse_files([path], True)


class RunRecord:
    """The files that a command is given, and what is written about its run."""

    def __init__(self, given: argparse.Namespace, words: Iterable[str]) -> None:
        self.given, self.words, self.started = given, list(words), time.time()
        self.inputs = dict(_inputs(given))
        self.out: Path | None = getattr(given, "out", None)
        # A comparison may replace an earlier one that stands beside the result.
        own = [] if self.out is None else [self.out.absolute() / name for name in COMPARISON_FILES]
        paths = [
            path
            for paths in self.inputs.values()
            for path in paths
            if Path(path).absolute() not in own
        ]
        self.states = {path: _state(path) for path in paths}
        self.older = {path: _state(path) for path in self._place()[1]}

    def check(self) -> None:
        """Raise before the command runs if the record cannot be written: a folder has its name, or
        the name is too long."""
        place = self._place()[0]
        if self.out is not None and os.path.isdir(place):
            raise IsADirectoryError(
                errno.EISDIR, "is a folder; expected a file or none", str(place)
            )
        with suppress(FileNotFoundError, NotADirectoryError):
            os.lstat(place)

    def changed(self) -> list[str]:
        """Return the inputs that have gone or changed since the command began."""
        return [path for path, state in self.states.items() if _state(path) != state]

    def write(self, code: int) -> None:
        """Write the record beside the result that this run wrote, if it wrote one."""
        place, files = self._place()
        outputs = [path for path in files if _state(path) != self.older.get(path)]
        if not outputs:
            return  # the run was refused, and what stands there is an older result, or nothing
        record = {
            "command": ["recdf", *self.words],
            "recdf": version_and_build(),
            "started": datetime.fromtimestamp(self.started, UTC).isoformat(timespec="seconds"),
            "seconds": round(time.time() - self.started, 3),
            "exit": code,
            "rows": getattr(self.given, "rows", {}),
            "inputs": {
                name: [_file_record(path) for path in paths] for name, paths in self.inputs.items()
            },
            "outputs": [_file_record(path) for path in outputs],
        }
        publish_text(place, json.dumps(record, indent=1) + "\n")

    def _place(self) -> tuple[Path, list[str]]:
        """Return the path of the record, and the files of the result."""
        out, command = self.out, self.given.command
        if out is None or not (os.path.isdir(out) or hasattr(self.given, "writes")):
            return Path(f"{out}.{RECORD}"), [] if out is None else [str(out)]
        other = command
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            text = plain_file(out / RECORD).read_text(encoding="utf-8")
            other = json.loads(text)["command"][1]
        found = (
            path
            for path in (out.rglob("*.parquet") if os.path.isdir(out) else [])
            if path.is_file()
        )
        files = sorted(str(path) for path in found if not (path.is_symlink() or is_hidden(path)))
        return out / (RECORD if other == command else f"run-{command}.json"), files


def _inputs(given: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """Give the arguments that name files of this machine; the command itself says what is wrong
    with a name."""
    for action in given.parser._actions:
        values = getattr(given, action.dest, None)
        if (
            values is None
            or action.dest == "out"
            or not {"FILE", "LOG", "RESULTS", "TABLE"} & set(str(action.metavar).split())
        ):
            continue
        paths: list[str] = []
        for value in map(str, values if isinstance(values, list) else [values]):
            with suppress(OSError, RecdfError):
                paths += [] if is_remote(value) else FileSet.of(value).files
        yield (
            action.dest,
            [path for path in paths if not path.endswith(".json")],
        )  # no record of an earlier run


def _state(path: str) -> tuple[int, int] | None:
    """Return what changes with a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _file_record(path: str) -> dict[str, Any]:
    """Return size and SHA-256 of a file; of a large one, the digest is that of blocks at equal
    distances."""
    size, digest = os.path.getsize(path), hashlib.sha256()
    whole = size <= HASHED_AT_ONCE * MOST_BLOCKS
    with open(path, "rb") as file:
        for start in (
            [0] if whole else np.linspace(0, size - HASHED_AT_ONCE, MOST_BLOCKS).astype(int)
        ):
            file.seek(start)
            digest.update(file.read(-1 if whole else HASHED_AT_ONCE))
    return {
        "path": path,
        "bytes": size,
        "sha256" if whole else f"sha256_of_{MOST_BLOCKS}_mib": digest.hexdigest(),
    }


def can_be_retried(error: BaseException | None) -> bool:
    """Whether the same call may work at another time: no room, no memory, a drive that does not
    answer."""
    if isinstance(error, OSError) and error.filename == STDOUT:
        return False  # the files are written, and nobody got the tables
    while error is not None:
        if isinstance(error, MemoryError) or (
            isinstance(error, OSError) and error.errno in PASSING
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def brief_text(table: pd.DataFrame, names: Iterable[str]) -> str:
    """Write columns of a table for a terminal, the remarks behind the verdict; empty columns are
    left out."""
    known = brief_cells(table)
    cells = {
        name: [
            f"{cell:,.0f}" if name.startswith(("n_", "days")) and pd.notna(cell) else text
            for cell, text in zip(table[name], known[name], strict=True)
        ]
        for name in names
    }
    if "remarks" in table.columns and "verdict" in cells:
        verdicts = table[["verdict", "withheld", "remarks"]].itertuples(index=False)
        cells["verdict"] = [
            f"{verdict} ({remarks})" if remarks not in ("", withheld) else verdict
            for verdict, withheld, remarks in verdicts
        ]
    return text_table({name: own for name, own in cells.items() if any(own)})


def texts_and(table: pd.DataFrame, *numbers: str) -> list[str]:
    """Return the names of the columns of text, and of some of numbers."""
    shown = table.drop(columns=[*VERDICT_COLUMNS[:-1]], errors="ignore")
    return [
        name
        for name in map(str, shown)
        if name in numbers or not pd.api.types.is_numeric_dtype(shown[name].dtype)
    ]
