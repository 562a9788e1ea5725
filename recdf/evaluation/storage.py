"""Results as parquet files that pandas, DuckDB, polars, Spark and pyarrow read, with the spec inside."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from ..errors import DataError

__all__ = ["Tables", "read_tables", "staged", "write_files", "write_tables"]

# Keys of the schema metadata: the spec, the dtypes, and which files were written together.
SPEC, DTYPES, RESULT = b"recdf", b"recdf_dtypes", b"recdf_result"


class Tables(NamedTuple):
    """What a folder with a result holds."""

    per_user: pd.DataFrame
    summary: pd.DataFrame
    spec: dict[str, Any]


def write_tables(
    folder: Any, per_user: pd.DataFrame, summary: pd.DataFrame, spec: dict[str, Any], *, overwrite: bool = False
) -> None:
    """Write `per_user.parquet` and `summary.parquet` into a folder, all or nothing."""
    with staged(folder, overwrite=overwrite) as staging:
        write_files(staging, [per_user], summary, spec)


def write_files(folder: Path, blocks: Iterable[pd.DataFrame], summary: pd.DataFrame, spec: dict[str, Any]) -> None:
    """Write both files of a result into a folder that `staged` gave; `blocks` are the rows of `per_user` in order."""
    import pyarrow.parquet as pq  # costs import time that only reading and writing need

    writer, result = None, uuid.uuid4().hex
    try:
        for block in blocks:
            table = to_arrow(block, spec, result)
            if writer is None:
                writer = pq.ParquetWriter(folder / "per_user.parquet", table.schema)
            writer.write_table(table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()
    pq.write_table(to_arrow(summary, spec, result), folder / "summary.parquet")


@contextmanager
def staged(folder: Any, *, overwrite: bool) -> Iterator[Path]:
    """A hidden folder to write both files to; then they move into `folder`, and it is removed in any case.

    A failure at any point leaves the old result readable. The new result begins when `per_user.parquet` takes its
    place: until then a reader of both files sees that the summary is not of this `per_user` and computes the one
    that is.
    """
    target = Path(folder)
    per_user, summary = target / "per_user.parquet", target / "summary.parquet"
    present = [path.name for path in (per_user, summary) if path.exists()]
    if present and not overwrite:
        raise FileExistsError(f"{target} already holds {present[0]}; pass overwrite=True to replace the result")
    there = target.exists()
    target.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".recdf-", dir=target))
    try:
        yield staging
        for path in (per_user, summary):
            with open(staging / path.name, "rb") as written:
                os.fsync(written.fileno())
        if summary.exists():
            shutil.copy2(summary, staging / "old")
        os.replace(staging / summary.name, summary)
        try:
            os.replace(staging / per_user.name, per_user)
        except BaseException:
            if (staging / "old").exists():
                os.replace(staging / "old", summary)
            else:
                summary.unlink()
            raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if not there and not any(target.iterdir()):
            target.rmdir()


def to_arrow(frame: pd.DataFrame, spec: dict[str, Any], result: str) -> Any:
    """The table that is written for a frame; the two tables of a result have the same id `result`."""
    plain = frame.copy(deep=False)
    plain.attrs = {}  # pandas would store attrs a second time
    try:
        table = pa.Table.from_pandas(plain, preserve_index=False)
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(f"parquet has no type for a key column: {error}; convert it, e.g. with .astype(str)") from None
    dtypes = {name: _describe(dtype) for name, dtype in frame.dtypes.items()}
    own = {SPEC: json.dumps(spec), DTYPES: json.dumps(dtypes), RESULT: result}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **own})


def _read(path: Path) -> tuple[pd.DataFrame, dict[str, Any], bytes]:
    """Read one table with the dtypes that it was written with, its spec, and the id of its result."""
    import pyarrow.parquet as pq

    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist; expected a folder written by Evaluation.to_parquet or recdf evaluate --out"
        )
    table = pq.read_table(path)
    metadata = table.schema.metadata or {}
    if not {SPEC, DTYPES, RESULT} <= set(metadata):
        raise DataError(f"{path} has no recdf metadata; expected a file written by Evaluation.to_parquet")
    spec = json.loads(metadata[SPEC])
    columns = {name: _restore(table[name], dtype) for name, dtype in json.loads(metadata[DTYPES]).items()}
    frame = pd.DataFrame(columns)
    frame.attrs["recdf"] = spec
    return frame, spec, metadata[RESULT]


def _describe(dtype: Any) -> dict[str, Any]:
    """JSON-safe description of a dtype, as far as the type of the parquet column does not tell it."""
    if isinstance(dtype, pd.CategoricalDtype):
        of = _describe(dtype.categories.dtype)
        # Parquet keeps a dictionary of strings, with its order and what is not used, but no other.
        values = None if pd.api.types.is_string_dtype(dtype.categories.dtype) else list(map(str, dtype.categories))
        return {"kind": "category", "of": of, "ordered": dtype.ordered, "values": values}
    if isinstance(dtype, pd.StringDtype):
        return {"kind": "string", "storage": dtype.storage, "nan": getattr(dtype, "na_value", pd.NA) is not pd.NA}
    if isinstance(dtype, pd.ArrowDtype):
        return {"kind": "arrow", "name": str(dtype.pyarrow_dtype)}
    return {"kind": "plain", "name": str(dtype)}


def _dtype(described: dict[str, Any]) -> Any:
    """The dtype of a description, or the nearest that the installed pandas has."""
    if described["kind"] == "string":
        if not described["nan"]:
            return pd.StringDtype(described["storage"])
        return "str" if pd.__version__ >= "3" else "object"
    if described["kind"] == "arrow":
        return pd.ArrowDtype(pa.type_for_alias(described["name"]))
    return described["name"]


def _restore(column: pa.ChunkedArray, described: dict[str, Any]) -> pd.Series:
    if described["kind"] == "arrow":
        return pd.Series(pd.arrays.ArrowExtensionArray(column))
    if described["kind"] != "category":
        return column.to_pandas().astype(_dtype(described))
    found, values = column.to_pandas(), described["values"]
    categories = found.cat.categories if values is None else pd.Index(values, dtype=object)
    return found.astype(pd.CategoricalDtype(categories.astype(_dtype(described["of"])), described["ordered"]))


def read_tables(folder: Any) -> Tables:
    """Read the two tables and the spec that were written together to a folder."""
    from .summary import summarize

    per_user, spec, result = _read(Path(folder) / "per_user.parquet")
    summary, _, of_result = _read(Path(folder) / "summary.parquet")
    if of_result != result:  # writing stopped before `per_user.parquet` took its place
        summary = summarize(per_user, by=spec["by"])
    return Tables(per_user, summary, spec)
