"""`ope_estimate`: one tidy row per group, estimator and clip, with the flags that say whether it
may be trusted."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError
from ..inputs.constraints import Natural, SeveralRepetitions, Share
from ..inputs.door import takes_options
from ..inputs.options import Options, as_columns
from ..judge.choices import Columns
from ..progress import Progress
from ..stats.resampling import by_row
from .plan import (
    EstimatorRequest,
    Interaction,
    IntervalKind,
    Plan,
    Ragged,
    Range,
    SlateKind,
)
from .read_log import LogArrays, Record, beside_groups, log_frame, read_log, split_groups
from .weighted_rows import (
    Estimates,
    IntCodes,
    LogGroup,
    effective_numbers,
    estimate_values,
    intervals,
    model_mismatch_z,
    weight_numbers,
)

# ------------------------------------------------------------------------------------------
# What makes an estimate untrustworthy, by rules that were measured, and the word that follows
# from it.
#
# Contract: `find_flags` gives the flags of one estimate in a fixed order, and `trust` is a
# function of the flags, the estimate and its interval alone. The thresholds are those at which 95
# % intervals stop covering about 95 %; the page docs/off_policy_why.md shows the measurement.


FEW_REWARDS = 100
LOW_ESS = 300
LOW_ESS_SHARE = 0.01
DOMINATED = 0.1
FEW_CLUSTERS = 50
LOW_ESS_INFLUENCE = 20
SKEWED_WEIGHTS = 0.2
MEAN_WEIGHT_Z = 3.0
MODEL_Z = 3.0
UNSUPPORTED_Z = -2.0
# A clipped estimate is flagged where clipping may have moved it by more than this share of its
# standard error.
CLIP_BIAS = 0.3
# What rounding may change of a value, as a share of it.
VALUE_ROUNDING = 1e-12
# An interval is wide where its half-width is more than this share of the value.
WIDE = 0.2

# Each flag: the word of `trust` that it gives, and what it means and what to do, in a sentence for
# those who meet it first. The first flag of an estimate that has a word decides.
FLAGS = {
    "no_variation": (
        "do not use: rewards do not vary",
        "all rewards under the target policy are equal, as in a log of clicked rows only, so there "
        "is no interval; log the rows without a reward too",
    ),
    "few_rewards": (
        "do not use: few rewards",
        "fewer than 100 effective rewards, seen or to be expected: too few to tell; collect more "
        "of the log",
    ),
    "low_ess": (
        "do not use: few effective rows",
        "few rows carry the weight: the target policy is too different from the logging policy",
    ),
    "dominated": (
        "do not use: one row dominates",
        "one row has more than a tenth of the weight, so the value rests on it",
    ),
    "unsupported": (
        "do not use: unsupported actions, or wrong propensities",
        "weights average less than 1: the target policy shows what the log never does, or the "
        "propensities are wrong",
    ),
    "mean_weight": (
        "do not use: propensities do not fit",
        "weights do not average 1: the propensities are not those of these rows; see "
        "propensity_check",
    ),
    "model_mismatch": (
        "do not use: reward model does not fit the target policy",
        "q_target is not the mean of q_logged under the target policy: candidates are missing, or "
        "those of another policy, or the columns are swapped",
    ),
    "few_clusters": (
        "do not use: few clusters",
        "fewer than 50 clusters: standard errors are too small",
    ),
    "concentrated": (
        "do not use: few rows carry the interval",
        "few rows or clusters carry most of the variance, so no interval but the bounded one is to "
        "be believed",
    ),
    "clip_bias": (
        "do not use: clipping bias",
        "clipping may have moved the value by 0.3 standard errors or more; use a larger clip",
    ),
    "model_only": (
        "do not use alone: reward model only",
        "the interval knows nothing of errors of the reward model; compare with dr",
    ),
    "mean_weight_untestable": (
        "",
        "too few effective rows to test whether the propensities fit",
    ),
    "same_policy": (
        "",
        "all weights are 1, because target and propensity are equal: the value is that of the log "
        "itself",
    ),
    "unclustered": (
        "do not use the interval: users have several rows",
        "cluster=None, but users have several rows, which are alike: the interval is too narrow",
    ),
}

# What the bounded interval allows for, so that the interval may be used although the value may not.
BOUNDED_COVERS = ("few_rewards", "low_ess", "dominated", "concentrated")


def find_flags(found: Record, request: EstimatorRequest, log: LogArrays) -> list[str]:
    """Flags of one estimate, in the order of `FLAGS`, from what `records` says of it."""
    testable = found["ess"] >= LOW_ESS
    z = found["cluster_z"]
    moved = abs(found["clip_change"]) + found["clip_change_se"]
    hold = {
        # A log without any reward has few of them, which is flagged as that.
        "no_variation": found["constant_reward"],
        "few_rewards": min(found["ess_reward"], found["ess_reward_expected"]) < FEW_REWARDS,
        "low_ess": not testable or found["ess_share"] < LOW_ESS_SHARE,
        "dominated": found["max_weight_share"] > DOMINATED,
        "unsupported": testable and z < UNSUPPORTED_Z,
        "mean_weight": testable and abs(z) > MEAN_WEIGHT_Z,
        "model_mismatch": testable and request.estimator.uses_q and abs(found["model_z"]) > MODEL_Z,
        "few_clusters": log.plan.cluster and found["n_clusters"] < FEW_CLUSTERS,
        "concentrated": found["ess_influence"] < LOW_ESS_INFLUENCE
        or abs(found["skewness"]) > SKEWED_WEIGHTS,
        "clip_bias": moved > max(CLIP_BIAS * found["se"], VALUE_ROUNDING * abs(found["value"])),
        "model_only": request.estimator.rule == "model",
        "mean_weight_untestable": not testable,
        "same_policy": found["all_one"],
        "unclustered": log.unclustered,
    }
    return [name for name in FLAGS if hold[name]]


def trust(
    flags: list[str],
    value: float,
    ci_low: float,
    ci_high: float,
    interval: IntervalKind,
    holds_for: str = "",
) -> dict[str, str]:
    """What may be used of an estimate: `effect` ("ok", "wide", "interval_only", or "" for nothing),
    `withheld` (the flag that says so), `flags`, and `trust`, their sentence.

    The rule: the first flag, in the order of `FLAGS`, that has a reason gives "do not use:
    <reason>". `unclustered` says nothing about the value and gives "do not use the interval:
    <reason>". Without such a flag, the answer is "wide" where half the interval is more than a
    fifth of the value, and else "ok". With a bounded interval, flags that it allows for give "use
    the interval only: <reason>".
    """
    reasons = [name for name in flags if FLAGS[name][0]]
    wide = not (ci_high - ci_low) / 2 <= WIDE * abs(value)
    effect = "wide" if wide else "ok"
    withheld = ""
    said = effect
    if reasons:
        effect = ""
        withheld = reasons[0]
        said = FLAGS[reasons[0]][0]
        if interval == "bounded" and all(name in BOUNDED_COVERS for name in reasons):
            effect = "interval_only"
            said = said.replace("do not use", "use the interval only")
    return {
        "holds_for": holds_for,
        "effect": effect,
        "withheld": withheld,
        "flags": ", ".join(flags),
        "trust": f"{said}, for {holds_for}" if effect and holds_for else said,
    }


# ------------------------------------------------------------------------------------------
# `ope_estimate`: one tidy row per group, estimator and clip.


_ESTIMATE_COLUMNS = (
    "estimator clip value se ci_low ci_high logging_value lift lift_se lift_ci_low lift_ci_high "
    "rel_lift n_rows n_units n_clusters ess ess_share ess_reward ess_reward_expected "
    "ess_influence weight_mean weight_max max_weight_share n_clipped clipped_mass "
    "unsupported_mass n_matched method confidence holds_for effect withheld flags trust"
)
ESTIMATE_COLUMNS = _ESTIMATE_COLUMNS.split()


# What an interval says, and rewards that do not vary leave null.
OF_INTERVAL = ("se", "ci_low", "ci_high", "lift_se", "lift_ci_low", "lift_ci_high")


@takes_options("by", "cluster")
def ope_estimate(
    log: Any,
    *,
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
    by: Columns | None = None,
    confidence: Share = 0.95,
    interval: IntervalKind = "delta",
    reward_range: Range = None,
    weight_range: Range = None,
    n_resamples: SeveralRepetitions = 2000,
    seed: Natural = 0,
    progress: bool | None = None,
    options: Options | None = None,
) -> pd.DataFrame:
    """Estimate what a policy that did not run would have earned per decision, from a log of
    propensities.

    Larger is better where a larger reward is. Read `trust` before `value`: the interval of an
    estimate that says "do not use" does not hold what it says.

    Formula
    -------
    w = π_e/π_b is the target policy's probability of the logged item over that of the logging
    policy, r its reward, n the number of rows, q_l the reward model at the logged item, q_t its
    mean under the target policy, L the clip:

    * ips: Σ w·r/n; with a clip, min(w, L) stands for w everywhere below.
    * snips: Σ w·r/Σ w.
    * dm: Σ q_t/n.
    * dr: Σ (q_t + w·(r − q_l))/n; sndr divides w by its mean.
    * switch_dr: dr with w·1[w ≤ L]; dros: dr with L·w/(w² + L).

    For slates the value is per unit, the sum over positions, and w depends on `interaction`: the
    ratio of the position (independent; iips, sniips), the product down to the position (cascade;
    rips, snrips), or the product over the slate (standard; sips, snsips). Self-normalised forms
    divide by the mean weight of the position.

    se = √(U/(U − 1)·Σ_c(Σ ψ)²)/n over U clusters; the influence ψ is w·r − v, and w·(r − v)/mean(w)
    for snips.

    Parameters
    ----------
    log : DataFrame, or any object with the Arrow stream interface
        One row per item that was shown, with or without a reward.
    estimators : str or list of str, default ("ips", "snips")
        Any of ips, snips, dm, dr, sndr, switch_dr, dros; for slates ips, snips, iips, sniips, rips,
        snrips, sips, snsips.
    reward_col : str, default "reward"
        Column of the reward: a click, an amount, a rating.
    propensity_col : str, default "propensity"
        Column of the probability, in (0, 1], with which the logging policy showed the item.
    target_col : str, default "target_propensity"
        Column of the probability, in [0, 1], with which the target policy would have shown it.
    slate_col : str or list of str, optional
        Key of a slate. Without it every row is a decision of its own.
    position_col : str, default "position"
        Position in the slate; read only with `slate_col`.
    interaction : {"independent", "cascade", "standard"}, optional
        Which other positions the reward of a position depends on: none, those above, all.
    propensity_kind : {"item", "conditional", "prefix", "slate"}, default "item"
        What both probability columns hold. "item": the probability of the item at its position.
        "conditional": the same, given the items above it. "prefix": that of all items down to the
        position. "slate": that of the slate. cascade and standard both follow from conditional.
    ragged : {"raise", "as_logged"}, default "raise"
        Units of different length are an error, or are taken as logged, which assumes that no policy
        sets the length.
    cluster : str, list of str or None, default "user_id"
        Key of the rows that belong together. Rows of one user are not independent: with None
        intervals are too narrow.
    weight_col : str, optional
        1/(probability that the row was kept in the log), which is at least 1, for logs whose rows
        without reward were sampled down.
    q_logged : str, optional
        Column of a reward model at the logged item, which dm and the dr family need; `reward_table`
        makes it.
    q_target : str, optional
        Column of the mean of that model under the target policy.
    clip : float or list of float, optional
        Largest weight; the result has a row for each of a list, where None is no clip. switch_dr
        and dros need one, and dm ignores it.
    by : str or list of str, optional
        Columns such as the model of a stacked log. Each of their values is estimated alone.
    confidence : float, default 0.95
        Coverage of the intervals.
    interval : {"delta", "bootstrap", "bounded"}, default "delta"
        "delta": a normal interval with the standard error above. "bootstrap": percentiles of
        `n_resamples` Poisson resamples of clusters. "bounded": an empirical-likelihood interval
        (Cressie–Read), which holds with few rewards, for ips and snips without a clip.
    reward_range, weight_range : (float, float), optional
        Smallest and largest reward and weight that are possible, seen or not. `interval="bounded"`
        needs both.
    n_resamples : int, default 2000
        Resamples of the bootstrap.
    seed : int, default 0
        Seed of the bootstrap.
    progress : bool, optional
        Show the progress on stderr, in plain lines. By default only on a
        terminal, and only after two seconds.
    options : Options, optional
        `by` and `user_col` (as `cluster`) of a project, where they are not given here.

    Returns
    -------
    DataFrame
        One row per group, estimator and clip:

        * the `by` columns, `estimator`, `clip` (null without one);
        * `value`, `se`, `ci_low`, `ci_high`;
        * `logging_value` (mean reward of the log), `lift` = value − logging_value with `lift_se`,
          `lift_ci_low` and `lift_ci_high` (paired: on the same rows), `rel_lift` =
          lift/logging_value, null unless that is above 0;
        * `n_rows`, `n_units`, `n_clusters`, and `holds_for`, up to how many rows unequal clusters
          had;
        * `ess` = (Σw)²/Σw² of the weights after the clip, `ess_share` of the rows, `ess_reward` =
          (Σ|wr|)²/Σ(wr)², `ess_reward_expected` = ess·(Σw|r|)²/(Σw·Σwr²), which for a reward of 0
          or 1 is ess times the value of snips, `ess_influence` = (Σψ²)²/Σψ⁴ over clusters,
          null where rewards do not vary; of slates, those of the worst position;
        * `weight_mean` and `weight_max` before the clip, `max_weight_share` after it, `n_clipped`,
          `clipped_mass` = mean of max(w − L, 0), `unsupported_mass` = max(1 − weight_mean, 0),
          `n_matched` (rows with w > 0);
        * `method` (the `interval`), `confidence`, `flags` (joined by ", "), `effect`
          ("ok", "wide", "interval_only", or "" where nothing may be used), `withheld` (the flag
          that says so) and `trust`, their sentence.

    Raises
    ------
    ColumnError, NullKeyError, OptionError
        If a column is missing (also "user_id": pass cluster=None), a key is null, or options cannot
        go together.
    DataError
        If a propensity is outside (0, 1], a target outside [0, 1], a reward outside `reward_range`,
        no weight is above 0, or propensities cannot be what `propensity_kind` says.

    Notes
    -----
    Use it to choose which policies deserve an experiment. Do not use it where the logging policy
    was deterministic, where propensities were not logged at serving time, or where `trust` says so.
    The flags, in the order in which they decide `trust`:

    * `no_variation`: all rows (or slates) of a weight above 0 have the same reward, as in a log of
      clicked rows only. Standard errors and intervals are then null, and so they are without any
      reward.
    * `few_rewards`: ess_reward or ess_reward_expected is below 100; the second sees heavy rows that
      happen to have no reward. `low_ess`: ess is below 300, or below 1 % of the rows.
    * `dominated`: one row has more than a tenth of the weight.
    * `unsupported`: the mean weight is below 1 beyond chance (z below −2, as it is by chance for
      one correct log in 44), because the target policy shows what the log never does, or
      propensities are wrong. `mean_weight`: it is not 1 (z beyond 3), so propensities are wrong.
    * `model_mismatch`: the weighted mean of q_logged is not the mean of q_target (z beyond 3), so
      q_target is not that of the target policy.
    * `few_clusters`: there are fewer than 50. `concentrated`: ess_influence is below 20, or the
      influence is skewed, so that few rows or users carry the standard error.
    * `clip_bias`: clipping may have moved the value by 0.3 standard errors. `model_only`: the
      interval of dm knows nothing of the model's error. `unclustered`: cluster=None, but a user of
      the column user_id has several rows, so that the interval is too narrow.
    * `mean_weight_untestable`: ess is too small to test the mean weight. `same_policy`: target and
      propensity are equal in all rows, so the value is that of the log. They do not forbid use.

    Without a flag that forbids use, `trust` is "wide" if half the interval is above a fifth of the
    value, else "ok".

    References
    ----------
    Horvitz and Thompson (1952); Swaminathan and Joachims (2015), self-normalised; Dudík et al.
    (2011), doubly robust; Wang et al. (2017), switch; Su et al. (2020), shrinkage; Li et al. (2018)
    and McInerney et al. (2020), slates.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> log = pd.DataFrame(
    ...     {
    ...         "item_id": ["a", "a", "a", "a", "b", "b", "c", "c"],
    ...         "reward": [1, 1, 1, 1, 3, 3, 10, 10],
    ...         "propensity": [0.5] * 4 + [0.25] * 4,
    ...         "target_propensity": [0.25] * 6 + [0.5] * 2,
    ...     }
    ... )
    >>> found = rd.ope.estimate(log, cluster=None)
    >>> found[["estimator", "value", "logging_value", "lift", "trust"]]
      estimator  value  logging_value  lift                    trust
    0       ips    6.0           3.75  2.25  do not use: few rewards
    1     snips    6.0           3.75  2.25  do not use: few rewards
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
        interval,
        reward_range,
        weight_range,
        n_resamples,
        seed,
    )
    groups = split_groups(frame, by, ESTIMATE_COLUMNS)
    arrays = read_log(frame, plan, as_columns(by))
    found = []
    with Progress(len(groups.rows), "ope_estimate", progress) as shown:
        for g, some in enumerate(groups.rows):
            try:
                found.append(group_rows(arrays, some))
            except DataError as error:
                named = groups.labels.iloc[g].to_dict().items()
                label = ", ".join(f"{name}={value!r}" for name, value in named)
                raise error.within(f"{label}: " if label else "") from None
            shown.add()
    return beside_groups(groups.labels, found, ESTIMATE_COLUMNS)


def group_rows(log: LogArrays, some: IntCodes | None) -> list[Record]:
    """Rows of the result of one group, in the order of the requests."""
    found = dict[EstimatorRequest, Record]()
    for interaction in dict.fromkeys(request.interaction for request in log.plan.requests):
        found |= estimates_of(log, log.rows(some, interaction), interaction)
    return [found[request] for request in log.plan.requests]


def estimates_of(
    log: LogArrays, rows: LogGroup, interaction: Interaction | None
) -> dict[EstimatorRequest, Record]:
    """Rows of the result of the requests of one interaction."""
    plan = log.plan
    asked = [request for request in plan.all_requests if request.interaction == interaction]
    known, estimates = records(log, rows, asked)
    limits = by_row(**intervals(rows, asked, estimates, plan))
    found = {}
    for request, one, own in zip(asked, known, limits, strict=True):
        if request in plan.requests:
            found[request] = row = one | {"method": plan.interval}
            # A standard error of rewards that do not vary says nothing. Only a bounded interval can
            # tell what follows from rewards that are all 0.
            constant = one["constant_reward"]
            said = constant is None or (plan.interval == "bounded" and constant == 0)
            row |= {name: own[name] if said else np.nan for name in OF_INTERVAL}
            ends = row["ci_low"], row["ci_high"]
            row |= trust(
                find_flags(one, request, log), one["value"], *ends, plan.interval, one["holds_for"]
            )
    return found


def records(
    log: LogArrays, rows: LogGroup, asked: Sequence[EstimatorRequest]
) -> tuple[list[Record], Estimates]:
    """Return what is known of each request without its interval; rows from which nothing can be
    estimated are refused."""
    plan = log.plan
    weights = weight_numbers(rows)
    target = f"log[{plan.target_col!r}]"
    if not weights["n_matched"]:
        raise DataError(
            f"{target} is 0 in all {len(rows):,} rows: the log has nothing that the target policy "
            "shows; nothing can be estimated"
        )
    empty = rows.position_sums(rows.weight) == 0
    if empty.any() and any(request.estimator.normalised for request in plan.requests):
        raise DataError(
            f"all weights are 0 at {np.count_nonzero(empty)} of {rows.n_positions} positions, "
            "where a self-normalised estimator is not defined; use the estimator without "
            "normalisation"
        )
    low, high = plan.weight_range or (-np.inf, np.inf)
    # A range that was computed from the columns may differ from these weights by the rounding of a
    # division.
    slack = 1e-9 * max(abs(low), abs(high))
    if outside := np.count_nonzero((rows.weight < low - slack) | (rows.weight > high + slack)):
        raise DataError(
            f"{target}/log[{plan.propensity_col!r}] is outside ⟦weight_range=⟧({low:g}, {high:g}) "
            f"in {outside:,} rows (from {rows.weight.min():g} to {rows.weight.max():g}); widen the "
            "range"
        )
    estimates = estimate_values(rows, asked)
    of_group = weights | {
        "n_rows": len(rows),
        "n_units": rows.n_units,
        "n_clusters": rows.n_clusters,
        "holds_for": rows.holds_for,
        "model_z": model_mismatch_z(rows),
        "confidence": plan.confidence,
    }
    effective = functools.cache(functools.partial(effective_numbers, rows))
    found = []
    for request, own in zip(asked, by_row(**estimates.columns), strict=True):
        logging = own["logging_value"]
        own |= of_group | {
            "estimator": request.label,
            "clip": np.nan if request.clip is None else request.clip,
            "rel_lift": own["lift"] / logging if logging > 0 else np.nan,
        }
        if weights["constant_reward"] is not None:
            # Influence values are then 0 but for rounding, or say nothing of the rewards.
            own |= {"ess_influence": np.nan, "skewness": np.nan}
        if request in plan.requests:
            own |= effective(request.estimator.rule, request.clip)
        found.append(own)
    return found, estimates
