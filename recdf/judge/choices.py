"""Values that the options of experiments and comparisons take, for type checkers and at run
time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from ..errors import OptionError
from ..inputs.constraints import NATURAL, POSITIVE, a_number, check_value
from ..stats.effect_sizes import Relative
from ..stats.numbers import Alternative, Correction

Columns = str | Sequence[str]

VariantTest = Literal["t", "permutation", "bootstrap", "proportion"]
PairTest = Literal["t", "randomization", "wilcoxon", "bootstrap"]
Better = Literal["larger", "smaller"]
PairMissing = Literal["raise", "drop", "zero"]
Missing = Literal["raise", "zero", "worst", "nan", "drop"]
RaiseOrDrop = Literal["raise", "drop"]
MultiVariant = Literal["raise", "drop", "first"]
Roll = Literal["mean", "sum", "min", "max"]

# Names that other modules take from here.
__all__ = [
    "NATURAL",
    "POSITIVE",
    "Alternative",
    "Correction",
    "Relative",
    "a_number",
    "check_value",
]

# Why one of the two comparisons has no such test.
_PAIRED = "is about the differences of users whom both models served, and a user is in one variant"
_TWO_SAMPLES = "is about two groups of users, and models are compared on the same users"
_REFUSED = {
    "randomization": _PAIRED,
    "wilcoxon": _PAIRED,
    "permutation": _TWO_SAMPLES,
    "proportion": _TWO_SAMPLES,
}


def check_test(name: str, value: Any, tests: object) -> Any:
    """Return the word of a test that a comparison has."""
    if value not in get_args(tests) and value in _REFUSED:
        valid = ", ".join(map(repr, get_args(tests)))
        raise OptionError(f"⟦{name}={value!r}⟧ {_REFUSED[value]}; valid are {valid}")
    check_value(name, value, tests)
    return value
