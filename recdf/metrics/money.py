"""Money: metrics weighted by the value of an item. v_i is the value that `pred` gives the item at
rank i."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy import ndarray

from ..docstrings import says_as
from ..matching.hits import ratio
from ..matching.lists import Lists
from .metric import NOT_NEGATIVE, metric

Negative = Literal["error", "clip"]


@metric(needs=("value",))
def money_precision(lists: Lists, *, negative: Negative = "error") -> ndarray:
    """Share of the value of the first k items that belongs to hits; larger is better, in [0, 1].

    Formula
    -------
    Σ_{i ≤ k} v_i h_i / Σ_{i ≤ k} v_i, where v_i is the value of the item at rank i in `pred` and
    h_i = 1 if it is a hit. Undefined where the value of the first k items is 0.

    Parameters
    ----------
    negative : {"error", "clip"}, default "error"
        Negative values, such as refunds, are refused or count as 0.

    Notes
    -----
    Use it to see what share of the value of a page is in items that were bought. One expensive item
    outweighs many cheap ones. Each list weighs the same, however much it is worth. For the share
    over all lists together, compare sums: a ratio of two columns in `compare_variants`.

    References
    ----------
    Common practice: precision with prices as weights.

    Examples
    --------
    >>> true = pd.DataFrame({"user_id": [1], "item_id": ["a"], "price": [8.0]})
    >>> pred = pd.DataFrame({"user_id": [1, 1], "item_id": ["a", "b"], "price": [10.0, 30.0]})
    >>> rd.money_precision(true, pred, k=2, value_col="price")
    0.25
    """
    shown = lists.values.checked(negative).pred
    return ratio(lists.sum(shown[lists.hits.place]), lists.sum_shown(shown))


@metric(bounds=NOT_NEGATIVE, needs=("value",))
@says_as(money_precision)
def money_recall(lists: Lists, *, negative: Negative = "error") -> ndarray:
    """Value of the hits over the value of all that was bought; larger is better, at least 0.

    Formula
    -------
    Σ_{i ≤ k} v_i h_i / Σ_t w_t, where v_i is the value of the item at rank i in `pred`, h_i = 1 if
    it is a hit, and w_t is the value in `true` of each relevant item t. Undefined where the
    relevant items have no value. It is above 1 only where items were bought below the value that
    `pred` gives them.

    Notes
    -----
    Use it to see what share of a user's spending the list would have caught. A user who bought one
    cheap item weighs as much as the largest customer, and prices with a long tail make the mean
    noisy; `revenue` keeps the amount.

    References
    ----------
    Common practice: recall with prices as weights.

    Examples
    --------
    >>> true = pd.DataFrame({"user_id": [1, 1], "item_id": ["a", "b"], "price": [10.0, 30.0]})
    >>> pred = pd.DataFrame({"user_id": [1], "item_id": ["a"], "price": [10.0]})
    >>> rd.money_recall(true, pred, k=2, value_col="price")
    0.25

    Parameters
    ----------
    {negative}
    """
    values = lists.values.checked(negative)
    return ratio(lists.sum(values.pred[lists.hits.place]), lists.sum_true(values.true))


@metric(bounds=NOT_NEGATIVE, needs=("value",), aliases=("revenue_per_list",))
@says_as(money_precision)
def revenue(lists: Lists, *, negative: Negative = "error") -> ndarray:
    """Value of the hits in the first k, in the unit of the value column; larger is better, at least
    0.

    Formula
    -------
    Σ_{i ≤ k} v_i h_i, where v_i is the value of the item at rank i in `pred` and h_i = 1 if it is a
    hit.

    Notes
    -----
    Use it for decisions in money: the mean times the number of lists is an amount. On logged data
    it is the value of what users bought, not what the recommendations earned; only an experiment
    shows that. Prices have a long tail, so intervals are wide: use many users, and read
    `bootstrap_ci` beside the usual interval.

    References
    ----------
    Common practice: the sum of the prices of the hits.

    Examples
    --------
    >>> true = pd.DataFrame({"user_id": [1], "item_id": ["a"], "price": [8.0]})
    >>> pred = pd.DataFrame({"user_id": [1, 1], "item_id": ["a", "b"], "price": [10.0, 30.0]})
    >>> rd.revenue(true, pred, k=2, value_col="price")
    10.0

    Parameters
    ----------
    {negative}
    """
    return lists.sum(lists.values.checked(negative).pred[lists.hits.place])


@metric(needs=("value",))
@says_as(money_precision)
def money_ndcg(lists: Lists, *, negative: Negative = "error") -> ndarray:
    """NDCG whose gain is the value for which an item was bought; larger is better, in [0, 1].

    Formula
    -------
    DCG / IDCG, DCG = Σ_{i ≤ k} w_i h_i / log2(i + 1), where w_i is the value in `true` of the item
    at rank i and h_i = 1 if it is a hit. IDCG is the same sum over the relevant items by descending
    value. Undefined where these have no value.

    Notes
    -----
    Use it when valuable purchases should be near the top. Each list is divided by its own ideal, so
    the size of the basket is lost; take `revenue` for that. When one item of a basket is far more
    expensive than the others, the value is nearly the discount at the rank of that item.

    References
    ----------
    Järvelin & Kekäläinen (2002), ACM TOIS 20(4), with values as gains.

    Examples
    --------
    >>> true = pd.DataFrame({"user_id": [1, 1], "item_id": ["a", "b"], "price": [10.0, 30.0]})
    >>> pred = pd.DataFrame({"user_id": [1, 1], "item_id": ["b", "a"]})
    >>> rd.money_ndcg(true, pred, k=2, value_col="price", items=true[["item_id", "price"]])
    1.0

    Parameters
    ----------
    {negative}
    """
    bought = lists.values.checked(negative).true
    ideal = lists.sum_best(bought, lambda hits: hits.gain / np.log2(hits.rank + 1))
    return ratio(lists.sum(bought[lists.hits.true_place] / np.log2(lists.hits.rank + 1)), ideal)
