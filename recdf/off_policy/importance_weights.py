"""How evenly the importance weights are spread: arrays in, numbers out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..stats.numbers import Floats
from .estimators import WeightRule, effective_weight
from .rows import LogGroup, dot

# Size of z over rows from which the mean weight is tested over clusters too.
CLUSTERS_ARE_ASKED_ABOVE = 2.0


class WeightNumbers(NamedTuple):
    """What the weights of one group say, before any clip.

    `mean_z` is (mean − 1)/se over independent rows, `mean_cluster_z` the same over clusters. Of
    slates, `mean` is over all rows and the two z are those of the worst position. `constant_reward`
    is what all rows with a weight have, if their rewards do not vary.
    """

    mean: float
    max: float
    mean_z: float
    mean_cluster_z: float
    n_matched: int
    all_one: bool
    constant_reward: float | None


class EffectiveNumbers(NamedTuple):
    """What the weights after a clip say; of slates, at the position where the weights are spread
    least evenly.

    `ess_reward_expected` is the effective number of rows times the share of the target's rows that
    have a reward.
    """

    ess: float
    ess_share: float
    ess_reward: float
    ess_reward_expected: float
    max_weight_share: float
    n_clipped: int
    clipped_mass: float


def effective_numbers(rows: LogGroup, rule: WeightRule, clip: float | None) -> EffectiveNumbers:
    """Effective sample sizes and shares of the weights that an estimator uses.

    (Σw)²/Σw² for the rows, the same with w·r summed per unit in place of w for the rewards. Heavy
    rows that happen to have no reward leave no trace in Σw·r, so the rewards to expect are counted
    too: ess·(Σw|r|)²/(Σw·Σwr²).
    """
    if (
        rule == "model"
    ):  # a reward model uses no weights, so the numbers are those of the log itself
        rule, clip = "cap", None
    k = rows.n_positions
    total, square, largest, count, spread, population = (np.zeros(k) for _ in range(6))
    paid, paid_square, kept_square, sampled_square = 0.0, 0.0, 0.0, 0.0
    reward_sum, reward_square, n_clipped, above, row_weight = 0.0, 0.0, 0, 0.0, 0.0
    for piece in rows.pieces():
        raw = rows.weight[piece]
        own = effective_weight(raw, rule, clip)
        g = rows.weighted(own, piece)
        total += rows.position_sums(g, piece)
        square += rows.position_sums(g * g, piece)
        spread += rows.position_sums(g * own, piece)
        population += rows.position_sums(rows.weighted(np.ones(len(g)), piece), piece)
        count += rows.position_sums(np.ones(len(g)), piece) if k > 1 else len(g)
        if rows.position is None:
            largest[0] = max(largest[0], float(g.max()))
        else:
            np.maximum.at(largest, rows.position[piece], g)
        earned = np.abs(rows.unit_sums(g * rows.reward[piece], piece))
        reward_sum, reward_square = (
            reward_sum + float(earned.sum()),
            reward_square + dot(earned, earned),
        )
        reward = np.abs(rows.reward[piece]).astype(np.float64, copy=False)
        paid, paid_square = paid + dot(g, reward), paid_square + dot(g, reward * reward)
        if rows.sample_weight is not None:
            sampled = rows.weighted(reward, piece)
            kept_square, sampled_square = (
                kept_square + dot(sampled, reward),
                sampled_square + dot(sampled, sampled),
            )
        if clip is not None:
            over = raw > clip
            n_clipped += int(np.count_nonzero(over))
            above += float(rows.weighted(np.where(over, raw - clip, 0.0), piece).sum())
            row_weight += float(rows.weighted(np.ones(len(raw)), piece).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        ess, share = total**2 / square, largest / total
        seen = np.divide(reward_sum**2, reward_square)
        # The share of rows with a reward under the target policy; a slate of k rows has k chances
        # of one.
        paying = min(np.divide(paid**2 * k, total.sum() * paid_square), 1.0)
        # With sample weights, as many rows as the log had before the rows without a reward were
        # sampled down.
        n_rows = (
            population
            if rows.sample_weight is None
            else population * np.divide(kept_square, sampled_square)
        )
        expected = paying * np.nan_to_num(n_rows * total**2 / (population * spread)).min()
    return EffectiveNumbers(
        float(np.nan_to_num(ess).min()),
        float((np.nan_to_num(ess) / count).min()),
        float(np.nan_to_num(seen)),
        float(np.nan_to_num(expected)),
        float(share.max()) if (total > 0).all() else 1.0,
        n_clipped,
        above / row_weight if row_weight else 0.0,
    )


def weight_numbers(rows: LogGroup) -> WeightNumbers:
    """Mean, largest value and the test of the mean against 1, which holds for every correct log."""
    k = rows.n_positions
    total, count, smallest, largest, matched = np.zeros(k), np.zeros(k), np.inf, 0.0, 0
    for piece in rows.pieces():
        weight = rows.weight[piece]
        total += rows.position_sums(rows.weighted(weight, piece), piece)
        count += rows.position_sums(rows.weighted(np.ones(len(weight)), piece), piece)
        smallest, largest = min(smallest, float(weight.min())), max(largest, float(weight.max()))
        matched += int(np.count_nonzero(weight))
    mean = total / count
    z = cluster_z = _worst_z(mean - 1, _mean_errors(rows, mean, count, by_cluster=False))
    # Where the rows do not reject the mean, clusters do not either, so their sums are not needed.
    if rows.cluster is not None and abs(z) > CLUSTERS_ARE_ASKED_ABOVE:
        cluster_z = _worst_z(mean - 1, _mean_errors(rows, mean, count, by_cluster=True))
    return WeightNumbers(
        float(total.sum() / count.sum()),
        largest,
        z,
        cluster_z,
        matched,
        smallest == 1.0 and largest == 1.0,
        rows.constant_reward(),
    )


def _mean_errors(rows: LogGroup, mean: Floats, count: Floats, by_cluster: bool) -> Floats:
    """Standard error of the mean weight per position, of independent rows or of independent
    clusters."""

    def deviation(piece: slice) -> Floats:
        return rows.weighted(rows.weight[piece] - rows.at_position(mean, piece), piece)

    def by_position(piece: slice) -> list[Floats]:
        psi, position = deviation(piece), rows.position
        return [
            psi if position is None else np.where(position[piece] == k, psi, 0.0)
            for k in range(rows.n_positions)
        ]

    if by_cluster:
        (sums,) = rows.per_cluster(by_position)
        n, square = np.array(rows.n_clusters), np.array([dot(one, one) for one in sums])
    else:
        square, n = np.zeros(rows.n_positions), np.zeros(rows.n_positions)
        for piece in rows.pieces():
            psi = deviation(piece)
            square += rows.position_sums(psi * psi, piece)
            n += rows.position_sums(np.ones(len(psi)), piece)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(n / (n - 1) * square) / count)


def _worst_z(above: Floats, se: Floats) -> float:
    """The z that is farthest from 0. A mean of exactly 1 has z = 0, even where nothing varies."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(above == 0, 0.0, above / se)
    z = np.where(np.abs(above) < 1e-12, 0.0, z)
    return float(z[np.argmax(np.abs(z))])
