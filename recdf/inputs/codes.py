"""Codes of ids: small integers that are equal exactly where the ids are equal, whatever their
dtypes.

Contract: `encode` turns columns of one kind into int32 codes, which are computed for a slice of
rows when it is read. Ids are never cast to another kind and never lose digits.

`group_codes` codes the rows of a frame by the values of some columns: 0..n−1 in the order of the
labels. Null labels and labels that cannot be compared raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError, IdTypeError, NullKeyError, examples
from .frames import column
from .ids import IdColumn, read_by, read_ids
from .machine import each, n_threads, sizes
from .sorting import order_of_codes

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
    if isinstance(labels, pa.Array | pa.ChunkedArray):
        # Arrow compares UTF-8 bytes, which is the order of code points.
        order = pc.sort_indices(labels).to_numpy()
    else:
        try:
            order = np.argsort(labels, kind="stable")
        except TypeError:  # labels that cannot be ordered, such as enums
            order = np.argsort(list(map(repr, labels)), kind="stable")
    rank = np.empty(len(labels), np.int32)
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
    if any(isinstance(array, pa.ChunkedArray) for array in arrays):
        return _encode_hashed([np.asarray(array, dtype=object) for array in arrays])
    if arrays[0].dtype.kind == "M":
        arrays = _instants(arrays)
    kinds = {array.dtype.kind for array in arrays}
    if kinds == {"i", "u"}:  # integers beside uint64 with values beyond int64
        smallest = min(array.min() for array in arrays)
        arrays = [array.astype(object if smallest < 0 else np.uint64) for array in arrays]
    hashed = any(array.dtype.kind == "O" for array in arrays)
    return _encode_hashed(arrays) if hashed else encode_integers(arrays)


def _instants(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return datetimes as numbers in their finest unit: int64, or Python integers where one would
    not fit."""
    units: list[Any] = [np.datetime_data(array.dtype)[0] for array in arrays]
    finest: Any = np.datetime_data(np.result_type(*arrays))[0]
    try:
        return [pd.DatetimeIndex(one).as_unit(finest).to_numpy().view(np.int64) for one in arrays]
    except pd.errors.OutOfBoundsDatetime:
        steps = [int(np.timedelta64(1, unit) / np.timedelta64(1, finest)) for unit in units]
        return [
            one.view(np.int64).astype(object) * step
            for one, step in zip(arrays, steps, strict=True)
        ]


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
    dictionaries. Several threads encode the pieces of long columns."""
    pieces: list[Any] = []
    piece_of: list[int] = []
    for number, array in enumerate(arrays):
        n_pieces = max(1, min(n_threads(), MOST_PIECES, len(array) // sizes().coded_rows))
        edges = np.linspace(0, len(array), n_pieces + 1).astype(np.int64).tolist()
        pieces += [array[a:z] for a, z in pairwise(edges) if a < z]
        piece_of += [number] * (len(pieces) - len(piece_of))
    encoded = each(lambda piece: piece.dictionary_encode(), pieces, sum(map(len, arrays)))
    dictionaries = [one.chunk(0).dictionary for one in encoded]  # all chunks of a piece share it
    if not any(map(len, dictionaries)):  # Arrow 15 cannot encode empty dictionaries
        columns = [Coded(np.full(len(array), -1, np.int32)) for array in arrays]
        return IdCodes(columns, 0, pa.array([], arrays[0].type), ordered=False)
    merged = (
        pa.chunked_array(dictionaries).dictionary_encode().unify_dictionaries().combine_chunks()
    )
    table = merged.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    table, above = np.append(table, np.int32(-1)), 0  # -1, which stands for null, reads the last
    parts: list[list[np.ndarray]] = [[] for _ in arrays]
    for number, one, own in zip(piece_of, encoded, dictionaries, strict=True):
        positions = pa.chunked_array([chunk.indices for chunk in one.chunks])
        if positions.null_count:  # `fill_null` would copy other arrays too
            positions = positions.fill_null(-1 - above)
        place = positions.to_numpy()
        parts[number].append(place + np.int32(above) if above else place)
        above += len(own)
    columns = [Coded(np.concatenate(own) if len(own) > 1 else own[0], 0, table) for own in parts]
    return IdCodes(columns, len(merged.dictionary), merged.dictionary, ordered=False)


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
    columns = []
    for name in names:
        where = f"{role}[{name!r}]"
        (ids,) = read_by([column(frame, name, role)], where)
        _refuse_nulls(ids)
        if ids.kind == "label" and ids.dictionary is not None:
            kind = pd.api.types.infer_dtype(ids.dictionary.values)
            if kind in ("mixed", "mixed-integer"):
                some = examples(ids.dictionary.values)
                raise DataError(f"{where} mixes types that cannot be compared: {some}")
        columns.append([ids])
    (codes,), n = (
        rank_keys(columns) if columns else ([np.zeros(len(frame), np.int64)], min(len(frame), 1))
    )
    labels = frame[list(names)].iloc[first_rows(codes, n)].reset_index(drop=True)
    for name in names:
        if isinstance(labels[name].dtype, pd.CategoricalDtype):
            labels[name] = labels[name].astype(labels[name].cat.categories.dtype)
    return codes, labels


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
    _refuse_nulls(ids, hint)
    return ids


def _refuse_nulls(ids: IdColumn, hint: str = "") -> None:
    if ids.null is not None:
        n = int(np.count_nonzero(ids.null))
        raise NullKeyError(
            f"{ids.where} is null in {n:,} of {len(ids):,} rows{hint}", column=ids.where, count=n
        )


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


# ------------------------------------------------------------------------------------------
# Strings such as "u000123" as the numbers that their digits say, without looking any string up.
#
# Contract: `read_digits` takes columns of strings that are all of one length, and differ only in
# their last eight bytes and there only in the low halves of bytes, as decimal digits do. The
# numbers it returns are equal exactly where the strings are equal, and stand in the same order. For
# any other strings it returns None, mostly after a look at the first rows.
#
# The last eight bytes of a string are read as one integer, whose lowest byte is the first
# character, and are turned into a number in three steps. Each step joins neighbours, here for
# "00000123":
#
#     bytes              0   0   0   0   0   1   2   3        '0' becomes 0
#     pairs             00      00      01      23            first x 10 + second
#     fours            0000            0123                   first x 100 + second
#     eight        00000123                                   first x 10,000 + second

# The dtype in which strings and bytes of each type say where they begin.
OFFSET_DTYPES: dict[Any, Any] = {
    pa.string(): np.int32,
    pa.binary(): np.int32,
    pa.large_string(): np.int64,
    pa.large_binary(): np.int64,
}
LOW_HALVES = np.uint64(0x0F0F0F0F0F0F0F0F)
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
    """Consecutive strings of one length in a chunk of a column, and the row of the first one."""

    column: int
    first: int
    length: int
    edges: np.ndarray
    data: Any

    def tails(self) -> np.ndarray:
        """The last eight bytes of each string as one integer; where there are fewer, the first ones
        are zeros."""
        n, begin = len(self.edges) - 1, int(self.edges[0]) + max(self.length - 8, 0)
        n_bytes = (n - 1) * self.length + 8
        data = np.frombuffer(self.data, np.uint8)[begin : begin + n_bytes]
        if len(data) < n_bytes:  # the last word reaches beyond the end of the buffer
            data = np.append(data, np.zeros(n_bytes - len(data), np.uint8))
        words: np.ndarray = np.ndarray((n,), "<u8", data, strides=(self.length,))
        return words << np.uint64(8 * max(8 - self.length, 0))

    def form(self) -> tuple[np.ndarray, bytes] | None:
        """Return the bits that are set in all last bytes, in some of them, and beside digits above
        9; and the bytes before. None for strings that differ in length or in the bytes before."""
        edges, length = self.edges, self.length
        if (np.diff(edges) != length).any():
            return None
        text = np.frombuffer(self.data, np.uint8)[edges[0] : edges[-1]]
        before = text.reshape(-1, length)[:, :-8]
        if before.size and (before != before[0]).any():
            return None
        tails = self.tails()
        above = ((tails & LOW_HALVES) + SIXES) & HIGH_HALVES
        some = [np.bitwise_or.reduce(one) for one in (tails, above)]
        return np.array([np.bitwise_and.reduce(tails), *some]), before[0].tobytes()


def read_digits(columns: Sequence[pa.ChunkedArray]) -> list[np.ndarray] | None:
    """Return the numbers of the strings of several columns as integers, or None if the strings are
    not of this form."""
    if _digits(_strings([column[: sizes().first_rows] for column in columns])) is None:
        return None
    pieces = _strings(columns)
    form = _digits(pieces)
    if form is None:
        return None
    base, radix = form
    kind = np.int32 if radix == 10 else np.int64  # ten to the eighth power fits into 32 bits
    found = [np.empty(len(column), kind) for column in columns]

    def read(piece: _Strings) -> None:
        numbers = piece.tails() - base
        for width, mask in MASKS.items():
            numbers *= np.uint64(1 + (radix ** (width // 8) << width))
            numbers >>= np.uint64(width)
            numbers &= np.uint64(mask)
        found[piece.column][piece.first : piece.first + len(numbers)] = numbers

    each(read, pieces, sum(map(len, columns)))
    return found


def _strings(columns: Sequence[pa.ChunkedArray]) -> list[_Strings]:
    """Return the strings of all columns in pieces that a processor's cache holds; none if some
    cannot be of one length."""
    pieces: list[_Strings] = []
    for number, strings in enumerate(columns):
        first = 0
        for chunk in filter(len, strings.chunks):
            _, offsets, data = chunk.buffers()
            if chunk.null_count or data is None or chunk.type not in OFFSET_DTYPES:
                return []
            edges = np.frombuffer(offsets, OFFSET_DTYPES[chunk.type])[chunk.offset :]
            edges, step = edges[: len(chunk) + 1], sizes().digit_rows
            length = pieces[0].length if pieces else int(edges[1] - edges[0])
            if not length or edges[-1] - edges[0] != length * len(chunk):
                return []
            pieces += [
                _Strings(number, first + at, length, edges[at : at + step + 1], data)
                for at in range(0, len(chunk), step)
            ]
            first += len(chunk)
    return pieces


def _digits(pieces: list[_Strings]) -> tuple[np.uint64, int] | None:
    """Return what is the same in the last bytes of all strings, and how many values a digit has;
    None for other forms.

    A byte that differs keeps its high half in what is the same: '0' to '9' are all 0x30 and a
    digit.
    """
    n_rows = sum(len(piece.edges) - 1 for piece in pieces)
    found = [one for one in each(_Strings.form, pieces, n_rows) if one is not None]
    if not found or len(found) < len(pieces) or len({before for _, before in found}) > 1:
        return None
    bits = np.stack([one for one, _ in found])
    same, above = np.bitwise_and.reduce(bits[:, 0]), np.bitwise_or.reduce(bits[:, 2])
    differs = same ^ np.bitwise_or.reduce(bits[:, 1])
    if differs & HIGH_HALVES:
        return None
    differing, above = (np.frombuffer(one.tobytes(), np.uint8) > 0 for one in (differs, above))
    high = np.where(differing, np.uint8(0xF0), np.uint8(0xFF)).view(np.uint64)[0]
    return same & high, 16 if above[differing].any() else 10
