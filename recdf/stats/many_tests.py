"""Adjustment of p-values and intervals for the number of tests read together; and whether groups
differ."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .numbers import Correction, Floats, Integers, Mask, TwoNumbers, scipy_module, undefined_is_nan
from .shares import chi2_tail
from .student import t_quantile

SIDAK = ("sidak", "holm_sidak")


def adjust(p: Floats, method: Correction) -> Floats:
    """Adjust one family of p-values; NaN stays NaN and is not counted.

    With i = 1..m the rank of p₍ᵢ₎: holm cummax((m + 1 − i)·p₍ᵢ₎) · holm_sidak cummax(1 − (1 −
    p₍ᵢ₎)^(m + 1 − i)), both from the smallest · hochberg cummin((m + 1 − i)·p₍ᵢ₎) · bh
    cummin(m/i·p₍ᵢ₎) · by cummin(m·Σ(1/j)/i·p₍ᵢ₎), these from the largest · bonferroni m·p · sidak 1
    − (1 − p)^m; all cut at 1.
    """
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    m = len(tested)
    order = tested[np.argsort(p[tested], kind="stable")]
    ranks = np.arange(1.0, m + 1)
    steps = m + 1 - ranks
    ordered = p[order]
    # What the p-value of each rank is multiplied by.
    factors: dict[str, Any] = {
        **dict.fromkeys(("holm", "hochberg", "holm_sidak"), steps),
        **dict.fromkeys(("bonferroni", "sidak"), m),
        "bh": m / ranks,
        "by": m / ranks * (1 / ranks).sum(),
        "none": 1.0,
    }
    with undefined_is_nan():  # the logarithm of 1 − 1
        logs = np.log1p(-ordered) if method in SIDAK else ordered
        ordered = factors[method] * logs
        ordered = -np.expm1(ordered) if method in SIDAK else ordered
    if method in ("holm", "holm_sidak"):
        ordered = np.maximum.accumulate(ordered)
    elif method in ("hochberg", "bh", "by"):
        ordered = np.minimum.accumulate(ordered[::-1])[::-1]
    adjusted[order] = np.minimum(ordered, 1.0)
    return adjusted


def adjust_within(p: Floats, family: Integers, method: Correction) -> Floats:
    """Adjust the p-values of each family, a code, by themselves."""
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(family, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(family[order])) + 1):
        adjusted[rows] = adjust(p[rows], method)
    return adjusted


def joint_levels(
    p: Floats, p_adj: Floats, reject: Mask, family: Integers, alpha: float, method: Correction
) -> Floats:
    """Return the error level of each interval, so that all m of a family hold together.

    It is that of the first step of the correction: α/m, or 1 − (1 − α)^(1/m) with Šidák's, or
    α/(m·Σ(1/j)) with "by". A difference that only a later step shows has the level of that step,
    α·p/p_adj, or for Šidák's the same ratio of the logarithms of 1 − p. So an interval leaves out 0
    exactly where its test rejects.
    """
    m = np.maximum(np.bincount(family, ~np.isnan(p), minlength=1)[family], 1)
    if method == "by":
        m = m * np.cumsum(1 / np.arange(1, m.max(initial=1) + 1))[m.astype(np.int64) - 1]
    with undefined_is_nan():
        given = (p, p_adj, alpha)
        one, adjusted, level = (-np.log1p(-x) for x in given) if method in SIDAK else given
        first = level / m
        found = np.where(reject & (one > first), level * (one / adjusted), first)
        return -np.expm1(-found) if method in SIDAK else found


def widened_ratio(
    relative: Floats, low: Floats, high: Floats, ratio: Floats
) -> tuple[Floats, Floats]:
    """Return intervals of m_t/m_c − 1 for quantiles that are `ratio` times as large.

    The two bounds of Fieller give back the squared errors that they were made of. A logarithmic
    interval, whose bounds are as far from the estimate on its scale, and one that is open on a
    side, is widened on that scale.
    """
    with undefined_is_nan():
        b = 1 + relative
        lower = 1 + low
        upper = 1 + high
        a = 2 * b / (lower + upper)
        wide = 1 - (1 - a) * ratio**2
        root = np.sqrt(b**2 - wide * (b**2 - (b**2 - a * lower * upper) * ratio**2))
        fieller = np.isfinite(high) & np.isfinite(low) & ~np.isclose(lower * upper, b**2, rtol=1e-9)
        ends = [np.where(wide > 0, (b + sign * root) / wide - 1, np.nan) for sign in (-1, 1)]
        logs = [b * (one / b) ** ratio - 1 for one in (lower, upper)]
    logs = [
        np.where(np.isfinite(one), end, one) for one, end in zip((low, high), logs, strict=True)
    ]
    return np.where(fieller, ends[0], logs[0]), np.where(fieller, ends[1], logs[1])


class Heterogeneity(NamedTuple):
    """What H groups with a standard error say together; the last two are arrays with NaN for the
    other groups."""

    n_segments: int
    effect: float
    q: float
    df: int
    p_value: float
    tau: float
    shrunken: Floats
    shrunken_se: Floats


def heterogeneity(diff: Floats, se: Floats) -> Heterogeneity:
    """Return Q of the groups, the spread τ between them (DerSimonian & Laird), and their empirical
    Bayes effects.

    Groups without a positive standard error do not count. NaN where fewer than two count.
    """
    known = np.isfinite(diff) & (se > 0)
    n = known.sum()
    nothing = np.full(len(diff), np.nan)
    if n < 2:
        return Heterogeneity(n, np.nan, np.nan, max(n - 1, 0), np.nan, np.nan, nothing, nothing)
    unit = se[known].min()  # squares of tiny errors would be 0
    effects = diff[known] / unit
    variances = np.square(se[known] / unit)
    w = 1 / variances
    mean = w @ effects / w.sum()
    q = w @ np.square(effects - mean)
    spread = max(0.0, (q - (n - 1)) / (w.sum() - w @ w / w.sum()))
    v = 1 / (variances + spread)
    centre = v @ effects / v.sum()
    part = spread * v
    shrunken = nothing.copy()
    errors = nothing.copy()
    shrunken[known] = unit * (centre + part * (effects - centre))
    errors[known] = unit * np.sqrt(part * variances + np.square(1 - part) / v.sum())
    tau = unit * np.sqrt(spread)
    return Heterogeneity(n, unit * mean, q, n - 1, chi2_tail(q, n - 1), tau, shrunken, errors)


# ------------------------------------------------------------------------------------------
# How two effects move together over many experiments, after the noise of both estimates is taken
# out.
#
# Contract: of n experiments, `x` and `y` are estimates of two effects, `var_x`, `var_y` and `cov`
# what sampling alone makes of them. The true effects differ from experiment to experiment. Their
# variances and covariance are those of the estimates less the mean of the sampling ones (Bibaut et
# al. 2024).


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
    off_x = x - x.mean()
    off_y = y - y.mean()
    grow = n / (n - 1)
    both, own_x, own_y = (
        grow * a * b - c
        for a, b, c in ((off_x, off_y, cov), (off_x, off_x, var_x), (off_y, off_y, var_y))
    )
    c = both.mean()
    vx = own_x.mean()
    vy = own_y.mean()
    quantile = float(t_quantile(n - 2, "two-sided", confidence))
    slope = (c / vx if vx > 0 else np.nan, *_ratio_interval(both, own_x, quantile))
    correlation = lowest = highest = np.nan
    if vx > 0 and vy > 0:
        root = np.sqrt(vx * vy)
        spread = root + ((own_x - vx) * np.sqrt(vy / vx) + (own_y - vy) * np.sqrt(vx / vy)) / 2
        ends = _ratio_interval(both, spread, quantile)
        correlation, lowest, highest = np.clip([c / root, *ends], -1, 1)
    return TrueEffects(*slope, correlation, lowest, highest, vx, vy, c)


def _ratio_interval(above: Floats, below: Floats, quantile: float) -> TwoNumbers:
    """Fieller's interval of the ratio of two means of the same experiments; NaN unless the lower is
    above 0."""
    num = above.mean()
    den = below.mean()
    (var, cov), (_, var_den) = quantile**2 * np.cov(above, below) / len(above)
    a = den**2 - var_den
    b = num * den - cov
    c = num**2 - var
    if not (den > 0 and a > 0):
        return np.nan, np.nan
    root = np.sqrt(max(b * b - a * c, 0.0))
    return (b - root) / a, (b + root) / a


def launches_by_sign(
    x: Floats, y: Floats, var_x: Floats, var_y: Floats, cov: Floats, true: TrueEffects
) -> TwoNumbers:
    """Return the share of right launches by the sign of x, and the true effect on y that they lose
    an experiment.

    The true effects of all experiments are taken as normal around their means, with the variances
    of `true`. So each experiment has a posterior m, s of its true effect on y, given both
    estimates. P = Φ(m/s) is the chance that it is above 0, and E = m·P + s·φ(m/s) what a perfect
    call would bring.
    """
    ndtr = scipy_module("special").ndtr
    vx = max(true.var_x, 0.0)
    vy = max(true.var_y, 0.0)
    c = np.clip(true.cov, -np.sqrt(vx * vy), np.sqrt(vx * vy))
    total_x = vx + var_x
    total_y = vy + var_y
    total_c = c + cov
    det = total_x * total_y - total_c**2
    by_x = (c * total_y - vy * total_c) / det
    by_y = (vy * total_x - c * total_c) / det
    m = y.mean() + by_x * (x - x.mean()) + by_y * (y - y.mean())
    s = np.sqrt(np.maximum(vy - by_x * c - by_y * vy, 0.0))
    with undefined_is_nan():
        z = np.nan_to_num(m / s, posinf=np.inf, neginf=-np.inf)
    above = ndtr(z)
    best = m * above + s * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    launched = x > 0
    return np.where(launched, above, 1 - above).mean(), (best - m * launched).mean()
