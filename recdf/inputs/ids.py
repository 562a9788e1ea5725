"""Id columns, checked and free of pandas dtypes.

Contract: `read_ids` keeps a column in a form that has no Python objects unless the input has them,
and refuses values that cannot be ids. Ids are never cast to another kind and never lose digits.
`codes` compares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray
from pandas import DataFrame, Series
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_float_dtype
from pyarrow import ChunkedArray

from ..errors import IdTypeError, examples
from .sorting import ascends

TEXTS = (pa.string(), pa.large_string())  # types of Arrow


def codes_of_ids(some: Series) -> ndarray | None:
    """Return codes of values that may be ids, −1 for nulls; None for columns whose dtype is of
    flags or dates, for floats with a fraction, and for lists. Ids of which some are, or were,
    unknown are whole numbers among floats."""
    kind = some.dtype
    if is_bool_dtype(kind) or is_datetime64_any_dtype(kind):
        return None
    if is_float_dtype(kind):
        values = some.to_numpy(np.float64, na_value=np.nan)
        if (values > np.floor(values)).any():
            return None
    try:
        return pd.factorize(some)[0]
    except (TypeError, NotImplementedError):
        return None


@dataclass(frozen=True)
class IdColumn:
    """One id column as an array, without its pandas dtype.

    `values` is an int16, int32, int64, uint64, datetime64 or object array, or a pyarrow
    ChunkedArray of strings or bytes. Where there is a `dictionary`, they are positions in it.
    `null` marks nulls; it is None if there are none.
    """

    where: str
    kind: str
    values: Any
    null: ndarray | None = None
    dictionary: IdColumn | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def filled(self) -> bool:
        """Whether it has an id."""
        return self.kind != "empty" and len(self) > 0

    def take(self, rows: ndarray) -> IdColumn:
        null = None if self.null is None else self.null[rows]
        taken = (
            _take_chunks(self.values, rows)
            if isinstance(self.values, ChunkedArray)
            else self.values[rows]
        )
        return IdColumn(self.where, self.kind, taken, null, self.dictionary)

    def changes(self, part: slice) -> ndarray:
        """Tell for each row of `part` but the first whether its id differs from that of the row
        before it.

        The column must have no nulls.
        """
        values = self.values[part]
        differ = pc.not_equal if isinstance(values, ChunkedArray) else np.not_equal
        return np.asarray(differ(values[1:], values[:-1]), dtype=bool)

    def show(self, rows: ndarray) -> list[Any]:
        """Return the ids at a few rows as Python objects, for messages; None for null."""
        some = self.take(np.asarray(rows, dtype=np.int64))
        if some.null is not None and some.null.any():
            known = iter(self.show(rows[~some.null]))
            return [None if null else next(known) for null in some.null]
        if some.dictionary is not None:
            return some.dictionary.show(some.values)
        if isinstance(some.values, ChunkedArray):
            return list(some.values.to_pylist())
        if some.values.dtype.kind == "M":  # as dates, and not as numbers of nanoseconds
            return [str(one) for one in some.values.astype("datetime64[us]").astype(object)]
        return list(some.values.tolist())

    def nulls(self) -> ndarray:
        """Return a flag for each row: whether its id is null."""
        return np.zeros(len(self), bool) if self.null is None else self.null

    def two(self) -> list[Any]:
        """Return the first two ids as Python objects, for messages."""
        return self.show(np.flatnonzero(~self.nulls())[:2])


def _take_chunks(array: ChunkedArray, rows: ndarray) -> ChunkedArray:
    """Take rows, chunk by chunk. Arrow would join all chunks, which may hold more strings than fit
    into one."""
    if array.num_chunks == 1:
        return pa.chunked_array([array.chunk(0).take(pa.array(rows))])
    order = None
    if not ascends(rows):
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
    start = np.cumsum([0, *map(len, array.chunks)])
    edges = pairwise(np.searchsorted(rows, start).tolist())
    parts = [
        chunk.take(pa.array(rows[a:z] - first))
        for chunk, first, (a, z) in zip(array.chunks, start[:-1], edges, strict=True)
        if a < z
    ]
    found = pa.chunked_array(parts, array.type)
    return found if order is None else found.take(pa.array(np.argsort(order)))


def take_values(series: Series, rows: ndarray) -> Any:
    """Take some rows of a column, as an array in its dtype; objects as a Series, since pandas makes
    texts of an array of them."""
    dtype = series.dtype
    if isinstance(dtype, pd.ArrowDtype) or (
        isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"
    ):
        from_arrow: Any = dtype
        return from_arrow.__from_arrow__(_take_chunks(as_arrow(series), rows))
    values: Any = series.to_numpy() if isinstance(dtype, np.dtype) else series.array
    taken = values.take(rows)
    return Series(taken, dtype=object) if taken.dtype == object else taken


def take_rows(series: Series, rows: ndarray) -> Series:
    """Take some rows of a column, with a new index and in its dtype."""
    return Series(take_values(series, rows), dtype=series.dtype)


def _kind_of_number(dtype: Any) -> str:
    """Return "float", "uint64" or "integer"; nothing for other labels."""
    dtype = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
    if pd.api.types.is_integer_dtype(dtype):
        return "uint64" if str(dtype).lower().startswith("uint64") else "integer"
    return "float" * pd.api.types.is_float_dtype(dtype)


def alike_ids(columns: Sequence[Series], where: str) -> list[Series]:
    """Return columns of ids that `pandas.concat` can put below each other.

    It makes floats of uint64 beside other integers and of integers beside floats, which lose
    digits. Such columns become integers of one dtype here, and others stay as they are.
    """
    kinds = {_kind_of_number(one.dtype) for one in columns}
    if len(kinds) < 2 or "" in kinds:
        return list(columns)
    read = [read_ids(one, where) for one in columns]
    found = [
        ids.values if ids.dictionary is None else ids.dictionary.values[ids.values] for ids in read
    ]
    ends = [0, *(int(end) for one in found if len(one) for end in (one.min(), one.max()))]
    low, high = min(ends), max(ends)
    if low < 0 and high >= 2**63:
        raise IdTypeError(
            f"{where} has ids from {low} to {high}, which no integer dtype holds; convert both "
            "columns, e.g. ⟦with .astype(str)⟧"
        )
    integers = [Series(one.astype("int64" if high < 2**63 else "uint64")) for one in found]
    if all(
        isinstance(one.dtype, np.dtype | pd.CategoricalDtype) and ids.null is None
        for one, ids in zip(columns, read, strict=True)
    ):
        return integers
    return [nullable(one).mask(ids.nulls()) for one, ids in zip(integers, read, strict=True)]


def with_alike_ids(
    frames: Sequence[DataFrame], names: Iterable[Any], where: str
) -> list[DataFrame]:
    """Return frames whose ids `pandas.concat` can put below each other."""
    found = [frame.copy(deep=False) for frame in frames]
    for name in names:
        given = [frame[name] for frame in frames]
        for frame, own, one in zip(
            found, given, alike_ids(given, f"{where}[{name!r}]"), strict=True
        ):
            if one is not own:
                frame[name] = one.array
    return found


def as_series(values: Any) -> Series:
    """Values as a column. Strings with lone surrogates stay objects, for a message that names
    them."""
    try:
        return Series(values)
    except UnicodeEncodeError:
        return Series(values, dtype=object)


def read_ids(series: Series, where: str) -> IdColumn:
    """Check one id column and return it as `IdColumn`."""
    dtype = series.dtype
    refuse_nested(dtype, where)
    if isinstance(dtype, pd.CategoricalDtype):
        categories = read_ids(Series(series.cat.categories), where)
        return _dictionary_ids(where, series.cat.codes.to_numpy(), categories)
    if pd.api.types.is_bool_dtype(dtype):
        raise IdTypeError(
            f"{where} is bool; ids are integers, strings, dates or other labels", column=where
        )
    if pd.api.types.is_integer_dtype(dtype):
        return _integer_ids(series, where)
    if pd.api.types.is_float_dtype(dtype):
        return _float_ids(series, where)
    if isinstance(dtype, pd.StringDtype):
        return _arrow_ids(check_labels(series, where), where)
    if isinstance(dtype, pd.ArrowDtype):
        kind = dtype.pyarrow_dtype
        if pa.types.is_dictionary(kind):
            array = as_arrow(series)
            array = (
                array.chunk(0)
                if array.num_chunks == 1
                else array.unify_dictionaries().combine_chunks()
            )
            categories = read_ids(
                Series(array.dictionary, dtype=pd.ArrowDtype(kind.value_type)), where
            )
            positions = array.indices.cast(pa.int32())
            if positions.null_count:
                positions = positions.fill_null(-1)
            return _dictionary_ids(where, positions.to_numpy(), categories)
        if kind in (*TEXTS, pa.binary(), pa.large_binary()):
            return _arrow_ids(series, where)
        if pa.types.is_timestamp(kind):
            return read_ids(as_arrow(series).to_pandas(), where)
    if isinstance(dtype, pd.DatetimeTZDtype):
        naive = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return IdColumn(where, "datetime with time zone", naive.to_numpy(), _nulls(series))
    if pd.api.types.is_datetime64_dtype(dtype):
        return IdColumn(where, "datetime", series.to_numpy(), _nulls(series))
    return _object_ids(series.astype(object), where)


def read_by(columns: Sequence[Series], where: str) -> list[IdColumn]:
    """Read columns whose values only tell rows apart, and which may therefore also hold bools and
    fractions.

    All columns are read in the same way, since a part of a column of fractions may hold only whole
    numbers.
    """
    try:
        found = [read_ids(series, where) for series in columns]
    except IdTypeError:
        found = []
    if not found or len({ids.kind for ids in found if ids.filled}) > 1:
        return [_plain_labels(series, where) for series in columns]
    return found


def check_labels(series: Series, where: str) -> Series:
    """Return labels as they are, or raise where one has lone surrogates: pandas 2 takes all such
    texts for the same one, and pandas 3 fails on them."""
    dtype = series.dtype
    labels = dtype.categories if isinstance(dtype, pd.CategoricalDtype) else series
    if labels.dtype == object or getattr(labels.dtype, "storage", "") == "python":
        _arrow_texts(
            [label for label in labels.to_numpy(dtype=object) if isinstance(label, str)], where
        )
    return series


def _arrow_texts(values: Sequence[Any] | ndarray, where: str) -> pa.Array:
    """Return texts beside nulls in a dtype of Arrow, or raise where one has lone surrogates."""
    try:
        return pa.array(values, type=pa.large_string(), from_pandas=True)
    except UnicodeEncodeError:
        texts = (text for text in values if isinstance(text, str))
        odd = next(text for text in texts if re.search("[\ud800-\udfff]", text))
        raise IdTypeError(
            f"{where} has {odd!a}, a text with a lone surrogate, which UTF-8 cannot encode and "
            "pandas cannot tell from others of its kind; write such texts as plain ones, e.g. "
            "with .map(ascii)",
            column=where,
        ) from None


def refuse_nested(dtype: Any, where: str) -> None:
    if is_nested(dtype):
        raise IdTypeError(
            f"{where} is {dtype.pyarrow_dtype}, whose values cannot tell rows apart; expected "
            "strings, numbers, dates or other hashable labels. Convert the column, e.g. ⟦with "
            ".astype(str)⟧",
            column=where,
        )


def _dictionary_ids(where: str, positions: ndarray, categories: IdColumn) -> IdColumn:
    null = positions < 0
    if categories.null is not None:
        null |= categories.null[positions]
    return IdColumn(where, categories.kind, positions, null if null.any() else None, categories)


def _plain_labels(series: Series, where: str) -> IdColumn:
    codes, labels = label_codes(series, where)
    return _dictionary_ids(where, codes, IdColumn(where, "label", np.asarray(labels, dtype=object)))


def label_codes(series: Series, where: str, *, sort: bool = False) -> tuple[ndarray, Any]:
    """Return a number for each value that is equal for equal values, and the value of each number;
    -1 for null."""
    refuse_nested(series.dtype, where)
    check_labels(series, where)
    try:
        return pd.factorize(series, sort=sort)
    except TypeError as error:  # lists, arrays and dicts as Python objects
        raise not_apart(where, error) from error


def not_apart(where: str, error: TypeError) -> IdTypeError:
    """Return the error for a column of values that have no hash, or no order."""
    return IdTypeError(
        f"{where} holds values that cannot tell rows apart ({error}); expected strings, "
        "numbers, dates or other hashable labels. Convert the column, e.g. ⟦with .astype(str)⟧",
        column=where,
    )


def is_nested(dtype: Any) -> bool:
    """Tell whether this is a type of Arrow whose values cannot be compared: a list, struct, map or
    interval."""
    kind = dtype.pyarrow_dtype if isinstance(dtype, pd.ArrowDtype) else None
    nested = kind is not None and (pa.types.is_nested(kind) or pa.types.is_fixed_size_list(kind))
    return nested or "view<" in str(kind) or "interval" in str(kind)


def _nulls(series: Series) -> ndarray | None:
    null = series.isna().to_numpy(dtype=bool)
    return null if null.any() else None


def _integer_ids(series: Series, where: str) -> IdColumn:
    null = None if isinstance(series.dtype, np.dtype) else _nulls(series)
    fill: dict[str, Any] = {} if null is None else {"na_value": 0}
    own = getattr(series.dtype, "numpy_dtype", series.dtype)
    # These stay, since a copy of a long column would take memory and time. Other integers become
    # int64.
    kind = own if own in (np.int16, np.int32, np.uint64) else np.int64
    values = series.to_numpy(dtype=kind, **fill)
    if kind == np.uint64 and values.max(initial=0) <= np.iinfo(np.int64).max:
        values = values.astype(np.int64)
    return IdColumn(where, "integer", values, null)


def _float_ids(series: Series, where: str) -> IdColumn:
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    null = np.isnan(values)
    name = str(series.dtype).lower()
    # Whole numbers are exact below this power of 2.
    digits = 24 if "32" in name or name == "float[pyarrow]" else 53
    digits = 11 if "16" in name or "half" in name else digits
    odd = values[~null & ~((np.abs(values) < 2.0**digits) & (np.floor(values) == values))]
    if len(odd):
        raise IdTypeError(
            f"{where} is {series.dtype} and {len(odd):,} ids are not whole numbers below "
            f"2**{digits} ({examples(odd)}); ids that went through float may have lost digits: "
            "read them as integers or strings",
            column=where,
            count=len(odd),
            examples=odd[:5].tolist(),
        )
    kind = "empty" if null.all() else "integer"
    integers = np.where(null, 0.0, values).astype(np.int64)
    return IdColumn(where, kind, integers, null if null.any() else None)


def nullable(values: Series) -> Series:
    """Convert integers and bools to the pandas dtypes that have a null; other dtypes have one
    already."""
    dtype = values.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iub":
        name = dtype.name.replace("u", "U").replace("int", "Int").replace("bool", "boolean")
        values = values.astype(name)  # type: ignore[call-overload]
    return values


def exact_nulls(column: Any) -> Series:
    """Return integers or bools of Arrow in the pandas dtype that has a null, in which they stay
    what they are."""
    dtype: Any = nullable(Series([], dtype=column.type.to_pandas_dtype())).dtype
    return Series(dtype.__from_arrow__(column))


def as_arrow(series: Series) -> Any:
    """Return a column as a chunked array of Arrow."""
    array = pa.array(series.array, from_pandas=True)
    return array if isinstance(array, ChunkedArray) else pa.chunked_array([array])


def _arrow_ids(series: Series, where: str) -> IdColumn:
    array = as_arrow(series)
    null = array.is_null().to_numpy(zero_copy_only=False).astype(bool) if array.null_count else None
    return IdColumn(where, "string" if array.type in TEXTS else "bytes", array, null)


# What pandas calls the kinds of objects for which it has dtypes.
PLAIN_KINDS_OF_IDS = (
    *("boolean", "integer", "floating", "mixed-integer-float"),
    *("datetime", "datetime64"),
)


def _object_ids(series: Series, where: str) -> IdColumn:
    """Read ids that are Python objects by their type."""
    inferred = pd.api.types.infer_dtype(series, skipna=True)
    values = series.to_numpy()
    if inferred == "string":
        text = pa.chunked_array([_arrow_texts(values, where)])
        return IdColumn(where, "string", text, _nulls(series))
    null = _nulls(series)
    present = values if null is None else values[~null]
    if not len(present):
        return IdColumn(where, "empty", np.zeros(len(series), np.int64), null)
    if inferred not in PLAIN_KINDS_OF_IDS:
        return _labels_of_one_type(values, present, null, where)
    exact = Series(present, dtype=object)
    with suppress(OverflowError):  # of integers that no float can be
        exact = exact.astype(np.float64) if "float" in inferred else exact.infer_objects()
    if exact.dtype == object:  # ids beyond int64; dates out of range or of several zones
        kind = "integer" if inferred == "integer" else "datetime object"
        return IdColumn(where, kind, values, null)
    read = read_ids(exact, where)
    if null is None:
        return read
    filled = np.zeros(len(series), read.values.dtype)
    filled[~null] = read.values
    return IdColumn(where, read.kind, filled, null)


def _labels_of_one_type(
    values: ndarray, present: ndarray, null: ndarray | None, where: str
) -> IdColumn:
    """Return ids that are hashable objects of one type."""
    kinds = set(map(type, present))
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise IdTypeError(
            f"{where} mixes ids of several types: {names}; convert the column to one type",
            column=where,
        )
    kind = kinds.pop()
    if kind.__hash__ is None:
        raise IdTypeError(
            f"{where} holds {kind.__name__} objects, which cannot be ids; expected one id in a row",
            column=where,
        )
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return IdColumn(where, module + kind.__qualname__, values, null)
