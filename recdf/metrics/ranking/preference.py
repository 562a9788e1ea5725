"""Preference between pairs of items: do hits stand above misses? It also has the ranks of equal
scores."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from ...errors import DataError
from ...inputs.constraints import a_number
from ...inputs.sorting import run_heads
from ...matching.hits import HitArrays, Hits, ratio
from ...matching.lists import Lists, Matched
from ..metric import metric

# Ranks of equal scores: those that the option `ties` gives, or for each the last of them.
ByScore = Literal["ranked", "worst"]


def ranked_by(lists: Lists, tied: str) -> Lists:
    """Return lists in which each hit has the rank that `tied` says; hits with worse ranks than k do
    not count."""
    matched = lists.matched
    if tied == "ranked" or matched.tie_level is None:
        return lists
    worst: Matched = matched.derived("worst", lambda: _ranked_worst(lists.whole))
    return worst.at(lists.cut)


def _ranked_worst(whole: Lists) -> Matched:
    hits = whole.hits
    _, bottom = tied_ranks(whole, hits)
    number = hits.number[
        tied_runs(whole, hits)[1]
    ]  # the hits among the items with an equal or higher score
    return whole.matched.beside(
        Hits(HitArrays(hits.list, bottom, hits.gain, number, hits.place, hits.true_place))
    )


def tied_ranks(lists: Lists, hits: Hits) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last rank, within the first k, that have the same score as each
    hit."""
    level = lists.matched.tie_level
    if level is None:
        return hits.rank, hits.rank
    own, begin = level[hits.place], lists.matched.start[hits.list]
    bottom = np.searchsorted(level, own, side="right") - begin
    return np.searchsorted(level, own, side="left") - begin + 1, np.minimum(
        bottom, lists.n_shown[hits.list]
    )


@metric
def auc(
    lists: Lists,
    *,
    within: Literal["shown", "catalogue"] = "shown",
    tied: Literal["half", "ranked", "wrong", "worst"] = "half",
    one_class: Literal["undefined", "share"] = "undefined",
    max_fpr: Annotated[float, a_number(above=0, most=1)] | None = None,
) -> np.ndarray:
    """Share of (hit, miss) pairs in the right order, equal scores counting half; larger is better,
    in [0, 1].

    Formula
    -------
    (Σ over hits of the misses below + ½ Σ over hits of the misses with the same score) / (hits ·
    misses), all within the first k. Undefined for a list with hits only or misses only. With
    max_fpr = f it is ½(1 + (A − f²/2)/(f − f²/2)), where A is the area under the ROC curve up to
    the false-positive rate f. Equal scores are a straight line of the curve.

    Parameters
    ----------
    within : {"shown", "catalogue"}, default "shown"
        "shown": pairs of the first k items. "catalogue": pairs of all candidates; needs `items=` or
        `judged_only`. Candidates that are not among the first k then share one score, below all
        others.
    tied : {"half", "ranked", "wrong", "worst"}, default "half"
        "half": a pair with equal scores counts half. "ranked": it counts as the ranks that the
        option `ties` gives it; a pair of candidates without ranks counts half. "wrong": it counts
        0, which is also what the worst ranks of equal scores give ("worst").
    one_class : {"undefined", "share"}, default "undefined"
        What a list has that consists of hits alone or of misses alone, or is empty. "undefined": no
        value. "share": the share of hits, which is 1 or 0.
    max_fpr : float, optional
        f in (0, 1]: only the part of the ROC curve with false-positive rates up to f counts. A
        random order has 1/2.

    Notes
    -----
    Use it on labelled candidates, to ask whether the scores separate hits from misses at all. A
    mistake at the bottom of the list counts as much as one at the top, so take `ndcg` or `mapr` for
    what users see. Short lists often consist of hits alone or misses alone, and then have no value:
    read `n_undefined`.

    References
    ----------
    Hanley & McNeil (1982), Radiology 143(1); McClish (1989), Medical Decision Making 9(3), for
    max_fpr, as in scikit-learn `roc_auc_score`. Cornac `AUC` is tied="wrong".

    Examples
    --------
    >>> rd.auc({"u": ["a", "b"]}, {"u": ["a", "x", "b", "y"]}, k=4)
    0.75
    """
    positives, negatives = lists.n_hits, lists.n_shown - lists.n_hits
    misses, unshown = negatives, np.zeros(len(lists))
    if within == "catalogue":
        positives, negatives = lists.n_true, lists.n_candidates - lists.n_true
        unshown = positives - lists.n_hits
    lost = LOST["half" if tied == "ranked" else tied]
    if max_fpr is None:
        below = (
            lists.n_hits * negatives
            - misses_before(lists, tied)
            + unshown * (negatives - misses) * (1 - lost)
        )
    else:
        limit, hits = max_fpr * negatives, lists.hits
        area = _area_upto(limit[hits.list], *_misses_beside(lists, hits, tied), lost)
        below = lists.sum(area) + unshown * _area_upto(limit, misses, negatives - misses, lost)
    share = positives / np.maximum(positives + negatives, 1) if one_class == "share" else np.nan
    found = ratio(below, positives * negatives)
    if max_fpr is not None:
        found = (1 + (found - max_fpr**2 / 2) / (max_fpr - max_fpr**2 / 2)) / 2
    return np.where(positives * negatives > 0, found, share)


# How much of a pair is lost where both items have the same score.
LOST = {"half": 0.5, "wrong": 1.0, "worst": 1.0, "right": 0.0}


def misses_before(lists: Lists, tied: str) -> np.ndarray:
    """Count the pairs of a miss above a hit in each list, where misses with the same score count in
    part."""
    above = lists.sum_hits(_misses_above)
    if tied == "ranked" or lists.matched.tie_level is None:
        return above
    hits = lists.tied_hits
    larger, equal = lists.matched.derived(
        ("misses", lists.cut), lambda: _misses_beside(lists, hits, tied)
    )
    total: np.ndarray = above + lists.sum(larger + equal * LOST[tied] - _misses_above(hits), hits)
    return total


def _misses_beside(lists: Lists, hits: Hits, tied: str) -> tuple[np.ndarray, np.ndarray]:
    """Count the misses with a larger score than that of each hit, and those with the same score."""
    if tied == "ranked" or lists.matched.tie_level is None:
        return _misses_above(hits), np.zeros(len(hits))
    top, bottom = tied_ranks(lists, hits)
    first, last = tied_runs(lists, hits)
    return top - hits.number[first], bottom - top - (last - first)


def tied_runs(lists: Lists, hits: Hits) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the first and the last hit that have the same score as each hit."""
    level = lists.matched.tie_level
    heads = run_heads([hits.list, hits.rank if level is None else level[hits.place]])
    length = np.diff(np.append(heads, len(hits)))
    return np.repeat(heads, length), np.repeat(heads + length - 1, length)


def _area_upto(limit: np.ndarray, larger: np.ndarray, equal: np.ndarray, lost: float) -> np.ndarray:
    """Integrate over misses up to the limit: a hit counts 0 before the `larger` ones and 1 after
    the `equal` ones."""
    within = np.clip(limit - larger, 0, equal)
    beyond: np.ndarray = np.maximum(limit - larger - equal, 0)
    return beyond if lost == 1 else beyond + within**2 / (2 * np.maximum(equal, 1))


def _misses_above(hits: Hits) -> np.ndarray:
    found: np.ndarray = hits.rank - hits.number
    return found


Insufficient = Literal["ignore", "exclude", "raise"]


def _settled(lists: Lists, found: np.ndarray, insufficient: str) -> np.ndarray:
    """Settle the lists that end before their k-th miss and before all relevant items."""
    whole = lists.whole
    short = (whole.n_shown - whole.n_hits < lists.k) & (whole.n_hits < lists.n_true)
    if insufficient == "raise" and short.any():
        raise DataError(
            f"{short.sum():,} of {len(lists):,} lists have fewer than {lists.k} misses and lack "
            "relevant items; "
            'recommend more items, or pass ⟦+insufficient="ignore"⟧ to count them or "exclude" to '
            "leave them out"
        )
    return np.where(short, np.nan, found) if insufficient == "exclude" else found


@metric
def pauc(lists: Lists, *, insufficient: Insufficient = "ignore") -> np.ndarray:
    """Area under the ROC curve up to k misses, over the whole list; larger is better, in [0, 1].

    Formula
    -------
    Σ over hits of max(0, k − f) / (k · n_true), where f is the number of misses above the hit. The
    list is not cut at k: k is the number of misses. Undefined for n_true = 0. Items that are not
    recommended add nothing.

    Parameters
    ----------
    insufficient : {"ignore", "exclude", "raise"}, default "ignore"
        What a list has that ends before its k-th miss and lacks relevant items. "ignore": the value
        of what is there. "exclude": no value. "raise": an error.

    Notes
    -----
    Use it for long scored lists where only the top matters, because only pairs with the first k
    misses count. If a list ends before its k-th miss, the relevant items that it lacks add nothing.
    So compare models whose lists are equally long.

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
    area = lists.sum(float(lists.k) - near.from_all(_misses_above), near)
    return _settled(lists, ratio(area, lists.k * lists.n_true), insufficient)


@metric
def pap(lists: Lists, *, insufficient: Insufficient = "ignore") -> np.ndarray:
    """Area under the ROC curve of the first k hits and k misses; larger is better, in [0, 1].

    Formula
    -------
    Σ over the first k hits of max(0, k − f) / (k · min(k, n_true)), where f is the number of misses
    above the hit. The list is not cut at k. Undefined for n_true = 0.

    Notes
    -----
    Use it like `pauc`, when users with many relevant items should be able to reach 1: only the
    first k hits count. A list that ends early is not extended, so compare models whose lists are
    equally long.

    References
    ----------
    Budhiraja, Hiranandani, Yarrabelly, Choure & Dhillon (2020), "Rich-Item Recommendations";
    RecTools `PAP`.

    Examples
    --------
    >>> rd.pap({"u": ["a", "b", "c"]}, {"u": ["a", "x", "b", "y", "c"]}, k=2)
    0.75
    """
    hits = lists.whole.hits
    near = hits.where((hits.from_all(_misses_above) < lists.k) & (hits.number <= lists.k))
    area = lists.sum(float(lists.k) - near.from_all(_misses_above), near)
    return _settled(lists, ratio(area, lists.k * np.minimum(lists.k, lists.n_true)), insufficient)


@metric(unknown=("negatives",), optional=("not_judged",))
def bpref(lists: Lists) -> np.ndarray:
    """Preference of judged relevant over judged other items; larger is better, in [0, 1].

    Formula
    -------
    (1/R) Σ_{hits i ≤ k} (1 − min(o_i, R) / min(R, N)), where R = n_true, N is the number of judged
    items of the list that are not relevant, and o_i is the number of these above rank i. A term
    with o_i = 0 is 1. `true` must have rows that are not relevant (gain 0 or below
    `min_relevance`). A row of null or negative relevance is not judged. Undefined for R = 0.

    Notes
    -----
    Use it when `true` judges only some of the items, as relevant or not: items that are not judged
    have no influence. Do not use it where `true` holds relevant items alone: it then equals
    `recall`, which is the better name.

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
    relevant_of, others_of = (
        lists.n_true[lists.hits.list],
        (lists.n_judged - lists.n_true)[lists.hits.list],
    )
    lost = ratio(np.minimum(others_above, relevant_of), np.minimum(relevant_of, others_of))
    return ratio(lists.sum(1 - np.where(others_above > 0, lost, 0.0)), lists.n_true)
