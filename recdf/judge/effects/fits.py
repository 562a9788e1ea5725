"""The regression of a metric on several covariates in each arm, from sums: one pass over the users
gives the coefficients, and a second one the variance of HC2."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...stats.arms import MEAN_ROUNDING, Arm
from ...stats.numbers import Floats
from ..aggregates import Aggregates, RowsNeeded

# Covariates whose correlations have a smaller eigenvalue nearly follow from each other.
_LEAST_EIGENVALUE = 1e-6
# Values that reach farther lose digits of the distances from their mean.
_MOST_OF_VALUES = 1e5


class Fit(NamedTuple):
    """The regression of the first of some columns on the others in one arm: its units, the means
    of the columns as `base` and `above`, which keep the digits of huge ones, their largest values,
    the slopes, and (Σ d dᵀ)⁻¹ of d, the others less their means."""

    n: float
    base: Floats
    above: Floats
    largest: Floats
    slopes: Floats
    inverse: Floats

    @classmethod
    def of(cls, n: float, above: Floats, central: Floats, base: Floats, largest: Floats) -> Fit:
        """The regression by the moments of the columns; `RowsNeeded` where the others nearly
        follow from each other, or a column is large beside its spread."""
        if n < len(base) + 2:
            raise RowsNeeded
        inner, spread = central[1:, 1:], np.sqrt(np.diag(central) / n)
        if not (largest < _MOST_OF_VALUES * spread).all():
            raise RowsNeeded
        if np.linalg.eigvalsh(inner / (n * spread[1:, None] * spread[1:]))[0] < _LEAST_EIGENVALUE:
            raise RowsNeeded
        inverse = np.asarray(np.linalg.inv(inner), np.float64)
        return cls(n, base, above, largest, inverse @ central[1:, 0], inverse)

    def spread(self, columns: Floats) -> Floats:
        """Σ e²/(1 − h)·(1, d)(1, d)ᵀ of some units, with the residuals e and the leverages h."""
        y, *xs = columns - self.base[:, None] - self.above[:, None]
        d = np.array(xs)
        h = 1 / self.n + np.einsum("in,ij,jn->n", d, self.inverse, d)
        # A unit that is fitted exactly has no residual to learn a variance from.
        squares = np.square(y - self.slopes @ d)
        of = np.divide(squares, 1 - h, out=np.zeros(len(y)), where=h < 1 - 1e-10)
        one = np.vstack([np.ones(len(y)), d])
        return np.asarray((one * of) @ one.T)

    def arm(self, centre: Floats, spread: Floats) -> Arm:
        """The mean of the arm, less its base, at a `centre` above that of the columns, with the
        variance of HC2."""
        off = (centre - self.above)[1:]
        weights = np.append(1 / self.n, self.inverse @ off)
        varies = np.sqrt(spread[0, 0] / self.n) > MEAN_ROUNDING * self.largest[0]
        var = float(weights @ spread @ weights) if varies else 0.0
        return Arm(float(self.above[0] + self.slopes @ off), var, self.n - len(self.base))


def fits(record: Aggregates, at: list[int]) -> list[Fit]:
    """The regression of the first of some columns on the others in every cell."""
    some = record.columns(at)
    largest = np.array([some.largest(i) for i in range(len(at))])
    cells = zip(some.n.tolist(), some.above, some.central, strict=True)
    return [Fit.of(*one, some.grid.base, largest) for one in cells]
