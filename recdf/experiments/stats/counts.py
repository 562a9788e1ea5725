"""Tests of counts: users per variant against planned shares, and independence of a table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .scipy_extra import scipy_module

__all__: list[str] = []


def share_test(counts: npt.ArrayLike, shares: npt.ArrayLike, least: float = 8.0) -> tuple[float, float]:
    """Pearson's χ² of counts against planned shares and its p; NaN when an expected count is below `least`."""
    observed = np.asarray(counts, dtype=np.float64)
    planned = np.asarray(shares, dtype=np.float64)
    expected = observed.sum() * planned / planned.sum()
    if len(observed) < 2 or expected.min() < least:
        return np.nan, np.nan
    chi2 = float(((observed - expected) ** 2 / expected).sum())
    return chi2, float(scipy_module("special").chdtrc(len(observed) - 1, chi2))


def independence_test(table: npt.ArrayLike) -> tuple[float, float]:
    """Pearson's χ² of a contingency table (no continuity correction) and its p; NaN with an empty margin."""
    observed = np.asarray(table, dtype=np.float64)
    rows, cols = observed.sum(axis=1), observed.sum(axis=0)
    if min(observed.shape) < 2 or not rows.all() or not cols.all():
        return np.nan, np.nan
    expected = np.outer(rows, cols) / observed.sum()
    chi2 = float(((observed - expected) ** 2 / expected).sum())
    df = (observed.shape[0] - 1) * (observed.shape[1] - 1)
    return chi2, float(scipy_module("special").chdtrc(df, chi2))
