"""Lists in rank order: blocks of rows of a table, ranked, and paired with the rows of `true` that
judge them.

Contract: codes and numbers go in, and a `Ranked` comes out. `pair` finds the judged rows once.
`relevant_last` and `settle_pairs` then apply the options that need them: ties with the relevant
items last, repeated items, and condensed lists. Each function works on one block of lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy import ndarray

from ..errors import DataError, DuplicateError, TieError
from ..inputs.codes import CodeColumn, Coded, IdCodes
from ..inputs.frames import float_column
from ..inputs.options import Options
from ..inputs.sorting import (
    distinct,
    flags_at,
    last_places,
    offsets,
    rank_within,
    spans,
    stable_order,
)
from ..inputs.true_and_pred import ReadRows
from .list_keys import Block, Blocks, list_blocks
from .pairing import Excluded, Pairs, pair_within


@dataclass(frozen=True)
class Ranked:
    """Rows of a table list after list, best first.

    `code` : code of each list · `first` : row of the table where the list first appears · `start`
    (n_lists + 1) : first place of each list · `item`, `row` : item code and row of the table at
    each place · `tied` : whether the row at a place has the same number as the one before it in its
    list; None where no row has.
    """

    code: ndarray
    first: ndarray
    start: ndarray
    item: ndarray
    row: ndarray
    tied: ndarray | None

    def moved(self, places: ndarray) -> Ranked:
        """Reorder rows within their ties: the row at place i of the result was at places[i]."""
        return replace(self, item=self.item[places], row=self.row[places])

    def kept(self, keep: ndarray) -> Ranked:
        """Keep the rows where `keep` is true; later rows move up in rank, and a list may become
        empty."""
        tied = self.tied
        if tied is not None:  # rows of one level have equal numbers
            level = np.cumsum(~tied)[keep]
            tied = np.diff(level, prepend=0) == 0
        return Ranked(
            self.code,
            self.first,
            offsets(keep)[self.start],
            self.item[keep],
            self.row[keep],
            tied,
        )


def joined(blocks: Sequence[Ranked]) -> Ranked:
    """Join the lists of several blocks."""
    if len(blocks) == 1:
        return blocks[0]
    length = np.concatenate([np.diff(lists.start) for lists in blocks])
    tied = None
    if any(lists.tied is not None for lists in blocks):
        tied = np.concatenate(
            [
                np.zeros(len(lists.item), bool) if lists.tied is None else lists.tied
                for lists in blocks
            ]
        )
    code, first, item, row = (
        np.concatenate([getattr(lists, name) for lists in blocks])
        for name in ("code", "first", "item", "row")
    )
    return Ranked(code, first, offsets(length), item, row, tied)


def _rank_block(block: Block, descending: bool) -> Ranked:
    """Order each list by the second column, if there is one: best first, NaN last; equal numbers
    keep their order."""
    (item, *number), start, row = block.columns, block.start, block.row
    in_order = Ranked(block.code, block.first, start, item, row, None)
    if not number:
        return in_order
    (key,) = number
    heads = start[(start > 0) & (start < len(key))]
    step = key[1:] < key[:-1] if descending else key[1:] > key[:-1]
    step[heads - 1] = True  # the next row begins another list
    if step.all():
        return in_order
    moved = rank_within(key, start, descending)
    if moved is not None:
        places, key = moved
        item = item.take(places)
        row = row.take(places)
    same = key[1:] == key[:-1]
    if key.dtype.kind == "f":
        same |= np.isnan(key[1:]) & np.isnan(key[:-1])
    same[heads - 1] = False
    tied = np.append(False, same) if same.any() else None
    return replace(in_order, item=item, row=row, tied=tied)


def _tie_order(lists: Ranked, second: ndarray) -> ndarray | None:
    """Return the places that order tied rows by `second`, which are integers.

    Equal rows keep their order. The result is None if the rows are in order already.
    """
    tied = lists.tied
    start = lists.start
    assert tied is not None
    falls = np.flatnonzero(tied[1:] & (second[1:] < second[:-1]))
    if not len(falls):
        return None
    mixed = distinct(np.searchsorted(start, falls, side="right") - 1)
    rows = spans(start[mixed], np.diff(start)[mixed])
    order = np.arange(len(lists.item))
    order[rows] = rows[stable_order([np.cumsum(~tied[rows]), second[rows]])]
    return order


def rank_true(
    table: ReadRows,
    key: Coded,
    heads: ndarray | None,
    n_keys: int,
    items: IdCodes,
    options: Options,
    counts: dict[str, int],
    excluded: Excluded | None,
) -> tuple[Ranked, ndarray]:
    """Return the lists of `true` by key, largest gain first, and the gains."""
    gain = table.number
    assert gain is not None
    number = [gain] if len(gain) and np.ptp(gain) > 0 else []
    blocks = list_blocks(key, heads, len(table), n_keys, [items.columns[0], *number])

    def rank(block: Block) -> Ranked:
        left = block if excluded is None else excluded.left_of(block, block.code)
        return _rank_block(left, descending=True)

    lists = joined(blocks.each(rank))
    if excluded is not None:
        counts["true_excluded"] = len(table) - len(lists.item)
    pairs = repeats(lists, items.n)
    repeat = pairs.repeat
    if len(repeat):  # among equal gains the first row is kept
        counts["true_duplicates"] = len(repeat)
        refuse_duplicates(table, lists.row[repeat], len(repeat), options)
        if (name := options.propensity_col) is not None:
            one, other = (propensities(table, lists.row[at], name) for at in (pairs.first, repeat))
            differ = np.flatnonzero(one != other)
            if len(differ):
                row = lists.row[repeat[differ[:1]]]
                some = differ[0]
                # The message too is the same for every order of rows.
                low, high = sorted([one[some].item(), other[some].item()])
                label = tuple(ids.show(row)[0] for ids in (*table.keys, table.item))
                raise DataError(
                    f"true[{name!r}] differs in {len(differ):,} of the rows that repeat an item of "
                    f"a list: {label} has {low!r} and {high!r}; an item of a list has one "
                    "propensity, so keep one row of each"
                )
        if options.duplicates == "drop":
            lists = lists.kept(~flags_at(repeat, len(lists.item)))
    return lists, gain[lists.row] if number else gain[: len(lists.item)]


def repeats(lists: Ranked, n_items: int) -> Pairs:
    """Return the places whose item stands earlier in the same list (`repeat`), and where it stands
    first (`first`)."""
    start = lists.start[:-1]
    none = np.zeros(len(lists.start) - 1, np.int64)
    return pair_within(lists.item, start, np.diff(lists.start), lists.item[:0], none, none, n_items)


def refuse_duplicates(table: ReadRows, rows: ndarray, n: int, options: Options) -> None:
    """Raise if there are repeated rows and the options forbid them. There are `n`, and `rows` are
    the first of them."""
    if options.duplicates != "raise" or not n:
        return
    columns = (*table.by, *table.keys, table.item)
    shown = list(zip(*(ids.show(rows[:5]) for ids in columns), strict=True))
    raise DuplicateError(
        f"{table.role} has {n:,} repeated (list, item) rows of {len(table):,}: "
        f"{', '.join(map(repr, shown))}; "
        'drop them or pass ⟦+duplicates="drop"⟧',
        count=n,
        examples=shown,
    )


def propensities(table: ReadRows, rows: ndarray, name: str) -> ndarray:
    """Return the propensities of some rows of `true`."""
    return float_column(table.frame, name, table.role).take(table.frame_rows(rows))


def refuse_ties(table: ReadRows, rows: ndarray, n: int, options: Options) -> None:
    """Raise if rows have the score of the row before them and the options forbid it; `rows` are the
    first of `n`."""
    if options.ties != "raise" or not n:
        return
    where = [ids.show(rows[:1])[0] for ids in (*table.by, *table.keys)]
    raise TieError(
        f"pred has {n:,} items with the score of the item before them, first in list {where}; "
        '⟦ties="raise"⟧',
        count=n,
    )


def pred_blocks(
    table: ReadRows, code: CodeColumn, heads: ndarray | None, n_codes: int, item: Coded
) -> Blocks:
    """Return the blocks of recommended lists which `rank_pred` takes."""
    columns: list[CodeColumn] = [item]
    columns += [] if table.number is None else [table.number]
    return list_blocks(code, heads, len(table), n_codes, columns)


def rank_pred(table: ReadRows, block: Block, items: IdCodes, options: Options) -> Ranked:
    """Rank recommended lists, best first. Ties are broken here by every rule except the one that
    needs relevance."""
    lists = _rank_block(block, table.descending)
    if lists.tied is None or options.ties in ("raise", "row"):
        return lists
    rank = items.rank()
    second = lists.item if rank is None else rank[lists.item]
    order = _tie_order(lists, second if options.ties == "item_asc" else -second)
    return lists if order is None else lists.moved(order)


def tied_rows(lists: Ranked) -> ndarray:
    """Return the rows of the table that have the same number as the row before them."""
    return lists.row[:0] if lists.tied is None else lists.row[lists.tied]


def pair(
    lists: Ranked,
    sought: ndarray,
    sought_start: ndarray,
    sought_length: ndarray,
    n_items: int,
) -> Pairs:
    """Find in each list the items that are sought there; the pairs have ascending places."""
    length = np.diff(lists.start)
    pairs = pair_within(
        lists.item, lists.start[:-1], length, sought, sought_start, sought_length, n_items
    )
    sought_at = np.full(len(lists.item), -1, np.int32)
    sought_at[pairs.place] = pairs.sought
    place = np.flatnonzero(sought_at >= 0)
    return replace(pairs, place=place, sought=sought_at[place])


def relevant_last(lists: Ranked, pairs: Pairs, gain: ndarray) -> tuple[Ranked, Pairs]:
    """Order the rows of each tie by their gains, smallest first."""
    if lists.tied is None:
        return lists, pairs
    gains = gain[pairs.sought]
    grades = np.unique(gains[gains > 0])
    grade = np.zeros(len(lists.item), np.int64)
    grade[pairs.place] = np.searchsorted(grades, gains, side="right")
    grade[pairs.repeat] = grade[pairs.first]
    order = _tie_order(lists, grade)
    if order is None:
        return lists, pairs
    to = np.empty_like(order)
    to[order] = np.arange(len(order))
    by_place = np.argsort(to[pairs.place])
    place = to[pairs.place][by_place]
    pairs = Pairs(place, pairs.sought[by_place], pairs.n, to[pairs.repeat], to[pairs.first])
    return lists.moved(order), pairs


def settle_pairs(
    lists: Ranked, pairs: Pairs, options: Options
) -> tuple[Ranked, Pairs, dict[str, int]]:
    """Apply the options that need the pairs: repeated items, and condensed lists.

    The third value returned counts the rows that this drops, or that it would drop without
    duplicates="keep".
    """
    counts: dict[str, int] = {}
    keep = np.ones(len(lists.item), bool)
    if len(pairs.repeat):
        counts["pred_duplicates"] = len(pairs.repeat)
        if options.duplicates == "drop":
            keep[pairs.repeat] = False
    if options.judged_only:
        judged = pairs.has_sought(len(keep))
        counts["pred_unjudged"] = int((keep & ~judged).sum())
        keep &= judged
    if not keep.all():
        to = offsets(keep)
        repeat = keep[pairs.repeat]
        # No pair is dropped: repeated items pair at their first row, and a row in a pair is judged.
        pairs = Pairs(
            to[pairs.place],
            pairs.sought,
            pairs.n,
            to[pairs.repeat[repeat]],
            to[pairs.first[repeat]],
        )
        lists = lists.kept(keep)
    return lists, pairs, counts


@dataclass(frozen=True)
class BaseLists:
    """The baseline's lists, best first, each item once; `list_base` is the baseline's list for each
    list, or -1."""

    start: ndarray
    item: ndarray
    list_base: ndarray


def base_lists(
    table: ReadRows,
    code: Coded,
    item: Coded,
    items: IdCodes,
    key: ndarray,
    n_keys: int,
    options: Options,
) -> BaseLists:
    """Rank the baseline's lists, each item once, and find which of them belongs to each list of the
    population."""
    blocks = pred_blocks(table, code, None, n_keys, item)
    lists = joined(blocks.each(lambda block: rank_pred(table, block, items, options)))
    tied = tied_rows(lists)
    refuse_ties(table, tied, len(tied), options)
    repeat = repeats(lists, items.n).repeat
    if len(repeat):
        refuse_duplicates(table, lists.row[repeat], len(repeat), options)
        lists = lists.kept(~flags_at(repeat, len(lists.item)))
    return BaseLists(lists.start, lists.item, last_places(lists.code, n_keys)[key])
