"""How many users an experiment needs, or what it can show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError
from ..inputs.options import check_choice
from .columns import count, frame_of, metric_specs, share
from .samples import covariate_specs, fill_covariate, read_metrics
from .stats.inference import arm, cuped_arm, cuped_theta, detectable

__all__ = ["plan_experiment"]


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
    nan: str = "raise",
) -> pd.DataFrame:
    """Say how small an effect `n` users can show, or how many users a relative effect needs.

    With K = z_{1−α/2} + z_power, s the standard deviation per user (after CUPED when covariates are given) and c
    the control's share: mde = K·s·√(1/(c·n) + 1/((1 − c)·n)).

    Parameters
    ----------
    per_user : DataFrame
        One row per user of the past, such as the control's or last month's.
    metrics, covariates, nan
        As in `compare_variants`.
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
        One row per metric: `metric`, `mean`, `std` (per user, without CUPED), `n_control`, `n_treatment` (int64),
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
    >>> rd.plan_experiment(users, "revenue", rel_effect=0.1)[["metric", "mean", "n_control", "n_treatment", "mde_abs"]]
        metric  mean  n_control  n_treatment  mde_abs
    0  revenue  10.0       3140         3140      1.0
    """
    frame_of("per_user", per_user)
    share("control_share", control_share)
    check_choice("nan", nan, ("raise", "drop"))
    if (n is None) == (rel_effect is None):
        raise OptionError(f"n={n!r} and rel_effect={rel_effect!r}; expected exactly one of them")
    if rel_effect is not None and (isinstance(rel_effect, bool | str) or not 0 < rel_effect < np.inf):
        raise OptionError(f"rel_effect={rel_effect!r}; expected a number above 0, such as 0.02")
    factor = detectable(share("alpha", alpha), share("power", power))
    specs = metric_specs(metrics, per_user, "per_user")
    rows = []
    for metric in read_metrics(per_user, specs, covariate_specs(covariates, specs, per_user), nan, "per_user"):
        sample, kept = metric.take(np.arange(len(per_user)))
        if len(kept) < 2:
            raise DataError(f"metric {metric.name!r} has {len(kept)} users; a standard deviation needs at least 2")
        # One sample as both arms: the pooled mean then fills a missing covariate.
        sample = fill_covariate(sample, sample)[0]
        plain = planned = arm(sample.num, sample.den)
        if sample.x_num is not None:
            planned = cuped_arm(sample, *cuped_theta(sample))
        mean = float(plain.mean)
        per_user_sd = math.sqrt(float(planned.var) * len(kept))
        if n is not None:
            n_control = round(count("n", n, 4) * control_share)
            n_treatment = n - n_control
            if min(n_control, n_treatment) < 2:
                raise OptionError(f"n={n} with control_share={control_share} leaves an arm with fewer than 2 users")
            mde = factor * per_user_sd * math.sqrt(1 / n_control + 1 / n_treatment)
        else:
            if not mean > 0:
                raise DataError(
                    f"metric {metric.name!r} has mean {mean:g}; a relative effect needs a positive mean, pass n="
                )
            mde = float(rel_effect or 0) * mean
            total = (factor * per_user_sd / mde) ** 2 * (1 / control_share + 1 / (1 - control_share))
            n_control, n_treatment = (max(2, math.ceil(total * c - 1e-9)) for c in (control_share, 1 - control_share))
        rows.append(
            {
                "metric": metric.name,
                "mean": mean,
                "std": math.sqrt(float(plain.var) * len(kept)),
                "n_control": n_control,
                "n_treatment": n_treatment,
                "mde_abs": mde,
                "mde_rel": mde / mean if mean > 0 else np.nan,
                "variance_reduction": np.nan
                if planned is plain or not plain.var > 0
                else 1 - float(planned.var / plain.var),
            }
        )
    return pd.DataFrame(rows)
