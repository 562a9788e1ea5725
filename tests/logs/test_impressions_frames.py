"""`from_impressions`: times, ids and frames of any kind, and bad input."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from logs.impression_logs import bought, log_of

import recdf as rd

# -- times, ids and frames


TIMES = {
    "seconds": lambda t: t.astype("datetime64[s]"),
    "nanoseconds": lambda t: t.astype("datetime64[ns]"),
    "objects": lambda t: pd.Series(list(t), dtype=object),
    "arrow": lambda t: t.astype(pd.ArrowDtype(pa.timestamp("ms"))),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("one", TIMES)
@pytest.mark.parametrize("two", TIMES)
def test_units_of_time_may_differ(one, two):
    log, purchases = log_of(), bought(60)
    log["time"], purchases["time"] = TIMES[one](log["time"]), TIMES[two](purchases["time"])
    true, _ = rd.from_impressions(log, time_col="time", purchases=purchases, window="0s")
    assert true["purchases"].tolist() == [0, 0, 1, 0]


def test_time_zones_may_differ():
    log, purchases = log_of(), bought(60)
    log["time"] = log["time"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    purchases["time"] = purchases["time"].dt.tz_localize("UTC").dt.tz_convert("America/New_York")
    true, _ = rd.from_impressions(log, time_col="time", purchases=purchases, window="0s")
    assert true["purchases"].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("kind", ["int64", "float64", "Int64"])
def test_times_as_plain_numbers(kind):
    log, purchases = log_of(time=[0, 0, 60, 0]), bought(0).assign(time=60)
    log["time"] = log["time"].astype(kind)
    true, _ = rd.from_impressions(log, time_col="time", purchases=purchases, window=0)
    assert true["purchases"].tolist() == [0, 0, 1, 0]
    true, _ = rd.from_impressions(log, time_col="time", purchases=purchases, window=2**64)
    assert true["purchases"].tolist() == [0, 0, 1, 0]


def test_dates():
    log = log_of(time=pd.to_datetime(["2026-09-01"] * 4).date)
    purchases = bought(0).assign(time=pd.to_datetime(["2026-09-02"]).date)
    true, _ = rd.from_impressions(
        log, time_col="time", purchases=purchases, window="1D", attribution="all"
    )
    assert true["purchases"].tolist() == [0.5, 0, 0.5, 0]


@pytest.mark.parametrize("kind", ["str", "category", "arrow"])
def test_ids_of_any_dtype(kind):
    dtype = pd.ArrowDtype(pa.large_string()) if kind == "arrow" else kind
    log = log_of().astype({"user_id": dtype, "item_id": dtype})
    true, pred = rd.from_impressions(log, time_col="time", purchases=bought(70))
    assert true["purchases"].tolist() == [0, 0, 1, 0]
    for name in ("user_id", "item_id"):
        assert pred[name].dtype == true[name].dtype == log[name].dtype


def test_arrow_streams():
    log, purchases = pa.Table.from_pandas(log_of()), pa.Table.from_pandas(bought(70))
    true, _ = rd.from_impressions(log, time_col="time", purchases=purchases)
    assert true["purchases"].tolist() == [0, 0, 1, 0]


def test_inputs_are_not_modified():
    log, purchases = log_of(), bought(70)
    copies = log.copy(), purchases.copy()
    found = rd.from_impressions(log, time_col="time", purchases=purchases, value_col="price")
    for table in found:
        for name in table.columns:
            table.loc[:, name] = table[name].iloc[0]
    pd.testing.assert_frame_equal(log, copies[0])
    pd.testing.assert_frame_equal(purchases, copies[1])


def test_an_index_is_never_read():
    log = log_of().set_axis([7, 7, 3, 1])
    true, pred = rd.from_impressions(log, time_col="time", purchases=bought(70).set_axis([9]))
    assert true["purchases"].tolist() == [0, 0, 1, 0]
    assert isinstance(true.index, pd.RangeIndex)
    assert isinstance(pred.index, pd.RangeIndex)


def test_empty_frames():
    log, purchases = log_of(), bought(70)
    true, pred = rd.from_impressions(
        log, time_col="time", purchases=purchases[:0], value_col="price"
    )
    assert (true["relevance"].sum(), true["price"].sum(), len(pred)) == (0, 0, 4)
    found = rd.from_impressions(log[:0], time_col="time", purchases=purchases, value_col="price")
    assert (len(found.true), len(found.pred), found.events["never_shown"].tolist()) == (0, 0, [1])


def test_rows_with_nulls_are_dropped_and_counted():
    log, purchases = log_of(), pd.concat([bought(70), bought(70, user=None)], ignore_index=True)
    log.loc[1, "time"] = pd.NaT
    log.loc[3, "position"] = np.nan
    found = rd.from_impressions(log, time_col="time", purchases=purchases, null_keys="drop")
    assert found.pred["item_id"].tolist() == ["tea", "tea"]
    assert found.spec["counts"]["null_rows"] == {"log": 2, "purchases": 1}


def test_the_spec_is_json_and_travels_with_the_tables():
    found = rd.from_impressions(
        log_of(), time_col="time", purchases=bought(70), window=pd.Timedelta("1h")
    )
    assert json.loads(json.dumps(found.spec)) == found.spec
    assert found.spec["counts"]["purchases"]["attributed"] == 1
    assert found.spec["window"] == "0 days 01:00:00"
    assert (
        found.true.attrs["recdf_impressions"] == found.pred.attrs["recdf_impressions"] == found.spec
    )
    assert "4 impressions in 3 lists" in repr(found)


# --------------------------------------------------------------------------------------------------
# bad input


CLICKED = {"clicked_col": "clicked"}
BOUGHT = {"time_col": "time", "purchases": bought(70)}
NAIVE, ZONED = bought(70), bought(70).assign(time=lambda f: f["time"].dt.tz_localize("UTC"))
BAD = [
    ({}, {}, rd.OptionError, "nothing says what was relevant"),
    ({}, {"clicked_col": "x"}, rd.ColumnError, "log has no column 'x'"),
    ({}, {**BOUGHT, "time_col": None}, rd.OptionError, "purchases= needs time_col="),
    ({}, {**CLICKED, "session_gap": "30min"}, rd.OptionError, "session_gap= needs time_col="),
    ({}, {**CLICKED, "window": "24h"}, rd.OptionError, "window= is about events"),
    ({}, {**CLICKED, "clicks": bought(1), "time_col": "time"}, rd.OptionError, "would count twice"),
    ({}, {**CLICKED, "value_col": "price"}, rd.OptionError, "pass purchases="),
    ({}, {**CLICKED, "attribution": "middle"}, rd.OptionError, "attribution"),
    ({}, {**CLICKED, "relevance": {"seen": 1}}, rd.OptionError, "relevance has 'seen'"),
    (
        {},
        {**CLICKED, "relevance": {"clicked": -1}},
        rd.OptionError,
        "expected a number of at least 0",
    ),
    (
        {},
        {**CLICKED, "list_cols": "user_id"},
        rd.OptionError,
        "'user_id' is named for two purposes",
    ),
    (
        {},
        {**CLICKED, "session_gap": "30min", "time_col": "time"},
        rd.OptionError,
        "session_gap makes one",
    ),
    ({"session_id": None}, CLICKED, rd.NullKeyError, "4 in log['session_id']"),
    ({"position": np.nan}, CLICKED, rd.DataError, "4 in log['position']"),
    ({"clicked": None}, CLICKED, rd.DataError, "where null means no click"),
    ({"clicked": -1}, CLICKED, rd.DataError, "negative"),
    ({"clicked": np.inf}, CLICKED, rd.DataError, "infinite"),
    ({"clicked": "yes"}, CLICKED, rd.DataError, "expected numbers"),
    ({"rank": 1}, CLICKED, rd.DataError, "log has a column 'rank'"),
    ({"user_id": 5}, BOUGHT, rd.IdTypeError, "purchases['user_id'] string ids"),
    ({"time": "2026-09-01"}, BOUGHT, rd.DataError, "pd.to_datetime(log['time'])"),
    ({"time": 7}, BOUGHT, rd.DataError, "turn the numbers into datetimes"),
    ({}, {**BOUGHT, "purchases": ZONED}, rd.DataError, "log['time'].dt.tz_localize"),
    ({}, {**BOUGHT, "window": 24}, rd.OptionError, 'write window="24s"'),
    ({}, {**BOUGHT, "window": "a day"}, rd.OptionError, "is no span of time"),
    ({}, {**BOUGHT, "window": "2"}, rd.OptionError, "window='2' has no unit"),
    ({}, {**BOUGHT, "clock_skew": "1.5"}, rd.OptionError, "clock_skew='1.5' has no unit"),
    ({"clicked": 0.5}, {"clicked_col": "clicked"}, rd.DataError, "negative or fractions (0.5)"),
    ({}, {**BOUGHT, "window": "-1h"}, rd.OptionError, "not negative"),
    ({}, {**BOUGHT, "value_col": "cost"}, rd.ColumnError, "purchases has no column 'cost'"),
    (
        {},
        {**BOUGHT, "purchases": NAIVE.assign(price=None), "value_col": "price"},
        rd.DataError,
        "null or infinite",
    ),
    ({}, {**BOUGHT, "purchases": {"ann": ["tea"]}}, TypeError, "purchases is a mapping"),
    (
        {},
        {**BOUGHT, "purchases": NAIVE.assign(item_id=None)},
        rd.NullKeyError,
        "purchases has null ids",
    ),
]


@pytest.mark.parametrize(("columns", "options", "error", "words"), BAD, ids=[row[3] for row in BAD])
def test_bad_input(columns, options, error, words):
    log = log_of(**{"clicked": True, **columns})
    with pytest.raises(error) as found:
        rd.from_impressions(log, **options)
    assert words in str(found.value)


@pytest.mark.parametrize(
    ("drop", "words"),
    [("session_id", "pass list_cols=() for one list per user"), ("position", "pass rank_col=None")],
)
def test_a_missing_column_names_the_way_out(drop, words):
    with pytest.raises(rd.ColumnError) as found:
        rd.from_impressions(log_of(clicked=True).drop(columns=drop), clicked_col="clicked")
    assert words in str(found.value)


def test_numbers_for_times_need_a_number_for_the_window():
    options = {"time_col": "time", "purchases": bought(0).assign(time=60)}
    with pytest.raises(rd.OptionError, match="the times are plain numbers"):
        rd.from_impressions(log_of(time=0), window="24h", **options)


def test_times_of_mixed_zones_in_one_column():
    zones = ["UTC", "Asia/Tokyo", "UTC", None]
    times = [pd.Timestamp("2026-09-01", tz=zone) for zone in zones]
    log = log_of(time=pd.Series(times, dtype=object))
    with pytest.raises(rd.DataError, match="utc=True"):
        rd.from_impressions(log, **BOUGHT)


def test_events_none_of_which_belongs_to_an_impression_are_a_warning():
    with pytest.warns(
        rd.NoOverlapWarning, match="none of the 1 purchases belongs to an impression .1 never_shown"
    ):
        rd.from_impressions(log_of(), time_col="time", purchases=bought(70, "cup"))
