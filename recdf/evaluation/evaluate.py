"""`evaluate`: from two frames and the names of metrics to an `Evaluation` with two tidy tables.

Files and engines take the same arguments beside frames, metrics and k. The signature and the
docstring of each of these functions follow from the records of the side tables and of the options.

`finish` makes an `Evaluation` from the sum of all parts: it raises errors, gives warnings, and
makes both tables once. One warning is about a `by` column that tells lists apart and not
recommenders: a day, or the variant of a user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Unpack, cast

import numpy as np
import pandas as pd

from ..docstrings import Function
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
from ..inputs.door import takes_options
from ..inputs.options import CallArguments, Options, as_columns
from ..matching.overlap import Overlap, no_lists
from ..matching.side_tables.sides import SIDE_TABLES, SideTableArguments, read_sides
from ..metrics.call import Call, Carry
from ..metrics.compute import per_user_frame
from ..metrics.strings import Metrics, parse
from .part import Failure, Measured, Part, PartResult, measure
from .result import Evaluation
from .spec import Spec, spec_of
from .summary_rows import counts_of, exposure_rows, summary_table

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
    n_values = int(np.count_nonzero(n_lists))
    missing = overlap.n_without_pred / max(int(n_lists.sum()), 1)
    in_true = options.by_in_true or overlap.true_by
    if not columns or n_values < 2 or missing <= MANY_MISSING or in_true:
        return
    times = [
        place
        for place in range(len(columns))
        if pd.api.types.is_datetime64_any_dtype(by.iloc[:, place].dtype)
        or pd.api.types.infer_dtype(by.iloc[:, place], skipna=True)
        in ("date", "datetime", "datetime64", "period")
    ]
    if times:
        time = columns[times[0]]
        n_times = by.iloc[:, times[0]][n_lists > 0].nunique()
        keys = [*options.list_key, *(columns[place] for place in times)]
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


UNCOUNTED = (OptionError, ColumnError, EngineError)  # errors whose messages count no rows


def finish(call: Call, result: PartResult) -> Evaluation:
    """Return the evaluation of a population that was measured as one part."""
    summary, spec = finish_summary(call, result)
    rows = result.rows
    assert rows is not None
    per_user = per_user_frame(rows, {**rows.carried, **rows.columns})
    per_user.attrs["recdf"] = summary.attrs["recdf"] = spec
    return Evaluation(per_user, summary, cast(dict[str, Any], spec))


def finish_summary(call: Call, result: PartResult) -> tuple[pd.DataFrame, Spec]:
    """Return only the summary and the spec, for engines that keep the rows of lists elsewhere."""
    measured = checked(call, result)
    if not measured.n_lists.any():
        raise no_lists(measured.overlap, call.options)
    if measured.moments is not None and not measured.moments.rows.any():
        raise DataError(
            f"all {measured.n_lists.sum():,} lists have the weight 0, so there is no mean: "
            "weight_col must be above 0 for some lists"
        )
    described = measured.side_tables
    side_counts = measured.side_counts
    if described is None:  # a part may have seen only its rows of a side table
        sides = read_sides(call.given, call.options)
        described = sides.described()
        side_counts = sides.counts
    counts = {**side_counts, **measured.counts}
    call.warn(measured.overlap, counts, measured.by)
    warn_of_by(measured.by, measured.n_lists, measured.overlap, call.options)
    exposed = measured.exposed
    if measured.exposure is not None:
        of_parts = counts_of(measured.exposure, call.options, call.given)
        exposed = exposure_rows(of_parts, measured.n_lists, call.requests, call.options)
    spec = spec_of(call, measured.order, measured.relevance_col, counts, described, measured.truth)
    moments = measured.moments
    return summary_table(call, measured.by, moments, exposed, measured.groups, spec), spec


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
    if (
        n_buckets == 1
        or not isinstance(error, RecdfError)
        or isinstance(error, UNCOUNTED)
        or (error.count is None and (error.column or isinstance(error, IdTypeError)))
    ):
        return error
    told = error.within(
        after=f" (found in one of {n_buckets:,} buckets of {of}; counts are of that one)"
    )
    told.__cause__ = error
    for note in getattr(error, "__notes__", []):
        told.add_note(note)
    return told


class EvaluateArguments(CallArguments, SideTableArguments, total=False):
    """Side tables, `item_by`, `carry` and the shared options as keyword arguments. Side tables may
    be engine frames."""

    item_by: str | None
    carry: Carry


METRIC_ARGUMENTS = """\
metrics : str, Metric, list of them, or mapping of own names to them
    Metrics such as "ndcg@10", "ndcg" (at every `k`) or "mapr(normalizer=achievable)@20".
k : int or list of int, default 10
    Cut-offs of the metrics whose string has none."""

OTHER_ARGUMENTS = """\
item_by : str, optional
    Column of `items` with the groups of each item. The summary then also holds each accuracy metric
    within each group: the metric of the same lists, with only those rows of `true` whose item is in
    the group. The population follows from these rows too. In rows about all items the column is
    null. An item of several groups (`A|B`) counts in each of them.
carry : str, list of str or mapping, optional
    Columns of `pred` to copy into `per_user`, between the key and `n_true`, such as the time and
    the variant of a visit. A column must be constant within each list, unless a mapping such as
    `{"time": "min"}` says how to reduce it: "first" and "last" by rank, "min" or "max". It keeps
    its dtype and is null for lists that `pred` does not have."""


def takes_evaluate_arguments(engine: str = "", results: str = "") -> Callable[[Function], Function]:
    """Show the arguments in the signature and the docstring of a function that takes them as
    `**arguments`.

    `engine` is the name of an engine, whose frames may be side tables too. `results` stands where
    the docstring has this name.
    """
    frame = f"DataFrame (of pandas or {engine})" if engine else "DataFrame"
    sides = "".join(
        f"{name} : {one.kind.replace('DataFrame', frame)}, optional\n    {one.meaning}\n"
        for name, one in SIDE_TABLES.items()
    )
    return takes_options(
        more={**dict.fromkeys(SIDE_TABLES, "Any"), "item_by": "str | None", "carry": "Carry"},
        metrics=METRIC_ARGUMENTS,
        side_tables=sides + OTHER_ARGUMENTS,
        results=results,
    )


def call_of(function: Callable[..., Any], metrics: Any, k: Any, arguments: Any, true: Any) -> Call:
    """Check the arguments of a function that takes `EvaluateArguments`, and return the call."""
    return Call.from_arguments(function, arguments, true, partial(parse, metrics, k))


@takes_evaluate_arguments()
def evaluate(
    true: Any,
    pred: Any,
    metrics: Metrics,
    k: int | Sequence[int] = 10,
    **arguments: Unpack[EvaluateArguments],
) -> Evaluation:
    """Evaluate recommendations: one row per list and one row per metric.

    Parameters
    ----------
    true : DataFrame, mapping or Arrow stream
        One row per (list key, item) that is relevant or judged. It may be None if no metric needs
        it.
    pred : DataFrame, mapping or Arrow stream
        One row per (list key, item) that was recommended, with a score, a rank, or in row order.
    {metrics}
    {side_tables}
    {options}

    Returns
    -------
    Evaluation
        `.per_user` (one row per list of the population and `by` value), `.summary` (one row per
        `by` value, metric and k; metrics of exposure stand here alone), `.spec`.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError,
    UndefinedMetricError
        If no correct number can be computed from the input; the message names the argument, the
        column, what was found and what was expected.

    Examples
    --------
    >>> import recdf as rd
    >>> true = {"ann": ["a", "b"], "bob": ["c"]}
    >>> pred = {"ann": ["a", "x", "b"], "bob": ["x", "y", "z"]}
    >>> result = rd.evaluate(true, pred, ["hitrate", "recall"], k=[1, 3])
    >>> result.per_user
      user_id  n_true  n_pred  hitrate@1  hitrate@3  recall@1  recall@3
    0     ann       2       3        1.0        1.0       0.5       1.0
    1     bob       1       3        0.0        0.0       0.0       0.0
    >>> result.summary[["metric", "k", "value", "n"]]
        metric  k  value  n
    0  hitrate  1   0.50  2
    1  hitrate  3   0.50  2
    2   recall  1   0.25  2
    3   recall  3   0.50  2
    """
    call = call_of(evaluate, metrics, k, arguments, true)
    return finish(call, measure(call, Part(true, pred)))
