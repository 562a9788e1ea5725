"""Values of estimators, their standard errors and intervals, and whether a reward model fits:
arrays in, numbers out. Nothing here knows a column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from ..stats.numbers import Floats, undefined_is_nan
from ..stats.resampling import bootstrap_effect, by_row, poisson_sums
from ..stats.student import student_quantile
from .plan import EstimatorRequest, ValueRange, WeightRule, effective_weight
from .rows import LogGroup, dot

# ------------------------------------------------------------------------------------------
# Values of estimators, their standard errors by the delta method, and whether a reward model
# fits: arrays in, numbers out.


# ------------------------------------------------------------------------------------------
# Values of estimators and their standard errors by the delta method: arrays in, numbers out.
#
# Contract: an estimate is a sum over rows, divided by the number of units. The influence value ψ
# of a row is what the row adds to the estimate's deviation from its expectation, to first order.
# Influence values are summed per cluster, and se = √(U/(U−1)·Σ_c(Σ_{i in c} ψ_i)²)/n for U
# clusters and n units.


class Totals(NamedTuple):
    """Sums of one request over all rows: Σ s·g·e and Σ s·g per position, and Σ s·base."""

    gain: Floats
    weight: Floats
    base: float


class ValueEstimate(NamedTuple):
    """One estimated value, its lift over the logging policy on the same rows, and what clipping
    changed.

    With ψ the influence of a cluster, `ess_influence` = (Σψ²)²/Σψ⁴ is the number of clusters of
    equal influence that would give as uncertain a standard error, and `skewness` = Σψ³/(Σψ²)^1.5
    that of the estimate.
    """

    value: float
    se: float
    lift: float
    lift_se: float
    clip_change: float
    clip_change_se: float
    ess_influence: float
    skewness: float


class Estimates(NamedTuple):
    """All estimates of one group of rows, and the sums that they are made of.

    `units` and `rows` are the weights of the units, and of the rows per position. `sums` are the
    influence values per cluster code, of the logging policy and then of every request: None without
    clusters.
    """

    units: float
    n_clusters: int
    rows: Floats
    logging_value: float
    totals: list[Totals]
    values: list[float]
    found: list[ValueEstimate]
    sums: list[Floats] | None = None


def sum_up(rows: LogGroup, requests: Sequence[EstimatorRequest]) -> Estimates:
    """Values of all requests, which are per unit and sums over positions, and the sums that they
    are made of. Requests that differ in their normalisation alone share their sums."""
    kinds = dict.fromkeys(request.kind for request in requests)

    def of_piece(piece: LogGroup) -> list[Any]:
        found = [
            piece.unit_weights().sum(),
            piece.weighted(piece.reward).sum(),
            piece.position_sums(piece.row_weights),
        ]
        for kind in kinds:
            g, error, model = _parts(piece, *kind)
            found += [piece.position_sums(g * error), piece.position_sums(g), np.sum(model)]
        return found

    units, reward, per_position, *sums = rows.sums(of_piece)
    of_kind = dict(zip(kinds, map(Totals, sums[::3], sums[1::3], sums[2::3]), strict=True))
    totals = [of_kind[request.kind] for request in requests]
    values = [
        float(_value(*own, per_position, units, request.estimator.normalised))
        for request, own in zip(requests, totals, strict=True)
    ]
    return Estimates(units, rows.n_clusters, per_position, reward / units, totals, values, [])


def _value(
    gain: Floats, weight: Floats, base: Any, rows: Floats, units: Any, normalised: bool
) -> Any:
    """Return what sums per position say; of replicates, each is a further axis of all sums."""
    per_position = gain / weight * (rows / units) if normalised else gain / units
    return per_position.sum(axis=0) + base / units


def _parts(
    piece: LogGroup, rule: WeightRule, uses_q: bool, clip: float | None
) -> tuple[Floats, Floats, Floats | float]:
    """Return each row's effective weight times its sample weight, what that multiplies, and what
    the model adds."""
    g = piece.weighted(effective_weight(piece.weight, rule, clip))
    if not uses_q:
        return g, piece.reward, 0.0
    return g, piece.reward - piece.q_logged, piece.weighted(np.asarray(piece.q_target))


def estimate_values(rows: LogGroup, requests: Sequence[EstimatorRequest]) -> Estimates:
    """Estimate every request with its standard errors."""
    whole = sum_up(rows, requests)
    values, logging = whole.values, whole.logging_value
    # The same request without its clip; None where there is no clip.
    full = [
        next(
            (
                j
                for j, other in enumerate(requests)
                if one.clip is not None
                and other.clip is None
                and other.estimator.name == one.estimator.unclipped
            ),
            None,
        )
        for one in requests
    ]

    def influences(piece: LogGroup) -> list[Floats]:
        """Influence values of the logging policy, then of every request."""
        found = [piece.weighted(piece.reward - piece.per_unit(logging))]
        for request, totals, value in zip(requests, whole.totals, values, strict=True):
            g, error, model = _parts(piece, *request.kind)
            level: Any = 0.0
            if request.estimator.normalised:
                level = piece.at_position(totals.gain / totals.weight)
                g = g / piece.at_position(totals.weight / whole.rows)
            own = piece.weighted(np.asarray(level - piece.per_unit(value)))
            found.append(g * (error - level) + own + model)
        return found

    def powers(psis: Sequence[Floats]) -> Floats:
        """Of each request: Σψ² of its own, of its lift and of what clipping changed; Σψ³, Σψ⁴."""
        rows = []
        for psi, unclipped in zip(psis[1:], full, strict=True):
            square, lift = psi * psi, psi - psis[0]
            clipped = 0.0 * psi[:1] if unclipped is None else psi - psis[1 + unclipped]
            rows.append(
                [
                    square.sum(),
                    dot(lift, lift),
                    dot(clipped, clipped),
                    dot(square, psi),
                    dot(square, square),
                ]
            )
        return np.array(rows)

    sums, psis = np.zeros((len(requests), 5)), None
    for psis in rows.per_cluster(influences):
        sums += powers(psis)
    (se, lift_se, change_se), (second, _, _, third, fourth) = (
        clustered_error(sums.T[:3], rows.n_clusters, whole.units),
        sums.T,
    )
    with undefined_is_nan():
        # An estimate without any variance has nothing that could be unevenly spread.
        even = np.where(fourth > 0, second**2 / fourth, rows.n_clusters)
        skewness = np.where(fourth > 0, third / second**1.5, 0.0)
    found = [
        ValueEstimate(
            value,
            se[j],
            value - logging,
            lift_se[j],
            0.0 if other is None else value - values[other],
            change_se[j],
            even[j],
            skewness[j],
        )
        for j, (value, other) in enumerate(zip(values, full, strict=True))
    ]
    return whole._replace(found=found, sums=None if rows.cluster is None else psis)


def clustered_error(squares: Floats, n_clusters: int, units: float) -> Floats:
    """√(U/(U−1)·Σ(Σψ)²)/n; null for a single cluster."""
    factor = n_clusters / (n_clusters - 1) if n_clusters > 1 else np.nan
    return np.asarray(np.sqrt(factor * squares) / units)


# ------------------------------------------------------------------------------------------
# Whether a reward model fits the target policy: arrays in, a number out.
#
# Contract: q_target of a row is the mean of the model under the target policy, so the weighted
# mean of q_logged must equal the mean of q_target, whatever the rewards are and however bad the
# model is.


# What rounding may make of two equal means, as a share of their size.
FIT_ROUNDING = 1e-9


def model_mismatch_z(rows: LogGroup) -> float:
    """Return (Σw·q_logged/Σw − mean(q_target))/se over clusters, and 0 without a model.

    Dividing by the sum of the weights leaves chance in the weights out, which would hide a mismatch
    of a model whose values are nearly equal. What the mean weight has to say, `mean_weight` says.
    """
    if not np.ndim(rows.q_target):
        return 0.0

    def sums(piece: LogGroup) -> list[Any]:
        w, units = piece.weighted(piece.weight), piece.unit_weights()
        target = piece.weighted(np.asarray(piece.q_target))
        return [np.sum(one) for one in (w, w * piece.q_logged, units, target)]

    weights, logged, units, target = rows.sums(sums)
    if not weights:
        return 0.0
    logged, target, mean_weight = logged / weights, target / units, weights / units
    above = logged - target
    if abs(above) <= FIT_ROUNDING * max(abs(logged), abs(target)):
        return 0.0

    def influence(piece: LogGroup) -> list[Floats]:
        """w·(q_logged − its mean)/mean(w) − (q_target − its mean)."""
        psi = piece.weight * (piece.q_logged - logged) / mean_weight
        return [piece.weighted(psi - (piece.q_target - target))]

    square = np.array(sum(dot(psi, psi) for (psi,) in rows.per_cluster(influence)))
    se = float(clustered_error(square, rows.n_clusters, units))
    return float(above / se if se > 0 else np.copysign(np.inf, above))


# ------------------------------------------------------------------------------------------
# Intervals of the estimates of one group: by the delta method, by bootstrap of clusters, and
# bounded by an empirical likelihood.


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


def bootstrap_intervals(
    rows: LogGroup,
    requests: Sequence[EstimatorRequest],
    confidence: float,
    n_resamples: int,
    seed: int,
) -> list[Interval]:
    """Percentile intervals; every replicate draws whole clusters."""
    kinds = dict.fromkeys(request.kind for request in requests)

    def columns(piece: LogGroup) -> list[Floats]:
        found = [
            piece.unit_weights(),
            piece.weighted(piece.reward),
            *piece.by_position(piece.row_weights),
        ]
        for kind in kinds:
            g, error, model = _parts(piece, *kind)
            found += [
                *piece.by_position(g * error),
                *piece.by_position(g),
                np.broadcast_to(model, len(g)),
            ]
        return found

    units, reward, *drawn = poisson_sums(_per_cluster(rows, columns), n_resamples, seed).T
    k = rows.n_positions
    per_position, size = np.array(drawn[:k]), 2 * k + 1
    starts = {kind: k + size * j for j, kind in enumerate(kinds)}
    with undefined_is_nan():
        found = []
        for request in requests:
            own = np.array(drawn[starts[request.kind] :][:size])
            found.append(
                _value(
                    own[:k], own[k:-1], own[-1], per_position, units, request.estimator.normalised
                )
            )
        values = np.column_stack(found)
        lifts = values - (reward / units)[:, None]
    # A replicate of very few clusters may have drawn no weight at all, and then has no value.
    values[~np.isfinite(lifts)] = lifts[~np.isfinite(lifts)] = np.nan
    limits = [by_row(**bootstrap_effect(part, "two-sided", confidence)) for part in (values, lifts)]
    return [
        Interval(*(one[name] for one in (value, lift) for name in ("se", "ci_low", "ci_high")))
        for value, lift in zip(*limits, strict=True)
    ]


def _per_cluster(rows: LogGroup, columns: Callable[[LogGroup], list[Floats]]) -> list[Floats]:
    """Return the sums of these columns per cluster. Rows without clusters have no ids, so they are
    put in the order of their own values."""
    if rows.cluster is None:
        found = columns(rows)
        order = np.lexsort(found[::-1])
        return [values[order] for values in found]
    present = np.bincount(rows.cluster, minlength=rows.n_codes) > 0
    (found,) = rows.per_cluster(columns)
    return [values[present] for values in found]


# --------------------------------------------------------------------------------------------
# bounded


def bounded_intervals(
    rows: LogGroup, found: Estimates, rewards: ValueRange, weights: ValueRange, confidence: float
) -> list[Interval]:
    """Empirical-likelihood intervals of the value and of the lift; standard errors are those of the
    delta method.

    Clusters are divided by the mean number of rows of a cluster, so that their weights have mean 1.
    """
    columns = _per_cluster(
        rows,
        lambda one: [
            np.ones(len(one)),
            one.weight,
            one.weight * one.reward,
            (one.weight - 1) * one.reward,
        ],
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
