"""`true` as lists: one per list key, largest gain first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .grouping import Pairs, offsets
from .hits import HitArrays, Hits
from .list_keys import split
from .ranked import Ranked, pair


@dataclass(frozen=True)
class TrueLists:
    """The rows of `true`, one list per key, largest gain first: rows start[i]:start[i + 1] are key list i."""

    start: np.ndarray
    gain: np.ndarray
    item: np.ndarray
    rows: Callable[[np.ndarray], np.ndarray]  # positions in the frame `true` of some places
    n_relevant: np.ndarray

    @cached_property
    def constant_gain(self) -> bool:
        """All rows have gain 1, as without a relevance column."""
        return bool((self.gain == 1.0).all())

    @cached_property
    def key(self) -> np.ndarray:
        """Key list of each row."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @cached_property
    def ideal(self) -> Hits:
        """The relevant rows of each key list, best first, as if all were recommended."""
        return self.ideal_by(self.gain)

    def ideal_by(self, gain: np.ndarray) -> Hits:
        """The same with other gains, in descending order per key, relevant rows first."""
        n = self.n_relevant
        key = np.repeat(np.arange(len(n)), n)
        rank = np.arange(1, len(key) + 1)
        rank -= np.repeat(np.cumsum(n) - n, n)
        rows = self.start.take(key)
        rows += rank - 1
        return Hits(HitArrays(key, rank, gain.take(rows), rank, rows, rows))

    def within(self, inside: np.ndarray) -> tuple[TrueLists, np.ndarray, np.ndarray]:
        """The rows whose item is inside (bool per item code), their old places, and the new place of each old one."""
        keep = inside[self.item]
        rows, to = np.flatnonzero(keep), offsets(keep)
        start, gain = to[self.start], self.gain[rows]
        n_relevant = np.diff(offsets(gain > 0)[start])
        lists = TrueLists(start, gain, self.item[rows], lambda places: self.rows(rows[places]), n_relevant)
        return lists, rows, to


@dataclass(frozen=True)
class TrueByKey:
    """`true` as the lists of `pred` are paired with it: `item` and `gain` of its rows, `start` and `length` by key."""

    item: np.ndarray
    gain: np.ndarray
    start: np.ndarray
    length: np.ndarray
    n_by: int

    @classmethod
    def of(cls, lists: Ranked, gain: np.ndarray, n_keys: int, n_by: int) -> TrueByKey:
        """By key code, for `n_keys` keys and `n_by` values of `by`."""
        start, length = np.zeros(n_keys, np.int64), np.zeros(n_keys, np.int64)
        start[lists.code], length[lists.code] = lists.start[:-1], np.diff(lists.start)
        return cls(lists.item, gain, start, length, n_by)

    def pair(self, pred_lists: Ranked, n_items: int) -> Pairs:
        """Find the items of each list's key among its recommended items."""
        _, key = split(pred_lists.code, len(self.start), self.n_by)
        return pair(pred_lists, self.item, self.start.take(key), self.length.take(key), n_items)
