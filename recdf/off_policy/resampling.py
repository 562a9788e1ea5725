"""Poisson bootstrap over clusters: sums per cluster in, replicates of those sums out.

Contract: the weight of cluster u in replicate b depends on (seed, u, b) alone, because weights come in tiles of 1024
clusters × 1024 replicates with a generator each. So the result is the same on every machine, for any number of
replicates asked for later, and needs the memory of one tile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..inputs.progress import Progress
from .rows import Floats

TILE = 1024

# Replicates that are multiplied at once. Larger products are split between threads by the linear algebra library, which
# takes longer than it saves, and several times longer on a busy machine.
FEW = 32

# A count with the Poisson(1) distribution from a uniform 16-bit number: how many of the 65,536 numbers mean 0, 1, .. 7.
_COUNTS = (24110, 24109, 12054, 4018, 1005, 200, 35, 5)
_POISSON = np.repeat(np.arange(8, dtype=np.float64), _COUNTS)


def _fill(weights: Floats, seed: int, cluster_tile: int, replicate_tile: int) -> None:
    """Write the weights of one tile into an array (replicates, TILE). A new array for each costs most of the time."""
    # random_raw is the bit generator's own stream, which NumPy keeps stable over its versions.
    raw = np.random.default_rng([seed, cluster_tile, replicate_tile]).bit_generator.random_raw(weights.size // 4)
    _POISSON.take(raw.astype("<u8", copy=False).view("<u2"), out=weights.reshape(-1), mode="clip")


def poisson_sums(columns: Sequence[Floats], n_resamples: int, seed: int) -> Floats:
    """Sums of every column under one Poisson(1) weight per cluster: an array (n_resamples, columns)."""
    n = len(columns[0])
    sums = np.zeros((n_resamples, len(columns)))
    block, weights = np.empty((TILE, len(columns))), np.empty((TILE, TILE))
    with Progress(n, "the resamples") as progress:
        for cluster_tile, start in enumerate(range(0, n, TILE)):
            width = min(TILE, n - start)
            for j, values in enumerate(columns):
                block[:width, j] = values[start : start + width]
            for replicate_tile, first in enumerate(range(0, n_resamples, TILE)):
                rows = min(TILE, n_resamples - first)
                _fill(weights[:rows], seed, cluster_tile, replicate_tile)
                for start_row in range(0, rows, FEW):
                    some = slice(start_row, min(start_row + FEW, rows))
                    sums[first + some.start : first + some.stop] += weights[some, :width] @ block[:width]
            progress.add(width)
    return sums
