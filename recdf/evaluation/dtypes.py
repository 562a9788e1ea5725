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

from ..errors import DataError

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


def to_table(frame: pd.DataFrame) -> pa.Table:
    """Convert the frame to an Arrow table that parquet can hold.

    Raises
    ------
    DataError
        If parquet has no type for a column; it names the column.
    """
    columns = {name: _values_to_arrow(frame[name], name) for name in frame.columns}
    return pa.table(columns).replace_schema_metadata(_for_pandas(frame))


def _values_to_arrow(column: pd.Series, name: str) -> Any:
    dtype = column.dtype
    if isinstance(dtype, pd.SparseDtype):
        return _column_to_arrow(column.astype(dtype.subtype), name, dtype)
    if isinstance(dtype, pd.CategoricalDtype) and not pd.api.types.is_string_dtype(
        dtype.categories.dtype
    ):
        # Parquet keeps only dictionaries of strings.
        codes = column.cat.codes.to_numpy()
        values = _column_to_arrow(pd.Series(dtype.categories), name, dtype)
        return values.take(pa.array(codes, mask=codes < 0))
    return _column_to_arrow(column, name, dtype)


def _for_pandas(frame: pd.DataFrame) -> dict[bytes, bytes] | None:
    """Return the metadata from which `pandas.read_parquet` restores its own dtypes, such as
    Int64."""
    columns = {}
    for name in frame.columns:
        empty = frame[name].head(0)
        try:
            pd.api.types.pandas_dtype(str(empty.dtype))
            pa.Array.from_pandas(empty)
        except (
            TypeError,
            ValueError,
            NotImplementedError,
            pa.ArrowException,
        ):  # pandas could not read this back
            empty = empty.astype(object)
        columns[name] = empty
    return dict(pa.Schema.from_pandas(pd.DataFrame(columns), preserve_index=False).metadata)


def _column_to_arrow(column: pd.Series, name: str, dtype: Any) -> Any:
    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowException, OverflowError, TypeError, ValueError, NotImplementedError) as error:
        raise _refused(name, dtype, " ".join(str(error).split())) from None


def categories_of(frame: pd.DataFrame) -> bytes:
    """Return the categories of all categorical columns in their order, as an Arrow stream; empty if
    there are none."""
    found = {}
    for name in frame.columns:
        if isinstance(frame[name].dtype, pd.CategoricalDtype):
            values = pd.Series(frame[name].cat.categories)
            if pd.api.types.infer_dtype(values) == "decimal":
                values = values.astype(
                    str
                )  # parquet gives all Decimals of a column the same number of digits
            array = _column_to_arrow(values, name, frame[name].dtype)
            # One list, so that columns of different lengths fit into one table.
            found[name] = pa.LargeListArray.from_arrays(
                pa.array([0, len(array)], pa.int64()), array
            )
    return to_stream(pa.table(found)) if found else b""


def to_stream(table: pa.Table) -> bytes:
    """Return the bytes of an Arrow stream."""
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
    frame: pd.DataFrame, table: pa.Table, described: dict[str, DescribedDtype], categories: bytes
) -> None:
    """Raise DataError unless parquet returns the labels of each column unchanged.

    For numbers and strings it always does. The distinct values of any other column are written to
    memory and read back.
    """
    import pyarrow.parquet as pq  # costs import time that only reading and writing need

    known = read_categories(categories)
    for name in frame.columns:
        column = frame[name]
        if _always_returns(column):
            continue
        try:
            first = ~column.duplicated().to_numpy(dtype=bool)
            sink = pa.BufferOutputStream()
            pq.write_table(table.select([name]).filter(pa.array(first)), sink)
            stored = pq.read_table(pa.BufferReader(sink.getvalue()))
            again = restore(stored[name], described[name], known.get(name))
        except (OSError, MemoryError):
            raise
        except Exception as error:  # a dtype of another library may raise anything
            raise _refused(name, column.dtype, " ".join(str(error).split())) from None
        distinct = column[first].reset_index(drop=True)
        if again.dtype != distinct.dtype or not again.equals(distinct):
            examples = (
                f"{distinct.iloc[0]!r} would come back as {again.iloc[0]!r}"
                if len(again)
                else "no rows"
            )
            raise _refused(name, column.dtype, examples)


def _always_returns(column: pd.Series) -> bool:
    dtype = column.dtype
    if isinstance(dtype, pd.StringDtype):
        return True
    if pd.api.types.is_object_dtype(dtype):
        return pd.api.types.infer_dtype(column, skipna=False) == "string"
    return isinstance(dtype, np.dtype) and dtype.kind in "iuf"


def _refused(name: str, dtype: Any, why: str) -> DataError:
    return DataError(
        f"column {name!r} ({dtype}) cannot be stored in parquet without change: {why}; convert it "
        "before evaluating, e.g. ⟦with .astype(str)⟧"
    )


def describe(column: pd.Series) -> DescribedDtype:
    """Describe the dtype of a column so that it can be restored."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        of = describe(pd.Series(dtype.categories))
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


def restore(column: Any, described: DescribedDtype, categories: Any = None) -> pd.Series:
    """Restore the dtype of a column read from parquet (an Arrow array); a categorical one needs its
    `categories`."""
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if described["kind"] == "category":
        return _restore_category(column, described, categories)
    if described["kind"] == "arrow":
        kind = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(described["arrow"]))).field(0).type
        return pd.Series(
            pd.arrays.ArrowExtensionArray(column if column.type == kind else column.cast(kind))
        )
    values: pd.Series = without_dictionary(column).to_pandas()
    dtype: Any = described["name"]
    if (
        described["kind"] == "string"
    ):  # where the installed pandas has none for strings with NaN, they are objects
        dtype = (
            ("str" if HAS_STR else "object")
            if described["nan"]
            else pd.StringDtype(described["storage"])
        )
    return values.astype(dtype)


def _restore_category(column: pa.ChunkedArray, described: DescribedDtype, packed: Any) -> pd.Series:
    """Restore a categorical column by looking up its values, since parquet keeps the values but not
    the codes."""
    values = without_dictionary(column)
    categories = restore(packed, described["of"])
    if pa.types.is_decimal(values.type):
        categories = categories.map(Decimal)
    index = pd.Index(categories.array, dtype=categories.dtype, tupleize_cols=False)
    dtype = pd.CategoricalDtype(index, described["ordered"])
    if pa.types.is_primitive(values.type) or {values.type, packed.type} <= {
        pa.string(),
        pa.large_string(),
    }:
        codes = pc.index_in(values, packed.cast(values.type)).fill_null(-1)
        return pd.Series(pd.Categorical.from_codes(codes.to_numpy(), dtype=dtype))
    return pd.Series(pd.Categorical(restore(values, described["of"]), dtype=dtype))


def without_dictionary(column: Any) -> Any:
    """Return an array, in chunks or not, without a dictionary."""
    if not pa.types.is_dictionary(column.type):
        return column
    if isinstance(column, pa.Array):
        return column.dictionary_decode()
    return pa.chunked_array(
        [chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type
    )


def know_extension_types() -> None:
    """Make pandas register the Arrow types of its periods and intervals, which it does when it
    first writes one."""
    pa.array(pd.period_range("2000", periods=1, freq="D").array)
    pa.array(pd.interval_range(0, 1).array)
