"""The rated recommendations, and losses of their scores: means over the rows of a list, and over
those of all lists.

The rows that count are the recommended items that have a rating, or a label, in `true`, whatever
their rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..errors import OptionError
from ..inputs.sorting import exact_sums, offsets
from ..matching.counts import Counts, ListCounts, Sum
from ..matching.hits import ratio
from ..matching.lists import Lists


class Rated(NamedTuple):
    """The rated recommendations that have a score, one entry each: list, rating, score, and whether
    it is relevant."""

    list: np.ndarray
    rating: np.ndarray
    score: np.ndarray
    relevant: np.ndarray

    @property
    def error(self) -> np.ndarray:
        found: np.ndarray = self.score - self.rating
        return found


def rated_rows(lists: Lists) -> Rated:
    """Return the rated recommendations of all lists, which are read once for all metrics."""
    found: Rated = lists.matched.derived(("rated", lists.cut), lambda: _rated_rows(lists))
    return found


def _rated_rows(lists: Lists) -> Rated:
    matched, judged = lists.matched, lists.judged
    if matched.rating is None:
        raise OptionError("needs ⟦+relevance_col=⟧ (the rating in true)")
    score, rating = (
        matched.rating.predicted()[judged.place],
        matched.rating.given()[judged.true_place],
    )
    some = ~np.isnan(score - rating)
    return Rated(judged.list[some], rating[some], score[some], judged.gain[some] > 0)


def rated_of(counts: ListCounts) -> Rated:
    """Return the rated recommendations of one `by` value. They are sorted by it once for all
    values."""
    lists = counts.lists
    cache, key = lists.matched.cache, ("rated by value", lists.cut)
    if key not in cache:
        rated = rated_rows(lists)
        value = lists.matched.list_by[rated.list]
        order = np.argsort(value, kind="stable")
        start = offsets(np.bincount(value, minlength=len(lists.matched.by)))
        cache[key] = start, Rated(*(array[order] for array in rated))
    start, rated = cache[key]
    mine = slice(start[counts.by], start[counts.by + 1])
    return Rated(*(array[mine] for array in rated))


def squared_error(rated: Rated) -> np.ndarray:
    return rated.error**2


def mean_loss(lists: Lists, loss: Callable[[Rated], np.ndarray]) -> np.ndarray:
    """Return the mean loss of the rated recommendations of each list."""
    rated = rated_rows(lists)
    total = np.bincount(rated.list, weights=loss(rated), minlength=len(lists))
    return ratio(total, np.bincount(rated.list, minlength=len(lists)))


def total_loss(loss: Callable[[Rated], np.ndarray], counts: ListCounts) -> np.ndarray:
    """Sum of the losses, and how many there are."""
    losses = loss(rated_of(counts))
    return np.append(exact_sums(losses), len(losses))


def pooled_loss(counts: Counts, losses: Sum) -> float:
    return float(ratio(*counts.summed(*losses)))
