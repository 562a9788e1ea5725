"""Comparison of two shares of 0/1 values: Fisher's exact test and Newcombe's interval of their difference."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from .counts import fisher_p
from .effects import Effect
from .numbers import Alternative, Floats

__all__: list[str] = []


def is_binary(values: Floats) -> bool:
    """Whether all values are 0 or 1."""
    return bool(((values == 0) | (values == 1)).all())


def wilson(share: float, n: int, z: float) -> tuple[float, float]:
    """Return the score interval of one share (Wilson 1927)."""
    centre = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return (centre - half) / scale, (centre + half) / scale


def compare_shares(
    yes: tuple[int, int], n: tuple[int, int], *, alternative: Alternative = "two-sided", confidence: float = 0.95
) -> Effect:
    """Compare the shares of "yes" in control and treatment by Fisher's p and an interval that needs no variance.

    With l and u the Wilson limits of each share, the interval of Newcombe 1998 (method 10) is
    d − √((p_t − l_t)² + (u_c − p_c)²) to d + √((u_t − p_t)² + (p_c − l_c)²). The standard error
    √(p_c q_c/n_c + p_t q_t/n_t) is only for information.
    """
    (yes_c, yes_t), (n_c, n_t) = yes, n
    p_c, p_t = yes_c / n_c, yes_t / n_t
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    z = -NormalDist().inv_cdf(tail)
    (l_c, u_c), (l_t, u_t) = wilson(p_c, n_c, z), wilson(p_t, n_t, z)
    diff = p_t - p_c
    low = diff - math.hypot(p_t - l_t, u_c - p_c) if alternative != "less" else -math.inf
    high = diff + math.hypot(u_t - p_t, p_c - l_c) if alternative != "greater" else math.inf
    se = math.sqrt(p_c * (1 - p_c) / n_c + p_t * (1 - p_t) / n_t)
    p_value = fisher_p(yes_t, n_t, yes_c, n_c, alternative)
    relative = p_t / p_c - 1 if p_c > 0 else np.nan
    nan = np.nan
    return Effect(diff, se, low, high, relative, nan, nan, nan, nan, p_value)
