"""The regression of a metric on covariates in each arm, from sums: one pass over the users gives
the coefficients, and a second one the variance of HC2."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...inputs.codes import Codes
from ...stats.arms import MEAN_ROUNDING, Arm, with_coefficients
from ...stats.numbers import Floats
from ..aggregates import Aggregates, RowsNeeded
from .units import Units

# Covariates whose correlations have a smaller eigenvalue nearly follow from each other.
_LEAST_EIGENVALUE = 1e-6
# Values that reach farther lose digits of the distances from their mean.
_MOST_OF_VALUES = 1e5


class Fit(NamedTuple):
    """The regression of the first of some columns on the others, and on the strata, in one arm.

    It has the places of the `columns`, the units of each stratum, the means of the columns in each
    stratum as `base` and `above`, which keep the digits of huge ones, their largest values, the
    slopes, and (Σ d dᵀ)⁻¹ of d, the others less their means in the stratum.
    """

    columns: list[int]
    n: Floats
    base: Floats
    above: Floats
    largest: Floats
    slopes: Floats
    inverse: Floats

    @classmethod
    def of(cls, record: Aggregates, strata: Codes, columns: list[int]) -> Fit:
        """The regression in cells of a record; `RowsNeeded` where the others nearly follow from
        each other, or a column is large beside its spread."""
        own = record.columns(columns)
        n, central = own.n[strata], own.central[strata].sum(axis=0)
        if n.min() < 2 or n.sum() < len(columns) + len(n) + 1:
            raise RowsNeeded
        inner, spread = central[1:, 1:], np.sqrt(np.diag(central) / n.sum())
        largest = np.array([own.largest(i) for i in range(len(columns))])
        if not (largest < _MOST_OF_VALUES * spread).all():
            raise RowsNeeded
        of = inner / (n.sum() * spread[1:, None] * spread[1:])
        if len(of) and np.linalg.eigvalsh(of)[0] < _LEAST_EIGENVALUE:
            raise RowsNeeded
        inverse = np.asarray(np.linalg.inv(inner), np.float64)
        slopes, above = inverse @ central[1:, 0], own.above[strata]
        return cls(columns, n, own.grid.base, above, largest, slopes, inverse)

    def spread(self, stratum: int, values: Floats) -> Floats:
        """Σ e²/(1 − h)·(1, d)(1, d)ᵀ of some units of a stratum, with the residuals e and the
        leverages h."""
        y, *xs = values - self.base[:, None] - self.above[stratum, :, None]
        d = np.array(xs).reshape(len(xs), len(y))
        h = 1 / self.n[stratum] + np.einsum("in,in->n", self.inverse @ d, d)
        # A unit that is fitted exactly has no residual to learn a variance from.
        squares = np.square(y - self.slopes @ d)
        of = np.divide(squares, 1 - h, out=np.zeros(len(y)), where=h < 1 - 1e-10)
        one = np.vstack([np.ones(len(y)), d])
        return np.asarray((one * of) @ one.T)

    def arm(self, weights: Floats, centre: Floats, spreads: Floats) -> Arm:
        """The mean of the arm, less its base, with these weights of the strata and at a `centre` of
        the columns above their base, with the variance of HC2 by the spread of each stratum."""
        off = (centre - weights @ self.above)[1:]
        of = np.column_stack([weights / self.n, np.tile(self.inverse @ off, (len(self.n), 1))])
        n = self.n.sum()
        varies = np.sqrt(spreads[:, 0, 0].sum() / n) > MEAN_ROUNDING * self.largest[0]
        var = float(np.einsum("hi,hij,hj->", of, spreads, of)) if varies else 0.0
        mean = float(weights @ self.above[:, 0] + self.slopes @ off)
        return Arm(mean, var, n - len(self.n) - len(off))


def fits(units: Units) -> list[Fit]:
    """The regression of the metric in each arm on those of the covariates that have a
    coefficient."""
    record, cells = units.record, units.cells
    assert isinstance(record, Aggregates)
    others = [one.num for one in units.covariates]
    own = record.columns(others)
    left = own.central[cells].sum(axis=1)
    squares = [np.diag(one) for one in own.cells(cells).central]
    largest = [np.array([record.largest(i) for i in others])] * 2
    most = min(units.n) - 1 - units.n_strata
    kept = with_coefficients(list(left), squares, largest, units.n, most)
    columns = [units.metric.num, *(others[i] for i in kept)]
    return [Fit.of(record, strata, columns) for strata in cells]
