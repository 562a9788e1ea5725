"""One pair of models on the same users: differences in, numbers out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ...judge.choices import TESTS, Better
from ...judge.per_user_columns import Floats, Mask
from ...judge.verdict import remark
from ...stats.arms import Arm, arm, effective_number, linearise, one_sample
from ...stats.moments import HUGE, moments_of
from ...stats.numbers import Number, undefined_is_nan
from ...stats.resampling import (
    bootstrap_effect,
    by_row,
    distinct_columns,
    exact_sign_flip_p,
    poisson_sums,
    sign_flip_interval,
    sign_flip_p,
    sign_sums,
)
from ...stats.student import equivalence_p
from ...stats.turned import Ends, missing_by_chance, turned_by, turning_value, typical_units
from ..samples import Settings
from .two_sample import but, mean_without_top

# Differences up to this part of the largest value are ties: they are rounding of equal metrics.
TIE = 1e-12
# Up to 2^16 sign patterns are enumerated, if that is no more than the resamples asked for.
EXACT_UNITS = 16
# Up to 8 % of equal models get a verdict where |γ|/√n is at most this, γ the skewness, and
# FEW_DIFFER units differ.
SKEWED_PAIRS = 0.14
# Unequal weights that are worth fewer equal units than this withhold the verdict. Equal models get
# one in 24 to 59 % of simulated comparisons at 3 to 5 effective units, 15 to 27 % at 7, 8 to 22 %
# at 11, 7 to 20 % at 15, 7 to 15 % at 22, at most 8 % of those with 30 or more; weights are
# lognormal, Pareto, or large for some units.
FEW_LISTS_CARRY = 30


# Numbers of a pair that are null where nothing is tested; those of a resampling test are null until
# it is made.
PAIRED_NUMBERS = (
    "diff",
    "se",
    "ci_low",
    "ci_high",
    "d_z",
    "statistic",
    "df",
    "p_value",
    "p_equivalence",
    "n_resamples",
    "diff_without_top",
)


def without_rounding(
    sums: Floats, divisor: Floats | None, values: tuple[Floats, Floats]
) -> tuple[Floats, float]:
    """Return the units' sums of differences of two models' values, 0 where only rounding is left,
    and how large that can be for a unit."""
    tolerance = TIE * max(float(np.fmax.reduce(np.abs(one), initial=0.0)) for one in values)
    limit = tolerance if divisor is None else tolerance * divisor
    return np.where(np.abs(sums) > limit, sums, 0.0), tolerance


class PairUnits(NamedTuple):
    """What a t test reads of the units of one pair, from rows or from sums.

    typical : how many units of the typical weight they are · effective : how many equal units, None
    where all weigh the same · largest : absolute difference · spread : standard deviation of the
    differences.
    """

    n: int
    wins: int
    losses: int
    largest: float
    estimate: Arm = Arm(np.nan, np.nan, np.nan)
    skewness: float = 0.0
    without_top: float = np.nan
    spread: float = np.nan
    typical: float = 0.0
    effective: float | None = None

    @classmethod
    def of(cls, sums: Floats, weights: Floats | None) -> PairUnits:
        """Those of units' sums of differences; `weights` are what each sum is divided by."""
        d = sums if weights is None else sums / weights
        wins, losses = int(np.count_nonzero(d > 0)), int(np.count_nonzero(d < 0))
        found = cls(
            len(d),
            wins,
            losses,
            max(d.max(), -d.min()) if len(d) else 0.0,
            typical=len(d) if weights is None else typical_units(weights),
        )
        if len(d) < 2 or found.largest >= HUGE:
            return found._replace(estimate=Arm(d[0] if len(d) else np.nan, np.nan, np.nan))
        estimate, skewness = estimate_of(sums, weights)
        return found._replace(
            estimate=estimate,
            skewness=skewness,
            without_top=mean_without_top(sums, weights),
            spread=_spread_of_differences(d, float(estimate.mean), weights),
            effective=None if weights is None else effective_number(weights),
        )


def paired_test(
    units: PairUnits,
    metric: str,
    settings: Settings,
    repeated: bool = False,
    powered: Ends | None = None,
) -> dict[str, Any]:
    """Statistics of a pair but those of ranks. `powered` is an estimate from more than these units,
    whose interval and p-values count."""
    wins, losses = units.wins, units.losses
    row: dict[str, Any] = dict.fromkeys(PAIRED_NUMBERS, np.nan)
    row |= {"wins": wins, "ties": units.n - wins - losses, "losses": losses, "ranks_higher": False}
    row |= {"skewed_by": 0.0, "evenness": np.nan, "typical": units.typical}
    test, margin = settings.tests[metric], settings.margins.get(metric)
    row["remarks"] = "repeated_units" * repeated
    if units.n < 2:
        return but(row, "too_few_users", diff=units.estimate.mean)
    if units.largest >= HUGE:
        return but(row, "huge_values")
    constant = not units.estimate.var > 0 or not wins + losses  # ties differ by rounding alone
    row["diff"], row["diff_without_top"] = float(units.estimate.mean), units.without_top
    if not constant:
        row["skewed_by"] = abs(units.skewness) / SKEWED_PAIRS / np.sqrt(units.n)
        if units.effective is not None:
            row["evenness"] = units.effective / min(FEW_LISTS_CARRY, units.n / 2)
        row["d_z"] = row["diff"] / units.spread
    if powered is not None:
        return row | _powered_numbers(powered, settings, margin)
    if constant:
        return but(row, "zero_variance")
    row["se"] = se = float(np.sqrt(units.estimate.var))
    if margin is not None:
        row["p_equivalence"] = float(equivalence_p(row["diff"], se, units.estimate.df, margin))
    if TESTS[test].resampled:
        return row
    t = one_sample(
        units.estimate, alternative=settings.alternative, confidence=settings.confidence
    )._asdict()
    used = (
        ("ci_low", "ci_high")
        if test == "wilcoxon"
        else ("ci_low", "ci_high", "statistic", "df", "p_value")
    )
    return row | {name: float(t[name]) for name in used}


def _powered_numbers(estimate: Ends, settings: Settings, margin: float | None) -> dict[str, float]:
    """The numbers of a test that is of more than these units; what the estimate would be without
    some of them says nothing of it."""
    low, high = estimate.interval(settings.confidence, settings.alternative)
    equivalence = (
        np.nan
        if margin is None
        else max(estimate.p_value("greater", -margin), estimate.p_value("less", margin))
    )
    return {
        "diff": estimate.mean,
        "diff_without_top": np.nan,
        "se": estimate.se,
        "df": estimate.df,
        "statistic": estimate.mean / estimate.se if estimate.se > 0 else np.nan,
        "ci_low": low,
        "ci_high": high,
        "p_value": estimate.p_value(settings.alternative),
        "p_equivalence": equivalence,
    }


def _spread_of_differences(d: Floats, mean: float, weights: Floats | None) -> float:
    """Standard deviation of the differences; with weights Σ w (d − mean)² / (Σ w − Σ w² / Σ w) is
    its square."""
    if weights is None:
        return float(d.std(ddof=1))
    total = weights.sum()
    return float(np.sqrt((weights * (d - mean) ** 2).sum() / (total - (weights**2).sum() / total)))


def estimate_of(sums: Floats, weights: Floats | None) -> tuple[Arm, float]:
    """Mean difference with its variance, and the skewness of the values that the variance is made
    of."""
    values = sums if weights is None else linearise(sums, weights)[1]
    return arm(sums, weights), float(moments_of(values).skewness)


def paired_resamples(
    units: list[tuple[Floats, Floats | None]], test: str, settings: Settings
) -> list[dict[str, Any]]:
    """Interval and p of every column of units' sums by one set of resamples.

    Beside a column stands what each sum is divided by: 0 for what is not a unit of this pair, None
    for 1 everywhere.
    """
    filled = [d for d, _ in units]
    masks, mask_of = distinct_columns(
        [np.ones(len(d)) if weight is None else weight for d, weight in units]
    )
    n = np.array([masks[j].sum() for j in mask_of])
    n_units = np.array([np.count_nonzero(masks[j]) for j in mask_of])
    total = np.array([d.sum() for d in filled])
    b = settings.n_resamples
    bootstrap = test == "bootstrap"
    sums = (poisson_sums if bootstrap else sign_sums)([*filled, *masks], b, settings.seed)
    sums, weights = sums[:, : len(filled)], sums[:, [len(filled) + j for j in mask_of]]
    options: dict[str, Any] = {
        "alternative": settings.alternative,
        "confidence": settings.confidence,
    }
    mean = total / n
    if bootstrap:
        with undefined_is_nan():
            return by_row(
                **bootstrap_effect(sums / weights, **options), n_resamples=[b] * len(mean)
            )
    # Flipped differences around their mean, spread by the n/(n − 1) that centring took away.
    centred = (sums - mean * weights) / n * np.sqrt(n_units / (n_units - 1))
    low, high = sign_flip_interval(centred, mean, **options)
    p = sign_flip_p(sums, total, settings.alternative)
    found = by_row(ci_low=low, ci_high=high, p_value=p, n_resamples=[b] * len(p))
    for row, d in zip(found, filled, strict=True):
        unequal = int(np.count_nonzero(d))
        if unequal <= EXACT_UNITS and 2**unequal <= b:
            row |= {
                "p_value": exact_sign_flip_p(d, settings.alternative),
                "n_resamples": 2**unequal,
            }
    return found


def add_turned(
    table: pd.DataFrame,
    effects: npt.NDArray[np.object_],
    equivalent: Mask,
    better: Mapping[str, Better | None],
    settings: Settings,
) -> None:
    """Add what turns the effect of each row, which may change: a difference whose sign a few unseen
    units could turn, and that is within the margin whatever they are, is equivalent.

    `turned_by` units at a bound of the metric turn it, and K = `unseen` of them may be missing by
    chance; of a metric without bounds, K units of `turning_value` do. Both are null where nothing
    is said, and `turned_by` too where the estimate allows for one more unit at a bound (cheap
    labels).
    """
    diff, units, reach = (table[name].to_numpy(np.float64) for name in ("diff", "typical", "reach"))
    margin = np.array([settings.margins.get(name, np.nan) for name in table["metric"]])
    unseen, powered = missing_by_chance(settings.alpha), table["powered"].to_numpy(bool)
    claims: list[Number] = [0.0, -margin, margin]
    by = [turned_by(diff, units, -reach, reach, claim) for claim in claims]
    least = np.where(powered, np.inf, np.fmin(by[1], by[2]))
    effects[equivalent & (by[0] < unseen) & (least >= unseen) & ~powered] = "equivalent"
    remark(table, equivalent & (effects != "equivalent") & ~(least < unseen), "within_margin")
    alike = effects == "equivalent"
    said = alike | np.isin(effects, ("better", "worse", "higher", "lower"))
    low = np.where(alike, by[1] < by[2], diff > 0)  # units at the lower bound turn it
    table["turned_by"] = np.where(said & ~powered, np.where(alike, least, by[0]), np.nan)
    claim = np.where(alike, np.where(low, -margin, margin), 0.0)
    value = turning_value(diff, units, claim, settings.alpha)
    table["turning_value"] = np.where(said & np.isnan(reach), value, np.nan)
    smaller = np.array([better[metric] == "smaller" for metric in table["metric"]], bool)
    table["turned_to"] = np.where(low != smaller, "lose", "gain")
    table["unseen"] = unseen
