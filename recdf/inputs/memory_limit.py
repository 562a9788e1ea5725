"""The memory limit of a call as a number of bytes."""

from __future__ import annotations

import os
import re

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
