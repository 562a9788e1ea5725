"""Order among all items of a list: pairs of items in the right order, and how far down the relevant
ones stand."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...errors import OptionError
from ...inputs.sorting import distinct, run_heads, spans
from ...matching.hits import quotient
from ...matching.lists import Lists
from ..metric import metric
from ..subtopics import n_earlier
from .preference import LOST, misses_before, tied_runs


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
        right, possible = _of_judged(lists, gain)
        return quotient(right, possible, pooled)
    n_hits, misses = lists.n_hits, lists.n_shown - lists.n_hits
    right, possible = n_hits * misses - misses_before(lists, tied), n_hits * misses
    if gain == "linear" and not lists.matched.true_lists.constant_gain:
        pairs = lists.matched.derived("pairs of hits", lambda: _of_hits(lists.whole))
        wrong, equal, unequal = (one[lists.whole.hits.rank <= lists.cut] for one in pairs)
        right = right + lists.sum(unequal - wrong - equal * LOST[tied])
        possible = possible + lists.sum(unequal)
    return quotient(right, possible, pooled)


def _of_hits(lists: Lists) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the hits above each hit: of less gain and more score, of other gain and equal score, of
    other gain."""
    hits = lists.hits
    wrong, unequal = _earlier_pairs(hits.list, -hits.gain)
    first, last = tied_runs(lists, hits)
    several, equal = np.flatnonzero(first < last), np.zeros_like(wrong)
    wrong_tied, equal[several] = _earlier_pairs(first[several], -hits.gain[several])
    wrong[several] -= wrong_tied
    return wrong, equal, unequal


def _of_judged(lists: Lists, gain: str) -> tuple[np.ndarray, np.ndarray]:
    """Count the right and the possible pairs of judged items."""
    true, judged = lists.matched.true_lists, lists.judged
    length, start = lists.n_judged, np.append(true.start[:-1], 0)[lists.matched.true_list]
    of, rows = np.repeat(np.arange(len(lists)), length), spans(start, length)
    gains = (true.gain > 0 if gain == "binary" else true.gain)[rows]
    rank = np.full(len(rows), np.inf)
    rank[(np.cumsum(length) - length - start)[judged.list] + judged.true_place] = judged.rank
    order = np.lexsort(
        (gains, rank, of)
    )  # items that are not shown follow by ascending gain: no pair of them is right
    counts = _earlier_pairs(of[order], gains[order])
    right, unequal = (np.bincount(of[order], one, len(lists)) for one in counts)
    return right, unequal


def _earlier_pairs(group: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each entry, the number of earlier entries of its group with a larger gain, and with
    another gain."""
    code = np.searchsorted(distinct(gain), gain)
    n_codes = int(code.max(initial=0)) + 1
    larger = np.zeros(len(code), np.int64)
    for bit in range(
        n_codes.bit_length() - 1, -1, -1
    ):  # pairs whose codes first differ at this bit
        order = np.lexsort((code >> (bit + 1), group))
        one, heads = (code[order] >> bit) & 1, run_heads([group[order], code[order] >> (bit + 1)])
        before = np.cumsum(one) - one
        before -= np.repeat(before[heads], np.diff(np.append(heads, len(one))))
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
    whole, n = lists.whole, lists.n_candidates
    lacking = ((lists.n_pred - 1) / n + 1) / 2 if unshown == "middle" else 1.0
    total = (whole.sum_hits(_rank_there) - whole.n_hits) / n + (
        lists.n_true - whole.n_hits
    ) * lacking
    return quotient(np.where(lists.n_true > 0, total, 0.0), lists.n_true, pooled)


def _rank_there(hits: Any) -> np.ndarray:
    found: np.ndarray = hits.rank.astype(np.float64)
    return found
