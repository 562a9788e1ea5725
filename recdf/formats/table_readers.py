"""Read one file of a format to Arrow tables, as a whole or piece by piece.

Contract: a reader takes an `InputFile` and the size of a piece in bytes (None: one table), and
yields tables. Ids are text where the format says so. In formats whose columns have no types (CSV),
every column is text.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError, MissingExtraError
from ..inputs.frames import from_dict
from ..inputs.list_cells import split_texts
from ..inputs.sorting import run_of

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
# The first bytes of a file, which are enough to tell its format.
HEAD_BYTES = 2**16
LONG_TEXT, FLOAT = pa.large_string(), pa.float64()
TOO_LARGE = "is larger than any number that can be stored"


@dataclass(frozen=True)
class InputFile:
    """A file, or the folder of a table, with the fsspec file system of an address."""

    path: str
    system: Any = None

    @cached_property
    def ending(self) -> str:
        """The ending of the file's name in lower case, without that of its compression."""
        endings = [ending.lower() for ending in Path(self.path).suffixes]
        while endings and endings[-1] in COMPRESSIONS:
            endings.pop()
        return endings[-1] if endings else ""

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open the file for bytes, decompressed."""
        compression = next(
            (how for end, how in COMPRESSIONS.items() if self.path.lower().endswith(end)), None
        )
        with ExitStack() as stack:
            file = (
                self.path
                if self.system is None
                else stack.enter_context(self.system.open(self.path, "rb"))
            )
            yield stack.enter_context(pa.input_stream(file, compression=compression))

    @cached_property
    def head(self) -> bytes:
        if self.is_folder:
            return b""
        with self.opened() as stream:
            return bytes(stream.read(HEAD_BYTES))

    @cached_property
    def lines(self) -> list[str]:
        """The first lines that are not blank, each of them whole."""
        lines = self.head.decode("utf-8-sig", "replace").splitlines()
        whole = lines[:-1] if len(self.head) == HEAD_BYTES and len(lines) > 1 else lines
        return [line for line in whole if line.strip()]

    @cached_property
    def is_folder(self) -> bool:
        return self.system is None and os.path.isdir(self.path)

    @cached_property
    def inside(self) -> list[str]:
        """The names of files and folders in this folder."""
        return sorted(os.listdir(self.path)) if self.is_folder else []

    @cached_property
    def schema(self) -> Any:
        """The schema of a parquet file of this machine, with no columns if it is none."""
        from pyarrow import parquet  # costs import time that other calls need not pay

        try:
            return parquet.read_schema(self.path) if self.head[:4] == b"PAR1" else pa.schema([])
        except (OSError, pa.ArrowException):
            return pa.schema([])

    def cells(self, separator: str) -> list[str]:
        """The fields of the first line."""
        return [cell.strip('" ') for cell in self.lines[0].split(separator)] if self.lines else []


TableReader = Callable[[InputFile, int | None], Iterator[Any]]


def delimited(
    separator: str, names: Sequence[str] | None = None, quoted: bool = True
) -> TableReader:
    """Return a reader of text fields. Without `names` the first line has those of the columns.

    Of `names`, those that begin with an underscore are of fields that are not read.
    """

    def read_fields(file: InputFile, piece: int | None) -> Iterator[Any]:
        from pyarrow import csv  # costs import time that other calls need not pay

        columns = names
        quote: Any = '"' if quoted else False
        layout = csv.ParseOptions(delimiter=separator, newlines_in_values=quoted, quote_char=quote)
        if columns is None:
            with file.opened() as stream, csv.open_csv(stream, parse_options=layout) as reader:
                columns = reader.schema.names
        if len(set(columns)) < len(columns):
            raise DataError(f"{file.path} has two columns of one name: {', '.join(columns)}")
        wanted = [name for name in columns if names is None or not name.startswith("_")]
        types = csv.ConvertOptions(
            column_types=dict.fromkeys(columns, LONG_TEXT), include_columns=wanted
        )
        rows = csv.ReadOptions(column_names=names, block_size=piece)
        with file.opened() as raw:
            stream = raw if names is None else pa.TransformInputStream(raw, _OneSpace())
            if piece is None:
                data = pa.BufferReader(stream.read())
                yield csv.read_csv(data, rows, layout, types)
            else:
                with csv.open_csv(stream, rows, layout, types) as reader:
                    yield from _pieces(reader.schema, reader, piece)

    return read_fields


class _OneSpace:
    """Make any white space between the fields of a line one space, in the parts in which a file is
    read."""

    def __init__(self) -> None:
        self.rest, self.started = b"", False

    def __call__(self, data: Any) -> bytes:
        text = self.rest + bytes(data)
        kept = text.rstrip() if data else text
        self.rest = text[len(kept) :]
        found = kept.replace(b"\t", b" ").replace(b"\r", b"")
        while b"  " in found:
            found = found.replace(b"  ", b" ")
        found = found.replace(b" \n", b"\n").replace(b"\n ", b"\n")
        found = found if self.started else found.lstrip()
        self.started |= bool(found)
        return found


def beyond_numbers(text: Any, found: Any) -> int:
    """Return the first row with a number such as 1e400, and not inf, or -1."""
    if not pa.types.is_floating(found.type):
        return -1
    row: int = pc.index(
        pc.and_(pc.is_inf(found), pc.match_substring_regex(text, "[0-9]")), True
    ).as_py()
    return row


def with_number(reader: TableReader, name: str) -> TableReader:
    """Return a reader of the same text, in which one column holds numbers."""

    def read_number(file: InputFile, piece: int | None) -> Iterator[Any]:
        for table in reader(file, piece):
            yield table.set_column(table.column_names.index(name), name, _floats(file, table[name]))

    return read_number


def _floats(file: InputFile, text: Any) -> Any:
    found = text.cast(FLOAT)
    if (beyond := beyond_numbers(text, found)) >= 0:
        raise DataError(f"{file.path}: {text[beyond]} {TOO_LARGE}")
    return found


def atomic(file: InputFile, piece: int | None) -> Iterator[Any]:
    """Read an atomic file of RecBole, whose header has the type of each column: user_id:token."""
    kinds = {
        "token": LONG_TEXT,
        "float": FLOAT,
        "token_seq": pa.list_(LONG_TEXT),
        "float_seq": pa.list_(FLOAT),
    }
    for table in delimited("\t", quoted=False)(file, piece):
        columns = {}
        for name in table.column_names:
            own, _, kind = name.rpartition(":")
            if kind not in kinds:
                known = f"a type behind each name, as in user_id:token ({', '.join(kinds)})"
                raise DataError(f"{file.path}: the header has {name!r}; expected {known}")
            values = pc.split_pattern(table[name], " ") if kind.endswith("_seq") else table[name]
            empty = pc.equal(table[name], "")
            values = pc.if_else(empty, pa.scalar(None, values.type), values)
            columns[own] = _floats(file, values) if kind == "float" else values.cast(kinds[kind])
        yield pa.table(columns)


def lists_of_text(file: InputFile, piece: int | None) -> Iterator[Any]:
    """Read a submission of Kaggle: an id, and its items in one text, best first."""
    for table in delimited(",")(file, piece):
        if table.num_columns != 2:
            raise DataError(
                f"{file.path} has {table.num_columns} columns; a submission has two: an id, and "
                "its items"
            )
        length, items = split_texts(table[1].combine_chunks(), " ")
        yield pa.table({"user_id": table[0].take(run_of(length)), "item_id": items})


def items_of_lists(file: InputFile, piece: int | None) -> Iterator[Any]:
    """Read an ItemListCollection of LensKit: the keys of a list, and its items as a list of
    structs."""
    for table in parquet_tables(file, piece):
        lists = table["items"].combine_chunks()
        rows = table.drop_columns(["items"]).take(pc.list_parent_indices(lists))
        rows = rows.append_column("items", pc.list_flatten(lists)).flatten()
        yield rows.rename_columns([name.removeprefix("items.") for name in rows.column_names])


def parquet_tables(file: InputFile, piece: int | None) -> Iterator[Any]:
    from pyarrow import parquet  # costs import time that other calls need not pay

    with file.opened() as stream:
        data = parquet.ParquetFile(stream)
        yield from (
            [data.read()]
            if piece is None
            else _pieces(data.schema_arrow, data.iter_batches(), piece)
        )


def arrow_tables(file: InputFile, piece: int | None) -> Iterator[Any]:
    """Read an Arrow file, or an Arrow stream."""
    with file.opened() as stream:
        if file.head.startswith(b"ARROW1"):
            reader = pa.ipc.open_file(
                stream if stream.seekable() else pa.BufferReader(stream.read())
            )
            batches = map(reader.get_batch, range(reader.num_record_batches))
        else:
            batches = reader = pa.ipc.open_stream(stream)
        yield from _pieces(reader.schema, batches, piece)


def _pieces(schema: Any, batches: Iterator[Any], piece: int | None) -> Iterator[Any]:
    """Give one table of all batches, or an empty one and one of each batch."""
    if piece is None:
        yield pa.Table.from_batches(batches, schema)
    else:
        yield schema.empty_table()
        yield from map(pa.Table.from_batches, ([batch] for batch in batches))


def json_lines(file: InputFile, piece: int | None) -> Iterator[Any]:
    """Read one object per line; text that looks like a time stays text."""
    from pyarrow import json as arrow_json  # costs import time that other calls need not pay

    with file.opened() as raw, io.BufferedReader(raw) as stream:
        while block := b"".join(stream.readlines(piece or -1)):
            if not block.strip():
                continue
            size = arrow_json.ReadOptions(block_size=min(len(block) + 2, 2**31 - 1))
            table = arrow_json.read_json(pa.BufferReader(block), size)
            if times := [
                (one.name, LONG_TEXT) for one in table.schema if pa.types.is_timestamp(one.type)
            ]:
                as_text = arrow_json.ParseOptions(explicit_schema=pa.schema(times))
                table = arrow_json.read_json(pa.BufferReader(block), size, as_text)
            yield table


def json_lists(value_name: str) -> TableReader:
    """Return a reader of {query: {document: number}}, also within one subset and one split, as MTEB
    writes it."""

    def read_lists(file: InputFile, piece: int | None) -> Iterator[Any]:
        with file.opened() as stream:
            found = json.loads(stream.read())
        found.pop("mteb_model_meta", None)
        while any(isinstance(one, dict) for items in found.values() for one in items.values()):
            if len(found) > 1:
                raise DataError(
                    f"{file.path} holds the lists of {', '.join(found)}; expected those of one"
                )
            (found,) = found.values()
        yield pa.Table.from_pandas(from_dict(found, value_name=value_name), preserve_index=False)

    return read_lists


def of_member(reader: TableReader, member: Callable[[InputFile], str]) -> TableReader:
    """Return a reader of a folder that reads one file in it."""
    return lambda file, piece: reader(
        InputFile(os.path.join(file.path, member(file)), file.system), piece
    )


def _library(name: str, extra: str, file: InputFile) -> Any:
    """Import the library that reads a table."""
    try:
        return importlib.import_module(name)
    except ImportError:
        said = (
            f"{file.path}: this table needs the package {name.partition('.')[0]}: pip install "
            f"'recdf[{extra}]'"
        )
        raise MissingExtraError(said) from None


def delta_tables(file: InputFile, piece: int | None) -> Iterator[Any]:
    data = _library("deltalake", "delta", file).DeltaTable(file.path).to_pyarrow_dataset()
    yield from _pieces(data.schema, data.to_batches(), piece)


def iceberg_tables(file: InputFile, piece: int | None) -> Iterator[Any]:
    library = _library("pyiceberg.table", "iceberg", file)
    # The catalog knows the present state of a table. Without it, that is the one of the highest
    # number.
    states = Path(file.path).glob("metadata/*.metadata.json")
    last = max(states, key=lambda one: int((re.findall(r"\d+", one.name) or ["0"])[0]))
    reader = library.StaticTable.from_metadata(str(last)).scan().to_arrow_batch_reader()
    yield from _pieces(reader.schema, reader, piece)
