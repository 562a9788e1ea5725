"""Work on parts of long arrays by two threads: numpy and Arrow let both run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

THREADS = 2

Part = TypeVar("Part")
Made = TypeVar("Made")


def each(function: Callable[[Part], Made], parts: Sequence[Part]) -> list[Made]:
    """The function's values for all parts, in their order."""
    if len(parts) < 2:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(function, parts))
