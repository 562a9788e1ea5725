"""The argument of a metric of exposure: `Counts`, numbers per item over the lists of one `by`
value, cut at k.

Contract: arrays have one entry per item code. There are `n_items` codes, and some of them stand for
no item. Every array that `summed` returns is a sum over the lists, so that parts of a population
can be counted apart and added. The record of a metric names the sums that the metric reads.
`ListCounts` holds lists and counts a sum when it is first read; a plain `Counts` holds sums that
were computed before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy import ndarray

from ..errors import OptionError
from ..inputs.sorting import exact_sums, offsets, order_of_codes, spans
from .hits import shared
from .lists import Lists, Matched
from .side_tables.sides import Sides

# The items that a sum is about; it is 0 for all others. A sum about lists ("lists") has no entry
# per item.
Over = Literal["pred", "true", "log", "lists"]


class Sum(NamedTuple):
    """A sum over lists: its name, the function that counts it, and the items that it is about."""

    name: str
    counted: Callable[[ListCounts], ndarray]
    over: Over = "pred"


def _per_item(meaning: str) -> cached_property[ndarray]:
    """Return an attribute of `Counts` that holds the sum of the same name."""
    made: cached_property[ndarray] = cached_property(
        lambda counts: shared(counts._sum(made.attrname))
    )
    made.__doc__ = meaning
    return made


class Counts:
    """Counts per item of the first k of the lists of one `by` value.

    k : the cut-off · sides : side tables of the call · n_items : number of item codes, some of
    which stand for no item · sums : the sums counted so far, by name.
    """

    def __init__(
        self,
        k: int,
        sides: Sides,
        n_items: int,
        sums: Mapping[str, ndarray],
        has_true: bool = True,
    ) -> None:
        self.k, self.sides, self.n_items = k, sides, n_items
        self.sums = dict(sums)
        self._has_true = has_true

    def summed(
        self, name: str, count: Callable[[ListCounts], ndarray], over: Over = "pred"
    ) -> ndarray:
        """Return the sum over these lists that `count` computes; it is computed once and kept by
        its name.

        The sum is an array by item code that is 0 except for items of `pred`, of `true` or of the
        log, as `over` says. With `over="lists"` it is an array of any other numbers; a shorter one
        counts as filled up with zeros.
        """
        if name not in self.sums:
            self.sums[name] = self._counted(Sum(name, count, over))
        return self.sums[name]

    def _counted(self, one: Sum) -> ndarray:
        raise OptionError(
            f"reads the sum {one.name!r}, which it does not name in ⟦+sums=⟧, so that it was not "
            "added up over the parts of files; name it, or use evaluate"
        )

    def _sum(self, name: str) -> ndarray:
        return self.summed(*SUMS[name])

    @property
    def n_lists(self) -> int:
        """Number of lists in the population."""
        return int(self._sum("lengths").sum())

    @property
    def n_lists_shown(self) -> int:
        """Number of lists that show at least one item."""
        return int(self._sum("lengths")[1:].sum())

    @property
    def deepest(self) -> int:
        """Number of items that the longest list shows."""
        return int(np.flatnonzero(self._sum("lengths")).max(initial=0))

    shown = _per_item("How often each item was shown.")
    n_lists_with = _per_item(
        "Number of lists that show each item. It differs from `shown` only where repeated rows are "
        "kept."
    )
    first_shown = _per_item("How often each item was shown at rank 1.")
    hits = _per_item("How often each item was a hit.")
    relevant = _per_item("In how many lists each item was relevant, whether it was shown or not.")
    had = _per_item("In how many lists the log has each item for the user of the list.")
    new = _per_item("How often each item was shown to a user for whom the log does not have it.")

    def exposure(self, discount: str = "log", p: float = 0.85) -> ndarray:
        """Rank-discounted exposure of each item: Σ 1 / log2(rank + 1), Σ p^(rank − 1), or `shown`
        without discount."""
        return self.summed(*exposure_sum(discount, p)).astype(np.float64)

    def by_user_group(self, one: Sum) -> Mapping[str, ndarray]:
        """Return a sum that is counted apart for each group of users, by the name of the group."""
        before = one.name + ":"
        return {
            name.removeprefix(before): sums
            for name, sums in self.sums.items()
            if name.startswith(before)
        }

    def needs_true(self, otherwise: str) -> None:
        """Raise if there is no `true`."""
        if not self._has_true:
            raise OptionError(f"needs ⟦+true=⟧, {otherwise}")

    def __getattr__(self, name: str) -> NoReturn:
        if name in LIST_ATTRIBUTES:
            raise OptionError(
                f"reads {name!r}, which does not add up over the parts of files; use evaluate"
            )
        raise AttributeError(f"Counts has no attribute {name!r}")


class ListCounts(Counts):
    """Counts over lists in memory: each sum is counted when it is first read."""

    def __init__(self, lists: Lists, by: int = 0) -> None:
        matched = lists.matched
        super().__init__(lists.k, lists.sides, matched.n_items, {}, matched.has_true)
        self.lists: Lists = lists
        self.matched: Matched = matched
        # Lists are sorted by `by` value, so that a binary search finds those of one value.
        self.by, self.mine = by, np.arange(*np.searchsorted(matched.list_by, [by, by + 1]))

    def among(self, of_list: Callable[[Lists], ndarray]) -> ndarray:
        """Return the places of the entries of these lists, where `of_list` gives the list of every
        entry. Entries stand list after list, as `pred` has them: not always by `by` value."""
        place, start = self.lists.once(_places_by_value, of_list)
        return place[start[self.by] : start[self.by + 1]]

    def _counted(self, one: Sum) -> ndarray:
        return one.counted(self)

    def by_user_group(self, one: Sum) -> Mapping[str, ndarray]:
        return self.summed(*one)  # type: ignore[return-value]

    @cached_property
    def n_shown(self) -> ndarray:
        """Number of items that each list shows."""
        return self.lists.n_shown[self.mine]

    @cached_property
    def places(self) -> ndarray:
        """Places, among the recommended rows, of the rows within the first k of these lists."""
        return spans(self.matched.start[self.mine], self.n_shown)

    @cached_property
    def rank(self) -> ndarray:
        """Rank at each place."""
        return self.places - np.repeat(self.matched.start[self.mine], self.n_shown) + 1

    @cached_property
    def item(self) -> ndarray:
        """Item code at each place."""
        return self.matched.item.take(self.places)

    def per_item(self, weights: ndarray) -> ndarray:
        """Sum the weights, one per place, by item."""
        return exact_sums(weights, self.item, self.n_items)


def _places_by_value(lists: Lists, of_list: Callable[[Lists], ndarray]) -> tuple[ndarray, ndarray]:
    """Sort the places of entries by the `by` values of their lists, once for all values, and return
    where each value starts."""
    n_by = len(lists.matched.by)
    value = lists.matched.list_by[of_list(lists)]
    return order_of_codes(value, n_by), offsets(np.bincount(value, minlength=n_by))


def list_of_hits(lists: Lists) -> ndarray:
    """Return the list of every hit."""
    return lists.hits.list


# Attributes that only `ListCounts` has.
LIST_ATTRIBUTES = (
    "lists",
    "matched",
    "by",
    "mine",
    "n_shown",
    "places",
    "rank",
    "item",
    "per_item",
)


# ------------------------------------------------------------------------------------------------
# sums


def _lists_with(counts: ListCounts) -> ndarray:
    repeat = counts.matched.pred_lists.repeat
    if not len(repeat):
        return counts.shown
    return counts.shown - np.bincount(
        counts.item[np.isin(counts.places, repeat)], minlength=counts.n_items
    )


def _hits(counts: ListCounts) -> ndarray:
    mine = counts.lists.hits.place[counts.among(list_of_hits)]
    return np.bincount(counts.matched.item[mine], minlength=counts.n_items)


def _relevant_counts(counts: ListCounts) -> ndarray:
    true = counts.matched.true_lists
    listed = counts.matched.true_list[counts.mine]
    listed = listed[listed >= 0]
    rows = spans(true.start[listed], true.n_relevant[listed])  # relevant rows come first
    return np.bincount(true.item[rows], minlength=counts.n_items)


def discount_at(discount: str, p: float, rank: ndarray) -> ndarray:
    """Weight of each rank: 1 / log2(rank + 1) for "log", 1 / rank for "reciprocal", p^(rank − 1)
    for "geometric", 1 for "none"."""
    if discount == "log":
        return 1.0 / np.log2(rank + 1.0)
    if discount == "reciprocal":
        return 1.0 / rank
    return p ** (rank - 1.0) if discount == "geometric" else np.ones(len(rank))


def _discounted_exposure(discount: str, p: float, counts: ListCounts) -> ndarray:
    return counts.per_item(discount_at(discount, p, counts.rank))


def exposure_sum(discount: str, p: float) -> Sum:
    """Return the sum over lists that is the exposure of items under a discount."""
    if discount == "none":
        return SUMS["shown"]
    if discount == "log":
        return SUMS["exposure"]
    return Sum(f"exposure {discount} {p}", partial(_discounted_exposure, discount, p))


def user_group_sums(column: str) -> tuple[Sum, Sum]:
    """Return how often each item was shown to, and had by, the users of each group, which a column
    of users= names.

    Each of the two is a dict by the name of the group. Where parts of a population are added, it is
    a sum per group.
    """
    shown = partial(_by_user_groups, column, _shown_to)
    had = partial(_by_user_groups, column, _had_by)
    return Sum(f"shown to each {column!r}", shown), Sum(f"had by each {column!r}", had, "log")


def _by_user_groups(
    column: str, count: Callable[[ListCounts, ndarray], ndarray], counts: ListCounts
) -> Any:
    names, group = counts.matched.user_groups(column)
    mine = group[counts.mine]
    return {str(name): count(counts, mine == g) for g, name in enumerate(names)}


def _shown_to(counts: ListCounts, some: ndarray) -> ndarray:
    return np.bincount(counts.item[np.repeat(some, counts.n_shown)], minlength=counts.n_items)


def _had_by(counts: ListCounts, some: ndarray | slice = slice(None)) -> ndarray:
    log = counts.sides.log
    users = log.list_user[counts.mine[some]]
    n_of_user = np.bincount(users[users >= 0], minlength=len(log.pairs[0]) - 1)
    return np.bincount(log.pairs[1], weights=n_of_user[log.pair_user], minlength=counts.n_items)


# The sums that a metric of exposure may name. "lengths" is the number of lists by how many items
# they show.
SUMS: dict[str, Sum] = {
    one.name: one
    for one in (
        Sum("lengths", lambda counts: np.bincount(counts.n_shown), "lists"),
        Sum("shown", lambda counts: np.bincount(counts.item, minlength=counts.n_items)),
        Sum("n_lists_with", _lists_with),
        Sum(
            "first_shown",
            lambda counts: np.bincount(counts.item[counts.rank == 1], minlength=counts.n_items),
        ),
        Sum("exposure", partial(_discounted_exposure, "log", 0.0)),
        Sum("hits", _hits),
        Sum("relevant", _relevant_counts, "true"),
        Sum("had", _had_by, "log"),
        Sum("new", lambda counts: counts.per_item(~counts.lists.seen[counts.places])),
    )
}
OF_LOG = ("had", "new")
