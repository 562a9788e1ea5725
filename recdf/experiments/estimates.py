"""Estimates of two arms from their units: raw, and adjusted by covariates or strata."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import OptionError
from ..stats.arms import (
    NO_THETA,
    Arm,
    adjusted,
    around_pooled,
    both,
    contributions,
    estimate_arm,
    pool,
    slopes,
)
from ..stats.regression import Designs, regression_arm
from .experiment_columns import Floats
from .units import Units

# Cells of the strata's dummies beside covariates: 800 MB.
MOST_DUMMIES = 10**8

# With fewer clusters than this (counted as equal ones), an arm's variance is the jackknife's.
JACKKNIFE_BELOW = 40


class ArmsEstimate(NamedTuple):
    """Both arms as they are (`raw`) and as they are compared (`arms`).

    `values` are one number per unit of each arm whose mean difference is the effect, which
    permutation shuffles; `theta` and `centre` are the slopes and the means of the covariates; `how`
    names the adjustment.
    """

    raw: tuple[Arm, Arm]
    arms: tuple[Arm, Arm]
    values: tuple[Floats, Floats]
    theta: Floats = NO_THETA
    centre: Floats = NO_THETA
    how: str = ""

    @property
    def slope(self) -> float:
        """That of a single covariate."""
        return float(self.theta[0]) if len(self.theta) == 1 else np.nan

    @property
    def reduction(self) -> float:
        """1 − v/v without covariate and strata; null without them."""
        before = float(self.raw[0].var + self.raw[1].var)
        return (
            1 - float(self.arms[0].var + self.arms[1].var) / before
            if self.how and before > 0
            else np.nan
        )


def estimate_arms(units: Units) -> ArmsEstimate:
    """Estimate both arms; the caller has checked that they have two units each and denominators
    that are not 0."""
    few = both(lambda side: units.clustered and side.n_effective < JACKKNIFE_BELOW, units.whole)
    raw = both(lambda side, few: estimate_arm(side, leave_out=few), units.whole, few)
    if units.designs is not None:
        return _regression(units, units.designs, raw)
    sides, theta, centre = units.sides, NO_THETA, NO_THETA
    how = "+".join(
        ["cuped"] * bool(sides[0].covariates) + ["strata"] * (sides[0].strata is not None)
    )
    if sides[0].covariates:
        theta, centre = slopes(pool(*sides))
    arms = (
        both(lambda side, few: estimate_arm(side, theta, centre, few), sides, few) if how else raw
    )
    return ArmsEstimate(raw, arms, around_pooled(*sides, theta), theta, centre, how)


def residuals(units: Units, found: ArmsEstimate) -> tuple[Floats, Floats]:
    """Each unit's distance from the estimate of its own arm, with the adjustment and the strata
    taken out."""
    sides = units.sides
    if units.designs is not None:
        sides = both(lambda side, values: side._replace(num=values), sides, found.values)
    elif not found.how and sides[0].den is None:
        return found.values
    z = both(lambda side: adjusted(side, found.theta, found.centre)[1], sides)
    return both(contributions, sides, z) if units.clustered else z


def _regression(units: Units, designs: Designs, raw: tuple[Arm, Arm]) -> ArmsEstimate:
    """Lin's regression on all covariates, with the strata as dummies."""
    strata = units.sides[0].strata
    if strata is not None:
        n_strata = len(strata.weights)
        if n_strata * sum(units.n) > MOST_DUMMIES:
            raise OptionError(
                f"strata has {n_strata:,} levels; beside covariates each is a column of "
                f"{sum(units.n):,} rows, which does not fit in memory: merge strata, or leave out "
                "one of ⟦+strata=⟧ and ⟦+covariates=⟧"
            )
        dummies = both(lambda side: np.eye(n_strata)[side.strata.of][:, 1:], units.sides)
        designs = Designs(both(lambda *columns: np.hstack(columns), dummies, designs.arms))
    arms = both(lambda side, of: regression_arm(side.num, of), units.sides, designs.ready[:2])
    values, q = np.concatenate([side.num for side in units.sides]), designs.ready[2].q
    values = values.mean() + values - q @ (q.T @ values)
    how = "regression" if strata is None else "regression+strata"
    return ArmsEstimate(raw, arms, (values[: units.n[0]], values[units.n[0] :]), how=how)
