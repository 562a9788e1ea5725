"""Judgements: how much of a list does `true` judge, what is it worth, and is the list as long and
varied as it should?

An item is judged for a list if `true` has it with a relevance of at least 0. With a null or
negative relevance it is in the pool and not judged.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy import ndarray

from ..inputs.constraints import a_number
from ..matching.hits import Hits, ratio
from ..matching.lists import Lists
from .metric import NOT_NEGATIVE, metric

# Keeps the estimated precision of infap defined where no judged item stands above a hit, as in
# trec_eval.
EPSILON = 1e-5

LEVELS = tuple(level / 10 for level in range(11))


@metric(
    optional=("not_judged",),
    where={
        "of=unjudged": {"better": "smaller"},
        "of=nonrelevant": {"better": "smaller"},
        "of=shown": {"better": None},
        "divisor=none": {"bounds": NOT_NEGATIVE},
    },
)
def judged(
    lists: Lists,
    *,
    of: Literal["judged", "unjudged", "nonrelevant", "shown"] = "judged",
    divisor: Literal["shown", "k", "none"] = "shown",
) -> ndarray:
    """Share of the first k that `true` judges, as relevant or not; larger is better, in [0, 1].

    Formula
    -------
    c / d, where c is the number of items of the kind `of` among the first k, and d is the divisor.
    An item is judged if `true` has it with a relevance of at least 0. A null or negative relevance
    says that it is in the pool and was not judged.

    Parameters
    ----------
    of : {"judged", "unjudged", "nonrelevant", "shown"}, default "judged"
        "judged": items with a relevance of at least 0. "unjudged": all others; smaller is better.
        "nonrelevant": judged items that are not relevant; smaller is better. "shown": all items,
        which is min(k, n_pred) with `divisor="none"`; neither is better.
    divisor : {"shown", "k", "none"}, default "shown"
        "shown": d = min(k, n_pred), undefined for a list without recommendations. "k": d = k.
        "none": d = 1, a count.

    Notes
    -----
    Use it beside any metric of relevance, to see how much of what is shown the judgements know at
    all: an item that nobody judged counts as a miss there, although it may be relevant.
    `rbp_residual` says how much that could add. Do not read it as quality: a popular item is judged
    more often, and where `true` holds clicks alone it is `precision`.

    References
    ----------
    ir_measures `Judged`; trec_eval 10 `unj` (unjudged, divisor k); trec_eval
    `num_nonrel_judged_ret`.

    Examples
    --------
    >>> true, pred = {"u": {"a": 1, "x": 0, "y": -1}}, {"u": ["a", "x", "y", "z"]}
    >>> rd.judged(true, pred, k=4), rd.judged(true, pred, k=4, of="nonrelevant", divisor="none")
    (0.5, 1.0)
    """
    n_judged = np.bincount(lists.judged.list, minlength=len(lists))
    count = {
        "judged": n_judged,
        "unjudged": lists.n_shown - n_judged,
        "nonrelevant": n_judged - lists.n_hits,
        "shown": lists.n_shown,
    }[of]
    return ratio(count, {"shown": lists.n_shown, "k": lists.k, "none": 1}[divisor])


@metric(bounds=(None, None))
def utility(
    lists: Lists, *, a: float = 1.0, b: float = -1.0, c: float = 0.0, d: float = 0.0
) -> ndarray:
    """What a list is worth if hits, misses and missed items have prices; larger is better, without
    bounds.

    Formula
    -------
    a·tp + b·fp + c·fn + d·tn, the counts of `confusion`: tp hits, fp = m − tp, fn = n − tp, where m
    = min(k, n_pred), n = n_true, and tn is the number of other candidates. It is defined for every
    list.

    Parameters
    ----------
    a : float, default 1
        Worth of a hit.
    b : float, default -1
        Worth of a recommended item that is not relevant.
    c : float, default 0
        Worth of a relevant item that is not among the first k.
    d : float, default 0
        Worth of a candidate that is rightly left out. Other than 0 it needs `items=` or
        `judged_only=True`.

    Notes
    -----
    Use it where a place costs something that has a price, such as a letter that is sent or an alarm
    that is looked into. The prices decide everything, so take them from the application and state
    them. The order inside the first k does not count. Do not use it to compare users with each
    other: it grows with the number of items.

    References
    ----------
    trec_eval `utility`; Hull (1998), TREC-7 filtering track.

    Examples
    --------
    >>> rd.utility({"u": ["a", "b"]}, {"u": ["a", "x", "y"]}, k=3)
    -1.0
    >>> rd.utility({"u": ["a", "b"]}, {"u": ["a", "x", "y"]}, k=3, a=5, b=-0.5, c=-1)
    3.0
    """
    tp = lists.n_hits
    fp = lists.n_shown - tp
    fn = lists.n_true - tp
    found: ndarray = a * tp + b * fp + c * fn
    return found + d * (lists.n_candidates - tp - fp - fn) if d else found


@metric(arguments=("pred",))
def sufficient(lists: Lists, *, deep: bool = False) -> ndarray:
    """Whether a list has k items; larger is better, in [0, 1].

    Formula
    -------
    1 if m = k else 0, where m = min(k, n_pred). With `deep`: m / k.

    Parameters
    ----------
    deep : bool, default False
        Whether a list that is too short counts by the share of its places that are filled.

    Notes
    -----
    Use it to watch a recommender whose filters may leave too few items: a mean below 1 says for how
    many users the page has empty places. It says nothing about relevance. Do not use it where lists
    are meant to have different lengths.

    References
    ----------
    RecTools `SufficientReco`.

    Examples
    --------
    >>> pred = {"u": ["a", "b"], "v": ["a"]}
    >>> rd.sufficient(pred, k=2), rd.sufficient(pred, k=2, deep=True)
    (0.5, 0.75)
    """
    return lists.n_shown / lists.k if deep else lists.n_shown == lists.k


@metric(arguments=("pred",))
def unrepeated(lists: Lists, *, deep: bool = False) -> ndarray:
    """Whether a list shows no item twice; larger is better, in [0, 1].

    Formula
    -------
    1 if the items of the first k rows all differ else 0; with `deep`, the number of different items
    over that of rows. Rows are counted before repeated ones are dropped. Undefined for a list
    without rows.

    Parameters
    ----------
    deep : bool, default False
        Whether a list with repeated items counts by its share of different items.

    Notes
    -----
    Use it to find a recommender that fills its page with the same item. All other metrics drop
    repeated rows first, unless `duplicates="keep"` is given, and so do not see them. Below 1 it
    points at a defect, as `DuplicateWarning` does; do not use it to rank recommenders.

    References
    ----------
    RecTools `UnrepeatedReco`, whose k is compared with the column of ranks.

    Examples
    --------
    >>> pred = {"u": ["a", "b", "b", "c"]}
    >>> [rd.unrepeated(pred, k=k, duplicates="keep") for k in (2, 4)]
    [1.0, 0.0]
    >>> rd.unrepeated(pred, k=4, duplicates="keep", deep=True)
    0.75
    """
    of_list, rank = lists.matched.repeats
    n_rows = lists.n_pred
    if not lists.matched.repeats_kept:
        n_rows = n_rows + np.bincount(of_list, minlength=len(lists))
    n_rows = np.minimum(n_rows, lists.k)
    repeated = np.bincount(of_list[rank <= lists.k], minlength=len(lists))
    return ratio(n_rows - repeated if deep else (repeated == 0) * n_rows, n_rows)


@metric(cut=False, unknown=("negatives",), optional=("not_judged",))
def infap(lists: Lists) -> ndarray:
    """Average precision inferred from a pool of which only a sample is judged; larger is better, in
    [0, 1].

    Formula
    -------
    (1/n) Σ_{hits i} [1/i + ((i − 1)/i) · (r + z + u)/(i − 1) · (r + ε)/(r + z + 2ε)], where the
    term of i = 1 is 1, r, z, u are the numbers of relevant, of judged and not relevant, and of not
    judged items of the pool above rank i, and ε = 1e-5. The whole list counts; k is ignored. Items
    of null or negative relevance are in the pool and not judged; items that `true` lacks are
    outside the pool and count as not relevant. Undefined for n_true = 0.

    Notes
    -----
    Use it where a pool of candidates was formed and only a random part of it was judged: above each
    hit, the judged items of the pool stand for those that were not judged. `true` must have rows of
    relevance 0 and rows that are not judged (null or −1). Do not use it where the judged items were
    chosen by their rank, because the sample is then not random; take `bpref`. Where all of the pool
    is judged it is close to `mapr`.

    References
    ----------
    Yilmaz & Aslam (2006), CIKM; trec_eval `infAP`.

    Examples
    --------
    >>> true = {"u": {"a": 1, "b": 1, "x": 0, "y": -1}}
    >>> round(rd.infap(true, {"u": ["a", "x", "y", "b"]}), 4)
    0.8125
    """
    pool = lists.whole.pool
    known = lists.whole.judged
    r = lists.whole.hits.number - 1
    rank = lists.whole.hits.rank
    in_pool = pool.number[pool.gain > 0] - 1
    n_judged = known.number[known.gain > 0] - 1
    estimate = 1 / rank + in_pool / rank * (r + EPSILON) / (n_judged + 2 * EPSILON)
    return ratio(lists.sum(estimate, lists.whole.hits), lists.n_true)


@metric(cut=False)
def iprecision(
    lists: Lists,
    *,
    at: Annotated[float, a_number(0, 1)] | Literal["11pt"] = 0.0,
    rounding: Literal["up", "trec9", "nearest"] = "up",
) -> ndarray:
    """Interpolated precision at a level of recall; larger is better, in [0, 1].

    Formula
    -------
    max {P@i : the first i items have at least max(1, c) hits}, 0 if no rank has so many, where P@i
    is the share of hits in ranks 1 to i and c is at·n rounded, n = n_true. The whole list counts; k
    is ignored. Undefined for n = 0.

    Parameters
    ----------
    at : float in [0, 1] or "11pt", default 0
        Level of recall. "11pt": the mean over the levels 0, 0.1, ..., 1.
    rounding : {"up", "trec9", "nearest"}, default "up"
        How at·n becomes a number of hits. "up": ⌈at·n⌉. "trec9": ⌊at·n + 0.9⌋, as in trec_eval 9
        and ranx. "nearest": ⌊at·n + 0.5⌋, as in trec_eval 10.

    Notes
    -----
    Use it to draw a curve of precision over recall, or with `at="11pt"` as the classical summary of
    that curve. The interpolation takes the best precision at this recall or any higher one, so it
    never falls below the true curve. Do not use it for lists of ten items, whose curve has few
    points; take `mapr`. Libraries round at·n differently.

    References
    ----------
    Manning, Raghavan, Schütze (2008), section 8.4; trec_eval `iprec_at_recall`, `11pt_avg`.

    Examples
    --------
    >>> true, pred = {"u": ["a", "b"]}, {"u": ["a", "x", "b"]}
    >>> [round(rd.iprecision(true, pred, at=at), 4) for at in (0, 0.5, 1)]
    [1.0, 1.0, 0.6667]
    """
    hits = lists.whole.hits
    n = lists.n_true
    best = np.append(hits.from_all(_best_precision_from), 0.0)
    heads = np.flatnonzero(hits.number == 1)
    first = np.zeros(len(lists), np.int64)
    total = np.zeros(len(lists))
    first[hits.list[heads]] = heads
    levels = LEVELS if at == "11pt" else (at,)
    for level in levels:
        exact = level * n
        needed = {
            "up": np.ceil(exact - 1e-9),
            "trec9": np.floor(exact + 0.9),
            "nearest": np.floor(exact + 0.5),
        }
        number = np.maximum(needed[rounding], 1).astype(np.int64)
        total += best[np.where(number <= lists.whole.n_hits, first + number - 1, len(hits))]
    return np.where(n > 0, total / len(levels), np.nan)


def _best_precision_from(hits: Hits) -> ndarray:
    """Largest precision at the rank of each hit or of a later hit of its list."""
    precisions, code = np.unique(hits.number / hits.rank, return_inverse=True)
    # Codes are whole numbers, so that a step from list to list keeps them exact.
    step = np.cumsum((hits.number == 1)[::-1]) - (hits.number == 1)[::-1]
    highest = np.maximum.accumulate(code[::-1] + step * len(precisions))[::-1]
    return precisions[highest % len(precisions)]
