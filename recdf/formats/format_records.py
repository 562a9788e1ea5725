"""The formats of files, as records, and their readers. To add a format, add a record.

Contract: a record says how a file is recognised, how it is read, and what its columns are called.
The pages, the messages and the command follow from the records.

A reader takes an `InputFile`, and yields one table or several.
Ids are text where the format says so. In formats whose columns have no types (CSV), every column is
text.
"""

from __future__ import annotations

import codecs
import importlib
import io
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError, MissingExtraError, OptionError, closest
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
    """A file, or the folder of a table, with the fsspec file system of an address.

    piece : about how many bytes of a text are read at a time; None if it is read as a whole.
    """

    path: str
    system: Any = None
    piece: int | None = None

    @cached_property
    def ending(self) -> str:
        """The ending of the file's name in lower case, without that of its compression."""
        endings = (ending.lower() for ending in reversed(Path(self.path).suffixes))
        return next((ending for ending in endings if ending not in COMPRESSIONS), "")

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open the file for bytes, decompressed."""
        compression = COMPRESSIONS.get(Path(self.path).suffix.lower())
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

    def all_lines(self, pattern: str) -> bool:
        """Whether there are lines, and all of the first ones have a pattern."""
        found = [re.fullmatch(pattern, line.strip()) for line in self.lines]
        return bool(found) and all(found)

    @cached_property
    def is_folder(self) -> bool:
        return self.system is None and os.path.isdir(self.path)

    @cached_property
    def inside(self) -> list[str]:
        """The names of files and folders in this folder, or the fields of the first line."""
        if self.is_folder:
            return sorted(os.listdir(self.path))
        separator = "\t" if self.ending == ".tsv" else ","
        return [cell.strip('" ') for line in self.lines[:1] for cell in line.split(separator)]

    def blocks(self) -> Iterator[bytes]:
        """Read the file in pieces that end with a line, without those that are blank."""
        with self.opened() as raw, io.BufferedReader(raw) as stream:
            while block := stream.read(self.piece or -1) + stream.readline():
                if block.strip():
                    yield block


TableReader = Callable[[InputFile], Iterator[Any]]
UNNAMED = "*"  # an ending that no format has


def delimited(
    separator: str,
    names: Sequence[str] | None = None,
    quoted: bool = True,
    number: str | None = None,
) -> TableReader:
    """Return a reader of text fields. Without `names` the first line has those of the columns. One
    column may hold a `number`.

    Of `names`, those that begin with an underscore are of fields that are not read.
    """

    def read_fields(file: InputFile) -> Iterator[Any]:
        from pyarrow import csv  # costs import time that other calls need not pay

        if file.head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise DataError(f"{file.path} is encoded as UTF-16; save it as UTF-8")
        columns = names
        quote = '"' if quoted else False
        layout = csv.ParseOptions(delimiter=separator, newlines_in_values=quoted, quote_char=quote)
        if columns is None:
            with file.opened() as stream, csv.open_csv(stream, parse_options=layout) as reader:
                columns = reader.schema.names
        _refuse_twice(file, columns)
        wanted = [name for name in columns if names is None or not name.startswith("_")]
        types = csv.ConvertOptions(
            column_types=dict.fromkeys(columns, LONG_TEXT), include_columns=wanted
        )
        rows = csv.ReadOptions(column_names=names, block_size=file.piece)
        with ExitStack() as stack:
            if names is None and file.piece is not None:  # a text in quotes may hold ends of lines
                reader = csv.open_csv(stack.enter_context(file.opened()), rows, layout, types)
                tables = _pieces(reader.schema, reader)
            else:
                texts = file.blocks() if names is None else map(_one_space, file.blocks())
                tables = (csv.read_csv(pa.BufferReader(one), rows, layout, types) for one in texts)
            for table in tables:
                if number is not None:
                    at = table.column_names.index(number)
                    table = table.set_column(at, number, _floats(file, table[number]))
                yield table

    return read_fields


def _refuse_twice(file: InputFile, columns: Collection[str]) -> None:
    if len(set(columns)) < len(columns):
        raise DataError(f"{file.path} has two columns of one name: {', '.join(columns)}")


def _one_space(lines: bytes) -> bytes:
    """Make any white space between the fields of a line one space."""
    found = lines.replace(b"\t", b" ").replace(b"\r", b"")
    while b"  " in found:
        found = found.replace(b"  ", b" ")
    return found.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip()


def beyond_numbers(text: Any, found: Any) -> int:
    """Return the first row with a number such as 1e400, and not inf, or -1."""
    if not pa.types.is_floating(found.type):
        return -1
    return pc.index(
        pc.and_(pc.is_inf(found), pc.match_substring_regex(text, "[0-9]")), True
    ).as_py()


def _floats(file: InputFile, text: Any) -> Any:
    found = text.cast(FLOAT)
    if (beyond := beyond_numbers(text, found)) >= 0:
        raise DataError(f"{file.path}: {text[beyond]} {TOO_LARGE}")
    return found


def atomic(file: InputFile) -> Iterator[Any]:
    """Read an atomic file of RecBole, whose header has the type of each column: user_id:token."""
    kinds = {
        "token": LONG_TEXT,
        "float": FLOAT,
        "token_seq": pa.list_(LONG_TEXT),
        "float_seq": pa.list_(FLOAT),
    }
    for table in delimited("\t", quoted=False)(file):
        columns = {}
        for name in table.column_names:
            own, _, kind = name.rpartition(":")
            if kind not in kinds:
                known = f"a type behind each name, as in user_id:token ({', '.join(kinds)})"
                raise DataError(f"{file.path}: the header has {name!r}; expected {known}")
            values = pc.split_pattern(table[name], " ") if kind.endswith("_seq") else table[name]
            values = pc.if_else(pc.equal(table[name], ""), pa.scalar(None, values.type), values)
            columns[own] = _floats(file, values) if kind == "float" else values.cast(kinds[kind])
        yield pa.table(columns)


def lists_of_text(file: InputFile) -> Iterator[Any]:
    """Read a submission of Kaggle: an id, and its items in one text, best first."""
    for table in delimited(",")(file):
        if table.num_columns != 2:
            raise DataError(
                f"{file.path} has {table.num_columns} columns; a submission has two: an id, and "
                "its items"
            )
        length, items = split_texts(table[1].combine_chunks(), " ")
        yield pa.table({"user_id": table[0].take(run_of(length)), "item_id": items})


def items_of_lists(file: InputFile) -> Iterator[Any]:
    """Read an ItemListCollection of LensKit: the keys of a list, and its items as a list of
    structs."""
    for table in parquet_tables(file):
        lists = table["items"].combine_chunks()
        rows = table.drop_columns(["items"]).take(pc.list_parent_indices(lists))
        rows = rows.append_column("items", pc.list_flatten(lists)).flatten()
        yield rows.rename_columns([name.removeprefix("items.") for name in rows.column_names])


def parquet_tables(file: InputFile) -> Iterator[Any]:
    from pyarrow import parquet  # costs import time that other calls need not pay

    with file.opened() as stream:
        data = parquet.ParquetFile(stream)
        _refuse_twice(file, data.schema_arrow.names)
        if file.piece is None:
            yield data.read()
        else:
            yield from _pieces(data.schema_arrow, data.iter_batches())


def arrow_tables(file: InputFile) -> Iterator[Any]:
    """Read an Arrow file, or an Arrow stream."""
    with file.opened() as stream:
        if file.head.startswith(b"ARROW1"):
            reader = pa.ipc.open_file(
                stream if stream.seekable() else pa.BufferReader(stream.read())
            )
            batches = map(reader.get_batch, range(reader.num_record_batches))
        else:
            batches = reader = pa.ipc.open_stream(stream)
        yield from _pieces(reader.schema, batches)


def _pieces(schema: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """Give a table without rows, and one of each batch."""
    yield schema.empty_table()
    yield from map(pa.Table.from_batches, ([batch] for batch in batches))


def json_lines(file: InputFile) -> Iterator[Any]:
    """Read one object per line; text that looks like a time stays text."""
    from pyarrow import json as arrow_json  # costs import time that other calls need not pay

    for block in file.blocks():
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

    def read_lists(file: InputFile) -> Iterator[Any]:
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
    return lambda file: reader(replace(file, path=os.path.join(file.path, member(file))))


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


def delta_tables(file: InputFile) -> Iterator[Any]:
    data = _library("deltalake", "delta", file).DeltaTable(file.path).to_pyarrow_dataset()
    yield from _pieces(data.schema, data.to_batches())


def iceberg_tables(file: InputFile) -> Iterator[Any]:
    library = _library("pyiceberg.table", "iceberg", file)
    # The catalog knows the present state of a table. Without it, that is the one of the highest
    # number.
    states = Path(file.path).glob("metadata/*.metadata.json")
    last = max(states, key=lambda one: int((re.findall(r"\d+", one.name) or ["0"])[0]))
    reader = library.StaticTable.from_metadata(str(last)).scan().to_arrow_batch_reader()
    yield from _pieces(reader.schema, reader)


# ------------------------------------------------------------------------------------------------
# records


@dataclass(frozen=True)
class Format:
    """A format of files.

    name · made_by : who writes it · endings : of file names, without compression; none for a
    folder, and `UNNAMED` is every ending that no record has · seen_by : how a file is recognised
    beside its ending, in words · columns : what the frame has, in words · read : the reader · names
    : column of the file → name in the frame · inferred : its ids are integers or text by what is
    written, else they are as the format says.

    A file of the format has the fields `holds` in its first line, or a folder these names; its
    first lines all have the pattern `line`; one of another ending begins with `magic`; and `known`
    tells what else there is to see.
    """

    name: str
    made_by: str
    endings: tuple[str, ...]
    seen_by: str
    columns: str
    read: TableReader
    holds: Collection[str] = ()
    line: str = ""
    magic: bytes = b""
    known: Callable[[InputFile], bool] = lambda file: True
    names: Mapping[str, str] = field(default_factory=dict)
    inferred: bool = False


def _kaggle(file: InputFile) -> bool:
    """Tell a table of ids and texts, whose second column has a name of predictions and holds
    several items."""
    names = r"(pred\w*|labels|products|added_products|hotel_cluster|ad_id)"
    row = r'"?[^",]*"?,"?\S+ \S[^",]*"?'
    named = len(file.inside) == 2 and re.fullmatch(names, file.inside[1])
    return bool(named) and any(re.fullmatch(row, line) for line in file.lines[1:])


def _has_lists(file: InputFile) -> bool:
    """Tell a parquet file of this machine with a column `items` of lists of structs."""
    from pyarrow import parquet  # costs import time that other calls need not pay

    kind = ""
    if file.head.startswith(b"PAR1"):
        with suppress(OSError, pa.ArrowException, KeyError):
            kind = str(parquet.read_schema(file.path).field("items").type)
    return "struct<" in kind


def _campaign(file: InputFile) -> str:
    return min(one for one in file.inside if one.endswith(".csv") and one != "item_context.csv")


def _beir_test(file: InputFile) -> str:
    """Return the judgements of a folder of BEIR: those of the test, or the only ones."""
    folder = InputFile(f"{file.path}/qrels")
    found = folder.inside if folder.is_folder else []
    if "test.tsv" not in found and len(found) != 1:
        raise DataError(
            f"{file.path}/qrels has no test.tsv; name one of its files: "
            f"{', '.join(found) or 'none'}"
        )
    return "qrels/" + ("test.tsv" if "test.tsv" in found else found[0])


PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc", ".arrows")
# The second field is 0 or Q0 in nearly all files; where it is not, a table of ratings would look
# the same.
QRELS_LINE = r"\S+\s+[Qq]?0\s+\S+\s+[-+]?\d+"
RUN_LINE = r"\S+\s+[Qq]?0\s+\S+\s+\S+\s+[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|(?i:nan|inf))\s+\S+"
# The ranks of a run are not read: trec_eval orders by score, and a column of ranks would take
# precedence over scores.
QRELS_FIELDS = ("user_id", "iteration", "item_id", "relevance")
RUN_FIELDS = ("user_id", "_q0", "item_id", "_rank", "score", "run")
OF_QRELS = {"query-id": "user_id", "corpus-id": "item_id", "score": "relevance"}
OF_BANDIT = {"click": "reward", "propensity_score": "propensity", "": "row"}
QRELS, AS_NAMED = "user_id, item_id, relevance", "as the file names them"
BANDIT = "item_id, position, propensity, reward, timestamp, features"
JUDGEMENTS = delimited("\t", quoted=False, number="score")

FORMATS = {
    record.name: record
    for record in (
        Format(
            "delta",
            "Delta Lake, by `recdf[delta]`",
            (),
            "a folder with `_delta_log`",
            AS_NAMED,
            delta_tables,
            ("_delta_log",),
        ),
        Format(
            "iceberg",
            "Apache Iceberg, by `recdf[iceberg]`",
            (),
            "a folder with `metadata` and `data`",
            AS_NAMED,
            iceberg_tables,
            ("metadata", "data"),
        ),
        Format(
            "beir",
            "BEIR, MTEB",
            (),
            "a folder with `qrels` and `corpus.jsonl`; it reads `qrels/test.tsv`",
            QRELS,
            of_member(JUDGEMENTS, _beir_test),
            ("qrels", "corpus.jsonl"),
            names=OF_QRELS,
        ),
        Format(
            "open_bandit",
            "Open Bandit (obp)",
            (),
            "a folder with `item_context.csv`, of which it reads the log",
            BANDIT,
            of_member(delimited(","), _campaign),
            ("item_context.csv",),
            names=OF_BANDIT,
            inferred=True,
        ),
        Format(
            "lenskit",
            "LensKit: `ItemListCollection.save_parquet`",
            (".parquet",),
            "a column `items` of lists of structs",
            "keys of a list, item_id, rank, score",
            items_of_lists,
            known=_has_lists,
        ),
        Format(
            "parquet",
            "pandas, Spark, LensKit's flat layout",
            (*PARQUET, UNNAMED),
            "its ending, or first bytes",
            AS_NAMED,
            parquet_tables,
            magic=b"PAR1",
        ),
        Format(
            "arrow",
            "Arrow IPC, Feather, polars",
            (*ARROW, UNNAMED),
            "its ending, or first bytes",
            AS_NAMED,
            arrow_tables,
            magic=b"ARROW1",
        ),
        Format(
            "recbole",
            "RecBole, atomic files",
            (".inter", ".item", ".user", ".kg", ".link", ".net"),
            "",
            "as the header names them, without `:token`",
            atomic,
        ),
        Format(
            "trec_run",
            "TREC: trec_eval, Anserini, ranx, ir_measures, BEIR",
            (".tsv", ".run", ".trec", UNNAMED),
            "six fields in a line, `Q0` or `0` the second, a number the fifth",
            "user_id, item_id, score, run",
            delimited(" ", RUN_FIELDS, quoted=False, number="score"),
            line=RUN_LINE,
        ),
        Format(
            "trec_qrels",
            "TREC, MS MARCO",
            (".tsv", ".qrels", ".trec", UNNAMED),
            "four fields in a line, `Q0` or `0` the second, an integer the last",
            f"{QRELS}, iteration",
            delimited(" ", QRELS_FIELDS, quoted=False, number="relevance"),
            line=QRELS_LINE,
        ),
        Format(
            "beir_qrels",
            "BEIR, MTEB",
            (".tsv",),
            "a header with `query-id`, `corpus-id` and `score`",
            QRELS,
            JUDGEMENTS,
            OF_QRELS,
            names=OF_QRELS,
        ),
        Format(
            "beir_qrels_jsonl",
            "MTEB",
            (".jsonl",),
            "the key `corpus-id` in the first line",
            QRELS,
            json_lines,
            line=r'.*"corpus-id".*',
            names=OF_QRELS,
        ),
        Format(
            "json_qrels",
            "ranx",
            (".json",),
            "`qrel` in its name, and `{query: {document: number}}`",
            QRELS,
            json_lists("relevance"),
            known=lambda file: "qrel" in Path(file.path).name.lower(),
        ),
        Format(
            "json_run",
            "MTEB predictions, ranx",
            (".json",),
            "`{query: {document: number}}`, a number with a point",
            "user_id, item_id, score",
            json_lists("score"),
            known=lambda file: re.search(rb":\s*-?\d+(\.\d|e)", file.head) is not None,
        ),
        Format(
            "kaggle",
            "submissions of Kaggle",
            (".csv",),
            "two columns, the second called `prediction`, `labels`, ... with several items in a "
            "field",
            "user_id, item_id",
            lists_of_text,
            known=_kaggle,
            inferred=True,
        ),
        Format(
            "open_bandit_log",
            "Open Bandit (obp)",
            (".csv",),
            "a header with `propensity_score` and `position`",
            BANDIT,
            delimited(","),
            ("propensity_score", "position", "click"),
            names=OF_BANDIT,
            inferred=True,
        ),
        Format("csv", "all", (".csv",), "", AS_NAMED, delimited(","), inferred=True),
        Format("tsv", "all", (".tsv",), "", AS_NAMED, delimited("\t"), inferred=True),
        Format("jsonl", "all", (".jsonl", ".ndjson"), "", AS_NAMED, json_lines),
    )
}


def format_named(name: str) -> Format:
    if name not in FORMATS:
        near = closest(name, FORMATS)
        raise OptionError(
            f"format {name!r} is unknown{near}; expected one of {', '.join(FORMATS)}",
            argument="format",
            value=name,
        )
    return FORMATS[name]


def format_of(file: InputFile) -> Format:
    """Recognise the format of a file or a folder by its name, and where that leaves several by what
    it holds."""
    known = {ending for one in FORMATS.values() for ending in one.endings}
    ending = None if file.is_folder else file.ending if file.ending in known else UNNAMED
    for one in FORMATS.values():
        if (
            (ending in one.endings or (ending is None and not one.endings))
            and (file.ending in one.endings or file.head.startswith(one.magic))
            and {*one.holds} <= {*file.inside}
            and (not one.line or file.all_lines(one.line))
            and one.known(file)
        ):
            return one
    begins = f"its first line is {file.lines[0][:100]!r}" if file.lines else "it is empty"
    raise DataError(
        f"{file.path}: the format of this file is not known, and {begins}; name its format "
        f"(format= of rd.read, --file-format of the command), one of {', '.join(FORMATS)}"
    )
