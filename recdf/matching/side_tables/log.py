"""The log of a call: past interactions, by item code and by the user of each list.

Contract: arrays by item code have `n_items` entries, and arrays by list have one entry per list of
the population. What takes long to compute is computed once, on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated

import numpy as np
import pandas as pd

from ...errors import IdTypeError
from ...inputs.constraints import a_number
from ...inputs.machine import sizes
from ...inputs.sorting import offsets, run_heads, run_of
from ..pairing import pair_within

# The share of interactions that the most popular items hold.
Head = Annotated[float, a_number(above=0, most=1)]
# Below 1 the share of items, from 1 on the number of interactions, that bounds the tail.
TailSize = Annotated[float, a_number(above=0)]


@dataclass
class LogCodes:
    """Past interactions: the codes of user and item per row, and the user of each list, -1 if it is
    not in the log."""

    user: np.ndarray
    item: np.ndarray
    matched_user: (
        np.ndarray | IdTypeError
    )  # the error, if users of both have types that never match
    n_items: int
    rank: Callable[[], np.ndarray | None]

    @property
    def list_user(self) -> np.ndarray:
        """User of each list. Popularity does not read it, so it needs no users that match."""
        if isinstance(self.matched_user, IdTypeError):
            raise self.matched_user
        return self.matched_user

    @cached_property
    def n_users(self) -> int:
        return len(pd.unique(self.user))

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The distinct items of each user: where each user starts, the items, and the interactions
        of each pair."""
        key = self.user.astype(np.int64) * self.n_items + self.item
        key, count = np.unique(key, return_counts=True)
        known = () if isinstance(self.matched_user, IdTypeError) else self.matched_user
        n_codes = int(max(self.user.max(initial=-1), np.max(known, initial=-1))) + 1
        length = np.bincount(key // self.n_items, minlength=n_codes)
        return offsets(length), (key % self.n_items).astype(np.int32), count

    @cached_property
    def pair_user(self) -> np.ndarray:
        return run_of(np.diff(self.pairs[0]))

    def count(self, share_of: str) -> np.ndarray:
        """Return the number of users (share_of "users") or of interactions ("events") of each item
        code."""
        return np.bincount(
            self.pairs[1] if share_of == "users" else self.item, minlength=self.n_items
        )

    def total(self, share_of: str) -> int:
        """Return the number of users, or of interactions, of the whole log."""
        return self.n_users if share_of == "users" else len(self.item)

    def share(self, share_of: str) -> np.ndarray:
        """Return p(i): the share of the users who have item i, or of the interactions with it."""
        found: np.ndarray = self.count(share_of) / max(self.total(share_of), 1)
        return found

    def surprise(self, share_of: str) -> np.ndarray:
        """Return −log2 p(i); an item that is not in the log counts as if one user had it."""
        found: np.ndarray = np.log2(max(self.total(share_of), 1)) - np.log2(
            np.maximum(self.count(share_of), 1)
        )
        return found

    def by_popularity(self, least_first: bool = False) -> np.ndarray:
        """Item codes of the log, most interactions first, or least; items with equally many are
        sorted by id."""
        count = self.count("events")
        codes = np.flatnonzero(count)
        rank = self.rank()
        order = count[codes] if least_first else -count[codes]
        return codes[np.lexsort((codes if rank is None else rank[codes], order))]

    def rank_share(self, share_of: str) -> np.ndarray:
        """Return the mean rank of each item's count, from the smallest, over the items of the log;
        0 if not there."""
        count = self.count(share_of)
        codes = np.flatnonzero(count)
        _, level, n_level = np.unique(count[codes], return_inverse=True, return_counts=True)
        found = np.zeros(self.n_items)
        found[codes] = (np.cumsum(n_level) - (n_level - 1) / 2)[level] / max(len(codes), 1)
        return found

    def tail(self, size: float) -> np.ndarray:
        """Tell for each item code whether it is in the tail, which `size` cuts; an item that is not
        in the log is not.

        Below 1, `size` is the share of the items of the log that are the tail, at least one item;
        those with the fewest interactions, and of these those with the smaller ids. From 1 on, it
        is the most interactions of such an item.
        """
        if size >= 1:
            count = self.count("events")
            return np.logical_and(count > 0, count <= size)
        order = self.by_popularity(least_first=True)
        found = np.zeros(self.n_items, bool)
        found[order[: max(int(size * len(order) + 1e-9), 1)]] = True
        return found

    def head(self, share: float) -> np.ndarray:
        """Tell for each item code whether it is one of the most popular items that hold this share
        of interactions."""
        order = self.by_popularity()
        held = np.cumsum(self.count("events")[order])
        short = held < share * len(self.item) * (1 - 1e-12)
        found = np.zeros(self.n_items, bool)
        found[order[: np.count_nonzero(short) + 1]] = True
        return found

    def cooccurrence(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        """Return, for pairs of item codes, users with both / √(users with the one · users with the
        other), or 0."""
        by_item = np.argsort(self.pairs[1], kind="stable")
        users, n = self.pair_user[by_item], self.count("users")
        start, both, n_users = offsets(n), np.zeros(len(one)), len(self.pairs[0])
        piece = np.cumsum(n[one] + n[two]) // sizes().paired_items
        for low, high in pairwise([*run_heads([piece]).tolist(), len(one)]):
            a, b = one[low:high], two[low:high]
            both[low:high] = pair_within(users, start[a], n[a], users, start[b], n[b], n_users).n
        found: np.ndarray = both / np.sqrt(np.maximum(n[one] * n[two], 1))
        return found

    def seen(self, item: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
        """Tell for each recommended row whether the log has its item for the list's user.

        `item` is the code of each row; list i has the `length[i]` rows from `start[i]` on.
        """
        of_user, past, _ = self.pairs
        own = np.append(of_user[:-1], 0)[self.list_user]
        return pair_within(item, start, length, past, own, self.n_history, self.n_items).has_sought(
            len(item)
        )

    @cached_property
    def n_history(self) -> np.ndarray:
        """Distinct items in the history of each list's user."""
        length = np.append(np.diff(self.pairs[0]), 0)
        return length.take(self.list_user)
