"""The trend of the effects of periods, and its table: does an effect fade, grow or turn?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...judge.cautions import HEALTH_ALPHA
from ...judge.cautions.table import UNLIKE
from ...judge.choices import AnyRow, Row
from ...judge.effects.means import arms_of_sums, influence
from ...judge.effects.units import Units
from ...judge.per_user_columns import Floats, distinct
from ...judge.users import ArmRows, ExperimentRows
from ...judge.verdict import VERDICT_COLUMNS, add_verdicts, by_rank, has, largest_of_uneven, remark
from ...stats.arms import (
    HUGE,
    MEAN_ROUNDING,
    Arm,
    Effect,
    Sample,
    both,
    effect,
    may_be_skewed,
    skewness_of_arms,
)
from ...stats.turned import missing_by_chance
from ...tables.cells import amount, form_of, number
from ..decide.adjust_pvalues import read_together
from ..metric_bounds import UNKNOWN_KIND
from ..samples import MetricRows, Settings, in_strata, make_units
from .arms_of_users import heavy_units, moved_by_bounds
from .two_sample import SKEWED_SAMPLES

# Columns of the trend by those of any comparison.
TREND_COLUMNS = {
    name: f"trend_{name}"
    for name in [
        "diff",
        "se",
        "ci_low",
        "ci_high",
        "p_value",
        "p_adj",
        "early",
        "late",
        *VERDICT_COLUMNS,
    ]
} | {"diff": "trend", "p_value": "trend_p"}
# What a single period says of all, as a reason to withhold and as a remark.
OF_ALL = (*UNLIKE, "unequal_missing", "users_in_both", "surplus", "strata_moved")
ALIKE_IN_ALL = (
    "exposure_differs",
    "strata_differ_in_worth",
    "strata_differ",
    "shared_clusters",
    "ratio_not_checked",
)
SLOPE = ["diff", "se", "ci_low", "ci_high", "df", "p_value"]


class Trend:
    """The slope Σ c_d·τ_d of one metric and treatment, added period by period, and the mean effects
    early and late.

    τ_d is the effect of the period that lies at d days, and c_d = w_d(d − d̄)/Σ w_d(d − d̄)² with
    w_d = n_c·n_t/(n_c + n_t), or 1/Σ_h W_h²(1/n_ch + 1/n_th) in strata. A user's part in the slope
    is Σ c_d·z_d, with z_d its part in the estimate of its arm (0 where it is absent), so that what
    a user does on different days may be alike. Sums are kept for w_d·d and for w_d, because d̄ is
    not known before the last period, and for w_d of the first and of the last third of the periods,
    which lie at `days`.
    """

    def __init__(self, n_users: int, days: Floats, users: ExperimentRows) -> None:
        self.users = users
        third = max(1, round(len(days) / 3))
        self.days = days - days.mean()  # small numbers, so that the sums keep their digits
        self.thirds = np.array([self.days <= self.days[third - 1], self.days >= self.days[-third]])
        self.weights = np.zeros(len(days))
        self.parts = np.zeros((4, n_users))
        self.effects = np.zeros(4)
        self.largest = 0.0
        self.kind = UNKNOWN_KIND
        self.heaviest: float = np.nan  # the largest weight in a period, NaN where all are alike
        self.moved = np.zeros(len(days))  # by one more user at a bound, NaN where none is known
        self.levers = np.zeros((len(days), 2))  # how far one more user who is 1 above moves an arm
        self.shares = True  # all values are 0 or 1

    def add(self, period: int, metric: MetricRows, both_arms: ArmRows, settings: Settings) -> None:
        kept = self.users.comparable(both_arms.defined(metric.defined))
        if min(kept.n) < 2:
            return
        ready = make_units(metric, kept, replace(self.users, clusters=None))
        units = ready.units
        least, most = units.span
        if not units.has_denominators or max(most.max(), -least.min()) >= HUGE:
            return
        self.kind = metric.kind
        self.shares &= metric.kind.share
        means, added = influence(units)
        size = units.record.n[units.cells]
        weight = 1 / (units.weights**2 / np.maximum(size, 1)).sum()
        factors = weight * np.array([self.days[period], 1.0, *self.thirds[:, period]])
        for part, factor in zip(self.parts, factors, strict=True):
            if factor:
                part[kept.rows] += factor * added
        self.effects += factors * (means[1] - means[0])
        self.weights[period] = weight
        self.moved[period] = moved_by_bounds(units, metric, settings)[2].max()
        self.levers[period] = units.moved_by_one.max(axis=1)
        den = units.metric.den
        sizes: Any = np.ones(len(units.arm)) if den is None else units.columns[den]
        of = self.users.clusters
        if of is not None:
            sizes = np.bincount(2 * kept.take(of) + units.arm, sizes)
        self.heaviest = np.fmax(self.heaviest, largest_of_uneven(sizes))
        self.largest = max(self.largest, *np.abs(means))

    def row(self, both_arms: ArmRows, confidence: float) -> Row:
        """The slope with its test, the mean effects of the first and last third, whether these
        turn the sign, and which users would turn it."""
        kept = self.users.comparable(both_arms)
        of = self.users.clusters
        n = kept.n
        seen = pd.notna(self.heaviest)
        if of is not None:
            n = both(lambda own: len(distinct(own)), kept.split(kept.take(of)))
        row: Row = dict.fromkeys([*SLOPE, "early", "late", "turned_by", "lever"], np.nan)
        row |= {
            "n_counted": min(n),
            "turns": False,
            "skewed_by": 0.0,
            "turned_to": "lose or gain",
            "arm": 0,
            "n_asked": 0,
            "holds_for": heavy_units(self.kind, self.heaviest, of is not None) if seen else "",
        }
        if np.count_nonzero(self.weights) < 2 or min(n) < 2:
            return row
        days = self.days
        weights = self.weights
        total = weights.sum()
        thirds = self.thirds @ weights
        centre = days @ weights / total

        def test(*factors: float) -> tuple[Effect, Units]:
            """Test a linear combination of what is kept, by what each unit adds to it."""
            sizes = np.array([np.abs(days) @ weights, total, *thirds])
            least = MEAN_ROUNDING * self.largest * (np.abs(factors) @ sizes)
            sample = Sample(np.array(factors) @ self.parts[:, kept.rows])
            units = in_strata(sample, kept, self.users, "the trend")
            thin = self.shares and of is None and units.stratum is not None
            control, treatment = (
                Arm(np.float64(0.0), one.var * (np.sqrt(one.var) > least), one.df)
                for one in (_arms_of_both(units) if thin else arms_of_sums(units))
            )
            diff = np.array(factors) @ self.effects
            diff *= abs(diff) > least
            return effect(control, treatment, confidence=confidence, diff=diff), units

        squares = weights @ np.square(days - centre)
        slope, units = test(1.0 / squares, -centre / squares, 0.0, 0.0)
        if may_be_skewed(*n, SKEWED_SAMPLES) and slope.se > 0:
            values = units.columns[0] * units.record.n[units.cell]  # in the scale of the slope
            arms = both(lambda arm: values[units.arm == arm], (0, 1))
            row["skewed_by"] = abs(skewness_of_arms(*arms)) / SKEWED_SAMPLES
        moved = np.abs(weights * (days - centre)) @ self.moved / squares
        row |= {name: float(getattr(slope, name)) for name in SLOPE}
        if moved > 0 and not self.shares:
            row["turned_by"] = abs(row["diff"]) / moved
        if np.isnan(moved):
            row["arm"] = arm = int(row["diff"] < 0)
            row["n_asked"] = kept.n[arm]
            row["lever"] = weights * (days - centre) ** 2 @ self.levers[:, arm] / squares
        if thirds.all():
            early, late = test(0, 0, 1 / thirds[0], 0)[0], test(0, 0, 0, 1 / thirds[1])[0]
            row |= {"early": float(early.diff), "late": float(late.diff)}
            shown = max(early.p_value, late.p_value) <= HEALTH_ALPHA
            row["turns"] = shown and row["early"] * row["late"] < 0
        return row


def _unless(row: AnyRow) -> str:
    """Which users would turn a slope: so few more that rise by so much a day. Those of the other
    arm that fall would do so too, which counts and amounts seldom can."""
    if math.isnan(row["lever"]):
        return ""
    rise = abs(row["diff"]) * (1 + 1 / (row["unseen"] * row["lever"]))
    least, value = (
        number(one, form_of(one, significant=digits))
        for one, digits in ((row["unseen"], 1), (rise, 3))
    )
    those = f"{amount(row['n_asked'], 'user')} of the {('control', 'treatment')[row['arm']]}"
    return f"{least} in {those} rise by {value} a day more than the others"


def _arms_of_both(units: Units) -> tuple[Arm, Arm]:
    """The sums of both arms, of zeros and ones, with a variance in each cell of at least that of
    both arms in its stratum, so that a thin cell without a 1 has some.

    The variance of both arms alone, as `judge.effects.stratified_shares` has it, rejects in 8 % of
    trends without an effect where 16 users of a stratum are treated, since their sums over days are
    skewed.
    """
    n = units.record.n[units.cells]
    each_unit = units.columns[0] * n.ravel()[units.cell]
    squares = np.bincount(units.cell, each_unit**2, n.size).reshape(n.shape)
    free = np.maximum(n.sum(axis=0) - 2, 1)
    parts = np.maximum(squares / np.maximum(n - 1, 1), squares.sum(axis=0) / free) / n
    df = parts.sum(axis=1) ** 2 / np.maximum((parts**2 / free).sum(axis=1), np.finfo(float).tiny)
    return both(lambda arm: Arm(0.0, parts[arm].sum(), df[arm]), (0, 1))


def trend_table(
    rows: Sequence[Row],
    metrics: list[str],
    n_treatments: int,
    judged: DataFrame,
    settings: Settings,
) -> DataFrame:
    """The trend of every metric and treatment, read together; `judged` are the rows of all
    periods, in their order."""
    table = DataFrame(rows)
    table.insert(0, "metric", np.repeat(metrics, n_treatments))
    read_together(table, settings)
    # What withholds the verdict of a period since the variants are not alike does so to the trend,
    # and so does what withholds most of them.
    table["remarks"] = ""
    for i in range(len(table)):
        own = judged[i :: len(table)]
        n = own["withheld"].value_counts()
        found = [code for code in n.index if code and (code in OF_ALL or 2 * n[code] > len(own))]
        found = [code for code in found if code != "unseen_units"]  # which is asked of the trend
        found += [code for code in ALIKE_IN_ALL if has(own["remarks"], code).any()]
        table.loc[i, "remarks"] = by_rank(found)
    # That of one period stands for all.
    table["detail"] = judged["detail"].to_numpy().reshape(-1, len(table)).max(axis=0)
    table["turned_by"] = table["turned_by"].where(table["reject"].astype(bool))
    table["unseen"] = missing_by_chance(settings.alpha, table["p_value"], table["p_adj"])
    table["unless"] = [*map(_unless, table.to_dict("records"))]
    remark(table, table["se"].isna() & (table["diff"].abs() > 0), "zero_variance")
    remark(table, table["reject"].astype(bool) & (table["unless"] != ""), "unbounded")
    fades = np.where(table["late"].abs() > table["early"].abs(), "grows", "fades")
    shown = np.where(table["turns"].astype(bool), "turns", fades)
    add_verdicts(table, "trend", np.where(table["reject"], shown, "none"))
    return table[[*TREND_COLUMNS]].rename(columns=TREND_COLUMNS)
