"""From the table of an experiment to a decision: what each metric is for, and whether the treatment
ships."""

from __future__ import annotations

import hashlib
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...errors import ColumnError, DataError, OptionError, closest
from ...inputs.constraints import Budget, Share, a_number, check_budget, check_record, read_change
from ...inputs.frames import float_column
from ...judge.cautions.table import CAUTIONS, UNLIKE
from ...judge.choices import AnyRow, Row, VariantTest, as_columns, check_value
from ...judge.comparisons import confidence_of, need_details, with_known_codes
from ...judge.per_user_columns import frame_of, require_labels
from ...judge.verdict import (
    VERDICT_COLUMNS,
    by_rank,
    code_names,
    codes_of,
    has,
    sentence,
    unit_of_method,
    warnings_of,
)
from ...stats.many_tests import adjust
from ...tables.cells import amount, columns_before, estimated, is_one_sided, p_value
from ..samples import subset
from .guardrails import HARMED, NOT_SAFE, SAFE, WITHIN, judge_guardrail, turned_by_unseen

# ------------------------------------------------------------------------------------------
# A plan that was written before an experiment, and what was done otherwise.

# More users than planned by this share are an experiment that ran on.
RAN_ON = 0.1


@dataclass(frozen=True)
class ExperimentPlan:
    """What was decided before an experiment, as `read_plan` reads it; `roles=` takes it in place of
    a mapping.

    `digest` is the SHA-256 of the file. Fields that are None were left open.
    """

    hypothesis: str
    primary: tuple[str, ...]
    digest: str
    guardrails: Mapping[str, Any] | None = None
    control: Any = None
    unit: tuple[str, ...] | None = None
    segments: tuple[str, ...] | None = None
    method: VariantTest | None = None
    n: Annotated[int, a_number(4, whole=True)] | None = None
    looks: Annotated[int, a_number(1, whole=True)] | Literal["any"] | None = None
    confidence: Share = 0.95

    def __post_init__(self) -> None:
        check_record(self)
        if both := sorted({*self.primary} & {*(self.guardrails or {})}):
            raise OptionError(
                f"plan has {both} as primary and as guardrails; name each in one of them"
            )

    @property
    def roles(self) -> dict[str, Any]:
        """The role of every metric that was planned."""
        margins = {name: ("guardrail", margin) for name, margin in (self.guardrails or {}).items()}
        return dict.fromkeys(self.primary, "success") | margins

    def deviations(self, table: DataFrame, ran: Mapping[str, Any] | None = None) -> list[str]:
        """Say what a comparison of variants, and `ran` (unit, segments, looks), have otherwise than
        planned."""
        own = table[table["metric"].isin(self.roles)]
        always = own["method"].str.startswith("sequential")
        test = own["method"].str.split("+").str[0].replace(["welch", "sequential"], "t")
        # Users of all variants, also those whose metric is null; clusters where these are compared.
        rows = own["method"].map(unit_of_method) == "user"
        control, treatment = (
            (own[f"n_{arm}"] + own[f"n_dropped_{arm}"].where(rows).fillna(0)).groupby(own["metric"])
            for arm in ("control", "treatment")
        )
        n = int((control.max() + treatment.sum()).max()) if len(own) else self.n or 0
        done = ran or {}
        looks = done.get("looks")
        compared = set(table["metric"])
        found = [f"{name} was not compared" for name in self.roles if name not in compared]
        if self.control is not None and set(table["control"].map(str)) != {str(self.control)}:
            found.append(f"control {table['control'].iloc[0]} instead of {self.control}")
        if self.method is not None:
            other = own["metric"] + ": test " + test + f" instead of {self.method}"
            found += other[test != self.method].drop_duplicates().tolist()
        for name in ("unit", "segments"):
            planned = getattr(self, name)
            was = as_columns(done.get(name))
            if planned is not None and name in done and set(was) != set(planned):
                of_both = (", ".join(names) or "none" for names in (was, planned))
                found.append(f"{name} {' instead of '.join(of_both)}")
        if self.n is not None and not self.n <= n <= (1 + RAN_ON) * self.n:
            how = "stopped early" if n < self.n else "ran on"
            unit = "user" if rows.any() else "cluster"
            found.append(f"{how}: {amount(n, unit)} instead of {self.n:,}")
        if self.looks == "any" and not always.all():
            found.append("the test does not hold at every look (sequential_n), as planned")
        elif isinstance(self.looks, int) and looks is not None and looks > self.looks:
            found.append(f"{amount(looks, 'look')} instead of {self.looks}")
        if not (own["confidence"] - self.confidence).abs().lt(1e-12).all():
            found.append(f"confidence {own['confidence'].iloc[0]:g} instead of {self.confidence:g}")
        return found

    def unknown(self, ran: Mapping[str, Any] | None = None) -> list[str]:
        """Name what was planned and neither a table nor `ran` tells."""
        done = ran or {}
        return [
            name
            for name in ("unit", "segments", "looks")
            if getattr(self, name) not in (None, "any") and done.get(name) is None
        ]


def read_plan(path: str | os.PathLike[str]) -> ExperimentPlan:
    """Read the plan of an experiment from a TOML file that was written before it.

    Parameters
    ----------
    path : path
        A file with `hypothesis` (text) and `primary` (the success metrics), and, if they are
        planned, `control`, `unit` (the columns that were assigned), `segments`, `method` (a test of
        `compare_variants`), `n` (users of all variants, or clusters), `looks` (a number, or "any"
        for a test that holds at every look), `confidence` (0.95), and a table `[guardrails]` of
        metrics and margins.

    Returns
    -------
    ExperimentPlan
        Pass it as `roles=` to `decide_experiment` and `rd.report`: each deviation is then named,
        and `digest`, the SHA-256 of the file, stands in the result.

    Raises
    ------
    OptionError
        The file is no TOML, lacks a hypothesis or primary metric, or has a key or value that a plan
        has not.

    Examples
    --------
    >>> import pathlib, tempfile, recdf as rd
    >>> text = "hypothesis = 'Longer lists'\\nprimary = 'ctr'\\nn = 400\\n"
    >>> text += "[guardrails]\\nspend = '-2%'"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "plan.toml")
    ...     _ = path.write_text(text)
    ...     plan = rd.experiments.read_plan(path)
    >>> plan.roles, plan.n
    ({'ctr': 'success', 'spend': ('guardrail', '-2%')}, 400)
    """
    content = Path(path).expanduser().read_bytes()
    try:
        keys = tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f"plan {path} is no TOML file: {error}") from None
    known = [field.name for field in fields(ExperimentPlan) if field.name != "digest"]
    for name in keys:
        if name not in known:
            raise OptionError(f"plan {path} has {name!r}, which no plan has{closest(name, known)}")
    for name in ("hypothesis", "primary"):
        if not keys.get(name):
            raise OptionError(f"plan {path} has no {name}; expected a text")
    for name in keys.keys() & {"primary", "unit", "segments"}:
        keys[name] = tuple(as_columns(keys[name]))
    return ExperimentPlan(**keys, digest=hashlib.sha256(content).hexdigest())


# ------------------------------------------------------------------------------------------
# What each metric says by its role, and the decision.

RoleWord = Literal["success", "guardrail", "diagnostic"]
Roles = Mapping[str, Any] | ExperimentPlan

_NUMBERS = "n_control n_treatment mean_control mean_treatment diff ci_low ci_high p_value p_adj"
_NEEDED = ["metric", "control", "treatment", *_NUMBERS.split(), *VERDICT_COLUMNS]
# What the test of a guardrail asks for, and a plan.
_MORE_NUMBERS = (
    "se_control se_treatment df mean_control_adjusted mean_treatment_adjusted rel_diff rel_ci_low "
    "rel_ci_high metric_low metric_high n_typical_control n_typical_treatment"
)
_DETAILS = [*_MORE_NUMBERS.split(), "reject", "confidence", "method", "better"]


def role_verdicts(table: DataFrame, roles: Roles) -> DataFrame:
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
        `verdict` and `note` (why not more, or what the table warns of).
        Verdict of a guardrail, first rule that holds: "not shown safe" where the table withholds
        its verdict · "harmed beyond the margin" (p_harmed ≤ alpha) · "worse, within the margin"
        (p_safe ≤ alpha, and the table shows a loss) · "safe" (p_safe ≤ alpha) · "not shown safe".
        It is also "not shown safe" where so few more units of an arm as may be missing by chance,
        ln(1/alpha) (3.0 at 95 %), would take its mean to the margin if they were at a bound of the
        metric, which the table has in `metric_low` and `metric_high`. If it has none there, the
        verdict says which values would do it. Quantiles are left as they are. Other metrics have
        the verdict of the table.

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
    ...         "revenue": draw.normal(10, 2, 2000),
    ...     }
    ... )
    >>> table = rd.compare_variants(
    ...     users, "revenue", control="A", expected={"A": 1, "B": 1}, details=True
    ... )
    >>> judged = rd.experiments.role_verdicts(table, {"revenue": ("guardrail", "-2%")})
    >>> judged[["metric", "margin", "change", "change_low", "effect"]].round(3)
        metric margin  change  change_low effect
    0  revenue    −2%   0.002      -0.012   safe
    """
    return DataFrame(_judged_rows(table, roles))[_ROLE_COLUMNS.split()]


_ROLE_COLUMNS = (
    "metric role control treatment margin change change_low change_high p_safe p_harmed p_adj "
    "effect withheld remarks verdict note"
)
# Of a row that is judged: what withholds its verdict in the table; and its verdict without the
# remark that nobody checked the sample ratio, which a decision says once.
_HELD, _CHECKED = "held", "checked"


def _judged_rows(table: DataFrame, roles: Roles) -> list[Row]:
    """Return the rows of `role_verdicts` with all columns of the table."""
    table, named = _read_roles(table, roles)
    if "confidence" not in table:
        if confidence_of(table) is None:
            need_details(table, ["confidence"])
        table = table.assign(confidence=confidence_of(table))
    # The success metrics are corrected at least for all of them together; others have no p.
    success = table["metric"].isin([name for name, of in named.items() if of[0] == "success"])
    p, p_adj = (
        np.where(success, table[name].to_numpy(np.float64), np.nan) for name in ("p_value", "p_adj")
    )
    p_success = np.fmax(p_adj, adjust(p, "holm"))
    rows = []
    for row, p_of_row in zip(table.to_dict("records"), p_success, strict=True):
        role, budget = named.get(row["metric"], ("diagnostic", None))
        found: dict[Any, Any] = row | {
            "role": role,
            "margin": "",
            "change": row["diff"],
            "change_low": row["ci_low"],
            "change_high": row["ci_high"],
            "p_safe": math.nan,
            "p_harmed": math.nan,
            "p_adj": p_of_row,
            "withheld": "" if budget else row["withheld"],
            "note": "",
        }
        if budget is not None:
            found |= judge_guardrail(row, budget)
            turned_by_unseen(found, row, budget)
        elif row["effect"] == "better" and p_of_row > 1 - row["confidence"]:
            note = f"better alone, not among all success metrics: p {p_value(p_of_row)}"
            others = (
                one
                for one in codes_of(row["remarks"])
                if one not in ("heavier_unseen", "unbounded")
            )
            found |= {"effect": "none", "note": note, "remarks": by_rank(others)}
        # What the table adds to a verdict stands beside all that is shown of the metric.
        beside = [] if found["effect"] == NOT_SAFE else codes_of(found["remarks"])
        codes = found["effect"], found["withheld"]
        if codes != (row["effect"], row["withheld"]):
            found["verdict"] = sentence("role", *codes, beside, row)
        checked = [one for one in beside if one != "ratio_not_checked"]
        found |= {_HELD: row["withheld"], _CHECKED: sentence("role", *codes, checked, row)}
        if not (found["note"] or row["withheld"]):  # else the gravest caution stands there
            warned = [one for one in warnings_of(found["remarks"]) if not CAUTIONS[one].adds]
            found["note"] = code_names(warned)
        if role == "success" and row["effect"] in ("higher", "lower"):
            told = found["note"], "nothing says which side is better, so that it cannot ship"
            found["note"] = ", ".join(filter(None, told))
        rows.append(found)
    return rows


def decide_experiment(
    table: DataFrame, *, roles: Roles, ran: Mapping[str, Any] | None = None
) -> DataFrame:
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
        `decision` (the effect in words), `reasons` (a sentence per metric, harms first, in one text
        for people), `harms` and `better` (metrics, separated by ", "). With a plan, also
        `deviations` (from the plan, separated by "; "), `unknown` (what of the plan neither the
        table nor `ran` tells) and `plan` (its digest).

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
    >>> users["revenue"] = [9, 9, 11, 11, 10, 10, 9, 9] * 50
    >>> table = rd.compare_variants(
    ...     users, ["ctr", "revenue"], control="A", expected={"A": 1, "B": 1}, details=True
    ... )
    >>> decided = rd.experiments.decide_experiment(
    ...     table, roles={"ctr": "success", "revenue": ("guardrail", "-2%")}
    ... )
    >>> decided[["treatment", "decision"]]
      treatment decision
    0         B     ship
    >>> import textwrap
    >>> print(textwrap.fill(decided["reasons"].iloc[0], 80))
    ctr: better, unless 4 in 200 users of the control have 85.1 or more (+1.50
    [+1.28, +1.72], p <0.001); revenue: safe, unless 3 in 200 users of the control
    have 23.2 or more (0.0% [−1.4%, +1.4%] one-sided, margin −2%)
    """
    return table_of_decisions(decisions(table, roles, ran))


def table_of_decisions(rows: list[Row]) -> DataFrame:
    """Return decisions as a table, in which the reasons of each are one text."""
    return DataFrame([row | {"reasons": "; ".join(row["reasons"])} for row in rows])


def decisions(table: DataFrame, roles: Roles, ran: Mapping[str, Any] | None) -> list[Row]:
    """Return the rows of `decide_experiment`, whose reasons are a list here: each is a sentence,
    and may hold the sign that joins them in the table."""
    judged = DataFrame(_judged_rows(table, roles))
    plan = roles if isinstance(roles, ExperimentPlan) else None
    if not plan and "success" not in set(judged["role"]):
        raise OptionError(
            "no metric has the role of success, and only one that is better ships; name one, as in "
            "⟦+roles={'ctr': 'success'}⟧"
        )
    if judged["control"].nunique() > 1:
        raise OptionError(
            "table compares all pairs of variants; a decision is about treatments beside one "
            "control: pass what rd.compare_variants returned with it as ⟦+control=⟧"
        )
    if judged.duplicated(["metric", "treatment"]).any():
        raise DataError(
            "table has several rows of a metric and treatment; pass what one compare_variants "
            "returned"
        )
    beside: Row = {}
    if plan:
        unknown = ", ".join(plan.unknown(ran))
        deviations = "; ".join(plan.deviations(with_known_codes(table, "table"), ran))
        beside = {"deviations": deviations, "unknown": unknown, "plan": plan.digest}
    return [
        _decision(own, bool(beside.get("deviations"))) | beside
        for _, own in judged.groupby("treatment", sort=False)
    ]


def _read_roles(
    table: DataFrame, roles: Any
) -> tuple[DataFrame, dict[str, tuple[str, Budget | None]]]:
    """Return the comparison of variants as it was written, and the role of every metric that is
    named with the margin of a guardrail."""
    if "baseline" in frame_of("table", table):
        raise ColumnError(
            "table compares models; roles are of an experiment, and rd.gate decides about a model"
        )
    if missing := [name for name in _NEEDED if name not in table]:
        raise ColumnError(
            f"table has no column {missing[0]!r}; expected what rd.compare_variants returns"
        )
    require_labels(table, "table", ["metric", "control", "treatment"])
    table = with_known_codes(table, "table")
    numbers = f"{_NUMBERS} {_MORE_NUMBERS} confidence".split()
    for name in table.columns.intersection(numbers):
        float_column(table, name, "table")  # raises where it holds no numbers
    if segments := columns_before(table, "metric"):
        raise OptionError(
            f"table compares within {segments}; a decision is of all users: pass what "
            "rd.compare_variants returned without ⟦by=⟧"
        )
    metrics = dict.fromkeys(table["metric"])
    if isinstance(roles, ExperimentPlan):  # what was not compared is a deviation
        need_details(table, [*_DETAILS, "n_dropped_control", "n_dropped_treatment"])
        roles = {name: role for name, role in roles.roles.items() if name in metrics}
    elif not isinstance(roles, Mapping) or not roles:
        raise OptionError(
            f"⟦roles={roles!r}⟧; expected a mapping of metrics to roles, as {{'ctr': 'success'}}"
        )
    guarded = [name for name, given in roles.items() if not isinstance(given, str)]
    subset("guardrails", guarded, metrics)
    subset("roles", list(roles), metrics)
    if guarded:
        need_details(table, _DETAILS)
        metrics = dict(zip(table["metric"], table["better"], strict=True))
    found: dict[str, tuple[str, Budget | None]] = {}
    for metric, given in roles.items():
        word, *margin = given if isinstance(given, list | tuple) and given else [given]
        check_value(f"roles[{metric!r}]", word, RoleWord)
        if len(margin) != (word == "guardrail"):
            expected = "'success', 'diagnostic' or ('guardrail', '-2%')"
            raise OptionError(f"⟦roles[{metric!r}]={given!r}⟧; expected {expected}")
        budget = None
        if margin:
            change = read_change(f"guardrails[{metric!r}]", margin[0])
            budget = Budget(metric, None, None, *change)
            check_budget(budget, metrics[metric] or None, None, "guardrails")
        found[metric] = word, budget
    return table, found


def _decision(judged: DataFrame, deviates: bool) -> Row:
    """Return the decision about one treatment from its rows."""
    success = judged["role"] == "success"
    guardrail = judged["role"] == "guardrail"
    worse = judged["effect"].isin(["worse", HARMED])
    better = success & (judged["effect"] == "better")
    safe = judged["effect"].isin([SAFE, WITHIN])
    invalid = codes_of(by_rank(code for code in judged[_HELD] if code in UNLIKE))
    decision = "keep_running"
    if invalid:
        decision = "invalid"
    elif (worse & (success | guardrail)).any():
        decision = "do_not_ship"
    elif better.any() and safe[guardrail].all():
        decision = "ship_not_as_planned" if deviates else "ship"
    within = judged["effect"] == WITHIN
    first_is = [worse & guardrail, worse, within, guardrail & ~safe, success, guardrail]
    order = np.select(first_is, range(6), 6)
    said = []
    for place, row in sorted(zip(order, judged.to_dict("records"), strict=True), key=itemgetter(0)):
        if place < 6 or row["effect"] == "better":  # else it is no reason for anything
            rest = f", margin {row['margin']}" if row["margin"] else ""
            rest += f", p {p_value(row['p_adj'])}" if pd.notna(row["p_adj"]) else ""
            rest += f", {row['note']}" if row["note"] else ""
            shown = "" if row["withheld"] else f" ({change_text(row)}{rest})"
            said.append(f"{row['metric']}: {row[_CHECKED]}{shown}")
    said = [CAUTIONS[code].words for code in invalid] or said
    remarks = [*invalid]
    if has(judged["remarks"], "ratio_not_checked").any():
        remarks.append("ratio_not_checked")
        said.append("the sample ratio was not checked")
    return {
        "control": judged["control"].iloc[0],
        "treatment": judged["treatment"].iloc[0],
        "effect": decision,
        "withheld": invalid[0] if invalid else "",
        "remarks": "; ".join(remarks),
        "decision": sentence("decision", decision),
        "reasons": said,
        "harms": ", ".join(judged.loc[worse, "metric"]),
        "better": ", ".join(judged.loc[better, "metric"]),
    }


def allowed_of(row: AnyRow) -> tuple[float, bool]:
    """Return the change that a row of `role_verdicts` allows, null without a margin, and whether it
    is relative."""
    return read_change("margin", row["margin"]) if row["margin"] else (math.nan, False)


def change_text(row: AnyRow) -> str:
    """Return the change of a row of `role_verdicts` with its bounds, in per cent if it is
    relative; bounds that hold one by one are named."""
    ends = row["change_low"], row["change_high"]
    sided = " one-sided" if pd.notna(row["p_safe"]) or is_one_sided(*ends) else ""
    sign = "+%" if row["margin"].endswith("%") else "+"
    return estimated(row["change"], *ends, sign) + sided


def plan_sentence(row: AnyRow) -> str:
    """Return whether a decision follows its plan, in words; nothing without a plan."""
    if not row.get("plan"):
        return ""
    done = f"not as planned: {row['deviations']}" if row["deviations"] else "as planned"
    if row["unknown"]:
        done = done if row["deviations"] else "no deviation is known"
        done += f"; not known: {row['unknown']}"
    return f"Plan {row['plan'][:12]}: {done}"
