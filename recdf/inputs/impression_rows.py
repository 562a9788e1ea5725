"""The rows of a log of impressions and of its events, read once: codes, times and positions in place of labels.

Contract: `read_rows` checks every column that `from_impressions` was told of. Rows with a null in one of them are
refused or dropped; after it there is no null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..errors import ColumnError, DataError, examples
from .attribution import Attribution, Moments
from .codes import encode
from .frames import as_frame, column, null_ids, read_numbers, read_values
from .ids import read_ids
from .sessions import Repeats, sessions_by_gap
from .sorting import dense_codes
from .times import Clock, read_times

SESSION = "session_id"


@dataclass(frozen=True)
class Rules:
    """What `from_impressions` was asked for, checked; the names are those of its parameters."""

    user_col: str
    item_col: str
    rank_col: str | None
    list_cols: tuple[str, ...]
    time_col: str | None
    clicked_col: str | None
    value_col: str | None
    window: Any
    attribution: Attribution
    relevance: Mapping[str, float]
    repeats: Repeats
    unattributed: Literal["count", "true"]
    session_gap: Any
    clock_skew: Any
    value: Literal["paid", "shown"]
    null_keys: Literal["raise", "drop"]

    @property
    def log_columns(self) -> list[str]:
        """Columns of the log in which a null is no value."""
        names = [self.user_col, *self.source_lists, self.item_col, self.rank_col, self.time_col]
        return [name for name in names if name is not None]

    @property
    def source_lists(self) -> tuple[str, ...]:
        """Columns of the list key that the log brings itself."""
        return tuple(name for name in self.list_cols if name != SESSION) if self.session_gap else self.list_cols


@dataclass(frozen=True)
class EventRows:
    """Clicks or purchases: their frame, codes of user, item and time, what was paid, and the list that they name.

    `own_list` is the code of the list that the event itself names, -1 where it names none; None if no event does.
    """

    name: str
    frame: pd.DataFrame
    moments: Moments
    paid: np.ndarray | None
    own_list: np.ndarray | None


@dataclass(frozen=True)
class LogRows:
    """The log of impressions: its frame, and codes of user, item and list, times and positions of its rows.

    `session` numbers the sessions made of gaps in time; `clicks` is what the column of clicks says.
    """

    frame: pd.DataFrame
    user: np.ndarray
    item: np.ndarray
    n_items: int
    lists: np.ndarray
    time: np.ndarray | None
    position: np.ndarray | None
    session: np.ndarray | None
    clicks: np.ndarray | None

    @property
    def moments(self) -> Moments:
        return Moments(self.user, self.item, np.zeros(len(self.user), np.int64) if self.time is None else self.time)


@dataclass(frozen=True)
class Rows:
    """Everything that was handed over, and how many rows were dropped for a null, by frame."""

    log: LogRows
    events: list[EventRows]
    clock: Clock
    dropped: dict[str, int]


def read_rows(log: Any, events: Mapping[str, Any], rules: Rules) -> Rows:
    """Read the log and its events (`clicks`, `purchases`) by the rules."""
    frames = {"log": _frame(log, "log"), **{name: _frame(data, name) for name, data in events.items()}}
    if not len(frames["log"]) and not frames["log"].columns.size:
        raise ColumnError("log has no columns; expected one row per impression with user, item and list columns")
    needed = {name: [rules.user_col, rules.item_col, rules.time_col] for name in events}
    dropped = {}
    for name, frame in frames.items():
        names = rules.log_columns if name == "log" else [one for one in needed[name] if one is not None]
        _require_columns(frame, name, names, rules)
        frames[name], dropped[name] = _without_nulls(frame, name, names, rules)

    roles = list(frames)
    users = _encoded(frames, roles, rules.user_col)[0]
    items, n_items = _encoded(frames, roles, rules.item_col)
    clock, times = Clock("datetime", "ns"), dict.fromkeys(roles)
    if rules.time_col is not None:
        named = [(f"{role}[{rules.time_col!r}]", frames[role][rules.time_col]) for role in roles]
        clock, found = read_times(named)
        times = {role: one.values for role, one in zip(roles, found, strict=True)}
    log_users, log_time = users["log"], times["log"]
    own = [
        role
        for role in roles[1:]
        if rules.unattributed == "true" and not rules.session_gap and set(rules.list_cols) <= set(frames[role].columns)
    ]
    session = None
    if rules.session_gap is not None:
        keys = [log_users, *(_encoded(frames, ["log"], name)[0]["log"] for name in rules.source_lists)]
        gap = clock.span(rules.session_gap, "session_gap")
        assert log_time is not None
        assert gap is not None
        session = sessions_by_gap(keys, log_time, gap)
    lists = _list_codes(frames, ["log", *own], users, session, rules)
    position, clicks = _read_position(frames["log"], rules), _read_clicked(frames["log"], rules)
    read_log = LogRows(
        frames["log"], log_users, items["log"], n_items, lists["log"], log_time, position, session, clicks
    )
    read_events = []
    for role in roles[1:]:
        event_time = times[role]
        assert event_time is not None
        moments = Moments(users[role], items[role], event_time)
        paid = None
        if role == "purchases" and rules.value_col is not None and rules.value == "paid":
            paid = read_values(frames[role], rules.value_col, role)
        read_events.append(EventRows(role, frames[role], moments, paid, lists.get(role)))
    return Rows(read_log, read_events, clock, dropped)


def _frame(data: Any, role: str) -> pd.DataFrame:
    if isinstance(data, Mapping):
        raise TypeError(f"{role} is a mapping; expected a DataFrame or an Arrow stream with one row each")
    frame = as_frame(data, role)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()].tolist()
        raise ColumnError(f"{role} has several columns named {twice[0]!r}; expected one of each name")
    return frame


def _require_columns(frame: pd.DataFrame, role: str, names: Sequence[str], rules: Rules) -> None:
    for name in names:
        if role == "log" and name not in frame.columns:
            if rules.list_cols == (SESSION,) == (name,):
                raise ColumnError(
                    f"log has no column {SESSION!r}; name the columns of a list in list_cols=, make sessions with "
                    'session_gap="30min", or pass list_cols=() for one list per user'
                )
            if name == rules.rank_col == "position":
                raise ColumnError(
                    "log has no column 'position'; name it in rank_col=, or pass rank_col=None to rank by time"
                )
        column(frame, name, role)


def _without_nulls(frame: pd.DataFrame, role: str, names: list[str], rules: Rules) -> tuple[pd.DataFrame, int]:
    """The rows without a null in these columns, and how many were dropped."""
    null = {name: frame[name].isna().to_numpy(dtype=bool) for name in names}
    null = {name: flags for name, flags in null.items() if flags.any()}
    if not null:
        return frame, 0
    if rules.null_keys == "raise":
        counts = {f"{role}[{name!r}]": int(flags.sum()) for name, flags in null.items()}
        ids = [name for name in null if name not in (rules.rank_col, rules.time_col)]
        if ids:
            raise null_ids(role, counts)
        found = ", ".join(f"{n:,} in {where}" for where, n in counts.items())
        raise DataError(f'{role} has null times or positions: {found}; drop these rows or pass null_keys="drop"')
    gone = np.logical_or.reduce(list(null.values()))
    return frame[~gone].reset_index(drop=True), int(gone.sum())


def _encoded(frames: Mapping[str, pd.DataFrame], roles: Sequence[str], name: str) -> tuple[dict[str, np.ndarray], int]:
    """Codes of one id column of several frames, and a number that they are below."""
    codes = encode([read_ids(frames[role][name], f"{role}[{name!r}]") for role in roles])
    return dict(zip(roles, codes.codes, strict=True)), max(codes.n, 1)


def _list_codes(
    frames: Mapping[str, pd.DataFrame],
    roles: list[str],
    users: Mapping[str, np.ndarray],
    session: np.ndarray | None,
    rules: Rules,
) -> dict[str, np.ndarray]:
    """Code of the list of each row of the log, and of events that name their list, -1 where they name none."""
    keys = [{role: users[role] for role in roles}]
    keys += [_encoded(frames, roles, name)[0] for name in rules.source_lists]
    if session is not None:
        keys.append({"log": session})
    if len(keys) == 1:
        return keys[0]
    if len(roles) == 1:
        return {"log": dense_codes([key["log"] for key in keys])[0]}
    together, _ = dense_codes([np.concatenate([key[role] for role in roles]) for key in keys])
    parts = np.split(together, np.cumsum([len(users[role]) for role in roles])[:-1])
    found = dict(zip(roles, parts, strict=True))
    for role in roles[1:]:
        unknown = np.logical_or.reduce([key[role] < 0 for key in keys])
        found[role] = np.where(unknown, -1, found[role])
    return found


def _read_position(frame: pd.DataFrame, rules: Rules) -> np.ndarray | None:
    if rules.rank_col is None:
        return None
    position = read_numbers(frame[rules.rank_col], f"log[{rules.rank_col!r}]")
    if position.dtype.kind == "f" and np.isinf(position).any():
        raise DataError(f"log[{rules.rank_col!r}] holds {np.isinf(position).sum():,} infinite positions")
    if position.dtype == np.uint64:
        position = position.astype(np.int64) if position.max(initial=0) < 2**63 else position.astype(np.float64)
    return position


def _read_clicked(frame: pd.DataFrame, rules: Rules) -> np.ndarray | None:
    """Clicks of each row: the column holds bools, or numbers of clicks."""
    if rules.clicked_col is None:
        return None
    name = rules.clicked_col
    clicks = read_numbers(column(frame, name, "log"), f"log[{name!r}]").astype(np.float64)
    bad = ~np.isfinite(clicks) | (clicks < 0)
    if bad.any():
        raise DataError(
            f"log[{name!r}] holds {bad.sum():,} null, infinite or negative values ({examples(clicks[bad])}); expected "
            f"True and False, or numbers of clicks; where null means no click, pass log.fillna({{{name!r}: 0}})"
        )
    return clicks


