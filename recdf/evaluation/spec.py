"""A result that comes from a file: does its spec fit its tables, and do the two tables fit each
other?

A seal shows that the bytes of a result are those that were written. It does not show that the
result was written by `evaluate`: a program may have changed the spec or a table in between. What
reads a result relies on both.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NotRequired, TypedDict, cast

import numpy as np
import pandas as pd
from pandas import DataFrame

from .._version import version_and_build
from ..errors import DataError, OptionError
from ..inputs.frames import OneRecord
from ..inputs.options import OPTIONS, as_columns
from ..inputs.true_and_pred import Order
from ..matching.side_tables.digest import DescribedSide
from ..metrics.call import Call
from ..metrics.metric import Metric, find
from .value_moments import CONFIDENCE, SUMMARY, means

MEAN_TOLERANCE = (
    1e-9  # of a mean, relative to the size of the values; sums of parts round differently
)


def check_received(
    per_user: DataFrame, summary: DataFrame, spec: dict[str, Any], where: Any
) -> None:
    """Raise DataError unless spec, `per_user` and `summary` can be of one result."""
    problems = chain(_misfits(spec, Spec, "spec"), _misfits_of_tables(per_user, summary, spec))
    for problem in problems:
        raise DataError(
            f"{where} holds a result that does not fit together: {problem}; evaluate it again"
        )


def _misfits(value: Any, kind: Any, name: str) -> Iterator[str]:
    """Say what is wrong with a value that should be of a type. Only the first problem counts."""
    origin = typing.get_origin(kind)
    inside = typing.get_args(kind)
    if origin is typing.NotRequired:
        yield from _misfits(value, inside[0], name)
    elif origin in (types.UnionType, typing.Union):
        found = [next(_misfits(value, one, name), "") for one in inside]
        if "" not in found:
            yield found[0]
    elif origin is typing.Literal:
        if value not in inside:
            yield f"{name} is {value!r}; expected one of {', '.join(map(repr, inside))}"
    elif kind is not Any:
        record = typing.is_typeddict(kind)
        plain: Any = dict if record else (int, float) if kind is float else origin or kind
        if not isinstance(value, plain) or isinstance(value, bool) is not (kind is bool):
            said = "number" if kind is float else plain.__name__
            yield f"{name} is {value!r}; expected a {said}"
        hints = typing.get_type_hints(kind, include_extras=True) if record else {}
        for key, hint in hints.items():
            if typing.get_origin(hint) is not typing.NotRequired and key not in value:
                yield f"{name} has no {key!r}"
        if plain in (list, dict):
            at: Any
            for at, entry in value.items() if plain is dict else enumerate(value):
                of_entry = hints.get(at, Any) if hints else inside[-1]
                yield from _misfits(entry, of_entry, f"{name}[{at!r}]")


def _misfits_of_tables(
    per_user: DataFrame, summary: DataFrame, spec: dict[str, Any]
) -> Iterator[str]:
    """Hold the columns of both tables against the spec, and every mean over lists in the summary
    against the rows of `per_user`."""
    by, user_col, metrics, options = (
        spec[name] for name in ("by", "user_col", "metrics", "options")
    )
    if not user_col or len({*by, *user_col}) < len(by) + len(user_col):
        yield f"the spec has by = {by} and user_col = {user_col}; expected names that differ"
    for name, one in OPTIONS.items():
        value = options.get(name)
        if one.constraint.only_words and not one.constraint.holds(value):
            words = one.constraint.words
            yield f"spec['options'][{name!r}] is {value!r}; expected one of {words}"
    for name in ("by", "user_col"):
        value = options.get(name)
        if list(map(str, as_columns(value))) != spec[name]:
            yield f"{name} is {spec[name]} in the spec and {value!r} among its options"
    if not 0 < spec["confidence"] < 1:
        yield f"spec['confidence'] is {spec['confidence']}; expected a number between 0 and 1"
    of_lists = [name for name in metrics if name in per_user.columns]
    weight, item_by = ([spec[role]] if role in spec else [] for role in ("weight", "item_by"))
    needed = [*by, *user_col, "n_true", "n_pred", *spec.get("carry", {}), *weight]
    for role, frame, names, numbers in (
        ("per_user", per_user, needed, of_lists),
        ("summary", summary, [*by, *SUMMARY, *item_by], SUMMARY[1:]),
    ):
        for name in names:
            if name not in frame.columns:
                yield f"{role} has no column {name!r}, which the spec names"
        for name in numbers:
            if not pd.api.types.is_numeric_dtype(dtype := frame[name].dtype):
                yield f"{role}[{name!r}] is {dtype}; expected numbers"
    named = {(one["name"], one["k"]): column for column, one in metrics.items()}
    cut_off = summary["k"].astype(object).where(summary["k"].notna(), None)
    rows = set(zip(summary["metric"], cut_off, strict=True))
    # A metric of groups has the group in brackets behind its name.
    rows = {(name if (name, k) in named else name.rpartition("[")[0], k) for name, k in rows}
    for key, column in named.items() if len(summary) else ():
        if column not in of_lists and key not in rows:
            yield f"neither table has the metric {column!r} of the spec"
    for pair in sorted(map(str, rows - set(named))):
        yield f"the spec has no metric and k of {pair}, which the summary has"
    if of_lists and len(per_user):
        keys = [*by, "metric", "k"]
        weights = per_user[weight[0]].to_numpy(np.float64) if weight else None
        own = means(per_user, by, of_lists, spec, spec["confidence"], weights=weights)
        of_all = summary.drop_duplicates(keys)  # the first is of all items
        found = own.merge(of_all, "left", keys, suffixes=("", "_said"))
        size = found["value"].abs() + found["std"].fillna(0.0)
        off = (found["value_said"] - found["value"]).abs()
        wrong = np.isfinite(found["value"]) & ~(off <= MEAN_TOLERANCE * size)
        for place in np.flatnonzero(wrong):
            metric = of_lists[place % len(of_lists)]
            yield f"the summary's {metric} is not the mean of the rows of per_user"


class MetricSpec(TypedDict):
    """The metric of a column of `per_user`: its name, its k, and the string with every
    parameter."""

    name: str
    k: int | None
    definition: str


class Spec(TypedDict):
    """The record of a call: version, key and `by` columns, metrics by column, options, counts of
    rows, digests."""

    recdf: str
    user_col: list[str]
    by: list[str]
    metrics: dict[str, MetricSpec]
    options: dict[str, Any]
    order: Order
    relevance: str | None
    counts: dict[str, int]
    confidence: float
    truth: NotRequired[str]
    side_tables: NotRequired[dict[str, DescribedSide]]
    files: NotRequired[dict[str, dict[str, int]]]
    item_by: NotRequired[str]
    carry: NotRequired[dict[str, str]]
    weight: NotRequired[str]
    interval_unit: NotRequired[str]
    joined: NotRequired[dict[str, dict[str, Any]]]


def spec_of(
    call: Call,
    order: Order,
    relevance_col: str | None,
    counts: Mapping[str, int],
    side_tables: Mapping[str, DescribedSide],
    truth: int | None,
) -> Spec:
    """Return the record of a call: the metrics and options, the columns that order `pred` and grade
    `true`, counts, and what else there is."""
    options = call.options
    user_col = list(map(str, call.options.list_key))
    metrics: dict[str, MetricSpec] = {}
    for one in call.requests:
        for column, output in zip(one.columns, one.metric.outputs, strict=True):
            # A name that the caller gave replaces the metric's.
            name = one.name if one.own_column is None else column
            name = output if len(one.metric.outputs) > 1 else name
            metrics[column] = {"name": name, "k": one.k, "definition": one.definition}
    spec = {
        "recdf": version_and_build(),
        "user_col": user_col,
        "by": list(map(str, as_columns(options.by))),
        "metrics": metrics,
        "options": options.spec(),
        "order": {**order, "column": None if order["by"] == "row" else str(order["column"])},
        "relevance": None if relevance_col is None else str(relevance_col),
        "counts": dict(counts),
        "confidence": CONFIDENCE,
    }
    more = {
        # standard errors of the summary take the lists of a user for independent
        "interval_unit": "list" if len(user_col) > 1 else None,
        "weight": None if options.weight_name is None else str(options.weight_name),
        "side_tables": dict(side_tables),
        "item_by": call.item_by,
        "truth": None if truth is None else f"{truth % 2**64:016x}",
        "files": dict(call.files),
        "carry": {str(name): str(rule) for name, rule in call.carry.items()},
    }
    return cast(Spec, OneRecord(spec | {name: one for name, one in more.items() if one}))


METRIC_FIELDS = ("name", "k", "definition")  # of a metric in a spec
DEFINITION_FIELDS = ("family", "meaning", "formula", "better", "references")


def better_of(column: str) -> str | None:
    """Return "larger" or "smaller" for a column such as "first_rank@10", None where the metric has
    no direction."""
    record = _metric_of(column)
    return None if record is None else record.stated(column)[1]


def _metric_of(definition: str) -> Metric | None:
    """Return the metric of a column or a definition, in any case of letters; None if there is
    none."""
    try:
        return find(re.split("[@(]", definition)[0])
    except OptionError:
        return None


def definitions(spec: Mapping[str, Any]) -> DataFrame:
    """Return one row per metric column of a spec: its definition with every option, its meaning and
    its formula.

    A metric that is not registered, such as a user's own function in another session, has empty
    texts.
    """
    rows = []
    for column, found in spec["metrics"].items():
        definition = found["definition"]
        record = _metric_of(definition)
        texts = [""] * len(DEFINITION_FIELDS)
        if record is not None:
            better = record.stated(definition)[1] or ""
            texts = [
                record.family,
                " ".join(record.doc.split()),
                record.formula,
                better,
                record.references,
            ]
        rows.append([column, *(found[name] for name in METRIC_FIELDS), *texts])
    return DataFrame(rows, columns=["column", *METRIC_FIELDS, *DEFINITION_FIELDS])
