"""Parquet files that together hold one frame.

Contract: `Source` reads the needed columns of some files in the order of their rows, in batches.
`Source.as_pandas` gives columns the dtypes that pandas would give them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas import DataFrame
from pyarrow import Array, Field, Schema, Table

from ..errors import DataError, kind_of
from ..evaluation.storage import local_path, plain_path
from ..inputs.data_files import cast, data_files, folder_columns, pandas_metadata, unified
from ..inputs.door import NamedFiles, new_names
from ..inputs.frames import EXACT, VIEWS, without_dictionary
from ..inputs.ids import TEXTS, exact_nulls
from ..inputs.lazy_frames import refuse_twice
from ..inputs.list_cells import is_list
from ..inputs.machine import each, n_threads, sizes
from ..inputs.options import Names

# What marks a file whose columns become Arrow's dtypes in pandas.
OF_ARROW = {b"recdf_rows": b"of Arrow"}
LEAST_ROWS = 2**10  # are read at a time; a row may hold a long list


class Source:
    """Parquet files that together hold one frame.

    `schema` has the type of each column. For a dictionary column this is the type of its values.
    `categories` has the values of the dictionaries that were read so far. `null` has the columns in
    which a null was read, and `large` those with integers that floats cannot tell apart. `periods`
    has the frequency of each column of pandas periods, which are stored as integers. `uuids` are
    the columns of UUIDs, which are stored as bytes.
    """

    def __init__(self, path: Any, role: str) -> None:
        import pyarrow.dataset as ds  # imported here, to keep the import of recdf fast
        from pyarrow.fs import LocalFileSystem

        path, names = path if isinstance(path, NamedFiles) else (path, {})
        self.role = role
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
        held: dict[str, set[str]] = {}
        for one in (field for schema in kinds for field in schema):
            held.setdefault(one.name, set()).add(_stored_for(one))
        self.periods = _periods(held, role)
        self.uuids = {name for name, found in held.items() if found == {"arrow.uuid"}}
        self.categories: dict[str, Array] = {}
        self._last: dict[str, Array] = {}
        self.null: set[str] = set()
        self.large: set[str] = set()
        for name, values in named.items():
            if name not in self._odd:
                self.categories[name] = values.unique().drop_null().cast(self.kind(name))

    @property
    def amounts(self) -> dict[str, int]:
        """How many files and rows there are, for the spec."""
        return {"files": len(self.files), "rows": self.n_rows}

    def fields(self, names: Iterable[str]) -> Schema:
        """Return the schema of some columns."""
        return pa.schema([self.schema.field(name) for name in names])

    def kind(self, name: str) -> pa.DataType:
        """Return the type that a column has over all files."""
        return self.schema.field(name).type

    def batches(self, names: Names, n_rows: int) -> Iterator[Table]:
        """Yield tables of about `n_rows` rows with some columns."""
        held: list[Table] = []
        for piece in self._pieces(names, min(sizes().read_rows, max(n_rows, LEAST_ROWS))):
            held.append(piece)
            if sum(map(len, held)) >= n_rows:
                yield pa.concat_tables(held).combine_chunks()
                held = []
        if held:
            yield pa.concat_tables(held).combine_chunks()

    def head(self, names: Names, n: int) -> Table:
        """Return `n` rows of some columns, or more."""
        return next(self.batches(names, n) if names else iter(()), self.fields(names).empty_table())

    def row_bytes(self, names: Names) -> float:
        """Estimate how many bytes a row takes in memory, the strings from the first rows. The
        result is never 0."""
        fixed = 0.0
        names = list(names)
        for field in self.fields(names):
            if pa.types.is_primitive(field.type):
                fixed += field.type.bit_width / 8
                names.remove(field.name)
        some = self.head(names, 1)
        return 8 + fixed + some.nbytes / max(len(some), 1)

    def _pieces(self, names: Names, read_rows: int) -> Iterator[Table]:
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
                        name: pa.repeat(pa.scalar(known[name], self.kind(name)), len(batch))
                        if name in known
                        else self.plain(batch.column(self.in_files(name)), name)
                        for name in names
                    }
                    yield pa.table(columns)

    def stored(self, fragment: Any, names: Names) -> tuple[dict[str, Any], list[str]]:
        """Return the columns (and values) that the names of a file's folders give, and the columns
        that it stores."""
        stored, known = self._of_file[fragment.path]
        refuse_twice(fragment.physical_schema.names, self.role, map(self.in_files, names))
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

    # ------------------------------------------------------------------------------------------
    # types and categories

    def note(self, column: Array, name: str) -> None:
        """Note whether the column has nulls, and large integers. If it has categories in some file,
        note its values as categories."""
        if column.null_count:
            self.null.add(name)
        if column.type in (pa.int64(), pa.uint64()):
            edges = [edge.as_py() or 0 for edge in pc.min_max(column).values()]
            self.large |= {name} if max(map(abs, edges)) > EXACT else set()
        if not pa.types.is_dictionary(self.files_schema.field(name).type):
            return
        if not pa.types.is_dictionary(column.type):
            self._add_categories(name, column.unique().drop_null())
        elif name not in self._last or not self._last[name].equals(column.dictionary):
            self._last[name] = column.dictionary
            self._add_categories(name, column.dictionary)

    def plain(self, column: Array, name: str) -> Array:
        """Return a column without its dictionary, in the type that it has over all files."""
        self.note(column, name)
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        return cast(without_dictionary(column), self.kind(name), name, self.role)

    def _add_categories(self, name: str, values: Array) -> None:
        own = values.cast(self.kind(name))
        chunks = [self.categories[name], own] if name in self.categories else [own]
        self.categories[name] = pa.chunked_array(chunks).unique()

    def as_pandas(self, table: Table) -> DataFrame:
        """Return columns in the dtypes that pandas would give them if it read all files at once."""
        found = {}
        for name in table.column_names:
            kind = self.files_schema.field(name).type
            column = without_dictionary(table[name])
            if pa.types.is_dictionary(kind):
                values = self.categories.get(name, pa.array([], self.kind(name)))
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
                NotImplementedError,
            ):  # pandas wrote a dtype, such as bytes of 16, that it cannot read
                frame = plain.replace_schema_metadata().to_pandas()
            values = frame[name]
            if name in self.large and values.dtype == "float64":
                values = exact_nulls(column)
            found[name] = values.iloc[: len(table)]
        return DataFrame(found, index=range(len(table)))


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
        kind = VIEWS.get(str(kind), kind)
        fields[field.name] = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.schema(fields)


def _stored_for(field: Field) -> str:
    """Return what a column holds that Arrow stores as something else, such as period[M] or
    arrow.uuid. Arrow knows the type of periods only if pandas registered it."""
    kind = field.type
    metadata = field.metadata or {}
    if isinstance(kind, pa.BaseExtensionType):
        is_period = kind.extension_name == "pandas.period"
        return f"period[{kind.freq}]" if is_period else kind.extension_name
    if metadata.get(b"ARROW:extension:name") != b"pandas.period":
        return ""
    return f"period[{json.loads(metadata[b'ARROW:extension:metadata'])['freq']}]"


def _periods(found: Mapping[str, set[str]], role: str) -> dict[str, str]:
    """Return the frequency of each column of periods. Raise if it differs between files."""
    periods = {}
    for name, here in found.items():
        some = {one if one.startswith("period[") else "other values" for one in here}
        if len(some) > 1:
            raise DataError(
                f"{role}: the files have columns of different kinds: {name!r} holds "
                f"{' and '.join(sorted(some))}"
            )
        (one,) = some
        if one != "other values":
            periods[name] = one[len("period[") : -1]
    return periods


# -------------------------------------------------------------------------------------------
# files that are read whole

# Most writers of parquet give up a dictionary at DICTIONARY_BYTES. A position in it takes up to
# POSITION_BYTES.
DICTIONARY_BYTES, POSITION_BYTES = 2**20, 3


def whole_table(source: Source, names: Names, ids: Collection[str]) -> Table:
    """Read some columns of all files, by several threads.

    Ids that are strings stay positions in dictionaries, and ids that are integers become as narrow
    as possible, which saves memory.
    """

    def read(fragment: Any) -> dict[str, list[Array]]:
        known, stored = source.stored(fragment, names)
        n_rows = fragment.metadata.num_rows
        found = {
            name: [pa.repeat(pa.scalar(value, source.kind(name)), n_rows)]
            for name, value in known.items()
        }
        table = _read(source, fragment, stored, ids)
        return found | {name: table[name].chunks for name in stored}

    of_files = each(read, source.fragments)
    joined = {}
    for name in names:  # what was read of a column is let go before the next one is joined
        chunks = [chunk for columns in of_files for chunk in columns.pop(name)]
        joined[name] = _joined(source, name, chunks, name in ids)
    return pa.table(joined)


def _read(source: Source, fragment: Any, names: Names, ids: Collection[str]) -> Table:
    """Read some columns that a file stores."""
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    metadata = fragment.metadata
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    texts: list[str] = []
    for name in names:
        kind = source.kind(name)
        there = source.in_files(name)
        if name in ids and kind in TEXTS:
            # Writers give up a dictionary that grows beyond about 1 MB, and then store the strings
            # one by one. Positions take up to three bytes per row, so a larger column must hold
            # strings.
            in_bytes = [one.column(places[there]).total_uncompressed_size for one in groups]
            beyond = sum(max(one - DICTIONARY_BYTES, 0) for one in in_bytes)
            texts += [there] if beyond <= POSITION_BYTES * metadata.num_rows else []
        elif is_list(kind) and kind.value_type in TEXTS:
            texts += [path for path in places if path.startswith(f"{there}.")]
    columns = {name: ds.field(source.in_files(name)) for name in names}

    def table(dictionaries: list[str]) -> Table:
        how = ds.ParquetReadOptions(dictionary_columns=dictionaries)
        file = ds.ParquetFileFormat(how).make_fragment(fragment.path, LocalFileSystem())
        # Of a row group in one piece, there are fewer dictionaries to join.
        return file.to_table(columns=columns, batch_size=2**20, use_threads=n_threads() > 1)

    try:
        return table(texts)
    except pa.ArrowNotImplementedError:
        return table([])  # there are several dictionaries, which Arrow does not join in lists


def _joined(source: Source, name: str, chunks: list[Array], is_id: bool) -> pa.ChunkedArray:
    """Join what was read of a column, in the same type in all files."""
    kind = source.kind(name)
    in_dictionary = all(pa.types.is_dictionary(chunk.type) for chunk in chunks)
    as_read = is_list(kind) or (is_id and kind in TEXTS and in_dictionary)
    if as_read and len({chunk.type for chunk in chunks}) == 1:
        for chunk in chunks:
            source.note(chunk, name)
        return pa.chunked_array(chunks).unify_dictionaries()
    column = pa.chunked_array([source.plain(one, name) for one in chunks], kind)
    if is_id:
        column = narrowed(pa.table({name: column}), [name])[name]
    primitive = pa.types.is_primitive(column.type) and len(column)
    return pa.chunked_array([column.combine_chunks()]) if primitive else column


def narrowed(table: Table, names: Collection[str] | None = None) -> Table:
    """Return the table with integers in the narrowest type that holds them.

    A shuffle writes every byte, sends it and reads it again; `by_role` gives the columns their
    types back. Where `names` are given, as for files on one machine, only these columns are
    narrowed, to 32 bits or more, and stay so: threads measure such columns fastest.
    """
    for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if not pa.types.is_integer(column.type) or (names is not None and name not in names):
            continue
        low, high = (edge.as_py() for edge in pc.min_max(column).values())
        if low is not None:
            signed = min(low, -high - 1)  # a signed type that holds it holds both edges
            kind = np.min_scalar_type(high if low >= 0 and names is None else signed)
            kind = kind if names is None else np.promote_types(kind, np.int32)
            if kind.itemsize * 8 < column.type.bit_width:
                narrow = column.cast(pa.from_numpy_dtype(kind), safe=False)
                table = table.set_column(place, name, narrow)
    return table
