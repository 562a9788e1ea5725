"""Slow, obvious oracle for matching and for the metrics of relevance, ranking and money.

Plain lists, dicts and loops, one list at a time, written from the definitions alone. It shares nothing with the
package, so that a test which finds both equal says something. To add a metric, write one function under @oracle.
"""

import math
from collections import defaultdict
from dataclasses import dataclass

NAN = math.nan
METRICS = {}


def oracle(function):
    """Register a metric under its function's name."""
    METRICS[function.__name__] = function
    return function


# ---------------------------------------------------------------------------------------------------------------------
# Records


@dataclass
class Truth:
    """One row of `true`: gain is 0 when the row is judged but not relevant; value is the value as bought."""

    item: object
    gain: float
    value: float | None = None


@dataclass
class Shown:
    """One recommended item in rank order; truth is the row of `true` it matches, None when there is none.

    place orders items as their scores (or ranks) do, smaller first, and is equal for equal scores.
    """

    item: object
    place: tuple
    truth: Truth | None = None
    value: float | None = None

    @property
    def gain(self):
        return self.truth.gain if self.truth else 0.0

    @property
    def hit(self):
        return self.gain > 0

    @property
    def judged_not_relevant(self):
        return self.truth is not None and not self.hit


@dataclass
class OneList:
    """One recommendation list after ranking and matching, with its truth."""

    k: int
    ranked: list  # every Shown, best first
    judged: list  # every Truth, best gain first
    catalogue: set | None = None
    judged_only: bool = False
    largest_gain: float = 0.0  # over the whole frame `true`

    @property
    def shown(self):
        return self.ranked[: self.k]

    @property
    def m(self):
        return len(self.shown)

    @property
    def relevant(self):
        return [t for t in self.judged if t.gain > 0]

    @property
    def n(self):
        return len(self.relevant)

    @property
    def hits(self):
        return sum(s.hit for s in self.shown)


# ---------------------------------------------------------------------------------------------------------------------
# Matching


def evaluate(true, pred, metric, k=10, *, params=None, undefined="nan", users="true", **options):
    """{user: value of the metric} over the population, in its order; a dict of counts per user for confusion.

    `true` and `pred` are lists of row dicts in frame order; the options are those of `match_lists`.
    """
    function = METRICS[metric]
    result = {}
    for user, one in match_lists(true, pred, k, users=users, **options).items():
        value = function(one, **(params or {}))
        if isinstance(value, dict):
            result[user] = value
        elif math.isnan(value) and undefined == "zero":
            result[user] = 0.0
        else:
            result[user] = float(value)
    return result


def mean(values):
    """Mean of the values that are not NaN; NaN when there is none."""
    kept = [v for v in values if not math.isnan(v)]
    return sum(kept) / len(kept) if kept else NAN


def match_lists(
    true,
    pred,
    k,
    *,
    order,
    users="true",
    relevance=False,
    min_relevance=None,
    judged_only=False,
    ties="item_desc",
    duplicates="drop",
    nan_score="last",
    items=None,
    negative="error",
):
    """{user: OneList} over the population, in its order."""
    prices = items if isinstance(items, dict) else None
    true_rows, pred_rows = rows_by_user(true), rows_by_user(pred)
    largest_gain = max((gain_of(row, relevance, min_relevance) for row in true), default=0.0)
    lists = {}
    for user in population(true_rows, pred_rows, users):
        judged = judged_rows(true_rows.get(user, []), relevance, min_relevance, duplicates, prices, negative)
        ranked = ranked_rows(pred_rows.get(user, []), judged, order, ties, nan_score, duplicates, prices, negative)
        if judged_only:
            judged_items = {t.item for t in judged}
            ranked = [s for s in ranked if s.item in judged_items]
        attach_truth(ranked, judged)
        lists[user] = OneList(
            k=k,
            ranked=ranked,
            judged=judged,
            catalogue=None if items is None else set(items),
            judged_only=judged_only,
            largest_gain=largest_gain,
        )
    return lists


def rows_by_user(rows):
    """{user: its rows in row order}, users in order of first appearance."""
    grouped = defaultdict(list)
    for row in rows:
        grouped[row["user_id"]].append(row)
    return dict(grouped)


def population(true_rows, pred_rows, users):
    """The list keys that are evaluated, in order of first appearance."""
    if users == "true":
        return list(true_rows)
    if users == "pred":
        return list(pred_rows)
    if users == "both":
        return [u for u in true_rows if u in pred_rows]
    if users == "all":
        return list(true_rows) + [u for u in pred_rows if u not in true_rows]
    return list(dict.fromkeys(users))


def gain_of(row, relevance, min_relevance):
    """Gain of a row of `true`; 0 when it is judged but not relevant."""
    gain = float(row["relevance"]) if relevance else 1.0
    return gain if min_relevance is None or gain >= min_relevance else 0.0


def value_of(row, prices, negative):
    """Value of an item: of its own row, else of the item table; None when neither has it."""
    value = row["value"] if "value" in row else (prices or {}).get(row["item_id"])
    if value is None:
        return None
    if math.isnan(value) or math.isinf(value):
        raise ValueError(f"value must be finite, found {value}")
    if value < 0:
        if negative == "error":
            raise ValueError(f"value must not be negative, found {value}")
        return 0.0
    return float(value)


def judged_rows(rows, relevance, min_relevance, duplicates, prices, negative):
    """Truth rows of one user, best gain first (equal gains in row order)."""
    judged = [
        Truth(row["item_id"], gain_of(row, relevance, min_relevance), value_of(row, prices, negative)) for row in rows
    ]
    judged.sort(key=lambda t: -t.gain)
    return first_of_each_item(judged) if duplicates == "drop" else judged


def ranked_rows(rows, judged, order, ties, nan_score, duplicates, prices, negative):
    """Recommended rows of one user, best first."""
    shown = [
        Shown(row["item_id"], place_of(row, position, order), value=value_of(row, prices, negative))
        for position, row in enumerate(rows)
        if not (order != "row" and nan_score == "drop" and is_null(row[order]))
    ]
    if order != "row":
        # Sorts keep the order of equals: the last sort is the first criterion.
        sort_ties(shown, judged, ties)
        shown.sort(key=lambda s: s.place)
    return first_of_each_item(shown) if duplicates == "drop" else shown


def is_null(number):
    """True for None and NaN."""
    return number is None or math.isnan(number)


def place_of(row, position, order):
    """What orders a recommended row: descending score, ascending rank or position; nulls last and equal."""
    if order == "row":
        return (0, position)
    if is_null(row[order]):
        return (1, 0)
    return (0, -row[order]) if order == "score" else (0, row[order])


def sort_ties(shown, judged, ties):
    """Bring rows, in place, into the order in which equal scores are to stay."""
    if ties == "item_asc":
        shown.sort(key=lambda s: s.item)
    elif ties in ("item_desc", "worst"):
        shown.sort(key=lambda s: s.item, reverse=True)
    elif ties != "row":
        raise ValueError(f"unknown ties {ties!r}")
    if ties == "worst":
        best = {}
        for t in judged:
            best[t.item] = max(t.gain, best.get(t.item, 0.0))
        shown.sort(key=lambda s: best.get(s.item, 0.0))


def first_of_each_item(rows):
    """The rows without those whose item came before."""
    seen, kept = set(), []
    for row in rows:
        if row.item not in seen:
            seen.add(row.item)
            kept.append(row)
    return kept


def attach_truth(ranked, judged):
    """The j-th occurrence of an item in the list matches its j-th truth row, best gain first."""
    left = defaultdict(list)
    for t in judged:
        left[t.item].append(t)
    for s in ranked:
        if left[s.item]:
            s.truth = left[s.item].pop(0)


# ---------------------------------------------------------------------------------------------------------------------
# Relevance


def ratio(numerator, denominator):
    """numerator / denominator, undefined when the denominator is 0."""
    return numerator / denominator if denominator else NAN


def choose(what, value, choices):
    """choices[value], with an error for a value that is not there."""
    if value not in choices:
        raise ValueError(f"unknown {what} {value!r}")
    return choices[value]


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
    """How many items could have been shown: the list's judged items, or the catalogue."""
    if one.judged_only:
        return len({t.item for t in one.judged})
    if one.catalogue is None:
        raise ValueError("needs items= or judged_only")
    return len(one.catalogue)


@oracle
def confusion(one):
    """tp = hits, fp = m − tp, fn = n − tp, tn = candidates − tp − fp − fn."""
    tp = one.hits
    fp = one.m - tp
    fn = one.n - tp
    tn = candidates(one) - tp - fp - fn
    return {"tp": tp, "fp": fp, "fn": fn, "tn": tn}


@oracle
def accuracy(one):
    """(tp + tn) / candidates."""
    c = confusion(one)
    return ratio(c["tp"] + c["tn"], candidates(one))


@oracle
def fallout(one):
    """fp / (fp + tn)."""
    c = confusion(one)
    return ratio(c["fp"], c["fp"] + c["tn"])


@oracle
def specificity(one):
    """tn / (fp + tn)."""
    c = confusion(one)
    return ratio(c["tn"], c["fp"] + c["tn"])


@oracle
def mcc(one):
    """(tp tn − fp fn) / √((tp + fp)(tp + fn)(tn + fp)(tn + fn))."""
    c = confusion(one)
    tp, fp, fn, tn = c["tp"], c["fp"], c["fn"], c["tn"]
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    # Below 0 only when items outside the catalogue make tn negative.
    return (tp * tn - fp * fn) / math.sqrt(product) if product > 0 else NAN


# ---------------------------------------------------------------------------------------------------------------------
# Ranking


def ranks(one):
    """(rank, Shown) for the first k."""
    return list(enumerate(one.shown, start=1))


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


def weight(rank, discount, base):
    """disc(rank): 1 / log_b(rank + 1), 1 / max(1, log_b rank), 1, or what a callable returns."""
    if callable(discount):
        return discount(rank)
    if discount == "log":
        return 1 / math.log(rank + 1, base)
    if discount == "jk":
        return 1 / max(1.0, math.log(rank, base))
    if discount == "none":
        return 1.0
    raise ValueError(f"unknown discount {discount!r}")


def discounted_sum(gains, gain, discount, base):
    """Σ gain(g_i) · disc(i) over gains in rank order."""
    return sum(transform(g, gain) * weight(i, discount, base) for i, g in enumerate(gains, start=1))


def mean_weight(one, s, discount, base):
    """Mean over the ranks of all items placed like s of their weight, which is 0 beyond k."""
    ranks = [i for i, other in enumerate(one.ranked, start=1) if other.place == s.place]
    return sum(weight(i, discount, base) for i in ranks if i <= one.k) / len(ranks)


@oracle
def dcg(one, *, gain="linear", discount="log", base=2, tied="ranked"):
    """Σ gain(g_i) · disc(i) over the first k; "averaged": over the whole list, each item with its ties' mean weight."""
    if tied == "ranked":
        return discounted_sum([s.gain for s in one.shown], gain, discount, base)
    if tied == "averaged":
        return sum(transform(s.gain, gain) * mean_weight(one, s, discount, base) for s in one.ranked)
    raise ValueError(f"unknown tied {tied!r}")


@oracle
def ndcg(one, *, gain="linear", discount="log", base=2, ideal="relevant", tied="ranked"):
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
        gains = sorted((s.gain for s in one.shown), reverse=True)
    elif ideal == "listed":
        if not any(s.hit for s in one.ranked):
            return 0.0
        gains = sorted((s.gain for s in one.ranked), reverse=True)[: one.k]
    else:
        raise ValueError(f"unknown ideal {ideal!r}")
    return ratio(
        dcg(one, gain=gain, discount=discount, base=base, tied=tied), discounted_sum(gains, gain, discount, base)
    )


@oracle
def rbp(one, *, p=0.8, gain="linear"):
    """(1 − p) Σ g_i p^(i−1), gains in [0, 1]."""
    if any(transform(t.gain, gain) > 1 for t in one.judged):
        raise ValueError("gains must lie in [0, 1]")
    return (1 - p) * sum(transform(s.gain, gain) * p ** (i - 1) for i, s in ranks(one))


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
    """Share of (hit, miss) pairs of the first k in the right order; "catalogue": with unshown items last.

    Ties count half, or are in rank order ("ranked"). Hits alone are 1 and misses alone 0 with one_class="share".
    """
    places = [(0, i) if tied == "ranked" else s.place for i, s in ranks(one)]
    if within == "shown":
        positives = [place for place, s in zip(places, one.shown, strict=True) if s.hit]
        negatives = [place for place, s in zip(places, one.shown, strict=True) if not s.hit]
    elif within == "catalogue":
        if one.catalogue is None:
            raise ValueError("needs items=")
        known = [(place, s) for place, s in zip(places, one.shown, strict=True) if s.item in one.catalogue]
        positives = [place for place, s in known if s.hit]
        negatives = [place for place, s in known if not s.hit]
        bottom = (2, 0)  # below every score and every null score
        relevant_items = {t.item for t in one.relevant}
        for item in one.catalogue - {s.item for s in one.shown}:
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
    """Σ over hits of max(0, k − misses above it) / (k n); whole list, k counts misses, unshown relevant items add 0.

    RecTools' PartialAUC with insufficient_handling="ignore": too short a list is taken as it is.
    """
    return ratio(sum(max(0, one.k - above) for above in misses_above_each_hit(one)), one.k * one.n)


@oracle
def pap(one):
    """Σ over the first k hits of max(0, k − misses above it) / (k min(k, n)); whole list, unshown relevant items add 0.

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


# ---------------------------------------------------------------------------------------------------------------------
# Money


def total_value(rows):
    """Σ value, with an error when a row has none."""
    values = [row.value for row in rows]
    if None in values:
        raise ValueError("needs values")
    return sum(values)


@oracle
def money_precision(one):
    """Σ v_i h_i / Σ v_i over the shown."""
    return ratio(total_value([s for s in one.shown if s.hit]), total_value(one.shown))


@oracle
def money_recall(one):
    """Σ v_i h_i as recommended / Σ v over the relevant items as bought."""
    return ratio(total_value([s for s in one.shown if s.hit]), total_value(one.relevant))


@oracle
def revenue(one):
    """Σ v_i h_i as recommended."""
    return total_value([s for s in one.shown if s.hit])


@oracle
def money_ndcg(one):
    """Σ v_i h_i / log2(i + 1) over the same sum for the best min(k, n) values, all values as bought."""
    # As recommended, a hit could be worth more than in the ideal list and push the value above 1.
    total_value(one.relevant)
    found = sum(s.truth.value / math.log2(i + 1) for i, s in ranks(one) if s.hit)
    best = sorted((t.value for t in one.relevant), reverse=True)[: one.k]
    return ratio(found, sum(v / math.log2(i + 1) for i, v in enumerate(best, start=1)))
