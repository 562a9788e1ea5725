"""What is asked of the memory allocator."""

from __future__ import annotations

import numpy as np

# Just below the 32 MB up to which glibc learns from a block.
LEARNT_FROM = 2**25 - 2**16


def keep_freed_memory() -> None:
    """Let freed memory stay with the process, up to 64 MB: else it is given back, and zeroed anew for the next array.

    glibc keeps twice the size of the largest block that was given back so far. This one is never touched, and so takes
    no memory. Other allocators have rules of their own, which it does not change.
    """
    np.empty(LEARNT_FROM, np.uint8)
