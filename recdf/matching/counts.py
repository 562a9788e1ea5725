"""What a metric of exposure sees: `Counts`, numbers per item over the lists of one `by` value, cut at k.

Contract: arrays have one entry per item code (`n_items` of them, most of them no item at all). What `summed` counts
is the sum over disjoint sets of lists, so parts of a population may be counted apart; all but the arrays with an entry
per place or list come from it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Literal

import numpy as np

from .grouping import spans
from .lists import Lists

# Whose items a sum is over: only those have other numbers than 0. A sum over lists has no item.
Over = Literal["pred", "true", "log", "lists"]


class Counts:
    """Counts per item of the first k of the lists of one `by` value.

    k : the cut-off · sides : side tables of the call · n_items : item codes; not all of them are items.
    """

    def __init__(self, lists: Lists, by: int = 0) -> None:
        self.lists, self.matched = lists, lists.matched
        self.k, self.sides, self.n_items = lists.k, lists.sides, self.matched.n_items
        # Lists stand `by` value after `by` value, so that those of one are found without a look at the others.
        first, end = np.searchsorted(self.matched.list_by, [by, by + 1])
        self.by, self.mine = by, np.arange(first, end)
        self.sums: dict[str, np.ndarray] = {}

    # ------------------------------------------------------------------------------- by place and by list

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

    # ---------------------------------------------------------------------------------- what adds up

    def summed(self, name: str, count: Callable[[Counts], np.ndarray], over: Over = "pred") -> np.ndarray:
        """What `count` finds for these lists, kept by its name: a sum over them.

        It is an array by item code, 0 but for items of `pred`, of `true` or of the log, or a short array of other
        numbers, to be filled up with zeros (`over="lists"`).
        """
        if name not in self.sums:
            self.sums[name] = count(self)
        return self.sums[name]

    @property
    def n_lists(self) -> int:
        """Lists of the population."""
        return int(self._lengths.sum())

    @property
    def n_lists_shown(self) -> int:
        """Lists that show anything."""
        return int(self._lengths[1:].sum())

    @property
    def deepest(self) -> int:
        """Items shown of the longest list."""
        return int(np.flatnonzero(self._lengths).max(initial=0))

    @property
    def _lengths(self) -> np.ndarray:
        """Lists by the number of items that they show."""
        return self.summed("lengths", lambda counts: np.bincount(counts.n_shown), over="lists")

    @property
    def shown(self) -> np.ndarray:
        """How often each item was shown."""
        return self.summed("shown", lambda counts: np.bincount(counts.item, minlength=counts.n_items))

    @property
    def n_lists_with(self) -> np.ndarray:
        """Lists that show each item; other than `shown` only where repeats are kept."""
        return self.summed("n_lists_with", _lists_with)

    @property
    def first_shown(self) -> np.ndarray:
        """How often each item was shown at rank 1."""
        return self.summed(
            "first_shown", lambda counts: np.bincount(counts.item[counts.rank == 1], minlength=counts.n_items)
        )

    def exposure(self, discount: str = "log") -> np.ndarray:
        """Rank-discounted exposure of each item: Σ 1 / log2(rank + 1), or `shown` without discount."""
        if discount == "none":
            return self.shown.astype(np.float64)
        return self.summed("exposure", lambda counts: counts.per_item(1.0 / np.log2(counts.rank + 1.0)))

    @property
    def hits(self) -> np.ndarray:
        """How often each item was a hit."""
        return self.summed("hits", _hits)

    @property
    def relevant(self) -> np.ndarray:
        """In how many lists each item was relevant, shown or not."""
        return self.summed("relevant", _relevant, over="true")

    @property
    def had(self) -> np.ndarray:
        """In how many lists the user of the list had each item before, by the log."""
        return self.summed("had", _had, over="log")

    @property
    def new(self) -> np.ndarray:
        """How often each item was shown to a user who had not had it before, by the log."""
        return self.summed("new", lambda counts: counts.per_item(~counts.matched.seen()[counts.places]))

    # --------------------------------------------------------------------------------- what is recorded

    def note(self, name: str, unknown: np.ndarray) -> None:
        """Count, once per call, the recommended rows whose item (bool per code) a side table does not know."""
        self.lists.note(name, unknown)

    def needs_true(self, otherwise: str) -> None:
        """Raise if there is no `true`."""
        self.matched.needs_true(otherwise)


def _lists_with(counts: Counts) -> np.ndarray:
    repeat = counts.matched.repeat
    if not len(repeat):
        return counts.shown
    return counts.shown - np.bincount(counts.item[np.isin(counts.places, repeat)], minlength=counts.n_items)


def _hits(counts: Counts) -> np.ndarray:
    places = counts.lists.hit_places_by_value
    first, end = places[0][counts.by : counts.by + 2]
    return np.bincount(counts.matched.item[places[1][first:end]], minlength=counts.n_items)


def _relevant(counts: Counts) -> np.ndarray:
    truth = counts.matched.true_lists
    listed = counts.matched.true_list[counts.mine]
    listed = listed[listed >= 0]
    rows = spans(truth.start[listed], np.diff(truth.start)[listed])
    return np.bincount(truth.item[rows[truth.gain[rows] > 0]], minlength=counts.n_items)


def _had(counts: Counts) -> np.ndarray:
    log = counts.sides.log
    users = log.list_user[counts.mine]
    n_of_user = np.bincount(users[users >= 0], minlength=len(log.pairs[0]) - 1)
    return np.bincount(log.pairs[1], weights=n_of_user[log.pair_user], minlength=counts.n_items)
