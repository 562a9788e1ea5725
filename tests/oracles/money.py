"""Oracles of the money family."""

import math

from oracles.lists import ranks
from oracles.numbers import ratio
from oracles.registry import oracle


def total_value(rows):
    """Σ value, with an error when a row has none."""
    values = [row.value for row in rows]
    if None in values:
        raise ValueError("needs values")
    return sum(values)


@oracle
def money_precision(one):
    """Σ v_i h_i / Σ v_i over the recommended."""
    return ratio(total_value([s for s in one.first_k if s.hit]), total_value(one.first_k))


@oracle
def money_recall(one):
    """Σ v_i h_i as recommended / Σ v over the relevant items as bought."""
    return ratio(total_value([s for s in one.first_k if s.hit]), total_value(one.relevant))


@oracle
def revenue(one):
    """Σ v_i h_i as recommended."""
    return total_value([s for s in one.first_k if s.hit])


@oracle
def money_ndcg(one):
    """Σ v_i h_i / log2(i + 1) over the same sum for the best min(k, n) values, all values as
    bought."""
    # As recommended, a hit could be worth more than in the ideal list and push the value above 1.
    total_value(one.relevant)
    found = sum(s.true.value / math.log2(i + 1) for i, s in ranks(one) if s.hit)
    best = sorted((t.value for t in one.relevant), reverse=True)[: one.k]
    return ratio(found, sum(v / math.log2(i + 1) for i, v in enumerate(best, start=1)))
