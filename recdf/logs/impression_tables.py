"""Make the two tables from rows and rules: the events of each impression, and the events without an
impression.

Contract: everything before the last step is arrays with one entry per row of the log. The last step
takes the labels from the frames, in the order of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..errors import DataError
from ..inputs.frames import read_values
from ..inputs.sorting import dense_codes, distinct, run_heads, stable_order
from .attribution import (
    Outcome,
    Ranking,
    TimedPairs,
    bisect,
    give_credit,
    rank_lists,
    rows_of_pairs,
    standing_rows,
)
from .event_checks import Copies, ahead_of_impression, logged_twice
from .impression_rows import (
    EventRows,
    ImpressionRows,
    LogRows,
    Rules,
    candidates_by_list,
    lists_of_events,
    without_refunded,
)
from .times import Clock

CLICKS, PURCHASES, VALUE = "clicks", "purchases", "value"
SHOWN, CLICKED, BOUGHT = 0, 1, 2


@dataclass(frozen=True)
class Response:
    """What users did with each row of the log, or with each row that is added to `true`.

    `depth` is SHOWN, CLICKED or BOUGHT, the deepest event of the row. `sums` are CLICKS and
    PURCHASES, sums of shares of events, and VALUE, the sum of what was paid, as far as the inputs
    have their data.
    """

    depth: np.ndarray
    sums: dict[str, np.ndarray]

    def settled(self, stays: np.ndarray, moved: np.ndarray, standing: np.ndarray) -> Response:
        """Return the response of the rows that stay, after adding that of each `moved` row to its
        `standing` row."""
        place = np.searchsorted(np.flatnonzero(stays), standing)
        found = Response(self.depth[stays], {name: part[stays] for name, part in self.sums.items()})
        np.maximum.at(found.depth, place, self.depth[moved])
        for name, part in self.sums.items():
            np.add.at(found.sums[name], place, part[moved])
        return found

    def gathered(self, place: np.ndarray, n: int) -> Response:
        """Combine these rows into `n` rows, each at its `place`: take the deepest event, and add up
        the rest."""
        depth = np.zeros(n, np.int8)
        np.maximum.at(depth, place, self.depth)
        sums = {
            name: np.bincount(place, weights=part, minlength=n).astype(np.float64, copy=False)
            for name, part in self.sums.items()
        }
        return Response(depth, sums)

    def gains(self, rules: Rules) -> np.ndarray:
        """Return the relevance of each row."""
        gain = np.full(len(self.depth), rules.relevance["shown"])
        for depth, name in ((CLICKED, "clicked"), (BOUGHT, "bought")):
            gain[self.depth == depth] = rules.relevance[name]
        return gain

    def columns(self, rules: Rules) -> dict[str, pd.Series]:
        """Return the columns of `true` that hold the response."""
        names = {name: name for name in self.sums} | {VALUE: rules.value_col or ""}
        found = {"relevance": self.gains(rules)} | {
            names[name]: part for name, part in self.sums.items()
        }
        # A frame takes a Series without a copy, but copies an array.
        return {name: pd.Series(part, copy=False) for name, part in found.items()}


class ImpressionTables(NamedTuple):
    """The two tables, and the counts made with them."""

    true: pd.DataFrame
    pred: pd.DataFrame
    clock: Clock
    dropped: dict[str, int]
    ranking: Ranking
    n_impressions: int
    n_repeated: int
    outcomes: dict[str, dict[str, int]]
    copies: dict[str, Copies]
    ahead: dict[str, np.ndarray]


def make_tables(rows: ImpressionRows, rules: Rules) -> ImpressionTables:
    """Attribute the events, settle repeated items, rank the lists, and write `true` and `pred`."""
    log, (events, refunded) = rows.log, without_refunded(rows.events, rules)
    window = rows.clock.span(rules.window, "window")
    skew = rows.clock.span(rules.clock_skew, "clock_skew") or 0
    named = lists_of_events(log, events)
    response, outcomes, counted, ahead = _respond(
        log, events, named, rules, (window, skew), rows.clock
    )
    copies = logged_twice(rows, rules)
    added = []
    if rules.unattributed == "true":
        left = [np.flatnonzero(~outcomes[kind.name].attributed) for kind in events]
        for kind, row, lists in zip(events, left, named, strict=True):
            added.append(_unattributed(log, kind, row, lists[row], rules))
        for one in added:
            counted[one.events.name] |= one.counts
    for name, counts in refunded.items():
        counted[name] = counted.get(name, {}) | counts
    if refunded:
        counted["purchases"]["events"] += refunded["purchases"]["refunded"]
    for name in counted:
        counted[name]["logged_twice"] = copies[name].n
    more = _added_rows(log, added, response, rules)
    stays, response, n_repeated = _settle_repeats(log, response)
    ranking = rank_lists(log.lists, log.position, stays)
    rank, nothing = ranking.rank, pd.DataFrame()
    ranking = ranking._replace(rank=rank[:0])
    tables = ImpressionTables(
        nothing,
        nothing,
        rows.clock,
        rows.dropped,
        ranking,
        len(log),
        n_repeated,
        counted,
        copies,
        ahead,
    )
    frame = (
        log.frame if log.session is None else log.frame.assign(**{rules.list_cols[-1]: log.session})
    )
    del (
        rows,
        log,
        events,
        added,
    )  # Free them here: codes and times take as much memory as the tables.
    labels = _some_rows(frame, [rules.user_col, *rules.list_cols, rules.item_col], stays)
    paid = response.sums.get(VALUE)
    value = None if paid is None else pd.Series(paid, copy=False)
    pred = _pred(labels, frame, rules, stays, rank, value)
    true = labels.assign(**response.columns(rules))
    return tables._replace(
        true=true if more is None else pd.concat([true, more], ignore_index=True), pred=pred
    )


# -- what rows got


def _respond(
    log: LogRows,
    all_events: Sequence[EventRows],
    named: list[np.ndarray],
    rules: Rules,
    spans: tuple[float | None, float],
    clock: Clock,
) -> tuple[Response, dict[str, Outcome], dict[str, dict[str, int]], dict[str, np.ndarray]]:
    """Return the response of every row of the log, what became of every event, the counts of that,
    and by how many seconds events were ahead of their impression.

    `spans` are the window and the tolerance for clocks.
    """
    n = len(log)
    depth, sums, outcomes, counts, ahead = np.zeros(n, np.int8), {}, {}, {}, {}
    if log.clicks is not None:
        sums[CLICKS] = log.clicks
        depth[log.clicks > 0] = CLICKED
    for events, lists in zip(all_events, named, strict=True):
        followed = lists if rules.follows_lists(events.name) else np.full(len(lists), -1)
        whole, early = Outcome.of_none(len(lists)), []
        amount = events.kept if events.paid is None else events.paid
        for event, candidates in candidates_by_list(log, events, followed, *spans):
            early.append(ahead_of_impression(log, events, event, candidates, clock))
            credit = give_credit(
                candidates, rules.attribution, None if amount is None else amount[event]
            )
            depth[credit.row] = CLICKED if events.name == CLICKS else BOUGHT
            for name, part in ((events.name, credit.share), (VALUE, credit.value)):
                if name != VALUE or amount is not None:
                    sums.setdefault(name, np.zeros(n))[credit.row] += part
            whole.put(event, candidates.outcome)
        outcomes[events.name] = whole
        counts[events.name] = {"events": len(lists)} | {
            name: int(np.count_nonzero(flags)) for name, flags in whole._asdict().items()
        }
        counts[events.name]["by_list"] = int(np.count_nonzero(whole.attributed & (followed >= 0)))
        ahead[events.name] = np.concatenate(early)
    if rules.value_col is not None and rules.value == "shown" and PURCHASES in sums:
        bought = sums.get(VALUE, sums[PURCHASES])  # without the share that was paid back
        sums[VALUE] = read_values(log.frame, rules.value_col, "log") * bought
    return Response(depth, sums), outcomes, counts, ahead


def _settle_repeats(log: LogRows, response: Response) -> tuple[np.ndarray | None, Response, int]:
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
    return stays, response.settled(stays, repeated[moved], standing[moved]), int(moved.sum())


# -- the tables


def _some_rows(frame: pd.DataFrame, names: list[str], stays: np.ndarray | None) -> pd.DataFrame:
    """Take some columns of the rows that stay (None: all), with a new index; one column at a time
    saves memory."""
    if stays is None:
        return frame[names].reset_index(drop=True)
    n = int(np.count_nonzero(stays))
    columns = [pd.Series(frame[name].array[stays], name=name, copy=False) for name in names]
    return pd.concat(columns, axis=1) if columns else pd.DataFrame(index=pd.RangeIndex(n))


def _pred(
    labels: pd.DataFrame,
    log: pd.DataFrame,
    rules: Rules,
    stays: np.ndarray | None,
    rank: np.ndarray,
    value: pd.Series | None,
) -> pd.DataFrame:
    """Make `pred`: the log with ranks and with what was paid; its other columns are kept."""
    taken = {*labels.columns, rules.clicked_col}
    names = {name: name for name in log.columns if name not in taken}
    if rules.rank_col == "rank":
        names["rank"] = "position"
    if value is not None and rules.value_col in names:
        names[rules.value_col] = f"{rules.value_col}_shown"
    written = {"rank": pd.Series(rank.astype(np.int64), copy=False)}
    if value is not None:
        written[str(rules.value_col)] = value
    ends = list(names.values())
    clash = [name for name in ends if ends.count(name) > 1 or name in (*labels.columns, *written)]
    if clash:
        raise DataError(
            f"log has a column {clash[0]!r}, which from_impressions writes; rename it in the log"
        )
    rest = _some_rows(log, list(names), stays).set_axis(ends, axis=1)
    return pd.concat([labels.assign(**written), rest], axis=1)


# -- events without an impression


@dataclass(frozen=True)
class _Added:
    """Events without an impression that stay in `true`: their rows, their lists, their response and
    their counts.

    `log_row` is a row of the log that has the labels of the event's list; -1 where the event names
    its list itself.
    """

    events: EventRows
    row: np.ndarray
    lists: np.ndarray
    log_row: np.ndarray
    response: Response
    counts: dict[str, int]


def _unattributed(
    log: LogRows, events: EventRows, row: np.ndarray, lists: np.ndarray, rules: Rules
) -> _Added:
    """Give each event without an impression a list; `row` are these events, and `lists` the lists
    that they name.

    This is the list that the event names itself, or else the last list of its user that began at or
    before it, or else the first list of its user. An event whose user has no list cannot be placed.
    An event is left out if its list shows its item, since it would count as a hit although the
    window or the times exclude it.
    """
    log_row = np.full(len(row), -1, np.int64)
    by_time = np.flatnonzero(lists < 0)
    if len(by_time):
        some = row[by_time]
        log_row[by_time] = _current_row(log, events.moments.user[some], events.moments.time[some])
        lists[by_time] = np.append(log.lists.code, -1)[
            log_row[by_time]
        ]  # row -1 reads the last entry: no list
    placed = lists >= 0
    entries = TimedPairs(lists, events.moments.item[row], lists)
    pair = entries.pairs(slice(None), log.n_items)
    pair[~placed] = -1
    placed_pairs = distinct(pair[placed])
    shown = TimedPairs(log.lists.code, log.item, log.lists.code)
    found = distinct(shown.pairs(rows_of_pairs(shown, placed_pairs, log.n_items), log.n_items))
    in_list = np.isin(pair, found) & placed
    keep = np.flatnonzero(placed & ~in_list)
    clicked, paid = events.name == CLICKS, events.paid
    sums = {events.name: np.ones(len(keep))}
    if rules.value_col is not None and not clicked:
        sums[VALUE] = np.zeros(len(keep)) if paid is None else paid[row[keep]]
    response = Response(np.full(len(keep), CLICKED if clicked else BOUGHT, np.int8), sums)
    counts = {
        "kept_in_true": len(keep),
        "shown_in_list": int(in_list.sum()),
        "without_list": int((~placed).sum()),
    }
    return _Added(events, row[keep], lists[keep], log_row[keep], response, counts)


def _current_row(log: LogRows, user: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Return a row of each user's last list that began by a given time, else of the first list; -1
    without lists."""
    if log.time is None or not len(log):
        return np.full(len(user), -1, np.int64)
    order = stable_order([log.lists.code, log.time])
    heads = order[run_heads([log.lists.code[order]])]  # the earliest row of each list
    heads = heads[stable_order([log.user[heads], log.time[heads]])]
    owner, begin = log.user[heads], log.time[heads]
    low = np.searchsorted(owner, user, side="left")
    high = np.searchsorted(owner, user, side="right")
    last = bisect(begin, low, high, time, right=True) - 1
    place = np.maximum(last, low)
    return np.where(high > low, heads[np.minimum(place, len(heads) - 1)], -1)


def _added_rows(
    log: LogRows, added: list[_Added], response: Response, rules: Rules
) -> pd.DataFrame | None:
    """Return rows of `true` for the events without an impression, one for each (list, item); None
    if there are none."""
    added = [one for one in added if len(one.row)]
    if not added:
        return None
    lists = np.concatenate([one.lists for one in added])
    item = np.concatenate([one.events.moments.item[one.row] for one in added])
    pair, n = dense_codes([lists, item])
    first = np.full(n, len(pair), np.int64)
    np.minimum.at(first, pair, np.arange(len(pair)))
    responses = [one.response for one in added]
    sums = {
        name: np.concatenate([one.sums.get(name, np.zeros(len(one.depth))) for one in responses])
        for name in response.sums
    }
    together = Response(np.concatenate([one.depth for one in responses]), sums).gathered(pair, n)
    labels = pd.concat([_event_labels(log, one, rules) for one in added], ignore_index=True)
    order = np.argsort(first, kind="stable")
    rows = labels.take(first[order]).reset_index(drop=True)
    more = pd.DataFrame(together.columns(rules)).take(order).reset_index(drop=True)
    return pd.concat([rows, more], axis=1)


def _list_labels(log: LogRows, row: np.ndarray, rules: Rules) -> pd.DataFrame:
    """Return the labels of the lists of some rows of the log."""
    found = log.frame[list(rules.source_lists)].take(row).reset_index(drop=True)
    return found if log.session is None else found.assign(**{rules.list_cols[-1]: log.session[row]})


def _event_labels(log: LogRows, added: _Added, rules: Rules) -> pd.DataFrame:
    """Return user, list and item of events as labels; the labels of a list may come from a row of
    the log."""
    own = added.events.frame.take(added.row).reset_index(drop=True)
    found = own[[rules.user_col]]
    of_log = _list_labels(log, np.maximum(added.log_row, 0), rules) if len(log) else None
    for name in rules.list_cols:
        if name in own.columns and of_log is not None and added.events.list_keys is not None:
            values = own[name].where(added.log_row < 0, of_log[name])
            whole = pd.api.types.is_integer_dtype(
                of_log[name].dtype
            ) and pd.api.types.is_float_dtype(values.dtype)
            if whole:  # Events that name no list have a null there, which made the integers floats.
                values = values.astype(of_log[name].dtype)
        else:
            values = own[name] if of_log is None else of_log[name]
        found = found.assign(**{name: values})
    return found.assign(**{rules.item_col: own[rules.item_col]})
