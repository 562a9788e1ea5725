"""One treatment against the control: a pair of arms in, a row of numbers out.

Contract: a `Pair` has all that a test of two means reads. It comes from the users of both arms (`user_pairs`), or from
moments of their values (`compare_from_moments`), and the row is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from ...errors import DataError, OptionError
from ...inputs.constraints import Natural, Positive, Share, a_number, check_record
from ...stats.always_valid import always_valid_multiplier, always_valid_p
from ...stats.effect_sizes import Effect, effect
from ...stats.moments import MEAN_ROUNDING
from ...stats.numbers import Number
from ...stats.power import beyond, detectable, detectable_t
from ...stats.shares import compare_shares
from ..choices import Alternative, Columns, Correction, Relative, VariantTest, check_test, check_value
from ..estimates import ArmsEstimate
from ..experiment_columns import MetricColumns
from ..samples import subset

__all__: list[str] = []

VARIANT_RESULT_COLUMNS = [
    "metric", "control", "treatment", "n_control", "n_treatment", "n_dropped", "n_dropped_control",
    "n_dropped_treatment", "mean_control", "mean_treatment", "mean_control_adjusted", "mean_treatment_adjusted",
    "diff", "se", "ci_low", "ci_high", "rel_diff", "rel_ci_low", "rel_ci_high", "statistic", "df", "p_value",
    "p_adj", "reject", "mde", "confidence", "method", "cap", "theta", "variance_reduction", "n_covariate_missing",
    "mean_denominator_control", "mean_denominator_treatment", "p_denominator", "diff_without_top", "design_effect",
    "srm_p", "balance_p", "unbalanced", "warning", "verdict",
]  # fmt: skip

# Power of the `mde` column.
POWER = 0.8
# Fewer units than this in an arm, or fewer clusters, are named in a warning.
TINY = 20
# |k| beyond which the t interval lies on the wrong side: every simulated setting with a type I error of 10 % or
# more is above it.
SKEWED_SAMPLES = 0.2


@dataclass(frozen=True)
class Settings:
    """Options of a comparison that every pair of arms needs; `tests` names the metrics compared as proportions."""

    alternative: Alternative = "two-sided"
    confidence: Share = 0.95
    sequential_n: Annotated[int, a_number(2, whole=True)] | None = None
    n_resamples: Positive = 2000
    seed: Natural = 0
    relative: Relative = "fieller"
    tests: Mapping[str, VariantTest] = field(default_factory=dict)


def which_tests(test: VariantTest | Mapping[str, VariantTest], specs: Mapping[str, Any]) -> dict[str, VariantTest]:
    """Test of every metric; Student's t for those that a mapping does not name."""
    if not isinstance(test, Mapping):
        return dict.fromkeys(specs, check_test("test", test, VariantTest))
    subset("test", list(test), specs)
    named = {name: check_test(f"test[{name!r}]", one, VariantTest) for name, one in test.items()}
    return {name: named.get(name, "t") for name in specs}


def measured_means(specs: Mapping[str, MetricColumns]) -> dict[str, str]:
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
    check_record(settings)
    check_value("correction", correction, Correction)
    if strata is not None and cluster is not None:
        raise OptionError("strata and cluster are both given; stratify users, or cluster their rows, not both")
    tests = {*settings.tests.values()}
    if "proportion" in tests and (
        settings.sequential_n or strata is not None or cluster is not None or covariates
    ):
        raise OptionError(
            'test="proportion" compares the shares of users as they are; it takes no sequential_n=, strata=, cluster= '
            "or covariates=. Compare the other metrics in a call of their own"
        )
    resampled = sorted(tests & {"bootstrap", "permutation"})
    if strata is not None and resampled:
        raise OptionError(f'test="{resampled[0]}" does not take strata; use test="t"')
    if settings.sequential_n is not None and (resampled or settings.alternative != "two-sided"):
        raise OptionError('sequential_n needs test="t" and alternative="two-sided"')


def no_share(metric: str) -> DataError:
    """Return the error for a metric that is to be compared as a share and is none."""
    return DataError(
        f'metric {metric!r} has values other than 0 and 1; test="proportion" compares shares of users, so give it a '
        "column such as hitrate@10"
    )


# Numbers of one metric and treatment by the names of the columns, NaN for what is not known (yet).
Row = dict[str, Any]


def but(row: Row, *warnings: str, **changes: Number | str) -> Row:
    """The row with other numbers and more warnings."""
    new = {name: value if isinstance(value, str) else float(value) for name, value in changes.items()}
    return {**row, **new, "warning": "; ".join(filter(None, [row["warning"], *warnings]))}


@dataclass(frozen=True)
class Pair:
    """What the comparison of one metric reads of the control and of the treatment, in this order.

    n : units that count · n_dropped : units that are left out, NaN if unknown · means : as they are, NaN where there is
    none · found : the estimates, None where there is nothing to estimate for the reason `problem` · plain : the units
    are users and the estimate is their mean · warnings : about the data · cautions : about the test.
    """

    metric: str
    n: tuple[int, int]
    n_dropped: tuple[float, float]
    means: tuple[float, float]
    problem: str = ""
    found: ArmsEstimate | None = None
    plain: bool = True
    clustered: bool = False
    cap: float = np.nan
    n_covariate_missing: int = 0
    warnings: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def compare_pair(pair: Pair, settings: Settings) -> tuple[Row, bool]:
    """Return the row of a pair with its estimates and its test; False where no test can be made."""
    row = _start(pair, settings)
    if pair.found is None:
        return _bare(row, pair), False
    found = pair.found
    control, treatment = (float(one.mean) for one in found.arms)
    varies = any(one.var > 0 for one in found.arms)
    if not varies and abs(treatment - control) <= MEAN_ROUNDING * abs(control):
        treatment = control  # the means of equal values differ by rounding error
    row = but(
        row,
        mean_control=found.raw[0].mean,
        mean_treatment=found.raw[1].mean,
        mean_control_adjusted=control if found.how else np.nan,
        mean_treatment_adjusted=treatment if found.how else np.nan,
        diff=treatment - control,
        rel_diff=treatment / control - 1 if control > 0 else np.nan,
        theta=found.theta,
        variance_reduction=found.reduction,
        method=_method(row["method"], found.how),
    )
    constant = [not one.var > 0 for one in found.raw]
    test = settings.tests[pair.metric]
    if test == "proportion" or (all(constant) and _all_against_none(pair, row)):
        return _proportion(row, pair, settings), False
    row = but(row, *pair.cautions)
    if all(constant) or not varies:
        return but(row, "zero_variance"), False
    if any(constant):
        return but(row, "constant_arm"), False
    if settings.sequential_n is not None and {"skewed", "skewness_not_checked"} & {*row["warning"].split("; ")}:
        return but(row, "sequential_refused"), False
    return _welch(row, pair.n, found, settings) if test == "t" else row, True


def _start(pair: Pair, settings: Settings) -> Row:
    """What is known before anything is estimated."""
    test = settings.tests[pair.metric]
    how = [{"t": "welch", "proportion": "welch"}.get(test, test) if settings.sequential_n is None else "sequential"]
    row = dict.fromkeys(VARIANT_RESULT_COLUMNS, np.nan) | {
        "metric": pair.metric,
        "n_dropped": sum(pair.n_dropped),
        "method": "+".join([*how, *(["cluster"] if pair.clustered else [])]),
        "cap": pair.cap,
        "n_covariate_missing": pair.n_covariate_missing,
        "warning": "",
    }
    for i, side in enumerate(("control", "treatment")):
        row |= {f"n_{side}": pair.n[i], f"n_dropped_{side}": pair.n_dropped[i], f"mean_{side}": pair.means[i]}
    return but(row, *pair.warnings)


def _bare(row: Row, pair: Pair) -> Row:
    """Means where they exist, and no statistics."""
    control, treatment = map(np.float64, pair.means)
    with np.errstate(over="ignore", invalid="ignore"):
        diff = treatment - control
        relative = treatment / control - 1 if control > 0 else np.float64(np.nan)
    found = {"diff": float(diff), "rel_diff": float(relative)}
    return but(row, pair.problem, **{name: one if np.isfinite(one) else np.nan for name, one in found.items()})


def _method(method: str, how: str) -> str:
    """The test, then the adjustment, then the cluster, as in "welch+cuped+cluster"."""
    test, _, cluster = method.partition("+")
    return "+".join(part for part in (test, how, cluster) if part)


def _all_against_none(pair: Pair, row: Row) -> bool:
    """Whether every user of one arm has a 1 and every user of the other a 0: no variance, yet a clear difference."""
    unadjusted = pair.plain and np.isnan(row["mean_control_adjusted"])
    return bool(unadjusted) and {row["mean_control"], row["mean_treatment"]} == {0.0, 1.0}


def _welch(row: Row, n: tuple[int, int], found: ArmsEstimate, settings: Settings) -> Row:
    """The row with Welch's test, or the one that holds at all looks, and the smallest effect that this test finds."""
    planned, multiplier = settings.sequential_n, None
    if planned is not None:
        multiplier = float(always_valid_multiplier(sum(n), planned, settings.confidence))
    tested = effect(*found.arms, settings.alternative, settings.confidence, settings.relative, multiplier)
    if planned is None or multiplier is None:
        factor = detectable_t(tested.df, 1 - settings.confidence, POWER, settings.alternative)
    else:
        tested = tested._replace(p_value=always_valid_p(tested.statistic, sum(n), planned, settings.confidence))
        factor = beyond(multiplier, POWER)
    return _with_effect(row, tested, mde=factor * tested.se)


def _with_effect(row: Row, tested: Effect, **more: Number | str) -> Row:
    """The row with the numbers of its test beside the difference that it has."""
    numbers = {name: value for name, value in tested._asdict().items() if name not in ("diff", "rel_diff")}
    return but(row, **numbers, **more)


def _proportion(row: Row, pair: Pair, settings: Settings) -> Row:
    """The row by Fisher's test and Newcombe's interval."""
    # The mean of zeros and ones is their number over n, but for a rounding error that is far below 1/n.
    yes = round(row["mean_control"] * pair.n[0]), round(row["mean_treatment"] * pair.n[1])
    found = compare_shares(yes, pair.n, alternative=settings.alternative, confidence=settings.confidence)
    factor = detectable(1 - settings.confidence, POWER, settings.alternative)
    # Without a difference both arms have the share of all users, which has a spread where one arm has none.
    share = sum(yes) / sum(pair.n)
    pooled = float(np.sqrt(share * (1 - share) * (1 / pair.n[0] + 1 / pair.n[1])))
    return _with_effect(row, found, mde=factor * pooled if pooled > 0 else np.nan, method="proportion")
