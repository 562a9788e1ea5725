"""Find the parts of a per-user table by its columns: `by` columns, list key, `n_true`, `n_pred`, metrics.

A merge keeps the order of the columns but loses `attrs`. So functions rely on the columns, and the caller passes what
they cannot tell.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

from ..errors import WeightWarning, warn_user


def evaluated(per_user: pd.DataFrame) -> Mapping[str, Any]:
    """Return what `evaluate` wrote into `attrs` of the table; it is empty after a merge.

    It may only replace an argument whose absence would be an error. No number in a result may depend on it.
    """
    spec = per_user.attrs.get("recdf")
    return spec if isinstance(spec, Mapping) else {}


def warn_of_weights(per_user: pd.DataFrame, role: str, used: Collection[Any]) -> None:
    """Warn that a table was evaluated with weights, which a call without `weight_col` leaves out.

    After a merge only the name "weight" can tell, which the weights of a mapping have. `used` are the columns that the
    call names for something else.
    """
    spec = evaluated(per_user)
    name = spec.get("weight")
    if not spec and "weight" in list_columns(per_user):
        name = "weight"
    if name is None or name not in per_user.columns or name in used:
        return
    warn_user(
        f"{role} has the weights of its evaluation in {name!r}, and every row counts alike here; rd.summarize, "
        f"rd.compare_models and rd.compare_variants take weight_col={name!r}. Drop the column if no weights are meant",
        WeightWarning,
    )


def list_columns(per_user: pd.DataFrame) -> list[Any]:
    """Return the `by` columns and the list key: the columns before `n_true` (and `n_rows`); none without `n_true`."""
    columns = list(per_user.columns)
    if "n_true" not in columns:
        return []
    counts = [columns.index(name) for name in ("n_rows", "n_true") if name in columns]
    return columns[: min(counts)]
