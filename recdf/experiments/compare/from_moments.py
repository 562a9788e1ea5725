"""Moments of users by variant, and the comparison of variants that is made of them."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Mapping
from itertools import chain
from typing import Any, Never

import numpy as np
from pandas import DataFrame

from ...docstrings import says_as
from ...errors import DataError, DuplicateError, OptionError
from ...inputs.constraints import OneLabel
from ...inputs.door import checks_names, takes_options
from ...inputs.options import Options, check_names
from ...judge.choices import (
    TESTS,
    Alternative,
    AnySpec,
    Columns,
    Correction,
    NamedMetrics,
    PlannedShares,
    RaiseOrDrop,
    Relative,
    VariantTest,
    check_options_of_tests,
)
from ...judge.per_user_columns import (
    CovariateColumns,
    Floats,
    MetricColumns,
    metric_specs,
    warn_of_weights,
)
from ...judge.users import ExperimentRows, read_experiment_rows
from ...stats.arms import linearise, moments_of
from ...stats.numbers import undefined_is_nan
from ..decide.adjust_pvalues import directions
from ..decide.balance import shares_change
from ..samples import (
    MetricRows,
    Settings,
    covariate_specs,
    declared_bounds,
    read_metrics,
    subset,
    which_tests,
)
from .arms_of_users import with_repeats
from .moment_table import (
    CELL_NUMBERS,
    MomentArms,
    MomentTable,
    label_columns,
    names_of_metrics,
    read_moments,
)
from .summed_users import needed_columns
from .two_sample import measured_means
from .variants import compare_users, compare_variants

# What to do instead where a function has moments and needs the users.
GIVE_ROWS = (
    "call ⟦rd.compare_variants⟧ on one row per user in memory (result.to_pandas(), then "
    "join_experiment), or on those of a sample of the users by a hash of their id"
)
# The level of the test that the shares of the variants change. It is low, since a call may get one
# of many parts of the users, and an alarm is an error.
OF_A_PART = 1e-6


@takes_options("user_col", "by")
def variant_moments(
    data: DataFrame,
    metrics: NamedMetrics,
    *,
    covariates: NamedMetrics | None = None,
    variant_col: str = "variant",
    by: Columns | None = None,
    nan: RaiseOrDrop = "raise",
    user_col: Columns | None = None,
    options: Options | None = None,
) -> DataFrame:
    """Reduce users to the moments of each variant, from which `compare_variants_from_moments` makes
    its table.

    Moments of parts of the users add up: join the frames of several parts with `pd.concat`. Each
    user must be in one part only, such as a shard by the hash of the user's id. Moments of days do
    not add up, since a user of two days would count twice.

    Parameters
    ----------
    data : DataFrame
        One row per user, as `join_experiment` returns it: all users, or a part of them.
    metrics : str, list of str or mapping
        Metric columns; also name → (numerator, denominator), a ratio of sums.
    covariates : str, list of str or mapping, optional
        Pre-period columns, as in `compare_variants`: one of a mean, any number of a ratio. They
        may have no nulls.
    variant_col : str, default "variant"
        Column of the variant.
    by : str or list of str, optional
        Segments: every one has moments of its own.
    nan : {"raise", "drop"}, default "raise"
        Users whose metric is null: error, or leave them out of that metric and count them in
        `n_null`.
    user_col : str or list of str, optional
        Key that must be unique (within `by`). Default: "user_id" if there is such a column; else
        rows are users. If you name it, no other column, such as stores, is taken for what was
        assigned.
    options : Options, optional
        `user_col` and `by` of a project, where they are not given here.

    Returns
    -------
    DataFrame
        One row per (`by`, variant, metric) with users: `by`, the column of the variant, `metric`,
        `n` (users with a value, int64), `n_null` (users without one, int64), `mean`, `std` = √(Σ(y
        − mean)²/(n − 1)) (null for n < 2), `skewness` = (Σ(y − mean)³/n)/(Σ(y − mean)²/n)^1.5 (0
        where all values are equal), `min`, `max`. With values of 1e150 and more, whose squares
        overflow, `std` and `skewness` are null. Ratios and covariates have a row per column,
        `metric` being its name, with `n_zero` (users with the value 0) and `n_empty` (users of a
        ratio with nothing to count, who are left out), and a row per two columns: `other` (the name
        of the second), `mean_other` and `covariance` (Σ(x − mean)(y − mean)/(n − 1)). Where
        `join_experiment` left out users of several variants, `n_multi_variant` has their number.

    Raises
    ------
    ColumnError, NullKeyError
        A column is missing; a user, variant or segment is null.
    OptionError
        Another name than that of its column for a mean; several covariates of a mean; an unknown
        option; a column of `by` with the name of a result column.
    DuplicateError
        Several rows of a user, whatever the key, or of a store that was assigned as a whole and
        whose rows are alike.
    DataError
        A user in two variants; shares of the variants that change over a column of dates (p <
        1e-6); a metric that is not numeric, infinite, or null with `nan="raise"`; a covariate with
        nulls; a column of two metrics whose nulls are in different users.

    Notes
    -----
    Use it where the users do not fit in memory, or to keep one small file for each part of the
    users. Do not use it where they do fit: `compare_variants` also takes strata, clusters, weights
    and resampling, which need the users. In Spark and Dask,
    `result.variant_moments(assignment)` makes the moments where the rows are. It does not look at
    dates, and small shards hold too few users to show a ramp-up: name its periods in `by`.

    References
    ----------
    Chan, Golub, LeVeque: Algorithms for computing the sample variance, 1983 (moments of parts added
    without loss).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame(
    ...     {"user_id": [1, 2, 3, 4], "variant": ["A", "B", "A", "B"], "hits": [1, 2, 3, 6]}
    ... )
    >>> moments = rd.experiments.variant_moments(users, "hits")
    >>> moments[["variant", "metric", "n", "n_null", "mean", "std", "skewness"]].round(3)
      variant metric  n  n_null  mean    std  skewness
    0       A   hits  2       0   2.0  1.414       0.0
    1       B   hits  2       0   4.0  2.828       0.0
    """
    specs = metric_specs(metrics, data, "data")
    for name, (num, den) in specs.items():
        if den is None and num != name:
            # The names of rows would no longer tell whether more or less is better.
            raise OptionError(
                f"metrics names {num!r} {name!r}; expected names of columns, so rename the column"
            )
    past = covariate_specs(covariates, specs, data)
    _refuse_regression(specs, past)
    by_cols = label_columns(data, "data", by, variant_col)
    warn_of_weights(data, "data", [*by_cols, *needed_columns(specs.values())])
    columns = read_metrics(data, specs, past, nan)
    rows = read_experiment_rows(data, variant_col, by_cols, user_col)
    for moved in shares_change(data, None, [], [variant_col, *by_cols], rows, OF_A_PART):
        if moved.where.any():
            raise DataError(
                f"the shares of the variants change over {moved.name!r}, so that moments would "
                f"compare its periods; name a column of these in ⟦+by=⟧, or use "
                "rd.compare_variants with ⟦+strata=⟧; leave the column out if it is not the time "
                "of the assignment",
                column=moved.name,
            )
    cells = [] if rows.repeated is None else rows.cells
    for metric in columns:
        for kept in filter(len, map(metric.kept, cells)):
            parts = [linearise(*(one[kept] for one in metric.sample[:2] if one is not None))[1]]
            codes = rows.repeated[kept]  # type: ignore[index]  # there are cells beside units alone
            if with_repeats({"remarks": ""}, parts, [codes], rows.guessed)["remarks"]:
                raise DuplicateError(
                    f"data has several rows of a {rows.guessed or 'user'}, whose values are not "
                    "independent; use rd.experiments.roll_up first, or rd.compare_variants with "
                    "⟦+cluster=⟧"
                )
    return _moments_of_rows(rows, columns, past).frame()


def _refuse_regression(specs: Mapping[str, MetricColumns], covariates: CovariateColumns) -> None:
    if any(len(xs) > 1 and specs[name][1] is None for name, xs in covariates.items()):
        raise OptionError(
            "⟦covariates=⟧ has several of a mean, and their regression weighs each user by all of "
            f"them; name one, or {GIVE_ROWS}"
        )


def _moments_of_rows(
    rows: ExperimentRows, metrics: list[MetricRows], past: CovariateColumns
) -> MomentTable:
    """The moments of the columns of every metric in every group and variant, of users without those
    who were left out since they are in several."""
    values: dict[str, Floats] = {}
    of: dict[str, MetricRows] = {}
    together: dict[str, set[str]] = defaultdict(set)  # columns of which the covariances are needed
    for metric in metrics:
        pairs = [metric.kind.ratio or (metric.name, None), *past.get(metric.name, ())]
        samples = [metric.sample, *metric.covariates.values()]
        parts = [part for one in samples for part in one[:2] if part is not None]
        own = dict(zip(filter(None, chain(*pairs)), parts, strict=True))
        for name, part in own.items():
            if np.isnan(part if metric.defined is None else part[metric.defined]).any():
                raise DataError(
                    f"the covariate {name!r} is null for some users; fill its nulls, or {GIVE_ROWS}"
                )
            first = of.setdefault(name, metric)
            if not _same_rows(first, metric):
                raise DataError(
                    f"{first.name!r} and {metric.name!r} both use {name!r} and are null for "
                    "different users; make the moments and the comparison of each by itself"
                )
            together[name] |= {*own}
        values |= own
    before = needed_columns(chain(*past.values()))
    for one in before:
        together[one] |= {x for x in before if _same_rows(of[x], of[one])}
    names = list(values)
    shape = len(rows.groups), len(rows.variants)
    numbers = np.zeros((len(CELL_NUMBERS), *shape, len(names)))
    covariances = np.full((*shape, len(names), len(names)), np.nan)
    for at in np.ndindex(shape):
        mine = rows.arm(*at)
        for i, name in enumerate(names):
            kept = of[name].kept(mine)
            n_null = of[name].n_null(mine)
            x = values[name][kept]
            counts = n_null, np.count_nonzero(x == 0), len(mine) - len(kept) - n_null
            numbers[:, *at, i] = (*moments_of(x), *counts, rows.left_out[at])
            for j, other in enumerate(names[:i]):
                if len(x) and other in together[name]:
                    y = values[other][kept]
                    with undefined_is_nan():
                        covariance = (x - x.mean()) @ (y - y.mean()) / len(x)
                    covariances[*at, [i, j], [j, i]] = covariance
    covariances[np.isinf(covariances)] = np.nan
    by_name = dict(zip(CELL_NUMBERS, numbers.reshape(len(numbers), -1, len(names)), strict=True))
    table = covariances.reshape(-1, len(names), len(names))
    return MomentTable(rows.groups, rows.variants, names, by_name, table)


def _same_rows(one: MetricRows, other: MetricRows) -> bool:
    """Whether two metrics have values in the same rows; all rows have one where it is not told."""
    masks: Any = one.defined, other.defined
    return np.array_equal(*masks)


@says_as(compare_variants)
@checks_names
def compare_variants_from_moments(
    moments: DataFrame,
    metrics: NamedMetrics | None = None,
    *,
    control: OneLabel,
    variant_col: str = "variant",
    covariates: NamedMetrics | None = None,
    by: Columns | None = None,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    correction: Correction = "holm",
    family: Columns | None = None,
    primary: Columns | None = None,
    sequential_n: int | None = None,
    expected: PlannedShares | None = None,
    health: DataFrame | None = None,
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    test: VariantTest | Mapping[str, VariantTest] = "t",
    relative: Relative = "fieller",
    bounds: Mapping[str, tuple[float, float]] | None = None,
    details: bool = False,
    **needs_users: Never,
) -> DataFrame:
    """Compare every variant with the control, from the moments of its users: the table of
    `compare_variants`.

    With m the mean, s the standard deviation and n the number of users of an arm: v = s²/n, se =
    √(v_c + v_t), t = (m_t − m_c)/se, df = (v_c + v_t)²/(v_c²/(n_c − 1) + v_t²/(n_t − 1)) (Welch).
    Ratios of sums and covariates follow from the covariances, by the formulas of
    `compare_variants`. Rows of the same segment, variant and metric are parts of the users, and are
    added first.

    Parameters
    ----------
    moments : DataFrame
        One row per (`by`, variant, metric), or several, each of other users: what `variant_moments`
        returns, or several of its frames joined with `pd.concat`. Moments that another program
        computed need the columns `variant_col`, `metric`, `n`, `mean` and `std`; see the notes for
        `n_null`, `skewness`, `min` and `max`.
    metrics : str, list of str or mapping, optional
        Metrics to compare; also name → (numerator, denominator), a ratio of sums. Default: all of
        `moments`.
    covariates : str, list of str or mapping, optional
        Pre-period columns, as in `compare_variants`: one of a mean, any number of a ratio.
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
    {test, relative, bounds, details}
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
    also takes strata, clusters, weights and resampling. Moments have no dates, so that
    `variant_moments` refuses users of a ramp-up without its periods in `by`. They do not hold
    single users either: `diff_without_top` is null, and nobody can say whether a few units decide.

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
    every = names_of_metrics(moments, variant_col, by)
    if metrics is None:
        metrics = every
    elif isinstance(metrics, str | list | tuple):
        metrics = list(dict.fromkeys(subset("metrics", metrics, every)))
    columns = DataFrame(columns=every)
    specs = metric_specs(metrics, columns, "the metrics in moments")
    past = covariate_specs(covariates, specs, columns, "the metrics in moments")
    _refuse_regression(specs, past)
    tests = which_tests(test, specs)
    for one in sorted(one for one in {*tests.values()} if not TESTS[one].of_sums):
        raise OptionError(
            f"⟦test={one!r}⟧ needs one row per user, and moments are sums over users; {GIVE_ROWS}"
        )
    settings = Settings(
        tests,
        alternative,
        confidence,
        correction,
        family,
        subset("primary", primary, specs),
        sequential_n=sequential_n,
        relative=relative,
        details=details,
        bounds=declared_bounds(bounds, specs),
    )
    check_options_of_tests(tests.values(), covariates=covariates or None, sequential_n=sequential_n)
    better = directions(measured_means(specs), smaller_is_better, larger_is_better)
    needed = {name: [one, *past.get(name, ())] for name, one in specs.items()}
    names = needed_columns(chain(*needed.values()))
    table = read_moments(moments, variant_col, by, names)
    sums = MomentArms.of(table, needed)
    if expected is not None and health is None and np.isnan(table.n_users[:, 0]).any():
        raise OptionError(
            "⟦expected=⟧ counts users, also those whose metric is null, so moments need the "
            "column 'n_null' (0 if no metric is null); or pass ⟦+health=⟧"
        )
    return compare_users(sums, control, expected, health, settings, better, "moments")


def _refuse_options(given: AnySpec) -> None:
    """Raise for options of compare_variants that need the users, unless they have their default
    value."""
    of_users = inspect.signature(compare_variants).parameters
    *own, _ = inspect.signature(compare_variants_from_moments).parameters
    check_names(
        [name for name in given if name not in of_users],
        own,
        "rd.experiments.compare_variants_from_moments",
    )
    for name, value in given.items():
        if name in ("nan", "user_col"):  # `variant_moments` has them
            raise OptionError(
                f"⟦{name}=⟧ is about users and not about moments; pass it to "
                "rd.experiments.variant_moments"
            )
        if name != "progress" and value != of_users[name].default:
            raise OptionError(
                f"⟦{name}=⟧ needs one row per user, and moments are sums over users; {GIVE_ROWS}"
            )
