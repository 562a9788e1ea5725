"""The rows of both frames as lists.

The lists of `true` have the largest gain first. Those of `pred` are ranked, paired with `true` and
settled, one block of lists after another.

Contract: the hits and lengths of every block are kept, since most metrics need them. The item and
the row at every place are computed again, by the same steps, when something reads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..inputs.codes import IdCodes
from ..inputs.frames import read_numbers
from ..inputs.options import Options
from ..inputs.sorting import offsets, place_in_run, run_of, spans
from ..inputs.true_and_pred import OrderDoubt, ReadRows, is_rank
from .blocks import Block, Blocks
from .hits import HitArrays, Hits
from .list_keys import split_codes
from .pairing import Excluded, Pairs
from .ranked import (
    Ranked,
    joined,
    pair,
    rank_pred,
    refuse_duplicates,
    refuse_ties,
    settle_pairs,
    tied_rows,
)


@dataclass(frozen=True)
class TrueLists:
    """The rows of `true`, one list per key, largest gain first: list i has the rows
    start[i]:start[i + 1]."""

    start: np.ndarray
    gain: np.ndarray
    item: np.ndarray
    rows: Callable[[np.ndarray], np.ndarray]  # from places to positions in the frame `true`

    @cached_property
    def n_relevant(self) -> np.ndarray:
        """Number of relevant rows of each list."""
        relevant = self.gain > 0
        return np.diff(self.start if relevant.all() else offsets(relevant)[self.start])

    @cached_property
    def n_judged(self) -> np.ndarray:
        """Number of judged rows of each list; the rows that nobody judged come last."""
        judged = self.gain >= 0
        return np.diff(self.start if judged.all() else offsets(judged)[self.start])

    @cached_property
    def constant_gain(self) -> bool:
        """Whether all rows have gain 1, as they do without a relevance column."""
        return bool((self.gain == 1.0).all())

    @cached_property
    def key(self) -> np.ndarray:
        """Number of the list that each row belongs to."""
        return run_of(np.diff(self.start))

    @cached_property
    def ideal(self) -> Hits:
        """The relevant rows of each list, best first, as hits of a list that recommends exactly
        them."""
        return self.ideal_by(self.gain)

    def ideal_by(self, gain: np.ndarray) -> Hits:
        """Return the ideal lists with other gains, which must descend within each list and keep
        relevant rows first."""
        n = self.n_relevant
        key, rank = run_of(n), place_in_run(n)
        rank += 1
        rows = self.start.take(key)
        rows += rank - 1
        return Hits(HitArrays(key, rank, gain.take(rows), rank, rows, rows))

    def kept(self, keep: np.ndarray) -> tuple[TrueLists, np.ndarray, np.ndarray]:
        """Keep the rows where `keep` is true.

        Also return the old place of each row that is kept, and for each old place the number of
        kept rows before it.
        """
        rows, to = np.flatnonzero(keep), offsets(keep)
        return (
            TrueLists(
                to[self.start], self.gain[rows], self.item[rows], lambda at: self.rows(rows[at])
            ),
            rows,
            to,
        )


@dataclass(frozen=True)
class TrueByKey:
    """The rows of `true`, to be paired with the lists of `pred`: `item`, `gain` by row; `start`,
    `length` by key."""

    item: np.ndarray
    gain: np.ndarray
    start: np.ndarray
    length: np.ndarray
    n_by: int

    @classmethod
    def of(cls, lists: Ranked, gain: np.ndarray, n_keys: int, n_by: int) -> TrueByKey:
        """Arrange ranked lists of `true` by key code, for `n_keys` keys and `n_by` values of
        `by`."""
        start, length = np.zeros(n_keys, np.int64), np.zeros(n_keys, np.int64)
        start[lists.code], length[lists.code] = lists.start[:-1], np.diff(lists.start)
        return cls(lists.item, gain, start, length, n_by)

    def pair(self, pred_lists: Ranked, n_items: int, judged_only: bool) -> Pairs:
        """Find in each list of `pred` the items that `true` has for its key, or only those that it
        judges."""
        _, key = split_codes(pred_lists.code, len(self.start), self.n_by)
        pairs = pair(pred_lists, self.item, self.start.take(key), self.length.take(key), n_items)
        return pairs.where(self.gain[pairs.sought] >= 0) if judged_only else pairs


class _Arrays(NamedTuple):
    """What is kept of one block: arrays as `PredLists` has them, and rows of `pred` to name in a
    message, which are `tied` or `repeated`."""

    code: np.ndarray
    first: np.ndarray
    length: np.ndarray
    n_pairs: np.ndarray
    rank: np.ndarray
    number: np.ndarray
    place: np.ndarray
    true_place: np.ndarray
    repeat: np.ndarray
    repeat_list: np.ndarray
    repeat_rank: np.ndarray
    tied: np.ndarray
    repeated: np.ndarray


class _Found(NamedTuple):
    """What one block gives beside its arrays. `settled` tells that settling changed the `lists`,
    which are kept only where there is a single block."""

    arrays: _Arrays
    counts: dict[str, int]
    doubtful: dict[str, int]
    has_levels: bool
    settled: bool
    lists: Ranked | None


class PredLists:
    """The lists of `pred`. Places count its rows list after list, best first.

    `code` : code of each list · `first` : row of the table where the list first appears · `start`
    (n_lists + 1) : first place of each list · `n_pairs` : number of judged rows of each list ·
    `rank`, `number`, `place`, `true_place` : what `Hits` says of each judged row, by ascending
    place · `repeat` : places whose item stands earlier in the same list · `repeat_list`,
    `repeat_rank` : the list of each repeated row, and its rank before repeated rows were dropped ·
    `some_tie` : whether some list has equal scores, or equal ranks.
    """

    def __init__(
        self,
        table: ReadRows,
        blocks: Blocks,
        items: IdCodes,
        true: TrueByKey,
        options: Options,
        excluded: Excluded | None = None,
        doubts: Mapping[OrderDoubt, str] | None = None,
    ) -> None:
        self._doubts = doubts or {}
        self._table, self._blocks, self._items, self._excluded = table, blocks, items, excluded
        self._true, self._options = true, options
        parts = blocks.each(self._measured)
        of_blocks = [part.arrays for part in parts]
        n_lists = offsets(np.array([len(one.code) for one in of_blocks])).tolist()
        n_rows = offsets(np.array([one.length.sum() for one in of_blocks])).tolist()
        of_blocks = [
            one._replace(
                place=one.place + row, repeat=one.repeat + row, repeat_list=one.repeat_list + at
            )
            for one, row, at in zip(of_blocks, n_rows, n_lists, strict=False)
        ]
        found = _Arrays(*map(np.concatenate, zip(*of_blocks, strict=True)))
        self.counts: Counter[str] = Counter()
        self.doubtful: Counter[str] = Counter()
        for part in parts:
            self.counts.update(part.counts)
            self.doubtful.update(part.doubtful)
        refuse_ties(table, found.tied, self.counts.pop("tied", 0), options)
        refuse_duplicates(table, found.repeated[:5], self.counts["pred_duplicates"], options)
        self.code, self.first, self.start = found.code, found.first, offsets(found.length)
        self.n_pairs, self.rank, self.number = found.n_pairs, found.rank, found.number
        self.place, self.true_place = found.place, found.true_place
        self.repeat, self.repeat_list, self.repeat_rank = found[8:11]
        self.some_tie = any(part.has_levels for part in parts)
        self._settled = any(part.settled for part in parts)
        self._one_block = parts[0].lists

    def __len__(self) -> int:
        return int(self.start[-1])

    def _ranked(self, block: Block) -> Ranked:
        if self._excluded is not None:
            key = split_codes(block.code, len(self._true.start), self._true.n_by)[1]
            block = self._excluded.left_of(block, key)
        return rank_pred(self._table, block, self._items, self._options)

    def _paired(self, ranked: Ranked) -> Pairs:
        return self._true.pair(ranked, self._items.n, self._options.judged_only)

    def _measured(self, block: Block) -> _Found:
        ranked = self._ranked(block)
        pairs = self._paired(ranked)
        repeat_list, repeat_rank = self._ranks_as_given(ranked, pairs)
        tied = tied_rows(ranked) if self._options.ties == "raise" else ranked.start[:0]
        repeated = ranked.rows(pairs.repeat[: 5 * (self._options.duplicates == "raise")])
        lists, pairs, counts = settle_pairs(ranked, pairs, self._true.gain, self._options)
        if self._excluded is not None:
            counts["pred_excluded"] = len(block.columns[0]) - len(ranked.item)
        if len(tied):
            counts["tied"] = len(tied)
        arrays = _Arrays(
            code=lists.code,
            first=lists.first,
            length=np.diff(lists.start),
            n_pairs=pairs.n,
            rank=pairs.place - np.repeat(lists.start[:-1] - 1, pairs.n),
            number=1 + place_in_run(pairs.n),
            place=pairs.place.astype(np.int32),
            true_place=pairs.sought.astype(np.int32),
            repeat=pairs.repeat,
            repeat_list=repeat_list,
            repeat_rank=repeat_rank,
            tied=tied[:1],
            repeated=repeated,
        )
        return _Found(
            arrays,
            counts,
            doubtful_lists(self._table, ranked, self._doubts),
            has_levels=lists.level is not None,
            settled=lists is not ranked,
            lists=lists if self._blocks.n == 1 else None,
        )

    def _ranks_as_given(self, ranked: Ranked, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
        """Return the list of each repeated row, and its rank among all rows of the list that are
        not condensed away."""
        if not len(pairs.repeat):
            return pairs.repeat, pairs.repeat
        n = len(ranked.item)
        left = pairs.has_sought(n) if self._options.judged_only else np.ones(n, bool)
        repeat, upto = pairs.repeat[left[pairs.repeat]], offsets(left)
        of_list = np.searchsorted(ranked.start, repeat, side="right") - 1
        return of_list, upto[repeat + 1] - upto[ranked.start[of_list]]

    @cached_property
    def _lists(self) -> Ranked:
        """The lists with all their rows, computed again block by block."""
        if self._one_block is not None:
            return self._one_block

        def again(block: Block) -> Ranked:
            lists = self._ranked(block)
            return (
                settle_pairs(lists, self._paired(lists), self._true.gain, self._options)[0]
                if self._settled
                else lists
            )

        return joined(self._blocks.each(again))

    @property
    def item(self) -> np.ndarray:
        """Item code at each place."""
        return self._lists.item

    @property
    def as_given(self) -> bool:
        """Whether the rows have the order that they have in the frame."""
        return isinstance(self._lists.row, slice) and self._table.row is None

    def all_rows(self) -> np.ndarray:
        """Row of the table at each place."""
        return self._lists.all_rows()

    def rows(self, places: np.ndarray) -> np.ndarray:
        """Return the positions in the frame of the rows at some places."""
        return self._table.frame_rows(self._lists.rows(places))

    @property
    def level(self) -> np.ndarray | None:
        """A number per place: equal for equal scores of a list, and larger for every later score;
        None without ties."""
        return self._lists.level if self.some_tie else None


# So many lists of a block are looked at, evenly spread, for an order that is not meant.
LOOKED_AT = 100


def doubtful_lists(
    table: ReadRows, ranked: Ranked, doubts: Mapping[OrderDoubt, str]
) -> dict[str, int]:
    """Count for each doubt about the order the lists for which it holds, and those that were looked
    at ("of counts").

    Lists of two items count from 1 to 2 by chance, so that three are needed there.
    """
    found: dict[str, int] = {}
    for doubt, name in doubts.items():
        length = np.diff(ranked.start)
        some = np.flatnonzero(length >= (3 if doubt == "counts" else 2))
        some = some[:: max(len(some) // LOOKED_AT, 1)]
        length, place = length[some], spans(ranked.start[some], length[some])
        row, start, within = ranked.rows(place), np.cumsum(length) - length, place_in_run(length)
        if name == table.number_col and table.number is not None:
            number = table.number.take(row)
        else:
            values = table.frame[name].take(table.frame_rows(row))
            number = read_numbers(values, f"{table.role}[{name!r}]")
        if doubt == "distance":
            holds = number >= 0
        elif doubt == "counts":  # of a list, the last row has the largest score and comes first
            holds = number == np.repeat(length, length) - within
            holds &= (within == 0) | (row < np.roll(row, 1))
        else:
            above = np.roll(number, 1)
            holds = (within == 0) | ~(number < above if is_rank(name) else number > above)
        lists = np.logical_and.reduceat(holds, start) if len(start) else holds
        n = int(np.count_nonzero(lists))
        found |= {doubt: len(some) - n if doubt == "beside" else n, f"of {doubt}": len(some)}
    return found
