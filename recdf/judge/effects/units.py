"""The units of two arms: their columns or what is known of them, and one number for each that says
how it moves the effect.

Everything about a mean or a ratio of sums is a linear form z = Σ f·(column − mean) of the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...inputs.codes import Codes
from ...inputs.sorting import exact_sums
from ...stats.arms import Sample, both
from ...stats.numbers import Floats, undefined_is_nan
from ..aggregates import (
    Aggregates,
    FarNeeded,
    Grid,
    KnownMoments,
    RowsNeeded,
    UnitsRecord,
    span_of,
)

# Rows of which the farthest is told first.
_NEAR = 2**11
# Third moments of columns that reach as far as so many standard deviations of z are exact to 1e-6.
_MOST_SPREADS = 1000
# Units are equally far if their distances differ by less, relatively: rounding.
_ROUNDED = 1e-12
_NO_VALUES = np.zeros(0)


class Linear(NamedTuple):
    """A mean, or a ratio of sums, of columns by their place."""

    num: int
    den: int | None = None


class Quantity(NamedTuple):
    """The estimate of each cell, and the form of its units around it."""

    value: Floats
    form: Floats


def quantity(mean: Floats, one: Linear) -> Quantity:
    """A mean, or a ratio with z = (N − R·D)/mean(D), in every cell, by the means of the columns; 0
    where nothing is counted."""
    form = np.zeros(mean.shape)
    form[:, one.num] = 1
    if one.den is None:
        return Quantity(mean[:, one.num], form)
    with undefined_is_nan():
        ratio = mean[:, one.num] / mean[:, one.den]
        form[:, one.den] -= ratio  # the numerator may be the same column
        form /= mean[:, one.den, None]
    form[~np.isfinite(form)] = 0
    return Quantity(np.where(np.isfinite(ratio), ratio, 0.0), form)


def with_digits(
    metrics: Iterable[Linear],
    columns: Sequence[Floats],
    cell: Codes,
    n_cells: int,
    span: tuple[Floats, Floats],
    grid: Grid | None = None,
) -> Aggregates:
    """The columns added up, on a finer grid where a ratio varies little beside their ranges: a
    weighted mean of values that are large and near each other does."""
    found = Aggregates.of(columns, cell, n_cells, span, grid)
    forms = [quantity(found.mean, one).form for one in metrics if one.den is not None]
    if not any(map(found.too_coarse, forms)):
        return found
    return Aggregates.of(columns, cell, n_cells, span, replace(found.grid, slices=3))


class Cubes(NamedTuple):
    """Σ of the products of three columns, of which the first is 1 and the others are less their
    `middle`, in each cell: (cells, size, size, size)."""

    middle: Floats
    sums: Floats

    def with_constants(self, values: Floats) -> Cubes:
        """The same where some columns have one value in all units of a cell, as in
        `Aggregates.with_constants`."""
        new = values.shape[1] - len(self.middle)
        middle = np.append(self.middle, np.zeros(new))
        sums = np.pad(self.sums, [(0, 0), *[(0, new)] * 3])
        for c, j in np.argwhere(~np.isnan(values)).tolist():
            for axis in range(3):
                rows = np.moveaxis(sums[c], axis, 0)
                rows[1 + j] = (values[c, j] - middle[j]) * rows[0]
        return Cubes(middle, sums)

    def cells(self, at: Codes, constants: Floats) -> Cubes:
        """Those of the cells of each row of a matrix, put together, where `constants` (cells of a
        row, columns) have one value."""
        found = self._replace(sums=self.sums[at.ravel()])
        found = found.with_constants(np.tile(constants, (len(at), 1)))
        sums = found.sums.reshape(*at.shape, *found.sums.shape[1:]).sum(axis=1)
        return found._replace(sums=sums)

    def of(self, form: Floats, base: Floats, above: Floats, half: Floats, spread: Floats) -> Floats:
        """Σ z³ of z = f·(x − mean) in each cell. The mean comes as `base` and `above`, which add up
        to it: the sum of huge numbers would lose digits. So does a small `spread` of z whose
        columns have large ranges, of which `half` is given, and the rows are needed."""
        if (np.abs(form) @ half > _MOST_SPREADS * spread)[spread > 0].any():
            raise RowsNeeded
        z = np.column_stack([(form * (self.middle - base - above)).sum(axis=1), form])
        found: Floats = np.einsum("cijk,ci,cj,ck->c", self.sums, z, z, z)
        return found


class FarRows(NamedTuple):
    """The rows of units that are known by their aggregates are the farthest ones, each of which
    stands for `n_equal` units. All others of a cell have |form·x + constant| below its
    `bound`, which is 0 where there are none. `empty` units of each arm have the denominator 0, the
    `heaviest` has the largest, and `cubes` are the third moments of all."""

    n_equal: Floats
    bound: Floats
    form: Floats
    constant: Floats
    empty: Floats
    heaviest: float
    cubes: Cubes | None


@dataclass(frozen=True)
class Units:
    """The columns of the units of two arms (0 the control, 1 the treatment), or of what their
    clusters have in each stratum.

    `cluster` is the unit of each row where it may be in several strata, None where rows are units.
    `counted` are the rows of each arm, if known. The covariates of `regressed` units adjust a mean
    by a regression; without rows, `spreads` are those of its `Fit` of both arms.
    """

    columns: Sequence[Floats]
    metric: Linear
    arm: Codes
    covariates: tuple[Linear, ...] = ()
    stratum: Codes | None = None
    n_strata: int = 1
    cluster: Codes | None = None
    clustered: bool = False
    regressed: bool = False
    counted: tuple[int, int] | None = None
    known: UnitsRecord | None = None
    far: FarRows | None = None
    spreads: Floats | None = None

    @classmethod
    def of_moments(
        cls, both: KnownMoments, metric: Linear, covariates: tuple[Linear, ...]
    ) -> Units:
        """Units of which the moments of both arms are known, and no values."""
        n = both.n.astype(np.int64).tolist()
        no = np.zeros(0, np.int64)
        columns = [_NO_VALUES] * both.mean.shape[1]
        return cls(columns, metric, no, covariates, counted=(n[0], n[1]), known=both)

    @property
    def moments(self) -> KnownMoments | None:
        """Moments of both arms, where nothing else is known."""
        return self.known if isinstance(self.known, KnownMoments) else None

    @cached_property
    def cell(self) -> Codes:
        return self.arm if self.stratum is None else self.arm * self.n_strata + self.stratum

    @cached_property
    def span(self) -> tuple[Floats, Floats]:
        """The smallest and the largest value of each column."""
        return span_of(self.columns) if self.known is None else (self.known.low, self.known.high)

    @cached_property
    def record(self) -> UnitsRecord:
        if self.known is not None:
            return self.known
        n_cells = 2 * self.n_strata
        return with_digits([self.metric], self.columns, self.cell, n_cells, self.span)

    @cached_property
    def base(self) -> Floats:
        """A number near each column. Means are counted from it, so that huge ones keep their
        digits."""
        record = self.record
        return record.grid.base if isinstance(record, Aggregates) else np.zeros(len(self.columns))

    @cached_property
    def cells(self) -> Codes:
        """Cells of both arms (2, strata)."""
        return np.arange(2 * self.n_strata).reshape(2, self.n_strata)

    @cached_property
    def strata(self) -> UnitsRecord:
        """Both arms together, by stratum."""
        return self.record.cells(self.cells.T)

    @cached_property
    def centres(self) -> Floats:
        """Means of the columns above their base in each stratum, of both arms together."""
        if self.stratum is not None and self.cluster is not None:
            return self.strata.above
        n = self.record.n[self.cells, None]
        above = self.record.above[self.cells]
        return np.asarray((n * above).sum(axis=0) / np.maximum(n.sum(axis=0), 1))

    @cached_property
    def weights(self) -> Floats:
        """W_h: the share of each stratum in the denominators of both arms."""
        if self.n_strata == 1:
            return np.ones(1)
        den = self.metric.den
        total = self.record.n[self.cells].sum(axis=0)
        if den is not None:
            total = total * (self.base + self.centres)[:, den]
        return np.asarray(total / max(float(total.sum()), np.finfo(float).tiny))

    @cached_property
    def whole(self) -> Units:
        """One row per unit, as if there were no strata and covariates."""
        at = [i for i in self.metric if i is not None]
        columns = [self.columns[i] for i in at]
        metric = Linear(*range(len(at)))
        plain = self.cluster is None and self.stratum is None and not self.covariates
        if plain and at == [*range(len(self.columns))]:
            return self
        if self.cluster is None:
            record = self.record.cells(self.cells).columns(at)
            return Units(
                columns,
                metric,
                self.arm,
                clustered=self.clustered,
                counted=self.counted,
                known=record,
                far=self.far,
            )
        n = int(self.cluster.max(initial=-1)) + 1
        arm = np.zeros(n, np.int64)
        arm[self.cluster] = self.arm
        columns = [exact_sums(one, self.cluster, n) for one in columns]
        return Units(columns, metric, arm, clustered=True)

    @cached_property
    def n(self) -> tuple[int, int]:
        """Units of each arm."""
        control, treatment = self.counted or np.bincount(self.whole.arm, minlength=2).tolist()
        return control, treatment

    @cached_property
    def n_effective(self) -> tuple[float, float]:
        """How many units of equal size would carry as much as those of each arm: (Σd)²/Σd²."""
        if self.metric.den is None:
            return (float(self.n[0]), float(self.n[1]))
        whole = self.whole.record
        square = whole.n * whole.mean[:, 1] ** 2
        total = square + whole.central[:, 1, 1]
        n = np.divide(whole.n * square, total, out=np.zeros(2), where=total > 0)
        return float(n[0]), float(n[1])

    @property
    def typical(self) -> Floats:
        """How many units of the typical weight each arm has; in strata, units of the one in which a
        unit moves the mean of the arm most."""
        return 1 / self.moved_by_one.max(axis=1)

    @cached_property
    def moved_by_one(self) -> Floats:
        """How far a unit of the typical weight that is 1 above the mean of its cell (2, strata)
        moves the mean of its arm: W_h·√(mean d²)/(n·mean d), with its denominators d."""
        n = np.maximum(self.record.n[self.cells], 1)
        den = self.metric.den
        if den is None:
            return np.asarray(self.weights / n)
        mean = self.record.mean[self.cells, den]
        squares = self.record.central[self.cells, den, den] / n + mean**2
        uneven = np.divide(np.sqrt(squares), mean, out=np.ones(n.shape), where=mean > 0)
        return np.asarray(self.weights * uneven / n)

    def sample(self, arm: int) -> Sample:
        """The rows of an arm, without strata."""
        self.need_rows()
        rows = np.flatnonzero(self.arm == arm)

        def of(one: Linear) -> Sample:
            den = None if one.den is None else self.columns[one.den][rows]
            return Sample(self.columns[one.num][rows], den)

        return of(self.metric)._replace(covariates=tuple(map(of, self.covariates)))

    def need_rows(self) -> None:
        if self.far is not None:
            raise RowsNeeded

    @cached_property
    def n_empty(self) -> Floats:
        """Units of each arm whose denominator is 0."""
        if self.metric.den is None:
            return np.zeros(2)
        if self.far is not None:
            return self.far.empty
        if self.moments is not None:
            return self.moments.zeros[:, self.metric.den]
        whole = self.whole
        return np.bincount(whole.arm[whole.columns[1] == 0], minlength=2).astype(np.float64)

    @property
    def heaviest(self) -> float:
        """The largest denominator."""
        return float(self.whole.span[1][1]) if self.far is None else self.far.heaviest

    @property
    def has_denominators(self) -> bool:
        """Whether each arm has a denominator above 0 in every stratum that counts."""
        if self.metric.den is None:
            return True
        some = self.weights > 0
        means = self.record.mean[self.cells, self.metric.den]
        return bool(some.any() and (means[:, some] > 0).all())

    def scores(self, form: Floats, above: Floats, rows: Any = slice(None)) -> Floats:
        """z = Σ f·(x − mean x) of some rows, by the forms of their cells and the means above the
        base."""
        cell = self.cell[rows]
        z = None
        for j in np.flatnonzero(form.any(axis=0)).tolist():
            part = self.columns[j][rows]
            part = part - self.base[j] if self.base[j] else part
            part = part - (above[0, j] if _all_equal(above[:, j]) else above[cell, j])
            if not (form[:, j] == 1).all():
                part *= form[0, j] if _all_equal(form[:, j]) else form[cell, j]
            z = part if z is None else np.add(z, part, out=z)
        return np.zeros(len(cell)) if z is None else z


def _all_equal(values: Floats) -> bool:
    return bool((values == values[0]).all())


class Farthest(NamedTuple):
    """Some units among which are the farthest from the mean, their distances, and how many units
    each row stands for, if more than one."""

    rows: Codes
    values: Floats
    n_equal: Floats | None = None


@dataclass(frozen=True)
class UnitValues:
    """One number per unit of both arms, which says how it moves the effect: z around both arms, by
    cells of strata.

    `weights` are those of the strata in the estimate of each arm.
    """

    units: Units
    form: Floats
    above: Floats
    weights: Floats

    @classmethod
    def around_both(cls, units: Units, theta: Floats) -> UnitValues:
        """z around both arms, without what the covariates explain."""
        above = units.centres
        weights = np.array([units.weights] * 2)
        mean = units.base + above
        parts = [quantity(mean, one).form for one in (units.metric, *units.covariates)]
        form = parts[0] - sum((t * x for t, x in zip(theta, parts[1:], strict=True)), 0 * parts[0])
        return cls(units, np.concatenate([form, form]), np.concatenate([above, above]), weights)

    @classmethod
    def of(cls, values: Floats, units: Units) -> UnitValues:
        """Numbers that are no form of columns, in the strata of the units if they are in one."""
        one = units.whole
        if units.stratum is not None and units.cluster is None:
            one = replace(one, stratum=units.stratum, n_strata=units.n_strata)
        one = replace(one, columns=[values], metric=Linear(0), known=None)
        size = one.record.n[one.cells]
        weights = size / size.sum(axis=1, keepdims=True)
        n = 2 * one.n_strata
        return cls(one, np.ones((n, 1)), np.tile(-one.base, (n, 1)), weights)

    def z(self, rows: Any = slice(None)) -> Floats:
        return self.units.scores(self.form, self.above, rows)

    def at(self, rows: Any = slice(None)) -> Floats:
        """z as it counts in the mean over the units of its arm."""
        one = self.units
        return self.z(rows) if one.stratum is None else self.z(rows) * self.shares[one.cell[rows]]

    @cached_property
    def shares(self) -> Floats:
        """What a unit of each cell counts in the mean over the units of its arm."""
        size = self.units.record.n[self.units.cells]
        shares = self.weights * size.sum(axis=1, keepdims=True) / np.maximum(size, 1)
        return np.asarray(shares.ravel())

    @property
    def means(self) -> Floats:
        """Mean of z in each cell."""
        means: Floats = np.einsum("ci,ci->c", self.form, self.units.record.above - self.above)
        return means

    @property
    def centre(self) -> float:
        """Mean over the units of both arms."""
        own = (self.weights * self.means.reshape(self.weights.shape)).sum(axis=1)
        return float(own @ np.array(self.units.n)) / max(sum(self.units.n), 1)

    def arms(self) -> tuple[Floats, Floats]:
        """Those of each arm."""
        self.units.need_rows()
        values = self.at()
        return both(lambda arm: values[self.units.arm == arm], (0, 1))

    def farthest(self, k: int) -> Farthest:
        """Units among which are the k that are farthest from the mean of all."""
        values = self.at() - self.centre
        known = self.units.far
        far = np.abs(values)
        # In k blocks there are at least k units as far as the nearest of their farthest.
        ends = np.maximum.reduceat(far, np.arange(0, len(far), _NEAR)) if len(far) else far
        least = np.partition(ends, -k)[-k] if len(ends) >= k else 0.0
        rows = np.flatnonzero(far >= least * (1 - 1e-9))
        found = Farthest(rows, values[rows])
        if known is None:
            return found
        n_equal = known.n_equal[found.rows]
        if known.bound.any():
            sizes = np.repeat(np.abs(found.values), np.minimum(n_equal, k).astype(np.int64))
            sizes.sort()
            left_out = self.shares * (known.bound + self.apart(known.form, known.constant))
            # Units that are left out and as far as the k-th would share its place.
            if len(sizes) < k or sizes[-k] <= left_out[known.bound > 0].max() * (1 + _ROUNDED):
                raise FarNeeded
        return found._replace(n_equal=n_equal)

    @cached_property
    def centres(self) -> Floats:
        """The constant that is added to f·x in each cell, so that the mean of all units is 0."""
        centre = self.centre / np.maximum(self.shares, np.finfo(float).tiny)
        return np.asarray(-(self.form * (self.units.base + self.above)).sum(axis=1) - centre)

    def apart(self, form: Floats, constant: float | Floats) -> Floats:
        """A bound, in each cell, on how much z less the mean of all differs from form·x + constant,
        before a unit's share."""
        low, high = self.units.span
        forms = self.form - form
        constants = self.centres - constant
        middle = (high + low) / 2
        half = (high - low) / 2
        return np.asarray(np.abs(forms) @ half + np.abs(forms @ middle + constants))
