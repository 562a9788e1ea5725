"""Results that are kept in files: the rows of all parts, read in the order of `evaluate`, and a
stored `Evaluation`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc

from ..evaluation.result import Evaluation
from ..evaluation.storage import Written, read_tables
from ..inputs.machine import Sizes
from ..publishing import PER_USER

PLACE = "__place__"  # column of distinct integers by which the rows are to be sorted


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


def _read_per_user(folder: Path, digest: str) -> pd.DataFrame:
    """Read the rows of `per_user.parquet`. Raise DataError if the folder was overwritten in the
    meantime."""
    return read_tables(folder, digest).per_user


class StoredEvaluation(Evaluation):
    """An `Evaluation` whose `per_user` stays in its file until it is first used. From then on it is
    in memory.

    Parameters
    ----------
    summary, spec
        The same as in `Evaluation`.
    folder : Path
        Absolute path of the folder that holds the result.
    written : Written
        Digest and size of the result. The digest reveals if another result has replaced it in the
        folder.
    """

    def __init__(
        self, summary: pd.DataFrame, spec: dict[str, Any], *, folder: Path, written: Written
    ) -> None:
        super().__init__(partial(_read_per_user, folder, written.digest), summary, spec)
        self._folder = folder
        self._written = written

    def _of_rows(self) -> str:
        return f"{self._written.n_rows:,} × {self._written.n_columns} in {self._folder / PER_USER}"

    def _first_rows(self) -> None:
        return None
