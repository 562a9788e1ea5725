"""Rank and pair rows that are nothing but integer codes and numbers.

Contract: the rows of a list stand together, `start[i]:start[i + 1]` being list i. `rank_within` orders each
list, `pair_within` finds duplicates and where wanted items stand. Both take time linear in the rows (times
the log of a list's length for the order).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Cells of the matrices whose rows are sorted, so that they stay in a processor's cache.
MATRIX_CELLS = 2**18

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
        return pc.sort_indices(pa.array(codes)).to_numpy().view(np.int64)  # old numpy takes no uint64 as index
    order = stable_order(codes & (2**COUNTED_BITS - 1), 2**COUNTED_BITS)
    high = (codes >> COUNTED_BITS).take(order)
    return order.take(stable_order(high, ((n - 1) >> COUNTED_BITS) + 1))


def rank_within(key: np.ndarray, start: np.ndarray, stable: bool = False, sort: bool = False) -> np.ndarray | None:
    """Rows in ascending order of `key` (NaN last) within each list; None if they stand so already.

    With `sort`, `key` itself is brought into that order, which saves a copy of it.
    """
    if len(key) < 2:
        return None
    rising = key[1:] >= key[:-1]
    if key.dtype.kind == "f":
        rising |= np.isnan(key[1:])
    heads = start[(start > 0) & (start < len(key))]
    rising[heads - 1] = True  # the step into the next list
    if rising.all():
        return None
    length = np.diff(start)
    kind: Literal["stable"] | None = "stable" if stable else None
    result = np.arange(len(key), dtype=np.int32)
    last = np.array(np.nan if key.dtype.kind == "f" else np.iinfo(key.dtype).max, key.dtype)
    # Lists of about the same length are sorted as the rows of one matrix: at most half of it is padding.
    for lists in alike(length):
        first, widest = lists[0], int(length[lists].max())
        if widest < 2:
            continue
        if (length[lists] == widest).all() and lists[-1] - first + 1 == len(lists):
            # Lists of one length that stand together are a matrix as they are.
            block = slice(start[first], start[first] + len(lists) * widest)
            matrix = key[block].reshape(-1, widest)
            result[block] = (np.argsort(matrix, axis=1, kind=kind) + start[lists, None]).ravel()
            if sort:
                matrix.sort(axis=1)  # a view of key
            continue
        width = np.arange(widest)
        rows = start[lists, None] + width
        real = width < length[lists, None]
        matrix = key[rows] if real.all() else np.where(real, key[np.where(real, rows, 0)], last)
        order = np.argsort(matrix, axis=1, kind=kind)
        # Padding sorts last, but may mix with equal keys: what is no padding keeps its order.
        kept = np.take_along_axis(real, order, axis=1)
        result[rows[real]] = np.take_along_axis(rows, order, axis=1)[kept]
        if sort:
            key[rows[real]] = np.take_along_axis(matrix, order, axis=1)[kept]
    return result


def alike(*length: np.ndarray) -> Iterator[np.ndarray]:
    """Numbers of lists, in groups of about the same lengths: none is over twice as long as another, or all are short.

    Lists may have several lengths, and a group as matrices of them side by side about `MATRIX_CELLS` cells.
    """
    exponents = [np.frexp(np.maximum(one - 1, 0))[1].astype(np.uint16) for one in length]
    sizes = exponents[0].copy()
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
    """Rows of lists and wanted rows that pair, and repeated rows.

    `place`, `wanted`: the rows of each pair · `n`: pairs of each list · `repeat`, `first`: rows whose item stands
    earlier in the same list, and where it stands first.
    """

    place: np.ndarray
    wanted: np.ndarray
    n: np.ndarray
    repeat: np.ndarray
    first: np.ndarray


def pair_within(
    item: np.ndarray,
    start: np.ndarray,
    length: np.ndarray,
    wanted: np.ndarray,
    wanted_start: np.ndarray,
    wanted_length: np.ndarray,
    n_items: int,
) -> Pairs:
    """Find the repeats in each list, and where it holds the items wanted from it.

    `item`, `start`, `length`: the lists; `wanted`, ...: the items looked for in each (as many lists); codes are below
    `n_items`. The j-th of equal items pairs with the j-th that is wanted. Repeats ascend, pairs are in no order.

    The lists of a group and what is wanted from each are rows of one matrix of integers, with the item in the high
    bits, so that equal items are neighbours once the rows are sorted, which numpy does at the speed of memory.
    """
    item, wanted = item.astype(np.int32, copy=False), wanted.astype(np.int32, copy=False)
    n = np.zeros(len(start), np.int64)
    found: list[list[np.ndarray]] = [[], [], [], []]
    for lists in alike(length, wanted_length):
        own = ((item, start[lists], length[lists]), (wanted, wanted_start[lists], wanted_length[lists]))
        widths = [int(side[2].max()) for side in own]
        width = sum(widths)
        if not widths[0] or width < 2:
            continue
        # Bits of a place in the list, and above it whether the item is wanted.
        bits = (max(widths) - 1).bit_length() + 1
        dtype: Any = np.uint32 if (n_items + width) << bits <= 2**32 else np.uint64
        is_wanted = dtype(1 << (bits - 1))
        place_bits = dtype(is_wanted - 1)
        keys = np.empty((len(lists), width), dtype)
        # Where a list ends: every column has another number beyond all items, so that no two are equal.
        nothing = np.iinfo(dtype).max - (np.arange(width, dtype=dtype) << dtype(bits))
        for side, part, flag in zip(own, (slice(0, widths[0]), slice(widths[0], None)), (0, is_wanted), strict=True):
            _fill(keys[:, part], *side, bits, flag, nothing[part])
        keys.sort(axis=1)
        cells = keys.ravel()
        same = (cells[1:] ^ cells[:-1]) < dtype(1 << bits)
        same[width - 1 :: width] = False  # the step into the next row
        before = np.flatnonzero(same)
        left, right = cells.take(before), cells.take(before + 1)
        if not ((left ^ right) & is_wanted).all():
            repeat, first, before, after = _in_runs(before, cells & is_wanted != 0)
            left, right = cells.take(before), cells.take(after)
            list_start = own[0][1].take(repeat // width)
            found[2].append(list_start + (cells.take(repeat) & place_bits).astype(np.int64))
            found[3].append(list_start + (cells.take(first) & place_bits).astype(np.int64))
        row = before // width
        found[0].append(own[0][1].take(row) + (left & place_bits).astype(np.int64))
        found[1].append(own[1][1].take(row) + (right & place_bits).astype(np.int64))
        if len(row):
            n[lists] = np.bincount(row, minlength=len(lists))
    place, query, repeat, first = (np.concatenate(parts) if parts else np.empty(0, np.int64) for parts in found)
    order = np.argsort(repeat)
    return Pairs(place, query, n, repeat[order], first[order])


def _fill(
    keys: np.ndarray,
    values: np.ndarray,
    start: np.ndarray,
    length: np.ndarray,
    bits: int,
    flag: Any,
    nothing: np.ndarray,
) -> None:
    """Put the items of each list into a row of `keys`: item, flag and place; beyond its end `nothing`."""
    width, dtype = keys.shape[1], keys.dtype.type
    if not width:
        return
    # So many values from every row on, as one item each: they are copied as a whole.
    last = len(values) - width
    window: np.ndarray = np.ndarray(last + 1, f"V{values.itemsize * width}", values, strides=values.strides)
    rows = window[np.minimum(start, last)].view(values.dtype).reshape(-1, width)
    over = np.flatnonzero(start > last)
    if len(over):  # rows would end beyond the last value
        rows[over] = values.take(start[over, None] + np.arange(width), mode="clip")
    place = np.arange(width, dtype=dtype)
    filled = rows.view(np.uint32).astype(dtype, copy=False)
    filled <<= dtype(bits)
    np.bitwise_or(filled, place | dtype(flag), out=keys)
    if length.min() < width:
        np.copyto(keys, nothing, where=place >= length.astype(dtype)[:, None])


def _in_runs(before: np.ndarray, is_wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cells of repeats, and of their first; cells that pair, where equal items stand together in any number.

    `before` are cells with the same item as the next one. Shown items stand before wanted ones.
    """
    head = np.flatnonzero(np.append(True, before[1:] != before[:-1] + 1))
    length = np.diff(np.append(head, len(before))) + 1
    first = before[head]
    run = np.repeat(np.arange(len(head)), length)
    number = np.arange(len(run)) - np.repeat(np.cumsum(length) - length, length)
    cell = first[run] + number
    wanted = is_wanted[cell]
    n_shown = np.bincount(run[~wanted], minlength=len(head))[run]
    repeat = np.flatnonzero(~wanted & (number > 0))
    after = np.flatnonzero(wanted & (number < 2 * n_shown))
    return cell[repeat], first[run[repeat]], cell[after] - n_shown[after], cell[after]
