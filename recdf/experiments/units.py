"""Units of one metric in two arms, made ready: which rows count, what is summed per cluster, what
is adjusted for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError
from ..judge.cautions import UNEQUAL
from ..stats.arms import Sample, Strata, both
from ..stats.permutation import random_split_p
from ..stats.regression import Designs
from ..stats.shares import equal_shares_test
from .experiment_columns import Codes, Floats, Mask, some_keys
from .experiment_rows import ExperimentRows
from .samples import MetricRows, sum_by, without_gaps


@dataclass(frozen=True)
class Units:
    """Both arms of one metric in their strata. Covariates are in the samples or, for a regression,
    in `designs`."""

    sides: tuple[Sample, Sample]
    designs: Designs | None
    clustered: bool
    n_dropped: tuple[int, int]
    n_covariate_missing: int
    warnings: tuple[str, ...]

    @property
    def n(self) -> tuple[int, int]:
        return both(lambda side: side.n, self.sides)

    @cached_property
    def whole(self) -> tuple[Sample, Sample]:
        """One row per unit of both arms, as if there were no strata and covariates."""
        return both(lambda side: side.whole, self.sides)

    @property
    def n_counting(self) -> int:
        """Units of the smaller arm; of a ratio, those whose denominator is not 0."""
        return min(len(s.num) if s.den is None else int((s.den > 0).sum()) for s in self.whole)


@dataclass(frozen=True)
class Covariates:
    """The covariates that can be used, of both arms, the control of `n[0]` units first, and why
    others cannot."""

    used: list[Sample]
    n: tuple[int, int]
    n_missing: int = 0
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, metric: MetricRows, kept: tuple[Codes, Codes], data: ExperimentRows) -> Covariates:
        """Those of the rows of a metric that count."""
        n, strata = both(len, kept), data.strata_of(kept)
        covariates = [one.take(np.concatenate(kept)) for one in metric.covariates.values()]
        if not covariates:
            return cls([], n)
        # A covariate that is missing more often in one arm was not fixed before the experiment:
        # adjusting by it would turn the missing values into an effect, so it is left out.
        reasons = [not_used(one, n, strata) for one in covariates]
        used = [one for one, reason in zip(covariates, reasons, strict=True) if not reason]
        n_missing = int(np.logical_or.reduce([one.missing for one in covariates]).sum())
        return cls(used, n, n_missing, tuple(dict.fromkeys(filter(None, reasons))))

    @cached_property
    def designs(self) -> Designs:
        columns = covariate_columns(self.used)
        return Designs((columns[: self.n[0]], columns[self.n[0] :]))


def make_units(
    metric: MetricRows,
    arms: tuple[Codes, Codes],
    data: ExperimentRows,
    resampled: bool,
    made: dict[Any, Covariates] | None = None,
) -> Units:
    """The units of a metric in the rows of both arms; `resampled` ones are not adjusted by a
    regression.

    `made` keeps the covariates for the next metric, which often has the same.
    """
    kept = data.comparable(both(metric.kept, arms))
    sides = both(metric.sample.take, kept)
    key = (id(metric.defined), *((id(one.num), id(one.den)) for one in metric.covariates.values()))
    made = {} if made is None else made
    if key not in made:
        made.clear()
        made[key] = Covariates.of(metric, kept, data)
    covariates, designs = made[key], None
    (n, used), warnings = (covariates.n, covariates.used), list(covariates.warnings)
    regression = sides[0].den is None and data.clusters is None and not resampled
    gaps = covariates.n_missing and any(one.missing.any() for one in used)
    if regression and (len(used) > 1 or gaps or (used and data.strata is not None)):
        designs = covariates.designs
    elif used:
        filled, of_arm = [without_gaps(one) for one in used], (slice(n[0]), slice(n[0], None))
        sides = both(
            lambda side, own: side._replace(covariates=tuple(x.take(own) for x in filled)),
            sides,
            of_arm,
        )
    if data.clusters is not None and np.isin(data.clusters[kept[0]], data.clusters[kept[1]]).any():
        warnings.append("shared_clusters")
    sides = _in_strata(sides, kept, data, metric.name)
    null = metric.null
    if null is not None and unequal(both(lambda own: null[own], arms), data.strata_of(arms)):
        warnings.append("unequal_missing")
    n_dropped = len(arms[0]) - n[0], len(arms[1]) - n[1]
    return Units(
        sides, designs, data.clusters is not None, n_dropped, covariates.n_missing, tuple(warnings)
    )


def differ(some: tuple[float, float], of: tuple[float, float]) -> bool:
    """Whether two shares differ beyond chance."""
    return some != (0, 0) and min(of) > 0 and equal_shares_test(some, of)[1] < UNEQUAL


def unequal(flags: tuple[Mask, Mask], strata: tuple[Codes, Codes] | None) -> bool:
    """Whether the shares of flagged rows differ between two arms beyond chance, within strata if
    there are any."""
    if strata is None:
        return differ(both(np.count_nonzero, flags), both(len, flags))
    return random_split_p(*both(lambda own: own.astype(np.float64), flags), strata) < UNEQUAL


def not_used(covariate: Sample, n: tuple[int, int], strata: tuple[Codes, Codes] | None) -> str:
    """Why a covariate of both arms, the control first, is left out, or nothing."""
    gaps, den = covariate.missing, covariate.den
    if unequal((gaps[: n[0]], gaps[n[0] :]), strata):
        return "unequal_covariate_missing"
    # New users have no past: a ratio over nothing explains nothing.
    return "" if den is None or (den[: n[0]].any() and den[n[0] :].any()) else "no_covariate"


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


def _in_strata(
    sides: tuple[Sample, Sample], rows: tuple[Codes, Codes], data: ExperimentRows, metric: str
) -> tuple[Sample, Sample]:
    """Both arms as units in strata: users, or clusters with a row in each of their strata. Too few
    units raise."""
    clusters, labels, n_strata = data.clusters, pd.DataFrame(), 1
    if clusters is None and data.strata is None:
        return sides
    cells = both(lambda own: np.zeros(len(own), np.int64), rows)
    if data.strata is not None:
        labels, of_rows = data.strata[1], data.strata[0]
        present, own = np.unique(
            np.concatenate([of_rows[one] for one in rows]), return_inverse=True
        )
        n_strata, cells = len(present), (own[: len(rows[0])], own[len(rows[0]) :])
    if clusters is not None:
        found = both(
            lambda side, at, of: sum_by(side, clusters[at] * n_strata + of), sides, rows, cells
        )
        sides, cells = both(lambda one: one[0], found), both(lambda one: one[1], found)
    if data.strata is None:
        return sides
    unit = both(
        lambda cell: (
            None if clusters is None else np.unique(cell // n_strata, return_inverse=True)[1]
        ),
        cells,
    )
    placed = both(lambda cell, own: Strata(cell % n_strata, np.ones(n_strata), own), cells, unit)
    few = np.minimum(*(one.sums() for one in placed)) < 2
    if few.any():
        what = "users" if clusters is None else "clusters"
        raise DataError(
            f"{int(few.sum()):,} of {n_strata:,} strata have fewer than 2 {what} in an arm for "
            f"metric {metric!r} ({some_keys(labels, present[few], list(labels.columns))}); merge "
            f"strata, or leave those {what} out"
        )
    total = np.add(*both(lambda side, one: one.sums(side.den), sides, placed))
    weights = total / max(total.sum(), np.finfo(float).tiny)
    return both(lambda side, one: side.within(one._replace(weights=weights)), sides, placed)
