"""Categories of items, from one column of the catalogue. An item may have none, one or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...errors import DataError
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
