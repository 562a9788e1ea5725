"""How many lists a comparison of models needs, or what difference it can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import DataError, OptionError
from ...inputs.constraints import NONE, SHARE, a_number, either
from ...inputs.options import as_columns
from ...judge.choices import Alternative, Columns, check_value
from ...judge.per_user_columns import frame_of, metric_specs, warn_of_weights
from ...judge.users import model_pairs, read_model_rows
from ...stats.arms import Sample
from ...stats.student import least_paired_effect, paired_units_needed
from ..samples import MetricRows
from .plan_experiment import Z95, read_past


def plan_comparison(
    per_user: pd.DataFrame,
    metrics: str | Sequence[str],
    *,
    baseline: Any,
    n: int | None = None,
    diff: float | None = None,
    rel_diff: float | None = None,
    model_col: str = "model",
    user_col: Columns = "user_id",
    unit_col: Columns | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    n_comparisons: int = 1,
    alternative: Alternative = "two-sided",
) -> pd.DataFrame:
    """Say how many lists a difference of two models needs, or how small a difference `n` lists can
    show.

    With s the standard deviation of the paired differences of the lists that both models have, and
    K the noncentrality for which a noncentral t with n − 1 degrees of freedom exceeds the quantile
    of the test at alpha/n_comparisons with the chance `power`: mde = K·s/√n. Lists of one unit are
    summed before squares, as in `plan_experiment` with `cluster=`. n_low and n_high are
    n·exp(∓1.96·v), with v² the variance of ln s².

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
    alpha, power, n_comparisons, alternative
        As in `plan_experiment`.

    Returns
    -------
    DataFrame
        One row per metric and model: `metric`, `baseline`, `model`, `n_lists` (in the data, of both
        models), `mean_baseline`, `std`, `n` (lists that it takes, int64), `n_low`, `n_high` (null
        with `n=`), `mde_abs`, `mde_rel` (null unless the baseline's mean is positive),
        `design_effect` (null where every list is a unit).

    Raises
    ------
    ColumnError, OptionError
        A column or the baseline is missing; not exactly one of `n`, `diff` and `rel_diff`.
    NullKeyError, DuplicateError, DataError
        A model or key is null; several rows of a model and list; a list of several units; fewer
        than 2 lists that both have, or no list that differs.

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
    frame_of("per_user", per_user)
    specs = metric_specs(metrics, per_user, "per_user")
    if sum(one is not None for one in (n, diff, rel_diff)) != 1:
        raise OptionError(
            f"n={n!r}, ⟦diff={diff!r}⟧ and ⟦rel_diff={rel_diff!r}⟧; expected exactly one of them"
        )
    check_value("n", n, either(a_number(3, whole=True), NONE))
    for name, given in (("diff", diff), ("rel_diff", rel_diff)):
        check_value(name, given, either(a_number(above=0), NONE))
    for name, share in (("alpha", alpha), ("power", power)):
        check_value(name, share, SHARE)
    check_value("n_comparisons", n_comparisons, a_number(1, whole=True))
    check_value("alternative", alternative, Alternative)
    level, keys = alpha / n_comparisons, as_columns(user_col)
    runs = read_model_rows(per_user, keys, [], model_col, as_columns(unit_col))
    warn_of_weights(per_user, "per_user", [model_col, *keys, *specs])
    tables, rows = {name: runs.table(name) for name in specs}, []
    for base, model in model_pairs(runs.models, baseline):
        # The lists in which both have all metrics.
        there = ~np.isnan([table[[base, model]] for table in tables.values()]).any(axis=(0, 1))
        units = None if runs.unit_of_list is None else runs.unit_of_list[there]
        for name, table in tables.items():
            minus = MetricRows(name, Sample((table[model] - table[base])[there]), {})
            past = read_past(minus, int(there.sum()), units)
            mean = float(table[base][there].mean())
            if rel_diff is not None and not mean > 0:
                raise DataError(
                    f"metric {name!r} has mean {mean:g}; a relative difference needs a positive one"
                )
            wanted = diff if rel_diff is None else rel_diff * mean
            of_test = level, power, alternative, past.size
            lists = n if wanted is None else paired_units_needed(wanted / past.planned, *of_test)
            assert lists is not None
            mde = past.planned * least_paired_effect(lists, *of_test)
            spread = math.exp(Z95 * past.error_std) if n is None else math.nan
            rows.append(
                {
                    "metric": name,
                    "baseline": baseline,
                    "model": runs.models[model],
                    "n_lists": int(there.sum()),
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
    return pd.DataFrame(rows)
