"""`recdf evaluate` and `recdf check`: files of lists in."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..diagnostics.check import check
from ..errors import OptionError
from ..evaluation.evaluate import evaluate
from ..inputs.options import CHOICES, NAMES, Options, as_columns
from ..matching.side_tables.records import SIDE_TABLES
from ..partitions.evaluate_parquet import evaluate_parquet
from ..partitions.source import Source
from .arguments import FILES, add_options, add_out, check_out, given_options, in_flags
from .files import is_text_file, read_beside, read_files

__all__ = ["add_check", "add_evaluate"]

RESULT_FILES = ("per_user.parquet", "summary.parquet")

PLURALS = {"error": "errors", "warning": "warnings", "info": "notes"}

# `check` reports what these decide, whatever they are.
NOT_OF_CHECK = ("users", "ties", "duplicates", "null_keys", "nan_score", "undefined")


def add_evaluate(commands: Any) -> None:
    command = commands.add_parser(
        "evaluate",
        help="evaluate files of recommendations",
        description="Evaluate recommendations: print a row per metric; with --out write that and a row per user.",
        epilog=FILES,
    )
    files = _add_files(command)
    files.add_argument(
        "--stream",
        action="store_true",
        help="read --true and --pred piece by piece, so that they may be larger than memory: parquet files, folders "
        "of them, or quoted globs ('pred/*.parquet')",
    )
    files.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="memory for --stream, which it implies: 1GB, 512MiB (default a quarter of the machine's)",
    )
    add_out(files, "folder for per_user.parquet and summary.parquet; without it nothing is written")
    what = command.add_argument_group("metrics")
    what.add_argument("-m", "--metrics", required=True, nargs="+", action="extend", metavar="METRIC", help="as ndcg@10")
    what.add_argument(
        "-k", nargs="+", action="extend", type=int, help="cut-offs of metrics that name none (default 10)"
    )
    add_options(command.add_argument_group("options"))
    command.set_defaults(run=_evaluate, parser=command)


def _add_files(command: Any) -> Any:
    files = command.add_argument_group("files")
    files.add_argument(
        "--true", required=True, type=Path, metavar="FILE", help="what was wanted: rows of user and item"
    )
    files.add_argument("--pred", required=True, type=Path, metavar="FILE", help="what was recommended, best first")
    files.add_argument("--items", type=Path, metavar="FILE", help=SIDE_TABLES["items"].flag)
    return files


def _evaluate(given: argparse.Namespace) -> None:
    check_out(given.out, RESULT_FILES, given.overwrite)
    options = given_options(given)
    more = {}
    if options.get("users", "true") not in CHOICES["users"]:
        more["users"] = Path(options.pop("users"))
        if not more["users"].exists():
            known = ", ".join(CHOICES["users"])
            raise OptionError(f"--users {more['users']}: neither one of {known} nor a file of ids")
    stream = given.stream or given.memory_limit is not None
    frames = _read_sides(given, options, more) if stream else _read(given, ["true", "pred", "items"], options, more)
    if "users" in frames:
        options["users"] = frames["users"]
    options |= {"k": given.k or 10, "items": frames.get("items")}
    if stream:
        where = {"out": given.out, "overwrite": given.overwrite, "memory_limit": given.memory_limit}
        result = evaluate_parquet(given.true, given.pred, given.metrics, **where, **options)
    else:
        result = evaluate(frames["true"], frames["pred"], given.metrics, **options)
        if given.out is not None:
            result.to_parquet(given.out, overwrite=given.overwrite)
    print(result.summary.to_string(index=False))
    if given.out is not None:
        from pyarrow.parquet import read_metadata  # costs time that other commands need not take

        n_rows = read_metadata(given.out / RESULT_FILES[0]).num_rows
        print(f"\nwrote {given.out / RESULT_FILES[0]} ({n_rows:,} rows) and {given.out / RESULT_FILES[1]}")


def _read_sides(given: argparse.Namespace, options: dict[str, Any], more: dict[str, Path]) -> dict[str, pd.DataFrame]:
    """The files beside the streamed ones, with ids like theirs."""
    for path in (given.true, given.pred):
        if is_text_file(path):
            raise OptionError(f"--stream reads parquet files; {path} is none")
    paths = more | ({} if given.items is None else {"items": given.items})
    keys = [*as_columns(options.get("user_col", Options.user_col)), options.get("item_col", Options.item_col)]
    like = Path(Source(given.pred, "pred").fragments[0].path)
    return {name: read_beside(path, like, keys, []) for name, path in paths.items()}


def _read(
    given: argparse.Namespace, names: Sequence[str], options: dict[str, Any], more: dict[str, Path] | None = None
) -> dict[str, pd.DataFrame]:
    """The files that were given, with ids alike in all of them."""
    paths = {name: path for name in names if (path := getattr(given, name)) is not None} | (more or {})
    keys = [*as_columns(options.get("user_col", Options.user_col)), options.get("item_col", Options.item_col)]
    return read_files(paths, keys, as_columns(options.get("by")))


# --------------------------------------------------------------------------------------------- check


def add_check(commands: Any) -> None:
    command = commands.add_parser(
        "check",
        help="find what is odd in files of recommendations",
        description="Find what is odd in the data and what it does to the metrics. Exit code 1 when an error is found.",
        epilog=FILES,
    )
    files = _add_files(command)
    files.add_argument("--log", type=Path, metavar="FILE", help=SIDE_TABLES["log"].flag)
    command.add_argument("-k", type=int, default=10, help="cut-off that the findings refer to (default 10)")
    add_options(command.add_argument_group("options"), [name for name in NAMES if name not in NOT_OF_CHECK])
    command.set_defaults(run=_check, parser=command)


def _check(given: argparse.Namespace) -> int:
    options = given_options(given)
    frames = _read(given, ["true", "pred", "items", "log"], options)
    log, items = frames.get("log"), frames.get("items")
    found = check(frames["true"], frames["pred"], given.k, log=log, items=items, **options)
    print(_findings(found) if len(found) else f"nothing odd found at k = {given.k}")
    return int((found["severity"] == "error").any())


def _findings(found: pd.DataFrame) -> str:
    """Each finding as a few lines: severity, what, how many, examples, effect."""
    lines = []
    for finding, severity, count, part, examples, effect in zip(*(found[name] for name in found.columns), strict=True):
        lines.append(f"{severity:<9}{finding}: {count:,}" + ("" if pd.isna(part) else f" ({_percent(part)})"))
        lines += [
            f"{'':9}{name}: {text}" for name, text in (("seen", examples), ("effect", in_flags(effect, {}))) if text
        ]
    counts = found["severity"].value_counts()
    words = [f"{counts.get(what, 0):,} {plural}" for what, plural in PLURALS.items()]
    return "\n".join([*lines, "", f"found: {', '.join(words)}"])


def _percent(part: float) -> str:
    return f"{part:.1%}" if part >= 0.001 else "below 0.1%"
