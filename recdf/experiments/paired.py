"""One pair of models on the same users: differences in, numbers out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .columns import Floats
from .options import Alternative, PairTest, PairUsers
from .stats.arms import arm
from .stats.bootstrap import bootstrap_p, quantile_interval, standard_error
from .stats.effects import one_sample
from .stats.sign_flips import exact_sign_flip_p, sign_flip_interval, sign_flip_p
from .stats.signed_ranks import wilcoxon
from .stats.student import equivalence_p
from .stats.weights import poisson_sums, sign_sums

__all__: list[str] = []

# Differences up to this size are ties: they are rounding of equal metrics.
TIE = 1e-12
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


def paired_test(d: Floats, settings: PairSettings, margin: float | None) -> dict[str, Any]:
    """Statistics of the differences; what comes from resampling is still null."""
    units = arm(d) if len(d) > 1 else None
    found: dict[str, Any] = {
        "diff": float(units.mean) if units is not None else float(d[0]) if len(d) else np.nan,
        **dict.fromkeys(("se", "ci_low", "ci_high", "d_z", "statistic", "df", "p_value", "p_equivalence"), np.nan),
        "wins": int(np.count_nonzero(d > TIE)),
        "losses": int(np.count_nonzero(d < -TIE)),
        "n_resamples": None,
        "warning": "wilcoxon_not_mean" if settings.test == "wilcoxon" else "",
    }
    found["ties"] = len(d) - found["wins"] - found["losses"]
    if units is None or not units.var > 0:
        problem = "zero_variance" if len(d) > 1 else "too_few_users"
        found["warning"] = "; ".join(filter(None, (found["warning"], problem)))
        return found
    found["se"] = float(np.sqrt(units.var))
    found["d_z"] = found["diff"] / (found["se"] * np.sqrt(len(d)))
    if margin is not None:
        found["p_equivalence"] = float(equivalence_p(found["diff"], found["se"], len(d) - 1, margin))
    if settings.test in ("t", "wilcoxon"):
        t = one_sample(units, alternative=settings.alternative, confidence=settings.confidence)
        found["ci_low"], found["ci_high"] = float(t.ci_low), float(t.ci_high)
        found["statistic"], found["df"], found["p_value"] = float(t.statistic), float(t.df), float(t.p_value)
    if settings.test == "wilcoxon":
        found["statistic"], found["p_value"] = wilcoxon(d, settings.alternative)
        found["df"] = np.nan
    return found


def paired_resamples(differences: list[Floats], settings: PairSettings) -> list[dict[str, Any]]:
    """Interval and p of every column of differences (NaN: not a unit of this pair) by one set of resamples."""
    masks: list[Floats] = []
    mask_of = []
    for d in differences:
        mask = (~np.isnan(d)).astype(np.float64)
        known = next((j for j, other in enumerate(masks) if np.array_equal(other, mask)), len(masks))
        masks += [mask] if known == len(masks) else []
        mask_of.append(known)
    filled = [np.nan_to_num(d, nan=0.0) for d in differences]
    n = np.array([masks[j].sum() for j in mask_of])
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
    centred = (sums - mean * weights) / n * np.sqrt(n / (n - 1))
    low, high = sign_flip_interval(centred, mean, **options)
    p = sign_flip_p(sums, total, settings.alternative)
    found = [{"ci_low": low[j], "ci_high": high[j], "p_value": p[j], "n_resamples": b} for j in columns]
    for j, d in enumerate(filled):
        unequal = int(np.count_nonzero(d))
        if unequal <= EXACT_UNITS and 2**unequal <= b:
            found[j] |= {"p_value": exact_sign_flip_p(d, settings.alternative), "n_resamples": 2**unequal}
    return found
