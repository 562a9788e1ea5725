"""How large the pieces are in which rows are read, coded, sorted, dealt, ranked, measured and sent.

Contract: no size changes a result. Tests that cut small frames as large ones are cut give small
sizes. The memory limit of a call is a number of bytes, read here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ..errors import OptionError


@dataclass(frozen=True)
class Sizes:
    """Sizes of pieces. Pairs are the least and the most. Pieces of arrays stay in the cache of a
    processor.

    Ids: direct_span : integer ids that span at most so many numbers, or four times the rows, are
    their own codes · coded_rows : a column of strings is coded in pieces of at least so many rows
    at the same time · kept_chunks : the codes of strings keep so many chunks of the column, or the
    chunks are joined · digit_rows, digit_piece_rows : strings of digits are read so many at a time,
    and taken by a thread · first_rows : a column that is not of digits mostly shows it in so many
    rows · key_rows : rows of list keys that are compared with their neighbours at a time.

    Sorting: sorted_rows : rows at a time · matrix_cells : cells of a matrix whose rows are sorted ·
    row_cells : cells of a row that short lists share; numpy sorts about so many without branches ·
    narrow_bits : keys of pairs with so many bits take four bytes · tie_bits : bits of level, item
    and place in one integer; beyond them ties are ordered by a slower sort.

    Blocks of lists: list_block_rows : rows of a block, or fewer where there are many threads ·
    dealt_rows : rows that are dealt at a time · group_rows : rows whose values are dealt at a time
    · marked_cells : marks of items of a few lists · rows_of_marks : rows that these lists must
    have, or their rows are paired instead.

    Metrics: summed_terms : terms that are summed at a time; more leave fewer bits for each ·
    moment_cells : values of short columns whose moments are computed together · most_indicators :
    values become indicators only if there are at most so many · category_cells : entries of a
    matrix of lists and categories · paired_items : pairs of a recommended item and one of the past
    · feature_bytes : gathered features of a block of lists · product : multiplications that
    OpenBLAS makes in one thread, since threads of small products wait for each other.

    Logs: log_rows : rows of a log with propensities at a time · most_log_rows : a pass over all
    clusters costs as much as so many rows, so pieces are longer where there are many clusters.

    Files and engines: read_rows : rows of one record batch of a file · together_rows : row groups
    of fewer rows are read together by one thread · batch_rows : rows that are dealt together ·
    part_rows : rows of `pred` in a bucket, or fewer, so that one thread ranks it as one block in
    the processor's cache · most_buckets, at_once : number of buckets, and how many are measured at
    the same time if there are as many threads; more of them would be too small · chunk_rows : rows
    of a chunk of results · block_rows : rows of results that are merged at once · summed_buckets :
    the workers of an engine add up the results of more buckets than this, in one more step of the
    job · inline_bytes : a call of more bytes is sent once to each executor of Spark, instead of
    with every task.

    The rest are shares of the memory limit. whole_copies : files are read whole if the limit is at
    least so many times their size in memory · kept_share : rows that stay in memory · part_share :
    the evaluation of the buckets that are measured at the same time, each of which needs
    `working_copies` times its size · batch_share : the batches that are read and dealt at the same
    time, before any bucket is measured. What is left is for the libraries and the results.
    """

    direct_span: int = 2**20
    coded_rows: int = 2**19
    kept_chunks: int = 1000
    digit_rows: int = 2**14
    digit_piece_rows: int = 2**18
    first_rows: int = 1000
    key_rows: int = 2**18
    sorted_rows: int = 2**19
    matrix_cells: int = 2**18
    row_cells: int = 128
    narrow_bits: int = 32
    tie_bits: int = 63
    list_block_rows: int = 2**19
    dealt_rows: int = 2**18
    group_rows: int = 2**22
    marked_cells: int = 2**21
    rows_of_marks: int = 2**10
    summed_terms: int = 2**14
    moment_cells: int = 2**14
    most_indicators: int = 1024
    category_cells: int = 2**20
    paired_items: int = 2**21
    feature_bytes: int = 2**22
    product: int = 2**17
    log_rows: int = 2**17
    most_log_rows: int = 2**21
    read_rows: int = 2**16
    together_rows: int = 2**18
    batch_rows: tuple[int, int] = (2**10, 2**20)
    part_rows: int = 400_000
    most_buckets: int = 4096
    at_once: int = 4
    chunk_rows: tuple[int, int] = (2**6, 2**11)
    block_rows: int = 2**17
    summed_buckets: int = 16
    inline_bytes: int = 2**18
    whole_copies: float = 4
    kept_share: float = 0.15
    part_share: float = 0.3
    working_copies: float = 6
    batch_share: float = 0.15


USUAL_SIZES = Sizes()
_SIZES: ContextVar[Sizes] = ContextVar("recdf sizes", default=USUAL_SIZES)


def sizes() -> Sizes:
    """Return the sizes that calls use now."""
    return _SIZES.get()


def use_sizes(given: Sizes) -> None:
    """Let a thread that begins work with the sizes of the thread that began it."""
    _SIZES.set(given)


@contextmanager
def sized(given: Sizes) -> Iterator[None]:
    """Let calls inside a `with` block use these sizes, such as small ones that cut small files as
    large ones are."""
    token = _SIZES.set(given)
    try:
        yield
    finally:
        _SIZES.reset(token)


BYTE_UNITS = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "KI": 2**10,
    "MI": 2**20,
    "GI": 2**30,
    "TI": 2**40,
}


def memory_bytes(limit: int | str | None) -> int:
    """Return the memory limit in bytes."""
    if limit is None:
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
        except (AttributeError, ValueError):  # not on Windows
            return 2 * 10**9
    found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*([KMGT]?I?)B?\s*", str(limit).upper())
    if (
        isinstance(limit, bool)
        or found is None
        or found[2] not in BYTE_UNITS
        or float(found[1]) <= 0
    ):
        raise OptionError(
            f'⟦memory_limit={limit!r}⟧; expected a number of bytes, or text such as "1GB" or '
            '"512MiB"'
        )
    return int(float(found[1]) * BYTE_UNITS[found[2]])
