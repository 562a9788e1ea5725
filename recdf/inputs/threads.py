"""Use of the machine: two threads work on parts of long arrays, and freed memory is kept for the next array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

THREADS = 2

# Just below 32 MB: glibc does not adapt to larger blocks.
LEARNT_FROM = 2**25 - 2**16

Part = TypeVar("Part")
Made = TypeVar("Made")


def each(function: Callable[[Part], Made], parts: Sequence[Part]) -> list[Made]:
    """Call the function for all parts, by two threads, and return the results in order.

    The threads run at the same time inside numpy and Arrow, which release Python's lock.
    """
    if len(parts) < 2:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(function, parts))


def keep_freed_memory() -> None:
    """Keep up to 64 MB of freed memory in the process.

    Otherwise it goes back to the system, which has to fill it with zeros again for the next array. glibc keeps twice
    the size of the largest block freed so far, so one large block is allocated and freed here. Nothing writes to it, so
    it takes no memory. Other allocators are not affected.
    """
    np.empty(LEARNT_FROM, np.uint8)
