"""The direction in which a metric is better, by the name of its column. Experiments know nothing
else of metrics."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import OptionError
from ..inputs.options import Options
from .metric import METRICS
from .record import Bounds, MetricDirection, Request
from .strings import read_string

# Sums over the recommended items: a list that was not shown adds 0 to them, although a larger sum
# is not always better.
_SUMS = frozenset({"hits", "dcg", "tp", "fp", "aclt", "shown", "clicked", "bought"})


class Direction(NamedTuple):
    """The direction and the bounds of a metric; each is None where the metric has none.

    `counts` says that the metric is a count or a sum over the recommended items, which is 0 for an
    empty list.
    """

    better: MetricDirection
    bounds: Bounds
    counts: bool


def request_of(text: str) -> Request | None:
    """Return the request of a metric string with all its parameters; None if it is none of a known
    metric."""
    try:
        found, params, _, at = read_string(text)
        return found.request(
            params, int(at) if at is not None and at.isdecimal() else None, Options()
        )
    except OptionError:
        return None


def direction_of(column: str) -> Direction | None:
    """Return the direction of the metric of a column such as "first_rank@10"; None if it is of no
    known metric."""
    name = re.split("[@(]", column)[0]
    metric = METRICS.get(name)
    if metric is None:
        named = (one for one in METRICS.values() if name in one.outputs or name in one.aliases)
        metric = next(named, None)
    if metric is None:
        return None
    bounds, better = metric.stated(column)
    return Direction(better, bounds, name in _SUMS)
