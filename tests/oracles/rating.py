"""Oracles of the rating family."""

import math
import statistics

from oracles.numbers import NAN, average
from oracles.registry import oracle


def rated(one):
    """(label, score) of the recommended items (all of them, whatever k) that are rated and
    scored."""
    pairs = [(one.user, s.item) for s in one.ranked if s.true is not None]
    found = [
        (one.world.ratings[p], one.world.scores[p])
        for p in pairs
        if one.world.scores[p] is not None
    ]
    return [(y, s) for y, s in found if not math.isnan(s)]


def all_rated(lists):
    return [pair for one in lists.values() for pair in rated(one)]


def mean_square(pairs):
    return average([(s - y) ** 2 for y, s in pairs])


def explained(pairs, offset):
    """1 − Σ (e − offset)² / Σ (y − ȳ)², where all y are not equal."""
    if len({y for y, _ in pairs}) < 2:
        return NAN
    middle = statistics.mean(y for y, _ in pairs)
    return 1 - sum((s - y - offset) ** 2 for y, s in pairs) / sum(
        (y - middle) ** 2 for y, _ in pairs
    )


def mean_error(pairs):
    return average([s - y for y, s in pairs])


@oracle
def rmse(one):
    """√ mean squared error."""
    return math.sqrt(mean_square(rated(one)))


@oracle
def mse(one):
    """Mean squared error."""
    return mean_square(rated(one))


@oracle
def mae(one):
    """Mean absolute error."""
    return average([abs(s - y) for y, s in rated(one)])


@oracle
def r2(one):
    """1 − squared errors / squared distances to the mean rating."""
    return explained(rated(one), 0.0)


@oracle
def explained_variance(one):
    """r2 of the errors without their mean."""
    return explained(rated(one), mean_error(rated(one)))


@oracle(of_all=True)
def pooled_rmse(lists):
    """rmse over all lists' ratings."""
    return math.sqrt(mean_square(all_rated(lists)))


@oracle(of_all=True)
def pooled_mse(lists):
    """mse over all lists' ratings."""
    return mean_square(all_rated(lists))


@oracle(of_all=True)
def pooled_mae(lists):
    """mae over all lists' ratings."""
    return average([abs(s - y) for y, s in all_rated(lists)])


@oracle(of_all=True)
def pooled_r2(lists):
    """r2 over all lists' ratings."""
    return explained(all_rated(lists), 0.0)


@oracle(of_all=True)
def pooled_explained_variance(lists):
    """explained_variance over all lists' ratings."""
    return explained(all_rated(lists), mean_error(all_rated(lists)))
