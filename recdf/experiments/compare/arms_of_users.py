"""One treatment against the control in one segment: users of both arms in, rows of numbers out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...judge.aggregates import Aggregates
from ...judge.cautions import HEALTH_ALPHA, TINY
from ...judge.choices import Alternative, Row, TwoPlaces
from ...judge.effects.means import MeanEffect, arms_of_denominators, arms_of_part, estimate
from ...judge.effects.units import Farthest, Units, quantity
from ...judge.per_user_columns import Codes, Floats, exact_sums
from ...judge.users import ArmRows, ExperimentRows
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
    fieller,
    may_be_skewed,
    open_sided,
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
    n_top,
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
    def n(self) -> Floats:
        """Units of each group and variant."""
        return self.counts[:-1]

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

    def compare(
        self, group: int, pair: TwoPlaces, settings: Settings, surplus: Surplus
    ) -> list[Row]:
        """One row per metric for one treatment in one group."""
        both_arms = self.rows.both(group, pair)
        return compare_arms(self.metrics, both_arms, self.rows, settings, surplus)


def compare_arms(
    metrics: list[MetricRows],
    both_arms: ArmRows,
    data: ExperimentRows,
    settings: Settings,
    surplus: Surplus,
) -> list[Row]:
    """One row per metric for one treatment in one segment; `surplus` is how many more of its users
    one arm has."""
    ready = (
        make_units(one, both_arms, data, settings.tests[one.name] == "bootstrap") for one in metrics
    )
    return compare_ready(ready, settings, data, surplus)


def compare_ready(
    every: Iterable[Ready],
    settings: Settings,
    data: ExperimentRows | None,
    surplus: Surplus,
) -> list[Row]:
    """One row per metric; without `data`, units may be known by their moments alone."""
    rows: list[Row] = []
    waiting: dict[int, tuple[Ready, MeanEffect, Farthest | None]] = {}

    def checked(row: Row, ready: Ready, found: MeanEffect, far: Farthest | None) -> Row:
        """The row with what else may decide: the denominators, several rows of a unit, a few
        units."""
        row = _with_turned(with_denominators(row, ready), ready, found, settings)
        row = _with_parts(row, ready.kind.ratio, found, settings)
        if surplus.asked:
            without = _without_surplus(found, surplus.arm, settings.alternative)
            n = found.units.n[surplus.arm]
            sure = found.units.moments is None
            row = surplus.asks(row, without, n, settings.alpha, sure)
        if data is not None and data.repeated is not None and ready.rows is not None:
            codes = ready.rows[0].take(data.repeated)
            of_arms = both(lambda arm: codes[found.units.arm == arm], (0, 1))
            row = with_repeats(row, found.residuals(), of_arms, data.guessed)
        if data is not None and data.movable is not None:
            row["worth"] = worth_of_strata(ready, data, data.movable)
        return row if far is None else without_top(row, found, far, settings)

    for ready in every:
        units = ready.units
        test = settings.tests[ready.name]
        row = first_row(ready, settings)
        if problem := no_estimate(units):
            rows.append(without_estimate(row, problem, _means(units)))
            continue
        found = estimate(units)
        far = None if units.moments else found.values.farthest(n_top(sum(units.n)))
        skewness = 0.0 if test in ("permutation", "proportion") else _skewness(found)
        row, tested = compare_pair(row, found, settings, of_units(ready, test, skewness))
        if tested and test != "t":
            waiting[len(rows)] = ready, found, far
        else:
            row = checked(row, ready, found, far)
        rows.append(row)
    # Metrics over the same units share one set of weights; dropped users make other units.
    batches: dict[tuple[str, int], list[int]] = {}
    for i, (ready, *_) in waiting.items():
        key = settings.tests[ready.name], i if any(ready.n_dropped) else -1
        batches.setdefault(key, []).append(i)
    unordered = data is not None and data.users is None and data.clusters is None
    for (kind, _), batch in batches.items():
        resample = _bootstrap if kind == "bootstrap" else _permute
        numbers = resample([waiting[i][1] for i in batch], unordered, settings)
        for i, new in zip(batch, numbers, strict=True):
            rows[i] = checked(but(rows[i], **new), *waiting[i])
    return rows


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
    found: MeanEffect, arm_of: int, alternative: Alternative
) -> Callable[[str, int], tuple[float, float]]:
    """Return the effect and its p without the lightest or heaviest units of an arm.

    Of moments nobody knows them. Units of a share s that are left out move a mean m by at most
    s/(1 − s) times its distance from the least (or largest) value, and by √(s/(1 − s)) standard
    deviations.
    """
    moments = found.units.moments
    arms = list(found.arms)
    sides = [] if moments else list(found.values.arms())
    own = np.sort(sides[arm_of]) if sides else np.zeros(0)

    def without(kind: str, few: int) -> tuple[float, float]:
        rest = list(arms)
        lightest = kind == "lightest"
        if moments is None:
            sides[arm_of] = own[few:] if lightest else own[: len(own) - few]
            rest = [arm(one) for one in sides]
        else:
            n, (mean, var, df), far = moments.n[arm_of], arms[arm_of], HUGE
            odds = few / (n - few)
            if moments.mean.shape[1] == 1:
                plain, low, high = (
                    one[arm_of, 0] for one in (moments.mean, moments.lows, moments.highs)
                )
                far = np.fmin(odds * (plain - low if lightest else high - plain), HUGE)
            moved = np.fmin(far, np.sqrt(odds * var * (n - 1)))
            rest[arm_of] = Arm(mean + moved if lightest else mean - moved, var, df)
        tested = effect(rest[0], rest[1], alternative)
        return float(tested.diff), float(tested.p_value)

    return without


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


def _means(units: Units) -> tuple[float, float]:
    """Means, or ratios, of values that may be huge; NaN where there is none."""
    record = units.whole.record
    num, *dens = record.mean.T
    with undefined_is_nan():
        den = np.where(record.n > 0, dens[0] if dens else 1.0, np.nan)
        control, treatment = np.where(den != 0, num / den, np.nan).tolist()
    return control, treatment


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
    units = found.units
    size = units.record.n[units.cells]
    if not may_be_skewed(size[0], size[1], SKEWED_SAMPLES):
        return 0.0
    if known := units.moments:
        if known.mean.shape[1] > 1:
            return np.nan
        return skewness_of_means(known.n, known.central[:, 0, 0] / known.n, known.skewness[:, 0])
    record = units.record
    several = units.cluster is not None  # a cluster may have rows in several strata
    cubes = None if units.far is None else units.far.cubes
    if not isinstance(record, Aggregates):
        return skewness_of_arms(*found.residuals())
    many = np.maximum(record.n, 1)
    spread = np.sqrt(record.squares(found.forms) / many)
    most = spread.max()
    if not most > 0:
        return 0.0
    low, high = units.span
    reach = (np.abs(found.forms) * np.maximum(high - record.mean, record.mean - low)).sum(axis=1)
    n, weights = size, units.weights
    sums = np.identity(len(weights))
    if found.score is not None:  # whose test gives thin cells the variance of both arms
        sums = np.ones((len(weights), 1))
        n, weights = size @ sums, np.ones(1)

    def skewness(third: Floats) -> float:
        """That of the difference, by Σ z³ of each cell, with z in units of the largest spread."""
        squares = many * (spread / most) ** 2
        var, cube = ((one[units.cells] @ sums) / n for one in (squares, third))
        own = np.divide(cube, var**1.5, out=np.zeros(n.shape), where=var > 0)
        return skewness_of_means(n, var, own, weights)

    if not several and skewness(many * spread**2 / most**2 * reach / most) < SKEWED_SAMPLES:
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
    values = [found.values.arms() for found in waiting]
    control, treatment = (np.column_stack([one[side] for one in values]) for side in (0, 1))
    if unordered:
        # Units without ids are put in the order of their values, so that the order of the rows says
        # nothing.
        control, treatment = (part[np.lexsort(part.T)] for part in (control, treatment))
    observed, shuffled = permuted_t(control, treatment, settings.n_resamples, settings.seed)
    # Values within 1e-9, relative to t or to its standard error 1, count as tied.
    p = sign_flip_p(shuffled, observed, settings.alternative, 1e-9, scale=1.0)
    # How many standard errors the interval reaches below and above the difference.
    two_sided = settings.alternative == "two-sided"
    level = settings.confidence
    with undefined_is_nan():
        of = np.abs(shuffled) if two_sided else shuffled
        below = above = np.quantile(of, level, axis=0, method="higher")
        if not two_sided:
            above = -np.quantile(shuffled, 1 - level, axis=0, method="lower")
    wide = above if settings.alternative == "less" else below
    sides = both(
        lambda side: Arm(*np.array([found.arms[side] for found in waiting], np.float64).T),
        (0, 1),
    )
    se = np.sqrt(sides[0].var + sides[1].var)
    diff = np.array([found.diff for found in waiting])
    # With too few units to shuffle there is no interval.
    enough = np.where(np.isfinite(below) & np.isfinite(above), se, np.nan)
    ends = diff - below * enough, diff + above * enough
    low, high = open_sided(*ends, settings.alternative)
    rel_low, rel_high = fieller(*sides, wide, settings.alternative)
    mde = np.where(np.isfinite(wide), beyond(wide, POWER) * se, np.nan)
    relative = {"rel_ci_low": np.asarray(rel_low), "rel_ci_high": np.asarray(rel_high)}
    return by_row(
        se=se, ci_low=low, ci_high=high, statistic=observed, p_value=p, mde=mde, **relative
    )
