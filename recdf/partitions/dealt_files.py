"""Evaluate files that are larger than memory: rows are dealt (distributed) to parts, which are measured in turn.

Contract: a first pass over both frames checks every row and deals the rows to parts by a hash of their list key. Each
part is matched and measured alone. Moments and counts are added. The rows of all parts are merged into the order that
`evaluate` would give them. Some rows stay in memory, as far as their share of the limit allows. Beside these, memory
holds only a few parts, a few batches of rows and one block of results at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import IdTypeError, OptionError
from ..evaluation.finish import checked, finish_summary
from ..evaluation.part import ListRows, Part, PartResult, measure
from ..evaluation.storage import Written, write_files
from ..inputs.codes import check_kinds
from ..inputs.ids import read_ids
from ..inputs.progress import Progress
from ..inputs.threads import n_threads, stream
from ..matching.lists import Matched
from ..matching.overlap import samples_of
from ..metrics.call import Call
from ..metrics.per_user import label_frame
from .file_call import ROW, FileCall
from .overlap import compared
from .results import NEVER, PLACE, Results, first_rows
from .row_checks import HEAD, RowCheck
from .source import as_frame
from .store import Dealt, Memory, Store, deal, given_ids, narrow, part_of

# Shares of the memory limit. KEPT_SHARE is for rows that stay in memory. PART_SHARE is for the evaluation of the parts
# that are measured at the same time, each of which needs WORKING_COPIES times its size. BATCH_SHARE is for the batches
# that are read and dealt at the same time, before any part is measured. The rest is for the libraries and the results.
KEPT_SHARE, PART_SHARE, WORKING_COPIES, BATCH_SHARE = 0.15, 0.3, 6, 0.15
MAX_PARTS = 4096

# Rows of one batch: at least, at most.
BATCH_ROWS = 2**10, 2**20

# A part has about so many rows of `pred`, or fewer: one thread then ranks it as one block, in the processor's cache.
PART_ROWS = 400_000

# So many parts are measured at the same time, if there are as many threads. More of them would be too small.
AT_ONCE = 4


class _Measured(NamedTuple):
    """What was found in one part: its result, its rows with their places in the whole, and two counts."""

    result: PartResult
    rows: list[pa.Table]
    n_rows: int
    n_without_pred: int


class DealtFiles:
    """The rows of both frames in parts, and what the checks of all rows found. Use it in a `with` statement."""

    def __init__(
        self,
        asked: FileCall,
        folder: Path,
        limit: int,
        buckets: int | None,
        row_bytes: Mapping[str, float],
        progress: Progress,
    ) -> None:
        self.asked, self.folder, self.progress = asked, folder, progress
        if buckets is None:
            n_bytes = sum(source.n_rows * row_bytes[role] for role, source in asked.sources.items())
            for_memory = n_bytes * WORKING_COPIES * min(n_threads(), AT_ONCE) / (limit * PART_SHARE)
            buckets = min(int(max(for_memory, asked.sources["pred"].n_rows / PART_ROWS)) + 1, MAX_PARTS)
        self.n_parts = buckets
        self.given_part = np.empty(0, np.uint16)
        if asked.given is not None:
            self.given_part = part_of([given_ids(asked.given[name]) for name in asked.user_cols], buckets)
        # `by` value × span + row orders the lists of the result, since `span` is larger than any row number.
        self.span = asked.n_rows + len(self.given_part) + 1
        self.checks: dict[str, RowCheck] = {}
        self.stores: dict[str, Store] = {}
        self.n_without_pred = 0  # lists of the population that `pred` lacks
        self._stack = ExitStack()
        with ExitStack() as stack:
            memory = Memory(limit * KEPT_SHARE)
            for role in asked.sources:
                fields = asked.sources[role].fields(asked.names[role])
                if role in asked.population.frames:
                    fields = fields.append(pa.field(ROW, pa.int64()))
                store = Store(folder / f"{role}.arrow", buckets, fields, memory)
                self.stores[role] = stack.enter_context(closing(store))
                rows = limit * BATCH_SHARE / (n_threads() + 3) / row_bytes[role]
                self._deal(role, int(np.clip(rows, *BATCH_ROWS)))
            self._stack = stack.pop_all()
        self._check_kinds()
        largest = int((self.stores["true"].n_bytes + self.stores["pred"].n_bytes).max())
        if largest > limit:
            raise OptionError(
                f"memory_limit={limit:,}: one of {buckets:,} buckets of lists has {largest:,} bytes; pass more "
                "memory, or, if no single list is that long, more buckets"
            )

    def __enter__(self) -> DealtFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    # -------------------------------------------------------------------------------------- first pass

    def _deal(self, role: str, at_a_time: int) -> None:
        """Read one frame, check its rows in their order, and deal them to parts in several threads."""
        asked, source = self.asked, self.asked.sources[role]
        names = asked.names[role]
        check = RowCheck(role, source.fields(names).empty_table(), asked.call.options, asked.needed.order)

        def kept() -> Iterator[pa.Table]:
            first = 0
            for table in source.batches(names, at_a_time):
                rows = np.arange(first, first + len(table))
                yield check.kept(table.append_column(ROW, pa.array(rows)))
                first += len(table)
                self.progress.add(len(table))

        def dealt(table: pa.Table) -> Dealt | None:
            if check.failed:
                return None
            table = narrow(table, {*asked.ids[role], ROW})
            return deal(table, part_of([table[name] for name in asked.user_cols], self.n_parts), self.n_parts)

        store = self.stores[role]
        # One thread more writes the rows, in their order. Where it fails, the threads that deal end too.
        with closing(stream(dealt, kept())) as parts:
            for _ in stream(lambda rows: None if rows is None else store.add_dealt(rows), parts, most=1):
                pass
        check.finish(source.n_rows)
        self.checks[role] = check

    def _check_kinds(self) -> None:
        heads = {role: as_frame(check.head) for role, check in self.checks.items()}
        for name in (*self.asked.user_cols, self.asked.call.options.item_col):
            try:
                ids = [read_ids(frame[name], f"{role}[{name!r}]") for role, frame in heads.items()]
            except IdTypeError as error:
                if all(len(frame) == self.asked.sources[role].n_rows for role, frame in heads.items()):
                    raise
                raise IdTypeError(f"{error} (found in the first {HEAD} rows; counts are of those)") from error
            check_kinds(ids)

    # ------------------------------------------------------------------------------------- second pass

    def measure(self) -> tuple[pd.DataFrame, dict[str, Any], Written]:
        """Measure one part after another, and write both tables into the folder."""
        asked = self.asked
        by = asked.by_frame(self.checks["pred"].by_values)
        results = Results(self.folder / "results.arrow", self.n_parts)
        self._stack.enter_context(closing(results))
        total = self._measure_all(results)
        measured = checked(self.asked.call, total)
        overlap = compared(
            measured.overlap, asked.user_cols, asked.call.options.item_col, self._all_tables, self._match
        )
        measured = replace(
            measured,
            by=by,
            order=asked.needed.order,
            relevance_col=asked.needed.relevance,
            counts={**self.checks["true"].counts, **self.checks["pred"].counts, **measured.counts},
            overlap=replace(overlap, samples={**overlap.samples, **self._samples()}),
        )
        summary, spec = finish_summary(asked.call, replace(total, measured=measured))
        plain = cast(dict[str, Any], spec)
        written = write_files(self.folder, self._blocks(results, by), summary, plain)
        summary.attrs["recdf"] = plain
        return summary, plain, written

    def _measure_all(self, results: Results) -> PartResult:
        """Add the results of all parts, and write their rows to `results`. Stop at the first part that fails.

        Several parts are measured at the same time, each by one thread, while this thread reads the next one.
        """
        by_part = None
        for found in stream(self._measured, enumerate(self._all_tables()), most=AT_ONCE):
            for table in found.rows:
                results.add(table)
            self.n_without_pred += found.n_without_pred
            by_part = found.result if by_part is None else by_part + found.result
            if found.result.failure is not None:
                everywhere = frozenset(range(self.n_parts))  # so that the message names the number of buckets
                return PartResult(everywhere, failure=found.result.failure)
            self.progress.add(found.n_rows)
            pa.default_memory_pool().release_unused()
        assert by_part is not None
        return by_part

    def _measured(self, part: tuple[int, dict[str, pa.Table]]) -> _Measured:
        """Measure one part. It runs in several threads, so it changes nothing of `self`."""
        number, tables = part
        found = measure(self._call(number), self._part(number, tables))
        lists = [rows for rows in found.rows.values() if len(rows)]
        return _Measured(
            found.without_rows(),
            [self._placed(number, tables, rows) for rows in lists],
            sum(map(len, tables.values())),
            sum(int(np.count_nonzero(rows.columns["n_pred"] == 0)) for rows in lists),
        )

    def _call(self, number: int) -> Call:
        """Return the call for one part: it has the given users of this part, and the largest gain of all parts."""
        call = self.asked.call.knowing(max_gain=self.checks["true"].max_gain)
        if self.asked.given is None:
            return call
        return replace(call, options=call.options.updated(users=self.asked.given.iloc[self.given_part == number]))

    def _part(self, number: int, tables: dict[str, pa.Table]) -> Part:
        by_values = as_frame(self.checks["pred"].by_values) if self.asked.by else None
        frames = {role: as_frame(table) for role, table in tables.items()}
        return Part(frames["true"], frames["pred"], frozenset({number}), whole=False, by_values=by_values)

    def _samples(self) -> dict[str, str]:
        """Return two ids of each frame, from its first rows."""
        samples: dict[str, str] = {}
        for role, check in self.checks.items():
            frame = as_frame(check.head)
            names = [*self.asked.user_cols, self.asked.call.options.item_col]
            *keys, item = (read_ids(frame[name], f"{role}[{name!r}]") for name in names)
            samples |= samples_of(role, keys, item)
        return samples

    def _all_tables(self) -> Iterator[dict[str, pa.Table]]:
        """Yield the rows of both frames for one part after another."""
        for number in range(self.n_parts):
            yield {role: store.read(number) for role, store in self.stores.items()}

    def _match(self, number: int, tables: dict[str, pa.Table]) -> Matched:
        part = self._part(number, tables)
        return self._call(number).match_part(part.true, part.pred, part.by_values, part.whole)

    # ----------------------------------------------------------------------------------------- results

    def _placed(self, number: int, tables: dict[str, pa.Table], rows: ListRows) -> pa.Table:
        """Return the results of one part's lists, with their places in the whole."""
        first = self._first_seen(rows, tables, np.flatnonzero(self.given_part == number))
        return pa.table({PLACE: rows.list_by * self.span + first, **self.asked.label_arrays(rows), **rows.columns})

    def _first_seen(self, rows: ListRows, tables: dict[str, pa.Table], given: np.ndarray) -> np.ndarray:
        """Return the number of the row in which each list first appears. It is below `span` and orders the lists."""
        asked, labels = self.asked, label_frame(rows)
        keys = [*asked.user_cols, *asked.needed.in_true]
        frames = {role: as_frame(table) for role, table in tables.items()}
        if asked.given is not None:
            return first_rows(labels, asked.given.iloc[given], given, keys)
        if asked.population.frames == ("true",):
            return first_rows(labels, frames["true"], frames["true"][ROW], keys)
        of_list = first_rows(labels, frames["pred"], frames["pred"][ROW], [*asked.by, *asked.user_cols])
        if asked.population.frames == ("pred",):
            return of_list
        in_true = first_rows(labels, frames["true"], frames["true"][ROW], keys)
        return np.where(in_true < NEVER, in_true, asked.sources["true"].n_rows + of_list)

    def _blocks(self, results: Results, by: pd.DataFrame) -> Iterator[pd.DataFrame]:
        """Yield the rows of `per_user` in their order."""
        asked = self.asked
        heads = {role: check.head for role, check in self.checks.items()}
        for block in results.blocks():
            place = block[PLACE].to_numpy()
            labels = [by.take(place // self.span).reset_index(drop=True)] if asked.by else []
            if asked.given is None:
                labels.append(asked.key_frame(block.select(asked.user_cols), heads))
            else:
                labels.append(asked.given[asked.user_cols].take(place % self.span).reset_index(drop=True))
            carried = asked.carried_frame(block, self.n_without_pred > 0)
            numbers = block.select(asked.call.result_columns).to_pandas()
            yield pd.concat([*labels, carried, numbers], axis=1)
