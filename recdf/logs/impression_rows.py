"""Read the rows of a log of impressions and of its events once, as codes, times and positions;
events that name their list, and refunds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..errors import ColumnError, DataError, NullKeyError, OptionError, examples
from ..inputs.codes import encode
from ..inputs.frames import as_frame, column, read_numbers, read_values
from ..inputs.ids import read_ids
from ..inputs.sorting import dense_codes, stable_order
from .attribution import (
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

    @property
    def log_columns(self) -> list[str]:
        """Columns of the log in which nulls are not allowed."""
        names = [self.user_col, *self.source_lists, self.item_col, self.rank_col, self.time_col]
        return [name for name in names if name is not None]

    @property
    def source_lists(self) -> tuple[str, ...]:
        """Columns of the list key that the log already has."""
        if self.session_gap is None:
            return self.list_cols
        return tuple(name for name in self.list_cols if name != SESSION)


class LogInParts:
    """A log with its events whose users are in several parts: files, or frames of an engine.

    It stands in place of each of their frames, in `from_impressions` and in `check_log`.
    """

    def run(self, work: Callable[[Mapping[str, Any]], Any], rules: Rules) -> Any:
        """Return the sum of what `work` makes of the frames of each part, by role. All rows of a
        user, or of a person, are in one part."""
        raise NotImplementedError


@dataclass(frozen=True)
class EventRows:
    """Clicks, purchases or refunds: their frame, the codes of user and item, the times, the prices
    paid, and the lists.

    `list_keys` are codes of the user and of the list columns, with -1 for a null. It is None where
    the events have no list columns. `kept` is the share of a price that was not paid back.
    """

    name: str
    frame: pd.DataFrame
    moments: TimedPairs
    paid: np.ndarray | None
    list_keys: list[np.ndarray] | None
    kept: np.ndarray | None = None


@dataclass(frozen=True)
class LogRows:
    """The log of impressions: its frame, and the codes of user, item and list, the times and the
    positions of its rows.

    `keys` are the codes that together name a list, with the user first. `session` numbers the
    sessions that gaps in time separate. `clicks` is the number of clicks from the column
    `clicked_col`.
    """

    frame: pd.DataFrame
    keys: list[np.ndarray]
    item: np.ndarray
    n_items: int
    lists: ListRule
    time: np.ndarray | None
    position: np.ndarray | None
    session: np.ndarray | None
    clicks: np.ndarray | None

    def __len__(self) -> int:
        return len(self.item)

    @property
    def user(self) -> np.ndarray:
        return self.keys[0]

    @cached_property
    def repeated(self) -> np.ndarray:
        """The rows, ascending, whose item stands in more than one row of their list."""
        return repeated_rows(self.lists.code, self.item, self.n_items)

    @property
    def moments(self) -> TimedPairs:
        return TimedPairs(self.user, self.item, self.item if self.time is None else self.time)


@dataclass(frozen=True)
class ImpressionRows:
    """The log and the events as read, and how many rows each frame lost because of a null."""

    log: LogRows
    events: list[EventRows]
    clock: Clock
    dropped: dict[str, int]


def read_log_rows(log: Any, events: Mapping[str, Any], rules: Rules) -> ImpressionRows:
    """Read the log and its events (`clicks`, `purchases`, `refunds`) by the rules."""
    frames, dropped = _log_frames(log, events, rules)
    roles = list(frames)
    users = frame_codes(frames, roles, rules.user_col)[0]
    items, n_items = frame_codes(frames, roles, rules.item_col)
    clock, times = Clock("datetime", "ns"), {}
    if rules.time_col is not None:
        named = [(f"{role}[{rules.time_col!r}]", frames[role][rules.time_col]) for role in roles]
        clock, found = read_times(named)
        times = {role: one.values for role, one in zip(roles, found, strict=True)}
    placed = rules.unattributed == "true" and rules.session_gap is None
    wanted = [role for role in roles[1:] if placed or rules.follows_lists(role)]
    naming = [role for role in wanted if set(rules.list_cols) <= set(frames[role].columns)]
    keys = {role: [users[role]] for role in ("log", *naming)}
    for name in rules.source_lists:
        for role, codes in frame_codes(frames, list(keys), name)[0].items():
            keys[role].append(codes)
    read_events = []
    for role in roles[1:]:
        paid = None
        if role == "purchases" and rules.value_col is not None and rules.value == "paid":
            paid = read_values(frames[role], rules.value_col, role)
        moments = TimedPairs(users[role], items[role], times[role])
        read_events.append(EventRows(role, frames[role], moments, paid, keys.get(role)))
    read_log = _log_rows(
        frames["log"], keys["log"], (items["log"], n_items), (clock, times.get("log")), rules
    )
    return ImpressionRows(read_log, read_events, clock, dropped)


def _log_rows(
    frame: pd.DataFrame,
    keys: list[np.ndarray],
    items: tuple[np.ndarray, int],
    clock: tuple[Clock, np.ndarray | None],
    rules: Rules,
) -> LogRows:
    """Return the log with its lists, given the codes of the columns that name a list."""
    position, time, session = _read_position(frame, rules), clock[1], None
    gap = clock[0].span(rules.session_gap, "session_gap")
    if gap is not None and time is not None:
        session = sessions_by_gap(keys, time, gap)
        keys = [*keys, session]
    lists = arrange_lists(keys, position, time)
    return LogRows(frame, keys, *items, lists, time, position, session, _read_clicked(frame, rules))


def _log_frames(
    log: Any, events: Mapping[str, Any], rules: Rules
) -> tuple[dict[str, pd.DataFrame], dict[str, int]]:
    """Return the frames without the rows that have a null, and how many such rows each frame
    had."""
    frames, dropped = {}, {}
    for role, data in {"log": log, **events}.items():
        frame = raw_frame(data, role)
        of_event = [
            name for name in (rules.user_col, rules.item_col, rules.time_col) if name is not None
        ]
        names = rules.log_columns if role == "log" else of_event
        _require_columns(frame, role, names, rules)
        frames[role], dropped[role] = _without_nulls(frame, role, names, rules)
    return frames, dropped


def raw_frame(data: Any, role: str) -> pd.DataFrame:
    if isinstance(data, Mapping):
        raise TypeError(
            f"{role} is a mapping; expected a DataFrame or an Arrow stream with one row each"
        )
    frame = as_frame(data, role)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()].tolist()
        raise ColumnError(
            f"{role} has several columns named {twice[0]!r}; expected one of each name"
        )
    return frame


def _require_columns(frame: pd.DataFrame, role: str, names: Sequence[str], rules: Rules) -> None:
    if role == "log" and rules.session_gap is not None and SESSION in frame.columns:
        raise OptionError(
            f"log has a column {SESSION!r}, and session_gap makes one; leave session_gap out, or "
            "drop the column"
        )
    for name in names:
        if role == "log" and name not in frame.columns:
            if rules.list_cols == (SESSION,) == (name,):
                raise ColumnError(
                    f"log has no column {SESSION!r}; name the columns of a list in ⟦+list_cols=⟧, "
                    "make sessions with "
                    '⟦+session_gap="30min"⟧, or pass ⟦+list_cols=()⟧ for one list per user'
                )
            if name == rules.rank_col == "position":
                raise ColumnError(
                    "log has no column 'position'; name it in ⟦+rank_col=⟧, or pass "
                    "⟦+rank_col=None⟧ to rank by time"
                )
        if (
            role != "log"
            and name not in frame.columns
            and name in rules.log_columns
            and len(frame.columns)
        ):
            have = ", ".join(map(repr, frame.columns))
            raise ColumnError(
                f"{role} has no column {name!r}; it has {have}. Columns are named as in the log: "
                f'{role}.rename(columns={{"...": {name!r}}})'
            )
        column(frame, name, role)


def _without_nulls(
    frame: pd.DataFrame, role: str, names: list[str], rules: Rules
) -> tuple[pd.DataFrame, int]:
    """Return the rows without a null in these columns, and how many rows were dropped."""
    null = {name: frame[name].isna().to_numpy(dtype=bool) for name in names}
    null = {name: flags for name, flags in null.items() if flags.any()}
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
    frames: Mapping[str, pd.DataFrame], roles: Sequence[str], name: str
) -> tuple[dict[str, np.ndarray], int]:
    """Code one id column of several frames, and return the codes and a number that they are
    below."""
    codes = encode([read_ids(frames[role][name], f"{role}[{name!r}]") for role in roles])
    return dict(zip(roles, codes.codes, strict=True)), max(codes.n, 1)


def _read_position(frame: pd.DataFrame, rules: Rules) -> np.ndarray | None:
    if rules.rank_col is None:
        return None
    position = read_numbers(frame[rules.rank_col], f"log[{rules.rank_col!r}]")
    if position.dtype.kind == "f" and np.isinf(position).any():
        raise DataError(
            f"log[{rules.rank_col!r}] holds {np.isinf(position).sum():,} infinite positions"
        )
    if position.dtype == np.uint64:
        position = (
            position.astype(np.int64)
            if position.max(initial=0) < 2**63
            else position.astype(np.float64)
        )
    return position


def _read_clicked(frame: pd.DataFrame, rules: Rules) -> np.ndarray | None:
    """Read the number of clicks of each row from a column of bools or of numbers."""
    if rules.clicked_col is None:
        return None
    name = rules.clicked_col
    clicks = read_numbers(column(frame, name, "log"), f"log[{name!r}]").astype(np.float64)
    bad = ~np.isfinite(clicks) | (clicks < 0)
    shares = clicks % 1 > 0
    if shares.any() and not bad.any():
        raise DataError(
            f"log[{name!r}] holds {int(shares.sum()):,} fractions ({examples(clicks[shares])}); "
            "expected True and False, or numbers of clicks; a probability of a click is no click"
        )
    if bad.any():
        raise DataError(
            f"log[{name!r}] holds {bad.sum():,} null, infinite or negative values "
            f"({examples(clicks[bad])}); expected True and False, or numbers of clicks; where null "
            f"means no click, pass log.fillna({{{name!r}: 0}})"
        )
    return clicks


# ------------------------------------------------------------------------------------------
# Events that name the list of their impression: which list it is, and the impressions that such
# an event belongs to.
#
# Contract: an event that names a list belongs to the impressions of its item in this list,
# whenever they were; the window and the tolerance for clocks are for events that name none. A
# list that the log does not have gets a code beyond its lists, so that its events belong to no
# impression.


def lists_of_events(log: LogRows, all_events: Sequence[EventRows]) -> list[np.ndarray]:
    """Return for the events of each kind the code of the list that each names, or -1 if it names
    none.

    A list that the log has keeps its code. Other lists get new codes; a list that both a click and
    a purchase name has one code.
    """
    n_lists = int(log.lists.code.max(initial=-1)) + 1
    given = [events.list_keys for events in all_events if events.list_keys is not None]
    named: Iterator[np.ndarray] = iter(())
    if given:
        a_row = np.empty(n_lists, np.int64)
        a_row[log.lists.code] = np.arange(len(log))
        keys = [
            np.concatenate(parts)
            for parts in zip([key[a_row] for key in log.keys], *given, strict=True)
        ]
        together, n = dense_codes(keys)
        # A list that the log does not have gets a number beyond its lists.
        code = np.arange(n_lists, n_lists + n)
        code[together[:n_lists]] = np.arange(n_lists)
        found = np.where(np.min(keys, axis=0) < 0, -1, code[together])
        named = iter(np.split(found, np.cumsum([n_lists, *(len(one[0]) for one in given)]))[1:])
    return [
        np.full(len(events.frame), -1, np.int64) if events.list_keys is None else next(named)
        for events in all_events
    ]


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
    all_events: Sequence[EventRows], rules: Rules
) -> tuple[list[EventRows], dict[str, dict[str, int]]]:
    """Return the events without refunds and without what they cancel, and counts of purchases and
    refunds."""
    by_name = {events.name: events for events in all_events}
    if "refunds" not in by_name:
        return list(all_events), {}
    refunds, purchases = by_name.pop("refunds"), by_name["purchases"]
    frames = {"purchases": purchases.frame, "refunds": refunds.frame}
    price, amount = _amounts(frames, rules.value_col)
    keys = [np.concatenate(both) for both in zip(purchases.moments, refunds.moments, strict=True)]
    if rules.order_col is not None:
        for name, frame in frames.items():
            column(frame, rules.order_col, name)
        orders = frame_codes(frames, list(frames), rules.order_col)[0].values()
        keys.insert(2, np.concatenate(list(orders)))
    left, rest, met = match_refunds(dense_codes(keys[:-1])[0], keys[-1], price, amount)
    gone, reduced = (left <= 0) & (price > 0), (left > 0) & (left < price)
    paid, lists = purchases.paid, purchases.list_keys
    by_name["purchases"] = EventRows(
        "purchases",
        purchases.frame[~gone].reset_index(drop=True),
        TimedPairs(*(part[~gone] for part in purchases.moments)),
        None if paid is None else np.where(reduced, left, paid)[~gone],
        None if lists is None else [key[~gone] for key in lists],
        kept=np.divide(left, price, out=np.ones_like(price), where=reduced)[~gone],
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


def _amounts(frames: Mapping[str, pd.DataFrame], name: str | None) -> list[np.ndarray]:
    """Return what was paid and what was paid back; 1 each if one of the frames has no amounts."""
    if name is None or not all(name in frame.columns for frame in frames.values()):
        return [np.ones(len(frame)) for frame in frames.values()]
    paid, back = (read_values(frame, name, role) for role, frame in frames.items())
    if (back < 0).any():
        raise DataError(
            f"refunds[{name!r}] holds {int((back < 0).sum()):,} values below 0; expected what "
            f"was paid back, such as refunds.assign({name}=refunds[{name!r}].abs())"
        )
    return [paid, back]


def match_refunds(
    pair: np.ndarray, time: np.ndarray, price: np.ndarray, amount: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what is left of each purchase and of each refund, and which refunds cancel anything.

    `pair` and `time` are those of the purchases, and then those of the refunds. The purchases of a
    pair of user and item wait in a stack, the latest on top, for the refunds that follow.
    """
    n, left, rest, met = len(price), price.tolist(), amount.tolist(), [False] * len(amount)
    order = stable_order([pair, time])  # of one time, the purchase stands before its refund
    order = order[np.isin(pair[order], pair[n:])]
    open_: list[int] = []
    now = -1
    for row, own in zip(order.tolist(), pair[order].tolist(), strict=True):
        if own != now:
            open_, now = [], own
        if row < n:
            open_.append(row)
            continue
        refund = row - n
        while open_ and (rest[refund] > 0 or not met[refund]):
            purchase = open_[-1]
            if left[purchase] > 0:
                met[refund] = True
                part = min(rest[refund], left[purchase])
                left[purchase] = _less(left[purchase], part, price[purchase])
                rest[refund] = _less(rest[refund], part, amount[refund])
            if left[purchase] <= 0:
                open_.pop()
    return np.array(left), np.array(rest), np.array(met, bool)


def _less(rest: float, part: float, whole: float) -> float:
    """Return the rest of an amount without a part of it, and 0 if this is only a rounding error."""
    return 0.0 if rest - part <= whole * ROUNDING else rest - part
