"""Columns of `pred` that are carried into the per-user table: the time of a visit, the variant, the
device.

Contract: a carried column has one value per list, in the dtype that it has in `pred`, and is null
for a list that `pred` does not have. It is a label and not a metric, so it stands before `n_true`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import DataError
from ..inputs.frames import column
from ..inputs.ids import is_nested, label_codes
from ..inputs.sorting import distinct, run_of, spans
from ..matching.lists import Matched
from ..metrics.call import CarryRule
from ..metrics.compute import label_frame


def carried_columns(
    matched: Matched, pred: pd.DataFrame, rules: Mapping[str, CarryRule]
) -> dict[str, pd.Series]:
    """Return each carried column with one value per list, reduced by its rule."""
    if not rules:
        return {}
    known = np.flatnonzero(matched.n_pred > 0)
    length = matched.n_pred[known]
    rows = matched.rows(spans(matched.start[known], length))
    heads = np.cumsum(length) - length
    place = np.full(len(matched), -1, np.int64)
    place[known] = np.arange(len(known))
    found = {}
    for name, rule in rules.items():
        values = _as_pandas(column(pred, name, "pred").reset_index(drop=True))
        if rule == "constant":
            _refuse_changes(values, rows, heads, matched, known)
        of_list = _reduced(values, rule, rows, heads, length)
        if len(known) < len(matched):
            of_list = nullable(of_list).reindex(place).reset_index(drop=True)
        found[name] = of_list
    return found


def check_carried(values: pd.Series, rule: CarryRule) -> None:
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


def _as_pandas(values: pd.Series) -> pd.Series:
    """Return periods, UUIDs and other types that Arrow only stores in the dtype that pandas has for
    them."""
    kind = values.dtype.pyarrow_dtype if isinstance(values.dtype, pd.ArrowDtype) else None
    if not isinstance(kind, pa.BaseExtensionType):
        return values
    natural: pd.DataFrame = pa.table({str(values.name): pa.array(values.array)}).to_pandas()
    return natural.iloc[:, 0]


def _reduced(
    values: pd.Series, rule: CarryRule, rows: np.ndarray, heads: np.ndarray, length: np.ndarray
) -> pd.Series:
    """Reduce a column to one value for each list of `pred`; "first" is the value at the best
    rank."""
    if rule in ("constant", "first", "last"):
        chosen = rows[heads + length - 1] if rule == "last" else rows[heads]
        return values.take(chosen).reset_index(drop=True)
    of_row = values.take(rows).groupby(run_of(length), observed=True)
    try:
        reduced: Any = of_row.min() if rule == "min" else of_row.max()
    except TypeError as error:
        raise DataError(
            f"carry[{values.name!r}]={rule!r}: pred[{values.name!r}] has no order ({error})"
        ) from error
    of_list: pd.Series = reduced.reset_index(drop=True)
    return of_list


def nullable(values: pd.Series) -> pd.Series:
    """Convert integers and bools to the pandas dtypes that have a null; other dtypes have one
    already."""
    dtype = values.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iub":
        nullable: Any = (
            "boolean" if dtype.kind == "b" else dtype.name.replace("u", "U").replace("int", "Int")
        )
        return values.astype(nullable)
    return values


def _refuse_changes(
    values: pd.Series, rows: np.ndarray, heads: np.ndarray, matched: Matched, known: np.ndarray
) -> None:
    """Raise if a list has two different values; a null beside a value counts as two."""
    code = label_codes(values, f"pred[{values.name!r}]")[0][rows]
    change = np.zeros(len(rows), bool)
    change[1:] = code[1:] != code[:-1]
    change[heads] = False
    if not change.any():
        return
    at = np.searchsorted(heads, np.flatnonzero(change), side="right") - 1
    lists = distinct(at)
    label = label_frame(matched).iloc[[known[lists[0]]]].to_dict("records")[0]
    here = values.take(
        rows[heads[lists[0]] : heads[lists[0]] + int(matched.n_pred[known[lists[0]]])]
    )
    some = ", ".join(map(repr, here.drop_duplicates().head(3).tolist()))
    raise DataError(
        f"pred[{values.name!r}] is not constant within {len(lists):,} lists; {label} has {some}. "
        "Carry one of its "
        f'values, e.g. ⟦+carry=⟧{{{values.name!r}: "first"}} (or "last", "min", "max"), or make it '
        "part of the list key"
    )
