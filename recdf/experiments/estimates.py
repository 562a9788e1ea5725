"""Estimates of two arms from their units: raw, and adjusted by covariates or strata."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import OptionError
from .columns import Codes, Floats
from .stats.arms import (
    Arm,
    Sample,
    arm,
    cuped_arm,
    cuped_theta,
    effective_number,
    jackknife_arm,
    linearise,
    pool,
    stratified_arm,
)
from .stats.regression import regression_arm, residuals_of_both, varying_columns
from .units import Strata, Units

__all__: list[str] = []

# Cells of the strata's dummies beside covariates: 800 MB.
MOST_DUMMIES = 10**8

# With fewer clusters than this (counted as equal ones), an arm's variance is the jackknife's.
JACKKNIFE_BELOW = 40


@dataclass(frozen=True)
class Estimate:
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


def estimate(units: Units) -> Estimate:
    """Estimate both arms; the caller has checked that they have two units each and denominators that are not 0."""
    raw = _arm(units.control, units), _arm(units.treatment, units)
    if units.designs is not None:
        return _regression(units, raw)
    if units.control.x_num is not None:
        return _cuped(units, raw)
    values = around_pooled(units.control, units.treatment)
    if units.strata is not None:
        return Estimate(raw, _stratified(values, units.strata), values, how="strata")
    return Estimate(raw, raw, values)


def residuals(units: Units, found: Estimate) -> tuple[Floats, Floats]:
    """Each unit's distance from the estimate of its own arm, with the adjustment and the strata taken out."""
    sides = units.control, units.treatment
    if found.how == "cuped" or (not found.how and sides[0].den is not None):
        parts = [linearise(side.num, side.den)[1] for side in sides]
        if found.how:
            past = [linearise(side.x_num, side.x_den)[1] for side in sides if side.x_num is not None]
            parts = [z - found.theta * x for z, x in zip(parts, past, strict=True)]
    elif units.strata is not None:
        codes = units.strata.control, units.strata.treatment
        parts = [_within(values, stratum) for values, stratum in zip(found.values, codes, strict=True)]
    else:
        parts = list(found.values)
    return parts[0], parts[1]


def _within(values: Floats, stratum: Codes) -> Floats:
    """Values around the means of their strata."""
    counts = np.maximum(np.bincount(stratum), 1)
    return np.asarray(values - (np.bincount(stratum, weights=values) / counts)[stratum])


def few_clusters(sample: Sample) -> float:
    """How many units of equal size would carry as much as these clusters, or as the users of a ratio."""
    return effective_number(np.ones(len(sample.num)) if sample.den is None else sample.den)


def _arm(sample: Sample, units: Units) -> Arm:
    if units.clustered and few_clusters(sample) < JACKKNIFE_BELOW:
        return jackknife_arm(sample._replace(x_num=None, x_den=None))
    return arm(sample.num, sample.den)


def _cuped(units: Units, raw: tuple[Arm, Arm]) -> Estimate:
    found = cuped_theta(pool(units.control, units.treatment))
    theta, x = float(found[0]), float(found[1])
    arms = []
    for sample in (units.control, units.treatment):
        if units.clustered and few_clusters(sample) < JACKKNIFE_BELOW:
            arms.append(jackknife_arm(sample, theta, x))
        else:
            arms.append(cuped_arm(sample, theta, x))
    metric = around_pooled(units.control, units.treatment)
    past = around_pooled(*(Sample(s.x_num, s.x_den) for s in (units.control, units.treatment) if s.x_num is not None))
    values = metric[0] - theta * past[0], metric[1] - theta * past[1]
    return Estimate(raw, (arms[0], arms[1]), values, theta, x, "cuped")


def _stratified(values: tuple[Floats, Floats], strata: Strata) -> tuple[Arm, Arm]:
    return (
        stratified_arm(values[0], strata.control, strata.weights),
        stratified_arm(values[1], strata.treatment, strata.weights),
    )


def _regression(units: Units, raw: tuple[Arm, Arm]) -> Estimate:
    """Lin's regression on all covariates, with the strata as dummies."""
    control, treatment = units.designs if units.designs is not None else (np.empty((0, 0)),) * 2
    if units.strata is not None:
        n_strata = len(units.strata.weights)
        if n_strata * sum(units.n) > MOST_DUMMIES:
            raise OptionError(
                f"strata has {n_strata:,} levels; beside covariates each is a column of {sum(units.n):,} rows, which "
                "does not fit in memory: merge strata, or leave out one of strata= and covariates="
            )
        dummies = [np.eye(n_strata)[codes][:, 1:] for codes in (units.strata.control, units.strata.treatment)]
        control, treatment = np.hstack([dummies[0], control]), np.hstack([dummies[1], treatment])
    columns = varying_columns(control, treatment)
    control, treatment = control[:, columns], treatment[:, columns]
    both = np.concatenate([control, treatment])
    centre = both.mean(axis=0)
    num = units.control.num, units.treatment.num
    arms = regression_arm(num[0], control, centre), regression_arm(num[1], treatment, centre)
    values = residuals_of_both(np.concatenate(num), both)
    how = "regression" if units.strata is None else "regression+strata"
    return Estimate(raw, arms, (values[: len(num[0])], values[len(num[0]) :]), how=how)


def around_pooled(control: Sample, treatment: Sample) -> tuple[Floats, Floats]:
    """The values themselves; of a ratio, (N − R·D)/mean(D) around the ratio R of both arms together."""
    if control.den is None:
        return control.num, treatment.num
    both = pool(control, treatment)
    z = linearise(both.num, both.den)[1]
    return z[: len(control.num)], z[len(control.num) :]
