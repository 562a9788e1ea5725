"""Oracles of the family of categories."""

import math
from collections import defaultdict

from oracles.exposure import at_rank
from oracles.lists import items_of
from oracles.numbers import NAN, ratio
from oracles.registry import oracle


def category_mix(items, world):
    """Weights of the categories of some items, each item 1 in all."""
    mix = defaultdict(float)
    for item in items:
        own = world.items.get(item, {}).get("category", [])
        for category in own:
            mix[category] += 1 / len(own)
    total = sum(mix.values())
    return {c: w / total for c, w in mix.items()}


@oracle
def categories(one, *, divisor="k"):
    """Distinct categories recommended over k, the items recommended, or the categories there
    are."""
    found = len({c for i in items_of(one) for c in one.world.items.get(i, {}).get("category", [])})
    all_of_them = len({c for row in one.world.items.values() for c in row["category"]})
    return ratio(found, {"k": one.k, "shown": one.m, "catalogue": all_of_them}[divisor])


@oracle
def category_entropy(one, *, discount="none", p=0.85, smoothing=0.0):
    """Bits of the mix of categories recommended, weighted by rank and smoothed over all
    categories."""
    mass = {c: smoothing for row in one.world.items.values() for c in row["category"]}
    some = False
    for rank, item in enumerate(items_of(one), start=1):
        own = one.world.items.get(item, {}).get("category", [])
        for category in own:
            mass[category] += at_rank(discount, p, rank) / len(own)
            some = True
    total = sum(mass.values())
    return sum(-w / total * math.log2(w / total) for w in mass.values() if w) if some else NAN


def kl(p, q):
    return sum(w * math.log(w / q[c]) for c, w in p.items() if w)


@oracle
def calibration(one, *, divergence="kl", smoothing=0.01):
    """Divergence of the mix of categories recommended from that of the user's log rows."""
    p = category_mix([item for who, item in one.world.log if who == one.user], one.world)
    q = category_mix(items_of(one), one.world)
    if not p or not q:
        return NAN
    every = {*p, *q}
    p, q = ({c: mix.get(c, 0.0) for c in every} for mix in (p, q))
    if divergence == "kl":
        return kl(p, {c: (1 - smoothing) * q[c] + smoothing * p[c] for c in every})
    middle = {c: (p[c] + q[c]) / 2 for c in every}
    return (kl(p, middle) + kl(q, middle)) / 2
