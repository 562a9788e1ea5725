"""Warnings about a `by` column that tells lists apart and not recommenders: a day, or the variant of a user."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..errors import ByWarning, TimeByWarning, warn_user
from ..inputs.options import Options, as_columns
from ..matching.overlap import Overlap

# A date in `by` can name a model by the day of its training; such models have lists for nearly every user. If more than
# this share of the lists is missing, the dates are taken to be those of the lists.
MANY_MISSING = 0.1
# With fewer lists, as in an example, no key may have lists of two recommenders by chance.
ENOUGH_LISTS = 10


def warn_of_by(by: pd.DataFrame, n_lists: np.ndarray, overlap: Overlap, options: Options) -> None:
    """Warn if the values of `by` are not recommenders that were each run for the whole population.

    `by` are the labels of the `by` values, and `n_lists` is the number of lists of each.
    """
    columns = as_columns(options.by)
    missing, n_values = overlap.n_without_pred / max(int(n_lists.sum()), 1), int(np.count_nonzero(n_lists))
    if not columns or n_values < 2 or missing <= MANY_MISSING or options.by_in_true or overlap.true_by:
        return
    times = [place for place in range(len(columns)) if _is_time(by.iloc[:, place])]
    if times:
        time, n_times = columns[times[0]], by.iloc[:, times[0]][n_lists > 0].nunique()
        keys = [*as_columns(options.user_col), *(columns[place] for place in times)]
        if n_times > 1:
            warn_user(
                f"⟦by={time!r}⟧ is a time, and each of its {n_times:,} values is scored over the users of all of "
                f"them: {missing:.0%} of the lists are missing and score 0. To score each time over its own users, "
                f"make it part of the list key, ⟦user_col={keys}⟧, in true and in pred, and group with "
                f"rd.summarize(per_user, by={time!r})",
                TimeByWarning,
            )
    elif overlap.alone and int(n_lists.sum()) - overlap.n_without_pred >= ENOUGH_LISTS:
        warn_user(
            f"every list of pred has one value of ⟦by={columns}⟧, and each of the {n_values:,} values is scored over "
            f"the users of all of them: {missing:.0%} of the lists are missing and score 0. Where {columns[0]!r} tells "
            f"users or lists apart and not recommenders, take it along instead, ⟦+carry={columns}⟧, and group with "
            f"rd.summarize(result, by={columns})",
            ByWarning,
        )


def _is_time(values: pd.Series) -> bool:
    return pd.api.types.is_datetime64_any_dtype(values.dtype) or (
        pd.api.types.infer_dtype(values, skipna=True) in ("date", "datetime", "datetime64", "period")
    )
