"""Checks of rows that come batch after batch, with errors and counts over all of them.

Contract: `RowCheck.kept` gives the rows of a batch that count; `finish` raises what `evaluate` raises for the whole
frame, with the same message.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..inputs.frames import bad_relevance, bad_relevances, null_ids, null_order, read_numbers
from ..inputs.options import Options, as_columns
from .source import as_frame

# Rows that are kept as examples, as many as messages look at.
HEAD = 100


class RowCheck:
    """What the rows of one frame hold: `counts` of what was dropped, `by_values` in order of first appearance,
    `max_gain` (largest gain in `true`), `head` (the first rows)."""

    def __init__(self, role: str, empty: pa.Table, options: Options, order: dict[str, Any]) -> None:
        self.role, self.options, self.order = role, options, order
        self.by = as_columns(options.by) if role == "pred" else []
        self.nulls = dict.fromkeys([*as_columns(options.user_col), *self.by, options.item_col], 0)
        self.counts: dict[str, int] = {}
        self.by_values, self.head = empty.select(self.by), empty
        self.max_gain = 0.0
        self._null_numbers = self._dropped = self._dropped_numbers = 0
        self._bad: dict[str, tuple[int, np.ndarray]] = {}

    @property
    def failed(self) -> bool:
        """Whether `finish` will raise, so that rows need not be kept."""
        options = self.options
        return (
            bool(self._bad)
            or (self._null_numbers > 0 and options.nan_score == "raise")
            or (self._dropped > 0 and options.null_keys == "raise")
        )

    def kept(self, table: pa.Table) -> pa.Table:
        """The rows without null ids, and without null scores if these are dropped."""
        gain = self._gains(table)
        if self.by:  # before rows are dropped: a recommender stays when all its rows go
            seen = _distinct(table.select(self.by).drop_null())
            self.by_values = _distinct(pa.concat_tables([self.by_values, seen]))
        number = self.order["column"] if self.role == "pred" else None
        null_number = None if number is None else _nulls(table[number])
        if null_number is not None:
            self._null_numbers += int(null_number.sum())
        drop = None
        for name in self.nulls:
            null = _nulls(table[name])
            if null is not None:
                self.nulls[name] += int(null.sum())
                drop = null if drop is None else drop | null
        if drop is not None:
            self._dropped += int(drop.sum())
        if null_number is not None and self.options.nan_score == "drop":
            self._dropped_numbers += int(null_number.sum() if drop is None else (null_number & ~drop).sum())
            drop = null_number if drop is None else drop | null_number
        if drop is not None:
            table, gain = table.filter(pa.array(~drop)), None if gain is None else gain[~drop]
        if self.role == "true" and len(table):
            self.max_gain = max(self.max_gain, 1.0 if gain is None else float(gain.max()))
        if len(self.head) < HEAD:
            more = table.select(self.head.column_names).slice(0, HEAD - len(self.head))
            self.head = pa.concat_tables([self.head, more])
        return table

    def finish(self, n_rows: int) -> None:
        """Raise if rows must not be as they were; else set the counts."""
        options = self.options
        for what in ("null", "infinite", "negative"):
            if what in self._bad:
                raise bad_relevance(str(options.relevance_col), what, *self._bad[what])
        if self._null_numbers and options.nan_score == "raise":
            where = f"pred[{self.order['column']!r}]"
            raise null_order(where, self.order["by"], self._null_numbers, n_rows)
        if self._dropped:
            if options.null_keys == "raise":
                keys, item = as_columns(options.user_col), options.item_col
                found = {f"{self.role}[{name!r}]": self.nulls[name] for name in (*keys, *self.by, item)}
                raise null_ids(self.role, {where: n for where, n in found.items() if n})
            self.counts[f"{self.role}_null_keys"] = self._dropped
        if self._null_numbers and options.nan_score == "drop":
            self.counts["pred_null_scores"] = self._dropped_numbers

    def _gains(self, table: pa.Table) -> np.ndarray | None:
        """Gains of rows of `true`; None where there is no column of them."""
        name = self.options.relevance_col
        if self.role != "true" or name is None:
            return None
        gain = read_numbers(as_frame(table.select([name]))[name], f"true[{name!r}]").astype(np.float64)
        for what, where in bad_relevances(gain).items():
            if where.any():
                count, some = self._bad.get(what, (0, gain[:0]))
                self._bad[what] = count + int(where.sum()), np.append(some, np.unique(gain[where])[:5])[:5]
        least = self.options.min_relevance
        return gain if least is None else np.where(gain >= least, gain, 0.0)


def _nulls(column: Any) -> np.ndarray | None:
    """Which values are null or NaN; None if none is."""
    if not column.null_count and not pa.types.is_floating(column.type):
        return None
    null = pc.is_null(column, nan_is_null=True).to_numpy()
    return null if null.any() else None


def _distinct(table: pa.Table) -> pa.Table:
    """Distinct rows, in order of first appearance."""
    rows = table.append_column("__row__", pa.array(np.arange(len(table))))
    found = rows.group_by(table.column_names).aggregate([("__row__", "min")])
    return table.take(found["__row___min"].combine_chunks().sort() if len(found) else pa.array([], pa.int64()))
