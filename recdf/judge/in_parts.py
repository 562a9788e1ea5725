"""Users in parts, such as row groups of files and partitions of an engine: their aggregates, and
the few units that are farthest from the mean. Each thread has one batch of rows in memory.

Contract: a comparison that needs more of the rows raises `RowsNeeded`, and its caller brings the
columns into memory. What a part gives is small, and can be sent from worker to worker.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from ..inputs.codes import Codes, split
from ..inputs.data_files import OfBatches, UserParts
from ..inputs.sorting import run_heads
from ..stats.arms import both
from ..stats.numbers import Floats
from .aggregates import Aggregates, Grid, RowsNeeded, in_steps, products_of
from .effects.means import Fit, slopes
from .effects.units import Cubes, FarRows, Linear, Units, UnitValues, with_digits

# The cell that has no users: the last one. A largest index is thus that of a cell with users.
NO_USERS = -1

# Columns and ratios that have a bit each.
MOST_BITS = 62
# Rows of which third moments are taken at a time, and the most columns of one table of them.
_CUBED_ROWS, _MOST_CUBED = 2**13, 6
# Arms whose shares differ relatively by less are not skewed by their sizes.
_EQUAL_ARMS = 0.02
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

    def add(self, *more: Any) -> None:
        """Take further rows, their cells and their counts."""
        kept = self.rows, self.cell, self.count
        self.rows, self.cell, self.count = map(np.concatenate, zip(kept, more, strict=True))

    def cut(self, forms: Floats, constants: Floats) -> None:
        """Keep the farthest units of each cell."""
        far = np.abs((self.rows * forms[self.cell]).sum(axis=1) + constants[self.cell])
        order = np.lexsort((*self.rows.T, -far, self.cell))
        new = run_heads([self.cell[order], *self.rows[order].T])
        count = np.add.reduceat(self.count[order], new)
        rows, cell, far = (one[order[new]] for one in (self.rows, self.cell, far))
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


class SummedPart(NamedTuple):
    """The key of each cell, its sums and, by denominator, rows with the value 0 and the largest
    value, third moments, the farthest units by metric, and of each batch the first and the last id,
    and whether they ascend."""

    keys: list[CellKey]
    sums: Any
    empty: Floats
    most: Floats
    cubes: list[Floats]
    far: list[Far]
    ids: list[tuple[int, int, bool]]


def _made_of_part(work: OfBatches, batches: Iterator[pa.RecordBatch]) -> Any:
    """What some work makes of a part: None where the rows are needed, since an engine would report
    `RowsNeeded` of a worker as a job that failed."""
    try:
        return work(batches)
    except RowsNeeded:
        return None


def _made_of_all(parts: UserParts, work: OfBatches, names: Iterable[str]) -> list[Any]:
    """What some work makes of every part, of which some columns are read."""
    found = parts.run(partial(_made_of_part, work), [*dict.fromkeys(names)])
    if any(one is None for one in found):
        raise RowsNeeded
    return found


@dataclass(frozen=True)
class Summing:
    """Adds up the batches of a part. The rows are needed where a label is null, or a column has no
    numbers.

    Rows of which other columns are null have cells of their own, and `fill` in place of a null.
    `ratios` are numerators with their denominators: a null beside 0 is nothing to count, and has
    cells of its own, too. `forms` has one of each metric, or of each comparison of a metric.
    `cubed` are the columns of which third moments are taken, with a number near each: those of each
    form if the arms are unequal, and at the end all covariates. It may be empty.
    """

    columns: list[str]
    ratios: list[Linear]
    label_cols: list[str]
    user: str | None
    span: tuple[Floats, Floats]
    fill: Floats
    grid: Grid
    forms: list[FarForm]
    cubed: list[tuple[list[int], Floats]]
    extremes: Mapping[str, Sequence[float]]

    @classmethod
    def planned(
        cls,
        parts: UserParts,
        metrics: Sequence[tuple[Linear, tuple[Linear, ...]]],
        columns: list[str],
        label_cols: list[str],
        user: str | None,
        beside: Sequence[str],
        plain: Sequence[str],
        cell_forms: FormsOfPairs,
    ) -> Summing:
        """What is to be added up, by the range of all rows. The first rows, or the `cell_forms` of
        an earlier pass, say what is far from the mean. Columns `beside` the metrics are tested as
        covariates are. Of `plain` columns only the `extremes` are kept."""
        sample = np.array(floats_of(parts.sample, columns)[0])
        null = np.isnan(sample)  # a null is the mean of the others
        fill = sample.sum(axis=1, where=~null) / np.maximum((~null).sum(axis=1), 1)
        sample = np.where(null, fill[:, None], sample)
        extremes: dict[str, list[float]] = {}
        if (span := parts.spans(columns)) is None:
            work = partial(_ends_of_part, columns, plain)
            spans = itertools.chain(*_made_of_all(parts, work, [*columns, *plain]))
            lows, highs, of_parts = zip(*spans, strict=True)
            span = np.fmin.reduce(lows), np.fmax.reduce(highs)
            extremes = dict(zip(plain, np.fmax.reduce(of_parts).tolist(), strict=True))
        low, high = span
        if (
            parts.sample.num_rows < 4
            or not max(high.max(), -low.min()) < 2.0**200
            or len(columns) + len(metrics) > MOST_BITS
        ):
            raise RowsNeeded
        grid = Grid.of(low, high, parts.n)
        one_cell = np.zeros(parts.sample.num_rows, np.int64)
        ratios = [metric for metric, _ in metrics]
        first = with_digits(ratios, [*sample], one_cell, 1, span, grid)
        forms = [FarForm.of(*one, first) for one in metrics]
        forms = [
            forms[metric]._replace(of_cells=of_cells)
            for (metric, *_), of_cells in cell_forms.items()
        ] or forms
        past = sorted(
            {one.columns[i] for one in forms for x in one.covariates for i in x if i is not None}
            | set(map(columns.index, beside))
        )
        past = past if len(past) <= _MOST_CUBED else []
        share = np.array(parts.sample.column(label_cols[-1]).value_counts().field("counts"))
        uneven = np.ptp(share) > _EQUAL_ARMS * share.sum()
        cubed = [one.columns for one in forms if uneven]
        # Arms that are equal over all strata may still be unequal in one of them.
        if uneven or (past and len(label_cols) > 1):
            cubed.append(past)
        middles = [(at, fill[at]) for at in cubed]
        fill = np.clip(fill, low, high)
        return cls(
            columns, ratios, label_cols, user, span, fill, first.grid, forms, middles, extremes
        )

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> SummedPart:
        size = self.grid.slices * (1 + len(self.columns))
        sums = np.zeros((2, 0, size, size), np.int64)
        empty = most = np.zeros((0, len(self.columns)))
        cells: dict[CellKey, int] = {}
        far = [*map(Far.none, self.forms)]
        ids = []
        cubes = [np.zeros((0, *(1 + len(at),) * 3)) for at, _ in self.cubed]
        for batch in batches:
            if not batch.num_rows:
                continue
            columns, cell = self.read(batch, cells)
            n = len(cells)
            sums = with_room(sums, 1, n)
            sums += products_of(columns, cell, n, self.grid)
            empty, most = (with_room(one, 0, n) for one in (empty, most))
            for i in {
                one.columns[den] for one in self.forms if (den := one.metric.den) is not None
            }:
                np.maximum.at(largest := np.zeros(n), cell, columns[i])
                most[:, i] = np.maximum(most[:, i], largest)
                if self.span[0][i] <= 0:
                    zeros = np.flatnonzero(columns[i] == 0)
                    empty[:, i] += np.bincount(cell.take(zeros), minlength=n)
            for i, (at, middle) in enumerate(self.cubed):
                own = np.array([np.ones(len(cell)), *(columns[j] for j in at)])
                own[1:] -= middle[:, None]
                cubes[i] = with_room(cubes[i], 0, n) + _cubes(own, cell, n)
            for one, form in zip(far, self.forms, strict=True):
                one.see(form, columns, cell, list(cells))
            if self.user is not None:
                if batch.column(self.user).null_count:
                    raise RowsNeeded
                ids.append(_ascends(batch.column(self.user)))
        if not cells:
            return SummedPart([], None, empty, most, cubes, far, ids)
        for one, form in zip(far, self.forms, strict=True):
            one.cut(*form.at(list(cells)))
        whole = in_steps(sums, self.grid.slices)
        return SummedPart(list(cells), whole, empty, most, cubes, far, ids)

    def read(self, batch: pa.RecordBatch, cells: dict[CellKey, int]) -> tuple[list[Floats], Codes]:
        """The columns and the cell of each row."""
        columns, null = floats_of(batch, self.columns, self.fill)
        for i, (num, den) in enumerate(self.ratios, len(columns)):
            if den is not None and null is not None:
                zero = (columns[den] == 0) & (null >> den & 1 == 0)
                null |= ((null >> num & 1 == 1) & zero).astype(np.int64) << i
        return columns, self._cells(batch, null, cells)

    def _cells(self, batch: pa.RecordBatch, null: Codes | None, cells: dict[CellKey, int]) -> Codes:
        """The cell of each row; new keys become new cells."""
        values: list[list[Any]] = [[0]]
        code = None
        if null is not None:
            code, kinds = pd.factorize(null)
            values = [kinds.tolist()]
        for name in self.label_cols:
            column = batch.column(name)
            if column.null_count:
                raise RowsNeeded
            if not pa.types.is_dictionary(column.type):
                column = column.dictionary_encode()
            if column.dictionary.null_count:
                raise RowsNeeded
            own = column.indices.to_numpy(zero_copy_only=False)
            values.append(column.dictionary.to_pylist())
            # Codes of one byte have no room for products, and NumPy 1 would not make them wider.
            code = own if code is None else np.multiply(code, len(values[-1]), dtype=np.int64) + own
        assert code is not None  # the variant has a column
        table = np.bincount(code)
        present = np.flatnonzero(table)
        places = np.unravel_index(present, [*map(len, values)])
        labels = ([own[i] for i in at] for own, at in zip(values, places, strict=True))
        table[present] = [cells.setdefault(key, len(cells)) for key in zip(*labels, strict=True)]
        return code if (table == np.arange(len(table))).all() else table.take(code)


def _cubes(own: Floats, cell: Codes, n_cells: int) -> Floats:
    """Σ of the products of three rows in each cell."""
    found = np.zeros((n_cells, *(len(own),) * 3))
    size = len(own)
    for at in range(0, len(cell), _CUBED_ROWS):
        part = own[:, at : at + _CUBED_ROWS]
        of = cell[at : at + _CUBED_ROWS]
        for c in np.unique(of):
            mine = part[:, of == c]
            pairs = (mine[:, None] * mine).reshape(size * size, -1)
            found[c] += (pairs @ mine.T).reshape(size, size, size)
    return found


def floats_of(
    batch: pa.RecordBatch, names: Sequence[str], fill: Floats | None = None
) -> tuple[list[Floats], Codes | None]:
    """Columns of numbers as float64, with `fill` (or NaN) for nulls, and a bit of each row for each
    column that is null, if any is."""
    found: list[Floats] = []
    null = None
    for i, name in enumerate(names):
        column = batch.column(name)
        kind = column.type
        number = pa.types.is_floating(kind) or pa.types.is_integer(kind)
        if not (number or pa.types.is_boolean(kind)):
            raise RowsNeeded
        values = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        if column.null_count:
            here = column.is_null().to_numpy(zero_copy_only=False)
            null = np.zeros(len(here), np.int64) if null is None else null
            null |= here.astype(np.int64) << i
            values = values if fill is None else np.where(here, fill[i], values)
        found.append(values)
    return found, null


def extremes_of(batch: pa.RecordBatch, names: Sequence[str]) -> Floats:
    """Of each column the smallest value with its sign changed, the largest, and whether any is
    neither 0 nor 1. So `np.fmax.reduce` puts those of several batches together."""
    found = []
    for y in floats_of(batch, names)[0]:
        low, high = (np.fmax.reduce(one, initial=np.nan) for one in (-y, y))
        found.append((low, high, ((y != 0) & (y != 1) & ~np.isnan(y)).any()))
    return np.reshape(found, (-1, 3))


def _ends_of_part(
    columns: list[str], plain: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> list[tuple[Floats, Floats, Floats]]:
    """The smallest and the largest value of each column of a part, NaN of nulls only; and the
    extremes of `plain` columns."""
    found = []
    for batch in batches:
        if batch.num_rows:
            values, null = floats_of(batch, columns)
            ends = (np.min, np.max) if null is None else (np.fmin.reduce, np.fmax.reduce)
            low, high = (np.array([one(x) for x in values]) for one in ends)
            found.append((low, high, extremes_of(batch, plain)))
    return found


def _ascends(ids: pa.Array) -> tuple[int, int, bool]:
    if not pa.types.is_integer(ids.type):
        return 0, 0, False
    values = ids.to_numpy(zero_copy_only=False)
    return int(values[0]), int(values[-1]), bool((values[1:] > values[:-1]).all())


class Regressed(NamedTuple):
    """The regression of a metric on covariates in one arm, as the units of a cell need it: their
    stratum, the columns of the regression, and the value of those that are constant in the cell
    (NaN of others). The sums are added to those of a `place`."""

    place: int
    fit: Fit
    stratum: int
    columns: list[int]
    constants: Floats


@dataclass(frozen=True)
class Spreads:
    """Adds up what the variances of regressions need, by the regressions that each cell is a part
    of. The sums of each place are a square matrix of this size."""

    summing: Summing
    keys: list[CellKey]
    of_cells: Mapping[int, list[Regressed]]
    sizes: list[int]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> list[Floats]:
        known = {key: i for i, key in enumerate(self.keys)}
        found = [np.zeros((size, size)) for size in self.sizes]
        for batch in batches:
            columns, cell = self.summing.read(batch, known)
            if len(known) > len(self.keys):  # a query that has other rows each time
                raise RowsNeeded
            for c, rows in enumerate(split(cell, len(self.keys))):
                for one in self.of_cells.get(c, ()) if len(rows) else ():
                    values = np.array([columns[i].take(rows) for i in one.columns])
                    constant = ~np.isnan(one.constants)
                    values[constant] = one.constants[constant, None]
                    found[one.place] += one.fit.spread(one.stratum, values)
        return found


class Tails(NamedTuple):
    """A form with the units that are farthest by it, and the third moments of its columns if these
    may matter."""

    form: FarForm
    far: Far
    cubes: Cubes | None


@dataclass(frozen=True)
class SummedUsers:
    """Aggregates of all users by cell. The last cell is `NO_USERS`, and the others have a key, and
    a row of `labels` each.

    `tails` are those of a metric, or of a comparison by metric, control and treatment. `past` are
    the columns of all covariates, and what is tested beside them.
    """

    labels: pd.DataFrame
    keys: list[CellKey]
    record: Aggregates
    empty: Floats
    most: Floats
    tails: Mapping[tuple[Any, ...], Tails]
    past: list[int]
    past_cubes: Cubes | None
    summing: Summing

    @classmethod
    def of(
        cls, parts: UserParts, summing: Summing, pairs: Iterable[tuple[Any, ...]]
    ) -> SummedUsers:
        """Add up all users; an id in several rows raises. `pairs` are the comparisons that have
        forms of their own."""
        user = summing.user
        read = [*summing.label_cols, *summing.columns, *filter(None, [user])]
        some = [one for one in _made_of_all(parts, summing, read) if one.keys]
        ends = sorted((first, last, up) for one in some for first, last, up in one.ids)
        ascend = all(up for *_, up in ends) and all(
            a[1] < b[0] for a, b in itertools.pairwise(ends)
        )
        if user is not None and not ascend and not parts.distinct(user):
            raise RowsNeeded
        place = {key: i for i, key in enumerate(dict.fromkeys(a for p in some for a in p.keys))}
        n_cells = len(place) + 1
        n_columns = len(summing.columns)
        sums = np.zeros((n_cells, 1 + n_columns, 1 + n_columns), object)
        empty, most = np.zeros((2, n_cells, n_columns))
        every_far = [*map(Far.none, summing.forms)]
        cubes = [
            Cubes(middle, np.zeros((n_cells, *(1 + len(at),) * 3))) for at, middle in summing.cubed
        ]
        for far in every_far:
            far.bound = np.zeros(n_cells)
        for part in some:
            at = np.array([place[key] for key in part.keys])
            sums[at] += part.sums
            empty[at] += part.empty
            most[at] = np.maximum(most[at], part.most)
            for total, mine in zip(cubes, part.cubes, strict=True):
                total.sums[at] += mine
            for far, own in zip(every_far, part.far, strict=True):
                far.add(own.rows, at[own.cell], own.count)
                far.bound[at] = np.maximum(far.bound[at], own.bound)
                far.largest_left_out = max(far.largest_left_out, own.largest_left_out)
        labels = parts.frame_of(
            {name: [key[i] for key in place] for i, name in enumerate(summing.label_cols, 1)}
        )
        if sums[:, 0, 0].sum() != parts.n:  # a query that has other rows each time
            raise RowsNeeded
        past = summing.cubed[-1][0] if cubes else []
        past_cubes = cubes.pop() if cubes else None
        # There may be no third moments of the forms.
        tails = itertools.starmap(Tails, itertools.zip_longest(summing.forms, every_far, cubes))
        names = [*pairs] or [(i,) for i in range(len(summing.ratios))]
        return cls(
            labels,
            [*place],
            Aggregates(summing.grid, sums, *summing.span),
            empty,
            most,
            dict(zip(names, tails, strict=True)),
            past,
            past_cubes,
            summing,
        )

    def spreads(
        self, parts: UserParts, of_cells: Mapping[int, list[Regressed]], sizes: list[int]
    ) -> list[Floats]:
        """What the variance of each regression needs, from another pass."""
        one = self.summing
        work = Spreads(one, self.keys, of_cells, sizes)
        found = _made_of_all(parts, work, [*one.label_cols, *one.columns])
        return [np.sum(of, axis=0) for of in zip(*found, strict=True)]

    def form(self, metric: int) -> FarForm:
        """A form of a metric: all have the same columns."""
        return next(one.form for key, one in self.tails.items() if key[0] == metric)

    def variants_of(self, arms: Codes) -> tuple[Any, ...]:
        """The variants of both arms, by their cells."""
        return tuple(self.keys[cells.max()][-1] for cells in arms)

    def known(self, cells: Codes, columns: list[int], constants: Floats) -> Aggregates:
        """Some columns in the cells of each row of a matrix, where `constants` (cells of a row,
        columns) have one value."""
        found = self.record.cells(cells.ravel()).columns(columns)
        found = found.with_constants(np.tile(constants, (len(cells), 1)))
        return found.cells(np.arange(cells.size).reshape(cells.shape))

    def units(
        self,
        metric: int,
        arms: Codes,
        covariates: tuple[Linear, ...],
        constants: Floats,
        stratified: bool,
    ) -> Units:
        """Both arms of a metric, whose strata are the cells of `arms` (2, strata, parts).

        `constants` (parts, columns) has what takes the place of nulls, and further columns of zeros
        and ones.
        """
        n = self.record.n[arms].sum(axis=2)
        if n.min() < 2:
            raise RowsNeeded
        pair = self.variants_of(arms) if (metric,) not in self.tails else ()
        form, far, cubes = self.tails[metric, *pair]
        n_strata = arms.shape[1]
        cells = arms.reshape(2 * n_strata, -1)
        record = self.known(cells, form.columns, constants)
        place = np.full(len(self.record.n), -1)
        part = np.zeros(len(self.record.n), np.int64)
        place[cells] = np.arange(len(cells))[:, None]
        place[NO_USERS], part[cells] = -1, np.arange(cells.shape[1])
        mine = place[far.cell] >= 0
        rows = far.rows[mine]
        of = far.cell[mine]
        arm, stratum = np.divmod(place[of], n_strata)
        den = form.metric.den
        empty, heaviest = np.zeros(2), 0.0
        if den is not None:
            empty = self.empty[arms, form.columns[den]].sum(axis=(1, 2))
            heaviest = float(self.most[arms, form.columns[den]].max())
        bound = np.minimum(far.bound[cells], far.largest_left_out)
        first = [self.keys[i] for i in cells.max(axis=1)]
        of_first = [form.of_cells[key] for key in first if key in form.of_cells]  # all, or none
        forms, form_constants = form.at(first)
        new = constants.shape[1] - len(form.columns)
        forms, rows = (np.pad(one, [(0, 0), (0, new)]) for one in (forms, rows))
        rows = np.where(np.isnan(constants[part[of]]), rows, constants[part[of]])
        if of_first:
            forms = np.array([one.wide for one in of_first])
            form_constants = np.array([one.centre for one in of_first])
        else:  # units were kept by what stood in the place of their nulls
            moved = np.nan_to_num(constants - np.pad(self.summing.fill[form.columns], (0, new)))
            bound += np.where(bound > 0, np.abs(forms) @ np.abs(moved).T, 0)
        cubes = None if cubes is None else cubes.cells(cells, constants)
        return Units(
            [*rows.T],
            form.metric,
            arm,
            covariates,
            stratum=stratum if stratified else None,
            n_strata=n_strata,
            counted=both(int, n.sum(axis=1)),
            known=record,
            far=FarRows(
                far.count[mine], bound.max(axis=1), forms, form_constants, empty, heaviest, cubes
            ),
        )
