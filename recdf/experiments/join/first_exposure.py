"""When users were exposed to the experiment, and which rows of metrics are older."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ...errors import DataError, examples
from ...inputs.codes import COMPARED_ROWS
from ...inputs.frames import read_numbers
from ...inputs.ids import read_ids
from ..assigned_users import Users
from ..experiment_columns import Codes, Mask

# Datetimes (UTC where they have a zone) or numbers.
Times = npt.NDArray[Any]


@dataclass(frozen=True)
class Exposure:
    """When users were exposed, and when the rows of per_user happened, both as numbers that
    compare.

    `first_row` is the row of assignment of each user's earliest exposure; `early` marks rows of
    per_user before it; `unexposed` users have no time of exposure at all.
    """

    of_user: Times
    of_metric: Times
    first_row: Codes
    early: Mask
    unexposed: Mask


def read_exposure(
    users: Users,
    per_user: pd.DataFrame,
    assignment: pd.DataFrame,
    exposure_col: str | None,
    time_col: str | None,
    roles: tuple[str, str] = ("per_user", "assignment"),
) -> Exposure | None:
    if exposure_col is None or time_col is None:
        return None
    role, assigned_in = roles
    known = assignment[exposure_col].notna().to_numpy()
    if not known.any():
        raise DataError(
            f"{assigned_in}[{exposure_col!r}] is null in all {len(known):,} rows; nobody was "
            "exposed"
        )
    kind, exposed = comparable_times(assignment[known], assigned_in, exposure_col)
    own_kind, times = comparable_times(per_user, role, time_col)
    if kind != own_kind:
        raise DataError(
            f"{role}[{time_col!r}] is {own_kind} and {assigned_in}[{exposure_col!r}] {kind}; they "
            "cannot be compared: bring both to one form (tz_localize gives a naive datetime its "
            "time zone)"
        )
    order = np.argsort(exposed, kind="stable")
    rows = np.flatnonzero(known)[order]
    first_row = np.full(users.n, -1, np.int64)
    # Of several values for one position the last is kept, so the earliest go in last.
    first_row[users.of_assignment[rows[::-1]]] = rows[::-1]
    place = np.zeros(len(known), np.int64)
    place[known] = np.arange(len(exposed))
    has = first_row >= 0
    of_user = exposed[place[np.maximum(first_row, 0)]]
    early = np.empty(len(times), bool)
    for start in range(0, len(times), COMPARED_ROWS):
        part = slice(start, start + COMPARED_ROWS)
        user = users.of_metric[part]
        early[part] = has[user] & (times[part] < of_user[user])
    assigned = np.zeros(users.n, bool)
    assigned[users.of_assignment] = True
    return Exposure(of_user, times, first_row, early, assigned & ~has)


def comparable_times(frame: pd.DataFrame, role: str, name: str) -> tuple[str, Times]:
    """Kind and values of a time column: datetime64 (UTC when it has a zone) or numbers."""
    values, where = frame[name], f"{role}[{name!r}]"
    if values.isna().any():
        raise DataError(
            f"{where} is null in {int(values.isna().sum()):,} of {len(frame):,} rows; expected a "
            "time in each"
        )
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        return "number", read_numbers(values, where)
    instants = pd.api.types.is_datetime64_any_dtype(values.dtype)
    if not instants and pd.api.types.infer_dtype(values) in ("date", "datetime", "datetime64"):
        values = pd.to_datetime(values)  # also dates and datetimes that are Python objects
    read = read_ids(values, where)
    if not read.kind.startswith("datetime"):
        raise DataError(
            f"{where} holds {read.kind} values ({examples(values.head(5))}); parse it with "
            "pd.to_datetime first"
        )
    return read.kind, read.values
