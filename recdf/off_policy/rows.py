"""The logged rows of one group as arrays, and their importance weights: of single rows, of slates,
and how evenly they are spread. Nothing here knows a column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import DataError
from ..inputs.machine import sizes
from ..inputs.sorting import distinct, place_in_run
from ..stats.numbers import Floats, undefined_is_nan
from .plan import MEANING, Interaction, SlateKind, WeightRule, effective_weight

# ------------------------------------------------------------------------------------------
# The logged rows of one group as arrays, and the walk through them in pieces.
#
# Contract: the arrays stand in one order. `first` marks the first row of each unit; None says
# that each row is a unit. `cluster` holds integer codes below `n_codes`; None says that each row
# is independent of all others.


IntCodes = npt.NDArray[np.integer]
Bools = npt.NDArray[np.bool_]


def dot(one: Floats, other: Floats) -> float:
    """Return the sum of products. On a busy machine, the linear algebra library would wait for its
    threads."""
    return float((one * other).sum())


@dataclass(frozen=True)
class LogGroup:
    """Arrays over the rows of one group of a log."""

    weight: Floats
    reward: npt.NDArray[np.floating | np.integer]
    q_logged: Floats | None = None
    q_target: Floats | None = None
    sample_weight: Floats | None = None
    position: IntCodes | None = None
    n_positions: int = 1
    first: Bools | None = None
    cluster: IntCodes | None = None
    n_codes: int = 0

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def n_units(self) -> int:
        return len(self) if self.first is None else int(np.count_nonzero(self.first))

    def pieces(self) -> Iterator[slice]:
        """Slices that cover all rows and cut no unit in two."""
        size, most = sizes().log_rows, sizes().most_log_rows
        size = size if self.cluster is None else min(max(size, self.n_codes), most)
        edges = np.arange(0, len(self), size)
        if self.first is not None:
            starts = np.flatnonzero(self.first)
            edges = np.unique(starts[np.searchsorted(starts, edges, side="right") - 1])
        for start, stop in zip(edges, [*edges[1:], len(self)], strict=True):
            yield slice(int(start), int(stop))

    @cached_property
    def n_clusters(self) -> int:
        """Clusters that occur."""
        return (
            len(self) if self.cluster is None else int(np.count_nonzero(np.bincount(self.cluster)))
        )

    def per_cluster(self, values: Callable[[slice], list[Floats]]) -> Iterator[list[Floats]]:
        """Values of clusters: piece by piece where each row is one, else the sums of all rows per
        cluster code."""
        if self.cluster is None:
            yield from map(values, self.pieces())
            return
        sums: list[Floats] = []
        for piece in self.pieces():
            codes, found = self.cluster[piece].astype(np.intp, copy=False), values(piece)
            sums = sums or [np.zeros(self.n_codes) for _ in found]
            for total, own in zip(sums, found, strict=True):
                total += np.bincount(codes, own, self.n_codes)
        yield sums

    def position_sums(self, values: Floats, piece: slice) -> Floats:
        """Sum of some rows' values per position."""
        if self.position is None:
            return np.array([values.sum()])
        return np.bincount(self.position[piece], values, self.n_positions).astype(
            np.float64, copy=False
        )

    def at_position(self, table: Floats, piece: slice) -> Floats | np.float64:
        """Return the number of each row's position, for the rows of a piece."""
        return table[0] if self.position is None else table[self.position[piece]]

    def weighted(self, values: Floats, piece: slice) -> Floats:
        """Values times the sample weights of their rows."""
        return values if self.sample_weight is None else values * self.sample_weight[piece]

    def unit_weights(self, piece: slice) -> Floats:
        """The sample weight of a unit on its first row, and 0 on the others."""
        ones = (
            np.ones(piece.stop - piece.start)
            if self.first is None
            else self.first[piece].astype(np.float64)
        )
        return self.weighted(ones, piece)

    def constant_reward(self) -> float | None:
        """Return the reward that all rows, or all units, of a weight above 0 have; None if their
        rewards vary."""
        low, high = np.full(2, np.inf), np.full(2, -np.inf)
        for piece in self.pieces():
            reward, there = (
                self.reward[piece].astype(np.float64, copy=False),
                self.weight[piece] > 0,
            )
            shown = self.unit_sums(there.astype(np.float64), piece) > 0
            for i, values in enumerate((reward[there], self.unit_sums(reward, piece)[shown])):
                low[i], high[i] = (
                    min(low[i], values.min(initial=np.inf)),
                    max(high[i], values.max(initial=-np.inf)),
                )
        same = low[high - low <= 1e-12 * np.abs(high)]  # sums of money differ by rounding alone
        return float(same[0]) if len(same) else None

    def unit_sums(self, values: Floats, piece: slice) -> Floats:
        """Sum of the values of each unit of a piece."""
        return (
            values
            if self.first is None
            else np.add.reduceat(values, np.flatnonzero(self.first[piece]))
        )


# ------------------------------------------------------------------------------------------
# Importance weights of slates: the ratio of each row, combined over the positions of its unit.
#
# Contract: rows are in the order of unit and position. A unit's running product at position k is
# over its first k rows.


# Rounding that products of propensities may have.
SLATE_TOLERANCE = 1e-9


class Layout(NamedTuple):
    """Where units begin, and the place of every row in its unit, 0 for the first."""

    first: Bools
    place: IntCodes

    @property
    def starts(self) -> IntCodes:
        return np.flatnonzero(self.first)

    @property
    def lengths(self) -> IntCodes:
        return np.diff(np.append(self.starts, len(self.first)))


def layout_of(unit: IntCodes) -> Layout:
    """Layout of rows that are sorted by unit."""
    first = np.append(True, unit[1:] != unit[:-1])
    starts = np.flatnonzero(first)
    place = place_in_run(np.diff(np.append(starts, len(unit))))
    return Layout(first, place)


def check_products(values: Floats, layout: Layout, kind: SlateKind, where: str) -> None:
    """Refuse columns that cannot be what `propensity_kind` says."""
    same = values[1:] - values[:-1]
    inside = ~layout.first[1:]
    if kind == "slate" and (np.abs(same[inside]) > SLATE_TOLERANCE).any():
        n = len(distinct(np.cumsum(layout.first)[1:][inside & (np.abs(same) > SLATE_TOLERANCE)]))
        raise DataError(
            f"{where} differs between the rows of {n:,} units, but ⟦propensity_kind='slate'⟧ means "
            "one value per unit; values of single positions are ⟦+propensity_kind='conditional'⟧"
        )
    if kind == "prefix" and (same[inside] > SLATE_TOLERANCE).any():
        n = int(np.count_nonzero(same[inside] > SLATE_TOLERANCE))
        raise DataError(
            f"{where} grows from one position to the next in {n:,} rows, but "
            "⟦+propensity_kind='prefix'⟧ means the running product, which cannot grow; values of "
            "single positions are ⟦+propensity_kind='conditional'⟧"
        )


def check_per_slate(
    logged: Floats, target: Floats, layout: Layout, kind: SlateKind, where: str
) -> None:
    """Refuse one probability per slate that is passed as one per position.

    Constant values can be right (a uniform policy), but not where they also differ between units in
    both columns.
    """
    inside = ~layout.first[1:]
    if kind not in ("conditional", "prefix") or not inside.any():
        return
    if any((values[1:] != values[:-1])[inside].any() for values in (logged, target)):
        return
    one = kind == "prefix" and (logged < 1).any()
    if one or all(len(distinct(values[layout.first])) > 1 for values in (logged, target)):
        raise DataError(
            f"{where} has one value for all rows of each unit, which is the probability of a "
            f"slate, but ⟦propensity_kind={kind!r}⟧ means {MEANING[kind]}; pass "
            "⟦+propensity_kind='slate'⟧ with ⟦+interaction='standard'⟧"
        )


def last_rows(layout: Layout) -> IntCodes:
    """The last row of each unit."""
    return np.append(layout.starts[1:], len(layout.first)) - 1


def running_product(values: Floats, layout: Layout) -> Floats:
    """Product of the values of a unit down to each row. The loop runs over positions, not over
    rows."""
    product = values.astype(np.float64, copy=True)
    for place in range(1, int(layout.lengths.max(initial=0))):
        rows = layout.starts[layout.lengths > place] + place
        product[rows] *= product[rows - 1]
    return product


def slate_weights(
    ratio: Floats, layout: Layout, interaction: Interaction, kind: SlateKind
) -> Floats:
    """The weight that every row has under an interaction, from the ratios π_e/π_b of its
    columns."""
    if interaction == "independent":
        return ratio
    down = running_product(ratio, layout) if kind == "conditional" else ratio
    if interaction == "cascade":
        return down
    return np.repeat(down[last_rows(layout)], layout.lengths)


# ------------------------------------------------------------------------------------------
# How evenly the importance weights are spread: arrays in, numbers out.


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
    with undefined_is_nan():
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
    with undefined_is_nan():
        return np.asarray(np.sqrt(n / (n - 1) * square) / count)


def _worst_z(above: Floats, se: Floats) -> float:
    """The z that is farthest from 0. A mean of exactly 1 has z = 0, even where nothing varies."""
    with undefined_is_nan():
        z = np.where(above == 0, 0.0, above / se)
    z = np.where(np.abs(above) < 1e-12, 0.0, z)
    return float(z[np.argmax(np.abs(z))])
