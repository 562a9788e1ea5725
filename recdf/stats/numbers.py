"""The numbers of the statistics: their types, arrays of float64 or single numbers, and what 0/0 is;
and SciPy, the extra `recdf[stats]`, imported by the functions that use it."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import MissingExtraError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# A result of a function that reduces the last axis: a number for one experiment, an array for many.
Number = Floats | float
# Such as the ends of an interval.
TwoNumbers = tuple[float, float]

Alternative = Literal["two-sided", "greater", "less"]
Correction = Literal["holm", "hochberg", "sidak", "holm_sidak", "bonferroni", "bh", "by", "none"]


# The quantile of the normal distribution of a probability between 0 and 1.
normal_quantile = NormalDist().inv_cdf


def normal_p(z: Floats) -> Floats:
    """Return the two-sided p of z in a normal distribution; null where z is null."""
    return np.vectorize(math.erfc, [np.float64])(np.abs(z) / math.sqrt(2))


def undefined_is_nan() -> np.errstate:
    """Let a number that is divided by 0, or that is too large for a float, be NaN or infinite,
    inside a `with` block, without a warning."""
    return np.errstate(divide="ignore", invalid="ignore", over="ignore")


# ------------------------------------------------------------------------------------------
# SciPy, imported by the functions that use it: the extra `recdf[stats]`.


def scipy_module(name: str) -> Any:
    """Return `scipy.special` or `scipy.stats`, or say which extra is missing."""
    try:
        if name == "special":
            import scipy.special as module  # type: ignore[import-untyped]  # SciPy ships no types
        else:
            import scipy.stats as module  # type: ignore[import-untyped]  # the same
    except ImportError as error:
        raise MissingExtraError(
            "t tests and χ² tests need SciPy, which is not installed: pip install 'recdf[stats]'"
        ) from error
    return module
