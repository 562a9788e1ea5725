"""One row per list: the labels of the lists are put back beside the values of metrics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ..errors import ColumnError
from ..matching.list_keys import labels_of
from ..matching.lists import Matched


def label_frame(matched: Matched) -> pd.DataFrame:
    """`by` and list key columns, one row per list."""
    return per_user_frame(matched, {})


def per_user_frame(matched: Matched, columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """`by` and list key columns, then others, one row per list."""
    labels = [(str(name), matched.keys[name]) for name in matched.keys.columns]
    if len(matched.by.columns):
        by = labels_of(matched.by, list(matched.by.columns), matched.list_by)
        labels = [*((str(name), by[name]) for name in by.columns), *labels]
    found = dict(labels)
    if len(found) < len(labels):
        raise ColumnError(f"the key and by columns {[name for name, _ in labels]} have equal names")
    taken = [name for name in columns if name in found]
    if taken:
        raise ColumnError(f"the key or by column {taken[0]!r} has the name of a result column; rename it")
    # Not consolidated: millions of lists times many metrics would be copied.
    return pd.DataFrame({**found, **columns}, copy=False)
