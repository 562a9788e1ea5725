"""Oracles of the family of two lists."""

from oracles.lists import items_of
from oracles.numbers import NAN, choose, ratio
from oracles.registry import oracle


def base_of(one):
    return list(dict.fromkeys(one.world.base.get(one.user, [])))


def weighted_overlap(shown, other, p, depth):
    """Mean of |first d of both| / d with the weights p^(d − 1)."""
    weights = [p ** (d - 1) for d in range(1, depth + 1)]
    agreement = [len(set(shown[:d]) & set(other[:d])) / d for d in range(1, depth + 1)]
    return ratio(sum(w * a for w, a in zip(weights, agreement, strict=True)), sum(weights))


@oracle
def rbo(one, *, p=0.9, against="base", normalize=False, unshown="last"):
    """Overlap of the first d of both lists over d, weighted by p^(d − 1)."""
    if against == "base":
        base = base_of(one)
        return weighted_overlap(items_of(one), base[: one.k], p, one.k) if base or one.m else NAN
    shown = [s.item for s in one.ranked]
    place = {item: i for i, item in enumerate(shown)}
    elsewhere = len(shown) if unshown == "last" else -1
    ideal = [
        t.item for t in sorted(one.relevant, key=lambda t: (-t.gain, place.get(t.item, elsewhere)))
    ]
    if not ideal:
        return NAN
    depth = max(len(shown), len(ideal))
    best = weighted_overlap(ideal, ideal, p, depth) if normalize else 1.0
    return weighted_overlap(shown, ideal, p, depth) / best


@oracle
def overlap(one, *, base_k=None, divisor="shown"):
    """Items of both lists over those of one or of either."""
    base = set(base_of(one)[: base_k or one.k])
    both = len(base & set(items_of(one)))
    below = {"shown": one.m, "base": len(base), "union": one.m + len(base) - both}
    return ratio(both, choose("divisor", divisor, below))


@oracle
def least_promoted(one):
    """How far below k the deepest item of the first k stood in the baseline's list."""
    base = base_of(one)
    if not base or not one.m:
        return NAN
    return float(max([0, *(base.index(i) + 1 - one.k for i in items_of(one) if i in base)]))
