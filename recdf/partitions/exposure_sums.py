"""Metrics of exposure over parts: what their kernels count in each part is added up, item by item.

Contract: item codes are of one part, so sums are kept by the labels of `pred` and of `true` and by the rows of the
log; at the end the kernels run once more, on the sums. A kernel that reads what does not add up is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import OptionError, RecdfWarning
from ..inputs.options import Options
from ..matching.counts import Counts, Over
from ..matching.lists import Matched
from ..matching.match import match
from ..matching.side_tables.given import Given
from ..matching.side_tables.sides import Sides
from ..metrics.record import Request
from .source import as_frame


class Distinct:
    """Distinct values of a column, in order of first appearance."""

    def __init__(self, kind: pa.DataType) -> None:
        self.labels = pa.array([], kind)

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, values: pa.ChunkedArray) -> np.ndarray:
        """Positions of some values; new ones are appended."""
        known = len(self)
        found = pa.concat_arrays([self.labels, *values.chunks]).dictionary_encode()
        self.labels = found.dictionary
        return found.indices.to_numpy()[known:]

    def ids(self) -> pd.Series:
        """The values as a column."""
        return as_frame(pa.table({"item": self.labels}))["item"]


class Sums(Counts):
    """Counts of which only what adds up can be read: of `part`, or without it of all parts."""

    def __init__(self, k: int, sides: Sides, n_items: int, sums: dict[str, np.ndarray], part: Counts | None = None):
        self.k, self.sides, self.n_items, self.part = k, sides, n_items, part
        self.sums = sums
        self.over: dict[str, Over] = {}  # of the sums that were read of the part

    def summed(self, name: str, count: Callable[[Counts], np.ndarray], over: Over = "pred") -> np.ndarray:
        """The sum of this name; of a part, it is counted when first asked for."""
        if name not in self.sums:
            if self.part is None:
                raise OptionError(
                    f"reads {name!r} in some parts of the files only, so it does not add up; use evaluate"
                )
            self.sums[name], self.over[name] = self.part.summed(name, count, over), over
        return self.sums[name]

    def note(self, name: str, unknown: np.ndarray) -> None:
        """Notes count rows, each in its part."""
        if self.part is not None:
            self.part.note(name, unknown)

    def needs_true(self, otherwise: str) -> None:
        """Files of `true` are always given."""

    def __getattr__(self, name: str) -> Any:
        # What only `Counts` sets: `lists`, `matched`, `mine`, from which come all entries per list or per place.
        raise OptionError(f"reads {name!r}, which does not add up over the parts of files; use evaluate")


@dataclass
class _Total:
    """One sum over the parts so far, by position among the labels or rows that it is over."""

    over: Over
    values: np.ndarray
    n_parts: int = 0

    def add(self, at: np.ndarray, values: np.ndarray) -> None:
        grown = np.zeros(max(len(self.values), int(at.max(initial=-1)) + 1), values.dtype)
        grown[: len(self.values)] = self.values
        grown[at] += values
        self.values, self.n_parts = grown, self.n_parts + 1


class Exposure:
    """Sums over the parts for the metrics of exposure among some requests."""

    def __init__(
        self, requests: Sequence[Request], options: Options, given: Given, item_types: dict[str, pa.DataType]
    ) -> None:
        self.requests = [request for request in requests if request.metric.per == "item"]
        self.options, self.given = options, replace(given, base=None)  # a baseline's lists expose nothing
        self.items = {role: Distinct(kind) for role, kind in item_types.items()}
        self.totals: dict[tuple[int | None, int, str], _Total] = {}
        self.n_parts = 0

    def add(self, matched: Matched, tables: dict[str, pa.Table]) -> None:
        """Add what the kernels read of a part, `tables` before it was matched."""
        if not self.requests:
            return
        self.n_parts += 1
        self.key, true = matched.keys.iloc[:1], matched.true_lists
        # For each kind of sum, item codes of the part and where their numbers go.
        places = {
            "pred": self._places("pred", tables["pred"], matched.item, matched.rows, matched.n_items),
            "true": self._places("true", tables["true"], true.item, true.rows, matched.n_items),
        }
        if matched.sides.has("log"):
            item = matched.sides.log.item
            places["log"] = item, np.arange(len(item))
        for k in dict.fromkeys(request.k for request in self.requests):
            for by in range(len(matched.by)):
                counts = self._read(Counts(matched.at(k), by), [one for one in self.requests if one.k == k])
                for name, over in counts.over.items():
                    values = counts.sums[name]
                    code, at = places[over] if over != "lists" else (np.arange(len(values)),) * 2
                    total = self.totals.setdefault((k, by, name), _Total(over, values[:0]))
                    total.add(at, values[code])

    def _places(
        self, role: str, table: pa.Table, item: np.ndarray, rows: Callable[[np.ndarray], np.ndarray], n_items: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Codes of the distinct items of one frame, and the positions of their labels."""
        place = np.full(n_items, -1, np.int64)
        place[item] = np.arange(len(item))
        codes = np.flatnonzero(place >= 0)
        labels = table[self.options.item_col].take(pa.array(rows(place[codes])))
        return codes, self.items[role].add(labels)

    def _read(self, part: Counts, requests: Sequence[Request]) -> Sums:
        """What some kernels read of a part; what they make of it says nothing."""
        counts = Sums(part.k, part.sides, part.n_items, {}, part)
        for request in requests:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    request.metric.kernel(counts, **request.params)
            except OptionError as error:
                raise OptionError(f"{request.definition}: {error}") from None
        return counts

    def whole(self) -> Callable[[int | None, int], Counts]:
        """The counts of all parts, by k and `by` value."""
        # One list that shows, and wants, every item: its codes are those in which the sums of all parts are put.
        options = self.options.updated(
            users=self.key, by=None, score_col=None, rank_col=None, relevance_col=False, min_relevance=None,
            value_col=None, judged_only=False,
        )  # fmt: skip
        frames = {role: self._one_list(items.ids()) for role, items in self.items.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecdfWarning)
            matched = match(frames["true"], frames["pred"], options, self.given)
        code = {
            "pred": _in_order(matched.item, matched.rows),
            "true": _in_order(matched.true_lists.item, matched.true_lists.rows),
        }
        if matched.sides.has("log"):
            code["log"] = matched.sides.log.item

        def counts(k: int | None, by: int) -> Counts:
            sums = {}
            for (of_k, of_by, name), total in self.totals.items():
                if (of_k, of_by, total.n_parts) != (k, by, self.n_parts):
                    continue
                sums[name] = total.values
                if total.over != "lists":
                    sums[name] = np.zeros(matched.n_items, total.values.dtype)
                    sums[name][code[total.over]] = total.values
            return Sums(matched.at(k).k, matched.sides, matched.n_items, sums)

        return counts

    def _one_list(self, items: pd.Series) -> pd.DataFrame:
        frame = self.key.take(np.zeros(len(items), np.int64)).reset_index(drop=True)
        frame[self.options.item_col] = items
        return frame


def _in_order(item: np.ndarray, rows: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Item code of each row of a frame that has every row in its lists."""
    found = np.empty(len(item), np.int64)
    found[rows(np.arange(len(item)))] = item
    return found
