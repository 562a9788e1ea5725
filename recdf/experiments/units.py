"""Units of one metric in two arms, made ready: which rows count, what is summed per cluster, what
is adjusted for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import DataError
from ..judge.cautions import UNEQUAL
from ..judge.effects.means import Linear, Units
from ..judge.per_user_columns import Codes, Floats, Mask, some_keys
from ..judge.users import ArmRows, ExperimentRows
from ..stats.arms import Designs, Sample
from ..stats.permutation import random_split_p
from ..stats.shares import equal_shares_test
from .metric_bounds import MetricBounds
from .samples import MetricRows, sum_by, without_gaps


@dataclass(frozen=True)
class Ready:
    """The units of one metric in both arms, and which rows (None: those of moments) and covariates
    were left out."""

    name: str
    units: Units
    n_dropped: tuple[float, float]
    warnings: tuple[str, ...]
    n_covariate_missing: int = 0
    cap: float = np.nan
    pair: tuple[str, str] | None = None
    bounds: MetricBounds | None = None
    both: ArmRows | None = None


@dataclass(frozen=True)
class Covariates:
    """The covariates that can be used, of the rows of both arms, and why others cannot."""

    used: list[Sample]
    both: ArmRows
    n_missing: int = 0
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, metric: MetricRows, both: ArmRows, data: ExperimentRows) -> Covariates:
        """Those of the rows of a metric that count."""
        covariates = [one.each(both.take) for one in metric.covariates.values()]
        # A covariate that is missing more often in one arm was not fixed before the experiment:
        # adjusting by it would turn the missing values into an effect, so it is left out.
        reasons = [not_used(one, both, data) for one in covariates]
        used = [one for one, reason in zip(covariates, reasons, strict=True) if not reason]
        missing = [one.missing for one in covariates]
        n_missing = int(np.logical_or.reduce(missing).sum()) if missing else 0
        return cls(used, both, n_missing, tuple(dict.fromkeys(filter(None, reasons))))

    @cached_property
    def designs(self) -> Designs:
        return Designs(self.both.split(covariate_columns(self.used)))


def make_units(
    metric: MetricRows,
    both: ArmRows,
    data: ExperimentRows,
    resampled: bool = False,
    made: dict[Any, Covariates] | None = None,
) -> Ready:
    """The units of a metric in the rows of both arms; `resampled` ones are not adjusted by a
    regression.

    `made` keeps the covariates for the next metric, which often has the same.
    """
    kept = data.comparable(both.defined(metric.defined))
    sample = metric.sample.each(kept.take)
    key = (id(metric.defined), *((id(one.num), id(one.den)) for one in metric.covariates.values()))
    made = {} if made is None else made
    if key not in made:
        made.clear()
        made[key] = Covariates.of(metric, kept, data)
    covariates, designs = made[key], None
    used, warnings = covariates.used, list(covariates.warnings)
    regression = sample.den is None and data.clusters is None and not resampled
    gaps = covariates.n_missing and any(one.missing.any() for one in used)
    if regression and (len(used) > 1 or gaps or (used and data.strata is not None)):
        designs = covariates.designs
    elif used:
        sample = sample._replace(covariates=tuple(map(without_gaps, used)))
    clusters = None if data.clusters is None else kept.take(data.clusters)
    if clusters is not None and np.isin(*kept.split(clusters)).any():
        warnings.append("shared_clusters")
    null = metric.null
    if null is not None and unequal(both.take(null), both, data):
        warnings.append("unequal_missing")
    before, after = both.n, kept.n
    return Ready(
        metric.name,
        in_strata(sample, kept, data, clusters, metric.name, designs),
        (before[0] - after[0], before[1] - after[1]),
        tuple(warnings),
        covariates.n_missing,
        metric.cap,
        metric.pair,
        metric.bounds,
        kept,
    )


def differ(some: tuple[float, float], of: tuple[float, float]) -> bool:
    """Whether two shares differ beyond chance."""
    return some != (0, 0) and min(of) > 0 and equal_shares_test(some, of)[1] < UNEQUAL


def unequal(flags: Mask, both: ArmRows, data: ExperimentRows) -> bool:
    """Whether the shares of flagged rows differ between two arms beyond chance, within strata if
    there are any."""
    if data.strata is None:
        some = np.bincount(both.arm[flags], minlength=2).tolist()
        return differ((some[0], some[1]), both.n)
    sides = both.split(flags.astype(np.float64))
    return random_split_p(*sides, data.strata_of(both)) < UNEQUAL


def not_used(covariate: Sample, both: ArmRows, data: ExperimentRows) -> str:
    """Why a covariate of the rows of both arms is left out, or nothing."""
    if unequal(covariate.missing, both, data):
        return "unequal_covariate_missing"
    # New users have no past: a ratio over nothing explains nothing.
    den = covariate.den
    return "" if den is None or all(one.any() for one in both.split(den)) else "no_covariate"


def covariate_columns(covariates: list[Sample]) -> Floats:
    """Values of all covariates, and an indicator for each that has gaps, as columns."""
    filled = map(without_gaps, covariates)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = [
            one.num if one.den is None else np.nan_to_num(one.num / one.den) for one in filled
        ]
    return np.column_stack(
        columns + [one.missing.astype(np.float64) for one in covariates if one.missing.any()]
    )


def units_of(sample: Sample, both: ArmRows, **more: Any) -> Units:
    """The rows of both arms as units, of which more is known."""
    columns: list[Floats] = []
    forms = []
    for part in (sample, *sample.covariates):
        forms.append(Linear(len(columns), None if part.den is None else len(columns) + 1))
        columns += [part.num] if part.den is None else [part.num, part.den]
    return Units(columns, forms[0], both.arm, tuple(forms[1:]), **more)


def in_strata(
    sample: Sample,
    kept: ArmRows,
    data: ExperimentRows,
    clusters: Codes | None,
    metric: str,
    designs: Designs | None,
) -> Units:
    """The rows of both arms as units in strata: users, or clusters with a row in each of their
    strata. Too few units raise."""
    arm, stratum, n_strata, cluster = kept.arm, None, 1, None
    if data.strata is not None:
        present, stratum = np.unique(kept.take(data.strata[0]), return_inverse=True)
        n_strata = len(present)
    if clusters is not None:
        cell = (arm * (int(clusters.max(initial=-1)) + 1) + clusters) * n_strata
        sample, cell = sum_by(sample, cell if stratum is None else cell + stratum)
        unit = cell // n_strata
        arm = unit // (int(clusters.max(initial=-1)) + 1)
        if stratum is not None:
            stratum, cluster = cell % n_strata, np.unique(unit, return_inverse=True)[1]
    kept = ArmRows(None, arm) if clusters is not None else kept
    units = units_of(
        sample,
        kept,
        stratum=stratum,
        n_strata=n_strata,
        cluster=cluster,
        clustered=clusters is not None,
        counted=None if cluster is not None else kept.n,
        designs=designs,
    )
    if data.strata is None:
        return units
    few = np.bincount(units.cell, minlength=2 * n_strata).reshape(2, -1).min(axis=0) < 2
    if few.any():
        what = "users" if clusters is None else "clusters"
        labels = data.strata[1]
        raise DataError(
            f"{int(few.sum()):,} of {n_strata:,} strata have fewer than 2 {what} in an arm for "
            f"metric {metric!r} ({some_keys(labels, present[few], list(labels.columns))}); merge "
            f"strata, or leave those {what} out"
        )
    return units
