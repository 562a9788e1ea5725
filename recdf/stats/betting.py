"""Tests by betting: how much a gambler wins who bets that the mean of some values is above 0.

Contract: values s are independent, and none is below −worst. If their mean is not above 0, fair
bets cannot make the gambler rich: the capital K of either function below exceeds 1/α with
probability α at most, whatever the distribution and however few values there are. So 1/K is a
p-value.

Reference: Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by
betting".
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .numbers import Floats

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
