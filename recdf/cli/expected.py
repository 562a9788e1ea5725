"""What a job expects of its files: rows, days, age. A file that is not as expected is refused (exit code 1)."""

from __future__ import annotations

import argparse
import operator
import os
import re
import time
from collections.abc import Callable
from typing import Any

import pandas as pd

from ..errors import OptionError, RecdfError
from .arguments import add_arguments
from .files import FileSet, is_remote

OPERATORS = {">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt}
UNIT_SECONDS = {"m": 60, "h": 3600, "d": 86400}


class Unexpected(RecdfError, ValueError):
    """The files that arrived are not those that the job expects."""


def add_expected(group: Any) -> None:
    """Add the arguments of what is expected."""
    add_arguments(group, {
        "--expect ROWS ...":
            "numbers of rows, such as rows>=1000000 (of --pred) or true.rows>=5000; else exit code 1",
        "--expect-days DAYS":
            "days that --pred must have: 2026-11-01..2026-11-30, all of them and no other, or 7 for seven days "
            "without a gap up to the latest one",
    })  # fmt: skip
    add_arguments(group, {"--day-col COLUMN": "column of --expect-days (default day)"}, default="day")
    add_arguments(group, {"--max-age AGE": "age of the newest file of --true and of --pred, such as 26h, 90m or 2d"})


def check_age(given: argparse.Namespace) -> None:
    """Raise if the newest file of a frame is older than --max-age."""
    if given.max_age is None:
        return
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([mhd])", given.max_age)
    if not found:
        raise OptionError(f"--max-age {given.max_age}; expected a number of minutes, hours or days: 90m, 26h or 2d")
    for name in ("true", "pred"):
        path = getattr(given, name)
        if is_remote(path):
            raise OptionError(f"--max-age looks at files of this machine, and --{name} {path} is an address")
        age = time.time() - max(os.stat(file).st_mtime for file in FileSet.of(path).paths)
        if age > float(found[1]) * UNIT_SECONDS[found[2]]:
            old = f"{age / 3600:,.1f} h old"
            raise Unexpected(f"the newest file of --{name} {path} is {old}; --max-age is {given.max_age}")


def check_expected(given: argparse.Namespace, days: Callable[[], pd.Series]) -> None:
    """Raise if the numbers of rows, or the days that `days` returns, are not as expected."""
    for text in given.expect or []:
        found = re.fullmatch(r"(?:(true|pred)\.)?rows\s*(>=|<=|==|>|<)\s*([\d_,]+)", text)
        if not found:
            raise OptionError(f"--expect {text}; expected rows, pred.rows or true.rows with >=, <= or == and a number")
        role, sign, number = found[1] or "pred", found[2], int(re.sub("[_,]", "", found[3]))
        n_rows = given.rows[role]
        if not OPERATORS[sign](n_rows, number):
            raise Unexpected(f"--{role} {getattr(given, role)} has {n_rows:,} rows; --expect {text}")
    if given.expect_days is not None:
        texts = days().astype(str).str.slice(0, 10).drop_duplicates()
        _check_days(given, pd.to_datetime(texts, errors="coerce", format="mixed"))


def _check_days(given: argparse.Namespace, found: pd.Series) -> None:
    there = pd.DatetimeIndex(found).sort_values()
    if there.hasnans or there.empty:
        raise Unexpected(f"--pred {given.pred} has no days in {given.day_col!r}, or values that are none")
    first, between, last = given.expect_days.partition("..")
    try:
        wanted = pd.date_range(first, last) if between else pd.date_range(end=there[-1], periods=int(first))
    except ValueError:
        raise OptionError(f"--expect-days {given.expect_days}; expected 2026-11-01..2026-11-30 or a number") from None
    more = there.difference(wanted) if between else there[:0]
    for days, word in ((wanted.difference(there), "lacks"), (more, "has, beside the expected days,")):
        if len(days):
            what = f"{word} {len(days):,} of the days: {', '.join(str(day.date()) for day in days[:5])}"
            raise Unexpected(f"--pred {given.pred} {what}; --expect-days {given.expect_days}")
