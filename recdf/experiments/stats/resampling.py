"""Poisson bootstrap and sign flips over columns of sums: arrays in, numbers out.

Contract: `columns` are arrays over the same units, in the order of the units' ids; a replicate is a
weighted sum of every column. The weights of unit u in replicate b depend on (seed, u, b) alone, because
they come in fixed tiles of 1024 units × 1024 replicates with a generator each. So a result is the same for
any row order, any number of replicates asked for later, any machine, and takes the memory of one tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .inference import Sample

__all__: list[str] = []

Floats = npt.NDArray[np.float64]

# One number, or several where samples must get weights of their own (the arms of an experiment).
Seed = int | tuple[int, ...]

TILE = 1024

# Poisson(1) from a uniform 16-bit number: how many of the 65,536 numbers mean a count of 0, 1, .. 7.
_POISSON_COUNTS = (24110, 24109, 12054, 4018, 1005, 200, 35, 5)
_POISSON = np.repeat(np.arange(8, dtype=np.float64), _POISSON_COUNTS)


def _raw(seed: Seed, unit_tile: int, replicate_tile: int, words: int) -> npt.NDArray[np.uint64]:
    # random_raw is the bit generator's own stream, which NumPy keeps stable over versions.
    seeds = [*([seed] if isinstance(seed, int) else seed), unit_tile, replicate_tile]
    return np.random.default_rng(seeds).bit_generator.random_raw(words)


def _poisson_tile(seed: Seed, unit_tile: int, replicate_tile: int, rows: int) -> Floats:
    raw = _raw(seed, unit_tile, replicate_tile, rows * TILE // 4)
    return _POISSON.take(raw.astype("<u8", copy=False).view("<u2")).reshape(rows, TILE)


def _sign_tile(seed: Seed, unit_tile: int, replicate_tile: int, rows: int) -> Floats:
    raw = _raw(seed, unit_tile, replicate_tile, rows * TILE // 64)
    bits = np.unpackbits(raw.astype("<u8", copy=False).view(np.uint8)).reshape(rows, TILE)
    return bits.astype(np.float64)


def _tiled_sums(
    columns: Sequence[Floats], n_resamples: int, seed: Seed, tile: Callable[[Seed, int, int, int], Floats]
) -> Floats:
    n = len(columns[0])
    sums = np.zeros((n_resamples, len(columns)))
    block = np.empty((TILE, len(columns)))
    for unit_tile, start in enumerate(range(0, n, TILE)):
        width = min(TILE, n - start)
        for j, values in enumerate(columns):
            block[:width, j] = values[start : start + width]
        for replicate_tile, first in enumerate(range(0, n_resamples, TILE)):
            rows = min(TILE, n_resamples - first)
            weights = tile(seed, unit_tile, replicate_tile, rows)
            sums[first : first + rows] += weights[:, :width] @ block[:width]
    return sums


def poisson_sums(columns: Sequence[Floats], n_resamples: int, seed: Seed) -> Floats:
    """Sums of every column under Poisson(1) weights per unit: an array (n_resamples, columns)."""
    return _tiled_sums(columns, n_resamples, seed, _poisson_tile)


def sign_sums(columns: Sequence[Floats], n_resamples: int, seed: Seed) -> Floats:
    """Sums of every column under random signs per unit: an array (n_resamples, columns)."""
    # A sign is 1 − 2·bit, so Σ s·x = Σ x − 2 Σ bit·x and the tile stays 0/1.
    totals = np.array([values.sum() for values in columns])
    return totals - 2 * _tiled_sums(columns, n_resamples, seed, _sign_tile)


def replicate_estimates(
    samples: Sequence[Sample],
    thetas: Sequence[float],
    xs: Sequence[float],
    n_resamples: int,
    seed: Seed,
    unordered: bool = False,
) -> Floats:
    """Replicates (n_resamples, samples) of ΣN/ΣD − θ(ΣX/ΣX_d − x) over the same units; a missing D is 1.

    `unordered` units have no ids to be in the order of; they are put in the order of their own values, which
    makes the replicates the same for any order of the rows. A missing covariate (x_num None) adds nothing.
    """
    columns: list[Floats] = [np.ones(len(samples[0].num))]
    places: list[list[int]] = []
    for sample in samples:
        place = []
        for values in sample:
            if values is None:
                place.append(0)
                continue
            known = next((j for j, column in enumerate(columns) if column is values), len(columns))
            columns += [values] if known == len(columns) else []
            place.append(known)
        places.append(place)
    if unordered:
        order = np.lexsort(columns)
        columns = [values[order] for values in columns]
    sums = poisson_sums(columns, n_resamples, seed)
    replicates = np.empty((n_resamples, len(samples)))
    with np.errstate(divide="ignore", invalid="ignore"):
        for j, (sample, (num, den, x_num, x_den)) in enumerate(zip(samples, places, strict=True)):
            replicates[:, j] = sums[:, num] / sums[:, den]
            if sample.x_num is not None:
                replicates[:, j] -= thetas[j] * (sums[:, x_num] / sums[:, x_den] - xs[j])
    return replicates


def sign_flip_p(sums: Floats, observed: Floats, alternative: str) -> Floats:
    """p = (1 + #{T* at least as extreme as T})/(B + 1), ties counted up to a relative 1e-12.

    `sums` (B, columns) are the flipped sums T*, `observed` (columns) the sums T.
    """
    slack = 1e-12 * np.abs(observed)
    if alternative == "two-sided":
        extreme = np.abs(sums) >= np.abs(observed) - slack
    elif alternative == "greater":
        extreme = sums >= observed - slack
    else:
        extreme = sums <= observed + slack
    return (1 + extreme.sum(axis=0)) / (len(sums) + 1)


def sign_flip_interval(centred: Floats, mean: Floats, *, alternative: str, confidence: float) -> tuple[Floats, Floats]:
    """Interval mean ∓ the `confidence` quantile of flipped centred means (two-sided: of their absolute values)."""
    if alternative == "two-sided":
        half = np.quantile(np.abs(centred), confidence, axis=0)
        return mean - half, mean + half
    half = np.quantile(centred, confidence, axis=0)
    if alternative == "greater":
        return mean - half, np.full_like(mean, np.inf)
    return np.full_like(mean, -np.inf), mean + half


def exact_sign_flip_p(values: Floats, alternative: str) -> float:
    """The same p over all 2^m sign patterns of the m values that are not 0: no error of simulation."""
    values = values[values != 0]
    patterns = (np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1
    sums = (1 - 2 * patterns) @ values
    observed = np.array([values.sum()])
    return float((sign_flip_p(sums[:, None], observed, alternative)[0] * (len(sums) + 1) - 1) / len(sums))


def _by_column(statistic: Callable[[Floats], Floats], replicates: Floats) -> Floats:
    """A statistic of every column of replicates, without the replicates in which no unit got a weight (NaN)."""
    if not np.isnan(replicates).any():
        return statistic(replicates)
    width = np.full_like(statistic(np.zeros((2, 1))), np.nan)
    parts = [column[~np.isnan(column)][:, None] for column in replicates.T]
    return np.concatenate([statistic(part) if len(part) > 1 else width for part in parts], axis=-1)


def standard_error(replicates: Floats) -> Floats:
    """Standard deviation of the replicates (B, columns)."""
    return _by_column(lambda part: np.asarray(part.std(axis=0, ddof=1)), replicates)


def bootstrap_p(replicates: Floats, alternative: str) -> Floats:
    """p of "the effect is 0" by the share of replicates on the other side of 0, +1 in both counts.

    `replicates` (B, columns) are replicates of the effect; two-sided takes twice the smaller tail.
    """

    def p_value(part: Floats) -> Floats:
        below = (1 + (part <= 0).sum(axis=0)) / (len(part) + 1)
        above = (1 + (part >= 0).sum(axis=0)) / (len(part) + 1)
        if alternative == "two-sided":
            return np.minimum(1.0, 2 * np.minimum(below, above))
        return np.asarray(below if alternative == "greater" else above)

    return _by_column(p_value, replicates)


def quantile_interval(
    replicates: Floats, estimate: Floats, *, alternative: str, confidence: float, method: str = "percentile"
) -> tuple[Floats, Floats]:
    """Percentile interval of replicates (B, columns), or the basic one: 2·estimate − the opposite percentile."""
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    low, high = _by_column(lambda part: np.asarray(np.quantile(part, [tail, 1 - tail], axis=0)), replicates)
    if method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    if alternative == "greater":
        high = np.where(np.isnan(high), np.nan, np.inf)
    elif alternative == "less":
        low = np.where(np.isnan(low), np.nan, -np.inf)
    return low, high
