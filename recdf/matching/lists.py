"""What a metric sees: `Lists`, the record `Matched` cut at one k, and its `Hits`.

Contract: everything is an array. Per-list arrays have one entry per list of the population; `Hits` has one
entry per recommended item that `true` judges, list after list, best rank first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DataError, OptionError
from .side_tables.sides import Sides

if TYPE_CHECKING:
    from .matched import Matched, Values


def ratio(above: Any, below: Any) -> np.ndarray:
    """above / below, NaN (undefined) where below is 0."""
    undefined = np.equal(below, 0)
    return np.asarray(np.true_divide(above, np.where(undefined, np.nan, below) if undefined.any() else below))


@dataclass(frozen=True)
class Hits:
    """Recommended items that `true` judges: one entry each, in list order.

    list : code of the list · rank : 1 for the first item · gain : relevance in `true` · number : 1 for the
    list's first entry, 2 for its second · place : row among all recommended rows · truth : row among the
    rows of `true`, as ranked by gain.
    """

    list: np.ndarray
    rank: np.ndarray
    gain: np.ndarray
    number: np.ndarray
    place: np.ndarray
    truth: np.ndarray

    def __len__(self) -> int:
        return len(self.list)

    @classmethod
    def of(cls, list: np.ndarray, rank: np.ndarray, gain: np.ndarray, place: np.ndarray, truth: np.ndarray) -> Hits:
        """Entries given in list order, numbered within each list."""
        heads = np.flatnonzero(np.append(True, list[1:] != list[:-1])[: len(list)])
        length = np.diff(np.append(heads, len(list)))
        number = np.arange(1, len(list) + 1) - np.repeat(heads, length)
        return cls(list, rank, gain, number, place, truth)

    def where(self, keep: np.ndarray) -> Hits:
        """Some of the entries."""
        return self if keep.all() else _SomeHits(self, np.flatnonzero(keep))

    def from_all(self, value: Callable[..., np.ndarray], *args: Any) -> np.ndarray:
        """value(hits, *args) over the hits of the whole lists, at these: for what depends on hits further up."""
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


class _SomeHits(Hits):
    """Some rows of others; an array is taken when it is first asked for, since few metrics read all."""

    source: Hits
    rows: np.ndarray

    def __init__(self, source: Hits, rows: np.ndarray) -> None:
        self.__dict__.update(source=source, rows=rows)

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in Hits.__dataclass_fields__:
            raise AttributeError(name)
        values: np.ndarray = getattr(self.source, name).take(self.rows)
        self.__dict__[name] = values
        return values

    def __len__(self) -> int:
        return len(self.rows)

    def from_all(self, value: Callable[..., np.ndarray], *args: Any) -> np.ndarray:
        return self.source.from_all(value, *args).take(self.rows)


def _one(hits: Hits) -> float:
    return 1.0


class Lists:
    """All lists cut at rank k: the argument of every metric.

    Attributes are arrays with one entry per list (`n_true`, `n_pred`, `n_shown`, `n_hits`), or `Hits`.
    """

    def __init__(self, matched: Matched, k: int | None) -> None:
        self.matched = matched
        self.cut = np.iinfo(np.int64).max if k is None else k

    def __len__(self) -> int:
        return len(self.matched)

    @property
    def k(self) -> int:
        """The cut-off."""
        return self.cut

    @property
    def sides(self) -> Sides:
        """Side tables of the call; what was not given raises an OptionError when it is asked for."""
        return self.matched.sides

    @property
    def whole(self) -> Lists:
        """The same lists without a cut-off."""
        return self.matched.at(None)

    @property
    def n_true(self) -> np.ndarray:
        """Relevant items of each list."""
        return self.matched.n_true

    @property
    def n_pred(self) -> np.ndarray:
        """Recommended items of each list, before the cut-off."""
        return self.matched.n_pred

    @cached_property
    def n_shown(self) -> np.ndarray:
        """Recommended items among the first k."""
        return np.minimum(self.n_pred, self.cut)

    @cached_property
    def n_judged(self) -> np.ndarray:
        """Rows of `true` of each list, relevant or not."""
        matched = self.matched
        length = np.append(np.diff(matched.truth.start), 0)
        return length.take(matched.list_truth)

    @cached_property
    def hits(self) -> Hits:
        """Relevant items among the first k, in rank order."""
        return self.matched.hits.where(self.matched.hits.rank <= self.cut)

    @cached_property
    def tied_hits(self) -> Hits:
        """Hits that share their score with another item of the list."""
        if self is not self.whole:
            hits = self.whole.tied_hits
            return hits.where(hits.rank <= self.cut)
        level = self.matched.tie_level
        if level is None:
            return self.hits.where(np.zeros(len(self.hits), bool))
        same = np.concatenate([[False], level[1:] == level[:-1], [False]])  # as the row before it
        return self.hits.where(same[self.hits.place] | same[self.hits.place + 1])

    @cached_property
    def judged(self) -> Hits:
        """Items among the first k that `true` judges, relevant or not."""
        return self.matched.judged.where(self.matched.judged.rank <= self.cut)

    @property
    def n_hits(self) -> np.ndarray:
        """Hits of each list."""
        return self.sum_hits(_one)

    @cached_property
    def first_rank(self) -> np.ndarray:
        """Rank of the first hit of each list, infinite without one."""
        if self is not self.whole:
            rank = self.whole.first_rank
            return rank if self.cut >= self.matched.hits.deepest else np.where(rank <= self.cut, rank, np.inf)
        hits, rank = self.hits, np.full(len(self), np.inf)
        first = np.flatnonzero(hits.number == 1)
        rank[hits.list[first]] = hits.rank[first]
        return rank

    def sum_hits(self, value: Callable[..., Any], *args: Any) -> np.ndarray:
        """Sum per list of value(hits, *args), one value per hit that does not depend on k; read-only.

        Metrics and cut-offs share a sum where `value` is the same function and `args` are equal.
        """
        return self.matched.hits.sum_upto(self.cut, len(self), self.matched.hits_between, value, *args)

    def sum(self, values: np.ndarray, over: Hits | None = None) -> np.ndarray:
        """Sum per list of one value per hit (or per entry of `over`)."""
        entries = self.hits if over is None else over
        # Without entries bincount counts in integers.
        return np.bincount(entries.list, weights=values, minlength=len(self)).astype(np.float64, copy=False)

    def sum_shown(self, values: np.ndarray) -> np.ndarray:
        """Sum per list, over the items shown, of one value per recommended row of the whole lists."""
        start = self.matched.start
        # As their rows stand: what is between two lists is summed too, which would be most rows for lists in any order.
        order = np.argsort(start, kind="stable")
        edges = np.stack([start, start + self.n_shown], axis=1)[order].ravel()
        total = np.empty(len(start))
        total[order] = np.add.reduceat(np.append(values, 0.0), edges)[::2]
        return np.where(self.n_shown > 0, total, 0.0)

    def mean_shown(self, per_item: np.ndarray, divisor: str = "shown") -> np.ndarray:
        """Sum per list, over the items shown, of one value per item code, over their number or over k."""
        total = self.sum_shown(per_item[self.matched.item])
        return ratio(total, self.n_shown if divisor == "shown" else self.k)

    def note(self, name: str, unknown: np.ndarray) -> None:
        """Count, once per call, the recommended rows whose item (bool per code) a side table does not know."""
        if name not in self.matched.counts:
            self.matched.counts[name] = int(np.count_nonzero(unknown[self.matched.item]))

    def sum_true(self, values: np.ndarray) -> np.ndarray:
        """Sum per list, over its relevant items, of one value per row of `true`."""
        truth = self.matched.truth
        total = np.bincount(truth.key, np.where(truth.gain > 0, values, 0.0), minlength=len(truth.start) - 1)
        return np.append(total, 0.0).take(self.matched.list_truth)

    def sum_ideal(self, value: Callable[..., np.ndarray], *args: Any, gain: np.ndarray | None = None) -> np.ndarray:
        """Sum per list of value(entries, *args) over the ideal list: its relevant items, best first, cut at k.

        `gain` replaces the gains of the rows of `true`, which it must list in descending order per key.
        """
        truth = self.matched.truth
        if gain is None and truth.constant_gain:
            # Equal gains: the sum depends on the number of items alone.
            n_ideal = np.minimum(truth.n_relevant, self.cut)
            rank = np.arange(1, int(n_ideal.max(initial=0)) + 1)
            longest = Hits(np.zeros_like(rank), rank, np.ones(len(rank)), rank, rank, rank)
            total = np.concatenate([[0.0], np.cumsum(value(longest, *args))]).take(n_ideal)
        else:
            ideal = truth.ideal if gain is None else truth.ideal_by(gain)
            total = ideal.sum_upto(self.cut, len(truth.n_relevant), {}, value, *args)
        return np.append(total, 0.0).take(self.matched.list_truth)

    @cached_property
    def n_candidates(self) -> np.ndarray:
        """Items that could have been shown: the judged items with `judged_only`, else the catalogue."""
        matched = self.matched
        if self is not self.whole:
            return self.whole.n_candidates
        if matched.repeats_kept:
            raise DataError('candidates are distinct items, but duplicates="keep" counts repeated rows; pass "drop"')
        if matched.judged_only:
            return self.n_judged
        if matched.catalogue is None:
            raise OptionError("needs items= (the catalogue) or judged_only=True")
        inside = np.zeros(matched.n_items, bool)
        inside[matched.catalogue] = True
        for role, codes in (("pred", matched.item), ("true", matched.truth.item)):
            outside = np.unique(codes[~inside[codes]])
            if len(outside):
                raise DataError(
                    f"items= lacks {len(outside):,} items of {role}; the catalogue must hold every candidate"
                )
        return np.full(len(matched), len(np.unique(matched.catalogue)))

    @property
    def values(self) -> Values:
        """Values of items, for money metrics."""
        if self.matched.values is None:
            raise OptionError("needs value_col= (value of an item in pred, true or items)")
        return self.matched.values
