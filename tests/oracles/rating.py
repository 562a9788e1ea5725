"""Oracles of the rating family."""

import math

from oracles.numbers import NAN, average
from oracles.registry import oracle


def errors(one):
    """Errors of the recommended items (all of them, whatever k) that are rated and scored."""
    pairs = [(one.user, s.item) for s in one.ranked if s.true is not None]
    found = [one.world.scores[p] - one.world.ratings[p] for p in pairs if one.world.scores[p] is not None]
    return [e for e in found if not math.isnan(e)]


@oracle
def rmse(one):
    """√ mean squared error."""
    found = errors(one)
    return math.sqrt(average([e * e for e in found])) if found else NAN


@oracle
def mae(one):
    """Mean absolute error."""
    return average([abs(e) for e in errors(one)])


@oracle(of_all=True)
def pooled_rmse(lists):
    """rmse over all lists' ratings."""
    found = [e for one in lists.values() for e in errors(one)]
    return math.sqrt(average([e * e for e in found])) if found else NAN


@oracle(of_all=True)
def pooled_mae(lists):
    """mae over all lists' ratings."""
    return average([abs(e) for one in lists.values() for e in errors(one)])
