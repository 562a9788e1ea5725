"""Whether an effect fades or grows: the slope of the effects of all periods, with users as the
units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ...inputs.sorting import distinct
from ...judge.cautions import HEALTH_ALPHA
from ...judge.cautions.table import UNLIKE
from ...judge.effects.means import arms_of_sums, influence
from ...judge.verdict import VERDICT_COLUMNS, add_verdicts, has, remark
from ...stats.arms import Arm, Sample, both
from ...stats.effect_sizes import Effect, effect
from ...stats.moments import MEAN_ROUNDING
from ..decide.adjust_pvalues import read_together
from ..experiment_columns import Floats
from ..experiment_rows import ArmRows, ExperimentRows
from ..samples import MetricRows
from ..settings import Settings
from ..units import in_strata, make_units
from .two_sample import TINY

TREND_COLUMNS = [
    "trend",
    "trend_se",
    "trend_ci_low",
    "trend_ci_high",
    "trend_p",
    "trend_p_adj",
    "trend_early",
    "trend_late",
    *(f"trend_{name}" for name in VERDICT_COLUMNS),
]

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

    def add(self, period: int, metric: MetricRows, both_arms: ArmRows) -> None:
        kept = self.users.comparable(both_arms.defined(metric.defined))
        if min(kept.n) < 2:
            return
        units = make_units(metric, kept, replace(self.users, clusters=None)).units
        if not units.counts:
            return
        means, added = influence(units)
        size = units.record.n[units.cells]
        weight = 1 / float((units.weights**2 / np.maximum(size, 1)).sum())
        factors = weight * np.array([self.days[period], 1.0, *self.thirds[:, period]])
        for part, factor in zip(self.parts, factors, strict=True):
            if factor:
                part[kept.rows] += factor * added
        self.effects += factors * (means[1] - means[0])
        self.weights[period] = weight
        self.largest = max(self.largest, *np.abs(means).tolist())

    def row(self, both_arms: ArmRows, confidence: float) -> dict[str, Any]:
        """The slope with its test, the mean effects of the first and last third, and whether these
        turn the sign."""
        kept = self.users.comparable(both_arms)
        of = self.users.clusters
        n = (
            kept.n
            if of is None
            else both(lambda own: len(distinct(own)), kept.split(kept.take(of)))
        )
        row: dict[str, Any] = dict.fromkeys(SLOPE, np.nan) | {"n": min(n), "turns": False}
        if np.count_nonzero(self.weights) < 2 or min(n) < 2:
            return row | {"early": np.nan, "late": np.nan}
        days, weights = self.days, self.weights
        total, thirds = weights.sum(), self.thirds @ weights
        centre = float(days @ weights) / total

        def test(factors: Floats) -> Effect:
            """Test a linear combination of what is kept."""
            sizes = np.array([np.abs(days) @ weights, total, *thirds])
            least = MEAN_ROUNDING * self.largest * float(np.abs(factors) @ sizes)
            sample = Sample(factors @ self.parts[:, kept.rows])
            clusters = None if of is None else kept.take(of)
            units = in_strata(sample, kept, self.users, clusters, "the trend", None)
            control, treatment = (
                Arm(np.float64(0.0), np.float64(one.var * (np.sqrt(one.var) > least)), one.df)
                for one in arms_of_sums(units)
            )
            change = factors @ self.effects
            treatment = treatment._replace(mean=change if abs(change) > least else 0.0)
            return effect(control, treatment, confidence=confidence)

        slope = test(np.array([1.0, -centre, 0.0, 0.0]) / float(weights @ np.square(days - centre)))
        row |= {name: float(getattr(slope, name)) for name in SLOPE} | {
            "early": np.nan,
            "late": np.nan,
        }
        if thirds.all():
            ends = (
                test(np.array([0.0, 0.0, 1.0 / thirds[0], 0.0])),
                test(np.array([0.0, 0.0, 0.0, 1.0 / thirds[1]])),
            )
            shown = all(one.p_value <= HEALTH_ALPHA for one in ends)
            row |= {"early": float(ends[0].diff), "late": float(ends[1].diff)}
            row["turns"] = bool(shown and row["early"] * row["late"] < 0)
        return row


def trend_table(
    rows: Sequence[dict[str, Any]],
    metrics: Sequence[str],
    n_treatments: int,
    judged: pd.DataFrame,
    settings: Settings,
) -> pd.DataFrame:
    """The trend of every metric and treatment, read together; `judged` are the rows of all
    periods, in their order."""
    table = pd.DataFrame(rows)
    table.insert(0, "metric", np.repeat(list(metrics), n_treatments))
    read_together(table, settings)
    # What withholds the verdict of a period, or qualifies it, does so to the trend.
    shared = judged["withheld"].where(judged["withheld"].isin([*UNLIKE, "unequal_missing"]), "")
    shared += np.where(has(judged["remarks"], "ratio_not_checked"), "; ratio_not_checked", "")
    table["remarks"] = ["; ".join(shared[i :: len(table)]) for i in range(len(table))]
    remark(table, table["n"] < TINY, "tiny")
    remark(table, table["se"].isna() & (table["diff"].abs() > 0), "zero_variance")
    fades = np.where(table["late"].abs() > table["early"].abs(), "grows", "fades")
    shown = np.where(table["turns"].astype(bool), "turns", fades)
    add_verdicts(table, "trend", np.where(table["reject"], shown, "none"))
    names = {
        "diff": "trend",
        "se": "trend_se",
        "ci_low": "trend_ci_low",
        "ci_high": "trend_ci_high",
        "p_value": "trend_p",
        "p_adj": "trend_p_adj",
        "early": "trend_early",
        "late": "trend_late",
        **{name: f"trend_{name}" for name in VERDICT_COLUMNS},
    }
    return table.rename(columns=names)[TREND_COLUMNS]
