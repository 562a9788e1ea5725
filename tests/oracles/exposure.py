"""Oracles of the exposure family."""

import math
from collections import Counter

from oracles.lists import items_of
from oracles.numbers import NAN, average, ratio
from oracles.registry import oracle


def exposure(lists):
    """{item: times recommended}."""
    return Counter(i for one in lists.values() for i in items_of(one))


@oracle(of_all=True)
def coverage(lists):
    """Share of the catalogue that is recommended."""
    return len(set(exposure(lists)) & set(lists.world.items)) / len(lists.world.items)


@oracle(of_all=True)
def user_coverage(lists):
    """Share of lists that are not empty."""
    return sum(one.m > 0 for one in lists.values()) / len(lists)


@oracle(of_all=True)
def gini(lists):
    """Mean absolute difference of two items' exposure over twice the mean."""
    count = exposure(lists)
    x = [count[i] for i in lists.world.items]
    return ratio(sum(abs(a - b) for a in x for b in x), 2 * len(x) * sum(x))


@oracle(of_all=True)
def entropy(lists, *, normalize=False):
    """Bits of the shares of exposure."""
    count = exposure(lists)
    total = sum(count.values())
    if not total:
        return NAN
    value = sum(-n / total * math.log2(n / total) for n in count.values())
    return ratio(value, math.log2(len({*count, *lists.world.items}))) if normalize else value


@oracle(of_all=True)
def personalization(lists):
    """1 − mean overlap of two lists; d is k, or the length of the longest list."""
    filled = [one for one in lists.values() if one.m]
    if len(filled) < 2:
        return NAN
    d = max(one.m for one in filled)
    sets = [set(items_of(one)) for one in filled]
    return 1 - average([len(sets[i] & sets[j]) / d for j in range(len(sets)) for i in range(j)])


@oracle(of_all=True)
def hhi(lists):
    """Σ share²."""
    count = exposure(lists)
    total = sum(count.values())
    return sum((n / total) ** 2 for n in count.values()) if total else NAN
