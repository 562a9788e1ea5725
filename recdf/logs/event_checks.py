"""Findings of `check_log` about clicks and purchases: without an impression, written twice,
refunds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..inputs.codes import first_rows
from ..inputs.sorting import run_heads, stable_order
from ..stats.many_tests import adjust
from ..tables.findings import Findings, row_objects
from .attribution import Outcome, find_candidates
from .clock_checks import SOON
from .impression_rows import EventRows, LogRows
from .named_lists import candidates_by_list, lists_of_events
from .times import TICKS_PER_SECOND, Clock

# Click rates are compared with those of the other users, of whom the 5 % with the highest are left
# out, so that programs do not hide each other: a user must be beyond twice their rate and beyond 5
# standard deviations of the users' own rates (on the scale of the logit), with p < 0.01 after
# Holm's correction.
FEWEST, USUAL_SHARE, TIMES_USUAL, DEVIATIONS, LEVEL = 20, 0.95, 2.0, 5.0, 0.01


def check_events(
    found: Findings,
    log: LogRows,
    events: EventRows,
    window: float | None,
    clock: Clock,
    names: list[str],
    follows: bool,
) -> None:
    """Report events that belong to no impression, by the reason. `names` are the columns that
    examples show.

    `follows` says that events which name a list belong to it.
    """
    what, [lists] = events.name, lists_of_events(log, [events])
    followed = lists if follows else np.full(len(lists), -1)
    outcome, ahead = Outcome.of_none(len(lists)), []
    for event, candidates in candidates_by_list(log, events, followed, window, 0):
        outcome.put(event, candidates.outcome)
        next_one = np.flatnonzero(
            candidates.outcome.attributed | candidates.outcome.before_impression
        )
        first = candidates.row[candidates.low[next_one]]
        ahead.append(log.moments.time[first] - events.moments.time[event][next_one])
    never = (
        'they belong to no list; ⟦+unattributed="true"⟧ keeps them in true, so that recall '
        "counts them"
    )
    late = (
        "all impressions of the item came later, so nothing is attributed; "
        f"{_skew(np.concatenate(ahead), clock)}"
    )
    unknown = 'they belong to no list of the log; ⟦+named_lists="none"⟧ attributes by time'
    for finding, flags, effect in (
        (f"{what} without an impression", outcome.never_shown, never),
        (f"impressions after the {what}", outcome.before_impression, late),
        (
            f"{what} after the window",
            outcome.outside_window,
            "nothing is attributed; a longer ⟦+window=⟧ would",
        ),
        (f"{what} that name an unknown list", outcome.unknown_list, unknown),
    ):
        _add(found, finding, events, np.flatnonzero(flags), len(outcome.attributed), names, effect)
    lists[outcome.unknown_list] = -1
    _check_named_lists(found, log, events, (lists, bool((followed >= 0).any())), window, names)
    _check_copies(found, events, names)


def _skew(ahead: np.ndarray, clock: Clock) -> str:
    """Say by how much events came before their impression, and which tolerance for two clocks takes
    most of them in.

    Impressions much later than the event are taken for others than the one that caused it.
    """
    near = ahead[ahead > 0] if clock.is_number else ahead[ahead > 0] / TICKS_PER_SECOND[clock.unit]
    near = near if clock.is_number else near[near <= SOON]
    if not len(near):
        return "⟦+clock_skew=⟧ allows for two clocks"
    half, most, nearly_all = (
        np.ceil(np.quantile(near, [0.5, 0.9, 0.99], method="inverted_cdf") * 1000 - 1e-6) / 1000
    )
    unit, limit = ("", "") if clock.is_number else ("s", f" of the {len(near):,} within {SOON} s")
    span = f"{nearly_all:.12g}" if clock.is_number else f'"{nearly_all:.12g}s"'
    return (
        f"half{limit} came at most {half:.12g}{unit} before it, 90 % at most {most:.12g}{unit}, "
        f"99 % at most {nearly_all:.12g}{unit}; ⟦+clock_skew={span}⟧ allows for two clocks"
    )


def _add(
    found: Findings,
    finding: str,
    events: EventRows,
    rows: np.ndarray,
    of: int,
    names: list[str],
    effect: str,
) -> None:
    """Add a finding about some rows of the events, with the columns `names` of the first three."""
    found.add(
        finding, "warning", len(rows), of, row_objects(events.frame[names].take(rows[:3])), effect
    )


def _check_named_lists(
    found: Findings,
    log: LogRows,
    events: EventRows,
    lists: tuple[np.ndarray, bool],
    window: float | None,
    names: list[str],
) -> None:
    """Report events that name one list in their columns, but belong to the impression of another
    one by time."""
    named, followed = lists
    if (named < 0).all():
        return
    candidates = find_candidates(log.moments, events.moments, window)
    event = np.flatnonzero(candidates.outcome.attributed & (named >= 0))
    wrong = event[log.lists.code[candidates.row[candidates.high[event] - 1]] != named[event]]
    effect = (
        "they belong to the list that they name; by time alone they would belong to another one"
        if followed
        else 'they go by time, and the last impression (⟦attribution="last"⟧) is in another list '
        "than the one that "
        'they name; ⟦+named_lists="all"⟧ attributes them to the list that they name'
    )
    _add(found, f"{events.name} that name another list", events, wrong, len(event), names, effect)


def _check_copies(found: Findings, events: EventRows, names: list[str]) -> None:
    """Report events of the same user, item and time, which were probably written twice."""
    keys = [*events.moments, *([] if events.paid is None else [events.paid])]
    order = stable_order(keys)
    again = np.ones(len(order), bool)
    again[run_heads([key[order] for key in keys])] = False
    copies = np.sort(order[again])
    effect = (
        f"each copy counts, also in what was paid; {events.name}.drop_duplicates() takes the "
        "copies out"
    )
    _add(found, f"{events.name} logged twice", events, copies, len(order), names, effect)


def check_refunds(found: Findings, counts: Mapping[str, Mapping[str, int]]) -> None:
    """Report refunds that cancel no purchase, or pay back more than was paid."""
    refunds = counts.get("refunds", {"events": 0, "without_purchase": 0, "beyond_price": 0})
    for what, finding, effect in (
        (
            "without_purchase",
            "refunds without a purchase",
            "they cancel nothing; look for the purchase in a time before the log, or in another "
            "order or user",
        ),
        (
            "beyond_price",
            "refunds beyond what was paid",
            "what is beyond the price changes nothing",
        ),
    ):
        found.add(finding, "warning", refunds[what], refunds["events"], "", effect)


def check_persons(found: Findings, counts: Mapping[str, int] | None) -> None:
    """Report devices without a person, and devices of several."""
    if counts is not None:
        unknown, shared, of = (
            counts[name] for name in ("unknown_devices", "shared_devices", "devices")
        )
        found.add(
            "devices that persons does not name",
            "info",
            unknown,
            of,
            "",
            "each is a person of its own",
        )
        effect = "each is taken for a device of the first of them"
        found.add("devices of several persons", "warning", shared, of, "", effect)


def check_prices(found: Findings, events: EventRows, name: str) -> None:
    """Report prices below 0, such as refunds. `name` is the column of what was paid."""
    if events.paid is None:
        return
    below = np.flatnonzero(events.paid < 0)
    effect = (
        "a refund lowers what its impression brought in, and metrics of money refuse a negative "
        "value; give refunds to from_impressions as a frame of their own (refunds=), which takes "
        "out what they cancel"
    )
    _add(found, "prices below 0", events, below, len(events.paid), [name], effect)


def check_click_rates(found: Findings, log: LogRows, clicks: EventRows, name: str) -> None:
    """Report users who click far more often than all others, which their number of impressions
    cannot explain."""
    n_users = int(max(log.user.max(initial=-1), clicks.moments.user.max(initial=-1))) + 1
    shown = np.bincount(log.user, minlength=n_users)
    clicked = np.minimum(np.bincount(clicks.moments.user, minlength=n_users), shown)
    user = np.flatnonzero(shown)
    n, rate = shown[user], clicked[user] / shown[user]
    # Nobody counts for more than the busiest tenth does.
    weight = np.minimum(n, np.quantile(n, 0.9))
    usual = float(np.average(rate, weights=weight))
    if len(user) < FEWEST or not 0 < usual < 1:
        return
    z = (rate - usual) * np.sqrt(n)
    rest = z <= np.quantile(z, USUAL_SHARE)
    usual = float(np.average(rate[rest], weights=weight[rest]))
    if not 0 < usual < 1:
        return
    chance = usual * (1 - usual)
    own = float(np.average((rate[rest] - usual) ** 2 - chance / n[rest], weights=weight[rest]))
    high = np.log(usual / (1 - usual)) + DEVIATIONS * np.sqrt(max(own, 0.0)) / chance
    limit = max(min(TIMES_USUAL * usual, 0.99), 1 / (1 + np.exp(-high)))
    # Chernoff's bound of the binomial tail: exp(-n * divergence of the rate from the limit).
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = rate * np.log(rate / limit) + np.nan_to_num(
            (1 - rate) * np.log((1 - rate) / (1 - limit))
        )
    p = np.where(rate > limit, np.exp(-n * np.nan_to_num(divergence)), 1.0)
    odd = np.flatnonzero(adjust(p, "holm") < LEVEL)
    odd = odd[np.argsort(p[odd], kind="stable")]
    labels = log.frame[name].take(first_rows(log.user, n_users)[user[odd[:5]]]).tolist()
    words = ", ".join(
        f"{label!r}: {rate[i]:.0%} of {n[i]:,}" for label, i in zip(labels, odd, strict=False)
    )
    effect = (
        f"other users click on {usual:.1%} of their impressions; programs do not click like "
        "people, and ten can decide an experiment: leave such users out"
    )
    found.add("users with implausible click rates", "warning", len(odd), len(user), words, effect)
