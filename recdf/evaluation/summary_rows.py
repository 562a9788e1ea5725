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
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray
from pandas import DataFrame, Series

from ..errors import ColumnError, OptionError
from ..inputs.codes import encode
from ..inputs.frames import column, without_dictionary
from ..inputs.ids import read_ids
from ..inputs.options import Options
from ..inputs.sorting import flags_at, last_places, run_of
from ..inputs.true_and_pred import added
from ..matching.counts import Counts, ListCounts, Over, Sum
from ..matching.hits import Hits
from ..matching.lists import Matched
from ..matching.side_tables.sides import IN_LISTS, Sides, read_sides
from ..metrics.call import Call
from ..metrics.compute import compute_counts, defined_values, naming, settle_undefined
from ..metrics.record import Request
from .spec import Spec
from .value_moments import OF_WEIGHTS, SUMMARY, GroupMoments, mean_table, refuse_summary_names


@dataclass(frozen=True)
class ItemGroups:
    """Moments of accuracy metrics within each group, with the `labels` of the groups and the
    `columns` of the metrics.

    `counts` is the number of rows of `true` whose item is in no group.
    """

    labels: Series
    columns: list[str]
    moments: list[GroupMoments]
    counts: Mapping[str, int]

    def __add__(self, other: ItemGroups) -> ItemGroups:
        moments = [one + two for one, two in zip(self.moments, other.moments, strict=True)]
        return ItemGroups(self.labels, self.columns, moments, added(self.counts, other.counts))

    def column(self, position: ndarray) -> Series:
        """Return the labels of groups at some positions, null for -1, in a dtype that keeps
        integers."""
        names = self.labels
        if pd.api.types.is_integer_dtype(names.dtype):
            names = names.astype("Int64")
        elif pd.api.types.is_bool_dtype(names.dtype):
            names = names.astype("boolean")
        return names.reindex(position).reset_index(drop=True)


def within(matched: Matched, keep: ndarray) -> Matched:
    """Return the same lists beside only those rows of `true` that are to be kept, by their
    places."""
    pool = matched.pool
    true_lists, rows, to = matched.true_lists.kept(keep)
    there = np.flatnonzero(keep[pool.true_place])
    place = to[pool.true_place[there]]
    left = Hits.of(pool.list[there], pool.rank[there], pool.gain[there], pool.place[there], place)
    return matched.beside(left, true_lists, rows)


def check_item_by(item_by: str, by: Iterable[str], items: DataFrame | None = None) -> None:
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
        inside = flags_at(run_of(labels.length)[labels.code == group], matched.n_items)
        undefined = []
        values = []
        with within(matched, inside[matched.true_lists.item]) as part:
            population = population_within(matched, part, options)
            for one in accuracy:
                for found in defined_values(part, one, options).values():
                    undefined.append(found[population])
                    values.append(settle_undefined(undefined[-1], one, options))
            weight = None if part.weight is None else part.weight[population]
        of_lists = matched.list_by[population], len(matched.by), weight, undefined
        moments.append(GroupMoments.of(values, *of_lists))
    columns = [name for one in accuracy for name in one.columns]
    return ItemGroups(Series(labels.names), columns, moments, without_group(matched, item_by))


def without_group(matched: Matched, item_by: str) -> dict[str, int]:
    """Return the number of rows of `true` whose item is in no group, also of a part that has rows
    and no lists."""
    length = matched.sides.items.labels(item_by).length[matched.true_lists.item]
    return {f"true_without_{item_by}": int(np.count_nonzero(length == 0))}


def population_within(matched: Matched, part: Matched, options: Options) -> ndarray:
    """Tell for each list whether it would be in the population if `true` had only the rows of
    `part`."""
    rule = options.population.rule
    if rule in ("given", "pred"):
        return np.ones(len(matched), bool)
    population = part.at(None).n_judged > 0
    return population | (matched.n_pred > 0) if rule == "all" else population


STATISTICS = ["value", "std", "se", "ci_low", "ci_high"]


def summary_table(
    call: Call,
    by: DataFrame,
    moments: GroupMoments | None,
    exposed: DataFrame | None,
    groups: ItemGroups | None,
    spec: Spec,
) -> DataFrame:
    """Return the rows of the summary, sorted by `by` value, then group (all items first), then in
    the metrics' order.

    `by` are labels of the `by` values. `moments` are those of all metrics of lists, and `exposed`
    are the rows of metrics of exposure; each is None where the call has no such metric.
    """
    if moments is not None and exposed is None and groups is None:
        return mean_table(by, call.columns, moments, spec)
    number = {column: i for i, request in enumerate(call.requests) for column in request.columns}
    means = [] if moments is None else [(-1, call.columns, moments)]
    if groups is not None:
        filled = [(i, one) for i, one in enumerate(groups.moments) if one.rows.any()]
        means += [(group, groups.columns, one) for group, one in filled]
    parts = []
    for group, columns, one in means:
        rows = mean_table(by, columns, one, spec)
        rows["_by"] = np.repeat(np.arange(len(by)), len(columns))
        rows["_metric"] = np.tile([number[name] for name in columns], len(by))
        parts.append(rows.assign(_group=group))
    if exposed is not None and (len(exposed) or moments is None):
        parts.append(exposed.assign(_group=-1))
    refuse_summary_names(by.columns)
    table = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    # Sorting is stable: the outputs of one metric keep their order.
    table = table.sort_values(["_by", "_group", "_metric"], kind="stable", ignore_index=True)
    labels = by.take(table["_by"].to_numpy()).reset_index(drop=True)
    labelled = {str(name): labels.iloc[:, i] for i, name in enumerate(by.columns)}
    if groups is not None and call.item_by is not None:
        labelled[call.item_by] = groups.column(table["_group"].to_numpy())
    names = [*SUMMARY, *(name for name in OF_WEIGHTS if name in table)]
    return DataFrame({**labelled, **{name: table[name] for name in names}})


def exposure_rows(
    counts: Callable[[int | None, int], Counts],
    n_lists: ndarray,
    requests: Sequence[Request],
    options: Options,
) -> DataFrame | None:
    """Return summary rows of metrics of exposure, with `_by` (position of the `by` value) and
    `_metric`.

    `counts` returns the counts for a k and a `by` value, and `n_lists` is the number of lists of
    each `by` value. The result is None if the call has no metric of exposure.
    """
    if all(request.per == "list" for request in requests):
        return None
    whole = {"_by": "int64", "_metric": "int64", "n": "int64", "n_undefined": "int64"}
    rows = []
    for number, request in enumerate(requests):
        if request.per != "item":
            continue
        name = request.name if request.own_column is None else request.own_column
        of_each = (counts(request.k, by) for by in range(len(n_lists)))
        for by, value in enumerate(compute_counts(of_each, request, options)):
            groups: dict[object, float] = value if isinstance(value, dict) else {None: value}
            for group, part in groups.items():
                settled = settle_undefined(np.array(part), request, options)
                counted = float(settled) if n_lists[by] else np.nan
                named = name if group is None else f"{name}[{group}]"
                row = {"_by": by, "_metric": number, "metric": named, "k": request.k}
                row |= {"value": counted, "n": 0 if np.isnan(counted) else n_lists[by]}
                rows.append(row | {"n_undefined": n_lists[by] if np.isnan(part) else 0})
    found = DataFrame(rows, columns=["_by", "_metric", *SUMMARY])
    return found.astype({"k": "Int64", **whole, **dict.fromkeys(STATISTICS, "float64")})


# -------------------------------------------------------------------------------------------
# Metrics of exposure over parts: the counts of the parts are added item by item. Item codes differ
# between parts. So sums are stored by the labels of `pred` and of `true`, or by the rows of the
# log. At the end each metric is computed once, from the sums.

Role = Literal["true", "pred"]


def common_type(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return a type that can hold the values of several columns, or None if there is none."""
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    schemas = [pa.schema([("key", wide.get(kind, kind))]) for kind in kinds]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowException, TypeError):
        return None


def label_array(series: Series) -> pa.Array:
    """Return labels as Arrow values, without dictionaries and with -0.0 as 0.0."""
    array = pa.Array.from_pandas(series)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if isinstance(
        array.type, pa.BaseExtensionType
    ):  # UUIDs and periods: Arrow compares only what they are stored as
        array = array.storage
    array = without_dictionary(array)
    return pc.add(array, 0.0) if pa.types.is_floating(array.type) else array


class SumKey(NamedTuple):
    """The lists that a sum is over (the cut-off k, and the position of their `by` value), and the
    name of the sum."""

    k: int | None
    by: int
    name: str


@dataclass(frozen=True)
class ExposureSums:
    """Sums over lists of some parts, for the metrics of exposure.

    labels : distinct items of each frame · over : the items that each sum is about · sums : arrays
    with one number per label of `pred` or `true`, or per row of the log; a sum about lists counts
    as filled up with zeros.
    """

    labels: Mapping[Role, pa.Array]
    over: Mapping[str, Over]
    sums: Mapping[SumKey, ndarray]

    def __add__(self, other: ExposureSums) -> ExposureSums:
        labels: dict[Role, pa.Array] = {}
        places: dict[str, tuple[ndarray, ndarray]] = {}
        for role in self.labels:  # distinct values of both, in order of first appearance
            one = self.labels[role]
            two = other.labels[role]
            same = one.type == two.type
            kind = one.type if same else common_type([one.type, two.type]) or one.type
            both = pa.concat_arrays([one.cast(kind), two.cast(kind)]).dictionary_encode()
            at = both.indices.to_numpy()
            labels[role], places[role] = both.dictionary, (at[: len(one)], at[len(one) :])
        over = {**self.over, **other.over}
        sums: dict[SumKey, ndarray] = {}
        for key in dict.fromkeys([*self.sums, *other.sums]):
            about: Any = over[key.name]
            given = [(i, one.sums[key]) for i, one in enumerate((self, other)) if key in one.sums]
            length = max(len(values) for _, values in given)
            length = len(labels[about]) if about in places else length
            total = np.zeros(length, np.result_type(*(values for _, values in given)))
            for i, values in given:
                total[places[about][i] if about in places else slice(len(values))] += values
            sums[key] = total
        return ExposureSums(labels, over, sums)


def exposure_sums(
    matched: Matched, requests: Sequence[Request], true_item: Series, pred_item: Series
) -> ExposureSums:
    """Count the sums that some metrics of exposure name; the item columns of both frames give the
    labels."""
    true = matched.true_lists
    codes = {
        "pred": distinct_items(matched.item, matched.n_items),
        "true": distinct_items(true.item, matched.n_items),
    }
    labels: dict[Role, pa.Array] = {
        "true": label_array(true_item.take(true.rows(codes["true"][1]))),
        "pred": label_array(pred_item.take(matched.rows(codes["pred"][1]))),
    }
    over: dict[str, Over] = {}
    sums: dict[SumKey, ndarray] = {}
    needed_at: dict[int | None, dict[str, tuple[Sum, Request]]] = {}  # by k, each once
    for request in requests:
        for one in request.sums:
            needed_at.setdefault(request.k, {}).setdefault(one.name, (one, request))
    for k, needed in needed_at.items():
        for by in range(len(matched.by)):
            counts = ListCounts(matched.at(k), by)
            for one, request in needed.values():
                with naming(request):
                    values = counts.summed(*one)
                # A sum for each group of users is one sum per group, since other parts may have
                # other groups.
                parts = values if isinstance(values, dict) else {None: values}
                for group, part in parts.items():
                    name = one.name if group is None else f"{one.name}:{group}"
                    over[name] = one.over
                    if one.over == "log":
                        part = part[matched.sides.log.item]
                    elif one.over != "lists":
                        part = part[codes[one.over][0]]
                    sums[SumKey(k, by, name)] = part
    return ExposureSums(labels, over, sums)


def distinct_items(item: ndarray, n_items: int) -> tuple[ndarray, ndarray]:
    """Return the distinct item codes, and one place of each."""
    place = last_places(item, n_items)
    codes = np.flatnonzero(place >= 0)
    return codes, place[codes]


def counts_of(
    sums: ExposureSums, options: Options, given: Mapping[str, Any]
) -> Callable[[int | None, int], Counts]:
    """Return the counts of all parts by k and `by` value; labels are coded together with the side
    tables' items."""
    # No metric of exposure reads a baseline, or what was left out of the lists.
    checked = read_sides({name: given[name] for name in given if name not in IN_LISTS}, options)
    ids = {}
    for role, labels in sums.labels.items():
        values = Series(labels, dtype=pd.ArrowDtype(labels.type))
        ids[str(role)] = read_ids(values, f"{role}[{options.item_col!r}]")
    items = encode([*ids.values(), *checked.item_ids.values()])
    coded = [column.all() for column in items.columns]
    side_codes = dict(zip(checked.item_ids, coded[len(ids) :], strict=True))
    sides = Sides(checked, side_codes, items, None, None)
    code = {**dict(zip(ids, coded, strict=False)), "log": side_codes.get("log")}

    def counts(k: int | None, by: int) -> Counts:
        found = {}
        for key, values in sums.sums.items():
            if key[:2] != (k, by):
                continue
            found[key.name] = values
            if (at := code.get(sums.over[key.name])) is not None:
                found[key.name] = np.zeros(items.n, values.dtype)
                found[key.name][at] = values
        return Counts(np.iinfo(np.int64).max if k is None else k, sides, items.n, found)

    return counts
