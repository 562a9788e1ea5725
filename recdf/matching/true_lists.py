"""The rows of `true` as lists: one list per key, largest gain first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..inputs.sorting import offsets
from .hits import HitArrays, Hits
from .list_keys import split_codes
from .pairing import Pairs
from .ranked import Ranked, pair


@dataclass(frozen=True)
class TrueLists:
    """The rows of `true`, one list per key, largest gain first: list i has the rows start[i]:start[i + 1]."""

    start: np.ndarray
    gain: np.ndarray
    item: np.ndarray
    rows: Callable[[np.ndarray], np.ndarray]  # from places to positions in the frame `true`

    @cached_property
    def n_relevant(self) -> np.ndarray:
        """Number of relevant rows of each list."""
        relevant = self.gain > 0
        return np.diff(self.start if relevant.all() else offsets(relevant)[self.start])

    @cached_property
    def constant_gain(self) -> bool:
        """Whether all rows have gain 1, as they do without a relevance column."""
        return bool((self.gain == 1.0).all())

    @cached_property
    def key(self) -> np.ndarray:
        """Number of the list that each row belongs to."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @cached_property
    def ideal(self) -> Hits:
        """The relevant rows of each list, best first, as hits of a list that recommends exactly them."""
        return self.ideal_by(self.gain)

    def ideal_by(self, gain: np.ndarray) -> Hits:
        """Return the ideal lists with other gains, which must descend within each list and keep relevant rows first."""
        n = self.n_relevant
        key = np.repeat(np.arange(len(n)), n)
        rank = np.arange(1, len(key) + 1)
        rank -= np.repeat(np.cumsum(n) - n, n)
        rows = self.start.take(key)
        rows += rank - 1
        return Hits(HitArrays(key, rank, gain.take(rows), rank, rows, rows))

    def within(self, inside: np.ndarray) -> tuple[TrueLists, np.ndarray, np.ndarray]:
        """Keep the rows whose item is `inside` (bool per item code).

        Also return the old place of each row that is kept, and for each old place the number of kept rows before it.
        """
        keep = inside[self.item]
        rows, to = np.flatnonzero(keep), offsets(keep)
        return TrueLists(to[self.start], self.gain[rows], self.item[rows], lambda at: self.rows(rows[at])), rows, to


@dataclass(frozen=True)
class TrueByKey:
    """The rows of `true`, to be paired with the lists of `pred`: `item`, `gain` by row; `start`, `length` by key."""

    item: np.ndarray
    gain: np.ndarray
    start: np.ndarray
    length: np.ndarray
    n_by: int

    @classmethod
    def of(cls, lists: Ranked, gain: np.ndarray, n_keys: int, n_by: int) -> TrueByKey:
        """Arrange ranked lists of `true` by key code, for `n_keys` keys and `n_by` values of `by`."""
        start, length = np.zeros(n_keys, np.int64), np.zeros(n_keys, np.int64)
        start[lists.code], length[lists.code] = lists.start[:-1], np.diff(lists.start)
        return cls(lists.item, gain, start, length, n_by)

    def pair(self, pred_lists: Ranked, n_items: int) -> Pairs:
        """Find in each list of `pred` the items that `true` has for its key."""
        _, key = split_codes(pred_lists.code, len(self.start), self.n_by)
        return pair(pred_lists, self.item, self.start.take(key), self.length.take(key), n_items)
