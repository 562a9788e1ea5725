"""Does a comparison rest on a few units? Its difference without them, and whether the verdict
turns."""

from __future__ import annotations

import numpy as np

from ...judge.effects.means import EffectOfUnits, Farthest, UnitValues
from ...stats.arms import Arm, linearise
from ...stats.student import t_p_value
from ..experiment_columns import Codes, Floats
from ..settings import Settings
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
# Distances that differ relatively by less are the same.
_TIED = 1e-12


def n_top(n: int) -> int:
    """How many of n units are left out."""
    return min(MOST_TOP_UNITS, max(1, n // OF_UNITS))


def top_units(rows: Codes, values: Floats, k: int) -> tuple[Codes, Floats]:
    """The k rows with the largest absolute values, and the part of each to leave out.

    Of units that are equally far a part is left out, so that neither the arm nor the order of rows
    decides.
    """
    far = np.abs(values)
    cut = np.partition(far, -k)[-k]
    above = far > cut * (1 + _TIED)
    tied = ~above & (far >= cut * (1 - _TIED))
    out = above + tied * ((k - above.sum()) / tied.sum())
    return rows[out > 0], out[out > 0]


def mean_without_top(sums: Floats, weights: Floats | None) -> float:
    """Mean of the units' sums over their weights without the top units of one sample, such as
    differences of models."""
    n = len(sums)
    top, out = top_units(np.arange(n), linearise(sums, weights)[1], n_top(n))
    total, own = (n, out) if weights is None else (weights.sum(), out * weights[top])
    return float((sums.sum() - out @ sums[top]) / (total - own.sum()))


class _Rest:
    """The means of both arms without a part of the top units, and their variances.

    A ratio is recomputed from its sums. Anything else moves as the units' values do, in the strata
    of the estimate.
    """

    def __init__(self, found: EffectOfUnits, values: UnitValues, top: Codes, out: Floats) -> None:
        self.ratio = not found.how and found.units.metric.den is not None
        self.units = found.units.whole if self.ratio else values.units
        record, self.out = self.units.record, out
        self.cell, self.n = self.units.cell[top], record.n
        if self.ratio:
            num, den = self.units.columns
            self.top, self.weights = (num[top], den[top]), np.ones((2, 1))
            self.mean, self.form = record.mean.T, np.tile([1.0, 0.0], (2, 1))
        else:
            self.top, self.weights = (values.z(top), np.ones(len(top))), values.weights
            self.mean, self.form = np.array([values.means, np.ones(len(self.n))]), values.form

        # In the order of the values, so that the sums have no order of rows.
        order = np.lexsort((self.out, *self.top, self.cell))
        self.cell, self.out = self.cell[order], self.out[order]
        self.top = (self.top[0][order], self.top[1][order])

    def _less(self, values: Floats, share: float) -> Floats:
        return np.asarray(np.bincount(self.cell, share * self.out * values, len(self.n)), float)

    def means(self, share: float) -> tuple[Floats, Floats]:
        """Means of the cells without this share of what is left out, and their denominators."""
        num, den = (
            self.n * mean - self._less(top, share)
            for mean, top in zip(self.mean, self.top, strict=True)
        )
        return np.divide(num, den, out=np.full(len(den), np.nan), where=den > 0), den

    def diff(self, share: float) -> float:
        means = self.means(share)[0].reshape(2, -1)
        of = np.where(self.weights > 0, self.weights * means, 0.0).sum(axis=1)
        return float(of[1] - of[0])

    def var(self, share: float) -> float:
        """Variance of the difference without this share of what is left out."""
        means, total = self.means(share)
        form = self.form - means[:, None] * [0.0, 1.0] if self.ratio else self.form
        apart = self.mean[0] - means * self.mean[1]
        size = self.n - self._less(np.ones(len(self.out)), share)
        squares = self.units.record.squares(form) + self.n * apart**2
        squares = squares - self._less((self.top[0] - means[self.cell] * self.top[1]) ** 2, share)
        counts = (size > 1) & (total > 0)
        factors = np.divide(
            self.weights.ravel() ** 2 * size,
            total**2 * (size - 1),
            out=np.zeros(len(size)),
            where=counts,
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


def without_top(row: Row, found: EffectOfUnits, far: Farthest, settings: Settings) -> Row:
    """The row with its difference without the top units, and with a remark where they decide."""
    n_units = found.units.n
    k = n_top(sum(n_units))
    if not np.isfinite(row["diff"]) or min(n_units) < 2 * k:
        return row
    # A thin arm or stratum with most of the variance is judged by its own size, however many units
    # are elsewhere.
    n = min(float(sum(n_units)), n_equal(*found.arms))
    top, out = top_units(far.rows, far.values, k)
    rest = _Rest(found, found.values, top, out)
    moved = rest.diff(1.0) - rest.diff(0.0)
    if np.isnan(moved):
        return row
    diff = row["diff"] + moved
    row = but(row, diff_without_top=diff)
    # If only a part of each top unit is left out, many are equally far, and no few of them decide.
    distinct = (out == 1).any()
    if min(n_units) < TINY or not distinct or not row["se"] > 0 or abs(moved) < MOVED * row["se"]:
        return row
    se = row["se"] * np.sqrt(rest.var(1.0) / rest.var(0.0))
    p = float(t_p_value(diff / se, n - k - 2, settings.alternative)) if se > 0 else 1.0
    alpha = settings.alpha
    decides = p <= min(HIDDEN, alpha)
    if row["p_value"] <= alpha:
        kept = diff / row["diff"]
        decides = kept < 0 or (p > alpha and kept < KEPT_SHARE * min(1.0, n / MANY_UNITS))
    return but(row, "few_units") if decides else row
