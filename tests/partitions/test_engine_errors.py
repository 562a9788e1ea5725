"""Failures of an engine's own jobs are errors that say what failed, in which bucket, and what to
do."""

import pickle
import re
import threading

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.partitions.engine_contract import Sent, engine_error, inline_handle, opened, received

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

from partitions.engine_cases import frames  # noqa: E402


class KilledWorker(Exception):
    """Named as the exception of Dask's workers."""


class AnalysisException(Exception):
    """Named as an exception of pyspark."""

    __module__ = "pyspark.errors"


def from_worker(line):
    """An exception as Spark passes it on from a worker."""
    return RuntimeError(SPARK_TRACE.format(line))


SPARK_TRACE = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "work.py", line 9, in __call__
{}

JVM stacktrace:
org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.scheduler.DAGScheduler"""
JAVA_TRACE = """An error occurred while calling o6.getResult.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 4 times
\tat org.apache.spark.scheduler.DAGScheduler
Caused by: org.apache.spark.SparkFileNotFoundException: [FAILED_READ_FILE.FILE_NOT_EXIST] /x/1"""

# (exception of the engine, beginning of the message, words of the remedy)
FAILURES = [
    (
        MemoryError("in bucket 3 of lists: Unable to allocate 728. TiB"),
        "a worker ran out of memory in bucket 3 of 8 (Unable to allocate 728. TiB).",
        "partitions=",
    ),
    (
        from_worker("ArrowMemoryError: malloc of size 64 failed"),
        "a worker ran out of memory (malloc of size 64 f",
        "",
    ),
    (
        MemoryError("in bucket 3 of lists: "),
        "a worker ran out of memory in bucket 3 of 8.",
        "partitions= (now 8)",
    ),
    (
        from_worker("MemoryError: in bucket 11 of lists: "),
        "a worker ran out of memory in bucket 11 of 8",
        "",
    ),
    (
        RuntimeError("java.lang.OutOfMemoryError: Java heap space"),
        "Java ran out of memory.",
        "spark.executor.memory,",
    ),
    (
        RuntimeError(
            "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: "
            "Container killed by YARN for exceeding memory limits. 5.5 GB of 5.5 GB physical "
            "memory used."
        ),
        "a worker ran out of memory. Pass more partitions= (now 8)",
        "spark.executor.memoryOverhead",
    ),
    (
        RuntimeError(
            "ExecutorLostFailure (executor 1 exited) Reason: Command exited with code 137"
        ),
        "a worker ran out of memory.",
        "spark.executor.memoryOverhead",
    ),
    (
        RuntimeError(
            "Container from a bad node: c_1 on host: x. Exit status: 137. Diagnostics: Container "
            "killed on request. Exit code is 137"
        ),
        "a worker ran out of memory.",
        "spark.executor.pyspark.memory",
    ),
    (
        RuntimeError(
            "The executor with id 1 exited with exit code 137(SIGKILL, possible container OOM)."
        ),
        "a worker ran out of memory.",
        "spark.executor.memoryOverhead",
    ),
    (
        RuntimeError("Executor 2 exited with code 134"),
        "a worker process ended.",
        "spark.executor.memoryOverhead",
    ),
    (
        RuntimeError(
            "OversizedAllocationException: Memory required for vector capacity 9 is (9), which is "
            "more"
        ),
        "a worker ran out of memory.",
        "partitions= (now 8)",
    ),
    (
        RuntimeError("Total size is bigger: spark.driver.maxResultSize"),
        "the result is too large",
        "to_parquet",
    ),
    (KilledWorker("task 5"), "a worker process ended.", "partitions= (now 8)"),
    (
        RuntimeError("Python worker exited unexpectedly (crashed)"),
        "a worker process ended.",
        "raise spark.executor.memoryOverhead, and spark.executor.pyspark.memory if it is set. The "
        "log of the worker",
    ),
    (
        from_worker("ModuleNotFoundError: No module named 'recdf'"),
        "a worker has no module recdf.",
        "a zip: by addPyFile",
    ),
    (
        ModuleNotFoundError("No module named 'pyarrow'"),
        "a worker has no module pyarrow.",
        f"recdf {rd.__version__}",
    ),
    (
        RuntimeError("[PYTHON_VERSION_MISMATCH] Python in worker"),
        "a worker runs another Python",
        "PYSPARK_PYTHON",
    ),
    (
        AttributeError("Can't get attribute 'Sent'"),
        "a worker has other versions of the packages",
        "Install",
    ),
    (
        RuntimeError(JAVA_TRACE),
        "a file of a frame cannot be read (/x/1). Check the path. If",
        "again",
    ),
    (
        AnalysisException("[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03;\n'Plan"),
        "a path or a table of a frame does not exist (Path does not exist: file:/x). Check its "
        "name",
        "workers",
    ),
    (
        AnalysisException(
            "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found. SQLSTATE: 42P01; line 1"
        ),
        "a path or a table of a frame does not exist (The table `x` cannot be found). Check",
        "",
    ),
    (
        AnalysisException("[UNSUPPORTED.SCHEMA] Joins are odd. SQLSTATE: 0A000"),
        "Joins are odd. The whole",
        "cause",
    ),
    (
        AnalysisException("[NO_ACTIVE_SESSION] No active Spark session found."),
        "the session of Spark has st",
        "Start",
    ),
    (
        AnalysisException(
            "[NOT_SUPPORTED_WITH_SERVERLESS] PERSIST TABLE is not supported on serverless compute."
        ),
        "the platform lacks what it needs (PERSIST TABLE is not supported on serverless",
        "without cache=True",
    ),
    (
        AttributeError("'NoneType' object has no attribute 'setCallSite'"),
        "the session of Spark has stopped.",
        "Start",
    ),
    (
        RuntimeError(
            "(org.apache.spark.SparkException) Job 3 cancelled because SparkContext was shut down"
        ),
        "the session of Spark has stopped.",
        "Start a new",
    ),
    (
        FileNotFoundError(2, "No such file", "x"),
        "a file of a frame cannot be read (FileNotFoundError: ",
        "again",
    ),
    (
        ValueError("odd\nand more"),
        "ValueError: odd. The whole error is in error.__cause__. If the frame f",
        "steps",
    ),
    (KeyError(), "KeyError.", "cause"),
]


def test_a_failure_is_told_in_plain_words():
    for error, begins, remedy in FAILURES:
        told = str(engine_error("Spark", error, 8))
        assert told.startswith(f"a job of Spark failed: {begins}"), told
        assert remedy in told.partition(begins)[2], told
        assert "\n" not in told
        assert "\tat" not in told


def test_an_error_of_recdf_in_a_worker_is_raised_as_it_was_there():
    trace = "Traceback (most recent call last):\n  File x\n{}\n\tat org.apache.spark.X(X.scala:1)"
    inner = (
        "recdf.errors.DataError: other\nDuring this\nrecdf.errors.IdTypeError: no, x.astype(str)"
    )
    error = engine_error("Spark", RuntimeError(trace.format(inner)), 8)
    assert type(error) is rd.IdTypeError
    assert str(error) == "no, x.astype(str)"
    assert error.marked == "no, ⟦x.astype(str)⟧"
    failed = RuntimeError(trace.format("recdf.errors.EngineError: a worker has recdf 1"))
    assert str(engine_error("Spark", failed, 8)).startswith("a job of Spark failed: a worker has")


def test_advice_on_memory_is_that_of_the_engine():
    told = str(engine_error("Dask", KilledWorker("task 5"), 8))
    assert "or give the workers more memory" in told
    assert "spark" not in told


def to_dask(frame):
    return dd.from_pandas(frame, npartitions=2, sort=False)


def refused(work):
    """The error of a call, and whether its cause is the exception of the engine."""
    with dask.config.set(scheduler="synchronous"), pytest.raises(rd.EngineError) as caught:
        work()
    assert isinstance(caught.value, RuntimeError)
    return str(caught.value), type(caught.value.__cause__)


@pytest.mark.long
def test_jobs_of_dask_that_fail(tmp_path):
    true, pred = frames(40)
    true, given = to_dask(true), to_dask(pred)

    def hungry(lists):
        """A constant; larger is better, in [0, 1]."""
        raise MemoryError

    def odd(rows):
        raise ZeroDivisionError("by zero")

    metric = rd.metric(hungry)
    del rd.METRICS["hungry"]
    told, cause = refused(
        lambda: rd.dask.evaluate(true, given, metric, 5, by="model", partitions=2)
    )
    assert re.match(
        r".* ran out of memory in bucket [01] of 2 \(raised in the metric hungry@5\)\. Pass more",
        told,
    )
    assert cause is MemoryError

    broken = given.map_partitions(odd, meta=given._meta)
    told, cause = refused(lambda: rd.dask.evaluate(true, broken, "mrr", 5, by="model"))
    assert told.startswith("a job of Dask failed: ZeroDivisionError: by zero")
    assert cause is ZeroDivisionError

    pred.to_pickle(tmp_path / "pred")
    stored = dd.from_map(pd.read_pickle, [tmp_path / "pred"], meta=given._meta)
    with dask.config.set(scheduler="synchronous"):
        result = rd.dask.evaluate(true, stored, "mrr", 5, by="model")
    (tmp_path / "pred").unlink()
    for work in (
        lambda: rd.dask.evaluate(true, stored, "mrr", 5, by="model"),
        result.to_pandas,
        lambda: result.to_parquet(tmp_path / "out"),
        lambda: rd.dask.evaluate(true, given, "coverage", 5, by="model", items=stored[["item_id"]]),
    ):
        told, cause = refused(work)
        assert told.startswith(
            "a job of Dask failed: a file of a frame cannot be read (FileNotFoundError: "
        )
        assert cause is FileNotFoundError
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_frames_that_change_after_the_call(tmp_path):
    true, pred = frames(42)
    pred.to_pickle(tmp_path / "pred")
    stored = dd.from_map(pd.read_pickle, [tmp_path / "pred"], meta=to_dask(pred)._meta)
    with dask.config.set(scheduler="synchronous"):
        result = rd.dask.evaluate(to_dask(true), stored, "mrr", 5, by="model", users="pred")
        n = result.summary["n"].sum()
        pred[: len(pred) // 2].to_pickle(tmp_path / "pred")
        with pytest.raises(
            rd.EngineError, match=rf"again, and there are \d+ rows, .* of {n} lists\. If the fr"
        ):
            result.to_pandas()
        with pytest.raises(
            rd.EngineError, match=rf"again, and there are \d+ rows, .* of {n} lists"
        ):
            result.variant_moments(
                pd.DataFrame({"user_id": range(30), "variant": ["A", "B"] * 15}), missing="zero"
            )
        with pytest.raises(
            rd.EngineError, match=r"do not share the drive of .*out, where there are \d+ rows"
        ):
            result.to_parquet(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_work_is_refused_by_a_worker_with_another_version():
    sent = pickle.loads(pickle.dumps(Sent(len)))
    assert sent([1, 2]) == 2
    with pytest.raises(
        rd.EngineError,
        match=rf"^a worker has recdf {rd.__version__}, and this process has 0\.0\.0$",
    ):
        received("0.0.0", b"")
    with pytest.raises(
        rd.EngineError,
        match=r"cannot read the call, since its packages .* \(ModuleNotFoundError: .*nosuch",
    ):
        opened(inline_handle(b"cnosuch\nname\n."))
    error = engine_error("Dask", rd.EngineError("a worker has recdf 1, and this process has 2"), 3)
    assert str(error).startswith(
        "a job of Dask failed: a worker has recdf 1, and this process has 2. Install on every"
    )


def test_an_error_of_recdf_passes_unchanged():
    true, pred = frames(41)
    with dask.config.set(scheduler="synchronous"), pytest.raises(rd.ColumnError, match="points"):
        rd.dask.evaluate(to_dask(true), to_dask(pred), "mrr", score_col="points")


def own(kernel):
    """A metric of one's own that the registry does not keep."""
    metric = rd.metric(kernel)
    del rd.METRICS[kernel.__name__]
    return metric


def test_a_metric_that_cannot_be_sent_is_named():
    lock = threading.Lock()

    def locked(lists):
        """A constant; larger is better, in [0, 1]."""
        with lock:
            return np.ones(len(lists))

    true, pred = map(to_dask, frames(43))
    words = (
        r"^the metric 'locked' cannot be sent to the workers: cannot pickle '_thread\.lock' object"
        "; make such objects inside the function, or import them from a module$"
    )
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(rd.OptionError, match=words) as caught,
    ):
        rd.dask.evaluate(true, pred, ["mrr", own(locked)], 5, by="model")
    assert type(caught.value.__cause__) is TypeError


# (error of a metric, its message where two buckets are measured)
RAISED = [
    (ValueError("odd"), "odd"),
    (
        rd.DataError("3 rows are odd"),
        "3 rows are odd (found in one of 2 buckets of lists; counts are of that one)",
    ),
    (
        rd.IdTypeError("x: 3 ids are odd", count=3),
        "x: 3 ids are odd (found in one of 2 buckets of lists; counts are of that one)",
    ),
    (
        rd.IdTypeError("x mixes ids of several types"),
        "x mixes ids of several types",
    ),  # it counts nothing
]


@pytest.mark.long
def test_an_error_inside_a_metric_names_it():
    def odd(lists):
        """A constant; larger is better, in [0, 1]."""
        raise pickle.loads(
            pickle.dumps(error)
        )  # dask.distributed lets copies of an error share their notes

    true, pred = frames(44)
    lazy = {"true": to_dask(true), "pred": to_dask(pred)}
    metric, note = own(odd), "raised in the metric odd@5"
    for error, words in RAISED:
        with pytest.raises(type(error)) as caught:
            rd.evaluate(true, pred, metric, 5, by="model", score_col="score")
        assert caught.value.__notes__ == [note]
        with dask.config.set(scheduler="synchronous"), pytest.raises(type(error)) as caught:
            rd.dask.evaluate(**lazy, metrics=metric, k=5, by="model", partitions=2)
        assert str(caught.value) == words
        assert caught.value.__notes__[0] == note
    error = SystemExit(3)
    with pytest.raises(SystemExit) as caught:
        rd.evaluate(true, pred, metric, 5, by="model", score_col="score")
    assert caught.value.__notes__ == [note]
    # A worker that SystemExit ends could not say why.
    with dask.config.set(scheduler="synchronous"), pytest.raises(rd.EngineError) as caught:
        rd.dask.evaluate(**lazy, metrics=metric, k=5, by="model", partitions=2)
    assert (
        str(caught.value) == f"SystemExit: 3, {note}; a metric must not end the process of a worker"
    )


@pytest.mark.long
def test_a_folder_that_cannot_be_made(tmp_path):
    true, pred = frames(46)
    in_memory = rd.evaluate(true, pred, "mrr", 5, by="model", score_col="score")
    with dask.config.set(scheduler="synchronous"):
        in_dask = rd.dask.evaluate(to_dask(true), to_dask(pred), "mrr", 5, by="model")
    file = tmp_path / "file"
    file.touch()
    for result in (in_memory, in_dask):
        for folder, error in ((file, FileExistsError), (file / "out", NotADirectoryError)):
            with pytest.raises(
                error, match=r"file is a file; expected a folder, in which the result is written$"
            ):
                result.to_parquet(folder)
        with pytest.raises(OSError, match=r"^the folder .* cannot be made: File name too long$"):
            result.to_parquet(tmp_path / ("x" * 999))
