"""`from_impressions`: a log of impressions, clicks and purchases to the two tables `true` and
`pred`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from pandas import DataFrame

from ..errors import (
    LogWarning,
    NoOverlapWarning,
    OptionError,
    closest,
    warn_user,
)
from ..inputs.codes import known_ids
from ..inputs.constraints import a_number, check_value
from ..inputs.door import takes_options
from ..inputs.frames import OneRecord
from ..inputs.options import ByName, Columns, Options, as_columns
from ..progress import Progress
from ..stats.numbers import Floats
from ..tables.cells import amount
from .attribution import OUTCOMES
from .event_checks import WHAT_COPIES_DO, skews, words_of_skew
from .impression_rows import (
    SESSION,
    LogInParts,
    Rules,
    check_event_rules,
    in_time,
    key_of_lists,
    raw_frame,
    read_log_rows,
    read_persons,
    with_persons,
)
from .impression_tables import make_tables
from .times import TICKS_PER_SECOND, Clock

KINDS = ("clicks", "purchases")
# A share of the rows from which the log is warned of; fewer are only counted.
# Where a tolerance for clocks is given, which takes in most of the events that it is for, there may
# be more.
WORTH_A_WARNING, BESIDE_SKEW = 0.001, 0.01
RELEVANCE_LEVELS = {"shown": 0.0, "clicked": 1.0, "bought": 3.0}


@dataclass(frozen=True, eq=False)
class Impressions:
    """The result of `from_impressions`, which unpacks into the two tables `true` and `pred`.

    `rd.evaluate(*lists, metrics, **lists.options)` evaluates them by the columns that they have.

    Attributes
    ----------
    true : DataFrame
        One row per (list key, item) shown, and per item that is relevant without having been shown.
    pred : DataFrame
        One row per (list key, item) shown, with its rank.
    spec : dict
        JSON-safe record of the rules and of what was counted. Also in `attrs["recdf_impressions"]`
        of both tables in memory.

    Of an engine, such as Spark, `true` and `pred` are frames of the engine, which are computed from
    the log whenever they are used.
    """

    true: DataFrame
    pred: DataFrame
    spec: dict[str, Any]
    # By how many seconds events of each kind came before their impression.
    _ahead: Mapping[str, Floats] = field(default_factory=dict, repr=False)

    def __iter__(self) -> Iterator[DataFrame]:
        return iter((self.true, self.pred))

    def __add__(self, other: Impressions) -> Impressions:
        """Return the counts of the users of both, without tables. No user may be in both."""
        ahead = {
            name: np.append(seconds, other._ahead[name]) for name, seconds in self._ahead.items()
        }
        one = self.spec
        two = other.spec
        seen = [spec for spec in (one, two) if spec["counts"]["impressions"]] or [one]
        # The finest of the clocks, by its unit, and then by how many of its numbers make a second.
        units = ["", *TICKS_PER_SECOND]
        clocks = [spec["clock"] for spec in seen if spec["clock"] is not None]
        finest = max(
            clocks, key=lambda own: (units.index(own["unit"]), own["second"] or 0), default=None
        )
        spec = one | {
            name: _of_both(one[name], two[name]) for name in ("positions", "first_copies", "counts")
        }
        spec["positions"]["start"] = min(own["positions"]["start"] for own in seen)
        spec |= {"clock": finest, "ahead": skews(ahead, Clock(**finest)) if finest else {}}
        return Impressions(DataFrame(), DataFrame(), spec, ahead)

    @property
    def events(self) -> DataFrame:
        """One row per kind of event (`clicks`, `purchases`) with the number of events and what
        became of them, made from the spec."""
        counts = self.spec["counts"]
        counted = [{"event": name, **counts[name]} for name in KINDS if name in counts]
        return DataFrame(
            {name: [one.get(name, 0) for one in counted] for one in counted[-1:] for name in one}
        )

    @property
    def options(self) -> dict[str, Any]:
        """The options with which `evaluate` reads these tables: `rd.evaluate(*lists, "ctr@10",
        **lists.options)`."""
        return dict(self.spec["options"])

    def __repr__(self) -> str:
        positions = self.spec["positions"]
        counts = self.spec["counts"]
        lines = [
            f"{amount(counts['impressions'], 'impression')} in {amount(counts['lists'], 'list')}"
        ]
        if isinstance(self.true, DataFrame):
            sizes = (" × ".join(f"{n:,}" for n in one.shape) for one in self)
            lines.append("true {}, pred {}".format(*sizes))
        if positions["column"] is not None:
            lines.append(
                f"positions from {positions['start']:g}, holes in "
                f"{amount(positions['lists_with_holes'], 'list')}, a position twice in "
                f"{positions['lists_with_ties']:,}"
            )
        if len(self.events):
            lines.append(self.events.to_string(index=False))
        for kind in filter(counts.get, ("refunds", "persons")):
            said = ", ".join(f"{n:,} {name}" for name, n in counts[kind].items())
            lines.append(f"{kind}: {said}")
        return "\n".join(lines)


@takes_options("user_col", "item_col", "value_col", "null_keys")
def from_impressions(
    log: Any,
    *,
    user_col: str = "user_id",
    item_col: str = "item_id",
    rank_col: str | None = "position",
    list_cols: Columns = (SESSION,),
    time_col: str | None = None,
    clicked_col: str | None = None,
    clicks: Any = None,
    purchases: Any = None,
    refunds: Any = None,
    order_col: str | None = None,
    persons: Any = None,
    person_col: str | None = None,
    value_col: str | None = None,
    window: Any = None,
    attribution: Literal["last", "first", "all"] = "last",
    relevance: Mapping[str, float] | None = None,
    unattributed: Literal["count", "true"] = "count",
    session_gap: Any = None,
    clock_skew: Any = None,
    value: Literal["paid", "shown"] = "paid",
    named_lists: Literal["clicks", "all", "none"] = "clicks",
    null_keys: Literal["raise", "drop"] = "raise",
    options: Options | None = None,
) -> Impressions:
    """Turn a raw log of impressions, with its clicks and purchases, into `true` and `pred`.

    Parameters
    ----------
    log : DataFrame or Arrow stream
        One row per impression: an item shown to a user. `pred` keeps all its columns except
        `clicked_col`.
    user_col, item_col : str, default "user_id", "item_id"
        Columns of the user and of the item, in `log`, `clicks` and `purchases` alike.
    rank_col : str or None, default "position"
        Position of the item on the page, from 0 or from 1, with or without holes. `pred` keeps it
        unchanged and gets a column `rank` from 1 without holes. None ranks a list by time, or by
        row where there are no times.
    list_cols : str or list of str, default ("session_id",)
        Columns that, with the user, name one list: a session, or a request. An empty list makes one
        list per user.
    time_col : str, optional
        Time of the impression in `log` and of the event in `clicks` and `purchases`: datetimes of
        any unit, all with a time zone (not necessarily the same) or all without one, or plain
        numbers of one unit.
    clicked_col : str, optional
        Column of `log` that tells whether the impression was clicked: bool, or the number of
        clicks.
    clicks, purchases : DataFrame or Arrow stream, optional
        One row per event with user, item and time.
    refunds : DataFrame or Arrow stream, optional
        One row per refund with user, item, time and, where `value_col` is given and the refund may
        be of a part, the amount that was paid back. A purchase that is refunded wholly does not
        count, and of one that is refunded in part, the rest of the value counts.
    order_col : str, optional
        Column of the order in `purchases` and `refunds`. A refund cancels purchases of its order
        only.
    persons : DataFrame or Arrow stream, optional
        One row per device, with `user_col` and `person_col`. The other frames have devices in
        `user_col`. Persons are then the users, so that a purchase on one device belongs to an
        impression on another one, and the device is a column of the list key, if there are
        `list_cols`. A device of several persons is that of the first one: by `time_col`, if
        `persons` has it, else by row. An unknown device is a person of its own, or the person with
        this id.
    person_col : str, optional
        Column of the person in `persons`, and in `true` and `pred`.
    value_col : str, optional
        What was paid, in `purchases`.
    window : str, timedelta or number, optional
        Longest time from the impression to the event, such as "24h"; a number where times are
        numbers. None sets no limit.
    attribution : {"last", "first", "all"}, default "last"
        Impression that an event belongs to: the last or the first of its item to its user within
        `window` before it, or all of these with equal shares.
    relevance : mapping, default {"shown": 0, "clicked": 1, "bought": 3}
        Gain of an impression by its deepest event.
    unattributed : {"count", "true"}, default "count"
        What happens to events that belong to no impression: they are only counted, or they are also
        kept in `true`.
    session_gap : str, timedelta or number, optional
        Make sessions of the log: a pause longer than this between two impressions of a user begins
        a new one. The column `session_id` numbers them from 1 for each user. Other `list_cols`
        separate sessions too.
    clock_skew : str, timedelta or number, optional
        How much later than its event an impression may be, where two machines wrote the times. By
        default it may not be later.
    value : {"paid", "shown"}, default "paid"
        Value of a purchase: `value_col` of `purchases`, or `value_col` of `log` (the price shown)
        at the impression, times the share of the purchase that was not refunded.
    named_lists : {"clicks", "all", "none"}, default "clicks"
        Events that belong to the list that they name in `list_cols`, whenever it was shown: clicks,
        or purchases too. With "none", and where an event names no list, `window` and `attribution`
        decide.
    null_keys : {"raise", "drop"}, default "raise"
        What happens to rows with a null user, item, list column, position or time: they raise an
        error, or they are dropped and counted.
    options : Options, optional
        `user_col`, `item_col`, `value_col` and `null_keys` of a project, where they are not given
        here.

    Returns
    -------
    Impressions
        It unpacks into `true` and `pred`; `.events` and `.spec` hold the counts.

        `true`: user, list columns, item, `relevance`, `clicks` and `purchases` (number of events,
        or the sum of their shares), `value_col` (sum of what was paid); float64, one row per (list,
        item) shown, also where nobody clicked, so that lists without a click are in the population.

        `pred`: user, list columns, item, `rank`, `value_col` (as in `true`, so that `revenue` is
        what was paid), and the other columns of the log. A column of the log named like `value_col`
        becomes `<value_col>_shown`.

        `events`: `event`, `events` (how many), `attributed`, `never_shown` (its user, or the list
        that it names, was never shown its item), `before_impression` (all its impressions came
        later), `outside_window`, `unknown_list` (it names a list that the log does not have), which
        add up; `by_list` (how many of the attributed ones went by the list that they name);
        `logged_twice` (rows that repeat an earlier one in every column); with `refunds`, `refunded`
        (it adds up too) and `refunded_in_part`; with `unattributed="true"` also `kept_in_true`,
        `shown_in_list` and `without_list`.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError
        If the log or the events break a rule; the message names the argument, the column and how to
        mend it.

    Warns
    -----
    LogWarning
        If 0.1 % or more of the impressions, clicks, purchases or refunds repeat an earlier row in
        every column; or of the events belong to no impression but to one that comes within 600 s
        after them (1 % with `clock_skew`), and those are more than twice the ones of the next 600
        s. `spec["first_copies"]` and `spec["ahead"]` have examples and the `clock_skew` to pass.
    NoOverlapWarning
        If no event of a kind belongs to an impression.

    Notes
    -----
    The rules at the edges:

    * The window is closed: an impression at the time of the event counts, and so does one exactly
      `window` old.
    * Of impressions at the same time, "first" takes the one whose row comes first, and "last" the
      one whose row comes last.
    * An event before every impression of its item belongs to none, unless the next one is within
      `clock_skew`.
    * An event counts once: its shares sum to 1. Several events of one impression add up in
      `clicks`, `purchases` and value, and count once in `relevance`, which is that of the deepest
      event.
    * An event that names its list belongs to the impression of its item there, without a limit of
      time. Where the list shows the item several times, `attribution` chooses among those before
      the event, else the next one is taken. An event that names an unknown list, or one without its
      item, belongs to none.
    * A purchase needs no click: it belongs to the impression, clicked or not.
    * A refund cancels the last purchase of its user and item (and order) at or before it that is
      not yet refunded, and with what remains of its amount the one before that. Refunds go in the
      order of time, then of rows. Without amounts in `refunds`, each cancels one whole purchase.
      Refunds without a purchase give a warning, and `spec["counts"]["refunds"]` has their number,
      and how many are beyond what was paid. A null in `order_col` is an order of its own.
    * `spec["counts"]["persons"]` has the number of devices in the log and its events, of those that
      `persons` does not name, and of those that it gives to several persons. For the assignment of
      an experiment by device, see `rd.logs.assign_persons`.
    * A pause of exactly `session_gap` does not end a session; clicks and purchases neither make nor
      lengthen one.
    * Where a list shows an item twice, its first impression (by time, then by position, then by
      row) stands for all of them and gets their events. Two items at one position are ranked by
      time, then by row.
    * With `unattributed="true"`, an event goes to the list that it names itself in the list
      columns, else to the last list of its user that began at or before it, else to the first list
      of its user. It is left out where that list shows the item (`shown_in_list`: it would count as
      a hit against the window), and where its user has no list (`without_list`); with one list per
      user, users without impressions have a list in `true`.

    Use it for a log of what was really shown. For candidates with labels and scores, use
    `from_labelled`.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> log = pd.DataFrame(
    ...     {
    ...         "user_id": ["ann", "ann", "bob"],
    ...         "session_id": [1, 1, 7],
    ...         "item_id": ["tea", "mug", "tea"],
    ...         "position": [0, 3, 0],
    ...         "time": pd.to_datetime(["2026-09-01 10:00"] * 3),
    ...     }
    ... )
    >>> bought = pd.DataFrame(
    ...     {
    ...         "user_id": ["ann"],
    ...         "item_id": ["mug"],
    ...         "time": pd.to_datetime(["2026-09-01 12:00"]),
    ...         "price": [8.5],
    ...     }
    ... )
    >>> true, pred = rd.from_impressions(
    ...     log, time_col="time", purchases=bought, value_col="price", window="24h"
    ... )
    >>> true
      user_id  session_id item_id  relevance  purchases  price
    0     ann           1     tea        0.0        0.0    0.0
    1     ann           1     mug        3.0        1.0    8.5
    2     bob           7     tea        0.0        0.0    0.0
    >>> lists = rd.from_impressions(
    ...     log, time_col="time", purchases=bought, value_col="price", window="24h"
    ... )
    >>> rd.evaluate(*lists, ["hits@10", "revenue@10"], **lists.options).per_user
      user_id  session_id  n_true  n_pred  hits@10  revenue@10
    0     ann           1       1       2      1.0         8.5
    1     bob           7       0       1      0.0         0.0
    """
    lists = key_of_lists(list_cols, session_gap, user_col, person_col)
    gains = {**RELEVANCE_LEVELS, **(relevance or {})}
    for name, gain in gains.items():
        if name not in RELEVANCE_LEVELS:
            raise OptionError(
                f"relevance has {name!r}; it gives the gains of "
                f"{', '.join(RELEVANCE_LEVELS)}{closest(name, RELEVANCE_LEVELS)}"
            )
        check_value(f"relevance[{name!r}]", gain, a_number(0))
    rules = Rules(
        person_col or user_col,
        item_col,
        rank_col,
        lists,
        time_col,
        value_col,
        window,
        session_gap,
        named_lists,
        order_col,
        None if person_col is None else user_col,
        clicked_col,
        attribution,
        {name: float(gain) for name, gain in gains.items()},
        unattributed,
        clock_skew,
        value,
        null_keys,
    )
    events = {"clicks": clicks, "purchases": purchases, "refunds": refunds}
    events = {name: data for name, data in events.items() if data is not None}
    _check_rules(rules, events)
    work = partial(attribute, rules=rules)
    if isinstance(log, LogInParts):
        found = log.run(work, rules)
    else:
        found = work({"log": log, **events, "persons": persons})
    warn_of_counts(found.spec)
    return found


def attribute(frames: ByName, rules: Rules) -> Impressions:
    """Make the tables of the users in some frames, without warnings.

    `frames` are the log, its events and the persons (or None), by the names of the arguments of
    `from_impressions`.
    """
    given, devices = read_persons(frames, rules)
    log = given.pop("log")
    with Progress(2, "from_impressions") as progress:
        read = [read_log_rows(log, given, rules)]
        progress.add()
        # Rows are freed as soon as the tables need their place.
        true, pred, spec, ahead = make_tables(read.pop(), rules)
    spec["counts"] |= devices
    for frame in (true, pred):
        frame.attrs = {"recdf_impressions": OneRecord(spec)}
    return Impressions(true, pred, spec, ahead)


def _check_rules(rules: Rules, events: Collection[str]) -> None:
    if rules.clicked_col is not None and "clicks" in events:
        raise OptionError(
            "clicked_col and clicks both say what was clicked, and a click would count twice; pass "
            "one"
        )
    if rules.clicked_col is None and not events:
        raise OptionError(
            "nothing says what was relevant; pass ⟦+clicked_col=⟧, ⟦+clicks=⟧ or ⟦+purchases=⟧"
        )
    for name in ("window", "clock_skew", "unattributed"):
        if getattr(rules, name) not in (None, "count") and not events:
            raise OptionError(f"⟦{name}=⟧ is about events; pass ⟦+clicks=⟧ or ⟦+purchases=⟧")
    check_event_rules(rules, events)
    keys = [rules.user_col, *rules.list_cols, rules.item_col]
    names = [*keys, *filter(None, (rules.rank_col, rules.time_col, rules.clicked_col))]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise OptionError(
            f"{twice[0]!r} is named for two purposes; user, list, item, position and time are "
            "columns of their own"
        )
    written = ["rank", "relevance", "clicks", "purchases", *as_columns(rules.value_col)]
    taken = [name for name in written if name in keys or written.count(name) > 1]
    if taken:
        raise OptionError(f"{taken[0]!r} is a column that from_impressions writes; rename yours")


def warn_of_counts(spec: ByName) -> None:
    """Warn where the counts of a spec say that metrics will mislead."""
    counts = spec["counts"]
    for name in [kind for kind in KINDS if kind in counts]:
        own = counts[name]
        n_events = own["events"] - own.get("refunded", 0)
        if n_events and not own["attributed"] and counts["impressions"]:
            reasons = ", ".join(f"{own[what]:,} {what}" for what in OUTCOMES[1:] if own[what])
            warn_user(
                f"none of the {n_events:,} {name} belongs to an impression ({reasons}); compare "
                "the ids, the units and the time zones of the two frames",
                NoOverlapWarning,
            )
        # Events that are lost since they came just before their impression.
        skew = spec["ahead"].get(name, {})
        n = skew.get("events", 0)
        least = BESIDE_SKEW if spec["clock_skew"] else WORTH_A_WARNING
        if n and n >= least * n_events and n > 2 * skew["farther"]:
            warn_user(
                f"{n:,} of {n_events:,} {name} ({n / n_events:.1%}) belong to no impression, since "
                f"those of their item to their user came just after them: {words_of_skew(skew)}",
                LogWarning,
                count=n,
            )
    for name, first in spec["first_copies"].items():
        own = {"events": counts["impressions"], **counts, **counts.get(name, {})}
        n = own["logged_twice"]
        of = own["events"]
        log = name == "log"
        if n >= WORTH_A_WARNING * of:
            warn_user(
                f"{n:,} of {of:,} {'impressions' if log else name} ({n / of:.1%}) repeat an "
                f"earlier row in every column, such as {', '.join(first)}: {WHAT_COPIES_DO[log]}. "
                "Leave the copies out if each is not an event of its own",
                LogWarning,
                count=n,
                examples=first,
            )
    devices = counts.get("persons", {"devices": 0})
    if devices["devices"] and devices["devices"] == devices["unknown_devices"]:
        warn_user(
            f"none of the {devices['devices']:,} devices is in persons; compare the ids of the two "
            "frames",
            NoOverlapWarning,
        )
    alone = counts.get("refunds", {}).get("without_purchase", 0)
    if alone:
        warn_user(
            f"{alone:,} of {counts['refunds']['events']:,} refunds cancel nothing: there is no "
            "purchase of their user and item (and order) at or before them that is not yet "
            "refunded; compare the ids and the times of the two frames",
            NoOverlapWarning,
        )


def _of_both(one: Any, two: Any) -> Any:
    """Return what is told of two parts together: the sum of two counts, what each name of two
    mappings has, the first three examples of two lists, and a text or None that both have alike."""
    if isinstance(two, dict):
        return one | {
            name: _of_both(one[name], two[name]) if name in one else two[name] for name in two
        }
    if isinstance(two, list):
        return [*one, *two][:3]
    return one if isinstance(two, str | None) else one + two


def assign_persons(
    assignment: Any,
    persons: Any,
    *,
    person_col: str,
    user_col: str = "user_id",
    time_col: str | None = None,
) -> DataFrame:
    """Turn the assignment of devices to variants into one of persons: of each person, the first
    assignment stands.

    Parameters
    ----------
    assignment : DataFrame or Arrow stream
        One row per assigned device: `user_col`, the variant, and any other columns.
    persons : DataFrame or Arrow stream
        One row per device, with `user_col` and `person_col`, as in `from_impressions`.
    person_col : str
        Column of the person in `persons`, and in the result.
    user_col : str, default "user_id"
        Column of the device, in both frames.
    time_col : str, optional
        Time of the assignment in `assignment`. By default its first row is the first assignment. If
        `persons` has this column, it is the time from which the device is the person's.

    Returns
    -------
    DataFrame
        One row per person, in the order of `assignment`: `person_col`, the columns of the first
        assignment, and `n_devices`, how many devices of the person were assigned.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError
        A column is missing; ids of devices and persons cannot stand in one column, or an assigned
        one is null; times cannot be read; `assignment` has `person_col`.

    Notes
    -----
    Someone who was assigned on the phone first and on the laptop later is analysed in the variant
    of the phone, also if the laptop showed the other one. To leave out these persons would depend
    on what the variants did to them.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> devices = pd.DataFrame(
    ...     {"user_id": ["phone", "laptop", "tv"], "variant": ["A", "B", "B"], "day": [2, 1, 1]}
    ... )
    >>> persons = pd.DataFrame({"user_id": ["phone", "laptop"], "person_id": ["ann", "ann"]})
    >>> rd.logs.assign_persons(devices, persons, person_col="person_id", time_col="day")
      person_id user_id variant  day  n_devices
    0       ann  laptop       B    1          2
    1        tv      tv       B    1          1
    """
    given = {"assignment": raw_frame(assignment, "assignment")}
    known_ids(given["assignment"], "assignment", user_col)
    found, _ = with_persons(given, persons, user_col, person_col, time_col)
    frame = found["assignment"].reset_index(drop=True)
    frame["n_devices"] = frame.groupby(person_col, observed=True)[user_col].transform("nunique")
    if time_col is not None:
        frame = in_time(frame, "assignment", time_col)
    frame = frame.drop_duplicates(person_col).sort_index().reset_index(drop=True)
    frame.insert(0, person_col, frame.pop(person_col))
    return frame
