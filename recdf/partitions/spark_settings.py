"""Settings of a Spark session that the jobs of recdf need while they run. The session gets its own values back.

Contract: several calls in one session may overlap, in different threads. The first one sets the values, and the last
one sets them back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# After each row that goes from Java to Python, Spark adds up the bytes of the batch so far, unless this limit is the
# largest integer. Rows of ids and scores are so short that adding up takes longer than all else that happens to a row.
# Cells are long, so their number in a batch has to be limited: 10,000 cells of `CELL_BYTES` stay below the two
# gigabytes that an Arrow array can hold.
SETTINGS = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
}

_LOCK = threading.Lock()
# The sessions that have the settings now: how many calls use them, and the session's own values.
_USED: dict[int, tuple[int, dict[str, str | None]]] = {}


@contextmanager
def settings(session: Any) -> Iterator[None]:
    """Give a session the settings for as long as the context lasts."""
    with _LOCK:
        n_calls, own = _USED.get(id(session)) or (0, {name: session.conf.get(name, None) for name in SETTINGS})
        if not n_calls:
            for name, value in SETTINGS.items():
                session.conf.set(name, value)
        _USED[id(session)] = n_calls + 1, own
    try:
        yield
    finally:
        with _LOCK:
            n_calls, own = _USED.pop(id(session))
            if n_calls > 1:
                _USED[id(session)] = n_calls - 1, own
            else:
                _set_back(session, own)


def _set_back(session: Any, own: dict[str, str | None]) -> None:
    for name, value in own.items():
        if value is None:
            session.conf.unset(name)
        else:
            session.conf.set(name, value)
