"""One treatment against the control in one segment: users of both arms in, rows of numbers out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...inputs.sums import exact_sums
from ...progress import Progress
from ...stats.arms import Arm, Sample, arm, both, effective_number, estimate_arm, linearise
from ...stats.bootstrap import bootstrap_effect, replicate_estimates
from ...stats.effect_sizes import effect, fieller
from ...stats.moments import HUGE, may_be_skewed, moments_of, skewness_of_means
from ...stats.numbers import Number
from ...stats.permutation import observed_t, permutation_p, permutation_quantiles, permuted_t
from ...stats.power import beyond, detectable
from ...stats.resampling_weights import by_row
from ..estimates import ArmsEstimate, estimate_arms, residuals
from ..experiment_columns import Codes, Floats
from ..experiment_rows import ExperimentRows
from ..samples import MetricRows
from ..settings import Settings
from ..units import Covariates, Units, make_units
from .top_units import without_top
from .two_sample import (
    POWER,
    SKEWED_SAMPLES,
    TINY,
    Row,
    but,
    compare_pair,
    first_row,
    without_estimate,
)

# Fewer equal users than this carry as much of a ratio's denominator as an arm does: one user has 26
# % of it. A test at 5 % then errs in 11 % of simulated experiments, and in half of them where one
# user has a third.
FEW_UNITS_CARRY = 15
# A design effect below this makes a test at 5 % err in less than 8 % of the experiments.
ALIKE = 1.25
# Share of units without a denominator from which a ratio rests on few units.
MOSTLY = 0.95


def compare_arms(
    metrics: list[MetricRows], arms: tuple[Codes, Codes], data: ExperimentRows, settings: Settings
) -> list[Row]:
    """One row per metric for one treatment in one segment."""
    rows: list[Row] = []
    waiting: dict[int, tuple[Units, ArmsEstimate]] = {}
    made: dict[Any, Covariates] = {}

    def checked(row: Row, metric: MetricRows, units: Units, found: ArmsEstimate) -> Row:
        """The row with what else may decide: the denominators, several rows of a unit, a few
        units."""
        row = _with_denominators(row, metric, units)
        if data.repeated is not None:
            codes = [data.repeated[metric.kept(one)] for one in arms]
            row = _with_repeats(row, residuals(units, found), codes, data.guessed)
        return without_top(row, units, found, settings)

    for i, metric in enumerate(metrics):
        test = settings.tests[metric.name]
        units = make_units(metric, arms, data, test == "bootstrap", made)
        row = first_row(
            metric.name,
            settings,
            units.n,
            units.n_dropped,
            units.warnings,
            clustered=units.clustered,
            cap=metric.cap,
            n_covariate_missing=units.n_covariate_missing,
        )
        rows.append(row)
        if problem := _no_estimate(units):
            rows[i] = without_estimate(row, problem, _means(units))
            continue
        found = estimate_arms(units)
        cautions = (
            () if test == "proportion" else _unit_cautions(units, found, test)
        )  # Fisher's test is exact
        plain = metric.sample.den is None and not units.clustered
        rows[i], tested = compare_pair(row, found, settings, cautions, plain)
        if tested and test != "t":
            waiting[i] = units, found
        else:
            rows[i] = checked(rows[i], metric, units, found)
    # Metrics over the same units share one set of weights; dropped users make other units.
    batches: dict[tuple[str, int], list[int]] = {}
    for i in waiting:
        batches.setdefault(
            (settings.tests[metrics[i].name], -1 if metrics[i].defined is None else i), []
        ).append(i)
    unordered = data.users is None and data.clusters is None
    for (kind, _), batch in batches.items():
        resample = _bootstrap if kind == "bootstrap" else _permute
        numbers = resample(
            [rows[i] for i in batch], [waiting[i] for i in batch], unordered, settings
        )
        for i, new in zip(batch, numbers, strict=True):
            rows[i] = checked(but(rows[i], **new), metrics[i], *waiting[i])
    return rows


def _with_repeats(row: Row, parts: Sequence[Floats], codes: Sequence[Codes], guessed: bool) -> Row:
    """The row with its design effect if rows repeat units: its variance by units over the one by
    rows.

    Units that are guessed count if their rows are alike: buckets, by which users are assigned, hold
    unlike users.
    """
    by_row = by_unit = repeats = 0.0
    for z, code in zip(parts, codes, strict=True):
        present, own = np.unique(code, return_inverse=True)
        z = z - z.mean()
        sums = exact_sums(z, own, len(present))
        repeats += len(z) - len(sums)
        by_row += float(z @ z) / max(len(z) - 1, 1) / len(z)
        by_unit += float(sums @ sums) * len(sums) / max(len(sums) - 1, 1) / len(z) ** 2
    effect = by_unit / by_row if by_row > 0 else np.nan
    return (
        row
        if not repeats or (guessed and effect < ALIKE)
        else but(row, "repeated_units", design_effect=effect)
    )


def _with_denominators(row: Row, metric: MetricRows, units: Units) -> Row:
    """The row with the mean denominator of each arm (rows of a cluster), and Welch's p of their
    difference."""
    sides = units.sides
    if sides[0].den is None or not (metric.ratio or units.clustered):
        return row
    control, treatment = both(lambda side: arm(side.den), units.whole)
    means = control.mean, treatment.mean
    if sides[0].strata is not None:
        size = np.add(*both(lambda side: side.strata.sums(), sides))
        shares = both(lambda side: side.strata._replace(weights=size / size.sum()), sides)
        control, treatment = both(
            lambda side, strata: estimate_arm(Sample(side.den, strata=strata)), sides, shares
        )
    return with_denominators(row, means, (control, treatment))


def with_denominators(row: Row, means: tuple[Number, Number], arms: tuple[Arm, Arm]) -> Row:
    """The row with these mean denominators, and Welch's p of two arms of denominators."""
    control, treatment = arms
    p = effect(control, treatment).p_value
    if not control.var + treatment.var > 0:  # every unit of an arm has the same
        p = float(np.isclose(control.mean, treatment.mean, rtol=1e-9, atol=0))
    return but(
        row, mean_denominator_control=means[0], mean_denominator_treatment=means[1], p_denominator=p
    )


def _no_estimate(units: Units) -> str:
    """Why there is nothing to compute, or nothing."""
    if min(units.n) < 2:
        return "too_few_users"
    samples = [one for side in units.sides for one in (side, *side.covariates)]
    parts = [part for one in samples for part in (one.num, one.den) if part is not None]
    largest = [max(part.max(initial=0), -part.min(initial=0)) for part in parts]
    if max(largest) >= HUGE or (units.designs is not None and units.designs.largest >= HUGE):
        return "huge_values"
    if not all(side.has_denominators for side in units.sides):
        return "zero_denominator"
    return ""


def _means(units: Units) -> tuple[float, float]:
    """Means, or ratios, of values that may be huge; NaN where there is none."""

    def mean(side: Sample) -> float:
        empty = not len(side.num) or (side.den is not None and not side.den.any())
        scale = max(1.0, float(np.abs(side.num).max(initial=0)))
        return np.nan if empty else float(linearise(side.num / scale, side.den)[0]) * scale

    return both(mean, units.whole)


def _unit_cautions(units: Units, found: ArmsEstimate, test: str) -> tuple[str, ...]:
    """Warnings about the units that the test is made of."""
    dens = [side.den for side in units.whole if side.den is not None]
    # A few users may have most of a ratio's denominator in an arm, such as a program with thousands
    # of views.
    carried = any(len(den) >= TINY and effective_number(den) < FEW_UNITS_CARRY for den in dens)
    # Where the difference cannot be so skewed that its t interval is too far to one side, no value
    # need be read.
    lopsided = test != "permutation" and may_be_skewed(*units.n, SKEWED_SAMPLES)
    cautions = {
        "few_clusters": units.clustered and min(side.n_effective for side in units.whole) < TINY,
        "tiny": not units.clustered and units.n_counting < TINY,
        "mostly_zero_denominator": any((den == 0).mean() >= MOSTLY for den in dens),
        "few_users_carry": test == "t" and not units.clustered and carried,
        "skewed": lopsided
        and abs(skewness_of_means(*both(moments_of, residuals(units, found)))) > SKEWED_SAMPLES,
    }
    return tuple(word for word, holds in cautions.items() if holds)


Waiting = Sequence[tuple[Units, ArmsEstimate]]


def _bootstrap(
    rows: list[Row], waiting: Waiting, unordered: bool, settings: Settings
) -> list[dict[str, float]]:
    """se, intervals and p from the replicates of both arms."""
    replicates, slopes = [], [(found.theta, found.centre) for _, found in waiting]
    with Progress(2, "both arms") as progress:
        for side in range(2):
            samples, seed = [units.sides[side] for units, _ in waiting], (settings.seed, side)
            replicates.append(
                replicate_estimates(samples, settings.n_resamples, seed, slopes, unordered)
            )
            progress.add()
    control, treatment = replicates
    given = settings.alternative, settings.confidence
    numbers = bootstrap_effect(treatment - control, *given)
    with np.errstate(divide="ignore", invalid="ignore"):
        positive = (control > 0).all(axis=0) & (treatment > 0).all(axis=0)
        relative = bootstrap_effect(np.where(positive, treatment / control - 1, np.nan), *given)
    mde = detectable(settings.alpha, POWER, settings.alternative) * numbers["se"]
    return by_row(
        **numbers, rel_ci_low=relative["ci_low"], rel_ci_high=relative["ci_high"], mde=mde
    )


def _permute(
    rows: list[Row], waiting: Waiting, unordered: bool, settings: Settings
) -> list[dict[str, float]]:
    """p and interval from shuffled labels; the interval holds 0 where p is above alpha."""
    control, treatment = (
        np.column_stack([found.values[side] for _, found in waiting]) for side in (0, 1)
    )
    if unordered:
        # Units without ids are put in the order of their values, so that the order of the rows says
        # nothing.
        control, treatment = (part[np.lexsort(part.T)] for part in (control, treatment))
    shuffled = permuted_t(
        np.concatenate([control, treatment]), len(treatment), settings.n_resamples, settings.seed
    )
    observed = observed_t(control, treatment)
    p = permutation_p(shuffled, observed, settings.alternative)
    below, above = permutation_quantiles(shuffled, settings.alternative, settings.confidence)
    wide = above if settings.alternative == "less" else below
    sides = both(
        lambda side: Arm(*np.array([found.arms[side] for _, found in waiting], np.float64).T),
        (0, 1),
    )
    se, diff = np.sqrt(sides[0].var + sides[1].var), np.array([row["diff"] for row in rows])
    enough = np.isfinite(below) & np.isfinite(
        above
    )  # with too few units to shuffle there is no interval
    low = np.where(enough, -np.inf if settings.alternative == "less" else diff - below * se, np.nan)
    high = np.where(
        enough, np.inf if settings.alternative == "greater" else diff + above * se, np.nan
    )
    rel_low, rel_high = fieller(*sides, wide, settings.alternative)
    mde = np.where(np.isfinite(wide), beyond(wide, POWER) * se, np.nan)
    relative = {"rel_ci_low": np.asarray(rel_low), "rel_ci_high": np.asarray(rel_high)}
    return by_row(
        se=se, ci_low=low, ci_high=high, statistic=observed, p_value=p, mde=mde, **relative
    )
