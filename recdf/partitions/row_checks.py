"""Check rows that come in batches, by applying the rules of `inputs.row_rules` to Arrow tables.

Contract: `RowCheck.kept` returns the rows of a batch that are not dropped. `finish` raises the error that `evaluate`
raises for the whole frame, with the same message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..inputs.options import Options, as_columns
from ..inputs.row_rules import Broken, Findings, broken_ids, broken_order, broken_relevance, judged
from ..inputs.tables import Order, broken_of_true, gains, read_relevance, relevance_source
from .source import as_frame

# This many rows are kept as examples for messages.
HEAD = 100


class RowCheck:
    """The checks of one frame that is read in batches, and what they have found so far.

    `counts` : numbers of dropped rows · `by_values` : the `by` values in order of first appearance · `max_gain` : the
    largest gain in `true` · `head` : the first rows.
    """

    def __init__(self, role: str, empty: pa.Table, options: Options, order: Order) -> None:
        self.role, self.options = role, options
        self.order = order if role == "pred" else None
        self.relevance = relevance_source(as_frame(empty), options) if role == "true" else None
        self.by = as_columns(options.by) if role == "pred" else []
        self.id_columns = [*as_columns(options.user_col), *self.by, options.item_col]
        self.counts: dict[str, int] = {}
        self.by_values, self.head = empty.select(self.by), empty
        self.max_gain = 0.0
        self._findings = Findings(0)

    @property
    def failed(self) -> bool:
        """Whether `finish` will raise, so that rows need not be kept."""
        return self._findings.refuses(self.options)

    def kept(self, table: pa.Table) -> pa.Table:
        """Return the rows without null ids, and without null scores if the options drop them."""
        if self.by:  # before rows are dropped: a recommender stays in the results even if all its rows are dropped
            seen = distinct(table.select(self.by).drop_null())
            self.by_values = distinct(pa.concat_tables([self.by_values, seen]))
        relevance = self._relevance(table)
        found, gone = judged(self._broken(table, relevance), len(table), self.options)
        self._findings += found
        if gone is not None:
            table = table.filter(pa.array(~gone))
            relevance = None if relevance is None else relevance[~gone]
        if self.role == "true" and len(table):
            gain = 1.0 if relevance is None else float(gains(relevance, self.options).max())
            self.max_gain = max(self.max_gain, gain)
        if len(self.head) < HEAD:
            more = table.select(self.head.column_names).slice(0, HEAD - len(self.head))
            self.head = pa.concat_tables([self.head, more])
        return table

    def finish(self, n_rows: int) -> None:
        """Raise the error of the first broken rule. If no rule is broken, set the counts."""
        self.counts = replace(self._findings, n_rows=n_rows).settle(self.role, self.options)

    def _relevance(self, table: pa.Table) -> np.ndarray | None:
        """Return the relevances of the rows of `true`, or None if no column holds them."""
        name = self.relevance
        if name is None:
            return None
        return read_relevance(as_frame(table.select([name])), name, self.options)

    def _broken(self, table: pa.Table, relevance: np.ndarray | None) -> Iterator[Broken]:
        if relevance is not None and self.relevance is not None:
            yield from broken_relevance(relevance, self._where(self.relevance))
        if self.role == "true" and (self.options.propensity_col or self.options.weight_source == "true"):
            yield from broken_of_true(as_frame(table), self.options)
        if self.order is not None and self.order["column"] is not None:
            name = self.order["column"]
            yield from broken_order(nulls(table[name]), self._where(name), self.order["by"])
        yield from broken_ids({self._where(name): nulls(table[name]) for name in self.id_columns})

    def _where(self, name: str) -> str:
        return f"{self.role}[{name!r}]"


def nulls(column: Any) -> np.ndarray | None:
    """Tell which values are null or NaN. Return None if there are none."""
    if not column.null_count and not pa.types.is_floating(column.type):
        return None
    null = pc.is_null(column, nan_is_null=True).to_numpy()
    return null if null.any() else None


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
