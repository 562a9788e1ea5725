"""Sums from which the statistics of a summary follow; the sums of disjoint parts of a population
can be added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from itertools import islice

import numpy as np

from ..inputs.sizes import sizes
from ..inputs.sorting import exact_sums
from ..stats.moments import MEAN_ROUNDING
from ..stats.student import interval_quantile


@dataclass(frozen=True)
class GroupMoments:
    """Sums over the lists of each group, as (groups × columns) arrays.

    rows : lists of each group (one number per group) · n : lists with a value · undefined : lists
    for which the metric is not defined, also where they count with a value · total : sum of the
    values · squares : sum of the squared differences from the group's mean · se, units : standard
    error of the mean and number of equal units, where they do not follow from the squares, since
    the lists are not independent. With weights, `total` is Σ w x and `squares` is Σ w (x − m)², m
    being the weighted mean, lists of weight 0 are left out as if there were none, and over the
    lists with a value there are also: weight : Σ w · weight_squares : Σ w² · first, second : Σ w²
    (x − m) and Σ w² (x − m)².
    """

    rows: np.ndarray
    n: np.ndarray
    undefined: np.ndarray
    total: np.ndarray
    squares: np.ndarray
    weight: np.ndarray | None = None
    weight_squares: np.ndarray | None = None
    first: np.ndarray | None = None
    second: np.ndarray | None = None
    se: np.ndarray | None = None
    units: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        columns: Iterable[np.ndarray],
        group: np.ndarray,
        n_groups: int,
        weight: np.ndarray | None = None,
    ) -> GroupMoments:
        """Compute the moments of each column (NaN: no value) in each group; `weight` is that of
        each list."""
        if weight is not None:
            return _weighted_moments(columns, group, n_groups, weight)
        rows, given, found = np.bincount(group, minlength=n_groups), iter(columns), []
        at_once = 1 if n_groups > 1 else max(1, sizes().moment_cells // max(1, len(group)))

        def sums(x: np.ndarray) -> np.ndarray:
            return (
                exact_sums(x)[:, None] if n_groups == 1 else exact_sums(x[0], group, n_groups)[None]
            )

        with np.errstate(invalid="ignore", divide="ignore"):
            while some := list(islice(given, at_once)):
                x = np.stack(some)
                missing, n, total = None, np.broadcast_to(rows, (len(x), n_groups)), sums(x)
                if np.isnan(total).any():
                    missing = np.isnan(x)
                    x = np.where(missing, 0.0, x)
                    n, total = rows - sums(missing), sums(x)
                mean = total / n
                x = x - (mean if n_groups == 1 else mean[:, group])
                x *= x
                if (
                    missing is not None
                ):  # keep a NaN that comes from an infinite mean, which has no spread
                    x[missing] = 0.0
                found.append((n.astype(np.float64), total, sums(x)))
        n, total, squares = (np.concatenate(each).T for each in zip(*found, strict=True))
        return cls(rows, n, rows[:, None] - n, total, squares)

    def __add__(self, other: GroupMoments) -> GroupMoments:
        """Add the moments of two parts; squares are about the common mean: no digits cancel (Chan
        et al. 1979)."""
        mine, theirs = self.mass, other.mass
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (self.total + other.total) / (mine + theirs)
            parts = self._around(mean), other._around(mean)
            apart = (
                (self.total / mine - other.total / theirs) ** 2 * (mine / (mine + theirs)) * theirs
            )
        sums = GroupMoments(
            self.rows + other.rows, *(one + two for one, two in zip(*parts, strict=True))
        )
        return replace(
            sums, squares=sums.squares + np.where((self.n > 0) & (other.n > 0), apart, 0.0)
        )

    def sums(self) -> list[np.ndarray]:
        """Return the sums that there are, in the order of the fields behind `rows`."""
        return [one for field in fields(self)[1:] if (one := getattr(self, field.name)) is not None]

    def _around(self, mean: np.ndarray) -> list[np.ndarray]:
        """Return the sums, those of squared weights about this mean."""
        if self.weight_squares is None:
            return self.sums()
        *sums, first, second = self.sums()
        moved = np.nan_to_num(mean - self.total / self.mass)
        second = second - 2 * moved * first + moved**2 * self.weight_squares
        return [*sums, first - moved * self.weight_squares, second]

    def counting(
        self, columns: Iterable[np.ndarray], group: np.ndarray, weight: np.ndarray | None = None
    ) -> GroupMoments:
        """Return the moments with the undefined lists of these columns, which are NaN there
        whatever they count as."""
        counts = slice(None) if weight is None else weight > 0
        own, n_groups = group[counts], len(self.rows)
        found = [
            np.bincount(own[np.isnan(column[counts])], minlength=n_groups) for column in columns
        ]
        return replace(self, undefined=np.stack(found, axis=1).astype(np.float64))

    @property
    def mass(self) -> np.ndarray:
        """What the sums are divided by for a mean: the number of lists, or the sum of their
        weights."""
        return self.n if self.weight is None else self.weight

    def take(self, groups: np.ndarray) -> GroupMoments:
        """Return the moments of some groups."""
        found = {
            field.name: one[groups]
            for field in fields(self)
            if (one := getattr(self, field.name)) is not None
        }
        return GroupMoments(**found)

    def statistics(self, confidence: float) -> dict[str, np.ndarray]:
        """Return the columns of the summary that follow from the moments.

        Values that are all equal, or one unit, tell nothing of the error: it is null. Below 100
        equal units the interval is that of Student's t.
        """
        n = self.n
        found = {}
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.where(n > 0, self.total / self.mass, np.nan)
            if self.weight is None or self.weight_squares is None or self.second is None:
                std = np.where(n > 1, np.sqrt(self.squares / (n - 1)), np.nan)
                se = std / np.sqrt(n)
            else:
                w, squares = self.weight, self.weight_squares
                std = np.where(n > 1, np.sqrt(self.squares / (w - squares / w)), np.nan)
                se = np.where(
                    n > 1, np.sqrt(n / (n - 1) * np.maximum(self.second, 0.0)) / w, np.nan
                )
                found["n_effective"] = np.where(n > 0, w**2 / squares, 0.0)
            units = found.get("n_effective", n) if self.units is None else self.units
            se = se if self.se is None else self.se
            std = np.where(std <= MEAN_ROUNDING * np.abs(value), 0.0, std)
            se = np.where(se * np.sqrt(units) > MEAN_ROUNDING * np.abs(value), se, np.nan)
        df, place = np.unique(
            np.minimum(units + 1e-9, 100).astype(np.int64) - 1, return_inverse=True
        )
        half = (
            np.array([interval_quantile(one, confidence) for one in df.tolist()])[
                place.reshape(se.shape)
            ]
            * se
        )
        counts = {"n": n.astype(np.int64), "n_undefined": self.undefined.astype(np.int64)}
        means = {
            "value": value,
            "std": std,
            "se": se,
            "ci_low": value - half,
            "ci_high": value + half,
        }
        return {**means, **counts, **found}


def _weighted_moments(
    columns: Iterable[np.ndarray], group: np.ndarray, n_groups: int, weight: np.ndarray
) -> GroupMoments:
    """Compute weighted moments. They are sums of one array after the other, so that no array of all
    columns is made."""
    counts = np.flatnonzero(weight > 0)
    group, weight = group[counts], weight[counts]

    def sums(values: np.ndarray) -> np.ndarray:
        return exact_sums(values, group, n_groups)

    found = []
    for column in columns:
        defined = ~np.isnan(column[counts])
        x, w = np.where(defined, column[counts], 0.0), np.where(defined, weight, 0.0)
        total, mass = sums(w * x), sums(w)
        with np.errstate(invalid="ignore", divide="ignore"):
            off = x - np.nan_to_num(total / mass, nan=0.0, posinf=np.inf, neginf=-np.inf)[group]
            with_off = w * off
        n = sums(defined.astype(np.float64))
        found.append(
            (
                n,
                total,
                sums(with_off * off),
                mass,
                sums(w * w),
                sums(w * with_off),
                sums(with_off**2),
            )
        )
    n, total, squares, *of_weights = (np.stack(each, axis=1) for each in zip(*found, strict=True))
    rows = np.bincount(group, minlength=n_groups)
    return GroupMoments(rows, n, rows[:, None] - n, total, squares, *of_weights)


def clustered(
    columns: Iterable[np.ndarray],
    group: np.ndarray,
    unit: np.ndarray,
    moments: GroupMoments,
    weight: np.ndarray | None = None,
) -> tuple[GroupMoments, np.ndarray]:
    """Return the moments with standard errors that hold where the lists of a unit are alike, and
    the number of units.

    The number is a (groups × columns) array. `unit` is the code of the unit of each list; a unit
    may have lists in several groups. The error follows from the sums of the differences from the
    mean, times `weight`, one sum per unit and group.
    """
    weight = np.ones(len(group)) if weight is None else weight
    n_units = int(unit.max(initial=-1)) + 1
    pair, place = np.unique(group * n_units + unit, return_inverse=True)
    group_of_pair = pair // max(n_units, 1)
    n_groups, errors, counts, effective = len(moments.rows), [], [], []
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = moments.total / moments.mass
        for number, column in enumerate(columns):
            defined = ~np.isnan(column) & (weight > 0)
            off = np.where(defined, weight * (column - mean[group, number]), 0.0)
            of_pair = exact_sums(off, place, len(pair))
            mass = exact_sums(np.where(defined, weight, 0.0), place, len(pair))
            u = np.bincount(group_of_pair[mass > 0], minlength=n_groups)
            effective.append(
                moments.mass[:, number] ** 2 / exact_sums(mass**2, group_of_pair, n_groups)
            )
            squares = exact_sums(of_pair**2, group_of_pair, n_groups)
            errors.append(
                np.where(u > 1, np.sqrt(u / (u - 1) * squares) / moments.mass[:, number], np.nan)
            )
            counts.append(u)
    se, units = np.stack(errors, axis=1), np.nan_to_num(np.stack(effective, axis=1))
    return replace(moments, se=se, units=units), np.stack(counts, axis=1)
