"""The output of a command: tables on stdout in the format of `--format`, notes and warnings on stderr.

Contract: with `--format json` or `csv`, stdout holds only the tables, so that another program can read it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ..evaluation.publishing import staging_folder

__all__ = ["FAIL_ON", "add_output", "failed", "note", "print_tables", "verbose", "verdicts_fail", "write_files"]

FAIL_ON = ("error", "warning", "invalid")


def add_output(command: Any, *, fail_on: bool = True) -> None:
    """Add the arguments that every command has."""
    group = command.add_argument_group("output")
    group.add_argument(
        "--format",
        choices=("table", "json", "csv"),
        help="of what is printed: a table for a terminal (default), or JSON or CSV with every digit and column",
    )
    loud = group.add_mutually_exclusive_group()
    loud.add_argument("-v", "--verbose", action="store_true", help="say on stderr what is read, and trace errors")
    loud.add_argument("-q", "--quiet", action="store_true", help="print errors, and a table only if --format is given")
    if fail_on:
        group.add_argument(
            "--fail-on",
            nargs="*",
            choices=FAIL_ON,
            metavar="{" + ",".join(FAIL_ON) + "}",
            default=[],
            help="exit with code 1, after all is printed and written, on: error, a finding of recdf check of that "
            "severity (always so there); warning, any warning; invalid, a verdict that is invalid",
        )


def print_tables(given: argparse.Namespace, text: str, tables: Mapping[str, pd.DataFrame]) -> None:
    """Print the tables of a result: as `text` for a terminal, or all of them as JSON, or the first one as CSV."""
    if given.format == "json":
        records = {name: _records(table) for name, table in tables.items()}
        print(json.dumps(next(iter(records.values())) if len(records) == 1 else records, ensure_ascii=False))
    elif given.format == "csv":
        print(next(iter(tables.values())).to_csv(index=False), end="")
    elif not given.quiet:
        print(text)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows with all digits of their numbers; infinities become null, since JSON has no number for them."""
    columns = {}
    for name in table.columns:
        cells = table[name].tolist()
        columns[str(name)] = [_json_cell(cell) for cell in cells]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _json_cell(cell: Any) -> Any:
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return None
    if isinstance(cell, bool | int | str):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return str(cell)


def note(given: argparse.Namespace, text: str) -> None:
    """Print a note beside the tables: on stdout for a terminal, on stderr where stdout is for another program."""
    if not given.quiet:
        print(text, file=sys.stdout if given.format in (None, "table") else sys.stderr)


def verbose(given: argparse.Namespace, text: str) -> None:
    """Print the progress of the command on stderr if -v was given."""
    if given.verbose:
        print(f"recdf: {text}", file=sys.stderr)


def write_files(folder: Path, tables: Mapping[str, pd.DataFrame]) -> str:
    """Write tables to files of these names and return their paths; all are complete before one takes its place."""
    with staging_folder(folder.absolute()) as staging:
        for name, table in tables.items():
            table.to_parquet(staging / name, index=False)
        for name in tables:
            os.replace(staging / name, folder / name)
    return ", ".join(str(folder / name) for name in tables)


def failed(given: argparse.Namespace, what: str) -> bool:
    """Tell whether the command fails on this kind of finding."""
    return what in getattr(given, "fail_on", [])


def verdicts_fail(given: argparse.Namespace, *tables: pd.DataFrame) -> int:
    """Return the exit code for tables of verdicts: 1 with `--fail-on invalid` if one of them is invalid."""
    invalid = any(table["verdict"].astype(str).str.startswith("invalid").any() for table in tables)
    return int(invalid and failed(given, "invalid"))
