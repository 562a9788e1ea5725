"""Whether a random split of units into two arms explains the difference of their means."""

from __future__ import annotations

import math

import numpy as np

from .moments import moments_of
from .numbers import Floats
from .scipy_extra import scipy_module

__all__: list[str] = []

# Skewness of the difference below which a normal distribution is as good, and above which ranks are compared.
_SYMMETRIC, _SKEWED = 1e-3, 0.2


def random_split_p(control: Floats, treatment: Floats) -> float:
    """Return the two-sided p of the difference of two means over all splits of the units into arms of these sizes.

    Over these splits the difference has mean 0, a known variance and the skewness
    γ(N − 2n_t)√(N − 1)/((N − 2)√(n_t n_c)), where γ is that of all N values. p is that of Pearson's distribution of
    type III with these moments (Mielke & Berry 2007). Where the skewness is large, the tail is of another form, and
    ranks take the place of values. NaN where all values are equal.
    """
    both = np.concatenate([control, treatment])
    n_c, n_t = len(control), len(treatment)
    n = n_c + n_t
    units = moments_of(both)
    if min(n_c, n_t) < 2 or not units.var > 0:
        return np.nan
    turn = (n - 2 * n_t) * math.sqrt(n - 1) / ((n - 2) * math.sqrt(n_c * n_t))
    if abs(float(units.skewness * turn)) > _SKEWED:
        _, place, count = np.unique(both, return_inverse=True, return_counts=True)
        both = (np.cumsum(count) - (count - 1) / 2)[place]
        units = moments_of(both)
    spread = math.sqrt(float(units.var) * n / (n - 1) * (1 / n_c + 1 / n_t))
    z, skewness = float(both[n_c:].mean() - both[:n_c].mean()) / spread, float(units.skewness * turn)
    if abs(skewness) < _SYMMETRIC:
        return math.erfc(abs(z) / math.sqrt(2))
    special = scipy_module("special")
    shape = 4 / skewness**2
    at = max(shape + 2 * z / skewness, 0.0)
    return min(1.0, 2 * min(float(special.gammaincc(shape, at)), float(special.gammainc(shape, at))))
