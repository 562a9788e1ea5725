"""`Matched`: all lists of the population beside their truth, the one record that every metric reads.

Contract: everything is an array, with one entry per list of the population where it is not said otherwise; no label
among them but the key frames that are put back at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError, examples
from .lists import Hits, Lists
from .pred_lists import Shown
from .side_tables.sides import Sides


@dataclass(frozen=True)
class Truth:
    """What was wanted, one list per key, largest gain first: rows start[i]:start[i + 1] are key list i."""

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
        """The relevant rows of each key list, best first, as if all were shown."""
        return self.ideal_by(self.gain)

    def ideal_by(self, gain: np.ndarray) -> Hits:
        """The same with other gains, in descending order per key, relevant rows first."""
        n = self.n_relevant
        key = np.repeat(np.arange(len(n)), n)
        rank = np.arange(1, len(key) + 1)
        rank -= np.repeat(np.cumsum(n) - n, n)
        rows = self.start.take(key)
        rows += rank - 1
        return Hits(key, rank, gain.take(rows), rank, rows, rows)


@dataclass
class Matched:
    """All lists of the population beside their truth. See the module for what an entry is.

    keys : labels of each list's key · by : labels of the `by` values, list_by : their row for each list ·
    n_true, n_pred : relevant and recommended items of each list · start : its first place among the
    recommended rows, `shown` · list_truth : the list's entry in `truth`, -1 for none · sides : the side tables.
    """

    keys: pd.DataFrame
    by: pd.DataFrame
    list_by: np.ndarray
    n_true: np.ndarray
    n_pred: np.ndarray
    start: np.ndarray
    shown: Shown
    list_truth: np.ndarray
    truth: Truth
    judged: Hits
    n_items: int
    counts: dict[str, int]
    order: dict[str, Any]
    sides: Sides
    catalogue: np.ndarray | None = None
    judged_only: bool = False
    has_true: bool = True
    repeats_kept: bool = False
    values: Values | None = None
    rating: Rating | None = None
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    _views: dict[int | None, Lists] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.list_by)

    @property
    def item(self) -> np.ndarray:
        """Item code of each recommended row."""
        return self.shown.item

    @property
    def as_given(self) -> bool:
        """Whether the places of recommended rows are their positions in `pred`."""
        return self.shown.as_given

    def rows(self, places: np.ndarray) -> np.ndarray:
        """Positions in `pred` of some places."""
        return self.shown.rows(places)

    @property
    def tie_level(self) -> np.ndarray | None:
        """Of each recommended row: equal for equal scores of a list; None without ties."""
        return self.shown.level

    @property
    def repeat(self) -> np.ndarray:
        """Places whose item stands earlier in the same list, with duplicates="keep"."""
        return self.shown.repeat

    def needs_true(self, otherwise: str) -> None:
        """Raise if there is no `true`."""
        if not self.has_true:
            raise OptionError(f"needs true=, {otherwise}")

    @cached_property
    def hits(self) -> Hits:
        """The judged entries with gain above 0, numbered within their list."""
        relevant = self.judged.where(self.judged.gain > 0)
        if relevant is self.judged:
            return relevant
        return Hits.of(*(getattr(relevant, name) for name in ("list", "rank", "gain", "place", "truth")))

    def at(self, k: int | None) -> Lists:
        """The lists cut after rank k; None keeps them whole."""
        if k not in self._views:
            self._views[k] = Lists(self, k)
        return self._views[k]

    def __enter__(self) -> Matched:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget what points back here or to the hits: else memory stays until Python looks for cycles."""
        self._views.clear()
        self.hits_between.clear()

    @cached_property
    def hits_between(self) -> dict[tuple[int, int], Hits]:
        """Hits by the cut-offs that they stand between."""
        return {}


@dataclass(frozen=True)
class Rating:
    """What was rated (per row of `true`) and what was predicted (per recommended row), read when asked for."""

    given: Callable[[], np.ndarray]
    predicted: Callable[[], np.ndarray]


@dataclass
class Values:
    """Value of each recommended row and of each row of `true`, both in list order."""

    shown: np.ndarray
    bought: np.ndarray
    where: tuple[str, str]

    def checked(self, negative: str) -> Values:
        """Refuse negative values (refunds), or clip them to 0."""
        if negative == "clip":
            return Values(np.maximum(self.shown, 0.0), np.maximum(self.bought, 0.0), self.where)
        for values, where in ((self.shown, self.where[0]), (self.bought, self.where[1])):
            below = values[values < 0]
            if len(below):
                raise DataError(
                    f"{where} holds {len(below):,} negative values ({examples(below)}); "
                    'drop refunds or pass negative="clip"'
                )
        return self
