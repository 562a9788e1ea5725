"""Fairness and bias: what do groups of items get, and do lists repeat what is popular?

Groups are the values of a column of `items`, or the head and the long tail of the popularity in
`log`. An item of several groups (`A|B`) counts in each.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
from numpy import ndarray

from ..docstrings import says_as
from ..inputs.sorting import exact_sums, offsets
from ..matching.counts import SUMS, Counts, ListCounts, Sum, list_of_hits, user_group_sums
from ..matching.hits import ratio
from ..matching.lists import Lists
from ..matching.side_tables.catalogue import Head, Labels
from .metric import NOT_NEGATIVE, metric
from .ranking.dcg import Gain, gain_values


def _by_group(labels: Labels, per_item: ndarray) -> ndarray:
    """Sum, over the items of each group, of a number that each item code has."""
    return exact_sums(np.repeat(per_item, labels.length), labels.code, len(labels.names))


def _group_shares(labels: Labels, per_item: ndarray) -> ndarray:
    """Share of each group in what the items of all groups have."""
    return ratio(_by_group(labels, per_item), exact_sums(per_item[labels.length > 0]))


def _by_name(labels: Labels, values: ndarray) -> dict[object, float]:
    return dict(zip(labels.names.tolist(), values.tolist(), strict=True))


@metric(
    better=None,
    needs=("items",),
    arguments=("pred",),
    per="item",
    sums=("shown", "exposure"),
    unknown=("group",),
)
def exposure_share(
    counts: Counts, *, group_col: str = "group", discount: Literal["log", "none"] = "log"
) -> dict[object, float]:
    """Share of the rank-discounted exposure that each group of items gets; neither direction is
    better, in [0, 1].

    Formula
    -------
    E_g / Σ_g E_g, where E_g is the sum of disc(rank) over all recommendations of items of group g.
    Items without a group are left out, and `spec["counts"]` counts them. There is one value per
    group: a call returns a dict, and a summary has rows `exposure_share[g]`. Undefined when nothing
    is recommended.

    Parameters
    ----------
    group_col : str, default "group"
        Column of `items`.
    discount : {"log", "none"}, default "log"
        "log": disc(rank) = 1/log2(rank + 1). "none": disc(rank) = 1.

    Notes
    -----
    Use it to see how much exposure groups of items get, such as own brand and partners, or new and
    old items. A share alone is neither good nor bad. Read it beside the group's share of the
    catalogue, or take `exposure_ratio`, which divides it by the share of the group in what is
    relevant.

    References
    ----------
    Singh & Joachims (2018), KDD.

    Examples
    --------
    >>> items = pd.DataFrame({"item_id": ["a", "b", "c"], "group": ["own", "own", "partner"]})
    >>> rd.exposure_share({"u": ["a", "b"], "v": ["c", "a"]}, k=2, items=items, discount="none")
    {'own': 0.75, 'partner': 0.25}
    """
    labels = counts.sides.items.labels(group_col)
    return _by_name(labels, _group_shares(labels, counts.exposure(discount)))


@metric(
    bounds=NOT_NEGATIVE,
    better=None,
    needs=("items",),
    optional=("true",),
    per="item",
    sums=("shown", "exposure", "relevant"),
    unknown=("group",),
)
@says_as(exposure_share)
def exposure_ratio(
    counts: Counts,
    *,
    group_col: str = "group",
    discount: Literal["log", "none"] = "log",
    relative_to: Literal["relevance", "catalogue"] = "relevance",
) -> dict[object, float]:
    """Share of a group in the exposure over its share in the relevant items; 1 is proportional, at
    least 0.

    Formula
    -------
    (E_g / Σ_g E_g) / (D_g / Σ_g D_g), where E_g is the exposure of group g as in `exposure_share`,
    and D_g is the number of relevant items of g, summed over the lists of the population. There is
    one value per group: a call returns a dict, and a summary has rows `exposure_ratio[g]`.
    Undefined for D_g = 0.

    Parameters
    ----------
    {group_col, discount}
    relative_to : {"relevance", "catalogue"}, default "relevance"
        "relevance": D_g as above. "catalogue": D_g is the number of items of the group in `items`;
        `true` may be None.

    Notes
    -----
    Use it to see whether groups of items get exposure in proportion to their relevant items. What
    is relevant in a log depends on what was recommended before. So a group that was never
    recommended has few relevant items, and looks fairly treated. `relative_to="catalogue"` compares
    with equal exposure of all items instead. The ratios of small groups are noisy.

    References
    ----------
    Singh & Joachims (2018), KDD: disparate treatment.

    Examples
    --------
    >>> items = pd.DataFrame({"item_id": ["a", "b"], "group": ["own", "partner"]})
    >>> rd.exposure_ratio({"u": ["a"], "v": ["b"]}, {"u": ["a"], "v": ["a"]}, k=1, items=items)
    {'own': 2.0, 'partner': 0.0}
    """
    labels = counts.sides.items.labels(group_col)
    due = np.ones(len(labels.length))
    if relative_to == "relevance":
        counts.needs_true('or ⟦relative_to="catalogue"⟧')
        due = counts.relevant
    share = _group_shares(labels, counts.exposure(discount))
    return _by_name(labels, ratio(share, _group_shares(labels, due)))


def _item_groups(counts: Counts, group_col: str | None, head: float) -> Labels:
    """Return the groups of a column of `items`. Without one, return the head and the tail of the
    log."""
    if group_col is not None:
        return counts.sides.items.labels(group_col)
    tail = ~counts.sides.log.head(head)
    return Labels(
        pd.Index(["head", "tail"]), offsets(np.ones(len(tail), np.int64)), tail.astype(np.int64)
    )


def _relative_spread(labels: Labels, above: ndarray, below: ndarray) -> float:
    """Standard deviation over mean of the groups' shares."""
    share = ratio(_by_group(labels, above), _by_group(labels, below))
    defined = np.sort(share[~np.isnan(share)])
    if len(defined) < 2 or not defined.mean():
        return np.nan
    return float(defined.std() / defined.mean())


@metric(
    bounds=NOT_NEGATIVE,
    better="smaller",
    needs=("log",),
    per="item",
    sums=("hits", "relevant"),
    unknown=("group",),
)
def pop_reo(counts: Counts, *, group_col: str | None = None, head: Head = 0.8) -> float:
    """Inequality between groups in the chance that a relevant item is recommended; smaller is
    better, at least 0.

    Formula
    -------
    std / mean over the groups g of P(hit | g, relevant) = hits of items of g / relevant items of g.
    Both counts are summed over the lists of the population, and the standard deviation divides by
    the number of groups. Groups without relevant items are left out. Undefined for fewer than two
    groups, and if there is no hit. REO is short for ranking-based equal opportunity.

    Parameters
    ----------
    group_col : str, optional
        Column of `items` with the groups. By default they are the head and the tail of `log`, as in
        `aplt`.
    head : float, default 0.8
        Share of the interactions that the head holds.

    Notes
    -----
    Use it to see whether relevant items of the long tail are found as often as relevant
    bestsellers. It does not tell which group is favoured; for that, look at `recall` within groups
    of items (`item_by=` of `evaluate`). A model with few hits has a noisy value.

    References
    ----------
    Zhu, Wang & Caverlee (2020), SIGIR; elliot `PopREO`.

    Examples
    --------
    >>> log = {1: ["a"], 2: ["a"], 3: ["a"], 4: ["a", "b"]}
    >>> rd.pop_reo(
    ...     {1: ["b"], 5: ["a"], 6: ["b"]}, {1: ["b"], 5: ["a"], 6: ["a"]}, k=1, log=log
    ... ).__round__(4)
    0.3333
    """
    return _relative_spread(_item_groups(counts, group_col, head), counts.hits, counts.relevant)


@metric(
    bounds=NOT_NEGATIVE,
    better="smaller",
    arguments=("log", "pred"),
    per="item",
    sums=("lengths", "had", "new"),
    unknown=("group", "items_or_log"),
)
@says_as(pop_reo)
def pop_rsp(counts: Counts, *, group_col: str | None = None, head: Head = 0.8) -> float:
    """Inequality between groups in the chance that an item is recommended; smaller is better, at
    least 0.

    Formula
    -------
    std / mean over the groups g of P(recommended | g) = recommendations of items of g / pairs of a
    list and an item of g. The standard deviation divides by the number of groups. The items are
    those of `items`, or else those of `log`. Other recommended items count only in
    `spec["counts"]`. An item that is in the user's rows of `log` counts neither as a recommendation
    nor as a pair. Undefined for fewer than two groups, and when nothing is recommended. RSP is
    short for ranking-based statistical parity.

    Notes
    -----
    Use it to see whether all groups of items are recommended equally often, whatever is relevant.
    Equal chances are seldom the aim of a good recommender, so a large value needs an explanation,
    but is not a fault in itself. `pop_reo` compares relevant items alone.

    References
    ----------
    Zhu, Wang & Caverlee (2020), SIGIR; elliot `PopRSP`.

    Examples
    --------
    >>> log = {1: ["a"], 2: ["a"], 3: ["a"], 4: ["a", "b"]}
    >>> rd.pop_rsp(log, {5: ["a"], 6: ["a"], 7: ["b"]}, k=1).__round__(4)
    0.3333

    Parameters
    ----------
    {group_col, head}
    """
    labels = _item_groups(counts, group_col, head)
    log = counts.sides.log
    inside = counts.sides.items.inside if counts.sides.has("items") else log.count("events") > 0
    pairs = np.where(inside, counts.n_lists - counts.had, 0)
    return _relative_spread(labels, np.where(inside, counts.new, 0), pairs)


@metric(bounds=NOT_NEGATIVE, better=None, arguments=("log", "pred"), unknown=("log", "log_users"))
def arp_ratio(lists: Lists, *, share_of: Literal["users", "events"] = "users") -> ndarray:
    """Popularity of the recommended items over that of the user's past; above 1 is more popular, at
    least 0.

    Formula
    -------
    (mean of p(i) over the first k items) / (mean of p(i) over the distinct items in the user's rows
    of `log`), where p(i) is the popularity of item i as in `popularity`. Undefined for a user
    without rows in the log, and for a list without recommendations. Popularity lift is this value
    minus 1.

    Parameters
    ----------
    share_of : {"users", "events"}, default "users"
        "users": p(i) is a share of users. "events": it is a share of interactions.

    Notes
    -----
    Use it to see whether a recommender offers users more popular items than they chose before. To
    see for which users, compare groups with `user_gap`. For a user who has only had bestsellers,
    the ratio can hardly exceed 1. It ignores relevance.

    References
    ----------
    Abdollahpouri et al. (2019), RMSE workshop at RecSys.

    Examples
    --------
    >>> rd.arp_ratio({1: ["a"], 2: ["a", "b"]}, {1: ["b"]}, k=1)
    0.5
    """
    log = lists.sides.log
    share = log.share(share_of)
    of_user = ratio(
        exact_sums(share[log.pairs[1]], log.pair_user, len(log.pairs[0]) - 1), np.diff(log.pairs[0])
    )
    return ratio(lists.mean_shown(share), np.append(of_user, np.nan)[log.list_user])


def _gains_of_items(gain: str, counts: ListCounts) -> ndarray:
    hits = counts.lists.hits
    mine = counts.among(list_of_hits)
    items = counts.matched.item[hits.place[mine]]
    return exact_sums(gain_values(gain, hits.gain[mine]), items, counts.n_items)


def _gain_sum(gain: str) -> Sum:
    return Sum(f"gains of items, {gain}", partial(_gains_of_items, gain))


@metric(
    bounds=NOT_NEGATIVE,
    better="smaller",
    needs=("items",),
    per="item",
    unknown=("group",),
    sums=lambda params: [SUMS["shown"], _gain_sum(params["gain"])],
)
def item_gap(
    counts: Counts,
    *,
    group_col: str = "group",
    stat: Literal["mad", "gap"] = "mad",
    gain: Gain = "linear",
) -> float:
    """How far apart groups of items are in the gain per recommendation; smaller is better, at least
    0.

    Formula
    -------
    Mean over the pairs of item groups g, h of |v_g − v_h|, where v_g is the mean, over the items of
    g that are recommended in the first k of any list, of (sum of the gains of the item where it is
    a hit) / (times it is recommended). Groups without such an item are left out; undefined for
    fewer than two groups.

    Parameters
    ----------
    group_col : str, default "group"
        Column of `items`.
    stat : {"mad", "gap"}, default "mad"
        "mad": the mean above. "gap": the largest v_g minus the smallest.
    gain : {"linear", "exp2", "binary"}, default "linear"
        Gain of a hit: its relevance g, 2^g − 1, or 1.

    Notes
    -----
    Use it to see whether recommendations of one group of items, say of partners, hit as often as
    those of another. It does not say which group is better off, and nothing about items that are
    never recommended; `pop_reo` and `exposure_ratio` do. Each item counts the same, so rarely
    recommended items make it noisy. For groups of users take `rd.diagnostics.user_gap`.

    References
    ----------
    Deldjoo et al. (2021), UMUAI 31; elliot `ItemMADranking`.

    Examples
    --------
    >>> items = pd.DataFrame({"item_id": ["a", "b"], "group": ["own", "partner"]})
    >>> rd.item_gap({"u": ["a"], "v": ["b"]}, {"u": ["a"], "v": ["a", "b"]}, k=2, items=items)
    0.5
    """
    labels = counts.sides.items.labels(group_col)
    per_item = np.divide(counts.summed(*_gain_sum(gain)), np.maximum(counts.shown, 1))
    there = counts.shown > 0
    value = ratio(_by_group(labels, np.where(there, per_item, 0.0)), _by_group(labels, there))
    value = np.sort(value[~np.isnan(value)])
    n = len(value)
    if n < 2:
        return np.nan
    if stat == "gap":
        return float(value[-1] - value[0])
    # Of the sorted values, the j-th is above j − 1 of the others and below n − j.
    return float(exact_sums((2 * np.arange(1, n + 1) - n - 1) * value)[0] / (n * (n - 1) / 2))


@metric(
    bounds=(-1.0, None),
    better=None,
    needs=("items",),
    arguments=("log", "pred"),
    per="item",
    sums=lambda params: user_group_sums(params["user_group_col"]),
    unknown=("group", "log_users"),
    where={"of=lists": {"bounds": NOT_NEGATIVE}, "of=log": {"bounds": NOT_NEGATIVE}},
)
@says_as(item_gap)
def bias_disparity(
    counts: Counts,
    *,
    user_group_col: str = "group",
    group_col: str = "group",
    of: Literal["both", "lists", "log"] = "both",
) -> dict[object, float]:
    """How much more a group of users is recommended a group of items than it chose; neither
    direction is better.

    Formula
    -------
    B / S − 1, at least −1. B is the share of item group c in the recommendations (first k) to the
    users of group g, over the share of c in the catalogue. S is the same of the items that these
    users have in `log`, each item once per list. Items without a group are left out, and an item of
    several groups counts in each. There is one value per pair of groups: a call returns a dict with
    keys "g:c", and a summary has rows `bias_disparity[g:c]`. Undefined for S = 0.

    Parameters
    ----------
    {group_col}
    user_group_col : str, default "group"
        Column of the frame `users=`, which is the population: one row per user.
    of : {"both", "lists", "log"}, default "both"
        "both": B / S − 1. "lists": B, at least 0. "log": S, at least 0.

    Notes
    -----
    Use it to see whether a recommender amplifies what groups of users prefer: above 0 it shows them
    more of c than they chose, below 0 less. Neither is better in itself. Small groups give noisy
    values; `calibration` looks at each user.

    References
    ----------
    Tsintzou, Pitoura & Tsaparas (2019), RMSE workshop at RecSys; elliot `BiasDisparityBD`, `BR`
    (lists), `BS` (log).

    Examples
    --------
    >>> items = pd.DataFrame({"item_id": ["a", "b"], "group": ["x", "y"]})
    >>> users = pd.DataFrame({"user_id": ["u", "v"], "group": ["young", "young"]})
    >>> rd.bias_disparity(
    ...     {"u": ["a"], "v": ["b"]}, {"u": ["a"], "v": ["a"]}, k=1, items=items, users=users
    ... )
    {'young:x': 1.0, 'young:y': -1.0}
    """
    labels = counts.sides.items.labels(group_col)
    shown, had = (counts.by_user_group(one) for one in user_group_sums(user_group_col))
    catalogue = _group_shares(labels, np.ones(len(labels.length)))
    found: dict[object, float] = {}
    for group in sorted(shown):
        lists, log = (ratio(_group_shares(labels, one[group]), catalogue) for one in (shown, had))
        value = {"both": ratio(lists, log) - 1.0, "lists": lists, "log": log}[of]
        found |= {f"{group}:{name}": one for name, one in _by_name(labels, value).items()}
    return found
