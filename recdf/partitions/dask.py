"""`rd.dask.evaluate` evaluates Dask frames on the workers that hold them. It needs the extra
`recdf[dask]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa
from pandas import DataFrame, Series
from pyarrow import Schema, Table

from ..errors import ColumnError, MissingExtraError
from ..evaluation.evaluate import EvaluateArguments
from ..inputs.machine import sizes
from ..inputs.options import ByName, Names, as_columns, id_columns
from ..logs import impressions, log_checks
from ..metrics.strings import Metrics
from .buckets import HEAD_LENGTH, PACKED, adding_up, arrow_table_of
from .dealt_users import check_on_engine, on_engine
from .engine_contract import (
    Engine,
    OnBucket,
    OnChunk,
    Sent,
    as_dtypes,
    check_frames,
    labels_of_table,
    takes_engine_arguments,
)
from .engine_run import EngineEvaluation, evaluate_frames
from .needed import decoded
from .source import frame_of_arrow

__all__ = ["check", "check_log", "evaluate", "from_impressions"]
__dir__ = __all__.copy


HOLDS = "a Dask frame holds"  # for messages


@takes_engine_arguments("Dask")
def evaluate(
    true: Any,
    pred: Any,
    metrics: Metrics,
    k: int | Sequence[int] = 10,
    *,
    partitions: int | None = None,
    **options: Unpack[EvaluateArguments],
) -> EngineEvaluation:
    """Evaluate two Dask frames. The summary is that of `rd.evaluate`, and the rows per list stay
    with the workers.

    Parameters
    ----------
    true, pred : dask.dataframe.DataFrame
        The same columns as for `rd.evaluate`. `true` may be None if no metric needs it.
    {metrics}
    {side_tables}
    partitions : int, optional
        Number of buckets that the lists are distributed to. One task evaluates one bucket in
        memory. The default is the number of partitions of the frame that has more of them.
    {options}

    {results}

    Examples
    --------
    >>> import dask.dataframe as dd, recdf as rd  # doctest: +SKIP
    >>> true = dd.read_parquet("true/")  # doctest: +SKIP
    >>> pred = dd.read_parquet("pred/")  # doctest: +SKIP
    >>> rd.dask.evaluate(true, pred, "ndcg", by="model").summary  # doctest: +SKIP
    """
    frames = {"true": true, "pred": pred}
    with dask_engine(frames, options) as engine:
        return evaluate_frames(engine, frames, evaluate, metrics, k, options, partitions)


@contextmanager
def dask_engine(frames: ByName, options: ByName) -> Iterator[DaskEngine]:
    """Check that the frames are of Dask, and that no column that the call names is an index."""
    try:
        import dask.dataframe as dd
    except ImportError as error:
        raise MissingExtraError(
            "rd.dask needs Dask, which is not installed: pip install 'recdf[dask]'"
        ) from error
    check_frames(frames, dd.DataFrame, "Dask", "dd.from_pandas(frame, npartitions=8)")
    for role, frame in frames.items():
        for name in (*id_columns(options), *as_columns(options.get("by"))):
            if frame is not None and frame.index.name == name and name not in frame.columns:
                raise ColumnError(
                    f"{role} has {name!r} in its index, which is not read; pass "
                    f"{role}.reset_index()"
                )
    yield DaskEngine(dd)


from_impressions = on_engine(impressions.from_impressions, dask_engine, "Dask")
check_log = on_engine(log_checks.check_log, dask_engine, "Dask")
check = check_on_engine(dask_engine, "Dask")


class DaskEngine(Engine):
    """What Dask can do with its frames, as `Engine` asks. Packed rows are pandas frames with Arrow
    columns, which Dask does not change."""

    name = "Dask"
    ordered = True  # the partitions of a Dask frame have an order

    def __init__(self, dd: Any) -> None:
        self.dd = dd

    def schema(self, frame: Any) -> Schema:
        """Return the types of the columns. Those of Python objects and of categories can only be
        read off the first rows, of which one may be null."""
        unknown = [dtype.name in ("object", "category") for dtype in frame.dtypes]
        some: Any = frame.head(HEAD_LENGTH, npartitions=-1) if any(unknown) else None
        fields: list[tuple[str, pa.DataType]] = []
        for place, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
            column = Series([], dtype=dtype)
            if unknown[place]:
                column = some.iloc[:, place].dropna().head(1)
            try:
                kind = decoded(pa.array(column.array, from_pandas=True).type)
            except (pa.ArrowException, TypeError, ValueError):
                # Arrow lacks this type, which is an error only if the column is read.
                kind = pa.struct([(str(column.dtype), pa.null())])
            # Later rows may have more digits than the first.
            fields.append((name, pa.decimal256(76, 18) if pa.types.is_decimal(kind) else kind))
        return pa.schema(fields)

    def head(self, frame: Any, names: Names, n: int) -> Table:
        return arrow_table_of(frame[list(names)].head(n, npartitions=-1), HOLDS)

    def each(self, frame: Any, names: Names, work: OnChunk, schema: Schema) -> Any:
        if work is adding_up:  # each bucket is a partition of its own
            frame = frame.repartition(npartitions=min(frame.npartitions, sizes().summed_buckets))
        return frame[list(names)].map_partitions(
            partial(_on_partition, Sent(work), schema), meta=frame_of_arrow(schema.empty_table())
        )

    def meet(
        self, packed: Sequence[Any], n_buckets: int, work: OnBucket, schema: Schema, every: bool
    ) -> Any:
        from dask import delayed

        seeds = pa.table([range(n_buckets), pa.nulls(n_buckets)], schema=PACKED)
        seeded = self.dd.from_pandas(frame_of_arrow(seeds), npartitions=1)
        # Each bucket is a partition of its own, so that a task holds the rows of one bucket only.
        edges = [*range(n_buckets), n_buckets - 1]
        rows = self.dd.concat([*packed, seeded] if every else list(packed))
        return self.dd.map_partitions(
            partial(_on_buckets, schema),
            rows.set_index("bucket", divisions=edges),
            delayed(Sent(work), traverse=False),  # sent once: it may hold large side tables
            meta=frame_of_arrow(schema.empty_table()),
            align_dataframes=False,
            enforce_metadata=False,
        )

    def n_buckets(self, *frames: Any) -> int:
        return max(int(frame.npartitions) for frame in frames if frame is not None)

    def collect(self, frame: Any) -> Table:
        return arrow_table_of(frame.compute(), HOLDS)

    def local(self, data: Any) -> Any:
        return (
            data.compute()
            if isinstance(data, self.dd.DataFrame | self.dd.Series | self.dd.Index)
            else data
        )

    def labels(self, table: Table, frame: Any) -> DataFrame:
        from dask.dataframe.utils import has_known_categories

        # Dask may know that a column has categories but not which. All parts get one dtype only as
        # plain values.
        dtypes = {
            name: kind
            for name, kind in frame.dtypes.items()
            if kind != "category" or has_known_categories(Series([], dtype=kind))
        }
        return as_dtypes(labels_of_table(table), dtypes)

    def typed(self, frame: Any, like: DataFrame) -> Any:
        found = frame.map_partitions(
            partial(_typed, dict(like.dtypes)), meta=like, enforce_metadata=False
        )
        # The frame is made anew from delayed parts. Dask would otherwise look into the two shuffles
        # behind the frame, take a column of it for one of another frame, and align both by an index
        # whose numbers repeat.
        import dask

        with dask.config.set(
            {"dataframe.convert-string": False}
        ):  # the columns have the dtypes of `like` already
            return self.dd.from_delayed(found.to_delayed(), meta=like, verify_meta=False)

    def write(self, frame: Any, folder: Path) -> None:
        frame.to_parquet(str(folder), write_index=False)


def _on_partition(work: OnChunk, schema: Schema, frame: DataFrame) -> DataFrame:
    """Call `work` on the rows of one partition."""
    batches: Iterator[Any] = work(arrow_table_of(frame, HOLDS).to_batches())
    return frame_of_arrow(Table.from_batches(batches, schema))


def _typed(dtypes: ByName, frame: DataFrame) -> DataFrame:
    """Give the rows of one partition the dtypes that pandas has for them."""
    return as_dtypes(labels_of_table(arrow_table_of(frame, HOLDS)), dtypes)


def _on_buckets(schema: Schema, rows: DataFrame, work: OnBucket) -> DataFrame:
    """Call the work on each bucket of one shuffled partition."""
    cells: dict[int, list[Any]] = {}
    for bucket, cell in zip(rows.index.tolist(), pa.array(rows["cell"].array), strict=True):
        cells.setdefault(bucket, []).append(cell)
    found = [work(bucket, of) for bucket, of in sorted(cells.items())]
    return frame_of_arrow(pa.concat_tables([schema.empty_table(), *found]))
