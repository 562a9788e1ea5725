"""How many users an experiment needs, or what it can show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...errors import DataError, OptionError
from ...inputs.constraints import NONE, Share, a_number, check_record, either
from ...stats.arms import Arm, Sample, arm, both, estimate_arm, slopes
from ...stats.power import detectable, detectable_t
from ...stats.regression import residuals_of_both
from ..choices import RaiseOrDrop, check_value
from ..experiment_columns import Codes, frame_of, metric_specs
from ..samples import MetricRows, covariate_specs, read_metrics, without_gaps
from ..units import covariate_columns

# The search for the number of users settles in three or four steps.
STEPS = 50


def plan_experiment(
    per_user: pd.DataFrame,
    metrics: str | Sequence[str] | Mapping[str, Any],
    *,
    n: int | None = None,
    rel_effect: float | None = None,
    control_share: float = 0.5,
    alpha: float = 0.05,
    power: float = 0.8,
    covariates: str | Mapping[str, Any] | None = None,
    nan: RaiseOrDrop = "raise",
) -> pd.DataFrame:
    """Say how small an effect `n` users can show, or how many users a relative effect needs.

    With s the standard deviation per user (after the adjustment when covariates are given), c the control's share and
    K the noncentrality for which a noncentral t with n − 2 degrees of freedom exceeds t_{1−α/2} with the chance `power`
    (about z_{1−α/2} + z_power for many users): mde = K·s·√(1/(c·n) + 1/((1 − c)·n)).

    Parameters
    ----------
    per_user : DataFrame
        One row per user of the past, such as the control's or last month's.
    metrics, covariates, nan
        As in `compare_variants`; several covariates are a regression.
    n : int
        Users in both arms together; or
    rel_effect : float
        the effect to be found, relative to the mean (0.02: two per cent). Exactly one of the two.
    control_share : float, default 0.5
        Share of the control among the users of both arms.
    alpha, power : float, default 0.05, 0.8
        Level of the two-sided test, and chance of finding the effect.

    Returns
    -------
    DataFrame
        One row per metric: `metric`, `mean`, `std` (per user, without covariates), `n_control`, `n_treatment` (int64),
        `mde_abs`, `mde_rel` (null unless the mean is positive), `variance_reduction` (null without covariates).

    Raises
    ------
    ColumnError, OptionError
        A column is missing; not exactly one of `n` and `rel_effect`, or an option out of range.
    DataError
        A metric with fewer than 2 users, not numeric, infinite or null; `rel_effect` with a mean that is not positive.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame({"revenue": [0.0, 10.0, 0.0, 30.0]})
    >>> plan = rd.experiments.plan_experiment(users, "revenue", rel_effect=0.1)
    >>> plan[["metric", "mean", "n_control", "n_treatment", "mde_abs"]]
        metric  mean  n_control  n_treatment  mde_abs
    0  revenue  10.0       3141         3141      1.0
    """
    frame_of("per_user", per_user)
    check_value("nan", nan, RaiseOrDrop)
    if (n is None) == (rel_effect is None):
        raise OptionError(f"n={n!r} and ⟦rel_effect={rel_effect!r}⟧; expected exactly one of them")
    check_value("rel_effect", rel_effect, either(a_number(above=0), NONE))
    design = _Design(control_share, alpha, power)
    specs = metric_specs(metrics, per_user, "per_user")
    rows = []
    for metric in read_metrics(per_user, specs, covariate_specs(covariates, specs, per_user), nan, "per_user"):
        mean, std, planned = _past(metric, len(per_user))
        if n is not None:
            n_control, n_treatment = design.arms(n)
            mde = design.detectable(n_control, n_treatment) * planned
        else:
            if not mean > 0:
                raise DataError(
                    f"metric {metric.name!r} has mean {mean:g}; a relative effect needs a positive mean, pass n="
                )
            mde = float(rel_effect or 0) * mean
            n_control, n_treatment = design.needed(mde / planned)
        rows.append({
            "metric": metric.name, "mean": mean, "std": std, "n_control": n_control, "n_treatment": n_treatment,
            "mde_abs": mde, "mde_rel": mde / mean if mean > 0 else np.nan,
            "variance_reduction": 1 - (planned / std) ** 2 if metric.covariates and std > 0 else np.nan,
        })  # fmt: skip
    return pd.DataFrame(rows)


def _past(metric: MetricRows, n_rows: int) -> tuple[float, float, float]:
    """Mean and standard deviation per user of the past: as they are, and the one that the experiment will see."""
    kept = metric.kept(np.arange(n_rows))
    if len(kept) < 2:
        raise DataError(f"metric {metric.name!r} has {len(kept)} users; a standard deviation needs at least 2")
    sample = metric.sample.take(kept)
    plain = arm(sample.num, sample.den)
    planned = _adjusted(metric, sample, kept) if metric.covariates else plain
    std, std_planned = (math.sqrt(float(one.var) * len(kept)) for one in (plain, planned))
    return float(plain.mean), std, std_planned


def _adjusted(metric: MetricRows, sample: Sample, kept: Codes) -> Arm:
    """The sample as the experiment will see it, adjusted by its covariates."""
    taken = [one.take(kept) for one in metric.covariates.values()]
    if sample.den is None and (len(taken) > 1 or taken[0].missing.any()):
        return arm(residuals_of_both(sample.num, covariate_columns(taken)))
    sample = sample._replace(covariates=tuple(map(without_gaps, taken)))
    return estimate_arm(sample, *slopes(sample))


@dataclass(frozen=True)
class _Design:
    """How the experiment will be run and tested."""

    control_share: Share
    alpha: Share
    power: Share

    def __post_init__(self) -> None:
        check_record(self)

    def arms(self, n: int) -> tuple[int, int]:
        """Users of both arms of an experiment of n users."""
        n_control = round(check_value("n", n, a_number(4, whole=True)) * self.control_share)
        if min(n_control, n - n_control) < 2:
            raise OptionError(f"n={n} with ⟦+control_share={self.control_share}⟧ leaves an arm with fewer than 2 users")
        return n_control, n - n_control

    def detectable(self, n_control: int, n_treatment: int) -> float:
        """Smallest effect found with the power, in standard deviations."""
        factor = float(detectable_t(n_control + n_treatment - 2, self.alpha, self.power))
        return factor * math.sqrt(1 / n_control + 1 / n_treatment)

    def needed(self, effect: float) -> tuple[int, int]:
        """Users of both arms that find an effect, given in standard deviations, with the power.

        The t quantile depends on the number of users, so the normal formula is where the search starts.
        """
        shares = self.control_share, 1 - self.control_share
        scale = (1 / shares[0] + 1 / shares[1]) / effect**2
        total = detectable(self.alpha, self.power) ** 2 * scale
        for _ in range(STEPS):
            factor = float(detectable_t(max(total - 2, 1.0), self.alpha, self.power))
            total, before = factor**2 * scale, total
            if abs(total - before) < 1e-6 * before:
                break
        arms = self._rounded(total)
        while self.detectable(*arms) > effect * (1 + 1e-9):
            total += 1 / max(shares)
            arms = self._rounded(total)
        return arms

    def _rounded(self, total: float) -> tuple[int, int]:
        shares = self.control_share, 1 - self.control_share
        return both(lambda share: max(2, math.ceil(total * share - 1e-9)), shares)
