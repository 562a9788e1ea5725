"""What holds at every look at growing data: intervals and p-values of a normal mixture, and bets.

Bets are on values s that are independent, none below −worst. If their mean is not above 0, fair
bets cannot make the gambler rich: the capital K exceeds 1/α with probability α at most, whatever
the distribution and however few values there are. So 1/K is a p-value (Waudby-Smith and Ramdas
2024, "Estimating means of bounded random variables by betting").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from .arms import effective_number
from .numbers import Alternative, Floats, Number, TwoNumbers
from .prediction_powered import LabelledUnits, PoweredMean, powered_mean
from .student import t_p_value, t_quantile, without_lean
from .turned import missing_by_chance, turning_value, typical_units


def always_valid_multiplier(
    n: Number,
    n_planned: float,
    confidence: float = 0.95,
    alternative: Alternative = "two-sided",
    level: Number | None = None,
) -> Number:
    """Return how many standard errors an interval reaches to its bounds if it holds at all looks
    together.

    Formula: √N·√(2A/(N²ρ²)·L) with A = Nρ² + 1, N = `n` units so far, ρ² = (−2 ln α + ln(1 − 2 ln
    α))/N*, N* = `n_planned`, and L = ln(√A/α). One-sided, L = ln(1 + √A/(2α)), and ρ² has 2α in
    place of α. With another `level` than α in L alone, the interval is that of `always_valid_p` at
    this level.
    """
    alpha = 1 - confidence
    rho2, a = _mixture(n, n_planned, alpha, alternative)
    root = np.sqrt(a) / (alpha if level is None else level)
    log = np.log(root) if alternative == "two-sided" else np.log1p(root / 2)
    return np.sqrt(2 * a / (n * rho2) * log)


def always_valid_p(
    statistic: Number,
    n: Number,
    n_planned: float,
    confidence: float = 0.95,
    alternative: Alternative = "two-sided",
) -> Number:
    """p = min(1, √A·exp(−y)) with y = ρ²N·(diff/se)²/(2A): at most α, at any look, when there is no
    effect.

    One-sided, min(1, √A/2/(exp(y) − 1)), and 1 for a difference on the other side.
    """
    rho2, a = _mixture(n, n_planned, 1 - confidence, alternative)
    y = rho2 * n * np.square(statistic) / (2 * a)
    if alternative == "two-sided":
        return np.minimum(1.0, np.sqrt(a) * np.exp(-y))
    side = statistic if alternative == "greater" else np.negative(statistic)
    with np.errstate(divide="ignore"):
        return np.where(
            side <= 0, 1.0, np.minimum(1.0, np.sqrt(a) / 2 * np.exp(-y) / -np.expm1(-y))
        )


def _mixture(
    n: Number, n_planned: float, alpha: float, alternative: Alternative
) -> tuple[Number, Number]:
    # This ρ makes the interval narrowest at the planned number of units (Waudby-Smith et al. 2023).
    # Any ρ is valid.
    alpha = alpha if alternative == "two-sided" else min(2 * alpha, 0.9)
    rho2 = (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / n_planned
    return rho2, n * rho2 + 1


# A gambler never stakes more than this share of the capital, so that no single value ruins it.
MOST_STAKED = 0.75
# Shares that are staked in parallel where the number of values is not fixed before.
STAKES = np.geomspace(0.004, 0.97, 24)
HALVINGS = 40
DOUBLINGS = 2.0**60  # steps, beyond which an end of an interval is not looked for


def bets(x: Floats, alpha: float) -> Floats:
    """Return what is staked on each of n values in [0, 1], whose order must not depend on them: √(2
    ln(1/α)/(n σ²)).

    σ² is the variance of the values before this one and of a prior one of ¼. A number n that was
    fixed before, and not the values, makes the bets large enough to win by then.
    """
    i = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (i + 1)
    var = np.full(len(x), 0.25)
    var[1:] = ((0.25 + np.cumsum((x - mean) ** 2)) / (i + 1))[:-1]
    return np.sqrt(-2 * np.log(alpha) / (var * len(x)))


def log_capital(s: Floats, worst: float, staked: Floats | None) -> float:
    """Return ln K with K = Π(1 + min(λ_i, ¾/worst)·s_i) for these bets λ.

    Without them it is one at which one may look after each value: K is the mean over fixed shares f
    of Π(1 + f·s_i/worst). It does not depend on the order of the values, so that nobody needs to
    know in which order they came.
    """
    if worst <= 0:  # nothing can be lost
        return math.inf if s.any() else 0.0
    if staked is not None:
        return np.log1p(np.minimum(staked, MOST_STAKED / worst) * s).sum()
    logs = [np.log1p(share / worst * s).sum() for share in STAKES]
    return np.logaddexp.reduce(logs) - np.log(len(logs))


def last_shown(shown: Callable[[float], bool], start: float, step: float, least: float) -> float:
    """Return the largest number for which `shown` holds, which holds below it; look from `start`
    down to `least`."""
    high = start
    low = max(start - step, least)
    farthest = DOUBLINGS * step
    while low > least and not shown(low):
        if step > farthest:
            return least
        high = low
        step = 2 * step
        low = max(high - step, least)
    for _ in range(HALVINGS if math.isfinite(low) else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if shown(middle) else (low, middle)
    return low


# ------------------------------------------------------------------------------------------
# Is a change at least as good as the one that is allowed? Paired units of two sides in, p-values
# and bounds out.
#
# Contract: a change u counts what is gained, so that a loss is below 0. It is in units of the
# metric, or relative to the mean of the baseline. A unit has the slack s(u) = gain − u·scale; its
# mean is above 0 exactly where the true change is above u. Which test of that mean is used follows
# from the data, once, at the change that is allowed.

Bound = Literal["t", "betting", "anytime", ""]

# The t test reads the variance of the units that were seen. Where one unit more that loses all
# there is to lose would change the root of their sum of squares by more than this share, rare
# losses that the sample lacks decide. A mean that then is 1.6 standard errors from the change that
# is allowed is not turned by three more such units either.
MOST_OF_ONE_UNIT = 0.5
MOST_OF_ONE_LIST = 2 / 3  # the same where a judge knows more; at 1, 8 % passed at n = 100
# With unequal weights, or numbers of lists, the few heaviest units decide the error of t: it needs
# a skewness of at most this share of √n, and weights that are worth this many equal ones.
MOST_SKEWED, LEAST_EQUAL_UNITS = 0.14, 30
PROVEN_LATER = 2.0  # what a gambler has lost, in ln K, before the bets fit the data


def _spread_of(z: Floats, loss: float) -> TwoNumbers:
    root = math.sqrt(z @ z)
    if loss == 0 or root <= 1e-9 * loss:  # values that do not vary leave nothing but rounding
        return 0.0, 0.0
    return root / loss, ((z / root) ** 3).sum() / 6


@dataclass(frozen=True)
class Change:
    """Units of a candidate and a baseline.

    gain : sums per unit of w·(candidate − baseline), or of the negative where smaller is better ·
    scale : what a change of 1 adds to each: Σ w, or Σ w·baseline for relative changes · weight : Σ
    w · reach : largest difference between two values of the metric, of those that were seen if it
    has no bounds · values : smallest and largest value of the metric, None if it has no such bounds
    · smaller : smaller is better · allowed : the change that is allowed · looks : whether the test
    may be made again as units arrive.
    """

    gain: Floats
    scale: Floats
    weight: Floats
    reach: float
    values: TwoNumbers | None
    smaller: bool
    relative: bool
    allowed: float
    alpha: float
    looks: bool = False

    @property
    def n(self) -> int:
        return len(self.gain)

    @property
    def df(self) -> int:
        return self.n - 1

    @cached_property
    def _moments(self) -> tuple[float, ...]:
        """Mean gain and mean scale, and the variances of both and their covariance as estimates."""
        total = self.weight.sum()
        if not total:
            return (math.nan,) * 5
        parts = np.array([self.gain, self.scale])
        means = parts.sum(axis=1) / total
        z = parts - means[:, None] * self.weight
        (var_gain, cov), (_, var_scale) = z @ z.T * (self.n / max(self.n - 1, 1) / total**2)
        return (*means, var_gain, var_scale, cov)

    def _slack(self, change: float) -> TwoNumbers:
        """Mean slack at a change, and its standard error."""
        gain, scale, var_gain, var_scale, cov = self._moments
        return gain - change * scale, math.sqrt(
            max(var_gain - 2 * change * cov + change * change * var_scale, 0)
        )

    @property
    def point(self) -> float:
        """The change that was observed; NaN if it is relative to a mean that is not above 0."""
        gain, scale = self._moments[:2]
        return gain / scale if scale > 0 else math.nan

    @cached_property
    def _spread(self) -> TwoNumbers:
        """Root of the summed squares of the slacks in terms of the largest loss of a unit, and
        their skewness/(6√n)."""
        gain, scale = self._moments[:2]
        z = self.gain - gain * self.weight - self.allowed * (self.scale - scale * self.weight)
        return _spread_of(z, self.reach * math.sqrt(self.weight @ self.weight / max(self.n, 1)))

    @property
    def _is_even(self) -> bool:
        """Whether all units weigh the same, or none of them weighs so much that a few decide."""
        return not np.ptp(self.weight) > 0 or (
            6 * abs(self._spread[1]) <= MOST_SKEWED
            and effective_number(self.weight) >= LEAST_EQUAL_UNITS
        )

    @cached_property
    def bound(self) -> Bound:
        """Which test holds for these units; empty if none does."""
        if not self.looks and self._spread[0] * MOST_OF_ONE_UNIT >= 1 and self._is_even:
            return "t"
        return "" if self.values is None else "anytime" if self.looks else "betting"

    def turning(self) -> float:
        """Return the gain per list of K more units that would take the change to the allowed one,
        at the mean scale: what is said of a metric without bounds."""
        if not self.n:
            return math.nan
        slack = self._slack(self.allowed)[0]
        units = typical_units(self.weight)
        value = turning_value(slack, units, 0.0, missing_by_chance(self.alpha))
        return float(value) + self.allowed * self._moments[1]

    def outweighs(self, unseen: float, *, better: bool) -> bool:
        """Whether the claim that the change is above the allowed one (`better`) or below it stands
        if the share `unseen` of the weight is of units heavier than any here, at their worst."""
        slack, (low, high) = self._slack(self.allowed)[0], self._range(self.allowed)
        left, worst = (slack, -low) if better else (-slack, high)
        return (1 - unseen) * left >= unseen * worst

    @cached_property
    def _shuffled(self) -> tuple[Floats, Floats, Floats]:
        """Gains, scales and weights per list, in an order that the values have no part in; weights
        at most 1."""
        order = np.random.default_rng(0).permutation(self.n)
        weight = self.weight[order]
        return self.gain[order] / weight, self.scale[order] / weight, weight / weight.max()

    def _range(self, change: float) -> TwoNumbers:
        """Smallest and largest slack that a list can have."""
        sign = -1 if self.smaller else 1
        ends = self.values or (math.nan, math.nan)
        found = [
            sign * (own - base) - change * (base if self.relative else 1)
            for own in ends
            for base in ends
        ]
        return min(found), max(found)

    @cached_property
    def _bets(self) -> Floats:
        (gain, scale, _), (low, high) = self._shuffled, self._range(self.allowed)
        return bets(
            np.clip((gain - self.allowed * scale - low) / (high - low), 0, 1), self.alpha
        ) / (high - low)

    def p_value(self, change: float, *, better: bool) -> float:
        """Return p of the claim that the true change is above (`better`) or below this one.

        T of the mean slack loses what skewness adds to it in the claim that it favours.
        """
        if not self.bound or not self.n:
            return math.nan
        if self.bound == "t":
            mean, se = self._slack(change)
            t = (mean / se if se > 0 else math.copysign(math.inf, mean)) * (1 if better else -1)
            lean = self._spread[1] * (-1 if better else 1)
            t = without_lean(t, lean) if lean > 0 else t
            return float(t_p_value(t, self.df, "greater"))
        gains, scales, weight = self._shuffled
        low, high = self._range(change)
        s = np.clip(gains - change * scales, low, high)  # rounding may put a value outside
        s, worst = (s, -low) if better else (-s, high)
        won = log_capital(s * weight, worst, None if self.looks else self._bets)
        return math.exp(-max(won, 0.0))

    def ends(self) -> TwoNumbers:
        """Return the lower and the upper bound of the change, each one-sided at 1 − α."""
        point = self.point
        scale = self._moments[1]
        if not self.bound or math.isnan(point):
            return math.nan, math.nan
        step = max(self._slack(point)[1], self.reach / self.n) / scale

        def end(sign: int) -> float:
            floor = (
                -1.0 if self.relative and (sign > 0) != self.smaller else -math.inf
            )  # nothing loses more than all
            shown = lambda u: self.p_value(sign * u, better=sign > 0) <= self.alpha  # noqa: E731
            return last_shown(shown, sign * point, step, floor)

        return end(1), -end(-1)

    def needed(self) -> float:
        """Return about how many units would pass in 80 % of the runs if the change is the observed
        one; NaN if none."""
        margin, se = self._slack(self.allowed)
        if not margin > 0 or not self.bound:
            return math.nan
        if self.bound == "t":
            far = sum(t_quantile(self.n - 1, "greater", chance) for chance in (1 - self.alpha, 0.8))
            return math.ceil(
                self.n * max(se * far / margin, 1 / (MOST_OF_ONE_UNIT * self._spread[0])) ** 2
            )
        (gains, scales, weight), (low, _) = self._shuffled, self._range(self.allowed)
        won = weight * np.maximum(gains - self.allowed * scales, low) / -low
        growth = max(np.log1p(stake * won).mean() for stake in STAKES)
        return math.ceil((PROVEN_LATER - math.log(self.alpha)) / growth) if growth > 0 else math.nan


@dataclass(frozen=True)
class PoweredChange(Change):
    """The same from few units that people judged and many cheap ones, with the gains and scales
    under both labels.

    Its test is t where that of people alone is t, and where one unit more that loses all, to the
    judge's surprise, would move the change by no more than two thirds of its standard error. A good
    judge makes that small, and some err rarely.
    """

    gains: LabelledUnits = field(kw_only=True)
    scales: LabelledUnits = field(kw_only=True)

    @property
    def df(self) -> int:
        return self.n - 2

    def _powered(self, change: float) -> tuple[PoweredMean, LabelledUnits]:
        y, f, rest = (
            gain - change * scale
            for gain, scale in zip(self.gains[:3], self.scales[:3], strict=True)
        )
        units = self.gains._replace(y=y, f=f, rest=rest)
        return powered_mean(y, f, rest, same=units.same), units

    def _slack(self, change: float) -> TwoNumbers:
        found, _ = self._powered(change)
        return found.mean, math.sqrt(found.var)

    @cached_property
    def _moments(self) -> tuple[float, ...]:
        both = self.gains, self.scales
        return tuple(powered_mean(*units[:3], same=units.same).mean for units in both)

    @cached_property
    def _spread(self) -> TwoNumbers:
        found, units = self._powered(self.allowed)
        parts = units.y - found.weight * units.f, found.weight * units.rest
        z = np.concatenate([(one - one.mean()) / len(one) for one in parts if len(one)])
        loss = self.reach * math.sqrt(self.weight @ self.weight / self.n) / self.weight.sum()
        return _spread_of(z, loss)

    @cached_property
    def bound(self) -> Bound:
        return "t" if self._spread[0] * MOST_OF_ONE_LIST >= 1 and self._is_even else ""

    def needed(self) -> float:
        return math.nan
