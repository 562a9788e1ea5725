"""Treatment against control, or paired differences against 0: difference, interval, p-value."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from .arms import Arm
from .numbers import Alternative, Number, undefined_is_nan
from .student import t_p_value, t_quantile

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
    low, high = _bounds(diff, quantile * se, alternative)
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
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
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
    multiplier: Number | None = None,
) -> tuple[Number, Number]:
    """Return the interval (m_t/m_c)·exp(∓ t_q·√(v_c/m_c² + v_t/m_t²)) − 1.

    t_q has the degrees of freedom of the two terms under the root. The interval is NaN unless both
    means are positive.
    """
    with undefined_is_nan():
        positive = (control.mean > 0) & (treatment.mean > 0) & (control.var + treatment.var > 0)
        rel_c, rel_t = (
            control.var / np.square(control.mean),
            treatment.var / np.square(treatment.mean),
        )
        log = np.log(np.where(positive, treatment.mean / control.mean, np.nan))
        half = np.sqrt(rel_c + rel_t)
    if multiplier is None:
        multiplier = t_quantile(
            _satterthwaite(rel_c, control.df, rel_t, treatment.df), alternative, confidence
        )
    low, high = _bounds(log, multiplier * half, alternative)
    with np.errstate(
        over="ignore"
    ):  # the mean of an arm may be so close to 0 that the ratio has no upper bound
        return np.expm1(low), np.expm1(high)


def one_sample(
    units: Arm, *, alternative: Alternative = "two-sided", confidence: float = 0.95
) -> Effect:
    """Test by Student's t that the mean of one arm (of paired differences) is 0; relative fields
    are NaN."""
    with undefined_is_nan():
        se = np.where(units.var > 0, np.sqrt(units.var), np.nan)
        statistic = units.mean / se
    df = np.where(np.isnan(se), np.nan, units.df)
    low, high = _bounds(units.mean, t_quantile(df, alternative, confidence) * se, alternative)
    nan = np.full_like(se, np.nan)
    return Effect(
        units.mean,
        se,
        low,
        high,
        nan,
        nan,
        nan,
        statistic,
        df,
        t_p_value(statistic, df, alternative),
    )


def _satterthwaite(v1: Number, df1: Number, v2: Number, df2: Number) -> Number:
    # By the shares of the variance, whose squares do not overflow. An arm without variance has no
    # degrees of freedom and must add 0 instead of NaN.
    with undefined_is_nan():
        w1, w2 = v1 / (v1 + v2), v2 / (v1 + v2)
        parts = np.where(w1 > 0, w1**2 / df1, 0.0) + np.where(w2 > 0, w2**2 / df2, 0.0)
        return np.asarray(np.where(parts > 0, 1 / parts, np.nan))


def _bounds(centre: Number, half: Number, alternative: Alternative) -> tuple[Number, Number]:
    return open_sided(centre - half, centre + half, alternative)


def open_sided(low: Number, high: Number, alternative: Alternative) -> tuple[Any, Any]:
    """Make the interval infinite on one side if the alternative is one-sided."""
    if alternative == "less":
        low = np.where(np.isnan(high), np.nan, -np.inf)
    elif alternative == "greater":
        high = np.where(np.isnan(low), np.nan, np.inf)
    return low, high
