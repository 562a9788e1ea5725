"""From rows by session or day to one row per randomisation unit, without spoiling ratios, and
without the rows before the exposure."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas import DataFrame
from pandas.api.types import (
    is_bool_dtype,
    is_float_dtype,
    is_numeric_dtype,
)

from ...errors import DataError, OptionError
from ...inputs.door import takes_options
from ...inputs.frames import OneRecord, as_datetimes, read_numbers
from ...inputs.ids import read_ids
from ...judge.choices import Columns, Options, Roll, as_columns, check_value
from ...judge.per_user_columns import (
    Codes,
    Mask,
    distinct,
    evaluated,
    exact_sums,
    first_rows,
    is_metric,
    key_codes,
    list_columns,
    metric_values,
    require,
)
from ...judge.users import Users
from ...metrics.strings import direction_of

# ------------------------------------------------------------------------------------------
# When users were exposed to the experiment, and which rows of metrics are older.


# Datetimes (UTC where they have a zone) or numbers.
Times = npt.NDArray[Any]


class Exposure(NamedTuple):
    """When users were exposed, and when the rows of per_user happened, both as numbers that
    compare.

    `first_row` is the row of assignment of each user's earliest exposure, −1 of users who have no
    time of exposure at all; `early` marks rows of per_user before it.
    """

    of_user: Times
    of_metric: Times
    first_row: Codes
    early: Mask


def read_exposure(
    users: Users,
    per_user: DataFrame,
    assignment: DataFrame,
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
            "time zone)",
            column=time_col,
        )
    rows = np.flatnonzero(known)[np.argsort(exposed, kind="stable")]
    first_row = np.full(users.n, -1, np.int64)
    # Of several values for one position the last is kept, so the earliest go in last.
    first_row[users.of_assignment[rows[::-1]]] = rows[::-1]
    of_user = exposed[(np.cumsum(known) - 1)[first_row]]
    early = (first_row >= 0)[users.of_metric] & (times < of_user[users.of_metric])
    return Exposure(of_user, times, first_row, early)


def comparable_times(frame: DataFrame, role: str, name: str) -> tuple[str, Times]:
    """Kind and values of a time column: datetime64 (UTC when it has a zone) or numbers."""
    values = frame[name]
    where = f"{role}[{name!r}]"
    if values.isna().any():
        raise DataError(
            f"{where} is null in {values.isna().sum():,} of {len(frame):,} rows; expected a "
            "time in each"
        )
    if is_numeric_dtype(values) and not is_bool_dtype(values):
        return "number", read_numbers(values, where)
    read = read_ids(as_datetimes(values, where), where)
    return read.kind, read.values


# ------------------------------------------------------------------------------------------
# From rows by session or day to one row per randomisation unit, without spoiling ratios.


# Devices of one person, on average: with more, a column names something else than persons.
MOST_OF_ONE = 10


@takes_options("unit_col")
def roll_up(
    per_user: DataFrame,
    unit_col: Columns = "user_id",
    how: Roll | Mapping[str, Roll] = "mean",
    *,
    over: Columns | None = None,
    rolled_by: Roll | None = None,
    options: Options | None = None,
) -> DataFrame:
    """Roll rows by session or day up to one row per unit, such as the user that was randomised.

    With r the rows of a unit where metric m is defined: sum = Σ_r m, mean = Σ_r m / |r|. Beside
    every metric that is averaged or can be undefined stands `<metric>__n` = |r|, so that no
    denominator is lost:

    * after `how="sum"` the ratio `{"ctr": ("hits@10", "n_pred")}` is clicks per shown item, and
      `{"ndcg by session": ("ndcg@10", "ndcg@10__n")}` the mean over sessions, both with an interval
      that knows the unit;
    * after `how="mean"` the metric itself is the mean over units, each counting once.

    Parameters
    ----------
    per_user : DataFrame
        One row per list, such as `result.per_user` evaluated with `user_col=["user_id",
        "session_id"]`.
    unit_col : str or list of str, default "user_id"
        Columns that name a unit. Add the `by` columns (`["model", "user_id"]`): rows of two models
        must not mix.
    how : {"mean", "sum", "min", "max"} or mapping, default "mean"
        One rule for every numeric column (bool counts as 0 and 1), or column → rule for the columns
        to keep.

    over : str or list of str, optional
        Columns that the rows of a unit differ in (session, day), and that are no metrics. Default:
        the columns of the list key, where it is known that per_user came from `evaluate`.
    rolled_by : {"mean", "sum", "min", "max"}, optional
        Rule by which per_user was rolled up in a first step. Default: the rule of `roll_up`, where
        that is known.
    options : Options, optional
        `user_col` of a project, as `unit_col`, where that is not given here.

    Returns
    -------
    DataFrame
        One row per unit in order of first appearance: unit columns, `n_rows` (int64: rows of the
        unit), then the metrics. Sums of integers stay int64; everything else is float64, NaN where
        a unit has no defined row. Columns that are not numeric (session ids, dates) and the other
        columns of the list key are left out. Rolling up in two steps (session, day, user) by one
        rule equals one step: `n_rows` and `<metric>__n` of the first step are summed and weigh its
        means.

    Raises
    ------
    ColumnError
        If a unit or mapped column is missing.
    NullKeyError
        If a unit is null.
    OptionError
        If `how` is unknown, or a frame rolled up by sums is now to be averaged (or the reverse).
    DataError
        If a metric is infinite or not numeric; if `per_user` was evaluated `by` columns that
        `unit_col` lacks; if a merge has lost what tells sessions from models and ids from counts,
        and neither `over` nor `how` says it.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> sessions = pd.DataFrame(
    ...     {"user_id": [1, 1, 2], "n_pred": [10, 5, 10], "ndcg@10": [0.5, 0.2, None]}
    ... )
    >>> rd.experiments.roll_up(sessions, how="sum")
       user_id  n_rows  n_pred  ndcg@10  ndcg@10__n
    0        1       2      15      0.7           2
    1        2       1      10      NaN           0
    """
    units = require(per_user, "per_user", unit_col)
    rolled_over = require(per_user, "per_user", over)
    rules = (
        dict(how)
        if isinstance(how, Mapping)
        else _rules(per_user, units, how, rolled_over, rolled_by)
    )
    require(per_user, "per_user", list(rules))
    for name, rule in rules.items():
        check_value(f"how[{name!r}]", rule, Roll)
    (codes,), n = key_codes([("per_user", per_user)], units)
    _refuse_parts(per_user, [*units, *rolled_over], codes, n)

    first = first_rows(codes, n)

    def counted(name: str, otherwise: Any) -> tuple[Codes, Codes]:
        """How many earlier rows each row and each unit stand for, by a column of a first step."""
        counts = otherwise
        if name in per_user:
            counts = read_numbers(per_user[name], f"per_user[{name!r}]").astype(np.int64)
        return counts, np.bincount(codes, counts, n).astype(np.int64)

    data: dict[str, Any] = {"n_rows": counted("n_rows", np.ones(len(codes)))[1]}
    for name, rule in rules.items():
        if name == "n_rows" or (name.endswith("__n") and name[:-3] in per_user):
            continue  # the `<metric>__n` of another column comes with that column
        dtype = per_user[name].dtype
        whole = rule != "mean" and isinstance(dtype, np.dtype) and dtype.kind in "iub"
        values: Any = (
            per_user[name].to_numpy().astype(np.int64)
            if whole
            else metric_values(per_user, "per_user", name)
        )
        if whole or rule in ("min", "max"):
            data[name] = np.zeros(n, values.dtype) if rule == "sum" else values[first]
            {"sum": np.add, "min": np.fmin, "max": np.fmax}[rule].at(data[name], codes, values)
            continue
        defined = ~np.isnan(values)
        weight, counts = counted(f"{name}__n", defined)
        values = np.where(defined, values, 0.0)
        sums = exact_sums(values * weight if rule == "mean" else values, codes, n)
        divisor = counts if rule == "mean" else 1
        data[name] = np.where(counts > 0, sums / np.maximum(divisor, 1), np.nan)
        data[f"{name}__n"] = counts
    order = np.argsort(first)
    result = per_user[units].iloc[first[order]].reset_index(drop=True)
    result = pd.concat([result, DataFrame(data).take(order).reset_index(drop=True)], axis=1)
    result.attrs = copy.deepcopy(per_user.attrs)
    result.attrs["recdf_roll_up"] = OneRecord(
        {"unit": units, "how": how if isinstance(how, str) else dict(how)}
    )
    return result


def is_count(name: str) -> bool:
    """Whether a column has the name of a count, or of the rows that a metric has."""
    return name.startswith("n_") or name.endswith("__n")


def _rules(
    per_user: DataFrame, units: list[str], how: Roll, over: list[str], rolled_by: Roll | None
) -> dict[str, Roll]:
    """Column → rule, for the columns that are rolled up by one rule.

    Raises unless it is known that what is left of the list's columns are sessions or days and not
    models, that whole numbers are no ids, and that an earlier step had the same rule: a mean of
    sums would weigh the units by nothing that has a name. Which of these a column is stands in
    attrs alone, which a merge loses; then the caller must say it.
    """
    before = per_user.attrs.get("recdf_roll_up", {}).get("how") if rolled_by is None else rolled_by
    if before is None and "n_rows" in per_user:
        raise OptionError(
            "per_user has a column n_rows, so it was rolled up before; say by which rule in "
            f"⟦+rolled_by=⟧, such as ⟦+rolled_by={how!r}⟧"
        )
    if isinstance(before, str) and before != how:
        raise OptionError(
            f"⟦how={how!r}⟧, but per_user was rolled up by ⟦how={before!r}⟧; use one rule for all "
            "steps"
        )
    spec = evaluated(per_user)
    by = as_columns(spec.get("by"))
    keys = as_columns(spec.get("user_col"))
    if mixed := [name for name in by if name in per_user and name not in units]:
        raise DataError(
            f"per_user was evaluated by {mixed}, which ⟦unit_col={units}⟧ lacks; a unit would mix "
            f"them: pass ⟦+unit_col={[*mixed, *units]}⟧, or select one of them first"
        )
    known = {*units, *over, *keys, *spec.get("carry", {}), spec.get("weight")}
    listed = list_columns(per_user)
    if unknown := [name for name in listed if name not in known]:
        raise DataError(
            f"per_user has {unknown} before n_true, beside ⟦unit_col={units}⟧; name in ⟦+over=⟧ "
            "the columns that the rows of a unit are rolled up over (sessions, days), and add to "
            "⟦+unit_col=⟧ those that must not be mixed (models)"
        )
    left_out = {*units, *over, *listed, *keys}
    numbers = [
        name for name in per_user.columns if name not in left_out and is_metric(per_user[name])
    ]
    unknown = [
        name
        for name in numbers
        if not (is_float_dtype(per_user[name]) or direction_of(name) or is_count(name))
        and not (metric_values(per_user, "per_user", name) % 1 > 0).any()
    ]
    if unknown and not spec:
        raise DataError(
            f"per_user has whole numbers in {unknown}, which may be ids or counts; name in "
            "⟦+over=⟧ the columns that the rows of a unit are rolled up over, or give every metric "
            "its rule, such as ⟦+how={'clicks': 'sum'}⟧"
        )
    return dict.fromkeys(numbers, how)


def _refuse_parts(per_user: DataFrame, named: Sequence[str], units: Codes, n_units: int) -> None:
    """Raise if the units are parts of what stands before them in the list key: devices of
    persons."""
    listed = list_columns(per_user)
    last = max((i for i, name in enumerate(listed) if name in named), default=0)
    for name in [one for one in listed[:last] if one not in named]:
        (whole,), n = key_codes([("per_user", per_user)], [name])
        # A column of few values tells models, days or countries apart, and not persons.
        if len(distinct(units * n + whole)) == n_units > n >= n_units / MOST_OF_ONE:
            raise DataError(
                f"several units are of one {name!r}, which stands before them in the list key; "
                f"pass ⟦+unit_col={name!r}⟧, or drop the column if the units are to be apart"
            )
