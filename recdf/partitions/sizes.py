"""How large the pieces are in which rows are read, dealt, measured and sent."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ..errors import OptionError

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


@dataclass(frozen=True)
class Sizes:
    """Sizes of pieces. Pairs are the least and the most.

    read_rows : rows of one record batch of a file · together_rows : row groups of fewer rows are read together by one
    thread · batch_rows : rows that are dealt together · part_rows : rows of `pred` in a bucket, or fewer, so that one
    thread ranks it as one block in the processor's cache · most_buckets, at_once : number of buckets, and how many are
    measured at the same time if there are as many threads; more of them would be too small · chunk_rows : rows of a
    chunk of results · block_rows : rows of results that are merged at once · summed_buckets : the workers of an engine
    add up the results of more buckets than this, in one more step of the job · inline_bytes : a call of more bytes is
    sent once to each executor of Spark, instead of with every task.

    The rest are shares of the memory limit. whole_copies : files are read whole if the limit is at least so many times
    their size in memory · kept_share : rows that stay in memory · part_share : the evaluation of the buckets that are
    measured at the same time, each of which needs `working_copies` times its size · batch_share : the batches that are
    read and dealt at the same time, before any bucket is measured. What is left is for the libraries and the results.
    """

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


@contextmanager
def sized(given: Sizes) -> Iterator[None]:
    """Let calls inside a `with` block use these sizes, such as small ones that cut small files as large ones are."""
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
    found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*([KMGT]?I?)B?\s*", str(limit).upper())
    if isinstance(limit, bool) or found is None or found[2] not in BYTE_UNITS or float(found[1]) <= 0:
        raise OptionError(f'⟦memory_limit={limit!r}⟧; expected a number of bytes, or text such as "1GB" or "512MiB"')
    return int(float(found[1]) * BYTE_UNITS[found[2]])
