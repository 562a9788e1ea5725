"""What a picture draws of a row of estimates: panel, label, the estimate with its interval, and its
numbers in words.

Contract: a function of a row and of nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..diagnostics.gate_records import row_cells
from ..diagnostics.history import CHANGE_COLUMNS
from ..experiments.decide.decide_experiment import allowed_of, change_text
from ..tables.cells import brief, estimated, interval, number, p_value
from .report.page_blocks import amount

TableRow = Mapping[Any, Any]


def _drawn_row(
    row: TableRow, metric: str, label: str, numbers: str, stem: str, **more: Any
) -> dict[str, Any]:
    """Return what a picture draws of a row: its panel, label and numbers, and an estimate with its
    interval, whose columns begin with `stem`."""
    ends = {"diff": row[stem], "ci_low": row[f"{stem}_low"], "ci_high": row[f"{stem}_high"]}
    said = {"metric": metric, "label": label, "numbers": numbers, "verdict": row["verdict"]}
    return {**said, **ends, **more}


def drawn_splits(row: TableRow) -> dict[str, Any]:
    metric = f"A/A splits rejected, {row['metric']}; recommended: {row['recommended']}"
    cap: str = "no cap" if pd.isna(row["cap"]) else f"cap={row['cap']:g}"
    numbers = estimated(row["rejected"], row["rejected_low"], row["rejected_high"], "%")
    axis = {"allowed": row["alpha"], "percent": True, "from_zero": True}
    return _drawn_row(row, metric, f"{row['metric']}, {cap}", numbers, "rejected", **axis)


def drawn_level(row: TableRow) -> dict[str, Any]:
    explains = ", explains the whole" if row["explains"] else ""
    planned = f"planned {number(row['n_expected'], ',.0f')}; p {p_value(row['p_adj'])}"
    return {
        "metric": "Users of a variant, beside the plan",
        "label": f"{row['column']} = {row['level']}: {row['variant']}",
        "diff": row["n_variant"] / row["n_expected"] - 1,
        "percent": True,
        "verdict": row["verdict"],
        "numbers": f"{amount(int(row['n_variant']), 'user')}, {planned}{explains}",
    }


def drawn_role(row: TableRow) -> dict[str, Any]:
    allowed, relative = allowed_of(row)
    margin = f", margin {row['margin']}" if row["margin"] else ""
    panel = "Change in per cent of the control" if relative else f"Change of {row['metric']}"
    label, numbers = (
        f"{row['metric']}, {row['treatment']}",
        f"{row['role']}: {change_text(row)}{margin}",
    )
    drawn = {"allowed": allowed, "percent": relative, "withheld": row["withheld"]}
    return _drawn_row(row, panel, label, numbers, "change", **drawn)


def drawn_plan(row: TableRow) -> dict[str, Any]:
    """Users or lists that are needed; the effect that is found, if their number was given."""
    models = "n_lists" in row
    n, unit = (row["n"], "lists") if models else (row["n_control"] + row["n_treatment"], "users")
    label = f"{row['metric']}, {row['model']}" if models else row["metric"]
    beside = f", beside {row['baseline']}" if models else ""
    share: str = f" ({estimated(row['mde_rel'], sign='%')})" if pd.notna(row["mde_rel"]) else ""
    found = f"{estimated(row['mde_abs'])}{share}"
    days: str = f", {number(row['days'], ',.0f')} days" if pd.notna(row.get("days", np.nan)) else ""
    numbers = f"{number(n, ',d')} {unit} {interval(row['n_low'], row['n_high'], ',.0f')}".rstrip()
    guards = not models and row["role"] == "guardrail"
    verb = "shows a loss below" if guards else "finds"
    chance = ""
    drawn = {
        "metric": f"{unit.capitalize()} that are needed{beside}",
        "diff": n,
        "ci_low": row["n_low"],
        "ci_high": row["n_high"],
        "words": f"{number(n, ',d')} {unit}{days}",
    }
    if pd.isna(row["n_low"]):
        chance = f"; its margin with power {number(row['power'], '.0%')}" if guards else ""
        drawn = {
            "metric": f"Smallest change that is found{beside}",
            "diff": row["mde_rel"],
            "percent": True,
            "words": found,
        }
    numbers += f"{days}; {verb} {found}{chance}"
    return {"label": label, "from_zero": True, "verdict": "", "numbers": numbers} | drawn


def drawn_proxy(row: TableRow) -> dict[str, Any]:
    slope = estimated(row["slope"], row["slope_low"], row["slope_high"])
    called = f"{number(row['called_right'], '.0%')} called right"
    numbers = f"{slope}; {amount(row['n_tests'], 'experiment')}, {called}"
    panel = f"{row['online']} per unit of the offline metric"
    return _drawn_row(row, panel, str(row["offline"]), numbers, "slope")


def drawn_change(row: TableRow) -> dict[str, Any]:
    what = [str(row[name]) for name in row if name not in CHANGE_COLUMNS]
    what = [name for name in what if name not in ("", "None", "nan")]
    if pd.isna(row["diff"]):
        numbers = f"{brief(row['level'])}, {amount(int(row['n_runs']), 'run')}"
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


def drawn_budget(row: TableRow) -> dict[str, Any]:
    cells, relative = row_cells(row), bool(row["relative"])
    panel = "Change in per cent of the baseline" if relative else f"Change of {row['metric']}"
    words = f"{cells['change']}  {cells['verdict']}, budget {cells['budget']}"
    drawn = {"allowed": row["allowed"], "percent": relative, "words": words}
    return _drawn_row(row, panel, cells["metric"], cells["change"], "change", **drawn)
