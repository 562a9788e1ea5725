"""Users in parts, such as row groups of files and partitions of an engine: their aggregates, and
the few units that are farthest from the mean. Each thread has one batch of rows in memory.

Contract: a comparison that needs more of the rows raises `RowsNeeded`, and its caller brings the
columns into memory. What a part gives is small, and can be sent from worker to worker.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from ..inputs.codes import Codes
from ..inputs.data_files import UserParts
from ..stats.numbers import Floats
from .aggregates import Aggregates, Grid, RowsNeeded, in_steps, order_of_cells, products_of
from .effects.fits import Fit
from .effects.means import slopes
from .effects.units import Cubes, FarRows, Linear, Units, UnitValues, with_digits

# The farthest units of each cell that are kept. When more than `_WAITING` have gathered, they are
# cut back to these. If more than `_MOST` are left because all are equally far, the rows are needed.
# Rows are looked at in runs of `_RUN`, of which most have no value that is far.
_KEPT_FAR, _WAITING, _MOST, _RUN = 32, 2**7, 2**17, 2**9
_UNKNOWN = np.zeros(_KEPT_FAR)
Label = tuple[Any, ...]  # bits of what is null, and the values of the columns of labels

# So many labels are looked for one by one, which is faster than counting them all.
_FEW_LABELS = 8
# Columns and ratios that have a bit each.
MOST_BITS = 62
# Rows of which third moments are taken at a time, and the most columns of one table of them.
_CUBED_ROWS, _MOST_CUBED = 2**13, 6
# Arms whose shares differ relatively by less are not skewed by their sizes.
_EQUAL_ARMS = 0.02


class CellForm(NamedTuple):
    """v = f·x + constant of the columns that vary in a cell. `wide` and `centre` are f and the
    constant of all columns, as the units have them."""

    form: Floats
    constant: float
    wide: Floats
    centre: float


class FarForm(NamedTuple):
    """A metric by its columns, and v = f·x + constant, of which |v| is about how far a unit is from
    the mean. `of_cells` are the forms of single cells, where they are known. `near` has, for each
    cell, distances that are at most the largest ones of its units; they grow as threads see more of
    these."""

    metric: Linear
    covariates: tuple[Linear, ...]
    columns: list[int]
    form: Floats
    constant: float
    of_cells: Mapping[Label, CellForm]
    near: dict[Label, Floats]

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
        return cls(metric, tuple(others), at, form, constant, {}, {})

    def at(self, labels: Sequence[Label]) -> tuple[Floats, Floats]:
        """f and the constant of each cell."""
        found = [self.of_cells.get(label, (self.form, self.constant)) for label in labels]
        return np.array([one[0] for one in found]), np.array([one[1] for one in found])


@dataclass
class Far:
    """The units of each cell with |v| of at least its bound; equal ones stand once, with their
    number. `left` is the largest |v| of all that are left out."""

    rows: Floats
    cell: Codes
    count: Floats
    bound: Floats = field(default_factory=lambda: np.zeros(0))
    left: float = 0.0

    @classmethod
    def none(cls, way: FarForm) -> Far:
        return cls(np.zeros((0, len(way.columns))), np.zeros(0, np.int64), np.zeros(0))

    def see(
        self, way: FarForm, columns: Sequence[Floats], cell: Codes, labels: Sequence[Label]
    ) -> None:
        """Take what is far of some rows."""
        if len(self.bound) < len(labels):
            near = [way.near.get(one, _UNKNOWN)[0] for one in labels]
            self.bound = np.maximum(_grown(self.bound, 0, len(labels)), near)
        own = [columns[i] for i in way.columns]
        constant = 0.0
        if way.of_cells:
            forms, constants = way.at(labels)
            v = constants[cell]
            for f, x in zip(forms.T, own, strict=True):
                v += f[cell] * x
        else:
            constant = way.constant
            v = own[0] if len(own) == 1 and way.form[0] == 1 else own[0] * way.form[0]
            for f, x in zip(way.form[1:], own[1:], strict=True):
                v += f * x
        starts = np.arange(0, len(v), _RUN)
        ends = np.maximum(
            np.maximum.reduceat(v, starts) + constant, -np.minimum.reduceat(v, starts) - constant
        )
        near = ends >= self.bound.min()
        self.left = float(ends.max(initial=self.left, where=~near))
        if not near.any():
            return
        rows = (starts[near, None] + np.arange(_RUN)).ravel()
        if near[-1]:
            rows = rows[rows < len(v)]
        far = np.abs(v.take(rows) + constant)
        of = cell.take(rows)
        out = far >= self.bound.take(of)
        if np.count_nonzero(out) > _WAITING:
            for c in np.flatnonzero(np.bincount(of[out]) > _KEPT_FAR):
                self.bound[c] = np.partition(far[out & (of == c)], -_KEPT_FAR)[-_KEPT_FAR]
            out = far >= self.bound.take(of)
        self.left = float(far.max(initial=self.left, where=~out))
        rows = rows[out]
        of = of[out]
        kept = np.array([x.take(rows) for x in own]).T
        if len(kept) > 1 and (kept == kept[0]).all():  # such as the ones of zeros and ones
            count = np.bincount(of).astype(np.float64)
            of = np.flatnonzero(count)
            self.add(np.tile(kept[:1], (len(of), 1)), of, count[of])
        elif len(kept):
            self.add(kept, of, np.ones(len(of)))
        if len(self.cell) > max(_WAITING, 3 * _KEPT_FAR * len(labels)):
            self.cut(*way.at(labels))

    def add(self, rows: Floats, cell: Codes, count: Floats) -> None:
        self.rows = np.concatenate([self.rows, rows])
        self.cell = np.concatenate([self.cell, cell])
        self.count = np.concatenate([self.count, count])

    def tell(self, way: FarForm, labels: Sequence[Label]) -> None:
        """Let other parts know how far the farthest units of this one are."""
        forms, constants = way.at(labels)
        far = self.cut(forms, constants)
        for c, label in enumerate(labels):
            mine = self.cell == c
            few = np.minimum(self.count[mine], _KEPT_FAR).astype(np.int64)
            known = np.append(way.near.get(label, _UNKNOWN), far[mine].repeat(few))
            way.near[label] = np.sort(known)[-_KEPT_FAR:]

    def cut(self, forms: Floats, constants: Floats) -> Floats:
        """Keep the farthest units of each cell, and return how far they are."""
        far = np.abs((self.rows * forms[self.cell]).sum(axis=1) + constants[self.cell])
        order = np.lexsort((*self.rows.T, -far, self.cell))
        rows = self.rows[order]
        cell = self.cell[order]
        far = far[order]
        new = np.ones(len(order), bool)
        new[1:] = (cell[1:] != cell[:-1]) | (rows[1:] != rows[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        rows = rows[first]
        cell = cell[first]
        far = far[first]
        count = np.add.reduceat(self.count[order], first)
        above = np.cumsum(count)
        starts = np.searchsorted(cell, np.arange(len(self.bound)))
        before = np.concatenate([[0.0], above])[starts]
        enough = above - before[cell] >= _KEPT_FAR
        for c in np.unique(cell[enough]):
            nearest = far[np.flatnonzero(enough & (cell == c))[0]]
            self.bound[c] = max(self.bound[c], nearest * (1 - 1e-9))  # equal ones, up to rounding
        kept = far >= self.bound[cell]
        self.left = max(self.left, float(far[~kept].max(initial=0.0)))
        self.rows, self.cell, self.count = rows[kept], cell[kept], count[kept]
        if len(self.cell) > _MOST:
            raise RowsNeeded
        return np.asarray(far[kept])


class SummedPart(NamedTuple):
    """What is null in each cell and its labels, its sums and rows with the value 0, third moments,
    the farthest units by metric, and of each batch the first and the last id, and whether they
    ascend."""

    labels: list[Label]
    sums: Any
    empty: Floats
    cubes: list[Floats]
    far: list[Far]
    ids: list[tuple[int, int, bool]]


@dataclass(frozen=True)
class Summing:
    """Adds up the batches of a part; None where a label is null, or a column has no numbers.

    Rows of which other columns are null have cells of their own, and `fill` in place of a null.
    `ratios` are numerators with their denominators: a null beside 0 is nothing to count, and has
    cells of its own, too.
    """

    columns: list[str]
    ratios: list[Linear]
    labels: list[str]
    user: str | None
    span: tuple[Floats, Floats]
    fill: Floats
    grid: Grid
    ways: list[FarForm]
    cubed: list[tuple[list[int], Floats]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> SummedPart | None:
        try:
            return self._sum(batches)
        except RowsNeeded:
            return None

    def knowing(self, sample: pa.RecordBatch) -> Summing:
        """The same, where the first rows tell how far the farthest units are at least."""
        found = self([sample])
        if found is None:
            raise RowsNeeded
        ways = []
        for way, far in zip(self.ways, found.far, strict=True):
            far.cut(*way.at(found.labels))
            near = np.tile(far.bound[:, None], _KEPT_FAR)  # its units are seen again in their part
            ways.append(way._replace(near=dict(zip(found.labels, near, strict=True))))
        return replace(self, ways=ways)

    def _sum(self, batches: Iterable[pa.RecordBatch]) -> SummedPart:
        size = self.grid.slices * (1 + len(self.columns))
        sums = np.zeros((2, 0, size, size), np.int64)
        empty = np.zeros((0, len(self.columns)))
        cells: dict[Label, int] = {}
        far = [*map(Far.none, self.ways)]
        ids = []
        cubes = [np.zeros((0, *(1 + len(at),) * 3)) for at, _ in self.cubed]
        for batch in batches:
            if not batch.num_rows:
                continue
            columns, cell = self.read(batch, cells)
            n = len(cells)
            sums = _grown(sums, 1, n)
            sums += products_of(columns, cell, n, self.grid)
            empty = _grown(empty, 0, n)
            for i in {w.columns[w.metric.den] for w in self.ways if w.metric.den is not None}:
                if self.span[0][i] <= 0:
                    zeros = np.flatnonzero(columns[i] == 0)
                    empty[:, i] += np.bincount(cell.take(zeros), minlength=n)
            for i, (at, middle) in enumerate(self.cubed):
                own = np.array([np.ones(len(cell)), *(columns[j] for j in at)])
                own[1:] -= middle[:, None]
                cubes[i] = _grown(cubes[i], 0, n) + _cubes(own, cell, n)
            for one, way in zip(far, self.ways, strict=True):
                one.see(way, columns, cell, list(cells))
            if self.user is not None:
                if batch.column(self.user).null_count:
                    raise RowsNeeded
                ids.append(_ascends(batch.column(self.user)))
        if not cells:
            return SummedPart([], None, empty, cubes, far, ids)
        for one, way in zip(far, self.ways, strict=True):
            one.tell(way, list(cells))
        whole = in_steps(sums, self.grid.slices)
        return SummedPart(list(cells), whole, empty, cubes, far, ids)

    def read(self, batch: pa.RecordBatch, cells: dict[Label, int]) -> tuple[list[Floats], Codes]:
        """The columns and the cell of each row."""
        columns, null = floats_of(batch, self.columns, self.fill)
        for i, (num, den) in enumerate(self.ratios, len(columns)):
            if den is not None and null is not None:
                zero = (columns[den] == 0) & (null >> den & 1 == 0)
                null |= ((null >> num & 1 == 1) & zero).astype(np.int64) << i
        return columns, self._cells(batch, null, cells)

    def _cells(self, batch: pa.RecordBatch, null: Codes | None, cells: dict[Label, int]) -> Codes:
        """The cell of each row; new labels become new cells."""
        values: list[list[Any]] = [[0]]
        code = None
        if null is not None:
            code, kinds = pd.factorize(null)
            values = [kinds.tolist()]
        for name in self.labels:
            column = batch.column(name)
            if column.null_count:
                raise RowsNeeded
            own, found = _codes_of_labels(column)
            values.append(found)
            # Codes of one byte have no room for products, and NumPy 1 would not make them wider.
            code = own if code is None else np.multiply(code, len(found), dtype=np.int64) + own
        assert code is not None  # the variant has a column
        shape = tuple(map(len, values))
        table = np.zeros(int(np.prod(shape)), np.int64)
        few = len(table) <= _FEW_LABELS
        there = [(code == i).any() for i in range(len(table))] if few else np.bincount(code)
        for one in np.flatnonzero(there):
            places = np.unravel_index(one, shape)
            label = tuple(own[int(i)] for own, i in zip(values, places, strict=True))
            table[one] = cells.setdefault(label, len(cells))
        return code if (table == np.arange(len(table))).all() else table.take(code)


def _codes_of_labels(column: pa.Array) -> tuple[Any, list[Any]]:
    """Codes of labels, and the labels; those of one byte, such as A and B, are their own codes."""
    if column.type == pa.large_string():
        _, edges, text = column.buffers()
        ends = np.frombuffer(edges, np.int64)[column.offset : column.offset + len(column) + 1]
        if (np.diff(ends) == 1).all():
            own = np.frombuffer(text, np.uint8)[ends[0] : ends[-1]]
            first = int(own.min())
            last = int(own.max())
            return own - first, [chr(i) for i in range(first, last + 1)]
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if column.dictionary.null_count:
        raise RowsNeeded
    return column.indices.to_numpy(zero_copy_only=False), column.dictionary.to_pylist()


def _grown(values: Any, axis: int, n: int) -> Any:
    """The values with zeros up to n places on one axis."""
    more = n - values.shape[axis]
    pads = [(0, more if i == axis else 0) for i in range(values.ndim)]
    return np.pad(values, pads) if more else values


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
    batch: pa.RecordBatch, names: Sequence[str], low: Floats
) -> tuple[list[Floats], Codes | None]:
    """Columns of numbers as float64, with `low` for nulls, and a bit of each row for each column
    that is null, if any is."""
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
            values = np.where(here, low[i], values)
        found.append(values)
    return found, null


@dataclass(frozen=True)
class _Ends:
    """The smallest and the largest value of each column of a part; NaN of nulls only."""

    columns: list[str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> list[tuple[Floats, Floats]]:
        unknown = np.full(len(self.columns), np.nan)
        found = []
        for batch in batches:
            if batch.num_rows:
                values, null = floats_of(batch, self.columns, unknown)
                ends = (np.min, np.max) if null is None else (np.fmin.reduce, np.fmax.reduce)
                low, high = (np.array([one(x) for x in values]) for one in ends)
                found.append((low, high))
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
    cells: list[Label]
    of_cells: Mapping[int, list[Regressed]]
    sizes: list[int]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> list[Floats] | None:
        try:
            return self._sum(batches)
        except RowsNeeded:
            return None

    def _sum(self, batches: Iterable[pa.RecordBatch]) -> list[Floats]:
        known = {label: i for i, label in enumerate(self.cells)}
        found = [np.zeros((size, size)) for size in self.sizes]
        for batch in batches:
            columns, cell = self.summing.read(batch, known)
            if len(known) > len(self.cells):  # a query that has other rows each time
                raise RowsNeeded
            order = order_of_cells(cell, len(self.cells))
            there, starts = np.unique(cell[order], return_index=True)
            edges = starts, np.append(starts[1:], len(cell))
            for c, start, end in zip(*map(np.ndarray.tolist, (there, *edges)), strict=True):
                rows = order[start:end]
                for one in self.of_cells.get(c, ()):
                    values = np.array([columns[i].take(rows) for i in one.columns])
                    constant = ~np.isnan(one.constants)
                    values[constant] = one.constants[constant, None]
                    found[one.place] += one.fit.spread(one.stratum, values)
        return found


@dataclass(frozen=True)
class SummedUsers:
    """Aggregates of all users by cell, of which the last has no users. `labels` are those of the
    others, one row each."""

    labels: pd.DataFrame
    cells: list[Label]
    record: Aggregates
    empty: Floats
    cubes: Mapping[int, Cubes]
    far: list[Far]
    ways: list[FarForm]
    way_of: Mapping[tuple[Any, ...], int]
    past: list[int]
    summing: Summing

    @classmethod
    def of(
        cls,
        parts: UserParts,
        metrics: Sequence[tuple[Linear, tuple[Linear, ...]]],
        columns: list[str],
        labels: list[str],
        user: str | None,
        beside: Sequence[str] = (),
        known_forms: Mapping[tuple[Any, ...], Mapping[Label, CellForm]] | None = None,
    ) -> SummedUsers:
        """Add up all users; an id in several rows raises. The first rows, or an earlier pass, say
        what is far from the mean: `known_forms` of each metric, control and treatment. Columns
        `beside` the metrics are tested as covariates are."""
        fill = np.zeros(len(columns))  # a null is the mean of the others
        sample, _ = floats_of(parts.sample, columns, np.full(len(columns), np.nan))
        for i, values in enumerate(sample):
            there = values[~np.isnan(values)]
            fill[i] = there.sum() / max(len(there), 1)
            sample[i] = np.where(np.isnan(values), fill[i], values)
        if (known := parts.spans(columns)) is None:
            spans = itertools.chain(*parts.run(_Ends(columns), columns))
            lows, highs = zip(*spans, strict=True)
            known = np.fmin.reduce(lows), np.fmax.reduce(highs)
        low, high = known
        if (
            parts.sample.num_rows < 4
            or not max(high.max(), -low.min()) < 2.0**200
            or len(columns) + len(metrics) > MOST_BITS
        ):
            raise RowsNeeded
        grid = Grid.of(low, high, parts.n)
        one_cell = np.zeros(parts.sample.num_rows, np.int64)
        ratios = [metric for metric, _ in metrics]
        first = with_digits(ratios, sample, one_cell, 1, known, grid)
        ways = [FarForm.of(*one, first) for one in metrics]
        way_of = {}
        for pair, of_cells in (known_forms or {}).items():
            way_of[pair] = len(ways)
            ways.append(ways[pair[0]]._replace(of_cells=of_cells))
        past = sorted(
            {w.columns[i] for w in ways for x in w.covariates for i in x if i is not None}
            | set(map(columns.index, beside))
        )
        past = past if len(past) <= _MOST_CUBED else []
        share = np.array(parts.sample.column(labels[-1]).value_counts().field("counts"))
        uneven = np.ptp(share) > _EQUAL_ARMS * share.sum()
        # Arms that are equal over all strata may still be unequal in one of them.
        cubed = {i: one.columns for i, one in enumerate(ways) if uneven}
        cubed |= {-1: past} if uneven or (past and len(labels) > 1) else {}
        middles = [(at, fill[at]) for at in cubed.values()]
        fill = np.clip(fill, low, high)
        summing = Summing(columns, ratios, labels, user, known, fill, first.grid, ways, middles)
        summing = summing.knowing(parts.sample)
        found = parts.run(summing, [*dict.fromkeys([*labels, *columns, *filter(None, [user])])])
        if any(one is None for one in found):
            raise RowsNeeded
        some = [one for one in found if one is not None and one.labels]
        ends = sorted((first, last, up) for one in some for first, last, up in one.ids)
        ascend = all(up for *_, up in ends) and all(
            a[1] < b[0] for a, b in itertools.pairwise(ends)
        )
        if user is not None and not ascend and not parts.distinct(user):
            raise RowsNeeded
        place = {
            label: i for i, label in enumerate(dict.fromkeys(a for p in some for a in p.labels))
        }
        n_cells = len(place) + 1
        sums = np.zeros((n_cells, 1 + len(columns), 1 + len(columns)), object)
        empty = np.zeros((n_cells, len(columns)))
        far = [*map(Far.none, ways)]
        cubes = [np.zeros((n_cells, *(1 + len(at),) * 3)) for at in cubed.values()]
        for one in far:
            one.bound = np.zeros(n_cells)
        for part in some:
            at = np.array([place[label] for label in part.labels])
            sums[at] += part.sums
            empty[at] += part.empty
            for total, mine in zip(cubes, part.cubes, strict=True):
                total[at] += mine
            for whole, own in zip(far, part.far, strict=True):
                whole.add(own.rows, at[own.cell], own.count)
                whole.bound[at] = np.maximum(whole.bound[at], own.bound)
                whole.left = max(whole.left, own.left)
        frame = parts.frame_of(
            {name: [label[i] for label in place] for i, name in enumerate(labels, 1)}
        )
        if sums[:, 0, 0].sum() != parts.n:  # a query that has other rows each time
            raise RowsNeeded
        of_middles = zip(cubed, middles, cubes, strict=True)
        third = {i: Cubes(middle, sums) for i, (_, middle), sums in of_middles}
        record = Aggregates(summing.grid, sums, low, high)
        return cls(frame, [*place], record, empty, third, far, ways, way_of, past, summing)

    def spreads(
        self, parts: UserParts, of_cells: Mapping[int, list[Regressed]], sizes: list[int]
    ) -> list[Floats]:
        """What the variance of each regression needs, from another pass."""
        one = self.summing
        names = [*dict.fromkeys([*one.labels, *one.columns])]
        found = parts.run(Spreads(one, self.cells, of_cells, sizes), names)
        if any(part is None for part in found):
            raise RowsNeeded
        return [np.sum(of, axis=0) for of in zip(*found, strict=True)]

    def known(self, cells: Codes, columns: list[int], constants: Floats) -> Aggregates:
        """Some columns in the cells of each row of a matrix, where `constants` (cells of a row,
        columns) have one value."""
        found = self.record.cells(cells.ravel()).columns(columns)
        found = found.with_constants(np.tile(constants, (len(cells), 1)))
        return found.cells(np.arange(cells.size).reshape(cells.shape))

    def cubes_of(self, which: int, cells: Codes, constants: Floats) -> Cubes | None:
        """Third moments of the columns of a metric, or (−1) of all covariates, in the same way."""
        if (one := self.cubes.get(which)) is None:
            return None
        one = one._replace(sums=one.sums[cells.ravel()])
        one = one.with_constants(np.tile(constants, (len(cells), 1)))
        sums = one.sums.reshape(*cells.shape, *one.sums.shape[1:]).sum(axis=1)
        return one._replace(sums=sums)

    def units(
        self,
        metric: int,
        pair: Codes,
        covariates: tuple[Linear, ...],
        constants: Floats,
        stratified: bool,
    ) -> Units:
        """Both arms of a metric, whose strata are the cells of `pair` (2, strata, parts).

        `constants` (parts, columns) has what takes the place of nulls, and further columns of zeros
        and ones.
        """
        variants = (self.cells[one.min()][-1] for one in pair)
        which = self.way_of.get((metric, *variants), metric)
        way = self.ways[which]
        far = self.far[which]
        n_strata = pair.shape[1]
        cells = pair.reshape(2 * n_strata, -1)
        record = self.known(cells, way.columns, constants)
        if min(record.n) < 2:
            raise RowsNeeded
        n = record.n.reshape(2, -1).sum(axis=1).astype(np.int64).tolist()
        place = np.full(len(self.record.n), -1)
        part = np.zeros(len(self.record.n), np.int64)
        place[cells] = np.arange(len(cells))[:, None]
        place[-1], part[cells] = -1, np.arange(cells.shape[1])
        mine = place[far.cell] >= 0
        rows = far.rows[mine]
        of = far.cell[mine]
        arm, stratum = np.divmod(place[of], n_strata)
        den = way.metric.den
        empty = np.zeros(2) if den is None else self.empty[pair, way.columns[den]].sum(axis=(1, 2))
        bound = np.minimum(far.bound[cells], far.left)
        first = [self.cells[i] for i in cells.min(axis=1)]  # the last cell has no labels
        exact = [one for label in first if (one := way.of_cells.get(label)) is not None]
        forms, of_labels = way.at(first)
        new = constants.shape[1] - len(way.columns)
        forms, rows = (np.pad(one, [(0, 0), (0, new)]) for one in (forms, rows))
        rows = np.where(np.isnan(constants[part[of]]), rows, constants[part[of]])
        if exact:
            forms, of_labels = (np.array([one[i] for one in exact]) for i in (2, 3))
        else:  # units were kept by what stood in the place of their nulls
            moved = np.nan_to_num(constants - np.pad(self.summing.fill[way.columns], (0, new)))
            bound += np.where(bound > 0, np.abs(forms) @ np.abs(moved).T, 0)
        cubes = self.cubes_of(which, cells, constants)
        kept = FarRows(far.count[mine], bound.max(axis=1), forms, of_labels, empty, cubes)
        return Units(
            [*rows.T],
            way.metric,
            arm,
            covariates,
            stratum=stratum if stratified else None,
            n_strata=n_strata,
            counted=(n[0], n[1]),
            known=record,
            kept=kept,
        )
