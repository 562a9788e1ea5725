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
from typing import Any, NamedTuple

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
    for number, column in enumerate(columns):
        first = 0
        for chunk in filter(len, column.chunks):
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
