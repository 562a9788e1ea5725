"""`time_slice`: days, weeks and hours of a clock, by hand and beside Python's calendar."""

import datetime as dt
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import recdf as rd

BERLIN = "Europe/Berlin"


def by_hand(moment, every, zone):
    """The slice of a moment (UTC) by Python's own calendar."""
    there = moment.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    day = dt.datetime(there.year, there.month, there.day)
    return {
        "1h": there.replace(minute=0, second=0, microsecond=0),
        "1D": day,
        "1W": day - dt.timedelta(days=day.weekday()),
        "1M": day.replace(day=1),
        "hour": there.hour,
        "weekday": there.weekday(),
    }[every]


@given(
    moments=st.lists(
        st.datetimes(dt.datetime(2020, 1, 1), dt.datetime(2030, 1, 1)), min_size=1, max_size=10
    ),
    every=st.sampled_from(["1h", "1D", "1W", "1M", "hour", "weekday"]),
    zone=st.sampled_from([BERLIN, "Asia/Kolkata", "America/New_York", "UTC"]),
)
@example(moments=[dt.datetime(2026, 10, 25, hour) for hour in (0, 1, 2)], every="1h", zone=BERLIN)
@example(moments=[dt.datetime(2026, 10, 25, hour) for hour in (0, 1, 2)], every="hour", zone=BERLIN)
@example(moments=[dt.datetime(2026, 3, 29, hour) for hour in (0, 1, 22)], every="1D", zone=BERLIN)
@example(
    moments=[dt.datetime(2024, 2, 29, 23), dt.datetime(2024, 12, 31, 23)], every="1M", zone=BERLIN
)
@example(
    moments=[dt.datetime(2026, 11, 1, 4), dt.datetime(2026, 11, 2, 4)],
    every="1W",
    zone="America/New_York",
)
@example(
    moments=[dt.datetime(2026, 1, 4, 18, 29), dt.datetime(2026, 1, 4, 18, 30)],
    every="weekday",
    zone="Asia/Kolkata",
)
def test_equals_the_calendar_of_python(moments, every, zone):
    frame = pd.DataFrame({"time": pd.to_datetime(moments).tz_localize("UTC")})
    found = rd.logs.time_slice(frame, "time", every, tz=zone, name="slice")
    assert found["slice"].tolist() == [by_hand(moment, every, zone) for moment in moments]
    assert (
        found["slice"].dt.tz is None if every.startswith("1") else found["slice"].dtype == "Int64"
    )


def test_names_of_columns_and_a_frame_left_alone():
    frame = pd.DataFrame({"time": pd.to_datetime(["2026-09-03 13:45"])}, index=[5])
    copy = frame.copy()
    for every, name in {
        "1D": "day",
        "1W": "week",
        "1M": "month",
        "1h": "hour_start",
        "hour": "hour",
    }.items():
        assert rd.logs.time_slice(frame, "time", every).columns.tolist() == ["time", name]
    assert rd.logs.time_slice(frame, "time", "day").index.tolist() == [5]
    pd.testing.assert_frame_equal(frame, copy)


def test_nulls_and_arrow():
    frame = pd.DataFrame({"time": pd.to_datetime(["2026-09-03 13:45", None])})
    assert rd.logs.time_slice(frame, "time", "1D")["day"].isna().tolist() == [False, True]
    assert rd.logs.time_slice(frame, "time", "hour")["hour"].tolist() == [13, pd.NA]
    assert rd.logs.time_slice(pa.Table.from_pandas(frame), "time", "1W")["week"][0] == pd.Timestamp(
        "2026-08-31"
    )


def test_the_hour_that_comes_twice_is_one_slice():
    frame = pd.DataFrame(
        {"time": pd.to_datetime(["2026-10-25 00:30", "2026-10-25 01:30"]).tz_localize("UTC")}
    )
    assert rd.logs.time_slice(frame, "time", "1h", tz=BERLIN)["hour_start"].nunique() == 1
    assert rd.logs.time_slice(frame, "time", "1h")["hour_start"].nunique() == 2


@pytest.mark.parametrize(
    ("frame", "options", "error", "words"),
    [
        ({"time": ["2026-09-03"]}, {}, rd.DataError, "pd.to_datetime(frame['time'])"),
        ({"time": [7]}, {}, rd.DataError, "expected times"),
        ({"time": pd.to_datetime(["2026-09-03"])}, {"tz": "UTC"}, rd.DataError, "has no time zone"),
        (
            {"time": pd.to_datetime(["2026-09-03"], utc=True)},
            {"tz": "Mars/Base"},
            rd.OptionError,
            "is no time zone",
        ),
        ({"time": pd.Categorical([1, 2, None])}, {}, rd.DataError, "expected times"),
        ({"time": pd.to_datetime(["2026-09-03"])}, {"every": "2X"}, rd.OptionError, "valid are"),
        ({"time": pd.to_datetime(["2026-09-03"]), "day": 1}, {}, rd.OptionError, "pass name="),
        (
            {"when": pd.to_datetime(["2026-09-03"])},
            {},
            rd.ColumnError,
            "frame has no column 'time'",
        ),
    ],
)
def test_bad_input(frame, options, error, words):
    with pytest.raises(error) as found:
        rd.logs.time_slice(pd.DataFrame(frame), "time", **{"every": "1D", **options})
    assert words in str(found.value)
