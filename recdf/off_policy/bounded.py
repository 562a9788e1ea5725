"""Intervals from an empirical likelihood of the Cressie–Read family: arrays in, numbers out.

Contract: clusters are independent. Their weights w have mean 1 in expectation, and their terms f have the mean that is
looked for. The interval holds every mean of f that some reweighting of the clusters gives, if the reweighted mean of w
is 1 and the reweighting is likely enough. One cluster that was never seen is added, with the most extreme weight and
term that the bounds allow; it keeps the interval honest when few clusters carry the weight.

Reference: Karampatziakis, Langford and Mineiro (2019), "Empirical likelihood for contextual bandits".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..stats.numbers import Floats
from ..stats.student import student_quantile


class ValueRange(NamedTuple):
    """Smallest and largest value."""

    low: float
    high: float


class _Sums(NamedTuple):
    """Sums over clusters: of w, w², f, w·f and f²."""

    w: float
    ww: float
    f: float
    wf: float
    ff: float


def cressie_read(
    weight: Floats, term: Floats, weights: ValueRange, unseen_term: Callable[[float, int], float], confidence: float
) -> ValueRange:
    """Interval of the mean of `term`, given that `weight` has mean 1.

    `unseen_term(w, sign)` is the smallest (sign 1) or largest (sign −1) term that an unseen cluster of weight w can
    have.
    """
    n = len(weight)
    sums = _Sums(
        float(weight.sum()), float(weight @ weight), float(term.sum()), float(weight @ term), float(term @ term)
    )
    budget = _budget(n, sums, weights, confidence)
    found = []
    for sign in (1, -1):
        ends = [_end(n, sums, unseen, unseen_term(unseen, sign), sign, budget) for unseen in weights]
        found.append(sign * min((end for end in ends if end is not None), default=-math.inf))
    return ValueRange(found[0], found[1])


def _budget(n: int, sums: _Sums, weights: ValueRange, confidence: float) -> float:
    """How far a reweighting may be from equal weights: that of the likeliest one, and a quantile of F(1, n)."""
    unseen = weights.high if sums.w < n else weights.low
    mean, square = (unseen + sums.w) / (n + 1), (unseen**2 + sums.ww) / (n + 1)
    likeliest = (n + 1) * (mean - 1) ** 2 / (square - mean**2) if square > mean**2 else 0.0
    return (likeliest + student_quantile((1 + confidence) / 2, n) ** 2) / (2 * (n + 1))


def _end(n: int, sums: _Sums, unseen: float, unseen_term: float, sign: int, budget: float) -> float | None:
    """Smallest mean of sign·f within the budget, with one more cluster; None where no reweighting is likely enough.

    In moments over the n + 1 clusters: x is the mean of f once w has mean 1, y the variance of f that w does not
    explain, and z what is left of the budget. The smallest mean is x − √(2yz).
    """
    m = n + 1
    w, ww = (unseen + sums.w) / m, (unseen**2 + sums.ww) / m
    f, wf = sign * (unseen_term + sums.f) / m, sign * (unseen * unseen_term + sums.wf) / m
    ff = (unseen_term**2 + sums.ff) / m
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
