"""New users by day, from a log, and the days until an experiment has its users."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...errors import DataError
from ...inputs.options import as_columns
from ..choices import Columns
from ..experiment_columns import Floats, frame_of, metric_values, require

# Days whose average is expected after the last one.
WEEK = 7


def arrivals_by_day(
    log: pd.DataFrame, *, time_col: str, user_col: Columns = "user_id"
) -> pd.DataFrame:
    """Count the users of a log by the day of their first row: how many an experiment would gain
    each day.

    The first days hold mostly users who come every day, and later ones those who come seldom, so
    that twice the users take more than twice the days.

    Parameters
    ----------
    log : DataFrame
        Rows of users who would be in the experiment, such as page views, from the first to the last
        day.
    time_col : str
        Column of times. Days are those of its time zone.
    user_col : str or list of str, default "user_id"
        What names a user.

    Returns
    -------
    DataFrame
        One row per day without gaps: `day` (datetime64), `new_users`, `users` (of that day; both
        int64).

    Raises
    ------
    ColumnError
        A column is missing.
    DataError
        A time is null, or the column holds no times.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> log = pd.DataFrame(
    ...     {"user_id": [1, 2, 1, 3], "at": pd.to_datetime(["2026-11-02"] * 2 + ["2026-11-04"] * 2)}
    ... )
    >>> rd.experiments.arrivals_by_day(log, time_col="at")
             day  new_users  users
    0 2026-11-02          2      2
    1 2026-11-03          0      0
    2 2026-11-04          1      2
    """
    keys = require(frame_of("log", log), "log", as_columns(user_col))
    require(log, "log", [time_col])
    times = log[time_col]
    if not pd.api.types.is_datetime64_any_dtype(times.dtype) or times.isna().any() or not len(log):
        raise DataError(
            f"log[{time_col!r}] is {times.dtype} with {int(times.isna().sum()):,} nulls; expected "
            "times"
        )
    day = times.dt.tz_localize(None).dt.normalize()
    rows = (
        log[keys]
        .assign(**{"⟦day⟧": day.to_numpy()})
        .drop_duplicates()
        .sort_values("⟦day⟧", kind="stable")
    )
    first = rows.drop_duplicates(keys)
    every = pd.date_range(day.min(), day.max(), freq="D")
    counts = [
        part["⟦day⟧"].value_counts().reindex(every, fill_value=0).to_numpy()
        for part in (first, rows)
    ]
    return pd.DataFrame({"day": every, "new_users": counts[0], "users": counts[1]})


def daily_arrivals(arrivals: pd.DataFrame | Sequence[float]) -> Floats:
    """Return the numbers of new users by day, checked."""
    frame = (
        arrivals
        if isinstance(arrivals, pd.DataFrame)
        else pd.DataFrame({"new_users": list(arrivals)})
    )
    require(frame, "arrivals", ["new_users"])
    found = metric_values(frame, "arrivals", "new_users")
    if not len(found) or np.isnan(found).any() or (found < 0).any():
        raise DataError("arrivals has no day, or days with a null or negative number of users")
    return found


def days_until(n: float, coming: Floats) -> float:
    """Return the days until n users came; NaN if they never do."""
    total = np.cumsum(coming)
    if n <= total[-1]:
        return float(np.searchsorted(total, n) + 1)
    rate = coming[-WEEK:].mean()
    return float(len(coming)) + math.ceil((n - total[-1]) / rate - 1e-9) if rate > 0 else math.nan
