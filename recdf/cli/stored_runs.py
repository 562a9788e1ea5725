"""What commands about results share: folders of results, labels of their columns, and roles of
metrics."""

from __future__ import annotations

import argparse
import inspect
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import OptionError, closest
from ..evaluation.joined_results import join_results
from ..evaluation.result import Evaluation, read_parquet
from ..evaluation.storage import file_of_rows
from ..experiments.decide.decide_experiment import (
    Roles,
    decide_experiment,
    plan_sentence,
    read_plan,
    role_verdicts,
)
from ..formats.file_sets import read_beside, read_files
from ..inputs.options import as_columns
from .arguments import as_bounds, as_pairs
from .output import plain_signs

# ------------------------------------------------------------------------------------------
# Results that a command is given: the folder of one, or the folders of several runs.


ONE_RESULT = {"RESULTS": "folder that recdf evaluate --out wrote"}
RUNS = {
    "RESULTS ...": "folder that recdf evaluate --out wrote; several folders are models, which have "
    "the names of the folders"
}


def read_results(paths: Sequence[Path]) -> Evaluation:
    """Read one result, or join those of several folders, each named as its folder."""
    if len(paths) == 1:
        return read_parquet(paths[0])
    shared = Path(os.path.commonpath([path.absolute() for path in paths]))
    names = [path.absolute().name for path in paths]
    if len({*names}) < len(names):  # runs/a/results and runs/b/results
        names = [path.absolute().relative_to(shared).as_posix() for path in paths]
    if len({*names}) < len(names):
        raise OptionError(f"{' '.join(map(str, paths))} names a folder twice")
    return join_results(dict(zip(names, paths, strict=True)))


def label(argument: str, text: str | None, values: pd.Series) -> Any:
    """Return the label whose text this is, such as the number 3 for "3"; None if there is no
    text."""
    if text is None:
        return None
    labels = values.dropna().unique().tolist()
    for label in labels:
        if str(label) == text:
            return label
    known = ", ".join(map(str, labels))
    raise OptionError(
        f"--{argument} {text}: no such {values.name}; the result has {known}{closest(text, labels)}"
    )


def given_for_models(given: argparse.Namespace, result: Evaluation | None) -> dict[str, Any]:
    """Return what a leaderboard and a report are told of the models of a result: the baseline,
    segments, cheap labels and bounds."""
    by, baseline, segments = [] if result is None else result.spec["by"], given.baseline, None
    if result is not None and len(by) == 1:
        baseline = label("baseline", baseline, result.summary[by[0]])
    if given.segments is not None and result is None:
        segments = read_files({"segments": given.segments}, [], [])["segments"]
    elif given.segments is not None and result is not None:
        keys = list(result.spec["user_col"])
        segments = read_beside(given.segments, file_of_rows(given.results[0]), keys, [])
    return {
        "baseline": baseline,
        "segments": segments,
        "cheap": None if given.cheap is None else read_parquet(given.cheap),
        "bounds": as_bounds(given.bounds),
    }


# ------------------------------------------------------------------------------------------
# Roles of metrics on the command line: what a metric is for, and the decision that follows.


ROLES = {
    "--guardrail METRIC=MARGIN ...": "what may be lost: revenue@10=-2%% of the control's mean, or "
    "revenue@10=-0.05 in units of the metric, latency=+5%% where smaller is better",
    "--plan FILE": "TOML file from before the experiment: hypothesis, primary, guardrails, unit, "
    "segments, n, ...",
    "--looks N": "how often the numbers were looked at, which a plan may name",
    "--role METRIC=ROLE ...": "ctr=success: ships if better; load=diagnostic (so are metrics that "
    "are not named)",
}


def given_roles(given: argparse.Namespace) -> Roles:
    """Return the role of every metric that was given one, or the plan."""
    if given.plan is not None:
        if given.role or given.guardrail:
            raise OptionError(
                "--plan names the roles of the metrics; leave out --role and --guardrail"
            )
        return read_plan(given.plan)
    roles: dict[str, Any] = as_pairs("--role", given.role, "a metric and its role, as ctr=success")
    margins = given_margins(given)
    for name, role in roles.items():
        if role == "guardrail":
            raise OptionError(f"--role {name}=guardrail has no margin; pass --guardrail {name}=-2%")
        if name in margins:
            raise OptionError(f"{name} has a --role and is a --guardrail; expected one of them")
    return roles | {name: ("guardrail", margin) for name, margin in margins.items()}


def given_margins(given: argparse.Namespace) -> dict[str, Any]:
    """Return the margin of every guardrail."""
    margins = as_pairs(
        "--guardrail", given.guardrail, "a metric and what it may lose, as revenue@10=-2%"
    )
    return {name: _number(text) for name, text in margins.items()}


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def decided(table: pd.DataFrame, roles: Roles, ran: dict[str, Any]) -> dict[str, pd.DataFrame]:
    """Return the decision and what each role says, if there are roles."""
    if not roles:
        return {}
    decision = decide_experiment(table, roles=roles, ran=ran)
    return {"decision": decision, "roles": role_verdicts(table, roles)}


def decision_text(decision: pd.DataFrame) -> str:
    """Return the decision about every treatment for a terminal, with a line for each reason."""
    lines = []
    for row in decision.to_dict("records"):
        lines.append(
            f"\nDecision, {row['treatment']} vs. {row['control']}: {row['decision'].upper()}"
        )
        lines += [textwrap.indent(reason, "  ") for reason in row["reasons"].split("; ")]
        lines += [textwrap.indent(line, "  ") for line in plan_sentence(row).split("; ") if line]
    return plain_signs("\n".join(lines))


def failing_decisions(decision: pd.DataFrame | None) -> Iterator[tuple[str, str]]:
    """Give what `--fail-on` may name of each treatment's decision, with its sentence."""
    fails = {"do_not_ship": "worse", "keep_running": "undecided", "invalid": "invalid"}
    for row in [] if decision is None else decision.to_dict("records"):
        pair = f"{row['treatment']} vs. {row['control']}"
        if row["effect"] in fails:
            yield fails[row["effect"]], f"{pair}: {row['decision']}, {row['reasons']}"
        if row.get("deviations"):
            yield "deviation", f"{pair}: {row['decision']}, {row['deviations']}"
            yield "warning", f"{pair}: {row['deviations']}"


def taken_by(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a function takes."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in known}


def with_times(frame: pd.DataFrame, name: str | None) -> pd.DataFrame:
    """Return a frame with a text column read as times, if it holds times."""
    if name not in frame.columns or not pd.api.types.is_string_dtype(frame[name].dtype):
        return frame
    try:
        return frame.assign(**{str(name): pd.to_datetime(frame[name], format="ISO8601")})
    except (ValueError, TypeError):  # cohorts may have any names; who needs times refuses others
        return frame


def frames_of_call(
    given: argparse.Namespace,
    function: Callable[..., Any],
    options: Mapping[str, Any],
    *roles: str,
    labels: Sequence[str] = (),
) -> dict[str, Any]:
    """Read the files of a call. Which columns are ids and which are labels, the options of the
    function say."""
    defaults = {
        name: one.default for name, one in inspect.signature(function).parameters.items()
    } | dict(options)

    def columns(*names: str) -> list[str]:
        found = (one for name in names for one in as_columns(defaults.get(name)))
        return list(dict.fromkeys(found))

    frames = read_files(
        {role: getattr(given, role) for role in roles},
        columns("unit_col", "user_col", "item_col"),
        [*columns("variant_col", "columns", "cluster", "strata", "by"), *labels],
        ["score", "rank"],
    )
    return dict(frames)
