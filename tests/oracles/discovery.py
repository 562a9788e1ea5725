"""Oracles of the discovery family."""

import math
from collections import Counter

from oracles.diversity import sim
from oracles.lists import ranks
from oracles.novelty import by_popularity
from oracles.numbers import NAN, average, ratio
from oracles.registry import oracle


@oracle
def serendipity(
    one, *, of="threshold", threshold=0.7, relevant=True, top=None, similarity="cosine"
):
    """Share of the recommended that is relevant and unexpected, or how unexpected it is."""
    if of == "rank":
        return rank_gained(one, relevant)
    if of == "similarity":
        return unlike_past(one, relevant, similarity)
    past = [one.world.features[i] for i in sorted(one.history) if i in one.world.features]
    known = [s for s in one.first_k if s.item in one.world.features]
    if not past or not known:
        return NAN
    popular = one.world.popular | set(by_popularity(one.world)[: top or 0])
    return average(
        [
            (s.hit or not relevant)
            and s.item not in one.history
            and max(sim(one.world.features[s.item], v, similarity) for v in past)
            < threshold - 1e-12
            and s.item not in popular
            for s in known
        ]
    )


def rank_gained(one, relevant):
    """Mean of how much higher hits stand than by their popularity, in shares of the catalogue."""
    n, count, total = len(one.world.items), Counter(item for _, item in one.world.log), 0.0
    for rank, s in ranks(one):
        q = 1 + len({m for m in count.values() if m > count[s.item]})
        expected = (n + 1 - q) / n if s.item in count else 0.0
        total += (s.hit or not relevant) * max(0.0, (n + 1 - rank) / n - expected)
    return ratio(total, one.m)


def unlike_past(one, relevant, similarity):
    """Mean of h · (1 − mean similarity to the past), 0 for what the user had."""
    everything = similarity == "cooccurrence"
    past = [i for i in one.history if everything or i in one.world.features]
    known = [s for s in one.first_k if everything or s.item in one.world.features]
    if not past or not known:
        return NAN

    def alike(a, b):
        if not everything:
            return sim(one.world.features[a], one.world.features[b], similarity)
        of_a, of_b = one.world.users_of(a), one.world.users_of(b)
        return len(of_a & of_b) / math.sqrt(len(of_a) * len(of_b)) if of_a and of_b else 0.0

    return average(
        [
            (s.hit or not relevant)
            * (s.item not in one.history)
            * (1 - average([alike(s.item, i) for i in past]))
            for s in known
        ]
    )
