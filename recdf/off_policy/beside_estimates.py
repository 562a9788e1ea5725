"""What stands beside an estimate: `ope_diagnostics` and `propensity_check` say what a log can tell
before it is estimated, and `ope_compare` compares several target policies on its rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from pandas import DataFrame

from ..docstrings import says_as
from ..errors import DataError, OptionError
from ..inputs.codes import first_rows
from ..inputs.constraints import OneLabel, Positive, Share
from ..inputs.door import checks_names, takes_options
from ..inputs.options import Options, as_columns
from ..judge.choices import Columns
from ..judge.users import model_pairs
from ..stats.many_tests import adjust
from ..stats.numbers import normal_p, normal_quantile, undefined_is_nan
from ..tables.cells import beside_columns
from .estimate_value import FLAGS, estimates_of, find_flags, ope_estimate, records, trust
from .plan import EstimatorRequest, Interaction, Plan, Ragged, SlateKind
from .read_log import (
    LARGEST_WEIGHT,
    LogArrays,
    Record,
    beside_groups,
    log_frame,
    read_log,
    read_probabilities,
    split_groups,
)
from .weighted_rows import clustered_error, dot

# ------------------------------------------------------------------------------------------
# `ope_diagnostics`: what the weights of a log say, before any estimate is read.


# The share of the rows, those of the largest weights, whose share of all weight is shown.
WORST = 0.01


_WEIGHT_COLUMNS = (
    "n_rows n_units n_clusters n_matched logging_value propensity_min weight_mean weight_mean_z "
    "weight_p50 weight_p99 weight_max max_weight_share worst_rows_share zero_weight_share "
    "unsupported_mass ess ess_share ess_reward ess_reward_expected effect withheld flags trust"
)
WEIGHT_COLUMNS = _WEIGHT_COLUMNS.split()


@says_as(ope_estimate)
@takes_options("by", "cluster")
def ope_diagnostics(
    log: Any,
    *,
    reward_col: str = "reward",
    propensity_col: str = "propensity",
    target_col: str = "target_propensity",
    slate_col: Columns | None = None,
    position_col: str = "position",
    interaction: Interaction | None = None,
    propensity_kind: SlateKind = "item",
    ragged: Ragged = "raise",
    cluster: Columns | None = "user_id",
    weight_col: str | None = None,
    by: Columns | None = None,
    options: Options | None = None,
) -> DataFrame:
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
    plan = Plan(
        "ips",
        None,
        interaction,
        slate_col,
        propensity_kind,
        ragged,
        cluster,
        reward_col,
        propensity_col,
        target_col,
        position_col,
        weight_col,
    )
    groups = split_groups(frame, by, WEIGHT_COLUMNS)
    arrays = read_log(frame, plan, as_columns(by))
    found = []
    for some in groups.rows:
        rows = arrays.rows(some, interaction)
        (known,) = estimates_of(arrays, rows, interaction).values()
        n_worst = max(math.ceil(WORST * len(rows)), 1)
        weight = rows.weighted(rows.weight)
        worst = np.partition(weight, len(rows) - n_worst)[-n_worst:]
        p50, p99 = np.quantile(rows.weight, [0.5, 0.99])
        more = {
            "propensity_min": arrays.take(some).propensity.min(),
            "weight_p50": p50,
            "weight_p99": p99,
            "worst_rows_share": worst.sum() / weight.sum(),
            "zero_weight_share": 1 - known["n_matched"] / len(rows),
        }
        found.append([known | more])
    return beside_groups(groups.labels, found, WEIGHT_COLUMNS)


# ------------------------------------------------------------------------------------------
# `propensity_check`: whether propensities fit their log.


_PROPENSITY_COLUMNS = (
    "n_rows n_shown inverse_sum ratio z p_value p_adj mean_inverse n_actions actions_z actions_p "
    "flags"
)
PROPENSITY_COLUMNS = _PROPENSITY_COLUMNS.split()

UNEVEN_ALPHA = 0.01

# A normal p-value of a sum of inverse propensities needs about this many rows of the item.
LEAST_SHOWN = 50


@checks_names
def propensity_check(
    log: Any,
    *,
    by: Columns = ("position", "item_id"),
    n_actions: Positive | None = None,
    propensity_col: str = "propensity",
) -> DataFrame:
    """Test whether logged propensities are those with which the items of the log were shown.

    Formula
    -------
    If p is right, each item that can be shown has E[1(shown)/p] = 1 in every row of its stratum, so
    the sum of 1/p over the rows that show it is near the number of rows n of the stratum: z = (Σ1/p
    − n)/√V, with x = 1/p where the item is shown, else 0, and V the larger of Σ(x − 1)² and
    n·Σx²/Σx − n. Summed over items, the mean of 1/p is the number of items that can be shown.

    Parameters
    ----------
    log : DataFrame, or any object with the Arrow stream interface
        One row per item that was shown.
    by : list of str, default ("position", "item_id")
        Columns of the strata, in each of which one policy chose one item per row, and the item id
        last. For rows of one stratum: `by="item_id"`.
    n_actions : int, optional
        How many items could be shown in every row of a stratum. Without it the mean of 1/p is shown
        and not tested.
    propensity_col : str, default "propensity"
        Column of the propensities.

    Returns
    -------
    DataFrame
        One row per stratum and item: the `by` columns, `n_rows` of the stratum, `n_shown` rows of
        the item, `inverse_sum` = Σ1/p, `ratio` = inverse_sum/n_rows (1 if the propensities are
        right), `z`, `p_value` (null with fewer than 50 rows of the item), `p_adj` (Holm over all
        rows), `mean_inverse` = mean of 1/p in the stratum, `n_actions`, `actions_z` and `actions_p`
        of its test, and `flags`: "item" where p_adj < 0.01, "n_actions" where actions_p < 0.01.

    Raises
    ------
    ColumnError, NullKeyError, DataError, OptionError
        If a column is missing, a key is null, a propensity is outside (0, 1], or `n_actions` is no
        count.

    Notes
    -----
    Use it first, on the raw log. Where all ratios are near one constant other than 1, the
    propensities are those of another event (the slate, another position), or rows were sampled.
    Where ratios differ with the items' rates of rewards, rows were kept by their reward. Where a
    ratio is near the share of time in which its item was available, the candidates changed: use
    strata in which they did not. Items that were never shown have no row here, but `n_actions`
    finds them. Where the propensities of one item differ by orders of magnitude, as those of a
    bandit that learns do, p-values are too small: look at the ratios.

    References
    ----------
    Li et al. (2015), "Counterfactual estimation and optimization of click metrics in search
    engines", control variates.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> log = pd.DataFrame({"item_id": ["a"] * 60 + ["b"] * 60, "propensity": 0.25})
    >>> found = rd.ope.propensity_check(log, by="item_id", n_actions=2)
    >>> found[["item_id", "n_shown", "ratio", "mean_inverse"]]
      item_id  n_shown  ratio  mean_inverse
    0       a       60    2.0           4.0
    1       b       60    2.0           4.0
    >>> found["flags"].tolist()
    ['item, n_actions', 'item, n_actions']
    """
    frame = log_frame(log)
    names = as_columns(by)
    if not names:
        raise OptionError("by is empty; expected the item id, behind the columns of the strata")
    what = "expected the probability of a shown item"
    inverse = 1 / read_probabilities(
        frame, propensity_col, zero=False, what=what, least=1 / LARGEST_WEIGHT
    )
    cell, labels = split_groups(frame, names, PROPENSITY_COLUMNS)
    stratum, _ = split_groups(frame, names[:-1], PROPENSITY_COLUMNS)
    of_cell = stratum[first_rows(cell, len(labels))]
    n = np.bincount(stratum)[of_cell]
    shown = np.bincount(cell)
    total = np.bincount(cell, inverse)
    # Σ(x − 1)² over all rows of the stratum, where x is 0 in the rows that show another item. Where
    # the rare rows with a large 1/p are missing by chance, both the sum and this spread are small,
    # and n·Σx²/Σx − n is the better one.
    square = np.bincount(cell, inverse**2)
    spread = np.maximum(np.bincount(cell, (inverse - 1) ** 2) + (n - shown), n * square / total - n)
    z = np.divide(total - n, np.sqrt(spread), out=np.zeros(len(n)), where=spread > 0)
    p_value = np.where(shown >= LEAST_SHOWN, normal_p(z), np.nan)
    p_adj = adjust(p_value, "holm")
    # The mean of 1/p per stratum, and its test against the number of items.
    n_stratum = np.bincount(stratum)
    mean = np.bincount(stratum, inverse) / n_stratum
    expected = np.nan if n_actions is None else float(n_actions)
    square = np.bincount(stratum, (inverse - mean[stratum]) ** 2)
    above = mean - expected
    with undefined_is_nan():
        se = np.sqrt(square / (n_stratum - 1) / n_stratum)
        # Equal propensities, as of a uniform policy, have no spread: then only rounding may lie
        # between.
        exact = np.where(np.abs(above) <= 1e-6 * expected, 0.0, np.sign(above) * np.inf)
        actions_z = np.where(se > 1e-9 * mean, above / se, exact)[of_cell]
    actions_p = normal_p(actions_z)
    odd = {"item": p_adj < UNEVEN_ALPHA, "n_actions": actions_p < UNEVEN_ALPHA}
    flags = [
        ", ".join(name for name, holds in zip(odd, both, strict=True) if holds)
        for both in zip(*odd.values(), strict=True)
    ]
    of_items = (n, shown, total, total / n, z, p_value, p_adj)
    of_strata = (mean[of_cell], expected, actions_z, actions_p, flags)
    return beside_columns(labels, dict(zip(PROPENSITY_COLUMNS, of_items + of_strata, strict=True)))


# ------------------------------------------------------------------------------------------
# `ope_compare`: several target policies on the same rows of one log.


_COMPARED_TARGET_COLUMNS = (
    "estimator clip value_baseline value diff se ci_low ci_high rel_diff n_rows n_units "
    "n_clusters confidence holds_for effect withheld flags trust"
)
COMPARED_TARGET_COLUMNS = _COMPARED_TARGET_COLUMNS.split()


@says_as(ope_estimate)
@takes_options("by", "cluster")
def ope_compare(
    log: Any,
    *,
    by: str = "model",
    baseline: OneLabel = None,
    estimators: str | Sequence[str] = ("ips", "snips"),
    reward_col: str = "reward",
    propensity_col: str = "propensity",
    target_col: str = "target_propensity",
    slate_col: Columns | None = None,
    position_col: str = "position",
    interaction: Interaction | None = None,
    propensity_kind: SlateKind = "item",
    ragged: Ragged = "raise",
    cluster: Columns | None = "user_id",
    weight_col: str | None = None,
    q_logged: str | None = None,
    q_target: str | None = None,
    clip: float | Sequence[float | None] | None = None,
    confidence: Share = 0.95,
    options: Options | None = None,
) -> DataFrame:
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
        `rel_diff` (null unless the baseline is above 0), `n_rows`, `n_units`, `n_clusters`,
        `confidence`, `holds_for`, `flags` of either target, and `effect`, `withheld` and `trust`,
        which follows from them; it is "wide" where half the interval is more than a fifth of the
        baseline's value.

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
    plan = Plan(
        estimators,
        clip,
        interaction,
        slate_col,
        propensity_kind,
        ragged,
        cluster,
        reward_col,
        propensity_col,
        target_col,
        position_col,
        weight_col,
        q_logged,
        q_target,
        confidence,
    )
    requests = plan.requests
    if not as_columns(cluster) and not plan.unit:
        raise OptionError(
            "⟦cluster=None⟧ and ⟦slate_col=None⟧: name the key by which the rows of the targets "
            "are paired"
        )
    groups = split_groups(frame, [by], ("baseline", *COMPARED_TARGET_COLUMNS))
    labels = groups.labels[by].tolist()
    if len(labels) < 2:
        raise OptionError(f"by names {len(labels)} target ({labels}); expected at least two")
    pairs = model_pairs(labels, baseline, "target")
    if len({request.interaction for request in requests}) > 1:
        raise OptionError(
            "estimators of several interactions cannot be compared in one call; call once for each"
        )
    arrays = read_log(frame, plan)
    targets = []
    for some in groups.rows:
        rows = arrays.rows(some, requests[0].interaction, closed=False)
        totals = rows.cluster_sums([np.ones(len(rows)), rows.reward])
        targets.append((totals, *records(arrays, rows, plan.all_requests)))
    found = []
    for pair in pairs:
        (first, own, one), (second, others, other) = (targets[side] for side in pair)
        # The same rows and rewards in every cluster.
        same = np.isclose(first, second, rtol=1e-9, atol=1e-12).all(axis=0)
        if not same.all():
            named = " and ".join(repr(labels[side]) for side in pair)
            raise DataError(
                f"targets {named} do not stand on the same rows: {np.count_nonzero(~same):,} "
                "clusters differ in their number of rows or sum of rewards; give each the whole "
                "log, as target_from_recs(⟦+by=⟧...) does"
            )
        assert one.sums is not None
        assert other.sums is not None
        psis = [theirs - ours for ours, theirs in zip(one.sums[1:], other.sums[1:], strict=True)]
        squares = np.array([dot(psi, psi) for psi in psis])
        errors = clustered_error(squares, own[0]["n_clusters"], one.units)
        found.append(
            [
                _difference(request, base, value, se, arrays)
                for request, base, value, se in zip(requests, own, others, errors, strict=False)
            ]
        )
    names = [groups.labels[by].iloc[list(side)].array for side in zip(*pairs, strict=True)]
    sides = DataFrame({"baseline": names[0], by: names[1]})
    return beside_groups(sides, found, COMPARED_TARGET_COLUMNS)


def _difference(
    request: EstimatorRequest, one: Record, other: Record, se: float, log: LogArrays
) -> Record:
    """Return the difference between two targets under one request."""
    if one["constant_reward"] is not None or other["constant_reward"] is not None:
        se = np.nan  # rewards that do not vary tell nothing of the error
    base = one["value"]
    value = other["value"]
    diff = value - base
    half = normal_quantile((1 + log.plan.confidence) / 2) * se
    both = {*find_flags(one, request, log), *find_flags(other, request, log)}
    return one | {
        "value_baseline": base,
        "value": value,
        "diff": diff,
        "se": se,
        "ci_low": diff - half,
        "ci_high": diff + half,
        "rel_diff": diff / base if base > 0 else np.nan,
        **trust(
            [name for name in FLAGS if name in both],
            base,
            diff - half,
            diff + half,
            "delta",
            one["holds_for"],
        ),
    }
