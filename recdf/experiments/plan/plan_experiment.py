"""How many users an experiment needs, or what it can show; and in how many days the users
arrive."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from statistics import NormalDist
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from ...errors import DataError, OptionError
from ...inputs.constraints import (
    Above0,
    Constraint,
    Positive,
    Share,
    a_number,
    read_change,
)
from ...inputs.door import checks_names
from ...inputs.frames import as_datetimes
from ...inputs.sorting import distinct
from ...judge.cautions import TINY
from ...judge.choices import (
    Alternative,
    Columns,
    NamedMetrics,
    RaiseOrDrop,
    TwoPlaces,
    as_columns,
    check_value,
)
from ...judge.effects.means import slopes
from ...judge.per_user_columns import (
    Codes,
    Floats,
    key_codes,
    metric_specs,
    metric_values,
    require,
    warn_of_weights,
)
from ...judge.users import ArmRows, read_experiment_rows
from ...stats.always_valid import always_valid_multiplier
from ...stats.arms import MEAN_ROUNDING, Sample, arm, imbalance, linearise, moments_of
from ...stats.student import (
    beyond,
    chance_beyond,
    detectable_t,
    fewest,
)
from ...stats.turned import missing_by_chance, typical_units
from ..compare.two_sample import SKEWED_SAMPLES
from ..samples import (
    MetricRows,
    covariate_specs,
    declared_bounds,
    read_metrics,
    refuse_huge,
    subset,
    sum_by,
    units_of,
    without_gaps,
)

# ------------------------------------------------------------------------------------------
# New users by day, from a log, and the days until an experiment has its users.


# Days whose average is expected after the last one.
WEEK = 7


@checks_names
def arrivals_by_day(log: DataFrame, *, time_col: str, user_col: Columns = "user_id") -> DataFrame:
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
    keys = require(log, "log", user_col)
    require(log, "log", [time_col])
    where = f"log[{time_col!r}]"
    if not len(log):
        raise DataError("log has no rows; expected one per user and time")
    if null := int(log[time_col].isna().sum()):
        raise DataError(f"{where} is null in {null:,} of {len(log):,} rows; expected times")
    times = as_datetimes(log[time_col], where)
    (user,), n_users = key_codes([("log", log)], keys)
    day = times.dt.tz_localize(None).dt.normalize()
    every = pd.date_range(day.min(), day.max(), freq="D")
    at = every.get_indexer(pd.DatetimeIndex(day))
    first = np.full(n_users, len(every))
    np.minimum.at(first, user, at)
    user_days = distinct(user * len(every) + at)
    new, there = (
        np.bincount(days, minlength=len(every)) for days in (first, user_days % len(every))
    )
    return DataFrame({"day": every, "new_users": new, "users": there})


def _days_until(n: float, coming: Floats) -> float:
    """Days until n users came; NaN if they never do."""
    total = np.cumsum(coming)
    if n <= total[-1]:
        return float(np.searchsorted(total, n) + 1)
    rate = coming[-WEEK:].mean()
    return float(len(coming)) + math.ceil((n - total[-1]) / rate - 1e-9) if rate > 0 else math.nan


# ------------------------------------------------------------------------------------------
# How many users an experiment needs, or what it can show.


Z95 = NormalDist().inv_cdf(0.975)


Margins = Annotated[
    Mapping[str, Any],
    Constraint(
        "a mapping of metrics to margins, as {'revenue': '-2%'}",
        lambda given: isinstance(given, Mapping),
    ),
]


@checks_names
def plan_experiment(
    per_user: DataFrame,
    metrics: NamedMetrics,
    *,
    n: int | None = None,
    rel_effect: Above0 | None = None,
    control_share: Share = 0.5,
    alpha: Share = 0.05,
    power: Share = 0.8,
    covariates: NamedMetrics | None = None,
    nan: RaiseOrDrop = "raise",
    cluster: Columns | None = None,
    arrivals: DataFrame | Sequence[float] | None = None,
    sequential: bool = False,
    guardrails: Margins | None = None,
    n_comparisons: Positive = 1,
    alternative: Alternative = "two-sided",
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> DataFrame:
    """Say how small an effect `n` users can show, or how many users, and days, a relative effect
    needs.

    With s the standard deviation per user (after the adjustment when covariates are given), c the
    control's share and K the noncentrality for which a noncentral t with n − 2 degrees of freedom
    exceeds t_{1−α/2} with the chance `power` (about z_{1−α/2} + z_power for many users): mde =
    K·s·√(1/(c·n) + 1/((1 − c)·n)).

    * cluster: s² is the variance of the mean by sums per cluster, times the rows; its ratio to that
      by rows is the design effect. The degrees of freedom count clusters.
    * sequential: K = A + z_power with A the multiplier of the interval that holds at every look, at
      its planned n.
    * guardrails: K is that of the one-sided test of level α that no loss is as large as the margin
      δ, without an effect; with a relative margin u the control's part is (1 + u)²/(c·n). Each of G
      guardrails has the power 1 − (1 − power)/G, so that all of them are shown safe with the chance
      `power`.
    * A metric that has a bound, as ndcg has 0 and 1, and revenue 0: U = ln(n_comparisons/α) users
      at it, whom a sample may lack by chance, must not turn what is found. With the reach r of one
      user, from the mean m of the past to the farther bound, mde is at least
      z_power·s·√(1/(c·n) + 1/((1 − c)·n)) + U·r/(n of an arm).
    * n_low, n_high: n·exp(∓1.96·v), with v² the variance of ln(s²/m²) by z²/s² − 2·z/m of the units
      of the past.

    Parameters
    ----------
    per_user : DataFrame
        One row per user of the past, such as the control's or last month's; rows below the user
        need `cluster`.
    metrics, covariates, nan
        As in `compare_variants`; several covariates are a regression.
    n : int
        Users in both arms together; or
    rel_effect : float
        the effect to be found, relative to the mean (0.02: two per cent). Exactly one of the two,
        unless all metrics are guardrails.
    control_share : float, default 0.5
        Share of the control among the users of both arms.
    alpha, power : float, default 0.05, 0.8
        Level of the test, and chance of finding the effect.
    cluster : str or list of str, optional
        Columns of what is assigned as a whole. Users are then rows.
    arrivals : DataFrame or list of float, optional
        New users by day, as `arrivals_by_day` counts them in a log, or their numbers in order:
        those who come into these two arms, 0 on a `day` without a row. After the last day as many
        come as on an average day of the last week.
    sequential : bool, default False
        The comparison will be made with `sequential_n=` of the planned users.
    guardrails : mapping, optional
        Metric (of `metrics`) → margin, such as "-2%" of the mean or -0.05 in units of the metric.
    n_comparisons : int, default 1
        Tests that are corrected together: each has the level alpha/n_comparisons.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        Of the test of an effect.
    bounds : mapping, optional
        Metric → (smallest, largest value) of a user, as the comparison will be given them.

    Returns
    -------
    DataFrame
        One row per metric: `metric`, `role` ("success" or "guardrail"), `mean`, `std` (per user,
        without covariates), `n_control`, `n_treatment` (int64), `n_low`, `n_high` (95 % interval of
        their sum, null with `n`), `days` (until so many users came; null without `arrivals`),
        `mde_abs`, `mde_rel` (null unless the mean is positive; of a guardrail, the smallest margin
        that is shown; both null with fewer than 20 users in an arm, whose verdict is withheld),
        `power` (of a guardrail with `n`: that its margin is shown; 0 with such an arm),
        `variance_reduction` (null without covariates), `design_effect` (null without clusters),
        `remarks` ("skewed" where `compare_variants` may withhold its verdict, since a few large
        values decide between arms of so different sizes: plan equal arms, `cap=` or
        `test="permutation"`).

    Raises
    ------
    ColumnError, OptionError
        A column is missing; not exactly one of `n` and `rel_effect`, or an option out of range.
    DuplicateError
        Several rows of a "user_id" without `cluster`, such as sessions.
    DataError
        A metric with fewer than 2 units, not numeric, infinite or null; a value outside of
        `bounds`; `rel_effect` with a mean that is not positive.

    References
    ----------
    Kish 1965 (design effect); Schultzberg, Ankargren & Frånberg 2024 (power of guardrails).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame({"revenue": [0.0, 10.0, 0.0, 30.0]})
    >>> plan = rd.experiments.plan_experiment(
    ...     users, "revenue", rel_effect=0.1, arrivals=[900, 500, 400]
    ... )
    >>> plan[["metric", "mean", "n_control", "n_treatment", "days", "mde_abs"]]
        metric  mean  n_control  n_treatment  days  mde_abs
    0  revenue  10.0       3141         3141  11.0      1.0
    """
    specs = metric_specs(metrics, per_user, "per_user")
    margins = {
        name: read_change(f"guardrails[{name!r}]", given)
        for name, given in (guardrails or {}).items()
    }
    subset("guardrails", list(margins), specs)
    if (n is None) == (rel_effect is None) and (n is not None or len(margins) < len(specs)):
        raise OptionError("pass exactly one of ⟦+n=⟧ and ⟦+rel_effect=⟧")
    planned = _Design(control_share, alpha / n_comparisons, power, alternative, sequential)
    # Each guardrail is tested against one side, and all of them are to be shown safe together.
    of_guardrail = planned._replace(
        level=alpha,
        power=1 - (1 - power) / max(len(margins), 1),
        alternative="two-sided" if sequential else "greater",
    )
    clusters = read_experiment_rows(
        per_user, None, [], None, cluster=as_columns(cluster), role="per_user"
    ).clusters
    warn_of_weights(per_user, "per_user", [name for pair in specs.values() for name in pair])
    coming = None
    if arrivals is not None:
        if not isinstance(arrivals, DataFrame):
            arrivals = DataFrame({"new_users": as_columns(arrivals)})
        coming = metric_values(arrivals, "arrivals", "new_users")
        if not len(coming) or not (coming >= 0).all():
            raise DataError("arrivals has no day, or days with a null or negative number of users")
        if "day" in arrivals:
            days = as_datetimes(arrivals["day"], "arrivals['day']")
            if days.isna().any():
                raise DataError("arrivals['day'] is null in some rows; expected days")
            # In their order; on a day without a row nobody comes.
            by_day = Series(coming, pd.DatetimeIndex(days)).resample("D").sum()
            coming = np.asarray(by_day, np.float64)
    xs = covariate_specs(covariates, specs, per_user)
    declared = declared_bounds(bounds, specs)
    rows = []
    for metric in read_metrics(per_user, specs, xs, nan, "per_user"):
        past = read_past(metric, len(per_user), clusters)
        role, test, error = "success", planned, past.error
        harm: Alternative = alternative
        wanted = (rel_effect or 0) * past.mean
        if metric.name in margins:
            (allowed, relative), role = margins[metric.name], "guardrail"
            harm = "greater" if allowed < 0 else "less"
            # k users at a bound take the mean of n others by k·left/(n + k).
            test = of_guardrail._replace(few=past.unseen(alpha, past.planned))
            wanted, error = abs(allowed), past.error_std
            if relative:
                test = test._replace(scale=1 + allowed)
                wanted, error = abs(allowed * past.mean), past.error
            if not wanted > 0:
                raise OptionError(
                    f"a margin of {allowed:g} beside the mean {past.mean:g} is never shown to be "
                    "safe"
                )
        elif n is None and not past.mean > 0:
            raise DataError(
                f"metric {metric.name!r} has mean {past.mean:g}; a relative effect needs a "
                "positive mean, pass n="
            )
        # How far a user of the control and one of the treatment can be from what is said of them;
        # null where no bound is known.
        low, high = metric.kind.bounds(np.array(past.mean), metric.name, declared)
        left = past.mean - low, high - past.mean
        most = np.fmax(*left)
        reach = {"greater": left[::-1], "less": left}.get(harm, (most, most))
        below, above = (past.unseen(test.level, one) for one in reach)
        test = test._replace(size=past.size, unseen=(below, above))
        effect = wanted / past.planned
        arms = test.needed(effect) if n is None else test.arms(n)
        mde = wanted if n is None else test.least_effect(arms) * past.planned
        sought = n is not None and role == "guardrail"
        chance = test.chance(arms, effect) if sought else test.power
        spread = math.exp(Z95 * error) if n is None else math.nan
        rows.append(
            {
                "metric": metric.name,
                "role": role,
                "mean": past.mean,
                "std": past.std,
                "n_control": arms[0],
                "n_treatment": arms[1],
                "n_low": sum(arms) / spread,
                "n_high": sum(arms) * spread,
                "days": math.nan if coming is None else _days_until(sum(arms), coming),
                "mde_abs": mde,
                "mde_rel": mde / past.mean if past.mean > 0 else math.nan,
                "power": 0.0 if math.isnan(mde) else chance,
                "variance_reduction": past.reduction,
                "design_effect": past.design_effect,
                "remarks": past.remarks(arms),
            }
        )
    return DataFrame(rows)


class Past(NamedTuple):
    """A metric in the past: its mean, standard deviations per user, as they are and as the test
    sees them.

    `size` is the number of users of a unit, and `typical` that of a unit of typical weight; `error`
    and `error_std` are the standard errors of ln(planned²/mean²) and of ln(planned²).
    """

    mean: float
    std: float
    planned: float
    size: float
    typical: float
    error: float
    error_std: float
    reduction: float
    design_effect: float
    skewness: float

    def remarks(self, arms: TwoPlaces) -> str:
        """Return "skewed" where the verdict of a comparison of so many users would be withheld."""
        units = (n / self.size for n in arms)
        return "skewed" if abs(self.skewness * float(imbalance(*units))) > SKEWED_SAMPLES else ""

    def unseen(self, alpha: float, reach: float) -> float:
        """Return how far the units that a sample may lack by chance take the sum of all users, each
        by `reach`, in standard deviations; 0 where the reach is not known."""
        return float(np.nan_to_num(missing_by_chance(alpha) * self.typical * reach / self.planned))


def read_past(metric: MetricRows, n_rows: int, clusters: Codes | None) -> Past:
    """What the rows of the past say of one metric."""
    kept = metric.kept(np.arange(n_rows))
    take = itemgetter(kept)
    sample = metric.sample.each(take)
    refuse_huge(metric)
    by_rows = arm(sample.num, sample.den).var if len(kept) > 1 else math.nan
    # As the experiment will see it, with its covariates or without what they explain.
    xs = [one.each(take) for one in metric.covariates.values()]
    covariates = [*map(without_gaps, xs)]
    if sample.den is None:
        covariates += [Sample(one.missing.astype(np.float64)) for one in xs if one.missing.any()]
    sample = sample._replace(covariates=tuple(covariates))
    if clusters is not None:
        sample, _ = sum_by(sample, clusters[kept])
    n_units = len(sample.num)
    if n_units < 2:
        unit = "users" if clusters is None else "clusters"
        raise DataError(
            f"metric {metric.name!r} has {n_units} {unit}; a standard deviation needs at least 2"
        )
    theta, _ = slopes(units_of(sample, ArmRows(None, np.zeros(n_units, np.int64))))
    mean, z = linearise(sample.num, sample.den)
    of_covariates = (linearise(one.num, one.den)[1] for one in sample.covariates)
    z_seen = z - sum(t * x for t, x in zip(theta, of_covariates, strict=True))
    plain, planned = (
        math.sqrt(one @ one / (n_units - 1) * len(kept) / n_units) for one in (z, z_seen)
    )
    std = math.sqrt(by_rows * len(kept))
    influence = z_seen**2 * ((n_units - 1) / max(z_seen @ z_seen, 1e-300))
    of_both = influence - (2 * z / mean if mean else 0.0)
    error, error_std = (np.std(one) / math.sqrt(n_units) for one in (of_both, influence))
    if not planned > MEAN_ROUNDING * abs(float(mean)):
        raise DataError(
            f"metric {metric.name!r} has the same value for all; nothing says how it varies"
        )
    reduction = 1 - (planned / plain) ** 2 if metric.covariates and plain > 0 else math.nan
    design_effect = math.nan if clusters is None or not std > 0 else (plain / std) ** 2
    size = len(kept) / n_units
    weights = np.ones(n_units) if sample.den is None else sample.den
    typical = len(kept) / typical_units(weights)
    skewness = float(moments_of(z_seen).skewness)
    return Past(
        float(mean),
        std,
        planned,
        size,
        typical,
        error,
        error_std,
        reduction,
        design_effect,
        skewness,
    )


class _Design(NamedTuple):
    """How a metric of the experiment will be tested. Effects are in standard deviations; `size`
    users are a unit, and `scale` is what the control's mean is multiplied by.

    Units that a sample may lack by chance take the sum of the control and that of the treatment so
    far (`unseen`), and add a `few` users to either arm.
    """

    control_share: float
    level: float
    power: float
    alternative: Alternative
    sequential: bool
    size: float = 1.0
    scale: float = 1.0
    unseen: tuple[float, float] = (0.0, 0.0)
    few: float = 0.0

    def arms(self, n: int) -> tuple[int, int]:
        """Users of both arms of an experiment of n users."""
        n_control = round(check_value("n", n, a_number(4, whole=True)) * self.control_share)
        if min(n_control, n - n_control) < 2:
            raise OptionError(
                f"n={n} with ⟦+control_share={self.control_share}⟧ leaves an arm with fewer than 2 "
                "users"
            )
        return n_control, n - n_control

    @property
    def limit(self) -> float:
        """How many standard errors a sequential interval reaches at the planned number of units,
        whatever that is."""
        return float(always_valid_multiplier(1.0, 1.0, 1 - self.level, self.alternative))

    def of(self, arms: TwoPlaces) -> tuple[float, float, float]:
        """The standard error of a difference, its degrees of freedom, and how many standard errors
        unseen units turn."""
        error = math.sqrt(self.scale**2 / arms[0] + 1 / arms[1])
        turned = max(far / (n + self.few) for far, n in zip(self.unseen, arms, strict=True))
        return error, sum(arms) / self.size - 2, turned / error

    def least_effect(self, arms: TwoPlaces) -> float:
        """The smallest effect that is found with the power; null where the verdict would be
        withheld."""
        if min(arms) < TINY:
            return math.nan
        error, df, turned = self.of(arms)
        of_test = (
            beyond(self.limit, self.power)
            if self.sequential
            else detectable_t(max(df, 1.0), self.level, self.power, self.alternative)
        )
        return float(max(of_test, beyond(turned, self.power))) * error

    def chance(self, arms: TwoPlaces, effect: float) -> float:
        """Chance of finding an effect."""
        error, df, turned = self.of(arms)
        errors = effect / error
        found = (
            NormalDist().cdf(errors - self.limit)
            if self.sequential
            else float(chance_beyond(df, self.level, errors, self.alternative))
        )
        return min(found, NormalDist().cdf(errors - turned)) if turned else found

    def needed(self, effect: float) -> tuple[int, int]:
        """Users of both arms that find an effect with the power; the t quantile depends on their
        number."""
        shares = self.control_share, 1 - self.control_share

        def arms(larger: int) -> tuple[int, int]:
            control, treatment = (
                max(2, math.ceil(larger * share / max(shares) - 1e-9)) for share in shares
            )
            return control, treatment

        limit = effect * (1 + 1e-9)
        return arms(fewest(lambda n: self.least_effect(arms(n)) <= limit, 2))
