"""`rd.spark.evaluate` evaluates Spark frames in the executors. It needs the extra `recdf[spark]` and Java.

Contract: rows go from Java to Python once, and are packed by bucket there. Spark then moves a few large cells, and
`cogroup` brings the cells of a bucket together. The call is broadcast to the executors. With Spark Connect it is sent
to them as a file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import pandas as pd
import pyarrow as pa

from ..errors import MissingExtraError
from ..metrics.metric import Metric
from .engine import Asked, OnBucket, OnChunk, evaluate_frames, labels_of_table
from .engine_arguments import EngineArguments, takes_engine_options
from .engine_result import EngineEvaluation
from .packed import Packing
from .shipped import Handle, Inline
from .spark_settings import settings
from .work import Distinct

__all__ = ["evaluate"]

# A call of more bytes than this is sent once to each executor, instead of with every task.
LARGE = 2**18


@takes_engine_options("Spark")
def evaluate(
    true: Any,
    pred: Any,
    metrics: str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric],
    k: int | Sequence[int] = 10,
    *,
    partitions: int | None = None,
    cache: bool = False,
    **options: Unpack[EngineArguments],
) -> EngineEvaluation[Any]:
    """Evaluate two Spark frames. The summary is that of `rd.evaluate`, and the rows per list stay in Spark.

    Parameters
    ----------
    true, pred : pyspark.sql.DataFrame
        The same columns as for `rd.evaluate`. Frames of Spark Connect are taken too. `true` may be None if no metric
        needs it. The rows of a Spark frame have no order, so `pred` needs a score or a rank, and `ties="row"` is
        refused.
    {arguments}
    partitions : int, optional
        Number of buckets that the lists are distributed to. One task evaluates one bucket in memory. The default is
        `spark.sql.shuffle.partitions`. A million rows of `pred` in a bucket is a good size.
    cache : bool, default False
        Keep the packed rows of both frames in Spark (`persist`), so that `per_user` does not read the frames again.
    {options}

    Returns
    -------
    EngineEvaluation
        `.per_user` is a Spark frame whose rows are computed when they are used. `.summary` and `.spec` are those of
        `rd.evaluate`, with `by` values in ascending order. `.to_pandas()` returns an `Evaluation` in memory.
        `.to_parquet(folder)` writes the rows from the executors.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError, UndefinedMetricError
        For the same reasons as in `rd.evaluate`.
    TypeError
        If a frame is not a Spark DataFrame.
    MissingExtraError
        If pyspark is not installed.

    Notes
    -----
    Use it where the data are in Spark already, or do not fit in the memory of one machine. Do not use it for frames
    that fit in memory: `rd.evaluate` has no job to start and nothing to shuffle. For parquet files on one machine,
    `rd.evaluate_parquet` needs no cluster.

    Examples
    --------
    >>> import recdf as rd  # doctest: +SKIP
    >>> true, pred = spark.table("true"), spark.table("pred")  # doctest: +SKIP
    >>> rd.spark.evaluate(true, pred, "ndcg", by="model").summary  # doctest: +SKIP
    """
    spark = _spark()
    for role, frame in (("true", true), ("pred", pred)):
        if not isinstance(frame, spark.DataFrame) and not (role == "true" and frame is None):
            raise TypeError(f"{role} is a {type(frame).__name__}; expected a Spark DataFrame")
    engine = SparkEngine(spark, pred.sparkSession, cache)
    return evaluate_frames(engine, true, pred, Asked(metrics, k, options, partitions), engine.n_partitions)


def _spark() -> Any:
    try:
        import pyspark.sql
    except ImportError as error:
        raise MissingExtraError("rd.spark needs pyspark, which is not installed: pip install 'recdf[spark]'") from error
    return pyspark.sql


class SparkEngine:
    """What Spark can do with its frames, as `Engine` asks."""

    name = "Spark"
    ordered = False

    def __init__(self, sql: Any, session: Any, cache: bool = False) -> None:
        self.sql, self.session, self.cache = sql, session, cache

    @property
    def n_partitions(self) -> int:
        return int(self.session.conf.get("spark.sql.shuffle.partitions"))

    @property
    def remote(self) -> bool:
        """Whether this is a session of Spark Connect."""
        return "connect" in type(self.session).__module__

    def schema(self, frame: Any) -> pa.Schema:
        return pa.schema([pa.field(field.name, self._arrow_type(field)) for field in frame.schema.fields])

    def _arrow_type(self, field: Any) -> pa.DataType:
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        try:
            return to_arrow_schema(StructType([field]), timezone=self._zone).field(0).type
        except Exception:  # Arrow lacks this type: an error only if the column is read
            return pa.null()

    @cached_property
    def _zone(self) -> str:
        return str(self.session.conf.get("spark.sql.session.timeZone"))

    def head(self, frame: Any, names: Sequence[str], n: int) -> pa.Table:
        return self.collect(frame.select(*map(quoted, names)).limit(n))

    def each(self, frame: Any, names: Sequence[str], work: OnChunk, schema: pa.Schema) -> Any:
        found = frame.select(*map(quoted, names))
        if isinstance(work, Distinct):  # Spark finds distinct rows without Python
            return found.distinct()
        made = found.mapInArrow(_on_chunk(work), self._spark_schema(schema))
        return made.persist() if self.cache and isinstance(work, Packing) else made

    def meet(self, true: Any, pred: Any, n_buckets: int, work: OnBucket, schema: pa.Schema, every: bool) -> Any:
        from pyspark.sql import functions as of

        if every:
            seeds = self.session.range(n_buckets)
            pred = pred.union(seeds.select(of.col("id").cast("int"), of.lit(None).cast("binary")))
        if true is None:
            true = pred.limit(0)
        grouped = true.groupBy("bucket").cogroup(pred.groupBy("bucket"))
        return grouped.applyInArrow(_on_bucket(work, self._result_schema(schema)), self._spark_schema(schema))

    def collect(self, frame: Any) -> pa.Table:
        with settings(self.session):
            return frame.toArrow()

    def share(self, data: bytes, digest: str) -> Handle:
        if len(data) <= LARGE:
            return Inline(digest, data)
        if not self.remote:
            return Broadcast(digest, self.session.sparkContext.broadcast(data))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"recdf-{digest}"
            path.write_bytes(data)
            self.session.addArtifacts(str(path), file=True)
        return Artifact(digest, path.name)

    def is_frame(self, data: Any) -> bool:
        return isinstance(data, self.sql.DataFrame)

    def labels(self, table: pa.Table, frame: Any) -> pd.DataFrame:
        labels = labels_of_table(table)
        for name in labels.columns:  # clock times of the session's zone, as in toPandas
            if isinstance(labels[name].dtype, pd.DatetimeTZDtype):
                labels[name] = labels[name].dt.tz_convert(self._zone).dt.tz_localize(None)
        return labels

    def typed(self, frame: Any, like: pd.DataFrame) -> Any:
        return frame

    def write(self, frame: Any, folder: Path) -> None:
        from pyspark.sql import functions as of

        # Instants are written as the clock of the session shows them, as `to_pandas` gives them.
        shown = [
            of.col(quoted(name)).cast("timestamp_ntz").alias(name) if kind == "timestamp" else of.col(quoted(name))
            for name, kind in frame.dtypes
        ]
        with settings(self.session):
            frame.select(*shown).write.parquet(folder.as_uri())

    def _spark_schema(self, schema: pa.Schema) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(schema)

    def _result_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the Arrow types in which Spark expects these columns from a worker."""
        large = str(self.session.conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false")).lower() == "true"
        pairs = [(pa.string(), pa.large_string()), (pa.binary(), pa.large_binary())]
        types = dict(pairs) if large else {big: small for small, big in pairs}
        fields = []
        for field in schema:
            kind = types.get(field.type, field.type)
            if pa.types.is_timestamp(kind):
                kind = pa.timestamp("us", None if kind.tz is None else "UTC")
            fields.append(pa.field(field.name, kind))
        return pa.schema(fields)


def quoted(name: str) -> str:
    """Return the name of a column as an expression of Spark, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def _on_chunk(work: OnChunk) -> Any:
    """Return a function for `mapInArrow` that calls `work` on a chunk."""

    def on_chunk(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from work(batches)

    return on_chunk


def _on_bucket(work: OnBucket, schema: pa.Schema) -> Any:
    """Return a function for `applyInArrow`: it takes a group's key and the rows of both frames, and calls `work`."""

    def on_bucket(key: tuple[Any, ...], true: pa.Table, pred: pa.Table) -> pa.Table:
        return work(key[0].as_py(), list(true["cell"]), list(pred["cell"])).cast(schema)

    return on_bucket


@dataclass(frozen=True)
class Broadcast:
    """Bytes that Spark sends once to each executor."""

    digest: str
    held: Any

    def read(self) -> bytes:
        data: bytes = self.held.value
        return data


@dataclass(frozen=True)
class Artifact:
    """Bytes in a file that Spark Connect copies to each executor."""

    digest: str
    name: str

    def read(self) -> bytes:
        from pyspark import SparkFiles

        return Path(SparkFiles.get(self.name)).read_bytes()
