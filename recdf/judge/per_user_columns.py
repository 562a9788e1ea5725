"""What is read from a per-user table, and from the tables of an experiment: keys, groups, values of
metrics.

A merge keeps the order of the columns but loses `attrs`. So functions rely on the columns, and the
caller passes what they cannot tell. A check returns its value or raises an error that names
argument, column, finding and count; nothing here changes a frame or reads its index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame
from pandas.api.types import (
    infer_dtype,
    is_datetime64_any_dtype,
    is_float_dtype,
    is_numeric_dtype,
)

from ..errors import (
    ColumnError,
    DataError,
    OptionError,
    WeightWarning,
    examples,
    kind_of,
    warn_user,
)
from ..inputs.codes import Codes, first_rows, group_codes, known_ids, rank_keys, split
from ..inputs.frames import column, float_column, refuse_engine_frame, refuse_levels
from ..inputs.ids import label_codes
from ..inputs.lazy_frames import refuse_twice
from ..inputs.options import Names, Options, as_columns
from ..inputs.sorting import distinct, exact_sums, flags_at
from ..inputs.true_and_pred import read_weights
from ..stats.arms import HUGE
from ..stats.numbers import Floats, Mask
from ..tables.findings import row_objects
from .choices import AnySpec


def evaluated(per_user: DataFrame) -> AnySpec:
    """Return what `evaluate` wrote into `attrs` of the table; it is empty after a merge.

    It may only replace an argument whose absence would be an error. No number in a result may
    depend on it.
    """
    spec = per_user.attrs.get("recdf")
    return spec if isinstance(spec, Mapping) else {}


def warn_of_weights(per_user: DataFrame, role: str, used: Collection[Any]) -> None:
    """Warn that a table was evaluated with weights, which a call without `weight_col` leaves out.

    After a merge only the name "weight" can tell, which the weights of a mapping have. `used` are
    the columns that the call names for something else.
    """
    spec = evaluated(per_user)
    name = spec.get("weight")
    if not spec and "weight" in list_columns(per_user):
        name = "weight"
    if name is None or name not in per_user or name in used:
        return
    warn_user(
        f"{role} has the weights of its evaluation in {name!r}, and every row counts alike here; "
        f"rd.summarize, ⟦rd.compare_models⟧ and ⟦rd.compare_variants⟧ take ⟦+weight_col={name!r}⟧. "
        "Drop the column if no weights are meant",
        WeightWarning,
    )


def list_columns(per_user: DataFrame) -> list[Any]:
    """Return the `by` columns and the list key: the columns before `n_true` (and `n_rows`); none
    without `n_true`."""
    columns = list(per_user)
    if "n_true" not in columns:
        return []
    return columns[: min(columns.index(name) for name in ("n_rows", "n_true") if name in columns)]


def unit_of(key: Sequence[Any]) -> list[Any]:
    """Return the column of a list key that names who is independent of whom: user_id if it is one,
    else the first."""
    return ["user_id"] if "user_id" in key else list(key[:1])


def unit_word(units: Sequence[Any], key: Sequence[Any]) -> str:
    """Return what a unit of the lists of a key is: a user, a list, or a cluster of lists."""
    if not units or [*units] == unit_of(key):
        return "user"
    return "list" if {*units} == {*key} else "cluster"


def refuse_mixed_models(
    per_user: DataFrame,
    by: Sequence[Any] | None,
    key: Sequence[Any],
    keep: str,
    role: str = "per_user",
) -> None:
    """Raise if recommenders would be averaged together: a group of `by` has the same lists for each
    of them.

    `key` are columns that the caller names as parts of a list, and `keep` says how to average on
    purpose. Where `by` is None, the call takes no groups. Without what `evaluate` wrote, a column
    tells recommenders apart if most lists stand once under each of its values.
    """
    spec = evaluated(per_user)
    columns = list(per_user)
    no_groups, by = by is None, by or []
    apart = [name for name in spec.get("by", []) if name in columns and name not in (*by, *key)]
    lists = [*by, *(name for name in spec.get("user_col", []) if name in columns)]
    mixed = len(lists) > len(by) and apart and len(per_user[apart].drop_duplicates()) > 1
    found = apart if mixed and per_user.duplicated(lists).any() else []
    first = (
        list_columns(per_user)
        or columns[: max((columns.index(name) for name in key), default=-1) + 1]
    )
    first = first or ["user_id"] * ("user_id" in columns)
    listed = [name for name in first if name not in by]
    words = per_user.select_dtypes(["object", "string", "category"]).columns
    for name in [] if spec else [*listed[:-1], *(one for one in words if one not in first)]:
        lists = [*by, *(one for one in listed if one != name)]
        dated = is_datetime64_any_dtype(per_user[name])
        if name in (*by, *key) or dated or len(lists) == len(by):
            continue
        n = per_user[name].nunique(dropna=False)
        if 1 < n <= len(per_user) / n and not per_user.duplicated([*lists, name]).any():
            # A model may lack a few lists.
            whole = per_user.groupby(lists, dropna=False, observed=True).size() == n
            if whole.mean() > 0.5:
                found.append(name)
    if found:
        advice = "select one" if no_groups else f"pass ⟦+by={[*found, *by]}⟧"
        raise DataError(
            f"{role} has each list for several values of {found}, whose rows would be averaged "
            f"together; {advice}, or {keep} if their mean is meant"
        )


__all__ = [
    "Codes",
    "Floats",
    "Mask",
    "distinct",
    "exact_sums",
    "first_rows",
    "group_codes",
    "split",
]

# A metric is one column (a mean) or a pair of columns (a ratio of sums).
MetricColumns = tuple[str, str | None]
# The covariates of each metric.
CovariateColumns = Mapping[str, Sequence[MetricColumns]]


def covariate_name(columns: Iterable[str | None]) -> str:
    """The name that a covariate has in results: its column, or both columns of a ratio."""
    return "/".join(filter(None, columns))


def mean_of(columns: MetricColumns) -> str:
    """The column whose mean a metric is, "" for other ratios: `m` over `m__n` is the mean of m over
    lists."""
    num, den = columns
    return num if den in (None, f"{num}__n") else ""


def read_weight(frame: DataFrame, role: str, name: str) -> Floats:
    """Return a column of weights: finite and at least 0."""
    return read_weights(column(frame, name, role), f"{role}[{name!r}]", Options())


def frame_of(role: str, data: Any) -> DataFrame:
    """Return `data` if it is a DataFrame whose columns can be named."""
    if not isinstance(data, DataFrame):
        refuse_engine_frame(data, role)
        hint = f"; pass {role}.to_pandas()" if hasattr(data, "to_pandas") else ""
        raise TypeError(
            f"{role} is {kind_of(data)}; expected a DataFrame, such as result.per_user{hint}"
        )
    refuse_levels(data, role)
    refuse_twice(data.columns, role)
    return data


def named_frame(role: str, data: Any) -> DataFrame:
    """Return the frame with column names that are strings, as every result has them: 2024 becomes
    "2024"."""
    frame = frame_of(role, data)
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    renamed = frame.copy(deep=False)
    renamed.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
    if not renamed.columns.is_unique:
        twice = renamed.columns[renamed.columns.duplicated()]
        raise ColumnError(
            f"{role} has columns that are equal as text ({examples(twice)}); rename one of each"
        )
    return renamed


def require(frame: Any, role: str, names: Any) -> list[str]:
    """Return one or several names as a list if all are columns of `frame`, which is a DataFrame."""
    table = frame_of(role, frame)
    found = as_columns(names)
    for name in found:
        column(table, name, role)
    return found


def require_labels(frame: DataFrame, role: str, names: Names) -> list[str]:
    """Return the names if all are columns whose values tell rows apart."""
    for name in names:
        label_codes(column(frame, name, role), f"{role}[{name!r}]")
    return list(names)


def by_columns(frame: DataFrame, role: str, by: Any, taken: Names) -> list[str]:
    """Return the columns of `by` if they are there and do not have the name of a column of the
    result."""
    names = require(frame, role, by)
    refuse_taken(names, taken, role)
    return names


def refuse_taken(by: Names, taken: Names, role: str) -> None:
    """Raise if a result has a column with a name of `by`."""
    for name in by:
        if name in taken:
            raise OptionError(f"⟦by={name!r}⟧ is also a column of the result; rename it in {role}")


def refuse_variant(by: Names, variant_col: str | None) -> None:
    """Raise if the column of the variants is among the columns of segments."""
    if variant_col in by:
        raise OptionError(
            f"⟦by={variant_col!r}⟧ is the column of the variant; name columns of segments"
        )


def some_keys(frame: DataFrame, rows: Any, names: Names) -> str:
    """Show up to five distinct keys of the given rows (bool or positions) for a message."""
    names = list(dict.fromkeys(names))
    found = frame[names].iloc[
        np.flatnonzero(rows)[:1000] if np.asarray(rows).dtype == bool else rows
    ]
    return ", ".join(map(repr, list(dict.fromkeys(row_objects(found)))[:5]))


def key_codes(tables: Sequence[tuple[str, DataFrame]], names: Names) -> tuple[list[Codes], int]:
    """Code a composite key over several frames: 0..n−1 in the order of the ids, equal where the
    keys are equal.

    Returns one array of codes per frame, and n. Null keys and kinds that can never match raise.
    """
    if not names:
        raise OptionError("the key has no columns; expected a column name or a list of them")
    return rank_keys([known_ids(frame, role, name) for role, frame in tables] for name in names)


def count_distinct(cell: Codes, n_cells: int, unit: Codes, n_units: int) -> Codes:
    """How many distinct units each cell has; repeated rows of a unit count once."""
    keys = cell * n_units + unit
    span = n_cells * n_units
    # A table of all keys takes less time than sorting if it is not long.
    once = np.flatnonzero(flags_at(keys, span)) if span <= 8 * len(keys) + 1024 else distinct(keys)
    return np.bincount(once // max(n_units, 1), minlength=n_cells)


def metric_specs(
    metrics: Any, frame: DataFrame, role: str, argument: str = "metrics"
) -> dict[str, MetricColumns]:
    """Read `"m"`, `["m", ..]` or `{"name": "m" or ("numerator", "denominator")}` into name →
    columns."""
    if metrics is None:
        raise OptionError(
            f"⟦{argument}=None⟧; expected a column of {role}, a list of them or a mapping"
        )
    named = isinstance(metrics, Mapping)
    pairs = metrics.items() if named else [(name, name) for name in as_columns(metrics)]
    specs: dict[str, MetricColumns] = {}
    for name, value in pairs:
        columns = as_columns(value) if isinstance(value, str | list | tuple) else []
        if not isinstance(name, str) or not 1 <= len(columns) <= 2:
            raise OptionError(
                f"{argument}[{name!r}]={value!r}; expected the name of a column or a pair "
                "(numerator, denominator)"
            )
        if name in specs:
            raise OptionError(f"{argument} names {name!r} twice")
        require(frame, role, columns)
        specs[name] = (columns[0], columns[1] if len(columns) == 2 else None)
    if not specs:
        raise OptionError(f"{argument} is empty; expected at least one column of {role}")
    return specs


LARGEST = 1e300


def metric_values(frame: DataFrame, role: str, name: str, squared: bool = False) -> Floats:
    """Return a metric column as float64 with NaN for null; values that are infinite, not numeric or
    too large for what is made of them raise."""
    numbers = float_column(frame, name, role)
    largest = np.fmax.reduce(np.abs(numbers), initial=0.0)
    if np.isinf(largest):
        n = np.isinf(numbers).sum()
        raise DataError(f"{role}[{name!r}] is infinite in {n:,} of {len(frame):,} rows")
    most, made = (np.nextafter(HUGE, 0.0), "squares") if squared else (LARGEST, "sums")
    if largest > most:
        raise DataError(
            f"{role}[{name!r}] holds values above {most:g} in size, whose {made} are no numbers"
        )
    return numbers


def is_metric(values: pd.Series) -> bool:
    """Whether a column can be a metric: numeric or bool, also as objects, such as Decimals."""
    kinds = "decimal", "integer", "floating", "mixed-integer-float", "boolean"
    return bool(is_numeric_dtype(values) or infer_dtype(values) in kinds)


def float_columns(frames: Sequence[DataFrame], without: Collection[Any] = ()) -> list[str]:
    """The columns that all frames have, of floats in each, in the order of the first."""
    return [
        name
        for name in frames[0].columns
        if name not in without and all(name in one and is_float_dtype(one[name]) for one in frames)
    ]
