"""The table of moments: one row per segment, variant and metric, and one per two metrics of which
the covariance is needed. It is written, read, checked, and added up over parts of the users.

Contract: `MomentTable` has an array (cells, metrics) of each number, the cells by segment and
variant. Cells without a row have n = 0."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from ...errors import ColumnError, DataError, NullKeyError, OptionError, examples
from ...inputs.options import as_columns
from ...judge.aggregates import KnownMoments
from ...judge.choices import TwoPlaces
from ...judge.comparisons import VARIANT_RESULT_COLUMNS
from ...judge.effects.units import Units
from ...judge.per_user_columns import (
    Codes,
    Floats,
    Mask,
    MetricColumns,
    by_columns,
    covariate_name,
    frame_of,
    group_codes,
    metric_values,
    refuse_variant,
    require,
    require_labels,
)
from ...judge.users import LEFT_OUT, ExperimentRows
from ...stats.arms import HUGE, Moments, add_moments, both
from ...stats.numbers import undefined_is_nan
from ...stats.resampling import Split
from ..decide.balance import random_split_p
from ..metric_bounds import MetricKind
from ..samples import Ready, Settings, differ
from .summed_users import NeededForms, linear, needed_columns

# Columns of a frame of moments, beside `by` and the variant.
NEEDED = ("metric", "n", "mean", "std")
MOMENT_COLUMNS = ["metric", "n", "n_null", "mean", "std", "skewness", "min", "max"]
# Ratios and covariates have these, too: users with the value 0, users of a ratio who have nothing
# to count, and rows with the covariance of two metrics.
PAIR_COLUMNS = ["n_zero", "n_empty", "other", "mean_other", "covariance"]
# The numbers of a cell and metric: its moments, and users who are counted.
COUNTS = ("n_null", "n_zero", "n_empty", LEFT_OUT)
CELL_NUMBERS = ("n", "mean", "var", "skewness", "min", "max", *COUNTS)
# Frames of other programs may lack these.
OPTIONAL = ("skewness", "min", "max", *COUNTS)

# Rounding may take a covariance so far beyond that of two equal columns.
_SLACK = 1e-9


@dataclass(frozen=True)
class MomentTable:
    """`numbers` has an array (cells, metrics) by each name of `CELL_NUMBERS`, and `covariances` is
    (cells, metrics, metrics). A number that is not known is NaN."""

    groups: DataFrame
    variants: Series
    metrics: list[str]
    numbers: Mapping[str, Floats]
    covariances: Floats

    @property
    def n_users(self) -> Floats:
        """Users of each cell, whether or not their metric is null."""
        return self.numbers["n"] + self.numbers["n_null"] + self.numbers["n_empty"]

    def record(self, metrics: Sequence[str], cells: Any) -> KnownMoments:
        """The moments of some metrics, of the same users, in some cells."""
        own = [self.metrics.index(name) for name in metrics]
        n, mean, var, skewness, low, high, _, zeros, *_ = (
            values[cells][:, own] for values in self.numbers.values()
        )
        central = self.covariances[cells][:, own][:, :, own] * n[:, :, None]
        at = np.arange(len(own))
        central[:, at, at] = var * n
        zeros = np.where(low > 0, 0.0, zeros)
        return KnownMoments(n[:, 0], mean, central, skewness, low, high, zeros)

    def frame(self) -> DataFrame:
        """One row per (group, variant, metric) that has users, and per covariance."""
        there = self.n_users > 0
        names = Series(self.metrics, dtype=str).array
        n, mean, var = (self.numbers[name] for name in ("n", "mean", "var"))
        free = np.where(n > 1, n - 1, np.nan)
        numbers = {**self.numbers, "std": np.sqrt(var * n / free)}

        def labelled(at: Any, numbers: Mapping[str, Any]) -> DataFrame:
            group, variant = np.divmod(at[0], len(self.variants))
            labels = self.groups.take(group).reset_index(drop=True)
            labels[self.variants.name] = self.variants.array.take(variant)
            return labels.assign(metric=names.take(at[1]), **numbers)

        used = [*MOMENT_COLUMNS[1:], *[LEFT_OUT] * bool(self.numbers[LEFT_OUT][there].any())]
        of = {name: values[there] for name, values in numbers.items()}
        of |= {name: of[name].astype(np.int64) for name in ("n", "n_null")}
        moments = labelled(np.nonzero(there), {name: of[name] for name in used})
        i, j = np.triu_indices(len(self.metrics), 1)
        cell, pair = np.nonzero(~np.isnan(self.covariances[:, i, j]) & there[:, i])
        if not (len(cell) or of["n_empty"].any()):
            return moments
        left = (cell, i[pair])
        right = (cell, j[pair])
        of_pairs = {
            "n": n[left].astype(np.int64),
            "mean": mean[left],
            "other": names.take(right[1]),
            "mean_other": mean[right],
            "covariance": self.covariances[(*left, right[1])]
            * n[left]
            / np.maximum(n[left] - 1, 1),
        }
        moments = moments.assign(n_zero=of["n_zero"], n_empty=of["n_empty"])
        return pd.concat([moments, labelled(left, of_pairs)], ignore_index=True)


def label_columns(frame: DataFrame, role: str, by: Any, variant_col: str) -> list[str]:
    """Return the columns of `by`. Neither they nor the variant may have the name of a column of a
    result."""
    require(frame, role, variant_col)
    if variant_col in MOMENT_COLUMNS:
        raise OptionError(
            f"⟦variant_col={variant_col!r}⟧ is also a column of moments; rename it in {role}"
        )
    by_cols = by_columns(frame, role, by, [*MOMENT_COLUMNS, *VARIANT_RESULT_COLUMNS])
    refuse_variant(by_cols, variant_col)
    return by_cols


def names_of_metrics(moments: DataFrame, variant_col: str, by: Any) -> list[str]:
    """Check the columns of a frame of moments, and return its metrics in the order of its rows."""
    frame_of("moments", moments)
    if not set(NEEDED) & set(moments.columns):
        raise ColumnError(
            f"moments has none of the columns {', '.join(map(repr, NEEDED))}; expected what "
            "variant_moments returns. If it has one row per user, call "
            "rd.experiments.variant_moments first, or pass the users to ⟦rd.compare_variants⟧"
        )
    require(moments, "moments", [variant_col, *NEEDED])
    by_cols = label_columns(moments, "moments", by, variant_col)
    known = {*by_cols, variant_col, *NEEDED, *OPTIONAL, *PAIR_COLUMNS}
    if unknown := [name for name in moments.columns if name not in known]:
        raise ColumnError(
            f"moments has the column {unknown[0]!r}, which is no moment. If it is a segment, name "
            "it in ⟦+by=⟧. If it is a part of the users (a file, a shard), drop it, and the rows "
            "of its values are added: each user must be in one part only"
        )
    if not len(moments):
        raise DataError("moments has no rows; expected one per variant and metric")
    require_labels(moments, "moments", [one for one in ("metric", "other") if one in moments])
    names = moments["metric"]
    if null := names.isna().sum():
        raise NullKeyError(f"moments['metric'] is null in {null:,} of {len(moments):,} rows")
    found = names.unique().tolist()
    if not all(isinstance(name, str) for name in found):
        raise DataError(
            f"moments['metric'] has {examples(found)}; the name of a metric is a string"
        )
    return found


def read_moments(
    moments: DataFrame, variant_col: str, by: Any, metrics: Sequence[str]
) -> MomentTable:
    """Read a frame of moments of some metrics, and add the rows of the same segment, variant and
    metric."""
    if "other" not in moments:
        moments = moments.assign(other=None)
    alone = moments["other"].isna()
    moments = moments[moments["metric"].isin(metrics) & (alone | moments["other"].isin(metrics))]
    names = pd.Index(metrics)
    place, other = (names.get_indexer(pd.Index(moments[one])) for one in ("metric", "other"))
    pairs = other >= 0
    variant, variants = group_codes(moments, "moments", [variant_col])
    group, groups = group_codes(moments, "moments", as_columns(by))
    cell = group * len(variants) + variant
    n = len(names)
    shape = len(groups) * len(variants), n
    at = (cell * n + place)[~pairs]
    size = shape[0] * n
    read = _read_numbers(moments[~pairs])
    added = add_moments(Moments(*(read[name] for name in CELL_NUMBERS[:6])), at, size)
    counted = (np.bincount(at, read[name], size) for name in COUNTS)
    every = zip(CELL_NUMBERS, (*added, *counted), strict=True)
    numbers = {name: np.reshape(one, shape) for name, one in every}
    at_pairs = cell[pairs], place[pairs], other[pairs]
    covariances = _covariances(moments[pairs], *at_pairs, numbers)
    table = MomentTable(groups, variants[variant_col], [*metrics], numbers, covariances)
    _check_same_users(table, np.bincount(at, minlength=size).reshape(shape) > 0)
    return table


def _covariances(
    rows: DataFrame, cell: Codes, one: Codes, two: Codes, numbers: Mapping[str, Floats]
) -> Floats:
    """Σ(x − mean)(y − mean)/n of two metrics in each cell; NaN without rows."""
    n, mean, var = (numbers[name] for name in ("n", "mean", "var"))
    shape = (*n.shape, n.shape[1])
    if not len(rows):
        return np.full(shape, np.nan)
    of, x, y, covariance = (
        metric_values(rows, "moments", name) for name in ("n", "mean", *PAIR_COLUMNS[3:])
    )
    within = np.where(of > 1, (of - 1) * covariance, 0.0)
    between = of * (x - mean[cell, one]) * (y - mean[cell, two])
    sums = np.nan_to_num(between + within)
    found, counted = both = np.zeros((2, *shape))
    for pair in ((one, two), (two, one)):
        at: Any = slice(None), cell, *pair
        np.add.at(both, at, [sums, of])
    # Two metrics may be of the same users in some parts only.
    size = np.maximum(n[:, :, None], n[:, None])
    more = counted > size
    counted = np.where(counted < size, 0.0, counted)
    with undefined_is_nan():
        found = np.where(counted > 0, found / counted, np.nan)
        beyond = found**2 > var[:, :, None] * var[:, None] * (1 + _SLACK)
    for wrong, what, advice in (
        (
            more,
            "the covariances in moments are of more users than the means",
            ". Every part of the users must have each covariance once",
        ),
        (
            beyond,
            "a covariance in moments is larger than the product of the standard deviations",
            "",
        ),
    ):
        if n_wrong := wrong.any(axis=(1, 2)).sum():
            raise DataError(f"{what} in {n_wrong:,} of {len(n):,} variants or segments{advice}")
    return found


def _read_numbers(moments: DataFrame) -> dict[str, Floats]:
    """The numbers of every row, and its standard deviation; NaN for what is not known."""
    read = {
        name: metric_values(moments, "moments", name)
        if name in moments
        else np.full(len(moments), np.nan)
        for name in ("n", "mean", "std", *OPTIONAL)
    }
    n, mean, std, low, high = (read[name] for name in ("n", "mean", "std", "min", "max"))
    largest = np.fmax(np.abs(low), np.abs(high))
    huge = np.fmax(np.abs(mean), largest) >= HUGE
    slack = 1e-9 * largest
    rules = [
        ("n", np.isnan(n), "is not a number of users"),
        *(
            (name, (read[name] < 0) | (read[name] % 1 > 0), "is not a number of users")
            for name in ("n", *COUNTS[:3])  # users who were left out may be a part of one
        ),
        ("mean", np.isnan(mean) & (n > 0), "is null beside users"),
        ("std", np.isnan(std) & (n > 1) & ~huge, "is null beside two users or more"),
        ("std", std < 0, "is negative"),
        ("mean", (mean < low - slack) | (mean > high + slack), "is not between min and max"),
    ]
    for name, wrong, what in rules:
        if wrong.any():
            shown = moments.loc[wrong, name].head(3).tolist()
            raise DataError(
                f"moments[{name!r}] {what} in {wrong.sum():,} of {len(moments):,} rows "
                f"({examples(shown)})"
            )
    with undefined_is_nan():
        var = np.where(n > 1, std**2 * (n - 1) / n, np.where(n == 1, 0.0, np.nan))
    return read | {
        "var": var,
        "skewness": np.where(var == 0, 0.0, read["skewness"]),
        "n_zero": np.where(n == 0, 0.0, read["n_zero"]),
        **{name: np.nan_to_num(read[name]) for name in ("n_empty", LEFT_OUT)},
    }


def _check_same_users(table: MomentTable, there: Mask) -> None:
    """Refuse metrics of different users: of some parts only, or of several populations."""
    some = there.any(axis=1)
    users = table.n_users
    unequal = np.fmin.reduce(users, axis=1) < np.fmax.reduce(users, axis=1)
    wrong = np.flatnonzero(some & (unequal | ~there.all(axis=1)))
    if not len(wrong):
        return
    first = wrong[0]
    counts = np.nan_to_num(users[first], nan=-1).astype(int).tolist()
    every = zip(table.metrics, counts, there[first], strict=True)
    found = {name: n if here else "no row" for name, n, here in every}
    g, v = divmod(first, len(table.variants))
    labels = [*table.groups.iloc[g].items(), (table.variants.name, table.variants.iloc[v])]
    where = ", ".join(f"{name}={value!r}" for name, value in labels)
    raise DataError(
        "the metrics of moments have different numbers of users (n + n_null) in "
        f"{len(wrong):,} of {some.sum():,} variants or segments, such as {where}: "
        f"{found}. Every part of the users must have every metric; if the metrics are of different "
        "users, name those of the same users in ⟦+metrics=⟧"
    )


# Moments of zeros and ones have the variance p(1 − p); this is how far rounding may take it from
# there.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class MomentArms:
    """Users of whom only the moments are known. `needed` has a metric and its covariates by the
    name of the metric."""

    table: MomentTable
    needed: NeededForms
    groups: DataFrame
    variants: Series
    rows: ExperimentRows | None = None

    @classmethod
    def of(cls, table: MomentTable, needed: Mapping[str, Sequence[MetricColumns]]) -> MomentArms:
        """The arms of a table, which must have what each metric and its covariates need."""
        for of, forms in needed.items():
            names = needed_columns(forms)
            record = table.record(names, slice(None))
            some = record.n > 0
            for one, other in itertools.combinations(range(len(names)), 2):
                if np.isnan(record.central[some, one, other]).any():
                    raise DataError(
                        f"moments has no covariance of {names[one]!r} and {names[other]!r}; name "
                        f"{of!r} and its ⟦+covariates=⟧ in one call of "
                        "rd.experiments.variant_moments"
                    )
            for name in (den for _, den in forms if den is not None):
                den = names.index(name)
                if (record.lows[some, den] < 0).any():
                    raise DataError(f"{name!r} is negative for some users; a denominator is not")
                if np.isnan(record.zeros[some, den]).any():
                    raise DataError(
                        f"moments has no 'n_zero' of {name!r}, the number of users whose "
                        "denominator is 0"
                    )
        return cls(table, needed, table.groups, table.variants)

    @property
    def counts(self) -> Floats:
        """Users of every variant, in each group and over all of them; those who have the first
        metric where the others are not known."""
        n, users = self.table.numbers["n"][:, 0], self.table.n_users[:, 0]
        users = np.where(np.isnan(users), n, users).reshape(len(self.groups), -1)
        # With segments, the same users may be in several.
        return np.vstack([users, users[0] if len(users) == 1 else users[0] * np.nan])

    @property
    def left_out(self) -> Floats:
        """Users of each group and variant who were in several."""
        return self.table.numbers[LEFT_OUT].max(axis=1).reshape(len(self.groups), -1)

    def tested(self) -> dict[str, dict[str, MetricColumns]]:
        """What is to be alike in both arms of every metric, by its name."""
        return {name: {covariate_name(x): x for x in xs} for name, (_, *xs) in self.needed.items()}

    def p_values(self, used: Mapping[str, MetricColumns], group: int, pair: TwoPlaces) -> Floats:
        """p that both arms have the same mean, of everything that is used: of the covariates of
        each metric where these are of different users, else of all together."""
        every = [*used.values()]
        p: dict[MetricColumns, float] = {}
        if every and np.isnan(self.table.record(needed_columns(every), slice(None)).central).any():
            groups = [xs for _, *xs in self.needed.values()]
        else:
            groups = [every]
        for together in filter(None, groups):
            names = needed_columns(together)
            arms = self.table.record(names, group * len(self.variants) + np.array(pair))
            third = functools.partial(_third_moment, arms)
            found = random_split_p(linear(together, names), arms, third, _without_skewness)
            p |= zip(together, found.tolist(), strict=True)
        return np.array([p[one] for one in every])

    def ready(self, group: int, pair: TwoPlaces, settings: Settings) -> Iterator[Ready]:
        """The units of each metric in both arms."""
        cells = group * len(self.variants) + np.array(pair)
        for name, forms in self.needed.items():
            names = needed_columns(forms)
            metric, *covariates = linear(forms, names)
            record = self.table.record(names, cells)
            units = Units.of_moments(record, metric, tuple(covariates))
            at = self.table.metrics.index(names[0])
            of = {number: values[:, at] for number, values in self.table.numbers.items()}
            n_null = of["n_null"][cells]
            dropped = n_null + of["n_empty"][cells]
            remarks: tuple[str, ...] = ("missing_not_checked",)
            n_dropped = both(float, tuple(dropped))
            if not np.isnan(n_null).any():
                n_dropped = both(int, n_dropped)
                some, whole = n_null[:, None], (units.n + dropped)[:, None]
                remarks = ("unequal_missing",) * differ(some, whole, False, self.groups)
            mean, low, high = of["mean"], of["min"], of["max"]
            with undefined_is_nan():
                var = mean * (1 - mean)
                share = np.isclose(of["var"], var, rtol=_ROUNDING, atol=1e-15, equal_nan=True)
            share &= ~(low < 0) & ~(high > 1)
            seen = float(np.fmin.reduce(low)), float(np.fmax.reduce(high))
            yield Ready(
                name, units, n_dropped, remarks, MetricKind.of(forms[0], seen, bool(share.all()))
            )


def _third_moment(arms: KnownMoments, form: Floats, record: Any, stratum: int) -> float:
    """Σ z³ of a form of one column; 0 where nobody knows it, as of a normal mean."""
    used, *others = np.flatnonzero(form)
    skewness = arms.skewness[:, used]
    if others or np.isnan(skewness).any():
        return 0.0
    var = arms.central[:, used, used] / arms.n
    apart = arms.mean[:, used] - record.mean[0, used]
    cubes = arms.n * (skewness * var**1.5 + 3 * apart * var + apart**3)
    return form[used] ** 3 * cubes.sum()


def _without_skewness(of: Split, form: Floats, stratum: int) -> Split:
    """Moments have no ranks."""
    return of._replace(skewness=0.0)
