"""Poisson bootstrap: replicates of means and ratios, and their spread, quantiles and p-value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from .arms import Sample
from .effect_sizes import open_sided
from .numbers import Alternative, Floats
from .resampling_weights import Seed, distinct_columns, poisson_sums

Percentile = Literal["percentile", "basic"]


def replicate_estimates(
    samples: Sequence[Sample],
    n_resamples: int,
    seed: Seed,
    slopes: Sequence[tuple[Floats, Floats]] | None = None,
    unordered: bool = False,
) -> Floats:
    """Return replicates (n_resamples, samples) of ΣN/ΣD − Σθ(ΣX/ΣX_d − x) over the same units; a
    missing D is 1.

    `slopes` are θ and x of the covariates that samples have. `unordered` units have no ids to sort
    by. They are sorted by their own values, which makes the replicates the same for any order of
    the rows.
    """
    ones = np.ones(len(samples[0].num))
    parts = [part for sample in samples for part in (sample, *sample.covariates)]
    given = [
        ones if values is None else values for part in parts for values in (part.num, part.den)
    ]
    columns, places = distinct_columns([ones, *given])
    if unordered:
        order = np.lexsort(columns)
        columns = [values[order] for values in columns]
    sums = poisson_sums(columns, n_resamples, seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = iter(
            [
                sums[:, num] / sums[:, den]
                for num, den in zip(places[1::2], places[2::2], strict=True)
            ]
        )
    replicates = np.empty((n_resamples, len(samples)))
    for j in range(len(samples)):
        replicates[:, j] = next(ratios)
        for slope, x in zip(*slopes[j], strict=True) if slopes else ():
            replicates[:, j] -= slope * (next(ratios) - x)
    # A replicate in which every unit with a denominator has weight 0 has no ratio.
    replicates[np.isinf(replicates)] = np.nan
    return replicates


def standard_error(replicates: Floats) -> Floats:
    """Return the standard deviation of the replicates (B, columns)."""
    return _by_column(lambda part: np.asarray(part.std(axis=0, ddof=1)), replicates)


def bootstrap_effect(
    replicates: Floats, alternative: Alternative, confidence: float
) -> dict[str, Floats]:
    """Return the standard error, percentile interval and p of effects from replicates (B, columns)
    of them."""
    low, high = quantile_interval(
        replicates, np.zeros(1), alternative=alternative, confidence=confidence
    )
    p, se = bootstrap_p(replicates, alternative), standard_error(replicates)
    return {"se": se, "ci_low": low, "ci_high": high, "p_value": p}


def bootstrap_p(replicates: Floats, alternative: Alternative) -> Floats:
    """Return p of "the effect is 0": the share of replicates on the other side of 0, with 1 added
    to both counts.

    `replicates` (B, columns) are replicates of the effect; those within a billionth of their spread
    are 0. A two-sided p is twice the smaller tail.
    """

    def p_value(part: Floats) -> Floats:
        near = 1e-9 * part.std(axis=0)
        below = (1 + (part <= near).sum(axis=0)) / (len(part) + 1)
        above = (1 + (part >= -near).sum(axis=0)) / (len(part) + 1)
        if alternative == "two-sided":
            return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)))
        return np.asarray(below if alternative == "greater" else above)

    return _by_column(p_value, replicates)


def quantile_interval(
    replicates: Floats,
    estimate: Floats,
    *,
    alternative: Alternative,
    confidence: float,
    method: Percentile = "percentile",
) -> tuple[Floats, Floats]:
    """Return the percentile interval of replicates (B, columns), or the basic one: 2·estimate −
    opposite percentile."""
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    low, high = _by_column(
        lambda part: np.asarray(np.quantile(part, [tail, 1 - tail], axis=0)), replicates
    )
    if method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    return open_sided(low, high, alternative)


def _by_column(statistic: Callable[[Floats], Floats], replicates: Floats) -> Floats:
    """Compute a statistic of every column of replicates, without replicates that have no value
    (NaN)."""
    if not np.isnan(replicates).any():
        return statistic(replicates)
    width = np.full_like(statistic(np.zeros((2, 1))), np.nan)
    parts = [column[~np.isnan(column)][:, None] for column in replicates.T]
    return np.concatenate([statistic(part) if len(part) > 1 else width for part in parts], axis=-1)
