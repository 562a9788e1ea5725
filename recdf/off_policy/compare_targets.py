"""`ope_compare`: several target policies on the same rows of one log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ..docstrings import says_as
from ..errors import DataError, OptionError, closest
from ..inputs.door import takes_columns
from ..inputs.options import Options, as_columns
from ..stats.numbers import Floats
from .estimate_value import FLAGS, Evidence, find_flags, gather_evidence, ope_estimate, trust
from .influence import clustered_error
from .plan import Interaction, Plan, SlateKind, model_columns, read_requests
from .read_log import LogArrays, Record, beside_groups, log_frame, read_log, split_groups
from .rows import IntCodes, LogGroup, dot

COMPARED_TARGET_COLUMNS = (
    "estimator",
    "clip",
    "value_baseline",
    "value",
    "diff",
    "se",
    "ci_low",
    "ci_high",
    "rel_diff",
    "n_rows",
    "n_units",
    "n_clusters",
    "confidence",
    "effect",
    "withheld",
    "flags",
    "trust",
)


@says_as(ope_estimate)
@takes_columns("by", "cluster")
def ope_compare(
    log: Any,
    *,
    by: str = "model",
    baseline: Any = None,
    estimators: str | Sequence[str] = ("ips", "snips"),
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
    q_logged: str | None = None,
    q_target: str | None = None,
    clip: float | Sequence[float | None] | None = None,
    confidence: float = 0.95,
    options: Options | None = None,
) -> pd.DataFrame:
    """Compare target policies with each other on the same logged rows: paired differences with
    intervals.

    Larger is better where a larger reward is. A difference between two targets is often known much
    better than either value, because both are estimated from the same rewards.

    Formula
    -------
    diff = v − v_baseline, se = √(U/(U − 1)·Σ_c(Σ_{i in c} (ψ_i − ψ_i,baseline))²)/n with the
    influence values ψ of `ope_estimate`, summed per cluster c.

    Parameters
    ----------
    log : DataFrame, or any object with the Arrow stream interface
        The log once for every target, as `target_from_recs(log, pred, by="model")` makes it.
    by : str, default "model"
        Column that names the target.
    baseline : label, optional
        Target that the others are compared with; None compares all pairs.
    {estimators, reward_col, propensity_col, target_col, slate_col}
    {position_col, interaction, propensity_kind, ragged}
    cluster : str, list of str or None, default "user_id"
        Key by which the rows of the targets are paired; None pairs them by `slate_col`.
    {weight_col, q_logged, q_target, clip, confidence}
    {options}

    Returns
    -------
    DataFrame
        One row per pair of targets, estimator and clip: `baseline`, the target under the name of
        `by`, `estimator`, `clip`, `value_baseline`, `value`, `diff`, `se`, `ci_low`, `ci_high`,
        `rel_diff`, `n_rows`, `n_units`, `n_clusters`, `confidence`, `flags` of either target, and
        `effect`, `withheld` and `trust`, which follows from them; it is "wide" where half the
        interval is more than a fifth of the baseline's value.

    Raises
    ------
    OptionError
        If there are fewer than two targets, the baseline is none of them, or `cluster` and
        `slate_col` are both None.
    DataError
        If the targets do not stand on the same rows; and as `ope_estimate`.

    Notes
    -----
    Use it to choose between recommenders before an experiment. No correction for several
    comparisons is made.

    References
    ----------
    As `ope_estimate`; differences of influence values: Hampel (1974).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> log = pd.DataFrame(
    ...     {
    ...         "user_id": [1, 2, 3],
    ...         "item_id": ["a", "a", "b"],
    ...         "reward": [1, 0, 1],
    ...         "propensity": 0.5,
    ...     }
    ... )
    >>> pred = pd.DataFrame(
    ...     {"model": list("xxxyyy"), "user_id": [1, 2, 3] * 2, "item_id": list("aabaaa")}
    ... )
    >>> both = rd.ope.target_from_recs(log, pred, by="model")
    >>> rd.ope.compare(both, estimators="snips")[["baseline", "model", "diff", "trust"]].round(3)
      baseline model   diff                    trust
    0        x     y -0.167  do not use: few rewards
    """
    frame = log_frame(log)
    requests = read_requests(
        estimators, clip, interaction, as_columns(slate_col), propensity_kind, ragged
    )
    if not as_columns(cluster) and not as_columns(slate_col):
        raise OptionError(
            "⟦cluster=None⟧ and ⟦slate_col=None⟧: name the key by which the rows of the targets "
            "are paired"
        )
    plan = Plan(
        requests,
        reward_col,
        propensity_col,
        target_col,
        position_col,
        weight_col,
        *model_columns(requests, q_logged, q_target),
        tuple(as_columns(slate_col)),
        tuple(as_columns(cluster)),
        propensity_kind,
        ragged == "as_logged",
        confidence,
    )
    groups = split_groups(frame, [by], ("baseline", *COMPARED_TARGET_COLUMNS))
    labels = groups.labels[by].tolist()
    pairs = _target_pairs(labels, baseline)
    arrays = read_log(frame, plan)
    targets = [_target(arrays, some, plan) for some in groups.rows]
    rows = []
    for first, second in pairs:
        _check_same(targets[first], targets[second], (labels[first], labels[second]))
        rows.append(
            [
                _target_difference(targets[first], targets[second], j, plan)
                for j in range(len(requests))
            ]
        )
    names = [
        groups.labels[by].iloc[list(side)].reset_index(drop=True)
        for side in zip(*pairs, strict=True)
    ]
    return beside_groups(
        pd.DataFrame({"baseline": names[0], by: names[1]}), rows, COMPARED_TARGET_COLUMNS
    )


class _Target(NamedTuple):
    """One target policy: what is known of each request, its rows, and their number and sum of
    rewards per cluster."""

    evidence: list[Evidence]
    rows: LogGroup
    totals: Floats


def _target_pairs(labels: list[Any], baseline: Any) -> list[tuple[int, int]]:
    if len(labels) < 2:
        raise OptionError(f"by names {len(labels)} target ({labels}); expected at least two")
    if baseline is None:
        return list(combinations(range(len(labels)), 2))
    if baseline not in labels:
        raise OptionError(
            f"⟦baseline={baseline!r}⟧ is no target; there are "
            f"{labels}{closest(str(baseline), labels)}"
        )
    at = labels.index(baseline)
    return [(at, other) for other in range(len(labels)) if other != at]


def _target(log: LogArrays, some: IntCodes | None, plan: Plan) -> _Target:
    """Estimate one target under all requests; those of one interaction share their rows."""
    requests = plan.all_requests
    interactions = dict.fromkeys(request.interaction for request in requests)
    if len(interactions) > 1:
        raise OptionError(
            "estimators of several interactions cannot be compared in one call; call once for each"
        )
    rows = log.rows(some, requests[0].interaction, closed=False)
    totals = np.zeros((2, 0))
    if rows.cluster is not None:
        totals = np.array(rows.cluster_sums([np.ones(len(rows)), rows.reward]))
    return _Target(gather_evidence(log, rows, requests), rows, totals)


def _check_same(one: _Target, other: _Target, names: tuple[Any, Any]) -> None:
    """Refuse targets that do not stand on the same rows: the same rows and rewards in every
    cluster."""
    same = np.isclose(one.totals, other.totals, rtol=1e-9, atol=1e-12).all(axis=0)
    if not same.all():
        n = int(np.count_nonzero(~same))
        raise DataError(
            f"targets {names[0]!r} and {names[1]!r} do not stand on the same rows: {n:,} clusters "
            "differ in their number of rows or sum of rewards; give each the whole log, as "
            "target_from_recs(⟦+by=⟧...) does"
        )


def _target_difference(first: _Target, second: _Target, j: int, plan: Plan) -> Record:
    found, other_found = first.evidence[j], second.evidence[j]
    one, other = found.estimates, other_found.estimates
    if one.sums is None or other.sums is None:
        raise ValueError("targets are paired by their clusters")
    psi = other.sums[1 + j] - one.sums[1 + j]
    se = float(clustered_error(np.array(dot(psi, psi)), one.n_clusters, one.units))
    if any(side.weights.constant_reward is not None for side in (found, other_found)):
        se = np.nan  # rewards that do not vary tell nothing of the error
    base, value = one.values[j], other.values[j]
    diff, half = value - base, NormalDist().inv_cdf((1 + plan.confidence) / 2) * se
    both = {*find_flags(found), *find_flags(other_found)}
    flags = [name for name in FLAGS if name in both]
    request = plan.requests[j]
    return {
        "estimator": request.label,
        "clip": np.nan if request.clip is None else request.clip,
        "value_baseline": base,
        "value": value,
        "diff": diff,
        "se": se,
        "ci_low": diff - half,
        "ci_high": diff + half,
        "rel_diff": diff / base if base else np.nan,
        "n_rows": len(first.rows),
        "n_units": first.rows.n_units,
        "n_clusters": one.n_clusters,
        "confidence": plan.confidence,
        "flags": ", ".join(flags),
        **trust(flags, base, diff - half, diff + half, "delta"),
    }
