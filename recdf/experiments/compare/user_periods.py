"""Users of an experiment over time: who is in each period, and sums of each user, one period at a
time; and the strata of a ramp-up within which they are compared.

Contract: users are those of one variant who have been exposed, in the order of their ids, so that
no number depends on the order of the rows. A period holds arrays with one number per user; only
what lasts is kept from one to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...errors import DataError
from ...inputs.frames import by_user, is_elsewhere
from ...inputs.sorting import cut_like
from ...judge.cautions import HEALTH_ALPHA, UNEQUAL
from ...judge.choices import NamedMetrics, RaiseOrDrop, TwoPlaces, as_columns
from ...judge.per_user_columns import (
    Codes,
    Floats,
    Mask,
    exact_sums,
    first_rows,
    group_codes,
    key_codes,
    metric_specs,
    metric_values,
    named_frame,
    require,
    split,
)
from ...judge.users import ExperimentRows, Users, in_several_variants, refuse_several
from ...stats.arms import Sample
from ...stats.shares import LEAST_EXPECTED, equal_shares_test
from ..decide.balance import p_of_shares
from ..join.roll_up import Times, comparable_times, read_exposure
from ..metric_bounds import UNKNOWN_KIND
from ..samples import MetricRows, read_metrics

PeriodKind = Literal["daily", "cumulative", "since_exposure"]
UserValue = Literal["sum", "mean"]
AbsentUsers = Literal["zero", "drop"]


class People(NamedTuple):
    """The users, a row of `frame` each; `of_row` is the user of every row, −1 of one that does not
    count, and `counts` how many rows every row stands for.

    Times are instants; `zone` is the time zone of the days.
    """

    frame: DataFrame
    variant: Codes
    variants: pd.Series
    of_row: np.ndarray
    times: Times
    exposed: Times | None
    zone: Any
    n_in_both: int
    counts: Floats

    def with_columns_of(self, rows: DataFrame, skip: Sequence[str | None]) -> DataFrame:
        """The users with the other columns of their first rows; null of users without a row."""
        first = first_rows(self.of_row + 1, len(self.frame) + 1)[1:]
        users = np.flatnonzero(first >= 0)
        names = [name for name in rows if name not in {*skip, *self.frame}]
        others = rows[names].iloc[first[users]].set_axis(users)
        return self.frame.join(others)

    def have_one(self, values: pd.Series) -> bool:
        """Whether each user has one value in all rows."""
        own = self.of_row >= 0
        n = len(self.frame)
        return not in_several_variants(self.of_row[own], pd.factorize(values)[0][own], n).any()


class Periods(NamedTuple):
    """Label, place in days and rows of every period; user i is in the periods from start[i] to
    stop[i] − 1."""

    labels: Times
    days: Floats
    rows: list[Codes]
    start: Codes
    stop: Codes


# Columns with the number of rows that were added up to one, and the day of an exposure.
_COUNT, _DAY = "\1rows", "\1day"


def rows_in_memory(
    rows: Any,
    assignment: DataFrame | None,
    metrics: NamedMetrics,
    keys: list[str],
    labels: list[str],
    times: tuple[str, str | None],
    kind: PeriodKind,
    nan: RaiseOrDrop,
) -> tuple[DataFrame, Floats]:
    """Return the rows, and how many each stands for: those of a frame as they are, and those of
    files or an engine added up by user and day where they are."""
    if is_elsewhere(rows):
        pairs = metrics.values() if isinstance(metrics, Mapping) else as_columns(metrics)
        columns = [*(name for pair in pairs for name in as_columns(pair)), *labels, *times]
        given = {} if assignment is None else {"assignment": assignment}
        how: dict[str, Any] = {"metrics": metrics, "keys": keys, "labels": labels, "times": times}
        work = partial(_days_of_users, **how, kind=kind, nan=nan)
        parts = by_user(work, keys, columns, with_ids=True, rows=rows, **given)
        rows = pd.concat(parts, ignore_index=True)
    rows = named_frame("rows", rows)
    if _COUNT not in rows:
        return rows, np.ones(len(rows))
    return rows.drop(columns=_COUNT), rows[_COUNT].to_numpy(np.float64)


def match_rows(
    rows: DataFrame,
    assignment: DataFrame | None,
    keys: list[str],
    labels: list[str],
    times: tuple[str, str | None],
) -> tuple[str, DataFrame, Codes, Codes, int]:
    """Return the table that names the variants, which are the rows without an assignment, with its
    role; the users of the rows and of that table; and how many users there are."""
    role, given = ("rows", rows) if assignment is None else ("assignment", assignment)
    fixed = list(dict.fromkeys([*keys, *labels, *filter(None, times[1:])]))
    require(rows, "rows", [*keys, times[0]])
    require(given, role, fixed)
    for name in labels:
        if given[name].isna().any():
            group_codes(given, role, [name])  # raises, also where another row of the user is known
    if assignment is None:
        (user,), n = key_codes([(role, rows)], keys)
        return role, rows[fixed], user, user, n
    (user, own), n = key_codes([("rows", rows), (role, given)], keys)
    return role, given, user, own, n


def _days_of_users(
    rows: DataFrame,
    assignment: DataFrame | None = None,
    *,
    metrics: NamedMetrics,
    keys: list[str],
    labels: list[str],
    times: tuple[str, str | None],
    kind: PeriodKind,
    nan: RaiseOrDrop,
) -> DataFrame:
    """Add up the rows of a user on one day of the calendar, or since the exposure, that have the
    same labels and whose metrics are known.

    The latest time stays. Two kinds of rows stay alone: that of the earliest exposure, and the
    first one that has another id than the first row of the user. Of ids it only matters whether
    they differ.
    """
    time_col, exposure_col = times
    specs = metric_specs(metrics, rows, "rows")
    role, given, user, own, n = match_rows(rows, assignment, keys, labels, times)
    used = {*keys, *labels, *times}
    columns = dict.fromkeys(name for pair in specs.values() for name in pair if name)
    if rows.empty or used & {*columns}:
        return rows.assign(**{_COUNT: 1})
    # Here messages count the rows that were given.
    read_metrics(rows, specs, {}, nan, "rows")
    values = {name: metric_values(rows, "rows", name) for name in columns}
    instants = comparable_times(rows, "rows", time_col)[1]
    zone = zone_of(rows, time_col)
    days: Any = days_of(instants, zone)
    apart: list[Any] = [user, whole_days(instants, zone)]
    alone = np.zeros(len(rows), bool)
    if exposure_col is not None and given[exposure_col].isna().all():
        exposure_col = None
    users = Users.of(user, own, n, own)
    exposure = read_exposure(users, rows, given, exposure_col, time_col, ("rows", role))
    if exposure is not None:
        apart.append(exposure.early)
        if kind == "since_exposure":
            days = days_between(exposure.of_user[user], instants, zone)
        if assignment is None:
            alone[exposure.first_row[exposure.first_row >= 0]] = True
    apart += [days, *(pd.factorize(rows[name])[0] for name in labels if name in rows)]
    first_row = first_rows(user, n)[user]
    for name in [one for one in rows if one not in used and one not in values]:
        code = pd.factorize(rows[name])[0]
        differs = np.flatnonzero(code != code[first_row])
        alone[differs[np.unique(user[differs], return_index=True)[1]]] = True
    apart.append(np.where(alone, np.arange(1, len(rows) + 1), 0))
    apart += map(np.isnan, values.values())
    for num, den in specs.values():
        if den is not None:  # one below 0 is refused later, and a null over 0 is not missing
            apart += [values[den] < 0, np.isnan(values[num]) & (values[den] == 0)]
    frame = DataFrame(dict(enumerate(apart)))
    group = frame.groupby([*frame], sort=False).ngroup().to_numpy()
    counts = np.bincount(group)
    latest = np.lexsort([instants, group])[np.cumsum(counts) - 1]
    start = first_rows(group, len(counts))
    found = rows.iloc[start].reset_index(drop=True)
    found[time_col] = rows[time_col].iloc[latest].reset_index(drop=True)
    for name, one in values.items():
        sums = exact_sums(np.nan_to_num(one), group, len(counts))
        found[name] = np.where(np.isnan(one[start]), np.nan, sums)
    return found.assign(**{_COUNT: counts})


def read_people(
    rows: DataFrame,
    counts: Floats,
    assignment: DataFrame | None,
    keys: list[str],
    labels_of: list[str],
    time_col: str,
    exposure_col: str | None,
    multi_variant: RaiseOrDrop,
) -> People:
    """Match the rows to users, each with the variant and the earliest exposure that the assignment
    or the rows name. The first of the columns of labels has the variants."""
    times = time_col, exposure_col
    role, given, user, own, n = match_rows(rows, assignment, keys, labels_of, times)
    variant, labels = group_codes(given, role, labels_of[:1])
    users = Users.of(user, own, n, variant)
    if users.stranger.all():
        raise DataError(f"no user of {role} is in rows" if len(rows) else "rows has no rows")
    if multi_variant == "raise":
        advice = 'fix the table or pass ⟦+multi_variant="drop"⟧'
        refuse_several(role, given, own, users.several, keys, advice)
    exposure = read_exposure(users, rows, given, exposure_col, time_col, ("rows", role))
    first = first_rows(own, n) if exposure is None else exposure.first_row
    chosen = (first >= 0) & ~users.several
    of_row = np.where(chosen, np.cumsum(chosen) - 1, -1)[user]
    first = first[chosen]
    exposed = None
    if exposure is not None:
        of_row[exposure.early] = -1
        exposed = exposure.of_user[chosen]
    return People(
        given.iloc[first].reset_index(drop=True),
        variant[first],
        labels[labels_of[0]],
        of_row,
        comparable_times(rows, "rows", time_col)[1],
        exposed,
        zone_of(rows, time_col),
        int(users.several.sum()),
        counts,
    )


def read_periods(people: People, kind: PeriodKind) -> Periods:
    """Cut time into days: those of the calendar, or those since each user's exposure that the user
    was observed."""
    if kind == "since_exposure":
        return _days_since_exposure(people)
    known, day = np.unique(days_of(people.times, people.zone), return_inverse=True)
    rows = split(day, len(known))
    start = np.zeros(len(people.frame), np.int64)
    n = len(rows)
    if people.exposed is not None:
        # A user who was exposed after the last row of anyone in the period had no chance to have a
        # row in it.
        last = np.maximum.accumulate(np.array([people.times[of].max() for of in rows]))
        start = np.searchsorted(last, people.exposed).astype(np.int64)
    begun = start.min(initial=n)
    if begun == n:
        raise DataError("every row is older than all exposures; there is no period to compare")
    labels = number = known[begun:]
    if people.times.dtype.kind == "M":
        labels = number.astype("datetime64[D]").astype("datetime64[s]")
    days = number.astype(np.float64)
    stop = np.full(len(start), n - begun)
    return Periods(labels, days, rows[begun:], start - begun, stop)


def _days_since_exposure(people: People) -> Periods:
    """Day 0 begins with the exposure of each user; a user is in the days that ended before the data
    did."""
    assert people.exposed is not None
    # Rows of whole days stand for all of their day, so that the last of them is complete.
    whole = whole_days(people.times, people.zone).all()
    last = people.times.max(keepdims=True)
    stop = np.maximum(days_between(people.exposed, last, people.zone, more=int(whole)), 0)
    n = stop.max(initial=0)
    if not n:
        raise DataError(
            "no user was observed for a whole day after the exposure; there is no period to compare"
        )
    # Where the clock was set back, it may show a time before the exposure.
    day = days_between(people.exposed[people.of_row], people.times, people.zone).clip(0, n)
    labels = np.arange(n)
    rows = split(np.where(people.of_row < 0, n, day), n + 1)[:n]
    return Periods(labels, 1.0 * labels, rows, np.zeros(len(stop), np.int64), stop)


def days_of(times: Times, zone: Any) -> Codes:
    """Number of the day of each time, on the clock of the zone."""
    clock, day = _local_clock(times, zone)
    return np.asarray(clock // day, np.int64)


def days_between(exposed: Times, times: Times, zone: Any, more: int = 0) -> Codes:
    """Whole days from one time to another and some `more` days, by the clock of the zone, so that
    two midnights are a whole day apart when clocks change."""
    (begin, day), (end, _) = (_local_clock(one, zone) for one in (exposed, times))
    return np.asarray((end + more * day - begin) // day, np.int64)


def whole_days(times: Times, zone: Any) -> Mask:
    """Which times are the beginning of a day."""
    clock, day = _local_clock(times, zone)
    return np.asarray(clock % day == 0 * day)


def zone_of(rows: DataFrame, time_col: str) -> Any:
    """The time zone of a column of times, if it has one."""
    first = rows[time_col].head(1)
    if pd.api.types.is_numeric_dtype(first.dtype):
        return None
    return pd.DatetimeIndex(pd.to_datetime(first).tolist()).tz


def _local_clock(times: Times, zone: Any) -> tuple[Any, Any]:
    """Times as the clock of the zone shows them, since the beginning of a day, and how long a day
    is."""
    if times.dtype.kind != "M":
        return times, 1.0
    if zone is not None:
        shown = pd.DatetimeIndex(times).tz_localize("UTC").tz_convert(zone)
        times = shown.tz_localize(None).to_numpy()
    return times - np.datetime64(0, "D"), np.timedelta64(1, "D")


class PeriodMetric(NamedTuple):
    """A metric of the rows; `absent` says that users without rows in a period count as 0, else they
    are left out."""

    of_rows: MetricRows
    value: UserValue
    absent: bool

    def columns(self, counts: Floats) -> list[Floats]:
        """What is summed for each user: the values, and the denominators of a ratio, or how many
        values are known where some are not."""
        known, (num, den, _) = self.of_rows.defined, self.of_rows.sample
        if known is not None:
            num, den = (np.where(known, one, 0.0) for one in (num, counts if den is None else den))
        return [num] if den is None else [num, den]

    def of_users(self, n_rows: Floats, num: Floats, other: Floats | None = None) -> MetricRows:
        """One value per user from its sums; null are users whose rows are all null, or who have
        none and must."""
        one = self.of_rows
        if one.sample.den is not None:
            return MetricRows(one.name, Sample(num, other), {}, kind=one.kind)
        n = n_rows if other is None else other
        null = (n == 0) & ((n_rows > 0) | (not self.absent))
        values, kind = num, UNKNOWN_KIND  # the definition says nothing of sums
        if self.value == "mean":
            values, kind = num / np.maximum(n, 1), one.kind
        defined, nulls = (~null, null) if null.any() else (None, None)
        kind = kind.of_values(values[~null])
        return MetricRows(one.name, Sample(values), {}, defined, nulls, kind=kind)


def each_period(
    people: People, periods: Periods, metrics: Sequence[PeriodMetric], cumulative: bool
) -> Iterator[tuple[list[MetricRows], list[MetricRows]]]:
    """Yield the metrics of every period by itself, and as they are compared: the same, or of all
    periods so far."""
    n = len(people.frame)
    columns = [metric.columns(people.counts) for metric in metrics]

    def of_users(n_rows: Floats, sums: Floats) -> list[MetricRows]:
        own = cut_like(sums, columns)
        return [metric.of_users(n_rows, *one) for metric, one in zip(metrics, own, strict=True)]

    so_far = np.zeros((1 + sum(map(len, columns)), n))
    for rows in periods.rows:
        user = people.of_row[rows]
        rows = rows[user >= 0]
        user = user[user >= 0]
        n_rows = 1.0 * np.bincount(user, people.counts[rows], n)
        # One value per user needs no care about the order of its terms.
        exact = len(user) and n_rows.max() > 1
        sums = [
            exact_sums(one[rows], user, n) if exact else np.bincount(user, one[rows], n)
            for own in columns
            for one in own
        ]
        of_period = np.array([n_rows, *sums], np.float64)
        alone = of_users(of_period[0], of_period[1:])
        so_far = so_far + of_period if cumulative else so_far
        yield alone, of_users(so_far[0], so_far[1:]) if cumulative else alone


class Exposures:
    """Users by the day of their exposure, which is the first of their cluster where clusters were
    assigned.

    If columns of strata are named, the day is one within a stratum; `labels` are their values.
    """

    def __init__(
        self, people: People, periods: Periods, users: ExperimentRows, strata: list[str]
    ) -> None:
        start, stop, variant, unit = periods.start, periods.stop, people.variant, users.randomised
        day = 0 if people.exposed is None else days_of(people.exposed, people.zone)
        dated = people.frame.assign(**{_DAY: day})
        cohort, days = group_codes(dated, "assignment", [*strata, _DAY])
        stratum, self.labels = group_codes(days, "assignment", strata)
        self.cohort = cohort
        if unit is not None and unit is users.clusters:
            first = pd.Series(cohort).groupby(unit).idxmin().to_numpy()
            stop = pd.Series(stop).groupby(unit).max().to_numpy()
            start, variant, cohort = (one[first] for one in (start, variant, cohort))
            self.cohort = cohort[unit]
        shape = len(days), len(people.variants)
        cell = cohort * shape[1] + variant

        def table(present: Mask) -> Floats:
            counts = np.bincount(cell[present], minlength=shape[0] * shape[1])
            return counts.reshape(shape).astype(np.float64)

        there = [table((start <= period) & (period < stop)) for period in range(len(periods.rows))]
        self.ever = table(start < stop)
        # Assigned units by stratum and variant in every period, and (last) in all of them together.
        of_label = stratum == np.arange(len(self.labels))[:, None]
        self.counts = 1.0 * of_label @ np.array([*there, self.ever])
        p = np.array([p_of_shares(one, True) for one in [*there, self.ever]])
        # Periods whose users were assigned with changing shares.
        self.changed = p[:-1] < HEALTH_ALPHA
        # Strata are right without a ramp-up too, so that a hint is enough.
        self.ramped = strata or self.changed.any() or p[-1] < UNEQUAL

    def within(self, users: ExperimentRows, arms: TwoPlaces) -> ExperimentRows:
        """The users in strata of two variants: days of exposure, small ones put together where the
        shares are alike."""
        if not self.ramped:
            return users
        first, *others = self.ever[:, list(arms)]
        strata = [first]
        of_day = [0]
        for new in others:
            last = strata[-1]
            small = min(last.min(), new.min()) < LEAST_EXPECTED
            p = equal_shares_test([last[1], new[1]], [last.sum(), new.sum()])[1]
            if small and not p < HEALTH_ALPHA:
                strata[-1] = last + new
            else:
                strata.append(new)
            of_day.append(len(strata) - 1)
        labels = DataFrame({"exposed": np.arange(len(strata))})
        return replace(users, strata=(np.array(of_day)[self.cohort], labels), drop_thin=True)
