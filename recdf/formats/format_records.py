"""The formats of files, as records. To add a format, add a record.

Contract: a record says how a file is recognised, how it is read, and what its columns are called.
The pages, the messages and the command follow from the records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import DataError, OptionError, closest
from . import table_readers as readers
from .table_readers import InputFile, TableReader

UNNAMED = "*"  # an ending that no format has


@dataclass(frozen=True)
class Format:
    """A format of files.

    name · made_by : who writes it · endings : of file names, without compression; none for a
    folder, and `UNNAMED` is every ending that no record has · seen_by : how a file is recognised
    beside its ending, in words, and `known`, which tells · columns : what the frame has, in words ·
    read : the reader · names : column of the file → name in the frame · inferred : its ids are
    integers or text by what is written, else they are as the format says.
    """

    name: str
    made_by: str
    endings: tuple[str, ...]
    seen_by: str
    columns: str
    read: TableReader
    known: Callable[[InputFile], bool] = lambda file: True
    names: Mapping[str, str] = field(default_factory=dict)
    inferred: bool = False


def _folder_of(*names: str) -> Callable[[InputFile], bool]:
    """Tell a folder, in which these names are."""
    return lambda file: set(names) <= set(file.inside)


def _header(separator: str, *names: str) -> Callable[[InputFile], bool]:
    """Tell a file, whose first line has these fields."""
    return lambda file: set(names) <= set(file.cells(separator))


def _lines(pattern: str) -> Callable[[InputFile], bool]:
    """Tell a file by its first lines, all of which have this pattern."""
    return lambda file: (
        bool(file.lines) and all(re.fullmatch(pattern, line.strip()) for line in file.lines)
    )


def _trec(names: tuple[str, ...]) -> TableReader:
    """Return the reader of lines with these fields, of which the last but the tag is a number."""
    return readers.with_number(
        readers.delimited(" ", names, quoted=False), "score" if "run" in names else "relevance"
    )


def _kaggle(file: InputFile) -> bool:
    """Tell a table of ids and texts, whose second column has a name of predictions and holds
    several items."""
    cells = file.cells(",")
    named = len(cells) == 2 and re.fullmatch(
        r"(pred\w*|labels|products|added_products|hotel_cluster|ad_id)", cells[1]
    )
    return bool(named) and any(
        re.fullmatch(r'"?[^",]*"?,"?\S+ \S[^",]*"?', line) for line in file.lines[1:]
    )


def _campaign(file: InputFile) -> str:
    return next(
        name for name in file.inside if name.endswith(".csv") and name != "item_context.csv"
    )


def _beir_test(file: InputFile) -> str:
    """Return the judgements of a folder of BEIR: those of the test, or the only ones."""
    found = InputFile(f"{file.path}/qrels").inside
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
JUDGEMENTS = readers.with_number(readers.delimited("\t", quoted=False), "score")

FORMATS: dict[str, Format] = {
    record.name: record
    for record in (
        Format(
            "delta",
            "Delta Lake, by `recdf[delta]`",
            (),
            "a folder with `_delta_log`",
            AS_NAMED,
            readers.delta_tables,
            _folder_of("_delta_log"),
        ),
        Format(
            "iceberg",
            "Apache Iceberg, by `recdf[iceberg]`",
            (),
            "a folder with `metadata` and `data`",
            AS_NAMED,
            readers.iceberg_tables,
            _folder_of("metadata", "data"),
        ),
        Format(
            "beir",
            "BEIR, MTEB",
            (),
            "a folder with `qrels` and `corpus.jsonl`; it reads `qrels/test.tsv`",
            QRELS,
            readers.of_member(JUDGEMENTS, _beir_test),
            _folder_of("qrels", "corpus.jsonl"),
            OF_QRELS,
        ),
        Format(
            "open_bandit",
            "Open Bandit (obp)",
            (),
            "a folder with `item_context.csv`, of which it reads the log",
            BANDIT,
            readers.of_member(readers.delimited(","), _campaign),
            _folder_of("item_context.csv"),
            OF_BANDIT,
            inferred=True,
        ),
        Format(
            "lenskit",
            "LensKit: `ItemListCollection.save_parquet`",
            (".parquet",),
            "a column `items` of lists of structs",
            "keys of a list, item_id, rank, score",
            readers.items_of_lists,
            lambda file: (
                "items" in file.schema.names and "struct<" in str(file.schema.field("items").type)
            ),
        ),
        Format(
            "parquet",
            "pandas, Spark, LensKit's flat layout",
            (*PARQUET, UNNAMED),
            "its ending, or first bytes",
            AS_NAMED,
            readers.parquet_tables,
            lambda file: file.ending in PARQUET or file.head.startswith(b"PAR1"),
        ),
        Format(
            "arrow",
            "Arrow IPC, Feather, polars",
            (*ARROW, UNNAMED),
            "its ending, or first bytes",
            AS_NAMED,
            readers.arrow_tables,
            lambda file: file.ending in ARROW or file.head.startswith(b"ARROW1"),
        ),
        Format(
            "recbole",
            "RecBole, atomic files",
            (".inter", ".item", ".user", ".kg", ".link", ".net"),
            "",
            "as the header names them, without `:token`",
            readers.atomic,
        ),
        Format(
            "trec_run",
            "TREC: trec_eval, Anserini, ranx, ir_measures, BEIR",
            (".tsv", ".run", ".trec", UNNAMED),
            "six fields in a line, `Q0` or `0` the second, a number the fifth",
            "user_id, item_id, score, run",
            _trec(RUN_FIELDS),
            _lines(RUN_LINE),
        ),
        Format(
            "trec_qrels",
            "TREC, MS MARCO",
            (".tsv", ".qrels", ".trec", UNNAMED),
            "four fields in a line, `Q0` or `0` the second, an integer the last",
            f"{QRELS}, iteration",
            _trec(QRELS_FIELDS),
            _lines(QRELS_LINE),
        ),
        Format(
            "beir_qrels",
            "BEIR, MTEB",
            (".tsv",),
            "a header with `query-id`, `corpus-id` and `score`",
            QRELS,
            JUDGEMENTS,
            _header("\t", *OF_QRELS),
            OF_QRELS,
        ),
        Format(
            "beir_qrels_jsonl",
            "MTEB",
            (".jsonl",),
            "the key `corpus-id` in the first line",
            QRELS,
            readers.json_lines,
            _lines(r'.*"corpus-id".*'),
            OF_QRELS,
        ),
        Format(
            "json_qrels",
            "ranx",
            (".json",),
            "`qrel` in its name, and `{query: {document: number}}`",
            QRELS,
            readers.json_lists("relevance"),
            lambda file: "qrel" in Path(file.path).name.lower(),
        ),
        Format(
            "json_run",
            "MTEB predictions, ranx",
            (".json",),
            "`{query: {document: number}}`, a number with a point",
            "user_id, item_id, score",
            readers.json_lists("score"),
            lambda file: re.search(rb":\s*-?\d+(\.\d|e)", file.head) is not None,
        ),
        Format(
            "kaggle",
            "submissions of Kaggle",
            (".csv",),
            "two columns, the second called `prediction`, `labels`, ... with several items in a "
            "field",
            "user_id, item_id",
            readers.lists_of_text,
            _kaggle,
            inferred=True,
        ),
        Format(
            "open_bandit_log",
            "Open Bandit (obp)",
            (".csv",),
            "a header with `propensity_score` and `position`",
            BANDIT,
            readers.delimited(","),
            _header(",", "propensity_score", "position", "click"),
            OF_BANDIT,
            inferred=True,
        ),
        Format("csv", "all", (".csv",), "", AS_NAMED, readers.delimited(","), inferred=True),
        Format("tsv", "all", (".tsv",), "", AS_NAMED, readers.delimited("\t"), inferred=True),
        Format("jsonl", "all", (".jsonl", ".ndjson"), "", AS_NAMED, readers.json_lines),
    )
}


def format_named(name: str) -> Format:
    if name not in FORMATS:
        near = closest(str(name), FORMATS)
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
        if (ending in one.endings or (ending is None and not one.endings)) and one.known(file):
            return one
    begins = f"its first line is {file.lines[0][:100]!r}" if file.lines else "it is empty"
    raise DataError(
        f"{file.path}: the format of this file is not known, and {begins}; name its format "
        f"(format= of rd.read, --file-format of the command), one of {', '.join(FORMATS)}"
    )
