"""Adjustment of a mean by several covariates: one regression per arm (Lin 2013), robust to unequal variances (HC2)."""

from __future__ import annotations

import numpy as np

from .arms import Arm
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


def regression_arm(values: Floats, design: Floats, centre: Floats) -> Arm:
    """Return the mean of an arm at the covariates' means over both arms: the intercept a of y = a + (x − centre)·b.

    Its variance is HC2's, Σ (e_i/√(1 − h_i) · w_i)², with e the residuals, h the leverages and w_i the weight of
    y_i in a. The difference of two arms is the coefficient of the treatment in the regression in which it is
    interacted with every centred covariate.
    """
    x = np.column_stack([np.ones(len(values)), design - centre])
    q, r = np.linalg.qr(x)
    coefficients = np.linalg.solve(r, q.T @ values)
    residuals = values - x @ coefficients
    # Row 0 of (X'X)⁻¹X' = R⁻¹Q' is the weight of each unit in the intercept.
    weights = q @ np.linalg.solve(r.T, np.eye(x.shape[1])[:, 0])
    leverage = (q**2).sum(axis=1)
    free = leverage < 1 - 1e-10  # a unit that is fitted exactly has no residual to learn a variance from
    spread = np.where(free, residuals**2 / np.where(free, 1 - leverage, 1.0), 0.0)
    var = float((weights**2 * spread).sum())
    if np.sqrt((residuals**2).mean()) <= _CONSTANT * np.abs(values).max():
        var = 0.0
    return Arm(float(coefficients[0]), var, float(len(values) - x.shape[1]))


def residuals_of_both(values: Floats, design: Floats) -> Floats:
    """Return the residuals of the regression on the covariates over both arms together, plus the mean of the values."""
    centred = design - design.mean(axis=0)
    coefficients = np.linalg.lstsq(centred, values - values.mean(), rcond=None)[0]
    return np.asarray(values - centred @ coefficients)
