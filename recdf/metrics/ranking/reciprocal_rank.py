"""Reciprocal ranks: how soon does the user reach the first hit, or the item that satisfies?"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...errors import DataError, examples
from ...matching.hits import Hits, ratio, running
from ...matching.lists import Lists
from ..metric import metric
from ..observed import observed_reciprocal_rank, refuse
from .preference import ByScore, ranked_by


@metric(aliases=("rr",), optional=("propensity",))
def mrr(
    lists: Lists, *, of: Literal["first", "all"] = "first", tied: ByScore = "ranked"
) -> np.ndarray:
    """Reciprocal rank of the first hit, 0 without one; larger is better, in [0, 1].

    Formula
    -------
    1 / min{i ≤ k : h_i = 1}, where h_i = 1 if the item at rank i is a hit. With of="all": Σ_{i ≤ k}
    (h_i / i) / n_true. With `propensity_col`: v_i / (i · max_t v_t) for the first hit, at rank i,
    where v = 1/max(propensity, propensity_floor) and t are the relevant items. With of="all" it is
    then Σ_{i ≤ k} (h_i v_i / i) / Σ_t v_t.

    Parameters
    ----------
    of : {"first", "all"}, default "first"
        "first": the first hit. "all": the mean over all relevant items, where those that are not
        recommended count 0; undefined where n_true = 0.
    tied : {"ranked", "worst"}, default "ranked"
        "ranked": equal scores have the ranks that the option `ties` gives them. "worst": the rank
        of an item is the number of items with an equal or higher score.

    Notes
    -----
    Use it where the user takes the first relevant item and stops: search by name, the next song, a
    question with one answer. Nothing after the first hit counts. The step from rank 1 to rank 2 is
    as large as the step from rank 2 to no hit at all, so the mean of few users is noisy. `ndcg` is
    smoother.

    References
    ----------
    trec_eval `recip_rank`; Voorhees (1999), TREC-8.

    Examples
    --------
    >>> rd.mrr({"u": ["a"]}, {"u": ["x", "a"]}, k=10)
    0.5
    """
    if lists.item_weights is not None:
        refuse("tied", tied, ("ranked",))
        return observed_reciprocal_rank(lists, of)
    lists = ranked_by(lists, tied)
    if of == "all":
        return ratio(lists.sum_hits(_reciprocal_rank), lists.n_true)
    return 1 / lists.first_rank


def _reciprocal_rank(hits: Hits) -> np.ndarray:
    return 1 / hits.rank


BY_BEST = {"bounds": (0.0, 1.0)}


@metric(
    bounds=(0.0, None),
    where={"normalizer=achievable": BY_BEST, "normalizer=achievable_shown": BY_BEST},
)
def arhr(
    lists: Lists, *, normalizer: Literal["none", "achievable", "achievable_shown"] = "none"
) -> np.ndarray:
    """Sum of the reciprocal ranks of all hits; larger is better, at least 0 (at most Σ_{i ≤ k}
    1/i).

    Formula
    -------
    Σ_{i ≤ k} h_i / i, where h_i = 1 if the item at rank i is a hit. With a normalizer it is divided
    by Σ_{i ≤ d} 1/i, and is then in [0, 1], undefined for n_true = 0.

    Parameters
    ----------
    normalizer : {"none", "achievable", "achievable_shown"}, default "none"
        "none": the sum. "achievable": d = min(k, n_true). "achievable_shown": d = min(k, n_pred,
        n_true), 0 for a list without recommendations.

    Notes
    -----
    Use it when several hits count, and early ones count much more. Without a normalizer it grows
    with k and with the number of relevant items, so compare models on the same users and the same
    k. `ndcg` is normalized, and its discount falls more slowly.

    References
    ----------
    Deshpande & Karypis (2004), ACM TOIS 22(1). Cornac `NCRR` has the normalizer "achievable_shown".

    Examples
    --------
    >>> rd.arhr({"u": ["a", "b"]}, {"u": ["a", "b"]}, k=10)
    1.5
    """
    total = lists.sum_hits(_reciprocal_rank)
    if normalizer == "none":
        return total
    best = np.minimum(lists.n_true, lists.k if normalizer == "achievable" else lists.n_shown)
    sums = np.append(0.0, np.cumsum(1 / np.arange(1, int(best.max(initial=0)) + 1)))
    return np.where((lists.n_true > 0) & (best == 0), 0.0, ratio(total, sums[best]))


@metric(bounds=(1.0, None), better="smaller")
def relevant_rank(
    lists: Lists, *, of: Literal["first", "last", "mean"] = "first", tied: ByScore = "ranked"
) -> np.ndarray:
    """Rank of the first or last hit, or the mean of all; smaller is better, at least 1. Undefined
    without a hit.

    Formula
    -------
    min, or max, of {i ≤ k : h_i = 1}, where h_i = 1 if the item at rank i is a hit; with of="mean"
    it is Σ_{i ≤ k} g_i · i / Σ_{i ≤ k} g_i, where g_i is the gain of the item at rank i, 0 for a
    miss.

    Parameters
    ----------
    of : {"first", "last", "mean"}, default "first"
        "first": the first hit, which is `first_rank`. "last": how far a user must go to see all
        hits. "mean": the mean over the hits, weighted by their gains.

    Notes
    -----
    Use it to explain how deep users must look, or with of="last" where they need every relevant
    item, as in a search for legal cases. Lists without a hit have no value, and relevant items that
    are not shown do not count, so read `recall` beside it. Do not decide by it alone: a model that
    shows fewer hits can have smaller ranks.

    References
    ----------
    scikit-learn `coverage_error` is of="last" with tied="worst" on the candidates; TF-Ranking
    `ARPMetric` of one list is of="mean".

    Examples
    --------
    >>> rd.relevant_rank({"u": ["a", "b"]}, {"u": ["x", "a", "y", "b"]}, k=4, of="last")
    4.0
    """
    lists = ranked_by(lists, tied)
    if of == "mean":
        return ratio(lists.sum_hits(_rank_by_gain), lists.sum_hits(_gain_there))
    if of == "first":
        found: np.ndarray = first_rank.kernel(lists)
        return found
    last = np.full(len(lists), np.nan)
    last[lists.hits.list] = lists.hits.rank  # of equal lists the last entry stays
    return last


def _rank_by_gain(hits: Hits) -> np.ndarray:
    found: np.ndarray = hits.gain * hits.rank
    return found


def _gain_there(hits: Hits) -> np.ndarray:
    return hits.gain


@metric(bounds=(1.0, None), better="smaller")
def first_rank(lists: Lists) -> np.ndarray:
    """Rank of the first hit; smaller is better, at least 1. Undefined without a hit.

    Formula
    -------
    min{i ≤ k : h_i = 1}, where h_i = 1 if the item at rank i is a hit.

    Notes
    -----
    Use it to explain a result, as in "the first hit is at rank 4 on average". Lists without a hit
    have no value, so a model can look better by failing on difficult users. Read `n_undefined` and
    `hitrate` beside it, and decide by `mrr`, which counts these lists as 0.

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
    Σ_{i ≤ k} (1/i) s_i Π_{j<i} (1 − s_j), where s_i = (2^g_i − 1) / 2^g_max is the probability that
    the item at rank i, of gain g_i, satisfies the user.

    Parameters
    ----------
    max_gain : float, optional
        g_max, the largest possible gain. By default it is the largest gain in `true`.

    Notes
    -----
    Use it with graded relevance where one excellent item ends the search. Items below such an item
    hardly count, so a list with several good items is not rewarded; take `ndcg` for that. If gains
    are only 0 and 1, each relevant item satisfies the user with probability 1/2.

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
        raise DataError(
            f"err: true has gains above ⟦max_gain={top}⟧ ({examples(gains[gains > top])})"
        )
    return lists.sum_hits(_stopped, top)


def _stopped(hits: Hits, top: float) -> np.ndarray:
    return hits.from_all(_stops, top)


def _stops(hits: Hits, top: float) -> np.ndarray:
    """Probability that the user reaches each hit and is satisfied there, divided by its rank."""
    satisfied = np.exp2(hits.gain - top) - np.exp2(-top)
    going_on = running(np.multiply, hits.number, 1 - satisfied)
    reached = np.where(hits.number == 1, 1.0, np.append(1.0, going_on)[:-1])
    found: np.ndarray = reached * satisfied / hits.rank
    return found
