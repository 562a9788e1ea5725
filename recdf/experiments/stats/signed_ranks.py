"""Wilcoxon's signed-rank test of paired differences."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from .numbers import Alternative, Floats
from .scipy_extra import scipy_module

__all__: list[str] = []


class SignedRanks(NamedTuple):
    """Wilcoxon's statistic and p, and whether the ranks of positive differences are the larger sum."""

    statistic: float
    p_value: float
    positive: bool


def wilcoxon(diff: Floats, alternative: Alternative) -> SignedRanks:
    """Return Wilcoxon's signed-rank statistic and p by the normal approximation; zeros are dropped (SciPy)."""
    stats = scipy_module("stats")
    with warnings.catch_warnings():
        # Below 10 differences SciPy warns of the approximation, although it was requested here.
        warnings.simplefilter("ignore", UserWarning)
        found = stats.wilcoxon(diff, alternative=alternative, method="approx")
        # With "greater" the statistic is the sum of the ranks of positive differences.
        ranks_up = float(stats.wilcoxon(diff, alternative="greater", method="approx").statistic)
    n = int((diff != 0).sum())
    return SignedRanks(float(found.statistic), float(found.pvalue), ranks_up > n * (n + 1) / 4)
