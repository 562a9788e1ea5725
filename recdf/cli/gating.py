"""`recdf gate`: may the candidate replace the baseline? Two results on disk, budgets, and an exit
code."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..diagnostics.gate_records import Side, junit_text, pair_of, read_side
from ..diagnostics.gates import gate
from ..errors import OptionError
from ..evaluation.result import read_parquet
from ..formats.file_sets import read_files
from ..judge.per_user_columns import unit_of
from .arguments import (
    BOUNDS_FLAG,
    add_arguments,
    add_command,
    add_out,
    add_parameters,
    as_bounds,
    as_pairs,
    given_files,
    given_parameters,
    typed_parameters,
)
from .arguments import flag as as_flag
from .output import GATE_FILES, give_tables, say_why
from .stored_runs import label

GATE_CODES = {"pass": 0, "fail": 1, "undecided": 3}
OF_GATE = typed_parameters(gate, "by")


def add_gate(commands: Any) -> None:
    command = add_command(
        commands,
        "gate",
        _run_gate,
        "decide whether a candidate may replace the baseline",
        "Decide whether a candidate loses no more than its budgets against a baseline on the same "
        "lists. Exit code 0: pass, 1: fail, 3: undecided, 2: the call or a file is wrong.",
        usage="%(prog)s RESULTS --baseline RESULTS --budget METRIC=CHANGE [options]",
        epilog=None,
    )
    files = command.add_argument_group("files")
    add_arguments(files, {"RESULTS": "folder of the candidate, which recdf evaluate --out wrote"})
    add_arguments(files, {"--baseline RESULTS": "folder of the baseline"}, required=True)
    add_arguments(
        files,
        {
            "--cheap RESULTS ...": "folders of candidate and baseline on more lists under cheap "
            "labels, where people judged those of RESULTS",
            "--users FILE": "the population: one row per list, with the user, the weight and the "
            "segments that the results have; without it the gate says up to what "
            "weight it holds",
            "--junit PATH": "write a JUnit report, which CI systems show",
            "--summary PATH": "write a summary in Markdown, for a comment on a change request",
        },
    )
    add_out(
        files,
        GATE_FILES,
        "folder for gate.parquet and checks.parquet; without it nothing else is written",
    )
    looked_at = command.add_argument_group("recommendations that are looked at, beside the results")
    add_arguments(
        looked_at,
        {
            "--pred FILE ...": "recommendations of the candidate and of the baseline: sampled "
            "candidates, other shares of items that are in the log already, and "
            "fewer judged items make the gate undecided",
            "--true FILE": "the truth that both were evaluated on (--pred needs it)",
            "--log FILE": "past interactions: user and item",
        },
    )
    what = command.add_argument_group("what is decided")
    add_arguments(
        what,
        {
            "--budget METRIC=CHANGE ...": "what may be lost: ndcg@10=-2%% of the baseline's mean, "
            "revenue@10=-0.05 in units of the metric, latency=+5%% "
            "where smaller is better, 'ndcg@10[country=DE]=-5%%' of "
            "a segment",
        },
        required=True,
        dest="budgets",
    )
    add_arguments(
        what,
        {
            "--segment COLUMN ...": "columns of both results (recdf evaluate --carry) whose values "
            "are shown as segments",
            "--model NAME": "recommender of the candidate's folder, if that holds several",
            "--baseline-model NAME": "recommender of the baseline's folder, if that holds several",
        },
    )
    add_arguments(what, BOUNDS_FLAG)
    what.add_argument(
        "--undecided",
        choices=["pass", "fail"],
        help="take undecided for this: exit code 0 or 1 in place of 3",
    )
    add_parameters(command.add_argument_group("options"), gate, OF_GATE)


def _run_gate(given: argparse.Namespace) -> int:
    expected = "a metric and what it may lose, as ndcg@10=-2%"
    budgets = as_pairs("--budget", given.budgets, expected)
    folders = {"candidate": ("results", "model"), "baseline": ("baseline", "baseline_model")}
    sides = [side_of_folder(given, role, *names) for role, names in folders.items()]
    paths = given_files(given, "true", "log")
    frames = read_lists(given, sides, paths, [flag for _, flag in folders.values()])
    if given.cheap is not None:
        vars(given).update(
            pair_of(given.cheap, ["cheap_candidate", "cheap_baseline"], "cheap", "results")
        )
        frames["cheap"] = [
            side_of_folder(given, role, f"cheap_{role}", flag)
            for role, (_, flag) in folders.items()
        ]
    if given.users is not None:
        of_key = sides[0].spec["user_col"]
        frames |= read_files({"users": given.users}, given.unit_col or unit_of(of_key), [])
    found = gate(
        sides[0],
        sides[1],
        budgets,
        by=given.segment,
        bounds=as_bounds(given.bounds),
        **frames,
        **given_parameters(given, OF_GATE),
    )
    verdicts: dict[Path, str] = {}
    if given.junit is not None:
        verdicts[given.junit] = junit_text(
            found, "skipped" if given.undecided == "pass" else "error"
        )
    if given.summary is not None:
        verdicts[given.summary] = found.to_markdown()
    tables = {"gate": found.table, "checks": found.checks}
    give_tables(given, repr(found), tables, {"gate": found.table}, verdicts)
    code = GATE_CODES[
        given.undecided if found.verdict == "undecided" and given.undecided else found.verdict
    ]
    if code:
        say_why(
            given, code, sorted(found.reasons, key=lambda said: f": {found.verdict}, " not in said)
        )
    return code


def side_of_folder(given: argparse.Namespace, role: str, name: str, flag: str) -> Side:
    """Return the result in a folder; of several recommenders the rows of the one that was named."""
    result = read_parquet(getattr(given, name))
    by, rows = result.spec["by"], _rows_of_named(given, flag, result.per_user, result.spec["by"])
    if by and (models := rows[by[0]].unique().tolist())[1:]:
        several = f"{getattr(given, name)} has several {by[0]}s ({', '.join(map(str, models))})"
        raise OptionError(f"{several}; name one: {as_flag(flag)}")
    return read_side(role, Side(role, rows, result.spec))


def _rows_of_named(
    given: argparse.Namespace, flag: str, frame: pd.DataFrame, by: Sequence[str]
) -> pd.DataFrame:
    """Return the rows of the recommender that was named, if one was and the frame tells them
    apart."""
    model = getattr(given, flag)
    if model is not None and not by:
        raise OptionError(f"{as_flag(flag)} {model}: the result was evaluated without --by")
    if model is None or by[0] not in frame.columns:
        return frame
    models: pd.Series = frame[by[0]]
    rows: pd.DataFrame = frame[models == label(as_flag(flag).lstrip("-"), model, models)]
    return rows


def read_lists(
    given: argparse.Namespace, sides: Sequence[Side], paths: Mapping[str, str], flags: Sequence[str]
) -> dict[str, Any]:
    """Read the recommendations of both sides, those of the model that was named, and other files
    beside them."""
    pairs = {} if given.pred is None else pair_of(given.pred, [side.role for side in sides])
    if not paths and not pairs:
        return {}
    keys = [*sides[0].spec["user_col"], sides[0].options.get("item_col", "item_id")]
    frames: dict[str, Any] = read_files({**paths, **pairs}, keys, [], ["score", "rank"])
    if pairs:
        of_both = zip(sides, flags, strict=True)
        frames["pred"] = [
            _rows_of_named(given, flag, frames.pop(side.role), side.spec["by"])
            for side, flag in of_both
        ]
    return frames
