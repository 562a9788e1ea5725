"""Columns of a frame as the samples that `inference` works on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..errors import DataError, OptionError
from ..inputs.options import as_columns
from .columns import Codes, Floats, Spec, metric_specs, metric_values
from .stats.arms import Sample, pool

__all__: list[str] = []


@dataclass(frozen=True)
class Metric:
    """Columns of one metric over all rows; `defined` is None when no row is null."""

    name: str
    sample: Sample
    defined: npt.NDArray[np.bool_] | None

    def take(self, rows: Codes) -> tuple[Sample, Codes]:
        """The defined units among the rows, and their row numbers."""
        kept = rows if self.defined is None else rows[self.defined[rows]]
        return Sample(*(None if part is None else part[kept] for part in self.sample)), kept  # type: ignore[arg-type]


def subset(name: str, chosen: str | Sequence[str] | None, specs: Mapping[str, Spec]) -> list[str]:
    named = as_columns(chosen)
    unknown = [metric for metric in named if metric not in specs]
    if unknown:
        raise OptionError(f"{name} names {unknown}, which are not compared; metrics are {list(specs)}")
    return named


def covariate_specs(covariates: Any, specs: Mapping[str, Spec], data: pd.DataFrame) -> dict[str, Spec]:
    if covariates is None:
        return {}
    if isinstance(covariates, str):
        covariates = dict.fromkeys(specs, covariates)
    if not isinstance(covariates, Mapping):
        raise OptionError(f"covariates={covariates!r}; expected a column, or a mapping of metrics to columns or pairs")
    subset("covariates", list(covariates), specs)
    return metric_specs(covariates, data, "data", "covariates") if covariates else {}


def read_metrics(
    data: pd.DataFrame, specs: Mapping[str, Spec], covariates: Mapping[str, Spec], nan: str, role: str = "data"
) -> list[Metric]:
    """Columns of every metric, checked; a null metric raises or marks its row as not defined."""
    read: dict[str, Floats] = {}

    def values(name: str) -> Floats:
        if name not in read:
            read[name] = metric_values(data, role, name)
        return read[name]

    metrics = []
    for name, (num, den) in specs.items():
        null = np.isnan(values(num))
        if den is not None:
            null = null | np.isnan(values(den))
            below = int((values(den) < 0).sum())
            if below:
                raise DataError(f"{role}[{den!r}] is negative in {below:,} rows; a denominator is not")
        if null.any() and nan == "raise":
            raise DataError(
                f"metric {name!r} is null in {int(null.sum()):,} of {len(data):,} rows (first: rows "
                f'{np.flatnonzero(null)[:5].tolist()}); pass nan="drop" to leave them out, or say what they '
                'are worth (evaluate with undefined="zero")'
            )
        columns = (num, den, *covariates.get(name, (None, None)))
        sample = Sample(*(None if column is None else values(column) for column in columns))  # type: ignore[arg-type]
        metrics.append(Metric(name, sample, ~null if null.any() else None))
    return metrics


def fill_covariate(control: Sample, treatment: Sample) -> tuple[Sample, Sample, int]:
    """Give missing covariates the mean of both arms; returns how many there were."""
    if control.x_num is None or treatment.x_num is None:
        return control, treatment, 0
    missing = [
        np.isnan(s.x_num) | (np.isnan(s.x_den) if s.x_den is not None else False)  # type: ignore[arg-type]
        for s in (control, treatment)
    ]
    n_missing = int(missing[0].sum() + missing[1].sum())
    if not n_missing:
        return control, treatment, 0
    both = pool(control, treatment)
    absent = np.concatenate(missing)
    filled = [control, treatment]
    for name in ("x_num", "x_den"):
        values = getattr(both, name)
        if values is not None:
            mean = values[~absent].mean() if not absent.all() else 0.0
            filled = [
                s._replace(**{name: np.where(gap, mean, getattr(s, name))})
                for s, gap in zip(filled, missing, strict=True)
            ]
    return filled[0], filled[1], n_missing


def sum_by(sample: Sample, clusters: Codes) -> Sample:
    """Sums per cluster; a mean becomes the ratio to the number of rows."""
    _, own = np.unique(clusters, return_inverse=True)
    rows = np.ones(len(own))

    def sums(values: Floats | None) -> Floats:
        return np.bincount(own, weights=rows if values is None else values).astype(np.float64)

    x = (None, None) if sample.x_num is None else (sums(sample.x_num), sums(sample.x_den))
    return Sample(sums(sample.num), sums(sample.den), *x)
