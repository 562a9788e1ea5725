"""Events that name the list of their impression: which list it is, and the impressions that such an
event belongs to.

Contract: an event that names a list belongs to the impressions of its item in this list, whenever
they were; the window and the tolerance for clocks are for events that name none. A list that the
log does not have gets a code beyond its lists, so that its events belong to no impression.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..inputs.sorting import dense_codes
from .attribution import Candidates, TimedPairs, find_candidates
from .impression_rows import EventRows, LogRows


def lists_of_events(log: LogRows, all_events: Sequence[EventRows]) -> list[np.ndarray]:
    """Return for the events of each kind the code of the list that each names, or -1 if it names
    none.

    A list that the log has keeps its code. Other lists get new codes; a list that both a click and
    a purchase name has one code.
    """
    found = [np.full(len(events.moments.item), -1, np.int64) for events in all_events]
    naming = [number for number, events in enumerate(all_events) if events.list_keys is not None]
    if not naming:
        return found
    n_lists = int(log.lists.code.max(initial=-1)) + 1
    a_row = np.empty(n_lists, np.int64)
    a_row[log.lists.code] = np.arange(len(log))
    given = [all_events[number].list_keys or [] for number in naming]
    columns = [
        np.concatenate([own[a_row], *parts]) for own, *parts in zip(log.keys, *given, strict=True)
    ]
    together, n = dense_codes(columns)
    code = np.arange(
        n_lists, n_lists + n
    )  # a list that the log does not have gets a number beyond its lists
    code[together[:n_lists]] = np.arange(n_lists)
    ends = np.cumsum([n_lists, *(len(found[number]) for number in naming)])
    for number, keys, start, stop in zip(naming, given, ends[:-1], ends[1:], strict=True):
        null = np.logical_or.reduce([key < 0 for key in keys])
        found[number] = np.where(null, -1, code[together[start:stop]])
    return found


def candidates_by_list(
    log: LogRows, events: EventRows, lists: np.ndarray, window: float | None, skew: float
) -> Iterator[tuple[slice | np.ndarray, Candidates]]:
    """Yield some events and the impressions they may belong to: first those that name no list, then
    the others.

    `lists` are the codes of the lists that the events name, -1 for none.
    """
    moments, named = events.moments, lists >= 0
    free = np.flatnonzero(~named) if named.any() else slice(None)
    yield (
        free,
        find_candidates(log.moments, TimedPairs(*(part[free] for part in moments)), window, skew),
    )
    if isinstance(free, slice):
        return
    event = np.flatnonzero(named)
    code, (_, item, time) = lists[event], (part[event] for part in moments)
    # In its list, the impression may be later than the event by any difference of two clocks.
    shown = log.moments._replace(user=log.lists.code)
    found = find_candidates(shown, TimedPairs(code, item, time), None, np.inf)
    unknown = code > log.lists.code.max(initial=-1)
    outcome = found.outcome._replace(
        never_shown=found.outcome.never_shown & ~unknown, unknown_list=unknown
    )
    yield event, Candidates(found.row, found.low, found.high, outcome)
