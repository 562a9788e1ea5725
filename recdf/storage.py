"""Results as parquet files that pandas, DuckDB, polars, Spark and pyarrow read, with the spec inside."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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

    with staged(folder, list(tables), overwrite=overwrite) as staging:
        for name, frame in tables.items():
            pq.write_table(to_arrow(frame, spec), staging / f"{name}.parquet")


def to_arrow(frame: pd.DataFrame, spec: dict[str, Any]) -> Any:
    """The table that is written for a frame, with the spec in its schema."""
    plain = frame.copy(deep=False)
    plain.attrs = {}  # pandas would store attrs a second time
    table = pa.Table.from_pandas(plain, preserve_index=False)
    return table.replace_schema_metadata({**(table.schema.metadata or {}), METADATA_KEY: json.dumps(spec).encode()})


@contextmanager
def staged(folder: Any, names: Sequence[str], *, overwrite: bool) -> Iterator[Path]:
    """A hidden folder to write `<name>.parquet` files to, which move into `folder` when all are complete."""
    target = Path(folder)
    present = [name for name in names if (target / f"{name}.parquet").exists()]
    if present and not overwrite:
        raise FileExistsError(f"{target} already holds {present[0]}.parquet; pass overwrite=True to replace the result")
    there = target.exists()
    target.mkdir(parents=True, exist_ok=True)
    # All files are complete on this disk before the first one takes its place.
    staging = Path(tempfile.mkdtemp(prefix=".recdf-", dir=target))
    try:
        yield staging
        for name in names:
            with open(staging / f"{name}.parquet", "rb") as written:
                os.fsync(written.fileno())
        for name in names:
            os.replace(staging / f"{name}.parquet", target / f"{name}.parquet")
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if not there and not any(target.iterdir()):
            target.rmdir()


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
            raise FileNotFoundError(f"{path} does not exist; expected a folder written by Evaluation.to_parquet")
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
