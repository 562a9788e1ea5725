"""Use of the machine: how large the pieces are in which rows are read, coded, sorted, dealt,
ranked, measured and sent; how much memory a call may take; and the threads that do the work.

Contract: no size changes a result. Tests that cut small frames as large ones are cut give small
sizes. There are as many threads as `pyarrow.cpu_count()` says, so `OMP_NUM_THREADS` and
`pyarrow.set_cpu_count` set their number. `limited` gives fewer: an engine whose workers have one
core each calls it with 1. Threads are started for one piece of work and end with it, so that a
process may fork at any time between two calls.
"""

from __future__ import annotations

import math
import os
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from ..errors import OptionError


@dataclass(frozen=True)
class Sizes:
    """Sizes of pieces. Pairs are the least and the most. Pieces of arrays stay in the cache of a
    processor.

    Ids: direct_span : integer ids that span at most so many numbers, or four times the rows, are
    their own codes · coded_rows : a column of strings is coded in pieces of at least so many rows
    at the same time · digit_rows : strings of digits are read so many at a time by a thread ·
    first_rows : a column that is not of digits mostly shows it in so many rows · key_rows : rows of
    list keys that are compared with their neighbours at a time.

    Sorting: sorted_rows : rows at a time · matrix_cells : cells of a matrix whose rows are sorted ·
    row_cells : cells of a row that short lists share; numpy sorts about so many without branches ·
    narrow_bits : keys of pairs with so many bits take four bytes.

    Blocks of lists: list_block_rows : rows of a block, or fewer where there are many threads ·
    dealt_rows : rows that are dealt at a time · group_rows : rows whose values are dealt at a time.

    Metrics: summed_terms : terms that are summed at a time; more leave fewer bits for each ·
    moment_cells : values of short columns whose moments are computed together · most_indicators :
    values become indicators only if there are at most so many · category_cells : entries of a
    matrix of lists and categories · paired_items : pairs of a recommended item and one of the past
    · feature_bytes : gathered features of a block of lists · product : multiplications that
    OpenBLAS makes in one thread, since threads of small products wait for each other.

    Logs: log_rows : rows of a log with propensities at a time · most_log_rows : a pass over all
    clusters costs as much as so many rows, so pieces are longer where there are many clusters.

    Files and engines: read_rows : rows of one record batch of a file · batch_rows : rows that are
    dealt together · part_rows : rows of `pred` in a bucket, or fewer, so that one thread ranks it
    as one block in the processor's cache · most_buckets, at_once : number of buckets, and how many
    are measured at the same time if there are as many threads; more of them would be too small ·
    block_rows : rows of results that are sorted at once · summed_buckets : the workers of an engine
    add up the results of more buckets than this, in one more step of the job · inline_bytes : a
    call of more bytes is sent once to each executor of Spark, instead of with every task ·
    bucket_bytes : bytes of a bucket of Spark, as Spark expects them: a million rows in files that
    compress well, and a hundred thousand in memory · summed_rows : users in files and engines are
    added up part by part if they are at least so many · summed_batch : users that are added up at a
    time; a quarter of the first ones shows what is far from the mean.

    The rest are shares of the memory limit. whole_copies : files are read whole if the limit is at
    least so many times their size in memory · kept_share : rows that stay in memory · part_share :
    the evaluation of the buckets that are measured at the same time, each of which needs
    `working_copies` times its size · batch_share : the batches that are read and dealt at the same
    time, before any bucket is measured. What is left is for the libraries and the results.
    """

    direct_span: int = 2**20
    coded_rows: int = 2**19
    digit_rows: int = 2**16
    first_rows: int = 1000
    key_rows: int = 2**18
    sorted_rows: int = 2**19
    matrix_cells: int = 2**18
    row_cells: int = 128
    narrow_bits: int = 32
    list_block_rows: int = 2**19
    dealt_rows: int = 2**18
    group_rows: int = 2**22
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
    batch_rows: tuple[int, int] = (2**10, 2**20)
    part_rows: int = 400_000
    most_buckets: int = 4096
    at_once: int = 4
    block_rows: int = 2**17
    summed_buckets: int = 16
    inline_bytes: int = 2**18
    bucket_bytes: int = 2**21
    summed_rows: int = 2**20
    summed_batch: int = 2**17
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


@contextmanager
def sized(given: Sizes) -> Iterator[None]:
    """Let calls inside a `with` block use these sizes, such as small ones that cut small files as
    large ones are."""
    token = _SIZES.set(given)
    try:
        yield
    finally:
        _SIZES.reset(token)


def memory_bytes(limit: int | str | None) -> int:
    """Return the memory limit in bytes."""
    if limit is None:
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
        except (AttributeError, ValueError):  # not on Windows
            return 2 * 10**9
    form = r"\s*([0-9]+\.?[0-9]*)\s*(?:([KMGT])(I?))?B?\s*"
    found = re.fullmatch(form, str(limit).upper())
    n_bytes = 0.0
    if found is not None:
        power = " KMGT".index(found[2] or " ")
        n_bytes = float(found[1]) * (1024 if found[3] else 1000) ** power
    if not 1 <= n_bytes < math.inf:
        raise OptionError(
            f'⟦memory_limit={limit!r}⟧; expected a number of bytes, or text such as "1GB" or '
            '"512MiB"'
        )
    return int(n_bytes)


# All threads together work on about this many rows at a time, however many threads there are. This
# bounds their memory.
ROWS_IN_FLIGHT = 2**20

FEW_ROWS = 2**14

# With more threads each would have too few rows at a time.
MOST_THREADS = 32

# Just below 32 MB: glibc does not adapt to larger blocks.
LEARNT_FROM = 2**25 - 2**16

PartOfWork = TypeVar("PartOfWork")
Computed = TypeVar("Computed")

_limit: ContextVar[int] = ContextVar("recdf threads", default=MOST_THREADS)


def n_threads() -> int:
    """Return how many threads may work at the same time."""
    return max(1, min(pa.cpu_count(), _limit.get()))


@contextmanager
def limited(n: int) -> Iterator[None]:
    """Let recdf use at most `n` threads inside a `with` block, in the thread that runs the block.

    >>> with limited(1):
    ...     n_threads()
    1
    """
    token = _limit.set(min(n, _limit.get()))
    try:
        yield
    finally:
        _limit.reset(token)


def _enter(n: int, given: Sizes) -> None:
    """Begin a thread, which works with so many threads and these sizes."""
    _limit.set(n)
    _SIZES.set(given)


def rows_at_a_time(most: int) -> int:
    """Return how many rows one thread works on at a time: fewer where there are many threads, and
    at most `most`."""
    return min(most, ROWS_IN_FLIGHT // n_threads())


def each(
    function: Callable[[PartOfWork], Computed],
    parts: Sequence[PartOfWork],
    n_rows: int = FEW_ROWS,
) -> list[Computed]:
    """Call the function for all parts, by several threads, and return the results in order. Parts
    of fewer rows than `FEW_ROWS` take less time than starting a thread.

    The threads run at the same time inside numpy and Arrow, which release Python's lock. A function
    that calls `each` again does so in its own thread, so that the number of threads stays the same.
    """
    n = min(n_threads(), len(parts))
    if n < 2 or n_rows < FEW_ROWS:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(n, initializer=_enter, initargs=(1, sizes())) as threads:
        return list(threads.map(function, parts))


def stream(
    function: Callable[[PartOfWork], Computed],
    parts: Iterable[PartOfWork],
    most: int = MOST_THREADS,
) -> Generator[Computed, None, None]:
    """Call the function for parts that are made one after another, by several threads; yield the
    results in order.

    `most` is the largest number of parts that are worked on at the same time. At most one part more
    is in memory. With `most=1` the calls follow one another, while this thread makes the next part.
    Where recdf may use one thread only, nothing runs at the same time.
    """
    if n_threads() < 2:
        for (
            part
        ) in parts:  # not `map`, which would end quietly where a function raises StopIteration
            yield function(part)
        return
    n = min(n_threads(), most)
    waiting: deque[Future[Computed]] = deque()
    with ThreadPoolExecutor(n, initializer=_enter, initargs=(n_threads() // n, sizes())) as threads:
        try:
            for part in parts:
                waiting.append(threads.submit(function, part))
                if len(waiting) > n:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def keep_freed_memory() -> None:
    """Keep up to 64 MB of freed memory in the process.

    Otherwise it goes back to the system, which has to fill it with zeros again for the next array.
    glibc keeps twice the size of the largest block freed so far, so one large block is allocated
    and freed here. Nothing writes to it, so it takes no memory. Other allocators are not affected.
    """
    np.empty(LEARNT_FROM, np.uint8)
