"""Findings of `check_log` about clicks and purchases: without an impression, written twice, refunds."""

from __future__ import annotations

import numpy as np

from ..inputs.attribution import Candidates, find_candidates
from ..inputs.impression_rows import EventRows, LogRows
from ..inputs.sorting import run_heads, stable_order
from .findings import Findings, plain_rows


def check_events(found: Findings, log: LogRows, events: EventRows, window: float | None, names: list[str]) -> None:
    """Report events that belong to no impression, by the reason. `names` are the columns that examples show."""
    candidates = find_candidates(log.moments, events.moments, window)
    outcome = candidates.outcome
    what, n = events.name, len(outcome.attributed)
    for finding, flags, effect in (
        (
            f"{what} without an impression",
            outcome.never_shown,
            'they belong to no list; unattributed="true" keeps them in true, so that recall counts them',
        ),
        (
            f"impressions after the {what}",
            outcome.before_impression,
            "all impressions of the item came later, so nothing is attributed; clock_skew= allows for two clocks",
        ),
        (f"{what} after the window", outcome.outside_window, "nothing is attributed; a longer window= would"),
    ):
        examples = plain_rows(events.frame[names].take(np.flatnonzero(flags)[:3]))
        found.add(finding, "warning", int(flags.sum()), n, examples, effect)
    _check_named_lists(found, log, events, candidates, names)
    _check_copies(found, events, names)


def _check_named_lists(
    found: Findings, log: LogRows, events: EventRows, candidates: Candidates, names: list[str]
) -> None:
    """Report events that name one list in their columns, but belong to the impression of another one by time."""
    if events.list_keys is None:
        return
    event = np.flatnonzero(candidates.outcome.attributed)
    row = candidates.row[candidates.high[event] - 1]
    named, other = np.ones(len(event), bool), np.zeros(len(event), bool)
    for of_events, of_log in zip(events.list_keys, log.keys, strict=True):
        named &= of_events[event] >= 0
        other |= of_events[event] != of_log[row]
    wrong = event[named & other]
    effect = (
        'attribution goes by time alone, and the last impression (attribution="last") is in another list than the one '
        "that the event names; a shorter window= may separate the lists"
    )
    examples = plain_rows(events.frame[names].take(wrong[:3]))
    found.add(f"{events.name} that name another list", "warning", len(wrong), len(event), examples, effect)


def _check_copies(found: Findings, events: EventRows, names: list[str]) -> None:
    """Report events of the same user, item and time, which were probably written twice."""
    keys = list(events.moments)
    if events.paid is not None:
        keys.append(events.paid)
    order = stable_order(keys)
    again = np.ones(len(order), bool)
    again[run_heads([key[order] for key in keys])] = False
    copies = np.sort(order[again])
    effect = f"each copy counts, also in what was paid; {events.name}.drop_duplicates() takes the copies out"
    examples = plain_rows(events.frame[names].take(copies[:3]))
    found.add(f"{events.name} logged twice", "warning", len(copies), len(order), examples, effect)


def check_prices(found: Findings, events: EventRows, name: str) -> None:
    """Report prices below 0, such as refunds. `name` is the column of what was paid."""
    if events.paid is None:
        return
    below = np.flatnonzero(events.paid < 0)
    effect = (
        "a refund lowers what its impression brought in, and metrics of money refuse a negative value; leave refunds "
        "out, with the purchases that they undo"
    )
    examples = plain_rows(events.frame[[name]].take(below[:3]))
    found.add("prices below 0", "warning", len(below), len(events.paid), examples, effect)
