"""One arm of a comparison: its mean or ratio of sums, and the variance of the estimate.

Contract: a result that does not exist (no variance, or a sum of denominators that is 0) is NaN and
never an exception. Functions reduce the last axis (the units: users, or sums per cluster) and
broadcast over the others, so that the same code runs one experiment or thousands of simulated ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .moments import MEAN_ROUNDING
from .numbers import Floats, Mask, Number

ArmResult = TypeVar("ArmResult")


class Sample(NamedTuple):
    """Numerators of rows, their denominators (None: a plain mean), and those of covariates."""

    num: Floats
    den: Floats | None = None
    covariates: tuple[Sample, ...] = ()

    @property
    def missing(self) -> Mask:
        """The units without a value."""
        return np.isnan(self.num) if self.den is None else np.isnan(self.num) | np.isnan(self.den)

    def each(self, function: Callable[[Floats], Floats]) -> Sample:
        """A function of all numerators and denominators."""
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


def arm(num: Floats, den: Floats | None = None) -> Arm:
    """Return the mean or the ratio over the last axis, with its variance and n − 1 degrees of
    freedom."""
    mean, z = linearise(num, den)
    squares, n = np.einsum("...i,...i->...", z, z), z.shape[-1]
    # Unlike abs, two reductions need no temporary array.
    largest: Number = np.maximum(num.max(axis=-1), -num.min(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        if den is not None:  # in units of the estimate
            largest = largest / np.abs(den.mean(axis=-1))
        # A constant 0.1 has Σz² of 1e-34 instead of 0, which would make any difference
        # "significant".
        equal = np.sqrt(squares / n) <= MEAN_ROUNDING * largest
        var = np.where(equal, 0.0, squares / (n - 1) / n)
    return Arm(mean, var, np.float64(n - 1))


def effective_number(weights: Floats) -> float:
    """Return (Σw)²/Σw², the number of equal units that carry as much information as these unequal
    ones."""
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0
