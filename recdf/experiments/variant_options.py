"""Options of a comparison of variants, checked alike for users and for moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import DataError, OptionError
from .columns import Spec, count, share
from .options import Alternative, Columns, Correction, Method, Relative, VariantTest, check_literal
from .samples import subset
from .two_sample import Settings

__all__: list[str] = []


def which_tests(test: VariantTest | Mapping[str, VariantTest], specs: Mapping[str, Any]) -> dict[str, VariantTest]:
    """Test of every metric."""
    if not isinstance(test, Mapping):
        check_literal("test", test, VariantTest)
        return dict.fromkeys(specs, test)
    subset("test", list(test), specs)
    for name, chosen in test.items():
        check_literal(f"test[{name!r}]", chosen, VariantTest)
    return dict(test)


def measured(specs: Mapping[str, Spec]) -> dict[str, str]:
    """Name → the column whose mean it is, "" for other ratios: `m` over `m__n` is the mean of m over lists."""
    return {name: num if den in (None, f"{num}__n") else "" for name, (num, den) in specs.items()}


def check_settings(
    settings: Settings,
    correction: Correction,
    strata: Columns | None = None,
    cluster: Columns | None = None,
    covariates: Any = None,
) -> None:
    """Refuse unknown values, and options that exclude each other."""
    check_literal("alternative", settings.alternative, Alternative)
    check_literal("correction", correction, Correction)
    check_literal("method", settings.method, Method)
    check_literal("relative", settings.relative, Relative)
    share("confidence", settings.confidence)
    if strata is not None and cluster is not None:
        raise OptionError("strata and cluster are both given; stratify users, or cluster their rows, not both")
    if strata is not None and settings.method != "welch":
        raise OptionError(f'method="{settings.method}" does not take strata; use method="welch"')
    if settings.sequential_n is not None:
        count("sequential_n", settings.sequential_n, 2)
        if settings.method != "welch" or settings.alternative != "two-sided":
            raise OptionError('sequential_n needs method="welch" and alternative="two-sided"')
    if "proportion" in settings.tests.values() and (
        settings.method != "welch" or settings.sequential_n or strata is not None or cluster is not None or covariates
    ):
        raise OptionError(
            'test="proportion" compares the shares of users as they are; it takes no method=, sequential_n=, strata=, '
            'cluster= or covariates=. Name the metrics that it is for, such as test={"hitrate@10": "proportion"}, '
            "and compare the others in a call of their own"
        )


def no_share(metric: str) -> DataError:
    """Return the error for a metric that is to be compared as a share and is none."""
    return DataError(
        f'metric {metric!r} has values other than 0 and 1; test="proportion" compares shares of users, so give it a '
        "column such as hitrate@10"
    )
