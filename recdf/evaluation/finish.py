"""Make an `Evaluation` from the sum of all parts: raise errors, give warnings, and make both tables
once.

One warning is about a `by` column that tells lists apart and not recommenders: a day, or the
variant of a user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from ..errors import (
    ByWarning,
    ColumnError,
    DataError,
    EngineError,
    IdTypeError,
    OptionError,
    RecdfError,
    TimeByWarning,
    warn_user,
)
from ..inputs.options import Options, as_columns
from ..matching.overlap import Overlap, no_lists
from ..matching.side_tables.records import read_sides
from ..metrics.call import Call
from ..metrics.compute import per_user_frame
from .exposure_sums import counts_of
from .part import TRUTH, Failure, ListRows, Measured, PartResult
from .result import Evaluation
from .spec import Spec, spec_of
from .summary_rows import exposure_rows, summary_table

# A date in `by` can name a model by the day of its training; such models have lists for nearly
# every user. If more than this share of the lists is missing, the dates are taken to be those of
# the lists.
MANY_MISSING = 0.1
# With fewer lists, as in an example, no key may have lists of two recommenders by chance.
ENOUGH_LISTS = 10


def warn_of_by(by: pd.DataFrame, n_lists: np.ndarray, overlap: Overlap, options: Options) -> None:
    """Warn if the values of `by` are not recommenders that were each run for the whole population.

    `by` are the labels of the `by` values, and `n_lists` is the number of lists of each.
    """
    columns = as_columns(options.by)
    missing, n_values = (
        overlap.n_without_pred / max(int(n_lists.sum()), 1),
        int(np.count_nonzero(n_lists)),
    )
    if (
        not columns
        or n_values < 2
        or missing <= MANY_MISSING
        or options.by_in_true
        or overlap.true_by
    ):
        return
    times = [place for place in range(len(columns)) if _is_time(by.iloc[:, place])]
    if times:
        time, n_times = columns[times[0]], by.iloc[:, times[0]][n_lists > 0].nunique()
        keys = [*as_columns(options.user_col), *(columns[place] for place in times)]
        if n_times > 1:
            warn_user(
                f"⟦by={time!r}⟧ is a time, and each of its {n_times:,} values is scored over the "
                f"users of all of them: {missing:.0%} of the lists are missing and score 0. To "
                "score each time over its own users, make it part of the list key, "
                f"⟦user_col={keys}⟧, in true and in pred, and group with rd.summarize(per_user, "
                f"by={time!r})",
                TimeByWarning,
            )
    elif overlap.alone and int(n_lists.sum()) - overlap.n_without_pred >= ENOUGH_LISTS:
        warn_user(
            f"every list of pred has one value of ⟦by={columns}⟧, and each of the {n_values:,} "
            f"values is scored over the users of all of them: {missing:.0%} of the lists are "
            f"missing and score 0. Where {columns[0]!r} tells users or lists apart and not "
            f"recommenders, take it along instead, ⟦+carry={columns}⟧, and group with "
            f"rd.summarize(result, by={columns})",
            ByWarning,
        )


def _is_time(values: pd.Series) -> bool:
    return pd.api.types.is_datetime64_any_dtype(values.dtype) or (
        pd.api.types.infer_dtype(values, skipna=True)
        in ("date", "datetime", "datetime64", "period")
    )


UNCOUNTED = (OptionError, ColumnError, EngineError)  # errors whose messages count no rows


class Finished(NamedTuple):
    """The summary of a population, and the spec."""

    summary: pd.DataFrame
    spec: Spec


def finish(call: Call, result: PartResult) -> Evaluation:
    """Return the evaluation of a population whose parts, with their rows, were measured and added.

    Rows are sorted by `by` value. Within one `by` value the rows of several parts are in the order
    of their buckets.
    """
    summary, spec = finish_summary(call, result)
    rows = _joined_rows(result.rows)
    per_user = per_user_frame(rows, {**rows.carried, **rows.columns})
    per_user.attrs["recdf"] = summary.attrs["recdf"] = spec
    return Evaluation(per_user, summary, cast(dict[str, Any], spec))


def finish_summary(call: Call, result: PartResult) -> Finished:
    """Return only the summary, for engines that keep the rows of lists elsewhere."""
    measured = checked(call, result)
    if not measured.n_lists.any():
        raise no_lists(measured.overlap, call.options)
    if measured.moments is not None and not measured.moments.rows.any():
        raise DataError(
            f"all {measured.n_lists.sum():,} lists have the weight 0, so there is no mean: "
            "weight_col must be above 0 for some lists"
        )
    described, side_counts = measured.side_tables, measured.side_counts
    if described is None:  # a part may have seen only its rows of a side table
        sides = read_sides(call.given, call.options)
        described, side_counts = sides.described(), sides.counts
    counts = {**side_counts, **measured.counts}
    truth = counts.pop(TRUTH, None)
    call.warn(measured.overlap, counts, measured.by)
    warn_of_by(measured.by, measured.n_lists, measured.overlap, call.options)
    exposed = measured.exposed
    if measured.exposure is not None:
        of_parts = counts_of(measured.exposure, call.options, call.given)
        exposed = exposure_rows(of_parts, measured.n_lists, call.requests, call.options)
    of_rows = (measured.order, measured.relevance_col, counts, described)
    spec = spec_of(call.requests, call.options, *of_rows, call.item_by)
    if truth is not None:
        spec["truth"] = f"{truth % 2**64:016x}"
    if call.files:
        spec["files"] = dict(call.files)
    if call.carry:
        spec["carry"] = {str(name): str(rule) for name, rule in call.carry.items()}
    of_lists = (measured.moments, exposed, measured.groups)
    return Finished(summary_table(measured.by, call.requests, *of_lists, call.item_by, spec), spec)


def checked(call: Call, result: PartResult) -> Measured:
    """Return the numbers of a result, or raise the error of its rows or of a part that failed."""
    for role in ("true", "pred"):
        if role in result.findings:
            result.findings[role].settle(role, call.options)
    if result.failure is not None:
        raise told(result.failure, len(result.buckets))
    if result.measured is None:
        raise ValueError("nothing was measured: there is no part")
    return result.measured


def told(failure: Failure, n_buckets: int, of: str = "lists") -> Exception:
    """Return the error of a part; the message says so where it counted only rows of that part."""
    error = failure.error
    uncounted = isinstance(error, UNCOUNTED) or (
        isinstance(error, IdTypeError) and error.count is None
    )
    if n_buckets == 1 or not isinstance(error, RecdfError) or uncounted:
        return error
    told = error.within(
        after=f" (found in one of {n_buckets:,} buckets of {of}; counts are of that one)"
    )
    told.__cause__ = error
    for note in getattr(error, "__notes__", []):
        told.add_note(note)
    return told


def _joined_rows(rows: Mapping[int, ListRows]) -> ListRows:
    """Join the rows of all parts, sorted by `by` value and within one by bucket."""
    parts = [rows[bucket] for bucket in sorted(rows) if len(rows[bucket])]
    if len(parts) == 1:
        return parts[0]
    keys = pd.concat([part.keys for part in parts], ignore_index=True)
    columns = {
        name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns
    }
    list_by = np.concatenate([part.list_by for part in parts])
    order = list_by.argsort(kind="stable")
    taken = {name: values[order] for name, values in columns.items()}
    carried = {
        name: pd.concat([part.carried[name] for part in parts]).take(order).reset_index(drop=True)
        for name in parts[0].carried
    }
    return ListRows(
        keys.take(order).reset_index(drop=True), parts[0].by, list_by[order], taken, carried
    )
