"""Preference between pairs of items: do hits stand above misses? It also has the ranks of equal scores."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...matching.hits import Hits, ratio
from ...matching.lists import Lists
from ..metric import metric


def tied_ranks(lists: Lists, hits: Hits) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last rank, within the first k, that have the same score as each hit."""
    level = lists.matched.tie_level
    if level is None:
        return hits.rank, hits.rank
    own, begin = level[hits.place], lists.matched.start[hits.list]
    bottom = np.searchsorted(level, own, side="right") - begin
    return np.searchsorted(level, own, side="left") - begin + 1, np.minimum(bottom, lists.n_shown[hits.list])


@metric
def auc(
    lists: Lists, *, within: Literal["shown", "catalogue"] = "shown", tied: Literal["half", "ranked"] = "half",
    one_class: Literal["undefined", "share"] = "undefined",
) -> np.ndarray:  # fmt: skip
    """Share of (hit, miss) pairs in the right order, equal scores counting half; larger is better, in [0, 1].

    Formula
    -------
    (Σ over hits of the misses below + ½ Σ over hits of the misses with the same score) / (hits · misses), all within
    the first k. Undefined for a list with hits only or misses only.

    Parameters
    ----------
    within : {"shown", "catalogue"}, default "shown"
        "shown": pairs of the first k items. "catalogue": pairs of all candidates; needs `items=` or `judged_only`.
        Candidates that are not among the first k then share one score, below all others.
    tied : {"half", "ranked"}, default "half"
        "half": a pair with equal scores counts half. "ranked": it counts as the ranks that the option `ties` gives it.
    one_class : {"undefined", "share"}, default "undefined"
        What a list has that consists of hits alone or of misses alone, or is empty. "undefined": no value. "share": the
        share of hits, which is 1 or 0.

    Notes
    -----
    Use it on labelled candidates, to ask whether the scores separate hits from misses at all. A mistake at the bottom
    of the list counts as much as one at the top, so take `ndcg` or `mapr` for what users see. Short lists often consist
    of hits alone or misses alone, and then have no value: read `n_undefined`.

    References
    ----------
    Hanley & McNeil (1982), Radiology 143(1).

    Examples
    --------
    >>> rd.auc({"u": ["a", "b"]}, {"u": ["a", "x", "b", "y"]}, k=4)
    0.75
    """
    above = lists.sum_hits(_misses_above)
    if tied == "half" and lists.matched.tie_level is not None:
        hits = lists.tied_hits
        top, bottom = tied_ranks(lists, hits)
        level = lists.matched.tie_level[hits.place]
        first, last = np.searchsorted(level, level, side="left"), np.searchsorted(level, level, side="right")
        # Misses with a larger score than that of the hit, and misses with the same score.
        larger, equal = top - hits.number[first], bottom - top + 1 - (last - first)
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
    found: np.ndarray = hits.rank - hits.number
    return found


@metric
def pauc(lists: Lists) -> np.ndarray:
    """Area under the ROC curve up to k misses, over the whole list; larger is better, in [0, 1].

    Formula
    -------
    Σ over hits of max(0, k − f) / (k · n_true), where f is the number of misses above the hit. The list is not
    cut at k: k is the number of misses. Undefined for n_true = 0. Items that are not recommended add nothing.

    Notes
    -----
    Use it for long scored lists where only the top matters, because only pairs with the first k misses count. If a list
    ends before its k-th miss, the relevant items that it lacks add nothing. So compare models whose lists are equally
    long.

    References
    ----------
    Dodd & Pepe (2003), Biometrics 59(3); RecTools `PartialAUC`.

    Examples
    --------
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

    Notes
    -----
    Use it like `pauc`, when users with many relevant items should be able to reach 1: only the first k hits count. A
    list that ends early is not extended, so compare models whose lists are equally long.

    References
    ----------
    Budhiraja, Hiranandani, Yarrabelly, Choure & Dhillon (2020), "Rich-Item Recommendations"; RecTools `PAP`.

    Examples
    --------
    >>> rd.pap({"u": ["a", "b", "c"]}, {"u": ["a", "x", "b", "y", "c"]}, k=2)
    0.75
    """
    hits = lists.whole.hits
    near = hits.where((hits.from_all(_misses_above) < lists.k) & (hits.number <= lists.k))
    area = lists.sum(float(lists.k) - near.from_all(_misses_above), near)
    return ratio(area, lists.k * np.minimum(lists.k, lists.n_true))


@metric(unknown=("negatives",), optional=("not_judged",))
def bpref(lists: Lists) -> np.ndarray:
    """Preference of judged relevant over judged other items; larger is better, in [0, 1].

    Formula
    -------
    (1/R) Σ_{hits i ≤ k} (1 − min(o_i, R) / min(R, N)), where R = n_true, N is the number of judged items of the list
    that are not relevant, and o_i is the number of these above rank i. A term with o_i = 0 is 1. `true` must have rows
    that are not relevant (gain 0 or below `min_relevance`). A row of null or negative relevance is not judged.
    Undefined for R = 0.

    Notes
    -----
    Use it when `true` judges only some of the items, as relevant or not: items that are not judged have no influence.
    Do not use it where `true` holds relevant items alone: it then equals `recall`, which is the better name.

    References
    ----------
    trec_eval `bpref`; Buckley & Voorhees (2004), SIGIR.

    Examples
    --------
    >>> rd.bpref({"u": {"a": 1, "b": 1, "x": 0}}, {"u": ["a", "x", "b"]}, k=3)
    0.5
    """
    judged = lists.judged
    relevant = judged.gain > 0
    others_above = judged.number[relevant] - lists.hits.number
    relevant_of, others_of = lists.n_true[lists.hits.list], (lists.n_judged - lists.n_true)[lists.hits.list]
    lost = ratio(np.minimum(others_above, relevant_of), np.minimum(relevant_of, others_of))
    return ratio(lists.sum(1 - np.where(others_above > 0, lost, 0.0)), lists.n_true)
