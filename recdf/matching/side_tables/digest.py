"""A digest of each side table, so that two results with equal `spec` are known to come from the
same tables.

Contract: equal values give an equal digest, whatever their width, their encoding, or the library
that holds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, TypedDict
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas import Series

from ...inputs.machine import each

DIGEST_BYTES = 8

# A digest of very many numbers is that of weighted sums of so many neighbours, which takes a third
# of the time.
MANY_ROWS, SUMMED = 10**6, 2**12

# So many values are read at a time, which stay in the processor's cache.
READ = 2**16

# Kinds of numbers that int64 may hold, or not.
_PERHAPS_WHOLE = pa.types.is_unsigned_integer, pa.types.is_floating, pa.types.is_decimal


class DescribedSide(TypedDict):
    """A side table as `spec` records it. A similarity that is a function has no rows, and its name
    is its digest."""

    columns: list[str]
    rows: int | None
    digest: str


def described(columns: Sequence[Series]) -> DescribedSide:
    """Describe the columns of a side table by their names, their number of rows, and a digest of
    their values."""
    total = blake2b(digest_size=DIGEST_BYTES)
    for series in columns:
        total.update(str(series.name).encode())
        _add_values(total, series)
    return {
        "columns": [str(series.name) for series in columns],
        "rows": len(columns[0]) if columns else 0,
        "digest": total.hexdigest(),
    }


def plain_values(series: Series) -> Any:
    """Return a column as an array of Arrow whose type depends on its values alone, and not on what
    held them: whole numbers and times (microseconds, in UTC) are int64, other numbers float64, and
    everything else is text."""
    try:
        array = pa.array(series.array, from_pandas=True)
    except (
        pa.ArrowException,
        TypeError,
        ValueError,
        OverflowError,
    ):  # Arrow has no type for these values
        return _written_out(series)
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks != 1 else array.chunk(0)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array.cast(pa.large_string())
    if pa.types.is_timestamp(kind):
        return array.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    if pa.types.is_signed_integer(kind) or pa.types.is_boolean(kind):
        return array.cast(pa.int64())
    if not any(is_(kind) for is_ in _PERHAPS_WHOLE):
        return _written_out(array.to_pylist())
    if pa.types.is_float16(kind):  # which older versions of Arrow do not convert
        array = pa.array(np.asarray(array, np.float64), from_pandas=True)
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:  # fractions, and what int64 does not hold
        return array.cast(pa.float64(), safe=False)


def _written_out(values: Iterable[Any]) -> Any:
    plain = (one.bytes if isinstance(one, UUID) else one for one in values)  # as files hold them
    texts = (repr(one).encode("utf-8", "backslashreplace").decode() for one in plain)
    return pa.array(texts, pa.large_string())


def _add_values(total: Any, series: Series) -> None:
    array = plain_values(series)
    total.update(np.packbits(np.asarray(array.is_null(), bool)))
    if pa.types.is_large_string(array.type):
        array = pa.concat_arrays([array.fill_null("")])
        _, edges, data = array.buffers()
        ends = np.frombuffer(edges, np.int64)[array.offset : array.offset + len(array) + 1]
        total.update(np.diff(ends))
        if data is not None and len(ends):
            total.update(memoryview(data)[int(ends[0]) : int(ends[-1])])
        return
    array = array.fill_null(0) if array.null_count else array
    values = np.ascontiguousarray(array.to_numpy(zero_copy_only=False))
    if len(values) >= MANY_ROWS and values.itemsize == 8:
        rows, values = np.split(values.view(np.uint64), [len(values) // SUMMED * SUMMED])
        weight = np.random.RandomState(0).randint(2**63, size=SUMMED, dtype=np.uint64) | np.uint64(
            1
        )

        def sums(first: int) -> np.ndarray:
            bits = rows[first : first + READ].reshape(-1, SUMMED)
            # A change of the highest bits alone would be alike for all weights.
            # As @, but faster.
            return np.einsum("ij,j->i", bits ^ bits >> np.uint64(32), weight)

        for found in each(sums, range(0, len(rows), READ)):
            total.update(found)
    total.update(values)


def hashes(labels: Series) -> np.ndarray:
    """Return a hash of each label of a column, equal for equal labels, whatever their dtype."""
    array = plain_values(labels)
    if pa.types.is_large_string(array.type):
        values = np.fromiter((one.encode() for one in array.to_pylist()), object, len(array))
    else:
        values = np.asarray(array, np.float64)
    return pd.util.hash_array(values, categorize=False)  # mostly, no label is there twice
