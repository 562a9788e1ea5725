"""Sessions and lists: which rows of a log belong together, in which order, and which repeat an item.

Contract: users, items and lists are integer codes, times and positions are numbers; no label is known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from .attribution import Moments, rows_of_pairs
from .sorting import ascends, dense_codes, distinct, run_heads, stable_order

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
    order = stable_order([owner] if ascends(time) else [owner, time])
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


@dataclass(frozen=True)
class Lists:
    """Which rows make a list, and in which order.

    code : number of the list of each row, from 0 · order : rows list after list, best first (None: as they stand)
    """

    code: np.ndarray
    order: np.ndarray | None


class Ranking(NamedTuple):
    """Rank (int32) of each row within its list, from 1, how many lists there are, and what their positions look like.

    start : the smallest position · lists_with_holes : lists in which a position is left out between two others ·
    lists_with_ties : lists in which a position stands twice.
    """

    rank: np.ndarray
    n_lists: int
    start: float
    lists_with_holes: int
    lists_with_ties: int


def arrange_lists(keys: list[np.ndarray], position: np.ndarray | None, time: np.ndarray | None) -> Lists:
    """Number the lists and order their rows by position, at one position by time, and at one time as they stand.

    Parameters
    ----------
    keys : list of int arrays
        Codes that name the list of each row together: the user, and the session or the request.
    position, time : array, optional
        Without positions, the order is that of the times, and without these, that of the rows.
    """
    n = len(keys[0])
    within = [key for key in (position, time) if key is not None][:1]
    strictly = position is not None  # else rows of one time stay as they stand
    heads = run_heads(keys)
    if 2 * len(heads) <= n:  # Rows of one list stand together: only the first row of each run is looked at.
        code, n_lists = dense_codes(keys)
        if n_lists == len(heads) and all(_ascends_within(heads, key, strictly) for key in within):
            return Lists(code, None)
        order = stable_order([code, *within])
        there = code[order]
    else:
        order = stable_order([*keys, *within])
        there = np.zeros(n, np.int32)
        there[run_heads([key[order] for key in keys])[1:]] = 1
        np.cumsum(there, out=there)
        code = np.empty(n, np.int32)
        code[order] = there
    if position is not None and time is not None and not ascends(time):
        order = _ties_by_time(order, there, position, time)
    return Lists(code, order)


def _ascends_within(heads: np.ndarray, key: np.ndarray, strictly: bool) -> bool:
    """Whether the key ascends from row to row but for the first rows of lists."""
    ascending: np.ndarray = key[1:] > key[:-1] if strictly else key[1:] >= key[:-1]
    ascending[heads[1:] - 1] = True
    return bool(ascending.all())


def _ties_by_time(order: np.ndarray, lists: np.ndarray, position: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The order of the rows with those of one list and one position by time. `lists` are codes in this order."""
    there = position[order]
    tied = np.zeros(len(order) + 1, bool)
    tied[1:-1] = (lists[1:] == lists[:-1]) & (there[1:] == there[:-1])
    places = np.flatnonzero(tied[1:] | tied[:-1])
    if not len(places):
        return order
    rows = order[places]
    run = np.cumsum(~tied[places])
    result = order.copy()
    result[places] = rows[stable_order([run, time[rows]])]
    return result


def rank_lists(lists: Lists, position: np.ndarray | None, stays: np.ndarray | None = None) -> Ranking:
    """Rank each row within its list, from 1. Holes close up: positions 0, 4, 9 have the ranks 1, 2, 3.

    `stays` (bool) are the rows that count, by default all; ranks have one entry for each of those.
    """
    order = lists.order
    if stays is not None:
        order = np.flatnonzero(stays) if order is None else order[stays[order]]
    there = lists.code if order is None else lists.code[order]
    heads = run_heads([there])
    del there
    number = np.ones(len(lists.code) if order is None else len(order), np.int32)
    number[heads[1:]] -= np.diff(heads).astype(np.int32)
    np.cumsum(number, out=number)
    holes = ties = 0
    start = 1.0
    if position is not None and len(number):
        start = float((position if stays is None else position[stays]).min())
        holes, ties = _count_odd(position if order is None else position[order], heads)
    if order is not None:
        rank = np.empty(len(lists.code), np.int32)
        rank[order] = number
        number = rank if stays is None else rank[stays]
    return Ranking(number, len(heads), start, holes, ties)


def _count_odd(position: np.ndarray, heads: np.ndarray) -> list[int]:
    """How many lists have holes and how many have ties: positions stand list after list, ascending within each."""
    counts = []
    for odd in (np.greater(position[1:] - 1, position[:-1]), position[1:] == position[:-1]):
        odd[heads[1:] - 1] = False
        counts.append(int(np.count_nonzero(np.logical_or.reduceat(np.append(odd, False), heads))))
    return counts


def repeated_rows(lists: np.ndarray, item: np.ndarray, n_items: int) -> np.ndarray:
    """Rows, ascending, whose item stands in more than one row of their list."""
    entries = Moments(lists, item, lists)
    pair = entries.pairs(slice(None), n_items)
    pair.sort()
    twice = distinct(pair[1:][pair[1:] == pair[:-1]])
    return rows_of_pairs(entries, twice, n_items)


def standing_rows(repeated: np.ndarray, lists: np.ndarray, item: np.ndarray, order: list[np.ndarray]) -> np.ndarray:
    """For each repeated row, the row that stands for its item in its list: the first by `order`, ties as they stand.

    `order` are keys of the repeated rows, the most important first.
    """
    pair, n = dense_codes([lists[repeated], item[repeated]])
    sequence = stable_order([pair, *order])
    heads = run_heads([pair[sequence]])
    first = np.empty(n, np.int64)
    first[pair[sequence][heads]] = sequence[heads]
    found: np.ndarray = repeated[first[pair]]
    return found
