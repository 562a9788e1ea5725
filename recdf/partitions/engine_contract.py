"""What an engine must be able to do with its frames, how its `evaluate` shows its arguments, what
it refuses, and how it tells of jobs that fail.

A call gets to the workers of an engine as bytes, which each process of a worker unpickles only
once. A user's own metrics are pickled by value, together with the functions that they call. A
worker cannot import the notebook or the script that defines them. Everything else is pickled as
cloudpickle does it by default.

A `Watched` engine raises `EngineError` where a job of the engine fails. The message says what
failed, in which bucket if that is known, and what to do. The engine's exception is its `__cause__`.
Errors of recdf pass unchanged.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from pickle import loads
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas import DataFrame, Series
from pyarrow import RecordBatch, Schema, Table

from .. import errors
from .._version import __version__
from ..docstrings import Function
from ..errors import EngineError, MissingExtraError, OptionError, RecdfError, kind_of
from ..evaluation.evaluate import takes_evaluate_arguments
from ..inputs.ids import exact_nulls
from ..inputs.options import ByName, Names, Options
from ..inputs.true_and_pred import argument_of, hints_of
from ..metrics.call import Call
from ..metrics.metric import Metric


@dataclass(frozen=True)
class Shared:
    """What the work on every bucket needs.

    call : the call with its side tables · by_values : the `by` values of all buckets · given,
    given_bucket : the lists that the caller gave as the population (`users=`), and the bucket of
    each · exclude_edges : where the rows that `exclude=` gives each bucket begin; None if every
    bucket takes all of them.
    """

    call: Call
    by_values: DataFrame | None = None
    given: DataFrame | None = None
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


def opened(shared: Any) -> Any:
    """Return the object that was pickled, such as a `Shared`; without a handle, as in threads of
    this process, it is the object itself."""
    return _opened(shared) if isinstance(shared, Handle) else shared


@lru_cache(MOST_OPENED)  # a process works on many buckets of one call, and unpickles it only once
def _opened(handle: Any) -> Any:
    data = handle.read()
    try:
        return loads(data)
    except Exception as error:  # such as a frame that another version of pandas pickled
        why = f"its packages have other versions ({type(error).__name__}: {error})"
        raise EngineError(f"a worker cannot read the call, since {why}") from error


def to_bytes(shared: Any) -> bytes:
    """Return what the workers need as bytes, such as a `Shared`. Raises OptionError if a metric or
    an option has none."""
    requests = shared.call.requests if isinstance(shared, Shared) else ()
    pickles = _cloudpickle()
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
        what = "an option or a side table"
        why = plain_line(str(error)).rstrip(".")
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


OnChunk = Callable[[Iterable[RecordBatch]], Iterator[RecordBatch]]
OnBucket = Callable[[int, Sequence[Any]], Table]


class InParts(Protocol):
    """What all frames whose rows are in parts can do: those of engines, and files on one
    machine."""

    name: str
    ordered: bool

    def schema(self, frame: Any) -> Schema:
        """Return the columns of a frame and their Arrow types. No job runs if the engine knows
        them."""

    def head(self, frame: Any, names: Names, n: int) -> Table:
        """Return up to `n` rows of some columns."""

    def each(self, frame: Any, names: Names, work: OnChunk, schema: Schema) -> Any:
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
        schema: Schema,
        every: bool,
    ) -> Any:
        """Return a lazy frame: the rows that `work` makes of each bucket, in the columns of
        `schema`.

        All cells of a bucket, of whichever packed frame, go to the same worker. `work` takes the
        number of the bucket and its cells. With `every=True` it is also called for buckets without
        rows, since a caller may name lists (`users=`) that no frame has.
        """

    def collect(self, frame: Any) -> Table:
        """Compute a frame and return its rows."""

    def labels(self, table: Table, frame: Any) -> DataFrame:
        """Return a table with some columns of a frame in the dtypes that pandas users of this
        engine expect."""
        return labels_of_table(table)

    def sent(self, one: Any) -> Any:
        """Return what `opened` makes this object of, where the work on a bucket is."""
        return one


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
        return

    def sent(self, one: Any) -> Handle:
        return self.share(to_bytes(one))

    def share(self, data: bytes) -> Handle:
        """Return an object whose `read()` gives a worker these bytes, and which equals that of the
        same bytes.

        The bytes are the call with its side tables, or an assignment. A worker unpickles them once.
        `inline_handle(data)` sends them with every task, which is right while they are few.
        """
        return inline_handle(data)

    def local(self, data: Any) -> Any:
        """Return a frame of the engine, or a column with rows, in memory. Return any other value as
        it is."""

    def typed(self, frame: Any, like: DataFrame) -> Any:
        """Return the rows per list with the dtypes of `like`, a frame without rows.

        An engine whose frames have no dtypes of pandas returns the frame as it is.
        """
        return frame

    def write(self, frame: Any, folder: Path) -> None:
        """Write a frame as a folder of parquet files on a drive that all workers share."""


def labels_of_table(table: Table) -> DataFrame:
    """Return labels in the default dtypes of pandas. Integers and bools beside a null stay
    exact."""
    frame: DataFrame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            frame[name] = exact_nulls(column)
    return frame


def as_dtypes(frame: DataFrame, dtypes: Mapping[Any, Any]) -> DataFrame:
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
    return DataFrame(found, index=frame.index)


# ------------------------------------------------------------------------------------------
# What all engines say and refuse, and their errors.

DIFFER = ". Where scores are equal, the numbers may then differ from those of {name}"


def check_frames(frames: ByName, kind: Any, engine: str, make: str) -> None:
    """Raise unless the frames are of the engine. Only `true` and events may be None. `make` makes
    a frame from one of pandas."""
    for role, data in frames.items():
        if not isinstance(data, kind) and (data is not None or role in ("pred", "log")):
            of = " of pandas" if isinstance(data, DataFrame | Series) else ""
            raise TypeError(
                f"{role} is {kind_of(data)}{of}; expected a {engine} DataFrame: {make} makes one, "
                "and rd.evaluate takes frames in memory"
            )


def ties_by_row(options: Options, given: Collection[str], engine: str) -> OptionError:
    """Return the error where the order of the rows decides between equal scores. `given` names what
    the caller passed."""
    what = '⟦ties="row"⟧'
    differ = ""
    if options.convention is not None and "ties" not in given:
        name = options.convention.name
        what = f'⟦like="{name}"⟧ uses ⟦+ties="row"⟧: this'
        differ = DIFFER.format(name=name)
    return OptionError(
        f"{what} needs the order of the rows, which a {engine} frame does not keep; pass another "
        f'rule, such as ⟦+ties="item_desc"⟧{differ}'
    )


def no_order(options: Options, pred: DataFrame, engine: str) -> OptionError:
    """Return the error for a `pred` that only its rows could order."""
    what = "pred has no column that orders it"
    differ = ""
    like = options.convention
    names = list(hints_of(None, pred, options).unused_order)
    if like is not None and like.order == "row":
        what = f'⟦like="{like.name}"⟧ takes pred in the order of its rows'
        differ = DIFFER
        names = [name for name in ("score", "rank") if name in pred.columns]
    columns = " or ".join(map(argument_of, names)) or "⟦+score_col=⟧ or ⟦+rank_col=⟧"
    return OptionError(
        f"{what}, and a {engine} frame has no order of rows; pass {columns}"
        + differ.format(name=like and like.name)
    )


# What the docstrings of all engines say about results.
RESULTS = """\
Returns
-------
EngineEvaluation
    `.per_user` is a {name} frame whose rows are computed when they are used. `.summary` and `.spec`
    are those of `rd.evaluate`. `.to_pandas()` returns an `Evaluation` in memory.
    `.to_parquet(folder)` writes the rows from the workers.

Raises
------
ColumnError, IdTypeError, NullKeyError, DataError, OptionError
    For the same reasons as in `rd.evaluate`.
EmptyPopulationError, UndefinedMetricError
    For the same reasons as in `rd.evaluate`.
TypeError
    If a frame is not a {name} DataFrame.
MissingExtraError
    If the extra `recdf[{extra}]` is not installed.

Notes
-----
Use it where the data are in {name} already, or do not fit in the memory of one machine. Do not use
it for frames that fit in memory: `rd.evaluate` has no job to start and nothing to shuffle. For
parquet files on one machine, `rd.evaluate_parquet` needs no cluster."""


def takes_engine_arguments(name: str) -> Callable[[Function], Function]:
    """Show the arguments of `evaluate`, and what an engine returns, on the `evaluate` of an
    engine."""
    return takes_evaluate_arguments(name, results=RESULTS.format(name=name, extra=name.lower()))


# The methods of an engine that start a job, or make one that starts later.
JOBS = ("schema", "head", "each", "meet", "collect", "share", "local", "typed", "write")
RAISED = r"(Caused by: )?[\w.$]*(Error|Exception|Exit)\b: ?\S"  # a line that says what was raised
# What Spark adds to its messages: names of Java classes, and codes.
NOISE = (
    r"\(?\b(java|javax|org|scala|py4j|pyspark)\.[\w.$]*(Exception|Error)\b\)?:? ?",
    r"\[[A-Z][A-Z0-9_.]+\] ?",
    r"[ .]*\bSQLSTATE: \w+.*$",
)
MOST_LETTERS = 300  # letters of the engine's own message


class Cause(NamedTuple):
    """A cause of failures: what its messages contain, what it is in plain words, and what to do."""

    signs: str
    what: str
    remedy: str


SAME = (
    f"recdf {__version__}, pandas {pd.__version__}, pyarrow {pa.__version__}, numpy "
    f"{np.__version__}"
)
MORE = (
    "Pass more partitions= (now {n_buckets:,}), so that each bucket holds fewer lists, or {memory}"
)
# The memory of Spark's Python workers is not that of Java.
MEMORY = {
    "Spark": "give Python more memory: raise spark.executor.memoryOverhead, and "
    "spark.executor.pyspark.memory if it is set"
}
INSTALL = (
    f"Install on every worker what this process has: {SAME}, and what your own metrics import. "
    "recdf may also be sent as a zip: by addPyFile, addArtifacts or upload_file. Spark's workers "
    "run the Python that PYSPARK_PYTHON names"
)

CAUSES = (
    Cause(
        r"maxResultSize|Results of .* is bigger than",
        "the result is too large for this process",
        "Write the rows with to_parquet, or raise spark.driver.maxResultSize",
    ),
    Cause(
        r"Java heap space|GC overhead limit",
        "Java ran out of memory",
        "Pass more partitions= (now {n_buckets:,}), or raise spark.executor.memory, or "
        "spark.driver.memory if the driver ran out of it",
    ),
    Cause(
        r"MemoryError|OutOfMemory|Cannot allocate memory|bad_alloc|memory limits|realloc of size"
        r"|malloc of size|OOMKilled|(exit|code|status)\W{0,3}137\b|OversizedAllocation",
        "a worker ran out of memory{where}{wanted}",
        MORE,
    ),
    Cause(r"EngineError: (?P<own>[^\n]+)", "{own}", INSTALL),
    Cause(r"No module named '?(?P<own>[\w.]+)", "a worker has no module {own}", INSTALL),
    Cause(
        r"PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION",
        "a worker lacks a package ({detail})",
        INSTALL,
    ),
    Cause(
        r"PYTHON_VERSION_MISMATCH|Python in worker has different version",
        "a worker runs another Python ({detail})",
        INSTALL,
    ),
    Cause(
        r"Can't get attribute|cannot import name|incompatible .*pickle|unsupported pickle",
        "a worker has other versions of the packages than this process ({detail})",
        INSTALL,
    ),
    Cause(
        r"\bPERSIST\b.* not supported|NOT_SUPPORTED_WITH_SERVERLESS",
        "the platform lacks what it needs ({detail})",
        "Call without cache=True",
    ),
    Cause(
        r"NO_ACTIVE_SESSION|NO_ACTIVE_OR_DEFAULT_SESSION|SESSION_(CLOSED|NOT_FOUND|CHANGED)"
        r"|stopped SparkContext|SparkContext (was|has been) (shut ?down|stopped)"
        r"|No active Spark ?session|SparkSession should be created first|'setCallSite'",
        "the session of Spark has stopped",
        "Start a new session, read the frames in it, and repeat the call",
    ),
    Cause(
        r"Path does not exist|PATH_NOT_FOUND|TABLE_OR_VIEW_NOT_FOUND",
        "a path or a table of a frame does not exist ({detail})",
        "Check its name, and whether the workers can see it",
    ),
    Cause(
        r"FileNotFound|No such file|FILE_NOT_EXIST|FAILED_READ_FILE",
        "a file of a frame cannot be read ({detail})",
        "Check the path. If the file was deleted or written again after the frame was made, read "
        "the frame again and repeat the call",
    ),
    Cause(
        r"KilledWorker|exited unexpectedly|ExecutorLost|[Ee]xecutor .*(lost|exited)"
        r"|Worker .*(lost|died)|crashed|BrokenProcessPool|CancelledError|CommClosed|SIGKILL",
        "a worker process ended{where}",
        "Most often it ran out of memory. " + MORE + ". The log of the worker says more",
    ),
)
UNKNOWN = Cause(
    "",
    "{detail}",
    "The whole error is in error.__cause__. If the frame fails without recdf too, the cause is in "
    "its own steps",
)
# What Spark hands on of an error of a worker is text alone. So one sentence is both written and
# read.
IN_BUCKET = "in bucket {} of lists:{}"
WANTED = r"(?:Unable to allocate|[mr]e?alloc of size)[^\n]*"  # how much memory was asked for


@dataclass(frozen=True)
class Watched:
    """An engine that raises `EngineError` where one of its jobs fails."""

    _engine: Any
    _n_buckets: int

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        return self._told(found) if name in JOBS else found

    def _told(self, job: Callable[..., Any]) -> Callable[..., Any]:
        def told(*given: Any) -> Any:
            try:
                return job(*given)
            except Exception as error:  # a worker raises EngineError too
                if isinstance(error, RecdfError) and not isinstance(error, EngineError):
                    raise
                raise engine_error(self._engine.name, error, self._n_buckets) from error

        return told


def engine_error(engine: str, error: BaseException, n_buckets: int) -> Exception:
    """Return the error for users of an exception that a job of the engine raised."""
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in chain:
        chain.append(one)
        one = one.__cause__ or one.__context__
    text = "\n".join(f"{type(one).__name__}: {one}" for one in chain)
    own = re.search(r"(?s:.*)recdf\.errors\.(?!Engine)(\w+): (.+)", text)  # all that Spark hands on
    if own:
        marked = re.sub(r"\S+\.astype\([^)]*\)", r"⟦\g<0>⟧", own[2])
        return getattr(errors, own[1])(marked)
    found = ((cause, re.search(cause.signs, text)) for cause in CAUSES)
    cause, match = next((pair for pair in found if pair[1]), (UNKNOWN, None))
    bucket = re.search(IN_BUCKET.format(r"(\d+)", r"([^\n]*)"), text)
    wanted = bucket[2].strip() if bucket else "".join(re.findall(WANTED, text)[:1])
    words = {
        "where": "" if bucket is None else f" in bucket {int(bucket[1]):,} of {n_buckets:,}",
        "wanted": f" ({_short_line(wanted)})" if wanted else "",
        "own": (match.groupdict().get("own") or "").strip() if match else "",
        "detail": _detail(error),
        "n_buckets": n_buckets,
        "memory": MEMORY.get(engine, "give the workers more memory"),
    }
    return EngineError(
        f"a job of {engine} failed: {cause.what.format(**words)}. {cause.remedy.format(**words)}"
    )


def _detail(error: BaseException) -> str:
    """Return the line of an exception's message that says what happened, without the traces of
    Python and Java."""
    lines = str(error).splitlines()
    name = type(error).__name__
    raised = [line.removeprefix("Caused by: ").strip() for line in lines if re.match(RAISED, line)]
    python = [line for line in raised if not re.match(r"(java|org|scala|py4j)\.", line)]
    first = next((line.strip() for line in lines if line.strip()), "")
    if raised:
        return _short_line(plain_line((python or raised)[-1]))
    if not first or type(error).__module__.startswith("pyspark"):
        return _short_line(plain_line(first or name))
    return _short_line(f"{name}: {plain_line(first)}")


def plain_line(line: str) -> str:
    """Return a line without the names of Java classes and the codes of Spark, if it then still says
    something."""
    found = line
    for noise in NOISE:
        found = re.sub(noise, "", found)
    return found.strip() or line


def _short_line(line: str) -> str:
    return (line if len(line) <= MOST_LETTERS else f"{line[:MOST_LETTERS]}...").rstrip(".")
