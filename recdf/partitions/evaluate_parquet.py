"""`evaluate_parquet` evaluates files that may be larger than memory. Its result is that of
`evaluate`.

Contract: files that fit are read whole, by several threads, and measured as one part. Other files
are dealt to parts on disk (`files_run`). Both paths read only the columns that the call needs
(`needed.NeededOfFiles`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from ..evaluation.evaluate import EvaluateArguments, call_of, takes_evaluate_arguments
from ..evaluation.finish import finish
from ..evaluation.result import Evaluation, read_parquet
from ..evaluation.storage import local_path, staged, write_files
from ..inputs.constraints import NONE, POSITIVE, check_value, either
from ..inputs.sizes import memory_bytes, sizes
from ..matching.side_tables.records import as_frames
from ..metrics.metric import Metric
from ..progress import Progress
from ..publishing import staging_folder
from .files_run import evaluate_dealt
from .needed import NeededOfFiles
from .results import StoredEvaluation
from .source import Source
from .stored_rows import in_files, is_path
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
