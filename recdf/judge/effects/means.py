"""The effect on a mean or a ratio of sums: both arms from aggregates of their units.

An arm is estimated by Σ_h W_h R_h over its strata h, with R_h = ΣN/ΣD within the stratum (a mean
has D = 1), less θ·(x − x of both arms) for each covariate x, which is estimated in the same way.
Everything is a linear form z = Σ f·(column − mean): the variance is Σ z²/(n − 1)/n.

Contract: the record of the units suffices, but for clusters in several strata and the jackknife of
few clusters, which need the rows; regressions need a second look at these (`Fit`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ...inputs.codes import Codes, split
from ...inputs.sorting import exact_sums
from ...stats.arms import MEAN_ROUNDING, Arm, Effect, both, open_sided, with_coefficients
from ...stats.numbers import Alternative, Floats, Number, undefined_is_nan
from ...stats.student import t_p_value, t_quantile
from ..aggregates import LOSES_DIGITS, Aggregates, UnitsRecord
from .units import Linear, Units, UnitValues, quantity

# With fewer clusters than this (counted as equal ones), an arm's variance is the jackknife's.
JACKKNIFE_BELOW = 40
_NONE = np.zeros(0)
# A covariate of whose variance the others leave a smaller share nearly follows from them.
_LEAST_LEFT = 1e-6
# Residuals below this share of the range of the values are rounding error.
_NO_RESIDUAL = 1e-12
# Units whose residuals are taken at a time: they stay in the cache of a processor.
_FITTED_ROWS = 2**13


# ------------------------------------------------------------------------------------------
# Shares of users in strata, compared by the variance that their cells have without an effect.
#
# A cell without a single success has the variance 0 by itself, as if its share were known: a
# ramp-up with 20 users of the treatment in the first week said "better" or "worse" in up to 35 %
# of experiments without an effect. With the share p_h of both arms in stratum h (Cochran, Mantel
# and Haenszel) it is 4 to 6 %, and real effects are found more often.
#
# The interval inverts this test. An effect δ = Σ W_h δ_h moves the shares by δ_h ∝ p_h(1 − p_h),
# the same odds ratio in every stratum, and keeps the successes of both arms: p_ah(δ) = p_h +
# b_ah·δ. So the variance is v(δ) = v_0 + v_1·δ − v_2·δ², and (d − δ)² ≤ q²·v(δ) has two ends, as
# Wilson's interval of one share has.


class ScoreTest(NamedTuple):
    """The variance v_0 + v_1·δ − v_2·δ² of a difference of shares whose truth is δ."""

    constant: float
    linear: float
    square: float

    def test(
        self,
        found: Effect,
        alternative: Alternative,
        confidence: float,
        multiplier: Number | None = None,
    ) -> Effect:
        """Return the effect with the p-value and the interval of this variance."""
        diff = found.diff
        se = np.sqrt(self.constant)
        quantile = multiplier
        if quantile is None:
            quantile = np.abs(t_quantile(found.df, alternative, confidence))
        q2 = np.square(quantile)
        middle = diff + q2 * self.linear / 2
        wide = 1 + q2 * self.square
        root = np.sqrt(np.maximum(middle**2 - wide * (diff**2 - q2 * self.constant), 0.0))
        low, high = open_sided((middle - root) / wide, (middle + root) / wide, alternative)
        p = found.p_value if multiplier is not None else t_p_value(diff / se, found.df, alternative)
        return found._replace(se=se, statistic=diff / se, p_value=p, ci_low=low, ci_high=high)


def score_test(
    record: Aggregates, weights: Floats, arms: tuple[Arm, Arm]
) -> tuple[tuple[Arm, Arm], ScoreTest] | None:
    """Return both arms and the test of a mean in strata, None if its values are not all 0 or 1.

    `record` has the metric as its only column, in cells of both arms by stratum. An arm's own
    variance is the larger one in every cell, since a budget may be far from no difference.
    """
    n, mean = (one.reshape(2, -1) for one in (record.n, record.mean[:, 0]))
    if not record.only_0_and_1(0):
        return None
    total = n.sum(axis=0)
    share = (n * mean).sum(axis=0) / total
    pooled = share * (1 - share)
    if not weights @ pooled > 0:
        return None
    moves = pooled / (weights @ pooled) * np.array([-n[1], n[0]]) / total
    factor = weights**2 / n * total / np.maximum(total - 1, 1)
    test = ScoreTest(
        float((factor * pooled).sum()),
        float((factor * moves * (1 - 2 * share)).sum()),
        float((factor * moves**2).sum()),
    )
    parts = factor * np.maximum(pooled, mean * (1 - mean))
    df = parts.sum(axis=1) ** 2 / (parts**2 / np.maximum(total - 1, 1)).sum(axis=1)

    def of(arm: Arm, var: Number, free: Number) -> Arm:
        return arm._replace(var=var, df=free)

    return both(of, arms, parts.sum(axis=1), df), test


# ------------------------------------------------------------------------------------------
# The regression of a metric on covariates in each arm, from sums: the sums of the units give the
# coefficients, and another look at the units the variance of HC2.


class Fit(NamedTuple):
    """The regression of the first of some columns on the others, and on the strata, in one arm.

    It has the places of the `columns`, the units of each stratum, the means of the columns in each
    stratum as `base` and `above`, which keep the digits of huge ones, and the range of the first
    one. `root` makes of d, the others less their means in the stratum, columns u with Σ u uᵀ = 1,
    which have the `slopes`.
    """

    columns: list[int]
    n: Floats
    base: Floats
    above: Floats
    reach: float
    slopes: Floats
    root: Floats

    @classmethod
    def of(cls, record: Aggregates, strata: Codes, columns: list[int]) -> Fit:
        """The regression in cells of a record."""
        inner = record.central[strata].sum(axis=0)[np.ix_(columns, columns)]
        spread = np.sqrt(np.diag(inner)[1:])
        triangle = np.linalg.cholesky(inner[1:, 1:] / spread / spread[:, None])
        if np.diag(triangle).min(initial=1) ** 2 < _LEAST_LEFT:
            products, steps = record.exact_central(strata, columns)
            root, left = _triangle(products[1:, 1:])
            scale = np.sqrt(left.astype(np.float64))
            slopes = (root @ products[1:, 0]).astype(np.float64) / scale * steps[0]
            root = root.astype(np.float64) / scale[:, None] / steps[1:]
        else:
            root = np.linalg.inv(triangle) / spread
            slopes = root @ inner[1:, 0]
        base = record.grid.base[columns]
        above = record.above[strata][:, columns]
        reach = float(record.high[columns[0]] - record.low[columns[0]])
        return cls(columns, record.n[strata], base, above, reach, slopes, root)

    def spread(self, stratum: int, values: Floats) -> Floats:
        """Σ e²/(1 − h)·(1, u)(1, u)ᵀ of some units of a stratum, with the residuals e and the
        leverages h."""
        found = np.zeros((len(self.columns),) * 2)
        for at in range(0, values.shape[1], _FITTED_ROWS):
            one = (
                values[:, at : at + _FITTED_ROWS]
                - self.base[:, None]
                - self.above[stratum, :, None]
            )
            one[1:] = u = self.root @ one[1:]
            h = 1 / self.n[stratum] + np.einsum("in,in->n", u, u)
            squares = np.square(one[0] - self.slopes @ u)
            # A unit that is fitted exactly has no residual to learn a variance from.
            of = np.divide(squares, 1 - h, out=np.zeros(len(h)), where=h < 1 - 1e-10)
            one[0] = 1
            found += (one * of) @ one.T
        return found

    def arm(self, weights: Floats, centre: Floats, spreads: Floats) -> Arm:
        """The mean of the arm, less its base, with these weights of the strata and at a `centre` of
        the columns above their base, with the variance of HC2 by the spread of each stratum."""
        off = self.root @ (centre - weights @ self.above)[1:]
        of = np.column_stack([weights / self.n, np.tile(off, (len(self.n), 1))])
        n = self.n.sum()
        varies = np.sqrt(spreads[:, 0, 0].sum() / n) > _NO_RESIDUAL * self.reach
        var = float(np.einsum("hi,hij,hj->", of, spreads, of)) if varies else 0.0
        mean = float(weights @ self.above[:, 0] + self.slopes @ off)
        return Arm(mean, var, n - len(self.n) - len(off))


def _triangle(products: Any) -> tuple[Any, Any]:
    """L and D of fractions, with L of ones on and zeros above its diagonal, and L·products·Lᵀ = D:
    steps of Gaussian elimination."""
    size = len(products)
    both = np.hstack([products, np.eye(size, dtype=np.int64).astype(object)])
    for i in range(size):
        both[i + 1 :] -= both[i + 1 :, i : i + 1] / both[i, i] * both[i]
    return both[:, size:], np.diag(both)


def fits(units: Units) -> list[Fit]:
    """The regression of the metric in each arm on those of the covariates that have a
    coefficient."""
    record = units.record
    cells = units.cells
    assert isinstance(record, Aggregates)
    others = [one.num for one in units.covariates]
    left = record.central[cells].sum(axis=1)[:, others][..., others]
    largest = [np.array([record.largest(i) for i in others])] * 2
    squares = np.einsum("aii->ai", record.cells(cells).central)[:, others]
    most = min(units.n) - 1 - units.n_strata
    kept = with_coefficients(list(left), squares, largest, units.n, most)
    columns = [units.metric.num, *(others[i] for i in kept)]
    return [Fit.of(record, strata, columns) for strata in cells]


def spreads_of(units: Units, of_arms: list[Fit]) -> Floats:
    """What the variance of HC2 needs (2, strata, columns, columns), from the units."""
    n_strata = units.n_strata
    found = []
    for cell, rows in enumerate(split(units.cell, 2 * n_strata)):
        arm, stratum = divmod(cell, n_strata)
        values = np.array([units.columns[i].take(rows) for i in of_arms[arm].columns])
        found.append(of_arms[arm].spread(stratum, values))
    return np.array(found).reshape(2, n_strata, *found[0].shape)


# ------------------------------------------------------------------------------------------
# Both arms.


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
        z = self.units.scores(self.forms, self.units.record.above)
        values = contributions(self.units, z) if self.units.clustered else z
        arm = self.units.whole.arm
        return both(lambda side: values[arm == side], (0, 1))


def estimate(units: Units) -> MeanEffect:
    """Estimate both arms; the caller has checked that they have two units each and denominators
    that are not 0."""
    few = both(lambda n: units.clustered and n < JACKKNIFE_BELOW, units.n_effective)
    whole = units if units.stratum is None and units.cluster is None else units.whole
    raw, plain = _both_arms(whole, leave_out=few, metric=whole.metric)
    if units.regressed:
        return _regression(units, raw)
    covariates = bool(units.covariates)
    strata = units.stratum is not None
    how = "+".join(["cuped"] * covariates + ["strata"] * strata)
    theta, centre = slopes(units)
    arms, forms = _both_arms(units, theta, centre, few) if how else (raw, plain)
    values = UnitValues.around_both(units, theta)
    if units.cluster is not None:
        values = UnitValues.of(contributions(units, values.z()), units)
    diff = float(arms[1].mean) - float(arms[0].mean)
    record = units.record
    plain_mean = not how and units.metric.den is None
    lost = plain_mean or abs(diff) <= LOSES_DIGITS * abs(float(arms[0].mean))
    if lost and isinstance(record, Aggregates):
        parts = [_differences(units, record, one) for one in (units.metric, *units.covariates)]
        diff = float(np.append(1.0, -theta) @ np.array(parts) @ units.weights)
    score = None
    users = units.metric.den is None and not units.clustered
    if how == "strata" and users and isinstance(record, Aggregates):
        scored = score_test(record.columns([units.metric.num]), units.weights, arms)
        arms, score = scored or (arms, None)
    return MeanEffect(raw, arms, diff, how, units, values, theta, centre, forms, score)


def _differences(units: Units, record: Aggregates, one: Linear) -> Floats:
    """The estimate of the treatment less that of the control in each stratum, of which huge
    estimates would lose the digits."""
    values = record.above[:, one.num]
    if one.den is not None:
        den = record.total(one.den)
        values = record.total(one.num) / np.where(den == 0, 1, den)
    control, treatment = values[units.cells]
    return np.asarray(treatment - control, np.float64)


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
    z = contributions(units, units.scores(found.form, units.record.above))
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
        stratum = units.stratum
        parts = []
        for one in forms:
            z = units.scores(np.tile(one, (2, 1)), np.tile(record.above, (2, 1)))
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
    record = units.record
    cells = units.cells
    covariates = units.covariates if metric is None else ()
    metric = metric or units.metric
    shares = units.weights if weights is None else weights
    found = [quantity(record.mean, one) for one in (metric, *covariates)]
    mean, *of_covariates = ((one.value[cells] * shares).sum(axis=1) for one in found)
    form = found[0].form
    for t, one, values, at in zip(theta, found[1:], of_covariates, centre, strict=True):
        mean = mean - t * (values - at)
        form = form - t * one.form
    size = record.n[cells]
    free = np.maximum(size - 1, 1)
    factor = shares**2 / (size * free)
    squares = record.squares(form)[cells]
    spread = np.sqrt(squares.sum(axis=1) / size.sum(axis=1))
    varies = spread > MEAN_ROUNDING * _size_of_values(record, metric, cells)
    parts = factor * squares
    most = np.array(units.n) - 1.0
    zs = [found[0].form, *(-t * x.form for t, x in zip(theta, found[1:], strict=True))]
    for arm in (0, 1):
        if not leave_out[arm] and (units.cluster is None or units.stratum is None):
            continue
        rows = np.flatnonzero(units.arm == arm)
        z = np.zeros(len(rows))
        h = np.zeros(len(rows), np.int64) if units.stratum is None else units.stratum[rows]
        for one, of in zip(zs, (metric, *covariates), strict=True):
            part = units.scores(one, record.above, rows)
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


def _regression(units: Units, raw: tuple[Arm, Arm]) -> MeanEffect:
    """Lin's regression on all covariates, and on the strata."""
    control, treatment = of_arms = fits(units)
    spreads = spreads_of(units, of_arms) if units.spreads is None else units.spreads
    centre = (control.n @ control.above + treatment.n @ treatment.above) / sum(units.n)
    arms = both(lambda side: of_arms[side].arm(units.weights, centre, spreads[side]), (0, 1))
    how = "regression" if units.stratum is None else "regression+strata"
    assert isinstance(units.strata, Aggregates)
    whole = Fit.of(units.strata, np.arange(units.n_strata), control.columns)  # of both arms
    form = np.zeros((2 * units.n_strata, len(units.columns)))
    form[:, units.metric.num] = 1
    form[:, control.columns[1:]] -= whole.slopes @ whole.root
    size = units.record.n[units.cells]
    above = np.tile(units.centres, (2, 1))
    weights = size / size.sum(axis=1, keepdims=True)
    values = UnitValues(units, form, above, weights)
    diff = float(arms[1].mean - arms[0].mean)
    arms = both(lambda one: one._replace(mean=one.mean + control.base[0]), arms)
    return MeanEffect(raw, arms, diff, how, units, values, forms=values.form)
