"""Users of an assignment table beside those of the metrics, as codes, and the rows of the variant
that they are in."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import DataError
from ..inputs.sorting import distinct
from ..judge.per_user_columns import Codes, Mask, group_codes, key_codes, require, some_keys


@dataclass(frozen=True)
class Users:
    """Users of both frames as codes 0..n−1: the user of every row, and what is known of each
    user."""

    of_metric: Codes
    of_assignment: Codes
    n: int
    n_assigned: int
    several: Mask
    stranger: Mask

    @property
    def n_unassigned(self) -> int:
        return self.n - self.n_assigned


def match_users(
    per_user: pd.DataFrame, assignment: pd.DataFrame, keys: list[str], variant_col: str
) -> Users:
    """Code the users; `several` users are in two variants, a `stranger` row is of a user in no
    variant."""
    (metric_user, user), n_users = key_codes(
        [("per_user", per_user), ("assignment", assignment)], keys
    )
    variant, _ = group_codes(assignment, "assignment", [variant_col])
    assigned = np.zeros(n_users, bool)
    assigned[user] = True
    several = in_several_variants(user, variant, n_users)
    return Users(metric_user, user, n_users, int(assigned.sum()), several, ~assigned[metric_user])


def in_several_variants(user: Codes, variant: Codes, n_users: int) -> Mask:
    """Whether each user code has rows of two variants."""
    one = np.full(n_users, -1, np.int64)
    one[user] = variant
    several = np.zeros(n_users, bool)
    several[user[variant != one[user]]] = True
    return several


def own_variant(
    per_user: pd.DataFrame, assignment: pd.DataFrame, keys: list[str], variant_col: str
) -> pd.DataFrame:
    """Of metrics by variant, the rows of the variant that each user is assigned to, without
    `variant_col`.

    Users in no variant, or in several, keep the rows of one, so that the join counts or refuses
    them.
    """
    require(assignment, "assignment", [*keys, variant_col])
    require(per_user, "per_user", [*keys, variant_col])
    frames = [("per_user", per_user), ("assignment", assignment)]
    (shown, assigned), n_pairs = key_codes(frames, [*keys, variant_col])
    (user, assigned_user), n_users = key_codes(frames, keys)
    is_assigned = np.zeros(n_pairs, bool)
    is_assigned[assigned] = True
    own = is_assigned[shown]
    # The pair of each user: the first of its rows, or of its own rows if there are any.
    pair = np.full(n_users, -1, np.int64)
    pair[user[::-1]] = shown[::-1]
    pair[user[own][::-1]] = shown[own][::-1]
    astray = np.zeros(n_users, bool)
    astray[assigned_user] = True
    astray[user[own]] = False
    astray = astray[user]
    if astray.any():
        raise DataError(
            f"{len(distinct(user[astray])):,} users of per_user have lists of other variants than "
            f"their own only ({some_keys(per_user, astray, keys)}); to count what they were shown "
            f"all the same, evaluate without ⟦+by={variant_col!r}⟧"
        )
    result: pd.DataFrame = per_user[shown == pair[user]].drop(columns=variant_col)
    result.attrs = copy.deepcopy(per_user.attrs)
    return result
