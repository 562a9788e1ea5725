"""What moved between two runs of `impressions_parquet`: shares of the impressions and events, by
the counts of their specs.

A share has moved if two things hold. It is beyond chance: the test of two shares (χ², or Fisher's
where an expected count is below 8) has p < 0.001 after Holm's correction over all shares. And it is
large: the odds of the share changed by a quarter or more, since nights are never alike to the last
event.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import DataError
from ..publishing import plain_file, where
from ..stats.many_tests import adjust
from ..stats.shares import equal_shares_test

SPEC_FILE = "impressions.json"
BEYOND_CHANCE, LEAST_ODDS = 0.001, 1.25
# Rules that decide what the counts mean.
RULES = (
    *("list_cols", "window", "clock_skew", "session_gap", "attribution", "named_lists", "repeats"),
    "device_col",
)
OUTCOMES = ("attributed", "never_shown", "before_impression", "outside_window", "unknown_list")


class CountOf(NamedTuple):
    """How many of how many impressions, events or devices."""

    n: int
    of: int


def read_spec(path: Any) -> dict[str, Any]:
    """Read the record of an earlier run: its file, or the folder that has it.

    Raises
    ------
    DataError
        If the file is no such record.
    """
    file = Path(path)
    file = file / SPEC_FILE if file.is_dir() else file
    try:
        found = json.loads(plain_file(where(file)).read_text(encoding="utf-8"))
        return {"counts": {"impressions": found["counts"]["impressions"]}, **found}
    except (ValueError, LookupError, TypeError, RecursionError):
        raise DataError(
            f"{file} is no {SPEC_FILE} of recdf impressions", argument="against"
        ) from None


def shares_of(counts: Mapping[str, Any]) -> Iterator[tuple[str, CountOf]]:
    """Give the shares that the counts of a spec hold, each by what it is a share of."""
    n, null = counts["impressions"], counts.get("null_rows", {})
    for name in ("repeated", "logged_twice"):
        yield f"impressions {name}", CountOf(counts.get(name, 0), n)
    yield "impressions with a null", CountOf(null.get("log", 0), null.get("log", 0) + n)
    for kind in ("clicks", "purchases", "refunds"):
        own = counts.get(kind, {"events": 0})
        rows, rest = own["events"], own["events"] - own.get("refunded", 0)
        for name in ("logged_twice", "refunded", "without_purchase"):
            yield f"{kind} {name}", CountOf(own.get(name, 0), rows)
        yield f"{kind} with a null", CountOf(null.get(kind, 0), null.get(kind, 0) + rows)
        for name in OUTCOMES:
            yield f"{kind} {name}", CountOf(own.get(name, 0), rest)
    devices = counts.get("persons", {})
    for name in ("unknown_devices", "shared_devices"):
        yield name, CountOf(devices.get(name, 0), devices.get("devices", 0))


def moved_shares(counts: Mapping[str, Any], older: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each share that moved between the counts of two specs, and for events
    that only one of them has."""
    pairs = [
        (name.replace("_", " "), one, two)
        for (name, one), (_, two) in zip(shares_of(counts), shares_of(older), strict=True)
    ]
    said = [
        f"{one.of:,} {name.partition(' ')[0]}, and {two.of:,} before"
        for name, one, two in pairs
        if name.endswith((" attributed", "impressions repeated")) and bool(one.of) != bool(two.of)
    ]
    pairs = [(name, one, two) for name, one, two in pairs if one.of and two.of]
    tests = [equal_shares_test(*zip(one, two, strict=True))[1] for _, one, two in pairs]
    for (name, one, two), p in zip(pairs, adjust(np.array(tests), "holm"), strict=True):
        odds = [(share.n + 0.5) / (share.of - share.n + 0.5) for share in (one, two)]
        if p < BEYOND_CHANCE and abs(math.log(odds[0] / odds[1])) >= math.log(LEAST_ODDS):
            said.append(
                f"{name}: {one.n:,} of {one.of:,} ({one.n / one.of:.1%}), and {two.n:,} of "
                f"{two.of:,} ({two.n / two.of:.1%}) before"
            )
    return said


def moved_since(spec: Mapping[str, Any], older: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each share that moved since an earlier run, or for each rule that is
    another one."""
    other = [name for name in RULES if name in older and spec.get(name) != older[name]]
    if not other:
        return moved_shares(spec["counts"], older["counts"])
    return [
        f"shares are not compared, since {name} is {spec.get(name)!r}, and {older[name]!r} before"
        for name in other
    ]
