"""One call on frames whose rows are in parts: what is needed of all the rows, and the sum of all buckets.

Contract: a `Run` deals the rows of both frames to buckets of whole lists. How the buckets are measured, and where the
rows per list go, is up to its subclasses: `EngineRun` for Spark and Dask, and `FilesRun` for files on one machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Generic

import pandas as pd
import pyarrow as pa

from ..errors import IdTypeError
from ..evaluation.exposure_sums import common_type
from ..evaluation.finish import checked, finish_summary
from ..evaluation.part import Measured, PartResult, measure
from ..inputs.codes import check_kinds
from ..inputs.ids import IdColumn
from ..matching.overlap import Overlap, samples_of
from ..metrics.call import Call
from .engine_methods import EngineFrame, InParts, OnBucket
from .needed import Needed
from .packed import HEAD_LENGTH, PACKED, Packing, ascending, cast_table, distinct_rows, given_ids, known_rows, part_of
from .shipped import Handle, Here, Shared
from .source import frame_of_arrow
from .work import GAIN, SHARED_USER, WHERE_COLUMN, Comparing, Distinct, Gains, Listing, part_of_bucket


class Run(Generic[EngineFrame]):
    """One call on frames whose rows are in parts."""

    def __init__(
        self, engine: InParts[EngineFrame], frames: Mapping[str, EngineFrame], needed: Needed, n_buckets: int
    ) -> None:
        self.engine, self.frames, self.needed, self.n_buckets = engine, frames, needed, n_buckets

    @property
    def call(self) -> Call:
        return self.needed.call

    @property
    def handle(self) -> Handle | Here:
        """How workers get what they share."""
        raise NotImplementedError

    def _finished(self, results: PartResult | None) -> tuple[Measured, pd.DataFrame, dict[str, Any]]:
        """Raise the errors and give the warnings of all buckets. Return their numbers, the summary, and the spec.

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

    # ----------------------------------------------------------------------- facts that need all the rows

    def check_kinds(self) -> None:
        """Raise if, by their first rows, two columns have ids that can never be equal."""
        try:
            found = self._id_columns()
        except IdTypeError as error:
            if all(len(head) < HEAD_LENGTH for head in self.heads.values()):
                raise
            raise error.within(after=f" (found in the first {HEAD_LENGTH} rows; counts are of those)") from error
        for columns in found:
            check_kinds(columns)

    @cached_property
    def heads(self) -> dict[str, pa.Table]:
        """Some rows of each frame, for messages."""
        ids = [*self.needed.keys, self.call.options.item_col]
        return {role: self.engine.head(frame, ids, HEAD_LENGTH) for role, frame in self.frames.items()}

    def _id_columns(self) -> list[list[IdColumn]]:
        return self.needed.id_columns({role: frame_of_arrow(head) for role, head in self.heads.items()})

    @cached_property
    def by_values(self) -> pa.Table | None:
        """The `by` values of `pred`: in order of first appearance if the engine keeps an order of rows, else sorted."""
        names = self.needed.by
        if not names:
            return None
        assert self.packed  # comes first, so that an engine can read a frame once for all that it is asked of it
        schema = pa.schema([self.needed.schemas["pred"].field(name) for name in names])
        found = self.engine.collect(self.engine.each(self.frames["pred"], names, Distinct(schema), schema))
        values = distinct_rows(known_rows(cast_table(found, schema), names))
        return values if self.engine.ordered else ascending(values)

    @cached_property
    def by_frame(self) -> pd.DataFrame:
        """The labels of the `by` values; one row without columns where there is no `by`."""
        if self.by_values is None:
            return pd.DataFrame(index=range(1))
        labels = self.engine.labels(self.by_values, self.frames["pred"])
        return labels.set_axis(pd.Index(map(str, labels.columns)), axis=1)

    def _knowing(self) -> Call:
        """Return the call. If a metric needs the largest gain of `true`, the call then knows it."""
        if all(one.params.get("max_gain", 0) is not None for one in self.call.requests) or "true" not in self.frames:
            return self.call
        if self.needed.relevance is None:
            return self.call.knowing(max_gain=1.0)
        assert self.packed
        work = Gains(self.needed.relevance, self.call.options)
        found = self.engine.each(self.frames["true"], [*work.ids, work.column], work, GAIN)
        return self.call.knowing(max_gain=max(self.engine.collect(found)["gain"].to_pylist(), default=0.0))

    @cached_property
    def shared(self) -> Shared:
        """What every worker needs."""
        given, bucket = self.needed.given, None
        if given is not None:
            bucket = part_of([given_ids(given[name]) for name in self.needed.keys], self.n_buckets)
        by_values = None if self.by_values is None else frame_of_arrow(self.by_values)
        return Shared(self._knowing(), by_values, given, bucket)

    @cached_property
    def packed(self) -> dict[str, EngineFrame]:
        """Both frames with their rows packed by bucket."""
        return {
            role: self.engine.each(frame, schema.names, self._packing(self.needed.keys, schema), PACKED)
            for (role, frame), schema in zip(self.frames.items(), self.needed.schemas.values(), strict=True)
        }

    def _packing(self, keys: Sequence[str], schema: pa.Schema) -> Packing:
        return Packing(keys, self.call.options.item_col, self.n_buckets, schema)

    def _meet(self, work: OnBucket, schema: pa.Schema) -> EngineFrame:
        every = self.needed.given is not None  # the caller may have given lists that have no row
        packed = self.packed
        return self.engine.meet(packed.get("true"), packed["pred"], self.n_buckets, work, schema, every)

    def _compared(self, overlap: Overlap) -> Overlap:
        """Complete the overlap: where a `by` value has no hit, compare its ids with those of `true` in all buckets.

        `overlap.silent` has the numbers of these `by` values. If there are none, no job runs.
        """
        if not all(overlap.in_sides.values()):
            overlap = replace(overlap, samples={**overlap.samples, **self._samples()})
        if not overlap.n_true_rows or not overlap.n_pred_rows or not len(overlap.silent):
            return overlap
        nothing = not overlap.n_judged.any()
        item = self.call.options.item_col
        kinds = [schema.field(item).type for schema in self.needed.schemas.values()]
        listed = pa.schema([(WHERE_COLUMN, pa.int32()), (item, common_type(kinds) or kinds[0])])
        silent = None if nothing else tuple(overlap.silent.tolist())
        listing = self._meet(Listing(self.handle, self.needed.schemas, listed, silent), listed)
        packed = self.engine.each(listing, listed.names, self._packing([item], listed), PACKED)
        found = self.engine.meet(None, packed, self.n_buckets, Comparing(listed), pa.schema([listed.field(0)]), False)
        shared = set(self.engine.collect(found)[WHERE_COLUMN].to_pylist())
        if nothing:
            samples = {**overlap.samples, **self._samples()}
            return replace(overlap, shares_user=SHARED_USER in shared, shares_item=0 in shared, samples=samples)
        shares = overlap.by_shares_item.copy()
        shares[sorted(shared)] = True
        return replace(overlap, by_shares_item=shares)

    def _samples(self) -> dict[str, str]:
        """Return two ids of each frame, from its first rows."""
        samples: dict[str, str] = {}
        for role, columns in zip(self.frames, zip(*self._id_columns(), strict=False), strict=False):
            *keys, one = columns
            samples |= samples_of(role, keys, one)
        return samples
