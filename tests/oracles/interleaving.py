"""Interleaving as the papers write it down: every mixed list of two short lists with its exact
probability."""

from collections import defaultdict
from fractions import Fraction

HALF = Fraction(1, 2)


def top(own, shown):
    """The best item that is not in the list yet."""
    return next((item for item in own if item not in shown), None)


def team_draft(a, b, k):
    """Radlinski et al. 2008, Algorithm 2; items of a shared prefix have no team. {(item, team),
    ...: probability}"""
    found = defaultdict(Fraction)

    def grow(shown, ahead, shared, chance):
        items = [item for item, _ in shown]
        next_a, next_b = top(a, items), top(b, items)
        t = len(shown)
        if t == k or (next_a is None and next_b is None):
            found[tuple(shown)] += chance
            return None
        shared = shared and next_a == next_b and a[t : t + 1] == b[t : t + 1]
        if shared or next_b is None:
            return grow([*shown, (next_a, "")], ahead, shared, chance)
        if next_a is None:
            return grow([*shown, (next_b, "")], ahead, shared, chance)
        for own, team, step in ((next_a, "a", 1), (next_b, "b", -1)):
            part = HALF if ahead == 0 else Fraction(int(ahead * step < 0))
            if part:
                grow([*shown, (own, team)], ahead + step, False, chance * part)
        return None

    grow([], 0, True, Fraction(1))
    return dict(found)


def balanced(a, b, k):
    """Radlinski et al. 2008, Algorithm 1: two pointers. {items: probability}"""
    found = defaultdict(Fraction)
    for a_first in (True, False):
        shown, at_a, at_b = [], 0, 0
        while len(shown) < k and at_a < len(a) and at_b < len(b):
            if at_a < at_b or (at_a == at_b and a_first):
                shown += [a[at_a]] * (a[at_a] not in shown)
                at_a += 1
            else:
                shown += [b[at_b]] * (b[at_b] not in shown)
                at_b += 1
        found[tuple(shown)] += HALF
    return dict(found)


def rank_in(own, item):
    return own.index(item) + 1 if item in own else len(own) + 1


def optimized(a, b, k):
    """Lists with their probabilities, where at each rank one chance of a makes the expected credit
    0 (None: none does).

    Credit: rank in a minus rank in b (Radlinski & Craswell 2013, linear rank difference).
    """
    lists, chances = {(): Fraction(1)}, []
    for _ in range(k):
        both = {one: (top(a, one), top(b, one)) for one in lists}
        expected = [
            sum(
                (
                    lists[one] * (rank_in(a, pair[side]) - rank_in(b, pair[side]))
                    for one, pair in both.items()
                    if None not in pair
                ),
                Fraction(0),
            )
            for side in (0, 1)
        ]
        low, high = expected
        settled = low <= 0 <= high
        chance = HALF if low == high or not settled else high / (high - low)
        if not settled and low != high:
            chance = min(max(high / (high - low), Fraction(0)), Fraction(1))
        chances.append(settled)
        after = defaultdict(Fraction)
        for one, (next_a, next_b) in both.items():
            part = chance if None not in (next_a, next_b) else Fraction(int(next_a is not None))
            if next_a is not None:
                after[(*one, next_a)] += lists[one] * part
            if next_b is not None:
                after[(*one, next_b)] += lists[one] * (1 - part)
            if next_a is None and next_b is None:
                after[one] += lists[one]
        lists = {one: part for one, part in after.items() if part}
    return lists, chances
