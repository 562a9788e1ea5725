"""A result whose rows per list are a folder of files, as the workers of an engine write them.

Contract: `per_user.parquet` is a folder. It holds the files of the workers, and in `_recdf`, which other readers of
parquet skip, a result without rows in the form of `storage`: it has the summary, the spec and the dtypes of the rows.
`_recdf/parts.json` has the names and sizes of the files, so that a missing or foreign one is not read as a result.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import DataError
from .dtypes import categories_of, describe, read_categories, restore
from .publishing import HIDDEN_NAME, PER_USER, SUMMARY_FILE, repair_summary, staged, to_disk
from .storage import STALE_READS, StoredTables, local_path, read_tables, write_files

PARTS_FILE = "parts.json"


def is_in_parts(folder: Any) -> bool:
    """Tell whether a folder holds a result in parts."""
    return (local_path(folder) / PER_USER / HIDDEN_NAME).is_dir()


@contextmanager
def staged_parts(folder: Any, *, overwrite: bool) -> Iterator[Path]:
    """Give the path of a hidden folder for the rows; at the end of the block it becomes `per_user.parquet`.

    A failure at any point leaves the old result as it was.
    """
    with staged(local_path(folder), overwrite=overwrite) as staging:
        rows = staging / PER_USER
        yield rows
        shutil.copyfile(rows / HIDDEN_NAME / SUMMARY_FILE, staging / SUMMARY_FILE)
        for path in rows.rglob("*"):
            if path.is_file():
                to_disk(path)


def write_head(rows: Path, empty: pd.DataFrame, summary: pd.DataFrame, spec: dict[str, Any]) -> None:
    """Write what belongs to the rows: the summary, the spec, the dtypes of a frame without rows, the list of files."""
    (rows / HIDDEN_NAME).mkdir()
    write_files(rows / HIDDEN_NAME, [empty], summary, spec)
    (rows / HIDDEN_NAME / PARTS_FILE).write_text(json.dumps(_sizes(rows)), encoding="utf-8")


def stored_rows(rows: Path) -> int:
    """Return the number of rows in all files of rows."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(rows / name).num_rows for name in _sizes(rows))


def _sizes(rows: Path) -> dict[str, int]:
    """Return the size of each file of rows, in bytes."""
    files = sorted(path for path in rows.glob("*.parquet") if not path.name.startswith((".", "_")))
    return {path.name: path.stat().st_size for path in files}


def _check_files(rows: Path) -> list[str]:
    """Return the paths of the files of rows; raise if one is missing, was changed, or is none of this result."""
    try:
        written = json.loads((rows / HIDDEN_NAME / PARTS_FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError) as error:
        what = f"{rows / HIDDEN_NAME} does not say which files belong to it"
        raise DataError(f"{what}: {error}; write the result again") from error
    found = _sizes(rows)
    if found != written:
        odd = [name for name in sorted({*found, *written}) if found.get(name) != written.get(name)]
        what = ", ".join(f"{name} ({_count_difference(found.get(name), written.get(name))})" for name in odd[:3])
        raise DataError(f"{rows} does not hold the files that were written: {len(odd):,} differ, {what}")
    return [str(rows / name) for name in found]


def _count_difference(found: int | None, written: int | None) -> str:
    if found is None:
        return "missing"
    return "not of this result" if written is None else f"{found:,} bytes for {written:,}"


def read_parts(folder: Any) -> StoredTables:
    """Read a result in parts; its rows are sorted by `by` value and list key.

    If another process replaces the folder in the meantime, the new one is read.
    """
    target = local_path(folder)
    for _ in range(STALE_READS):
        before = _identity(target / PER_USER)
        try:
            found = _read_parts(target / PER_USER)
        except (DataError, OSError):
            if _identity(target / PER_USER) == before:
                raise
            continue
        if _identity(target / PER_USER) == before:
            break
    if (target / SUMMARY_FILE).read_bytes() != (target / PER_USER / HIDDEN_NAME / SUMMARY_FILE).read_bytes():
        repair_summary(target)
    return found


def _identity(rows: Path) -> tuple[int, int] | None:
    """Return numbers that tell a folder from another of the same name, or None while there is none."""
    try:
        found = os.stat(rows / HIDDEN_NAME)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _read_parts(rows: Path) -> StoredTables:
    import pyarrow.dataset as ds

    empty, summary, spec = read_tables(rows / HIDDEN_NAME)
    files = _check_files(rows)
    if not files:
        raise DataError(f"{rows} holds no files of rows; expected a folder that to_parquet of an engine wrote")
    try:
        stored = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")  # Spark's instants, in its own unit
        table = ds.dataset(files, format=stored).to_table()
        categories = read_categories(categories_of(empty))
        found = {
            name: restore(_zoned(table[name], empty[name].dtype), describe(empty[name]), categories.get(name))
            for name in empty.columns
        }
    except (OSError, MemoryError):
        raise
    except Exception as error:  # the files were changed
        raise DataError(f"{rows} holds no rows that fit its result: {type(error).__name__}: {error}") from error
    by = summary[spec["by"]].drop_duplicates(ignore_index=True)
    per_user = sorted_rows(pd.DataFrame(found), by, spec["user_col"])
    per_user.attrs["recdf"] = spec
    return StoredTables(per_user, summary, spec)


def _zoned(column: Any, dtype: Any) -> Any:
    """Return instants with a time zone: Spark stores them as the clock of UTC shows them."""
    naive = isinstance(dtype, pd.DatetimeTZDtype) and pa.types.is_timestamp(column.type) and column.type.tz is None
    return column.cast(pa.timestamp(column.type.unit, "UTC")) if naive else column


def sorted_rows(per_user: pd.DataFrame, by: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return rows sorted by `by` value, in the order of `by`, and then by list key."""
    rows = per_user[keys].copy()
    if len(by.columns):
        order = pd.MultiIndex.from_frame(by).get_indexer(pd.MultiIndex.from_frame(per_user[list(by.columns)]))
        place = "by" + "_" * max(map(len, keys))  # longer than the name of any column
        rows.insert(0, place, order)
    in_order = rows.sort_values(list(rows.columns), kind="stable").index.to_numpy()
    return per_user.take(in_order).reset_index(drop=True)
