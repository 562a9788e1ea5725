"""What differs between the variants although it was fixed before the experiment: covariates,
weights, times, strata."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame, Series
from pandas.api.types import infer_dtype, is_datetime64_any_dtype, is_numeric_dtype

from ...errors import OptionError
from ...judge.aggregates import UnitsRecord
from ...judge.cautions import HEALTH_ALPHA
from ...judge.choices import TwoPlaces
from ...judge.effects.units import Linear, quantity
from ...judge.per_user_columns import Codes, Floats, Mask, group_codes, require, split
from ...judge.users import LEFT_OUT, ArmRows, ExperimentRows
from ...stats.arms import MEAN_ROUNDING, Sample, linearise
from ...stats.numbers import normal_p, normal_quantile, undefined_is_nan
from ...stats.resampling import SYMMETRIC, Split, splits_p, turn_of_split
from ...stats.shares import LEAST_EXPECTED, independence_test
from ...tables.cells import amount
from ..samples import Ready, Worth, grouped, why_left_out, without_gaps
from .sample_ratio import Arms, SampleRatio

# Level of the warning about a covariate, for all covariates and pairs of variants of a table
# together.
UNBALANCED = 0.01

# Periods into which times are cut, each with as many users.
PERIODS = 10

HALF_AN_ERROR = 0.5
# What users in strata that are worth more are said to be, by the level of the test that shows them.
MOVED_LEVELS = ("strata_moved", HEALTH_ALPHA), ("strata_differ_in_worth", UNBALANCED)
# The least p that has a z.
LEAST_P = 1e-300
# A covariate of which the others leave less than this is one of them.
TINY_REST = 1e-9

# A column of dates with fewer known values than this is no time of the assignment.
LEAST_KNOWN = 0.95
# Dates are the time of the strata, only finer, if this share of the rows lies in the usual stratum
# of its day.
IN_USUAL_STRATUM = 0.99


class Difference(NamedTuple):
    """The code of a caution, what it is about, the groups or (group, control, treatment) where it
    holds, and of which metrics."""

    code: str
    name: str
    where: Mask
    metrics: Sequence[str] | None = None


def balance_of(
    users: Any, pairs: Sequence[TwoPlaces]
) -> tuple[list[Difference], dict[str, Floats]]:
    """Test every covariate of users, in rows or in cells, for every pair of control and treatment.

    Returns what differs, and by metric p of all tests together in an array (group, control,
    treatment).
    """
    tested = users.tested()
    used = {name: one for own in tested.values() for name, one in own.items()}
    shape = len(users.groups), len(users.variants), len(users.variants)
    p = np.full((len(used), *shape), np.nan)
    for group, pair in itertools.product(range(shape[0]), pairs):
        p[:, group, *pair] = users.p_values(used, group, pair)
    p = np.fmin(p * np.count_nonzero(~np.isnan(p)), 1.0)
    found = []
    of_metric = {metric: np.full(shape, np.nan) for metric in tested}
    for name, one in zip(used, p, strict=True):
        of = [metric for metric, own in tested.items() if name in own]
        found.append(Difference("covariate_differs", name, one < UNBALANCED, of))
        of_metric |= {metric: np.fmin(of_metric[metric], one) for metric in of}
    return found, of_metric


def p_of_balance(covariates: Sequence[Sample], rows: ExperimentRows, both: ArmRows) -> Floats:
    """Compare covariates of the rows of both arms as units were assigned: users, or the sums of
    their clusters, within strata if there are any."""
    p = np.full(len(covariates), np.nan)
    size = None if rows.size is None else both.take(rows.size)
    used = [i for i, one in enumerate(covariates) if not why_left_out(one, both, rows)]
    if not used or min(both.n) < 2:
        return p
    first, *others = (without_gaps(covariates[i], size) for i in used)
    units = grouped(first._replace(covariates=tuple(others)), both, rows)
    columns = []
    for num, den in (units.metric, *units.covariates):
        one = units.columns[num]
        if den is not None:
            # A constant ratio, such as a covariate times the weights, leaves rounding.
            largest = np.abs(one).max() / units.columns[den].mean()
            one = linearise(one, units.columns[den])[1]
            with undefined_is_nan():
                varies = np.sqrt(np.square(one).mean()) > MEAN_ROUNDING * largest
            one = one * varies
        one = one - one[:1].sum()  # the squares of huge values would overflow
        columns.append(one / (np.ptp(one) or 1.0))
    means = [*map(Linear, range(len(columns)))]
    units = replace(units, columns=columns, metric=means[0], covariates=tuple(means[1:]))
    cells = split(units.cell, 2 * units.n_strata)
    above = np.tile(units.strata.above, (2, 1))

    def values(form: Floats, stratum: int) -> list[Floats]:
        """Those of the units of both arms around the mean of both."""
        forms = np.tile(form, (len(cells), 1))
        return [units.scores(forms, above, mine) for mine in cells[stratum :: units.n_strata]]

    def third(form: Floats, of_both: UnitsRecord, stratum: int) -> float:
        return sum(float(np.einsum("i,i,i->", z, z, z)) for z in values(form, stratum))

    def ranked(of: Split, form: Floats, stratum: int) -> Split:
        control, treatment = values(form, stratum)
        ranks = np.asarray(Series(np.concatenate([control, treatment])).rank(), np.float64)
        return Split.of(ranks[: len(control)], ranks[len(control) :])

    p[used] = random_split_p(means, units.record, third, ranked)
    return p


# Σ z³ of a form z = f·(x − mean) in a stratum, of which the record has the sums of both arms.
ThirdMoment = Callable[[Floats, Any, int], float]


def random_split_p(
    covariates: Sequence[Linear],
    record: UnitsRecord,
    third: ThirdMoment,
    ranked: Callable[[Split, Floats, int], Split],
) -> Floats:
    """p of each covariate over all splits of the units of each stratum into arms of these sizes, by
    sums in cells (arm × stratum).

    Each is tested as it is and, beside others, after a regression on these: a second one that
    explains it shows a smaller shift. The least p counts twice then. `ranked` gives the split that
    is tested where the values are too skewed for their moments, such as that of their ranks.
    """
    at = np.arange(len(record.n)).reshape(2, -1)
    arms, strata, whole = (record.cells(one) for one in (at, at.T, at.reshape(1, -1)))
    if min(arms.n) < 2:
        return np.full(len(covariates), np.nan)
    forms = np.array([quantity(whole.mean, one).form[0] for one in covariates])
    # In standard deviations: beside large covariates, small ones would be lost.
    spread = np.sqrt(np.maximum(np.diag(forms @ whole.central[0] @ forms.T), 0.0))
    forms /= np.where(spread > 0, spread, 1.0)[:, None]
    half = (arms.high - arms.low) / 2 + np.abs((arms.high + arms.low) / 2 - whole.mean[0])
    sizes = record.n[at].T
    known = np.flatnonzero(sizes.min(axis=1) >= 2).tolist()

    def p_of(form: Floats) -> float:
        reach = np.abs(form) @ half
        splits = {}
        for stratum in known:
            control, treatment = record.above[at[:, stratum]]
            of_both = strata.cells([stratum])
            var = of_both.squares(form[None])[0] / of_both.n[0]
            n_c, n_t = sizes[stratum].tolist()
            one = Split(n_c, n_t, float(form @ (treatment - control)), var, 0.0)
            # A constant ratio, such as a covariate times the weights, leaves rounding.
            if not math.sqrt(max(var, 0.0)) > MEAN_ROUNDING * reach:
                one = one._replace(diff=0.0, var=0.0)
            elif turn_of_split(n_c, n_t):  # the largest skewness that there can be
                one = one._replace(skewness=reach / math.sqrt(var))
            splits[stratum] = one
        turned = (abs(turn_of_split(*one[:2])) * one.skewness for one in splits.values())
        if not all(one < SYMMETRIC for one in turned):
            for stratum, one in splits.items():
                if one.skewness:
                    of_both = strata.cells([stratum])
                    cubes = third(form, of_both, stratum) / of_both.n[0]
                    splits[stratum] = one._replace(skewness=cubes / one.var**1.5)
        return splits_p(splits.values(), (ranked(one, form, h) for h, one in splits.items()))

    products = forms @ whole.central[0] @ forms.T
    found = []
    for i, form in enumerate(forms):
        p, others = p_of(form), [j for j in range(len(forms)) if j != i]
        if others:
            inner = np.linalg.pinv(products[np.ix_(others, others)], hermitian=True)
            rest = form - inner @ products[others, i] @ forms[others]
            left = whole.squares(rest[None])[0]
            if left > TINY_REST**2 * products[i, i]:
                p = 2 * np.fmin(p, p_of(rest))
        found.append(p)
    return np.array(found)


def shares_change(
    data: DataFrame,
    time_col: str | None,
    strata: list[str],
    skip: Sequence[str],
    rows: ExperimentRows,
    level: float = HEALTH_ALPHA,
) -> list[Difference]:
    """The groups in which the shares of the variants differ between times of the assignment, or
    between strata.

    Then users of different periods are compared, and an effect of the period looks like one of the
    treatment. With strata, times are compared within each. Without `time_col`, it is all columns of
    dates that are fixed for a unit. Where `time_col` names the strata, such as weeks, a ramp-up
    within them shows in columns of dates that refine them. Unknown dates are a time of their own.
    """
    if data.empty:  # no variant either, which the caller says
        return []
    every = [name for name in data.columns if name not in skip]
    names = every if time_col is None or time_col in strata else [time_col]
    found = []
    level /= len(rows.groups)
    stratum = np.zeros(len(data), np.int64) if rows.strata is None else rows.strata[0]
    for name in require(data, "time_col: data", names):
        dates = _as_dates(data[name])
        ordered = True
        if name != time_col and (
            dates is None or (time_col is not None and not _refines(dates, stratum, rows))
        ):
            continue
        if dates is None:
            code = group_codes(data, "data", [name])[0]
            ordered = is_numeric_dtype(data[name])
        else:
            code = np.unique(dates, return_inverse=True)[1]
        p = _p_of_times(code, stratum, rows, ordered, fixed=name != time_col)
        found.append(Difference("shares_change", name, p < level))
    if strata and time_col not in strata:
        p = _p_of_times(stratum, 0 * stratum, rows)
        found.append(Difference("strata_differ", ", ".join(map(str, strata)), p < level))
    return found


def users_in_both(left_out: Floats, health: DataFrame | None, n: Floats) -> list[Difference]:
    """The pairs of which users in both arms were left out, so that one arm lost more of its own.

    m users who are left out are m/(n_v + m) of an arm of n_v. Those who came twice are more active,
    so that the arms differ by about the difference of these shares, in standard deviations; it is
    named where it is half of a standard error. A health table may know more who were `left_out`
    than the rows do. Both `left_out` and `n`, the units, are by group and variant.
    """
    if health is not None and LEFT_OUT in health.columns:
        left_out = np.maximum(left_out, health.groupby("variant")[LEFT_OUT].sum().max())
    shares = left_out / np.maximum(n + left_out, 1)
    apart = abs(shares[:, None] - shares[:, :, None])
    with undefined_is_nan():
        error = np.sqrt(1 / n[:, None] + 1 / n[:, :, None])
    found = []
    for group in np.flatnonzero(left_out.any(axis=1)):
        where = apart >= HALF_AN_ERROR * error
        where[np.arange(len(n)) != group] = False
        said = f"{amount(round(left_out[group].max()), 'user')} in both arms"
        found.append(Difference("users_in_both", said, where))
    return found


def movable_strata(
    data: DataFrame, rows: ExperimentRows, time_col: str | None, strata: Sequence[str]
) -> Codes | None:
    """The codes of strata that a treatment may move. Strata of the time of the assignment are moved
    by nothing: `time_col`, or a column of dates, tells which are."""
    if rows.strata is None or time_col in strata:
        return None
    codes = rows.strata[0]
    times = [None if time_col is None else data[time_col], *(_as_dates(data[n]) for n in data)]
    return None if any(_refines(one, codes, rows) for one in times) else codes


class TimeColumns(NamedTuple):
    """The columns of the time of the assignment and of the strata, and of the time in which the
    covariates were measured."""

    assigned: str | None
    strata: list[str]
    measured: str | None

    @property
    def named(self) -> list[str]:
        return [*self.strata, *filter(None, [self.assigned, self.measured])]


def differences_in_time(
    data: DataFrame, rows: ExperimentRows, labels: list[str], times: TimeColumns
) -> tuple[ExperimentRows, list[Difference]]:
    """The rows with their strata that a treatment may move, and what times and strata say against
    their variants: covariates that were measured after the assignment, and shares that change."""
    time_col, strata, name = times
    found = shares_change(data, time_col, strata, labels, rows)
    if name is not None:
        if time_col is None:
            raise OptionError(
                f"⟦covariate_time_col={name!r}⟧ needs ⟦+time_col=⟧, the time of the assignment or "
                "of the exposure"
            )
        require(data, "data", [name, time_col])
        try:
            measured, assigned = (_as_times(data[one]) for one in (name, time_col))
            late = (measured > assigned).to_numpy(bool, na_value=False)
        except TypeError:
            raise OptionError(
                f"data[{name!r}] and data[{time_col!r}] cannot be compared; bring both to one "
                "form, such as dates or the numbers of weeks"
            ) from None
        where = np.bincount(rows.group, late, len(rows.groups)) > 0
        found.insert(0, Difference("covariate_after", name, where))
    return replace(rows, movable=movable_strata(data, rows, time_col, strata)), found


def worth_of_strata(ready: Ready, rows: ExperimentRows, movable: Codes) -> Worth:
    """How much more the strata of the treatment's users are worth.

    Each user gets the mean of the arms' means in the stratum, as a covariate: an effect beside
    other shares moves no stratum. A treatment that moves users between strata, such as of visits,
    is adjusted away within them.
    """
    units = ready.units
    n = np.array(units.n)
    whole = units.whole
    form = quantity(whole.strata.mean, whole.metric).form
    var = (whole.record.squares(np.tile(form, (2, 1))) / (n - 1) / n).sum()
    if ready.rows is None:  # a row for each user who has a value, in the order of the cells
        users = units.record.n.astype(np.int64)
        arm, stratum = np.divmod(np.arange(len(users)).repeat(users), units.n_strata)
        both = ArmRows(None, arm)
        worth = quantity(units.record.mean, units.metric).value
    else:
        both, sample = ready.rows
        stratum = both.take(movable)
        n_strata = int(movable.max(initial=0)) + 1
        cell = both.arm * n_strata + stratum
        num, den = (np.bincount(cell, values, 2 * n_strata) for values in sample[:2])
        worth = num / np.where(den > 0, den, np.nan)
    worth = np.nan_to_num(DataFrame(worth.reshape(2, -1)).mean())
    size = np.ones(len(stratum)) if rows.size is None else both.take(rows.size)
    one = Sample(size * worth[stratum], size)
    control, treatment = np.bincount(both.arm, one.num) / np.bincount(both.arm, size)
    moved, least = treatment - control, HALF_AN_ERROR * np.sqrt(var)
    z = 0.0
    if len(rows.groups) > 1 or abs(moved) >= least:
        p = p_of_balance([one], replace(rows, strata=None), both)[0]
        z = 0.0 if np.isnan(p) else -np.sign(moved) * normal_quantile(max(p, LEAST_P) / 2)
    return Worth(moved, least, z, np.std(worth[stratum]) * np.sqrt((1 / n).sum()))


def strata_moved(
    arms: Arms, table: Mapping[str, Any], worth: Floats, apart: bool, n_sharing: int
) -> list[Difference]:
    """Where the strata of one arm's users are worth more, by the `Worth` of every row.

    `n_sharing` segments share the level. Those that have no user in common (`apart`) are tested
    together, too, since each has few users.
    """
    moved, least, z, error = worth.T.reshape(4, len(arms.groups), -1)
    p = n_sharing * normal_p(np.where(abs(moved) >= least, z, 0))
    if apart:
        n = (table["n_control"] + table["n_treatment"]).reshape(z.shape)
        with undefined_is_nan():
            z = (n * error * z).sum(axis=0) / np.sqrt(np.square(n * error).sum(axis=0))
        far = abs((n * moved).sum(axis=0)) >= np.sqrt(np.square(n * least).sum(axis=0))
        p = np.fmin(p, normal_p(np.where(far, z, 0)))
    return _moved(arms, table, "strata", p)


def segments_moved(arms: Arms, table: Mapping[str, Any], ratio: SampleRatio) -> list[Difference]:
    """The same of segments, by the counts, means and errors of a table, in all of them.

    The shares of the variants must be planned, and be the same in all segments: those of periods
    may change.
    """
    planned = ratio.of / ratio.of.sum(axis=1, keepdims=True)
    n_groups = len(arms.groups)
    if n_groups < 2 or not np.ptp(planned, axis=0).max() < TINY_REST:
        return []
    names = "n_control", "n_treatment", "mean_control", "mean_treatment", "se"
    cells = np.nan_to_num([table[name] for name in names]).reshape(len(names), n_groups, -1)
    n = cells[:2]
    sizes = cells[2:]
    largest = np.abs(sizes).max(axis=(0, 1))  # the squares of huge values would overflow
    *mean, se = sizes / np.where(largest > 0, largest, 1)
    worth = (mean[0] + mean[1]) / 2
    share = n.sum(axis=0) / n.sum(axis=(0, 1))
    of_control, of_treatment = n / n.sum(axis=1, keepdims=True)
    moved = np.abs(((of_treatment - of_control) * worth).sum(axis=0))
    var = (share * (worth - (share * worth).sum(axis=0)) ** 2).sum(axis=0)
    error = np.sqrt(var * (1 / n.sum(axis=1)).sum(axis=0))
    half = HALF_AN_ERROR * np.sqrt(((share * se) ** 2).sum(axis=0))
    least = np.maximum(half, TINY_REST)  # of equal values, rounding moves a little
    with undefined_is_nan():
        z = np.where(moved >= least, moved / error, 0)
    return _moved(arms, table, "segments", np.tile(normal_p(z), (n_groups, 1)))


def _moved(arms: Arms, table: Mapping[str, Any], what: str, p: Floats) -> list[Difference]:
    """The differences in worth whose p, by group and by metric and pair, is below a level of
    `MOVED_LEVELS`; the gravest one of each."""
    found = []
    for code, level in MOVED_LEVELS:
        here = p < level
        p = np.where(here, 1, p)
        for i in np.flatnonzero(here.any(axis=0)):
            metric = table["metric"][i]
            where = np.zeros((len(here), *[len(arms.variants)] * 2), bool)
            where[:, *arms.pairs[i % len(arms.pairs)]] = here[:, i]
            found.append(Difference(code, f"{what} of {metric}", where, [metric]))
    return found


def looks_like_date(values: Series) -> bool:
    """Whether the first value of a column is a date, which may be written as text, or is null, so
    that the others may be dates."""
    if not len(values) or is_numeric_dtype(values):
        return False
    first = values.iloc[0]
    texts = isinstance(first, str) and re.match(r"\d{4}-\d\d-\d\d", first)
    return isinstance(first, datetime.date) or bool(texts) or bool(values.isna().iloc[0])


def _as_dates(values: Series) -> Series | None:
    """The dates of a column that holds nothing else, also as text; None for another column."""
    known = values if is_numeric_dtype(values) else values.dropna()
    if not looks_like_date(known) or len(known) < LEAST_KNOWN * len(values):
        return None
    if is_datetime64_any_dtype(values):
        return values
    if infer_dtype(known).startswith("mixed"):
        return None  # dates beside numbers
    dates = pd.to_datetime(values, format="ISO8601", utc=True, errors="coerce")
    return dates if dates.notna().sum() == len(known) else None


def _as_times(values: Series) -> Series:
    """Return times that can be compared. Texts are read as dates, since the order of other texts is
    not that of time; other texts raise a TypeError."""
    if infer_dtype(values) != "string":
        return values
    if (dates := _as_dates(values)) is None:
        raise TypeError
    return dates


def _refines(times: Series | None, stratum: Codes, rows: ExperimentRows) -> bool:
    """Whether times are those of the strata, only finer."""
    if times is None:
        return False
    dated = is_datetime64_any_dtype(times)
    periods = (times.dt.floor("D") if dated else times).to_numpy()
    size = np.ones(len(stratum)) if rows.size is None else rows.size
    table = Series(size).groupby([periods, stratum]).sum()
    return bool(table.groupby(level=0).max().sum() >= IN_USUAL_STRATUM * table.sum())


def _p_of_times(
    code: Codes, stratum: Codes, rows: ExperimentRows, ordered: bool = False, fixed: bool = False
) -> Floats:
    """By group, p that the variants have the same shares at all times, of which each unit has its
    first: the least of its strata times their number. Where they should be `fixed`, it is NaN if a
    unit has several."""
    chosen = np.arange(len(code))
    units = rows.randomised
    if units is not None:
        order = np.argsort(code, kind="stable")
        unit = (rows.group * (int(units.max(initial=0)) + 1) + units)[order]
        _, first, own = np.unique(unit, return_index=True, return_inverse=True)
        chosen = order[first]
        if fixed and (code[order] != code[chosen][own]).any():
            return np.full(len(rows.groups), np.nan)
    n_strata = int(stratum.max(initial=0)) + 1
    n_groups = len(rows.groups)
    n = len(rows.variants)
    cells = split((rows.group * n_strata + stratum)[chosen], n_groups * n_strata)
    p = []
    for here in (chosen[mine] for mine in cells):
        known, times = np.unique(code[here], return_inverse=True)
        cell = times * n + rows.variant[here]
        p.append(p_of_shares(np.bincount(cell, minlength=len(known) * n).reshape(-1, n), ordered))
    return n_strata * np.fmin.reduce(np.reshape(p, (n_groups, n_strata)), axis=1)


def p_of_shares(table: Any, ordered: bool) -> float:
    """p that variants had the same shares at all times, by the users of each time and variant.

    Neighbouring times are put together so that χ² holds; small cohorts are put together too.
    """
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    if not table.size:
        return np.nan
    users = table.sum(axis=1)
    least_share = table.sum(axis=0).min() / users.sum()
    if ordered:
        most = max(1, min(PERIODS, int(users.sum() * least_share / LEAST_EXPECTED)))
        middle = (np.cumsum(users) - users / 2) / users.sum()
        period = np.minimum(middle * most, most - 1).astype(np.int64)
    else:
        small = users * least_share < LEAST_EXPECTED
        period = np.where(small, 0, np.cumsum(~small))
    merged = DataFrame(table).groupby(period).sum()
    return independence_test(merged)[1]
