"""Intervals and p-values that hold at every look at a growing experiment (normal mixture)."""

from __future__ import annotations

import numpy as np

from .numbers import Alternative, Number


def always_valid_multiplier(
    n: Number,
    n_planned: float,
    confidence: float = 0.95,
    alternative: Alternative = "two-sided",
    level: Number | None = None,
) -> Number:
    """Return how many standard errors an interval reaches to its bounds if it holds at all looks
    together.

    Formula: √N·√(2A/(N²ρ²)·L) with A = Nρ² + 1, N = `n` units so far, ρ² = (−2 ln α + ln(1 − 2 ln
    α))/N*, N* = `n_planned`, and L = ln(√A/α). One-sided, L = ln(1 + √A/(2α)), and ρ² has 2α in
    place of α. With another `level` than α in L alone, the interval is that of `always_valid_p` at
    this level.
    """
    alpha = 1 - confidence
    rho2, a = _mixture(n, n_planned, alpha, alternative)
    root = np.sqrt(a) / (alpha if level is None else level)
    log = np.log(root) if alternative == "two-sided" else np.log1p(root / 2)
    multiplier: Number = np.sqrt(2 * a / (n * rho2) * log)
    return multiplier


def always_valid_p(
    statistic: Number,
    n: Number,
    n_planned: float,
    confidence: float = 0.95,
    alternative: Alternative = "two-sided",
) -> Number:
    """p = min(1, √A·exp(−y)) with y = ρ²N·(diff/se)²/(2A): at most α, at any look, when there is no
    effect.

    One-sided, min(1, √A/2/(exp(y) − 1)), and 1 for a difference on the other side.
    """
    rho2, a = _mixture(n, n_planned, 1 - confidence, alternative)
    y = rho2 * n * np.square(statistic) / (2 * a)
    if alternative == "two-sided":
        return np.asarray(np.minimum(1.0, np.sqrt(a) * np.exp(-y)))
    side = statistic if alternative == "greater" else np.negative(statistic)
    with np.errstate(divide="ignore"):
        return np.where(
            side <= 0, 1.0, np.minimum(1.0, np.sqrt(a) / 2 * np.exp(-y) / -np.expm1(-y))
        )


def _mixture(
    n: Number, n_planned: float, alpha: float, alternative: Alternative
) -> tuple[Number, Number]:
    # This ρ makes the interval narrowest at the planned number of units (Waudby-Smith et al. 2023).
    # Any ρ is valid.
    alpha = alpha if alternative == "two-sided" else min(2 * alpha, 0.9)
    rho2 = (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / n_planned
    return rho2, n * rho2 + 1
