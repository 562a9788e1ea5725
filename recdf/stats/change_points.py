"""When did a series of nightly values change its level? By an e-process, so that one may look every
night.

Contract: without a change, the values are independent and normal, of any spread, around a level
that may depend on the day of the week. Then the chance that `log_evidence` ever exceeds ln(1/α), at
whatever night one looks, is at most α.

For a change at night j the evidence is a Bayes factor that does not depend on level, spread and
days of the week (a right Haar prior on them; the change has a normal prior of `SPREAD` standard
deviations squared). With n nights in d kinds of days, S the squares of the step at j around its
means by kind of day, and R² its squared correlation with the values around theirs:

    BF_j = (1 + gS)^(−1/2) · (1 − gS/(1 + gS)·R²)^(−(n − d)/2)

The nights at which a change may begin have weights that add up to 1, and so do their factors, which
makes the sum an e-process. References: Shafer and others 2011; Pérez-Ortiz and others 2024
(invariance).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from .numbers import Floats

SPREAD = 4.0  # g: a change of two nightly standard deviations is what is looked for
HALF_OF_WEIGHT = 30.0  # nights within which a change begins with probability one half
LEAST_NIGHTS = 5  # that a series needs beyond its kinds of days


class LevelChange(NamedTuple):
    """A change of level: the first night of the new one, the night at which it was found, and ln of
    its evidence."""

    begins: int
    found: int
    log_evidence: float


def changes_of_level(
    values: Floats, day: np.ndarray, alpha: float
) -> tuple[list[LevelChange], float]:
    """Return the changes of a series, in order, and how much neighbouring nights are alike (see
    `_lag_one`).

    The chance of any false change is at most α. After each alarm the search begins anew with the
    nights that follow, at half of what was left of α.
    """
    found: list[LevelChange] = []
    start, left, likeliest = 0, alpha, 0
    while len(values) - start > LEAST_NIGHTS:
        left /= 2
        evidence, begins = log_evidence(values[start:], day[start:])
        alarms = np.flatnonzero(evidence > -np.log(left))
        if not len(alarms):
            likeliest = start + int(begins[-1])
            break
        at = int(alarms[0])
        found.append(LevelChange(start + int(begins[at]), start + at, float(evidence[at])))
        start += at + 1
    # A change that is not yet shown must not pass for nights that are alike, so it has a level of
    # its own here.
    return found, _lag_one(
        values, day, sorted({0, len(values), likeliest, *(change.begins for change in found)})
    )


def log_evidence(values: Floats, day: np.ndarray) -> tuple[Floats, np.ndarray]:
    """Return ln of the e-process at every night, and the night at which the likeliest change until
    then begins."""
    n = len(values)
    off = values - values.mean()
    kinds = day[:, None] == np.unique(day)
    # Sums over the nights before each night, by kind of day; the last row has all nights.
    counts, sums = (
        np.vstack([np.zeros(kinds.shape[1]), np.cumsum(each, axis=0)])
        for each in (
            kinds.astype(np.float64),
            kinds * off[:, None],
        )
    )
    squares = np.cumsum(off**2)
    at = np.arange(n)
    log_weight = (
        np.log(HALF_OF_WEIGHT) - np.log(HALF_OF_WEIGHT + at - 1) - np.log(HALF_OF_WEIGHT + at)
    )
    evidence, begins = np.zeros(n), np.zeros(n, np.int64)
    for last in range(LEAST_NIGHTS, n):
        seen, total = counts[last + 1], sums[last + 1]
        free = last + 1 - np.count_nonzero(seen)
        rest = squares[last] - (total**2 / np.maximum(seen, 1)).sum()
        if free < 2 or rest <= 1e-12 * squares[last]:
            continue
        after, sum_after = seen - counts[1 : last + 1], total - sums[1 : last + 1]
        share = after / np.maximum(seen, 1)
        spread = (after * (1 - share)).sum(axis=1)
        grown = SPREAD * spread / (1 + SPREAD * spread)
        with np.errstate(divide="ignore", invalid="ignore"):
            fit = np.where(
                spread > 1e-9, (sum_after - share * total).sum(axis=1) ** 2 / (spread * rest), 0.0
            )
        log_factor = -0.5 * np.log1p(SPREAD * spread) - free / 2 * np.log1p(
            -grown * np.minimum(fit, 1 - 1e-12)
        )
        weighted = log_factor + log_weight[1 : last + 1]
        unchanged = np.log(
            HALF_OF_WEIGHT / (HALF_OF_WEIGHT + last)
        )  # the weight of the nights to come
        evidence[last] = np.logaddexp.reduce([*weighted, unchanged])
        begins[last] = 1 + int(np.argmax(weighted))
    return evidence, begins


def _lag_one(values: Floats, day: np.ndarray, edges: list[int]) -> float:
    """Return the correlation of neighbouring nights around their levels, times √n: about standard
    normal if none."""
    off = np.empty(len(values))
    for first, end in itertools.pairwise(edges):
        kinds = np.unique(day[first:end], return_inverse=True)[1]
        means = np.bincount(kinds, values[first:end]) / np.bincount(kinds)
        off[first:end] = values[first:end] - means[kinds]
    total = float(off @ off)
    return (
        float(off[1:] @ off[:-1]) / total * np.sqrt(len(off))
        if total > 1e-24 * float(values @ values)
        else 0.0
    )
