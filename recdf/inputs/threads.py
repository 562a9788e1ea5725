"""Use of the machine: threads work on parts of long arrays, and freed memory is kept for the next
array.

Contract: there are as many threads as `pyarrow.cpu_count()` says, so `OMP_NUM_THREADS` and
`pyarrow.set_cpu_count` set their number. `limited` gives fewer: an engine whose workers have one
core each calls it with 1. Threads are started for one piece of work and end with it, so that a
process may fork at any time between two calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import numpy as np
import pyarrow as pa

from .sizes import Sizes, sizes, use_sizes

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
    count: int = pa.cpu_count()
    return max(1, min(count, _limit.get()))


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
    use_sizes(given)


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
