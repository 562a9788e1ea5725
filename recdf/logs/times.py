"""Columns of time, of any unit and in any form, as numbers of one clock.

Contract: `read_times` converts the time columns of several frames to one unit, so that they can be
compared and subtracted; instants stay exact. Columns that cannot be compared are refused: times
with a zone beside times without one, and dates beside plain numbers.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError, examples
from ..inputs.constraints import a_number, check_value
from ..inputs.frames import read_numbers
from ..inputs.ids import read_ids

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
            return _number_span(value, name)
        if isinstance(value, numbers.Number) and not isinstance(value, np.timedelta64):
            raise OptionError(
                f"⟦{name}={value!r}⟧ has no unit, but the times are datetimes; write "
                f'⟦{name}=⟧"{value}s", "24h" or "7D"'
            )
        if isinstance(value, str) and value.strip().replace(".", "", 1).lstrip("+-").isdigit():
            raise OptionError(
                f'⟦{name}={value!r}⟧ has no unit; expected text such as "24h", "30min" or '
                f'"{value}s"'
            )
        try:
            span = pd.Timedelta(value)
            nanoseconds = span.as_unit("ns").value
        except (ValueError, TypeError, OverflowError) as error:
            raise OptionError(
                f'⟦{name}={value!r}⟧ is no span of time; expected text such as "24h" or "30min"'
            ) from error
        if pd.isna(span) or nanoseconds < 0:
            raise OptionError(
                f'⟦{name}={value!r}⟧; expected a span of time that is not negative, such as "24h"'
            )
        return int(nanoseconds * TICKS_PER_SECOND[self.unit] // 10**9)


def _number_span(value: Any, name: str) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, numbers.Real)
        or not np.isfinite(float(value))
    ):
        raise OptionError(
            f"⟦{name}={value!r}⟧, but the times are plain numbers; give a number in their unit, or "
            "make them datetimes "
            'first, e.g. pd.to_datetime(log["time"], unit="s")'
        )
    check_value(name, value, a_number(0))
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def read_times(columns: Sequence[tuple[str, pd.Series]]) -> tuple[Clock, list[TimeColumn]]:
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
    for one in known[1:]:
        if one.kind != known[0].kind:
            raise DataError(_differ(known[0], one))
    if not known:
        return Clock("datetime", "ns", TICKS_PER_SECOND["ns"]), found
    if known[0].kind == "number":
        whole = all(one.values.dtype.kind == "i" for one in found)
        kind = np.int64 if whole else np.float64
        largest = max(float(one.values.max(initial=0)) for one in known)
        second = [ticks for ticks in TICKS_PER_SECOND.values() if largest >= SINCE_1970 * ticks]
        return Clock("number", second=max(second, default=None)), [
            one._replace(values=one.values.astype(kind, copy=False)) for one in found
        ]
    unit = max((one.unit for one in known), key=list(TICKS_PER_SECOND).index)
    return Clock(known[0].kind, unit, TICKS_PER_SECOND[unit]), [
        one._replace(values=_in_unit(one, unit), unit=unit) for one in found
    ]


def _differ(one: TimeColumn, two: TimeColumn) -> str:
    kinds = {one.kind, two.kind}
    if "number" in kinds:
        number = one if one.kind == "number" else two
        fix = f'turn the numbers into datetimes, e.g. pd.to_datetime({number.where}, unit="s")'
    else:
        naive = one if one.kind == "datetime" else two
        fix = f'give {naive.where} its time zone, e.g. {naive.where}.dt.tz_localize("UTC")'
    return f"{one.where} is {one.kind} and {two.where} {two.kind}; they cannot be compared: {fix}"


def _in_unit(column: TimeColumn, unit: str) -> np.ndarray:
    """Convert numbers to a finer unit; those that would overflow become the smallest or the largest
    integer."""
    if column.unit in ("", unit):
        return column.values
    factor = TICKS_PER_SECOND[unit] // TICKS_PER_SECOND[column.unit]
    most = np.iinfo(np.int64).max // factor
    finer: np.ndarray = np.clip(column.values, -most, most) * factor
    return finer


def _read_time(series: pd.Series, where: str) -> TimeColumn:
    null = series.isna().to_numpy(dtype=bool)
    if null.all():
        return TimeColumn(np.zeros(len(series), np.int64), "empty", "", where)
    dtype = series.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
        return TimeColumn(_time_numbers(series, where, null), "number", "", where)
    series = as_datetimes(series, where)
    ids = read_ids(series, where)
    values = np.asarray(ids.values)
    unit = np.datetime_data(values.dtype)[0]
    plain = values.view(np.int64)
    return TimeColumn(np.where(null, 0, plain) if null.any() else plain, ids.kind, unit, where)


def _no_times(series: pd.Series, where: str) -> DataError:
    some = examples(series.dropna().head(5))
    return DataError(
        f"{where} holds {series.dtype} values ({some}); expected times: parse them first, e.g. "
        f"pd.to_datetime({where})"
    )


def as_datetimes(series: pd.Series, where: str) -> pd.Series:
    """Return a column of datetimes in a pandas dtype, also if it holds Arrow's times or Python's
    dates."""
    if pd.api.types.is_datetime64_any_dtype(series.dtype) and not isinstance(
        series.dtype, pd.ArrowDtype
    ):
        return series
    if isinstance(series.dtype, pd.ArrowDtype):
        kind = str(series.dtype.pyarrow_dtype)
        if not kind.startswith(("timestamp", "date")):
            raise _no_times(series, where)
        series = pd.Series(
            series.array.__arrow_array__().to_pandas(), index=series.index, name=series.name
        )
    elif pd.api.types.infer_dtype(series, skipna=True) not in ("date", "datetime", "datetime64"):
        raise _no_times(series, where)
    try:
        return pd.to_datetime(series)
    except (
        ValueError,
        TypeError,
    ) as error:  # datetimes of several time zones, or with and without one
        raise DataError(
            f"{where} holds times of several zones, or with and without one ({error}); bring them "
            f"to one zone, e.g. pd.to_datetime({where}, utc=True)"
        ) from error


def _time_numbers(series: pd.Series, where: str, null: np.ndarray) -> np.ndarray:
    if pd.api.types.is_integer_dtype(series.dtype):
        filled = series.fillna(0) if null.any() else series
        values = read_numbers(filled, where)
        if values.dtype == np.uint64:
            if len(values) and values.max() > np.iinfo(np.int64).max:
                raise DataError(f"{where} holds numbers beyond 2**63, which are no times")
            values = values.astype(np.int64)
        return values
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(values).any():
        raise DataError(
            f"{where} holds {np.isinf(values).sum():,} infinite times; expected finite numbers"
        )
    return np.where(null, 0.0, values)
