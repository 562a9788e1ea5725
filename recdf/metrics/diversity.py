"""Diversity: how different are the items of a list from one another?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy import ndarray

from ..docstrings import says_as
from ..errors import OptionError
from ..inputs.constraints import Constraint, Share, a_number, either, one_of
from ..inputs.machine import sizes
from ..inputs.options import Options
from ..inputs.sorting import exact_sums, run_heads, run_of, spans
from ..matching.counts import discount_at
from ..matching.hits import ratio
from ..matching.lists import Lists
from ..matching.side_tables.catalogue import Likeness, Similarity, called
from .metric import NOT_NEGATIVE, Metric, metric
from .strings import read_string
from .subtopics import (
    AspectLists,
    aspect_counts,
    aspect_weights,
    by_aspect,
    covered,
    greedy_ideal,
)

RANKS_AT_ONCE = 2**20

# ------------------------------------------------------------------------------------------
# How similar the items of a list are to each other, and to the items in the user's log.
#
# Similarities are computed for one block of lists at a time, and never for all pairs of items.


def rows_of(like: Likeness, item: ndarray, start: ndarray, length: ndarray) -> ndarray:
    """Return the feature row of each item of some lists, as an array (lists, ranks); -1 for an item
    without features and past the end of a list."""
    ranks = np.arange(length.max(initial=0))
    inside = ranks < length[:, None]
    return np.where(inside, like.row_of[item[np.where(inside, start[:, None] + ranks, 0)]], -1)


def blocks(bytes_of_list: ndarray) -> Iterator[ndarray]:
    """Yield blocks of lists of similar length that need `feature_bytes` each. Lists that need none
    are left out."""
    order = np.argsort(bytes_of_list, kind="stable")
    needed = bytes_of_list[order]
    low = int(np.searchsorted(needed, 0, side="right"))
    while low < len(order):
        # All lists of a block are padded to the length of the last one, which needs at most twice
        # the memory of the first.
        most = low + max(1, sizes().feature_bytes // int(needed[low]))
        high = min(most, int(np.searchsorted(needed, 2 * needed[low], side="right")))
        yield order[low:high]
        low = high


def mean_similarity(lists: Lists, like: Likeness) -> ndarray:
    """Return the mean similarity over the pairs of recommended items of each list; NaN for lists
    without such a pair."""
    total = np.zeros(len(lists))
    n = np.zeros(len(lists))
    if like.vectors is not None:
        vectors, scale = like.vectors
        squares = np.einsum("ij,ij->i", vectors, vectors)
        needed = lists.n_shown * 8 * max(vectors.shape[1], 1)
    else:
        _, pair_bytes, row_bytes = like.similar
        needed = lists.n_shown**2 * pair_bytes + lists.n_shown * row_bytes
    for some in blocks(needed):
        rows = rows_of(like, lists.matched.item, lists.matched.start[some], lists.n_shown[some])
        n[some] = np.count_nonzero(rows >= 0, axis=1)
        if like.vectors is None:
            step = max(1, sizes().product // (rows.shape[1] * max(row_bytes // 4, 1)))
            total[some] = _pair_sums(like, rows, step)
            continue
        # The sum of x·y over all pairs is (|Σ x|² − Σ |x|²) / 2, so no pair has to be formed.
        added = vectors[rows[:, 0]]
        alone = squares[rows[:, 0]]
        for rank in range(1, rows.shape[1]):
            added += vectors[rows[:, rank]]
            alone += squares[rows[:, rank]]
        total[some] = (np.einsum("ij,ij->i", added, added) - alone) / (2 * scale)
    return ratio(total, n * (n - 1) / 2)


def _pair_sums(like: Likeness, rows: ndarray, step: int) -> ndarray:
    """Sum the similarities of all pairs of rows of each list, `step` ranks at a time. A row -1 adds
    nothing.

    Pairs are added in the order of their ranks, so that the longest list of a block does not change
    the sums of others.
    """
    total = np.zeros(rows.shape)
    if callable(like.kind):
        one, two = np.triu_indices(rows.shape[1], 1)
        total = np.append(total[:, :1], called(like.kind, rows[:, one], rows[:, two]), axis=1)
    else:
        similar = like.similar[0]
        known = rows >= 0
        for low in range(0, rows.shape[1], step):
            found = similar(rows[:, low : low + step], rows[:, low:])
            if not known.all():
                found = np.where(
                    known[:, low : low + step, None] & known[:, None, low:], found, 0.0
                )
            for rank in range(found.shape[1]):
                total[:, low + rank + 1 :] += found[:, rank, rank + 1 :]
    return np.cumsum(total, axis=1)[:, -1]


def nearest(lists: Lists, like: Likeness) -> ndarray:
    """Return the largest similarity of each row of the first k to an item of the user's log; NaN
    where unknown."""
    log = lists.sides.log
    matched = lists.matched
    similar, pair_bytes, row_bytes = like.similar
    start, item, _ = log.pairs
    found = np.full(len(matched.item), np.nan)
    for some in blocks(
        log.n_history * lists.n_shown * pair_bytes + (log.n_history > 0) * lists.n_shown * row_bytes
    ):
        n_shown = lists.n_shown[some]
        rows = rows_of(like, matched.item, matched.start[some], n_shown)
        past = rows_of(like, item, start[log.list_user[some]], log.n_history[some])
        known = (rows >= 0)[:, :, None] & (past >= 0)[:, None]
        largest = np.where(known, similar(rows, past), -np.inf).max(axis=2)
        largest = largest[np.arange(rows.shape[1]) < n_shown[:, None]]
        found[spans(matched.start[some], n_shown)] = np.where(np.isneginf(largest), np.nan, largest)
    return found


def total_to_past(lists: Lists, place: ndarray, of_list: ndarray, like: Likeness | None) -> ndarray:
    """Return the sum of the similarities of recommended rows, at some places, to the items of their
    user's log; by default the similarity is how often users of the log have both items."""
    log = lists.sides.log
    total = np.zeros(len(place))
    start, past, _ = log.pairs
    n_past = log.n_history[of_list]
    own = start[
        log.list_user[of_list]
    ]  # a place in a list of a user without past has nothing to sum
    piece = np.cumsum(n_past) // sizes().paired_items
    for low, high in pairwise([*run_heads([piece]).tolist(), len(place)]):
        number = run_of(n_past[low:high])
        one = lists.matched.item[place[low:high]][number]
        two = past[spans(own[low:high], n_past[low:high])]
        code, pairs = pd.factorize(one.astype(np.int64) * lists.matched.n_items + two)
        one, two = np.divmod(pairs, lists.matched.n_items)
        alike = log.cooccurrence(one, two) if like is None else _alike_pairs(like, one, two)
        total[low:high] = exact_sums(alike[code], number, high - low)
    return total


def _alike_pairs(like: Likeness, one: ndarray, two: ndarray) -> ndarray:
    """Return the similarities of pairs of item codes, 0 where one of them is not known."""
    one = like.row_of[one]
    two = like.row_of[two]
    similar, pair_bytes, row_bytes = like.similar
    found = np.zeros(len(one))
    step = max(1, sizes().feature_bytes // (pair_bytes + 2 * row_bytes))
    for low in range(0, len(one), step):
        a, b = (rows[low : low + step, None] for rows in (one, two))
        found[low : low + step] = similar(a, b)[:, 0, 0]
    return np.where((one >= 0) & (two >= 0), found, 0.0)


SimilarityArgument = Literal["cosine", "jaccard", "hamming"] | Callable[[ndarray, ndarray], ndarray]


@metric(
    bounds=(0.0, 2.0),
    aliases=("diversity",),
    needs=("features",),
    arguments=("pred",),
    unknown=("features",),
)
def ild(
    lists: Lists, *, similarity: SimilarityArgument = "cosine", separator: str = "|"
) -> ndarray:
    """Intra-list diversity, the mean dissimilarity of two recommended items; larger is better, in
    [0, 2].

    Formula
    -------
    Mean of 1 − sim(i, j) over the pairs of items i, j in the first k, where sim is their
    similarity. Undefined for fewer than two items. Items without features (no row, or a null in it)
    are left out of the pairs, and `spec["counts"]` counts the recommended rows with such an item.
    If no feature is negative, no similarity is, and the value is in [0, 1].

    Parameters
    ----------
    similarity : {"cosine", "jaccard", "hamming"} or callable, default "cosine"
        "cosine": cosine of the feature vectors, 0 for a vector of zeros. "jaccard": number of
        features that both items have, over the number that either has. "hamming": share of equal
        positions, where a column of plain categories is one position. A function takes two arrays
        of row positions, in `features` if that is a frame and else in `items`, and returns the
        similarities of these pairs.
    separator : str, default "|"
        Sign between the categories of one string.

    Notes
    -----
    Use it beside a metric of accuracy, to see whether lists repeat one kind of item. Random
    recommendations have a large value, so never optimize it alone. It is only as good as the
    features: choose features by which users would call items alike. All pairs count the same,
    whatever their ranks.

    References
    ----------
    Ziegler et al. (2005), WWW; Smyth & McClave (2001), ICCBR. The default equals `diversity` of
    recommenders, similarity="jaccard" that of recpack, and similarity="hamming" times the number of
    features is the Hamming distance of RecTools. These libraries give 0 to a list of one item, as
    undefined="zero" does here.

    Examples
    --------
    >>> genres = {"a": "crime", "b": "crime|drama", "c": "western"}
    >>> rd.ild({"u": ["a", "b", "c"]}, k=3, features=genres, similarity="jaccard").__round__(4)
    0.8333
    """
    return 1.0 - _similarity(lists, similarity, separator)


@metric(
    bounds=(-1.0, 1.0),
    better="smaller",
    needs=("features",),
    arguments=("pred",),
    unknown=("features",),
)
@says_as(ild)
def ils(
    lists: Lists, *, similarity: SimilarityArgument = "cosine", separator: str = "|"
) -> ndarray:
    """Intra-list similarity, the mean similarity of two recommended items; smaller is better, in
    [−1, 1].

    Formula
    -------
    Mean of sim(i, j) over the pairs of items in the first k, which is 1 − ild. Undefined for fewer
    than two items with features.

    Notes
    -----
    Use it in place of `ild` where similarity is easier to explain: it is 1 − ild. A small value
    alone is no merit, because random recommendations have one.

    References
    ----------
    Ziegler et al. (2005), WWW. LensKit gives 1 to a list of one item, which is undefined here.

    Examples
    --------
    >>> rd.ils(
    ...     {"u": ["a", "b", "c"]}, k=3, features={"a": [1, 0], "b": [1, 0], "c": [0, 1]}
    ... ).__round__(4)
    0.3333

    Parameters
    ----------
    {similarity, separator}
    """
    return _similarity(lists, similarity, separator)


def _similarity(lists: Lists, kind: str | Similarity, separator: str) -> ndarray:
    """Return the mean similarities within [−1, 1], which rounding may exceed."""
    like = lists.sides.features(kind, separator)
    return np.clip(lists.once_of_pred(mean_similarity, like), -1.0, 1.0)


@metric(bounds=NOT_NEGATIVE, arguments=("true", "pred", "aspects"))
def a_ndcg(
    lists: Lists,
    alpha: Annotated[float, a_number(0, 1)] = 0.5,
    *,
    ideal: Literal["greedy", "even", "aspects", "none"] = "greedy",
    discount: Literal["log", "reciprocal", "geometric"] = "log",
    p: Share = 0.5,
    aspect_col: str | None = None,
) -> ndarray:
    """α-nDCG: gain from relevant items, which shrinks as aspects are repeated; larger is better, at
    least 0.

    Formula
    -------
    α-DCG / α-IDCG, α-DCG = Σ_{i ≤ k} disc(i) Σ_a rel(i, a) (1−α)^{c_a(i)}, where rel(i, a) = 1 if
    the item at rank i is relevant and has aspect a, c_a(i) is the number of earlier relevant items
    with aspect a, and α-IDCG is the same sum over the ideal list. Undefined for a list without a
    relevant item that has an aspect. The best order is hard to find, so a list can be a little
    better than the greedy one.

    Parameters
    ----------
    alpha : float, default 0.5
        α in [0, 1]: each time an aspect is repeated, it is worth 1 − α times what it was worth
        before.
    ideal : {"greedy", "even", "aspects", "none"}, default "greedy"
        The ideal list. "greedy": the relevant items, where the next item is always the one that
        adds most, and of equal ones that with the largest id. "even": m = min(k, n_pred) items
        which take the B aspects that the user has in `aspects` in turn, as in rs_metrics: Σ_{i ≤
        rB} disc(i) + (1−α)^r Σ_{rB < i ≤ m} disc(i) with r = ⌊m/B⌋; the value is 0 for an empty
        list. "aspects": every rank up to k has all A aspects of the relevant items, which gives
        Σ_{i ≤ k} disc(i) (1−α)^(i−1) A. "none": α-DCG is not divided.
    discount : {"log", "reciprocal", "geometric"}, default "log"
        disc(i): 1/log2(i+1), 1/i, or p^(i−1).
    p : float in (0, 1), default 0.5
        Persistence of the geometric discount.
    aspect_col : str, optional
        Column of an `aspects` frame. By default its only column beside user and item, else
        `aspect`.

    Notes
    -----
    Use it when items serve several needs (topics, genres, meanings of a query), and a second item
    for the same need is worth less. It needs good aspects, and ignores grades of relevance. If all
    items have one aspect, it only penalizes further hits; take `ndcg` then.

    References
    ----------
    Clarke et al. (2008), SIGIR, and (2009), ICTIR; Chapelle et al. (2009), CIKM. In TREC `ndeval`,
    alpha-nDCG, nERR-IA and nNRBP are ideal="greedy" with the three discounts, and alpha-DCG, ERR-IA
    and NRBP are ideal="aspects", but for k = 1, where ndeval does not normalize. In rs_metrics,
    c_a(i) also counts earlier items that have the aspect and are not relevant, which is not
    reproduced here.

    Examples
    --------
    >>> aspects = {"u": [["a", "b"], ["c"]]}
    >>> rd.a_ndcg({"u": ["a", "b", "c"]}, {"u": ["a", "b", "c"]}, aspects, k=3).__round__(4)
    0.9652
    """
    if p != 0.5 and discount != "geometric":
        raise OptionError(f'⟦p={p}⟧ is of ⟦+discount="geometric"⟧; leave it out')
    aspects = lists.sides.aspects(aspect_col)
    weight = partial(discount_at, discount, p)
    code, rank, earlier = covered(lists, aspects)
    gain = (1.0 - alpha) ** earlier * weight(rank)
    found = exact_sums(gain, code // aspects.n_aspects, len(lists))
    if ideal == "greedy":
        return ratio(found, greedy_ideal(lists, aspects, alpha, weight))
    if ideal == "even":
        n_shown, n_aspects = lists.n_shown, aspects.n_of_list(len(lists))
        rounds = n_shown // np.maximum(n_aspects, 1)
        ranks = np.arange(1.0, int(n_shown.max(initial=0)) + 1)
        upto = np.append(0.0, np.cumsum(weight(ranks)))
        whole = np.minimum(rounds * n_aspects, n_shown)
        best = upto[whole] + (1.0 - alpha) ** rounds * (upto[n_shown] - upto[whole])
        return np.where(n_aspects > 0, np.where(n_shown > 0, ratio(found, best), 0.0), np.nan)
    n_aspects = aspect_counts(lists, aspects)[1]
    if ideal == "none":
        return np.where(n_aspects > 0, found, np.nan)
    best = 0.0
    for first in range(1, lists.k + 1, RANKS_AT_ONCE):
        ranks = np.arange(first, min(first + RANKS_AT_ONCE, lists.k + 1))
        parts = weight(ranks) * (1.0 - alpha) ** (ranks - 1.0)
        best += float(parts.sum())
        if parts[-1] < 1e-20:  # all further terms together are too small to change the sum
            break
    return ratio(found, best * n_aspects)


@metric(arguments=("true", "pred", "aspects"))
@says_as(a_ndcg)
def subtopic_recall(lists: Lists, *, aspect_col: str | None = None) -> ndarray:
    """Share of the aspects of the relevant items that the hits cover; larger is better, in [0, 1].

    Formula
    -------
    |aspects of the hits in the first k| / |aspects of the relevant items|. Undefined for a list
    without a relevant item that has an aspect.

    Notes
    -----
    Use it to see how many of a user's interests the hits reach. Neither the ranks nor a second hit
    for the same aspect count; `a_ndcg` uses both. With one aspect per user it is nearly `hitrate`,
    so compare users with similar numbers of aspects.

    References
    ----------
    Zhai, Cohen & Lafferty (2003), SIGIR.

    Examples
    --------
    >>> rd.subtopic_recall(
    ...     {"u": ["a", "b", "c"]}, {"u": ["a", "b"]}, {"u": [["a", "b"], ["c"]]}, k=2
    ... )
    0.5

    Parameters
    ----------
    {aspect_col}
    """
    return ratio(*aspect_counts(lists, lists.sides.aspects(aspect_col)))


def _single_metric(given: Any) -> tuple[Metric, dict[str, Any]]:
    """Return the metric to take for each aspect, and its parameters."""
    found, params, _, at = (
        (given, {}, "", None) if isinstance(given, Metric) else read_string(given)
    )
    alone = (found.per, len(found.outputs), found.arguments, at) == (
        "list",
        1,
        ("true", "pred"),
        None,
    )
    if not alone or params.get("pooled") or not {*found.needs} <= {"true", "candidates", "value"}:
        raise OptionError(
            "intent_aware takes a metric of true and pred with one value per list and without a "
            f"cut-off, such as 'mapr'; {given!r} is not one"
        )
    return found, found.request(params, None, Options()).params


A_METRIC = Constraint(
    "a metric",
    lambda value: isinstance(value, str | Metric) and bool(_single_metric(value)),
    "str or Metric",
)
BY_INTENT = either(
    one_of(("equal",)),
    Constraint("a DataFrame", lambda value: isinstance(value, pd.DataFrame), "DataFrame"),
)


@metric(arguments=("true", "pred", "aspects"), optional=("not_judged",))
def intent_aware(
    lists: Lists,
    *,
    metric: Annotated[str | Metric, A_METRIC] = "precision",
    weights: Annotated[Literal["equal"] | pd.DataFrame, BY_INTENT] = "equal",
    aspect_col: str | None = None,
    max_gain: float | None = None,
) -> ndarray:
    """Mean over a user's aspects of a metric for each of them; larger is better, in [0, 1], unless
    the metric says so.

    Formula
    -------
    Σ_a w_a · metric_a, where metric_a is the metric of the same list if only the relevant items of
    aspect a are relevant, and a are the aspects of the relevant items. Undefined for a list without
    a relevant item that has an aspect, and where the metric is undefined for an aspect of weight
    above 0. Direction and bounds are the metric's.

    Parameters
    ----------
    metric : str or Metric, default "precision"
        A metric of `true` and `pred` with one value per list, perhaps with parameters: "mapr",
        "ndcg(gain=binary)". `like=` gives it the parameters that it does not state.
    weights : {"equal"} or DataFrame, default "equal"
        w_a. "equal": 1 over the number of aspects. A frame has the columns of the list key, the
        column of aspects and `weight`, at least 0, 0 for a row that is missing; the weights of a
        list are divided by their sum. Without the key, all lists have the same weights.
    aspect_col : str, optional
        Column of an `aspects` frame. By default its only column beside user and item, else
        `aspect`.
    max_gain : float, optional
        Largest possible gain, for a metric that has this parameter. By default it is the largest
        gain in `true`.

    Notes
    -----
    Use it when users come with one of several needs and each should be served, such as the meanings
    of a query: the weights are then the probabilities of the needs. With judges in place of needs
    it is the mean over judges. It does not punish a second item for a need that is already served,
    as `a_ndcg` does. Do not use it where the needs of users are not known for each item.

    References
    ----------
    Agrawal, Gollapudi, Halverson & Ieong (2009), WSDM. In TREC `ndeval`, P-IA is metric="precision"
    and MAP-IA is metric="mapr" for whole lists.

    Examples
    --------
    >>> aspects = {"u": [["a", "b"], ["c"]]}
    >>> rd.intent_aware(
    ...     {"u": ["a", "b", "c"]}, {"u": ["a", "b", "x"]}, aspects, k=2, metric="recall"
    ... )
    0.5
    """
    aspects, (inner, params) = lists.sides.aspects(aspect_col), _single_metric(metric)
    if "max_gain" in params and params["max_gain"] is None:
        params["max_gain"] = (
            float(lists.matched.true_lists.gain.max(initial=0.0)) if max_gain is None else max_gain
        )
    found: AspectLists = lists.whole.once(by_aspect, aspects)
    if not len(found.owner):
        return np.full(len(lists), np.nan)
    values = np.asarray(inner.kernel(found.matched.at(lists.k), **params), np.float64)
    weight = aspect_weights(lists, aspects, found, weights)
    total = exact_sums(np.where(weight == 0, 0.0, weight * values), found.owner, len(lists))
    return np.where(np.bincount(found.owner, minlength=len(lists)) > 0, total, np.nan)
