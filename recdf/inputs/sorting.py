"""Stable sorting of rows by several integer keys, faster than `numpy.lexsort` where the keys are short.

Contract: `stable_order` returns row numbers in ascending order of the keys; rows that are equal in all keys keep their
order. The keys are arrays of integers of any width, or of floats without NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# A packed number has 63 bits, so that it stays positive as int64.
PACKED_BITS = 63
# This many rows are processed at a time, since temporary arrays of all rows would cost memory.
SORTED_AT_ONCE = 2**19


def stable_order(keys: Sequence[np.ndarray]) -> np.ndarray:
    """Return row numbers (int64) in ascending order of `keys`, the first key first; equal rows keep their order.

    Keys are sorted from the last to the first. As many of them as fit are packed into one integer together with the
    place of the row, so that a plain sort, which need not be stable, gives a stable order:

        | key 1 | key 2 | place of the row |
    """
    n = len(keys[0])
    order: np.ndarray | None = None
    left = [key for key in keys if not _constant(key)]
    place_bits = max(n - 1, 0).bit_length()
    while left:
        bits, fitting = place_bits, []
        while left and bits + _bits(left[-1]) <= PACKED_BITS:
            fitting.append((left.pop(), bits))
            bits += _bits(fitting[-1][0])
        if fitting:
            packed = np.arange(n)
            for key, shift in fitting:
                _pack(packed, key, shift, order)
            packed.sort()
            packed &= (1 << place_bits) - 1
        else:  # A single key is too wide, such as a time in nanoseconds.
            key = left.pop()
            packed = np.argsort(key if order is None else key[order], kind="stable")
        order = packed if order is None else order[packed]
    return np.arange(n) if order is None else order


def _pack(packed: np.ndarray, key: np.ndarray, shift: int, order: np.ndarray | None) -> None:
    """Add a key, in the given order of its rows, to the packed numbers; going by blocks saves memory."""
    least = int(key.min())
    for start in range(0, len(packed), SORTED_AT_ONCE):
        block = slice(start, start + SORTED_AT_ONCE)
        part = (key[block] if order is None else key[order[block]]).astype(np.int64)
        part -= least
        part <<= shift
        packed[block] += part


def _constant(key: np.ndarray) -> bool:
    return not len(key) or key.min() == key.max()


def _bits(key: np.ndarray) -> int:
    """Return how many bits tell the values of a key apart."""
    if key.dtype.kind not in "iub":
        return PACKED_BITS + 1
    return (int(key.max()) - int(key.min())).bit_length()


def ascends(key: np.ndarray) -> bool:
    """Tell whether no value is smaller than the one before it."""
    return len(key) < 2 or bool((key[1:] >= key[:-1]).all())


def run_heads(keys: Sequence[np.ndarray]) -> np.ndarray:
    """Return the rows that differ in some key from the row before them, and the first row."""
    n = len(keys[0])
    head = np.zeros(n, bool)
    head[:1] = True
    for key in keys:
        head[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(head)


def distinct(ascending: np.ndarray) -> np.ndarray:
    """Return the distinct numbers of an ascending array."""
    found: np.ndarray = ascending[run_heads([ascending])]
    return found


def dense_codes(keys: Sequence[np.ndarray]) -> tuple[np.ndarray, int]:
    """Number the distinct rows of several keys from 0 in sorted order; return codes (int32) and how many there are.

    Only the first row of a run of equal keys is sorted.
    """
    n = len(keys[0])
    heads = run_heads(keys)
    at_heads = [key[heads] for key in keys]
    order = stable_order(at_heads)
    sorted_keys = [key[order] for key in at_heads]
    first = np.zeros(len(order), np.int64)
    first[run_heads(sorted_keys)] = 1
    number = np.cumsum(first) - 1
    code = np.empty(len(order), np.int32)
    code[order] = number
    if len(heads) < n:
        code = np.repeat(code, np.diff(np.append(heads, n)))
    return code, int(number[-1]) + 1 if len(number) else 0
