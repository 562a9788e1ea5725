"""Quantiles of two variants, and metrics of which most users have none: payers beside their
payments."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...errors import ColumnError, DataError, OptionError
from ...inputs.constraints import SHARE, OneLabel
from ...inputs.door import checks_names
from ...judge.choices import (
    Alternative,
    Columns,
    Correction,
    PlannedShares,
    RaiseOrDrop,
    Row,
    TwoPlaces,
    as_columns,
    check_value,
)
from ...judge.comparisons import VARIANT_RESULT_COLUMNS
from ...judge.per_user_columns import Floats, by_columns, frame_of, metric_specs, metric_values
from ...judge.users import read_experiment_rows
from ...judge.verdict import remark
from ...stats.always_valid import always_valid_p
from ...stats.quantile_arms import (
    FARTHEST,
    QuantileArm,
    degrees_of_freedom,
    order_interval,
    quantile_arm,
    signed_root,
)
from ...stats.student import beyond, t_p_value
from ..decide.adjust_pvalues import directions
from ..decide.balance import shares_change
from ..decide.sample_ratio import Surplus
from ..samples import Ready, Settings, make_units, read_metrics, subset
from .arms_of_users import UsersInRows, no_estimate, of_units, with_denominators, with_repeats
from .two_sample import POWER, but, first_row
from .variants import compare_users, compare_variants


@checks_names
def compare_quantiles(
    data: DataFrame,
    metrics: Columns,
    *,
    control: OneLabel,
    quantiles: float | Sequence[float] = (0.5, 0.9, 0.99),
    variant_col: str = "variant",
    cluster: Columns | None = None,
    by: Columns | None = None,
    nan: RaiseOrDrop = "raise",
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    correction: Correction = "holm",
    family: Columns | None = None,
    primary: Columns | None = None,
    sequential_n: int | None = None,
    expected: PlannedShares | None = None,
    health: DataFrame | None = None,
    time_col: str | None = None,
    user_col: Columns | None = None,
    details: bool = False,
) -> DataFrame:
    """Compare quantiles of every variant with those of the control: the latency of the slowest 1 %,
    the median order.

    By the empirical likelihood of two order statistics. In an arm of n rows, of which m = n/deff
    count (deff: variance of the share at or below the quantile by cluster, over that by rows), the
    claim that q is the quantile of order p costs d(q)² = 2 m KL(F ‖ p), with KL(F ‖ p) = F ln(F/p)
    + (1 − F) ln((1 − F)/(1 − p)) and F the share of rows around q that is nearest to p. A
    difference D costs T(D) = min over q of d_control(q)² + d_treatment(q + D)². p compares the root
    of T(0) with Student's t (Satterthwaite's df over users, or clusters), and the interval holds
    all D whose T(D) is no more: both are one object. No density is estimated, so that ties, gaps
    and price points do no harm.

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
    variant_col, cluster, by, nan, smaller_is_better, larger_is_better, alternative, confidence, \
correction, family, primary, sequential_n, expected, health, time_col, user_col, details
        As in `compare_variants`; directions and `primary` name columns of `metrics`.

    Returns
    -------
    DataFrame
        What `compare_variants` returns, with a `metric` such as "latency p90". `mean_control` and
        `mean_treatment` are the quantiles, and `se` is the width of the interval over 2c. With
        `details` also `quantile`; `statistic` is the root of T(0). An end for which an arm has too
        few rows is infinite. Remarks of its own: "ties" (few values make up the interval), "gap"
        (one gap between values is more than half of it), "few_values" (an end is infinite, which
        withholds the verdict unless the finite end leaves out 0).

    Raises
    ------
    OptionError
        A quantile that is not between 0 and 1.
    ColumnError, DataError, DuplicateError
        As `compare_variants`.

    References
    ----------
    Owen: Empirical Likelihood, 2001; Chen, Hall: Smoothed empirical likelihood confidence intervals
    for quantiles, 1993.

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
            metric  mean_control  mean_treatment              verdict
    0  latency p50          85.3            79.8  no difference shown
    1  latency p95         230.8           323.7                worse
    """
    orders = [
        check_value("quantiles", p, SHARE) for p in np.atleast_1d(np.array(quantiles, object))
    ]
    if not orders:
        raise OptionError("quantiles is empty; expected at least one order between 0 and 1")
    by_cols = by_columns(data, "data", by, ["quantile", *VARIANT_RESULT_COLUMNS])
    specs = metric_specs(metrics, data, "data")
    names = [f"p{100 * p:.12g}" if round(p, 6) == 1 else f"p{100 * p:g}" for p in orders]
    if len({*names}) < len(names):
        raise OptionError(f"quantiles names the same order twice: {', '.join(names)}")
    of = {f"{name} {order}": name for name in specs for order in names}
    settings = Settings(
        dict.fromkeys(of, "t"),
        alternative,
        confidence,
        correction,
        family,
        subset("primary", _named(primary, of), of),
        sequential_n=sequential_n,
        details=details,
    )
    sides = (_named(side, of) for side in (smaller_is_better, larger_is_better))
    better = directions(dict.fromkeys(of, ""), *sides)
    columns = read_metrics(data, specs, {}, nan)
    rows = read_experiment_rows(
        data, variant_col, by_cols, user_col, (), as_columns(cluster), list(specs)
    )
    moved = shares_change(data, time_col, [], [variant_col, *by_cols], rows)

    @functools.cache
    def arm_of(metric: int, group: int, variant: int) -> tuple[Any, Any, Any, list[QuantileArm]]:
        """The values of an arm, the cluster of each and the unit that rows repeat, and the
        quantiles."""
        kept = columns[metric].kept(rows.cells[group * len(rows.variants) + variant])
        values = columns[metric].sample.num[kept]
        known = rows.clusters, rows.repeated
        unit, again = (None if codes is None else codes[kept] for codes in known)
        return values, unit, again, [quantile_arm(values, p, unit) for p in orders]

    def of_pair(group: int, pair: TwoPlaces, settings: Settings, surplus: Surplus) -> list[Row]:
        names = iter(of)
        found = []
        both_arms = rows.both(group, pair)
        for metric, one in enumerate(columns):
            ready = make_units(one, both_arms, rows)
            problem = no_estimate(ready.units)
            own = [] if problem else [arm_of(metric, group, variant) for variant in pair]
            for i, p in enumerate(orders):
                row = first_row(replace(ready, name=next(names)), settings) | {"quantile": p}
                if problem:
                    found.append(but(row, problem))
                    continue
                arms = [quantiles_of[i] for *_, quantiles_of in own]
                row = _quantile_row(row, ready, arms, settings)
                if rows.repeated is not None:
                    parts = [np.sign(arm[i].quantile - values) for values, _, _, arm in own]
                    row = with_repeats(row, parts, [again for _, _, again, _ in own], rows.guessed)
                if surplus.asked:
                    values, unit, *_ = own[surplus.arm]
                    known = arms, surplus.arm, values, p, unit
                    without = functools.partial(_quantile_without, *known, alternative)
                    row = surplus.asks(row, without, len(values), settings.alpha)
                found.append(row)
        return found

    users = UsersInRows(columns, {}, rows)
    given = users, control, expected, health, settings, better
    return compare_users(*given, late=moved, test=of_pair, intervals=_quantile_intervals)


def _quantile_row(row: Row, ready: Ready, arms: Sequence[QuantileArm], settings: Settings) -> Row:
    """The numbers of one quantile of two arms, but for the interval, which needs all p-values."""
    z = signed_root(*arms)
    df = degrees_of_freedom(*arms)
    n = sum(ready.units.n)
    planned = settings.sequential_n
    p = t_p_value(z, df, settings.alternative)
    if planned is not None:
        p = always_valid_p(z, n, planned, settings.confidence, settings.alternative)
        df = np.nan
    row = with_denominators(but(row, **of_units(ready, "t")), ready)
    old, new = (one.quantile for one in arms)
    numbers = but(
        row,
        mean_control=old,
        mean_treatment=new,
        diff=new - old,
        rel_diff=new / old - 1 if old > 0 else np.nan,
        statistic=z,
        df=df,
        p_value=p,
        method=row["method"].replace("welch", "quantile"),
    )
    return numbers | {"arms": arms}


def _quantile_without(
    arms: list[QuantileArm],
    of: int,
    values: Floats,
    p: float,
    unit: Any,
    alternative: Alternative,
    kind: str,
    few: int,
) -> tuple[float, float]:
    """The effect and its p without the smallest or largest values of an arm."""
    order = np.argsort(values, kind="stable")
    kept = order[few:] if kind == "lightest" else order[: len(order) - few]
    rest = list(arms)
    rest[of] = quantile_arm(values[kept], p, None if unit is None else unit[kept])
    p_value = float(t_p_value(signed_root(*rest), degrees_of_freedom(*rest), alternative))
    return rest[1].quantile - rest[0].quantile, p_value


def _quantile_intervals(table: dict[str, Any], reach: Floats, alternative: Alternative) -> None:
    """Put intervals that reach so many standard errors into the table, with their errors, and what
    they say of the values."""
    reaches = zip(table["arms"], np.fmin(reach, FARTHEST), strict=True)
    found = DataFrame(
        [{} if arms is None else _ends(arms[0], arms[1], c, alternative) for arms, c in reaches]
    )
    for code in ("few_values", "ties", "gap"):
        if code in found:
            remark(table, found.pop(code).eq(True), code)
    table |= {str(name): found[name].to_numpy() for name in found}


def _ends(control: QuantileArm, treatment: QuantileArm, c: float, alternative: Alternative) -> Row:
    """Interval and errors of one row by the names of their columns, and codes of remarks."""
    low, high = order_interval(control, treatment, c)
    rel_low, rel_high = np.expm1(order_interval(control, treatment, c, np.log))
    few_values = math.isinf(low) or math.isinf(high)
    ties = low == high == 0
    se, *of_arms = (
        (b - a) / (2 * c) if math.isfinite(b - a) else np.nan
        for a, b in ((low, high), control.interval(c), treatment.interval(c))
    )
    steps = [one.steps(c) for one in (control, treatment)]
    gaps = [ends for _, ends in steps if ends]
    gap = max(gaps, key=lambda ends: ends[1] - ends[0], default=(np.nan, np.nan))
    if alternative == "less":
        low = rel_low = -np.inf
    if alternative == "greater":
        high = rel_high = np.inf
    return {
        "ci_low": low,
        "ci_high": high,
        "rel_ci_low": rel_low,
        "rel_ci_high": rel_high,
        "se": se,
        "se_control": of_arms[0],
        "se_treatment": of_arms[1],
        "mde": beyond(c, POWER) * se,
        "gap_low": gap[0],
        "gap_high": gap[1],
        "few_values": few_values,
        "ties": ties or any(few for few, _ in steps),
        "gap": bool(gaps),
    }


@checks_names
def compare_zero_inflated(
    data: DataFrame,
    metrics: Columns,
    *,
    control: OneLabel,
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    **options: Any,
) -> DataFrame:
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
        Others of `compare_variants` but `cap`, such as `expected`, `cluster` and `nan`.

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
    >>> table.loc[1:, ["metric", "mean_treatment", "verdict"]].round(2)
                       metric  mean_treatment                     verdict
    1  revenue: share above 0            0.67                      better
    2   revenue: mean above 0            7.50  check: denominator differs
    """
    frame_of("data", data)
    if options.get("cap"):
        raise OptionError(
            f"⟦cap={options['cap']!r}⟧: a capped total is not the product of its parts; compare it "
            "with rd.compare_variants"
        )
    made: dict[str, Floats] = {}
    specs: dict[str, Any] = {}
    of: dict[str, str] = {}
    for name in as_columns(metrics):
        values = metric_values(data, "data", name)
        if below := (values < 0).sum():
            raise DataError(f"data[{name!r}] is negative in {below:,} rows; expected at least 0")
        share = f"{name}: share above 0"
        mean = f"{name}: mean above 0"
        if share in data:
            raise ColumnError(
                f"data has a column {share!r} already, which is made here; rename it", column=share
            )
        made[share] = np.where(np.isnan(values), np.nan, values > 0)
        specs |= {name: name, share: share, mean: (name, share)}
        of |= dict.fromkeys((name, share, mean), name)
    return compare_variants(
        pd.concat([data, DataFrame(made, index=data.index)], axis=1),
        specs,
        control=control,
        smaller_is_better=_named(smaller_is_better, of),
        larger_is_better=_named(larger_is_better, of),
        **options,
    )


def _named(chosen: Columns | None, of: Mapping[str, str]) -> list[str] | None:
    """The metrics that are made of the chosen columns; a column of which none is made stays, and is
    refused."""
    if chosen is None:
        return None
    columns = as_columns(chosen)
    made = [name for name, column in of.items() if column in columns]
    return made + [name for name in columns if name not in of.values()]
