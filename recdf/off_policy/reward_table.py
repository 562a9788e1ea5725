"""`reward_table`: a smoothed mean reward per item as the reward model of dm and the dr family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError, RecdfWarning, warn_user
from ..inputs.codes import check_kinds
from ..inputs.constraints import POSITIVE, a_number, check_value
from ..inputs.frames import column
from ..inputs.ids import read_ids
from ..inputs.options import as_columns
from ..inputs.sorting import distinct
from ..stats.numbers import Floats
from .log_columns import SUM_ROUNDING, log_frame, log_key_codes, read_floats, read_probabilities
from .rows import IntCodes

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
