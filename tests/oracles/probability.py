"""Oracles of the probability family."""

import math

from oracles.numbers import average, ratio
from oracles.rating import all_rated, mean_square, rated
from oracles.registry import oracle


def mean_log_loss(pairs):
    """Mean of −ln of the probability that was given to what happened, kept 2⁻⁵² from 0 and 1."""
    clipped = [(y, min(max(p, 2**-52), 1 - 2**-52)) for y, p in pairs]
    return average([-(y * math.log(p) + (1 - y) * math.log(1 - p)) for y, p in clipped])


@oracle
def log_loss(one):
    """Mean log loss of the labelled items."""
    return mean_log_loss(rated(one))


@oracle(of_all=True)
def pooled_log_loss(lists):
    """log_loss over all lists' labels."""
    return mean_log_loss(all_rated(lists))


@oracle
def brier(one):
    """Mean squared error of the probabilities."""
    return mean_square(rated(one))


@oracle(of_all=True)
def pooled_brier(lists):
    """brier over all lists' labels."""
    return mean_square(all_rated(lists))


@oracle(of_all=True)
def pooled_auc(lists):
    """Share of all pairs of a relevant and another item that are in the right order; ties count
    half."""
    good = [s for y, s in all_rated(lists) if y > 0]
    bad = [s for y, s in all_rated(lists) if not y > 0]
    return ratio(sum((g > b) + (g == b) / 2 for g in good for b in bad), len(good) * len(bad))
