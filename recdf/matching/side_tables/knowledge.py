"""What side tables say, as codes: the catalogue, the past log, aspects and a baseline's lists.

Contract: arrays by item code have `n_items` entries, arrays of lists one per list of the population; what takes long
is worked out once, when first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...errors import DataError, IdTypeError, OptionError
from ...inputs.frames import column
from ..grouping import offsets, pair_within
from .categories import Labels, read_labels

if TYPE_CHECKING:  # lists need this module
    from ..matched import Matched


def unique_rows(codes: np.ndarray, n_items: int, where: str) -> np.ndarray:
    """Row of each item code, -1 for none."""
    repeated = len(codes) - len(pd.unique(codes))
    if repeated:
        raise DataError(f"{where} has {repeated:,} repeated ids; expected one row per item")
    row_of = np.full(n_items, -1, np.int64)
    row_of[codes] = np.arange(len(codes))
    return row_of


@dataclass
class Catalogue:
    """The items that could have been shown: a frame and the code of each row."""

    frame: pd.DataFrame
    code: np.ndarray
    n_items: int
    _labels: dict[Any, Labels] = field(default_factory=dict, repr=False)

    @cached_property
    def codes(self) -> np.ndarray:
        """Codes of the distinct items, in order of the frame."""
        return pd.unique(self.code)

    @cached_property
    def inside(self) -> np.ndarray:
        """Bool per item code: it is in the catalogue."""
        found = np.zeros(self.n_items, bool)
        found[self.code] = True
        return found

    @cached_property
    def row_of(self) -> np.ndarray:
        return unique_rows(self.code, self.n_items, "items")

    @cached_property
    def row_of_first(self) -> np.ndarray:
        """First row of each item code, also where ids repeat; -1 for none."""
        found = np.full(self.n_items, -1, np.int64)
        found[self.code[::-1]] = np.arange(len(self.code))[::-1]
        return found

    def labels(self, name: str, separator: str | None = "|") -> Labels:
        """Categories of each item from one column; `separator` splits strings that name several."""
        if (name, separator) not in self._labels:
            found = read_labels(column(self.frame, name, "items"), f"items[{name!r}]", separator)
            self._labels[name, separator] = found.of_rows(self.row_of)
        return self._labels[name, separator]


@dataclass
class Log:
    """Past interactions: codes of user and item per row, and the user of each list, -1 for none in the log."""

    user: np.ndarray
    item: np.ndarray
    matched_user: np.ndarray | IdTypeError  # the error, if users of the log and of the lists can never match
    n_items: int
    rank: Callable[[], np.ndarray | None]

    @property
    def list_user(self) -> np.ndarray:
        """User of each list; popularity, which needs no user to match, does not ask."""
        if isinstance(self.matched_user, IdTypeError):
            raise self.matched_user
        return self.matched_user

    @cached_property
    def n_users(self) -> int:
        return len(pd.unique(self.user))

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Distinct items of each user: start (by user code), item, and interactions of each pair."""
        key = self.user.astype(np.int64) * self.n_items + self.item
        key, count = np.unique(key, return_counts=True)
        known = () if isinstance(self.matched_user, IdTypeError) else self.matched_user
        n_codes = int(max(self.user.max(initial=-1), np.max(known, initial=-1))) + 1
        length = np.bincount(key // self.n_items, minlength=n_codes)
        return offsets(length), (key % self.n_items).astype(np.int32), count

    @cached_property
    def pair_user(self) -> np.ndarray:
        start = self.pairs[0]
        return np.repeat(np.arange(len(start) - 1), np.diff(start))

    def count(self, base: str) -> np.ndarray:
        """Users (base "users") or interactions ("events") of each item code."""
        return np.bincount(self.pairs[1] if base == "users" else self.item, minlength=self.n_items)

    def total(self, base: str) -> int:
        """Users, or interactions, of the whole log."""
        return self.n_users if base == "users" else len(self.item)

    def share(self, base: str) -> np.ndarray:
        """p(i): share of the users who have item i, or of the interactions."""
        return self.count(base) / max(self.total(base), 1)

    def surprise(self, base: str) -> np.ndarray:
        """−log2 p(i); an item that is not in the log counts as had once."""
        return np.log2(max(self.total(base), 1)) - np.log2(np.maximum(self.count(base), 1))

    def by_popularity(self) -> np.ndarray:
        """Item codes of the log, most interactions first, equal ones by ascending id."""
        count = self.count("events")
        codes = np.flatnonzero(count)
        rank = self.rank()
        return codes[np.lexsort((codes if rank is None else rank[codes], -count[codes]))]

    def head(self, share: float) -> np.ndarray:
        """Bool per item code: among the most popular items that together hold this share of the interactions."""
        if not 0 < share <= 1:
            raise OptionError(f"head={share!r}; expected a share in (0, 1]")
        order = self.by_popularity()
        held = np.cumsum(self.count("events")[order])
        short = held < share * len(self.item) * (1 - 1e-12)
        found = np.zeros(self.n_items, bool)
        found[order[: np.count_nonzero(short) + 1]] = True
        return found

    def seen(self, matched: Matched) -> np.ndarray:
        """Bool per recommended row: its item is in the log of the list's user."""
        if ("seen", id(self)) not in matched.cache:
            matched.cache["seen", id(self)] = self._seen(matched)
        return matched.cache["seen", id(self)]

    def _seen(self, matched: Matched) -> np.ndarray:
        start, item, _ = self.pairs
        own = np.append(start[:-1], 0)[self.list_user]
        pairs = pair_within(matched.item, matched.start, matched.n_pred, item, own, self.n_history, matched.n_items)
        found = np.zeros(len(matched.item), bool)
        found[pairs.place] = True
        found[pairs.repeat] = found[pairs.first]
        return found

    @cached_property
    def n_history(self) -> np.ndarray:
        """Distinct items in the history of each list's user."""
        length = np.append(np.diff(self.pairs[0]), 0)
        return length[self.list_user]


@dataclass
class Aspects:
    """What a user may want of an item: entries (user, item, aspect), ordered by user and item.

    `key` is user * n_items + item (item alone if the aspects are the same for all users) · `list_user`: the user
    of each list, -1 for none, None for all · `n_of_user`: distinct aspects of each user.
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


@dataclass
class BaseLists:
    """The baseline's lists, best first, each item once; `list_base`: the one of each list, -1 for none."""

    start: np.ndarray
    item: np.ndarray
    list_base: np.ndarray
