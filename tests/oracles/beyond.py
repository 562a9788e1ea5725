"""Slow, obvious oracle for diversity, novelty, exposure, fairness and rating error.

As in `oracle`: plain lists and loops, from the definitions alone. A metric of lists is a function of one list, its
user and the world around it; a metric of exposure (in `OF_ALL_LISTS`) is a function of {user: list} and the world.
"""

import math
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from oracles.accuracy import NAN, ratio

METRICS = {}
OF_ALL_LISTS = set()


def oracle(function):
    """Register a metric of one list under its function's name."""
    METRICS[function.__name__] = function
    return function


def oracle_of_all(function):
    """Register a metric of all lists together."""
    OF_ALL_LISTS.add(function.__name__)
    return oracle(function)


@dataclass
class World:
    """What is known beside true and pred."""

    log: list = field(default_factory=list)  # (user, item) rows
    items: dict = field(default_factory=dict)  # item -> {"category": [...], "group": ...}
    features: dict = field(default_factory=dict)  # item -> vector, absent when unknown
    aspects: dict = field(default_factory=dict)  # user -> [set of items, ...]
    base: dict = field(default_factory=dict)  # user -> items, best first
    popular: set = field(default_factory=set)
    ratings: dict = field(default_factory=dict)  # (user, item) -> rating
    scores: dict = field(default_factory=dict)  # (user, item) -> predicted rating

    def history(self, user):
        return {item for who, item in self.log if who == user}

    def users_of(self, item):
        return {user for user, what in self.log if what == item}

    @property
    def users(self):
        return {user for user, _ in self.log}


def shown_items(one):
    return [s.item for s in one.shown]


def average(values):
    return sum(values) / len(values) if values else NAN


# ---------------------------------------------------------------------------------------------------------------------
# Diversity


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
def ils(one, user, world, *, similarity="cosine"):
    """Mean similarity of two shown items with features."""
    vectors = [world.features[i] for i in shown_items(one) if i in world.features]
    return average([sim(vectors[i], vectors[j], similarity) for j in range(len(vectors)) for i in range(j)])


@oracle
def ild(one, user, world, *, similarity="cosine"):
    """1 − ils."""
    return 1 - ils(one, user, world, similarity=similarity)


def alpha_dcg(items, relevant, aspects, alpha):
    """Σ 1/log2(i+1) Σ_a rel(i, a) (1 − α)^(earlier relevant items with a)."""
    seen, total = Counter(), 0.0
    for i, item in enumerate(items, start=1):
        if item not in relevant:
            continue
        for a, with_aspect in enumerate(aspects):
            if item in with_aspect:
                total += (1 - alpha) ** seen[a] / math.log2(i + 1)
                seen[a] += 1
    return total


@oracle
def a_ndcg(one, user, world, *, alpha=0.5, ideal="greedy"):
    """α-DCG over that of the greedy ideal, or of the even one of rs_metrics."""
    aspects, relevant = world.aspects.get(user, []), {t.item for t in one.relevant}
    found = alpha_dcg([s.item if s.hit else None for s in one.shown], relevant, aspects, alpha)
    if ideal == "greedy":
        left = sorted(i for i in relevant if any(i in a for a in aspects))
        if not left:
            return NAN
        order, seen = [], Counter()
        while left and len(order) < one.k:
            gains = [sum((1 - alpha) ** seen[a] for a, s in enumerate(aspects) if item in s) for item in left]
            best = left.pop(max(range(len(left)), key=lambda j: (gains[j], -j)))
            order.append(best)
            seen.update(a for a, s in enumerate(aspects) if best in s)
        return found / alpha_dcg(order, relevant, aspects, alpha)
    aspects = [a for a in aspects if a]
    if not aspects:
        return NAN
    whole = one.m // len(aspects)
    gains = [1.0] * (whole * len(aspects)) + [(1 - alpha) ** whole] * (one.m % len(aspects))
    best = sum(g / math.log2(i + 1) for i, g in enumerate(gains, start=1))
    return found / best if one.m else 0.0


@oracle
def subtopic_recall(one, user, world):
    """Aspects of hits / aspects of relevant items."""
    aspects, relevant = world.aspects.get(user, []), {t.item for t in one.relevant}
    wanted = {a for a, s in enumerate(aspects) if s & relevant}
    found = {a for a, s in enumerate(aspects) if s & relevant & set(shown_items(one))}
    return ratio(len(found), len(wanted))


def category_mix(items, world):
    """Weights of the categories of some items, each item 1 in all."""
    mix = defaultdict(float)
    for item in items:
        own = world.items.get(item, {}).get("category", [])
        for category in own:
            mix[category] += 1 / len(own)
    total = sum(mix.values())
    return {c: w / total for c, w in mix.items()}


@oracle
def categories(one, user, world, *, divisor="k"):
    """Distinct categories shown over k, the items shown, or the categories there are."""
    found = len({c for i in shown_items(one) for c in world.items.get(i, {}).get("category", [])})
    all_of_them = len({c for row in world.items.values() for c in row["category"]})
    return ratio(found, {"k": one.k, "shown": one.m, "catalogue": all_of_them}[divisor])


@oracle
def category_entropy(one, user, world):
    """Bits of the mix of categories shown."""
    mix = category_mix(shown_items(one), world)
    return sum(-w * math.log2(w) for w in mix.values()) if mix else NAN


def kl(p, q):
    return sum(w * math.log(w / q[c]) for c, w in p.items() if w)


@oracle
def calibration(one, user, world, *, divergence="kl", smoothing=0.01):
    """Divergence of the mix of categories shown from that of the user's log rows."""
    p = category_mix([item for who, item in world.log if who == user], world)
    q = category_mix(shown_items(one), world)
    if not p or not q:
        return NAN
    every = {*p, *q}
    p, q = ({c: mix.get(c, 0.0) for c in every} for mix in (p, q))
    if divergence == "kl":
        return kl(p, {c: (1 - smoothing) * q[c] + smoothing * p[c] for c in every})
    middle = {c: (p[c] + q[c]) / 2 for c in every}
    return (kl(p, middle) + kl(q, middle)) / 2


# ---------------------------------------------------------------------------------------------------------------------
# Novelty


def had(item, world, base):
    """(how many had the item, of how many): users or interactions."""
    if base == "users":
        return len(world.users_of(item)), len(world.users)
    return sum(what == item for _, what in world.log), len(world.log)


@oracle
def popularity(one, user, world, *, base="users"):
    """Mean p(i) of the shown."""
    return average([n / total for n, total in (had(i, world, base) for i in shown_items(one))])


@oracle
def surprisal(one, user, world, *, base="users", normalize=False, divisor="shown"):
    """Mean −log2 p(i) of the shown; an unseen item counts as had once."""
    total = had(None, world, base)[1]
    bits = [-math.log2(max(had(i, world, base)[0], 1) / total) for i in shown_items(one)]
    value = ratio(sum(bits), one.k if divisor == "k" else one.m)
    return value / math.log2(total) if normalize else value


@oracle
def unseen(one, user, world):
    """Share of the shown that is not in the user's log."""
    return ratio(sum(i not in world.history(user) for i in shown_items(one)), one.m)


def by_popularity(world):
    count = Counter(item for _, item in world.log)
    return sorted(count, key=lambda i: (-count[i], i))


@oracle
def serendipity(one, user, world, *, threshold=0.7, relevant=True, top=None, similarity="cosine"):
    """Share of the shown that is relevant, new, unlike the past and not popular."""
    past = [world.features[i] for i in sorted(world.history(user)) if i in world.features]
    known = [s for s in one.shown if s.item in world.features]
    if not past or not known:
        return NAN
    popular = world.popular | set(by_popularity(world)[: top or 0])
    return average(
        [
            (s.hit or not relevant)
            and s.item not in world.history(user)
            and max(sim(world.features[s.item], v, similarity) for v in past) < threshold - 1e-12
            and s.item not in popular
            for s in known
        ]
    )


@oracle
def unexpectedness(one, user, world, *, divisor="shown"):
    """1 − share of the shown that the baseline's first k hold."""
    base = list(dict.fromkeys(world.base.get(user, [])))[: one.k]
    common = len(set(base) & set(shown_items(one)))
    return 1 - ratio(common, one.k if divisor == "k" else one.m)


def discounted_novelty(one, novelty, relevant, discount):
    above = below = 0.0
    for rank, s in enumerate(one.shown, start=1):
        weight = 1 / math.log2(rank + 1) if discount == "log" else 1.0
        above += weight * novelty(s.item) * (s.hit or not relevant)
        below += weight
    return ratio(above, below)


@oracle
def epc(one, user, world, *, relevant=True, discount="log"):
    """Discounted mean of relevance times 1 − p(i), p of users."""

    def novelty(item):
        n, total = had(item, world, "users")
        return 1 - n / total

    return discounted_novelty(one, novelty, relevant, discount)


@oracle
def efd(one, user, world, *, relevant=True, discount="log"):
    """Discounted mean of relevance times −log2 p(i), p of interactions."""

    def novelty(item):
        n, total = had(item, world, "events")
        return -math.log2(max(n, 1) / total)

    return discounted_novelty(one, novelty, relevant, discount)


def head_of(world, share):
    """The fewest most popular items that hold this share of the interactions."""
    count = Counter(item for _, item in world.log)
    head, held = set(), 0
    for item in by_popularity(world):
        if held >= share * len(world.log) - 1e-9:
            break
        head.add(item)
        held += count[item]
    return head


@oracle
def aclt(one, user, world, *, head=0.8):
    """Shown items that are not of the head."""
    return float(sum(i not in head_of(world, head) for i in shown_items(one)))


@oracle
def aplt(one, user, world, *, head=0.8):
    """aclt / items shown."""
    return ratio(aclt(one, user, world, head=head), one.m)


@oracle
def arp_ratio(one, user, world, *, base="users"):
    """Mean popularity of the shown over that of the user's items."""

    def mean(items):
        return average([n / total for n, total in (had(i, world, base) for i in items)])

    return mean(shown_items(one)) / mean(sorted(world.history(user)))


# ---------------------------------------------------------------------------------------------------------------------
# Exposure


def exposure(lists):
    """{item: times shown}."""
    return Counter(i for one in lists.values() for i in shown_items(one))


@oracle_of_all
def coverage(lists, world):
    """Share of the catalogue that is shown."""
    return len(set(exposure(lists)) & set(world.items)) / len(world.items)


@oracle_of_all
def user_coverage(lists, world):
    """Share of lists that are not empty."""
    return sum(one.m > 0 for one in lists.values()) / len(lists)


@oracle_of_all
def gini(lists, world):
    """Mean absolute difference of two items' exposure over twice the mean."""
    count = exposure(lists)
    x = [count[i] for i in world.items]
    return ratio(sum(abs(a - b) for a in x for b in x), 2 * len(x) * sum(x))


@oracle_of_all
def entropy(lists, world, *, normalize=False):
    """Bits of the shares of exposure."""
    count = exposure(lists)
    total = sum(count.values())
    if not total:
        return NAN
    value = sum(-n / total * math.log2(n / total) for n in count.values())
    return ratio(value, math.log2(len({*count, *world.items}))) if normalize else value


@oracle_of_all
def personalization(lists, world):
    """1 − mean overlap of two lists; d is k, or the length of the longest list."""
    filled = [one for one in lists.values() if one.m]
    if len(filled) < 2:
        return NAN
    d = max(one.m for one in filled)
    sets = [set(shown_items(one)) for one in filled]
    return 1 - average([len(sets[i] & sets[j]) / d for j in range(len(sets)) for i in range(j)])


@oracle_of_all
def hhi(lists, world):
    """Σ share²."""
    count = exposure(lists)
    total = sum(count.values())
    return sum((n / total) ** 2 for n in count.values()) if total else NAN


# ---------------------------------------------------------------------------------------------------------------------
# Fairness


def group_exposure(lists, world, discount):
    """{group: discounted exposure}, every group of the catalogue."""
    total = {row["group"]: 0.0 for row in world.items.values() if row["group"] is not None}
    for one in lists.values():
        for rank, item in enumerate(shown_items(one), start=1):
            group = world.items.get(item, {}).get("group")
            if group is not None:
                total[group] += 1 / math.log2(rank + 1) if discount == "log" else 1.0
    return total


@oracle_of_all
def exposure_share(lists, world, *, discount="log"):
    """{group: share of the exposure}."""
    total = group_exposure(lists, world, discount)
    return {group: ratio(e, sum(total.values())) for group, e in total.items()}


@oracle_of_all
def exposure_ratio(lists, world, *, discount="log", relative_to="relevance"):
    """{group: share of the exposure / share of the relevant items or of the catalogue}."""
    share = exposure_share(lists, world, discount=discount)
    if relative_to == "relevance":
        due = Counter(world.items.get(t.item, {}).get("group") for one in lists.values() for t in one.relevant)
    else:
        due = Counter(row["group"] for row in world.items.values())
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


@oracle_of_all
def pop_reo(lists, world, *, group_col=None, head=0.8):
    """Spread over groups of hits / relevant items."""
    group = grouping(world, group_col, head)
    hits = Counter(group(s.item) for one in lists.values() for s in one.shown if s.hit)
    relevant = Counter(group(t.item) for one in lists.values() for t in one.relevant)
    return spread([hits[g] / n for g, n in relevant.items() if g is not None])


@oracle_of_all
def pop_rsp(lists, world, *, group_col=None, head=0.8):
    """Spread over groups of recommendations / candidate pairs; candidates are not in the user's history."""
    group = grouping(world, group_col, head)
    shown, pairs = Counter(), Counter()
    for user, one in lists.items():
        new = [i for i in world.items if i not in world.history(user)]
        pairs.update(group(i) for i in new)
        shown.update(group(i) for i in shown_items(one) if i in new)
    return spread([shown[g] / n for g, n in pairs.items() if g is not None])


# ---------------------------------------------------------------------------------------------------------------------
# Rating error


def errors(one, user, world):
    """Errors of the shown items (all of them, whatever k) that are rated and scored."""
    pairs = [(user, s.item) for s in one.ranked if s.truth is not None]
    found = [world.scores[p] - world.ratings[p] for p in pairs if world.scores[p] is not None]
    return [e for e in found if not math.isnan(e)]


@oracle
def rmse(one, user, world):
    """√ mean squared error."""
    found = errors(one, user, world)
    return math.sqrt(average([e * e for e in found])) if found else NAN


@oracle
def mae(one, user, world):
    """Mean absolute error."""
    return average([abs(e) for e in errors(one, user, world)])


@oracle_of_all
def pooled_rmse(lists, world):
    """rmse over all lists' ratings."""
    found = [e for user, one in lists.items() for e in errors(one, user, world)]
    return math.sqrt(average([e * e for e in found])) if found else NAN


@oracle_of_all
def pooled_mae(lists, world):
    """mae over all lists' ratings."""
    return average([abs(e) for user, one in lists.items() for e in errors(one, user, world)])
