"""Responses: what users did with the items that they were shown. Metrics of clicks and purchases,
and of their rates.

The columns `clicks` and `purchases` of `true`, which `from_impressions` writes, say what was
clicked and what was bought. If `true` has neither column, every hit counts. If it has only the
column that a metric does not need, that is an error.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy import ndarray

from ..errors import DataError
from ..matching.hits import ratio
from ..matching.lists import Lists
from .metric import NOT_NEGATIVE, metric

# Each column of `true`, and the other one: where `true` has only one of them, hits are of that kind
# alone.
OTHER = {"clicks": "purchases", "purchases": "clicks"}


def _answered(lists: Lists, column: str) -> ndarray:
    """Number of shown items with a response, for each list. An item with a share of an event counts
    that share."""
    numbers = lists.matched.responses(column)
    if numbers is None:
        other = OTHER[column]
        if lists.matched.responses(other) is not None:
            raise DataError(
                f"true has a column {other!r} but no column {column!r}, which this metric counts; "
                f"pass {column}= to from_impressions, or give true a column {column!r}"
            )
        return lists.n_hits
    judged = lists.judged
    rows = lists.matched.true_lists.rows(judged.true_place)
    return lists.sum(np.minimum(numbers[rows], 1.0), judged)


@metric(bounds=NOT_NEGATIVE, better=None)
def shown(lists: Lists) -> ndarray:
    """Number of items shown in the first k; a count, at least 0, and the denominator of `ctr`.

    Formula
    -------
    min(n, k), where n is the number of items that are recommended in the list.

    Notes
    -----
    Use it as the denominator of a ratio such as `{"ctr": ("clicked@10", "shown@10")}`, in which a
    list counts by its length. It says nothing about quality: a longer list is not a better one.

    References
    ----------
    Field usage: impressions.

    Examples
    --------
    >>> rd.shown({"u": ["a"]}, {"u": ["a", "b", "c"]}, k=2)
    2.0
    """
    return lists.n_shown


@metric(bounds=NOT_NEGATIVE)
def clicked(lists: Lists) -> ndarray:
    """Number of items in the first k that were clicked; larger is better, at least 0. The numerator
    of `ctr`.

    Formula
    -------
    Σ_{i ≤ k} min(c_i, 1), where c_i is the value of the column `clicks` of `true` for the item at
    rank i. Several clicks on an item count once, and a share of a click counts that share. Without
    such a column, it is the number of hits.

    Notes
    -----
    Use it as the numerator of the click-through rate, or in an experiment as clicks per user. Do
    not use it for models that did not produce the log: an item that was never shown cannot be
    clicked.

    References
    ----------
    Field usage: clicked impressions.

    Examples
    --------
    >>> true = pd.DataFrame(
    ...     {"user_id": ["u", "u"], "item_id": ["a", "b"], "relevance": [1, 3], "clicks": [2, 0]}
    ... )
    >>> rd.clicked(true, {"u": ["a", "b", "c"]}, k=3)
    1.0
    """
    return _answered(lists, "clicks")


@metric(bounds=NOT_NEGATIVE)
def bought(lists: Lists) -> ndarray:
    """Number of items in the first k that were bought; larger is better, at least 0. The numerator
    of `conversion`.

    Formula
    -------
    Σ_{i ≤ k} min(p_i, 1), where p_i is the value of the column `purchases` of `true` for the item
    at rank i. Without such a column, it is the number of hits.

    Notes
    -----
    Use it as the numerator of the conversion rate, or in an experiment as purchases per user.
    Purchases are rare, so many users are needed to show a difference. Do not use it for the value
    of the purchases; that is `revenue`.

    References
    ----------
    Field usage: converted impressions.

    Examples
    --------
    >>> true = pd.DataFrame(
    ...     {"user_id": ["u", "u"], "item_id": ["a", "b"], "relevance": [1, 3], "purchases": [0, 2]}
    ... )
    >>> rd.bought(true, {"u": ["a", "b", "c"]}, k=3)
    1.0
    """
    return _answered(lists, "purchases")


@metric
def ctr(lists: Lists) -> ndarray:
    """Click-through rate, the share of the items shown in the first k that were clicked; larger is
    better, in [0, 1].

    Formula
    -------
    clicked / shown, both at k. Undefined for a list without items. In the mean over lists, every
    list has the same weight. For clicks per impression over all lists, compare the ratio `{"ctr":
    ("clicked@10", "shown@10")}`.

    Notes
    -----
    Use it for lists that were really shown, such as the arms of an experiment. Do not use it for a
    model that did not run, since its items had no chance to be clicked; `ope_estimate` is for that.
    It rewards what attracts clicks, so read it beside `conversion` or `revenue`.

    References
    ----------
    Field usage: click-through rate.

    Examples
    --------
    >>> true = pd.DataFrame(
    ...     {"user_id": ["u", "u"], "item_id": ["a", "b"], "relevance": [1, 3], "clicks": [2, 0]}
    ... )
    >>> rd.ctr(true, {"u": ["a", "b", "c", "d"]}, k=4)
    0.25
    """
    return ratio(_answered(lists, "clicks"), lists.n_shown)


@metric(bounds=NOT_NEGATIVE)
def conversion(lists: Lists, *, per: Literal["shown", "clicked"] = "shown") -> ndarray:
    """Conversion rate: items bought in the first k over items shown or clicked; larger is better,
    at least 0.

    Formula
    -------
    bought / shown, or bought / clicked, both at k. Undefined for 0/0. It is above 1 only with
    `per="clicked"`, if items were bought without a click.

    Parameters
    ----------
    per : {"shown", "clicked"}, default "shown"
        What the purchases are divided by.

    Notes
    -----
    Use it where the aim is a purchase: `per="shown"` covers the way from impression to purchase,
    and `per="clicked"` what happens after the click. With few clicks, the latter is undefined for
    most lists; compare a ratio of sums then.

    References
    ----------
    Field usage: conversion rate.

    Examples
    --------
    >>> true = pd.DataFrame(
    ...     {
    ...         "user_id": ["u", "u"],
    ...         "item_id": ["a", "b"],
    ...         "relevance": [1, 3],
    ...         "clicks": [1, 1],
    ...         "purchases": [0, 1],
    ...     }
    ... )
    >>> (
    ...     rd.conversion(true, {"u": ["a", "b", "c", "d"]}, k=4),
    ...     rd.conversion(true, {"u": ["a", "b"]}, per="clicked"),
    ... )
    (0.25, 0.5)
    """
    below = lists.n_shown if per == "shown" else _answered(lists, "clicks")
    return ratio(_answered(lists, "purchases"), below)
