"""Sums of products of columns in cells (arm × stratum): what means and ratios read of the units.

Rows, files, moments and engines make the same record.

Contract: the sums of parts add up. A column is a whole number of steps of a fixed grid, cut into
slices of so few bits that the products of a block have an exact sum, which is added as a whole
number. So the same rows give the same bytes in any order, and however they are cut into parts.

    x − base = unit · (s0 + s1/2^19 + s2/2^38),  |s| ≤ 2^19;  2^15 rows · 2^19 · 2^19 = 2^53
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ..inputs.codes import Codes
from ..inputs.machine import each, sizes
from ..inputs.sorting import order_of_codes
from ..stats.arms import HUGE
from ..stats.numbers import Floats

# Bits of a slice, rows of a block, and rows that a thread takes at a time.
_BITS, _BLOCK_ROWS, _PIECE = 19, 2**15, 2**19
# Two slices tell values to 4·10⁻¹² of their range. Fewer rows than this are told to the last bit,
# and so are those of a ratio that varies by less than so many steps.
_THREE_SLICES, _COARSE = 2**17, 2.0**17
# Sums are kept as hi · 2^27 + lo.
_LOW = 27
# More cells than this are summed after a sort, and not one after the other.
_FEW_CELLS = 8
# Squares and differences of ratios below this share of what they are the difference of are computed
# exactly.
LOSES_DIGITS = 1e-6


class RowsNeeded(Exception):
    """Aggregates do not suffice for what is asked."""


class FarNeeded(RowsNeeded):
    """The units that are kept may not be the farthest ones."""


@dataclass(frozen=True)
class Grid:
    """Base and unit of every column, as powers of two and their multiples, and how many slices.

    Parts that add up have one grid: that of the range of all their values.
    """

    base: Floats
    unit: Floats
    slices: int

    @classmethod
    def of(cls, low: Floats, high: Floats, n: int) -> Grid:
        """The grid of columns between these values, of n rows."""
        span = np.maximum(high - low, 0.0)
        wide = np.exp2(np.ceil(np.log2(np.where(span > 0, span, 1.0))))
        # A multiple of a power of two near the middle, so that whole numbers stay whole.
        base = np.where(span > 0, np.round((low / 2 + high / 2) / wide) * wide, low)
        return cls(base, wide / 2**_BITS, 3 if n < _THREE_SLICES else 2)


@dataclass(frozen=True)
class Aggregates:
    """`sums` (cells, 1 + columns, 1 + columns): n, Σ x and Σ x y of each cell in steps of the grid,
    as whole numbers of Python, which have any size; `low` and `high` are the range of each
    column."""

    grid: Grid
    sums: Any
    low: Floats
    high: Floats

    @classmethod
    def of(
        cls,
        columns: Sequence[Floats],
        cell: Codes,
        n_cells: int,
        span: tuple[Floats, Floats] | None = None,
        grid: Grid | None = None,
    ) -> Aggregates:
        """Add up columns without nulls; `cell` has the cell of each row."""
        low, high = span or span_of(columns)
        grid = grid or Grid.of(low, high, len(cell))

        def part(at: int) -> Codes:
            rows = slice(at, at + _PIECE)
            return products_of([one[rows] for one in columns], cell[rows], n_cells, grid)

        parts = each(part, range(0, max(len(cell), 1), _PIECE))
        return cls(grid, in_steps(np.sum(parts, axis=0), grid.slices), low, high)

    def cells(self, at: Any) -> Aggregates:
        """Some cells; those of each row of a matrix are put together."""
        found = self.sums[np.asarray(at)]
        return replace(self, sums=found if found.ndim == 3 else found.sum(axis=1))

    def columns(self, at: Sequence[int]) -> Aggregates:
        """Some columns."""
        own = list(at)
        grid = Grid(self.grid.base[own], self.grid.unit[own], self.grid.slices)
        kept = np.array([0, *(1 + j for j in own)])
        sums = self.sums[:, kept[:, None], kept]
        return Aggregates(grid, sums, self.low[own], self.high[own])

    def with_constants(self, values: Floats) -> Aggregates:
        """The same with columns that have one value in all units of a cell, where `values` (cells,
        columns) are no NaN. Further columns than there are, of zeros and ones, are new."""
        known = ~np.isnan(values)
        new = values.shape[1] - len(self.low)
        base = np.append(self.grid.base, np.zeros(new))
        one = 2.0 ** (_BITS * (self.grid.slices - 1))
        grid = Grid(base, np.append(self.grid.unit, np.full(new, one)), self.grid.slices)
        found = replace(
            self,
            grid=grid,
            sums=np.pad(self.sums, [(0, 0), (0, new), (0, new)]),
            low=np.append(self.low, np.zeros(new)),
            high=np.append(self.high, np.ones(new)),
        )
        steps = np.rint((np.where(known, values, base) - base) / found._steps)
        whole = steps.astype(np.int64).astype(object)
        sums = found.sums
        sums[:, 0, 1:] = np.where(known, sums[:, :1, 0] * whole, sums[:, 0, 1:])
        for c, j in np.argwhere(known).tolist():
            sums[c, 1 + j] = sums[c, :, 1 + j] = whole[c, j] * sums[c, 0]
        return found

    @cached_property
    def _apart(self) -> Any:
        """n Σ x y − Σ x Σ y of each cell."""
        total = self.sums[:, 0, 1:]
        return self.sums[:, :1, :1] * self.sums[:, 1:, 1:] - total[:, None] * total[:, :, None]

    @property
    def _steps(self) -> Floats:
        return self.grid.unit / 2.0 ** (_BITS * (self.grid.slices - 1))

    @cached_property
    def n(self) -> Floats:
        """Units of each cell."""
        return np.asarray(self.sums[:, 0, 0], np.float64)

    @cached_property
    def above(self) -> Floats:
        """Means of the columns less their base, which keep the digits of huge values."""
        means = self.sums[:, 0, 1:] / np.maximum(self.sums[:, :1, 0], 1)
        return np.asarray(means.astype(np.float64) * self._steps)

    @cached_property
    def mean(self) -> Floats:
        return np.asarray(self.grid.base + self.above)

    @cached_property
    def central(self) -> Floats:
        """Σ(x − mean x)(y − mean y) of each cell."""
        found = self._apart.astype(np.float64) / np.maximum(self.n, 1)[:, None, None]
        return np.asarray(found * self._steps * self._steps[:, None])

    def total(self, column: int) -> Any:
        """Σ x of each cell as fractions."""
        base, step = (Fraction(float(one[column])) for one in (self.grid.base, self._steps))
        return base * self.sums[:, 0, 0] + step * self.sums[:, 0, 1 + column]

    def exact_central(self, cells: Codes, columns: list[int]) -> tuple[Any, Floats]:
        """Σ(x − mean x)(y − mean y) of some columns within some cells as fractions, in steps of
        each column; and these steps."""
        n = np.array([Fraction(int(one)) for one in self.sums[cells, 0, 0]])
        products = (self._apart[cells] / n[:, None, None]).sum(axis=0)
        return products[np.ix_(columns, columns)], self._steps[columns]

    def squares(self, form: Floats) -> Floats:
        """Σ z² of z = Σ f·(x − mean x) in each cell; `form` is (cells, columns)."""
        found: Floats = np.einsum("ci,cij,cj->c", form, self.central, form)
        parts = np.einsum("ci,cii,ci->c", form, self.central, form)
        for c in (found <= LOSES_DIGITS * parts).nonzero()[0]:
            steps = np.array([Fraction(float(one)) for one in form[c] * self._steps])
            found[c] = float(steps @ (self._apart[c] @ steps)) / max(self.n[c], 1)
        return found

    def too_coarse(self, form: Floats) -> bool:
        """Whether z = Σ f·(x − mean x) varies too little for two slices of the columns, and yet
        varies."""
        if self.grid.slices > 2 or max(self.high.max(), -self.low.min()) >= HUGE:
            return False
        spread = np.sqrt(self.squares(form).sum() / self.n.sum())
        return bool(0 < spread < _COARSE * (np.abs(form) @ self._steps).max())

    def only_0_and_1(self, column: int) -> bool:
        """Whether all values are 0 or 1: none is outside, and they are like these."""
        inside = self.low[column] >= 0 and self.high[column] <= 1
        return bool(inside and self.like_0_and_1(column))

    def like_0_and_1(self, column: int) -> bool:
        """Whether Σ x(1 − x) is 0 in every cell."""
        base, step = (Fraction(float(one[column])) for one in (self.grid.base, self._steps))
        at = 1 + column
        n = self.sums[:, 0, 0]
        x = self.sums[:, 0, at]
        xx = self.sums[:, at, at]
        equal = n * base * (1 - base) + step * x * (1 - 2 * base) == step**2 * xx
        return bool(equal.all())

    def largest(self, column: int) -> float:
        """The largest absolute value."""
        return float(max(self.high[column], -self.low[column]))


@dataclass(frozen=True)
class KnownMoments:
    """Columns of which only the moments in each cell are known: what a test reads of `Aggregates`.

    `n` is (cells,), `central` (cells, columns, columns), all others are (cells, columns): the mean,
    the skewness, the smallest and the largest value, and how many values are 0. A number that is
    not known is NaN.
    """

    n: Floats
    mean: Floats
    central: Floats
    skewness: Floats
    lows: Floats
    highs: Floats
    zeros: Floats

    def cells(self, at: Any) -> KnownMoments:
        """Some cells; those of each row of a matrix are put together, without their skewness."""
        at = np.asarray(at)
        own = KnownMoments(*(getattr(self, one.name)[at] for one in fields(self)))
        if at.ndim == 1:
            return own
        n = own.n.sum(axis=1)
        share = own.n / np.maximum(n, 1)[:, None]
        first = own.mean[:, 0]
        mean = first + (share[..., None] * (own.mean - first[:, None])).sum(axis=1)
        apart = own.mean - mean[:, None]
        between = np.einsum("ca,cai,caj->cij", own.n, apart, apart)
        skewness = own.skewness[:, 0] if at.shape[1] == 1 else np.full_like(mean, np.nan)
        low = np.fmin.reduce(own.lows, axis=1)
        high = np.fmax.reduce(own.highs, axis=1)
        central = own.central.sum(axis=1) + between
        return KnownMoments(n, mean, central, skewness, low, high, own.zeros.sum(axis=1))

    def columns(self, at: Sequence[int]) -> KnownMoments:
        """Some columns."""
        own = np.array(list(at))
        sides = (self.mean, self.skewness, self.lows, self.highs, self.zeros)
        mean, *others = (one[:, own] for one in sides)
        return KnownMoments(self.n, mean, self.central[:, own[:, None], own], *others)

    @property
    def above(self) -> Floats:
        return self.mean

    @property
    def low(self) -> Floats:
        """The smallest value of each column; NaN if it is not known."""
        return np.asarray(self.lows.min(axis=0))

    @property
    def high(self) -> Floats:
        """The largest value of each column; NaN if it is not known."""
        return np.asarray(self.highs.max(axis=0))

    def squares(self, form: Floats) -> Floats:
        """Σ z² of z = Σ f·(x − mean x) in each cell; 0 where only rounding error is left of it."""
        found: Floats = np.einsum("ci,cij,cj->c", form, self.central, form)
        parts = np.einsum("ci,cii,ci->c", form, self.central, form)
        return np.where(found <= LOSES_DIGITS**2 * parts, 0.0, found)

    def largest(self, column: int) -> float:
        """The largest absolute value; infinite where the squares of values overflow."""
        ends = np.fmax(self.highs[:, column], -self.lows[:, column])
        ends = np.fmax(ends, np.abs(self.mean[:, column]))
        ends = np.where(np.isnan(self.central[:, column, column]), np.inf, ends)
        return float(ends[self.n > 0].max(initial=0.0))


UnitsRecord = Aggregates | KnownMoments


def span_of(columns: Sequence[Floats]) -> tuple[Floats, Floats]:
    """The smallest and the largest value of each column; 0 of none."""
    low, high = ([one(x) if len(x) else 0.0 for x in columns] for one in (np.min, np.max))
    return np.array(low), np.array(high)


def products_of(columns: Sequence[Floats], cell: Codes, n_cells: int, grid: Grid) -> Codes:
    """Products of the slices of 1 and of the columns in every cell: hi and lo."""
    size = grid.slices * (1 + len(columns))
    sums = np.zeros((2, n_cells, size, size), np.int64)
    most = min(_BLOCK_ROWS, len(cell))
    block = np.empty((size, most))
    rest = np.empty((len(columns), most))
    block[0], fine = 1, np.zeros(len(columns), bool)
    for start in range(0, len(cell), _BLOCK_ROWS):
        of = [x[start : start + _BLOCK_ROWS] for x in columns]
        at = cell[start : start + _BLOCK_ROWS]
        found = np.zeros((n_cells, size, size))
        if n_cells <= _FEW_CELLS:
            for c in range(n_cells):
                (mine,) = (at == c).nonzero()
                used = _sliced(of, mine, grid, block, rest[:, : len(mine)], fine)
                found[c, used[:, None], used] = _squared(block[: len(used), : len(mine)])
        else:
            order = order_of_codes(at, n_cells)
            present, first = np.unique(at[order], return_index=True)
            used = _sliced(of, order, grid, block, rest[:, : len(at)], fine)
            own = block[: len(used), : len(at)]
            for one, i in zip(own, used.tolist(), strict=True):
                of_cells = np.add.reduceat(one * own, first, axis=1)
                found[present[:, None], i, used] = of_cells.T
        if not np.isfinite(found.sum()):  # a part has a null that nobody knew of
            raise RowsNeeded
        whole = found.astype(np.int64)
        sums += whole >> _LOW, whole & (2**_LOW - 1)
    return sums


def _squared(own: Floats) -> Floats:
    """own · ownᵀ, where the first row is 1.

    NumPy has a routine for the product of a matrix and its own transpose, which takes twice as long
    here. So one factor lacks the first row, whose products are sums that the other rows have. Few
    columns are multiplied at a time, which OpenBLAS does in one thread: threads of small products
    wait for each other, on a busy machine for half a second.
    """
    n, length = own.shape
    step = max(1, sizes().product // n**2)
    n_runs = length // step
    many = n_runs * step
    runs = own[:, :many].reshape(n, n_runs, step).swapaxes(0, 1)
    found = (runs @ runs[:, 1:].swapaxes(1, 2)).sum(axis=0) + own[:, many:] @ own[1:, many:].T
    return np.column_stack([np.append(length, found[0]), found])


def in_steps(products: Codes, slices: int) -> Any:
    """Add up products of slices as whole numbers of steps; those of as many bits first."""
    size = products.shape[2] // slices
    parts = products.reshape(2, -1, size, slices, size, slices)
    sums: Any = 0
    for bits in range(2 * slices - 1):
        of_bits = range(max(0, bits + 1 - slices), min(slices, bits + 1))
        found = np.sum([parts[:, :, :, i, :, bits - i] for i in of_bits], axis=0)
        high, low = found.astype(object)
        sums = (sums << _BITS) + (high << _LOW) + low
    return sums


def _sliced(
    columns: list[Floats], rows: Codes, grid: Grid, block: Floats, rest: Floats, fine: Codes
) -> Codes:
    """Write the slices of some rows into the rows of the block after the first, which is 1, and
    return their places. Columns that are not `fine` yet have one slice as long as all others are 0.
    `rest` is used for what is left of the values."""
    n = len(rows)
    size = 1 + len(columns)
    for own, column in zip(rest, columns, strict=True):
        column.take(rows, out=own, mode="clip")  # the default mode would copy once more
    if grid.base.any():
        rest -= grid.base[:, None]
    rest *= 1 / grid.unit[:, None]
    rest -= np.rint(rest, out=block[1:size, :n])
    used = [grid.slices - 1, *range(grid.slices, grid.slices * size, grid.slices)]  # of 1, of each
    for j, own in enumerate(rest):
        fine[j] = fine[j] or own.any()
        for i in range(1, grid.slices if fine[j] else 1):
            own *= 2.0**_BITS
            whole = np.rint(own, out=block[len(used), :n])
            used.append(grid.slices * (j + 1) + i)
            if i + 1 < grid.slices:
                own -= whole
    return np.array(used)
