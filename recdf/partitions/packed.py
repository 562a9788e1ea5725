"""Rows are packed by bucket, so that an engine moves a few large rows instead of billions of small
ones.

Contract: a bucket holds whole lists, since the bucket of a row follows from the values of its list
key alone. Each worker packs its rows: those of one bucket become one cell with the bytes of an
Arrow table. The engine brings the cells of a bucket together, and a worker unpacks them.

    rows of a chunk ─ pack ─► (bucket 0, cell) (bucket 1, cell) ... ─ engine ─► cells of bucket 0 ─
    unpack ─► rows
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

from ..errors import DataError
from ..evaluation.dtypes import without_dictionary
from ..inputs.codes import GOLDEN, LOW_BYTES
from ..inputs.list_cells import ItemLists
from ..inputs.sorting import offsets

PACKED = pa.schema([("bucket", pa.int32()), ("cell", pa.binary())])
CELL = pa.schema([("cell", pa.binary())])

# Rows of this many bytes are packed together. With more of them the arrays leave the cache of the
# processor, and each pack touches new memory. With fewer, the cells get so small that writing them
# costs more than their rows.
HELD_BYTES = 2**24

# A cell has at most about this many bytes, so that an engine can put thousands of cells into one
# batch.
CELL_BYTES = 2**17

# This many rows are kept as examples for messages.
HEAD_LENGTH = 100

HASHED_BYTES = (
    256  # only the first bytes of a string are hashed, so longer strings may share a hash
)


class Dealt(NamedTuple):
    """Rows sorted by bucket: bucket i has the rows edges[i]:edges[i + 1] of the table, in the order
    that they had."""

    table: pa.Table
    edges: np.ndarray


def dealt(table: pa.Table, bucket: np.ndarray, n_buckets: int) -> Dealt:
    """Sort rows by their bucket."""
    if n_buckets == 1:
        return Dealt(table, np.array([0, len(table)]))
    places, edges = places_by_bucket(bucket, n_buckets)
    return Dealt(table.take(pa.array(places)).combine_chunks(), edges)


def places_by_bucket(bucket: np.ndarray, n_buckets: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places that sort rows by their bucket, and where each bucket begins."""
    return np.argsort(bucket, kind="stable"), offsets(np.bincount(bucket, minlength=n_buckets))


@dataclass(frozen=True)
class Packing:
    """What a worker does with the rows of one chunk: find the bucket of each row, and pack the rows
    of each bucket.

    keys : columns of the list key · spread : a column by which rows with a null key are spread over
    all buckets. Such rows belong to no list, and would otherwise all be in one bucket · schema :
    the columns to keep, and their types · kept : whether an engine that can keep packed rows should
    do so, since another job reads them again · narrow : see `narrowed` · lists : how rows hold
    their items, if they may hold several.
    """

    keys: Sequence[str]
    spread: str
    n_buckets: int
    schema: pa.Schema
    kept: bool = True
    narrow: Collection[str] | None = None
    lists: ItemLists | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        n_bytes = 0
        for batch in batches:
            held.append(batch)
            n_bytes += batch.nbytes
            if n_bytes >= HELD_BYTES:
                yield self._packed(held)
                held, n_bytes = [], 0
        if any(map(len, held)):
            yield self._packed(held)

    def dealt(self, table: pa.Table) -> Dealt:
        """Return the rows sorted by bucket."""
        table = cast_table(table if self.lists is None else self.lists.table(table), self.schema)
        return dealt(narrowed(table, self.narrow), self.buckets(table), self.n_buckets)

    def buckets(self, table: pa.Table) -> np.ndarray:
        """Return the bucket of each row."""
        return bucket_of(table, self.keys, self.spread, self.n_buckets)

    def _packed(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        table, edges = self.dealt(pa.Table.from_batches(batches))
        n_rows = max(1, CELL_BYTES * len(table) // max(1, table.nbytes))
        filled, slices = [], []
        for number, (start, end) in enumerate(pairwise(edges.tolist())):
            cells = [table.slice(at, min(n_rows, end - at)) for at in range(start, end, n_rows)]
            filled += [number] * len(cells)
            slices += cells
        return pa.record_batch([pa.array(filled, pa.int32()), to_cells(slices)], schema=PACKED)


def cells_by_bucket(packing: Packing, table: pa.Table) -> dict[int, list[bytes]]:
    """Return the packed rows of a table in memory by bucket."""
    found: dict[int, list[bytes]] = {}
    for batch in packing(table.select(packing.schema.names).to_batches()):
        for bucket, cell in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            found.setdefault(bucket, []).append(cell)
    return found


def bucket_of(table: pa.Table, keys: Sequence[str], spread: str, n_buckets: int) -> np.ndarray:
    """Return the bucket of each row. Equal keys have the same bucket, whatever their types."""
    columns = [table[name] for name in keys]
    missing = [null for null in map(nulls, columns) if null is not None]
    if not missing:
        return part_of(columns, n_buckets)
    null = np.logical_or.reduce(missing)
    bucket = (np.arange(len(table)) % n_buckets).astype(np.uint16)
    # The item decides, so that a row has the same bucket when a failed task runs again. Few rows
    # lack the item too.
    no_item = nulls(table[spread])
    with_item = null if no_item is None else null & ~no_item
    for rows, by in ((~null, columns), (with_item, [table[spread]])):
        if rows.any():
            bucket[rows] = part_of([column.filter(pa.array(rows)) for column in by], n_buckets)
    return bucket


def cast_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of a schema in its types, without dictionaries and with -0.0 as 0.0."""
    columns = {}
    for field in schema:
        column = without_dictionary(table[field.name])
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except pa.ArrowException as error:
                what = f"{column.type} in some parts of the frame and {field.type} in others"
                raise DataError(
                    f"the column {field.name!r} is {what}; convert it to one type ({error})"
                ) from error
        is_float = field.type in (pa.float32(), pa.float64())
        columns[field.name] = pc.add(column, pa.scalar(0.0, field.type)) if is_float else column
    return pa.table(columns, metadata=schema.metadata)


def narrowed(table: pa.Table, names: Collection[str] | None = None) -> pa.Table:
    """Return the table with integers in the narrowest type that holds them; `of_cells` makes them
    wide again.

    A shuffle writes every byte, sends it and reads it again. Where `names` are given, only these
    columns get narrow, and have 32 bits at least: threads that measure them as they are do so
    fastest.
    """
    for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if pa.types.is_integer(column.type) and (names is None or name in names):
            low, high = (edge.as_py() for edge in pc.min_max(column).values())
            if low is not None:
                signed = min(low, -high - 1)  # a signed type that holds it holds both edges
                kind = np.min_scalar_type(high if low >= 0 and names is None else signed)
                kind = kind if names is None else np.promote_types(kind, np.int32)
                if kind.itemsize * 8 < column.type.bit_width:
                    table = table.set_column(
                        place, name, column.cast(pa.from_numpy_dtype(kind), safe=False)
                    )
    return table


def arrow_table_of(frame: pd.DataFrame, holder: str) -> pa.Table:
    """Return a frame as a table. `holder` says what holds the values, for the message."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    except (pa.ArrowException, TypeError, ValueError) as error:
        why = " ".join(map(str, error.args))
        raise DataError(
            f"a column of {holder} values that Arrow cannot hold in one column: {why}"
        ) from error


def to_cells(tables: Sequence[pa.Table]) -> pa.Array:
    """Return tables as an array of cells. All are written into one buffer, so that nothing is
    copied again."""
    sink, ends = pa.BufferOutputStream(), [0]
    for table in tables:
        with ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        ends.append(sink.tell())
    offsets = pa.py_buffer(np.array(ends, np.int32))
    return pa.Array.from_buffers(pa.binary(), len(tables), [None, offsets, sink.getvalue()])


def of_cell(cell: Any) -> pa.Table:
    """Return the table in a cell: bytes, a binary scalar, or a table."""
    if isinstance(cell, pa.Table):
        return cell
    return ipc.open_stream(cell.as_buffer() if isinstance(cell, pa.Scalar) else cell).read_all()


def of_cells(cells: Sequence[Any], schema: pa.Schema) -> pa.Table:
    """Return the rows of some cells. A null cell holds no rows."""
    given = (cell.as_buffer() if isinstance(cell, pa.Scalar) else cell for cell in cells)
    found = (of_cell(cell) for cell in given if cell is not None)
    return pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in found)])


def by_role(cells: Sequence[Any], schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    """Return the rows of each frame, whose role is in the metadata of its cells."""
    rows: dict[str, list[pa.Table]] = {role: [] for role in schemas}
    for cell in cells:
        if not isinstance(cell, pa.Scalar) or cell.is_valid:
            table = of_cell(cell)
            rows[table.schema.metadata[b"role"].decode()].append(table)
    return {role: of_cells(rows[role], schema) for role, schema in schemas.items()}


def add_in_pairs(results: Sequence[Any]) -> Any:
    """Add neighbours in pairs, then the sums in pairs, so that long arrays are added a few times
    only."""
    found = list(results)
    while len(found) > 1:
        found = [
            reduce(lambda one, two: one + two, found[at : at + 2]) for at in range(0, len(found), 2)
        ]
    return found[0] if found else None


# -- hashes of list keys


def part_of(columns: Sequence[Any], n_parts: int) -> np.ndarray:
    """Return the part of each row (uint16) by a hash of its key, which depends on values and not on
    types.

    Keys have no nulls. Both frames must send a user to the same part, even if one stores the id as
    int32 and the other as int64, as a dictionary, or as a timestamp of another unit. The hashes of
    pandas and of Arrow depend on the type and may change with versions, so this function has its
    own. It uses only the high half of the hash: multiplying by a constant mixes the high bits best,
    and to scale them to the number of parts needs no division.
    """
    hashed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        _hash_into(
            hashed, column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        )
    return ((hashed >> np.uint64(32)) * np.uint64(n_parts) >> np.uint64(32)).astype(np.uint16)


def given_ids(series: pd.Series) -> pa.Array:
    """Return the caller's ids as an array for `part_of`. Unlike those of files, they may be
    integers beyond 64 bits."""
    try:
        return pa.array(series, from_pandas=True)
    except OverflowError:
        return pa.array((series.astype(object).to_numpy() % 2**64).astype(np.uint64))


def _hash_into(hashed: np.ndarray, column: Any) -> None:
    kind = column.type
    if isinstance(column, pa.ChunkedArray):  # still several chunks, if one cannot hold all strings
        column = pa.concat_arrays(column.chunks)
    if pa.types.is_dictionary(kind):
        return _hash_into(hashed, without_dictionary(column))
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
    _mix_words(hashed, words)
    return None


def _mix_words(hashed: np.ndarray, words: np.ndarray) -> None:
    hashed ^= words
    hashed *= GOLDEN
    hashed ^= hashed >> np.uint64(29)


def _hash_bytes(hashed: np.ndarray, column: Any) -> None:
    """Mix in strings, eight bytes of each at a time."""
    _, offsets, data = column.buffers()
    edges = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    length = np.diff(edges)
    _mix_words(hashed, length.view(np.uint64))
    if not len(length) or not length.any():
        return
    padded = np.zeros(int(edges[-1] - edges[0]) + 8, np.uint8)
    padded[:-8] = np.frombuffer(data, np.uint8)[edges[0] : edges[-1]]
    # A view that reads the eight bytes from each position on as one number. It is read only where a
    # string begins or goes on.
    words: np.ndarray = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
    begin = edges[:-1] - edges[0]
    for start in range(0, min(int(length.max()), HASHED_BYTES), 8):
        rows = np.flatnonzero(length > start)
        some = hashed[rows]
        _mix_words(
            some, words[begin[rows] + start] & LOW_BYTES[np.minimum(length[rows] - start, 8)]
        )
        hashed[rows] = some


# -- rows of Arrow tables


def nulls(column: Any) -> np.ndarray | None:
    """Tell which values are null or NaN. Return None if there are none."""
    if not column.null_count and not pa.types.is_floating(column.type):
        return None
    null = pc.is_null(column, nan_is_null=True).to_numpy()
    return null if null.any() else None


def known_rows(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows that have neither a null nor a NaN in these columns."""
    missing = [null for null in (nulls(table[name]) for name in names) if null is not None]
    return table.filter(pa.array(~np.logical_or.reduce(missing))) if missing else table


def distinct_rows(table: pa.Table) -> pa.Table:
    """Return the distinct rows in order of first appearance."""
    found = by_place(table)
    found = found.append_column("row", pa.array(np.arange(len(table)))).group_by(found.column_names)
    first = found.aggregate([("row", "min")])
    return table.take(
        first["row_min"].combine_chunks().sort() if len(first) else pa.array([], pa.int64())
    )


def ascending(table: pa.Table) -> pa.Table:
    """Return the rows sorted by the first column, then the second, and so on.

    Columns of lists and the like have no order, and are passed over.
    """
    found = by_place(table)
    names = [one.name for one in found.schema if not pa.types.is_nested(one.type)]
    return table.take(pc.sort_indices(found, [(name, "ascending") for name in names]))


def by_place(table: pa.Table) -> pa.Table:
    """Return the table with columns c0, c1, ...: Arrow reads a name that begins with a dot or a
    bracket as a path.

    Periods, UUIDs and the like, which Arrow cannot compare, become what they are stored as.
    """
    return pa.table({f"c{i}": _stored(column) for i, column in enumerate(table.columns)})


def _stored(column: Any) -> Any:
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
