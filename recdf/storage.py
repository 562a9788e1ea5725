"""Results as parquet files that pandas, DuckDB, polars, Spark and pyarrow read, with the spec inside."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from .errors import DataError

if TYPE_CHECKING:
    from .evaluate import Evaluation

__all__ = ["read_parquet"]

METADATA_KEY = b"recdf"


def write_evaluation(
    folder: Any, tables: Mapping[str, pd.DataFrame], spec: dict[str, Any], *, overwrite: bool = False
) -> None:
    """Write each table to `<folder>/<name>.parquet`; a failure leaves the folder as it was."""
    import pyarrow.parquet as pq  # costs import time that only reading and writing need

    target = Path(folder)
    present = [name for name in tables if (target / f"{name}.parquet").exists()]
    if present and not overwrite:
        raise FileExistsError(f"{target} already holds {present[0]}.parquet; pass overwrite=True to replace the result")
    target.mkdir(parents=True, exist_ok=True)
    # All files are complete on this disk before the first one takes its place.
    staging = Path(tempfile.mkdtemp(prefix=".recdf-", dir=target))
    try:
        for name, frame in tables.items():
            plain = frame.copy(deep=False)
            plain.attrs = {}  # pandas would store attrs a second time
            table = pa.Table.from_pandas(plain, preserve_index=False)
            metadata = {**(table.schema.metadata or {}), METADATA_KEY: json.dumps(spec).encode()}
            path = staging / f"{name}.parquet"
            pq.write_table(table.replace_schema_metadata(metadata), path)
            with open(path, "rb") as written:
                os.fsync(written.fileno())
        for name in tables:
            os.replace(staging / f"{name}.parquet", target / f"{name}.parquet")
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def read_parquet(folder: Any) -> Evaluation:
    """Read the result that `Evaluation.to_parquet` wrote.

    Parameters
    ----------
    folder : path
        The folder with `per_user.parquet` and `summary.parquet`.

    Returns
    -------
    Evaluation
        Equal to the one that was written, dtypes of ids included.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    DataError
        If the files hold no recdf result, or two different ones.

    Examples
    --------
    >>> import tempfile, recdf as rd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1").to_parquet(folder)
    ...     rd.read_parquet(folder).per_user
      user_id  n_true  n_pred  mrr@1
    0       u       1       1    1.0
    """
    import pyarrow.parquet as pq

    from .evaluate import Evaluation  # evaluate imports this module

    frames, specs = {}, []
    for name in ("per_user", "summary"):
        path = Path(folder) / f"{name}.parquet"
        if not path.exists():
            raise FileNotFoundError(
                f"{path} does not exist; expected a folder written by Evaluation.to_parquet or recdf evaluate --out"
            )
        table = pq.read_table(path)
        metadata = table.schema.metadata or {}
        if METADATA_KEY not in metadata:
            raise DataError(f"{path} has no recdf metadata; expected a file written by Evaluation.to_parquet")
        spec = json.loads(metadata[METADATA_KEY])
        frames[name] = table.to_pandas()
        frames[name].attrs["recdf"] = spec
        specs.append(spec)
    if specs[0] != specs[1]:
        raise DataError(f"{folder} mixes two results: per_user.parquet and summary.parquet have different specs")
    return Evaluation(frames["per_user"], frames["summary"], specs[0])
