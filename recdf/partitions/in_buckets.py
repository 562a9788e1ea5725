"""Any work on frames of an engine whose rows are dealt to buckets, such as all rows of some users:
what the work makes of each bucket comes back.

Contract: the work is sent once to each worker, with what it holds. It takes the rows of one bucket,
by the role of their frame. Frames in memory are dealt here, and sent with the work. An error of a
bucket travels back, and is raised as the error of all.

    frames ─ pack ─► cells by bucket ─ meet: work ─► one cell of each bucket ─► list of results
                                                  └► a table of each bucket ─► lazy frame
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import RecdfError
from ..evaluation.evaluate import told
from ..evaluation.part import Failure
from .buckets import PACKED, Cells, Packing, Schemas, by_role, cells_by_bucket, working_on
from .engine_methods import EngineRows, Handle, labels_of_table, opened
from .needed import decoded

RowsByRole = Mapping[str, pa.Table]  # the rows of one bucket, by the role of their frame

# What a bucket gives: what the work made of it or an error, as bytes, and how many rows of the
# first frame it had.
OF_BUCKET = pa.schema({"bucket": pa.int32(), "made": pa.binary(), "n_rows": pa.int64()})


def shared(engine: Any, one: Any) -> Handle:
    """Return how workers get an object."""
    handle: Handle = engine.share(pickle.dumps(one))
    return handle


@dataclass(frozen=True)
class OnBucketRows:
    """Work on the rows of one bucket.

    in_memory : gives the packed rows of frames in memory by bucket · as_cell : whether the work
    makes any object, which becomes one row of OF_BUCKET, and not a table.
    """

    work: Handle
    schemas: Schemas
    in_memory: Handle
    as_cell: bool

    def __call__(self, bucket: int, cells: Cells) -> pa.Table:
        with working_on(bucket):
            work = opened(self.work)
            rows = by_role([*cells, *opened(self.in_memory).get(bucket, [])], self.schemas)
            if not self.as_cell:
                table: pa.Table = work(rows)
                return table
            try:
                made = work(rows)
            except (RecdfError, TypeError) as error:
                made = Failure(error, bucket)
            n_rows = len(next(iter(rows.values())))
            return pa.table([[bucket], [pickle.dumps(made)], [n_rows]], schema=OF_BUCKET)


class InBuckets:
    """Frames of an engine, and tables in memory, whose rows are dealt to buckets by the packing of
    each role."""

    def __init__(
        self, engine: Any, frames: Mapping[str, Any], packings: Mapping[str, Packing]
    ) -> None:
        self.engine, self.packed, self.schemas = engine, [], {}
        in_memory: dict[int, list[bytes]] = {}
        for role, frame in frames.items():
            schema = packings[role].schema.with_metadata({"role": role})
            packing, self.schemas[role] = replace(packings[role], schema=schema), schema
            self.n_buckets = packing.n_buckets
            if not isinstance(frame, pa.Table):
                self.packed.append(engine.each(frame, schema.names, packing, PACKED))
                continue
            for bucket, cells in cells_by_bucket(packing, frame).items():
                in_memory.setdefault(bucket, []).extend(cells)
        # A bucket may have only rows that are in memory.
        self.every = len(self.packed) < len(frames)
        self.in_memory = shared(engine, in_memory)

    def tables(
        self, work: Callable[[RowsByRole], Any], schema: pa.Schema, as_cell: bool = False
    ) -> Any:
        """Return a lazy frame of the rows that the work makes of all buckets."""
        on_rows = OnBucketRows(shared(self.engine, work), self.schemas, self.in_memory, as_cell)
        return self.engine.meet(self.packed, self.n_buckets, on_rows, schema, self.every)

    def made(self, work: Callable[[RowsByRole], Any]) -> tuple[list[Any], int]:
        """Return what the work makes of each bucket, in their order, and how many rows the first
        frame has."""
        outcomes = self.engine.collect(self.tables(work, OF_BUCKET, as_cell=True))
        found = [pickle.loads(cell) for cell in outcomes.sort_by("bucket")["made"].to_pylist()]
        for one in found:
            if isinstance(one, Failure):
                raise told(one, self.n_buckets, "users")
        return found, sum(outcomes["n_rows"].to_pylist())


def on_labels(work: Callable[..., Any], rows: RowsByRole) -> Any:
    """Call the work with the rows of each frame in the default dtypes of pandas."""
    return work(*map(labels_of_table, rows.values()))


def each_bucket(
    rows: EngineRows,
    work: Callable[[pd.DataFrame], Any],
    columns: Sequence[str],
    keys: Sequence[str],
) -> list[Any]:
    """Return what `work` makes of some columns of each bucket, dealt by the values of `keys`."""
    known = rows.engine.schema(rows.frame)
    schema = pa.schema(
        [(name, decoded(known.field(name).type)) for name in columns if name in known.names]
    )
    packing = Packing(keys, keys[0], rows.n_buckets, schema)
    of_rows = InBuckets(rows.engine, {"per_user": rows.frame}, {"per_user": packing})
    found, n_rows = of_rows.made(partial(on_labels, work))
    rows.check(n_rows)
    return found
