"""The catalogue of a call: the items that could have been recommended, by item code.

The categories of the items come from one of its columns. An item may have none, one or several.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ...errors import DataError
from ...inputs.frames import column
from ...inputs.ids import as_series, check_labels
from ...inputs.sorting import offsets, spans


@dataclass(frozen=True)
class Labels:
    """Categories of rows or item codes: entry i has `code[start[i]:start[i + 1]]`, which are positions in `names`."""

    names: pd.Index
    start: np.ndarray
    code: np.ndarray

    @property
    def length(self) -> np.ndarray:
        return np.diff(self.start)

    def of_rows(self, row_of: np.ndarray) -> Labels:
        """Return these categories by item code, given the row of each item code."""
        length = np.append(self.length, 0)[row_of]
        entries = spans(np.append(self.start[:-1], 0)[row_of], length)
        return Labels(self.names, offsets(length), self.code[entries])

    def entries(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all categories of some items, as the position in `items` and the category of each entry."""
        length = self.length[items]
        return np.repeat(np.arange(len(items)), length), self.code[spans(self.start[:-1][items], length)]


def read_labels(series: pd.Series, where: str, separator: str | None) -> Labels:
    """Read categories from a column of plain values, of strings that `separator` splits, or of lists of values."""
    if holds_collections(series):
        values, length = flatten(series)
        codes, names = pd.factorize(check_labels(as_series(values), where))
    else:
        if isinstance(series.dtype, pd.CategoricalDtype):
            series = series.astype(series.cat.categories.dtype)
        row_code, found = pd.factorize(check_labels(series, where))
        values = list(found)
        kind = pd.api.types.infer_dtype(values, skipna=True)
        parts = [[value] for value in values]
        if kind == "string" and separator:
            parts = [[part.strip() for part in value.split(separator) if part.strip()] for value in values]
        part_length = np.fromiter((len(part) for part in parts), np.int64, len(parts))
        flat = [one for part in parts for one in part]
        part_code, names = pd.factorize(as_series(flat) if parts else pd.Series(flat, dtype=object))
        length = np.append(part_length, 0)[row_code]
        codes = part_code[spans(np.append(offsets(part_length)[:-1], 0)[row_code], length)]
    if (codes < 0).any():
        raise DataError(f"{where} holds lists with null values")
    return Labels(pd.Index(names), offsets(length), codes)


def holds_collections(series: pd.Series) -> bool:
    """Tell whether the column holds lists, arrays or sets."""
    present = series.dropna()
    return len(present) > 0 and isinstance(present.iloc[0], list | tuple | set | frozenset | np.ndarray)


def flatten(series: pd.Series) -> tuple[list[Any], np.ndarray]:
    """Return all values of a column of lists, and the length of each list; a null is an empty list."""
    null = series.isna().to_numpy()
    rows = [[] if gone else list(value) for value, gone in zip(series, null, strict=True)]
    return [one for row in rows for one in row], np.fromiter((len(row) for row in rows), np.int64, len(rows))


def unique_rows(codes: np.ndarray, n_items: int, where: str) -> np.ndarray:
    """Return the row of each item code, -1 for a code without a row."""
    repeated = len(codes) - len(pd.unique(codes))
    if repeated:
        raise DataError(f"{where} has {repeated:,} repeated ids; expected one row per item")
    row_of = np.full(n_items, -1, np.int64)
    row_of[codes] = np.arange(len(codes))
    return row_of


@dataclass
class Catalogue:
    """The items that could have been recommended: a frame, and the item code of each row."""

    frame: pd.DataFrame
    code: np.ndarray
    n_items: int
    _labels: dict[Any, Labels] = field(default_factory=dict, repr=False)

    @cached_property
    def codes(self) -> np.ndarray:
        """Codes of the distinct items, in order of the frame."""
        return pd.unique(self.code)

    @cached_property
    def inside(self) -> np.ndarray:
        """Whether the catalogue has each item code."""
        found = np.zeros(self.n_items, bool)
        found[self.code] = True
        return found

    @cached_property
    def row_of(self) -> np.ndarray:
        return unique_rows(self.code, self.n_items, "items")

    @cached_property
    def row_of_first(self) -> np.ndarray:
        """First row of each item code, -1 for a code without a row. Ids may repeat here."""
        found = np.full(self.n_items, -1, np.int64)
        found[self.code[::-1]] = np.arange(len(self.code))[::-1]
        return found

    def labels(self, name: str, separator: str | None = "|") -> Labels:
        """Return the categories of each item from one column; `separator` splits strings that name several."""
        if (name, separator) not in self._labels:
            found = read_labels(column(self.frame, name, "items"), f"items[{name!r}]", separator)
            self._labels[name, separator] = found.of_rows(self.row_of)
        return self._labels[name, separator]
