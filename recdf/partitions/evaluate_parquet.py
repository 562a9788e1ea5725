"""`evaluate_parquet` evaluates files that may be larger than memory. Its result is that of
`evaluate`.

Contract: files that fit are read whole, by several threads, and measured as one part. Other files
are dealt to parts on disk (`files_run`). Both paths read only the columns that the call needs
(`needed.NeededOfFiles`). Rows that are in no file are read once, batch by batch, after all columns
were checked, and their needed columns are written to temporary files.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import pandas as pd
import pyarrow as pa

from ..errors import kind_of
from ..evaluation.evaluate import EvaluateArguments, call_of, takes_evaluate_arguments
from ..evaluation.finish import finish
from ..evaluation.result import Evaluation, read_parquet
from ..evaluation.storage import local_path, staged, write_files
from ..inputs.constraints import NONE, POSITIVE, check_value, either
from ..inputs.door import NamedFiles, new_names
from ..inputs.frames import as_frame, plain_table
from ..inputs.lazy_frames import LazyRows, lazy_rows
from ..inputs.machine import memory_bytes, sizes
from ..matching.side_tables.records import as_frames
from ..metrics.call import Call
from ..metrics.metric import Metric
from ..progress import Progress
from ..publishing import staging_folder
from .files_run import evaluate_dealt
from .needed import Needed, NeededOfFiles
from .results import StoredEvaluation
from .source import OF_ARROW, Source, plain_schema
from .whole_columns import measure_whole


@takes_evaluate_arguments
def evaluate_parquet(
    true_path: Any,
    pred_path: Any,
    metrics: str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric],
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
        Show the progress on stderr: with tqdm if that is installed, else in plain lines. By default
        it is shown only on a terminal.
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
    limit, how = memory_bytes(memory_limit), sizes()
    check_value("buckets", buckets, either(POSITIVE, NONE))
    folder = None if out is None else local_path(out)
    with ExitStack() as stack:
        # This comes first, so that an `out` that cannot be written to is refused before anything is
        # read.
        staging = (
            None if folder is None else stack.enter_context(staged(folder, overwrite=overwrite))
        )
        call = replace(
            call, given=as_frames(call.given, call.options)
        )  # made once here, since every part reads them
        paths = {"true": true_path, "pred": pred_path}
        if not all(map(is_path, paths.values())):
            temporary = stack.enter_context(staging_folder(folder or Path(tempfile.gettempdir())))
            paths = in_files(call, paths, temporary)
        true, pred = (Source(path, role, how.read_rows) for role, path in paths.items())
        files = NeededOfFiles.of_files(
            replace(call, files={"true": true.read, "pred": pred.read}), true, pred
        )
        row_bytes = {role: one.row_bytes(files.names(role)) for role, one in files.sources.items()}
        n_bytes = sum(one.n_rows * row_bytes[role] for role, one in files.sources.items())
        whole = n_bytes * how.whole_copies <= limit if buckets is None else buckets == 1
        passes = 1 if whole else 2
        shown = stack.enter_context(Progress(passes * files.n_rows, "evaluate_parquet", progress))
        if whole:
            result = finish(files.call, measure_whole(files, shown, how.together_rows))
            if staging is None:
                return result
            written = write_files(staging, [result.per_user], result.summary, result.spec)
            summary, spec = result.summary, result.spec
        else:
            where = staging or stack.enter_context(staging_folder(Path(tempfile.gettempdir())))
            summary, spec, written = evaluate_dealt(
                files, where, limit, buckets, row_bytes, shown, how
            )
            if staging is None:
                return read_parquet(where)
    assert folder is not None
    return StoredEvaluation(summary, spec, folder=folder, written=written)


IN_MEMORY = "a frame"


def is_path(path: Any) -> bool:
    """Tell whether this names files."""
    return isinstance(
        path[0] if isinstance(path, NamedFiles) else path, str | os.PathLike | list | tuple
    )


def in_files(call: Call, paths: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the paths of both frames, with those of temporary files in `folder` for rows that are
    in no file."""
    found = {
        role: path if isinstance(path, NamedFiles) else NamedFiles(path, {})
        for role, path in paths.items()
    }
    rows = {role: _rows(one.path, role) for role, one in found.items() if not is_path(one)}
    schemas = {role: _standard(one.schema, found[role].names, role) for role, one in rows.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said of columns is said of the files
        of_files = {
            role: Source(one, role).schema for role, one in found.items() if role not in rows
        }
        needed = Needed.of(call, {role: (schemas | of_files)[role] for role in found})
    for role, one in rows.items():
        names = {name: found[role].names.get(name, name) for name in needed.names(role)}
        _write(one, list(names.values()), role, folder / f"{role}.parquet")
        found[role] = NamedFiles(
            folder / f"{role}.parquet", {to: own for to, own in names.items() if to != own}
        )
    return found


def _rows(data: Any, role: str) -> LazyRows:
    """Return rows of any library as lazy rows."""
    if (rows := lazy_rows(data)) is not None:
        return rows
    if not isinstance(data, pd.DataFrame) and (
        isinstance(data, pd.Series) or not hasattr(data, "__arrow_c_stream__")
    ):
        words = (
            "expected a file, a folder, a glob or a list of them, or a lazy frame, dataset, reader "
            "or frame of rows"
        )
        raise TypeError(f"{role}_path is {kind_of(data)}; {words}")
    table = pa.Table.from_pandas(as_frame(data, role), preserve_index=False)
    table = table if isinstance(data, pd.DataFrame) else table.replace_schema_metadata(OF_ARROW)
    return LazyRows(IN_MEMORY, table.schema, lambda names: [table])


def _standard(schema: pa.Schema, names: Mapping[str, str], role: str) -> pa.Schema:
    """Return a schema with standard names, and with types that files have."""
    called = new_names(schema.names, names, role) if names else schema.names
    return plain_schema(
        pa.schema([one.with_name(name) for one, name in zip(schema, called, strict=True)])
    )


def _write(rows: LazyRows, names: list[str], role: str, file: Path) -> None:
    """Write some columns to a file, batch by batch."""
    import pyarrow.parquet as pq

    schema = plain_table(rows.schema.empty_table().select(names)).schema
    schema = schema.with_metadata(rows.schema.metadata if rows.kind == IN_MEMORY else OF_ARROW)
    with pq.ParquetWriter(file, schema, compression="lz4") as writer:
        for batch in rows.batches(names, role):
            writer.write_table(plain_table(batch).cast(schema))
