"""In which direction a metric is better, read from the name of its column: all that experiments know of metrics."""

from __future__ import annotations

import re
from typing import NamedTuple

from .metric import METRICS
from .record import Better, Bounds

# Sums over the recommended items: a list that was not shown adds 0 to them, although more of them is not always better.
_SUMS = frozenset({"hits", "dcg", "tp", "fp", "aclt", "shown", "clicked", "bought"})


class Direction(NamedTuple):
    """`better` is None where neither direction is, a bound is None where the metric has none.

    `counts` says that the metric is a count or a sum over the recommended items, which is 0 for an empty list.
    """

    better: Better
    bounds: Bounds
    counts: bool


def direction_of(column: str) -> Direction | None:
    """Direction of the registered metric that a column such as "first_rank@10" is of; None for other columns."""
    name = re.split("[@(]", column)[0]
    metric = METRICS.get(name)
    if metric is None:
        named = (one for one in METRICS.values() if name in one.outputs or name in one.aliases)
        metric = next(named, None)
    if metric is None:
        return None
    return Direction(metric.better, metric.bounds, name in _SUMS)
