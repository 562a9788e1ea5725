"""Resampling of units: random weights in fixed tiles, and the Poisson bootstrap made of them.

Contract: `columns` are arrays over the same units, in the order of the units' ids. A replicate is a
weighted sum of every column. The weight of unit u in replicate b depends only on (seed, u, b),
because weights come in fixed tiles of 1024 units × 1024 replicates, each with its own generator. So
a result is the same for any order of the rows, for any number of further replicates, and on any
machine. It needs the memory of one tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..progress import Progress
from .arms import Sample
from .effect_sizes import open_sided
from .numbers import Alternative, Floats, undefined_is_nan

# One number, or several where samples, such as the arms of an experiment, must have weights of
# their own.
Seed = int | tuple[int, ...]

TILE = 1024

# Poisson(1) from a uniform 16-bit number: how many of the 65,536 numbers mean a count of 0, 1, ..
# 7.
_POISSON_COUNTS = (24110, 24109, 12054, 4018, 1005, 200, 35, 5)

_POISSON = np.repeat(np.arange(8, dtype=np.float64), _POISSON_COUNTS)

# Replicates that are multiplied at once. Larger products are split between threads by the linear
# algebra library, which takes longer than it saves, and several times longer on a busy machine.
REPLICATES_AT_ONCE = 32

# A function that writes the weights of one tile into an array (replicates, TILE), from the tile's
# seeds.
Fill = Callable[[Floats, Seed, int, int], None]


def distinct_columns(columns: Sequence[Floats]) -> tuple[list[Floats], list[int]]:
    """Return the different arrays among some, and the place of each among these: equal ones are
    summed once."""
    found: list[Floats] = []
    places = []
    for one in columns:
        known = (j for j, other in enumerate(found) if one is other or np.array_equal(one, other))
        places.append(next(known, len(found)))
        found += [one] if places[-1] == len(found) else []
    return found, places


def by_row(**columns: Iterable[float]) -> list[dict[str, Any]]:
    """Return columns of numbers as rows by name."""
    return [
        dict(zip(columns, map(float, row), strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def poisson_sums(columns: Sequence[Floats], n_resamples: int, seed: Seed) -> Floats:
    """Return sums of every column under Poisson(1) weights per unit: an array (n_resamples,
    columns)."""
    return _tiled_sums(columns, n_resamples, seed, _poisson_tile)


def sign_sums(columns: Sequence[Floats], n_resamples: int, seed: Seed) -> Floats:
    """Return sums of every column under random signs per unit: an array (n_resamples, columns)."""
    # A sign is 1 − 2·bit, so Σ s·x = Σ x − 2 Σ bit·x, and a tile needs only bits.
    totals = np.array([values.sum() for values in columns])
    return totals - 2 * _tiled_sums(columns, n_resamples, seed, _sign_tile)


def split_sums(columns: Sequence[Floats], share: float, n_splits: int, seed: Seed) -> Floats:
    """Return sums of every column over the units that a random split puts into an arm: (n_splits,
    columns).

    Each unit is put there with the probability `share`, to 16 bits.
    """

    def fill(weights: Floats, seed: Seed, unit_tile: int, replicate_tile: int) -> None:
        raw = random_words(seed, unit_tile, replicate_tile, weights.size // 4)
        np.less(
            raw.astype("<u8", copy=False).view("<u2"), round(share * 2**16), out=weights.reshape(-1)
        )

    return _tiled_sums(columns, n_splits, seed, fill)


def _tiled_sums(columns: Sequence[Floats], n_resamples: int, seed: Seed, fill: Fill) -> Floats:
    n = len(columns[0])
    sums = np.zeros((n_resamples, len(columns)))
    # Both arrays are used again for each tile, because new ones would cost most of the time.
    block, weights = np.empty((TILE, len(columns))), np.empty((TILE, TILE))
    with Progress(n, "the resamples") as progress:
        for unit_tile, start in enumerate(range(0, n, TILE)):
            width = min(TILE, n - start)
            for j, values in enumerate(columns):
                block[:width, j] = values[start : start + width]
            for replicate_tile, first in enumerate(range(0, n_resamples, TILE)):
                rows = min(TILE, n_resamples - first)
                fill(weights[:rows], seed, unit_tile, replicate_tile)
                for start_row in range(0, rows, REPLICATES_AT_ONCE):
                    some = slice(start_row, min(start_row + REPLICATES_AT_ONCE, rows))
                    sums[first + some.start : first + some.stop] += (
                        weights[some, :width] @ block[:width]
                    )
            progress.add(width)
    return sums


def _poisson_tile(weights: Floats, seed: Seed, unit_tile: int, replicate_tile: int) -> None:
    raw = random_words(seed, unit_tile, replicate_tile, weights.size // 4)
    _POISSON.take(raw.astype("<u8", copy=False).view("<u2"), out=weights.reshape(-1), mode="clip")


def poisson_counts(n_units: int, block: int, seed: Seed) -> npt.NDArray[np.uint8]:
    """Return Poisson(1) counts per unit for one block of replicates: an array (REPLICATES_AT_ONCE,
    n_units)."""
    raw = random_words(seed, 0, block, n_units * REPLICATES_AT_ONCE // 4)
    counts: npt.NDArray[np.uint8] = _POISSON.astype(np.uint8)[
        raw.astype("<u8", copy=False).view("<u2")
    ]
    return counts.reshape(REPLICATES_AT_ONCE, n_units)


def _sign_tile(weights: Floats, seed: Seed, unit_tile: int, replicate_tile: int) -> None:
    raw = random_words(seed, unit_tile, replicate_tile, weights.size // 64)
    weights.reshape(-1)[:] = np.unpackbits(raw.astype("<u8", copy=False).view(np.uint8))


def random_words(
    seed: Seed, unit_tile: int, replicate_tile: int, words: int
) -> npt.NDArray[np.uint64]:
    """Return 64-bit random numbers for one tile."""
    # random_raw is the stream of the bit generator itself, which NumPy keeps stable over versions.
    seeds = [*([seed] if isinstance(seed, int) else seed), unit_tile, replicate_tile]
    return np.random.default_rng(seeds).bit_generator.random_raw(words)


def replicate_estimates(
    samples: Sequence[Sample],
    n_resamples: int,
    seed: Seed,
    slopes: Sequence[tuple[Floats, Floats]] | None = None,
    unordered: bool = False,
) -> Floats:
    """Return replicates (n_resamples, samples) of ΣN/ΣD − Σθ(ΣX/ΣX_d − x) over the same units; a
    missing D is 1.

    `slopes` are θ and x of the covariates that samples have. `unordered` units have no ids to sort
    by. They are sorted by their own values, which makes the replicates the same for any order of
    the rows.
    """
    ones = np.ones(len(samples[0].num))
    parts = [part for sample in samples for part in (sample, *sample.covariates)]
    given = [
        ones if values is None else values for part in parts for values in (part.num, part.den)
    ]
    columns, places = distinct_columns([ones, *given])
    if unordered:
        order = np.lexsort(columns)
        columns = [values[order] for values in columns]
    sums = poisson_sums(columns, n_resamples, seed)
    with undefined_is_nan():
        ratios = iter(
            [
                sums[:, num] / sums[:, den]
                for num, den in zip(places[1::2], places[2::2], strict=True)
            ]
        )
    replicates = np.empty((n_resamples, len(samples)))
    for j in range(len(samples)):
        replicates[:, j] = next(ratios)
        for slope, x in zip(*slopes[j], strict=True) if slopes else ():
            replicates[:, j] -= slope * (next(ratios) - x)
    # A replicate in which every unit with a denominator has weight 0 has no ratio.
    replicates[np.isinf(replicates)] = np.nan
    return replicates


def standard_error(replicates: Floats) -> Floats:
    """Return the standard deviation of the replicates (B, columns)."""
    return _by_column(lambda part: np.asarray(part.std(axis=0, ddof=1)), replicates)


def bootstrap_effect(
    replicates: Floats, alternative: Alternative, confidence: float
) -> dict[str, Floats]:
    """Return the standard error, percentile interval and p of effects from replicates (B, columns)
    of them."""
    low, high = quantile_interval(replicates, alternative=alternative, confidence=confidence)
    p, se = bootstrap_p(replicates, alternative), standard_error(replicates)
    return {"se": se, "ci_low": low, "ci_high": high, "p_value": p}


def bootstrap_p(replicates: Floats, alternative: Alternative) -> Floats:
    """Return p of "the effect is 0": the share of replicates on the other side of 0, with 1 added
    to both counts.

    `replicates` (B, columns) are replicates of the effect; those within a billionth of their spread
    are 0. A two-sided p is twice the smaller tail.
    """

    def p_value(part: Floats) -> Floats:
        near = 1e-9 * part.std(axis=0)
        below = (1 + (part <= near).sum(axis=0)) / (len(part) + 1)
        above = (1 + (part >= -near).sum(axis=0)) / (len(part) + 1)
        if alternative == "two-sided":
            return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)))
        return np.asarray(below if alternative == "greater" else above)

    return _by_column(p_value, replicates)


def quantile_interval(
    replicates: Floats, *, alternative: Alternative, confidence: float
) -> tuple[Floats, Floats]:
    """Return the percentile interval of replicates (B, columns)."""
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    low, high = _by_column(
        lambda part: np.asarray(np.quantile(part, [tail, 1 - tail], axis=0)), replicates
    )
    return open_sided(low, high, alternative)


def _by_column(statistic: Callable[[Floats], Floats], replicates: Floats) -> Floats:
    """Compute a statistic of every column of replicates, without replicates that have no value
    (NaN)."""
    if not np.isnan(replicates).any():
        return statistic(replicates)
    width = np.full_like(statistic(np.zeros((2, 1))), np.nan)
    parts = [column[~np.isnan(column)][:, None] for column in replicates.T]
    return np.concatenate([statistic(part) if len(part) > 1 else width for part in parts], axis=-1)


DrawnCounts = npt.NDArray[np.uint8]
# A function of sorted values, and of how often each is drawn in each replicate: an array
# (replicates, values).
Statistic = Callable[[Floats, DrawnCounts], Floats]


def drawn_quantile(q: float) -> Statistic:
    """Return the statistic "quantile q", linear between the drawn values as in `numpy.quantile`."""

    def statistic(x: Floats, counts: DrawnCounts) -> Floats:
        upto = counts.astype(
            np.int32
        )  # summing bytes into longer numbers would take many times longer
        np.cumsum(upto, axis=1, out=upto)
        last = np.maximum(upto[:, -1] - 1, 0)
        place = q * last
        below = np.floor(place)
        ranks = np.minimum([below, below + 1], last).astype(np.int32)
        rows = [row.searchsorted(own, side="right") for row, own in zip(upto, ranks.T, strict=True)]
        low, high = x[np.minimum(np.array(rows).T, len(x) - 1)]
        return np.where(upto[:, -1] > 0, low + (place - below) * (high - low), np.nan)

    return statistic


def drawn_std(x: Floats, counts: DrawnCounts) -> Floats:
    """Return the standard deviation of the drawn values, with divisor n − 1."""
    with undefined_is_nan():
        off, n = x - x.mean(), counts.sum(axis=1, dtype=np.float64)
        spread = counts @ off**2 - (counts @ off) ** 2 / n
        return np.where(n > 1, np.sqrt(np.maximum(spread, 0.0) / (n - 1)), np.nan)


def replicate_statistic(
    values: Floats, unit: npt.NDArray[np.int64], statistic: Statistic, n_resamples: int, seed: Seed
) -> Floats:
    """Return replicates of a statistic of some values; values of one unit (a code 0, 1, ...) are
    drawn together."""
    order = np.argsort(values, kind="stable")
    x, unit = values[order], unit[order]
    n_units, found = int(unit.max()) + 1, []
    for block in range(-(-n_resamples // REPLICATES_AT_ONCE)):
        found.append(statistic(x, poisson_counts(n_units, block, seed).take(unit, axis=1)))
    return np.concatenate(found)[:n_resamples]
