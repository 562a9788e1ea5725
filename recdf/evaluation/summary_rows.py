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
from typing import Any

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
from ..matching.counts import Counts, ListCounts
from ..matching.hits import Hits
from ..matching.list_keys import labels_at
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
    `columns` of the metrics."""

    labels: Series
    columns: list[str]
    moments: list[GroupMoments]

    def __add__(self, other: ItemGroups) -> ItemGroups:
        moments = [one + two for one, two in zip(self.moments, other.moments, strict=True)]
        return ItemGroups(self.labels, self.columns, moments)

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
    return ItemGroups(Series(labels.names), columns, moments)


def without_group(matched: Matched, item_by: str) -> dict[str, int]:
    """Return the number of rows of `true` whose item is in no group, also of a part that has rows
    and no lists."""
    length = matched.sides.items.labels(item_by).length[matched.true_lists.item]
    return {f"true_without_{item_by}": int(np.count_nonzero(length == 0))}


def population_within(matched: Matched, part: Matched, options: Options) -> ndarray:
    """Tell for each list whether it would be in the population if `true` had only the rows of
    `part`."""
    rule = options.population.rule
    counts = (matched.n_pred > 0) & (rule == "all") | (rule in ("given", "pred"))
    return counts | (part.at(None).n_judged > 0)


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
        place = np.repeat(np.arange(len(by)), len(columns))
        numbers = [number[name] for name in columns] * len(by)
        rows = mean_table(by, columns, one, spec)
        parts.append(rows.assign(_by=place, _metric=numbers, _group=group))
    if exposed is not None and (len(exposed) or moments is None):
        parts.append(exposed.assign(_group=-1))
    refuse_summary_names(by.columns)
    table = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    # Sorting is stable: the outputs of one metric keep their order.
    table = table.sort_values(["_by", "_group", "_metric"], kind="stable", ignore_index=True)
    labelled = {
        str(name): one
        for name, one in labels_at(by, [*by.columns], table["_by"].to_numpy()).items()
    }
    if groups is not None and call.item_by is not None:
        labelled[call.item_by] = groups.column(table["_group"].to_numpy())
    names = [*SUMMARY, *(name for name in OF_WEIGHTS if name in table)]
    return DataFrame({**labelled, **{name: table[name] for name in names}})


def exposure_rows(
    counts: Callable[[Request, int], Counts],
    n_lists: ndarray,
    requests: Sequence[Request],
    options: Options,
) -> DataFrame | None:
    """Return summary rows of metrics of exposure, with `_by` (position of the `by` value) and
    `_metric`.

    `counts` returns the counts for a request and a `by` value, and `n_lists` is the number of lists
    of each `by` value. The result is None if the call has no metric of exposure.
    """
    if all(request.per == "list" for request in requests):
        return None
    whole = {"_by": "int64", "_metric": "int64", "n": "int64", "n_undefined": "int64"}
    rows = []
    for number, request in enumerate(requests):
        if request.per != "item":
            continue
        name = request.name if request.own_column is None else request.own_column
        for by, n in enumerate(n_lists.tolist()):
            groups, values = compute_counts(counts(request, by), request, options)
            settled = settle_undefined(values, request, options) if n else values * np.nan
            for group, part, value in zip(groups, values, settled, strict=True):
                named = name if group is None else f"{name}[{group}]"
                row = {"_by": by, "_metric": number, "metric": named, "k": request.k}
                row |= {"value": value, "n": 0 if np.isnan(value) else n}
                rows.append(row | {"n_undefined": n if np.isnan(part) else 0})
    found = DataFrame(rows, columns=["_by", "_metric", *SUMMARY])
    return found.astype({"k": "Int64", **whole, **dict.fromkeys(STATISTICS, "float64")})


# -------------------------------------------------------------------------------------------
# Metrics of exposure over parts: the counts of the parts are added item by item. Item codes differ
# between parts. So sums are stored by the labels of `pred` and of `true`, or by the rows of the
# log. At the end each metric is computed once, from the sums.

ITEM_LABEL = "label"


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


@dataclass(frozen=True)
class ExposureSums:
    """Sums over lists of some parts, for the metrics of exposure.

    Each table has a column of labels, which are the items of "pred" or "true" or the numbers of the
    items of "log", and a column for each sum over these items. The name of a column has the cut-off
    k, the position of the `by` value, the metric if it is one's own, and the name of the sum. A sum
    about lists has a table of its own.
    """

    tables: Mapping[str, pa.Table]

    def __add__(self, other: ExposureSums) -> ExposureSums:
        tables = {}
        for about in {**self.tables, **other.tables}:
            parts = [one.tables[about] for one in (self, other) if about in one.tables]
            both = pa.concat_tables(parts, promote_options="permissive")
            how = {
                one.name: "any" if pa.types.is_boolean(one.type) else "sum"
                for one in both.schema
                if one.name != ITEM_LABEL
            }
            total = both.group_by(ITEM_LABEL, use_threads=False).aggregate([*how.items()])
            found = {name: total[f"{name}_{one}"] for name, one in how.items()}
            sums = {
                name: pc.fill_null(one, pa.scalar(0).cast(one.type)) for name, one in found.items()
            }
            tables[about] = pa.table({ITEM_LABEL: total[ITEM_LABEL], **sums})
        return ExposureSums(tables)


def exposure_sums(
    matched: Matched, requests: Sequence[Request], true_item: Series, pred_item: Series
) -> ExposureSums:
    """Count the sums that some metrics of exposure name; the item columns of both frames give the
    labels."""
    true = matched.true_lists
    codes, place = distinct_items(matched.item, matched.n_items)
    codes_of_true, true_place = distinct_items(true.item, matched.n_items)
    tables: dict[str, dict[str, Any]] = {
        "pred": {ITEM_LABEL: label_array(pred_item.take(matched.rows(place)))},
        "true": {ITEM_LABEL: label_array(true_item.take(true.rows(true_place)))},
    }
    for by in range(len(matched.by)):
        counts = {_owner(one, by): ListCounts(matched.at(one.k), by) for one in requests}
        for request in requests:
            for one in request.sums:
                owner = _owner(request, by)
                with naming(request):
                    values = counts[owner].summed(*one)
                # A sum for each group of users is one sum per group, since other parts may have
                # other groups.
                parts = {"": values}
                if isinstance(values, dict):
                    parts = {f":{group}": part for group, part in values.items()}
                for group, part in parts.items():
                    name = f"{owner}{one.name}{group}"
                    if one.over == "log":
                        part = part[matched.sides.log.item]
                    elif one.over != "lists":
                        part = part[codes if one.over == "pred" else codes_of_true]
                    # Arrow has no sums of short floats, and those of large integers wrap.
                    wide = np.asarray(part, np.float64)
                    if np.asarray(part).dtype.kind == "f" or np.abs(wide).max(initial=0) > 2**46:
                        part = wide
                    about = name if one.over == "lists" else one.over
                    tables.setdefault(about, {ITEM_LABEL: np.arange(len(part))})[name] = part
    return ExposureSums({about: pa.table(columns) for about, columns in tables.items()})


def _owner(request: Request, by: int) -> str:
    """How the names of sums begin. A metric of one's own has its own."""
    return f"{request.k} {by} {'' if request.metric.built_in else request.columns[0]}\0"


def distinct_items(item: ndarray, n_items: int) -> tuple[ndarray, ndarray]:
    """Return the distinct item codes, and one place of each."""
    place = last_places(item, n_items)
    codes = np.flatnonzero(place >= 0)
    return codes, place[codes]


def counts_of(
    sums: ExposureSums, options: Options, given: Mapping[str, Any]
) -> Callable[[Request, int], Counts]:
    """Return the counts of all parts by request and `by` value; labels are coded together with the
    side tables' items."""
    # No metric of exposure reads a baseline, or what was left out of the lists.
    checked = read_sides({name: given[name] for name in given if name not in IN_LISTS}, options)
    ids = {}
    for role in ("true", "pred"):
        values = Series(pd.arrays.ArrowExtensionArray(sums.tables[role][ITEM_LABEL]))
        ids[role] = read_ids(values, f"{role}[{options.item_col!r}]")
    items = encode([*ids.values(), *checked.item_ids.values()])
    coded = [column.all() for column in items.columns]
    side_codes = dict(zip(checked.item_ids, coded[len(ids) :], strict=True))
    sides = Sides(checked, side_codes, items, None, None)
    code = side_codes | dict(zip(ids, coded, strict=False))

    def counts(request: Request, by: int) -> Counts:
        found = {}
        start = _owner(request, by)
        k = request.k
        for about, table in sums.tables.items():
            for name in table.column_names:
                if name.startswith(start):
                    values = own = table[name].to_numpy().copy()
                    if about in code:
                        values = np.zeros(items.n, own.dtype)
                        values[code[about]] = own
                    found[name.removeprefix(start)] = values
        return Counts(np.iinfo(np.int64).max if k is None else k, sides, items.n, found)

    return counts
