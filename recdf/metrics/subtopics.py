"""What items are about: the aspects that a list and an ideal list cover, and the mix of categories
in each list.

The aspects of a row of `true` are those that the aspect table has for the row's item and the user
of the list. Rows that are not relevant have none, whatever the aspect table says.

In a mix of categories each item counts as 1 and is divided equally among its categories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy import ndarray

from ..errors import DataError
from ..inputs.codes import encode_keys
from ..inputs.frames import column, read_numbers
from ..inputs.ids import read_ids
from ..inputs.machine import sizes
from ..inputs.sorting import (
    distinct,
    equal_runs,
    exact_sums,
    flags_at,
    offsets,
    rank_within,
    run_heads,
    run_of,
    spans,
)
from ..matching.hits import Hits, ratio
from ..matching.lists import Lists, Matched
from ..matching.side_tables.catalogue import Aspects, Labels, LogCodes
from ..matching.true_and_pred_lists import TrueLists

RankWeights = Callable[[ndarray], ndarray]


def aspects_of_true(lists: Lists, aspects: Aspects) -> tuple[ndarray, ndarray]:
    """First entry in `aspects` and number of entries for each row of `true`. Rows that are not
    relevant have none."""
    matched = lists.matched
    true_lists = lists.matched.true_lists
    user = np.zeros(len(true_lists.start) - 1, np.int64)
    if aspects.list_user is not None:
        user[:] = -1
        here = matched.true_list >= 0
        user[matched.true_list[here]] = aspects.list_user[here]
    of_row = np.repeat(user, np.diff(true_lists.start))
    key = np.where(
        (of_row >= 0) & (true_lists.gain > 0), of_row * aspects.n_items + true_lists.item, -1
    )
    first = np.searchsorted(aspects.key, key)
    return first, np.searchsorted(aspects.key, key, side="right") - first


def covered(lists: Lists, aspects: Aspects) -> tuple[ndarray, ndarray, ndarray]:
    """For each pair of a hit and an aspect, by rank: code of (list, aspect), rank, number of
    earlier hits with it."""
    code, rank, earlier = lists.whole.once(_covered, aspects)
    within = rank <= lists.k
    return code[within], rank[within], earlier[within]


def _covered(lists: Lists, aspects: Aspects) -> tuple[ndarray, ndarray, ndarray]:
    first, length = lists.once(aspects_of_true, aspects)
    hits = lists.hits
    place = lists.hits.true_place
    n = length[place]
    code = np.repeat(hits.list, n) * aspects.n_aspects + aspects.aspect[spans(first[place], n)]
    return code, np.repeat(hits.rank, n), n_earlier(code)


def n_earlier(code: ndarray) -> ndarray:
    """For each entry, the number of earlier entries with the same code."""
    order = np.argsort(code, kind="stable")
    found = np.empty(len(code), np.int64)
    found[order] = np.arange(len(code)) - equal_runs(code[order])[0]
    return found


def greedy_ideal(lists: Lists, aspects: Aspects, alpha: float, weight: RankWeights) -> ndarray:
    """α-DCG of the relevant items of each list in the greedy order: the next one is that which adds
    most."""
    matched = lists.matched
    total = np.zeros(len(lists.matched.true_lists.start) - 1)
    taken, rounds = matched.derived(
        ("greedy", aspects, alpha), lambda: ([], _greedy(lists.whole, aspects, alpha))
    )
    for rank in range(1, lists.k + 1):  # all cut-offs and discounts share the rounds
        if len(taken) < rank:
            if (further := next(rounds, None)) is None:
                break
            taken.append(further)
        owner, gain = taken[rank - 1]
        total[owner] += gain * weight(np.array(rank))
    return matched.of_true(total)


def _greedy(lists: Lists, aspects: Aspects, alpha: float) -> Iterator[tuple[ndarray, ndarray]]:
    """Yield, rank by rank, the lists of `true` that have an item left, and what the item adds that
    adds most.

    Each round takes the next item of all lists at once. Of items that add the same, it takes the
    one with the largest id.
    """
    matched = lists.matched
    true_lists = matched.true_lists
    item_rank = lists.sides.item_rank()
    first, length = lists.once(aspects_of_true, aspects)
    key = true_lists.key
    row = np.flatnonzero(length)
    value = true_lists.item if item_rank is None else item_rank[true_lists.item]
    row = row[np.lexsort((-value[row], key[row]))]
    owner = key[row]
    n = length[row]
    of_row = run_of(n)
    code = owner[of_row] * aspects.n_aspects + aspects.aspect[spans(first[row], n)]
    pair = np.searchsorted(distinct(code), code)
    weight = np.ones(pair.max(initial=-1) + 1)
    while len(owner):
        score = exact_sums(weight[pair], of_row, len(owner))
        heads = run_heads([owner])
        best = np.maximum.reduceat(score, heads)[np.cumsum(np.diff(owner, prepend=-1) > 0) - 1]
        ahead = np.flatnonzero(score == best)
        taken = ahead[run_heads([owner[ahead]])]
        yield owner[taken], score[taken]
        left = np.ones(len(owner), bool)
        left[taken] = False
        weight[pair[~left[of_row]]] *= 1.0 - alpha
        keep = left[of_row]
        of_row = (offsets(left)[of_row])[keep]
        pair = pair[keep]
        owner = owner[left]


def aspect_counts(lists: Lists, aspects: Aspects) -> tuple[ndarray, ndarray]:
    """Numbers of distinct aspects, of the hits and of all relevant items of each list."""
    matched = lists.matched
    code = distinct(covered(lists, aspects)[0])
    of_hits = np.bincount(code // aspects.n_aspects, minlength=len(lists))
    first, length = lists.whole.once(aspects_of_true, aspects)
    code = distinct(
        np.repeat(matched.true_lists.key, length) * aspects.n_aspects
        + aspects.aspect[spans(first, length)]
    )
    of_true = np.bincount(code // aspects.n_aspects, minlength=len(matched.true_lists.start) - 1)
    return of_hits, matched.of_true(of_true)


class AspectLists(NamedTuple):
    """The lists once for each aspect of their relevant items: what they match, and the list and the
    aspect of each."""

    matched: Matched
    owner: ndarray
    aspect: ndarray


def by_aspect(lists: Lists, aspects: Aspects) -> AspectLists:
    """Return each list once for each aspect of its relevant items, beside `true` with only the
    items of the aspect.

    The other rows of `true` stay judged, and are not relevant.
    """
    matched = lists.matched
    true = lists.matched.true_lists
    first, n = lists.once(aspects_of_true, aspects)
    own = run_of(n)  # the row of `true` of each entry
    code = true.key[own] * aspects.n_aspects + aspects.aspect[spans(first, n)]
    pairs = distinct(code)  # a key of `true` and an aspect
    key = pairs // aspects.n_aspects
    start = offsets(np.diff(true.start)[key])
    shift = start[:-1] - true.start[key]  # from a row of `true` to its row in a pair
    rows = spans(true.start[key], np.diff(start))
    has = flags_at(own + shift[np.searchsorted(pairs, code)], len(rows))
    gain = np.where(has, true.gain[rows], np.minimum(true.gain[rows], 0.0))
    ranked = rank_within(gain, start, descending=True)
    order, gain = (np.arange(len(rows)), gain) if ranked is None else ranked
    to = np.empty(len(rows), np.int64)
    to[order] = np.arange(len(rows))
    rows = rows[order]

    n_pairs = np.bincount(key, minlength=len(true.start) - 1)
    mine = matched.of_true(n_pairs)
    owner = run_of(mine)
    of_list = spans(matched.of_true(offsets(n_pairs)[:-1]), mine)
    pool = matched.pool
    n_pool = np.bincount(pool.list, minlength=len(lists))
    begin = np.zeros(len(lists), np.int64)
    heads = run_heads([pool.list])
    begin[pool.list[heads]] = heads
    entry = spans(begin[owner], n_pool[owner])
    number = run_of(n_pool[owner])
    place = to[pool.true_place[entry] + shift[of_list[number]]]
    found = Hits.of(number, pool.rank[entry], gain[place], pool.place[entry], place)
    of_pairs = replace(
        matched,
        keys={name: one.take(owner) for name, one in matched.keys.items()},
        list_by=matched.list_by[owner],
        n_pred=matched.n_pred[owner],
        start=matched.start[owner],
        true_list=of_list,
        weight=None,
        first={},
        n_excluded=None,
        cache={},
    )
    beside = TrueLists(start, gain, true.item[rows], true.row[rows])
    return AspectLists(
        of_pairs.beside(found, beside, rows), owner, pairs[of_list] % aspects.n_aspects
    )


def aspect_weights(
    lists: Lists, aspects: Aspects, found: AspectLists, weights: str | pd.DataFrame
) -> ndarray:
    """Return the weight of each aspect of each list, whose sum is 1 in a list; NaN where all
    weights are 0."""
    given = np.ones(len(found.owner))
    if isinstance(weights, pd.DataFrame):
        keys = lists.matched.keys
        names = [one for one in keys if one in weights.columns]
        labels = [
            *(pd.Series(keys[one].take(found.owner), name=one) for one in names),
            aspects.labels.take(found.aspect),
        ]
        table = [column(weights, one, "weights") for one in (*names, aspects.labels.name)]
        number = read_numbers(column(weights, "weight", "weights"), "weights['weight']")
        (of_pairs, of_rows), n = encode_keys(
            [
                [read_ids(one, f"{what}[{one.name!r}]") for one in some]
                for what, some in (("aspects", labels), ("weights", table))
            ]
        )
        if len(distinct(of_rows.all())) < len(weights) or not (number >= 0).all():
            raise DataError(
                "weights must have one row per list and aspect, with a weight of at least 0"
            )
        value = np.zeros(n)
        value[of_rows.all()] = number
        given = value[of_pairs.all()]
    return ratio(given, exact_sums(given, found.owner, len(lists))[found.owner])


def mixes(
    lists: Lists,
    labels: Labels,
    log: LogCodes | None = None,
    weight: RankWeights | None = None,
) -> Iterator[tuple[slice, ndarray, ndarray]]:
    """Yield blocks of lists with the mix of the recommended items, and that of the user's log if
    there is one.

    `weight` returns the weight of recommended items by their ranks.
    """
    n_labels = max(len(labels.names), 1)
    size = max(1, sizes().category_cells // n_labels)
    for low in range(0, len(lists), size):
        block = slice(low, min(low + size, len(lists)))
        n_shown = lists.n_shown[block]
        start = lists.matched.start[block]
        places = spans(start, n_shown)
        of_list = run_of(n_shown)
        weights = None if weight is None else weight(places - start[of_list] + 1)
        parts = [(lists.matched.item[places], of_list, weights)]
        if log is not None:
            start, item, count = log.pairs
            length = log.n_history[block]
            rows = spans(np.append(start[:-1], 0)[log.list_user[block]], length)
            parts.append((item[rows], run_of(length), count[rows]))
        shares = []
        for items, of, weights in parts:
            position, category = labels.entries(items)
            share = 1.0 / np.maximum(labels.length[items], 1)
            share = (share if weights is None else share * weights)[position]
            flat = exact_sums(share, of[position] * n_labels + category, len(n_shown) * n_labels)
            shares.append(flat.reshape(-1, n_labels))
        yield block, shares[0], shares[-1]
