"""What holds at every look at growing data: intervals and p-values of a normal mixture, and bets.

Bets are on values s that are independent, none below −worst. If their mean is not above 0, fair
bets cannot make the gambler rich: the capital K exceeds 1/α with probability α at most, whatever
the distribution and however few values there are. So 1/K is a p-value (Waudby-Smith and Ramdas
2024, "Estimating means of bounded random variables by betting").
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .numbers import Alternative, Floats, Number


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


# A gambler never stakes more than this share of the capital, so that no single value ruins it.
MOST_STAKED = 0.75
# Shares that are staked in parallel where the number of values is not fixed before.
STAKES = np.geomspace(0.004, 0.97, 24)
HALVINGS = 40


def bets(x: Floats, alpha: float) -> Floats:
    """Return what is staked on each of n values in [0, 1], whose order must not depend on them: √(2
    ln(1/α)/(n σ²)).

    σ² is the variance of the values before this one and of a prior one of ¼. A number n that was
    fixed before, and not the values, makes the bets large enough to win by then.
    """
    i = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (i + 1)
    var = np.full(len(x), 0.25)
    var[1:] = ((0.25 + np.cumsum((x - mean) ** 2)) / (i + 1))[:-1]
    found: Floats = np.sqrt(-2 * np.log(alpha) / (var * len(x)))
    return found


def log_capital(s: Floats, worst: float, staked: Floats) -> float:
    """Return ln K with K = Π(1 + min(λ_i, ¾/worst)·s_i) for these bets λ."""
    if worst <= 0:  # nothing can be lost
        return float("inf") if s.any() else 0.0
    return float(np.log1p(np.minimum(staked, MOST_STAKED / worst) * s).sum())


def log_capital_anytime(s: Floats, worst: float) -> float:
    """Return ln K, at which one may look after each value: K is the mean over fixed shares f of Π(1
    + f·s_i/worst).

    It does not depend on the order of the values, so that nobody needs to know in which order they
    came.
    """
    if worst <= 0:
        return float("inf") if s.any() else 0.0
    logs = [float(np.log1p(share / worst * s).sum()) for share in STAKES]
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))


def last_shown(shown: Callable[[float], bool], start: float, step: float, least: float) -> float:
    """Return the largest number for which `shown` holds, which holds below it; look from `start`
    down to `least`."""
    high, low = start, max(start - step, least)
    while low > least and not shown(low):
        high, step = low, 2 * step
        low = max(high - step, least)
    for _ in range(HALVINGS if math.isfinite(low) else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if shown(middle) else (low, middle)
    return low
