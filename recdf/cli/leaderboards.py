"""`recdf leaderboard`: models by metrics, of one result or of runs in folders of their own."""

from __future__ import annotations

import argparse
from typing import Any

from ..display.leaderboard import leaderboard
from ..evaluation.result import read_parquet
from ..evaluation.storage import file_of_rows
from ..formats.file_sets import read_beside
from .arguments import (
    BOUNDS_FLAG,
    add_arguments,
    add_command,
    add_out,
    add_parameters,
    as_bounds,
    given_parameters,
)
from .output import give_tables, plain_signs
from .stored_runs import RUNS, label, read_results

LEADERBOARD_FILES = ("leaderboard.parquet", "comparison.parquet")
OF_LEADERBOARD = ("metrics", "k", "correction", "unit_col", "stat", "fold", "seed_col")


def add_leaderboard(commands: Any) -> None:
    command = add_command(
        commands,
        "leaderboard",
        _run_leaderboard,
        "print models by metrics, with intervals and marks",
        "Print models by metrics: values with intervals, the best, and which differences hold.",
        usage="%(prog)s RESULTS [RESULTS ...] [options]",
        epilog=None,
    )
    files = command.add_argument_group("files")
    add_arguments(files, RUNS)
    add_arguments(
        files,
        {
            "--segments FILE": "one row per user: id and columns of segments",
            "--cheap RESULTS": "folder of the same models on more lists under cheap labels",
        },
    )
    add_out(files, LEADERBOARD_FILES)
    options = command.add_argument_group("options")
    add_arguments(options, {"--baseline NAME": "model that the others are compared with"})
    add_arguments(options, BOUNDS_FLAG)
    add_parameters(options, leaderboard, OF_LEADERBOARD)


def _run_leaderboard(given: argparse.Namespace) -> None:
    result = read_results(given.results)
    by, segments = result.spec["by"], None
    baseline = label("baseline", given.baseline, result.summary[by[0]]) if by else given.baseline
    if given.segments is not None:
        first, keys = file_of_rows(given.results[0]), list(result.spec["user_col"])
        segments = read_beside(given.segments, first, keys, [])
    cheap = None if given.cheap is None else read_parquet(given.cheap)
    found = leaderboard(
        result,
        baseline=baseline,
        segments=segments,
        cheap=cheap,
        bounds=as_bounds(given.bounds),
        **given_parameters(given, OF_LEADERBOARD),
    )
    tables = {"leaderboard": found.frame, "comparison": found.comparisons}
    give_tables(given, plain_signs(str(found)), tables, {"leaderboard": found.frame})
