"""From the table of an experiment to a decision: what each metric is for, and whether the treatment
ships."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

import numpy as np
import pandas as pd

from ...errors import ColumnError, DataError, OptionError
from ...inputs.budgets import Budget, check_budget, read_change
from ...judge.cautions.table import CAUTIONS, UNLIKE
from ...judge.choices import Alternative, Better, check_value
from ...judge.comparisons import confidence_of, need_details
from ...judge.per_user_columns import frame_of
from ...judge.verdict import VERDICT_COLUMNS, by_rank, codes_of, has, sentence, warnings_of
from ...stats.arms import Arm
from ...stats.effect_sizes import effect, fieller
from ...stats.many_tests import adjust
from ...stats.student import t_quantile
from ...tables.cells import columns_before, estimated, is_one_sided, p_value
from ..plan.experiment_plan import ExperimentPlan
from ..samples import subset

RoleWord = Literal["success", "guardrail", "diagnostic"]
Roles = Mapping[str, Any] | ExperimentPlan

SAFE, WITHIN, HARMED, NOT_SAFE = "safe", "within_margin", "harmed", "not_safe"
_NEEDED = [
    "metric",
    "control",
    "treatment",
    "mean_control",
    "mean_treatment",
    "diff",
    "p_value",
    "p_adj",
    *VERDICT_COLUMNS,
]
# What the test of a guardrail asks for, and a plan.
_DETAILS = ["se_control", "se_treatment", "df", "reject", "confidence", "method", "better"]


def role_verdicts(table: pd.DataFrame, roles: Roles) -> pd.DataFrame:
    """Say of every metric of an experiment what its role makes of it, such as whether a guardrail
    is safe.

    A guardrail may lose up to its margin: u in units of the metric, or a share u of the control's
    mean. With s = 1 where larger is better and −1 where smaller is, and the means and standard
    errors of the arms as they are compared (with clusters, covariates and strata), T = s·(m_t − m_c
    − u)/√(se_t² + se_c²), or relative, by Fieller's theorem, T = s·(m_t − (1 + u)·m_c)/√(se_t² + (1
    + u)²·se_c²). p_safe = P(t ≥ T) and p_harmed = P(t ≤ T) are one-sided, with Welch's degrees of
    freedom. Metrics that were not tested by t (permutation, bootstrap, proportion, and tests that
    hold at every look) are judged by the interval in the table, which is two-sided.

    Parameters
    ----------
    table : DataFrame
        What `compare_variants` returned without `by=`; for guardrails and plans with
        `details=True`.
    roles : mapping
        Metric → "success", "diagnostic" or ("guardrail", margin). The margin is the change for the
        worse that is still allowed: "-2%" of the control's mean, or a number such as -0.05; "+5%"
        where smaller is better. Metrics that are not named are diagnostic.

    Returns
    -------
    DataFrame
        One row per row of the table: `metric`, `role`, `control`, `treatment`, `margin` (text),
        `change`, `change_low`, `change_high` (guardrails: relative if the margin is, each bound
        one-sided at 1 − alpha; other metrics: `diff` and its interval), `p_safe`, `p_harmed`,
        `p_adj` (success metrics: of the table, or after Holm's correction for all success metrics
        and treatments if that is larger; null for others), `effect`, `withheld`, `remarks` (codes),
        `verdict` and `note` (why not more).
        Verdict of a guardrail, first rule that holds: "not shown safe" where the table withholds
        its verdict · "harmed beyond the margin" (p_harmed ≤ alpha) · "worse, within the margin"
        (p_safe ≤ alpha, and the table shows a loss) · "safe" (p_safe ≤ alpha) · "not shown safe".
        Other metrics have the verdict of the table.

    Raises
    ------
    ColumnError
        The table is not one of `compare_variants`, or a guardrail or plan needs its details.
    OptionError
        A role or margin that is none, a margin that allows what is better, a metric without
        direction as guardrail, or a table of segments.

    References
    ----------
    Fieller 1954; Schultzberg, Ankargren & Frånberg 2024 (roles of metrics; why guardrails need no
    correction).

    Examples
    --------
    >>> import numpy as np, pandas as pd, recdf as rd
    >>> draw = np.random.default_rng(1)
    >>> users = pd.DataFrame(
    ...     {
    ...         "user_id": range(2000),
    ...         "variant": ["A", "B"] * 1000,
    ...         "spend": draw.normal(10, 2, 2000),
    ...     }
    ... )
    >>> table = rd.compare_variants(
    ...     users, "spend", control="A", expected={"A": 1, "B": 1}, details=True
    ... )
    >>> judged = rd.experiments.role_verdicts(table, {"spend": ("guardrail", "-2%")})
    >>> judged[["metric", "margin", "change", "change_low", "verdict"]].round(3)
      metric margin  change  change_low verdict
    0  spend    −2%   0.002      -0.012    safe
    """
    named = _read_roles(table, roles)
    p_success = _together(table, named)
    rows = []
    if "confidence" not in table.columns:
        table = table.assign(confidence=_confidence(table))
    for row, p in zip(table.to_dict("records"), p_success, strict=True):
        role, budget = named.get(row["metric"], ("diagnostic", None))
        found = {
            "metric": row["metric"],
            "role": role,
            "control": row["control"],
            "treatment": row["treatment"],
            "margin": "",
            "change": row["diff"],
            "change_low": row["ci_low"],
            "change_high": row["ci_high"],
            "p_safe": math.nan,
            "p_harmed": math.nan,
            "p_adj": p,  # null of a metric that is no success metric
            "effect": row["effect"],
            "withheld": "" if budget else row["withheld"],
            "remarks": row["remarks"],
            "verdict": "",
            "note": "",
        }
        if budget is not None:
            found |= _guardrail(row, budget)
        elif row["effect"] == "better" and p > 1 - row["confidence"]:
            note = f"better alone, not among all success metrics: p {p_value(p)}"
            found |= {"effect": "none", "note": note}
        found["verdict"] = sentence("role", found["effect"], found["withheld"], row=row)
        rows.append(found)
    return pd.DataFrame(rows)


def decide_experiment(
    table: pd.DataFrame, *, roles: Roles, ran: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Decide about every treatment of an experiment: ship, do not ship, keep running or invalid,
    with the reasons.

    First rule that holds: "invalid" if the table says that the variants are not alike (the sample
    ratio of any metric does not fit the plan, shares change over time, a covariate differs) · "do
    not ship" if a guardrail is harmed beyond its margin or a success metric is worse · "ship" if a
    success metric is better and every guardrail is safe, which includes "worse, within the margin";
    after a plan that was not followed, "ship, not as planned" · "keep running".

    All guardrails must be safe, so that their tests need no correction; their power must be planned
    for. One success metric is enough, so that those of all treatments are corrected together
    (Holm), if the table was not.

    Parameters
    ----------
    table : DataFrame
        What `compare_variants` returned for all users; for guardrails and plans with
        `details=True`. A table of segments (`by=`) is refused: a
        decision is of the whole. So is a table of all pairs. With `sequential_n=`, the decision may
        be made at any look; else once, with the users that were planned.
    roles : mapping
        Metric → role, see `role_verdicts`; at least one metric must be "success". Or what
        `read_plan` returned.
    ran : mapping, optional
        What a plan says and the table does not: {"unit": "user_id", "segments": ["country"],
        "looks": 1}.

    Returns
    -------
    DataFrame
        One row per treatment: `control`, `treatment`, `effect` ("ship", "ship_not_as_planned",
        "do_not_ship", "keep_running", "invalid"), `withheld` (why it is invalid), `remarks`,
        `decision` (the effect in words), `reasons` (a sentence per metric, harms first, separated
        by "; "), `harms` and `better` (metrics, separated by ", "). With a plan, also `deviations`
        (from the plan, separated by "; "), `unknown` (what of the plan neither the table nor `ran`
        tells) and `plan` (its digest).

    Raises
    ------
    ColumnError, OptionError
        As `role_verdicts`; no metric is "success".
    DataError
        Several rows of a metric and treatment.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame({"user_id": range(400), "variant": ["A", "B"] * 200})
    >>> users["ctr"] = [1, 2, 3, 4, 2, 5, 3, 4] * 50
    >>> users["spend"] = [9, 9, 11, 11, 10, 10, 9, 9] * 50
    >>> table = rd.compare_variants(
    ...     users, ["ctr", "spend"], control="A", expected={"A": 1, "B": 1}, details=True
    ... )
    >>> decided = rd.experiments.decide_experiment(
    ...     table, roles={"ctr": "success", "spend": ("guardrail", "-2%")}
    ... )
    >>> decided[["treatment", "decision"]]
      treatment decision
    0         B     ship
    >>> print(decided["reasons"].iloc[0].replace("; ", "\\n"))
    ctr: better (+1.50 [+1.28, +1.72], p <0.001)
    spend: safe (0.0% [−1.4%, +1.4%] one-sided, margin −2%)
    """
    judged = role_verdicts(table, roles)
    if "success" not in set(judged["role"]):
        advice = "name one, as in ⟦+roles={'ctr': 'success'}⟧"
        raise OptionError(
            f"no metric has the role of success, and only one that is better ships; {advice}"
        )
    if table["control"].nunique() > 1:
        raise OptionError(
            "table compares all pairs of variants; a decision is about treatments beside one "
            "control: pass what rd.compare_variants returned with it as ⟦+control=⟧"
        )
    if table.duplicated(["metric", "treatment"]).any():
        raise DataError(
            "table has several rows of a metric and treatment; pass what one compare_variants "
            "returned"
        )
    withheld = table["withheld"].reset_index(drop=True)
    plan = roles if isinstance(roles, ExperimentPlan) else None
    deviations = plan.deviations(table, ran) if plan else []
    rows = []
    for treatment in judged["treatment"].unique().tolist():
        own = judged["treatment"] == treatment
        rows.append(_decision(judged[own], withheld[own], bool(deviations)))
    decided = pd.DataFrame(rows)
    if plan:
        decided = decided.assign(
            deviations="; ".join(deviations),
            unknown=", ".join(plan.unknown(ran)),
            plan=plan.digest,
        )
    return decided


def _read_roles(table: pd.DataFrame, roles: Any) -> dict[str, tuple[RoleWord, Budget | None]]:
    """Return the role of every metric that is named, and the margin of a guardrail."""
    if "baseline" in frame_of("table", table).columns:
        raise ColumnError(
            "table compares models; roles are of an experiment, and rd.gate decides about a model"
        )
    if missing := [name for name in _NEEDED if name not in table.columns]:
        raise ColumnError(
            f"table has no column {missing[0]!r}; expected what rd.compare_variants returns"
        )
    if segments := columns_before(table, "metric"):
        raise OptionError(
            f"table compares within {segments}; a decision is of all users: pass what "
            "rd.compare_variants returned without ⟦by=⟧"
        )
    if isinstance(roles, ExperimentPlan):  # what was not compared is a deviation
        need_details(table, "table", [*_DETAILS, "n_dropped_control", "n_dropped_treatment"])
        roles = {name: role for name, role in roles.roles.items() if name in set(table["metric"])}
    if not isinstance(roles, Mapping) or not roles:
        raise OptionError(
            f"⟦roles={roles!r}⟧; expected a mapping of metrics to roles, as {{'ctr': 'success'}}"
        )
    metrics = dict.fromkeys(table["metric"])
    guarded = [name for name, given in roles.items() if not isinstance(given, str)]
    subset("guardrails", guarded, metrics)
    subset("roles", list(roles), metrics)
    better: dict[Any, Any] = {}
    if guarded:
        need_details(table, "table", _DETAILS)
        better = dict(zip(table["metric"], table["better"], strict=True))
    found: dict[str, tuple[RoleWord, Budget | None]] = {}
    for metric, given in roles.items():
        word, *margin = [given] if isinstance(given, str) else list(given)
        check_value(f"roles[{metric!r}]", word, RoleWord)
        if len(margin) != (word == "guardrail"):
            expected = "'success', 'diagnostic' or ('guardrail', '-2%')"
            raise OptionError(f"⟦roles[{metric!r}]={given!r}⟧; expected {expected}")
        budget = (
            Budget(metric, None, None, *read_change(f"guardrails[{metric!r}]", margin[0]))
            if margin
            else None
        )
        if budget is not None:
            check_budget(
                budget,
                better[metric] if better[metric] in get_args(Better) else None,
                None,
                "guardrails",
            )
        found[metric] = cast(RoleWord, word), budget
    return found


def _confidence(table: pd.DataFrame) -> float:
    """Return the confidence that a table without the column has in its attrs."""
    found = confidence_of(table)
    if found is None:
        need_details(table, "table", ["confidence"])
    return cast(float, found)


def _together(table: pd.DataFrame, roles: Mapping[str, tuple[RoleWord, Budget | None]]) -> Any:
    """Adjusted p of the success metrics, corrected at least for all of them; NaN for other
    metrics."""
    success = (
        table["metric"].map(lambda name: roles.get(name, ("",))[0] == "success").to_numpy(bool)
    )
    p = np.where(success, table["p_value"].to_numpy(np.float64), np.nan)
    return np.where(
        success, np.fmax(table["p_adj"].to_numpy(np.float64), adjust(p, "holm")), np.nan
    )


def _guardrail(row: Mapping[Any, Any], budget: Budget) -> dict[str, Any]:
    """Return whether a guardrail is safe."""
    sign, allowed, relative = (
        1 if row["better"] == "larger" else -1,
        budget.allowed,
        budget.relative,
    )
    change, low, high = (
        row[name]
        for name in (
            ("rel_diff", "rel_ci_low", "rel_ci_high") if relative else ("diff", "ci_low", "ci_high")
        )
    )
    p_safe = p_harmed = math.nan
    if str(row["method"]).startswith("welch") and row["df"] > 0:
        arms = _arms(row)
        quantile, confidence = (
            float(t_quantile(row["df"], "greater", row["confidence"])),
            row["confidence"],
        )
        wide = quantile * math.hypot(row["se_control"], row["se_treatment"])
        low, high = (
            map(float, fieller(*arms, quantile)) if relative else (change - wide, change + wide)
        )
        if not relative or arms[0].mean > 0:
            scale, shift = (1 + allowed, 0.0) if relative else (1.0, allowed)
            allowed_control = Arm(scale * arms[0].mean + shift, scale**2 * arms[0].var, arms[0].df)
            sides: list[Alternative] = ["greater", "less"] if sign > 0 else ["less", "greater"]
            p_safe, p_harmed = (
                float(effect(allowed_control, arms[1], side, confidence).p_value) for side in sides
            )
    alpha = 1 - row["confidence"]
    ends = sign * (low - allowed), sign * (high - allowed)
    safe = min(ends) > 0 if math.isnan(p_safe) else p_safe <= alpha
    harmed = max(ends) < 0 if math.isnan(p_harmed) else p_harmed <= alpha
    shown, note = NOT_SAFE, ""
    if row["withheld"]:
        note = str(row["verdict"])
    elif harmed:
        shown = HARMED
    elif safe:
        shown = WITHIN if row["reject"] and sign * row["diff"] < 0 else SAFE
    elif math.isnan(min(ends)) and math.isnan(p_safe):
        unknown = (
            "the control's mean is not above 0",
            "this test has no relative interval: name the margin in units",
        )
        note = (
            ", ".join(warnings_of(row["remarks"])).replace("_", " ")
            or unknown[bool(row["mean_control"] > 0)]
        )
    elif row["reject"] and sign * row["diff"] < 0:
        note = "worse"
    return {
        "margin": budget.text,
        "change": change,
        "change_low": low,
        "change_high": high,
        "p_safe": p_safe,
        "p_harmed": p_harmed,
        "effect": shown,
        "note": note,
    }


def _arms(row: Mapping[Any, Any]) -> tuple[Arm, Arm]:
    """Both arms as the table compares them.

    Their degrees of freedom are those of their units, n − 1, times what makes that of the
    difference the table's.
    """
    adjusted = "" if math.isnan(row["mean_control_adjusted"]) else "_adjusted"

    def arm_of(side: str, share: float) -> Arm:
        return Arm(
            row[f"mean_{side}{adjusted}"], row[f"se_{side}"] ** 2, share * (row[f"n_{side}"] - 1)
        )

    share = row["df"] / float(effect(arm_of("control", 1.0), arm_of("treatment", 1.0)).df)
    return arm_of("control", share), arm_of("treatment", share)


def _decision(judged: pd.DataFrame, withheld: pd.Series, deviates: bool) -> dict[str, Any]:
    """Return the decision about one treatment from its rows, and what withholds their verdicts in
    the table."""
    first = judged.iloc[0]
    success, guardrail = judged["role"] == "success", judged["role"] == "guardrail"
    worse = judged["effect"].isin(["worse", HARMED])
    better = success & (judged["effect"] == "better")
    safe = judged["effect"].isin([SAFE, WITHIN])
    invalid = codes_of(by_rank(code for code in withheld if code in UNLIKE))
    decision = "keep_running"
    if invalid:
        decision = "invalid"
    elif (worse & (success | guardrail)).any():
        decision = "do_not_ship"
    elif better.any() and safe[guardrail].all():
        decision = "ship_not_as_planned" if deviates else "ship"
    shown = judged.assign(
        order=np.select(
            [
                worse & guardrail,
                worse,
                judged["effect"] == WITHIN,
                guardrail & ~safe,
                success,
                guardrail,
            ],
            range(6),
            6,
        )
    ).sort_values("order", kind="stable")
    # A diagnostic without a difference is no reason for anything.
    said = [
        _reason(row)
        for row in shown.to_dict("records")
        if row["order"] < 6 or row["effect"] == "better"
    ]
    unchecked = has(judged["remarks"], "ratio_not_checked").any()
    said = [CAUTIONS[code].words for code in invalid] or said
    remarks = [*invalid, *["ratio_not_checked"] * bool(unchecked)]
    return {
        "control": first["control"],
        "treatment": first["treatment"],
        "effect": decision,
        "withheld": invalid[0] if invalid else "",
        "remarks": "; ".join(remarks),
        "decision": sentence("decision", decision),
        "reasons": "; ".join([*said, *["the sample ratio was not checked"] * bool(unchecked)]),
        "harms": ", ".join(judged.loc[worse, "metric"]),
        "better": ", ".join(judged.loc[better, "metric"]),
    }


def allowed_of(row: Mapping[Any, Any]) -> tuple[float, bool]:
    """Return the change that a row of `role_verdicts` allows, null without a margin, and whether it
    is relative."""
    return read_change("margin", row["margin"]) if row["margin"] else (math.nan, False)


def change_text(row: Mapping[Any, Any]) -> str:
    """Return the change of a row of `role_verdicts` with its bounds, in per cent if it is
    relative; bounds that hold one by one are named."""
    ends = row["change_low"], row["change_high"]
    sided = " one-sided" if pd.notna(row["p_safe"]) or is_one_sided(*ends) else ""
    sign = "+%" if row["margin"].endswith("%") else "+"
    return estimated(row["change"], *ends, sign) + sided


def plan_sentence(row: Mapping[Any, Any]) -> str:
    """Return whether a decision follows its plan, in words; nothing without a plan."""
    if not row.get("plan"):
        return ""
    done = f"not as planned: {row['deviations']}" if row["deviations"] else "as planned"
    if row["unknown"]:
        done = done if row["deviations"] else "no deviation is known"
        done += f"; not known: {row['unknown']}"
    return f"Plan {row['plan'][:12]}: {done}"


def _reason(row: Mapping[Any, Any]) -> str:
    """Return what one metric says, with its numbers."""
    rest = f", margin {row['margin']}" if row["margin"] else ""
    rest += f", p {p_value(row['p_adj'])}" if pd.notna(row["p_adj"]) else ""
    rest += f", {row['note']}" if row["note"] else ""
    return f"{row['metric']}: {row['verdict']} ({change_text(row)}{rest})"
