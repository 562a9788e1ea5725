"""Sorting of rows: by several keys, by small codes, and within lists; runs of equal rows, and lists
side by side.

Contract: every order is stable: rows that are equal in all keys keep their order. Keys are packed
into integers together with the place of the row, since numpy sorts plain integers several times
faster than it sorts positions. `stable_order` sorts a table by several integer keys,
`order_of_codes` by one small code, and `rank_within` sorts each list of a table, where list i has
the rows `start[i]:start[i + 1]`. Time is linear in the number of rows, times the logarithm of the
length of what is sorted.

A sum of floats is exact before it is rounded, so that the same numbers in another order, or cut
into other blocks, have the same sum to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from itertools import pairwise
from math import frexp, inf, ldexp

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray

from .machine import sizes

# A packed number has 63 bits, so that it stays positive as int64.
PACKED_BITS = 63

# Arrow sorts integers of up to so many bits by counting, which takes linear time.
COUNTED_BITS = 12


def stable_order(keys: Sequence[ndarray]) -> ndarray:
    """Return row numbers (int64) in ascending order of `keys`, the first key first.

    The keys are arrays of integers of any width, or of floats without NaN.

    Keys are sorted from the last to the first. As many of them as fit are packed into one integer
    together with the place of the row, so that a plain sort, which need not be stable, gives a
    stable order:

        | key 1 | key 2 | place of the row |
    """
    n = len(keys[0])
    order: ndarray | None = None
    left = [key for key in keys if len(key) and key.min() < key.max()]
    place_bits = max(n - 1, 0).bit_length()
    while left:
        bits = place_bits
        packed = np.arange(n)
        while left and bits + _bits(left[-1]) <= PACKED_BITS:
            key = left.pop()
            least = int(key.min())
            part = (key if order is None else key[order]).astype(np.int64)
            part -= least
            part <<= bits
            packed += part
            bits += _bits(key)
        if bits > place_bits:
            packed.sort()
            packed &= (1 << place_bits) - 1
        else:  # A single key is too wide, such as a time in nanoseconds.
            key = left.pop()
            packed = np.argsort(key if order is None else key[order], kind="stable")
        order = packed if order is None else order[packed]
    return np.arange(n) if order is None else order


def _bits(key: ndarray) -> int:
    """Return how many bits tell the values of a key apart."""
    if key.dtype.kind not in "iub":
        return PACKED_BITS + 1
    return (int(key.max()) - int(key.min())).bit_length()


def ascends(key: ndarray, strictly: bool = False) -> bool:
    """Tell whether no value is smaller than the one before it, or `strictly` each is larger."""
    in_order = np.greater if strictly else np.greater_equal
    return bool(in_order(key[1:], key[:-1]).all())


def equal_runs(*keys: ndarray) -> tuple[ndarray, ndarray]:
    """Return for each entry where its run of equal keys begins, and how many entries that has."""
    heads = run_heads(keys)
    length = np.diff(np.append(heads, len(keys[0])))
    return np.repeat(heads, length), np.repeat(length, length)


def run_heads(keys: Sequence[ndarray]) -> ndarray:
    """Return the rows that differ in some key from the row before them, and the first row."""
    head = np.zeros(len(keys[0]), bool)
    head[:1] = True
    for key in keys:
        head[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(head)


def distinct(numbers: ndarray) -> ndarray:
    """Return the distinct numbers in ascending order. `np.unique` of numpy 2.4 takes 20 s for 5
    million integers."""
    ascending = np.sort(numbers, axis=None)
    return ascending.take(run_heads([ascending]))


def flags_at(codes: ndarray, n: int) -> ndarray:
    """Return a flag for each number below `n`: whether it is one of the codes."""
    there = np.zeros(n, bool)
    there[codes] = True
    return there


def last_places(codes: ndarray, n: int) -> ndarray:
    """Return the place where each code below `n` stands last; -1 for a code that stands nowhere."""
    place = np.full(n, -1, np.int64)
    place[codes] = np.arange(len(codes))
    return place


def dense_codes(keys: Sequence[ndarray]) -> tuple[ndarray, int]:
    """Number the distinct rows of several keys from 0 in sorted order; return codes (int32) and how
    many there are.

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


def cut_like(values: ndarray, parts: Sequence[Sized]) -> list[ndarray]:
    """Cut the values of several parts, which stand one after the other, into those of each."""
    return np.split(values, np.cumsum([*map(len, parts)])[:-1])


# -- within lists


def spans(start: ndarray, length: ndarray) -> ndarray:
    """Concatenate the ranges start[i] .. start[i] + length[i] - 1."""
    before = np.cumsum(length) - length
    total = int(length.sum())
    rows = np.repeat((start - before).astype(np.int32), length)
    rows += np.arange(total, dtype=np.int32)
    return rows


def run_of(length: ndarray) -> ndarray:
    """Return for each entry of runs of these lengths the number of its run."""
    return np.repeat(np.arange(len(length)), length)


def place_in_run(length: ndarray) -> ndarray:
    """Return for each entry of runs of these lengths its place in the run, from 0."""
    number = np.arange(int(length.sum()))
    number -= np.repeat(np.cumsum(length) - length, length)
    return number


def offsets(length: ndarray) -> ndarray:
    """Return where consecutive lists of these lengths start, and where the last one ends."""
    start = np.zeros(len(length) + 1, np.int64)
    np.cumsum(length, out=start[1:])
    return start


def order_of_codes(codes: ndarray, n: int) -> ndarray:
    """Return the positions that sort integers from 0 to n - 1; equal integers keep their order."""
    if n <= 2**COUNTED_BITS:
        order = pc.sort_indices(pa.array(codes)).to_numpy()
        return order.view(np.int64)  # old numpy takes no uint64 as index
    if n <= 2**16:
        return np.argsort(
            codes.astype(np.uint16, copy=False), kind="stable"
        )  # numpy uses radix sort for 16 bits
    order = order_of_codes(codes & (2**COUNTED_BITS - 1), 2**COUNTED_BITS)
    high = (codes >> COUNTED_BITS).take(order)
    return order.take(order_of_codes(high, ((n - 1) >> COUNTED_BITS) + 1))


def rank_within(
    key: ndarray, start: ndarray, descending: bool = False
) -> tuple[ndarray, ndarray] | None:
    """Return the places that order each list by `key` (int64, uint64 or float64), and `key` in that
    order.

    NaN comes last and equal numbers keep their order. The result is None if the lists are in order
    already.

    Each number is packed into an integer whose lowest bits are its place in the list. Sorting these
    integers is stable, and faster than sorting positions. Packing can cut off low bits of a number;
    lists that this puts in a wrong order are sorted again.
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


def _falls(key: ndarray, heads: ndarray, beyond: np.ufunc) -> ndarray | None:
    """Tell for each row but the last whether it must come after the next row of its list; None if
    no row must."""
    falls = beyond(key[:-1], key[1:])
    if key.dtype.kind == "f":
        falls |= np.isnan(key[:-1]) & ~np.isnan(key[1:])
    falls[heads - 1] = False
    return falls if falls.any() else None


def _as_integers(key: ndarray, place_bits: int, descending: bool) -> ndarray:
    """Return int64 numbers that sort as `key` does; their lowest bits, those set in `place_bits`,
    are free.

    | number: all of it if it is a small integer, else its high bits | place in the list |
      high bits                                                          low bits
    """
    if key.dtype.kind == "f":
        whole = (key + 0.0).view(np.int64)  # adding 0.0 turns -0.0 into 0.0
        negative = whole >> 63
        negative &= np.iinfo(np.int64).max  # for negative floats, larger bits mean a smaller number
        whole ^= negative
    else:
        low = int(key.min())
        high = int(key.max())
        if (high - low + 1) * (place_bits + 1) <= 2**63:
            above_low: ndarray = (
                key.dtype.type(high) - key if descending else key - key.dtype.type(low)
            )
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


def sort_within(key: ndarray, start: ndarray) -> None:
    """Sort int64 numbers within each list, in place. The number 2**63 - 1 may occur only as a
    list's largest."""
    length = np.diff(start)
    for lists in alike(length):
        width = int(length[lists].max())
        if width < 2:
            continue
        matrix = windows(key, start[lists], width)
        inside = np.arange(width) < length[lists, None]
        np.copyto(matrix, np.iinfo(np.int64).max, where=~inside)
        matrix.sort(axis=1)
        key[spans(start[lists], length[lists])] = matrix[inside]


def windows(values: ndarray, start: ndarray, width: int) -> ndarray:
    """Copy values[start[i]:start[i] + width] into row i; cells past the end of `values` hold
    arbitrary numbers."""
    last = len(values) - width
    # A view in which the `width` values from each position on are one item, so that they are copied
    # as a whole.
    window: ndarray = ndarray(
        last + 1, f"V{values.itemsize * width}", values, strides=values.strides
    )
    rows: ndarray = window[np.minimum(start, last)].view(values.dtype).reshape(-1, width)
    over = np.flatnonzero(start > last)
    if len(over):
        rows[over] = values.take(start[over, None] + np.arange(width), mode="clip")
    return rows


def alike(*length: ndarray) -> Iterator[ndarray]:
    """Yield list numbers in groups of similar length: none is over twice as long as another, or all
    have at most 1 row.

    Lists have one length per argument, and a group is similar in each of them. Its lists, side by
    side as the rows of a matrix, take about `matrix_cells` cells. Few lists are one group, whatever
    their lengths.
    """
    n_lists = len(length[0])
    widest = sum(int(one.max(initial=0)) for one in length)
    if n_lists * widest <= sizes().matrix_cells // 64:
        yield from [np.arange(n_lists)] if n_lists else []
        return
    exponents = []  # the least e with n <= 2**e for every length n
    for one in length:
        up_to = np.arange(int(one.max(initial=0)) + 1) - 1
        exponents.append(np.frexp(np.maximum(up_to, 0))[1].astype(np.uint16).take(one))
    packed_sizes = exponents[0]
    for exponent in exponents[1:]:
        packed_sizes = packed_sizes << np.uint16(5) | exponent
    order = order_of_codes(packed_sizes, 32 ** len(length))
    packed_sizes = packed_sizes[order]
    for first, last in pairwise([*run_heads([packed_sizes]).tolist(), len(packed_sizes)]):
        cells = sum(1 << int(exponent[order[first]]) for exponent in exponents)
        step = max(sizes().matrix_cells // cells, 1)
        for i in range(first, last, step):
            yield order[i : min(i + step, last)]


# Numbers from here on are scaled down, since adding a larger one to them would overflow.
SCALED_ABOVE = 2.0**900


def exact_sums(values: ndarray, group: ndarray | None = None, n_groups: int = 1) -> ndarray:
    """Sum the values of each group; `group` has the number of each value's group, from 0 to
    n_groups - 1.

    Without groups, `values` may be a matrix, and each of its rows is summed. Many short sums are
    then fast.

    Adding and taking away a large number rounds a value to a multiple of a power of two. Sums of
    such multiples are exact in any order while they need at most 53 bits. What was rounded off is
    summed in the same way, until nothing is left. The sums are added in twice the precision.
    Infinite values and NaN are summed as they are.
    """
    group = None if n_groups == 1 else group
    if group is not None and n_groups * sizes().summed_terms < 8 * len(values) and ascends(group):
        edges = pairwise(np.searchsorted(group, np.arange(n_groups + 1)).tolist())
        return np.concatenate([exact_sums(values[a:z]) for a, z in edges])
    n_sums = n_groups if values.ndim == 1 else len(values)
    total = np.zeros(n_sums)
    low = np.zeros(n_sums)
    at_a_time = max(sizes().summed_terms, 4 * int(n_groups))
    with np.errstate(invalid="ignore", over="ignore"):
        for first in range(0, values.shape[-1], at_a_time):
            rest = np.asarray(values[..., first : first + at_a_time], np.float64)
            own = None if group is None else group[first : first + at_a_time]
            while largest := max(float(rest.max()), -float(rest.min())):
                if largest < SCALED_ABOVE:
                    unit = max(frexp(largest)[1] + at_a_time.bit_length() - 52, -1074)
                    shift = ldexp(1.5, unit + 52)
                    some = rest + shift
                    some -= shift
                elif largest < inf and values.ndim > 1:
                    return np.concatenate([exact_sums(row) for row in values])
                elif largest < inf:
                    return exact_sums(values / SCALED_ABOVE, group, n_groups) * SCALED_ABOVE
                else:
                    some = np.where(np.isfinite(rest), 0.0, rest)
                sums = some.sum(axis=-1) if own is None else np.bincount(own, some, n_groups)
                further = total + sums
                moved = further - total
                low += (total - (further - moved)) + (sums - moved)
                total = further
                rest = rest - some if largest < inf else np.where(np.isfinite(rest), rest, 0.0)
    return np.where(np.isfinite(low), total + low, total)
