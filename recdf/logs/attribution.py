"""Which impression a click or a purchase belongs to, and which rows of a log belong together:
sessions, lists, repeats."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from ..inputs.codes import GOLDEN, first_rows
from ..inputs.machine import sizes
from ..inputs.sorting import (
    ascends,
    dense_codes,
    distinct,
    flags_at,
    place_in_run,
    run_heads,
    spans,
    stable_order,
)
from ..stats.numbers import Floats, Integers, Mask

# ------------------------------------------------------------------------------------------
# Attribution: which impression a click or a purchase belongs to.
#
# Contract: users and items are integer codes and times are numbers of one clock; there are no
# labels here. An event can belong only to impressions of its own pair of user and item that are
# at most `window` old. The shares of an event that belongs to any impression sum to 1.
#
# The rules at the edges:
#
# * The window is closed at both ends: an impression at the time of the event counts, and so does
# one that is exactly `window` old. * Among impressions with the same time, "first" takes the one
# whose row comes first, and "last" the one whose row comes last. * An event with no impression
# before it belongs to the next impression if that is at most `skew` later, since the clocks of
# two machines may differ. Among several next impressions with the same time the rule chooses. An
# impression before the event always takes precedence.


Attribution = Literal["last", "first", "all"]

# The shares of an event that belongs to at most this many impressions are computed one by one.
FEW_CANDIDATES = 64
# About this many shares are computed at a time.
CHUNK_SHARES = 2**22


class TimedPairs(NamedTuple):
    """Impressions or events: the codes of user and item, and the time of each."""

    user: Integers
    item: Integers
    time: np.ndarray

    def take(self, rows: slice | np.ndarray) -> TimedPairs:
        """Return those of some rows."""
        return TimedPairs(*(part[rows] for part in self))


def pair_codes(user: Integers, item: Integers, n_items: int) -> Integers:
    """Return one number for each pair of a user, or of a list, and an item."""
    found = user.astype(np.int64)
    found *= n_items
    found += item
    return found


# What becomes of an event, by its number in `Candidates.outcome`: it belongs to an impression; its
# user, or the list that it names, was never shown its item; all impressions of its item to its user
# came later; the impressions before it are older than the window; it names a list that the log does
# not have.
OUTCOMES = ("attributed", "never_shown", "before_impression", "outside_window", "unknown_list")
ATTRIBUTED, NEVER_SHOWN, BEFORE_IMPRESSION, OUTSIDE_WINDOW, UNKNOWN_LIST = range(5)


class Credit(NamedTuple):
    """The impressions that events belong to: their rows, ascending, and per row the sums of shares
    and of values."""

    row: Integers
    share: Floats
    value: Floats


class Candidates(NamedTuple):
    """The impressions that each event may belong to, and what becomes of it.

    `row` are rows of the log, sorted by pair, then by time, then by row. Event i may belong to the
    rows `row[low[i]:high[i]]`.
    """

    row: Integers
    low: Integers
    high: Integers
    outcome: np.ndarray


def find_candidates(
    log: TimedPairs, events: TimedPairs, window: float | None, skew: float = 0
) -> Candidates:
    """Find for each event the impressions of its pair that are at most `window` older; with None,
    of any age.

    Parameters
    ----------
    log, events : Moments
        Impressions and events; a user or an item has the same code in both.
    window : int or float, optional
        Greatest age of an impression, in units of the times.
    skew : int or float, default 0
        How much later than the event an impression may be if there is none before it, in units of
        the times.
    """
    n_items = 1 + max(log.item.max(initial=0), events.item.max(initial=0))
    pairs, group_of_event = np.unique(
        pair_codes(events.user, events.item, n_items), return_inverse=True
    )
    row = rows_of_pairs(log.user, log.item, pairs, n_items)
    group = np.searchsorted(pairs, pair_codes(log.user[row], log.item[row], n_items))
    time = log.time[row]
    order = stable_order([group] if ascends(time) else [group, time])
    row = row[order]
    time = time[order]
    size = np.bincount(group, minlength=len(pairs))
    end = np.cumsum(size)[group_of_event]
    start = end - size[group_of_event]
    high = bisect(time, start, end, events.time, right=True)
    low = start
    late = (high == start) & (end > start)
    if window is not None:
        low = bisect(time, start, high, _minus(events.time, window), right=False)
    next_one = np.flatnonzero(late)
    soon = next_one[_minus(time[high[next_one]], skew) <= events.time[next_one]]
    late[soon] = False
    # The impressions with the time of the next one are candidates too, of which the rule chooses as
    # always.
    high[soon] = bisect(time, high[soon], end[soon], time[high[soon]], right=True)
    outcome = np.full(len(low), OUTSIDE_WINDOW, np.int8)
    outcome[late] = BEFORE_IMPRESSION
    outcome[end == start] = NEVER_SHOWN
    outcome[high > low] = ATTRIBUTED
    return Candidates(row, low, high, outcome)


def _minus(time: np.ndarray, span: float) -> np.ndarray:
    """Return time - span, or the smallest integer where the difference would overflow."""
    if time.dtype.kind == "f" or isinstance(span, float):
        return time - span
    return np.maximum(time, np.iinfo(np.int64).min + span) - span


def rows_of_pairs(user: Integers, item: Integers, pairs: Integers, n_items: int) -> Integers:
    """Return the rows, ascending, whose pair is among `pairs` (sorted, distinct).

    Most impressions have no event. A table of flags, addressed by a hash of the pair, excludes
    nearly all of those, and only the rest are looked up among the pairs.
    """
    found = [np.empty(0, np.int64)]
    bits = min(max((16 * len(pairs)).bit_length(), 16), 26)
    shift = np.uint64(64 - bits)
    maybe = flags_at((pairs.view(np.uint64) * GOLDEN) >> shift, 2**bits)
    size = sizes().sorted_rows
    for start in range(0, len(user) if len(pairs) else 0, size):
        rows = slice(start, start + size)
        block = pair_codes(user[rows], item[rows], n_items)
        some = np.flatnonzero(maybe[(block.view(np.uint64) * GOLDEN) >> shift])
        place = np.minimum(np.searchsorted(pairs, block[some]), len(pairs) - 1)
        found.append(some[pairs[place] == block[some]] + start)
    return np.concatenate(found)


def bisect(
    values: np.ndarray, low: Integers, high: Integers, target: np.ndarray, *, right: bool
) -> Integers:
    """Return the first place in low..high whose value is at least the target (`right`: above it),
    or `high`.

    The values from `low` to `high` must be ascending.
    """
    low = low.copy()
    high = high.copy()
    open_ = np.flatnonzero(low < high)
    while len(open_):
        middle = (low[open_] + high[open_]) >> 1
        found = values[middle]
        goal = target[open_]
        below = found <= goal if right else found < goal
        low[open_[below]] = middle[below] + 1
        high[open_[~below]] = middle[~below]
        open_ = open_[low[open_] < high[open_]]
    return low


def give_credit(candidates: Candidates, rule: Attribution, value: Floats | None = None) -> Credit:
    """Distribute every event that belongs to an impression, and its value, over impressions by one
    rule.

    Parameters
    ----------
    candidates : Candidates
        The result of `find_candidates`.
    rule : {"last", "first", "all"}
        The whole event goes to the last or to the first of its impressions, or all of them get
        equal shares.
    value : float array, optional
        Value of each event; 0 without it.
    """
    event = np.flatnonzero(candidates.outcome == ATTRIBUTED)
    low = candidates.low[event]
    high = candidates.high[event]
    if rule != "all":
        low, high = (high - 1, high) if rule == "last" else (low, low + 1)
    worth = np.zeros(len(event)) if value is None else value[event]
    n = len(candidates.row)
    share = np.zeros(n)
    total = np.zeros(n)
    # Events that belong to many impressions are taken some at a time, so that memory stays small.
    length = high - low
    few = np.flatnonzero(length <= FEW_CANDIDATES)
    chunk = np.cumsum(length[few]) // CHUNK_SHARES
    for some in np.split(few, np.flatnonzero(np.diff(chunk)) + 1):
        own = length[some]
        place = spans(low[some], own)
        part = np.repeat(1.0 / own, own)
        share += np.bincount(place, part, n)
        total += np.bincount(place, part * np.repeat(worth[some], own), n)
    # What an event of many impressions, such as of a bot, gives to each begins at the first of them
    # and ends behind the last, so that running sums do not take time for each.
    many = np.flatnonzero(length > FEW_CANDIDATES)
    begins = low[many]
    ends = high[many]
    exact = np.longdouble(1) / length[many]
    covers = np.cumsum(np.bincount(begins, minlength=n + 1) - np.bincount(ends, minlength=n + 1))
    for found, weight in ((share, exact), (total, exact * worth[many])) if len(many) else ():
        step = np.zeros(n + 1, np.longdouble)
        np.add.at(step, begins, weight)
        np.subtract.at(step, ends, weight)
        found += np.where(covers[:-1] > 0, np.cumsum(step)[:-1], 0.0).astype(float)
    rows = np.flatnonzero(share)
    order = rows[np.argsort(candidates.row[rows], kind="stable")]
    return Credit(candidates.row[order], share[order], total[order])


# ------------------------------------------------------------------------------------------
# Sessions and lists: which rows of a log belong together, in which order, and which rows repeat
# an item.
#
# Contract: users, items and lists are integer codes, and times and positions are numbers; there
# are no labels here.


def sessions_by_gap(keys: list[Integers], time: np.ndarray, gap: float) -> Integers:
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
    heads = run_heads([owner[order]])
    pause = np.diff(time[order])
    begins = np.ones(len(order), bool)
    # A difference that overflows is negative; such a pause is long and ends the session.
    begins[1:] = (pause > gap) | (pause < 0)
    begins[heads] = True
    number = np.cumsum(begins)
    number -= np.repeat(number[heads] - 1, np.diff(heads, append=len(order)))
    session = np.empty(len(order), np.int64)
    session[order] = number
    return session


class ListRule(NamedTuple):
    """Which rows make up a list, and in which order.

    code : number of the list of each row, from 0 · order : rows list after list, best first.
    """

    code: Integers
    order: Integers


class Ranking(NamedTuple):
    """The rank (from 1) of each row within its list, the number of lists, and a summary of
    the positions.

    start : the smallest position · lists_with_holes : lists in which a position is left out between
    two others · lists_with_ties : lists that have a position twice.
    """

    rank: Integers
    n_lists: int
    start: float
    lists_with_holes: int
    lists_with_ties: int


def arrange_lists(
    keys: list[Integers], position: np.ndarray | None, time: np.ndarray | None
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
    within = [key for key in (position, time) if key is not None]
    heads = run_heads(keys)
    code, n_lists = dense_codes(keys)
    ascending = np.ones(len(code), bool)
    for key in within[:1]:
        ascending[1:] = key[1:] > key[:-1] if key is position else key[1:] >= key[:-1]
    ascending[heads] = True
    if n_lists == len(heads) and ascending.all():
        return ListRule(code, np.arange(len(code)))
    order = stable_order([code, *within[:1]])
    if len(within) == 2 and not ascends(within[1]):  # rows of one list and one position go by time
        sorted_keys = [code[order], within[0][order]]
        if len(run_heads(sorted_keys)) < len(order):
            order = stable_order([code, *within])
    return ListRule(code, order)


def rank_lists(lists: ListRule, position: np.ndarray | None, stays: Mask | None = None) -> Ranking:
    """Rank each row within its list, from 1 and without holes: positions 0, 4, 9 have the ranks 1,
    2, 3.

    `stays` (bool) marks the rows to rank, by default all. The ranks have one entry for each of
    these rows.
    """
    order = lists.order if stays is None else lists.order[stays[lists.order]]
    there = lists.code[order]
    heads = run_heads([there])
    start = 1.0
    odd = [0, 0]
    if position is not None and len(order):
        place = position[order]
        start = float(place.min())
        step = np.diff(place)
        step[heads[1:] - 1] = 1  # from one list to the next
        odd = [len(run_heads([there[np.flatnonzero(one)]])) for one in (step > 1, step == 0)]
    rank = np.empty(len(lists.code), np.int64)
    rank[order] = place_in_run(np.diff(heads, append=len(there))) + 1
    return Ranking(rank if stays is None else rank[stays], len(heads), start, *odd)


def repeated_rows(lists: Integers, item: Integers, n_items: int) -> Integers:
    """Return the rows, ascending, whose item stands in more than one row of their list."""
    pair = np.sort(pair_codes(lists, item, n_items))
    return rows_of_pairs(lists, item, distinct(pair[1:][pair[1:] == pair[:-1]]), n_items)


def standing_rows(
    repeated: Integers, lists: Integers, item: Integers, order: list[Integers]
) -> Integers:
    """Return for each repeated row the row that stands for its item in its list: the first one by
    `order`, then by row.

    `order` are sort keys of the repeated rows, the most important first.
    """
    pair, n = dense_codes([lists[repeated], item[repeated]])
    sequence = stable_order([pair, *order])
    first = sequence[first_rows(pair[sequence], n)]
    return repeated[first[pair]]
