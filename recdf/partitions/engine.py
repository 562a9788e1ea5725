"""Evaluate frames of an engine. An engine, such as Spark or Dask, moves rows between machines.

Contract: an `Engine` knows the columns of its frames, runs a function on the chunks of a frame, and brings the packed
rows of a bucket together. A bucket is a part of the lists, all of whose rows one worker gets. `evaluate_frames` does
the rest: it checks the call before any job runs, measures each bucket on the worker that has its rows, adds the
results, and makes both tables. The rows per list stay in a frame of the engine.

    true, pred ─ each: pack ─► cells by bucket ─ meet: measure ─► results ─ add up ─► summary, spec
                                               └ meet: measure ─► per_user, when it is asked for
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from typing import Any

import pandas as pd
import pyarrow as pa

from ..evaluation.carry import nullable
from ..evaluation.evaluate import evaluate
from ..evaluation.evaluate_arguments import call_of
from ..evaluation.part import PartResult
from ..inputs.constraints import a_number, check_value
from ..inputs.options import check_names
from ..inputs.sizes import sizes
from ..matching.side_tables.records import as_frames
from ..metrics.call import Call
from .engine_arguments import no_order, refuse_ties_by_row
from .engine_errors import watched
from .engine_methods import Engine, EngineFrame, EngineRows, as_dtypes, labels_of_table
from .engine_result import EngineEvaluation
from .needed import Needed
from .packed import CELL, add_in_pairs
from .run import Run
from .shipped import Handle, digest_of_bytes, to_bytes
from .source import frame_of_arrow
from .work import Measuring, adding_up, result_of

MOST_BUCKETS = 2**16 - 1


@dataclass(frozen=True)
class Asked:
    """The arguments of an engine's `evaluate`, as the caller gave them.

    metrics, k : as in `rd.evaluate` · options : the shared options and the side tables, by name · partitions : the
    number of buckets, from 1 to 65,535, or None for the default of the engine · own : names of the arguments that only
    the engine has, for the message about an unknown option.
    """

    metrics: Any
    k: Any
    options: Mapping[str, Any]
    partitions: int | None
    own: Sequence[str] = ("partitions",)


def evaluate_frames(
    engine: Engine[EngineFrame], true: EngineFrame | None, pred: EngineFrame, asked: Asked, n_buckets: int
) -> EngineEvaluation[EngineFrame]:
    """Evaluate frames of an engine. The summary is computed at once, and the rows per list when they are used.

    Parameters
    ----------
    engine : Engine
        An object with the methods of `Engine`.
    true, pred : frames of the engine
        The same columns as for `rd.evaluate`. `true` may be None if no metric needs it.
    asked : Asked
        The arguments of the caller: metrics, `k`, the options with the side tables, and `partitions`.
    n_buckets : int
        The number of buckets if `asked.partitions` is None, such as the number of partitions of `pred`. A larger
        number than 65,535 counts as 65,535.

    Returns
    -------
    EngineEvaluation
        `.per_user` is a lazy frame of the engine. `.summary` and `.spec` are those of `rd.evaluate`.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError, UndefinedMetricError
        For the same reasons as in `rd.evaluate`.
    EngineError
        If a method of the engine raises another error.
    """
    n_buckets = buckets_of(asked, n_buckets)
    engine = watched(engine, n_buckets)
    call = engine_call(engine, true, asked)
    frames = {"pred": pred} if true is None else {"true": true, "pred": pred}
    needed = Needed.of(call, {role: engine.schema(frame) for role, frame in frames.items()})
    if needed.order["by"] == "row":
        raise no_order(call.options, frame_of_arrow(engine.schema(pred).empty_table()), engine.name)
    return EngineRun(engine, frames, needed, n_buckets).result()


def engine_call(engine: Engine[Any], true: Any, asked: Asked) -> Call:
    """Check the arguments and return the call. Side tables and `users=` may be frames of the engine."""
    what = f"rd.{engine.name.lower()}.evaluate"
    by_name = [name for name, one in signature(evaluate).parameters.items() if one.kind is one.KEYWORD_ONLY]
    check_names(asked.options, ["k", *asked.own, *by_name], what)
    options = {name: engine.local(value) for name, value in asked.options.items()}
    call = call_of(evaluate, asked.metrics, asked.k, options, true)
    refuse_ties_by_row(call.options, asked.options, engine.name)
    return replace(call, given=as_frames(call.given, call.options))  # since every part reads them


def buckets_of(asked: Asked, n_buckets: int) -> int:
    """Return the number of buckets that the caller asked for, or else the default of the engine."""
    given = asked.partitions
    if given is None:
        return max(1, min(n_buckets, MOST_BUCKETS))
    return int(check_value("partitions", given, a_number(1, MOST_BUCKETS, whole=True)))


class EngineRun(Run[EngineFrame]):
    """One call on frames of an engine."""

    engine: Engine[EngineFrame]

    def result(self) -> EngineEvaluation[EngineFrame]:
        if self.needed.kinds_differ():
            self.check_kinds()
        measured, summary, spec = self._finished(self._total())
        work = Measuring(self.handle, self.needed.schemas, self.needed.per_user)
        empty = self._labels(self.needed.per_user.empty_table())
        for name in self.call.carry:  # they are null for lists without rows of pred
            empty[name] = nullable(empty[name])
        per_user = self.engine.typed(self._meet(work, self.needed.per_user), empty)
        n_rows = int(measured.n_lists.sum())
        by = self.by_frame[measured.n_lists > 0].reset_index(drop=True)
        rows = EngineRows(self.engine, per_user, empty, by, n_rows, self.n_buckets, self._labels)
        return EngineEvaluation(rows, summary, spec)

    @cached_property
    def handle(self) -> Handle:
        data = to_bytes(self.shared)
        return self.engine.share(data, digest_of_bytes(data))

    def _total(self) -> PartResult | None:
        """Measure all buckets and add the results."""
        cells = self._meet(Measuring(self.handle, self.needed.schemas), CELL)
        if self.n_buckets > sizes().summed_buckets:
            cells = self.engine.each(cells, CELL.names, adding_up, CELL)
        results = map(result_of, self.engine.collect(cells)["cell"])
        total: PartResult | None = add_in_pairs(sorted(results, key=lambda one: min(one.buckets)))
        return total

    # ------------------------------------------------------------------------------------------- labels

    def _labels(self, table: pa.Table) -> pd.DataFrame:
        """Return the rows per list in the dtypes that `evaluate` gives them."""
        pred = self.frames["pred"]
        by, keys, carried = self.needed.by, list(map(str, self.needed.keys)), list(self.call.carry)
        roles = [role for role in self.call.options.population.frames if role in self.frames]
        if self.needed.given is None:
            key_frame = self._key_labels(table.select(keys), roles or ["pred"])
        else:
            key_frame = as_dtypes(labels_of_table(table.select(keys)), dict(self.needed.given.dtypes))
        rest = [name for name in table.column_names if name not in (*by, *keys, *carried)]
        labels = [self.engine.labels(table.select(names), pred) for names in (by, carried)]
        found: pd.DataFrame = pd.concat([labels[0], key_frame, labels[1], table.select(rest).to_pandas()], axis=1)
        return found

    def _key_labels(self, keys: pa.Table, roles: Sequence[str]) -> pd.DataFrame:
        """Return the keys in the dtypes of the first frame, but those of two frames with other categories as values."""
        dtypes = [self.engine.labels(keys.slice(0, 0), self.frames[role]).dtypes for role in roles]
        found, plain = self.engine.labels(keys, self.frames[roles[0]]), labels_of_table(keys)
        for name in found.columns:
            kinds = [one[name] for one in dtypes]
            if any(kind != kinds[0] and "category" in (kind, kinds[0]) for kind in kinds):
                found[name] = plain[name]
        return found
