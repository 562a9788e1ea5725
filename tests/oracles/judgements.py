"""Oracles of the judgements family."""

import math

from oracles.numbers import NAN, choose, ratio
from oracles.registry import oracle


@oracle
def judged(one, *, of="judged", divisor="shown"):
    """Shown items of a kind over d; an item without a row in `true`, or with one of gain −1, is not
    judged."""
    known = [s for s in one.first_k if s.judged]
    kinds = {
        "judged": len(known),
        "unjudged": one.m - len(known),
        "nonrelevant": sum(not s.hit for s in known),
        "shown": one.m,
    }
    return ratio(
        choose("of", of, kinds), choose("divisor", divisor, {"shown": one.m, "k": one.k, "none": 1})
    )


@oracle
def utility(one, *, a=1, b=-1, c=0, d=0):
    """a·tp + b·fp + c·fn + d·tn; tn only where d asks for it."""
    tp = one.hits
    worth = a * tp + b * (one.m - tp) + c * (one.n - tp)
    if d:
        relevant = {t.item for t in one.relevant}
        worth += d * len(one.catalogue - {s.item for s in one.first_k} - relevant)
    return worth


@oracle
def sufficient(one, *, deep=False):
    """1 for a list of k items; deep: m / k."""
    return one.m / one.k if deep else float(one.m == one.k)


@oracle
def unrepeated(one, *, deep=False):
    """1 if no item stands twice among the first k rows, before any is dropped; deep: distinct /
    rows."""
    shown = one.rows[: one.k]
    if not shown:
        return NAN
    return len(set(shown)) / len(shown) if deep else float(len(set(shown)) == len(shown))


@oracle
def infap(one):
    """Mean over the relevant items of the precision that the pool lets expect at their rank."""
    total = 0.0
    for i, s in enumerate(one.ranked, start=1):
        if s.hit:
            above = [other for other in one.ranked[: i - 1] if other.true is not None]
            r, z = sum(o.hit for o in above), sum(o.judged_not_relevant for o in above)
            total += (
                1.0
                if i == 1
                else (1 / i + (i - 1) / i * (len(above) / (i - 1)) * (r + 1e-5) / (r + z + 2e-5))
            )
    return ratio(total, one.n)


@oracle
def iprecision(one, *, at=0.0, rounding="up"):
    """Best precision at any rank by which enough hits are found."""
    if one.n == 0:
        return NAN
    if at == "11pt":
        return sum(iprecision(one, at=step / 10, rounding=rounding) for step in range(11)) / 11
    exact = at * one.n
    rules = {
        "up": math.ceil(exact),
        "trec9": math.floor(exact + 0.9),
        "nearest": math.floor(exact + 0.5),
    }
    needed, found, best = max(1, choose("rounding", rounding, rules)), 0, 0.0
    for i, s in enumerate(one.ranked, start=1):
        found += s.hit
        if found >= needed:
            best = max(best, found / i)
    return best
