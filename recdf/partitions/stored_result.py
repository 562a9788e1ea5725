"""The result of `evaluate_parquet` whose rows are in a folder: read whole when they are first used,
or dealt to buckets of users where they are too many for the memory of the call."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import RecdfError
from ..evaluation.evaluate import told
from ..evaluation.part import Failure
from ..evaluation.result import Evaluation
from ..evaluation.storage import Written, check_digest, read_tables
from ..inputs.machine import sizes
from ..publishing import PER_USER
from .files_run import BucketCells, Memory
from .packed import Packing
from .source import Source

MOST_DEALT, DEALT_ROWS = 2**12, 2**18


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
    limit : int
        Memory that the call may take, in bytes.
    """

    def __init__(
        self,
        summary: pd.DataFrame,
        spec: dict[str, Any],
        *,
        folder: Path,
        written: Written,
        limit: int,
    ) -> None:
        super().__init__(partial(_read_per_user, folder, written.digest), summary, spec)
        self._folder = folder
        self._written = written
        self._limit = limit

    @property
    def rows_stay(self) -> bool:
        """Whether the rows are in their file alone, and too many for the memory of the call."""
        n_bytes = sizes().working_copies * 8 * self._written.n_rows * self._written.n_columns
        return not isinstance(self._per_user, pd.DataFrame) and n_bytes > self._limit

    @cached_property
    def _source(self) -> Source:
        """The rows in their file. Raises DataError if the folder was overwritten in the
        meantime."""
        check_digest(self._folder, self._written.digest)
        return Source(self._folder / PER_USER, "per_user")

    @property
    def empty_rows(self) -> pd.DataFrame:
        """The columns and dtypes of `per_user`, and what was evaluated."""
        empty = self._source.as_pandas(self._source.schema.empty_table())
        empty.attrs = {"recdf": self.spec}
        return empty

    @property
    def by_values(self) -> pd.DataFrame:
        """The `by` values of the rows."""
        found = self.summary[self.spec["by"]].drop_duplicates(ignore_index=True)
        return found if self.spec["by"] else pd.DataFrame(index=range(1))

    def each_bucket(
        self, work: Callable[[pd.DataFrame], Any], columns: Sequence[str], keys: Sequence[str]
    ) -> list[Any]:
        """Return what `work` makes of some columns of each bucket, dealt by the values of
        `keys`."""
        source = self._source
        names = [name for name in columns if name in source.schema.names]
        n_bytes = sizes().working_copies * source.n_rows * source.row_bytes(names)
        n_buckets = int(min(n_bytes / (sizes().part_share * self._limit) + 1, MOST_DEALT))
        packing, found = Packing(keys, keys[0], n_buckets, source.fields(names)), []
        memory = Memory(sizes().kept_share * self._limit)
        with (
            tempfile.TemporaryDirectory() as folder,
            closing(BucketCells(Path(folder), n_buckets, packing.schema, memory)) as cells,
        ):
            cells.extend(map(packing.dealt, source.batches(names, DEALT_ROWS)))
            for bucket in range(n_buckets):
                rows = source.as_pandas(cells.read(bucket))
                try:
                    found += [work(rows)] if len(rows) else []
                except RecdfError as error:
                    raise told(Failure(error, bucket), n_buckets, "users") from error
        return found

    def _compared_rows(self, unused: str | None) -> Any:
        return self if self.rows_stay and unused is None else super()._compared_rows(unused)

    def _of_rows(self) -> str:
        return f"{self._written.n_rows:,} × {self._written.n_columns} in {self._folder / PER_USER}"

    def _first_rows(self) -> None:
        return None
