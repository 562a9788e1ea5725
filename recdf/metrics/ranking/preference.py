"""Order of pairs of items: do hits stand above misses, and are all pairs of items in the right
order?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy import ndarray

from ...docstrings import says_as
from ...errors import DataError, OptionError
from ...inputs.constraints import a_number
from ...inputs.sorting import distinct, equal_runs, run_of, spans
from ...matching.hits import HitArrays, Hits, quotient, ratio
from ...matching.lists import Lists, Matched
from ..metric import metric
from ..subtopics import n_earlier

# ------------------------------------------------------------------------------------------
# Preference between pairs of items: do hits stand above misses? It also has the ranks of equal
# scores.


# Ranks of equal scores: those that the option `ties` gives, or for each the last of them.
ByScore = Literal["ranked", "worst"]


def ranked_by(lists: Lists, tied: str) -> Lists:
    """Return lists in which each hit has the rank that `tied` says; hits with worse ranks than k do
    not count."""
    matched = lists.matched
    if tied == "ranked" or matched.tie_level is None:
        return lists
    return lists.whole.once(_ranked_worst).at(lists.k)


def _ranked_worst(whole: Lists) -> Matched:
    hits = whole.hits
    _, bottom = tied_ranks(whole, hits)
    number = hits.number[
        tied_runs(whole, hits)[1]
    ]  # the hits among the items with an equal or higher score
    return whole.matched.beside(
        Hits(HitArrays(hits.list, bottom, hits.gain, number, hits.place, hits.true_place))
    )


def tied_ranks(lists: Lists, hits: Hits) -> tuple[ndarray, ndarray]:
    """Return the first and the last rank, within the first k, that have the same score as each
    hit."""
    level = lists.matched.tie_level
    if level is None:
        return hits.rank, hits.rank
    own = level[hits.place]
    begin = lists.matched.start[hits.list]
    return np.searchsorted(level, own, side="left") - begin + 1, np.minimum(
        np.searchsorted(level, own, side="right") - begin, lists.n_shown[hits.list]
    )


@metric
def auc(
    lists: Lists,
    *,
    within: Literal["shown", "catalogue"] = "shown",
    tied: Literal["half", "ranked", "wrong", "worst"] = "half",
    one_class: Literal["undefined", "share"] = "undefined",
    max_fpr: Annotated[float, a_number(above=0, most=1)] | None = None,
) -> ndarray:
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
    positives = lists.n_hits
    negatives = lists.n_shown - lists.n_hits
    misses = negatives
    unshown = np.zeros(len(lists))
    if within == "catalogue":
        positives = lists.n_true
        negatives = lists.n_candidates - lists.n_true
        unshown = positives - lists.n_hits
    lost = LOST["half" if tied == "ranked" else tied]
    if max_fpr is None:
        below = (
            lists.n_hits * negatives
            - misses_before(lists, tied)
            + unshown * (negatives - misses) * (1 - lost)
        )
    else:
        limit = max_fpr * negatives
        hits = lists.hits
        area = _area_upto(limit[hits.list], *_misses_beside(lists, hits, tied), lost)
        below = lists.sum(area) + unshown * _area_upto(limit, misses, negatives - misses, lost)
    share = positives / np.maximum(positives + negatives, 1) if one_class == "share" else np.nan
    found = ratio(below, positives * negatives)
    if max_fpr is not None:
        found = (1 + (found - max_fpr**2 / 2) / (max_fpr - max_fpr**2 / 2)) / 2
    return np.where(positives * negatives > 0, found, share)


# How much of a pair is lost where both items have the same score.
LOST = {"half": 0.5, "wrong": 1.0, "worst": 1.0, "right": 0.0}


def misses_before(lists: Lists, tied: str) -> ndarray:
    """Count the pairs of a miss above a hit in each list, where misses with the same score count in
    part."""
    above = lists.sum_hits(_misses_above)
    if tied == "ranked" or lists.matched.tie_level is None:
        return above
    hits = lists.tied_hits
    larger, equal = lists.once(_misses_beside, hits, tied)
    return above + lists.sum(larger + equal * LOST[tied] - _misses_above(hits), hits)


def _misses_beside(lists: Lists, hits: Hits, tied: str) -> tuple[ndarray, ndarray]:
    """Count the misses with a larger score than that of each hit, and those with the same score."""
    if tied == "ranked" or lists.matched.tie_level is None:
        return _misses_above(hits), np.zeros(len(hits))
    top, bottom = tied_ranks(lists, hits)
    first, last = tied_runs(lists, hits)
    return top - hits.number[first], bottom - top - (last - first)


def tied_runs(lists: Lists, hits: Hits) -> tuple[ndarray, ndarray]:
    """Return the positions of the first and the last hit that have the same score as each hit."""
    level = lists.matched.tie_level
    head, n = equal_runs(hits.list, hits.rank if level is None else level[hits.place])
    return head, head + n - 1


def _area_upto(limit: ndarray, larger: ndarray, equal: ndarray, lost: float) -> ndarray:
    """Integrate over misses up to the limit: a hit counts 0 before the `larger` ones and 1 after
    the `equal` ones."""
    within = np.clip(limit - larger, 0, equal)
    beyond = np.maximum(limit - larger - equal, 0)
    return beyond if lost == 1 else beyond + within**2 / (2 * np.maximum(equal, 1))


def _misses_above(hits: Hits) -> ndarray:
    return hits.rank - hits.number


Insufficient = Literal["ignore", "exclude", "raise"]


def _area_of_first_misses(lists: Lists, n_hits: float, n_best: Any, insufficient: str) -> ndarray:
    """Area over the first k misses and the first hits; lists that end before their k-th miss and
    before all relevant items are settled."""
    whole = lists.whole
    hits = lists.whole.hits
    below = lists.k - np.minimum(hits.rank - hits.number, lists.k)
    area = lists.sum(np.where(hits.number <= n_hits, below, 0), hits)
    short = (whole.n_shown - whole.n_hits < lists.k) & (whole.n_hits < lists.n_true)
    if insufficient == "raise" and short.any():
        raise DataError(
            f"{short.sum():,} of {len(lists):,} lists have fewer than {lists.k} misses and lack "
            "relevant items; "
            'recommend more items, or pass ⟦+insufficient="ignore"⟧ to count them or "exclude" to '
            "leave them out"
        )
    found = ratio(area, lists.k * n_best)
    return np.where(short, np.nan, found) if insufficient == "exclude" else found


@metric
def pauc(lists: Lists, *, insufficient: Insufficient = "ignore") -> ndarray:
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
    return _area_of_first_misses(lists, np.inf, lists.n_true, insufficient)


@metric
@says_as(pauc)
def pap(lists: Lists, *, insufficient: Insufficient = "ignore") -> ndarray:
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

    Parameters
    ----------
    {insufficient}
    """
    return _area_of_first_misses(lists, lists.k, np.minimum(lists.k, lists.n_true), insufficient)


@metric(unknown=("negatives",), optional=("not_judged",))
def bpref(lists: Lists) -> ndarray:
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
    others_above = judged.number[judged.gain > 0] - lists.hits.number
    relevant_of = lists.n_true[lists.hits.list]
    others_of = (lists.n_judged - lists.n_true)[lists.hits.list]
    lost = ratio(np.minimum(others_above, relevant_of), np.minimum(relevant_of, others_of))
    return ratio(lists.sum(1 - np.where(others_above > 0, lost, 0.0)), lists.n_true)


# ------------------------------------------------------------------------------------------
# Order among all items of a list: pairs of items in the right order, and how far down the
# relevant ones stand.


@metric(aliases=("opa",), optional=("not_judged",))
def pair_accuracy(
    lists: Lists,
    *,
    within: Literal["shown", "judged"] = "shown",
    gain: Literal["linear", "binary"] = "linear",
    tied: Literal["half", "wrong", "right"] = "half",
    pooled: bool = False,
) -> Any:
    """Share of the pairs of items with unequal gains whose better item stands higher; larger is
    better, in [0, 1].

    Formula
    -------
    right / possible, over the pairs of items a, b with gain(a) > gain(b). Undefined for a list
    without such a pair. With `pooled=True`: Σ_lists w · right / Σ_lists w · possible, where w is
    the weight of the list, or 1.

    Parameters
    ----------
    within : {"shown", "judged"}, default "shown"
        "shown": pairs of the first k items, right if the score of a is larger. An item that is not
        relevant has gain 0. "judged": pairs of all items that `true` judges, right if a is in the
        first k and b is lower or not there.
    gain : {"linear", "binary"}, default "linear"
        "linear": gains as they are. "binary": 1 for every relevant item, so that pairs are of a hit
        and a miss.
    tied : {"half", "wrong", "right"}, default "half"
        How a pair of equal scores counts: half, not, or whole. With within="judged" ranks decide,
        and it is refused.
    pooled : bool, default False
        True: one ratio of sums over all lists instead of the mean of the ratios. It is one number
        for all lists, without an interval.

    Notes
    -----
    Use it for graded relevance where the whole order matters and not only its top, or where people
    said which of two items they prefer. With binary gains it is `auc`. Do not use it for what users
    see first: a mistake at the bottom counts as much as one at the top, so take `ndcg` there.
    Pooled, a list counts as much as it has pairs.

    References
    ----------
    TF-Ranking `OPAMetric` is tied="wrong"; scikit-learn `label_ranking_loss` is 1 − its value with
    gain="binary" and tied="wrong"; trec_eval `prefs_simp` is within="judged".

    Examples
    --------
    >>> rd.pair_accuracy({"u": {"a": 1, "b": 3}}, {"u": ["a", "b", "x"]}, k=3).__round__(4)
    0.6667
    """
    if within == "judged":
        if tied != "half":
            raise OptionError(
                f'⟦tied={tied!r}⟧ is of scores, and ⟦within="judged"⟧ goes by ranks; leave one of '
                "them out"
            )
        true = lists.matched.true_lists
        judged = lists.judged
        length = lists.n_judged
        start = lists.matched.of_true(true.start[:-1])
        of = run_of(length)
        rows = spans(start, length)
        gains = (true.gain > 0 if gain == "binary" else true.gain)[rows]
        rank = np.full(len(rows), np.inf)
        rank[(np.cumsum(length) - length - start)[judged.list] + judged.true_place] = judged.rank
        # Items that are not shown follow by ascending gain: no pair of them is right.
        order = np.lexsort((gains, rank, of))
        counts = _earlier_pairs(of[order], gains[order])
        right, possible = (np.bincount(of[order], one, len(lists)) for one in counts)
        return quotient(right, possible, pooled)
    n_hits = lists.n_hits
    misses = lists.n_shown - lists.n_hits
    right = n_hits * misses - misses_before(lists, tied)
    possible = n_hits * misses
    if gain == "linear" and not lists.matched.true_lists.constant_gain:
        pairs = lists.whole.once(_of_hits)
        wrong, equal, unequal = (one[lists.whole.hits.rank <= lists.k] for one in pairs)
        right = right + lists.sum(unequal - wrong - equal * LOST[tied])
        possible = possible + lists.sum(unequal)
    return quotient(right, possible, pooled)


def _of_hits(lists: Lists) -> tuple[ndarray, ndarray, ndarray]:
    """Count the hits above each hit: of less gain and more score, of other gain and equal score, of
    other gain."""
    hits = lists.hits
    wrong, unequal = _earlier_pairs(hits.list, -hits.gain)
    first, last = tied_runs(lists, hits)
    several = np.flatnonzero(first < last)
    equal = np.zeros_like(wrong)
    wrong_tied, equal[several] = _earlier_pairs(first[several], -hits.gain[several])
    wrong[several] -= wrong_tied
    return wrong, equal, unequal


def _earlier_pairs(group: ndarray, gain: ndarray) -> tuple[ndarray, ndarray]:
    """For each entry, the number of earlier entries of its group with a larger gain, and with
    another gain."""
    code = np.searchsorted(distinct(gain), gain)
    n_codes = int(code.max(initial=0)) + 1
    larger = np.zeros(len(code), np.int64)
    for bit in range(
        n_codes.bit_length() - 1, -1, -1
    ):  # pairs whose codes first differ at this bit
        order = np.lexsort((code >> (bit + 1), group))
        one = (code[order] >> bit) & 1
        before = np.cumsum(one) - one
        before -= before[equal_runs(group[order], code[order] >> (bit + 1))[0]]
        larger[order] += np.where(one == 0, before, 0)
    return larger, n_earlier(group) - n_earlier(group * n_codes + code)


@metric(better="smaller", needs=("candidates",), cut=False)
def percentile_rank(
    lists: Lists, *, unshown: Literal["middle", "bottom"] = "middle", pooled: bool = False
) -> Any:
    """Mean place of the relevant items in the catalogue, 0 for the top; smaller is better, in [0,
    1]. k is ignored.

    Formula
    -------
    Mean of (i − 1)/N over the relevant items, where i is the rank of the item and N the number of
    candidates: the items of the catalogue or, with `judged_only`, the judged items of the list.
    Undefined for n_true = 0. With `pooled=True`: the mean over all pairs of a list and a relevant
    item, each with the weight of the list, 1 without `weight_col`.

    Parameters
    ----------
    unshown : {"middle", "bottom"}, default "middle"
        What a relevant item counts that is not in the list. "middle": ((n_pred − 1)/N + 1)/2, its
        expected place if the rest of the catalogue follows at random. "bottom": 1.
    pooled : bool, default False
        True: one ratio of sums over all lists instead of the mean of the ratios. It is one number
        for all lists, without an interval.

    Notes
    -----
    Use it for models of implicit feedback that rank the whole catalogue; a random order has about
    0.5. Do not use it for the few items that users see, since all ranks count alike; take `ndcg`
    there. Short lists are mostly measured by the rule for items that are not shown. Pooled, a list
    counts as much as it has relevant items.

    References
    ----------
    Hu, Koren & Volinsky (2008), ICDM; recpack `PercentileRanking` is 100 times the pooled value.

    Examples
    --------
    >>> rd.percentile_rank(
    ...     {"u": ["a", "b"]}, {"u": ["x", "a", "b"]}, items=["a", "b", "x", "y", "z"]
    ... ).__round__(4)
    0.3
    """
    whole = lists.whole
    n = lists.n_candidates
    lacking = ((lists.n_pred - 1) / n + 1) / 2 if unshown == "middle" else 1.0
    total = whole.sum(whole.hits.rank - 1) / n + (lists.n_true - whole.n_hits) * lacking
    return quotient(np.where(lists.n_true > 0, total, 0.0), lists.n_true, pooled)
