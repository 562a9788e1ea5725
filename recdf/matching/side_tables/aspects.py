"""The aspects of a call: what a user may want of an item, as codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Aspects:
    """What a user may want of an item: entries (user, item, aspect), ordered by user and item.

    `key` : user * n_items + item, where the user is 0 if all users have the same aspects · `list_user` : the user of
    each list, -1 for none; None if all users have the same aspects · `n_of_user` : number of distinct aspects of each
    user.
    """

    key: np.ndarray
    aspect: np.ndarray
    n_aspects: int
    list_user: np.ndarray | None
    n_of_user: np.ndarray
    n_items: int

    def n_of_list(self, n_lists: int) -> np.ndarray:
        if self.list_user is None:
            return np.full(n_lists, self.n_of_user[0])
        return np.append(self.n_of_user, 0)[self.list_user]
