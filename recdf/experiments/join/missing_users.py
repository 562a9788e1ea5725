"""What a metric is worth for an assigned user without metrics: 0, its worst value, or nothing that
is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import OptionError
from ...inputs.options import as_columns
from ...inputs.per_user_columns import evaluated
from ...metrics.direction import direction_of
from ..choices import Columns, Missing
from ..experiment_columns import Codes, is_metric


def fill_values(
    metrics: pd.DataFrame,
    names: Sequence[str],
    missing: Missing,
    smaller_is_better: Columns | None,
    larger_is_better: Columns | None,
    known: Mapping[str, float | None],
) -> dict[str, float | None]:
    """Value of every numeric column for users without metrics; None is null.

    A list that was not shown has no hits and no revenue: counts, sums and metrics of which more is
    better, from 0 on, are 0. Where less is better a 0 would be the best value there is, so these
    are null, or with `missing="worst"` their upper bound. Carried columns and weights are null. A
    column whose direction is not known raises. `known` are the values of metrics that another
    process has registered.
    """
    spec = evaluated(metrics)  # after a merge it is lost, and its columns raise
    no_metrics = {*spec.get("carry", {}), spec.get("weight")}
    smaller, larger = as_columns(smaller_is_better), as_columns(larger_is_better)
    found: dict[str, float | None] = {}
    unknown = []
    for name in names:
        if not is_metric(metrics[name]):
            continue
        if name in no_metrics:
            found[name] = None
        elif name in larger or name.startswith("n_") or name.endswith("__n"):
            found[name] = 0.0
        elif name in smaller:
            found[name] = None
        elif name in known:
            found[name] = known[name]
        elif direction_of(name) is None:
            unknown.append(name)
        else:
            found[name] = _registered(name, missing)
    if unknown:
        raise OptionError(
            f"⟦missing={missing!r}⟧: per_user[{unknown[0]!r}] is no metric that recdf knows, so "
            "its value for a user without metrics is not known either. Name it in "
            "⟦+larger_is_better=⟧ (0, such as a revenue) or in ⟦smaller_is_better=⟧ (null, such as "
            f"a waiting time); the same for {unknown}, or drop these columns"
        )
    return found


def known_values(names: Iterable[str], missing: Missing) -> dict[str, float | None]:
    """Value, for users without metrics, of those columns that are metrics registered in this
    process."""
    return {name: _registered(name, missing) for name in names if direction_of(name) is not None}


def _registered(name: str, missing: Missing) -> float | None:
    known = direction_of(name)
    if known is None or known.counts:
        return 0.0
    low, high = known.bounds
    if known.better == "larger" and low == 0:
        return 0.0
    if missing == "worst":
        return low if known.better == "larger" else high if known.better == "smaller" else None
    return None


def zero_is_worst(name: str) -> bool:
    """Whether 0 is what a metric is worth without a list; columns that recdf does not know are
    taken for such."""
    return _registered(name, "zero") is not None


def take_or_fill(values: pd.Series, rows: Codes, fill: float | None) -> pd.Series:
    """Values at rows; row −1 takes `fill`, or null where that is None."""
    dtype = values.dtype
    values = values.reset_index(drop=True)
    if fill is not None and is_metric(values):
        # Label −1 is not in the index, so it takes the fill value, which has the column's type if
        # it can.
        if not (float(fill).is_integer() or pd.api.types.is_float_dtype(dtype)):
            values = values.astype("float64")
        value: Any = values.dtype.type(fill)
        return values.reindex(rows, fill_value=value).reset_index(drop=True)
    if isinstance(dtype, np.dtype) and dtype.kind in "iub" and (rows < 0).any():
        values = values.astype("boolean" if dtype.kind == "b" else "Int64")
    return values.reindex(rows).reset_index(drop=True)
