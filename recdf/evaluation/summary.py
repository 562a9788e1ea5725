"""Means of per-user columns with their intervals: `summarize`.

Contract: a summary has one row per group and metric, in the columns `SUMMARY`. This module knows
only columns and no metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame

from ..errors import ColumnError, DataError, OptionError, kind_of
from ..inputs.constraints import (
    SHARE,
    Repetitions,
    a_number,
    check_record,
    check_value,
    either,
    one_of,
)
from ..inputs.door import takes_options
from ..inputs.frames import column, refuse_engine_frame
from ..inputs.ids import check_labels
from ..inputs.options import ByName, Names, Options, as_columns
from ..judge.choices import Columns
from ..judge.per_user_columns import (
    evaluated,
    key_codes,
    list_columns,
    metric_values,
    read_weight,
    refuse_mixed_models,
    require,
    some_keys,
    unit_of,
    warn_of_weights,
)
from ..metrics.metric import METRICS
from ..stats.resampling import (
    drawn_quantile,
    drawn_std,
    quantile_interval,
    replicate_statistic,
    standard_error,
)
from .spec import better_of
from .value_moments import (
    CONFIDENCE,
    groups_of,
    means,
    refuse_summary_names,
    split_column,
    unit_codes,
)

WeightBy = Literal["relevant", "shown", "rows"]
QUANTILES = {"min": 0.0, "median": 0.5, "max": 1.0}
GMEAN_FLOOR = 1e-5  # a value of 0 counts as this in a geometric mean, as in trec_eval
OF_MEANS = ("mean", "gmean", "urisk")  # means of transformed values, which take weights
STAT = either(one_of((*OF_MEANS, "sum", "std", *QUANTILES)), SHARE)
Stat = str | float
ERRORS = ["value", "se", "ci_low", "ci_high"]


@dataclass(frozen=True)
class ListReduction:
    """What lists are reduced to; the arguments of `rd.summarize` explain the fields. `key` names a
    list in `base`."""

    stats: Sequence[Stat]
    weight_by: WeightBy | None
    base: DataFrame | None
    alpha: Annotated[float, a_number(0)]
    n_resamples: Repetitions
    seed: Annotated[int, a_number(0, whole=True)]

    def __post_init__(self) -> None:
        check_record(self)
        for one in self.stats or [""]:
            STAT.check("stat", one)
        if ("urisk" in self.stats) != (self.base is not None):
            raise OptionError(
                '⟦stat="urisk"⟧ and ⟦+base=⟧, the per-user table of a baseline, are given together'
            )

    def check_weights(self, weighted: bool) -> None:
        """Raise if lists have weights, and a statistic is not one of a mean."""
        refused = [one for one in self.stats if one not in OF_MEANS]
        if refused and (weighted or self.weight_by is not None):
            raise OptionError(
                f"⟦stat={refused[0]!r}⟧ is of lists that count alike, and these have weights; "
                "mean, gmean and urisk take weights. To leave them out, pass per_user without the "
                "column of weights"
            )


class HasPerUser(Protocol):
    """The part of an `Evaluation` that is read here: its table of lists, whose `attrs` hold its
    spec."""

    @property
    def per_user(self) -> DataFrame: ...


def per_user_table(given: DataFrame | HasPerUser) -> DataFrame:
    """Return the table of lists of a result, or a table as it was given."""
    if isinstance(given, DataFrame):
        return given
    found = getattr(given, "per_user", None)
    if isinstance(found, DataFrame):
        return found
    refuse_engine_frame(found, "per_user")
    refuse_engine_frame(given, "per_user")
    raise TypeError(
        f"per_user is {kind_of(given)}; expected Evaluation.per_user, or the Evaluation itself"
    )


@takes_options("user_col", "by", "weight_col")
def summarize(
    per_user: DataFrame | HasPerUser,
    by: Columns | None = None,
    *,
    user_col: Columns | None = None,
    metrics: Columns | None = None,
    confidence: float = CONFIDENCE,
    weight_col: str | None = None,
    unit_col: Columns | None = None,
    options: Options | None = None,
    stat: Stat | Sequence[Stat] = "mean",
    weight_by: WeightBy | None = None,
    base: DataFrame | HasPerUser | None = None,
    alpha: float = 0.0,
    n_resamples: int = 2000,
    seed: int = 0,
) -> DataFrame:
    """Mean of each metric over groups of per-user rows, or another statistic of them, with its
    interval.

    Formula: value = Σ x / n over the n defined rows, std with divisor n − 1, se = std / √n,
    interval value ∓ z · se, z the normal quantile of (1 + confidence) / 2; where e < 100 that of
    Student's t with ⌊e⌋ − 1 degrees of freedom. e is n; with weights n_effective; with `unit_col`
    (Σ W)² / Σ W², W the sum of the weights of the rows of a unit. Where all values are equal, std
    is 0, and se and interval are null: they tell nothing of other users. With weights w: value m =
    Σ w x / Σ w, std² = Σ w (x − m)² / (Σ w − Σ w² / Σ w), se = √(n/(n − 1) · Σ w² (x − m)²) / Σ w
    (delta method of the ratio), and n_effective = (Σ w)² / Σ w², the number of equal weights that
    would be as precise (Kish 1965). The rows of a unit (`unit_col`) are not taken for independent:
    se = √(u/(u − 1) · Σ_units (Σ_rows of the unit w (x − m))²) / Σ w, for u units; w is 1 without
    weights.

    `stat` names other statistics of the n defined values. "sum" is n times the mean, and so are its
    errors. "gmean" is exp(mean of ln max(x, 1e-5)), se the delta method's: value · se of the mean
    of logarithms; its interval is that of the mean of logarithms, put through exp. "urisk" is the
    mean of d where d ≥ 0 and of (1 + alpha) · d elsewhere, with d = x − the value that `base` has
    for the list (Wang et al. 2012); where smaller is better, d > 0 counts 1 + alpha times.
    "median", "min", "max" and a number q between 0 and 1 are quantiles, linear between two values;
    "std" has divisor n − 1. Errors and percentile intervals of quantiles and std are those of the
    Poisson bootstrap, over the units where there are any.

    Parameters
    ----------
    per_user : DataFrame or Evaluation
        `Evaluation.per_user` (or the `Evaluation` itself), perhaps joined to segments, variants or
        dates, many rows to one. There must be one row per list (and `by` value of the evaluation):
        a join that repeats lists is refused.
    by : str or list of str, optional
        Columns to group by; [] for none. By default the `by` columns of the evaluation. A merge can
        lose which columns those are; if there may be some, an error then asks for them, and so it
        does where columns are given without that of the recommenders, whose rows would be averaged
        together. A null is a group of its own.
    user_col : str or list of str, optional
        Columns that together name a list, including `by` columns; a list may occur only once. By
        default those that the evaluation recorded, or, where a join has lost its attrs, all columns
        before `n_true`. Columns that are named here and not in `by` are averaged over, such as
        folds.
    metrics : str or list of str, optional
        Metric columns. By default those that the evaluation recorded. A merge loses that record;
        then all columns named like `ndcg@10` or `rprecision`, so that metrics under names of your
        own must be given here.
    confidence : float, default 0.95
        Coverage of the interval.
    weight_col : str, optional
        Column of weights, at least 0; rows of weight 0 count as if they were not there. An
        `Evaluation` with weights needs no word, but its `per_user` alone does: without `weight_col`
        every row counts alike, and `WeightWarning` says so if the evaluation had weights (after a
        merge, only if their column is called "weight").
    unit_col : str or list of str, optional
        Columns that name who acted, such as "user_id", where one user has several lists (sessions,
        days). The lists of a user are alike, so that an interval that takes them for independent is
        too narrow. Default: where more columns than `by` precede `n_true` (or are in `user_col`),
        the one called "user_id", or else the first of them.
    options : Options, optional
        `user_col`, `by` and `weight_col` of a project, where they are not given here.
    stat : str, float or list of them, default "mean"
        "mean", "sum", "median", "min", "max", "std", "gmean", "urisk", or a quantile such as 0.9.
        The median says what a list in the middle has. "gmean" tells systems apart that differ in
        their worst lists, as `gm_map` of trec_eval does; values below 1e-5 count as that. The
        bootstrap tells little of "min" and "max": no draw goes beyond the data.
    weight_by : {"relevant", "shown", "rows"}, optional
        Weights of lists beside those of `weight_col`: n_true, min(k, n_pred) or n_pred. With `auc`
        that is GAUC, of RecBole ("relevant") and of FuxiCTR and DIN ("rows").
    base : DataFrame or Evaluation, optional
        Per-user table of one other recommender, for "urisk": the list key and the same metric
        columns. A list that it lacks has no value.
    alpha : float, default 0
        How much more a loss counts than a gain in "urisk".
    n_resamples, seed : int, default 2000, 0
        Of the bootstrap.

    Returns
    -------
    DataFrame
        `by` columns, `metric`, `k` (Int64), `value`, `std`, `se`, `ci_low`, `ci_high` (float64;
        std, se and interval null for n = 1, se and interval also for one unit and for equal
        values), `n`, `n_undefined` (int64), with weights `n_effective` (float64), with units
        `n_users` (int64: units with a defined row); groups in order of first appearance. Where a
        `stat` other than "mean" or several are asked for, or `weight_by`, `stat` before `metric`
        names the statistic of each row, and `std` is still that of the values (with "urisk" of the
        d).

    Raises
    ------
    ColumnError
        If a column is missing.
    NullKeyError
        If a list key or a unit is null.
    DataError
        If a list occurs in several rows (also of `base`), a group has lists of several
        recommenders, a metric column is not numeric or infinite, or a weight is null, negative or
        infinite.
    OptionError
        If `stat` or its arguments are unknown, or lists with weights are to be reduced to a sum,
        quantile or std.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> result = rd.evaluate({"u": ["a"], "v": ["b"]}, {"u": ["a"], "v": ["a"]}, "mrr@1")
    >>> users = DataFrame({"user_id": ["u", "v"], "segment": ["new", "old"]})
    >>> joined = result.per_user.merge(users, on="user_id", validate="many_to_one")
    >>> rd.summarize(joined, by="segment")[["segment", "metric", "k", "value", "n"]]
      segment metric  k  value  n
    0     new    mrr  1    1.0  1
    1     old    mrr  1    0.0  1
    >>> rd.summarize(result, stat=["median", 0.9])[["stat", "metric", "value"]]
         stat metric  value
    0  median    mrr    0.5
    1     0.9    mrr    0.9
    """
    stats = [stat] if isinstance(stat, str | float) else as_columns(stat)
    base = None if base is None else per_user_table(base)
    how = ListReduction(stats, weight_by, base, alpha, n_resamples, seed)
    whole = not isinstance(per_user, DataFrame)
    per_user = per_user_table(per_user)
    spec = evaluated(per_user)
    if whole and weight_col is None:
        weight_col = spec.get("weight")
    weights = None
    if weight_col is not None:
        weights = read_weight(per_user, "per_user", weight_col)
    keys = require(per_user, "per_user", as_columns(user_col))
    if by is None:
        _refuse_repeated_lists(per_user, keys, spec)
        by = recommender_columns(per_user, "by", weight_col)
    by = as_columns(by)
    # A list of several models is several lists, whether or not the key names the models, which
    # stand before it.
    listed = list_columns(per_user)
    before = listed[: listed.index(keys[0])] if keys and keys[0] in listed else []
    keys += [name for name in by if name in before and name not in keys]
    if weight_col is None:
        warn_of_weights(per_user, "per_user", [*by, *keys, *as_columns(metrics)])
    names = [name for name in _metric_columns(per_user, metrics, spec) if name != weight_col]
    units = as_columns(unit_col)
    require(per_user, "per_user", [*by, *names, *keys, *units])
    check_value("confidence", confidence, SHARE)
    for name in by:
        check_labels(per_user[name], f"per_user[{name!r}]")
    _refuse_repeated_lists(per_user, keys, spec)
    listed = [name for name in keys or listed if name not in (*by, weight_col)]
    if per_user[listed].isna().any(axis=None):
        key_codes([("per_user", per_user)], listed)  # which names the column of the null
    if not keys:
        refuse_mixed_models(per_user, by, units, "name all columns of the list key in ⟦+user_col=⟧")
    if not units and len(listed) > 1:
        units = unit_of([name for name in listed if name not in spec.get("by", [])])
    plain = per_user.copy(deep=False)
    plain.attrs = {}
    for name in names:
        plain[name] = metric_values(per_user, "per_user", name)
    if isinstance(stat, str) and stat == "mean" and weight_by is None:
        table = means(plain, by, names, spec, confidence, units, weights)
    else:
        key = spec.get("user_col") or listed
        against = None if how.base is None else _of_base(per_user, how.base, names, key)
        table = reduced(plain, by, names, how, spec, confidence, units, weights, against)
    if spec:
        table.attrs["recdf"] = spec
    return table


def recommender_columns(
    per_user: DataFrame, argument: str, weight_col: str | None = None
) -> list[str]:
    """Return the columns that tell the recommenders of a per-user table apart; a mean must not mix
    recommenders.

    `evaluate` writes them before the list key. If several columns precede `n_true` (`model,
    user_id, n_true, ...`) and a merge has lost which of them tell recommenders apart, the caller
    must say it in `argument`.
    """
    known = as_columns(evaluated(per_user).get("by"))
    listed = [name for name in list_columns(per_user) if name != weight_col]
    if known:
        return [name for name in known if name in per_user.columns]
    if len(listed) > 1 and not evaluated(per_user):
        raise DataError(
            f"per_user has {listed} before n_true, and which of them tell recommenders apart is "
            f"lost (a merge drops what evaluate wrote): name those in ⟦{argument}=⟧, such as "
            f"⟦{argument}={listed[0]!r}⟧, or pass ⟦{argument}=[]⟧"
        )
    return []


def _metric_columns(per_user: DataFrame, metrics: Names | None, spec: ByName) -> list[str]:
    if metrics is not None:
        if not (asked := as_columns(metrics)):
            raise OptionError("metrics is empty; expected at least one column of per_user")
        return asked
    names = [name for name in spec.get("metrics", {}) if name in per_user.columns]
    # A join loses attrs. Then only columns named like metrics count, so that a joined column of
    # numbers does not.
    texts = () if names else (name for name in per_user.columns if isinstance(name, str))
    for name in texts:
        metric = METRICS.get(name.partition("(")[0])
        if split_column(name)[1] is not None or (metric is not None and not metric.cut):
            names.append(name)
    if not names:
        own = [
            name
            for name in per_user.select_dtypes("number").columns
            if name not in ("n_true", "n_pred")
        ]
        raise ColumnError(
            "per_user has no column named like a metric ('ndcg@10'), and names of your own are "
            "lost in a merge, which drops what evaluate wrote: give them in ⟦+metrics=⟧; the "
            f"columns of numbers are {own}"
        )
    return names


def _refuse_repeated_lists(per_user: DataFrame, keys: list[str], spec: ByName) -> None:
    """Raise if a join repeated a list, which would then count twice."""
    written = [*spec.get("by", []), *spec.get("user_col", [])]
    if not keys and written and set(written) <= set(per_user.columns):
        keys = written
    keys = keys or list_columns(per_user)
    repeated = per_user.duplicated(keys).to_numpy() if keys else np.zeros(0, bool)
    if repeated.any():
        raise DataError(
            f"{repeated.sum():,} rows of per_user repeat a list ({keys}: "
            f"{some_keys(per_user, repeated, keys)}); join segments many to one, "
            'e.g. merge(..., validate="many_to_one")'
        )


def reduced(
    per_user: DataFrame,
    by: list[str],
    names: Names,
    how: ListReduction,
    spec: ByName,
    confidence: float,
    units: Names,
    weights: ndarray | None,
    against: DataFrame | None,
) -> DataFrame:
    """Return a row for each group, metric and statistic; `against` has the values of the
    baseline."""
    refuse_summary_names(by, ["stat"])
    how.check_weights(weights is not None)
    tables = []
    for name in names:
        k = spec["metrics"][name]["k"] if name in spec.get("metrics", {}) else split_column(name)[1]
        weight = weights
        if how.weight_by is not None:
            counts = "n_true" if how.weight_by == "relevant" else "n_pred"
            own = column(per_user, counts, "per_user").to_numpy(np.float64)
            own = np.minimum(own, k) if how.weight_by == "shown" and k is not None else own
            weight = own if weights is None else own * weights

        def of(values: Any, name: str = name, weight: ndarray | None = weight) -> DataFrame:
            plain = per_user.assign(**{name: values})
            return means(plain, by, [name], spec, confidence, units, weight)

        x = per_user[name].to_numpy(np.float64, na_value=np.nan)
        for stat in how.stats:
            values = x
            if stat == "urisk" and against is not None:
                values = x - against[name].to_numpy(np.float64, na_value=np.nan)
                meant = spec.get("metrics", {}).get(name, {}).get("definition", name)
                lost = values > 0 if better_of(meant) == "smaller" else values < 0
                values = np.where(lost, (1 + how.alpha) * values, values)
            table = of(values)
            if stat == "sum":
                table[ERRORS] = table[ERRORS].mul(table["n"], axis=0)
            elif stat == "gmean":
                logs = of(np.log(np.maximum(x, GMEAN_FLOOR)))
                table[["value", "ci_low", "ci_high"]] = np.exp(logs[["value", "ci_low", "ci_high"]])
                table["se"] = logs["se"] * table["value"]
            elif stat not in OF_MEANS:
                varies = table["se"].notna()
                table[ERRORS] = _resampled(per_user, by, x, units, stat, how, confidence, varies)
            table.insert(len(by), "stat", str(stat))
            tables.append(table)
    # The tables have the groups in the same order; their rows are put together group by group.
    order = np.arange(len(tables) * len(tables[0])).reshape(len(tables), -1).T.ravel()
    return pd.concat(tables, ignore_index=True).take(order).reset_index(drop=True)


def _of_base(per_user: DataFrame, base: DataFrame, names: Names, key: Names) -> DataFrame:
    """Return the rows that a baseline has for the list of each row, null for lists that it
    lacks."""
    require(base, "base", [*key, *names])
    (own, theirs), _ = key_codes([("per_user", per_user), ("base", base)], key)
    found = base[list(names)].set_axis(theirs)
    if not found.index.is_unique:
        raise DataError(
            f"base has several rows of a list ({list(key)}); expected the rows of one recommender"
        )
    if len(own) and not np.isin(own, theirs).any():
        raise DataError(f"base has none of the lists of per_user: no {list(key)} is the same")
    return found.reindex(own)


def _resampled(
    per_user: DataFrame,
    by: list[str],
    x: ndarray,
    units: Names,
    stat: Stat,
    how: ListReduction,
    confidence: float,
    varies: pd.Series,
) -> ndarray:
    """Return value, standard error and percentile interval of a statistic in each group."""
    group, labels = groups_of(per_user, by)
    unit = unit_codes(per_user, units, sort=True) if units else None
    q = None if stat == "std" else QUANTILES[stat] if isinstance(stat, str) else float(stat)
    found = np.full((len(labels), len(ERRORS)), np.nan)
    for number, some in enumerate(varies):
        own = np.flatnonzero((group == number) & ~np.isnan(x))
        if len(own) > (q is None):
            found[number, 0] = np.std(x[own], ddof=1) if q is None else np.quantile(x[own], q)
        if some:
            # Codes in the order of the values, so that the order of the rows makes no difference.
            codes = np.argsort(np.argsort(x[own], kind="stable")) if unit is None else unit[own]
            statistic = drawn_std if q is None else drawn_quantile(q)
            drawn = replicate_statistic(x[own], codes, statistic, how.n_resamples, how.seed)
            drawn = drawn[:, None]
            low, high = quantile_interval(drawn, alternative="two-sided", confidence=confidence)
            found[number, 1:] = standard_error(drawn)[0], low[0], high[0]
    return found
