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
from collections.abc import Iterable, Mapping
from typing import Any, NotRequired, TypedDict, cast

import numpy as np
import pandas as pd

from .._version import version_and_build
from ..errors import DataError, OptionError
from ..inputs.options import OPTIONS, as_columns
from ..inputs.true_and_pred import Order
from ..matching.side_tables.digest import DescribedSide
from ..metrics.call import Call
from ..metrics.metric import find
from ..metrics.record import Request
from .value_moments import CONFIDENCE, SUMMARY, means

MEAN_TOLERANCE = (
    1e-9  # of a mean, relative to the size of the values; sums of parts round differently
)


def check_received(
    per_user: pd.DataFrame, summary: pd.DataFrame, spec: dict[str, Any], where: Any
) -> None:
    """Raise DataError unless spec, `per_user` and `summary` can be of one result."""
    problem = _misfit(spec, Spec, "spec") or _columns_misfit(per_user, summary, spec)
    if problem or (problem := _values_misfit(per_user, summary, spec)):
        raise DataError(
            f"{where} holds a result that does not fit together: {problem}; evaluate it again"
        )


def _misfit(value: Any, kind: Any, name: str) -> str:
    """Say what is wrong with a value that should be of a type; empty if nothing is."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return ""
    if origin is typing.NotRequired:
        return _misfit(value, inside[0], name)
    if origin in (types.UnionType, typing.Union):
        found = [_misfit(value, one, name) for one in inside]
        return "" if "" in found else found[0]
    if origin is typing.Literal:
        return (
            ""
            if value in inside
            else f"{name} is {value!r}; expected one of {', '.join(map(repr, inside))}"
        )
    plain: Any = (
        dict if typing.is_typeddict(kind) else (int, float) if kind is float else origin or kind
    )
    if not isinstance(value, plain) or isinstance(value, bool) is not (kind is bool):
        return f"{name} is {value!r}; expected a {'number' if kind is float else plain.__name__}"
    hints = typing.get_type_hints(kind, include_extras=True) if typing.is_typeddict(kind) else {}
    lacking = [
        key for key, hint in hints.items() if typing.get_origin(hint) is not typing.NotRequired
    ]
    lacking = [key for key in lacking if key not in value]
    if lacking:
        return f"{name} has no {lacking[0]!r}"
    entries: Iterable[tuple[Any, Any]] = (
        enumerate(value) if origin is list else value.items() if plain is dict else ()
    )
    found = [
        _misfit(one, hints.get(key, Any) if hints else inside[-1], f"{name}[{key!r}]")
        for key, one in entries
    ]
    return next(filter(None, found), "")


def _columns_misfit(per_user: pd.DataFrame, summary: pd.DataFrame, spec: dict[str, Any]) -> str:
    keys, metrics = [*spec["by"], *spec["user_col"]], spec["metrics"]
    if not spec["user_col"] or len(set(keys)) < len(keys):
        return (
            f"the spec has by = {spec['by']} and user_col = {spec['user_col']}; expected names "
            "that differ"
        )
    options = spec["options"]
    for name, one in OPTIONS.items():
        if one.constraint.only_words and not one.constraint.holds(options.get(name)):
            return (
                f"spec['options'][{name!r}] is {options.get(name)!r}; expected one of "
                f"{one.constraint.words}"
            )
    for name in ("by", "user_col"):
        if list(map(str, as_columns(options.get(name)))) != spec[name]:
            return f"{name} is {spec[name]} in the spec and {options.get(name)!r} among its options"
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
        lacking = [name for name in needed[role] if name not in frame.columns]
        if lacking:
            return f"{role} has no column {lacking[0]!r}, which the spec names"
        odd = [name for name in numbers if not pd.api.types.is_numeric_dtype(frame[name].dtype)]
        if odd:
            return f"{role}[{odd[0]!r}] is {frame[odd[0]].dtype}; expected numbers"
    named = {(one["name"], one["k"]): column for column, one in metrics.items()}
    cut_off = summary["k"].astype(object).where(summary["k"].notna(), None)
    rows = set(zip(summary["metric"], cut_off, strict=True))
    # A metric of groups has the group in brackets behind its name.
    rows = {(name if (name, k) in named else name.rpartition("[")[0], k) for name, k in rows}
    lost = [column for key, column in named.items() if column not in of_lists and key not in rows]
    if lost and len(summary):
        return f"neither table has the metric {lost[0]!r} of the spec"
    extra_rows = sorted(map(str, rows - set(named)))
    return (
        f"the spec has no metric and k of {extra_rows[0]}, which the summary has"
        if extra_rows
        else ""
    )


def _values_misfit(per_user: pd.DataFrame, summary: pd.DataFrame, spec: dict[str, Any]) -> str:
    """Hold every mean over lists in the summary against the rows of `per_user`."""
    names = [name for name in spec["metrics"] if name in per_user.columns]
    if not names or per_user.empty:
        return ""
    weights = per_user[spec["weight"]].to_numpy(np.float64) if "weight" in spec else None
    keys = [*spec["by"], "metric", "k"]
    own = means(per_user, spec["by"], names, spec, spec["confidence"], weights=weights)
    found = own.merge(
        summary.drop_duplicates(keys), "left", keys, suffixes=("", "_said")
    )  # the first is of all items
    mean, said = found["value"].to_numpy(), found["value_said"].to_numpy()
    with np.errstate(invalid="ignore"):
        near = np.abs(said - mean) <= MEAN_TOLERANCE * (
            np.abs(mean) + found["std"].fillna(0.0).to_numpy()
        )
    wrong = np.flatnonzero(np.isfinite(mean) & ~near)
    return (
        f"the summary's {names[wrong[0] % len(names)]} is not the mean of the rows of per_user"
        if len(wrong)
        else ""
    )


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
    options, user_col = call.options, list(map(str, as_columns(call.options.user_col)))
    spec = {
        "recdf": version_and_build(),
        "user_col": user_col,
        "by": list(map(str, as_columns(options.by))),
        "metrics": dict(pair for request in call.requests for pair in _request_columns(request)),
        "options": options.spec(),
        "order": order,
        "relevance": None if relevance_col is None else str(relevance_col),
        "counts": dict(counts),
        "confidence": CONFIDENCE,
    }
    more = {
        # standard errors of the summary take the lists of a user for independent
        "interval_unit": "list" if len(user_col) > 1 else None,
        "weight": options.weight_name,
        "side_tables": dict(side_tables),
        "item_by": call.item_by,
        "truth": None if truth is None else f"{truth % 2**64:016x}",
        "files": dict(call.files),
        "carry": {str(name): str(rule) for name, rule in call.carry.items()},
    }
    return cast(Spec, OneSpec(spec | {name: one for name, one in more.items() if one}))


class OneSpec(dict[str, Any]):
    """A spec of which there is one for all frames: a deep copy is the spec itself, and no part of
    it may be changed.

    pandas copies `attrs` deeply for each column that is taken out of a frame, which would take
    longer than the work on the column. A pickle holds a plain dict.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> OneSpec:
        return self

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return dict, (dict(self),)


def _request_columns(request: Request) -> list[tuple[str, MetricSpec]]:
    """Return the columns of a request. A name that the caller gave replaces the metric's; each
    output has a column."""
    name = request.name
    found: list[tuple[str, MetricSpec]] = []
    for column, output in zip(request.columns, request.metric.outputs, strict=True):
        if len(request.metric.outputs) > 1:
            name = output
        elif request.own_column is not None:
            name = column
        found.append((column, {"name": name, "k": request.k, "definition": request.definition}))
    return found


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


def definitions(spec: Mapping[str, Any]) -> pd.DataFrame:
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
    return pd.DataFrame(rows, columns=["column", *METRIC_FIELDS, *DEFINITION_FIELDS])
