"""A warning about a day or another time in `by=`, which scores every day over the users of all days."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from ..errors import TimeByWarning, outside_recdf
from ..inputs.options import Options, as_columns

# A date in `by` can name a model by the day of its training; such models have lists for nearly every user. If more than
# this share of the lists is missing, the dates are taken to be those of the lists.
MANY_MISSING = 0.1


def warn_of_time_by(by: pd.DataFrame, n_lists: np.ndarray, n_missing: int, options: Options) -> None:
    """Warn if `by` names a time and many users have no list at many of its values.

    `by` are the labels of the `by` values, `n_lists` is the number of lists of each, and `n_missing` the number of all
    lists that `pred` does not have.
    """
    times = [name for name in as_columns(options.by) if _is_time(by[name])]
    if not times:
        return
    missing, n_values = n_missing / max(int(n_lists.sum()), 1), by[times[0]][n_lists > 0].nunique()
    if missing > MANY_MISSING and n_values > 1:
        keys = [*as_columns(options.user_col), *times]
        warnings.warn(
            f"by={times[0]!r} is a time, and each of its {n_values:,} values is scored over the users of all of "
            f"them: {missing:.0%} of the lists are missing and score 0. To score each time over its own users, make it "
            f"part of the list key, user_col={keys}, in true and in pred, and group with rd.summarize(per_user, "
            f"by={times[0]!r})",
            TimeByWarning,
            stacklevel=outside_recdf(),
        )


def _is_time(values: pd.Series) -> bool:
    return pd.api.types.is_datetime64_any_dtype(values.dtype) or (
        pd.api.types.infer_dtype(values, skipna=True) in ("date", "datetime", "datetime64", "period")
    )
