"""Values that the options of experiments and comparisons take, for type checkers and at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from ..inputs.options import check_choice
from ..stats.bootstrap import Percentile
from ..stats.effect_sizes import Relative
from ..stats.numbers import Alternative, Correction

Columns = str | Sequence[str]

VariantMethod = Literal["welch", "bootstrap", "permutation"]
VariantTest = Literal["mean", "proportion"]
Better = Literal["larger", "smaller"]
PairTest = Literal["t", "randomization", "bootstrap", "wilcoxon"]
PairUsers = Literal["raise", "inner", "zero"]
Missing = Literal["raise", "zero", "worst", "nan", "drop"]
RaiseOrDrop = Literal["raise", "drop"]
Roll = Literal["mean", "sum", "min", "max"]

__all__ = [
    "Alternative",
    "Better",
    "Columns",
    "Correction",
    "Missing",
    "PairTest",
    "PairUsers",
    "Percentile",
    "RaiseOrDrop",
    "Relative",
    "Roll",
    "VariantMethod",
    "VariantTest",
    "check_literal",
]  # fmt: skip


def check_literal(name: str, value: str, literal: object) -> None:
    """Raise OptionError unless the value is one of those of the Literal type."""
    check_choice(name, value, get_args(literal))
