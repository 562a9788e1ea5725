"""Intervals of the estimates of one group: by the delta method, by bootstrap of clusters, and
bounded by an empirical likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from ..stats.numbers import Floats
from ..stats.resampling import bootstrap_effect, by_row, poisson_sums
from ..stats.student import student_quantile
from .influence import Estimates
from .plan import EstimatorRequest, ValueRange, effective_weight
from .rows import LogGroup

# ------------------------------------------------------------------------------------------
# Intervals from an empirical likelihood of the Cressie–Read family: arrays in, numbers out.
#
# Contract: clusters are independent. Their weights w have mean 1 in expectation, and their terms
# f have the mean that is looked for. The interval holds every mean of f that some reweighting of
# the clusters gives, if the reweighted mean of w is 1 and the reweighting is likely enough. One
# cluster that was never seen is added, with the most extreme weight and term that the bounds
# allow; it keeps the interval honest when few clusters carry the weight.
#
# Reference: Karampatziakis, Langford and Mineiro (2019), "Empirical likelihood for contextual
# bandits".


def cressie_read(
    weight: Floats,
    term: Floats,
    weights: ValueRange,
    unseen_term: Callable[[float, int], float],
    confidence: float,
) -> ValueRange:
    """Interval of the mean of `term`, given that `weight` has mean 1.

    `unseen_term(w, sign)` is the smallest (sign 1) or largest (sign −1) term that an unseen cluster
    of weight w can have.
    """
    n = len(weight)
    # Sums over clusters of w, w², f, w·f and f².
    sums = np.array([weight.sum(), weight @ weight, term.sum(), weight @ term, term @ term])
    budget = _budget(n, sums, weights, confidence)
    found = []
    for sign in (1, -1):
        ends = [
            _end(n, sums, unseen, unseen_term(unseen, sign), sign, budget) for unseen in weights
        ]
        found.append(sign * min((end for end in ends if end is not None), default=-math.inf))
    return ValueRange(found[0], found[1])


def _budget(n: int, sums: Floats, weights: ValueRange, confidence: float) -> float:
    """How far a reweighting may be from equal weights: that of the likeliest one, and a quantile of
    F(1, n)."""
    unseen = weights.high if sums[0] < n else weights.low
    mean, square = (unseen + float(sums[0])) / (n + 1), (unseen**2 + float(sums[1])) / (n + 1)
    likeliest = (n + 1) * (mean - 1) ** 2 / (square - mean**2) if square > mean**2 else 0.0
    return (likeliest + student_quantile((1 + confidence) / 2, n) ** 2) / (2 * (n + 1))


def _end(
    n: int, sums: Floats, unseen: float, unseen_term: float, sign: int, budget: float
) -> float | None:
    """Smallest mean of sign·f within the budget, with one more cluster; None where no reweighting
    is likely enough.

    In moments over the n + 1 clusters: x is the mean of f once w has mean 1, y the variance of f
    that w does not explain, and z what is left of the budget. The smallest mean is x − √(2yz).
    """
    cluster = unseen, unseen**2, unseen_term, unseen * unseen_term, unseen_term**2
    w, ww, f, wf, ff = ((sums + cluster) / (n + 1) * (1, 1, sign, sign, 1)).tolist()
    spread = ww - w**2
    if spread <= 0:
        return None
    x = f + (1 - w) * (wf - w * f) / spread
    y = ff - f**2 - (wf - w * f) ** 2 / spread
    z = budget - (1 - w) ** 2 / (2 * spread)
    if abs(y * z) < 1e-9 * max(1.0, ff):
        y = max(y, 0.0)
        z = max(z, 0.0)
    return x - math.sqrt(2 * y * z) if y >= 0 and z >= 0 else None


# ------------------------------------------------------------------------------------------
# Intervals of the estimates of one group: by the delta method, by bootstrap of clusters, and
# bounded.
#
# Contract: each function takes the rows and estimates of one group and gives one `Interval` per
# request: standard errors and limits of the value and of its lift over the logging policy.


class Interval(NamedTuple):
    """Standard errors and limits of a value and of its lift."""

    se: float
    ci_low: float
    ci_high: float
    lift_se: float
    lift_ci_low: float
    lift_ci_high: float


def without_variation(found: Interval, reward: float | None, bounded: bool) -> Interval:
    """Return the interval, or nulls where rewards do not vary; `reward` is then what they all are.

    Such a standard error says nothing. Only a bounded interval can tell what follows from rewards
    that are all 0.
    """
    return found if reward is None or (bounded and reward == 0) else Interval(*[np.nan] * 6)


def delta_intervals(found: Estimates, confidence: float) -> list[Interval]:
    """Value ± z·se."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return [
        Interval(
            one.se,
            one.value - z * one.se,
            one.value + z * one.se,
            one.lift_se,
            one.lift - z * one.lift_se,
            one.lift + z * one.lift_se,
        )
        for one in found.found
    ]


# ------------------------------------------------------------------------------------------
# bootstrap


# Which columns of the cluster sums belong to a request: one per position for gains and weights, and
# one for the base.
SumPlaces = tuple[list[int], list[int], int | None]


def bootstrap_intervals(
    rows: LogGroup,
    requests: Sequence[EstimatorRequest],
    confidence: float,
    n_resamples: int,
    seed: int,
) -> list[Interval]:
    """Percentile intervals; every replicate draws whole clusters."""
    columns, of_rows, asked = _cluster_sums(rows, requests)
    drawn = poisson_sums(columns, n_resamples, seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [
            _replicates(drawn, request, places, of_rows)
            for request, places in zip(requests, asked, strict=True)
        ]
        values = np.column_stack(found)
        lifts = values - (drawn[:, 1] / drawn[:, 0])[:, None]
    # A replicate of very few clusters may have drawn no weight at all, and then has no value.
    values[~np.isfinite(lifts)] = lifts[~np.isfinite(lifts)] = np.nan
    limits = [by_row(**bootstrap_effect(part, "two-sided", confidence)) for part in (values, lifts)]
    return [
        Interval(*(one[name] for one in (value, lift) for name in ("se", "ci_low", "ci_high")))
        for value, lift in zip(*limits, strict=True)
    ]


def _replicates(
    drawn: Floats, request: EstimatorRequest, places: SumPlaces, rows: Sequence[int]
) -> Floats:
    own, weight, base = places
    gain = drawn[:, own]
    if request.estimator.normalised:
        gain = gain / drawn[:, weight] * drawn[:, rows]
    total = gain.sum(axis=1) if base is None else gain.sum(axis=1) + drawn[:, base]
    return np.asarray(total / drawn[:, 0])


def _cluster_sums(
    rows: LogGroup, requests: Sequence[EstimatorRequest]
) -> tuple[list[Floats], list[int], list[SumPlaces]]:
    """Sums per cluster of the units, the rewards, the rows per position and what the requests need,
    and their places.

    Rows without clusters have no ids, so they are put in the order of their own values.
    """
    everything = slice(0, len(rows))
    reward = rows.reward.astype(np.float64, copy=False)
    columns = [rows.unit_weights(everything), rows.weighted(reward, everything)]
    ones = rows.weighted(np.ones(len(rows)), everything)
    places: dict[object, int | list[int]] = {}

    def add(key: object, values: Floats, split: bool) -> list[int]:
        if key not in places:
            start = len(columns)
            if split and rows.position is not None:
                columns.extend(
                    np.where(rows.position == k, values, 0.0) for k in range(rows.n_positions)
                )
            else:
                columns.append(values)
            places[key] = list(range(start, len(columns)))
        found = places[key]
        return found if isinstance(found, list) else [found]

    per_position = [0] if rows.position is None else add("rows", ones, True)
    asked = []
    for request in requests:
        estimator = request.estimator
        g = rows.weighted(effective_weight(rows.weight, estimator.rule, request.clip), everything)
        uses_q = estimator.uses_q and rows.q_logged is not None and rows.q_target is not None
        error = reward - rows.q_logged if uses_q and rows.q_logged is not None else reward
        gain = add(("gain", estimator.rule, request.clip, uses_q), g * error, estimator.normalised)
        weight = (
            add(("weight", estimator.rule, request.clip), g, True) if estimator.normalised else []
        )
        model = rows.q_target if uses_q else None
        base = None if model is None else add("base", rows.weighted(model, everything), False)[0]
        asked.append((gain, weight, base))
    return _per_cluster(rows, columns), per_position, asked


def _per_cluster(rows: LogGroup, columns: list[Floats]) -> list[Floats]:
    if rows.cluster is None:
        order = np.lexsort(columns[::-1])
        return [values[order] for values in columns]
    codes = rows.cluster.astype(np.intp, copy=False)
    present = np.bincount(codes, minlength=rows.n_codes) > 0
    return [
        np.bincount(codes, values, rows.n_codes)[present].astype(np.float64, copy=False)
        for values in columns
    ]


# --------------------------------------------------------------------------------------------
# bounded


def bounded_intervals(
    rows: LogGroup, found: Estimates, rewards: ValueRange, weights: ValueRange, confidence: float
) -> list[Interval]:
    """Empirical-likelihood intervals of the value and of the lift; standard errors are those of the
    delta method.

    Clusters are divided by the mean number of rows of a cluster, so that their weights have mean 1.
    """
    reward = rows.reward.astype(np.float64, copy=False)
    columns = _per_cluster(
        rows, [np.ones(len(rows)), rows.weight, rows.weight * reward, (rows.weight - 1) * reward]
    )
    mean_size = columns[0].mean()
    weight, gain, lift = (values / mean_size for values in columns[1:])
    largest = float(columns[0].max() / mean_size)
    spread = ValueRange(weights.low * columns[0].min() / mean_size, weights.high * largest)

    def unseen_gain(w: float, sign: int) -> float:
        return float(w * (rewards.low if sign > 0 else rewards.high))

    def unseen_lift(w: float, sign: int) -> float:
        ends = [(w - largest) * rewards.low, (w - largest) * rewards.high]
        return min(ends) if sign > 0 else max(ends)

    value = cressie_read(weight, gain, spread, unseen_gain, confidence)
    width = rewards.high - rewards.low
    value = ValueRange(max(value.low, rewards.low), min(value.high, rewards.high))
    change = cressie_read(weight, lift, spread, unseen_lift, confidence)
    change = ValueRange(max(change.low, -width), min(change.high, width))
    return [
        Interval(one.se, value.low, value.high, one.lift_se, change.low, change.high)
        for one in found.found
    ]
