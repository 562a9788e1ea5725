"""Read the rows of a log of impressions and of its events once, as codes, times and positions;
events that name their list, and refunds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..errors import ColumnError, DataError, NullKeyError, OptionError, examples
from ..inputs.codes import check_kinds, encode, first_rows
from ..inputs.frames import RowsInParts, as_frame, column, float_column, read_numbers, read_values
from ..inputs.ids import alike_ids, read_ids
from ..inputs.options import ByName, as_columns
from ..inputs.sorting import cut_like, dense_codes, distinct, stable_order
from ..stats.numbers import Floats, Integers, Mask
from .attribution import (
    BEFORE_IMPRESSION,
    UNKNOWN_LIST,
    Attribution,
    Candidates,
    ListRule,
    TimedPairs,
    arrange_lists,
    find_candidates,
    repeated_rows,
    sessions_by_gap,
)
from .times import Clock, read_times

# ------------------------------------------------------------------------------------------
# Read the rows of a log of impressions and of its events once, as codes, times and positions.
#
# Contract: `read_log_rows` checks every column that the arguments of `from_impressions` name.
# Rows with a null in one of them are refused or dropped, so that there is no null afterwards.


SESSION = "session_id"
# What to do where a column of the log with its usual name is missing.
HINTS = {
    SESSION: (
        "name the columns of a list in ⟦+list_cols=⟧, make sessions with "
        '⟦+session_gap="30min"⟧, or pass ⟦+list_cols=()⟧ for one list per user'
    ),
    "position": "name it in ⟦+rank_col=⟧, or pass ⟦+rank_col=None⟧ to rank by time",
}


@dataclass(frozen=True)
class Rules:
    """The checked arguments of `from_impressions`; the names are those of its parameters."""

    user_col: str
    item_col: str
    rank_col: str | None
    list_cols: tuple[str, ...]
    time_col: str | None
    value_col: str | None
    window: Any
    session_gap: Any
    named_lists: Literal["clicks", "all", "none"]
    order_col: str | None
    device_col: str | None
    clicked_col: str | None = None
    attribution: Attribution = "last"
    relevance: Mapping[str, float] = field(default_factory=dict)
    unattributed: Literal["count", "true"] = "count"
    clock_skew: Any = None
    value: Literal["paid", "shown"] = "paid"
    null_keys: Literal["raise", "drop"] = "drop"

    def follows_lists(self, role: str) -> bool:
        """Say whether events of this kind that name a list belong to it."""
        return (
            bool(self.list_cols) and self.session_gap is None and self.named_lists in (role, "all")
        )

    def key_columns(self, role: str) -> list[str]:
        """Columns of a frame in which nulls are not allowed."""
        lists, rank = (self.source_lists, self.rank_col) if role == "log" else ((), None)
        names = [self.user_col, *lists, self.item_col, rank, self.time_col]
        return [name for name in names if name is not None]

    @property
    def source_lists(self) -> tuple[str, ...]:
        """Columns of the list key that the log already has."""
        if self.session_gap is None:
            return self.list_cols
        return tuple(name for name in self.list_cols if name != SESSION)


class LogInParts(RowsInParts):
    """A log with its events whose users are in several parts: files, or frames of an engine.

    It stands in place of each of their frames, in `from_impressions` and in `check_log`.
    """

    def run(self, work: Callable[[ByName], Any], rules: Rules) -> Any:
        """Return the sum of what `work` makes of the frames of each part, by role. All rows of a
        user, or of a person, are in one part."""
        raise NotImplementedError


class EventRows(NamedTuple):
    """Clicks, purchases or refunds: their frame, the codes of user and item, the times, the prices
    paid, and the lists.

    `list_keys` are codes of the user and of the list columns, with -1 for a null. It is None where
    the events have no list columns. `kept` is the share of a price that was not paid back.
    """

    name: str
    frame: DataFrame
    moments: TimedPairs
    paid: Floats | None
    list_keys: list[Integers] | None
    kept: Floats | None = None


@dataclass(frozen=True)
class LogRows:
    """The log of impressions: its frame, and the codes of user, item and list, the times and the
    positions of its rows.

    `keys` are the codes that together name a list, with the user first. `session` numbers the
    sessions that gaps in time separate. `clicks` is the number of clicks from the column
    `clicked_col`. `repeated` are the rows, ascending, whose item stands in more than one row of
    their list.
    """

    frame: DataFrame
    keys: list[Integers]
    item: Integers
    n_items: int
    lists: ListRule
    time: np.ndarray | None
    position: np.ndarray | None
    session: Integers | None
    clicks: Floats | None
    repeated: Integers

    def __len__(self) -> int:
        return len(self.item)

    @property
    def user(self) -> Integers:
        return self.keys[0]

    @property
    def moments(self) -> TimedPairs:
        return TimedPairs(self.user, self.item, self.item if self.time is None else self.time)


class ImpressionRows(NamedTuple):
    """The log and the events as read, and how many rows each frame lost because of a null."""

    log: LogRows
    events: list[EventRows]
    clock: Clock
    dropped: dict[str, int]


def read_log_rows(log: Any, events: ByName, rules: Rules) -> ImpressionRows:
    """Read the log and its events (`clicks`, `purchases`, `refunds`) by the rules."""
    frames = {}
    dropped = {}
    for role, data in {"log": log, **events}.items():
        frames[role], dropped[role] = _without_nulls(raw_frame(data, role), role, rules)
    log = frames["log"]
    roles = list(frames)
    users = frame_codes(frames, roles, rules.user_col)[0]
    items, n_items = frame_codes(frames, roles, rules.item_col)
    clock = Clock("datetime", "ns")
    times = {}
    if rules.time_col is not None:
        named = [(f"{role}[{rules.time_col!r}]", frames[role][rules.time_col]) for role in roles]
        clock, found = read_times(named)
        times = {role: one.values for role, one in zip(roles, found, strict=True)}
    placed = rules.unattributed == "true" and rules.session_gap is None
    keys = {
        role: [users[role]]
        for role in roles
        if role == "log"
        or ((placed or rules.follows_lists(role)) and {*rules.list_cols} <= {*frames[role].columns})
    }
    for name in rules.source_lists:
        for role, codes in frame_codes(frames, keys, name)[0].items():
            keys[role].append(codes)
    read_events = []
    for role in roles[1:]:
        paid = None
        if role == "purchases" and rules.value_col is not None and rules.value == "paid":
            paid = read_values(frames[role], rules.value_col, role)
        moments = TimedPairs(users[role], items[role], times[role])
        read_events.append(EventRows(role, frames[role], moments, paid, keys.get(role)))
    of_list, time, session, position = keys["log"], times.get("log"), None, None
    if rules.rank_col is not None:
        where = f"log[{rules.rank_col!r}]"
        position = read_numbers(log[rules.rank_col], where)
        if np.isinf(position).any():
            raise DataError(f"{where} holds {np.isinf(position).sum():,} infinite positions")
        if position.dtype == np.uint64:
            exact = position.max(initial=0) < 2**63
            position = position.astype(np.int64 if exact else np.float64)
    gap = clock.span(rules.session_gap, "session_gap")
    if gap is not None and time is not None:
        session = sessions_by_gap(of_list, time, gap)
        of_list = [*of_list, session]
    lists = arrange_lists(of_list, position, time)
    item = items["log"]
    clicks = _read_clicked(log, rules)
    repeated = repeated_rows(lists.code, item, n_items)
    read = LogRows(log, of_list, item, n_items, lists, time, position, session, clicks, repeated)
    return ImpressionRows(read, read_events, clock, dropped)


def raw_frame(data: Any, role: str) -> DataFrame:
    if isinstance(data, Mapping):
        raise TypeError(
            f"{role} is a mapping; expected a DataFrame or an Arrow stream with one row each"
        )
    frame = as_frame(data, role)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()]
        raise ColumnError(
            f"{role} has several columns named {twice[0]!r}; expected one of each name"
        )
    return frame


def _without_nulls(frame: DataFrame, role: str, rules: Rules) -> tuple[DataFrame, int]:
    """Return the rows without a null in the columns that the rules name, and how many rows were
    dropped."""
    of_log = role == "log"
    if of_log and rules.session_gap is not None and SESSION in frame.columns:
        raise OptionError(
            f"log has a column {SESSION!r}, and session_gap makes one; leave session_gap out, or "
            "drop the column"
        )
    null = {}
    for name in rules.key_columns(role):
        hint = HINTS.get(name, "")
        if not of_log:
            hint = f'Columns are named as in the log: {role}.rename(columns={{"...": {name!r}}})'
        if hint and name not in frame.columns and len(frame.columns):
            have = ", ".join(map(repr, frame.columns))
            raise ColumnError(f"{role} has no column {name!r}; it has {have}; {hint}")
        flags = column(frame, name, role).isna().to_numpy(dtype=bool)
        if flags.any():
            null[name] = flags
    if not null:
        return frame, 0
    if rules.null_keys == "raise":
        found = ", ".join(f"{flags.sum():,} in {role}[{name!r}]" for name, flags in null.items())
        ids = {*null} - {rules.rank_col, rules.time_col}
        error, what = (NullKeyError, "ids") if ids else (DataError, "times or positions")
        raise error(f'{role} has null {what}: {found}; drop these rows or pass ⟦+null_keys="drop"⟧')
    gone = np.logical_or.reduce(list(null.values()))
    return frame[~gone].reset_index(drop=True), int(gone.sum())


def frame_codes(
    frames: Mapping[str, DataFrame], roles: Iterable[str], name: str
) -> tuple[dict[str, Integers], int]:
    """Code one id column of several frames, and return the codes and a number that they are
    below."""
    given = {role: column(frames[role], name, role) for role in roles}
    codes = encode([read_ids(ids, f"{role}[{name!r}]") for role, ids in given.items()])
    return dict(zip(roles, codes.codes, strict=True)), max(codes.n, 1)


def _read_clicked(frame: DataFrame, rules: Rules) -> Floats | None:
    """Read the number of clicks of each row from a column of bools or of numbers."""
    if rules.clicked_col is None:
        return None
    name = rules.clicked_col
    clicks = float_column(frame, name, "log")
    bad = ~np.isfinite(clicks) | (clicks < 0) | (clicks > np.floor(clicks))
    if bad.any():
        raise DataError(
            f"log[{name!r}] holds {bad.sum():,} values that are null, infinite, negative or "
            f"fractions ({examples(clicks[bad])}); expected True and False, or numbers of clicks "
            "(a probability of a click is no click); where null means no click, pass "
            f"log.fillna({{{name!r}: 0}})"
        )
    return clicks


# ------------------------------------------------------------------------------------------
# Devices to persons: whose device each row of a log is.
#
# Contract: a device that a mapping names several times is that of the person in the first row, by
# time if the mapping has times. A device that it does not name is a person of its own.


def with_persons(
    frames: Mapping[str, DataFrame],
    persons: Any,
    user_col: str,
    person_col: str,
    time_col: str | None,
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the frames with a column `person_col`, and counts of their devices, which are in
    `user_col`."""
    persons = raw_frame(persons, "persons")
    for role, frame in frames.items():
        if person_col in frame.columns:
            raise OptionError(
                f"{role} has a column {person_col!r}, which comes from ⟦persons=⟧; drop it in "
                f"{role}"
            )
    column(persons, person_col, "persons")
    if time_col in persons.columns:
        persons = in_time(persons, "persons", time_col)
    persons = persons[persons[person_col].notna()].reset_index(drop=True)
    codes, n = frame_codes({**frames, "persons": persons}, [*frames, "persons"], user_col)
    of = codes.pop("persons")
    first = first_rows(of, n + 1)
    first[n] = -1  # the entry that the code of a null, -1, reads
    label = persons[person_col]
    ids = read_ids(label, f"persons[{person_col!r}]")
    person = encode([ids]).codes[0]
    of_other = distinct(of[(of >= 0) & (person != person[first[of]])])
    seen = np.zeros(n + 1, bool)
    found = {}
    for role, frame in frames.items():
        place = first[codes[role]]
        together = label
        seen[codes[role]] = True
        own = np.flatnonzero(place < 0)
        if len(own):
            devices = frame[user_col].iloc[own]
            check_kinds([ids, read_ids(devices.dropna(), f"{role}[{user_col!r}]")])
            both = alike_ids([label, devices], f"{role}[{user_col!r}] beside persons")
            together = pd.concat(both, ignore_index=True)
            place[own] = len(label) + np.arange(len(own))
        found[role] = frame.copy(deep=False)
        found[role][person_col] = together.take(place).array
    seen[n] = False
    unknown = seen & (first < 0)
    counts = {"devices": seen, "unknown_devices": unknown, "shared_devices": of_other >= 0}
    return found, {name: int(flags.sum()) for name, flags in counts.items()}


def in_time(frame: DataFrame, role: str, name: Any) -> DataFrame:
    """Return the rows of a frame in the order of their times; those without one come last."""
    times = column(frame, name, role)
    [read] = read_times([(f"{role}[{name!r}]", times)])[1]
    return frame.iloc[np.lexsort([read.values, times.isna().to_numpy()])]


def key_of_lists(
    list_cols: Any, session_gap: Any, user_col: str, person_col: str | None
) -> tuple[str, ...]:
    """Return the columns that name a list of a user: sessions come last; those of a person have a
    device."""
    lists = tuple(as_columns(list_cols))
    if session_gap is not None:
        lists = (*(name for name in lists if name != SESSION), SESSION)
    if person_col is not None and lists:
        lists = (user_col, *(name for name in lists if name != user_col))
    return lists


def read_persons(frames: ByName, rules: Rules) -> tuple[dict[str, Any], dict[str, dict[str, int]]]:
    """Return the log and its events, with their persons if the rules have devices, and then the
    counts of devices as `persons`. `frames` has the persons, too."""
    given = dict(frames)
    persons = given.pop("persons", None)
    if rules.device_col is None and persons is None:
        return given, {}
    if rules.device_col is None or persons is None:
        raise OptionError("⟦persons=⟧ and ⟦person_col=⟧ go together; pass both, or neither")
    given = {role: raw_frame(data, role) for role, data in given.items()}
    found, counts = with_persons(given, persons, rules.device_col, rules.user_col, rules.time_col)
    return found, {"persons": counts}


# ------------------------------------------------------------------------------------------
# Events that name the list of their impression: which list it is, and the impressions that such
# an event belongs to.
#
# Contract: an event that names a list belongs to the impressions of its item in this list,
# whenever they were; the window and the tolerance for clocks are for events that name none. A
# list that the log does not have gets a code beyond its lists, so that its events belong to no
# impression.


def lists_of_events(log: LogRows, all_events: Sequence[EventRows]) -> list[Integers]:
    """Return for the events of each kind the code of the list that each names, or -1 if it names
    none.

    A list that the log has keeps its code. Other lists get new codes; a list that both a click and
    a purchase name has one code.
    """
    n_lists = int(log.lists.code.max(initial=-1)) + 1
    none = [np.full(len(events.frame), -1, np.int64) for events in all_events]
    if all(events.list_keys is None for events in all_events):
        return none
    a_row = first_rows(log.lists.code, n_lists)
    given = [[key[a_row] for key in log.keys]]
    for events, nowhere in zip(all_events, none, strict=True):
        given.append(events.list_keys or [nowhere] * len(log.keys))
    keys = [np.concatenate(parts) for parts in zip(*given, strict=True)]
    together, n = dense_codes(keys)
    # A list that the log does not have gets a number beyond its lists.
    code = np.arange(n_lists, n_lists + n)
    code[together[:n_lists]] = np.arange(n_lists)
    found = np.where(np.min(keys, axis=0) < 0, -1, code[together])
    return cut_like(found[n_lists:], none)


class Attributed(NamedTuple):
    """What becomes of the events of one kind.

    named : the code of the list that each event names and follows, -1 for none · parts : the events
    without such a list, then the others, with the impressions that they may belong to · outcome :
    of each event, by its number · ahead : by how many seconds events came before the first
    impression of their item, where they belong to none for it.
    """

    named: Integers
    parts: list[tuple[Integers, Candidates]]
    outcome: np.ndarray
    ahead: Floats


# An event that follows an impression of its item within so many seconds is taken to be caused by
# it.
SOON = 600


def attribute_events(
    rows: ImpressionRows, events: EventRows, lists: Integers, rules: Rules
) -> Attributed:
    """Find the impressions that events may belong to. `lists` are the codes of the lists that the
    events name, -1 for none.

    An impression more than twice SOON seconds later is another one than that which caused the
    event, and is left out of `ahead`. Plain numbers that count no time since 1970 have no such
    limit.
    """
    log = rows.log
    clock = rows.clock
    moments = events.moments
    window = clock.span(rules.window, "window")
    skew = clock.span(rules.clock_skew, "clock_skew") or 0
    named = lists if rules.follows_lists(events.name) else np.full(len(lists), -1)
    free = np.flatnonzero(named < 0)
    by_list = np.flatnonzero(named >= 0)
    # In its list, the impression may be later than the event by any difference of two clocks.
    shown = log.moments._replace(user=log.lists.code)
    own = moments.take(by_list)._replace(user=named[by_list])
    in_list = find_candidates(shown, own, None, np.inf)
    in_list.outcome[own.user > log.lists.code.max(initial=-1)] = UNKNOWN_LIST
    by_time = find_candidates(log.moments, moments.take(free), window, skew)
    parts = [(free, by_time), (by_list, in_list)]
    outcome = np.empty(len(lists), np.int8)
    ahead = np.empty(0)
    for event, found in parts:
        outcome[event] = found.outcome
        lost = np.flatnonzero(found.outcome == BEFORE_IMPRESSION)
        first = log.moments.time[found.row[found.low[lost]]]
        ahead = np.append(ahead, (first - moments.time[event[lost]]) / (clock.second or 1))
    if clock.second is not None:
        ahead = ahead[ahead <= 2 * SOON]
    return Attributed(named, parts, outcome, ahead)


# ------------------------------------------------------------------------------------------
# Refunds: which purchases they cancel, wholly or in part.
#
# Contract: a refund cancels purchases of its own user and item (and order, where orders are
# named) that were made at or before it: the last one that is not yet refunded, and with what
# remains of its amount the one before that. Refunds go in the order of time. Without amounts,
# each refund cancels one whole purchase.


# What is left of an amount, as a share of it, if it is only a rounding error.
ROUNDING = 1e-9


def check_event_rules(rules: Rules, events: Collection[str]) -> None:
    """Refuse events without times, refunds without purchases, and orders or amounts without the
    events that they are of."""
    if "refunds" in events and "purchases" not in events:
        raise OptionError("⟦refunds=⟧ cancel purchases; pass ⟦+purchases=⟧")
    if rules.order_col is not None and "refunds" not in events:
        raise OptionError(
            f"⟦order_col={rules.order_col!r}⟧ matches refunds to purchases; pass ⟦+refunds=⟧"
        )
    if rules.time_col is None and (events or rules.session_gap is not None):
        what = next(iter(events), "session_gap")
        raise OptionError(f"⟦{what}=⟧ needs ⟦+time_col=⟧, the column of the time")
    if rules.value_col is not None and "purchases" not in events:
        raise OptionError(f"⟦value_col={rules.value_col!r}⟧ is what was paid; pass ⟦+purchases=⟧")


def without_refunded(
    all_events: list[EventRows], rules: Rules
) -> tuple[list[EventRows], dict[str, dict[str, int]]]:
    """Return the events without refunds and without what they cancel, and counts of purchases and
    refunds."""
    by_name = {events.name: events for events in all_events}
    if "refunds" not in by_name:
        return all_events, {}
    refunds = by_name.pop("refunds")
    purchases = by_name["purchases"]
    frames = {"purchases": purchases.frame, "refunds": refunds.frame}
    value = rules.value_col
    # Without amounts in both frames, each refund cancels one whole purchase.
    price, amount = (np.ones(len(frame)) for frame in frames.values())
    if value is not None and all(value in frame.columns for frame in frames.values()):
        price, amount = (read_values(frame, value, role) for role, frame in frames.items())
        if below := np.count_nonzero(amount < 0):
            raise DataError(
                f"refunds[{value!r}] holds {below:,} values below 0; expected what was paid back, "
                f"such as refunds.assign({value}=refunds[{value!r}].abs())"
            )
    keys = [np.concatenate(both) for both in zip(purchases.moments, refunds.moments, strict=True)]
    if rules.order_col is not None:
        orders = frame_codes(frames, frames, rules.order_col)[0].values()
        keys.insert(2, np.concatenate(list(orders)))
    left, rest, met = match_refunds(dense_codes(keys[:-1])[0], keys[-1], price, amount)
    gone = (left <= 0) & (price > 0)
    reduced = (left > 0) & (left < price)
    paid = purchases.paid
    lists = purchases.list_keys
    by_name["purchases"] = purchases._replace(
        frame=purchases.frame[~gone].reset_index(drop=True),
        moments=purchases.moments.take(~gone),
        paid=None if paid is None else np.where(reduced, left, paid)[~gone],
        list_keys=None if lists is None else [key[~gone] for key in lists],
        kept=np.divide(left, price, out=np.ones_like(price), where=reduced)[~gone],
    )
    counts = {
        "purchases": {
            "refunded": int(gone.sum()),
            "refunded_in_part": int(reduced.sum()),
        },
        "refunds": {
            "events": len(met),
            "matched": int(met.sum()),
            "without_purchase": int((~met).sum()),
            "beyond_price": int((met & (rest > 0)).sum()),
        },
    }
    return list(by_name.values()), counts


def match_refunds(
    pair: Integers, time: np.ndarray, price: Floats, amount: Floats
) -> tuple[Floats, Floats, Mask]:
    """Return what is left of each purchase and of each refund, and which refunds cancel anything.

    `pair` and `time` are those of the purchases, and then those of the refunds. The purchases of a
    pair of user and item wait in a stack, the latest on top, for the refunds that follow.
    """
    n = len(price)
    whole = [*price.tolist(), *amount.tolist()]
    left = whole.copy()
    met = np.zeros(len(amount), bool)
    order = stable_order([pair, time])  # of one time, the purchase stands before its refund
    order = order[np.isin(pair[order], pair[n:])]
    open_: list[int] = []
    now = -1
    for row, own in zip(order.tolist(), pair[order].tolist(), strict=True):
        if own != now:
            open_ = []
            now = own
        if row < n:
            open_.append(row)
            continue
        while open_ and (left[row] > 0 or not met[row - n]):
            purchase = open_[-1]
            if left[purchase] > 0:
                met[row - n] = True
                part = min(left[row], left[purchase])
                for one in (purchase, row):
                    rest = left[one] - part
                    left[one] = rest if rest > whole[one] * ROUNDING else 0.0
            if left[purchase] <= 0:
                open_.pop()
    return np.array(left[:n]), np.array(left[n:]), met
