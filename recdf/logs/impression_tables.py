"""Make the two tables from rows and rules: the events of each impression, and the events without an
impression.

Contract: everything before the last step is arrays with one entry per row of the log. The last step
takes the labels from the frames, in the order of their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from ..errors import DataError
from ..inputs.frames import read_values
from ..inputs.ids import with_alike_ids
from ..inputs.sorting import distinct, run_heads, stable_order
from ..stats.numbers import Floats, Integers, Mask
from .attribution import (
    ATTRIBUTED,
    OUTCOMES,
    Ranking,
    bisect,
    give_credit,
    pair_codes,
    rank_lists,
    rows_of_pairs,
    standing_rows,
)
from .event_checks import Copies, logged_twice, skews
from .impression_rows import (
    SESSION,
    EventRows,
    ImpressionRows,
    LogRows,
    Rules,
    attribute_events,
    lists_of_events,
    without_refunded,
)

CLICKS, PURCHASES, VALUE = "clicks", "purchases", "value"
SPANS = ("window", "clock_skew", "session_gap")


# What users did with each row of the log, or with each row that is added to `true`: CLICKS and
# PURCHASES, sums of shares of events, and VALUE, the sum of what was paid, as far as the inputs
# have their data.
Response = dict[str, Floats]


def _response_columns(response: Response, rules: Rules, n: int) -> dict[str, Series]:
    """Return the columns of `true` that hold the response of n rows. The deepest event gives the
    gain."""
    gain = np.full(n, rules.relevance["shown"])
    for name, level in ((CLICKS, "clicked"), (PURCHASES, "bought")):
        if name in response:
            gain = np.where(response[name] > 0, rules.relevance[level], gain)
    found = {"relevance": gain}
    for name, part in response.items():
        found[str(rules.value_col) if name == VALUE else name] = part
    # A frame takes a Series without a copy, but copies an array.
    return {name: Series(part, copy=False) for name, part in found.items()}


def make_tables(
    rows: ImpressionRows, rules: Rules
) -> tuple[DataFrame, DataFrame, dict[str, Any], dict[str, Floats]]:
    """Attribute the events, settle repeated items, rank the lists, and write `true` and `pred`,
    with their record and by how many seconds events were ahead of their impression."""
    log, (events, refunded) = rows.log, without_refunded(rows.events, rules)
    named = lists_of_events(log, events)
    response, outcomes, counted, ahead = _respond(rows, events, named, rules)
    copies = logged_twice(rows, rules)
    added = []
    if rules.unattributed == "true":
        for kind, lists in zip(events, named, strict=True):
            left = np.flatnonzero(outcomes[kind.name] != ATTRIBUTED)
            more, counts = _unattributed(log, kind, left, lists[left], rules)
            counted[kind.name] |= counts
            added += [more] if len(more[0]) else []
    for name, counts in refunded.items():
        counted[name] = counted.get(name, {}) | counts
    if refunded:
        counted["purchases"]["events"] += refunded["purchases"]["refunded"]
    for name in counted:
        counted[name]["logged_twice"] = copies[name].n
    more_rows, ids = [], (rules.user_col, rules.item_col)
    if added:
        # One row for each (list, item) of the events without an impression.
        of_labels, of_events = zip(*added, strict=True)
        labels = pd.concat(with_alike_ids(of_labels, ids, "events"), ignore_index=True)
        own = pd.concat(of_events, ignore_index=True).fillna(0.0)
        sums = own.groupby(["list", "item"], sort=False).sum()
        together = {
            name: sums[name].to_numpy(float) if name in sums else np.zeros(len(sums))
            for name in response
        }
        first = labels[~own.duplicated(["list", "item"])].reset_index(drop=True)
        more_rows = [first.assign(**_response_columns(together, rules, len(first)))]
    stays, response, counted["repeated"] = _settle_repeats(log, response)
    ranking = rank_lists(log.lists, log.position, stays)
    spec = _spec(rows, ranking, counted, copies, rules)
    rank = ranking.rank
    spec["ahead"] = skews(ahead, rows.clock)
    frame = (
        log.frame if log.session is None else log.frame.assign(**{rules.list_cols[-1]: log.session})
    )
    # Free them here: codes and times take as much memory as the tables.
    del rows, log, events, added, ranking
    labels = _some_rows(frame, [rules.user_col, *rules.list_cols, rules.item_col], stays)
    pred = _pred(labels, frame, rules, stays, rank, response.get(VALUE))
    true = labels.assign(**_response_columns(response, rules, len(labels)))
    if more_rows:
        true = pd.concat(with_alike_ids([true, *more_rows], ids, "true"), ignore_index=True)
    return true, pred, spec, ahead


def _spec(
    rows: ImpressionRows,
    ranking: Ranking,
    counted: Mapping[str, Any],
    copies: Mapping[str, Copies],
    rules: Rules,
) -> dict[str, Any]:
    """Return the rules and the counts, in types that JSON has."""
    given = asdict(rules)
    del given["rank_col"], given["null_keys"]
    for name in SPANS:
        if not isinstance(given[name], int | float | None):
            given[name] = str(given[name])
    options = {
        "user_col": [rules.user_col, *rules.list_cols],
        "item_col": rules.item_col,
        "rank_col": "rank",
        "relevance_col": "relevance",
    }
    options |= {} if rules.value_col is None else {"value_col": str(rules.value_col)}
    return {
        **given,
        "options": options,
        "list_cols": list(rules.list_cols),
        "clock": asdict(rows.clock) if rules.time_col else None,
        "positions": {
            "column": "position" if rules.rank_col == "rank" else rules.rank_col,
            "start": ranking.start,
            "lists_with_holes": ranking.lists_with_holes,
            "lists_with_ties": ranking.lists_with_ties,
        },
        "first_copies": {name: [*map(repr, own.first)] for name, own in copies.items() if own.n},
        "counts": {
            "impressions": len(rows.log),
            "logged_twice": copies["log"].n if "log" in copies else 0,
            "lists": ranking.n_lists,
            "null_rows": {name: n for name, n in rows.dropped.items() if n},
            **counted,
        },
    }


# -- what rows got


def _respond(
    rows: ImpressionRows, all_events: Sequence[EventRows], named: list[Integers], rules: Rules
) -> tuple[Response, dict[str, Integers], dict[str, Any], dict[str, Floats]]:
    """Return the response of every row of the log, what became of every event, the counts of that,
    and by how many seconds events were ahead of their impression."""
    log = rows.log
    n = len(rows.log)
    sums, outcomes, counts, ahead = {}, {}, {}, {}
    if log.clicks is not None:
        sums[CLICKS] = log.clicks
    for events, lists in zip(all_events, named, strict=True):
        followed, parts, outcome, early = attribute_events(rows, events, lists, rules)
        amount = events.kept if events.paid is None else events.paid
        for event, candidates in parts:
            worth = None if amount is None else amount[event]
            credit = give_credit(candidates, rules.attribution, worth)
            for name, part in ((events.name, credit.share), (VALUE, credit.value)):
                if name != VALUE or amount is not None:
                    sums.setdefault(name, np.zeros(n))[credit.row] += part
        outcomes[events.name], ahead[events.name] = outcome, early
        of_each = np.bincount(outcome, minlength=len(OUTCOMES)).tolist()
        by_list = np.count_nonzero((outcome == ATTRIBUTED) & (followed >= 0))
        counts[events.name] = {
            "events": len(lists),
            **dict(zip(OUTCOMES, of_each, strict=True)),
            "by_list": int(by_list),
        }
    if rules.value_col is not None and rules.value == "shown" and PURCHASES in sums:
        bought = sums.get(VALUE, sums[PURCHASES])  # without the share that was paid back
        sums[VALUE] = read_values(log.frame, rules.value_col, "log") * bought
    return sums, outcomes, counts, ahead


def _settle_repeats(log: LogRows, response: Response) -> tuple[Mask | None, Response, int]:
    """Return which rows stay (None: all), their response, and how many rows repeat an item of their
    list. Of these the first stays."""
    repeated = log.repeated
    if not len(repeated):
        return None, response, 0
    order = [key[repeated] for key in (log.time, log.position) if key is not None]
    standing = standing_rows(repeated, log.lists.code, log.item, [*order, repeated])
    moved = standing != repeated
    stays = np.ones(len(log), bool)
    stays[repeated[moved]] = False
    place = np.searchsorted(np.flatnonzero(stays), standing[moved])
    sums = {name: part[stays] for name, part in response.items()}
    for name, part in response.items():
        np.add.at(sums[name], place, part[repeated[moved]])
    return stays, sums, int(moved.sum())


# -- the tables


def _some_rows(frame: DataFrame, names: list[str], stays: Mask | None) -> DataFrame:
    """Take some columns of the rows that stay (None: all), with a new index."""
    rows = slice(None) if stays is None else stays
    return frame.loc[rows, names].reset_index(drop=True)


def _pred(
    labels: DataFrame,
    log: DataFrame,
    rules: Rules,
    stays: Mask | None,
    rank: Integers,
    value: Floats | None,
) -> DataFrame:
    """Make `pred`: the log with ranks and with what was paid; its other columns are kept."""
    taken = {*labels.columns, rules.clicked_col}
    names = {name: name for name in log.columns if name not in taken}
    written = {"rank": Series(rank, copy=False)}
    if rules.rank_col == "rank":
        names["rank"] = "position"
    if value is not None:
        written[str(rules.value_col)] = Series(value, copy=False)
        if rules.value_col in names:
            names[rules.value_col] = f"{rules.value_col}_shown"
    ends = list(names.values())
    clash = [name for name in ends if ends.count(name) > 1 or name in (*labels.columns, *written)]
    if clash:
        raise DataError(
            f"log has a column {clash[0]!r}, which from_impressions writes; rename it in the log"
        )
    rest = _some_rows(log, list(names), stays).set_axis(ends, axis=1)
    return pd.concat([labels.assign(**written), rest], axis=1)


# -- events without an impression


# Events without an impression that stay in `true`, one row each: the labels of user, list and item;
# the codes of list and item with the response.
Added = tuple[DataFrame, DataFrame]


def _unattributed(
    log: LogRows, events: EventRows, row: Integers, lists: Integers, rules: Rules
) -> tuple[Added, dict[str, int]]:
    """Give each event without an impression a list; `row` are these events, and `lists` the lists
    that they name. Return those that stay in `true`, and counts.

    This is the list that the event names itself, or else the last list of its user that began at or
    before it, or else the first list of its user. An event whose user has no list cannot be placed.
    An event is left out if its list shows its item, since it would count as a hit although the
    window or the times exclude it.
    """
    log_row = np.full(len(row), -1, np.int64)  # a row that has the labels of the list
    by_time = np.flatnonzero(lists < 0)
    if len(by_time) and log.time is not None and len(log):
        user, _, time = (part[row[by_time]] for part in events.moments)
        order = stable_order([log.lists.code, log.time])
        heads = order[run_heads([log.lists.code[order]])]  # the earliest row of each list
        heads = heads[stable_order([log.user[heads], log.time[heads]])]
        owner = log.user[heads]
        low, high = (np.searchsorted(owner, user, side) for side in ("left", "right"))
        last = bisect(log.time[heads], low, high, time, right=True) - 1
        found = heads[np.minimum(np.maximum(last, low), len(heads) - 1)]
        log_row[by_time] = np.where(high > low, found, -1)
        # Row -1 reads the last entry: no list.
        lists[by_time] = np.append(log.lists.code, -1)[log_row[by_time]]
    placed = lists >= 0
    item = events.moments.item[row]
    pair = pair_codes(lists, item, log.n_items)
    same = rows_of_pairs(log.lists.code, log.item, distinct(pair[placed]), log.n_items)
    shown = pair_codes(log.lists.code[same], log.item[same], log.n_items)
    in_list = np.isin(pair, shown) & placed
    keep = np.flatnonzero(placed & ~in_list)
    own = DataFrame({"list": lists[keep], "item": item[keep], events.name: 1.0})
    if events.paid is not None:
        own[VALUE] = events.paid[row[keep]]
    counts = {
        "kept_in_true": len(keep),
        "shown_in_list": int(in_list.sum()),
        "without_list": int((~placed).sum()),
    }
    labels = _event_labels(log, events, row[keep], log_row[keep], rules)
    return (labels, own), counts


def _event_labels(
    log: LogRows, events: EventRows, row: Integers, log_row: Integers, rules: Rules
) -> DataFrame:
    """Return user, list and item of some events as labels; the labels of a list come from a row of
    the log where the event does not name it (`log_row` is -1 where it does)."""
    own = events.frame.take(row).reset_index(drop=True)
    found = own[[rules.user_col]].copy()
    of_log = log.frame.take(np.maximum(log_row, 0) if len(log) else row[:0])
    for name in rules.list_cols:
        there = of_log[name] if log.session is None or name != SESSION else log.session[log_row]
        there = Series(there).reset_index(drop=True)
        if name not in own.columns or events.list_keys is None:
            found[name] = there
        elif not len(log):
            found[name] = own[name]
        else:
            values = own[name].where(log_row < 0, there)
            whole = pd.api.types.is_integer_dtype(there.dtype)
            if whole and pd.api.types.is_float_dtype(values.dtype):
                # Events that name no list have a null there, which made the integers floats.
                values = values.astype(there.dtype)
            found[name] = values
    found[rules.item_col] = own[rules.item_col]
    return found
