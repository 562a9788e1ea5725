"""The rows that `exclude=` takes out of both frames before their lists are ranked.

Contract: rows go out of one block of lists after another. A list that loses all its rows is no list any more, as if its
rows had not been given. What is left keeps its order, so that later rows move up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..inputs.codes import Coded, check_kinds, encode_keys, first_rows
from ..inputs.ids import IdColumn
from ..inputs.sorting import offsets
from .blocks import Block, list_blocks
from .list_keys import at_heads, key_run_heads
from .pairing import has_sought


@dataclass(frozen=True)
class KeyRows:
    """The columns of list keys of a frame, and the code of each row, or of each of its `heads`."""

    keys: Sequence[IdColumn]
    code: Coded
    heads: np.ndarray | None

    def by_key(self, columns: Sequence[int], n_keys: int) -> tuple[np.ndarray, list[IdColumn]]:
        """Return the codes that the frame has, and some columns of the key of each."""
        first = first_rows(self.code, n_keys)
        codes = np.flatnonzero(first >= 0)
        rows = first[codes] if self.heads is None else self.heads[first[codes]]
        return codes, [self.keys[i].take(rows) for i in columns]


@dataclass(frozen=True)
class Excluded:
    """The items that go out of the lists of each key: `item`; `start` and `length` by key. `n_items` is above them."""

    item: np.ndarray
    start: np.ndarray
    length: np.ndarray
    n_items: int

    @classmethod
    def of(
        cls, keys: Sequence[IdColumn], columns: Sequence[int], item: Coded, frames: Sequence[KeyRows], n_keys: int,
        n_items: int,
    ) -> Excluded:  # fmt: skip
        """Arrange excluded rows by list key. `keys` are their users, and `columns` says which columns of a list key."""
        for i, ids in zip(columns, keys, strict=True):
            check_kinds([*(frame.keys[i] for frame in frames), ids])
        known = [frame.by_key(columns, n_keys) for frame in frames]
        heads = key_run_heads(keys)
        (*of_frames, code), n = encode_keys([*(ids for _, ids in known), at_heads(keys, heads)])
        user = np.full(n_keys, n, np.int64)  # the user code of each key
        place = np.full(n, -1, np.int32)  # users that no list has are left out
        for (codes, _), users in zip(known, of_frames, strict=True):
            user[codes] = users.all()
            place[users.all()] = users.all()
        blocks = list_blocks(code.mapped(place), heads, len(item), n, [item]).each(lambda block: block)
        start, length = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        above = 0
        for block in blocks:
            start[block.code], length[block.code] = block.start[:-1] + above, np.diff(block.start)
            above += len(block.columns[0])
        items = np.concatenate([block.columns[0] for block in blocks])
        return cls(items, start.take(user), length.take(user), n_items)

    @property
    def n_known(self) -> int:
        """The number of list keys whose user has an excluded item."""
        return int(np.count_nonzero(self.length))

    def left_of(self, block: Block, key: np.ndarray) -> Block:
        """Return the lists that are left of a block. `key` is the key code of each of its lists."""
        item, start = block.columns[0], block.start
        sought = self.item, self.start.take(key), self.length.take(key)
        keep = ~has_sought(item, start[:-1], np.diff(start), *sought, self.n_items)
        if keep.all():
            return block
        rows, start = np.flatnonzero(keep), offsets(keep)[start]
        lists = np.flatnonzero(np.diff(start))
        row = rows + block.row.start if isinstance(block.row, slice) else block.row.take(rows)
        start = np.append(start[lists], len(rows))
        return Block(block.code[lists], start, row, [values.take(rows) for values in block.columns])
