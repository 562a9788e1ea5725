"""`ope_diagnostics`: what the weights of a log say, before any estimate is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..errors import OptionError
from ..inputs.door import takes_columns
from ..inputs.options import Options, as_columns, says_as
from .estimate_value import gather_evidence, log_record, ope_estimate
from .estimators import Interaction
from .flags import find_flags, trust
from .intervals import delta_intervals, without_variation
from .log_columns import Record, beside_groups, log_frame, split_groups
from .plan import Plan, read_requests
from .read_log import LogArrays, read_log
from .rows import IntCodes
from .slates import SlateKind

# The share of the rows, those of the largest weights, whose share of all weight is shown.
WORST = 0.01


WEIGHT_COLUMNS = (
    "n_rows",
    "n_units",
    "n_clusters",
    "n_matched",
    "logging_value",
    "propensity_min",
    "weight_mean",
    "weight_mean_z",
    "weight_p50",
    "weight_p99",
    "weight_max",
    "max_weight_share",
    "worst_rows_share",
    "zero_weight_share",
    "unsupported_mass",
    "ess",
    "ess_share",
    "ess_reward",
    "ess_reward_expected",
    "effect",
    "withheld",
    "flags",
    "trust",
)


@says_as(ope_estimate)
@takes_columns("by", "cluster")
def ope_diagnostics(
    log: Any,
    *,
    reward_col: str = "reward",
    propensity_col: str = "propensity",
    target_col: str = "target_propensity",
    slate_col: str | Sequence[str] | None = None,
    position_col: str = "position",
    interaction: Interaction | None = None,
    propensity_kind: SlateKind = "item",
    ragged: Literal["raise", "as_logged"] = "raise",
    cluster: str | Sequence[str] | None = "user_id",
    weight_col: str | None = None,
    by: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> pd.DataFrame:
    """Show whether a log can tell what a target policy would have earned: overlap, support and
    rewards.

    Formula
    -------
    With w = π_e/π_b: `ess` = (Σw)²/Σw² is the number of rows of equal weight that would be as
    precise, `ess_reward` the same of w·r, and `weight_mean_z` = (mean(w) − 1)/se, which is large
    only where propensities are wrong or the target policy shows what the log never does, because
    the expected weight is 1.

    Parameters
    ----------
    {log, reward_col, propensity_col, target_col, slate_col}
    {position_col, interaction, propensity_kind, ragged}
    {cluster, weight_col}
    by : str or list of str, optional
        Columns each of whose values is diagnosed alone.
    {options}

    Returns
    -------
    DataFrame
        One row per group: the `by` columns, `n_rows`, `n_units`, `n_clusters`, `n_matched` (rows
        with w > 0), `logging_value`, `propensity_min`, `weight_mean`, `weight_mean_z`,
        `weight_p50`, `weight_p99`, `weight_max`, `max_weight_share`, `worst_rows_share` (share of
        all weight on the 1 % of rows with the largest weights), `zero_weight_share` (share of rows
        that the target policy would not show), `unsupported_mass`, `ess`, `ess_share`,
        `ess_reward`, `ess_reward_expected`, `flags`, `effect`, `withheld` and `trust` (those of
        ips, whose interval may still make it "wide").

    Raises
    ------
    ColumnError, NullKeyError, OptionError, DataError
        As `ope_estimate`.

    Notes
    -----
    Use it before `ope_estimate`, and `propensity_check` before both. It cannot see propensities
    that are wrong in a way that keeps the mean weight at 1, such as those of another event of the
    same policy.

    References
    ----------
    Kong (1992), effective sample size; Li et al. (2015), "Toward predicting the outcome of an A/B
    experiment".

    Examples
    --------
    >>> import recdf as rd
    >>> log = rd.logs.from_dict(
    ...     {1: {"a": 0.5, "b": 0.5}, 2: {"a": 0.5, "b": 0.5}}, value_name="propensity"
    ... )
    >>> log = log.assign(reward=[1, 0, 0, 1], target_propensity=[0.9, 0.1, 0.9, 0.1])
    >>> found = rd.ope.diagnostics(log)
    >>> found[["weight_mean", "ess", "ess_reward", "trust"]].round(3)
       weight_mean    ess  ess_reward                    trust
    0          1.0  2.439        1.22  do not use: few rewards
    """
    frame = log_frame(log)
    if as_columns(slate_col) and interaction is None:
        raise OptionError(
            "⟦slate_col=⟧ makes slates; say ⟦+interaction='independent'⟧, 'cascade' or 'standard'"
        )
    requests = read_requests(
        "ips", None, interaction, as_columns(slate_col), propensity_kind, ragged
    )
    plan = Plan(
        requests,
        reward_col,
        propensity_col,
        target_col,
        position_col,
        weight_col,
        unit=tuple(as_columns(slate_col)),
        cluster=tuple(as_columns(cluster)),
        kind=propensity_kind,
        ragged=ragged == "as_logged",
    )
    groups = split_groups(frame, by, WEIGHT_COLUMNS)
    arrays = read_log(frame, plan, as_columns(by))
    return beside_groups(
        groups.labels, [[_diagnose(arrays, some)] for some in groups.rows], WEIGHT_COLUMNS
    )


def _diagnose(log: LogArrays, some: IntCodes | None) -> Record:
    plan, request = log.plan, log.plan.requests[0]
    rows = log.rows(some, request.interaction)
    (evidence,) = gather_evidence(log, rows, plan.requests)
    weights = evidence.weights
    limits = delta_intervals(evidence.estimates, plan.confidence)[0]
    limits = without_variation(limits, weights.constant_reward, False)
    flags = find_flags(evidence)
    p50, p99 = np.quantile(rows.weight, [0.5, 0.99])
    n_worst = max(int(np.ceil(WORST * len(rows))), 1)
    worst = np.partition(rows.weight, len(rows) - n_worst)[-n_worst:]
    propensity = log.propensity if some is None else log.propensity[some]
    return {
        **log_record(rows, evidence),
        "propensity_min": float(propensity.min()),
        "weight_mean_z": weights.mean_z,
        "weight_p50": float(p50),
        "weight_p99": float(p99),
        "worst_rows_share": float(worst.sum() / rows.weight.sum()),
        "zero_weight_share": 1 - weights.n_matched / len(rows),
        "flags": ", ".join(flags),
        **trust(flags, evidence.estimate.value, limits.ci_low, limits.ci_high, "delta"),
    }
