"""Codes of ids: small integers that are equal exactly where the ids are equal, whatever their
dtypes.

Contract: `encode` turns columns of one kind into int32 codes, which are computed for a slice of
rows when it is read. Ids are never cast to another kind and never lose digits.

`group_codes` codes the rows of a frame by the values of some columns: 0..n−1 in the order of the
labels. Null labels and labels that cannot be compared raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray
from pandas import DataFrame
from pyarrow import ChunkedArray

from ..errors import ColumnError, DataError, IdTypeError, NullKeyError, examples
from .frames import column
from .ids import TEXTS, IdColumn, not_apart, read_by, read_ids
from .machine import each, n_threads, sizes
from .sorting import ascends, cut_like, flags_at, order_of_codes

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

    values: ndarray
    low: int = 0
    table: ndarray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> ndarray:
        codes = self.values[rows]
        if codes.dtype == np.int16:  # a difference may not fit into it
            codes = codes.astype(np.int32)
        if self.low:
            out = np.empty(len(codes), np.int32)
            codes = np.subtract(codes, codes.dtype.type(self.low), out=out, casting="unsafe")
        return codes.astype(np.int32, copy=False) if self.table is None else self.table.take(codes)

    def mapped(self, table: ndarray) -> Coded:
        """Replace each code by table[code]."""
        return Coded(self.values, self.low, table if self.table is None else table.take(self.table))

    def all(self) -> ndarray:
        return self[:]


@dataclass
class IdCodes:
    """Ids of several columns as int32 codes below `n`, which are equal where the ids are equal; -1
    stands for null.

    `labels` are the distinct ids by code. There are none where a code is id - smallest id.
    """

    columns: list[Coded]
    n: int
    labels: Any = None

    @property
    def codes(self) -> list[ndarray]:
        """All codes of each column, as arrays."""
        return [column.all() for column in self.columns]

    def rank(self) -> ndarray | None:
        """Position of each code in the order of the ids' values; None where that is the code
        itself."""
        return None if self.labels is None else self._rank

    # It is stored when it is complete, since other threads may read it at any time.
    @cached_property
    def _rank(self) -> ndarray:
        if isinstance(self.labels, pa.Array):
            # Arrow compares UTF-8 bytes, which is the order of code points.
            order = pc.sort_indices(self.labels).to_numpy()
        else:
            try:
                order = np.argsort(self.labels, kind="stable")
            except TypeError:  # labels that cannot be ordered, such as enums
                order = np.argsort(list(map(repr, self.labels)), kind="stable")
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        return rank


# Files hold UUIDs as bytes, and frames as objects.
UUIDS = {"bytes", "uuid.UUID"}


def check_kinds(columns: Sequence[IdColumn]) -> None:
    """Raise IdTypeError if ids of two columns can never be equal."""
    known = [ids for ids in columns if ids.filled]
    two = next(((known[0], ids) for ids in known[1:] if ids.kind != known[0].kind), None)
    if two is None or {ids.kind for ids in known} == UUIDS:
        return
    text = next((ids for ids in two if ids.kind == "string"), two[1])
    other = two[two[0] is text]
    cast = f"⟦both {other.where}.astype(str)⟧"
    if "tuple" in (text.kind, other.kind):
        cast = (
            "the tuples to what they have of the other; pairs of items with numbers are a mapping: "
            "{item: number}"
        )
    elif text.kind == "string":
        cast = f"⟦{other.where}.astype(str)⟧"
    elif {text.kind, other.kind} == {"decimal.Decimal", "integer"}:
        whole = text if text.kind == "decimal.Decimal" else other
        cast = f"⟦{whole.where}.astype('int64')⟧ if all are whole numbers"
    said = [f"{ids.kind} ids ({', '.join(map(repr, ids.two()))})" for ids in two]
    raise IdTypeError(
        f"{two[0].where} holds {said[0]} and {two[1].where} {said[1]}; they can never match. "
        f"Convert one of them, e.g. {cast}",
        column=two[1].where,
    )


def encode(columns: Sequence[IdColumn]) -> IdCodes:
    """Code several id columns of one kind together.

    Integers of a small range are their own codes (code = id - smallest id). Strings are coded by a
    dictionary of each column, and then by a dictionary of these dictionaries. Everything else is
    coded by one hash table.
    """
    check_kinds(columns)
    leaves = [ids if ids.dictionary is None else ids.dictionary for ids in columns]
    filled = [leaf for leaf in leaves if leaf.filled]
    arrays = [leaf.values for leaf in filled]
    if {leaf.kind for leaf in filled} == UUIDS:
        arrays = [
            np.array(
                [getattr(one, "bytes", one) for one in leaf.show(np.arange(len(leaf)))], object
            )
            for leaf in filled
        ]
    try:
        coded = _encode_values(arrays) if filled else IdCodes([], 0)
    except TypeError as error:  # tuples of lists
        raise not_apart(filled[0].where, error) from error
    rest = iter(coded.columns)
    result = []
    for ids, leaf in zip(columns, leaves, strict=True):
        column = next(rest) if leaf.filled else Coded(np.full(len(leaf), -1, np.int32))
        if ids.dictionary is not None:
            # A null has position -1, which reads the last entry of the table.
            column = Coded(ids.values, table=np.append(column.all(), np.int32(-1)))
        if ids.null is not None:
            column = Coded(np.where(ids.null, np.int32(-1), column.all()))
        result.append(column)
    coded.columns = result
    return coded


def _encode_values(arrays: list[Any]) -> IdCodes:
    if all(isinstance(array, ChunkedArray) for array in arrays):
        numbers = read_digits(arrays)
        return _encode_arrow(arrays) if numbers is None else encode_integers(numbers)
    if any(isinstance(array, ChunkedArray) for array in arrays):
        return _encode_hashed([np.asarray(array, dtype=object) for array in arrays])
    if arrays[0].dtype.kind == "M":  # datetimes as numbers in their finest unit
        units: list[Any] = [np.datetime_data(array.dtype)[0] for array in arrays]
        finest: Any = np.datetime_data(np.result_type(*arrays))[0]
        try:
            times = [pd.DatetimeIndex(one).as_unit(finest) for one in arrays]
            arrays = [one.to_numpy().view(np.int64) for one in times]
        except pd.errors.OutOfBoundsDatetime:  # Python integers, where one would not fit
            one_unit = np.timedelta64(1, finest)
            steps = [int(np.timedelta64(1, unit) / one_unit) for unit in units]
            pairs = zip(arrays, steps, strict=True)
            arrays = [one.view(np.int64).astype(object) * step for one, step in pairs]
    kinds = {array.dtype.kind for array in arrays}
    if kinds == {"i", "u"}:  # integers beside uint64 with values beyond int64
        smallest = min(array.min() for array in arrays)
        arrays = [array.astype(object if smallest < 0 else np.uint64) for array in arrays]
    hashed = any(array.dtype.kind == "O" for array in arrays)
    return _encode_hashed(arrays) if hashed else encode_integers(arrays)


def encode_integers(arrays: list[ndarray]) -> IdCodes:
    """Code integer arrays together, which are all signed or all unsigned.

    Where their range is small, the code is value - smallest value.
    """
    filled = [array for array in arrays if len(array)]
    low = int(min((array.min() for array in filled), default=0))
    span = int(max((array.max() for array in filled), default=-1)) - low + 1
    if span <= min(max(sizes().direct_span, 4 * sum(map(len, arrays))), 2**31 - 1):
        return IdCodes([Coded(array, low) for array in arrays], span)
    return _encode_hashed(arrays)


def _encode_hashed(arrays: list[ndarray]) -> IdCodes:
    codes, labels = pd.factorize(np.concatenate(arrays))
    parts = cut_like(codes.astype(np.int32), arrays)
    return IdCodes([Coded(part) for part in parts], len(labels), labels)


def _encode_arrow(arrays: list[ChunkedArray]) -> IdCodes:
    """Code strings by a dictionary of each piece of the columns, and then by a dictionary of the
    dictionaries. Several threads encode the pieces."""
    kind = pa.large_string() if all(one.type in TEXTS for one in arrays) else pa.large_binary()
    whole = pa.chunked_array([one for array in arrays for one in array.cast(kind).chunks], kind)
    n_pieces = max(1, min(n_threads(), MOST_PIECES, len(whole) // sizes().coded_rows))
    edges = np.linspace(0, len(whole), n_pieces + 1).astype(np.int64).tolist()
    pieces = [whole[a:z] for a, z in pairwise(edges)]
    encoded = each(ChunkedArray.dictionary_encode, pieces, len(whole))
    # All chunks of a piece share its dictionary.
    merged = pa.chunked_array([one.combine_chunks() for one in encoded]).unify_dictionaries()
    codes = [one.indices.fill_null(-1).to_numpy() for one in merged.chunks]
    parts = cut_like(np.concatenate(codes), arrays)
    return IdCodes(
        [*map(Coded, parts)], len(merged.chunk(0).dictionary), merged.chunk(0).dictionary
    )


def encode_keys(tables: Sequence[Sequence[IdColumn]]) -> tuple[list[Coded], int]:
    """Code the keys of several tables together, where a key may have several columns; also return
    how many there are.

    Codes are below the number that is returned; some numbers below it may be no code.
    """
    first, *others = map(encode, zip(*tables, strict=True))
    for more in others:
        both = zip(first.columns, more.columns, strict=True)
        first = encode_integers([a.all().astype(np.int64) * more.n + b.all() for a, b in both])
    return first.columns, max(first.n, 1)


Codes = npt.NDArray[np.int64]

# So many rows are looked at together.
COMPARED_ROWS = 2**18


class CodeColumn(Protocol):
    """Codes that are read by slices of rows: an array, or a `codes.Coded`, which computes them
    then."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice, /) -> ndarray: ...


def group_codes(frame: DataFrame, role: str, names: Sequence[str]) -> tuple[Codes, DataFrame]:
    """Code the rows by groups; returns the codes and a frame of the groups' labels, sorted by
    value."""
    columns = []
    for name in names:
        where = f"{role}[{name!r}]"
        if list(names).count(name) > 1:
            raise ColumnError(f"{where} is named twice; expected each column once", column=where)
        (ids,) = read_by([column(frame, name, role)], where)
        refuse_nulls(ids)
        if ids.kind == "label" and ids.dictionary is not None:
            labels = ids.dictionary.values
            if pd.api.types.infer_dtype(labels) in ("mixed", "mixed-integer"):
                raise DataError(f"{where} mixes types that cannot be compared: {examples(labels)}")
        columns.append([ids])
    if columns:
        (codes,), n = rank_keys(columns)
    else:
        codes = np.zeros(len(frame), np.int64)
        n = min(len(frame), 1)
    found = frame[list(names)].iloc[first_rows(codes, n)].reset_index(drop=True)
    for name in names:
        if isinstance(found[name].dtype, pd.CategoricalDtype):
            found[name] = found[name].astype(found[name].cat.categories.dtype)
    return codes, found


def known_ids(frame: DataFrame, role: str, name: str, hint: str = "") -> IdColumn:
    """Return a column of ids, of which none may be null."""
    return refuse_nulls(read_ids(column(frame, name, role), f"{role}[{name!r}]"), hint)


def refuse_nulls(ids: IdColumn, hint: str = "") -> IdColumn:
    """Return ids, of which none may be null."""
    if ids.null is not None:
        n = int(np.count_nonzero(ids.null))
        raise NullKeyError(
            f"{ids.where} is null in {n:,} of {len(ids):,} rows{hint}", column=ids.where, count=n
        )
    return ids


def rank_keys(keys: Iterable[Sequence[IdColumn]]) -> tuple[list[Codes], int]:
    """Code the columns of a key, each over several tables, 0..n−1 in the order of the ids; also
    return n."""
    codes, n = np.zeros(0, np.int64), 1
    columns: list[Coded] = []
    for ids in keys:
        coded = encode(ids)
        rank = coded.rank()
        columns = [one if rank is None else one.mapped(rank) for one in coded.columns]
        every = [one.all() for one in columns]
        own = np.concatenate(every) if len(every) > 1 else every[0]
        if n > 1:
            own = codes * coded.n + own
        span = n * coded.n
        # Renumber the codes below `span` without changing their order.
        if len(own) <= span and ascends(own, strictly=True):
            codes, n = np.arange(len(own)), len(own)
        elif span <= 8 * len(own) + 1024:
            # The first rows of few codes are soon found.
            there = first_rows(own, span) >= 0 if 64 * span < len(own) else flags_at(own, span)
            place = np.cumsum(there) - 1
            n = int(place[-1]) + 1
            codes = own.astype(np.int64) if n == span else place.take(own)
        else:
            found, codes = np.unique(own, return_inverse=True)
            n = len(found)
    return cut_like(codes, columns), n


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


# ------------------------------------------------------------------------------------------
# Strings such as "u000123" as the numbers that their digits say, without looking any string up.
#
# Contract: `read_digits` takes columns of strings that are all of one length, and differ only in
# decimal digits among their last eight bytes. The numbers it returns are equal exactly where the
# strings are equal, and stand in the same order. For any other strings it returns None, mostly
# after a look at the first rows.
#
# The last eight bytes of a string are read as one integer, whose lowest byte is the first
# character, and are turned into a number in three steps. Each step joins neighbours, here for
# "00000123":
#
#     bytes              0   0   0   0   0   1   2   3        '0' becomes 0
#     pairs             00      00      01      23            first x 10 + second
#     fours            0000            0123                   first x 100 + second
#     eight        00000123                                   first x 10,000 + second

HIGH_HALVES = np.uint64(0xF0F0F0F0F0F0F0F0)
SIXES = np.uint64(
    0x0606060606060606
)  # added to a digit, they carry into the high half if it is above 9
# Multiplying by it spreads neighbouring integers over all 64 bits: 2**64 over the golden ratio.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LOW_BYTES = np.array([2 ** (8 * n) - 1 for n in range(9)], dtype=np.uint64)

# After the step that joins groups of this many bits, every second group holds a number.
MASKS = {8: 0x00FF00FF00FF00FF, 16: 0x0000FFFF0000FFFF, 32: 0x00000000FFFFFFFF}


class _Strings(NamedTuple):
    """Consecutive strings of one length in a chunk of a column, and where their numbers go."""

    edges: ndarray
    data: Any
    numbers: ndarray

    def tails(self) -> ndarray:
        """The last eight bytes of each string as one integer; where there are fewer, the first ones
        are zeros."""
        n = len(self.numbers)
        length = int(self.edges[1] - self.edges[0])
        begin = int(self.edges[0]) + max(length - 8, 0)
        n_bytes = (n - 1) * length + 8
        data = np.frombuffer(self.data, np.uint8)[begin : begin + n_bytes]
        if len(data) < n_bytes:  # the last word reaches beyond the end of the buffer
            data = np.append(data, np.zeros(n_bytes - len(data), np.uint8))
        words: ndarray = ndarray((n,), "<u8", data, strides=(length,))
        return words << np.uint64(8 * max(8 - length, 0))

    def form(self) -> tuple[Any, ...] | None:
        """Return the length, the bytes before the last eight, and the bits that are set in all last
        bytes and in some; None for strings that differ in length or in the bytes before."""
        edges = self.edges
        length = int(edges[1] - edges[0])
        if not length or (np.diff(edges) != length).any():
            return None
        text = np.frombuffer(self.data, np.uint8)[edges[0] : edges[-1]]
        before = text.reshape(-1, length)[:, :-8]
        if (before != before[0]).any():
            return None
        tails = self.tails()
        bits = np.bitwise_and.reduce(tails), np.bitwise_or.reduce(tails)
        return length, before[0].tobytes(), *bits


def read_digits(columns: Sequence[ChunkedArray]) -> list[ndarray] | None:
    """Return the numbers of the strings of several columns as integers, or None if the strings are
    not of this form."""
    few = sizes().first_rows
    first = _digits([column[:few] for column in columns])
    return first if first is None or max(map(len, columns)) <= few else _digits(columns)


def _digits(columns: Sequence[ChunkedArray]) -> list[ndarray] | None:
    found = [np.empty(len(column), np.int32) for column in columns]
    pieces: list[_Strings] = []  # each fits into the cache of a processor
    step = sizes().digit_rows
    for strings, numbers in zip(columns, found, strict=True):
        for chunk in filter(len, strings.chunks):
            if chunk.null_count:
                return None
            edges, data = edges_and_bytes(chunk)
            own, numbers = numbers[: len(chunk)], numbers[len(chunk) :]
            pieces += [
                _Strings(edges[at : at + step + 1], data, own[at : at + step])
                for at in range(0, len(chunk), step)
            ]
    n_rows = sum(map(len, columns))
    forms = [one for one in each(_Strings.form, pieces, n_rows) if one is not None]
    if not forms or len(forms) < len(pieces) or len({one[:2] for one in forms}) > 1:
        return None
    same = np.bitwise_and.reduce([one[2] for one in forms])
    differs = same ^ np.bitwise_or.reduce([one[3] for one in forms])
    if differs & HIGH_HALVES:
        return None
    # A byte that differs keeps its high half in what is the same: '0' to '9' are all 0x30 and a
    # digit.
    kept = np.where(np.array([differs]).view(np.uint8) > 0, np.uint8(0xF0), np.uint8(0xFF))
    base = same & kept.view(np.uint64)[0]

    def read(piece: _Strings) -> bool:
        """Read the numbers of a piece; tell whether all of them have decimal digits."""
        numbers = piece.tails() - base
        if ((numbers + SIXES) & HIGH_HALVES).any():
            return False
        for width, mask in MASKS.items():
            numbers *= np.uint64(1 + (10 ** (width // 8) << width))
            numbers >>= np.uint64(width)
            numbers &= np.uint64(mask)
        piece.numbers[:] = numbers
        return True

    return found if all(each(read, pieces, n_rows)) else None


def edges_and_bytes(strings: pa.Array) -> tuple[ndarray, Any]:
    """Return where the strings of an array begin and end, and the buffer of their bytes."""
    _, offsets, data = strings.buffers()
    edges = np.frombuffer(offsets, np.int64 if "large" in str(strings.type) else np.int32)
    return edges[strings.offset : strings.offset + len(strings) + 1], data


# ------------------------------------------------------------------------------------------
# Hashes of values: numbers and texts are mixed into 64 bits of each row, one column after another.


def mix_words(hashed: ndarray, words: ndarray | np.uint64) -> None:
    """Mix 64 bits of each row into its hash."""
    hashed ^= words
    hashed *= GOLDEN  # carries each bit to higher ones
    hashed ^= hashed >> np.uint64(29)


def mix_texts(hashed: ndarray, texts: pa.Array, most: int) -> None:
    """Mix the length of each text and its first bytes, at `most` so many, into the hash of its
    row."""
    edges, data = edges_and_bytes(texts)
    length = np.diff(edges)
    mix_words(hashed, length.view(np.uint64))
    if not len(length) or not length.any():
        return
    padded = np.zeros(int(edges[-1] - edges[0]) + 8, np.uint8)
    padded[:-8] = np.frombuffer(data, np.uint8)[edges[0] : edges[-1]]
    # A view that reads the eight bytes from each position on as one number. It is read only where a
    # text begins or goes on.
    words: ndarray = ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
    begin = edges[:-1] - edges[0]
    for start in range(0, min(int(length.max()), most), 8):
        more = length > start
        rows: Any = slice(None) if more.all() else np.flatnonzero(more)
        some = hashed[rows]
        mix_words(some, words[begin[rows] + start] & LOW_BYTES[np.minimum(length[rows] - start, 8)])
        hashed[rows] = some
