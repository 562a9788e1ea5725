"""Quantiles and p-values of Student's t.

Only tail functions are used, because 1 − cdf underflows where a p-value is most interesting.
"""

from __future__ import annotations

import functools
import math
from statistics import NormalDist

import numpy as np

from .numbers import Alternative, Number
from .scipy_extra import scipy_module


def t_quantile(df: Number, alternative: Alternative, confidence: float) -> Number:
    """Return the upper t quantile of a two-sided or one-sided interval."""
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    # By symmetry this uses the lower tail, since stdtrit(df, 1 - tail) loses digits if tail is small.
    quantile: Number = -scipy_module("special").stdtrit(df, tail)
    return quantile


def t_p_value(statistic: Number, df: Number, alternative: Alternative) -> Number:
    """Return the p-value of a t statistic from its tail."""
    special = scipy_module("special")
    if alternative == "two-sided":
        p: Number = 2 * special.stdtr(df, -np.abs(statistic))
    else:
        p = special.stdtr(df, -statistic if alternative == "greater" else statistic)
    return p


@functools.cache
def interval_quantile(df: int, confidence: float) -> float:
    """Return the quantile of a two-sided interval without SciPy: Student's t up to 98 degrees of freedom, else normal.

    P(|T| ≤ t) is a finite sum in the angle atan(t/√df) for whole df (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4).
    """
    if df < 1 or df > 98:
        return NormalDist().inv_cdf((1 + confidence) / 2) if df > 98 else math.nan

    def share(angle: float) -> float:
        odd, cos = df % 2, math.cos(angle)
        term = cos if odd else 1.0
        total = term if df > 1 else 0.0
        for power in range(odd + 2, df - 1, 2):
            term *= (power - 1) / power * cos * cos
            total += term
        total *= math.sin(angle)
        return 2 / math.pi * (angle + total) if odd else total

    low, high = 0.0, math.pi / 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < confidence else (low, middle)
    return math.sqrt(df) * math.tan(low)


def equivalence_p(diff: Number, se: Number, df: Number, margin: float) -> Number:
    """Return p of the equivalence test TOST: the larger p of H0 diff ≤ −margin and diff ≥ margin (Schuirmann 1987)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        above = t_p_value((diff + margin) / se, df, "greater")
        below = t_p_value((diff - margin) / se, df, "less")
    return np.maximum(above, below)
