"""`diff`: what changed from one version to another: which lists gained and lost, which items came,
went and moved."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from ..errors import DuplicateError, OptionError, RecdfError
from ..evaluation.spec import better_of
from ..inputs.codes import first_rows
from ..inputs.constraints import Share
from ..inputs.door import checks_names, table_of_users
from ..inputs.frames import as_frame, column
from ..inputs.ids import with_alike_ids
from ..inputs.options import Columns, as_columns
from ..judge.per_user_columns import (
    float_columns,
    key_codes,
    list_columns,
    read_weight,
    warn_of_weights,
)
from ..metrics.call import check_k
from ..metrics.compute import mean
from ..tables.cells import ReportTable, ShownResult, beside_columns
from .count_tables import hit_table
from .gate_records import Side, data_checks, pair_of, read_side, rows_of_sides

SUMMARY_COLUMNS = [
    "metric",
    "mean_before",
    "mean_after",
    "diff",
    "n_lists",
    "n_gained",
    "n_lost",
    "n_same",
]
CODE, WEIGHT = "code of the key", "weight of the list"  # columns while two tables are merged
CHURN_TYPES = {"n_before": "int64", "n_after": "int64", "n_common": "int64", "changed": "bool"}


@dataclass(frozen=True, eq=False, repr=False)
class Diff(ShownResult):
    """What `rd.diff` found.

    Parameters
    ----------
    summary : DataFrame
        One row per metric: `metric`, `mean_before`, `mean_after`, `diff` (over the lists of both,
        with the weights of the results),
        `n_lists`, `n_gained`, `n_lost` (lists that became better and worse), `n_same`; and one per
        measure of churn, such as `overlap@10` and `rbo@10`, with its mean in `mean_after`. Empty
        where there are no lists in both.
    per_list : DataFrame
        One row per list: its key, `status` ("both", "entered", "left"); of each metric
        `ndcg@10_before`, `ndcg@10_after`, `ndcg@10_diff`; of recommendations `n_before`, `n_after`,
        `n_common` (items of the first k), `changed` (other items, or in another order),
        `overlap@10`, `rbo@10`. The last two are null for lists of one side alone.
    items : DataFrame or None
        One row per list and item of the first k on either side: key, item, `rank_before`,
        `rank_after` (null where it is not there), `status` ("entered", "left", "moved", "stayed"),
        `moved` (ranks up; down is below 0). None without recommendations.
    unlike : tuple of str
        What the two were not evaluated alike with, such as another truth: lists that gained and
        lost then say nothing of the recommender.
    """

    summary: DataFrame
    per_list: DataFrame
    items: DataFrame | None
    unlike: tuple[str, ...] = ()

    def most(self, metric: str | None = None, n: int = 5) -> DataFrame:
        """Return the lists that gained and lost most: n of each at most, the best first.

        Parameters
        ----------
        metric : str, optional
            Default: the first one. Of overlap and rbo the lists stand first of which least stayed.
        n : int, default 5
            Lists of each.
        """
        metric = self.summary["metric"].iloc[0] if metric is None else metric
        changes = f"{metric}_diff" in self.per_list.columns
        name = f"{metric}_diff" if changes else str(column(self.per_list, metric, "per_list").name)
        falling = changes and better_of(metric) != "smaller"
        rows = self.per_list[self.per_list[name].notna()].sort_values(
            name, ascending=not falling, kind="stable"
        )
        both = pd.concat([rows.head(n), rows.iloc[n:].tail(n if changes else 0)], ignore_index=True)
        return both[both[name] != 0 if changes else both["changed"]].reset_index(drop=True)

    def _shown(self) -> ReportTable:
        return ReportTable(
            DataFrame({name: self.summary[name].map(_cell) for name in self.summary})
        )

    @property
    def headline(self) -> str:
        """How many lists and items entered, left, moved and stayed."""
        apart = f"Not comparable: {'; '.join(self.unlike)}. " if self.unlike else ""
        said = f"{apart}Lists: {_counted(self.per_list['status'])}."
        return said if self.items is None else f"{said} Items: {_counted(self.items['status'])}."


def _counted(words: Series) -> str:
    return ", ".join(f"{count:,} {word}" for word, count in words.value_counts().items()) or "none"


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else "" if pd.isna(value) else f"{value:,.4g}"


@checks_names
def diff(
    before: Any,
    after: Any,
    *,
    pred: Sequence[Any] | None = None,
    k: int = 10,
    p: Share = 0.9,
    user_col: Columns | None = None,
    item_col: str | None = None,
    rank_col: str | None = None,
    score_col: str | None = None,
) -> Diff:
    """Say what changed from one version of a recommender to another.

    Of two results: which lists gained and lost. Of two frames of recommendations, without any
    truth: which items entered, left and moved in the first k, and how much of each list stayed.
    overlap is |A ∩ B|/max(|A|, |B|), and rbo = Σ_{d ≤ k} p^(d−1)·|A_d ∩ B_d|/d over Σ_{d ≤ k}
    p^(d−1), where A_d and B_d are the first d items.

    Parameters
    ----------
    before, after : Evaluation, path, DataFrame, mapping or Arrow stream
        Results of `rd.evaluate`, their folders or per-user tables, with one recommender each; or
        recommendations: what `rd.evaluate` takes as `pred`. A frame with the column of items holds
        recommendations.
    pred : pair of frames, optional
        The recommendations beside two results, before and after.
    k : int, default 10
        Ranks of the recommendations that are compared.
    p : float, default 0.9
        How far down a reader of the list goes, for rbo: the chance to go on to the next rank.
    user_col : str or list of str, optional
        Key of a list. Default: that of the results, or "user_id".
    item_col, rank_col, score_col : str, optional
        Columns of the recommendations, as in `rd.evaluate`. Default of the items: that of the
        results, or "item_id".

    Returns
    -------
    Diff
        `.summary` (one row per metric), `.per_list`, `.items`, and `.most()`, the lists that gained
        and lost most.

    Raises
    ------
    OptionError
        If only one of the two is a result, or nothing can be compared; a column of recommendations
        beside results without `pred`.
    ColumnError, IdTypeError, NullKeyError, DataError
        As `rd.evaluate` does.

    References
    ----------
    Webber, Moffat and Zobel: A similarity measure for indefinite rankings, TOIS 2010; truncated at
    k.

    Examples
    --------
    >>> import recdf as rd
    >>> changed = rd.diff({"ann": ["a", "b", "c"]}, {"ann": ["b", "a", "d"]}, k=3)
    >>> changed.items
      user_id item_id  rank_before  rank_after   status  moved
    0     ann       a            1           2    moved     -1
    1     ann       b            2           1    moved      1
    2     ann       c            3        <NA>     left   <NA>
    3     ann       d         <NA>           3  entered   <NA>
    >>> changed.per_list[["user_id", "status", "n_common", "overlap@3", "rbo@3"]].round(3)
      user_id status  n_common  overlap@3  rbo@3
    0     ann   both         2      0.667  0.531
    """
    k = check_k(k)
    keys = as_columns(user_col)
    before, after = table_of_users(before, "before"), table_of_users(after, "after")
    # With item_col= and without pred=, the two frames are recommendations.
    is_pred = pred is None and item_col is not None
    results = [
        not (is_pred or (item_col or "item_id") in one.columns)
        if isinstance(one, DataFrame)
        else isinstance(one, str | os.PathLike) or hasattr(one, "per_user")
        for one in (before, after)
    ]
    if results[0] != results[1]:
        raise OptionError(
            "before and after are to be two results, or two frames of recommendations",
            argument="after",
        )
    if pred is not None and not all(results):
        raise OptionError(
            "⟦pred=⟧ stands beside two results; before and after are recommendations themselves"
        )
    named = {"item_col": item_col, "rank_col": rank_col, "score_col": score_col}
    of_results = all(results)
    for name, value in named.items() if of_results and pred is None else ():
        if value is not None:
            raise OptionError(
                f"⟦{name}={value!r}⟧ names a column of recommendations, and before and after are "
                "results; pass their recommendations as ⟦+pred=⟧, or leave it out"
            )
    per_list = items = None
    metrics: dict[str, list[float]] = {}
    unlike: list[str] = []
    if of_results:
        sides = read_side("before", before), read_side("after", after)
        keys = keys or sides[0].spec.get("user_col") or ["user_id"]
        item_col = item_col or sides[0].options.get("item_col")
        per_list, metrics, unlike = _metrics_of_both(sides, keys)
    keys = keys or ["user_id"]
    if pred is not None or per_list is None:
        options = {
            "user_col": keys[0] if len(keys) == 1 else keys,
            "item_col": item_col or "item_id",
        }
        pair = pair_of((before, after) if pred is None else pred, ("before", "after"))
        items = _items_of_both(pair, k, options, rank_col, score_col)
        if per_list is None:
            per_list = _churn(items, k, p, keys)
        else:
            items = _merged(items, per_list[keys], keys, "inner")
            lists = _churn(items, k, p, keys).drop(columns="status")
            per_list = _merged(per_list, lists, keys, "left")
            per_list = per_list.fillna(dict.fromkeys(CHURN_TYPES, 0)).astype(CHURN_TYPES)
    summary = _summary(per_list, metrics, (f"overlap@{k}", f"rbo@{k}"))
    return Diff(summary, per_list, items, tuple(unlike))


def _merged(
    one: DataFrame, two: DataFrame, keys: list[str], how: Any = "outer", **more: Any
) -> DataFrame:
    """Merge two tables on ids. Objects, and those of two dtypes, are compared by their codes, since
    `pandas.merge` makes floats of some, and refuses others."""
    kinds = one[keys].dtypes
    if kinds.equals(two[keys].dtypes) and not kinds.eq("object").any():
        return one.merge(two, on=keys, how=how, **more)
    codes, n = key_codes([("before", one), ("after", two)], keys)
    coded = [
        table.drop(columns=keys).assign(**{CODE: code})
        for table, code in zip((one, two), codes, strict=True)
    ]
    rows = coded[0].merge(coded[1], on=CODE, how=how, **more)
    frames = with_alike_ids([one[keys], two[keys]], keys, "before and after")
    labels = one[keys] if how != "outer" else pd.concat(frames, ignore_index=True)
    first = first_rows(np.concatenate(codes), n)[rows.pop(CODE)]
    return beside_columns(labels.iloc[first].reset_index(drop=True), rows)


def _weights_of(side: Side) -> Any:
    """Return the weights that a side was evaluated with, 1 without any."""
    name: Any = side.spec.get("weight")
    if name in side.per_user:
        return read_weight(side.per_user, side.role, name)
    warn_of_weights(side.per_user, side.role, ())
    return 1.0


def _metrics_of_both(
    sides: Sequence[Side], keys: list[str]
) -> tuple[DataFrame, dict[str, list[float]], list[str]]:
    """Return one row per list with the metrics of both sides, and their differences; the means of
    each metric over the lists of both; and what both were not evaluated alike with."""
    tables = [side.per_user for side in sides]
    # It also says what is wrong with the keys.
    runs = rows_of_sides(sides, keys)
    weights = {"weight"} & {name for table in tables for name in list_columns(table)}
    metrics: dict[str, list[float]] = {
        name: []
        for name in float_columns(tables, [*keys, *weights])
        if all(name in side.spec.get("metrics", [name]) for side in sides)
    }
    if not metrics:
        one, two = (", ".join(map(str, table.select_dtypes("float"))) for table in tables)
        raise OptionError(f"before has {one} and after {two}: no metric of both")
    # pandas warns of a column that is added to more than a hundred that are not together.
    own, other = (
        side.per_user[[*keys, *metrics]].copy().assign(**{WEIGHT: _weights_of(side)})
        for side in sides
    )
    rows = _merged(own, other, keys, suffixes=("_before", "_after"), indicator="status")
    words = rows["status"].cat.rename_categories({"left_only": "left", "right_only": "entered"})
    parts = [rows[keys].assign(status=words.astype("str"))]
    for name, means in metrics.items():
        pair = rows[[f"{name}_before", f"{name}_after"]].astype(float)
        parts.append(pair.assign(**{f"{name}_diff": pair.iloc[:, 1] - pair.iloc[:, 0]}))
        both = parts[-1].notna().all(axis=1)
        for side in ("before", "after"):
            known = [rows.loc[both, f"{one}_{side}"].to_numpy(float) for one in (name, WEIGHT)]
            means.append(mean(*known))
    found = data_checks(sides, runs, metrics)
    unlike = [
        f"{what}: {one.own} before, {one.base} after"
        for what, one in {"truth": found.pop("truth"), **found}.items()
        if one.differs
    ]
    return pd.concat(parts, axis=1), metrics, unlike


def _summary(
    per_list: DataFrame, metrics: Mapping[str, list[float]], churn: Sequence[str]
) -> DataFrame:
    """Return one row per metric over the lists of both sides, and one per measure of churn."""
    rows = []
    for name, means in metrics.items():
        gain = per_list[f"{name}_diff"].dropna() * (-1 if better_of(name) == "smaller" else 1)
        counts = len(gain), (gain > 0).sum(), (gain < 0).sum(), (gain == 0).sum()
        rows.append((name, *means, means[1] - means[0], *counts))
    for name in [one for one in churn if one in per_list]:
        values = per_list[name]
        rows.append((name, np.nan, values.mean(), np.nan, values.count(), *[np.nan] * 3))
    table = DataFrame(rows, columns=SUMMARY_COLUMNS)
    return table.astype(dict.fromkeys(SUMMARY_COLUMNS[4:], "Int64"))


def _items_of_both(
    pred: Mapping[str, Any],
    k: int,
    options: dict[str, Any],
    rank_col: str | None,
    score_col: str | None,
) -> DataFrame:
    """Return one row per list and item of the first k of either side."""
    frames = [as_frame(one, role, **options) for role, one in pred.items()]
    key = [*as_columns(options["user_col"]), options["item_col"]]
    for role, frame in zip(pred, frames, strict=True):
        for name in key:
            column(frame, name, role)
    given = {**options, "rank_col": rank_col, "score_col": score_col, "duplicates": "raise"}
    ranked = []
    for role, frame in zip(pred, frames, strict=True):
        try:
            first = hit_table(None, frame, k, **given) if len(frame) else frame.assign(rank=0)
        except DuplicateError as error:
            raise DuplicateError(
                f"{role} has {error.count:,} repeated (list, item) rows, such as "
                f"{error.examples[0]}; pass the rows of one model",
                **error.data,
            ) from None
        except RecdfError as error:
            raise error.within(f"{role}: ") from None
        ranked.append(first[[*key, "rank"]])
    rows = _merged(ranked[0], ranked[1], key, suffixes=("_before", "_after"))
    rows = rows.astype({"rank_before": "Int64", "rank_after": "Int64"})
    old = rows["rank_before"]
    new = rows["rank_after"]
    words = np.select(
        [old.isna(), new.isna(), (old == new).fillna(False)], ["entered", "left", "stayed"], "moved"
    )
    return rows.assign(status=Series(words, dtype="str"), moved=old - new)


def _churn(items: DataFrame, k: int, p: float, keys: list[str]) -> DataFrame:
    """Return one row per list: how many items stayed, overlap and rbo; these are null for lists of
    one side alone.

    An item of both lists, whose larger rank is m, is common to the first d items for each d ≥ m.
    """
    depth = np.arange(1, k + 1)
    seen = p ** (depth - 1)
    later = np.cumsum((seen / depth)[::-1])[::-1] / seen.sum()
    both = items["moved"].notna().to_numpy()
    deepest = items[["rank_before", "rank_after"]].max(axis=1).to_numpy(np.int64)
    parts = np.where(both, later[deepest - 1], 0.0)
    of_items = items.assign(n_common=both, changed=items["status"] != "stayed", rbo=parts)
    lists = of_items.groupby(keys, as_index=False, observed=True).agg(
        n_before=("rank_before", "count"),
        n_after=("rank_after", "count"),
        n_common=("n_common", "sum"),
        changed=("changed", "any"),
        rbo=("rbo", "sum"),
    )
    lists = lists.astype(CHURN_TYPES)
    sizes = lists[["n_before", "n_after"]]
    there = (sizes > 0).all(axis=1)
    lists[f"overlap@{k}"] = (lists["n_common"] / sizes.max(axis=1)).where(there)
    lists[f"rbo@{k}"] = lists.pop("rbo").where(there)
    words = np.select([there, sizes["n_before"] == 0], ["both", "entered"], "left")
    lists.insert(len(keys), "status", Series(words, dtype="str"))
    return lists
