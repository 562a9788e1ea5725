"""`evaluate_parquet` evaluates files that may be larger than memory. Its result is that of
`evaluate`.

Contract: files that fit are read whole, by several threads, and measured as one part. Other files
are dealt to parts on disk (`files_run`). Both paths read only the columns that the call needs
(`needed.NeededOfFiles`). Rows that are in no file are read once, batch by batch, after all columns
were checked, and their needed columns are written to temporary files. Where files are read whole,
rows keep their order, and ids keep their values but not their types: see `source.whole_table`.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa
from pandas import DataFrame, Series

from ..errors import kind_of
from ..evaluation.evaluate import EvaluateArguments, call_of, finish, takes_evaluate_arguments
from ..evaluation.part import Part, PartResult, measure
from ..evaluation.result import Evaluation, read_parquet
from ..evaluation.storage import (
    Written,
    file_of_rows,
    local_path,
    open_sealed,
    read_tables,
    staged,
    write_files,
)
from ..inputs.constraints import NONE, POSITIVE, check_value, either
from ..inputs.door import NamedFiles, new_names
from ..inputs.frames import as_frame, plain_table, without_dictionary
from ..inputs.lazy_frames import LazyRows, lazy_rows
from ..inputs.machine import memory_bytes, sizes
from ..inputs.options import ByName, Names
from ..matching.side_tables.sides import as_frames
from ..metrics.call import Call
from ..metrics.strings import Metrics
from ..progress import Progress
from ..publishing import PER_USER, staging_folder
from .buckets import rows_table
from .files_run import evaluate_dealt, files_engine
from .in_buckets import made_of_rows
from .needed import Needed, NeededOfFiles
from .source import OF_ARROW, Source, frame_of_arrow, plain_schema, whole_table


def measure_whole(files: NeededOfFiles, progress: Progress) -> PartResult:
    """Read both frames and measure them. The labels have the dtypes that pandas would give them."""
    sources = files.sources
    tables = {
        role: whole_table(source, files.names(role), files.ids[role])
        for role, source in sources.items()
    }
    progress.add(files.n_rows)
    frames = {
        role: files.lists[role].frame(frame_of_arrow(table)) for role, table in tables.items()
    }
    found = measure(files.call, Part(frames["true"], frames["pred"]))
    if found.measured is None:
        return found
    by = found.measured.by
    if files.by:
        kinds = sources["pred"].schema
        columns = {
            name: without_dictionary(pa.array(by[name].array)).cast(kinds.field(name).type)
            for name in files.by
        }
        by = sources["pred"].as_pandas(pa.table(columns))
    rows = found.rows
    assert rows is not None
    # The first row, in the types of the files.
    heads = {
        role: table.slice(0, 1).cast(sources[role].fields(table.column_names))
        for role, table in tables.items()
    }
    keys = [] if files.given is not None else list(files.key_fields)
    labels = rows_table(
        rows, pa.schema([*keys, *(files.other_fields.field(name) for name in files.call.carry)])
    )
    carried = files.carried(labels, bool((rows.columns["n_pred"] == 0).any()))
    rows = replace(
        rows,
        keys=dict(files.key_labels(labels.select(files.keys), heads)) if keys else rows.keys,
        by=by,
        carried=dict(carried),
    )
    return replace(found, measured=replace(found.measured, by=by), rows=rows)


MOST_DEALT = 2**12


def _rows_of(folder: Path, digest: str) -> DataFrame:
    """Read the rows of a result, which may be overwritten by now."""
    return read_tables(folder, digest)[0]


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
        summary: DataFrame,
        spec: dict[str, Any],
        folder: Path,
        written: Written,
        limit: int,
    ) -> None:
        super().__init__(partial(_rows_of, folder, written.digest), summary, spec)
        self._folder = folder
        self._written = written
        self._limit = limit

    @property
    def rows_stay(self) -> bool:
        """Whether the rows are in their file alone, and too many for the memory of the call."""
        n_bytes = sizes().working_copies * 8 * self._written.n_rows * self._written.n_columns
        return not isinstance(self._per_user, DataFrame) and n_bytes > self._limit

    @cached_property
    def _source(self) -> Source:
        """The rows in their file. Raises DataError if the folder was overwritten in the
        meantime."""
        with open_sealed(file_of_rows(self._folder), self._written.digest):
            pass
        return Source(self._folder / PER_USER, "per_user")

    @property
    def empty_rows(self) -> DataFrame:
        """The columns and dtypes of `per_user`, and what was evaluated."""
        empty = self._source.as_pandas(self._source.schema.empty_table())
        empty.attrs = {"recdf": self.spec}
        return empty

    @property
    def by_values(self) -> DataFrame:
        """The `by` values of the rows."""
        found = self.summary[self.spec["by"]].drop_duplicates(ignore_index=True)
        return found if self.spec["by"] else DataFrame(index=range(1))

    def each_bucket(
        self, work: Callable[[DataFrame], Any], columns: Names, keys: Names
    ) -> list[Any]:
        """Return what `work` makes of some columns of each bucket, dealt by the values of
        `keys`."""
        source = self._source
        there = [name for name in columns if name in source.schema.names]
        n_bytes = sizes().working_copies * source.n_rows * source.row_bytes(there)
        n_buckets = int(min(n_bytes / (sizes().part_share * self._limit) + 1, MOST_DEALT))
        kept = sizes().kept_share * self._limit
        with files_engine({"per_user": source}, "the rows", kept, shown=False) as engine:
            return made_of_rows(engine, source, work, columns, keys, n_buckets)[0]

    def _compared_rows(self, unused: str | None) -> Any:
        return self if self.rows_stay and unused is None else super()._compared_rows(unused)

    def _of_rows(self) -> str:
        return f"{self._written.n_rows:,} × {self._written.n_columns} in {self._folder / PER_USER}"

    def _first_rows(self) -> None:
        return None


@takes_evaluate_arguments()
def evaluate_parquet(
    true_path: Any,
    pred_path: Any,
    metrics: Metrics,
    k: int | Sequence[int] = 10,
    *,
    out: Any = None,
    memory_limit: int | str | None = None,
    buckets: int | None = None,
    progress: bool | None = None,
    overwrite: bool = False,
    **arguments: Unpack[EvaluateArguments],
) -> Evaluation:
    """Evaluate parquet files that may be larger than memory; the tables are those of `evaluate` for
    the whole frames.

    Only the needed columns are read, once, by several threads. If `memory_limit` is at least four
    times their size in memory, they are read whole and evaluated as frames are. Otherwise they are
    read in batches, their rows are distributed by list key to buckets, and the buckets are
    evaluated, a few at the same time. Rows that do not fit in memory are kept in a temporary
    folder, inside `out` if that is given. The folder is removed at the end, also after an error or
    Ctrl-C.

    Parameters
    ----------
    true_path, pred_path : path, or list of paths
        Parquet files of `true` and `pred`: a file, a folder, or a glob such as "pred/*.parquet". A
        folder named `model=als/` is read as a column `model`. The files of a folder or a glob are
        read in the order of their names.
    metrics : str, Metric, list of them, or mapping of own names to them
        As for `evaluate`. A metric of your own must compute the value of a list from that list
        only, and several threads may call it at the same time. A metric of exposure must read only
        sums over lists, such as `Counts.shown`, or what `summed` of `rd.Counts` returns.
    k : int or list of int, default 10
        Cut-offs for the metrics whose string names none.
    out : path, optional
        Folder for `per_user.parquet` and `summary.parquet`, as `Evaluation.to_parquet` writes them.
        The files appear when both are complete. Without `out`, the per-user table must fit in
        memory.
    memory_limit : int or str, optional
        Memory to use: bytes, or text such as "1GB" or "512MiB". By default it is a quarter of the
        machine's memory. A bucket must fit, so a single list that does not fit is an error. Metrics
        of exposure need more memory, for a few numbers per item, `by` value and k. Side tables take
        memory beside it, and are read once per bucket.
    buckets : int, optional
        Number of buckets. By default it follows from `memory_limit`. With 1 the files are read
        whole, whatever the limit is.
    progress : bool, optional
        Show the progress on stderr, in plain lines. By default only on a
        terminal.
    overwrite : bool, default False
        Replace a result that `out` already holds.
    {side_tables}
    {options}

    Returns
    -------
    Evaluation
        What `evaluate` returns for the frames that `pandas.read_parquet` reads from the same files,
        row for row and up to rounding (1e-12). With `out`, `.per_user` stays in its file until it
        is used.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError,
    UndefinedMetricError
        For the same reasons as in `evaluate`. Null ids, scores and relevances are counted over all
        rows. Where another error counts the rows of one bucket only, its message says so.
    FileNotFoundError
        If a path matches no file.
    FileExistsError
        If `out` holds a result and `overwrite` is False.

    Notes
    -----
    Use it for files that do not fit in memory, or to read only the needed columns of files that do.
    For frames that are in memory already, use `evaluate`. For tables of Spark or Dask, use
    `rd.spark.evaluate` or `rd.dask.evaluate`.

    Examples
    --------
    >>> import pathlib, tempfile, recdf as rd
    >>> shop = rd.sample_shop()
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     shop.true.to_parquet(folder / "true.parquet")
    ...     shop.pred.to_parquet(folder / "pred.parquet")
    ...     result = rd.evaluate_parquet(
    ...         folder / "true.parquet",
    ...         folder / "pred.parquet",
    ...         "ndcg@10",
    ...         by="model",
    ...         out=folder / "result",
    ...     )
    ...     stored = rd.read_parquet(folder / "result")
    >>> stored == rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
    True
    """
    call = call_of(evaluate_parquet, metrics, k, arguments, true_path)
    limit = memory_bytes(memory_limit)
    check_value("buckets", buckets, either(POSITIVE, NONE))
    folder = None if out is None else local_path(out)
    with ExitStack() as stack:
        # This comes first, so that an `out` that cannot be written to is refused before anything is
        # read.
        staging = stack.enter_context(staged(folder, overwrite=overwrite)) if folder else None
        # Made once here, since every part reads them.
        call = replace(call, given=as_frames(call.given, call.options))
        paths = {"true": true_path, "pred": pred_path}
        if not all(map(is_path, paths.values())):
            temporary = stack.enter_context(staging_folder(folder or Path(tempfile.gettempdir())))
            paths = in_files(call, paths, temporary)
        true, pred = (Source(path, role) for role, path in paths.items())
        files = NeededOfFiles.of_files(
            replace(call, files={"true": true.amounts, "pred": pred.amounts}), true, pred
        )
        whole = files.n_bytes * sizes().whole_copies <= limit if buckets is None else buckets == 1
        passes = 1 if whole else 2
        shown = stack.enter_context(Progress(passes * files.n_rows, "evaluate_parquet", progress))
        if whole:
            result = finish(files.call, measure_whole(files, shown))
            if staging is None:
                return result
            summary = result.summary
            spec = result.spec
            written = write_files(staging, [result.per_user], summary, spec)
        else:
            where = staging or stack.enter_context(staging_folder(Path(tempfile.gettempdir())))
            summary, spec, written = evaluate_dealt(files, where, limit, buckets, shown)
            if staging is None:
                return read_parquet(where)
    return StoredEvaluation(summary, spec, local_path(out), written, limit)


def is_path(path: Any) -> bool:
    """Tell whether this names files."""
    path = path[0] if isinstance(path, NamedFiles) else path
    return isinstance(path, str | os.PathLike | list | tuple)


def in_files(call: Call, paths: ByName, folder: Path) -> dict[str, Any]:
    """Return the paths of both frames, with those of temporary files in `folder` for rows that are
    in no file; their needed columns are written there, batch by batch."""
    import pyarrow.parquet as pq

    found = {
        role: path if isinstance(path, NamedFiles) else NamedFiles(path, {})
        for role, path in paths.items()
    }
    rows = {role: _rows(one.path, role) for role, one in found.items() if not is_path(one)}
    schemas: dict[str, pa.Schema] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said of columns is said of the files
        for role, named in found.items():
            if role not in rows:
                schemas[role] = Source(named, role).schema
                continue
            schema = rows[role].schema
            names = named.names
            called = new_names(schema.names, names, role) if names else schema.names
            schemas[role] = plain_schema(
                pa.schema([one.with_name(name) for one, name in zip(schema, called, strict=True)])
            )
        needed = Needed.of(call, schemas)
    for role, one in rows.items():
        names = {name: found[role].names.get(name, name) for name in needed.names(role)}
        read = list(names.values())
        file = folder / f"{role}.parquet"
        schema = plain_table(one.schema.empty_table().select(read)).schema
        with pq.ParquetWriter(
            file, schema.with_metadata(one.schema.metadata), compression="lz4"
        ) as writer:
            for batch in one.batches(read, role):
                writer.write_table(plain_table(batch).cast(schema))
        found[role] = NamedFiles(file, {to: own for to, own in names.items() if to != own})
    return found


def _rows(data: Any, role: str) -> LazyRows:
    """Return rows of any library as lazy rows; those that are not of pandas get dtypes of Arrow."""
    if (rows := lazy_rows(data)) is not None:
        return replace(rows, schema=rows.schema.with_metadata(OF_ARROW))
    if not isinstance(data, DataFrame) and (
        isinstance(data, Series) or not hasattr(data, "__arrow_c_stream__")
    ):
        words = (
            "expected a file, a folder, a glob or a list of them, or a lazy frame, dataset, reader "
            "or frame of rows"
        )
        raise TypeError(f"{role}_path is {kind_of(data)}; {words}")
    table = pa.Table.from_pandas(as_frame(data, role), preserve_index=False)
    table = table if isinstance(data, DataFrame) else table.replace_schema_metadata(OF_ARROW)
    return LazyRows("a frame", table.schema, lambda names: [table])
