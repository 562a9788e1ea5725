"""`recdf plan`: users and days of an experiment, or lists of a comparison of models, from a result
on disk."""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd

from ..errors import OptionError
from ..evaluation.result import read_parquet
from ..experiments.join.roll_up import roll_up
from ..experiments.plan.plan_comparison import plan_comparison
from ..experiments.plan.plan_experiment import arrivals_by_day, plan_experiment
from ..formats.file_sets import read_files
from ..inputs.options import as_columns
from .arguments import add_arguments, add_command, add_out, add_parameters, given_parameters
from .deciding import metric_arguments, with_times
from .output import give_tables, text_table
from .role_flags import given_margins
from .stored_runs import label

OF_BOTH_PLANS = ("n", "alpha", "power", "n_comparisons", "alternative")
OF_ARMS = ("rel_effect", "control_share", "cluster", "sequential")
OF_LISTS = ("diff", "rel_diff", "unit_col")
PLANNED = ("plan.parquet",)


def add_plan(commands: Any) -> None:
    command = add_command(
        commands,
        "plan",
        _plan,
        "say how many users and days an experiment needs, or lists a comparison",
        "Say from a result of the past how many users and days an experiment needs; with "
        "--baseline, how many lists a comparison of models needs.",
        usage="%(prog)s RESULTS [options]",
    )
    files = command.add_argument_group("files")
    add_arguments(
        files,
        {
            "RESULTS": "folder that recdf evaluate --out wrote",
            "--log FILE": "log whose new users by day an experiment would gain (needs --time-col)",
            "--time-col COLUMN": "times of the log",
        },
    )
    add_out(files, PLANNED)
    options = command.add_argument_group("options")
    add_arguments(
        options,
        {
            "--metric NAME ...": "columns such as ndcg@10, or ratios such as ctr=hits@10/n_pred "
            "(default: all)",
            "--guardrail METRIC=MARGIN ...": "what is to be shown not to be lost, such as "
            "revenue@10=-2%%",
            "--how RULE": "sum or mean: adds up the lists of a user, where a user has several "
            "(lists by session)",
            "--baseline NAME": "plan a comparison of models with this one",
        },
    )
    add_parameters(options, plan_experiment, (*OF_BOTH_PLANS, *OF_ARMS))
    add_parameters(options, plan_comparison, OF_LISTS)


def _plan(given: argparse.Namespace) -> int:
    result = read_parquet(given.results)
    users, keys, models = result.per_user, result.spec["user_col"], given.baseline is not None
    specs = metric_arguments(given.metric, users.columns, result)
    options = given_parameters(given, (*OF_BOTH_PLANS, *(OF_LISTS if models else OF_ARMS)))
    if models:
        if len(result.spec["by"]) != 1:
            raise OptionError(
                "--baseline plans a comparison of models; the result has no column of models (--by)"
            )
        by = result.spec["by"][0]
        base = label("baseline", given.baseline, users[by])
        table = plan_comparison(
            users, list(specs), baseline=base, model_col=by, user_col=keys, **options
        )
    else:
        if given.how is not None:
            keys, used = keys[:1], [name for spec in specs.values() for name in as_columns(spec)]
            users = roll_up(users, keys, dict.fromkeys(used, given.how))
        elif "cluster" not in options and users.duplicated(keys[:1]).any():
            raise OptionError(
                f"{given.results} has several rows of a {keys[0]}, and a plan counts users; --how "
                "sum adds them up"
            )
        coming = None
        if given.log is not None:
            log = with_times(
                read_files({"log": given.log}, keys, [given.time_col])["log"], given.time_col, "log"
            )
            coming = arrivals_by_day(log, time_col=given.time_col, user_col=keys)
        margins = given_margins(given) or None
        table = plan_experiment(users, specs, arrivals=coming, guardrails=margins, **options)
    give_tables(given, _text(table), {"plan": table})
    return 0


def _text(table: pd.DataFrame) -> str:
    """Return the columns that are known, for a terminal."""
    known = table.loc[:, table.notna().any()]
    return text_table(
        {
            name: [
                f"{one:,.0f}"
                if name.startswith(("n_", "days")) or name == "n"
                else f"{one:.4g}"
                if isinstance(one, float)
                else str(one)
                for one in known[name].tolist()
            ]
            for name in known.columns
        }
    )
