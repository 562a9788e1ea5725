"""Moments of per-user metrics by variant, and the comparison of variants that is made of them.

Contract: `MomentTable` has an array (groups, variants, metrics) of each moment, and labels on its
sides. Cells without a row have n = 0."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Never

import numpy as np
import pandas as pd

from ...docstrings import says_as
from ...errors import ColumnError, DataError, DuplicateError, NullKeyError, OptionError, examples
from ...inputs.door import takes_columns
from ...inputs.options import Options, check_names
from ...inputs.sorting import distinct
from ...judge.choices import (
    Alternative,
    Columns,
    Correction,
    RaiseOrDrop,
    Relative,
    VariantTest,
    check_value,
)
from ...judge.comparisons import default_columns
from ...judge.effects.means import Units
from ...judge.per_user_columns import (
    Codes,
    Mask,
    by_columns,
    frame_of,
    group_codes,
    metric_specs,
    metric_values,
    require,
    warn_of_weights,
)
from ...judge.users import ExperimentRows, read_experiment_rows
from ...stats.arms import both
from ...stats.moments import (
    HUGE,
    Moments,
    add_moments,
    moments_of,
)
from ...stats.numbers import Floats
from ..decide.adjust_pvalues import directions
from ..decide.balance import segments_moved, users_in_both
from ..decide.sample_ratio import Arms, check_sample_ratio, without_strata
from ..samples import MetricRows, Ready, differ, read_metrics, subset
from ..settings import Settings, check_together, which_tests
from .arms_of_users import compare_ready
from .two_sample import (
    VARIANT_RESULT_COLUMNS,
    Row,
    measured_means,
    no_share,
)
from .variants import compare_each, compare_variants, decide

# Columns of a frame of moments, beside `by` and the variant. Frames of other programs may lack the
# optional ones.
NEEDED = ("metric", "n", "mean", "std")
OPTIONAL = ("n_null", "skewness", "min", "max")
MOMENT_COLUMNS = ["metric", "n", "n_null", "mean", "std", "skewness", "min", "max"]


@dataclass(frozen=True)
class MomentTable:
    """Moments in arrays (groups, variants, metrics). `n_null` is NaN where it is not known."""

    groups: pd.DataFrame
    variants: pd.Series
    metrics: list[str]
    moments: Moments
    n_null: Floats

    @property
    def n_users(self) -> Floats:
        """Users of each cell, whether or not their metric is null."""
        return np.asarray(self.moments.n + self.n_null)

    def at(self, group: int, variant: Any, metric: int) -> Moments:
        return Moments(*(values[group, variant, metric] for values in self.moments))  # type: ignore[index]

    def frame(self) -> pd.DataFrame:
        """One row per (group, variant, metric) that has users."""
        there = self.n_users > 0
        group, variant, metric = np.nonzero(there)
        n, mean, var, skewness, low, high = (np.asarray(values)[there] for values in self.moments)
        labels = self.groups.iloc[group].reset_index(drop=True)
        labels[self.variants.name] = self.variants.iloc[variant].reset_index(drop=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            std = np.where(n > 1, np.sqrt(var * n / (n - 1)), np.nan)
        names = pd.Series([self.metrics[i] for i in metric], dtype=str)
        numbers = [
            n.astype(np.int64),
            self.n_null[there].astype(np.int64),
            mean,
            std,
            skewness,
            low,
            high,
        ]
        columns = dict(zip(MOMENT_COLUMNS, [names, *numbers], strict=True))
        return pd.concat([labels, pd.DataFrame(columns)], axis=1)


def label_columns(frame: pd.DataFrame, role: str, by: Any, variant_col: str) -> list[str]:
    """Return the columns of `by`. Neither they nor the variant may have the name of a column of a
    result."""
    require(frame, role, [variant_col])
    if variant_col in MOMENT_COLUMNS:
        raise OptionError(
            f"⟦variant_col={variant_col!r}⟧ is also a column of moments; rename it in {role}"
        )
    by_cols = by_columns(frame, role, by, [*MOMENT_COLUMNS, *VARIANT_RESULT_COLUMNS])
    if variant_col in by_cols:
        raise OptionError(
            f"⟦by={variant_col!r}⟧ is the column of the variant; name columns of segments"
        )
    return by_cols


def read_moments(
    moments: pd.DataFrame, variant_col: str, by: Any, metrics: Columns | None = None
) -> MomentTable:
    """Check a frame of moments (of some metrics), and add the rows of the same segment, variant and
    metric."""
    frame_of("moments", moments)
    if not set(NEEDED) & set(moments.columns):
        raise ColumnError(
            f"moments has none of the columns {', '.join(map(repr, NEEDED))}; expected what "
            "variant_moments returns. If it has one row per user, call "
            "rd.experiments.variant_moments first, or pass the users to ⟦rd.compare_variants⟧"
        )
    require(moments, "moments", [variant_col, *NEEDED])
    by_cols = label_columns(moments, "moments", by, variant_col)
    other = [
        name for name in moments.columns if name not in (*by_cols, variant_col, *NEEDED, *OPTIONAL)
    ]
    if other:
        raise ColumnError(
            f"moments has the column {other[0]!r}, which is no moment. If it is a segment, name it "
            "in ⟦+by=⟧. If it is a part of the users (a file, a shard), drop it, and the rows of "
            "its values are added: each user must be in one part only"
        )
    if not len(moments):
        raise DataError("moments has no rows; expected one per variant and metric")
    moments, metric, names = _chosen(moments, metrics)
    variant, variants = group_codes(moments, "moments", [variant_col])
    group, groups = group_codes(moments, "moments", by_cols)
    parts, n_null = _read_numbers(moments)
    shape = len(groups), len(variants), len(names)
    cell = np.ravel_multi_index((group, variant, metric), shape)
    size = int(np.prod(shape))
    added = add_moments(parts, cell, size)
    nulls = np.bincount(cell, weights=n_null, minlength=size).astype(np.float64)
    there = np.bincount(cell, minlength=size).reshape(shape) > 0
    table = MomentTable(
        groups[by_cols],
        variants[variant_col],
        names,
        Moments(*(np.asarray(values).reshape(shape) for values in added)),
        nulls.reshape(shape),
    )
    _check_same_users(table, there)
    return table


def _chosen(
    moments: pd.DataFrame, metrics: Columns | None
) -> tuple[pd.DataFrame, Codes, list[str]]:
    """The rows of the metrics that were asked for, the code of each row's metric, and the metrics
    in order."""
    names = moments["metric"]
    if names.isna().any():
        raise NullKeyError(
            f"moments['metric'] is null in {int(names.isna().sum()):,} of {len(moments):,} rows"
        )
    codes, found = pd.factorize(names)
    if not all(isinstance(name, str) for name in found):
        raise DataError(
            f"moments['metric'] has {examples(found)}; the name of a metric is a string"
        )
    if metrics is None:
        return moments, codes, list(found)
    if isinstance(metrics, Mapping):
        raise OptionError(
            "metrics is a mapping; expected names of metrics in moments. A ratio of sums needs the "
            "users"
        )
    named = list(dict.fromkeys(subset("metrics", metrics, dict.fromkeys(found))))
    if not named:
        raise OptionError("metrics is empty; expected at least one metric of moments")
    place = pd.Index(named).get_indexer(pd.Index(found))[codes]
    return moments[place >= 0], place[place >= 0], named


def _read_numbers(moments: pd.DataFrame) -> tuple[Moments, Floats]:
    """The moments of every row, and the number of nulls; NaN for what is not known."""
    unknown = np.full(len(moments), np.nan)
    read = {
        name: metric_values(moments, "moments", name) if name in moments.columns else unknown
        for name in ("n", "mean", "std", *OPTIONAL)
    }
    n, mean, std, low, high = (read[name] for name in ("n", "mean", "std", "min", "max"))
    huge = np.fmax(np.abs(mean), np.fmax(np.abs(low), np.abs(high))) >= HUGE
    slack = 1e-9 * np.fmax(np.abs(low), np.abs(high))
    with np.errstate(invalid="ignore"):
        _refuse_moments(moments, "n", ~((n >= 0) & (n == np.floor(n))), "is not a number of users")
        counted = np.isnan(read["n_null"]) | (
            (read["n_null"] >= 0) & (read["n_null"] == np.floor(read["n_null"]))
        )
        _refuse_moments(moments, "n_null", ~counted, "is not a number of users")
        _refuse_moments(moments, "mean", np.isnan(mean) & (n > 0), "is null beside users")
        _refuse_moments(
            moments, "std", np.isnan(std) & (n > 1) & ~huge, "is null beside two users or more"
        )
        _refuse_moments(moments, "std", std < 0, "is negative")
        _refuse_moments(
            moments,
            "mean",
            (mean < low - slack) | (mean > high + slack),
            "is not between min and max",
        )
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        var = np.where(n > 1, std**2 * (n - 1) / n, np.where(n == 1, 0.0, np.nan))
    skewness = np.where(var == 0, 0.0, read["skewness"])
    return Moments(n, mean, var, skewness, low, high), read["n_null"]


def _refuse_moments(moments: pd.DataFrame, name: str, bad: Mask, what: str) -> None:
    if bad.any():
        shown = moments.loc[bad, name].head(3).tolist() if name in moments.columns else []
        raise DataError(
            f"moments[{name!r}] {what} in {int(bad.sum()):,} of {len(moments):,} rows "
            f"({examples(shown)})"
        )


def _check_same_users(table: MomentTable, there: Mask) -> None:
    """Refuse metrics of different users: of some parts only, or of several populations."""
    some = there.any(axis=2)
    users = table.n_users
    known = ~np.isnan(users)
    least = np.where(known, users, np.inf).min(axis=2)
    most = np.where(known, users, -np.inf).max(axis=2)
    wrong = some & (~there.all(axis=2) | (known.all(axis=2) & (least < most)))
    if not wrong.any():
        return
    g, v = np.argwhere(wrong)[0]
    found = {
        name: int(n) if here else "no row"
        for name, n, here in zip(
            table.metrics, np.where(known[g, v], users[g, v], -1), there[g, v], strict=True
        )
    }
    labels = [*table.groups.iloc[g].items(), (table.variants.name, table.variants.iloc[v])]
    where = ", ".join(f"{name}={value!r}" for name, value in labels)
    raise DataError(
        "the metrics of moments have different numbers of users (n + n_null) in "
        f"{int(wrong.sum()):,} of {int(some.sum()):,} variants or segments, such as {where}: "
        f"{found}. Every part of the users must have every metric; if the metrics are of different "
        "users, name those of the same users in ⟦+metrics=⟧"
    )


# What to do instead where a function has moments and needs the users.
GIVE_ROWS = (
    "call ⟦rd.compare_variants⟧ on one row per user in memory (result.to_pandas(), then "
    "join_experiment), or on those of a sample of the users by a hash of their id"
)


@takes_columns("user_col", "by")
def variant_moments(
    data: pd.DataFrame,
    metrics: str | Sequence[str],
    *,
    variant_col: str = "variant",
    by: Columns | None = None,
    nan: RaiseOrDrop = "raise",
    user_col: Columns | None = None,
    options: Options | None = None,
) -> pd.DataFrame:
    """Reduce users to the moments of each variant, from which `compare_variants_from_moments` makes
    its table.

    Moments of parts of the users add up: join the frames of several parts with `pd.concat`. Each
    user must be in one part only, such as a shard by the hash of the user's id. Moments of days do
    not add up, since a user of two days would count twice.

    Parameters
    ----------
    data : DataFrame
        One row per user, as `join_experiment` returns it: all users, or a part of them.
    metrics : str or list of str
        Metric columns. Ratios of sums need the users; give them to `compare_variants`.
    variant_col : str, default "variant"
        Column of the variant.
    by : str or list of str, optional
        Segments: every one has moments of its own.
    nan : {"raise", "drop"}, default "raise"
        Users whose metric is null: error, or leave them out of that metric and count them in
        `n_null`.
    user_col : str or list of str, optional
        Key that must be unique (within `by`). Default: "user_id" if there is such a column; else
        rows are users.
    options : Options, optional
        `user_col` and `by` of a project, where they are not given here.

    Returns
    -------
    DataFrame
        One row per (`by`, variant, metric) with users: `by`, the column of the variant, `metric`,
        `n` (users with a value, int64), `n_null` (users without one, int64), `mean`, `std` = √(Σ(y
        − mean)²/(n − 1)) (null for n < 2), `skewness` = (Σ(y − mean)³/n)/(Σ(y − mean)²/n)^1.5 (0
        where all values are equal), `min`, `max`. With values of 1e150 and more, whose squares
        overflow, `std` and `skewness` are null.

    Raises
    ------
    ColumnError, NullKeyError
        A column is missing; a user, variant or segment is null.
    OptionError
        A ratio of sums; an unknown option; a column of `by` with the name of a result column.
    DuplicateError
        Several rows of a user, whatever the key.
    DataError
        A user in two variants; a metric that is not numeric, infinite, or null with `nan="raise"`.

    Notes
    -----
    Use it where the users do not fit in memory, or to keep one small file for each part of the
    users. Do not use it where they do fit: `compare_variants` also takes ratios, covariates,
    strata, clusters and resampling, which need the users. In Spark and Dask,
    `result.variant_moments(assignment)` makes the moments where the rows are.

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
    frame_of("data", data)
    check_value("nan", nan, RaiseOrDrop)
    specs = metric_specs(metrics, data, "data")
    for name, (num, den) in specs.items():
        if den is not None:
            raise OptionError(
                f"metric {name!r} is a ratio of sums, whose test needs the users; {GIVE_ROWS}"
            )
        if num != name:  # its moments would no longer tell whether more or less is better
            raise OptionError(
                f"metrics names {num!r} {name!r}; expected names of columns, so rename the column"
            )
    by_cols = label_columns(data, "data", by, variant_col)
    warn_of_weights(data, "data", [*by_cols, *(num for num, _ in specs.values())])
    columns = read_metrics(data, specs, {}, nan)
    rows = read_experiment_rows(data, variant_col, by_cols, user_col)
    repeated = None if rows.guessed else rows.repeated
    if repeated is not None and any(
        len(distinct(repeated[cell])) < len(cell) for cell in rows.cells
    ):
        raise DuplicateError(
            "data has several rows of a user, whose values are not independent; use "
            "rd.experiments.roll_up first"
        )
    return _moments_of_rows(rows, columns).frame()


def _moments_of_rows(rows: ExperimentRows, metrics: list[MetricRows]) -> MomentTable:
    """The moments of every metric in every group and variant."""
    shape = len(rows.groups), len(rows.variants), len(metrics)
    moments, n_null = np.zeros((*shape, len(Moments._fields))), np.zeros(shape)
    for cell in np.ndindex(shape[:2]):
        mine = rows.arm(*cell)
        moments[cell] = [moments_of(metric.sample.num[metric.kept(mine)]) for metric in metrics]
        n_null[cell] = [metric.n_null(mine) for metric in metrics]
    names = [one.name for one in metrics]
    return MomentTable(
        rows.groups, rows.variants, names, Moments(*np.moveaxis(moments, -1, 0)), n_null
    )


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
    details: bool = False,
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
    {test, relative, details}
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
        ready = [_ready_of_moments(table, i, group, pair) for i in range(len(specs))]
        return compare_ready(ready, settings, surplus=ratio.surplus(group, pair, arms.names))

    n = np.asarray(table.moments.n)[:, :, 0]
    rows = compare_each(arms, compare_both)
    moved = users_in_both(0, health, n, arms) + segments_moved(arms, rows, ratio)
    compared = decide(arms, rows, ratio, better, settings, moved)
    return default_columns(compared, details)


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


def _ready_of_moments(table: MomentTable, metric: int, group: int, pair: tuple[int, int]) -> Ready:
    """Both arms of a metric, the control first."""
    units = Units.of_moments(table.at(group, list(pair), metric))
    n_null = both(lambda variant: float(table.n_null[group, variant, metric]), pair)
    warnings: tuple[str, ...] = ("missing_not_checked",)
    if not np.isnan(n_null).any():
        n_null = both(int, n_null)
        of = both(lambda *some: sum(some), units.n, n_null)
        warnings = ("unequal_missing",) if differ(n_null, of) else ()
    return Ready(table.metrics[metric], units, n_null, warnings)
