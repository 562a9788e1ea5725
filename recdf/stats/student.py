"""Quantiles and p-values of Student's t, and the smallest true effect that a test is likely to
find, in multiples of the standard error.

Only tail functions are used, because 1 − cdf underflows where a p-value is most interesting.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .numbers import Alternative, Number, normal_quantile, scipy_module, undefined_is_nan


def t_quantile(df: Number, alternative: Alternative, confidence: Number) -> Number:
    """Return the upper t quantile of a two-sided or one-sided interval."""
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    # By symmetry this uses the lower tail, since stdtrit(df, 1 - tail) loses digits if tail is
    # small.
    return -scipy_module("special").stdtrit(df, tail)


def t_p_value(statistic: Number, df: Number, alternative: Alternative) -> Number:
    """Return the p-value of a t statistic from its tail."""
    special = scipy_module("special")
    if alternative == "two-sided":
        p: Number = 2 * special.stdtr(df, -np.abs(statistic))
    else:
        p = special.stdtr(df, -statistic if alternative == "greater" else statistic)
    return p


def without_lean(t: float, lean: float) -> float:
    """Return T − lean·(1 + 2T²) (Johnson 1978): what is left of a t statistic if skewness/(6√n) of
    the values, `lean`, speaks for its claim. Rare large losses are missing in some samples, which
    then look better and surer than they are."""
    t = min(t, 1 / (4 * lean))
    return t - lean * (1 + 2 * t * t)


# Degrees of freedom from which four terms of the expansion are exact to about 1e-11.
MANY_DEGREES = 2000


def student_quantile(p: float, df: float) -> float:
    """Quantile of Student's t for p above 1/2: by expansion about the normal one, or bisection for
    few degrees."""
    if df > MANY_DEGREES:
        z = normal_quantile(p)
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + (z**3 + z) / 4 / df + second / df**2 + third / df**3
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(math.pi)
    nodes, weights = _nodes_and_weights()

    def cdf(t: float) -> float:
        """P(T ≤ t): with t = √df·tan θ the density is proportional to cos(θ)^(df−1), which is
        integrated from 0 to θ."""
        theta = math.atan(t / math.sqrt(df))
        density = np.exp(log_scale + (df - 1) * np.log(np.cos(theta * (nodes + 1) / 2)))
        return 0.5 + theta / 2 * float(weights @ density)

    low = 0.0
    high = 1.0
    while cdf(high) < p:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if cdf(middle) < p else (low, middle)
    return (low + high) / 2


@functools.cache
def _nodes_and_weights() -> tuple[np.ndarray, np.ndarray]:
    """Return those of the integration, which take longer than all the rest of a quantile."""
    return np.polynomial.legendre.leggauss(80)


@functools.cache
def interval_quantile(df: int, confidence: float) -> float:
    """Quantile of a two-sided interval without SciPy: Student's t up to 98 degrees of freedom, then
    normal."""
    p = (1 + confidence) / 2
    return math.nan if df < 1 else normal_quantile(p) if df > 98 else student_quantile(p, df)


def equivalence_p(diff: Number, se: Number, df: Number, margin: float) -> Number:
    """Return p of the equivalence test TOST: the larger p of H0 diff ≤ −margin and diff ≥ margin
    (Schuirmann 1987)."""
    with undefined_is_nan():
        above = t_p_value((diff + margin) / se, df, "greater")
        below = t_p_value((diff - margin) / se, df, "less")
    return np.maximum(above, below)


def fewest(shows: Callable[[int], bool], least: int) -> int:
    """Return the smallest number, from `least` on, for which something holds that then holds for
    all larger ones."""
    most = least
    while not shows(most):
        most *= 2
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if shows(middle) else (middle + 1, most)
    return least


def detectable(alpha: float, power: float, alternative: Alternative = "two-sided") -> float:
    """z_{1−α/2} + z_power (z_{1−α} one-sided): the smallest true effect, in standard errors, found
    with `power`."""
    tail = alpha / (2 if alternative == "two-sided" else 1)
    return float(beyond(-normal_quantile(tail), power))


def beyond(quantile: Number, power: float) -> Number:
    """Return `detectable` for an interval of `quantile` standard errors on either side: quantile +
    z_power."""
    return quantile + normal_quantile(power)


def detectable_t(df: Number, alpha: float, power: float, alternative: Alternative) -> Number:
    """Return `detectable` for a t test with `df` degrees of freedom.

    It is the noncentrality δ for which a noncentral t exceeds the test's quantile with probability
    `power`. The chance of a rejection on the wrong side, below 1e-5 at a power of 0.8, is
    neglected.
    """
    quantile = t_quantile(df, alternative, 1 - alpha)
    return scipy_module("special").nctdtrinc(df, 1 - power, quantile)


def chance_beyond(df: Number, alpha: float, errors: Number, alternative: Alternative) -> Number:
    """Return the chance that a t test finds a true effect of so many standard errors."""
    return 1 - scipy_module("special").nctdtr(df, errors, t_quantile(df, alternative, 1 - alpha))


class PairedTest(NamedTuple):
    """The t test of a mean difference of rows, of which `size` are a unit, with the chance `power`
    of finding one. Effects are in standard deviations. One below `unseen`/n is never found, since a
    few unseen units could turn it."""

    alpha: float
    power: float
    alternative: Alternative
    size: float = 1.0
    unseen: float = 0.0

    def least_effect(self, n: float) -> float:
        """Return the smallest effect that n rows show."""
        df = max(n / self.size - 1, 1.0)
        of_test = float(detectable_t(df, self.alpha, self.power, self.alternative))
        return max(of_test, float(beyond(self.unseen / math.sqrt(n), self.power))) / math.sqrt(n)

    def rows_needed(self, effect: float) -> int:
        """Return how many rows show an effect."""
        return fewest(lambda n: self.least_effect(n) <= effect * (1 + 1e-9), 3)
