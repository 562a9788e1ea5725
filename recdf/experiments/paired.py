"""One pair of models on the same users: differences in, numbers out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .columns import Floats
from .options import Alternative, PairTest, PairUsers
from .stats.arms import Arm, arm, arm_of_moments, effective_number, linearise
from .stats.bootstrap import bootstrap_p, quantile_interval, standard_error
from .stats.effects import one_sample
from .stats.moments import HUGE, moments_of
from .stats.sign_flips import exact_sign_flip_p, sign_flip_interval, sign_flip_p
from .stats.signed_ranks import wilcoxon
from .stats.student import equivalence_p
from .stats.weights import poisson_sums, sign_sums

__all__: list[str] = []

# Differences up to this size are ties: they are rounding of equal metrics.
TIE = 1e-12
# Share of ties from which a mean difference rests on few users.
MOSTLY_ZERO = 0.95
RESAMPLED = ("randomization", "bootstrap")
# Up to 2^16 sign patterns are enumerated, if that is no more than the resamples asked for.
EXACT_UNITS = 16
# Up to 8 % of equal models get a verdict where |γ|/√n is at most SKEWED and FEW_DIFFER units differ, γ the skewness.
FEW_DIFFER = 50
SKEWED = 0.14
# Unequal weights that are worth fewer equal units than this withhold the verdict. Equal models get one in 24 to 59 % of
# simulated comparisons at 3 to 5 effective units, 15 to 27 % at 7, 8 to 22 % at 11, 7 to 20 % at 15, 7 to 15 % at 22,
# at most 8 % of those with 30 or more; weights are lognormal, Pareto, or large for some units.
CARRIED_BELOW = 30


@dataclass(frozen=True)
class PairSettings:
    """Options of a comparison that every pair needs."""

    test: PairTest
    users: PairUsers
    alternative: Alternative
    confidence: float
    n_resamples: int
    seed: int


@dataclass(frozen=True)
class PairRow:
    """Numbers of one pair; what comes from resampling is still null. `ranks_higher`: the model's ranks are higher."""

    diff: float = np.nan
    se: float = np.nan
    ci_low: float = np.nan
    ci_high: float = np.nan
    d_z: float = np.nan
    wins: int = 0
    ties: int = 0
    losses: int = 0
    statistic: float = np.nan
    df: float = np.nan
    p_value: float = np.nan
    p_equivalence: float = np.nan
    n_resamples: int | None = None
    ranks_higher: bool = False
    warning: str = ""


def paired_test(
    sums: Floats, settings: PairSettings, margin: float | None, weights: Floats | None = None, repeated: bool = False
) -> PairRow:
    """Statistics of the units' sums of differences; `weights` are what the sum of each unit is divided by."""
    d = sums if weights is None else sums / weights
    wins, losses = int(np.count_nonzero(d > TIE)), int(np.count_nonzero(d < -TIE))
    row = PairRow(wins=wins, losses=losses, ties=len(d) - wins - losses)
    named = ["wilcoxon_not_mean"] if settings.test == "wilcoxon" else []
    named += ["repeated_units"] if repeated else []
    if len(d) < 2:
        return replace(row, diff=float(d[0]) if len(d) else np.nan, warning="; ".join([*named, "too_few_users"]))
    if max(d.max(), -d.min()) >= HUGE:
        return replace(row, warning="; ".join([*named, "huge_values"]))
    units, skewness = _estimate(sums, weights)
    diff = float(units.mean)
    if not units.var > 0 or row.ties == len(d):  # ties differ by rounding alone
        return replace(row, diff=diff, warning="; ".join([*named, "zero_variance"]))
    named += _cautions(row, skewness, weights)
    se = float(np.sqrt(units.var))
    row = replace(row, diff=diff, se=se, d_z=diff / _spread(d, diff, weights), warning="; ".join(named))
    if margin is not None:
        row = replace(row, p_equivalence=float(equivalence_p(diff, se, len(d) - 1, margin)))
    if settings.test in RESAMPLED:
        return row
    t = one_sample(units, alternative=settings.alternative, confidence=settings.confidence)
    row = replace(row, ci_low=float(t.ci_low), ci_high=float(t.ci_high))
    if settings.test == "wilcoxon":
        ranks = wilcoxon(d, settings.alternative)
        return replace(row, statistic=ranks.statistic, p_value=ranks.p_value, ranks_higher=ranks.positive)
    return replace(row, statistic=float(t.statistic), df=float(t.df), p_value=float(t.p_value))


def _spread(d: Floats, mean: float, weights: Floats | None) -> float:
    """Standard deviation of the differences; with weights Σ w (d − mean)² / (Σ w − Σ w² / Σ w) is its square."""
    if weights is None:
        return float(d.std(ddof=1))
    total = weights.sum()
    return float(np.sqrt((weights * (d - mean) ** 2).sum() / (total - (weights**2).sum() / total)))


def _estimate(sums: Floats, weights: Floats | None) -> tuple[Arm, float]:
    """Mean difference with its variance, and the skewness of the values that the variance is made of."""
    if weights is None:
        found = moments_of(sums)
        return arm_of_moments(found), float(found.skewness)
    return arm(sums, weights), float(moments_of(linearise(sums, weights)[1]).skewness)


def _cautions(row: PairRow, skewness: float, weights: Floats | None) -> list[str]:
    """What a reader of the numbers must know about the units that the test is made of."""
    n, differ = row.wins + row.ties + row.losses, row.wins + row.losses
    found = {
        "mostly_zero": row.ties >= MOSTLY_ZERO * n,
        "few_users_carry": weights is not None and effective_number(weights) < min(CARRIED_BELOW, n / 2),
        "few_differ": differ < FEW_DIFFER,
        "skewed": abs(skewness) > SKEWED * np.sqrt(n),
    }
    return [word for word, holds in found.items() if holds]


def paired_resamples(units: list[tuple[Floats, Floats | None]], settings: PairSettings) -> list[dict[str, Any]]:
    """Interval and p of every column of units' sums by one set of resamples.

    Beside a column stands what each sum is divided by: 0 for what is not a unit of this pair, None for 1 everywhere.
    """
    masks: list[Floats] = []
    mask_of = []
    for d, weight in units:
        mask = np.ones(len(d)) if weight is None else weight
        known = next((j for j, other in enumerate(masks) if np.array_equal(other, mask)), len(masks))
        masks += [mask] if known == len(masks) else []
        mask_of.append(known)
    filled = [d for d, _ in units]
    n = np.array([masks[j].sum() for j in mask_of])
    n_units = np.array([np.count_nonzero(masks[j]) for j in mask_of])
    total = np.array([d.sum() for d in filled])
    b = settings.n_resamples
    bootstrap = settings.test == "bootstrap"
    sums = (poisson_sums if bootstrap else sign_sums)([*filled, *masks], b, settings.seed)
    columns = range(len(filled))
    sums, weights = sums[:, : len(filled)], sums[:, [len(filled) + j for j in mask_of]]
    options: dict[str, Any] = {"alternative": settings.alternative, "confidence": settings.confidence}
    found: list[dict[str, Any]]
    if bootstrap:
        with np.errstate(divide="ignore", invalid="ignore"):
            means = sums / weights
        low, high = quantile_interval(means, total / n, **options)
        p, se = bootstrap_p(means, settings.alternative), standard_error(means)
        return [{"ci_low": low[j], "ci_high": high[j], "se": se[j], "p_value": p[j], "n_resamples": b} for j in columns]
    mean = total / n
    # Flipped differences around their mean, spread by the n/(n − 1) that centring took away.
    centred = (sums - mean * weights) / n * np.sqrt(n_units / (n_units - 1))
    low, high = sign_flip_interval(centred, mean, **options)
    p = sign_flip_p(sums, total, settings.alternative)
    found = [{"ci_low": low[j], "ci_high": high[j], "p_value": p[j], "n_resamples": b} for j in columns]
    for j, d in enumerate(filled):
        unequal = int(np.count_nonzero(d))
        if unequal <= EXACT_UNITS and 2**unequal <= b:
            found[j] |= {"p_value": exact_sign_flip_p(d, settings.alternative), "n_resamples": 2**unequal}
    return found
