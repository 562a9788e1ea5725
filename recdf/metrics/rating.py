"""Rating error: how far is the score of a recommended item from the rating that the user gave it?

The rows that count are the recommended items that have a rating in `true`, whatever their rank. `relevance_col` names
the column of ratings in `true`. The score that orders `pred` is the predicted rating.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..errors import OptionError
from ..inputs.sorting import offsets
from ..inputs.sums import exact_sums
from ..matching.counts import Counts, ListCounts, Sum
from ..matching.hits import ratio
from ..matching.lists import Lists
from .metric import metric


def _errors(lists: Lists) -> tuple[np.ndarray, np.ndarray]:
    """List and error of each rated recommendation that has a score."""
    matched, judged = lists.matched, lists.judged
    if matched.rating is None:
        raise OptionError("needs ⟦+relevance_col=⟧ (the rating in true)")
    error = matched.rating.predicted()[judged.place] - matched.rating.given()[judged.true_place]
    scored = ~np.isnan(error)
    return judged.list[scored], error[scored]


def _errors_by_value(lists: Lists) -> tuple[np.ndarray, np.ndarray]:
    """The errors, sorted by `by` value, and where those of each value begin. They are sorted once for all values."""
    cache, key = lists.matched.cache, ("errors by value", lists.cut)
    if key not in cache:
        of_list, error = _errors(lists)
        value = lists.matched.list_by[of_list]
        n_errors = np.bincount(value, minlength=len(lists.matched.by))
        cache[key] = offsets(n_errors), error[np.argsort(value, kind="stable")]
    found: tuple[np.ndarray, np.ndarray] = cache[key]
    return found


def _mean_error(lists: Lists, power: int) -> np.ndarray:
    of_list, error = _errors(lists)
    total = np.bincount(of_list, weights=np.abs(error) ** power, minlength=len(lists))
    return ratio(total, np.bincount(of_list, minlength=len(lists))) ** (1 / power)


def _errors_to(power: int, counts: ListCounts) -> np.ndarray:
    """Sum of the errors to some power, and how many there are."""
    start, error = _errors_by_value(counts.lists)
    mine = np.abs(error[start[counts.by] : start[counts.by + 1]]) ** power
    return np.append(exact_sums(mine), len(mine))


SQUARED = Sum("squared errors", partial(_errors_to, 2), "lists")
ABSOLUTE = Sum("absolute errors", partial(_errors_to, 1), "lists")


def _pooled_error(counts: Counts, errors: Sum, power: int) -> float:
    total, n = counts.summed(*errors)
    return float((total / n) ** (1 / power)) if n else float("nan")


@metric(bounds=(0.0, None), better="smaller", cut=False)
def rmse(lists: Lists) -> np.ndarray:
    """Root mean squared error of the predicted ratings of a list; smaller is better, at least 0. k is ignored.

    Formula
    -------
    √(Σ (s_i − r_i)² / n) over the n recommended items with a rating r_i (`relevance_col` of `true`), where s_i is the
    score in `pred`. Undefined for a list without rated items. The mean is over lists; `pooled_rmse` is over all
    ratings.

    Notes
    -----
    Use it when the score itself is used, as predicted stars or predicted demand. Only rated items count, whatever their
    rank, so it says little about a ranked list; take `ndcg` there. Large errors count most. A user with one rating
    weighs as much as a user with a hundred; `pooled_rmse` weighs all ratings equally.

    References
    ----------
    scikit-learn `root_mean_squared_error`, per user.

    Examples
    --------
    >>> rd.rmse({"u": {"a": 5, "b": 1}}, {"u": {"a": 4, "b": 2, "c": 3}})
    1.0
    """
    return _mean_error(lists, 2)


@metric(bounds=(0.0, None), better="smaller", cut=False)
def mae(lists: Lists) -> np.ndarray:
    """Mean absolute error of the predicted ratings of a list; smaller is better, at least 0. k is ignored.

    Formula
    -------
    Σ |s_i − r_i| / n over the n recommended items with a rating r_i (`relevance_col` of `true`), where s_i is the score
    in `pred`. Undefined for a list without rated items. The mean is over lists; `pooled_mae` is over all ratings.

    Notes
    -----
    Use it like `rmse` when one large error should not outweigh several small ones, and when the unit of the ratings
    should be kept. Only rated items count, so it says little about a ranked list. It weighs users equally; `pooled_mae`
    weighs ratings equally.

    References
    ----------
    scikit-learn `mean_absolute_error`, per user.

    Examples
    --------
    >>> rd.mae({"u": {"a": 5, "b": 1}}, {"u": {"a": 4, "b": 1, "c": 3}})
    0.5
    """
    return _mean_error(lists, 1)


@metric(bounds=(0.0, None), better="smaller", cut=False, per="item", sums=(SQUARED,))
def pooled_rmse(counts: Counts) -> float:
    """Root mean squared error of all predicted ratings together; smaller is better, at least 0. k is ignored.

    Formula
    -------
    √(Σ (s_i − r_i)² / n) over all n rated recommendations of the population, as in `rmse`.

    Notes
    -----
    Use it to compare with published numbers, which nearly always pool all ratings. Users with many ratings rule it;
    `rmse` weighs users equally. It has no value per user, so it can be joined to no experiment, and `weight_col`, which
    weighs lists, does not change it.

    References
    ----------
    scikit-learn `root_mean_squared_error`; recommenders `rmse`.

    Examples
    --------
    >>> rd.pooled_rmse({"u": {"a": 5, "b": 1}, "v": {"a": 3}}, {"u": {"a": 4, "b": 2}, "v": {"a": 5}}).__round__(4)
    1.4142
    """
    return _pooled_error(counts, SQUARED, 2)


@metric(bounds=(0.0, None), better="smaller", cut=False, per="item", sums=(ABSOLUTE,))
def pooled_mae(counts: Counts) -> float:
    """Mean absolute error of all predicted ratings together; smaller is better, at least 0. k is ignored.

    Formula
    -------
    Σ |s_i − r_i| / n over all n rated recommendations of the population, as in `mae`.

    Notes
    -----
    Use it to compare with published numbers, which nearly always pool all ratings. Users with many ratings rule it;
    `mae` weighs users equally. It has no value per user, so it can be joined to no experiment, and `weight_col`, which
    weighs lists, does not change it.

    References
    ----------
    scikit-learn `mean_absolute_error`; recommenders `mae`.

    Examples
    --------
    >>> rd.pooled_mae({"u": {"a": 5, "b": 1}, "v": {"a": 3}}, {"u": {"a": 4, "b": 1}, "v": {"a": 5}})
    1.0
    """
    return _pooled_error(counts, ABSOLUTE, 1)
