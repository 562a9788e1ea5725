"""How two effects move together over many experiments, after the noise of both estimates is taken
out.

Contract: of n experiments, `x` and `y` are estimates of two effects, `var_x`, `var_y` and `cov`
what sampling alone makes of them. The true effects differ from experiment to experiment. Their
variances and covariance are those of the estimates less the mean of the sampling ones (Bibaut et
al. 2024).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .numbers import Floats, undefined_is_nan
from .scipy_extra import scipy_module
from .student import t_quantile


class TrueEffects(NamedTuple):
    """What n experiments say about the true effects. A bound is NaN where the data give none."""

    slope: float
    slope_low: float
    slope_high: float
    correlation: float
    correlation_low: float
    correlation_high: float
    var_x: float  # of the true effects
    var_y: float
    cov: float


def true_effects(
    x: Floats, y: Floats, var_x: Floats, var_y: Floats, cov: Floats, confidence: float
) -> TrueEffects:
    """Return slope cov/var_x and correlation cov/√(var_x·var_y) of the true effects, with Fieller's
    intervals.

    Every experiment contributes x̂ŷ − its sampling covariance and x̂² − its sampling variance, with
    x̂ and ŷ centred. The slope is the ratio of their means. The correlation is the ratio to a mean
    whose contributions are those of √(var_x·var_y), linear about the estimate.
    """
    n = len(x)
    off_x, off_y, grow = x - x.mean(), y - y.mean(), n / (n - 1)
    both, own_x, own_y = (
        grow * a * b - c
        for a, b, c in (
            (off_x, off_y, cov),
            (off_x, off_x, var_x),
            (off_y, off_y, var_y),
        )
    )
    c, vx, vy = float(both.mean()), float(own_x.mean()), float(own_y.mean())
    quantile = float(t_quantile(n - 2, "two-sided", confidence))
    slope = (c / vx if vx > 0 else np.nan, *_ratio_interval(both, own_x, quantile))
    correlation = (np.nan, np.nan, np.nan)
    if vx > 0 and vy > 0:
        root = np.sqrt(vx * vy)
        spread = root + ((own_x - vx) * np.sqrt(vy / vx) + (own_y - vy) * np.sqrt(vx / vy)) / 2
        low, high = _ratio_interval(both, spread, quantile)
        correlation = (
            float(np.clip(c / root, -1, 1)),
            float(np.clip(low, -1, 1)),
            float(np.clip(high, -1, 1)),
        )
    return TrueEffects(*slope, *correlation, vx, vy, c)


def _ratio_interval(above: Floats, below: Floats, quantile: float) -> tuple[float, float]:
    """Fieller's interval of the ratio of two means of the same experiments; NaN unless the lower is
    above 0."""
    num, den = above.mean(), below.mean()
    (var, cov), (_, var_den) = quantile**2 * np.cov(above, below) / len(above)
    a, b, c = den**2 - var_den, num * den - cov, num**2 - var
    if not (den > 0 and a > 0):
        return np.nan, np.nan
    root = np.sqrt(max(b * b - a * c, 0.0))
    return float((b - root) / a), float((b + root) / a)


def launches_by_sign(
    x: Floats, y: Floats, var_x: Floats, var_y: Floats, cov: Floats, true: TrueEffects
) -> tuple[float, float]:
    """Return the share of right launches by the sign of x, and the true effect on y that they lose
    an experiment.

    The true effects of all experiments are taken as normal around their means, with the variances
    of `true`. So each experiment has a posterior m, s of its true effect on y, given both
    estimates. P = Φ(m/s) is the chance that it is above 0, and E = m·P + s·φ(m/s) what a perfect
    call would bring.
    """
    ndtr = scipy_module("special").ndtr
    vx, vy = max(true.var_x, 0.0), max(true.var_y, 0.0)
    c = float(np.clip(true.cov, -np.sqrt(vx * vy), np.sqrt(vx * vy)))
    total_x, total_y, total_c = vx + var_x, vy + var_y, c + cov
    det = total_x * total_y - total_c**2
    by_x, by_y = (c * total_y - vy * total_c) / det, (vy * total_x - c * total_c) / det
    m = y.mean() + by_x * (x - x.mean()) + by_y * (y - y.mean())
    s = np.sqrt(np.maximum(vy - by_x * c - by_y * vy, 0.0))
    with undefined_is_nan():
        z = np.where(s > 0, m / s, np.sign(m) * np.inf)
    z = np.where(np.isnan(z), 0.0, z)
    above = ndtr(z)
    best = m * above + s * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    launched = x > 0
    return float(np.where(launched, above, 1 - above).mean()), float((best - m * launched).mean())
