"""Codes of ids: small integers that are equal exactly where the ids are equal, whatever their
dtypes.

Contract: `encode` turns columns of one kind into int32 codes, which are computed for a slice of
rows when it is read. Ids are never cast to another kind and never lose digits.

`group_codes` codes the rows of a frame by the values of some columns: 0..n−1 in the order of the
labels. Null labels and labels that cannot be compared raise.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError, IdTypeError, NullKeyError, examples
from .digits import read_digits
from .frames import column
from .ids import IdColumn, check_labels, read_ids
from .machine import each, n_threads, sizes
from .sorting import order_of_codes

# Units of datetimes, each a thousand times finer than the one before it.
TIME_UNITS = ["s", "ms", "us", "ns"]

# A column of strings is encoded in pieces of at least this many rows at the same time. Every piece
# has its own dictionary, and one thread then joins the dictionaries, so there are few pieces.
MOST_PIECES = 4


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """Codes of the rows of one column, computed for a slice when it is read, which saves memory and
    costs little time.

    The code of a row is values[row] - `low`, or table[values[row] - `low`] where there is a
    `table`.
    """

    values: np.ndarray
    low: int = 0
    table: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> np.ndarray:
        codes = self.values[rows]
        if codes.dtype == np.int16:  # a difference may not fit into it
            codes = codes.astype(np.int32)
        if self.low:
            out = np.empty(len(codes), np.int32)
            codes = np.subtract(codes, codes.dtype.type(self.low), out=out, casting="unsafe")
        return codes.astype(np.int32, copy=False) if self.table is None else self.table.take(codes)

    def mapped(self, table: np.ndarray) -> Coded:
        """Replace each code by table[code]."""
        return Coded(self.values, self.low, table if self.table is None else table.take(self.table))

    def all(self) -> np.ndarray:
        return self[:]


class CodedParts(Coded):
    """Codes of one column that consists of consecutive parts."""

    parts: list[Coded]
    ends: list[int]

    def __init__(self, parts: Sequence[Coded]) -> None:
        self.__dict__.update(
            parts=list(parts), ends=np.cumsum([len(part) for part in parts]).tolist()
        )

    def __len__(self) -> int:
        return self.ends[-1]

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(len(self))
        first, last = bisect_right(self.ends, start), bisect_left(self.ends, stop)
        found = []
        for part, end in zip(
            self.parts[first : last + 1], self.ends[first : last + 1], strict=True
        ):
            above = end - len(part)
            found.append(part[max(start - above, 0) : stop - above])
        return (
            np.concatenate(found)
            if len(found) > 1
            else self.parts[0][:0]
            if not found
            else found[0]
        )

    def mapped(self, table: np.ndarray) -> CodedParts:
        return CodedParts([part.mapped(table) for part in self.parts])


@dataclass
class IdCodes:
    """Ids of several columns as int32 codes below `n`, which are equal where the ids are equal; -1
    stands for null.

    `labels` are the distinct ids by code, sorted where `ordered`. There are none where a code is id
    - smallest id.
    """

    columns: list[Coded]
    n: int
    labels: Any = None
    ordered: bool = True
    _rank: np.ndarray | None = field(default=None, repr=False)

    @property
    def codes(self) -> list[np.ndarray]:
        """All codes of each column, as arrays."""
        return [column.all() for column in self.columns]

    def rank(self) -> np.ndarray | None:
        """Position of each code in the order of the ids' values; None where that is the code
        itself."""
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
        except TypeError:  # labels that cannot be ordered, such as enums
            order = np.array(
                sorted(range(len(labels)), key=lambda i: repr(labels[i])), dtype=np.int64
            )
    rank[order] = np.arange(len(labels), dtype=np.int32)
    return rank


def check_kinds(columns: Sequence[IdColumn]) -> None:
    """Raise IdTypeError if ids of two columns can never be equal."""
    known = [ids for ids in columns if ids.kind != "empty" and len(ids)]
    for ids in known[1:]:
        if ids.kind != known[0].kind:
            first = known[0]
            raise IdTypeError(
                f"{first.where} holds {first.kind} ids ({_sample(first)}) and {ids.where} "
                f"{ids.kind} ids ({_sample(ids)}); they can never match. Convert one of them, e.g. "
                f"{_cast_hint(first, ids)}",
                column=ids.where,
            )


def _sample(ids: IdColumn) -> str:
    rows = np.arange(min(len(ids), 2)) if ids.null is None else np.flatnonzero(~ids.null)[:2]
    return ", ".join(repr(value) for value in ids.show(rows))


def _cast_hint(first: IdColumn, second: IdColumn) -> str:
    text, other = (first, second) if first.kind == "string" else (second, first)
    if other.kind == "tuple" or text.kind == "tuple":
        return (
            "the tuples to what they have of the other; pairs of items with numbers are a mapping: "
            "{item: number}"
        )
    if text.kind == "string":
        return f"⟦{other.where}.astype(str)⟧"
    if {first.kind, second.kind} == {"decimal.Decimal", "integer"}:
        whole = first if first.kind == "decimal.Decimal" else second
        return f"⟦{whole.where}.astype('int64')⟧ if all are whole numbers"
    return f"⟦both {other.where}.astype(str)⟧"


def encode(columns: Sequence[IdColumn]) -> IdCodes:
    """Code several id columns of one kind together.

    Integers of a small range are their own codes (code = id - smallest id). Strings are coded by a
    dictionary of each column, and then by a dictionary of these dictionaries. Everything else is
    coded by one hash table.
    """
    check_kinds(columns)
    leaves = [ids.dictionary if ids.dictionary is not None else ids for ids in columns]
    empty = [leaf.kind == "empty" or not len(leaf) for leaf in leaves]
    coded = _encode_leaves([leaf for leaf, none in zip(leaves, empty, strict=True) if not none])
    rest = iter(coded.columns)
    result = []
    for ids, leaf, none in zip(columns, leaves, empty, strict=True):
        column = Coded(np.full(len(leaf), -1, np.int32)) if none else next(rest)
        if ids.dictionary is not None:
            # A null has position -1, which reads the last entry of the table.
            column = Coded(ids.values, table=np.append(column.all(), np.int32(-1)))
        if ids.null is not None:
            codes = column.all()
            codes[ids.null] = -1
            column = Coded(codes)
        result.append(column)
    coded.columns = result
    return coded


def _encode_leaves(leaves: list[IdColumn]) -> IdCodes:
    if not leaves:
        return IdCodes([], 0)
    arrays = [leaf.values for leaf in leaves]
    if all(isinstance(array, pa.ChunkedArray) for array in arrays):
        numbers = read_digits(arrays)
        if numbers is not None:
            return encode_integers(numbers)
        text = all(
            pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
            for array in arrays
        )
        wide = (
            pa.large_string() if text else pa.large_binary()
        )  # strings that UTF-8 cannot encode are bytes
        return _encode_arrow([array.cast(wide) for array in arrays])
    if any(isinstance(array, pa.ChunkedArray) or array.dtype.kind == "O" for array in arrays):
        return _encode_hashed([np.asarray(array, dtype=object) for array in arrays])
    if any(array.dtype.kind == "M" for array in arrays):
        arrays = _instants(arrays)
        if any(array.dtype.kind == "O" for array in arrays):
            return _encode_hashed(arrays)
    if (
        len({array.dtype.kind for array in arrays}) > 1
    ):  # integers beside uint64 with values beyond int64
        smallest = min(array.min() for array in arrays if len(array))
        arrays = [array.astype(object if smallest < 0 else np.uint64) for array in arrays]
        if smallest < 0:
            return _encode_hashed(arrays)
    return encode_integers(arrays)


def _instants(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return datetimes as numbers in their finest unit: int64, or Python integers where one would
    not fit."""
    finest = max((np.datetime_data(array.dtype)[0] for array in arrays), key=TIME_UNITS.index)
    steps = [
        10 ** (3 * (TIME_UNITS.index(finest) - TIME_UNITS.index(np.datetime_data(array.dtype)[0])))
        for array in arrays
    ]
    numbers = [array.view(np.int64) for array in arrays]
    there = [
        number[number != np.iinfo(np.int64).min] for number in numbers
    ]  # the smallest integer is NaT
    limit = np.iinfo(np.int64).max
    fits = all(
        not len(some) or max(abs(int(some.min())), abs(int(some.max()))) <= limit // step
        for some, step in zip(there, steps, strict=True)
    )
    if fits:
        nat = np.iinfo(np.int64).min
        return [
            number if step == 1 else np.where(number == nat, nat, number * np.int64(step))
            for number, step in zip(numbers, steps, strict=True)
        ]
    return [number.astype(object) * step for number, step in zip(numbers, steps, strict=True)]


def encode_integers(arrays: list[np.ndarray]) -> IdCodes:
    """Code integer arrays together, which are all signed or all unsigned.

    Where their range is small, the code is value - smallest value.
    """
    filled = [array for array in arrays if len(array)]
    if not filled:
        return IdCodes([Coded(np.empty(0, np.int32)) for _ in arrays], 0)
    low, high = int(min(array.min() for array in filled)), int(max(array.max() for array in filled))
    span = high - low + 1
    if span <= min(max(sizes().direct_span, 4 * sum(map(len, arrays))), 2**31 - 1):
        return IdCodes([Coded(array, low) for array in arrays], span)
    return _encode_hashed(arrays)


def _encode_hashed(arrays: list[np.ndarray]) -> IdCodes:
    codes, labels = pd.factorize(np.concatenate(arrays))
    ends = np.cumsum([len(array) for array in arrays])[:-1]
    return IdCodes(
        [Coded(part) for part in np.split(codes.astype(np.int32), ends)],
        len(labels),
        labels,
        ordered=False,
    )


def _encode_arrow(arrays: list[pa.ChunkedArray]) -> IdCodes:
    """Code strings by a dictionary of each column (or piece of it), and then by a dictionary of the
    dictionaries."""
    found = [_dictionary_positions(array) for array in arrays]
    dictionaries = [own for pieces in found for _, own in pieces]
    if not any(map(len, dictionaries)):  # Arrow 15 cannot encode empty dictionaries
        columns = [Coded(np.full(len(array), -1, np.int32)) for array in arrays]
        return IdCodes(columns, 0, pa.array([], arrays[0].type), ordered=False)
    merged = (
        pa.chunked_array(dictionaries).dictionary_encode().unify_dictionaries().combine_chunks()
    )
    codes, columns = merged.indices.to_numpy(zero_copy_only=False).astype(np.int32), []
    for pieces in found:
        parts = []
        for positions, own in pieces:
            table, codes = (
                np.append(codes[: len(own)], np.int32(-1)),
                codes[len(own) :],
            )  # -1 reads the last
            parts += [Coded(some, table=table) for some in positions]
        columns.append(CodedParts(parts))
    return IdCodes(columns, len(merged.dictionary), merged.dictionary, ordered=False)


def _dictionary_positions(array: pa.ChunkedArray) -> list[tuple[list[np.ndarray], pa.Array]]:
    """Return the positions of strings (-1 for null) in a dictionary, and the dictionary, per piece
    of the column.

    A long column is split into pieces, which several threads encode. Positions stay in Arrow's
    chunks unless there are very many chunks.
    """
    n_pieces = max(1, min(n_threads(), MOST_PIECES, len(array) // sizes().coded_rows))
    edges = np.linspace(0, len(array), n_pieces + 1).astype(np.int64).tolist()
    pieces = []
    for encoded in each(
        lambda part: part.dictionary_encode(), [array[a:z] for a, z in pairwise(edges)]
    ):
        if not len(encoded):
            continue
        indices = pa.chunked_array([chunk.indices for chunk in encoded.chunks])
        if indices.null_count:  # `fill_null` would copy other arrays too
            indices = indices.fill_null(-1)
        if indices.num_chunks > sizes().kept_chunks:
            indices = pa.chunked_array([indices.combine_chunks()])
        pieces.append(
            ([chunk.to_numpy() for chunk in indices.chunks], encoded.chunk(0).dictionary)
        )  # all share it
    return pieces


def encode_keys(tables: Sequence[Sequence[IdColumn]]) -> tuple[list[Coded], int]:
    """Code the keys of several tables together, where a key may have several columns; also return
    how many there are.

    Codes are below the number that is returned; some numbers below it may be no code.
    """
    coded = [encode(list(columns)) for columns in zip(*tables, strict=True)]
    columns, n = coded[0].columns, coded[0].n
    for more in coded[1:]:
        joint = encode_integers(
            [
                one.all().astype(np.int64) * more.n + two.all()
                for one, two in zip(columns, more.columns, strict=True)
            ]
        )
        columns, n = joint.columns, joint.n
    return columns, max(n, 1)


Codes = npt.NDArray[np.int64]

# So many rows are looked at together.
COMPARED_ROWS = 2**18


class CodeColumn(Protocol):
    """Codes that are read by slices of rows: an array, or a `codes.Coded`, which computes them
    then."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice, /) -> np.ndarray: ...


def group_codes(frame: pd.DataFrame, role: str, names: Sequence[str]) -> tuple[Codes, pd.DataFrame]:
    """Code the rows by groups; returns the codes and a frame of the groups' labels, sorted by
    value."""
    codes, n = np.zeros(len(frame), np.int64), min(len(frame), 1)
    for name in names:
        values = column(frame, name, role)
        null = values.isna()
        if null.any():
            raise NullKeyError(
                f"{role}[{name!r}] is null in {int(null.sum()):,} of {len(frame):,} rows"
            )
        check_labels(values, f"{role}[{name!r}]")
        try:
            own, n_own = _ranked_values(values)
        except TypeError:
            raise DataError(
                f"{role}[{name!r}] mixes types that cannot be compared: {examples(values)}"
            ) from None
        if n <= 1:
            codes, n = own, n_own
        else:
            (codes,), n = close_ranks([codes * n_own + own], n * n_own)
    labels = frame[list(names)].iloc[first_rows(codes, n)].reset_index(drop=True)
    for name in names:
        if isinstance(labels[name].dtype, pd.CategoricalDtype):
            labels[name] = labels[name].astype(labels[name].cat.categories.dtype)
    return codes, labels


def _ranked_values(values: pd.Series) -> tuple[Codes, int]:
    """Code values 0..n−1 in their order, and return n; strings are read by several threads."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        own, lookup = values.cat.codes.to_numpy(), np.zeros(len(values.cat.categories), np.int64)
        used = pd.unique(own)
        lookup[used], found = pd.factorize(values.cat.categories[used], sort=True)
        return lookup.take(own), len(found)
    if len(values) < sizes().coded_rows or getattr(values.dtype, "storage", "") != "pyarrow":
        codes, found = pd.factorize(values, sort=True)
        return codes, len(found)
    array = pa.array(values.array)
    array = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    size = sizes().coded_rows
    parts = each(
        lambda at: array.slice(at, size).combine_chunks().dictionary_encode(),
        range(0, len(array), size),
    )
    parts = [part for one in parts for part in getattr(one, "chunks", [one])]
    labels = [part.dictionary.to_numpy(zero_copy_only=False) for part in parts]
    ranks, distinct = pd.factorize(np.concatenate(labels), sort=True)
    starts = np.cumsum([0, *(len(part.dictionary) for part in parts)])
    pairs = zip(starts, parts, strict=False)
    return np.concatenate(
        [ranks[start:].take(part.indices.to_numpy()) for start, part in pairs]
    ), len(distinct)


def close_ranks(codes: list[Codes], span: int) -> tuple[list[Codes], int]:
    """Renumber codes below `span` to 0..n−1 without changing their order."""
    rows = sum(map(len, codes))
    if len(codes) == 1 and strictly_ascends(codes[0]):
        return [np.arange(rows)], rows
    if span <= 8 * rows + 1024:
        present = np.zeros(span, bool)
        for own in codes:
            present[own] = True
        renumbered = np.cumsum(present) - 1
        return [renumbered[own] for own in codes], int(present.sum())
    present, together = np.unique(np.concatenate(codes), return_inverse=True)
    return np.split(together.astype(np.int64), np.cumsum([len(own) for own in codes])[:-1]), len(
        present
    )


def strictly_ascends(codes: Codes) -> bool:
    """Whether every code is larger than the one before it."""
    parts = (codes[at : at + COMPARED_ROWS + 1] for at in range(0, len(codes), COMPARED_ROWS))
    return all(bool((part[1:] > part[:-1]).all()) for part in parts)


def known_ids(frame: pd.DataFrame, role: str, name: str, hint: str = "") -> IdColumn:
    """Return a column of ids, of which none may be null."""
    ids = read_ids(column(frame, name, role), f"{role}[{name!r}]")
    if ids.null is not None:
        raise NullKeyError(
            f"{ids.where} is null in {np.count_nonzero(ids.null):,} of {len(frame):,} rows{hint}"
        )
    return ids


def rank_keys(keys: Iterable[Sequence[IdColumn]]) -> tuple[list[Codes], int]:
    """Code the columns of a key, each over several tables, 0..n−1 in the order of the ids; also
    return n."""
    codes: list[Codes] = []
    n = 1
    for ids in keys:
        coded = encode(ids)
        rank = coded.rank()
        own = [one if rank is None else rank[one] for one in coded.codes]
        joint = (
            [above * coded.n + one for above, one in zip(codes, own, strict=True)] if codes else own
        )
        codes, n = close_ranks(joint, n * coded.n)
    return codes, n


def first_rows(codes: CodeColumn, n: int) -> Codes:
    """Row of the first appearance of every code below n; -1 for a code that no row has."""
    first = np.full(n, -1, np.int64)
    for above in range(0, len(codes), COMPARED_ROWS):
        part = codes[above : above + COMPARED_ROWS]
        new = np.flatnonzero(first.take(part) < 0)
        first[part[new][::-1]] = new[::-1] + above  # numpy keeps the last assignment: the first row
        if n <= COMPARED_ROWS and (first >= 0).all():
            break
    return first


def split(codes: Codes, n: int) -> list[Codes]:
    """Row positions of every group, in row order."""
    return np.split(order_of_codes(codes, n), np.cumsum(np.bincount(codes, minlength=n))[:-1])
