"""The logged rows of one group as arrays, and the walk through them in pieces.

Contract: the arrays stand in one order. `first` marks the first row of each unit; None says that
each row is a unit. `cluster` holds integer codes below `n_codes`; None says that each row is
independent of all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..inputs.sizes import sizes
from ..stats.numbers import Floats

IntCodes = npt.NDArray[np.integer]
Bools = npt.NDArray[np.bool_]


def dot(one: Floats, other: Floats) -> float:
    """Return the sum of products. On a busy machine, the linear algebra library would wait for its
    threads."""
    return float((one * other).sum())


@dataclass(frozen=True)
class LogGroup:
    """Arrays over the rows of one group of a log."""

    weight: Floats
    reward: npt.NDArray[np.floating | np.integer]
    q_logged: Floats | None = None
    q_target: Floats | None = None
    sample_weight: Floats | None = None
    position: IntCodes | None = None
    n_positions: int = 1
    first: Bools | None = None
    cluster: IntCodes | None = None
    n_codes: int = 0

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def n_units(self) -> int:
        return len(self) if self.first is None else int(np.count_nonzero(self.first))

    def pieces(self) -> Iterator[slice]:
        """Slices that cover all rows and cut no unit in two."""
        size, most = sizes().log_rows, sizes().most_log_rows
        size = size if self.cluster is None else min(max(size, self.n_codes), most)
        edges = np.arange(0, len(self), size)
        if self.first is not None:
            starts = np.flatnonzero(self.first)
            edges = np.unique(starts[np.searchsorted(starts, edges, side="right") - 1])
        for start, stop in zip(edges, [*edges[1:], len(self)], strict=True):
            yield slice(int(start), int(stop))

    @cached_property
    def n_clusters(self) -> int:
        """Clusters that occur."""
        return (
            len(self) if self.cluster is None else int(np.count_nonzero(np.bincount(self.cluster)))
        )

    def per_cluster(self, values: Callable[[slice], list[Floats]]) -> Iterator[list[Floats]]:
        """Values of clusters: piece by piece where each row is one, else the sums of all rows per
        cluster code."""
        if self.cluster is None:
            yield from map(values, self.pieces())
            return
        sums: list[Floats] = []
        for piece in self.pieces():
            codes, found = self.cluster[piece].astype(np.intp, copy=False), values(piece)
            sums = sums or [np.zeros(self.n_codes) for _ in found]
            for total, own in zip(sums, found, strict=True):
                total += np.bincount(codes, own, self.n_codes)
        yield sums

    def position_sums(self, values: Floats, piece: slice) -> Floats:
        """Sum of some rows' values per position."""
        if self.position is None:
            return np.array([values.sum()])
        return np.bincount(self.position[piece], values, self.n_positions).astype(
            np.float64, copy=False
        )

    def at_position(self, table: Floats, piece: slice) -> Floats | np.float64:
        """Return the number of each row's position, for the rows of a piece."""
        return table[0] if self.position is None else table[self.position[piece]]

    def weighted(self, values: Floats, piece: slice) -> Floats:
        """Values times the sample weights of their rows."""
        return values if self.sample_weight is None else values * self.sample_weight[piece]

    def unit_weights(self, piece: slice) -> Floats:
        """The sample weight of a unit on its first row, and 0 on the others."""
        ones = (
            np.ones(piece.stop - piece.start)
            if self.first is None
            else self.first[piece].astype(np.float64)
        )
        return self.weighted(ones, piece)

    def constant_reward(self) -> float | None:
        """Return the reward that all rows, or all units, of a weight above 0 have; None if their
        rewards vary."""
        low, high = np.full(2, np.inf), np.full(2, -np.inf)
        for piece in self.pieces():
            reward, there = (
                self.reward[piece].astype(np.float64, copy=False),
                self.weight[piece] > 0,
            )
            shown = self.unit_sums(there.astype(np.float64), piece) > 0
            for i, values in enumerate((reward[there], self.unit_sums(reward, piece)[shown])):
                low[i], high[i] = (
                    min(low[i], values.min(initial=np.inf)),
                    max(high[i], values.max(initial=-np.inf)),
                )
        same = low[high - low <= 1e-12 * np.abs(high)]  # sums of money differ by rounding alone
        return float(same[0]) if len(same) else None

    def unit_sums(self, values: Floats, piece: slice) -> Floats:
        """Sum of the values of each unit of a piece."""
        return (
            values
            if self.first is None
            else np.add.reduceat(values, np.flatnonzero(self.first[piece]))
        )
