"""Tables of shades: values of a summary, such as segments by models, differences of all pairs of
models, and the lists of one user side by side."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...errors import OptionError
from ...experiments.decide.adjust_pvalues import adjustment
from ...judge.choices import as_columns
from ...judge.verdict import VERDICT_COLUMNS, is_withheld, sign_of, turned
from ...tables.cells import amount, columns_before, form_of, number, short_names
from ..given_tables import (
    JOINED_BY,
    chosen,
    column_names,
    count_text,
    direction_word,
    labels,
    need,
    picked,
)
from .picture import TICK_NAME_LENGTH, Frame, Picture, Steps
from .style import Axes, letters

SHADES = ("#eb9d6a", "#f6f6f6", "#79b3d8")  # worse, equal, better: light enough for dark texts
COMPARED_PAIRS = ["metric", "baseline", "model", "diff", "n_users", *VERDICT_COLUMNS]
HIT = "#cfe6d6"  # light in a dark style too, so that dark texts stand on it
ROW_HEIGHT = 0.3  # inches


@Picture
def heat(
    summary: DataFrame,
    *,
    rows: Any,
    columns: Any,
    metric: str | None = None,
    ax: Axes | None = None,
) -> Steps:
    """Draw a table of values as shades, such as segments by models: darker is larger.

    Parameters
    ----------
    summary : DataFrame
        What `rd.summarize` returned, or the summary of an evaluation.
    rows, columns : str or list of str
        Columns of the summary whose values are the rows and the columns of the picture.
    metric : str, optional
        The metric to draw, such as "ndcg@10". Needed where the summary has several.
    {ax_returns_raises}
    ColumnError, OptionError
        If a column is missing, a metric unknown, or a cell has several rows.

    Data
    ----
    One row per cell, in the order of the summary: `row`, `column`, `value`, `n`. Categories with an
    order stand in it.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
    >>> users = result.per_user.merge(shop.users, on="user_id", validate="many_to_one")
    >>> segments = rd.summarize(users, by=["model", "segment"])
    >>> rd.plot.heat.data(segments, rows="model", columns="segment").head(3).round(3)
       row   column  value    n
    0  knn  regular  0.198  756
    1  knn      new  0.114  417
    2  knn    loyal  0.239  364
    >>> ax = rd.plot.heat(segments, rows="model", columns="segment")
    """
    of_axes = {"row": as_columns(rows), "column": as_columns(columns)}
    keys = [*of_axes["row"], *of_axes["column"]]
    what = ""
    need(summary, "summary", [*keys, "value", "n"], "what rd.summarize returns")
    table = summary
    if "metric" in summary and (metric is not None or "metric" not in keys):
        of_rows = column_names(summary)
        what = chosen("metric", metric, of_rows, "metric of the summary")
        table = summary[np.array(of_rows) == what]
    if ordered := [name for name in keys if getattr(table[name].dtype, "ordered", False)]:
        table = table.sort_values(ordered, kind="stable")
    data = picked(table, ["value", "n"]).astype({"value": "float64"})
    for place, (axis, own) in enumerate(of_axes.items()):
        data.insert(place, axis, labels(table, own))
    twice = data[data.duplicated(["row", "column"])]
    if len(twice):
        raise OptionError(
            f"summary has several rows for the cell {twice.iloc[0, :2].tolist()}; name in rows= "
            "and columns= all columns that tell them apart"
        )
    yield data

    down, across = (list(dict.fromkeys(data[name])) for name in of_axes)
    grid = data.pivot(index="row", columns="column", values="value")
    values = grid.reindex(index=down, columns=across).to_numpy(float).ravel()
    longest = min(TICK_NAME_LENGTH, max(map(len, down)))
    frame = Frame(ax, 1.4 + 0.09 * longest + 1.2 * len(across), 2.0 + 0.5 * len(down))
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    low = np.nanmin(values)
    high = np.nanmax(values)
    shade = Normalize(low - 0.15 * (high - low), high + 0.6 * (high - low))
    form = form_of(*values)
    cells = DataFrame(list(np.ndindex(*grid.shape)), columns=["y", "x"])
    cells["text"] = [number(value, form) for value in values]
    cells["said"] = (
        pd.Series(map(", ".join, itertools.product(down, across))) + ": " + cells["text"]
    )
    cells["colour"] = [*map(tuple, colormaps["Blues"](shade(values)))]
    fits = frame.cells_fit(*grid.shape, cells["text"].str.len().max())
    frame.tiles(cells if fits else cells.assign(text=""))
    frame.tick_names(frame.ax.xaxis, across)
    frame.tick_names(frame.ax.yaxis, down)
    said = " and ".join(table["stat"].unique()) if "stat" in table else "mean"
    said += " of each cell, darker is larger"
    said += "" if fits else f": {number(low, form)} to {number(high, form)}"
    yield frame.finish(
        what or "value",
        JOINED_BY.join(of_axes["column"]),
        JOINED_BY.join(of_axes["row"]),
        f"{said}; {count_text(data['n'], 'list')} per cell",
    )


@Picture
def pairs(
    comparison: DataFrame,
    *,
    metric: str | None = None,
    ax: Axes | None = None,
) -> Steps:
    """Draw all pairs of models as a table of shades: by how much the model of a row beats
    another.

    Parameters
    ----------
    comparison : DataFrame
        What `rd.compare_models` returned without a baseline, so that every pair is in it.
    metric : str, optional
        The metric to draw. Needed where the comparison has several.
    {ax_returns_raises}
    ColumnError, OptionError
        If a column is missing, a metric unknown, or a pair has several rows.

    Notes
    -----
    Models stand from the best to the worst, by the number of pairs they win. A star is a difference
    that holds after the correction of the comparison; its shade says in whose favour. A pair whose
    verdict is withheld has no shade. Axes without room for all models show the first ones, and the
    caption says so.

    Data
    ----
    Two rows per pair, one for each side: `model`, `other`, `value`, `sign`, `n`; `sign` is
    "better", "worse" or "open" for the model.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
    >>> compared = result.compare_models()
    >>> rd.plot.pairs.data(compared).head(3).round(3)
            model       other  value   sign     n
    0  popularity         knn -0.046  worse  1537
    1      random         knn -0.174  worse  1537
    2      random  popularity -0.128  worse  1537
    >>> ax = rd.plot.pairs(compared)
    """
    need(comparison, "comparison", COMPARED_PAIRS, "what compare_models returned")
    what = chosen("metric", metric, comparison["metric"], "metric of the comparison")
    rows = comparison[comparison["metric"].map(str) == what]
    if rows.duplicated(["baseline", "model"]).any():
        raise OptionError(
            "comparison has several rows for one pair of models, such as segments; pass the rows "
            "of one"
        )
    records = rows.to_dict("records")
    records += [*map(turned, records)]
    data = DataFrame(
        {
            "model": str(row["model"]),
            "other": str(row["baseline"]),
            "value": row["diff"],
            "sign": sign_of(row),
            "n": int(row["n_users"]),
        }
        for row in records
    )
    yield data

    # Smaller values are better if a verdict says so, or else the name of the metric.
    told = data[data["sign"] != "open"]
    falls = (told["value"] < 0) == (told["sign"] == "better")
    smaller = falls.iloc[0] if len(told) else direction_word(None, what) == "smaller"
    good = -data["value"] if smaller else data["value"]
    won = good.gt(0).groupby(data["model"], sort=False).sum()
    order = won.sort_values(ascending=False, kind="stable").index.tolist()
    frame = Frame(ax, 3.4 + 0.5 * len(order), 2.0 + 0.36 * len(order))
    shown = order[: frame.rows_that_fit]
    cells = data[data["model"].isin(shown) & data["other"].isin(shown)]
    cells = cells.assign(x=cells["other"].map(shown.index), y=cells["model"].map(shown.index))
    good = good.mask(np.array([*map(is_withheld, records)]))[cells.index].fillna(0)
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("pairs", SHADES)
    cells["colour"] = [*map(tuple, shades(0.5 + 0.5 * good / (good.abs().max() or 1.0)))]
    form = form_of(*data["value"], sign="+")
    texts = cells["value"].map(lambda one: number(one, form))
    stars = cells["sign"].map({"open": ""}).fillna("*")
    fits = frame.cells_fit(len(shown), len(shown), texts.str.len().max() + 1)
    cells["text"] = texts + stars if fits else stars
    verdicts = cells.index.map([row["verdict"] for row in records].__getitem__)
    cells["said"] = cells["model"] + " against " + cells["other"] + ": " + texts + ", " + verdicts
    frame.tiles(cells)
    frame.tick_names(frame.ax.yaxis, [f"{i}  {name}" for i, name in enumerate(shown, 1)])
    frame.tick_names(frame.ax.xaxis, [f"{i + 1}" for i in range(len(shown))])
    left = f"; the first {len(shown)} of {amount(len(order), 'model')}"
    caption = (
        f"{count_text(data['n'], 'user')}; * holds, p-values {adjustment(comparison).words}; blue: "
        f"the row is better, orange: worse, white: withheld{left * (len(shown) < len(order))}"
    )
    yield frame.finish(f"{what}: row − column", "the same models", "", caption)


@Picture
def lists(
    hit_table: DataFrame,
    user: Any,
    *,
    models: Sequence[Any] | None = None,
    ax: Axes | None = None,
) -> Steps:
    """Draw what each model showed one user, side by side, with the hits marked.

    Parameters
    ----------
    hit_table : DataFrame
        What `rd.diagnostics.hit_table` returned. Relevant items without a rank stand below the
        list, as missed. The first column that it carries (`carry=`), such as a title, names the
        items.
    user : label or tuple
        The value of the list key, one for each of its columns.
    models : list of labels, optional
        The models to draw, from left to right. Default: all of the table.
    {ax_returns_raises}
    ColumnError, OptionError
        If a column is missing, or a user or model unknown.

    Data
    ----
    One row per item, list after list, best rank first: `model`, `rank`, `item`, `hit`. A relevant
    item that was not shown has a null rank.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> hits = rd.diagnostics.hit_table(shop.true, shop.pred, k=5, by="model")
    >>> rd.plot.lists.data(hits, "u0001", models=["knn", "popularity"]).head(3)
      model  rank   item    hit
    0   knn     1  i0085   True
    1   knn     2  i0021  False
    2   knn     3  i0185  False
    >>> ax = rd.plot.lists(hits, "u0001", models=["knn", "popularity"])
    """
    need(hit_table, "hit_table", ["rank", "hit"], "what rd.diagnostics.hit_table returned")
    before = columns_before(hit_table, "rank")
    key = user if isinstance(user, tuple) else (user,)
    item = before[-1]
    keys = before[-1 - len(key) : -1]
    by = before[: -1 - len(key)]
    rows = hit_table[(hit_table[keys] == list(key)).all(axis=1)]
    if not len(rows):
        raise OptionError(f"user={user!r} has no list in hit_table[{JOINED_BY.join(keys)!r}]")
    known = [*before, "rank", "hit", "gain", "value"]
    shown = rows[[*hit_table.columns.difference(known, sort=False), item][0]]
    data = DataFrame(
        {
            "model": labels(rows, by),
            "rank": rows["rank"].astype("Int64").array,
            "item": shown.where(shown.notna(), rows[item]).map(str).array,
            "hit": rows["hit"].astype(bool).array,
        }
    )
    found = data["model"].unique().tolist()
    if models is not None:
        found = list(dict.fromkeys(chosen("models", name, found) for name in models))
    parts = [data[data["model"] == name].sort_values("rank", kind="stable") for name in found]
    data = pd.concat(parts, ignore_index=True)
    yield data

    # Missed items stand below the longest list.
    missing = data["rank"].isna()
    depth = int(data["rank"].fillna(0).max())
    below = depth + missing.groupby(data["model"]).cumsum()
    cells = data.assign(x=data["model"].map(found.index), y=data["rank"].fillna(below).astype(int))
    frame = Frame(ax, 1.0 + 2.2 * len(found), 1.6 + ROW_HEIGHT * cells["y"].max())
    hits = data[~missing].groupby("model", sort=False)["hit"].sum()
    caption = "✓ hits: " + ", ".join(f"{model} {n}" for model, n in hits.items())
    fits = cells["y"] <= frame.rows_that_fit
    if not fits.all():
        caption += f"; no room here for {amount((~fits).sum(), 'item')}"
    cells = cells[fits].copy()
    width = letters(frame.width / len(found), 0.9) - 4
    names = cells.groupby("model")["item"].transform(lambda own: short_names(own, width))
    where = cells["y"].map("rank {}".format).mask(missing, "missed")
    said = cells["model"] + ", " + where + ": " + cells["item"]
    cells["text"] = names.mask(cells["hit"], "✓ " + names)
    cells["said"] = said.mask(cells["hit"], said + ", a hit")
    cells["colour"] = np.where(cells["hit"], HIT, "none")
    frame.tiles(cells, left=True)
    frame.tick_names(frame.ax.xaxis, found)
    at = range(1, min(depth + 1, cells["y"].max()) + 1)  # the first missed item tells of all
    frame.ax.set_yticks(at, [f"{place}" if place <= depth else "missed" for place in at])
    yield frame.finish(f"Lists of {JOINED_BY.join(map(str, key))}", "", "rank", caption)
