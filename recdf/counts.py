"""What a metric of exposure sees: `Counts`, numbers per item over the lists of one `by` value, cut at k.

Contract: arrays have one entry per item code (`n_items` of them, most of them no item at all). Counts and
exposures of disjoint sets of lists add up, so parts of a population may be counted apart.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .grouping import spans
from .lists import Lists
from .sides import Sides


class Counts:
    """Counts per item of the first k of the lists of one `by` value."""

    def __init__(self, lists: Lists, by: int = 0) -> None:
        self.lists, self.matched = lists, lists.matched
        self.mine = np.flatnonzero(self.matched.list_by == by)

    @property
    def k(self) -> int:
        """The cut-off."""
        return self.lists.k

    @property
    def sides(self) -> Sides:
        """Side tables of the call."""
        return self.lists.sides

    @property
    def n_items(self) -> int:
        """Item codes; not all of them are items."""
        return self.matched.n_items

    @property
    def n_lists(self) -> int:
        """Lists of the population."""
        return len(self.mine)

    @cached_property
    def n_shown(self) -> np.ndarray:
        """Items shown of each list."""
        return self.lists.n_shown[self.mine]

    @cached_property
    def places(self) -> np.ndarray:
        """Places, among the recommended rows, of what was shown."""
        return spans(self.matched.start[self.mine], self.n_shown)

    @cached_property
    def rank(self) -> np.ndarray:
        """Rank of each place."""
        return self.places - np.repeat(self.matched.start[self.mine], self.n_shown) + 1

    @cached_property
    def item(self) -> np.ndarray:
        """Item of each place."""
        return self.matched.item[self.places]

    def per_item(self, weights: np.ndarray) -> np.ndarray:
        """Sum per item of one weight per place."""
        return np.bincount(self.item, weights=weights, minlength=self.n_items)

    @cached_property
    def shown(self) -> np.ndarray:
        """How often each item was shown."""
        return np.bincount(self.item, minlength=self.n_items)

    @cached_property
    def n_lists_with(self) -> np.ndarray:
        """Lists that show each item; other than `shown` only where repeats are kept."""
        if not len(self.matched.repeat):
            return self.shown
        return self.shown - np.bincount(self.item[np.isin(self.places, self.matched.repeat)], minlength=self.n_items)

    @cached_property
    def first_shown(self) -> np.ndarray:
        """How often each item was shown at rank 1."""
        return np.bincount(self.item[self.rank == 1], minlength=self.n_items)

    def exposure(self, discount: str = "log") -> np.ndarray:
        """Rank-discounted exposure of each item: Σ 1 / log2(rank + 1), or `shown` without discount."""
        if discount == "none":
            return self.shown.astype(np.float64)
        return self.per_item(1.0 / np.log2(self.rank + 1.0))

    @cached_property
    def hits(self) -> np.ndarray:
        """How often each item was a hit."""
        hits = self.lists.hits
        mine = np.zeros(len(self.lists), bool)
        mine[self.mine] = True
        return np.bincount(self.matched.item[hits.place[mine[hits.list]]], minlength=self.n_items)

    @cached_property
    def relevant(self) -> np.ndarray:
        """In how many lists each item was relevant, shown or not."""
        truth = self.matched.truth
        listed = self.matched.list_truth[self.mine]
        listed = listed[listed >= 0]
        rows = spans(truth.start[listed], np.diff(truth.start)[listed])
        return np.bincount(truth.item[rows[truth.gain[rows] > 0]], minlength=self.n_items)

    @cached_property
    def had(self) -> np.ndarray:
        """In how many lists the user of the list had each item before, by the log."""
        log = self.sides.log
        users = log.list_user[self.mine]
        n_of_user = np.bincount(users[users >= 0], minlength=len(log.pairs[0]) - 1)
        return np.bincount(log.pairs[1], weights=n_of_user[log.pair_user], minlength=self.n_items)

    @cached_property
    def new(self) -> np.ndarray:
        """How often each item was shown to a user who had not had it before, by the log."""
        return self.per_item(~self.sides.log.seen(self.matched)[self.places])
