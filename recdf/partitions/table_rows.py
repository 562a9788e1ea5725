"""Rows of Arrow tables: which have nulls, which are distinct, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# This many rows are kept as examples for messages.
HEAD = 100


def nulls(column: Any) -> np.ndarray | None:
    """Tell which values are null or NaN. Return None if there are none."""
    if not column.null_count and not pa.types.is_floating(column.type):
        return None
    null = pc.is_null(column, nan_is_null=True).to_numpy()
    return null if null.any() else None


def known_rows(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows that have neither a null nor a NaN in these columns."""
    missing = [null for null in (nulls(table[name]) for name in names) if null is not None]
    return table.filter(pa.array(~np.logical_or.reduce(missing))) if missing else table


def distinct(table: pa.Table) -> pa.Table:
    """Return the distinct rows in order of first appearance."""
    found = by_place(table)
    found = found.append_column("row", pa.array(np.arange(len(table)))).group_by(found.column_names)
    first = found.aggregate([("row", "min")])
    return table.take(first["row_min"].combine_chunks().sort() if len(first) else pa.array([], pa.int64()))


def ascending(table: pa.Table) -> pa.Table:
    """Return the rows sorted by the first column, then the second, and so on."""
    found = by_place(table)
    return table.take(pc.sort_indices(found, [(name, "ascending") for name in found.column_names]))


def by_place(table: pa.Table) -> pa.Table:
    """Return the table with columns c0, c1, ...: Arrow reads a name that begins with a dot or a bracket as a path.

    Periods, UUIDs and the like, which Arrow cannot compare, become what they are stored as.
    """
    return pa.table({f"c{i}": _stored(column) for i, column in enumerate(table.columns)})


def _stored(column: Any) -> Any:
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
