"""Pair the rows of lists with rows of the same item, find repeated items, and take out the rows of
`exclude=`.

Contract: `pair_within` finds repeated items in lists given by start and length, and finds where
sought items stand in them. It sorts the rows of each list as integers, in time that is linear in
the number of rows, times the logarithm of a list's length.

`exclude=` takes rows out of one block of lists after another, before they are ranked. A list that
loses all its rows is no list any more, as if they had not been given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy import ndarray

from ..inputs.codes import Coded, check_kinds, encode_keys, first_rows
from ..inputs.ids import IdColumn
from ..inputs.machine import sizes
from ..inputs.sorting import (
    alike,
    distinct,
    flags_at,
    offsets,
    order_of_codes,
    place_in_run,
    run_of,
    windows,
)
from .list_keys import Block, at_heads


@dataclass(frozen=True)
class Pairs:
    """The rows of lists that pair with sought rows because they have the same item, and the
    repeated rows.

    `place`, `sought` : the two rows of each pair · `n` : number of pairs of each list · `repeat` :
    rows whose item stands earlier in the same list · `first` : the row where that item stands
    first.
    """

    place: ndarray
    sought: ndarray
    n: ndarray
    repeat: ndarray
    first: ndarray

    def where(self, keep: ndarray) -> Pairs:
        """Keep the pairs where `keep` is true."""
        if keep.all():
            return self
        n = np.diff(offsets(keep)[offsets(self.n)])
        return replace(self, place=self.place[keep], sought=self.sought[keep], n=n)

    def has_sought(self, n_rows: int) -> ndarray:
        """Tell for each row of the lists whether its item is sought in its list."""
        found = flags_at(self.place, n_rows)
        found[self.repeat] = found[self.first]
        return found


def pair_within(
    item: ndarray,
    start: ndarray,
    length: ndarray,
    sought: ndarray,
    sought_start: ndarray,
    sought_length: ndarray,
    n_items: int,
) -> Pairs:
    """Find the repeats in each list, and where it holds the items sought from it.

    `item`, `start`, `length` are the lists. `sought`, `sought_start`, `sought_length` are the items
    that are looked for in each of them. Item codes are below `n_items`. Where an item occurs
    several times, its j-th row pairs with the j-th row that is sought. Repeats are in ascending
    order, pairs in no particular order.

    The items of a list and those sought in it become integers in one row of a matrix. An item
    stands in the high bits, so that equal items are neighbours once the row is sorted, which numpy
    does at the speed of memory:

        | list of the row | item code, or a filler above all | 1 if sought | place in its list |
          high bits                                                              low bits

    Short lists share a row, in which the highest bits keep them apart.
    """
    item = item.astype(np.int32, copy=False)
    sought = sought.astype(np.int32, copy=False)
    n = np.zeros(len(start), np.int64)
    found: list[list[ndarray]] = [[], [], [], []]
    for lists in alike(length, sought_length):
        own = _ItemLists(item, start.take(lists), length.take(lists))
        other = _ItemLists(sought, sought_start.take(lists), sought_length.take(lists))
        width = own.width + other.width
        if not own.width or width < 2:
            continue
        # The widths of the fields in the drawing above, starting from the lowest bits.
        bits = (max(own.width, other.width) - 1).bit_length() + 1
        list_bits = bits + (n_items + width - 1).bit_length()
        in_row = 1 << max((sizes().row_cells // width).bit_length() - 1, 0)
        dtype: Any = (
            np.uint32 if list_bits + in_row.bit_length() - 1 <= sizes().narrow_bits else np.uint64
        )
        is_sought = dtype(1 << (bits - 1))
        place_bits = dtype((1 << (bits - 1)) - 1)
        row = np.arange(in_row, dtype=dtype)[:, None] << dtype(list_bits)
        # A list is filled up to the width of its row with distinct codes that no item has.
        beyond = row | (np.arange(n_items, n_items + width, dtype=dtype) << dtype(bits))
        keys = own.keys(row, beyond[:, : own.width], bits)
        if other.width:
            more = other.keys(row | is_sought, beyond[:, own.width :], bits)
            keys = np.concatenate([keys, more], axis=2)
        cells = keys.ravel()
        cells.reshape(-1, in_row * width).sort(axis=1)
        same = (cells[1:] ^ cells[:-1]) < dtype(1 << bits)
        same[width - 1 :: width] = False  # the last cell of a list has no next cell in it
        before = np.flatnonzero(same)
        left = cells.take(before)
        right = cells.take(before + 1)
        if not ((left ^ right) & is_sought).all():
            repeat, first, before, after = _in_runs(before, cells & is_sought != 0)
            left = cells.take(before)
            right = cells.take(after)
            list_start = own.start.take(repeat // width)
            found[2].append(list_start + (cells.take(repeat) & place_bits).astype(np.int64))
            found[3].append(list_start + (cells.take(first) & place_bits).astype(np.int64))
        list_of = before // width
        found[0].append(own.start.take(list_of) + (left & place_bits).astype(np.int64))
        found[1].append(other.start.take(list_of) + (right & place_bits).astype(np.int64))
        if len(list_of):
            n[lists] = np.bincount(list_of, minlength=len(lists))
    place, query, repeat, first = (
        np.concatenate(parts) if parts else np.empty(0, np.int64) for parts in found
    )
    order = np.argsort(repeat)
    return Pairs(place, query, n, repeat[order], first[order])


@dataclass(frozen=True)
class _ItemLists:
    """Lists of items: list i has the `length[i]` values from `start[i]` on."""

    values: ndarray
    start: ndarray
    length: ndarray

    @cached_property
    def width(self) -> int:
        return int(self.length.max())

    def keys(self, row: ndarray, beyond: ndarray, bits: int) -> ndarray:
        """Return items in the bits above their places, shape (rows, lists of a row, width).

        `row` are the highest bits of each list, and `beyond` are the codes that fill it up. The
        last row may have room for more lists than there are; these have no items.
        """
        dtype = row.dtype.type
        in_row = len(row)
        width = self.width
        n_none = -len(self.start) % in_row
        start = np.append(self.start, np.zeros(n_none, np.int64)) if n_none else self.start
        place = np.arange(width, dtype=dtype)
        keys = windows(self.values, start, width).view(np.uint32).astype(dtype, copy=False)
        rows = keys.reshape(-1, in_row * width)
        rows <<= dtype(bits)
        rows |= (row | place).ravel()
        lists = rows.reshape(-1, in_row, width)
        if self.length.min() < width:
            short = (
                place >= np.append(self.length, np.zeros(n_none, np.int64)).astype(dtype)[:, None]
            )
            np.copyto(lists, beyond, where=short.reshape(lists.shape))
        elif n_none:
            lists[-1, -n_none:] = beyond[-n_none:]
        return lists


def _in_runs(before: ndarray, is_sought: ndarray) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """Return the cells of repeats, the cells where these items stand first, and the two cells of
    each pair.

    Equal items stand together, in any number. `before` are the cells with the same item as the next
    cell. Items of the list stand before sought ones.
    """
    head = np.flatnonzero(np.append(True, before[1:] != before[:-1] + 1))
    length = np.diff(np.append(head, len(before))) + 1
    first = before[head]
    run = run_of(length)
    number = place_in_run(length)
    cell = first[run] + number
    sought = is_sought[cell]
    n_listed = np.bincount(run[~sought], minlength=len(head))[run]
    repeat = np.flatnonzero(~sought & (number > 0))
    after = np.flatnonzero(sought & (number < 2 * n_listed))
    return cell[repeat], first[run[repeat]], cell[after] - n_listed[after], cell[after]


@dataclass(frozen=True)
class Excluded:
    """The items that go out of lists: those of user i are item[start[i]:start[i + 1]], and `user`
    has the user of each key. The number after the last user stands for a key without excluded
    rows. `n_items` is above the items."""

    user: ndarray
    start: ndarray
    item: ndarray
    n_items: int

    @classmethod
    def of(
        cls,
        users: Sequence[IdColumn],
        item: Coded,
        of_lists: Sequence[Sequence[IdColumn]],
        key_codes: Sequence[Coded],
        n_keys: int,
        n_items: int,
    ) -> Excluded:
        """Arrange the items of excluded rows by list keys; `users` are the rows' users. For each
        frame, `of_lists` has the users of some rows, and `key_codes` the codes of their keys."""
        for columns in zip(*of_lists, users, strict=True):
            check_kinds(columns)
        known = []
        tables = []
        for keys, codes in zip(of_lists, key_codes, strict=True):  # one row stands for each key
            first = first_rows(codes, n_keys)
            known.append(np.flatnonzero(first >= 0))
            tables.append(at_heads(keys, first[known[-1]]))
        (*of_frames, of_rows), n = encode_keys([*tables, users])
        user = np.full(n_keys, n)
        for places, coded in zip(known, of_frames, strict=True):
            user[places] = coded.all()
        code = of_rows.all()
        start = offsets(np.bincount(code, minlength=n + 1))
        return cls(user, start, item.all().take(order_of_codes(code, n)), n_items)

    @property
    def length(self) -> ndarray:
        """Number of excluded rows of each key."""
        return np.diff(self.start).take(self.user)

    def n_distinct(self, inside: ndarray) -> ndarray:
        """Return for each key the number of its different items that are `inside` (bool per item
        code)."""
        user = run_of(np.diff(self.start))
        user, item = np.divmod(distinct(user * self.n_items + self.item), self.n_items)
        return np.bincount(user[inside[item]], minlength=len(self.start)).take(self.user)

    def left_of(self, block: Block, key: ndarray) -> Block:
        """Return the lists that are left of a block. `key` is the key code of each of its lists."""
        item = block.columns[0]
        start = block.start
        user = self.user.take(key)
        begin = self.start.take(user)
        length = self.start.take(user + 1) - begin
        pairs = pair_within(
            item, start[:-1], np.diff(start), self.item, begin, length, self.n_items
        )
        out = pairs.has_sought(len(item))
        return block.where(~out) if out.any() else block
