"""Quantiles of two variants, and metrics of which most users have none: payers beside their
payments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import ColumnError, DataError, OptionError
from ...inputs.constraints import SHARE, check_value
from ...inputs.options import as_columns
from ...inputs.sums import exact_sums
from ...stats.arms import arm
from ..choices import Columns, RaiseOrDrop
from ..experiment_columns import (
    Codes,
    Floats,
    by_columns,
    frame_of,
    group_codes,
    key_codes,
    metric_values,
    split,
)
from .compare_variants import compare_variants

# Half the width, in standard errors, of the interval whose order statistics give the density: that
# of 95 %.
WIDTH = 1.959963984540054
NOT_FOR_QUANTILES = ("test", "cap", "weight_col", "n_resamples", "seed", "strata")


def compare_quantiles(
    data: pd.DataFrame,
    metrics: Columns,
    *,
    control: Any,
    quantiles: float | Sequence[float] = (0.5, 0.9, 0.99),
    variant_col: str = "variant",
    cluster: Columns | None = None,
    by: Columns | None = None,
    nan: RaiseOrDrop = "raise",
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Compare quantiles of every variant with those of the control: the latency of the slowest 1 %,
    the median order.

    In each arm, F is the share of rows at or below its quantile q̂ of order p, with standard error
    s (of a ratio of sums per cluster). With L and U the quantiles of orders p ∓ 1.96·s, the density
    at q̂ is f = 2·1.96·s/(U − L), and y* = q̂ + (F − 1[y ≤ q̂])/f is what a row adds: its mean is
    q̂, and its standard error s/f. `compare_variants` compares the means of y*, by cluster where
    rows of a user are alike.

    Parameters
    ----------
    data : DataFrame
        One row per user, or per request of a user with `cluster`.
    metrics : str or list of str
        Columns.
    control : label
        The variant that the others are compared with.
    quantiles : float or list of float, default (0.5, 0.9, 0.99)
        Orders p, between 0 and 1.
    variant_col, cluster, by, nan, smaller_is_better, larger_is_better
        As in `compare_variants`; directions name columns of `metrics`.
    **options
        Others of `compare_variants`, such as `expected`, `health`, `covariates` (metric → columns
        has the names of the result), `sequential_n`, `confidence` and `correction`; not `test`,
        `cap`, `weight_col` and `strata`.

    Returns
    -------
    DataFrame
        What `compare_variants` returns, with `quantile` behind `metric`, which is named as "latency
        p90". `mean_control` and `mean_treatment` are the quantiles. An arm whose density is not
        known, because U = L (ties) or because an order p ∓ 1.96·s is outside of 0 to 1 (too few
        users), counts as constant: "constant_arm" or "zero_variance".

    Raises
    ------
    OptionError
        A quantile that is not between 0 and 1, or an option that is not for quantiles.
    ColumnError, DataError, DuplicateError
        As `compare_variants`.

    References
    ----------
    Deng, Knoblich, Lu: Applying the delta method in metric analytics, KDD 2018; Liu, Sun, Varshney,
    Xu: Large-scale online experimentation with quantile metrics, 2019.

    Examples
    --------
    >>> import numpy as np, pandas as pd, recdf as rd
    >>> users = pd.DataFrame(
    ...     {"variant": ["A", "B"] * 2000, "latency": np.random.default_rng(1).gamma(2, 50, 4000)}
    ... )
    >>> slower = users.assign(
    ...     latency=users["latency"] + 100 * (users["latency"] > 200) * (users["variant"] == "B")
    ... )
    >>> table = rd.experiments.compare_quantiles(
    ...     slower,
    ...     "latency",
    ...     control="A",
    ...     quantiles=[0.5, 0.95],
    ...     smaller_is_better="latency",
    ...     expected={"A": 1, "B": 1},
    ...     correction="none",
    ... )
    >>> table[["metric", "mean_control", "mean_treatment", "verdict"]].round(1)
            metric  mean_control  mean_treatment verdict
    0  latency p50          85.3            79.8  better
    1  latency p95         230.8           323.7   worse
    """
    for one in NOT_FOR_QUANTILES:
        if one in options:
            raise OptionError(
                f"⟦{one}={options[one]!r}⟧ is not for quantiles; compare means by it", argument=one
            )
    columns = as_columns(metrics)
    orders = [
        check_value("quantiles", one, SHARE)
        for one in np.atleast_1d(np.asarray(quantiles, object)).tolist()
    ]
    by_cols = by_columns(frame_of("data", data), "data", by, ["quantile"])
    cell, labels = group_codes(data, "data", [*by_cols, variant_col])
    unit = key_codes([("data", data)], as_columns(cluster))[0][0] if cluster is not None else None
    cells = split(cell, len(labels))
    made: dict[str, Floats] = {}
    of: dict[str, tuple[str, float]] = {}
    for column in columns:
        values = metric_values(data, "data", column)
        known = ~np.isnan(values)
        for p in orders:
            name = f"{column} p{100 * p:g}"
            of[name] = column, p
            made[name] = np.full(len(data), np.nan)
            for rows in (own[known[own]] for own in cells):
                made[name][rows] = _quantile_scores(
                    values[rows], p, None if unit is None else unit[rows]
                )
    table = compare_variants(
        _with_columns(data, made),
        list(made),
        control=control,
        variant_col=variant_col,
        cluster=cluster,
        by=by,
        nan=nan,
        smaller_is_better=_named(smaller_is_better, of),
        larger_is_better=_named(larger_is_better, of),
        **options,
    )
    table.insert(
        list(table.columns).index("metric") + 1,
        "quantile",
        [of[name][1] for name in table["metric"]],
    )
    return table


def _quantile_scores(values: Floats, p: float, unit: Codes | None) -> Floats:
    """What every row adds to the quantile of order p: values with its mean, and with its variance
    by units."""
    if not len(values):
        return values
    quantile = float(np.quantile(values, p))
    below = (values <= quantile).astype(np.float64)
    share = float(below.mean())
    sums, counts = below, None
    if unit is not None:
        present, own = np.unique(unit, return_inverse=True)
        sums, counts = (exact_sums(one, own, len(present)) for one in (below, np.ones(len(own))))
    s = math.sqrt(float(arm(sums, counts).var)) if len(sums) > 1 else math.inf
    low, high = p - WIDTH * s, p + WIDTH * s
    ends = (
        np.quantile(values, [low, high]) if s > 0 and low > 0 and high < 1 else [quantile, quantile]
    )
    scale = float(ends[1] - ends[0]) / (2 * WIDTH * s) if s > 0 and math.isfinite(s) else 0.0
    return np.asarray(quantile + (share - below) * scale)


def compare_zero_inflated(
    data: pd.DataFrame,
    metrics: Columns,
    *,
    control: Any,
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Compare a metric of which most users have 0 by its two parts, the share of payers and their
    mean, and its total.

    mean = share of users above 0 × mean of these users. The second factor is a ratio of sums, Σ y /
    #{y > 0}, by the delta method. It is of other users in each variant, so where the shares differ
    (`denominator_differs`), it has no verdict: more payers who pay less each may be the same payers
    as before and some small new ones.

    Parameters
    ----------
    data, control
        As in `compare_variants`.
    metrics : str or list of str
        Columns that are at least 0.
    smaller_is_better, larger_is_better : str or list of str, optional
        Columns of `metrics`; their parts have the same direction.
    **options
        Others of `compare_variants`, such as `expected`, `cluster` and `nan`.

    Returns
    -------
    DataFrame
        What `compare_variants` returns, with three metrics for each column, such as "revenue",
        "revenue: share above 0" and "revenue: mean above 0".

    Raises
    ------
    DataError
        A value is negative.
    ColumnError, OptionError, DuplicateError
        As `compare_variants`.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> revenue = [0, 0, 9, 0, 0, 5] * 50 + [0, 8, 7] * 100
    >>> users = pd.DataFrame({"variant": ["A"] * 300 + ["B"] * 300, "revenue": revenue})
    >>> table = rd.experiments.compare_zero_inflated(
    ...     users, "revenue", control="A", expected={"A": 1, "B": 1}
    ... )
    >>> table[["metric", "mean_treatment", "verdict"]].round(2)
                       metric  mean_treatment                     verdict
    0                 revenue            5.00                      better
    1  revenue: share above 0            0.67                      better
    2   revenue: mean above 0            7.50  check: denominator differs
    """
    frame_of("data", data)
    made: dict[str, Floats] = {}
    specs: dict[str, Any] = {}
    of: dict[str, tuple[str, str]] = {}
    for name in as_columns(metrics):
        values = metric_values(data, "data", name)
        if (values < 0).any():
            raise DataError(
                f"data[{name!r}] is negative in {int((values < 0).sum()):,} rows; expected at "
                "least 0"
            )
        share, mean = f"{name}: share above 0", f"{name}: mean above 0"
        made[share] = np.where(np.isnan(values), np.nan, values > 0)
        specs |= {name: name, share: share, mean: (name, share)}
        of |= {one: (name, one) for one in (name, share, mean)}
    return compare_variants(
        _with_columns(data, made),
        specs,
        control=control,
        smaller_is_better=_named(smaller_is_better, of),
        larger_is_better=_named(larger_is_better, of),
        **options,
    )


def _with_columns(data: pd.DataFrame, made: dict[str, Floats]) -> pd.DataFrame:
    """The frame with more columns, of names that it does not have."""
    there = [name for name in made if name in data.columns]
    if there:
        raise ColumnError(
            f"data has a column {there[0]!r} already, which is made here; rename it",
            column=there[0],
        )
    return pd.concat([data, pd.DataFrame(made, index=data.index)], axis=1)


def _named(chosen: Columns | None, of: dict[str, tuple[str, Any]]) -> list[str] | None:
    """The metrics that are made of the chosen columns; a column of which none is made stays, and is
    refused."""
    if chosen is None:
        return None
    columns = as_columns(chosen)
    made = [name for name, (column, _) in of.items() if column in columns]
    return [*made, *(one for one in columns if one not in {column for column, _ in of.values()})]
