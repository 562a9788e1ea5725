"""Probabilities: how good is the score of a recommended item as the probability of a click or a
purchase?

The rows that count are the recommended items that have a label in `true`, whatever their rank.
`relevance_col` names the column of labels in `true`. The score that orders `pred` is the predicted
probability.
"""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from ..errors import DataError, examples
from ..matching.counts import Counts, ListCounts
from ..matching.hits import ratio
from ..matching.lists import Lists
from .metric import metric
from .rating import LOSS, Rated, loss_sum, mean_loss, pooled_loss, rated_of, squared_error

# Probabilities are moved this far from 0 and 1, whose logarithm would be infinite.
SMALLEST_PROBABILITY = 2.0**-52


def _squared_of_probability(rated: Rated) -> ndarray:
    _check_probabilities(rated)
    return squared_error(rated)


def _log_loss(rated: Rated) -> ndarray:
    _check_probabilities(rated)
    p = np.clip(rated.score, SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)
    return -(rated.rating * np.log(p) + (1.0 - rated.rating) * np.log1p(-p))


def _check_probabilities(rated: Rated) -> None:
    """Raise if a label or a predicted probability is not from 0 to 1."""
    for values, what in (
        (rated.rating, "labels (the relevance in true)"),
        (rated.score, "scores of pred"),
    ):
        beyond = values[(values < 0) | (values > 1)]
        if len(beyond):
            raise DataError(
                "log_loss and brier compare probabilities with labels, both from 0 to 1; "
                f"{len(beyond):,} {what} are not: {examples(beyond)}. For ratings take mse or mae"
            )


@metric(**LOSS)
def log_loss(lists: Lists) -> ndarray:
    """Log loss (cross-entropy) of the predicted probabilities of a list; smaller is better, at
    least 0. k is ignored.

    Formula
    -------
    −Σ (y_i ln p_i + (1 − y_i) ln(1 − p_i)) / n over the n recommended items with a label y_i
    (`relevance_col` of `true`), where p_i is the score in `pred`, moved to at least 2⁻⁵² and at
    most 1 − 2⁻⁵². Labels are 0 or 1, or shares between; a label or probability outside [0, 1] is an
    error. Undefined for a list without labelled items.

    Notes
    -----
    Use it when the score is used as a probability, as in bidding or for expected clicks. One
    confident mistake can rule the mean; `brier` is bounded. It does not only ask for the right
    order, so a model that ranks well can have a bad value: read `auc` beside it.

    References
    ----------
    Good (1952), JRSS B 14(1); scikit-learn `log_loss`, per user.

    Examples
    --------
    >>> rd.log_loss({"u": {"a": 1, "b": 0}}, {"u": {"a": 0.5, "b": 0.5}}).__round__(4)
    0.6931
    """
    return mean_loss(lists, _log_loss)


@metric(**LOSS, per="item", sums=(loss_sum(_log_loss),))
def pooled_log_loss(counts: Counts) -> float:
    """Log loss (cross-entropy) of all predicted probabilities together; smaller is better, at least
    0. k is ignored.

    Formula
    -------
    −Σ (y_i ln p_i + (1 − y_i) ln(1 − p_i)) / n over all n labelled recommendations of the
    population, as in `log_loss`.

    Notes
    -----
    Use it for models of clicks, whose published values pool all rows. Users with many rows rule it;
    `log_loss` weighs users equally. It depends on the share of clicks, so compare models on the
    same rows. `weight_col` does not change it.

    References
    ----------
    scikit-learn, recommenders and FuxiCTR `log_loss`, `logloss`.

    Examples
    --------
    >>> rd.pooled_log_loss(
    ...     {"u": {"a": 1, "b": 0}, "v": {"a": 1}}, {"u": {"a": 0.5, "b": 0.5}, "v": {"a": 1}}
    ... )
    0.46209812037329695
    """
    return pooled_loss(counts, _log_loss)


@metric(better="smaller", cut=False)
def brier(lists: Lists) -> ndarray:
    """Brier score, the mean squared error of a list's probabilities; smaller is better, in [0, 1].
    k is ignored.

    Formula
    -------
    Σ (p_i − y_i)² / n over the n recommended items with a label y_i (`relevance_col` of `true`),
    where p_i is the score in `pred`. Labels are 0 or 1, or shares between; a label or probability
    outside [0, 1] is an error. Undefined for a list without labelled items.

    Notes
    -----
    Use it like `log_loss`, when a confident mistake should cost a bounded amount. Where clicks are
    rare it is small for every model, also for one that always says "no click": compare with the
    share of clicks times one minus it.

    References
    ----------
    Brier (1950), Monthly Weather Review 78(1); scikit-learn `brier_score_loss`, per user.

    Examples
    --------
    >>> rd.brier({"u": {"a": 1, "b": 0}}, {"u": {"a": 0.5, "b": 0.5}})
    0.25
    """
    return mean_loss(lists, _squared_of_probability)


@metric(better="smaller", cut=False, per="item", sums=(loss_sum(_squared_of_probability),))
def pooled_brier(counts: Counts) -> float:
    """Brier score of all predicted probabilities together; smaller is better, in [0, 1]. k is
    ignored.

    Formula
    -------
    Σ (p_i − y_i)² / n over all n labelled recommendations of the population, as in `brier`.

    Notes
    -----
    Use it for models of clicks whose rows are pooled. Users with many rows rule it; `brier` weighs
    users equally. `weight_col` does not change it.

    References
    ----------
    Brier (1950), Monthly Weather Review 78(1); scikit-learn `brier_score_loss`.

    Examples
    --------
    >>> rd.pooled_brier(
    ...     {"u": {"a": 1, "b": 0}, "v": {"a": 1}}, {"u": {"a": 0.5, "b": 0}, "v": {"a": 0.5}}
    ... ).__round__(4)
    0.1667
    """
    return pooled_loss(counts, _squared_of_probability)


@metric(cut=False, per="item", sums=())
def pooled_auc(counts: ListCounts) -> float:
    """Area under the ROC curve of all scores of all lists together; larger is better, in [0, 1]. k
    is ignored.

    Formula
    -------
    Share of the pairs of a relevant and a not relevant rated recommendation, of the same list or of
    two, in which the relevant one has the larger score; a pair of equal scores counts half. Rated
    recommendations are those with a row in `true`; relevant is what has a gain above 0
    (`min_relevance`). Undefined if all are relevant, or none is.

    Notes
    -----
    Use it to compare with published values of models of clicks, which pool all rows. It rewards a
    model that only knows which users click more, which helps no user: take `auc`, the mean over
    lists, for a ranking. It compares rows of all lists with each other, so it cannot be added up
    over parts of files or of an engine.

    References
    ----------
    Hanley & McNeil (1982), Radiology 143(1); scikit-learn `roc_auc_score`.

    Examples
    --------
    >>> rd.pooled_auc(
    ...     {"u": {"a": 1, "b": 0}, "v": {"a": 0}}, {"u": {"a": 0.5, "b": 0.2}, "v": {"a": 0.9}}
    ... )
    0.5
    """
    rated = rated_of(counts)
    good = rated.score[rated.relevant]
    bad = np.sort(rated.score[~rated.relevant])
    below = (
        np.searchsorted(bad, good, side="left").sum()
        + np.searchsorted(bad, good, side="right").sum()
    )
    return float(ratio(below / 2, len(good) * len(bad)))
