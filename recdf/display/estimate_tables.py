"""Tables around an experiment that are no comparison (A/A test, sample ratio, roles, plans), as one
frame of estimates.

Contract: a table is known by its columns. `plot.forest` draws the frame and the report shows it, so
that both have the numbers and the verdicts of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..diagnostics.history import CHANGE_COLUMNS
from ..experiments.decide.decide_experiment import allowed_of, change_text
from ..judge.verdict import sign_of
from ..tables.cells import brief, estimated, interval, number, p_value

__all__: list[str] = []

EstimateRow = Mapping[Any, Any]
DRAWN = ["metric", "label", "diff", "ci_low", "ci_high", "allowed", "verdict", "numbers", "words"]


class EstimateKind(NamedTuple):
    """How a table is known, named and read: `read` makes a row of `metric` (the panel), `label`,
    `diff` and so on."""

    columns: tuple[str, ...]
    title: str
    read: Callable[[EstimateRow], dict[str, Any]]
    axis: str
    caption: str


def _of_splits(row: EstimateRow) -> dict[str, Any]:
    return {
        "metric": f"A/A splits rejected, {row['metric']}; recommended: {row['recommended']}",
        "label": "no cap" if pd.isna(row["cap"]) else f"cap={row['cap']:g}",
        "diff": row["rejected"],
        "ci_low": row["rejected_low"],
        "ci_high": row["rejected_high"],
        "allowed": row["alpha"],
        "percent": True,
        "from_zero": True,
        "verdict": row["verdict"],
        "numbers": estimated(row["rejected"], row["rejected_low"], row["rejected_high"], "%"),
    }


def _of_level(row: EstimateRow) -> dict[str, Any]:
    explains = ", explains the whole" if row["explains"] else ""
    return {
        "metric": "Users of a variant, beside the plan",
        "label": f"{row['column']} = {row['level']}: {row['variant']}",
        "diff": row["n_variant"] / row["n_expected"] - 1,
        "percent": True,
        "verdict": row["verdict"],
        "numbers": f"{number(row['n_variant'], ',d')} users, planned "
        f"{number(row['n_expected'], ',.0f')}; p {p_value(row['p_adj'])}{explains}",
    }


def _of_role(row: EstimateRow) -> dict[str, Any]:
    allowed, relative = allowed_of(row)
    numbers = f"{row['role']}: {change_text(row)}" + (
        f", margin {row['margin']}" if row["margin"] else ""
    )
    return {
        "metric": "Change in per cent of the control" if relative else f"Change of {row['metric']}",
        "label": f"{row['metric']}, {row['treatment']}",
        "diff": row["change"],
        "ci_low": row["change_low"],
        "ci_high": row["change_high"],
        "allowed": allowed,
        "percent": relative,
        "verdict": row["verdict"],
        "withheld": row["withheld"],
        "numbers": numbers,
    }


def _of_plan(row: EstimateRow) -> dict[str, Any]:
    """Users or lists that are needed; the effect that is found, if their number was given."""
    models = "n_lists" in row
    n, unit = (row["n"], "lists") if models else (row["n_control"] + row["n_treatment"], "users")
    label = f"{row['metric']}, {row['model']}" if models else f"{row['metric']} ({row['role']})"
    beside = f", beside {row['baseline']}" if models else ""
    share: str = f" ({estimated(row['mde_rel'], sign='%')})" if pd.notna(row["mde_rel"]) else ""
    found = f"{estimated(row['mde_abs'])}{share}"
    days: str = f", {number(row['days'], ',.0f')} days" if pd.notna(row.get("days", np.nan)) else ""
    numbers = f"{number(n, ',d')} {unit} {interval(row['n_low'], row['n_high'], ',.0f')}".rstrip()
    guards = not models and row["role"] == "guardrail"
    verb = "shows a loss below" if guards else "finds"
    chance = (
        f"; its margin with power {number(row['power'], '.0%')}"
        if guards and pd.isna(row["n_low"])
        else ""
    )
    drawn = {
        "metric": f"{unit.capitalize()} that are needed{beside}",
        "diff": n,
        "ci_low": row["n_low"],
        "ci_high": row["n_high"],
        "words": f"{number(n, ',d')} {unit}{days}",
    }
    if pd.isna(row["n_low"]):
        drawn = {
            "metric": f"Smallest change that is found{beside}",
            "diff": row["mde_rel"],
            "percent": True,
            "words": found,
        }
    numbers += f"{days}; {verb} {found}{chance}"
    return {"label": label, "from_zero": True, "verdict": "", "numbers": numbers} | drawn


def _of_proxy(row: EstimateRow) -> dict[str, Any]:
    slope = estimated(row["slope"], row["slope_low"], row["slope_high"])
    return {
        "metric": f"{row['online']} per unit of the offline metric",
        "label": row["offline"],
        "diff": row["slope"],
        "ci_low": row["slope_low"],
        "ci_high": row["slope_high"],
        "verdict": row["verdict"],
        "numbers": f"{slope}; {row['n_tests']} experiments, {number(row['called_right'], '.0%')} "
        "called right",
    }


def _of_change(row: EstimateRow) -> dict[str, Any]:
    what = [
        str(row[name]) for name in row if name not in CHANGE_COLUMNS and row[name] not in ("", None)
    ]
    if pd.isna(row["diff"]):
        numbers = f"{brief(row['level'])} in {row['n_runs']} runs"
        if row["effect"] == "none" and not pd.isna(row["could_see"]):
            numbers += f"; {estimated(row['could_see'], significant=2)} would be seen within a week"
    else:
        numbers = f"{brief(row['before'])} to {brief(row['after'])} from {row['changed']:%Y-%m-%d}"
    return {
        "metric": "Changes of level",
        "label": ", ".join(what),
        "diff": row["diff"],
        "verdict": row["verdict"],
        "numbers": numbers,
    }


_PLAN = "a line is the 95 % interval of a number of users or lists"
ESTIMATE_KINDS = (
    EstimateKind(
        ("rejected", "recommended", "cap"),
        "A/A test",
        _of_splits,
        "share of splits",
        "99 % intervals; upright line: the level of the test; filled: holds (blue) or does not "
        "hold (orange)",
    ),
    EstimateKind(
        ("column", "level", "n_expected", "p_without"),
        "Sample ratio by level",
        _of_level,
        "users more than planned",
        "the variant of each level that is farthest from its plan; filled: fits (blue) or does not "
        "fit (orange)",
    ),
    EstimateKind(
        ("role", "margin", "change", "change_low"),
        "Roles",
        _of_role,
        "change, zero in the middle",
        "bounds of a guardrail are one-sided; upright line: the margin; filled: shown (blue: good, "
        "orange: bad)",
    ),
    EstimateKind(
        ("offline", "slope", "naive_slope"),
        "Which offline metric predicts",
        _of_proxy,
        "slope of the true effects",
        "intervals over the experiments; filled: predicts (blue) or predicts the opposite (orange)",
    ),
    EstimateKind(
        ("changed", "found", "e_value"),
        "Changes of level",
        _of_change,
        "difference of level",
        "one row per change, or per series without one; filled: better (blue) or worse (orange)",
    ),
    EstimateKind(("mde_abs", "n_low", "design_effect", "role"), "Plan", _of_plan, "", _PLAN),
    EstimateKind(("mde_abs", "n_low", "design_effect", "n_lists"), "Plan", _of_plan, "", _PLAN),
)


def kind_of_estimates(table: Any) -> EstimateKind | None:
    """Return how a table of estimates is read; None for any other table."""
    columns = set(getattr(table, "columns", ()))
    return next((kind for kind in ESTIMATE_KINDS if columns.issuperset(kind.columns)), None)


def estimates_frame(kind: EstimateKind, table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per row of the table, as `plot.forest.data` says."""
    rows = table.to_dict("records")
    data = pd.DataFrame([kind.read(row) for row in rows])
    words = data["numbers"] + "  " + data["verdict"]
    data["words"] = data["words"] if "words" in data.columns else words
    marks = ["percent", "from_zero"]
    data = data.reindex(columns=[*DRAWN, *marks, "withheld"])
    broken = [row.get("withheld") == "sample_ratio" and "role" not in row for row in rows]
    signs = ["worse" if one else sign_of(row) for one, row in zip(broken, rows, strict=True)]
    return data.assign(**{name: data[name].eq(True) for name in marks}, sign=signs)
