"""Intervals and p-values that hold at every look at a growing experiment (normal mixture)."""

from __future__ import annotations

import numpy as np

from .numbers import Number


def always_valid_multiplier(n: Number, n_planned: float, confidence: float = 0.95) -> Number:
    """Return how many standard errors an interval reaches to either side if it holds at all looks together.

    Formula: √N·√(2A/(N²ρ²)·ln(√A/α)) with A = Nρ² + 1, N = `n` units so far, ρ² = (−2 ln α + ln(1 − 2 ln α))/N* and
    N* = `n_planned`.
    """
    alpha = 1 - confidence
    rho2, a = _mixture(n, n_planned, alpha)
    multiplier: Number = np.sqrt(2 * a / (n * rho2) * np.log(np.sqrt(a) / alpha))
    return multiplier


def always_valid_p(statistic: Number, n: Number, n_planned: float, confidence: float = 0.95) -> Number:
    """p = min(1, √A·exp(−ρ²N·(diff/se)²/(2A))): at most α, at any look, when there is no effect."""
    rho2, a = _mixture(n, n_planned, 1 - confidence)
    p: Number = np.minimum(1.0, np.sqrt(a) * np.exp(-rho2 * n * np.square(statistic) / (2 * a)))
    return p


def _mixture(n: Number, n_planned: float, alpha: float) -> tuple[Number, Number]:
    # This ρ makes the interval narrowest at the planned number of units (Waudby-Smith et al. 2023).
    rho2 = (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / n_planned
    return rho2, n * rho2 + 1
