"""Between which values a metric lies: as its definition, its values or a caller says.

Contract: differences of models need both bounds, so that `bounds_of` gives none where one of them
is not known. The mean of an arm needs each alone, and `MetricKind.bounds` gives NaN for an unknown
one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import DataError
from ..judge.choices import AnySpec
from ..judge.per_user_columns import Floats, MetricColumns, mean_of, metric_values
from ..metrics.strings import direction_of

MetricBounds = tuple[float, float]
DeclaredBounds = Mapping[str, MetricBounds]


def defined_bounds(definition: str) -> MetricBounds | None:
    """Return the bounds of the metric of a definition or of a column's name, if it has both."""
    found = MetricKind(mean=definition).bounds(np.empty(0))
    return None if np.isnan(found).any() else found


def seen_bounds(*values: Floats) -> MetricBounds:
    """Return the smallest and the largest of the values."""
    low, high = (
        end.reduce([end.reduce(one, axis=None, initial=np.nan) for one in values], initial=np.nan)
        for end in (np.fmin, np.fmax)
    )
    return (0.0, 0.0) if np.isnan(low) else (float(low), float(high))


def rounding_of(*values: Floats) -> float:
    """Return how far apart equal values may be by rounding alone: some units in the last place of
    the largest, or a small part of their range, which sums of many parts need."""
    low, high = seen_bounds(*values)
    return max(1e-12 * (high - low), 2.0**-48 * max(-low, high))


def within_bounds(bounds: MetricBounds, values: Any) -> bool:
    """Whether no value is outside by more than rounding: the value of a perfect list, or the mean
    of ones, may be a little above 1."""
    low, high = bounds
    there = np.asarray(values)
    return not ((there < low - 1e-12) | (there > high + 1e-12)).any()


def bounds_of(
    metric: str,
    declared: DeclaredBounds,
    *values: Floats,
    definition: str | None = None,
) -> MetricBounds | None:
    """Return the bounds of a metric with these values; None where nothing tells them.

    A value outside of declared bounds raises. A column of another kind may have the name of a
    metric, so that a value outside of its bounds only says that they are not those of the column.
    """
    found = declared.get(metric) or defined_bounds(definition or metric)
    low, high = seen = seen_bounds(*values)
    if found is None or within_bounds(found, seen):
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
    spec: AnySpec, per_user: pd.DataFrame, metrics: Collection[str]
) -> dict[str, MetricBounds]:
    """Return the bounds of metrics that a caller has declared, and of those whose columns the
    caller has named, as their definitions say."""
    found = {}
    for name in metrics:
        bounds = spec.get("bounds", {}).get(name)
        definition = spec["metrics"].get(name, {}).get("definition")
        if not bounds and definition and not defined_bounds(name):
            bounds = defined_bounds(definition)
            if bounds and not within_bounds(bounds, metric_values(per_user, "per_user", name)):
                continue
        if bounds:
            found[name] = bounds
    return found


def of_difference(bounds: MetricBounds) -> MetricBounds:
    """Return the bounds of the difference of two values of a metric."""
    return bounds[0] - bounds[1], bounds[1] - bounds[0]


class MetricKind(NamedTuple):
    """What the columns of a metric tell: the two of a `ratio`, or the column whose `mean` it is. Of
    a plain mean also the smallest and the largest value that was seen (NaN if not known), whether
    it is a `share`: all values are 0 or 1, and the `cap` that larger values count as."""

    ratio: tuple[str, str] | None = None
    mean: str = ""
    seen: MetricBounds = (np.nan, np.nan)
    share: bool = False
    cap: float = np.nan

    @classmethod
    def of(
        cls, columns: MetricColumns, seen: MetricBounds = (np.nan, np.nan), share: bool = False
    ) -> MetricKind:
        num, den = columns
        return cls(None, num, seen, share) if den is None else cls((num, den), mean_of(columns))

    @classmethod
    def of_extremes(
        cls, columns: MetricColumns, extremes: Mapping[str, Sequence[float]]
    ) -> MetricKind:
        """The same by the `judge.in_parts.extremes_of` the numerator."""
        low, high, odd = extremes[columns[0]]
        return cls.of(columns, (-low, high), not odd)

    def of_values(self, values: Floats) -> MetricKind:
        """The same of a plain mean of these values; null is what is not known."""
        low, high = seen_bounds(values)
        # The first values show of most metrics that they are no shares.
        odd = (((one > 0) & (one < 1)).any() for one in (values[:1000], values))
        return self._replace(seen=(low, high), share=low >= 0 and high <= 1 and not any(odd))

    def bounds(
        self, means: Floats, metric: str = "", declared: DeclaredBounds | None = None
    ) -> MetricBounds:
        """Return the bounds of the metric, which has these means; NaN where nothing tells one.

        Bounds are those that a caller has declared, those of the definition, and 0 and 1 of zeros
        and ones; none is above the cap. A column of another kind may have the name of a metric: a
        value or mean outside says that they are not its bounds.
        """
        if declared and metric in declared:
            bounds_of(metric, declared, means, np.array(self.seen))  # refuses values outside
            low, high = declared[metric]
        else:
            known = direction_of(self.mean)
            found = (0.0, 1.0) if self.share else known.bounds if known else (None, None)
            low, high = (np.nan if one is None else one for one in found)
            if not within_bounds((low, high), np.append(means, self.seen)):
                low = high = np.nan
        return low, float(np.fmin(high, self.cap))


UNKNOWN_KIND = MetricKind()
