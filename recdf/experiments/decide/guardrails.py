"""Guardrails: is a metric safe within its margin, and could a few units that the sample lacks turn
that?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...inputs.constraints import Budget
from ...judge.choices import Alternative, AnyRow, Row
from ...judge.verdict import (
    by_rank,
    code_names,
    codes_of,
    remark,
    sentence,
    unit_of_method,
    warnings_of,
)
from ...stats.arms import Arm, effect, fieller
from ...stats.numbers import Mask
from ...stats.student import t_quantile
from ...stats.turned import missing_by_chance, turned_by, turning_value
from ...tables.cells import form_of, number

_TURNED, _UNBOUNDED = "unseen_units", "unbounded"
_SIDES = ("control", "treatment")
_NO_MARGIN = Budget("", None, None, 0.0, relative=False)
SAFE, WITHIN, HARMED, NOT_SAFE = "safe", "within_margin", "harmed", "not_safe"


def judge_guardrail(row: AnyRow, budget: Budget) -> Row:
    """Return whether a guardrail is safe."""
    sign = 1 if row["better"] == "larger" else -1
    allowed = budget.allowed
    relative = budget.relative
    change, low, high = (row["rel_" * relative + one] for one in ("diff", "ci_low", "ci_high"))
    p_safe = p_harmed = math.nan
    if str(row["method"]).startswith("welch") and row["df"] > 0:
        # Both arms as the table compares them. Their degrees of freedom are those of their units,
        # n − 1, times what makes that of the difference the table's.
        adjusted = "" if math.isnan(row["mean_control_adjusted"]) else "_adjusted"
        arms = [
            Arm(row[f"mean_{side}{adjusted}"], row[f"se_{side}"] ** 2, row[f"n_{side}"] - 1.0)
            for side in _SIDES
        ]
        share = row["df"] / effect(arms[0], arms[1]).df
        control, treatment = (one._replace(df=share * one.df) for one in arms)
        quantile = t_quantile(row["df"], "greater", row["confidence"])
        if relative:
            low, high = map(float, fieller(control, treatment, quantile))
        else:
            wide = quantile * math.hypot(row["se_control"], row["se_treatment"])
            low = change - wide
            high = change + wide
        if not relative or control.mean > 0:
            scale, shift = (1 + allowed, 0.0) if relative else (1.0, allowed)
            limit = Arm(scale * control.mean + shift, scale**2 * control.var, control.df)
            sides: list[Alternative] = ["greater", "less"]
            p_safe, p_harmed = (
                float(effect(limit, treatment, side, row["confidence"]).p_value)
                for side in sides[::sign]
            )
    alpha = 1 - row["confidence"]
    ends = sign * (low - allowed), sign * (high - allowed)
    safe = min(ends) > 0 if math.isnan(p_safe) else p_safe <= alpha
    harmed = max(ends) < 0 if math.isnan(p_harmed) else p_harmed <= alpha
    # `turned_by_unseen` asks about the margin, and the caution of the table asked about 0.
    turned = row["withheld"] == _TURNED
    loses = row["reject"] and sign * row["diff"] < 0 and not turned
    shown = NOT_SAFE
    note = ""
    if row["withheld"] and not turned:
        note = row["verdict"]
    elif harmed:
        shown = HARMED
    elif safe:
        shown = WITHIN if loses else SAFE
    elif math.isnan(min(ends)) and math.isnan(p_safe):
        note = code_names(warnings_of(row["remarks"]))
        if not note and row["mean_control"] > 0:
            note = "this test has no relative interval: name the margin in units"
        note = note or "the control's mean is not above 0"
    elif loses:
        note = "worse"
    codes = [
        one for one in codes_of(row["remarks"]) if one not in (_UNBOUNDED, *[_TURNED] * turned)
    ]
    if shown != NOT_SAFE and row.get("holds_for"):
        codes.append("heavier_unseen")  # where the table has shown no difference, too
    return {
        "margin": budget.text,
        "change": change,
        "change_low": low,
        "change_high": high,
        "p_safe": p_safe,
        "p_harmed": p_harmed,
        "effect": shown,
        "note": note,
        "remarks": by_rank(codes),
    }


def turned_by_unseen(found: Row, row: dict[Any, Any], budget: Budget) -> None:
    """Take back what is said of a guardrail if a few unseen units at a bound of the metric would
    turn it. Remark where no bound is known, and give `row` its numbers."""
    if found["effect"] == NOT_SAFE or str(row["method"]).startswith("quantile"):
        return
    unseen = missing_by_chance(1 - row["confidence"])
    few, unbounded = _could_turn(row, budget, found["effect"] == HARMED, unseen)
    if few:
        found |= {"effect": NOT_SAFE, "note": sentence("role", "", _TURNED, row=row)}
    elif unbounded:
        found["remarks"] = by_rank([*codes_of(found["remarks"]), _UNBOUNDED])


def ask_one_sided(table: dict[str, Any], said: Mask, gains: Mask) -> None:
    """Ask of the rows of a table in which something is `said` whether a few unseen units at the
    only bound that is known would turn it. If they would not, say in `unless` which values beyond
    the other end would, and add the remark.

    The table comes as its columns by name. `gains` says in which rows it takes units of the
    treatment that gain to turn what is said.
    """
    table["unless"] = [""] * len(said)
    for i in np.flatnonzero(said):
        row = {name: column[i] for name, column in table.items()}
        few, unbounded = _could_turn(row, _NO_MARGIN, gains[i], table["unseen"][i])
        table["unless"][i] = row["unless"] * unbounded
        for name in ("turned_by", "turned_to") if few else ():
            table[name][i] = row[name]
    remark(table, [*map(bool, table["unless"])], _UNBOUNDED)


def _could_turn(
    row: dict[Any, Any], budget: Budget, gains: bool, unseen: float
) -> tuple[bool, bool]:
    """Return whether a few unseen units at a bound would turn what is said of two arms and a
    margin, and else whether a bound is not known. Give `row` the numbers of these units.

    `gains` : it takes units of the treatment that gain, and not units that lose · `unseen` : so
    many may be missing by chance.
    """
    adjusted = "" if math.isnan(row["mean_control_adjusted"]) else "_adjusted"
    control, mean = means = np.array([row[f"mean_{side}{adjusted}"] for side in _SIDES])
    n = np.array([row[f"n_typical_{side}"] for side in _SIDES])
    # The mean of each arm at which the margin is reached, if that of the other one stays.
    allowed = budget.allowed
    if budget.relative:
        claims = np.array([mean / (1 + allowed), control * (1 + allowed)])
    else:
        claims = np.array([mean - allowed, control + allowed])
    by = np.asarray(turned_by(means, n, row["metric_low"], row["metric_high"], claims))
    values = np.asarray(turning_value(means, n, claims, unseen))
    few = np.fmin(*by) < unseen
    unbounded = np.isnan(by)
    near = by
    if unbounded.any() and not few:
        # The treatment is named, unless the value of the control is nearer by a fifth, or that of
        # the treatment has another sign than its mean.
        near = np.where(unbounded, np.abs(values - means) * (1.25, 1), np.inf)
        near = np.where(unbounded & (values * means < 0), np.finfo(float).max, near)
    of_control = bool(near[0] < near[1] or math.isnan(near[1]))
    least, value = (
        number(one, form_of(one, significant=digits))
        for one, digits in ((unseen, 1), (float(values[int(not of_control)]), 3))
    )
    units = f"{unit_of_method(row['method'])}s"
    of = " of the control" if of_control else ""
    beyond = "less" if (mean > claims[1]) != of_control else "more"
    n_asked = row[f"n_{_SIDES[not of_control]}"]
    row |= {
        "turned_by": np.fmin(*by),
        "turned_to": "gain" if gains != of_control else "lose",
        "unseen": unseen,
        "unless": f"{least} in {n_asked:,} {units}{of} have {value} or {beyond}",
    }
    return bool(few), bool(unbounded.any() and not few)
