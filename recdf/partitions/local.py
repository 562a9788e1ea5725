"""Parquet files on one machine: an engine in threads.

Contract: `FilesEngine` has the methods of `InParts`: chunks are batches of rows, workers are threads. A file is read
once for all work that waits for its rows. Rows that are dealt to buckets stay in memory while they fit, and later ones
go to one temporary file for each frame.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc

from ..inputs.threads import stream
from ..progress import Progress
from .engine_methods import OnBucket, OnChunk
from .needed import ROW
from .packed import Dealt, Packing, known_rows
from .source import Source

MadeBucket = TypeVar("MadeBucket")


class Memory:
    """The number of bytes that several cells together may keep in memory."""

    def __init__(self, n_bytes: float) -> None:
        self.left = n_bytes


class BucketCells:
    """The rows of each bucket in the order in which they were added: in memory, and later ones in a file."""

    def __init__(self, folder: Path, n_buckets: int, schema: pa.Schema, memory: Memory) -> None:
        self.folder, self.schema, self.memory = folder, schema, memory
        self.n_bytes = np.zeros(n_buckets)
        self._kept: list[Dealt] = []
        self._file: Any = None
        # Of each bucket's rows in the file: the first byte, the number of bytes, and the types, which may differ.
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
        start = self._file.tell()
        for bucket in np.flatnonzero(np.diff(edges)).tolist():
            for batch in table.slice(edges[bucket], edges[bucket + 1] - edges[bucket]).to_batches():
                cell = batch.serialize()
                self._file.write(cell)
                self._places[bucket].append((start, cell.size, table.schema))
                start += cell.size

    def read(self, bucket: int) -> pa.Table:
        """Return all rows of a bucket. Integers are as wide as the widest that were added."""
        found = [table.slice(edges[bucket], edges[bucket + 1] - edges[bucket]) for table, edges in self._kept]
        places = self._places[bucket]
        data = pa.allocate_buffer(sum(size for _, size, _ in places))  # of Arrow, which gives it back when it is free
        ends = np.cumsum([size for _, size, _ in places]).tolist()
        for (start, size, schema), end in zip(places, ends, strict=True):
            self._file.seek(start)
            self._file.readinto(memoryview(data)[end - size : end])
            batch = ipc.read_record_batch(data.slice(end - size, size), schema)
            found.append(pa.Table.from_batches([batch]))
        filled = [table for table in found if len(table)] or [self.schema.empty_table()]
        return pa.concat_tables(filled, promote_options="permissive")

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()


@dataclass(eq=False)
class Later:
    """Rows that some work makes of a frame, once they are needed: tables, or `BucketCells` if the work deals rows."""

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
        return [pa.Table.from_batches([batch]) for batch in self.work(table.select(self.names).to_batches())]


@dataclass(eq=False)
class FilesEngine:
    """What files on one machine can do, as `InParts` asks. Frames are a `Source`, a `Later`, or a list of tables.

    batch_rows : by role, the rows that are dealt together · memory : for rows that are dealt · at_once : how many
    buckets are worked on at the same time.
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
            made = self._open.enter_context(closing(BucketCells(self.folder, work.n_buckets, work.schema, self.memory)))
        self._later.append(Later(frame, names, work, schema, made))
        return self._later[-1]

    def made(self, later: Later) -> Any:
        """Return what work made of a frame. The frame is read once for all work that waits for it."""
        if later.done:
            return later.made
        together = [one for one in self._later if one.frame is later.frame and not one.done]
        names = list(dict.fromkeys(name for one in together for name in one.names))

        def keep(found: list[list[Any]]) -> None:
            for one, made in zip(together, found, strict=True):
                one.made.extend(made)

        # One thread more keeps the rows, in their order. Where it fails, the threads that do the work end too.
        done = stream(lambda table: [one.of(table) for one in together], self.chunks(later.frame, names))
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
        for table in frame.batches([name for name in names if name != ROW], self.batch_rows[frame.role]):
            rows = np.arange(first, first + len(table)) if ROW in names else None
            yield table if rows is None else table.append_column(ROW, pa.array(rows))
            first += len(table)
            self.progress.add(len(table))

    def meet(
        self, true: Later | None, pred: Later, n_buckets: int, work: OnBucket, schema: pa.Schema, every: bool
    ) -> list[pa.Table]:
        return [schema.empty_table(), *self.on_buckets(true, pred, n_buckets, work, every)]

    def on_buckets(
        self, true: Later | None, pred: Later, n_buckets: int, work: Callable[..., MadeBucket], every: bool
    ) -> Generator[MadeBucket, None, None]:
        """Yield what `work` makes of each bucket. Some are worked on at the same time, while the next one is read."""
        cells: list[BucketCells | None] = [None if frame is None else self.made(frame) for frame in (true, pred)]
        n_bytes = sum(one.n_bytes for one in cells if one is not None)
        filled = range(n_buckets) if every else np.flatnonzero(n_bytes).tolist()

        def rows(cell: BucketCells | None, bucket: int) -> list[pa.Table]:
            return [] if cell is None else [cell.read(bucket)]

        parts = ((bucket, rows(cells[0], bucket), rows(cells[1], bucket)) for bucket in filled)
        return stream(lambda part: work(*part), parts, most=self.at_once)

    def collect(self, frame: Any) -> pa.Table:
        return pa.concat_tables([frame.schema.empty_table(), *self.made(frame)] if isinstance(frame, Later) else frame)

    def labels(self, table: pa.Table, frame: Source) -> pd.DataFrame:
        return frame.as_pandas(table)
