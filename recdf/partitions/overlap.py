"""Warnings about files that share nothing: those that `match` gives for whole frames, given once for all parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import pyarrow as pa

from ..inputs.codes import encode, encode_keys
from ..inputs.ids import read_ids
from ..matching.grouping import spans
from ..matching.match import warn_no_overlap, warn_silent
from ..matching.matched import Matched
from .exposure_sums import Distinct
from .source import as_frame

Tables = dict[str, pa.Table]


class Overlap:
    """What parts have in common: recommended rows that `true` judges, by `by` value, and lists with truth."""

    def __init__(self, user_cols: list[str], item_col: str, item_types: dict[str, pa.DataType], n_by: int) -> None:
        self.user_cols, self.item_col, self.item_types = user_cols, item_col, item_types
        self.n_judged = np.zeros(n_by, np.int64)
        self.n_with_truth = 0

    def add(self, matched: Matched) -> None:
        """Count in a part."""
        self.n_judged += np.bincount(matched.list_by[matched.judged.list], minlength=len(self.n_judged))
        self.n_with_truth += int(np.count_nonzero(matched.list_truth >= 0))

    def warn(
        self,
        heads: dict[str, pd.DataFrame],
        n_rows: dict[str, int],
        by: pd.DataFrame,
        parts: Iterator[Tables],
        match_part: Callable[[int, Tables], Matched | None],
    ) -> None:
        """Warn of what has nothing in common with `true`: all of `pred`, or some `by` values (labels in `by`).

        `heads` are the first rows of both frames, `n_rows` their numbers of rows. The parts are read again, and matched
        again, only if there may be something to warn of.
        """
        if not self.n_judged.any():
            if all(n_rows.values()):
                self._warn_no_overlap(heads, parts)
        elif not self.n_judged.all():
            self._warn_silent(by, parts, match_part)

    def _warn_no_overlap(self, heads: dict[str, pd.DataFrame], parts: Iterator[Tables]) -> None:
        items = {role: Distinct(kind) for role, kind in self.item_types.items()}
        shared = False
        for tables in parts:
            ids = [[read_ids(as_frame(table)[name], name) for name in self.user_cols] for table in tables.values()]
            (mine, theirs), _ = encode_keys(ids)
            shared |= bool(np.isin(pd.unique(theirs.all()), pd.unique(mine.all())).any())
            for role, table in tables.items():
                items[role].add(table[self.item_col])
        for what, overlaps, name in (
            ("user", shared, self.user_cols[0]),
            ("item", _overlap(items["pred"], items["true"]), self.item_col),
        ):
            if not overlaps:
                warn_no_overlap(what, *(read_ids(frame[name], f"{role}[{name!r}]") for role, frame in heads.items()))
                return

    def _warn_silent(
        self, by: pd.DataFrame, parts: Iterator[Tables], match_part: Callable[[int, Tables], Matched | None]
    ) -> None:
        wanted = Distinct(self.item_types["true"])
        silent = np.flatnonzero(self.n_judged == 0).tolist()
        shown = {value: Distinct(self.item_types["pred"]) for value in silent}
        for part, tables in enumerate(parts):
            wanted.add(tables["true"][self.item_col])
            matched = match_part(part, tables)
            if matched is None:
                continue
            for value, items in shown.items():
                lists = np.flatnonzero(matched.list_by == value)
                rows = matched.rows(spans(matched.start[lists], matched.n_pred[lists]))
                items.add(tables["pred"][self.item_col].take(pa.array(rows)))
        warn_silent(by, [value for value, items in shown.items() if not _overlap(items, wanted)])


def _overlap(one: Distinct, two: Distinct) -> bool:
    """Some item is among both."""
    if not len(one) or not len(two):
        return False
    mine, theirs = encode([read_ids(items.ids(), "item") for items in (one, two)]).codes
    return bool(np.isin(mine, theirs).any())
