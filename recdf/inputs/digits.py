"""Strings such as "u000123" as the numbers that their digits say, without looking any string up.

Contract: `read_digits` takes columns of strings that are all of one length and differ in at most
eight places, and there only in the low halves of bytes, as decimal digits do. The numbers it
returns are equal exactly where the strings are equal, and stand in the same order. For any other
strings it returns None, mostly after a look at the first rows.
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
MOST_PLACES = 8  # so that numbers of any digits fit into 64 bits
LOW_HALF = 15


class _Strings(NamedTuple):
    """Consecutive strings of one length: their place in a column, and an array of each of their
    characters in turn."""

    column: int
    first: int
    length: int
    edges: np.ndarray
    data: Any

    def characters(self) -> np.ndarray:
        """Return the bytes of the strings, shape (length, strings)."""
        n = len(self.edges) - 1
        text = np.frombuffer(self.data, np.uint8, n * self.length, int(self.edges[0]))
        return text.reshape(n, self.length).T

    def least_and_most(self) -> np.ndarray | None:
        """Return the smallest and the largest byte at each place; None for strings of several
        lengths."""
        if (np.diff(self.edges) != self.length).any():
            return None
        return np.array([(one.min(), one.max()) for one in self.characters()])


def read_digits(columns: Sequence[pa.ChunkedArray]) -> list[np.ndarray] | None:
    """Return the numbers of the strings of several columns as integers, or None if the strings are
    not of this form."""
    if _digits(_strings([column[: sizes().first_rows] for column in columns])) is None:
        return None
    pieces = _strings(columns)
    form = _digits(pieces)
    if form is None:
        return None
    places, radix = form
    kind = np.int32 if radix == 10 else np.int64  # ten to the eighth power fits into 32 bits
    found = [np.zeros(len(column), kind) for column in columns]

    def read(piece: _Strings) -> None:
        characters = piece.characters()
        numbers = found[piece.column][piece.first : piece.first + characters.shape[1]]
        for place in places:
            numbers *= radix
            numbers += characters[place] & LOW_HALF

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


def _digits(pieces: list[_Strings]) -> tuple[list[int], int] | None:
    """Return the places in which the strings differ, and how many values a digit has; None for
    other forms."""
    n_rows = sum(len(piece.edges) - 1 for piece in pieces)
    found = [one for one in each(_Strings.least_and_most, pieces, n_rows) if one is not None]
    if not found or len(found) < len(pieces):
        return None
    least, most = np.min(found, axis=0)[:, 0], np.max(found, axis=0)[:, 1]
    places = np.flatnonzero(least < most)
    if len(places) > MOST_PLACES or (least | LOW_HALF != most | LOW_HALF)[places].any():
        return None
    return places.tolist(), 10 if ((most & LOW_HALF)[places] < 10).all() else 16
