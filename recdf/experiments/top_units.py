"""Does a comparison rest on a few units? Its difference without them, and whether the verdict turns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .columns import Codes, Floats
from .estimates import Estimate
from .stats.student import t_p_value
from .two_sample import TINY, Row, Settings
from .units import Units

__all__: list[str] = []

# Units that are left out: ten, or of fewer than 200 units 5 %, but at least one.
MOST, OF_UNITS = 10, 20
# If a test rejects with the top units, they decide if the rest is not significant and has less than this share of the
# difference: a broad effect that is barely significant loses less. Of n units fewer than MANY, the top ones are a larger
# part of any effect, and the share is n/MANY of it. If the test does not reject, the top units hide what is significant
# at HIDDEN without them.
KEPT, MANY, HIDDEN = 0.5, 1000, 0.001
# Top units that move the difference by fewer standard errors than this cannot turn a verdict.
MOVED = 0.25
# Rows of a block whose extremes are taken, to find the largest values without sorting all.
_BLOCK = 1024
# Distances that differ relatively by less are the same.
_TIED = 1e-12


class _Side(NamedTuple):
    """One arm: numerators, denominators (None: a mean) and their sums; the top units and the part of each to leave out."""

    num: Floats
    den: Floats | None
    sums: tuple[float, float]
    top: Codes
    out: Floats

    def left(self) -> tuple[float, float]:
        """Sums of the numerators and denominators of what is left."""
        den = 1.0 if self.den is None else self.den[self.top]
        return self.sums[0] - float(self.out @ self.num[self.top]), self.sums[1] - float((self.out * den).sum())

    def mean(self) -> float:
        num, den = self.left()
        return num / den if den > 0 else np.nan

    def var(self) -> float:
        """The variance of that mean or ratio."""
        z = self.num - self.mean() * (1.0 if self.den is None else self.den)
        n = len(z) - float(self.out.sum())
        return (float(z @ z) - float(self.out @ z[self.top] ** 2)) * n / (n - 1) / self.left()[1] ** 2


def without_top(row: Row, units: Units, found: Estimate, settings: Settings) -> Row:
    """The row with its difference without the top units, and with a warning where they decide."""
    n = sum(units.n)
    k = min(MOST, max(1, n // OF_UNITS))
    if min(units.n) < 2 * k or not np.isfinite(row.diff):
        return row
    whole, rest = _sides(units, found, k)
    moved = (rest[1].mean() - whole[1].mean()) - (rest[0].mean() - whole[0].mean())
    if not np.isfinite(moved):
        return row
    diff = row.diff + moved
    row = row.but(diff_without_top=diff)
    # If only a part of each top unit goes out, many are equally far, and no few of them decide.
    distinct = any((side.out == 1).any() for side in rest)
    if min(units.n) < TINY or not distinct or not row.se > 0 or abs(moved) < MOVED * row.se:
        return row
    se = row.se * np.sqrt(sum(side.var() for side in rest) / sum(side.var() for side in whole))
    p = float(t_p_value(diff / se, n - k - 2, settings.alternative)) if se > 0 else 1.0
    alpha = 1 - settings.confidence
    if row.p_value <= alpha:
        kept = KEPT * min(1.0, n / MANY)
        decides = p > alpha and diff / row.diff < kept
        decides |= diff * row.diff < 0
    else:
        decides = p <= min(HIDDEN, alpha)
    return row.but("few_units") if decides else row


def _sides(units: Units, found: Estimate, k: int) -> tuple[list[_Side], list[_Side]]:
    """Both arms as a whole, and without the k units whose values are farthest from the mean of all.

    Of units that are equally far, a part of each is left out, so that neither arm nor the order of rows decides. Ratios
    are recomputed; adjusted means move as the values do that are compared.
    """
    values, samples = found.values, (units.control, units.treatment)
    totals = [float(part.sum()) for part in values]
    centre = sum(totals) / sum(units.n)
    scores = np.concatenate([_block_scores(part, centre) for part in values])
    least = np.partition(scores, -k)[-k] * (1 - _TIED) if len(scores) >= k else 0.0
    tops = [np.flatnonzero((part >= centre + least) | (part <= centre - least)) for part in values]
    far = [np.abs(part[top] - centre) for part, top in zip(values, tops, strict=True)]
    both = np.concatenate(far)
    cut = np.partition(both, -k)[-k]
    above, tied = both > cut * (1 + _TIED), np.abs(both - cut) <= cut * _TIED
    part_of_tied = (k - int(above.sum())) / int(tied.sum())
    whole, rest = [], []
    for arm, sample in enumerate(samples):
        num, den, sums = values[arm], None, (totals[arm], float(len(values[arm])))
        if not found.how and sample.den is not None:
            num, den, sums = sample.num, sample.den, (float(sample.num.sum()), float(sample.den.sum()))
        chosen = far[arm] >= cut * (1 - _TIED)
        out = np.where(far[arm][chosen] > cut * (1 + _TIED), 1.0, part_of_tied)
        whole.append(_Side(num, den, sums, np.empty(0, np.int64), np.empty(0)))
        rest.append(_Side(num, den, sums, tops[arm][chosen], out))
    return whole, rest


def _block_scores(values: Floats, centre: float) -> Floats:
    """The largest distance from the centre in every block of rows."""
    starts = np.arange(0, len(values), _BLOCK)
    return np.maximum(np.maximum.reduceat(values, starts) - centre, centre - np.minimum.reduceat(values, starts))
