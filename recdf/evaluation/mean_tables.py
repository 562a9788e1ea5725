"""Tables of means: one row per group and metric column, in the columns `SUMMARY`.

Contract: this module knows columns of numbers and their groups, and computes nothing of a metric.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ColumnError, NullKeyError
from ..inputs.ids import check_labels
from .value_moments import GroupMoments, clustered

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
    if "n_users" in by:
        raise ColumnError(
            "the by column 'n_users' has the name of a column of the summary; rename it"
        )
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


def refuse_summary_names(by: pd.DataFrame) -> None:
    """Raise if a `by` column has the name of a column of the summary, which would replace it."""
    taken = [name for name in map(str, by.columns) if name in (*SUMMARY, *OF_WEIGHTS)]
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
    refuse_summary_names(labels)
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
