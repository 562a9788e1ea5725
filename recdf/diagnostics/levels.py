"""Levels beside a metric: the metric of lists that need no model, made from the rows of `true` at
other ranks.

Contract: a level is computed by the kernel of the metric itself, on the same population, over lists
that hold the relevant items at the ranks of a random order, of the most popular items, or of the
best order.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Unpack

import numpy as np
import pandas as pd

from ..errors import OptionError, RecdfWarning
from ..inputs.door import takes_options
from ..inputs.options import CallArguments
from ..inputs.sorting import spans
from ..matching.hits import HitArrays, Hits
from ..matching.lists import Matched
from ..metrics.call import Call
from ..metrics.compute import compute, mean, per_user_frame
from ..metrics.direction import parse
from ..metrics.metric import Metric
from ..metrics.record import Request
from ..stats.numbers import Floats
from ..tables.cells import AnyFrame

Metrics = str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric]


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
            words = (
                f"{one.name} is {kind}; expected one number about the ranks of relevant items, "
                "such as 'ndcg@10'"
            )
            raise OptionError(words, argument="metrics")
    for name in refused:
        if getattr(call.options, name):
            raise OptionError(f"{function.__name__} takes no ⟦{name}=⟧", argument=name)
    return call


@contextmanager
def matched_quietly(call: Call, true: Any, pred: Any) -> Iterator[Matched]:
    """Match two frames without the warnings that `evaluate` gives about them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecdfWarning)
        with call.match(true, pred) as matched:
            yield matched


def levels_table(
    matched: Matched,
    call: Call,
    found: Mapping[str, Floats],
    lengths: Mapping[str, np.ndarray],
    more: Callable[[str], Mapping[str, Any]],
) -> Levels:
    """Return the means of the levels of each list by `by` value; `more` returns further cells of a
    metric's column."""
    rows, of = [], np.repeat(np.arange(len(matched.by)), len(call.requests))
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
            rows.append({**cells, **more(name), "n": int(np.count_nonzero(~np.isnan(values)))})
    table = Levels(rows)
    for place, name in enumerate(matched.by.columns):
        table.insert(place, str(name), matched.by[name].take(of).array)
    table.per_user = per_user_frame(matched, {**lengths, **found})
    return table


# -- rows of true at new ranks


def true_rows(
    matched: Matched, lists: np.ndarray, keep: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of `true` of some lists, or those that are to be kept: places in `lists`, and
    places of rows."""
    start, entry = (
        np.append(matched.true_lists.start, matched.true_lists.start[-1]),
        matched.true_list[lists],
    )
    length = np.diff(start)[entry]
    of, row = np.repeat(np.arange(len(lists)), length), spans(start[entry], length)
    return (of, row) if keep is None else (of[keep[row]], row[keep[row]])


def with_ranks(
    matched: Matched,
    lists: np.ndarray,
    n_pred: np.ndarray,
    of: np.ndarray,
    row: np.ndarray,
    rank: np.ndarray,
    number: np.ndarray | None = None,
) -> Matched:
    """Return some lists of these lengths with rows of `true` at given ranks; `of` is the place in
    `lists` of each row.

    `number` is for sums over hits, which need no order; by default the hits of each list are
    numbered by rank.
    """
    if number is None:
        order = np.lexsort((rank, of))
        of, row, rank = of[order], row[order], rank[order]
        number = np.arange(1, len(of) + 1) - np.searchsorted(of, of)
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
    rank = np.arange(1, len(of) + 1) - np.searchsorted(of, of)
    return with_ranks(
        matched, np.arange(len(matched)), matched.n_pred, of, pool.true_place[order], rank
    )


def values_of(matched: Matched, call: Call, *requests: Request) -> dict[str, Floats]:
    """Return the values per list, by column, of some metrics of a call, by default all."""
    parts = [compute(matched, one, call.options) for one in requests or call.requests]
    return {name: values for part in parts for name, values in part.items()}


@takes_options
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
        lengths = {"n_true": matched.n_true, "n_pred": matched.n_pred}
        return levels_table(
            matched, call, values_of(best_order(matched), call), lengths, lambda _: {}
        )
