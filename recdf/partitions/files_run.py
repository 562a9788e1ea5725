"""Evaluate files that are larger than memory: rows are dealt (distributed) to buckets, which are measured in turn.

Contract: each bucket is matched and measured once, for its sums and for its rows per list. The rows of all buckets are
merged into the order that `evaluate` would give them. Some rows stay in memory, as far as their share of the limit
allows. Beside these, memory holds only a few buckets, a few batches of rows and one block of results at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import OptionError
from ..evaluation.part import ListRows, PartResult, measure
from ..evaluation.storage import Written, write_files
from ..inputs.row_rules import BrokenRows
from ..inputs.sizes import Sizes
from ..inputs.threads import n_threads
from ..inputs.true_and_pred import read_true
from ..matching.overlap import Overlap
from ..progress import Progress
from .local import FilesEngine, Memory
from .needed import ROW, NeededOfFiles
from .packed import Packing
from .results import PLACE, Results
from .run import Run
from .shipped import Here
from .source import frame_of_arrow
from .work import part_of_bucket, rows_table


class FilesRun(Run[Any]):
    """One call on files that are dealt to buckets."""

    engine: FilesEngine
    needed: NeededOfFiles

    def __init__(self, engine: FilesEngine, files: NeededOfFiles, n_buckets: int, sizes: Sizes) -> None:
        population = files.call.options.population.frames
        schemas = {
            role: schema.append(pa.field(ROW, pa.int64())) if role in population else schema
            for role, schema in files.schemas.items()
        }
        super().__init__(engine, files.sources, replace(files, schemas=schemas), n_buckets)
        self.sizes = sizes
        # `by` value × span + row orders the lists of the result, since `span` is larger than any row number.
        self.span = files.n_rows + 1 + (0 if self.needed.given is None else len(self.needed.given))
        self.some_without_pred = False  # whether `pred` lacks lists of the population

    @property
    def handle(self) -> Here:
        return Here(self.shared)

    def write(self, folder: Path, limit: int) -> tuple[pd.DataFrame, dict[str, Any], Written]:
        """Measure all buckets, and write both tables into the folder."""
        self.check_kinds()
        assert self.shared  # what it needs of all rows is found while they are dealt, and before threads use it
        self._check_size(limit)
        with closing(Results(folder / "results.arrow", self.n_buckets, self.sizes)) as results:
            _, summary, spec = self._finished(self._measure_all(results))
            return summary, spec, write_files(folder, self._blocks(results), summary, spec)

    def _packing(self, keys: Sequence[str], schema: pa.Schema) -> Packing:
        narrow = {ROW, *self.needed.ids["true"], *self.needed.by}
        return replace(super()._packing(keys, schema), narrow=frozenset(narrow))

    def _compared(self, overlap: Overlap) -> Overlap:
        found = super()._compared(overlap)
        return replace(found, samples={**found.samples, **self._samples()})  # of the first rows of all buckets

    def _check_size(self, limit: int) -> None:
        cells = [self.engine.made(frame) for frame in self.packed.values()]
        largest = int(sum(one.n_bytes for one in cells).max())
        if largest > limit:
            raise OptionError(
                f"⟦memory_limit={limit:,}⟧: one of {self.n_buckets:,} buckets of lists has {largest:,} bytes; pass "
                "more memory, or, if no single list is that long, more buckets"
            )

    def _measure_all(self, results: Results) -> PartResult | None:
        """Add the results of all buckets, and write their rows to `results`.

        Where a bucket fails, the others are still measured, since rows that no bucket may have are reported first.
        """
        total, every = None, self.needed.given is not None
        packed = self.packed
        for n_rows, found, tables in self.engine.on_buckets(
            packed["true"], packed["pred"], self.n_buckets, self._measured, every
        ):
            for table in tables:
                results.add(table)
                self.some_without_pred |= pc.min(table["n_pred"]).as_py() == 0
            total = found if total is None else total + found
            self.engine.progress.add(n_rows)
            pa.default_memory_pool().release_unused()
        if total is None:
            return None
        if any(found.refuses(self.call.options) for found in total.findings.values()):
            total = replace(total, findings={**total.findings, "true": self._findings_of_true()})
        # Messages name the number of all buckets, also of those without rows.
        return replace(total, buckets=frozenset(range(self.n_buckets)))

    def _findings_of_true(self) -> BrokenRows:
        """Read `true` once more, since a message shows the first wrong values in the order of the rows."""
        found: dict[str, BrokenRows] = {}
        total = BrokenRows(0)
        for table in self.engine.chunks(self.frames["true"], self.needed.schemas["true"].names):
            read_true(frame_of_arrow(table), self.call.options, found)
            total += found["true"]
        return total

    def _measured(
        self, bucket: int, true: list[pa.Table], pred: list[pa.Table]
    ) -> tuple[int, PartResult, list[pa.Table]]:
        """Measure one bucket: return its number of rows, its result, and its lists with their places in the whole.

        It runs in several threads, so it changes nothing of `self`.
        """
        tables = {"true": true[0], "pred": pred[0]}
        found = measure(self.shared.of(bucket), part_of_bucket(self.shared, bucket, tables))
        placed = [self._placed(bucket, tables, rows) for rows in found.rows.values() if len(rows)]
        return sum(map(len, tables.values())), found.without_rows(), placed

    # ----------------------------------------------------------------------------------------- results

    @cached_property
    def _stored(self) -> pa.Schema:
        """The columns of results that are kept until all are merged. The place of a list tells the others."""
        keys = self.needed.key_fields if self.needed.given is None else []
        return pa.schema([*keys, *self.needed.other_fields])

    def _placed(self, bucket: int, tables: Mapping[str, pa.Table], rows: ListRows) -> pa.Table:
        """Return the results of one bucket's lists, with their places in the whole."""
        first = self._first_seen(bucket, tables, rows.first)
        return rows_table(rows, self._stored).append_column(PLACE, pa.array(rows.list_by * self.span + first))

    def _first_seen(self, bucket: int, tables: Mapping[str, pa.Table], first: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the number of the row in which each list first appears. It is below `span` and orders the lists."""
        if "given" in first:
            return np.flatnonzero(self.shared.given_bucket == bucket).take(first["given"])
        # A list that a frame does not have takes the last number, which is not used.
        found = {role: np.append(tables[role][ROW], 0).take(places) for role, places in first.items()}
        if len(found) == 1:
            return found.popitem()[1]
        return np.where(first["true"] >= 0, found["true"], self.needed.sources["true"].n_rows + found["pred"])

    def _blocks(self, results: Results) -> Iterator[pd.DataFrame]:
        """Yield the rows of `per_user` in their order."""
        keys, given, call = self.needed.keys, self.needed.given, self.call
        for block in results.blocks():
            place = block[PLACE].to_numpy()
            labels = [self.by_frame.take(place // self.span).reset_index(drop=True)] if self.needed.by else []
            if given is None:
                labels.append(self.needed.key_labels(block.select(keys), self.heads))
            else:
                labels.append(given[keys].take(place % self.span).reset_index(drop=True))
            carried = self.needed.carried(block, self.some_without_pred)
            numbers = block.select(call.result_columns).to_pandas()
            yield pd.concat([*labels, carried, numbers], axis=1)


def evaluate_dealt(
    files: NeededOfFiles,
    folder: Path,
    limit: int,
    buckets: int | None,
    row_bytes: Mapping[str, float],
    progress: Progress,
    sizes: Sizes,
) -> tuple[pd.DataFrame, dict[str, Any], Written]:
    """Evaluate files in buckets within a limit of memory, and write both tables into the folder."""
    if buckets is None:
        n_bytes = sum(source.n_rows * row_bytes[role] for role, source in files.sources.items())
        for_memory = n_bytes * sizes.working_copies * min(n_threads(), sizes.at_once) / (limit * sizes.part_share)
        for_cache = files.sources["pred"].n_rows / sizes.part_rows
        buckets = min(int(max(for_memory, for_cache)) + 1, sizes.most_buckets)
    at_a_time = limit * sizes.batch_share / (n_threads() + 3)
    batch_rows = {role: int(np.clip(at_a_time / n_bytes, *sizes.batch_rows)) for role, n_bytes in row_bytes.items()}
    with closing(FilesEngine(folder, batch_rows, Memory(limit * sizes.kept_share), sizes.at_once, progress)) as engine:
        return FilesRun(engine, files, buckets, sizes).write(folder, limit)
