"""Adjustment of a mean by several covariates: one regression per arm (Lin 2013), robust to unequal variances (HC2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .arms import Arm, both
from .numbers import Floats

# Columns whose spread is below this share of their largest value do not vary.
_CONSTANT = 1e-12


def varying_columns(control: Floats, treatment: Floats) -> list[int]:
    """Return the columns of two designs (units, columns) that vary in each arm and do not follow from earlier columns.

    A column that is constant in an arm, or that is a linear combination of others, has no coefficient of its own there.
    """
    most = min(len(control), len(treatment)) - 2
    left, least = [], []
    for design in (control, treatment):
        centred = design - design.mean(axis=0)
        left.append(centred.T @ centred)  # sums of products that the columns taken so far do not explain
        rounding = len(design) * (_CONSTANT * np.abs(design).max(axis=0, initial=0)) ** 2
        at_first = np.diag(left[-1])
        least.append(np.where(at_first <= rounding, np.inf, 1e-10 * at_first))
    kept: list[int] = []
    for j in range(control.shape[1]):
        if len(kept) < most and all(own[j, j] > bound[j] for own, bound in zip(left, least, strict=True)):
            kept.append(j)
            left = [own - np.outer(own[:, j], own[j]) / own[j, j] for own in left]  # a step of Gaussian elimination
    return kept


class Regressors(NamedTuple):
    """[1, covariates − centre] of some units, x = QR, with each unit's weight in the intercept, and its leverage."""

    x: Floats
    q: Floats
    r: Floats
    weights: Floats
    leverage: Floats


@dataclass(frozen=True)
class Designs:
    """Covariates of both arms (units, columns), made ready once for the regressions of several metrics."""

    arms: tuple[Floats, Floats]

    @cached_property
    def largest(self) -> float:
        """The largest absolute value."""
        return float(max(np.abs(one).max(initial=0) for one in self.arms))

    @cached_property
    def of_arms(self) -> tuple[Regressors, Regressors]:
        """The columns that vary, as regressors around their means over both arms."""
        columns = varying_columns(*self.arms)
        designs = both(lambda one: one[:, columns], self.arms)
        centre = np.concatenate(designs).mean(axis=0)
        return both(lambda one: regressors(one, centre), designs)

    @cached_property
    def of_both(self) -> Regressors:
        """Both arms as one."""
        together = np.concatenate([one.x[:, 1:] for one in self.of_arms])
        return regressors(together, together.mean(axis=0))


def regressors(design: Floats, centre: Floats) -> Regressors:
    """Return what a regression on these columns needs of them."""
    x = np.column_stack([np.ones(len(design)), design - centre])
    q, r = np.linalg.qr(x)
    # Row 0 of (X'X)⁻¹X' = R⁻¹Q' is the weight of each unit in the intercept.
    weights = q @ np.linalg.solve(r.T, np.eye(x.shape[1])[:, 0])
    return Regressors(x, q, r, weights, np.einsum("ij,ij->i", q, q))


def regression_arm(values: Floats, of: Regressors) -> Arm:
    """Return the mean of an arm at the covariates' means over both arms: the intercept a of y = a + (x − centre)·b.

    Its variance is HC2's, Σ (e_i/√(1 − h_i) · w_i)², with e the residuals, h the leverages and w_i the weight of
    y_i in a. The difference of two arms is the coefficient of the treatment in the regression in which it is
    interacted with every centred covariate.
    """
    coefficients = np.linalg.solve(of.r, of.q.T @ values)
    squares = np.square(values - of.x @ coefficients)
    free = of.leverage < 1 - 1e-10  # a unit that is fitted exactly has no residual to learn a variance from
    spread = np.divide(squares, 1 - of.leverage, out=np.zeros(len(values)), where=free)
    var = float(np.einsum("i,i,i->", of.weights, of.weights, spread))
    if np.sqrt(squares.mean()) <= _CONSTANT * max(values.max(), -values.min()):
        var = 0.0
    return Arm(float(coefficients[0]), var, float(len(values) - of.x.shape[1]))


def residuals_of_both(values: Floats, of: Regressors) -> Floats:
    """Return the residuals of the regression on the covariates over both arms together, plus the mean of the values."""
    coefficients = np.linalg.lstsq(of.r, of.q.T @ (values - values.mean()), rcond=1e-10)[0]
    return np.asarray(values - of.x[:, 1:] @ coefficients[1:])
