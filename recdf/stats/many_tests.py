"""Adjustment of p-values for the number of tests read together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .numbers import Correction, Floats

__all__: list[str] = []


def adjust(p: Floats, method: Correction) -> Floats:
    """Adjust one family of p-values; NaN stays NaN and is not counted.

    holm: cummax((m − i)·p₍ᵢ₎) from the smallest, i = 0.. · bh: cummin(m/i·p₍ᵢ₎) from the largest, i = 1.. ·
    bonferroni: m·p; all cut at 1.
    """
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    m = len(tested)
    order = tested[np.argsort(p[tested], kind="stable")]
    ranks = np.arange(1, m + 1)
    ordered = p[order]
    if method == "holm":
        ordered = np.maximum.accumulate((m + 1 - ranks) * ordered)
    elif method == "bh":
        ordered = np.minimum.accumulate((m / ranks * ordered)[::-1])[::-1]
    elif method == "bonferroni":
        ordered = m * ordered
    adjusted[order] = np.minimum(ordered, 1.0)
    return adjusted


def adjust_within(p: Floats, family: npt.NDArray[np.int64], method: Correction) -> Floats:
    """Adjust the p-values of each family, a code, by themselves."""
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(family, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(family[order])) + 1):
        adjusted[rows] = adjust(p[rows], method)
    return adjusted
