"""Novelty: how unexpected are the recommended items, compared with a log of the past?

Recommended items that the log does not have are counted in `spec["counts"]`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from numpy import ndarray

from ..docstrings import says_as
from ..errors import OptionError
from ..inputs.sorting import place_in_run, run_of, spans
from ..matching.counts import discount_at
from ..matching.hits import ratio
from ..matching.lists import Lists
from ..matching.side_tables.catalogue import Head, TailSize
from .metric import NOT_NEGATIVE, metric
from .two_lists import shared_with_base

ShareOf = Literal["users", "events"]
BY_LOG: dict[str, Any] = {"arguments": ("log", "pred"), "unknown": ("log",)}
HEAD = 0.8  # the share of the interactions that the head holds by default


@metric(
    better=None,
    aliases=("arp",),
    **BY_LOG,
    where={"unit=count": {"bounds": NOT_NEGATIVE}},
)
def popularity(
    lists: Lists,
    *,
    share_of: ShareOf = "users",
    unit: Literal["share", "count", "rank"] = "share",
    divisor: Literal["shown", "known"] = "shown",
) -> ndarray:
    """Mean popularity of the recommended items; neither direction is better, in [0, 1].

    Formula
    -------
    Σ_i p(i) / d over the first k items, where p(i) is the share of the users of `log` who have item
    i, 0 for an item that is not in the log, and d is the divisor. Undefined for a list where d = 0.

    Parameters
    ----------
    share_of : {"users", "events"}, default "users"
        "users": p(i) is a share of users. "events": it is a share of interactions.
    unit : {"share", "count", "rank"}, default "share"
        "share": p(i) as above. "count": the number of users or interactions, which is at least 0.
        "rank": the rank of item i by that number, from the smallest, over the number of items in
        the log, so that the most popular item has 1; equal items share the mean of their ranks.
    divisor : {"shown", "known"}, default "shown"
        "shown": d = min(k, n_pred). "known": d is the number of the first k items that the log has.

    Notes
    -----
    Use it to describe a model: a list of bestsellers has the largest value. Neither direction is
    better, because popular items are often relevant. A few bestsellers can dominate the mean. The
    value depends on the log, so use the same log for all models.

    References
    ----------
    Yin et al. (2012), PVLDB 5(9); Abdollahpouri et al. (2017), RecSys. ARP of RecBole and elliot
    has unit="count" of "events", LensKit `MeanPopRank` unit="rank".

    Examples
    --------
    >>> rd.popularity({1: ["a", "b"], 2: ["b"]}, {1: ["b"], 2: ["a"]}, k=2)
    0.75
    """
    log = lists.sides.log
    of = {"share": log.share, "rank": log.rank_share, "count": log.count}[unit]
    return _mean_over(lists, of(share_of).astype(np.float64), divisor)


def _mean_over(lists: Lists, per_item: ndarray, divisor: str) -> ndarray:
    """Mean over the items shown of each list, or over those that the log has."""
    if divisor != "known":
        return lists.mean_shown(per_item, divisor)
    known = (lists.sides.log.count("events") > 0) * 1.0
    return ratio(lists.mean_shown(per_item * known), lists.mean_shown(known))


@metric(bounds=NOT_NEGATIVE, aliases=("novelty", "miuf"), **BY_LOG)
def surprisal(
    lists: Lists,
    *,
    share_of: ShareOf = "users",
    normalize: bool = False,
    divisor: Literal["shown", "k", "known"] = "shown",
) -> ndarray:
    """Mean self-information of the recommended items, in bits; larger is better, at least 0.

    Formula
    -------
    Σ_i −log2 p(i) / d over the first k items, where p(i) is the share of the N users of `log` who
    have item i, and d is the divisor. An item that is not in the log counts as if one user had it,
    so its term is log2 N.

    Parameters
    ----------
    share_of : {"users", "events"}, default "users"
        "users": p(i) is a share of users, and N is their number. "events": p(i) is a share of
        interactions, and N is the number of interactions.
    normalize : bool, default False
        Divide by log2 N, so that values lie in [0, 1]; undefined for N = 1.
    divisor : {"shown", "k", "known"}, default "shown"
        "shown": d = min(k, n_pred). "k": d = k. "known": d is the number of the first k items that
        the log has, and the others add nothing. Undefined for a list where d = 0.

    Notes
    -----
    Use it to see how far a list is from the bestsellers. The scale is logarithmic, so differences
    inside the long tail count. Random recommendations have a large value, so read it beside a
    metric of accuracy. It depends on the size of the log, so use the same log for all models, or
    `normalize=True`.

    References
    ----------
    Zhou et al. (2010), PNAS 107(10). The default equals `MeanInvUserFreq` of RecTools.
    normalize=True with divisor="k" equals `Surprisal` of RePlay. `novelty` of recommenders is like
    share_of="events", but there items that are not in the log add nothing, and the mean is over all
    rows. `Novelty` of evidently has divisor="known".

    Examples
    --------
    >>> rd.surprisal({1: [1], 2: [2]}, {1: [2], 2: [1]}, k=2)
    1.0
    """
    log = lists.sides.log
    found = _mean_over(lists, log.surprise(share_of), divisor)
    return ratio(found, np.log2(max(log.total(share_of), 1))) if normalize else found


@metric(arguments=("log", "pred"), unknown=("log_users",))
def unseen(lists: Lists) -> ndarray:
    """Share of the recommended items that the user has not had; larger is better, in [0, 1].

    Formula
    -------
    |items of the first k that are not in the user's rows of `log`| / m, where m = min(k, n_pred).
    Undefined for a list without recommendations. For a user without rows in the log the value is 1,
    and `spec["counts"]` counts the lists of such users.

    Notes
    -----
    Use it where items should not be recommended again, to check that a model leaves out what users
    already have. It is 1 for every model that filters out the history, so it cannot compare such
    models. Where users want the same items again, as with groceries or music, a small value is no
    fault.

    References
    ----------
    RePlay `Novelty`.

    Examples
    --------
    >>> rd.unseen({1: ["a"]}, {1: ["a", "b"]}, k=2)
    0.5
    """
    return ratio(lists.sum_shown(~lists.seen * 1.0), lists.n_shown)


@metric(arguments=("base", "pred"))
@says_as(surprisal)
def unexpectedness(lists: Lists, *, divisor: Literal["shown", "k"] = "shown") -> ndarray:
    """Share of the recommended items that a baseline does not recommend; larger is better, in [0,
    1].

    Formula
    -------
    1 − |R ∩ B| / d, where R is the set of the first k items, B is the set of the first k items of
    the baseline's list with the same list key, and d is the divisor. The baseline is ranked by the
    same rules as `pred`.

    Notes
    -----
    Use it to see how much of a list a simple baseline, such as bestsellers or the present system,
    would not have recommended. It ignores relevance: random recommendations have a value close to
    1. Read it beside a metric of accuracy.

    References
    ----------
    Murakami, Mori & Orihara (2007), JSAI. RePlay `Unexpectedness` has divisor="k", but 0 where
    either list is empty.

    Examples
    --------
    >>> rd.unexpectedness({1: ["a", "b"]}, {1: ["b", "c"]}, k=2)
    0.5

    Parameters
    ----------
    {divisor}
    """
    of_list, rank, other = shared_with_base(lists)
    both = np.bincount(of_list[np.maximum(rank, other) <= lists.k], minlength=len(lists))
    return 1.0 - ratio(both, lists.n_shown if divisor == "shown" else lists.k)


def _expected_novelty(lists: Lists, novelty: ndarray, relevant: bool, discount: str) -> ndarray:
    """Discounted mean of novelty times relevance over the first k items."""
    matched = lists.matched
    weight = partial(discount_at, discount, 0.0)
    deepest = int(lists.n_shown.max(initial=0))
    below = np.append(0.0, np.cumsum(weight(np.arange(1, deepest + 1))))[lists.n_shown]
    if relevant:
        hits = lists.hits
        total = lists.sum(novelty[matched.item[hits.place]] * weight(hits.rank))
    else:
        item = matched.item[spans(matched.start, lists.n_shown)]
        rank = 1 + place_in_run(lists.n_shown)
        total = np.bincount(run_of(lists.n_shown), novelty[item] * weight(rank), len(lists))
    return ratio(total, below)


@metric(needs=("log",), unknown=("log",))
def epc(
    lists: Lists, *, relevant: bool = True, discount: Literal["log", "none"] = "log"
) -> ndarray:
    """Expected popularity complement, the novelty of what is relevant and high up; larger is
    better, in [0, 1].

    Formula
    -------
    Σ_{i ≤ m} disc(i) h_i (1 − p(i)) / Σ_{i ≤ m} disc(i), where p(i) is the share of the users of
    `log` who have the item at rank i, h_i = 1 if it is relevant, and m = min(k, n_pred). Undefined
    for a list without recommendations.

    Parameters
    ----------
    relevant : bool, default True
        With False, h_i = 1 for all items.
    discount : {"log", "none"}, default "log"
        "log": disc(i) = 1/log2(i + 1). "none": disc(i) = 1.

    Notes
    -----
    Use it to measure the novelty of hits, where hits near the top count more. It mixes novelty with
    accuracy: of two models with equally novel hits, the one with more hits has the larger value.
    Read `precision` and `popularity` beside it, or set `relevant=False` for novelty alone.

    References
    ----------
    Vargas & Castells (2011), RecSys; elliot `EPC`.

    Examples
    --------
    >>> rd.epc({1: ["a", "b"]}, {1: ["a", "b"]}, k=2, log={1: ["a"], 2: ["a", "b"]}).__round__(4)
    0.1934
    """
    return _expected_novelty(lists, 1.0 - lists.sides.log.share("users"), relevant, discount)


@metric(bounds=NOT_NEGATIVE, needs=("log",), unknown=("log",))
@says_as(epc)
def efd(
    lists: Lists, *, relevant: bool = True, discount: Literal["log", "none"] = "log"
) -> ndarray:
    """Expected free discovery, the surprise, in bits, of what is relevant and high up; larger is
    better, at least 0.

    Formula
    -------
    Σ_{i ≤ m} disc(i) h_i (−log2 p(i)) / Σ_{i ≤ m} disc(i), where p(i) is the share of the
    interactions of `log` that are with the item at rank i, h_i = 1 if it is relevant, and m =
    min(k, n_pred). An item that is not in the log counts as if it had one interaction. Undefined
    for a list without recommendations.

    Notes
    -----
    Use it like `epc`, when very rare items should count much more. An item with 1 in 10,000
    interactions counts 3.3 bits more here than one with 1 in 1,000; in `epc` they are almost equal.
    It also mixes novelty with accuracy; `relevant=False` gives novelty alone.

    References
    ----------
    Vargas & Castells (2011), RecSys; elliot `EFD`.

    Examples
    --------
    >>> rd.efd({1: ["a"]}, {1: ["a"]}, k=1, log={1: ["a", "b"], 2: ["c", "b"]})
    2.0

    Parameters
    ----------
    {relevant, discount}
    """
    return _expected_novelty(lists, lists.sides.log.surprise("events"), relevant, discount)


@metric(better=None, **BY_LOG)
def aplt(lists: Lists, *, head: Head = HEAD, tail: TailSize | None = None) -> ndarray:
    """Share of the recommended items that are in the long tail; neither direction is better, in [0,
    1].

    Formula
    -------
    |items of the first k in the tail| / m, where m = min(k, n_pred). The head is the smallest set
    of the most popular items that holds the share `head` of the interactions of `log`. Of equally
    popular items, those with smaller ids come first. The tail is all other items, also those that
    are not in the log. Undefined for a list without recommendations.

    Parameters
    ----------
    head : float, default 0.8
        Share of the interactions that the head holds, in (0, 1].
    tail : float, optional
        The tail in place of all that is not in the head; an item that is not in the log is then not
        in it. Below 1: max(⌊tail · N⌋, 1) of the N items of the log, those with the fewest
        interactions, and of equally popular ones those with the smaller ids. From 1 on: the items
        of the log with at most so many interactions.

    Notes
    -----
    Use it to see how much of the exposure goes to the long tail. Neither direction is better in
    itself: a larger share is welcome if accuracy does not fall. The tail depends on the log and on
    `head`, so use the same for all models.

    References
    ----------
    Abdollahpouri, Burke & Mobasher (2019), FLAIRS; elliot `APLT`. `TailPercentage` of RecBole has
    `tail`.

    Examples
    --------
    >>> rd.aplt({1: ["a"], 2: ["a"], 3: ["a"], 4: ["a", "b"]}, {1: ["a", "b"]}, k=2)
    0.5
    """
    return lists.mean_shown(_in_tail(lists, head, tail))


def _in_tail(lists: Lists, head: float, tail: float | None) -> ndarray:
    """Return 1 for each item code that is in the long tail, 0 for the others."""
    if tail is None:
        return ~lists.sides.log.head(head) * 1.0
    if head != HEAD:
        raise OptionError(
            f"⟦head={head:g}⟧ and ⟦tail={tail:g}⟧ both say what the tail is; leave one of them out"
        )
    return lists.sides.log.tail(tail) * 1.0


@metric(bounds=NOT_NEGATIVE, better=None, **BY_LOG)
@says_as(aplt)
def aclt(lists: Lists, *, head: Head = HEAD, tail: TailSize | None = None) -> ndarray:
    """Number of recommended items that are in the long tail; a count, at least 0.

    Formula
    -------
    |items of the first k in the tail|, where the tail, with `head` and `tail`, is that of `aplt`.

    Notes
    -----
    Use it when the number of long-tail items on a page matters rather than their share. It grows
    with k and with the length of the lists; `aplt` divides by the number of recommended items.

    References
    ----------
    Abdollahpouri, Burke & Mobasher (2019), FLAIRS; elliot `ACLT`.

    Examples
    --------
    >>> rd.aclt({1: ["a"], 2: ["a"], 3: ["a"], 4: ["a", "b"]}, {1: ["a", "b"]}, k=2)
    1.0

    Parameters
    ----------
    {head, tail}
    """
    return lists.sum_shown(_in_tail(lists, head, tail)[lists.matched.item])
