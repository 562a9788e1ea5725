"""Strings such as "u000123" as the numbers that their digits say, without looking any string up.

Contract: `read_digits` takes columns of strings that are all of one length, and differ only in
their last eight bytes and there only in the low halves of bytes, as decimal digits do. The numbers
it returns are equal exactly where the strings are equal, and stand in the same order. For any other
strings it returns None, mostly after a look at the first rows.

The last eight bytes of a string are read as one integer, whose lowest byte is the first character,
and are turned into a number in three steps. Each step joins neighbours, here for "00000123":

    bytes              0   0   0   0   0   1   2   3        '0' becomes 0
    pairs             00      00      01      23            first x 10 + second
    fours            0000            0123                   first x 100 + second
    eight        00000123                                   first x 10,000 + second
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .machine import each, sizes

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


@dataclass(frozen=True)
class _Strings:
    """Some consecutive strings of `length` bytes each: their bytes without gaps, and their place in
    the column."""

    data: np.ndarray
    length: int
    n: int
    column: int
    first: int

    def words(self, start: int, at: int = 0) -> np.ndarray:
        """Eight bytes of each string of the block that begins at row `start`, from byte `at` on;
        zeros for no bytes."""
        n, length = min(sizes().digit_rows, self.n - start), self.length
        begin = start * length + at
        n_bytes = (n - 1) * length + 8
        data = self.data[begin : begin + n_bytes]
        if len(data) < n_bytes:  # the last strings of a buffer, whose words reach beyond its end
            data = np.concatenate([data, np.zeros(n_bytes - len(data), np.uint8)])
        return np.ndarray((n,), "<u8", buffer=data, strides=(length,))

    def tails(self, start: int) -> np.ndarray:
        """The last eight bytes of each string; where there are fewer, the first ones are zeros."""
        if self.length >= 8:
            return self.words(start, self.length - 8)
        return self.words(start) << np.uint64(8 * (8 - self.length))

    @property
    def starts(self) -> range:
        return range(0, self.n, sizes().digit_rows)


@dataclass(frozen=True)
class _Seen:
    """Bits that are set in all last bytes, bits that are set in some, and digits above 9, by
    byte."""

    all: np.uint64
    some: np.uint64
    above: np.uint64

    def __add__(self, other: _Seen) -> _Seen:
        return _Seen(self.all & other.all, self.some | other.some, self.above | other.above)


def read_digits(columns: Sequence[pa.ChunkedArray]) -> list[np.ndarray] | None:
    """Return the numbers of the strings of several columns as integers, or None if the strings are
    not of this form."""
    first = _strings([column[: sizes().first_rows] for column in columns])
    if first is None or _form(first) is None:
        return None
    pieces = _strings(columns)
    form = None if pieces is None else _form(pieces)
    if pieces is None or form is None:
        return None
    base, radix = form
    kind = np.int32 if radix == 10 else np.int64  # ten to the eighth power fits into 32 bits
    found = [np.empty(len(column), kind) for column in columns]

    def read(piece: _Strings) -> None:
        for start in piece.starts:
            numbers = piece.tails(start) - base
            for width in (8, 16, 32):
                numbers *= np.uint64(1 + (radix ** (width // 8) << width))
                numbers >>= np.uint64(width)
                numbers &= np.uint64(MASKS[width])
            place = piece.first + start
            found[piece.column][place : place + len(numbers)] = numbers

    each(read, pieces, sum(map(len, columns)))
    return found


def _strings(columns: Sequence[pa.ChunkedArray]) -> list[_Strings] | None:
    """Return the strings of all columns in pieces; None if some are null or of another length than
    the others."""
    chunks, length = [], None
    for number, column in enumerate(columns):
        first = 0
        for chunk in column.chunks:
            if not len(chunk):
                continue
            _, offsets, data = chunk.buffers()
            if chunk.null_count or data is None or chunk.type not in OFFSET_DTYPES:
                return None
            edges = np.frombuffer(offsets, OFFSET_DTYPES[chunk.type])[
                chunk.offset : chunk.offset + len(chunk) + 1
            ]
            here = int(edges[1] - edges[0])
            if not here or here != (length or here) or edges[-1] - edges[0] != here * len(chunk):
                return None
            length = here
            for start in range(0, len(chunk), sizes().digit_piece_rows):
                chunks.append(
                    (
                        number,
                        first + start,
                        edges[start : start + sizes().digit_piece_rows + 1],
                        data,
                    )
                )
            first += len(chunk)

    def piece(given: tuple[int, int, np.ndarray, Any]) -> _Strings | None:
        column, first, edges, data = given
        if (np.diff(edges) != length).any():
            return None
        n_bytes = min(int(edges[-1]) + 8, data.size) - int(edges[0])
        return _Strings(
            np.frombuffer(data, np.uint8, n_bytes, int(edges[0])),
            length or 0,
            len(edges) - 1,
            column,
            first,
        )

    found = each(piece, chunks, sum(map(len, columns)))
    pieces = [one for one in found if one is not None]
    return pieces if len(pieces) == len(found) else None


def _form(pieces: list[_Strings]) -> tuple[np.uint64, int] | None:
    """Return what is the same in the last bytes of all strings, and how many values a digit has;
    None for other forms.

    A byte that differs keeps its high half in what is the same: '0' to '9' are all 0x30 and a
    digit.
    """
    if not pieces:
        return None
    length = pieces[0].length
    heads = [(at, LOW_BYTES[min(8, length - 8 - at)]) for at in range(0, length - 8, 8)]
    constant = [pieces[0].words(0, at)[0] & mask for at, mask in heads]

    def seen(piece: _Strings) -> _Seen | None:
        total = _Seen(~np.uint64(0), np.uint64(0), np.uint64(0))
        for start in piece.starts:
            for (at, mask), same in zip(heads, constant, strict=True):
                if ((piece.words(start, at) & mask) != same).any():
                    return None
            tails = piece.tails(start)
            above = ((tails & LOW_HALVES) + SIXES) & HIGH_HALVES
            total += _Seen(
                np.bitwise_and.reduce(tails),
                np.bitwise_or.reduce(tails),
                np.bitwise_or.reduce(above),
            )
        return total

    found = [one for one in each(seen, pieces, sum(one.n for one in pieces)) if one is not None]
    if len(found) < len(pieces):
        return None
    total = found[0]
    for one in found[1:]:
        total += one
    differs = total.all ^ total.some
    if differs & HIGH_HALVES:
        return None
    bytes_that_differ = np.frombuffer(differs.tobytes(), np.uint8) > 0
    high = np.where(bytes_that_differ, np.uint8(0xF0), np.uint8(0xFF)).view(np.uint64)[0]
    above = np.frombuffer(total.above.tobytes(), np.uint8)[bytes_that_differ].any()
    return total.all & high, 16 if above else 10
