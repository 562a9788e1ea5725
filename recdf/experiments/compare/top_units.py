"""Does a comparison rest on a few units? Its difference without them, and whether the verdict turns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...stats.student import t_p_value
from ..estimates import ArmsEstimate
from ..experiment_columns import Codes, Floats
from ..settings import Settings
from ..units import Units
from .two_sample import TINY, Row, but

# Units that are left out: ten, or of fewer than 200 units 5 %, but at least one.
MOST_TOP_UNITS, OF_UNITS = 10, 20
# If a test rejects with the top units, they decide if the rest is not significant and has less than this share of the
# difference: a broad effect that is barely significant loses less. Of n units fewer than MANY, the top ones are a large
# part of any effect, and the share is n/MANY of it. If it does not reject, they hide what is significant at HIDDEN.
KEPT_SHARE, MANY_UNITS, HIDDEN = 0.5, 1000, 0.001
# Top units that move the difference by fewer standard errors than this cannot turn a verdict.
MOVED = 0.25
# Rows of a block whose extremes are taken, to find the largest values without sorting all.
_BLOCK = 1024
# Distances that differ relatively by less are the same.
_TIED = 1e-12


class ArmSums(NamedTuple):
    """Sums of numerators and denominators of an arm, those of its top units, and the part of each to leave out."""

    num: float
    den: float
    top_num: Floats
    top_den: Floats | float
    out: Floats

    def mean(self, share: float = 1.0) -> tuple[float, float]:
        """Mean or ratio without this share of what is left out, and its denominator."""
        out = share * self.out
        total = self.den - float((out * self.top_den).sum())
        return ((self.num - float(out @ self.top_num)) / total if total > 0 else np.nan), total


def moved_by(control: ArmSums, treatment: ArmSums) -> float:
    """By how much the difference moves when the top units are left out; NaN where the others have no denominator."""
    (before, _), (after, _) = treatment.mean(0.0), treatment.mean()
    return (after - before) - (control.mean()[0] - control.mean(0.0)[0])


def n_top(n: int) -> int:
    """How many of n units are left out."""
    return min(MOST_TOP_UNITS, max(1, n // OF_UNITS))


def _arm_sums(num: Floats, den: Floats | None, top: Codes, out: Floats) -> ArmSums:
    dens = (float(len(num)), 1.0) if den is None else (float(den.sum()), den[top])
    return ArmSums(float(num.sum()), dens[0], num[top], dens[1], out)


def _var_without(num: Floats, den: Floats | None, top: Codes, sums: ArmSums, share: float) -> float:
    (mean, total), out = sums.mean(share), share * sums.out
    z, n = num - mean * (1.0 if den is None else den), len(num) - float(out.sum())
    return (float(z @ z) - float(out @ z[top] ** 2)) * n / (n - 1) / total**2


def without_top(row: Row, units: Units, found: ArmsEstimate, settings: Settings) -> Row:
    """The row with its difference without the top units, and with a warning where they decide.

    Ratios are recomputed. Adjusted means move as the values do that are compared.
    """
    n = sum(units.n)
    k = n_top(n)
    if min(units.n) < 2 * k or not np.isfinite(row["diff"]):
        return row
    tops = top_units(found.values, k)
    arms = [
        (values, None) if found.how or sample.den is None else (sample.num, sample.den)
        for values, sample in zip(found.values, units.whole, strict=True)
    ]
    sums = [_arm_sums(num, den, top, out) for (num, den), (top, out) in zip(arms, tops, strict=True)]
    moved = moved_by(sums[0], sums[1])
    if np.isnan(moved):
        return row
    diff = row["diff"] + moved
    row = but(row, diff_without_top=diff)
    # If only a part of each top unit is left out, many are equally far, and no few of them decide.
    distinct = any((out == 1).any() for _, out in tops)
    if min(units.n) < TINY or not distinct or not row["se"] > 0 or abs(moved) < MOVED * row["se"]:
        return row
    # Both arms with all units, then both without the top ones.
    variances = [
        _var_without(num, den, top, own, share)
        for share in (0.0, 1.0)
        for (num, den), (top, _), own in zip(arms, tops, sums, strict=True)
    ]
    se = row["se"] * np.sqrt(sum(variances[2:]) / sum(variances[:2]))
    p = float(t_p_value(diff / se, n - k - 2, settings.alternative)) if se > 0 else 1.0
    alpha = settings.alpha
    decides = p <= min(HIDDEN, alpha)
    if row["p_value"] <= alpha:
        kept = diff / row["diff"]
        decides = kept < 0 or (p > alpha and kept < KEPT_SHARE * min(1.0, n / MANY_UNITS))
    return but(row, "few_units") if decides else row


def top_units(
    values: tuple[Floats, Floats], k: int, centre: float | None = None
) -> list[tuple[Codes, Floats]]:
    """Per arm the units whose values are farthest from the mean of all, k in both, and the part of each to leave out.

    Of units that are equally far a part is left out, so that neither the arm nor the order of rows decides. Where
    `values` are some of all, which hold the top ones, `centre` is the mean of all.
    """
    centre = sum(float(part.sum()) for part in values) / sum(map(len, values)) if centre is None else centre
    scores = []
    for part in values:
        starts = np.arange(0, len(part), _BLOCK)
        high, low = np.maximum.reduceat(part, starts), np.minimum.reduceat(part, starts)
        scores.append(np.maximum(high - centre, centre - low))
    blocks = np.concatenate(scores)
    least = np.partition(blocks, -k)[-k] * (1 - _TIED) if len(blocks) >= k else 0.0
    tops = [np.flatnonzero((part >= centre + least) | (part <= centre - least)) for part in values]
    far = np.concatenate([np.abs(part[top] - centre) for part, top in zip(values, tops, strict=True)])
    cut = np.partition(far, -k)[-k]
    above = far > cut * (1 + _TIED)
    tied = ~above & (far >= cut * (1 - _TIED))
    out = above + tied * ((k - above.sum()) / tied.sum())
    return list(zip(tops, np.split(out, [len(tops[0])]), strict=True))
