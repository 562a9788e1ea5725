"""Columns of time, of any unit and in any form, as numbers of one clock, and the day, week or hour
that a time belongs to."""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import Series

from ..errors import DataError, OptionError
from ..inputs.constraints import a_number, check_value, one_of
from ..inputs.frames import as_datetimes, as_frame, column, read_numbers
from ..inputs.ids import read_ids

# ------------------------------------------------------------------------------------------
# Columns of time, of any unit and in any form, as numbers of one clock.
#
# Contract: `read_times` converts the time columns of several frames to one unit, so that they can
# be compared and subtracted; instants stay exact. Columns that cannot be compared are refused:
# times with a zone beside times without one, and dates beside plain numbers.


# Units of datetimes from the coarsest to the finest, and how many of each make a second.
TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# Plain numbers from so many seconds (1980) on are taken to count seconds since 1970, or a part of
# them.
SINCE_1970 = 315_532_800


class TimeColumn(NamedTuple):
    """One time column: its values as numbers, 0 for a null, and what they are."""

    values: np.ndarray
    kind: str
    unit: str
    where: str


@dataclass(frozen=True)
class Clock:
    """What the numbers of the times mean: datetimes count `unit`s since 1970, plain numbers have no
    unit.

    `second` is how many of them make a second; None for plain numbers that are too small to count
    time since 1970.
    """

    kind: str
    unit: str = ""
    second: int | None = None

    @property
    def is_number(self) -> bool:
        return self.kind == "number"

    def span(self, value: Any, name: str) -> float | None:
        """Convert a span of time, such as "24h", to a number of this clock; None stays None.

        A span that is not a whole number of units is rounded down, since times differ by whole
        units.
        """
        if value is None:
            return None
        if self.is_number:
            real = isinstance(value, numbers.Real) and not isinstance(value, bool)
            if not real or not np.isfinite(float(value)):
                raise OptionError(
                    f"⟦{name}={value!r}⟧, but the times are plain numbers; give a number in their "
                    "unit, or make them datetimes first, e.g. "
                    'pd.to_datetime(log["time"], unit="s")'
                )
            check_value(name, value, a_number(0))
            if not isinstance(value, numbers.Integral):
                return float(value)
            return min(int(value), np.iinfo(np.int64).max)
        if re.fullmatch(r"\s*[+-]?[\d.]*(e[+-]?\d+)?\s*", str(value)):
            raise OptionError(
                f"⟦{name}={value!r}⟧ has no unit, but the times are datetimes; write "
                f'⟦{name}="{value}s"⟧, "24h" or "7D"'
            )
        try:
            nanoseconds = pd.Timedelta(value).as_unit("ns").value
        except (ValueError, TypeError, OverflowError) as error:
            raise OptionError(
                f'⟦{name}={value!r}⟧ is no span of time; expected text such as "24h" or "30min"'
            ) from error
        if nanoseconds < 0:  # NaT is below 0, too
            raise OptionError(
                f'⟦{name}={value!r}⟧; expected a span of time that is not negative, such as "24h"'
            )
        return nanoseconds * TICKS_PER_SECOND[self.unit] // 10**9


def read_times(columns: Sequence[tuple[str, Series]]) -> tuple[Clock, list[TimeColumn]]:
    """Read the time columns of several frames and convert them to one clock.

    Parameters
    ----------
    columns : list of (str, Series)
        The name of the column in messages, and the column.

    Returns
    -------
    Clock
        What the numbers mean; datetimes are in the finest unit of any of the columns.
    list of TimeColumn
        Values as int64 (float64 for plain numbers that are no integers); a null is 0 there.

    Raises
    ------
    DataError
        If a column holds no times, or if two columns cannot be compared.
    """
    found = [_read_time(series, where) for where, series in columns]
    known = [one for one in found if one.kind != "empty"]
    other = next((one for one in known if one.kind != known[0].kind), None)
    if other is not None:
        one, two = sorted((known[0], other), key=lambda own: own.kind, reverse=True)
        fix = f'give {two.where} its time zone, e.g. {two.where}.dt.tz_localize("UTC")'
        if "number" in (one.kind, two.kind):
            own = one if one.kind == "number" else two
            fix = f'turn the numbers into datetimes, e.g. pd.to_datetime({own.where}, unit="s")'
        raise DataError(
            f"{known[0].where} is {known[0].kind} and {other.where} {other.kind}; they cannot be "
            f"compared: {fix}"
        )
    if not known:
        plain = all(pd.api.types.is_numeric_dtype(series.dtype) for _, series in columns)
        return Clock("number") if plain else Clock("datetime", "ns", TICKS_PER_SECOND["ns"]), found
    if known[0].kind == "number":
        whole = all(one.values.dtype.kind == "i" for one in found)
        largest = max(one.values.max(initial=0) for one in known)
        second = [ticks for ticks in TICKS_PER_SECOND.values() if largest >= SINCE_1970 * ticks]
        kind = np.int64 if whole else np.float64
        found = [one._replace(values=one.values.astype(kind, copy=False)) for one in found]
        return Clock("number", second=max(second, default=None)), found
    unit = max((one.unit for one in known), key=list(TICKS_PER_SECOND).index)
    for i, own in enumerate(found):
        if own.unit not in ("", unit):
            # Numbers that would overflow become the smallest or the largest integer.
            factor = TICKS_PER_SECOND[unit] // TICKS_PER_SECOND[own.unit]
            most = np.iinfo(np.int64).max // factor
            found[i] = own._replace(values=np.clip(own.values, -most, most) * factor)
    return Clock(known[0].kind, unit, TICKS_PER_SECOND[unit]), found


def _read_time(series: Series, where: str) -> TimeColumn:
    null = series.isna().to_numpy(dtype=bool)
    dtype = series.dtype
    if null.all():
        return TimeColumn(np.zeros(len(series), np.int64), "empty", "", where)
    if pd.api.types.is_bool_dtype(dtype) or not pd.api.types.is_numeric_dtype(dtype):
        series = as_datetimes(series, where)
        ids = read_ids(series, where)
        values = np.asarray(ids.values)
        unit = np.datetime_data(values.dtype)[0]
        return TimeColumn(np.where(null, 0, values.view(np.int64)), ids.kind, unit, where)
    values = read_numbers(series.fillna(0), where)
    if values.dtype == np.uint64 and values.max() <= np.iinfo(np.int64).max:
        values = values.astype(np.int64)
    if values.dtype == np.uint64 or np.isinf(values).any():
        raise DataError(
            f"{where} holds infinite times, or numbers beyond 2**63, which are no times; expected "
            "finite numbers"
        )
    return TimeColumn(values, "number", "", where)


# ------------------------------------------------------------------------------------------
# `time_slice`: the day, week or hour that a time belongs to, as a column to group by.


# From the value of `every=` to the default name of the new column.
TIME_SLICE_COLUMNS = {
    "1h": "hour_start",
    "1D": "day",
    "1W": "week",
    "1M": "month",
    "hour": "hour",
    "weekday": "weekday",
}
ALSO = {
    "h": "1h",
    "D": "1D",
    "day": "1D",
    "W": "1W",
    "week": "1W",
    "M": "1M",
    "month": "1M",
    "1H": "1h",
}


def time_slice(
    frame: Any, time_col: str, every: str, *, tz: str | None = None, name: str | None = None
) -> pd.DataFrame:
    """Add the slice of time that each row belongs to: start of its hour, day, week or month, or the
    hour of the day.

    Parameters
    ----------
    frame : DataFrame or Arrow stream
        Rows with a time: a log, `true`, `pred` or the per-user table of lists.
    time_col : str
        Column of datetimes.
    every : {"1h", "1D", "1W", "1M", "hour", "weekday"}
        Start of the hour, the day, the week (Monday) or the month; or the hour of the day (0 to 23)
        or the day of the week (0 for Monday to 6), in which the same hour of all days comes
        together.
    tz : str, optional
        Time zone whose days and hours are meant, such as "Europe/Berlin", for times that have a
        zone. By default, their own.
    name : str, optional
        Name of the column; by default `hour_start`, `day`, `week`, `month`, `hour` or `weekday`.

    Returns
    -------
    DataFrame
        The frame with one more column: datetimes without a zone, which show the clock of `tz`, or
        Int64 for "hour" and "weekday". It is null where the time is null.

    Raises
    ------
    ColumnError
        If there is no such column, or the new one is there already.
    DataError
        If the column holds no datetimes, or has no zone although `tz` names one.
    OptionError
        If `every` or `tz` is unknown.

    Notes
    -----
    In the night in which clocks are set back, one hour of the clock comes twice and is one slice;
    pass `tz="UTC"` to tell the two apart. Times without a zone are taken as they stand.

    To score each day by itself, make the slice part of the list key, `user_col=["user_id", "day"]`,
    in `true` and in `pred`, and group with `rd.summarize(per_user, by="day")`. With `by="day"` in
    `evaluate`, every day would be scored over the users of all days.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> log = pd.DataFrame(
    ...     {"time": pd.to_datetime(["2026-09-01 23:30+00:00", "2026-09-07 01:00+00:00"])}
    ... )
    >>> rd.logs.time_slice(log, "time", "1D", tz="Europe/Berlin")["day"].astype(str).tolist()
    ['2026-09-02', '2026-09-07']
    >>> rd.logs.time_slice(log, "time", "hour")["hour"].tolist()
    [23, 1]
    """
    rows = as_frame(frame, "frame")
    every = ALSO.get(every, every)
    check_value("every", every, one_of(list(TIME_SLICE_COLUMNS)))
    name = TIME_SLICE_COLUMNS[every] if name is None else name
    if name in rows.columns:
        raise OptionError(
            f"frame has a column {name!r} already; pass name= to call the slice something else"
        )
    where = f"frame[{time_col!r}]"
    times = as_datetimes(column(rows, time_col, "frame"), where)
    if times.dt.tz is not None:
        try:
            times = (times if tz is None else times.dt.tz_convert(tz)).dt.tz_localize(None)
        # The error of an unknown zone depends on the library of zones.
        except (KeyError, ValueError, TypeError) as error:
            raise OptionError(
                f"⟦tz={tz!r}⟧ is no time zone; expected a name such as 'Europe/Berlin' or 'UTC'"
            ) from error
    elif tz is not None:
        raise DataError(
            f"{where} has no time zone, so it cannot be shown in {tz}; say which zone it is in, "
            f'e.g. {where}.dt.tz_localize("UTC")'
        )
    found = times.dt.floor("h" if every == "1h" else "D")
    if every in ("hour", "weekday"):
        found = (times.dt.hour if every == "hour" else times.dt.day_of_week).astype("Int64")
    elif every == "1W":
        found = found - pd.to_timedelta(times.dt.day_of_week, unit="D")
    elif every == "1M":
        found = Series(times.to_numpy().astype("datetime64[M]"), index=times.index)
        found = found.astype(times.dtype)
    rows = rows.copy(deep=False)
    rows[name] = found
    return rows
