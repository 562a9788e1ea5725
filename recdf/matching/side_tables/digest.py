"""A digest of each side table, so that two results with equal `spec` are known to come from the
same tables.

Contract: equal rows give an equal digest, whatever their order, their width, their encoding, or the
library that holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, TypedDict, TypeVar
from uuid import UUID

import numpy as np
import pyarrow as pa
from pandas import Series

from ...inputs.codes import GOLDEN, LOW_BYTES
from ...inputs.machine import each

OfRows = TypeVar("OfRows")
DIGEST_BYTES = 8

# So many rows are read at a time, which stay in the processor's cache.
READ = 2**14

_HALF = np.uint64(32)


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
    total = sum(_of_blocks([*columns, *order], lambda found: int(found.sum())))
    text = repr((names, rows, total % 2**64)).encode("utf-8", "backslashreplace")
    return {
        "columns": names,
        "rows": rows,
        "digest": blake2b(text, digest_size=DIGEST_BYTES).hexdigest(),
    }


def hashes(labels: Series) -> np.ndarray:
    """Return a hash of each label of a column, equal for equal labels, whatever their dtype."""
    return np.concatenate(_of_blocks([labels], lambda found: found) or [np.zeros(0, np.uint64)])


def _of_blocks(columns: Sequence[Series], made: Callable[[np.ndarray], OfRows]) -> list[OfRows]:
    """Return what is made of the hashes of the rows of each block."""
    bits = [_Bits.of(series.array) for series in columns]

    def block(first: int) -> OfRows:
        found = np.full(1, GOLDEN)
        for one in bits:
            found = _mixed(found, one.hashed(slice(first, first + READ)))
        return made(found)

    return each(block, range(0, len(columns[0]) if columns else 0, READ))


def _mixed(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return numbers whose bits depend on all bits of both."""
    found = one ^ other
    for _ in range(2):  # of one round, sums of few numbers may be alike
        found *= GOLDEN  # carries each bit to higher ones
        found ^= found >> _HALF
    return found


class _Bits(NamedTuple):
    """64 bits of each value: those of a number (`data`), of a text (the bytes of `data` between two
    `edges`), or of a label by its code; `null` marks nulls."""

    data: np.ndarray
    edges: np.ndarray | None = None
    codes: np.ndarray | None = None
    null: np.ndarray | None = None

    @classmethod
    def of(cls, values: Any) -> _Bits:
        array = plain_values(values)
        null = np.asarray(array.is_null(), bool) if array.null_count else None
        if pa.types.is_dictionary(array.type):
            codes = array.indices.fill_null(0).to_numpy()
            table = cls.of(array.dictionary).hashed(slice(None))
            return cls(np.append(table, GOLDEN), codes=codes, null=null)
        if pa.types.is_large_string(array.type):
            array = array.fill_null("")
            _, edges, data = array.buffers()
            at = np.frombuffer(edges or bytes(8), np.int64)[array.offset :][: len(array) + 1]
            return cls(np.frombuffer(data or b"", np.uint8), at, null=null)
        return cls((array.fill_null(0) if array.null_count else array).to_numpy(), null=null)

    def hashed(self, rows: slice) -> np.ndarray:
        if self.edges is not None:
            start, stop, _ = rows.indices(len(self.edges) - 1)
            values = _hashes_of_texts(self.data, self.edges[start : stop + 1])
        elif self.codes is None:
            values = self.data[rows].view(np.uint64)
            if self.data.dtype.kind == "f":  # whole numbers have the bits of integers
                numbers = self.data[rows]
                whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**63)
                integers = np.where(whole, numbers, 0).astype(np.int64).view(np.uint64)
                values = np.where(whole, integers, values)
        else:
            values = self.data.take(self.codes[rows])
        return values if self.null is None else np.where(self.null[rows], GOLDEN, values)


def _hashes_of_texts(text: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return a hash of the bytes between each two edges, which are read eight at a time."""
    found = np.diff(edges).astype(np.uint64)
    if not len(found):
        return found
    first = int(edges[0])
    data = np.append(text[first : edges[-1]], np.zeros(8, np.uint8))
    words: np.ndarray = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
    start = edges[:-1] - first
    length = np.diff(edges)
    rows: Any = slice(None)
    for at in range(0, int(length.max()), 8):
        left = length - at
        if left.min() <= 0:
            rows = np.flatnonzero(left > 0)
        read = words.take(start[rows] + at) & LOW_BYTES.take(left[rows], mode="clip")
        found[rows] = _mixed(found[rows], read)
    return found


def plain_values(values: Any) -> Any:
    """Return values as an array of Arrow: integers and times (microseconds, in UTC) as int64 or
    uint64, other numbers as float64, and everything else as text."""
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
        array = pa.concat_arrays(array.chunks) if array.num_chunks != 1 else array.chunk(0)
    kind = array.type
    if pa.types.is_dictionary(kind):
        return array
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
