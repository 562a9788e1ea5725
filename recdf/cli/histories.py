"""`recdf history`: what a folder of results says of the past: changes, drift, what became of
offline differences."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

import pandas as pd

from ..diagnostics.history import History
from ..diagnostics.run_records import past_runs, past_tests
from ..errors import OptionError
from ..experiments.decide.proxy_metrics import proxy_metrics
from ..formats.file_sets import read_files
from ..inputs.options import as_columns
from ..tables.cells import brief_cells
from .arguments import add_arguments, add_command, add_out, add_parameters, given_parameters
from .output import give_tables, text_table, verdicts_fail

HISTORY_FILES = tuple(
    f"{name}.parquet"
    for name in ("changes", "drift", "gaps", "summary", "runs", "tests", "proxies")
)
OF_CHANGES = ("confidence",)
OF_PROXIES = ("smaller_is_better", "larger_is_better")
SHOWN_OF_CHANGES = ("level", "could_see", "changed", "before", "after", "verdict")
COULD_SEE = "could_see: a change of this size is found within a week in 8 of 10 cases"
SHOWN_OF_PROXIES = (
    "online",
    "offline",
    "slope",
    "slope_low",
    "slope_high",
    "naive_slope",
    "called_right",
    "verdict",
)


def add_history(commands: Any) -> None:
    command = add_command(
        commands,
        "history",
        _run_history,
        "say when metrics or data changed, and which offline metric predicts",
        "Read all results below a folder: when a metric or the data of a nightly job changed, what "
        "was decided, and which offline metric predicted the results of experiments.",
        usage="%(prog)s RESULTS [options]",
        epilog=None,
    )
    files = command.add_argument_group("files")
    add_arguments(
        files,
        {
            "RESULTS": "folder of dated folders that recdf evaluate --out wrote (2026-11-20), or "
            "of folders of experiments",
            "--users FILE": "one row per user: id and columns of segments (with --by)",
        },
    )
    add_out(
        files,
        HISTORY_FILES,
        "folder for changes.parquet, drift.parquet, ...; without it nothing is written",
    )
    what = command.add_argument_group("what is said")
    add_arguments(
        what,
        {
            "--metric NAME ...": "columns such as ndcg@10 whose changes are looked for (default: "
            "all)",
            "--by COLUMN ...": "columns of --users that make segments",
            "--not-weekly": "expect the same level on all days of the week",
            "--since DAY": "first day that is looked at, such as 2026-11-01, or 30d for the last "
            "30 days",
            "--until DAY": "last day of the results (default: the latest)",
            "--max-age NUMBER": "find a newest night that is older than so many days, counted to "
            "--until or today",
            "--without DAY ...": "nights to leave out, as a file 'quarantined' in a folder does",
            "--offline NAME ...": "offline metrics of past experiments (default: all)",
            "--online NAME ...": "online metrics of past experiments (default: all)",
        },
    )
    add_parameters(what, History.changes, OF_CHANGES)
    add_parameters(what, proxy_metrics, OF_PROXIES)


def _run_history(given: argparse.Namespace) -> int:
    tests = past_tests(given.results)
    tables: dict[str, pd.DataFrame] = {"runs": past_runs(given.results)}
    if not len(tests) and (given.offline or given.online):
        raise OptionError(
            f"--offline and --online are about experiments, and {given.results} holds none: a "
            "folder each, with the results of recdf compare and recdf experiment"
        )
    said = []
    if not len(tests) or given.metric or given.since:
        dated, more = _job_tables(given)
        said, tables = [dated], tables | more
    if len(tests):
        tables |= {"tests": tests, **_proxies(given, tests)}
        said.append(_brief_text(tests, tests.columns))
        if "proxies" in tables:
            said.append(_brief_text(tables["proxies"], SHOWN_OF_PROXIES))
    first = {"changes": tables["changes"]} if "changes" in tables else {"tests": tests}
    give_tables(given, "\n\n".join(said), tables, {**first, **tables})
    judged = [tables[name] for name in ("changes", "drift", "gaps", "proxies") if name in tables]
    return verdicts_fail(given, *judged) if judged else 0


def _job_tables(given: argparse.Namespace) -> tuple[str, dict[str, pd.DataFrame]]:
    """Return the text and the tables of a job's results."""
    users = (
        None
        if given.users is None
        else read_files({"users": given.users}, ["user_id"], [])["users"]
    )
    history = History(
        given.results,
        since=given.since,
        until=given.until,
        users=users,
        by=given.by,
        without=given.without,
    )
    options: dict[str, Any] = {
        "weekly": not given.not_weekly,
        **given_parameters(given, OF_CHANGES),
    }
    changes, drift = history.changes(given.metric, **options), history.drift(**options)
    gaps = history.gaps(max_age=given.max_age)
    texts = [history.headline, _changes_text(changes), _changes_text(drift)]
    texts += [COULD_SEE] if changes["could_see"].notna().any() else []
    texts += (
        [_brief_text(gaps.drop(columns="remarks"), ["job", "what", "last", "verdict"])]
        if len(gaps)
        else []
    )
    return "\n\n".join(texts), {
        "changes": changes,
        "drift": drift,
        "gaps": gaps,
        "summary": history.summary.drop(columns="path"),
    }


def _brief_text(table: pd.DataFrame, names: Iterable[str]) -> str:
    """Write columns of a table for a terminal, the remarks behind the verdict; empty columns are
    left out."""
    known = brief_cells(table)
    cells = {name: known[name] for name in names}
    if "remarks" in table.columns:
        verdicts = zip(table["verdict"], table["remarks"], strict=True)
        cells["verdict"] = [
            f"{verdict} ({remarks})" if remarks else verdict for verdict, remarks in verdicts
        ]
    return text_table({name: own for name, own in cells.items() if any(own)})


def _changes_text(table: pd.DataFrame) -> str:
    return _brief_text(
        table.drop(columns="remarks"),
        [*table.columns[: table.columns.get_loc("n_runs")], *SHOWN_OF_CHANGES],
    )


def _proxies(given: argparse.Namespace, tests: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Relate the offline metrics of past experiments to the online ones, if three experiments
    measured both."""
    sides = {}
    for kind in ("offline", "online"):
        known = [
            name
            for name in tests.columns
            if name.startswith(f"{kind}_") and f"{name}_se" in tests.columns
        ]
        asked = [f"{kind}_{name}" for name in as_columns(getattr(given, kind))]
        if unknown := [name for name in asked if name not in known]:
            missing, *there = (name.removeprefix(f"{kind}_") for name in (unknown[0], *known))
            raise OptionError(
                f"--{kind} {missing}: no experiment measured it; there is {', '.join(there)}"
            )
        sides[kind] = asked or known
    columns = [
        column for names in sides.values() for name in names for column in (name, f"{name}_se")
    ]
    whole = tests.dropna(subset=columns)
    if len(whole) < 3:
        return {}
    prefixed: dict[str, Any] = {
        name: [f"{kind}_{one}" for kind in sides for one in names if f"{kind}_{one}" in columns]
        for name, names in given_parameters(given, OF_PROXIES).items()
    }
    offline, online = sides.values()
    return {
        "proxies": proxy_metrics(
            whole, offline=offline, online=online, experiment_col="experiment", **prefixed
        )
    }
