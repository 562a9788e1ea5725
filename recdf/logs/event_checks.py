"""Findings of `check_log` about events: without an impression, written twice, refunds, clocks that
differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..inputs.codes import first_rows
from ..inputs.options import as_columns
from ..inputs.sorting import distinct
from ..stats.many_tests import adjust
from ..stats.numbers import Floats, Integers, undefined_is_nan
from ..tables.findings import Severity, row_objects
from .attribution import (
    ATTRIBUTED,
    BEFORE_IMPRESSION,
    NEVER_SHOWN,
    OUTSIDE_WINDOW,
    UNKNOWN_LIST,
    find_candidates,
    pair_codes,
    rows_of_pairs,
)
from .impression_rows import (
    SOON,
    EventRows,
    ImpressionRows,
    LogRows,
    Rules,
    attribute_events,
    lists_of_events,
)
from .times import TICKS_PER_SECOND, Clock

# ------------------------------------------------------------------------------------------
# Findings of `check_log` about clocks: two that differ by some hours, and times that have nothing
# in common.


# So many events are compared with their impressions to find out whether two clocks differ by some
# hours.
SAMPLE = 20_000
# Offsets between time zones, in half hours.
OFFSETS = range(-28, 29)
# Two clocks differ if after a shift by some offset at least ENOUGH events follow soon, which must
# be at least the share SHARE_SOON of the events, and TIMES_CHANCE as many as without a shift.
# Purchases that come hours later have no common offset, so they do not count.
ENOUGH, SHARE_SOON, TIMES_CHANCE = 10, 0.5, 20


# The arguments of `Findings.add`: code, finding, severity, how many of how many, examples, effect.
OddRow = tuple[str, str, Severity, Any, Any, Any, str]


def odd_clocks(rows: ImpressionRows, rules: Rules) -> Iterator[OddRow]:
    """Yield events that follow their impressions soon only after a shift by some hours, as in two
    time zones.

    Also events all of which are farther from the log than it is long, and than a day and the
    window, before it or after it, as when seconds were read as milliseconds.
    """
    log = rows.log
    clock = rows.clock
    if log.time is None:
        return
    first, last = (float(edge) for edge in (log.time.min(), log.time.max()))
    day = 86_400 * (clock.second or 0)
    long = max(last - first, day, clock.span(rules.window, "window") or 1.0)
    some_events = [events for events in rows.events if len(events.moments.time)]
    for events in some_events:
        time = events.moments.time
        after = float(time.min()) > last + long
        before = float(time.max()) < first - long
        yield (
            "times_apart",
            "times that have nothing in common",
            "error",
            len(time) * (after or before),
            len(time),
            f"all {events.name} are long {'after' if after else 'before'} the log",
            "one of the two has another unit or another beginning, such as seconds that were "
            "read as milliseconds",
        )
    for events in some_events if not clock.is_number else ():
        # Count for each offset, in half hours, the events that soon follow an impression of their
        # item after that shift, of those that are about an item that their user was shown.
        n = len(events.moments.time)
        second = TICKS_PER_SECOND[clock.unit]
        some = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
        sample = events.moments.take(some)
        pairs = distinct(pair_codes(sample.user, sample.item, log.n_items))
        near = log.moments.take(rows_of_pairs(log.user, log.item, pairs, log.n_items))
        n_shown = np.count_nonzero(find_candidates(near, sample, None).outcome != NEVER_SHOWN)
        soon = {}
        for offset in OFFSETS:
            shifted = sample._replace(time=sample.time + offset * 1800 * second)
            outcome = find_candidates(near, shifted, SOON * second).outcome
            soon[offset] = int((outcome == ATTRIBUTED).sum())
        best = max(soon, key=lambda offset: (soon[offset], -abs(offset)))
        if best and soon[best] >= max(ENOUGH, SHARE_SOON * n_shown, TIMES_CHANCE * soon[0]):
            side = "behind" if best > 0 else "ahead of"
            yield (
                "two_clocks",
                "clocks in two zones",
                "warning",
                soon[best],
                n_shown,
                f"{events.name} {abs(best) / 2:g} h {side} the log",
                "one of the two frames is in another time zone; give both their zone with "
                "tz_localize",
            )


# ------------------------------------------------------------------------------------------
# Findings about clicks and purchases: without an impression, written twice, refunds.
#
# `check_log` lists them all. `from_impressions` counts two of them and warns: rows that were
# written twice, and events that come just before their impression.


# Click rates are compared with those of the other users, of whom the 5 % with the highest are left
# out, so that programs do not hide each other: a user must be beyond twice their rate and beyond 5
# standard deviations of the users' own rates (on the scale of the logit), with p < 0.01 after
# Holm's correction.
FEWEST, USUAL_SHARE, TIMES_USUAL, DEVIATIONS, LEVEL = 20, 0.95, 2.0, 5.0, 0.01

# What copies do: those of an event, and those of an impression.
WHAT_COPIES_DO = (
    "each copy counts, also in what was paid",
    "one impression stands for all copies",
)


def odd_events(
    rows: ImpressionRows, events: EventRows, rules: Rules, whole: bool
) -> Iterator[OddRow]:
    """Yield events that belong to no impression, by the reason; events that belong to the
    impression of another list than the one that they name, by time; and prices below 0, such as
    refunds."""
    log = rows.log
    what = events.name
    n = len(events.frame)

    def odd(code: str, finding: str, some: Any, of: int, names: list[str], effect: str) -> OddRow:
        first = row_objects(events.frame[names].take(some[:3]))
        return code, finding, "warning", len(some), of, first, effect

    [lists] = lists_of_events(log, [events])
    followed, _, outcome, ahead = attribute_events(rows, events, lists, rules)
    # Quantiles of a part of the users are not those of all.
    skew = words_of_skew(skew_of(ahead, rows.clock) if whole else {})
    names = [rules.user_col, rules.item_col, *as_columns(rules.time_col)]
    for reason, code, finding, effect in (
        (
            NEVER_SHOWN,
            "never_shown",
            f"{what} without an impression",
            'they belong to no list; ⟦+unattributed="true"⟧ keeps them in true, so that recall '
            "counts them",
        ),
        (
            BEFORE_IMPRESSION,
            "shown_later",
            f"impressions after the {what}",
            f"all impressions of the item came later, so nothing is attributed; {skew}",
        ),
        (
            OUTSIDE_WINDOW,
            "outside_window",
            f"{what} after the window",
            "nothing is attributed; a longer ⟦+window=⟧ would",
        ),
        (
            UNKNOWN_LIST,
            "unknown_list",
            f"{what} that name an unknown list",
            'they belong to no list of the log; ⟦+named_lists="none"⟧ attributes by time',
        ),
    ):
        yield odd(code, finding, np.flatnonzero(outcome == reason), n, names, effect)
    lists[outcome == UNKNOWN_LIST] = -1
    if (lists >= 0).any():
        window = rows.clock.span(rules.window, "window")
        by_time = find_candidates(log.moments, events.moments, window)
        named = np.flatnonzero((by_time.outcome == ATTRIBUTED) & (lists >= 0))
        wrong = named[log.lists.code[by_time.row[by_time.high[named] - 1]] != lists[named]]
        effect = (
            'they go by time, and the last impression (⟦attribution="last"⟧) is in another list '
            'than the one that they name; ⟦+named_lists="all"⟧ attributes them to the list that '
            "they name"
        )
        if (followed >= 0).any():
            effect = "they belong to the list that they name; by time alone they would belong to "
            effect += "another one"
        finding = f"{what} that name another list"
        yield odd("another_list", finding, wrong, len(named), names, effect)
    if events.paid is not None:
        effect = (
            "a refund lowers what its impression brought in, and metrics of money refuse a "
            "negative value; give refunds to from_impressions as a frame of their own (refunds=), "
            "which takes out what they cancel"
        )
        below = np.flatnonzero(events.paid < 0)
        names = as_columns(rules.value_col)
        yield odd("negative_prices", "prices below 0", below, n, names, effect)


def skew_of(ahead: Floats, clock: Clock) -> dict[str, Any]:
    """Return how far events came before their impression, as quantiles, and the `clock_skew` that
    takes in 99 % of them.

    `farther` are the events of the next SOON seconds. Where clocks are right, users meet an item
    that they found by themselves at any later time, so that these are about as many.
    """
    near = ahead if clock.second is None else ahead[ahead <= SOON]
    if not len(near):
        return {}
    quantiles = np.quantile(near, [0.5, 0.9, 0.99], method="inverted_cdf")
    half, most, nearly_all = (np.ceil(quantiles * 1000 - 1e-6) / 1000).tolist()
    skew = nearly_all * (clock.second or 1) if clock.is_number else f"{nearly_all:.12g}s"
    return {
        "events": len(near),
        "farther": len(ahead) - len(near),
        "half": half,
        "most": most,
        "nearly_all": nearly_all,
        "unit": "s" if clock.second else "",
        "clock_skew": skew,
    }


def skews(ahead: Mapping[str, Floats], clock: Clock) -> dict[str, dict[str, Any]]:
    """Return how far the events of each kind came before their impression, where some did."""
    found = {name: skew_of(seconds, clock) for name, seconds in ahead.items()}
    return {name: skew for name, skew in found.items() if skew}


def words_of_skew(found: Mapping[str, Any]) -> str:
    """Say by how much events came before their impression, and which tolerance for two clocks takes
    most of them in."""
    if not found:
        return "⟦+clock_skew=⟧ allows for two clocks"
    unit = found["unit"]
    limit = f" of the {found['events']:,} within {SOON} s" if unit else ""
    half, most, nearly_all = (
        f"{found[name]:.12g}{unit}" for name in ("half", "most", "nearly_all")
    )
    skew = found["clock_skew"]
    span = f'"{skew}"' if isinstance(skew, str) else f"{skew:.12g}"
    return (
        f"half{limit} came at most {half} before it, 90 % at most {most}, 99 % at most "
        f"{nearly_all}; ⟦+clock_skew={span}⟧ allows for two clocks"
    )


class Copies(NamedTuple):
    """Rows of a frame that repeat an earlier one in every column: how many, of how many, and the
    ids and times of the first three."""

    n: int
    of: int
    first: list[Any]


def logged_twice(rows: ImpressionRows, rules: Rules) -> dict[str, Copies]:
    """Count in the log, if it has times, and in its events the rows that were written twice."""
    log = rows.log
    found = {}
    names = [rules.user_col, rules.item_col, *as_columns(rules.time_col)]
    if log.time is not None:
        of_log = [rules.user_col, *rules.source_lists, rules.item_col]
        found["log"] = _repeating(log.frame, log.repeated, of_log)
    for events in rows.events:
        some = np.flatnonzero(pd.DataFrame(events.moments._asdict()).duplicated(keep=False))
        found[events.name] = _repeating(events.frame, some, names)
    return found


def _repeating(frame: pd.DataFrame, some: Integers, names: list[str]) -> Copies:
    """Find those of some rows that repeat an earlier one of them in every column."""
    rows = frame.take(some)
    try:
        again = rows.duplicated()
    except (TypeError, NotImplementedError):  # lists in cells, of Python or of Arrow
        again = rows.astype(object).astype(str).duplicated()
    copies = rows.loc[again.to_numpy(), names]
    return Copies(len(copies), len(frame), row_objects(copies[:3]))


def odd_click_rates(log: LogRows, clicks: EventRows, name: str) -> Iterator[OddRow]:
    """Yield users who click far more often than all others, which their number of impressions
    cannot explain."""
    n_users = max(log.user.max(initial=-1), clicks.moments.user.max(initial=-1)) + 1
    shown = np.bincount(log.user, minlength=n_users)
    clicked = np.minimum(np.bincount(clicks.moments.user, minlength=n_users), shown)
    user = np.flatnonzero(shown)
    n = shown[user]
    rate = clicked[user] / shown[user]
    # Nobody counts for more than the busiest tenth does.
    weight = np.minimum(n, np.quantile(n, 0.9))
    usual = np.average(rate, weights=weight)
    if len(user) < FEWEST or not 0 < usual < 1:
        return
    z = (rate - usual) * np.sqrt(n)
    rest = z <= np.quantile(z, USUAL_SHARE)
    usual = np.average(rate[rest], weights=weight[rest])
    if not 0 < usual < 1:
        return
    chance = usual * (1 - usual)
    own = np.average((rate[rest] - usual) ** 2 - chance / n[rest], weights=weight[rest])
    high = np.log(usual / (1 - usual)) + DEVIATIONS * np.sqrt(max(own, 0.0)) / chance
    limit = max(min(TIMES_USUAL * usual, 0.99), 1 / (1 + np.exp(-high)))
    # Chernoff's bound of the binomial tail: exp(-n * divergence of the rate from the limit).
    with undefined_is_nan():
        divergence = rate * np.log(rate / limit) + np.nan_to_num(
            (1 - rate) * np.log((1 - rate) / (1 - limit))
        )
    p = np.where(rate > limit, np.exp(-n * np.nan_to_num(divergence)), 1.0)
    odd = np.flatnonzero(adjust(p, "holm") < LEVEL)
    odd = odd[np.argsort(p[odd], kind="stable")]
    labels = log.frame[name].take(first_rows(log.user, n_users)[user[odd[:5]]]).tolist()
    rates = zip(labels, rate[odd], n[odd], strict=False)
    yield (
        "implausible_clicks",
        "users with implausible click rates",
        "warning",
        len(odd),
        len(user),
        ", ".join(f"{label!r}: {own:.0%} of {shown:,}" for label, own, shown in rates),
        f"other users click on {usual:.1%} of their impressions; programs do not click like "
        "people, and ten can decide an experiment: leave such users out",
    )
