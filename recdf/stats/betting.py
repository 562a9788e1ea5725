"""Tests by betting: how much a gambler wins who bets that the mean of some values is above 0.

Contract: values s are independent, none is below −worst, and weights w are at most 1. If Σ w s is not above 0 in the
mean, fair bets cannot make the gambler rich: the capital K of either function below exceeds 1/α with probability α at
most, whatever the distribution and however few values there are. So 1/K is a p-value.

Reference: Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .numbers import Floats

# A gambler never stakes more than this share of the capital, so that no single value ruins it.
MOST_STAKED = 0.75
# Shares that are staked in parallel where the number of values is not fixed before.
STAKES = np.geomspace(0.004, 0.97, 24)
STAKED_AT_ONCE = 2**16  # so many values are multiplied by all of these shares at once
HALVINGS, DOUBLINGS = 20, 60


def bets(x: Floats, alpha: float) -> Floats:
    """Return what is staked on each of n values in [0, 1], whose order must not depend on them: √(2 ln(1/α)/(n σ²)).

    σ² is the variance of the values before this one and of a prior one of ¼. A number n that was fixed before, and not
    the values, makes the bets large enough to win by then.
    """
    i = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (i + 1)
    var = np.full(len(x), 0.25)
    var[1:] = ((0.25 + np.cumsum((x - mean) ** 2)) / (i + 1))[:-1]
    found: Floats = np.sqrt(-2 * np.log(alpha) / (var * len(x)))
    return found


def log_capital(s: Floats, worst: float, staked: Floats, weight: Floats | None = None) -> float:
    """Return ln K with K = Π(1 + min(λ_i, ¾/worst)·w_i·s_i) for these bets λ."""
    if worst <= 0:  # nothing can be lost
        return float("inf") if s.any() else 0.0
    won = np.minimum(staked, MOST_STAKED / worst) * s
    return float(np.log1p(won if weight is None else won * weight).sum())


def log_capital_anytime(s: Floats, worst: float, weight: Floats | None = None) -> float:
    """Return ln K, at which one may look after each value: K is the mean over fixed shares f of Π(1 + f·w_i·s_i/worst).

    It does not depend on the order of the values, so that nobody needs to know in which order they came.
    """
    if worst <= 0:
        return float("inf") if s.any() else 0.0
    won = s / worst if weight is None else weight * s / worst
    logs = np.zeros(len(STAKES))
    for start in range(0, len(won), STAKED_AT_ONCE):
        logs += np.log1p(STAKES[:, None] * won[None, start : start + STAKED_AT_ONCE]).sum(axis=1)
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))


def last_shown(shown: Callable[[float], bool], start: float, step: float, least: float) -> float:
    """Return the largest number for which `shown` holds, which holds below it; look from `start` down to `least`."""
    high, low = start, start - step
    for _ in range(DOUBLINGS):
        if low <= least or shown(low):
            break
        high, step = low, 2 * step
        low = high - step
    low = max(low, least)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if shown(middle) else (low, middle)
    return low
