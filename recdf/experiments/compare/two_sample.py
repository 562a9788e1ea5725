"""One treatment against the control: the estimates of both arms in, a row of numbers out.

Contract: estimates come from the users of both arms (`arms_of_users`), or from moments of their
values (`compare_from_moments`), and the row is the same. It is begun by `first_row`; `compare_pair`
adds what the estimates tell, or `without_estimate` why there are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import DataError
from ...judge.effects.means import MeanEffect
from ...judge.verdict import VERDICT_COLUMNS, codes_of
from ...stats.always_valid import always_valid_multiplier, always_valid_p
from ...stats.effect_sizes import Effect, effect
from ...stats.moments import MEAN_ROUNDING
from ...stats.numbers import Number
from ...stats.power import beyond, detectable, detectable_t
from ...stats.shares import compare_shares
from ..experiment_columns import MetricColumns
from ..settings import Settings

VARIANT_RESULT_COLUMNS = [
    "metric",
    "control",
    "treatment",
    "n_control",
    "n_treatment",
    "n_dropped",
    "n_dropped_control",
    "n_dropped_treatment",
    "mean_control",
    "mean_treatment",
    "mean_control_adjusted",
    "mean_treatment_adjusted",
    "diff",
    "se",
    "se_control",
    "se_treatment",
    "ci_low",
    "ci_high",
    "rel_diff",
    "rel_ci_low",
    "rel_ci_high",
    "statistic",
    "df",
    "p_value",
    "p_adj",
    "reject",
    "mde",
    "confidence",
    "method",
    "cap",
    "theta",
    "variance_reduction",
    "n_covariate_missing",
    "mean_denominator_control",
    "mean_denominator_treatment",
    "p_denominator",
    "diff_without_top",
    "design_effect",
    "srm_p",
    "seen_loss",
    "balance_p",
    "unbalanced",
    "better",
    *VERDICT_COLUMNS,
]

# Power of the `mde` column.
POWER = 0.8
# Fewer units than this in an arm, or fewer clusters, are named in a remark.
TINY = 20
# |k| beyond which the t interval lies on the wrong side: every simulated setting with a type I
# error of 10 % or more is above it.
SKEWED_SAMPLES = 0.2


def measured_means(specs: Mapping[str, MetricColumns]) -> dict[str, str]:
    """Name → the column whose mean it is, "" for other ratios: `m` over `m__n` is the mean of m
    over lists."""
    return {name: num if den in (None, f"{num}__n") else "" for name, (num, den) in specs.items()}


def no_share(metric: str) -> DataError:
    """Return the error for a metric that is to be compared as a share and is none."""
    return DataError(
        f'metric {metric!r} has values other than 0 and 1; ⟦+test="proportion"⟧ compares shares of '
        "users, so give it a column such as hitrate@10"
    )


# Numbers of one metric and treatment by the names of the columns, NaN for what is not known (yet).
Row = dict[str, Any]


def but(row: Row, *remarks: str, **changes: Number | str) -> Row:
    """The row with other numbers and more remarks."""
    new = {
        name: value if isinstance(value, str) else float(value) for name, value in changes.items()
    }
    return {**row, **new, "remarks": "; ".join(filter(None, [row["remarks"], *remarks]))}


def first_row(
    metric: str,
    settings: Settings,
    n: tuple[int, int],
    n_dropped: tuple[float, float],
    remarks: Sequence[str],
    *,
    clustered: bool = False,
    cap: float = np.nan,
    n_covariate_missing: int = 0,
) -> Row:
    """What is known before anything is estimated: units that count and that are left out (NaN if
    unknown), of both."""
    test = "sequential" if settings.sequential_n is not None else settings.tests[metric]
    row = dict.fromkeys(VARIANT_RESULT_COLUMNS, np.nan) | {
        "metric": metric,
        "n_control": n[0],
        "n_treatment": n[1],
        "n_dropped": sum(n_dropped),
        "n_dropped_control": n_dropped[0],
        "n_dropped_treatment": n_dropped[1],
        "method": {"t": "welch", "proportion": "welch"}.get(test, test) + "+cluster" * clustered,
        "cap": cap,
        "n_covariate_missing": n_covariate_missing,
        "remarks": "",
    }
    return but(row, *remarks)


def without_estimate(row: Row, problem: str, means: tuple[float, float]) -> Row:
    """Means where they exist, and no statistics."""
    control, treatment = map(np.float64, means)
    with np.errstate(over="ignore", invalid="ignore"):
        diff = treatment - control
        relative = treatment / control - 1 if control > 0 else np.float64(np.nan)
    found = {
        name: one if np.isfinite(one) else np.nan
        for name, one in (("diff", diff), ("rel_diff", relative))
    }
    return but(row, problem, mean_control=control, mean_treatment=treatment, **found)


def compare_pair(
    row: Row, found: MeanEffect, settings: Settings, cautions: Sequence[str], plain: bool = True
) -> tuple[Row, bool]:
    """Return the row with its estimates and its test; False where no test can be made.

    `cautions` are remarks about the test, and `plain` units are users whose mean is estimated.
    """
    test, _, cluster = row["method"].partition("+")
    control, treatment = (float(one.mean) for one in found.arms)
    varies = any(one.var > 0 for one in found.arms)
    diff = found.diff
    if not varies and abs(diff) <= MEAN_ROUNDING * abs(control):
        treatment, diff = control, 0.0  # the means of equal values differ by rounding error
    row = but(
        row,
        mean_control=found.raw[0].mean,
        mean_treatment=found.raw[1].mean,
        mean_control_adjusted=control if found.how else np.nan,
        mean_treatment_adjusted=treatment if found.how else np.nan,
        diff=diff,
        se_control=np.sqrt(found.arms[0].var),
        se_treatment=np.sqrt(found.arms[1].var),
        rel_diff=treatment / control - 1 if control > 0 else np.nan,
        theta=found.slope,
        variance_reduction=found.reduction,
        method="+".join(filter(None, (test, found.how, cluster))),
    )
    constant = [not one.var > 0 for one in found.raw]
    # Every user of one arm has a 1 and every user of the other a 0: no variance, yet a clear
    # difference.
    all_against_none = (
        plain and not found.how and {row["mean_control"], row["mean_treatment"]} == {0.0, 1.0}
    )
    if settings.tests[row["metric"]] == "proportion" or (all(constant) and all_against_none):
        return _proportion(row, settings), False
    row = but(row, *cautions)
    if all(constant) or not varies:
        return but(row, "zero_variance"), False
    if any(constant):
        return but(row, "constant_arm"), False
    if settings.sequential_n is not None and {"skewed", "skewness_not_checked"} & {
        *codes_of(row["remarks"])
    }:
        return but(row, "sequential_refused"), False
    return _welch(row, found, settings) if settings.tests[row["metric"]] == "t" else row, True


def _welch(row: Row, found: MeanEffect, settings: Settings) -> Row:
    """The row with Welch's test, or the one that holds at all looks, and the smallest effect that
    this test finds."""
    planned, multiplier, n = settings.sequential_n, None, row["n_control"] + row["n_treatment"]
    if planned is not None:
        multiplier = float(
            always_valid_multiplier(n, planned, settings.confidence, settings.alternative)
        )
    tested = effect(
        *found.arms,
        settings.alternative,
        settings.confidence,
        settings.relative,
        multiplier,
        found.diff,
    )
    if found.score is not None:
        of = settings.alternative, settings.confidence, multiplier
        tested = found.score.test(tested, *of)
    if planned is None or multiplier is None:
        factor = detectable_t(tested.df, settings.alpha, POWER, settings.alternative)
    else:
        p = always_valid_p(tested.statistic, n, planned, settings.confidence, settings.alternative)
        tested = tested._replace(p_value=p)
        factor = beyond(multiplier, POWER)
    return _with_effect(row, tested, mde=factor * tested.se)


def _with_effect(row: Row, tested: Effect, **more: Number | str) -> Row:
    """The row with the numbers of its test beside the difference that it has."""
    numbers = {
        name: value for name, value in tested._asdict().items() if name not in ("diff", "rel_diff")
    }
    return but(row, **numbers, **more)


def _proportion(row: Row, settings: Settings) -> Row:
    """The row by Fisher's test and Newcombe's interval."""
    n = row["n_control"], row["n_treatment"]
    # The mean of zeros and ones is their number over n, but for a rounding error that is far below
    # 1/n.
    yes = round(row["mean_control"] * n[0]), round(row["mean_treatment"] * n[1])
    found = compare_shares(yes, n, alternative=settings.alternative, confidence=settings.confidence)
    factor = detectable(settings.alpha, POWER, settings.alternative)
    # Without a difference both arms have the share of all users, which has a spread where one arm
    # has none.
    share = sum(yes) / sum(n)
    pooled = float(np.sqrt(share * (1 - share) * (1 / n[0] + 1 / n[1])))
    return _with_effect(
        row, found, mde=factor * pooled if pooled > 0 else np.nan, method="proportion"
    )
