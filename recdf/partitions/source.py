"""Parquet files that together hold one frame.

Contract: `Source` reads the needed columns of some files in the order of their rows, in batches.
`Source.as_pandas` gives columns the dtypes that pandas would give them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray
from pandas import DataFrame
from pyarrow import Schema, Table

from ..errors import DataError, kind_of
from ..evaluation.dtypes import without_dictionary
from ..evaluation.storage import local_path, plain_path
from ..inputs.data_files import cast, data_files, folder_columns, pandas_metadata, unified
from ..inputs.door import NamedFiles, new_names
from ..inputs.frames import is_view
from ..inputs.ids import TEXTS
from ..inputs.list_cells import is_list
from ..inputs.machine import Sizes, each, n_threads, rows_at_a_time

# What marks a file whose columns become Arrow's dtypes in pandas.
OF_ARROW = {b"recdf_rows": b"of Arrow"}
LEAST_ROWS = 2**10  # are read at a time; a row may hold a long list


class Source:
    """Parquet files that together hold one frame.

    `schema` has the type of each column. For a dictionary column this is the type of its values.
    `categories` has the values of the dictionaries that were read so far. `null` has the columns in
    which a null was read. `periods` has the frequency of each column of pandas periods, which are
    stored as integers. `uuids` are the columns of UUIDs, which are stored as bytes.
    """

    def __init__(self, path: Any, role: str, read_rows: int = Sizes.read_rows) -> None:
        import pyarrow.dataset as ds  # imported here, to keep the import of recdf fast
        from pyarrow.fs import LocalFileSystem

        path, names = path if isinstance(path, NamedFiles) else (path, {})
        self.role, self.read_rows = role, read_rows
        self.files = _files(path, role)
        try:
            make = ds.ParquetFileFormat().make_fragment
            self.fragments = [make(file, LocalFileSystem()) for file in self.files]
            self.n_rows = sum(fragment.metadata.num_rows for fragment in self.fragments)
            physical = [fragment.physical_schema for fragment in self.fragments]
        except (pa.ArrowException, OSError) as error:
            said = "files of other formats are read by rd.read, and by recdf evaluate --stream"
            raise DataError(f"{role}: {path} cannot be read as parquet: {error}; {said}") from error
        if not physical:
            raise DataError(f"{role}: {path} holds no parquet file")
        named = folder_columns(self.files)
        # The name in the files of each column that is called otherwise there.
        self._names = dict(names)
        if names:
            there = [*dict.fromkeys(name for schema in physical for name in schema.names), *named]
            standard = dict(zip(there, new_names(there, names, role), strict=True))
            physical = [_renamed(schema, standard) for schema in physical]
            named = {standard[name]: values for name, values in named.items()}
        of_file = [set(schema.names) for schema in physical]
        named = {
            name: named[name] for name in named if not all(name in stored for stored in of_file)
        }
        self.folder_columns = list(named)
        # For each file the columns that it stores, and the values that the names of its folders
        # give.
        self._of_file = {
            file: (
                stored,
                {name: values[i].as_py() for name, values in named.items() if name not in stored},
            )
            for i, (file, stored) in enumerate(zip(self.files, of_file, strict=True))
        }
        folders = pa.schema(
            [(name, pa.dictionary(pa.int32(), values.type)) for name, values in named.items()]
        )
        self._pandas = pandas_metadata(physical[0].metadata)
        self._of_arrow = OF_ARROW.items() <= (physical[0].metadata or {}).items()
        self.files_schema, _ = unified([pa.schema(list(physical[0])), folders])
        # Most files of a frame have the same columns, of which there may be very many.
        bare = [schema.remove_metadata() for schema in physical]
        kinds = [
            one
            for one, last in zip(bare, [None, *bare], strict=False)
            if last is None or not one.equals(last, check_metadata=True)
        ]
        self.schema, self._odd = unified([*map(plain_schema, kinds), plain_schema(folders)])
        self.periods = _periods(kinds, role)
        of_column: dict[str, set[str]] = {}
        for one in (field for schema in kinds for field in schema):
            kind = getattr(one.type, "extension_name", "")
            of_column.setdefault(one.name, set()).add(kind)
        self.uuids = {name for name, found in of_column.items() if found == {"arrow.uuid"}}
        self.categories: dict[str, pa.Array] = {}
        self._last: dict[str, pa.Array] = {}
        self.null: set[str] = set()
        for name, values in named.items():
            if name not in self._odd:
                self.categories[name] = (
                    values.unique().drop_null().cast(self.schema.field(name).type)
                )

    @property
    def read(self) -> dict[str, int]:
        """How many files and rows there are, for the spec."""
        return {"files": len(self.files), "rows": self.n_rows}

    def fields(self, names: Iterable[str]) -> Schema:
        """Return the schema of some columns."""
        return pa.schema([self.schema.field(name) for name in names])

    def batches(self, names: Sequence[str], n_rows: int) -> Iterator[Table]:
        """Yield tables of about `n_rows` rows with some columns."""
        held: list[Table] = []
        for piece in self._pieces(names, min(self.read_rows, max(n_rows, LEAST_ROWS))):
            held.append(piece)
            if sum(map(len, held)) >= n_rows:
                yield pa.concat_tables(held).combine_chunks()
                held = []
        if held:
            yield pa.concat_tables(held).combine_chunks()

    def row_bytes(self, names: Sequence[str]) -> float:
        """Estimate how many bytes a row takes in memory, the strings from the first rows. The
        result is never 0."""
        fixed, names = 0.0, list(names)
        for field in self.fields(names):
            if pa.types.is_primitive(field.type):
                fixed += field.type.bit_width / 8
                names.remove(field.name)
        some = next(self.batches(names, 1), None) if names else None
        return 8 + fixed + (some.nbytes / len(some) if some is not None and len(some) else 0)

    def _pieces(self, names: Sequence[str], read_rows: int) -> Iterator[Table]:
        import pyarrow.parquet as pq

        for fragment in self.fragments:
            known, stored = self.stored(fragment, names)
            # Without pre-buffering, a column chunk is decompressed page by page, so row groups may
            # be of any size.
            with pq.ParquetFile(
                fragment.path, metadata=fragment.metadata, pre_buffer=False, buffer_size=2**20
            ) as file:
                there = [self.in_files(name) for name in stored]
                for batch in file.iter_batches(
                    read_rows, columns=there, use_threads=n_threads() > 1
                ):
                    columns = {
                        name: pa.repeat(
                            pa.scalar(known[name], self.schema.field(name).type), len(batch)
                        )
                        if name in known
                        else self.plain(batch.column(self.in_files(name)), name)
                        for name in names
                    }
                    yield pa.table(columns)

    def stored(self, fragment: Any, names: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """Return the columns (and values) that the names of a file's folders give, and the columns
        that it stores."""
        stored, known = self._of_file[fragment.path]
        odd = [name for name in names if name in self._odd]
        if odd:
            raise DataError(
                f"{self.role}: the files have columns of different kinds: {self._odd[odd[0]]}"
            )
        lacking = [name for name in names if name not in stored and name not in known]
        if lacking:
            raise DataError(f"{self.role}: {fragment.path} has no column {lacking[0]!r}")
        return known, [name for name in names if name in stored]

    def in_files(self, name: str) -> str:
        """Return the name that a column has in the files."""
        return self._names.get(name, name)

    # ------------------------------------------------------------------------------ types and
    # categories

    def note(self, column: pa.Array, name: str) -> None:
        """Note whether the column has nulls. If it has categories in some file, note its values as
        categories."""
        if column.null_count:
            self.null.add(name)
        if not pa.types.is_dictionary(self.files_schema.field(name).type):
            return
        if not pa.types.is_dictionary(column.type):
            self._add_categories(name, column.unique().drop_null())
        elif name not in self._last or not self._last[name].equals(column.dictionary):
            self._last[name] = column.dictionary
            self._add_categories(name, column.dictionary)

    def plain(self, column: pa.Array, name: str) -> pa.Array:
        """Return a column without its dictionary, in the type that it has over all files."""
        self.note(column, name)
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        return cast(without_dictionary(column), self.schema.field(name).type, name, self.role)

    def _add_categories(self, name: str, values: pa.Array) -> None:
        own = values.cast(self.schema.field(name).type)
        chunks = [self.categories[name], own] if name in self.categories else [own]
        self.categories[name] = pa.chunked_array(chunks).unique()

    def as_pandas(self, table: Table) -> DataFrame:
        """Return columns in the dtypes that pandas would give them if it read all files at once."""
        found = {}
        for name in table.column_names:
            kind, column = self.files_schema.field(name).type, without_dictionary(table[name])
            if pa.types.is_dictionary(kind):
                values = self.categories.get(name, pa.array([], self.schema.field(name).type))
                places = pc.index_in(column, values).combine_chunks()
                column = pa.chunked_array(
                    [pa.DictionaryArray.from_arrays(places, values, ordered=kind.ordered)]
                )
            if name in self.uuids:
                column = pa.uuid().wrap_array(column.cast(pa.binary(16)))
            if name in self.null:  # another row has a null: pandas must see one too (removed below)
                column = pa.chunked_array([*column.chunks, pa.nulls(1, column.type)])
            own = [one for one in self._pandas["columns"] if one["name"] == name]
            metadata = {b"pandas": json.dumps({**self._pandas, "columns": own}).encode()}
            plain = pa.table({name: column}).replace_schema_metadata(metadata)
            try:
                frame = frame_of_arrow(plain) if self._of_arrow else plain.to_pandas()
            except (
                TypeError,
                ValueError,
            ):  # pandas wrote a dtype, such as an Arrow dictionary, that it cannot read
                frame = plain.replace_schema_metadata().to_pandas()
            found[name] = frame[name].iloc[: len(table)]
        return DataFrame(found)


def _renamed(schema: Schema, names: Mapping[str, str]) -> Schema:
    """Return a schema with other names, also where pandas wrote them down."""
    of_pandas = pandas_metadata(schema.metadata)
    columns = [one | {"name": names.get(one["name"], one["name"])} for one in of_pandas["columns"]]
    written = {b"pandas": json.dumps(of_pandas | {"columns": columns}).encode()}
    renamed = [field.with_name(names[field.name]) for field in schema]
    return pa.schema(renamed, dict(schema.metadata or {}) | (written if columns else {}))


def frame_of_arrow(table: Table) -> DataFrame:
    """Return a frame that shares the table's memory and keeps integers beside nulls exact."""
    return table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)


def _files(path: Any, role: str) -> list[str]:
    """Return the files of a folder, a file, a glob, or a list of them."""
    if isinstance(path, list | tuple):
        return [file for one in path for file in _files(one, role)]
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"{role}_path is {kind_of(path)}; expected a file, a folder, a glob or a list of them"
        )
    text = os.path.expanduser(plain_path(path))
    if not os.path.exists(text):
        local_path(text)
    found = data_files(text)
    if not found and not os.path.isdir(text):
        raise FileNotFoundError(f"{role}: {text} matches no file")
    return found


def plain_schema(schema: Schema) -> Schema:
    """Return the schema without metadata. Dictionaries and extensions are replaced by the types of
    their values."""

    fields = {}
    for field in schema:
        kind = field.type
        kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        if is_view(kind):
            kind = pa.large_string() if str(kind) == "string_view" else pa.large_binary()
        fields[field.name] = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.schema(fields)


def _periods(schemas: Sequence[Schema], role: str) -> dict[str, str]:
    """Return the frequency of each column of periods. Raise if it differs between files.

    Arrow knows their type only if pandas registered it.
    """
    found: dict[str, set[str | None]] = {}
    for field in (field for schema in schemas for field in schema):
        kind, metadata, frequency = field.type, field.metadata or {}, None
        if isinstance(kind, pa.BaseExtensionType):
            frequency = str(kind.freq) if kind.extension_name == "pandas.period" else None
        elif metadata.get(b"ARROW:extension:name") == b"pandas.period":
            frequency = str(json.loads(metadata[b"ARROW:extension:metadata"])["freq"])
        found.setdefault(field.name, set()).add(frequency)
    for name, here in found.items():
        if len(here) > 1:
            kinds = " and ".join(
                sorted("other values" if one is None else f"period[{one}]" for one in here)
            )
            raise DataError(
                f"{role}: the files have columns of different kinds: {name!r} holds {kinds}"
            )
    return {name: one for name, (one,) in found.items() if one is not None}


# -------------------------------------------------------------------------------------------
# files that are read whole

# Most writers of parquet give up a dictionary at DICTIONARY_BYTES. A position in it takes up to
# POSITION_BYTES.
DICTIONARY_BYTES, POSITION_BYTES = 2**20, 3

# So many numbers are decoded at a time before they are copied to the array of their column.
COPIED_ROWS = 2**15

# When files are read whole, ids that are strings stay positions in the dictionary of their row
# group.
POSITIONS = pa.dictionary(pa.int32(), pa.large_string())


class _RowGroups(NamedTuple):
    """Some row groups of one file, which are read together; `first` is the number of their first
    row in all files."""

    file: int
    numbers: tuple[int, ...]
    first: int
    n_rows: int


def whole_table(
    source: Source, names: Sequence[str], ids: Collection[str], together_rows: int
) -> Table:
    """Read some columns of all files in several threads, one column of some row groups at a time.

    In the columns `ids`, strings that parquet stores as dictionaries become positions in a
    dictionary. An id is then looked up once in each row group instead of once in each row.
    Integers get as narrow as 16 bits. Row groups of up to `together_rows` rows are read together.
    """
    most, groups, first = rows_at_a_time(together_rows), [], 0
    for file, fragment in enumerate(source.fragments):
        numbers: list[int] = []
        n_rows, last = 0, fragment.metadata.num_row_groups - 1
        for number in range(last + 1):
            numbers.append(number)
            n_rows += fragment.metadata.row_group(number).num_rows
            if n_rows >= most or (n_rows and number == last):
                groups.append(_RowGroups(file, tuple(numbers), first, n_rows))
                numbers, first, n_rows = [], first + n_rows, 0
    schemas = [(one.metadata.schema, one.metadata.num_columns) for one in source.fragments]
    places = [{schema.column(i).path: i for i in range(n)} for schema, n in schemas]
    columns = {name: _WholeColumn(source, name, name in ids, places) for name in names}
    work = [(group, name) for group in groups for name in names]
    chunks = each(lambda one: columns[one[1]].read(one[0]), work)
    found = dict(zip(work, chunks, strict=True))
    joined = {}
    for name, column in columns.items():
        joined[name] = column.joined({group: found.pop((group, name)) for group in groups})
    return pa.table(joined)


class _WholeColumn:
    """One column of all files. Most columns are written to one array as they are read, so that they
    are in memory only once."""

    def __init__(
        self, source: Source, name: str, is_id: bool, places: Sequence[Mapping[str, int]]
    ) -> None:
        self.source, self.name, self.places = source, name, places
        self.kind, self.there = source.schema.field(name).type, source.in_files(name)
        self.array: ndarray | None = None
        if name in source.folder_columns:
            return
        stored = [
            fragment.metadata.row_group(number).column(of_file[self.there])
            for fragment, of_file in zip(source.fragments, places, strict=True)
            if self.there in of_file
            for number in range(fragment.metadata.num_row_groups)
        ]
        if self.kind in (pa.int32(), pa.int64(), pa.float64()):
            statistics = [one.statistics for one in stored]
            if not any(one is not None and one.null_count for one in statistics):
                dtype = self.kind.to_pandas_dtype()
                if is_id and pa.types.is_integer(self.kind):
                    dtype = narrowest(statistics, dtype)
                self.array = np.empty(source.n_rows, dtype)
        elif is_id and self.kind in TEXTS:
            # Writers give up a dictionary that grows beyond about 1 MB, and then store the strings
            # one by one. Positions take up to three bytes per row, so a larger column must hold
            # strings.
            beyond = sum(max(one.total_uncompressed_size - DICTIONARY_BYTES, 0) for one in stored)
            if beyond <= POSITION_BYTES * source.n_rows:
                self.array = np.empty(source.n_rows, np.int32)

    def read(self, group: _RowGroups) -> list[pa.Array] | None:
        """Read some row groups, into the array if there is one; None if that cannot hold them."""
        import pyarrow.parquet as pq

        fragment, array, there = self.source.fragments[group.file], self.array, self.there
        known, stored = self.source.stored(fragment, [self.name])
        if not stored:
            return [pa.repeat(pa.scalar(known[self.name], self.kind), group.n_rows)]
        # Positions in a dictionary are read only where there is an array for them.
        texts = [there] if array is not None and self.kind in TEXTS else []
        if is_list(self.kind) and self.kind.value_type in TEXTS:
            texts = [path for path in self.places[group.file] if path.startswith(f"{there}.")]
        how = {"columns": [there], "use_threads": False}
        with pq.ParquetFile(
            fragment.path, metadata=fragment.metadata, read_dictionary=texts, pre_buffer=True
        ) as file:
            if array is not None and not texts:
                batches = file.iter_batches(COPIED_ROWS, row_groups=group.numbers, **how)
                own = array[group.first : group.first + group.n_rows]
                return self._copied((batch.column(0) for batch in batches), own)
            try:
                column = file.read_row_groups(group.numbers, **how)[there]
            except pa.ArrowNotImplementedError:
                # There are several dictionaries, which Arrow does not join in lists.
                column = pq.ParquetFile(fragment.path).read_row_groups(group.numbers, **how)[there]
        chunks: list[pa.Array] = column.chunks
        if array is None:
            return chunks
        first = group.first
        for place, chunk in enumerate(chunks):
            in_dictionary = pa.types.is_dictionary(chunk.type) and not chunk.null_count
            if not in_dictionary or chunk.dictionary.null_count:
                return None
            rows = array[first : first + len(chunk)]
            rows[:] = chunk.indices.to_numpy(zero_copy_only=False)
            dictionary = chunk.dictionary.cast(POSITIONS.value_type)
            chunks[place] = pa.DictionaryArray.from_arrays(pa.array(rows), dictionary)
            first += len(chunk)
        return chunks

    def _copied(self, columns: Iterable[pa.Array], own: ndarray) -> list[pa.Array] | None:
        """Copy numbers to the rows of an array, a few at a time; None if one is null or does not
        fit."""
        narrow, first = pa.from_numpy_dtype(own.dtype), 0
        for column in columns:
            if column.null_count or column.type != self.kind:
                return None
            try:
                own[first : first + len(column)] = column.cast(narrow).to_numpy()
            except pa.ArrowInvalid:  # a number is beyond what the statistics of the file say
                return None
            first += len(column)
        return [pa.array(own)]

    def joined(self, found: Mapping[_RowGroups, list[pa.Array] | None]) -> pa.ChunkedArray:
        """Join what was read, in the same type in all files; what the array cannot hold is read
        again."""
        source, in_array = self.source, self.array is not None and None not in found.values()
        array, self.array = self.array, None
        chunks = [
            chunk
            for group, read in found.items()
            for chunk in (self.read(group) if read is None else read) or ()
        ]
        if array is not None and in_array and chunks:
            for chunk in chunks:
                source.note(chunk, self.name)
            whole = _one_dictionary(chunks, array) if self.kind in TEXTS else pa.array(array)
            return pa.chunked_array([whole])
        if is_list(self.kind) and len({chunk.type for chunk in chunks}) == 1:
            return pa.chunked_array(chunks)  # of positions, where the items are texts
        return pa.chunked_array([source.plain(one, self.name) for one in chunks], self.kind)


def narrowest(statistics: Sequence[Any], own: Any) -> Any:
    """Return the narrowest dtype for the smallest and the largest integers that the files name;
    None stands for row groups without integers."""
    if not all(one is not None and one.has_min_max for one in statistics):
        return own
    edges = [edge for one in statistics for edge in (one.min, one.max) if edge is not None]
    kinds = (
        kind
        for kind in (np.int16, np.int32)
        if all(np.iinfo(kind).min <= edge <= np.iinfo(kind).max for edge in edges)
    )
    return next(kinds, own)


def _one_dictionary(chunks: list[pa.DictionaryArray], array: ndarray) -> pa.DictionaryArray:
    """Replace positions in several dictionaries, which follow one another in the array, by
    positions in a joint one."""
    joint = pa.chunked_array([chunk.dictionary for chunk in chunks]).dictionary_encode()
    joint = joint.unify_dictionaries().combine_chunks()
    place = joint.indices.to_numpy()
    rows = np.cumsum([0, *map(len, chunks)])
    entries = np.cumsum([0, *(len(chunk.dictionary) for chunk in chunks)])

    def replace(number: int) -> None:
        own = array[rows[number] : rows[number + 1]]
        own[:] = place[entries[number] : entries[number + 1]].take(own)

    each(replace, range(len(chunks)))
    return pa.DictionaryArray.from_arrays(pa.array(array), joint.dictionary)
