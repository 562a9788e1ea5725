"""The work of `join_experiment`: users of both frames are matched, and every assigned user gets a
row.

Contract: `read_frames` checks, `join_frames` joins. The frames may hold some users of a population
with all their rows.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from ...errors import DataError, DuplicateError, OptionError
from ...inputs.codes import encode_keys
from ...inputs.constraints import check_record
from ...inputs.ids import read_by
from ...inputs.options import as_columns
from ...inputs.per_user_columns import evaluated
from ...inputs.sorting import distinct
from ..assigned_users import Users, match_users
from ..choices import Columns, Missing, MultiVariant, RaiseOrDrop, Roll
from ..experiment_columns import Codes, Mask, group_codes, named_frame, require, some_keys
from .first_exposure import Exposure, read_exposure
from .missing_users import fill_values, take_or_fill
from .roll_up import roll_up


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
    unexposed: RaiseOrDrop = "drop"
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

    per_user: pd.DataFrame
    assignment: pd.DataFrame
    users: Users


def read_frames(per_user: pd.DataFrame, assignment: pd.DataFrame, options: JoinOptions) -> Frames:
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
    keys, by_cols, time = options.keys, options.by, options.time
    per_user, assignment = named_frame("per_user", per_user), named_frame("assignment", assignment)
    require(
        assignment, "assignment", [*keys, options.variant_col, *as_columns(options.exposure_col)]
    )
    require(per_user, "per_user", [*keys, *by_cols, *time])
    if isinstance(
        options.how, Mapping
    ):  # A column without a rule does not come along, so it may be in both frames.
        kept = {*keys, *by_cols, *time, *options.how}
        per_user = per_user.drop(
            columns=[name for name in assignment.columns if name in per_user and name not in kept]
        )
    # Rolling up leaves out what stands behind the key in that of the lists, such as devices.
    listed = as_columns(evaluated(per_user).get("user_col")) if options.how is not None else []
    last = max((i for i, name in enumerate(listed) if name in keys), default=len(listed))
    _distinct_columns(per_user, assignment, [*keys, *listed[last + 1 :]])
    return Frames(
        per_user, assignment, match_users(per_user, assignment, keys, options.variant_col)
    )


def join_frames(
    frames: Frames, options: JoinOptions, by_values: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Join users who have been matched: all users, or some of them with all their rows.

    Some users may lack a `by` value that others have, so `by_values` names all of them.
    """
    per_user, assignment, users = frames
    keys, missing, exposure_col, time_col = (
        options.keys,
        options.missing,
        options.exposure_col,
        options.time_col,
    )
    _refuse_users(users, per_user, assignment, options)
    exposure = read_exposure(users, per_user, assignment, exposure_col, time_col)
    if exposure is not None and options.unexposed == "raise" and exposure.unexposed.any():
        shown = some_keys(assignment, exposure.unexposed[users.of_assignment], keys)
        raise DataError(
            f"{int(exposure.unexposed.sum()):,} users of assignment have no {exposure_col!r} "
            f"({shown}), which means "
            'that they were never exposed; pass ⟦+unexposed="drop"⟧ to leave them out'
        )
    left_out = users.several & (options.multi_variant != "first")
    assigned = _assigned_rows(users, exposure, left_out)
    cells = _cells(
        per_user, options, users, assigned, _by_groups(per_user, options.by, by_values), exposure
    )
    if missing == "raise":
        _refuse_missing(cells, assigned, assignment, keys)
    fills: dict[str, float | None] = {}
    if missing in ("zero", "worst") and not cells.found.all():
        named = options.smaller_is_better, options.larger_is_better
        fills = fill_values(cells.metrics, cells.carried, missing, *named, options.known)
    result = _joined_frame(assignment, cells, missing, fills)
    if time_col is not None:
        result["n_before_exposure"] = cells.n_early[cells.kept(missing)]
    result.attrs = copy.deepcopy(per_user.attrs)
    result.attrs["recdf_experiment"] = {
        "user_col": keys,
        "variant_col": options.variant_col,
        "by": options.by,
        "missing": missing,
        "n_assigned": len(assigned),
        "n_missing": int((~cells.found).sum()),
        "n_unassigned": users.n_unassigned,
        "n_multi_variant": int(left_out.sum()),
        "n_repeated": len(assignment) - users.n_assigned,
        "n_before_exposure": 0 if exposure is None else int(exposure.early.sum()),
        "n_unexposed": 0 if exposure is None else int((exposure.unexposed & ~left_out).sum()),
        "n_cells_before_exposure": cells.n_absent,
        "null_for_missing": [name for name, value in fills.items() if value is None],
    }
    return result


def no_common_user(per_user: pd.DataFrame, assignment: pd.DataFrame, keys: list[str]) -> DataError:
    """Return the error for frames that share no user."""
    frames = {"assignment": assignment, "per_user": per_user}
    empty = [f"{role} has no rows" for role, frame in frames.items() if not len(frame)]
    shown = [
        f"{role}[{', '.join(map(repr, keys))}] has {some_keys(one, slice(5), keys)}"
        for role, one in frames.items()
    ]
    return DataError(f"no user of assignment is in per_user: {', '.join(empty or shown)}")


def _refuse_users(
    users: Users, per_user: pd.DataFrame, assignment: pd.DataFrame, options: JoinOptions
) -> None:
    """Raise for users that the options do not allow."""
    if users.several.any() and options.multi_variant == "raise":
        raise DataError(
            f"{np.count_nonzero(users.several):,} users of assignment are in more than one variant "
            f"({some_keys(assignment, users.several[users.of_assignment], options.keys)}); fix the "
            'table or pass ⟦+multi_variant="first"⟧ with the times of exposure, or '
            '⟦+multi_variant="drop"⟧'
        )
    if users.n_unassigned and options.unassigned == "raise":
        raise DataError(
            f"{users.n_unassigned:,} users of per_user are in no variant "
            f"({some_keys(per_user, users.stranger, options.keys)})"
        )


def _by_groups(
    per_user: pd.DataFrame, by: list[str], by_values: pd.DataFrame | None
) -> tuple[Codes, pd.DataFrame]:
    """The code of each row's `by` value, and the values by code: those of the rows, or the given
    ones."""
    if by_values is None or not by:
        return group_codes(per_user, "per_user", by)
    pairs = [read_by([per_user[name], by_values[name]], name) for name in by]
    (rows, values), n = encode_keys([list(ids) for ids in zip(*pairs, strict=True)])
    place = np.full(n, -1, np.int64)
    place[values.all()] = np.arange(len(by_values))
    return place[rows.all()], by_values


def _assigned_rows(users: Users, exposure: Exposure | None, left_out: Mask) -> Codes:
    """Row of assignment for each user who is not left out: the first, or that of the earliest
    exposure."""
    if exposure is None:
        chosen = np.full(users.n, -1, np.int64)  # −1 for users that are not there
        chosen[users.of_assignment[::-1]] = np.arange(len(users.of_assignment))[::-1]
    else:
        chosen = exposure.first_row
    return np.sort(chosen[(chosen >= 0) & ~left_out])


@dataclass(frozen=True)
class _Cells:
    """One cell for each (by value, assigned user): the row of its metrics, −1 for none."""

    metrics: pd.DataFrame
    labels: pd.DataFrame
    carried: list[str]
    row: Codes
    assigned: Codes
    n_early: Codes
    n_absent: int

    @property
    def found(self) -> Mask:
        return self.row >= 0

    def kept(self, missing: Missing) -> Mask:
        return self.found if missing == "drop" else np.ones(len(self.row), bool)


def _cells(
    per_user: pd.DataFrame,
    options: JoinOptions,
    users: Users,
    assigned: Codes,
    grouped: tuple[Codes, pd.DataFrame],
    exposure: Exposure | None,
) -> _Cells:
    """The cells of the result in its order: by value, then row of assignment.

    With times of exposure, a cell whose last row of anyone is before the exposure of its user is
    left out: a user who was not exposed yet in that week had no chance to have metrics in it.
    """
    group, groups = grouped
    early = np.zeros(len(per_user), bool) if exposure is None else exposure.early
    timeless = per_user.drop(columns=options.time)
    coded = (users.of_metric, users.n), (group, len(groups))
    rows, metrics = _metric_rows(timeless, options, ~early, *coded)
    user = np.tile(users.of_assignment[assigned], len(groups))
    in_group = np.repeat(np.arange(len(groups)), len(assigned))
    if exposure is None or not options.by:
        present = np.ones(len(user), bool)
    else:
        in_time = np.argsort(exposure.of_metric, kind="stable")
        last = np.empty(len(groups), exposure.of_metric.dtype)
        # Of several values for one position the last is kept: the latest time of each group.
        last[group[in_time]] = exposure.of_metric[in_time]
        present = exposure.of_user[user] <= last[in_group]
    cell = (in_group * users.n + user)[present]
    n_early = np.bincount(group[early] * users.n + users.of_metric[early], minlength=len(rows))
    carried = [name for name in metrics.columns if name not in {*options.keys, *options.by}]
    return _Cells(
        metrics,
        groups[options.by].iloc[in_group[present]],
        carried,
        rows[cell],
        np.tile(assigned, len(groups))[present],
        n_early[cell],
        int((~present).sum()),
    )


def _refuse_missing(
    cells: _Cells, assigned: Codes, assignment: pd.DataFrame, keys: list[str]
) -> None:
    if not cells.found.all():
        absent = distinct(cells.assigned[~cells.found])
        raise DataError(
            f"{len(absent):,} of {len(assigned):,} assigned users have no metrics "
            f"({some_keys(assignment, absent, keys)}); "
            'pass ⟦+missing="zero"⟧ if no list means no value for the user, "nan" to keep them '
            'undefined, or "drop"'
        )


def _joined_frame(
    assignment: pd.DataFrame, cells: _Cells, missing: Missing, fills: Mapping[str, float | None]
) -> pd.DataFrame:
    """Labels, columns of assignment, metrics and `has_metrics`."""
    keep = cells.kept(missing)
    labels = cells.labels[keep].reset_index(drop=True)
    carried_over = assignment.iloc[cells.assigned[keep]].reset_index(drop=True)
    taken = {
        name: take_or_fill(cells.metrics[name], cells.row[keep], fills.get(name))
        for name in cells.carried
    }
    result = pd.concat(
        [labels, carried_over, pd.DataFrame(taken, index=carried_over.index)], axis=1
    )
    result["has_metrics"] = cells.found[keep]
    return result


def _distinct_columns(per_user: pd.DataFrame, assignment: pd.DataFrame, keys: list[str]) -> None:
    both = [name for name in per_user.columns if name in assignment.columns and name not in keys]
    if both:
        raise DataError(
            f"per_user and assignment both have {', '.join(map(repr, both))}; rename or drop one "
            f"of them, e.g. assignment.rename(columns={{{both[0]!r}: {f'assigned_{both[0]}'!r}}})"
        )
    for role, frame in (("per_user", per_user), ("assignment", assignment)):
        taken = [name for name in ("has_metrics", "n_before_exposure") if name in frame.columns]
        if taken:
            raise DataError(
                f"{role} has a column {taken[0]!r}, which join_experiment writes; rename it"
            )


def _metric_rows(
    per_user: pd.DataFrame,
    options: JoinOptions,
    kept: Mask,
    users: tuple[Codes, int],
    groups: tuple[Codes, int],
) -> tuple[Codes, pd.DataFrame]:
    """Row of the metrics of each (by, user) cell, −1 for none, and the metrics those rows are
    in."""
    cell = (groups[0] * users[1] + users[0])[kept]
    row = np.full(groups[1] * users[1], -1, np.int64)
    metrics = per_user if kept.all() else per_user[kept]
    if options.how is not None:
        # Every cell becomes one row, in order of first appearance. The column of the time is gone
        # by then.
        seen, first = np.unique(cell, return_index=True)
        over = [name for name in map(str, as_columns(options.over)) if name not in options.time]
        metrics = roll_up(metrics, [*options.by, *options.keys], options.how, over=over)
        row[seen[np.argsort(first)]] = np.arange(len(seen))
        return row, metrics
    row[cell] = np.arange(len(cell))
    twice = row[cell] != np.arange(len(cell))
    if twice.any():
        what = "user" if not options.by else f"user and {options.by}"
        raise DuplicateError(
            f"per_user has several rows per {what}: {len(distinct(cell[twice])):,} users have more "
            f"than one ({some_keys(metrics, twice, options.keys)}); roll them up first with "
            f"rd.experiments.roll_up(per_user, unit_col={options.keys}), pass ⟦+how=⟧, or name in "
            "⟦+by=⟧ what tells the rows apart"
        )
    return row, metrics
