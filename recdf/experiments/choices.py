"""Values that the options of experiments and comparisons take, for type checkers and at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..inputs.constraints import NATURAL, POSITIVE, check, number
from ..stats.bootstrap import Percentile
from ..stats.effect_sizes import Relative
from ..stats.numbers import Alternative, Correction

Columns = str | Sequence[str]

Method = Literal["welch", "bootstrap", "permutation"]
VariantTest = Literal["mean", "proportion"]
Better = Literal["larger", "smaller"]
PairTest = Literal["t", "randomization", "bootstrap", "wilcoxon"]
PairUsers = Literal["raise", "inner", "zero"]
Missing = Literal["raise", "zero", "worst", "nan", "drop"]
RaiseOrDrop = Literal["raise", "drop"]
Roll = Literal["mean", "sum", "min", "max"]

__all__ = [
    "NATURAL", "POSITIVE", "Alternative", "Better", "Columns", "Correction", "Method", "Missing", "PairTest",
    "PairUsers", "Percentile", "RaiseOrDrop", "Relative", "Roll", "VariantTest", "check", "number",
]  # fmt: skip
