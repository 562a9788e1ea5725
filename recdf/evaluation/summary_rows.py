"""Rows of the summary that are no mean of a per-user column: metrics of exposure, metrics within groups of items.

Contract: `within` leaves the lists as they are and takes what is not in a group of items out of `true`, so that a
metric within a group is the metric of `pred` beside that part of `true`, population included.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ColumnError, OptionError
from ..inputs.options import Options
from ..matching.counts import Counts
from ..matching.hits import Hits
from ..matching.lists import Matched
from ..metrics.compute import compute, compute_counts
from ..metrics.record import Request
from .moments import Moments
from .summary import SUMMARY, mean_table

STATISTICS = ["value", "std", "se", "ci_low", "ci_high"]


def summary_table(
    columns: dict[str, np.ndarray],
    matched: Matched,
    requests: list[Request],
    options: Options,
    item_by: str | None,
    spec: dict[str, Any],
) -> pd.DataFrame:
    """All rows of the summary: by `by` value, then all items and each group of them, then metrics as asked for.

    `columns` are those of the metrics in the per-user table.
    """
    by = list(map(str, matched.by.columns))
    number = {column: i for i, request in enumerate(requests) for column in request.columns}
    if item_by is None and len(columns) == len(number):
        return _mean_rows(columns, Moments.of(columns.values(), matched.list_by, len(matched.by)), matched.by, spec)[0]
    parts = []
    labels = pd.Series([], dtype=object)
    if columns:
        moments = Moments.of(columns.values(), matched.list_by, len(matched.by))
        parts.append(_placed(columns, moments, matched.by, number, spec, -1))
    n_lists = np.bincount(matched.list_by, minlength=len(matched.by))
    exposed = exposure_rows(lambda k, by: Counts(matched.at(k), by), n_lists, requests, options)
    if len(exposed) or not columns:
        parts.append(exposed.assign(_group=-1))
    if item_by is not None:
        if item_by in (*by, *SUMMARY):
            raise ColumnError(f"item_by={item_by!r} is also a column of by or of the summary; rename it in items")
        labels, groups = item_groups(matched, requests, options, item_by)
        for group, (population, values) in enumerate(groups):
            if values and population.any():
                moments = Moments.of(values.values(), matched.list_by[population], len(matched.by))
                parts.append(_placed(values, moments, matched.by, number, spec, group))
    table, labelled = in_order(parts, matched.by)
    if item_by is not None:
        labelled[item_by] = group_column(labels, table["_group"].to_numpy())
    return pd.DataFrame({**labelled, **{name: table[name] for name in SUMMARY}})


def merged_table(
    by: pd.DataFrame,
    n_lists: np.ndarray,
    requests: Sequence[Request],
    moments: Moments | None,
    counts: Callable[[int | None, int], Counts] | None,
    options: Options,
    spec: dict[str, Any],
) -> pd.DataFrame:
    """The summary of lists that were measured in parts, by their moments and counts (None: no such metric)."""
    number = {column: i for i, one in enumerate(requests) if one.metric.per == "list" for column in one.columns}
    parts = []
    if moments is not None:
        parts.append(_placed(number, moments, by, number, spec, -1))
    if counts is not None:
        parts.append(exposure_rows(counts, n_lists, requests, options).assign(_group=-1))
    table, columns = in_order(parts, by)
    return pd.DataFrame({**columns, **{name: table[name] for name in SUMMARY}})


def in_order(parts: Sequence[pd.DataFrame], by: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, pd.Series]]:
    """Rows of all parts by `_by` (position in `by`), `_group` and `_metric`, and their `by` columns."""
    table = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    # Sorting is stable: the outputs of one metric keep their order.
    table = table.sort_values(["_by", "_group", "_metric"], kind="stable", ignore_index=True)
    value = by.take(table["_by"].to_numpy()).reset_index(drop=True)
    return table, {str(name): value.iloc[:, i] for i, name in enumerate(by.columns)}


def _mean_rows(
    columns: Collection[str], moments: Moments, by: pd.DataFrame, spec: dict[str, Any]
) -> tuple[pd.DataFrame, np.ndarray]:
    """Means over the lists of each `by` value that has some, and the positions of these values."""
    present = np.flatnonzero(moments.rows)
    return mean_table(by.take(present), list(columns), moments.take(present), spec), present


def _placed(
    columns: Collection[str],
    moments: Moments,
    by: pd.DataFrame,
    number: dict[str, int],
    spec: dict[str, Any],
    group: int,
) -> pd.DataFrame:
    """Means with `_by` (position of the `by` value), `_metric` (of the request) and `_group`."""
    rows, present = _mean_rows(columns, moments, by, spec)
    rows["_by"] = np.repeat(present, len(columns))
    rows["_metric"] = np.tile([number[name] for name in columns], len(present))
    return rows.assign(_group=group)


def within(matched: Matched, inside: np.ndarray) -> Matched:
    """The same lists beside what `true` says of some items (bool per item code)."""
    judged = matched.judged
    true_lists, rows, to = matched.true_lists.within(inside)
    there = np.flatnonzero(inside[matched.true_lists.item][judged.true_place])
    place = to[judged.true_place[there]]
    hits = Hits.of(judged.list[there], judged.rank[there], judged.gain[there], judged.place[there], place)
    return matched.beside(hits, true_lists, rows)


def exposure_rows(
    counts: Callable[[int | None, int], Counts], n_lists: np.ndarray, requests: Sequence[Request], options: Options
) -> pd.DataFrame:
    """Summary rows of metrics of exposure, with `_by` (position of the `by` value) and `_metric` (of the request).

    `counts` gives those of a k and a `by` value, `n_lists` are the lists of each `by` value.
    """
    rows: list[tuple[Any, ...]] = []
    for number, request in enumerate(requests):
        if request.metric.per != "item":
            continue
        name = request.name if request.own_column is None else request.own_column
        of_each = (counts(request.k, by) for by in range(len(n_lists)))
        for by, value in enumerate(compute_counts(of_each, request, options)):
            if not n_lists[by]:
                continue
            for group, part in (value if isinstance(value, dict) else {None: value}).items():
                named = name if group is None else f"{name}[{group}]"
                undefined = n_lists[by] if np.isnan(part) else 0
                rows.append((by, number, named, request.k, part, n_lists[by] - undefined, undefined))
    found = pd.DataFrame(rows, columns=["_by", "_metric", "metric", "k", "value", "n", "n_undefined"])
    for name in STATISTICS[1:]:
        found[name] = np.nan
    return found.astype({"k": "Int64", "n": "int64", "n_undefined": "int64", **dict.fromkeys(STATISTICS, "float64")})


def item_groups(
    matched: Matched, requests: Sequence[Request], options: Options, item_by: str
) -> tuple[pd.Series, list[tuple[np.ndarray, dict[str, np.ndarray]]]]:
    """Labels of the groups and, for each, the lists of its population and the metrics' values for them."""
    accuracy = [one for one in requests if one.metric.per == "list" and "true" in one.metric.needs]
    refused = [one for one in accuracy if "candidates" in one.metric.needs and options.judged_only]
    if refused:
        raise OptionError(f"{refused[0].columns[0]} within groups of items needs items=, not judged_only")
    labels = matched.sides.catalogue.labels(item_by)
    matched.counts[f"true_without_{item_by}"] = int(np.count_nonzero(labels.length[matched.true_lists.item] == 0))
    parts = []
    for group in range(len(labels.names)):
        inside = np.zeros(matched.n_items, bool)
        inside[np.repeat(np.arange(matched.n_items), labels.length)[labels.code == group]] = True
        part = within(matched, inside)
        # As if the group were all of `true`: a list that is there for its truth in another group is not there.
        population = np.ones(len(matched), bool)
        if isinstance(options.users, str) and options.users != "pred":
            population = part.at(None).n_judged > 0
            if options.users == "all":
                population |= matched.n_pred > 0
        values = {name: v[population] for one in accuracy for name, v in compute(part, one, options).items()}
        parts.append((population, values))
    return pd.Series(labels.names), parts


def group_column(names: pd.Series, position: np.ndarray) -> pd.Series:
    """Labels of groups by position, null at -1, in a dtype that keeps integers."""
    if pd.api.types.is_integer_dtype(names.dtype):
        names = names.astype("Int64")
    elif pd.api.types.is_bool_dtype(names.dtype):
        names = names.astype("boolean")
    return names.reindex(position).reset_index(drop=True)
