"""Oracles of the family of responses, for a `true` without columns of clicks and purchases: a hit
is a response."""

from oracles.numbers import ratio
from oracles.registry import oracle


@oracle
def shown(one):
    """How many of the first k there are."""
    return len(one.first_k)


@oracle
def clicked(one):
    """Hits among the first k."""
    return sum(1 for item in one.first_k if item.hit)


@oracle
def bought(one):
    """Hits among the first k."""
    return sum(1 for item in one.first_k if item.hit)


@oracle
def ctr(one):
    """Hits over the items of the first k."""
    return ratio(clicked(one), len(one.first_k))


@oracle
def conversion(one, per="shown"):
    """Hits over the items of the first k, or over the hits."""
    return ratio(bought(one), len(one.first_k) if per == "shown" else clicked(one))
