"""The arguments of an engine: how its `evaluate` shows them, what it refuses, and how it tells of
jobs that fail.

Contract: a `Watched` engine raises `EngineError` where a job of the engine fails. The message says
what failed, in which bucket if that is known, and what to do. The engine's exception is its
`__cause__`. Errors of recdf pass unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from .._version import __version__
from ..docstrings import Function
from ..errors import EngineError, OptionError, RecdfError, kind_of
from ..evaluation.evaluate import takes_evaluate_arguments
from ..inputs.options import Options
from ..inputs.true_and_pred import argument_of, hints_of

DIFFER = ". Where scores are equal, the numbers may then differ from those of {name}"


def check_frames(frames: Mapping[str, Any], kind: Any, engine: str, make: str) -> None:
    """Raise unless the frames are of the engine. Only `true` and events may be None. `make` makes
    a frame from one of pandas."""
    for role, data in frames.items():
        if not isinstance(data, kind) and (data is not None or role in ("pred", "log")):
            of = "" if data is None else f" of {type(data).__module__}"
            raise TypeError(
                f"{role} is {kind_of(data)}{of}; expected a {engine} DataFrame: {make} makes one, "
                "and rd.evaluate takes frames in memory"
            )


def ties_by_row(options: Options, given: Collection[str], engine: str) -> OptionError:
    """Return the error where the order of the rows decides between equal scores. `given` names what
    the caller passed."""
    what, differ = '⟦ties="row"⟧', ""
    if options.convention is not None and "ties" not in given:
        name = options.convention.name
        what, differ = f'⟦like="{name}"⟧ uses ⟦+ties="row"⟧: this', DIFFER.format(name=name)
    return OptionError(
        f"{what} needs the order of the rows, which a {engine} frame does not keep; pass another "
        f'rule, such as ⟦+ties="item_desc"⟧{differ}'
    )


def no_order(options: Options, pred: pd.DataFrame, engine: str) -> OptionError:
    """Return the error for a `pred` that only its rows could order."""
    what, differ, like = "pred has no column that orders it", "", options.convention
    names = list(hints_of(None, pred, options).unused_order)
    if like is not None and like.order == "row":
        what, differ = f'⟦like="{like.name}"⟧ takes pred in the order of its rows', DIFFER
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
    results = RESULTS.format(name=name, extra=name.lower())
    return takes_evaluate_arguments(name, results=results)


# The methods of an engine that start a job, or make one that starts later.
JOBS = (
    *("schema", "head", "each", "together", "meet", "collect", "share", "local", "typed"),
    "write",
)
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


class Watched:
    """An engine that raises `EngineError` where one of its jobs fails."""

    def __init__(self, engine: Any, n_buckets: int) -> None:
        self._engine, self._n_buckets = engine, n_buckets

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        return self._told(found) if name in JOBS else found

    def _told(self, job: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(job)
        def told(*given: Any) -> Any:
            try:
                return job(*given)
            except Exception as error:  # a worker raises EngineError too
                if isinstance(error, RecdfError) and not isinstance(error, EngineError):
                    raise
                raise engine_error(self._engine.name, error, self._n_buckets) from error

        return told


def engine_error(engine: str, error: BaseException, n_buckets: int) -> EngineError:
    """Return the error for users of an exception that a job of the engine raised."""
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in chain:
        chain.append(one)
        one = one.__cause__ or one.__context__
    text = "\n".join(f"{type(one).__name__}: {one}" for one in chain)
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
    lines, name = str(error).splitlines(), type(error).__name__
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
