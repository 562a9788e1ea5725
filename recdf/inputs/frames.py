"""Frames: what a caller hands over as frames, mappings or Arrow streams, and the columns in them.

Contract: inputs are never modified and an index is never read. A column that is not there, stands twice
or holds what it should not gives an error that names the argument, the column and what was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, DataError, closest, examples
from .options import as_columns

__all__ = ["from_dict", "from_labelled"]


def as_frame(
    data: Any, role: str, user_col: str | Sequence[str] = "user_id", item_col: str = "item_id"
) -> pd.DataFrame:
    """Return `data` as a DataFrame: a frame as it is, a mapping by `from_dict`, an Arrow stream without copies."""
    if isinstance(data, pd.DataFrame):
        return data
    if isinstance(data, Mapping):
        if not isinstance(user_col, str):
            raise ColumnError(f"{role} is a mapping, which has one key column, but user_col={list(user_col)!r}")
        number = "relevance" if role == "true" else "score"
        if role != "true" and any(isinstance(items, Set) for items in data.values()):
            raise TypeError(f"{role} maps a user to a set, which has no order; give a list, best item first")
        return from_dict(data, user_col=user_col, item_col=item_col, value_name=number)
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, pd.Series):
        # polars gives plain strings by its own method, and views, which pandas computes little with, by the stream.
        table = data.to_arrow() if hasattr(data, "to_arrow") else data
        return _without_views(pa.table(table)).to_pandas(types_mapper=pd.ArrowDtype)
    raise TypeError(
        f"{role} is a {type(data).__name__}; expected a DataFrame, a mapping user -> items, "
        "or an object with the Arrow stream interface (pyarrow, polars, DuckDB)"
    )


def _without_views(table: pa.Table) -> pa.Table:
    """Views of strings, as polars gives them, as strings: pandas computes little with views."""
    plain = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}
    fields = [field.with_type(plain.get(str(field.type), field.type)) for field in table.schema]
    return table if fields == list(table.schema) else table.cast(pa.schema(fields))


def from_dict(
    lists: Mapping[Any, Any],
    *,
    user_col: str = "user_id",
    item_col: str = "item_id",
    value_name: str = "relevance",
) -> pd.DataFrame:
    """Turn a mapping of users to items into a long frame.

    Parameters
    ----------
    lists : mapping
        user → list of items, best first, or user → {item: number} (relevance of a `true` row, score of a
        `pred` row). All users in the same form.
    user_col, item_col : str
        Names of the two id columns.
    value_name : str, default "relevance"
        Name of the column of the numbers, if there are any.

    Returns
    -------
    DataFrame
        One row per (user, item), in the order of the mapping. A user without items has no row.

    Raises
    ------
    TypeError
        If a value is a string or no collection, or if lists and mappings are mixed.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.from_dict({"u1": ["a", "b"], "u2": ["c"]})
      user_id item_id
    0      u1       a
    1      u1       b
    2      u2       c
    """
    for user, items in lists.items():
        if isinstance(items, str | bytes) or not isinstance(items, Iterable):
            raise TypeError(f"the value of user {user!r} is {items!r}; expected a list of items or {{item: number}}")
    numbered = [isinstance(items, Mapping) for items in lists.values()]
    if any(numbered) and not all(numbered):
        raise TypeError("some users have a list of items and some a mapping item -> number; give all the same form")
    users = pd.Series(list(lists), name=user_col)
    rows = [list(items) for items in lists.values()]
    lengths = np.fromiter((len(items) for items in rows), dtype=np.int64, count=len(rows))
    frame = pd.DataFrame({user_col: users.take(np.repeat(np.arange(len(users)), lengths)).reset_index(drop=True)})
    frame[item_col] = pd.Series([item for items in rows for item in items], dtype=None if lengths.any() else object)
    if numbered and all(numbered):
        frame[value_name] = pd.Series([number for items in lists.values() for number in items.values()], dtype=float)
    return frame


def from_labelled(
    frame: pd.DataFrame,
    *,
    relevance_col: str,
    score_cols: str | Sequence[str],
    user_col: str | Sequence[str] = "user_id",
    item_col: str = "item_id",
    model_col: str = "model",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split one frame of labelled, scored candidates into `true` and `pred`.

    Parameters
    ----------
    frame : DataFrame
        One row per (list key, candidate item): a label and one score column per model.
    relevance_col : str
        Column of the label: bool, or the gain of the item (0 is judged and not relevant).
    score_cols : str or list of str
        One column of scores per model.
    user_col, item_col : str (or list of str for user_col)
        List key and item id.
    model_col : str, default "model"
        Name of the column of `pred` that gets the names of the score columns.

    Returns
    -------
    true : DataFrame
        List key, item id and `relevance` (the label as float64, which `evaluate` takes without a further word): every
        candidate is judged.
    pred : DataFrame
        `model_col`, list key, item id and `score`: pass `by=model_col`.

    Raises
    ------
    ColumnError
        If a column is missing, or a key column is named `relevance`.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> frame = pd.DataFrame({"user_id": [1, 1], "item_id": ["a", "b"], "label": [1, 0], "als": [.2, .9]})
    >>> true, pred = rd.from_labelled(frame, relevance_col="label", score_cols=["als"])
    >>> rd.evaluate(true, pred, "mrr@2", by="model").per_user
      model  user_id  n_true  n_pred  mrr@2
    0   als        1       1       2    0.5
    """
    keys = [*as_columns(user_col), item_col]
    scores = as_columns(score_cols)
    for name in [*keys, relevance_col, *scores]:
        column(frame, name, "frame")
    if "relevance" in keys:
        raise ColumnError("a key column is named 'relevance', the name of the labels in true; rename it")
    true = frame[keys].reset_index(drop=True)
    true["relevance"] = read_numbers(frame[relevance_col], f"frame[{relevance_col!r}]").astype(np.float64)
    parts = []
    for name in scores:
        part = frame[keys].reset_index(drop=True)
        part.insert(0, model_col, name)
        part["score"] = frame[name].reset_index(drop=True)
        parts.append(part)
    return true, pd.concat(parts, ignore_index=True)


def column(frame: pd.DataFrame, name: Any, role: str) -> pd.Series:
    """Return one column, or a ColumnError that lists what there is."""
    if name not in frame.columns:
        have = ", ".join(map(repr, frame.columns)) or "none"
        raise ColumnError(f"{role} has no column {name!r}; it has {have}{closest(str(name), frame.columns)}")
    found = frame[name]
    if isinstance(found, pd.DataFrame):
        raise ColumnError(f"{role} has {found.shape[1]} columns named {name!r}; expected one")
    return found


def read_numbers(series: pd.Series, where: str) -> np.ndarray:
    """Return float64 (NaN for null), or int64 or uint64 for integers without nulls, which stay exact."""
    dtype = series.dtype
    if pd.api.types.is_complex_dtype(dtype):
        raise DataError(f"{where} holds complex numbers; expected real ones")
    if pd.api.types.is_bool_dtype(dtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_integer_dtype(dtype) and not series.hasnans:
        return series.to_numpy(dtype=np.uint64 if str(dtype).lower().startswith("uint64") else np.int64)
    if pd.api.types.is_numeric_dtype(dtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    found = pd.api.types.infer_dtype(series, skipna=True)
    if found in ("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty"):
        return pd.to_numeric(series.astype(object).where(series.notna(), np.nan)).to_numpy(dtype=np.float64)
    raise DataError(f"{where} holds {found} values ({examples(series.dropna().head(5))}); expected numbers")


def read_values(frame: pd.DataFrame, name: str, role: str) -> np.ndarray:
    """Read a column of values: finite numbers, in the unit of the caller."""
    values = read_numbers(column(frame, name, role), f"{role}[{name!r}]").astype(np.float64)
    bad = ~np.isfinite(values)
    if bad.any():
        raise DataError(f"{role}[{name!r}] holds {bad.sum():,} null or infinite values; expected finite numbers")
    return values


def id_frame(data: Any, role: str, names: list[str]) -> pd.DataFrame:
    """Frame of ids given as a frame, or for one column as a list, array, Series or Index."""
    if isinstance(data, pd.DataFrame) or (hasattr(data, "__arrow_c_stream__") and hasattr(data, "columns")):
        return as_frame(data, role)
    if len(names) > 1:
        raise ColumnError(f"{role} must be a frame with the columns {names}; found {type(data).__name__}")
    if isinstance(data, pa.Array | pa.ChunkedArray):
        data = data.to_pylist()
    elif not isinstance(data, Iterable) or isinstance(data, str | bytes):
        raise TypeError(
            f"{role} is a {type(data).__name__}; expected a frame, or a list, array, Series or Index of ids"
        )
    values = data if isinstance(data, pd.Series | pd.Index) else pd.Series(list(data))
    return pd.DataFrame({names[0]: values.array})
