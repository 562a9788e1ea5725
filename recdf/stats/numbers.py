"""The types of numbers in the statistics: arrays of float64, or single numbers."""

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
