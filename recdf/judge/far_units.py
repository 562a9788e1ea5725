"""The few units that are farthest from the mean, which are kept of users in parts.

Each part has its own. A bound tells which units may be among the farthest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..inputs.codes import Codes
from ..inputs.sorting import run_heads
from ..stats.numbers import Floats
from .aggregates import Aggregates, RowsNeeded
from .effects.means import slopes
from .effects.units import Linear, Units, UnitValues

# The farthest units of each cell that are kept. When more than `_WAITING` have gathered, they are
# cut back to these. If more than `_MOST` are left because all are equally far, the rows are needed.
KEPT_FAR, _WAITING, _MOST = 32, 2**7, 2**17

# What tells the cells of users apart: bits of what is null, and the values of the columns of
# labels.
CellKey = tuple[Any, ...]


class CellForm(NamedTuple):
    """v = f·x + constant of the columns that vary in a cell. `wide` and `centre` are f and the
    constant of all columns, as the units have them."""

    form: Floats
    constant: float
    wide: Floats
    centre: float


# The forms of the cells of each metric, control and treatment.
FormsOfPairs = Mapping[tuple[Any, ...], Mapping[CellKey, CellForm]]


class FarForm(NamedTuple):
    """A metric by its columns, and v = f·x + constant, of which |v| is about how far a unit is from
    the mean. `of_cells` are the forms of single cells, where they are known."""

    metric: Linear
    covariates: tuple[Linear, ...]
    columns: list[int]
    form: Floats
    constant: float
    of_cells: Mapping[CellKey, CellForm]

    @classmethod
    def of(cls, metric: Linear, covariates: tuple[Linear, ...], record: Aggregates) -> FarForm:
        """The form by the aggregates of some units. It is on the columns of the metric alone."""
        at = list(dict.fromkeys(i for one in (metric, *covariates) for i in one if i is not None))
        metric, *others = (
            Linear(at.index(one.num), None if one.den is None else at.index(one.den))
            for one in (metric, *covariates)
        )
        whole = record.columns(at).cells(np.tile(np.arange(len(record.n)), (2, 1)))
        none = np.zeros(0, np.int64)
        n = int(whole.n[0])
        columns = [np.zeros(0)] * len(at)
        units = Units(columns, metric, none, tuple(others), counted=(n, n), known=whole)
        values = UnitValues.around_both(units, slopes(units)[0])
        form = values.form[0]
        constant = float(values.centres[0])
        return cls(metric, tuple(others), at, form, constant, {})

    def at(self, keys: Sequence[CellKey]) -> tuple[Floats, Floats]:
        """f and the constant of each cell."""
        found = [self.of_cells.get(key, self) for key in keys]
        return np.array([one.form for one in found]), np.array([one.constant for one in found])


@dataclass
class Far:
    """The units of each cell with |v| of at least its bound; equal ones stand once, with their
    number. `largest_left_out` is the largest |v| of all others."""

    rows: Floats
    cell: Codes
    count: Floats
    bound: Floats = field(default_factory=lambda: np.zeros(0))
    largest_left_out: float = 0.0

    @classmethod
    def none(cls, form: FarForm) -> Far:
        return cls(np.zeros((0, len(form.columns))), np.zeros(0, np.int64), np.zeros(0))

    def see(
        self, form: FarForm, columns: Sequence[Floats], cell: Codes, keys: Sequence[CellKey]
    ) -> None:
        """Take what is far of some rows."""
        if len(self.bound) < len(keys):
            self.bound = with_room(self.bound, 0, len(keys))
        own = [columns[i] for i in form.columns]
        forms, constants = form.at(keys)
        every = constants.take(cell)
        for f, x in zip(forms.T, own, strict=True):
            every += x if (f == 1).all() else f.take(cell) * x
        np.abs(every, out=every)
        may_be_far = every >= self.bound.min()
        rows = np.flatnonzero(may_be_far)
        left_out = np.where(may_be_far, 0.0, every).max(initial=self.largest_left_out)
        self.largest_left_out = float(left_out)
        if not len(rows):
            return
        far = every.take(rows)
        of = cell.take(rows)
        is_far = far >= self.bound.take(of)
        if np.count_nonzero(is_far) > _WAITING:
            for c in np.flatnonzero(np.bincount(of[is_far]) > KEPT_FAR):
                self.bound[c] = np.partition(far[is_far & (of == c)], -KEPT_FAR)[-KEPT_FAR]
            is_far = far >= self.bound.take(of)
        self.largest_left_out = float(far.max(initial=self.largest_left_out, where=~is_far))
        rows = rows[is_far]
        of = of[is_far]
        kept = np.array([x.take(rows) for x in own]).T
        if len(kept) > 1 and (kept == kept[0]).all():  # such as the ones of zeros and ones
            count = np.bincount(of).astype(np.float64)
            of = np.flatnonzero(count)
            self.add(np.tile(kept[:1], (len(of), 1)), of, count[of])
        elif len(kept):
            self.add(kept, of, np.ones(len(of)))
        if len(self.cell) > max(_WAITING, 3 * KEPT_FAR * len(keys)):
            self.cut(*form.at(keys))

    def add(self, rows: Floats, cell: Codes, count: Floats) -> None:
        self.rows = np.concatenate([self.rows, rows])
        self.cell = np.concatenate([self.cell, cell])
        self.count = np.concatenate([self.count, count])

    def cut(self, forms: Floats, constants: Floats) -> None:
        """Keep the farthest units of each cell."""
        far = np.abs((self.rows * forms[self.cell]).sum(axis=1) + constants[self.cell])
        order = np.lexsort((*self.rows.T, -far, self.cell))
        rows = self.rows[order]
        cell = self.cell[order]
        new = run_heads([cell, *rows.T])
        count = np.add.reduceat(self.count[order], new)
        rows = rows[new]
        cell = cell[new]
        far = far[order][new]
        above = np.cumsum(count)
        starts = np.searchsorted(cell, np.arange(len(self.bound)))
        before = np.concatenate([[0.0], above])[starts]
        enough = above - before[cell] >= KEPT_FAR
        for c in np.unique(cell[enough]):
            nearest = far[np.flatnonzero(enough & (cell == c))[0]]
            self.bound[c] = max(self.bound[c], nearest * (1 - 1e-9))  # equal ones, up to rounding
        kept = far >= self.bound[cell]
        self.largest_left_out = float(far.max(initial=self.largest_left_out, where=~kept))
        self.rows, self.cell, self.count = rows[kept], cell[kept], count[kept]
        if len(self.cell) > _MOST:
            raise RowsNeeded


def with_room(values: Any, axis: int, n: int) -> Any:
    """The values with zeros up to n places on one axis."""
    more = n - values.shape[axis]
    pads = [(0, more if i == axis else 0) for i in range(values.ndim)]
    return np.pad(values, pads) if more else values
