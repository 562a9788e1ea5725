"""Sessions and lists: which rows of a log belong together, in which order, and which rows repeat an
item.

Contract: users, items and lists are integer codes, and times and positions are numbers; there are
no labels here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ..inputs.sorting import ascends, dense_codes, distinct, run_heads, stable_order
from .attribution import TimedPairs, rows_of_pairs

Repeats = Literal["first", "last", "each"]


def sessions_by_gap(keys: list[np.ndarray], time: np.ndarray, gap: float) -> np.ndarray:
    """Number the sessions of each user from 1: a session ends where more than `gap` passes before
    the next row.

    Parameters
    ----------
    keys : list of int arrays
        Code of the user of each row, and of anything else that separates sessions, such as the
        variant.
    time : array
        Time of each row, in any order.
    gap : int or float
        Longest pause within a session, in units of the times; a pause of exactly `gap` does not end
        it.
    """
    owner = keys[0] if len(keys) == 1 else dense_codes(keys)[0]
    order = stable_order([owner] if ascends(time) else [owner, time])
    owner_there, time_there = owner[order], time[order]
    other_user = np.ones(len(order), bool)
    other_user[1:] = owner_there[1:] != owner_there[:-1]
    begins = other_user.copy()
    # A difference that overflows is negative; such a pause is long and ends the session.
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
class ListRule:
    """Which rows make up a list, and in which order.

    code : number of the list of each row, from 0 · order : rows list after list, best first; None
    if the rows have this order already.
    """

    code: np.ndarray
    order: np.ndarray | None


class Ranking(NamedTuple):
    """The rank (int32, from 1) of each row within its list, the number of lists, and a summary of
    the positions.

    start : the smallest position · lists_with_holes : lists in which a position is left out between
    two others · lists_with_ties : lists that have a position twice.
    """

    rank: np.ndarray
    n_lists: int
    start: float
    lists_with_holes: int
    lists_with_ties: int


def arrange_lists(
    keys: list[np.ndarray], position: np.ndarray | None, time: np.ndarray | None
) -> ListRule:
    """Number the lists and order their rows by position, rows of one position by time, and then by
    row.

    Parameters
    ----------
    keys : list of int arrays
        Codes that name the list of each row together: the user, and the session or the request.
    position, time : array, optional
        Without positions the rows are ordered by time, and without times they keep their order.
    """
    n = len(keys[0])
    within = [key for key in (position, time) if key is not None][:1]
    strictly = position is not None  # otherwise rows of equal time keep their order
    heads = run_heads(keys)
    if 2 * len(heads) <= n:  # rows of a list stand together: code only the first of each run
        code, n_lists = dense_codes(keys)
        if n_lists == len(heads) and all(_ascends_within(heads, key, strictly) for key in within):
            return ListRule(code, None)
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
    return ListRule(code, order)


def _ascends_within(heads: np.ndarray, key: np.ndarray, strictly: bool) -> bool:
    """Tell whether the key ascends from row to row within every list."""
    ascending: np.ndarray = key[1:] > key[:-1] if strictly else key[1:] >= key[:-1]
    ascending[heads[1:] - 1] = True
    return bool(ascending.all())


def _ties_by_time(
    order: np.ndarray, lists: np.ndarray, position: np.ndarray, time: np.ndarray
) -> np.ndarray:
    """Return `order` with the rows of one list and one position sorted by time. `lists` are codes
    in this order."""
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


def rank_lists(
    lists: ListRule, position: np.ndarray | None, stays: np.ndarray | None = None
) -> Ranking:
    """Rank each row within its list, from 1 and without holes: positions 0, 4, 9 have the ranks 1,
    2, 3.

    `stays` (bool) marks the rows to rank, by default all. The ranks have one entry for each of
    these rows.
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
    """Count the lists with holes and the lists with ties. Positions come list after list, ascending
    within each."""
    counts = []
    for odd in (np.greater(position[1:] - 1, position[:-1]), position[1:] == position[:-1]):
        odd[heads[1:] - 1] = False
        counts.append(int(np.count_nonzero(np.logical_or.reduceat(np.append(odd, False), heads))))
    return counts


def repeated_rows(lists: np.ndarray, item: np.ndarray, n_items: int) -> np.ndarray:
    """Return the rows, ascending, whose item stands in more than one row of their list."""
    entries = TimedPairs(lists, item, lists)
    pair = entries.pairs(slice(None), n_items)
    pair.sort()
    twice = distinct(pair[1:][pair[1:] == pair[:-1]])
    return rows_of_pairs(entries, twice, n_items)


def standing_rows(
    repeated: np.ndarray, lists: np.ndarray, item: np.ndarray, order: list[np.ndarray]
) -> np.ndarray:
    """Return for each repeated row the row that stands for its item in its list: the first one by
    `order`, then by row.

    `order` are sort keys of the repeated rows, the most important first.
    """
    pair, n = dense_codes([lists[repeated], item[repeated]])
    sequence = stable_order([pair, *order])
    heads = run_heads([pair[sequence]])
    first = np.empty(n, np.int64)
    first[pair[sequence][heads]] = sequence[heads]
    found: np.ndarray = repeated[first[pair]]
    return found
