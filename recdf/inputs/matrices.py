"""Matrices as long frames: sparse ones of SciPy, and arrays with the k best items of each user."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError, OrderWarning, examples, kind_of, warn_user


def from_sparse(
    matrix: Any,
    *,
    users: Any = None,
    items: Any = None,
    user_col: str = "user_id",
    item_col: str = "item_id",
    value_name: str | None = None,
) -> pd.DataFrame:
    """Turn a sparse matrix of users by items into a long frame.

    Parameters
    ----------
    matrix : sparse array or matrix of SciPy
        A row per user and a column per item, in any format.
    users, items : list, array, Series or Index, optional
        Labels of the rows and of the columns, each once. Default: their positions.
    user_col, item_col : str
        Names of the two id columns.
    value_name : str, optional
        Name of the column of the numbers. By default they stand in two columns, `relevance` and
        `score`, so that the frame can be `true` as well as `pred`.

    Returns
    -------
    DataFrame
        One row per stored entry, user by user. An entry that is stored as 0 is a row too: it is
        judged and not relevant in `true`, and recommended with score 0 in `pred`. Entries that
        stand twice are added, as SciPy does. A user without entries has no row.

    Raises
    ------
    TypeError
        If it is no sparse matrix, or has no two dimensions.
    DataError
        If labels stand twice, or if there are not as many as rows or columns.

    Examples
    --------
    >>> import recdf as rd
    >>> from scipy.sparse import csr_array
    >>> scores = csr_array([[0, 0.9, 0.4], [0.7, 0, 0]])
    >>> rd.logs.from_sparse(
    ...     scores, users=["ann", "bob"], items=["tea", "jam", "mug"], value_name="score"
    ... )
      user_id item_id  score
    0     ann     jam    0.9
    1     ann     mug    0.4
    2     bob     tea    0.7
    """
    if not hasattr(matrix, "tocsr") or matrix.ndim != 2:
        raise TypeError(
            f"matrix is {kind_of(matrix)}; expected a sparse matrix of SciPy with a row per user"
        )
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    user = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    found = {user_col: _labelled(user, users, "users", rows.shape[0])}
    found[item_col] = _labelled(rows.indices.astype(np.int64), items, "items", rows.shape[1])
    number = rows.data.astype(np.float64) if rows.data.dtype == bool else rows.data
    return pd.DataFrame(
        found | dict.fromkeys([value_name] if value_name else ["relevance", "score"], number)
    )


def from_top_k(
    top: Any,
    scores: Any = None,
    *,
    users: Any = None,
    items: Any = None,
    user_col: str = "user_id",
    item_col: str = "item_id",
) -> pd.DataFrame:
    """Turn an array with the best items of each user into a long frame, as `implicit` and Faiss
    give them.

    Parameters
    ----------
    top : array of two dimensions
        A row per user: the positions of its items in `items`, best first, or without `items` the
        item ids themselves. A place that is −1, null or masked holds no item.
    scores : array, optional
        The score of each place; the largest ranks first, whatever the order of the columns.
    users : list, array, Series or Index, optional
        Labels of the rows, each once. Default: their positions.
    items : list, array, Series or Index, optional
        Labels of the items, each once.
    user_col, item_col : str
        Names of the two id columns.

    Returns
    -------
    DataFrame
        One row per place with an item: the ids, and `score`, or without scores `rank` from 1 on,
        which are the numbers of the columns.

    Raises
    ------
    TypeError
        If an array has not two dimensions, or if positions are no integers.
    DataError
        If the shapes differ, a position is outside the labels, or labels stand twice or are too
        many or too few.

    Warns
    -----
    OrderWarning
        If the scores rise along every row, as distances do.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.logs.from_top_k([[2, 0], [1, -1]], users=["ann", "bob"], items=["tea", "jam", "mug"])
      user_id item_id  rank
    0     ann     mug     1
    1     ann     tea     2
    2     bob     jam     1
    """
    top = np.ma.asarray(top)
    if top.ndim != 2:
        raise TypeError(
            f"top has {top.ndim} dimensions; expected two: a row per user, and a column per rank"
        )
    place, there = np.asarray(top.data), ~np.ma.getmaskarray(top) & ~pd.isna(top.data)
    if place.dtype.kind in "iu":
        if (bad := there & (place < -1)).any():
            raise DataError(
                f"top holds negative positions ({examples(place[bad])}); only -1 stands for no item"
            )
        there &= place != -1
    elif items is not None or place.dtype.kind not in "OUST":
        raise TypeError(
            f"top holds {place.dtype} values; expected positions of items, which are integers"
        )
    user, rank = np.nonzero(there)
    frame = pd.DataFrame({user_col: _labelled(user, users, "users", len(top))})
    frame[item_col] = _labelled(place[there], items, "items")
    if scores is None:
        return frame.assign(rank=rank + 1)
    score: Any = np.ma.asarray(scores, np.float64).filled(np.nan)
    if score.shape != top.shape:
        raise DataError(
            f"scores have the shape {score.shape}, and top has {top.shape}; expected the same"
        )
    steps = np.diff(np.where(there, score, np.nan), axis=1)
    if (steps > 0).any() and not (steps < 0).any():
        warn_user(
            "scores rise along the rows of top; if they are distances, pass scores=-scores",
            OrderWarning,
        )
    return frame.assign(score=score[there])


def _labelled(places: np.ndarray, labels: Any, name: str, n: int | None = None) -> Any:
    """Return the labels at some places, or the places if there are none."""
    if labels is None:
        return places
    if isinstance(labels, dict):
        raise TypeError(
            f"{name} is a mapping; expected the labels in a list, in the order of the positions"
        )
    given = pd.Series(labels).reset_index(drop=True)
    needed = places.max(initial=-1) + 1 if n is None else n
    if len(given) < needed or (n is not None and len(given) > n):
        raise DataError(
            f"{name} holds {len(given):,} labels for {needed:,}; expected one for each",
            argument=name,
        )
    if given.duplicated().any():
        raise DataError(
            f"{name} holds labels twice ({examples(given[given.duplicated()])}); expected each once"
        )
    return given.take(places).reset_index(drop=True)
