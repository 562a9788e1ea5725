"""List keys: which rows belong to one list, which lists there are, and the labels that results get
at the end; and blocks of lists, in which a long table is worked on.

Contract: a key or a `by` value has one code in both frames. The code of a list is `by` code ×
n_keys + key code.

Blocks stay in a processor's cache, and several threads work on them. Integer codes go in, one per
row (or per run of rows). Each `Block` that comes out holds several lists, and holds each of them
whole. Where the rows of every list stand together, a block is a slice of the table. Otherwise the
rows are distributed, in linear time, to blocks of neighbouring codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame, Series

from ..inputs.codes import CodeColumn, Coded, encode_keys, first_rows
from ..inputs.ids import IdColumn, alike_ids, read_by, take_rows, take_values
from ..inputs.machine import each, rows_at_a_time, sizes
from ..inputs.options import Options
from ..inputs.sorting import distinct, offsets, order_of_codes, run_heads
from ..inputs.true_and_pred import ReadRows

# The labels of lists: for each column of the key an array in its dtype, or a Series.
KeyColumns = Mapping[Any, Any]
NO_BY = DataFrame(index=range(1))  # without `by`, there is one recommender without a name


def key_run_heads(columns: Sequence[IdColumn]) -> ndarray | None:
    """Return the first row of each run of equal keys; None where runs are so short that they save
    no work."""
    n = len(columns[0])

    def changes(first: int) -> ndarray:
        part = slice(first, first + sizes().key_rows + 1)
        return np.logical_or.reduce([ids.changes(part) for ids in columns])

    def heads(first: int) -> ndarray:
        return np.flatnonzero(changes(first)) + (first + 1)

    first_part = changes(0)
    if 4 * np.count_nonzero(first_part) > 3 * min(n, sizes().key_rows):  # runs are short
        return None
    found = [np.zeros(min(n, 1), np.int64), np.flatnonzero(first_part) + 1]
    rows = np.concatenate(found + each(heads, range(sizes().key_rows, n, sizes().key_rows)))
    return rows if 4 * len(rows) <= 3 * n else None


def at_heads(columns: Sequence[IdColumn], heads: ndarray | None) -> list[IdColumn]:
    return list(columns) if heads is None else [ids.take(heads) for ids in columns]


def encode_by(
    table: ReadRows, heads: ndarray | None, names: list[str], known: DataFrame | None
) -> tuple[Coded | None, DataFrame]:
    """Return the code of the `by` value of each row (or run of rows), and the labels of the codes.

    Codes follow the order of `known`, if it is given, and otherwise the order in which values first
    appear.
    """
    if not table.by:
        return None, NO_BY
    if known is None and table.row is not None:
        # A recommender stays in the result, without lists, even when all its rows were dropped.
        known = table.frame[names].dropna().drop_duplicates(ignore_index=True)
    if known is not None:
        rows = table.frame_rows(np.arange(len(table)) if heads is None else heads)
        (first_seen, codes), n = encode_both(known, labels_at(table.frame, names, rows), names)
        present = first_seen.all()
        labels = known
    else:
        (codes,), n = encode_keys([at_heads(table.by, heads)])
        first = first_rows(codes, n)
        present = np.flatnonzero(first >= 0)
        present = present[np.argsort(first[present])]
        rows = first[present] if heads is None else heads[first[present]]
        labels = key_labels(table.frame, names, table.frame_rows(rows))
    place = np.zeros(n, np.int32)
    place[present] = np.arange(len(present))
    return codes.mapped(place), labels


def encode_both(one: DataFrame, two: KeyColumns, names: Sequence[str]) -> tuple[list[Coded], int]:
    """Code `by` values of two places together, in which some of these columns may be bools or
    fractions."""
    pairs = [read_by([one[name], Series(two[name])], f"pred[{name!r}]") for name in names]
    return encode_keys([list(column) for column in zip(*pairs, strict=True)])


def list_codes(
    key: Coded, by: Coded | None, n_by: int, n_keys: int, inside: ndarray | None
) -> ndarray:
    """Return the list code of each row (or run of rows), by * n_keys + key; -1 for keys that are
    not `inside`."""
    of_key = code = key.all()
    if by is not None:
        narrow = n_by * n_keys < 2**31
        code = (by.all() if narrow else by.all().astype(np.int64)) * n_keys + of_key
    return code if inside is None else np.where(inside.take(of_key), code, code.dtype.type(-1))


def place_of(lists: ndarray, codes: ndarray, n_codes: int) -> ndarray:
    """Return where each code (below n_codes) stands among `lists`, which hold each of them once."""
    if n_codes > 16 * (len(lists) + len(codes)):  # a lookup table by code would be large
        return pd.Index(lists).get_indexer(codes)
    place = np.full(n_codes, -1, np.int32)
    place[lists] = np.arange(len(lists), dtype=np.int32)
    return place.take(codes)


def key_frame(
    key: ndarray,
    n_keys: int,
    sources: dict[str, tuple[DataFrame, ndarray, ndarray]],
    options: Options,
) -> KeyColumns:
    """Return the labels of the lists' keys, in the dtype of the frame that the population is taken
    from.

    Each of the `sources` is a frame, the key codes that it holds, and the row of the frame that
    stands for each code.
    """
    names = options.list_key
    chosen = [sources[name] for name in options.population.frames]
    # Versions of pandas differ in whether an empty frame affects the common dtype, so empty frames
    # are left out.
    chosen = [source for source in chosen if len(source[1])] or chosen[:1]
    row_of = np.full(n_keys, -1, np.int64)
    above = 0
    if len(chosen) == 1:
        frame, codes, rows = chosen[0]
        row_of[codes] = rows
        return labels_at(frame, names, row_of[key])
    for _, codes, _ in chosen:
        row_of[codes] = np.arange(len(codes)) + above
        above += len(codes)
    found = {}
    for name in names:
        columns = [take_rows(frame[name], rows) for frame, _, rows in chosen]
        columns = alike_ids(columns, f'⟦users="all"⟧: the key column {name!r}')
        found[name] = take_values(pd.concat(columns, ignore_index=True), row_of[key])
    return found


def labels_at(frame: DataFrame, names: Sequence[Any], rows: ndarray) -> KeyColumns:
    """Take some rows of some columns. It goes by column, since frame[names] would copy all rows."""
    return {name: take_values(frame[name], rows) for name in names}


def key_labels(frame: DataFrame, names: Sequence[Any], rows: ndarray) -> DataFrame:
    """Take some rows of some columns as a frame with a new index."""
    labels = DataFrame(dict(enumerate(labels_at(frame, names, rows).values())), copy=False)
    labels.columns = pd.Index(names, tupleize_cols=False)
    return labels


# ------------------------------------------------------------------------------------------------
# blocks of lists

# Values are dealt in at most so many groups of blocks, because each group reads the whole table.
MOST_GROUPS = 4

Made = TypeVar("Made")


@dataclass(frozen=True)
class Block:
    """Some lists of a table: list i is row[start[i]:start[i + 1]], in the order of the table, and
    has code[i]. `columns` are values of its rows."""

    code: ndarray
    start: ndarray
    row: ndarray
    columns: list[ndarray]

    @property
    def first(self) -> ndarray:
        """The first row of each list."""
        return self.row.take(self.start[:-1])

    def where(self, keep: ndarray) -> Block:
        """Keep the rows where `keep` is true. A list that loses all its rows is no list any
        more."""
        start = offsets(keep)[self.start]
        lists = np.flatnonzero(np.diff(start))
        edges = np.append(start[lists], start[-1])
        values = [value[keep] for value in self.columns]
        return Block(self.code[lists], edges, self.row[keep], values)


@dataclass(frozen=True)
class Blocks:
    """The `n` blocks of a table, in groups: the values of one group of blocks are distributed at a
    time."""

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
    heads: ndarray | None,
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
    start = np.append(heads, n_rows)
    known = codes[codes >= 0]
    if len(distinct(known)) < len(known):  # the rows of some list do not stand together
        return _dealt(np.repeat(codes, np.diff(start)), n_codes, columns)
    block_rows = rows_at_a_time(sizes().list_block_rows)
    cuts = np.searchsorted(heads, np.arange(block_rows, n_rows, block_rows))
    edges = [0, *sorted({*cuts.tolist()} - {0, len(codes)}), len(codes)]

    def standing(a: int, z: int) -> Block:
        first, last = int(start[a]), int(start[z])
        values = [column[first:last] for column in columns]
        edges = start[a : z + 1]
        block = Block(codes[a:z], edges - first, np.arange(first, last, dtype=np.int32), values)
        inside = block.code >= 0
        return block if inside.all() else block.where(np.repeat(inside, np.diff(edges)))

    makes = [partial(standing, a, z) for a, z in pairwise(edges)]
    return Blocks(len(makes), lambda: [makes])


def _dealt(code: CodeColumn, n_codes: int, columns: Sequence[CodeColumn]) -> Blocks:
    """Distribute the rows to blocks by the high bits of their codes; each block then sorts its rows
    by the low bits.

    Every chunk of rows sorts its rows by block. The values are distributed later, for some blocks
    at a time, so that only the values of these are in memory twice. They are read in the order of
    the table, which is fast; to gather them block by block would wait for memory at every row.
    """
    block_rows = rows_at_a_time(sizes().list_block_rows)
    chunk = sizes().dealt_rows
    # A block gets as many codes as have about `block_rows` rows.
    shift = max((block_rows * n_codes // max(len(code), 1)).bit_length() - 1, 0)
    shift = min(shift, (n_codes - 1).bit_length())
    n_blocks = ((n_codes - 1) >> shift) + 1
    step = max(sizes().group_rows // block_rows, -(-n_blocks // MOST_GROUPS))

    def whole() -> Block:
        codes = code[:]
        values = [column[:] for column in columns]
        rows = np.flatnonzero(codes >= 0)
        if len(rows) < len(codes):
            codes = codes.take(rows)
            values = [value.take(rows) for value in values]
        return _sorted(rows, codes, n_codes, 0, values)

    def groups() -> Iterator[list[Callable[[], Block]]]:
        row = np.empty(len(code), np.int32)
        low = np.empty(len(code), np.uint16 if shift <= 16 else np.int64)  # low bits of each code

        def deal(first: int) -> ndarray:
            part = slice(first, min(first + chunk, len(code)))
            codes = code[part]
            high = codes >> shift
            if high.min(initial=0) < 0:
                high[high < 0] = n_blocks  # rows of code -1 go to one more block, which is not read
            order = order_of_codes(high, n_blocks + 1)
            np.add(order, first, out=row[part], casting="unsafe")
            low[part] = (codes & (2**shift - 1)).astype(low.dtype).take(order)
            return first + offsets(np.bincount(high, minlength=n_blocks + 1))

        # Where each block begins in each chunk.
        edges = np.stack(each(deal, range(0, len(code), chunk)))

        def group(first: int, last: int) -> list[Callable[[], Block]]:
            begin = edges[:, first]
            end = edges[:, last]
            to = offsets(end - begin)
            values = [np.empty(to[-1], column[:0].dtype) for column in columns]

            def fill(i: int) -> None:
                places = row[begin[i] : end[i]] - np.int32(i * chunk)
                for column, filled in zip(columns, values, strict=True):
                    filled[to[i] : to[i + 1]] = column[i * chunk : (i + 1) * chunk].take(places)

            each(fill, range(len(begin)))

            def make(i: int) -> Block:
                runs = edges[:, i : i + 2]
                moved = runs - begin[:, None] + to[:-1, None]
                rows, codes = (_at_runs(array, runs) for array in (row, low))
                of_block = [_at_runs(array, moved) for array in values]
                return _sorted(rows, codes, 2**shift, i << shift, of_block)

            return [partial(make, i) for i in range(first, last)]

        for first in range(0, n_blocks, step):
            yield group(first, min(first + step, n_blocks))

    return Blocks(n_blocks, groups) if n_blocks > 1 else Blocks(1, lambda: [[whole]])


def _at_runs(array: ndarray, runs: ndarray) -> ndarray:
    """Join the parts of an array from the first to the second of each pair of places."""
    return np.concatenate([array[a:z] for a, z in runs.tolist()])


def _sorted(
    rows: ndarray,
    codes: ndarray,
    n_codes: int,
    first_code: int,
    values: list[ndarray],
) -> Block:
    """Make a block of some rows from their values and codes; a code counts from `first_code`."""
    order = order_of_codes(codes, n_codes)
    codes = codes.take(order)
    heads = run_heads([codes])
    row = rows.take(order)
    values = [value.take(order) for value in values]
    return Block(
        first_code + codes[heads].astype(np.int64), np.append(heads, len(codes)), row, values
    )
