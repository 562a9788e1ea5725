"""Poisson bootstrap of statistics that no sums give, such as a median: replicates from counts of
every value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .numbers import Floats
from .resampling_weights import REPLICATES_AT_ONCE, Seed, poisson_counts

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
    with np.errstate(divide="ignore", invalid="ignore"):
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
