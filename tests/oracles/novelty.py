"""Oracles of the novelty family."""

import math
from collections import Counter

from oracles.lists import items_of
from oracles.numbers import average, ratio
from oracles.registry import oracle


def had(item, world, share_of):
    """(how many had the item, of how many): users or interactions."""
    if share_of == "users":
        return len(world.users_of(item)), len(world.users)
    return sum(what == item for _, what in world.log), len(world.log)


def in_log(one, divisor):
    """The recommended items, or with divisor="known" those that the log has."""
    known = {item for _, item in one.world.log}
    return [i for i in items_of(one) if divisor != "known" or i in known]


@oracle
def popularity(one, *, share_of="users", unit="share", divisor="shown"):
    """Mean p(i) of the recommended, or mean count or rank share."""
    items = in_log(one, divisor)
    if unit == "share":
        return average([n / total for n, total in (had(i, one.world, share_of) for i in items)])
    count = {item: had(item, one.world, share_of)[0] for _, item in one.world.log}
    if unit == "count":
        return average([float(count.get(i, 0)) for i in items])

    def rank_share(item):
        less = sum(n < count[item] for n in count.values())
        equal = sum(n == count[item] for n in count.values())
        return (less + (equal + 1) / 2) / len(count)

    return average([rank_share(i) if i in count else 0.0 for i in items])


@oracle
def surprisal(one, *, share_of="users", normalize=False, divisor="shown"):
    """Mean −log2 p(i) of the recommended; an unseen item counts as had once."""
    total = had(None, one.world, share_of)[1]
    items = in_log(one, divisor)
    bits = [-math.log2(max(had(i, one.world, share_of)[0], 1) / total) for i in items]
    value = ratio(sum(bits), one.k if divisor == "k" else len(items))
    return value / math.log2(total) if normalize else value


@oracle
def unseen(one):
    """Share of the recommended that is not in the user's log."""
    return ratio(sum(i not in one.history for i in items_of(one)), one.m)


def by_popularity(world):
    count = Counter(item for _, item in world.log)
    return sorted(count, key=lambda i: (-count[i], i))


@oracle
def unexpectedness(one, *, divisor="shown"):
    """1 − share of the recommended that the baseline's first k hold."""
    base = list(dict.fromkeys(one.world.base.get(one.user, [])))[: one.k]
    common = len(set(base) & set(items_of(one)))
    return 1 - ratio(common, one.k if divisor == "k" else one.m)


def discounted_novelty(one, novelty, relevant, discount):
    above = below = 0.0
    for rank, s in enumerate(one.first_k, start=1):
        weight = 1 / math.log2(rank + 1) if discount == "log" else 1.0
        above += weight * novelty(s.item) * (s.hit or not relevant)
        below += weight
    return ratio(above, below)


@oracle
def epc(one, *, relevant=True, discount="log"):
    """Discounted mean of relevance times 1 − p(i), p of users."""

    def novelty(item):
        n, total = had(item, one.world, "users")
        return 1 - n / total

    return discounted_novelty(one, novelty, relevant, discount)


@oracle
def efd(one, *, relevant=True, discount="log"):
    """Discounted mean of relevance times −log2 p(i), p of interactions."""

    def novelty(item):
        n, total = had(item, one.world, "events")
        return -math.log2(max(n, 1) / total)

    return discounted_novelty(one, novelty, relevant, discount)


def head_of(world, share):
    """The fewest most popular items that hold this share of the interactions."""
    count = Counter(item for _, item in world.log)
    head, held = set(), 0
    for item in by_popularity(world):
        if held >= share * len(world.log) - 1e-9:
            break
        head.add(item)
        held += count[item]
    return head


@oracle
def aclt(one, *, head=0.8, tail=None):
    """PredItem items that are not of the head, or that are of the tail."""
    if tail is None:
        return float(sum(i not in head_of(one.world, head) for i in items_of(one)))
    count = Counter(item for _, item in one.world.log)
    if tail >= 1:
        return float(sum(1 <= count[i] <= tail for i in items_of(one)))
    rarest = sorted(count, key=lambda i: (count[i], i))[
        : max(1, math.floor(tail * len(count) + 1e-9))
    ]
    return float(sum(i in rarest for i in items_of(one)))


@oracle
def aplt(one, *, head=0.8, tail=None):
    """aclt / items recommended."""
    return ratio(aclt(one, head=head, tail=tail), one.m)
