"""Values of estimators, their standard errors by the delta method, and whether a reward model fits:
arrays in, numbers out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..stats.numbers import Floats
from .plan import EstimatorRequest, effective_weight
from .rows import LogGroup, dot

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
