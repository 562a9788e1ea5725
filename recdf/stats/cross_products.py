"""Means and cross-products of several columns in several arms, in one pass over blocks that stay in
the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .numbers import Floats

# Rows of a block: its columns stay in the cache, and OpenBLAS multiplies so small blocks in one
# thread.
_BLOCK_ROWS, _MULTIPLIED = 2**13, 2**18


class CrossProducts(NamedTuple):
    """Of each arm n and sums of the columns, and of each block of rows the largest and smallest
    value of each column.

    `sums` and `products` (arms, columns, columns) are of values minus `centre`. The first column is
    1 everywhere.
    """

    centre: Floats
    products: Floats
    rows: npt.NDArray[np.int64]
    high: Floats
    low: Floats

    def n(self, arm: int) -> float:
        """How many rows an arm has."""
        return float(self.products[arm, 0, 0])

    def total(self, arm: int) -> Floats:
        """Sums of the columns of an arm; those of whole numbers are exact."""
        return np.asarray(self.products[arm, 0] + self.products[arm, 0, 0] * self.centre)

    def central(self, arm: int) -> Floats:
        """Σ(x − mean x)(y − mean y) of an arm for all pairs of columns."""
        of = self.products[arm]
        return np.asarray(of - np.outer(of[0], of[0]) / of[0, 0])


def centres(columns: Sequence[Floats]) -> Floats:
    """A number near the mean of each column, and 0 for the column of ones.

    It is a multiple of a power of two that is below the standard deviation, so that nothing is lost
    when it is subtracted, and sums of whole numbers stay exact.
    """
    found = [0.0]
    for values in columns:
        some = values[:: max(1, len(values) // 1000)]
        mean, grid = float(some.mean()), 2.0 ** np.floor(np.log2(max(float(some.std()), 1e-150)))
        found.append(float(np.round(mean / grid) * grid))
    return np.array(found)


def block_rows(n_columns: int) -> int:
    """Rows of a block of so many columns, beside the column of ones."""
    return int(min(_BLOCK_ROWS, max(_MULTIPLIED // (n_columns + 1) ** 2, 2**8)))


def cross_products(
    columns: Sequence[Floats],
    arm: npt.NDArray[np.int64],
    n_arms: int,
    centre: Floats,
    rows: range,
    order: npt.NDArray[np.int64] | None = None,
) -> CrossProducts:
    """Add up some of the rows, in this order; the results of disjoint parts are put together by
    `put_together`."""
    size = rows.step
    n = len(columns) + 1
    values = np.zeros(
        (-(-n // 4) * 4, size)
    )  # multiplications of 7 rows take twice the time of those of 8
    values[0] = 1
    products = np.zeros((n_arms, len(values), len(values)))
    high, low = (np.empty((len(rows), len(values))) for _ in range(2))
    for i, start in enumerate(rows):
        part = slice(start, min(start + size, rows.stop))
        at = part if order is None else order[part]
        block = values[:, : part.stop - part.start]
        for j, column in enumerate(columns, 1):
            np.subtract(column[at], centre[j], out=block[j])
        for k in range(n_arms):
            own = block.take(np.flatnonzero(arm[at] == k), axis=1)
            products[k] += own @ own.T
        block.max(axis=1, out=high[i])
        block.min(axis=1, out=low[i])
    return CrossProducts(
        centre, products[:, :n, :n], np.asarray(rows, np.int64), high[:, :n], low[:, :n]
    )


def put_together(parts: Sequence[CrossProducts]) -> CrossProducts:
    """Return the cross-products of all parts together."""
    first = parts[0]
    rows, high, low = (np.concatenate([part[i] for part in parts]) for i in (2, 3, 4))
    return CrossProducts(
        first.centre, np.sum([part.products for part in parts], axis=0), rows, high, low
    )
