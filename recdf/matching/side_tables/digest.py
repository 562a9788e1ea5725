"""A digest of each side table, so that two results with equal `spec` are known to come from the
same tables.

Contract: equal values give an equal digest, whatever their width, their encoding, or the library
that holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def _add_values(total: Any, series: Series) -> None:
    try:
        array = pa.array(series.array, from_pandas=True)
    except (
        pa.ArrowException,
        TypeError,
        ValueError,
        OverflowError,
    ):  # Arrow has no type for these values
        total.update(repr(series.tolist()).encode("utf-8", "backslashreplace"))
        return
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks != 1 else array.chunk(0)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    plain = {
        pa.large_string(): (pa.types.is_string, pa.types.is_large_string),
        pa.int8(): (pa.types.is_boolean,),
        pa.int64(): (pa.types.is_signed_integer,),
        pa.float64(): (pa.types.is_floating,),
    }
    kind = next((one for one, of in plain.items() if any(is_(array.type) for is_ in of)), None)
    if kind is None:  # rare kinds are compared as text
        total.update(repr(array.to_pylist()).encode("utf-8", "backslashreplace"))
        return
    array = array.cast(kind)
    total.update(np.packbits(np.asarray(array.is_null(), bool)))
    if kind == pa.large_string():
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


def hashes(labels: Any) -> np.ndarray:
    """Return a hash of each label of an array, equal for equal labels, whatever their dtype."""
    if pd.api.types.is_numeric_dtype(labels.dtype):
        values = np.asarray(labels, np.float64)
    else:  # files hold the bytes of UUIDs
        plain = (one.bytes if isinstance(one, UUID) else one for one in labels.astype(object))
        texts = (str(one).encode("utf-8", "surrogatepass") for one in plain)
        values = np.fromiter(texts, object, len(labels))
    return pd.util.hash_array(values, categorize=False)  # mostly, no label is there twice
