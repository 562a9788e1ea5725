"""Average precision and recall, and reciprocal ranks: what counts is the rank of each hit, or of
the first one."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy import ndarray

from ...docstrings import says_as
from ...errors import OptionError
from ...matching.hits import Hits, ratio, running
from ...matching.lists import Lists
from ..metric import NOT_NEGATIVE, metric
from ..relevance import observed_hits, possible, refuse
from .dcg import largest_gain
from .preference import ByScore, ranked_by

# ------------------------------------------------------------------------------------------
# Average precision and average recall: precision and recall at the rank of each hit.


Normalizer = Literal["relevant", "achievable", "hits", "k", "shown"]


def _normalized(lists: Lists, total: ndarray, normalizer: str) -> ndarray:
    """Return total / d. A list with relevant items but without recommendations or hits has 0
    instead of 0/0."""
    n = lists.n_true
    if normalizer == "k":
        return total / lists.k
    if normalizer == "hits":
        return np.where(lists.n_hits > 0, ratio(total, lists.n_hits), 0.0)
    if normalizer == "shown":
        below = np.minimum(n, lists.n_shown)
        return np.where((n > 0) & (below == 0), 0.0, ratio(total, below))
    return ratio(total, possible(lists, normalizer))


@metric(
    aliases=("map", "ap"),
    optional=("propensity",),
    where={"transform=log_odds": {"bounds": (None, None)}},
)
def mapr(
    lists: Lists,
    *,
    normalizer: Normalizer = "relevant",
    transform: Literal["none", "log_odds"] = "none",
    tied: ByScore = "ranked",
) -> ndarray:
    """Average precision at the ranks of the hits (MAP over lists); larger is better, in [0, 1].

    Formula
    -------
    (1/d) Σ_{i ≤ k} h_i · P@i, where h_i = 1 if the item at rank i is a hit, P@i is the number of
    hits in ranks 1 to i over i, and d is the normalizer. With `propensity_col`: Σ_{i ≤ k} h_i v_i ·
    P@i / Σ_t v_t, where v = 1/max(propensity, propensity_floor). The second sum is over all
    relevant items t, and for "achievable" over the min(k, n_true) of them with the largest v. With
    transform="log_odds": ln((1 + S) / (1 + n_true − S)), where S = Σ_{i ≤ k} h_i · P@i; it has any
    sign, and is undefined where n_true = 0.

    Parameters
    ----------
    normalizer : {"relevant", "achievable", "hits", "k", "shown"}, default "relevant"
        "relevant", as in trec_eval: d = n_true. "achievable": d = min(k, n_true). "hits": d is the
        number of hits in the first k, and the value is 0 without hits. "k": d = k. "shown": d =
        min(n_true, k, n_pred), 0 for an empty list. Undefined where n_true = 0, except for "hits"
        and "k", which give 0. With `propensity_col` only "relevant" and "achievable" are taken.
    transform : {"none", "log_odds"}, default "none"
        "log_odds" stretches values near 0 and 1, so that a difference there counts more; it takes
        no other normalizer than "relevant".
    tied : {"ranked", "worst"}, default "ranked"
        "ranked": equal scores have the ranks that the option `ties` gives them. "worst": the rank
        of an item is the number of items with an equal or higher score.

    Notes
    -----
    Use it when users look for several items and all of these should be near the top. It is the
    usual summary for binary relevance. It ignores grades of relevance, which `ndcg` uses. Libraries
    disagree about the normalizer, so name it when you report the number. With "achievable", users
    who have more than k relevant items can reach 1.

    References
    ----------
    trec_eval `map_cut`, and `yaap` for log_odds; Buckley & Voorhees (2000), SIGIR; Robertson
    (2012), SIGIR. In scikit-learn, `label_ranking_average_precision_score` is normalizer "hits"
    with tied="worst" on the candidates.

    Examples
    --------
    >>> rd.mapr({"u": ["a", "b"]}, {"u": ["a", "x", "y", "b"]}, k=10)
    0.75
    """
    if lists.item_weights is not None:
        refuse("transform", transform, ("none",))
        refuse("tied", tied, ("ranked",))
        refuse("normalizer", normalizer, ("relevant", "achievable"))
    lists = ranked_by(lists, tied)
    # P@i is the plain share of hits in ranks 1 to i.
    total = lists.sum(observed_hits(lists) * lists.hits.number / lists.hits.rank)
    if transform == "none":
        return _normalized(lists, total, normalizer)
    if normalizer != "relevant":
        raise OptionError(
            f'⟦transform="log_odds"⟧ has no form with ⟦normalizer={normalizer!r}⟧; leave one of '
            "them out"
        )
    return np.where(lists.n_true > 0, np.log((1 + total) / (1 + lists.n_true - total)), np.nan)


@metric(aliases=("ar",))
def mar(lists: Lists, *, normalizer: Normalizer = "hits") -> ndarray:
    """Average recall at the ranks of the hits; larger is better, in [0, 1].

    Formula
    -------
    (1/d) Σ_{i ≤ k} h_i · R@i, where h_i = 1 if the item at rank i is a hit, R@i is the number of
    hits in ranks 1 to i over n_true, and d is the normalizer.

    Parameters
    ----------
    normalizer : {"hits", "relevant", "achievable", "k", "shown"}, default "hits"
        "hits": d is the number of hits in the first k, and the value is 0 without hits. "relevant":
        d = n_true. "achievable": d = min(k, n_true). "k": d = k. "shown": d = min(n_true, k,
        n_pred). Undefined for n_true = 0, as recall is.

    Notes
    -----
    Use it to reproduce the numbers of rs_metrics. The ranks of the hits do not change it: at the
    j-th hit, recall is j / n_true whatever its rank is. So it depends on the number of hits alone.
    Take `recall` for that, or `mapr` when ranks should count.

    References
    ----------
    rs_metrics `mar`.

    Examples
    --------
    >>> rd.mar({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, k=3)
    0.75
    """
    n_hits = lists.n_hits
    total = (
        n_hits * (n_hits + 1) / 2
    )  # 1 + 2 + ... hits, since the j-th one makes the recall j / n_true
    of_all = _normalized(lists, total / np.maximum(lists.n_true, 1), normalizer)
    return np.where(lists.n_true > 0, of_all, np.nan)


# ------------------------------------------------------------------------------------------
# Reciprocal ranks: how soon does the user reach the first hit, or the item that satisfies?


@metric(aliases=("rr",), optional=("propensity",))
def mrr(
    lists: Lists, *, of: Literal["first", "all"] = "first", tied: ByScore = "ranked"
) -> ndarray:
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
    lists = ranked_by(lists, tied)
    if of == "all":
        return ratio(lists.sum(observed_hits(lists) / lists.hits.rank), possible(lists, "relevant"))
    if lists.item_weights is None:
        return 1 / lists.first_rank
    earned = np.where(lists.hits.number == 1, observed_hits(lists) / lists.hits.rank, 0.0)
    first = lists.sum(earned)
    return np.where(first > 0, ratio(first, possible(lists.matched.at(1))), 0.0)


BY_BEST = {"bounds": (0.0, 1.0)}


@metric(
    bounds=NOT_NEGATIVE,
    where={"normalizer=achievable": BY_BEST, "normalizer=achievable_shown": BY_BEST},
)
def arhr(
    lists: Lists, *, normalizer: Literal["none", "achievable", "achievable_shown"] = "none"
) -> ndarray:
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
    total = lists.sum(1 / lists.hits.rank)
    if normalizer == "none":
        return total
    best = np.minimum(lists.n_true, lists.k if normalizer == "achievable" else lists.n_shown)
    sums = np.append(0.0, np.cumsum(1 / np.arange(1, int(best.max(initial=0)) + 1)))
    return np.where((lists.n_true > 0) & (best == 0), 0.0, ratio(total, sums[best]))


@metric(bounds=(1.0, None), better="smaller")
@says_as(mrr)
def relevant_rank(
    lists: Lists, *, of: Literal["first", "last", "mean"] = "first", tied: ByScore = "ranked"
) -> ndarray:
    """Rank of the first or last hit, or the mean of all; smaller is better, at least 1. Undefined
    without a hit.

    Formula
    -------
    min, or max, of {i ≤ k : h_i = 1}, where h_i = 1 if the item at rank i is a hit; with of="mean"
    it is Σ_{i ≤ k} g_i · i / Σ_{i ≤ k} g_i, where g_i is the gain of the item at rank i, 0 for a
    miss.

    Parameters
    ----------
    {tied}
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
        hits = lists.hits
        return ratio(lists.sum(hits.gain * hits.rank), lists.sum(hits.gain))
    if of == "first":
        return first_rank.kernel(lists)
    last = np.full(len(lists), np.nan)
    last[lists.hits.list] = lists.hits.rank  # of equal lists the last entry stays
    return last


@metric(bounds=(1.0, None), better="smaller")
def first_rank(lists: Lists) -> ndarray:
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
def err(lists: Lists, *, max_gain: float | None = None) -> ndarray:
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
    return lists.sum(lists.hits.from_all(_stops, largest_gain(lists, max_gain, "err")))


def _stops(hits: Hits, top: float) -> ndarray:
    """Probability that the user reaches each hit and is satisfied there, divided by its rank."""
    satisfied = np.exp2(hits.gain - top) - np.exp2(-top)
    going_on = running(np.multiply, hits.number, 1 - satisfied)
    return np.where(hits.number == 1, 1.0, np.append(1.0, going_on)[:-1]) * satisfied / hits.rank
