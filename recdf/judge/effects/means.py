"""The effect on a mean or a ratio of sums: both arms from aggregates of their units.

An arm is estimated by Σ_h W_h R_h over its strata h, with R_h = ΣN/ΣD within the stratum (a mean
has D = 1), less θ·(x − x of both arms) for each covariate x, which is estimated in the same way.
Everything is a linear form z = Σ f·(column − mean): the variance is Σ z²/(n − 1)/n.

Contract: the record of the units suffices, but for clusters in several strata, the jackknife of few
clusters, and regressions in strata, which need the rows; other regressions need sums of a second
pass over them (`fits`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...errors import OptionError
from ...inputs.codes import Codes
from ...inputs.sorting import exact_sums
from ...stats.arms import MEAN_ROUNDING, Arm, Designs, Sample, both, regression_arm
from ...stats.numbers import Floats, undefined_is_nan
from ..aggregates import (
    Aggregates,
    FarNeeded,
    KnownMoments,
    RowsNeeded,
    UnitsRecord,
    span_of,
)
from .fits import fits
from .stratified_shares import ScoreTest, score_test

# Cells of the strata's dummies beside covariates: 800 MB.
MOST_DUMMIES = 10**8
# With fewer clusters than this (counted as equal ones), an arm's variance is the jackknife's.
JACKKNIFE_BELOW = 40
# Rows of which the farthest is told first.
_NEAR = 2**11
# Third moments of columns that reach as far as so many standard deviations of z are exact to 1e-6.
_MOST_SPREADS = 1000
# Units are equally far if their distances differ by less, relatively: rounding.
_ROUNDED = 1e-12
_NONE = np.zeros(0)


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


class Cubes(NamedTuple):
    """Σ of the products of three columns, of which the first is 1 and the others are less their
    `middle`, in each cell: (cells, size, size, size)."""

    middle: Floats
    sums: Floats

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
    stands for so many equal `units`. All others of a cell have |form·x + constant| below its
    `bound`, which is 0 where there are none. `empty` units of each arm have the denominator 0, and
    `cubes` are the third moments of all."""

    units: Floats
    bound: Floats
    form: Floats
    constant: Floats
    empty: Floats
    cubes: Cubes | None


@dataclass(frozen=True)
class Units:
    """The columns of the units of two arms (0 the control, 1 the treatment), or of what their
    clusters have in each stratum.

    `cluster` is the unit of each row where it may be in several strata, None where rows are units.
    `designs` are the covariates of a regression, and `counted` the rows of each arm, if known.
    `spreads` are those of `Fit` of both arms: without rows, they make it a regression.
    """

    columns: Sequence[Floats]
    metric: Linear
    arm: Codes
    covariates: tuple[Linear, ...] = ()
    stratum: Codes | None = None
    n_strata: int = 1
    cluster: Codes | None = None
    clustered: bool = False
    designs: Designs | None = None
    counted: tuple[int, int] | None = None
    known: UnitsRecord | None = None
    kept: FarRows | None = None
    spreads: Floats | None = None

    @classmethod
    def of_moments(
        cls, both: KnownMoments, metric: Linear, covariates: tuple[Linear, ...]
    ) -> Units:
        """Units of which the moments of both arms are known, and no values."""
        n, no = both.n.astype(np.int64).tolist(), np.zeros(0, np.int64)
        columns = [_NONE] * both.mean.shape[1]
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
        return Aggregates.of(self.columns, self.cell, 2 * self.n_strata, self.span)

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
        """Means of the columns in each stratum, of both arms together."""
        if self.stratum is not None and self.cluster is not None:
            return self.strata.mean
        n, mean = self.record.n[self.cells, None], self.record.mean[self.cells]
        return np.asarray((n * mean).sum(axis=0) / np.maximum(n.sum(axis=0), 1))

    @cached_property
    def weights(self) -> Floats:
        """W_h: the share of each stratum in the denominators of both arms."""
        if self.n_strata == 1:
            return np.ones(1)
        den, total = self.metric.den, self.record.n[self.cells].sum(axis=0)
        if den is not None:
            total = total * self.centres[:, den]
        return np.asarray(total / max(float(total.sum()), np.finfo(float).tiny))

    @cached_property
    def whole(self) -> Units:
        """One row per unit, as if there were no strata and covariates."""
        at = [i for i in self.metric if i is not None]
        columns, metric = [self.columns[i] for i in at], Linear(*range(len(at)))
        plain = self.cluster is None and self.stratum is None and not self.covariates
        if plain and len(columns) == len(self.columns):
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
                kept=self.kept,
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

    def sample(self, arm: int) -> Sample:
        """The rows of an arm, without strata."""
        self.need_rows()
        rows = np.flatnonzero(self.arm == arm)

        def of(one: Linear) -> Sample:
            den = None if one.den is None else self.columns[one.den][rows]
            return Sample(self.columns[one.num][rows], den)

        return of(self.metric)._replace(covariates=tuple(map(of, self.covariates)))

    def need_rows(self) -> None:
        if self.kept is not None:
            raise RowsNeeded

    @cached_property
    def n_empty(self) -> Floats:
        """Units of each arm whose denominator is 0."""
        if self.metric.den is None:
            return np.zeros(2)
        if self.kept is not None:
            return self.kept.empty
        if self.moments is not None:
            return self.moments.zeros[:, self.metric.den]
        whole = self.whole
        return np.bincount(whole.arm[whole.columns[1] == 0], minlength=2).astype(np.float64)

    @property
    def counts(self) -> bool:
        """Whether each arm has a denominator above 0 in every stratum that counts."""
        if self.metric.den is None:
            return True
        some = self.weights > 0
        means = self.record.mean[self.cells, self.metric.den]
        return bool(some.any() and (means[:, some] > 0).all())

    def scores(self, form: Floats, mean: Floats, rows: Any = slice(None)) -> Floats:
        """z = Σ f·(x − mean) of some rows, by the forms and means of their cells."""
        cell, z = self.cell[rows], None
        for j in np.flatnonzero(form.any(axis=0)).tolist():
            part = self.columns[j][rows] - (mean[0, j] if _all_equal(mean[:, j]) else mean[cell, j])
            if not (form[:, j] == 1).all():
                part *= form[0, j] if _all_equal(form[:, j]) else form[cell, j]
            z = part if z is None else np.add(z, part, out=z)
        return np.zeros(len(cell)) if z is None else z


def _all_equal(values: Floats) -> bool:
    return bool((values == values[0]).all())


class Farthest(NamedTuple):
    """Some units among which are the farthest from the mean, their distances, and the largest."""

    rows: Codes
    values: Floats
    largest: float
    units: Floats | None = None


@dataclass(frozen=True)
class UnitValues:
    """One number per unit of both arms, which says how it moves the effect: z around both arms, by
    cells of strata.

    `weights` are those of the strata in the estimate of each arm.
    """

    units: Units
    form: Floats
    mean: Floats
    weights: Floats

    @classmethod
    def around_both(cls, units: Units, theta: Floats) -> UnitValues:
        """z around both arms, without what the covariates explain."""
        mean, weights = units.centres, np.array([units.weights] * 2)
        parts = [quantity(mean, one).form for one in (units.metric, *units.covariates)]
        form = parts[0] - sum((t * x for t, x in zip(theta, parts[1:], strict=True)), 0 * parts[0])
        return cls(units, np.concatenate([form, form]), np.concatenate([mean, mean]), weights)

    @classmethod
    def of(cls, values: Floats, units: Units) -> UnitValues:
        """Numbers that are no form of columns, in the strata of the units if they are in one."""
        one = units.whole
        if units.stratum is not None and units.cluster is None:
            one = replace(one, stratum=units.stratum, n_strata=units.n_strata)
        one = replace(one, columns=[values], metric=Linear(0), known=None)
        size = one.record.n[one.cells]
        weights, n = size / size.sum(axis=1, keepdims=True), 2 * one.n_strata
        return cls(one, np.ones((n, 1)), np.zeros((n, 1)), weights)

    def z(self, rows: Any = slice(None)) -> Floats:
        return self.units.scores(self.form, self.mean, rows)

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
        means: Floats = np.einsum("ci,ci->c", self.form, self.units.record.mean - self.mean)
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
        values, known = self.at() - self.centre, self.units.kept
        far = np.abs(values)
        # In k blocks there are at least k units as far as the nearest of their farthest.
        ends = np.maximum.reduceat(far, np.arange(0, len(far), _NEAR)) if len(far) else far
        least = np.partition(ends, -k)[-k] if len(ends) >= k else 0.0
        rows = np.flatnonzero(far >= least * (1 - 1e-9))
        found = Farthest(rows, values[rows], float(far.max(initial=0.0)))
        if known is None:
            return found
        units = known.units[found.rows]
        if known.bound.any():
            sizes = np.repeat(np.abs(found.values), np.minimum(units, k).astype(np.int64))
            sizes.sort()
            left_out = self.shares * (known.bound + self.apart(known.form, known.constant))
            # Units that are left out and as far as the k-th would share its place.
            if len(sizes) < k or sizes[-k] <= left_out[known.bound > 0].max() * (1 + _ROUNDED):
                raise FarNeeded
        return found._replace(units=units)

    def apart(self, form: Floats, constant: float | Floats) -> Floats:
        """A bound, in each cell, on how much z less the mean of all differs from form·x + constant,
        before a unit's share."""
        low, high = self.units.span
        forms = self.form - form
        centre = self.centre / np.maximum(self.shares, np.finfo(float).tiny)
        constants = -(self.form * self.mean).sum(axis=1) - centre - constant
        middle, half = (high + low) / 2, (high - low) / 2
        return np.asarray(np.abs(forms) @ half + np.abs(forms @ middle + constants))


@dataclass(frozen=True)
class MeanEffect:
    """Both arms as they are (`raw`) and as they are compared (`arms`).

    `diff` keeps the digits of huge means; `theta` are the slopes of the covariates, and `how` names
    the adjustment. `centre` are the means of the covariates, and `forms` those of the units around
    their arm. Shares in strata have a `score` test.
    """

    raw: tuple[Arm, Arm]
    arms: tuple[Arm, Arm]
    diff: float
    how: str
    units: Units
    values: UnitValues
    theta: Floats = field(default_factory=lambda: _NONE)
    centre: Floats = field(default_factory=lambda: _NONE)
    forms: Floats = field(default_factory=lambda: _NONE)
    score: ScoreTest | None = None

    @property
    def slope(self) -> float:
        """That of a single covariate."""
        return float(self.theta[0]) if len(self.theta) == 1 else np.nan

    @property
    def reduction(self) -> float:
        """1 − v/v without covariate and strata; null without them."""
        before = float(self.raw[0].var + self.raw[1].var)
        known = self.how and before > 0
        return 1 - float(self.arms[0].var + self.arms[1].var) / before if known else np.nan

    def residuals(self) -> tuple[Floats, Floats]:
        """Each unit's distance from the estimate of its own arm, as the estimate counts it."""
        self.units.need_rows()
        if self.how.startswith("regression"):
            found, own = self.values.arms(), self.units
            stratum = np.zeros_like(own.arm) if own.stratum is None else own.stratum

            def off(z: Floats, arm: int) -> Floats:
                of, n = stratum[own.arm == arm], own.n_strata
                return z - (exact_sums(z, of, n) / np.maximum(np.bincount(of, minlength=n), 1))[of]

            return both(off, found, (0, 1))
        z = self.units.scores(self.forms, self.units.record.mean)
        values = contributions(self.units, z) if self.units.clustered else z
        arm = self.units.whole.arm
        return both(lambda side: values[arm == side], (0, 1))


def estimate(units: Units) -> MeanEffect:
    """Estimate both arms; the caller has checked that they have two units each and denominators
    that are not 0."""
    few = (False, False)
    if units.clustered:
        few = both(lambda n: n < JACKKNIFE_BELOW, units.n_effective)
    whole = units.whole
    raw, plain = _both_arms(whole, leave_out=few)
    if units.designs is not None:
        return _regression(units, units.designs, raw)
    if units.spreads is not None:
        return _regression_of_sums(units, units.spreads, raw)
    covariates, strata = bool(units.covariates), units.stratum is not None
    how = "+".join(["cuped"] * covariates + ["strata"] * strata)
    theta, centre = slopes(units)
    arms, forms = _both_arms(units, theta, centre, few) if how else (raw, plain)
    values = UnitValues.around_both(units, theta)
    if units.cluster is not None:
        values = UnitValues.of(contributions(units, values.z()), units)
    diff = float(arms[1].mean) - float(arms[0].mean)
    if not how and units.metric.den is None:
        diff = float(np.diff(whole.record.above[:, 0])[0])
    score, record = None, units.record
    users = units.metric.den is None and not units.clustered
    if how == "strata" and users and isinstance(record, Aggregates):
        scored = score_test(record.columns([units.metric.num]), units.weights, arms)
        arms, score = scored or (arms, None)
    return MeanEffect(raw, arms, diff, how, units, values, theta, centre, forms, score)


def arms_of_denominators(units: Units) -> tuple[tuple[float, float], tuple[Arm, Arm]]:
    """The mean denominator of each arm, and its estimate within the strata."""
    assert units.metric.den is not None
    size = units.record.n[units.cells].sum(axis=0)
    size /= size.sum()
    found = _both_arms(units, metric=Linear(units.metric.den), weights=size)[0]
    control, treatment = units.whole.record.mean[:, 1].tolist()
    return (control, treatment), found


def arms_of_part(units: Units, column: int) -> tuple[Arm, Arm]:
    """The mean per unit of the numerator or the denominator of a ratio, less what the covariates'
    columns explain."""
    columns = dict.fromkeys(i for one in units.covariates for i in one if i is not None)
    covariates = tuple(Linear(i) for i in columns)
    own = replace(units, metric=Linear(column), covariates=covariates, known=units.record)
    return _both_arms(own, *slopes(own))[0]


def influence(units: Units) -> tuple[Floats, Floats]:
    """The estimate of each arm, and what each unit adds to that of its arm."""
    found = quantity(units.record.mean, units.metric)
    z = contributions(units, units.scores(found.form, units.record.mean))
    return found.value[units.cells] @ units.weights, z / np.array(units.n)[units.whole.arm]


def arms_of_sums(units: Units) -> tuple[Arm, Arm]:
    """Sums of the values of the units of both arms, within their strata."""
    size = units.record.n[units.cells]
    return _both_arms(units, metric=Linear(0), weights=size)[0]


def contributions(units: Units, z: Floats) -> Floats:
    """z of each unit as the estimate counts it, whose mean over the units of an arm is Σ_h
    W_h·mean_h(z)."""
    if units.stratum is None:
        return z
    size = np.maximum(units.record.n[units.cells], 1)
    z = z * (units.weights * np.array(units.n)[:, None] / size).ravel()[units.cell]
    return z if units.cluster is None else exact_sums(z, units.cluster, sum(units.n))


def slopes(units: Units) -> tuple[Floats, Floats]:
    """θ of the regression of the units' z on z_x of all covariates, and the covariates' values, in
    both arms.

    A covariate that does not vary explains nothing, θ = 0. So does what follows from other
    covariates.
    """
    if not units.covariates:
        return _NONE, _NONE
    record = units.strata
    found = [quantity(record.mean, one) for one in (units.metric, *units.covariates)]
    forms = np.array([one.form for one in found])
    centre = np.array([units.weights @ one.value for one in found[1:]])
    n = record.n.sum() if units.cluster is None else sum(units.n)
    varies = []
    for one, x in zip(forms[1:], units.covariates, strict=True):
        spread = np.sqrt(record.squares(one).sum() / record.n.sum())
        size = _size_of_values(record, x, np.arange(len(record.n))[None])[0]
        varies.append(spread > MEAN_ROUNDING * size)
    forms[1:] *= np.array(varies)[:, None, None]
    share = units.weights * n / np.maximum(record.n, 1)
    if units.cluster is not None and units.stratum is not None:
        stratum, parts = units.stratum, []
        for one in forms:
            z = units.scores(np.tile(one, (2, 1)), np.tile(record.mean, (2, 1)))
            parts.append(exact_sums(z * share[stratum], units.cluster, sum(units.n)))
        products = np.array(parts) @ np.array(parts).T
    else:
        products = np.einsum("h,ahi,hij,bhj->ab", share**2, forms, record.central, forms)
    spread = np.sqrt(np.maximum(np.diag(products)[1:], 0.0))  # rounding may leave less than 0
    spread = np.where(spread > 0, spread, 1.0)
    inverse = np.linalg.pinv(
        products[1:, 1:] / spread[:, None] / spread, rcond=1e-10, hermitian=True
    )
    return inverse @ (products[0, 1:] / spread) / spread, centre


def _size_of_values(record: UnitsRecord, one: Linear, cells: Codes) -> Floats:
    """The largest value of the numerator in units of the estimate of the cells of each row; spreads
    are negligible relative to it."""
    if one.den is None:
        return np.full(len(cells), record.largest(one.num))
    n = record.n[cells]
    mean = (n * record.mean[cells, one.den]).sum(axis=1) / n.sum(axis=1)
    with np.errstate(divide="ignore"):
        return np.asarray(record.largest(one.num) / np.abs(mean))


def _both_arms(
    units: Units,
    theta: Floats = _NONE,
    centre: Floats = _NONE,
    leave_out: tuple[bool, bool] = (False, False),
    metric: Linear | None = None,
    weights: Floats | None = None,
) -> tuple[tuple[Arm, Arm], Floats]:
    """The estimates of both arms, and the forms of their units in every cell.

    The variance is Σ_g (Σ_i u_i)² over the units g and their rows i in strata h, where u =
    W_h z/√(n_h(n_h − 1)), its degrees of freedom Satterthwaite's. With `leave_out`, z is what the
    estimate changes by when the row is left out, times n_h − 1: the variance is the jackknife's
    (Bell & McCaffrey 2002), with at most the effective number of units minus 1 degrees of freedom.
    `metric` and `weights` (of the strata, perhaps by arm) are others than those of the units.
    """
    record, cells = units.record, units.cells
    covariates, metric = units.covariates if metric is None else (), metric or units.metric
    shares = units.weights if weights is None else weights
    found = [quantity(record.mean, one) for one in (metric, *covariates)]
    mean, *of_covariates = ((one.value[cells] * shares).sum(axis=1) for one in found)
    form = found[0].form
    for t, one, values, at in zip(theta, found[1:], of_covariates, centre, strict=True):
        mean, form = mean - t * (values - at), form - t * one.form
    size = record.n[cells]
    free = np.maximum(size - 1, 1)
    factor = shares**2 / (size * free)
    squares = record.squares(form)[cells]
    spread = np.sqrt(squares.sum(axis=1) / size.sum(axis=1))
    varies = spread > MEAN_ROUNDING * _size_of_values(record, metric, cells)
    parts, most = factor * squares, np.array(units.n) - 1.0
    zs = [found[0].form, *(-t * x.form for t, x in zip(theta, found[1:], strict=True))]
    for arm in (0, 1):
        if not leave_out[arm] and (units.cluster is None or units.stratum is None):
            continue
        rows = np.flatnonzero(units.arm == arm)
        z = np.zeros(len(rows))
        h = np.zeros(len(rows), np.int64) if units.stratum is None else units.stratum[rows]
        for one, of in zip(zs, (metric, *covariates), strict=True):
            part = units.scores(one, record.mean, rows)
            if leave_out[arm] and of.den is not None:
                total = (size[arm] * record.mean[cells[arm], of.den])[h]
                with undefined_is_nan():
                    left = total / (total - units.columns[of.den][rows])
                    part = part * left * ((size[arm, h] - 1) / size[arm, h])
            z += part
        u = z * np.sqrt(factor[arm])[h]
        whole = u
        if units.cluster is not None:
            whole = np.bincount(units.cluster[rows], u)[units.cluster[rows]]
        parts[arm] = np.bincount(h, u * whole, len(factor[arm]))
    var = np.where(varies, parts.sum(axis=1), 0.0)
    with undefined_is_nan():
        # By shares, since the squares of large variances overflow.
        df = 1 / ((parts / parts.sum(axis=1, keepdims=True)) ** 2 / free).sum(axis=1)
    df = np.fmin(df, most)
    for arm in (0, 1):
        if leave_out[arm]:
            df[arm] = max(min(df[arm], units.n_effective[arm] - 1), 1.0)
    return (Arm(mean[0], var[0], df[0]), Arm(mean[1], var[1], df[1])), form


def _regression(units: Units, designs: Designs, raw: tuple[Arm, Arm]) -> MeanEffect:
    """Lin's regression on all covariates, with the strata as dummies."""
    values = units.columns[units.metric.num]
    base = float(values[:1].sum())  # sums of huge values would lose their digits
    values = values - base
    numbers = both(lambda arm: values[units.arm == arm], (0, 1))
    if units.stratum is not None:
        if units.n_strata * sum(units.n) > MOST_DUMMIES:
            raise OptionError(
                f"strata has {units.n_strata:,} levels; beside covariates each is a column of "
                f"{sum(units.n):,} rows, which does not fit in memory: merge strata, or leave out "
                "one of ⟦+strata=⟧ and ⟦+covariates=⟧"
            )
        stratum, n = units.stratum, units.n_strata
        dummies = both(lambda arm: np.eye(n)[stratum[units.arm == arm]][:, 1:], (0, 1))
        designs = Designs(both(lambda *columns: np.hstack(columns), dummies, designs.arms))
    arms = both(regression_arm, numbers, designs.ready[:2])
    values, q = np.concatenate(numbers), designs.ready[2].q
    values = values - values.mean()
    ordered = np.empty(len(values))
    ordered[np.argsort(units.arm, kind="stable")] = values - q @ (q.T @ values)
    return _effect_of_regression(raw, arms, base, units, UnitValues.of(ordered, units))


def _effect_of_regression(
    raw: tuple[Arm, Arm],
    arms: tuple[Arm, Arm],
    base: float,
    units: Units,
    values: UnitValues,
    forms: Floats = _NONE,
) -> MeanEffect:
    """The effect of both arms, whose means are less a common base."""
    how = "regression" if units.stratum is None else "regression+strata"
    diff = float(arms[1].mean - arms[0].mean)
    arms = both(lambda one: one._replace(mean=one.mean + base), arms)
    return MeanEffect(raw, arms, diff, how, units, values, forms=forms)


def _regression_of_sums(units: Units, spreads: Floats, raw: tuple[Arm, Arm]) -> MeanEffect:
    """The same, of units whose sums are known."""
    assert isinstance(units.record, Aggregates)
    of_arms = fits(units.record, [units.metric.num, *(one.num for one in units.covariates)])
    n, above = (np.array([getattr(one, of) for one in of_arms]) for of in ("n", "above"))
    centre, base = n @ above / n.sum(), of_arms[0].base[0]
    arms = both(lambda side: of_arms[side].arm(centre, spreads[side]), (0, 1))
    values = UnitValues.around_both(units, slopes(units)[0])
    return _effect_of_regression(raw, arms, base, units, values, values.form)
