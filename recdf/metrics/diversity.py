"""Diversity: how different are the items of a list from one another?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

import numpy as np

from ..inputs.constraints import Share, a_number
from ..matching.counts import discount_at
from ..matching.hits import ratio
from ..matching.lists import Lists
from .metric import metric
from .similarity import mean_similarity
from .subtopics import alpha_dcg, aspect_counts, even_ideal, greedy_ideal, mixes

SimilarityArgument = Literal["cosine", "jaccard", "hamming"] | Callable[[np.ndarray, np.ndarray], np.ndarray]


@metric(bounds=(0.0, 2.0), aliases=("diversity",), needs=("features",), arguments=("pred",), unknown=("features",))
def ild(lists: Lists, *, similarity: SimilarityArgument = "cosine", separator: str = "|") -> np.ndarray:
    """Intra-list diversity, the mean dissimilarity of two recommended items; larger is better, in [0, 2].

    Formula
    -------
    Mean of 1 − sim(i, j) over the pairs of items i, j in the first k, where sim is their similarity. Undefined for
    fewer than two items. Items without features (no row, or a null in it) are left out of the pairs, and
    `spec["counts"]` counts the recommended rows with such an item. If no feature is negative, no similarity is, and the
    value is in [0, 1].

    Parameters
    ----------
    similarity : {"cosine", "jaccard", "hamming"} or callable, default "cosine"
        "cosine": cosine of the feature vectors, 0 for a vector of zeros. "jaccard": number of features that both items
        have, over the number that either has. "hamming": share of equal positions, where a column of plain categories
        is one position. A function takes two arrays of row positions, in `features` if that is a frame and else in
        `items`, and returns the similarities of these pairs.
    separator : str, default "|"
        Sign between the categories of one string.

    Notes
    -----
    Use it beside a metric of accuracy, to see whether lists repeat one kind of item. Random recommendations have a
    large value, so never optimize it alone. It is only as good as the features: choose features by which users would
    call items alike. All pairs count the same, whatever their ranks.

    References
    ----------
    Ziegler et al. (2005), WWW; Smyth & McClave (2001), ICCBR. The default equals `diversity` of recommenders,
    similarity="jaccard" that of recpack, and similarity="hamming" times the number of features is the Hamming distance
    of RecTools. These libraries give 0 to a list of one item, as undefined="zero" does here.

    Examples
    --------
    >>> genres = {"a": "crime", "b": "crime|drama", "c": "western"}
    >>> rd.ild({"u": ["a", "b", "c"]}, k=3, features=genres, similarity="jaccard").__round__(4)
    0.8333
    """
    return 1.0 - _clipped(mean_similarity(lists, similarity, separator))


@metric(bounds=(-1.0, 1.0), better="smaller", needs=("features",), arguments=("pred",), unknown=("features",))
def ils(lists: Lists, *, similarity: SimilarityArgument = "cosine", separator: str = "|") -> np.ndarray:
    """Intra-list similarity, the mean similarity of two recommended items; smaller is better, in [−1, 1].

    Formula
    -------
    Mean of sim(i, j) over the pairs of items in the first k, which is 1 − ild. Undefined for fewer than two items with
    features.

    Notes
    -----
    Use it in place of `ild` where similarity is easier to explain: it is 1 − ild. A small value alone is no merit,
    because random recommendations have one.

    References
    ----------
    Ziegler et al. (2005), WWW. LensKit gives 1 to a list of one item, which is undefined here.

    Examples
    --------
    >>> rd.ils({"u": ["a", "b", "c"]}, k=3, features={"a": [1, 0], "b": [1, 0], "c": [0, 1]}).__round__(4)
    0.3333
    """
    return _clipped(mean_similarity(lists, similarity, separator))


def _clipped(similarity: np.ndarray) -> np.ndarray:
    """Limit similarities to [−1, 1], which rounding may exceed."""
    found: np.ndarray = np.clip(similarity, -1.0, 1.0)
    return found


@metric(bounds=(0.0, None), arguments=("true", "pred", "aspects"))
def a_ndcg(
    lists: Lists, alpha: Annotated[float, a_number(0, 1)] = 0.5, *, ideal: Literal["greedy", "even"] = "greedy",
    aspect_col: str | None = None,
) -> np.ndarray:  # fmt: skip
    """α-nDCG: gain from relevant items, which shrinks as aspects are repeated; larger is better, at least 0.

    Formula
    -------
    α-DCG / α-IDCG, α-DCG = Σ_{i ≤ k} (1/log2(i+1)) Σ_a rel(i, a) (1−α)^{c_a(i)}, where rel(i, a) = 1 if the item at
    rank i is relevant and has aspect a, c_a(i) is the number of earlier relevant items with aspect a, and α-IDCG is
    the same sum over the ideal list. Undefined for a list without a relevant item that has an aspect. The best order
    is hard to find, so a list can be a little better than the greedy one.

    Parameters
    ----------
    alpha : float, default 0.5
        α in [0, 1]: each time an aspect is repeated, it is worth 1 − α times what it was worth before.
    ideal : {"greedy", "even"}, default "greedy"
        The ideal list. "greedy": the relevant items, where the next item is always the one that adds most, and of
        equal ones that with the smallest id. "even": as many items as the list has, which take the aspects in turn, as
        in rs_metrics; 0 for an empty list.
    aspect_col : str, optional
        Column of an `aspects` frame. By default its only column beside user and item, else `aspect`.

    Notes
    -----
    Use it when items serve several needs (topics, genres, meanings of a query), and a second item for the same need is
    worth less. It needs good aspects, and ignores grades of relevance. If all items have one aspect, it only penalizes
    further hits; take `ndcg` then.

    References
    ----------
    Clarke et al. (2008), SIGIR. ideal="greedy" equals TREC `ndeval`. In rs_metrics, c_a(i) also counts earlier items
    that have the aspect and are not relevant, which is not reproduced here.

    Examples
    --------
    >>> aspects = {"u": [["a", "b"], ["c"]]}
    >>> rd.a_ndcg({"u": ["a", "b", "c"]}, {"u": ["a", "b", "c"]}, aspects, k=3).__round__(4)
    0.9652
    """
    aspects = lists.sides.aspects(aspect_col)
    found = alpha_dcg(lists, aspects, alpha)
    if ideal == "greedy":
        return ratio(found, greedy_ideal(lists, aspects, alpha))
    best = even_ideal(lists, aspects, alpha)
    empty = (lists.n_shown == 0) & (aspects.n_of_list(len(lists)) > 0)
    return np.where(empty, 0.0, ratio(found, best))


@metric(arguments=("true", "pred", "aspects"))
def subtopic_recall(lists: Lists, *, aspect_col: str | None = None) -> np.ndarray:
    """Share of the aspects of the relevant items that the hits cover; larger is better, in [0, 1].

    Formula
    -------
    |aspects of the hits in the first k| / |aspects of the relevant items|. Undefined for a list without a relevant
    item that has an aspect.

    Notes
    -----
    Use it to see how many of a user's interests the hits reach. Neither the ranks nor a second hit for the same aspect
    count; `a_ndcg` uses both. With one aspect per user it is nearly `hitrate`, so compare users with similar numbers of
    aspects.

    References
    ----------
    Zhai, Cohen & Lafferty (2003), SIGIR.

    Examples
    --------
    >>> rd.subtopic_recall({"u": ["a", "b", "c"]}, {"u": ["a", "b"]}, {"u": [["a", "b"], ["c"]]}, k=2)
    0.5
    """
    return ratio(*aspect_counts(lists, lists.sides.aspects(aspect_col)))


@metric(bounds=(0.0, None), needs=("items",), arguments=("pred",), unknown=("category",))
def categories(
    lists: Lists, *, category_col: str = "category", divisor: Literal["k", "shown", "catalogue"] = "k",
    separator: str = "|",
) -> np.ndarray:  # fmt: skip
    """Number of distinct categories in the first k, over k; larger is better, at least 0 (at most 1 if items have one).

    Formula
    -------
    |categories of the first k items| / d, where d is the divisor. Items without a category add nothing, and
    `spec["counts"]` counts them.

    Parameters
    ----------
    category_col : str, default "category"
        Column of `items`: plain categories, `A|B` strings, or lists of categories.
    divisor : {"k", "shown", "catalogue"}, default "k"
        "k": d = k. "shown": d = min(k, n_pred), undefined for a list without recommendations. "catalogue": d is the
        number of categories in `items`.

    Notes
    -----
    Use it to see how many kinds of items a user can choose from. It needs one column and no similarity. It ignores
    relevance, and random recommendations have a large value. Do not compare catalogues with different numbers of
    categories.

    References
    ----------
    RePlay `CategoricalDiversity`.

    Examples
    --------
    >>> items = pd.DataFrame({"item_id": ["a", "b", "c"], "category": ["x", "x", "y"]})
    >>> rd.categories({"u": ["a", "b"], "v": ["a", "c"]}, k=2, items=items)
    0.75
    """
    labels = lists.sides.items.labels(category_col, separator)
    found = np.zeros(len(lists))
    for block, shown, _ in mixes(lists, labels):
        found[block] = np.count_nonzero(shown, axis=1)
    below = {"k": lists.k, "shown": lists.n_shown, "catalogue": len(labels.names)}
    return ratio(found, below[divisor])


@metric(bounds=(0.0, None), needs=("items",), arguments=("pred",), unknown=("category",))
def category_entropy(
    lists: Lists, *, category_col: str = "category", discount: Literal["none", "log", "geometric"] = "none",
    p: Share = 0.85, smoothing: Annotated[float, a_number(0)] = 0.0, separator: str = "|",
) -> np.ndarray:  # fmt: skip
    """Shannon entropy of the recommended categories, in bits; larger is better, at least 0.

    Formula
    -------
    −Σ_c q(c) log2 q(c), where q(c) is the share of category c in the sum over all categories of x(c) + smoothing, and
    x(c) is the sum of disc(rank) over the first k items of category c. An item of several categories counts for each
    with an equal part. Undefined where no item has a category.

    Parameters
    ----------
    discount : {"none", "log", "geometric"}, default "none"
        "none": disc(rank) = 1. "log": 1/log2(rank + 1). "geometric": p^(rank − 1).
    p : float, default 0.85
        In (0, 1), for `discount="geometric"`.
    smoothing : float, default 0
        At least 0; it is added to every category of `items`, also to those that are not recommended.

    Notes
    -----
    Use it when the balance of the categories matters, not only their number: it falls when one category fills most of
    the list. It grows with k and with the number of categories, so compare values of the same k and catalogue. It
    ignores what the user likes; `calibration` does not.

    References
    ----------
    Shannon (1948), Bell System Technical Journal 27. LensKit `Entropy` has smoothing=1e-6, and `RankBiasedEntropy`
    discount="geometric" too.

    Examples
    --------
    >>> items = pd.DataFrame({"item_id": ["a", "b", "c"], "category": ["x", "x", "y"]})
    >>> rd.category_entropy({"u": ["a", "b"], "v": ["a", "c"]}, k=2, items=items)
    0.5
    """
    labels = lists.sides.items.labels(category_col, separator)
    found = np.zeros(len(lists))
    weight = None if discount == "none" else partial(discount_at, discount, p)
    for block, shown, _ in mixes(lists, labels, weight=weight):
        mass = np.where(shown.any(axis=1, keepdims=True), shown + smoothing, 0.0)
        q = ratio(mass, _ordered_sums(mass)[:, None])
        found[block] = np.abs(_plogp(q, q)) / np.log(2)
    return found


def _plogp(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Σ_c p log q of each row, where 0 log 0 is 0. NaN for a row without values."""
    logs = np.log(q, out=np.zeros_like(q), where=(p > 0) | np.isnan(q))
    return _ordered_sums(p * logs)


def _ordered_sums(of_categories: np.ndarray) -> np.ndarray:
    """Sum each row; values are sorted first, so that the order of the categories does not change the sum."""
    found: np.ndarray = np.sort(of_categories, axis=1).sum(axis=1)
    return found


@metric(
    bounds=(0.0, None), better="smaller", needs=("items",), arguments=("log", "pred"), unknown=("category", "log_users")
)
def calibration(
    lists: Lists, *, category_col: str = "category", divergence: Literal["kl", "js"] = "kl", smoothing: Share = 0.01,
    separator: str = "|",
) -> np.ndarray:  # fmt: skip
    """Divergence of the recommended categories from those of the user's past, in nats; smaller is better, at least 0.

    Formula
    -------
    Σ_c p(c) ln (p(c) / q̃(c)), q̃ = (1 − α) q + α p, where p(c) is the share of category c in the user's rows of the
    log, q(c) its share in the first k items, and α the smoothing. An item of several categories counts for each with an
    equal part. Undefined for a user without categories in the log and for a list without any.

    Parameters
    ----------
    divergence : {"kl", "js"}, default "kl"
        "kl": the Kullback-Leibler divergence above. "js": the Jensen-Shannon divergence ½ KL(p‖m) + ½ KL(q‖m) with
        m = (p + q) / 2, which needs no smoothing.
    smoothing : float, default 0.01
        α in (0, 1), which keeps the divergence finite where a category of the past is not recommended.

    Notes
    -----
    Use it to see whether a list keeps the proportions of the user's interests, say 70 % comedies and 30 % thrillers.
    It rewards more of what the user already knows, so it does not measure discovery. Proportions from a few rows of the
    log are rough, so read it for users with a long enough history.

    References
    ----------
    Steck (2018), RecSys.

    Examples
    --------
    >>> items = pd.DataFrame({"item_id": ["a", "b", "c"], "category": ["x", "x", "y"]})
    >>> rd.calibration({"u": ["a", "c"]}, {"u": ["b", "c"]}, k=2, items=items)
    0.0
    """
    labels = lists.sides.items.labels(category_col, separator)
    found = np.zeros(len(lists))
    for block, shown, past in mixes(lists, labels, lists.sides.log):
        p, q = (ratio(mix, _ordered_sums(mix)[:, None]) for mix in (past, shown))
        if divergence == "kl":
            value = _plogp(p, p) - _plogp(p, (1.0 - smoothing) * q + smoothing * p)
        else:
            middle = (p + q) / 2
            value = (_plogp(p, p) - _plogp(p, middle) + _plogp(q, q) - _plogp(q, middle)) / 2
        found[block] = np.maximum(value, 0.0)
    return found
