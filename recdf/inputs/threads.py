"""What a call asks of the machine: two threads for parts of long arrays, and freed memory kept for the next array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

THREADS = 2

# Just below the 32 MB up to which glibc learns from a block.
LEARNT_FROM = 2**25 - 2**16

Part = TypeVar("Part")
Made = TypeVar("Made")


def each(function: Callable[[Part], Made], parts: Sequence[Part]) -> list[Made]:
    """The function's values for all parts, in their order. Numpy and Arrow let both threads run."""
    if len(parts) < 2:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(function, parts))


def keep_freed_memory() -> None:
    """Let freed memory stay with the process, up to 64 MB.

    Otherwise it goes back to the system, which fills it with zeros again for the next array. glibc keeps twice the size
    of the largest block that was freed so far, so one large block is made and freed here. Nothing touches it, and so it
    takes no memory. Other allocators have rules of their own, which this does not change.
    """
    np.empty(LEARNT_FROM, np.uint8)
