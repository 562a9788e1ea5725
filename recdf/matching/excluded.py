"""The rows that `exclude=` takes out of both frames before their lists are ranked.

Contract: rows go out of one block of lists after another. A list that loses all its rows is no list
any more, as if its rows had not been given. What is left keeps its order, so that later rows move
up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..inputs.codes import Coded, check_kinds, encode_keys, first_rows
from ..inputs.ids import IdColumn
from ..inputs.sizes import sizes
from ..inputs.sorting import distinct, offsets, sort_within, spans
from .blocks import Block, list_blocks
from .list_keys import at_heads, key_run_heads
from .pairing import pair_within

# The columns of the excluded users in a frame, the code of the list key of each row, and the rows
# that have codes.
FrameKeys = tuple[Sequence[IdColumn], Coded, np.ndarray | None]


@dataclass(frozen=True)
class Excluded:
    """The items that go out of the lists of each key: `item`; `start` and `length` by key.
    `n_items` is above them."""

    item: np.ndarray
    start: np.ndarray
    length: np.ndarray
    n_items: int

    @classmethod
    def of(
        cls,
        users: Sequence[IdColumn],
        item: Coded,
        frames: Sequence[FrameKeys],
        n_keys: int,
        n_items: int,
    ) -> Excluded:
        """Arrange the items of excluded rows by the list keys of both frames; `users` are the rows'
        users."""
        for columns in zip(*(keys for keys, _, _ in frames), users, strict=True):
            check_kinds(columns)
        known, tables = [], []
        for keys, key_code, rows in frames:  # one row stands for each key
            first = first_rows(key_code, n_keys)
            known.append(np.flatnonzero(first >= 0))
            first = first[known[-1]]
            tables.append(at_heads(keys, first if rows is None else rows[first]))
        heads = key_run_heads(users)
        (*of_frames, code), n = encode_keys([*tables, at_heads(users, heads)])
        user, place = (
            np.full(n_keys, n, np.int64),
            np.full(n, -1, np.int32),
        )  # users that no list has are left out
        for codes, coded in zip(known, of_frames, strict=True):
            user[codes] = place[coded.all()] = coded.all()
        blocks = list_blocks(code.mapped(place), heads, len(item), n, [item]).each(
            lambda block: block
        )
        items = np.concatenate([block.columns[0] for block in blocks])
        start, length, above = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), 0
        for block in blocks:
            start[block.code], length[block.code] = block.start[:-1] + above, np.diff(block.start)
            above += len(block.columns[0])
        return cls(items, start.take(user), length.take(user), n_items)

    def n_distinct(self, inside: np.ndarray) -> np.ndarray:
        """Return for each key the number of its different items that are `inside` (bool per item
        code)."""
        if not len(self.item):
            return np.zeros(len(self.start), np.int64)
        item = self.item.astype(np.int64)
        edges = np.append(distinct(self.start[self.length > 0]), len(item))
        sort_within(item, edges)
        new = np.append(True, item[1:] != item[:-1])
        new[edges[:-1]] = True
        above = offsets(new & inside[item])
        found: np.ndarray = above[self.start + self.length] - above[self.start]
        return found

    def left_of(self, block: Block, key: np.ndarray) -> Block:
        """Return the lists that are left of a block. `key` is the key code of each of its lists."""
        item, start = block.columns[0], block.start
        out = self._has(item, start, key)
        if not out.any():
            return block
        rows = np.flatnonzero(~out)
        start = np.searchsorted(rows, start)
        lists = np.flatnonzero(np.diff(start))
        row = rows + block.row.start if isinstance(block.row, slice) else block.row.take(rows)
        start = np.append(start[lists], len(rows))
        return Block(block.code[lists], start, row, [values.take(rows) for values in block.columns])

    def _has(self, item: np.ndarray, start: np.ndarray, key: np.ndarray) -> np.ndarray:
        """Tell for each row of lists whether its item goes out of its list.

        A few lists at a time mark their excluded items in a table that stays in the processor's
        cache, and then look up their own. Where the catalogue is so large that too few lists have
        room in it, rows are paired instead.
        """
        begin, n_out, n_own = self.start.take(key), self.length.take(key), np.diff(start)
        together = min(sizes().marked_cells // max(self.n_items, 1), len(key))
        if len(key) * sizes().rows_of_marks >= (len(item) + int(n_out.sum())) * together:
            return pair_within(
                item, start[:-1], n_own, self.item, begin, n_out, self.n_items
            ).has_sought(len(item))
        mark, found = np.zeros(together * self.n_items, np.uint8), np.empty(len(item), bool)
        table = np.arange(together, dtype=np.int32) * np.int32(
            self.n_items
        )  # where the marks of each list begin
        end = begin + n_out

        def places(lists: slice, length: np.ndarray, items: np.ndarray) -> np.ndarray:
            found = table[: len(begin[lists])].repeat(length[lists])
            found += items
            return found.astype(np.intp)

        for i, first in enumerate(range(0, len(key), together)):
            lists, number = slice(first, first + together), i % 255 + 1
            if number == 1:  # other numbers are no marks yet, so nothing has to be cleared
                mark[:] = 0
            a, z = begin[lists], end[lists]
            out = (
                self.item[a[0] : z[-1]]
                if (a[1:] == z[:-1]).all()
                else self.item.take(spans(a, n_out[lists]))
            )
            mark[places(lists, n_out, out)] = number
            rows = slice(start[first], start[first + len(a)])
            np.equal(mark.take(places(lists, n_own, item[rows])), number, out=found[rows])
        return found
