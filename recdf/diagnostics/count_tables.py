"""Tables beside the metrics: recommended rows with their hits, hits by rank, exposure by item, gaps
between users.

Contract: each function takes the arguments of `evaluate`, or its result, and returns one tidy frame
with labels and a RangeIndex.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, Unpack

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..docstrings import says_as
from ..errors import ColumnError, DataError, examples
from ..evaluation.summary import HasPerUser, per_user_table, recommender_columns, summarize
from ..evaluation.value_moments import CONFIDENCE
from ..inputs.codes import first_rows
from ..inputs.door import checks_names, table_of_users, takes_options
from ..inputs.frames import EXACT, column, float_column
from ..inputs.ids import alike_ids, with_alike_ids
from ..inputs.options import CallArguments, as_columns
from ..inputs.sorting import place_in_run, run_of, spans
from ..judge.choices import Columns
from ..matching.counts import ListCounts
from ..matching.hits import ratio
from ..matching.lists import Lists
from ..metrics.call import Call, check_k
from ..metrics.compute import label_frame
from ..stats.numbers import normal_quantile, undefined_is_nan
from ..stats.shares import wilson


def _refuse_names(labels: Iterable[Any], own: Sequence[str]) -> None:
    """Raise if a key, item or `by` column has the name of a column of the table, which would
    replace it."""
    taken = [name for name in labels if name in own]
    if taken:
        raise ColumnError(
            f"the column {taken[0]!r} has the name of a column of the table; rename it"
        )


@takes_options()
def hit_table(
    true: Any,
    pred: Any,
    k: int = 10,
    *,
    items: Any = None,
    exclude: Any = None,
    carry: Columns = (),
    missed: bool = False,
    **options: Unpack[CallArguments],
) -> DataFrame:
    """List the recommended rows of the first k with their ranks and hits, as a metric reads them.

    Parameters
    ----------
    true, pred : DataFrame, mapping or Arrow stream
        As in `evaluate`.
    k : int, default 10
        Cut-off: ranks 1 to k.
    items : DataFrame, list, Series or Index, optional
        Catalogue, with `value_col` also the items' values.
    exclude : DataFrame, mapping or Arrow stream, optional
        Rows of (user, item) to leave out of both frames, as for `evaluate`.
    carry : str or list of str, optional
        Columns of `pred` to take along, such as a title.
    missed : bool, default False
        Add the relevant items that are not among the first k of their list, after its other rows,
        with a null rank.
    {options}

    Returns
    -------
    DataFrame
        One row per recommended item of the lists of the population, list after list, best rank
        first: `by` columns, list key columns, item id, `rank` (int64), `hit` (bool), `gain`
        (float64, 0 for a miss) and, with `value_col`, `value` (float64, as recommended), then the
        columns of `carry`. With `missed`, `rank` is Int64.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError
        As `evaluate` does.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.diagnostics.hit_table({"ann": ["a", "b"]}, {"ann": ["a", "x", "b"]}, k=2)
      user_id item_id  rank    hit  gain
    0     ann       a     1   True   1.0
    1     ann       x     2  False   0.0
    """
    call = Call.from_arguments(hit_table, {**options, "items": items, "exclude": exclude})
    k = check_k(k)
    item_col = call.options.item_col
    names = as_columns(carry)
    with call.match(true, pred) as matched:
        _, frame = matched.frames
        labels = [*matched.by.columns, *matched.keys, item_col]
        own = ["rank", "hit", "gain"]
        _refuse_names(labels, [*own, "value"])
        own += [] if matched.values is None else ["value"]
        _refuse_names(names, [*labels, *own])
        lists = matched.at(k)
        places = spans(matched.start, lists.n_shown)
        rows = matched.rows(places)
        of_list = run_of(lists.n_shown)
        table = label_frame(matched).take(of_list).reset_index(drop=True)
        table[item_col] = frame[item_col].take(rows).array
        table["rank"] = place_in_run(lists.n_shown) + 1
        gain = np.zeros(len(matched.item))
        gain[matched.judged.place] = matched.judged.gain
        table["hit"], table["gain"] = gain[places] > 0, gain[places]
        if matched.values is not None:
            table["value"] = matched.values.pred[places]
        for name in names:
            table[name] = column(frame, name, "pred").take(rows).array
        return _with_missed(lists, table, item_col) if missed else table


def _with_missed(lists: Lists, table: DataFrame, item_col: str) -> DataFrame:
    """Add the relevant rows of `true` that no recommended row of their list has found, after the
    rows of the list."""
    matched = lists.matched
    truth, _ = matched.frames
    rows_of = matched.true_lists
    n = matched.of_true(rows_of.n_relevant)
    places = spans(matched.of_true(rows_of.start[:-1]), n)
    of_list = run_of(n)
    found = lists.hits
    size = len(rows_of.gain)
    lost = ~np.isin(of_list * size + places, found.list * size + found.true_place)
    places = places[lost]
    of_list = of_list[lost]
    more = label_frame(matched).take(of_list).reset_index(drop=True)
    more[item_col] = truth[item_col].take(rows_of.rows(places)).array
    more["hit"], more["gain"] = False, rows_of.gain[places]
    more["rank"] = pd.array([pd.NA] * len(more), "Int64")
    order = np.argsort(np.concatenate([run_of(lists.n_shown), of_list]), kind="stable")
    parts = with_alike_ids([table.astype({"rank": "Int64"}), more], [item_col], "items")
    both = pd.concat(parts, ignore_index=True)
    return both[table.columns].take(order).reset_index(drop=True)


@says_as(hit_table)
@takes_options()
def position_table(
    true: Any,
    pred: Any,
    k: int = 10,
    *,
    position_col: str | None = None,
    exclude: Any = None,
    **options: Unpack[CallArguments],
) -> DataFrame:
    """Hits and hit rate by rank, or by position on the page, with intervals.

    Formula: hit_rate = hits / shown with the Wilson score interval of a share, at a confidence of
    0.95.

    Parameters
    ----------
    {true}
    k : int, default 10
        Ranks 1 to k.
    position_col : str, optional
        Column of `pred` with the position on the page, such as `from_impressions` keeps: from 0 or
        1, and with holes for advertisements. The table then has a row for each position of an item
        among the first k, and not a row for each rank.
    {exclude}
    {options}

    Returns
    -------
    DataFrame
        One row per `by` value and rank: `by` columns, `rank` (or `position_col`), `shown` (items of
        the lists of the population at this rank), `hits` (int64), `hit_rate`, `ci_low`, `ci_high`
        (float64, null where nothing is shown).

    {Raises}

    References
    ----------
    Wilson (1927), Journal of the American Statistical Association 22.

    Examples
    --------
    >>> import recdf as rd
    >>> table = rd.diagnostics.position_table(
    ...     {"u": ["a"], "v": ["b"]}, {"u": ["a", "x"], "v": ["y"]}, k=2
    ... )
    >>> table[["rank", "shown", "hits"]]
       rank  shown  hits
    0     1      2     1
    1     2      1     0
    """
    call = Call.from_arguments(position_table, {**options, "exclude": exclude})
    k = check_k(k)
    name = position_col or "rank"
    with call.match(true, pred) as matched:
        _, frame = matched.frames
        lists = matched.at(k)
        n_by = len(matched.by)
        places = spans(matched.start, lists.n_shown)
        of_list = run_of(lists.n_shown)
        at = place_in_run(lists.n_shown) + 1
        values = np.arange(1, k + 1)
        if position_col is not None:
            at = float_column(frame, position_col, "pred")[matched.rows(places)]
            known = ~np.isnan(at)  # a row without a position is left out
            places = places[known]
            of_list = of_list[known]
            at = at[known]
            values = np.unique(at)
            if beyond := examples(values[np.abs(values) >= EXACT]):
                raise DataError(f"pred[{position_col!r}] holds {beyond}; expected positions")
            if (values == np.floor(values)).all():
                values = values.astype(np.int64)
        _refuse_names(matched.by.columns, [name, "shown", "hits", "hit_rate", "ci_low", "ci_high"])
        cell = matched.list_by[of_list] * len(values) + np.searchsorted(values, at)
        counts = {"shown": cell, "hits": cell[np.isin(places, lists.hits.place)]}
        table = matched.by.take(np.repeat(np.arange(n_by), len(values))).reset_index(drop=True)
        table[name] = np.tile(values, n_by)
        for count, cells in counts.items():
            table[count] = np.bincount(cells, minlength=n_by * len(values))
    table["hit_rate"] = rate = ratio(table["hits"], table["shown"])
    z = normal_quantile((1 + CONFIDENCE) / 2)
    with undefined_is_nan():  # a position without items has no rate
        low, high = wilson(rate, table["shown"].to_numpy(), z)
    return table.assign(ci_low=low.clip(0), ci_high=high.clip(None, 1))


@says_as(hit_table)
@takes_options()
def exposure_table(
    pred: Any,
    k: int | None = 10,
    *,
    items: Any = None,
    true: Any = None,
    exclude: Any = None,
    **options: Unpack[CallArguments],
) -> DataFrame:
    """How often and how high each item is shown: the table behind the metrics of exposure.

    Parameters
    ----------
    pred : DataFrame, mapping or Arrow stream
        Recommendations that were shown, as in `evaluate`.
    k : int or None, default 10
        Cut-off: ranks 1 to k; None is the whole list.
    items : DataFrame, list, Series or Index, optional
        Catalogue. Its items come first in the table, also those that are never shown.
    true : DataFrame, mapping or Arrow stream, optional
        Count the lists of the population alone, as `gini` and the other metrics of exposure do in
        `evaluate`. Default: every list of `pred`.
    {exclude}
    {options}

    Returns
    -------
    DataFrame
        One row per `by` value and item, in the order of `items` and then of first appearance: `by`
        columns, item id, `shown`, `first_shown` (times shown at all and at rank 1; int64), `share`
        (of all that is shown) and `exposure` (Σ 1/log2(rank + 1)). All but `share` add up over
        parts of the lists.

    {Raises}

    Examples
    --------
    >>> import recdf as rd
    >>> rd.diagnostics.exposure_table({"u": ["a", "b"], "v": ["a"]}, items=["a", "b", "c"]).round(3)
      item_id  shown  share  first_shown  exposure
    0       a      2  0.667            2     2.000
    1       b      1  0.333            0     0.631
    2       c      0  0.000            0     0.000
    """
    call = Call.from_arguments(exposure_table, {**options, "items": items, "exclude": exclude})
    k = None if k is None else check_k(k)
    item_col = call.options.item_col
    with call.match(true, pred) as matched:
        _, frame = matched.frames
        names = ["shown", "first_shown", "share", "exposure"]
        _refuse_names([*matched.by.columns, item_col], names)
        lists = matched.at(k)
        labels = []
        codes = np.empty(0, np.int32)
        if matched.sides.has("items"):
            catalogue = matched.sides.items
            codes = catalogue.codes
            labels.append(catalogue.frame[item_col].take(catalogue.row_of_first[codes]))
        others = pd.unique(matched.item[np.sort(spans(matched.start, lists.n_shown))])
        others = others[~np.isin(others, codes)]
        if len(others) or not labels:
            place = first_rows(matched.item, matched.n_items)
            labels.append(frame[item_col].take(matched.rows(place[others])))
        codes = np.concatenate([codes, others])
        ids = pd.concat(alike_ids(labels, item_col), ignore_index=True)
        parts = []
        for by in range(len(matched.by)):
            counts = ListCounts(lists, by)
            part = matched.by.take(np.full(len(codes), by)).reset_index(drop=True)
            part[item_col] = ids
            part["shown"] = shown = counts.shown[codes]
            part["share"] = ratio(shown, counts.shown.sum())
            part["first_shown"] = counts.first_shown[codes]
            parts.append(part.assign(exposure=counts.exposure()[codes]))
    return pd.concat(parts, ignore_index=True)


@says_as(summarize)
@checks_names
def user_gap(
    per_user: DataFrame | HasPerUser,
    by: Columns,
    *,
    metrics: Columns | None = None,
    within: Columns | None = None,
) -> DataFrame:
    """How far apart groups of users are: largest minus smallest mean of each metric, and mean
    absolute difference.

    Formula: gap = max_g x_g − min_g x_g, mad = mean over pairs of groups of |x_g − x_h|, x_g the
    mean of the metric over the users of group g; groups without a defined value are left out, and
    both are null for fewer than two.

    Parameters
    ----------
    per_user : DataFrame or Evaluation
        `Evaluation.per_user`, joined to a table of users, many rows to one.
    by : str or list of str
        Columns that tell the groups of users apart.
    {metrics}
    within : str or list of str, optional
        Columns that tell recommenders apart, such as `model`; the groups are compared within each
        recommender; [] for none. By default the `by` columns of the evaluation. A merge can lose
        which columns those are; if there may be some, an error then asks for them.

    Returns
    -------
    DataFrame
        One row per value of `within`, metric and k: those, `gap`, `mad`, `low`, `high` (smallest
        and largest mean; float64), `n_groups` (int64).

    Raises
    ------
    ColumnError
        If a column is missing.
    DataError
        If a list occurs in several rows, or a metric column is not numeric.

    References
    ----------
    Deldjoo et al. (2021), UMUAI 31; elliot `UserMADranking`.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> result = rd.evaluate({"u": ["a"], "v": ["b"]}, {"u": ["a"], "v": ["a"]}, "mrr@1")
    >>> users = pd.DataFrame({"user_id": ["u", "v"], "segment": ["new", "old"]})
    >>> rd.diagnostics.user_gap(
    ...     result.per_user.merge(users, on="user_id", validate="many_to_one"), by="segment"
    ... )
      metric  k  gap  mad  low  high  n_groups
    0    mrr  1  1.0  1.0  0.0   1.0         2
    """
    per_user = table_of_users(per_user, "per_user")
    lists = per_user_table(per_user)
    apart = recommender_columns(lists, "within") if within is None else as_columns(within)
    recommenders = [name for name in apart if name not in as_columns(by)]
    table = summarize(per_user, [*recommenders, *as_columns(by)], metrics=metrics)
    rows = []
    for labels, part in table.groupby([*recommenders, "metric", "k"], sort=False, dropna=False):
        values = part["value"].dropna()
        distances = pd.Series([abs(one - two) for one, two in combinations(values, 2)], dtype=float)
        numbers = distances.max(), distances.mean(), values.min(), values.max(), len(values)
        rows.append((*labels, *numbers))
    columns = [*recommenders, "metric", "k", "gap", "mad", "low", "high", "n_groups"]
    return DataFrame(rows, columns=columns).astype({"k": "Int64"})
