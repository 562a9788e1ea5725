"""Results outside of memory: the rows of all parts in the order of the whole, and an `Evaluation` in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc

from ..evaluation.publishing import PER_USER
from ..evaluation.result import Evaluation
from ..evaluation.shown import result_html
from ..evaluation.storage import Written, read_tables
from ..inputs.codes import encode_keys
from ..inputs.ids import read_by
from ..matching.list_keys import at_heads, run_heads

BLOCK_ROWS, CHUNK_ROWS = 2**17, 2**11  # rows that are merged at a time, and rows that are read together
PLACE = "__place__"  # column of distinct integers by which the rows are to be sorted
NEVER = np.iinfo(np.int64).max


def first_rows(labels: pd.DataFrame, frame: pd.DataFrame, row: Any, names: list[str]) -> np.ndarray:
    """Return the first row of `frame` that has the labels of each list, or `NEVER`; `row` has the rows' numbers."""
    pairs = [read_by([labels[name], frame[name]], name) for name in names]
    mine, theirs = (list(columns) for columns in zip(*pairs, strict=True))
    heads = run_heads(theirs) if len(frame) else None
    numbers = np.asarray(row, np.int64) if heads is None else np.asarray(row, np.int64)[heads]
    (lists, rows), n_keys = encode_keys([mine, at_heads(theirs, heads)])
    first = np.full(n_keys, NEVER)
    first[rows.all()[::-1]] = numbers[::-1]  # numpy keeps the last assignment: the first row
    return first[lists.all()]


class Results:
    """Rows of the lists of all parts. They are written in any order and read in the order of their places."""

    def __init__(self, path: Path) -> None:
        self.path, self.n_rows = path, 0
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
        for start in range(0, len(table), CHUNK_ROWS):
            chunk = table.slice(start, CHUNK_ROWS).combine_chunks()
            self._writer.write_batch(chunk.to_batches()[0])
            self._low.append(int(place[start]))
            self._high.append(int(place[start + len(chunk) - 1]))
        self.n_rows += len(table)

    def blocks(self) -> Iterator[pa.Table]:
        """Yield all rows in order. A chunk is read once for each block that has rows of it, mostly once or twice."""
        self._writer.close()
        low, high = np.array(self._low), np.array(self._high)
        # A block begins at every n-th start of a chunk, so that all blocks have about the same number of rows.
        edges = np.sort(low)[:: max(1, BLOCK_ROWS // CHUNK_ROWS)]
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


def _read_per_user(stored: Any) -> pd.DataFrame:
    """Read the rows of `per_user.parquet`; raises DataError if the folder was overwritten since."""
    return read_tables(stored.folder, stored.written.digest).per_user


@dataclass(frozen=True, eq=False, repr=False)
class StoredEvaluation(Evaluation):
    """An `Evaluation` whose `per_user` stays in its file until it is first used.

    Attributes
    ----------
    folder : Path
        Folder of the result, absolute.
    written : Written
        Digest and size of the result in the folder, so that another result there is not taken for this one.
    """

    per_user: pd.DataFrame = field(init=False, default=cast(pd.DataFrame, cached_property(_read_per_user)))
    folder: Path = field(kw_only=True)
    written: Written = field(kw_only=True)

    def _title(self) -> str:
        rows = f"{self.written.n_rows:,} × {self.written.n_columns} in {self.folder / PER_USER}"
        return f"recdf {self.spec['recdf']}: per_user {rows}, summary {len(self.summary)} rows"

    def _repr_html_(self) -> str:
        return result_html(self._title(), self.summary, None)
