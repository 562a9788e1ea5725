"""Random weights of units in fixed tiles: Poisson(1) counts and signs.

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
from .numbers import Floats

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
