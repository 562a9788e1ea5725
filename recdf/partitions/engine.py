"""Evaluate frames of an engine. An engine, such as Spark or Dask, moves rows between machines.

Contract: an `Engine` knows the columns of its frames, runs a function on the chunks of a frame, and
brings the packed rows of a bucket together. A bucket is a part of the lists, all of whose rows one
worker gets. `evaluate_frames` does the rest: it checks the call before any job runs, measures each
bucket on the worker that has its rows, adds the results, and makes both tables. The rows per list
stay in a frame of the engine.

    true, pred ─ each: pack ─► cells by bucket ─ meet: measure ─► results ─ add up ─► summary, spec
                                               └ meet: measure ─► per_user, when it is asked for

A `Run` is one call on frames whose rows are in parts: what is needed of all the rows, and the sum
of all buckets. It deals the rows of both frames to buckets of whole lists. How the buckets are
measured, and where the rows per list go, is up to its subclasses: `EngineRun` for Spark and Dask,
and `FilesRun` for files on one machine.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import IdTypeError
from ..evaluation.carry import nullable
from ..evaluation.evaluate import call_of, checked, evaluate, finish_summary
from ..evaluation.part import Measured, PartResult, measure
from ..inputs.codes import check_kinds, encode
from ..inputs.constraints import a_number, check_value
from ..inputs.ids import IdColumn, read_ids
from ..inputs.list_cells import ItemLists, refuse_joined
from ..inputs.machine import sizes
from ..inputs.options import check_names
from ..matching.list_keys import key_labels
from ..matching.overlap import Overlap, samples_of
from ..matching.side_tables.sides import as_frames, read_sides
from ..metrics.call import Call
from .engine_arguments import Watched, no_order, refuse_ties_by_row
from .engine_methods import (
    Engine,
    EngineRows,
    Handle,
    Here,
    InParts,
    OnBucket,
    Shared,
    as_dtypes,
    digest_of_bytes,
    labels_of_table,
    to_bytes,
)
from .engine_result import EngineEvaluation
from .needed import Needed
from .packed import (
    CELL,
    HEAD_LENGTH,
    PACKED,
    Packing,
    add_in_pairs,
    ascending,
    bucket_of,
    cast_table,
    distinct_rows,
    given_ids,
    known_rows,
    part_of,
    places_by_bucket,
)
from .source import frame_of_arrow
from .work import (
    GAIN,
    Distinct,
    Gains,
    Listing,
    Measuring,
    adding_up,
    part_of_bucket,
)


def distinct_values(
    engine: InParts,
    frame: Any,
    schema: pa.Schema,
    lists: ItemLists | None = None,
) -> pa.Table:
    """Return the distinct values of some columns: in order of first appearance if the engine keeps
    an order of rows, else sorted."""
    names = schema.names if lists is None else lists.names(schema.names)
    lists = lists if lists is not None and lists.hold_lists(engine.schema(frame)) else None
    found = engine.collect(engine.each(frame, names, Distinct(schema, lists), schema))
    values = distinct_rows(known_rows(cast_table(found, schema), schema.names))
    return values if engine.ordered else ascending(values)


class Run:
    """One call on frames whose rows are in parts."""

    def __init__(
        self,
        engine: InParts,
        frames: Mapping[str, Any],
        needed: Needed,
        n_buckets: int,
    ) -> None:
        self.engine, self.frames, self.needed, self.n_buckets = engine, frames, needed, n_buckets

    @property
    def call(self) -> Call:
        return self.needed.call

    @property
    def handle(self) -> Handle | Here:
        """How workers get what they share."""
        raise NotImplementedError

    def _finished(
        self, results: PartResult | None
    ) -> tuple[Measured, pd.DataFrame, dict[str, Any]]:
        """Raise the errors and give the warnings of all buckets. Return their numbers, the summary,
        and the spec.

        None stands for the result where there is no row.
        """
        if results is None:
            empty = {role: schema.empty_table() for role, schema in self.needed.schemas.items()}
            results = measure(self.shared.call, part_of_bucket(self.shared, 0, empty))
        measured = checked(self.call, results)
        measured = replace(
            measured,
            by=self.by_frame,
            order=self.needed.order,
            relevance_col=self.needed.relevance,
            overlap=self._compared(measured.overlap),
        )
        summary, spec = finish_summary(self.call, replace(results, measured=measured))
        summary.attrs["recdf"] = spec
        return measured, summary, dict(spec)

    # ----------------------------------------------------------------------- facts that need all
    # the rows

    def check_kinds(self, without_order: bool = False) -> None:
        """Raise if, by their first rows, two columns have ids that can never be equal, or texts
        hold several items."""
        try:
            found = self._id_columns()
        except IdTypeError as error:
            if all(len(head) < HEAD_LENGTH for head in self.heads.values()):
                raise
            raise error.within(
                after=f" (found in the first {HEAD_LENGTH} rows; counts are of those)"
            ) from error
        if "true" in self.frames:
            refuse_joined(
                found[-1][0], found[-1][1], [one[1] for one in found[:-1]] if without_order else []
            )
        for columns in found:
            check_kinds(columns)

    @cached_property
    def heads(self) -> dict[str, pa.Table]:
        """Some rows of each frame, for messages."""
        ids = [*self.needed.keys, self.call.options.item_col]
        lists = self.needed.lists
        return {
            role: lists[role]
            .table(self.engine.head(frame, lists[role].names(ids), HEAD_LENGTH))
            .select(ids)
            for role, frame in self.frames.items()
        }

    def _id_columns(self) -> list[list[IdColumn]]:
        return self.needed.id_columns(
            {role: frame_of_arrow(head) for role, head in self.heads.items()}
        )

    @cached_property
    def by_values(self) -> pa.Table | None:
        """The `by` values of `pred`: in order of first appearance if the engine keeps an order of
        rows, else sorted."""
        names = self.needed.by
        if not names:
            return None
        assert (
            self.packed
        )  # comes first, so that an engine can read a frame once for all that it is asked of it
        schema = pa.schema([self.needed.schemas["pred"].field(name) for name in names])
        return distinct_values(self.engine, self.frames["pred"], schema)

    @cached_property
    def by_frame(self) -> pd.DataFrame:
        """The labels of the `by` values; one row without columns where there is no `by`."""
        if self.by_values is None:
            return pd.DataFrame(index=range(1))
        labels = self.engine.labels(self.by_values, self.frames["pred"])
        return labels.set_axis(pd.Index(map(str, labels.columns)), axis=1)

    def _knowing(self) -> Call:
        """Return the call. If a metric needs the largest gain of `true`, the call then knows it."""
        if (
            all(one.params.get("max_gain", 0) is not None for one in self.call.requests)
            or "true" not in self.frames
        ):
            return self.call
        if self.needed.relevance is None:
            return self.call.knowing(max_gain=1.0)
        assert self.packed
        lists = self.needed.lists["true"]
        work = Gains(
            self.needed.relevance, self.call.options, self.call.given.get("exclude"), lists
        )
        found = self.engine.each(
            self.frames["true"], lists.names([*work.ids, work.column]), work, GAIN
        )
        return self.call.knowing(
            max_gain=max(self.engine.collect(found)["gain"].to_pylist(), default=0.0)
        )

    @cached_property
    def shared(self) -> Shared:
        """What every worker needs."""
        given, bucket = self.needed.given, None
        if given is not None:
            bucket = part_of([given_ids(given[name]) for name in self.needed.keys], self.n_buckets)
        by_values = None if self.by_values is None else frame_of_arrow(self.by_values)
        call, edges = self._dealt_exclude(self._knowing())
        return Shared(call, by_values, given, bucket, edges)

    def _dealt_exclude(self, call: Call) -> tuple[Call, np.ndarray | None]:
        """Sort the rows of `exclude=` by bucket if they have all columns of the list key; return
        where each begins."""
        frame, keys, item = call.given.get("exclude"), self.needed.keys, call.options.item_col
        if frame is None or not set(keys) <= set(frame.columns):
            return call, None
        ids = pa.table([given_ids(frame[name]) for name in (*keys, item)], names=[*keys, item])
        order, edges = places_by_bucket(bucket_of(ids, keys, item, self.n_buckets), self.n_buckets)
        own = key_labels(frame, [*keys, item], order)
        return replace(call, given={**call.given, "exclude": own}), edges

    @cached_property
    def packed(self) -> dict[str, Any]:
        """Both frames with their rows packed by bucket."""
        return {
            role: self.engine.each(
                self.frames[role],
                self.needed.names(role),
                replace(self._packing(self.needed.keys, schema), lists=self.needed.lists[role]),
                PACKED,
            )
            for role, schema in self.needed.schemas.items()
        }

    def _packing(self, keys: Sequence[str], schema: pa.Schema) -> Packing:
        return Packing(keys, self.call.options.item_col, self.n_buckets, schema)

    def _meet(self, work: OnBucket, schema: pa.Schema) -> Any:
        every = self.needed.given is not None  # the caller may have given lists that have no row
        return self.engine.meet(list(self.packed.values()), self.n_buckets, work, schema, every)

    def _compared(self, overlap: Overlap) -> Overlap:
        """Complete the overlap: where a `by` value has no hit, compare its ids with those of `true`
        in all buckets.

        `overlap.silent` has the numbers of these `by` values. If there are none, no job runs.
        """
        if not all(overlap.in_sides.values()):
            of_sides = read_sides(self.call.given, self.call.options).samples
            overlap = replace(overlap, samples={**overlap.samples, **self._samples(), **of_sides})
        if not overlap.n_true_rows or not overlap.n_pred_rows or not len(overlap.silent):
            return overlap
        nothing, item = not overlap.n_judged.any(), self.call.options.item_col
        if nothing:
            pred = self._distinct("pred", [item])
        else:
            listed = pa.schema([("by", pa.int64()), self.needed.schemas["pred"].field(item)])
            work = Listing(self.handle, self.needed.schemas, listed, overlap.silent)
            pred = self.engine.collect(self._meet(work, listed))
        both = [
            frame_of_arrow(one.select([item])) for one in (self._distinct("true", [item]), pred)
        ]
        of_true, of_pred = encode([read_ids(one[item], item) for one in both]).columns
        in_true = np.isin(of_pred.all(), of_true.all())
        if nothing:
            samples = {**overlap.samples, **self._samples()}
            return replace(overlap, shares_item=bool(in_true.any()), samples=samples)
        shares = overlap.by_shares_item.copy()
        shares[pred["by"].to_numpy()[in_true]] = True
        return replace(overlap, by_shares_item=shares)

    def _distinct(self, role: str, names: list[str]) -> pa.Table:
        """Return the distinct values of some columns of the long form of a frame."""
        schema = pa.schema([self.needed.schemas[role].field(name) for name in names])
        return distinct_values(self.engine, self.frames[role], schema, self.needed.lists[role])

    def _samples(self) -> dict[str, str]:
        """Return two ids of each frame, from its first rows."""
        samples: dict[str, str] = {}
        for role, columns in zip(self.frames, zip(*self._id_columns(), strict=False), strict=False):
            *keys, one = columns
            samples |= samples_of(role, keys, one)
        return samples


MOST_BUCKETS = 2**16 - 1


def evaluate_frames(
    engine: Any,
    frames: Mapping[str, Any],
    function: Callable[..., Any],
    metrics: Any,
    k: Any,
    options: Mapping[str, Any],
    partitions: int | None,
) -> EngineEvaluation:
    """Evaluate frames of an engine. The summary is computed at once, and the rows per list when
    they are used.

    `engine` has the methods of `Engine`. `frames` are `true`, which may be None, and `pred`. The
    rest are the arguments of `function`, the `evaluate` of the engine, as the caller gave them:
    `options` are the shared options and the side tables, by name, which may be frames of the engine
    too, and `partitions` is the number of buckets, or None for the default of the engine.
    """
    given = {role: frame for role, frame in frames.items() if frame is not None}
    n_buckets = buckets_of(engine, given, partitions)
    engine = Watched(engine, n_buckets)
    known = signature(function).parameters.values()
    names = ["k", *(one.name for one in known if one.kind is one.KEYWORD_ONLY)]
    check_names(options, names, f"rd.{engine.name.lower()}.evaluate")
    in_memory = {name: engine.local(value) for name, value in options.items()}
    call = call_of(evaluate, metrics, k, in_memory, given.get("true"))
    refuse_ties_by_row(call.options, options, engine.name)
    call = replace(call, given=as_frames(call.given, call.options))  # since every part reads them
    schemas = {role: engine.schema(frame) for role, frame in given.items()}
    needed = Needed.of(call, schemas)
    run = EngineRun(engine, given, needed, n_buckets)
    if needed.order["by"] == "row" and not needed.lists["pred"].hold_lists(schemas["pred"]):
        with suppress(IdTypeError):
            run.check_kinds(
                without_order=True
            )  # tells of texts that hold several items, which have an order
        raise no_order(call.options, frame_of_arrow(schemas["pred"].empty_table()), engine.name)
    return run.result()


def buckets_of(engine: Engine, frames: Mapping[str, Any], given: int | None) -> int:
    """Return the number of buckets that the caller asked for, or else the default of the engine."""
    if given is None:
        return max(1, min(engine.n_buckets(*frames.values()), MOST_BUCKETS))
    return int(check_value("partitions", given, a_number(1, MOST_BUCKETS, whole=True)))


class EngineRun(Run):
    """One call on frames of an engine."""

    engine: Engine

    def result(self) -> EngineEvaluation:
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
        results = map(pickle.loads, self.engine.collect(cells)["cell"].to_pylist())
        total: PartResult | None = add_in_pairs(sorted(results, key=lambda one: min(one.buckets)))
        return total

    # -------------------------------------------------------------------------------------------
    # labels

    def _labels(self, table: pa.Table) -> pd.DataFrame:
        """Return the rows per list in the dtypes that `evaluate` gives them."""
        pred = self.frames["pred"]
        by, keys, carried = self.needed.by, list(map(str, self.needed.keys)), list(self.call.carry)
        roles = [role for role in self.call.options.population.frames if role in self.frames]
        if self.needed.given is None:
            key_frame = self._key_labels(table.select(keys), roles or ["pred"])
        else:
            key_frame = as_dtypes(
                labels_of_table(table.select(keys)), dict(self.needed.given.dtypes)
            )
        rest = [name for name in table.column_names if name not in (*by, *keys, *carried)]
        labels = [self.engine.labels(table.select(names), pred) for names in (by, carried)]
        found: pd.DataFrame = pd.concat(
            [labels[0], key_frame, labels[1], table.select(rest).to_pandas()], axis=1
        )
        return found

    def _key_labels(self, keys: pa.Table, roles: Sequence[str]) -> pd.DataFrame:
        """Return the keys in the dtypes of the first frame, but those of two frames with other
        categories as values."""
        dtypes = [self.engine.labels(keys.slice(0, 0), self.frames[role]).dtypes for role in roles]
        found, plain = self.engine.labels(keys, self.frames[roles[0]]), labels_of_table(keys)
        for name in found.columns:
            kinds = [one[name] for one in dtypes]
            if any(kind != kinds[0] and "category" in (kind, kinds[0]) for kind in kinds):
                found[name] = plain[name]
        return found
