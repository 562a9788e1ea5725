"""Categories of items, from one column of the catalogue, and how they mix in lists.

Contract: an item may have none, one or several categories; in a mix each of several has an equal part of the item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...errors import DataError
from ..grouping import offsets, spans

if TYPE_CHECKING:  # lists need this module
    from ..lists import Lists
    from .knowledge import Log

# Entries of one block of the lists × categories matrix.
BLOCK = 2**20


@dataclass(frozen=True)
class Labels:
    """Categories of each row (or item code): `code[start[i]:start[i + 1]]`, positions in `names`."""

    names: pd.Index
    start: np.ndarray
    code: np.ndarray

    @property
    def length(self) -> np.ndarray:
        return np.diff(self.start)

    def of_rows(self, row_of: np.ndarray) -> Labels:
        """The labels by item code."""
        length = np.append(self.length, 0)[row_of]
        entries = spans(np.append(self.start[:-1], 0)[row_of], length)
        return Labels(self.names, offsets(length), self.code[entries])

    def entries(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All categories of some items: the position in `items` and the category of each entry."""
        length = self.length[items]
        return np.repeat(np.arange(len(items)), length), self.code[spans(self.start[:-1][items], length)]


def read_labels(series: pd.Series, where: str, separator: str | None) -> Labels:
    """Categories of a column: plain values, strings that `separator` splits, or lists of values."""
    if is_nested(series):
        values, length = flatten(series)
        codes, names = pd.factorize(pd.Series(values))
    else:
        if isinstance(series.dtype, pd.CategoricalDtype):
            series = series.astype(series.cat.categories.dtype)
        row_code, found = pd.factorize(series)
        values = list(found)
        kind = pd.api.types.infer_dtype(values, skipna=True)
        parts = [[value] for value in values]
        if kind == "string" and separator:
            parts = [[part.strip() for part in value.split(separator) if part.strip()] for value in values]
        part_length = np.fromiter((len(part) for part in parts), np.int64, len(parts))
        part_code, names = pd.factorize(
            pd.Series([one for part in parts for one in part], dtype=None if parts else object)
        )
        length = np.append(part_length, 0)[row_code]
        codes = part_code[spans(np.append(offsets(part_length)[:-1], 0)[row_code], length)]
    if (codes < 0).any():
        raise DataError(f"{where} holds lists with null values")
    return Labels(pd.Index(names), offsets(length), codes)


def is_nested(series: pd.Series) -> bool:
    """The column holds lists, arrays or sets."""
    present = series.dropna()
    return len(present) > 0 and isinstance(present.iloc[0], list | tuple | set | frozenset | np.ndarray)


def flatten(series: pd.Series) -> tuple[list[Any], np.ndarray]:
    """All values of a column of lists, and the length of each; a null is an empty list."""
    null = series.isna().to_numpy()
    rows = [[] if gone else list(value) for value, gone in zip(series, null, strict=True)]
    return [one for row in rows for one in row], np.fromiter((len(row) for row in rows), np.int64, len(rows))


# ------------------------------------------------------------------------------------------ mixes


def mixes(lists: Lists, labels: Labels, log: Log | None = None) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Blocks of lists with, per list and category, the items shown and those of the user's log (zeros without)."""
    n_labels = max(len(labels.names), 1)
    size = max(1, BLOCK // n_labels)
    for low in range(0, len(lists), size):
        block = slice(low, min(low + size, len(lists)))
        n_shown = lists.n_shown[block]
        items = lists.matched.item[spans(lists.matched.start[block], n_shown)]
        shown = _mix(items, np.repeat(np.arange(len(n_shown)), n_shown), None, labels, (len(n_shown), n_labels))
        past = np.zeros_like(shown)
        if log is not None:
            start, item, count = log.pairs
            length = log.n_history[block]
            rows = spans(np.append(start[:-1], 0)[log.list_user[block]], length)
            past = _mix(item[rows], np.repeat(np.arange(len(n_shown)), length), count[rows], labels, past.shape)
        yield block, shown, past


def _mix(
    items: np.ndarray, of_list: np.ndarray, weights: np.ndarray | None, labels: Labels, shape: tuple[int, ...]
) -> np.ndarray:
    position, category = labels.entries(items)
    parts = 1.0 / np.maximum(labels.length[items], 1)
    if weights is not None:
        parts = parts * weights
    flat = np.bincount(of_list[position] * shape[1] + category, weights=parts[position], minlength=shape[0] * shape[1])
    return flat.reshape(shape)
