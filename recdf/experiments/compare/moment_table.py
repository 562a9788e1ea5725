"""The table of moments: one row per segment, variant and metric, and one per two metrics of which
the covariance is needed. It is written, read, checked, and added up over parts of the users.

Contract: `MomentTable` has an array (groups, variants, metrics) of each moment, and labels on its
sides. Cells without a row have n = 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...errors import ColumnError, DataError, NullKeyError, OptionError, examples
from ...inputs.options import as_columns
from ...judge.aggregates import KnownMoments
from ...judge.per_user_columns import (
    Codes,
    Floats,
    Mask,
    by_columns,
    frame_of,
    group_codes,
    metric_values,
    require,
)
from ...stats.moments import HUGE, Moments, add_moments
from ...stats.numbers import undefined_is_nan
from .two_sample import VARIANT_RESULT_COLUMNS

# Columns of a frame of moments, beside `by` and the variant. Frames of other programs may lack the
# optional ones.
NEEDED = ("metric", "n", "mean", "std")
OPTIONAL = ("n_null", "skewness", "min", "max", "n_zero", "n_empty")
MOMENT_COLUMNS = ["metric", "n", "n_null", "mean", "std", "skewness", "min", "max"]
# Ratios and covariates have these, too: users with the value 0, users of a ratio who have nothing
# to count, and rows with the covariance of two metrics.
PAIR_COLUMNS = ["n_zero", "n_empty", "other", "mean_other", "covariance"]

# Rounding may take a covariance so far beyond that of two equal columns.
_SLACK = 1e-9


@dataclass(frozen=True)
class MomentTable:
    """Moments in arrays (groups, variants, metrics), and `covariances` (groups, variants, metrics,
    metrics). A number that is not known is NaN."""

    groups: pd.DataFrame
    variants: pd.Series
    metrics: list[str]
    moments: Moments
    n_null: Floats
    n_zero: Floats
    n_empty: Floats
    covariances: Floats

    @property
    def n_users(self) -> Floats:
        """Users of each cell, whether or not their metric is null."""
        return np.asarray(self.moments.n + self.n_null + self.n_empty)

    def record(self, metrics: Sequence[int], cells: Any) -> KnownMoments:
        """The moments of some metrics, of the same users, in some (group, variant) by their
        number."""
        n, mean, var, skewness, low, high, zeros = (
            np.asarray(one).reshape(-1, len(self.metrics))[cells][:, metrics]
            for one in (*self.moments, self.n_zero)
        )
        own = np.array(metrics)
        central = self.covariances.reshape(-1, *self.covariances.shape[2:])[cells]
        central = central[:, own[:, None], own] * n[:, :, None]
        at = np.arange(len(own))
        central[:, at, at] = var * n
        zeros = np.where(low > 0, 0.0, zeros)
        return KnownMoments(n[:, 0], mean, central, skewness, low, high, zeros)

    def frame(self) -> pd.DataFrame:
        """One row per (group, variant, metric) that has users, and per covariance."""
        there = self.n_users > 0
        n, mean, var, *others = (np.asarray(values)[there] for values in self.moments)
        with undefined_is_nan():
            std = np.where(n > 1, np.sqrt(var * n / (n - 1)), np.nan)
        counts = n.astype(np.int64), self.n_null[there].astype(np.int64)
        numbers = dict(zip(MOMENT_COLUMNS[1:], [*counts, mean, std, *others], strict=True))
        i, j = np.triu_indices(len(self.metrics), 1)
        pairs = ~np.isnan(self.covariances[:, :, i, j]) & there[:, :, i]
        if not pairs.any():
            return self._labelled(np.nonzero(there), numbers)
        numbers |= {"n_zero": self.n_zero[there], "n_empty": self.n_empty[there]}
        group, variant, pair = np.nonzero(pairs)
        left, right = (group, variant, i[pair]), (group, variant, j[pair])
        n, mean = (np.asarray(one) for one in self.moments[:2])
        size = n[left]
        of_pairs = {
            "n": size.astype(np.int64),
            "mean": mean[left],
            "other": pd.Series([self.metrics[one] for one in right[2]], dtype=str),
            "mean_other": mean[right],
            "covariance": self.covariances[(*left, right[2])] * size / np.maximum(size - 1, 1),
        }
        found = self._labelled(np.nonzero(there), numbers), self._labelled(left, of_pairs)
        names = [*found[0].columns, *PAIR_COLUMNS[2:]]
        every: pd.DataFrame = pd.concat(found, ignore_index=True)[names]
        return every

    def _labelled(self, at: Any, numbers: Mapping[str, Any]) -> pd.DataFrame:
        """Numbers beside their labels."""
        group, variant, metric = at
        labels = self.groups.iloc[group].reset_index(drop=True)
        labels[self.variants.name] = self.variants.iloc[variant].reset_index(drop=True)
        labels["metric"] = pd.Series([self.metrics[i] for i in metric], dtype=str)
        found: pd.DataFrame = pd.concat([labels, pd.DataFrame(numbers)], axis=1)
        return found


def label_columns(frame: pd.DataFrame, role: str, by: Any, variant_col: str) -> list[str]:
    """Return the columns of `by`. Neither they nor the variant may have the name of a column of a
    result."""
    require(frame, role, [variant_col])
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


def names_of_metrics(moments: pd.DataFrame, variant_col: str, by: Any) -> list[str]:
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
    known = (*by_cols, variant_col, *NEEDED, *OPTIONAL, *PAIR_COLUMNS)
    unknown = [name for name in moments.columns if name not in known]
    if unknown:
        raise ColumnError(
            f"moments has the column {unknown[0]!r}, which is no moment. If it is a segment, name "
            "it in ⟦+by=⟧. If it is a part of the users (a file, a shard), drop it, and the rows "
            "of its values are added: each user must be in one part only"
        )
    if not len(moments):
        raise DataError("moments has no rows; expected one per variant and metric")
    names = moments["metric"]
    if names.isna().any():
        raise NullKeyError(
            f"moments['metric'] is null in {int(names.isna().sum()):,} of {len(moments):,} rows"
        )
    found = names.unique().tolist()
    if not all(isinstance(name, str) for name in found):
        raise DataError(
            f"moments['metric'] has {examples(found)}; the name of a metric is a string"
        )
    return found


def read_moments(
    moments: pd.DataFrame, variant_col: str, by: Any, metrics: Sequence[str] | None = None
) -> MomentTable:
    """Read a frame of moments (of some metrics), and add the rows of the same segment, variant and
    metric."""
    every = names_of_metrics(moments, variant_col, by)
    names, by_cols = every if metrics is None else [*metrics], as_columns(by)
    place = pd.Index(names).get_indexer(pd.Index(moments["metric"]))
    other = np.full(len(moments), -1)
    pairs = np.zeros(len(moments), bool)
    if "other" in moments.columns:
        pairs = moments["other"].notna().to_numpy()
        other = pd.Index(names).get_indexer(pd.Index(moments["other"]))
    chosen = (place >= 0) & (~pairs | (other >= 0))
    place, other, pairs = (one[chosen] for one in (place, other, pairs))
    moments = moments[chosen]
    variant, variants = group_codes(moments, "moments", [variant_col])
    group, groups = group_codes(moments, "moments", by_cols)
    shape = len(groups), len(variants), len(names)
    size, arm = int(np.prod(shape)), group * shape[1] + variant
    cell = (arm * shape[2] + place)[~pairs]
    parts, counts = _read_numbers(moments[~pairs])
    added = add_moments(parts, cell, size)
    n_null, n_zero, n_empty = (
        np.bincount(cell, weights=one, minlength=size).astype(np.float64).reshape(shape)
        for one in counts
    )
    there = np.bincount(cell, minlength=size).reshape(shape) > 0
    found = Moments(*(np.asarray(values).reshape(shape) for values in added))
    covariances = _covariances(moments[pairs], arm[pairs], place[pairs], other[pairs], found)
    table = MomentTable(
        groups[by_cols],
        variants[variant_col],
        names,
        found,
        n_null,
        n_zero,
        n_empty,
        covariances,
    )
    _check_same_users(table, there)
    return table


def _covariances(
    rows: pd.DataFrame, arm: Codes, one: Codes, two: Codes, moments: Moments
) -> Floats:
    """Σ(x − mean)(y − mean)/n of two metrics in each group and variant; NaN without rows."""
    n, mean, var = (np.asarray(values) for values in moments[:3])
    shape = (*n.shape, n.shape[2])
    if not len(rows):
        return np.full(shape, np.nan)
    require(rows, "moments", PAIR_COLUMNS[3:])
    of, x, y, covariance = (
        metric_values(rows, "moments", name) for name in ("n", "mean", *PAIR_COLUMNS[3:])
    )
    n, mean, var = (values.reshape(-1, shape[2]) for values in (n, mean, var))
    here = [(x - mean[arm, one]) * (y - mean[arm, two]), np.where(of > 1, covariance, 0.0)]
    sums = np.nan_to_num(of * here[0] + (of - 1) * here[1] * (of > 1))
    found, counted = both = np.zeros((2, len(n), shape[2], shape[2]))
    for pair in ((one, two), (two, one)):
        at: Any = slice(None), arm, *pair
        np.add.at(both, at, [sums, of])
    # Two metrics may be of the same users in some parts only.
    size = np.maximum(n[:, :, None], n[:, None])
    wrong, counted = counted > size, np.where(counted < size, 0.0, counted)
    if wrong.any():
        raise DataError(
            "the covariances in moments are of more users than the means in "
            f"{int(wrong.any(axis=(1, 2)).sum()):,} of {len(n):,} variants or segments. Every part "
            "of the users must have each covariance once"
        )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = np.where(counted > 0, found / counted, np.nan)
        beyond = found**2 > var[:, :, None] * var[:, None] * (1 + _SLACK)
    if beyond.any():
        raise DataError(
            "a covariance in moments is larger than the product of the standard deviations in "
            f"{int(beyond.any(axis=(1, 2)).sum()):,} of {len(n):,} variants or segments"
        )
    return np.asarray(found.reshape(shape))


def _read_numbers(moments: pd.DataFrame) -> tuple[Moments, list[Floats]]:
    """The moments of every row, and the numbers of nulls, zeros and users without anything to
    count; NaN for what is not known."""
    unknown = np.full(len(moments), np.nan)
    read = {
        name: metric_values(moments, "moments", name) if name in moments.columns else unknown
        for name in ("n", "mean", "std", *OPTIONAL)
    }
    n, mean, std, low, high = (read[name] for name in ("n", "mean", "std", "min", "max"))
    huge = np.fmax(np.abs(mean), np.fmax(np.abs(low), np.abs(high))) >= HUGE
    slack = 1e-9 * np.fmax(np.abs(low), np.abs(high))
    with np.errstate(invalid="ignore"):
        users = {
            name: (read[name] < 0) | (read[name] > np.floor(read[name]))
            for name in OPTIONAL
            if "n_" in name
        }
        users["n"] = ~((n >= 0) & (n == np.floor(n)))
        outside = (mean < low - slack) | (mean > high + slack)
        rules = [
            *((name, wrong, "is not a number of users") for name, wrong in users.items()),
            ("mean", np.isnan(mean) & (n > 0), "is null beside users"),
            ("std", np.isnan(std) & (n > 1) & ~huge, "is null beside two users or more"),
            ("std", std < 0, "is negative"),
            ("mean", outside, "is not between min and max"),
        ]
    for name, wrong, what in rules:
        if wrong.any():
            shown = moments.loc[wrong, name].head(3).tolist()
            raise DataError(
                f"moments[{name!r}] {what} in {int(wrong.sum()):,} of {len(moments):,} rows "
                f"({examples(shown)})"
            )
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        var = np.where(n > 1, std**2 * (n - 1) / n, np.where(n == 1, 0.0, np.nan))
    skewness = np.where(var == 0, 0.0, read["skewness"])
    zeros, empty = np.where(n == 0, 0.0, read["n_zero"]), np.nan_to_num(read["n_empty"])
    return Moments(n, mean, var, skewness, low, high), [read["n_null"], zeros, empty]


def _check_same_users(table: MomentTable, there: Mask) -> None:
    """Refuse metrics of different users: of some parts only, or of several populations."""
    some = there.any(axis=2)
    users = table.n_users
    known = ~np.isnan(users)
    least = np.where(known, users, np.inf).min(axis=2)
    most = np.where(known, users, -np.inf).max(axis=2)
    wrong = some & (~there.all(axis=2) | (known.all(axis=2) & (least < most)))
    if not wrong.any():
        return
    g, v = np.argwhere(wrong)[0]
    found = {
        name: int(n) if here else "no row"
        for name, n, here in zip(
            table.metrics, np.where(known[g, v], users[g, v], -1), there[g, v], strict=True
        )
    }
    labels = [*table.groups.iloc[g].items(), (table.variants.name, table.variants.iloc[v])]
    where = ", ".join(f"{name}={value!r}" for name, value in labels)
    raise DataError(
        "the metrics of moments have different numbers of users (n + n_null) in "
        f"{int(wrong.sum()):,} of {int(some.sum()):,} variants or segments, such as {where}: "
        f"{found}. Every part of the users must have every metric; if the metrics are of different "
        "users, name those of the same users in ⟦+metrics=⟧"
    )
