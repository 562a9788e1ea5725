"""Rank and pair rows that are nothing but integer codes and numbers.

Contract: the rows of a list stand together. `rank_within` orders each list, `start[i]:start[i + 1]` being list i;
`pair_within` finds duplicates and where sought items stand, in lists of which each has a start and a length. Both sort
each list's rows as integers, and take time linear in the rows, times the log of a list's length.
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

# Cells of the matrices whose rows are sorted, so that they stay in a processor's cache.
MATRIX_CELLS = 2**18

# Cells of a row that short lists share: about as many are sorted without branches.
ROW_CELLS = 128

# Keys of pairs that need no more bits than these take four bytes each.
NARROW_BITS = 32

# Arrow sorts integers of so many bits by counting.
COUNTED_BITS = 12


def at(values: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
    """values[rows]: a view of a slice, and else by `take`, which is the faster way."""
    return values[rows] if isinstance(rows, slice) else values.take(rows)


def spans(start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Concatenate the ranges start[i] .. start[i] + length[i] - 1."""
    before = np.cumsum(length) - length
    total = int(length.sum())
    rows = np.repeat((start - before).astype(np.int32), length)
    rows += np.arange(total, dtype=np.int32)
    return rows


def offsets(length: np.ndarray) -> np.ndarray:
    """Starts of consecutive lists of these lengths, and the end of the last."""
    start = np.zeros(len(length) + 1, np.int64)
    np.cumsum(length, out=start[1:])
    return start


def stable_order(codes: np.ndarray, n: int) -> np.ndarray:
    """Positions in ascending order of integers from 0 to n - 1, equal ones as they stand."""
    if n <= 2**COUNTED_BITS:
        order: np.ndarray = pc.sort_indices(pa.array(codes)).to_numpy()
        return order.view(np.int64)  # old numpy takes no uint64 as index
    if n <= 2**16:
        return np.argsort(codes.astype(np.uint16, copy=False), kind="stable")  # which numpy sorts by their digits
    order = stable_order(codes & (2**COUNTED_BITS - 1), 2**COUNTED_BITS)
    high = (codes >> COUNTED_BITS).take(order)
    return order.take(stable_order(high, ((n - 1) >> COUNTED_BITS) + 1))


def rank_within(key: np.ndarray, start: np.ndarray, descending: bool = False) -> tuple[np.ndarray, np.ndarray] | None:
    """Places that order each list by `key` (int64, uint64 or float64), NaN last, equal ones as they stand; `key` there.

    None if the lists stand so.

    Numbers are sorted as integers that end in the place in the list, which is faster than by their positions, and
    stable. Where that takes digits off them, lists in which it mattered are ordered again.
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
    """Bool per step from a row to the next: it is beyond that one, in the same list. None if none is."""
    falls = beyond(key[:-1], key[1:])
    if key.dtype.kind == "f":
        falls |= np.isnan(key[:-1]) & ~np.isnan(key[1:])
    falls[heads - 1] = False
    return falls if falls.any() else None


def _as_integers(key: np.ndarray, place_bits: int, descending: bool) -> np.ndarray:
    """int64 numbers in the order of `key` whose lowest bits, those of `place_bits`, are free.

        | number: all of it if it is a small integer, else its high bits | place in the list |
          high bits                                                          low bits
    """
    if key.dtype.kind == "f":
        whole = (key + 0.0).view(np.int64)  # with one zero
        negative = whole >> 63
        negative &= np.iinfo(np.int64).max  # of negative floats the larger bits are the smaller number
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
    """Bring int64 numbers into ascending order within each list, in place; 2**63 - 1 only if a list's last."""
    length = np.diff(start)
    for lists in alike(length):
        first, width = lists[0], int(length[lists].max())
        if width < 2:
            continue
        if (length[lists] == width).all() and lists[-1] - first + 1 == len(lists):
            # Lists of one length that stand together are a matrix as they are.
            key[start[first] : start[first] + len(lists) * width].reshape(-1, width).sort(axis=1)
            continue
        matrix = windows(key, start[lists], width)
        inside = np.arange(width) < length[lists, None]
        np.copyto(matrix, np.iinfo(np.int64).max, where=~inside)
        matrix.sort(axis=1)
        key[spans(start[lists], length[lists])] = matrix[inside]


def windows(values: np.ndarray, start: np.ndarray, width: int) -> np.ndarray:
    """values[start[i]:start[i] + width] as row i, a copy; cells past the end of `values` hold arbitrary numbers."""
    last = len(values) - width
    # So many values from every row on, as one item each: they are copied as a whole.
    window: np.ndarray = np.ndarray(last + 1, f"V{values.itemsize * width}", values, strides=values.strides)
    rows: np.ndarray = window[np.minimum(start, last)].view(values.dtype).reshape(-1, width)
    over = np.flatnonzero(start > last)
    if len(over):
        rows[over] = values.take(start[over, None] + np.arange(width), mode="clip")
    return rows


def distinct(ascending: np.ndarray) -> np.ndarray:
    """The distinct ones of integers in ascending order."""
    found: np.ndarray = ascending[np.append(len(ascending) > 0, ascending[1:] != ascending[:-1])]
    return found


def alike(*length: np.ndarray) -> Iterator[np.ndarray]:
    """Numbers of lists, in groups of about the same lengths: none is over twice as long as another, or all are short.

    Lists may have several lengths, and a group as matrices of them side by side about `MATRIX_CELLS` cells.
    """
    exponents = [_exponents(int(one.max(initial=0))).take(one) for one in length]
    sizes = exponents[0]
    for exponent in exponents[1:]:
        sizes = sizes << np.uint16(5) | exponent
    order = stable_order(sizes, 32 ** len(length))
    sizes = sizes[order]
    heads = np.flatnonzero(np.append(len(sizes) > 0, sizes[1:] != sizes[:-1])).tolist()
    for first, last in pairwise([*heads, len(sizes)]):
        cells = sum(1 << int(exponent[order[first]]) for exponent in exponents)
        step = max(MATRIX_CELLS // cells, 1)
        for i in range(first, last, step):
            yield order[i : min(i + step, last)]


@dataclass(frozen=True)
class Pairs:
    """Rows of lists and sought rows that pair, and repeated rows.

    `place`, `sought`: the rows of each pair · `n`: pairs of each list · `repeat`, `first`: rows whose item stands
    earlier in the same list, and where it stands first.
    """

    place: np.ndarray
    sought: np.ndarray
    n: np.ndarray
    repeat: np.ndarray
    first: np.ndarray


def _exponents(longest: int) -> np.ndarray:
    """e, the least with n <= 2**e, for every length n."""
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

    `item`, `start`, `length`: the lists; `sought`, ...: the items looked for in each (as many lists); codes are below
    `n_items`. The j-th of equal items pairs with the j-th that is sought. Repeats ascend, pairs are in no order.

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
        own = _Side(item, start.take(lists), length.take(lists))
        other = _Side(sought, sought_start.take(lists), sought_length.take(lists))
        width = own.width + other.width
        if not own.width or width < 2:
            continue
        # The widths of the fields in the drawing above, from the lowest bits on.
        bits = (max(own.width, other.width) - 1).bit_length() + 1
        list_bits = bits + (n_items + width - 1).bit_length()
        in_row = 1 << max((ROW_CELLS // width).bit_length() - 1, 0)
        dtype: Any = np.uint32 if list_bits + in_row.bit_length() - 1 <= NARROW_BITS else np.uint64
        is_sought, place_bits = dtype(1 << (bits - 1)), dtype((1 << (bits - 1)) - 1)
        row = np.arange(in_row, dtype=dtype)[:, None] << dtype(list_bits)
        # A list is filled up to the width of its row with item codes that no item has, no two of them equal.
        beyond = row | (np.arange(n_items, n_items + width, dtype=dtype) << dtype(bits))
        keys = own.keys(row, beyond[:, : own.width], bits)
        if other.width:
            more = other.keys(row | is_sought, beyond[:, own.width :], bits)
            keys = np.concatenate([keys, more], axis=2)
        cells = keys.ravel()
        cells.reshape(-1, in_row * width).sort(axis=1)
        same = (cells[1:] ^ cells[:-1]) < dtype(1 << bits)
        same[width - 1 :: width] = False  # the step into the next list
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
class _Side:
    """Some lists of items: `start` and `length` of each among `values`."""

    values: np.ndarray
    start: np.ndarray
    length: np.ndarray

    @cached_property
    def width(self) -> int:
        return int(self.length.max())

    def keys(self, row: np.ndarray, beyond: np.ndarray, bits: int) -> np.ndarray:
        """Items over the bits of their places, (rows, lists of a row, width); `row` and `beyond` for each such list.

        The last row may have more lists than there are; these have no items.
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
    """Cells of repeats, and of their first; cells that pair, where equal items stand together in any number.

    `before` are cells with the same item as the next one. Items of the list stand before sought ones.
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
