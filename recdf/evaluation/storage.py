"""A result in a folder: two parquet files that pandas, DuckDB, polars, Spark and pyarrow read, with
the spec inside.

`dtypes` restores the dtype of every column, and `publishing` makes a result visible in one step.
This module knows the content of the files.

Where the workers of an engine write the rows per list, `per_user.parquet` is a folder. It holds the
files of the workers, and in `_recdf`, which other readers of parquet skip, a result without rows in
the same form: it has the summary, the spec and the dtypes of the rows. `_recdf/parts.json` has the
names and sizes of the files, so that a missing or foreign one is not read as a result.

A parquet file is read from its end: the footer says where each column is, and nothing refers to
bytes between the last column and the footer. `seal` puts three things there, which other readers of
parquet ignore:

    PAR1 | columns | categories, summary | MARK, the two lengths, digest | footer | length of the
    footer | PAR1

The digest is the SHA-256 of all bytes of the file except its own. Equal content therefore has an
equal digest, and a file that another program truncated, changed or wrote again no longer fits its
digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pandas as pd
import pyarrow as pa
from pandas import DataFrame

from ..errors import DataError, OptionError
from ..inputs.constraints import check_value
from ..inputs.frames import OneRecord
from ..publishing import (
    HIDDEN_NAME,
    PER_USER,
    PROFILE,
    RESULT_FILES,
    SUMMARY_FILE,
    is_folder,
    is_there,
    plain_file,
    published,
    read_bytes,
    steadily,
    where,
)
from .dtypes import (
    categories_of,
    describe,
    know_extension_types,
    read_categories,
    refuse_lossy,
    restore,
    to_table,
)

SPEC, DTYPES = b"recdf", b"recdf_dtypes"  # keys of the schema metadata
PROFILED = "recdf_result"  # in the attrs of a profile: the digest of the result beside it
PARTS_FILE = "parts.json"
# Addresses of Databricks, and the paths under which its machines see what they name.
MOUNTED = (("dbfs:/Volumes/", "/Volumes/"), ("dbfs:/", "/dbfs/"))
# per_user, summary and spec of a result
Stored = tuple[DataFrame, DataFrame, dict[str, Any]]


def plain_path(path: Any) -> str:
    """Return a path as text, and the path that an address such as file:///folder stands for."""
    text: str = os.fspath(path)
    found = re.match(r"file:(//(localhost)?(?=/))?(/(?!/).*)", text)
    if found is None:
        return text
    from urllib.request import url2pathname  # costs import time that only such an address needs

    return url2pathname(found[3])


def local_path(path: Any) -> Path:
    """Return the absolute path of a file or folder on this machine; an address such as s3:// is
    refused.

    `~` stands for the home folder, as in pandas. An address such as file:///folder is a path of
    this machine. One letter before a colon is a drive of Windows.
    """
    text = plain_path(path)
    if re.match(r"[A-Za-z][\w+.-]+:/", text):
        mounted = [
            seen + text[len(of) :].lstrip("/") for of, seen in MOUNTED if text.startswith(of)
        ]
        instead = f"pass {mounted[0]}" if mounted else "copy it to or from there"
        raise OptionError(f"{path} is an address; expected a path of this machine: {instead}")
    if not text:
        raise OptionError('the path is empty; pass "." for the current folder')
    return Path(text).expanduser().absolute()


# -------------------------------------------------------------------------------------------
# writing


class Written(NamedTuple):
    """What was written: the digest that seals the file of `per_user`, and the size of that."""

    digest: str
    n_rows: int
    n_columns: int


def write_tables(
    folder: Any, result: Stored, *, overwrite: bool, profile: DataFrame | None = None
) -> None:
    """Write the files of a result into a folder, all or nothing."""
    per_user, summary, spec = result
    with staged(folder, overwrite=overwrite) as staging:
        write_files(staging, [per_user], summary, spec)
        if profile is not None:
            profile.attrs[PROFILED] = digest_of_result(staging)
            profile.to_parquet(staging / PROFILE, index=False)


@contextmanager
def staged(folder: Any, *, overwrite: bool) -> Iterator[Path]:
    """Give a hidden folder for the files of a result, which appear at the end of the block."""
    check_value("overwrite", overwrite, bool)
    files = [local_path(folder) / name for name in RESULT_FILES]
    with published(files, overwrite=overwrite) as place:
        yield place(files[0]).parent


@contextmanager
def staged_parts(folder: Any, head: Stored, *, overwrite: bool) -> Iterator[Path]:
    """Give the path of a hidden folder for the rows; at the end of the block it becomes
    `per_user.parquet`.

    `head` is the result without rows. A failure at any point leaves the old result as it was.
    """
    with staged(folder, overwrite=overwrite) as staging:
        rows = staging / PER_USER
        hidden = staging / PER_USER / HIDDEN_NAME
        yield rows
        hidden.mkdir()
        empty, summary, spec = head
        write_files(hidden, [empty], summary, spec)
        (hidden / PARTS_FILE).write_text(json.dumps(part_sizes(rows)), encoding="utf-8")
        shutil.copyfile(hidden / SUMMARY_FILE, staging / SUMMARY_FILE)


def part_sizes(rows: Path) -> dict[str, int]:
    """Return the size of each file of a folder of rows, in bytes."""
    files = sorted(path for path in rows.glob("*.parquet") if not path.name.startswith((".", "_")))
    return {path.name: plain_file(path).stat().st_size for path in files}


def digest_of_result(*folders: Path) -> str:
    """Return a digest that tells a stored result, or several that are joined, from others. It is
    that of their summaries, and not the one that seals the rows (`Written`)."""
    read = b"".join(read_bytes(folder / SUMMARY_FILE) for folder in folders)
    return hashlib.sha256(read).hexdigest()


def write_files(
    folder: Path,
    blocks: Iterable[DataFrame],
    summary: DataFrame,
    spec: dict[str, Any],
    kinds: Callable[[], pa.Schema] | None = None,
) -> Written:
    """Write the tables of a result into a folder from `staged`.

    `blocks` are the rows of `per_user` in their order, in any number of frames. Where there may be
    several, `kinds` gives the types of all rows: the first block may have only nulls in a column,
    or Decimals of fewer digits than others.
    """
    import pyarrow.parquet as pq  # costs import time that only reading and writing need

    table, categories = frame_to_arrow(summary, spec)
    pq.write_table(table, folder / SUMMARY_FILE)
    seal(folder / SUMMARY_FILE, categories)
    n_rows = n_columns = 0
    with ExitStack() as stack:
        writer = None
        for block in blocks:
            table, categories = frame_to_arrow(block, spec)
            if writer is None:
                fields = [_of_all(one, kinds) for one in table.schema]
                schema = pa.schema(fields, table.schema.metadata)
                writer = stack.enter_context(pq.ParquetWriter(folder / PER_USER, schema))
            writer.write_table(table.cast(writer.schema))
            n_rows += len(block)
            n_columns = len(block.columns)
    digest = seal(folder / PER_USER, categories, (folder / SUMMARY_FILE).read_bytes())
    return Written(digest, n_rows, n_columns)


def _of_all(field: pa.Field, kinds: Callable[[], pa.Schema] | None) -> pa.Field:
    few = pa.types.is_null(field.type) or pa.types.is_decimal(field.type)
    return field if kinds is None or not few else kinds().field(field.name)


def frame_to_arrow(frame: DataFrame, spec: dict[str, Any]) -> tuple[pa.Table, bytes]:
    """Return the table to write, and the categories to store in its file."""
    table = to_table(frame)
    categories = categories_of(frame)
    described = {name: describe(frame[name]) for name in frame.columns}
    refuse_lossy(frame, table, described, categories)
    own = {SPEC: json.dumps(spec), DTYPES: json.dumps(described)}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **own}), categories


# -------------------------------------------------------------------------------------------
# reading


def read_tables(folder: Any, digest: str | None = None) -> Stored:
    """Read the two tables and the spec that were written together.

    `per_user.parquet` contains the summary that was written with it, so that the tables always
    belong together. `summary.parquet` is only checked.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    DataError
        If a file is damaged or is not of recdf, or if the result is not the one that `digest`
        names.
    """
    path, beside = (local_path(folder) / name for name in (PER_USER, SUMMARY_FILE))

    def read() -> Stored:
        for one in (path, beside):
            if not is_there(one):
                raise FileNotFoundError(
                    f"{one} does not exist; expected a folder written by Evaluation.to_parquet or "
                    "recdf evaluate --out"
                )
        rows = where(path)
        with open_sealed(file_of_rows(path.parent), digest) as sealed:
            per_user, spec = _read_sealed(sealed, path)
            summary, _ = _read_sealed(unseal(pa.BufferReader(sealed.summary), path), path)
        if plain_file(where(beside)).read_bytes() != sealed.summary:
            with open_sealed(where(beside)):  # raises if it is damaged or not of recdf
                pass
        if is_folder(rows):
            per_user = _read_parts(rows, per_user, summary, spec)
        return per_user, summary, spec

    return steadily([path, beside], read)


def file_of_rows(folder: Path) -> Path:
    """Return the file of a result whose schema is that of its rows."""
    rows = where(folder / PER_USER)
    return plain_file(rows / HIDDEN_NAME / PER_USER if is_folder(rows) else rows)


def read_summary(folder: Any) -> tuple[DataFrame, dict[str, Any]]:
    """Read the summary of a result and its spec alone, without the rows of its lists."""
    path = local_path(folder) / SUMMARY_FILE

    def read() -> tuple[DataFrame, dict[str, Any]]:
        with open_sealed(where(path)) as sealed:
            return _read_sealed(sealed, path)

    return steadily([path], read)


def _read_sealed(sealed: Sealed, path: Path) -> tuple[DataFrame, dict[str, Any]]:
    """Return one table with the dtypes that it was written with, and its spec."""
    import pyarrow.parquet as pq

    know_extension_types()
    with _understood(path, "result that this recdf can read"):
        table = pq.ParquetFile(sealed.handle).read()
        metadata = table.schema.metadata
        spec = OneRecord(json.loads(metadata[SPEC]))
        described = json.loads(metadata[DTYPES])
        categories = read_categories(sealed.categories)
        columns = {
            name: restore(table[name], dtype, categories.get(name))
            for name, dtype in described.items()
        }
        frame = DataFrame(columns)
        frame.attrs["recdf"] = spec
    return frame, spec


@contextmanager
def _understood(path: Path, what: str) -> Iterator[None]:
    """Say of a file whose bytes another program wrote or changed that it does not hold this."""
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"{path} holds no {what}: {type(error).__name__}: {error}") from error


def _read_parts(
    rows: Path, empty: DataFrame, summary: DataFrame, spec: dict[str, Any]
) -> DataFrame:
    """Read the rows of a result in parts, sorted by `by` value and list key; raise if a file of
    them is missing, has another size, or is none of this result."""
    import pyarrow.dataset as ds

    try:
        path = plain_file(rows / HIDDEN_NAME / PARTS_FILE)
        written = dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError, RecursionError) as error:
        what = f"{rows / HIDDEN_NAME} does not say which files belong to it"
        raise DataError(f"{what}: {error}; write the result again") from error
    found = part_sizes(rows)
    odd = [
        f"{name} (missing)"
        if name not in found
        else f"{name} (not of this result)"
        if name not in written
        else f"{name} ({found[name]:,} bytes for {written[name]:,})"
        for name in sorted({*found, *written})
        if found.get(name) != written.get(name)
    ]
    if odd or not found:
        what = f"{len(odd):,} differ, {', '.join(odd[:3])}" if odd else "there is none"
        raise DataError(f"{rows} does not hold the files that were written: {what}")
    # Spark's instants are in a unit of their own, and those with a time zone as the clock of UTC
    # shows them.
    stored = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    with _understood(rows, "rows that fit its result"):
        table = ds.dataset([str(rows / name) for name in found], format=stored).to_table()
        categories = read_categories(categories_of(empty))
        columns = {}
        for name, like in empty.items():
            column = table[name]
            zoned = isinstance(like.dtype, pd.DatetimeTZDtype)
            if zoned and pa.types.is_timestamp(column.type) and column.type.tz is None:
                column = column.cast(pa.timestamp(column.type.unit, "UTC"))
            columns[name] = restore(column, describe(like), categories.get(str(name)))
    by = summary[spec["by"]].drop_duplicates(ignore_index=True)
    per_user = sorted_rows(DataFrame(columns), by, spec["user_col"])
    per_user.attrs["recdf"] = spec
    return per_user


def sorted_rows(per_user: DataFrame, by: DataFrame, keys: list[str]) -> DataFrame:
    """Return rows sorted by `by` value, in the order of `by`, and then by list key."""
    rows = per_user[keys].copy()
    if len(by.columns):
        order = pd.MultiIndex.from_frame(by).get_indexer(
            pd.MultiIndex.from_frame(per_user[list(by.columns)])
        )
        place = "by" + "_" * max(map(len, keys))  # longer than the name of any column
        rows.insert(0, place, order)
    in_order = rows.sort_values(list(rows.columns), kind="stable").index.to_numpy()
    return per_user.take(in_order).reset_index(drop=True)


MAGIC = b"PAR1"
MARK = b"recdf\x00\x00\x01"
# the mark, the lengths of the categories and of the summary's file, and the digest
TRAILER = struct.Struct("<8sQQ32s")
DIGEST = hashlib.sha256().digest_size
CHUNK = 2**20


class Sealed(NamedTuple):
    """An open file whose bytes are those that were sealed.

    categories : of the columns, which parquet does not keep · summary : the whole of the summary's
    file, in that of the rows.
    """

    handle: pa.NativeFile
    digest: str
    categories: bytes
    summary: bytes


def seal(path: Path, categories: bytes, summary: bytes = b"") -> str:
    """Seal a parquet file that was just written, add some data to it, and return its digest."""
    trailer = TRAILER.pack(MARK, len(categories), len(summary), b"")[:-DIGEST]
    head = categories + summary + trailer
    with open(path, "r+b") as handle:
        end, footer = _footer(handle, path)
        digest = _sealed_digest(handle, end, head + footer)
        handle.seek(end)
        handle.write(head + digest + footer)
    return digest.hex()


@contextmanager
def open_sealed(path: Path, digest: str | None = None) -> Iterator[Sealed]:
    """Open a sealed file once, and check all of it; raises DataError as `unseal` does, and if it is
    not the one that `digest` names.

    The file is opened by Arrow. If Arrow's threads read a Python file, they may abort a process
    that is ending.
    """
    with pa.OSFile(str(plain_file(path)), "rb") as handle:
        sealed = unseal(handle, path)
        if digest not in (None, sealed.digest):
            raise DataError(
                f"{path} was overwritten since; read the new result with rd.read_parquet"
            )
        yield sealed


def unseal(handle: pa.NativeFile, path: Path) -> Sealed:
    """Check all bytes of an open file, and find the data that it contains. Messages name `path`.

    Raises
    ------
    DataError
        If the file is no whole parquet file, has no seal, or differs from what was sealed.
    """
    end, footer = _footer(handle, path)
    start = max(end - TRAILER.size, 0)
    handle.seek(start)
    trailer = handle.read(end - start)
    if not start or not trailer.startswith(MARK):
        raise DataError(
            f"{path} has no recdf metadata that fits it: it was written by another program or by "
            "an earlier recdf; expected a file as Evaluation.to_parquet or recdf evaluate --out "
            "wrote it"
        )
    _, *sizes, digest = TRAILER.unpack(trailer)
    if _sealed_digest(handle, end - DIGEST, footer) != digest:
        raise DataError(
            f"{path} is damaged: its bytes are not those that recdf wrote; write the result again"
        )
    handle.seek(start - sum(sizes))
    categories, summary = (handle.read(size) for size in sizes)
    handle.seek(0)
    return Sealed(handle, digest.hex(), categories, summary)


def _footer(handle: BinaryIO | pa.NativeFile, path: Path) -> tuple[int, bytes]:
    """Return the offset of a parquet file's footer, and the bytes from there on; the last eight of
    them are the footer's length and the magic word."""
    size = handle.seek(0, os.SEEK_END)
    handle.seek(max(size - 8, 0))
    last = handle.read(8)
    end = size - 8 - int.from_bytes(last[:4], "little")
    if last[4:] != MAGIC or end < len(MAGIC):
        raise DataError(
            f"{path} is no whole parquet file ({size:,} bytes): it was cut short or damaged, or "
            "never was"
        )
    handle.seek(end)
    return end, handle.read()


def _sealed_digest(handle: BinaryIO | pa.NativeFile, end: int, rest: bytes) -> bytes:
    """Return the digest of the file's bytes before `end`, followed by `rest`."""
    digest = hashlib.sha256()
    handle.seek(0)
    while (left := end - handle.tell()) > 0:
        chunk = handle.read(min(CHUNK, left))
        if not chunk:  # the file became shorter while it was read, so that no digest can fit
            break
        digest.update(chunk)
    digest.update(rest)
    return digest.digest()
