"""Metrics within groups of items: the same lists, compared only with rows of `true` whose items are in one group.

Contract: `within` does not change the lists. It removes the rows of `true` whose items are outside a group, so that a
metric within the group is the metric of `pred` for the rest of `true`; the population follows from it too. The groups
are those of the whole catalogue, so that their moments can be added over parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import ColumnError, OptionError
from ..inputs.frames import column
from ..inputs.options import Options
from ..matching.hits import Hits
from ..matching.lists import Matched
from ..metrics.compute import defined_values, settle_undefined
from ..metrics.record import Request
from .summary import SUMMARY
from .value_moments import GroupMoments


@dataclass(frozen=True)
class ItemGroups:
    """Moments of accuracy metrics within each group, with the `labels` of the groups and the `columns` of the metrics.

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
        """Return the labels of groups at some positions, null for -1, in a dtype that keeps integers."""
        names = self.labels
        if pd.api.types.is_integer_dtype(names.dtype):
            names = names.astype("Int64")
        elif pd.api.types.is_bool_dtype(names.dtype):
            names = names.astype("boolean")
        return names.reindex(position).reset_index(drop=True)


def within(matched: Matched, inside: np.ndarray) -> Matched:
    """Return the same lists beside only those rows of `true` whose item is `inside` (bool per item code)."""
    judged = matched.judged
    true_lists, rows, to = matched.true_lists.within(inside)
    there = np.flatnonzero(inside[matched.true_lists.item][judged.true_place])
    place = to[judged.true_place[there]]
    hits = Hits.of(judged.list[there], judged.rank[there], judged.gain[there], judged.place[there], place)
    return matched.beside(hits, true_lists, rows)


def check_item_by(item_by: str, by: Iterable[str], items: pd.DataFrame | None = None) -> None:
    """Raise if the column of groups is missing in `items`, or would stand twice in the summary."""
    if items is not None:
        column(items, item_by, "items")
    if item_by in (*map(str, by), *SUMMARY):
        raise ColumnError(f"⟦item_by={item_by!r}⟧ is also a column of by or of the summary; rename it in items")


def item_groups(matched: Matched, requests: Sequence[Request], options: Options, item_by: str) -> ItemGroups:
    """Measure accuracy metrics within each group of items that the column `item_by` of the catalogue names."""
    check_item_by(item_by, matched.by.columns)
    accuracy = [one for one in requests if one.metric.per == "list" and "true" in one.metric.needs]
    refused = [one for one in accuracy if "candidates" in one.metric.needs and options.judged_only]
    if refused:
        raise OptionError(f"{refused[0].columns[0]} within groups of items needs ⟦items=⟧, not judged_only")
    labels = matched.sides.items.labels(item_by)
    moments = []
    for group in range(len(labels.names) if accuracy else 0):
        inside = np.zeros(matched.n_items, bool)
        inside[np.repeat(np.arange(matched.n_items), labels.length)[labels.code == group]] = True
        with within(matched, inside) as part:
            population = _population(matched, part, options)
            found = [(one, v) for one in accuracy for v in defined_values(part, one, options).values()]
            undefined = [v[population] for _, v in found]
            values = [settle_undefined(v, one, options) for v, (one, _) in zip(undefined, found, strict=True)]
            weight = None if part.weight is None else part.weight[population]
        list_by = matched.list_by[population]
        of_group = GroupMoments.of(values, list_by, len(matched.by), weight)
        moments.append(of_group.counting(undefined, list_by, weight))
    columns = [name for one in accuracy for name in one.columns]
    return ItemGroups(pd.Series(labels.names), columns, moments, without_group(matched, item_by))


def without_group(matched: Matched, item_by: str) -> dict[str, int]:
    """Return the number of rows of `true` whose item is in no group, also of a part that has rows and no lists."""
    labels = matched.sides.items.labels(item_by)
    return {f"true_without_{item_by}": int(np.count_nonzero(labels.length[matched.true_lists.item] == 0))}


def _population(matched: Matched, part: Matched, options: Options) -> np.ndarray:
    """Tell for each list whether it would be in the population if `true` had only the rows of the group."""
    rule = options.population.rule
    if rule in ("given", "pred"):
        return np.ones(len(matched), bool)
    population: np.ndarray = part.at(None).n_judged > 0
    return population | (matched.n_pred > 0) if rule == "all" else population
