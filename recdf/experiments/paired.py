"""One pair of models on the same users: differences in, numbers out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .columns import Floats
from .options import Alternative, PairTest, PairUsers
from .stats.arms import arm
from .stats.bootstrap import bootstrap_p, quantile_interval, standard_error
from .stats.effects import one_sample
from .stats.moments import HUGE
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


def paired_test(d: Floats, settings: PairSettings, margin: float | None, weights: Floats | None = None) -> PairRow:
    """Statistics of the differences, of which each counts as its weight says."""
    wins, losses = int(np.count_nonzero(d > TIE)), int(np.count_nonzero(d < -TIE))
    row = PairRow(wins=wins, losses=losses, ties=len(d) - wins - losses, warning=_warning(d, settings))
    if len(d) < 2 or np.abs(d).max() >= HUGE:
        return replace(row, diff=float(d[0]) if len(d) == 1 else np.nan)
    units = arm(d) if weights is None else arm(weights * d, weights)
    diff = float(units.mean)
    if not units.var > 0:
        return replace(row, diff=diff)
    se = float(np.sqrt(units.var))
    row = replace(row, diff=diff, se=se, d_z=diff / _spread(d, diff, weights))
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


def _warning(d: Floats, settings: PairSettings) -> str:
    """What a reader of the numbers must know."""
    named = ["wilcoxon_not_mean"] if settings.test == "wilcoxon" else []
    if len(d) < 2:
        named.append("too_few_users")
    elif np.abs(d).max() >= HUGE:
        named.append("huge_values")
    elif not arm(d).var > 0:
        named.append("zero_variance")
    elif np.mean(np.abs(d) <= TIE) >= MOSTLY_ZERO:
        named.append("mostly_zero")
    return "; ".join(named)


def paired_resamples(
    differences: list[Floats], settings: PairSettings, of_units: Floats | None = None
) -> list[dict[str, Any]]:
    """Interval and p of every column of differences (NaN: not a unit of this pair) by one set of resamples.

    With weights `of_units` the sums are those of the products, and a mean is divided by the sum of the weights.
    """
    masks: list[Floats] = []
    mask_of = []
    for d in differences:
        mask = (~np.isnan(d)).astype(np.float64) if of_units is None else np.where(np.isnan(d), 0.0, of_units)
        known = next((j for j, other in enumerate(masks) if np.array_equal(other, mask)), len(masks))
        masks += [mask] if known == len(masks) else []
        mask_of.append(known)
    filled = [np.nan_to_num(d, nan=0.0) * (1.0 if of_units is None else of_units) for d in differences]
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
