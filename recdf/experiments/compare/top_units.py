"""Does a comparison rest on a few units? Its difference without them, and whether the verdict
turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...stats.arms import Arm, Sample, Strata, linearise
from ...stats.student import t_p_value
from ..estimates import ArmsEstimate
from ..experiment_columns import Codes, Floats
from ..settings import Settings
from ..units import Units
from .two_sample import TINY, Row, but

# Units that are left out: ten, or of fewer than 200 units 5 %, but at least one.
MOST_TOP_UNITS, OF_UNITS = 10, 20
# If a test rejects with the top units, they decide if the rest is not significant and has less than
# this share of the difference: a broad effect that is barely significant loses less. Of n units
# fewer than MANY, the top ones are a large part of any effect, and the share is n/MANY of it. If it
# does not reject, they hide what is significant at HIDDEN.
KEPT_SHARE, MANY_UNITS, HIDDEN = 0.5, 1000, 0.001
# Top units that move the difference by fewer standard errors than this cannot turn a verdict.
MOVED = 0.25
# Rows of a block whose extremes are taken, to find the largest values without sorting all.
_BLOCK = 1024
# Distances that differ relatively by less are the same.
_TIED = 1e-12


class ArmSums(NamedTuple):
    """Sums of numerators and denominators of an arm in each of its strata, those of its top units,
    what to leave out.

    `out` is the part of each top unit that is left out, and `of` its stratum; `weights` are those
    of the strata.
    """

    num: Floats
    den: Floats
    top_num: Floats
    top_den: Floats | float
    out: Floats
    of: Codes
    weights: Floats

    def means(self, share: float = 1.0) -> tuple[Floats, Floats]:
        """Means or ratios in the strata without this share of what is left out, and their
        denominators."""
        less = [
            np.bincount(self.of, share * self.out * top, len(self.weights))
            for top in (self.top_num, self.top_den)
        ]
        total = self.den - less[1]
        return np.divide(
            self.num - less[0], total, out=np.full(len(total), np.nan), where=total > 0
        ), total

    def mean(self, share: float = 1.0) -> float:
        return float((self.weights * self.means(share)[0])[self.weights > 0].sum())


def moved_by(control: ArmSums, treatment: ArmSums) -> float:
    """By how much the difference moves when the top units are left out; NaN where the others have
    no denominator."""
    return (treatment.mean() - treatment.mean(0.0)) - (control.mean() - control.mean(0.0))


def n_top(n: int) -> int:
    """How many of n units are left out."""
    return min(MOST_TOP_UNITS, max(1, n // OF_UNITS))


class _ArmRows(NamedTuple):
    """What every unit of an arm adds to numerator and denominator (1 if None) of its stratum."""

    num: Floats
    den: Floats | None
    strata: Strata

    @classmethod
    def of(cls, side: Sample, whole: Sample, values: Floats, how: str) -> _ArmRows:
        """Ratios are recomputed. Adjusted means move as the values do that are compared, within
        their strata."""
        if side.strata is not None and side.strata.cluster is None and how:
            cell = side.strata.of
            scale = (
                np.where(side.strata.weights > 0, side.strata.weights, 1.0)
                * len(cell)
                / side.strata.sums()
            )
            return cls(values / scale[cell], None, side.strata)
        plain = Strata(np.zeros(len(values), np.int64), np.ones(1))
        return (
            cls(values, None, plain)
            if how or whole.den is None
            else cls(whole.num, whole.den, plain)
        )

    def sums(self, top: Codes, out: Floats) -> ArmSums:
        strata, den = self.strata, 1.0 if self.den is None else self.den[top]
        return ArmSums(
            strata.sums(self.num),
            strata.sums(self.den),
            self.num[top],
            den,
            out,
            strata.of[top],
            strata.weights,
        )

    def var_without(self, sums: ArmSums, top: Codes, share: float) -> float:
        """Variance of the mean without this share of what is left out of the top units."""
        strata, (means, total) = self.strata, sums.means(share)
        z = self.num - means[strata.of] * (1.0 if self.den is None else self.den)
        size = strata.sums() - np.bincount(sums.of, share * sums.out, len(total))
        squares = strata.sums(z**2) - np.bincount(
            sums.of, share * sums.out * z[top] ** 2, len(total)
        )
        counts = (size > 1) & (total > 0)
        factors = np.divide(
            strata.weights**2 * size, total**2 * (size - 1), out=np.zeros(len(size)), where=counts
        )
        return float(factors @ squares)


def n_equal(control: Arm, treatment: Arm) -> float:
    """How many units two equal arms would have whose variance is as well known as that of these."""
    var = control.var + treatment.var
    return (
        2 + 1 / sum(float((one.var / var) ** 2 / one.df) for one in (control, treatment))
        if var > 0
        else np.inf
    )


def without_top(row: Row, units: Units, found: ArmsEstimate, settings: Settings) -> Row:
    """The row with its difference without the top units, and with a remark where they decide."""
    if not np.isfinite(row["diff"]):
        return row
    # A thin arm or stratum with most of the variance is judged by its own size, however many units
    # are elsewhere.
    n = min(float(sum(units.n)), n_equal(*found.arms))
    k = n_top(sum(units.n))
    if min(units.n) < 2 * k:
        return row
    arms = [
        _ArmRows.of(*one, found.how)
        for one in zip(units.sides, units.whole, found.values, strict=True)
    ]
    tops = top_units(
        found.values, k, sum(float(part.sum()) for part in found.values) / sum(units.n)
    )
    sums = [arm.sums(top, out) for arm, (top, out) in zip(arms, tops, strict=True)]
    moved = moved_by(sums[0], sums[1])
    if np.isnan(moved):
        return row
    diff = row["diff"] + moved
    row = but(row, diff_without_top=diff)
    # If only a part of each top unit is left out, many are equally far, and no few of them decide.
    distinct = any((out == 1).any() for _, out in tops)
    if min(units.n) < TINY or not distinct or not row["se"] > 0 or abs(moved) < MOVED * row["se"]:
        return row
    with_top, without = (
        sum(
            arm.var_without(own, top, share)
            for arm, own, (top, _) in zip(arms, sums, tops, strict=True)
        )
        for share in (0.0, 1.0)
    )
    se = row["se"] * np.sqrt(without / with_top)
    p = float(t_p_value(diff / se, n - k - 2, settings.alternative)) if se > 0 else 1.0
    alpha = settings.alpha
    decides = p <= min(HIDDEN, alpha)
    if row["p_value"] <= alpha:
        kept = diff / row["diff"]
        decides = kept < 0 or (p > alpha and kept < KEPT_SHARE * min(1.0, n / MANY_UNITS))
    return but(row, "few_units") if decides else row


def mean_without_top(sums: Floats, weights: Floats | None) -> float:
    """Mean of the units' sums over their weights without the top units of one sample, such as
    differences of models."""
    rows = _ArmRows(sums, weights, Strata(np.zeros(len(sums), np.int64), np.ones(1)))
    [(top, out)] = top_units([linearise(sums, weights)[1]], n_top(len(sums)), 0.0)
    return rows.sums(top, out).mean()


def top_units(values: Sequence[Floats], k: int, centre: float) -> list[tuple[Codes, Floats]]:
    """Per arm the units whose values are farthest from the mean of all, k in all, and the part of
    each to leave out.

    Of units that are equally far a part is left out, so that neither the arm nor the order of rows
    decides. The values may be some of all, which hold the top ones; `centre` is the mean of all.
    """
    scores = []
    for part in values:
        starts = np.arange(0, len(part), _BLOCK)
        high, low = np.maximum.reduceat(part, starts), np.minimum.reduceat(part, starts)
        scores.append(np.maximum(high - centre, centre - low))
    blocks = np.concatenate(scores)
    least = np.partition(blocks, -k)[-k] * (1 - _TIED) if len(blocks) >= k else 0.0
    tops = [np.flatnonzero((part >= centre + least) | (part <= centre - least)) for part in values]
    far = np.concatenate(
        [np.abs(part[top] - centre) for part, top in zip(values, tops, strict=True)]
    )
    cut = np.partition(far, -k)[-k]
    above = far > cut * (1 + _TIED)
    tied = ~above & (far >= cut * (1 - _TIED))
    out = above + tied * ((k - above.sum()) / tied.sum())
    return list(zip(tops, np.split(out, np.cumsum([len(top) for top in tops])[:-1]), strict=True))
