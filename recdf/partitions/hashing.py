"""The bucket of a row follows from a hash of its list key, so that a bucket holds whole lists.

Contract: `part_of` returns the same bucket for rows with equal keys, whatever the width or the encoding of their types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LOW_BYTES = np.array([2 ** (8 * n) - 1 for n in range(9)], dtype=np.uint64)
HASHED_BYTES = 256  # only the first bytes of a string are hashed, so longer strings may share a hash


def part_of(columns: Sequence[Any], n_parts: int) -> np.ndarray:
    """Return the part of each row (uint16) by a hash of its key, which depends on values and not on types.

    Keys have no nulls. Both frames must send a user to the same part, even if one stores the id as int32 and the other
    as int64, as a dictionary, or as a timestamp of another unit. The hashes of pandas and of Arrow depend on the type
    and may change with versions, so this function has its own. It uses only the high half of the hash: multiplying by a
    constant mixes the high bits best, and to scale them to the number of parts needs no division.
    """
    hashed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        _hash_into(hashed, column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    return ((hashed >> np.uint64(32)) * np.uint64(n_parts) >> np.uint64(32)).astype(np.uint16)


def given_ids(series: pd.Series) -> pa.Array:
    """Return the caller's ids as an array for `part_of`. Unlike those of files, they may be integers beyond 64 bits."""
    try:
        return pa.array(series, from_pandas=True)
    except OverflowError:
        return pa.array((series.astype(object).to_numpy() % 2**64).astype(np.uint64))


def _hash_into(hashed: np.ndarray, column: Any) -> None:
    kind = column.type
    if isinstance(column, pa.ChunkedArray):  # still several chunks, if one cannot hold all strings
        column = pa.concat_arrays(column.chunks)
    if pa.types.is_dictionary(kind):
        return _hash_into(hashed, column.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _hash_into(hashed, column.cast(pa.large_binary()))
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _hash_bytes(hashed, column)
    if pa.types.is_timestamp(kind):  # files may store the same instants in different units
        column = column.cast(pa.timestamp("s", kind.tz), safe=False).cast(pa.int64())
    elif pa.types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None  # rare kinds are not hashed, so all rows go to one part
    values = column.to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):  # floats that are not whole numbers are refused later
        words = values.astype(np.int64, copy=False).view(np.uint64)
    _mix(hashed, words)
    return None


def _mix(hashed: np.ndarray, words: np.ndarray) -> None:
    hashed ^= words
    hashed *= GOLDEN
    hashed ^= hashed >> np.uint64(29)


def _hash_bytes(hashed: np.ndarray, column: Any) -> None:
    """Mix in strings, eight bytes of each at a time."""
    _, offsets, data = column.buffers()
    edges = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    length = np.diff(edges)
    _mix(hashed, length.view(np.uint64))
    if not len(length) or not length.any():
        return
    padded = np.zeros(int(edges[-1] - edges[0]) + 8, np.uint8)
    padded[:-8] = np.frombuffer(data, np.uint8)[edges[0] : edges[-1]]
    # A view that reads the eight bytes from each position on as one number. It is read only where a string begins or
    # goes on.
    words: np.ndarray = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
    begin = edges[:-1] - edges[0]
    for start in range(0, min(int(length.max()), HASHED_BYTES), 8):
        rows = np.flatnonzero(length > start)
        some = hashed[rows]
        _mix(some, words[begin[rows] + start] & LOW_BYTES[np.minimum(length[rows] - start, 8)])
        hashed[rows] = some
