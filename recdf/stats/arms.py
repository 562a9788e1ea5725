"""One arm of a comparison: its estimate, and the variance of the estimate.

One path serves means and ratios of sums, with or without clusters, strata and covariates. An arm is
estimated by Σ_h W_h R_h over its strata h, with R_h = ΣN/ΣD within the stratum (a mean has D = 1),
less θ·(x − x of both arms) for each covariate x, which is estimated in the same way.

Contract: a result that does not exist (no variance, or a sum of denominators that is 0) is NaN and
never an exception. Without strata, functions reduce the last axis (the units: users, or sums per
cluster) and broadcast over the others, so that the same code runs one experiment or thousands of
simulated ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from .moments import MEAN_ROUNDING, Moments
from .numbers import Floats, Number

StratumCodes = npt.NDArray[np.int64]
ArmResult = TypeVar("ArmResult")


class Strata(NamedTuple):
    """The stratum 0..H−1 of each row of an arm, and the share W_h of each stratum in both arms.

    A cluster in several strata has a row in each; `cluster` then has its number 0..G−1 for each
    row.
    """

    of: StratumCodes
    weights: Floats
    cluster: StratumCodes | None = None

    def sums(self, values: Floats | None = None) -> Floats:
        """Sums of some values per stratum, or the number of rows."""
        return np.bincount(self.of, values, len(self.weights)).astype(np.float64, copy=False)

    def per_unit(self, values: Floats) -> Floats:
        """The values of each unit's rows together."""
        return (
            values
            if self.cluster is None
            else np.bincount(self.cluster, values).astype(np.float64, copy=False)
        )


class Sample(NamedTuple):
    """The rows of one arm: numerators, denominators (None: a plain mean), and those of covariates.

    Each row is a unit, or what a cluster has in one of its strata.
    """

    num: Floats
    den: Floats | None = None
    covariates: tuple[Sample, ...] = ()
    strata: Strata | None = None

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """The units without a value."""
        return np.isnan(self.num) if self.den is None else np.isnan(self.num) | np.isnan(self.den)

    @property
    def n(self) -> int:
        """How many units there are."""
        cluster = None if self.strata is None else self.strata.cluster
        return len(self.num) if cluster is None else int(cluster.max(initial=-1)) + 1

    @property
    def has_denominators(self) -> bool:
        """Whether the denominators of the arm, or of each of its strata that count, have a sum
        above 0."""
        if self.den is None or self.strata is None:
            return self.den is None or bool(self.den.any())
        return bool(self.strata.sums(self.den)[self.strata.weights > 0].all())

    @property
    def n_effective(self) -> float:
        """How many units of equal size would carry as much as these clusters, or as the users of a
        ratio."""
        return effective_number(np.ones(len(self.num)) if self.den is None else self.den)

    @property
    def whole(self) -> Sample:
        """One row per unit, as if there were no strata and covariates."""
        plain = Sample(self.num, self.den)
        return plain if self.strata is None else plain.each(self.strata.per_unit)

    def within(self, strata: Strata) -> Sample:
        """The same rows, and covariates, in strata."""
        return Sample(
            self.num, self.den, tuple(one.within(strata) for one in self.covariates), strata
        )

    def take(self, units: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice) -> Sample:
        """Some of the units, without strata."""
        return self.each(lambda values: values[units])

    def each(self, function: Callable[[Floats], Floats]) -> Sample:
        """A function of all numerators and denominators, without strata."""
        den = None if self.den is None else function(self.den)
        return Sample(function(self.num), den, tuple(one.each(function) for one in self.covariates))


class Arm(NamedTuple):
    """The estimate of one arm, the variance of that estimate, and the degrees of freedom of the
    variance."""

    mean: Number
    var: Number
    df: Number


def both(
    function: Callable[..., ArmResult], *pairs: tuple[Any, Any]
) -> tuple[ArmResult, ArmResult]:
    """Return a function of the control and of the treatment."""
    control, treatment = map(function, *pairs)
    return control, treatment


def linearise(num: Floats, den: Floats | None = None) -> tuple[Number, Floats]:
    """Return the mean m = Σy/n with z = y − m, or the ratio R = ΣN/ΣD with z = (N − R·D)/mean(D).

    The variance of either estimate is Σz²/(n − 1)/n (delta method for the ratio).
    """
    if den is None:
        mean = num.mean(axis=-1)
        return mean, num - mean[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = num.sum(axis=-1) / den.sum(axis=-1)
        return ratio, (num - ratio[..., None] * den) / den.mean(axis=-1)[..., None]


def deviations(sample: Sample, leave_out: bool = False) -> tuple[Number, Floats]:
    """Return Σ W_h R_h, and z = (N − R_h D)/mean_h(D) of each row.

    With `leave_out`, z is what the estimate changes by when the row is left out, times n_h − 1. The
    variance by z is then the jackknife's. A cluster that is much larger than the others moves the
    ratio, which the delta method misses (Bell & McCaffrey 2002).
    """
    num, den, strata = sample.num, sample.den, sample.strata
    with np.errstate(divide="ignore", invalid="ignore"):
        if strata is None:
            estimate, z = linearise(num, den)
            n, total = num.shape[-1], None if den is None else den.sum(axis=-1)[..., None]
        else:
            # Where neither arm has a denominator, nothing is counted.
            size, total = strata.sums(), np.where(strata.weights > 0, strata.sums(den), 1.0)
            ratio = np.zeros(len(size))
            for _ in range(3):  # the second time adds what the first sum was rounded by
                z = num - ratio[strata.of] * (1.0 if den is None else den)
                ratio += np.where(strata.weights > 0, strata.sums(z) / total, 0.0)
            estimate = (strata.weights * ratio).sum()
            z = z if den is None else z / (total / size)[strata.of]
            n, total = size[strata.of], total[strata.of]
        if leave_out and den is not None and total is not None:
            z = z * (total / (total - den)) * ((n - 1) / n)
    return estimate, z


def contributions(sample: Sample, z: Floats) -> Floats:
    """Return z of each unit as the estimate counts it, whose mean over the units is Σ_h
    W_h·mean_h(z)."""
    if sample.strata is None:
        return z
    shares = z * (sample.strata.weights / np.maximum(sample.strata.sums(), 1))[sample.strata.of]
    return sample.strata.per_unit(shares) * sample.n


def adjusted(
    sample: Sample, theta: Floats, centre: Floats, leave_out: bool = False
) -> tuple[Number, Floats]:
    """Return m − Σθ(x_arm − x) with z − Σθ·z_x over the covariates (Deng et al. 2013)."""
    mean, z = deviations(sample, leave_out)
    for k, covariate in enumerate(sample.covariates):
        x, zx = deviations(covariate, leave_out)
        mean, z = mean - theta[..., k] * (x - centre[..., k]), z - theta[..., k, None] * zx
    return mean, z


NO_THETA = np.zeros(0)


def estimate_arm(
    sample: Sample, theta: Floats = NO_THETA, centre: Floats = NO_THETA, leave_out: bool = False
) -> Arm:
    """Return the estimate of an arm, adjusted by covariates with `theta` and `centre` as `slopes`
    returns them.

    Its variance is Σ_g (Σ_i u_i)² over the units g and their rows i in strata h, u = W_h
    z/√(n_h(n_h − 1)). The degrees of freedom are Satterthwaite's, v²/Σ(v_h²/(n_h − 1)) with v_h the
    part of each stratum. With `leave_out` they are at most the effective number of units minus 1,
    because a large cluster tells no more about the spread than a small.
    """
    mean, z = adjusted(sample, theta, centre, leave_out)
    var = _known_variance(_sum_of_squares(z), z.shape[-1], _largest(sample.num, sample.den))
    df: Number = np.float64(z.shape[-1] - 1)
    if sample.strata is not None:
        strata, size, varies = sample.strata, sample.strata.sums(), var > 0
        u = z * (strata.weights / np.sqrt(size * np.maximum(size - 1, 1)))[strata.of]
        whole = strata.per_unit(u)
        parts = strata.sums(u * (whole if strata.cluster is None else whole[strata.cluster]))
        var = np.where(varies, parts.sum(), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            df = np.fmin(
                parts.sum() ** 2 / (parts**2 / np.maximum(size - 1, 1)).sum(), sample.n - 1.0
            )
    return Arm(
        mean, var, np.maximum(np.fmin(df, sample.whole.n_effective - 1), 1.0) if leave_out else df
    )


def arm(num: Floats, den: Floats | None = None) -> Arm:
    """Return the mean or the ratio over the last axis, with its variance and n − 1 degrees of
    freedom."""
    return estimate_arm(Sample(num, den))


def pool(control: Sample, treatment: Sample) -> Sample:
    """Return the units of two arms as one sample."""

    def join(c: Any, t: Any) -> Any:
        return None if c is None or t is None else np.concatenate([c, t], axis=-1)

    strata, other = control.strata, treatment.strata
    if strata is not None and other is not None:
        clusters = [
            np.arange(len(one.of)) if one.cluster is None else one.cluster
            for one in (strata, other)
        ]
        strata = Strata(
            join(strata.of, other.of), strata.weights, join(clusters[0], clusters[1] + control.n)
        )
    covariates = tuple(map(pool, control.covariates, treatment.covariates))
    return Sample(
        join(control.num, treatment.num), join(control.den, treatment.den), covariates, strata
    )


def slopes(pooled: Sample) -> tuple[Floats, Floats]:
    """Return θ of the regression of the units' z on z_x of all covariates, and the covariates'
    values, in both arms.

    A covariate that does not vary explains nothing, θ = 0. So does what follows from other
    covariates.
    """
    z = contributions(pooled, deviations(pooled)[1])
    centres, columns = [], []
    for one in pooled.covariates:
        x, own = deviations(one)
        varies = np.sqrt(_sum_of_squares(own) / own.shape[-1]) > MEAN_ROUNDING * _largest(
            one.num, one.den
        )
        centres.append(x)
        columns.append(np.where(np.asarray(varies)[..., None], contributions(pooled, own), 0.0))
    zx = np.stack(columns, axis=-2)
    products = np.einsum("...ki,...li->...kl", zx, zx)
    spread = np.sqrt(np.einsum("...kk->...k", products))
    spread = np.where(spread > 0, spread, 1.0)
    inverse = np.linalg.pinv(
        products / spread[..., None] / spread[..., None, :], rcond=1e-10, hermitian=True
    )
    shares = np.einsum("...ki,...i->...k", zx, z) / spread
    return np.einsum("...kl,...l->...k", inverse, shares) / spread, np.stack(centres, axis=-1)


def around_pooled(
    control: Sample, treatment: Sample, theta: Floats = NO_THETA
) -> tuple[Floats, Floats]:
    """One number per unit, whose mean difference is the effect; plain values are what they are.

    Of ratios and strata it is z around both arms together, without what the covariates explain.
    """
    sides = control, treatment
    if control.den is None and not control.covariates and control.strata is None:
        return control.num, treatment.num
    n, pooled = len(control.num), pool(*sides)

    def values(of: Sample) -> Floats:
        plain = of.den is None and of.strata is None
        return of.num if plain else deviations(of)[1]

    whole = values(pooled)
    for slope, one in zip(theta, pooled.covariates, strict=True):
        whole = whole - slope * values(one)
    return both(contributions, sides, (whole[:n], whole[n:]))


def effective_number(weights: Floats) -> float:
    """Return (Σw)²/Σw², the number of equal units that carry as much information as these unequal
    ones."""
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def arm_of_moments(values: Moments) -> Arm:
    """Return the mean of the values that have these moments, with its variance and n − 1 degrees of
    freedom."""
    var = _known_variance(np.asarray(values.var * values.n), values.n, values.largest)
    return Arm(np.float64(values.mean), var, np.float64(values.n - 1))


def _sum_of_squares(z: Floats) -> Number:
    squares: Number = np.einsum("...i,...i->...", z, z)
    return squares


def _largest(num: Floats, den: Floats | None) -> Number:
    """Return the largest value of the numerator in units of the estimate; spreads are negligible
    relative to it."""
    # Unlike abs, two reductions need no temporary array.
    largest: Number = np.maximum(num.max(axis=-1), -num.min(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return largest if den is None else largest / np.abs(den.mean(axis=-1))


def _known_variance(squares: Number, n: Number, largest: Number) -> Number:
    """Return Σz²/(n − 1)/n, or 0 where that is only rounding error of the largest value."""
    with np.errstate(divide="ignore", invalid="ignore"):
        var = squares / (n - 1) / n
        # A constant 0.1 has Σz² of 1e-34 instead of 0, which would make any difference
        # "significant".
        return np.where(np.sqrt(squares / n) <= MEAN_ROUNDING * largest, 0.0, var)
