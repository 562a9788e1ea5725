"""Hits: the recommended items that `true` judges, as arrays with one entry per item.

Contract: entries stand list after list, and within a list by rank. A subset of hits gathers each
array on first use, since few metrics read all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from ..inputs.sorting import equal_runs


def ratio(above: Any, below: Any) -> ndarray:
    """Return above / below; it is NaN (undefined) where below is 0."""
    undefined = np.equal(below, 0)
    return np.asarray(
        np.true_divide(above, np.where(undefined, np.nan, below) if undefined.any() else below)
    )


def quotient(above: Any, below: Any, pooled: bool) -> Any:
    """Return above / below of each list, or both of them for a pooled metric, which is the ratio of
    their sums."""
    return (above, below) if pooled else ratio(above, below)


def running(ufunc: np.ufunc, number: ndarray, values: ndarray) -> ndarray:
    """Accumulate the values of each list in their order by `np.add` or `np.multiply`; `number`
    counts them from 1.

    All lists go on together, one entry at a time, so that no list depends on those before it.
    """
    found = np.array(values, np.float64)
    for place in islice(in_turn(number), 1, None):
        found[place] = ufunc(found[place - 1], found[place])
    return found


def in_turn(number: ndarray) -> Iterator[ndarray]:
    """Give the places of the first entries of all lists, then of their second ones, and so on."""
    place = np.flatnonzero(number == 1)
    length = np.diff(np.append(place, len(number)))
    place = place[np.argsort(-length, kind="stable")]
    for n in (len(place) - np.cumsum(np.bincount(length)))[:-1].tolist():
        place = place[:n]
        yield place
        place = place + 1


def shared(values: ndarray) -> ndarray:
    """Return an array that several metrics read so that none can change it."""
    view = values.view()
    view.flags.writeable = False
    return view


class HitArrays(NamedTuple):
    """The arrays of `Hits`, one entry per hit."""

    list: ndarray
    rank: ndarray
    gain: ndarray
    number: ndarray
    place: ndarray
    true_place: ndarray


def _array(meaning: str) -> cached_property[ndarray]:
    """Return an attribute of `Hits` that holds the array of the same name."""
    made: cached_property[ndarray] = cached_property(lambda hits: hits._entries(made.attrname))
    made.__doc__ = meaning
    return made


class Hits:
    """Recommended items that `true` judges: arrays with one entry per item, in list order."""

    def __init__(self, arrays: HitArrays | Hits, rows: ndarray | None = None) -> None:
        """Take all entries of the arrays, or only the entries at `rows`."""
        self._arrays, self._rows = arrays, rows
        self._known: dict[Any, ndarray] = {}
        self._sums: dict[Any, dict[int, ndarray]] = {}

    def _entries(self, name: str) -> ndarray:
        values = getattr(self._arrays, name)
        return shared(values if self._rows is None else values.take(self._rows))

    list = _array("Code of the list.")
    rank = _array("Rank in the list, 1 for the first item.")
    gain = _array("Relevance in `true`.")
    number = _array(
        "Number of the entry within its list: 1 for the list's first entry, 2 for its second."
    )
    place = _array("Row among all recommended rows.")
    true_place = _array("Row among the rows of `true`, as ranked by gain.")

    def __len__(self) -> int:
        return len(self._arrays.rank if self._rows is None else self._rows)

    @classmethod
    def of(
        cls,
        list: ndarray,
        rank: ndarray,
        gain: ndarray,
        place: ndarray,
        true_place: ndarray,
    ) -> Hits:
        """Make hits from arrays in list order, and number them within each list."""
        number = np.arange(1, len(list) + 1) - equal_runs(list)[0]
        return cls(HitArrays(list, rank, gain, number, place, true_place))

    def where(self, keep: ndarray) -> Hits:
        """Keep the entries where `keep` is true."""
        return self if keep.all() else Hits(self, np.flatnonzero(keep))

    def numbered(self, keep: ndarray) -> Hits:
        """Keep the entries where `keep` is true, and number them anew within each list."""
        kept = self.where(keep)
        return (
            kept
            if kept is self
            else Hits.of(kept.list, kept.rank, kept.gain, kept.place, kept.true_place)
        )

    def from_all(self, value: Callable[..., ndarray], *args: Any) -> ndarray:
        """Compute value(hits, *args) over the hits of the whole lists, and return it for these
        hits.

        This is for values that depend on other hits of the list, such as those at better ranks.
        """
        if isinstance(self._arrays, Hits) and self._rows is not None:
            return self._arrays.from_all(value, *args).take(self._rows)
        key = (value, *args)
        if key not in self._known:
            self._known[key] = value(self, *args)
        return self._known[key]

    def sum_upto(
        self,
        cut: int,
        n_lists: int,
        parts: dict[tuple[int, int], Hits],
        value: Callable[..., Any],
        *args: Any,
    ) -> ndarray:
        """Sum value(hits, *args) over the ranks up to `cut` of each list; callers share one
        read-only array.

        The sum continues from the largest smaller cut-off that is already known, so that each hit
        is read once. It adds in rank order, so that the result does not depend on which cut-offs
        are known. `parts` keeps the hits between two cut-offs, so that other values reuse them.
        """
        known = self._sums.setdefault((value, *args), {0: np.zeros(n_lists)})
        cut = min(cut, self.deepest)
        if cut not in known:
            above = max(one for one in known if one < cut)
            if (above, cut) not in parts:
                parts[above, cut] = self.where((self.rank > above) & (self.rank <= cut))
            further = parts[above, cut]
            total = known[above].copy()
            np.add.at(
                total, further.list, np.asarray(value(further, *args), np.float64)
            )  # it is slow for integers
            known[cut] = shared(total)
        return known[cut]

    @cached_property
    def deepest(self) -> int:
        """The largest rank of a hit: all cut-offs beyond it give the same hits."""
        return int(self.rank.max(initial=0))
