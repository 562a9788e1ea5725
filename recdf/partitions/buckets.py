"""Rows are packed by bucket, so that an engine moves a few large rows instead of billions of small
ones; and what workers do with one bucket of lists. Every engine runs these functions, so that a
formula is written once.

Contract: a bucket holds whole lists, since the bucket of a row follows from the values of its list
key alone. Each worker packs its rows: those of one bucket become one cell with the bytes of an
Arrow table. The engine brings the cells of a bucket together, and a worker unpacks them.

    rows of a chunk ─ pack ─► (bucket 0, cell) (bucket 1, cell) ... ─ engine ─► cells of bucket 0 ─
    unpack ─► rows

The work on a bucket is picklable and takes its number and its rows, which `InBuckets` unpacks. It
returns one table, whose schema is the same for every bucket. It uses one thread, since engines give
each task one core.
"""

from __future__ import annotations

import operator
import pickle
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
from numpy import ndarray
from pandas import DataFrame, Series
from pyarrow import Array, ArrowException, RecordBatch, Schema, Table

from ..errors import DataError, EngineError
from ..evaluation.evaluate import checked
from ..evaluation.part import Failure, ListRows, Part, PartResult, measure, result_bytes
from ..inputs.codes import mix_texts, mix_words
from ..inputs.frames import without_dictionary
from ..inputs.list_cells import ItemLists
from ..inputs.machine import limited
from ..inputs.options import Names, Options
from ..inputs.sorting import offsets, spans
from ..inputs.true_and_pred import gains, order_source, read_pred, read_relevance, read_true
from ..matching.list_keys import key_labels
from ..matching.match import match
from .engine_contract import IN_BUCKET, Handle, Shared, opened
from .source import frame_of_arrow, narrowed

Schemas = Mapping[str, Schema]
RowsByRole = Mapping[str, Table]  # the rows of one bucket, by the role of their frame
Cells = Sequence[Any]
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

# Only the first bytes of a string are hashed, so longer strings may share a hash.
HASHED_BYTES = 256


class Dealt(NamedTuple):
    """Rows sorted by bucket: bucket i has the rows edges[i]:edges[i + 1] of the table, in the order
    that they had."""

    table: Table
    edges: ndarray

    def of(self, bucket: int) -> Table:
        """Return the rows of a bucket."""
        return self.table.slice(self.edges[bucket], self.edges[bucket + 1] - self.edges[bucket])


def dealt(table: Table, bucket: ndarray, n_buckets: int) -> Dealt:
    """Sort rows by their bucket."""
    if n_buckets == 1:
        return Dealt(table, np.array([0, len(table)]))
    places, edges = places_by_bucket(bucket, n_buckets)
    return Dealt(table.take(pa.array(places)).combine_chunks(), edges)


def places_by_bucket(bucket: ndarray, n_buckets: int) -> tuple[ndarray, ndarray]:
    """Return the places that sort rows by their bucket, and where each bucket begins."""
    return np.argsort(bucket, kind="stable"), offsets(np.bincount(bucket, minlength=n_buckets))


@dataclass(frozen=True)
class Packing:
    """What a worker does with the rows of one chunk: find the bucket of each row, and pack the rows
    of each bucket.

    keys : columns of the list key · spread : a column by which rows with a null key are spread over
    all buckets. Such rows belong to no list, and would otherwise all be in one bucket · schema :
    the columns to keep, and their types · kept : whether an engine that can keep packed rows should
    do so, since another job reads them again · narrow : the columns of
    integers that are stored in fewer bytes, None for all · lists : how rows hold
    their items, if they may hold several.
    """

    keys: Names
    spread: str
    n_buckets: int
    schema: Schema
    kept: bool = False
    narrow: Collection[str] | None = None
    lists: ItemLists | None = None

    def __call__(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        held: list[RecordBatch] = []
        n_bytes = 0
        for batch in batches:
            held.append(batch)
            n_bytes += batch.nbytes
            if n_bytes >= HELD_BYTES:
                yield self._packed(held)
                held = []
                n_bytes = 0
        if any(map(len, held)):
            yield self._packed(held)

    def deal(self, table: Table) -> Dealt:
        """Return the rows sorted by bucket."""
        table = cast_table(table if self.lists is None else self.lists.table(table), self.schema)
        return dealt(narrowed(table, self.narrow), self.buckets(table), self.n_buckets)

    def buckets(self, table: Table) -> ndarray:
        """Return the bucket of each row."""
        return bucket_of(table, self.keys, self.spread, self.n_buckets)

    def _packed(self, batches: list[RecordBatch]) -> RecordBatch:
        table, edges = self.deal(Table.from_batches(batches))
        n_rows = max(1, CELL_BYTES * len(table) // max(1, table.nbytes))
        # All cells are written into one buffer, so that nothing is copied again.
        sink = pa.BufferOutputStream()
        filled = []
        ends = [0]
        for number, (start, end) in enumerate(pairwise(edges.tolist())):
            for at in range(start, end, n_rows):
                with ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table.slice(at, min(n_rows, end - at)))
                filled.append(number)
                ends.append(sink.tell())
        places = pa.py_buffer(np.array(ends, np.int32))
        cells = Array.from_buffers(pa.binary(), len(filled), [None, places, sink.getvalue()])
        return pa.record_batch([pa.array(filled, pa.int32()), cells], schema=PACKED)


def bucket_of(table: Table, keys: Names, spread: str, n_buckets: int) -> ndarray:
    """Return the bucket of each row. Equal keys have the same bucket, whatever their types."""
    columns = [table[name] for name in keys]
    null = any_null(columns)
    if null is None:
        return hash_buckets(columns, n_buckets)
    bucket = (np.arange(len(table)) % n_buckets).astype(np.uint16)
    # The item decides, so that a row has the same bucket when a failed task runs again. Few rows
    # lack the item too.
    no_item = any_null([table[spread]])
    with_item = null if no_item is None else null & ~no_item
    for rows, by in ((~null, columns), (with_item, [table[spread]])):
        if rows.any():
            bucket[rows] = hash_buckets([column.filter(pa.array(rows)) for column in by], n_buckets)
    return bucket


def cast_table(table: Table, schema: Schema) -> Table:
    """Return the columns of a schema in its types, without dictionaries and with -0.0 as 0.0."""
    columns = {}
    for field in schema:
        column = without_dictionary(table[field.name])
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except ArrowException as error:
                what = f"{column.type} in some parts of the frame and {field.type} in others"
                raise DataError(
                    f"the column {field.name!r} is {what}; convert it to one type ({error})"
                ) from error
        is_float = field.type in (pa.float32(), pa.float64())
        columns[field.name] = pc.add(column, pa.scalar(0.0, field.type)) if is_float else column
    return pa.table(columns, metadata=schema.metadata)


def arrow_table_of(frame: DataFrame, holder: str) -> Table:
    """Return a frame as a table. `holder` says what holds the values, for the message."""
    try:
        return Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    except (ArrowException, TypeError, ValueError) as error:
        why = " ".join(map(str, error.args))
        raise DataError(
            f"a column of {holder} values that Arrow cannot hold in one column: {why}"
        ) from error


def by_role(cells: Cells, schemas: Schemas) -> dict[str, Table]:
    """Return the rows of each frame, whose role is in the metadata of its cells: tables, or the
    bytes of tables. A null cell holds no rows."""
    rows = {role: [schema.empty_table()] for role, schema in schemas.items()}
    for cell in cells:
        if not isinstance(cell, Table):
            if not cell.is_valid:
                continue
            cell = ipc.open_stream(cell.as_buffer()).read_all()
        role = cell.schema.metadata[b"role"].decode()
        rows[role].append(cell.cast(schemas[role]))
    return {role: pa.concat_tables(tables) for role, tables in rows.items()}


def add_in_pairs(results: Sequence[Any]) -> Any:
    """Add neighbours in pairs, then the sums in pairs, so that long arrays are added a few times
    only."""
    found = list(results)
    while len(found) > 1:
        pairs = [one + two for one, two in zip(found[::2], found[1::2], strict=False)]
        found = pairs + found[2 * len(pairs) :]
    return found[0] if found else None


# -- hashes of list keys


def hash_buckets(columns: Sequence[Any], n_buckets: int) -> ndarray:
    """Return the bucket of each row (uint16) by a hash of its key, which depends on values and not
    on types.

    Keys have no nulls. Both frames must send a user to the same bucket, even if one stores the id
    as int32 and the other as int64, as a dictionary, or as a timestamp of another unit. The hashes
    of pandas and of Arrow depend on the type and may change with versions, so this function has its
    own. It uses only the high half of the hash: multiplying by a constant mixes the high bits best,
    and to scale them to the number of buckets needs no division.
    """
    hashed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        _hash_into(hashed, column)
    return ((hashed >> np.uint64(32)) * np.uint64(n_buckets) >> np.uint64(32)).astype(np.uint16)


def given_ids(series: Series) -> Array:
    """Return the caller's ids as an array for `hash_buckets`. Unlike those of files, they may be
    integers beyond 64 bits."""
    try:
        return pa.array(series, from_pandas=True)
    except OverflowError:
        return pa.array((series.astype(object).to_numpy() % 2**64).astype(np.uint64))


def _hash_into(hashed: ndarray, column: Any) -> None:
    column = without_dictionary(column)
    kind = column.type
    if kind in (pa.string(), pa.binary()):  # all of them may not fit into one chunk as they are
        return _hash_into(hashed, column.cast(pa.large_binary()))
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return mix_texts(hashed, column, HASHED_BYTES)
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
    return mix_words(hashed, words)


# -- rows of Arrow tables


def any_null(columns: Iterable[Any]) -> ndarray | None:
    """Tell which rows have a null or NaN in some column. Return None if there are none."""
    may = [one for one in columns if one.null_count or pa.types.is_floating(one.type)]
    null = np.logical_or.reduce([pc.is_null(one, nan_is_null=True).to_numpy() for one in may])
    return null if null.any() else None


def known_rows(table: Table, names: Names) -> Table:
    """Return the rows that have neither a null nor a NaN in these columns."""
    null = any_null(table[name] for name in names)
    return table if null is None else table.filter(pa.array(~null))


def distinct_rows(table: Table) -> Table:
    """Return the distinct rows in order of first appearance."""
    found = by_place(table)
    found = found.append_column("row", pa.array(np.arange(len(table)))).group_by(found.column_names)
    first = found.aggregate([("row", "min")])
    return table.take(
        first["row_min"].combine_chunks().sort() if len(first) else pa.array([], pa.int64())
    )


def ascending(table: Table) -> Table:
    """Return the rows sorted by the first column, then the second, and so on.

    Columns of lists and the like have no order, and are passed over.
    """
    found = by_place(table)
    names = [one.name for one in found.schema if not pa.types.is_nested(one.type)]
    return table.take(pc.sort_indices(found, [(name, "ascending") for name in names]))


def by_place(table: Table) -> Table:
    """Return the table with columns c0, c1, ...: Arrow reads a name that begins with a dot or a
    bracket as a path.

    Periods, UUIDs and the like, which Arrow cannot compare, become what they are stored as.
    """
    found = {}
    for i, column in enumerate(table.columns):
        kind = column.type
        if isinstance(kind, pa.BaseExtensionType):
            column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        found[f"c{i}"] = column
    return pa.table(found)


# -------------------------------------------------------------------------------------------
# the work on one bucket


@contextmanager
def working_on(bucket: int) -> Iterator[None]:
    """Work with one thread. An error that says that memory is short gets the number of the
    bucket."""
    try:
        with limited(1):
            yield
    except MemoryError as error:
        # Its notes, which name the metric, become part of its message, since an engine may lose
        # notes on the way. `engine_error` reads the number of the bucket.
        words = ", ".join(filter(None, [str(error), *getattr(error, "__notes__", [])]))
        raise MemoryError(IN_BUCKET.format(bucket, f" {words}")) from error


# ----------------------------------------------------------------------------------------------
# measure


@dataclass(frozen=True)
class Measuring:
    """Measure one bucket. Without `per_user`, return its sums as one cell. With it, return the rows
    of its lists."""

    handle: Handle | Shared
    per_user: Schema | None = None

    def __call__(self, bucket: int, rows: RowsByRole) -> Table:
        shared: Shared = opened(self.handle)
        try:
            result = measure(shared.of(bucket), as_part(shared, bucket, rows))
        except MemoryError:  # the engine may try again elsewhere
            raise
        except (SystemExit, Exception) as error:
            # It is put into the result, so that users see it without a stack trace of Java.
            if isinstance(error, SystemExit):  # the engine could not tell why the worker ended
                words = ", ".join([f"SystemExit: {error}", *getattr(error, "__notes__", [])])
                error = EngineError(f"{words}; a metric must not end the process of a worker")
            result = PartResult(frozenset({bucket}), failure=Failure(error, bucket))
        if self.per_user is None:
            return pa.table([[result_bytes(result)]], schema=CELL)
        checked(shared.call, result)  # raises the error of the bucket, if it failed
        assert result.rows is not None
        return rows_table(result.rows, self.per_user)


def as_part(shared: Shared, bucket: int, tables: RowsByRole) -> Part:
    """Return the rows of a bucket as a part of the population."""
    frames = {role: frame_of_arrow(table) for role, table in tables.items()}
    true = frames.get("true")
    return Part(true, frames["pred"], frozenset({bucket}), whole=False, by_values=shared.by_values)


def rows_table(rows: ListRows, schema: Schema) -> Table:
    """Return the rows of some lists, in the columns and types of the per-user table. Undefined
    values are null."""
    if not len(rows):
        return schema.empty_table()
    names = [name for name in rows.by.columns if str(name) in schema.names]
    by = key_labels(rows.by, names, rows.list_by)
    columns = []
    parts = (by, rows.keys, rows.carried, rows.columns)
    found: dict[str, Any] = {str(name): one for part in parts for name, one in part.items()}
    for field in schema:
        values = found[field.name]
        values = values.array if isinstance(values, Series) else values
        columns.append(without_dictionary(pa.array(values, from_pandas=True)).cast(field.type))
    return pa.table(columns, schema=schema)


def adding_up(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """Add the results in one chunk, so that fewer of them are sent."""
    cells = (cell for batch in batches for cell in batch.column(0).to_pylist())
    results: list[PartResult] = [*map(pickle.loads, cells)]
    if results:
        total = reduce(operator.add, results)
        yield pa.record_batch([pa.array([result_bytes(total)], pa.binary())], schema=CELL)


# -- facts that need all the rows

GAIN = pa.schema([("gain", pa.float64())])


@dataclass(frozen=True)
class Gains:
    """Find the largest gain in a chunk of `true`, among the rows that are neither dropped nor in
    `exclude`."""

    column: str
    options: Options
    exclude: DataFrame | None
    lists: ItemLists

    def __call__(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        for batch in batches:
            ids = self.options.pair
            frame = frame_of_arrow(known_rows(self.lists.table(Table.from_batches([batch])), ids))
            relevance = read_relevance(frame, self.column, self.options)
            gain = gains(
                relevance[known := np.isfinite(relevance) & (relevance >= 0)], self.options
            )
            if self.exclude is not None:
                same = ("user_col", "item_col", "null_keys")
                own: dict[str, Any] = {name: getattr(self.options, name) for name in same}
                own |= {"relevance_col": self.column, "duplicates": "keep", "score_col": False}
                sides = {"exclude": self.exclude}
                options = Options().updated(**own)
                with match(frame[known], frame[:0], options, sides, part=True) as matched:
                    gain = gains(matched.true_lists.gain, self.options)
            yield pa.record_batch([pa.array([gain.max(initial=0.0)], pa.float64())], schema=GAIN)


@dataclass(frozen=True)
class Distinct:
    """Find the distinct rows of a chunk, in order of first appearance."""

    schema: Schema

    def __call__(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        found = self.schema.empty_table()
        for batch in batches:
            more = cast_table(Table.from_batches([batch]), self.schema)
            found = distinct_rows(pa.concat_tables([found, known_rows(more, self.schema.names)]))
        yield from found.combine_chunks().to_batches()


def items_of_bucket(
    bucket: int, rows: RowsByRole, handle: Handle | Shared, silent: ndarray | None
) -> tuple[DataFrame, Series]:
    """Return the items of one bucket in rows that no option drops, each once: those that some `by`
    values (`silent`) recommend to the population, beside the number of the value, and those of
    `true`. Where `silent` is None, all rows of `pred` count."""
    shared: Shared = opened(handle)
    part = as_part(shared, bucket, rows)
    call = shared.of(bucket)
    options = call.options
    read = read_true(part.true, options)
    of_true = read.frame_rows(np.arange(len(read)))
    if silent is None:
        read = read_pred(part.pred, order_source(part.pred, options), options)
        of_pred = read.frame_rows(np.arange(len(read)))
        by = np.zeros(len(read), np.int64)
    else:
        with call.match_part(part.true, part.pred, part.by_values, part.whole) as matched:
            lists = np.flatnonzero(np.isin(matched.list_by, silent))
            n = matched.n_pred[lists]
            of_pred = matched.rows(spans(matched.start[lists], n))
            by = matched.list_by[lists].repeat(n)
    true, pred = part.true[options.item_col], part.pred[options.item_col]
    listed = DataFrame({"by": by, "item": pred.take(of_pred).array})
    return listed.drop_duplicates(), true.take(of_true).drop_duplicates()
