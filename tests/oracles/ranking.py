"""Oracles of the ranking family."""

import math

from oracles.lists import ranks
from oracles.numbers import NAN, choose, ratio
from oracles.registry import oracle


def hits_up_to(one, rank):
    """Hits in ranks 1..rank."""
    return sum(s.hit for s in one.ranked[:rank])


def normalized(total, one, normalizer):
    """total / d with the d of average precision."""
    if normalizer == "relevant":
        return ratio(total, one.n)
    if normalizer == "achievable":
        return ratio(total, min(one.k, one.n))
    if normalizer == "hits":
        return total / one.hits if one.hits else 0.0
    if normalizer == "k":
        return total / one.k
    if normalizer == "shown":
        # LensKit: a list that is empty has average precision 0, one without relevant items has none.
        if one.n == 0:
            return NAN
        return total / min(one.n, one.m) if one.m else 0.0
    raise ValueError(f"unknown normalizer {normalizer!r}")


@oracle
def mapr(one, *, normalizer="relevant"):
    """(1/d) Σ h_i · P@i with P@i = hits in 1..i / i."""
    return normalized(sum(hits_up_to(one, i) / i for i, s in ranks(one) if s.hit), one, normalizer)


@oracle
def mar(one, *, normalizer="hits"):
    """(1/d) Σ h_i · R@i with R@i = hits in 1..i / n."""
    return normalized(sum(hits_up_to(one, i) / one.n for i, s in ranks(one) if s.hit), one, normalizer)


@oracle
def mrr(one, *, of="first"):
    """1 / rank of the first hit, 0 without; of="all": Σ h_i / i / n."""
    inverse_ranks = [1 / i for i, s in ranks(one) if s.hit]
    if of == "first":
        return inverse_ranks[0] if inverse_ranks else 0.0
    if of == "all":
        return ratio(sum(inverse_ranks), one.n)
    raise ValueError(f"unknown of {of!r}")


@oracle
def arhr(one):
    """Σ h_i / i."""
    return sum(1 / i for i, s in ranks(one) if s.hit)


def transform(g, gain):
    """gain(g): g, 2^g − 1, or 1 for a relevant item."""
    return choose("gain", gain, {"linear": g, "exp2": 2**g - 1, "binary": 1.0 if g > 0 else 0.0})


def weight(rank, discount, log_base):
    """disc(rank): 1 / log_b(rank + 1), 1 / max(1, log_b rank), 1, or what a callable returns."""
    if callable(discount):
        return discount(rank)
    if discount == "log":
        return 1 / math.log(rank + 1, log_base)
    if discount == "jk":
        return 1 / max(1.0, math.log(rank, log_base))
    if discount == "none":
        return 1.0
    raise ValueError(f"unknown discount {discount!r}")


def discounted_sum(gains, gain, discount, log_base):
    """Σ gain(g_i) · disc(i) over gains in rank order."""
    return sum(transform(g, gain) * weight(i, discount, log_base) for i, g in enumerate(gains, start=1))


def mean_weight(one, s, discount, log_base):
    """Mean over the ranks of all items placed like s of their weight, which is 0 beyond k."""
    ranks = [i for i, other in enumerate(one.ranked, start=1) if other.place == s.place]
    return sum(weight(i, discount, log_base) for i in ranks if i <= one.k) / len(ranks)


@oracle
def dcg(one, *, gain="linear", discount="log", log_base=2, tied="ranked"):
    """Σ gain(g_i) · disc(i) over the first k; "averaged": over the whole list, each item with its ties' mean weight."""
    if tied == "ranked":
        return discounted_sum([s.gain for s in one.first_k], gain, discount, log_base)
    if tied == "averaged":
        return sum(transform(s.gain, gain) * mean_weight(one, s, discount, log_base) for s in one.ranked)
    raise ValueError(f"unknown tied {tied!r}")


@oracle
def ndcg(one, *, gain="linear", discount="log", log_base=2, ideal="relevant", tied="ranked"):
    """DCG / IDCG of the best min(k, n) gains, of k gains of 1 ("k"), or of the gains re-sorted.

    Of the first k items ("shown") or of the best k of the whole list ("listed").
    """
    if ideal == "relevant":
        gains = sorted((t.gain for t in one.relevant), reverse=True)[: one.k]
    elif ideal == "k":
        gains = [1.0] * one.k
    elif ideal == "shown":
        if one.n > 0 and one.hits == 0:
            return 0.0
        gains = sorted((s.gain for s in one.first_k), reverse=True)
    elif ideal == "listed":
        if not any(s.hit for s in one.ranked):
            return 0.0
        gains = sorted((s.gain for s in one.ranked), reverse=True)[: one.k]
    else:
        raise ValueError(f"unknown ideal {ideal!r}")
    return ratio(
        dcg(one, gain=gain, discount=discount, log_base=log_base, tied=tied),
        discounted_sum(gains, gain, discount, log_base),
    )


@oracle
def rbp(one, *, p=0.8, gain="linear", normalize="endless"):
    """Σ g_i p^(i−1) times 1 − p, or over the sum for the ranks that relevant items can fill; gains in [0, 1]."""
    if any(transform(t.gain, gain) > 1 for t in one.judged):
        raise ValueError("gains must lie in [0, 1]")
    total = sum(transform(s.gain, gain) * p ** (i - 1) for i, s in ranks(one))
    if normalize == "achievable":
        if one.n and not one.m:
            return 0.0
        return ratio(total, sum(p ** (i - 1) for i in range(1, min(one.n, one.m) + 1)))
    return (1 - p) * total


@oracle
def err(one, *, max_gain=None):
    """Σ (1/i) s_i Π_{j<i}(1 − s_j) with s = (2^g − 1) / 2^max_gain."""
    largest = one.largest_gain if max_gain is None else max_gain
    if any(t.gain > largest for t in one.judged):
        raise ValueError("a gain is above max_gain")
    total, still_looking = 0.0, 1.0
    for i, s in ranks(one):
        satisfied = (2**s.gain - 1) / 2**largest
        total += still_looking * satisfied / i
        still_looking *= 1 - satisfied
    return total


def share_in_order(positives, negatives):
    """Share of (positive, negative) pairs with the positive placed first; equal places count half."""
    points = 0.0
    for p in positives:
        for q in negatives:
            points += 1.0 if p < q else 0.5 if p == q else 0.0
    return ratio(points, len(positives) * len(negatives))


@oracle
def auc(one, *, within="shown", tied="half", one_class="undefined"):
    """Share of (hit, miss) pairs of the first k in the right order; "catalogue": all other items come last.

    Ties count half, or are in rank order ("ranked"). Hits alone are 1 and misses alone 0 with one_class="share".
    """
    places = [(0, i) if tied == "ranked" else s.place for i, s in ranks(one)]
    if within == "shown":
        positives = [place for place, s in zip(places, one.first_k, strict=True) if s.hit]
        negatives = [place for place, s in zip(places, one.first_k, strict=True) if not s.hit]
    elif within == "catalogue":
        if one.catalogue is None:
            raise ValueError("needs items=")
        known = [(place, s) for place, s in zip(places, one.first_k, strict=True) if s.item in one.catalogue]
        positives = [place for place, s in known if s.hit]
        negatives = [place for place, s in known if not s.hit]
        bottom = (2, 0)  # below every score and every null score
        relevant_items = {t.item for t in one.relevant}
        for item in one.catalogue - {s.item for s in one.first_k}:
            (positives if item in relevant_items else negatives).append(bottom)
    else:
        raise ValueError(f"unknown within {within!r}")
    if one_class == "share" and not (positives and negatives):
        return 1.0 if positives else 0.0
    return share_in_order(positives, negatives)


def misses_above_each_hit(one):
    """For every hit of the whole list, in rank order, how many misses are ranked above it."""
    misses, counts = 0, []
    for s in one.ranked:
        if s.hit:
            counts.append(misses)
        else:
            misses += 1
    return counts


@oracle
def pauc(one):
    """Σ over hits of max(0, k − misses above it) / (k n); whole list, k counts misses.

    RecTools' PartialAUC with insufficient_handling="ignore": too short a list is taken as it is.
    """
    return ratio(sum(max(0, one.k - above) for above in misses_above_each_hit(one)), one.k * one.n)


@oracle
def pap(one):
    """Σ over the first k hits of max(0, k − misses above it) / (k min(k, n)); whole list.

    RecTools' PAP with insufficient_handling="ignore": too short a list is taken as it is.
    """
    first_hits = misses_above_each_hit(one)[: one.k]
    return ratio(sum(max(0, one.k - above) for above in first_hits), one.k * min(one.k, one.n))


@oracle
def bpref(one):
    """(1/R) Σ over hits of 1 − min(judged non-relevant above, R) / min(R, N)."""
    r, n = one.n, len(one.judged) - one.n
    if r == 0:
        return NAN
    total = 0.0
    for i, s in ranks(one):
        above = sum(x.judged_not_relevant for x in one.ranked[: i - 1])
        if s.hit:
            total += 1 - min(above, r) / min(r, n) if above else 1.0
    return total / r


@oracle
def first_rank(one):
    """Rank of the first hit; undefined without."""
    return next((float(i) for i, s in ranks(one) if s.hit), NAN)
