"""What an engine must be able to do with its frames, its rows per list, and the dtypes that pandas has for columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import pandas as pd
import pyarrow as pa

from ..errors import EngineError
from ..evaluation.carry import nullable
from .shipped import Handle

EngineFrame = TypeVar("EngineFrame")
OnChunk = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
OnBucket = Callable[[int, Sequence[Any], Sequence[Any]], pa.Table]


class InParts(Protocol[EngineFrame]):
    """What all frames whose rows are in parts can do: those of engines, and files on one machine."""

    name: str
    ordered: bool

    def schema(self, frame: EngineFrame) -> pa.Schema:
        """Return the columns of a frame and their Arrow types. No job runs if the engine knows them."""

    def head(self, frame: EngineFrame, names: Sequence[str], n: int) -> pa.Table:
        """Return up to `n` rows of some columns."""

    def each(self, frame: EngineFrame, names: Sequence[str], work: OnChunk, schema: pa.Schema) -> EngineFrame:
        """Return a lazy frame: the rows that `work` makes of some columns of each chunk.

        A chunk is any number of rows that a worker has at once. `work` takes its record batches, with the columns
        `names` in this order, and gives record batches that have the columns of `schema`.
        """

    def meet(
        self, true: EngineFrame | None, pred: EngineFrame, n_buckets: int, work: OnBucket, schema: pa.Schema,
        every: bool,
    ) -> EngineFrame:  # fmt: skip
        """Return a lazy frame: the rows that `work` makes of each bucket, in the columns of `schema`.

        Both frames are packed; `true` is None where there is one frame only. All cells of a bucket go to the same
        worker. `work` takes the number of the bucket, its cells of `true` and its cells of `pred`. With
        `every=True` it is also called for buckets without rows, since a caller may name lists (`users=`) that no frame
        has.
        """

    def collect(self, frame: EngineFrame) -> pa.Table:
        """Compute a frame and return its rows."""

    def labels(self, table: pa.Table, frame: EngineFrame) -> pd.DataFrame:
        """Return a table with some columns of a frame in the dtypes that pandas users of this engine expect."""


class Engine(InParts[EngineFrame], Protocol[EngineFrame]):
    """What an engine can do with its frames.

    Attributes
    ----------
    name : str
        The name of the engine in messages, such as "Spark".
    ordered : bool
        Whether `each` keeps the order of the chunks. If it does, the summary has the `by` values in order of first
        appearance, and else in ascending order.

    Notes
    -----
    A frame is whatever the engine works with. A packed frame has two columns: `bucket`, the number of a part of the
    lists, and `cell`, bytes with some rows of this bucket. `each` makes packed frames, since `work` may be the packing.
    `meet` takes them. Frames may be lazy: only `schema`, `head`, `collect`, `local` and `write` need rows at once.
    """

    def unpersist(self) -> None:
        """Forget rows that the engine keeps in memory for this call, if it keeps any."""

    def share(self, data: bytes, digest: str) -> Handle:
        """Return an object whose `read()` gives a worker these bytes, and whose `digest` is the given one.

        The bytes are the call with its side tables, or an assignment. A worker unpickles them once for each digest.
        `Inline(digest, data)` sends them with every task, which is right while they are few.
        """

    def local(self, data: Any) -> Any:
        """Return a frame of the engine, or a column with rows, in memory. Return any other value as it is."""

    def typed(self, frame: EngineFrame, like: pd.DataFrame) -> EngineFrame:
        """Return the rows per list with the dtypes of `like`, a frame without rows.

        An engine whose frames have no dtypes of pandas returns the frame as it is.
        """

    def write(self, frame: EngineFrame, folder: Path) -> None:
        """Write a frame as a folder of parquet files on a drive that all workers share."""


@dataclass(frozen=True)
class EngineRows(Generic[EngineFrame]):
    """Rows per list in a frame of an engine.

    empty : a pandas frame with the columns and dtypes, without rows · by : the `by` values of the rows · n : the number
    of rows · n_buckets : the number of buckets that the lists were distributed to · labels : gives a table with these
    rows the dtypes of `rd.evaluate`.
    """

    engine: Engine[EngineFrame]
    frame: EngineFrame
    empty: pd.DataFrame
    by: pd.DataFrame
    n: int
    n_buckets: int
    labels: Callable[[pa.Table], pd.DataFrame]

    def check(self, n: int, what: str = "the rows per list were computed again, and there are") -> None:
        """Raise if there are more or fewer rows than when the summary was made."""
        if n != self.n:
            raise EngineError(
                f"{what} {n:,} rows, but the summary is of {self.n:,} lists. If the frames have changed since the "
                "call, evaluate them again"
            )


def labels_of_table(table: pa.Table) -> pd.DataFrame:
    """Return labels in the default dtypes of pandas. Integers and bools beside a null stay exact."""
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        exact: Any = None
        if column.null_count and (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
            like = pd.Series([], dtype=column.type.to_pandas_dtype(), name=name)
            exact = nullable(like).dtype
        found[name] = (
            table.select([name]).to_pandas()[name] if exact is None else pd.Series(exact.__from_arrow__(column))
        )
    return pd.DataFrame(found, index=range(len(table)))


def as_dtypes(frame: pd.DataFrame, dtypes: Mapping[Any, Any]) -> pd.DataFrame:
    """Return the columns in these dtypes. A column that has none, or whose values do not fit, stays as it is."""
    found = {name: _as_dtype(frame[name], dtypes.get(name, frame[name].dtype)) for name in frame.columns}
    return pd.DataFrame(found, index=frame.index)


def _as_dtype(column: pd.Series, dtype: Any) -> pd.Series:
    if isinstance(dtype, pd.CategoricalDtype) and not column.dropna().isin(dtype.categories).all():
        return column  # a value that is not among the categories would become null
    try:
        return column.astype(dtype)
    except (TypeError, ValueError):  # the dtype is of integers, and a list has no value
        return column
