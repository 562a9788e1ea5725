"""`evaluate_parquet` evaluates files that may be larger than memory. Its result is that of
`evaluate`.

Contract: files that fit are read whole, by several threads, and measured as one part. Other files
are dealt to parts on disk (`files_run`). Both paths read only the columns that the call needs
(`needed.NeededOfFiles`). Rows that are in no file are read once, batch by batch, after all columns
were checked, and their needed columns are written to temporary files. Where files are read whole,
rows keep their order, and ids keep their values but not their types: see `_WholeRead.table`.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import kind_of
from ..evaluation.evaluate import EvaluateArguments, call_of, finish, takes_evaluate_arguments
from ..evaluation.part import Part, PartResult, measure
from ..evaluation.result import Evaluation, read_parquet
from ..evaluation.storage import local_path, staged, write_files
from ..inputs.constraints import NONE, POSITIVE, check_value, either
from ..inputs.door import NamedFiles, new_names
from ..inputs.frames import as_frame, plain_table
from ..inputs.lazy_frames import LazyRows, lazy_rows
from ..inputs.list_cells import is_list
from ..inputs.machine import each, memory_bytes, rows_at_a_time, sizes
from ..matching.side_tables.sides import as_frames
from ..metrics.call import Call
from ..metrics.metric import Metric
from ..progress import Progress
from ..publishing import staging_folder
from .files_run import evaluate_dealt
from .needed import Needed, NeededOfFiles
from .source import OF_ARROW, Source, frame_of_arrow, labels_as, plain_schema
from .stored_result import StoredEvaluation
from .work import rows_table

# Most writers of parquet give up a dictionary at DICTIONARY_BYTES. A position in it takes up to
# POSITION_BYTES.
DICTIONARY_BYTES, POSITION_BYTES = 2**20, 3

# So many numbers are decoded at a time before they are copied to the array of their column.
COPIED_ROWS = 2**15

# When files are read whole, ids that are strings stay positions in the dictionary of their row
# group.
POSITIONS = pa.dictionary(pa.int32(), pa.large_string())
TEXT = (pa.string(), pa.large_string())


class _RowGroups(NamedTuple):
    """Some row groups of one file, which are read together; `first` is the number of their first
    row in all files."""

    file: int
    numbers: tuple[int, ...]
    first: int
    n_rows: int

    @property
    def rows(self) -> slice:
        return slice(self.first, self.first + self.n_rows)


class _ColumnPiece(NamedTuple):
    """What was read of one column in some row groups. `placed`: the array of the column holds
    it."""

    chunks: list[pa.Array]
    placed: bool


def measure_whole(files: NeededOfFiles, progress: Progress, together_rows: int) -> PartResult:
    """Read both frames and measure them. The labels have the dtypes that pandas would give them."""
    sources = files.sources
    tables = {
        role: _WholeRead(source, together_rows).table(files.names(role), files.ids[role])
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
            name: labels_as(pa.array(by[name].array), kinds.field(name).type) for name in files.by
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
        keys=files.key_labels(labels.select(files.keys), heads) if keys else rows.keys,
        by=by,
        carried={name: carried[name] for name in carried.columns},
    )
    return replace(found, measured=replace(found.measured, by=by), rows=rows)


@dataclass(frozen=True)
class _WholeRead:
    """Reads columns of a source, in several threads. Each reads row groups of up to `together_rows`
    rows at once."""

    source: Source
    together_rows: int

    def table(self, names: Sequence[str], ids: Collection[str]) -> pa.Table:
        """Read some columns of all files in several threads, one column of some row groups at a
        time.

        In the columns `ids`, strings that parquet stores as dictionaries become positions in a
        dictionary. An id is then looked up once in each row group instead of once in each row.
        Integers get as narrow as 16 bits. Most columns are written to one array as they are read,
        so that they are in memory only once.
        """
        arrays = {
            name: np.empty(self.source.n_rows, kind)
            for name, kind in self._array_kinds(names, ids).items()
        }
        groups = self._row_groups()
        work = [(group, name) for group in groups for name in names]
        found = dict(
            zip(work, each(lambda one: self._read(*one, arrays.get(one[1])), work), strict=True)
        )
        columns = {}
        for name in names:
            pieces = [found.pop((group, name)) for group in groups]
            columns[name] = self._column(name, pieces, arrays.get(name))
        return pa.table(columns)

    def _array_kinds(self, names: Sequence[str], ids: Collection[str]) -> dict[str, Any]:
        """Return the dtypes of the columns that are written to one array, if they have no nulls."""
        found: dict[str, Any] = {}
        for name in set(names).difference(self.source.folder_columns):
            kind = self.source.schema.field(name).type
            if kind in (pa.int32(), pa.int64(), pa.float64()) and not self._has_nulls(name):
                found[name] = self._narrowest(name, kind) if name in ids else kind.to_pandas_dtype()
            elif name in ids and kind in TEXT and self._is_dictionary(name):
                found[name] = np.int32
        return found

    @cached_property
    def _places(self) -> list[dict[str, int]]:
        """The number of each stored column, by file."""
        schemas = [(one.metadata.schema, one.metadata.num_columns) for one in self.source.fragments]
        return [{schema.column(i).path: i for i in range(n)} for schema, n in schemas]

    def _stored_columns(self, name: str) -> Iterator[Any]:
        """Yield what each row group of each file says of one column."""
        for fragment, places in zip(self.source.fragments, self._places, strict=True):
            if (there := self.source.in_files(name)) in places:
                for number in range(fragment.metadata.num_row_groups):
                    yield fragment.metadata.row_group(number).column(places[there])

    def _has_nulls(self, name: str) -> bool:
        return any(
            one.statistics is not None and one.statistics.null_count
            for one in self._stored_columns(name)
        )

    def _narrowest(self, name: str, kind: pa.DataType) -> Any:
        """Return the narrowest dtype for the smallest and the largest integers that the files
        name."""
        found, own = (
            [column.statistics for column in self._stored_columns(name)],
            kind.to_pandas_dtype(),
        )
        if pa.types.is_floating(kind) or not all(
            one is not None and one.has_min_max for one in found
        ):
            return own
        return next(
            (
                one
                for one in (np.int16, np.int32)
                if all(_fit(some.min, some.max, one) for some in found)
            ),
            own,
        )

    def _is_dictionary(self, name: str) -> bool:
        """Tell whether a column of strings is stored as positions in dictionaries.

        Writers give up a dictionary that grows beyond about 1 MB, and then store the strings one by
        one. Positions take up to three bytes per row, so a larger column must hold strings.
        """
        sizes = [column.total_uncompressed_size for column in self._stored_columns(name)]
        return bool(
            sum(max(size - DICTIONARY_BYTES, 0) for size in sizes)
            <= POSITION_BYTES * self.source.n_rows
        )

    def _row_groups(self) -> list[_RowGroups]:
        """Return all row groups in order. Small ones are joined with the next ones of the same
        file."""
        most, found, first = rows_at_a_time(self.together_rows), [], 0
        for number_of_file, fragment in enumerate(self.source.fragments):
            numbers: list[int] = []
            n_rows = 0
            for number in range(fragment.metadata.num_row_groups):
                numbers.append(number)
                n_rows += fragment.metadata.row_group(number).num_rows
                if n_rows >= most:
                    found.append(_RowGroups(number_of_file, tuple(numbers), first, n_rows))
                    numbers, first, n_rows = [], first + n_rows, 0
            if n_rows:
                found.append(_RowGroups(number_of_file, tuple(numbers), first, n_rows))
                first += n_rows
        return found

    def _read(self, group: _RowGroups, name: str, array: np.ndarray | None) -> _ColumnPiece:
        """Read one column of some row groups. Write it to its rows of `array` if that can hold
        it."""
        import pyarrow.parquet as pq

        fragment, kind = self.source.fragments[group.file], self.source.schema.field(name).type
        known, stored = self.source.stored(fragment, [name])
        if not stored:
            return _ColumnPiece([pa.repeat(pa.scalar(known[name], kind), group.n_rows)], False)
        # Positions in a dictionary are read only where there is an array for them.
        there = self.source.in_files(name)
        texts = [there] if array is not None and kind in TEXT else []
        if is_list(kind) and kind.value_type in TEXT:
            texts = [path for path in self._places[group.file] if path.startswith(f"{there}.")]
        how = {"columns": [there], "use_threads": False}
        with pq.ParquetFile(
            fragment.path, metadata=fragment.metadata, read_dictionary=texts, pre_buffer=True
        ) as file:
            if array is not None and not texts and self._copied(file, group, array, kind, how):
                return _ColumnPiece([pa.array(array[group.rows])], True)
            try:
                column = file.read_row_groups(group.numbers, **how)[there]
            except (
                pa.ArrowNotImplementedError
            ):  # there are several dictionaries, which Arrow does not join in lists
                column = pq.ParquetFile(fragment.path).read_row_groups(group.numbers, **how)[there]
        if array is None or not texts or column.null_count:
            return _ColumnPiece(column.chunks, False)
        return _placed_positions(column, array, group.first)

    def _copied(
        self,
        file: Any,
        group: _RowGroups,
        array: np.ndarray,
        kind: pa.DataType,
        how: dict[str, Any],
    ) -> bool:
        """Copy numbers to their rows of the array, a few at a time; False if one is null or does
        not fit."""
        first = group.first
        narrow = pa.from_numpy_dtype(array.dtype)
        for batch in file.iter_batches(COPIED_ROWS, row_groups=group.numbers, **how):
            column = batch.column(0)
            if column.null_count or column.type != kind:
                return False
            try:
                array[first : first + len(column)] = column.cast(narrow).to_numpy()
            except pa.ArrowInvalid:  # a number is beyond what the statistics of the file say
                return False
            first += len(column)
        return True

    def _column(
        self, name: str, pieces: list[_ColumnPiece], array: np.ndarray | None
    ) -> pa.ChunkedArray:
        """Join what was read of one column, in the same type in all files."""
        chunks = [chunk for piece in pieces for chunk in piece.chunks]
        kind = self.source.schema.field(name).type
        is_text = array is not None and kind in TEXT
        if array is not None and chunks and all(piece.placed for piece in pieces):
            for chunk in chunks:
                self.source.note(chunk, name)
            return pa.chunked_array(
                [_one_dictionary(chunks, array) if is_text else pa.array(array)]
            )
        if (
            is_list(kind) and len({chunk.type for chunk in chunks}) == 1
        ):  # of positions, where the items are texts
            return pa.chunked_array(chunks)
        if is_text:
            return pa.chunked_array([self._positions(chunk, name) for chunk in chunks], POSITIONS)
        return pa.chunked_array([self.source.plain(chunk, name) for chunk in chunks], kind)

    def _positions(self, column: pa.Array, name: str) -> pa.DictionaryArray:
        """Return strings as positions in a dictionary. Note nulls and categories on the way."""
        column = column.storage if isinstance(column, pa.ExtensionArray) else column
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        self.source.note(column, name)
        return pa.DictionaryArray.from_arrays(
            column.indices.cast(pa.int32()), column.dictionary.cast(POSITIONS.value_type)
        )


def _fit(low: int | None, high: int | None, kind: Any) -> bool:
    """Tell whether integers from `low` to `high` fit into a dtype; None stands for no integers."""
    return low is None or high is None or (low >= np.iinfo(kind).min and high <= np.iinfo(kind).max)


def _placed_positions(column: pa.ChunkedArray, array: np.ndarray, first: int) -> _ColumnPiece:
    """Write the positions in dictionaries to their rows of the array, from row `first` on."""
    chunks = []
    for chunk in column.chunks:
        if not pa.types.is_dictionary(chunk.type) or chunk.dictionary.null_count:
            return _ColumnPiece(column.chunks, False)
        rows = array[first : first + len(chunk)]
        rows[:] = chunk.indices.to_numpy(zero_copy_only=False)
        chunks.append(
            pa.DictionaryArray.from_arrays(
                pa.array(rows), chunk.dictionary.cast(POSITIONS.value_type)
            )
        )
        first += len(chunk)
    return _ColumnPiece(chunks, True)


def _one_dictionary(chunks: list[pa.DictionaryArray], array: np.ndarray) -> pa.DictionaryArray:
    """Replace positions in several dictionaries, which follow one another in the array, by
    positions in a joint one."""
    joint = pa.chunked_array([chunk.dictionary for chunk in chunks]).dictionary_encode()
    joint = joint.unify_dictionaries().combine_chunks()
    place, ends = (
        joint.indices.to_numpy(),
        np.cumsum([(len(chunk), len(chunk.dictionary)) for chunk in chunks], axis=0),
    )

    def replace(number: int) -> None:
        row, entry = ends[number - 1] if number else (0, 0)
        rows, table = array[row : ends[number][0]], place[entry : ends[number][1]]
        rows[:] = table.take(rows)

    each(replace, range(len(chunks)))
    return pa.DictionaryArray.from_arrays(pa.array(array), joint.dictionary)


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
    return StoredEvaluation(summary, spec, folder=folder, written=written, limit=limit)


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
