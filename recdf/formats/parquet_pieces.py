"""Files of any format as parquet files, piece by piece, so that a frame may be larger than memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ..errors import DataError
from .file_sets import NUMBERS, FileSet, are_integers, as_numbers, empty_as_null, holds_text
from .table_readers import TOO_LARGE, beyond_numbers


def as_parquet(
    paths: Mapping[str, Any], keys: Sequence[str], by: Sequence[str], names: Mapping[str, Any], folder: Any
) -> dict[str, Any]:
    """Write files of other formats as parquet files, with the types of `read_files`, and return where each frame is.

    Files are read piece by piece, twice where their columns have no types. Parquet files of this machine stay where
    they are.
    """
    sets = {name: replace(FileSet.of(path), role=name, names=names[name] or None) for name, path in paths.items()}
    possible = {name: _possible_kinds(files, [*keys, *by]) for name, files in sets.items() if files.is_text}
    schemas = [next(files.pieces()).schema for name, files in sets.items() if name not in possible]
    for key in keys:
        texts = [kinds for kinds in possible.values() if key in kinds]
        kinds_of_key = [schema.field(key).type for schema in schemas if key in schema.names]
        typed = any(holds_text(getattr(kind, "value_type", kind)) for kind in kinds_of_key)
        if typed or not all(kinds[key] for kinds in texts):
            for kinds in texts:
                kinds[key] = []
    found = dict(paths)
    for name, files in sets.items():
        if not files.is_plain_parquet:
            found[name] = os.path.join(folder, name)
            os.mkdir(found[name])
            _write_pieces(files, possible.get(name, {}), [*keys, *by], found[name])
    return found


def _possible_kinds(files: FileSet, ids: Sequence[str]) -> dict[str, list[Any]]:
    """Return, for each column of text, the kinds of numbers that take all its values, the narrowest first."""
    found: dict[str, list[Any]] = {}
    for table in files.pieces():
        for column in table.column_names:
            if not holds_text((text := table[column]).type):
                continue
            if column in ids:
                found[column] = [pa.int64()] if found.get(column, [1]) and are_integers(empty_as_null(text)) else []
            else:
                kinds = found.get(column, NUMBERS)
                found[column] = [kind for kind in kinds if as_numbers(text, [kind]).type == kind]
    return found


def _write_pieces(files: FileSet, possible: Mapping[str, list[Any]], ids: Sequence[str], folder: str) -> None:
    from pyarrow import parquet  # costs import time that other commands need not pay

    for number, table in enumerate(files.pieces()):
        for column, kinds in possible.items():
            text = empty_as_null(table[column]) if column in ids else table[column]
            found = (text.cast(kinds[0]) if column in ids else as_numbers(text, kinds[:1])) if kinds else text
            if (beyond := beyond_numbers(text, found)) >= 0:
                raise DataError(f"{files.name}, column {column}: {text[beyond]} {TOO_LARGE}")
            table = table.set_column(table.column_names.index(column), column, found)
        parquet.write_table(table, os.path.join(folder, f"{number:08}.parquet"), compression="zstd")
