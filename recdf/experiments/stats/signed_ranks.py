"""Wilcoxon's signed-rank test of paired differences."""

from __future__ import annotations

import warnings

from .numbers import Alternative, Floats
from .scipy_extra import scipy_module

__all__: list[str] = []


def wilcoxon(diff: Floats, alternative: Alternative) -> tuple[float, float]:
    """Wilcoxon's signed-rank statistic and p by the normal approximation, zeros dropped (SciPy)."""
    stats = scipy_module("stats")
    with warnings.catch_warnings():
        # SciPy warns of the approximation below 10 differences, which the caller asked for.
        warnings.simplefilter("ignore", UserWarning)
        found = stats.wilcoxon(diff, alternative=alternative, method="approx")
    return float(found.statistic), float(found.pvalue)
