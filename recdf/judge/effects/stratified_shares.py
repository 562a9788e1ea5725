"""Shares of users in strata, compared by the variance that their cells have without an effect.

A cell without a single success has the variance 0 by itself, as if its share were known: a ramp-up
with 20 users of the treatment in the first week said "better" or "worse" in up to 35 % of
experiments without an effect. With the share p_h of both arms in stratum h (Cochran, Mantel and
Haenszel) it is 4 to 6 %, and real effects are found more often.

The interval inverts this test. An effect δ = Σ W_h δ_h moves the shares by δ_h ∝ p_h(1 − p_h), the
same odds ratio in every stratum, and keeps the successes of both arms: p_ah(δ) = p_h + b_ah·δ. So
the variance is v(δ) = v_0 + v_1·δ − v_2·δ², and (d − δ)² ≤ q²·v(δ) has two ends, as Wilson's
interval of one share has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...stats.arms import Arm, Effect, both, open_sided
from ...stats.numbers import Alternative, Floats, Number
from ...stats.student import t_p_value, t_quantile
from ..aggregates import Aggregates


class ScoreTest(NamedTuple):
    """The variance v_0 + v_1·δ − v_2·δ² of a difference of shares whose truth is δ."""

    constant: float
    linear: float
    square: float

    def test(
        self,
        found: Effect,
        alternative: Alternative,
        confidence: float,
        multiplier: Number | None = None,
    ) -> Effect:
        """Return the effect with the p-value and the interval of this variance."""
        diff = found.diff
        se = np.sqrt(self.constant)
        quantile = multiplier
        if quantile is None:
            quantile = np.abs(t_quantile(found.df, alternative, confidence))
        q2 = np.square(quantile)
        middle = diff + q2 * self.linear / 2
        wide = 1 + q2 * self.square
        root = np.sqrt(np.maximum(middle**2 - wide * (diff**2 - q2 * self.constant), 0.0))
        low, high = open_sided((middle - root) / wide, (middle + root) / wide, alternative)
        p = found.p_value if multiplier is not None else t_p_value(diff / se, found.df, alternative)
        return found._replace(se=se, statistic=diff / se, p_value=p, ci_low=low, ci_high=high)


def score_test(
    record: Aggregates, weights: Floats, arms: tuple[Arm, Arm]
) -> tuple[tuple[Arm, Arm], ScoreTest] | None:
    """Return both arms and the test of a mean in strata, None if its values are not all 0 or 1.

    `record` has the metric as its only column, in cells of both arms by stratum. An arm's own
    variance is the larger one in every cell, since a budget may be far from no difference.
    """
    n, mean = (one.reshape(2, -1) for one in (record.n, record.mean[:, 0]))
    if not record.only_0_and_1(0):
        return None
    total = n.sum(axis=0)
    share = (n * mean).sum(axis=0) / total
    pooled = share * (1 - share)
    if not weights @ pooled > 0:
        return None
    moves = pooled / (weights @ pooled) * np.array([-n[1], n[0]]) / total
    factor = weights**2 / n * total / np.maximum(total - 1, 1)
    test = ScoreTest(
        float((factor * pooled).sum()),
        float((factor * moves * (1 - 2 * share)).sum()),
        float((factor * moves**2).sum()),
    )
    parts = factor * np.maximum(pooled, mean * (1 - mean))
    df = parts.sum(axis=1) ** 2 / (parts**2 / np.maximum(total - 1, 1)).sum(axis=1)

    def of(arm: Arm, part: Floats, free: float) -> Arm:
        return arm._replace(var=np.float64(part.sum()), df=np.float64(free))

    return both(of, arms, (parts[0], parts[1]), (df[0], df[1])), test
