"""Options of one comparison of models or of variants: checked once, and handed on as one record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import pandas as pd

from ..inputs.constraints import Natural, Positive, Share, a_number, check_record
from ..inputs.options import as_columns
from ..judge.choices import (
    Alternative,
    Columns,
    Correction,
    PairMissing,
    PairTest,
    Relative,
    VariantTest,
    check_test,
)
from ..judge.comparisons import Comparison
from .samples import subset


@dataclass(frozen=True)
class Settings:
    """Options that every pair of arms or models needs, and the table that is made of them.

    `tests` has the test of every metric, and `margins` what does not matter in some of them.
    `primary` metrics are a family of their own.
    """

    tests: Mapping[str, VariantTest | PairTest] = field(default_factory=dict)
    alternative: Alternative = "two-sided"
    confidence: Share = 0.95
    correction: Correction = "holm"
    family: Columns | None = None
    primary: Sequence[str] = ()
    n_resamples: Positive = 2000
    seed: Natural = 0
    sequential_n: Annotated[int, a_number(2, whole=True)] | None = None
    relative: Relative = "fieller"
    missing: PairMissing = "raise"
    margins: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_record(self)

    @property
    def alpha(self) -> float:
        return 1 - self.confidence

    def compared(
        self, table: pd.DataFrame, columns: list[str], kind: str, by: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Return all columns of a comparison, which shows itself and says how it was made."""
        result = table.assign(confidence=self.confidence)[[*by, *columns]]
        result.attrs["recdf_comparison"] = {
            "kind": kind,
            "by": list(by),
            "confidence": self.confidence,
            "tests": sorted({*self.tests.values()}),
            "alternative": self.alternative,
            "correction": self.correction,
            "family": as_columns(self.family),
            "primary": list(self.primary),
            "sequential_n": self.sequential_n,
        }
        return Comparison.of(result)


def which_tests(test: Any, specs: Mapping[str, Any], tests: object = VariantTest) -> dict[str, Any]:
    """Test of every metric; Student's t for those that a mapping does not name."""
    if not isinstance(test, Mapping):
        return dict.fromkeys(specs, check_test("test", test, tests))
    subset("test", list(test), specs)
    named = {name: check_test(f"test[{name!r}]", one, tests) for name, one in test.items()}
    return {name: named.get(name, "t") for name in specs}
