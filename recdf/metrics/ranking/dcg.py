"""Ranking: how high do the hits stand? i is a rank, h_i = 1 if its item is a hit, g_i the item's gain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from ..errors import DataError, OptionError, examples
from ..matching.lists import Hits, Lists, ratio
from .metric import metric

__all__ = [
    "arhr",
    "auc",
    "bpref",
    "dcg",
    "err",
    "first_rank",
    "mapr",
    "mar",
    "mrr",
    "ndcg",
    "pap",
    "pauc",
    "rbp",
]

Normalizer = Literal["relevant", "achievable", "hits", "k", "shown"]
Gain = Literal["linear", "exp2", "binary"]
Discount = Literal["log", "jk", "none"]

LARGEST_EXPONENT = 900  # beyond, 2^g or a sum of them is infinite


def _normalized(lists: Lists, total: np.ndarray, normalizer: str) -> np.ndarray:
    """total / d; a list without recommendations or hits has 0, not 0/0, where it has relevant items."""
    n = lists.n_true
    if normalizer == "k":
        return total / lists.k
    if normalizer == "hits":
        return np.where(lists.n_hits > 0, ratio(total, lists.n_hits), 0.0)
    if normalizer == "shown":
        below = np.minimum(n, lists.n_shown)
        return np.where((n > 0) & (below == 0), 0.0, ratio(total, below))
    return ratio(total, n if normalizer == "relevant" else np.minimum(lists.k, n))


@metric(aliases=("map", "ap"))
def mapr(lists: Lists, *, normalizer: Normalizer = "relevant") -> np.ndarray:
    """Average precision at the ranks of the hits (MAP over lists); larger is better, in [0, 1].

    Formula
    -------
    (1/d) Σ_{i ≤ k} h_i · P@i, P@i = hits in 1..i / i, where d is the normalizer.

    Parameters
    ----------
    normalizer : {"relevant", "achievable", "hits", "k", "shown"}, default "relevant"
        d = n_true (trec_eval) · min(k, n_true) · hits in 1..k, value 0 without hits · k ·
        min(n_true, items shown). Undefined where n_true = 0, except for "hits" and "k", which give 0.

    References
    ----------
    trec_eval `map_cut`; Buckley & Voorhees (2000), SIGIR.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.mapr({"u": ["a", "b"]}, {"u": ["a", "x", "y", "b"]}, k=10)
    0.75
    """
    return _normalized(lists, lists.sum_hits(_precision_there), normalizer)


def _precision_there(hits: Hits) -> np.ndarray:
    return hits.number / hits.rank


@metric(aliases=("ar",))
def mar(lists: Lists, *, normalizer: Normalizer = "hits") -> np.ndarray:
    """Average recall at the ranks of the hits; larger is better, in [0, 1].

    Formula
    -------
    (1/d) Σ_{i ≤ k} h_i · R@i, R@i = hits in 1..i / n_true, where d is the normalizer.

    Parameters
    ----------
    normalizer : {"hits", "relevant", "achievable", "k", "shown"}, default "hits"
        d = hits in 1..k, value 0 without hits · n_true · min(k, n_true) · k · min(n_true, items shown).

    References
    ----------
    rs_metrics `mar`.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.mar({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, k=3)
    0.75
    """
    n_hits = lists.n_hits
    total = n_hits * (n_hits + 1) / 2  # 1 + 2 + ... hits, since the j-th one makes the recall j / n_true
    return _normalized(lists, total / np.maximum(lists.n_true, 1), normalizer)


@metric(aliases=("rr",))
def mrr(lists: Lists, *, of: Literal["first", "all"] = "first") -> np.ndarray:
    """Reciprocal rank of the first hit, 0 without one; larger is better, in [0, 1].

    Formula
    -------
    1 / min{i ≤ k : h_i = 1}; of="all": Σ_{i ≤ k} (h_i / i) / n_true.

    Parameters
    ----------
    of : {"first", "all"}, default "first"
        The first hit, or the mean over all relevant items (undefined where n_true = 0).

    References
    ----------
    trec_eval `recip_rank`; Voorhees (1999), TREC-8.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.mrr({"u": ["a"]}, {"u": ["x", "a"]}, k=10)
    0.5
    """
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
    Σ_{i ≤ k} h_i / i.

    References
    ----------
    Deshpande & Karypis (2004), ACM TOIS 22(1).

    Examples
    --------
    >>> import recdf as rd
    >>> rd.arhr({"u": ["a", "b"]}, {"u": ["a", "b"]}, k=10)
    1.5
    """
    return lists.sum_hits(_reciprocal_rank)


def _gains(kind: str, gain: np.ndarray) -> np.ndarray:
    if kind == "exp2":
        if (gain > LARGEST_EXPONENT).any():
            raise DataError(
                f"gain=exp2 takes relevances up to {LARGEST_EXPONENT}; true has "
                f"{examples(gain[gain > LARGEST_EXPONENT])}: scale the relevance column"
            )
        return np.exp2(gain) - 1
    return (gain > 0).astype(np.float64) if kind == "binary" else gain


def _discounts(kind: str | Callable[[int], float], base: float, rank: np.ndarray) -> np.ndarray:
    if not base > 1:
        raise OptionError(f"base={base}; the base of the logarithm must be above 1")
    ranks = np.arange(1, int(rank.max(initial=0)) + 1)  # few, so that the functions below are called for few
    if callable(kind):
        discounts = np.array([kind(i) for i in ranks.tolist()], dtype=np.float64)
    elif kind == "log":
        discounts = 1 / (np.log2(ranks + 1) / np.log2(base))
    elif kind == "jk":
        discounts = 1 / np.maximum(1, np.log2(ranks) / np.log2(base))
    else:
        discounts = np.ones(len(ranks))
    return _at_rank(discounts, rank)


def _at_rank(weights: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Weight of each rank, given those of 1, 2, ..."""
    return np.append(np.nan, weights).take(rank)  # rather than another array of all ranks, less 1


def _as_key(discount: str | Callable[[int], float]) -> str | Callable[[int], float]:
    """The same discount; an object that is called may be no key of a dictionary, its method is one."""
    return discount if isinstance(discount, str) else getattr(discount, "__call__")  # noqa: B004, B009


def _discounted(hits: Hits, gain: str, discount: str | Callable[[int], float], base: float) -> np.ndarray:
    discounts = _discounts(discount, base, hits.rank)
    return discounts if gain == "binary" else _gains(gain, hits.gain) * discounts


def _dcg(lists: Lists, gain: str, discount: str | Callable[[int], float], base: float, tied: str) -> np.ndarray:
    if tied == "ranked" or lists.matched.tie_level is None:
        # Where all hits have gain 1, all kinds of gain are one sum.
        kind = "binary" if lists.matched.truth.constant_gain else gain
        return lists.sum_hits(_discounted, kind, _as_key(discount), base)
    # Each hit of the whole list has the mean discount of the ranks of its score; ranks beyond k have none.
    hits = lists.whole.hits
    top, bottom = _tied_ranks(lists.whole, hits)
    ranks = np.arange(1, min(lists.k, int(bottom.max(initial=0))) + 1)
    total = np.concatenate([[0.0], np.cumsum(_discounts(discount, base, ranks))])
    upto = total[np.minimum(bottom, lists.k)] - total[np.minimum(top - 1, lists.k)]
    return lists.sum(_gains(gain, hits.gain) * upto / (bottom - top + 1), hits)


def _idcg_of_list(
    lists: Lists, gain: str, discount: str | Callable[[int], float], base: float, whole: bool
) -> np.ndarray:
    """DCG at k of the list's own hits by descending gain: those in the first k, or of the whole list."""
    hits = lists.whole.hits if whole else lists.hits
    gains = hits.gain[np.lexsort((-hits.gain, np.cumsum(hits.number == 1)))]  # lists stay where they are
    discounted = _gains(gain, gains) * _discounts(discount, base, hits.number)
    return lists.sum(np.where(hits.number <= lists.k, discounted, 0.0), hits)


@metric
def ndcg(
    lists: Lists,
    *,
    gain: Gain = "linear",
    discount: Discount | Callable[[int], float] = "log",
    base: float = 2,
    ideal: Literal["relevant", "k", "shown", "listed"] = "relevant",
    tied: Literal["ranked", "averaged"] = "ranked",
) -> np.ndarray:
    """Discounted gain of the list over that of the ideal list; larger is better, in [0, 1].

    Formula
    -------
    DCG / IDCG, DCG = Σ_{i ≤ k} gain(g_i) · disc(i), and IDCG the same sum over the ideal list.

    Parameters
    ----------
    gain : {"linear", "exp2", "binary"}, default "linear"
        gain(g) = g · 2^g − 1 · 1 for g > 0.
    discount : {"log", "jk", "none"} or function, default "log"
        disc(i) = 1/log_b(i + 1) · 1/max(1, log_b i) (ranks up to b undiscounted) · 1 · or a function of
        the rank.
    base : float, default 2
        Base b of the logarithm.
    ideal : {"relevant", "k", "shown", "listed"}, default "relevant"
        The best min(k, n_true) relevant items, undefined without any · k items of gain 1, which takes
        gains in [0, 1] or `gain="binary"` · the first k re-sorted, 0 where a list with relevant items shows
        none · the best k of the whole list, 0 where none of its items is relevant.
    tied : {"ranked", "averaged"}, default "ranked"
        Equal scores have the ranks that `ties` gives them, or share the mean discount of their ranks.

    References
    ----------
    Järvelin & Kekäläinen (2002), ACM TOIS 20(4); trec_eval `ndcg_cut`; McSherry & Najork (2008), ECIR, for ties.

    Examples
    --------
    >>> import recdf as rd
    >>> round(rd.ndcg({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, k=3), 6)
    0.919721
    """
    if ideal == "shown" and tied == "averaged":
        raise OptionError(
            'tied="averaged" credits items below rank k, which ideal="shown" leaves out; take ideal="listed"'
        )
    gains = lists.matched.truth.gain
    if ideal == "k" and gain != "binary" and (gains > 1).any():
        raise DataError(
            f'ndcg with ideal="k" takes gains in [0, 1]; true has {examples(gains[gains > 1])}: '
            'scale the relevance column or pass gain="binary"'
        )
    total = _dcg(lists, gain, discount, base, tied)
    if ideal == "k":
        rank = np.arange(1, lists.k + 1)
        return total / np.sum(_gains(gain, np.ones(lists.k)) * _discounts(discount, base, rank))
    if ideal == "relevant":
        best = lists.sum_ideal(_discounted, gain, _as_key(discount), base)
    else:
        best = _idcg_of_list(lists, gain, discount, base, whole=ideal == "listed")
        none_shown = (best == 0) & ((lists.n_true > 0) | (ideal == "listed"))
        best = np.where(none_shown, np.inf, best)
    return ratio(total, best)


@metric(bounds=(0.0, None), better=None)
def dcg(
    lists: Lists,
    *,
    gain: Gain = "linear",
    discount: Discount | Callable[[int], float] = "log",
    base: float = 2,
    tied: Literal["ranked", "averaged"] = "ranked",
) -> np.ndarray:
    """Discounted gain of the list; larger is better within one list, at least 0.

    Formula
    -------
    Σ_{i ≤ k} gain(g_i) · disc(i).

    Parameters
    ----------
    gain : {"linear", "exp2", "binary"}, default "linear"
        gain(g) = g · 2^g − 1 · 1 for g > 0.
    discount : {"log", "jk", "none"} or function, default "log"
        disc(i) = 1/log_b(i + 1) · 1/max(1, log_b i) · 1 · or a function of the rank.
    base : float, default 2
        Base b of the logarithm.
    tied : {"ranked", "averaged"}, default "ranked"
        Equal scores have the ranks that `ties` gives them, or share the mean discount of their ranks.

    References
    ----------
    Järvelin & Kekäläinen (2002), ACM TOIS 20(4).

    Examples
    --------
    >>> import recdf as rd
    >>> rd.dcg({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, k=3)
    1.5
    """
    return _dcg(lists, gain, discount, base, tied)


@metric
def rbp(lists: Lists, *, p: float = 0.8, gain: Literal["linear", "binary"] = "linear") -> np.ndarray:
    """Rank-biased precision: gain for a user who goes on with probability p; larger is better, in [0, 1].

    Formula
    -------
    (1 − p) Σ_{i ≤ k} g_i p^(i−1), gains in [0, 1].

    Parameters
    ----------
    p : float in (0, 1), default 0.8
        Persistence: probability of looking at the next rank.
    gain : {"linear", "binary"}, default "linear"
        Gains as they are, which must be at most 1, or 1 for every relevant item.

    References
    ----------
    Moffat & Zobel (2008), ACM TOIS 27(1).

    Examples
    --------
    >>> import recdf as rd
    >>> round(rd.rbp({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, k=3, p=0.5), 6)
    0.625
    """
    if not 0 < p < 1:
        raise OptionError(f"p={p}; expected a probability between 0 and 1")
    gains = lists.matched.truth.gain
    if gain == "linear" and (gains > 1).any():
        raise DataError(f"rbp takes gains in [0, 1]; true has {examples(gains[gains > 1])}: scale the relevance column")
    kind = "binary" if lists.matched.truth.constant_gain else gain
    return (1 - p) * lists.sum_hits(_persisted, p, kind)


def _persisted(hits: Hits, p: float, gain: str) -> np.ndarray:
    weights = p ** np.arange(float(hits.rank.max(initial=0)))
    found = _at_rank(weights, hits.rank)
    return found if gain == "binary" else _gains(gain, hits.gain) * found


@metric
def err(lists: Lists, *, max_gain: float | None = None) -> np.ndarray:
    """Expected reciprocal rank of the item that satisfies the user; larger is better, in [0, 1].

    Formula
    -------
    Σ_{i ≤ k} (1/i) s_i Π_{j<i} (1 − s_j), s = (2^g − 1) / 2^g_max.

    Parameters
    ----------
    max_gain : float, optional
        g_max, the largest possible gain; by default the largest in `true`.

    References
    ----------
    Chapelle, Metlzer, Zhang & Grinspan (2009), CIKM.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.err({"u": ["a", "b"]}, {"u": ["a", "b"]}, k=2)
    0.625
    """
    gains = lists.matched.truth.gain
    top = float(gains.max(initial=0.0)) if max_gain is None else float(max_gain)
    if (gains > top).any():
        raise DataError(f"err: true has gains above max_gain={top} ({examples(gains[gains > top])})")
    return lists.sum_hits(_stopped, top)


def _stopped(hits: Hits, top: float) -> np.ndarray:
    return hits.from_all(_stops, top)


def _stops(hits: Hits, top: float) -> np.ndarray:
    """Probability that the user comes to each hit and is satisfied there, over its rank."""
    satisfied = np.exp2(hits.gain - top) - np.exp2(-top)
    going_on, reached = 1 - satisfied, np.ones(len(hits))
    place = np.flatnonzero(hits.number == 1)
    length = np.diff(np.append(place, len(hits)))
    place, here = place[np.argsort(-length, kind="stable")], np.ones(len(place))
    n_longer = len(place) - np.cumsum(np.bincount(length))
    for n in n_longer[1:-1].tolist():  # the second hit of every list that has one, then the third
        here = here[:n] * going_on[place[:n]]
        place = place[:n] + 1
        reached[place] = here
    return reached * satisfied / hits.rank


def _tied_ranks(lists: Lists, hits: Hits) -> tuple[np.ndarray, np.ndarray]:
    """First and last rank within the cut that has the score of each hit."""
    level = lists.matched.tie_level
    if level is None:
        return hits.rank, hits.rank
    own, begin = level[hits.place], lists.matched.start[hits.list]
    bottom = np.searchsorted(level, own, side="right") - begin
    return np.searchsorted(level, own, side="left") - begin + 1, np.minimum(bottom, lists.n_shown[hits.list])


@metric
def auc(
    lists: Lists,
    *,
    within: Literal["shown", "catalogue"] = "shown",
    tied: Literal["half", "ranked"] = "half",
    one_class: Literal["undefined", "share"] = "undefined",
) -> np.ndarray:
    """Share of (hit, miss) pairs in the right order, equal scores counting half; larger is better, in [0, 1].

    Formula
    -------
    (Σ over hits of misses below + ½ Σ of misses with the same score) / (hits · misses), over the first k shown.
    Undefined for a list with hits only or misses only.

    Parameters
    ----------
    within : {"shown", "catalogue"}, default "shown"
        "catalogue" (needs `items=` or `judged_only`): over all candidates; those not among the first k tie
        at the bottom.
    tied : {"half", "ranked"}, default "half"
        A pair with equal scores counts half, or as the ranks that `ties` gives it.
    one_class : {"undefined", "share"}, default "undefined"
        A list of hits alone or of misses alone, or an empty one, has no value, or the share of hits: 1 or 0.

    References
    ----------
    Hanley & McNeil (1982), Radiology 143(1).

    Examples
    --------
    >>> import recdf as rd
    >>> rd.auc({"u": ["a", "b"]}, {"u": ["a", "x", "b", "y"]}, k=4)
    0.75
    """
    above = lists.sum_hits(_misses_above)
    if tied == "half" and lists.matched.tie_level is not None:
        hits = lists.tied_hits
        top, bottom = _tied_ranks(lists, hits)
        level = lists.matched.tie_level[hits.place]
        first, last = np.searchsorted(level, level, side="left"), np.searchsorted(level, level, side="right")
        larger, equal = top - hits.number[first], bottom - top + 1 - (last - first)  # misses by their score
        above = above + lists.sum(larger + equal / 2 - _misses_above(hits), hits)
    positives, negatives = lists.n_hits, lists.n_shown - lists.n_hits
    unshown = np.zeros(len(lists))
    if within == "catalogue":
        misses = negatives
        positives, negatives = lists.n_true, lists.n_candidates - lists.n_true
        unshown = (positives - lists.n_hits) * (negatives - misses) / 2
    below = lists.n_hits * negatives - above + unshown
    share = positives / np.maximum(positives + negatives, 1) if one_class == "share" else np.nan
    return np.where(positives * negatives > 0, ratio(below, positives * negatives), share)


def _misses_above(hits: Hits) -> np.ndarray:
    return hits.rank - hits.number


@metric
def pauc(lists: Lists) -> np.ndarray:
    """Area under the ROC curve up to k misses, over the whole list; larger is better, in [0, 1].

    Formula
    -------
    Σ over hits of max(0, k − f) / (k · n_true), where f is the number of misses above the hit. The list is not
    cut at k: k is the number of misses. Undefined for n_true = 0; what is not shown adds nothing.

    References
    ----------
    Dodd & Pepe (2003), Biometrics 59(3); RecTools `PartialAUC`.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.pauc({"u": ["a", "b"]}, {"u": ["a", "x", "b", "y"]}, k=2)
    0.75
    """
    hits = lists.whole.hits
    near = hits.where(hits.from_all(_misses_above) < lists.k)
    return ratio(lists.sum(float(lists.k) - near.from_all(_misses_above), near), lists.k * lists.n_true)


@metric
def pap(lists: Lists) -> np.ndarray:
    """Area under the ROC curve of the first k hits and k misses; larger is better, in [0, 1].

    Formula
    -------
    Σ over the first k hits of max(0, k − f) / (k · min(k, n_true)), where f is the number of misses above the
    hit. The list is not cut at k. Undefined for n_true = 0.

    References
    ----------
    Budhiraja, Hiranandani, Yarrabelly, Choure & Dhillon (2020), "Rich-Item Recommendations"; RecTools `PAP`.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.pap({"u": ["a", "b", "c"]}, {"u": ["a", "x", "b", "y", "c"]}, k=2)
    0.75
    """
    hits = lists.whole.hits
    near = hits.where((hits.from_all(_misses_above) < lists.k) & (hits.number <= lists.k))
    area = lists.sum(float(lists.k) - near.from_all(_misses_above), near)
    return ratio(area, lists.k * np.minimum(lists.k, lists.n_true))


@metric
def bpref(lists: Lists) -> np.ndarray:
    """Preference of judged relevant over judged other items; larger is better, in [0, 1].

    Formula
    -------
    (1/R) Σ_{hits i ≤ k} (1 − min(o_i, R) / min(R, N)), the term 1 where o_i = 0: R = n_true, N judged items
    of the list that are not relevant, o_i those of them above rank i. Needs rows of `true` that are not
    relevant (gain 0 or below `min_relevance`). Undefined for R = 0.

    References
    ----------
    trec_eval `bpref`; Buckley & Voorhees (2004), SIGIR.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.bpref({"u": {"a": 1, "b": 1, "x": 0}}, {"u": ["a", "x", "b"]}, k=3)
    0.5
    """
    judged = lists.judged
    relevant = judged.gain > 0
    others_above = judged.number[relevant] - lists.hits.number
    relevant_of, others_of = lists.n_true[lists.hits.list], (lists.n_judged - lists.n_true)[lists.hits.list]
    lost = ratio(np.minimum(others_above, relevant_of), np.minimum(relevant_of, others_of))
    return ratio(lists.sum(1 - np.where(others_above > 0, lost, 0.0)), lists.n_true)


@metric(bounds=(1.0, None), better="smaller")
def first_rank(lists: Lists) -> np.ndarray:
    """Rank of the first hit; smaller is better, at least 1. Undefined without a hit.

    Formula
    -------
    min{i ≤ k : h_i = 1}.

    References
    ----------
    Field usage; 1 / `mrr` of a list.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.first_rank({"u": ["a"]}, {"u": ["x", "a"]}, k=10)
    2.0
    """
    return np.where(np.isinf(lists.first_rank), np.nan, lists.first_rank)
