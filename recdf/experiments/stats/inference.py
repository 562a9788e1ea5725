"""Effects, intervals and p-values: arrays in, numbers out, no column names and no metrics.

Contract: every estimator reduces the last axis (the units: users, or sums per cluster) and broadcasts
over the others, so the same code runs one experiment or thousands of simulated ones. A result that
does not exist (no variance, a sum of denominators that is 0) is NaN, never an exception.

Student t and χ² need SciPy (`recdf[stats]`); the functions that use it import it when called. Only tail
functions are used, because 1 − cdf underflows where a p-value is most interesting.
"""

from __future__ import annotations

import warnings
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import MissingExtraError

__all__: list[str] = []

Floats = npt.NDArray[np.float64]

ALTERNATIVES = ("two-sided", "greater", "less")
CORRECTIONS = ("holm", "bh", "bonferroni", "none")

# Standard deviations below this share of the largest value are rounding error, not variation.
_ROUNDING = 1e-12


def scipy_module(name: str) -> Any:
    """Return `scipy.special` or `scipy.stats`, or say which extra is missing."""
    try:
        if name == "special":
            import scipy.special as module  # type: ignore[import-untyped]  # SciPy ships no types
        else:
            import scipy.stats as module  # type: ignore[import-untyped]  # the same
    except ImportError as error:
        raise MissingExtraError(
            "t tests and χ² tests need SciPy, which is not installed: pip install 'recdf[stats]'"
        ) from error
    return module


# ------------------------------------------------------------------------------------- one arm, one effect


class Sample(NamedTuple):
    """Units of one arm: numerators, denominators (None: a plain mean), the same for a covariate."""

    num: Floats
    den: Floats | None = None
    x_num: Floats | None = None
    x_den: Floats | None = None


class Arm(NamedTuple):
    """Estimate of one arm, the variance of that estimate, and the degrees of freedom of the variance."""

    mean: Any
    var: Any
    df: Any


class Effect(NamedTuple):
    """Treatment against control; every field is a float or an array over the leading axes."""

    diff: Any
    se: Any
    ci_low: Any
    ci_high: Any
    rel_diff: Any
    rel_ci_low: Any
    rel_ci_high: Any
    statistic: Any
    df: Any
    p_value: Any


def linearise(num: Floats, den: Floats | None = None) -> tuple[Any, Floats]:
    """Return the mean m = Σy/n with z = y − m, or the ratio R = ΣN/ΣD with z = (N − R·D)/mean(D).

    The variance of either estimate is Σz²/(n − 1)/n (delta method for the ratio).
    """
    if den is None:
        mean = num.mean(axis=-1)
        return mean, num - mean[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = num.sum(axis=-1) / den.sum(axis=-1)
        return ratio, (num - ratio[..., None] * den) / den.mean(axis=-1)[..., None]


def _sum_of_squares(z: Floats) -> Any:
    return np.einsum("...i,...i->...", z, z)


def _largest(num: Floats, den: Floats | None) -> Any:
    """Largest value of the numerator in units of the estimate: what a spread is negligible against."""
    # Two reductions take no temporary array, unlike abs.
    largest = np.maximum(num.max(axis=-1), -num.min(axis=-1))
    if den is None:
        return largest
    with np.errstate(divide="ignore", invalid="ignore"):
        return largest / np.abs(den.mean(axis=-1))


def _variance_of_mean(z: Floats, largest: Any) -> Any:
    n = z.shape[-1]
    squares = _sum_of_squares(z)
    with np.errstate(divide="ignore", invalid="ignore"):
        var = squares / (n - 1) / n
        # A constant 0.1 has Σz² of 1e-34 instead of 0, which would make any difference "significant".
        return np.where(np.sqrt(squares / n) <= _ROUNDING * largest, 0.0, var)


def arm(num: Floats, den: Floats | None = None) -> Arm:
    """Mean or ratio of the last axis with its variance and n − 1 degrees of freedom."""
    mean, z = linearise(num, den)
    return Arm(mean, _variance_of_mean(z, _largest(num, den)), np.float64(num.shape[-1] - 1))


def pool(control: Sample, treatment: Sample) -> Sample:
    """The units of two arms as one sample."""
    return Sample(
        *(
            None if c is None or t is None else np.concatenate([c, t], axis=-1)
            for c, t in zip(control, treatment, strict=True)
        )  # type: ignore[arg-type]
    )


def cuped_theta(both: Sample) -> tuple[Any, Any]:
    """θ = Σz_y z_x / Σz_x² over the two arms together, and the covariate's value x over both.

    A covariate without variance explains nothing: θ = 0.
    """
    z = linearise(both.num, both.den)[1]
    x, zx = linearise(_covariate(both), both.x_den)
    squares = _sum_of_squares(zx)
    constant = np.sqrt(squares / zx.shape[-1]) <= _ROUNDING * _largest(_covariate(both), both.x_den)
    with np.errstate(divide="ignore", invalid="ignore"):
        theta = np.where(constant, 0.0, np.einsum("...i,...i->...", z, zx) / squares)
    return theta, x


def _covariate(sample: Sample) -> Floats:
    if sample.x_num is None:
        raise ValueError("the sample has no covariate")
    return sample.x_num


def cuped_arm(sample: Sample, theta: Any, x: Any) -> Arm:
    """Arm of the metric adjusted by a covariate: m' = m − θ(x_arm − x), z' = z − θ·z_x (Deng et al. 2013)."""
    mean, z = linearise(sample.num, sample.den)
    x_arm, zx = linearise(_covariate(sample), sample.x_den)
    adjusted = z - np.asarray(theta)[..., None] * zx
    var = _variance_of_mean(adjusted, _largest(sample.num, sample.den))
    return Arm(mean - theta * (x_arm - x), var, np.float64(z.shape[-1] - 1))


def stratified_arm(values: Floats, strata: npt.NDArray[np.int64], weights: Floats) -> Arm:
    """Post-stratified mean Σ W_h ȳ_h with variance Σ W_h² s_h²/n_h.

    `strata` are codes 0..H−1 of the last axis, each present at least twice; `weights` W_h sum to 1. The
    degrees of freedom are Satterthwaite's, v²/Σ((W_h² s_h²/n_h)²/(n_h − 1)).
    """
    order = np.argsort(strata, kind="stable")
    counts = np.bincount(strata, minlength=len(weights))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    ordered = values[..., order]
    means = np.add.reduceat(ordered, starts, axis=-1) / counts
    z = ordered - np.repeat(means, counts, axis=-1)
    squares = np.add.reduceat(z * z, starts, axis=-1)
    parts = weights**2 * squares / (counts - 1) / counts
    largest = np.abs(values).max(axis=-1)
    constant = np.sqrt(squares.sum(axis=-1) / len(strata)) <= _ROUNDING * largest
    var = np.where(constant, 0.0, parts.sum(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        df = var**2 / (parts**2 / (counts - 1)).sum(axis=-1)
    return Arm((means * weights).sum(axis=-1), var, df)


def effect(
    control: Arm,
    treatment: Arm,
    *,
    alternative: str = "two-sided",
    confidence: float = 0.95,
    always_valid: float | None = None,
) -> Effect:
    """Welch's test of two independent arms, or the always-valid one.

    se = √(v_c + v_t), t = diff/se, df = (v_c + v_t)²/(v_c²/df_c + v_t²/df_t), interval diff ∓ t_q·se. The
    relative interval is (m_t/m_c)·exp(∓ t_q·√(v_c/m_c² + v_t/m_t²)) − 1 with the df of those two terms, and is
    NaN unless both means are positive. `always_valid` is the multiplier of `always_valid_multiplier`, which
    then stands in place of t_q and leaves p_value to `always_valid_p`.
    """
    diff = treatment.mean - control.mean
    var = control.var + treatment.var
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.where(var > 0, np.sqrt(var), np.nan)
        positive = (control.mean > 0) & (treatment.mean > 0)
        rel_c = control.var / np.square(control.mean)
        rel_t = treatment.var / np.square(treatment.mean)
        rel_se = np.where(positive & (var > 0), np.sqrt(rel_c + rel_t), np.nan)
        ratio = treatment.mean / control.mean
        statistic = diff / se
        df = _satterthwaite(control.var, control.df, treatment.var, treatment.df)
        rel_df = _satterthwaite(rel_c, control.df, rel_t, treatment.df)
    if always_valid is None:
        quantile = t_quantile(df, alternative, confidence)
        rel_quantile = t_quantile(rel_df, alternative, confidence)
        p_value = t_p_value(statistic, df, alternative)
    else:
        quantile = rel_quantile = always_valid
        df = p_value = np.full_like(se, np.nan)
    low, high = _bounds(diff, quantile * se, alternative)
    rel_low, rel_high = _bounds(np.log(np.where(positive, ratio, np.nan)), rel_quantile * rel_se, alternative)
    rel_diff = np.where(control.mean > 0, ratio - 1, np.nan)
    return Effect(diff, se, low, high, rel_diff, np.expm1(rel_low), np.expm1(rel_high), statistic, df, p_value)


def _satterthwaite(v1: Any, df1: Any, v2: Any, df2: Any) -> Any:
    # An arm without variance has no df of its own and must add 0, not NaN.
    parts = np.where(v1 > 0, v1**2 / df1, 0.0) + np.where(v2 > 0, v2**2 / df2, 0.0)
    return np.where(parts > 0, (v1 + v2) ** 2 / parts, np.nan)


def _bounds(centre: Any, half: Any, alternative: str) -> tuple[Any, Any]:
    low = centre - half if alternative != "less" else np.where(np.isnan(half), np.nan, -np.inf)
    high = centre + half if alternative != "greater" else np.where(np.isnan(half), np.nan, np.inf)
    return low, high


def one_sample(units: Arm, *, alternative: str = "two-sided", confidence: float = 0.95) -> Effect:
    """t test that the mean of one arm (of paired differences) is 0; relative fields are NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.where(units.var > 0, np.sqrt(units.var), np.nan)
        statistic = units.mean / se
    df = np.where(np.isnan(se), np.nan, units.df)
    low, high = _bounds(units.mean, t_quantile(df, alternative, confidence) * se, alternative)
    nan = np.full_like(se, np.nan)
    return Effect(units.mean, se, low, high, nan, nan, nan, statistic, df, t_p_value(statistic, df, alternative))


def t_quantile(df: Any, alternative: str, confidence: float) -> Any:
    """Upper t quantile of a two-sided or one-sided interval."""
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    # The lower tail mirrored: stdtrit(df, 1 - tail) loses digits when tail is small.
    return -scipy_module("special").stdtrit(df, tail)


def t_p_value(statistic: Any, df: Any, alternative: str) -> Any:
    """p-value of a t statistic from its tail."""
    special = scipy_module("special")
    if alternative == "two-sided":
        return 2 * special.stdtr(df, -np.abs(statistic))
    return special.stdtr(df, -statistic if alternative == "greater" else statistic)


def equivalence_p(diff: Any, se: Any, df: Any, margin: float) -> Any:
    """TOST: the larger p of H0 diff ≤ −margin and H0 diff ≥ margin (Schuirmann 1987)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        above = t_p_value((diff + margin) / se, df, "greater")
        below = t_p_value((diff - margin) / se, df, "less")
    return np.maximum(above, below)


def wilcoxon(diff: Floats, alternative: str) -> tuple[float, float]:
    """Wilcoxon's signed-rank statistic and p by the normal approximation, zeros dropped (SciPy)."""
    stats = scipy_module("stats")
    with warnings.catch_warnings():
        # SciPy warns of the approximation below 10 differences, which the caller asked for.
        warnings.simplefilter("ignore", UserWarning)
        found = stats.wilcoxon(diff, alternative=alternative, method="approx")
    return float(found.statistic), float(found.pvalue)


# ------------------------------------------------------------------------------------------- always valid


def _mixture(n: Any, n_planned: float, alpha: float) -> tuple[Any, Any]:
    # ρ makes the interval tightest when n units have been seen that were planned (Waudby-Smith et al. 2023).
    rho2 = (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / n_planned
    return rho2, n * rho2 + 1


def always_valid_multiplier(n: Any, n_planned: float, confidence: float = 0.95) -> Any:
    """Number of standard errors of an interval that holds at every look at once.

    √N·√(2A/(N²ρ²)·ln(√A/α)) with A = Nρ² + 1, N = `n` units so far and ρ² = (−2 ln α + ln(1 − 2 ln α))/N*,
    N* = `n_planned`.
    """
    alpha = 1 - confidence
    rho2, a = _mixture(n, n_planned, alpha)
    return np.sqrt(2 * a / (n * rho2) * np.log(np.sqrt(a) / alpha))


def always_valid_p(statistic: Any, n: Any, n_planned: float, confidence: float = 0.95) -> Any:
    """p = min(1, √A·exp(−ρ²N·(diff/se)²/(2A))): at most α, at any look, when there is no effect."""
    rho2, a = _mixture(n, n_planned, 1 - confidence)
    return np.minimum(1.0, np.sqrt(a) * np.exp(-rho2 * n * np.square(statistic) / (2 * a)))


# --------------------------------------------------------------------------------- many tests, counts, power


def adjust(p: Floats, method: str) -> Floats:
    """Adjust one family of p-values; NaN stays NaN and is not counted.

    holm: cummax((m − i)·p₍ᵢ₎) from the smallest, i = 0.. · bh: cummin(m/i·p₍ᵢ₎) from the largest, i = 1.. ·
    bonferroni: m·p; all cut at 1.
    """
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    m = len(tested)
    order = tested[np.argsort(p[tested], kind="stable")]
    ranks = np.arange(1, m + 1)
    ordered = p[order]
    if method == "holm":
        ordered = np.maximum.accumulate((m + 1 - ranks) * ordered)
    elif method == "bh":
        ordered = np.minimum.accumulate((m / ranks * ordered)[::-1])[::-1]
    elif method == "bonferroni":
        ordered = m * ordered
    adjusted[order] = np.minimum(ordered, 1.0)
    return adjusted


def share_test(counts: npt.ArrayLike, shares: npt.ArrayLike, least: float = 8.0) -> tuple[float, float]:
    """Pearson's χ² of counts against planned shares and its p; NaN when an expected count is below `least`."""
    observed = np.asarray(counts, dtype=np.float64)
    planned = np.asarray(shares, dtype=np.float64)
    expected = observed.sum() * planned / planned.sum()
    if len(observed) < 2 or expected.min() < least:
        return np.nan, np.nan
    chi2 = float(((observed - expected) ** 2 / expected).sum())
    return chi2, float(scipy_module("special").chdtrc(len(observed) - 1, chi2))


def independence_test(table: npt.ArrayLike) -> tuple[float, float]:
    """Pearson's χ² of a contingency table (no continuity correction) and its p; NaN with an empty margin."""
    observed = np.asarray(table, dtype=np.float64)
    rows, cols = observed.sum(axis=1), observed.sum(axis=0)
    if min(observed.shape) < 2 or not rows.all() or not cols.all():
        return np.nan, np.nan
    expected = np.outer(rows, cols) / observed.sum()
    chi2 = float(((observed - expected) ** 2 / expected).sum())
    df = (observed.shape[0] - 1) * (observed.shape[1] - 1)
    return chi2, float(scipy_module("special").chdtrc(df, chi2))


def detectable(alpha: float, power: float, alternative: str = "two-sided") -> float:
    """z_{1−α/2} + z_power (z_{1−α} one-sided): the smallest true effect, in standard errors, found with `power`."""
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / (2 if alternative == "two-sided" else 1)) + normal.inv_cdf(power)
