"""What items are about: the aspects that a list and an ideal list cover, and the mix of categories in each list.

The aspects of a row of `true` are those that the aspect table has for the row's item and the user of the list. Rows
that are not relevant have none, whatever the aspect table says.

In a mix of categories each item counts as 1 and is divided equally among its categories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..inputs.sizes import sizes
from ..inputs.sorting import distinct, offsets, spans
from ..inputs.sums import exact_sums
from ..matching.lists import Lists, Matched
from ..matching.side_tables.catalogue import Labels
from ..matching.side_tables.log import LogCodes
from ..matching.side_tables.sides import Aspects


def aspects_of_true(matched: Matched, aspects: Aspects) -> tuple[np.ndarray, np.ndarray]:
    """First entry in `aspects` and number of entries for each row of `true`. Rows that are not relevant have none."""
    true_lists = matched.true_lists
    n_keys = len(true_lists.start) - 1
    user = np.zeros(n_keys, np.int64)
    if aspects.list_user is not None:
        user[:] = -1
        here = matched.true_list >= 0
        user[matched.true_list[here]] = aspects.list_user[here]
    of_row = np.repeat(user, np.diff(true_lists.start))
    key = np.where((of_row >= 0) & (true_lists.gain > 0), of_row * aspects.n_items + true_lists.item, -1)
    first = np.searchsorted(aspects.key, key)
    return first, np.searchsorted(aspects.key, key, side="right") - first


def covered(lists: Lists, aspects: Aspects) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each pair of a hit and an aspect, by rank: code of (list, aspect), rank, number of earlier hits with it."""
    first, length = aspects_of_true(lists.matched, aspects)
    hits = lists.hits
    n = length[hits.true_place]
    code = np.repeat(hits.list, n) * aspects.n_aspects + aspects.aspect[spans(first[hits.true_place], n)]
    return code, np.repeat(hits.rank, n), _earlier(code)


def _earlier(code: np.ndarray) -> np.ndarray:
    """For each entry, the number of earlier entries with the same code."""
    order = np.argsort(code, kind="stable")
    heads = np.flatnonzero(np.diff(code[order], prepend=-1))
    length = np.diff(np.append(heads, len(code)))
    found = np.empty(len(code), np.int64)
    found[order] = np.arange(len(code)) - np.repeat(heads, length)
    return found


def alpha_dcg(lists: Lists, aspects: Aspects, alpha: float) -> np.ndarray:
    """α-DCG of each list."""
    code, rank, earlier = covered(lists, aspects)
    gain = (1.0 - alpha) ** earlier / np.log2(rank + 1)
    return exact_sums(gain, code // aspects.n_aspects, len(lists))


def greedy_ideal(lists: Lists, aspects: Aspects, alpha: float) -> np.ndarray:
    """α-DCG of the relevant items of each list in the greedy order, in which the next item is the one that adds most.

    Each round of the loop takes the next item of all lists at once. Of items that add the same, it takes the one with
    the smallest id.
    """
    matched = lists.matched
    true_lists, item_rank = matched.true_lists, lists.sides.item_rank()
    first, length = aspects_of_true(matched, aspects)
    key = true_lists.key
    row = np.flatnonzero(length)
    value = true_lists.item if item_rank is None else item_rank[true_lists.item]
    row = row[np.lexsort((value[row], key[row]))]
    owner, n = key[row], length[row]
    of_row = np.repeat(np.arange(len(row)), n)
    code = owner[of_row] * aspects.n_aspects + aspects.aspect[spans(first[row], n)]
    pair = np.unique(code, return_inverse=True)[1]
    weight = np.ones(pair.max(initial=-1) + 1)
    total = np.zeros(len(true_lists.start) - 1)
    for rank in range(1, min(lists.k, int(np.bincount(owner).max(initial=0))) + 1):
        score = exact_sums(weight[pair], of_row, len(owner))
        heads = np.flatnonzero(np.diff(owner, prepend=-1))
        best = np.maximum.reduceat(score, heads)
        ahead = np.flatnonzero(score == np.repeat(best, np.diff(np.append(heads, len(owner)))))
        taken = ahead[np.flatnonzero(np.diff(owner[ahead], prepend=-1))]
        total[owner[taken]] += score[taken] / np.log2(rank + 1)
        left = np.ones(len(owner), bool)
        left[taken] = False
        weight[pair[~left[of_row]]] *= 1.0 - alpha
        keep = left[of_row]
        of_row, pair = (offsets(left)[of_row])[keep], pair[keep]
        owner = owner[left]
        if not len(owner):
            break
    return np.append(total, 0.0).take(matched.true_list)


def even_ideal(lists: Lists, aspects: Aspects, alpha: float) -> np.ndarray:
    """DCG of an ideal list of the same length, whose items take the user's aspects in turn, as rs_metrics computes it.

    Each item of a complete round has gain 1. Each item of the last, incomplete round has (1 − α)^(complete rounds).
    """
    n_shown, n_aspects = lists.n_shown, aspects.n_of_list(len(lists))
    rounds = n_shown // np.maximum(n_aspects, 1)
    discounts = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(int(n_shown.max(initial=0))) + 2.0))])
    whole = np.minimum(rounds * n_aspects, n_shown)
    total = discounts[whole] + (1.0 - alpha) ** rounds * (discounts[n_shown] - discounts[whole])
    return np.where(n_aspects > 0, total, 0.0)


def aspect_counts(lists: Lists, aspects: Aspects) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of distinct aspects, of the hits and of all relevant items of each list."""
    matched = lists.matched
    code = distinct(covered(lists, aspects)[0])
    of_hits = np.bincount(code // aspects.n_aspects, minlength=len(lists))
    first, length = aspects_of_true(matched, aspects)
    code = distinct(
        np.repeat(matched.true_lists.key, length) * aspects.n_aspects + aspects.aspect[spans(first, length)]
    )
    of_true = np.bincount(code // aspects.n_aspects, minlength=len(matched.true_lists.start) - 1)
    return of_hits, np.append(of_true, 0)[matched.true_list]


def mixes(
    lists: Lists, labels: Labels, log: LogCodes | None = None, weight: Callable[[np.ndarray], np.ndarray] | None = None
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield blocks of lists with the mix of the recommended items, and that of the user's log (zeros without a log).

    `weight` returns the weight of recommended items by their ranks.
    """
    n_labels = max(len(labels.names), 1)
    size = max(1, sizes().category_cells // n_labels)
    for low in range(0, len(lists), size):
        block = slice(low, min(low + size, len(lists)))
        n_shown = lists.n_shown[block]
        start = lists.matched.start[block]
        places, of_list = spans(start, n_shown), np.repeat(np.arange(len(n_shown)), n_shown)
        weights = None if weight is None else weight(places - start[of_list] + 1)
        shown = _mixed_shares(lists.matched.item[places], of_list, weights, labels, (len(n_shown), n_labels))
        past = np.zeros_like(shown)
        if log is not None:
            start, item, count = log.pairs
            length = log.n_history[block]
            rows = spans(np.append(start[:-1], 0)[log.list_user[block]], length)
            past = _mixed_shares(
                item[rows], np.repeat(np.arange(len(n_shown)), length), count[rows], labels, past.shape
            )
        yield block, shown, past


def _mixed_shares(
    items: np.ndarray, of_list: np.ndarray, weights: np.ndarray | None, labels: Labels, shape: tuple[int, ...]
) -> np.ndarray:
    position, category = labels.entries(items)
    parts = 1.0 / np.maximum(labels.length[items], 1)
    if weights is not None:
        parts = parts * weights
    flat = exact_sums(parts[position], of_list[position] * shape[1] + category, shape[0] * shape[1])
    return flat.reshape(shape)
