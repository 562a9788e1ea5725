"""What the columns of a per-user table are: `by` columns, list key, `n_true`, `n_pred`, metrics.

A merge keeps the order of the columns and loses `attrs`, so functions read the columns and ask the caller for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd


def evaluated(per_user: pd.DataFrame) -> Mapping[str, Any]:
    """What `evaluate` wrote about the table, as long as no merge has lost it.

    It may only fill in what would otherwise be an error: a number must not depend on it.
    """
    spec = per_user.attrs.get("recdf")
    return spec if isinstance(spec, Mapping) else {}


def list_columns(per_user: pd.DataFrame) -> list[Any]:
    """The columns before `n_true` (and `n_rows` of `roll_up`): `by` columns and list key; none without `n_true`."""
    columns = list(per_user.columns)
    if "n_true" not in columns:
        return []
    counts = [columns.index(name) for name in ("n_rows", "n_true") if name in columns]
    return columns[: min(counts)]
