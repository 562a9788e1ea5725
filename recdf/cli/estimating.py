"""`recdf ope`: from a log with propensities to the value of policies that did not run."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from ..formats.file_sets import read_files
from ..inputs.options import as_columns
from ..off_policy.compare_targets import ope_compare
from ..off_policy.estimate_value import MEANINGS, ope_estimate
from ..off_policy.log_additions import target_from_recs
from ..off_policy.log_diagnostics import ope_diagnostics
from .arguments import add_arguments, add_command, add_out, add_parameters, given_parameters
from .output import ESTIMATED, give_tables, text_table

OPE_COLUMN_FLAGS = (
    "reward_col",
    "propensity_col",
    "target_col",
    "position_col",
    "weight_col",
    "q_logged",
    "q_target",
)
SLATES = ("slate_col", "interaction", "propensity_kind", "ragged")
INTERVALS = ("confidence", "interval", "n_resamples", "seed")


def add_ope(commands: Any) -> None:
    command = add_command(
        commands,
        "ope",
        _ope,
        "estimate what a policy that did not run would have earned",
        "Estimate from a log with propensities what other policies would have earned. The column "
        "trust says whether an estimate may be used, and flags say why not.",
        usage="%(prog)s LOG [options]",
    )
    files = command.add_argument_group("files")
    add_arguments(
        files,
        {
            "LOG": "one row per item that was shown, with its propensity",
            "--pred FILE": "recommendations to give a value to (default: --target-col of LOG)",
        },
    )
    add_out(files, ESTIMATED)
    what = command.add_argument_group("what is estimated")
    add_parameters(what, ope_estimate, ("estimators",))
    add_arguments(
        what,
        {
            "--clip NUMBER ...": "largest weights, a row for each",
            "--by COLUMN ...": "columns of --pred or LOG whose values stand alone",
            "--baseline NAME": "target that others are compared with (default: all pairs)",
        },
    )
    add_arguments(
        command.add_argument_group("how --pred is matched"),
        {
            "--on COLUMN ...": "list key and item id of both files (default user_id item_id)",
            "-k N": "use the first N items of every list",
            "--match-position": "an item counts only at its --position-col of LOG",
        },
    )
    options = command.add_argument_group("options")
    add_parameters(options, ope_estimate, (*OPE_COLUMN_FLAGS, *SLATES, *INTERVALS))
    add_arguments(
        options,
        {"--cluster COLUMN": "rows that belong together (default user_id), or none"},
        nargs="*",
    )
    for name in ("reward", "weight"):
        pair: dict[str, Any] = {"nargs": "+", "type": float, "metavar": ("LOW", "HIGH")}
        options.add_argument(
            f"--{name}-range", **pair, help=f"possible {name}s (--interval bounded)"
        )


def _ope(given: argparse.Namespace) -> None:
    options = given_parameters(given, ("estimators", *OPE_COLUMN_FLAGS, *SLATES, *INTERVALS))
    more = ("clip", "cluster", "reward_range", "weight_range")
    options |= {name: value for name in more if (value := getattr(given, name)) is not None}
    if given.cluster is not None and [name.lower() for name in given.cluster] in ([], ["none"]):
        options["cluster"] = None
    log = _read_log(given, options)
    by = {"by": given.by} if given.by else {}
    tables = {"ope": ope_estimate(log, **options, **by)}
    if (
        "slate_col" not in options or "interaction" in options
    ):  # else each estimator may name another interaction
        tables["ope_diagnostics"] = ope_diagnostics(log, **_taken(ope_diagnostics, options), **by)
    numbers = ("value", "ci_low", "ci_high", "logging_value", "lift")
    lines = [_shown(tables["ope"], given.by or [], numbers, "ess_reward")]
    if (
        given.pred is not None
        and given.by
        and len(given.by) == 1
        and log[given.by[0]].nunique() > 1
    ):
        asked = _taken(ope_compare, options)
        tables["ope_comparison"] = compared = ope_compare(
            log, by=given.by[0], baseline=given.baseline, **asked
        )
        lines.append(
            _shown(compared, ["baseline", *given.by], ("diff", "ci_low", "ci_high"), "n_clusters")
        )
    give_tables(given, "\n".join([*lines, _explained(tables["ope"])]), tables)


def _taken(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a function takes."""
    return {
        name: value
        for name, value in options.items()
        if name in inspect.signature(function).parameters
    }


def _read_log(given: argparse.Namespace, options: dict[str, Any]) -> pd.DataFrame:
    """The log, with the target policy of --pred where that is given."""
    on = given.on or ["user_id", "item_id"]
    keys = [
        *on,
        *as_columns(options.get("cluster", "user_id")),
        *as_columns(options.get("slate_col")),
    ]
    paths = {"log": given.log} | ({} if given.pred is None else {"pred": given.pred})
    frames = read_files(paths, list(dict.fromkeys(keys)), given.by or [])
    if given.pred is None:
        return frames["log"]
    position = options.get("position_col", "position") if given.match_position else None
    by = [name for name in given.by or [] if name in frames["pred"].columns]
    return target_from_recs(
        frames["log"], frames["pred"], on=on, position_col=position, k=given.k, by=by or None
    )


def _shown(table: pd.DataFrame, labels: Sequence[str], numbers: Sequence[str], last: str) -> str:
    """Write the columns that fit into a terminal. Trust and flags are always among them."""
    texts = {name: [str(label) for label in table[name]] for name in (*labels, "estimator")}
    if table["clip"].notna().any():
        texts["clip"] = ["" if pd.isna(one) else f"{one:g}" for one in table["clip"]]
    texts |= {name: [f"{one:.5g}" for one in table[name]] for name in numbers}
    texts[last] = [f"{one:,.0f}" for one in table[last]]
    texts |= {name: table[name].tolist() for name in ("trust", "flags")}
    return text_table(texts) + "\n"


def _explained(table: pd.DataFrame) -> str:
    """Explain every flag that occurs in one line."""
    found = set(table["flags"].str.split(", ").explode())
    lines = [f"{name}: {text}" for name, text in MEANINGS.items() if name in found]
    return "\n".join(
        lines or ["no flags: the intervals hold what they say if the propensities are right"]
    )
