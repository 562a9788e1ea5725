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
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas import DataFrame
from pyarrow import Schema, Table

from ..errors import IdTypeError, OptionError
from ..evaluation.evaluate import call_of, checked, evaluate, finish_summary
from ..evaluation.part import Measured, PartResult, measure
from ..evaluation.result import Evaluation, Result
from ..evaluation.storage import local_path, part_sizes, sorted_rows, staged_parts
from ..inputs.codes import check_kinds, encode
from ..inputs.constraints import a_number, check_value
from ..inputs.frames import OneRecord
from ..inputs.ids import IdColumn, alike_ids, nullable, read_ids
from ..inputs.list_cells import ItemLists, refuse_joined
from ..inputs.machine import sizes
from ..inputs.options import ByName, Names, check_names
from ..judge.choices import Columns, NamedMetrics, RaiseOrDrop
from ..matching.list_keys import key_labels
from ..matching.overlap import Overlap, samples_of
from ..matching.side_tables.sides import as_frames, read_sides
from .buckets import (
    CELL,
    GAIN,
    HEAD_LENGTH,
    Distinct,
    Gains,
    Measuring,
    Packing,
    add_in_pairs,
    adding_up,
    as_part,
    ascending,
    bucket_of,
    cast_table,
    distinct_rows,
    given_ids,
    hash_buckets,
    items_of_bucket,
    known_rows,
    places_by_bucket,
)
from .engine_contract import (
    Engine,
    Handle,
    InParts,
    Shared,
    Watched,
    as_dtypes,
    labels_of_table,
    no_order,
    ties_by_row,
)
from .in_buckets import EngineRows, InBuckets, made_of_rows, moments_of_rows
from .needed import Needed
from .source import frame_of_arrow


def distinct_values(engine: InParts, frame: Any, schema: Schema) -> Table:
    """Return the distinct values of some columns: in order of first appearance if the engine keeps
    an order of rows, else sorted."""
    found = engine.collect(engine.each(frame, schema.names, Distinct(schema), schema))
    values = distinct_rows(known_rows(cast_table(found, schema), schema.names))
    return values if engine.ordered else ascending(values)


class Run:
    """One call on frames whose rows are in parts."""

    def __init__(self, engine: InParts, frames: ByName, needed: Needed, n_buckets: int) -> None:
        self.engine, self.frames, self.needed, self.n_buckets = engine, frames, needed, n_buckets
        self.call = needed.call

    @cached_property
    def handle(self) -> Handle | Shared:
        """How workers get what they share, or what they share itself."""
        return self.engine.sent(self.shared)

    def finished(self, results: PartResult | None) -> tuple[Measured, DataFrame, dict[str, Any]]:
        """Raise the errors and give the warnings of all buckets. Return their numbers, the summary,
        and the spec.

        None stands for the result where there is no row.
        """
        if results is None:
            empty = {role: schema.empty_table() for role, schema in self.needed.schemas.items()}
            results = measure(self.shared.call, as_part(self.shared, 0, empty))
        measured = checked(self.call, results)
        measured = replace(measured, by=self.by_frame, overlap=self._compared(measured.overlap))
        summary, spec = finish_summary(self.call, replace(results, measured=measured))
        summary.attrs["recdf"] = spec
        return measured, summary, dict(spec)

    # ------------------------------------------------------------------------------------------
    # facts that need all the rows

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
    def heads(self) -> dict[str, Table]:
        """Some rows of each frame, for messages."""
        ids = self.call.options.pair
        lists = self.needed.lists
        return {
            role: lists[role]
            .table(self.engine.head(frame, lists[role].names(ids), HEAD_LENGTH))
            .select(ids)
            for role, frame in self.frames.items()
        }

    @cached_property
    def by_values(self) -> Table | None:
        """The `by` values of `pred`: in order of first appearance if the engine keeps an order of
        rows, else sorted."""
        names = self.needed.by
        if not names:
            return None
        # The dealing is asked for first: an engine reads a frame once for all that it was asked.
        _ = self.dealt
        schema = pa.schema([self.needed.schemas["pred"].field(name) for name in names])
        return distinct_values(self.engine, self.frames["pred"], schema)

    @cached_property
    def by_frame(self) -> DataFrame:
        """The labels of the `by` values; one row without columns where there is no `by`."""
        if self.by_values is None:
            return DataFrame(index=range(1))
        labels = self.engine.labels(self.by_values, self.frames["pred"])
        return labels.set_axis(pd.Index(map(str, labels.columns)), axis=1)

    @cached_property
    def shared(self) -> Shared:
        """What every worker needs. If a metric needs the largest gain of `true`, the call knows it.
        The rows of `exclude=` are sorted by bucket if they have all columns of the list key."""
        given = self.needed.given
        keys = self.needed.keys
        n_buckets = self.n_buckets
        bucket = edges = None
        if given is not None:
            bucket = hash_buckets([given_ids(given[name]) for name in keys], n_buckets)
        by_values = None if self.by_values is None else frame_of_arrow(self.by_values)
        call = self.call
        relevance = self.needed.relevance
        frame = call.given.get("exclude")
        item = call.options.item_col
        unknown = any(one.params.get("max_gain", 0) is None for one in call.requests)
        if unknown and "true" in self.frames:
            largest = [1.0]
            if relevance is not None:
                _ = self.dealt  # first, as for the `by` values
                lists = self.needed.lists["true"]
                names = lists.names([*keys, item, relevance])
                work = Gains(relevance, call.options, frame, lists)
                found = self.engine.each(self.frames["true"], names, work, GAIN)
                largest = self.engine.collect(found)["gain"].to_pylist()
            call = call.knowing(max_gain=max(largest, default=0.0))
        if frame is not None and set(keys) <= set(frame.columns):
            names = [*keys, item]
            ids = pa.table([given_ids(frame[name]) for name in names], names=names)
            order, edges = places_by_bucket(bucket_of(ids, keys, item, n_buckets), n_buckets)
            call = replace(call, given={**call.given, "exclude": key_labels(frame, names, order)})
        return Shared(call, by_values, given, bucket, edges)

    @cached_property
    def dealt(self) -> InBuckets:
        """Both frames with their rows packed by bucket."""
        packings = {
            role: self._packing(schema, self.needed.lists[role])
            for role, schema in self.needed.schemas.items()
        }
        every = self.needed.given is not None  # the caller may have given lists that have no row
        return InBuckets(self.engine, self.frames, packings, every)

    def _packing(self, schema: Schema, lists: ItemLists) -> Packing:
        item = self.call.options.item_col
        return Packing(self.needed.keys, item, self.n_buckets, schema, kept=True, lists=lists)

    def _compared(self, overlap: Overlap) -> Overlap:
        """Complete the overlap: where a `by` value has no hit, compare its ids with those of `true`
        in all buckets.

        `overlap.silent` has the numbers of these `by` values. If there are none, no job runs.
        """
        nothing = "true" in self.frames and not overlap.n_judged.any()
        if nothing or not all(overlap.in_sides.values()):
            of_sides = read_sides(self.call.given, self.call.options).samples
            overlap = replace(overlap, samples={**overlap.samples, **self._samples(), **of_sides})
        if not overlap.n_true_rows or not overlap.n_pred_rows or not len(overlap.silent):
            return overlap
        silent = None if nothing else overlap.silent
        work = partial(items_of_bucket, handle=self.handle, silent=silent)
        found, _ = self.dealt.results_of_buckets(work)
        pred = pd.concat([one for one, _ in found])
        true = pd.concat([one for _, one in found])
        ids = [read_ids(one, self.call.options.item_col) for one in (pred["item"], true)]
        of_pred, of_true = encode(ids).columns
        in_true = np.isin(of_pred.all(), of_true.all())
        if nothing:
            return replace(overlap, shares_item=bool(in_true.any()))
        shares = overlap.by_shares_item.copy()
        shares[pred["by"].to_numpy()[in_true]] = True
        return replace(overlap, by_shares_item=shares)

    def _samples(self) -> dict[str, str]:
        """Return two ids of each frame, from those of its first rows that have all ids."""
        samples: dict[str, str] = {}
        for role, columns in zip(self.frames, zip(*self._id_columns(), strict=False), strict=False):
            *keys, one = columns
            samples |= samples_of(role, keys, one)
        return samples

    def _id_columns(self) -> list[list[IdColumn]]:
        """Return groups of columns whose ids are compared with each other, read from those of the
        first rows of each frame that have all ids."""
        heads = {role: known_rows(head, head.column_names) for role, head in self.heads.items()}
        frames = {role: frame_of_arrow(head) for role, head in heads.items()}
        return [
            [*(read_ids(head[name], f"{role}[{name!r}]") for role, head in frames.items()), *sides]
            for name, sides in self.needed.beside.items()
        ]


class EngineEvaluation(Result):
    """Result of `rd.spark.evaluate` and `rd.dask.evaluate`: a summary in memory and lazy rows per
    list.

    Attributes
    ----------
    per_user
        A frame of the engine with one row per list. It has the `by` columns, the list key columns,
        `n_true`, `n_pred` and one column per metric. It is lazy: whenever its rows are used, they
        are computed again from the frames that were evaluated. The rows have no particular order.
    summary : DataFrame
        The summary as `rd.evaluate` returns it, a pandas frame.
    spec : dict
        JSON-safe record of what was computed, as `rd.evaluate` returns it.
    """

    def __init__(self, rows: EngineRows, summary: DataFrame, spec: ByName) -> None:
        self._rows, self._summary, self._spec = rows, summary, OneRecord(spec)

    @property
    def per_user(self) -> Any:
        """A lazy frame of the engine with one row per list."""
        return self._rows.frame

    def to_pandas(self) -> Evaluation:
        """Return the result in memory, for `join_experiment`, `compare_models`, `rd.summarize` and
        pictures.

        Use it where one row per list fits in memory. Where it does not, use `per_user` or
        `to_parquet`.

        Returns
        -------
        Evaluation
            Its `per_user` is sorted by `by` value, in the order of the summary, and then by list
            key.
        """
        table = self._rows.engine.collect(self._rows.frame)
        self._rows.check(len(table))
        per_user = sorted_rows(self._rows.labels(table), self._rows.by, self._spec["user_col"])
        per_user.attrs["recdf"] = self._spec
        return Evaluation(per_user, self._summary, self._spec)

    rows_stay = True  # in a frame of the engine; they are read in buckets of users

    @property
    def empty_rows(self) -> DataFrame:
        """The columns and dtypes of `per_user`, and what was evaluated."""
        empty = self._rows.empty.copy(deep=False)
        empty.attrs = {"recdf": self.spec}
        return empty

    @property
    def by_values(self) -> DataFrame:
        """The `by` values of the rows."""
        return self._rows.by

    def each_bucket(
        self, work: Callable[[DataFrame], Any], columns: Names, keys: Names
    ) -> list[Any]:
        """Return what `work` makes of some columns of each bucket; `keys` deal the rows."""
        rows = self._rows
        found, n_rows = made_of_rows(rows.engine, rows.frame, work, columns, keys, rows.n_buckets)
        rows.check(n_rows)
        return found

    def variant_moments(
        self,
        assignment: Any,
        metrics: Columns | Mapping[str, Any] | None = None,
        *,
        covariates: NamedMetrics | None = None,
        user_col: Columns | None = None,
        variant_col: str = "variant",
        by: Columns | None = None,
        nan: RaiseOrDrop = "raise",
        **options: Any,
    ) -> DataFrame:
        """Join the rows to an experiment's assignment, and reduce the users to the moments of each
        variant.

        The result is that of `rd.experiments.variant_moments` on the users that `join_experiment`
        gives in memory. Here every worker joins and reduces the users of its buckets, and no rows
        come to this process.

        Parameters
        ----------
        assignment : DataFrame or frame of the engine
            One row per assigned user: key, `variant_col`, and further columns (segments, pre-period
            metrics). A pandas frame is sent to every worker. If a user stands there twice with the
            same variant, one of the rows counts.
        metrics : str, list of str or mapping, optional
            Columns of `per_user` or of `assignment`, or "has_metrics", 1 for users with rows; also
            name → (numerator, denominator), a ratio of sums. Default: the metrics of the
            evaluation.
        covariates : str, list of str or mapping, optional
            Columns from before the experiment, as in `rd.experiments.variant_moments`.
        user_col : str or list of str, optional
            Key of the assignment. Default: the columns of the list key that it has.
        variant_col : str, default "variant"
            Column of `assignment` with the variant. If the evaluation is `by` this column too, only
            the lists that a user was shown under the assigned variant count.
        by : str or list of str, optional
            Segments: `by` columns of the evaluation, and columns of the assignment. Default: those
            of the evaluation.
        nan : {"raise", "drop"}, default "raise"
            Users whose metric is null: error, or leave them out of that metric and count them in
            `n_null`.
        **options
            `missing`, `multi_variant`, `unassigned`, `smaller_is_better`, `larger_is_better`,
            `how`, `over`, as in `rd.join_experiment`.

        Returns
        -------
        DataFrame
            One row per (`by`, variant, metric) in memory, for
            `rd.experiments.compare_variants_from_moments`.

        Raises
        ------
        ColumnError, IdTypeError, NullKeyError, DuplicateError, DataError
            As `rd.join_experiment` and `rd.experiments.variant_moments`. Where a message counts
            rows or users, it says that they are those of one bucket.
        OptionError
            An unknown option value, or times of exposure, which need all users together.
        EngineError
            If a job of the engine fails.

        Notes
        -----
        Use it where the users do not fit in memory. Do not use it where they do: after
        `to_pandas()`, `rd.compare_variants` also takes strata, clusters, weights and resampling.

        Examples
        --------
        >>> moments = result.variant_moments(
        ...     assignment, "ndcg@10", missing="zero"
        ... )  # doctest: +SKIP
        >>> rd.experiments.compare_variants_from_moments(
        ...     moments, control="A", by="model"
        ... )  # doctest: +SKIP
        """
        of_users: dict[str, Any] = {"covariates": covariates, "user_col": user_col}
        of_users |= {"variant_col": variant_col, "by": by, "nan": nan}
        return moments_of_rows(self._rows, self.empty_rows, assignment, metrics, options | of_users)

    def to_parquet(self, folder: Any, *, overwrite: bool = False) -> None:
        """Write the result into a folder that `rd.read_parquet` reads.

        Parameters
        ----------
        folder : path
            A folder on a drive that the workers and this process share. It gets `summary.parquet`
            and the folder `per_user.parquet`. The workers write the rows, so these never pass
            through the memory of this process. For an object store, write `per_user` with the
            engine itself.
        overwrite : bool, default False
            Replace a result that the folder already holds.

        Raises
        ------
        FileExistsError
            If the folder holds a result and `overwrite` is False, or if it is a file.
        OptionError
            If the folder is an address, such as `s3a://...`.
        EngineError
            If a worker cannot compute or write its rows. An older result in the folder stays as it
            was.
        """
        import pyarrow.parquet as pq

        try:
            local_path(folder)
        except OptionError as error:
            raise error.within(
                after=". Or write the rows with the engine itself: "
                f"result.per_user.write.parquet({str(folder)!r}) in Spark, "
                f"result.per_user.to_parquet({str(folder)!r}) in Dask; and keep result.summary"
            ) from None
        head = self._rows.empty, self._summary, self._spec
        with staged_parts(folder, head, overwrite=overwrite) as rows:
            self._rows.engine.write(self._rows.frame, rows)
            n_rows = sum(pq.read_metadata(rows / name).num_rows for name in part_sizes(rows))
            self._rows.check(
                n_rows, f"the workers do not share the drive of {folder}, where there are"
            )

    def unpersist(self) -> None:
        """Give back the memory in which Spark keeps rows since the call had `cache=True`.

        The result can still be used. Spark reads the frames again when it needs their rows.
        """
        self._rows.engine.unpersist()

    def _compared_rows(self, unused: str | None) -> EngineEvaluation:
        rows = replace(self._rows, empty=self._rows.empty.drop(columns=unused or []))
        return EngineEvaluation(rows, self._summary, self._spec)

    def __getattr__(self, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if hasattr(Evaluation, name):
            message += f"; bring the rows into memory first: result.to_pandas().{name}"
        raise AttributeError(message)

    def _of_rows(self) -> str:
        return "is lazy"


MOST_BUCKETS = 2**16 - 1


def evaluate_frames(
    engine: Any,
    frames: ByName,
    function: Callable[..., Any],
    metrics: Any,
    k: Any,
    options: ByName,
    partitions: int | None,
) -> EngineEvaluation:
    """Evaluate frames of an engine. The summary is computed at once, and the rows per list when
    they are used.

    `engine` has the methods of `Engine`. `frames` are `true`, which may be None, and `pred`. The
    rest are the arguments of `function`, the `evaluate` of the engine, as the caller gave them:
    `options` are the shared options and the side tables, by name, which may be frames of the engine
    too, and `partitions` is the number of buckets, or None for the default of the engine.
    """
    engine, given, n_buckets = watched(engine, frames, partitions)
    known = signature(function).parameters.values()
    names = ["k", *(one.name for one in known if one.kind is one.KEYWORD_ONLY)]
    check_names(options, names, f"rd.{engine.name.lower()}.evaluate")
    in_memory = {name: engine.local(value) for name, value in options.items()}
    call = call_of(evaluate, metrics, k, in_memory, given.get("true"))
    if call.options.ties == "row":
        raise ties_by_row(call.options, options, engine.name)
    call = replace(call, given=as_frames(call.given, call.options))  # since every part reads them
    schemas = {role: engine.schema(frame) for role, frame in given.items()}
    needed = Needed.of(call, schemas)
    run = EngineRun(engine, given, needed, n_buckets)
    if needed.order["by"] == "row" and not needed.lists["pred"].hold_lists(schemas["pred"]):
        with suppress(IdTypeError):  # tells of texts that hold several items, which have an order
            run.check_kinds(without_order=True)
        raise no_order(call.options, frame_of_arrow(schemas["pred"].empty_table()), engine.name)
    return run.result()


def watched(engine: Any, frames: ByName, partitions: int | None) -> tuple[Any, dict[str, Any], int]:
    """Return the engine, which tells why a job failed, the frames that were given, and the number
    of buckets that the caller asked for, or else the default of the engine."""
    given = {role: frame for role, frame in frames.items() if frame is not None}
    if partitions is None:
        n_buckets = max(1, min(engine.n_buckets(*given.values()), MOST_BUCKETS))
    else:
        rule = a_number(1, MOST_BUCKETS, whole=True)
        n_buckets = int(check_value("partitions", partitions, rule))
    return Watched(engine, n_buckets), given, n_buckets


class EngineRun(Run):
    """One call on frames of an engine."""

    engine: Engine

    def result(self) -> EngineEvaluation:
        if self.needed.kinds_differ():
            self.check_kinds()
        # All buckets are measured, and the results are added.
        cells = self.dealt.tables(Measuring(self.handle), CELL)
        if self.n_buckets > sizes().summed_buckets:
            cells = self.engine.each(cells, CELL.names, adding_up, CELL)
        results = map(pickle.loads, self.engine.collect(cells)["cell"].to_pylist())
        total: PartResult | None = add_in_pairs(sorted(results, key=lambda one: min(one.buckets)))
        measured, summary, spec = self.finished(total)
        work = Measuring(self.handle, self.needed.per_user)
        empty = self._labels(self.needed.per_user.empty_table())
        for name in self.call.carry:  # they are null for lists without rows of pred
            empty[name] = nullable(empty[name])
        per_user = self.engine.typed(self.dealt.tables(work, self.needed.per_user), empty)
        n_rows = int(measured.n_lists.sum())
        by = self.by_frame[measured.n_lists > 0].reset_index(drop=True)
        rows = EngineRows(self.engine, per_user, empty, by, n_rows, self.n_buckets, self._labels)
        return EngineEvaluation(rows, summary, spec)

    def _labels(self, table: Table) -> DataFrame:
        """Return the rows per list in the dtypes that `evaluate` gives them."""
        keys = list(map(str, self.needed.keys))
        of_pred = [*self.needed.by, *self.call.carry]
        of_keys = table.select(keys)
        plain = labels_of_table(of_keys)
        if self.needed.given is not None:
            key_frame = as_dtypes(plain, dict(self.needed.given.dtypes))
        else:
            # Keys of two frames with other dtypes are in one that holds both, and those with other
            # categories are values.
            frames = [self.frames[role] for role in self.needed.roles]
            key_frame = self.engine.labels(of_keys, frames[0])
            likes = [self.engine.labels(of_keys.slice(0, 0), one) for one in frames]
            for name in key_frame.columns:
                kinds = [one[name].dtype for one in likes]
                if any(kind != kinds[0] for kind in kinds):
                    key_frame[name] = plain[name]
                    if "category" not in kinds:
                        both = pd.concat(alike_ids([one[name] for one in likes], name))
                        key_frame[name] = plain[name].astype(both.dtype)
        labels = self.engine.labels(table.select(of_pred), self.frames["pred"])
        numbers = table.drop_columns([*keys, *of_pred]).to_pandas()
        return pd.concat([key_frame, labels, numbers], axis=1)[table.column_names]
