"""Rank and pair rows of integer codes and numbers.

Contract: the rows of a list stand together. `rank_within` orders each list, where list i has the rows
`start[i]:start[i + 1]`. `pair_within` finds repeated items in lists given by start and length, and finds where sought
items stand in them. Both sort the rows of each list as integers. Their time is linear in the number of rows, times the
logarithm of a list's length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..inputs.sorting import distinct, run_heads

# A matrix whose rows are sorted has about so many cells, so that it stays in a processor's cache.
MATRIX_CELLS = 2**18

# A matrix row that short lists share has so many cells: numpy sorts about that many without branches.
ROW_CELLS = 128

# Keys of pairs that need no more bits than these take four bytes each.
NARROW_BITS = 32

# Arrow sorts integers of up to so many bits by counting, which takes linear time.
COUNTED_BITS = 12


def at(values: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
    """Return values[rows]: a view for a slice, and otherwise by `take`, which is faster than indexing."""
    return values[rows] if isinstance(rows, slice) else values.take(rows)


def spans(start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Concatenate the ranges start[i] .. start[i] + length[i] - 1."""
    before = np.cumsum(length) - length
    total = int(length.sum())
    rows = np.repeat((start - before).astype(np.int32), length)
    rows += np.arange(total, dtype=np.int32)
    return rows


def offsets(length: np.ndarray) -> np.ndarray:
    """Return where consecutive lists of these lengths start, and where the last one ends."""
    start = np.zeros(len(length) + 1, np.int64)
    np.cumsum(length, out=start[1:])
    return start


def order_of_codes(codes: np.ndarray, n: int) -> np.ndarray:
    """Return the positions that sort integers from 0 to n - 1; equal integers keep their order."""
    if n <= 2**COUNTED_BITS:
        order: np.ndarray = pc.sort_indices(pa.array(codes)).to_numpy()
        return order.view(np.int64)  # old numpy takes no uint64 as index
    if n <= 2**16:
        return np.argsort(codes.astype(np.uint16, copy=False), kind="stable")  # numpy uses radix sort for 16 bits
    order = order_of_codes(codes & (2**COUNTED_BITS - 1), 2**COUNTED_BITS)
    high = (codes >> COUNTED_BITS).take(order)
    return order.take(order_of_codes(high, ((n - 1) >> COUNTED_BITS) + 1))


def rank_within(key: np.ndarray, start: np.ndarray, descending: bool = False) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the places that order each list by `key` (int64, uint64 or float64), and `key` in that order.

    NaN comes last and equal numbers keep their order. The result is None if the lists are in order already.

    Each number is packed into an integer whose lowest bits are its place in the list. Sorting these integers is stable,
    and faster than sorting positions. Packing can cut off low bits of a number; lists that this puts in a wrong order
    are sorted again.
    """
    if len(key) < 2:
        return None
    beyond = np.less if descending else np.greater
    heads = start[(start > 0) & (start < len(key))]
    if _falls(key, heads, beyond) is None:
        return None
    length = np.diff(start)
    base = np.repeat(start[:-1], length)
    place_bits = (1 << (int(length.max()) - 1).bit_length()) - 1
    packed = _as_integers(key, place_bits, descending)
    place = np.arange(len(key))
    place -= base
    packed |= place
    sort_within(packed, start)
    packed &= place_bits
    packed += base
    ordered = key.take(packed)
    wrong = _falls(ordered, heads, beyond)
    if wrong is not None:
        lists = distinct(np.searchsorted(start, np.flatnonzero(wrong), side="right") - 1)
        rows = spans(start[lists], length[lists])
        flip = np.invert if key.dtype.kind in "iu" else np.negative
        own = flip(key.take(rows)) if descending else key.take(rows)
        packed[rows] = rows.take(np.lexsort((own, base.take(rows))))
        ordered[rows] = key.take(packed.take(rows))
    return packed, ordered


def _falls(key: np.ndarray, heads: np.ndarray, beyond: np.ufunc) -> np.ndarray | None:
    """Tell for each row but the last whether it must come after the next row of its list; None if no row must."""
    falls = beyond(key[:-1], key[1:])
    if key.dtype.kind == "f":
        falls |= np.isnan(key[:-1]) & ~np.isnan(key[1:])
    falls[heads - 1] = False
    return falls if falls.any() else None


def _as_integers(key: np.ndarray, place_bits: int, descending: bool) -> np.ndarray:
    """Return int64 numbers that sort as `key` does; their lowest bits, those set in `place_bits`, are free.

    | number: all of it if it is a small integer, else its high bits | place in the list |
      high bits                                                          low bits
    """
    if key.dtype.kind == "f":
        whole = (key + 0.0).view(np.int64)  # adding 0.0 turns -0.0 into 0.0
        negative = whole >> 63
        negative &= np.iinfo(np.int64).max  # for negative floats, larger bits mean a smaller number
        whole ^= negative
    else:
        low, high = int(key.min()), int(key.max())
        if (high - low + 1) * (place_bits + 1) <= 2**63:
            above_low: np.ndarray = key.dtype.type(high) - key if descending else key - key.dtype.type(low)
            narrow = above_low.view(np.int64)
            narrow *= place_bits + 1
            return narrow
        whole = key.view(np.int64) ^ (np.iinfo(np.int64).min if key.dtype.kind == "u" else 0)
    if descending:
        np.invert(whole, out=whole)
    if key.dtype.kind == "f" and np.isnan(key.min()):
        whole[np.isnan(key)] = np.iinfo(np.int64).max
    whole &= ~place_bits
    return whole


def sort_within(key: np.ndarray, start: np.ndarray) -> None:
    """Sort int64 numbers within each list, in place. The number 2**63 - 1 may occur only as a list's largest."""
    length = np.diff(start)
    for lists in alike(length):
        first, width = lists[0], int(length[lists].max())
        if width < 2:
            continue
        if (length[lists] == width).all() and lists[-1] - first + 1 == len(lists):
            # Consecutive lists of one length already form a matrix, so they are sorted without a copy.
            key[start[first] : start[first] + len(lists) * width].reshape(-1, width).sort(axis=1)
            continue
        matrix = windows(key, start[lists], width)
        inside = np.arange(width) < length[lists, None]
        np.copyto(matrix, np.iinfo(np.int64).max, where=~inside)
        matrix.sort(axis=1)
        key[spans(start[lists], length[lists])] = matrix[inside]


def windows(values: np.ndarray, start: np.ndarray, width: int) -> np.ndarray:
    """Copy values[start[i]:start[i] + width] into row i; cells past the end of `values` hold arbitrary numbers."""
    last = len(values) - width
    # A view in which the `width` values from each position on are one item, so that they are copied as a whole.
    window: np.ndarray = np.ndarray(last + 1, f"V{values.itemsize * width}", values, strides=values.strides)
    rows: np.ndarray = window[np.minimum(start, last)].view(values.dtype).reshape(-1, width)
    over = np.flatnonzero(start > last)
    if len(over):
        rows[over] = values.take(start[over, None] + np.arange(width), mode="clip")
    return rows


def alike(*length: np.ndarray) -> Iterator[np.ndarray]:
    """Yield list numbers in groups of similar length: none is over twice as long as another, or all have at most 1 row.

    Lists have one length per argument, and a group is similar in each of them. Its lists, side by side as the rows of a
    matrix, take about `MATRIX_CELLS` cells.
    """
    exponents = [_exponents(int(one.max(initial=0))).take(one) for one in length]
    sizes = exponents[0]
    for exponent in exponents[1:]:
        sizes = sizes << np.uint16(5) | exponent
    order = order_of_codes(sizes, 32 ** len(length))
    sizes = sizes[order]
    for first, last in pairwise([*run_heads([sizes]).tolist(), len(sizes)]):
        cells = sum(1 << int(exponent[order[first]]) for exponent in exponents)
        step = max(MATRIX_CELLS // cells, 1)
        for i in range(first, last, step):
            yield order[i : min(i + step, last)]


@dataclass(frozen=True)
class Pairs:
    """The rows of lists that pair with sought rows because they have the same item, and the repeated rows.

    `place`, `sought` : the two rows of each pair · `n` : number of pairs of each list · `repeat` : rows whose item
    stands earlier in the same list · `first` : the row where that item stands first.
    """

    place: np.ndarray
    sought: np.ndarray
    n: np.ndarray
    repeat: np.ndarray
    first: np.ndarray


def _exponents(longest: int) -> np.ndarray:
    """Return for every length n up to `longest` the least e with n <= 2**e."""
    return np.frexp(np.maximum(np.arange(longest + 1) - 1, 0))[1].astype(np.uint16)


def pair_within(
    item: np.ndarray,
    start: np.ndarray,
    length: np.ndarray,
    sought: np.ndarray,
    sought_start: np.ndarray,
    sought_length: np.ndarray,
    n_items: int,
) -> Pairs:
    """Find the repeats in each list, and where it holds the items sought from it.

    `item`, `start`, `length` are the lists. `sought`, `sought_start`, `sought_length` are the items that are looked for
    in each of them. Item codes are below `n_items`. Where an item occurs several times, its j-th row pairs with the
    j-th row that is sought. Repeats are in ascending order, pairs in no particular order.

    The items of a list and those sought in it become integers in one row of a matrix. An item stands in the high bits,
    so that equal items are neighbours once the row is sorted, which numpy does at the speed of memory:

        | list of the row | item code, or a filler above all codes | 1 if sought | place in its list |
          high bits                                                                    low bits

    Short lists share a row, in which the highest bits keep them apart.
    """
    item, sought = item.astype(np.int32, copy=False), sought.astype(np.int32, copy=False)
    n = np.zeros(len(start), np.int64)
    found: list[list[np.ndarray]] = [[], [], [], []]
    for lists in alike(length, sought_length):
        own = _ItemLists(item, start.take(lists), length.take(lists))
        other = _ItemLists(sought, sought_start.take(lists), sought_length.take(lists))
        width = own.width + other.width
        if not own.width or width < 2:
            continue
        # The widths of the fields in the drawing above, starting from the lowest bits.
        bits = (max(own.width, other.width) - 1).bit_length() + 1
        list_bits = bits + (n_items + width - 1).bit_length()
        in_row = 1 << max((ROW_CELLS // width).bit_length() - 1, 0)
        dtype: Any = np.uint32 if list_bits + in_row.bit_length() - 1 <= NARROW_BITS else np.uint64
        is_sought, place_bits = dtype(1 << (bits - 1)), dtype((1 << (bits - 1)) - 1)
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
        left, right = cells.take(before), cells.take(before + 1)
        if not ((left ^ right) & is_sought).all():
            repeat, first, before, after = _in_runs(before, cells & is_sought != 0)
            left, right = cells.take(before), cells.take(after)
            list_start = own.start.take(repeat // width)
            found[2].append(list_start + (cells.take(repeat) & place_bits).astype(np.int64))
            found[3].append(list_start + (cells.take(first) & place_bits).astype(np.int64))
        list_of = before // width
        found[0].append(own.start.take(list_of) + (left & place_bits).astype(np.int64))
        found[1].append(other.start.take(list_of) + (right & place_bits).astype(np.int64))
        if len(list_of):
            n[lists] = np.bincount(list_of, minlength=len(lists))
    place, query, repeat, first = (np.concatenate(parts) if parts else np.empty(0, np.int64) for parts in found)
    order = np.argsort(repeat)
    return Pairs(place, query, n, repeat[order], first[order])


@dataclass(frozen=True)
class _ItemLists:
    """Lists of items: list i has the `length[i]` values from `start[i]` on."""

    values: np.ndarray
    start: np.ndarray
    length: np.ndarray

    @cached_property
    def width(self) -> int:
        return int(self.length.max())

    def keys(self, row: np.ndarray, beyond: np.ndarray, bits: int) -> np.ndarray:
        """Return items in the bits above their places, shape (rows, lists of a row, width).

        `row` are the highest bits of each list, and `beyond` are the codes that fill it up. The last row may have room
        for more lists than there are; these have no items.
        """
        dtype, in_row, width = row.dtype.type, len(row), self.width
        n_none = -len(self.start) % in_row
        start = np.append(self.start, np.zeros(n_none, np.int64)) if n_none else self.start
        place = np.arange(width, dtype=dtype)
        keys = windows(self.values, start, width).view(np.uint32).astype(dtype, copy=False)
        rows = keys.reshape(-1, in_row * width)
        rows <<= dtype(bits)
        rows |= (row | place).ravel()
        lists = rows.reshape(-1, in_row, width)
        if self.length.min() < width:
            short = place >= np.append(self.length, np.zeros(n_none, np.int64)).astype(dtype)[:, None]
            np.copyto(lists, beyond, where=short.reshape(lists.shape))
        elif n_none:
            lists[-1, -n_none:] = beyond[-n_none:]
        return lists


def _in_runs(before: np.ndarray, is_sought: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the cells of repeats, the cells where these items stand first, and the two cells of each pair.

    Equal items stand together, in any number. `before` are the cells with the same item as the next cell. Items of the
    list stand before sought ones.
    """
    head = np.flatnonzero(np.append(True, before[1:] != before[:-1] + 1))
    length = np.diff(np.append(head, len(before))) + 1
    first = before[head]
    run = np.repeat(np.arange(len(head)), length)
    number = np.arange(len(run)) - np.repeat(np.cumsum(length) - length, length)
    cell = first[run] + number
    sought = is_sought[cell]
    n_listed = np.bincount(run[~sought], minlength=len(head))[run]
    repeat = np.flatnonzero(~sought & (number > 0))
    after = np.flatnonzero(sought & (number < 2 * n_listed))
    return cell[repeat], first[run[repeat]], cell[after] - n_listed[after], cell[after]
