"""Oracles of the diversity family."""

import math
from collections import Counter
from dataclasses import replace

from oracles.lists import items_of
from oracles.numbers import NAN, average, ratio
from oracles.registry import ORACLES, oracle


def sim(a, b, kind):
    """Similarity of two feature vectors."""
    if callable(kind):
        return kind(a, b)
    if kind == "cosine":
        below = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
        return sum(x * y for x, y in zip(a, b, strict=True)) / below if below else 0.0
    if kind == "jaccard":
        one, two = ({i for i, x in enumerate(v) if x} for v in (a, b))
        return len(one & two) / len(one | two) if one | two else 0.0
    if kind == "hamming":
        return sum(x == y for x, y in zip(a, b, strict=True)) / len(a)
    raise ValueError(kind)


@oracle
def ils(one, *, similarity="cosine"):
    """Mean similarity of two recommended items with features."""
    vectors = [one.world.features[i] for i in items_of(one) if i in one.world.features]
    return average(
        [sim(vectors[i], vectors[j], similarity) for j in range(len(vectors)) for i in range(j)]
    )


@oracle
def ild(one, *, similarity="cosine"):
    """1 − ils."""
    return 1 - ils(one, similarity=similarity)


def disc(rank, discount, p):
    """disc(rank) of α-DCG."""
    return {"log": 1 / math.log2(rank + 1), "reciprocal": 1 / rank, "geometric": p ** (rank - 1)}[
        discount
    ]


def alpha_dcg(items, relevant, aspects, alpha, discount, p):
    """Σ disc(i) Σ_a rel(i, a) (1 − α)^(earlier relevant items with a)."""
    seen, total = Counter(), 0.0
    for i, item in enumerate(items, start=1):
        if item not in relevant:
            continue
        for a, with_aspect in enumerate(aspects):
            if item in with_aspect:
                total += (1 - alpha) ** seen[a] * disc(i, discount, p)
                seen[a] += 1
    return total


@oracle
def a_ndcg(one, *, alpha=0.5, ideal="greedy", discount="log", p=0.5):
    """α-DCG over that of the greedy ideal, the even one of rs_metrics, or one with all aspects at
    every rank."""
    aspects, relevant = one.world.aspects.get(one.user, []), {t.item for t in one.relevant}
    found = alpha_dcg(
        [s.item if s.hit else None for s in one.first_k], relevant, aspects, alpha, discount, p
    )
    if ideal in ("aspects", "none"):
        n_aspects = sum(bool(relevant & a) for a in aspects)
        if not n_aspects:
            return NAN
        best = (
            sum(disc(i, discount, p) * (1 - alpha) ** (i - 1) for i in range(1, one.k + 1))
            * n_aspects
        )
        return found / best if ideal == "aspects" else found
    if ideal == "greedy":
        left = sorted(i for i in relevant if any(i in a for a in aspects))
        if not left:
            return NAN
        order, seen = [], Counter()
        while left and len(order) < one.k:
            gains = [
                sum((1 - alpha) ** seen[a] for a, s in enumerate(aspects) if item in s)
                for item in left
            ]
            best = left.pop(max(range(len(left)), key=lambda j: (gains[j], j)))
            order.append(best)
            seen.update(a for a, s in enumerate(aspects) if best in s)
        return found / alpha_dcg(order, relevant, aspects, alpha, discount, p)
    aspects = [a for a in aspects if a]
    if not aspects:
        return NAN
    whole = one.m // len(aspects)
    gains = [1.0] * (whole * len(aspects)) + [(1 - alpha) ** whole] * (one.m % len(aspects))
    best = sum(g * disc(i, discount, p) for i, g in enumerate(gains, start=1))
    return found / best if one.m else 0.0


@oracle
def intent_aware(one, *, metric="precision"):
    """Mean over the aspects of the relevant items of the metric with only these items relevant."""
    name, _, inside = metric.removesuffix(")").partition("(")
    params = dict(part.split("=") for part in inside.split(",") if part)
    params = {name: float(value) if value[0].isdigit() else value for name, value in params.items()}
    values = []
    for aspect in one.world.aspects.get(one.user, []):
        if any(t.item in aspect for t in one.relevant):
            judged = [replace(t, gain=t.gain if t.item in aspect else 0.0) for t in one.judged]
            of_item = {t.item: t for t in reversed(judged)}
            ranked = [replace(s, true=of_item.get(s.item)) for s in one.ranked]
            judged.sort(key=lambda t: -t.gain)
            values.append(
                float(ORACLES[name](replace(one, judged=judged, ranked=ranked), **params))
            )
    return average(values)


@oracle
def subtopic_recall(one):
    """Aspects of hits / aspects of relevant items."""
    aspects, relevant = one.world.aspects.get(one.user, []), {t.item for t in one.relevant}
    due = {a for a, s in enumerate(aspects) if s & relevant}
    found = {a for a, s in enumerate(aspects) if s & relevant & set(items_of(one))}
    return ratio(len(found), len(due))
