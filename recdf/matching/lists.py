"""What a metric reads: `Matched`, all lists of the population beside `true`, and `Lists`, these
lists cut at one k.

Contract: every array has one entry per list of the population unless its description says
otherwise. There are no labels except the key frames that results get at the end. Metrics change
nothing here. What several metrics need is computed on first use and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame

from ..errors import DataError, OptionError
from ..inputs.sorting import distinct, exact_sums, rank_within
from ..inputs.true_and_pred import Order
from .hits import HitArrays, Hits, ratio, shared
from .list_keys import KeyColumns
from .overlap import Overlap
from .side_tables.sides import Sides
from .true_and_pred_lists import PredLists, TrueLists, Values


@dataclass(frozen=True)
class Matched:
    """All lists of the population beside `true`. Arrays have one entry per list unless said
    otherwise.

    keys : labels of each list's key · by : labels of the `by` values, list_by : their row for each
    list · n_true, n_pred : number of relevant and of recommended items of each list · start : its
    first place among the recommended rows, `pred_lists` · true_list : the list's entry in
    `true_lists`, -1 for none · pool : recommended rows that `true` has, judged or not · repeats :
    the list of each row that repeats an item, and its rank before such rows were dropped · counts :
    numbers of rows that were dropped or repeated · order, relevance_col : columns that rank and
    grade the rows · overlap : what both frames share · sides : the side tables · frames : `true`
    and `pred`, one item in a row · first : where the list first stands in each frame that names the
    population, -1 for nowhere; only of a part · weight : how much each list counts in a mean, None
    if all count alike · untied : ranks are not those of scores, so that no two places tie ·
    n_excluded : a function from `inside` (bool per item code) to the number of such items that
    `exclude=` has for each list, None without `exclude=` · item_weights : 1/propensity of each
    row of `true`, None without propensities · ratings, scores : functions from rows of the
    frame `true` to the ratings given there, and from rows of `pred` to the predicted ones ·
    responses : a function from the name of a column of `true`, such as "clicks", to its number
    for each row of the frame, or to None where there is no such column · user_groups : a
    function from a column of the frame `users=` to the names of its groups, and the group of
    each list, -1 for none.
    """

    keys: KeyColumns
    by: DataFrame
    list_by: ndarray
    n_true: ndarray
    n_pred: ndarray
    start: ndarray
    pred_lists: PredLists
    true_list: ndarray
    true_lists: TrueLists
    pool: Hits
    repeats: tuple[ndarray, ndarray]
    n_items: int
    counts: Mapping[str, int]
    side_counts: Mapping[str, int]
    order: Order
    overlap: Overlap
    sides: Sides
    frames: tuple[DataFrame, DataFrame]
    first: Mapping[str, ndarray]
    relevance_col: str | None
    judged_only: bool
    has_true: bool
    repeats_kept: bool
    n_excluded: Callable[[ndarray], ndarray] | None
    values: Values | None
    weight: ndarray | None
    item_weights: ndarray | None
    ratings: Callable[[ndarray], ndarray]
    scores: Callable[[ndarray], ndarray]
    responses: Callable[[str], ndarray | None]
    user_groups: Callable[[str], tuple[pd.Index, ndarray]]
    untied: bool = False
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.list_by)

    @property
    def item(self) -> ndarray:
        """Item code of each recommended row."""
        return self.pred_lists.item

    def rows(self, places: ndarray) -> ndarray:
        """Return the positions in `pred` of the rows at some places."""
        return self.pred_lists.rows(places)

    @property
    def tie_level(self) -> ndarray | None:
        """A number per recommended row that is equal for equal scores of a list; None without
        ties."""
        return None if self.untied else self.pred_lists.level

    def needs_true(self, otherwise: str) -> None:
        """Raise if there is no `true`."""
        if not self.has_true:
            raise OptionError(f"needs ⟦+true=⟧, {otherwise}")

    @cached_property
    def judged(self) -> Hits:
        """The entries that `true` judges, numbered within their list."""
        return self.pool.numbered(self.pool.gain >= 0)

    @cached_property
    def hits(self) -> Hits:
        """The judged entries with gain above 0, numbered within their list."""
        return self.judged.numbered(self.judged.gain > 0)

    def at(self, k: int | None) -> Lists:
        """The lists cut after rank k; None keeps them whole."""
        return self.derived(("lists", k), lambda: Lists(self, k))

    def of_true(self, values: ndarray) -> ndarray:
        """Return for each list the value of its list of `true`, 0 where `true` has none."""
        return np.append(values, 0).take(self.true_list)

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}

    def derived(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what `make` returns; it is called once for all that ask by this key beside these
        rows of `true`."""
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    def beside(
        self, pool: Hits, true_lists: TrueLists | None = None, rows: ndarray | None = None
    ) -> Matched:
        """Return these lists with another pool; `true_lists`, if given, are the rows of `true` at
        `rows`."""
        if true_lists is None or rows is None:
            return replace(self, pool=pool)
        values = self.values
        weights = self.item_weights
        return replace(
            self,
            pool=pool,
            true_lists=true_lists,
            n_true=self.of_true(true_lists.n_relevant),
            values=None if values is None else values._replace(true=values.true[rows]),
            item_weights=None if weights is None else weights[rows],
        )

    def __enter__(self) -> Matched:
        return self

    def __exit__(self, *error: object) -> None:
        """Drop references that form cycles, which would keep the memory until Python collects
        garbage."""
        self._derived.clear()


def _one(hits: Hits) -> float:
    return 1.0


def _seen(lists: Lists) -> ndarray:
    return shared(lists.sides.log.seen(lists.matched.item, lists.matched.start, lists.n_pred))


class Lists:
    """All lists cut at rank k. It is the argument of every metric.

    Attributes are arrays with one entry per list (`n_true`, `n_pred`, `n_shown`, `n_hits`), or
    `Hits`. `k` is the cut-off, and `sides` has the side tables of the call; to read one that was
    not given raises an OptionError. `item_weights` is 1/propensity of each row of `true`, as
    `Hits.true_place` counts them; None without propensities.
    """

    def __init__(self, matched: Matched, k: int | None) -> None:
        self.matched, self.sides = matched, matched.sides
        self.item_weights: Any = matched.item_weights
        # Both are before the cut-off.
        self.n_true, self.n_pred = shared(matched.n_true), shared(matched.n_pred)
        self.k = np.iinfo(np.int64).max if k is None else k

    def __len__(self) -> int:
        return len(self.matched)

    @property
    def whole(self) -> Lists:
        """The same lists without a cut-off."""
        return self.matched.at(None)

    def once(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return function(self, *args); it is called once for all metrics that ask for it at this
        cut-off, beside these rows of `true`."""
        return self.matched.derived((function, self.k, *args), lambda: function(self, *args))

    def once_of_pred(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the same of a function that reads only the recommended lists and the side tables:
        lists of the same `pred` beside other rows of `true` share its result."""
        known = self.matched.cache
        key = (function, self.k, *args)
        if key not in known:
            known[key] = function(self, *args)
        return known[key]

    @property
    def seen(self) -> ndarray:
        """Tell for each recommended row whether the log has its item for the list's user."""
        return self.whole.once_of_pred(_seen)

    @cached_property
    def n_shown(self) -> ndarray:
        """Number of recommended items among the first k."""
        return shared(np.minimum(self.n_pred, self.k))

    @cached_property
    def n_judged(self) -> ndarray:
        """Number of rows of `true` that judge an item of each list, as relevant or not."""
        return shared(self.matched.of_true(self.matched.true_lists.n_judged))

    @cached_property
    def hits(self) -> Hits:
        """Relevant items among the first k, in rank order."""
        return self.matched.hits.where(self.matched.hits.rank <= self.k)

    @cached_property
    def tied_hits(self) -> Hits:
        """Hits that share their score with another item of the list."""
        if self is not self.whole:
            hits = self.whole.tied_hits
            return hits.where(hits.rank <= self.k)
        level = self.matched.tie_level
        if level is None:
            return self.hits.where(np.zeros(len(self.hits), bool))
        same = np.pad(level[1:] == level[:-1], 1)  # entry i: row i ties with row i - 1
        return self.hits.where(same[self.hits.place] | same[self.hits.place + 1])

    @cached_property
    def judged(self) -> Hits:
        """Items among the first k that `true` judges, relevant or not."""
        return self.matched.judged.where(self.matched.judged.rank <= self.k)

    @cached_property
    def pool(self) -> Hits:
        """Items among the first k that `true` has, also those of null or negative relevance, which
        nobody judged."""
        return self.matched.pool.where(self.matched.pool.rank <= self.k)

    @property
    def n_hits(self) -> ndarray:
        """Number of hits of each list."""
        return self.sum_hits(_one)

    @cached_property
    def first_rank(self) -> ndarray:
        """Rank of the first hit of each list, infinite without one."""
        hits = self.hits
        rank = np.full(len(self), np.inf)
        rank[hits.list[::-1]] = hits.rank[::-1]  # of equal lists the last entry stays
        return shared(rank)

    def sum_hits(self, value: Callable[..., Any], *args: Any) -> ndarray:
        """Sum value(hits, *args) per list; `value` returns one number per hit that does not depend
        on k.

        The array is read-only, since metrics and cut-offs share it where `value` is the same
        function and `args` are equal.
        """
        between = self.matched.derived("hits between two cut-offs", dict)
        return self.matched.hits.sum_upto(self.k, len(self), between, value, *args)

    def sum(self, values: ndarray, over: Hits | None = None) -> ndarray:
        """Sum one value per hit (or per entry of `over`) for each list."""
        entries = self.hits if over is None else over
        # Where there are no entries, bincount returns integers.
        return np.bincount(entries.list, weights=values, minlength=len(self)).astype(
            np.float64, copy=False
        )

    def sum_shown(self, values: ndarray) -> ndarray:
        """Sum over the items shown of each list; `values` has one number per recommended row of the
        whole lists."""
        start = self.matched.start
        # `reduceat` also sums the rows between two edges. Lists in the order of their rows keep
        # these sums short.
        order = np.argsort(start, kind="stable")
        edges = np.stack([start, start + self.n_shown], axis=1)[order].ravel()
        total = np.empty(len(start))
        total[order] = np.add.reduceat(np.append(values, 0.0), edges)[::2]
        return np.where(self.n_shown > 0, total, 0.0)

    def mean_shown(self, per_item: ndarray, divisor: str = "shown") -> ndarray:
        """Mean over the items shown of each list; `per_item` has one number per item code.

        The divisor is the number of items shown (`divisor="shown"`), or else k.
        """
        total = self.sum_shown(per_item[self.matched.item])
        return ratio(total, self.n_shown if divisor == "shown" else self.k)

    def sum_true(self, values: ndarray) -> ndarray:
        """Sum over the relevant items of each list; `values` has one number per row of `true`."""
        lists = self.matched.true_lists
        total = exact_sums(np.where(lists.gain > 0, values, 0.0), lists.key, len(lists.start) - 1)
        return self.matched.of_true(total)

    def sum_ideal(
        self, value: Callable[..., ndarray], *args: Any, gain: ndarray | None = None
    ) -> ndarray:
        """Sum value(entries, *args) over the ideal list of each list: its relevant items, best
        first, cut at k.

        `gain` replaces the gains of the rows of `true`. It must be in descending order within each
        key.
        """
        lists = self.matched.true_lists
        if gain is None and lists.constant_gain:
            # All gains are equal, so the sum depends only on the number of items.
            n_ideal = np.minimum(lists.n_relevant, self.k)
            rank = np.arange(1, int(n_ideal.max(initial=0)) + 1)
            longest = Hits(
                HitArrays(np.zeros_like(rank), rank, np.ones(len(rank)), rank, rank, rank)
            )
            total = np.concatenate([[0.0], np.cumsum(value(longest, *args))]).take(n_ideal)
        else:
            ideal = lists.ideal if gain is None else lists.ideal_by(gain)
            total = ideal.sum_upto(self.k, len(lists.n_relevant), {}, value, *args)
        return self.matched.of_true(total)

    def sum_best(self, worth: ndarray, value: Callable[..., ndarray], *args: Any) -> ndarray:
        """Sum value(entries, *args) over the min(k, n_true) relevant items of each list with the
        largest worth.

        `worth` has one number per row of `true`, at least 0; it is the gain of the entries.
        """
        lists = self.matched.true_lists
        # Rows that are not relevant go behind the others, beyond the ideal list.
        worth = np.where(lists.gain > 0, worth, -1.0)
        ranked = rank_within(worth, lists.start, descending=True)
        return self.sum_ideal(value, *args, gain=worth if ranked is None else ranked[1])

    @cached_property
    def n_candidates(self) -> ndarray:
        """Number of items that could have been shown: the judged items with `judged_only`, else the
        catalogue."""
        matched = self.matched
        if matched.repeats_kept:
            raise DataError(
                'candidates are distinct items, but ⟦duplicates="keep"⟧ counts repeated rows; pass '
                '"drop"'
            )
        if matched.judged_only:
            return self.n_judged
        if not matched.sides.has("items"):
            raise OptionError("needs ⟦+items=⟧ (the catalogue) or ⟦+judged_only=True⟧")
        catalogue = matched.sides.items
        for role, codes in (("pred", matched.item), ("true", matched.true_lists.item)):
            outside = distinct(codes[~catalogue.inside[codes]])
            if len(outside):
                raise DataError(
                    f"⟦items=⟧ lacks {len(outside):,} items of {role}; the catalogue must hold "
                    "every candidate"
                )
        return np.full(len(matched), len(catalogue.codes))

    @property
    def values(self) -> Values:
        """Values of items, for money metrics."""
        if self.matched.values is None:
            raise OptionError("needs ⟦+value_col=⟧ (value of an item in pred, true or items)")
        return self.matched.values
