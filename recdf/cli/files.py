"""Files of the command line to frames: parquet, CSV and TSV, with no id changed on the way.

Contract: a column of a parquet file keeps its type. In text files, an id column is of integers where every file
writes it as plain integers (7, not 007, 7.0 or +7) and no parquet file holds it as text; else it is text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError

SEPARATORS = {".csv": ",", ".tsv": "\t"}
COMPRESSIONS = (".gz", ".bz2", ".zst")
NULL_NUMBERS = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]


def read_files(paths: Mapping[str, Path], keys: Sequence[str], by: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Read files to frames: `keys` are the id columns, alike in all files, and `by` the labels of single files."""
    texts = [name for name, path in paths.items() if is_text_file(path)]
    return _as_frames({name: _read_file(path) for name, path in paths.items()}, texts, keys, by)


def read_beside(path: Path, parquet: Path, keys: Sequence[str], by: Sequence[str]) -> pd.DataFrame:
    """Read one file to a frame, its ids alike those of a parquet file, of which only the types are read."""
    from pyarrow import parquet as pq  # costs import time that other commands need not pay

    tables = {"beside": pq.read_schema(parquet).empty_table(), "own": _read_file(path)}
    return _as_frames(tables, ["own"] if is_text_file(path) else [], keys, by)["own"]


def _as_frames(
    tables: dict[str, Any], texts: Sequence[str], keys: Sequence[str], by: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Give the columns of the tables that are text their types, and make frames of all."""
    for name in texts:
        for column in tables[name].column_names:
            change = _empty_as_null if column in (*keys, *by) else _as_numbers
            _change(tables, name, column, change(tables[name][column]))
    for key in keys:
        having = [name for name, table in tables.items() if key in table.column_names]
        if not any(_holds_text(tables[name].schema.field(key).type) for name in having if name not in texts):
            _make_integers(tables, [name for name in having if name in texts], key)
    for name in texts:
        for column in set(by) & set(tables[name].column_names):
            _make_integers(tables, [name], column)
    # Integers beside nulls stay integers, and a column that pandas wrote as its index is a column.
    return {name: table.to_pandas(integer_object_nulls=True, ignore_metadata=True) for name, table in tables.items()}


def _read_file(path: Path) -> Any:
    """Read one file to an Arrow table; of a text file, every column is text."""
    from pyarrow import csv, parquet  # cost import time that other commands need not pay

    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if not path.is_dir() and _format(path) not in (*SEPARATORS, ".parquet", ".pq"):
        raise DataError(f"{path}: expected a .parquet, .csv or .tsv file (or .csv.gz, ...)")
    try:
        if not is_text_file(path):
            return parquet.read_table(path)
        layout = csv.ParseOptions(delimiter=SEPARATORS[_format(path)], newlines_in_values=True)
        with csv.open_csv(path, parse_options=layout) as reader:
            names = reader.schema.names
        types = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.large_string()))
        table = csv.read_csv(path, parse_options=layout, convert_options=types)
    except Exception as error:  # whatever a reader makes of a broken file
        raise DataError(f"{path} cannot be read: {error}") from error
    if len(set(names)) < len(names):
        raise DataError(f"{path} has two columns of one name: {', '.join(names)}")
    return table


def _format(path: Path) -> str:
    """Ending of the file's name, without that of its compression."""
    endings = [ending.lower() for ending in path.suffixes]
    while endings and endings[-1] in COMPRESSIONS:
        endings.pop()
    return endings[-1] if endings else ""


def is_text_file(path: Path) -> bool:
    return _format(path) in SEPARATORS and not path.is_dir()


def _holds_text(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _make_integers(tables: dict[str, Any], names: Sequence[str], column: str) -> None:
    """Make a text column one of integers in these tables, if all values are written as Python writes an integer."""
    converted = {}
    for name in names:
        text = tables[name][column]
        if pc.all(pc.match_substring_regex(text, "^(0|-?[1-9][0-9]*)$")).as_py() is False:
            return
        try:
            converted[name] = text.cast(pa.int64())
        except pa.ArrowInvalid:  # beyond int64
            return
    for name, integers in converted.items():
        _change(tables, name, column, integers)


def _empty_as_null(text: Any) -> Any:
    """An empty field is no id; "NA" may be one."""
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)


def _as_numbers(text: Any) -> Any:
    """The column as numbers, or as bools, if all its values are; else as it is."""
    trimmed = pc.utf8_trim_whitespace(text)
    null = pc.is_in(trimmed, value_set=pa.array(NULL_NUMBERS, type=text.type))
    values = pc.if_else(null, pa.scalar(None, text.type), trimmed)
    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        try:
            return values.cast(kind)
        except pa.ArrowInvalid:
            continue
    return text


def _change(tables: dict[str, Any], name: str, column: str, values: Any) -> None:
    tables[name] = tables[name].set_column(tables[name].column_names.index(column), column, values)
