"""All rows of the summary: means over lists, metrics of exposure, and means within groups of items."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pandas as pd

from ..inputs.options import Options
from ..matching.counts import Counts
from ..metrics.compute import compute_counts, settle_undefined
from ..metrics.record import Request
from .item_groups import ItemGroups
from .spec import Spec
from .summary import OF_WEIGHTS, SUMMARY, mean_table, refuse_summary_names
from .value_moments import GroupMoments

STATISTICS = ["value", "std", "se", "ci_low", "ci_high"]


def summary_table(
    by: pd.DataFrame,
    requests: Sequence[Request],
    moments: GroupMoments | None,
    exposed: pd.DataFrame | None,
    groups: ItemGroups | None,
    item_by: str | None,
    spec: Spec,
) -> pd.DataFrame:
    """Return the rows of the summary, sorted by `by` value, then group (all items first), then in the metrics' order.

    `by` are labels of the `by` values. `moments` are those of all metrics of lists, and `exposed` are the rows of
    metrics of exposure; each is None where the call has no such metric.
    """
    number = {column: i for i, request in enumerate(requests) for column in request.columns}
    columns = [name for request in requests if request.metric.per == "list" for name in request.columns]
    if moments is not None and exposed is None and groups is None:
        return _mean_rows(columns, moments, by, spec)[0]
    parts = []
    if moments is not None:
        parts.append(_placed(columns, moments, by, number, spec, -1))
    if exposed is not None and (len(exposed) or not parts):
        parts.append(exposed.assign(_group=-1))
    for group, of_group in enumerate(groups.moments if groups is not None else []):
        if of_group.rows.any():
            assert groups is not None
            parts.append(_placed(groups.columns, of_group, by, number, spec, group))
    refuse_summary_names(by)
    table = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    # Sorting is stable: the outputs of one metric keep their order.
    table = table.sort_values(["_by", "_group", "_metric"], kind="stable", ignore_index=True)
    labels = by.take(table["_by"].to_numpy()).reset_index(drop=True)
    labelled = {str(name): labels.iloc[:, i] for i, name in enumerate(by.columns)}
    if groups is not None and item_by is not None:
        labelled[item_by] = groups.column(table["_group"].to_numpy())
    names = [*SUMMARY, *(name for name in OF_WEIGHTS if name in table)]
    return pd.DataFrame({**labelled, **{name: table[name] for name in names}})


def _mean_rows(
    columns: Collection[str], moments: GroupMoments, by: pd.DataFrame, spec: Spec
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the means over the lists of each `by` value that has lists, and the positions of these values."""
    present = np.flatnonzero(moments.rows)
    return mean_table(by.take(present), list(columns), moments.take(present), spec), present


def _placed(
    columns: Collection[str], moments: GroupMoments, by: pd.DataFrame, number: dict[str, int], spec: Spec, group: int
) -> pd.DataFrame:
    """Return means with the columns `_by` (position of the `by` value), `_metric` (of the request) and `_group`."""
    rows, present = _mean_rows(columns, moments, by, spec)
    rows["_by"] = np.repeat(present, len(columns))
    rows["_metric"] = np.tile([number[name] for name in columns], len(present))
    return rows.assign(_group=group)


def exposure_rows(
    counts: Callable[[int | None, int], Counts], n_lists: np.ndarray, requests: Sequence[Request], options: Options
) -> pd.DataFrame | None:
    """Return summary rows of metrics of exposure, with `_by` (position of the `by` value) and `_metric`.

    `counts` returns the counts for a k and a `by` value, and `n_lists` is the number of lists of each `by` value. The
    result is None if the call has no metric of exposure.
    """
    if all(request.metric.per == "list" for request in requests):
        return None
    rows: list[tuple[object, ...]] = []
    for number, request in enumerate(requests):
        if request.metric.per != "item":
            continue
        name = request.name if request.own_column is None else request.own_column
        of_each = (counts(request.k, by) for by in range(len(n_lists)))
        for by, value in enumerate(compute_counts(of_each, request, options)):
            if not n_lists[by]:
                continue
            groups: dict[object, float] = value if isinstance(value, dict) else {None: value}
            for group, part in groups.items():
                named = name if group is None else f"{name}[{group}]"
                counted = float(settle_undefined(np.array(part), request, options))
                n, undefined = (0 if np.isnan(one) else n_lists[by] for one in (counted, part))
                rows.append((by, number, named, request.k, counted, n, n_lists[by] - undefined))
    found = pd.DataFrame(rows, columns=["_by", "_metric", "metric", "k", "value", "n", "n_undefined"])
    for name in STATISTICS[1:]:
        found[name] = np.nan
    return found.astype({"k": "Int64", "n": "int64", "n_undefined": "int64", **dict.fromkeys(STATISTICS, "float64")})
