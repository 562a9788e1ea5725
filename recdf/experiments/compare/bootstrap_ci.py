"""Bootstrap intervals of means and ratios over users, for tables that need no comparison."""

from __future__ import annotations

from operator import itemgetter

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...errors import EmptyPopulationError
from ...inputs.constraints import SeveralRepetitions
from ...inputs.door import takes_options
from ...judge.choices import Columns, NamedMetrics, Natural, Options, Row, Share
from ...judge.per_user_columns import (
    by_columns,
    frame_of,
    group_codes,
    key_codes,
    metric_specs,
    refuse_mixed_models,
    require,
    split,
    warn_of_weights,
)
from ...judge.verdict import largest_of_uneven, name_heaviest
from ...progress import Progress
from ...stats.arms import HUGE, Sample, arm
from ...stats.resampling import bootstrap_effect, by_row, replicate_estimates
from ..samples import read_metrics, sum_by


@takes_options("by", "cluster")
def bootstrap_ci(
    per_user: DataFrame,
    metrics: NamedMetrics,
    *,
    by: Columns | None = None,
    cluster: Columns = "user_id",
    n_resamples: SeveralRepetitions = 2000,
    confidence: Share = 0.95,
    seed: Natural = 0,
    progress: bool | None = None,
    options: Options | None = None,
) -> DataFrame:
    """Interval of a mean, or of a ratio of sums, by a Poisson bootstrap over units.

    In replicate b every unit u gets a weight w_bu ~ Poisson(1); the replicate is Σ_u w_bu N_u / Σ_u
    w_bu D_u with N_u the sum of the metric over the rows of the unit and D_u the number of its
    defined rows (or the denominator of a ratio). Weights depend on the seed and the position of the
    unit in the order of the ids, so the numbers are the same for any order of the rows.

    Parameters
    ----------
    per_user : DataFrame
        One or more rows per unit, such as `result.per_user`. Every row counts alike;
        `WeightWarning` says so if it was evaluated with weights.
    metrics : str, list of str or mapping
        As in `compare_variants`. Rows where a metric is null are not part of its mean.
    by : str or list of str, optional
        Columns of groups (model, segment) that get an interval each. Lists of several recommenders
        in one group are an error, which asks for their column.
    cluster : str or list of str, default "user_id"
        Columns of the units that are resampled: rows of one unit stay together (sessions of a
        user).
    n_resamples : int, default 2000
        Number of replicates.
    confidence : float, default 0.95
        Of the two-sided interval.
    seed : int, default 0
        Of the weights.
    progress : bool, optional
        Show the progress on stderr, in plain lines. By default only on a
        terminal, and only after two seconds.
    options : Options, optional
        `by` and `user_col` (as `cluster`) of a project, where they are not given here.

    Returns
    -------
    DataFrame
        One row per (`by`, metric): `metric`, `value`, `se` (of the replicates), `ci_low`,
        `ci_high`, `n_units` (with a defined row), `n_undefined` (rows), `method` (that of the
        interval), `n_resamples`, `seed`, `holds_for` (of a mean of users with unequal numbers of
        lists: up to how many were seen), `remarks`. Remarks: "zero_variance", "too_few_units"
        (below 2), "zero_denominator" and "huge_values" (from 1e150 on): no interval.

    Raises
    ------
    ColumnError, NullKeyError
        A column is missing; a unit or `by` value is null.
    EmptyPopulationError
        If there are no rows.
    OptionError, DataError
        An option out of range; several recommenders in one group; a metric that is infinite or not
        numeric, a negative denominator.

    References
    ----------
    Chamandy et al.: Estimating uncertainty for massive data streams, 2012 (Poisson bootstrap).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame({"user_id": range(6), "ndcg@10": [0.1, 0.5, 0.3, 0.2, 0.9, 0.4]})
    >>> rd.experiments.bootstrap_ci(users, "ndcg@10")[["metric", "value", "se", "n_units"]].round(2)
        metric  value    se  n_units
    0  ndcg@10    0.4  0.12        6
    """
    frame_of("per_user", per_user)
    if not len(per_user):
        raise EmptyPopulationError("per_user has no rows; there is nothing to take a mean over")
    by_cols = by_columns(per_user, "per_user", by, INTERVAL_COLUMNS)
    units = require(per_user, "per_user", cluster)
    specs = metric_specs(metrics, per_user, "per_user")
    refuse_mixed_models(per_user, by_cols, units, "drop them from per_user")
    used = [*by_cols, *(name for pair in specs.values() for name in pair)]
    warn_of_weights(per_user, "per_user", used)
    columns = read_metrics(per_user, specs, {}, "drop", "per_user")
    group, groups = group_codes(per_user, "per_user", by_cols)
    (code,), _ = key_codes([("per_user", per_user)], units)
    rows: list[Row] = []
    with Progress(len(groups), "bootstrap_ci", progress) as shown:
        for members in split(group, len(groups)):
            samples = []
            for metric in columns:
                known = np.ones(len(members), bool)
                if metric.defined is not None:
                    known = metric.defined[members]
                # The sums of each unit, 0 where the metric is undefined, in the order of the ids.
                num, den, _ = metric.sample.each(itemgetter(members))
                num, den = (np.where(known, x, 0.0) for x in (num, 1.0 if den is None else den))
                sample, _ = sum_by(Sample(num, den), code[members])
                size = np.bincount(code[members[known]])
                n_units = np.count_nonzero(size)
                row = dict.fromkeys(INTERVAL_COLUMNS[1:5], np.nan)
                remarks = "huge_values"
                if np.abs(sample.num).max() < HUGE:
                    value, var, _ = arm(sample.num, sample.den)
                    row["value"], remarks = float(value), "" if var > 0 else "zero_variance"
                    if n_units < 2:
                        remarks = "too_few_units"
                    elif np.isnan(value):
                        remarks = "zero_denominator"
                samples += [] if remarks else [sample]
                rows.append(
                    row
                    | {
                        "metric": metric.name,
                        "n_units": n_units,
                        "n_undefined": (~known).sum(),
                        "remarks": remarks,
                        "heaviest": np.nan
                        if metric.sample.den is not None
                        else largest_of_uneven(size),
                    }
                )
            if samples:  # all metrics of a group have one set of replicates
                replicates = replicate_estimates(samples, n_resamples, seed)
                found = by_row(**bootstrap_effect(replicates, "two-sided", confidence))
                tested = [row for row in rows[-len(columns) :] if not row["remarks"]]
                for row, numbers in zip(tested, found, strict=True):
                    row |= numbers
            shown.add()
    which = np.repeat(np.arange(len(groups)), len(columns))
    table = DataFrame(rows).assign(method="percentile", n_resamples=n_resamples, seed=seed)
    name_heaviest(table, weighted=False)
    result = pd.concat([groups.iloc[which].reset_index(drop=True), table], axis=1)
    return result[[*by_cols, *INTERVAL_COLUMNS]]


INTERVAL_COLUMNS = [
    "metric",
    "value",
    "se",
    "ci_low",
    "ci_high",
    "n_units",
    "n_undefined",
    "method",
    "n_resamples",
    "seed",
    "holds_for",
    "remarks",
]
