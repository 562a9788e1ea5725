"""`rd.spark.check` and `rd.dask.check`: all rows of a user go to one bucket, each bucket is
checked, and the findings add up.

    true, pred, log ─ each: pack ─► cells by bucket ─ meet: check ─► findings ─ add up ─► table
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa

from ..diagnostics.data_checks import (
    check_options,
    columns_to_check,
    findings_of_parts,
    findings_of_users,
)
from ..docstrings import says_as
from ..inputs.frames import id_frame
from ..inputs.options import as_columns
from ..metrics.call import check_k
from .buckets import Packing, add_in_pairs
from .engine import buckets_of, distinct_values
from .engine_arguments import Watched, no_order
from .in_buckets import InBuckets, RowsByRole
from .source import frame_of_arrow, plain_schema

SAYS = """\
Find what is unusual in frames of {Engine}, and how it affects the metrics: those findings of
`rd.check` that add up over users.

Parameters
----------
true, pred, log : DataFrame of {Engine}
    As in `rd.check`.
k : int, default 10
    Cut-off that the findings refer to.
items : DataFrame, list, Series or Index, optional
    Catalogue, which must fit in memory.
partitions : int, optional
    Number of buckets that the users are distributed to, as in `rd.{space}.evaluate`.
**options
    The shared options, as in `rd.check`.

Returns
-------
DataFrame
    As `rd.check` returns it, in memory: null ids, scores and ranks, broken relevance and weights,
    rows twice, lists without recommendations, truth or relevant items, short lists, ties, ranks
    that do not start at 1 or have gaps, items outside the catalogue or in the log already. What
    needs all rows together is left out: ids without overlap, columns that nothing uses, candidates
    that look sampled, orders that contradict each other, and what ties do to the metrics. The
    examples are those of the first buckets.

Examples
--------
>>> rd.{space}.check(true, pred, by="model")  # doctest: +SKIP"""


def check_on_engine(
    engine_of: Callable[..., AbstractContextManager[Any]], name: str
) -> Callable[..., pd.DataFrame]:
    """Return `check` for frames of an engine."""

    def check(
        true: Any,
        pred: Any,
        k: int = 10,
        *,
        log: Any = None,
        items: Any = None,
        partitions: int | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        settled, k = check_options(options), check_k(k)
        given = {"true": true, "pred": pred} | ({} if log is None else {"log": log})
        with engine_of(given, options) as engine:
            n_buckets = buckets_of(engine, given, partitions)
            engine = Watched(engine, n_buckets)
            if items is not None:
                items = id_frame(engine.local(items), "items", [settled.item_col]).dropna()
            schemas = {role: plain_schema(engine.schema(one)) for role, one in given.items()}
            nothing = {role: one.empty_table() for role, one in schemas.items()}
            empty = {role: frame_of_arrow(one) for role, one in nothing.items()}
            columns = columns_to_check(empty, settled)
            keys, by, item = as_columns(settled.user_col), as_columns(settled.by), settled.item_col
            if set(columns["pred"]) == {*keys, *by, item}:
                raise no_order(settled, empty["pred"], engine.name)
            of_by = pa.schema([schemas["pred"].field(one) for one in by])
            by_values = frame_of_arrow(distinct_values(engine, pred, of_by)) if by else None
            read = {role: one.select(columns[role]) for role, one in nothing.items()}
            packings = {
                role: Packing(keys, item, n_buckets, one.schema) for role, one in read.items()
            }
            work = partial(findings_of_rows, k=k, options=settled, items=items, by_values=by_values)
            parts, _ = InBuckets(engine, given, packings).made(work)
            return findings_of_parts(add_in_pairs(parts or [work(read)]))

    check.__doc__ = SAYS
    check.__qualname__ = check.__name__
    return says_as({"Engine": name, "space": name.lower()})(check)


def findings_of_rows(rows: RowsByRole, **how: Any) -> Any:
    """Check the rows of one bucket of users."""
    return findings_of_users({role: frame_of_arrow(one) for role, one in rows.items()}, **how)
