"""The difference of a quantile between two arms, by their order statistics; no density is
estimated.

Contract: in an arm of n rows, N(q) rows are at or below q, and m = n/deff of them count. That q is
the quantile of order p costs

    d(q)² = 2 m KL(F ‖ p),  KL(F ‖ p) = F ln(F/p) + (1 − F) ln((1 − F)/(1 − p)),

with F the point of [(N(q−) + ½)/n, (N(q) − ½)/n] that is nearest to p (whole steps, without the ½,
where m·min(p, 1 − p) < 20). A difference D costs T(D) = min over q of d_A(q)² + d_B(q + D)², about
χ²(1) at the true D. The test is of T(0), and the interval is {D: T(D) ≤ c²}, so that it leaves out
0 exactly where the test rejects. An order statistic that does not exist makes its end infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .numbers import Floats, TwoNumbers, undefined_is_nan

THICK_SIDE = (
    20.0  # rows on the thinner side of the quantile from which a value stands inside its step
)
FARTHEST = 12.0  # costs beyond 12 standard errors are not told apart: p < 1e-32
WINDOW, FEW_STEPS, MOST = 20, 5, 0.5  # see `QuantileArm.steps`

# Values, from the quantile outwards, and the root of what each costs.
Way = tuple[Floats, Floats]


class QuantileArm(NamedTuple):
    """A quantile of an arm, the ways down and up from it, rows over rows that count, and degrees of
    freedom."""

    quantile: float
    n: int
    design_effect: float
    df: float
    down: Way
    up: Way

    @property
    def var(self) -> float:
        """Variance of the share at or below the quantile, in units of p(1 − p)."""
        return self.design_effect / self.n

    def interval(self, c: float) -> TwoNumbers:
        """Return the values that cost at most c²."""
        low, high = (x[np.searchsorted(d, c, "right") - 1] for x, d in (self.down, self.up))
        return low, high

    def steps(self, c: float) -> tuple[bool, TwoNumbers | None]:
        """Return whether few values make up the interval of this arm, and the gap that is most of
        it."""
        near = np.sort(np.concatenate([x[d <= c] for x, d in (self.down, self.up)]))
        near = near[np.isfinite(near)]
        step = np.diff(near)
        if len(near) <= WINDOW or np.count_nonzero(step) < FEW_STEPS:
            return len(near) > WINDOW, None
        i = np.argmax(step)
        wide = step[i] > MOST * (near[-1] - near[0])
        return False, (near[i], near[i + 1]) if wide else None


def quantile_arm(values: Floats, p: float, unit: Any = None) -> QuantileArm:
    """Return the quantile of order p, of at least one row; `unit` has the code of the cluster of
    each row."""
    n = len(values)
    at = (n - 1) * p
    k = math.floor(at)
    ordered = np.sort(values)
    quantile = ordered[k] + (at - k) * (ordered[min(k + 1, n - 1)] - ordered[k])
    effect, n_units = (1.0, n) if unit is None else design_effect(values, unit, quantile)
    m = n / effect
    wide = n * (FARTHEST * math.sqrt(p * (1 - p) / m) + FARTHEST**2 / m) + 2
    first = max(0, math.floor(n * p - wide))
    end = min(n, math.ceil(n * p + wide))
    near = ordered[first:end]
    inside = 0.5 if m * min(p, 1 - p) >= THICK_SIDE else 1.0
    down = _way(near, first, n, p, m, inside)
    up = _way(-near[::-1], n - end, n, 1 - p, m, inside)
    return QuantileArm(quantile, n, effect, n_units - 1.0, down, (-up[0], up[1]))


def design_effect(values: Floats, unit: Any, q: float) -> tuple[float, int]:
    """Return the variance of the share at or below q by clusters over that by rows, at least 1, and
    the clusters.

    Where many values are equal to q, the share below it may vary more.
    """
    if unit.max(initial=0) > 4 * len(unit):
        unit = np.unique(unit, return_inverse=True)[1]
    size = np.bincount(unit)
    n = len(values)
    n_units = np.count_nonzero(size)
    found = [1.0]
    for inside in (values <= q, values < q):
        share = inside.mean()
        if 0 < share < 1 and n_units > 1:
            off = np.bincount(unit, inside, len(size)) - share * size
            by_rows = share * (1 - share) * n
            found.append(off @ off * n_units / (n_units - 1) / by_rows)
    return (max(found) if len(found) > 1 else n / n_units), int(n_units)


def _way(near: Floats, first: int, n: int, p: float, m: float, inside: float) -> Way:
    """Return the sorted values, of ranks `first` and more, from the quantile downwards, with their
    costs."""
    top = min(max(math.ceil(n * p - inside - 1e-9), 0), n - 1)
    rank = np.arange(top, first - 1, -1)
    share = np.minimum((rank + inside) / n, p)
    x = near[rank - first]
    if first == 0:  # below the smallest value there may be any
        share = np.append(share, 0.0)
        x = np.append(x, -np.inf)
    with undefined_is_nan():
        kl = np.where(share > 0, share * np.log(share / p), 0)
        kl += (1 - share) * np.log((1 - share) / (1 - p))
    return x, np.sqrt(2 * m * np.maximum(kl, 0))


def degrees_of_freedom(control: QuantileArm, treatment: QuantileArm) -> float:
    """Return Satterthwaite's degrees of freedom of a difference."""
    a = control.var
    b = treatment.var
    return (a + b) ** 2 / (a * a / control.df + b * b / treatment.df)


def signed_root(control: QuantileArm, treatment: QuantileArm) -> float:
    """Return the root of T(0), above 0 where the quantile of the treatment is the larger."""
    larger = _least(treatment.down, control.up)
    smaller = _least(control.down, treatment.up)
    return math.sqrt(larger) if larger > smaller else -math.sqrt(smaller)


def order_interval(
    control: QuantileArm,
    treatment: QuantileArm,
    c: float,
    scale: Callable[[Floats], Floats] = np.asarray,
) -> TwoNumbers:
    """Return the ends of {D: T(D) ≤ c²}, also of differences on another scale, as of logarithms."""
    return (
        -_widest(treatment.down, control.up, c, scale),
        _widest(control.down, treatment.up, c, scale),
    )


def _widest(down: Way, up: Way, c: float, scale: Callable[[Floats], Floats]) -> float:
    """Return the largest difference up − down that costs at most c²."""
    (x, d), (y, e) = down, up
    near = d <= c
    k = np.searchsorted(e, np.sqrt(np.maximum(c * c - d[near] ** 2, 0)) + 1e-12, "right") - 1
    with undefined_is_nan():
        return (scale(y)[k] - scale(x[near])).max()


def _least(down: Way, up: Way) -> float:
    """Return the least cost of one value for the arm that must come down to it and the one that
    must go up."""
    if up[0][0] >= down[0][0]:
        return 0.0
    found = FARTHEST**2
    for (x, d), (y, e), sign in ((down, up, 1), (up, down, -1)):
        i = np.searchsorted(sign * y, sign * x)  # the first value that meets or passes x
        meets = i < len(y)
        found = min(found, np.min(d[meets] ** 2 + e[i[meets]] ** 2, initial=found))
    return found
