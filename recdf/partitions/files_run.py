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

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
from pandas import DataFrame
from pyarrow import Schema, Table

from ..errors import OptionError
from ..evaluation.part import PartResult, measure
from ..evaluation.storage import Written, write_files
from ..inputs.list_cells import ItemLists
from ..inputs.machine import n_threads, sizes, stream
from ..inputs.options import Names
from ..inputs.true_and_pred import BrokenRows, read_true
from ..progress import Progress
from .buckets import Dealt, Packing, as_part, dealt, known_rows, rows_table
from .engine_contract import InParts, OnBucket, OnChunk
from .engine_run import Run
from .needed import PLACE, ROW, NeededOfFiles
from .source import Source, frame_of_arrow

MadeBucket = TypeVar("MadeBucket")


@dataclass
class Memory:
    """The number of bytes that several cells together may still keep in memory."""

    left: float


class BucketCells:
    """The rows of each bucket in the order in which they were added: in memory, and later ones in a
    file."""

    def __init__(self, folder: Path | None, n_buckets: int, schema: Schema, memory: Memory) -> None:
        self.folder, self.schema, self.memory = folder, schema, memory
        self.n_bytes = np.zeros(n_buckets)
        self._kept: list[Dealt] = []
        self._file: Any = None
        # Of each bucket's rows in the file: the first byte, the number of bytes, and the types,
        # which may differ.
        self._places: list[list[tuple[int, int, Schema]]] = [[] for _ in range(n_buckets)]

    def extend(self, found: Iterable[Dealt]) -> None:
        """Keep rows that are sorted by bucket."""
        for one in found:
            table, edges = one
            if not len(table):
                continue
            self.n_bytes += table.nbytes / len(table) * np.diff(edges)
            if self._file is None and table.nbytes <= self.memory.left:
                self.memory.left -= table.nbytes
                self._kept.append(one)
                continue
            if self._file is None:
                self._file = TemporaryFile(dir=self.folder)  # noqa: SIM115 (see `close`)
            start = self._file.tell()
            for bucket in np.flatnonzero(np.diff(edges)).tolist():
                for batch in one.of(bucket).to_batches():
                    cell = batch.serialize()
                    self._file.write(cell)
                    self._places[bucket].append((start, cell.size, table.schema))
                    start += cell.size

    def read(self, bucket: int) -> Table:
        """Return all rows of a bucket. Integers are as wide as the widest that were added."""
        found = [one.of(bucket) for one in self._kept]
        places = self._places[bucket]
        end = 0
        # Memory of Arrow, which gives it back when it is free.
        data = pa.allocate_buffer(sum(size for _, size, _ in places))
        room = memoryview(data)
        # A table of each cell would take longer.
        for schema, cells in groupby(places, key=lambda place: place[2]):
            batches = []
            for start, size, _ in cells:
                self._file.seek(start)
                self._file.readinto(room[end : end + size])
                batches.append(ipc.read_record_batch(data.slice(end, size), schema))
                end += size
            found.append(Table.from_batches(batches))
        filled = [table for table in found if len(table)] or [self.schema.empty_table()]
        return pa.concat_tables(filled, promote_options="permissive")

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()


BATCH_ROWS = 2**18  # are dealt to parts at a time


class Results:
    """Rows of the lists of all parts. They may be added in any order, and are read in the order of
    `PLACE`: they are dealt to blocks of neighbouring places, and a block is sorted when it is
    read."""

    def __init__(self, folder: Path, n_parts: int, block_rows: int) -> None:
        self.folder, self.n_parts, self.block_rows = folder, n_parts, block_rows
        self._edges = np.zeros(0)
        self._cells: BucketCells | None = None

    def add(self, table: Table) -> None:
        """Keep the rows of a part. Parts are alike, so the first one tells where blocks begin."""
        place = table[PLACE].to_numpy()
        if self._cells is None:
            n_blocks = len(table) * self.n_parts // self.block_rows + 1
            self._edges = np.quantile(place, np.linspace(0, 1, n_blocks + 1)[1:-1])
            self._cells = BucketCells(self.folder, n_blocks, table.schema, Memory(0))
        block = np.searchsorted(self._edges, place, side="right").astype(np.uint16)
        self._cells.extend([dealt(table, block, len(self._edges) + 1)])

    def blocks(self) -> Iterator[Table]:
        """Yield all rows in order."""
        assert self._cells is not None
        for block in range(len(self._edges) + 1):
            table = self._cells.read(block)
            if len(table):
                yield table.take(pa.array(np.argsort(table[PLACE].to_numpy())))

    def close(self) -> None:
        """Remove the file."""
        if self._cells is not None:
            self._cells.close()


@dataclass(eq=False)
class Later:
    """Rows that some work makes of a frame, once they are needed: tables, or `BucketCells` if the
    work deals rows."""

    frame: Any
    names: Names
    work: Any
    schema: Schema
    made: Any
    done: bool = False

    def of(self, table: Table) -> list[Any]:
        """Do the work on some rows."""
        if isinstance(self.work, Packing):
            return [self.work.deal(table)]
        return [
            Table.from_batches([batch])
            for batch in self.work(table.select(self.names).to_batches())
        ]


@dataclass(eq=False)
class FilesEngine(InParts):
    """What files on one machine can do, as `InParts` asks. Frames are a `Source`, a `Later`, or a
    list of tables.

    batch_rows : by role, the rows that are dealt together · memory : for rows that are dealt ·
    at_once : how many buckets are worked on at the same time.
    """

    folder: Path | None
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

    def schema(self, frame: Source) -> Schema:
        return frame.schema

    def head(self, frame: Source, names: Names, n: int) -> Table:
        """Return the first rows that have no null."""
        found = frame.fields(names).empty_table()
        for table in frame.batches(names, n):
            found = pa.concat_tables([found, known_rows(table, names)])
            if len(found) >= n:
                break
        return found.slice(0, n)

    def each(self, frame: Any, names: Names, work: OnChunk, schema: Schema) -> Later:
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

        done = stream(
            lambda table: [one.of(table) for one in together], self.chunks(later.frame, names)
        )
        with closing(done):  # where keeping fails, the threads that do the work end too
            for found in done:
                for one, made in zip(together, found, strict=True):
                    one.made.extend(made)
        for one in together:
            one.done = True
        return later.made

    def chunks(self, frame: Any, names: Names) -> Iterator[Table]:
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
        schema: Schema,
        every: bool,
    ) -> list[Table]:
        return [schema.empty_table(), *self.on_buckets(packed, n_buckets, work, every)]

    def on_buckets(
        self,
        packed: Sequence[Later],
        n_buckets: int,
        work: Callable[[int, list[Table]], MadeBucket],
        every: bool,
    ) -> Generator[MadeBucket, None, None]:
        """Yield what `work` makes of each bucket, in the order of the buckets."""
        cells: list[BucketCells] = [self.made(frame) for frame in packed]
        n_bytes = sum(one.n_bytes for one in cells)
        filled = range(n_buckets) if every else np.flatnonzero(n_bytes).tolist()
        parts = ((bucket, [one.read(bucket) for one in cells]) for bucket in filled)
        return stream(lambda part: work(*part), parts, most=self.at_once)

    def collect(self, frame: Any) -> Table:
        return pa.concat_tables(
            [frame.schema.empty_table(), *self.made(frame)] if isinstance(frame, Later) else frame
        )

    def labels(self, table: Table, frame: Source) -> DataFrame:
        return frame.as_pandas(table)


@contextmanager
def files_engine(
    sources: Mapping[str, Source],
    what: str,
    memory: float,
    folder: Path | None = None,
    at_once: int = 1,
    shown: bool | None = None,
) -> Iterator[FilesEngine]:
    """Open an engine that deals the rows of files by their keys, and close it at the end. So many
    bytes of `memory` may wait for their bucket, and others wait in a file in the `folder`."""
    with Progress(sum(one.n_rows for one in sources.values()), what, shown) as progress:
        batch_rows = dict.fromkeys(sources, BATCH_ROWS)
        engine = FilesEngine(folder, batch_rows, Memory(memory), at_once, progress)
        with closing(engine):
            yield engine


class FilesRun(Run):
    """One call on files that are dealt to buckets."""

    engine: FilesEngine
    needed: NeededOfFiles

    def __init__(self, engine: FilesEngine, files: NeededOfFiles, n_buckets: int) -> None:
        numbered = files.call.options.population.frames
        row = pa.field(ROW, pa.int64())
        schemas = {
            role: one.append(row) if role in numbered else one
            for role, one in files.schemas.items()
        }
        super().__init__(engine, files.sources, replace(files, schemas=schemas), n_buckets)
        # `by` value × span + row orders the lists of the result, since `span` is larger than any
        # row number.
        self.span = files.n_rows + 1 + (0 if self.needed.given is None else len(self.needed.given))
        self.some_without_pred = False  # whether `pred` lacks lists of the population

    def _packing(self, schema: Schema, lists: ItemLists) -> Packing:
        narrow = {ROW, *self.needed.ids["true"], *self.needed.by}
        return replace(super()._packing(schema, lists), narrow=frozenset(narrow))

    def measure_all(self, results: Results) -> PartResult | None:
        """Add the results of all buckets, and write their rows to `results`.

        Where a bucket fails, the others are still measured, since rows that no bucket may have are
        reported first.
        """
        total = None
        packed = list(self.dealt.packed.values())
        parts = self.engine.on_buckets(packed, self.n_buckets, self._measured, self.dealt.every)
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
            # `true` is read once more, since a message shows the first wrong values in the order
            # of the rows.
            broken = BrokenRows(0)
            call = self.call
            lists = self.needed.lists["true"]
            for table in self.engine.chunks(self.frames["true"], self.needed.names("true")):
                of_table: dict[str, BrokenRows] = {}
                read_true(frame_of_arrow(lists.table(table)), call.options, of_table)
                broken += of_table["true"]
            total = replace(total, findings={**total.findings, "true": broken})
        # Messages name the number of all buckets, also of those without rows.
        return replace(total, buckets=frozenset(range(self.n_buckets)))

    def _measured(self, bucket: int, cells: list[Table]) -> tuple[int, PartResult, list[Table]]:
        """Measure one bucket: return its number of rows, its result, and its lists with their
        places in the whole.

        It runs in several threads, so it changes nothing of `self`.
        """
        tables = dict(zip(self.dealt.packed, cells, strict=True))
        found = measure(self.shared.of(bucket), as_part(self.shared, bucket, tables))
        rows = found.rows
        placed = []
        if rows is not None and len(rows):
            place = rows.list_by * self.span + self._first_seen(bucket, tables, rows.first)
            # The place of a list tells its other labels.
            keys = self.needed.key_fields if self.needed.given is None else []
            kept = rows_table(rows, pa.schema([*keys, *self.needed.other_fields]))
            placed = [kept.append_column(PLACE, pa.array(place))]
        return sum(map(len, tables.values())), replace(found, rows=None), placed

    def _first_seen(
        self, bucket: int, tables: Mapping[str, Table], first: Mapping[str, np.ndarray]
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
        n_true = self.needed.sources["true"].n_rows
        return np.where(first["true"] >= 0, found["true"], n_true + found["pred"])

    def blocks(self, results: Results) -> Iterator[DataFrame]:
        """Yield the rows of `per_user` in their order."""
        needed = self.needed
        for block in results.blocks():
            place = block[PLACE].to_numpy()
            by = self.by_frame.take(place // self.span).reset_index(drop=True)
            if needed.given is None:
                labels = needed.key_labels(block.select(needed.keys), self.heads)
            else:
                labels = needed.given[needed.keys].take(place % self.span).reset_index(drop=True)
            carried = needed.carried(block, self.some_without_pred)
            numbers = block.select(self.call.result_columns).to_pandas()
            yield pd.concat([by, labels, carried, numbers], axis=1)


def evaluate_dealt(
    files: NeededOfFiles,
    folder: Path,
    limit: int,
    buckets: int | None,
    progress: Progress,
) -> tuple[DataFrame, dict[str, Any], Written]:
    """Evaluate files in buckets within a limit of memory, and write both tables into the folder."""
    how = sizes()
    if buckets is None:
        copies = how.working_copies * min(n_threads(), how.at_once)
        for_memory = files.n_bytes * copies / (limit * how.part_share)
        for_cache = files.sources["pred"].n_rows / how.part_rows
        buckets = min(int(max(for_memory, for_cache)) + 1, how.most_buckets)
    at_a_time = limit * how.batch_share / (n_threads() + 3)
    batch_rows = {
        role: int(np.clip(at_a_time / n_bytes, *how.batch_rows))
        for role, n_bytes in files.row_bytes.items()
    }
    memory = Memory(limit * how.kept_share)
    with ExitStack() as stack:
        engine = FilesEngine(folder, batch_rows, memory, how.at_once, progress)
        run = FilesRun(stack.enter_context(closing(engine)), files, buckets)
        run.check_kinds()
        # What all buckets need is found now, since threads read it later, and none may begin it.
        _ = run.shared
        largest = int(sum(engine.made(one).n_bytes for one in run.dealt.packed.values()).max())
        if largest > limit:
            raise OptionError(
                f"⟦memory_limit={limit:,}⟧: one of {buckets:,} buckets of lists has "
                f"{largest:,} bytes; pass more memory, or, if no single list is that long, more "
                "buckets"
            )
        results = stack.enter_context(closing(Results(folder, buckets, how.block_rows)))
        _, summary, spec = run.finished(run.measure_all(results))
        blocks = run.blocks(results)
        return summary, spec, write_files(folder, blocks, summary, spec, lambda: files.per_user)
