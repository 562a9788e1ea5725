"""Users of an assignment table beside those of the metrics, as codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .columns import Codes, Mask, group_codes, key_codes

__all__: list[str] = []


@dataclass(frozen=True)
class Users:
    """Users of both frames as codes 0..n−1: the user of every row, and what is known of each user."""

    of_metric: Codes
    of_assignment: Codes
    n: int
    n_assigned: int
    several: Mask
    stranger: Mask

    @property
    def n_unassigned(self) -> int:
        return self.n - self.n_assigned


def match_users(per_user: pd.DataFrame, assignment: pd.DataFrame, keys: list[str], variant_col: str) -> Users:
    """Code the users; `several` users are in two variants, a `stranger` row is of a user in no variant."""
    (metric_user, user), n_users = key_codes([("per_user", per_user), ("assignment", assignment)], keys)
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
