"""Columns of a frame as the arrays that the statistics work on: metrics, their covariates, caps and
nulls."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError
from ..inputs.constraints import SHARE, check_value
from ..inputs.options import as_columns
from ..inputs.sorting import exact_sums
from ..judge.choices import RaiseOrDrop
from ..judge.per_user_columns import (
    Codes,
    Floats,
    Mask,
    MetricColumns,
    metric_specs,
    metric_values,
    read_weight,
)
from ..stats.arms import Sample
from .metric_bounds import MetricBounds, defined_bounds


@dataclass(frozen=True)
class MetricRows:
    """One metric over all rows.

    `defined` is None when every row counts. Rows that do not are null, or, for a ratio of sums,
    have nothing to count (a denominator of 0 beside a null numerator); only the first kind is in
    `null`, since the second kind adds nothing to either sum. `bounds` are those of a mean whose
    definition is known, and `pair` the columns of a ratio.
    """

    name: str
    sample: Sample
    covariates: dict[str, Sample]
    defined: Mask | None = None
    null: Mask | None = None
    cap: float = np.nan
    pair: tuple[str, str] | None = None
    bounds: MetricBounds | None = None

    def kept(self, rows: Codes) -> Codes:
        """The rows that count."""
        return rows if self.defined is None else rows[self.defined[rows]]

    def n_null(self, rows: Codes) -> int:
        return 0 if self.null is None else int(self.null[rows].sum())


def subset(name: str, chosen: str | Collection[str] | None, specs: Mapping[str, Any]) -> list[str]:
    """Metrics that an option names; one that is not compared raises."""
    named = as_columns(chosen if chosen is None or isinstance(chosen, str) else list(chosen))
    unknown = [metric for metric in named if metric not in specs]
    if unknown:
        raise OptionError(
            f"⟦{name}=⟧ names {unknown}, which are not compared; metrics are {list(specs)}"
        )
    return named


def covariate_specs(
    covariates: Any, specs: Mapping[str, MetricColumns], data: pd.DataFrame
) -> dict[str, list[MetricColumns]]:
    """Columns of the covariates of every metric: one column, a list of columns, or for a ratio a
    tuple of two."""
    if covariates is None:
        return {}
    if isinstance(covariates, str | list | tuple):
        covariates = dict.fromkeys(specs, covariates)
    if not isinstance(covariates, Mapping):
        raise OptionError(
            f"⟦covariates={covariates!r}⟧; expected a column, a list of columns, or a mapping of "
            "metrics to them"
        )
    subset("covariates", list(covariates), specs)
    found = {}
    for metric, given in covariates.items():
        ratio = specs[metric][1] is not None
        several = given if isinstance(given, list) else [given]
        named = {str(i): one for i, one in enumerate(several)}
        found[metric] = list(metric_specs(named, data, "data", f"covariates[{metric!r}]").values())
        if not ratio and any(isinstance(one, tuple) and len(one) > 1 for one in several):
            raise OptionError(
                f"covariates[{metric!r}]={given!r} is a tuple, the numerator and denominator of a "
                "ratio of sums, and the metric is a mean; pass several covariates as a list"
            )
    return found


def read_metrics(
    data: pd.DataFrame,
    specs: Mapping[str, MetricColumns],
    covariates: Mapping[str, Sequence[MetricColumns]],
    nan: RaiseOrDrop,
    role: str = "data",
    cap: Mapping[str, float] | None = None,
    weight_col: str | None = None,
) -> list[MetricRows]:
    """Columns of every metric, checked; a null metric raises or marks its row as not defined.

    A weighted mean is the ratio Σ w y / Σ w, and a weighted ratio of sums is Σ w N / Σ w D. A row
    of weight 0 does not count.
    """
    weight = None if weight_col is None else read_weight(data, role, weight_col)
    read: dict[str, Floats] = {}

    def values(name: str) -> Floats:
        if name not in read:
            read[name] = metric_values(data, role, name)
        return read[name]

    caps = _caps(cap, specs)
    metrics = []
    for name, (num, den) in specs.items():
        denominator = None if den is None else _denominator(values(den), role, den)
        null, empty = _undefined(values(num), denominator)
        if weight is not None:
            null, empty = null & (weight > 0), empty | (weight == 0)
        if null.any() and nan == "raise":
            raise DataError(
                f"metric {name!r} is null in {int(null.sum()):,} of {len(data):,} rows (first: "
                "rows "
                f'{np.flatnonzero(null)[:5].tolist()}); pass ⟦+nan="drop"⟧ to leave them out, or '
                "say what they "
                'are worth (evaluate with ⟦+undefined="zero"⟧)'
            )
        dropped = null | empty
        xs = {
            a if b is None else f"{a}/{b}": Sample(values(a), None if b is None else values(b))
            for a, b in covariates.get(name, ())
        }
        numbers, limit = values(num), np.nan
        if name in caps and not dropped.all():
            limit = float(np.quantile(numbers[~dropped], caps[name]))
            numbers = np.minimum(numbers, limit)
        sample = Sample(numbers, denominator)
        if weight is not None:
            sample, xs = weighted(sample, weight), {of: weighted(x, weight) for of, x in xs.items()}
        defined, nulls = ~dropped if dropped.any() else None, null if null.any() else None
        bounds = defined_bounds(num) if den in (None, f"{num}__n") else None
        pair = None if den is None else (num, den)
        metrics.append(MetricRows(name, sample, xs, defined, nulls, limit, pair, bounds))
    return metrics


def weighted(sample: Sample, weight: Floats) -> Sample:
    """Numerators and denominators times the weights; a mean has the denominator 1."""
    return Sample(weight * sample.num, weight if sample.den is None else weight * sample.den)


def _denominator(values: Floats, role: str, name: str) -> Floats:
    below = int((values < 0).sum())
    if below:
        raise DataError(f"{role}[{name!r}] is negative in {below:,} rows; a denominator is not")
    return values


def _undefined(num: Floats, den: Floats | None) -> tuple[Mask, Mask]:
    """Rows whose value is null, and rows of a ratio that have nothing to count.

    A user without a defined list has a null sum over 0 lists. That is no missing value: the user
    adds nothing to either sum of the ratio.
    """
    null = np.isnan(num)
    if den is None:
        return null, np.zeros(len(num), bool)
    empty = null & (den == 0)
    return (null & ~empty) | np.isnan(den), empty


def _caps(cap: Mapping[str, float] | None, specs: Mapping[str, MetricColumns]) -> dict[str, float]:
    if cap is None:
        return {}
    if not isinstance(cap, Mapping):
        raise OptionError(
            f"⟦cap={cap!r}⟧; expected a mapping of metrics to quantiles, such as {{'revenue': "
            "0.999}"
        )
    subset("cap", list(cap), specs)
    for name, value in cap.items():
        check_value(f"cap[{name!r}]", value, SHARE)
        if specs[name][1] is not None:
            raise OptionError(
                f"⟦cap=⟧ names {name!r}, which is a ratio of sums; a cap is for means"
            )
    return dict(cap)


def without_gaps(covariate: Sample) -> Sample:
    """The covariate with the mean of all units in place of what is missing."""
    known = ~covariate.missing
    if known.all():
        return covariate
    return covariate.each(
        lambda values: np.where(known, values, values[known].mean() if known.any() else 0.0)
    )


def sum_by(sample: Sample, clusters: Codes) -> tuple[Sample, Codes]:
    """Sums per cluster, and the clusters; a mean becomes the ratio to the number of rows."""
    present, own = np.unique(clusters, return_inverse=True)

    def counted(one: Sample) -> Sample:
        return Sample(
            one.num,
            np.ones(len(own)) if one.den is None else one.den,
            tuple(map(counted, one.covariates)),
        )

    return counted(sample).each(lambda values: exact_sums(values, own, len(present))), present
