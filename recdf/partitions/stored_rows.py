"""Rows that are not in files, for `evaluate_parquet`: the needed columns are written to temporary
files.

Contract: lazy rows are read once, batch by batch, after all columns were checked. Their labels get
Arrow's dtypes, as they do where `evaluate` reads them into memory.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import kind_of
from ..inputs.door import NamedFiles, new_names
from ..inputs.frames import as_frame, plain_table
from ..inputs.lazy_frames import LazyRows, lazy_rows
from ..metrics.call import Call
from .needed import Needed
from .source import OF_ARROW, Source, plain_schema

IN_MEMORY = "a frame"


def is_path(path: Any) -> bool:
    """Tell whether this names files."""
    return isinstance(
        path[0] if isinstance(path, NamedFiles) else path, str | os.PathLike | list | tuple
    )


def in_files(call: Call, paths: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the paths of both frames, with those of temporary files in `folder` for rows that are
    in no file."""
    found = {
        role: path if isinstance(path, NamedFiles) else NamedFiles(path, {})
        for role, path in paths.items()
    }
    rows = {role: _rows(one.path, role) for role, one in found.items() if not is_path(one)}
    schemas = {role: _standard(one.schema, found[role].names, role) for role, one in rows.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said of columns is said of the files
        of_files = {
            role: Source(one, role).schema for role, one in found.items() if role not in rows
        }
        needed = Needed.of(call, {role: (schemas | of_files)[role] for role in found})
    for role, one in rows.items():
        names = {name: found[role].names.get(name, name) for name in needed.names(role)}
        _write(one, list(names.values()), role, folder / f"{role}.parquet")
        found[role] = NamedFiles(
            folder / f"{role}.parquet", {to: own for to, own in names.items() if to != own}
        )
    return found


def _rows(data: Any, role: str) -> LazyRows:
    """Return rows of any library as lazy rows."""
    if (rows := lazy_rows(data)) is not None:
        return rows
    if not isinstance(data, pd.DataFrame) and (
        isinstance(data, pd.Series) or not hasattr(data, "__arrow_c_stream__")
    ):
        words = (
            "expected a file, a folder, a glob or a list of them, or a lazy frame, dataset, reader "
            "or frame of rows"
        )
        raise TypeError(f"{role}_path is {kind_of(data)}; {words}")
    table = pa.Table.from_pandas(as_frame(data, role), preserve_index=False)
    table = table if isinstance(data, pd.DataFrame) else table.replace_schema_metadata(OF_ARROW)
    return LazyRows(IN_MEMORY, table.schema, lambda names: [table])


def _standard(schema: pa.Schema, names: Mapping[str, str], role: str) -> pa.Schema:
    """Return a schema with standard names, and with types that files have."""
    called = new_names(schema.names, names, role) if names else schema.names
    return plain_schema(
        pa.schema([one.with_name(name) for one, name in zip(schema, called, strict=True)])
    )


def _write(rows: LazyRows, names: list[str], role: str, file: Path) -> None:
    """Write some columns to a file, batch by batch."""
    import pyarrow.parquet as pq

    schema = plain_table(rows.schema.empty_table().select(names)).schema
    schema = schema.with_metadata(rows.schema.metadata if rows.kind == IN_MEMORY else OF_ARROW)
    with pq.ParquetWriter(file, schema, compression="lz4") as writer:
        for batch in rows.batches(names, role):
            writer.write_table(plain_table(batch).cast(schema))
