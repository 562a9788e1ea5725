"""Find the parts of a per-user table by its columns: `by` columns, list key, `n_true`, `n_pred`,
metrics.

A merge keeps the order of the columns but loses `attrs`. So functions rely on the columns, and the
caller passes what they cannot tell.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from ..errors import DataError, WeightWarning, warn_user


def evaluated(per_user: pd.DataFrame) -> Mapping[str, Any]:
    """Return what `evaluate` wrote into `attrs` of the table; it is empty after a merge.

    It may only replace an argument whose absence would be an error. No number in a result may
    depend on it.
    """
    spec = per_user.attrs.get("recdf")
    return spec if isinstance(spec, Mapping) else {}


def warn_of_weights(per_user: pd.DataFrame, role: str, used: Collection[Any]) -> None:
    """Warn that a table was evaluated with weights, which a call without `weight_col` leaves out.

    After a merge only the name "weight" can tell, which the weights of a mapping have. `used` are
    the columns that the call names for something else.
    """
    spec = evaluated(per_user)
    name = spec.get("weight")
    if not spec and "weight" in list_columns(per_user):
        name = "weight"
    if name is None or name not in per_user.columns or name in used:
        return
    warn_user(
        f"{role} has the weights of its evaluation in {name!r}, and every row counts alike here; "
        f"rd.summarize, ⟦rd.compare_models⟧ and ⟦rd.compare_variants⟧ take ⟦+weight_col={name!r}⟧. "
        "Drop the column if no weights are meant",
        WeightWarning,
    )


def list_columns(per_user: pd.DataFrame) -> list[Any]:
    """Return the `by` columns and the list key: the columns before `n_true` (and `n_rows`); none
    without `n_true`."""
    columns = list(per_user.columns)
    if "n_true" not in columns:
        return []
    counts = [columns.index(name) for name in ("n_rows", "n_true") if name in columns]
    return columns[: min(counts)]


def refuse_mixed_models(
    per_user: pd.DataFrame, by: Sequence[Any], key: Sequence[Any], keep: str
) -> None:
    """Raise if recommenders would be averaged together: a group of `by` has the same lists for each
    of them.

    `key` are columns that the caller names as parts of a list, and `keep` says how to average on
    purpose. Without what `evaluate` wrote, a column tells recommenders apart if most lists stand
    once under each of its values.
    """
    spec, columns = evaluated(per_user), list(per_user.columns)
    apart = [name for name in spec.get("by", []) if name in columns and name not in (*by, *key)]
    lists = [*by, *(name for name in spec.get("user_col", []) if name in columns)]
    mixed = len(lists) > len(by) and bool(apart) and len(per_user[apart].drop_duplicates()) > 1
    found = apart if mixed and per_user.duplicated(lists).any() else []
    first = (
        list_columns(per_user)
        or columns[: max((columns.index(name) for name in key), default=-1) + 1]
    )
    first = first or [name for name in ("user_id",) if name in columns]
    listed = [name for name in first if name not in by]
    words = per_user.select_dtypes(["object", "string", "category"]).columns
    for name in [] if spec else [*listed[:-1], *(one for one in words if one not in first)]:
        lists = [*by, *(one for one in listed if one != name)]
        dated = pd.api.types.is_datetime64_any_dtype(per_user[name])
        n = (
            1
            if name in (*by, *key) or dated or len(lists) == len(by)
            else per_user[name].nunique(dropna=False)
        )
        if 1 < n <= len(per_user) / n and not per_user.duplicated([*lists, name]).any():
            # A model may lack a few lists.
            found += (
                [name]
                if (per_user.groupby(lists, dropna=False, observed=True).size() == n).mean() > 0.5
                else []
            )
    if found:
        raise DataError(
            f"per_user has each list for several values of {found}, whose rows would be averaged "
            f"together; pass ⟦+by={[*found, *by]}⟧, or {keep} if their mean is meant"
        )
