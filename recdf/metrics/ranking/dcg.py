"""Discounted cumulative gain: the sum of the gains of the hits, where a gain counts less at a lower
place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from numpy import ndarray

from ...docstrings import says_as
from ...errors import DataError, OptionError, examples
from ...inputs.constraints import Share, a_number
from ...matching.hits import Hits, ratio, running
from ...matching.lists import Lists
from ..metric import NOT_NEGATIVE, metric
from ..relevance import refuse
from .preference import tied_ranks

Gain = Literal["linear", "exp2", "binary"]
Discount = Literal["log", "jk", "none"]
AnyDiscount = str | Callable[[int], float]

RANKS_AT_A_TIME = 2**20
RANKS_ADDED = 2**16  # beyond these ranks, the sum of discounts is computed as an integral

LARGEST_EXPONENT = 900  # above this, 2^g or a sum of such numbers is infinite


def gain_values(kind: str, gain: ndarray) -> ndarray:
    if kind == "exp2":
        refuse_above(LARGEST_EXPONENT, gain, "⟦gain=exp2⟧")
        return np.exp2(gain) - 1
    return (gain > 0).astype(np.float64) if kind == "binary" else gain


def refuse_above(most: float, gain: ndarray, said: str) -> None:
    """Raise if a gain is larger than a formula takes."""
    if (above := gain[gain > most]).size:
        raise DataError(
            f"{said} takes gains in [0, {most:g}]; true has {examples(above)}: scale the relevance "
            "column"
        )


def largest_gain(lists: Lists, max_gain: float | None, name: str) -> float:
    """Return the gain that counts 1: `max_gain`, or the largest one of `true`."""
    gains = lists.matched.true_lists.gain
    if max_gain is None:
        return float(gains.max(initial=0.0))
    top = float(max_gain)
    refuse_above(top, gains, f"{name} with ⟦max_gain={top}⟧")
    return top


def discounts_of(kind: AnyDiscount, log_base: float, rank: ndarray) -> ndarray:
    """Discount of each of some ranks; a function is called once for each rank up to the last."""
    return _weights(kind, log_base, np.arange(1, int(rank.max(initial=0)) + 1))[rank - 1]


def sum_of_discounts(kind: AnyDiscount, log_base: float, k: int) -> float:
    """Sum of the discounts of ranks 1 to k. There may be too many ranks to add one by one.

    Beyond the first ranks, discounts are a smooth function of the rank, and their sum is the
    integral of that function. What it lacks is below 1e-12 of the sum.
    """
    if callable(kind):  # any function: it has to be called for every rank
        parts = (
            np.arange(first, min(first + RANKS_AT_A_TIME, k + 1))
            for first in range(1, k + 1, RANKS_AT_A_TIME)
        )
        return math.fsum(float(np.sum(_weights(kind, log_base, ranks))) for ranks in parts)
    flat = {"none": k, "jk": int(min(log_base, k)), "log": 0}[
        kind
    ]  # so many first ranks have the discount 1
    head = min(k, flat + RANKS_ADDED)
    first = flat + float(np.sum(_weights(kind, log_base, np.arange(flat + 1, head + 1))))
    if head == k:
        return first
    # Each rank stands for the integral from half a rank above to half a rank below it. The integral
    # of 1 / ln x is that of exp(u) / u over u = ln x, by Gauss and Legendre.
    shift = 0.5 + (kind == "log")  # disc(i) = ln b / ln(i + 1) for "log"
    low, high = math.log(head + shift), math.log(k + shift)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    u = low + (high - low) * (nodes + 1) / 2
    integral = float(np.sum(weights * np.exp(u) / u)) * (high - low) / 2
    return first + math.log(log_base) * integral


def _weights(kind: AnyDiscount, log_base: float, ranks: ndarray) -> ndarray:
    """Discount of each rank."""
    if callable(kind):
        return np.array([kind(i) for i in ranks.tolist()], dtype=np.float64)
    if kind == "none":
        return np.ones(len(ranks))
    logs: ndarray = np.log2(ranks + (kind == "log")) / np.log2(log_base)
    return 1 / (logs if kind == "log" else np.maximum(1, logs))


def as_key(discount: AnyDiscount) -> AnyDiscount:
    """The same discount in a form that can be a key of a dictionary: a callable object may not be
    hashable."""
    return discount if isinstance(discount, str) else getattr(discount, "__call__")  # noqa: B004, B009


def _discounted(hits: Hits, gain: str, discount: AnyDiscount, log_base: float) -> ndarray:
    discounts = discounts_of(discount, log_base, hits.rank)
    return discounts if gain == "binary" else gain_values(gain, hits.gain) * discounts


def _dcg(lists: Lists, gain: str, discount: AnyDiscount, log_base: float, tied: str) -> ndarray:
    """DCG of the list. A hit counts its gain times 1/propensity where there are propensities.

    With `tied` "averaged" each hit of the whole list has the mean discount of all ranks of its
    score; ranks beyond k have 0.
    """
    averaged = tied != "ranked" and lists.matched.tie_level is not None
    if lists.item_weights is None and not averaged:
        return lists.sum_hits(_discounted, gain, as_key(discount), log_base)
    hits = lists.whole.hits if averaged else lists.hits
    worth = gain_values(gain, hits.gain)
    if lists.item_weights is not None:
        worth = worth * lists.item_weights[hits.true_place]
    if not averaged:
        return lists.sum(worth * discounts_of(discount, log_base, hits.rank))
    top, bottom = tied_ranks(lists.whole, hits)
    ranks = np.arange(1, min(lists.k, int(bottom.max(initial=0))) + 1)
    total = np.append(0.0, np.cumsum(discounts_of(discount, log_base, ranks)))
    upto = total[np.minimum(bottom, lists.k)] - total[np.minimum(top - 1, lists.k)]
    return lists.sum(worth * upto / (bottom - top + 1), hits)


def ideal_dcg(lists: Lists, gain: str, discount: AnyDiscount, log_base: float) -> ndarray:
    """DCG at k of all relevant items by descending gain, or gain times 1/propensity."""
    how = as_key(discount), log_base
    if lists.item_weights is None:
        return lists.sum_ideal(_discounted, gain, *how)
    worth = gain_values(gain, lists.matched.true_lists.gain) * lists.item_weights
    return lists.sum_best(worth, _discounted, "linear", *how)


def _upto(lists: Lists, values: ndarray) -> tuple[ndarray, ndarray]:
    """Return running sums over the entries of the ideal lists, and for each list the place before
    its first one."""
    true = lists.matched.true_lists
    place = lists.matched.of_true(np.cumsum(true.n_relevant) - true.n_relevant) - 1
    return running(np.add, true.ideal.rank, values), place


def _mean_ndcg(
    lists: Lists, gain: str, discount: AnyDiscount, log_base: float, average: str
) -> ndarray:
    """Mean of DCG/IDCG of the whole list at several ranks: those of its hits, or those where the
    ideal gain falls."""
    whole, hits, n, true = lists.whole, lists.whole.hits, lists.n_true, lists.matched.true_lists
    discounted = _discounted(hits, gain, discount, log_base)
    ideal = true.ideal
    best, place = _upto(lists, _discounted(ideal, gain, discount, log_base))
    at_end = ratio(whole.sum(discounted), ideal_dcg(whole, gain, discount, log_base))
    if average == "hits":
        upto = (
            running(np.add, hits.number, discounted)
            / best[place[hits.list] + np.minimum(hits.rank, n[hits.list])]
        )
        return ratio(whole.sum(upto) + (n - whole.n_hits) * at_end, n)
    gains = gain_values(gain, ideal.gain)
    falls = np.append(gains[1:] != gains[:-1], True)[: len(gains)] | (
        ideal.rank == true.n_relevant[ideal.list]
    )
    # DCG at a rank is the sum of the hits above it, so that each hit counts in all ranks from its
    # own on.
    parts = falls / best
    upto = running(np.add, ideal.rank, parts)
    from_here = upto[np.cumsum(true.n_relevant)[ideal.list] - 1] - upto + parts
    near = hits.rank <= n[hits.list]
    counted = discounted[near] * from_here[place[hits.list[near]] + hits.rank[near]]
    n_ranks = lists.matched.of_true(np.bincount(ideal.list, falls, len(true.n_relevant)))
    longer = whole.n_pred > n + 1
    total = whole.sum(counted, hits.where(near)) + np.where(longer, at_end, 0.0)
    return ratio(total, np.where(n > 0, n_ranks + longer, 0))


@metric(optional=("propensity",))
def ndcg(
    lists: Lists,
    *,
    gain: Gain = "linear",
    discount: Discount | Callable[[int], float] = "log",
    log_base: Annotated[float, a_number(above=1)] = 2,
    ideal: Literal["relevant", "k", "shown", "listed"] = "relevant",
    tied: Literal["ranked", "averaged"] = "ranked",
    average: Literal["none", "hits", "levels"] = "none",
) -> ndarray:
    """Discounted gain of the list over that of the ideal list; larger is better, in [0, 1].

    Formula
    -------
    DCG / IDCG, DCG = Σ_{i ≤ k} gain(g_i) · disc(i), where g_i is the gain of the item at rank i, 0
    for a miss, and IDCG is the same sum over the ideal list. With `propensity_col`, both have
    gain(g_i) · v_i in place of gain(g_i), where v = 1/max(propensity, propensity_floor); the ideal
    list then begins with the largest products.

    Parameters
    ----------
    gain : {"linear", "exp2", "binary"}, default "linear"
        "linear": gain(g) = g. "exp2": gain(g) = 2^g − 1. "binary": gain(g) = 1 for g > 0.
    discount : {"log", "jk", "none"} or function, default "log"
        "log": disc(i) = 1/log_b(i + 1). "jk": disc(i) = 1/max(1, log_b i), so that ranks up to b
        are not discounted. "none": disc(i) = 1. A function takes the rank and returns the discount.
    log_base : float, default 2
        Base b of the logarithm.
    ideal : {"relevant", "k", "shown", "listed"}, default "relevant"
        The ideal list. "relevant": the best min(k, n_true) relevant items; undefined without any.
        "k": k items of gain 1, which needs gains in [0, 1] or `gain="binary"`. "shown": the first k
        items in their best order; 0 where a list with relevant items has no hit. "listed": the best
        k items of the whole list; 0 where it has no hit. With `propensity_col` only "relevant" is
        possible.
    tied : {"ranked", "averaged"}, default "ranked"
        "ranked": equal scores have the ranks that the option `ties` gives them. "averaged": they
        share the mean discount of their ranks.
    average : {"none", "hits", "levels"}, default "none"
        "none": the value at k. The others are means of DCG/IDCG over ranks of the whole list, and k
        is ignored: "hits" over the ranks of all n_true relevant items, where those that are not
        recommended stand at the end of the list; "levels" over the last rank of each gain in the
        ideal list, and over the end of a list of more than n_true + 1 items. They take only
        ideal="relevant" and tied="ranked".

    Notes
    -----
    Use it as the general measure of a ranked list. It uses graded relevance and ranks, and the best
    order of the relevant items has the value 1. Each list is divided by its own ideal, so the
    amount of gain is lost; `dcg` and `revenue` keep it. The discount falls slowly: rank 10 still
    has 29 % of the weight of rank 1. This is too much for users who look at two or three items, for
    whom `mrr` and `rbp` are better. Libraries differ in gain, discount and ideal, so name them when
    you report the number.

    References
    ----------
    Järvelin & Kekäläinen (2002), ACM TOIS 20(4); trec_eval `ndcg_cut`, and `ndcg_rel` and `Rndcg`
    for the averages over hits and levels; McSherry & Najork (2008), ECIR, for ties.

    Examples
    --------
    >>> round(rd.ndcg({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, k=3), 6)
    0.919721
    """
    if ideal == "shown" and tied == "averaged":
        raise OptionError(
            '⟦tied="averaged"⟧ credits items below rank k, which ⟦ideal="shown"⟧ leaves out; take '
            '⟦+ideal="listed"⟧'
        )
    if average != "none" and (ideal != "relevant" or tied != "ranked"):
        raise OptionError(
            f'⟦average={average!r}⟧ takes only ⟦+ideal="relevant"⟧ and ⟦+tied="ranked"⟧'
        )
    if lists.item_weights is not None:
        refuse("average", average, ("none",))
        refuse("ideal", ideal, ("relevant",))
    if average != "none":
        return _mean_ndcg(lists, gain, discount, log_base, average)
    if ideal == "k" and gain != "binary":
        refuse_above(1, lists.matched.true_lists.gain, 'ndcg with ⟦+ideal="k"⟧')
    total = _dcg(lists, gain, discount, log_base, tied)
    if ideal == "k":
        # An item of gain 1 counts 1 by every rule of gain, so the ideal is the sum of the
        # discounts.
        return total / sum_of_discounts(discount, log_base, lists.k)
    if ideal == "relevant":
        best = ideal_dcg(lists, gain, discount, log_base)
    else:
        # The hits of each list by descending gain; lists stay where they are.
        hits = lists.whole.hits if ideal == "listed" else lists.hits
        order = np.lexsort((-hits.gain, np.cumsum(hits.number == 1)))
        worth = gain_values(gain, hits.gain[order])
        worth = worth * discounts_of(discount, log_base, hits.number)
        best = lists.sum(np.where(hits.number <= lists.k, worth, 0.0), hits)
        best = np.where((best == 0) & ((lists.n_true > 0) | (ideal == "listed")), np.inf, best)
    return ratio(total, best)


@metric(bounds=NOT_NEGATIVE, better=None)
@says_as(ndcg)
def dcg(
    lists: Lists,
    *,
    gain: Gain = "linear",
    discount: Discount | Callable[[int], float] = "log",
    log_base: Annotated[float, a_number(above=1)] = 2,
    tied: Literal["ranked", "averaged"] = "ranked",
    of: Literal["list", "ideal"] = "list",
) -> ndarray:
    """Discounted gain of the list; larger is better within one list, at least 0.

    Formula
    -------
    Σ_{i ≤ k} gain(g_i) · disc(i), where g_i is the gain of the item at rank i, 0 for a miss.

    Parameters
    ----------
    {gain, discount, log_base, tied}
    of : {"list", "ideal"}, default "list"
        "ideal": the sum over the best min(k, n_true) relevant items, which is the largest value
        that a list can reach.

    Notes
    -----
    Use it when the amount of gain matters, for instance as a sum over sessions. Do not compare
    users by it: a user with more or better relevant items can reach more. `ndcg` removes this
    difference.

    References
    ----------
    Järvelin & Kekäläinen (2002), ACM TOIS 20(4); trec_eval `ideal_dcg` for of="ideal".

    Examples
    --------
    >>> rd.dcg({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, k=3)
    1.5
    """
    if of == "list":
        return _dcg(lists, gain, discount, log_base, tied)
    if tied != "ranked":
        raise OptionError(
            f'⟦tied={tied!r}⟧ has no meaning with ⟦of="ideal"⟧, whose order no score gives'
        )
    return ideal_dcg(lists, gain, discount, log_base)


@metric(cut=False)
@says_as(ndcg)
def normalized_gain(lists: Lists, *, gain: Gain = "linear") -> ndarray:
    """Gain of the hits, less where more gain was possible above; larger is better, in [0, 1]. k is
    ignored.

    Formula
    -------
    Σ_i gain(g_i) / log2(2 + Σ_{j ≤ i} max(1, b_j) − Σ_{j ≤ i} gain(g_j)), over the sum of the gains
    of all relevant items, where g_i is the gain of the item at rank i, 0 for a miss, and b_j the
    j-th largest gain of a relevant item, 0 after n_true. Undefined for n_true = 0.

    Notes
    -----
    Use it in place of `ndcg` where a list should not lose for ranks that no better item could have
    taken: the discount grows only with the gain that was missed so far. It is little known, so
    report `ndcg` beside it. Do not use it for a fixed number of places, since it reads the whole
    list.

    References
    ----------
    trec_eval `G`, and `binG` for gain="binary".

    Examples
    --------
    >>> round(rd.normalized_gain({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}), 6)
    0.815465

    Parameters
    ----------
    {gain}
    """
    whole = lists.whole
    n = lists.n_true
    true = lists.matched.true_lists
    hits = whole.hits
    values = gain_values(gain, whole.hits.gain)
    possible, place = _upto(lists, np.maximum(gain_values(gain, true.ideal.gain), 1.0))
    n_best = np.minimum(hits.rank, n[hits.list])
    missed = (
        possible[place[hits.list] + n_best]
        + hits.rank
        - n_best
        - running(np.add, hits.number, values)
    )
    return ratio(
        whole.sum(values / np.log2(2 + missed)), lists.sum_true(gain_values(gain, true.gain))
    )


@metric
def rbp(
    lists: Lists,
    *,
    p: Share = 0.8,
    gain: Literal["linear", "binary"] = "linear",
    normalize: Literal["endless", "achievable"] = "endless",
) -> ndarray:
    """Rank-biased precision: gain for a user who goes on with probability p; larger is better, in
    [0, 1].

    Formula
    -------
    Σ_{i ≤ k} g_i p^(i−1) / d, where g_i is the gain of the item at rank i, in [0, 1] and 0 for a
    miss, and d = 1/(1 − p) is the sum of p^(i−1) over all ranks.

    Parameters
    ----------
    p : float in (0, 1), default 0.8
        Persistence: probability of looking at the next rank.
    gain : {"linear", "binary"}, default "linear"
        "linear": gains as they are, which must be at most 1. "binary": 1 for every relevant item.
    normalize : {"endless", "achievable"}, default "endless"
        "endless": d as above. "achievable": d is the sum over the first min(k, n_pred, n_true)
        ranks, so that every list can reach 1; undefined for n_true = 0, and 0 for a list without
        recommendations.

    Notes
    -----
    Use it for a user who goes down the list and stops after each item with probability 1 − p: p =
    0.5 is an impatient user, 0.95 a patient one. Choose p from the behaviour of your users before
    you look at the results, because the order of models can depend on it. It is not normalized: k
    hits give 1 − p^k, and a user with few relevant items stays far below 1.

    References
    ----------
    Moffat & Zobel (2008), ACM TOIS 27(1); LensKit `RBP(normalize=True)` for "achievable".

    Examples
    --------
    >>> round(rd.rbp({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, k=3, p=0.5), 6)
    0.625
    """
    hits = lists.hits
    if gain == "linear":
        refuse_above(1, lists.matched.true_lists.gain, "rbp")
    weights = p ** np.arange(float(hits.rank.max(initial=0)))
    total = (1 - p) * lists.sum(gain_values(gain, hits.gain) * weights[hits.rank - 1])
    if normalize == "endless":
        return total
    found = ratio(total, 1 - p ** np.minimum(lists.n_true, lists.n_shown))
    return np.where((lists.n_true > 0) & (lists.n_shown == 0), 0.0, found)
