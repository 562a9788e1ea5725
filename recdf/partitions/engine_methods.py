"""What an engine must be able to do with its frames, its rows per list, and the dtypes that pandas
has for columns.

A call gets to the workers of an engine as bytes, which each process of a worker unpickles only
once. A user's own metrics are pickled by value, together with the functions that they call. A
worker cannot import the notebook or the script that defines them. Everything else is pickled as
cloudpickle does it by default.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from pickle import loads
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa

from .._version import __version__
from ..errors import EngineError, MissingExtraError, OptionError
from ..evaluation.part import nullable
from ..metrics.call import Call
from ..metrics.metric import Metric
from .engine_arguments import plain_line


@dataclass(frozen=True)
class Shared:
    """What the work on every bucket needs.

    call : the call with its side tables · by_values : the `by` values of all buckets · given,
    given_bucket : the lists that the caller gave as the population (`users=`), and the bucket of
    each · exclude_edges : where the rows that `exclude=` gives each bucket begin; None if every
    bucket takes all of them.
    """

    call: Call
    by_values: pd.DataFrame | None = None
    given: pd.DataFrame | None = None
    given_bucket: np.ndarray | None = None
    exclude_edges: np.ndarray | None = None

    def of(self, bucket: int) -> Call:
        """Return the call for one bucket. If the caller gave the population, it has the lists of
        this bucket only."""
        call = self.call
        if self.exclude_edges is not None:
            rows = slice(*self.exclude_edges[bucket : bucket + 2].tolist())
            call = replace(call, given={**call.given, "exclude": call.given["exclude"].iloc[rows]})
        if self.given is not None:
            mine = self.given.iloc[self.given_bucket == bucket].reset_index(drop=True)
            call = replace(call, options=call.options.updated(users=mine))
        return call


@dataclass(frozen=True)
class Handle:
    """How a worker gets some bytes: `read` returns them. Handles of the same bytes are equal."""

    digest: str
    read: Callable[[], bytes] = field(compare=False)


def inline_handle(data: bytes) -> Handle:
    """Return a handle that is sent with every task together with the bytes. They should be few: a
    megabyte at most."""
    return Handle(hashlib.sha256(data).hexdigest(), partial(bytes, data))


@dataclass(frozen=True)
class Here:
    """The object itself, such as a `Shared`, for work in threads of this process."""

    shared: Any


@dataclass(frozen=True)
class Sent:
    """Work on its way to the workers. A worker with another version of recdf refuses it."""

    work: Any

    def __call__(self, *given: Any) -> Any:
        return self.work(*given)

    def __reduce__(self) -> Any:
        return received, (__version__, _cloudpickle().dumps(self.work))


def received(version: str, data: bytes) -> Sent:
    """Return the work that another process sent, if it has the same version of recdf."""
    if version != __version__:
        raise EngineError(f"a worker has recdf {__version__}, and this process has {version}")
    return Sent(loads(data))


MOST_OPENED = 3  # the work on a bucket, rows in memory, and who the persons of devices are


def opened(handle: Handle | Here) -> Any:
    """Return the object that was pickled, such as a `Shared`."""
    return handle.shared if isinstance(handle, Here) else _opened(handle)


@lru_cache(MOST_OPENED)  # a process works on many buckets of one call, and unpickles it only once
def _opened(handle: Any) -> Any:
    data = handle.read()
    try:
        return loads(data)
    except Exception as error:  # such as a frame that another version of pandas pickled
        why = f"its packages have other versions ({type(error).__name__}: {error})"
        raise EngineError(f"a worker cannot read the call, since {why}") from error


def to_bytes(shared: Shared) -> bytes:
    """Return everything that the workers need as bytes. Raises OptionError if a metric or an option
    has none."""
    requests, pickles = shared.call.requests, _cloudpickle()
    # Functions of the modules of own metrics are pickled by value, with all that they use from
    # these modules.
    own = {one.metric.kernel.__module__ for one in requests if not one.metric.built_in}
    known = {*pickles.list_registry_pickle_by_value(), "__main__"}
    modules = [sys.modules[name] for name in sorted(own - known) if name in sys.modules]
    for module in modules:
        pickles.register_pickle_by_value(module)
    try:
        return _dumped(pickles, shared)
    except MemoryError:
        raise
    except Exception as error:  # of any class: an object says itself why it cannot be pickled
        what, why = "an option or a side table", plain_line(str(error)).rstrip(".")
        for one in requests[::-1]:
            try:
                _dumped(pickles, one)
            except Exception:
                what = f"the metric {one.metric.name!r}"
        raise OptionError(
            f"{what} cannot be sent to the workers: {why}; make such objects inside the function, "
            "or import them from a module"
        ) from error
    finally:
        for module in modules:
            pickles.unregister_pickle_by_value(module)


def _dumped(pickles: Any, one: Any) -> bytes:
    """Return an object as bytes. A user's own metric is pickled as the call that makes it again."""

    class Pickler(pickles.CloudPickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, Metric) and not obj.built_in:
                return obj.by_value()
            return super().reducer_override(obj)

    sink = io.BytesIO()
    Pickler(sink).dump(one)
    return sink.getvalue()


def _cloudpickle() -> Any:
    """Return cloudpickle, which comes with Dask, or the copy of it inside pyspark."""
    for name in ("cloudpickle", "pyspark.cloudpickle"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise MissingExtraError(
        "an engine sends its calls to workers with cloudpickle, which is not installed"
    )


OnChunk = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
OnBucket = Callable[[int, Sequence[Any]], pa.Table]


class InParts(Protocol):
    """What all frames whose rows are in parts can do: those of engines, and files on one
    machine."""

    name: str
    ordered: bool

    def schema(self, frame: Any) -> pa.Schema:
        """Return the columns of a frame and their Arrow types. No job runs if the engine knows
        them."""

    def head(self, frame: Any, names: Sequence[str], n: int) -> pa.Table:
        """Return up to `n` rows of some columns."""

    def each(self, frame: Any, names: Sequence[str], work: OnChunk, schema: pa.Schema) -> Any:
        """Return a lazy frame: the rows that `work` makes of some columns of each chunk.

        A chunk is any number of rows that a worker has at once. `work` takes its record batches,
        with the columns `names` in this order, and gives record batches that have the columns of
        `schema`.
        """

    def meet(
        self,
        packed: Sequence[Any],
        n_buckets: int,
        work: OnBucket,
        schema: pa.Schema,
        every: bool,
    ) -> Any:
        """Return a lazy frame: the rows that `work` makes of each bucket, in the columns of
        `schema`.

        All cells of a bucket, of whichever packed frame, go to the same worker. `work` takes the
        number of the bucket and its cells. With `every=True` it is also called for buckets without
        rows, since a caller may name lists (`users=`) that no frame has.
        """

    def collect(self, frame: Any) -> pa.Table:
        """Compute a frame and return its rows."""

    def labels(self, table: pa.Table, frame: Any) -> pd.DataFrame:
        """Return a table with some columns of a frame in the dtypes that pandas users of this
        engine expect."""


class Engine(InParts, Protocol):
    """What an engine can do with its frames.

    Attributes
    ----------
    name : str
        The name of the engine in messages, such as "Spark".
    ordered : bool
        Whether `each` keeps the order of the chunks. If it does, the summary has the `by` values in
        order of first appearance, and else in ascending order.

    Notes
    -----
    A frame is whatever the engine works with. A packed frame has two columns: `bucket`, the number
    of a part of the lists, and `cell`, bytes with some rows of this bucket. `each` makes packed
    frames, since `work` may be the packing. `meet` takes them. Frames may be lazy: only `schema`,
    `head`, `collect`, `local` and `write` need rows at once.
    """

    def n_buckets(self, *frames: Any) -> int:
        """Return how many buckets the rows of these frames should have."""

    def unpersist(self) -> None:
        """Forget rows that the engine keeps in memory for this call, if it keeps any."""

    def share(self, data: bytes) -> Handle:
        """Return an object whose `read()` gives a worker these bytes, and which equals that of the
        same bytes.

        The bytes are the call with its side tables, or an assignment. A worker unpickles them once.
        `inline_handle(data)` sends them with every task, which is right while they are few.
        """

    def local(self, data: Any) -> Any:
        """Return a frame of the engine, or a column with rows, in memory. Return any other value as
        it is."""

    def typed(self, frame: Any, like: pd.DataFrame) -> Any:
        """Return the rows per list with the dtypes of `like`, a frame without rows.

        An engine whose frames have no dtypes of pandas returns the frame as it is.
        """

    def write(self, frame: Any, folder: Path) -> None:
        """Write a frame as a folder of parquet files on a drive that all workers share."""


@dataclass(frozen=True)
class EngineRows:
    """Rows per list in a frame of an engine.

    empty : a pandas frame with the columns and dtypes, without rows · by : the `by` values of the
    rows · n : the number of rows · n_buckets : the number of buckets that the lists were
    distributed to · labels : gives a table with these rows the dtypes of `rd.evaluate`.
    """

    engine: Engine
    frame: Any
    empty: pd.DataFrame
    by: pd.DataFrame
    n: int
    n_buckets: int
    labels: Callable[[pa.Table], pd.DataFrame]

    def check(
        self, n: int, what: str = "the rows per list were computed again, and there are"
    ) -> None:
        """Raise if there are more or fewer rows than when the summary was made."""
        if n != self.n:
            raise EngineError(
                f"{what} {n:,} rows, but the summary is of {self.n:,} lists. If the frames have "
                "changed since the call, evaluate them again"
            )


def labels_of_table(table: pa.Table) -> pd.DataFrame:
    """Return labels in the default dtypes of pandas. Integers and bools beside a null stay
    exact."""
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            exact: Any = nullable(pd.Series([], dtype=kind.to_pandas_dtype())).dtype
            found[name] = pd.Series(exact.__from_arrow__(column))
        else:
            found[name] = table.select([name]).to_pandas()[name]
    return pd.DataFrame(found, index=range(len(table)))


def as_dtypes(frame: pd.DataFrame, dtypes: Mapping[Any, Any]) -> pd.DataFrame:
    """Return the columns in these dtypes. A column that has none, or whose values do not fit, stays
    as it is."""
    found = dict(frame.items())
    for name, column in frame.items():
        dtype = dtypes.get(name, column.dtype)
        has_categories = isinstance(dtype, pd.CategoricalDtype)
        if has_categories and not column.dropna().isin(dtype.categories).all():
            continue  # a value that is not among the categories would become null
        with suppress(TypeError, ValueError):  # the dtype is of integers, and a list has no value
            found[name] = column.astype(dtype)
    return pd.DataFrame(found, index=frame.index)
