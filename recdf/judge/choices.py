"""Values that the options of experiments and comparisons take, for type checkers and at run
time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from ..errors import OptionError
from ..inputs.constraints import (
    Constraint,
    Natural,
    Positive,
    Share,
    a_number,
    check_value,
)
from ..inputs.door import checks_names
from ..inputs.options import Columns as Columns
from ..inputs.options import Options, as_columns
from ..stats.arms import Relative
from ..stats.numbers import Alternative, Correction

# Metrics of a call, planned shares of variants, what a result was evaluated with, and the numbers
# of a row of a table.
NamedMetrics = Columns | Mapping[str, Any]
PlannedShares = Annotated[
    Mapping[Any, Any],
    Constraint("a mapping of variants to shares", lambda given: isinstance(given, Mapping)),
]
AnySpec = Mapping[str, Any]
Row = dict[str, Any]
# A row of a table whose columns may have names of any kind.
AnyRow = Mapping[Any, Any]
# Two models, or two variants, by their places among all: baseline and model, control and treatment.
TwoPlaces = tuple[int, int]

VariantTest = Literal["t", "permutation", "bootstrap", "proportion"]
PairTest = Literal["t", "randomization", "wilcoxon", "bootstrap"]
Better = Literal["larger", "smaller"]
Directions = Mapping[str, Better | None]  # in which each metric is better
PairMissing = Literal["raise", "drop", "zero"]
Missing = Literal["raise", "zero", "worst", "nan", "drop"]
RaiseOrDrop = Literal["raise", "drop"]
MultiVariant = Literal["raise", "drop", "first"]
Roll = Literal["mean", "sum", "min", "max"]

# Names that other modules take from here.
__all__ = [
    "Alternative",
    "Correction",
    "Natural",
    "Options",
    "Positive",
    "Relative",
    "Share",
    "a_number",
    "as_columns",
    "check_value",
    "checks_names",
]


class KnownTest(NamedTuple):
    """A test of a comparison: the options that it does not take, and why; whether sums over the
    units are enough for it; whether it resamples."""

    takes_no: Mapping[str, str] = {}
    of_sums: bool = False
    resampled: bool = False


_ALIKE = dict.fromkeys(("strata", "sequential_n"), "it draws all users alike")
_SHARES = ("sequential_n", "strata", "cluster", "covariates", "weight_col")
_CHEAP = {"cheap": "both labels together are tested by t"}
TESTS = {
    "t": KnownTest(of_sums=True),
    "proportion": KnownTest(
        dict.fromkeys(_SHARES, "it compares the shares of users as they are"), of_sums=True
    ),
    "permutation": KnownTest(_ALIKE, resampled=True),
    "bootstrap": KnownTest(_ALIKE | _CHEAP, resampled=True),
    "randomization": KnownTest(_CHEAP, resampled=True),
    "wilcoxon": KnownTest({"weight_col": "signed ranks take no weights"} | _CHEAP),
}


def check_options_of_tests(tests: Iterable[str], **given: Any) -> None:
    """Refuse options that a test does not take; those that were not given are None."""
    for test in dict.fromkeys(tests):
        for name, why in TESTS[test].takes_no.items():
            if given.get(name) is not None:
                raise OptionError(
                    f"⟦test={test!r}⟧ takes no ⟦+{name}=⟧: {why}. Use ⟦+test='t'⟧, or compare the "
                    "metrics that need it in a call of their own"
                )
