"""One arm of a comparison: its estimate, the variance of the estimate, adjustment by a covariate or by strata.

Contract: every estimator reduces the last axis (the units: users, or sums per cluster) and broadcasts over the others,
so that the same code runs one experiment or thousands of simulated ones. A result that does not exist (no variance, or
a sum of denominators that is 0) is NaN and never an exception.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from .moments import MEAN_ROUNDING, Moments
from .numbers import Floats, Number

ArmResult = TypeVar("ArmResult")


class Sample(NamedTuple):
    """The units of one arm: numerators and denominators (None: a plain mean), and those of a covariate."""

    num: Floats
    den: Floats | None = None
    x_num: Floats | None = None
    x_den: Floats | None = None

    @property
    def past(self) -> Sample:
        """The covariate as a sample of its own."""
        if self.x_num is None:
            raise ValueError("the sample has no covariate")
        return Sample(self.x_num, self.x_den)

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """The units without a value."""
        return np.isnan(self.num) if self.den is None else np.isnan(self.num) | np.isnan(self.den)

    @property
    def n_effective(self) -> float:
        """How many units of equal size would carry as much as these clusters, or as the users of a ratio."""
        return effective_number(np.ones(len(self.num)) if self.den is None else self.den)

    def take(self, units: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice) -> Sample:
        """Some of the units."""
        return self.each(lambda values: values[units])

    def each(self, function: Callable[[Floats], Floats]) -> Sample:
        """A function of every array that there is."""
        return Sample(*(None if one is None else function(one) for one in self))  # type: ignore[arg-type]


class Arm(NamedTuple):
    """The estimate of one arm, the variance of that estimate, and the degrees of freedom of the variance."""

    mean: Number
    var: Number
    df: Number


def both(function: Callable[..., ArmResult], *pairs: tuple[Any, Any]) -> tuple[ArmResult, ArmResult]:
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


def arm(num: Floats, den: Floats | None = None) -> Arm:
    """Return the mean or the ratio over the last axis, with its variance and n − 1 degrees of freedom."""
    mean, z = linearise(num, den)
    return Arm(mean, _variance_of_mean(z, _largest(num, den)), np.float64(num.shape[-1] - 1))


def pool(control: Sample, treatment: Sample) -> Sample:
    """Return the units of two arms as one sample."""
    pairs = zip(control, treatment, strict=True)
    parts = (None if c is None or t is None else np.concatenate([c, t], axis=-1) for c, t in pairs)
    return Sample(*parts)  # type: ignore[arg-type]


def cuped_theta(both: Sample) -> tuple[Number, Number]:
    """Return θ = Σz_y z_x / Σz_x² over the two arms together, and the covariate's value x over both.

    A covariate without variance explains nothing: θ = 0.
    """
    z = linearise(both.num, both.den)[1]
    past = both.past
    x, zx = linearise(past.num, past.den)
    squares = _sum_of_squares(zx)
    constant = np.sqrt(squares / zx.shape[-1]) <= MEAN_ROUNDING * _largest(past.num, past.den)
    with np.errstate(divide="ignore", invalid="ignore"):
        theta = np.where(constant, 0.0, np.einsum("...i,...i->...", z, zx) / squares)
    return theta, x


def cuped_arm(sample: Sample, theta: Number, x: Number) -> Arm:
    """Return the arm of a metric adjusted by a covariate: m' = m − θ(x_arm − x), z' = z − θ·z_x (Deng et al. 2013)."""
    mean, z = linearise(sample.num, sample.den)
    x_arm, zx = linearise(*sample.past[:2])
    adjusted = z - np.asarray(theta)[..., None] * zx
    var = _variance_of_mean(adjusted, _largest(sample.num, sample.den))
    return Arm(mean - theta * (x_arm - x), var, np.float64(z.shape[-1] - 1))


def stratified_arm(values: Floats, strata: npt.NDArray[np.int64], weights: Floats) -> Arm:
    """Return the post-stratified mean Σ W_h ȳ_h with variance Σ W_h² s_h²/n_h.

    `strata` are codes 0..H−1 of the last axis, each present at least twice; `weights` W_h sum to 1. The
    degrees of freedom are Satterthwaite's, v²/Σ((W_h² s_h²/n_h)²/(n_h − 1)).
    """
    order = np.argsort(strata, kind="stable")
    counts = np.bincount(strata, minlength=len(weights))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    ordered = values[..., order]
    means = np.add.reduceat(ordered, starts, axis=-1) / counts
    z = ordered - np.repeat(means, counts, axis=-1)
    squares = np.add.reduceat(z * z, starts, axis=-1)
    parts = weights**2 * squares / (counts - 1) / counts
    largest = np.abs(values).max(axis=-1)
    constant = np.sqrt(squares.sum(axis=-1) / len(strata)) <= MEAN_ROUNDING * largest
    var = np.where(constant, 0.0, parts.sum(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        df = var**2 / (parts**2 / (counts - 1)).sum(axis=-1)
    return Arm((means * weights).sum(axis=-1), var, df)


def jackknife_arm(sample: Sample, theta: Number = 0.0, x: Number = 0.0) -> Arm:
    """Return a ratio of sums over few or unequal clusters, adjusted by a covariate, with its jackknife variance.

    The variance is (G − 1)/G·Σ (R₍₋g₎ − R)², where R₍₋g₎ leaves out cluster g. A cluster that is much larger than the
    others moves the ratio, which the delta method misses (Bell & McCaffrey 2002). The degrees of freedom are the
    effective number of clusters minus 1, because a large cluster tells no more about the spread than a small one.
    """

    def without_each(num: Floats, den: Floats | None) -> Floats:
        den = np.ones_like(num) if den is None else den
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((num.sum() - num) / (den.sum() - den))

    whole = linearise(sample.num, sample.den)[0]
    parts = without_each(sample.num, sample.den)
    if sample.x_num is not None:
        whole = whole - theta * (linearise(*sample.past[:2])[0] - x)
        parts = parts - theta * (without_each(sample.x_num, sample.x_den) - x)
    n = len(sample.num)
    var = (n - 1) / n * float(np.square(parts - whole).sum())
    if not np.sqrt(var) > MEAN_ROUNDING * np.max(_largest(sample.num, sample.den)):
        var = 0.0
    return Arm(whole, var, max(sample.n_effective - 1, 1.0))


def effective_number(weights: Floats) -> float:
    """Return (Σw)²/Σw², the number of equal units that carry as much information as these unequal ones."""
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def arm_of_moments(values: Moments) -> Arm:
    """Return the mean of the values that have these moments, with its variance and n − 1 degrees of freedom."""
    var = _known_variance(np.asarray(values.var * values.n), values.n, values.largest)
    return Arm(np.float64(values.mean), var, np.float64(values.n - 1))


def _sum_of_squares(z: Floats) -> Number:
    squares: Number = np.einsum("...i,...i->...", z, z)
    return squares


def _largest(num: Floats, den: Floats | None) -> Number:
    """Return the largest value of the numerator in units of the estimate; spreads are negligible relative to it."""
    # Unlike abs, two reductions need no temporary array.
    largest: Number = np.maximum(num.max(axis=-1), -num.min(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return largest if den is None else largest / np.abs(den.mean(axis=-1))


def _variance_of_mean(z: Floats, largest: Number) -> Number:
    return _known_variance(_sum_of_squares(z), z.shape[-1], largest)


def _known_variance(squares: Number, n: Number, largest: Number) -> Number:
    """Return Σz²/(n − 1)/n, or 0 where that is only rounding error of the largest value."""
    with np.errstate(divide="ignore", invalid="ignore"):
        var = squares / (n - 1) / n
        # A constant 0.1 has Σz² of 1e-34 instead of 0, which would make any difference "significant".
        return np.where(np.sqrt(squares / n) <= MEAN_ROUNDING * largest, 0.0, var)
