"""What is written into a log before an estimate: the target policy of a recommender, and a reward
model; and propensities from popularity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..errors import ColumnError, DataError, IdTypeError, OptionError, RecdfWarning, warn_user
from ..inputs.codes import encode, encode_keys, first_rows, known_ids, refuse_nulls
from ..inputs.constraints import Positive, a_number
from ..inputs.door import checks_names
from ..inputs.frames import as_frame, column, read_numbers, read_values
from ..inputs.ids import IdColumn, read_by
from ..inputs.options import Options, as_columns
from ..inputs.true_and_pred import order_source
from ..judge.choices import Columns
from ..stats.numbers import Floats, Mask
from .read_log import (
    SUM_ROUNDING,
    log_frame,
    log_key_codes,
    read_probabilities,
    read_rewards,
    split_groups,
)
from .weighted_rows import IntCodes

# ------------------------------------------------------------------------------------------
# `target_from_recs`: recommendations of a deterministic recommender as a target policy.


TARGET = "target_propensity"


def _refuse_to_overwrite(frame: DataFrame, added: Sequence[str]) -> None:
    for name in added:
        if name in frame.columns:
            raise DataError(
                f"log already has a column {name!r}; drop or rename it, so that it is not "
                "overwritten"
            )


@checks_names
def target_from_recs(
    log: Any,
    pred: Any,
    *,
    on: Columns = ("user_id", "item_id"),
    position_col: str | None = None,
    k: Positive | None = None,
    by: Columns | None = None,
) -> DataFrame:
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
    keys = as_columns(on)
    if len(keys) < 2:
        raise OptionError(
            f"⟦on={on!r}⟧; expected the list key and the item id, such as ('user_id', 'item_id')"
        )
    _refuse_to_overwrite(frame, [TARGET])
    recs = as_frame(pred, "pred", keys[0] if len(keys) == 2 else keys[:-1], keys[-1])
    clash = [name for name in as_columns(by) if name in frame.columns]
    if clash:
        raise ColumnError(
            f"⟦by={clash[0]!r}⟧ is a column of pred and of log; rename it in one of them"
        )
    groups = split_groups(recs, by, [TARGET], "pred")
    ids = [
        [known_ids(one, role, name) for role, one in (("log", frame), ("pred", recs))]
        for name in keys
    ]
    pairs, n_pairs = encode_keys(list(zip(*ids, strict=True)))
    (_, lists), _ = encode_keys(list(zip(*ids[:-1], strict=True)))
    (logged, recommended), ranks = (one.all() for one in pairs), np.zeros(len(recs), np.int64)
    if k is not None or position_col is not None:
        options = Options(user_col=keys[:-1], item_col=keys[-1], by=as_columns(by) or None)
        by_list = lists.all().astype(np.int64) * len(groups.labels) + groups.codes
        order = order_source(recs, options)
        number = np.arange(len(recs))
        if (name := order["column"]) is not None:
            number = read_numbers(column(recs, name, "pred"), f"pred[{name!r}]")
            if n := np.count_nonzero(np.isnan(number)):
                raise DataError(f"pred[{name!r}] is null in {n:,} rows; drop these rows")
        # Equal scores are in the order of their rows.
        by_score = order["by"] == "score"
        ranks = pd.Series(number).groupby(by_list).rank("first", ascending=not by_score).to_numpy()
    position = None if position_col is None else read_values(frame, position_col, "log")
    if position is not None and (least := position.min()) < 1:
        raise DataError(
            f"log[{position_col!r}] begins at {least:g}, and ranks count from 1; add "
            f"{1 - least:g} to it"
        )
    found = []
    for some in groups.rows:
        chosen = np.arange(len(recs)) if some is None else some
        if k is not None:
            chosen = chosen[ranks[chosen] <= k]
        best = np.full(n_pairs, np.inf)
        np.minimum.at(best, recommended[chosen], ranks[chosen])  # of an item that is repeated
        found.append(best[logged] < np.inf if position is None else best[logged] == position)
    target = np.concatenate(found).astype(float)
    if not target.any():
        raise DataError(
            f"no row of log is recommended by pred (⟦on={keys}⟧): nothing can be estimated; "
            "compare the ids, the positions and k"
        )
    result = pd.concat([frame] * len(found), ignore_index=True).assign(**{TARGET: target})
    which = np.repeat(np.arange(len(found)), len(frame))
    return pd.concat([groups.labels.iloc[which].reset_index(drop=True), result], axis=1)


# ------------------------------------------------------------------------------------------
# `reward_table`: a smoothed mean reward per item as the reward model of dm and the dr family.


# Rounded probabilities of many candidates may miss 1 by this much.
LEAST_MISSING = 1e-3


@checks_names
def reward_table(
    log: Any,
    *,
    candidates: Any,
    by: Columns = ("item_id", "position"),
    prior: Annotated[float, a_number(0)] = 50,
    folds: Positive = 5,
    fold_by: Columns | None = "user_id",
    reward_col: str = "reward",
    target_col: str = "target_propensity",
) -> DataFrame:
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
    frame = log_frame(log)
    offered = log_frame(candidates, "candidates", "one row per item that may be shown")
    names = as_columns(by)
    if not names:
        raise OptionError(
            "by is empty; expected the item id first, then what else tells rewards apart"
        )
    if not as_columns(fold_by) and folds > 1:
        raise OptionError(
            f"⟦fold_by={fold_by}⟧ and ⟦folds={folds}⟧: name the key that stays in one fold, or "
            "pass ⟦+folds=1⟧"
        )
    _refuse_to_overwrite(frame, ["q_logged", "q_target", "target_mass"])
    what = "the target policy's probability"
    column(offered, target_col, "candidates", suggest=())
    target = read_probabilities(offered, target_col, zero=True, what=what, role="candidates")
    reward = read_rewards(frame, reward_col)
    fold: IntCodes = np.zeros(len(frame), np.int64)
    if folds > 1:  # keys in the order of their ids are dealt to the folds one after the other
        hint = "pass ⟦+fold_by=None⟧, ⟦+folds=1⟧ for one model"
        keys = log_key_codes(frame, as_columns(fold_by), "fold_by", hint, ordered=True)
        if keys.n < folds:
            raise OptionError(
                f"⟦folds={folds}⟧, but {as_columns(fold_by)} has {keys.n} values; expected at "
                "least one a fold"
            )
        fold = keys.codes % folds
    item = names[0]
    own = (names[0], target_col, reward_col)
    column(offered, item, "candidates")
    context = [name for name in offered.columns if name in frame.columns and name not in own]
    # Codes of all columns under their numbers, equal where the ids of the two frames are equal.
    numbers = {name: j for j, name in enumerate(dict.fromkeys([*names, *context]))}
    coded = DataFrame(index=range(len(frame)))
    listed = DataFrame({"target": target})
    for name, j in numbers.items():
        both = name == item or name in context
        frames = {"log": frame, "candidates": offered} if both else {"log": frame}
        codes = encode(_ids_of(name, frames, name == item)).codes
        coded[j] = codes[0]
        if both:
            listed[j] = codes[1]
    cell = [numbers[name] for name in dict.fromkeys(names)]
    on = [numbers[name] for name in context]
    # Distinct rows of what a prediction for all candidates depends on: context, the rest of the
    # cell, and the fold.
    rows = coded.drop(columns=numbers[item]).assign(fold=fold)
    of_row = rows.groupby([*rows], sort=False).ngroup().to_numpy()
    rows = rows.iloc[first_rows(of_row, of_row.max() + 1)]
    rows["context row"] = np.arange(len(rows))
    pairs = rows.merge(listed, on=on) if on else rows.merge(listed, how="cross")
    logged, predicted = _predicted(coded, pairs, cell, fold, folds, reward, prior)
    of_pair = pairs["context row"]
    share = pairs["target"]
    value, mass = (
        np.bincount(of_pair, of_each, len(rows)).astype(float)[of_row]
        for of_each in (share * predicted, share)
    )
    _check_mass(mass, np.bincount(of_pair, minlength=len(rows))[of_row] > 0, context)
    return frame.reset_index(drop=True).assign(q_logged=logged, q_target=value, target_mass=mass)


def _ids_of(name: str, frames: Mapping[str, DataFrame], is_item: bool) -> list[IdColumn]:
    """Return a key of the frames; what is no item may also be bools and fractions."""
    try:
        return [known_ids(frame, role, name) for role, frame in frames.items()]
    except IdTypeError:
        if is_item:
            raise
    columns = [column(frame, name, role) for role, frame in frames.items()]
    return [refuse_nulls(ids) for ids in read_by(columns, f"log[{name!r}]")]


def _predicted(
    coded: DataFrame,
    pairs: DataFrame,
    names: list[int],
    fold: IntCodes,
    folds: int,
    reward: Floats,
    prior: float,
) -> tuple[Floats, Floats]:
    """Return the smoothed mean reward of the other folds in the cell of each row of the log, and of
    each pair of one of its contexts and a candidate."""
    cells = pd.concat([coded[names], pairs[names]], ignore_index=True)
    cell = cells.groupby(names, sort=False).ngroup().to_numpy()
    own = cell[: len(coded)]
    others = cell[len(coded) :]
    n_cells = cell.max() + 1
    joint = fold * n_cells + own
    size = folds * n_cells
    n, total = (
        np.bincount(joint, of_each, size).astype(float).reshape(folds, n_cells)
        for of_each in (None, reward)
    )
    if folds > 1:
        n = n.sum(axis=0) - n
        total = total.sum(axis=0) - total
    mean = total.sum(axis=1, keepdims=True) / n.sum(axis=1, keepdims=True)
    smoothed = (total + prior * mean) / np.maximum(n + prior, 1e-300)
    if prior == 0:  # a cell without rows in the other folds has nothing but the mean
        smoothed = np.where(n > 0, smoothed, mean)
    return smoothed[fold, own], smoothed[pairs["fold"], others]


def _check_mass(mass: Floats, there: Mask, context: list[str]) -> None:
    """Refuse probabilities of candidates that are none, and warn where candidates are missing."""
    if n := np.count_nonzero(mass > 1 + SUM_ROUNDING):
        what = f"candidates of one {', '.join(context)}" if context else "candidates"
        raise DataError(
            f"probabilities of the {what} sum to more than 1 in {n:,} of {len(mass):,} rows of log "
            f"(up to {mass.max():.6g}); give the columns of the log that say for which rows a "
            "candidate is"
        )
    if n := np.count_nonzero(~there):
        raise DataError(
            f"{n:,} of {len(mass):,} rows of log have no candidate with their "
            f"{', '.join(context)}; add their candidates or drop these rows"
        )
    if not mass.any():
        raise DataError("all probabilities of the candidates are 0; nothing can be estimated")
    if n := np.count_nonzero(mass < 1 - LEAST_MISSING):
        warn_user(
            "the target's probabilities of the candidates sum to less than 1 in "
            f"{n:,} of {len(mass):,} rows of log (from {mass.min():.3g}; see "
            "target_mass): what is missing counts as earning nothing in q_target. Give all items "
            "that the target policy may show, or probabilities that sum to 1",
            RecdfWarning,
        )


# ------------------------------------------------------------------------------------------
# `popularity_propensity`: a stand-in where no propensities were logged.


@checks_names
def popularity_propensity(
    log: Any,
    *,
    item_col: str = "item_id",
    gamma: Annotated[float, a_number(above=-1)] = 1.5,
    floor: Annotated[float, a_number(0, 1)] = 0.0,
) -> DataFrame:
    """Guess from popularity how likely a relevant item was observed, where no propensities were
    logged.

    Formula
    -------
    p_i = (n_i/n_max)^((γ + 1)/2), and at least `floor`; n_i is the number of rows of item i, n_max
    the largest n_i.

    Parameters
    ----------
    log : DataFrame, or any object with the Arrow stream interface
        One row per interaction.
    item_col : str, default "item_id"
        Column of the item id.
    gamma : float, default 1.5
        Steepness of popularity in the log, above −1; fitted values in the literature lie between
        1.5 and 2.
    floor : float, default 0.0
        Least propensity, in [0, 1].

    Returns
    -------
    DataFrame
        One row per item, sorted by id: `item_col`, `n`, `propensity` in (0, 1].

    Raises
    ------
    ColumnError, NullKeyError, OptionError
        If a column is missing, an id is null, or an option is out of range.

    Notes
    -----
    Use it to weigh relevant items in ranking metrics against popularity bias: merge it to `true` on
    the item id, and pass `propensity_col="propensity"` to `evaluate`. Give `floor` where rare items
    would otherwise decide alone. Do not use it as `propensity` of `ope_estimate`: it is an
    assumption on observation, not the probability with which a policy showed an item.

    References
    ----------
    Yang et al. (2018), "Unbiased offline recommender evaluation for missing-not-at-random implicit
    feedback".

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> rd.ope.popularity_propensity(pd.DataFrame({"item_id": list("aaaab")}), gamma=1)
      item_id  n  propensity
    0       a  4        1.00
    1       b  1        0.25
    """
    frame = log_frame(log)
    if item_col in ("n", "propensity"):
        raise OptionError(
            f"⟦item_col={item_col!r}⟧ is also a column of the result; rename it in log"
        )
    hint = "name the column of the item id"
    codes, n_items = log_key_codes(frame, [item_col], "item_col", hint, ordered=True)
    n = np.bincount(codes)
    table = frame[[item_col]].iloc[first_rows(codes, n_items)].reset_index(drop=True)
    return table.assign(n=n, propensity=np.maximum((n / n.max()) ** ((gamma + 1) / 2), floor))
