"""Permutation tests of two arms, and of paired differences: by random signs, by all patterns of
signs, or by signed ranks (Wilcoxon).

Of two arms, the labels are shuffled over the units, and the statistic is studentised.

The shuffled statistics show how skewed the t statistic of these values is where one arm is small.
Each of them is divided by its own standard error, so that the test also holds for unequal variances
(Janssen 1997). The p of a random split itself comes from a formula in place of shuffles.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..progress import Progress
from .effect_sizes import open_sided
from .moments import moments_of
from .numbers import Alternative, Floats, undefined_is_nan
from .resampling import random_words
from .scipy_extra import scipy_module

# A block of shuffles has so many cells: 4 million random numbers take 32 MB.
_CELLS = 1 << 22


def permuted_t(values: Floats, n_treatment: int, n_resamples: int, seed: int) -> Floats:
    """Return Welch's t of every column of `values` (units, columns) under shuffled labels:
    (n_resamples, columns).

    In each replicate every unit has a random number, and the units with the smallest numbers are
    the treatment. So the result depends only on the seed and on the order of the units.
    """
    n = len(values)
    centred = values - values.mean(axis=0)
    sums = np.concatenate([centred, centred**2], axis=1)
    total = sums.sum(axis=0)
    found = np.empty((n_resamples, values.shape[1]))
    rows = max(1, _CELLS // n)
    with Progress(n_resamples, "the permutations") as progress:
        for start in range(0, n_resamples, rows):
            block = range(start, min(start + rows, n_resamples))
            words = np.stack([random_words((seed, b), 0, 0, n) for b in block])
            cut = np.partition(words, n_treatment - 1, axis=1)[:, n_treatment - 1]
            treated = (words <= cut[:, None]).astype(np.float64) @ sums
            found[block.start : block.stop] = _welch_t(
                total - treated, treated, n - n_treatment, n_treatment
            )
            progress.add(len(block))
    return found


def observed_t(control: Floats, treatment: Floats) -> Floats:
    """Return Welch's t of every column, computed in the same way as for shuffled labels."""
    both = np.concatenate([control, treatment])
    centred = both - both.mean(axis=0)
    sums = np.concatenate([centred, centred**2], axis=1)
    n_c = len(control)
    one = _welch_t(sums[:n_c].sum(axis=0)[None], sums[n_c:].sum(axis=0)[None], n_c, len(treatment))
    return np.asarray(one[0])


def _welch_t(control: Floats, treatment: Floats, n_c: int, n_t: int) -> Floats:
    """Return t from sums and sums of squares, which are the two halves of the last axis."""
    half = control.shape[-1] // 2
    diff = treatment[:, :half] / n_t - control[:, :half] / n_c
    var = np.zeros_like(diff)
    for sums, n in ((control, n_c), (treatment, n_t)):
        squares = sums[:, half:] - sums[:, :half] ** 2 / n
        # Rounding leaves 1e-17 where the values of an arm are all equal.
        var += np.where(squares > 1e-12 * np.abs(sums[:, half:]), squares, 0.0) / (n - 1) / n
    with undefined_is_nan():
        return np.asarray(
            np.where(var > 0, diff / np.sqrt(var), np.where(diff == 0, 0.0, np.sign(diff) * np.inf))
        )


def permutation_p(shuffled: Floats, observed: Floats, alternative: Alternative) -> Floats:
    """Return p = (1 + #{t* at least as extreme as t})/(B + 1); values within 1e-9, relative to t
    or to its standard error 1, count as tied."""
    return sign_flip_p(shuffled, observed, alternative, 1e-9, scale=1.0)


def permutation_quantiles(
    shuffled: Floats, alternative: Alternative, confidence: float
) -> tuple[Floats, Floats]:
    """Return how many standard errors the interval reaches below and above the difference."""
    with np.errstate(invalid="ignore"):
        if alternative == "two-sided":
            width = np.quantile(np.abs(shuffled), confidence, axis=0, method="higher")
            return width, width
        below = np.quantile(shuffled, confidence, axis=0, method="higher")
        above = -np.quantile(shuffled, 1 - confidence, axis=0, method="lower")
    return below, above


# Skewness of the difference below which a normal distribution is as good, and above which ranks are
# compared.
SYMMETRIC, SKEWED = 1e-3, 0.2


def random_split_p(
    control: Floats,
    treatment: Floats,
    strata: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None,
) -> float:
    """Return the two-sided p of the difference of two means over all splits of the units into arms
    of these sizes.

    Over these splits the difference has mean 0, a known variance and the skewness γ(N − 2n_t)√(N −
    1)/((N − 2)√(n_t n_c)), where γ is that of all N values. p is that of Pearson's distribution of
    type III with these moments (Mielke & Berry 2007). Where the skewness is large, the tail is of
    another form, and ranks take the place of values. NaN where all values are equal. With `strata`,
    the code of each unit, units are split within their strata, whose differences are added by their
    number of units.
    """
    sides = (
        [[control], [treatment]] if strata is None else _by_stratum((control, treatment), strata)
    )
    parts = [part for part in zip(*sides, strict=True) if min(map(len, part)) >= 2]
    diff, var, skewness = _split_moments(parts)
    if abs(skewness) > SKEWED:
        diff, var, skewness = _split_moments([_ranks_in_both(*part) for part in parts])
    if not var > 0:
        return np.nan
    return skewed_p(diff / math.sqrt(var), skewness)


def skewed_p(z: float, skewness: float) -> float:
    """Return the two-sided p of Pearson's distribution of type III with variance 1."""
    if abs(skewness) < SYMMETRIC:
        return math.erfc(abs(z) / math.sqrt(2))
    special = scipy_module("special")
    shape = 4 / skewness**2
    at = max(shape + 2 * z / skewness, 0.0)
    return min(
        1.0, 2 * min(float(special.gammaincc(shape, at)), float(special.gammainc(shape, at)))
    )


def _by_stratum(
    sides: tuple[Floats, Floats], strata: tuple[npt.NDArray[np.int64], ...]
) -> list[list[Floats]]:
    n = max(int(codes.max(initial=0)) for codes in strata) + 1
    orders = [np.argsort(codes, kind="stable") for codes in strata]
    return [
        np.split(values[order], np.searchsorted(codes[order], np.arange(1, n)))
        for values, codes, order in zip(sides, strata, orders, strict=True)
    ]


def _ranks_in_both(control: Floats, treatment: Floats) -> tuple[Floats, Floats]:
    """Ranks of the values among those of both arms."""
    _, place, count = np.unique(
        np.concatenate([control, treatment]), return_inverse=True, return_counts=True
    )
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    return ranks[: len(control)], ranks[len(control) :]


def _split_moments(parts: Sequence[tuple[Floats, ...]]) -> tuple[float, float, float]:
    """Return the sum of N·difference over strata, with its variance and skewness over random
    splits."""
    diff = var = cubes = 0.0
    for control, treatment in parts:
        n_c, n_t = len(control), len(treatment)
        n, units = n_c + n_t, moments_of(control, treatment)
        if units.var > 0:
            turn = (n - 2 * n_t) * math.sqrt(n - 1) / ((n - 2) * math.sqrt(n_c * n_t))
            spread = n * math.sqrt(float(units.var) * n / (n - 1) * (1 / n_c + 1 / n_t))
            diff += n * float(treatment.mean() - control.mean())
            var, cubes = var + spread**2, cubes + spread**3 * float(units.skewness) * turn
    return diff, var, cubes / var**1.5 if var > 0 else 0.0


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
