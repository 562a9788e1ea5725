"""One recommendation list as the oracles see it, made from rows in plain loops."""

import math
from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class World:
    """What is known beside true and pred."""

    log: list = field(default_factory=list)  # (user, item) rows
    items: dict = field(default_factory=dict)  # item -> {"category": [...], "group": ...}
    features: dict = field(default_factory=dict)  # item -> vector, absent when unknown
    aspects: dict = field(default_factory=dict)  # user -> [set of items, ...]
    base: dict = field(default_factory=dict)  # user -> items, best first
    popular: set = field(default_factory=set)
    user_groups: dict = field(default_factory=dict)  # user -> group
    ratings: dict = field(default_factory=dict)  # (user, item) -> rating
    scores: dict = field(default_factory=dict)  # (user, item) -> predicted rating

    def users_of(self, item):
        return {user for user, what in self.log if what == item}

    @property
    def users(self):
        return {user for user, _ in self.log}


@dataclass
class TrueItem:
    """One row of `true`: gain is 0 when the row is judged but not relevant; value is the value as
    bought.

    propensity is the probability that the row was observed.
    """

    item: object
    gain: float
    value: float | None = None
    propensity: float = 1.0


@dataclass
class PredItem:
    """One recommended item in rank order; true is the row of `true` that it matches, None when
    there is none.

    place orders items as their scores (or ranks) do, smaller first, and is equal for equal scores.
    """

    item: object
    place: tuple
    true: TrueItem | None = None
    value: float | None = None

    @property
    def gain(self):
        return max(self.true.gain, 0.0) if self.true else 0.0

    @property
    def hit(self):
        return self.gain > 0

    @property
    def judged_not_relevant(self):
        return self.judged and not self.hit

    @property
    def judged(self):
        return self.true is not None and self.true.gain >= 0


@dataclass
class OneList:
    """One recommendation list after ranking and matching, with the rows of `true` that belong to
    it."""

    k: int
    ranked: list  # every PredItem, best first
    rows: list  # their items before repeated rows were dropped
    judged: list  # every TrueItem that somebody judged, best gain first
    catalogue: set | None = None
    judged_only: bool = False
    largest_gain: float = 0.0  # over the whole frame `true`
    user: object = None
    world: World = field(default_factory=World)

    @property
    def first_k(self):
        return self.ranked[: self.k]

    @property
    def history(self):
        """Items that the user of the list has had, by the log."""
        return {item for who, item in self.world.log if who == self.user}

    @property
    def m(self):
        return len(self.first_k)

    @property
    def relevant(self):
        return [t for t in self.judged if t.gain > 0]

    @property
    def n(self):
        return len(self.relevant)

    @property
    def hits(self):
        return sum(s.hit for s in self.first_k)


class AllLists(dict):
    """{user: OneList} of a population, in its order, and the world around it."""

    def __init__(self, lists, world):
        super().__init__(lists)
        self.world = world


def ranks(one):
    """(rank, PredItem) for the first k."""
    return list(enumerate(one.first_k, start=1))


def items_of(one):
    """Items of the first k."""
    return [s.item for s in one.first_k]


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
    world=None,
):
    """All lists of the population, from rows as dicts in frame order."""
    world = World() if world is None else world
    prices = items if isinstance(items, dict) else None
    true_rows, pred_rows = rows_by_user(true), rows_by_user(pred)
    largest_gain = max((gain_of(row, relevance, min_relevance) for row in true), default=0.0)
    lists = {}
    for user in population(true_rows, pred_rows, users):
        judged = judged_rows(
            true_rows.get(user, []), relevance, min_relevance, duplicates, prices, negative
        )
        rows = ranked_rows(
            pred_rows.get(user, []), judged, order, ties, nan_score, prices, negative
        )
        if judged_only:
            judged_items = {t.item for t in judged if t.gain >= 0}
            rows = [s for s in rows if s.item in judged_items]
        ranked = first_of_each_item(rows) if duplicates == "drop" else rows
        attach_true(ranked, judged)
        lists[user] = OneList(
            k=k,
            ranked=ranked,
            rows=[s.item for s in rows],
            judged=[t for t in judged if t.gain >= 0],
            catalogue=None if items is None else set(items),
            judged_only=judged_only,
            largest_gain=largest_gain,
            user=user,
            world=world,
        )
    return AllLists(lists, world)


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
    """Gain of a row of `true`; 0 when it is judged but not relevant, −1 when it is not judged."""
    gain = float(row["relevance"]) if relevance else 1.0
    if not gain >= 0:
        return -1.0  # in the pool, and not judged
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
    """Rows of `true` of one user, best gain first (equal gains in row order)."""
    judged = [
        TrueItem(
            row["item_id"],
            gain_of(row, relevance, min_relevance),
            value_of(row, prices, negative),
            row.get("propensity", 1.0),
        )
        for row in rows
    ]
    judged.sort(key=lambda t: -t.gain)
    return first_of_each_item(judged) if duplicates == "drop" else judged


def ranked_rows(rows, judged, order, ties, nan_score, prices, negative):
    """Recommended rows of one user, best first, repeated ones too."""
    listed = [
        PredItem(
            row["item_id"], place_of(row, position, order), value=value_of(row, prices, negative)
        )
        for position, row in enumerate(rows)
        if not (order != "row" and nan_score == "drop" and is_null(row[order]))
    ]
    if order != "row":
        # Sorts keep the order of equals: the last sort is the first criterion.
        sort_ties(listed, judged, ties)
        listed.sort(key=lambda s: s.place)
    return listed


def is_null(number):
    """True for None and NaN."""
    return number is None or math.isnan(number)


def place_of(row, position, order):
    """What orders a recommended row: descending score, ascending rank or position; nulls last and
    equal."""
    if order == "row":
        return (0, position)
    if is_null(row[order]):
        return (1, 0)
    return (0, -row[order]) if order == "score" else (0, row[order])


def sort_ties(listed, judged, ties):
    """Bring rows, in place, into the order in which equal scores are to stay."""
    if ties == "item_asc":
        listed.sort(key=lambda s: s.item)
    elif ties in ("item_desc", "worst"):
        listed.sort(key=lambda s: s.item, reverse=True)
    elif ties != "row":
        raise ValueError(f"unknown ties {ties!r}")
    if ties == "worst":
        best = {}
        for t in judged:
            best[t.item] = max(t.gain, best.get(t.item, 0.0))
        listed.sort(key=lambda s: best.get(s.item, 0.0))


def first_of_each_item(rows):
    """The rows without those whose item came before."""
    seen, kept = set(), []
    for row in rows:
        if row.item not in seen:
            seen.add(row.item)
            kept.append(row)
    return kept


def attach_true(ranked, judged):
    """The j-th occurrence of an item in the list matches its j-th row of `true`, best gain
    first."""
    left = defaultdict(list)
    for t in judged:
        left[t.item].append(t)
    for s in ranked:
        if left[s.item]:
            s.true = left[s.item].pop(0)
