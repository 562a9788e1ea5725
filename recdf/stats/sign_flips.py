"""Tests of paired differences: randomization by random signs or all patterns of signs; Wilcoxon's
signed ranks."""

from __future__ import annotations

import warnings

import numpy as np

from .effect_sizes import open_sided
from .numbers import Alternative, Floats
from .scipy_extra import scipy_module


def sign_flip_p(
    sums: Floats,
    observed: Floats,
    alternative: Alternative,
    tie: float = 1e-12,
    scale: Floats | float | None = None,
) -> Floats:
    """Return p = (1 + #{T* at least as extreme as T})/(B + 1); values within `tie` count as tied.

    `sums` (B, columns) are the resampled statistics T*, and `observed` (columns) are the statistics
    T. `tie` is relative to T or, where that is larger, to the `scale` of T*: without it their root
    mean square. Else rounding would break the ties where T is 0.
    """
    spread = np.sqrt(np.mean(sums**2, axis=0)) if scale is None else scale
    slack = tie * np.maximum(np.abs(observed), spread)
    with np.errstate(invalid="ignore"):
        if alternative == "two-sided":
            extreme = np.abs(sums) >= np.abs(observed) - slack
        else:
            extreme = (
                sums >= observed - slack if alternative == "greater" else sums <= observed + slack
            )
    return np.asarray((1 + extreme.sum(axis=0)) / (len(sums) + 1))


def sign_flip_interval(
    centred: Floats, mean: Floats, *, alternative: Alternative, confidence: float
) -> tuple[Floats, Floats]:
    """Return mean ∓ the `confidence` quantile of flipped centred means (two-sided: of their
    absolute values)."""
    half = np.quantile(
        np.abs(centred) if alternative == "two-sided" else centred, confidence, axis=0
    )
    return open_sided(mean - half, mean + half, alternative)


def exact_sign_flip_p(values: Floats, alternative: Alternative) -> float:
    """Return the exact p over all 2^m sign patterns of the m values that are not 0, without
    simulation."""
    values = values[values != 0]
    patterns = (np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1
    sums = (1 - 2 * patterns) @ values
    observed = np.array([values.sum()])
    return float(
        (sign_flip_p(sums[:, None], observed, alternative)[0] * (len(sums) + 1) - 1) / len(sums)
    )


def _one_size(diff: Floats, tolerance: float) -> Floats:
    """Return the differences with those of one size that differ by rounding alone made equal."""
    size = np.abs(diff)
    order = size.argsort()
    starts = np.diff(size[order], prepend=-np.inf) > tolerance
    equal = np.empty_like(size)
    equal[order] = size[order][starts][np.cumsum(starts) - 1]
    return np.sign(diff) * equal


def wilcoxon(diff: Floats, alternative: Alternative, tolerance: float) -> dict[str, float | bool]:
    """Return Wilcoxon's signed-rank statistic and p by the normal approximation; zeros are dropped
    (SciPy).

    Sizes that are at most `tolerance` apart have one rank. `ranks_higher` says whether the ranks of
    positive differences are the larger sum.
    """
    stats, diff = scipy_module("stats"), _one_size(diff, tolerance)
    with warnings.catch_warnings():
        # Below 10 differences SciPy warns of the approximation, although it was requested here.
        warnings.simplefilter("ignore", UserWarning)
        found = stats.wilcoxon(diff, alternative=alternative, method="approx")
        # With "greater" the statistic is the sum of the ranks of positive differences.
        ranks_up = float(stats.wilcoxon(diff, alternative="greater", method="approx").statistic)
    n = int((diff != 0).sum())
    higher = ranks_up > n * (n + 1) / 4
    return {
        "statistic": float(found.statistic),
        "p_value": float(found.pvalue),
        "ranks_higher": higher,
    }
