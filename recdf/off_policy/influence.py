"""Values of estimators, their standard errors and intervals, and whether a reward model fits:
arrays in, numbers out. Nothing here knows a column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from ..stats.numbers import Floats, undefined_is_nan
from ..stats.resampling import bootstrap_effect, by_row, poisson_sums
from ..stats.student import student_quantile
from .plan import EstimatorRequest, ValueRange, effective_weight
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
    """Sums of one request over all rows, per position: Σ s·g·e, Σ s·g, and Σ s·base over all
    positions."""

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


def sum_requests(rows: LogGroup, requests: Sequence[EstimatorRequest]) -> list[Totals]:
    """Sums of every request; requests that differ in their normalisation alone share one
    computation."""
    sums: dict[tuple[object, ...], list[Floats]] = {}
    for piece in rows.pieces():
        for request in requests:
            key = _sum_key(request)
            if key in sums and sums[key][3][0] == piece.stop:
                continue
            gain, weight, base = (
                sums[key][:3] if key in sums else [np.zeros(rows.n_positions) for _ in range(3)]
            )
            g, error, model = _parts(rows, request, piece)
            g = rows.weighted(g, piece)
            gain = gain + rows.position_sums(g * error, piece)
            weight = weight + rows.position_sums(g, piece)
            if model is not None:
                base = base + rows.position_sums(rows.weighted(model, piece), piece)
            sums[key] = [gain, weight, base, np.array([piece.stop])]
    found = [sums[_sum_key(request)] for request in requests]
    return [Totals(gain, weight, float(base.sum())) for gain, weight, base, _ in found]


def normalised_gain(totals: Totals) -> Floats:
    """Return Σ g·e/Σ g for each position."""
    return totals.gain / totals.weight


def sum_up(rows: LogGroup, requests: Sequence[EstimatorRequest]) -> Estimates:
    """Values of all requests, which are per unit and sums over positions, and the sums that they
    are made of."""
    units, reward, per_position = 0.0, 0.0, np.zeros(rows.n_positions)
    for piece in rows.pieces():
        units += float(rows.unit_weights(piece).sum())
        reward += float(rows.weighted(_reward(rows, piece), piece).sum())
        if rows.position is not None:
            per_position += rows.position_sums(
                rows.weighted(np.ones(piece.stop - piece.start), piece), piece
            )
    if rows.position is None:
        per_position = np.array([units])
    totals = sum_requests(rows, requests)
    values = [
        own.base / units + float((normalised_gain(own) * (per_position / units)).sum())
        if request.estimator.normalised
        else (own.base + float(own.gain.sum())) / units
        for request, own in zip(requests, totals, strict=True)
    ]
    return Estimates(units, rows.n_clusters, per_position, reward / units, totals, values, [])


def estimate_values(rows: LogGroup, requests: Sequence[EstimatorRequest]) -> Estimates:
    """Estimate every request with its standard errors."""
    whole = sum_up(rows, requests)
    values, logging = whole.values, whole.logging_value
    full = [_unclipped(request, requests) for request in requests]
    # Array 0 is the logging policy. Each request has three deviations: its own, that of its lift,
    # and that of what clipping changed.
    pairs = [
        (1 + j, other) for j, unclipped in enumerate(full) for other in (None, 0, 1 + unclipped)
    ]
    squares, powers, psis = np.zeros(len(pairs)), np.zeros((len(requests), 2)), None
    for psis in rows.per_cluster(lambda piece: _influences(rows, requests, whole, piece)):
        squares, powers = squares + _pair_squares(psis, pairs), powers + _higher_powers(psis[1:])
    se = clustered_error(squares, rows.n_clusters, whole.units).reshape(len(requests), 3)
    second = squares.reshape(len(requests), 3)[:, 0]
    # An estimate without any variance has nothing that could be unevenly spread.
    spread = powers[:, 1] > 0
    even = np.divide(
        second**2, powers[:, 1], out=np.full(len(requests), float(rows.n_clusters)), where=spread
    )
    skewness = np.divide(powers[:, 0], second**1.5, out=np.zeros(len(requests)), where=spread)
    changes = [value - values[unclipped] for value, unclipped in zip(values, full, strict=True)]
    lifts = [value - logging for value in values]
    columns = values, se[:, 0], lifts, se[:, 1], changes, se[:, 2], even, skewness
    found = [ValueEstimate(*row) for row in zip(*columns, strict=True)]
    return whole._replace(found=found, sums=None if rows.cluster is None else psis)


def clustered_error(squares: Floats, n_clusters: int, units: float) -> Floats:
    """√(U/(U−1)·Σ(Σψ)²)/n; null for a single cluster."""
    if n_clusters < 2:
        return np.full(len(squares), np.nan)
    se: Floats = np.sqrt(n_clusters / (n_clusters - 1) * squares) / units
    return se


def _pair_squares(psis: Sequence[Floats], pairs: Sequence[tuple[int, int | None]]) -> Floats:
    """Sum of squares of each array, or of its difference from another one."""
    found = []
    for own, other in pairs:
        psi = psis[own] if other is None else psis[own] - psis[other] if other != own else None
        found.append(0.0 if psi is None else dot(psi, psi))
    return np.array(found)


def _higher_powers(psis: Sequence[Floats]) -> Floats:
    """Sums of third and fourth powers of each array."""
    found = []
    for psi in psis:
        square = psi * psi
        found.append((dot(square, psi), dot(square, square)))
    return np.array(found)


def _unclipped(request: EstimatorRequest, requests: Sequence[EstimatorRequest]) -> int:
    """Return the position of the same request without its clip, which is its own if it has no
    clip."""
    name = request.estimator.unclipped
    whole = [
        j for j, other in enumerate(requests) if other.clip is None and other.estimator.name == name
    ]
    return whole[0] if whole and request.clip is not None else requests.index(request)


def _sum_key(request: EstimatorRequest) -> tuple[object, ...]:
    return request.estimator.rule, request.estimator.uses_q, request.clip


def _influences(
    rows: LogGroup, requests: Sequence[EstimatorRequest], whole: Estimates, piece: slice
) -> list[Floats]:
    """Influence values of a piece of rows: of the logging policy, then of every request."""
    logging = _reward(rows, piece) - _per_unit(rows, whole.logging_value, piece)
    return [
        rows.weighted(logging, piece),
        *(_influence(rows, j, one, whole, piece) for j, one in enumerate(requests)),
    ]


def _reward(rows: LogGroup, piece: slice) -> Floats:
    return rows.reward[piece].astype(np.float64, copy=False)


def _parts(
    rows: LogGroup, request: EstimatorRequest, piece: slice
) -> tuple[Floats, Floats, Floats | None]:
    """Return each row's effective weight, what this weight multiplies, and the model's value of the
    target policy."""
    estimator = request.estimator
    g = effective_weight(rows.weight[piece], estimator.rule, request.clip)
    reward = _reward(rows, piece)
    if not estimator.uses_q or rows.q_logged is None or rows.q_target is None:
        return g, reward, None
    return g, reward - rows.q_logged[piece], rows.q_target[piece]


def _influence(
    rows: LogGroup, j: int, request: EstimatorRequest, whole: Estimates, piece: slice
) -> Floats:
    totals, per_unit = whole.totals[j], _per_unit(rows, whole.values[j], piece)
    g, error, model = _parts(rows, request, piece)
    if request.estimator.normalised:
        gain, mean = normalised_gain(totals), totals.weight / whole.rows
        level = rows.at_position(gain, piece)
        psi = g / rows.at_position(mean, piece) * (error - level) + (level - per_unit)
    else:
        psi = g * error - per_unit
    return rows.weighted(psi if model is None else psi + model, piece)


def _per_unit(rows: LogGroup, value: float, piece: slice) -> Floats | float:
    """A value per unit, on the unit's first row."""
    return value if rows.first is None else np.where(rows.first[piece], value, 0.0)


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
    if rows.q_logged is None or rows.q_target is None:
        return 0.0
    weights, units, logged, target = 0.0, 0.0, 0.0, 0.0
    for piece in rows.pieces():
        w = rows.weighted(rows.weight[piece], piece)
        weights, logged = weights + float(w.sum()), logged + float((w * rows.q_logged[piece]).sum())
        units += float(rows.unit_weights(piece).sum())
        target += float(rows.weighted(rows.q_target[piece], piece).sum())
    if not weights:
        return 0.0
    logged, target, mean_weight = logged / weights, target / units, weights / units
    above = logged - target
    if abs(above) <= FIT_ROUNDING * max(abs(logged), abs(target)):
        return 0.0
    q_logged, q_target, square = rows.q_logged, rows.q_target, 0.0

    def influence(piece: slice) -> list[Floats]:
        """w·(q_logged − its mean)/mean(w) − (q_target − its mean)."""
        psi: Floats = rows.weight[piece] * (q_logged[piece] - logged) / mean_weight
        return [rows.weighted(psi - (q_target[piece] - target), piece)]

    for (psi,) in rows.per_cluster(influence):
        square += dot(psi, psi)
    se = float(clustered_error(np.array([square]), rows.n_clusters, units)[0])
    return above / se if se > 0 else float(np.copysign(np.inf, above))


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
    with undefined_is_nan():
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
