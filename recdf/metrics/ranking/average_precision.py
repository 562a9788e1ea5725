"""Average precision and average recall: precision and recall at the rank of each hit."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...errors import OptionError
from ...matching.hits import Hits, ratio
from ...matching.lists import Lists
from ..metric import metric
from ..observed import observed_average_precision, refuse
from .preference import ByScore, ranked_by

Normalizer = Literal["relevant", "achievable", "hits", "k", "shown"]


def _normalized(lists: Lists, total: np.ndarray, normalizer: str) -> np.ndarray:
    """Return total / d. A list with relevant items but without recommendations or hits has 0
    instead of 0/0."""
    n = lists.n_true
    if normalizer == "k":
        return total / lists.k
    if normalizer == "hits":
        return np.where(lists.n_hits > 0, ratio(total, lists.n_hits), 0.0)
    if normalizer == "shown":
        below = np.minimum(n, lists.n_shown)
        return np.where((n > 0) & (below == 0), 0.0, ratio(total, below))
    return ratio(total, n if normalizer == "relevant" else np.minimum(lists.k, n))


@metric(
    aliases=("map", "ap"),
    optional=("propensity",),
    where={"transform=log_odds": {"bounds": (None, None)}},
)
def mapr(
    lists: Lists,
    *,
    normalizer: Normalizer = "relevant",
    transform: Literal["none", "log_odds"] = "none",
    tied: ByScore = "ranked",
) -> np.ndarray:
    """Average precision at the ranks of the hits (MAP over lists); larger is better, in [0, 1].

    Formula
    -------
    (1/d) Σ_{i ≤ k} h_i · P@i, where h_i = 1 if the item at rank i is a hit, P@i is the number of
    hits in ranks 1 to i over i, and d is the normalizer. With `propensity_col`: Σ_{i ≤ k} h_i v_i ·
    P@i / Σ_t v_t, where v = 1/max(propensity, propensity_floor). The second sum is over all
    relevant items t, and for "achievable" over the min(k, n_true) of them with the largest v. With
    transform="log_odds": ln((1 + S) / (1 + n_true − S)), where S = Σ_{i ≤ k} h_i · P@i; it has any
    sign, and is undefined where n_true = 0.

    Parameters
    ----------
    normalizer : {"relevant", "achievable", "hits", "k", "shown"}, default "relevant"
        "relevant", as in trec_eval: d = n_true. "achievable": d = min(k, n_true). "hits": d is the
        number of hits in the first k, and the value is 0 without hits. "k": d = k. "shown": d =
        min(n_true, k, n_pred), 0 for an empty list. Undefined where n_true = 0, except for "hits"
        and "k", which give 0. With `propensity_col` only "relevant" and "achievable" are taken.
    transform : {"none", "log_odds"}, default "none"
        "log_odds" stretches values near 0 and 1, so that a difference there counts more; it takes
        no other normalizer than "relevant".
    tied : {"ranked", "worst"}, default "ranked"
        "ranked": equal scores have the ranks that the option `ties` gives them. "worst": the rank
        of an item is the number of items with an equal or higher score.

    Notes
    -----
    Use it when users look for several items and all of these should be near the top. It is the
    usual summary for binary relevance. It ignores grades of relevance, which `ndcg` uses. Libraries
    disagree about the normalizer, so name it when you report the number. With "achievable", users
    who have more than k relevant items can reach 1.

    References
    ----------
    trec_eval `map_cut`, and `yaap` for log_odds; Buckley & Voorhees (2000), SIGIR; Robertson
    (2012), SIGIR. In scikit-learn, `label_ranking_average_precision_score` is normalizer "hits"
    with tied="worst" on the candidates.

    Examples
    --------
    >>> rd.mapr({"u": ["a", "b"]}, {"u": ["a", "x", "y", "b"]}, k=10)
    0.75
    """
    if lists.item_weights is not None:
        refuse("transform", transform, ("none",))
        refuse("tied", tied, ("ranked",))
        return observed_average_precision(lists, normalizer)
    lists = ranked_by(lists, tied)
    total = lists.sum_hits(_precision_there)
    if transform == "none":
        return _normalized(lists, total, normalizer)
    if normalizer != "relevant":
        raise OptionError(
            f'⟦transform="log_odds"⟧ has no form with ⟦normalizer={normalizer!r}⟧; leave one of '
            "them out"
        )
    return np.where(lists.n_true > 0, np.log((1 + total) / (1 + lists.n_true - total)), np.nan)


def _precision_there(hits: Hits) -> np.ndarray:
    found: np.ndarray = hits.number / hits.rank
    return found


@metric(aliases=("ar",))
def mar(lists: Lists, *, normalizer: Normalizer = "hits") -> np.ndarray:
    """Average recall at the ranks of the hits; larger is better, in [0, 1].

    Formula
    -------
    (1/d) Σ_{i ≤ k} h_i · R@i, where h_i = 1 if the item at rank i is a hit, R@i is the number of
    hits in ranks 1 to i over n_true, and d is the normalizer.

    Parameters
    ----------
    normalizer : {"hits", "relevant", "achievable", "k", "shown"}, default "hits"
        "hits": d is the number of hits in the first k, and the value is 0 without hits. "relevant":
        d = n_true. "achievable": d = min(k, n_true). "k": d = k. "shown": d = min(n_true, k,
        n_pred). Undefined for n_true = 0, as recall is.

    Notes
    -----
    Use it to reproduce the numbers of rs_metrics. The ranks of the hits do not change it: at the
    j-th hit, recall is j / n_true whatever its rank is. So it depends on the number of hits alone.
    Take `recall` for that, or `mapr` when ranks should count.

    References
    ----------
    rs_metrics `mar`.

    Examples
    --------
    >>> rd.mar({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, k=3)
    0.75
    """
    n_hits = lists.n_hits
    total = (
        n_hits * (n_hits + 1) / 2
    )  # 1 + 2 + ... hits, since the j-th one makes the recall j / n_true
    of_all = _normalized(lists, total / np.maximum(lists.n_true, 1), normalizer)
    return np.where(lists.n_true > 0, of_all, np.nan)
