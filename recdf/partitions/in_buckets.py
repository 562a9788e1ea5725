"""Any work on rows that are dealt to buckets, such as all rows of some users: what the work makes
of each bucket comes back.

Contract: the work is sent once to each worker, with what it holds. An error of a bucket travels
back, and is raised as the error of all.

    rows ─ pack ─► cells by bucket ─ meet: work ─► one cell of each bucket ─► list of what was made
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import RecdfError
from ..evaluation.evaluate import told
from ..evaluation.part import Failure
from .buckets import PACKED, Cells, Packing, of_cells, working_on
from .engine_methods import EngineRows, Handle, labels_of_table, opened
from .needed import decoded

# What a bucket gives: what the work made of it or an error, as bytes, and how many rows it had.
OF_BUCKET = pa.schema({"bucket": pa.int32(), "made": pa.binary(), "n_rows": pa.int64()})


def made_of(bucket: int, work: Callable[[], Any], n_rows: int = 0) -> pa.Table:
    """Return what the work makes of a bucket as one row."""
    try:
        made = work()
    except (RecdfError, TypeError) as error:
        made = Failure(error, bucket)
    return pa.table([[bucket], [pickle.dumps(made)], [n_rows]], schema=OF_BUCKET)


def all_made(outcomes: pa.Table, n_buckets: int) -> list[Any]:
    """Return what was made of all buckets, in their order; an error of one is raised."""
    found = [pickle.loads(cell) for cell in outcomes.sort_by("bucket")["made"].to_pylist()]
    for one in found:
        if isinstance(one, Failure):
            raise told(one, n_buckets, "users")
    return found


def shared(engine: Any, one: Any) -> Handle:
    """Return how workers get an object."""
    handle: Handle = engine.share(pickle.dumps(one))
    return handle


@dataclass(frozen=True)
class OnRows:
    """Work on the rows per list of one bucket."""

    work: Handle
    schema: pa.Schema

    def __call__(self, bucket: int, cells: Cells) -> pa.Table:
        with working_on(bucket):
            rows = of_cells(cells, self.schema)
            return made_of(bucket, lambda: opened(self.work)(labels_of_table(rows)), len(rows))


def each_bucket(
    rows: EngineRows,
    work: Callable[[pd.DataFrame], Any],
    columns: Sequence[str],
    keys: Sequence[str],
) -> list[Any]:
    """Return what `work` makes of some columns of each bucket, dealt by the values of `keys`."""
    engine, known = rows.engine, rows.engine.schema(rows.frame)
    names = [name for name in columns if name in known.names]
    schema = pa.schema([(name, decoded(known.field(name).type)) for name in names])
    packing = Packing(keys, keys[0], rows.n_buckets, schema, kept=False)
    packed = engine.each(rows.frame, names, packing, PACKED)
    on_rows = OnRows(shared(engine, work), schema)
    outcomes = engine.collect(engine.meet([packed], rows.n_buckets, on_rows, OF_BUCKET, False))
    rows.check(sum(outcomes["n_rows"].to_pylist()))
    return all_made(outcomes, rows.n_buckets)
