"""What the values of lists are reduced to beside their mean: quantiles, sums, geometric means, risk
against a baseline.

Contract: a reduction has one row per group, metric and statistic, in the columns of a table of
means, with the name of the statistic in `stat`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd

from ..errors import ColumnError, DataError, OptionError
from ..experiments.experiment_columns import key_codes, require
from ..inputs.constraints import SHARE, Positive, a_number, check_record, either, one_of
from ..inputs.frames import column
from ..stats.resampling import (
    drawn_quantile,
    drawn_std,
    quantile_interval,
    replicate_statistic,
    standard_error,
)
from .mean_tables import groups_of, means, split_column, unit_codes

WeightBy = Literal["relevant", "shown", "rows"]
QUANTILES = {"min": 0.0, "median": 0.5, "max": 1.0}
OF_MEANS = ("mean", "gmean", "urisk")  # means of transformed values, which take weights
STAT = either(one_of((*OF_MEANS, "sum", "std", *QUANTILES)), SHARE)
# Statistics that are better in the direction of their metric.
STAT_OF_MODELS = either(one_of(("mean", "sum", "median", "min", "max", "gmean")), SHARE)
Stat = str | float
ERRORS = ["value", "se", "ci_low", "ci_high"]


@dataclass(frozen=True)
class ListReduction:
    """What lists are reduced to; the arguments of `rd.summarize` explain the fields. `key` names a
    list in `base`."""

    stats: Sequence[Stat]
    floor: Annotated[float, a_number(above=0)]
    weight_by: WeightBy | None
    base: pd.DataFrame | None
    alpha: Annotated[float, a_number(0)]
    n_resamples: Positive
    seed: Annotated[int, a_number(0, whole=True)]

    def __post_init__(self) -> None:
        check_record(self)
        for one in self.stats or [""]:
            STAT.check("stat", one)
        if ("urisk" in self.stats) != (self.base is not None):
            raise OptionError(
                '⟦stat="urisk"⟧ and ⟦+base=⟧, the per-user table of a baseline, are given together'
            )

    def refuse_weights(self, weighted: bool) -> None:
        """Raise if a statistic that weights have no meaning for is asked of weighted lists."""
        refused = [one for one in self.stats if one not in OF_MEANS]
        if refused and (weighted or self.weight_by is not None):
            raise OptionError(
                f"⟦stat={refused[0]!r}⟧ is of lists that count alike, and these have weights; "
                "mean, gmean and urisk take weights. To leave them out, pass per_user without the "
                "column of weights"
            )

    def weights_of(
        self, per_user: pd.DataFrame, k: int | None, weights: np.ndarray | None
    ) -> np.ndarray | None:
        """Return the weight of each list for a metric at this k."""
        if self.weight_by is None:
            return weights
        counts = column(
            per_user, "n_true" if self.weight_by == "relevant" else "n_pred", "per_user"
        )
        own = counts.to_numpy(np.float64)
        if self.weight_by == "shown" and k is not None:
            own = np.minimum(own, k)
        return own if weights is None else own * weights


def base_values(
    per_user: pd.DataFrame, base: pd.DataFrame, names: Sequence[str], key: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the values that a baseline has for the list of each row, NaN for lists that it
    lacks."""
    require(base, "base", [*key, *names])
    (own, theirs), n = key_codes([("per_user", per_user), ("base", base)], key)
    place = np.full(n, -1)
    place[theirs] = np.arange(len(theirs))
    if (np.bincount(theirs, minlength=n) > 1).any():
        raise DataError(
            f"base has several rows of a list ({list(key)}); expected the rows of one recommender"
        )
    rows = place[own]
    if len(rows) and (rows < 0).all():
        raise DataError(f"base has none of the lists of per_user: no {list(key)} is the same")
    columns = {name: base[name].to_numpy(np.float64, na_value=np.nan) for name in names}
    return {name: np.where(rows < 0, np.nan, values[rows]) for name, values in columns.items()}


def reduced(
    per_user: pd.DataFrame,
    by: list[str],
    names: Sequence[str],
    how: ListReduction,
    spec: Mapping[str, Any],
    confidence: float,
    units: Sequence[str],
    weights: np.ndarray | None,
    against: Mapping[str, np.ndarray],
) -> pd.DataFrame:
    """Return a row for each group, metric and statistic; `against` are the values of the
    baseline."""
    if "stat" in by:
        raise ColumnError("the by column 'stat' has the name of a column of the summary; rename it")
    tables = []
    for name in names:
        k = spec["metrics"][name]["k"] if name in spec.get("metrics", {}) else split_column(name)[1]
        weight = how.weights_of(per_user, k, weights)

        def of(values: Any, name: str = name, weight: np.ndarray | None = weight) -> pd.DataFrame:
            return means(
                per_user.assign(**{name: values}), by, [name], spec, confidence, units, weight
            )

        x = per_user[name].to_numpy(np.float64, na_value=np.nan)
        for stat in how.stats:
            if stat == "urisk":
                d = x - against[name]
                table = of(np.where(d < 0, (1 + how.alpha) * d, d))
            else:
                table = of(x)
            if stat == "sum":
                table[ERRORS] = table[ERRORS].mul(table["n"], axis=0)
            elif stat == "gmean":
                logs = of(np.log(np.maximum(x, how.floor)))
                table[["value", "ci_low", "ci_high"]] = np.exp(logs[["value", "ci_low", "ci_high"]])
                table["se"] = logs["se"] * table["value"]
            elif stat not in OF_MEANS:
                table[ERRORS] = _resampled(
                    per_user, by, x, units, stat, how, confidence, table["se"].notna()
                )
            table.insert(len(by), "stat", str(stat))
            tables.append(table)
    # The tables have the groups in the same order; their rows are put together group by group.
    order = np.arange(len(tables) * len(tables[0])).reshape(len(tables), -1).T.ravel()
    return pd.concat(tables, ignore_index=True).take(order).reset_index(drop=True)


def _resampled(
    per_user: pd.DataFrame,
    by: list[str],
    x: np.ndarray,
    units: Sequence[str],
    stat: Stat,
    how: ListReduction,
    confidence: float,
    varies: pd.Series,
) -> np.ndarray:
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
            drawn = replicate_statistic(x[own], codes, statistic, how.n_resamples, how.seed)[
                :, None
            ]
            low, high = quantile_interval(
                drawn, np.zeros(1), alternative="two-sided", confidence=confidence
            )
            found[number, 1:] = standard_error(drawn)[0], low[0], high[0]
    return found
