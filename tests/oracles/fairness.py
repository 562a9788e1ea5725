"""Oracles of the fairness family."""

import math
import statistics
from collections import Counter, defaultdict
from itertools import combinations

from oracles.lists import items_of
from oracles.novelty import had, head_of
from oracles.numbers import NAN, average, choose, ratio
from oracles.registry import oracle


def group_exposure(lists, discount):
    """{group: discounted exposure}, every group of the catalogue."""
    total = {row["group"]: 0.0 for row in lists.world.items.values() if row["group"] is not None}
    for one in lists.values():
        for rank, item in enumerate(items_of(one), start=1):
            group = lists.world.items.get(item, {}).get("group")
            if group is not None:
                total[group] += 1 / math.log2(rank + 1) if discount == "log" else 1.0
    return total


@oracle(of_all=True)
def exposure_share(lists, *, discount="log"):
    """{group: share of the exposure}."""
    total = group_exposure(lists, discount)
    return {group: ratio(e, sum(total.values())) for group, e in total.items()}


@oracle(of_all=True)
def exposure_ratio(lists, *, discount="log", relative_to="relevance"):
    """{group: share of the exposure / share of the relevant items or of the catalogue}."""
    share = exposure_share(lists, discount=discount)
    if relative_to == "relevance":
        due = Counter(
            lists.world.items.get(t.item, {}).get("group")
            for one in lists.values()
            for t in one.relevant
        )
    else:
        due = Counter(row["group"] for row in lists.world.items.values())
    total = sum(n for group, n in due.items() if group is not None)
    return {group: ratio(e, ratio(due[group], total)) for group, e in share.items()}


def grouping(world, group_col, head):
    """A function of an item to its group, None for none."""
    if group_col is not None:
        return lambda item: world.items.get(item, {}).get(group_col)
    popular = head_of(world, head)
    return lambda item: "head" if item in popular else "tail"


def spread(probability):
    """std / mean of the defined values."""
    defined = [p for p in probability if not math.isnan(p)]
    if len(defined) < 2 or not sum(defined):
        return NAN
    return statistics.pstdev(defined) / statistics.mean(defined)


@oracle(of_all=True)
def pop_reo(lists, *, group_col=None, head=0.8):
    """Spread over groups of hits / relevant items."""
    group = grouping(lists.world, group_col, head)
    hits = Counter(group(s.item) for one in lists.values() for s in one.first_k if s.hit)
    relevant = Counter(group(t.item) for one in lists.values() for t in one.relevant)
    return spread([hits[g] / n for g, n in relevant.items() if g is not None])


@oracle(of_all=True)
def pop_rsp(lists, *, group_col=None, head=0.8):
    """Spread over groups of recommendations / candidate pairs; candidates are not in the user's
    history."""
    group = grouping(lists.world, group_col, head)
    recommended, pairs = Counter(), Counter()
    for one in lists.values():
        new = [i for i in lists.world.items if i not in one.history]
        pairs.update(group(i) for i in new)
        recommended.update(group(i) for i in items_of(one) if i in new)
    return spread([recommended[g] / n for g, n in pairs.items() if g is not None])


@oracle
def arp_ratio(one, *, share_of="users"):
    """Mean popularity of the recommended over that of the user's items."""

    def mean(items):
        return average([n / total for n, total in (had(i, one.world, share_of) for i in items)])

    return mean(items_of(one)) / mean(sorted(one.history))


@oracle(of_all=True)
def item_gap(lists, *, stat="mad", gain="linear"):
    """How far apart the groups' means of (gain / times recommended) of items are."""
    gained, times = Counter(), Counter()
    for one in lists.values():
        for s in one.first_k:
            times[s.item] += 1
            gained[s.item] += choose(
                "gain", gain, {"linear": s.gain, "exp2": 2**s.gain - 1, "binary": float(s.hit)}
            )
    of_group = defaultdict(list)
    for item, n in times.items():
        group = lists.world.items.get(item, {}).get("group")
        if group is not None:
            of_group[group].append(gained[item] / n)
    means = [average(values) for values in of_group.values()]
    distances = [abs(a - b) for a, b in combinations(means, 2)]
    if not distances:
        return NAN
    return max(distances) if stat == "gap" else average(distances)


@oracle(of_all=True)
def bias_disparity(lists, *, of="both"):
    """{"g:c": share of c in the lists of g over that in the log of g, minus 1}."""
    groups = {row["group"] for row in lists.world.items.values() if row["group"] is not None}

    def shares(items):
        own = [
            group for i in items if (group := lists.world.items.get(i, {}).get("group")) is not None
        ]
        return {c: ratio(own.count(c), len(own)) for c in groups}

    catalogue, found = shares(lists.world.items), {}
    for g in set(lists.world.user_groups.values()):
        mine = [one for one in lists.values() if lists.world.user_groups.get(one.user) == g]
        shown = shares([i for one in mine for i in items_of(one)])
        had = shares([i for one in mine for i in one.history])
        for c in groups:
            b, s = ratio(shown[c], catalogue[c]), ratio(had[c], catalogue[c])
            found[f"{g}:{c}"] = choose("of", of, {"both": ratio(b, s) - 1, "lists": b, "log": s})
    return found
