"""How similar the items of a list are to each other, and to the items in the user's log.

Similarities are computed for one block of lists at a time, and never for all pairs of items.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pandas as pd

from ..inputs.sizes import sizes
from ..inputs.sorting import exact_sums, run_heads, spans
from ..matching.lists import Lists
from ..matching.side_tables.catalogue import FeatureTable, Similarity, called


def rows_of(lists: Lists, which: np.ndarray, row_of: np.ndarray) -> np.ndarray:
    """Return the feature row of each recommended item of some lists, as an array (lists, ranks); -1
    means none."""
    n_shown = lists.n_shown[which]
    ranks = np.arange(n_shown.max(initial=0))
    places = lists.matched.start[which][:, None] + ranks
    inside = ranks < n_shown[:, None]
    if inside.all():
        found: np.ndarray = row_of[lists.matched.item[places]]
        return found
    return np.where(inside, row_of[lists.matched.item[np.where(inside, places, 0)]], -1)


def blocks(bytes_of_list: np.ndarray) -> Iterator[np.ndarray]:
    """Yield blocks of lists of similar length that need `feature_bytes` each. Lists that need none
    are left out."""
    order = np.argsort(bytes_of_list, kind="stable")
    order = order[np.searchsorted(bytes_of_list[order], 0, side="right") :]
    low = 0
    while low < len(order):
        high = min(
            low + max(1, sizes().feature_bytes // int(bytes_of_list[order[low]])), len(order)
        )
        # The last list of a block needs the most memory, and all lists of the block are padded to
        # its length.
        while (
            high - low > 1
            and (high - low) * bytes_of_list[order[high - 1]] > 2 * sizes().feature_bytes
        ):
            high = low + (high - low + 1) // 2
        yield order[low:high]
        low = high


def mean_similarity(lists: Lists, kind: str | Similarity, separator: str) -> np.ndarray:
    """Return the mean similarity over the pairs of recommended items of each list; NaN for lists
    without a pair."""
    key = ("similarity", lists.cut, kind, separator)
    found: np.ndarray = lists.matched.once(key, lambda: _mean_similarity(lists, kind, separator))
    return found


def _mean_similarity(lists: Lists, kind: str | Similarity, separator: str) -> np.ndarray:
    features = lists.sides.features
    row_of = features.known(kind, separator)
    total, n = np.zeros(len(lists)), np.zeros(len(lists))
    product = features.vectors(kind, separator)
    if product is not None:
        # The sum of x·y over all pairs is (|Σ x|² − Σ |x|²) / 2, so no pair has to be formed.
        vectors, scale = product
        squares = np.einsum("ij,ij->i", vectors, vectors)
        for some in blocks(lists.n_shown * 8 * max(vectors.shape[1], 1)):
            rows = rows_of(lists, some, row_of)
            added, alone = vectors[rows[:, 0]], squares[rows[:, 0]]
            for rank in range(1, rows.shape[1]):
                added += vectors[rows[:, rank]]
                alone += squares[rows[:, rank]]
            total[some] = (np.einsum("ij,ij->i", added, added) - alone) / (2 * scale)
            n[some] = np.count_nonzero(rows >= 0, axis=1)
    else:
        _, pair_bytes, row_bytes = features.similar(kind, separator)
        for some in blocks(lists.n_shown**2 * pair_bytes + lists.n_shown * row_bytes):
            rows = rows_of(lists, some, row_of)
            step = max(1, sizes().product // (rows.shape[1] * max(row_bytes // 4, 1)))
            total[some] = _pair_sums(features, kind, separator, rows, step)
            n[some] = np.count_nonzero(rows >= 0, axis=1)
    pairs = n * (n - 1) / 2
    found: np.ndarray = np.divide(total, pairs, out=np.full(len(lists), np.nan), where=pairs > 0)
    return found


def _pair_sums(
    features: FeatureTable, kind: str | Similarity, separator: str, rows: np.ndarray, step: int
) -> np.ndarray:
    """Sum the similarities of all pairs of rows of each list, `step` ranks at a time. A row -1 adds
    nothing.

    Pairs are added in the order of their ranks, so that the longest list of a block does not change
    the sums of others.
    """
    total, own = np.zeros(rows.shape), kind if callable(kind) else features.function
    if own is not None:
        one, two = np.triu_indices(rows.shape[1], 1)
        total = np.append(total[:, :1], called(own, rows[:, one], rows[:, two]), axis=1)
    else:
        similar, known = features.similar(kind, separator)[0], rows >= 0
        for low in range(0, rows.shape[1], step):
            found = similar(rows[:, low : low + step], rows[:, low:])
            if not known.all():
                found = np.where(
                    known[:, low : low + step, None] & known[:, None, low:], found, 0.0
                )
            for rank in range(found.shape[1]):
                total[:, low + rank + 1 :] += found[:, rank, rank + 1 :]
    return np.cumsum(total, axis=1)[:, -1]


def nearest(lists: Lists, kind: str | Similarity, separator: str) -> np.ndarray:
    """Return the largest similarity of each row of the first k to an item of the user's log; NaN
    where unknown."""
    key = ("nearest", lists.cut, kind, separator)
    found: np.ndarray = lists.matched.once(key, lambda: _nearest(lists, kind, separator))
    return found


def _nearest(lists: Lists, kind: str | Similarity, separator: str) -> np.ndarray:
    features, log, matched = lists.sides.features, lists.sides.log, lists.matched
    row_of = features.known(kind, separator)
    similar, pair_bytes, row_bytes = features.similar(kind, separator)
    start, item, _ = log.pairs
    past_row = row_of[item]
    found = np.full(len(matched.item), np.nan)
    for some in blocks(
        log.n_history * lists.n_shown * pair_bytes + (log.n_history > 0) * lists.n_shown * row_bytes
    ):
        rows = rows_of(lists, some, row_of)
        length = log.n_history[some]
        steps = np.arange(length.max())
        inside = steps < length[:, None]
        past = np.where(
            inside, past_row[np.where(inside, start[log.list_user[some]][:, None] + steps, 0)], -1
        )
        known = (rows >= 0)[:, :, None] & (past >= 0)[:, None]
        largest = np.where(known, similar(rows, past), -np.inf).max(axis=2)
        places = spans(matched.start[some], lists.n_shown[some])
        largest = largest[np.arange(rows.shape[1]) < lists.n_shown[some][:, None]]
        found[places] = np.where(np.isneginf(largest), np.nan, largest)
    return found


def total_to_past(
    lists: Lists, place: np.ndarray, of_list: np.ndarray, kind: str | Similarity, separator: str
) -> np.ndarray:
    """Return the sum of the similarities of recommended rows, at some places, to the items of their
    user's log."""
    log, total = lists.sides.log, np.zeros(len(place))
    start, past, _ = log.pairs
    n_past = log.n_history[of_list]
    own = start[
        log.list_user[of_list]
    ]  # a place in a list of a user without past has nothing to sum
    piece = np.cumsum(n_past) // sizes().paired_items
    for low, high in pairwise([*run_heads([piece]).tolist(), len(place)]):
        number = np.repeat(np.arange(high - low), n_past[low:high])
        one, two = (
            lists.matched.item[place[low:high]][number],
            past[spans(own[low:high], n_past[low:high])],
        )
        code, pairs = pd.factorize(one.astype(np.int64) * lists.matched.n_items + two)
        one, two = np.divmod(pairs, lists.matched.n_items)
        if kind == "cooccurrence":
            like = log.cooccurrence(one, two)
        else:
            row_of = lists.sides.features.known(kind, separator)
            like = _alike_pairs(lists.sides.features, kind, separator, row_of[one], row_of[two])
        total[low:high] = exact_sums(like[code], number, high - low)
    return total


def _alike_pairs(
    features: FeatureTable, kind: str | Similarity, separator: str, one: np.ndarray, two: np.ndarray
) -> np.ndarray:
    """Return the similarities of pairs of rows, 0 where one of them is −1."""
    similar, pair_bytes, row_bytes = features.similar(kind, separator)
    product, found = features.vectors(kind, separator), np.zeros(len(one))
    step = max(1, sizes().feature_bytes // (pair_bytes + 2 * row_bytes))
    for low in range(0, len(one), step):
        a, b = one[low : low + step], two[low : low + step]
        if product is not None:
            found[low : low + step] = (
                np.einsum("ij,ij->i", product[0][a], product[0][b]) / product[1]
            )
        else:
            found[low : low + step] = similar(a[:, None], b[:, None])[:, 0, 0]
    return np.where((one >= 0) & (two >= 0), found, 0.0)
