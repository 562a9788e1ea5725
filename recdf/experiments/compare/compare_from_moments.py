"""Compare the variants of an experiment on moments of their users."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Never

import numpy as np
import pandas as pd

from ...errors import OptionError
from ...inputs.options import check_names, says_as
from ...judge.effects.means import MeanEffect
from ...stats.arms import arm_of_moments, both
from ...stats.moments import HUGE, Moments, may_be_skewed, skewness_of_means
from ...stats.numbers import Floats
from ..choices import Alternative, Columns, Correction, Relative, VariantTest
from ..decide.adjust_pvalues import directions
from ..decide.sample_ratio import Arms, check_sample_ratio, without_strata
from ..samples import subset
from ..settings import Settings, check_together, which_tests
from ..units import differ
from .compare_variants import compare_variants
from .two_sample import (
    SKEWED_SAMPLES,
    TINY,
    Row,
    compare_pair,
    first_row,
    measured_means,
    no_share,
    without_estimate,
)
from .variant_moments import GIVE_ROWS, MomentTable, read_moments
from .variant_table import compare_each, decide

# Options of compare_variants that `variant_moments` has, since they are about rows.
_OF_ROWS = ("nan", "user_col")
# Moments of zeros and ones have the variance p(1 − p); this is how far rounding may take it from
# there.
_ROUNDING = 1e-9


@says_as(compare_variants)
def compare_variants_from_moments(
    moments: pd.DataFrame,
    metrics: Columns | None = None,
    *,
    control: Any,
    variant_col: str = "variant",
    by: Columns | None = None,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    correction: Correction = "holm",
    family: Columns | None = None,
    primary: Columns | None = None,
    sequential_n: int | None = None,
    expected: Mapping[Any, float] | None = None,
    health: pd.DataFrame | None = None,
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    test: VariantTest | Mapping[str, VariantTest] = "t",
    relative: Relative = "fieller",
    **needs_users: Never,
) -> pd.DataFrame:
    """Compare every variant with the control, from the moments of its users: the table of
    `compare_variants`.

    With m the mean, s the standard deviation and n the number of users of an arm: v = s²/n, se =
    √(v_c + v_t), t = (m_t − m_c)/se, df = (v_c + v_t)²/(v_c²/(n_c − 1) + v_t²/(n_t − 1)) (Welch).
    Rows of the same segment, variant and metric are parts of the users, and are added first.

    Parameters
    ----------
    moments : DataFrame
        One row per (`by`, variant, metric), or several, each of other users: what `variant_moments`
        returns, or several of its frames joined with `pd.concat`. Moments that another program
        computed need the columns `variant_col`, `metric`, `n`, `mean` and `std`; see the notes for
        `n_null`, `skewness`, `min` and `max`.
    metrics : str or list of str, optional
        Metrics to compare. Default: all.
    {control, variant_col, by, alternative, confidence, correction, family, primary, sequential_n}
    expected : mapping, optional
        Planned share of every variant. When users per variant do not fit it (χ², p < 0.001), the
        verdict is "invalid: sample ratio". With `by`, users are counted in each segment only, since
        they may be in several.
    health : DataFrame, optional
        What `experiment_health` found, in place of `expected`.
    smaller_is_better, larger_is_better : str or list of str, optional
        Metrics of which less, or more, is better. Default: what recdf knows of columns such as
        first_rank@10; for other names larger is better. With `smaller_is_better` alone, all others
        are larger.
    {test, relative}
    **needs_users
        The other options of `compare_variants` need the users, so each of them is an error that
        says what to do.

    Returns
    -------
    DataFrame
        The table that `compare_variants` makes of the users, with the same columns, remarks and
        verdicts. Two remarks say what moments without all columns cannot tell:
        "missing_not_checked" and "skewness_not_checked".

    Raises
    ------
    ColumnError, NullKeyError
        A column is missing, or is neither a moment nor named in `by`; a variant, segment or metric
        is null.
    OptionError
        An option that needs the users; an unknown option or metric; control absent; fewer than two
        variants; `expected` without `n_null`.
    DataError
        Moments that no users have (a negative `std`, a mean that is not between `min` and `max`);
        metrics of different numbers of users; a proportion of values other than 0 and 1.
    MissingExtraError
        If SciPy is not installed (proportions of two variants need none).

    Notes
    -----
    Use it where the users do not fit in memory. Do not use it where they do: `compare_variants`
    also takes ratios, covariates, strata, clusters and resampling. Moments have no dates, so a
    ramp-up shows only with the period in `by`. They do not hold single users either:
    `diff_without_top` is null, and nobody can say whether a few units decide.

    Without `n_null`, the users whose metric is null, it is not tested whether they are more in one
    arm: the remark "missing_not_checked", and null in `n_dropped`. Without `skewness` the remark
    is "skewness_not_checked" where arms are so unequal that it could matter (beyond 55 : 45), and
    `sequential_n` is refused there. `skewness` is that of `scipy.stats.skew` and of Spark's
    function of this name. `min` and `max` only show values that are not right.

    References
    ----------
    Welch 1947; Chan, Golub, LeVeque 1983 (moments of parts); Fieller 1954; Newcombe 1998
    (proportions).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame(
    ...     {"user_id": range(40), "variant": ["A", "B"] * 20, "hits": [1, 2, 3, 4, 2, 5, 3, 4] * 5}
    ... )
    >>> shards = [
    ...     rd.experiments.variant_moments(users[users["user_id"] % 3 == i], "hits")
    ...     for i in range(3)
    ... ]
    >>> table = rd.experiments.compare_variants_from_moments(
    ...     pd.concat(shards), control="A", larger_is_better="hits"
    ... )
    >>> table[["metric", "n_control", "diff", "ci_low", "ci_high"]].round(3)
      metric  n_control  diff  ci_low  ci_high
    0   hits         20   1.5   0.863    2.137
    """
    _refuse_options(needs_users)
    table = read_moments(moments, variant_col, by, metrics)
    specs = {name: (name, None) for name in table.metrics}
    tests = which_tests(test, specs)
    for one in sorted({*tests.values()} - {"t", "proportion"}):
        raise OptionError(
            f"⟦test={one!r}⟧ needs one row per user, and moments are sums over users; {GIVE_ROWS}"
        )
    decisive = subset("primary", primary, specs)
    settings = Settings(
        tests,
        alternative,
        confidence,
        correction,
        family,
        decisive,
        sequential_n=sequential_n,
        relative=relative,
    )
    check_together(settings)
    better = directions(measured_means(specs), smaller_is_better, larger_is_better)
    _check_shares(table, settings)
    arms = Arms.of(table.groups, table.variants, control, "moments")
    ratio = check_sample_ratio(
        expected, health, arms, lambda _: without_strata(_users_of_moments(table, health))
    )

    def compare_both(group: int, pair: tuple[int, int]) -> list[Row]:
        return [
            _row_of_moments(table, metric, group, pair, settings) for metric in range(len(specs))
        ]

    return decide(arms, compare_each(arms, compare_both), ratio, better, settings)


def _refuse_options(given: Mapping[str, Any]) -> None:
    """Raise for options of compare_variants that need the users, unless they have their default
    value."""
    of_users = inspect.signature(compare_variants).parameters
    own = [
        name
        for name in inspect.signature(compare_variants_from_moments).parameters
        if name != "needs_users"
    ]
    check_names(
        [name for name in given if name not in of_users],
        own,
        "rd.experiments.compare_variants_from_moments",
    )
    for name, value in given.items():
        default = of_users[name].default
        if name in _OF_ROWS:
            raise OptionError(
                f"⟦{name}=⟧ is about users and not about moments; pass it to "
                "rd.experiments.variant_moments"
            )
        if name != "progress" and value is not default and value != default:
            raise OptionError(
                f"⟦{name}=⟧ needs one row per user, and moments are sums over users; {GIVE_ROWS}"
            )


def _check_shares(table: MomentTable, settings: Settings) -> None:
    """Refuse a proportion of a metric whose moments are not those of zeros and ones."""
    for i, name in enumerate(table.metrics):
        if settings.tests[name] != "proportion":
            continue
        n, mean, var, _, low, high = (np.asarray(values)[:, :, i] for values in table.moments)
        with np.errstate(over="ignore", invalid="ignore"):
            like = np.isclose(var, mean * (1 - mean), rtol=_ROUNDING, atol=1e-15)
            share = (mean >= 0) & (mean <= 1) & ~(low < 0) & ~(high > 1)
        if (n > 0)[~(share & like)].any():
            raise no_share(name)


def _users_of_moments(table: MomentTable, health: pd.DataFrame | None) -> Floats:
    """Users per variant, whatever their metric, and of all segments, which may have the same
    users."""
    users = table.n_users[:, :, 0]
    if health is not None:
        users = np.where(np.isnan(users), np.asarray(table.moments.n)[:, :, 0], users)
    if np.isnan(users).any():
        raise OptionError(
            "⟦expected=⟧ counts users, also those whose metric is null, so moments need the column "
            "'n_null' (0 if no metric is null); or pass ⟦+health=⟧"
        )
    return np.vstack([users, users[0] if len(users) == 1 else np.full(users.shape[1], np.nan)])


def _row_of_moments(
    table: MomentTable, metric: int, group: int, variants: tuple[int, int], settings: Settings
) -> Row:
    """Compare both arms of a metric, the control first, unless there is nothing to estimate."""
    moments = both(lambda variant: table.at(group, variant, metric), variants)
    n = both(lambda one: int(one.n), moments)
    n_null = both(lambda variant: float(table.n_null[group, variant, metric]), variants)
    warnings: tuple[str, ...] = ("missing_not_checked",)
    if not np.isnan(n_null).any():
        n_null = both(int, n_null)
        warnings = (
            ("unequal_missing",) if differ(n_null, both(lambda *some: sum(some), n, n_null)) else ()
        )
    row = first_row(table.metrics[metric], settings, n, n_null, warnings)
    huge = any(one.largest >= HUGE or np.isnan(one.var) for one in moments)
    if problem := "too_few_users" if min(n) < 2 else "huge_values" if huge else "":
        return without_estimate(row, problem, both(lambda one: one.mean, moments))
    arms = both(arm_of_moments, moments)
    cautions = () if settings.tests[row["metric"]] == "proportion" else _moment_cautions(*moments)
    return compare_pair(
        row, MeanEffect(arms, arms, float(arms[1].mean - arms[0].mean)), settings, cautions
    )[0]


def _moment_cautions(control: Moments, treatment: Moments) -> tuple[str, ...]:
    """Warnings about the users that the test is made of."""
    skewness = (
        skewness_of_means(control, treatment)
        if may_be_skewed(control.n, treatment.n, SKEWED_SAMPLES)
        else 0.0
    )
    cautions = {
        "tiny": min(control.n, treatment.n) < TINY,
        "skewness_not_checked": np.isnan(skewness),
        "skewed": abs(skewness) > SKEWED_SAMPLES,
    }
    return tuple(word for word, holds in cautions.items() if holds)
