"""`recdf diff`: what changed from one version to another, of two results or two files of recommendations."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..diagnostics.list_changes import diff
from ..inputs.options import as_columns
from .arguments import add_arguments, add_command, add_out, add_parameters, check_out, given_parameters
from .files import read_files
from .output import give_tables

__all__ = ["add_diff"]

DIFF_FILES = ("summary.parquet", "lists.parquet", "items.parquet")
OF_DIFF = ("k", "p", "user_col", "item_col", "rank_col", "score_col")


def add_diff(commands: Any) -> None:
    command = add_command(
        commands, "diff", _run_diff, "say what changed from one version to another",
        "Say which lists gained and lost between two results, or which items entered, left and moved between two files "
        "of recommendations, without any truth.", usage="%(prog)s BEFORE AFTER [options]",
    )  # fmt: skip
    files = command.add_argument_group("files")
    what = "folder that recdf evaluate --out wrote, or recommendations"
    add_arguments(files, {"BEFORE": what, "AFTER": what})
    add_arguments(files, {"--pred FILE": "recommendations beside two results, before and after"}, nargs=2)
    add_out(files, "folder for summary.parquet, lists.parquet and items.parquet; without it nothing is written")
    add_parameters(command.add_argument_group("options"), diff, OF_DIFF)


def _run_diff(given: argparse.Namespace) -> int:
    check_out(given.out, DIFF_FILES, given.overwrite)
    options: dict[str, Any] = given_parameters(given, OF_DIFF)
    sides: dict[str, Any] = {"before": given.before, "after": given.after}
    results = {name for name, path in sides.items() if (Path(path).expanduser() / "per_user.parquet").exists()}
    paths = {name: path for name, path in sides.items() if name not in results}
    if given.pred is not None:
        paths |= dict(zip(("pred before", "pred after"), given.pred, strict=True))
    keys = [*as_columns(options.get("user_col") or "user_id"), options.get("item_col", "item_id")]
    frames = read_files(paths, keys, [], ["score", "rank"]) if paths else {}
    pred = None if given.pred is None else (frames.pop("pred before"), frames.pop("pred after"))
    found = diff(**sides | frames, pred=pred, **options)
    tables = {"summary": found.summary, "lists": found.per_list}
    tables |= {"items": found.items} if found.items is not None else {}
    give_tables(given, repr(found), {"summary": found.summary}, tables, DIFF_FILES)
    return 0
