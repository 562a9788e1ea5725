"""`check_log`: unusual features of a raw log of impressions and its events, one row per finding;
and what moved between two runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ..errors import ColumnError, DataError, IdTypeError, OptionError, RecdfError
from ..inputs.codes import first_rows
from ..inputs.constraints import NATURAL, Positive, check_value
from ..inputs.door import takes_options
from ..inputs.frames import as_frame, column, float_column
from ..inputs.options import ByName, Columns, Options
from ..inputs.sorting import dense_codes, distinct
from ..publishing import read_bytes
from ..stats.many_tests import adjust
from ..stats.numbers import Integers
from ..stats.shares import equal_shares_test
from ..tables.cells import amount
from ..tables.findings import Findings, Severity, row_objects
from .attribution import OUTCOMES, rank_lists
from .event_checks import (
    WHAT_COPIES_DO,
    OddRow,
    logged_twice,
    odd_click_rates,
    odd_clocks,
    odd_events,
)
from .impression_rows import (
    SESSION,
    LogInParts,
    LogRows,
    Rules,
    check_event_rules,
    key_of_lists,
    read_log_rows,
    read_persons,
    without_refunded,
)
from .times import TICKS_PER_SECOND

# ------------------------------------------------------------------------------------------
# `check_log`: unusual features of a raw log of impressions and its events, one row per finding.


# If the mean of 1 / propensity is so many standard errors from the number of actions, the two do
# not fit.
FAR = 4.0
# Where there are enough users, none of them should have more than this share of the impressions.
MUCH, ENOUGH_USERS = 0.05, 100
# Findings that are counts: of refunds and of devices, by the names of the count and of its whole.
COUNTED_EVENTS: tuple[tuple[str, str, str, Severity, str, str, str], ...] = (
    (
        "refunds",
        "refunds_without_purchase",
        "refunds without a purchase",
        "warning",
        "without_purchase",
        "events",
        "they cancel nothing; look for the purchase in a time before the log, or in another order "
        "or user",
    ),
    (
        "refunds",
        "refunds_beyond_price",
        "refunds beyond what was paid",
        "warning",
        "beyond_price",
        "events",
        "what is beyond the price changes nothing",
    ),
    (
        "persons",
        "unknown_devices",
        "devices that persons does not name",
        "info",
        "unknown_devices",
        "devices",
        "each is a person of its own",
    ),
    (
        "persons",
        "shared_devices",
        "devices of several persons",
        "warning",
        "shared_devices",
        "devices",
        "each is taken for a device of the first of them",
    ),
)


@takes_options("user_col", "item_col", "value_col")
def check_log(
    log: Any,
    *,
    user_col: str = "user_id",
    item_col: str = "item_id",
    rank_col: str | None = "position",
    list_cols: Columns = (SESSION,),
    time_col: str | None = None,
    clicks: Any = None,
    purchases: Any = None,
    refunds: Any = None,
    order_col: str | None = None,
    persons: Any = None,
    person_col: str | None = None,
    value_col: str | None = None,
    window: Any = None,
    session_gap: Any = None,
    named_lists: Literal["clicks", "all", "none"] = "clicks",
    variant_col: str | None = None,
    propensity_col: str | None = None,
    n_actions: Positive | None = None,
    many: int = 1000,
    options: Options | None = None,
) -> pd.DataFrame:
    """Find what is unusual in a log of impressions, and what it does to the numbers: one row per
    finding.

    Parameters
    ----------
    log : DataFrame or Arrow stream
        One row per impression.
    user_col, item_col, rank_col, list_cols, time_col, clicks, purchases, refunds, order_col, \
persons, person_col, value_col, window, session_gap, named_lists
        As in `from_impressions`. What refunds cancel is no purchase, and persons are the users.
    variant_col : str, optional
        Column of the variant of an experiment. Variants that change within a list or between the
        lists of a user are reported.
    propensity_col : str, optional
        Column of the probability with which the item was shown at its place.
    n_actions : int, optional
        How many items there were to choose from. Default: the number of items in the log.
    many : int, default 1000
        A user with more impressions than this is reported, since it is probably a program.
    options : Options, optional
        `user_col`, `item_col` and `value_col` of a project, where they are not given here.

    Returns
    -------
    DataFrame
        `finding`, `severity` ("error": `from_impressions` refuses the log; "warning": numbers
        change; "info": worth knowing), `count`, `share` (of the rows, lists, users, events or hours
        that it concerns), `examples` (text), `effect` (what it does to the numbers, and what to
        do). Errors first. A clean log has no row.

    Raises
    ------
    ColumnError, OptionError
        If a column is missing or an option is wrong.

    Notes
    -----
    It looks for null ids, times and positions; ids and clocks that cannot be compared; clocks that
    differ by some hours; clicks and purchases without an impression, before their impression (with
    quantiles of how long before), after the window, written twice, or that name an unknown list or
    another one than that of the last impression; refunds without a purchase, or beyond what was
    paid; devices without a person, or of several; prices below 0; users with more than `many`
    impressions, or with over 5 % of them; users who click far more often than the others; rows that
    were logged twice; items shown twice in a list; positions that do not start at 1, have holes or
    occur twice; hours without any row; variants that change; propensities outside (0, 1], or whose
    inverses do not have the number of actions as their mean.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> log = pd.DataFrame({
    ...     "user_id": [1, 1, 2], "session_id": [1, 1, 1],
    ...     "item_id": ["a", "a", "b"], "position": [1, 2, 1]})
    >>> rd.logs.check_log(log)[["finding", "severity", "count", "share", "examples"]]
                           finding severity  count  share     examples
    0  items shown twice in a list  warning      1    0.5  (1, 1, 'a')
    """
    check_value("many", many, NATURAL)
    lists = key_of_lists(list_cols, session_gap, user_col, person_col)
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
        unattributed="true",
    )
    given = {"clicks": clicks, "purchases": purchases, "refunds": refunds}
    events = {name: data for name, data in given.items() if data is not None}
    check_event_rules(rules, events)
    frames = {"log": log, **events, "persons": persons}
    work = partial(
        log_findings,
        rules=rules,
        variant_col=variant_col,
        propensity_col=propensity_col,
        many=many,
    )
    if isinstance(log, LogInParts):
        try:
            found = log.run(work, rules)
        except IdTypeError as error:  # rows cannot be dealt to their persons
            found = Findings()
            found.add(*_unreadable(error))
            return found.table()
    else:
        found = work(frames, whole=True, n_actions=n_actions)
    empty = found.rows[0]
    found.rows = found.rows[:1] if empty["count"] == empty["of"] else found.rows[1:]
    return found.table()


def log_findings(given: ByName, **how: Any) -> Findings:
    """Return what is unusual in some frames: the log, its events and the persons (or None), by
    role; findings of several parts of the users add up."""
    found = Findings()
    for row in _odd_rows(given, **how):
        found.add(*row)
    return found


def _odd_rows(
    given: ByName,
    rules: Rules,
    variant_col: str | None,
    propensity_col: str | None,
    many: int,
    whole: bool = False,
    n_actions: int | None = None,
) -> Iterator[OddRow]:
    """Yield each finding. Without `whole` the frames are those of some users, and findings that
    need all users are left out."""
    frames = {
        role: as_frame(one, role) for role, one in given.items() if one is not None or role == "log"
    }
    persons = frames.pop("persons", None)
    log = frames["log"]
    effect = "there is nothing to evaluate"
    yield "empty", "log is empty", "error", not len(log), 1, "0 rows", effect
    if whole and not len(log):
        return
    for role, frame in frames.items():
        names = rules.key_columns(role)
        if rules.device_col is not None:  # a device is named as the user, and as a column of lists
            names = list(dict.fromkeys([rules.device_col, *names[1:]]))
        for own in names:
            null = column(frame, own, role).isna().sum()
            what = f"null {own} in {role}"
            if role == "log" and own == rules.rank_col:
                what = "positions missing"
            effect = 'from_impressions raises; ⟦+null_keys="drop"⟧ leaves these rows out'
            yield "null_keys", what, "error", null, len(frame), f"{role}[{own!r}]", effect
    try:
        read, devices = read_persons({**frames, "persons": persons}, rules)
        rows = read_log_rows(read.pop("log"), read, rules)
        remaining, refunded = without_refunded(rows.events, rules)
        rows.clock.span(rules.window, "window")
    except (ColumnError, OptionError):
        raise
    except RecdfError as error:
        yield _unreadable(error)
        return
    if whole and not len(rows.log):
        return
    for one in remaining:
        yield from odd_events(rows, one, rules, whole)
        if whole and one.name == "clicks":
            yield from odd_click_rates(rows.log, one, rules.user_col)
    for name, copies in logged_twice(rows, rules).items():
        what = "rows logged twice" if name == "log" else f"{name} logged twice"
        effect = f"{WHAT_COPIES_DO[name == 'log']}; {name}.drop_duplicates() takes the copies out"
        yield "logged_twice", what, "warning", copies.n, copies.of, copies.first, effect
    counts = refunded | devices
    for role, code, what, severity, count, whole_of, effect in COUNTED_EVENTS:
        n, of_all = (counts.get(role, {}).get(name, 0) for name in (count, whole_of))
        yield code, what, severity, n, of_all, "", effect
    if whole:
        yield from odd_clocks(rows, rules)
    yield from _heavy_users(rows.log, many, rules, whole)
    yield from _odd_lists(rows.log, rules, whole)
    if whole and rows.log.time is not None and not rows.clock.is_number:
        yield _empty_hours(rows.log.time // (3600 * TICKS_PER_SECOND[rows.clock.unit]))
    if variant_col is not None:
        yield from _odd_variants(rows.log, variant_col, rules)
    if propensity_col is not None:
        yield from _odd_propensities(rows.log, propensity_col, n_actions, whole)


def _unreadable(error: RecdfError) -> OddRow:
    what = "columns that cannot be read or compared"
    return "unreadable", what, "error", 1, None, str(error), "from_impressions raises"


def _empty_hours(of_rows: Integers) -> OddRow:
    """Return the hours without any row between the first row and the last."""
    hours = distinct(of_rows)
    length = np.diff(hours) - 1
    largest = np.argsort(-length, kind="stable")[:5]
    starts = ((hours[largest] + 1) * 3600).astype("datetime64[s]").astype(str)
    longest = zip(length[largest], starts, strict=True)
    return (
        "empty_hours",
        "hours without a row",
        "warning",
        length.sum(),
        hours[-1] - hours[0] + 1,
        ", ".join(f"{n:,} from {start}" for n, start in longest if n),
        "the log is broken there, or nobody was awake; leave the days concerned out of a "
        "comparison over time",
    )


def _heavy_users(log: LogRows, many: int, rules: Rules, whole: bool) -> Iterator[OddRow]:
    """Yield users with too many impressions to be people."""
    rows = np.bincount(log.user)
    order = np.argsort(-rows, kind="stable")
    busy = order[rows[order] > many]
    labels = log.frame[rules.user_col].take(first_rows(log.user, len(rows))[order[:5]]).tolist()
    most = zip(labels, rows[busy[:5]], strict=False)
    words = ", ".join(f"{label!r}: {n:,}" for label, n in most)
    effect = "programs do not click like people: leave such users out"
    if whole:
        share = rows[busy].sum() / len(log)
        effect = f"they have {share:.1%} of the impressions; {effect}"
    what = f"users with over {amount(many, 'impression')}"
    n_users = np.count_nonzero(rows > 0)
    yield "many_impressions", what, "warning", len(busy), n_users, words, effect
    if whole and n_users >= ENOUGH_USERS and MUCH * len(log) < rows.max() <= many:
        what = "a user with over 5 % of the impressions"
        effect = (
            "clicks per impression are then mostly those of one user; leave the user out if it is "
            "a program"
        )
        yield "large_user", what, "warning", 1, n_users, repr(labels[0]), effect


def _odd_lists(log: LogRows, rules: Rules, whole: bool) -> Iterator[OddRow]:
    """Yield items shown twice in a list, and positions that do not start at 1, have holes or occur
    twice."""
    names = [rules.user_col, *rules.source_lists, rules.item_col]
    ranking = rank_lists(log.lists, log.position)
    n = ranking.n_lists
    start = ranking.start
    concerned = len(distinct(log.lists.code[log.repeated]))
    some = dict.fromkeys(row_objects(log.frame[names].take(log.repeated[:5])))
    what = "items shown twice in a list"
    yield "item_twice", what, "warning", concerned, n, some, "the first impression stands for all"
    if log.position is None:
        return
    effect = "ranks for metrics count from 1; the positions stay as they are in pred"
    what = "positions that do not start at 1"
    yield "first_position", what, "info", whole and start != 1, 1, f"from {start:g}", effect
    effect = (
        "ranks close the holes (advertisements, collapsed places); the positions stay as they are "
        "in pred"
    )
    holes = ranking.lists_with_holes
    ties = ranking.lists_with_ties
    yield "position_holes", "positions with holes", "info", holes, n, "", effect
    effect = (
        "several pages or requests are one list; name the column of the request in ⟦+list_cols=⟧"
    )
    yield "position_twice", "a position twice in a list", "warning", ties, n, "", effect


def _odd_variants(log: LogRows, name: str, rules: Rules) -> Iterator[OddRow]:
    values = column(log.frame, name, "log")
    null = values.isna().sum()
    where = f"log[{name!r}]"
    effect = "these impressions belong to no arm"
    yield "null_variants", "null variants", "warning", null, len(log), where, effect
    variant = pd.factorize(values)[0]
    known = np.flatnonzero(values.notna())
    names = [rules.user_col, *rules.source_lists]
    within = "the list belongs to no arm: leave it out"
    across = 'join_experiment refuses them, or leaves them out with ⟦+multi_variant="drop"⟧'
    for code, what, unit, labels, effect in (
        ("mixed_lists", "variants that change within a list", log.lists.code, names, within),
        ("mixed_users", "users in several variants", log.user, [rules.user_col], across),
    ):
        unit = unit[known]
        pairs, n = dense_codes([unit, variant[known]])
        row = first_rows(pairs, n)
        several = np.flatnonzero(np.bincount(unit[row]) > 1)
        some = known[row[np.isin(unit[row], several[:5])]]
        examples = dict.fromkeys(row_objects(log.frame[labels].take(some[:5])))
        yield code, what, "warning", len(several), len(distinct(unit[row])), examples, effect


def _odd_propensities(
    log: LogRows, name: str, n_actions: int | None, whole: bool
) -> Iterator[OddRow]:
    """Yield invalid propensities, and a mean of their inverses that differs from the number of
    actions."""
    given = float_column(log.frame, name, "log")
    bad = ~((given > 0) & (given <= 1))
    what = "propensities outside (0, 1]"
    some = given[bad][:5].tolist()
    effect = "a propensity is a probability above 0; estimates of other policies divide by it"
    yield "bad_propensities", what, "error", bad.sum(), len(given), some, effect
    inverse = 1 / given[~bad]
    actions = len(distinct(log.item)) if n_actions is None else n_actions
    if not whole or len(inverse) < 2:
        return
    mean = inverse.mean()
    error = inverse.std(ddof=1) / np.sqrt(len(inverse))
    if abs(mean - actions) > max(FAR * error, 1e-9 * actions):
        what = "propensities that do not fit the actions"
        words = f"mean of 1/propensity {mean:.4g}, actions {actions:,}"
        effect = (
            "propensities are not those with which the items were chosen; pass ⟦+n_actions=⟧ if "
            "others could be shown"
        )
        yield "unfit_propensities", what, "warning", len(inverse), len(given), words, effect


# ------------------------------------------------------------------------------------------
# What moved between two runs of `impressions_parquet`: shares of the impressions and events, by
# the counts of their specs.
#
# A share has moved if two things hold. It is beyond chance: the test of two shares (χ², or
# Fisher's where an expected count is below 8) has p < 0.001 after Holm's correction over all
# shares. And it is large: the odds of the share changed by a quarter or more, since nights are
# never alike to the last event.


SPEC_FILE = "impressions.json"
BEYOND_CHANCE, LEAST_ODDS = 0.001, 1.25
# Rules that decide what the counts mean.
RULES = (
    *("list_cols", "window", "clock_skew", "session_gap", "attribution", "named_lists"),
    "device_col",
)


class CountOf(NamedTuple):
    """How many of how many impressions, events or devices."""

    n: int
    of: int


def read_spec(path: Any) -> dict[str, Any]:
    """Read the record of an earlier run: its file, or the folder that has it.

    Raises
    ------
    DataError
        If the file is no such record.
    """
    file = Path(path)
    file = file / SPEC_FILE if file.is_dir() else file
    try:
        found = json.loads(read_bytes(file))
        return {"counts": {"impressions": found["counts"]["impressions"]}, **found}
    except (ValueError, LookupError, TypeError, RecursionError):
        raise DataError(
            f"{file} is no {SPEC_FILE} of recdf impressions", argument="against"
        ) from None


def shares_of(counts: ByName) -> Iterator[tuple[str, CountOf]]:
    """Give the shares that the counts of a spec hold, each by what it is a share of."""
    n = counts["impressions"]
    null = counts.get("null_rows", {})
    for name in ("repeated", "logged_twice"):
        yield f"impressions {name}", CountOf(counts.get(name, 0), n)
    yield "impressions with a null", CountOf(null.get("log", 0), null.get("log", 0) + n)
    for kind in ("clicks", "purchases", "refunds"):
        own = counts.get(kind, {"events": 0})
        rows = own["events"]
        rest = rows - own.get("refunded", 0)
        for name in ("logged_twice", "refunded", "without_purchase"):
            yield f"{kind} {name}", CountOf(own.get(name, 0), rows)
        yield f"{kind} with a null", CountOf(null.get(kind, 0), null.get(kind, 0) + rows)
        for name in OUTCOMES:
            yield f"{kind} {name}", CountOf(own.get(name, 0), rest)
    devices = counts.get("persons", {})
    for name in ("unknown_devices", "shared_devices"):
        yield name, CountOf(devices.get(name, 0), devices.get("devices", 0))


def moved_shares(counts: ByName, older: ByName) -> list[str]:
    """Return a sentence for each share that moved between the counts of two specs, and for events
    that only one of them has."""
    said = []
    pairs = []
    for (name, one), (_, two) in zip(shares_of(counts), shares_of(older), strict=True):
        if one.of and two.of:
            pairs.append((name.replace("_", " "), one, two))
        elif one.of != two.of and name.endswith((" attributed", "impressions repeated")):
            said.append(f"{one.of:,} {name.partition(' ')[0]}, and {two.of:,} before")
    tests = [equal_shares_test(*zip(one, two, strict=True))[1] for _, one, two in pairs]
    for (name, one, two), p in zip(pairs, adjust(np.array(tests), "holm"), strict=True):
        odds = [(share.n + 0.5) / (share.of - share.n + 0.5) for share in (one, two)]
        if p < BEYOND_CHANCE and abs(math.log(odds[0] / odds[1])) >= math.log(LEAST_ODDS):
            said.append(
                f"{name}: {one.n:,} of {one.of:,} ({one.n / one.of:.1%}), and {two.n:,} of "
                f"{two.of:,} ({two.n / two.of:.1%}) before"
            )
    return said


def moved_since(spec: ByName, older: ByName) -> list[str]:
    """Return a sentence for each share that moved since an earlier run, or for each rule that is
    another one."""
    other = [name for name in RULES if name in older and spec.get(name) != older[name]]
    if not other:
        return moved_shares(spec["counts"], older["counts"])
    return [
        f"shares are not compared, since {name} is {spec.get(name)!r}, and {older[name]!r} before"
        for name in other
    ]
