"""Rating error: how far is the score of a recommended item from the rating that the user gave?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from ..inputs.sorting import exact_sums
from ..matching.counts import Counts, ListCounts, Sum
from ..matching.hits import ratio
from ..matching.lists import Lists
from .metric import NOT_NEGATIVE, metric

# ------------------------------------------------------------------------------------------
# The rated recommendations, and losses of their scores: means over the rows of a list, and over
# those of all lists.
#
# The rows that count are the recommended items that have a rating, or a label, in `true`,
# whatever their rank.


LOSS: dict[str, Any] = {"bounds": NOT_NEGATIVE, "better": "smaller", "cut": False}
EXPLAINED: dict[str, Any] = {"bounds": (None, 1.0), "cut": False}


class Rated(NamedTuple):
    """The rated recommendations that have a score, one entry each: list, rating, score, and whether
    it is relevant."""

    list: ndarray
    rating: ndarray
    score: ndarray
    relevant: ndarray

    @property
    def error(self) -> ndarray:
        return self.score - self.rating


def rated_rows(lists: Lists) -> Rated:
    """Return the rated recommendations of all lists."""
    matched = lists.matched
    judged = lists.judged
    score = matched.scores(matched.rows(judged.place))
    rating = matched.ratings(matched.true_lists.rows(judged.true_place))
    some = ~np.isnan(score - rating)
    return Rated(judged.list[some], rating[some], score[some], judged.gain[some] > 0)


def _list_of_rated(lists: Lists) -> ndarray:
    return lists.once(rated_rows).list


def rated_of(counts: ListCounts) -> Rated:
    """Return the rated recommendations of one `by` value."""
    rated = counts.lists.once(rated_rows)
    mine = counts.among(_list_of_rated)
    return Rated(*(array[mine] for array in rated))


def squared_error(rated: Rated) -> ndarray:
    return rated.error**2


def mean_loss(lists: Lists, loss: Callable[[Rated], ndarray]) -> ndarray:
    """Return the mean loss of the rated recommendations of each list."""
    rated = lists.once(rated_rows)
    total = np.bincount(rated.list, weights=loss(rated), minlength=len(lists))
    return ratio(total, np.bincount(rated.list, minlength=len(lists)))


def loss_sum(loss: Callable[[Rated], ndarray]) -> Sum:
    """Return the sum of the losses of all lists, and how many there are."""
    return Sum(loss.__name__, partial(_total_loss, loss), "lists")


def _total_loss(loss: Callable[[Rated], ndarray], counts: ListCounts) -> ndarray:
    losses = loss(rated_of(counts))
    return np.append(exact_sums(losses), len(losses))


def pooled_loss(counts: Counts, loss: Callable[[Rated], ndarray]) -> float:
    return float(ratio(*counts.summed(*loss_sum(loss))))


# ------------------------------------------------------------------------------------------
# Rating error: how far is the score of a recommended item from the rating that the user gave it?
#
# The rows that count are the recommended items that have a rating in `true`, whatever their rank.
# `relevance_col` names the column of ratings in `true`. The score that orders `pred` is the
# predicted rating.


def absolute_error(rated: Rated) -> ndarray:
    return np.abs(rated.error)


def _rating_moments(counts: ListCounts) -> ndarray:
    """Number of rated recommendations; sums of errors, ratings, and the squares of both."""
    rated = rated_of(counts)
    values = (rated.error, rated.rating, rated.error**2, rated.rating**2)
    return np.concatenate([[len(rated.error)], *(exact_sums(one) for one in values)])


RATING_MOMENTS = Sum("moments of errors and ratings", _rating_moments, "lists")


def _pooled_explained(counts: Counts, centered: bool) -> float:
    """Return 1 − the squares of the errors, `centered` or not, over those of the ratings around
    their mean."""
    n, error, rating, errors, ratings = counts.summed(*RATING_MOMENTS)
    spread = ratings - ratio(rating**2, n)
    if not spread > 1e-12 * ratings:  # all ratings are equal, but for rounding
        return np.nan
    return float(1.0 - (errors - centered * error**2 / n) / spread)


def _explained_of_lists(lists: Lists, centered: bool) -> ndarray:
    """The same for each list."""
    rated = lists.once(rated_rows)
    of_list = rated.list
    n = np.bincount(rated.list, minlength=len(lists))

    def squares(values: ndarray, centered: bool) -> ndarray:
        if centered:
            first = np.zeros(len(lists))
            first[of_list[::-1]] = values[::-1]
            values = values - first[of_list]  # so that equal values are exactly 0
            values = values - ratio(np.bincount(of_list, values, len(lists)), n)[of_list]
        return np.bincount(of_list, values**2, len(lists))

    return 1.0 - ratio(squares(rated.error, centered), squares(rated.rating, True))


@metric(**LOSS)
def rmse(lists: Lists) -> ndarray:
    """Root mean squared error of the predicted ratings of a list; smaller is better, at least 0. k
    is ignored.

    Formula
    -------
    √(Σ (s_i − r_i)² / n) over the n recommended items with a rating r_i (`relevance_col` of
    `true`), where s_i is the score in `pred`. Undefined for a list without rated items. The mean is
    over lists; `pooled_rmse` is over all ratings.

    Notes
    -----
    Use it when the score itself is used, as predicted stars or predicted demand. Only rated items
    count, whatever their rank, so it says little about a ranked list; take `ndcg` there. Large
    errors count most. A user with one rating weighs as much as a user with a hundred; `pooled_rmse`
    weighs all ratings equally.

    References
    ----------
    scikit-learn `root_mean_squared_error`, per user.

    Examples
    --------
    >>> rd.rmse({"u": {"a": 5, "b": 1}}, {"u": {"a": 4, "b": 2, "c": 3}})
    1.0
    """
    return np.sqrt(mean_loss(lists, squared_error))


@metric(**LOSS)
def mae(lists: Lists) -> ndarray:
    """Mean absolute error of the predicted ratings of a list; smaller is better, at least 0. k is
    ignored.

    Formula
    -------
    Σ |s_i − r_i| / n over the n recommended items with a rating r_i (`relevance_col` of `true`),
    where s_i is the score in `pred`. Undefined for a list without rated items. The mean is over
    lists; `pooled_mae` is over all ratings.

    Notes
    -----
    Use it like `rmse` when one large error should not outweigh several small ones, and when the
    unit of the ratings should be kept. Only rated items count, so it says little about a ranked
    list. It weighs users equally; `pooled_mae` weighs ratings equally.

    References
    ----------
    scikit-learn `mean_absolute_error`, per user.

    Examples
    --------
    >>> rd.mae({"u": {"a": 5, "b": 1}}, {"u": {"a": 4, "b": 1, "c": 3}})
    0.5
    """
    return mean_loss(lists, absolute_error)


@metric(**LOSS, per="item", sums=(loss_sum(squared_error),))
def pooled_rmse(counts: Counts) -> float:
    """Root mean squared error of all predicted ratings together; smaller is better, at least 0. k
    is ignored.

    Formula
    -------
    √(Σ (s_i − r_i)² / n) over all n rated recommendations of the population, as in `rmse`.

    Notes
    -----
    Use it to compare with published numbers, which nearly always pool all ratings. Users with many
    ratings rule it; `rmse` weighs users equally. It has no value per user, so it can be joined to
    no experiment, and `weight_col`, which weighs lists, does not change it.

    References
    ----------
    scikit-learn `root_mean_squared_error`; recommenders `rmse`.

    Examples
    --------
    >>> rd.pooled_rmse(
    ...     {"u": {"a": 5, "b": 1}, "v": {"a": 3}}, {"u": {"a": 4, "b": 2}, "v": {"a": 5}}
    ... ).__round__(4)
    1.4142
    """
    return float(np.sqrt(pooled_loss(counts, squared_error)))


@metric(**LOSS, per="item", sums=(loss_sum(absolute_error),))
def pooled_mae(counts: Counts) -> float:
    """Mean absolute error of all predicted ratings together; smaller is better, at least 0. k is
    ignored.

    Formula
    -------
    Σ |s_i − r_i| / n over all n rated recommendations of the population, as in `mae`.

    Notes
    -----
    Use it to compare with published numbers, which nearly always pool all ratings. Users with many
    ratings rule it; `mae` weighs users equally. It has no value per user, so it can be joined to no
    experiment, and `weight_col`, which weighs lists, does not change it.

    References
    ----------
    scikit-learn `mean_absolute_error`; recommenders `mae`.

    Examples
    --------
    >>> rd.pooled_mae(
    ...     {"u": {"a": 5, "b": 1}, "v": {"a": 3}}, {"u": {"a": 4, "b": 1}, "v": {"a": 5}}
    ... )
    1.0
    """
    return pooled_loss(counts, absolute_error)


@metric(**LOSS)
def mse(lists: Lists) -> ndarray:
    """Mean squared error of the predicted ratings of a list; smaller is better, at least 0. k is
    ignored.

    Formula
    -------
    Σ (s_i − r_i)² / n over the n recommended items with a rating r_i, as in `rmse`, which is its
    root. Undefined for a list without rated items. The mean is over lists; `pooled_mse` is over all
    ratings.

    Notes
    -----
    Use it where errors are added up or compared with a variance, as in a decomposition into bias
    and variance. Its unit is the square of the unit of the ratings, so report `rmse` to people.

    References
    ----------
    scikit-learn `mean_squared_error`, per user.

    Examples
    --------
    >>> rd.mse({"u": {"a": 5, "b": 1}}, {"u": {"a": 3, "b": 1, "c": 3}})
    2.0
    """
    return mean_loss(lists, squared_error)


@metric(**LOSS, per="item", sums=(loss_sum(squared_error),))
def pooled_mse(counts: Counts) -> float:
    """Mean squared error of all predicted ratings together; smaller is better, at least 0. k is
    ignored.

    Formula
    -------
    Σ (s_i − r_i)² / n over all n rated recommendations of the population, as in `mse`.

    Notes
    -----
    Use it to compare with published numbers, which nearly always pool all ratings. Users with many
    ratings rule it; `mse` weighs users equally. `weight_col`, which weighs lists, does not change
    it.

    References
    ----------
    scikit-learn `mean_squared_error`.

    Examples
    --------
    >>> rd.pooled_mse(
    ...     {"u": {"a": 5, "b": 1}, "v": {"a": 3}}, {"u": {"a": 4, "b": 2}, "v": {"a": 5}}
    ... )
    2.0
    """
    return pooled_loss(counts, squared_error)


@metric(**EXPLAINED)
def r2(lists: Lists) -> ndarray:
    """Coefficient of determination of the predicted ratings of a list; larger is better, at most 1.
    k is ignored.

    Formula
    -------
    1 − Σ (s_i − r_i)² / Σ (r_i − r̄)² over the recommended items of the list with a rating r_i,
    where s_i is the score and r̄ the mean of the ratings. Undefined for a list whose ratings are
    all equal.

    Notes
    -----
    Use it to ask whether the scores predict better than the list's own mean rating, which has the
    value 0; worse predictions are below 0 without limit. With few ratings in a list a mean over
    lists is ruled by its worst lists, so take `pooled_r2` there. It punishes a constant offset,
    which `explained_variance` does not.

    References
    ----------
    scikit-learn `r2_score`, per user, which gives 1 or 0 where all ratings are equal.

    Examples
    --------
    >>> rd.r2({"u": {"a": 5, "b": 1}}, {"u": {"a": 4, "b": 2}})
    0.75
    """
    return _explained_of_lists(lists, centered=False)


@metric(**EXPLAINED, per="item", sums=(RATING_MOMENTS,))
def pooled_r2(counts: Counts) -> float:
    """Coefficient of determination of all predicted ratings together; larger is better, at most 1.
    k is ignored.

    Formula
    -------
    1 − Σ (s_i − r_i)² / Σ (r_i − r̄)² over all rated recommendations of the population. Undefined
    if all ratings are equal.

    Notes
    -----
    Use it to ask whether the scores predict better than the mean of all ratings. A model that knows
    only which users rate high gets a good value; `r2` compares within each user. `weight_col` does
    not change it.

    References
    ----------
    scikit-learn and recommenders `r2_score`, `rsquared`.

    Examples
    --------
    >>> rd.pooled_r2({"u": {"a": 5, "b": 1}, "v": {"a": 3}}, {"u": {"a": 4, "b": 2}, "v": {"a": 3}})
    0.75
    """
    return _pooled_explained(counts, centered=False)


@metric(**EXPLAINED)
def explained_variance(lists: Lists) -> ndarray:
    """Share of the variance of a list's ratings that the scores explain; larger is better, at most
    1. k is ignored.

    Formula
    -------
    1 − Σ (e_i − ē)² / Σ (r_i − r̄)² over the recommended items of the list with a rating r_i, where
    e_i = s_i − r_i is the error of the score, and ē and r̄ are means. Undefined for a list whose
    ratings are all equal.

    Notes
    -----
    Use it instead of `r2` where a constant offset of the scores does no harm, as for a ranking. It
    cannot tell that all predictions are one star too high; `r2` and `mae` do.

    References
    ----------
    scikit-learn `explained_variance_score`, per user; recommenders `exp_var`.

    Examples
    --------
    >>> rd.explained_variance({"u": {"a": 5, "b": 1}}, {"u": {"a": 4, "b": 0}})
    1.0
    """
    return _explained_of_lists(lists, centered=True)


@metric(**EXPLAINED, per="item", sums=(RATING_MOMENTS,))
def pooled_explained_variance(counts: Counts) -> float:
    """Share of the variance of all ratings that the scores explain; larger is better, at most 1. k
    is ignored.

    Formula
    -------
    1 − Σ (e_i − ē)² / Σ (r_i − r̄)² over all rated recommendations of the population, as in
    `explained_variance`. Undefined if all ratings are equal.

    Notes
    -----
    Use it to compare with published numbers, which pool all ratings. Like `explained_variance` it
    does not see a constant offset. `weight_col` does not change it.

    References
    ----------
    scikit-learn `explained_variance_score`; recommenders `exp_var`.

    Examples
    --------
    >>> rd.pooled_explained_variance(
    ...     {"u": {"a": 5, "b": 1}, "v": {"a": 3}}, {"u": {"a": 6, "b": 2}, "v": {"a": 4}}
    ... )
    1.0
    """
    return _pooled_explained(counts, centered=True)
