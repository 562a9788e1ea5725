"""Parquet files larger than memory, cut into parts that hold whole lists.

Contract: `Source` reads the needed columns of some files in batches, in the order of their rows and without
dictionaries. `part_of` returns the same part for rows with equal keys, whatever the width or the encoding of their
types. `Store` keeps the rows of each part, on disk where there are several parts.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

from ..errors import DataError, OptionError
from ..evaluation.storage import local_path

READ_ROWS = 2**16
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


# -------------------------------------------------------------------------------------------- reading


class Source:
    """Parquet files that together hold one frame.

    `schema` has the type of each column; for a dictionary column this is the type of its values. `categories` are the
    dictionaries read so far, and `null` are the columns in which a null was read.
    """

    def __init__(self, path: Any, role: str) -> None:
        import pyarrow.dataset as ds  # here, since it would make the import of recdf slower

        self.role = role
        files = _files(path, role)
        # The folders of a partitioned data set (model=als/...) are columns, as for pandas.read_parquet.
        layout = ds.HivePartitioning.discover(infer_dictionary=True)
        try:
            dataset = ds.dataset(files, format="parquet", partitioning=layout)
            self.fragments = list(dataset.get_fragments())
            self.n_rows = sum(fragment.metadata.num_rows for fragment in self.fragments)
            physical = [fragment.physical_schema for fragment in self.fragments]
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{role}: {path} cannot be read as parquet: {error}") from error
        if not physical:
            raise DataError(f"{role}: {path} holds no parquet file")
        self.folder_columns = [name for name in dataset.schema.names if name not in physical[0].names]
        self.metadata = physical[0].metadata or {}
        self.files_schema = dataset.schema
        try:
            self.schema = pa.unify_schemas(
                [*map(_decoded, physical), _decoded(dataset.schema)], promote_options="permissive"
            )
        except (pa.ArrowException, TypeError) as error:
            raise DataError(f"{role}: the files of {path} have columns of different kinds: {error}") from error
        self.categories: dict[str, pa.Array] = {}
        self._last: dict[str, pa.Array] = {}
        self.null: set[str] = set()
        for name in self.folder_columns:
            place = dataset.partitioning.schema.get_field_index(name)
            self.categories[name] = dataset.partitioning.dictionaries[place]

    def fields(self, names: Sequence[str]) -> pa.Schema:
        """Return the schema of some columns."""
        return pa.schema([self.schema.field(name) for name in names])

    def batches(self, names: Sequence[str], n_rows: int) -> Iterator[pa.Table]:
        """Yield tables of about `n_rows` rows with some columns."""
        held: list[pa.Table] = []
        for piece in self._pieces(names):
            held.append(piece)
            if sum(map(len, held)) >= n_rows:
                yield pa.concat_tables(held).combine_chunks()
                held = []
        if held:
            yield pa.concat_tables(held).combine_chunks()

    def _pieces(self, names: Sequence[str]) -> Iterator[pa.Table]:
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        for fragment in self.fragments:
            known = ds.get_partition_keys(fragment.partition_expression)
            stored = [name for name in names if name not in known]
            # Without pre-buffering a column chunk is decompressed page by page, so that row groups may have any size.
            with pq.ParquetFile(fragment.path, pre_buffer=False, buffer_size=2**20) as file:
                lacking = [name for name in stored if name not in file.schema_arrow.names]
                if lacking:
                    raise DataError(f"{self.role}: {fragment.path} has no column {lacking[0]!r}")
                for batch in file.iter_batches(READ_ROWS, columns=stored):
                    columns = {
                        name: pa.repeat(pa.scalar(known[name], self.schema.field(name).type), len(batch))
                        if name in known
                        else self._plain(batch.column(name), name)
                        for name in names
                    }
                    yield pa.table(columns)

    def _plain(self, column: pa.Array, name: str) -> pa.Array:
        if column.null_count:
            self.null.add(name)
        if pa.types.is_dictionary(column.type):
            if name not in self._last or not self._last[name].equals(column.dictionary):
                self._last[name] = column.dictionary
                self._add_categories(name, column.dictionary)
            column = column.dictionary_decode()
        elif pa.types.is_dictionary(self.files_schema.field(name).type):  # it is a dictionary in another file
            self._add_categories(name, column.unique().drop_null())
        column = column.cast(self.schema.field(name).type)
        # Adding 0.0 turns -0.0 into 0.0, which Arrow would put into another group.
        return pc.add(column, pa.scalar(0.0, column.type)) if column.type in (pa.float32(), pa.float64()) else column

    def _add_categories(self, name: str, values: pa.Array) -> None:
        own = values.cast(self.schema.field(name).type)
        chunks = [self.categories[name], own] if name in self.categories else [own]
        self.categories[name] = pa.chunked_array(chunks).unique()

    def as_pandas(self, table: pa.Table) -> pd.DataFrame:
        """Return columns in the dtypes that pandas would give them if it read all files at once."""
        found = {}
        for name in table.column_names:
            kind, column = self.files_schema.field(name).type, table[name]
            if pa.types.is_dictionary(kind):
                values = self.categories.get(name, pa.array([], self.schema.field(name).type))
                places = pc.index_in(column, values).combine_chunks()
                column = pa.chunked_array([pa.DictionaryArray.from_arrays(places, values, ordered=kind.ordered)])
            if name in self.null:  # an added null, removed below, tells pandas of nulls elsewhere
                column = pa.chunked_array([*column.chunks, pa.nulls(1, column.type)])
            plain = pa.table({name: column})
            try:
                frame = plain.replace_schema_metadata(_of_column(self.metadata, name)).to_pandas()
            except (TypeError, ValueError):  # pandas writes dtypes, such as Arrow's dictionaries, that it cannot read
                frame = plain.to_pandas()
            found[name] = frame[name].iloc[: len(table)]
        return pd.DataFrame(found)


def as_frame(table: pa.Table) -> pd.DataFrame:
    """Return a frame that shares the table's memory and keeps integers beside nulls exact."""
    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    return frame


def _files(path: Any, role: str) -> Any:
    """Return what pyarrow reads as one data set: a folder, a file, or a list of files."""
    if isinstance(path, list | tuple):
        return [file for one in path for file in _as_list(_files(one, role))]
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{role}_path is a {type(path).__name__}; expected a file, a folder, a glob or a list of them")
    text = os.fspath(path)
    if os.path.exists(text):
        return text
    local_path(text)
    found = sorted(glob.glob(text, recursive=True))
    if not found:
        raise FileNotFoundError(f"{role}: {text} matches no file")
    return [file for one in found for file in _as_list(_files(one, role))]


def _as_list(files: Any) -> list[str]:
    if isinstance(files, list):
        return files
    if not os.path.isdir(files):
        return [files]
    return sorted(
        str(file)
        for file in Path(files).rglob("*")
        if file.is_file() and not any(part.startswith((".", "_")) for part in file.relative_to(files).parts)
    )


def _decoded(schema: pa.Schema) -> pa.Schema:
    """Return the schema without metadata, with the types of values in place of dictionaries."""
    return pa.schema(
        [(field.name, field.type.value_type if pa.types.is_dictionary(field.type) else field.type) for field in schema]
    )


def _of_column(metadata: dict[bytes, bytes], name: str) -> dict[bytes, bytes]:
    """Return the pandas metadata of one column; a column that was an index becomes an ordinary one."""
    if b"pandas" not in metadata:
        return {}
    pandas = json.loads(metadata[b"pandas"])
    pandas["index_columns"] = []
    pandas["columns"] = [column for column in pandas["columns"] if column["name"] == name]
    return {b"pandas": json.dumps(pandas).encode()}


# -------------------------------------------------------------------------------------------- parts

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LOW_BYTES = np.array([2 ** (8 * n) - 1 for n in range(9)], dtype=np.uint64)
HASHED_BYTES = 256  # only so many bytes of a string are hashed; longer strings may share a hash


def part_of(columns: Sequence[Any], n_parts: int) -> np.ndarray:
    """Return the part of each row (uint16) by a hash of its key, which depends on values and not on types.

    Keys have no nulls. Both frames must send a user to the same part, even if one stores the id as int32 and the other
    as int64, as a dictionary, or as a timestamp of another unit. The hashes of pandas and of Arrow depend on the type
    and may change with versions, so this function has its own. It uses only the high half of the hash: multiplying by a
    constant mixes the high bits best, and to scale them to the number of parts needs no division.
    """
    hashed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        _hash_into(hashed, column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    return ((hashed >> np.uint64(32)) * np.uint64(n_parts) >> np.uint64(32)).astype(np.uint16)


def given_ids(series: pd.Series) -> pa.Array:
    """Return ids that the caller gave in a form for `part_of`; unlike files, they may have integers beyond 64 bits."""
    try:
        return pa.array(series, from_pandas=True)
    except OverflowError:
        return pa.array((series.astype(object).to_numpy() % 2**64).astype(np.uint64))


def common_type(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return a type that holds the values of several columns; None if there is none."""
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    schemas = [pa.schema([("key", wide.get(kind, kind))]) for kind in kinds]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowException, TypeError):
        return None


def labels_as(labels: Any, kind: pa.DataType | None) -> Any:
    """Return the labels of a part in the type that all parts share."""
    if pa.types.is_dictionary(labels.type):
        labels = labels.dictionary_decode()
    return labels if kind is None else labels.cast(kind)


def _hash_into(hashed: np.ndarray, column: Any) -> None:
    kind = column.type
    if isinstance(column, pa.ChunkedArray):  # it still has several chunks if one cannot hold the strings
        column = pa.concat_arrays(column.chunks)
    if pa.types.is_dictionary(kind):
        return _hash_into(hashed, column.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _hash_into(hashed, column.cast(pa.large_binary()))
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _hash_bytes(hashed, column)
    if pa.types.is_timestamp(kind):  # units differ between files of the same instants
        column = column.cast(pa.timestamp("s", kind.tz), safe=False).cast(pa.int64())
    elif pa.types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None  # rare kinds are not hashed, so all rows go to one part
    values = column.to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):  # floats that are no whole numbers are refused later
        words = values.astype(np.int64, copy=False).view(np.uint64)
    _mix(hashed, words)
    return None


def _mix(hashed: np.ndarray, words: np.ndarray) -> None:
    hashed ^= words
    hashed *= GOLDEN
    hashed ^= hashed >> np.uint64(29)


def _hash_bytes(hashed: np.ndarray, column: Any) -> None:
    """Mix in strings, eight bytes of each at a time."""
    _, offsets, data = column.buffers()
    edges = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    length = np.diff(edges)
    _mix(hashed, length.view(np.uint64))
    if not len(length) or not length.any():
        return
    padded = np.zeros(int(edges[-1] - edges[0]) + 8, np.uint8)
    padded[:-8] = np.frombuffer(data, np.uint8)[edges[0] : edges[-1]]
    # A view of the eight bytes from each position on as one number; it is read only where strings are.
    words: np.ndarray = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
    begin = edges[:-1] - edges[0]
    for start in range(0, min(int(length.max()), HASHED_BYTES), 8):
        rows = np.flatnonzero(length > start)
        some = hashed[rows]
        _mix(some, words[begin[rows] + start] & LOW_BYTES[np.minimum(length[rows] - start, 8)])
        hashed[rows] = some


def memory_bytes(limit: int | str | None) -> int:
    """Return the memory limit in bytes."""
    if limit is None:
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
        except (AttributeError, ValueError):  # not on Windows
            return 2 * 10**9
    found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*([KMGT]?I?)B?\s*", str(limit).upper())
    if isinstance(limit, bool) or found is None or found[2] not in UNITS or float(found[1]) <= 0:
        raise OptionError(f'memory_limit={limit!r}; expected a number of bytes, or text such as "1GB" or "512MiB"')
    return int(float(found[1]) * UNITS[found[2]])


class Store:
    """The rows of each part in the order in which they were added: in memory if there is one part, else in a file."""

    def __init__(self, path: Path, n_parts: int, schema: pa.Schema) -> None:
        self.path, self.n_parts, self.schema = path, n_parts, schema
        self.n_rows = 0
        self.n_bytes = np.zeros(n_parts, np.int64)
        self._kept: list[pa.Table] = []
        self._places: list[list[int]] = [[] for _ in range(n_parts)]  # positions of each part's batches in the file
        self._n_batches = 0
        self._writer: Any = None
        self._reader: Any = None

    def add(self, table: pa.Table, part: np.ndarray) -> None:
        """Keep rows, given the part of each."""
        table = table.select(self.schema.names)
        self.n_rows += len(table)
        if self.n_parts == 1:
            self._kept.append(table)
            return
        if self._writer is None:
            self._writer = ipc.new_file(str(self.path), self.schema)
        order = np.argsort(part, kind="stable")
        table = table.take(pa.array(order)).combine_chunks()
        edges = np.searchsorted(part[order], np.arange(self.n_parts + 1))
        for number in np.flatnonzero(np.diff(edges)):
            for batch in table.slice(edges[number], edges[number + 1] - edges[number]).to_batches():
                self._places[number].append(self._n_batches)
                self._writer.write_batch(batch)
                self._n_batches += 1
                self.n_bytes[number] += batch.nbytes

    def read(self, part: int) -> pa.Table:
        """Return all rows of a part."""
        if self.n_parts == 1:
            return pa.concat_tables([self.schema.empty_table(), *self._kept])
        if self._writer is not None and self._reader is None:
            self._writer.close()
            self._reader = ipc.open_file(pa.OSFile(str(self.path)))
        return pa.Table.from_batches([self._reader.get_batch(at) for at in self._places[part]], self.schema)

    def close(self) -> None:
        """Close the file, so that its folder can be removed."""
        if self._writer is not None:
            self._writer.close()
        self._reader = None
