"""Randomization test of paired differences: with random signs, or with all patterns of signs."""

from __future__ import annotations

import numpy as np

from .numbers import Alternative, Floats

__all__: list[str] = []


def sign_flip_p(sums: Floats, observed: Floats, alternative: Alternative) -> Floats:
    """Return p = (1 + #{T* at least as extreme as T})/(B + 1); values within a relative 1e-12 count as tied.

    `sums` (B, columns) are the flipped sums T*, and `observed` (columns) are the sums T.
    """
    slack = 1e-12 * np.abs(observed)
    if alternative == "two-sided":
        extreme = np.abs(sums) >= np.abs(observed) - slack
    elif alternative == "greater":
        extreme = sums >= observed - slack
    else:
        extreme = sums <= observed + slack
    p: Floats = (1 + extreme.sum(axis=0)) / (len(sums) + 1)
    return p


def sign_flip_interval(
    centred: Floats, mean: Floats, *, alternative: Alternative, confidence: float
) -> tuple[Floats, Floats]:
    """Return mean ∓ the `confidence` quantile of flipped centred means (two-sided: of their absolute values)."""
    if alternative == "two-sided":
        half = np.quantile(np.abs(centred), confidence, axis=0)
        return mean - half, mean + half
    half = np.quantile(centred, confidence, axis=0)
    if alternative == "greater":
        return mean - half, np.full_like(mean, np.inf)
    return np.full_like(mean, -np.inf), mean + half


def exact_sign_flip_p(values: Floats, alternative: Alternative) -> float:
    """Return the exact p over all 2^m sign patterns of the m values that are not 0, without simulation."""
    values = values[values != 0]
    patterns = (np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1
    sums = (1 - 2 * patterns) @ values
    observed = np.array([values.sum()])
    return float((sign_flip_p(sums[:, None], observed, alternative)[0] * (len(sums) + 1) - 1) / len(sums))
