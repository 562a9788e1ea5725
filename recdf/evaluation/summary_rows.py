"""All rows of the summary: means over lists, metrics of exposure, and means within groups of items.

A metric within a group of items is that of the same lists, compared only with rows of `true` whose
items are in the group. `within` does not change the lists. It removes the rows of `true` whose
items are outside a group, so that a metric within the group is the metric of `pred` for the rest of
`true`; the population follows from it too. The groups are those of the whole catalogue, so that
their moments can be added over parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import ColumnError, OptionError
from ..inputs.frames import column
from ..inputs.options import Options
from ..inputs.sorting import run_of
from ..matching.counts import Counts
from ..matching.hits import Hits
from ..matching.lists import Matched
from ..metrics.call import Call
from ..metrics.compute import compute_counts, defined_values, settle_undefined
from ..metrics.record import Request
from .spec import Spec
from .value_moments import OF_WEIGHTS, SUMMARY, GroupMoments, mean_table, refuse_summary_names


@dataclass(frozen=True)
class ItemGroups:
    """Moments of accuracy metrics within each group, with the `labels` of the groups and the
    `columns` of the metrics.

    `counts` is the number of rows of `true` whose item is in no group.
    """

    labels: pd.Series
    columns: list[str]
    moments: list[GroupMoments]
    counts: Mapping[str, int]

    def __add__(self, other: ItemGroups) -> ItemGroups:
        moments = [one + two for one, two in zip(self.moments, other.moments, strict=True)]
        counts = {name: n + other.counts[name] for name, n in self.counts.items()}
        return ItemGroups(self.labels, self.columns, moments, counts)

    def column(self, position: np.ndarray) -> pd.Series:
        """Return the labels of groups at some positions, null for -1, in a dtype that keeps
        integers."""
        names = self.labels
        if pd.api.types.is_integer_dtype(names.dtype):
            names = names.astype("Int64")
        elif pd.api.types.is_bool_dtype(names.dtype):
            names = names.astype("boolean")
        return names.reindex(position).reset_index(drop=True)


def within(matched: Matched, keep: np.ndarray) -> Matched:
    """Return the same lists beside only those rows of `true` that are to be kept, by their
    places."""
    pool = matched.pool
    true_lists, rows, to = matched.true_lists.kept(keep)
    there = np.flatnonzero(keep[pool.true_place])
    place = to[pool.true_place[there]]
    left = Hits.of(pool.list[there], pool.rank[there], pool.gain[there], pool.place[there], place)
    return matched.beside(left, true_lists, rows)


def check_item_by(item_by: str, by: Iterable[str], items: pd.DataFrame | None = None) -> None:
    """Raise if the column of groups is missing in `items`, or would stand twice in the summary."""
    if items is not None:
        column(items, item_by, "items")
    if item_by in (*map(str, by), *SUMMARY):
        raise ColumnError(
            f"⟦item_by={item_by!r}⟧ is also a column of by or of the summary; rename it in items"
        )


def item_groups(
    matched: Matched, requests: Sequence[Request], options: Options, item_by: str
) -> ItemGroups:
    """Measure accuracy metrics within each group of items that the column `item_by` of the
    catalogue names."""
    check_item_by(item_by, matched.by.columns)
    accuracy = [one for one in requests if one.per == "list" and "true" in one.metric.needs]
    refused = [one for one in accuracy if "candidates" in one.metric.needs and options.judged_only]
    if refused:
        raise OptionError(
            f"{refused[0].columns[0]} within groups of items needs ⟦items=⟧, not judged_only"
        )
    labels = matched.sides.items.labels(item_by)
    moments = []
    for group in range(len(labels.names) if accuracy else 0):
        inside = np.zeros(matched.n_items, bool)
        inside[run_of(labels.length)[labels.code == group]] = True
        with within(matched, inside[matched.true_lists.item]) as part:
            population = population_within(matched, part, options)
            found = [
                (one, v) for one in accuracy for v in defined_values(part, one, options).values()
            ]
            undefined = [v[population] for _, v in found]
            values = [
                settle_undefined(v, one, options)
                for v, (one, _) in zip(undefined, found, strict=True)
            ]
            weight = None if part.weight is None else part.weight[population]
        list_by = matched.list_by[population]
        of_group = GroupMoments.of(values, list_by, len(matched.by), weight)
        moments.append(of_group.counting(undefined, list_by, weight))
    columns = [name for one in accuracy for name in one.columns]
    return ItemGroups(pd.Series(labels.names), columns, moments, without_group(matched, item_by))


def without_group(matched: Matched, item_by: str) -> dict[str, int]:
    """Return the number of rows of `true` whose item is in no group, also of a part that has rows
    and no lists."""
    labels = matched.sides.items.labels(item_by)
    return {
        f"true_without_{item_by}": int(
            np.count_nonzero(labels.length[matched.true_lists.item] == 0)
        )
    }


def population_within(matched: Matched, part: Matched, options: Options) -> np.ndarray:
    """Tell for each list whether it would be in the population if `true` had only the rows of
    `part`."""
    rule = options.population.rule
    if rule in ("given", "pred"):
        return np.ones(len(matched), bool)
    population: np.ndarray = part.at(None).n_judged > 0
    return population | (matched.n_pred > 0) if rule == "all" else population


STATISTICS = ["value", "std", "se", "ci_low", "ci_high"]


def summary_table(
    call: Call,
    by: pd.DataFrame,
    moments: GroupMoments | None,
    exposed: pd.DataFrame | None,
    groups: ItemGroups | None,
    spec: Spec,
) -> pd.DataFrame:
    """Return the rows of the summary, sorted by `by` value, then group (all items first), then in
    the metrics' order.

    `by` are labels of the `by` values. `moments` are those of all metrics of lists, and `exposed`
    are the rows of metrics of exposure; each is None where the call has no such metric.
    """
    number = {column: i for i, request in enumerate(call.requests) for column in request.columns}
    columns = call.columns
    if moments is not None and exposed is None and groups is None:
        return mean_table(by, columns, moments, spec)
    parts = []
    if moments is not None:
        parts.append(_placed(columns, moments, by, number, spec, -1))
    if exposed is not None and (len(exposed) or not parts):
        parts.append(exposed.assign(_group=-1))
    for group, of_group in enumerate(groups.moments if groups is not None else []):
        if of_group.rows.any():
            assert groups is not None
            parts.append(_placed(groups.columns, of_group, by, number, spec, group))
    refuse_summary_names(by.columns)
    table = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    # Sorting is stable: the outputs of one metric keep their order.
    table = table.sort_values(["_by", "_group", "_metric"], kind="stable", ignore_index=True)
    labels = by.take(table["_by"].to_numpy()).reset_index(drop=True)
    labelled = {str(name): labels.iloc[:, i] for i, name in enumerate(by.columns)}
    if groups is not None and call.item_by is not None:
        labelled[call.item_by] = groups.column(table["_group"].to_numpy())
    names = [*SUMMARY, *(name for name in OF_WEIGHTS if name in table)]
    return pd.DataFrame({**labelled, **{name: table[name] for name in names}})


def _placed(
    columns: Sequence[str],
    moments: GroupMoments,
    by: pd.DataFrame,
    number: dict[str, int],
    spec: Spec,
    group: int,
) -> pd.DataFrame:
    """Return means with the columns `_by` (position of the `by` value), `_metric` (of the request)
    and `_group`."""
    rows = mean_table(by, columns, moments, spec)
    rows["_by"] = np.repeat(np.arange(len(by)), len(columns))
    rows["_metric"] = np.tile([number[name] for name in columns], len(by))
    return rows.assign(_group=group)


def exposure_rows(
    counts: Callable[[int | None, int], Counts],
    n_lists: np.ndarray,
    requests: Sequence[Request],
    options: Options,
) -> pd.DataFrame | None:
    """Return summary rows of metrics of exposure, with `_by` (position of the `by` value) and
    `_metric`.

    `counts` returns the counts for a k and a `by` value, and `n_lists` is the number of lists of
    each `by` value. The result is None if the call has no metric of exposure.
    """
    if all(request.per == "list" for request in requests):
        return None
    rows: list[tuple[object, ...]] = []
    for number, request in enumerate(requests):
        if request.per != "item":
            continue
        name = request.name if request.own_column is None else request.own_column
        of_each = (counts(request.k, by) for by in range(len(n_lists)))
        for by, value in enumerate(compute_counts(of_each, request, options)):
            groups: dict[object, float] = value if isinstance(value, dict) else {None: value}
            for group, part in groups.items():
                named = name if group is None else f"{name}[{group}]"
                settled = settle_undefined(np.array(part), request, options)
                counted = float(settled) if n_lists[by] else np.nan
                n, undefined = (0 if np.isnan(one) else n_lists[by] for one in (counted, part))
                rows.append((by, number, named, request.k, counted, n, n_lists[by] - undefined))
    found = pd.DataFrame(
        rows, columns=["_by", "_metric", "metric", "k", "value", "n", "n_undefined"]
    )
    for name in STATISTICS[1:]:
        found[name] = np.nan
    return found.astype(
        {"k": "Int64", "n": "int64", "n_undefined": "int64", **dict.fromkeys(STATISTICS, "float64")}
    )
