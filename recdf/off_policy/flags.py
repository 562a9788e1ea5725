"""What makes an estimate untrustworthy, by rules that were measured, and the word that follows from
it.

Contract: `find_flags` gives the flags of one estimate in a fixed order, and `trust` is a function
of the flags, the estimate and its interval alone. The thresholds are those at which 95 % intervals
stop covering about 95 %; the page docs/off_policy_why.md shows the measurement.
"""

from __future__ import annotations

from typing import NamedTuple

from .estimators import EstimatorRequest, IntervalKind
from .importance_weights import EffectiveNumbers, WeightNumbers
from .influence import Estimates, ValueEstimate
from .read_log import LogArrays

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
# An interval is wide where its half-width is more than this share of the value.
WIDE = 0.2

# Each flag, and the word of `trust` that it gives; the first flag of an estimate that has a word
# decides.
FLAGS: dict[str, str] = {
    "no_variation": "do not use: rewards do not vary",
    "few_rewards": "do not use: few rewards",
    "low_ess": "do not use: few effective rows",
    "dominated": "do not use: one row dominates",
    "unsupported": "do not use: unsupported actions, or wrong propensities",
    "mean_weight": "do not use: propensities do not fit",
    "model_mismatch": "do not use: reward model does not fit the target policy",
    "few_clusters": "do not use: few clusters",
    "concentrated": "do not use: few rows carry the interval",
    "clip_bias": "do not use: clipping bias",
    "model_only": "do not use alone: reward model only",
    "mean_weight_untestable": "",
    "same_policy": "",
    "unclustered": "do not use the interval: users have several rows",
}

# What a flag means and what to do, in a sentence for those who meet it first.
MEANINGS: dict[str, str] = {
    "no_variation": "all rewards under the target policy are equal, as in a log of clicked rows "
    "only, so there is no interval; log the rows without a reward too",
    "few_rewards": "fewer than 100 effective rewards, seen or to be expected: too few to tell; "
    "collect more of the log",
    "low_ess": "few rows carry the weight: the target policy is too different from the logging "
    "policy",
    "dominated": "one row has more than a tenth of the weight, so the value rests on it",
    "unsupported": "weights average less than 1: the target policy shows what the log never does, "
    "or the propensities are wrong",
    "mean_weight": "weights do not average 1: the propensities are not those of these rows; see "
    "propensity_check",
    "model_mismatch": "q_target is not the mean of q_logged under the target policy: candidates "
    "are missing, or those of another policy, or the columns are swapped",
    "few_clusters": "fewer than 50 clusters: standard errors are too small",
    "concentrated": "few rows or clusters carry most of the variance, so the interval is not to be "
    "believed",
    "clip_bias": "clipping may have moved the value by 0.3 standard errors or more; use a larger "
    "clip",
    "model_only": "the interval knows nothing of errors of the reward model; compare with dr",
    "mean_weight_untestable": "too few effective rows to test whether the propensities fit",
    "same_policy": "all weights are 1, because target and propensity are equal: the value is that "
    "of the log itself",
    "unclustered": "cluster=None, but users have several rows, which are alike: the interval is "
    "too narrow",
}

# What the bounded interval allows for, so that the interval may be used although the value may not.
BOUNDED_COVERS = ("few_rewards", "low_ess", "dominated", "concentrated")


class Evidence(NamedTuple):
    """All that the flags of one estimate follow from."""

    log: LogArrays
    request: EstimatorRequest
    estimates: Estimates
    estimate: ValueEstimate
    weights: WeightNumbers
    effective: EffectiveNumbers
    model_z: float


def find_flags(found: Evidence) -> list[str]:
    """Flags of one estimate, in the order of `FLAGS`."""
    testable = found.effective.ess >= LOW_ESS
    z = found.weights.mean_cluster_z
    moved = abs(found.estimate.clip_change) + found.estimate.clip_change_se
    hold = {
        # A log without any reward has few of them, which is flagged as that.
        "no_variation": bool(found.weights.constant_reward),
        "few_rewards": min(found.effective.ess_reward, found.effective.ess_reward_expected)
        < FEW_REWARDS,
        "low_ess": not testable or found.effective.ess_share < LOW_ESS_SHARE,
        "dominated": found.effective.max_weight_share > DOMINATED,
        "unsupported": testable and z < UNSUPPORTED_Z,
        "mean_weight": testable and abs(z) > MEAN_WEIGHT_Z,
        "model_mismatch": testable
        and found.request.estimator.uses_q
        and abs(found.model_z) > MODEL_Z,
        "few_clusters": bool(found.log.plan.cluster) and found.estimates.n_clusters < FEW_CLUSTERS,
        "concentrated": found.estimate.ess_influence < LOW_ESS_INFLUENCE
        or abs(found.estimate.skewness) > SKEWED_WEIGHTS,
        "clip_bias": moved > CLIP_BIAS * found.estimate.se,
        "model_only": found.request.estimator.rule == "model",
        "mean_weight_untestable": not testable,
        "same_policy": found.weights.all_one,
        "unclustered": found.log.unclustered,
    }
    return [name for name in FLAGS if hold[name]]


def trust(
    flags: list[str], value: float, ci_low: float, ci_high: float, interval: IntervalKind
) -> dict[str, str]:
    """What may be used of an estimate: `effect` ("ok", "wide", "interval_only", or "" for nothing),
    `withheld` (the flag that says so), and `trust`, their sentence.

    The rule: the first flag, in the order of `FLAGS`, that has a reason gives "do not use:
    <reason>". `unclustered` says nothing about the value and gives "do not use the interval:
    <reason>". Without such a flag, the answer is "wide" where half the interval is more than a
    fifth of the value, and else "ok". With a bounded interval, flags that it allows for give "use
    the interval only: <reason>".
    """
    reasons = [name for name in flags if FLAGS[name]]
    wide = not (ci_high - ci_low) / 2 <= WIDE * abs(value)
    effect, withheld = "wide" if wide else "ok", ""
    said = effect
    if reasons:
        effect, withheld, said = "", reasons[0], FLAGS[reasons[0]]
        if interval == "bounded" and all(name in BOUNDED_COVERS for name in reasons):
            effect, said = "interval_only", said.replace("do not use", "use the interval only")
    return {"effect": effect, "withheld": withheld, "trust": said}
