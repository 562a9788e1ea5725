"""In which direction a metric is better, read from the name of its column: all that experiments know of metrics."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import OptionError
from .metric import find
from .record import Better, Bounds


class Direction(NamedTuple):
    """`better` is None where neither direction is, a bound is None where the metric has none."""

    better: Better
    bounds: Bounds


def direction_of(column: str) -> Direction | None:
    """Direction of the registered metric that a column such as "first_rank@10" is of; None for other columns."""
    try:
        metric = find(re.split("[@(]", column)[0])
    except OptionError:
        return None
    return Direction(metric.better, metric.bounds)
