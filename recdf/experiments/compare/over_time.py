"""The effect of an experiment by period, daily, cumulative, or by days since the exposure; and its
trend: does an effect fade, grow or turn?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...errors import OptionError
from ...inputs.constraints import OneLabel
from ...inputs.door import takes_options
from ...judge.cautions import HEALTH_ALPHA
from ...judge.cautions.table import UNLIKE
from ...judge.choices import (
    AnyRow,
    Columns,
    Correction,
    NamedMetrics,
    Options,
    PlannedShares,
    RaiseOrDrop,
    Row,
    TwoPlaces,
    as_columns,
)
from ...judge.comparisons import Comparison, default_columns
from ...judge.effects.means import arms_of_sums, influence
from ...judge.effects.units import Units
from ...judge.per_user_columns import (
    Floats,
    Mask,
    MetricColumns,
    distinct,
    list_columns,
    metric_specs,
    named_frame,
    refuse_mixed_models,
)
from ...judge.users import ArmRows, ExperimentRows, read_experiment_rows
from ...judge.verdict import (
    VERDICT_COLUMNS,
    add_verdicts,
    by_rank,
    has,
    largest_of_uneven,
    remark,
    withhold,
)
from ...metrics.strings import direction_of
from ...stats.arms import (
    MEAN_ROUNDING,
    Arm,
    Effect,
    Sample,
    both,
    effect,
    may_be_skewed,
    skewness_of_arms,
)
from ...stats.turned import missing_by_chance
from ...tables.cells import amount, form_of, number
from ..decide.adjust_pvalues import directions, read_together
from ..decide.balance import Difference, movable_strata, shares_change, users_in_both
from ..decide.sample_ratio import Arms, Surplus, check_sample_ratio, without_strata
from ..join.join_experiment import fill_values
from ..metric_bounds import UNKNOWN_KIND
from ..samples import (
    MetricRows,
    Settings,
    declared_bounds,
    in_strata,
    make_units,
    per_metric,
    read_metrics,
    which_tests,
)
from .arms_of_users import compare_ready, heavy_units, moved_by_bounds, no_estimate
from .summed_users import needed_columns
from .two_sample import SKEWED_SAMPLES, measured_means
from .user_periods import (
    AbsentUsers,
    Exposures,
    PeriodKind,
    PeriodMetric,
    UserValue,
    each_period,
    read_people,
    read_periods,
    rows_in_memory,
)
from .variants import decide


@takes_options("user_col", engines="rows by user")
def effect_over_time(
    rows: Any,
    metrics: NamedMetrics,
    *,
    control: OneLabel,
    time_col: str,
    exposure_col: str | None,
    kind: PeriodKind = "daily",
    assignment: Any = None,
    variant_col: str = "variant",
    user_col: Columns = "user_id",
    cluster: Columns | None = None,
    how: UserValue | Mapping[str, UserValue] | None = None,
    missing: AbsentUsers = "zero",
    nan: RaiseOrDrop = "raise",
    multi_variant: RaiseOrDrop = "raise",
    confidence: float = 0.95,
    correction: Correction = "holm",
    sequential_n: int | None = None,
    expected: PlannedShares | None = None,
    strata: Columns | None = None,
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    progress: bool | None = None,
    options: Options | None = None,
    details: bool = False,
) -> DataFrame:
    """Compare every variant with the control in each period, and say whether the effect fades or
    grows.

    A period has one value per user, from the rows of the user in it, and is compared as
    `compare_variants` compares users. A user is in a period from the exposure on: before it the
    user is absent, and not 0. With τ_d the effect on day d and w_d = n_c·n_t/(n_c + n_t), the trend
    is the slope Σ c_d·τ_d, c_d = w_d(d − d̄)/Σ w_d(d − d̄)². Its variance is n/(n − 1)·Σ u² in each
    arm, where u = Σ c_d·z_d/n_d has what one user (or cluster) adds on all days together.

    * kind "daily": the users who are exposed by then, and what they did on that day.
    * kind "cumulative": the same users, and all that they did up to the end of that day. Bands hold
      at every look together (normal mixture, as `sequential_n=` of `compare_variants`). The trend
      is that of single days.
    * kind "since_exposure": day d of each user, counted from the exposure; only of users who were
      observed to its end.

    Parameters
    ----------
    rows : DataFrame, frame of Spark or Dask, or path of parquet files
        Events, or one row per user and day: `user_col`, `time_col` and metrics. Events of files and
        engines are added up by user and day where they are, and only the sums come into memory.
    metrics : str, list of str or mapping
        Metric columns, or name → column, or name → (numerator, denominator): a ratio of sums.
    control : label or None
        The variant that the others are compared with, or None for all pairs.
    time_col : str
        Time of the row: datetimes, dates, or numbers of which one is a day. Days are those of its
        own time zone.
    exposure_col : str or None
        Time at which the user was assigned or exposed, of the same kind; the earliest counts. Rows
        before it are left out, and so are users without one. None: all users were there before the
        first row.
    kind : {"daily", "cumulative", "since_exposure"}, default "daily"
        What a period is.
    assignment : DataFrame, optional
        One row per assigned user, with `variant_col`, `exposure_col` and `cluster`. Without it
        these are columns of `rows`, and users who have no row at all are not known.
    variant_col : str, default "variant"
        Column of the variant.
    user_col : str or list of str, default "user_id"
        Key of a user.
    cluster : str or list of str, optional
        Columns of clusters of users, which are the units then. Without it, a column of ids that
        looks as if stores were assigned whole withholds the verdicts.
    how : {"sum", "mean"} or mapping, optional
        Metric → what a user with several rows in a period counts with. Default: the mean for
        measures of lists that recdf knows (ndcg@10), the sum for everything else (counts and
        revenue).
    missing : {"zero", "drop"}, default "zero"
        Exposed users without rows in a period: 0 (a mean of which less is better is null then, as
        in `join_experiment`), or left out, which compares active users only and can turn the sign.
    nan : {"raise", "drop"}, default "raise"
        Rows whose metric is null: error, or leave them out. A user of a mean or sum all of whose
        rows are null is left out of the period and counted in `n_dropped`.
    multi_variant : {"raise", "drop"}, default "raise"
        Users in two variants: error, or leave them out.
    confidence : float, default 0.95
        Of the intervals.
    correction : {"holm", "hochberg", "sidak", "holm_sidak", "bonferroni", "bh", "by", "none"}
        Of p_value into p_adj: over all periods, metrics and treatments, or for "cumulative" over
        those of one look. Trends are a family of their own. Default "holm".
    sequential_n : int, optional
        For "cumulative": the planned number of units in two arms, at which the bands are tightest.
        It belongs to the plan; by default it is the number that there is at the end.
    expected : mapping, optional
        Planned share of every variant, tested in each period and over all users (χ², p < 0.001). In
        a ramp-up, those of each of `strata`, as `compare_variants` takes them.
    strata : str or list of str, optional
        Columns such as the period of a ramp-up, one value per user, within which users are
        compared, and of which `expected` may have the shares. The days of exposure need not be
        named. Strata that are no periods of the exposure must not be moved by the treatment: the
        verdict is withheld where users of one arm are in better ones.
    smaller_is_better, larger_is_better : str or list of str, optional
        Metrics of which less, or more, is better, as in `compare_variants`.
    bounds : mapping, optional
        Metric → (smallest, largest value) of a user in a period, as in `compare_variants`.
    progress : bool, optional
        Show the progress on stderr.
    options : Options, optional
        `user_col` of a project, where it is not given here.
    details : bool, default False
        Return all columns, not only those that a decision needs.

    Returns
    -------
    DataFrame
        One row per period, metric and treatment: `period` (the day, or days since the exposure),
        names, numbers of users, `diff`, `ci_low`, `ci_high`, `p_value` and `p_adj` as in
        `compare_variants`, `kind`, and for each metric and treatment, the same in all its rows:
        `trend` (change of the daily effect per day), `trend_ci_low`, `trend_ci_high`,
        `trend_withheld`, `trend_verdict`: "fades" or "grows" (the effect is smaller or larger late,
        whatever its sign), "turns" (both thirds are shown, p < 0.001, with opposite signs), "no
        trend shown", which is no proof of a constant effect, or why it is withheld ("not tested" of
        one period). Then `effect`,
        `withheld`, `remarks` and `verdict` of the period. With `details`, all columns of
        `compare_variants`, `trend_se`, `trend_p`, `trend_p_adj`, `trend_early` and `trend_late`
        (mean effect of the first and of the last third of the periods), `trend_effect`,
        `trend_remarks`.

    Raises
    ------
    ColumnError, NullKeyError
        A column is missing; a user, variant or cluster is null.
    OptionError
        An unknown option or metric name, control absent, one variant, `sequential_n` for another
        kind; a mean whose direction is not known, so that nobody can say what a user without rows
        is worth.
    DataError
        A user in two variants; times that cannot be compared; a metric that is not numeric or null
        with `nan="raise"`; no period to compare.

    Notes
    -----
    Use "since_exposure" for novelty: days of the calendar mix users who are new with users who are
    not. Its late days have only users who came early. Where the shares of the variants change over
    the days of exposure, as in a ramp-up, users are compared within the day of their exposure (with
    strata, as `compare_variants` does; "strata_differ" names the periods), and τ_d = Σ_h W_h·τ_dh,
    w_d = 1/Σ_h W_h²(1/n_ch + 1/n_th). Neighbouring days with fewer than 8 units of a variant are
    put together if their shares are alike. A day with fewer than 2 has nothing to compare; its
    users are in `n_dropped`. Do not read the days of "daily" one by one until one of them is
    significant; "cumulative" may be read every day.

    References
    ----------
    Kohavi, Tang, Xu: Trustworthy Online Controlled Experiments, 2020, ch. 23 (long-term effects);
    Waudby-Smith et al. 2023 (sequential); Liang & Zeger 1986 (variance by clusters).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame(
    ...     {
    ...         "user_id": range(40),
    ...         "variant": ["A", "B"] * 20,
    ...         "exposed": pd.Timestamp("2026-03-02"),
    ...     }
    ... )
    >>> days = pd.DataFrame({"day": pd.date_range("2026-03-01", periods=4)})
    >>> rows = users.merge(days, how="cross")
    >>> age = (rows["day"] - rows["exposed"]).dt.days
    >>> rows["orders"] = rows["user_id"] * (1 + age) % 7 + (rows["variant"] == "B") * (6 - 3 * age)
    >>> table = rd.experiments.effect_over_time(
    ...     rows,
    ...     "orders",
    ...     control="A",
    ...     time_col="day",
    ...     exposure_col="exposed",
    ...     kind="since_exposure",
    ...     expected={"A": 1, "B": 1},
    ... )
    >>> table[["period", "n_control", "diff", "trend"]]
       period  n_control  diff  trend
    0       0         20  5.95  -3.05
    1       1         20  2.90  -3.05
    2       2         20 -0.15  -3.05
    >>> table["trend_verdict"].iloc[0]
    'fades, unless 3 in 20 users of the treatment rise by 23.4 a day more than the others'
    """
    if kind == "since_exposure" and exposure_col is None:
        raise OptionError(
            '⟦kind="since_exposure"⟧ counts days since the exposure; name its column in '
            "⟦+exposure_col=⟧"
        )
    keys, strata_cols, clusters = map(as_columns, (user_col, strata, cluster))
    labels = [variant_col, *clusters, *strata_cols]
    times = time_col, exposure_col
    given = None if assignment is None else named_frame("assignment", assignment)
    rows, counts = rows_in_memory(rows, given, metrics, keys, labels, times, kind, nan)
    specs = metric_specs(metrics, rows, "rows")
    if list_columns(rows):
        refuse_mixed_models(rows, None, [*keys, *labels, *times], "drop them from rows", "rows")
    cumulative = kind == "cumulative"
    if sequential_n is not None and not cumulative:
        raise OptionError(
            '⟦sequential_n=⟧ is for ⟦+kind="cumulative"⟧, whose rows are looks at the same users'
        )
    values = _values_of_users(rows, specs, how, missing, smaller_is_better, larger_is_better)
    better = directions(measured_means(specs), smaller_is_better, larger_is_better)
    role = "rows" if given is None else "assignment"
    people = read_people(rows, counts, given, keys, labels, *times, multi_variant)
    read = [
        PeriodMetric(metric, *values[metric.name])
        for metric in read_metrics(rows, specs, {}, nan, "rows")
    ]
    periods = read_periods(people, kind)
    numbers = [time_col, *needed_columns(specs.values())]
    known = people.with_columns_of(rows, numbers)
    named = None if keys == ["user_id"] else keys
    users = read_experiment_rows(
        known, variant_col, [], named, strata_cols, clusters, numbers, role
    )

    def one_value(name: str) -> bool:
        return not name or name in people.frame or people.have_one(rows[name])

    if not one_value(users.guessed):
        users = replace(users, repeated=None)
    ramped = [] if exposure_col else shares_change(known, None, [], [variant_col], users)
    users = replace(
        users,
        variants=people.variants,
        variant=people.variant,
        groups=DataFrame({"period": periods.labels}),
        users=np.arange(len(people.frame)),
        strata=None,
        movable=movable_strata(known, users, exposure_col, strata_cols),
    )
    arms = Arms.of(users.groups, people.variants, control, role)
    exposures = Exposures(people, periods, users, strata_cols)
    counts = exposures.counts.sum(axis=1)
    by_stratum = (exposures.labels, exposures.counts)
    of_all = without_strata(counts)
    ratio = check_sample_ratio(
        expected, None, arms, lambda within: by_stratum if within and strata_cols else of_all
    )
    if cumulative and sequential_n is None:
        sequential_n = max(2, *(int(counts[-1][[*pair]].sum()) for pair in arms.pairs))
    fixed = Settings(
        which_tests("t", specs),
        confidence=confidence,
        correction=correction,
        bounds=declared_bounds(bounds, specs),
    )
    family = "period" if cumulative else None
    settings = replace(fixed, family=family, sequential_n=sequential_n)

    def arms_of(present: Mask) -> list[ArmRows]:
        """The users of each pair of variants who are present."""
        own = [np.flatnonzero(present & (people.variant == v)) for v in range(len(people.variants))]
        return [ArmRows.of(own[c], own[t]) for c, t in arms.pairs]

    compared = [exposures.within(users, pair) for pair in arms.pairs]
    trends = [
        [Trend(len(people.frame), periods.days, within) for within in compared] for _ in specs
    ]
    every = each_period(people, periods, read, cumulative)

    @lru_cache(maxsize=1)  # the pairs of a period stand together
    def of_period(period: int) -> tuple[Any, list[ArmRows]]:
        return next(every), arms_of((periods.start <= period) & (period < periods.stop))

    def test(period: int, pair: TwoPlaces, settings: Settings, surplus: Surplus) -> list[Row]:
        (alone, so_far), there = of_period(period)
        at = arms.pairs.index(pair)
        for metric, of_metric in zip(alone, trends, strict=True):
            of_metric[at].add(period, metric, there[at], settings)
        ready = (make_units(one, there[at], compared[at]) for one in so_far)
        return compare_ready(ready, settings, compared[at], surplus)

    where = ", ".join(strata_cols) or exposure_col
    n_periods = len(periods.rows)
    ramped = [
        one._replace(where=np.resize(one.where, n_periods)) for one in ramped if one_value(one.name)
    ]
    ramped += [] if where is None else [Difference("strata_differ", where, exposures.changed)]
    # Those who were left out would have come with the others, period by period.
    left_out = (people.n_in_both + users.left_out.sum(axis=0)) / np.maximum(counts[-1], 1)
    ramped += users_in_both(counts[:-1] * left_out, None, counts[:-1])

    result = decide(
        arms, test, ratio, better, settings, ramped, periods="effect_over_time", progress=progress
    )
    ever = arms_of(periods.start < periods.stop)
    slopes = [
        trend.row(both_arms, confidence)
        for of_metric in trends
        for trend, both_arms in zip(of_metric, ever, strict=True)
    ]
    trend_of = trend_table(slopes, list(specs), len(arms.pairs), result, fixed)
    again = pd.concat([trend_of] * n_periods, ignore_index=True)
    whole = pd.concat([result.assign(kind=kind), again], axis=1)
    whole.attrs = result.attrs
    return default_columns(Comparison.of(whole), details)


def _values_of_users(
    rows: DataFrame,
    specs: Mapping[str, MetricColumns],
    how: Any,
    missing: AbsentUsers,
    smaller: Columns | None,
    larger: Columns | None,
) -> dict[str, tuple[UserValue, bool]]:
    """What a user counts with, and whether users without rows in a period count as 0.

    It is the sum of the rows, or their mean, which measures of lists are by themselves. Sums are 0
    without rows, and so are means for which 0 is what no list is worth.
    """
    values: dict[str, UserValue] = {}
    for name, (column, _) in specs.items():
        known = direction_of(column)
        amounts = column.endswith("__n") or column.partition("@")[0] == "revenue"
        values[name] = "sum" if amounts or known is None or known.counts else "mean"
    values |= per_metric("how", how, specs, UserValue)
    if missing == "drop":
        return {name: (value, False) for name, value in values.items()}
    means = {
        name: column
        for name, (column, den) in specs.items()
        if values[name] == "mean" and den is None
    }
    less, more = (
        [means.get(name, name) for name in as_columns(side)] for side in (smaller, larger)
    )
    fills = fill_values(rows, list(means.values()), "zero", less, more, {}, "rows")
    return {
        name: (value, name not in means or fills[means[name]] == 0)
        for name, value in values.items()
    }


# Columns of the trend by those of any comparison.
TREND_COLUMNS = {
    name: f"trend_{name}"
    for name in [
        "diff",
        "se",
        "ci_low",
        "ci_high",
        "p_value",
        "p_adj",
        "early",
        "late",
        *VERDICT_COLUMNS,
    ]
} | {"diff": "trend", "p_value": "trend_p"}
# What a single period says of all, as a reason to withhold and as a remark.
OF_ALL = (*UNLIKE, "unequal_missing", "users_in_both", "surplus", "strata_moved")
ALIKE_IN_ALL = (
    "exposure_differs",
    "strata_differ_in_worth",
    "strata_differ",
    "shared_clusters",
    "ratio_not_checked",
)
SLOPE = ["diff", "se", "ci_low", "ci_high", "df", "p_value"]


class Trend:
    """The slope Σ c_d·τ_d of one metric and treatment, added period by period, and the mean effects
    early and late.

    τ_d is the effect of the period that lies at d days, and c_d = w_d(d − d̄)/Σ w_d(d − d̄)² with
    w_d = n_c·n_t/(n_c + n_t), or 1/Σ_h W_h²(1/n_ch + 1/n_th) in strata. A user's part in the slope
    is Σ c_d·z_d, with z_d its part in the estimate of its arm (0 where it is absent), so that what
    a user does on different days may be alike. Sums are kept for w_d·d and for w_d, because d̄ is
    not known before the last period, and for w_d of the first and of the last third of the periods,
    which lie at `days`.
    """

    def __init__(self, n_users: int, days: Floats, users: ExperimentRows) -> None:
        self.users = users
        third = max(1, round(len(days) / 3))
        self.days = days - days.mean()  # small numbers, so that the sums keep their digits
        thirds = self.days <= self.days[third - 1], self.days >= self.days[-third]
        self.factors = np.array([self.days, np.ones(len(days)), *thirds])
        self.weights = np.zeros(len(days))
        self.parts = np.zeros((4, n_users))
        self.effects = np.zeros(4)
        self.largest = 0.0
        self.kind = UNKNOWN_KIND
        self.heaviest: float = np.nan  # the largest weight in a period, NaN where all are alike
        self.moved = np.zeros(len(days))  # by one more user at a bound, NaN where none is known
        self.levers = np.zeros((len(days), 2))  # how far one more user who is 1 above moves an arm
        self.shares = True  # all values are 0 or 1

    def add(self, period: int, metric: MetricRows, both_arms: ArmRows, settings: Settings) -> None:
        kept = self.users.comparable(both_arms.defined(metric.defined))
        if min(kept.n) < 2:
            return
        units = make_units(metric, kept, replace(self.users, clusters=None)).units
        if no_estimate(units):
            return
        self.kind = metric.kind
        self.shares &= metric.kind.share
        means, added = influence(units)
        weight = 1 / (units.weights**2 / np.maximum(units.record.n[units.cells], 1)).sum()
        factors = weight * self.factors[:, period]
        self.parts[:, kept.rows] += factors[:, None] * added
        self.effects += factors * (means[1] - means[0])
        self.weights[period] = weight
        self.moved[period] = moved_by_bounds(units, metric, settings)[2].max()
        self.levers[period] = units.moved_by_one.max(axis=1)
        den = units.metric.den
        sizes: Any = np.ones(len(units.arm)) if den is None else units.columns[den]
        of = self.users.clusters
        if of is not None:
            sizes = np.bincount(2 * kept.take(of) + units.arm, sizes)
        self.heaviest = np.fmax(self.heaviest, largest_of_uneven(sizes))
        self.largest = max(self.largest, *np.abs(means))

    def row(self, both_arms: ArmRows, confidence: float) -> Row:
        """The slope with its test, the mean effects of the first and last third, whether these
        turn the sign, and which users would turn it."""
        kept = self.users.comparable(both_arms)
        clusters = None if self.users.clusters is None else kept.take(self.users.clusters)
        n = kept.n
        if clusters is not None:
            n = both(lambda own: len(distinct(own)), kept.split(clusters))
        seen = pd.notna(self.heaviest)
        row: Row = dict.fromkeys([*SLOPE, "early", "late", "turned_by", "lever"], np.nan) | {
            "n_counted": min(n),
            "turns": False,
            "skewed_by": 0.0,
            "turned_to": "lose or gain",
            "arm": 0,
            "n_asked": 0,
            "holds_for": heavy_units(self.kind, self.heaviest, clusters is not None)
            if seen
            else "",
        }
        if np.count_nonzero(self.weights) < 2 or min(n) < 2:
            return row
        sizes = np.abs(self.factors) @ self.weights
        _, total, first, last = sizes
        centre = self.days @ self.weights / total
        away = self.days - centre

        def test(*factors: float) -> tuple[Effect, Units]:
            """Test a linear combination of what is kept, by what each unit adds to it."""
            least = MEAN_ROUNDING * self.largest * (np.abs(factors) @ sizes)
            sample = Sample(np.array(factors) @ self.parts[:, kept.rows])
            units = in_strata(sample, kept, self.users, "the trend")
            thin = self.shares and clusters is None and units.stratum is not None
            control, treatment = (
                Arm(np.float64(0.0), one.var * (np.sqrt(one.var) > least), one.df)
                for one in (_arms_of_both(units) if thin else arms_of_sums(units))
            )
            diff = np.array(factors) @ self.effects
            diff *= abs(diff) > least
            return effect(control, treatment, confidence=confidence, diff=diff), units

        squares = self.weights @ np.square(away)
        slope, units = test(1.0 / squares, -centre / squares, 0.0, 0.0)
        if may_be_skewed(*n, SKEWED_SAMPLES) and slope.se > 0:
            values = units.columns[0] * units.record.n[units.cell]  # in the scale of the slope
            arms = both(lambda arm: values[units.arm == arm], (0, 1))
            row["skewed_by"] = abs(skewness_of_arms(*arms)) / SKEWED_SAMPLES
        moved = np.abs(self.weights * away) @ self.moved / squares
        row |= {name: float(getattr(slope, name)) for name in SLOPE}
        if moved > 0 and not self.shares:
            row["turned_by"] = abs(row["diff"]) / moved
        if np.isnan(moved):
            row["arm"] = arm = int(row["diff"] < 0)
            row["n_asked"] = kept.n[arm]
            row["lever"] = self.weights * away**2 @ self.levers[:, arm] / squares
        if first and last:
            early, late = test(0, 0, 1 / first, 0)[0], test(0, 0, 0, 1 / last)[0]
            row |= {"early": float(early.diff), "late": float(late.diff)}
            shown = max(early.p_value, late.p_value) <= HEALTH_ALPHA
            row["turns"] = shown and row["early"] * row["late"] < 0
        return row


def _unless(row: AnyRow) -> str:
    """Which users would turn a slope: so few more that rise by so much a day. Those of the other
    arm that fall would do so too, which counts and amounts seldom can."""
    if math.isnan(row["lever"]):
        return ""
    rise = abs(row["diff"]) * (1 + 1 / (row["unseen"] * row["lever"]))
    least, value = (
        number(one, form_of(one, significant=digits))
        for one, digits in ((row["unseen"], 1), (rise, 3))
    )
    those = f"{amount(row['n_asked'], 'user')} of the {('control', 'treatment')[row['arm']]}"
    return f"{least} in {those} rise by {value} a day more than the others"


def _arms_of_both(units: Units) -> tuple[Arm, Arm]:
    """The sums of both arms, of zeros and ones, with a variance in each cell of at least that of
    both arms in its stratum, so that a thin cell without a 1 has some.

    The variance of both arms alone, as `judge.effects.means` has it, rejects in 8 % of
    trends without an effect where 16 users of a stratum are treated, since their sums over days are
    skewed.
    """
    n = units.record.n[units.cells]
    each_unit = units.columns[0] * n.ravel()[units.cell]
    squares = np.bincount(units.cell, each_unit**2, n.size).reshape(n.shape)
    free = np.maximum(n.sum(axis=0) - 2, 1)
    parts = np.maximum(squares / np.maximum(n - 1, 1), squares.sum(axis=0) / free) / n
    df = parts.sum(axis=1) ** 2 / np.maximum((parts**2 / free).sum(axis=1), np.finfo(float).tiny)
    return both(lambda arm: Arm(0.0, parts[arm].sum(), df[arm]), (0, 1))


def trend_table(
    rows: Sequence[Row],
    metrics: list[str],
    n_treatments: int,
    judged: DataFrame,
    settings: Settings,
) -> DataFrame:
    """The trend of every metric and treatment, read together; `judged` are the rows of all
    periods, in their order."""
    table = DataFrame(rows)
    table.insert(0, "metric", np.repeat(metrics, n_treatments))
    read_together(table, settings)
    # What withholds the verdict of a period since the variants are not alike does so to the trend,
    # and so does what withholds most of them, but for units that are not seen: the trend asks it.
    remarks = []
    for i in range(len(table)):
        own = judged[i :: len(table)]
        n = own["withheld"].value_counts().drop(["", "unseen_units"], errors="ignore")
        found = [code for code in n.index if code in OF_ALL or 2 * n[code] > len(own)]
        found += [code for code in ALIKE_IN_ALL if has(own["remarks"], code).any()]
        remarks.append(by_rank(found))
    table["remarks"] = remarks
    reject = table["reject"].astype(bool)
    # That of one period stands for all.
    table["detail"] = judged["detail"].to_numpy().reshape(-1, len(table)).max(axis=0)
    table["turned_by"] = table["turned_by"].where(reject)
    table["unseen"] = missing_by_chance(settings.alpha, table["p_value"], table["p_adj"])
    table["unless"] = [*map(_unless, table.to_dict("records"))]
    remark(table, table["se"].isna() & (table["diff"].abs() > 0), "zero_variance")
    remark(table, reject & (table["unless"] != ""), "unbounded")
    fades = np.where(table["late"].abs() > table["early"].abs(), "grows", "fades")
    shown = np.where(table["turns"].astype(bool), "turns", fades)
    add_verdicts(table, "trend", np.where(reject, shown, "none"))
    withhold(table, table["diff"].isna() & (table["withheld"] == ""), "not_tested")  # of one period
    return table[[*TREND_COLUMNS]].rename(columns=TREND_COLUMNS)
