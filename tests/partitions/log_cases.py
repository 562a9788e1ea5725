"""Raw logs that every engine must attribute as `rd.from_impressions` does.

Expected values come from `rd.from_impressions` on the same rows in memory, which other tests
compare with counts by hand. No two impressions of an item to a user have the same time, since an
engine has no order of rows that could decide between them.
"""

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd

import recdf as rd

START = pd.Timestamp("2026-09-01")
TIMED = {"time_col": "time", "window": "1h"}
PAID = {**TIMED, "value_col": "price"}
# What `check_log` says only of all users together.
TOGETHER = (
    "positions that do not start at 1",
    "hours without a row",
    "clocks in two zones",
    "times that have nothing in common",
    "users with implausible click rates",
)


def raw_log(seed=0, n=240, users=20, **columns):
    """Impressions of `users` users; some items come twice in a list, positions have holes."""
    rng = np.random.default_rng(seed)
    log = pd.DataFrame(
        {
            "user_id": rng.integers(0, users, n),
            "session_id": rng.integers(0, 3, n),
            "item_id": rng.integers(0, 9, n),
            "position": rng.integers(2, 9, n),
            "time": START + pd.to_timedelta(rng.permutation(n) * 60, unit="s"),
        }
    )
    return log.assign(**columns)


def events_of(log, every, minutes, **columns):
    """Events some minutes after every such impression, and one of a user and an item that the log
    does not have."""
    found = log.iloc[::every][["user_id", "item_id", "time"]].reset_index(drop=True)
    found["time"] += pd.to_timedelta(np.resize(minutes, len(found)), unit="min")
    alone = found[:1].assign(user_id=found["user_id"].max() + 1000)
    return pd.concat([found, alone], ignore_index=True).assign(**columns)


def case_clicks_purchases_and_refunds_at_the_borders():
    """The window is closed: events come at once, at its end, a second later, and before."""
    log = raw_log(1)
    bought = events_of(log, 5, [0, 60, 60 + 1 / 60, -3], price=3.5)
    bought.loc[0, "user_id"] = log.loc[0, "user_id"]
    given = {
        "clicks": events_of(log, 3, [0, 59, 61, -1]),
        "purchases": bought,
        "refunds": bought.iloc[::4].assign(time=bought["time"] + pd.Timedelta("2h"), price=1.25),
    }
    return log, given, {**PAID, "unattributed": "true", "attribution": "all"}


def case_persons_with_several_devices():
    log = raw_log(2)
    devices = log["user_id"].unique()[:14]
    persons = pd.DataFrame({"user_id": devices, "person_id": 5000 + devices // 3})
    persons = pd.concat([persons, persons[:2].assign(person_id=7000)], ignore_index=True)
    given = {"purchases": events_of(log, 4, [5, 50], price=2.0), "persons": persons}
    return log, given, {**PAID, "person_col": "person_id"}


def case_sessions_by_gaps():
    log = raw_log(3).drop(columns="session_id")
    return log, {"clicks": events_of(log, 3, [1])}, {**TIMED, "session_gap": "30min"}


def case_events_that_name_their_list():
    log = raw_log(4)
    clicks = log.iloc[::4][["user_id", "session_id", "item_id", "time"]].reset_index(drop=True)
    clicks.loc[::3, "session_id"] = 99
    options = {**TIMED, "rank_col": None, "attribution": "first", "unattributed": "true"}
    return log, {"clicks": clicks}, options


def case_a_column_of_positions_that_is_named():
    log = raw_log(5).rename(columns={"position": "place"})
    return log, {"clicks": events_of(log, 3, [1, 5])}, {**TIMED, "rank_col": "place"}


def case_nulls_that_are_dropped():
    log = raw_log(5).astype({"user_id": "float64", "position": "Int64"})
    log.loc[::17, "user_id"] = np.nan
    log.loc[::23, "position"] = pd.NA
    clicks = events_of(log.dropna(), 3, [1, 5])
    clicks.loc[::9, "item_id"] = np.nan
    return log, {"clicks": clicks}, {**TIMED, "null_keys": "drop"}


def case_a_column_of_clicks_and_no_times():
    log = raw_log(6).drop_duplicates(["user_id", "session_id", "item_id"]).drop(columns="time")
    log = log.drop_duplicates(["user_id", "session_id", "position"], ignore_index=True)
    return log.assign(clicked=log.index % 4 == 0), {}, {"clicked_col": "clicked"}


def case_unusual_dtypes():
    log = raw_log(7)
    days = [datetime.date(2026, 9, 1 + user % 20) for user in log["user_id"]]
    log = log.assign(
        user_id="ü" + log["user_id"].astype(str),
        price=[decimal.Decimal(f"{item}.50") for item in log["item_id"]],
        day=days,
        tall=pd.array([True, None] * (len(log) // 2), dtype="boolean"),
        item_id=log["item_id"].astype("int16"),
        position=log["position"].astype("float32"),
    )
    bought = log.iloc[::6][["user_id", "item_id", "time"]].reset_index(drop=True)
    bought = bought.assign(price=2.0, item_id=bought["item_id"].astype("int64"))
    bought["time"] += pd.Timedelta("1min")
    return log, {"purchases": bought}, {**PAID, "value": "shown"}


def case_numbers_as_times_and_no_rows_of_events():
    log = raw_log(8)
    log["time"] = (log["time"] - START) // pd.Timedelta("1s")
    clicks = events_of(raw_log(8), 4, [3])
    clicks["time"] = (clicks["time"] - START) // pd.Timedelta("1s")
    given = {"clicks": clicks, "purchases": clicks[:0].assign(price=1.0)}
    return log, given, {"time_col": "time", "window": 3600, "clock_skew": 5, "value_col": "price"}


def case_no_rows():
    log, given, options = case_clicks_purchases_and_refunds_at_the_borders()
    return log[:0], {role: frame[:0] for role, frame in given.items()}, options


CASES_OF_LOGS = {
    name.removeprefix("case_"): make for name, make in globals().items() if name.startswith("case_")
}

# Changes of the log and of the clicks, options, and words of the message beside its type.
REFUSED_LOGS = {
    "a column that is missing": (
        {"log": lambda log: log.drop(columns="position")},
        {},
        rd.ColumnError,
        "position",
    ),
    "a column of the events": (
        {"clicks": lambda clicks: clicks.drop(columns="time")},
        {},
        rd.ColumnError,
        "clicks has no column 'time'",
    ),
    "a span that is none": ({}, {"window": "an hour"}, rd.OptionError, "window="),
    "ids of two kinds": (
        {"clicks": lambda clicks: clicks.assign(item_id="x" + clicks["item_id"].astype(str))},
        {},
        rd.IdTypeError,
        r"log\['item_id'\]",
    ),
    "times of two kinds": (
        {"clicks": lambda clicks: clicks.assign(time=clicks.index)},
        {},
        rd.DataError,
        r"clicks\['time'\]",
    ),
    "a null id in one bucket": (
        {
            "clicks": lambda clicks: clicks.astype({"item_id": "Int64"}).replace(
                {"item_id": {4: pd.NA}}
            )
        },
        {},
        rd.NullKeyError,
        r"clicks has null ids: .*clicks\['item_id'\]",
    ),
    "no order of rows": (
        {},
        {"rank_col": None, "time_col": None, "clicked_col": "clicked", "clicks": None},
        rd.OptionError,
        "no order of rows",
    ),
}


def refused_log(name):
    """The log and the clicks of a row of `REFUSED_LOGS`, and the options."""
    changes, options, error, words = REFUSED_LOGS[name]
    log = raw_log(11, clicked=True)
    frames = {"log": log, "clicks": events_of(log, 3, [1])}
    frames = {role: changes.get(role, lambda frame: frame)(one) for role, one in frames.items()}
    clicks = options.get("clicks", frames["clicks"])
    more = {name: value for name, value in options.items() if name != "clicks"}
    return frames["log"], clicks, {"time_col": "time", **more}, error, words


def said_of(function, *args, **options):
    """What a function returns, and the warnings it gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = function(*args, **options)
    kinds = (rd.LogWarning, rd.NoOverlapWarning)
    said = [(one.category, str(one.message)) for one in caught if one.category in kinds]
    return found, [(kind, text.partition(", such as")[0]) for kind, text in said]


def in_key_order(frame):
    return frame.sort_values(
        [name for name in frame.columns if name != "tall"], ignore_index=True, kind="stable"
    )


def assert_same_lists(found, expected, of_engine, dtypes=True):
    """`of_engine` makes a pandas frame of a table of the engine."""
    for name in ("true", "pred"):
        one, two = (
            in_key_order(x) for x in (of_engine(getattr(found, name)), getattr(expected, name))
        )
        if not dtypes:
            one, two = (x.astype(object).where(x.notna(), None) for x in (one, two))
        pd.testing.assert_frame_equal(one, two, check_dtype=dtypes)
    loose = ("first_copies", "counts")
    specs = [{k: v for k, v in x.spec.items() if k not in loose} for x in (found, expected)]
    assert specs[0] == specs[1]
    assert found.spec["counts"] == expected.spec["counts"]
    pd.testing.assert_frame_equal(found.events, expected.events)


def assert_same_findings(found, expected):
    """All findings but those that need all users, with counts and shares, and without quantiles of
    a part of the users."""
    assert not found["effect"].str.contains("half").any()
    names = ["finding", "severity", "count", "share"]
    found, expected = (
        pd.DataFrame(x)[names].sort_values(["severity", "finding"], ignore_index=True)
        for x in (found, expected[~expected["finding"].isin(TOGETHER)])
    )
    pd.testing.assert_frame_equal(found, expected, rtol=1e-12)


def persons_of_another_kind():
    """A log and clicks of devices that are texts, and persons that are integers: one device has no
    person and can be none."""
    time = pd.Timestamp("2026-01-01", tz="UTC")
    log = pd.DataFrame({"user_id": "a", "item_id": [*"abc"], "position": [1, 2, 3], "time": time})
    clicks = pd.DataFrame({"user_id": ["a", "h"], "item_id": "a", "time": time})
    persons = pd.DataFrame({"user_id": ["a"], "person_id": [1]})
    options = {"time_col": "time", "window": "1h", "person_col": "person_id", "list_cols": ()}
    return log, clicks, persons, options
