"""Tables of users that are frames of an engine, or files: their rows are dealt by user, and a
function counts in each bucket what it counts of frames in memory.

Contract: a bucket has all rows of its users, as the frames that they would be in memory. Tables of
another kind than the others, such as a frame in memory, are dealt in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pandas as pd
import pyarrow as pa

from ..inputs.data_files import files_there, frame_of_table, needed_frame
from ..inputs.frames import engine_of
from ..inputs.machine import sizes
from ..progress import Progress
from . import dask, spark
from .buckets import Packing
from .engine import watched
from .files_run import BATCH_ROWS, FilesEngine, Memory
from .in_buckets import InBuckets, RowsByRole, check_id_kinds
from .source import Source, plain_schema

# Rows of files that wait for their bucket take so many bytes of memory; later ones are written to a
# temporary file.
KEPT_BYTES = 2**28


def made_by_user(
    work: Callable[..., Any],
    keys: Sequence[str],
    columns: Sequence[str],
    tables: Mapping[str, Any],
    with_ids: bool = False,
) -> list[Any]:
    """Return what the work makes of the tables of each bucket of users; of none where there are no
    rows. It gets the columns of the key, these columns, and those that may be ids if asked for."""
    names = {*keys, *columns}
    kind = next(filter(None, map(engine_of, tables.values())), None)
    own: dict[str, Any] = {}
    others = {}
    for role, one in tables.items():
        if isinstance(one, pd.DataFrame) or engine_of(one) != kind:
            others[role] = needed_frame(one, role, partial(_those_of, names))
        elif kind:
            own[role] = one
        else:
            files_there(one, role)
            own[role] = Source(one, role)
    with ExitStack() as stack:
        engine: Any
        if kind is None:
            engine, n_buckets = _files_engine(stack, own)
        else:
            frames_of: Any = spark.spark_engine if kind == "spark" else dask.dask_engine
            engine = stack.enter_context(frames_of(own, {"user_col": keys}))
            engine, _, n_buckets = watched(engine, own, None)
        known = {role: plain_schema(engine.schema(one)) for role, one in own.items()}
        if with_ids:
            names |= {
                field.name for one in known.values() for field in one if may_be_id(field.type)
            }
        empty = {role: pd.DataFrame(columns=one.names) for role, one in known.items()}
        nothing = work(**empty, **{role: one.iloc[:0] for role, one in others.items()})
        schemas = {}
        for role, one in known.items():
            kinds_of = pa.schema([field for field in one if field.name in names])
            labels = engine.labels(kinds_of.empty_table(), own[role])
            dtypes = pa.Schema.from_pandas(labels, preserve_index=False).metadata
            schemas[role] = kinds_of.with_metadata(dtypes)
        in_memory = {
            role: pa.Table.from_pandas(one[_those_of(names, one)], preserve_index=False)
            for role, one in others.items()
        }
        schemas |= {role: one.schema for role, one in in_memory.items()}
        check_id_kinds(schemas, keys)
        packings = {
            role: Packing(keys, keys[0], n_buckets, schema) for role, schema in schemas.items()
        }
        made, _ = InBuckets(engine, own | in_memory, packings).made(partial(on_frames, work))
    return made or [nothing]


def may_be_id(kind: pa.DataType) -> bool:
    """Whether a column of this type may tell users, or groups of them, apart."""
    no_ids = pa.types.is_floating, pa.types.is_boolean, pa.types.is_timestamp
    return not any(of(kind) for of in no_ids)


def _those_of(names: Collection[str], frame: pd.DataFrame) -> list[str]:
    return [name for name in frame.columns.tolist() if name in names]


def _files_engine(stack: ExitStack, sources: Mapping[str, Source]) -> tuple[FilesEngine, int]:
    n = sum(one.n_rows for one in sources.values())
    progress = stack.enter_context(Progress(n, "the users"))
    batch_rows = dict.fromkeys(sources, BATCH_ROWS)
    memory = Memory(KEPT_BYTES)
    engine = FilesEngine(Path(gettempdir()), batch_rows, memory, sizes().at_once, progress)
    return stack.enter_context(closing(engine)), 1 + n // sizes().summed_rows


def on_frames(work: Callable[..., Any], rows: RowsByRole) -> Any:
    """Run the work on the rows of one bucket."""
    return work(**{role: frame_of_table(table) for role, table in rows.items()})
