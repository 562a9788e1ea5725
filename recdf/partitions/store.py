"""Rows are dealt (distributed) to parts that hold whole lists. They are kept in memory while they fit, else in a file.

Contract: `part_of` returns the same part for rows with equal keys, whatever the width or the encoding of their types.
`Store` keeps the rows of each part in the order in which they were added.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

from ..errors import OptionError

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}

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


def memory_bytes(limit: int | str | None) -> int:
    """Return the memory limit in bytes."""
    if limit is None:
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
        except (AttributeError, ValueError):  # not on Windows
            return 2 * 10**9
    found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*([KMGT]?I?)B?\s*", str(limit).upper())
    if isinstance(limit, bool) or found is None or found[2] not in UNITS or float(found[1]) <= 0:
        raise OptionError(f'memory_limit={limit!r}; expected a number of bytes, or text such as "1GB" or "512MiB"')
    return int(float(found[1]) * UNITS[found[2]])


class Dealt(NamedTuple):
    """Rows sorted by part: part i has the rows edges[i]:edges[i + 1] of the table."""

    table: pa.Table
    edges: np.ndarray


def deal(table: pa.Table, part: np.ndarray, n_parts: int) -> Dealt:
    """Sort rows by their part. Rows of the same part keep their order."""
    if n_parts == 1:
        return Dealt(table, np.array([0, len(table)]))
    order = np.argsort(part, kind="stable")
    edges = np.zeros(n_parts + 1, np.int64)
    np.cumsum(np.bincount(part, minlength=n_parts), out=edges[1:])
    return Dealt(table.take(pa.array(order)).combine_chunks(), edges)


def narrow(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Return the table with some columns as int32, if they are int64 and all their values fit.

    Most of the time of dealing is spent on copying, writing and reading bytes.
    """
    for number, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if name in names and column.type == pa.int64():
            low, high = (edge.as_py() for edge in pc.min_max(column).values())
            if low is not None and low >= -(2**31) and high < 2**31:
                table = table.set_column(number, name, column.cast(pa.int32(), safe=False))
    return table


class Memory:
    """The number of bytes that several stores together may keep in memory."""

    def __init__(self, n_bytes: float) -> None:
        self.left = n_bytes


class Store:
    """The rows of each part in the order in which they were added.

    Rows are kept in memory until `memory` is used up, and later rows are written to a file. Without `memory`, the rows
    of a single part are all kept in memory, and those of several parts are all written.
    """

    def __init__(self, path: Path, n_parts: int, schema: pa.Schema, memory: Memory | None = None) -> None:
        self.path, self.n_parts, self.schema = path, n_parts, schema
        self.n_bytes = np.zeros(n_parts)
        self._memory = memory or Memory(np.inf if n_parts == 1 else 0)
        self._kept: list[Dealt] = []
        # Rows of each width have a file of their own, since a file of Arrow has one schema.
        self._files: dict[pa.Schema, _File] = {}
        self._places: list[list[tuple[_File, int]]] = [[] for _ in range(n_parts)]  # of each part's batches

    def add(self, table: pa.Table, part: np.ndarray) -> None:
        """Keep rows. `part` has the part of each row."""
        self.add_dealt(deal(table, part, self.n_parts))

    def add_dealt(self, dealt: Dealt) -> None:
        """Keep rows that are sorted by part."""
        table, edges = dealt.table.select(self.schema.names), dealt.edges
        if not len(table):
            return
        self.n_bytes += table.nbytes / len(table) * np.diff(edges)
        if not self._files and table.nbytes <= self._memory.left:
            self._memory.left -= table.nbytes
            self._kept.append(Dealt(table, edges))
            return
        if table.schema not in self._files:
            self._files[table.schema] = _File(self._next_path(), table.schema)
        file = self._files[table.schema]
        for number in np.flatnonzero(np.diff(edges)).tolist():
            for batch in table.slice(edges[number], edges[number + 1] - edges[number]).to_batches():
                self._places[number].append((file, file.add(batch)))

    def _next_path(self) -> Path:
        return self.path.with_name(f"{self.path.stem}-{len(self._files)}{self.path.suffix}")

    def read(self, part: int) -> pa.Table:
        """Return all rows of a part. Integers have 64 bits if some rows of the part were added so."""
        kept = [table.slice(edges[part], edges[part + 1] - edges[part]) for table, edges in self._kept]
        written = [pa.Table.from_batches([file.read(number)]) for file, number in self._places[part]]
        found = [table for table in (*kept, *written) if len(table)] or [self.schema.empty_table()]
        return pa.concat_tables(found, promote_options="permissive")

    def close(self) -> None:
        """Close the files, so that their folder can be removed."""
        for file in self._files.values():
            file.close()


class _File:
    """Batches of rows in a file. They are read after all of them have been written."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path, self.n_batches = path, 0
        self._writer: Any = ipc.new_file(str(path), schema)
        self._reader: Any = None

    def add(self, batch: pa.RecordBatch) -> int:
        """Write a batch, and return its number."""
        self._writer.write_batch(batch)
        self.n_batches += 1
        return self.n_batches - 1

    def read(self, number: int) -> pa.RecordBatch:
        """Return a batch."""
        if self._reader is None:
            self._writer.close()
            self._reader = ipc.open_file(pa.OSFile(str(self.path)))
        return self._reader.get_batch(number)

    def close(self) -> None:
        self._writer.close()
        self._reader = None
