"""`ope_diagnostics` and `propensity_check`: what a log says of itself before it is estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..docstrings import says_as
from ..errors import OptionError
from ..inputs.codes import first_rows
from ..inputs.constraints import NONE, POSITIVE, a_number, check_value, either
from ..inputs.door import takes_columns
from ..inputs.options import Options, as_columns
from ..stats.many_tests import adjust
from ..stats.numbers import Floats, undefined_is_nan
from .estimate_value import find_flags, gather_evidence, log_record, ope_estimate, trust
from .influence import delta_intervals, without_variation
from .plan import Interaction, Plan, SlateKind, read_requests
from .read_log import (
    LARGEST_WEIGHT,
    LogArrays,
    Record,
    beside_groups,
    log_frame,
    log_key_codes,
    read_log,
    read_probabilities,
    split_groups,
)
from .rows import IntCodes

# ------------------------------------------------------------------------------------------
# `ope_diagnostics`: what the weights of a log say, before any estimate is read.


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
    return {
        **log_record(rows, evidence),
        "propensity_min": float(log.take(some).propensity.min()),
        "weight_mean_z": weights.mean_z,
        "weight_p50": float(p50),
        "weight_p99": float(p99),
        "worst_rows_share": float(worst.sum() / rows.weight.sum()),
        "zero_weight_share": 1 - weights.n_matched / len(rows),
        "flags": ", ".join(flags),
        **trust(flags, evidence.estimate.value, limits.ci_low, limits.ci_high, "delta"),
    }


# ------------------------------------------------------------------------------------------
# `propensity_check` and `popularity_propensity`: whether propensities fit their log, and a stand-
# in without any.


PROPENSITY_COLUMNS = (
    "n_rows",
    "n_shown",
    "inverse_sum",
    "ratio",
    "z",
    "p_value",
    "p_adj",
    "mean_inverse",
    "n_actions",
    "actions_z",
    "actions_p",
    "flags",
)

UNEVEN_ALPHA = 0.01

# A normal p-value of a sum of inverse propensities needs about this many rows of the item.
LEAST_SHOWN = 50


def propensity_check(
    log: Any,
    *,
    by: str | Sequence[str] = ("position", "item_id"),
    n_actions: int | None = None,
    propensity_col: str = "propensity",
) -> pd.DataFrame:
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
    names = as_columns(by) if isinstance(by, str) else list(by)
    if not names:
        raise OptionError("by is empty; expected the item id, behind the columns of the strata")
    check_value("n_actions", n_actions, either(POSITIVE, NONE))
    what = "expected the probability of a shown item"
    inverse = 1 / read_probabilities(
        frame, propensity_col, zero=False, what=what, least=1 / LARGEST_WEIGHT
    )
    cells = split_groups(frame, names, PROPENSITY_COLUMNS)
    cell = cells.codes(len(frame))
    strata = split_groups(frame, names[:-1], PROPENSITY_COLUMNS)
    stratum = strata.codes(len(frame))
    of_cell = stratum[[0 if some is None else int(some[0]) for some in cells.rows]]
    n = np.bincount(stratum)[of_cell]
    shown, total = np.bincount(cell), np.bincount(cell, inverse)
    # Σ(x − 1)² over all rows of the stratum, where x is 0 in the rows that show another item. Where
    # the rare rows with a large 1/p are missing by chance, both the sum and this spread are small,
    # and n·Σx²/Σx − n is the better one.
    square = np.bincount(cell, inverse**2)
    spread = np.maximum(np.bincount(cell, (inverse - 1) ** 2) + (n - shown), n * square / total - n)
    table = pd.DataFrame({"n_rows": n, "n_shown": shown, "inverse_sum": total, "ratio": total / n})
    table["z"] = np.divide(total - n, np.sqrt(spread), out=np.zeros(len(n)), where=spread > 0)
    table["p_value"] = np.where(shown >= LEAST_SHOWN, two_sided(table["z"].to_numpy()), np.nan)
    table["p_adj"] = adjust(table["p_value"].to_numpy(), "holm")
    for name, values in _actions(stratum, inverse, n_actions).items():
        table[name] = values[of_cell]
    odd = [
        (table["p_adj"] < UNEVEN_ALPHA).to_numpy(),
        (table["actions_p"] < UNEVEN_ALPHA).to_numpy(),
    ]
    words = np.select(
        [odd[0] & odd[1], odd[0], odd[1]], ["item, n_actions", "item", "n_actions"], ""
    )
    table["flags"] = pd.Series(words.tolist())
    return pd.concat([cells.labels, table[list(PROPENSITY_COLUMNS)]], axis=1)


def _actions(stratum: IntCodes, inverse: Floats, n_actions: int | None) -> dict[str, Floats]:
    """Mean of 1/p per stratum, and its test against the number of items."""
    n = np.bincount(stratum)
    mean = np.bincount(stratum, inverse) / n
    expected = np.full(len(n), np.nan if n_actions is None else float(n_actions))
    square = np.bincount(stratum, (inverse - mean[stratum]) ** 2)
    with undefined_is_nan():
        se = np.sqrt(square / (n - 1) / n)
        # Equal propensities, as of a uniform policy, have no spread: then only rounding may lie
        # between.
        exact = np.where(
            np.abs(mean - expected) <= 1e-6 * expected, 0.0, np.copysign(np.inf, mean - expected)
        )
        z = np.where(
            se > 1e-9 * mean, (mean - expected) / se, np.where(np.isnan(expected), np.nan, exact)
        )
    return {"mean_inverse": mean, "n_actions": expected, "actions_z": z, "actions_p": two_sided(z)}


def two_sided(z: Floats) -> Floats:
    """Normal two-sided p-values; null where z is null."""
    return np.array([math.erfc(abs(one) / math.sqrt(2)) for one in z.tolist()])


def popularity_propensity(
    log: Any, *, item_col: str = "item_id", gamma: float = 1.5, floor: float = 0.0
) -> pd.DataFrame:
    """Guess from popularity how likely a relevant item was observed, where no propensities were
    logged.

    Formula
    -------
    p_i = (n_i/n_max)^((γ + 1)/2), and at least `floor`; n_i is the number of rows of item i, n_max
    the largest n_i.

    Parameters
    ----------
    log : DataFrame, or any object with the Arrow stream interface
        One row per interaction.
    item_col : str, default "item_id"
        Column of the item id.
    gamma : float, default 1.5
        Steepness of popularity in the log, above −1; fitted values in the literature lie between
        1.5 and 2.
    floor : float, default 0.0
        Least propensity, in [0, 1].

    Returns
    -------
    DataFrame
        One row per item, sorted by id: `item_col`, `n`, `propensity` in (0, 1].

    Raises
    ------
    ColumnError, NullKeyError, OptionError
        If a column is missing, an id is null, or an option is out of range.

    Notes
    -----
    Use it to weigh relevant items in ranking metrics against popularity bias: merge it to `true` on
    the item id, and pass `propensity_col="propensity"` to `evaluate`. Give `floor` where rare items
    would otherwise decide alone. Do not use it as `propensity` of `ope_estimate`: it is an
    assumption on observation, not the probability with which a policy showed an item.

    References
    ----------
    Yang et al. (2018), "Unbiased offline recommender evaluation for missing-not-at-random implicit
    feedback".

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> rd.ope.popularity_propensity(pd.DataFrame({"item_id": list("aaaab")}), gamma=1)
      item_id  n  propensity
    0       a  4        1.00
    1       b  1        0.25
    """
    frame = log_frame(log)
    check_value("gamma", gamma, a_number(above=-1))
    check_value("floor", floor, a_number(0, 1))
    keys = log_key_codes(frame, [item_col], "item_col", "name the column of the item id")
    counts = np.bincount(keys.codes, minlength=keys.n)
    present = np.flatnonzero(counts)
    first = first_rows(keys.codes.astype(np.int64, copy=False), keys.n)
    n = counts[present]
    table = frame[[item_col]].iloc[first[present]].reset_index(drop=True)
    table["n"], table["propensity"] = n, np.maximum((n / n.max()) ** ((gamma + 1) / 2), floor)
    return table.sort_values(item_col, kind="stable", ignore_index=True)
