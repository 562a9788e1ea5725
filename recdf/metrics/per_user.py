"""The per-user table: one row per list, with the labels of the list and the values of the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import pandas as pd

from ..errors import ColumnError
from ..matching.list_keys import key_labels


def label_frame(matched: Labelled) -> pd.DataFrame:
    """Return the `by` and list key columns, one row per list."""
    return per_user_frame(matched, {})


class Labelled(Protocol):
    """Lists with their labels: the labels of each key, the labels of the `by` values, and the `by` row of each list."""

    @property
    def keys(self) -> pd.DataFrame: ...
    @property
    def by(self) -> pd.DataFrame: ...
    @property
    def list_by(self) -> np.ndarray: ...


def per_user_frame(matched: Labelled, columns: Mapping[str, np.ndarray | pd.Series]) -> pd.DataFrame:
    """Return the `by` and list key columns followed by other columns, one row per list."""
    labels = [(str(name), matched.keys[name]) for name in matched.keys.columns]
    if len(matched.by.columns):
        by = key_labels(matched.by, list(matched.by.columns), matched.list_by)
        labels = [*((str(name), by[name]) for name in by.columns), *labels]
    found = dict(labels)
    if len(found) < len(labels):
        raise ColumnError(f"the key and by columns {[name for name, _ in labels]} have equal names")
    taken = [name for name in columns if name in found]
    if taken:
        raise ColumnError(f"the key or by column {taken[0]!r} has the name of a result column; rename it")
    # copy=False, since pandas would otherwise copy millions of lists times many metrics.
    return pd.DataFrame({**found, **columns}, copy=False)
