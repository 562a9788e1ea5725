"""`rd.spark.evaluate` evaluates Spark frames in the executors. It needs the extra `recdf[spark]`
and Java.

Contract: rows go from Java to Python once, and are packed by bucket there. Spark then moves a few
large cells, and `cogroup` brings the cells of a bucket together. The call is broadcast to the
executors. With Spark Connect it is sent to them as a file.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial, reduce
from inspect import signature
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from numpy import ndarray
from pyarrow import RecordBatch, Schema, Table

from ..errors import Mention, MissingExtraError, RecdfError
from ..evaluation.evaluate import EvaluateArguments
from ..evaluation.storage import MOUNTED
from ..inputs.data_files import by_places
from ..inputs.machine import sizes
from ..inputs.options import ByName, Names
from ..logs import impressions, log_checks
from ..metrics.strings import Metrics
from .buckets import PACKED, Distinct, Packing, adding_up
from .dealt_users import check_on_engine, on_engine
from .engine_contract import (
    Engine,
    Handle,
    OnBucket,
    OnChunk,
    Sent,
    check_frames,
    inline_handle,
    takes_engine_arguments,
)
from .engine_run import EngineEvaluation, evaluate_frames

__all__ = ["check", "check_log", "evaluate", "from_impressions"]
__dir__ = __all__.copy


SPARK_TYPES = {"str": "string", "'int64'": "long"}
N_PARTITIONS = 200  # the default of spark.sql.shuffle.partitions


@takes_engine_arguments("Spark")
def evaluate(
    true: Any,
    pred: Any,
    metrics: Metrics,
    k: int | Sequence[int] = 10,
    *,
    partitions: int | None = None,
    cache: bool = False,
    **options: Unpack[EvaluateArguments],
) -> EngineEvaluation:
    """Evaluate two Spark frames. The summary is that of `rd.evaluate`, and the rows per list stay
    in Spark.

    Parameters
    ----------
    true, pred : pyspark.sql.DataFrame
        The same columns as for `rd.evaluate`. Frames of Spark Connect are taken too. `true` may be
        None if no metric needs it. The rows of a Spark frame have no order, so `pred` needs a score
        or a rank, `ties="row"` is refused, and the summary has the `by` values in ascending order.
    {metrics}
    {side_tables}
    partitions : int, optional
        Number of buckets that the lists are distributed to. One task evaluates one bucket in
        memory. A million rows of `pred` in a bucket is a good size. The default is one bucket for
        every 2 MB that Spark expects of both frames, at most `spark.sql.shuffle.partitions`. It is
        that setting where Spark does not know: for frames of Spark Connect and of an RDD, and for
        rows that a function or an `explode` makes.
    cache : bool, default False
        Keep the packed rows of both frames in Spark (`persist`), so that `per_user` does not read
        the frames again. `result.unpersist()` gives the memory back.
    {options}

    {results}

    Examples
    --------
    >>> import recdf as rd  # doctest: +SKIP
    >>> true, pred = spark.table("true"), spark.table("pred")  # doctest: +SKIP
    >>> rd.spark.evaluate(true, pred, "ndcg", by="model").summary  # doctest: +SKIP
    """
    frames = {"true": true, "pred": pred}
    with spark_engine(frames, cache=cache) as engine:
        return evaluate_frames(engine, frames, evaluate, metrics, k, options, partitions)


@contextmanager
def spark_engine(frames: ByName, options: Any = None, cache: bool = False) -> Iterator[SparkEngine]:
    """Check that the frames are of Spark, and write errors in its words."""
    try:
        import pyspark.sql as spark
    except ImportError as error:
        raise MissingExtraError(
            "rd.spark needs pyspark, which is not installed: pip install 'recdf[spark]', or "
            "'recdf[spark-connect]' for Spark Connect alone, which needs no Java"
        ) from error
    check_frames(frames, spark.DataFrame, "Spark", "spark.createDataFrame(frame)")
    session = next(frame for frame in frames.values() if frame is not None).sparkSession
    engine = SparkEngine(spark, session, cache)
    try:
        yield engine
    except BaseException as error:
        engine.unpersist()
        if isinstance(error, RecdfError):
            error.reword(_spark_words)  # a conversion as frames of Spark have it
        raise


from_impressions = on_engine(impressions.from_impressions, spark_engine, "Spark")
check_log = on_engine(log_checks.check_log, spark_engine, "Spark")
check = check_on_engine(spark_engine, "Spark")


def _spark_words(part: Mention) -> str:
    casts = part.kind == "convert" and part.name in SPARK_TYPES
    return part.converted(f'.cast("{SPARK_TYPES[part.name]}")') if casts else str(part)


class SparkEngine(Engine):
    """What Spark can do with its frames, as `Engine` asks."""

    name = "Spark"
    ordered = False

    def __init__(self, sql: Any, session: Any, cache: bool = False) -> None:
        self.sql, self.session, self.cache = sql, session, cache
        self._kept: list[Any] = []

    def n_buckets(self, *frames: Any) -> int:
        """Return how many buckets the rows of these frames should have."""
        found = self._setting("spark.sql.shuffle.partitions", "")
        most = int(found) if found.isdecimal() else N_PARTITIONS  # platforms also have "auto"
        n_bytes = 0  # that Spark expects of the frames; very many where it cannot know
        for frame in (one for one in frames if one is not None):
            try:
                # Files are smaller than their rows in memory, and joins are expected to be larger
                # than they are.
                plan = frame._jdf.queryExecution().optimizedPlan()
                unknown = any(word in plan.toString() for word in ("Map", "Generate"))
                n_bytes += 2**63 if unknown else int(str(plan.stats().sizeInBytes()))
            except Exception:  # of any class, such as in a session of Spark Connect
                n_bytes += 2**63
        return min(most, 1 + n_bytes // sizes().bucket_bytes)

    def _setting(self, name: str, default: str) -> str:
        """Return a setting of the session, or the default where the platform does not show it."""
        try:
            return str(self.session.conf.get(name, default)).lower()
        except Exception:  # of any class; where the session has stopped, the next step says so
            return default

    def schema(self, frame: Any) -> Schema:
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        # Spark 4.0 has no such parameter: its types are in UTC.
        zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
        fields = []
        for one in frame.schema.fields:
            try:
                kind = to_arrow_schema(StructType([one]), **zone).field(0).type
            except Exception:  # Arrow lacks this type: an error only if the column is read
                kind = pa.struct([(one.dataType.simpleString(), pa.null())])
            fields.append((one.name, kind))
        return pa.schema(fields)

    def head(self, frame: Any, names: Names, n: int) -> Table:
        return self.collect(_by_position(frame, names).limit(n)).rename_columns(list(names))

    def each(self, frame: Any, names: Names, work: OnChunk, schema: Schema) -> Any:
        found = _by_position(frame, names)
        if isinstance(work, Distinct):
            return found.distinct().toDF(*names)  # Spark finds distinct rows without Python
        if work is adding_up:  # each bucket is a partition of its own
            found = found.repartition(sizes().summed_buckets)
        on_chunk = _on_chunk(Sent(work), names, slots=isinstance(work, Packing))
        cells = found.mapInArrow(on_chunk, _spark_schema(_bare_schema(schema)))
        made = cells.toDF(*schema.names)
        if self.cache and isinstance(work, Packing) and work.kept:
            self._kept.append(made.persist())
        return made

    def unpersist(self) -> None:
        while self._kept:
            self._kept.pop().unpersist()

    def meet(
        self, packed: Sequence[Any], n_buckets: int, work: OnBucket, schema: Schema, every: bool
    ) -> Any:
        frames = list(packed)
        if every:
            seeds = self.session.range(n_buckets).selectExpr("int(id)", "binary(null)")
            slots = _on_chunk(iter, PACKED.names, slots=True)
            frames.append(seeds.mapInArrow(slots, _spark_schema(PACKED)))
        rows = reduce(lambda one, two: one.union(two), frames).repartition(n_buckets, "bucket")
        plain = _bare_schema(schema)
        on_bucket = _on_bucket(Sent(work), self._result_schema(plain), n_buckets)
        found = rows.groupBy("bucket").applyInArrow(on_bucket, _spark_schema(plain))
        return found.toDF(*schema.names)

    def collect(self, frame: Any) -> Table:
        with settings(self.session):
            return frame.toArrow()

    def share(self, data: bytes) -> Handle:
        inline = inline_handle(data)
        if len(data) <= sizes().inline_bytes:
            return inline
        if "connect" not in type(self.session).__module__:  # sent once to each executor
            held = self.session.sparkContext.broadcast(data)
            return replace(inline, read=partial(getattr, held, "value"))
        with suppress(Exception), tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"recdf-{inline.digest}"
            path.write_bytes(data)
            self.session.addArtifacts(str(path), file=True)
            return replace(inline, read=partial(_of_artifact, path.name))
        return inline  # the platform takes no files

    def local(self, data: Any) -> Any:
        is_frame = isinstance(data, self.sql.DataFrame)
        return self.labels(self.collect(data), data) if is_frame else data

    def write(self, frame: Any, folder: Path) -> None:
        with settings(self.session):
            frame.write.parquet(_address(folder))

    def _result_schema(self, schema: Schema) -> Schema:
        """Return the Arrow types in which Spark expects these columns from a worker."""
        large = self._setting("spark.sql.execution.arrow.useLargeVarTypes", "false") == "true"
        pairs = [(pa.string(), pa.large_string()), (pa.binary(), pa.large_binary())]
        types = dict(pairs) if large else {big: small for small, big in pairs}
        fields = []
        for one in schema:
            kind = types.get(one.type, one.type)
            if pa.types.is_timestamp(kind):
                kind = pa.timestamp("us", None if kind.tz is None else "UTC")
            fields.append(pa.field(one.name, kind))
        return pa.schema(fields)


def _address(folder: Path) -> str:
    """Return the address of a folder as Spark has it. On Databricks a `file:` is one of the driver
    alone."""
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        for address, path in MOUNTED:
            if folder.is_relative_to(path):
                return address + folder.relative_to(path).as_posix()
    return folder.as_uri()


# Spark reads a dot or a backtick in the name of a column as syntax, and takes `a` and `A` for the
# same column. So columns go to the workers and come back by position, under the names c0, c1, ...


def _by_position(frame: Any, names: Names) -> Any:
    """Return some columns of a frame, named by their positions in it."""
    places, at = by_places(frame)
    return places.select(*(at[name] for name in names))


def _bare_schema(schema: Schema) -> Schema:
    return pa.schema([field.with_name(f"c{i}") for i, field in enumerate(schema)])


def _spark_schema(schema: Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _on_chunk(work: OnChunk, names: Names, slots: bool) -> Any:
    """Return a function for `mapInArrow` that calls `work` on a chunk whose columns have these
    names.

    With `slots` the first column of what it returns has the slots of buckets in place of their
    numbers.
    """
    own = list(names)

    def on_chunk(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        named = (RecordBatch.from_arrays(batch.columns, names=own) for batch in batches)
        for found in work(named):
            first, *rest = found.columns
            first = pa.array(slots_of(first.to_numpy())) if slots else first
            places = [f"c{i}" for i in range(found.num_columns)]
            yield RecordBatch.from_arrays([first, *rest], names=places)

    return on_chunk


# Spark sends a row to the partition that its hash of the row's key names, modulo the number of
# partitions. By their numbers several buckets would meet in one partition, and other partitions
# would be empty. A bucket's slot is the key whose hash is the number of the bucket, so each bucket
# has a partition of its own, and a task of its own.


def slots_of(buckets: ndarray) -> ndarray:
    """Return the integers whose hash in Spark (Murmur3 with seed 42) is these numbers: its steps,
    undone."""
    found: ndarray = buckets.astype(np.uint32)
    found ^= found >> 16
    found *= INVERSE[0xC2B2AE35]
    found ^= found >> 13 ^ found >> 26
    found *= INVERSE[0x85EBCA6B]
    found ^= found >> 16 ^ 4  # the number of bytes
    found = (found - 0xE6546B64) * INVERSE[5]
    found = (found >> 13 | found << 19) ^ 42
    found *= INVERSE[0x1B873593]
    found = (found >> 15 | found << 17) * INVERSE[0xCC9E2D51]
    return found.view(np.int32)


INVERSE = {odd: pow(odd, -1, 2**32) for odd in (0xC2B2AE35, 0x85EBCA6B, 5, 0x1B873593, 0xCC9E2D51)}


def _on_bucket(work: OnBucket, schema: Schema, n_buckets: int) -> Any:
    """Return a function for `applyInArrow` that calls `work` on the cells of one bucket."""

    def on_bucket(key: tuple[Any, ...], rows: Table) -> Table:
        bucket = int(np.flatnonzero(slots_of(np.arange(n_buckets)) == key[0].as_py())[0])
        return work(bucket, list(rows["cell"])).rename_columns(schema.names).cast(schema)

    return on_bucket


def _of_artifact(name: str) -> bytes:
    """Return the bytes of a file that Spark Connect copied to this executor."""
    from pyspark import SparkFiles

    return Path(SparkFiles.get(name)).read_bytes()


# Settings that the jobs of recdf need while they run. Several calls in one session may overlap, in
# different threads: the first one sets the values, and the last one gives the session its own
# values back.
#
# After each row that goes from Java to Python, Spark adds up the bytes of the batch so far, unless
# this limit is the largest integer. Rows of ids and scores are so short that adding up takes longer
# than all else that happens to a row. Cells are long, so their number in a batch has to be limited:
# 10,000 cells of `CELL_BYTES` stay below the two gigabytes that an Arrow array can hold.
#
# Some platforms let nobody change settings, or read them. Then their own values count: the calls
# are slower, and a bucket of more than two gigabytes may be an error that asks for more buckets.
SETTINGS = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
}

_LOCK = threading.Lock()
# The sessions that have the settings now: how many calls use them, and the session's own values.
_USED: dict[int, tuple[int, dict[str, str | None]]] = {}


@contextmanager
def settings(session: Any) -> Iterator[None]:
    """Give a session the settings for as long as the context lasts."""
    with _LOCK:
        n_calls, own = _USED.get(id(session)) or (0, {})
        if not n_calls:
            for name, value in SETTINGS.items():
                with suppress(Exception):
                    before = session.conf.get(name, None)
                    session.conf.set(name, value)
                    own[name] = before
        _USED[id(session)] = n_calls + 1, own
    try:
        yield
    finally:
        with _LOCK:
            n_calls, own = _USED.pop(id(session))
            if n_calls > 1:
                _USED[id(session)] = n_calls - 1, own
            else:
                conf = session.conf
                for name, before in own.items():
                    with suppress(Exception):  # of a session that has stopped; the work raises it
                        conf.unset(name) if before is None else conf.set(name, before)
