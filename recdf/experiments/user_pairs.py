"""One treatment against the control in one segment: users of both arms in, rows of numbers out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..inputs.progress import Progress
from .columns import Codes, Floats
from .estimates import Estimate, estimate, few_clusters, residuals
from .experiment_rows import ExperimentRows
from .options import Alternative
from .samples import Metric
from .stats.arms import Sample, arm, linearise
from .stats.bootstrap import bootstrap_p, quantile_interval, replicate_estimates, standard_error
from .stats.effects import effect, fieller
from .stats.moments import HUGE, may_be_skewed, moments_of, skewness_of_means
from .stats.permutation import observed_t, permutation_p, permutation_quantiles, permuted_t
from .stats.power import beyond, detectable
from .top_units import without_top
from .two_sample import POWER, SKEWED, TINY, Pair, Row, Settings, compare_pair
from .units import Units, make_units

__all__: list[str] = []

# Fewer equal users than this carry as much of a ratio's denominator as an arm does: one user has 30 % of it. A test at
# 5 % then errs in 11 % of simulated experiments, and in half of them where one user has a third.
CARRIED_BELOW = 12
# A design effect below this makes a test at 5 % err in less than 8 % of the experiments.
ALIKE = 1.25
# Share of units without a denominator from which a ratio rests on few units.
MOSTLY = 0.95


def compare_arms(
    metrics: list[Metric], arms: tuple[Codes, Codes], data: ExperimentRows, settings: Settings
) -> list[Row]:
    """One row per metric for one treatment in one segment."""
    rows: list[Row] = []
    waiting: dict[int, tuple[Units, Estimate]] = {}
    for i, metric in enumerate(metrics):
        units = make_units(metric, arms, data, settings.method == "bootstrap")
        pair = _pair(metric, units, settings)
        row, tested = compare_pair(pair, settings)
        if tested and pair.found is not None and settings.method != "welch":
            waiting[i] = units, pair.found
        elif pair.found is not None:
            row = _with_checks(row, metric, units, pair.found, arms, data, settings)
        rows.append(row)
    # Metrics over the same units share one set of weights; dropped users make other units.
    together = [i for i in waiting if metrics[i].defined is None]
    resample = _bootstrap if settings.method == "bootstrap" else _permute
    unordered = data.users is None and data.clusters is None
    for batch in [together, *([i] for i in waiting if i not in together)]:
        if batch:
            new = resample([rows[i] for i in batch], [waiting[i] for i in batch], unordered, settings)
            for i, row in zip(batch, new, strict=True):
                rows[i] = _with_checks(row, metrics[i], *waiting[i], arms, data, settings)
    return rows


def _with_checks(
    row: Row,
    metric: Metric,
    units: Units,
    found: Estimate,
    arms: tuple[Codes, Codes],
    data: ExperimentRows,
    settings: Settings,
) -> Row:
    """The row with what else may decide: the denominators, several rows of a unit, a few units."""
    row = _with_denominators(row, metric, units)
    if data.repeated is not None:
        codes = [data.repeated[metric.kept(one)] for one in arms]
        row = _with_repeats(row, residuals(units, found), codes, data.guessed)
    return without_top(row, units, found, settings)


def _with_repeats(row: Row, parts: Sequence[Floats], codes: Sequence[Codes], guessed: bool) -> Row:
    """The row with its design effect if rows repeat units: its variance by units over the one by rows.

    Units that are guessed count if their rows are alike: buckets, by which users are assigned, hold unlike users.
    """
    by_row = by_unit = repeats = 0.0
    for z, code in zip(parts, codes, strict=True):
        _, own = np.unique(code, return_inverse=True)
        z = z - z.mean()
        sums = np.bincount(own, weights=z)
        repeats += len(z) - len(sums)
        by_row += float(z @ z) / max(len(z) - 1, 1) / len(z)
        by_unit += float(sums @ sums) * len(sums) / max(len(sums) - 1, 1) / len(z) ** 2
    effect = by_unit / by_row if by_row > 0 else np.nan
    return row if not repeats or (guessed and effect < ALIKE) else row.but("repeated_units", design_effect=effect)


def _with_denominators(row: Row, metric: Metric, units: Units) -> Row:
    """The row with the mean denominator of each arm (rows of a cluster), and Welch's p of their difference."""
    den = units.control.den, units.treatment.den
    if den[0] is None or den[1] is None or not (metric.ratio or units.clustered):
        return row
    control, treatment = arm(den[0]), arm(den[1])
    p = float(effect(control, treatment).p_value)
    if not control.var + treatment.var > 0:  # every unit of an arm has the same
        p = float(np.isclose(control.mean, treatment.mean, rtol=1e-9, atol=0))
    return row.but(
        mean_denominator_control=float(control.mean), mean_denominator_treatment=float(treatment.mean), p_denominator=p
    )


def _pair(metric: Metric, units: Units, settings: Settings) -> Pair:
    """Estimate both arms, unless there is nothing to estimate."""
    problem = _no_estimate(units)
    found = None if problem else estimate(units)
    as_shares = settings.tests.get(metric.name) == "proportion"  # Fisher's test is exact
    return Pair(
        metric.name,
        units.n,
        units.n_dropped,
        _means(units) if found is None else (float(found.raw[0].mean), float(found.raw[1].mean)),
        problem,
        found,
        plain=units.control.den is None and not units.clustered,
        clustered=units.clustered,
        cap=metric.cap,
        n_covariate_missing=units.n_covariate_missing,
        warnings=(*units.warnings, *(["unequal_missing"] if units.unequal_missing else [])),
        cautions=() if found is None or as_shares else tuple(_cautions(units, found, settings)),
    )


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


def _means(units: Units) -> tuple[float, float]:
    """Means, or ratios, of values that may be huge; NaN where there is none."""
    means = []
    for side in (units.control, units.treatment):
        empty = not len(side.num) or (side.den is not None and not side.den.any())
        scale = max(1.0, float(np.abs(side.num).max(initial=0)))
        means.append(np.nan if empty else float(linearise(side.num / scale, side.den)[0]) * scale)
    return means[0], means[1]


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
    if settings.method != "permutation" and _skewed(units, found):
        cautions.append("skewed")
    return cautions


def _skewed(units: Units, found: Estimate) -> bool:
    """Whether the difference is so skewed that its t interval is too far to one side."""
    possible = may_be_skewed(*units.n, SKEWED)  # else the values need not be read
    return possible and abs(skewness_of_means(*map(moments_of, residuals(units, found)))) > SKEWED


def _carried_by_few(units: Units) -> bool:
    """Whether a few users have most of a ratio's denominator in an arm, such as a program with thousands of views."""
    arms = (units.control, units.treatment)
    return any(s.den is not None and len(s.den) >= TINY and few_clusters(s) < CARRIED_BELOW for s in arms)


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
