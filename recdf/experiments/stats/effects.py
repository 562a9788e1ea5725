"""Treatment against control, or paired differences against 0: difference, interval, p-value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arms import Arm
from .numbers import Alternative, Number
from .student import t_p_value, t_quantile

__all__: list[str] = []


class Effect(NamedTuple):
    """Treatment against control; every field is a float or an array over the leading axes."""

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
    *,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    always_valid: Number | None = None,
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


def one_sample(units: Arm, *, alternative: Alternative = "two-sided", confidence: float = 0.95) -> Effect:
    """t test that the mean of one arm (of paired differences) is 0; relative fields are NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.where(units.var > 0, np.sqrt(units.var), np.nan)
        statistic = units.mean / se
    df = np.where(np.isnan(se), np.nan, units.df)
    low, high = _bounds(units.mean, t_quantile(df, alternative, confidence) * se, alternative)
    nan = np.full_like(se, np.nan)
    return Effect(units.mean, se, low, high, nan, nan, nan, statistic, df, t_p_value(statistic, df, alternative))


def _satterthwaite(v1: Number, df1: Number, v2: Number, df2: Number) -> Number:
    # An arm without variance has no df of its own and must add 0, not NaN.
    parts = np.where(v1 > 0, v1**2 / df1, 0.0) + np.where(v2 > 0, v2**2 / df2, 0.0)
    return np.where(parts > 0, (v1 + v2) ** 2 / parts, np.nan)


def _bounds(centre: Number, half: Number, alternative: Alternative) -> tuple[Number, Number]:
    low = centre - half if alternative != "less" else np.where(np.isnan(half), np.nan, -np.inf)
    high = centre + half if alternative != "greater" else np.where(np.isnan(half), np.nan, np.inf)
    return low, high
