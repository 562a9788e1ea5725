"""Sums from which the statistics of a summary follow; sums of disjoint parts of a population add up."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np


@dataclass(frozen=True)
class Moments:
    """Sums over the lists of each group, as (groups × columns) arrays.

    rows : lists of each group (one number per group) · n : lists with a value · total : sum of the values ·
    squares : sum of the squared differences from the group's mean.
    """

    rows: np.ndarray
    n: np.ndarray
    total: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, group: np.ndarray, n_groups: int) -> Moments:
        """Moments of the columns of `values` (NaN: no value) in each group."""
        n, total, squares = (np.zeros((n_groups, values.shape[1])) for _ in range(3))
        rows = np.bincount(group, minlength=n_groups)
        with np.errstate(invalid="ignore", divide="ignore"):
            for j, column in enumerate(values.T):
                defined = ~np.isnan(column)
                x, g = (column, group) if defined.all() else (column[defined], group[defined])
                n[:, j] = np.bincount(g, minlength=n_groups)
                total[:, j] = np.bincount(g, weights=x, minlength=n_groups)
                mean = total[:, j] / n[:, j]
                squares[:, j] = np.bincount(g, weights=(x - mean[g]) ** 2, minlength=n_groups)
        return cls(rows, n, total, squares)

    def __add__(self, other: Moments) -> Moments:
        """Moments of both parts: squares about the common mean, so that no digits cancel (Chan et al. 1979)."""
        n = self.n + other.n
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = (self.total / self.n - other.total / other.n) ** 2 * (self.n / n) * other.n
        squares = self.squares + other.squares + np.where((self.n > 0) & (other.n > 0), apart, 0.0)
        return Moments(self.rows + other.rows, n, self.total + other.total, squares)

    def take(self, groups: np.ndarray) -> Moments:
        """Moments of some groups."""
        return Moments(self.rows[groups], self.n[groups], self.total[groups], self.squares[groups])

    def statistics(self, confidence: float) -> dict[str, np.ndarray]:
        """Columns of the summary."""
        n = self.n
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.where(n > 0, self.total / n, np.nan)
            std = np.where(n > 1, np.sqrt(self.squares / (n - 1)), np.nan)
            se = std / np.sqrt(n)
        half = NormalDist().inv_cdf((1 + confidence) / 2) * se
        count = n.astype(np.int64)
        return {
            "value": value,
            "std": std,
            "se": se,
            "ci_low": value - half,
            "ci_high": value + half,
            "n": count,
            "n_undefined": self.rows[:, None] - count,
        }
