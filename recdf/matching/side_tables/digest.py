"""A digest of each side table, so that two results with equal `spec` are known to come from the
same tables.

Contract: equal rows give an equal digest, whatever their order, their width, their encoding, or the
library that holds them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, TypedDict
from uuid import UUID

import numpy as np
import pyarrow as pa
from pandas import Series

from ...inputs.codes import GOLDEN, mix_texts, mix_words
from ...inputs.machine import each

DIGEST_BYTES = 8

# So many rows are read at a time, which stay in the processor's cache.
READ = 2**14


class DescribedSide(TypedDict):
    """A side table as `spec` records it. A similarity that is a function has no rows, and its name
    is its digest."""

    columns: list[str]
    rows: int | None
    digest: str


def described(columns: Sequence[Series], ordered: bool = False) -> DescribedSide:
    """Describe the columns of a side table by their names, their number of rows, and a digest of
    their rows; of `ordered` ones, their order counts."""
    names = [str(series.name) for series in columns]
    rows = len(columns[0]) if columns else 0
    order = [Series(np.arange(rows))] if ordered else []
    total = int(_hashed_rows([*columns, *order], rows).sum())  # modulo 2**64
    text = repr((names, rows, total)).encode("utf-8", "backslashreplace")
    return {
        "columns": names,
        "rows": rows,
        "digest": blake2b(text, digest_size=DIGEST_BYTES).hexdigest(),
    }


def hashes(labels: Series) -> np.ndarray:
    """Return a hash of each label of a column, equal for equal labels, whatever their dtype."""
    return _hashed_rows([labels], len(labels))


def _hashed_rows(columns: Sequence[Series], n: int) -> np.ndarray:
    """Return a hash of each row."""
    arrays = [plain_values(series.array) for series in columns]

    def block(first: int) -> np.ndarray:
        hashed = np.full(min(READ, n - first), GOLDEN)
        for array in arrays:
            mix_words(hashed, _bits_of(array[first : first + READ]))
        mix_words(hashed, GOLDEN)  # without it, few rows could add up to the sum of others
        return hashed

    return np.concatenate([np.zeros(0, np.uint64), *each(block, range(0, n, READ))])


def _bits_of(array: Any) -> np.ndarray:
    """Return 64 bits of each value: those of a number, or a hash of a text."""
    if pa.types.is_large_string(array.type):
        words = np.zeros(len(array), np.uint64)
        mix_texts(words, array, sys.maxsize)
    else:
        numbers = (array.fill_null(0) if array.null_count else array).to_numpy()
        words = numbers.view(np.uint64)
        if numbers.dtype.kind == "f":  # whole numbers have the bits of integers
            whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**63)
            integers = np.where(whole, numbers, 0).astype(np.int64).view(np.uint64)
            words = np.where(whole, integers, words)
    return np.where(array.is_null(), GOLDEN, words) if array.null_count else words


def plain_values(values: Any) -> Any:
    """Return values as an array of Arrow: integers and times (microseconds, in UTC) as int64 or
    uint64, other numbers as float64, and everything else as text; those of a dictionary by 64 bits
    of each label."""
    try:
        array = pa.array(values, from_pandas=True)
    except (
        pa.ArrowException,
        TypeError,
        ValueError,
        OverflowError,
    ):  # Arrow has no type for these values
        return _written_out(values)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    kind = array.type
    if pa.types.is_dictionary(kind):
        return pa.array(_bits_of(plain_values(array.dictionary))).take(array.indices)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array.cast(pa.large_string())
    if pa.types.is_timestamp(kind):
        return array.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    if pa.types.is_signed_integer(kind) or pa.types.is_boolean(kind):
        return array.cast(pa.int64())
    if pa.types.is_unsigned_integer(kind):
        return array.cast(pa.uint64())
    if pa.types.is_float16(kind):  # which older versions of Arrow do not convert
        return pa.array(np.asarray(array, np.float64), from_pandas=True)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return array.cast(pa.float64(), safe=False)
    return _written_out(array.to_pylist())


def _written_out(values: Iterable[Any]) -> Any:
    plain = (one.bytes if isinstance(one, UUID) else one for one in values)  # as files hold them
    texts = (repr(one).encode("utf-8", "backslashreplace").decode() for one in plain)
    return pa.array(texts, pa.large_string())
