"""`recdf diff`: what changed from one version to another, of two results or two files of
recommendations."""

from __future__ import annotations

import argparse
from typing import Any

from ..diagnostics.list_changes import diff
from ..errors import OptionError
from ..evaluation.storage import is_result
from ..formats.file_sets import is_remote, read_files
from ..inputs.options import as_columns
from .arguments import add_arguments, add_command, add_out, add_parameters, given_parameters
from .gating import read_lists, side_of_folder
from .output import give_tables

DIFF_FILES = ("summary.parquet", "lists.parquet", "items.parquet")
OF_DIFF = ("k", "p", "user_col", "item_col", "rank_col", "score_col")


def add_diff(commands: Any) -> None:
    command = add_command(
        commands,
        "diff",
        _run_diff,
        "say what changed from one version to another",
        "Say which lists gained and lost between two results, or which items entered, left and "
        "moved between two files of recommendations, without any truth.",
        usage="%(prog)s BEFORE AFTER [options]",
    )
    files = command.add_argument_group("files")
    what = "folder that recdf evaluate --out wrote, or recommendations"
    add_arguments(
        files,
        {
            "BEFORE": what,
            "AFTER": what,
            "--pred FILE ...": "recommendations beside two results, before and after",
            "--before-model NAME": "recommender of BEFORE, if that holds several",
            "--after-model NAME": "recommender of AFTER, if that holds several",
        },
    )
    add_out(files, DIFF_FILES)
    add_parameters(command.add_argument_group("options"), diff, OF_DIFF)


def _run_diff(given: argparse.Namespace) -> int:
    options: dict[str, Any] = given_parameters(given, OF_DIFF)
    roles, flags = ("before", "after"), ("before_model", "after_model")
    paths = {role: getattr(given, role) for role in roles}
    results = [not is_remote(path) and is_result(path) for path in paths.values()]
    if any(results) and not all(results):
        raise OptionError(
            f"{paths[roles[results.index(False)]]} is no result, and the other side is one; name "
            "two results, or two files of recommendations"
        )
    if all(results):
        sides = [
            side_of_folder(given, role, role, flag) for role, flag in zip(roles, flags, strict=True)
        ]
        found = diff(sides[0], sides[1], **read_lists(given, sides, {}, flags), **options)
    else:
        if given.before_model or given.after_model:
            raise OptionError(
                "--before-model and --after-model choose from results, and these are no results"
            )
        keys = [
            *as_columns(options.get("user_col") or "user_id"),
            options.setdefault("item_col", "item_id"),
        ]
        frames = read_files(paths, keys, [], ["score", "rank"])
        found = diff(frames["before"], frames["after"], pred=given.pred, **options)
    tables = {"summary": found.summary, "lists": found.per_list}
    tables |= {"items": found.items} if found.items is not None else {}
    give_tables(given, repr(found), tables, {"summary": found.summary})
    return 0
