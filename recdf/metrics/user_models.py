"""User models (C/W/L): what a user gets who goes down a list and decides after each rank whether to
go on.

A model is the chance C(i) to go on from rank i. V(i) = C(1) ⋯ C(i − 1) is the chance to see rank i.
All measures follow from three numbers of a list, its `Walk`. Only hits change the chances, so the
sums run over hits, and what lies between and behind them is summed in closed form: a list costs no
more for a depth of 1000 ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy import ndarray

from ..errors import DataError, OptionError, examples
from ..inputs.constraints import Above0, Share, a_number
from ..inputs.frames import read_values
from ..inputs.sorting import distinct, place_in_run, run_of, spans
from ..matching.hits import Hits, in_turn, ratio, running
from ..matching.lists import Lists
from .metric import NOT_NEGATIVE, metric
from .ranking.dcg import Discount, as_key, discounts_of, largest_gain

Depth = Annotated[int, a_number(1, 10**7, whole=True)]
Chance = Literal[
    "rbp",
    "npv",
    "precision",
    "sdcg",
    "insq",
    "inst",
    "bpm",
    "nerr8",
    "nerr9",
    "nerr10",
    "nerr11",
    "set",
    "tbg",
    "umeasure",
    "weights",
]

# Models whose users stop at k, models without C(i), and models whose C(i) depends on the hits.
UP_TO_K = ("precision", "sdcg", "bpm", "nerr8", "nerr9", "set", "weights")
WITHOUT_CHANCE = ("tbg", "umeasure", "weights")
BY_HITS = ("inst", "bpm", "nerr8", "nerr9", "nerr10", "nerr11")


class Walk(NamedTuple):
    """Σ V(i) γ_i and Σ V(i) over the ranks that are seen, and V of the rank after them; per list,
    or alike for all."""

    gain: Any
    items: Any
    further: Any


# Chance V(i) that a model's user sees rank i, where it is a formula of the rank; else 1.
SEES: dict[str, Callable[[Any, ndarray], ndarray]] = {
    **dict.fromkeys(("rbp", "npv", "nerr10"), lambda user, i: user.p ** (i - 1)),
    **dict.fromkeys(("insq", "nerr11"), lambda user, i: (2 * user.T / (i - 1 + 2 * user.T)) ** 2),
    **dict.fromkeys(("tbg", "umeasure"), lambda user, i: user.after(i - 1)),
    "sdcg": lambda user, i: 1 / np.log2(i + 1),
    "nerr9": lambda user, i: 1 / i,
    "set": lambda user, i: ((i + 1) ** user.beta - i**user.beta) / (2**user.beta - 1),
}


class Reader(NamedTuple):
    """A model with its parameters and its last rank; `stops` says that C is 0 there."""

    model: str
    p: float
    T: float
    beta: float
    halflife: float
    length: float
    weights: str | Callable[[int], float]
    last: int
    stops: bool

    def sees(self, rank: ndarray) -> ndarray:
        """V of some ranks, for a reader who finds nothing on the way."""
        if self.model == "weights":
            return discounts_of(self.weights, 2, rank)
        i = np.asarray(rank, np.float64)
        formula = SEES.get(self.model)
        return np.ones(i.shape) if formula is None else formula(self, i)

    def after(self, time: ndarray) -> ndarray:
        """V after some time, of the two models of time."""
        if self.model == "tbg":
            return np.exp2(-time / self.halflife)
        return np.maximum(0.0, 1 - time / self.length)

    @property
    def total(self) -> ndarray:
        """Σ V of the first 0, 1, 2, ... ranks, for a reader who finds nothing on the way."""
        return np.append(0.0, np.cumsum(self.sees(np.arange(1, self.last + 1))))

    @property
    def further(self) -> Any:
        """V of the rank after the last one."""
        return 0.0 if self.stops else self.sees(np.array(self.last + 1))


@metric(
    optional=("not_judged",),
    where={
        "measure=total": {"bounds": NOT_NEGATIVE},
        "measure=items": {"better": None, "bounds": NOT_NEGATIVE},
        "measure=residual": {"better": "smaller"},
    },
)
def user_model(
    lists: Lists,
    *,
    model: Chance = "rbp",
    measure: Literal["utility", "total", "items", "residual"] = "utility",
    p: Share | None = None,
    rate: Above0 = 0.25,
    T: Above0 = 1.0,
    beta: Above0 = 0.5,
    halflife: Above0 = 224.0,
    length: Above0 = 1000.0,
    weights: Discount | Callable[[int], float] = "log",
    gain: Literal["linear", "binary"] = "linear",
    max_gain: float | None = None,
    depth: Depth = 1000,
    cost_col: str | None = None,
) -> ndarray:
    """Gain per item that a user sees who goes down the list by a model; larger is better, in [0,
    1].

    Formula
    -------
    Σ_{i ≤ D} W(i) γ_i, where γ_i = g_i / max_gain is the gain of the item at rank i, 0 for a miss
    and after the list, D is `depth`, W(i) = V(i) / Σ_j V(j), V(i) = C(1) ⋯ C(i − 1), and the model
    gives the chance C(i) to go on from rank i; c_i = γ_1 + ... + γ_i. Other measures: total Σ V(i)
    (1 − C(i)) c_i; items Σ V(i); residual: the utility with γ = 1 at every rank that is not judged,
    minus the utility. Utility and total are undefined for n_true = 0.

    Parameters
    ----------
    model : str, default "rbp"
        "rbp": C = p. "npv": the same with p = 1 / (1 + rate). "precision": 1 before rank k and 0
        there, as in all models with k. "sdcg": log2(i + 1) / log2(i + 2), with k. "insq": ((i + 2T
        − 1) / (i + 2T))². "inst": the same with T − c_i/2 in place of T. "bpm": 1 while c_i < T,
        with k. "nerr8": 1 − γ_i, with k. "nerr9": (1 − γ_i) i / (i + 1), with k. "nerr10": p (1 −
        γ_i). "nerr11": 1 − γ_i times C of insq. "set": w(i + 1) / w(i) with w(i) = (i + 1)^β − i^β,
        with k. "tbg": W ∝ 2^(−t_i / halflife), and "umeasure": W ∝ max(0, 1 − t_i / length), where
        t_i is the cost of the items above rank i. "weights": W ∝ `weights` over the first k items
        of the list. The last three have only the measures utility and residual.
    measure : {"utility", "total", "items", "residual"}, default "utility"
        "utility": gain per item that is seen. "total": gain of all items that are seen, at least 0.
        "items": how many items are seen, at least 1; neither direction is better. "residual": how
        much what nobody judged could add to the utility; smaller is better.
    p : float in (0, 1), optional
        Chance to go on, of rbp (0.8 by default) and nerr10 (0.9).
    rate : float, default 0.25
        Discount rate of npv.
    T : float, default 1
        Gain that the user wants, of insq, inst, bpm and nerr11.
    beta : float, default 0.5
        Exponent β of set.
    halflife : float, default 224
        Cost after which half of the users of tbg are left.
    length : float, default 1000
        Cost after which no user of umeasure is left.
    weights : {"log", "jk", "none"} or function, default "log"
        Discount as in `ndcg`, or a function of the rank, of the model "weights".
    gain : {"linear", "binary"}, default "linear"
        "linear": γ = g / max_gain. "binary": γ = 1 for a relevant item.
    max_gain : float, optional
        The largest possible gain. By default it is the largest gain in `true`.
    depth : int, default 1000
        Last rank D that a user can see. It is part of the number where C falls slowly, as in insq.
    cost_col : str, optional
        Column of `items` with the cost of an item, such as its time, of tbg and umeasure. By
        default an item costs 1, and so does every rank after the list.

    Notes
    -----
    Use it where you know how users read: patient ones (rbp with a large p), users who want T items
    (insq, inst), who stop once they have them (bpm) or once one item satisfies them (nerr8 to
    nerr11), or whose time is short (tbg). Choose the model before you look at results.
    `measure="items"` says whether it fits: compare it with how far users scroll. Do not use it for
    a page that is seen as a whole; take `precision` or `ndcg`.

    References
    ----------
    Moffat, Bailey, Scholer & Thomas (2017), ACM TOIS 35(3); Azzopardi, Thomas & Moffat (2019),
    cwl_eval; Moffat & Zobel (2008) for rbp; Moffat, Scholer & Thomas (2012) for insq; Zhang et al.
    (2017) for bpm; Azzopardi, Mackenzie & Moffat (2021) for nerr; Smucker & Clarke (2012) for tbg;
    Sakai & Dou (2013) for umeasure.

    Examples
    --------
    >>> true, pred = {"u": ["a", "b"]}, {"u": ["a", "x", "b"]}
    >>> round(rd.user_model(true, pred, model="rbp", p=0.5), 6)
    0.625
    >>> [rd.user_model(true, pred, model="bpm", T=2, measure=one) for one in ("total", "items")]
    [2.0, 3.0]
    """
    if model in WITHOUT_CHANCE and measure in ("total", "items"):
        raise OptionError(
            f'⟦model="{model}"⟧ has no chance to go on; take ⟦+measure="utility"⟧ or "residual"'
        )
    if cost_col is not None and model not in ("tbg", "umeasure"):
        raise OptionError(
            '⟦+cost_col=⟧ is the time of ⟦+model="tbg"⟧ and "umeasure"; other models have no time'
        )
    cut = model in UP_TO_K
    view = lists.matched.at(min(lists.k, depth) if cut else depth)
    p = 1 / (1 + rate) if model == "npv" else p or (0.9 if model == "nerr10" else 0.8)
    reader = Reader(model, p, T, beta, halflife, length, weights, view.k, cut and lists.k <= depth)
    scale = None if gain == "binary" else largest_gain(lists, max_gain, "user_model") or 1.0
    walk: Callable[..., Walk] = _walk_in_turn if model in BY_HITS else _walk_by_rank
    if cost_col is not None:
        walk = partial(_walk_by_time, cost_col=cost_col)

    def walked(
        unknown: bool,
    ) -> Walk:  # once for all measures, and for all k of a model that ignores it
        key = reader._replace(weights=as_key(weights)), scale, cost_col, unknown
        return lists.matched.derived(key, lambda: walk(view, reader, scale, unknown))

    seen = walked(unknown=False)
    if measure == "items":
        return np.full(len(lists), seen.items, np.float64)
    utility = np.where(np.equal(seen.items, 0), 0.0, ratio(seen.gain, seen.items))
    if measure == "residual":
        best = walked(unknown=True)
        return np.where(np.equal(best.items, 0), 1.0, ratio(best.gain, best.items)) - utility
    found = (
        seen.gain - seen.further * view.sum(_shares(view.hits, scale))
        if measure == "total"
        else utility
    )
    return np.where(lists.n_true > 0, found, np.nan)


def _shares(hits: Hits, scale: float | None) -> ndarray:
    """γ of each entry: its gain over the largest one, or 1 for a relevant item where there is no
    scale."""
    return (hits.gain > 0).astype(np.float64) if scale is None else hits.gain / scale


def _walk_by_rank(view: Lists, reader: Reader, scale: float | None, unknown: bool) -> Walk:
    """The walk of a model whose chances depend on the rank alone."""
    items = reader.total[view.n_shown] if reader.model == "weights" else reader.total[-1]
    gain = view.sum(_shares(view.hits, scale) * reader.sees(view.hits.rank))
    if unknown:
        gain = gain + items - view.sum(reader.sees(view.judged.rank), view.judged)
    return Walk(gain, items, reader.further)


def _walk_in_turn(view: Lists, reader: Reader, scale: float | None, unknown: bool) -> Walk:
    """The walk of a user whose chance to go on depends on what was found: from entry to entry, for
    all lists at a time."""
    entries = view.judged if unknown else view.hits
    share = _shares(entries, scale)
    sees = reader.sees(np.arange(1, reader.last + 2))
    total = reader.total
    bpm, inst = reader.model == "bpm", reader.model == "inst"
    gain, items, gained, skipped = np.zeros((4, len(view)))
    rank = np.zeros(len(view), np.int64)
    chance = np.ones(len(view))  # V of the rank after the last entry is chance · sees

    def found(on: Any) -> ndarray:
        """Σ γ of the ranks so far."""
        return gained[on] / (scale or 1.0) + unknown * skipped[on]

    def passed(on: Any, to: Any) -> tuple[ndarray, ndarray]:
        """Σ V over the ranks from one entry to another, none with a gain or all with γ = 1, and the
        chance after them."""
        left = chance[on]
        n = to - rank[on]
        if inst:
            slack = rank[on] - found(on) + 2 * reader.T
            if not unknown:
                between = slack**2 * (_trigamma(slack) - _trigamma(slack + n))
                return left * between, left * (slack / (slack + n)) ** 2
            # The slack stays, so that V falls by the same factor at each rank.
            factor = ((slack - 1) / slack) ** 2
            between = np.where(factor == 1, n, ratio(1 - factor**n, 1 - factor))
            return left * between, left * factor**n
        if not unknown:
            return left * (total[to] - total[rank[on]]), left
        most = np.ceil(reader.T - found(on)) if bpm else 1
        return left * sees[rank[on]] * np.minimum(n, most), left * (n < most)

    for place in in_turn(entries.number):
        on = entries.list[place]
        above = entries.rank[place] - 1
        more, left = passed(on, above)
        seen = left * sees[above]
        items[on] += more + seen
        gain[on] += unknown * more + seen * share[place]
        gained[on] += share[place] if scale is None else entries.gain[place]
        skipped[on] += above - rank[on]
        rank[on] = above + 1
        goes_on: ndarray = 1 - share[place]
        if bpm:
            goes_on = found(on) < reader.T
        elif inst:
            slack = rank[on] - found(on) + 2 * reader.T
            goes_on = ((slack - 1) / slack) ** 2
        chance[on] = left * goes_on
    more, left = passed(slice(None), reader.last)
    return Walk(gain + unknown * more, items + more, left * reader.further)


def _trigamma(x: ndarray) -> ndarray:
    """Σ_{j ≥ 0} 1/(x + j)²: sixteen terms, and the rest by the formula of Euler and Maclaurin,
    exact to 1e-16."""
    head = sum(1 / (x + j) ** 2 for j in range(16))
    y = 1 / (x + 16)
    rest = y**3 * (1 / 6 - y**2 * (1 / 30 - y**2 * (1 / 42 - y**2 / 30)))
    return head + y + y**2 / 2 + rest


def _walk_by_time(
    view: Lists, reader: Reader, scale: float | None, unknown: bool, *, cost_col: str
) -> Walk:
    """The walk of a model of time, where items have costs and each rank after the list costs 1."""
    matched = view.matched
    n = view.n_shown
    places = spans(matched.start, n)
    of_list = run_of(n)
    cost = _costs(view, cost_col)[matched.item[places]]
    number = 1 + place_in_run(n)
    seen = np.zeros(len(matched.item))
    seen[places] = reader.after(running(np.add, number, cost) - cost)
    spent = np.bincount(of_list, cost, len(view))
    rest = reader.last - n
    if reader.model == "tbg":
        behind = reader.after(spent) * reader.total[rest]
    else:
        some = np.clip(np.ceil(reader.length - spent), 0, rest)  # ranks that anyone sees
        behind = some - (some * spent + some * (some - 1) / 2) / reader.length
    items = np.bincount(of_list, seen[places], len(view)) + behind
    gain = view.sum(_shares(view.hits, scale) * seen[view.hits.place])
    return Walk(
        gain + unknown * (items - view.sum(seen[view.judged.place], view.judged)), items, 0.0
    )


def _costs(view: Lists, name: str) -> ndarray:
    """Cost of each item code."""
    if not view.sides.has("items"):
        raise OptionError(f"⟦cost_col={name!r}⟧ is a column of ⟦+items=⟧, which is not given")
    catalogue = view.sides.items
    values = read_values(catalogue.frame, name, "items")
    if (values < 0).any():
        raise DataError(f"items[{name!r}] holds negative costs ({examples(values[values < 0])})")
    found = np.append(values, np.nan)[catalogue.row_of]
    lacking = distinct(view.matched.item[np.isnan(found[view.matched.item])])
    if len(lacking):
        raise DataError(f"items has no {name!r} for {len(lacking):,} items of pred")
    return found


@metric(better="smaller", optional=("not_judged",))
def rbp_residual(
    lists: Lists, *, p: Share = 0.8, beyond: Literal["always", "unjudged"] = "always"
) -> ndarray:
    """How much items that nobody judged could add to `rbp`; smaller is better, in [0, 1].

    Formula
    -------
    (1 − p) Σ p^(i−1) over the ranks i ≤ m that are not judged, plus p^m, where m = min(k, n_pred).
    An item is judged if `true` has it with a relevance of at least 0. It is defined for every list.

    Parameters
    ----------
    p : float in (0, 1), default 0.8
        Persistence, as in `rbp`.
    beyond : {"always", "unjudged"}, default "always"
        "always": the term p^m, of the items after rank m, counts in every list. "unjudged": a list
        that shows judged items alone has the value 0.

    Notes
    -----
    Use it beside `rbp`, or beside any metric of the first ranks: if it is larger than the
    difference between two models, their order may be due to what was not judged. It is an upper
    bound, reached only if all of these items were perfect. Do not read it as an error of sampling,
    which the confidence interval shows.

    References
    ----------
    Moffat & Zobel (2008), ACM TOIS 27(1); trec_eval 10 `rbp_resid`, with p=0.9 and
    beyond="unjudged".

    Examples
    --------
    >>> true, pred = {"u": {"a": 1, "x": 0}}, {"u": ["a", "y", "x"]}
    >>> round(rd.rbp_residual(true, pred, p=0.5), 6)
    0.375
    """
    value = 1 - (1 - p) * lists.sum(p ** (lists.judged.rank - 1.0), lists.judged)
    n_judged = np.bincount(lists.judged.list, minlength=len(lists))
    whole = (n_judged == lists.n_shown) & (n_judged > 0)
    return np.where(whole & (beyond == "unjudged"), 0.0, value)
