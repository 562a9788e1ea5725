"""The regression of a metric on covariates in each arm, from sums: the sums of the units give the
coefficients, and another look at the units the variance of HC2."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...inputs.codes import Codes, split
from ...stats.arms import Arm, with_coefficients
from ...stats.numbers import Floats
from ..aggregates import Aggregates
from .units import Units

# A covariate of whose variance the others leave a smaller share nearly follows from them.
_LEAST_LEFT = 1e-6
# Residuals below this share of the range of the values are rounding error.
_NO_RESIDUAL = 1e-12
# Units whose residuals are taken at a time: they stay in the cache of a processor.
_FITTED_ROWS = 2**13


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
