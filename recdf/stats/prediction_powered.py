"""A mean from few exact values and many cheap ones (Angelopoulos and others 2023, PPI++).

Contract: `y` and `f` are the exact and the cheap values of n units, `rest` the cheap values of N
more. The n are a random sample of all n + N. The interval then holds however biased the cheap
values are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from .numbers import Floats, Integers, Mask, TwoNumbers
from .turned import Ends, typical_units

Tuning = Literal["open", "clipped"]


class PoweredMean(NamedTuple):
    """A mean with its variance and degrees of freedom (infinite: normal), and the weight λ of the
    cheap values; then λ times their mean, and how much of the variance does not come from Y − λf.
    """

    mean: float
    var: float
    df: float
    weight: float
    cheap_mean: float
    cheap_var: float

    def ends(self, units: float, bounds: TwoNumbers) -> Ends:
        """Return it with the ends that one more unit with both values would give it, at its worst.

        Where Y and f are between low and high, Y − λf is between low − λ·high and high − λ·low.
        """
        (low, high), weight, left = bounds, self.weight, self.mean - self.cheap_mean
        squares = max(self.var - self.cheap_var, 0.0) * units * (units - 1)
        found = []
        for bound in (low - weight * high, high - weight * low):
            more = squares + units / (units + 1) * (left - bound) ** 2
            shifted = self.mean + (bound - left) / (units + 1)
            found.append((shifted, np.sqrt(more / units / (units + 1) + self.cheap_var)))
        return Ends(self.mean, np.sqrt(self.var), self.df, *found)


class LabelledUnits(NamedTuple):
    """Values of units, whose plain means are the means over lists.

    y, f : exact and cheap values of units that have both · rest : cheap values of the lists that
    have no exact ones · share : of the lists (their weights) that have both · same : where units
    that are in f and in rest stand in each · beside : other columns, of the lists with exact values
    and of the rest · n : units with an exact value · typical : how many units of the typical weight
    those with both are · heaviest : the largest weight of all lists of a unit that has a judged
    one · heavier : whether another unit is heavier · plain : each list is a unit, and all have one
    weight
    """

    y: Floats
    f: Floats
    rest: Floats
    share: float
    same: Sequence[Integers]
    beside: Sequence[tuple[Floats, Floats]]
    n: int
    typical: float
    heaviest: float
    heavier: bool
    plain: bool


def labelled_units(
    y: Floats,
    f: Floats,
    judged: Mask,
    weights: Floats | None,
    unit: Integers | None,
    beside: Sequence[Floats] = (),
) -> LabelledUnits:
    """Return the units of lists that people judged, and of the rest. Both kinds of values may be
    undefined (NaN).

    A unit with the sum S = Σ w x of its lists and W = Σ w, over those that are defined, has the
    value m + (S − m·W)/W̄, where m = ΣS/ΣW: the mean of these values is m, and its standard error
    is that of the ratio. A judged list where y is undefined and f is not so counts in f, as such
    lists do among the rest. Lists without any value do not count.
    """
    known = ~(np.isnan(y) & np.isnan(f))
    sides = judged & known, ~judged & known
    n_defined = [np.count_nonzero(side & ~np.isnan(f)) for side in sides]
    share = n_defined[0] / max(sum(n_defined), 1)
    every = [(y, 0), (f, 0), (f, 1), *((one, side) for one in beside for side in (0, 1))]
    of = np.arange(len(y)) if unit is None else unit
    w = np.ones(len(y)) if weights is None else weights
    n = np.unique(of[sides[0] & (w > 0) & ~np.isnan(y)]).size
    plain = (
        weights is None
        and unit is None
        and not any(np.isnan(x[sides[side]]).any() for x, side in every)
    )

    def summed(x: Floats, at: Mask) -> Floats:
        return np.bincount(of[at], x[at], len(y)).astype(np.float64)

    own = [summed(w, side) > 0 for side in sides]
    found = []
    for x, side in every:
        at = sides[side] & ~np.isnan(x)
        total, sums = (summed(one, at)[own[side]] for one in (w, w * x))
        mean = sums.sum() / max(total.sum(), 1e-300)
        part = max(total.sum() / max(len(total), 1), 1e-300)
        found.append(x[at] if plain else mean + (sums - mean * total) / part)
    same = () if plain else [np.flatnonzero((own[0] & own[1])[one]) for one in own]
    more = [*zip(found[3::2], found[4::2], strict=True)]
    typical = typical_units(summed(w, sides[0])[own[0]])
    weight = summed(w, known)
    most = weight[own[0]].max(initial=0.0)
    heavier = weight.max(initial=0.0) > most * (1 + 1e-12)
    y, f, rest = found[:3]
    return LabelledUnits(y, f, rest, share, same, more, n, typical, most, heavier, plain)


def powered_mean(
    y: Floats, f: Floats, rest: Floats, tuning: Tuning = "open", same: Sequence[Integers] = ()
) -> PoweredMean:
    """θ = λ·mean_N(f) + mean_n(Y − λf), with variance λ²·var_N(f)/N + var_n(Y − λf)/n.

    λ = cov_n(Y, f)/((1 + n/N)·var_n(f)), at least 0, with Student's t of n − 2 degrees of freedom;
    "clipped" takes the variance of all n + N, cuts λ at 1 too, divides by n and N in the variances,
    and is normal, as ppi-python does. Units that are among the n and among the N (`same` has their
    places) add twice the covariance of both parts. Without a rest, λ is 0.
    """
    if not len(rest):
        f = np.zeros(len(y))
        rest = np.zeros(1)
    n = len(y)
    n_rest = len(rest)
    clipped = tuning == "clipped"
    ddof = 0 if clipped else 1
    spread = (np.concatenate([f, rest]) if clipped else f).var(ddof=1)
    shared = (y - y.mean()) @ (f - f.mean()) / (n - ddof)
    most = 1.0 if clipped else np.inf
    weight = 0.0
    if spread > 0:
        weight = np.clip(shared / ((1 + n / n_rest) * spread), 0.0, most)
    left = y - weight * f
    cheap = weight * rest.mean()
    own = left.var(ddof=ddof) / n
    more = weight**2 * rest.var(ddof=min(ddof, n_rest - 1)) / n_rest
    if len(same):
        more += (
            2
            * weight
            * ((left - left.mean())[same[0]] @ (rest - rest.mean())[same[1]])
            / (n * n_rest)
        )
    df = np.inf if clipped else n - 2
    return PoweredMean(cheap + left.mean(), max(own + more, 0.0), df, weight, cheap, more)


def sampled_mean(y: Floats, f: Floats, everything: Floats, chance: Floats) -> PoweredMean:
    """The same mean where unit i was chosen with the probability `chance`, from units whose cheap
    values are all known.

    θ = λ·mean(all f) + Σ w(Y − λf)/Σw with w = 1/chance. Where the w add up to the number of all
    units, units of the same chance are a stratum, and their variance is that around their own mean;
    elsewhere the number of units that each chance stands for is itself an estimate, and the
    variance is that around the mean of all. λ is the ratio of the same sums, and the degrees of
    freedom are Satterthwaite's over the strata, less 1.
    """
    share = 1 / chance / (1 / chance).sum()
    _, stratum, n = np.unique(chance, return_inverse=True, return_counts=True)
    if n.min() < 2 or not np.isclose((1 / chance).sum(), len(everything), rtol=1e-9):
        stratum = np.zeros(len(y), np.int64)
        n = np.array([len(y)])
    size = np.bincount(stratum, share)

    def off(x: Floats) -> Floats:
        return share * (x - (np.bincount(stratum, share * x) / size)[stratum])

    def scatter(one: Floats, other: Floats) -> Floats:
        return n / (n - 1) * np.bincount(stratum, off(one) * off(other))

    spread = scatter(f, f).sum()
    weight = max(scatter(f, y).sum() / spread, 0.0) if spread > 0 else 0.0
    left = y - weight * f
    parts, means = scatter(left, left), np.bincount(stratum, share * left) / size
    middle = share @ left
    more = weight**2 * everything.var(ddof=1) + size @ (means - middle) ** 2
    more /= len(everything)
    df = parts.sum() ** 2 / (parts**2 / (n - 1)).sum() if parts.any() else len(y) - 1
    cheap = weight * everything.mean()
    return PoweredMean(cheap + middle, more + parts.sum(), df - 1, weight, cheap, more)
