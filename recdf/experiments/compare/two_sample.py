"""One treatment against the control: the estimates of both arms in, a row of numbers out.

`without_top` adds whether a few units decide.

Contract: estimates come from the users of both arms (`arms_of_users`), or from moments of their
values (`from_moments`), and the row is the same. It is begun by `first_row`; `compare_pair` adds
what the estimates tell, or `without_estimate` why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import DataError
from ...judge.cautions import TINY
from ...judge.choices import Row
from ...judge.comparisons import VARIANT_RESULT_COLUMNS
from ...judge.effects.means import MeanEffect
from ...judge.effects.units import Units
from ...judge.per_user_columns import Codes, Floats, MetricColumns, exact_sums, mean_of
from ...judge.verdict import VERDICT_COLUMNS
from ...stats.always_valid import always_valid_multiplier, always_valid_p
from ...stats.arms import MEAN_ROUNDING, effect
from ...stats.numbers import Number, undefined_is_nan
from ...stats.shares import compare_shares
from ...stats.student import beyond, detectable, detectable_t, t_p_value
from ..samples import Ready, Settings, Worth

# Power of the `mde` column.
POWER = 0.8
# |k| beyond which the t interval lies on the wrong side: every simulated setting with a type I
# error of 10 % or more is above it.
SKEWED_SAMPLES = 0.2


def measured_means(specs: Mapping[str, MetricColumns]) -> dict[str, str]:
    """Name → the column whose mean it is, or ""."""
    return {name: mean_of(columns) for name, columns in specs.items()}


def but(row: Row, *remarks: str, **changes: Number | str) -> Row:
    """The row with other numbers and more remarks."""
    new = {
        name: value if isinstance(value, str) else float(value) for name, value in changes.items()
    }
    return {**row, **new, "remarks": "; ".join(filter(None, [row["remarks"], *remarks]))}


def first_row(ready: Ready, settings: Settings) -> Row:
    """What is known before anything is estimated: units that count and that are left out (NaN if
    unknown), of both."""
    test, n, n_dropped = settings.tests[ready.name], ready.units.n, ready.n_dropped
    if test == "proportion" and not ready.kind.share:
        raise DataError(
            f'metric {ready.name!r} has values other than 0 and 1; ⟦+test="proportion"⟧ compares '
            "shares of users, so give it a column such as hitrate@10"
        )
    how: str = "sequential" if settings.sequential_n is not None else test
    how = {"t": "welch", "proportion": "welch"}.get(how, how)
    numbers = "turned_down", "most_moved", "n_clusters", "n_counted", "zeros", "evenness"
    row = dict.fromkeys([*VARIANT_RESULT_COLUMNS[: -len(VERDICT_COLUMNS)], *numbers], np.nan) | {
        **dict.fromkeys(("detail", "unbalanced", "holds_for", "remarks"), ""),
        "metric": ready.name,
        "n_control": n[0],
        "n_treatment": n[1],
        "n_dropped": sum(n_dropped),
        "n_dropped_control": n_dropped[0],
        "n_dropped_treatment": n_dropped[1],
        "method": how + "+cluster" * ready.units.clustered,
        "cap": ready.cap,
        "skewed_by": 0.0,
        "worth": Worth(),
        "n_covariate_missing": ready.n_covariate_missing,
    }
    return but(row, *ready.remarks)


def without_estimate(row: Row, problem: str, units: Units) -> Row:
    """The row with means, or ratios, of values that may be huge, where they exist; without
    statistics."""
    record = units.whole.record
    num, *dens = record.mean.T
    with undefined_is_nan():
        den = np.where(record.n > 0, dens[0] if dens else 1.0, np.nan)
        control, treatment = np.where(den != 0, num / den, np.nan)
        ends = treatment - control, treatment / control - 1 if control > 0 else np.nan
    diff, relative = np.where(np.isfinite(ends), ends, np.nan)
    of_arms = {"mean_control": control, "mean_treatment": treatment}
    return but(row, problem, **of_arms, diff=diff, rel_diff=relative)


def compare_pair(
    row: Row, found: MeanEffect, settings: Settings, of_units: Mapping[str, Any]
) -> tuple[Row, bool]:
    """Return the row with its estimates and its test; False where no test can be made.

    `of_units` is what cautions about the test read.
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
        n_typical_control=found.units.typical[0],
        n_typical_treatment=found.units.typical[1],
        method="+".join(filter(None, (test, found.how, cluster))),
    )
    constant = [not one.var > 0 for one in found.raw]
    # Every user of one arm has a 1 and every user of the other a 0: no variance, yet a clear
    # difference.
    plain = found.units.metric.den is None and not found.how
    all_against_none = plain and {row["mean_control"], row["mean_treatment"]} == {0.0, 1.0}
    if settings.tests[row["metric"]] == "proportion" or (all(constant) and all_against_none):
        return _proportion(row, settings), False
    row = but(row, **of_units)
    if all(constant) or not varies:
        return but(row, "zero_variance"), False
    if any(constant):
        return but(row, "constant_arm"), False
    if settings.sequential_n is not None and not row["skewed_by"] <= 1:
        return but(row, "sequential_refused"), False
    return _welch(row, found, settings) if settings.tests[row["metric"]] == "t" else row, True


def _welch(row: Row, found: MeanEffect, settings: Settings) -> Row:
    """The row with Welch's test, or the one that holds at all looks, and the smallest effect that
    this test finds."""
    n = row["n_control"] + row["n_treatment"]
    multiplier = None
    alternative, confidence = given = settings.alternative, settings.confidence
    if (planned := settings.sequential_n) is not None:
        multiplier = always_valid_multiplier(n, planned, confidence, alternative)
    tested = effect(*found.arms, *given, settings.relative, multiplier, found.diff)
    if found.score is not None:
        tested = found.score.test(tested, *given, multiplier)
    if planned is None or multiplier is None:
        factor = detectable_t(tested.df, settings.alpha, POWER, alternative)
    else:
        p = always_valid_p(tested.statistic, n, planned, confidence, alternative)
        tested = tested._replace(p_value=p)
        factor = beyond(multiplier, POWER)
    return but(row, **tested._asdict(), mde=factor * tested.se)


def _proportion(row: Row, settings: Settings) -> Row:
    """The row by Fisher's test and Newcombe's interval."""
    n = row["n_control"], row["n_treatment"]
    # The mean of zeros and ones is their number over n, but for a rounding error that is far below
    # 1/n.
    yes = round(row["mean_control"] * n[0]), round(row["mean_treatment"] * n[1])
    found = compare_shares(yes, n, settings.alternative, settings.confidence)
    factor = detectable(settings.alpha, POWER, settings.alternative)
    # Without a difference both arms have the share of all users, which has a spread where one arm
    # has none.
    share = sum(yes) / sum(n)
    pooled = np.sqrt(share * (1 - share) * (1 / n[0] + 1 / n[1]))
    mde = factor * pooled if pooled > 0 else np.nan
    return but(row, **found._asdict(), mde=mde, method="proportion")


# Units that are left out: ten, or of fewer than 200 units 5 %, but at least one.
MOST_TOP_UNITS, OF_UNITS = 10, 20
# If a test rejects with the top units, they decide if the rest is not significant and has less than
# this share of the difference: a broad effect that is barely significant loses less. Of n units
# fewer than MANY, the top ones are a large part of any effect, and the share is n/MANY of it. If it
# does not reject, they hide what is significant at HIDDEN.
KEPT_SHARE, MANY_UNITS, HIDDEN = 0.5, 1000, 0.001
# Top units that move the difference by fewer standard errors than this cannot turn a verdict.
MOVED = 0.25
# Distances that differ relatively by less are the same.
_TIED = 1e-12


def n_top(n: int) -> int:
    """How many of n units are left out."""
    return min(MOST_TOP_UNITS, max(1, n // OF_UNITS))


def top_units(values: Floats, k: int, count: Floats | None = None) -> tuple[Codes, Floats, bool]:
    """The places of the k units with the largest absolute values, how many of each to leave out,
    and whether some are left out as a whole. A value is that of `count` units, or of one.

    Of units that are equally far a part is left out, so that neither the arm nor the order of rows
    decides.
    """
    far = np.abs(values)
    if count is None:
        cut = np.partition(far, -k)[-k]
        count = np.ones(len(far))
    else:
        order = np.argsort(-far, kind="stable")
        cut = far[order[np.searchsorted(np.cumsum(count[order]), k)]]
    above = far > cut * (1 + _TIED)
    tied = ~above & (far >= cut * (1 - _TIED))
    out = above + tied * ((k - count[above].sum()) / count[tied].sum())
    (places,) = np.nonzero(out)
    return places, (out * count)[places], (out == 1).any()


def _less_top(found: MeanEffect, top: Codes, out: Floats) -> tuple[list[float], list[float]]:
    """The difference of both arms with all units, and without a part of the top ones; and the
    variances of both.

    A ratio is recomputed from its sums. Anything else moves as the units' values do, in the strata
    of the estimate.
    """
    values = found.values
    ratio = not found.how and found.units.metric.den is not None
    units = found.units.whole if ratio else values.units
    record, cell = units.record, units.cell[top]
    n = record.n

    def sums(of_top: Floats) -> Floats:
        return exact_sums(out * of_top, cell, len(n))

    one = np.ones(len(top))
    weights, forms = values.weights, [values.form] * 2
    num, den = values.z(top), one
    mean, size = values.means, np.ones(len(n))
    if ratio:
        num, den = (x[top] for x in units.columns)
        mean, size = record.mean.T
        weights = np.ones((2, 1))
    share = np.array([[0.0], [1.0]])  # what is left out: nothing, and the part of the top units
    total, divisor = n * mean - share * sums(num), n * size - share * sums(den)
    own = np.divide(total, divisor, out=np.full(total.shape, np.nan), where=divisor > 0)
    of_arms = own.reshape(2, *weights.shape)
    of = np.where(weights > 0, weights * of_arms, 0.0).sum(axis=2)
    if ratio:
        forms = [np.column_stack([np.ones(2), -x]) for x in own]
    squares = np.array([*map(record.squares, forms)]) + n * (mean - own * size) ** 2
    squares[1] -= sums((num - own[1, cell] * den) ** 2)
    left = n - share * sums(one)
    free = np.where(divisor > 0, divisor**2 * (left - 1), 0.0)
    factors = np.divide(weights.ravel() ** 2 * left, free, out=np.zeros(free.shape), where=free > 0)
    return (of[:, 1] - of[:, 0]).tolist(), (factors * squares).sum(axis=1).tolist()


def without_top(row: Row, found: MeanEffect, settings: Settings) -> Row:
    """The row with its difference without the top units, and with a remark where they decide."""
    n_units = found.units.n
    k = n_top(sum(n_units))
    if found.units.moments or not np.isfinite(row["diff"]) or min(n_units) < 2 * k:
        return row
    far = found.values.farthest(k)
    # A thin arm or stratum with most of the variance is judged by its own size, however many units
    # are elsewhere: two equal arms of so many units have a variance that is as well known.
    n = float(sum(n_units))
    both_var = found.arms[0].var + found.arms[1].var
    if both_var > 0:
        n = min(n, 2 + 1 / sum(float((one.var / both_var) ** 2 / one.df) for one in found.arms))
    places, out, distinct = top_units(far.values, k, far.n_equal)
    (whole, rest), (var, rest_var) = _less_top(found, far.rows[places], out)
    moved = rest - whole
    if np.isnan(moved):
        return row
    diff = row["diff"] + moved
    row = but(row, diff_without_top=diff)
    # If only a part of each top unit is left out, many are equally far, and no few of them decide.
    if min(n_units) < TINY or not distinct or not row["se"] > 0 or abs(moved) < MOVED * row["se"]:
        return row
    # What is left of a variance may be rounding error.
    se = row["se"] * np.sqrt(rest_var / var) if rest_var > _TIED * var else 0.0
    p = t_p_value(diff / se, n - k - 2, settings.alternative) if se > 0 else 1.0
    alpha = settings.alpha
    decides = p <= min(HIDDEN, alpha)
    if row["p_value"] <= alpha:
        kept = diff / row["diff"]
        decides = kept < 0 or (p > alpha and kept < KEPT_SHARE * min(1.0, n / MANY_UNITS))
    return but(row, "few_units") if decides else row
