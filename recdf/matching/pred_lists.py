"""The lists of `pred`: ranked, paired with `true` and settled, one block of lists after another.

Contract: the hits and lengths of every block are kept, since most metrics need them. The item and the row at every
place are computed again, by the same steps, when something reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..inputs.codes import IdCodes
from ..inputs.options import Options
from ..inputs.sorting import offsets
from ..inputs.true_and_pred import ReadRows
from .blocks import Block, Blocks
from .ranked import Ranked, joined, rank_pred, refuse_duplicates, refuse_ties, settle_pairs, tied_rows
from .true_lists import TrueByKey


@dataclass(frozen=True)
class _Found:
    """What is kept of one block; the arrays are those of `PredLists`.

    `tied` and `repeated` are rows of `pred` to name in a message. `settled` tells that settling changed the ranked
    lists. `lists` are kept only where there is a single block.
    """

    code: np.ndarray
    first: np.ndarray
    length: np.ndarray
    n_pairs: np.ndarray
    rank: np.ndarray
    number: np.ndarray
    place: np.ndarray
    true_place: np.ndarray
    repeat: np.ndarray
    counts: dict[str, int]
    has_levels: bool
    tied: np.ndarray
    n_tied: int
    repeated: np.ndarray
    settled: bool
    lists: Ranked | None


class PredLists:
    """The lists of `pred`. Places count its rows list after list, best first.

    `code` : code of each list · `first` : row of the table where the list first appears · `start` (n_lists + 1) :
    first place of each list · `n_pairs` : number of judged rows of each list · `rank`, `number`, `place`,
    `true_place` : what `Hits` says of each judged row, by ascending place · `repeat` : places whose item stands earlier
    in the same list.
    """

    def __init__(self, table: ReadRows, blocks: Blocks, items: IdCodes, true: TrueByKey, options: Options) -> None:
        self._table, self._blocks, self._items = table, blocks, items
        self._true, self._options = true, options
        parts = blocks.each(self._measured)
        refuse_ties(table, parts_of(parts, "tied"), sum(part.n_tied for part in parts), options)
        self.counts: dict[str, int] = {}
        for part in parts:
            for name, n in part.counts.items():
                self.counts[name] = self.counts.get(name, 0) + n
        refuse_duplicates(table, parts_of(parts, "repeated")[:5], self.counts.get("pred_duplicates", 0), options)
        self.code, self.first, self.n_pairs, self.rank, self.number, self.true_place = (
            parts_of(parts, name) for name in ("code", "first", "n_pairs", "rank", "number", "true_place")
        )
        self.start = offsets(parts_of(parts, "length"))
        above = offsets(np.array([part.length.sum() for part in parts]))[:-1].tolist()
        self.place, self.repeat = (
            np.concatenate([getattr(part, name) + first for part, first in zip(parts, above, strict=True)])
            for name in ("place", "repeat")
        )
        self._has_levels = any(part.has_levels for part in parts)
        self._settled = any(part.settled for part in parts)
        self._one_block = parts[0].lists

    def __len__(self) -> int:
        return int(self.start[-1])

    def _ranked(self, block: Block) -> Ranked:
        return rank_pred(self._table, block, self._items, self._options)

    def _measured(self, block: Block) -> _Found:
        ranked = self._ranked(block)
        pairs = self._true.pair(ranked, self._items.n)
        tied = tied_rows(ranked) if self._options.ties == "raise" else ranked.start[:0]
        repeated = ranked.rows(pairs.repeat[:5]) if self._options.duplicates == "raise" else ranked.start[:0]
        lists, pairs, counts = settle_pairs(ranked, pairs, self._true.gain, self._options)
        return _Found(
            code=lists.code,
            first=lists.first,
            length=np.diff(lists.start),
            n_pairs=pairs.n,
            rank=pairs.place - np.repeat(lists.start[:-1] - 1, pairs.n),
            number=np.arange(1, len(pairs.place) + 1) - np.repeat(np.cumsum(pairs.n) - pairs.n, pairs.n),
            place=pairs.place.astype(np.int32),
            true_place=pairs.sought.astype(np.int32),
            repeat=pairs.repeat,
            counts=counts,
            has_levels=lists.level is not None,
            tied=tied[:1],
            n_tied=len(tied),
            repeated=repeated,
            settled=lists is not ranked,
            lists=lists if self._blocks.n == 1 else None,
        )

    @cached_property
    def _lists(self) -> Ranked:
        """The lists with all their rows, computed again block by block."""
        if self._one_block is not None:
            return self._one_block

        def again(block: Block) -> Ranked:
            lists = self._ranked(block)
            return (
                settle_pairs(lists, self._true.pair(lists, self._items.n), self._true.gain, self._options)[0]
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
    def some_tie(self) -> bool:
        """Whether some list has equal scores, or equal ranks."""
        return self._has_levels

    @property
    def level(self) -> np.ndarray | None:
        """A number per place: equal for equal scores of a list, and larger for every later score; None without ties."""
        return self._lists.level if self._has_levels else None


def parts_of(parts: Sequence[_Found], name: str) -> np.ndarray:
    return np.concatenate([getattr(part, name) for part in parts])
