"""`read_parquet`: a stored result as an `Evaluation`."""

from __future__ import annotations

from typing import Any

from .evaluate import Evaluation as Evaluation
from .storage import read_tables

__all__ = ["read_parquet"]


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
        If a file holds no recdf result.

    Examples
    --------
    >>> import tempfile, recdf as rd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1").to_parquet(folder)
    ...     rd.read_parquet(folder).per_user
      user_id  n_true  n_pred  mrr@1
    0       u       1       1    1.0
    """
    return Evaluation(*read_tables(folder))
