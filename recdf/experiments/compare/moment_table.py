"""The table of moments: one row per segment, variant and metric, and one per two metrics of which
the covariance is needed. It is written, read, checked, and added up over parts of the users.

Contract: `MomentTable` has an array (cells, metrics) of each number, the cells by segment and
variant. Cells without a row have n = 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from ...errors import ColumnError, DataError, NullKeyError, OptionError, examples
from ...inputs.options import as_columns
from ...judge.aggregates import KnownMoments
from ...judge.comparisons import VARIANT_RESULT_COLUMNS
from ...judge.per_user_columns import (
    Codes,
    Floats,
    Mask,
    by_columns,
    frame_of,
    group_codes,
    metric_values,
    require,
    require_labels,
)
from ...judge.users import LEFT_OUT
from ...stats.arms import HUGE, Moments, add_moments
from ...stats.numbers import undefined_is_nan

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

    def record(self, metrics: Sequence[int], cells: Any) -> KnownMoments:
        """The moments of some metrics, of the same users, in some cells."""
        own = np.array(metrics)
        at = np.arange(len(metrics))
        of = {name: values[cells][:, own] for name, values in self.numbers.items()}
        central = self.covariances[cells][:, own[:, None], own] * of["n"][:, :, None]
        central[:, at, at] = of["var"] * of["n"]
        n, mean, _, skewness, low, high, *_ = of.values()
        zeros = np.where(low > 0, 0.0, of["n_zero"])
        return KnownMoments(n[:, 0], mean, central, skewness, low, high, zeros)

    def frame(self) -> DataFrame:
        """One row per (group, variant, metric) that has users, and per covariance."""
        there = self.n_users > 0
        of = {name: values[there] for name, values in self.numbers.items()}
        with undefined_is_nan():
            of["std"] = np.where(of["n"] > 1, np.sqrt(of["var"] * of["n"] / (of["n"] - 1)), np.nan)
        of |= {name: of[name].astype(np.int64) for name in ("n", "n_null")}

        def labelled(at: Any, numbers: Mapping[str, Any]) -> DataFrame:
            group, variant = np.divmod(at[0], len(self.variants))
            labels = self.groups.take(group).reset_index(drop=True)
            labels[self.variants.name] = self.variants.array.take(variant)
            labels["metric"] = Series([self.metrics[i] for i in at[1]], dtype=str)
            return labels.assign(**numbers)

        moments = labelled(np.nonzero(there), {name: of[name] for name in MOMENT_COLUMNS[1:]})
        if of[LEFT_OUT].any():
            moments[LEFT_OUT] = of[LEFT_OUT]
        i, j = np.triu_indices(len(self.metrics), 1)
        cell, pair = np.nonzero(~np.isnan(self.covariances[:, i, j]) & there[:, i])
        if not len(cell):
            return moments
        left = (cell, i[pair])
        right = (cell, j[pair])
        size = self.numbers["n"][left]
        mean = self.numbers["mean"]
        of_pairs = {
            "n": size.astype(np.int64),
            "mean": mean[left],
            "other": Series([self.metrics[one] for one in right[1]], dtype=str),
            "mean_other": mean[right],
            "covariance": self.covariances[(*left, right[1])] * size / np.maximum(size - 1, 1),
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
    if variant_col in by_cols:
        raise OptionError(
            f"⟦by={variant_col!r}⟧ is the column of the variant; name columns of segments"
        )
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
    names = pd.Index(metrics)
    by_cols = as_columns(by)
    other_names = moments.get("other", Series(None, moments.index))
    pairs = other_names.notna().to_numpy()
    place, other = (names.get_indexer(pd.Index(one)) for one in (moments["metric"], other_names))
    chosen = (place >= 0) & (~pairs | (other >= 0))
    moments, place, other, pairs = moments[chosen], place[chosen], other[chosen], pairs[chosen]
    variant, variants = group_codes(moments, "moments", [variant_col])
    group, groups = group_codes(moments, "moments", by_cols)
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
        *(
            (
                name,
                ~((of >= 0) & (of == np.floor(of))) & ((name == "n") | ~np.isnan(of)),
                "is not a number of users",
            )
            for name, of in read.items()
            if name in ("n", *COUNTS) and name != LEFT_OUT  # of a segment it is a part
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
