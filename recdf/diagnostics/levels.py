"""Levels beside a metric: the best that lists without a model reach (floors and ceilings), and what
a random order of the catalogue reaches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Unpack

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError, RecdfWarning
from ..inputs.codes import first_rows
from ..inputs.constraints import NATURAL, POSITIVE, check_value
from ..inputs.door import takes_options
from ..inputs.frames import read_frame
from ..inputs.options import CallArguments
from ..inputs.sorting import dense_codes, flags_at, place_in_run, run_of, spans
from ..judge.per_user_columns import refuse_taken
from ..matching.hits import HitArrays, Hits, ratio
from ..matching.lists import Matched
from ..metrics.call import Call
from ..metrics.compute import compute, mean, per_user_frame, settle_undefined
from ..metrics.record import Request
from ..metrics.strings import Metrics, parse
from ..stats.numbers import Floats, Integers, Mask
from ..tables.cells import AnyFrame, beside_columns

# ------------------------------------------------------------------------------------------
# Levels beside a metric: the metric of lists that need no model, made from the rows of `true` at
# other ranks.
#
# Contract: a level is computed by the kernel of the metric itself, on the same population, over
# lists that hold the relevant items at the ranks of a random order, of the most popular items, or
# of the best order.


class Levels(pd.DataFrame, metaclass=AnyFrame):
    """A tidy table of levels, one row per metric and k; `.per_user` has the level of each list."""

    _metadata: ClassVar[list[str]] = ["per_user"]
    per_user: pd.DataFrame


def call_of_levels(
    function: Any, options: Mapping[str, Any], metrics: Metrics, k: Any, refused: Sequence[str] = ()
) -> Call:
    """Check the arguments of a function about levels; `refused` are options that have no meaning
    for it."""
    call = Call.from_arguments(function, options, True, lambda checked: parse(metrics, k, checked))
    for one in call.requests:
        family = one.metric.family if one.metric.built_in else "ranking"
        if (
            one.per == "item"
            or len(one.columns) > 1
            or family not in ("ranking", "relevance", "user_models")
        ):
            kind = (
                "pooled"
                if one.pooled
                else "a metric of exposure"
                if one.per == "item"
                else f"a metric of {family}"
            )
            raise OptionError(
                f"{one.name} is {kind}; expected one number about the ranks of relevant items, "
                "such as 'ndcg@10'",
                argument="metrics",
            )
    for name in refused:
        if getattr(call.options, name):
            raise OptionError(f"{function.__name__} takes no ⟦{name}=⟧")
    return call


@contextmanager
def matched_quietly(call: Call, true: Any, pred: Any) -> Iterator[Matched]:
    """Match two frames without the warnings that `evaluate` gives about them."""
    with (
        warnings.catch_warnings(action="ignore", category=RecdfWarning),
        call.match(true, pred) as matched,
    ):
        yield matched


def levels_table(
    matched: Matched,
    call: Call,
    found: Mapping[str, Floats],
    errors: Mapping[str, float] | None = None,
    **lengths: Integers,
) -> Levels:
    """Return the means of the levels of each list by `by` value, where chance was simulated with
    their standard `errors`. The table of each list has the `lengths` too."""
    rows = []
    labels = matched.by.take(np.repeat(np.arange(len(matched.by)), len(call.requests)))
    for number in range(len(matched.by)):
        mine = matched.list_by == number
        weight = None if matched.weight is None else matched.weight[mine]
        for request in call.requests:
            (name,) = request.columns
            values = found[name][mine]
            cells = {
                "metric": name.removesuffix(f"@{request.k}"),
                "k": request.k,
                "value": mean(values, weight),
            }
            if errors is not None:
                cells["se"] = errors.get(name, 0.0)
                cells["how"] = "simulated" if name in errors else "exact"
            rows.append({**cells, "n": np.count_nonzero(~np.isnan(values))})
    labels, numbers = labels.rename(columns=str).reset_index(drop=True), pd.DataFrame(rows)
    refuse_taken([*labels], [*numbers], "pred")
    table = Levels(beside_columns(labels, numbers))
    table.per_user = per_user_frame(matched, {**lengths, **found})
    return table


# -- rows of true at new ranks


def true_rows(matched: Matched, lists: Integers, keep: Mask) -> tuple[Integers, Integers]:
    """Return those rows of `true` of some lists that are to be kept: places in `lists`, and places
    of rows."""
    start = np.append(matched.true_lists.start, matched.true_lists.start[-1])
    entry = matched.true_list[lists]
    length = np.diff(start)[entry]
    of = run_of(length)
    row = spans(start[entry], length)
    return of[keep[row]], row[keep[row]]


def with_ranks(
    matched: Matched,
    lists: Integers,
    n_pred: Integers,
    of: Integers,
    row: Integers,
    rank: Integers,
    number: Floats | None = None,
) -> Matched:
    """Return some lists of these lengths with rows of `true` at given ranks; `of` is the place in
    `lists` of each row.

    `number` is for sums over hits, which need no order; by default the hits of each list are
    numbered by rank.
    """
    if number is None:
        order = np.lexsort((rank, of))
        of = of[order]
        row = row[order]
        rank = rank[order]
        number = place_in_run(np.bincount(of)) + 1
    hits = HitArrays(of, rank, matched.true_lists.gain[row], number, row, row)
    taken = {
        name: getattr(matched, name)[lists] for name in ("list_by", "n_true", "start", "true_list")
    }
    return replace(
        matched,
        **taken,
        n_pred=n_pred,
        pool=Hits(hits),
        repeats=(of[:0], of[:0]),
        untied=True,
        cache={},
    )


def best_order(matched: Matched) -> Matched:
    """Return the lists with their items by descending gain."""
    pool = matched.pool
    order = np.lexsort((-pool.gain, pool.list))
    of = pool.list[order]
    rank = place_in_run(np.bincount(of)) + 1
    return with_ranks(
        matched, np.arange(len(matched)), matched.n_pred, of, pool.true_place[order], rank
    )


def values_of(matched: Matched, call: Call, *requests: Request) -> dict[str, Floats]:
    """Return the values per list, by column, of some metrics of a call, by default all."""
    parts = [compute(matched, one, call.options) for one in requests or call.requests]
    return {name: values for part in parts for name, values in part.items()}


@takes_options()
def ceiling(
    true: Any,
    pred: Any,
    metrics: Metrics,
    k: int | Sequence[int] = 10,
    *,
    items: Any = None,
    exclude: Any = None,
    **options: Unpack[CallArguments],
) -> Levels:
    """Return the metrics of the best order of the items that each list holds: what a better ranking
    could reach.

    The whole list of `pred` counts, also below k, so that long lists of candidates say what a
    second stage can make of them. The recall of all candidates is `recall` at a k that no list
    exceeds.

    Parameters
    ----------
    true, pred : DataFrame, mapping or Arrow stream
        As for `evaluate`. The items of each list are ordered by descending gain.
    metrics : str, Metric, list of them, or mapping of own names to them
        Metrics of ranking and relevance, such as "ndcg@10".
    k : int or list of int, default 10
        Cut-offs of the metrics whose string has none.
    items : DataFrame, list, Series or Index, optional
        The catalogue, for metrics that need it.
    exclude : DataFrame, optional
        Pairs of list key (or some of its columns) and item to leave out of both, as for `evaluate`.
    {options}

    Returns
    -------
    DataFrame
        The `by` columns, `metric`, `k`, `value`, `n` (lists with a value). Its attribute `per_user`
        has the ceiling of each list.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError
        As for `evaluate`.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.ceiling({"u": ["a", "b"]}, {"u": ["x", "y", "a"]}, ["ndcg", "recall"], k=2)
       metric  k     value  n
    0    ndcg  2  0.613147  1
    1  recall  2  0.500000  1
    """
    call = call_of_levels(ceiling, {**options, "items": items, "exclude": exclude}, metrics, k)
    with matched_quietly(call, true, pred) as matched:
        found = values_of(best_order(matched), call)
        return levels_table(matched, call, found, n_true=matched.n_true, n_pred=matched.n_pred)


# ------------------------------------------------------------------------------------------
# Chance levels: what a random order of the catalogue reaches, exactly or by simulation.
#
# A metric that is a sum over hits of numbers that depend on the rank has an exact level, whatever
# its formula is: each relevant item stands at each rank with probability 1/N, so that the kernel
# is called for lists that hold every relevant item at every rank, and its value divided by N. The
# number of hits up to a rank, which average precision reads, is the expected one there. Lists
# with equal lengths are computed once.


DRAWN_ROWS = 1_000_000  # relevant items that a simulation draws, over all lists and repetitions
MOST_DRAWS = 20_000
RANKED_ROWS = 4_000_000  # relevant items at ranks that are held at the same time

# Metrics that are sums over hits, some of them only with certain values of a parameter.
SUMS_OVER_HITS = {
    **dict.fromkeys(("precision", "recall", "f1", "hits", "rprecision", "arhr", "dcg", "rbp"), ()),
    "mrr": ("of", "all"),
    "ndcg": ("ideal", "relevant", "k"),
    "mapr": ("normalizer", "relevant", "achievable", "k", "shown"),
}
# Metrics of the first hit, by what a hit at a rank is worth.
OF_FIRST_HIT = {
    "hitrate": lambda rank: 1.0,
    "mrr": lambda rank: 1 / rank,
}


def _at_every_rank(
    matched: Matched,
    lists: Integers,
    request: Request,
    call: Call,
    n: Floats,
    r: Floats,
    inside: Mask,
) -> Floats:
    """Return the expectation of a sum over hits for some lists; `n` and `r` are their (relevant)
    candidates."""
    k = np.minimum(
        n, max(matched.n_true.max(initial=0), 1) if request.k is None else request.k
    ).astype(np.int64)
    blocks = int((k * r).sum() // RANKED_ROWS) + 1
    parts = []
    for some in np.array_split(np.arange(len(lists)), blocks):
        of, row = true_rows(matched, lists[some], inside)
        again = run_of(k[some][of])
        rank = spans(np.ones(len(of), np.int64), k[some][of])
        of = of[again]
        number = 1 + (rank - 1) * (r[some][of] - 1) / np.maximum(n[some][of] - 1, 1)
        ranked = with_ranks(
            matched, lists[some], n[some].astype(np.int64), of, row[again], rank, number
        )
        parts.append(values_of(ranked, call, request)[request.columns[0]])
    return np.concatenate(parts) / np.maximum(n, 1)


def _of_first_hit(n: Floats, r: Floats, k: int, value: Callable[[int], float]) -> Floats:
    """Return the expected value of the rank of the first hit among k, 0 without one."""
    total = np.zeros(len(n))
    none = np.ones(len(n))
    for rank in range(1, int(min(k, n.max(initial=0))) + 1):
        share = np.where(rank <= n, r / np.maximum(n - rank + 1, 1), 0.0).clip(0, 1)
        total += none * share * value(rank)
        none *= 1 - share
    return total


def _drawn_ranks(rng: np.random.Generator, of: Integers, n: Integers) -> Integers:
    """Draw different ranks up to `n` for the items of each list; `of` is the list of each item, `n`
    by list.

    Equal ranks of a list are drawn again until none are left. No rank is treated unlike another, so
    that all ways to give out ranks are equally likely.
    """
    rank = rng.integers(1, n[of] + 1)
    left = np.arange(len(of))
    while len(left):
        again = left[pd.Series(of[left] * (n.max() + 1) + rank[left]).duplicated()]
        rank[again] = rng.integers(1, n[of[again]] + 1)
        mixed = flags_at(of[again], len(n))
        left = left[mixed[of[left]]]
    return rank


def _simulated(
    matched: Matched,
    lists: Integers,
    weight: Floats,
    requests: Sequence[Request],
    call: Call,
    n: Integers,
    inside: Mask,
    seed: int,
) -> tuple[dict[str, Floats], dict[str, float]]:
    """Return the mean over random orders of each list, and the standard error of their weighted
    mean.

    A metric depends on the ranks of the relevant items alone, so that only these are drawn. All
    lists are evaluated with many orders at once.
    """
    of, row = true_rows(matched, lists, inside)
    times = np.clip(DRAWN_ROWS // max(len(of), len(lists)), 2, MOST_DRAWS)
    again = (of + np.arange(times)[:, None] * len(lists)).ravel()
    many = np.tile(n, times)
    found = {}
    errors = {}
    rank = _drawn_ranks(np.random.default_rng(seed), again, many)
    drawn = with_ranks(matched, np.tile(lists, times), many, again, np.tile(row, times), rank)
    for name, values in values_of(drawn, call, *requests).items():
        by_draw = values.reshape(times, -1)
        known = ~np.isnan(by_draw)
        found[name] = ratio(np.nansum(by_draw, axis=0), np.count_nonzero(known, axis=0))
        means = ratio(np.where(known, by_draw, 0.0) @ weight, known @ weight)
        errors[name] = np.nanstd(means, ddof=1) / np.sqrt(times)
    return found, errors


def chance_of(
    matched: Matched, call: Call, n_items: int | None, seed: int = 0
) -> tuple[dict[str, Floats], dict[str, float]]:
    """Return the chance level of each list, by column, and the standard errors of those that are
    simulated.

    `n_items` is the size of the catalogue; None stands for the side table `items`.
    """
    inside = np.ones(matched.n_items, bool) if n_items is not None else matched.sides.items.inside
    size = len(matched.sides.items.codes) if n_items is None else n_items
    n = np.full(len(matched), size) - (
        0 if matched.n_excluded is None else matched.n_excluded(inside)
    )
    there = inside[matched.true_lists.item]
    n_true = len(pd.unique(matched.true_lists.item[there]))
    every = np.arange(len(matched))
    if (
        size < n_true
        or (np.bincount(true_rows(matched, every, there)[0], minlength=len(matched)) > n).any()
    ):
        raise DataError(f"items={size:,}, but true has {n_true:,} items", argument="items")
    r = matched.at(None).sum_true(there)
    place = every
    relevant = there & (matched.true_lists.gain > 0)
    alike = matched.true_lists.constant_gain and matched.item_weights is None
    if alike and all(
        one.metric.built_in for one in call.requests
    ):  # one list stands for all of the same lengths
        place = dense_codes([n, r.astype(np.int64), matched.n_true])[0]
    lists = first_rows(place, place.max(initial=-1) + 1)
    found = {}
    rest = []
    errors: dict[str, float] = {}
    for request in call.requests:
        metric = request.metric
        own = (n[lists].astype(float), r[lists])
        parameter, *values = SUMS_OVER_HITS.get(metric.name) or ("", None)
        exact = metric.built_in and matched.item_weights is None
        if exact and metric.name in SUMS_OVER_HITS and request.params.get(parameter) in values:
            found[request.columns[0]] = _at_every_rank(
                matched, lists, request, call, *own, relevant
            )
        elif exact and metric.name in OF_FIRST_HIT:
            first = _of_first_hit(*own, request.k or size, OF_FIRST_HIT[metric.name])
            found[request.columns[0]] = settle_undefined(first, request, call.options)
        else:
            rest.append(request)
    if rest:
        weight = np.bincount(place, matched.weight, minlength=len(lists)).astype(float)
        simulated, errors = _simulated(matched, lists, weight, rest, call, n[lists], there, seed)
        found |= simulated
    return {name: one[place] for name, one in found.items()}, errors


@takes_options()
def chance_level(
    true: Any,
    metrics: Metrics,
    k: int | Sequence[int] = 10,
    *,
    items: Any,
    exclude: Any = None,
    seed: int = 0,
    **options: Unpack[CallArguments],
) -> Levels:
    """Return what a random order of the catalogue reaches on average: the level below which a model
    knows nothing.

    Parameters
    ----------
    true : DataFrame, mapping or Arrow stream
        As for `evaluate`.
    metrics : str, Metric, list of them, or mapping of own names to them
        As for `evaluate`. Metrics of exposure have no chance level.
    k : int or list of int, default 10
        Cut-offs of the metrics whose string has none.
    items : int, DataFrame, list, Series or Index
        The catalogue, or the number of its items. A relevant item outside the catalogue is never
        recommended.
    exclude : DataFrame, optional
        Pairs of list key (or some of its columns) and item that are neither recommended nor
        relevant.
    seed : int, default 0
        Seed of the simulation.
    {options}

    Returns
    -------
    DataFrame
        `metric`, `k`, `value`, `se` (standard error of a simulated value, 0 for an exact one),
        `how` ("exact" or "simulated"), `n` (lists with a value). Its attribute `per_user` has the
        level of each list.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError
        If the input is wrong, such as a catalogue with fewer items than a list has relevant ones.

    Notes
    -----
    Let a list have N candidates, of which n are relevant, and m = min(k, N). Then precision has n/N
    (if k ≤ N), recall m/N, hitrate 1 − C(N−n, m)/C(N, m), mrr Σ_r P(first hit at r)/r, ndcg (Σ
    gain/N)·Σ_{i ≤ m} disc(i)/IDCG and mapr (1/n) Σ_{i ≤ m} (n/N)(1 + (i−1)(n−1)/(N−1))/i. In the
    same way f1, rprecision, hits, arhr, dcg and rbp are exact. Other metrics, and parameters that
    make a divisor depend on the hits, are simulated with random orders.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.chance_level({"u": ["a", "b"], "v": ["c"]}, ["hitrate", "recall"], k=2, items=4)
        metric  k     value   se    how  n
    0  hitrate  2  0.666667  0.0  exact  2
    1   recall  2  0.500000  0.0  exact  2
    """
    check_value("seed", seed, NATURAL)
    counted = isinstance(items, Integral) and not isinstance(items, bool)
    if counted:
        POSITIVE.check("items", items)
    if items is None:
        raise OptionError("⟦items=None⟧; expected the catalogue, or how many items it has")
    given = {**options, "items": None if counted else items, "exclude": exclude}
    call = call_of_levels(chance_level, given, metrics, k, ("by", "by_in_true", "judged_only"))
    users = "true" if isinstance(call.options.users, str) else call.options.users
    call = replace(call, options=call.options.updated(score_col=False, rank_col=None, users=users))
    with matched_quietly(call, true, read_frame(true, "true", call.options).iloc[:0]) as matched:
        found = chance_of(matched, call, items if counted else None, seed)
        return levels_table(matched, call, *found)
