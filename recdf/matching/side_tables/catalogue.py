"""The catalogue of a call: the items that could have been recommended, by item code."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ...errors import DataError
from ...inputs.frames import column
from .categories import Labels, read_labels


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
