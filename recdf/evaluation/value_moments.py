"""Sums from which the statistics of a summary follow; the sums of disjoint parts of a population
can be added. The rows of its tables are made here too.

Contract: a table of means has one row per group, metric column and statistic, in the columns
`SUMMARY`; `stat` names the statistic. Nothing here computes a metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame

from ..errors import ColumnError, NullKeyError
from ..inputs.ids import check_labels
from ..inputs.machine import sizes
from ..inputs.options import ByName, Names
from ..inputs.sorting import distinct, exact_sums
from ..matching.list_keys import labels_at
from ..stats.arms import MEAN_ROUNDING
from ..stats.numbers import undefined_is_nan
from ..stats.student import interval_quantile


@dataclass(frozen=True)
class GroupMoments:
    """Sums over the lists of each group, which can be added over parts.

    rows : lists of each group · undefined : lists for which a metric is not defined, also where
    they count with a value, as an array of groups × columns · sums : seven such arrays, over the
    lists with a value x and a weight w, which is 1 without weights: the number of lists, Σ w x, Σ w
    (x − m)², Σ w, Σ w², Σ w² (x − m) and Σ w² (x − m)², where m is the mean of the group; lists of
    weight 0 are left out as if there were none · weighted : the lists have weights · se, units :
    standard error of the mean and number of equal units, where they do not follow from the sums,
    since the lists are not independent.
    """

    rows: ndarray
    undefined: ndarray
    sums: ndarray
    weighted: bool
    se: ndarray | None = None
    units: ndarray | None = None

    @classmethod
    def of(
        cls,
        columns: Iterable[ndarray],
        group: ndarray,
        n_groups: int,
        weight: ndarray | None = None,
        undefined: Iterable[ndarray] | None = None,
    ) -> GroupMoments:
        """Compute the moments of each column (NaN: no value) in each group; `weight` is that of
        each list. `undefined` are the same columns, with NaN for each list that is undefined,
        whatever it counts as."""
        counts = slice(None) if weight is None else np.flatnonzero(weight > 0)
        group = group[counts]
        w = None if weight is None else weight[counts]
        rows = np.bincount(group, minlength=n_groups)
        given = iter(columns)
        found = []
        at_once = max(1, sizes().moment_cells // max(1, len(group))) if n_groups == 1 else 1

        def sums(x: ndarray) -> ndarray:
            return (
                exact_sums(x)[:, None] if n_groups == 1 else exact_sums(x[0], group, n_groups)[None]
            )

        with undefined_is_nan():
            while some := list(islice(given, at_once)):
                x = np.stack(some)[:, counts]
                missing = np.isnan(x)
                gaps = missing.any()
                x = np.where(missing, 0.0, x) if gaps else x
                n = np.broadcast_to(rows - (sums(missing) if gaps else 0), (len(x), n_groups))
                held = w if w is None or not gaps else np.where(missing, 0.0, w)
                mass = n if held is None else sums(np.broadcast_to(held, x.shape))
                total = sums(x if held is None else held * x)
                mean = total / mass
                x = x - (mean if n_groups == 1 else mean[:, group])
                if gaps:  # a NaN that comes from an infinite mean, which has no spread, stays
                    x[missing] = 0.0
                if held is None:
                    x *= x
                    squares = sums(x)
                    rest = [squares, n, n, np.zeros(n.shape), squares]
                else:
                    off = held * x
                    squared = np.broadcast_to(held * held, x.shape)
                    kinds = (squared, held * off, np.square(off))
                    rest = [sums(off * x), mass, *map(sums, kinds)]
                found.append(np.array([n, total, *rest], np.float64))
        of_groups = np.concatenate(found, axis=1).swapaxes(1, 2)
        missing = rows[:, None] - of_groups[0]
        if undefined is not None:
            lists = (group[np.isnan(column[counts])] for column in undefined)
            numbers = [np.bincount(some, minlength=n_groups) for some in lists]
            missing = np.stack(numbers, axis=1).astype(np.float64)
        return cls(rows, missing, of_groups, w is not None)

    def __add__(self, other: GroupMoments) -> GroupMoments:
        """Add the moments of two parts; squares are about the common mean: no digits cancel (Chan
        et al. 1979)."""
        with undefined_is_nan():
            mean = (self.sums[1] + other.sums[1]) / (self.sums[3] + other.sums[3])
            sums = self._around(mean) + other._around(mean)
        undefined = self.undefined + other.undefined
        return replace(self, rows=self.rows + other.rows, undefined=undefined, sums=sums)

    def _around(self, mean: ndarray) -> ndarray:
        """Return the sums, those of differences from this mean."""
        n, total, squares, mass, mass_squares, first, second = self.sums
        moved = np.nan_to_num(mean - total / mass)
        second = second - 2 * moved * first + moved**2 * mass_squares
        squares = squares + moved**2 * mass
        first = first - moved * mass_squares
        return np.array([n, total, squares, mass, mass_squares, first, second])

    def take(self, groups: ndarray) -> GroupMoments:
        """Return the moments of some groups."""
        se, units = (one if one is None else one[groups] for one in (self.se, self.units))
        rows = self.rows[groups]
        undefined = self.undefined[groups]
        return GroupMoments(rows, undefined, self.sums[:, groups], self.weighted, se, units)

    def statistics(self, confidence: float) -> dict[str, ndarray]:
        """Return the columns of the summary that follow from the moments.

        Values that are all equal, or one unit, tell nothing of the error: it is null. Below 100
        equal units the interval is that of Student's t.
        """
        n, total, squares, mass, mass_squares, *_ = self.sums
        se, effective = mean_errors(self.sums)
        with undefined_is_nan():
            value = np.where(n > 0, total / mass, np.nan)
            # One list that outweighs all others leaves no digits of the weights of these.
            several = effective > 1 + MEAN_ROUNDING
            std = np.where(several, np.sqrt(squares / (mass - mass_squares / mass)), np.nan)
            units = effective if self.units is None else self.units
            se = se if self.se is None else self.se
            std = np.where(std <= MEAN_ROUNDING * np.abs(value), 0.0, std)
            se = np.where(se * np.sqrt(units) > MEAN_ROUNDING * np.abs(value), se, np.nan)
        df = np.minimum(units + 1e-9, 100).astype(np.int64) - 1
        known = distinct(df)
        quantiles = np.array([interval_quantile(one, confidence) for one in known.tolist()])
        half = quantiles[np.searchsorted(known, df)] * se
        found = {"value": value, "std": std, "se": se}
        found |= {"ci_low": value - half, "ci_high": value + half}
        found |= {"n": n.astype(np.int64), "n_undefined": self.undefined.astype(np.int64)}
        return found | ({"n_effective": effective} if self.weighted else {})


def mean_errors(sums: ndarray) -> tuple[ndarray, ndarray]:
    """Return the standard error of the mean of independent values, and the number of equal ones."""
    n, _, _, mass, mass_squares, _, second = sums
    with undefined_is_nan():
        se = np.where(n > 1, np.sqrt(n / (n - 1) * np.maximum(second, 0.0)) / mass, np.nan)
        return se, np.where(n > 0, mass**2 / mass_squares, 0.0)


def moments_of_units(
    columns: Iterable[ndarray],
    group: ndarray,
    unit: ndarray,
    n_groups: int,
    weight: ndarray | None,
) -> list[GroupMoments]:
    """Return the moments of each column over units, each with the mean of its lists, and with their
    weight."""
    weight = np.ones(len(group)) if weight is None else weight
    n_units = int(unit.max(initial=-1)) + 1
    pair, place = np.unique(group * n_units + unit, return_inverse=True)
    found = []
    for values in columns:
        held = np.where(np.isnan(values), 0.0, weight)
        mass = exact_sums(held, place, len(pair))
        total = exact_sums(np.where(held > 0, held * values, 0.0), place, len(pair))
        with undefined_is_nan():
            mean = total / mass
        found.append(GroupMoments.of([mean], pair // max(n_units, 1), n_groups, mass))
    return found


def with_unit_errors(
    moments: GroupMoments, of_units: Sequence[GroupMoments]
) -> tuple[GroupMoments, ndarray]:
    """Return the moments with the standard errors of those of units, and the number of units."""
    sums = np.concatenate([one.sums for one in of_units], axis=2)
    se, units = mean_errors(sums)
    return replace(moments, se=se, units=units), sums[0].astype(np.int64)


CONFIDENCE = 0.95

OF_WEIGHTS = ("n_effective",)  # columns of the summary that only weighted means have
SUMMARY = ("metric", "k", "value", "std", "se", "ci_low", "ci_high", "n", "n_undefined")


def groups_of(per_user: DataFrame, by: list[str]) -> tuple[ndarray, DataFrame]:
    """Return the group of each row, and the labels of the groups in order of first appearance."""
    if not by:
        return np.zeros(len(per_user), np.int64), DataFrame(index=range(1))
    group = per_user.groupby(by, sort=False, dropna=False, observed=True).ngroup().to_numpy()
    return group, per_user.loc[~pd.Series(group).duplicated().to_numpy(), by].reset_index(drop=True)


def means(
    per_user: DataFrame,
    by: list[str],
    names: list[str],
    spec: ByName,
    confidence: float,
    units: Names = (),
    weights: ndarray | None = None,
) -> DataFrame:
    """Return the mean and the interval of some columns in each group of rows."""
    group, labels = groups_of(per_user, by)
    n_groups = len(labels)

    columns = [per_user[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in names]
    moments = GroupMoments.of(columns, group, n_groups, weights)
    if not units:
        return mean_table(labels, names, moments, spec, confidence)
    refuse_summary_names(by, ["n_users"])
    # Standard errors that hold where the lists of a unit are alike: they follow from the sums of
    # the differences from the mean, times the weight, one sum per unit and group.
    of_units = moments_of_units(columns, group, unit_codes(per_user, units), n_groups, weights)
    moments, n_users = with_unit_errors(moments, of_units)
    return mean_table(labels, names, moments, spec, confidence).assign(n_users=n_users.ravel())


def unit_codes(per_user: DataFrame, units: Names, sort: bool = False) -> ndarray:
    """Return a code for the unit of each row, in the order of the units' ids if they are to be
    sorted."""
    for name in units:
        if per_user[name].isna().any():
            raise NullKeyError(
                f"per_user[{name!r}] has null units: {int(per_user[name].isna().sum()):,}; drop "
                "them"
            )
        check_labels(per_user[name], f"per_user[{name!r}]")
    return per_user.groupby(list(units), sort=sort, observed=True).ngroup().to_numpy()


def refuse_summary_names(by: Iterable[Any], names: Names = ()) -> None:
    """Raise if a `by` column has the name of a column of the summary, which would replace it."""
    taken = [name for name in map(str, by) if name in (*SUMMARY, *OF_WEIGHTS, *names)]
    if taken:
        raise ColumnError(
            f"the by column {taken[0]!r} has the name of a column of the summary; rename it"
        )


def mean_table(
    labels: DataFrame,
    names: Names,
    moments: GroupMoments,
    spec: ByName,
    confidence: float = CONFIDENCE,
) -> DataFrame:
    """Make one row per group (a row of `labels`) and metric column."""
    refuse_summary_names(labels.columns)
    statistics = moments.statistics(confidence)
    n_groups = len(labels)
    known = spec.get("metrics", {})
    described = [
        (known[name]["name"], known[name]["k"]) if name in known else split_column(name)
        for name in names
    ]
    k = np.array([-1 if k is None else k for _, k in described] * n_groups, np.int64)
    columns: dict[str, Any] = {
        "metric": [name for name, _ in described] * n_groups,
        "k": pd.arrays.IntegerArray(k, k < 0),
        **{name: array.ravel() for name, array in statistics.items()},
    }
    repeated = labels_at(labels, list(labels.columns), np.repeat(np.arange(n_groups), len(names)))
    return DataFrame({**{str(name): one for name, one in repeated.items()}, **columns}, copy=False)


def split_column(column: str) -> tuple[str, int | None]:
    """Return metric and k of a column such as ndcg@10."""
    name, at, k = column.rpartition("@")
    return (name, int(k)) if at and name and k.isdigit() else (column, None)
