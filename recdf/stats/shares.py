"""Tests of counts: users per variant against planned shares, equal shares in all variants, and two
shares compared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arms import Effect
from .numbers import Alternative, Floats, Integers, Mask, TwoNumbers, normal_quantile, scipy_module

# The χ² approximation is unreliable below this expected count.
LEAST_EXPECTED = 8.0

# What a check is said to have seen, it would have found in this share of the tests.
CHANCE_SEEN = 0.8

# Two tables count as equally likely if their probabilities differ only by rounding.
_EQUAL = 1 + 1e-7


def share_tests(counts: ArrayLike, shares: ArrayLike) -> TwoNumbers:
    """Return the sum over strata of Pearson's χ² of counts (stratum, variant) against planned
    shares, and its p.

    Strata with an expected count that is too low are left out; NaN if all are.
    """
    observed, expected, known, df = _planned(counts, shares)
    if not df:
        return np.nan, np.nan
    chi2 = ((observed - expected)[known] ** 2 / expected[known]).sum()
    return chi2, chi2_tail(chi2, df)


def _planned(counts: ArrayLike, shares: ArrayLike) -> tuple[Floats, Floats, Mask, int]:
    """Return counts by stratum and variant, what is expected of them, which strata can be tested,
    and the degrees of freedom."""
    observed, planned = (np.asarray(one, np.float64) for one in (counts, shares))
    total = observed.sum(axis=1, keepdims=True)
    expected = total * planned / planned.sum(axis=1, keepdims=True)
    known = expected.min(axis=1) >= LEAST_EXPECTED
    return observed, expected, known, known.sum() * (observed.shape[1] - 1)


def seen_loss(counts: ArrayLike, shares: ArrayLike, alpha: float) -> Floats:
    """Return which share of each variant's units has to be lost so that `share_tests` finds it in 8
    of 10 tests.

    A loss of f moves χ² by f²·Σ_h n_h s_h(1 − s_h) over the strata h, with s the planned share; 1
    where no loss is found so often, NaN where nothing is tested.
    """
    _, expected, known, df = _planned(counts, shares)
    if not df:
        return np.full(expected.shape[1], np.nan)
    if df == 1:
        needed = seen_errors(alpha) ** 2
    else:
        special = scipy_module("special")
        needed = special.chndtrinc(special.chdtri(df, alpha), df, 1 - CHANCE_SEEN)
    share = expected / np.maximum(expected.sum(axis=1, keepdims=True), 1)
    moved = (expected * (1 - share))[known].sum(axis=0)
    return np.fmin(np.sqrt(needed / moved), 1.0)


def seen_errors(alpha: float) -> float:
    """Return how many standard errors a difference has that a test finds in 8 of 10 cases."""
    return normal_quantile(1 - alpha / 2) + normal_quantile(CHANCE_SEEN)


def chi2_tail(chi2: float, df: int) -> float:
    """Return P(χ² ≥ chi2); one degree of freedom needs no SciPy."""
    if df == 1:
        return math.erfc(math.sqrt(chi2 / 2))
    return scipy_module("special").chdtrc(df, chi2)


def independence_test(table: ArrayLike) -> TwoNumbers:
    """Return Pearson's χ² of a contingency table (no continuity correction), and its p; NaN if a
    margin is empty."""
    observed = np.asarray(table, np.float64)
    rows = observed.sum(axis=1)
    cols = observed.sum(axis=0)
    if min(observed.shape) < 2 or not rows.all() or not cols.all():
        return np.nan, np.nan
    expected = np.outer(rows, cols) / observed.sum()
    chi2 = ((observed - expected) ** 2 / expected).sum()
    return chi2, chi2_tail(chi2, (observed.shape[0] - 1) * (observed.shape[1] - 1))


def equal_shares_test(yes: ArrayLike, total: ArrayLike) -> TwoNumbers:
    """Test whether `yes` of `total` units is the same share in every group; return χ² and its p, or
    an exact p.

    If an expected count is below 8, p is exact, although χ² is still returned. For two groups it is
    the p of Fisher's test. For more groups it is the smallest Fisher p of a group against all
    others, times the number of groups. The result is NaN if nobody or everybody is "yes".
    """
    n_yes = np.asarray(yes, np.int64)
    n = np.asarray(total, np.int64)
    present = n > 0
    n_yes = n_yes[present]
    n = n[present]
    chi2, p = independence_test([n_yes, n - n_yes])
    share = n_yes.sum() / max(n.sum(), 1)
    if np.isnan(p) or n.min() * min(share, 1 - share) >= LEAST_EXPECTED:
        return chi2, p
    others = [fisher_p(a, b, n_yes.sum() - a, n.sum() - b) for a, b in zip(n_yes, n, strict=True)]
    return chi2, others[0] if len(n) == 2 else min(1.0, len(n) * min(others))


def fisher_p(
    yes_1: int, n_1: int, yes_2: int, n_2: int, alternative: Alternative = "two-sided"
) -> float:
    """Return p of Fisher's exact test of `yes_1` of `n_1` against `yes_2` of `n_2`; "greater":
    group 1 is larger.

    The two-sided p is the probability of all tables with these margins that are at most as likely
    as the observed one.
    """
    total = yes_1 + yes_2
    possible = np.arange(max(0, total - n_2), min(n_1, total) + 1)
    log_p = _log_choose(n_1, possible) + _log_choose(n_2, total - possible)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    at = yes_1 - possible[0]
    if alternative == "greater":
        tail = p[at:]
    elif alternative == "less":
        tail = p[: at + 1]
    else:
        tail = p[p <= p[at] * _EQUAL]
    return min(1.0, np.sort(tail).sum())


def _log_choose(n: int, k: Integers) -> Floats:
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    return log_factorial[n] - log_factorial[k] - log_factorial[n - k]


def is_binary(values: Floats) -> bool:
    """Whether all values are 0 or 1."""
    return ((values == 0) | (values == 1)).all()


def wilson(share: Any, n: Any, z: float) -> tuple[Any, Any]:
    """Return the score interval of one share, or of each of several (Wilson 1927)."""
    centre = share + z * z / (2 * n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return (centre - half) / scale, (centre + half) / scale


def compare_shares(
    yes: tuple[int, int], n: tuple[int, int], alternative: Alternative, confidence: float
) -> Effect:
    """Compare the shares of "yes" in control and treatment by Fisher's p and an interval that needs
    no variance.

    With l and u the Wilson limits of each share, the interval of Newcombe 1998 (method 10) is
    d − √((p_t − l_t)² + (u_c − p_c)²) to d + √((u_t − p_t)² + (p_c − l_c)²). The standard error
    √(p_c q_c/n_c + p_t q_t/n_t) is only for information.
    """
    (yes_c, yes_t), (n_c, n_t) = yes, n
    p_c = yes_c / n_c
    p_t = yes_t / n_t
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    z = -normal_quantile(tail)
    (l_c, u_c), (l_t, u_t) = wilson(p_c, n_c, z), wilson(p_t, n_t, z)
    diff = p_t - p_c
    low = diff - math.hypot(p_t - l_t, u_c - p_c) if alternative != "less" else -math.inf
    high = diff + math.hypot(u_t - p_t, p_c - l_c) if alternative != "greater" else math.inf
    se = math.sqrt(p_c * (1 - p_c) / n_c + p_t * (1 - p_t) / n_t)
    p_value = fisher_p(yes_t, n_t, yes_c, n_c, alternative)
    relative = p_t / p_c - 1 if p_c > 0 else np.nan
    nan = np.nan
    return Effect(diff, se, low, high, relative, nan, nan, nan, nan, p_value)
