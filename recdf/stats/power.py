"""The smallest true effect that a test is likely to find, in multiples of the standard error."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from .numbers import Alternative, Number
from .scipy_extra import scipy_module
from .student import t_quantile

# Steps of the search for a number of users, on which the t quantile depends; it settles in three or
# four.
STEPS = 50


def detectable(alpha: float, power: float, alternative: Alternative = "two-sided") -> float:
    """z_{1−α/2} + z_power (z_{1−α} one-sided): the smallest true effect, in standard errors, found
    with `power`."""
    tail = alpha / (2 if alternative == "two-sided" else 1)
    return float(beyond(-NormalDist().inv_cdf(tail), power))


def beyond(quantile: Number, power: float) -> Number:
    """Return `detectable` for an interval of `quantile` standard errors on either side: quantile +
    z_power."""
    return quantile + NormalDist().inv_cdf(power)


def detectable_t(
    df: Number, alpha: float, power: float, alternative: Alternative = "two-sided"
) -> Number:
    """Return `detectable` for a t test with `df` degrees of freedom.

    It is the noncentrality δ for which a noncentral t exceeds the test's quantile with probability
    `power`. The chance of a rejection on the wrong side, below 1e-5 at a power of 0.8, is
    neglected.
    """
    quantile = t_quantile(df, alternative, 1 - alpha)
    found: Number = scipy_module("special").nctdtrinc(df, 1 - power, quantile)
    return found


def chance_beyond(
    df: Number, alpha: float, errors: Number, alternative: Alternative = "two-sided"
) -> Number:
    """Return the chance that a t test finds a true effect of so many standard errors."""
    chance: Number = 1 - scipy_module("special").nctdtr(
        df, errors, t_quantile(df, alternative, 1 - alpha)
    )
    return chance


def least_paired_effect(
    n: float, alpha: float, power: float, alternative: Alternative, size: float = 1.0
) -> float:
    """Smallest mean difference that n rows show, in standard deviations; `size` rows are a unit."""
    return float(detectable_t(max(n / size - 1, 1.0), alpha, power, alternative)) / math.sqrt(n)


def paired_units_needed(
    effect: float, alpha: float, power: float, alternative: Alternative, size: float = 1.0
) -> int:
    """Rows that show a mean difference, given in standard deviations; the t quantile depends on
    their number."""
    total = float(detectable_t(np.inf, alpha, power, alternative)) ** 2 / effect**2
    for _ in range(STEPS):
        n = max(total, 3)
        total = (
            least_paired_effect(n, alpha, power, alternative, size) * math.sqrt(n) / effect
        ) ** 2
    rows = max(3, math.ceil(total - 1e-6))
    while least_paired_effect(rows, alpha, power, alternative, size) > effect * (1 + 1e-9):
        rows += 1
    return rows
