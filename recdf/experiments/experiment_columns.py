"""What experiments and comparisons read from a frame: keys, groups, metric values, options.

Contract: a check returns its value or raises an error that names argument, column, finding and
count. Nothing here changes a frame or reads its index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ColumnError, DataError, OptionError, examples, kind_of
from ..inputs.codes import Codes, first_rows, group_codes, known_ids, rank_keys, split
from ..inputs.frames import column, read_numbers, refuse_engine_frame
from ..inputs.options import Options, as_columns
from ..inputs.sorting import distinct
from ..inputs.true_and_pred import read_weights
from ..stats.numbers import Floats, Mask

__all__ = ["Codes", "Floats", "Mask", "MetricColumns", "first_rows", "group_codes", "split"]

# A metric is one column (a mean) or a pair of columns (a ratio of sums).
MetricColumns = tuple[str, str | None]


def read_weight(frame: pd.DataFrame, role: str, name: str) -> Floats:
    """Return a column of weights: finite and at least 0."""
    return read_weights(column(frame, name, role), f"{role}[{name!r}]", Options())


def frame_of(role: str, data: Any) -> pd.DataFrame:
    """Return `data` if it is a DataFrame whose columns can be named."""
    if not isinstance(data, pd.DataFrame):
        refuse_engine_frame(data, role)
        raise TypeError(f"{role} is {kind_of(data)}; expected a DataFrame, such as result.per_user")
    if not data.columns.is_unique:
        twice = data.columns[data.columns.duplicated()]
        raise ColumnError(
            f"{role} has {len(twice)} column names twice ({examples(twice)}); expected distinct "
            "names"
        )
    return data


def named_frame(role: str, data: Any) -> pd.DataFrame:
    """Return the frame with column names that are strings, as every result has them: 2024 becomes
    "2024"."""
    frame = frame_of(role, data)
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    renamed = frame.copy(deep=False)
    renamed.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
    if not renamed.columns.is_unique:
        twice = renamed.columns[renamed.columns.duplicated()]
        raise ColumnError(
            f"{role} has columns that are equal as text ({examples(twice)}); rename one of each"
        )
    return renamed


def require(frame: pd.DataFrame, role: str, names: Sequence[str]) -> list[str]:
    """Return the names if all are columns of the frame."""
    for name in names:
        column(frame, name, role)
    return list(names)


def by_columns(frame: pd.DataFrame, role: str, by: Any, taken: Sequence[str]) -> list[str]:
    """Return the columns of `by` if they are there and do not have the name of a column of the
    result."""
    names = require(frame, role, as_columns(by))
    clash = [name for name in names if name in taken]
    if clash:
        raise OptionError(f"⟦by={clash[0]!r}⟧ is also a column of the result; rename it in {role}")
    return names


def some_keys(frame: pd.DataFrame, rows: Any, names: Sequence[str]) -> str:
    """Show up to five distinct keys of the given rows (bool or positions) for a message."""
    found = frame[list(names)].iloc[
        np.flatnonzero(rows)[:1000] if np.asarray(rows).dtype == bool else rows
    ]
    keys = list(dict.fromkeys(zip(*(found[name].tolist() for name in names), strict=True)))[:5]
    return ", ".join(repr(key[0] if len(names) == 1 else key) for key in keys)


def key_codes(
    tables: Sequence[tuple[str, pd.DataFrame]], names: Sequence[str]
) -> tuple[list[Codes], int]:
    """Code a composite key over several frames: 0..n−1 in the order of the ids, equal where the
    keys are equal.

    Returns one array of codes per frame, and n. Null keys and kinds that can never match raise.
    """
    if not names:
        raise OptionError("the key has no columns; expected a column name or a list of them")
    return rank_keys([known_ids(frame, role, name) for role, frame in tables] for name in names)


def distinct_codes(codes: Codes, span: int) -> Codes:
    """The distinct codes below `span`, ascending: by a table where that is small, else by
    sorting."""
    if span > 8 * len(codes) + 1024:
        return distinct(codes)
    present = np.zeros(span, bool)
    present[codes] = True
    return np.flatnonzero(present)


def count_distinct(cell: Codes, n_cells: int, unit: Codes, n_units: int) -> Codes:
    """How many distinct units each cell has; repeated rows of a unit count once."""
    once = distinct_codes(cell * n_units + unit, n_cells * n_units) // max(n_units, 1)
    return np.bincount(once, minlength=n_cells)


def metric_specs(
    metrics: Any, frame: pd.DataFrame, role: str, argument: str = "metrics"
) -> dict[str, MetricColumns]:
    """Read `"m"`, `["m", ..]` or `{"name": "m" or ("numerator", "denominator")}` into name →
    columns."""
    if metrics is None:
        raise OptionError(
            f"⟦{argument}=None⟧; expected a column of {role}, a list of them or a mapping"
        )
    if isinstance(metrics, str):
        metrics = [metrics]
    pairs = metrics.items() if isinstance(metrics, Mapping) else ((name, name) for name in metrics)
    specs: dict[str, MetricColumns] = {}
    for name, value in pairs:
        columns = as_columns(value) if isinstance(value, str | list | tuple) else []
        if not isinstance(name, str) or not 1 <= len(columns) <= 2:
            raise OptionError(
                f"{argument}[{name!r}]={value!r}; expected the name of a column or a pair "
                "(numerator, denominator)"
            )
        if name in specs:
            raise OptionError(f"{argument} names {name!r} twice")
        require(frame, role, columns)
        specs[name] = (columns[0], columns[1] if len(columns) == 2 else None)
    if not specs:
        raise OptionError(f"{argument} is empty; expected at least one column of {role}")
    return specs


def metric_values(frame: pd.DataFrame, role: str, name: str) -> Floats:
    """Return a metric column as float64 with NaN for null; infinite or not numeric values raise."""
    values = column(frame, name, role)
    kinds = ("integer", "floating", "mixed-integer-float", "boolean")
    if not is_metric(values) and pd.api.types.infer_dtype(values, skipna=True) not in kinds:
        shown = f" ({examples(values.head(5))})" if len(values) else ""
        raise DataError(f"{role}[{name!r}] is {values.dtype}{shown}; a metric is numeric")
    numbers = np.asarray(read_numbers(values, f"{role}[{name!r}]"), dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(
            numbers.sum()
        )  # one pass without an array of its own; it may be wrong for huge values
    infinite = np.zeros(0, bool) if finite else np.isinf(numbers)
    if infinite.any():
        raise DataError(
            f"{role}[{name!r}] is infinite in {int(infinite.sum()):,} of {len(frame):,} rows"
        )
    return numbers


def is_metric(values: pd.Series) -> bool:
    """Whether a column can be a metric: numeric or bool."""
    return bool(
        pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype)
    )
