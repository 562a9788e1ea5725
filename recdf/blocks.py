"""Blocks of lists: a long table is worked on in parts that stay in a processor's cache, by two threads.

Contract: integer codes go in, one per row (or per run of rows); each `Block` has some of the lists whole. Lists that
stand together are blocks as they are; other rows are dealt to blocks of neighbouring codes, in linear time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from .grouping import offsets, spans
from .ids import Coded

# Rows of a block (a list longer than that is a block of its own), and rows that are dealt at once.
BLOCK_ROWS = 2**18
DEALT_ROWS = 2**20

# Codes of a block, at most: Arrow sorts numbers of such a range by counting.
BLOCK_CODES = 2**16

THREADS = 2

Part = TypeVar("Part")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Block:
    """Some lists of a table: list i is row[start[i]:start[i + 1]], in the order of the table, and has code[i].

    `row` is a slice where the rows stand in the table as they do here.
    """

    code: np.ndarray
    start: np.ndarray
    row: slice | np.ndarray

    @property
    def first(self) -> np.ndarray:
        """The first row of each list."""
        heads = self.start[:-1]
        return heads + self.row.start if isinstance(self.row, slice) else self.row[heads]


def each(function: Callable[[Part], Made], parts: Sequence[Part]) -> list[Made]:
    """The function's values for all parts; several are worked on at once, as numpy and Arrow let threads run."""
    if len(parts) == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(function, parts))


def list_blocks(code: Coded, heads: np.ndarray | None, n_rows: int, n_codes: int) -> list[Callable[[], Block]]:
    """Blocks of the lists of each code (below n_codes), made when called; rows of code -1 are left out.

    `heads`, if given, are the first rows of runs of equal codes, and `code` is that of each run.
    """
    if heads is None:
        return _dealt(code, n_codes)
    codes = code.all()
    inside = codes >= 0
    if _all_differ(codes if inside.all() else codes[inside]):
        return _standing(codes, np.append(heads, n_rows))
    return _dealt(Coded(np.repeat(codes, np.diff(np.append(heads, n_rows)))), n_codes)


def _all_differ(code: np.ndarray) -> bool:
    """Whether no code (at least 0) stands twice."""
    if not len(code) or code.max() > 64 * len(code):
        return len(pd.unique(code)) == len(code)
    seen = np.zeros(int(code.max()) + 1, bool)
    seen[code] = True
    return int(np.count_nonzero(seen)) == len(code)


def _standing(code: np.ndarray, start: np.ndarray) -> list[Callable[[], Block]]:
    cuts = np.searchsorted(start[:-1], np.arange(BLOCK_ROWS, start[-1], BLOCK_ROWS))
    edges = [0, *np.unique(cuts[(cuts > 0) & (cuts < len(code))]).tolist(), len(code)]
    return [partial(_stood, code[a:z], start[a : z + 1]) for a, z in pairwise(edges)]


def _stood(code: np.ndarray, start: np.ndarray) -> Block:
    inside = code >= 0
    if inside.all():
        return Block(code, start - start[0], slice(int(start[0]), int(start[-1])))
    length = np.diff(start)[inside]
    return Block(code[inside], offsets(length), spans(start[:-1][inside], length))


def _dealt(code: Coded, n_codes: int) -> list[Callable[[], Block]]:
    """Deal rows by the high bits of their codes; each block then sorts its own by the low bits."""
    n_blocks = max(len(code) // BLOCK_ROWS, n_codes // BLOCK_CODES) + 1
    shift = max(n_codes - 1, 0).bit_length() - (n_blocks - 1).bit_length()
    shift = min(max(shift, 0), BLOCK_CODES.bit_length() - 1)
    n_blocks = max(n_codes - 1, 0) // 2**shift + 1
    row, low = np.empty(len(code), np.int32), np.empty(len(code), np.uint16)

    def deal(first: int) -> np.ndarray:
        part = slice(first, min(first + DEALT_ROWS, len(code)))
        codes = code[part]
        high = codes >> shift
        high[codes < 0] = n_blocks  # a last block, of which nothing is read
        order = stable_order(high)
        np.add(order, first, out=row[part], casting="unsafe")
        low[part] = (codes & (2**shift - 1)).astype(np.uint16)[order]
        return first + offsets(np.bincount(high, minlength=n_blocks + 1))

    edges = np.stack(each(deal, range(0, max(len(code), 1), DEALT_ROWS)))
    return [partial(_sorted, row, low, edges[:, i : i + 2].tolist(), i << shift) for i in range(n_blocks)]


def _sorted(row: np.ndarray, low: np.ndarray, runs: Iterable[list[int]], first_code: int) -> Block:
    """A block from its runs among the rows that were dealt."""
    parts = [slice(a, z) for a, z in runs if a < z]
    if not parts:
        return Block(np.empty(0, np.int64), np.zeros(1, np.int64), row[:0])
    rows, codes = (np.concatenate([array[part] for part in parts]) for array in (row, low))
    length = np.bincount(codes)
    present = np.flatnonzero(length)
    return Block(first_code + present, offsets(length[present]), rows[stable_order(codes)])


def stable_order(codes: np.ndarray) -> np.ndarray:
    """Positions in ascending order of small integers, equal ones as they stand."""
    return pc.sort_indices(pa.array(codes)).to_numpy()
