"""Estimates of two arms from their units: raw, and adjusted by covariates or strata."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import OptionError
from ..stats.arms import Arm, Sample, arm, both, cuped_arm, cuped_theta, jackknife_arm, linearise, pool, stratified_arm
from ..stats.regression import regression_arm, residuals_of_both, varying_columns
from .experiment_columns import Codes, Floats
from .units import Units

# Cells of the strata's dummies beside covariates: 800 MB.
MOST_DUMMIES = 10**8

# With fewer clusters than this (counted as equal ones), an arm's variance is the jackknife's.
JACKKNIFE_BELOW = 40


@dataclass(frozen=True)
class ArmsEstimate:
    """Both arms as they are (`raw`) and as they are compared (`arms`).

    `values` are one number per unit of each arm whose mean difference is the effect, which permutation shuffles;
    `theta` and `x` are the slope and the mean of a single covariate; `how` names the adjustment.
    """

    raw: tuple[Arm, Arm]
    arms: tuple[Arm, Arm]
    values: tuple[Floats, Floats]
    theta: float = np.nan
    x: float = np.nan
    how: str = ""

    @property
    def reduction(self) -> float:
        """1 − v/v without covariate and strata; null without them."""
        before = float(self.raw[0].var + self.raw[1].var)
        return 1 - float(self.arms[0].var + self.arms[1].var) / before if self.how and before > 0 else np.nan


def estimate_arms(units: Units) -> ArmsEstimate:
    """Estimate both arms; the caller has checked that they have two units each and denominators that are not 0."""
    raw = both(lambda side: _arm(Sample(*side[:2]), units), units.sides)
    if units.designs is not None:
        return _regression(units, units.designs, raw)
    if units.sides[0].x_num is not None:
        return _cuped(units, raw)
    values = around_pooled(*units.sides)
    if units.strata is None:
        return ArmsEstimate(raw, raw, values)
    codes, weights = units.strata
    return ArmsEstimate(
        raw, both(lambda y, code: stratified_arm(y, code, weights), values, codes), values, how="strata"
    )


def residuals(units: Units, found: ArmsEstimate) -> tuple[Floats, Floats]:
    """Each unit's distance from the estimate of its own arm, with the adjustment and the strata taken out."""
    if found.how == "cuped" or (not found.how and units.sides[0].den is not None):
        parts = both(lambda side: linearise(*side[:2])[1], units.sides)
        if not found.how:
            return parts
        return both(lambda z, side: z - found.theta * linearise(*side.past[:2])[1], parts, units.sides)
    return found.values if units.strata is None else both(_within, found.values, units.strata[0])


def _within(values: Floats, stratum: Codes) -> Floats:
    """Values around the means of their strata."""
    counts = np.maximum(np.bincount(stratum), 1)
    return np.asarray(values - (np.bincount(stratum, weights=values) / counts)[stratum])


def _arm(sample: Sample, units: Units, theta: float = 0.0, x: float = 0.0) -> Arm:
    if units.clustered and sample.n_effective < JACKKNIFE_BELOW:
        return jackknife_arm(sample, theta, x)
    return arm(sample.num, sample.den) if sample.x_num is None else cuped_arm(sample, theta, x)


def _cuped(units: Units, raw: tuple[Arm, Arm]) -> ArmsEstimate:
    theta, x = map(float, cuped_theta(pool(*units.sides)))
    past = around_pooled(*both(lambda side: side.past, units.sides))
    values = both(lambda y, x: y - theta * x, around_pooled(*units.sides), past)
    return ArmsEstimate(raw, both(lambda side: _arm(side, units, theta, x), units.sides), values, theta, x, "cuped")


def _regression(units: Units, designs: tuple[Floats, Floats], raw: tuple[Arm, Arm]) -> ArmsEstimate:
    """Lin's regression on all covariates, with the strata as dummies."""
    if units.strata is not None:
        n_strata = len(units.strata[1])
        if n_strata * sum(units.n) > MOST_DUMMIES:
            raise OptionError(
                f"strata has {n_strata:,} levels; beside covariates each is a column of {sum(units.n):,} rows, which "
                "does not fit in memory: merge strata, or leave out one of ⟦+strata=⟧ and ⟦+covariates=⟧"
            )
        designs = both(lambda x, codes: np.hstack([np.eye(n_strata)[codes][:, 1:], x]), designs, units.strata[0])
    columns = varying_columns(*designs)
    designs = both(lambda x: x[:, columns], designs)
    together = np.concatenate(designs)
    centre = together.mean(axis=0)
    arms = both(lambda side, x: regression_arm(side.num, x, centre), units.sides, designs)
    values = residuals_of_both(np.concatenate([side.num for side in units.sides]), together)
    how = "regression" if units.strata is None else "regression+strata"
    return ArmsEstimate(raw, arms, (values[: units.n[0]], values[units.n[0] :]), how=how)


def around_pooled(control: Sample, treatment: Sample) -> tuple[Floats, Floats]:
    """The values themselves; of a ratio, (N − R·D)/mean(D) around the ratio R of both arms together."""
    if control.den is None:
        return control.num, treatment.num
    pooled = pool(control, treatment)
    z = linearise(pooled.num, pooled.den)[1]
    return z[: len(control.num)], z[len(control.num) :]
