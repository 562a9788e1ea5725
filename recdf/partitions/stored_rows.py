"""Rows that are not in files, for `evaluate_parquet`: the needed columns are written to temporary files.

Contract: lazy rows are read once, batch by batch, after all columns were checked. Their labels get Arrow's dtypes, as
they do where `evaluate` reads them into memory.
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


def in_files(call: Call, paths: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the paths of both frames, with those of temporary files in `folder` for rows that are in no file."""
    found = {role: path if isinstance(path, NamedFiles) else NamedFiles(path, {}) for role, path in paths.items()}
    rows = {role: _rows(one.path, role) for role, one in found.items() if not is_path(one)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said of columns is said of the files
        schemas = {
            role: _standard(rows[role].schema, one.names, role) if role in rows else Source(one, role).schema
            for role, one in found.items()
        }
        needed = Needed.of(call, schemas).schemas
    for role, one in rows.items():
        file, names = folder / f"{role}.parquet", found[role].names
        own = [names.get(name, name) for name in needed[role].names]
        _write(one, own, role, file)
        found[role] = NamedFiles(file, {name: there for name, there in names.items() if there in own})
    return found


def is_path(path: Any) -> bool:
    """Tell whether this names files."""
    return isinstance(path[0] if isinstance(path, NamedFiles) else path, str | os.PathLike | list | tuple)


def _rows(data: Any, role: str) -> LazyRows:
    """Return rows of any library as lazy rows."""
    if (rows := lazy_rows(data)) is not None:
        return rows
    if not isinstance(data, pd.DataFrame) and (isinstance(data, pd.Series) or not hasattr(data, "__arrow_c_stream__")):
        words = "expected a file, a folder, a glob or a list of them, or a lazy frame, dataset, reader or frame of rows"
        raise TypeError(f"{role}_path is {kind_of(data)}; {words}")
    table = pa.Table.from_pandas(as_frame(data, role), preserve_index=False)
    if not isinstance(data, pd.DataFrame):
        table = table.replace_schema_metadata(OF_ARROW)
    return LazyRows("a frame", table.schema, lambda names: [table.select(names)])


def _standard(schema: pa.Schema, names: Mapping[str, str], role: str) -> pa.Schema:
    """Return a schema with standard names, and with types that files have."""
    called = new_names(schema.names, names, role) if names else schema.names
    return plain_schema(pa.schema([one.with_name(name) for one, name in zip(schema, called, strict=True)]))


def _write(rows: LazyRows, names: list[str], role: str, file: Path) -> None:
    """Write some columns to a file, batch by batch."""
    import pyarrow.parquet as pq

    fields = [rows.schema.field(name) for name in names]
    metadata = rows.schema.metadata if rows.kind == "a frame" else OF_ARROW
    schema = plain_table(pa.schema(fields).empty_table()).schema.with_metadata(metadata)
    with pq.ParquetWriter(file, schema, compression="lz4") as writer:
        for batch in rows.batches(names, role):
            writer.write_table(plain_table(batch).cast(schema))
