"""A result that comes from a file: does its spec fit its tables, and do the two tables fit each
other?

A seal shows that the bytes of a result are those that were written. It does not show that the
result was written by `evaluate`: a program may have changed the spec or a table in between. What
reads a result relies on both.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError
from ..inputs.options import OPTIONS, as_columns
from .mean_tables import SUMMARY, means
from .spec import Spec

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
