"""Metrics of exposure over parts: the counts of the parts are added item by item.

Contract: item codes differ between parts. So sums are stored by the labels of `pred` and of `true`,
or by the rows of the log. At the end each metric is computed once, from the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..inputs.codes import encode
from ..inputs.ids import read_ids
from ..inputs.options import Options
from ..matching.counts import Counts, ListCounts, Over, Sum
from ..matching.lists import Matched
from ..matching.side_tables.sides import IN_LISTS, Sides, read_sides
from ..metrics.compute import naming
from ..metrics.record import Request
from .dtypes import without_dictionary

Role = Literal["true", "pred"]


def common_type(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return a type that can hold the values of several columns, or None if there is none."""
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    schemas = [pa.schema([("key", wide.get(kind, kind))]) for kind in kinds]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowException, TypeError):
        return None


def _joint(one: pa.Array, two: pa.Array) -> tuple[pa.Array, tuple[np.ndarray, np.ndarray]]:
    """Return the distinct values of both arrays in order of first appearance, and where those of
    each stand there."""
    kind = (one.type if one.type == two.type else common_type([one.type, two.type])) or one.type
    both = pa.concat_arrays([one.cast(kind), two.cast(kind)]).dictionary_encode()
    places = both.indices.to_numpy()
    return both.dictionary, (places[: len(one)], places[len(one) :])


def label_array(series: pd.Series) -> pa.Array:
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
    sums: Mapping[SumKey, np.ndarray]

    def __add__(self, other: ExposureSums) -> ExposureSums:
        labels: dict[Role, pa.Array] = {}
        places: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for role in self.labels:
            labels[role], places[role] = _joint(self.labels[role], other.labels[role])
        over = {**self.over, **other.over}
        sums: dict[SumKey, np.ndarray] = {}
        for key in dict.fromkeys([*self.sums, *other.sums]):
            given = [(i, one.sums[key]) for i, one in enumerate((self, other)) if key in one.sums]
            about: Any = over[key.name]
            at = places.get(about)
            where = [slice(len(values)) if at is None else at[i] for i, values in given]
            length = max(len(values) for _, values in given) if at is None else len(labels[about])
            sums[key] = np.zeros(length, np.result_type(*(values for _, values in given)))
            for rows, (_, values) in zip(where, given, strict=True):
                sums[key][rows] += values
        return ExposureSums(labels, over, sums)


def exposure_sums(
    matched: Matched, requests: Sequence[Request], true_item: pd.Series, pred_item: pd.Series
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
    sums: dict[SumKey, np.ndarray] = {}
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


def distinct_items(item: np.ndarray, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct item codes, and one place of each."""
    place = np.full(n_items, -1, np.int64)
    place[item] = np.arange(len(item))
    codes = np.flatnonzero(place >= 0)
    return codes, place[codes]


def counts_of(
    sums: ExposureSums, options: Options, given: Mapping[str, Any]
) -> Callable[[int | None, int], Counts]:
    """Return the counts of all parts by k and `by` value; labels are coded together with the side
    tables' items."""
    # No metric of exposure reads a baseline, or what was left out of the lists.
    checked = read_sides(
        {name: table for name, table in given.items() if name not in IN_LISTS}, options
    )
    roles: tuple[Role, ...] = ("true", "pred")
    ids = [
        read_ids(
            pd.Series(sums.labels[role], dtype=pd.ArrowDtype(sums.labels[role].type)),
            f"{role}[{options.item_col!r}]",
        )
        for role in roles
    ]
    items = encode([*ids, *checked.item_ids.values()])
    coded = [column.all() for column in items.columns]
    side_codes = dict(zip(checked.item_ids, coded[2:], strict=True))
    sides = Sides(checked, side_codes, items, None, None)
    code = {"true": coded[0], "pred": coded[1], "log": side_codes.get("log")}

    def counts(k: int | None, by: int) -> Counts:
        found = {}
        for key, values in sums.sums.items():
            if key[:2] != (k, by):
                continue
            at = code.get(sums.over[key.name])
            if at is not None:
                by_code = np.zeros(items.n, values.dtype)
                by_code[at] = values
                values = by_code
            found[key.name] = values
        return Counts(np.iinfo(np.int64).max if k is None else k, sides, items.n, found)

    return counts
