"""The logged rows of one group as arrays, how evenly their importance weights are spread, values of
estimators, their standard errors and intervals: arrays in, numbers out. Nothing here knows a
column."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..inputs.machine import sizes
from ..judge.verdict import largest_of_uneven
from ..stats.numbers import Floats, Mask, normal_quantile, undefined_is_nan
from ..stats.resampling import bootstrap_effect, distinct_columns, poisson_sums
from ..stats.student import student_quantile
from ..tables.cells import amount
from .plan import (
    EstimatorRequest,
    Plan,
    RequestKind,
    WeightRule,
    effective_weight,
)

# Contract of the rows: the arrays stand in one order. `first` marks the first row of each unit;
# None says that each row is a unit. `cluster` holds integer codes below `n_codes`; None says that
# each row is independent of all others.


IntCodes = npt.NDArray[np.integer]


def dot(one: Floats, other: Floats) -> float:
    """Return the sum of products. On a busy machine, the linear algebra library would wait for its
    threads."""
    return (one * other).sum()


@dataclass(frozen=True)
class LogGroup:
    """Arrays over the rows of one group of a log, or of a piece of it. Without a reward model its
    values are 0."""

    weight: Floats
    reward: Floats
    q_logged: Floats | float = 0.0
    q_target: Floats | float = 0.0
    sample_weight: Floats | None = None
    position: IntCodes | None = None
    n_positions: int = 1
    first: Mask | None = None
    cluster: IntCodes | None = None
    n_codes: int = 0

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def n_units(self) -> int:
        return len(self) if self.first is None else int(np.count_nonzero(self.first))

    @cached_property
    def n_clusters(self) -> int:
        """Clusters that occur."""
        return len(self) if self.cluster is None else int((np.bincount(self.cluster) > 0).sum())

    @property
    def holds_for(self) -> str:
        """The clusters that an estimate can speak of: larger ones than those seen could turn it.
        Nothing where all have as many rows."""
        most = math.nan if self.cluster is None else largest_of_uneven(np.bincount(self.cluster))
        return "" if math.isnan(most) else f"clusters of up to {amount(most, 'row')}"

    def part(self, rows: slice) -> LogGroup:
        """Return some of the rows."""
        return replace(
            self, **{name: values[rows] for name, values in vars(self).items() if np.ndim(values)}
        )

    def pieces(self) -> Iterator[LogGroup]:
        """Give all rows in pieces that fit the processor's cache and cut no unit in two."""
        size = sizes().log_rows
        size = size if self.cluster is None else min(max(size, self.n_codes), sizes().most_log_rows)
        edges = np.arange(0, len(self), size)
        if self.first is not None:
            starts = np.flatnonzero(self.first)
            edges = np.unique(starts[np.searchsorted(starts, edges, side="right") - 1])
        for start, stop in pairwise([*edges, len(self)]):
            yield self.part(slice(start, stop))

    def sums(self, values: Callable[[LogGroup], Sequence[Any]]) -> list[Any]:
        """Return the sums over all pieces of what is computed of each."""
        pieces = self.pieces()
        total = list(values(next(pieces)))
        for piece in pieces:
            for at, found in enumerate(values(piece)):
                total[at] += found
        return total

    def per_cluster(self, values: Callable[[LogGroup], list[Floats]]) -> Iterator[list[Floats]]:
        """Values of clusters: piece by piece where each row is one, else the sums of all rows per
        cluster code."""
        if self.cluster is None:
            yield from map(values, self.pieces())
        else:
            yield self.sums(lambda piece: piece.cluster_sums(values(piece)))

    def cluster_sums(self, values: Sequence[Floats]) -> list[Floats]:
        """Sums of these values of the rows per cluster code."""
        codes = np.asarray(self.cluster, np.intp)
        return [np.bincount(codes, one, self.n_codes).astype(float, copy=False) for one in values]

    def position_sums(self, values: Floats) -> Floats:
        """Sum of the rows' values per position."""
        if self.position is None:
            return np.array([values.sum()])
        return np.bincount(self.position, values, self.n_positions).astype(float, copy=False)

    def by_position(self, values: Floats) -> list[Floats]:
        """One array per position: the values of its rows, and 0 for the others."""
        if self.position is None:
            return [values]
        return [np.where(self.position == k, values, 0.0) for k in range(self.n_positions)]

    def at_position(self, table: Floats) -> Floats | np.float64:
        """Return the number of each row's position."""
        return table[0] if self.position is None else table[self.position]

    def weighted(self, values: Any) -> Any:
        """Values times the sample weights of their rows."""
        return values if self.sample_weight is None else values * self.sample_weight

    @property
    def row_weights(self) -> Floats:
        """The sample weights, 1 where there are none."""
        return self.weighted(np.broadcast_to(1.0, len(self)))

    def per_unit(self, value: Any) -> Any:
        """A value per unit, on the unit's first row."""
        return value if self.first is None else np.where(self.first, value, 0.0)

    def unit_weights(self) -> Floats:
        """The sample weight of a unit on its first row, and 0 on the others."""
        return self.row_weights * self.per_unit(1.0)

    def unit_sums(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum of the values of each unit."""
        return values if self.first is None else np.add.reduceat(values, np.flatnonzero(self.first))

    def constant_reward(self) -> float | None:
        """Return the reward that all rows, or all units, of a weight above 0 have; None if their
        rewards vary."""
        there = self.weight > 0
        of_units = self.unit_sums(self.reward)[self.unit_sums(there) > 0]
        for one in (self.reward[there], of_units):
            low = one.min(initial=np.inf)
            high = one.max(initial=-np.inf)
            if high - low <= 1e-12 * abs(high):  # sums of money differ by rounding alone
                return low
        return None


# Size of z over rows from which the mean weight is tested over clusters too.
CLUSTERS_ARE_ASKED_ABOVE = 2.0


def effective_numbers(rows: LogGroup, rule: WeightRule, clip: float | None) -> dict[str, float]:
    """Effective sample sizes and shares of the weights that an estimator uses, after the clip; of
    slates, at the position where the weights are spread least evenly.

    (Σw)²/Σw² for the rows, the same with w·r summed per unit in place of w for the rewards. Heavy
    rows that happen to have no reward leave no trace in Σw·r, so the rewards to expect are counted
    too: ess·(Σw|r|)²/(Σw·Σwr²), the effective number of rows times the share of the target's rows
    that have a reward.
    """
    if rule == "model":  # it uses no weights, so the numbers are those of the log itself
        rule = "cap"
        clip = None
    largest = np.zeros(rows.n_positions)

    def of_piece(piece: LogGroup) -> Sequence[Any]:
        own = effective_weight(piece.weight, rule, clip)
        g = piece.weighted(own)
        reward = np.abs(piece.reward)
        ones = np.broadcast_to(1.0, len(own))
        np.maximum(largest, [one.max() for one in piece.by_position(g)], out=largest)
        of_positions = g, g * g, g * own, piece.row_weights, ones
        paid = g * reward
        earned = piece.unit_sums(paid)
        return (
            *map(piece.position_sums, of_positions),
            *(earned.sum(), dot(earned, earned), paid.sum(), dot(paid, reward)),
        )

    total, square, spread, population, count, *of_rewards = rows.sums(of_piece)
    earned, earned_square, paid, paid_square = of_rewards
    n_clipped = 0
    above = 0.0
    n_rows = population
    if clip is not None:
        n_clipped = int((rows.weight > clip).sum())
        above = rows.weighted(np.maximum(rows.weight - clip, 0.0)).sum()
    with undefined_is_nan():
        ess = np.nan_to_num(total**2 / square)
        # The share of rows with a reward under the target policy; a slate of k rows has k chances
        # of one.
        paying = min(np.divide(paid**2 * rows.n_positions, total.sum() * paid_square), 1.0)
        # With sample weights, as many rows as the log had before the rows without a reward were
        # sampled down.
        if rows.sample_weight is not None:
            sampled = rows.weighted(rows.reward)
            n_rows = population * np.divide(dot(sampled, rows.reward), dot(sampled, sampled))
        expected = paying * np.nan_to_num(n_rows * total**2 / (population * spread)).min()
        seen = np.divide(earned**2, earned_square)
        share = largest / total
    return {
        "ess": ess.min(),
        "ess_share": (ess / count).min(),
        "ess_reward": np.nan_to_num(seen),
        "ess_reward_expected": np.nan_to_num(expected),
        "max_weight_share": share.max() if (total > 0).all() else 1.0,
        "n_clipped": n_clipped,
        "clipped_mass": above / population.sum(),
    }


def weight_numbers(rows: LogGroup) -> dict[str, Any]:
    """Mean, largest value and the test of the mean against 1, which holds for every correct log, of
    the weights before any clip.

    `weight_mean_z` is (mean − 1)/se over independent rows, `cluster_z` the same over clusters; of
    slates, the mean is over all rows and both z are those of the worst position. `constant_reward`
    is what all rows with a weight have, if their rewards do not vary.
    """
    total, count = rows.sums(
        lambda one: [*map(one.position_sums, (one.weighted(one.weight), one.row_weights))]
    )
    mean = total / count
    largest = rows.weight.max()

    def deviation(piece: LogGroup) -> Floats:
        return piece.weighted(piece.weight - piece.at_position(mean))

    def z_of(square: Floats, n: Floats | int) -> float:
        """The z that is farthest from 0. A mean of 1 has z = 0, even where nothing varies."""
        with undefined_is_nan():
            z = (mean - 1) / (np.sqrt(n / np.subtract(n, 1) * square) / count)
        z = np.where(np.abs(mean - 1) < 1e-12, 0.0, z)
        return z[np.argmax(np.abs(z))]

    def squares(piece: LogGroup) -> list[Floats]:
        both = deviation(piece) ** 2, np.broadcast_to(1.0, len(piece))
        return [*map(piece.position_sums, both)]

    z = cluster_z = z_of(*rows.sums(squares))
    # Where the rows do not reject the mean, clusters do not either, so their sums are not needed.
    if rows.cluster is not None and abs(z) > CLUSTERS_ARE_ASKED_ABOVE:
        (sums,) = rows.per_cluster(lambda piece: piece.by_position(deviation(piece)))
        cluster_z = z_of(np.array([dot(one, one) for one in sums]), rows.n_clusters)
    weight_mean = total.sum() / count.sum()
    return {
        "weight_mean": weight_mean,
        "weight_max": largest,
        "unsupported_mass": max(1 - weight_mean, 0.0),
        "weight_mean_z": z,
        "cluster_z": cluster_z,
        "n_matched": np.count_nonzero(rows.weight),
        "all_one": rows.weight.min() == largest == 1.0,
        "constant_reward": rows.constant_reward(),
    }


# ------------------------------------------------------------------------------------------
# Values of estimators and their standard errors by the delta method.
#
# Contract: an estimate is a sum over rows, divided by the number of units. The influence value ψ
# of a row is what the row adds to the estimate's deviation from its expectation, to first order.
# Influence values are summed per cluster, and se = √(U/(U−1)·Σ_c(Σ_{i in c} ψ_i)²)/n for U
# clusters and n units.


class Estimates(NamedTuple):
    """All estimates of one group of rows.

    `columns` have one number per request: `value`, `logging_value` (of the logging policy on the
    same rows), `lift` between them, what clipping changed (`clip_change`), the standard errors of
    these, and with ψ the influence of a cluster `ess_influence` = (Σψ²)²/Σψ⁴, the number of
    clusters of equal influence that would give as uncertain a standard error, and `skewness` =
    Σψ³/(Σψ²)^1.5. `units` are the weights of the units. `sums` are the influence values per cluster
    code, of the logging policy and then of every request: None without clusters.
    """

    units: float
    columns: dict[str, Floats]
    sums: list[Floats] | None


def _parts(
    piece: LogGroup, rule: WeightRule, uses_q: bool, clip: float | None
) -> tuple[Floats, Floats, Floats | float]:
    """Return each row's effective weight times its sample weight, what that multiplies, and what
    the model adds."""
    g = piece.weighted(effective_weight(piece.weight, rule, clip))
    if not uses_q:
        return g, piece.reward, 0.0
    return g, piece.reward - piece.q_logged, piece.weighted(piece.q_target)


def _terms(piece: LogGroup, kinds: Sequence[RequestKind]) -> list[Floats]:
    """Return what is summed per position: weights of units, rewards, weights of rows; and of each
    kind of request its gains, its weights and its model."""
    found = [piece.unit_weights(), piece.weighted(piece.reward), piece.row_weights]
    for kind in kinds:
        g, error, model = _parts(piece, *kind)
        found += [g * error, g, np.broadcast_to(model, len(g))]
    return found


def _values_of(
    sums: Floats, kinds: Sequence[RequestKind], requests: Sequence[EstimatorRequest]
) -> tuple[Floats, Floats]:
    """Return the value of each request and of the logging policy, from the sums of `_terms` per
    position. Further axes, such as that of replicates, stay."""
    units, reward = sums[:2].sum(axis=1)
    found = []
    for one in requests:
        gain, weight, model = sums[3 + 3 * kinds.index(one.kind) :][:3]
        normalised = one.estimator.normalised
        per_position = gain / weight * (sums[2] / units) if normalised else gain / units
        found.append(per_position.sum(axis=0) + model.sum(axis=0) / units)
    return np.array(found), reward / units


def estimate_values(rows: LogGroup, requests: Sequence[EstimatorRequest]) -> Estimates:
    """Estimate every request with its standard errors. Requests that differ in their normalisation
    alone share their sums over rows."""
    kinds = list(dict.fromkeys(request.kind for request in requests))
    sums = np.array(rows.sums(lambda piece: [*map(piece.position_sums, _terms(piece, kinds))]))
    units = sums[0].sum()
    value, logging = _values_of(sums, kinds, requests)
    # The same request without its clip; None where there is no clip.
    names = [(one.estimator.name, one.clip) for one in requests]
    full = [
        None if one.clip is None else names.index((one.estimator.unclipped, None))
        for one in requests
    ]

    def influences(piece: LogGroup) -> list[Floats]:
        """Influence values of the logging policy, then of every request."""
        found = [piece.weighted(piece.reward - piece.per_unit(logging))]
        for request, whole in zip(requests, value, strict=True):
            g, error, model = _parts(piece, *request.kind)
            level: Any = 0.0
            if request.estimator.normalised:
                gain, weight = sums[3 + 3 * kinds.index(request.kind) :][:2]
                level = piece.at_position(gain / weight)
                g = g / piece.at_position(weight / sums[2])
            own = piece.weighted(level - piece.per_unit(whole))
            found.append(g * (error - level) + own + model)
        return found

    # Of each request: Σψ² of its own, of its lift and of what clipping changed; Σψ³, Σψ⁴.
    powers = np.zeros((5, len(requests)))
    psis = None
    for psis in rows.per_cluster(influences):
        for j, (psi, whole) in enumerate(zip(psis[1:], full, strict=True)):
            square = psi * psi
            lift = psi - psis[0]
            clipped = 0.0 * psi[:1] if whole is None else psi - psis[1 + whole]
            powers[:, j] += [
                square.sum(),
                dot(lift, lift),
                dot(clipped, clipped),
                dot(square, psi),
                dot(square, square),
            ]
    second, _, _, third, fourth = powers
    change = [0.0 if j is None else one - value[j] for one, j in zip(value, full, strict=True)]
    columns = {
        "value": value,
        "logging_value": np.full(len(value), logging),
        "lift": value - logging,
        "clip_change": np.array(change),
    }
    errors = clustered_error(powers[:3], rows.n_clusters, units)
    columns |= dict(zip(("se", "lift_se", "clip_change_se"), errors, strict=True))
    with undefined_is_nan():
        # An estimate without any variance has nothing that could be unevenly spread.
        columns["ess_influence"] = np.where(fourth > 0, second**2 / fourth, rows.n_clusters)
        columns["skewness"] = np.where(fourth > 0, third / second**1.5, 0.0)
    return Estimates(units, columns, None if rows.cluster is None else psis)


def clustered_error(squares: Any, n_clusters: int, units: float) -> Any:
    """√(U/(U−1)·Σ(Σψ)²)/n; null for a single cluster."""
    factor = n_clusters / (n_clusters - 1) if n_clusters > 1 else np.nan
    return np.sqrt(factor * squares) / units


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
        w = piece.weighted(piece.weight)
        units = piece.unit_weights()
        target = piece.weighted(piece.q_target)
        return [np.sum(one) for one in (w, w * piece.q_logged, units, target)]

    weights, logged, units, target = rows.sums(sums)
    logged = logged / weights
    target = target / units
    mean_weight = weights / units
    above = logged - target
    if abs(above) <= FIT_ROUNDING * max(abs(logged), abs(target)):
        return 0.0

    def influence(piece: LogGroup) -> list[Floats]:
        """w·(q_logged − its mean)/mean(w) − (q_target − its mean)."""
        psi = piece.weight * (piece.q_logged - logged) / mean_weight
        return [piece.weighted(psi - (piece.q_target - target))]

    square = sum(dot(psi, psi) for (psi,) in rows.per_cluster(influence))
    se = clustered_error(square, rows.n_clusters, units)
    return above / se if se > 0 else np.copysign(np.inf, above)


# ------------------------------------------------------------------------------------------
# Intervals of the value and of its lift over the logging policy: by the delta method, by bootstrap
# of clusters, and bounded by an empirical likelihood.


def intervals(
    rows: LogGroup, requests: Sequence[EstimatorRequest], found: Estimates, plan: Plan
) -> dict[str, Floats]:
    """Return `se`, `ci_low` and `ci_high` of the values, and `lift_se`, ... of their lifts, by the
    kind of interval that the call asks for. A bounded one has the standard errors of the delta
    method."""
    columns = found.columns
    limits = dict[str, Floats]()
    if plan.interval == "bootstrap":
        return _bootstrapped(rows, requests, plan)
    if plan.interval == "delta" or plan.reward_range is None or plan.weight_range is None:
        z = normal_quantile((1 + plan.confidence) / 2)
        for name, own in (("value", ""), ("lift", "lift_")):
            half = z * columns[f"{own}se"]
            limits |= {f"{own}ci_low": columns[name] - half, f"{own}ci_high": columns[name] + half}
        return columns | limits
    # Clusters are divided by their mean number of rows, so that their weights have mean 1.
    size, *sums = _per_cluster(
        rows,
        lambda one: [
            np.ones(len(one)),
            one.weight,
            one.weight * one.reward,
            (one.weight - 1) * one.reward,
        ],
    )
    weight, gain, lift = (values / size.mean() for values in sums)
    sizes_of = size.min() / size.mean(), size.max() / size.mean()
    weights = tuple(end * own for end, own in zip(plan.weight_range, sizes_of, strict=True))
    rewards = plan.reward_range
    width = plan.reward_range[1] - plan.reward_range[0]
    for own, term, less, possible in (
        ("", gain, 0.0, rewards),
        ("lift_", lift, sizes_of[1], (-width, width)),
    ):
        low, high = cressie_read(weight, term, weights, rewards, less, plan.confidence)
        if low > possible[1] or high < possible[0]:
            low, high = possible  # rows that cannot have weights of mean 1 tell nothing
        limits[f"{own}ci_low"] = np.full(len(requests), max(low, possible[0]))
        limits[f"{own}ci_high"] = np.full(len(requests), min(high, possible[1]))
    return columns | limits


def _bootstrapped(
    rows: LogGroup, requests: Sequence[EstimatorRequest], plan: Plan
) -> dict[str, Floats]:
    """Percentile intervals; every replicate draws whole clusters."""
    kinds = list(dict.fromkeys(request.kind for request in requests))
    columns = _per_cluster(
        rows,
        lambda piece: [one for term in _terms(piece, kinds) for one in piece.by_position(term)],
    )
    columns, places = distinct_columns(columns)
    drawn = poisson_sums(columns, plan.n_resamples, plan.seed).T[places]
    sums = drawn.reshape(-1, rows.n_positions, plan.n_resamples)
    with undefined_is_nan():
        values, logging = _values_of(sums, kinds, requests)
        lifts = values - logging
    # A replicate of very few clusters may have drawn no weight at all, and then has no value.
    values[~np.isfinite(lifts)] = lifts[~np.isfinite(lifts)] = np.nan
    return {
        f"{own}{name}": column
        for own, part in (("", values), ("lift_", lifts))
        for name, column in bootstrap_effect(part.T, "two-sided", plan.confidence).items()
    }


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


def cressie_read(
    weight: Floats,
    term: Floats,
    weights: Sequence[float],
    rewards: Sequence[float],
    less: float,
    confidence: float,
) -> tuple[float, float]:
    """Interval of the mean of `term`, which is about (weight − `less`)·reward, by an empirical
    likelihood of the Cressie–Read family.

    Clusters are independent, and their weights w have mean 1 in expectation. The interval holds
    every mean of the terms f that some reweighting of the clusters gives, if the reweighted mean of
    w is 1 and the reweighting is likely enough. One cluster that was never seen is added, with the
    most extreme weight and term that the ranges allow; it keeps the interval honest when few
    clusters carry the weight (Karampatziakis, Langford and Mineiro 2019, "Empirical likelihood for
    contextual bandits").
    """
    n = len(weight)
    # Sums over clusters of w, w², f, w·f and f².
    sums = np.array([weight.sum(), weight @ weight, term.sum(), weight @ term, term @ term])
    # How far a reweighting may be from equal weights: that of the likeliest one, and a quantile of
    # F(1, n).
    unseen = weights[1] if sums[0] < n else weights[0]
    mean = (unseen + sums[0]) / (n + 1)
    square = (unseen**2 + sums[1]) / (n + 1)
    likeliest = (n + 1) * (mean - 1) ** 2 / (square - mean**2) if square > mean**2 else 0.0
    budget = (likeliest + student_quantile((1 + confidence) / 2, n) ** 2) / (2 * (n + 1))
    found = []
    for sign in (1, -1):
        ends = []
        for unseen in weights:
            # In moments over the n + 1 clusters, x is the mean of sign·f once w has mean 1, y the
            # variance of f that w does not explain, and z what is left of the budget. The smallest
            # mean is x − √(2yz).
            extreme = sign * min(sign * (unseen - less) * reward for reward in rewards)
            cluster = unseen, unseen**2, extreme, unseen * extreme, extreme**2
            w, ww, f, wf, ff = (sums + cluster) / (n + 1) * (1, 1, sign, sign, 1)
            spread = ww - w**2
            if spread <= 0:
                continue
            x = f + (1 - w) * (wf - w * f) / spread
            y = ff - f**2 - (wf - w * f) ** 2 / spread
            z = budget - (1 - w) ** 2 / (2 * spread)
            if abs(y * z) < 1e-9 * max(1.0, ff):
                y = max(y, 0.0)
                z = max(z, 0.0)
            if y >= 0 and z >= 0:  # else no reweighting is likely enough
                ends.append(x - math.sqrt(2 * y * z))
        found.append(sign * min(ends, default=-math.inf))
    return found[0], found[1]
