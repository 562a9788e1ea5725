"""Refunds: which purchases they cancel, wholly or in part.

Contract: a refund cancels purchases of its own user and item (and order, where orders are named)
that were made at or before it: the last one that is not yet refunded, and with what remains of its
amount the one before that. Refunds go in the order of time. Without amounts, each refund cancels
one whole purchase.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from ..errors import DataError, OptionError
from ..inputs.frames import column, read_values
from ..inputs.sorting import dense_codes, run_heads, stable_order
from .attribution import TimedPairs, bisect
from .impression_rows import EventRows, Rules, frame_codes

# What is left of an amount, as a share of it, if it is only a rounding error.
ROUNDING = 1e-9


def check_refund_rules(rules: Rules, events: Collection[str]) -> None:
    """Refuse refunds without purchases, and orders without refunds."""
    if "refunds" in events and "purchases" not in events:
        raise OptionError("⟦refunds=⟧ cancel purchases; pass ⟦+purchases=⟧")
    if rules.order_col is not None and "refunds" not in events:
        raise OptionError(
            f"⟦order_col={rules.order_col!r}⟧ matches refunds to purchases; pass ⟦+refunds=⟧"
        )


def without_refunded(
    all_events: Sequence[EventRows], rules: Rules
) -> tuple[list[EventRows], dict[str, dict[str, int]]]:
    """Return the events without refunds and without what they cancel, and counts of purchases and
    refunds."""
    by_name = {events.name: events for events in all_events}
    if "refunds" not in by_name:
        return list(all_events), {}
    refunds, purchases = by_name.pop("refunds"), by_name["purchases"]
    price, amount = (_amounts(events, purchases, refunds, rules) for events in (purchases, refunds))
    times = purchases.moments.time, refunds.moments.time
    left, rest, met = match_refunds(
        _refund_codes(purchases, refunds, rules.order_col), times, price, amount
    )
    gone, reduced = (left <= 0) & (price > 0), (left > 0) & (left < price)
    by_name["purchases"] = replace(
        purchases,
        frame=purchases.frame[~gone].reset_index(drop=True),
        paid=None if purchases.paid is None else np.where(reduced, left, purchases.paid)[~gone],
        kept=np.divide(left, price, out=np.ones_like(price), where=reduced)[~gone],
        moments=TimedPairs(*(part[~gone] for part in purchases.moments)),
        list_keys=None
        if purchases.list_keys is None
        else [key[~gone] for key in purchases.list_keys],
    )
    counts = {
        "purchases": {"refunded": int(gone.sum()), "refunded_in_part": int(reduced.sum())},
        "refunds": {
            "events": len(met),
            "matched": int(met.sum()),
            "without_purchase": int((~met).sum()),
            "beyond_price": int((met & (rest > 0)).sum()),
        },
    }
    return list(by_name.values()), counts


def _amounts(
    events: EventRows, purchases: EventRows, refunds: EventRows, rules: Rules
) -> np.ndarray:
    """Return what was paid or paid back; 1 each if refunds or purchases have no amounts."""
    name = rules.value_col
    if name is None or not all(name in one.frame.columns for one in (purchases, refunds)):
        return np.ones(len(events.frame))
    amount = read_values(events.frame, name, events.name)
    if events is refunds and (amount < 0).any():
        raise DataError(
            f"refunds[{name!r}] holds {int((amount < 0).sum()):,} values below 0; expected what "
            f"was paid back, such as refunds.assign({name}=refunds[{name!r}].abs())"
        )
    return amount


def _refund_codes(
    purchases: EventRows, refunds: EventRows, order_col: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return one code for user, item and order of each purchase and of each refund."""
    keys = [
        np.concatenate(both)
        for both in list(zip(purchases.moments, refunds.moments, strict=True))[:2]
    ]
    if order_col is not None:
        frames = {events.name: events.frame for events in (purchases, refunds)}
        for name, frame in frames.items():
            column(frame, order_col, name)
        keys.append(np.concatenate(list(frame_codes(frames, list(frames), order_col)[0].values())))
    code, n = dense_codes(keys)[0], len(purchases.frame)
    return code[:n], code[n:]


def match_refunds(
    pairs: tuple[np.ndarray, np.ndarray],
    times: tuple[np.ndarray, np.ndarray],
    price: np.ndarray,
    amount: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what is left of each purchase and of each refund, and which refunds cancel anything.

    Each step takes one refund of every pair of user and item at once, and compares it with one
    purchase.
    """
    order, by_time = (stable_order([pair, time]) for pair, time in zip(pairs, times, strict=True))
    pair, of = pairs[0][order], pairs[1][by_time]
    left, rest, met = price[order], amount[by_time], np.zeros(len(amount), bool)
    least, least_rest = left * ROUNDING, rest * ROUNDING
    low, high = np.searchsorted(pair, of), np.searchsorted(pair, of, side="right")
    last = bisect(times[0][order], low, high, times[1][by_time], right=True) - 1
    at, below = (
        last.copy(),
        np.arange(len(pair)) - 1,
    )  # of a purchase without a rest, the next one to try
    now = run_heads([of])
    end = np.append(now[1:], len(of))
    while len(now):
        there = at[now] >= low[now]
        refund = now[there]
        refund = refund[left[at[refund]] > 0]
        part = np.minimum(rest[refund], left[at[refund]])
        met[refund] = True
        for values, some, small in ((left, at[refund], least), (rest, refund, least_rest)):
            values[some] -= part
            values[some[values[some] <= small[some]]] = 0
        done = ~there | (met[now] & (rest[now] <= 0))
        jump = now[done & (at[now] < last[now]) & (last[now] >= low[now])]
        below[last[jump]] = at[jump]
        at[now[~done]] = below[at[now[~done]]]
        now = now + done
        now, end = now[now < end], end[now < end]
    found = np.empty_like(left), np.empty_like(rest), np.empty_like(met)
    found[0][order], found[1][by_time], found[2][by_time] = left, rest, met
    return found
