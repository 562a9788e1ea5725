"""`rd.read`: one file or folder of any known format as a long frame."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pandas as pd

from ..errors import kind_of
from ..inputs.door import takes_columns
from ..inputs.options import Options, as_columns
from .file_sets import PathOfFormat, read_files


@takes_columns("user_col", "item_col", "by")
def read(
    path: Any,
    format: str | None = None,
    *,
    user_col: str | Sequence[str] | None = None,
    item_col: str | None = None,
    by: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> pd.DataFrame:
    """Read a file that another tool wrote to a long frame, which goes into `rd.evaluate` as `true`
    or `pred`.

    The command reads its files by the same rules, so `recdf evaluate --true test.qrels --pred
    bm25.run` needs no other step.

    Parameters
    ----------
    path : path
        A file, a folder, a quoted glob such as "runs/*.run", or an address that fsspec reads. Files
        may be compressed: .gz, .bz2 or .zst.
    format : str, optional
        Name of the format, such as "trec_run". By default it is recognised by the ending of the
        name and by what the file holds. docs/files.md lists all formats.
    user_col, item_col, by : str (or list of str for user_col and by), optional
        Columns of ids and labels in formats whose columns have no types (CSV), by default user_id
        and item_id. There an id column is of integers if all values are plain integers (7, not 007
        or 7.0), else it is text. Ids are text in formats that say so (TREC, RecBole's token, BEIR).

    Returns
    -------
    DataFrame
        One row per user and item, in the order of the file. Formats with columns of their own get
        the standard names user_id, item_id, and relevance, score or rank. CSV, JSON lines, parquet,
        Arrow and tables of Delta and Iceberg keep the names of their columns.

    Raises
    ------
    DataError
        If the format is not recognised, where the message shows the first line, or if the file
        cannot be read.
    OptionError
        If there is no format of that name.
    MissingExtraError
        If a table of Delta or Iceberg, or an address, needs a package that is not installed.
    FileNotFoundError
        If there is no such file.

    Notes
    -----
    A run of TREC is ordered by its scores, as trec_eval does. The ranks that it states are not
    read. For the values of trec_eval pass `like="trec_eval"` to `rd.evaluate`.

    Examples
    --------
    >>> import pathlib, tempfile, recdf as rd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = pathlib.Path(folder, "bm25.run")
    ...     _ = run.write_text("q1 Q0 d7 1 12.5 bm25\\nq1 Q0 d2 2 11.25 bm25\\n")
    ...     pred = rd.read(run)
    >>> pred[["user_id", "item_id", "score", "run"]]
      user_id item_id  score   run
    0      q1      d7  12.50  bm25
    1      q1      d2  11.25  bm25
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path is {kind_of(path)}; expected the path of a file or a folder")
    keys = [*as_columns(user_col or Options.user_col), item_col or Options.item_col]
    named = PathOfFormat(os.path.expanduser(os.fspath(path)), format)
    return read_files({"path": named}, keys, as_columns(by))["path"]
