"""Run kernels. Their values, one per list or one for all lists, are kept within bounds; undefined
ones are settled.

The per-user table has one row per list, with the labels of the list and the values of the metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..errors import ColumnError, DataError, OptionError, UndefinedMetricError
from ..inputs.options import Options
from ..inputs.sorting import exact_sums
from ..matching.counts import Counts
from ..matching.hits import ratio
from ..matching.list_keys import KeyColumns, labels_at
from ..matching.lists import Matched
from ..stats.numbers import Floats, undefined_is_nan
from .record import Request


def label_frame(matched: Labelled) -> DataFrame:
    """Return the `by` and list key columns, one row per list."""
    return per_user_frame(matched, {})


class Labelled(Protocol):
    """Lists with their labels: the labels of each key, the labels of the `by` values, and the `by`
    row of each list."""

    @property
    def keys(self) -> KeyColumns: ...
    @property
    def by(self) -> DataFrame: ...
    @property
    def list_by(self) -> np.ndarray: ...


def per_user_frame(matched: Labelled, columns: Mapping[str, np.ndarray | pd.Series]) -> DataFrame:
    """Return the `by` and list key columns followed by other columns, one row per list."""
    by = labels_at(matched.by, [*matched.by.columns], matched.list_by)
    labels = [(str(name), one) for name, one in (*by.items(), *matched.keys.items())]
    found = dict(labels)
    if len(found) < len(labels):
        raise ColumnError(f"the key and by columns {[name for name, _ in labels]} have equal names")
    more = {str(name): one for name, one in columns.items()}
    taken = [name for name in more if name in found]
    if taken:
        raise ColumnError(
            f"the key or by column {taken[0]!r} has the name of a result column; rename it"
        )
    # copy=False, since pandas would otherwise copy millions of lists times many metrics.
    return DataFrame({**found, **more}, copy=False)


def compute(matched: Matched, request: Request, options: Options) -> dict[str, Floats]:
    """Compute the values per list of one request, by column, with what undefined ones count as."""
    found = defined_values(matched, request, options)
    return {column: settle_undefined(values, request, options) for column, values in found.items()}


def defined_values(matched: Matched, request: Request, options: Options) -> dict[str, Floats]:
    """Compute the values per list of one request, by column; undefined ones are NaN, or raise where
    that is asked."""
    lists = matched.at(request.k)
    found = _run_kernel(request, lists)
    parts = found if isinstance(found, tuple) else (found,)
    columns = request.columns
    if len(parts) != len(columns):
        raise TypeError(
            f"metric {request.metric.name!r} returned {len(parts)} arrays, expected {len(columns)}"
        )
    result = {}
    for column, part in zip(columns, parts, strict=True):
        values = np.asarray(part, dtype=np.float64)
        if values is part and not (request.metric.built_in and values.flags.writeable):
            # The kernel may keep the array; built-in kernels share read-only arrays.
            values = values.copy()
        if values.shape != (len(lists),):
            raise TypeError(
                f"metric {request.metric.name!r} returned shape {values.shape}, expected one value "
                f"per list, ({len(lists)},)"
            )
        values = _within_bounds(values, request, matched)
        count = {} if options.convention is None else options.convention.undefined
        if request.metric.name in count:
            empty = (lists.n_true if count[request.metric.name] == "n_true" else lists.n_pred) == 0
            values = np.where(empty, np.nan, values)
        result[column] = _refuse_undefined(column, values, options)
    return result


def compute_counts(
    counts: Counts, request: Request, options: Options
) -> tuple[list[object], Floats]:
    """Compute one request from the counts of a `by` value: the groups of items that have a number
    each, or None for all, and the numbers.

    Undefined numbers are NaN, or raise where that is asked.
    """
    value = _run_kernel(request, counts)
    parts = value if isinstance(value, dict) else {None: value}
    if parts is value and None in parts:
        raise TypeError(f"metric {request.metric.name!r} returned the group None; expected a label")
    values = _within_bounds(np.array(list(parts.values()), np.float64), request)
    return list(parts), _refuse_undefined(request.columns[0], values, options)


def _run_kernel(request: Request, of: object) -> Any:
    """Call the kernel, in which 0/0 is NaN, that is undefined; an error names the request in which
    it was raised."""
    try:
        with naming(request), undefined_is_nan():
            if request.pooled and isinstance(of, Counts):
                return float(ratio(*of.summed(*request.sums[0])))
            return request.metric.kernel(of, **request.params)
    except (Exception, SystemExit) as error:
        if not request.metric.built_in and not isinstance(error, OptionError):
            error.add_note(f"raised in the metric {request.definition}")
        raise


@contextmanager
def naming(request: Request) -> Iterator[None]:
    """Put the name of a request before the message of an error about its options."""
    try:
        yield
    except OptionError as error:
        raise error.within(f"{request.definition}: ") from None


def _within_bounds(values: Floats, request: Request, matched: Matched | None = None) -> Floats:
    """Set values that exceed a bound only by rounding to that bound. Raise if another value of a
    metric of one's own, of `matched` lists or of all, is outside the bounds that it declares."""
    low, high = request.bounds
    least, most = (-np.inf if low is None else low), (np.inf if high is None else high)
    beyond = (values < least) | (values > most)
    if not beyond.any():
        return values
    nearest = np.clip(values, least, most)
    near = np.isclose(values, nearest, rtol=1e-12, atol=1e-12)
    outside = np.flatnonzero(beyond & ~near)
    if len(outside) and not request.metric.built_in:
        where = "all lists"
        if matched is not None:
            where = f"the list {label_frame(matched).iloc[outside[:1]].to_dict('records')[0]}"
        raise DataError(
            f"{request.metric.name} is {values[outside[0]]:g} for {where}, outside its bounds "
            f"[{low}, {high}] in {len(outside):,} of {len(values):,} values; declare what it can "
            "be, as in @rd.metric(bounds=(0, None))"
        )
    return np.where(beyond & near, nearest, values)


def _refuse_undefined(column: str, values: Floats, options: Options) -> Floats:
    """Return the values, or raise if one is undefined and the option `undefined` is "raise"."""
    if options.undefined == "raise" and (missing := np.isnan(values)).any():
        raise UndefinedMetricError(
            f"{column} has no value for {missing.sum():,} of {len(values):,} lists; "
            '⟦undefined="raise"⟧',
            column=column,
            count=int(missing.sum()),
        )
    return values


def settle_undefined(values: Floats, request: Request, options: Options) -> Floats:
    """Replace undefined values by what they count as with `undefined="zero"` and "one".

    With "zero" it must never be the best value there is. Where a 0 could be that, it is the worst
    bound, or NaN without one: the value stays undefined.
    """
    if options.undefined not in ("zero", "one") or not (missing := np.isnan(values)).any():
        return values
    (low, high), better, counts = request.bounds, request.better, float(options.undefined == "one")
    if not counts and (better == "smaller" or (better and high is not None and high <= 0)):
        worst = high if better == "smaller" else low
        counts = np.nan if worst is None else worst
    return np.where(missing, counts, values)


def mean(values: Floats, weights: Floats | None = None) -> float:
    """Return the mean of the defined values, or NaN if there are none; with weights Σ w·x / Σ w."""
    defined = ~np.isnan(values)
    w = np.ones(np.count_nonzero(defined)) if weights is None else weights[defined]
    return float(ratio(exact_sums(w * values[defined]), exact_sums(w))[0])
