"""Sums from which the statistics of a summary follow; the sums of disjoint parts of a population
can be added. The rows of its tables are made here too.

Contract: a table of means has one row per group, metric column and statistic, in the columns
`SUMMARY`; `stat` names the statistic. Nothing here computes a metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd

from ..errors import ColumnError, DataError, NullKeyError, OptionError
from ..inputs.constraints import SHARE, Positive, a_number, check_record, either, one_of
from ..inputs.frames import column
from ..inputs.ids import check_labels
from ..inputs.machine import sizes
from ..inputs.sorting import exact_sums
from ..judge.per_user_columns import key_codes, require
from ..stats.moments import MEAN_ROUNDING
from ..stats.numbers import undefined_is_nan
from ..stats.resampling import (
    drawn_quantile,
    drawn_std,
    quantile_interval,
    replicate_statistic,
    standard_error,
)
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

        with undefined_is_nan():
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
        with undefined_is_nan():
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
        with undefined_is_nan():
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
    for values in columns:
        defined = ~np.isnan(values[counts])
        x, w = np.where(defined, values[counts], 0.0), np.where(defined, weight, 0.0)
        total, mass = sums(w * x), sums(w)
        with undefined_is_nan():
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
    found = moments_of_units(columns, group, unit, len(moments.rows), weight)
    return with_unit_errors(moments, found)


def moments_of_units(
    columns: Iterable[np.ndarray],
    group: np.ndarray,
    unit: np.ndarray,
    n_groups: int,
    weight: np.ndarray | None,
) -> list[GroupMoments]:
    """Return the moments of each column over units, each with the mean of its lists, and with their
    weight."""
    weight = np.ones(len(group)) if weight is None else weight
    n_units = int(unit.max(initial=-1)) + 1
    pair, place = np.unique(group * n_units + unit, return_inverse=True)
    found = []
    for values in columns:
        defined = ~np.isnan(values) & (weight > 0)
        mass = exact_sums(np.where(defined, weight, 0.0), place, len(pair))
        total = exact_sums(np.where(defined, weight * values, 0.0), place, len(pair))
        with undefined_is_nan():
            mean = total / mass
        found.append(_weighted_moments([mean], pair // max(n_units, 1), n_groups, mass))
    return found


def with_unit_errors(
    moments: GroupMoments, of_units: Sequence[GroupMoments]
) -> tuple[GroupMoments, np.ndarray]:
    """Return the moments with the standard errors of those of units, and the number of units."""
    errors, counts, effective = [], [], []
    with undefined_is_nan():
        for one in of_units:
            u, mass = one.n[:, 0], one.mass[:, 0]
            assert one.second is not None
            assert one.weight_squares is not None
            squares = np.maximum(one.second[:, 0], 0.0)
            errors.append(np.where(u > 1, np.sqrt(u / (u - 1) * squares) / mass, np.nan))
            effective.append(mass**2 / one.weight_squares[:, 0])
            counts.append(u.astype(np.int64))
    se, units = np.stack(errors, axis=1), np.nan_to_num(np.stack(effective, axis=1))
    return replace(moments, se=se, units=units), np.stack(counts, axis=1)


CONFIDENCE = 0.95

OF_WEIGHTS = ("n_effective",)  # columns of the summary that only weighted means have
SUMMARY = ("metric", "k", "value", "std", "se", "ci_low", "ci_high", "n", "n_undefined")


def groups_of(per_user: pd.DataFrame, by: list[str]) -> tuple[np.ndarray, pd.DataFrame]:
    """Return the group of each row, and the labels of the groups in order of first appearance."""
    if not by:
        return np.zeros(len(per_user), np.int64), pd.DataFrame(index=range(1))
    grouped = per_user.groupby(by, sort=False, dropna=False, observed=True)
    group, n_groups = grouped.ngroup().to_numpy(), grouped.ngroups
    first = np.zeros(n_groups, np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    return group, per_user[by].take(first).reset_index(drop=True)


def means(
    per_user: pd.DataFrame,
    by: list[str],
    names: list[str],
    spec: Mapping[str, Any],
    confidence: float,
    units: Sequence[str] = (),
    weights: np.ndarray | None = None,
) -> pd.DataFrame:
    """Return the mean and the interval of some columns in each group of rows."""
    group, labels = groups_of(per_user, by)
    n_groups = len(labels)

    def columns() -> Iterator[np.ndarray]:
        return (per_user[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in names)

    moments = GroupMoments.of(columns(), group, n_groups, weights)
    if not units:
        return mean_table(labels, names, moments, spec, confidence)
    refuse_summary_names(by, ["n_users"])
    moments, n_users = clustered(columns(), group, unit_codes(per_user, units), moments, weights)
    return mean_table(labels, names, moments, spec, confidence).assign(n_users=n_users.ravel())


def unit_codes(per_user: pd.DataFrame, units: Sequence[str], sort: bool = False) -> np.ndarray:
    """Return a code for the unit of each row, in the order of the units' ids if they are to be
    sorted."""
    for name in units:
        if per_user[name].isna().any():
            raise NullKeyError(
                f"per_user[{name!r}] has null units: {int(per_user[name].isna().sum()):,}; drop "
                "them"
            )
        check_labels(per_user[name], f"per_user[{name!r}]")
    codes: np.ndarray = per_user.groupby(list(units), sort=sort, observed=True).ngroup().to_numpy()
    return codes


def refuse_summary_names(by: Iterable[Any], names: Sequence[str] = ()) -> None:
    """Raise if a `by` column has the name of a column of the summary, which would replace it."""
    taken = [name for name in map(str, by) if name in (*SUMMARY, *OF_WEIGHTS, *names)]
    if taken:
        raise ColumnError(
            f"the by column {taken[0]!r} has the name of a column of the summary; rename it"
        )


def mean_table(
    labels: pd.DataFrame,
    names: Sequence[str],
    moments: GroupMoments,
    spec: Mapping[str, Any],
    confidence: float = CONFIDENCE,
) -> pd.DataFrame:
    """Make one row per group (a row of `labels`) and metric column."""
    refuse_summary_names(labels.columns)
    statistics, n_groups = moments.statistics(confidence), len(labels)
    known = spec.get("metrics", {})
    described = [
        (known[name]["name"], known[name]["k"]) if name in known else split_column(name)
        for name in names
    ]
    columns: dict[str, Any] = {
        "metric": [name for name, _ in described] * n_groups,
        "k": pd.array([k for _, k in described] * n_groups, dtype="Int64"),
        **{name: array.ravel() for name, array in statistics.items()},
    }
    rows = np.repeat(np.arange(n_groups), len(names))
    repeated = {
        str(name): labels[name].take(rows).reset_index(drop=True) for name in labels.columns
    }
    return pd.DataFrame({**repeated, **columns}, copy=False)


def split_column(column: str) -> tuple[str, int | None]:
    """Return metric and k of a column such as ndcg@10."""
    name, at, k = column.rpartition("@")
    return (name, int(k)) if at and name and k.isdigit() else (column, None)


WeightBy = Literal["relevant", "shown", "rows"]
QUANTILES = {"min": 0.0, "median": 0.5, "max": 1.0}
GMEAN_FLOOR = 1e-5  # a value of 0 counts as this in a geometric mean, as in trec_eval
OF_MEANS = ("mean", "gmean", "urisk")  # means of transformed values, which take weights
STAT = either(one_of((*OF_MEANS, "sum", "std", *QUANTILES)), SHARE)
# Statistics that are better in the direction of their metric.
STAT_OF_MODELS = either(one_of(("mean", "sum", "median", "min", "max", "gmean")), SHARE)
Stat = str | float
ERRORS = ["value", "se", "ci_low", "ci_high"]


@dataclass(frozen=True)
class ListReduction:
    """What lists are reduced to; the arguments of `rd.summarize` explain the fields. `key` names a
    list in `base`."""

    stats: Sequence[Stat]
    weight_by: WeightBy | None
    base: pd.DataFrame | None
    alpha: Annotated[float, a_number(0)]
    n_resamples: Positive
    seed: Annotated[int, a_number(0, whole=True)]

    def __post_init__(self) -> None:
        check_record(self)
        for one in self.stats or [""]:
            STAT.check("stat", one)
        if ("urisk" in self.stats) != (self.base is not None):
            raise OptionError(
                '⟦stat="urisk"⟧ and ⟦+base=⟧, the per-user table of a baseline, are given together'
            )

    def refuse_weights(self, weighted: bool) -> None:
        """Raise if a statistic that weights have no meaning for is asked of weighted lists."""
        refused = [one for one in self.stats if one not in OF_MEANS]
        if refused and (weighted or self.weight_by is not None):
            raise OptionError(
                f"⟦stat={refused[0]!r}⟧ is of lists that count alike, and these have weights; "
                "mean, gmean and urisk take weights. To leave them out, pass per_user without the "
                "column of weights"
            )

    def weights_of(
        self, per_user: pd.DataFrame, k: int | None, weights: np.ndarray | None
    ) -> np.ndarray | None:
        """Return the weight of each list for a metric at this k."""
        if self.weight_by is None:
            return weights
        counts = column(
            per_user, "n_true" if self.weight_by == "relevant" else "n_pred", "per_user"
        )
        own = counts.to_numpy(np.float64)
        if self.weight_by == "shown" and k is not None:
            own = np.minimum(own, k)
        return own if weights is None else own * weights


def base_values(
    per_user: pd.DataFrame, base: pd.DataFrame, names: Sequence[str], key: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the values that a baseline has for the list of each row, NaN for lists that it
    lacks."""
    require(base, "base", [*key, *names])
    (own, theirs), n = key_codes([("per_user", per_user), ("base", base)], key)
    place = np.full(n, -1)
    place[theirs] = np.arange(len(theirs))
    if (np.bincount(theirs, minlength=n) > 1).any():
        raise DataError(
            f"base has several rows of a list ({list(key)}); expected the rows of one recommender"
        )
    rows = place[own]
    if len(rows) and (rows < 0).all():
        raise DataError(f"base has none of the lists of per_user: no {list(key)} is the same")
    columns = {name: base[name].to_numpy(np.float64, na_value=np.nan) for name in names}
    return {name: np.where(rows < 0, np.nan, values[rows]) for name, values in columns.items()}


def reduced(
    per_user: pd.DataFrame,
    by: list[str],
    names: Sequence[str],
    how: ListReduction,
    spec: Mapping[str, Any],
    confidence: float,
    units: Sequence[str],
    weights: np.ndarray | None,
    against: Mapping[str, np.ndarray],
) -> pd.DataFrame:
    """Return a row for each group, metric and statistic; `against` are the values of the
    baseline."""
    refuse_summary_names(by, ["stat"])
    tables = []
    for name in names:
        k = spec["metrics"][name]["k"] if name in spec.get("metrics", {}) else split_column(name)[1]
        weight = how.weights_of(per_user, k, weights)

        def of(values: Any, name: str = name, weight: np.ndarray | None = weight) -> pd.DataFrame:
            return means(
                per_user.assign(**{name: values}), by, [name], spec, confidence, units, weight
            )

        x = per_user[name].to_numpy(np.float64, na_value=np.nan)
        for stat in how.stats:
            if stat == "urisk":
                d = x - against[name]
                table = of(np.where(d < 0, (1 + how.alpha) * d, d))
            else:
                table = of(x)
            if stat == "sum":
                table[ERRORS] = table[ERRORS].mul(table["n"], axis=0)
            elif stat == "gmean":
                logs = of(np.log(np.maximum(x, GMEAN_FLOOR)))
                table[["value", "ci_low", "ci_high"]] = np.exp(logs[["value", "ci_low", "ci_high"]])
                table["se"] = logs["se"] * table["value"]
            elif stat not in OF_MEANS:
                table[ERRORS] = _resampled(
                    per_user, by, x, units, stat, how, confidence, table["se"].notna()
                )
            table.insert(len(by), "stat", str(stat))
            tables.append(table)
    # The tables have the groups in the same order; their rows are put together group by group.
    order = np.arange(len(tables) * len(tables[0])).reshape(len(tables), -1).T.ravel()
    return pd.concat(tables, ignore_index=True).take(order).reset_index(drop=True)


def _resampled(
    per_user: pd.DataFrame,
    by: list[str],
    x: np.ndarray,
    units: Sequence[str],
    stat: Stat,
    how: ListReduction,
    confidence: float,
    varies: pd.Series,
) -> np.ndarray:
    """Return value, standard error and percentile interval of a statistic in each group."""
    group, labels = groups_of(per_user, by)
    unit = unit_codes(per_user, units, sort=True) if units else None
    q = None if stat == "std" else QUANTILES[stat] if isinstance(stat, str) else float(stat)
    found = np.full((len(labels), len(ERRORS)), np.nan)
    for number, some in enumerate(varies):
        own = np.flatnonzero((group == number) & ~np.isnan(x))
        if len(own) > (q is None):
            found[number, 0] = np.std(x[own], ddof=1) if q is None else np.quantile(x[own], q)
        if some:
            # Codes in the order of the values, so that the order of the rows makes no difference.
            codes = np.argsort(np.argsort(x[own], kind="stable")) if unit is None else unit[own]
            statistic = drawn_std if q is None else drawn_quantile(q)
            drawn = replicate_statistic(x[own], codes, statistic, how.n_resamples, how.seed)[
                :, None
            ]
            low, high = quantile_interval(drawn, alternative="two-sided", confidence=confidence)
            found[number, 1:] = standard_error(drawn)[0], low[0], high[0]
    return found
