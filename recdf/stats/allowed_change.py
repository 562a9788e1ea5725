"""Is a change at least as good as the one that is allowed? Paired units of two sides in, p-values and bounds out.

Contract: a change u counts what is gained, so that a loss is below 0. It is in units of the metric, or relative to the
mean of the baseline. A unit has the slack s(u) = gain − u·scale; its mean is above 0 exactly where the true change is
above u. Which test of that mean is used follows from the data, once, at the change that is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from .betting import STAKES, bets, last_shown, log_capital, log_capital_anytime
from .moments import moments_of
from .numbers import Floats
from .student import t_p_value, t_quantile

Bound = Literal["t", "betting", "anytime", ""]

# Where so many units differ, and the skewness of n units is at most so many times √n, the t test errs in up to 6 % of
# the runs at the boundary, and in up to 5.1 % with Johnson's correction; beyond, t errs in up to 40 %.
MANY_DIFFER = 50
LITTLE_SKEWED = 0.14
NO_DIFFERENCE = 1e-12  # differences up to this size are rounding
PROVEN_LATER = 2.0  # what a gambler has lost, in ln K, before the bets fit the data


@dataclass(frozen=True)
class Change:
    """Units of a candidate and a baseline.

    gain : sums per unit of w·(candidate − baseline), or of the negative where smaller is better · scale : what a change
    of 1 adds to each: Σ w, or Σ w·baseline for relative changes · weight : Σ w, None where it is 1 for all · values :
    smallest and largest value of the metric, None if a metric has no such bounds · smaller : smaller is better ·
    allowed : the change that is allowed · looks : whether the test may be made again as units arrive.
    """

    gain: Floats
    scale: Floats
    weight: Floats | None
    values: tuple[float, float] | None
    smaller: bool
    relative: bool
    allowed: float
    alpha: float
    looks: bool = False

    @property
    def n(self) -> int:
        return len(self.gain)

    @cached_property
    def n_differ(self) -> int:
        return int(np.count_nonzero(np.abs(self.gain) > NO_DIFFERENCE))

    @cached_property
    def _moments(self) -> tuple[float, float, float, float, float]:
        """Mean gain and mean scale, and the variances of both and their covariance as estimates."""
        if not self.n:
            return math.nan, math.nan, math.nan, math.nan, math.nan
        weight = np.ones(self.n) if self.weight is None else self.weight
        total = float(weight.sum())
        means = float(self.gain.sum()) / total, float(self.scale.sum()) / total
        z = [part - mean * weight for part, mean in zip((self.gain, self.scale), means, strict=True)]
        factor = self.n / max(self.n - 1, 1) / total**2
        return *means, factor * float(z[0] @ z[0]), factor * float(z[1] @ z[1]), factor * float(z[0] @ z[1])

    @property
    def point(self) -> float:
        """The change that was observed; NaN if it is relative to a mean that is not above 0."""
        gain, scale, *_ = self._moments
        return gain / scale if scale > 0 else math.nan

    @cached_property
    def _skewness(self) -> tuple[float, float]:
        """Skewness of the gains and of the slacks over all units; NaN where all are alike."""
        weight = 1.0 if self.weight is None else self.weight
        gain, scale, *_ = self._moments
        centred = self.gain - gain * weight
        found = [moments_of(one) for one in (centred, centred - self.allowed * (self.scale - scale * weight))]
        skewness = [float(one.skewness) if float(one.var) > 0 else math.nan for one in found]
        return skewness[0], skewness[1]

    def _lean(self, better: bool) -> float:
        """What skewness takes from T in the claim that it favours: T' = T − lean·(1 + 2T²) (Johnson 1978).

        Rare large losses are missing in some samples, which then look better and surer than they are.
        """
        return max(0.0, self._skewness[1] * (-1 if better else 1)) / (6 * math.sqrt(self.n))

    @cached_property
    def bound(self) -> Bound:
        """Which test holds for these units; empty if none does."""
        if self.looks:
            return "" if self.values is None else "anytime"
        skewed = LITTLE_SKEWED * math.sqrt(self.n)
        if self.n_differ >= MANY_DIFFER and all(abs(one) <= skewed for one in self._skewness):
            return "t"
        return "" if self.values is None else "betting"

    @cached_property
    def _shuffled(self) -> tuple[Floats, Floats, Floats | None]:
        """Gains, scales and weights per list, in an order that the values have no part in; weights at most 1."""
        order = np.random.default_rng(0).permutation(self.n)
        if self.weight is None:
            return self.gain[order], self.scale[order], None
        weight = self.weight[order]
        return self.gain[order] / weight, self.scale[order] / weight, weight / weight.max()

    def _range(self, change: float) -> tuple[float, float]:
        """Smallest and largest slack that a list can have."""
        sign, ends = -1 if self.smaller else 1, self.values or (math.nan, math.nan)
        found = [sign * (own - base) - change * (base if self.relative else 1) for own in ends for base in ends]
        return min(found), max(found)

    @cached_property
    def _bets(self) -> Floats:
        (gain, scale, _), (low, high) = self._shuffled, self._range(self.allowed)
        return bets(np.clip((gain - self.allowed * scale - low) / (high - low), 0, 1), self.alpha) / (high - low)

    def p_value(self, change: float, *, better: bool) -> float:
        """Return p of the claim that the true change is above (`better`) or below this one."""
        if self.bound == "t":
            gain, scale, var_gain, var_scale, cov = self._moments
            se = math.sqrt(max(var_gain - 2 * change * cov + change * change * var_scale, 0))
            t = (gain - change * scale) / se if se > 0 else math.copysign(math.inf, gain - change * scale)
            lean = self._lean(better)
            t = t if better else -t
            t = min(t, 1 / (4 * lean)) if lean > 0 else t
            return float(t_p_value(t - lean * (1 + 2 * t * t) if lean > 0 else t, self.n - 1, "greater"))
        if not self.bound or not self.n:
            return math.nan
        gains, scales, weight = self._shuffled
        low, high = self._range(change)
        s = np.clip(gains - change * scales, low, high)  # rounding may put a value outside
        s, worst = (s, -low) if better else (-s, high)
        won = (log_capital_anytime(s, worst, weight) if self.bound == "anytime"
               else log_capital(s, worst, self._bets, weight))  # fmt: skip
        return math.exp(-max(won, 0.0))

    def ends(self) -> tuple[float, float]:
        """Return the lower and the upper bound of the change, each one-sided at 1 − α."""
        gain, scale, var_gain, var_scale, cov = self._moments
        if not self.bound or not scale > 0:
            return math.nan, math.nan
        if self.bound == "t":  # one root of each T(u) = ±q (Fieller 1954)
            return self._root(better=True), self._root(better=False)
        point, (low, high) = gain / scale, self._range(self.allowed)
        step = math.sqrt(max(var_gain - 2 * point * cov + point**2 * var_scale, (high - low) ** 2 / self.n**2)) / scale

        def end(sign: int) -> float:
            least = -1.0 if self.relative and (sign > 0) != self.smaller else -math.inf  # nothing loses more than all
            shown = lambda u: self.p_value(sign * u, better=sign > 0) <= self.alpha  # noqa: E731
            return last_shown(shown, sign * point, step, least)

        return end(1), -end(-1)

    def _root(self, *, better: bool) -> float:
        """Return the change at which T', corrected for the skewness, is at its quantile."""
        gain, scale, var_gain, var_scale, cov = self._moments
        q, lean = float(t_quantile(self.n - 1, "greater", 1 - self.alpha)), self._lean(better)
        if lean > 0:
            left = 1 - 8 * lean * (q + lean)
            q = 2 * (q + lean) / (1 + math.sqrt(left)) if left > 0 else math.inf
        a, b, c = scale**2 - q * q * var_scale, gain * scale - q * q * cov, gain**2 - q * q * var_gain
        sign = -1 if better else 1
        if not a > 0 or math.isinf(q):
            return sign * math.inf
        return (b + sign * math.sqrt(max(b * b - a * c, 0))) / a

    def needed(self) -> float:
        """Return about how many units would pass in 80 % of the runs if the change is the observed one; NaN if none."""
        gain, scale, var_gain, var_scale, cov = self._moments
        margin = gain - self.allowed * scale
        if not margin > 0 or not self.bound:
            return math.nan
        if self.bound == "t":
            var = var_gain - 2 * self.allowed * cov + self.allowed**2 * var_scale
            far = float(t_quantile(self.n - 1, "greater", 1 - self.alpha) + t_quantile(self.n - 1, "greater", 0.8))
            return math.ceil(self.n * max(var * (far / margin) ** 2, MANY_DIFFER / self.n_differ))
        (gains, scales, weight), (low, _) = self._shuffled, self._range(self.allowed)
        won = (1.0 if weight is None else weight) * np.maximum(gains - self.allowed * scales, low) / -low
        growth = max(float(np.log1p(stake * won).mean()) for stake in STAKES)
        return math.ceil((PROVEN_LATER - math.log(self.alpha)) / growth) if growth > 0 else math.nan
