"""Moments of the values of an arm, which are all that a plain test of means reads, and how those of
parts add up.

Contract: moments are central, so that no digits are lost when they are added (Chan, Golub & LeVeque
1983). A number that is not known is NaN. Functions take moments of one arm, or arrays of moments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .numbers import Floats, Integers, Number

# Values of this size and above overflow when they are squared and summed.
HUGE = 1e150

# Standard deviations below this share of the largest value are rounding error, not variation.
MEAN_ROUNDING = 1e-14

# Moments of more values are those of pieces of so many, which stay in the cache of a processor.
_IN_CACHE = 2**16


class Moments(NamedTuple):
    """n values with mean m, of which `low` is the smallest and `high` the largest.

    `var` is Σ(y − m)²/n, or 0 where that is only rounding error. `skewness` is (Σ(y −
    m)³/n)/var^1.5, or 0 with `var`.
    """

    n: Number
    mean: Number
    var: Number
    skewness: Number
    low: Number
    high: Number


def moments_of(*arrays: Floats) -> Moments:
    """Return the moments of all values together; of huge ones, whose squares overflow, only mean
    and range."""
    n = sum(map(len, arrays))
    if not n:
        return Moments(0, *[np.nan] * 5)
    values = np.concatenate(arrays)
    low, high = float(values.min()), float(values.max())
    scale = max(-low, high)
    if scale >= HUGE:
        return Moments(n, float((values / scale).mean()) * scale, np.nan, np.nan, low, high)
    mean = float(values.mean())
    blocks = [values[at : at + _IN_CACHE] - mean for at in range(0, n, _IN_CACHE)]
    var = sum(float(np.einsum("i,i->", z, z)) for z in blocks) / n
    if not np.sqrt(var) > MEAN_ROUNDING * scale:
        return Moments(n, mean, 0.0, 0.0, low, high)
    # The cubes of small values would underflow.
    scaled = (z / np.sqrt(var) for z in blocks)
    return Moments(
        n, mean, var, sum(float(np.einsum("i,i,i->", z, z, z)) for z in scaled) / n, low, high
    )


def add_moments(parts: Moments, arm: Integers, n_arms: int) -> Moments:
    """Add the moments of disjoint parts; `arm` has the arm 0..n_arms−1 of each part.

    With δ = m_i − m and the variance of all, σ² = Σ n_i(σ_i² + δ²)/n, their skewness is Σ
    n_i((σ_i/σ)³γ_i + 3(δ/σ)(σ_i/σ)² + (δ/σ)³)/n. The squares of huge values overflow: their
    variance is NaN.
    """
    some = np.asarray(parts.n) > 0  # the mean of no value is NaN
    of, known = arm[some], Moments(*(np.asarray(values)[some] for values in parts))

    def total(values: Number) -> Floats:
        return np.bincount(of, weights=np.asarray(values), minlength=n_arms).astype(np.float64)

    n = total(known.n)
    low, high = np.full(n_arms, np.inf), np.full(n_arms, -np.inf)
    with np.errstate(
        invalid="ignore"
    ):  # NaN, a range that is not known, is below and above everything
        np.minimum.at(low, of, known.low)
        np.maximum.at(high, of, known.high)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = known.n / n[of]
        # Counted from the mean of one part, so that equal means stay what they are.
        mean = np.full(n_arms, np.nan)
        mean[of] = known.mean
        mean += total(share * known.mean - share * mean[of])
        delta = known.mean - mean[of]
        var = total(share * (known.var + delta * delta))
        var[~np.isfinite(var)] = np.nan
        # The mean stands for a range that is not known.
        largest = np.fmax(np.fmax(high, -low), np.abs(mean))
        var[np.sqrt(var) <= MEAN_ROUNDING * largest] = 0.0
        scale = np.where(var > 0, np.sqrt(var), 1.0)[of]
        spread, delta = np.sqrt(known.var) / scale, delta / scale
        cubes = (
            np.where(known.var > 0, spread**3 * known.skewness, 0.0)
            + 3 * delta * spread**2
            + delta**3
        )
        skewness = np.where(var > 0, total(share * cubes), np.where(np.isnan(var), np.nan, 0.0))
    low[n == 0] = high[n == 0] = var[n == 0] = skewness[n == 0] = np.nan
    return Moments(n, mean, var, skewness, low, high)


def skewness_of_means(n: Floats, var: Floats, skewness: Floats) -> float:
    """Return the skewness of the difference of two means: γ·(1/n_t² − 1/n_c²)/(1/n_t + 1/n_c)^1.5.

    γ is the skewness of the residuals of both arms together. With equal arms the skewness of the
    two means cancels. The result is 0 for values that are all equal.
    """
    spread = np.sqrt((n * var).sum() / n.sum())
    if not spread > 0:
        return 0.0
    cubes = n * (np.sqrt(var) / spread) ** 3 * np.where(var > 0, skewness, 0.0)
    return float(cubes.sum() / n.sum() * imbalance(n[0], n[1]))


def skewness_of_arms(control: Floats, treatment: Floats) -> float:
    """Return that of the values of both arms."""
    n, _, var, skewness, *_ = np.transpose([moments_of(one) for one in (control, treatment)])
    return skewness_of_means(n, var, skewness)


def imbalance(n_control: Number, n_treatment: Number) -> float:
    """Return what the skewness of the values is multiplied by in that of the difference of two
    means."""
    below, above = 1 / n_control, 1 / n_treatment
    return float((above**2 - below**2) / (above + below) ** 1.5)


def may_be_skewed(n_control: Number, n_treatment: Number, beyond: float) -> bool:
    """Whether the skewness of the difference can be beyond this number; that of n values is at most
    √n."""
    return bool(abs(imbalance(n_control, n_treatment)) * np.sqrt(n_control + n_treatment) >= beyond)
