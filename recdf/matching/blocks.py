"""Blocks of lists: a long table is worked on in parts that stay in a processor's cache, by several threads.

Contract: integer codes go in, one per row (or per run of rows). Each `Block` that comes out holds several lists, and
holds each of them whole. Where the rows of every list stand together, a block is a slice of the table. Otherwise the
rows are distributed, in linear time, to blocks of neighbouring codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Protocol

import numpy as np
import pandas as pd

from ..inputs.sorting import run_heads
from ..inputs.threads import each, rows_at_a_time
from .grouping import offsets, order_of_codes, spans

# A block has about so many rows (lists are not split), and so many rows are distributed to the blocks at a time. Both
# numbers are smaller where there are many threads.
BLOCK_ROWS = 2**19
DEALT_ROWS = 2**19


@dataclass(frozen=True)
class Block:
    """Some lists of a table: list i is row[start[i]:start[i + 1]], in the order of the table, and has code[i].

    `row` is a slice where the block has consecutive rows of the table in their order. `columns` are values of its rows.
    """

    code: np.ndarray
    start: np.ndarray
    row: slice | np.ndarray
    columns: list[np.ndarray]

    @property
    def first(self) -> np.ndarray:
        """The first row of each list."""
        heads = self.start[:-1]
        found: np.ndarray = heads + self.row.start if isinstance(self.row, slice) else self.row[heads]
        return found


class Column(Protocol):
    """A column that gives the values of a slice of its rows: an array, or a `codes.Coded`, which computes them then."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice, /) -> np.ndarray: ...


def list_blocks(
    code: Column, heads: np.ndarray | None, n_rows: int, n_codes: int, columns: Sequence[Column]
) -> list[Callable[[], Block]]:
    """Return functions that each make one block; together the blocks hold every list. Rows of code -1 are left out.

    Codes are below `n_codes`. `heads`, if given, are the first rows of runs of equal codes, and `code` then has one
    entry per run.
    """
    if heads is None:
        return _dealt(code, n_codes, columns)
    codes = code[:]
    inside = codes >= 0
    if _all_differ(codes if inside.all() else codes[inside]):
        return _standing(codes, np.append(heads, n_rows), columns)
    return _dealt(np.repeat(codes, np.diff(np.append(heads, n_rows))), n_codes, columns)


def _all_differ(code: np.ndarray) -> bool:
    """Whether no code occurs twice. Codes are 0 or larger."""
    if not len(code) or code.max() > 64 * len(code):
        return len(pd.unique(code)) == len(code)
    seen = np.zeros(int(code.max()) + 1, bool)
    seen[code] = True
    return int(np.count_nonzero(seen)) == len(code)


def _standing(code: np.ndarray, start: np.ndarray, columns: Sequence[Column]) -> list[Callable[[], Block]]:
    block_rows = rows_at_a_time(BLOCK_ROWS)
    cuts = np.searchsorted(start[:-1], np.arange(block_rows, start[-1], block_rows))
    edges = [0, *np.unique(cuts[(cuts > 0) & (cuts < len(code))]).tolist(), len(code)]
    return [partial(_stood, code[a:z], start[a : z + 1], columns) for a, z in pairwise(edges)]


def _stood(code: np.ndarray, start: np.ndarray, columns: Sequence[Column]) -> Block:
    rows = slice(int(start[0]), int(start[-1]))
    values = [column[rows] for column in columns]
    inside = code >= 0
    if inside.all():
        return Block(code, start - start[0], rows, values)
    length = np.diff(start)[inside]
    row = spans(start[:-1][inside], length)
    return Block(code[inside], offsets(length), row, [value.take(row - rows.start) for value in values])


def _dealt(code: Column, n_codes: int, columns: Sequence[Column]) -> list[Callable[[], Block]]:
    """Distribute the rows to blocks by the high bits of their codes; each block then sorts its rows by the low bits.

    The values are distributed with their rows. They are read in the order of the table, which is fast; to gather them
    later, block by block, would wait for memory at every row.
    """
    block_rows, dealt_rows = rows_at_a_time(BLOCK_ROWS), rows_at_a_time(DEALT_ROWS)
    # A block gets as many codes as have about `block_rows` rows.
    shift = max((block_rows * n_codes // max(len(code), 1)).bit_length() - 1, 0)
    shift = min(shift, (n_codes - 1).bit_length())
    n_blocks = ((n_codes - 1) >> shift) + 1
    if n_blocks == 1:
        return [partial(_sorted_all, code, n_codes, columns)]
    row, low = np.empty(len(code), np.int32), np.empty(len(code), np.uint16 if shift <= 16 else np.int64)
    dealt = [np.empty(len(code), column[:0].dtype) for column in columns]

    def deal(first: int) -> np.ndarray:
        part = slice(first, min(first + dealt_rows, len(code)))
        codes = code[part]
        high = codes >> shift
        if high.min(initial=0) < 0:
            high[high < 0] = n_blocks  # rows of code -1 go to one more block, which nothing reads
        order = order_of_codes(high, n_blocks + 1)
        np.add(order, first, out=row[part], casting="unsafe")
        low[part] = (codes & (2**shift - 1)).astype(low.dtype).take(order)
        for column, values in zip(columns, dealt, strict=True):
            column[part].take(order, out=values[part], mode="clip")  # in this mode numpy writes without a buffer
        return first + offsets(np.bincount(high, minlength=n_blocks + 1))

    edges = np.stack(each(deal, range(0, len(code), dealt_rows)))

    def make(i: int) -> Block:
        runs = [slice(a, z) for a, z in edges[:, i : i + 2].tolist()]
        rows, codes, *values = (np.concatenate([array[run] for run in runs]) for array in (row, low, *dealt))
        return _sorted(rows, codes, 2**shift, i << shift, values)

    return [partial(make, i) for i in range(n_blocks)]


def _sorted_all(code: Column, n_codes: int, columns: Sequence[Column]) -> Block:
    codes, values = code[:], [column[:] for column in columns]
    if codes.min(initial=0) >= 0:
        return _sorted(None, codes, n_codes, 0, values)
    rows = np.flatnonzero(codes >= 0)
    return _sorted(rows, codes.take(rows), n_codes, 0, [value.take(rows) for value in values])


def _sorted(
    rows: np.ndarray | None, codes: np.ndarray, n_codes: int, first_code: int, values: list[np.ndarray]
) -> Block:
    """Make a block of some rows (None: all) from their values and codes; a code counts from `first_code`."""
    order = order_of_codes(codes, n_codes)
    codes = codes.take(order)
    heads = run_heads([codes])
    row, values = order if rows is None else rows.take(order), [value.take(order) for value in values]
    return Block(first_code + codes[heads].astype(np.int64), np.append(heads, len(codes)), row, values)
