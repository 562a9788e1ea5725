"""Evaluate files that are larger than memory: rows are dealt (distributed) to buckets, which are
measured in turn.

Contract: each bucket is matched and measured once, for its sums and for its rows per list. The rows
of all buckets are merged into the order that `evaluate` would give them. Some rows stay in memory,
as far as their share of the limit allows. Beside these, memory holds only a few buckets, a few
batches of rows and one block of results at a time.

Files on one machine are an engine in threads. `FilesEngine` has the methods of `InParts`: chunks
are batches of rows, workers are threads. A file is read once for all work that waits for its rows.
Rows that are dealt to buckets stay in memory while they fit, and later ones go to one temporary
file for each frame. The rows of all parts are kept in a file too, and read in the order of
`evaluate`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

from ..errors import OptionError
from ..evaluation.part import ListRows, PartResult, measure
from ..evaluation.storage import Written, write_files
from ..inputs.machine import Sizes, n_threads, stream
from ..inputs.true_and_pred import BrokenRows, read_true
from ..matching.overlap import Overlap
from ..progress import Progress
from .engine import Run
from .engine_methods import Here, OnBucket, OnChunk
from .needed import PLACE, ROW, NeededOfFiles
from .packed import Dealt, Packing, known_rows
from .source import Source, frame_of_arrow
from .work import part_of_bucket, rows_table


class Results:
    """Rows of the lists of all parts. They may be written in any order, and are read in the order
    of `PLACE`."""

    def __init__(self, path: Path, n_parts: int, sizes: Sizes) -> None:
        self.path, self.block_rows = path, sizes.block_rows
        # A part may have rows in every block. A chunk of each part must fit into a block, or most
        # of what is read for it would be rows of other blocks.
        self.chunk_rows = int(np.clip(self.block_rows // n_parts, *sizes.chunk_rows))
        self._low: list[int] = []  # smallest and largest place of each chunk
        self._high: list[int] = []
        self._writer: Any = None

    def add(self, table: pa.Table) -> None:
        """Keep the rows of a part, sorted and cut into chunks."""
        place = table[PLACE].to_numpy()
        if (place[1:] < place[:-1]).any():
            order = np.argsort(place)
            table, place = table.take(pa.array(order)), place[order]
        if self._writer is None:
            self._writer = ipc.new_file(str(self.path), table.schema)
        for start in range(0, len(table), self.chunk_rows):
            chunk = table.slice(start, self.chunk_rows).combine_chunks()
            self._writer.write_batch(chunk.to_batches()[0])
            self._low.append(int(place[start]))
            self._high.append(int(place[start + len(chunk) - 1]))

    def blocks(self) -> Iterator[pa.Table]:
        """Yield all rows in order. A chunk is read for each block that has rows of it: mostly once
        or twice."""
        self._writer.close()
        low, high = np.array(self._low), np.array(self._high)
        # A block begins at every n-th start of a chunk, so that all blocks have about the same
        # number of rows.
        edges = np.sort(low)[:: max(1, self.block_rows // self.chunk_rows)]
        with pa.OSFile(str(self.path)) as file:
            reader = ipc.open_file(file)
            for first, last in pairwise([*edges.tolist(), int(high.max()) + 1]):
                chunks = np.flatnonzero((low < last) & (high >= first))
                table = pa.Table.from_batches([reader.get_batch(int(chunk)) for chunk in chunks])
                place = table[PLACE].to_numpy()
                rows = np.flatnonzero((place >= first) & (place < last))
                yield table.take(pa.array(rows[np.argsort(place[rows])]))

    def close(self) -> None:
        """Close the file, so that its folder can be removed."""
        if self._writer is not None:
            self._writer.close()


MadeBucket = TypeVar("MadeBucket")


class Memory:
    """The number of bytes that several cells together may keep in memory."""

    def __init__(self, n_bytes: float) -> None:
        self.left = n_bytes


class BucketCells:
    """The rows of each bucket in the order in which they were added: in memory, and later ones in a
    file."""

    def __init__(self, folder: Path, n_buckets: int, schema: pa.Schema, memory: Memory) -> None:
        self.folder, self.schema, self.memory = folder, schema, memory
        self.n_bytes = np.zeros(n_buckets)
        self._kept: list[Dealt] = []
        self._file: Any = None
        # Of each bucket's rows in the file: the first byte, the number of bytes, and the types,
        # which may differ.
        self._places: list[list[tuple[int, int, pa.Schema]]] = [[] for _ in range(n_buckets)]

    def extend(self, found: Iterable[Dealt]) -> None:
        """Keep rows that are sorted by bucket."""
        for table, edges in found:
            if not len(table):
                continue
            self.n_bytes += table.nbytes / len(table) * np.diff(edges)
            if self._file is None and table.nbytes <= self.memory.left:
                self.memory.left -= table.nbytes
                self._kept.append(Dealt(table, edges))
            else:
                self._write(table, edges)

    def _write(self, table: pa.Table, edges: np.ndarray) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 (`close` closes it)
        start, schema = self._file.tell(), table.schema
        for bucket in np.flatnonzero(np.diff(edges)).tolist():
            for batch in table.slice(edges[bucket], edges[bucket + 1] - edges[bucket]).to_batches():
                cell = batch.serialize()
                self._file.write(cell)
                self._places[bucket].append((start, cell.size, schema))
                start += cell.size

    def read(self, bucket: int) -> pa.Table:
        """Return all rows of a bucket. Integers are as wide as the widest that were added."""
        found = [
            table.slice(edges[bucket], edges[bucket + 1] - edges[bucket])
            for table, edges in self._kept
        ]
        places, end = self._places[bucket], 0
        data = pa.allocate_buffer(
            sum(size for _, size, _ in places)
        )  # of Arrow, which gives it back when it is free
        room = memoryview(data)
        for schema, cells in groupby(
            places, key=lambda place: place[2]
        ):  # a table of each cell would take longer
            batches = []
            for start, size, _ in cells:
                self._file.seek(start)
                self._file.readinto(room[end : end + size])
                batches.append(ipc.read_record_batch(data.slice(end, size), schema))
                end += size
            found.append(pa.Table.from_batches(batches))
        filled = [table for table in found if len(table)] or [self.schema.empty_table()]
        return pa.concat_tables(filled, promote_options="permissive")

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()


@dataclass(eq=False)
class Later:
    """Rows that some work makes of a frame, once they are needed: tables, or `BucketCells` if the
    work deals rows."""

    frame: Any
    names: Sequence[str]
    work: Any
    schema: pa.Schema
    made: Any
    done: bool = False

    def of(self, table: pa.Table) -> list[Any]:
        """Do the work on some rows."""
        if isinstance(self.work, Packing):
            return [self.work.dealt(table)]
        return [
            pa.Table.from_batches([batch])
            for batch in self.work(table.select(self.names).to_batches())
        ]


@dataclass(eq=False)
class FilesEngine:
    """What files on one machine can do, as `InParts` asks. Frames are a `Source`, a `Later`, or a
    list of tables.

    batch_rows : by role, the rows that are dealt together · memory : for rows that are dealt ·
    at_once : how many buckets are worked on at the same time.
    """

    folder: Path
    batch_rows: Mapping[str, int]
    memory: Memory
    at_once: int
    progress: Progress
    _later: list[Later] = field(default_factory=list)
    _open: ExitStack = field(default_factory=ExitStack)

    name, ordered = "Files", True

    def close(self) -> None:
        """Remove the files of all cells."""
        self._open.close()

    def schema(self, frame: Source) -> pa.Schema:
        return frame.schema

    def head(self, frame: Source, names: Sequence[str], n: int) -> pa.Table:
        """Return the first rows that have no null."""
        found = frame.fields(names).empty_table()
        for table in frame.batches(names, n):
            found = pa.concat_tables([found, known_rows(table, names)])
            if len(found) >= n:
                break
        return found.slice(0, n)

    def each(self, frame: Any, names: Sequence[str], work: OnChunk, schema: pa.Schema) -> Later:
        made: Any = []
        if isinstance(work, Packing):
            made = self._open.enter_context(
                closing(BucketCells(self.folder, work.n_buckets, work.schema, self.memory))
            )
        self._later.append(Later(frame, names, work, schema, made))
        return self._later[-1]

    def made(self, later: Later) -> Any:
        """Return what work made of a frame. The frame is read once for all work that waits for
        it."""
        if later.done:
            return later.made
        together = [one for one in self._later if one.frame is later.frame and not one.done]
        names = list(dict.fromkeys(name for one in together for name in one.names))

        def keep(found: list[list[Any]]) -> None:
            for one, made in zip(together, found, strict=True):
                one.made.extend(made)

        # One thread more keeps the rows, in their order. Where it fails, the threads that do the
        # work end too.
        done = stream(
            lambda table: [one.of(table) for one in together], self.chunks(later.frame, names)
        )
        with closing(done) as found:
            for _ in stream(keep, found, most=1):
                pass
        for one in together:
            one.done = True
        return later.made

    def chunks(self, frame: Any, names: Sequence[str]) -> Iterator[pa.Table]:
        if not isinstance(frame, Source):
            yield from frame
            return
        first = 0
        for table in frame.batches(
            [name for name in names if name != ROW], self.batch_rows[frame.role]
        ):
            rows = np.arange(first, first + len(table)) if ROW in names else None
            yield table if rows is None else table.append_column(ROW, pa.array(rows))
            first += len(table)
            self.progress.add(len(table))

    def meet(
        self,
        packed: Sequence[Later],
        n_buckets: int,
        work: OnBucket,
        schema: pa.Schema,
        every: bool,
    ) -> list[pa.Table]:
        return [schema.empty_table(), *self.on_buckets(packed, n_buckets, work, every)]

    def on_buckets(
        self,
        packed: Sequence[Later],
        n_buckets: int,
        work: Callable[[int, list[pa.Table]], MadeBucket],
        every: bool,
    ) -> Generator[MadeBucket, None, None]:
        """Yield what `work` makes of each bucket, in the order of the buckets."""
        cells: list[BucketCells] = [self.made(frame) for frame in packed]
        n_bytes = sum(one.n_bytes for one in cells)
        filled = range(n_buckets) if every else np.flatnonzero(n_bytes).tolist()
        parts = ((bucket, [one.read(bucket) for one in cells]) for bucket in filled)
        return stream(lambda part: work(*part), parts, most=self.at_once)

    def collect(self, frame: Any) -> pa.Table:
        return pa.concat_tables(
            [frame.schema.empty_table(), *self.made(frame)] if isinstance(frame, Later) else frame
        )

    def labels(self, table: pa.Table, frame: Source) -> pd.DataFrame:
        return frame.as_pandas(table)


class FilesRun(Run):
    """One call on files that are dealt to buckets."""

    engine: FilesEngine
    needed: NeededOfFiles

    def __init__(
        self, engine: FilesEngine, files: NeededOfFiles, n_buckets: int, sizes: Sizes
    ) -> None:
        rows = {role: pa.field(ROW, pa.int64()) for role in files.call.options.population.frames}
        schemas = {
            role: one.append(rows[role]) if role in rows else one
            for role, one in files.schemas.items()
        }
        super().__init__(engine, files.sources, replace(files, schemas=schemas), n_buckets)
        self.sizes = sizes
        # `by` value × span + row orders the lists of the result, since `span` is larger than any
        # row number.
        self.span = files.n_rows + 1 + (0 if self.needed.given is None else len(self.needed.given))
        self.some_without_pred = False  # whether `pred` lacks lists of the population

    @property
    def handle(self) -> Here:
        return Here(self.shared)

    def write(self, folder: Path, limit: int) -> tuple[pd.DataFrame, dict[str, Any], Written]:
        """Measure all buckets, and write both tables into the folder."""
        self.check_kinds()
        assert (
            self.shared
        )  # what it needs of all rows is found while they are dealt, and before threads use it
        self._check_size(limit)
        with closing(Results(folder / "results.arrow", self.n_buckets, self.sizes)) as results:
            _, summary, spec = self._finished(self._measure_all(results))
            return summary, spec, write_files(folder, self._blocks(results), summary, spec)

    def _packing(self, keys: Sequence[str], schema: pa.Schema) -> Packing:
        narrow = {ROW, *self.needed.ids["true"], *self.needed.by}
        return replace(super()._packing(keys, schema), narrow=frozenset(narrow))

    def _compared(self, overlap: Overlap) -> Overlap:
        found = super()._compared(overlap)
        return replace(
            found, samples={**found.samples, **self._samples()}
        )  # of the first rows of all buckets

    def _check_size(self, limit: int) -> None:
        cells = [self.engine.made(frame) for frame in self.packed.values()]
        largest = int(sum(one.n_bytes for one in cells).max())
        if largest > limit:
            raise OptionError(
                f"⟦memory_limit={limit:,}⟧: one of {self.n_buckets:,} buckets of lists has "
                f"{largest:,} bytes; pass more memory, or, if no single list is that long, more "
                "buckets"
            )

    def _measure_all(self, results: Results) -> PartResult | None:
        """Add the results of all buckets, and write their rows to `results`.

        Where a bucket fails, the others are still measured, since rows that no bucket may have are
        reported first.
        """
        total, every = None, self.needed.given is not None
        packed = list(self.packed.values())
        parts = self.engine.on_buckets(packed, self.n_buckets, self._measured, every)
        for n_rows, found, tables in parts:
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
        """Read `true` once more, since a message shows the first wrong values in the order of the
        rows."""
        found: dict[str, BrokenRows] = {}
        total = BrokenRows(0)
        for table in self.engine.chunks(self.frames["true"], self.needed.names("true")):
            read_true(
                frame_of_arrow(self.needed.lists["true"].table(table)), self.call.options, found
            )
            total += found["true"]
        return total

    def _measured(
        self, bucket: int, cells: list[pa.Table]
    ) -> tuple[int, PartResult, list[pa.Table]]:
        """Measure one bucket: return its number of rows, its result, and its lists with their
        places in the whole.

        It runs in several threads, so it changes nothing of `self`.
        """
        tables = dict(zip(self.packed, cells, strict=True))
        found = measure(self.shared.of(bucket), part_of_bucket(self.shared, bucket, tables))
        rows = found.rows
        placed = [self._placed(bucket, tables, rows)] if rows is not None and len(rows) else []
        return sum(map(len, tables.values())), replace(found, rows=None), placed

    # -----------------------------------------------------------------------------------------
    # results

    @cached_property
    def _stored(self) -> pa.Schema:
        """The columns of results that are kept until all are merged. The place of a list tells the
        others."""
        keys = self.needed.key_fields if self.needed.given is None else []
        return pa.schema([*keys, *self.needed.other_fields])

    def _placed(self, bucket: int, tables: Mapping[str, pa.Table], rows: ListRows) -> pa.Table:
        """Return the results of one bucket's lists, with their places in the whole."""
        first = self._first_seen(bucket, tables, rows.first)
        return rows_table(rows, self._stored).append_column(
            PLACE, pa.array(rows.list_by * self.span + first)
        )

    def _first_seen(
        self, bucket: int, tables: Mapping[str, pa.Table], first: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Return the number of the row in which each list first appears. It is below `span` and
        orders the lists."""
        if "given" in first:
            return np.flatnonzero(self.shared.given_bucket == bucket).take(first["given"])
        # A list that a frame does not have takes the last number, which is not used.
        found = {
            role: np.append(tables[role][ROW], 0).take(places) for role, places in first.items()
        }
        if len(found) == 1:
            return found.popitem()[1]
        return np.where(
            first["true"] >= 0, found["true"], self.needed.sources["true"].n_rows + found["pred"]
        )

    def _blocks(self, results: Results) -> Iterator[pd.DataFrame]:
        """Yield the rows of `per_user` in their order."""
        keys, given, call = self.needed.keys, self.needed.given, self.call
        for block in results.blocks():
            place = block[PLACE].to_numpy()
            labels = (
                [self.by_frame.take(place // self.span).reset_index(drop=True)]
                if self.needed.by
                else []
            )
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
        for_memory = (
            n_bytes
            * sizes.working_copies
            * min(n_threads(), sizes.at_once)
            / (limit * sizes.part_share)
        )
        for_cache = files.sources["pred"].n_rows / sizes.part_rows
        buckets = min(int(max(for_memory, for_cache)) + 1, sizes.most_buckets)
    at_a_time = limit * sizes.batch_share / (n_threads() + 3)
    batch_rows = {
        role: int(np.clip(at_a_time / n_bytes, *sizes.batch_rows))
        for role, n_bytes in row_bytes.items()
    }
    with closing(
        FilesEngine(folder, batch_rows, Memory(limit * sizes.kept_share), sizes.at_once, progress)
    ) as engine:
        return FilesRun(engine, files, buckets, sizes).write(folder, limit)
