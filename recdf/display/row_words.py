"""What a row of a table says: its sentence, and for a row of estimates what a picture draws of it:
panel, label, the estimate with its interval, and its numbers in words.

Contract: a function of a row and of nothing else. Of a comparison, or an off-policy estimate, whose
verdict is withheld, a sentence quotes no effect.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..diagnostics.gate_records import row_cells
from ..diagnostics.history import CHANGE_COLUMNS
from ..experiments.decide.decide_experiment import allowed_of, change_text
from ..judge.choices import Row
from ..judge.comparisons import note_of, sides_of
from ..judge.verdict import is_withheld
from ..off_policy.estimate_value import FLAGS
from ..tables.cells import (
    amount,
    brief,
    columns_before,
    doing,
    estimated,
    interval,
    number,
    p_value,
    visible,
)
from .report.page_blocks import (
    BadgeKind,
    TableRow,
    effect_text,
    flag_words,
    name_of,
    plain,
)

EVERYONE = "all"  # the segment of all lists in a leaderboard
IN_SEGMENT = "within"  # a column of segments that are named with their column


# -- comparisons of models or variants


def segment_of(row: TableRow) -> str:
    """Return the segment of a row, which the columns before `metric` name."""
    names = columns_before(row, "metric")
    return " · ".join(f"{'' if one == IN_SEGMENT else f'{one} = '}{row[one]}" for one in names)


def metric_of(row: TableRow) -> str:
    """Return the metric of a row, with its segment."""
    where = segment_of(row)
    return name_of(row["metric"]) + (f" ({name_of(where)})" if where else "")


def who_is_compared(row: TableRow) -> str:
    """Return the two sides of a row, its metric and its segment."""
    new, old = (name_of(row[side]) for side in sides_of(row))
    return plain(f"{new} against {old} on {metric_of(row)}")


def of_comparison(row: TableRow) -> str:
    if is_withheld(row):
        return f"{who_is_compared(row)}: {row['verdict']}."
    said = f"{who_is_compared(row)}: {row['verdict']}, {effect_text(row)}."
    if "preference" in row:
        new, old = (plain(name_of(row[name])) for name in sides_of(row))
        said += f" {doing(row['wins'], 'prefer', 'user')} {new}, {doing(row['losses'], 'prefer')} "
        said += f"{old} (sign test, p {p_value(row['p_sign'])})."
    return said


def trend_words(row: TableRow) -> str:
    """Return the verdict and the slope of the trend of a row, or nothing if it has none."""
    if "trend_verdict" not in row:
        return ""
    said = f"trend: {visible(row['trend_verdict'])}"
    if row.get("trend_withheld"):
        return said
    slope = estimated(row["trend"], row["trend_ci_low"], row["trend_ci_high"], "+")
    return f"{said}, {slope} per day"


# -- off-policy

LIFT = ("lift", "lift_ci_low", "lift_ci_high")


def policy_of(row: TableRow) -> str:
    """Return the policy of an estimate, which the columns before `estimator` name."""
    names = columns_before(row, "estimator")
    return " · ".join(f"{row[name]}" for name in names) or "The target policy"


def is_useless(row: TableRow) -> bool:
    """Whether neither value nor interval of an estimate may be used."""
    return bool(row.get("withheld")) and not row["effect"]


def lift_text(row: TableRow) -> str:
    """Return the lift of an estimate over the logging policy with its interval."""
    lift, low, high = map(row.get, LIFT)
    return "" if pd.isna(lift) else estimated(lift, low, high, "+")


def amount_of_estimate(row: TableRow) -> str:
    """Return the value of an estimate with its interval, and its lift where it has one."""
    said = f"value {estimated(row['value'], row['ci_low'], row['ci_high'])}"
    return said + (f", {lift} beside the logging policy" if (lift := lift_text(row)) else "")


def look_of_estimate(row: TableRow) -> BadgeKind:
    """Return the look of an estimate; a flagged one never looks like a result."""
    if is_useless(row):
        return "error"
    if flag_words(row):
        return "warning"
    _, low, high = (row.get(name, np.nan) for name in LIFT)
    return "better" if low > 0 else "worse" if high < 0 else "open"


def trust_of(row: TableRow) -> str:
    """Return whether to believe an estimate, in words."""
    return str(row.get("trust") or flag_words(row) or "no flag")


def flag_meanings(row: TableRow) -> str:
    """Return what the flags of an estimate mean, in sentences."""
    return "; ".join(FLAGS[name][1] for name in row["flags"].split(", ") if name in FLAGS)


# -- data


def arm_of(row: TableRow) -> str:
    """Return the variant of a row of a table of health, behind the labels of its group."""
    return " ".join(str(row[name]) for name in [*columns_before(row, "variant"), "variant"])


# -- rows of estimates, which a picture draws


def ends_of(row: TableRow, stem: str) -> Row:
    """Return the estimate of a row with its interval, whose columns begin with `stem`."""
    return {"diff": row[stem], "ci_low": row[f"{stem}_low"], "ci_high": row[f"{stem}_high"]}


def drawn_role(row: TableRow) -> Row:
    allowed, relative = allowed_of(row)
    margin = f", margin {row['margin']}" if row["margin"] else ""
    return {
        "metric": "Change in per cent of the control" if relative else f"Change of {row['metric']}",
        "label": f"{row['metric']}, {row['treatment']}",
        "numbers": f"{row['role']}: {change_text(row)}{margin}",
        **ends_of(row, "change"),
        "allowed": allowed,
        "percent": relative,
    }


def drawn_plan(row: TableRow) -> Row:
    """Users or lists that are needed; the effect that is found, if their number was given."""
    metric = row["metric"]
    beside = ""
    unit = "users"
    if "n_lists" in row:
        n = row["n"]
        unit = "lists"
        beside = f", beside {row['baseline']}"
        metric = f"{metric}, {row['model']}"
    else:
        n = row["n_control"] + row["n_treatment"]
    share: str = f" ({estimated(row['mde_rel'], sign='%')})" if pd.notna(row["mde_rel"]) else ""
    found = f"{estimated(row['mde_abs'])}{share}"
    needed = f"{number(n, ',d')} {unit}"
    days = f", {amount(row['days'], 'day')}" if pd.notna(row.get("days")) else ""
    guards = row.get("role") == "guardrail"
    said = f"{needed} {interval(row['n_low'], row['n_high'], ',.0f')}".rstrip() + days
    said += f"; {'shows a loss below' if guards else 'finds'} {found}"
    drawn = {
        "label": metric,
        "from_zero": True,
        "metric": f"{unit.capitalize()} that are needed{beside}",
        "diff": n,
        "ci_low": row["n_low"],
        "ci_high": row["n_high"],
    }
    if pd.isna(row["n_low"]):
        said += f"; its margin with power {number(row['power'], '.0%')}" if guards else ""
        what = f"Smallest change that is found{beside}"
        drawn |= {"metric": what, "diff": row["mde_rel"], "percent": True}
    said += f"; {warned}" if (warned := note_of(row)) else ""
    return drawn | {"numbers": said}


def drawn_change(row: TableRow) -> Row:
    what = [str(row[name]) for name in row if name not in CHANGE_COLUMNS and pd.notna(row[name])]
    if pd.isna(row["diff"]):
        numbers = f"{brief(row['level'])}, {amount(int(row['n_runs']), 'run')}"
        if row["effect"] == "none" and not pd.isna(row["could_see"]):
            numbers += f"; {estimated(row['could_see'], significant=2)} would be seen within a week"
    else:
        numbers = f"{brief(row['before'])} to {brief(row['after'])} "
        numbers += f"from {pd.Timestamp(row['changed']):%Y-%m-%d}"  # a text in a table from CSV
    return {
        "metric": "Changes of level",
        "label": ", ".join(filter(None, what)),
        "diff": row["diff"],
        "numbers": numbers,
    }


def drawn_budget(row: TableRow) -> Row:
    cells = row_cells(row)
    relative = row["relative"]
    return {
        "metric": "Change in per cent of the baseline"
        if relative
        else f"Change of {row['metric']}",
        "label": cells["metric"],
        "numbers": cells["change"],
        **ends_of(row, "change"),
        "allowed": row["allowed"],
        "percent": relative,
        "words": f"{cells['change']}  {cells['verdict']}, budget {cells['budget']}"
        f"{(', ' + cells['why']) * (row['effect'] in ('pass', 'fail') and bool(cells['why']))}",
    }
