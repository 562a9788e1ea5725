"""What workers do with one bucket of lists. Every engine runs these functions, so that a formula is
written once.

Contract: the functions are picklable and take a bucket with the packed rows of both frames. They
return one table, whose schema is the same for every bucket. They use one thread, since engines give
each task one core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import EngineError
from ..evaluation.evaluate import checked
from ..evaluation.exposure_sums import label_array
from ..evaluation.part import Failure, ListRows, Part, PartResult, from_arrow, measure, to_arrow
from ..inputs.codes import encode, encode_keys
from ..inputs.ids import read_ids
from ..inputs.list_cells import ItemLists
from ..inputs.machine import limited
from ..inputs.options import Options, as_columns
from ..inputs.sorting import distinct, spans
from ..inputs.true_and_pred import gains, read_relevance
from ..matching.list_keys import key_labels
from ..matching.match import match
from .engine_arguments import in_bucket
from .engine_methods import Handle, Here, Shared, opened
from .packed import CELL, cast_table, distinct_rows, known_rows, of_cell, of_cells, to_cells
from .source import frame_of_arrow, labels_as

Cells = Sequence[Any]


@contextmanager
def working_on(bucket: int) -> Iterator[None]:
    """Work with one thread. An error that says that memory is short gets the number of the
    bucket."""
    try:
        with limited(1):
            yield
    except MemoryError as error:
        raise in_bucket(bucket, error) from error


# ----------------------------------------------------------------------------------------------
# measure


@dataclass(frozen=True)
class Measuring:
    """Measure one bucket. Without `per_user`, return its sums as one cell. With it, return the rows
    of its lists."""

    handle: Handle
    schemas: Mapping[str, pa.Schema]
    per_user: pa.Schema | None = None

    def __call__(self, bucket: int, true: Cells, pred: Cells) -> pa.Table:
        with working_on(bucket):
            shared: Shared = opened(self.handle)
            result = measured_bucket(shared, bucket, unpacked(self.schemas, true, pred))
            if self.per_user is None:
                return pa.table([to_cells([to_arrow(result)])], schema=CELL)
            checked(shared.call, result)  # raises the error of the bucket, if it failed
            tables = [rows_table(rows, self.per_user) for rows in result.rows.values()]
            return pa.concat_tables([self.per_user.empty_table(), *tables])


def unpacked(schemas: Mapping[str, pa.Schema], true: Cells, pred: Cells) -> dict[str, pa.Table]:
    """Return the rows of each frame that the call has, by role."""
    return {
        role: of_cells(true if role == "true" else pred, schema) for role, schema in schemas.items()
    }


def measured_bucket(shared: Shared, bucket: int, tables: Mapping[str, pa.Table]) -> PartResult:
    """Measure one bucket. An error is put into the result, so that users see it without a Java
    stack trace."""
    try:
        return measure(shared.of(bucket), part_of_bucket(shared, bucket, tables))
    except MemoryError:  # the engine may try again elsewhere
        raise
    except SystemExit as error:  # it would end the worker, and the engine could not tell why
        words = ", ".join([f"SystemExit: {error}", *getattr(error, "__notes__", [])])
        told = EngineError(f"{words}; a metric must not end the process of a worker")
        return PartResult(frozenset({bucket}), failure=Failure(told, bucket))
    except Exception as error:
        return PartResult(frozenset({bucket}), failure=Failure(error, bucket))


def part_of_bucket(shared: Shared, bucket: int, tables: Mapping[str, pa.Table]) -> Part:
    frames = {role: frame_of_arrow(table) for role, table in tables.items()}
    return Part(
        frames.get("true"),
        frames["pred"],
        frozenset({bucket}),
        whole=False,
        by_values=shared.by_values,
    )


def rows_table(rows: ListRows, schema: pa.Schema) -> pa.Table:
    """Return the rows of some lists, in the columns and types of the per-user table. Undefined
    values are null."""
    if not len(rows):
        return schema.empty_table()
    by = key_labels(
        rows.by, [name for name in rows.by.columns if str(name) in schema.names], rows.list_by
    )
    found: dict[str, Any] = {
        str(name): frame[name] for frame in (by, rows.keys) for name in frame.columns
    }
    found |= {str(name): values for name, values in (*rows.carried.items(), *rows.columns.items())}
    columns = []
    for field in schema:
        values = found[field.name]
        array = pa.array(
            values.array if isinstance(values, pd.Series) else values, from_pandas=True
        )
        columns.append(labels_as(array, field.type))
    return pa.table(columns, schema=schema)


def adding_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the results in one chunk, so that fewer of them are sent."""
    total: PartResult | None = None
    for batch in batches:
        for cell in batch.column(0):
            one = result_of(cell)
            total = one if total is None else total + one
    if total is not None:
        yield pa.record_batch([to_cells([to_arrow(total)])], schema=CELL)


def result_of(cell: Any) -> PartResult:
    """Return the result in a cell."""
    return from_arrow(of_cell(cell))


# -- facts that need all the rows

GAIN = pa.schema([("gain", pa.float64())])


@dataclass(frozen=True)
class Gains:
    """Find the largest gain in a chunk of `true`, among the rows that are neither dropped nor in
    `exclude`."""

    column: str
    options: Options
    exclude: pd.DataFrame | None
    lists: ItemLists

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            frame = frame_of_arrow(
                known_rows(self.lists.table(pa.Table.from_batches([batch])), self.ids)
            )
            relevance = read_relevance(frame, self.column, self.options)
            gain = gains(
                relevance[known := np.isfinite(relevance) & (relevance >= 0)], self.options
            )
            if self.exclude is not None:
                own = {
                    name: getattr(self.options, name)
                    for name in ("user_col", "item_col", "null_keys")
                }
                options = Options().updated(
                    **own, relevance_col=self.column, duplicates="keep", score_col=False
                )
                with match(
                    frame[known], frame[:0], options, {"exclude": self.exclude}, part=True
                ) as matched:
                    gain = gains(matched.true_lists.gain, self.options)
            yield pa.record_batch(
                [pa.array([gain.max() if len(gain) else 0.0], pa.float64())], schema=GAIN
            )

    @property
    def ids(self) -> list[str]:
        return [*as_columns(self.options.user_col), self.options.item_col]


@dataclass(frozen=True)
class Distinct:
    """Find the distinct rows of a chunk, in order of first appearance."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = self.schema.empty_table()
        for batch in batches:
            more = cast_table(pa.Table.from_batches([batch]), self.schema)
            found = distinct_rows(pa.concat_tables([found, known_rows(more, self.schema.names)]))
        yield from found.combine_chunks().to_batches()


# -- ids that both frames may share

# The column WHERE says where an item was found. TRUE_ITEM stands for `true`. A number from 0 on is
# that of the recommender (`by` value) that recommends the item. SHARED_USER marks a row without an
# item, which says that some user is in both frames.
TRUE_ITEM, SHARED_USER = -1, -2
WHERE_COLUMN = "where"


@dataclass(frozen=True)
class Listing:
    """List the items of both frames in one bucket, so that they can be compared over all buckets.

    silent : numbers of the `by` values without a hit. None says that there is no hit at all. Then
    the items of all rows of `pred` are listed, and a row without an item says that some user is in
    both frames.
    """

    handle: Handle | Here
    schemas: Mapping[str, pa.Schema]
    listed: pa.Schema
    silent: tuple[int, ...] | None

    def __call__(self, bucket: int, true: Cells, pred: Cells) -> pa.Table:
        with working_on(bucket):
            shared: Shared = opened(self.handle)
            options, tables = shared.call.options, unpacked(self.schemas, true, pred)
            keys, item = as_columns(options.user_col), options.item_col
            kept = {
                role: known_rows(
                    table, [*keys, item, *(as_columns(options.by) if role == "pred" else [])]
                )
                for role, table in tables.items()
            }
            found = [self._items(TRUE_ITEM, kept["true"][item])]
            if self.silent is not None:
                found += self._of_silent(shared, bucket, tables)
            else:
                found.append(self._items(0, kept["pred"][item]))
                if _share_user(kept, keys):
                    found.append(self._items(SHARED_USER, pa.nulls(1, kept["true"][item].type)))
            return pa.concat_tables(found)

    def _of_silent(
        self, shared: Shared, bucket: int, tables: Mapping[str, pa.Table]
    ) -> Iterator[pa.Table]:
        part, call = part_of_bucket(shared, bucket, tables), shared.of(bucket)
        with call.match_part(part.true, part.pred, part.by_values, part.whole) as matched:
            for number in self.silent or ():
                lists = np.flatnonzero(matched.list_by == number)
                rows = matched.rows(spans(matched.start[lists], matched.n_pred[lists]))
                yield self._items(number, label_array(part.pred[call.options.item_col].take(rows)))

    def _items(self, where: int, items: Any) -> pa.Table:
        labels = pa.chunked_array([pc.unique(items)]).cast(self.listed.field(1).type)
        return pa.table(
            [pa.array(np.full(len(labels), where, np.int32)), labels], schema=self.listed
        )


def _share_user(tables: Mapping[str, pa.Table], keys: list[str]) -> bool:
    ids = [
        [read_ids(frame_of_arrow(tables[role])[name], name) for name in keys]
        for role in ("true", "pred")
    ]
    (true, pred), _ = encode_keys(ids)
    return bool(np.isin(pd.unique(pred.all()), pd.unique(true.all())).any())


@dataclass(frozen=True)
class Comparing:
    """Find the recommenders that have an item of `true`, among the listed items of one bucket.

    `SHARED_USER` is added if it was listed.
    """

    listed: pa.Schema

    def __call__(self, bucket: int, _: Cells, listed: Cells) -> pa.Table:
        with working_on(bucket):
            table = of_cells(listed, self.listed)
            where, items = (
                table[WHERE_COLUMN].to_numpy(),
                frame_of_arrow(table.select([1])).iloc[:, 0],
            )
            code = encode([read_ids(items, "item")]).codes[0]
        shared = distinct(
            where[(where >= 0) & np.isin(code, code[(where == TRUE_ITEM)]) & (code >= 0)]
        )
        flags = [SHARED_USER] if (where == SHARED_USER).any() else []
        return pa.table(
            [pa.array([*flags, *shared.tolist()], pa.int32())],
            schema=pa.schema([(WHERE_COLUMN, pa.int32())]),
        )
