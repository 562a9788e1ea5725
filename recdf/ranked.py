"""Lists in rank order: rows of a table grouped by list, ranked, and paired with the rows of `true` that judge them.

Contract: codes and numbers go in, a `Ranked` comes out; `pair` finds the hits once, and `settle` applies what needs
them: duplicates, condensed lists, ties with the relevant items last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from .errors import DuplicateError, TieError
from .frames import Table
from .grouping import gather, group_rows, offsets, pair_within, rank_within, spans
from .ids import Codes
from .options import Options


@dataclass(frozen=True)
class Ranked:
    """Rows of a table list after list, best first.

    `code` of each list · `start` (n_lists + 1) · `item` code of each row · `moves` : how the rows came to stand
    where they do, the last move last; row i came from moves[-1][i] before it · `level`: equal for rows of a
    list with equal numbers, None where no two are equal.
    """

    code: np.ndarray
    start: np.ndarray
    item: np.ndarray
    moves: tuple[np.ndarray, ...] = ()
    level: np.ndarray | None = None

    def rows(self, places: np.ndarray) -> np.ndarray:
        """Rows of the table at some places."""
        for move in reversed(self.moves):
            places = move[places]
        return places

    def all_rows(self) -> np.ndarray | None:
        """Row of the table at each place, None where they stand as in the table."""
        return self.rows(np.arange(len(self.item))) if self.moves else None

    def moved(self, places: np.ndarray) -> Ranked:
        """The same lists; the row that comes to stand at i stood at places[i]."""
        level = None if self.level is None else self.level[places]
        return Ranked(self.code, self.start, gather(self.item, places), (*self.moves, places), level)

    def kept(self, keep: np.ndarray) -> Ranked:
        """Only the rows where `keep`; ranks close up, and a list may become empty."""
        return replace(self.moved(np.flatnonzero(keep)), start=offsets(keep)[self.start])


@dataclass(frozen=True)
class Pairs:
    """Recommended rows and the rows of `true` that judge them, by ascending `place`; and repeated rows.

    `place`, `truth` : places in the two `Ranked` · `repeat`, `first` : recommended rows whose item stands
    earlier in the same list, and where.
    """

    place: np.ndarray
    truth: np.ndarray
    repeat: np.ndarray
    first: np.ndarray


def _all_differ(code: np.ndarray) -> bool:
    """Whether no code (at least 0) stands twice."""
    if not len(code) or code.max() > 64 * len(code):
        return len(pd.unique(code)) == len(code)
    seen = np.zeros(int(code.max()) + 1, bool)
    seen[code] = True
    return int(np.count_nonzero(seen)) == len(code)


def group_lists(code: np.ndarray, heads: np.ndarray | None, item: np.ndarray) -> Ranked:
    """Bring the rows of each code together, in order of first appearance; rows of code -1 are left out."""
    n = len(item)
    if heads is not None:
        length = np.diff(np.append(heads, n))
        inside = code >= 0
        if _all_differ(code[inside]):
            if inside.all():
                return Ranked(code, np.append(heads, n), item)
            row = spans(heads[inside], length[inside])
            return Ranked(code[inside], offsets(length[inside]), item[row], (row,))
        code = np.repeat(code, length)
    inside = code >= 0
    rows = None if inside.all() else np.flatnonzero(inside)
    codes, start, row = group_rows(code if rows is None else code[rows])
    if rows is not None:
        row = rows[row]
    return Ranked(codes, start, gather(item, row), (row,))


def _ranked(lists: Ranked, number: np.ndarray, descending: bool) -> Ranked:
    """Order each list, best number first and NaN last; `level` tells which numbers are equal."""
    key = number
    for move in lists.moves:
        key = gather(key, move)
    heads = lists.start[(lists.start > 0) & (lists.start < len(key))]
    step = key[1:] < key[:-1] if descending else key[1:] > key[:-1]
    step[heads - 1] = True  # the step into the next list
    if step.all():
        return lists
    if descending:
        flip = np.invert if key.dtype.kind in "iu" else np.negative
        key = flip(key, out=None if key is number else key)
    elif key is number:
        key = number.copy()
    places = rank_within(key, lists.start, sort=True)
    if places is not None:
        lists = lists.moved(places)
    same = key[1:] == key[:-1]
    if key.dtype.kind == "f":
        same |= np.isnan(key[1:]) & np.isnan(key[:-1])
    same[heads - 1] = False
    if not same.any():
        return lists
    return replace(lists, level=np.cumsum(np.append(True, ~same), dtype=np.int32))


def _tie_order(lists: Ranked, second: np.ndarray, by_row: bool = False) -> np.ndarray | None:
    """Places that order the rows of each level by `second` (int64 in 0..2**32), and then by row if asked.

    None if they stand so.
    """
    assert lists.level is not None
    tied = np.unique(np.searchsorted(lists.start, np.flatnonzero(np.diff(lists.level) == 0), side="right") - 1)
    length = np.diff(lists.start)[tied]
    rows = spans(lists.start[tied], length)
    key = (lists.level[rows].astype(np.int64) << 32) + second[rows]
    places = rank_within(key, offsets(length), stable=True)
    ordered = key if places is None else key[places]
    if by_row and (ordered[1:] == ordered[:-1]).any():  # the same item twice with the same number
        places = np.lexsort((lists.rows(rows), key))
    if places is None:
        return None
    order = np.arange(len(lists.item))
    order[rows] = rows[places]
    return order


def rank_true(
    wanted: Table,
    code: np.ndarray,
    heads: np.ndarray | None,
    item: np.ndarray,
    options: Options,
    counts: dict[str, int],
) -> tuple[Ranked, np.ndarray, np.ndarray]:
    """Lists of `true` by key, largest gain first: the lists, gains, and repeated rows if they are kept."""
    assert wanted.number is not None
    lists = group_lists(code, heads, item)
    if len(lists.item) and np.ptp(wanted.number) > 0:
        lists = _ranked(lists, wanted.number, descending=True)
    repeat, _, _ = pair_within(lists.item, lists.start, lists.item[:0], np.zeros_like(lists.start))
    if len(repeat) and lists.level is not None:  # of equal gains the first row stays
        order = _tie_order(lists, lists.rows(np.arange(len(lists.item))))
        lists = lists if order is None else lists.moved(order)
        repeat, _, _ = pair_within(lists.item, lists.start, lists.item[:0], np.zeros_like(lists.start))
    if len(repeat):
        counts["true_duplicates"] = len(repeat)
        refuse_duplicates(wanted, lists, repeat, options)
        if options.duplicates == "drop":
            keep = np.ones(len(lists.item), bool)
            keep[repeat] = False
            lists, repeat = lists.kept(keep), repeat[:0]
    rows = lists.all_rows()
    return lists, wanted.number if rows is None else wanted.number[rows], repeat


def refuse_duplicates(table: Table, lists: Ranked, repeat: np.ndarray, options: Options) -> None:
    if options.duplicates != "raise":
        return
    rows = lists.rows(repeat[:5])
    shown = list(zip(*[ids.show(rows) for ids in (*table.by, *table.keys, table.item)], strict=True))
    raise DuplicateError(
        f"{table.role} has {len(repeat):,} repeated (list, item) rows of {len(table):,}: "
        f"{', '.join(map(repr, shown))}; "
        'drop them or pass duplicates="drop"'
    )


def rank_pred(
    offered: Table,
    code: np.ndarray,
    heads: np.ndarray | None,
    item: np.ndarray,
    items: Codes,
    options: Options,
) -> Ranked:
    """Recommended lists, best first, ties settled by everything but relevance."""
    lists = group_lists(code, heads, item)
    if offered.number is None:
        return lists
    lists = _ranked(lists, offered.number, offered.descending)
    if lists.level is None:
        return lists
    if options.ties == "raise":
        place = np.flatnonzero(np.diff(lists.level) == 0)
        rows = lists.rows(place[:1])
        where = [ids.show(rows)[0] for ids in (*offered.by, *offered.keys)]
        raise TieError(
            f'pred has {len(place):,} items with the score of the item before them, first in list {where}; ties="raise"'
        )
    rank = items.rank()
    value = (lists.item if rank is None else rank[lists.item]).astype(np.int64)
    second = {"row": lists.rows(np.arange(len(lists.item))), "item_asc": value}.get(options.ties, items.n - value)
    order = _tie_order(lists, second, by_row=True)
    return lists if order is None else lists.moved(order)


def pair(shown: Ranked, truth: Ranked, truth_of_list: np.ndarray, repeated: np.ndarray) -> Pairs:
    """Find each list's truth among its items. The j-th of equal items pairs with the j-th of equal rows of truth."""
    if len(truth_of_list) == len(truth.code) and (truth_of_list == np.arange(len(truth.code))).all():
        wanted, wanted_start, wanted_place = truth.item, truth.start, None
    else:
        length = np.append(np.diff(truth.start), 0)[truth_of_list]
        wanted_start = offsets(length)
        wanted_place = spans(truth.start[truth_of_list], length)
        wanted = truth.item[wanted_place]
    repeat, first, found = pair_within(shown.item, shown.start, wanted, wanted_start)
    if len(repeated) and len(repeat):
        found = _pair_repeats(shown, wanted, wanted_start, found, repeat)
    elif len(repeated):
        found[pair_within(wanted, wanted_start, wanted[:0], np.zeros_like(wanted_start))[0]] = -1
    query = np.flatnonzero(found >= 0)
    packed = (found[query].astype(np.int64) << 32) | query  # values sort faster than positions
    packed.sort()
    place, hit = packed >> 32, packed & (2**32 - 1)
    return Pairs(place, hit if wanted_place is None else wanted_place[hit], repeat, first)


def _pair_repeats(
    shown: Ranked, wanted: np.ndarray, wanted_start: np.ndarray, found: np.ndarray, repeat: np.ndarray
) -> np.ndarray:
    """Pair second occurrences with second rows of truth, and so on."""
    item, start, queries = shown.item[repeat], np.searchsorted(repeat, shown.start), np.arange(len(wanted))
    while True:
        again = pair_within(wanted[queries], wanted_start, wanted[:0], np.zeros_like(wanted_start))[0]
        found[queries[again]] = -1
        if not len(again) or not len(repeat):
            return found
        queries, wanted_start = queries[again], np.searchsorted(again, wanted_start)
        deeper, _, at = pair_within(item, start, wanted[queries], wanted_start)
        found[queries] = np.where(at >= 0, repeat[at], -1)
        repeat, item, start = repeat[deeper], item[deeper], np.searchsorted(deeper, start)


def settle(
    shown: Ranked, pairs: Pairs, gain: np.ndarray, offered: Table, options: Options, counts: dict[str, int]
) -> tuple[Ranked, Pairs]:
    """Apply what needs the pairs: duplicates, condensed lists, and ties with the relevant items last."""
    keep = np.ones(len(shown.item), bool)
    if len(pairs.repeat):
        counts["pred_duplicates"] = len(pairs.repeat)
        refuse_duplicates(offered, shown, pairs.repeat, options)
        if options.duplicates == "drop":
            keep[pairs.repeat] = False
    if options.judged_only:
        judged = np.zeros(len(keep), bool)
        judged[pairs.place] = True
        judged[pairs.repeat] |= judged[pairs.first]
        counts["pred_unjudged"] = int((keep & ~judged).sum())
        keep &= judged
    if not keep.all():
        to = offsets(keep)
        repeat = keep[pairs.repeat]
        pairs = Pairs(to[pairs.place], pairs.truth, to[pairs.repeat[repeat]], to[pairs.first[repeat]])
        shown = shown.kept(keep)
    if options.ties == "worst" and shown.level is not None:
        grade = np.zeros(len(shown.item), np.int64)
        grade[pairs.place] = np.searchsorted(np.unique(gain[gain > 0]), gain[pairs.truth], side="right")
        grade[pairs.repeat] = grade[pairs.first]
        order = _tie_order(shown, grade)
        if order is not None:
            to = np.empty_like(order)
            to[order] = np.arange(len(order))
            by_place = np.argsort(to[pairs.place])
            pairs = Pairs(to[pairs.place][by_place], pairs.truth[by_place], to[pairs.repeat], to[pairs.first])
            shown = shown.moved(order)
    return shown, pairs
