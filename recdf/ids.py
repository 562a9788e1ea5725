"""Id columns without labels: `read_ids` checks a column, `encode` gives codes.

Contract: `read_ids` keeps a column in a form that needs no Python objects where the input has none, and
refuses what can be no id; `encode` turns columns of one kind into int32 codes that are equal exactly
where the ids are, whatever their dtypes. Ids are never cast to another kind and never lose digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from .errors import IdTypeError, examples
from .grouping import at
from .threads import each

# Integer ids whose values span at most this many numbers (or four times the rows) are their own codes.
DIRECT_SPAN = 2**20

# Strings of a column from which both halves are encoded at once.
HALVED_ROWS = 2**17


@dataclass(frozen=True)
class Ids:
    """One id column without labels' pandas dtype.

    `values` is an int64, uint64, datetime64 or object array, or a pyarrow ChunkedArray of strings or
    bytes; with `dictionary` it holds positions in that column. `null` marks nulls, None if there are none.
    """

    where: str
    kind: str
    values: Any
    null: np.ndarray | None = None
    dictionary: Ids | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: np.ndarray) -> Ids:
        null = None if self.null is None else self.null[rows]
        taken = _take(self.values, rows) if isinstance(self.values, pa.ChunkedArray) else self.values[rows]
        return Ids(self.where, self.kind, taken, null, self.dictionary)

    def changes(self, part: slice) -> np.ndarray:
        """Bool array, one less than the rows of `part`: a row has another id than the one before it. No nulls."""
        if isinstance(self.values, pa.ChunkedArray):
            values = self.values[part]
            n = len(values)
            return np.asarray(pc.not_equal(values.slice(1), values.slice(0, n - 1)), dtype=bool)
        values = self.values[part]
        return np.asarray(values[1:] != values[:-1], dtype=bool)

    def show(self, rows: np.ndarray) -> list[Any]:
        """Ids at a few rows as Python objects, for messages."""
        some = self.take(np.asarray(rows, dtype=np.int64))
        if some.dictionary is not None:
            return some.dictionary.show(some.values)
        return list(some.values.to_pylist() if isinstance(some.values, pa.ChunkedArray) else some.values.tolist())


def _take(array: pa.ChunkedArray, rows: np.ndarray) -> pa.ChunkedArray:
    """Rows of an array. Arrow copies all chunks of strings into one first, which ascending rows do not need."""
    if not (rows[1:] >= rows[:-1]).all():
        return array.take(pa.array(rows))
    start = np.cumsum([0, *map(len, array.chunks)])
    edges = pairwise(np.searchsorted(rows, start).tolist())
    parts = [
        chunk.take(pa.array(rows[a:z] - first))
        for chunk, first, (a, z) in zip(array.chunks, start[:-1], edges, strict=True)
        if a < z
    ]
    return pa.chunked_array(parts, array.type)


def read_ids(series: pd.Series, where: str) -> Ids:
    """Check one id column and bring it into the form of `Ids`."""
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = read_ids(pd.Series(series.cat.categories), where)
        return _dictionary_ids(where, series.cat.codes.to_numpy(), categories)
    if pd.api.types.is_bool_dtype(dtype):
        raise IdTypeError(f"{where} is bool; ids are integers, strings, dates or other hashable labels, never bool")
    if pd.api.types.is_integer_dtype(dtype):
        return _integer_ids(series, where)
    if pd.api.types.is_float_dtype(dtype):
        return _float_ids(series, where)
    if isinstance(dtype, pd.StringDtype):
        return _arrow_ids(series, where)
    if isinstance(dtype, pd.ArrowDtype):
        kind = dtype.pyarrow_dtype
        if pa.types.is_dictionary(kind):
            array = _to_arrow(series).unify_dictionaries().combine_chunks()
            categories = read_ids(pd.Series(array.dictionary, dtype=pd.ArrowDtype(kind.value_type)), where)
            positions = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
            return _dictionary_ids(where, positions, categories)
        if (
            pa.types.is_string(kind)
            or pa.types.is_large_string(kind)
            or pa.types.is_binary(kind)
            or pa.types.is_large_binary(kind)
        ):
            return _arrow_ids(series, where)
        if pa.types.is_timestamp(kind):
            return read_ids(_to_arrow(series).to_pandas(), where)
    if isinstance(dtype, pd.DatetimeTZDtype):
        naive = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return Ids(where, "datetime with time zone", naive.to_numpy(), _nulls(series))
    if pd.api.types.is_datetime64_dtype(dtype):
        return Ids(where, "datetime", series.to_numpy(), _nulls(series))
    return _object_ids(series.astype(object), where)


def read_labels(series: pd.Series, where: str) -> Ids:
    """A column whose values only tell rows apart, and so may be of any kind: also bools and fractions."""
    try:
        return read_ids(series, where)
    except IdTypeError:
        codes, labels = pd.factorize(series)
        return _dictionary_ids(where, codes, Ids(where, "label", np.asarray(labels, dtype=object)))


def _nulls(series: pd.Series) -> np.ndarray | None:
    null = series.isna().to_numpy(dtype=bool)
    return null if null.any() else None


def _dictionary_ids(where: str, positions: np.ndarray, categories: Ids) -> Ids:
    null = positions < 0
    if categories.null is not None:
        null |= categories.null[positions]
    return Ids(where, categories.kind, positions, null if null.any() else None, categories)


def _integer_ids(series: pd.Series, where: str) -> Ids:
    null = None if isinstance(series.dtype, np.dtype) else _nulls(series)
    unsigned = series.dtype == np.uint64 or str(series.dtype) in ("UInt64", "uint64[pyarrow]")
    fill: dict[str, Any] = {} if null is None else {"na_value": 0}
    values = series.to_numpy(dtype=np.uint64 if unsigned else np.int64, **fill)
    if unsigned and (not len(values) or values.max() <= np.iinfo(np.int64).max):
        values = values.astype(np.int64)
    return Ids(where, "integer", values, null)


def _float_ids(series: pd.Series, where: str) -> Ids:
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    null = np.isnan(values)
    whole = null | ((np.abs(values) < 2.0**53) & (np.floor(values) == values))
    if not whole.all():
        raise IdTypeError(
            f"{where} is {series.dtype} and {np.count_nonzero(~whole):,} ids are not whole numbers below 2**53 "
            f"({examples(values[~whole])}); ids that went through float may have lost digits: "
            "read them as integers or strings"
        )
    integers = np.where(null, 0.0, values).astype(np.int64) if null.any() else values.astype(np.int64)
    kind = "empty" if null.all() else "integer"
    return Ids(where, kind, integers, null if null.any() else None)


def _to_arrow(series: pd.Series) -> Any:
    array = pa.array(series.array, from_pandas=True)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _arrow_ids(series: pd.Series, where: str) -> Ids:
    array = _to_arrow(series)
    text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    array = array.cast(pa.large_string() if text else pa.large_binary())
    null = array.is_null().to_numpy(zero_copy_only=False).astype(bool) if array.null_count else None
    return Ids(where, "string" if text else "bytes", array, null)


def _object_ids(series: pd.Series, where: str) -> Ids:
    """Ids that are Python objects: by type, and of runs of equal ones only the first."""
    values = series.to_numpy()
    heads = _object_heads(values)
    if 2 * len(heads) > len(values):
        return _distinct_object_ids(series, where)
    labels = _distinct_object_ids(series.iloc[heads], where)
    position = np.repeat(np.arange(len(heads), dtype=np.int32), np.diff(np.append(heads, len(values))))
    return Ids(where, labels.kind, position, None if labels.null is None else labels.null[position], labels)


def _object_heads(values: np.ndarray) -> np.ndarray:
    try:
        change = np.asarray(values[1:] != values[:-1], dtype=bool)
    except (TypeError, ValueError):  # comparing pd.NA, or arrays, gives no bool
        return np.arange(len(values))
    return np.flatnonzero(np.append(True, change)) if len(values) else np.arange(0)


def _distinct_object_ids(series: pd.Series, where: str) -> Ids:
    inferred = pd.api.types.infer_dtype(series, skipna=True)
    if inferred == "string":
        try:
            array = pa.chunked_array([pa.array(series.to_numpy(), type=pa.large_string(), from_pandas=True)])
        except UnicodeEncodeError:  # lone surrogates have no UTF-8 form
            return Ids(where, "string", series.to_numpy(), _nulls(series))
        return Ids(where, "string", array, _nulls(series))
    if inferred == "boolean":
        raise IdTypeError(f"{where} holds bool objects; ids are never bool")
    null = _nulls(series)
    present = series.to_numpy() if null is None else series.to_numpy()[~null]
    if not len(present):
        return Ids(where, "empty", np.zeros(len(series), np.int64), null)
    if inferred in ("integer", "floating", "mixed-integer-float", "datetime", "datetime64"):
        try:
            if inferred.startswith("datetime"):
                exact = pd.to_datetime(pd.Series(present))
            else:
                exact = pd.Series(present).astype(np.int64 if inferred == "integer" else np.float64)
        except (OverflowError, ValueError):  # ids beyond int64; dates out of bounds or of several time zones
            return Ids(where, "integer" if inferred == "integer" else "datetime object", series.to_numpy(), null)
        read = read_ids(exact, where)
        if null is None:
            return read
        values = np.zeros(len(series), read.values.dtype)
        values[~null] = read.values
        return Ids(where, read.kind, values, null)
    kinds = set(map(type, present))
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise IdTypeError(f"{where} mixes ids of several types: {names}; convert the column to one type")
    kind = kinds.pop()
    if kind.__hash__ is None:
        raise IdTypeError(f"{where} holds {kind.__name__} objects, which cannot be ids; expected hashable labels")
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return Ids(where, name, series.to_numpy(), null)


# ---------------------------------------------------------------------------------------------- codes


@dataclass(frozen=True)
class Coded:
    """Codes of the rows of one column, made part by part when asked for: a whole array of them costs more to write
    than to compute.

    The code of a row is values[row] - `low`, or table[values[row] - `low`] where there is a `table`.
    """

    values: np.ndarray
    low: int = 0
    table: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        codes = at(self.values, rows)
        if self.low:
            out = np.empty(len(codes), np.int32)
            codes = np.subtract(codes, codes.dtype.type(self.low), out=out, casting="unsafe")
        return codes.astype(np.int32, copy=False) if self.table is None else self.table.take(codes)

    def mapped(self, table: np.ndarray) -> Coded:
        """The codes table[code]."""
        return Coded(self.values, self.low, table if self.table is None else table.take(self.table))

    def all(self) -> np.ndarray:
        return self[:]


@dataclass
class Codes:
    """Ids of several columns as int32 codes below `n`, equal where the ids are equal, -1 for null.

    `labels` (sorted where `ordered`) are the distinct ids by code, unless a code is an id less the smallest id.
    """

    columns: list[Coded]
    n: int
    labels: Any = None
    ordered: bool = True
    _rank: np.ndarray | None = field(default=None, repr=False)

    @property
    def codes(self) -> list[np.ndarray]:
        """The codes of each column, all of them."""
        return [column.all() for column in self.columns]

    def rank(self) -> np.ndarray | None:
        """Position of each code in the order of the ids' values; None where that is the code itself."""
        if self.ordered:
            return None
        if self._rank is None:
            self._rank = _value_rank(self.labels)
        return self._rank


def _value_rank(labels: Any) -> np.ndarray:
    rank = np.empty(len(labels), np.int32)
    if isinstance(labels, pa.Array | pa.ChunkedArray):
        # Arrow compares UTF-8 bytes, which is the order of code points.
        order = pc.sort_indices(labels).to_numpy()
    elif labels.dtype.kind in "iuM":
        order = np.argsort(labels, kind="stable")
    else:
        try:
            order = np.array(sorted(range(len(labels)), key=labels.__getitem__), dtype=np.int64)
        except TypeError:  # labels without an order of their own, such as enums
            order = np.array(sorted(range(len(labels)), key=lambda i: repr(labels[i])), dtype=np.int64)
    rank[order] = np.arange(len(labels), dtype=np.int32)
    return rank


def check_kinds(columns: Sequence[Ids]) -> None:
    """Raise IdTypeError if ids of two columns can never be equal."""
    known = [ids for ids in columns if ids.kind != "empty" and len(ids)]
    for ids in known[1:]:
        if ids.kind != known[0].kind:
            first = known[0]
            raise IdTypeError(
                f"{first.where} holds {first.kind} ids ({_sample(first)}) and {ids.where} {ids.kind} ids "
                f"({_sample(ids)}); they can never match. Convert one of them, e.g. {_cast_hint(first, ids)}"
            )


def _sample(ids: Ids) -> str:
    rows = np.arange(min(len(ids), 2)) if ids.null is None else np.flatnonzero(~ids.null)[:2]
    return ", ".join(repr(value) for value in ids.show(rows))


def _cast_hint(first: Ids, second: Ids) -> str:
    text, other = (first, second) if first.kind == "string" else (second, first)
    return f"{other.where}.astype(str)" if text.kind == "string" else f"both with .astype(str) on {other.where}"


def encode(columns: Sequence[Ids]) -> Codes:
    """Code several id columns of one kind together.

    Small integer ranges are addressed directly (code = id - smallest id), strings by the dictionary of
    each column and then of the dictionaries, everything else by one hash table.
    """
    check_kinds(columns)
    leaves = [ids.dictionary if ids.dictionary is not None else ids for ids in columns]
    coded = _encode_leaves([leaf for leaf in leaves if leaf.kind != "empty"])
    rest = iter(coded.columns)
    result = []
    for ids, leaf in zip(columns, leaves, strict=True):
        column = Coded(np.full(len(leaf), -1, np.int32)) if leaf.kind == "empty" else next(rest)
        if ids.dictionary is not None:
            # Position -1, a null, reads the last entry.
            column = Coded(ids.values, table=np.append(column.all(), np.int32(-1)))
        if ids.null is not None:
            codes = column.all()
            codes[ids.null] = -1
            column = Coded(codes)
        result.append(column)
    coded.columns = result
    return coded


def _encode_leaves(leaves: list[Ids]) -> Codes:
    if not leaves:
        return Codes([], 0)
    arrays = [leaf.values for leaf in leaves]
    if all(isinstance(array, pa.ChunkedArray) for array in arrays):
        return _encode_arrow(arrays)
    if any(isinstance(array, pa.ChunkedArray) or array.dtype.kind == "O" for array in arrays):
        return _encode_hashed([np.asarray(array, dtype=object) for array in arrays])
    if any(array.dtype.kind == "M" for array in arrays):
        together = np.concatenate(arrays)  # brings all to the finest unit
        sizes = np.cumsum([len(array) for array in arrays])[:-1]
        arrays = np.split(together.view(np.int64), sizes)
    if len({array.dtype for array in arrays}) > 1:  # int64 beside uint64 with values beyond int64
        smallest = min(array.min() for array in arrays if len(array))
        arrays = [array.astype(object if smallest < 0 else np.uint64) for array in arrays]
        if smallest < 0:
            return _encode_hashed(arrays)
    return encode_integers(arrays)


def encode_integers(arrays: list[np.ndarray]) -> Codes:
    """Code int64 or uint64 arrays together, by direct addressing where their range is small."""
    filled = [array for array in arrays if len(array)]
    if not filled:
        return Codes([Coded(np.empty(0, np.int32)) for _ in arrays], 0)
    low, high = int(min(array.min() for array in filled)), int(max(array.max() for array in filled))
    span = high - low + 1
    if span <= min(max(DIRECT_SPAN, 4 * sum(map(len, arrays))), 2**31 - 1):
        return Codes([Coded(array, low) for array in arrays], span)
    return _encode_hashed(arrays)


def _encode_hashed(arrays: list[np.ndarray]) -> Codes:
    codes, labels = pd.factorize(np.concatenate(arrays))
    sizes = np.cumsum([len(array) for array in arrays])[:-1]
    return Codes([Coded(part) for part in np.split(codes.astype(np.int32), sizes)], len(labels), labels, ordered=False)


def _encode_arrow(arrays: list[pa.ChunkedArray]) -> Codes:
    """Code strings by a dictionary of each column (or half of one), and these by a dictionary of them all."""
    found = [_positions(array) for array in arrays]
    dictionaries = [dictionary for _, own in found for dictionary in own]
    if not any(map(len, dictionaries)):  # which Arrow 15 cannot encode
        columns = [Coded(np.full(len(array), -1, np.int32)) for array in arrays]
        return Codes(columns, 0, pa.array([], arrays[0].type), ordered=False)
    merged = pa.chunked_array(dictionaries).dictionary_encode().unify_dictionaries().combine_chunks()
    codes, columns = merged.indices.to_numpy(zero_copy_only=False).astype(np.int32), []
    for positions, own in found:
        length = sum(map(len, own))
        columns.append(Coded(positions, table=np.append(codes[:length], np.int32(-1))))  # position -1: the last entry
        codes = codes[length:]
    return Codes(columns, len(merged.dictionary), merged.dictionary, ordered=False)


def _positions(array: pa.ChunkedArray) -> tuple[np.ndarray, list[pa.Array]]:
    """Position of each string (-1 for null) in the dictionaries, one after the other, and these.

    Two halves of a long column take two threads, and have a dictionary each.
    """
    middle = len(array) // 2 if len(array) >= HALVED_ROWS else len(array)
    parts = [part for part in (array[:middle], array[middle:]) if len(part)]
    positions, dictionaries, row, above = np.empty(len(array), np.int32), [], 0, 0
    for encoded in each(lambda part: part.dictionary_encode(), parts):
        for chunk in encoded.chunks:
            indices = chunk.indices.fill_null(-1 - above).to_numpy()
            np.add(indices, above, out=positions[row : row + len(chunk)])
            row += len(chunk)
        dictionaries.append(encoded.chunk(0).dictionary)  # that of all its chunks
        above += len(dictionaries[-1])
    return positions, dictionaries


def encode_keys(tables: Sequence[Sequence[Ids]]) -> tuple[list[Coded], int]:
    """Code the keys, of one or more columns, of several tables together, below the returned number."""
    coded = [encode(list(columns)) for columns in zip(*tables, strict=True)]
    columns, n = coded[0].columns, coded[0].n
    for more in coded[1:]:
        joint = encode_integers(
            [one.all().astype(np.int64) * more.n + two.all() for one, two in zip(columns, more.columns, strict=True)]
        )
        columns, n = joint.columns, joint.n
    return columns, max(n, 1)
