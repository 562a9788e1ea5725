"""Parquet files that together hold one frame.

Contract: `Source` reads the needed columns of some files in the order of their rows, in batches.
`Source.as_pandas` gives columns the dtypes that pandas would give them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError, kind_of
from ..evaluation.storage import local_path, plain_path
from ..inputs.data_files import cast, data_files, folder_columns, pandas_metadata, unified
from ..inputs.door import NamedFiles, new_names
from ..inputs.frames import is_view
from ..inputs.machine import Sizes, n_threads

# What marks a file whose columns become Arrow's dtypes in pandas.
OF_ARROW = {b"recdf_rows": b"of Arrow"}
LEAST_ROWS = 2**10  # are read at a time; a row may hold a long list


class Source:
    """Parquet files that together hold one frame.

    `schema` has the type of each column. For a dictionary column this is the type of its values.
    `categories` has the values of the dictionaries that were read so far. `null` has the columns in
    which a null was read. `periods` has the frequency of each column of pandas periods, which are
    stored as integers.
    """

    def __init__(self, path: Any, role: str, read_rows: int = Sizes.read_rows) -> None:
        import pyarrow.dataset as ds  # imported here, to keep the import of recdf fast
        from pyarrow.fs import LocalFileSystem

        path, names = path if isinstance(path, NamedFiles) else (path, {})
        self.role, self.read_rows = role, read_rows
        self.files = _files(path, role)
        layout, system = ds.ParquetFileFormat(), LocalFileSystem()
        try:
            self.fragments = [layout.make_fragment(file, system) for file in self.files]
            self.n_rows = sum(fragment.metadata.num_rows for fragment in self.fragments)
            physical = [fragment.physical_schema for fragment in self.fragments]
        except (pa.ArrowException, OSError) as error:
            said = "files of other formats are read by rd.read, and by recdf evaluate --stream"
            raise DataError(f"{role}: {path} cannot be read as parquet: {error}; {said}") from error
        if not physical:
            raise DataError(f"{role}: {path} holds no parquet file")
        named = folder_columns(self.files)
        self._names = dict(
            names
        )  # the name in the files of each column that is called otherwise there
        if names:
            there = list(
                dict.fromkeys([*(name for schema in physical for name in schema.names), *named])
            )
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
            for i, one in enumerate(bare)
            if not i or not one.equals(bare[i - 1], check_metadata=True)
        ]
        self.schema, self._odd = unified([*map(plain_schema, kinds), plain_schema(folders)])
        self.periods = _periods(kinds, role)
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

    def fields(self, names: Sequence[str]) -> pa.Schema:
        """Return the schema of some columns."""
        return pa.schema([self.schema.field(name) for name in names])

    def batches(self, names: Sequence[str], n_rows: int) -> Iterator[pa.Table]:
        """Yield tables of about `n_rows` rows with some columns."""
        held: list[pa.Table] = []
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

    def _pieces(self, names: Sequence[str], read_rows: int) -> Iterator[pa.Table]:
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
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        return cast(column, self.schema.field(name).type, name, self.role)

    def _add_categories(self, name: str, values: pa.Array) -> None:
        own = values.cast(self.schema.field(name).type)
        chunks = [self.categories[name], own] if name in self.categories else [own]
        self.categories[name] = pa.chunked_array(chunks).unique()

    def as_pandas(self, table: pa.Table) -> pd.DataFrame:
        """Return columns in the dtypes that pandas would give them if it read all files at once."""
        found = {}
        for name in table.column_names:
            kind, column = self.files_schema.field(name).type, labels_as(table[name], None)
            if pa.types.is_dictionary(kind):
                values = self.categories.get(name, pa.array([], self.schema.field(name).type))
                places = pc.index_in(column, values).combine_chunks()
                column = pa.chunked_array(
                    [pa.DictionaryArray.from_arrays(places, values, ordered=kind.ordered)]
                )
            if name in self.null:  # another row has a null: pandas must see one too (removed below)
                column = pa.chunked_array([*column.chunks, pa.nulls(1, column.type)])
            plain = pa.table({name: column}).replace_schema_metadata(self._metadata_of(name))
            try:
                frame = frame_of_arrow(plain) if self._of_arrow else plain.to_pandas()
            except (
                TypeError,
                ValueError,
            ):  # pandas wrote a dtype, such as an Arrow dictionary, that it cannot read
                frame = plain.replace_schema_metadata().to_pandas()
            found[name] = frame[name].iloc[: len(table)]
        return pd.DataFrame(found)

    def _metadata_of(self, name: str) -> dict[bytes, bytes]:
        """Return what pandas wrote of one column."""
        own = [column for column in self._pandas["columns"] if column["name"] == name]
        return {b"pandas": json.dumps({**self._pandas, "columns": own}).encode()}


def _renamed(schema: pa.Schema, names: Mapping[str, str]) -> pa.Schema:
    """Return a schema with other names, also where pandas wrote them down."""
    metadata = dict(schema.metadata or {})
    if b"pandas" in metadata:
        of_pandas = pandas_metadata(metadata)
        columns = [
            one | {"name": names.get(one["name"], one["name"])} for one in of_pandas["columns"]
        ]
        metadata[b"pandas"] = json.dumps(of_pandas | {"columns": columns}).encode()
    return pa.schema([field.with_name(names[field.name]) for field in schema], metadata)


def frame_of_arrow(table: pa.Table) -> pd.DataFrame:
    """Return a frame that shares the table's memory and keeps integers beside nulls exact."""
    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    return frame


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


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema without metadata. Dictionaries and extensions are replaced by the types of
    their values."""

    def of_values(kind: pa.DataType) -> pa.DataType:
        kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        if is_view(kind):
            return pa.large_string() if str(kind) == "string_view" else pa.large_binary()
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    return pa.schema([(field.name, of_values(field.type)) for field in schema])


def _periods(schemas: Sequence[pa.Schema], role: str) -> dict[str, str]:
    """Return the frequency of each column of periods. Raise if it differs between files."""
    found: dict[str, str] = {}
    kinds_of: dict[str, set[str | None]] = {}
    for field in (field for schema in schemas for field in schema):
        kinds_of.setdefault(field.name, set()).add(_frequency(field))
    for name, here in kinds_of.items():
        if len(here) > 1:
            kinds = " and ".join(
                sorted("other values" if one is None else f"period[{one}]" for one in here)
            )
            raise DataError(
                f"{role}: the files have columns of different kinds: {name!r} holds {kinds}"
            )
        (frequency,) = here
        if frequency is not None:
            found[name] = frequency
    return found


def _frequency(field: pa.Field) -> str | None:
    """Return the frequency of a column of periods, else None. Arrow knows their type only if pandas
    registered it."""
    kind, metadata = field.type, field.metadata or {}
    if isinstance(kind, pa.BaseExtensionType):
        return str(kind.freq) if kind.extension_name == "pandas.period" else None
    if metadata.get(b"ARROW:extension:name") != b"pandas.period":
        return None
    return str(json.loads(metadata[b"ARROW:extension:metadata"])["freq"])


def labels_as(labels: Any, kind: pa.DataType | None) -> Any:
    """Return labels without a dictionary, in the type that all parts share. With None they keep
    their own type."""
    if pa.types.is_dictionary(labels.type):
        labels = labels.cast(labels.type.value_type)
    return labels if kind is None else labels.cast(kind)
