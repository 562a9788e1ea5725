"""One treatment against the control in one segment: users of both arms in, rows of numbers out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ...judge.aggregates import KnownMoments
from ...judge.cautions import HEALTH_ALPHA, TINY
from ...judge.choices import Alternative, Row, TwoPlaces
from ...judge.effects.means import MeanEffect, arms_of_denominators, arms_of_part, estimate
from ...judge.effects.units import Units, quantity
from ...judge.per_user_columns import Codes, Floats, exact_sums
from ...judge.users import ExperimentRows
from ...judge.verdict import users_up_to
from ...progress import Progress
from ...stats.arms import (
    HUGE,
    MEAN_ROUNDING,
    Arm,
    Sample,
    arm,
    both,
    effect,
    may_be_skewed,
    skewness_of_arms,
    skewness_of_means,
)
from ...stats.numbers import scipy_module, undefined_is_nan
from ...stats.resampling import (
    bootstrap_effect,
    by_row,
    permuted_t,
    replicate_estimates,
    sign_flip_p,
)
from ...stats.student import beyond, detectable
from ...tables.cells import interval, number
from ..decide.balance import p_of_balance, worth_of_strata
from ..decide.sample_ratio import Surplus, count_rows
from ..metric_bounds import MetricKind
from ..samples import MetricRows, Ready, Settings, make_units
from .two_sample import (
    POWER,
    SKEWED_SAMPLES,
    but,
    compare_pair,
    first_row,
    without_estimate,
    without_top,
)

# Fewer equal users than this carry as much of a ratio's denominator as an arm does: one user has 26
# % of it. A test at 5 % then errs in 11 % of simulated experiments, and in half of them where one
# user has a third.
FEW_UNITS_CARRY = 15
# A design effect below this makes a test at 5 % err in less than 8 % of the experiments.
ALIKE = 1.25


@dataclass(frozen=True)
class UsersInRows:
    """Users in memory: their metrics, their weights by the name of the column if they have some,
    and all else that is known of the rows."""

    metrics: list[MetricRows]
    weights: Mapping[str, Sample]
    rows: ExperimentRows

    @property
    def groups(self) -> pd.DataFrame:
        return self.rows.groups

    @property
    def variants(self) -> pd.Series:
        return self.rows.variants

    @property
    def left_out(self) -> Floats:
        """Users of each group and variant who were in several."""
        return self.rows.left_out

    @property
    def counts(self) -> Floats:
        """Units of every variant, in each group and over all of them."""
        return count_rows(self.rows)[1][:, 0]

    def tested(self) -> dict[str, dict[str, Sample]]:
        """What is to be alike in both arms of every metric, by its name: covariates and weights."""
        return {one.name: {**one.covariates, **self.weights} for one in self.metrics}

    def p_values(self, used: Mapping[str, Sample], group: int, pair: TwoPlaces) -> Floats:
        """p that both arms have the same mean, of everything that is used."""
        both_arms = self.rows.both(group, pair)
        taken = [one.each(both_arms.take) for one in used.values()]
        return p_of_balance(taken, self.rows, both_arms)

    def ready(self, group: int, pair: TwoPlaces, settings: Settings) -> Iterator[Ready]:
        """The units of each metric in both arms."""
        both_arms = self.rows.both(group, pair)
        for one in self.metrics:
            resampled = settings.tests[one.name] == "bootstrap"
            yield make_units(one, both_arms, self.rows, resampled)


def compare_ready(
    every: Iterable[Ready], settings: Settings, data: ExperimentRows | None, surplus: Surplus
) -> list[Row]:
    """One row per metric for one treatment in one segment, whose units may be known by their
    moments alone, without `data`; `surplus` is how many more of its users one arm has."""
    rows: dict[int, Row] = {}
    batches: dict[Any, list[Any]] = {}
    for i, ready in enumerate(every):
        test = settings.tests[ready.name]
        row = first_row(ready, settings)
        if problem := no_estimate(ready.units):
            rows[i] = without_estimate(row, problem, ready.units)
            continue
        found = estimate(ready.units)
        skewness = 0.0 if test in ("permutation", "proportion") else _skewness(found)
        row, tested = compare_pair(row, found, settings, of_units(ready, test, skewness))
        if tested and test != "t":
            # Metrics over the same units share one set of weights; dropped users make other units.
            units = test, i if any(ready.n_dropped) else -1
            batches.setdefault(units, []).append((i, row, ready, found))
        else:
            rows[i] = _with_cautions(settings, data, surplus, row, ready, found)
    unordered = data is not None and data.users is None and data.clusters is None
    for (test, _), batch in batches.items():
        resample = _bootstrap if test == "bootstrap" else _permute
        numbers = resample([found for *_, found in batch], unordered, settings)
        for (i, row, *of), new in zip(batch, numbers, strict=True):
            rows[i] = _with_cautions(settings, data, surplus, but(row, **new), *of)
    return [rows[i] for i in sorted(rows)]


def _with_cautions(
    settings: Settings,
    data: ExperimentRows | None,
    surplus: Surplus,
    row: Row,
    ready: Ready,
    found: MeanEffect,
) -> Row:
    """The row with what else may decide: the denominators, several rows of a unit, a few units."""
    row = _with_turned(with_denominators(row, ready), ready, found, settings)
    row = _with_parts(row, ready.kind.ratio, found, settings)
    units = found.units
    if surplus.asked:
        without = partial(_without_surplus, found, surplus.arm, settings.alternative)
        sure = units.moments is None
        row = surplus.asks(row, without, units.n[surplus.arm], settings.alpha, sure)
    if data is not None and data.repeated is not None and ready.rows is not None:
        codes = ready.rows[0].take(data.repeated)
        of_arms = both(lambda arm: codes[units.arm == arm], (0, 1))
        row = with_repeats(row, found.residuals(), of_arms, data.guessed)
    if data is not None and data.movable is not None:
        row["worth"] = worth_of_strata(ready, data, data.movable)
    return without_top(row, found, settings)


def with_repeats(row: Row, parts: Sequence[Floats], codes: Sequence[Codes], guessed: str) -> Row:
    """The row with its design effect if rows repeat units: its variance by units over the one by
    rows.

    Units that are guessed count if their rows are alike, beyond chance: buckets, by which users are
    assigned, hold unlike users.
    """
    by_row = by_unit = repeats = n = between = total = 0.0
    for z, code in zip(parts, codes, strict=True):
        present, own = np.unique(code, return_inverse=True)
        z = z - z.mean()
        sums = exact_sums(z, own, len(present))
        repeats = repeats + len(z) - len(sums)
        n = n + len(z)
        between = between + float(sums @ (sums / np.bincount(own)))
        total = total + float(z @ z)
        by_row += float(z @ z) / max(len(z) - 1, 1) / len(z)
        by_unit += float(sums @ sums) * len(sums) / max(len(sums) - 1, 1) / len(z) ** 2
    effect = by_unit / by_row if by_row > 0 else np.nan
    if not repeats:
        return row
    if guessed:
        free = n - repeats - len(parts), repeats
        if free[0] < 1:
            return row
        f = between / free[0] / max((total - between) / free[1], 1e-16 * total, 1e-300)
        if effect < ALIKE or not scipy_module("special").fdtrc(*free, f) < HEALTH_ALPHA:
            return row
        row = {**row, "unbalanced": guessed}
    return but(row, "repeated_units", design_effect=effect)


def _with_turned(row: Row, ready: Ready, found: MeanEffect, settings: Settings) -> Row:
    """The row with the bounds of the metric, and how many more units at one turn the effect.

    In strata one unit moves it most in a thin cell: W_h·gap/n_ah, with the gap to the bound that
    hurts. Shares have a test of their own for that.
    """
    low, high, moved = moved_by_bounds(found.units, ready, settings)
    row = but(row, metric_low=low, metric_high=high)
    if found.score is not None:
        return row
    # For an effect below and above 0, units of the control and of the treatment at the bound that
    # hurts; a true effect may have any sign that is tested.
    sides = np.column_stack([moved[:, 0], moved[::-1, 1]])
    tested = {"less": sides[:1], "greater": sides[1:]}.get(settings.alternative, sides)
    up = row["diff"] > 0
    own = sides[int(up)]
    by = abs(row["diff"]) / own.max() if own.any() else np.inf  # null without a bound
    down = (own[1] > own[0]) == up
    return but(row, turned_by=by, turned_down=down, most_moved=np.fmax.reduce(tested, axis=None))


def moved_by_bounds(
    units: Units, metric: Ready | MetricRows, settings: Settings
) -> tuple[float, float, Floats]:
    """The bounds of the metric, and how far a unit at the lower, and one at the upper moves the
    mean of its arm at most (2, 2); null is what nothing tells."""
    mean = quantity(units.record.mean, units.metric).value[units.cells]
    low, high = metric.kind.bounds(mean, metric.name, settings.bounds)
    return low, high, (units.moved_by_one * np.array([mean - low, high - mean])).max(axis=2)


def _with_parts(
    row: Row, ratio: tuple[str, str] | None, found: MeanEffect, settings: Settings
) -> Row:
    """The row with a remark where its ratio differs and neither part of it says why.

    The ratio stands if its numerator per user differs in the same direction (at twice the level),
    or if the interval of its denominator, at 90 % for a test at 5 %, lies within half of the
    effect. Columns of lists, such as m over m__n, are no exception.
    """
    num, den = found.units.metric
    if ratio is None or den is None or not row["p_value"] <= settings.alpha:
        return row
    level = 1 - 2 * settings.alpha
    arms = [arms_of_part(found.units, one) for one in (num, den)]
    of_num, of_den = (effect(*one, confidence=level) for one in arms)
    by_num = of_num.p_value < 1 - level and of_num.diff * row["diff"] > 0
    reach = max(-of_den.ci_low, of_den.ci_high)
    change = row["diff"] / float(found.arms[0].mean) if found.arms[0].mean else np.inf
    equal = reach <= abs(change) / 2 * arms[1][0].mean or (np.isnan(reach) and of_den.diff == 0)
    if by_num or equal:
        return row
    ends = [
        f"{name} per user {number(one.rel_diff, '+.1%')} "
        f"{interval(one.rel_ci_low, one.rel_ci_high, '+.1%')}".rstrip()
        for name, one in zip(ratio, (of_num, of_den), strict=True)
    ]
    more, fewer = ("more", "fewer") if row["diff"] > 0 else ("fewer", "more")
    said = (
        f"{row['metric']} {number(change, '+.1%')}, but {' and '.join(ends)}: the data cannot tell "
        f"{more} {ratio[0]} from {fewer} {ratio[1]}"
    )
    return but(row, "parts_unclear", detail=said)


def _without_surplus(
    found: MeanEffect, side: int, alternative: Alternative, kind: str, few: int
) -> tuple[float, float]:
    """Return the effect and its p without the lightest or heaviest units of an arm.

    Of moments nobody knows them. Units of a share s that are left out move a mean m by at most
    s/(1 − s) times its distance from the least (or largest) value, and by √(s/(1 − s)) standard
    deviations.
    """
    arms = list(found.arms)
    moments = found.units.moments
    lightest = kind == "lightest"
    if moments is None:
        values = list(found.values.arms())
        own = np.sort(values[side])
        values[side] = own[few:] if lightest else own[: len(own) - few]
        arms = [*map(arm, values)]
    else:
        n, (mean, var, df) = moments.n[side], arms[side]
        odds = few / (n - few)
        moved = np.sqrt(odds * var * (n - 1))
        if moments.mean.shape[1] == 1:
            low, high = moments.lows[side, 0], moments.highs[side, 0]
            plain = moments.mean[side, 0]
            moved = np.fmin(moved, odds * (plain - low if lightest else high - plain))
        arms[side] = Arm(mean + moved if lightest else mean - moved, var, df)
    tested = effect(arms[0], arms[1], alternative)
    return float(tested.diff), float(tested.p_value)


def with_denominators(row: Row, ready: Ready) -> Row:
    """The row with the mean denominator of each arm (rows of a cluster), and Welch's p of their
    difference."""
    units = ready.units
    if units.metric.den is None or not (ready.kind.ratio or units.clustered):
        return row
    means, (control, treatment) = arms_of_denominators(units)
    p = effect(control, treatment).p_value
    if not control.var + treatment.var > 0:  # every unit of an arm has the same
        p = float(np.isclose(control.mean, treatment.mean, rtol=1e-9, atol=0))
    return but(
        row, mean_denominator_control=means[0], mean_denominator_treatment=means[1], p_denominator=p
    )


def no_estimate(units: Units) -> str:
    """Why there is nothing to compute, or nothing."""
    if min(units.n) < 2:
        return "too_few_users"
    if max(map(units.record.largest, range(len(units.columns)))) >= HUGE:
        return "huge_values"
    return "" if units.has_denominators else "zero_denominator"


def of_units(ready: Ready, test: str, skewness: float = 0.0) -> dict[str, Any]:
    """What the cautions ask of the units that the test is made of."""
    units = ready.units
    n = np.array(units.n)
    zeros = units.n_empty
    numbers = {"zeros": max(zeros / n), "skewed_by": abs(skewness) / SKEWED_SAMPLES}
    equal = np.array(units.n_effective)
    if units.metric.den is not None and (equal < (1 - MEAN_ROUNDING) * (n - zeros)).any():
        numbers["holds_for"] = heavy_units(ready.kind, units.heaviest, units.clustered)
    if units.clustered:
        return numbers | {"n_clusters": min(equal)}
    # A few users may have most of a ratio's denominator in an arm, such as a program with thousands
    # of views.
    least = equal[n >= TINY].min(initial=np.inf) if test == "t" else np.inf
    return numbers | {"n_counted": min(n - zeros), "evenness": least / FEW_UNITS_CARRY}


def heavy_units(kind: MetricKind, most: float, clustered: bool) -> str:
    """Name the users, or clusters, up to the largest weight that was seen."""
    num, of = kind.ratio or ("", "a weight")
    named = "a size" if clustered else of * (of != f"{num}__n")
    return users_up_to(most, named, "clusters" if clustered else "users")


def _skewness(found: MeanEffect) -> float:
    """How skewed the difference is, so that its t interval lies too far to one side; NaN where
    nobody knows.

    It is 0 where it can matter by no means, and no value need be read: γ of n values is at most
    √n, and at most their largest distance from the mean in standard deviations.
    """
    units, record = found.units, found.units.record
    size = record.n[units.cells]
    if not may_be_skewed(size[0], size[1], SKEWED_SAMPLES):
        return 0.0
    if isinstance(record, KnownMoments):
        if record.mean.shape[1] > 1:
            return np.nan
        return skewness_of_means(
            record.n, record.central[:, 0, 0] / record.n, record.skewness[:, 0]
        )
    several = units.cluster is not None  # a cluster may have rows in several strata
    cubes = None if units.far is None else units.far.cubes
    many = np.maximum(record.n, 1)
    spread = np.sqrt(record.squares(found.forms) / many)
    most = spread.max()
    if not most > 0:
        return 0.0
    low, high = units.span
    reach = (np.abs(found.forms) * np.maximum(high - record.mean, record.mean - low)).sum(axis=1)
    weights = units.weights
    sums = np.identity(len(weights))
    if found.score is not None:  # whose test gives thin cells the variance of both arms
        sums, weights = np.ones((len(weights), 1)), np.ones(1)
    n, squares = size @ sums, many * (spread / most) ** 2

    def skewness(third: Floats) -> float:
        """That of the difference, by Σ z³ of each cell, with z in units of the largest spread."""
        var, cube = (one[units.cells] @ sums / n for one in (squares, third))
        own = np.divide(cube, var**1.5, out=np.zeros(n.shape), where=var > 0)
        return skewness_of_means(n, var, own, weights)

    if not several and skewness(squares * reach / most) < SKEWED_SAMPLES:
        return 0.0
    whole = skewness_of_arms(*found.residuals()) if several else 0.0
    if cubes is None:
        units.need_rows()
        z = units.scores(found.forms, record.above) / most
        third = np.bincount(units.cell, z * z * z, len(many)).astype(np.float64)
    else:
        half = (record.high - record.low) / 2
        third = cubes.of(found.forms, record.grid.base, record.above, half, spread) / most**3
    return max(whole, skewness(third))


def _bootstrap(waiting: list[MeanEffect], unordered: bool, settings: Settings) -> list[Row]:
    """se, intervals and p from the replicates of both arms."""
    replicates = []
    slopes = [(found.theta, found.centre) for found in waiting]
    with Progress(2, "both arms") as progress:
        for side in range(2):
            samples = [found.units.sample(side) for found in waiting]
            seed = (settings.seed, side)
            replicates.append(
                replicate_estimates(samples, settings.n_resamples, seed, slopes, unordered)
            )
            progress.add()
    control, treatment = replicates
    given = settings.alternative, settings.confidence
    numbers = bootstrap_effect(treatment - control, *given)
    with undefined_is_nan():
        positive = (control > 0).all(axis=0) & (treatment > 0).all(axis=0)
        relative = bootstrap_effect(np.where(positive, treatment / control - 1, np.nan), *given)
    mde = detectable(settings.alpha, POWER, settings.alternative) * numbers["se"]
    return by_row(
        **numbers, rel_ci_low=relative["ci_low"], rel_ci_high=relative["ci_high"], mde=mde
    )


def _permute(waiting: list[MeanEffect], unordered: bool, settings: Settings) -> list[Row]:
    """p and interval from shuffled labels; the interval holds 0 where p is above alpha."""
    alternative, level = settings.alternative, settings.confidence
    sides = zip(*(found.values.arms() for found in waiting), strict=True)
    control, treatment = map(np.column_stack, sides)
    if unordered:
        # Units without ids are put in the order of their values, so that the order of the rows says
        # nothing.
        control, treatment = (part[np.lexsort(part.T)] for part in (control, treatment))
    observed, shuffled = permuted_t(control, treatment, settings.n_resamples, settings.seed)
    # Values within 1e-9, relative to t or to its standard error 1, count as tied.
    p = sign_flip_p(shuffled, observed, alternative, 1e-9, scale=1.0)
    # How many standard errors the interval reaches below and above the difference.
    with undefined_is_nan():
        of = np.abs(shuffled) if alternative == "two-sided" else shuffled
        below = above = np.quantile(of, level, axis=0, method="higher")
        if alternative != "two-sided":
            above = -np.quantile(shuffled, 1 - level, axis=0, method="lower")
    wide = above if alternative == "less" else below
    # With too few units to shuffle there is no interval.
    enough = np.where(np.isfinite(below) & np.isfinite(above), wide, np.nan)
    of_arms = zip(*(found.arms for found in waiting), strict=True)
    old, new = (Arm(*np.array(one, np.float64).T) for one in of_arms)
    diff = np.array([found.diff for found in waiting])
    tested = effect(old, new, alternative, level, always_valid=enough, diff=diff)
    tested = tested._replace(statistic=observed, p_value=p)
    factor = np.where(np.isfinite(wide), beyond(wide, POWER), np.nan)
    return by_row(**tested._asdict() | {"mde": factor * tested.se})
