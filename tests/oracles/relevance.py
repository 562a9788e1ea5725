"""Oracles of the relevance family."""

import math

from oracles.numbers import NAN, choose, ratio
from oracles.registry import oracle, pooled


@oracle
def hitrate(one):
    """1 if any of the first k is a hit, else 0."""
    return 1.0 if one.hits > 0 else 0.0


@oracle
def hits(one):
    """Hits in the first k."""
    return one.hits


def divisor_of_precision(one, divisor):
    """d: k, m ("shown"), min(k, n) ("achievable") or min(m, n) ("achievable_shown")."""
    found = {
        "k": one.k,
        "shown": one.m,
        "achievable": min(one.k, one.n),
        "achievable_shown": min(one.m, one.n),
    }
    return choose("divisor", divisor, found)


@oracle
def precision(one, *, divisor="k"):
    """Hits / d; without recommendations but with relevant items 0 for "achievable_shown"."""
    if divisor == "achievable_shown" and one.n and not one.m:
        return 0.0
    return ratio(one.hits, divisor_of_precision(one, divisor))


@pooled
def pooled_precision(one, *, divisor="k"):
    """Hits and d, which are summed over the lists."""
    return one.hits, divisor_of_precision(one, divisor)


@oracle
def recall(one, *, divisor="relevant"):
    """Hits / n, or / min(k, n) ("achievable"); undefined when n = 0."""
    return ratio(
        one.hits, choose("divisor", divisor, {"relevant": one.n, "achievable": min(one.k, one.n)})
    )


@oracle
def f1(one, *, beta=1, divisor="k", combine="harmonic"):
    """(1 + β²) P R / (β² P + R) with P = hits / k (or m) and R = hits / n; 0 when both are 0,
    undefined for n = 0.

    With combine="product" it is P R. Without recommendations it is 0.
    """
    p, r = precision(one, divisor=divisor), recall(one)
    if math.isnan(r):
        return NAN
    if one.m == 0:
        return 0.0
    if combine == "product":
        return p * r
    if p == 0 and r == 0:
        return 0.0
    return (1 + beta**2) * p * r / (beta**2 * p + r)


@oracle
def rprecision(one, *, multiple=1, at_most=None):
    """Hits among the first c = ⌊multiple · n + 0.9⌋ ranks / c, of which those beyond at_most are no
    hits."""
    c = math.floor(multiple * one.n + 0.9)
    return ratio(sum(s.hit for s in one.ranked[:c][:at_most]), c)


def candidates(one):
    """How many items could have been recommended: the list's judged items, or the catalogue."""
    if one.judged_only:
        return len({t.item for t in one.judged})
    if one.catalogue is None:
        raise ValueError("needs items= or judged_only")
    return len(one.catalogue)


@oracle
def confusion(one, *, length="shown"):
    """tp = hits, fp = m − tp, fn = n − tp, tn = candidates − tp − fp − fn."""
    tp = one.hits
    fp = (one.m if length == "shown" else one.k) - tp
    fn = one.n - tp
    tn = candidates(one) - tp - fp - fn
    if length == "k" and tn < 0:  # fewer candidates than ranks
        tn = NAN
    return {"tp": tp, "fp": fp, "fn": fn, "tn": tn}


@oracle
def accuracy(one, *, length="shown"):
    """(tp + tn) / candidates."""
    c = confusion(one, length=length)
    return ratio(c["tp"] + c["tn"], candidates(one))


@oracle
def fallout(one, *, length="shown"):
    """fp / (fp + tn)."""
    c = confusion(one, length=length)
    return ratio(c["fp"], c["fp"] + c["tn"])


@oracle
def specificity(one, *, length="shown"):
    """tn / (fp + tn)."""
    c = confusion(one, length=length)
    return ratio(c["tn"], c["fp"] + c["tn"])


@oracle
def mcc(one, *, length="shown"):
    """(tp tn − fp fn) / √((tp + fp)(tp + fn)(tn + fp)(tn + fn))."""
    c = confusion(one, length=length)
    tp, fp, fn, tn = c["tp"], c["fp"], c["fn"], c["tn"]
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    # Below 0 only when items outside the catalogue make tn negative.
    return (tp * tn - fp * fn) / math.sqrt(product) if product > 0 else NAN
