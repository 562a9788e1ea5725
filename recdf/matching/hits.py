"""Hits: the recommended items that `true` judges, as arrays with one entry each.

Contract: entries stand list after list, best rank first. A subset of hits gathers each array when something first reads
it, since few metrics read all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np


def ratio(above: Any, below: Any) -> np.ndarray:
    """above / below, NaN (undefined) where below is 0."""
    undefined = np.equal(below, 0)
    return np.asarray(np.true_divide(above, np.where(undefined, np.nan, below) if undefined.any() else below))


class HitArrays(NamedTuple):
    """The arrays of `Hits`, one entry per hit."""

    list: np.ndarray
    rank: np.ndarray
    gain: np.ndarray
    number: np.ndarray
    place: np.ndarray
    true_place: np.ndarray


class Hits:
    """Recommended items that `true` judges: one entry each, in list order.

    list : code of the list · rank : 1 for the first item · gain : relevance in `true` · number : 1 for the
    list's first entry, 2 for its second · place : row among all recommended rows · true_place : row among the
    rows of `true`, as ranked by gain.
    """

    def __init__(self, arrays: HitArrays | Hits, rows: np.ndarray | None = None) -> None:
        """All entries of some arrays, or those at `rows` of them."""
        self._arrays, self._rows = arrays, rows

    def _entries(self, name: str) -> np.ndarray:
        values: np.ndarray = getattr(self._arrays, name)
        return values if self._rows is None else values.take(self._rows)

    @cached_property
    def list(self) -> np.ndarray:
        """Code of the list."""
        return self._entries("list")

    @cached_property
    def rank(self) -> np.ndarray:
        """Rank in the list, 1 for the first item."""
        return self._entries("rank")

    @cached_property
    def gain(self) -> np.ndarray:
        """Relevance in `true`."""
        return self._entries("gain")

    @cached_property
    def number(self) -> np.ndarray:
        """1 for the list's first entry, 2 for its second."""
        return self._entries("number")

    @cached_property
    def place(self) -> np.ndarray:
        """Row among all recommended rows."""
        return self._entries("place")

    @cached_property
    def true_place(self) -> np.ndarray:
        """Row among the rows of `true`, as ranked by gain."""
        return self._entries("true_place")

    def __len__(self) -> int:
        return len(self._arrays.rank if self._rows is None else self._rows)

    @classmethod
    def of(
        cls, list: np.ndarray, rank: np.ndarray, gain: np.ndarray, place: np.ndarray, true_place: np.ndarray
    ) -> Hits:
        """Entries given in list order, numbered within each list."""
        heads = np.flatnonzero(np.append(True, list[1:] != list[:-1])[: len(list)])
        length = np.diff(np.append(heads, len(list)))
        number = np.arange(1, len(list) + 1) - np.repeat(heads, length)
        return cls(HitArrays(list, rank, gain, number, place, true_place))

    def where(self, keep: np.ndarray) -> Hits:
        """Some of the entries."""
        return self if keep.all() else Hits(self, np.flatnonzero(keep))

    def from_all(self, value: Callable[..., np.ndarray], *args: Any) -> np.ndarray:
        """value(hits, *args) over the hits of the whole lists, at these: for what depends on hits further up."""
        if isinstance(self._arrays, Hits) and self._rows is not None:
            return self._arrays.from_all(value, *args).take(self._rows)
        key = (value, *args)
        if key not in self._known:
            self._known[key] = value(self, *args)
        return self._known[key]

    def sum_upto(
        self, cut: int, n_lists: int, parts: dict[tuple[int, int], Hits], value: Callable[..., Any], *args: Any
    ) -> np.ndarray:
        """Sum per list of value(hits, *args) over the ranks up to `cut`, one read-only array for all who ask.

        It goes on from the largest smaller cut-off that is known, so that each hit is read once for all of them, and
        adds in rank order, so that the sum does not depend on which are known. `parts` keeps the hits between two
        cut-offs for other values.
        """
        known, cut = self._sums.setdefault((value, *args), {0: np.zeros(n_lists)}), min(cut, self.deepest)
        if cut not in known:
            above = max(one for one in known if one < cut)
            if (above, cut) not in parts:
                parts[above, cut] = self.where((self.rank > above) & (self.rank <= cut))
            further, total = parts[above, cut], known[above].copy()
            np.add.at(total, further.list, np.asarray(value(further, *args), np.float64))  # is slow for integers
            total.flags.writeable = False
            known[cut] = total
        return known[cut]

    @cached_property
    def deepest(self) -> int:
        """The largest rank: beyond it all cut-offs are alike."""
        return int(self.rank.max(initial=0))

    @cached_property
    def _known(self) -> dict[Any, np.ndarray]:
        return {}

    @cached_property
    def _sums(self) -> dict[Any, dict[int, np.ndarray]]:
        return {}
