"""What is written into a log before an estimate: the target policy of a recommender, and a reward
model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ColumnError, DataError, OptionError, RecdfWarning, warn_user
from ..inputs.codes import check_kinds, encode_integers, encode_keys, known_ids
from ..inputs.constraints import NONE, POSITIVE, a_number, check_value, either
from ..inputs.frames import as_frame, column, read_numbers
from ..inputs.ids import read_ids
from ..inputs.options import Options, as_columns
from ..inputs.sorting import distinct
from ..inputs.true_and_pred import order_source
from ..stats.numbers import Floats
from .read_log import (
    SUM_ROUNDING,
    log_frame,
    log_key_codes,
    read_floats,
    read_probabilities,
    split_groups,
)
from .rows import IntCodes, layout_of

# ------------------------------------------------------------------------------------------
# `target_from_recs`: recommendations of a deterministic recommender as a target policy.


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


# ------------------------------------------------------------------------------------------
# `reward_table`: a smoothed mean reward per item as the reward model of dm and the dr family.


# Rounded probabilities of many candidates may miss 1 by this much.
LEAST_MISSING = 1e-3

ADDED = ("q_logged", "q_target", "target_mass")


def reward_table(
    log: Any,
    *,
    candidates: Any,
    by: str | Sequence[str] = ("item_id", "position"),
    prior: float = 50,
    folds: int = 5,
    fold_by: str | Sequence[str] | None = "user_id",
    reward_col: str = "reward",
    target_col: str = "target_propensity",
) -> pd.DataFrame:
    """Add the columns of a reward model to a log: smoothed mean rewards, each row's from the other
    folds.

    Formula
    -------
    q(cell) = (Σr + prior·m)/(n + prior) over the rows of the cell in the other folds, m their mean
    reward. q_logged = q(cell of the row), q_target = Σ_a π_e(a)·q(cell of a) over the candidates a
    of the row.

    Parameters
    ----------
    log : DataFrame, or any object with the Arrow stream interface
        One row per item that was shown.
    candidates : DataFrame
        Items that the target policy may show, with its probability in `target_col`. Columns that
        are also in the log say for which of its rows a candidate is: `item_id, position` for a
        policy that looks at the position alone, `user_id, item_id` for a personal one.
    by : list of str, default ("item_id", "position")
        Columns of a cell of the model, the item id first.
    prior : float, default 50
        Rows that the mean reward is worth in every cell.
    folds : int, default 5
        Number of parts of the log. The model of a part is made of the other parts. With 1 there is
        one model of all rows, so that a row's own reward leaks into its q_logged.
    fold_by : str or list of str or None, default "user_id"
        Key whose rows stay in one fold. None, for rows without a key, makes only `folds=1`
        possible.
    reward_col, target_col : str
        Column of the reward in the log, and of the probability in `candidates`.

    Returns
    -------
    DataFrame
        The log in its order, with `q_logged`, `q_target`, and `target_mass`: the sum of π_e over
        the candidates of the row, which is 1 unless candidates are missing.

    Warns
    -----
    RecdfWarning
        If probabilities of a row's candidates sum to less than 1: candidates are missing, or those
        of another policy.

    Raises
    ------
    ColumnError, NullKeyError, IdTypeError
        If a column is missing, a key is null, or ids of the frames can never match.
    DataError
        If probabilities of a row's candidates sum to more than 1, or a row has no candidate.
    OptionError
        If `prior` is negative or `folds` below 1.

    Notes
    -----
    Use it as a quick model: dr is right whenever the propensities are, whatever the model, and its
    interval is narrow where the model is good. With a model of your own, write `q_logged` and
    `q_target` yourself, out of fold.

    References
    ----------
    Dudík, Langford and Li (2011), "Doubly robust policy evaluation and learning".

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> log = pd.DataFrame(
    ...     {"user_id": [1, 2, 3, 4], "item_id": ["a", "a", "b", "b"], "reward": [1, 1, 0, 0]}
    ... )
    >>> uniform = pd.DataFrame({"item_id": ["a", "b"], "target_propensity": [0.5, 0.5]})
    >>> rd.ope.reward_table(log, candidates=uniform, by="item_id", prior=2, folds=1)[
    ...     ["q_logged", "q_target"]
    ... ]
       q_logged  q_target
    0      0.75       0.5
    1      0.75       0.5
    2      0.25       0.5
    3      0.25       0.5
    """
    frame, offered = (
        log_frame(log),
        log_frame(candidates, "candidates", "one row per item that may be shown"),
    )
    names = as_columns(by) if isinstance(by, str) else list(by)
    _check_reward_options(frame, names, prior, folds, fold_by)
    what = "the target policy's probability"
    column(offered, target_col, "candidates", suggest=())
    target = read_probabilities(offered, target_col, zero=True, what=what, role="candidates")
    reward = read_floats(frame, reward_col).astype(np.float64, copy=False)
    fold = _folds(frame, as_columns(fold_by), folds)
    context = [
        name
        for name in offered.columns
        if name in frame.columns and name not in (names[0], target_col, reward_col)
    ]
    logged, of_row, pairs = _fit_cells(
        frame, offered, names, context, fold, folds, reward, float(prior)
    )
    expected, mass = _expected_reward(of_row, pairs, target, context)
    _warn_of_missing_mass(mass)
    return frame.reset_index(drop=True).assign(q_logged=logged, q_target=expected, target_mass=mass)


def _warn_of_missing_mass(mass: Floats) -> None:
    """Warn where the candidates of a row are not all that the target policy shows."""
    short = mass < 1 - LEAST_MISSING
    if short.any():
        warn_user(
            "the target's probabilities of the candidates sum to less than 1 in "
            f"{np.count_nonzero(short):,} of {len(mass):,} rows of log (from {mass.min():.3g}; see "
            "target_mass): what is missing counts as earning nothing in q_target. Give all items "
            "that the target policy may show, or probabilities that sum to 1",
            RecdfWarning,
        )


def _check_reward_options(
    frame: pd.DataFrame, names: list[str], prior: Any, folds: Any, fold_by: Any
) -> None:
    if not names:
        raise OptionError(
            "by is empty; expected the item id first, then what else tells rewards apart"
        )
    check_value("prior", prior, a_number(0))
    check_value("folds", folds, POSITIVE)
    if fold_by is None and folds > 1:
        raise OptionError(
            f"⟦fold_by=None⟧ and ⟦folds={folds}⟧: name the key that stays in one fold, or pass "
            "⟦+folds=1⟧"
        )
    there = [name for name in ADDED if name in frame.columns]
    if there:
        raise DataError(
            f"log already has a column {there[0]!r}; drop or rename it, so that it is not "
            "overwritten"
        )


def _folds(frame: pd.DataFrame, names: list[str], folds: int) -> IntCodes:
    """Fold of every row: keys in the order of their ids are dealt to the folds one after the
    other."""
    if folds == 1:
        return np.zeros(len(frame), np.int64)
    keys = log_key_codes(
        frame, names, "fold_by", "pass ⟦+fold_by=None⟧, ⟦+folds=1⟧ for one model", ordered=True
    )
    present = distinct(keys.codes)
    if len(present) < folds:
        raise OptionError(
            f"⟦folds={folds}⟧, but {names} has {len(present)} values; expected at least one a fold"
        )
    return np.searchsorted(present, keys.codes) % folds


def _fit_cells(
    frame: pd.DataFrame,
    offered: pd.DataFrame,
    names: list[str],
    context: list[str],
    fold: IntCodes,
    folds: int,
    reward: Floats,
    prior: float,
) -> tuple[Floats, IntCodes, pd.DataFrame]:
    """Fit cells per fold and predict. Cells are coded over the log and its candidates together.

    Returns the prediction and the context of every row, and pairs of a context of the log and one
    of its candidates with their predictions.
    """
    item = names[0]
    column(offered, item, "candidates")
    check_kinds(
        [read_ids(frame[item], f"log[{item!r}]"), read_ids(offered[item], f"candidates[{item!r}]")]
    )
    # Distinct rows of what a prediction for all candidates depends on: context, the rest of the
    # cell, and the fold.
    rest = [name for name in names[1:] if name not in context]
    for name in (*context, *rest):
        column(frame, name, "log")
    distinct_of = frame[[*context, *rest]].reset_index(drop=True).assign(**{"": fold})
    row_context = (
        distinct_of.groupby(list(distinct_of.columns), sort=False, dropna=False).ngroup().to_numpy()
    )
    distinct = distinct_of.iloc[np.unique(row_context, return_index=True)[1]].reset_index(drop=True)
    distinct["context row"] = np.arange(len(distinct))
    listed = offered[[*context, item]].reset_index(drop=True)
    listed["candidate row"] = np.arange(len(listed))
    pairs = distinct.merge(listed, on=context) if context else distinct.merge(listed, how="cross")
    cells = pd.concat([frame[names].reset_index(drop=True), pairs[names]], ignore_index=True)
    cell = cells.groupby(names, sort=False, dropna=False).ngroup().to_numpy()
    n_cells = int(cell.max()) + 1
    predicted = _smoothed(cell[: len(frame)], n_cells, fold, folds, reward, prior)
    value = predicted[pairs[""].to_numpy(), cell[len(frame) :]]
    return (
        predicted[fold, cell[: len(frame)]],
        row_context,
        pairs.assign(**{"predicted reward": value}),
    )


def _smoothed(
    cell: IntCodes, n_cells: int, fold: IntCodes, folds: int, reward: Floats, prior: float
) -> Floats:
    """Smoothed mean reward per fold that is left out, and cell."""
    joint = fold * n_cells + cell
    n = np.bincount(joint, minlength=folds * n_cells).reshape(folds, n_cells).astype(np.float64)
    total = np.bincount(joint, reward, folds * n_cells).reshape(folds, n_cells)
    if folds > 1:
        n, total = n.sum(axis=0) - n, total.sum(axis=0) - total
    mean = total.sum(axis=1, keepdims=True) / n.sum(axis=1, keepdims=True)
    if prior == 0:  # a cell without rows in the other folds has nothing but the mean
        return np.asarray(np.where(n > 0, total / np.maximum(n, 1), mean))
    return np.asarray((total + prior * mean) / (n + prior))


def _expected_reward(
    of_row: IntCodes, pairs: pd.DataFrame, target: Floats, context: list[str]
) -> tuple[Floats, Floats]:
    """Per row of the log: Σ π·q over its candidates, and Σ π."""
    of_pair, share = pairs["context row"].to_numpy(), target[pairs["candidate row"].to_numpy()]
    n = int(of_row.max()) + 1
    mass = np.bincount(of_pair, share, n).astype(np.float64, copy=False)
    value = np.bincount(of_pair, share * pairs["predicted reward"].to_numpy(), n).astype(
        np.float64, copy=False
    )
    what = f"candidates of one {', '.join(context)}" if context else "candidates"
    if (mass > 1 + SUM_ROUNDING).any():
        raise DataError(
            f"probabilities of the {what} sum to more than 1 in "
            f"{np.count_nonzero(mass > 1 + SUM_ROUNDING):,} cases (up to {mass.max():.6g}); give "
            "the columns of the log that say for which rows a candidate is"
        )
    none = np.bincount(of_pair, minlength=n)[of_row] == 0
    if none.any():
        raise DataError(
            f"{np.count_nonzero(none):,} of {len(none):,} rows of log have no candidate with their "
            f"{', '.join(context)}; add their candidates or drop these rows"
        )
    if not (mass > 0).any():
        raise DataError("all probabilities of the candidates are 0; nothing can be estimated")
    return value[of_row], mass[of_row]
