"""Oracles of the relevance family."""

import math

from oracles.numbers import NAN, choose, ratio
from oracles.registry import oracle


@oracle
def hitrate(one):
    """1 if any of the first k is a hit, else 0."""
    return 1.0 if one.hits > 0 else 0.0


@oracle
def hits(one):
    """Hits in the first k."""
    return one.hits


@oracle
def precision(one, *, divisor="k"):
    """Hits / k, / m ("shown") or / min(k, n) ("achievable")."""
    return ratio(one.hits, choose("divisor", divisor, {"k": one.k, "shown": one.m, "achievable": min(one.k, one.n)}))


@oracle
def recall(one, *, divisor="relevant"):
    """Hits / n, or / min(k, n) ("achievable"); undefined when n = 0."""
    return ratio(one.hits, choose("divisor", divisor, {"relevant": one.n, "achievable": min(one.k, one.n)}))


@oracle
def f1(one, *, beta=1):
    """(1 + β²) P R / (β² P + R) with P = hits / k and R = hits / n; 0 when both are 0, undefined when one is."""
    p, r = precision(one), recall(one)
    if math.isnan(p) or math.isnan(r):
        return NAN
    if p == 0 and r == 0:
        return 0.0
    return (1 + beta**2) * p * r / (beta**2 * p + r)


@oracle
def rprecision(one):
    """Hits among the first n ranks / n; k plays no part."""
    return ratio(sum(s.hit for s in one.ranked[: one.n]), one.n)


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
