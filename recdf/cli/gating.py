"""`recdf gate`: may the candidate replace the baseline? Two results on disk, budgets, and an exit code."""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd

from ..diagnostics.gates import gate
from ..errors import OptionError
from ..evaluation.result import read_parquet
from .arguments import add_arguments, add_command, add_out, add_parameters, as_pairs, check_out, given_parameters
from .deciding import label
from .output import give_tables

__all__ = ["add_gate"]

GATE_FILES = ("gate.parquet", "checks.parquet")
GATE_CODES = {"pass": 0, "fail": 1, "undecided": 3}
OF_GATE = (
    "alpha", "correction", "min_lists", "looks", "worst", "user_col", "unit_col", "weight_col", "smaller_is_better",
    "larger_is_better",
)  # fmt: skip


def add_gate(commands: Any) -> None:
    command = add_command(
        commands, "gate", _run_gate, "decide whether a candidate may replace the baseline",
        "Decide whether a candidate loses no more than its budgets against a baseline on the same lists. "
        "Exit code 0: pass, 1: fail, 3: undecided, 2: the call or a file is wrong.",
        usage="%(prog)s RESULTS --baseline RESULTS --budget METRIC=CHANGE ... [options]", epilog=None,
    )  # fmt: skip
    files = command.add_argument_group("files")
    add_arguments(files, {"RESULTS": "folder of the candidate, which recdf evaluate --out wrote"})
    add_arguments(files, {"--baseline RESULTS": "folder of the baseline"}, required=True)
    add_arguments(files, {
        "--junit PATH": "write a JUnit report, which CI systems show",
        "--summary PATH": "write a summary in Markdown, for a comment on a change request",
    })  # fmt: skip
    add_out(files, "folder for gate.parquet and checks.parquet; without it nothing else is written")
    what = command.add_argument_group("what is decided")
    add_arguments(what, {
        "--budget METRIC=CHANGE ...":
            "what may be lost: ndcg@10=-2%% of the baseline's mean, revenue@10=-0.05 in units of the metric, "
            "latency=+5%% where smaller is better, 'ndcg@10[country=DE]=-5%%' of a segment",
    }, required=True)  # fmt: skip
    add_arguments(what, {
        "--segment COLUMN ...": "columns of both results (recdf evaluate --carry) whose values are shown as segments",
        "--model NAME": "recommender of the candidate's folder, if that holds several",
        "--baseline-model NAME": "recommender of the baseline's folder, if that holds several",
    })  # fmt: skip
    what.add_argument(
        "--undecided", choices=["pass", "fail"], help="take undecided for this: exit code 0 or 1 in place of 3"
    )
    add_parameters(command.add_argument_group("options"), gate, OF_GATE)


def _run_gate(given: argparse.Namespace) -> int:
    check_out(given.out, GATE_FILES, given.overwrite)
    expected = "a metric and what it may lose, as ndcg@10=-2%"
    found = gate(
        _side_of_folder(given, "results", "model"), _side_of_folder(given, "baseline", "baseline_model"),
        as_pairs("--budget", given.budget, expected), by=given.segment, **given_parameters(given, OF_GATE),
    )  # fmt: skip
    if given.junit is not None:
        found.to_junit(given.junit, undecided="skipped" if given.undecided == "pass" else "error")
    if given.summary is not None:
        given.summary.write_text(found.to_markdown(), encoding="utf-8")
    written = {"gate": found.table, "checks": found.checks}
    give_tables(given, repr(found), {"gate": found.table}, written, GATE_FILES)
    return GATE_CODES[given.undecided if found.verdict == "undecided" and given.undecided else found.verdict]


def _side_of_folder(given: argparse.Namespace, name: str, flag: str) -> Any:
    """Return the result in a folder, or the rows of the recommender that was named."""
    result, model = read_parquet(getattr(given, name)), getattr(given, flag)
    by = [one for one in result.spec["by"] if one in result.per_user.columns]
    if model is None or not by:
        if model is not None:
            raise OptionError(f"--{flag.replace('_', '-')} {model}: the result was evaluated without --by")
        return result
    models: pd.Series = result.per_user[by[0]]
    return result.per_user[models == label(flag.replace("_", "-"), model, models)]
