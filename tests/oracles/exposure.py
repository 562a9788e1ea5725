"""Oracles of the exposure family."""

import math
from collections import Counter

from oracles.lists import items_of
from oracles.numbers import NAN, average, choose, ratio
from oracles.registry import oracle


def exposure(lists):
    """{item: times recommended}."""
    return Counter(i for one in lists.values() for i in items_of(one))


def at_rank(discount, p, rank):
    """Weight of a rank."""
    return choose(
        "discount",
        discount,
        {"none": 1.0, "log": 1 / math.log2(rank + 1), "geometric": p ** (rank - 1)},
    )


@oracle(of_all=True)
def coverage(lists, *, normalize=True):
    """Share, or number, of the items of the catalogue that are recommended."""
    found = len(set(exposure(lists)) & set(lists.world.items))
    return found / len(lists.world.items) if normalize else float(found)


@oracle(of_all=True)
def user_coverage(lists):
    """Share of lists that are not empty."""
    return sum(one.m > 0 for one in lists.values()) / len(lists)


@oracle(of_all=True)
def gini(lists, *, discount="none", p=0.85):
    """Mean absolute difference of two items' exposure over twice the mean."""
    count = Counter()
    for one in lists.values():
        for rank, item in enumerate(items_of(one), start=1):
            count[item] += at_rank(discount, p, rank)
    x = [count[i] for i in lists.world.items]
    return ratio(sum(abs(a - b) for a in x for b in x), 2 * len(x) * sum(x))


@oracle(of_all=True)
def entropy(lists, *, normalize=False, log_base=2, divisor=None):
    """Entropy of the shares of exposure."""
    count = exposure(lists)
    total = sum(count.values())
    if not total:
        return NAN
    value = sum(-n / total * math.log2(n / total) for n in count.values())
    if normalize:
        return ratio(value, math.log2(len({*count, *lists.world.items})))
    return (
        value
        / math.log2(math.e if log_base == "e" else log_base)
        / (len(count) if divisor == "items" else 1)
    )


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
