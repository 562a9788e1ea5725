"""Findings of `check_log` about clocks: two that differ by some hours, and times that have nothing
in common."""

from __future__ import annotations

import numpy as np

from ..inputs.sorting import distinct
from ..tables.findings import Findings
from .attribution import TimedPairs, find_candidates, rows_of_pairs
from .impression_rows import EventRows, ImpressionRows, LogRows
from .times import TICKS_PER_SECOND

# So many events are compared with their impressions to find out whether two clocks differ by some
# hours.
SAMPLE = 20_000
# An event that follows an impression of its item within so many seconds is taken to be caused by
# it.
SOON = 600
# Offsets between time zones, in half hours.
OFFSETS = range(-28, 29)
# Two clocks differ if after a shift by some offset at least ENOUGH events follow soon, which must
# be at least the share SHARE_SOON of the events, and TIMES_CHANCE as many as without a shift.
# Purchases that come hours later have no common offset, so they do not count.
ENOUGH, SHARE_SOON, TIMES_CHANCE = 10, 0.5, 20


def check_clocks(found: Findings, rows: ImpressionRows) -> None:
    """Report events that follow their impressions soon only after a shift by some hours, as in two
    time zones.

    Also report events all of which are far from all impressions, as when seconds were read as
    milliseconds.
    """
    for events in rows.events:
        _check_range(found, rows.log, events)
    if rows.clock.is_number or rows.log.time is None:
        return
    second = TICKS_PER_SECOND[rows.clock.unit]
    for events in rows.events:
        soon, n_shown = _soon_by_offset(rows.log, events, second)
        best = max(soon, key=lambda offset: (soon[offset], -abs(offset)))
        if best and soon[best] >= max(ENOUGH, SHARE_SOON * n_shown, TIMES_CHANCE * soon[0]):
            words = (
                f"{events.name} {abs(best) / 2:g} h {'behind' if best > 0 else 'ahead of'} the log"
            )
            effect = (
                "one of the two frames is in another time zone; give both their zone with "
                "tz_localize"
            )
            found.add("clocks in two zones", "warning", soon[best], n_shown, words, effect)


def _soon_by_offset(log: LogRows, events: EventRows, second: int) -> tuple[dict[int, int], int]:
    """Count for each offset, in half hours, the events that soon follow an impression of their item
    after that shift.

    The second number is how many of the sampled events are about an item that their user was shown.
    """
    n = len(events.moments.time)
    some = (
        np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
        if n
        else np.empty(0, np.int64)
    )
    sample = TimedPairs(*(part[some] for part in events.moments))
    pairs = distinct(sample.pairs(slice(None), log.n_items))
    row = rows_of_pairs(log.moments, pairs, log.n_items)
    near = TimedPairs(*(part[row] for part in log.moments))
    n_shown = int(np.count_nonzero(~find_candidates(near, sample, None).outcome.never_shown))
    counts = {}
    for offset in OFFSETS:
        shifted = sample._replace(time=sample.time + offset * 1800 * second)
        counts[offset] = int(find_candidates(near, shifted, SOON * second).outcome.attributed.sum())
    return counts, n_shown


def _check_range(found: Findings, log: LogRows, events: EventRows) -> None:
    """Report events whose times are farther from those of the log than the log is long, before it
    or after it."""
    time = events.moments.time
    if log.time is None or not len(time):
        return
    first, last = (float(edge) for edge in (log.time.min(), log.time.max()))
    long = max(last - first, 1.0)
    if float(time.min()) > last + long or float(time.max()) < first - long:
        where = "after" if float(time.min()) > last else "before"
        words = f"all {events.name} are {where} the log, farther from it than it is long"
        effect = (
            "one of the two has another unit or another beginning, such as seconds that were read "
            "as milliseconds"
        )
        found.add("times that have nothing in common", "error", len(time), len(time), words, effect)
