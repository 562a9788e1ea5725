"""Oracles of the ranking family."""

import itertools
import math

from oracles.lists import ranks
from oracles.numbers import NAN, choose, ratio
from oracles.registry import oracle, pooled


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
        # LensKit: a list that is empty has average precision 0, one without relevant items has
        # none.
        if one.n == 0:
            return NAN
        return total / min(one.n, one.m) if one.m else 0.0
    raise ValueError(f"unknown normalizer {normalizer!r}")


def worst_rank(one, s):
    """Items of the whole list with an equal or higher score."""
    return sum(other.place <= s.place for other in one.ranked)


def hit_ranks(one, tied):
    """Ranks of the hits, those of equal scores by order or all the worst; ranks beyond k are left
    out."""
    found = [
        worst_rank(one, s) if tied == "worst" else i
        for i, s in enumerate(one.ranked, start=1)
        if s.hit
    ]
    return [i for i in found if i <= one.k]


@oracle
def mapr(one, *, normalizer="relevant", transform="none", tied="ranked"):
    """(1/d) Σ h_i · P@i with P@i = hits in 1..i / i; or ln((1 + Σ) / (1 + n − Σ))."""
    ranks = hit_ranks(one, tied)
    total = sum(sum(other <= i for other in ranks) / i for i in ranks)
    if transform == "log_odds":
        return math.log((1 + total) / (1 + one.n - total)) if one.n else NAN
    if normalizer == "hits":
        return total / len(ranks) if ranks else 0.0
    return normalized(total, one, normalizer)


@oracle
def mar(one, *, normalizer="hits"):
    """(1/d) Σ h_i · R@i with R@i = hits in 1..i / n; undefined when n = 0."""
    if not one.n:
        return float("nan")
    return normalized(
        sum(hits_up_to(one, i) / one.n for i, s in ranks(one) if s.hit), one, normalizer
    )


@oracle
def mrr(one, *, of="first", tied="ranked"):
    """1 / rank of the first hit, 0 without; of="all": Σ h_i / i / n."""
    inverse_ranks = [1 / i for i in hit_ranks(one, tied)]
    if of == "first":
        return inverse_ranks[0] if inverse_ranks else 0.0
    if of == "all":
        return ratio(sum(inverse_ranks), one.n)
    raise ValueError(f"unknown of {of!r}")


@oracle
def arhr(one, *, normalizer="none"):
    """Σ h_i / i, over the same of a list that begins with hits alone: min(n, k) of them, or min(n,
    m)."""
    total = sum(1 / i for i, s in ranks(one) if s.hit)
    if normalizer == "none":
        return total
    best = min(one.n, one.k if normalizer == "achievable" else one.m)
    return ratio(total, sum(1 / i for i in range(1, best + 1))) if best or not one.n else 0.0


@oracle
def relevant_rank(one, *, of="first", tied="ranked"):
    """Smallest, largest or gain-weighted mean rank of the hits; undefined without one."""
    ranks = hit_ranks(one, tied)
    if of == "mean":
        gains = [s.gain for s in one.ranked if s.hit][: len(ranks)]
        return ratio(sum(g * i for g, i in zip(gains, ranks, strict=True)), sum(gains))
    return {"first": min, "last": max}[of](ranks) if ranks else NAN


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
    return sum(
        transform(g, gain) * weight(i, discount, log_base) for i, g in enumerate(gains, start=1)
    )


def mean_weight(one, s, discount, log_base):
    """Mean over the ranks of all items placed like s of their weight, which is 0 beyond k."""
    ranks = [i for i, other in enumerate(one.ranked, start=1) if other.place == s.place]
    return sum(weight(i, discount, log_base) for i in ranks if i <= one.k) / len(ranks)


@oracle
def dcg(one, *, gain="linear", discount="log", log_base=2, tied="ranked", of="list"):
    """Σ gain(g_i) · disc(i) over the first k; "averaged": over the whole list, each item with its
    ties' mean weight.

    Of the ideal list, it is the sum over the best min(k, n) relevant items.
    """
    if of == "ideal":
        return discounted_sum(best_gains(one)[: one.k], gain, discount, log_base)
    if tied == "ranked":
        return discounted_sum([s.gain for s in one.first_k], gain, discount, log_base)
    if tied == "averaged":
        return sum(
            transform(s.gain, gain) * mean_weight(one, s, discount, log_base) for s in one.ranked
        )
    raise ValueError(f"unknown tied {tied!r}")


@oracle
def ndcg(
    one,
    *,
    gain="linear",
    discount="log",
    log_base=2,
    ideal="relevant",
    tied="ranked",
    average="none",
):
    """DCG / IDCG of the best min(k, n) gains, of k gains of 1 ("k"), or of the gains re-sorted.

    Of the first k items ("shown") or of the best k of the whole list ("listed"). Averages are over
    ranks of the whole list.
    """
    if average != "none":
        return mean_ndcg(one, gain, discount, log_base, average)
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


def best_gains(one):
    """Gains of the relevant items, best first."""
    return sorted((t.gain for t in one.relevant), reverse=True)


def mean_ndcg(one, gain, discount, log_base, average):
    """Mean of DCG/IDCG at the hits and for each item that is not shown at the end, or where the
    ideal gain falls."""
    if one.n == 0:
        return NAN
    best = best_gains(one)

    def upto(rank):
        gains = [s.gain for s in one.ranked[:rank]]
        by_rank = (gain, discount, log_base)
        return discounted_sum(gains, *by_rank) / discounted_sum(best[:rank], *by_rank)

    whole = max(len(one.ranked), one.n)
    if average == "hits":
        at = [i for i, s in enumerate(one.ranked, start=1) if s.hit]
        return (sum(map(upto, at)) + (one.n - len(at)) * upto(whole)) / one.n
    values = [transform(g, gain) for g in best]
    at = [i for i in range(1, one.n + 1) if i == one.n or values[i] != values[i - 1]]
    at += [whole] * (len(one.ranked) > one.n + 1)
    return sum(map(upto, at)) / len(at)


@oracle
def normalized_gain(one, *, gain="linear"):
    """Σ g_i / log2(2 + Σ_{j ≤ i} max(1, ideal_j) − Σ_{j ≤ i} g_j) / Σ_T g over the whole list."""
    best = [transform(g, gain) for g in best_gains(one)]
    own = [transform(s.gain, gain) for s in one.ranked]
    total, possible = 0.0, 0.0
    for i, g in enumerate(own):
        possible += max(1.0, best[i] if i < len(best) else 0.0)
        total += g / math.log2(2 + possible - sum(own[: i + 1])) if g else 0.0
    return ratio(total, sum(best))


@oracle
def rbp(one, *, p=0.8, gain="linear", normalize="endless"):
    """Σ g_i p^(i−1) times 1 − p, or over the sum for the ranks that relevant items can fill; gains
    in [0, 1]."""
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


def share_in_order(positives, negatives, equal=0.5):
    """Share of (positive, negative) pairs with the positive placed first; equal places count in
    part."""
    points = 0.0
    for p in positives:
        for q in negatives:
            points += 1.0 if p < q else equal if p == q else 0.0
    return ratio(points, len(positives) * len(negatives))


def partial_auc(positives, negatives, equal, upto):
    """Area under the ROC curve up to a false-positive rate, by its corners, scaled as McClish
    (1989) does."""
    corners = [(0.0, 0.0)]
    for place in sorted({*positives, *negatives}):
        x = sum(q <= place for q in negatives) / len(negatives)
        y = sum(p <= place for p in positives) / len(positives)
        corners += [(x, corners[-1][1])] * (equal == 0) + [(x, y)]
    area = 0.0
    for (x0, y0), (x1, y1) in itertools.pairwise(corners):
        if x0 < upto and x1 > x0:
            end = min(x1, upto)
            at_end = y0 + (y1 - y0) * (end - x0) / (x1 - x0)
            area += (end - x0) * (y0 + at_end) / 2
    return (1 + (area - upto**2 / 2) / (upto - upto**2 / 2)) / 2


@oracle
def auc(one, *, within="shown", tied="half", one_class="undefined", max_fpr=None):
    """Share of (hit, miss) pairs of the first k in the right order; "catalogue": all other items
    come last.

    Ties count half, nothing ("wrong", "worst"), or are in rank order ("ranked"). Hits alone are 1
    and misses alone 0 with one_class="share". With max_fpr only the curve up to that rate counts.
    """
    equal = 0.0 if tied in ("wrong", "worst") else 0.5
    places = [(0, i) if tied == "ranked" else s.place for i, s in ranks(one)]
    if within == "shown":
        positives = [place for place, s in zip(places, one.first_k, strict=True) if s.hit]
        negatives = [place for place, s in zip(places, one.first_k, strict=True) if not s.hit]
    elif within == "catalogue":
        if one.catalogue is None:
            raise ValueError("needs items=")
        known = [
            (place, s)
            for place, s in zip(places, one.first_k, strict=True)
            if s.item in one.catalogue
        ]
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
    if max_fpr is not None and positives and negatives:
        return partial_auc(positives, negatives, equal, max_fpr)
    return share_in_order(positives, negatives, equal)


def misses_above_each_hit(one):
    """For every hit of the whole list, in rank order, how many misses are ranked above it."""
    misses, counts = 0, []
    for s in one.ranked:
        if s.hit:
            counts.append(misses)
        else:
            misses += 1
    return counts


def too_short(one, insufficient):
    """Fewer than k misses and not all relevant items, in a list that is to be left out."""
    hits = sum(s.hit for s in one.ranked)
    return insufficient == "exclude" and len(one.ranked) - hits < one.k and hits < one.n


@oracle
def pauc(one, *, insufficient="ignore"):
    """Σ over hits of max(0, k − misses above it) / (k n); whole list, k counts misses.

    RecTools' PartialAUC: a list that is too short is taken as it is, or left out.
    """
    if too_short(one, insufficient):
        return NAN
    return ratio(sum(max(0, one.k - above) for above in misses_above_each_hit(one)), one.k * one.n)


@oracle
def pap(one, *, insufficient="ignore"):
    """Σ over the first k hits of max(0, k − misses above it) / (k min(k, n)); whole list.

    RecTools' PAP: a list that is too short is taken as it is, or left out.
    """
    if too_short(one, insufficient):
        return NAN
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


def right_and_possible(one, within, gain, tied):
    """Points for pairs whose better item stands higher, and the number of pairs of unequal
    gains."""
    bottom = (2, 0)
    if within == "shown":
        items = [(s.place, transform(s.gain, gain)) for s in one.first_k]
    else:
        ranks = {id(s.true): (0, i) for i, s in enumerate(one.first_k) if s.true}
        items = [(ranks.get(id(t), bottom), transform(t.gain, gain)) for t in one.judged]
    points, possible = 0.0, 0
    for place_a, a in items:
        for place_b, b in items:
            if a > b:
                possible += 1
                equal = (
                    {"half": 0.5, "wrong": 0.0, "right": 1.0}[tied] if place_a != bottom else 0.0
                )
                points += 1.0 if place_a < place_b else equal if place_a == place_b else 0.0
    return points, possible


@pooled
def pooled_pair_accuracy(one, *, within="shown", gain="linear", tied="half"):
    """Right and possible pairs, which are summed over the lists."""
    return right_and_possible(one, within, gain, tied)


@oracle
def pair_accuracy(one, *, within="shown", gain="linear", tied="half"):
    """Right pairs / pairs of items with unequal gains."""
    return ratio(*right_and_possible(one, within, gain, tied))


@pooled
def pooled_percentile_rank(one, *, unshown="middle"):
    """Σ (rank − 1)/N over the relevant items, and their number."""
    if not one.n:
        return 0.0, 0
    n_items = len(one.catalogue)
    shown = [i - 1 for i, s in enumerate(one.ranked, start=1) if s.hit]
    rest = 1.0 if unshown == "bottom" else ((len(one.ranked) - 1) / n_items + 1) / 2
    return sum(shown) / n_items + (one.n - len(shown)) * rest, one.n


@oracle
def percentile_rank(one, *, unshown="middle"):
    """Mean of (rank − 1)/N over the relevant items; those not shown stand in the middle of the
    rest, or last."""
    return ratio(*pooled_percentile_rank(one, unshown=unshown))
