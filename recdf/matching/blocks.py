"""Blocks of lists: a long table is worked on in parts that stay in a processor's cache, by several
threads.

Contract: integer codes go in, one per row (or per run of rows). Each `Block` that comes out holds
several lists, and holds each of them whole. Where the rows of every list stand together, a block is
a slice of the table. Otherwise the rows are distributed, in linear time, to blocks of neighbouring
codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pandas as pd

from ..inputs.codes import CodeColumn
from ..inputs.machine import each, rows_at_a_time, sizes
from ..inputs.sorting import offsets, order_of_codes, run_heads, spans

# Values are dealt in at most so many groups of blocks, because each group reads the whole table.
MOST_GROUPS = 4

Made = TypeVar("Made")


@dataclass(frozen=True)
class Block:
    """Some lists of a table: list i is row[start[i]:start[i + 1]], in the order of the table, and
    has code[i].

    `row` is a slice where the block has consecutive rows of the table in their order. `columns` are
    values of its rows.
    """

    code: np.ndarray
    start: np.ndarray
    row: slice | np.ndarray
    columns: list[np.ndarray]

    @property
    def first(self) -> np.ndarray:
        """The first row of each list."""
        heads = self.start[:-1]
        found: np.ndarray = (
            heads + self.row.start if isinstance(self.row, slice) else self.row[heads]
        )
        return found


@dataclass(frozen=True)
class Blocks:
    """The `n` blocks of a table, in groups: the values of one group of blocks are distributed at a
    time.

    Nothing is kept from one call of `each` to the next, since few metrics need the blocks twice.
    """

    n: int
    groups: Callable[[], Iterable[Sequence[Callable[[], Block]]]]

    def each(self, function: Callable[[Block], Made]) -> list[Made]:
        """Make every block and call the function for it, by several threads; return the results in
        order."""
        return [
            found for group in self.groups() for found in each(lambda make: function(make()), group)
        ]


def list_blocks(
    code: CodeColumn,
    heads: np.ndarray | None,
    n_rows: int,
    n_codes: int,
    columns: Sequence[CodeColumn],
) -> Blocks:
    """Return the blocks, which together hold every list. Rows of code -1 are left out.

    Codes are below `n_codes`. `heads`, if given, are the first rows of runs of equal codes, and
    `code` then has one entry per run.
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


def _standing(code: np.ndarray, start: np.ndarray, columns: Sequence[CodeColumn]) -> Blocks:
    block_rows = rows_at_a_time(sizes().list_block_rows)
    cuts = np.searchsorted(start[:-1], np.arange(block_rows, start[-1], block_rows))
    edges = [0, *np.unique(cuts[(cuts > 0) & (cuts < len(code))]).tolist(), len(code)]
    makes = [partial(_stood, code[a:z], start[a : z + 1], columns) for a, z in pairwise(edges)]
    return Blocks(len(makes), lambda: [makes])


def _stood(code: np.ndarray, start: np.ndarray, columns: Sequence[CodeColumn]) -> Block:
    rows = slice(int(start[0]), int(start[-1]))
    values = [column[rows] for column in columns]
    inside = code >= 0
    if inside.all():
        return Block(code, start - start[0], rows, values)
    length = np.diff(start)[inside]
    row = spans(start[:-1][inside], length)
    return Block(
        code[inside], offsets(length), row, [value.take(row - rows.start) for value in values]
    )


def _dealt(code: CodeColumn, n_codes: int, columns: Sequence[CodeColumn]) -> Blocks:
    """Distribute the rows to blocks by the high bits of their codes; each block then sorts its rows
    by the low bits.

    Every chunk of rows sorts its rows by block. The values are distributed later, for some blocks
    at a time, so that only the values of these are in memory twice.
    """
    block_rows = rows_at_a_time(sizes().list_block_rows)
    # A block gets as many codes as have about `block_rows` rows.
    shift = max((block_rows * n_codes // max(len(code), 1)).bit_length() - 1, 0)
    shift = min(shift, (n_codes - 1).bit_length())
    n_blocks = ((n_codes - 1) >> shift) + 1
    if n_blocks == 1:
        return Blocks(1, lambda: [[partial(_sorted_all, code, n_codes, columns)]])
    step = max(sizes().group_rows // block_rows, -(-n_blocks // MOST_GROUPS))

    def groups() -> Iterator[list[Callable[[], Block]]]:
        dealt = _deal(code, n_blocks, sizes().dealt_rows, shift, columns)
        for first in range(0, n_blocks, step):
            yield dealt.group(first, min(first + step, n_blocks))

    return Blocks(n_blocks, groups)


def _deal(
    code: CodeColumn, n_blocks: int, chunk_rows: int, shift: int, columns: Sequence[CodeColumn]
) -> _Dealt:
    """Sort the rows of every chunk by block."""
    row = np.empty(len(code), np.int32)
    low = np.empty(len(code), np.uint16 if shift <= 16 else np.int64)

    def deal(first: int) -> np.ndarray:
        part = slice(first, min(first + chunk_rows, len(code)))
        codes = code[part]
        high = codes >> shift
        if high.min(initial=0) < 0:
            high[high < 0] = n_blocks  # rows of code -1 go to one more block, which nothing reads
        order = order_of_codes(high, n_blocks + 1)
        np.add(order, first, out=row[part], casting="unsafe")
        low[part] = (codes & (2**shift - 1)).astype(low.dtype).take(order)
        return first + offsets(np.bincount(high, minlength=n_blocks + 1))

    edges = np.stack(each(deal, range(0, len(code), chunk_rows)))
    return _Dealt(row, low, edges, chunk_rows, shift, columns)


@dataclass(frozen=True)
class _Dealt:
    """Rows in chunks of `chunk_rows`, each sorted by block: those of block i begin at edges[chunk,
    i].

    `row` : the number of each row · `low` : the `shift` low bits of its code.
    """

    row: np.ndarray
    low: np.ndarray
    edges: np.ndarray
    chunk_rows: int
    shift: int
    columns: Sequence[CodeColumn]

    def group(self, first: int, last: int) -> list[Callable[[], Block]]:
        """Return functions that make the blocks from `first` to `last` - 1, whose values are
        distributed here.

        The values are read in the order of the table, which is fast; to gather them block by block
        would wait for memory at every row.
        """
        begin, end = self.edges[:, first], self.edges[:, last]
        to = offsets(end - begin)
        values = [np.empty(to[-1], column[:0].dtype) for column in self.columns]

        def fill(chunk: int) -> None:
            rows = slice(chunk * self.chunk_rows, (chunk + 1) * self.chunk_rows)
            places = self.row[begin[chunk] : end[chunk]] - np.int32(rows.start)
            for column, filled in zip(self.columns, values, strict=True):
                filled[to[chunk] : to[chunk + 1]] = column[rows].take(places)

        each(fill, range(len(begin)))

        def make(i: int) -> Block:
            edges = self.edges[:, i : i + 2]
            runs = [slice(a, z) for a, z in edges.tolist()]
            moved = [slice(a, z) for a, z in (edges - begin[:, None] + to[:-1, None]).tolist()]
            rows, codes = (
                np.concatenate([array[run] for run in runs]) for array in (self.row, self.low)
            )
            of_block = [np.concatenate([array[run] for run in moved]) for array in values]
            return _sorted(rows, codes, 2**self.shift, i << self.shift, of_block)

        return [partial(make, i) for i in range(first, last)]


def _sorted_all(code: CodeColumn, n_codes: int, columns: Sequence[CodeColumn]) -> Block:
    codes, values = code[:], [column[:] for column in columns]
    if codes.min(initial=0) >= 0:
        return _sorted(None, codes, n_codes, 0, values)
    rows = np.flatnonzero(codes >= 0)
    return _sorted(rows, codes.take(rows), n_codes, 0, [value.take(rows) for value in values])


def _sorted(
    rows: np.ndarray | None,
    codes: np.ndarray,
    n_codes: int,
    first_code: int,
    values: list[np.ndarray],
) -> Block:
    """Make a block of some rows (None: all) from their values and codes; a code counts from
    `first_code`."""
    order = order_of_codes(codes, n_codes)
    codes = codes.take(order)
    heads = run_heads([codes])
    row, values = (
        order if rows is None else rows.take(order),
        [value.take(order) for value in values],
    )
    return Block(
        first_code + codes[heads].astype(np.int64), np.append(heads, len(codes)), row, values
    )
