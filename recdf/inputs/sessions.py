"""Sessions and lists: which rows of a log belong together, in which order, and which repeat an item.

Contract: users, items and lists are integer codes, times and positions are numbers; no label is known here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from .sorting import ascends, dense_codes, run_heads, stable_order

Repeats = Literal["first", "last", "each"]


def sessions_by_gap(keys: list[np.ndarray], time: np.ndarray, gap: float) -> np.ndarray:
    """Number the sessions of each user from 1: a session ends where more than `gap` passes before the next row.

    Parameters
    ----------
    keys : list of int arrays
        Code of the user of each row, and of whatever else separates sessions (the variant, say).
    time : array
        Time of each row, in any order.
    gap : int or float
        Longest pause within a session, in units of the times; a pause of exactly `gap` does not end it.
    """
    owner = keys[0] if len(keys) == 1 else dense_codes(keys)[0]
    order = time_order([owner], time)
    owner_there, time_there = owner[order], time[order]
    other_user = np.ones(len(order), bool)
    other_user[1:] = owner_there[1:] != owner_there[:-1]
    begins = other_user.copy()
    # A pause longer than the numbers of the clock can hold is one that ends a session.
    with np.errstate(over="ignore"):
        pause = time_there[1:] - time_there[:-1]
    begins[1:] |= (pause > gap) | (pause < 0)
    number = np.cumsum(begins)
    heads = np.flatnonzero(other_user)
    number -= np.repeat(number[heads] - 1, np.diff(np.append(heads, len(order))))
    session = np.empty(len(order), np.int64)
    session[order] = number
    return session


def time_order(keys: list[np.ndarray], time: np.ndarray | None) -> np.ndarray:
    """Rows by the keys, then by time, then as they stand."""
    return stable_order(keys if time is None or ascends(time) else [*keys, time])


class Ranking(NamedTuple):
    """Rank of each row within its list, from 1, how many lists there are, and what their positions look like.

    start : the smallest position · lists_with_holes : lists in which a position is left out between two others ·
    lists_with_ties : lists in which a position stands twice.
    """

    rank: np.ndarray
    n_lists: int
    start: float
    lists_with_holes: int
    lists_with_ties: int


def rank_lists(lists: np.ndarray, position: np.ndarray | None, time: np.ndarray | None) -> Ranking:
    """Rank each row within its list, from 1.

    Rows are ordered by position, at one position by time, and at one time as they stand. Holes close up: positions
    0, 4, 9 have the ranks 1, 2, 3.

    Parameters
    ----------
    lists : int array
        Code of the list of each row.
    position, time : array, optional
        Without positions, the order is that of the times, and without these, that of the rows.
    """
    ranked_by = time if position is None else position
    order = None
    if ranked_by is None or not _in_order(lists, ranked_by):
        order = time_order([lists] if position is None else [lists, position], time)
    there = lists if order is None else lists[order]
    heads = run_heads([there])
    length = np.diff(np.append(heads, len(there)))
    number = np.arange(1, len(there) + 1) - np.repeat(heads, length)
    rank = number
    if order is not None:
        rank = np.empty(len(there), np.int64)
        rank[order] = number
    if position is None or not len(position):
        return Ranking(rank, len(heads), 1.0, 0, 0)
    holes, ties = _count_odd(position if order is None else position[order], heads)
    return Ranking(rank, len(heads), float(position.min()), holes, ties)


def _in_order(lists: np.ndarray, key: np.ndarray) -> bool:
    """Whether each list stands together and its keys ascend strictly, so that ranks need no sorting."""
    heads = run_heads([lists])
    if len(heads) != len(np.unique(lists[heads])):
        return False
    ascending = key[1:] > key[:-1]
    ascending[heads[1:] - 1] = True
    return bool(ascending.all())


def _count_odd(position: np.ndarray, heads: np.ndarray) -> list[int]:
    """How many lists have holes and how many have ties: positions stand list after list, ascending within each."""
    counts = []
    for odd in (np.greater(position[1:] - 1, position[:-1]), position[1:] == position[:-1]):
        odd[heads[1:] - 1] = False
        counts.append(int(np.count_nonzero(np.logical_or.reduceat(np.append(odd, False), heads))))
    return counts


def repeated_rows(lists: np.ndarray, item: np.ndarray, n_items: int) -> np.ndarray:
    """Rows, ascending, whose item stands in more than one row of their list."""
    if len(lists) and (int(lists.max()) + 1) * max(n_items, 1) >= 2**63:
        pair, _ = dense_codes([lists, item])
    else:
        pair = lists.astype(np.int64) * n_items + item
    ordered = np.sort(pair)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(twice):
        return np.empty(0, np.int64)
    place = np.minimum(np.searchsorted(twice, pair), len(twice) - 1)
    return np.flatnonzero(twice[place] == pair)


def standing_rows(repeated: np.ndarray, lists: np.ndarray, item: np.ndarray, order: list[np.ndarray]) -> np.ndarray:
    """For each repeated row, the row that stands for its item in its list: the first by `order`, ties as they stand.

    `order` are keys of the repeated rows, the most important first.
    """
    pair, n = dense_codes([lists[repeated], item[repeated]])
    sequence = stable_order([pair, *order])
    heads = run_heads([pair[sequence]])
    first = np.empty(n, np.int64)
    first[pair[sequence][heads]] = sequence[heads]
    return repeated[first[pair]]
