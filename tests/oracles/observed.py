"""Oracles of the metrics that count a relevant item 1/propensity, one list at a time."""

import math

from oracles.lists import ranks
from oracles.numbers import ratio
from oracles.ranking import transform, weight


def v(row):
    """What a row of `true` counts."""
    return 1 / row.propensity


def relevant_v(one):
    """v of the relevant items, largest first."""
    return sorted((v(t) for t in one.relevant), reverse=True)


def hit_v(one):
    return [(i, v(s.true)) for i, s in ranks(one) if s.hit]


def possible(one, kind):
    """Σ v over the relevant items, or over the best min(k, n) of them."""
    return sum({"relevant": relevant_v(one), "achievable": relevant_v(one)[: one.k]}[kind])


def recall(one, *, divisor="relevant"):
    """Σ v of the hits / Σ v of the relevant items (Yang et al. 2018; recpack's inverse propensity
    scores)."""
    return ratio(sum(x for _, x in hit_v(one)), possible(one, divisor))


def precision(one, *, divisor="k"):
    """Σ v of the hits / (d times the mean v of the best min(k, n) relevant items)."""
    best = relevant_v(one)[: one.k]
    if divisor == "achievable":
        return ratio(sum(x for _, x in hit_v(one)), sum(best))
    return sum(x for _, x in hit_v(one)) / (one.k * (sum(best) / len(best))) if best else 0.0


def mapr(one, *, normalizer="relevant"):
    """Σ v · P@i over the hits / Σ v, with P@i the plain share of hits in ranks 1 to i."""
    total = sum(x * sum(s.hit for s in one.ranked[:i]) / i for i, x in hit_v(one))
    return ratio(total, possible(one, normalizer))


def mrr(one, *, of="first"):
    """v / rank of the first hit / the largest v; of="all": Σ v / rank of the hits / Σ v."""
    if of == "all":
        return ratio(sum(x / i for i, x in hit_v(one)), sum(relevant_v(one)))
    if not hit_v(one):
        return 0.0
    rank, first = hit_v(one)[0]
    return first / rank / relevant_v(one)[0]


def ndcg(one, *, gain="linear", discount="log", log_base=2):
    """Σ gain · v · disc(i) / the same sum over the best products."""
    found = sum(
        transform(s.gain, gain) * v(s.true) * weight(i, discount, log_base)
        for i, s in ranks(one)
        if s.hit
    )
    best = sorted((transform(t.gain, gain) * v(t) for t in one.relevant), reverse=True)[: one.k]
    return ratio(
        found, math.fsum(x * weight(i, discount, log_base) for i, x in enumerate(best, start=1))
    )


OBSERVED = {"recall": recall, "precision": precision, "mapr": mapr, "mrr": mrr, "ndcg": ndcg}
