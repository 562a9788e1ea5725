"""Units of one metric in two arms, made ready: which rows count, what is summed per cluster, what is adjusted for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import DataError
from ..stats.arms import Sample, both
from ..stats.shares import equal_shares_test
from .experiment_columns import Codes, Floats, some_keys
from .experiment_rows import ExperimentRows
from .samples import MetricRows, sum_by, without_gaps

# Level at which the shares of missing values of two arms are called different.
UNEQUAL = 0.01


@dataclass(frozen=True)
class Units:
    """Both arms of one metric. One covariate is in the samples (CUPED), several are columns of `designs`.

    `strata` are the stratum 0..H−1 of every unit of both arms, and the strata's shares W_h.
    """

    sides: tuple[Sample, Sample]
    designs: tuple[Floats, Floats] | None
    strata: tuple[tuple[Codes, Codes], Floats] | None
    clustered: bool
    n_dropped: tuple[int, int]
    n_covariate_missing: int
    warnings: tuple[str, ...]

    @property
    def n(self) -> tuple[int, int]:
        return len(self.sides[0].num), len(self.sides[1].num)

    @property
    def n_counting(self) -> int:
        """Units of the smaller arm; of a ratio, those whose denominator is not 0."""
        return min(len(s.num) if s.den is None else int((s.den > 0).sum()) for s in self.sides)


def make_units(metric: MetricRows, arms: tuple[Codes, Codes], data: ExperimentRows, resampled: bool) -> Units:
    """The units of a metric in the rows of both arms; `resampled` ones are adjusted by one covariate at most."""
    kept = metric.kept(arms[0]), metric.kept(arms[1])
    n = len(kept[0]), len(kept[1])
    sides = both(metric.sample.take, kept)
    covariates = [one.take(np.concatenate(kept)) for one in metric.covariates.values()]
    n_missing = int(np.logical_or.reduce([one.missing for one in covariates]).sum()) if covariates else 0
    # A covariate that is missing more often in one arm was not fixed before the experiment: adjusting by it would turn
    # the missing values into an effect, so it is left out.
    reasons = [not_used(one, n) for one in covariates]
    warnings = list(dict.fromkeys(filter(None, reasons)))
    covariates = [one for one, reason in zip(covariates, reasons, strict=True) if not reason]
    strata = _strata(data.strata, kept, metric)
    gaps = any(one.missing.any() for one in covariates)
    regression = sides[0].den is None and data.clusters is None and not resampled
    designs = None
    if regression and (len(covariates) > 1 or gaps or (covariates and strata is not None)):
        columns = covariate_columns(covariates)
        designs = columns[: n[0]], columns[n[0] :]
    elif covariates:
        x = without_gaps(covariates[0])
        past = x.take(slice(n[0])), x.take(slice(n[0], None))
        sides = both(lambda side, own: Sample(side.num, side.den, own.num, own.den), sides, past)
    if data.clusters is not None:
        if np.isin(data.clusters[kept[0]], data.clusters[kept[1]]).any():
            warnings.append("shared_clusters")
        sides = both(sum_by, sides, both(data.clusters.__getitem__, kept))
    if differ(both(metric.n_null, arms), both(len, arms)):
        warnings.append("unequal_missing")
    n_dropped = len(arms[0]) - n[0], len(arms[1]) - n[1]
    return Units(sides, designs, strata, data.clusters is not None, n_dropped, n_missing, tuple(warnings))


def differ(some: tuple[float, float], of: tuple[float, float]) -> bool:
    """Whether two shares differ beyond chance."""
    return some != (0, 0) and min(of) > 0 and equal_shares_test(some, of)[1] < UNEQUAL


def not_used(covariate: Sample, n: tuple[int, int]) -> str:
    """Why a covariate of both arms, the control first, is left out, or nothing."""
    gaps, den = covariate.missing, covariate.den
    if differ((int(gaps[: n[0]].sum()), int(gaps[n[0] :].sum())), n):
        return "unequal_covariate_missing"
    # New users have no past: a ratio over nothing explains nothing.
    return "" if den is None or (den[: n[0]].any() and den[n[0] :].any()) else "no_covariate"


def covariate_columns(covariates: list[Sample]) -> Floats:
    """Values of all covariates, and an indicator for each that has gaps, as columns."""
    filled = map(without_gaps, covariates)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = [one.num if one.den is None else np.nan_to_num(one.num / one.den) for one in filled]
    return np.column_stack(columns + [one.missing.astype(np.float64) for one in covariates if one.missing.any()])


def _strata(
    stratum: tuple[Codes, pd.DataFrame] | None, kept: tuple[Codes, Codes], metric: MetricRows
) -> tuple[tuple[Codes, Codes], Floats] | None:
    """Strata of both arms; one with fewer than 2 users in an arm raises."""
    if stratum is None:
        return None
    codes, labels = stratum
    present, own = np.unique(codes[np.concatenate(kept)], return_inverse=True)
    in_c, in_t = own[: len(kept[0])], own[len(kept[0]) :]
    counts = np.array([np.bincount(part, minlength=len(present)) for part in (in_c, in_t)])
    few = counts.min(axis=0, initial=2) < 2
    if few.any():
        shown = some_keys(labels, present[few], list(labels.columns))
        raise DataError(
            f"{int(few.sum()):,} of {len(present):,} strata have fewer than 2 users in an arm "
            f"for metric {metric.name!r} ({shown}); merge strata, or leave those users out"
        )
    return (in_c, in_t), counts.sum(axis=0) / counts.sum()
