"""Between which values a metric lies: as its definition says, or as a caller declares it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError
from ..judge.per_user_columns import metric_values
from ..metrics.strings import direction_of
from ..stats.numbers import Floats

MetricBounds = tuple[float, float]


def declared_bounds(bounds: Any, metrics: Collection[str]) -> dict[str, MetricBounds]:
    """Return what `bounds=` says of the metrics; a wrong name or pair raises."""
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping):
        raise OptionError(
            f'⟦bounds={bounds!r}⟧ is no mapping; expected such as {{"latency": (0, 30)}}'
        )
    found = {}
    for name, pair in bounds.items():
        if name not in metrics:
            raise OptionError(f"bounds names {name!r}; metrics are {list(metrics)}")
        try:
            low, high = map(float, pair)
        except (TypeError, ValueError):
            low = high = math.nan
        if not (low < high and math.isfinite(high - low)):
            raise OptionError(
                f"bounds[{name!r}] is {pair!r}; expected two finite numbers, the smaller first"
            )
        found[name] = low, high
    return found


def defined_bounds(definition: str) -> MetricBounds | None:
    """Return the bounds of the metric of a definition or of a column's name, if it has both."""
    known = direction_of(definition)
    if known is None or None in known.bounds:
        return None
    low, high = known.bounds
    return float(low or 0), float(high or 0)


def seen_bounds(*values: Floats) -> MetricBounds:
    """Return the smallest and the largest of the values."""
    there = [one for one in values if not np.isnan(one).all()]
    if not there:
        return 0.0, 0.0
    return min(float(np.nanmin(one)) for one in there), max(float(np.nanmax(one)) for one in there)


def bounds_of(
    metric: str,
    declared: Mapping[str, MetricBounds],
    *values: Floats,
    definition: str | None = None,
) -> MetricBounds | None:
    """Return the bounds of a metric with these values; None where nothing tells them.

    A value outside of declared bounds raises. A column of another kind may have the name of a
    metric, so that a value outside of its bounds only says that they are not those of the column.
    """
    found = declared.get(metric) or defined_bounds(definition or metric)
    low, high = seen_bounds(*values)
    if found is None or found[0] <= low <= high <= found[1]:
        return found
    if metric not in declared:
        return None
    raise DataError(
        f"{metric!r} has values from {low:g} to {high:g}, outside of ⟦bounds=⟧ {found}; declare "
        "bounds that hold",
        argument="bounds",
        value=found,
    )


def bounds_of_result(
    spec: Mapping[str, Any], per_user: pd.DataFrame, metrics: Collection[str]
) -> dict[str, MetricBounds]:
    """Return the bounds of metrics that a caller has declared, and of those whose columns the
    caller has named, as their definitions say."""
    declared = spec.get("bounds", {})
    found: dict[str, MetricBounds] = {one: declared[one] for one in metrics if one in declared}
    for name in [one for one in metrics if one not in found]:
        definition = spec["metrics"].get(name, {}).get("definition")
        if definition and defined_bounds(name) is None and defined_bounds(definition):
            bounds = bounds_of(
                name, {}, metric_values(per_user, "per_user", name), definition=definition
            )
            found |= {} if bounds is None else {name: bounds}
    return found


def of_difference(bounds: MetricBounds) -> MetricBounds:
    """Return the bounds of the difference of two values of a metric."""
    return bounds[0] - bounds[1], bounds[1] - bounds[0]
