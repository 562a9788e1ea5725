"""Reciprocal ranks: how soon does the user reach the first hit, or the item that satisfies?"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...errors import DataError, examples
from ...matching.hits import Hits, ratio
from ...matching.lists import Lists
from ..metric import metric
from ..observed import observed_reciprocal_rank


@metric(aliases=("rr",), optional=("propensity",))
def mrr(lists: Lists, *, of: Literal["first", "all"] = "first") -> np.ndarray:
    """Reciprocal rank of the first hit, 0 without one; larger is better, in [0, 1].

    Formula
    -------
    1 / min{i ≤ k : h_i = 1}, where h_i = 1 if the item at rank i is a hit. With of="all": Σ_{i ≤ k} (h_i / i) / n_true.
    With `propensity_col`: v_i / (i · max_t v_t) for the first hit, at rank i, where v = 1/max(propensity,
    propensity_floor) and t are the relevant items. With of="all" it is then Σ_{i ≤ k} (h_i v_i / i) / Σ_t v_t.

    Parameters
    ----------
    of : {"first", "all"}, default "first"
        "first": the first hit. "all": the mean over all relevant items, where those that are not recommended count 0;
        undefined where n_true = 0.

    Notes
    -----
    Use it where the user takes the first relevant item and stops: search by name, the next song, a question with one
    answer. Nothing after the first hit counts. The step from rank 1 to rank 2 is as large as the step from rank 2 to no
    hit at all, so the mean of few users is noisy. `ndcg` is smoother.

    References
    ----------
    trec_eval `recip_rank`; Voorhees (1999), TREC-8.

    Examples
    --------
    >>> rd.mrr({"u": ["a"]}, {"u": ["x", "a"]}, k=10)
    0.5
    """
    if lists.item_weights is not None:
        return observed_reciprocal_rank(lists, of)
    if of == "all":
        return ratio(lists.sum_hits(_reciprocal_rank), lists.n_true)
    return 1 / lists.first_rank


def _reciprocal_rank(hits: Hits) -> np.ndarray:
    return 1 / hits.rank


@metric(bounds=(0.0, None))
def arhr(lists: Lists) -> np.ndarray:
    """Sum of the reciprocal ranks of all hits; larger is better, at least 0 (at most Σ_{i ≤ k} 1/i).

    Formula
    -------
    Σ_{i ≤ k} h_i / i, where h_i = 1 if the item at rank i is a hit.

    Notes
    -----
    Use it when several hits count, and early ones count much more. It is not normalized: it grows with k and with the
    number of relevant items, so compare models on the same users and the same k. `ndcg` is normalized, and its discount
    falls more slowly.

    References
    ----------
    Deshpande & Karypis (2004), ACM TOIS 22(1).

    Examples
    --------
    >>> rd.arhr({"u": ["a", "b"]}, {"u": ["a", "b"]}, k=10)
    1.5
    """
    return lists.sum_hits(_reciprocal_rank)


@metric(bounds=(1.0, None), better="smaller")
def first_rank(lists: Lists) -> np.ndarray:
    """Rank of the first hit; smaller is better, at least 1. Undefined without a hit.

    Formula
    -------
    min{i ≤ k : h_i = 1}, where h_i = 1 if the item at rank i is a hit.

    Notes
    -----
    Use it to explain a result, as in "the first hit is at rank 4 on average". Lists without a hit have no value,
    so a model can look better by failing on difficult users. Read `n_undefined` and `hitrate` beside it, and decide
    by `mrr`, which counts these lists as 0.

    References
    ----------
    Common practice; for one list it is 1 / `mrr`.

    Examples
    --------
    >>> rd.first_rank({"u": ["a"]}, {"u": ["x", "a"]}, k=10)
    2.0
    """
    return np.where(np.isinf(lists.first_rank), np.nan, lists.first_rank)


@metric
def err(lists: Lists, *, max_gain: float | None = None) -> np.ndarray:
    """Expected reciprocal rank of the item that satisfies the user; larger is better, in [0, 1].

    Formula
    -------
    Σ_{i ≤ k} (1/i) s_i Π_{j<i} (1 − s_j), where s_i = (2^g_i − 1) / 2^g_max is the probability that the item at
    rank i, of gain g_i, satisfies the user.

    Parameters
    ----------
    max_gain : float, optional
        g_max, the largest possible gain. By default it is the largest gain in `true`.

    Notes
    -----
    Use it with graded relevance where one excellent item ends the search. Items below such an item hardly count, so a
    list with several good items is not rewarded; take `ndcg` for that. If gains are only 0 and 1, each relevant item
    satisfies the user with probability 1/2.

    References
    ----------
    Chapelle, Metlzer, Zhang & Grinspan (2009), CIKM.

    Examples
    --------
    >>> rd.err({"u": ["a", "b"]}, {"u": ["a", "b"]}, k=2)
    0.625
    """
    gains = lists.matched.true_lists.gain
    top = float(gains.max(initial=0.0)) if max_gain is None else float(max_gain)
    if (gains > top).any():
        raise DataError(f"err: true has gains above ⟦max_gain={top}⟧ ({examples(gains[gains > top])})")
    return lists.sum_hits(_stopped, top)


def _stopped(hits: Hits, top: float) -> np.ndarray:
    return hits.from_all(_stops, top)


def _stops(hits: Hits, top: float) -> np.ndarray:
    """Probability that the user reaches each hit and is satisfied there, divided by its rank."""
    satisfied = np.exp2(hits.gain - top) - np.exp2(-top)
    going_on, reached = 1 - satisfied, np.ones(len(hits))
    place = np.flatnonzero(hits.number == 1)
    length = np.diff(np.append(place, len(hits)))
    place, here = place[np.argsort(-length, kind="stable")], np.ones(len(place))
    n_longer = len(place) - np.cumsum(np.bincount(length))
    for n in n_longer[1:-1].tolist():  # first the second hits of all lists that have one, then the third hits
        here = here[:n] * going_on[place[:n]]
        place = place[:n] + 1
        reached[place] = here
    found: np.ndarray = reached * satisfied / hits.rank
    return found
