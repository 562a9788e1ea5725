"""Join per-user metrics to an experiment's assignment table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from ...inputs.door import takes_columns
from ...inputs.options import Options, as_columns
from ..choices import Columns, Missing, MultiVariant, RaiseOrDrop, Roll
from .join_frames import JoinOptions, join_frames, no_common_user, read_frames


@takes_columns("user_col", "by")
def join_experiment(
    per_user: pd.DataFrame,
    assignment: pd.DataFrame,
    *,
    user_col: str | Sequence[str] = "user_id",
    variant_col: str = "variant",
    by: str | Sequence[str] | None = None,
    missing: Missing = "raise",
    multi_variant: MultiVariant = "raise",
    unassigned: RaiseOrDrop = "drop",
    exposure_col: str | None = None,
    time_col: str | None = None,
    unexposed: RaiseOrDrop = "drop",
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    how: Roll | Mapping[str, Roll] | None = None,
    over: Columns | None = None,
    options: Options | None = None,
) -> pd.DataFrame:
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
        sign.
    multi_variant : {"raise", "drop", "first"}, default "raise"
        Users in two variants: error; leave them out, which takes more of the smaller arm; or count
        each in the variant seen first, which needs `exposure_col` and `time_col`.
    unassigned : {"drop", "raise"}, default "drop"
        Users of `per_user` in no variant: leave them out, or error.
    exposure_col, time_col : str, optional
        Time of exposure in `assignment` and time of the row in `per_user` (both datetimes, both
        with or both without time zone, or both numbers): rows before the exposure of their user are
        dropped and counted. With `by` (week), a user has no row in periods that ended before the
        exposure. A null exposure: never exposed.
    unexposed : {"drop", "raise"}, default "drop"
        Users who were never exposed: leave them out and count them, or error.
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
        `by` columns, the columns of `assignment`, the metric columns, `has_metrics` (bool) and,
        with `time_col`, `n_before_exposure` (int64). Rows in the order of `assignment`, within each
        `by` value. With `missing="nan"` integer metrics are Int64. `attrs["recdf_experiment"]`
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
    refused, times = (missing, multi_variant, unassigned), (exposure_col, time_col, unexposed)
    join = JoinOptions(
        keys, variant_col, by_cols, *refused, *times, smaller_is_better, larger_is_better, how, over
    )
    frames = read_frames(per_user, assignment, join)
    if frames.users.stranger.all():
        raise no_common_user(frames.per_user, frames.assignment, join.keys)
    return join_frames(frames, join)
