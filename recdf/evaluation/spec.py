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
from collections.abc import Mapping
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
from ..metrics.metric import find
from .value_moments import CONFIDENCE, SUMMARY, means

MEAN_TOLERANCE = (
    1e-9  # of a mean, relative to the size of the values; sums of parts round differently
)


def check_received(
    per_user: DataFrame, summary: DataFrame, spec: dict[str, Any], where: Any
) -> None:
    """Raise DataError unless spec, `per_user` and `summary` can be of one result."""
    problem = _misfit(spec, Spec, "spec") or _columns_misfit(per_user, summary, spec)
    if problem or (problem := _values_misfit(per_user, summary, spec)):
        raise DataError(
            f"{where} holds a result that does not fit together: {problem}; evaluate it again"
        )


def _misfit(value: Any, kind: Any, name: str) -> str:
    """Say what is wrong with a value that should be of a type; empty if nothing is."""
    origin = typing.get_origin(kind)
    inside = typing.get_args(kind)
    if kind is Any:
        return ""
    if origin is typing.NotRequired:
        return _misfit(value, inside[0], name)
    if origin in (types.UnionType, typing.Union):
        found = [_misfit(value, one, name) for one in inside]
        return "" if "" in found else found[0]
    if origin is typing.Literal:
        words = f"{name} is {value!r}; expected one of {', '.join(map(repr, inside))}"
        return "" if value in inside else words
    record = typing.is_typeddict(kind)
    plain: Any = dict if record else (int, float) if kind is float else origin or kind
    if not isinstance(value, plain) or isinstance(value, bool) is not (kind is bool):
        return f"{name} is {value!r}; expected a {'number' if kind is float else plain.__name__}"
    hints = typing.get_type_hints(kind, include_extras=True) if record else {}
    for key, hint in hints.items():
        if typing.get_origin(hint) is not typing.NotRequired and key not in value:
            return f"{name} has no {key!r}"
    entries: dict[Any, Any] = (
        dict(enumerate(value)) if origin is list else value if plain is dict else {}
    )
    for key, entry in entries.items():
        of_entry = hints.get(key, Any) if hints else inside[-1]
        if problem := _misfit(entry, of_entry, f"{name}[{key!r}]"):
            return problem
    return ""


def _columns_misfit(per_user: DataFrame, summary: DataFrame, spec: dict[str, Any]) -> str:
    keys = [*spec["by"], *spec["user_col"]]
    metrics = spec["metrics"]
    if not spec["user_col"] or len(set(keys)) < len(keys):
        found = f"by = {spec['by']} and user_col = {spec['user_col']}"
        return f"the spec has {found}; expected names that differ"
    options = spec["options"]
    for name, one in OPTIONS.items():
        value = options.get(name)
        kind = one.constraint
        if kind.only_words and not kind.holds(value):
            return f"spec['options'][{name!r}] is {value!r}; expected one of {kind.words}"
    for name in ("by", "user_col"):
        value = options.get(name)
        if list(map(str, as_columns(value))) != spec[name]:
            return f"{name} is {spec[name]} in the spec and {value!r} among its options"
    if not 0 < spec["confidence"] < 1:
        return f"spec['confidence'] is {spec['confidence']}; expected a number between 0 and 1"
    of_lists = [name for name in metrics if name in per_user.columns]
    extra = {role: [spec[role]] for role in ("weight", "item_by") if role in spec}
    needed = {
        "per_user": [*keys, "n_true", "n_pred", *spec.get("carry", {}), *extra.get("weight", [])],
        "summary": [*spec["by"], *SUMMARY, *extra.get("item_by", [])],
    }
    frames = {"per_user": (per_user, of_lists), "summary": (summary, list(SUMMARY[1:]))}
    for role, (frame, numbers) in frames.items():
        for name in needed[role]:
            if name not in frame.columns:
                return f"{role} has no column {name!r}, which the spec names"
        for name in numbers:
            if not pd.api.types.is_numeric_dtype(dtype := frame[name].dtype):
                return f"{role}[{name!r}] is {dtype}; expected numbers"
    named = {(one["name"], one["k"]): column for column, one in metrics.items()}
    cut_off = summary["k"].astype(object).where(summary["k"].notna(), None)
    rows = set(zip(summary["metric"], cut_off, strict=True))
    # A metric of groups has the group in brackets behind its name.
    rows = {(name if (name, k) in named else name.rpartition("[")[0], k) for name, k in rows}
    for key, column in named.items() if len(summary) else ():
        if column not in of_lists and key not in rows:
            return f"neither table has the metric {column!r} of the spec"
    for pair in sorted(map(str, rows - set(named))):
        return f"the spec has no metric and k of {pair}, which the summary has"
    return ""


def _values_misfit(per_user: DataFrame, summary: DataFrame, spec: dict[str, Any]) -> str:
    """Hold every mean over lists in the summary against the rows of `per_user`."""
    names = [name for name in spec["metrics"] if name in per_user.columns]
    if not names or per_user.empty:
        return ""
    weights = per_user[spec["weight"]].to_numpy(np.float64) if "weight" in spec else None
    keys = [*spec["by"], "metric", "k"]
    own = means(per_user, spec["by"], names, spec, spec["confidence"], weights=weights)
    of_all = summary.drop_duplicates(keys)  # the first is of all items
    found = own.merge(of_all, "left", keys, suffixes=("", "_said"))
    size = found["value"].abs() + found["std"].fillna(0.0)
    off = (found["value_said"] - found["value"]).abs()
    wrong = np.isfinite(found["value"]) & ~(off <= MEAN_TOLERANCE * size)
    for place in np.flatnonzero(wrong)[:1]:
        return f"the summary's {names[place % len(names)]} is not the mean of the rows of per_user"
    return ""


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
# Columns of texts, with the fields of the metric's record.
DEFINITION_FIELDS = {
    "family": "family",
    "meaning": "doc",
    "formula": "formula",
    "better": "better",
    "references": "references",
}


def better_of(column: str) -> str | None:
    """Return "larger" or "smaller" for a column such as "first_rank@10", None where the metric has
    no direction."""
    try:
        return find(re.split("[@(]", column)[0]).stated(column)[1]
    except OptionError:  # not a metric of the registry
        return None


def definitions(spec: Mapping[str, Any]) -> DataFrame:
    """Return one row per metric column of a spec: its definition with every option, its meaning and
    its formula.

    A metric that is not registered, such as a user's own function in another session, has empty
    texts.
    """
    rows = []
    for column, found in spec["metrics"].items():
        try:
            record: Any = find(found["definition"].partition("@")[0].partition("(")[0])
        except OptionError:
            record = None
        texts = {
            name: " ".join((getattr(record, field, "") or "").split())
            for name, field in DEFINITION_FIELDS.items()
        }
        if record is not None:
            texts["better"] = record.stated(found["definition"])[1] or ""
        rows.append({"column": column, **{name: found[name] for name in METRIC_FIELDS}, **texts})
    return DataFrame(rows, columns=["column", *METRIC_FIELDS, *DEFINITION_FIELDS])
