"""A mean from few exact values and many cheap ones (Angelopoulos and others 2023, PPI++).

Contract: `y` and `f` are the exact and the cheap values of n units, `rest` the cheap values of N more. The n are a
random sample of all n + N. The interval then holds however biased the cheap values are.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from .numbers import Floats
from .student import student_quantile

Tuning = Literal["open", "clipped"]


class PoweredMean(NamedTuple):
    """A mean with its variance and degrees of freedom (infinite: normal), and the weight λ of the cheap values."""

    mean: float
    var: float
    df: float
    weight: float


def powered_mean(y: Floats, f: Floats, rest: Floats, tuning: Tuning = "open") -> PoweredMean:
    """θ = λ·mean_N(f) + mean_n(Y − λf), with variance λ²·var_N(f)/N + var_n(Y − λf)/n.

    λ = cov_n(Y, f)/((1 + n/N)·var_n(f)), at least 0, with Student's t of n − 2 degrees of freedom; "clipped" takes the
    variance of all n + N, cuts λ at 1 too, divides by n and N in the variances, and is normal, as ppi-python does.
    """
    n, n_rest = len(y), len(rest)
    clipped = tuning == "clipped"
    spread = float(np.concatenate([f, rest]).var(ddof=1) if clipped else f.var(ddof=1))
    shared = float((y - y.mean()) @ (f - f.mean())) / (n if clipped else n - 1)
    weight = max(shared / ((1 + n / n_rest) * spread), 0.0) if spread > 0 else 0.0
    weight = min(weight, 1.0) if clipped else weight
    left, ddof = y - weight * f, 0 if clipped else 1
    mean = weight * float(rest.mean()) + float(left.mean())
    var = weight**2 * float(rest.var(ddof=min(ddof, n_rest - 1))) / n_rest + float(left.var(ddof=ddof)) / n
    return PoweredMean(mean, var, np.inf if clipped else n - 2, weight)


def sampled_mean(y: Floats, f: Floats, everything: Floats, chance: Floats) -> PoweredMean:
    """The same mean where unit i was chosen with the probability `chance`, from units whose cheap values are all known.

    θ = λ·mean(all f) + Σ w(Y − λf)/Σw with w = 1/chance and λ = cov_w/var_w. Its variance takes the units for drawn
    with replacement, which is cautious where they are stratified.
    """
    w = 1 / chance
    share = w / w.sum()
    off = f - share @ f
    spread = float(share @ off**2)
    weight = max(float(share @ (off * (y - share @ y))) / spread, 0.0) if spread > 0 else 0.0
    left = y - weight * f
    middle = float(share @ left)
    n = len(y)
    var = weight**2 * float(everything.var(ddof=1)) / len(everything)
    var += n / (n - 1) * float(share**2 @ (left - middle) ** 2)
    return PoweredMean(weight * float(everything.mean()) + middle, var, n - 2, weight)


def powered_values(y: Floats, f: Floats, human: np.ndarray, found: PoweredMean) -> Floats:
    """One value for each unit, whose plain mean and variance of the mean are those that were found.

    So whatever takes a mean of values takes this one. `y` counts where `human` is true.
    """
    n, total = int(human.sum()), len(f)
    left = np.where(human, y - found.weight * f, 0.0)
    middle = left.sum() / n
    values = found.weight * (1 + n / max(total - n, 1)) * f + np.where(human, (left - middle) * total / n, 0.0)
    values -= values.mean()
    plain = values.var(ddof=1) / total
    return found.mean + values * (np.sqrt(found.var / plain) if plain > 0 else 0.0)


def powered_interval(found: PoweredMean, confidence: float) -> tuple[float, float]:
    """The two-sided interval of the mean."""
    reach = student_quantile((1 + confidence) / 2, found.df) * float(np.sqrt(found.var))
    return found.mean - reach, found.mean + reach
