"""Two lists: how alike are a list and the baseline's list for the same key (`base=`), or the best
list there can be?

The baseline is ranked by the same rules as `pred`. It may be the list of another system, or the
list before it was re-ranked.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy import ndarray

from ..errors import OptionError
from ..inputs.constraints import Positive, Share
from ..inputs.sorting import equal_runs, run_of, spans
from ..matching.hits import ratio
from ..matching.lists import Lists
from ..matching.pairing import pair_within
from .metric import NOT_NEGATIVE, metric

SharedItems = tuple[ndarray, ndarray, ndarray]


def n_of_base(lists: Lists) -> ndarray:
    """Number of items in the baseline's list for each list."""
    base = lists.sides.base
    return np.append(np.diff(base.start), 0)[base.list_base]


def shared_with_base(lists: Lists) -> SharedItems:
    """Return the items that both whole lists have: the list, the rank in it, and the rank in the
    baseline's list."""
    return lists.whole.once_of_pred(_shared)


def _shared(lists: Lists) -> SharedItems:
    matched = lists.matched
    length = n_of_base(lists)
    base = matched.sides.base
    start = np.append(base.start[:-1], 0)[base.list_base]
    pairs = pair_within(
        matched.item, matched.start, matched.n_pred, base.item, start, length, matched.n_items
    )
    of_row = np.empty(len(matched.item), np.int64)
    of_row[spans(matched.start, matched.n_pred)] = run_of(matched.n_pred)
    order = np.argsort(pairs.place)
    place = pairs.place[order]
    base_place = pairs.sought[order]
    of_list = of_row[place]
    return of_list, place - matched.start[of_list] + 1, base_place - start[of_list] + 1


def _shared_with_ideal(lists: Lists, unshown: str) -> SharedItems:
    """The same for the ideal list: the relevant items, largest gain first, and those of equal gain
    in their own order.

    Among those of equal gain, relevant items that are not recommended stand first or last, as
    `unshown` says.
    """
    true = lists.matched.true_lists
    hits = lists.hits
    head, n_level = equal_runs(true.key, true.gain)
    above = (head - true.start[true.key])[hits.true_place]  # relevant items of larger gain
    order = np.lexsort((above, hits.list))
    head, n_shown = equal_runs(hits.list[order], above[order])
    other = np.empty(len(order), np.int64)
    other[order] = np.arange(1, len(order) + 1) - head
    if unshown == "first":
        other[order] += n_level[hits.true_place[order]] - n_shown
    return hits.list, hits.rank, above + other


@metric(
    better=None,
    optional=("true", "base"),
    where={"against=ideal": {"better": "larger"}},
)
def rbo(
    lists: Lists,
    *,
    p: Share = 0.9,
    against: Literal["base", "ideal"] = "base",
    normalize: bool = False,
    unshown: Literal["last", "first"] = "last",
) -> ndarray:
    """Rank-biased overlap, how alike the tops of two rankings are; neither direction is better, in
    [0, 1].

    Formula
    -------
    Σ_{d ≤ D} p^(d−1) |R_d ∩ B_d| / d, divided by Σ_{d ≤ D} p^(d−1), where R_d and B_d are the sets
    of the first d items of the list and of the baseline's list with the same key, and D = k. A list
    that ends before d keeps its items. Undefined if both lists are empty.

    Parameters
    ----------
    p : float, default 0.9
        In (0, 1): the weight of depth d + 1 over that of depth d. The first 1 / (1 − p) ranks
        matter most.
    against : {"base", "ideal"}, default "base"
        "base": B is the baseline's list. "ideal": B are the relevant items, largest gain first, and
        those of equal gain in the order of the list itself; D is the larger length of both whole
        lists, and k is ignored. Larger is better then, and a list without relevant items is
        undefined.
    normalize : bool, default False
        With `against="ideal"`: divide by the overlap of the ideal list with itself, so that the
        best list has 1.
    unshown : {"last", "first"}, default "last"
        With `against="ideal"`: where relevant items that are not recommended stand among those of
        equal gain.

    Notes
    -----
    Use it to see how far a new system, or a re-ranking, changes what users see at the top: 1 is the
    same order, 0 no common item. It does not say which of the lists is better. With
    `against="ideal"` it is the compatibility of a list with judgements of any number of grades;
    then read it like `ndcg`. `overlap` ignores the ranks.

    References
    ----------
    Webber, Moffat & Zobel (2010), ACM TOIS 28(4), cut at D; LensKit `rank_biased_overlap` has p =
    0.85. Clarke, Vtyurina & Smucker (2020), CIKM: `Compat` of ir_measures is against="ideal",
    normalize=True, p = 0.95. It gives items that are not recommended the score 0, so with negative
    scores, such as negative ranks, it has unshown="first".

    Examples
    --------
    >>> rd.rbo(None, {"u": ["a", "b"]}, k=2, base={"u": ["b", "a"]}, p=0.5).__round__(4)
    0.3333
    """
    if against == "base":
        if normalize or unshown != "last":
            given = "normalize=True" if normalize else f"unshown={unshown!r}"
            raise OptionError(f'⟦{given}⟧ is about the ideal list; pass ⟦+against="ideal"⟧')
        of_list, rank, other = shared_with_base(lists)
        depth = np.full(len(lists), lists.k)
        n_ideal = lists.n_shown + n_of_base(lists)
    else:
        lists.matched.needs_true('or ⟦against="base"⟧')
        of_list, rank, other = lists.whole.once(_shared_with_ideal, unshown)
        depth = np.maximum(lists.n_pred, lists.n_true)
        n_ideal = lists.n_true
    # An item adds p^(d−1)/d at every depth from the larger of its two ranks on; deep down that is
    # nothing.
    deepest = min(int(depth.max(initial=0)), int(np.ceil(-50 / np.log(p))))
    depths = np.arange(1, deepest + 1)
    upto = np.concatenate([[0.0], np.cumsum(p ** (depths - 1) / depths)])
    last = np.maximum(rank, other)
    whole = upto[np.minimum(depth, deepest)]
    added = whole[of_list] - upto[np.minimum(last - 1, deepest)]
    total = np.bincount(of_list, np.where(last <= depth[of_list], added, 0.0), len(lists))
    best = -np.expm1(depth * np.log(p)) / (1.0 - p)
    if normalize:
        best = -np.expm1(n_ideal * np.log(p)) / (1.0 - p) + n_ideal * (
            whole - upto[np.minimum(n_ideal, deepest)]
        )
    return np.where(n_ideal > 0, ratio(total, best), np.nan)


@metric(better=None, arguments=("base", "pred"))
def overlap(
    lists: Lists,
    *,
    base_k: Positive | None = None,
    divisor: Literal["shown", "base", "union"] = "shown",
) -> ndarray:
    """Share of the recommended items that a baseline recommends too; neither direction is better,
    in [0, 1].

    Formula
    -------
    |R ∩ B| / d, where R is the set of the first k items, B the set of the first `base_k` items of
    the baseline's list with the same list key, and d is the divisor. Undefined for d = 0.

    Parameters
    ----------
    base_k : int, optional
        Cut-off of the baseline's list. By default it is k.
    divisor : {"shown", "base", "union"}, default "shown"
        "shown": d = |R|. "base": d = |B|. "union": d = |R ∪ B|, the Jaccard similarity of both
        lists.

    Notes
    -----
    Use it to see how much of what users see would stay with another system; with a large `base_k`,
    how much of a re-ranked list comes from the top of the first ranking. It ignores ranks, which
    `rbo` does not, and relevance.

    References
    ----------
    RecTools `Intersection`. With the default options it is 1 − `unexpectedness`.

    Examples
    --------
    >>> rd.overlap({"u": ["a", "b", "c"]}, {"u": ["b", "c"]}, k=2)
    0.5
    >>> rd.overlap({"u": ["a", "b", "c"]}, {"u": ["b", "c"]}, k=2, base_k=3)
    1.0
    """
    base_cut = lists.k if base_k is None else base_k
    of_list, rank, other = shared_with_base(lists)
    both = np.bincount(of_list[(rank <= lists.k) & (other <= base_cut)], minlength=len(lists))
    n_base = np.minimum(n_of_base(lists), base_cut)
    below = {"shown": lists.n_shown, "base": n_base, "union": lists.n_shown + n_base - both}
    return ratio(both, below[divisor])


@metric(bounds=NOT_NEGATIVE, better=None, arguments=("base", "pred"))
def least_promoted(lists: Lists) -> ndarray:
    """From how far below k a re-ranking fetched its deepest item; neither direction is better, a
    count, at least 0.

    Formula
    -------
    max(0, r − k), where r is the largest rank, in the whole list of the baseline, of an item in the
    first k. Items that the baseline does not have are left out. Undefined where either list is
    empty.

    Notes
    -----
    Use it for a re-ranking, with the list before it as `base`: how many candidates below k must be
    fetched for it to do what it does. One item decides the value, so look at its quantiles over
    lists; `overlap` says how many came up.

    References
    ----------
    LensKit `least_item_promoted`, which counts ranks from 0, so that its values above 0 are 1 less.

    Examples
    --------
    >>> rd.least_promoted({"u": ["a", "b", "c", "d"]}, {"u": ["a", "d"]}, k=2)
    2.0
    """
    of_list, rank, other = shared_with_base(lists)
    shown = rank <= lists.k
    deepest = np.zeros(len(lists))
    np.maximum.at(deepest, of_list[shown], other[shown])
    return np.where(
        (lists.n_shown > 0) & (n_of_base(lists) > 0), np.maximum(deepest - lists.k, 0.0), np.nan
    )
