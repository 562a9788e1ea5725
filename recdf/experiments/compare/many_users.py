"""Two arms of many users: their rows of numbers from one pass over all columns, instead of one pass
per number.

Contract: a row is the one that `compare_arms` gives, up to rounding. Where anything needs a second
look (nulls, strata, clusters, a test that is not Welch's, values that hardly vary, skewness, few
users that carry a result), there is no row, and `compare_arms` makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...inputs.sizes import sizes
from ...inputs.threads import each
from ...stats.arms import NO_THETA, Arm, both
from ...stats.cross_products import CrossProducts, block_rows, centres, cross_products, put_together
from ...stats.moments import HUGE, imbalance
from ..estimates import ArmsEstimate
from ..experiment_columns import Codes, Floats
from ..experiment_rows import ExperimentRows
from ..samples import MetricRows
from ..settings import Settings
from .arms_of_users import FEW_UNITS_CARRY, MOSTLY, with_denominators
from .top_units import MOVED, ArmSums, moved_by, n_top, top_units
from .two_sample import SKEWED_SAMPLES, Row, but, compare_pair, first_row

# More variants than this, and smaller arms, are compared one by one.
_MOST_VARIANTS, _LEAST_USERS = 4, 1000
# A spread below this share of the values, or of the parts that it is the difference of, has lost
# digits.
_LOST = 1e-3
# Blocks that a thread takes at a time, and blocks that it reads at once.
_BLOCKS, _TOGETHER = 64, 16


@dataclass(frozen=True)
class ManyUsers:
    """The columns of all metrics that can be compared so, by `place`, and their cross-products in
    each variant."""

    columns: list[Floats]
    place: dict[int, int]
    sums: CrossProducts
    rows: ExperimentRows
    order: Codes | None
    step: int

    @classmethod
    def of(
        cls, metrics: list[MetricRows], rows: ExperimentRows, settings: Settings
    ) -> ManyUsers | None:
        """Add up the columns of the metrics that need nothing else; None if there are too few
        users, or none such."""
        plain = (
            rows.strata is None
            and rows.clusters is None
            and rows.repeated is None
            and len(rows.groups) == 1
        )
        if (
            len(rows.variant) < sizes().many_users
            or not plain
            or len(rows.variants) > _MOST_VARIANTS
        ):
            return None
        found = {
            id(part): part for one in metrics if _can_be(one, settings) for part in _columns_of(one)
        }
        if not found:
            return None
        columns, step = list(found.values()), block_rows(len(found))
        order = (
            None if rows.users is None or rows.in_order else np.argsort(rows.users, kind="stable")
        )
        centre, n = centres(columns), len(rows.variant)
        parts = each(
            lambda part: cross_products(
                columns, rows.variant, len(rows.variants), centre, part, order
            ),
            [
                range(start, min(start + _BLOCKS * step, n), step)
                for start in range(0, n, _BLOCKS * step)
            ],
        )
        return cls(
            columns,
            {at: i for i, at in enumerate(found, 1)},
            put_together(parts),
            rows,
            order,
            step,
        )

    def row(self, metric: MetricRows, arms: tuple[int, int], settings: Settings) -> Row | None:
        """The row of a metric for two variants, or None where `compare_arms` has to make it."""
        if not _can_be(metric, settings):
            return None
        at, den = (
            np.array([self.place[id(part)] for part in _columns_of(metric)]),
            metric.sample.den,
        )
        n, totals = both(self.sums.n, arms), both(lambda arm: self.sums.total(arm)[at], arms)
        products = both(lambda arm: self.sums.central(arm)[np.ix_(at, at)], arms)
        largest = np.maximum(self.sums.high.max(axis=0), -self.sums.low.min(axis=0))[at] + np.abs(
            self.sums.centre[at]
        )
        spread = np.sqrt(np.array([np.diag(one) for one in products]) / np.array(n)[:, None])
        if (
            min(n) < _LEAST_USERS
            or not (largest < HUGE).all()
            or not (spread > _LOST**2 * largest).all()
        ):
            return None
        per_unit = (1.0, 1.0) if den is None else both(lambda n, total: total[1] / n, n, totals)
        means = both(lambda n, total: total[0] / (n if den is None else total[1]), n, totals)
        raw = found = both(
            _arm_in, n, means, products, both(lambda m: 0.0 if den is None else m, means), per_unit
        )
        slope, theta, centre = (
            0.0 if den is None else float(np.divide(*sum(totals))),
            NO_THETA,
            NO_THETA,
        )
        if den is not None and not self._denominators_count(den, n, totals, products):
            return None
        if den is None and len(at) == 2:
            x = both(lambda n, total: total[1] / n, n, totals)
            apart = (totals[1] / n[1] - totals[0] / n[0])[:, None]
            pooled = sum(products) + n[0] * n[1] / sum(n) * apart @ apart.T
            slope, centre = float(pooled[0, 1] / pooled[1, 1]), sum(totals)[1:] / sum(n)
            theta = np.array([slope])
            means = both(lambda m, x: m - slope * (x - centre[0]), means, x)
            found = both(_arm_in, n, means, products, (slope, slope), per_unit)
        if not all(one.var > 0 for one in (*raw, *found)):
            return None
        row = first_row(metric.name, settings, both(int, n), (0, 0), (), cap=metric.cap)
        both_arms = ArmsEstimate(
            raw, found, (NO_THETA, NO_THETA), theta, centre, "cuped" if len(theta) else ""
        )
        row, _ = compare_pair(row, both_arms, settings, (), den is None)
        if metric.ratio:
            dens = both(lambda n, m, c: _arm_in(n, m, c[1:, 1:]), n, per_unit, products)
            row = with_denominators(row, per_unit, dens)
        far = self._far(at, slope, float((sum(totals) @ [1.0, -slope][: len(at)]) / sum(n)))
        beyond = far.blocks.max() + abs(means[1] - means[0]) * (1 if den is None else largest[1])
        sd = np.sqrt(
            sum(one.var * n**2 * d**2 for one, n, d in zip(found, n, per_unit, strict=True))
            / sum(n)
        )
        if abs(imbalance(*n)) * beyond / sd >= SKEWED_SAMPLES:
            return None
        return self._without_top(row, far, arms, n, totals, den is not None)

    def _denominators_count(
        self, den: Floats, n: tuple[float, float], totals: Any, products: Any
    ) -> bool:
        """Whether most units have a denominator, and no few of them most of it."""
        carried = [
            t[1] ** 2 / (c[1, 1] + t[1] ** 2 / k)
            for k, t, c in zip(n, totals, products, strict=True)
        ]
        return bool(
            len(den) - np.count_nonzero(den) < MOSTLY * min(n) and min(carried) >= FEW_UNITS_CARRY
        )

    def _far(self, at: Codes, slope: float, centre: float) -> _Distances:
        """How far each block's values, less slope times those of another column, are from the mean
        of all, at most."""
        columns, starts = [self.columns[i - 1] for i in at], self.sums.rows

        def values(rows: Codes | slice) -> Floats:
            rows = rows if self.order is None else self.order[rows]
            others = 0.0 if len(at) < 2 else slope * columns[1][rows]
            return np.asarray(columns[0][rows] - others)

        def farthest(some: Codes) -> Floats:
            own, at = values(slice(some[0], some[-1] + self.step)), some - some[0]
            return np.maximum(
                np.maximum.reduceat(own, at) - centre, centre - np.minimum.reduceat(own, at)
            )

        if len(at) < 2:
            i, middle = at[0], self.sums.centre[at[0]]
            blocks = np.maximum(
                self.sums.high[:, i] + middle - centre, centre - self.sums.low[:, i] - middle
            )
        else:
            parts = np.array_split(starts, max(1, len(starts) // _TOGETHER))
            blocks = np.concatenate(each(farthest, parts))
        return _Distances(blocks, values, columns, slope, centre)

    def _without_top(
        self,
        row: Row,
        far: _Distances,
        arms: tuple[int, int],
        n: tuple[float, float],
        totals: Any,
        ratio: bool,
    ) -> Row | None:
        """The row with its difference without the top units; None where they may decide."""
        k, last = n_top(int(sum(n))), len(self.rows.variant)

        def of_blocks(blocks: Codes) -> tuple[Codes, Codes]:
            """The rows of both arms in some blocks."""
            rows = (self.sums.rows[blocks][:, None] + np.arange(self.step)).ravel()
            rows = rows[rows < last]
            variant = self.rows.variant[rows if self.order is None else self.order[rows]]
            return both(lambda arm: rows[variant == arm], arms)

        some = of_blocks(np.argsort(far.blocks)[-k:])
        distances = np.abs(np.concatenate(both(far.values, some)) - far.centre)
        least = np.partition(distances, -k)[-k] if len(distances) >= k else 0.0
        rows = of_blocks(np.flatnonzero(far.blocks >= least * (1 - 1e-9)))
        values = both(far.values, rows)
        tops = top_units(values, k, far.centre)
        sums = []
        for n_arm, total, own, value, (top, out) in zip(n, totals, rows, values, tops, strict=True):
            at = own[top] if self.order is None else self.order[own[top]]
            num, den = (far.columns[0][at], far.columns[1][at]) if ratio else (value[top], 1.0)
            mine = total if ratio else ([*total, 0.0][0] - far.slope * [*total, 0.0][1], n_arm)
            whole, part = np.reshape(mine, (2, 1)), np.zeros(len(top), np.int64)
            sums.append(ArmSums(whole[0], whole[1], num, den, out, part, np.ones(1)))
        moved = moved_by(*sums)
        if not abs(moved) < MOVED * row["se"]:
            return None
        return but(row, diff_without_top=row["diff"] + moved)


class _Distances(NamedTuple):
    """The largest distance of a value from `centre` in each block; `values` of rows are column 0 −
    slope · column 1."""

    blocks: Floats
    values: Callable[[Any], Floats]
    columns: list[Floats]
    slope: float
    centre: float


def _can_be(metric: MetricRows, settings: Settings) -> bool:
    """Whether a metric is a mean, with one covariate at most, or a ratio of sums, without nulls, by
    Welch's test."""
    covariates = list(metric.covariates.values())
    few = not covariates or (
        metric.sample.den is None and len(covariates) == 1 and covariates[0].den is None
    )
    return (
        few
        and settings.tests[metric.name] == "t"
        and settings.sequential_n is None
        and metric.defined is None
    )


def _columns_of(metric: MetricRows) -> list[Floats]:
    others = [metric.sample.den, *(one.num for one in metric.covariates.values())]
    return [metric.sample.num, *(one for one in others if one is not None)]


def _arm_in(
    n: float, mean: Any, products: Floats, slope: float = 0.0, per_unit: float = 1.0
) -> Arm:
    """An arm whose units are the first column less slope times the second; no variance where digits
    were lost."""
    w = np.array([1.0, -slope])[: len(products)]
    squares = w @ products @ w
    kept = squares > _LOST * (w**2 @ np.diag(products))
    return Arm(
        np.float64(mean),
        np.float64(squares / (n - 1) / n / per_unit**2 if kept else np.nan),
        np.float64(n - 1),
    )
