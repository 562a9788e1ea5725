"""Columns of a result in parquet: every dtype is the same after reading, or is refused before
anything is written.

Parquet has fewer types than pandas. The file stores values in the nearest type that every reader
knows. The metadata describes what pandas needs to restore the dtype of a column. The categories of
categorical columns, of which there may be as many as users, are stored beside the table as an Arrow
stream.
"""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas import DataFrame, Series

from ..errors import DataError
from ..inputs.frames import without_dictionary

# Since version 3 pandas has a dtype of its own for strings, and no longer keeps them as objects.
HAS_STR = int(pd.__version__.split(".")[0]) >= 3


class DescribedDtype(TypedDict):
    """JSON-safe description of a dtype."""

    kind: Literal["plain", "string", "arrow", "category"]
    name: str
    storage: NotRequired[str]  # of a string dtype
    nan: NotRequired[bool]  # whether nulls of a string dtype are NaN
    arrow: NotRequired[str]  # an Arrow type: a schema of one field, as base64
    of: NotRequired[DescribedDtype]  # dtype of the categories
    ordered: NotRequired[bool]


# -------------------------------------------------------------------------------------------
# writing


def to_table(frame: DataFrame) -> pa.Table:
    """Convert the frame to an Arrow table that parquet can hold.

    The metadata are those from which `pandas.read_parquet` restores its own dtypes, such as Int64.

    Raises
    ------
    DataError
        If parquet has no type for a column; it names the column.
    """
    columns = {}
    empty = dict(frame.head(0).items())
    for name, column in frame.items():
        dtype: Any = column.dtype
        if isinstance(dtype, pd.SparseDtype):
            column = column.astype(dtype.subtype)
        categories = dtype.categories if isinstance(dtype, pd.CategoricalDtype) else None
        if categories is None or pd.api.types.is_string_dtype(categories.dtype):
            columns[name] = _column_to_arrow(column, name, dtype)
        else:  # parquet keeps only dictionaries of strings
            codes = column.cat.codes.to_numpy()
            values = _column_to_arrow(Series(categories), name, dtype)
            columns[name] = values.take(pa.array(codes, mask=codes < 0))
        if _always_kept(dtype):
            continue
        try:
            pd.api.types.pandas_dtype(str(dtype))
            pa.Array.from_pandas(empty[name])
        except (TypeError, ValueError, NotImplementedError, pa.ArrowException):
            empty[name] = empty[name].astype(object)  # pandas could not read this back
    schema = pa.Schema.from_pandas(DataFrame(empty), preserve_index=False)
    return pa.table(columns).replace_schema_metadata(schema.metadata)


def _always_kept(dtype: Any) -> bool:
    """Whether parquet and pandas give back each column of this dtype as it was: numbers and
    strings."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "biuf"
    return isinstance(dtype, pd.StringDtype | pd.Int64Dtype)


def _column_to_arrow(column: Series, name: Any, dtype: Any) -> Any:
    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowException, OverflowError, TypeError, ValueError, NotImplementedError) as error:
        raise _refused(name, dtype, " ".join(str(error).split())) from None


def categories_of(frame: DataFrame) -> bytes:
    """Return the categories of all categorical columns in their order, as an Arrow stream; empty if
    there are none."""
    found = {}
    for name, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            values = Series(column.cat.categories)
            if pd.api.types.infer_dtype(values) == "decimal":
                # Parquet gives all Decimals of a column the same number of digits.
                values = values.astype(str)
            array = _column_to_arrow(values, name, column.dtype)
            # One list, so that columns of different lengths fit into one table.
            places = pa.array([0, len(array)], pa.int64())
            found[name] = pa.LargeListArray.from_arrays(places, array)
    if not found:
        return b""
    table = pa.table(found)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read_categories(stream: bytes) -> dict[str, pa.Array]:
    """Read the categories that `categories_of` wrote, by column."""
    if not stream:
        return {}
    table = pa.ipc.open_stream(pa.py_buffer(stream)).read_all()
    return {name: table[name].combine_chunks().flatten() for name in table.column_names}


def refuse_lossy(
    frame: DataFrame, table: pa.Table, described: dict[str, DescribedDtype], categories: bytes
) -> None:
    """Raise DataError unless parquet returns the labels of each column unchanged.

    For numbers and strings it always does. The distinct values of any other column are written to
    memory and read back.
    """
    import pyarrow.parquet as pq  # costs import time that only reading and writing need

    known = read_categories(categories)
    for name, column in frame.items():
        dtype: Any = column.dtype
        if _always_kept(dtype) or (
            isinstance(dtype, np.dtype)
            and pd.api.types.infer_dtype(column, skipna=False) == "string"
        ):
            continue
        try:
            first = ~column.duplicated().to_numpy(dtype=bool)
            sink = pa.BufferOutputStream()
            pq.write_table(table.select([name]).filter(pa.array(first)), sink)
            stored = pq.read_table(pa.BufferReader(sink.getvalue()))
            again = restore(stored[name], described[str(name)], known.get(str(name)))
        except (OSError, MemoryError):
            raise
        except Exception as error:  # a dtype of another library may raise anything
            raise _refused(name, dtype, " ".join(str(error).split())) from None
        distinct = column[first].reset_index(drop=True)
        if again.dtype != distinct.dtype or not again.equals(distinct):
            rows = zip(distinct, again, strict=False)
            words = [f"{one!r} would come back as {other!r}" for one, other in rows]
            raise _refused(name, dtype, words[0] if words else "no rows")


def _refused(name: Any, dtype: Any, why: str) -> DataError:
    return DataError(
        f"column {name!r} ({dtype}) cannot be stored in parquet without change: {why}; convert it "
        "before evaluating, e.g. ⟦with .astype(str)⟧"
    )


def describe(column: Series) -> DescribedDtype:
    """Describe the dtype of a column so that it can be restored."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        of = describe(Series(dtype.categories))
        return {"kind": "category", "name": "category", "of": of, "ordered": bool(dtype.ordered)}
    if isinstance(dtype, pd.StringDtype):
        nan = getattr(dtype, "na_value", pd.NA) is not pd.NA
        return {"kind": "string", "name": str(dtype), "storage": dtype.storage, "nan": nan}
    if isinstance(dtype, pd.ArrowDtype):
        schema = pa.schema([("values", dtype.pyarrow_dtype)])
        return {
            "kind": "arrow",
            "name": str(dtype),
            "arrow": base64.b64encode(schema.serialize()).decode(),
        }
    return {"kind": "plain", "name": str(dtype)}


# -------------------------------------------------------------------------------------------
# reading


def restore(column: Any, described: DescribedDtype, categories: Any = None) -> Series:
    """Restore the dtype of a column read from parquet (an Arrow array); a categorical one needs its
    `categories`, since parquet keeps its values but not the codes."""
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    kind: Any = described["kind"]
    name: Any = described["name"]
    if kind == "arrow":
        own = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(described["arrow"]))).field(0).type
        column = column if column.type == own else column.cast(own)
        return Series(pd.arrays.ArrowExtensionArray(column))
    column = without_dictionary(column)
    if kind == "category":
        values = restore(categories, described["of"])
        if pa.types.is_decimal(column.type):
            values = values.map(Decimal)
        index = pd.Index(values.array, dtype=values.dtype, tupleize_cols=False)
        dtype = pd.CategoricalDtype(index, described["ordered"])
        text = {column.type, categories.type} <= {pa.string(), pa.large_string()}
        if text or pa.types.is_primitive(column.type):
            codes = pc.index_in(column, categories.cast(column.type)).fill_null(-1)
            return Series(pd.Categorical.from_codes(codes.to_numpy(), dtype=dtype))
        return Series(pd.Categorical(restore(column, described["of"]), dtype=dtype))
    values = column.to_pandas(integer_object_nulls=True)
    plain = name
    if kind == "string" and described["nan"]:
        # Where the installed pandas has no dtype for strings with NaN, they are objects.
        plain = "str" if HAS_STR else "object"
    elif kind == "string":
        plain = pd.StringDtype(described["storage"])
    return values.astype(plain)


def know_extension_types() -> None:
    """Make pandas register the Arrow types of its periods and intervals, which it does when it
    first writes one."""
    pa.array(pd.period_range("2000", periods=1, freq="D").array)
    pa.array(pd.interval_range(0, 1).array)
