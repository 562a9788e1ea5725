"""How many lists a comparison of models needs, or what difference it can show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Annotated

import numpy as np
from pandas import DataFrame

from ...errors import DataError, OptionError
from ...inputs.constraints import Above0, OneLabel, Positive, Share, a_number
from ...inputs.door import checks_names
from ...inputs.sorting import distinct
from ...judge.cautions import FEW_LISTS, FEW_UNITS
from ...judge.choices import Alternative, Columns, as_columns
from ...judge.per_user_columns import metric_specs, warn_of_weights
from ...judge.users import model_pairs, read_model_rows
from ...stats.arms import Sample
from ...stats.student import PairedTest
from ..metric_bounds import bounds_of
from ..samples import MetricRows, declared_bounds
from .plan_experiment import Z95, read_past


@checks_names
def plan_comparison(
    per_user: DataFrame,
    metrics: Columns,
    *,
    baseline: OneLabel,
    n: Annotated[int, a_number(3, whole=True)] | None = None,
    diff: Above0 | None = None,
    rel_diff: Above0 | None = None,
    model_col: str = "model",
    user_col: Columns = "user_id",
    unit_col: Columns | None = None,
    alpha: Share = 0.05,
    power: Share = 0.8,
    n_comparisons: Positive = 1,
    alternative: Alternative = "two-sided",
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> DataFrame:
    """Say how many lists a difference of two models needs, or how small a difference `n` lists can
    show.

    With s the standard deviation of the paired differences of the lists that both models have, and
    K the noncentrality for which a noncentral t with n − 1 degrees of freedom exceeds the quantile
    of the test at alpha/n_comparisons with the chance `power`: mde = K·s/√n. Where the metric has
    the range R, such as 1 of ndcg, it is at least z_power·s/√n + ln(n_comparisons/alpha)·R/n, since
    `rd.compare_models` withholds what a few unseen users could turn. Lists of one unit are summed
    before squares, as in `plan_experiment` with `cluster=`. n_low and n_high are n·exp(∓1.96·v),
    with v² the variance of ln s².

    Parameters
    ----------
    per_user : DataFrame
        `result.per_user` of a smaller test set, or of earlier models that are as alike as those to
        be compared.
    metrics : str or list of str
        Columns.
    baseline : label
        Model that the others are compared with.
    n : int
        Lists; or
    diff, rel_diff : float
        the difference to be found, in units of the metric, or of the baseline's mean. Exactly one
        of the three.
    model_col : str, default "model"
        Column of the model.
    user_col, unit_col : str or list of str
        Columns of the list key, and of what is independent of whom; by default, as in
        `rd.compare_models`, "user_id" if it is in the key, else the first column of the key.
    alpha, power, n_comparisons, alternative, bounds
        As in `plan_experiment`.

    Returns
    -------
    DataFrame
        One row per metric and model: `metric`, `baseline`, `model`, `n_lists` (in the data, of both
        models), `mean_baseline`, `std`, `n` (lists that it takes, int64; at least so many that the
        verdict is not withheld for too few lists, or too few that differ), `n_low`, `n_high` (null
        with `n=`), `mde_abs` (null where `n=` are fewer than that), `mde_rel` (null unless the
        baseline's mean is positive), `design_effect` (null where every list is a unit).

    Raises
    ------
    ColumnError, OptionError
        A column or the baseline is missing; not exactly one of `n`, `diff` and `rel_diff`.
    NullKeyError, DuplicateError, DataError
        A model or key is null; several rows of a model and list; a list of several units; fewer
        than 2 lists that both have, or no list that differs; a value outside of `bounds`.

    References
    ----------
    Sakai 2016 (sizes of test collections).

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, ["ndcg"], k=10, by="model")
    >>> plan = rd.experiments.plan_comparison(
    ...     result.per_user, "ndcg@10", baseline="popularity", diff=0.01
    ... )
    >>> plan[["model", "n_lists", "std", "n"]].round(3)
        model  n_lists    std     n
    0     knn     1537  0.290  6600
    1  random     1537  0.243  4633
    """
    specs = metric_specs(metrics, per_user, "per_user")
    declared = declared_bounds(bounds, specs)
    if sum(one is not None for one in (n, diff, rel_diff)) != 1:
        raise OptionError("pass exactly one of ⟦+n=⟧, ⟦+diff=⟧ and ⟦+rel_diff=⟧")
    level = alpha / n_comparisons
    z = NormalDist().inv_cdf(power)
    keys = as_columns(user_col)
    runs = read_model_rows(per_user, keys, [], model_col, as_columns(unit_col))
    warn_of_weights(per_user, "per_user", [model_col, *keys, *specs])
    tables = {name: runs.table(name) for name in specs}
    rows = []
    for base, model in model_pairs(runs.models, baseline):
        # The lists in which both have all metrics.
        there = ~np.isnan([table[[base, model]] for table in tables.values()]).any(axis=(0, 1))
        units = None if runs.unit_of_list is None else runs.unit_of_list[there]
        for name, table in tables.items():
            minus = MetricRows(name, Sample((table[model] - table[base])[there]), {})
            past = read_past(minus, there.sum(), units)
            mean = table[base][there].mean()
            if rel_diff is not None and not mean > 0:
                raise DataError(
                    f"metric {name!r} has mean {mean:g}; a relative difference needs a positive one"
                )
            wanted = (diff or 0.0) if rel_diff is None else rel_diff * mean
            known = bounds_of(name, declared, table[[base, model]])
            reach = 0.0 if known is None else known[1] - known[0]
            unseen = past.unseen(level, reach)
            test = PairedTest(level, power, alternative, past.size, unseen)
            # With fewer lists, or fewer that differ, the verdict would be withheld.
            differ = np.flatnonzero(minus.sample.num)
            n_differ = len(differ if units is None else distinct(units[differ]))
            # Where m are expected to differ, m − z√m or more do with this power (Poisson).
            many = (z / 2 + math.sqrt(z**2 / 4 + FEW_UNITS)) ** 2
            least = max(FEW_LISTS * past.size, many * there.sum() / n_differ)
            lists = n
            if lists is None:
                lists = max(test.rows_needed(wanted / past.planned), math.ceil(least))
            mde = past.planned * test.least_effect(lists) if lists >= least else math.nan
            spread = math.exp(Z95 * past.error_std) if n is None else math.nan
            rows.append(
                {
                    "metric": name,
                    "baseline": baseline,
                    "model": runs.models[model],
                    "n_lists": there.sum(),
                    "mean_baseline": mean,
                    "std": past.std,
                    "n": lists,
                    "n_low": lists / spread,
                    "n_high": lists * spread,
                    "mde_abs": mde,
                    "mde_rel": mde / mean if mean > 0 else math.nan,
                    "design_effect": past.design_effect,
                }
            )
    return DataFrame(rows)
