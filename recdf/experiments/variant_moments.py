"""Moments of per-user metrics by variant: all that a plain test of means reads of the users."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..errors import DuplicateError, OptionError
from ..inputs.per_user_columns import warn_of_weights
from .columns import frame_of, metric_specs
from .experiment_rows import ExperimentRows, read_rows
from .moment_rows import label_columns, moment_frame
from .options import Columns, RaiseOrDrop, check_literal
from .samples import Metric, read_metrics
from .stats.moments import Moments, moments_of

__all__ = ["variant_moments"]

# What to do instead where a function has moments and needs the users.
GIVE_ROWS = (
    "call rd.compare_variants on one row per user in memory (result.to_pandas(), then join_experiment), or on those of "
    "a sample of the users by a hash of their id"
)


def variant_moments(
    data: pd.DataFrame,
    metrics: str | Sequence[str],
    *,
    variant_col: str = "variant",
    by: Columns | None = None,
    nan: RaiseOrDrop = "raise",
    user_col: Columns | None = None,
) -> pd.DataFrame:
    """Reduce users to the moments of each variant, from which `compare_variants_from_moments` makes its table.

    Moments of parts of the users add up: join the frames of several parts with `pd.concat`. Each user must be in one
    part only, such as a shard by the hash of the user's id. Moments of days do not add up, since a user of two days
    would count twice.

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
        Users whose metric is null: error, or leave them out of that metric and count them in `n_null`.
    user_col : str or list of str, optional
        Key that must be unique (within `by`). Default: "user_id" if there is such a column; else rows are users.

    Returns
    -------
    DataFrame
        One row per (`by`, variant, metric) with users: `by`, the column of the variant, `metric`, `n` (users with a
        value, int64), `n_null` (users without one, int64), `mean`, `std` = √(Σ(y − mean)²/(n − 1)) (null for n < 2),
        `skewness` = (Σ(y − mean)³/n)/(Σ(y − mean)²/n)^1.5 (0 where all values are equal), `min`, `max`. With values of
        1e150 and more, whose squares overflow, `std` and `skewness` are null.

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
    Use it where the users do not fit in memory, or to keep one small file for each part of the users. Do not use it
    where they do fit: `compare_variants` also takes ratios, covariates, strata, clusters and resampling, which need the
    users. In Spark and Dask, `result.variant_moments(assignment)` makes the moments where the rows are.

    References
    ----------
    Chan, Golub, LeVeque: Algorithms for computing the sample variance, 1983 (moments of parts added without loss).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame({"user_id": [1, 2, 3, 4], "variant": ["A", "B", "A", "B"], "hits": [1, 2, 3, 6]})
    >>> rd.variant_moments(users, "hits")[["variant", "metric", "n", "n_null", "mean", "std", "skewness"]].round(3)
      variant metric  n  n_null  mean    std  skewness
    0       A   hits  2       0   2.0  1.414       0.0
    1       B   hits  2       0   4.0  2.828       0.0
    """
    frame_of("data", data)
    check_literal("nan", nan, RaiseOrDrop)
    specs = metric_specs(metrics, data, "data")
    for name, (num, den) in specs.items():
        if den is not None:
            raise OptionError(f"metric {name!r} is a ratio of sums, whose test needs the users; {GIVE_ROWS}")
        if num != name:  # its moments would no longer tell whether more or less is better
            raise OptionError(f"metrics names {num!r} {name!r}; expected names of columns, so rename the column")
    by_cols = label_columns(data, "data", by, variant_col)
    warn_of_weights(data, "data", [*by_cols, *(num for num, _ in specs.values())])
    columns = read_metrics(data, specs, {}, nan)
    rows = read_rows(data, variant_col, by_cols, user_col)
    repeated = None if rows.guessed else rows.repeated
    if repeated is not None and any(len(np.unique(repeated[cell])) < len(cell) for cell in rows.cells):
        raise DuplicateError("data has several rows of a user, whose values are not independent; use rd.roll_up first")
    return _frame(rows, columns)


def _frame(rows: ExperimentRows, metrics: list[Metric]) -> pd.DataFrame:
    """The moments of every metric in every group and variant that has rows."""
    n_variants = len(rows.variants)
    where = [cell for cell, mine in enumerate(rows.cells) if len(mine)]
    found: list[Moments] = []
    n_null: list[int] = []
    for cell in where:
        mine = rows.arm(*divmod(cell, n_variants))
        for metric in metrics:
            found.append(moments_of(metric.num[metric.kept(mine)]))
            n_null.append(metric.n_null(mine))
    group, variant = np.divmod(np.repeat(np.array(where, np.int64), len(metrics)), max(n_variants, 1))
    labels = rows.groups.iloc[group].reset_index(drop=True)
    labels[rows.variants.name] = rows.variants.iloc[variant].reset_index(drop=True)
    arrays = np.array(found, dtype=np.float64).reshape(-1, len(Moments._fields)).T
    return moment_frame(labels, [one.name for one in metrics] * len(where), Moments(*arrays), n_null)
