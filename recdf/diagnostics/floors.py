"""Levels beside a metric: what the most popular items reach, and what the best order of the given items reaches.

Contract: each level is a metric of lists that no model made, computed by the same code as the metric of a model.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
import pandas as pd

from ..errors import RecdfWarning
from ..evaluation.evaluate import EvaluateArguments, evaluate, takes_evaluate_arguments
from ..inputs.codes import encode, encode_keys, first_rows, known_ids
from ..inputs.frames import as_frame
from ..inputs.options import Options, as_columns
from ..inputs.true_and_pred import gains, read_relevance, relevance_source
from ..metrics.call import Call
from ..metrics.metric import Metric
from ..stats.numbers import Floats
from ..tables.shown_frames import AnyFrame

Metrics = str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric]
BEST_GAIN = "recdf_gain"  # column of scores that order a list by its gains


class Levels(pd.DataFrame, metaclass=AnyFrame):
    """A tidy table of levels, one row per metric and k; `.per_user` has the level of each list."""

    _metadata: ClassVar[list[str]] = ["per_user"]
    per_user: pd.DataFrame


def levels_of(rows: Any, per_user: pd.DataFrame) -> Levels:
    found = Levels(rows)
    found.per_user = per_user
    return found


# ------------------------------------------------------------------------------------- rows of the same list and item


class PairCodes(NamedTuple):
    """Lists and items of several frames as codes, which are the same where the ids are."""

    users: dict[str, np.ndarray]
    items: dict[str, np.ndarray]
    n_users: int
    n_items: int

    def pair(self, role: str) -> np.ndarray:
        """One number for the list and the item of each row."""
        pairs: np.ndarray = self.users[role].astype(np.int64) * self.n_items + self.items[role]
        return pairs

    def found(self, role: str, other: str) -> np.ndarray:
        """Tell of each row whether another frame has its list and item."""
        near = np.zeros(self.n_users, bool)
        near[self.users[role]] = True
        return is_among(self.pair(role), self.pair(other)[near[self.users[other]]])


def is_among(numbers: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Tell which numbers are among others, by hashes: `np.isin` sorts both, which takes ten times as long."""
    found: np.ndarray = pd.Series(numbers).isin(others).to_numpy()
    return found


def pair_codes(frames: Mapping[str, pd.DataFrame], keys: Sequence[str], item_col: str) -> PairCodes:
    """Code lists and items of frames together; a frame may lack the item, as lists do, or the keys, as items do."""
    keyed = {role: one for role, one in frames.items() if role != "items"}
    held = {role: one for role, one in frames.items() if role != "lists"}
    users, n_users = encode_keys([[known_ids(one, role, key) for key in keys] for role, one in keyed.items()])
    items = encode([known_ids(one, role, item_col) for role, one in held.items()])
    by_role = dict(zip(keyed, [one.all() for one in users], strict=True))
    return PairCodes(by_role, dict(zip(held, items.codes, strict=True)), n_users, items.n)


def with_keys(data: Any, role: str, options: Options) -> pd.DataFrame:
    """Return a frame of pairs, without the rows that `null_keys="drop"` leaves out."""
    frame = as_frame(data, role, options.user_col, options.item_col)
    if options.null_keys != "drop":
        return frame
    there = [name for name in (*as_columns(options.user_col), options.item_col) if name in frame.columns]
    return frame[frame[there].notna().all(axis=1)]


def row_gains(true: pd.DataFrame, options: Options) -> Floats:
    """Return the gain of each row of `true`."""
    name = relevance_source(true, options)
    return np.ones(len(true)) if name is None else gains(read_relevance(true, name, options), options)


def list_codes(lists: pd.DataFrame, frames: Mapping[str, pd.DataFrame], options: Options) -> dict[str, np.ndarray]:
    """Return the place among some lists of the list of each row, -1 for another list."""
    keys, roles = as_columns(options.user_col), ["lists", *frames]
    tables = [lists, *frames.values()]
    users, n = encode_keys(
        [[known_ids(one, role, key) for key in keys] for role, one in zip(roles, tables, strict=True)]
    )
    place = first_rows(users[0].all(), n)
    return {role: place[own.all()] for role, own in zip(frames, users[1:], strict=True)}


# ------------------------------------------------------------------------------------------------ ceiling, popularity


@takes_evaluate_arguments
def ceiling(
    true: Any, pred: Any, metrics: Metrics, k: int | Sequence[int] = 10, **arguments: Unpack[EvaluateArguments]
) -> Levels:
    """Return the metrics of the best order of the items that each list holds: what a better ranking could reach.

    The whole list of `pred` counts, also below k, so that long lists of candidates say what a second stage can make of
    them. The recall of all candidates is `recall` at a k that no list exceeds.

    Parameters
    ----------
    true : DataFrame, mapping or Arrow stream
        As for `evaluate`.
    pred : DataFrame, mapping or Arrow stream
        As for `evaluate`; scores and ranks are not read. Each list is ordered by descending gain.
    {metrics}
    {side_tables}
    {options}

    Returns
    -------
    DataFrame
        The `by` columns, `metric`, `k`, `value`, `n` (lists with a value). Its attribute `per_user` has the ceiling of
        each list.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError
        As for `evaluate`.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.ceiling({"u": ["a", "b"]}, {"u": ["x", "y", "a"]}, ["ndcg", "recall"], k=2)
       metric  k     value  n
    0    ndcg  2  0.613147  1
    1  recall  2  0.500000  1
    """
    options = Call.from_arguments(ceiling, arguments, true).options
    keys, by = as_columns(options.user_col), as_columns(options.by)
    true = with_keys(true, "true", options)
    pred = with_keys(pred, "pred", options)
    shared = keys + [name for name in by if options.by_in_true and name in true.columns]
    codes = pair_codes({"true": true, "pred": pred}, shared, options.item_col)
    order = np.lexsort((row_gains(true, options), codes.pair("true")))  # the best of equal pairs comes last
    pairs, gain = codes.pair("true")[order], row_gains(true, options)[order]
    place = np.searchsorted(pairs, codes.pair("pred"), side="right") - 1
    hit = (place >= 0) & (np.append(pairs, -1)[place] == codes.pair("pred"))
    best = pred.assign(**{BEST_GAIN: np.where(hit, np.append(gain, 0.0)[place], 0.0)})
    given: dict[str, Any] = {**arguments, "score_col": BEST_GAIN, "rank_col": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecdfWarning)
        found = evaluate(true, best, metrics, k, **given)
    return levels_of(found.summary[[*by, "metric", "k", "value", "n"]], found.per_user)


def popular_lists(users: np.ndarray, items: np.ndarray, n_users: int, popular: np.ndarray, k: int) -> list[np.ndarray]:
    """Return lists of the k most popular items less those of the user's own rows, as user and item of each row.

    `users` and `items` are the codes of the user's rows, and `popular` has the codes of items, the most popular first.
    A list is ready when so many items from the top are not its user's; for the others, more items are looked at.
    """
    place = np.full(max(items.max(initial=-1), popular.max(initial=-1)) + 1, len(popular))
    place[popular] = np.arange(len(popular))
    rank_of_row, left, parts, depth = place[items], np.arange(n_users), [], 0
    while len(left) and depth < len(popular):
        depth = min(max(2 * k, 4 * depth), len(popular))
        row_of = np.full(n_users, -1)
        row_of[left] = np.arange(len(left))
        near = (rank_of_row < depth) & (row_of[users] >= 0)
        fresh = np.ones((len(left), depth), bool)
        fresh[row_of[users[near]], rank_of_row[near]] = False
        count = np.cumsum(fresh, axis=1, dtype=np.int32)
        ready = (count[:, -1] >= k) | (depth == len(popular))
        who, rank = np.nonzero(fresh & (count <= k) & ready[:, None])
        parts.append((left[who], popular[rank]))
        left = left[~ready]
    return [np.concatenate(one) for one in zip(*parts, strict=True)] if parts else [np.zeros(0, np.int64)] * 2
