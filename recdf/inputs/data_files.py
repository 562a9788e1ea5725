"""Which files a path names, and the columns that stand in the names of their folders.

Contract: every reader of files asks here, so that a function and the command, in memory and in
parts, read the same files in the same order, and see the same columns. Only the columns that a
call needs are read, from files and from objects that hand over Arrow data.

Tables of many users are read in parts: row groups of files, partitions of a frame of Spark or
Dask, or the batches of lazy rows. No engine is imported here; its frame has the methods. What runs
on the batches of a part is sent to the workers, and gives what can be sent back.
"""

from __future__ import annotations

import glob
import json
import os
import pickle
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pandas import DataFrame, Series
from pyarrow import dataset
from pyarrow.fs import LocalFileSystem

from ..errors import DataError, kind_of
from ..publishing import where
from .codes import rank_keys
from .frames import engine_of, plain_table
from .ids import TEXTS, exact_nulls, read_ids
from .lazy_frames import LazyRows, lazy_rows, refuse_twice, unwrapped
from .machine import each, limited, memory_bytes, sizes, stream

BARE_INDEX = re.compile(r"__index_level_\d+__")


def data_files(path: str) -> list[str]:
    """Return the files of a folder, a glob or a file, each once, sorted by path; none if nothing
    has such a name.

    Files and folders whose names begin with a dot or an underscore are left out, unless the path
    names them. Links are followed. What several paths lead to is read once, by a path without a
    link if there is one.
    """
    if (one := where(Path(path))) != Path(path):
        path = str(one)
    if os.path.isfile(path):
        return [path]
    parts = Path(path).parts
    if os.path.isdir(path):
        found = _inside([path])
    elif "**" in parts:  # where links form circles, `glob` would follow them very many times
        first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
        below = _inside([str(Path(*parts[:first]))])
        found = [one for one in below if _pattern_matches(Path(one).parts[first:], parts[first:])]
    else:
        matches = [one for one in glob.glob(path) if not hidden({*Path(one).parts} - {*parts})]
        folders = [one for one in matches if os.path.isdir(one)]
        found = [*set(matches).difference(folders), *_inside(folders)]
    of_file: dict[str, str] = {}
    for _, file in sorted((os.path.realpath(one) != os.path.abspath(one), one) for one in found):
        of_file.setdefault(os.path.realpath(file), file)
    return sorted(of_file.values())


def _inside(folders: Sequence[str]) -> list[str]:
    """Return the files below some folders. Each folder is entered once, so that links that form a
    circle end."""
    found = []
    entered = set()
    while folders:
        links = []
        for top in folders:
            for folder, below, files in os.walk(top):
                below[:] = [name for name in below if not hidden([name])]
                if os.path.realpath(folder) in entered:
                    below.clear()
                    continue
                entered.add(os.path.realpath(folder))
                links += [
                    one for name in below if os.path.islink(one := os.path.join(folder, name))
                ]
                found += [os.path.join(folder, name) for name in files if not hidden([name])]
        folders = links  # after the folders themselves, which may hold what a link leads to
    return found


def _pattern_matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Tell whether a pattern names a path, or a folder above it; `**` stands for any number of
    folders."""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_pattern_matches(parts[i:], pattern[1:]) for i in range(len(parts) + 1))
    return (
        bool(parts) and fnmatch(parts[0], pattern[0]) and _pattern_matches(parts[1:], pattern[1:])
    )


def hidden(names: Any) -> bool:
    """Tell whether one of the names begins with a dot or an underscore."""
    return any(name.startswith((".", "_")) for name in names if name not in (".", ".."))


def folder_columns(files: Sequence[str]) -> dict[str, pa.Array]:
    """Return the columns in the names of folders, such as `day` of day=2026-11-20/, with the value
    of each file.

    Values are integers if those of all files are: of 32 bits if they fit, else of 64. Otherwise all
    are text. An empty value is null.
    """
    named = [
        dict(part.split("=", 1) for part in Path(file).parts[:-1] if "=" in part[1:])
        for file in files
    ]
    found = {}
    null = ("", "__HIVE_DEFAULT_PARTITION__")
    for name in dict.fromkeys(name for own in named for name in own):
        values = [own.get(name, "") for own in named]
        given = [None if value in null else unquote(value) for value in values]
        text = found[name] = pa.array(given, pa.string())
        for kind in (pa.int64(), pa.int32()) if text.null_count < len(text) else ():
            try:
                found[name] = text.cast(kind)
            except pa.ArrowInvalid:
                break
    return found


def unified(schemas: Sequence[pa.Schema]) -> tuple[pa.Schema, dict[str, str]]:
    """Return the columns of all files, and what is wrong with those whose types do not go
    together."""
    try:
        return pa.unify_schemas(schemas, promote_options="permissive"), {}
    except (pa.ArrowException, TypeError):
        pass
    types: dict[str, list[pa.Schema]] = {}
    for field in (field for schema in schemas for field in schema):
        types.setdefault(field.name, []).append(pa.schema([field]))
    fields = []
    odd = {}
    for name, own in types.items():
        try:
            fields.append(pa.unify_schemas(own, promote_options="permissive").field(0))
        except (pa.ArrowException, TypeError) as error:
            fields.append(own[0].field(0))
            odd[name] = f"{name!r}: {error}"
    return pa.schema(fields), odd


def cast(column: Any, kind: pa.DataType, name: str, where: str) -> Any:
    """Return a column of one file in the type that it has over all files, which may not hold all of
    its values."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{where}: the files have columns of different kinds: {name!r} is {column.type}, which "
            f"as {kind}, the type over all files, would lose digits ({error})"
        ) from error


def pandas_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """Return what pandas wrote of dtypes; no column of the file is an index, and all names are
    text."""
    written = json.loads((metadata or {}).get(b"pandas", b"{}"))
    return {"columns": [], **written, "index_columns": [], "column_indexes": []}


def without_bare_index(table: pa.Table) -> pa.Table:
    """Return the table without an index that pandas wrote and that has no name."""
    return table.drop_columns([one for one in table.column_names if BARE_INDEX.fullmatch(one)])


# Takes one row of all columns, and returns the names of the columns to read.
NeededColumns = Callable[[DataFrame], list[str]]


def by_places(data: Any) -> tuple[Any, dict[str, str]]:
    """A frame of Spark with columns that are named by their places, since names may have dots and
    quotes; and these names."""
    at = {name: f"c{i}" for i, name in enumerate(data.columns)}
    return data.toDF(*at.values()), at


def files_there(path: str | os.PathLike[str], role: str) -> list[str]:
    """Return the files of a path; one without any raises."""
    files = data_files(os.fspath(path))
    if not files:
        raise DataError(f"{role}={os.fspath(path)!r} is no file, folder or glob that matches any")
    return files


def needed_frame(data: Any, role: str, needed: NeededColumns) -> Any:
    """Return a DataFrame as it is, and else one of the columns that are needed, in the order of the
    data.

    `data` is the path of a parquet file, folder or glob, a dataset of pyarrow, a relation of
    DuckDB, a (lazy) frame of polars, a frame of Spark or Dask, or any other object with the Arrow
    stream interface, which is read batch by batch.
    """
    data = unwrapped(data)
    if isinstance(data, DataFrame):
        return data
    if (engine := engine_of(data)) is not None and hasattr(data, "columns"):
        if engine == "dask":
            names = needed(data.head(1, npartitions=-1))
            return data[names].compute().reset_index(drop=True)
        places, at = by_places(data)
        names = needed(frame_of_table(places.limit(1).toArrow().rename_columns(list(at))))
        table = places.select(*(at[name] for name in names)).toArrow()
        return frame_of_table(table.rename_columns(names))
    if type(data).__module__.startswith("polars.") and hasattr(data, "lazy"):
        data = data.lazy()
    if isinstance(data, str | os.PathLike):
        return _frame_of_files(files_there(data, role), role, needed)
    if isinstance(data, dataset.Dataset):
        refuse_twice(data.schema.names, role)
        return frame_of_table(data.to_table(columns=needed(_head(data))))
    if (rows := lazy_rows(data)) is not None and (few := _first_of_lazy(data)) is not None:
        return frame_of_table(pa.concat_tables(rows.batches(needed(few), role)))
    data = data.to_reader() if hasattr(data, "to_reader") else data
    if not hasattr(data, "__arrow_c_stream__") or isinstance(data, Series):
        raise TypeError(
            f"{role} is {kind_of(data)}; expected a DataFrame, such as result.per_user, a path of "
            "parquet files, or an object with the Arrow stream interface (pyarrow, polars, DuckDB)"
        )
    is_reader = isinstance(data, pa.RecordBatchReader)
    reader = data if is_reader else pa.RecordBatchReader.from_stream(data)
    none = pa.RecordBatch.from_pylist([], reader.schema)
    first = next((batch for batch in reader if batch.num_rows), none)
    refuse_twice(reader.schema.names, role)  # of which old releases of pyarrow make no frame
    names = needed(frame_of_table(pa.Table.from_batches([first.slice(0, 1)])))
    return frame_of_table(
        pa.Table.from_batches(batch.select(names) for batch in chain([first], reader))
    )


def _frame_of_files(files: list[str], role: str, needed: NeededColumns) -> DataFrame:
    """The needed columns of parquet files and of their folders, each in one type over all files."""
    stored = []
    for file in files:
        try:
            stored.append(pq.read_schema(file))
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{role}: {file} cannot be read as parquet: {error}") from error
    named = {
        name: values
        for name, values in folder_columns(files).items()
        if not all(name in one.names for one in stored)
    }
    alike = all(one.equals(stored[0]) for one in stored)
    of_folders = pa.schema([(name, values.type) for name, values in named.items()])
    schema, odd = unified([*(stored if alike else map(_without_categories, stored)), of_folders])
    schema = schema.with_metadata(stored[0].metadata)
    kind = dataset.ParquetFileFormat()
    fragments = []
    for i, (file, own) in enumerate(zip(files, stored, strict=True)):
        told = dataset.scalar(True)
        for name, values in named.items():
            if name not in own.names and name not in odd:
                at, value = dataset.field(name), values[i].cast(schema.field(name).type)
                told &= at == value if value.is_valid else at.is_null()
        fragments.append(kind.make_fragment(file, LocalFileSystem(), told))
    rows = dataset.FileSystemDataset(fragments, schema, kind, LocalFileSystem())
    try:
        names = needed(_head(rows))
        for one in stored:
            refuse_twice(one.names, role, names)
        if wrong := [odd[name] for name in names if name in odd]:
            raise DataError(f"{role}: the files have columns of different kinds: {wrong[0]}")
        return frame_of_table(rows.to_table(columns=names))
    except pa.ArrowInvalid as error:  # one type does not hold all values
        raise DataError(f"{role}: the files cannot be read as one table: {error}") from error


def _head(rows: dataset.Dataset) -> DataFrame:
    """The first row. Without the options, whole row groups of all columns would be read for it."""
    head = rows.head(1, batch_size=2**10, batch_readahead=0, fragment_readahead=0)
    return frame_of_table(head)


def _without_categories(schema: pa.Schema) -> pa.Schema:
    return pa.schema(
        [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in schema
        ]
    )


def _first_of_lazy(data: Any) -> DataFrame | None:
    """The first row of what can be read more than once; None of a reader."""
    few = lazy_rows(data.limit(1)) if hasattr(data, "limit") else None
    return None if few is None else frame_of_table(few.table(few.schema.names, "data"))


def frame_of_table(table: pa.Table) -> DataFrame:
    """The table with no column as an index, and with what pandas wrote of its attributes. Integers
    beside a null stay exact."""
    table = without_bare_index(table)
    written = json.dumps(pandas_metadata(table.schema.metadata))
    table = plain_table(table).replace_schema_metadata({"pandas": written})
    frame: DataFrame = table.to_pandas(split_blocks=True)
    for place, column in enumerate(table.columns):
        if pa.types.is_integer(column.type) and frame.dtypes.iloc[place] == "float64":
            frame.isetitem(place, exact_nulls(column).array)
    return frame


# What is computed of the batches of one part, where they are.
OfBatches = Callable[[Iterator[pa.RecordBatch]], Any]


@dataclass(frozen=True)
class UserParts:
    """Rows in parts: row groups of files, or partitions of an engine's frame.

    `head` is a row of the columns that are needed and `sample` the first rows. `run` gives what a
    function makes of the batches of every part, `distinct` whether no value of a column stands
    twice, and `spans` the smallest and the largest values of columns of numbers, if these are
    written beside the rows. `some` are runs of rows of a frame in memory, with all its columns.
    """

    n: int
    head: DataFrame
    sample: pa.RecordBatch
    run: Callable[[OfBatches, list[str]], list[Any]]
    distinct: Callable[[str], bool]
    spans: Callable[[list[str]], tuple[np.ndarray, np.ndarray] | None] = lambda _: None
    some: DataFrame | None = None

    def frame_of(self, columns: Mapping[str, list[Any]]) -> DataFrame:
        """Values of some columns as a frame, with the types that the rows have."""
        plain = _without_categories(self.sample.schema)
        own = {name: pa.array(values, plain.field(name).type) for name, values in columns.items()}
        return self.typed(frame_of_table(pa.table(own)), [*columns])

    def typed(self, frame: DataFrame, names: list[str]) -> DataFrame:
        """The frame with some columns of the types that the rows have, but for categories."""
        return frame.astype(self.head[names].select_dtypes(exclude="category").dtypes)


def users_in_parts(data: Any, needed: NeededColumns, label: str) -> tuple[Any, UserParts | None]:
    """Return the rows to read, and the parts of many of them: of files, of a frame, of a frame of
    Spark or Dask, and of lazy rows that take much memory. All others come into memory."""
    data = unwrapped(data)
    found = None
    if (engine := engine_of(data)) is not None and hasattr(data, "columns"):
        found = _parts_of_spark(data, needed) if engine == "spark" else _parts_of_dask(data, needed)
    elif isinstance(data, str | os.PathLike):
        found = _parts_of_files(data_files(os.fspath(data)), needed, label)
    elif isinstance(data, dataset.FileSystemDataset) and data.format.default_extname == "parquet":
        found = _parts_of_files(data.files, needed, label, data.schema)
        # A dataset may have a filter.
        found = found if found is not None and found.n == data.count_rows() else None
    elif (rows := lazy_rows(data)) is not None and (few := _first_of_lazy(data)) is not None:
        read = _parts_of_lazy(rows, needed(few))
        if isinstance(read, UserParts):
            return data, read
        data = read
    if found is not None and found.n >= sizes().summed_rows:
        return data, found
    data = needed_frame(data, "data", needed)
    return data, _parts_of_frame(data, needed) if len(data) >= sizes().summed_rows else None


def _parts_of_lazy(rows: LazyRows, names: list[str]) -> DataFrame | UserParts:
    """Read some columns of rows that can be read again, and return them as a frame if they take
    less than half of the memory that a call may take."""
    held: list[pa.Table] = []
    n = n_bytes = 0
    most = memory_bytes(None) // 2
    for table in filter(len, rows.batches(names, "data")):
        n += len(table)
        n_bytes += table.nbytes
        held = [*held, table] if n_bytes <= most or not held else held[:1]
    if n_bytes <= most:
        return frame_of_table(pa.concat_tables(held) if held else rows.table(names, "data"))
    sample = held[0].slice(0, sizes().summed_batch // 4).combine_chunks()

    def run(function: OfBatches, columns: list[str]) -> list[Any]:
        def of(table: pa.Table) -> Any:
            return function(iter(table.to_batches(sizes().summed_batch)))

        return list(stream(of, rows.batches(columns, "data"), most=1))

    def distinct(name: str) -> bool:
        tables = rows.batches([name], "data")
        return _no_repeats(pa.chunked_array(one for table in tables for one in table[name].chunks))

    return UserParts(n, frame_of_table(sample.slice(0, 1)), sample.to_batches()[0], run, distinct)


def _no_repeats(ids: pa.ChunkedArray) -> bool:
    return rank_keys([[read_ids(ids.to_pandas(), "ids")]])[1] == len(ids)


# How many runs of rows of a frame are looked at, and how long they are.
_PLACES, _ROWS_OF_PLACE = 100, 64


def _parts_of_frame(data: DataFrame, needed: NeededColumns) -> UserParts | None:
    head = data.head(1)
    names = needed(head)
    ends: dict[str, tuple[float, float]] = {}

    def as_arrow(name: str) -> Any:
        series = data[name]
        if not isinstance(series.dtype, np.dtype) or series.dtype.kind not in "iuf":
            return pa.array(series)
        values = series.to_numpy()
        ends[name] = float(values.min()), float(values.max())
        return pa.array(values, from_pandas=bool(np.isnan(ends[name][0])))

    try:
        table = pa.table(dict(zip(names, each(as_arrow, names), strict=True)))
    except (pa.ArrowException, TypeError, ValueError):  # a column of mixed or odd values
        return None

    def run(function: OfBatches, columns: list[str]) -> list[Any]:
        # Not in threads: these would wait for Python's lock between their short steps.
        return [function(iter(table.select(columns).to_batches(sizes().summed_batch)))]

    sample = table.slice(0, sizes().summed_batch // 4).combine_chunks().to_batches()[0]
    starts = np.linspace(0, len(data) - _ROWS_OF_PLACE, _PLACES).astype(np.int64)
    some = data.take((starts[:, None] + np.arange(_ROWS_OF_PLACE)).ravel())

    def distinct(name: str) -> bool:
        return _no_repeats(table[name])

    def spans(columns: list[str]) -> tuple[np.ndarray, np.ndarray] | None:
        low, high = np.array([ends.get(name, (np.nan, np.nan)) for name in columns]).T
        return None if np.isnan(low).any() else (low, high)

    return UserParts(len(data), head[names], sample, run, distinct, spans, some)


def _parts_of_files(
    files: list[str], needed: NeededColumns, label: str, schema: pa.Schema | None = None
) -> UserParts | None:
    try:
        metas = [pq.read_metadata(file) for file in files]
    except (pa.ArrowException, OSError):
        return None
    schemas = [one.schema.to_arrow_schema() for one in metas]
    n = sum(one.num_rows for one in metas)
    odd = any(one != schemas[0] for one in [*schemas, *([] if schema is None else [schema])])
    if n < sizes().summed_rows or odd or folder_columns(files) or not metas[0].num_rows:
        return None
    is_text = label in schemas[0].names and schemas[0].field(label).type in TEXTS
    work = [(i, g) for i, meta in enumerate(metas) for g in range(meta.num_row_groups)]

    # One thread computes while others read: in short steps they would wait for Python's lock.
    turn = Lock()

    def batches(part: tuple[int, int], names: list[str]) -> Generator[pa.RecordBatch, None, None]:
        file, group = part
        texts = [label] if is_text and label in names else []
        # Mapped into memory, so that the first rows do not bring the whole row group there.
        with pq.ParquetFile(
            files[file], metadata=metas[file], read_dictionary=texts, memory_map=True
        ) as opened:
            for batch in opened.iter_batches(
                sizes().summed_batch, row_groups=[group], columns=names, use_threads=False
            ):
                with turn:
                    yield batch

    def run(function: OfBatches, columns: list[str]) -> list[Any]:
        def of(part: tuple[int, int]) -> Any:
            with closing(batches(part, columns)) as rows:
                return function(rows)

        return each(of, work)

    def spans(names: list[str]) -> tuple[np.ndarray, np.ndarray] | None:
        places = {metas[0].schema.column(i).path: i for i in range(metas[0].num_columns)}
        of = [[metas[i].row_group(g).column(places[n]).statistics for i, g in work] for n in names]
        if any(one is None or not one.has_min_max for own in of for one in own):
            return None
        low = [float(min(one.min for one in own)) for own in of]
        return np.array(low), np.array([float(max(one.max for one in own)) for own in of])

    def distinct(name: str) -> bool:
        return _no_repeats(
            pa.chunked_array(one[0] for part in work for one in batches(part, [name]))
        )

    with pq.ParquetFile(files[0], memory_map=True) as opened:
        head = frame_of_table(pa.Table.from_batches([next(opened.iter_batches(1))]))
    names = needed(head)
    return UserParts(
        n,
        head[names],
        next(batches(work[0], names)).slice(0, sizes().summed_batch // 4),
        run,
        distinct,
        spans,
    )


def _parts_of_dask(data: Any, needed: NeededColumns) -> UserParts | None:
    head = data.head(2**12, npartitions=-1)
    names = needed(head.head(1))
    if not all(isinstance(name, str) for name in names):  # Arrow takes a number for a place
        return None
    n = len(data)

    def run(function: OfBatches, columns: list[str]) -> list[Any]:
        def of(rows: DataFrame) -> Series:
            table = pa.Table.from_pandas(rows, preserve_index=False)
            return Series([function(iter(table.to_batches(sizes().summed_batch)))], dtype=object)

        return list(data[columns].map_partitions(of, meta=Series([], dtype=object)).compute())

    def distinct(name: str) -> bool:
        return len(data[[name]].drop_duplicates(split_out=data.npartitions)) == n

    sample = pa.Table.from_pandas(head[names], preserve_index=False).combine_chunks().to_batches()
    return UserParts(n, head[names].head(1), sample[0], run, distinct) if sample else None


def _parts_of_spark(data: Any, needed: NeededColumns) -> UserParts | None:
    places, at = by_places(data)
    first = places.limit(2**12).toArrow().rename_columns(list(at))
    names = needed(frame_of_table(first.slice(0, 1)))
    n = places.count()

    def run(function: OfBatches, columns: list[str]) -> list[Any]:
        def of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            named = (pa.RecordBatch.from_arrays(one.columns, columns) for one in batches)
            with limited(1):
                found = pickle.dumps(function(named))
            yield pa.record_batch([pa.array([found], pa.binary())], ["part"])

        rows = places.select(*(at[name] for name in columns))
        found = rows.mapInArrow(of, "part binary").toArrow()
        return [pickle.loads(one) for one in found["part"].to_pylist()]

    def distinct(name: str) -> bool:
        return bool(places.select(at[name]).distinct().count() == n)

    sample = first.select(names).combine_chunks().to_batches()
    head = frame_of_table(first.slice(0, 1).select(names))
    return UserParts(n, head, sample[0], run, distinct) if sample else None
