"""A result in a folder: two parquet files that pandas, DuckDB, polars, Spark and pyarrow read, with the spec inside.

`dtypes` restores the dtype of every column, `sealed` detects damaged files, and `publishing` makes a result visible in
one step. This module knows the content of the files.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from ..errors import DataError, OptionError
from .dtypes import categories_of, describe, know_extension_types, read_categories, refuse_lossy, restore, to_table
from .publishing import PER_USER, SUMMARY_FILE, repair_summary, staged, sweep
from .sealed import Carried, Sealed, open_sealed, seal, unseal
from .spec import OneSpec

SPEC, DTYPES = b"recdf", b"recdf_dtypes"  # keys of the schema metadata
STALE_READS = 3  # how often a network drive may lose the file that is being read because it was replaced


class StoredTables(NamedTuple):
    """The content of a folder with a result."""

    per_user: pd.DataFrame
    summary: pd.DataFrame
    spec: dict[str, Any]


class Written(NamedTuple):
    """What was written: the digest that names the result, and the size of `per_user`."""

    digest: str
    n_rows: int
    n_columns: int


# ------------------------------------------------------------------------------------------- writing


def write_tables(
    folder: Any, per_user: pd.DataFrame, summary: pd.DataFrame, spec: dict[str, Any], *, overwrite: bool = False
) -> None:
    """Write `per_user.parquet` and `summary.parquet` into a folder, all or nothing."""
    with staged(local_path(folder), overwrite=overwrite) as staging:
        write_files(staging, [per_user], summary, spec)


def write_files(folder: Path, blocks: Iterable[pd.DataFrame], summary: pd.DataFrame, spec: dict[str, Any]) -> Written:
    """Write both files of a result into a folder from `staged`.

    `blocks` are the rows of `per_user` in their order, in any number of frames.
    """
    import pyarrow.parquet as pq  # costs import time that only reading and writing need

    table, categories = _frame_to_arrow(summary, spec)
    pq.write_table(table, folder / SUMMARY_FILE)
    seal(folder / SUMMARY_FILE, Carried(categories))
    n_rows = n_columns = 0
    with ExitStack() as stack:
        writer = None
        for block in blocks:
            table, categories = _frame_to_arrow(block, spec)
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(folder / PER_USER, table.schema))
            writer.write_table(table.cast(writer.schema))
            n_rows, n_columns = n_rows + len(block), len(block.columns)
    digest = seal(folder / PER_USER, Carried(categories, (folder / SUMMARY_FILE).read_bytes()))
    return Written(digest, n_rows, n_columns)


def is_address(path: Any) -> bool:
    """Tell whether a path is an address, such as s3://bucket or dbfs:/folder. One letter is a drive of Windows."""
    return re.match(r"[A-Za-z][\w+.-]+:/", os.fspath(path)) is not None


def local_path(path: Any) -> Path:
    """Return the absolute path of a file or folder on this machine; an address such as s3:// is refused.

    `~` stands for the home folder, as in pandas.
    """
    if is_address(path):
        raise OptionError(f"{path} is an address; expected a path of this machine: copy it to or from there")
    if not os.fspath(path):
        raise OptionError('the path is empty; pass "." for the current folder')
    return Path(path).expanduser().absolute()


def _frame_to_arrow(frame: pd.DataFrame, spec: dict[str, Any]) -> tuple[pa.Table, bytes]:
    """Return the table to write, and the categories to store in its file."""
    table, categories = to_table(frame), categories_of(frame)
    described = {name: describe(frame[name]) for name in frame.columns}
    refuse_lossy(frame, table, described, categories)
    own = {SPEC: json.dumps(spec), DTYPES: json.dumps(described)}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **own}), categories


# ------------------------------------------------------------------------------------------- reading


def read_tables(folder: Any, digest: str | None = None) -> StoredTables:
    """Read the two tables and the spec that were written together.

    `per_user.parquet` is opened once. It contains the summary that was written with it, so that the tables always
    belong together. `summary.parquet` is only checked, and repaired if a process was killed before it wrote it.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    DataError
        If a file is damaged or is not of recdf, or if the result is not the one that `digest` names.
    """
    target = local_path(folder)
    for _ in range(STALE_READS):
        try:
            return _read_tables(target, digest)
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
    return _read_tables(target, digest)


def _read_tables(target: Path, digest: str | None) -> StoredTables:
    sweep(target)
    for name in (PER_USER, SUMMARY_FILE):
        if not (target / name).exists():
            raise FileNotFoundError(
                f"{target / name} does not exist; expected a folder written by Evaluation.to_parquet or recdf "
                "evaluate --out"
            )
    with open_sealed(target / PER_USER) as sealed:
        if digest not in (None, sealed.digest):
            raise DataError(f"{target / PER_USER} was overwritten since; read the new result with rd.read_parquet")
        per_user, spec = _read_sealed(sealed, target / PER_USER)
        summary, _ = _read_sealed(unseal(pa.BufferReader(sealed.carried.summary), target / PER_USER), target / PER_USER)
    if (target / SUMMARY_FILE).read_bytes() != sealed.carried.summary:
        with open_sealed(target / SUMMARY_FILE):  # raises if it is damaged or not of recdf
            repair_summary(target)
    return StoredTables(per_user, summary, spec)


def _read_sealed(sealed: Sealed, path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return one table with the dtypes that it was written with, and its spec."""
    import pyarrow.parquet as pq

    know_extension_types()
    try:
        table = pq.ParquetFile(sealed.handle).read()
        metadata = table.schema.metadata
        spec, described = OneSpec(json.loads(metadata[SPEC])), json.loads(metadata[DTYPES])
        categories = read_categories(sealed.carried.categories)
        columns = {name: restore(table[name], dtype, categories.get(name)) for name, dtype in described.items()}
        frame = pd.DataFrame(columns)
        frame.attrs["recdf"] = spec
    except (OSError, MemoryError):
        raise
    except Exception as error:  # the seal fits, but another program wrote the content
        raise DataError(f"{path} holds no result that this recdf can read: {type(error).__name__}: {error}") from error
    return frame, spec
