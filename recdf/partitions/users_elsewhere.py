"""Tables of users that are frames of an engine, or files: their rows are dealt by user, and a
function counts in each bucket what it counts of frames in memory.

Contract: a bucket has all rows of its users, as the frames that they would be in memory. Tables of
another kind than the others, such as a frame in memory, are dealt in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from pandas import DataFrame

from ..experiments.decide.balance import looks_like_date
from ..inputs.data_files import files_there, frame_of_table, needed_frame
from ..inputs.frames import engine_of
from ..inputs.ids import codes_of_ids
from ..inputs.machine import sizes
from ..inputs.options import ByName, Names
from . import dask, spark
from .engine_run import watched
from .files_run import files_engine
from .in_buckets import users_in_buckets
from .source import Source, plain_schema

# Rows of files that wait for their bucket take so many bytes of memory; later ones are written to a
# temporary file.
KEPT_BYTES = 2**28


def made_by_user(
    work: Callable[..., Any],
    keys: Names,
    columns: Names,
    tables: ByName,
    with_ids: bool = False,
) -> list[Any]:
    """Return what the work makes of the tables of each bucket of users; of none where there are no
    rows. It gets the columns of the key, these columns, and if asked for those that may be ids or
    dates."""
    names = {*keys, *columns}
    kind = next(filter(None, map(engine_of, tables.values())), None)
    frames: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for role, one in tables.items():
        if isinstance(one, DataFrame) or engine_of(one) != kind:
            frames[role] = needed_frame(
                one, role, lambda head: [name for name in head.columns if name in names]
            )
            continue
        if kind is None:
            files_there(one, role)
        frames[role] = own[role] = one if kind else Source(one, role)
    with ExitStack() as stack:
        engine: Any
        if kind is None:
            n_buckets = 1 + sum(one.n_rows for one in own.values()) // sizes().summed_rows
            dealer = files_engine(own, "the users", KEPT_BYTES, at_once=sizes().at_once)
            engine = stack.enter_context(dealer)
        else:
            frames_of: Any = spark.spark_engine if kind == "spark" else dask.dask_engine
            engine = stack.enter_context(frames_of(own, {"user_col": keys}))
            engine, _, n_buckets = watched(engine, own, None)
        known = {role: plain_schema(engine.schema(one)) for role, one in own.items()}
        for role, one in own.items() if with_ids else ():
            rows = engine.head if kind else Source.head
            head = frame_of_table(rows(one, known[role].names, 1))
            names |= {
                name
                for name in map(str, head)
                if codes_of_ids(head[name]) is not None or looks_like_date(head[name])
            }
        nothing = work(
            *(
                DataFrame(columns=known[role].names) if role in known else one[:0]
                for role, one in frames.items()
            )
        )
        read = dict.fromkeys(frames, names)
        dealt = users_in_buckets(engine, frames, read, keys, n_buckets, known)
        made, _ = dealt.made_of_frames(work)
    return made or [nothing]
