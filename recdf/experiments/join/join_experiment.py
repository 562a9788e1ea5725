"""Join per-user metrics to an experiment assignment table: users are matched, and every assigned
user gets a value."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from ...errors import DataError, OptionError, RecdfWarning, warn_user
from ...inputs.codes import encode_keys, first_rows
from ...inputs.constraints import check_record
from ...inputs.door import takes_options
from ...inputs.frames import OneRecord
from ...inputs.ids import read_by
from ...inputs.sorting import last_places
from ...judge.cautions import HEALTH_ALPHA
from ...judge.choices import Columns, Missing, MultiVariant, Options, RaiseOrDrop, Roll, as_columns
from ...judge.per_user_columns import (
    Codes,
    Mask,
    count_distinct,
    distinct,
    evaluated,
    group_codes,
    is_metric,
    metric_values,
    named_frame,
    require,
    some_keys,
)
from ...judge.users import LEFT_OUT, Users, match_users, only_rows, refuse_several
from ...metrics.strings import direction_of
from ...stats.shares import equal_shares_test
from ...tables.cells import number
from .roll_up import is_count, read_exposure, roll_up

# ------------------------------------------------------------------------------------------
# What a metric is worth for an assigned user without metrics: 0, its worst value, or nothing that
# is known.


# The value of each column for users without metrics; None is null.
Fills = dict[str, float | None]


def fill_values(
    metrics: DataFrame,
    names: Sequence[str],
    missing: Missing,
    smaller_is_better: Columns | None,
    larger_is_better: Columns | None,
    known: Mapping[str, float | None],
    role: str = "per_user",
) -> Fills:
    """Value of every numeric column for users without metrics; None is null.

    A list that was not shown has no hits and no revenue: counts, sums and metrics of which more is
    better, from 0 on, are 0. Where less is better a 0 would be the best value there is, so these
    are null, or with `missing="worst"` their upper bound. Carried columns and weights are null. A
    column whose direction is not known raises. `known` are the values of metrics that another
    process has registered.
    """
    spec = evaluated(metrics)  # after a merge it is lost, and its columns raise
    no_metrics = {*spec.get("carry", {}), spec.get("weight")}
    stated = {**known, **dict.fromkeys(as_columns(smaller_is_better))}
    stated |= dict.fromkeys(as_columns(larger_is_better), 0.0)
    found: Fills = {}
    unknown = []
    for name in [one for one in names if is_metric(metrics[one])]:
        if name in no_metrics:
            found[name] = None
        elif is_count(name):
            found[name] = 0.0
        elif name in stated:
            found[name] = stated[name]
        elif direction_of(name) is None:
            unknown.append(name)
        else:
            found[name] = _registered(name, missing)
    if unknown:
        raise OptionError(
            f"⟦missing={missing!r}⟧: {role}[{unknown[0]!r}] is no metric that recdf knows, so "
            "its value for a user without metrics is not known either. Name it in "
            "⟦+larger_is_better=⟧ (0, such as a revenue) or in ⟦smaller_is_better=⟧ (null, such as "
            f"a waiting time); the same for {unknown}, or drop these columns"
        )
    return found


def known_values(names: Iterable[str], missing: Missing) -> Fills:
    """Value, for users without metrics, of those columns that are metrics registered in this
    process."""
    return {name: _registered(name, missing) for name in names if direction_of(name) is not None}


def _registered(name: str, missing: Missing) -> float | None:
    known = direction_of(name)
    if known is None or known.counts or (known.better == "larger" and known.bounds[0] == 0):
        return 0.0
    if missing != "worst" or known.better is None:
        return None
    return known.bounds[0 if known.better == "larger" else 1]


def zero_is_worst(name: str) -> bool:
    """Whether 0 is what a metric is worth without a list; columns that recdf does not know are
    taken for such."""
    return _registered(name, "zero") is not None


def take_or_fill(values: Series, rows: Codes, fill: float | None) -> Series:
    """Values at rows; row −1 takes `fill`, or null where that is None."""
    if fill is not None and values.dtype == object:
        values = Series(metric_values(values.to_frame("metric"), "per_user", "metric"))
    dtype = values.dtype
    values = values.reset_index(drop=True)
    value: Any = None
    if fill is not None:
        # Label −1 is not in the index, so it takes the fill value, which has the column's type if
        # it can.
        if not (float(fill).is_integer() or pd.api.types.is_float_dtype(dtype)):
            values = values.astype("float64")
        value = values.dtype.type(fill)
    elif isinstance(dtype, np.dtype) and dtype.kind in "iub" and (rows < 0).any():
        values = values.astype("boolean" if dtype.kind == "b" else "Int64")
    return values.reindex(rows, fill_value=value).reset_index(drop=True)


# ------------------------------------------------------------------------------------------
# The work of `join_experiment`: users of both frames are matched, and every assigned user gets a
# row.
#
# Contract: `read_frames` checks, `join_frames` joins. The frames may hold some users of a
# population with all their rows.


@dataclass(frozen=True)
class JoinOptions:
    """The options of `join_experiment`, with the values that it explains."""

    keys: list[str]
    variant_col: str
    by: list[str]
    missing: Missing = "raise"
    multi_variant: MultiVariant = "raise"
    unassigned: RaiseOrDrop = "drop"
    exposure_col: str | None = None
    time_col: str | None = None
    smaller_is_better: Columns | None = None
    larger_is_better: Columns | None = None
    how: Roll | Mapping[str, Roll] | None = None
    over: Columns | None = None
    # Values for users without metrics, of metrics that are registered in another process.
    known: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def time(self) -> list[str]:
        return as_columns(self.time_col)


class Frames(NamedTuple):
    """Both frames with their columns checked, and their users."""

    per_user: DataFrame
    assignment: DataFrame
    users: Users
    variant: Codes


def read_frames(per_user: DataFrame, assignment: DataFrame, options: JoinOptions) -> Frames:
    """Check the options and the columns of both frames, and code their users."""
    check_record(options)
    if (options.exposure_col is None) != (options.time_col is None):
        raise OptionError(
            "⟦exposure_col=⟧ (of assignment) and ⟦time_col=⟧ (of per_user) go together"
        )
    if options.multi_variant == "first" and options.exposure_col is None:
        raise OptionError(
            '⟦multi_variant="first"⟧ counts a user in the variant seen first, which needs the time '
            "of the exposure: ⟦+exposure_col=⟧ and ⟦+time_col=⟧"
        )
    keys = options.keys
    variant_col = options.variant_col
    per_user = named_frame("per_user", per_user)
    assignment = named_frame("assignment", assignment)
    require(assignment, "assignment", [*keys, variant_col, *as_columns(options.exposure_col)])
    named = require(per_user, "per_user", [*keys, *options.by, *options.time])
    if isinstance(options.how, Mapping):
        # A column without a rule does not come along, so it may be in both frames.
        ruled = {*named, *options.how}
        per_user = per_user[[one for one in per_user if one not in assignment or one in ruled]]
    # Rolling up leaves out what stands behind the key in that of the lists, such as devices.
    listed = as_columns(evaluated(per_user).get("user_col")) if options.how is not None else []
    last = max((i for i, name in enumerate(listed) if name in keys), default=len(listed))
    may_be_in_both = {*keys, *listed[last + 1 :]}
    if both := [one for one in per_user if one in assignment and one not in may_be_in_both]:
        raise DataError(
            f"per_user and assignment both have {', '.join(map(repr, both))}; rename or drop one "
            f"of them, e.g. assignment.rename(columns={{{both[0]!r}: {f'assigned_{both[0]}'!r}}})"
        )
    for role, frame in (("per_user", per_user), ("assignment", assignment)):
        if taken := {"has_metrics", "n_before_exposure", LEFT_OUT}.intersection(frame):
            raise DataError(
                f"{role} has a column {min(taken)!r}, which join_experiment writes; rename it"
            )
    users, variant, _ = match_users(per_user, assignment, keys, variant_col)
    return Frames(per_user, assignment, users, variant)


def arms_left_out(frames: Frames, variant_col: str) -> DataFrame:
    """Return, in a row for the code of each variant, how many of its users were in several
    variants (`lost`), and how many `stayed`."""
    _, assignment, users, variant = frames
    n = int(variant.max(initial=-1)) + 1
    user = users.of_assignment
    twice = users.several[user]
    lost, stayed = (
        count_distinct(variant[some], n, user[some], users.n) for some in (twice, ~twice)
    )
    labels = assignment[[variant_col]].iloc[first_rows(variant, n)].reset_index(drop=True)
    return labels.assign(lost=lost, stayed=stayed)


def join_frames(
    frames: Frames, options: JoinOptions, by_values: DataFrame | None = None
) -> DataFrame:
    """Join users who have been matched: all users, or some of them with all their rows.

    Some users may lack a `by` value that others have, so `by_values` names all of them.
    """
    per_user, assignment, users, variant = frames
    keys = options.keys
    by = options.by
    missing = options.missing
    if options.multi_variant == "raise":
        advice = (
            'fix the table or pass ⟦+multi_variant="first"⟧ with the times of exposure, or '
            '⟦+multi_variant="drop"⟧'
        )
        several = users.of_assignment, users.several
        refuse_several("assignment", assignment, *several, keys, advice)
    if users.n_unassigned and options.unassigned == "raise":
        raise DataError(
            f"{users.n_unassigned:,} users of per_user are in no variant "
            f"({some_keys(per_user, users.stranger, keys)})"
        )
    exposure = read_exposure(users, per_user, assignment, options.exposure_col, options.time_col)
    early = np.zeros(len(per_user), bool) if exposure is None else exposure.early
    kept_users = ~users.several | (options.multi_variant == "first")
    # The row of assignment of each user: the first, or that of the earliest exposure.
    first = first_rows(users.of_assignment, users.n)
    chosen = first if exposure is None else exposure.first_row
    assigned = np.sort(chosen[(chosen >= 0) & kept_users])
    group, groups = _by_groups(per_user, by, by_values)
    cell = group * users.n + users.of_metric
    rows, metrics = _metric_rows(
        per_user.drop(columns=options.time), options, ~early, cell, len(groups) * users.n
    )
    # The cells of the result in its order: by value, then row of assignment.
    in_group = np.repeat(np.arange(len(groups)), len(assigned))
    row = np.tile(assigned, len(groups))
    at = in_group * users.n + users.of_assignment[row]
    present = np.ones(len(at), bool)
    if exposure is not None and by:
        # A user who was exposed after the last row of anyone in a week had no chance to have
        # metrics in it.
        last = Series(exposure.of_metric).groupby(group).max().reindex(range(len(groups)))
        present = exposure.of_user[at % users.n] <= last.to_numpy()[in_group]
    of_metrics = rows[at]
    found = of_metrics >= 0
    lacking = row[present & ~found]
    if len(lacking) and missing == "raise":
        absent = distinct(lacking)
        raise DataError(
            f"{len(absent):,} of {len(assigned):,} assigned users have no metrics "
            f"({some_keys(assignment, absent, keys)}); "
            'pass ⟦+missing="zero"⟧ if no list means no value for the user, "nan" to keep them '
            'undefined, or "drop"'
        )
    carried = [name for name in metrics.columns if name not in {*keys, *by}]
    fills: Fills = {}
    if missing in ("zero", "worst") and len(lacking):
        named = options.smaller_is_better, options.larger_is_better
        fills = fill_values(metrics, carried, missing, *named, options.known)
    kept = np.flatnonzero(present & found if missing == "drop" else present)
    of_metrics = of_metrics[kept]
    taken = {name: take_or_fill(metrics[name], of_metrics, fills.get(name)) for name in carried}
    labels = groups[by].iloc[in_group[kept]], assignment.iloc[row[kept]]
    result = pd.concat([one.reset_index(drop=True) for one in (*labels, DataFrame(taken))], axis=1)
    result["has_metrics"] = found[kept]
    if options.time:
        result["n_before_exposure"] = np.bincount(cell[early], minlength=len(rows))[at[kept]]
    if options.multi_variant == "drop":
        arms = arms_left_out(frames, options.variant_col)
        each = arms["lost"] / arms["stayed"].clip(lower=1)
        result[LEFT_OUT] = each.to_numpy()[variant[row[kept]]]
    result.attrs = copy.deepcopy(per_user.attrs)
    result.attrs["recdf_experiment"] = OneRecord(
        {
            "user_col": keys,
            "variant_col": options.variant_col,
            "by": by,
            "missing": missing,
            "n_assigned": len(assigned),
            "n_missing": len(lacking),
            "n_unassigned": users.n_unassigned,
            "n_multi_variant": int((~kept_users).sum()),
            "n_repeated": len(assignment) - users.n_assigned,
            "n_before_exposure": int(early.sum()),
            "n_unexposed": int(((first >= 0) & (chosen < 0) & kept_users).sum()),
            "n_cells_before_exposure": int((~present).sum()),
            "null_for_missing": [name for name, value in fills.items() if value is None],
        }
    )
    return result


def no_common_user(per_user: DataFrame, assignment: DataFrame, keys: list[str]) -> DataError:
    """Return the error for frames that share no user."""
    frames = {"assignment": assignment, "per_user": per_user}
    empty = [f"{role} has no rows" for role, frame in frames.items() if not len(frame)]
    shown = [
        f"{role}[{', '.join(map(repr, keys))}] has {some_keys(one, slice(5), keys)}"
        for role, one in frames.items()
    ]
    return DataError(f"no user of assignment is in per_user: {', '.join(empty or shown)}")


def _by_groups(
    per_user: DataFrame, by: list[str], by_values: DataFrame | None
) -> tuple[Codes, DataFrame]:
    """The code of each row's `by` value, and the values by code: those of the rows, or the given
    ones."""
    if by_values is None:
        return group_codes(per_user, "per_user", by)
    if not by:  # one group, which some of the users may have no row of
        return np.zeros(len(per_user), np.int64), by_values
    pairs = [read_by([per_user[name], by_values[name]], name) for name in by]
    (rows, values), n = encode_keys([list(ids) for ids in zip(*pairs, strict=True)])
    return last_places(values.all(), n)[rows.all()], by_values


def _metric_rows(
    per_user: DataFrame, options: JoinOptions, kept: Mask, cell: Codes, n_cells: int
) -> tuple[Codes, DataFrame]:
    """Row of the metrics of each (by, user) cell, −1 for none, and the metrics those rows are
    in."""
    metrics = per_user if kept.all() else per_user[kept]
    cell = cell[kept]
    if options.how is None:
        advice = (
            "; roll them up first with rd.experiments.roll_up(per_user, "
            f"unit_col={options.keys}), pass ⟦+how=⟧, or name in ⟦+by=⟧ what tells the rows apart"
        )
        keys = [*options.keys, *options.by]
        return only_rows("per_user", metrics, cell, n_cells, keys, advice), metrics
    # Every cell becomes one row, in order of first appearance. The column of the time is gone by
    # then.
    seen, first = np.unique(cell, return_index=True)
    over = [name for name in map(str, as_columns(options.over)) if name not in options.time]
    row = last_places(seen[np.argsort(first)], n_cells)
    return row, roll_up(metrics, [*options.by, *options.keys], options.how, over=over)


# ------------------------------------------------------------------------------------------
# Join per-user metrics to an experiment's assignment table.


@takes_options("user_col", "by")
def join_experiment(
    per_user: DataFrame,
    assignment: DataFrame,
    *,
    user_col: Columns = "user_id",
    variant_col: str = "variant",
    by: Columns | None = None,
    missing: Missing = "raise",
    multi_variant: MultiVariant = "raise",
    unassigned: RaiseOrDrop = "drop",
    exposure_col: str | None = None,
    time_col: str | None = None,
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    how: Roll | Mapping[str, Roll] | None = None,
    over: Columns | None = None,
    options: Options | None = None,
) -> DataFrame:
    """Join metrics to the assignment: one row per assigned user, whether or not they have metrics.

    All assigned users stay in (intention to treat), because a variant can change *who* shows up:
    when the treatment wakes up light users, an inner join compares them with the heavy users of the
    control and can turn the sign of the effect.

    Parameters
    ----------
    per_user : DataFrame
        Metrics, one row per user (and `by` value), such as `result.per_user`.
    assignment : DataFrame
        One row per assigned user: `user_col`, `variant_col`, and any columns to carry along
        (segment, country, pre-period metric). A user who stands there twice with the same variant
        counts once: the first row is kept (the one of the earliest exposure when `exposure_col` is
        given).
    user_col : str or list of str, default "user_id"
        Key of both frames. Integer widths, and strings however stored, match; integers never match
        strings.
    variant_col : str, default "variant"
        Column of `assignment` with the variant.
    by : str or list of str, optional
        Columns of `per_user` that tell several rows of a user apart (`model`): each of their values
        gets a row for every assigned user.
    missing : {"raise", "zero", "worst", "nan", "drop"}, default "raise"
        Assigned users without metrics: error; "zero", what a list that was not shown is worth: 0
        for counts, sums and metrics of which more is better, from 0 on, and null for all others,
        for which 0 is no bad value (first_rank, fallout); "worst", the same with the worst value in
        place of null where there is one; null; or leave them out, an inner join, which can turn the
        sign. Leaving them out warns where the variants have unlike shares of them (p < 0.001).
    multi_variant : {"raise", "drop", "first"}, default "raise"
        Users in two variants: error; leave them out, which takes more of the smaller arm; or count
        each in the variant seen first, which needs `exposure_col` and `time_col`.
    unassigned : {"drop", "raise"}, default "drop"
        Users of `per_user` in no variant: leave them out, or error.
    exposure_col, time_col : str, optional
        Time of exposure in `assignment` and time of the row in `per_user` (both datetimes, both
        with or both without time zone, or both numbers): rows before the exposure of their user are
        dropped and counted. With `by` (week), a user has no row in periods that ended before the
        exposure. Users with a null exposure were never exposed: they are left out and counted.
    smaller_is_better, larger_is_better : str or list of str, optional
        Columns that recdf does not know, for `missing="zero"`: of which less is better (null) or
        more (0).
    how : {"mean", "sum"} or mapping, optional
        Roll several rows of a user up, after the rows before exposure are gone, as `roll_up` does.
    over : str or list of str, optional
        Columns that `how` rolls up over (session), as in `roll_up`.
    options : Options, optional
        `user_col` and `by` of a project, where they are not given here.

    Returns
    -------
    DataFrame
        `by` columns, the columns of `assignment`, the metric columns, `has_metrics` (bool), with
        `time_col`, `n_before_exposure` (int64). With `multi_variant="drop"` also `n_multi_variant`:
        the number of users of the variant who were left out, divided by the number of those who
        stayed. Its sum over all users of a variant is how many were left out, and its sum over
        some of them is their part of that. Rows in the order of `assignment`, within each `by`
        value.
        With `missing="nan"` integer metrics are Int64. `attrs["recdf_experiment"]`
        holds the options and the counts `n_assigned`, `n_missing`, `n_unassigned`,
        `n_multi_variant`, `n_repeated`, `n_before_exposure`, `n_unexposed`,
        `n_cells_before_exposure`, and `null_for_missing`, the columns with null in place of 0.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError
        A column is missing; the keys are of kinds that can never match; a key, variant or `by`
        value is null.
    DuplicateError
        Several rows of one user in `per_user`: use `rd.experiments.roll_up`, `how=` or `by=`.
    DataError
        A column in both frames, no user in common, or what `missing`, `multi_variant`, `unassigned`
        refuse.
    OptionError
        An unknown option value; a column whose direction is not known, with `missing="zero"` and
        users without metrics.

    References
    ----------
    Kohavi, Tang, Xu: Trustworthy Online Controlled Experiments, 2020, ch. 20 (triggering and
    dilution).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> metrics = pd.DataFrame({"user_id": [1, 2], "ndcg@10": [0.5, 0.25]})
    >>> groups = pd.DataFrame({"user_id": [1, 2, 3], "variant": ["A", "B", "B"]})
    >>> rd.join_experiment(metrics, groups, missing="zero")
       user_id variant  ndcg@10  has_metrics
    0        1       A     0.50         True
    1        2       B     0.25         True
    2        3       B     0.00        False
    """
    keys, by_cols = ([str(name) for name in as_columns(given)] for given in (user_col, by))
    join = JoinOptions(
        keys,
        variant_col,
        by_cols,
        missing,
        multi_variant,
        unassigned,
        exposure_col,
        time_col,
        smaller_is_better,
        larger_is_better,
        how,
        over,
    )
    frames = read_frames(per_user, assignment, join)
    if frames.users.stranger.all():
        raise no_common_user(frames.per_user, frames.assignment, join.keys)
    if missing == "drop":
        _warn_of_unequal_missing(frames)
    return join_frames(frames, join)


def _warn_of_unequal_missing(frames: Frames) -> None:
    """Warn where a variant has another share of users without metrics than the rest: the users who
    stay are then no longer alike."""
    _, _, users, variant = frames
    first = first_rows(users.of_assignment, users.n)
    there = np.bincount(users.of_metric, minlength=users.n) > 0
    own = variant[first[first >= 0]]
    n = np.bincount(own)
    lost = np.bincount(own, ~there[first >= 0])
    # One variant against all others: a test of several shares would need SciPy.
    p = [
        equal_shares_test((one, lost.sum() - one), (of, n.sum() - of))[1]
        for one, of in zip(lost, n, strict=True)
    ]
    if len(n) * np.fmin.reduce(p) < HEALTH_ALPHA:
        warn_user(
            f"from {number(min(lost / n), '.1%')} to {number(max(lost / n), '.1%')} of the users "
            "of a variant have no metrics; these shares differ by more than chance, so that the "
            'users who stay are not alike; pass ⟦+missing="zero"⟧, or "nan"',
            RecdfWarning,
            argument="missing",
            value="drop",
        )
