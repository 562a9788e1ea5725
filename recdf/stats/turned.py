"""Could a few units that the sample lacks turn what it says of a mean of bounded values?

A kind of unit that makes up a share p of all is absent from n units with probability (1 − p)ⁿ. So
at the level α a sample rules out no share below K/n, with K = ln(1/α), which is 3.0 at 0.05.
Student's t reads the variance of the units that were seen, and does not know of the others.

Contract: `units` is the number of units, or Σw/√(mean w²) where they have the weights w: then the
mean is moved by one more unit at a bound as one more of the typical weight moves it. The heaviest
weight that was seen is no better: it says nothing of the heaviest unseen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .numbers import Alternative, Floats, Number, TwoNumbers, scipy_module, undefined_is_nan
from .student import t_p_value, t_quantile


def missing_by_chance(alpha: float, p: Any = 1.0, p_adj: Any = 1.0) -> Any:
    """Return K, how many unseen units a sample cannot rule out. Where a test is one of several, and
    a correction makes `p_adj` of its p, it is tested at the level α·p/p_adj."""
    with undefined_is_nan():
        return -np.log(alpha) + np.log(np.fmax(np.divide(p_adj, p), 1.0))


def typical_units(weights: Floats) -> float:
    """Return how many units of the typical weight √(mean w²) have the weight of all."""
    squares = np.square(weights).mean() if len(weights) else 0.0
    return weights.sum() / np.sqrt(squares) if squares > 0 else 0.0


def turned_by(mean: Number, units: Number, low: Number, high: Number, claim: Number) -> Number:
    """Return how many more units at the bound that hurts take the mean to the claim, such as 0.

    The mean m of values in [low, high] is turned by n·(m − c)/(c − low) units at `low` if it is
    above the claim c, and by n·(c − m)/(high − c) units at `high` if it is below.
    """
    above = np.asarray(mean) > claim
    with undefined_is_nan():
        worst = np.where(above, claim - np.asarray(low), np.asarray(high) - claim)
        found = units * np.abs(np.asarray(mean) - claim) / worst
    return np.where(worst > 0, found, np.where(np.isnan(worst), np.nan, np.inf))


def turning_value(mean: Number, units: Number, claim: Number, unseen: Number) -> Number:
    """Return the value that K = `unseen` more units must have to take the mean to the claim: c −
    n·(m − c)/K.

    It is what can be said of a metric without bounds.
    """
    return claim - units * (mean - claim) / unseen


class Ends(NamedTuple):
    """A mean whose interval allows for one more unit at either bound of the values.

    Its interval is Student's, joined with the ends of the one-sided intervals, at twice the tail,
    of the sample with one more unit at the lower and at the upper bound. No verdict has to be
    withheld then, and the interval of values that were all alike has a width.
    mean, se, df : of the sample · below, above : mean and standard error with one more unit
    """

    mean: float
    se: float
    df: float
    below: TwoNumbers
    above: TwoNumbers

    def interval(self, confidence: float, alternative: Alternative = "two-sided") -> TwoNumbers:
        """Return the interval, which is open on one side if the test is one-sided."""
        tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
        own, more = (
            float(t_quantile(df, "greater", 1 - one))
            for df, one in ((self.df, tail), (self.df + 1, min(2 * tail, 0.5)))
        )
        low = min(self.mean - own * self.se, self.below[0] - more * self.below[1])
        high = max(self.mean + own * self.se, self.above[0] + more * self.above[1])
        return (
            -np.inf if alternative == "less" else low,
            np.inf if alternative == "greater" else high,
        )

    def p_value(self, alternative: Alternative = "two-sided", claim: float = 0.0) -> float:
        """Return the smallest error level at which the interval leaves out the claim."""
        if alternative == "two-sided":
            return min(1.0, 2 * min(self.p_value("greater", claim), self.p_value("less", claim)))
        one = self.below if alternative == "greater" else self.above
        with undefined_is_nan():
            own, more = (
                float(t_p_value(np.nan_to_num(np.divide(mean - claim, se)), df, alternative))
                for (mean, se), df in (((self.mean, self.se), self.df), (one, self.df + 1))
            )
        return max(own, more / 2)


def clopper_pearson(yes: int, n: int, confidence: float) -> TwoNumbers:
    """Return the exact interval of a share (Clopper and Pearson 1934)."""
    inverse = scipy_module("special").betaincinv
    tail = (1 - confidence) / 2
    low = inverse(yes, n - yes + 1, tail) if yes else 0.0
    high = inverse(yes + 1, n - yes, 1 - tail) if yes < n else 1.0
    return low, high
