"""Intervals from an empirical likelihood of the Cressie–Read family: arrays in, numbers out.

Contract: clusters are independent. Their weights w have mean 1 in expectation, and their terms f
have the mean that is looked for. The interval holds every mean of f that some reweighting of the
clusters gives, if the reweighted mean of w is 1 and the reweighting is likely enough. One cluster
that was never seen is added, with the most extreme weight and term that the bounds allow; it keeps
the interval honest when few clusters carry the weight.

Reference: Karampatziakis, Langford and Mineiro (2019), "Empirical likelihood for contextual
bandits".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..stats.numbers import Floats
from ..stats.student import student_quantile


class ValueRange(NamedTuple):
    """Smallest and largest value."""

    low: float
    high: float


def cressie_read(
    weight: Floats,
    term: Floats,
    weights: ValueRange,
    unseen_term: Callable[[float, int], float],
    confidence: float,
) -> ValueRange:
    """Interval of the mean of `term`, given that `weight` has mean 1.

    `unseen_term(w, sign)` is the smallest (sign 1) or largest (sign −1) term that an unseen cluster
    of weight w can have.
    """
    n = len(weight)
    # Sums over clusters of w, w², f, w·f and f².
    sums = np.array([weight.sum(), weight @ weight, term.sum(), weight @ term, term @ term])
    budget = _budget(n, sums, weights, confidence)
    found = []
    for sign in (1, -1):
        ends = [
            _end(n, sums, unseen, unseen_term(unseen, sign), sign, budget) for unseen in weights
        ]
        found.append(sign * min((end for end in ends if end is not None), default=-math.inf))
    return ValueRange(found[0], found[1])


def _budget(n: int, sums: Floats, weights: ValueRange, confidence: float) -> float:
    """How far a reweighting may be from equal weights: that of the likeliest one, and a quantile of
    F(1, n)."""
    unseen = weights.high if sums[0] < n else weights.low
    mean, square = (unseen + float(sums[0])) / (n + 1), (unseen**2 + float(sums[1])) / (n + 1)
    likeliest = (n + 1) * (mean - 1) ** 2 / (square - mean**2) if square > mean**2 else 0.0
    return (likeliest + student_quantile((1 + confidence) / 2, n) ** 2) / (2 * (n + 1))


def _end(
    n: int, sums: Floats, unseen: float, unseen_term: float, sign: int, budget: float
) -> float | None:
    """Smallest mean of sign·f within the budget, with one more cluster; None where no reweighting
    is likely enough.

    In moments over the n + 1 clusters: x is the mean of f once w has mean 1, y the variance of f
    that w does not explain, and z what is left of the budget. The smallest mean is x − √(2yz).
    """
    cluster = unseen, unseen**2, unseen_term, unseen * unseen_term, unseen_term**2
    w, ww, f, wf, ff = ((sums + cluster) / (n + 1) * (1, 1, sign, sign, 1)).tolist()
    spread = ww - w**2
    if spread <= 0:
        return None
    x = f + (1 - w) * (wf - w * f) / spread
    y = ff - f**2 - (wf - w * f) ** 2 / spread
    z = budget - (1 - w) ** 2 / (2 * spread)
    if abs(y * z) < 1e-9 * max(1.0, ff):
        y = max(y, 0.0)
        z = max(z, 0.0)
    return x - math.sqrt(2 * y * z) if y >= 0 and z >= 0 else None
