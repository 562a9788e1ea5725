"""The effect on a mean or a ratio of sums: both arms from aggregates of their units.

An arm is estimated by Σ_h W_h R_h over its strata h, with R_h = ΣN/ΣD within the stratum (a mean
has D = 1), less θ·(x − x of both arms) for each covariate x, which is estimated in the same way.
Everything is a linear form z = Σ f·(column − mean): the variance is Σ z²/(n − 1)/n.

Contract: the record of the units suffices, but for clusters in several strata and the jackknife of
few clusters, which need the rows; regressions need a second look at these (`fits`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ...inputs.codes import Codes
from ...inputs.sorting import exact_sums
from ...stats.arms import MEAN_ROUNDING, Arm, both
from ...stats.numbers import Floats, undefined_is_nan
from ..aggregates import LOSES_DIGITS, Aggregates, UnitsRecord
from .fits import Fit, fits, spreads_of
from .stratified_shares import ScoreTest, score_test
from .units import Linear, Units, UnitValues, quantity

# With fewer clusters than this (counted as equal ones), an arm's variance is the jackknife's.
JACKKNIFE_BELOW = 40
_NONE = np.zeros(0)


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
    few = (False, False)
    if units.clustered:
        few = both(lambda n: n < JACKKNIFE_BELOW, units.n_effective)
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
