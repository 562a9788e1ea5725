"""What workers do with one bucket of lists. Every engine runs these functions, so that a formula is
written once.

Contract: the functions are picklable and take a bucket with the packed rows of all frames. They
return one table, whose schema is the same for every bucket. They use one thread, since engines give
each task one core.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import EngineError
from ..evaluation.evaluate import checked
from ..evaluation.exposure_sums import label_array
from ..evaluation.part import Failure, ListRows, Part, PartResult, measure, result_bytes
from ..inputs.list_cells import ItemLists
from ..inputs.machine import limited
from ..inputs.options import Options, as_columns
from ..inputs.sorting import spans
from ..inputs.true_and_pred import gains, read_relevance
from ..matching.list_keys import key_labels
from ..matching.match import match
from .engine_arguments import in_bucket
from .engine_methods import Handle, Here, Shared, opened
from .packed import CELL, by_role, cast_table, distinct_rows, known_rows
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

    def __call__(self, bucket: int, cells: Cells) -> pa.Table:
        with working_on(bucket):
            shared: Shared = opened(self.handle)
            result = measured_bucket(shared, bucket, by_role(cells, self.schemas))
            if self.per_user is None:
                return pa.table([[result_bytes(result)]], schema=CELL)
            checked(shared.call, result)  # raises the error of the bucket, if it failed
            assert result.rows is not None
            return rows_table(result.rows, self.per_user)


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
        for cell in batch.column(0).to_pylist():
            one = pickle.loads(cell)
            total = one if total is None else total + one
    if total is not None:
        yield pa.record_batch([pa.array([result_bytes(total)], pa.binary())], schema=CELL)


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
    """Find the distinct rows of a chunk, in order of first appearance. `lists` says how the frame
    holds items, if its items are among the columns."""

    schema: pa.Schema
    lists: ItemLists | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = self.schema.empty_table()
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            more = cast_table(rows if self.lists is None else self.lists.table(rows), self.schema)
            found = distinct_rows(pa.concat_tables([found, known_rows(more, self.schema.names)]))
        yield from found.combine_chunks().to_batches()


@dataclass(frozen=True)
class Listing:
    """List the items of one bucket that some `by` values recommend to the population.

    listed : the number of a `by` value in the column "by", and an item · silent : the `by` values.
    """

    handle: Handle | Here
    schemas: Mapping[str, pa.Schema]
    listed: pa.Schema
    silent: np.ndarray

    def __call__(self, bucket: int, cells: Cells) -> pa.Table:
        with working_on(bucket):
            shared: Shared = opened(self.handle)
            part = part_of_bucket(shared, bucket, by_role(cells, self.schemas))
            call = shared.of(bucket)
            with call.match_part(part.true, part.pred, part.by_values, part.whole) as matched:
                lists = np.flatnonzero(np.isin(matched.list_by, self.silent))
                n = matched.n_pred[lists]
                rows = matched.rows(spans(matched.start[lists], n))
                items = label_array(part.pred[call.options.item_col].take(rows))
                by = matched.list_by[lists].repeat(n)
            columns = [labels_as(pa.array(by), pa.int64()), labels_as(items, self.listed.types[1])]
            return distinct_rows(pa.table(columns, schema=self.listed))
