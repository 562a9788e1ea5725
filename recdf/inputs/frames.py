"""The door: what comes in as frames, mappings or Arrow streams, and its columns.

Contract: inputs are never modified and an index is never read. A column that is not there, stands twice
or holds what it should not gives an error that names the argument, the column and what was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, DataError, NullKeyError, OptionError, closest, examples
from .ids import Ids, read_by, read_ids
from .options import Options, as_columns

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
        Label of the row: bool, or the gain of the item (0 is judged and not relevant).
    score_cols : str or list of str
        One column of scores per model.
    user_col, item_col : str (or list of str for user_col)
        List key and item id.
    model_col : str, default "model"
        Name of the column of `pred` that gets the names of the score columns.

    Returns
    -------
    true : DataFrame
        List key, item id and `relevance_col` as float64: every candidate is judged.
    pred : DataFrame
        `model_col`, list key, item id and `score`: pass `by=model_col`.

    Raises
    ------
    ColumnError
        If a column is missing.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> frame = pd.DataFrame({"user_id": [1, 1], "item_id": ["a", "b"], "label": [1, 0], "als": [.2, .9]})
    >>> true, pred = rd.from_labelled(frame, relevance_col="label", score_cols=["als"])
    >>> rd.evaluate(true, pred, "mrr@2", by="model", relevance_col="label").per_user
      model  user_id  n_true  n_pred  mrr@2
    0   als        1       1       2    0.5
    """
    keys = [*as_columns(user_col), item_col]
    scores = as_columns(score_cols)
    for name in [*keys, relevance_col, *scores]:
        column(frame, name, "frame")
    true = frame[keys].reset_index(drop=True)
    true[relevance_col] = read_numbers(frame[relevance_col], f"frame[{relevance_col!r}]").astype(np.float64)
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


# ------------------------------------------------------------------------------------ true, pred, others


@dataclass(frozen=True)
class Table:
    """One long frame after the door: the ids and numbers of its rows that count.

    `number` is the gain of a row of `true`, the score (`descending`) or rank of a row of `pred` (None: as the
    rows stand). `row` are the positions of the rows in `frame`, None where all are there.
    """

    role: str
    frame: pd.DataFrame
    keys: list[Ids]
    by: list[Ids]
    item: Ids
    number: np.ndarray | None
    row: np.ndarray | None
    counts: dict[str, int]
    descending: bool = True

    def __len__(self) -> int:
        return len(self.item)

    @overload
    def frame_rows(self, rows: np.ndarray) -> np.ndarray: ...
    @overload
    def frame_rows(self, rows: None) -> np.ndarray | None: ...
    def frame_rows(self, rows: np.ndarray | None) -> np.ndarray | None:
        """Positions in `frame` of rows of the table; None stands for all in order."""
        if self.row is None or rows is None:
            return self.row if rows is None else rows
        return self.row[rows]

    def kept(self, keep: np.ndarray) -> Table:
        rows = np.flatnonzero(keep)
        return replace(
            self,
            keys=[ids.take(rows) for ids in self.keys],
            by=[ids.take(rows) for ids in self.by],
            item=self.item.take(rows),
            number=None if self.number is None else self.number[rows],
            row=self.frame_rows(rows),
        )


def _read(frame: pd.DataFrame, role: str, number: np.ndarray | None, by: list[str], options: Options) -> Table:
    """Read the id columns; raise or drop null ids."""

    def ids(name: str) -> Ids:
        return read_ids(column(frame, name, role), f"{role}[{name!r}]")

    if len(frame) >= 2**31:
        raise DataError(f"{role} has {len(frame):,} rows; one call takes fewer than 2**31: evaluate parts by user")
    user_cols = as_columns(options.user_col)
    by_ids = [read_by([column(frame, name, role)], f"{role}[{name!r}]")[0] for name in by]
    keys, item = [ids(name) for name in user_cols], ids(options.item_col)
    table = Table(role, frame, keys, by_ids, item, number, None, {})
    null = [column.null for column in (*keys, *by_ids, item) if column.null is not None]
    if not null:
        return table
    if options.null_keys == "raise":
        raise null_ids(role, {c.where: int(c.null.sum()) for c in (*keys, *by_ids, item) if c.null is not None})
    drop = np.logical_or.reduce(null)
    table.counts[f"{role}_null_keys"] = int(drop.sum())
    return table.kept(~drop)


def null_ids(role: str, found: Mapping[str, int]) -> NullKeyError:
    """The error for null ids, by column."""
    counts = ", ".join(f"{n:,} in {where}" for where, n in found.items())
    return NullKeyError(f'{role} has null ids: {counts}; drop these rows or pass null_keys="drop"')


def null_order(where: str, by: str | None, n: int, rows: int) -> DataError:
    """The error for null scores or ranks."""
    return DataError(f'{where} holds {n:,} null {by}s of {rows:,}; drop these rows or pass nan_score="last" or "drop"')


def bad_relevances(gain: np.ndarray) -> dict[str, np.ndarray]:
    """Which relevances are no gains, by what is wrong with them."""
    return {"null": np.isnan(gain), "infinite": np.isinf(gain), "negative": gain < 0}


def bad_relevance(name: str, what: str, n: int, some: Any) -> DataError:
    """The error for relevances that are no gains."""
    return DataError(
        f"true[{name!r}] holds {n:,} {what} relevances ({examples(some)}); expected finite numbers, 0 for not relevant"
    )


def read_true(frame: pd.DataFrame, options: Options) -> Table:
    """Read `true`; its numbers are gains, 0 for a row that is judged and not relevant."""
    gain = np.broadcast_to(1.0, len(frame))  # takes no memory
    if options.relevance_col is not None:
        name = options.relevance_col
        gain = read_numbers(column(frame, name, "true"), f"true[{name!r}]").astype(np.float64)
        for what, where in bad_relevances(gain).items():
            if where.any():
                raise bad_relevance(name, what, int(where.sum()), gain[where])
        if options.min_relevance is not None:
            gain = np.where(gain >= options.min_relevance, gain, 0.0)
    elif options.min_relevance is not None:
        raise OptionError(f"min_relevance={options.min_relevance} needs relevance_col")
    return _read(frame, "true", gain, [], options)


def order_source(frame: pd.DataFrame, options: Options) -> dict[str, str | None]:
    """What orders `pred`: {"by": "score" | "rank" | "row", "column": name}."""
    if options.rank_col is not None:
        return {"by": "rank", "column": options.rank_col}
    if options.score_col is not None:
        return {"by": "score", "column": options.score_col}
    taken = {*as_columns(options.user_col), *as_columns(options.by), options.item_col, options.value_col}
    order = "rank" if options.convention is None else options.convention.order
    for name in {"rank": ("rank", "score"), "score": ("score", "rank"), "row": ()}[order]:
        if name in frame.columns and name not in taken:
            return {"by": name, "column": name}
    return {"by": "row", "column": None}


def read_pred(frame: pd.DataFrame, order: dict[str, str | None], options: Options, role: str = "pred") -> Table:
    """Read `pred`, or other recommended lists; its numbers are scores or ranks."""
    name = order["column"]
    if name is None:
        return _read(frame, role, None, as_columns(options.by), options)
    where = f"{role}[{name!r}]"
    number = read_numbers(column(frame, name, role), where)
    # The least number is NaN if any is, and costs no array.
    some_null = number.dtype.kind == "f" and len(number) > 0 and np.isnan(number.min())
    null = np.isnan(number) if some_null else np.zeros(0, bool)
    if some_null and options.nan_score == "raise":
        raise null_order(where, order["by"], int(null.sum()), len(number))
    table = replace(_read(frame, role, number, as_columns(options.by), options), descending=order["by"] == "score")
    if some_null and options.nan_score == "drop":
        assert table.number is not None
        gone = np.isnan(table.number)
        table.counts[f"{role}_null_scores"] = int(gone.sum())
        table = table.kept(~gone)
    return table


def read_keyed(frame: pd.DataFrame, role: str, user_cols: list[str], options: Options) -> Table:
    """Read a side table of (key, item) rows, which may have some of the key columns or none."""
    return _read(frame, role, None, [], options.updated(user_col=user_cols))


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


def _known_ids(frame: pd.DataFrame, role: str, name: str) -> Ids:
    """Read an id column in which no null makes sense."""
    ids = read_ids(column(frame, name, role), f"{role}[{name!r}]")
    if ids.null is not None:
        raise NullKeyError(f"{ids.where} has {ids.null.sum():,} null ids")
    return ids


def read_users(users: Any, user_cols: list[str]) -> tuple[pd.DataFrame, list[Ids]]:
    """Read a population given as ids or as a frame of ids: the frame, and its ids."""
    frame = id_frame(users, "users", user_cols)
    return frame, [_known_ids(frame, "users", name) for name in user_cols]


def read_catalogue(items: Any, item_col: str, role: str = "items") -> tuple[pd.DataFrame, Ids]:
    """Read `items`: a frame with one row per item, or its ids as a list, array, Series or Index."""
    frame = id_frame(items, role, [item_col])
    return frame, _known_ids(frame, role, item_col)


def read_values(frame: pd.DataFrame, name: str, role: str) -> np.ndarray:
    """Read a column of values: finite numbers, in the unit of the caller."""
    values = read_numbers(column(frame, name, role), f"{role}[{name!r}]").astype(np.float64)
    bad = ~np.isfinite(values)
    if bad.any():
        raise DataError(f"{role}[{name!r}] holds {bad.sum():,} null or infinite values; expected finite numbers")
    return values


def raw_ratings(table: Table, rows: np.ndarray, options: Options) -> np.ndarray:
    """Relevance of rows of `true` as given, whatever `min_relevance` says."""
    if options.relevance_col is None:
        raise OptionError("needs relevance_col= (the rating in true)")
    numbers = read_numbers(table.frame[options.relevance_col], "true").astype(np.float64)
    return numbers[table.frame_rows(rows)]


def raw_scores(table: Table, rows: np.ndarray, order: dict[str, str | None]) -> np.ndarray:
    """Scores of rows of `pred`."""
    if order["by"] != "score" or table.number is None:
        raise OptionError("needs score_col= (the predicted rating in pred)")
    return table.number[rows].astype(np.float64)
