"""A part of a population and its numbers: `measure(call, part)` returns a `PartResult`, and results
can be added.

Contract: a part holds some lists with all their rows. In memory there is one part, the whole
population. Other engines split the population into buckets of lists, measure each of them where it
is stored, add the results in any order, and `finish` the sum.

    true, pred ─ part ─ measure ─► PartResult ─┐
    true, pred ─ part ─ measure ─► PartResult ─┼─ + ─► finish ─► Evaluation
    true, pred ─ part ─ measure ─► PartResult ─┘

An error of recdf inside a part travels in its result, and `finish` raises it. Rows with a null id,
score or relevance are counted in each part, so that the error of `finish` has the counts of the
whole population.

Between processes a result is a pickle. An error crosses
as the name of its class and its message. Rows per list are not sent, since engines keep them as a
table. Rows of exposure are not sent either: only a part that is the whole population has them.
"""

from __future__ import annotations

import builtins
import json
import pickle
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy import ndarray
from pandas import DataFrame, Series

from .. import errors
from ..errors import DataError, RecdfError
from ..inputs.frames import column
from ..inputs.ids import is_nested, label_codes, nullable, take_rows
from ..inputs.sorting import distinct, last_places, run_of, spans
from ..inputs.true_and_pred import BrokenRows, Order, RowsRefused, added
from ..matching.counts import ListCounts
from ..matching.list_keys import KeyColumns
from ..matching.lists import Matched
from ..matching.overlap import Overlap
from ..matching.side_tables.digest import DescribedSide, hashes
from ..metrics.call import Call, CarryRule, unknown_counts
from ..metrics.compute import defined_values, label_frame, settle_undefined
from ..progress import Progress
from .summary_rows import (
    ExposureSums,
    ItemGroups,
    distinct_items,
    exposure_rows,
    exposure_sums,
    item_groups,
    without_group,
)
from .value_moments import GroupMoments

WHOLE = frozenset({0})


@dataclass(frozen=True)
class Part:
    """Some lists of a population, with all their rows.

    true, pred : frames, or anything else that `evaluate` takes · buckets : numbers of the buckets
    of lists in this part · whole : the population has no other lists, so that metrics of exposure
    may read the lists themselves · by_values : the `by` values of the whole population in their
    order; None stands for those of the part.
    """

    true: Any
    pred: Any
    buckets: frozenset[int] = WHOLE
    whole: bool = True
    by_values: DataFrame | None = None


@dataclass(frozen=True)
class ListRows:
    """One row per list: the labels of its key, its `by` value (a row of `by`), and one array per
    column.

    `carried` are columns of `pred` that are copied into the result, with one value per list.
    `first` has, for each frame that names the population, the row of the part where the list first
    stands, or -1.
    """

    keys: KeyColumns
    by: DataFrame
    list_by: ndarray
    columns: Mapping[str, ndarray]
    carried: Mapping[str, Series]
    first: Mapping[str, ndarray]

    def __len__(self) -> int:
        return len(self.list_by)


@dataclass(frozen=True)
class Measured:
    """Numbers of some lists, which can be added over disjoint parts of a population.

    by : labels of the `by` values · n_lists : number of lists of each · moments : those of each
    metric column, None without lists · counts : numbers of rows that were dropped, repeated or
    unknown to a side table · side_counts : numbers of rows of side tables that were dropped, the
    same in every part · side_tables : descriptions of the side tables, made once for the whole
    population (None: not yet) · groups : moments within groups of items · exposure : sums for
    metrics of exposure · exposed : rows of these metrics in the summary, where the part is the
    whole · truth : a digest of `true`, if all of its rows count.
    """

    by: DataFrame
    order: Order
    relevance_col: str | None
    n_lists: ndarray
    moments: GroupMoments | None
    counts: Mapping[str, int]
    side_counts: Mapping[str, int]
    overlap: Overlap
    side_tables: Mapping[str, DescribedSide] | None = None
    groups: ItemGroups | None = None
    exposure: ExposureSums | None = None
    exposed: DataFrame | None = None
    truth: int | None = None

    def __add__(self, other: Measured) -> Measured:
        if not self.by.equals(other.by):
            raise ValueError(
                f"parts have different by values: {len(self.by)} and {len(other.by)} rows"
            )
        return replace(
            self,
            n_lists=self.n_lists + other.n_lists,
            moments=_sum(self.moments, other.moments),
            counts=added(self.counts, other.counts),
            side_counts={**other.side_counts, **self.side_counts},
            overlap=self.overlap + other.overlap,
            groups=_sum(self.groups, other.groups),
            exposure=_sum(self.exposure, other.exposure),
            truth=_sum(self.truth, other.truth),
        )


def _sum(one: Any, two: Any) -> Any:
    """Add two values; None counts as nothing."""
    if one is None or two is None:
        return two if one is None else one
    return one + two


@dataclass(frozen=True)
class Failure:
    """The error of a part, and the smallest of its buckets."""

    error: Exception
    bucket: int

    def __reduce__(self) -> Any:
        error = self.error
        message = getattr(error, "marked", str(error))
        data = getattr(error, "data", {})
        notes = [*getattr(error, "__notes__", [])]
        # The lines of code that raised it, unless recdf did, or it came from another process.
        if error.__traceback__ is not None and not isinstance(error, RecdfError):
            lines = "".join(traceback.format_tb(error.__traceback__))
            notes.append(f"In the part that failed:\n{lines}")
        safe = json.loads(json.dumps(data, default=str))
        return _failure, (type(error).__name__, message, safe, notes, self.bucket)


@dataclass(frozen=True)
class PartResult:
    """The result of some buckets of lists: numbers, or the error that was raised; one part has its
    rows per list too.

    `findings` has what is wrong with the rows of each frame. Where they refuse rows, there are no
    numbers. Adding results is associative and commutative, up to the rounding of floating-point
    sums. A sum has no rows per list: whoever needs those of several parts keeps them.
    """

    buckets: frozenset[int]
    measured: Measured | None = None
    failure: Failure | None = None
    rows: ListRows | None = None
    findings: Mapping[str, BrokenRows] = field(default_factory=dict)

    def __add__(self, other: PartResult) -> PartResult:
        both = self.buckets & other.buckets
        if both:
            raise DataError(
                f"bucket {min(both)} was measured in two parts, so its lists were split; each part "
                "must hold all rows of its lists"
            )
        buckets = self.buckets | other.buckets
        findings = added(self.findings, other.findings)
        failures = [one.failure for one in (self, other) if one.failure is not None]
        if failures:
            failure = min(failures, key=lambda failure: failure.bucket)
            return PartResult(buckets, failure=failure, findings=findings)
        return PartResult(buckets, _sum(self.measured, other.measured), findings=findings)


def measure(call: Call, part: Part) -> PartResult:
    """Match one part and compute its metrics; an error is caught and becomes part of the result."""
    findings: dict[str, BrokenRows] = {}
    try:
        measured, rows = _measure(call, part, findings)
    except RowsRefused:
        return PartResult(part.buckets, findings=findings)
    except (RecdfError, TypeError) as error:
        failure = Failure(error, min(part.buckets))
        return PartResult(part.buckets, failure=failure, findings=findings)
    return PartResult(part.buckets, measured, None, rows, findings)


def _measure(call: Call, part: Part, findings: dict[str, BrokenRows]) -> tuple[Measured, ListRows]:
    options = call.options
    with (
        call.match_part(part.true, part.pred, part.by_values, part.whole, findings) as matched,
        Progress(len(call.requests), "evaluate") as progress,
    ):
        columns: dict[str, ndarray] = {}
        undefined: list[ndarray] = []
        for request in call.per_list if len(matched) else []:
            for name, values in defined_values(matched, request, options).items():
                columns[name] = settle_undefined(values, request, options)
                undefined.append(values)
            progress.add()
        n_by = len(matched.by)
        list_by = matched.list_by
        moments = None
        if columns:
            counts_as = undefined if options.undefined in ("zero", "one") else None
            of_lists = list_by, n_by, matched.weight, counts_as
            moments = GroupMoments.of(columns.values(), *of_lists)
        n_lists = np.bincount(list_by, minlength=n_by)
        measured = Measured(
            by=matched.by,
            order=matched.order,
            relevance_col=matched.relevance_col,
            n_lists=n_lists,
            moments=moments,
            side_counts=matched.side_counts,
            overlap=matched.overlap,
            side_tables=matched.sides.checked.described() if part.whole else None,
            truth=_truth_digest(matched, call),
            **_the_rest(matched, call, n_lists, part.whole),
        )
        first = {"n_true": matched.n_true, "n_pred": matched.n_pred}
        if options.weight_name is not None and matched.weight is not None:
            first = {options.weight_name: matched.weight, **first}
        carried = carried_columns(matched, matched.frames[1], call.carry)
        columns = {**first, **columns}
        rows = ListRows(matched.keys, matched.by, list_by, columns, carried, matched.first)
        return measured, rows


def _the_rest(matched: Matched, call: Call, n_lists: ndarray, whole: bool) -> dict[str, Any]:
    """Return the fields of `Measured` for all counts, also of rows that side tables do not know,
    the groups of items, and the metrics of exposure."""
    options, item_col = call.options, call.options.item_col
    found: dict[str, Any] = {"counts": {**matched.counts}}
    if len(matched):
        if whole:
            found["exposed"] = exposure_rows(
                lambda one, by: ListCounts(matched.at(one.k), by), n_lists, call.requests, options
            )
        elif call.per_item:
            labels = [frame[item_col] for frame in matched.frames]
            found["exposure"] = exposure_sums(matched, call.per_item, *labels)
        found["counts"] |= unknown_counts(matched, call.requests)
        if call.item_by is not None:
            # The largest gain of the population, not of a group, is the scale of every group.
            known = call.knowing(max_gain=float(matched.true_lists.gain.max(initial=0.0)))
            found["groups"] = item_groups(matched, known.requests, options, call.item_by)
    if call.item_by is not None:
        found["counts"] |= without_group(matched, call.item_by)
    return found


def _truth_digest(matched: Matched, call: Call) -> int | None:
    """Return a number that tells the items of `true` and their gains from others, if all of its
    rows count. Those of parts add up.

    A gain counts as a whole number below 1022, so that the sums are exact.
    """
    counts = matched.has_true and call.options.population.rule in ("true", "all")
    if not len(matched) or not counts:
        return None
    lists = matched.true_lists
    item = lists.item.astype(np.int64, copy=False)
    one = lists.constant_gain
    grade = 1.0 + np.asarray(1.0 if one else lists.gain, np.float64).view(np.uint64) % 1021
    times = np.bincount(item) * grade if one else np.bincount(item, grade)
    items, place = distinct_items(item, matched.n_items)
    labels = take_rows(matched.frames[0][call.options.item_col], lists.rows(place))
    return int((times.take(items).astype(np.uint64) * hashes(labels)).sum(dtype=np.uint64))


def result_bytes(result: PartResult) -> bytes:
    """Return the numbers of a result, or its error, as a pickle for another process."""
    measured = result.measured
    if measured is not None and measured.exposed is not None:
        raise ValueError(
            "rows of exposure were made of a whole population, which is no part; measure with "
            "whole=False"
        )
    sent = replace(result, rows=None, measured=measured and replace(measured, side_tables=None))
    return pickle.dumps(sent)


def _failure(
    name: str, message: str, data: Mapping[str, Any], notes: Sequence[str], bucket: int
) -> Failure:
    """Make a failure again from the name of the class of its error and the message.

    Errors of a user's own metric may be of any class. One that is not known here, or that takes
    other arguments, becomes a RuntimeError. Notes below the message name the metric, and show the
    lines of code that raised it.
    """
    kind = getattr(errors, name, None) or getattr(builtins, name, None)
    try:
        error: Exception = kind(message, **data)  # type: ignore[misc]
    except TypeError:
        error = RuntimeError(f"{name}: {message}")
    for note in notes:
        error.add_note(note)
    return Failure(error, bucket)


# -------------------------------------------------------------------------------------------
# Columns of `pred` that are carried into the per-user table: the time of a visit, the variant, the
# device. A carried column has one value per list, in the dtype that it has in `pred`, and is null
# for a list that `pred` does not have. It is a label, so it stands before `n_true`.


def carried_columns(
    matched: Matched, pred: DataFrame, rules: Mapping[str, CarryRule]
) -> dict[str, Series]:
    """Return each carried column with one value per list, reduced by its rule."""
    if not rules:
        return {}
    known = np.flatnonzero(matched.n_pred > 0)
    length = matched.n_pred[known]
    rows = matched.rows(spans(matched.start[known], length))
    heads = np.cumsum(length) - length
    place = last_places(known, len(matched))
    found = {}
    for name, rule in rules.items():
        values = _as_pandas(column(pred, name, "pred").reset_index(drop=True))
        if rule == "constant":
            _refuse_changes(values, rows, heads, matched, known)
        if rule in ("min", "max"):
            of_row = values.take(rows).groupby(run_of(length), observed=True)
            try:
                of_list: Any = of_row.min() if rule == "min" else of_row.max()
            except TypeError as error:
                raise DataError(
                    f"carry[{name!r}]={rule!r}: pred[{name!r}] has no order ({error})"
                ) from error
        else:  # "first" is the value at the best rank
            of_list = values.take(rows[heads + length - 1] if rule == "last" else rows[heads])
        of_list = of_list.reset_index(drop=True)
        if len(known) < len(matched):
            of_list = nullable(of_list).reindex(place).reset_index(drop=True)
        found[name] = of_list
    return found


def check_carried(values: Series, rule: CarryRule) -> None:
    """Raise if the dtype of a column tells that its values cannot be compared, as the rule asks
    for."""
    values, where = _as_pandas(values.head(0)), f"pred[{values.name!r}]"
    if rule == "constant":
        label_codes(values, where)
    elif rule in ("min", "max") and is_nested(values.dtype):
        what = f"{where} is {values.dtype}"
        raise DataError(
            f'carry[{values.name!r}]={rule!r}: {what}, which has no order; take "first" or "last"'
        )


def _as_pandas(values: Series) -> Series:
    """Return periods, UUIDs and other types that Arrow only stores in the dtype that pandas has for
    them."""
    kind = values.dtype.pyarrow_dtype if isinstance(values.dtype, pd.ArrowDtype) else None
    if not isinstance(kind, pa.BaseExtensionType):
        return values
    return pa.table({str(values.name): pa.array(values.array)}).to_pandas().iloc[:, 0]


def _refuse_changes(
    values: Series, rows: ndarray, heads: ndarray, matched: Matched, known: ndarray
) -> None:
    """Raise if a list has two different values; a null beside a value counts as two."""
    code = label_codes(values, f"pred[{values.name!r}]")[0][rows]
    change = np.zeros(len(rows), bool)
    change[1:] = code[1:] != code[:-1]
    change[heads] = False
    if not change.any():
        return
    lists = distinct(np.searchsorted(heads, np.flatnonzero(change), side="right") - 1)
    one = known[lists[0]]
    head = heads[lists[0]]
    label = label_frame(matched).iloc[[one]].to_dict("records")[0]
    here = values.take(rows[head : head + int(matched.n_pred[one])])
    some = ", ".join(map(repr, here.drop_duplicates().head(3).tolist()))
    raise DataError(
        f"pred[{values.name!r}] is not constant within {len(lists):,} lists; {label} has {some}. "
        "Carry one of its "
        f'values, e.g. ⟦+carry={{{values.name!r}: "first"}}⟧ (or "last", "min", "max"), or make it '
        "part of the list key"
    )
