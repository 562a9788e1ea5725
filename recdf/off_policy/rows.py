"""The logged rows of one group as arrays, and their importance weights: of single rows, of slates,
and how evenly they are spread. Nothing here knows a column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

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
    """Arrays over the rows of one group of a log, or of a piece of it. Without a reward model its
    values are 0."""

    weight: Floats
    reward: Floats
    q_logged: Floats | float = 0.0
    q_target: Floats | float = 0.0
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

    @cached_property
    def n_clusters(self) -> int:
        """Clusters that occur."""
        found = len(self) if self.cluster is None else np.count_nonzero(np.bincount(self.cluster))
        return int(found)

    def part(self, rows: slice) -> LogGroup:
        """Return some of the rows."""
        return replace(
            self, **{name: values[rows] for name, values in vars(self).items() if np.ndim(values)}
        )

    def pieces(self) -> Iterator[LogGroup]:
        """Give all rows in pieces that fit the processor's cache and cut no unit in two."""
        size, most = sizes().log_rows, sizes().most_log_rows
        size = size if self.cluster is None else min(max(size, self.n_codes), most)
        edges = np.arange(0, len(self), size)
        if self.first is not None:
            starts = np.flatnonzero(self.first)
            edges = np.unique(starts[np.searchsorted(starts, edges, side="right") - 1])
        for start, stop in pairwise([*edges.tolist(), len(self)]):
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

    def weighted(self, values: Floats) -> Floats:
        """Values times the sample weights of their rows."""
        return values if self.sample_weight is None else values * self.sample_weight

    @property
    def row_weights(self) -> Floats:
        """The sample weights, 1 where there are none."""
        return self.weighted(np.broadcast_to(1.0, len(self)))

    def per_unit(self, value: float) -> Floats | float:
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
        ends = []
        for piece in self.pieces():
            there = piece.weight > 0
            of_units = piece.unit_sums(piece.reward)[piece.unit_sums(there) > 0]
            ends.append(
                [
                    (one.min(initial=np.inf), one.max(initial=-np.inf))
                    for one in (piece.reward[there], of_units)
                ]
            )
        low, high = np.min(ends, axis=0)[:, 0], np.max(ends, axis=0)[:, 1]
        same = low[high - low <= 1e-12 * np.abs(high)]  # sums of money differ by rounding alone
        return float(same[0]) if len(same) else None


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
    if rule == "model":  # it uses no weights, so the numbers are those of the log itself
        rule, clip = "cap", None
    largest = np.zeros(rows.n_positions)

    def of_piece(piece: LogGroup) -> Sequence[Any]:
        own = effective_weight(piece.weight, rule, clip)
        g, reward, ones = piece.weighted(own), np.abs(piece.reward), np.broadcast_to(1.0, len(own))
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
    n_clipped, above, n_rows = 0, 0.0, population
    if clip is not None:
        n_clipped = int(np.count_nonzero(rows.weight > clip))
        above = float(rows.weighted(np.maximum(rows.weight - clip, 0.0)).sum())
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
    return EffectiveNumbers(
        float(ess.min()),
        float((ess / count).min()),
        float(np.nan_to_num(seen)),
        float(np.nan_to_num(expected)),
        float(share.max()) if (total > 0).all() else 1.0,
        n_clipped,
        above / population.sum(),
    )


def weight_numbers(rows: LogGroup) -> WeightNumbers:
    """Mean, largest value and the test of the mean against 1, which holds for every correct log."""

    def totals(piece: LogGroup) -> list[Floats]:
        both = piece.weighted(piece.weight), piece.row_weights
        return [piece.position_sums(values) for values in both]

    total, count = rows.sums(totals)
    mean, largest = total / count, float(rows.weight.max())

    def deviation(piece: LogGroup) -> Floats:
        return piece.weighted(piece.weight - piece.at_position(mean))

    def z_of(square: Floats, n: Floats | int) -> float:
        """The z that is farthest from 0. A mean of 1 has z = 0, even where nothing varies."""
        with undefined_is_nan():
            z = (mean - 1) / (np.sqrt(n / np.subtract(n, 1) * square) / count)
        z = np.where(np.abs(mean - 1) < 1e-12, 0.0, z)
        return float(z[np.argmax(np.abs(z))])

    def squares(piece: LogGroup) -> list[Floats]:
        both = deviation(piece) ** 2, np.broadcast_to(1.0, len(piece))
        return [piece.position_sums(values) for values in both]

    z = cluster_z = z_of(*rows.sums(squares))
    # Where the rows do not reject the mean, clusters do not either, so their sums are not needed.
    if rows.cluster is not None and abs(z) > CLUSTERS_ARE_ASKED_ABOVE:
        (sums,) = rows.per_cluster(lambda piece: piece.by_position(deviation(piece)))
        cluster_z = z_of(np.array([dot(one, one) for one in sums]), rows.n_clusters)
    return WeightNumbers(
        float(total.sum() / count.sum()),
        largest,
        z,
        cluster_z,
        int(np.count_nonzero(rows.weight)),
        float(rows.weight.min()) == largest == 1.0,
        rows.constant_reward(),
    )
