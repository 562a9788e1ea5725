"""The smallest true effect that a test is likely to find, in multiples of the standard error."""

from __future__ import annotations

from statistics import NormalDist

from .numbers import Alternative, Number
from .scipy_extra import scipy_module
from .student import t_quantile


def detectable(alpha: float, power: float, alternative: Alternative = "two-sided") -> float:
    """z_{1−α/2} + z_power (z_{1−α} one-sided): the smallest true effect, in standard errors, found with `power`."""
    tail = alpha / (2 if alternative == "two-sided" else 1)
    return float(beyond(-NormalDist().inv_cdf(tail), power))


def beyond(quantile: Number, power: float) -> Number:
    """Return `detectable` for an interval of `quantile` standard errors on either side: quantile + z_power."""
    return quantile + NormalDist().inv_cdf(power)


def detectable_t(df: Number, alpha: float, power: float, alternative: Alternative = "two-sided") -> Number:
    """Return `detectable` for a t test with `df` degrees of freedom.

    It is the noncentrality δ for which a noncentral t exceeds the test's quantile with probability `power`. The chance
    of a rejection on the wrong side, below 1e-5 at a power of 0.8, is neglected.
    """
    quantile = t_quantile(df, alternative, 1 - alpha)
    found: Number = scipy_module("special").nctdtrinc(df, 1 - power, quantile)
    return found


def chance_beyond(df: Number, alpha: float, errors: Number, alternative: Alternative = "two-sided") -> Number:
    """Return the chance that a t test finds a true effect of so many standard errors."""
    chance: Number = 1 - scipy_module("special").nctdtr(df, errors, t_quantile(df, alternative, 1 - alpha))
    return chance
