"""A result that comes from a file: does its spec fit its tables, and do the two tables fit each other?

A seal shows that the bytes of a result are those that were written. It does not show that the result was written by
`evaluate`: a program may have changed the spec or a table in between. What reads a result relies on both.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError
from ..inputs.options import CHOICES, as_columns
from .spec import Spec
from .summary import SUMMARY

__all__: list[str] = []

TOLERANCE = 1e-9  # of a mean, relative to the mean of the absolute values; sums of parts round differently


def check_received(per_user: pd.DataFrame, summary: pd.DataFrame, spec: dict[str, Any], where: Any) -> None:
    """Raise DataError unless spec, `per_user` and `summary` can be of one result."""
    problem = _misfit(spec, Spec, "spec") or _columns_misfit(per_user, summary, spec)
    if problem or (problem := _values_misfit(per_user, summary, spec)):
        raise DataError(f"{where} holds a result that does not fit together: {problem}; evaluate it again")


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
        return "" if value in inside else f"{name} is {value!r}; expected one of {', '.join(map(repr, inside))}"
    plain: Any = dict if typing.is_typeddict(kind) else (int, float) if kind is float else origin or kind
    if not isinstance(value, plain) or isinstance(value, bool) is not (kind is bool):
        return f"{name} is {value!r}; expected a {'number' if kind is float else plain.__name__}"
    hints = typing.get_type_hints(kind, include_extras=True) if typing.is_typeddict(kind) else {}
    lacking = [key for key, hint in hints.items() if typing.get_origin(hint) is not typing.NotRequired]
    lacking = [key for key in lacking if key not in value]
    if lacking:
        return f"{name} has no {lacking[0]!r}"
    entries: Iterable[tuple[Any, Any]] = enumerate(value) if origin is list else value.items() if plain is dict else ()
    found = [_misfit(one, hints.get(key, Any) if hints else inside[-1], f"{name}[{key!r}]") for key, one in entries]
    return next(filter(None, found), "")


def _columns_misfit(per_user: pd.DataFrame, summary: pd.DataFrame, spec: dict[str, Any]) -> str:
    keys, metrics = [*spec["by"], *spec["user_col"]], spec["metrics"]
    if not spec["user_col"] or len(set(keys)) < len(keys):
        return f"the spec has by = {spec['by']} and user_col = {spec['user_col']}; expected names that differ"
    options = spec["options"]
    for name, allowed in CHOICES.items():
        if name != "users" and options.get(name) not in allowed:
            known = ", ".join(map(repr, allowed))
            return f"spec['options'][{name!r}] is {options.get(name)!r}; expected one of {known}"
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
    # A metric of groups has the group in brackets behind its name.
    cut_off = summary["k"].astype(object).where(summary["k"].notna(), None)
    rows = set(zip(summary["metric"].str.split("[").str[0], cut_off, strict=True))
    named = {(one["name"], one["k"]): column for column, one in metrics.items()}
    lost = [column for key, column in named.items() if column not in of_lists and key not in rows]
    if lost and len(summary):
        return f"neither table has the metric {lost[0]!r} of the spec"
    extra_rows = sorted(map(str, rows - set(named)))
    return f"the spec has no metric and k of {extra_rows[0]}, which the summary has" if extra_rows else ""


def _values_misfit(per_user: pd.DataFrame, summary: pd.DataFrame, spec: dict[str, Any]) -> str:
    """Hold every mean over lists in the summary against the rows of `per_user`."""
    by, metrics = spec["by"], {name: one for name, one in spec["metrics"].items() if name in per_user.columns}
    labels = per_user[by] if by else pd.DataFrame(index=range(len(per_user)))
    group = labels.groupby(by, sort=False, dropna=False, observed=True).ngroup().to_numpy() if by else None
    code = np.zeros(len(per_user), np.int64) if group is None else group
    first = np.unique(code, return_index=True)[1]
    weight = per_user[spec["weight"]].to_numpy(np.float64) if "weight" in spec else np.ones(len(per_user))
    for name, one in metrics.items():
        x = per_user[name].to_numpy(np.float64)
        w, x = np.where(np.isnan(x), 0.0, weight), np.where(np.isnan(x), 0.0, x)
        total, size, mass = (np.bincount(code, part, len(first)) for part in (w * x, w * abs(x), w))
        rows = summary[(summary["metric"] == one["name"]) & _same_k(summary["k"], one["k"])]
        rows = rows.drop_duplicates(by) if by else rows.head(1)
        found = labels.iloc[first].assign(_place=range(len(first))).merge(rows, "left", by) if by else rows
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = total / mass
            near = np.abs(found["value"].to_numpy() - mean) <= TOLERANCE * (size / mass)
        if len(first) and (len(found) != len(first) or (np.isfinite(mean) & ~near).any()):
            return f"the summary's {name} is not the mean of the rows of per_user"
    return ""


def _same_k(column: pd.Series, k: int | None) -> pd.Series:
    return column.isna() if k is None else column.eq(k).fillna(False)
