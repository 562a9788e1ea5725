"""Find the parts of a per-user table by its columns: `by` columns, list key, `n_true`, `n_pred`, metrics.

A merge keeps the order of the columns but loses `attrs`. So functions rely on the columns, and the caller passes what
they cannot tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd


def evaluated(per_user: pd.DataFrame) -> Mapping[str, Any]:
    """Return what `evaluate` wrote into `attrs` of the table; it is empty after a merge.

    It may only replace an argument whose absence would be an error. No number in a result may depend on it.
    """
    spec = per_user.attrs.get("recdf")
    return spec if isinstance(spec, Mapping) else {}


def list_columns(per_user: pd.DataFrame) -> list[Any]:
    """Return the `by` columns and the list key: the columns before `n_true` (and `n_rows`); none without `n_true`."""
    columns = list(per_user.columns)
    if "n_true" not in columns:
        return []
    counts = [columns.index(name) for name in ("n_rows", "n_true") if name in columns]
    return columns[: min(counts)]
