"""`time_slice`: the day, week or hour that a time belongs to, as a column to group by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError
from ..inputs.constraints import check_value, one_of
from ..inputs.frames import as_frame, column
from ..inputs.sorting import distinct
from .times import as_datetimes

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
    times = as_datetimes(column(rows, time_col, "frame"), f"frame[{time_col!r}]")
    return rows.assign(**{name: _slices(_wall_clock(times, time_col, tz), every)})


def _wall_clock(times: pd.Series, name: str, tz: str | None) -> pd.Series:
    """Return times as the clock of a zone shows them, without the zone."""
    if times.dt.tz is None:
        if tz is not None:
            raise DataError(
                f"frame[{name!r}] has no time zone, so it cannot be shown in {tz}; say which zone "
                "it is in, e.g. "
                f'frame[{name!r}].dt.tz_localize("UTC")'
            )
        return times
    try:
        there = times if tz is None else times.dt.tz_convert(tz)
    except (
        KeyError,
        ValueError,
        TypeError,
    ) as error:  # the error of an unknown zone depends on the library of zones
        raise OptionError(
            f"⟦tz={tz!r}⟧ is no time zone; expected a name such as 'Europe/Berlin' or 'UTC'"
        ) from error
    shown: pd.Series = there.dt.tz_localize(None)
    return shown


def _slices(times: pd.Series, every: str) -> pd.Series:
    numbers: pd.Series
    if every in ("hour", "weekday"):
        numbers = times.dt.hour if every == "hour" else times.dt.day_of_week
        return numbers.astype("Int64")
    starts: pd.Series = times.dt.floor("h" if every == "1h" else "D")
    if every in ("1h", "1D"):
        return starts
    if every == "1W":
        weeks: pd.Series = starts - pd.to_timedelta(times.dt.day_of_week, unit="D")
        return weeks
    values = times.to_numpy()
    return pd.Series(values.astype("datetime64[M]").astype(values.dtype), index=times.index)


def empty_hours(times: np.ndarray, per_hour: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the start and the length of each run of hours without a time, between the first time
    and the last.

    `times` count units of which an hour has `per_hour`; the result counts hours.
    """
    hours = distinct(times // per_hour)
    step = np.diff(hours)
    gaps = np.flatnonzero(step > 1)
    return hours[gaps] + 1, step[gaps] - 1
