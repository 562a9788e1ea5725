"""Read the frames, mappings and Arrow streams of a call, and the columns in them.

Contract: inputs are never modified and an index is never read. A column that is missing, that
occurs twice or that holds wrong values raises an error that names the argument, the column and what
was found.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray
from pandas import DataFrame, Series
from pyarrow import ChunkedArray, Table

from ..errors import ColumnError, DataError, closest, examples, kind_of
from .ids import as_arrow, as_series
from .lazy_frames import lazy_rows, unwrapped
from .list_cells import ORDERS, ItemLists
from .options import Columns, Options, as_columns
from .sorting import run_of

UNREAD = "unread columns"  # in `attrs`, for messages
# Types of strings and bytes that Arrow stores as views, by name since old versions lack them,
# and the types that are computed with.
VIEWS = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}


class OneRecord(dict[str, Any]):
    """A record in `attrs` of which there is one for all frames: a deep copy is the record itself,
    and no part of it may be changed.

    pandas copies `attrs` deeply for each column that is taken out of a frame, which would take
    longer than the work on the column. A pickle holds a plain dict.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> OneRecord:
        return self

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return dict, (dict(self),)


def as_frame(
    data: Any,
    role: str,
    user_col: Columns = "user_id",
    item_col: str = "item_id",
    orders: Iterable[str] = (),
) -> DataFrame:
    """Return `data` as a DataFrame with one item in a row. A long frame is returned as it is.

    One number for a list of items does not order them, so the columns named in `orders` must hold
    lists beside lists.
    """
    data = unwrapped(data)
    lists = ItemLists(role, item_col, orders=(*ORDERS, *orders))
    if isinstance(data, DataFrame):
        refuse_levels(data, role)
        held = any(
            isinstance(one, pd.ArrowDtype) or pd.api.types.is_object_dtype(one)
            for one in data.dtypes
        )
        return _plain_frame(lists.frame(data)) if held else data
    if isinstance(data, Mapping):
        if not isinstance(user_col, str):
            raise ColumnError(
                f"{role} is a mapping, which has one key column, but ⟦user_col={list(user_col)!r}⟧"
            )
        number = "relevance" if role == "true" else "score"
        if role != "true" and any(isinstance(items, Set) for items in data.values()):
            raise TypeError(
                f"{role} maps a user to a set, which has no order; give a list, best item first"
            )
        return from_dict(data, user_col=user_col, item_col=item_col, value_name=number)
    data = data if (rows := lazy_rows(data)) is None else rows.table(rows.schema.names, role)
    refuse_engine_frame(data, role)
    if (
        hasattr(data, "__arrow_c_stream__") and type(data).__name__ != "Series"
    ):  # of pandas or polars
        # The method of polars gives plain strings. Its stream gives string views, which pandas
        # hardly supports.
        table = data.to_arrow() if hasattr(data, "to_arrow") else data
        frame: DataFrame = plain_table(pa.table(table)).to_pandas(types_mapper=pd.ArrowDtype)
        return _plain_frame(lists.frame(frame))
    hint = next(
        (
            f"; pass what {role}.{one}() returns"
            for one in ("to_df", "to_dict")
            if hasattr(data, one)
        ),
        "",
    )
    if getattr(data, "ndim", 1) == 2:
        made = "from_sparse" if hasattr(data, "tocsr") else "from_top_k"
        hint = (
            f"; pass rd.logs.{made}({role}, users=..., items=...) with the labels of its users "
            "and items"
        )
    elif isinstance(data, list | tuple | ndarray):
        hint = f"; lists in the order of users are a mapping too: dict(enumerate({role}))"
    if isinstance(getattr(data, "index", None), pd.MultiIndex):
        hint = f"; its index holds the ids: pass {role}.reset_index()"
    if "GroupBy" in type(data).__name__:
        hint = "; pass the frame itself: lists are told apart by user_col="
    if isinstance(data, str | os.PathLike):
        hint = f"; read the file first, as in {role} = rd.read({role}), or call rd.evaluate_parquet"
    raise TypeError(
        f"{role} is {kind_of(data)}; expected a DataFrame, a mapping of users to their items such "
        "as "
        f"{{'u1': ['i1', 'i2']}}, or an object with the Arrow stream interface (pyarrow, polars, "
        f"DuckDB){hint}"
    )


def read_frame(data: Any, role: str, options: Options) -> DataFrame:
    """Return `data` as a frame whose list key and items stand in the columns that a call names."""
    return as_frame(data, role, options.user_col, options.item_col)


def refuse_engine_frame(data: Any, role: str) -> None:
    """Raise for a frame of Spark or Dask, whose rows have no order and may not fit in memory."""
    if (engine := engine_of(data)) is not None:
        raise TypeError(
            f"{role} is a frame of {engine.capitalize()}; call rd.{engine}.evaluate, "
            "from_impressions or check_log, or collect "
            "the rows first. The rows of its result come into memory by result.to_pandas(); for "
            "an experiment larger than memory, call result.variant_moments"
        )


def engine_of(data: Any) -> str | None:
    """Return the engine whose frame this is."""
    return {"pyspark": "spark", "dask": "dask", "dask_expr": "dask"}.get(
        type(data).__module__.partition(".")[0]
    )


def as_datetimes(series: Series, where: str) -> Series:
    """Return a column of datetimes in a pandas dtype, also if it holds Arrow's times or Python's
    dates."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        of = series.cat.categories.dtype
        # Whole numbers have no null, and numbers are no times.
        series = series.astype(object if pd.api.types.is_numeric_dtype(of) else of)
    if isinstance(series.dtype, pd.ArrowDtype):
        known = str(series.dtype.pyarrow_dtype).startswith(("timestamp", "date"))
        # Values without an index: pandas would look for those of the same label.
        series = Series(series.array.__arrow_array__().to_pandas().array, series.index)
    else:
        known = pd.api.types.infer_dtype(series, skipna=True) in ("date", "datetime", "datetime64")
    if not known:
        raise DataError(
            f"{where} holds {series.dtype} values ({examples(series.dropna().head(5))}); expected "
            f"times: parse them first, e.g. pd.to_datetime({where})",
            column=where,
        )
    try:
        return pd.to_datetime(series)
    except (ValueError, TypeError) as error:  # several time zones, or with and without one
        raise DataError(
            f"{where} holds times of several zones, or with and without one ({error}); bring them "
            f"to one zone, e.g. pd.to_datetime({where}, utc=True)",
            column=where,
        ) from error


def refuse_levels(frame: DataFrame, role: str) -> None:
    """Raise where a column has a name on each of several levels, which no argument can name."""
    if frame.columns.nlevels > 1:
        raise ColumnError(
            f"{role} has names of columns on {frame.columns.nlevels} levels; give each column one "
            f'name, such as {role}.columns = ["_".join(map(str, one)) for one in {role}.columns]'
        )


class RowsInParts:
    """What stands in place of a frame whose rows are in parts, of which each is read as a frame."""


# Deals tables by user, as `by_user` says. `recdf` sets it, since only `partitions` knows engines.
DEALERS: list[Callable[..., list[Any]]] = []


def is_elsewhere(data: Any) -> bool:
    """Whether this is a frame of Spark or Dask, or a path of files."""
    return engine_of(data) is not None or isinstance(data, str | os.PathLike)


def by_user(
    work: Callable[..., Any],
    keys: Sequence[str],
    columns: Sequence[str],
    *,
    with_ids: bool = False,
    **tables: Any,
) -> list[Any]:
    """Return what `work`, which takes the tables in their order, makes of frames in memory, or of
    each bucket of the users of tables that are elsewhere: of the columns of the key, of these
    columns, and of those that may be ids if they are asked for."""
    if any(map(is_elsewhere, tables.values())):
        return DEALERS[0](work, keys, columns, tables, with_ids)
    return [work(*tables.values())]


def plain_table(table: Table) -> Table:
    """Return the table with its columns in types that pandas can compute with."""
    for i, name in enumerate(table.column_names):
        if (plain := plain_column(table.column(i))) is not None:
            table = table.set_column(i, name, plain)
    return table


def _plain_frame(frame: DataFrame) -> DataFrame:
    """Return the frame itself, or a shallow copy whose Arrow columns have types that pandas can
    compute with."""
    found = frame
    for i, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, pd.ArrowDtype):
            plain = plain_column(as_arrow(frame.iloc[:, i]))
            if plain is not None:
                found = frame.copy(deep=False) if found is frame else found
                found.isetitem(i, plain.to_pandas(types_mapper=pd.ArrowDtype).array)
    return found


def plain_column(column: ChunkedArray) -> ChunkedArray | None:
    """Convert a column to a type that pandas and Arrow can compute with; None if it has such a type
    already.

    String views (as polars gives them), run-end encoded columns, and dictionaries that hold a null
    or nothing else are converted.
    """
    kind = column.type
    if str(kind) in VIEWS:
        return column.cast(VIEWS[str(kind)])
    if pa.types.is_run_end_encoded(kind):
        return pa.chunked_array(
            [pc.run_end_decode(chunk) for chunk in column.chunks], kind.value_type
        )
    if pa.types.is_dictionary(kind) and (
        pa.types.is_null(kind.value_type)
        or any(chunk.dictionary.null_count for chunk in column.chunks)
    ):
        return without_dictionary(column)
    return None


def without_dictionary(column: Any) -> Any:
    """Return an array, in chunks or not, without a dictionary."""
    if not pa.types.is_dictionary(column.type):
        return column
    if isinstance(column, pa.Array):
        return column.dictionary_decode()
    return pa.chunked_array(
        [chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type
    )


def from_dict(
    lists: Mapping[Any, Any],
    *,
    user_col: str = "user_id",
    item_col: str = "item_id",
    value_name: str | None = None,
) -> DataFrame:
    """Turn a mapping of users to items into a long frame.

    Parameters
    ----------
    lists : mapping
        user → list of items, best first, or user → {item: number} (relevance of a `true` row, score
        of a `pred` row), or user → [(item, number), ...]. All users must have the same form. Pairs
        whose second parts are all integers are ids of two parts if they are tuples.
    user_col, item_col : str
        Names of the two id columns.
    value_name : str, optional
        Name of the column of the numbers, if there are any. By default they stand in two columns,
        `relevance` and `score`, so that the frame can be `true` as well as `pred`.

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
    >>> rd.logs.from_dict({"u1": ["a", "b"], "u2": ["c"]})
      user_id item_id
    0      u1       a
    1      u1       b
    2      u2       c
    """
    if user_col in lists and item_col in lists:
        raise TypeError(
            f"the keys of the mapping are {user_col!r} and {item_col!r}, so they look like "
            "columns and not like users; pass a frame: pandas.DataFrame(...) of this mapping"
        )
    for user, items in lists.items():
        if isinstance(items, str | bytes) or not isinstance(items, Iterable):
            raise TypeError(
                f"the value of user {user!r} is {items!r}; expected a list of items or {{item: "
                f"number}}"
            )
    of_pairs = {isinstance(items, Mapping) for items in lists.values()}
    if len(of_pairs) > 1:
        raise TypeError(
            "some users have a list of items and some a mapping item -> number; give all the same "
            "form"
        )
    numbered = of_pairs == {True}
    users = as_series(list(lists))
    rows = [list(items.items() if numbered else items) for items in lists.values()]
    ids = [item for items in rows for item in items]
    # Pairs of an item and a number, and not ids of two parts.
    kinds = set(map(type, ids))
    if not numbered and kinds <= {tuple, list} and set(map(len, ids)) == {2}:
        number = pd.api.types.infer_dtype([one for _, one in ids])
        numbered = "float" in number or (number == "integer" and list in kinds)
    of_rows = users.take(run_of(np.array([*map(len, rows)], np.int64))).reset_index(drop=True)
    columns = {user_col: of_rows}
    columns[item_col] = as_series([item for item, _ in ids] if numbered else ids)
    if numbered:
        names = [value_name] if value_name else ["relevance", "score"]
        columns |= dict.fromkeys(names, Series([number for _, number in ids], dtype=float))
    return DataFrame(columns)


def from_labelled(
    frame: DataFrame,
    *,
    relevance_col: str,
    score_cols: Columns,
    user_col: Columns = "user_id",
    item_col: str = "item_id",
    model_col: str = "model",
) -> tuple[DataFrame, DataFrame]:
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
        List key, item id and `relevance`, which is the label as float64. `evaluate` reads a column
        of this name without `relevance_col=`. Every candidate is judged.
    pred : DataFrame
        `model_col`, list key, item id and `score`: pass `by=model_col`.

    Raises
    ------
    ColumnError
        If a column is missing, or a key column is named `relevance`.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> frame = DataFrame(
    ...     {"user_id": [1, 1], "item_id": ["a", "b"], "label": [1, 0], "als": [0.2, 0.9]}
    ... )
    >>> true, pred = rd.logs.from_labelled(frame, relevance_col="label", score_cols=["als"])
    >>> rd.evaluate(true, pred, "mrr@2", by="model").per_user
      model  user_id  n_true  n_pred  mrr@2
    0   als        1       1       2    0.5
    """
    refuse_levels(frame, "frame")
    keys = [*as_columns(user_col), item_col]
    scores = as_columns(score_cols)
    for name in [*keys, relevance_col, *scores]:
        column(frame, name, "frame")
    names = [model_col, *keys, "score"]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ColumnError(
            f"{twice[0]!r} names two columns of pred: the key, ⟦model_col=⟧ and 'score' must be "
            "distinct"
        )
    if "relevance" in keys:
        raise ColumnError(
            "a key column is named 'relevance', the name of the labels in true; rename it"
        )
    true = frame[keys].reset_index(drop=True)
    true["relevance"] = float_column(frame, relevance_col, "frame")
    parts = []
    for name in scores:
        part = frame[keys].reset_index(drop=True)
        part.insert(0, model_col, name)
        part["score"] = frame[name].reset_index(drop=True)
        parts.append(part)
    return true, pd.concat(parts, ignore_index=True)


# What columns are usually called, in lower case and without "_" and a final "id" or "s", by the
# role of the argument.
USUAL_NAMES = {
    "user": "u|usr|user|customer|cust|client|visitor|member|account|person|reader|viewer|query|q",
    "item": "i|item|movie|product|prod|sku|article|track|song|book|video|asin|doc|document|content"
    "|rec|recommendation",
    "score": "score|pred|prediction|predicted(rating|score)|recscore|est|estimate|rating|prob|proba"
    "|probability",
    "rank": "rank|ranking|position|pos",
    "relevance": "relevance|rel|label|target|rating|gain|grade",
    "time": "time|timestamp|ts|date|datetime|day|createdat",
}


def column(
    frame: DataFrame,
    name: Any,
    role: str,
    *,
    suggest: Iterable[Any] | None = None,
    apart: Collection[Any] = (),
) -> Series:
    """Return one column, or raise a ColumnError that lists the columns of the frame and says what
    to do.

    `suggest` holds the columns that "did you mean" may name, by default all. A similar name with
    another meaning would lead to a wrong number. Columns that the call names otherwise stand
    `apart`, and hold no items.
    """
    if name not in frame.columns:
        where = f"{role}[{name!r}]"
        if name is not None and name in frame.index.names:
            said = f"{role} has {name!r} in its index, which is not read; pass {role}.reset_index()"
            raise ColumnError(said, column=where)
        if name in (unread := frame.attrs.get(UNREAD, [])):
            said = (
                f"{where} was not read, since no argument names it; name it in the call, or "
                f"collect {role} first"
            )
            raise ColumnError(said, column=where)
        frame = DataFrame(columns=[*frame.columns, *unread]) if unread else frame
        known = list(frame.columns if suggest is None else suggest)
        if len(frame.columns) == 1 and (mark := re.search(r"[;\t|]", str(frame.columns[0]))):
            said = (
                f"{role} has one column, {frame.columns[0]!r}: the separator of its file is "
                f"{mark[0]!r}, as in {role} = pd.read_csv(path, sep={mark[0]!r})"
            )
            raise ColumnError(said, column=where)
        have = ", ".join(map(repr, frame.columns)) or "none"
        said = f"{role} has no column {name!r}; it has {have}"
        said += _instead(frame.drop(columns=[*apart], errors="ignore"), name, role, known)
        raise ColumnError(said, column=where)
    found: Series | DataFrame = frame[name]
    if isinstance(found, DataFrame):
        raise ColumnError(f"{role} has {found.shape[1]} columns named {name!r}; expected one")
    return found


def _usual(name: Any) -> list[str]:
    """Return the roles for which a column is usually called so."""
    plain = re.sub(r"[^a-z]", "", str(name).lower())
    return [
        role
        for role, names in USUAL_NAMES.items()
        if re.fullmatch(f"({names})s?(id|ids|key)?", plain)
    ]


def _instead(frame: DataFrame, name: Any, role: str, known: list[Any]) -> str:
    """Return what to do where a frame has no column of a name, as the end of a message."""
    for kind in _usual(name):
        usual = [one for one in known if kind in _usual(one)]
        if usual and name not in ("user_id", "item_id") and (near := closest(name, usual)):
            return near  # the caller typed the name, and not quite right
        if usual:
            rename = (
                f" if all frames call it so, else rename it in {role}"
                if kind in ("user", "item")
                else ""
            )
            return f"; pass ⟦+{kind}_col={usual[0]!r}⟧{rename}"
        users = [one for one in frame.columns if "user" in _usual(one)]
        rest = [one for one in frame.columns if not _usual(one)]
        if kind == "item" and role in ("true", "pred") and users and len(rest) > 1:
            scores = all(pd.api.types.is_float_dtype(dtype) for dtype in frame[rest].dtypes)
            into = f"var_name={name!r}, value_name='score'" if scores else f"value_name={name!r}"
            if role == "pred" and not scores:
                return f"; if its columns are ranks, pass ⟦+wide={rest!r}⟧, best first"
            columns = "items" if scores else "ranks"
            return (
                f"; if its columns are {columns}, make a row of each: {role}.melt({users!r}, "
                f"{into})"
            )
        if kind == "user" and not frame.index.equals(pd.RangeIndex(len(frame))):
            return f"; if the index holds it, pass {role}.rename_axis({name!r}).reset_index()"
        known = [
            one for one in known if not _usual(one)
        ]  # a user is not meant where an item is missing
    return closest(name, known)


def read_numbers(series: Series, where: str) -> ndarray:
    """Return float64 (NaN for null), or int64 or uint64 for integers without nulls, which stay
    exact."""
    dtype = series.dtype
    if pd.api.types.is_complex_dtype(dtype):
        raise DataError(f"{where} holds complex numbers; expected real ones", column=where)
    if pd.api.types.is_integer_dtype(dtype) and not series.hasnans:
        return series.to_numpy(
            dtype=np.uint64 if str(dtype).lower().startswith("uint64") else np.int64
        )
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    found = "empty"
    if str(dtype) != "null[pyarrow]":
        found = pd.api.types.infer_dtype(series, skipna=True)
    if found in ("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty"):
        return pd.to_numeric(series.astype(object).where(series.notna(), np.nan)).to_numpy(
            dtype=np.float64
        )
    some = examples(series.dropna().head(5))
    held = f"{found} values ({some})" if some else f"{dtype} values"
    lists = "; lists of numbers need a list of items in their row" * some.startswith(
        ("[", "'[", "(", "array(")
    )
    raise DataError(f"{where} holds {held}; expected numbers{lists}", column=where)


# Whole numbers up to here are exact as float64.
EXACT = 2**53


def read_order(series: Series, where: str) -> ndarray:
    """Return numbers that have the order of a column's values, with NaN for null.

    They are mostly the values themselves, as `read_numbers` returns them. But float64 would make
    some values equal that differ: large integers beside nulls, and Decimals that differ only in a
    late digit. Such columns become 0, 1, 2, ... in ascending order of their values, with equal
    numbers for equal values.
    """
    dtype = series.dtype
    number = read_numbers(series, where)
    short = pd.api.types.is_float_dtype(dtype) and getattr(dtype, "itemsize", 8) <= 8
    if short or pd.api.types.is_bool_dtype(dtype) or number.dtype.kind != "f" or not len(number):
        return number
    if pd.api.types.is_integer_dtype(dtype) and np.nanmax(np.abs(number), initial=0) < EXACT:
        return number
    null = series.isna().to_numpy(dtype=bool)
    present = series[~null].astype(object).to_numpy()
    kinds = set(map(type, present.tolist()))
    # Python compares int, float and Decimal by their exact values.
    if kinds <= {float, bool, np.float64} or not (present != number[~null].astype(object)).any():
        return number
    places = np.full(len(series), np.nan)
    places[~null] = np.unique(present, return_inverse=True)[1]
    return places


def float_column(frame: DataFrame, name: Any, role: str) -> ndarray:
    """Read a column of numbers as float64, with NaN for null."""
    numbers = read_numbers(column(frame, name, role), f"{role}[{name!r}]")
    return numbers.astype(np.float64, copy=False)


def read_values(frame: DataFrame, name: str, role: str) -> ndarray:
    """Read a column of values: finite numbers, in the unit of the caller."""
    values = float_column(frame, name, role)
    bad = ~np.isfinite(values)
    if bad.any():
        raise DataError(
            f"{role}[{name!r}] holds {bad.sum():,} null or infinite values in {len(bad):,} rows; "
            "expected finite numbers",
            column=f"{role}[{name!r}]",
            count=int(bad.sum()),
        )
    return values


def id_frame(data: Any, role: str, names: list[str]) -> DataFrame:
    """Return ids as a frame. They come as a frame or, for one column, also as a list, array, Series
    or Index."""
    tabular = hasattr(data, "__arrow_c_stream__") and hasattr(data, "columns")
    if tabular or lazy_rows(data) is not None:
        return as_frame(data, role)
    if len(names) > 1:
        raise ColumnError(
            f"{role} must be a frame with the columns {names}; found {type(data).__name__}"
        )
    if isinstance(data, pa.Array | ChunkedArray):
        data = data.to_pylist()
    elif not isinstance(data, Iterable) or isinstance(data, str | bytes):
        raise TypeError(
            f"{role} is {kind_of(data)}; expected a frame, or a list, array, Series or Index of ids"
        )
    if isinstance(data, Series) and data.index.name in names and data.name not in names:
        raise ColumnError(f"{role} has its ids in its index, which is not read; pass {role}.index")
    of_pandas = isinstance(data, Series | pd.Index) and not isinstance(data, pd.MultiIndex)
    values = data if of_pandas else as_series(list(data))
    return _plain_frame(as_series(values.array).to_frame(names[0]))
