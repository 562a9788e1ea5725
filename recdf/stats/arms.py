"""One arm of a comparison: its mean or ratio of sums, and the variance of the estimate.

Contract: a result that does not exist (no variance, or a sum of denominators that is 0) is NaN and
never an exception. Functions reduce the last axis (the units: users, or sums per cluster) and
broadcast over the others, so that the same code runs one experiment or thousands of simulated ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from .numbers import Alternative, Floats, Integers, Mask, Number, undefined_is_nan
from .student import t_p_value, t_quantile

# Values of this size and above overflow when they are squared and summed.
HUGE = 1e150

# Standard deviations below this share of the largest value are rounding error, not variation.
MEAN_ROUNDING = 1e-14


class Moments(NamedTuple):
    """n values with mean m, of which `low` is the smallest and `high` the largest.

    `var` is Σ(y − m)²/n, or 0 where that is only rounding error. `skewness` is (Σ(y −
    m)³/n)/var^1.5, or 0 with `var`.
    """

    n: Number
    mean: Number
    var: Number
    skewness: Number
    low: Number
    high: Number


def moments_of(*arrays: Floats) -> Moments:
    """Return the moments of all values together; of huge ones, whose squares overflow, only mean
    and range."""
    n = sum(map(len, arrays))
    if not n:
        return Moments(0, *[np.nan] * 5)
    values = np.concatenate(arrays)
    low = float(values.min())
    high = float(values.max())
    scale = max(-low, high)
    if scale >= HUGE:
        return Moments(n, float((values / scale).mean()) * scale, np.nan, np.nan, low, high)
    mean = float(values.mean())
    z = values - mean
    var = float(np.einsum("i,i->", z, z)) / n
    if not np.sqrt(var) > MEAN_ROUNDING * scale:
        return Moments(n, mean, 0.0, 0.0, low, high)
    z /= np.sqrt(var)  # the cubes of small values would underflow
    return Moments(n, mean, var, float(np.einsum("i,i,i->", z, z, z)) / n, low, high)


def add_moments(parts: Moments, arm: Integers, n_arms: int) -> Moments:
    """Add the moments of disjoint parts; `arm` has the arm 0..n_arms−1 of each part.

    With δ = m_i − m and the variance of all, σ² = Σ n_i(σ_i² + δ²)/n, their skewness is Σ
    n_i((σ_i/σ)³γ_i + 3(δ/σ)(σ_i/σ)² + (δ/σ)³)/n. The squares of huge values overflow: their
    variance is NaN.
    """
    some = np.asarray(parts.n) > 0  # the mean of no value is NaN
    of = arm[some]
    known = Moments(*(np.asarray(values)[some] for values in parts))

    def total(values: Number) -> Floats:
        return np.bincount(of, weights=np.asarray(values), minlength=n_arms).astype(np.float64)

    n = total(known.n)
    low = np.full(n_arms, np.inf)
    high = np.full(n_arms, -np.inf)
    with undefined_is_nan():  # NaN, a range that is not known, is below and above everything
        np.minimum.at(low, of, known.low)
        np.maximum.at(high, of, known.high)
    with undefined_is_nan():
        share = known.n / n[of]
        # Counted from the mean of one part, so that equal means stay what they are.
        mean = np.full(n_arms, np.nan)
        mean[of] = known.mean
        mean += total(share * known.mean - share * mean[of])
        delta = known.mean - mean[of]
        var = total(share * (known.var + delta * delta))
        var[~np.isfinite(var)] = np.nan
        # The mean stands for a range that is not known.
        largest = np.fmax(np.fmax(high, -low), np.abs(mean))
        var[np.sqrt(var) <= MEAN_ROUNDING * largest] = 0.0
        scale = np.where(var > 0, np.sqrt(var), 1.0)[of]
        spread = np.sqrt(known.var) / scale
        delta = delta / scale
        cubes = (
            np.where(known.var > 0, spread**3 * known.skewness, 0.0)
            + 3 * delta * spread**2
            + delta**3
        )
        skewness = np.where(var > 0, total(share * cubes), np.where(np.isnan(var), np.nan, 0.0))
    low[n == 0] = high[n == 0] = var[n == 0] = skewness[n == 0] = np.nan
    return Moments(n, mean, var, skewness, low, high)


def skewness_of_means(n: Floats, var: Floats, skewness: Floats, weights: Number = 1.0) -> float:
    """Return how skewed the difference of two means is: |γ·(1/n_t² − 1/n_c²)|/(1/n_t + 1/n_c)^1.5.

    γ is the skewness of the residuals of both arms together. With equal arms the skewness of the
    two means cancels. The result is 0 for values that are all equal. Of arms by strata (2, strata),
    which count with `weights` W, it is Σ W³|μ₃(1/n_t² − 1/n_c²)|/(Σ W² σ²(1/n_t + 1/n_c))^1.5, with
    the moments of both arms of a stratum: a thin cell by itself may have no variance. Thin cells of
    both arms do not cancel, since each is taken for surer where its mean is low.
    """
    share = n / n.sum(axis=0)
    spread = (share * var).sum(axis=0)
    most = np.max(spread)
    if not most > 0:
        return 0.0
    below, above = 1 / n
    cubes = (share * (var / most) ** 1.5 * np.where(var > 0, skewness, 0.0)).sum(axis=0)
    third = np.sum(weights**3 * np.abs(cubes * (above**2 - below**2)))
    return float(third / np.sum(weights**2 * spread / most * (above + below)) ** 1.5)


def skewness_of_arms(control: Floats, treatment: Floats) -> float:
    """Return that of the values of both arms."""
    n, _, var, skewness, *_ = np.transpose([moments_of(one) for one in (control, treatment)])
    return skewness_of_means(n, var, skewness)


def imbalance(n_control: Number, n_treatment: Number) -> Number:
    """Return what the skewness of the values is multiplied by in that of the difference of two
    means."""
    below = 1 / n_control
    above = 1 / n_treatment
    return (above**2 - below**2) / (above + below) ** 1.5


def may_be_skewed(n_control: Number, n_treatment: Number, beyond: float) -> bool:
    """Whether the skewness of the difference can be beyond this number; that of n values is at most
    √n. It is at most that of one of the strata."""
    most = np.abs(imbalance(n_control, n_treatment)) * np.sqrt(n_control + n_treatment)
    return bool(np.max(most) >= beyond)


ArmResult = TypeVar("ArmResult")


class Sample(NamedTuple):
    """Numerators of rows, their denominators (None: a plain mean), and those of covariates."""

    num: Floats
    den: Floats | None = None
    covariates: tuple[Sample, ...] = ()

    @property
    def missing(self) -> Mask:
        """The units without a value."""
        return np.isnan(self.num) if self.den is None else np.isnan(self.num) | np.isnan(self.den)

    def each(self, function: Callable[[Floats], Floats]) -> Sample:
        """A function of all numerators and denominators."""
        den = None if self.den is None else function(self.den)
        return Sample(function(self.num), den, tuple(one.each(function) for one in self.covariates))


class Arm(NamedTuple):
    """The estimate of one arm, the variance of that estimate, and the degrees of freedom of the
    variance."""

    mean: Number
    var: Number
    df: Number


def both(
    function: Callable[..., ArmResult], *pairs: tuple[Any, Any]
) -> tuple[ArmResult, ArmResult]:
    """Return a function of the control and of the treatment."""
    control, treatment = map(function, *pairs)
    return control, treatment


def linearise(num: Floats, den: Floats | None = None) -> tuple[Number, Floats]:
    """Return the mean m = Σy/n with z = y − m, or the ratio R = ΣN/ΣD with z = (N − R·D)/mean(D).

    The variance of either estimate is Σz²/(n − 1)/n (delta method for the ratio).
    """
    if den is None:
        mean = num.mean(axis=-1)
        return mean, num - mean[..., None]
    with undefined_is_nan():
        ratio = num.sum(axis=-1) / den.sum(axis=-1)
        return ratio, (num - ratio[..., None] * den) / den.mean(axis=-1)[..., None]


def arm(num: Floats, den: Floats | None = None) -> Arm:
    """Return the mean or the ratio over the last axis, with its variance and n − 1 degrees of
    freedom."""
    mean, z = linearise(num, den)
    squares = np.einsum("...i,...i->...", z, z)
    n = z.shape[-1]
    largest: Number = np.abs(num).max(axis=-1)
    with undefined_is_nan():
        if den is not None:  # in units of the estimate
            largest = largest / np.abs(den.mean(axis=-1))
        # A constant 0.1 has Σz² of 1e-34 instead of 0, which would make any difference
        # "significant".
        equal = np.sqrt(squares / n) <= MEAN_ROUNDING * largest
        var = np.where(equal, 0.0, squares / (n - 1) / n)
    return Arm(mean, var, np.float64(n - 1))


def effective_number(weights: Floats) -> float:
    """Return (Σw)²/Σw², the number of equal units that carry as much information as these unequal
    ones."""
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def with_coefficients(
    left: Sequence[Floats],
    squares: Sequence[Floats],
    largest: Sequence[Floats],
    n: Sequence[float],
    most: float,
) -> list[int]:
    """Return the columns that vary in each arm and do not follow from earlier columns, at `most` so
    many.

    A column that is constant in an arm, or that is a linear combination of others, has no
    coefficient of its own there. `left` are, of each arm, the sums of products around the mean, or
    around the means of strata, and `squares` those around the mean of a column with itself.
    """
    least = []
    for own, far, units in zip(squares, largest, n, strict=True):
        rounding = units * (MEAN_ROUNDING * far) ** 2
        least.append(np.where(own <= rounding, np.inf, 1e-10 * own))
    kept: list[int] = []
    for j in range(len(squares[0])):
        if len(kept) < most and all(
            own[j, j] > bound[j] for own, bound in zip(left, least, strict=True)
        ):
            kept.append(j)
            left = [
                own - np.outer(own[:, j], own[j]) / own[j, j] for own in left
            ]  # a step of Gaussian elimination
    return kept


# ------------------------------------------------------------------------------------------
# Treatment against control, or paired differences against 0: difference, interval, p-value.

Relative = Literal["fieller", "log"]


class Effect(NamedTuple):
    """The comparison of treatment and control; every field is a float or an array over the leading
    axes."""

    diff: Number
    se: Number
    ci_low: Number
    ci_high: Number
    rel_diff: Number
    rel_ci_low: Number
    rel_ci_high: Number
    statistic: Number
    df: Number
    p_value: Number


def effect(
    control: Arm,
    treatment: Arm,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    relative: Relative = "fieller",
    always_valid: Number | None = None,
    diff: Number | None = None,
) -> Effect:
    """Compare two independent arms by Welch's test, or by the always-valid test.

    se = √(v_c + v_t), t = diff/se, df = (v_c + v_t)²/(v_c²/df_c + v_t²/df_t), interval diff ∓
    t_q·se. The relative interval comes from `fieller` or `log_ratio`. `always_valid` is the result
    of `always_valid_multiplier`; it replaces t_q, and the caller then takes p from
    `always_valid_p`. `diff` is known better than by the means where these are huge.
    """
    diff = treatment.mean - control.mean if diff is None else diff
    var = control.var + treatment.var
    with undefined_is_nan():
        se = np.where(var > 0, np.sqrt(var), np.nan)
        statistic = diff / se
        rel_diff = np.where(control.mean > 0, treatment.mean / control.mean - 1, np.nan)
    df = _satterthwaite(control.var, control.df, treatment.var, treatment.df)
    if always_valid is None:
        quantile = t_quantile(df, alternative, confidence)
        p_value = t_p_value(statistic, df, alternative)
    else:
        quantile = always_valid
        df = p_value = np.full_like(se, np.nan)
    low, high = open_sided(diff - quantile * se, diff + quantile * se, alternative)
    if relative == "fieller":
        rel_low, rel_high = fieller(control, treatment, quantile, alternative)
    else:
        rel_low, rel_high = log_ratio(control, treatment, alternative, confidence, always_valid)
    return Effect(diff, se, low, high, rel_diff, rel_low, rel_high, statistic, df, p_value)


def fieller(
    control: Arm, treatment: Arm, quantile: Number, alternative: Alternative = "two-sided"
) -> tuple[Number, Number]:
    """Return Fieller's interval of m_t/m_c − 1: all ratios ρ that the test of m_t − ρ·m_c = 0 does
    not reject.

    With q the quantile of the test of the difference, these are the ρ between the roots of (m_c² −
    q²v_c)·ρ² − 2·m_c·m_t·ρ + (m_t² − q²v_t) = 0, here divided by m_c², so that the products of
    large values do not overflow. So the interval contains 0 exactly when the interval of the
    difference does. It is NaN unless m_c is positive and more than q standard errors away from 0.
    """
    with undefined_is_nan():
        q2 = np.square(quantile)
        a = 1 - q2 * (control.var / np.square(control.mean))
        b = treatment.mean / control.mean
        c = np.square(b) - q2 * (treatment.var / np.square(control.mean))
        root = np.sqrt(np.maximum(np.square(b) - a * c, 0.0))
        bounded = (control.mean > 0) & (a > 0) & (control.var + treatment.var > 0)
        low = np.where(bounded, (b - root) / a - 1, np.nan)
        high = np.where(bounded, (b + root) / a - 1, np.nan)
    return open_sided(low, high, alternative)


def log_ratio(
    control: Arm,
    treatment: Arm,
    alternative: Alternative,
    confidence: float,
    multiplier: Number | None,
) -> tuple[Number, Number]:
    """Return the interval (m_t/m_c)·exp(∓ t_q·√(v_c/m_c² + v_t/m_t²)) − 1.

    t_q has the degrees of freedom of the two terms under the root. The interval is NaN unless both
    means are positive.
    """

    def log_of(one: Arm) -> Arm:
        var = np.where(one.mean > 0, one.var / np.square(one.mean), np.nan)
        return one._replace(var=var)

    with undefined_is_nan():  # the mean may be so close to 0 that the ratio has no upper bound
        logs = both(log_of, (control, treatment))
        diff = np.log(treatment.mean / control.mean)
        found = effect(*logs, alternative, confidence, always_valid=multiplier, diff=diff)
        return np.expm1(found.ci_low), np.expm1(found.ci_high)


def one_sample(
    units: Arm, *, alternative: Alternative = "two-sided", confidence: float = 0.95
) -> Effect:
    """Test by Student's t that the mean of one arm (of paired differences) is 0; relative fields
    are NaN."""
    zero = np.float64(0.0)
    found = effect(Arm(zero, zero, units.df), units, alternative, confidence)
    return found._replace(df=np.where(np.isnan(found.se), np.nan, units.df))


def _satterthwaite(v1: Number, df1: Number, v2: Number, df2: Number) -> Number:
    # By the shares of the variance, whose squares do not overflow. An arm without variance has no
    # degrees of freedom and must add 0 instead of NaN.
    with undefined_is_nan():
        w1 = v1 / (v1 + v2)
        w2 = v2 / (v1 + v2)
        parts = np.where(w1 > 0, w1**2 / df1, 0.0) + np.where(w2 > 0, w2**2 / df2, 0.0)
        return np.where(parts > 0, 1 / parts, np.nan)


def open_sided(low: Number, high: Number, alternative: Alternative) -> tuple[Any, Any]:
    """Make the interval infinite on one side if the alternative is one-sided."""
    if alternative == "less":
        low = np.where(np.isnan(high), np.nan, -np.inf)
    elif alternative == "greater":
        high = np.where(np.isnan(low), np.nan, np.inf)
    return low, high
