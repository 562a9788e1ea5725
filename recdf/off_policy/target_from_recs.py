"""`target_from_recs`: recommendations of a deterministic recommender as a target policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ColumnError, DataError, OptionError
from ..inputs.codes import encode_integers, encode_keys, known_ids
from ..inputs.constraints import NONE, POSITIVE, check_value, either
from ..inputs.frames import as_frame, column, read_numbers
from ..inputs.options import Options, as_columns
from ..inputs.true_and_pred import order_source
from ..stats.numbers import Floats
from .log_columns import log_frame, read_floats, split_groups
from .rows import IntCodes
from .slates import layout_of

TARGET = "target_propensity"


def target_from_recs(
    log: Any,
    pred: Any,
    *,
    on: str | Sequence[str] = ("user_id", "item_id"),
    position_col: str | None = None,
    k: int | None = None,
    by: str | Sequence[str] | None = None,
) -> pd.DataFrame:
    """Add to a log the 0/1 probabilities with which a deterministic recommender would have shown
    the same items.

    Formula
    -------
    target_propensity = 1 if the row's (user, item) is a row of `pred` and, with `position_col`, its
    rank there is the position of the log; else 0.

    Parameters
    ----------
    log : DataFrame, or any object with the Arrow stream interface
        One row per item that was shown.
    pred : DataFrame or mapping
        Recommended items, as for `evaluate`: ranked by a column `rank`, else `score`, else in the
        order of the rows.
    on : list of str, default ("user_id", "item_id")
        Columns of both frames that are matched: the list key, and the item id last.
    position_col : str, optional
        Position of the log, 1 for the top: an item counts only if `pred` ranks it there.
    k : int, optional
        Use only the first k items of every list. A log with one item per decision is compared with
        `k=1`.
    by : str or list of str, optional
        Columns of `pred` that tell recommenders apart. The result then holds the whole log once for
        each, with these columns: pass the same `by` to `ope_estimate`.

    Returns
    -------
    DataFrame
        The log in its order (once per value of `by`) and `target_propensity`, 0.0 or 1.0.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError
        If a column is missing, ids of the two frames can never match, or an id is null.
    DataError
        If the log already has a column `target_propensity`, or nothing of the log is in `pred`.

    Notes
    -----
    Use it to evaluate a recommender on rows where the logging policy happened to agree with it.
    Only these rows count, so rewards run out soon: look at `trust`. The list of `pred` must be as
    long as what the log shows per decision, else the weights do not have mean 1 and the flag
    `mean_weight` says so.

    References
    ----------
    Li et al. (2011), replay, "Unbiased offline evaluation of contextual-bandit-based news article
    recommendation".

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> log = pd.DataFrame(
    ...     {
    ...         "user_id": [1, 1, 2],
    ...         "item_id": ["a", "b", "a"],
    ...         "reward": [1, 0, 1],
    ...         "propensity": 0.5,
    ...     }
    ... )
    >>> pred = pd.DataFrame(
    ...     {"user_id": [1, 1, 2], "item_id": ["a", "b", "c"], "score": [0.9, 0.1, 0.5]}
    ... )
    >>> rd.ope.target_from_recs(log, pred, k=1)["target_propensity"].tolist()
    [1.0, 0.0, 0.0]
    """
    frame = log_frame(log)
    keys = as_columns(on) if isinstance(on, str) else list(on)
    if len(keys) < 2:
        raise OptionError(
            f"⟦on={on!r}⟧; expected the list key and the item id, such as ('user_id', 'item_id')"
        )
    if TARGET in frame.columns:
        raise DataError(
            f"log already has a column {TARGET!r}; drop or rename it, so that it is not overwritten"
        )
    check_value("k", k, either(POSITIVE, NONE))
    recs = as_frame(pred, "pred", keys[0] if len(keys) == 2 else keys[:-1], keys[-1])
    clash = [name for name in as_columns(by) if name in frame.columns]
    if clash:
        raise ColumnError(
            f"⟦by={clash[0]!r}⟧ is a column of pred and of log; rename it in one of them"
        )
    groups = split_groups(recs, by, [TARGET], "pred")
    pairs, lists = _pair_codes(frame, recs, keys)
    ranks = (
        _ranks(recs, keys, as_columns(by), lists)
        if k is not None or position_col is not None
        else None
    )
    position = None if position_col is None else read_floats(frame, position_col)
    found = []
    for g, some in enumerate(groups.rows):
        chosen = np.arange(len(recs)) if some is None else some
        if k is not None and ranks is not None:
            chosen = chosen[ranks[chosen] <= k]
        target = _among_chosen(pairs, chosen, ranks if position_col is not None else None, position)
        part = frame.reset_index(drop=True).assign(**{TARGET: target})
        for at, name in enumerate(groups.labels.columns):
            label = groups.labels[name].iloc[[g]].repeat(len(part)).reset_index(drop=True)
            part.insert(at, name, label)
        found.append(part)
    result = found[0] if len(found) == 1 else pd.concat(found, ignore_index=True)
    if not result[TARGET].any():
        raise DataError(
            f"no row of log is recommended by pred (⟦on={keys}⟧): nothing can be estimated; "
            "compare the ids, the positions and k"
        )
    return result


def _pair_codes(
    frame: pd.DataFrame, recs: pd.DataFrame, keys: list[str]
) -> tuple[tuple[IntCodes, IntCodes], IntCodes]:
    """One code per (key, item) in the log and in `pred`, and one per list of `pred`."""
    frames = [("log", frame), ("pred", recs)]
    ids = [[known_ids(one, role, name) for role, one in frames] for name in keys]
    pairs, _ = encode_keys(list(zip(*ids, strict=True)))
    lists, _ = encode_keys(list(zip(*ids[:-1], strict=True)))
    return (pairs[0].all(), pairs[1].all()), lists[1].all().astype(np.int64)


def _ranks(recs: pd.DataFrame, keys: list[str], by: list[str], lists: IntCodes) -> IntCodes:
    """Rank of every row of `pred` in its list: by rank, descending score, or row; equal ones in the
    order of rows."""
    order = order_source(recs, Options(user_col=keys[:-1], item_col=keys[-1], by=by or None))
    if by:
        groups = split_groups(recs, by, [], "pred")
        lists = (
            encode_integers([lists * max(len(groups.rows), 1) + groups.codes(len(recs))])
            .columns[0]
            .all()
        )
    if order["column"] is None:
        sorted_rows = np.argsort(lists, kind="stable")
    else:
        number = read_numbers(column(recs, order["column"], "pred"), f"pred[{order['column']!r}]")
        if number.dtype.kind == "f" and np.isnan(number).any():
            raise DataError(
                f"pred[{order['column']!r}] is null in {np.isnan(number).sum():,} rows; drop these "
                "rows"
            )
        if order["by"] != "rank":  # flipping an integer bit by bit cannot overflow
            number = -number if number.dtype.kind == "f" else np.invert(number)
        sorted_rows = np.lexsort((number, lists))
    ranks = np.empty(len(recs), np.int64)
    ranks[sorted_rows] = layout_of(lists[sorted_rows]).place + 1
    return ranks


def _among_chosen(
    pairs: tuple[IntCodes, IntCodes],
    chosen: IntCodes,
    ranks: IntCodes | None,
    position: Floats | None,
) -> Floats:
    """Which rows of the log are among the chosen rows of `pred`, at their position if it counts."""
    logged, recommended = pairs
    codes = recommended[chosen]
    table = np.full(int(max(logged.max(initial=-1), recommended.max(initial=-1))) + 1, -1.0)
    # The best rank of a repeated item is written last, and stays.
    place = np.zeros(len(chosen)) if ranks is None else ranks[chosen].astype(np.float64)
    backwards = np.argsort(-place, kind="stable")
    table[codes[backwards]] = place[backwards]
    found = table[logged]
    return ((found >= 0) if position is None else (found == position) & (found >= 0)).astype(
        np.float64
    )
