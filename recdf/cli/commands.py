"""A command is made from its functions.

A command is one record. Its flags are the parameters of its functions, with their annotations,
defaults and docstrings; frames are files. `call` gives what the functions returned, and the text
for a terminal. Files, JSON, notes and the exit code follow from the tables.

Files are written first. With `--format json` or `csv`, stdout holds only the tables, so that
another program can read it. A reader of stdout that has ended, or a stderr that takes nothing, does
not change what the command does.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import math
import os
import sys
import textwrap
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd
from pandas import DataFrame

from ..inputs.options import Names
from ..judge.cautions.table import UNLIKE
from ..judge.comparisons import Comparison, default_columns
from ..judge.verdict import VERDICT_COLUMNS, effect_of_both, warnings_of
from ..publishing import (
    RUN,
    WINDOWS,
    published,
    write_text,
)
from ..tables.cells import brief_cells, columns_before, plain_rows, to_text
from .arguments import (
    EXAMPLES,
    FILE_FORMATS,
    FILES_HELP,
    Given,
    add_arguments,
    add_options,
    add_parameter,
    shapes_of,
)
from .option_files import CONFIG_FLAGS

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


def add_output(command: Any, *, fail_on: bool) -> None:
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


def print_tables(given: Namespace, text: str, tables: Tables) -> None:
    """Print the tables of a result: as `text` for a terminal, or all of them as JSON, or the first
    one as CSV."""
    if given.format == "json":
        # Rows have all digits of their numbers. Infinities become null, since JSON has no number
        # for them.
        records = {}
        for name, table in tables.items():
            known = table.notna() & ~table.isin([math.inf, -math.inf])
            records[name] = table.astype(object).where(known, None).to_dict("records")
        one = records if len(records) > 1 else next(iter(records.values()))
        plain = "utf" not in (sys.stdout.encoding or "utf").lower()
        say(json.dumps(one, ensure_ascii=plain, default=str))
    elif given.format == "csv":
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8")  # an escape of a terminal would be another id
        say(next(iter(tables.values())).to_csv(index=False, lineterminator="\n"), end="")
    elif not given.quiet:
        say(text)


def text_table(columns: Mapping[str, Sequence[str]]) -> str:
    """Write columns of texts for a terminal, left-aligned."""
    rows = plain_rows(zip(*columns.values(), strict=True))
    return plain_signs(to_text(list(columns), rows, ["left"] * len(columns)))


def note(given: Namespace, text: str) -> None:
    """Print a note beside the tables: on stdout for a terminal, on stderr where stdout is for
    another program."""
    if text and not given.quiet:
        (say if given.format in (None, "table") else complain)(text)


def verbose(given: Namespace, text: str) -> None:
    """Print the progress of the command on stderr if -v was given."""
    if given.verbose:
        complain(f"recdf: {text}")


# What `--fail-on` may name, with the sentence of a row for which it holds.
Failings = Iterable[tuple[str, str]]


def fail_on(given: Namespace, found: Failings, *, always: Names = ()) -> int:
    """Return exit code 1 if `--fail-on` names what one of the rows is, and say on stderr which row
    that was."""
    named = {*always, *(getattr(given, "fail_on", None) or ())}
    rows = dict.fromkeys(row for row in found if row[0] in named)
    if not rows:
        return 0
    what = next(iter(rows))[0]
    why = "" if what in always else f", --fail-on {what}"
    say_why(given, 1, [said for _, said in rows], why)
    return 1


def say_why(given: Namespace, code: int, rows: Sequence[str], why: str = "") -> None:
    """Say on stderr which row is the reason of an exit code, and how many there are more."""
    more = f" (and {len(rows) - 1:,} more)" if len(rows) > 1 else ""
    complain(
        f"recdf {given.command}: exit code {code}{why}: "
        f"{plain_signs(' '.join(rows[0].split()))}{more}"
    )


def plain_signs(text: str) -> str:
    """Return a text without typographic signs, which a terminal may lack."""
    return text.replace("−", "-").replace("∞", "inf").replace("–", "-")


def failing_verdicts(*tables: DataFrame, decided: bool = False) -> Iterator[tuple[str, str]]:
    """Give the rows of tables of verdicts that are invalid or worse, or have a warning, each with
    its sentence.

    Where there is a decision, it says what is "worse": a guardrail may be so within its margin.
    """
    fails = {
        "invalid": lambda row: row["withheld"] in UNLIKE,
        "worse": lambda row: "worse" in (row["effect"], effect_of_both(row)) and not decided,
        "drift": lambda row: (
            row["effect"] in ("drifted", "drifts", "far_off", "missing", "too_old")
        ),
        "warning": lambda row: bool(
            warnings_of(row["remarks"]) or row["effect"].startswith("rejects") or row.get("flags")
        ),
    }
    rows = [row for table in tables for row in table.to_dict("records")]
    for row in rows:  # a plan has remarks alone, and an off-policy estimate flags
        row |= {name: row.get(name, "") for name in VERDICT_COLUMNS}
    for what, holds in fails.items():
        for row in filter(holds, rows):
            warned = "; ".join(one for one in warnings_of(row["remarks"]) if one != row["withheld"])
            said = f"{row_name(row)}: {row['verdict']}".rstrip(": ")
            yield what, said + f" ({warned})" * bool(warned)


def row_name(row: Mapping[Any, Any]) -> str:
    """Name a row by its segments, metric and pair; a row without a metric by its texts."""
    names = list(row)
    if "metric" not in names:
        names = [
            name for name in names if name not in ("better", "alike", "outliers", *VERDICT_COLUMNS)
        ]
        return ", ".join(row[name] for name in names if row[name] and isinstance(row[name], str))
    before = [name for name in columns_before(row, "metric") if row[name] != ""]
    segments = [f"{name} {row[name]}" for name in before]
    sides = ("treatment", "control"), ("model", "baseline")
    pairs = [f"{row[new]} vs. {row[old]}" for new, old in sides if {new, old} <= row.keys()]
    return ", ".join([*segments, str(row["metric"]), *pairs])


def brief_text(table: DataFrame, names: Iterable[str]) -> str:
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


def texts_and(table: DataFrame, *numbers: str) -> list[str]:
    """Return the names of the columns of text, and of some of numbers."""
    shown = table.drop(columns=[*VERDICT_COLUMNS[:-1]], errors="ignore")
    return [
        name
        for name in map(str, shown)
        if name in numbers or not pd.api.types.is_numeric_dtype(shown[name].dtype)
    ]


# -- the record of a command, and its answer

Tables = Mapping[str, DataFrame]


class Reply(NamedTuple):
    """What a command says: text for a terminal, the tables that are written, and those that JSON
    and CSV have if these are others.

    The exit code is that of `failings`, which are by default the verdicts of the tables, or `code`
    with its reasons. `texts` are written beside the tables.
    """

    text: str
    tables: Tables = MappingProxyType({})
    printed: Tables | None = None
    note: str = ""
    failings: Iterable[tuple[str, str]] | None = None
    always: Names = ()  # failings that end the command with 1 without --fail-on
    code: int = 0
    reasons: Sequence[str] = ()
    texts: Mapping[Path, str] = {}


class Command(NamedTuple):
    """A command: its functions, and how they are called with the options that were given."""

    name: str
    says: str
    description: str
    usage: str
    call: Callable[[Namespace, Given], Reply]
    functions: Sequence[Callable[..., Any]] = ()
    writes: Names | None = None
    files: Mapping[str, str] = {}
    arguments: Mapping[str, str] = {}  # those that no function has in this form
    without: Names = ()  # parameters of the functions that the command gives itself
    untyped: Names = ()  # parameters that are given as text, whatever their annotation
    options: Names = ()  # of the shared options
    with_control: bool = False
    out: str = ""  # what is said of --out
    defaults: Mapping[str, Any] = {}
    fails: bool = True  # whether --fail-on may end it with code 1

    def add(self, commands: Any) -> None:
        """Add the command, whose help begins with a line of usage and examples. The line names
        files and folders first, since flags with several values would swallow them."""
        examples = EXAMPLES[self.name].replace("\n", "\n  ")
        few = "examples" if examples.count("\n  recdf") > 1 else "example"
        reads = any({"FILE", "LOG"} & {*usage.split()} for usage in self.files)
        command = commands.add_parser(
            self.name,
            usage=f"%(prog)s {self.usage} [options]",
            help=self.says,
            description=f"{few}:{examples}\n\n{textwrap.fill(self.description, 78)}",
            epilog=FILES_HELP if reads else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        files = command.add_argument_group("files")
        add_arguments(files, self.files)
        if self.writes is not None:
            named = " and ".join(", ".join(self.writes).rsplit(", ", 1))
            said = self.out or f"folder for {named}; without it nothing is written"
            replace = "replace a result that is already there"
            add_arguments(files, {"--out FOLDER": said, "--overwrite": replace})
            command.set_defaults(writes=self.writes)
        group = command.add_argument_group("options")
        if self.with_control:
            add_arguments(
                group.add_mutually_exclusive_group(required=True),
                {
                    "--control NAME": "variant that the others are compared with",
                    "--all-pairs": "compare all pairs of variants",
                },
            )
        add_arguments(group, self.arguments)
        for name, function in self.parameters().items():
            add_parameter(group, function, name)
        add_options(command, self.options)
        add_arguments(command, CONFIG_FLAGS)
        if reads:
            add_arguments(command, FILE_FORMATS)
        add_output(command, fail_on=self.fails)
        command.set_defaults(run=self.run, parser=command, **self.defaults)

    def parameters(self) -> dict[str, Callable[..., Any]]:
        """Return the parameters that are flags, each with its first function."""
        own = {
            word.lstrip("-").replace("-", "_") for usage in self.arguments for word in usage.split()
        }
        return {
            name: function
            for function in reversed(self.functions)
            for name in (*shapes_of(function), *self.untyped)
            if name not in {*self.without, *own}
            if name in self.untyped or shapes_of(function)[name][0] is not None
        }

    def run(self, given: Namespace) -> int:
        """Run a command. Its tables and texts are written in one step; then the tables are printed,
        what is said of them, and what was written.

        Of all files that a run may write, none of an older run stays beside the new ones.
        """
        names = self.parameters()
        values = {name: getattr(given, name) for name in names if hasattr(given, name)}
        options = {name: None if one in ([], ["none"]) else one for name, one in values.items()}
        if "details" in names:  # files have all columns
            options["details"] = True
        reply = self.call(given, options)
        written, printed = (
            {
                name: default_columns(table, hasattr(given, "details"))
                if "details" in names and type(table) is Comparison
                else table
                for name, table in tables.items()
            }
            for tables in (reply.tables, reply.tables if reply.printed is None else reply.printed)
        )
        files = {given.out / f"{name}.parquet": one for name, one in written.items() if given.out}
        if files or reply.texts:
            content = b"".join(table.to_parquet(index=False) for table in files.values())
            run = {RUN: hashlib.sha256(content).hexdigest()}
            every = [given.out / name for name in given.writes] if files else []
            with published(every, overwrite=given.overwrite, verdicts=reply.texts) as place:
                for path, table in files.items():
                    own = DataFrame(table, copy=False)
                    own.attrs = table.attrs | run
                    own.to_parquet(place(path), index=False)
                for path, one in reply.texts.items():
                    write_text(path, place(path), one)
        print_tables(given, reply.text, printed)
        note(given, reply.note)
        note(given, f"\nwrote {', '.join(map(str, files))}" if files else "")
        if reply.code:
            say_why(given, reply.code, reply.reasons)
            return reply.code
        found = reply.failings
        if found is None:
            tables = reply.tables.values()
            found = failing_verdicts(*(one for one in tables if {"remarks", "flags"} & {*one}))
        return fail_on(given, found, always=reply.always)
