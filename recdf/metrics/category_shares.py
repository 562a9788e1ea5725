"""Categories: which kinds of items does a list hold, and in what proportions?"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import numpy as np
from numpy import ndarray

from ..docstrings import says_as
from ..inputs.constraints import Share, a_number
from ..matching.counts import discount_at
from ..matching.hits import ratio
from ..matching.lists import Lists
from .metric import NOT_NEGATIVE, metric
from .subtopics import mixes


@metric(bounds=NOT_NEGATIVE, needs=("items",), arguments=("pred",), unknown=("category",))
def categories(
    lists: Lists,
    *,
    category_col: str = "category",
    divisor: Literal["k", "shown", "catalogue"] = "k",
    separator: str = "|",
) -> ndarray:
    """Number of distinct categories in the first k, over k; larger is better, at least 0 (at most 1
    if items have one).

    Formula
    -------
    |categories of the first k items| / d, where d is the divisor. Items without a category add
    nothing, and `spec["counts"]` counts them.

    Parameters
    ----------
    category_col : str, default "category"
        Column of `items`: plain categories, `A|B` strings, or lists of categories.
    divisor : {"k", "shown", "catalogue"}, default "k"
        "k": d = k. "shown": d = min(k, n_pred), undefined for a list without recommendations.
        "catalogue": d is the number of categories in `items`.
    separator : str, default "|"
        Sign between the categories of one string.

    Notes
    -----
    Use it to see how many kinds of items a user can choose from. It needs one column and no
    similarity. It ignores relevance, and random recommendations have a large value. Do not compare
    catalogues with different numbers of categories.

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


@metric(bounds=NOT_NEGATIVE, needs=("items",), arguments=("pred",), unknown=("category",))
@says_as(categories)
def category_entropy(
    lists: Lists,
    *,
    category_col: str = "category",
    discount: Literal["none", "log", "geometric"] = "none",
    p: Share = 0.85,
    smoothing: Annotated[float, a_number(0)] = 0.0,
    separator: str = "|",
) -> ndarray:
    """Shannon entropy of the recommended categories, in bits; larger is better, at least 0.

    Formula
    -------
    −Σ_c q(c) log2 q(c), where q(c) is the share of category c in the sum over all categories of
    x(c) + smoothing, and x(c) is the sum of disc(rank) over the first k items of category c. An
    item of several categories counts for each with an equal part. Undefined where no item has a
    category.

    Parameters
    ----------
    {category_col, separator}
    discount : {"none", "log", "geometric"}, default "none"
        "none": disc(rank) = 1. "log": 1/log2(rank + 1). "geometric": p^(rank − 1).
    p : float, default 0.85
        In (0, 1), for `discount="geometric"`.
    smoothing : float, default 0
        At least 0; it is added to every category of `items`, also to those that are not
        recommended.

    Notes
    -----
    Use it when the balance of the categories matters, not only their number: it falls when one
    category fills most of the list. It grows with k and with the number of categories, so compare
    values of the same k and catalogue. It ignores what the user likes; `calibration` does not.

    References
    ----------
    Shannon (1948), Bell System Technical Journal 27. LensKit `Entropy` has smoothing=1e-6, and
    `RankBiasedEntropy` discount="geometric" too.

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


def _plogp(p: ndarray, q: ndarray) -> ndarray:
    """Σ_c p log q of each row, where 0 log 0 is 0. NaN for a row without values."""
    logs = np.log(q, out=np.zeros_like(q), where=(p > 0) | np.isnan(q))
    return _ordered_sums(p * logs)


def _ordered_sums(of_categories: ndarray) -> ndarray:
    """Sum each row; values are sorted first, so that the order of the categories does not change
    the sum."""
    return np.sort(of_categories, axis=1).sum(axis=1)


@metric(
    bounds=NOT_NEGATIVE,
    better="smaller",
    needs=("items",),
    arguments=("log", "pred"),
    unknown=("category", "log_users"),
)
@says_as(categories)
def calibration(
    lists: Lists,
    *,
    category_col: str = "category",
    divergence: Literal["kl", "js"] = "kl",
    smoothing: Share = 0.01,
    separator: str = "|",
) -> ndarray:
    """Divergence of the recommended categories from those of the user's past, in nats; smaller is
    better, at least 0.

    Formula
    -------
    Σ_c p(c) ln (p(c) / q̃(c)), q̃ = (1 − α) q + α p, where p(c) is the share of category c in the
    user's rows of the log, q(c) its share in the first k items, and α the smoothing. An item of
    several categories counts for each with an equal part. Undefined for a user without categories
    in the log and for a list without any.

    Parameters
    ----------
    {category_col, separator}
    divergence : {"kl", "js"}, default "kl"
        "kl": the Kullback-Leibler divergence above. "js": the Jensen-Shannon divergence ½ KL(p‖m) +
        ½ KL(q‖m) with m = (p + q) / 2, which needs no smoothing.
    smoothing : float, default 0.01
        α in (0, 1), which keeps the divergence finite where a category of the past is not
        recommended.

    Notes
    -----
    Use it to see whether a list keeps the proportions of the user's interests, say 70 % comedies
    and 30 % thrillers. It rewards more of what the user already knows, so it does not measure
    discovery. Proportions from a few rows of the log are rough, so read it for users with a long
    enough history.

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
