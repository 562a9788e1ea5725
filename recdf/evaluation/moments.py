"""Sums from which the statistics of a summary follow; the sums of disjoint parts of a population can be added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

# So many values are squared at a time.
PART_ROWS = 2**15


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
    def of(cls, columns: Iterable[np.ndarray], group: np.ndarray, n_groups: int) -> Moments:
        """Compute the moments of each column (NaN: no value) in each group."""
        rows = np.bincount(group, minlength=n_groups)
        # Where the rows of each group stand together, they are summed without sorting.
        order = None if (group[1:] >= group[:-1]).all() else np.argsort(group, kind="stable")
        start = np.cumsum(rows) - rows
        found = []
        with np.errstate(invalid="ignore", divide="ignore"):
            for given in columns:
                column = given if order is None else given[order]
                missing, x, n, total = None, column, rows, _sums(column, start, rows)
                if np.isnan(total).any():
                    missing = np.isnan(column)
                    x = np.where(missing, 0.0, column)
                    n, total = rows - _sums(missing, start, rows), _sums(x, start, rows)
                mean = total / n
                if n_groups == 1:
                    squares = np.array([_squares(column, mean[0], missing is not None)])
                else:
                    off = x - np.repeat(mean, rows)
                    off *= off
                    squares = _sums(off if missing is None else np.where(missing, 0.0, off), start, rows)
                found.append((n.astype(np.float64), total, squares))
        n, total, squares = (np.stack(each, axis=1) for each in zip(*found, strict=True))
        return cls(rows, n, total, squares)

    def __add__(self, other: Moments) -> Moments:
        """Add the moments of two parts; squares are about the common mean, so that no digits cancel (Chan et al. 1979).
        """
        n = self.n + other.n
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = (self.total / self.n - other.total / other.n) ** 2 * (self.n / n) * other.n
        squares = self.squares + other.squares + np.where((self.n > 0) & (other.n > 0), apart, 0.0)
        return Moments(self.rows + other.rows, n, self.total + other.total, squares)

    def take(self, groups: np.ndarray) -> Moments:
        """Return the moments of some groups."""
        return Moments(self.rows[groups], self.n[groups], self.total[groups], self.squares[groups])

    def statistics(self, confidence: float) -> dict[str, np.ndarray]:
        """Return the columns of the summary that follow from the moments."""
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


def _squares(values: np.ndarray, mean: float, skip_nan: bool) -> float:
    """Sum the squared differences from the mean, in parts that stay in a processor's cache."""
    total = 0.0
    for first in range(0, len(values), PART_ROWS):
        part = values[first : first + PART_ROWS]
        off = part - mean
        off *= off
        if skip_nan:  # keep a NaN that comes from an infinite mean, which has no spread
            off[np.isnan(part)] = 0.0
        total += float(off.sum())
    return total


def _sums(values: np.ndarray, start: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Sum each group, where the rows of a group stand together."""
    if len(start) == 1:
        return np.array([values.sum()], dtype=np.float64)
    # A group without rows starts where the next group does, so reduceat would return the first row of that group.
    sums = np.add.reduceat(np.append(values.astype(np.float64), 0.0), start)
    return np.where(rows > 0, sums, 0.0)
