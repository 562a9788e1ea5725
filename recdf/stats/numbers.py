"""The numbers of the statistics: their types, arrays of float64 or single numbers, and what 0/0
is."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# A result of a function that reduces the last axis: a number for one experiment, an array for many.
Number = Floats | float

Alternative = Literal["two-sided", "greater", "less"]
Correction = Literal["holm", "hochberg", "sidak", "holm_sidak", "bonferroni", "bh", "by", "none"]


def undefined_is_nan() -> np.errstate:
    """Let a number that is divided by 0 be NaN or infinite, inside a `with` block, without a
    warning."""
    return np.errstate(divide="ignore", invalid="ignore")
