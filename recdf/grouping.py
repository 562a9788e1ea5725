"""Rank and pair rows that are nothing but integer codes and numbers.

Contract: the rows of a list stand together, `start[i]:start[i + 1]` being list i. `rank_within` orders each
list, `pair_within` finds duplicates and where wanted items stand. Both take time linear in the rows (times
the log of a list's length for the order).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np

# Slots of the hash table of `pair_within`: int32, so 2 MiB, which stays in a processor's cache.
TABLE_SLOTS = 2**19
SLOTS_PER_ROW = 8

# Cells of the matrices that `rank_within` sorts, so that its index arrays stay small.
SORT_CELLS = 2**20


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
    size = np.ceil(np.log2(np.maximum(length, 1))).astype(np.int64)
    for exponent in np.unique(size[length > 1]):
        of_size = np.flatnonzero(size == exponent)
        for lists in np.array_split(of_size, (len(of_size) << exponent) // SORT_CELLS + 1):
            first, widest = lists[:1].sum(), int(length[lists].max(initial=0))
            if (length[lists] == widest).all() and len(lists) and lists[-1] - first + 1 == len(lists):
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


def pair_within(
    item: np.ndarray, start: np.ndarray, wanted: np.ndarray, wanted_start: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the repeats in each list, and where it holds the items wanted from it.

    `item`/`start` are the lists, `wanted`/`wanted_start` the items looked for in each (as many lists).
    Returns `repeat`, the rows whose item stands earlier in the same list (ascending), `first`, where it
    stands first, and `found`, for each wanted item the first row of its list that holds it, or -1.

    Each list has a stretch of a small hash table, a block of lists at a time so that the table stays in
    cache. The first row of a slot wins it; what lost a slot to another item goes to a further round with
    another hash function. So the catalogue may have any size.
    """
    found = np.full(len(wanted), -1, np.int32)
    table = np.empty(0, np.int32)
    repeats, firsts = [], []
    rows = queries = None  # None: all of them
    for salt in range(len(item)):
        table, (repeat, first, lost, hit, at, unsure) = _probe(item, start, wanted, wanted_start, salt, table)
        repeats.append(repeat if rows is None else rows[repeat])
        firsts.append(first if rows is None else rows[first])
        found[hit if queries is None else queries[hit]] = at if rows is None else rows[at]
        if not len(lost):
            break
        # Only lists that lost rows go on; elsewhere an unsure item is not in the list.
        length, n_unsure = np.diff(np.searchsorted(lost, start)), np.diff(np.searchsorted(unsure, wanted_start))
        going_on = length > 0
        unsure = unsure[np.repeat(going_on, n_unsure)]
        start, wanted_start = offsets(length[going_on]), offsets(n_unsure[going_on])
        item, wanted = item[lost], wanted[unsure]
        rows = lost if rows is None else rows[lost]
        queries = unsure if queries is None else queries[unsure]
    if not repeats:
        return np.empty(0, np.int64), np.empty(0, np.int64), found
    order = np.argsort(np.concatenate(repeats))
    return np.concatenate(repeats)[order], np.concatenate(firsts)[order], found


def _probe(
    item: np.ndarray, start: np.ndarray, wanted: np.ndarray, wanted_start: np.ndarray, salt: int, table: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """One round of `pair_within`: repeats, their first rows, rows beaten by another item; hits, their rows, unsure.

    Before them the hash table, which the next round may use again: new memory takes longer than all else here.
    """
    length, wanted_length = np.diff(start), np.diff(wanted_start)
    size = np.where(length > 0, SLOTS_PER_ROW << np.ceil(np.log2(np.maximum(length, 1))).astype(np.int64), 1)
    stretch = offsets(size)
    block = np.flatnonzero(np.diff(stretch[:-1] // TABLE_SLOTS, prepend=-1))
    edges = np.append(block, len(length))
    n_slots = int((stretch[edges[1:]] - stretch[edges[:-1]]).max())
    if n_slots > len(table):
        table = np.empty(n_slots, np.int32)
    table[:n_slots] = -1
    parts: list[list[np.ndarray]] = [[], [], [], [], [], []]
    for first, last in pairwise(edges.tolist()):
        a, z, c, d = start[first], start[last], wanted_start[first], wanted_start[last]
        if a == z:
            continue
        base, mask = stretch[first:last] - stretch[first], size[first:last] - 1
        slot = _slots(item[a:z], base, mask, length[first:last], salt)
        row = np.arange(a, z, dtype=np.int32)
        # Of equal slots the last assignment stays: the first row. numpy is slow with an index that runs backwards.
        table[slot[::-1].copy()] = row[::-1].copy()
        winner = table.take(slot)
        beaten = np.flatnonzero(winner != row)
        same = item[winner[beaten]] == item[a + beaten]
        parts[0].append(a + beaten[same])
        parts[1].append(winner[beaten[same]])
        parts[2].append(a + beaten[~same])
        if c == d:
            continue
        winner = table.take(_slots(wanted[c:d], base, mask, wanted_length[first:last], salt))
        query = np.flatnonzero(winner >= a)  # smaller rows are left from earlier blocks: an empty slot
        winner = winner[query]
        query += c
        same = item[winner] == wanted[query]
        parts[3].append(query[same])
        parts[4].append(winner[same])
        parts[5].append(query[~same])
    return table, [np.concatenate(part) if part else np.empty(0, np.int64) for part in parts]


def _slots(item: np.ndarray, base: np.ndarray, mask: np.ndarray, length: np.ndarray, salt: int) -> np.ndarray:
    """Slot of each row: the start of its list's stretch plus a hash of its item."""
    hashed = item
    if salt:  # codes are nearly dense, so their low bits are a good hash at first
        hashed = item.view(np.uint32) * np.uint32((0x9E3779B1 + 2 * 0x85EBCA6B * salt) % 2**32 | 1)
        hashed ^= hashed >> np.uint32(15)
    stretch_mask = mask[0] if (mask == mask[0]).all() else np.repeat(mask, length)
    return (hashed & stretch_mask) + np.repeat(base, length)
