"""One treatment against the control in one segment: units in, rows of numbers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..inputs.progress import Progress
from .columns import Codes
from .estimates import Estimate, estimate, few_clusters
from .experiment_rows import ExperimentRows
from .options import Alternative, Method, Relative, VariantTest
from .samples import Metric
from .stats.always_valid import always_valid_multiplier, always_valid_p
from .stats.arms import HUGE, Sample, linearise, skewness_of_difference
from .stats.bootstrap import bootstrap_p, quantile_interval, replicate_estimates, standard_error
from .stats.effects import Effect, effect, fieller
from .stats.permutation import observed_t, permutation_p, permutation_quantiles, permuted_t
from .stats.power import beyond, detectable, detectable_t
from .stats.proportions import compare_shares
from .units import Units, make_units

__all__: list[str] = []

# Power of the `mde` column.
POWER = 0.8
# Fewer units than this in an arm, or fewer clusters, are named in a warning.
TINY = 20
# Fewer equal users than this carry as much of a ratio's denominator as an arm does: one user has 30 % of it. A test at
# 5 % then errs in 11 % of simulated experiments, and in half of them where one user has a third.
CARRIED_BELOW = 12
# |k| beyond which the t interval lies on the wrong side: every simulated setting with a type I error of 10 % or
# more is above it.
SKEWED = 0.2
# Share of units without a denominator from which a ratio rests on few units.
MOSTLY = 0.95


@dataclass(frozen=True)
class Settings:
    """Options of a comparison that every pair of arms needs; `tests` names the metrics compared as proportions."""

    alternative: Alternative = "two-sided"
    confidence: float = 0.95
    sequential_n: int | None = None
    method: Method = "welch"
    n_resamples: int = 2000
    seed: int = 0
    relative: Relative = "fieller"
    tests: Mapping[str, VariantTest] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """Numbers of one metric and treatment. The field `unequal_missing` withholds the verdict."""

    metric: str
    n_control: int
    n_treatment: int
    n_dropped: int
    n_dropped_control: int
    n_dropped_treatment: int
    mean_control: float = np.nan
    mean_treatment: float = np.nan
    mean_control_adjusted: float = np.nan
    mean_treatment_adjusted: float = np.nan
    diff: float = np.nan
    se: float = np.nan
    ci_low: float = np.nan
    ci_high: float = np.nan
    rel_diff: float = np.nan
    rel_ci_low: float = np.nan
    rel_ci_high: float = np.nan
    statistic: float = np.nan
    df: float = np.nan
    p_value: float = np.nan
    mde: float = np.nan
    method: str = ""
    cap: float = np.nan
    theta: float = np.nan
    variance_reduction: float = np.nan
    n_covariate_missing: int = 0
    warning: str = ""

    def but(self, *warnings: str, **changes: float | str) -> Row:
        """The row with other numbers and more warnings."""
        named = [*self.warning.split("; "), *warnings] if self.warning else list(warnings)
        return replace(self, **changes, warning="; ".join(named))  # type: ignore[arg-type]


def compare_arms(
    metrics: list[Metric], arms: tuple[Codes, Codes], data: ExperimentRows, settings: Settings
) -> list[Row]:
    """One row per metric for one treatment in one segment."""
    rows: list[Row] = []
    waiting: dict[int, tuple[Units, Estimate]] = {}
    for i, metric in enumerate(metrics):
        units = make_units(metric, arms, data, settings.method == "bootstrap")
        row = _start(metric, units, settings)
        problem = _no_estimate(units)
        if problem:
            rows.append(_bare(row, units, problem))
            continue
        found = estimate(units)
        row, tested = _compare(row, units, found, settings)
        rows.append(row)
        if tested and settings.method != "welch":
            waiting[i] = units, found
    # Metrics over the same units share one set of weights; dropped users make other units.
    together = [i for i in waiting if metrics[i].defined is None]
    resample = _bootstrap if settings.method == "bootstrap" else _permute
    unordered = data.users is None and data.clusters is None
    for batch in [together, *([i] for i in waiting if i not in together)]:
        if batch:
            new = resample([rows[i] for i in batch], [waiting[i] for i in batch], unordered, settings)
            for i, row in zip(batch, new, strict=True):
                rows[i] = row
    return rows


def _start(metric: Metric, units: Units, settings: Settings) -> Row:
    """What is known before anything is estimated."""
    dropped = units.n_dropped
    how = [settings.method if settings.sequential_n is None else "sequential"]
    row = Row(
        metric.name,
        *units.n,
        sum(dropped),
        *dropped,
        method="+".join([*how, *(["cluster"] if units.clustered else [])]),
        cap=metric.cap,
        n_covariate_missing=units.n_covariate_missing,
    )
    return row.but(*units.warnings, *(["unequal_missing"] if units.unequal_missing else []))


def _no_estimate(units: Units) -> str:
    """Why there is nothing to compute, or nothing."""
    sides = (units.control, units.treatment)
    if min(units.n) < 2:
        return "too_few_users"
    parts = [part for side in sides for part in side if part is not None] + list(units.designs or ())
    if any(part.size and np.abs(part).max() >= HUGE for part in parts):
        return "huge_values"
    if any(side.den is not None and not side.den.any() for side in sides):
        return "zero_denominator"
    return ""


def _bare(row: Row, units: Units, problem: str) -> Row:
    """Means where they exist, and no statistics."""
    means = []
    for side in (units.control, units.treatment):
        empty = not len(side.num) or (side.den is not None and not side.den.any())
        scale = max(1.0, float(np.abs(side.num).max(initial=0)))
        means.append(np.nan if empty else float(linearise(side.num / scale, side.den)[0]) * scale)
    control, treatment = np.float64(means[0]), np.float64(means[1])
    with np.errstate(over="ignore", invalid="ignore"):
        diff = treatment - control
        relative = treatment / control - 1 if control > 0 else np.float64(np.nan)
    diff, relative = (value if np.isfinite(value) else np.float64(np.nan) for value in (diff, relative))
    return row.but(
        problem, mean_control=means[0], mean_treatment=means[1], diff=float(diff), rel_diff=float(relative)
    )


def _compare(row: Row, units: Units, found: Estimate, settings: Settings) -> tuple[Row, bool]:
    """The row with its estimates and its test; False where no test can be made."""
    control, treatment = (float(one.mean) for one in found.arms)
    row = replace(
        row,
        mean_control=float(found.raw[0].mean),
        mean_treatment=float(found.raw[1].mean),
        mean_control_adjusted=control if found.how else np.nan,
        mean_treatment_adjusted=treatment if found.how else np.nan,
        diff=treatment - control,
        rel_diff=treatment / control - 1 if control > 0 else np.nan,
        theta=found.theta,
        variance_reduction=found.reduction,
        method=_method(row.method, found.how),
    )
    constant = [not one.var > 0 for one in found.raw]
    if settings.tests.get(row.metric) == "proportion" or (all(constant) and _all_against_none(units, row)):
        return _proportion(row, units, settings), False
    row = row.but(*_cautions(units, found, settings))
    if all(constant) or not (found.arms[0].var + found.arms[1].var > 0):
        return row.but("zero_variance"), False
    if any(constant):
        return row.but("constant_arm"), False
    if "skewed" in row.warning and settings.sequential_n is not None:
        return row.but("sequential_refused"), False
    if settings.method != "welch":
        return row, True
    return _numbers(row, _welch(units, found, settings), settings, units), True


def _method(method: str, how: str) -> str:
    """The test, then the adjustment, then the cluster, as in "welch+cuped+cluster"."""
    test, _, cluster = method.partition("+")
    return "+".join(part for part in (test, how, cluster) if part)


def _all_against_none(units: Units, row: Row) -> bool:
    """Whether every user of one arm has a 1 and every user of the other a 0: no variance, yet a clear difference."""
    plain = units.control.den is None and not units.clustered and np.isnan(row.mean_control_adjusted)
    return plain and {row.mean_control, row.mean_treatment} == {0.0, 1.0}


def _cautions(units: Units, found: Estimate, settings: Settings) -> list[str]:
    """Warnings about the units that the test is made of."""
    cautions = []
    if units.clustered:
        if min(few_clusters(units.control), few_clusters(units.treatment)) < TINY:
            cautions.append("few_clusters")
    elif units.n_counting < TINY:
        cautions.append("tiny")
    if any(s.den is not None and (s.den == 0).mean() >= MOSTLY for s in (units.control, units.treatment)):
        cautions.append("mostly_zero_denominator")
    if settings.method == "welch" and not units.clustered and _carried_by_few(units):
        cautions.append("few_users_carry")
    if settings.method != "permutation" and abs(skewness_of_difference(*found.values, SKEWED)) > SKEWED:
        cautions.append("skewed")
    return cautions


def _carried_by_few(units: Units) -> bool:
    """Whether a few users have most of a ratio's denominator in an arm, such as a program with thousands of views."""
    arms = (units.control, units.treatment)
    return any(s.den is not None and len(s.den) >= TINY and few_clusters(s) < CARRIED_BELOW for s in arms)


def _welch(units: Units, found: Estimate, settings: Settings) -> Effect:
    if settings.sequential_n is None:
        return effect(
            *found.arms,
            alternative=settings.alternative,
            confidence=settings.confidence,
            relative=settings.relative,
        )
    n = sum(units.n)
    multiplier = always_valid_multiplier(n, settings.sequential_n, settings.confidence)
    tested = effect(
        *found.arms, confidence=settings.confidence, relative=settings.relative, always_valid=multiplier
    )
    p = always_valid_p(tested.statistic, n, settings.sequential_n, settings.confidence)
    return tested._replace(p_value=p, df=np.nan)


def _numbers(row: Row, tested: Effect, settings: Settings, units: Units) -> Row:
    """The row with the numbers of its test and the smallest effect that this test finds."""
    numbers = {name: float(value) for name, value in tested._asdict().items() if name not in ("diff", "rel_diff")}
    if settings.sequential_n is not None:
        multiplier = float(always_valid_multiplier(sum(units.n), settings.sequential_n, settings.confidence))
        factor = beyond(multiplier, POWER)
    else:
        factor = float(detectable_t(numbers["df"], 1 - settings.confidence, POWER, settings.alternative))
    return row.but(**numbers, mde=factor * numbers["se"])


def _proportion(row: Row, units: Units, settings: Settings) -> Row:
    """The row by Fisher's test and Newcombe's interval."""
    found = compare_shares(
        units.control.num, units.treatment.num, alternative=settings.alternative, confidence=settings.confidence
    )
    factor = detectable(1 - settings.confidence, POWER, settings.alternative)
    # Without a difference both arms have the share of all users, which has a spread where one arm has none.
    both = np.concatenate([units.control.num, units.treatment.num])
    pooled = float(np.sqrt(both.mean() * (1 - both.mean()) * (1 / units.n[0] + 1 / units.n[1])))
    return row.but(
        se=float(found.se),
        ci_low=float(found.ci_low),
        ci_high=float(found.ci_high),
        p_value=float(found.p_value),
        mde=factor * pooled if pooled > 0 else np.nan,
        method="proportion",
    )


Waiting = Sequence[tuple[Units, Estimate]]


def _bootstrap(rows: list[Row], waiting: Waiting, unordered: bool, settings: Settings) -> list[Row]:
    """se, intervals and p from the replicates of both arms."""
    thetas = [found.theta for _, found in waiting]
    xs = [found.x for _, found in waiting]
    sides: list[list[Sample]] = [[units.control for units, _ in waiting], [units.treatment for units, _ in waiting]]
    replicates = []
    with Progress(len(sides), "both arms") as progress:
        for side, samples in enumerate(sides):
            seed = (settings.seed, side)
            replicates.append(replicate_estimates(samples, thetas, xs, settings.n_resamples, seed, unordered))
            progress.add()
    control, treatment = replicates
    diff, centre = treatment - control, np.zeros(len(rows))
    alternative, confidence = settings.alternative, settings.confidence
    low, high = quantile_interval(diff, centre, alternative=alternative, confidence=confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        positive = (control > 0).all(axis=0) & (treatment > 0).all(axis=0)
        relative = np.where(positive, treatment / control - 1, np.nan)
    rel_low, rel_high = quantile_interval(relative, centre, alternative=alternative, confidence=confidence)
    p, se = bootstrap_p(diff, alternative), standard_error(diff)
    factor = detectable(1 - confidence, POWER, alternative)
    return [
        row.but(
            se=float(se[j]),
            ci_low=float(low[j]),
            ci_high=float(high[j]),
            rel_ci_low=float(rel_low[j]),
            rel_ci_high=float(rel_high[j]),
            p_value=float(p[j]),
            mde=factor * float(se[j]),
        )
        for j, row in enumerate(rows)
    ]


def _permute(rows: list[Row], waiting: Waiting, unordered: bool, settings: Settings) -> list[Row]:
    """p and interval from shuffled labels; the interval holds 0 where p is above alpha."""
    control, treatment = (np.column_stack([found.values[side] for _, found in waiting]) for side in (0, 1))
    if unordered:
        # Units without ids are put in the order of their values, so that the order of the rows says nothing.
        control, treatment = (part[np.lexsort(part.T)] for part in (control, treatment))
    both = np.concatenate([control, treatment])
    shuffled = permuted_t(both, len(treatment), settings.n_resamples, settings.seed)
    observed = observed_t(control, treatment)
    p = permutation_p(shuffled, observed, settings.alternative)
    below, above = permutation_quantiles(shuffled, settings.alternative, settings.confidence)
    new = []
    for j, (row, (_, found)) in enumerate(zip(rows, waiting, strict=True)):
        se = float(np.sqrt(found.arms[0].var + found.arms[1].var))
        reach = _reach(row.diff, se, float(below[j]), float(above[j]), settings.alternative)
        wide = float(above[j] if settings.alternative == "less" else below[j])
        rel_low, rel_high = fieller(*found.arms, wide, settings.alternative)
        new.append(
            row.but(
                se=se,
                ci_low=reach[0],
                ci_high=reach[1],
                rel_ci_low=float(rel_low),
                rel_ci_high=float(rel_high),
                statistic=float(observed[j]),
                p_value=float(p[j]),
                mde=beyond(wide, POWER) * se if np.isfinite(wide) else np.nan,
            )
        )
    return new


def _reach(diff: float, se: float, below: float, above: float, alternative: Alternative) -> tuple[float, float]:
    """Interval from multiples of the standard error; with too few units to shuffle there is none."""
    if not np.isfinite([below, above]).all():
        return np.nan, np.nan
    low = -np.inf if alternative == "less" else diff - below * se
    high = np.inf if alternative == "greater" else diff + above * se
    return low, high

