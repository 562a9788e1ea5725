"""Effects of several independent groups: whether they differ (Cochran's Q), and each of them
shrunken to their mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .numbers import Floats
from .shares import chi2_tail


class Heterogeneity(NamedTuple):
    """What H groups with a standard error say together; the last two are arrays with NaN for the
    other groups."""

    n_segments: int
    effect: float
    q: float
    df: int
    p_value: float
    tau: float
    shrunken: Floats
    shrunken_se: Floats


def heterogeneity(diff: Floats, se: Floats) -> Heterogeneity:
    """Return Q of the groups, the spread τ between them (DerSimonian & Laird), and their empirical
    Bayes effects.

    Groups without a positive standard error do not count. NaN where fewer than two count.
    """
    known = np.isfinite(diff) & (se > 0)
    n, nothing = int(known.sum()), np.full(len(diff), np.nan)
    if n < 2:
        return Heterogeneity(n, np.nan, np.nan, max(n - 1, 0), np.nan, np.nan, nothing, nothing)
    effects, variances = diff[known], np.square(se[known])
    w = variances.min() / variances  # relative weights: tiny standard errors would overflow
    mean = float(w @ effects / w.sum())
    q = float(w @ np.square(effects - mean) / variances.min())
    spread = max(0.0, (q - (n - 1)) / (w.sum() - w @ w / w.sum())) * variances.min()
    v = 1 / (1 / w + spread / variances.min())
    centre = float(v @ effects / v.sum())
    part = spread / (spread + variances)
    shrunken, errors = nothing.copy(), nothing.copy()
    shrunken[known] = centre + part * (effects - centre)
    errors[known] = np.sqrt(part * variances + np.square(1 - part) * variances.min() / v.sum())
    return Heterogeneity(
        n, mean, q, n - 1, chi2_tail(q, n - 1), float(np.sqrt(spread)), shrunken, errors
    )
