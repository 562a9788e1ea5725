"""Tables of shades: values of a summary, such as segments by models, differences of all pairs of
models, and the lists of one user side by side."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import OptionError, closest
from ...experiments.decide.adjust_pvalues import adjustment
from ...judge.verdict import sign_of
from ...tables.cells import amount, columns_before, form_of, number, short_names
from ..given_tables import JOINED_BY, check_model, count_text, direction_word, labels, need
from . import style
from .picture import drawn_from
from .style import Axes

__all__ = ["heat", "lists", "pairs"]

SHADES = ("#eb9d6a", "#f6f6f6", "#79b3d8")  # worse, equal, better: light enough for dark texts
# texts on cells, which are light in a dark style too


def _heat_data(
    summary: pd.DataFrame, *, rows: Any, columns: Any, metric: str | None = None
) -> pd.DataFrame:
    """Return the frame that `heat` draws: `row`, `column`, `value`, `n`.

    {parameters_returns}
        One row per cell, in the order of the summary; categories with an order stand in it.
    """
    row_names = [rows] if isinstance(rows, str) else list(rows)
    column_names = [columns] if isinstance(columns, str) else list(columns)
    need(summary, "summary", [*row_names, *column_names, "value", "n"], "what rd.summarize returns")
    if "metric" in summary.columns:
        names = summary["metric"].astype(str) + summary["k"].map(
            lambda k: "" if pd.isna(k) else f"@{int(k)}"
        )
        drawn = "metric" in (*row_names, *column_names)
        summary = _of_metric(summary, "summary", names, metric, drawn)
    for name in (*column_names[::-1], *row_names[::-1]):
        if getattr(summary[name].dtype, "ordered", False):
            summary = summary.sort_values(name, kind="stable")
    cells = {"row": labels(summary, row_names), "column": labels(summary, column_names)}
    numbers = summary[["value", "n"]].astype({"value": "float64"}).reset_index(drop=True)
    numbers.attrs = {}
    data = pd.DataFrame(cells).join(numbers)
    twice = data.duplicated(["row", "column"])
    if twice.any():
        cell = data.loc[twice, ["row", "column"]].iloc[0].tolist()
        raise OptionError(
            f"summary has several rows for the cell {cell}; name in rows= and columns= all columns "
            "that tell them apart"
        )
    return data


def _of_metric(
    table: pd.DataFrame, role: str, names: pd.Series, metric: str | None, all_drawn: bool = False
) -> Any:
    """Return the rows of one metric, which the caller must name where there are several."""
    known = list(dict.fromkeys(names))
    if metric is None and len(known) > 1 and not all_drawn:
        raise OptionError(
            f"{role} has {len(known)} metrics; name the one to draw in metric=: {known}"
        )
    if metric is not None and metric not in known:
        raise OptionError(
            f"metric={metric!r} is not in the {role}; it has {known}{closest(metric, known)}"
        )
    return table if metric is None else table[names == metric]


@drawn_from(_heat_data)
def heat(
    summary: pd.DataFrame,
    *,
    rows: Any,
    columns: Any,
    metric: str | None = None,
    ax: Axes | None = None,
) -> Axes:
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
    data = _heat_data(summary, rows=rows, columns=columns, metric=metric)
    names = [list(dict.fromkeys(data[name])) for name in ("row", "column")]
    grid = data.pivot(index="row", columns="column", values="value").reindex(
        index=names[0], columns=names[1]
    )
    longest = min(style.TICK_NAME_LENGTH, max(map(len, names[0])))
    size = 1.4 + 0.09 * longest + 1.2 * grid.shape[1], 2.0 + 0.5 * grid.shape[0]
    frame, values = style.Frame(ax, *size), grid.to_numpy(dtype=np.float64).ravel()
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    low, high = np.nanmin(values), np.nanmax(values)
    shade = Normalize(low - 0.15 * (high - low), high + 0.6 * (high - low))
    form = form_of(*values)
    cells = pd.DataFrame(list(np.ndindex(*grid.shape)), columns=["y", "x"])
    cells["text"] = texts = [number(value, form) for value in values]
    both = zip(itertools.product(*names), texts, strict=True)
    cells["said"] = [f"{row}, {column}: {text}" for (row, column), text in both]
    cells["colour"] = list(map(tuple, colormaps["Blues"](shade(values))))
    fits = style.cell_fits(frame.ax, grid.shape, max(map(len, texts)))
    frame.tiles(cells if fits else cells.assign(text=""))
    style.tick_names(frame.ax.xaxis, names[1])
    style.tick_names(frame.ax.yaxis, names[0])
    span = "" if fits else f": {number(low, form)} to {number(high, form)}"
    stats = summary.get("stat", pd.Series(["mean"])).unique()
    cells_are = f"{' and '.join(stats)} of each cell, darker is larger{span}"
    return frame.finish(
        metric or _only_metric(summary) or "value",
        _joined_names(columns),
        _joined_names(rows),
        f"{cells_are}; {count_text(data['n'], 'list')} per cell",
    )


def _joined_names(names: Any) -> str:
    """Join the names of several columns in the way in which the labels of their values are
    joined."""
    return names if isinstance(names, str) else JOINED_BY.join(names)


def _only_metric(summary: pd.DataFrame) -> str:
    """Return the name of the only metric of a summary, or an empty text if it has several."""
    if "metric" not in summary.columns or summary["metric"].nunique() != 1:
        return ""
    k = summary["k"].iloc[0]
    return str(summary["metric"].iloc[0]) + ("" if pd.isna(k) else f"@{int(k)}")


# -- pairs of models


def _pairs_data(
    comparison: pd.DataFrame, *, metric: str | None = None, values: str = "diff"
) -> pd.DataFrame:
    """Return what `pairs` draws: `model`, `other`, `value`, `sign`, `n`.

    {parameters_returns}
        Two rows per pair, one for each side; `sign` is "better", "worse" or "open" for the model.
    """
    source = "what compare_models returned"
    need(
        comparison,
        "comparison",
        ["metric", "baseline", "model", "diff", "effect", "remarks", "n_users", "wins", "losses"],
        source,
    )
    if values not in ("diff", "probability"):
        raise OptionError(f"values={values!r}; expected 'diff' or 'probability'")
    rows = _of_metric(comparison, "comparison", comparison["metric"].map(str), metric)
    if rows.duplicated(["baseline", "model"]).any():
        raise OptionError(
            "comparison has several rows for one pair of models, such as segments; pass the rows "
            "of one"
        )
    signs = pd.Series([sign_of(row) for row in rows.to_dict("records")], rows.index, dtype=object)
    n, wins, losses = (rows[name].astype(float) for name in ("n_users", "wins", "losses"))
    gains = (wins - losses) * (-1 if _smaller(rows, signs) else 1)  # of model − baseline
    value = rows["diff"] if values == "diff" else 0.5 + gains / (2 * n.clip(lower=1))
    turned = signs.map({"better": "worse", "worse": "better", "open": "open"})
    sides = (
        ("model", "baseline", value, signs),
        ("baseline", "model", float(values != "diff") - value, turned),
    )
    parts = [
        pd.DataFrame(
            {"model": rows[one].map(str), "other": rows[other].map(str), "value": own}
        ).assign(sign=sign, n=n.astype(np.int64))
        for one, other, own, sign in sides
    ]
    return pd.concat(parts, ignore_index=True)


@drawn_from(_pairs_data)
def pairs(
    comparison: pd.DataFrame,
    *,
    metric: str | None = None,
    values: str = "diff",
    ax: Axes | None = None,
) -> Axes:
    """Draw all pairs of models as a table of shades: by how much, or how often, the model of a row
    beats another.

    Parameters
    ----------
    comparison : DataFrame
        What `rd.compare_models` returned without a baseline, so that every pair is in it.
    metric : str, optional
        The metric to draw. Needed where the comparison has several.
    values : {"diff", "probability"}, default "diff"
        The difference of the means (row − column), or the share of users for whom the model of the
        row is better, users with equal values counting half.
    {ax_returns_raises}
    ColumnError, OptionError
        If a column is missing, a metric unknown, or a pair has several rows.

    Notes
    -----
    Models stand from the best to the worst, by the number of pairs they win. A star is a difference
    that holds after the correction of the comparison; its shade says in whose favour. Axes without
    room for all models show the first ones, and the caption says so.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
    >>> compared = result.compare_models()
    >>> rd.plot.pairs.data(compared, values="probability").head(3).round(3)
            model       other  value   sign     n
    0  popularity         knn  0.417  worse  1537
    1      random         knn  0.296  worse  1537
    2      random  popularity  0.340  worse  1537
    >>> ax = rd.plot.pairs(compared)
    """
    data = _pairs_data(comparison, metric=metric, values=values)
    what, of_diff = metric or str(comparison["metric"].iloc[0]), values == "diff"
    differences = data.rename(columns={"value": "diff"}).assign(metric=what)
    smaller = of_diff and _smaller(differences, data["sign"])
    data["good"] = (data["value"] - 0.5 * (not of_diff)) * (-1 if smaller else 1)
    won = data["good"].gt(0).groupby(data["model"], sort=False).sum()
    order = won.sort_values(ascending=False, kind="stable").index
    frame = style.Frame(ax, 3.4 + 0.5 * len(order), 2.0 + 0.36 * len(order))
    shown = [str(name) for name in order[: style.rows_that_fit(frame.ax)]]
    cells = data[data["model"].isin(shown) & data["other"].isin(shown)]
    form = form_of(*data["value"], sign="+") if of_diff else ".0%"
    cells = cells.assign(x=cells["other"].map(shown.index), y=cells["model"].map(shown.index))
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("pairs", SHADES)
    good = cells["good"].fillna(0) / (cells["good"].abs().max() or 1.0)
    cells["colour"] = list(map(tuple, shades(0.5 + 0.5 * good)))
    texts, stars = cells["value"].map(lambda value: number(value, form)), cells["sign"].ne("open")
    fits = style.cell_fits(frame.ax, (len(shown), len(shown)), max(map(len, texts)) + 1)
    said = texts + np.where(stars, "*", "")
    cells["text"] = said if fits else np.where(stars, "*", "")
    cells["said"] = cells["model"] + " against " + cells["other"] + ": " + said
    frame.tiles(cells)
    style.tick_names(frame.ax.yaxis, shown, before=[f"{i + 1}  " for i in range(len(shown))])
    style.tick_names(frame.ax.xaxis, [str(i + 1) for i in range(len(shown))])
    left = (
        f"; the first {len(shown)} of {amount(len(order), 'model')}"
        if len(shown) < len(order)
        else ""
    )
    return frame.finish(
        f"{what}: {'row − column' if of_diff else 'users better off with the row'}",
        "the same models",
        "",
        f"{count_text(data['n'], 'user')}; * holds, p-values {adjustment(comparison).words}; blue: "
        f"the row is better, orange: worse{left}",
    )


def _smaller(rows: pd.DataFrame, signs: pd.Series) -> bool:
    """Return whether smaller values are better, by the verdicts, or by the name of the metric where
    there is none."""
    known = rows[signs != "open"]
    if len(known):
        return bool((known["diff"].iloc[0] < 0) == (signs.loc[known.index[0]] == "better"))
    return direction_word(None, str(rows["metric"].iloc[0])) == "smaller" if len(rows) else False


# -- lists side by side

HIT_TABLE = "what rd.diagnostics.hit_table returned"
HIT = "#cfe6d6"  # light in a dark style too, so that dark texts stand on it
ROW_HEIGHT = 0.3  # inches


def _lists_data(
    hit_table: pd.DataFrame,
    user: Any,
    *,
    models: Sequence[Any] | None = None,
    name_col: str | None = None,
) -> pd.DataFrame:
    """Return what `lists` draws: `model`, `rank`, `item`, `hit`.

    {parameters_returns}
        One row per item, list after list, best rank first; a relevant item that was not shown has a
        null rank.
    """
    need(hit_table, "hit_table", ["rank", "hit"], HIT_TABLE)
    before = columns_before(hit_table, "rank")
    key = user if isinstance(user, tuple) else (user,)
    if len(before) < len(key) + 1:
        raise OptionError(
            f"user={user!r} has {len(key)} parts; hit_table has {before} before 'rank', the item "
            "last"
        )
    item, keys, by = before[-1], before[-1 - len(key) : -1], before[: -1 - len(key)]
    need(hit_table, "hit_table", [item if name_col is None else name_col], HIT_TABLE)
    same = [(hit_table[name] == value).to_numpy() for name, value in zip(keys, key, strict=True)]
    rows = hit_table[np.logical_and.reduce(same)]
    if not len(rows):
        raise OptionError(f"user={user!r} has no list in hit_table[{JOINED_BY.join(keys)!r}]")
    shown = rows[item if name_col is None else name_col]
    data = pd.DataFrame(
        {
            "model": labels(rows, by),
            "rank": rows["rank"].astype("Int64").array,
            "item": shown.where(shown.notna(), rows[item]).map(str).array,
            "hit": rows["hit"].astype(bool).array,
        }
    )
    known = list(dict.fromkeys(data["model"]))
    wanted = known if models is None else [check_model("models", name, known) for name in models]
    data = data[data["model"].isin(wanted)]
    data["model"] = pd.Categorical(data["model"], list(dict.fromkeys(wanted)), ordered=True)
    data = data.sort_values(["model", "rank"], kind="stable", ignore_index=True)
    return data.astype({"model": "str"})


@drawn_from(_lists_data)
def lists(
    hit_table: pd.DataFrame,
    user: Any,
    *,
    models: Sequence[Any] | None = None,
    name_col: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what each model showed one user, side by side, with the hits marked.

    Parameters
    ----------
    hit_table : DataFrame
        What `rd.diagnostics.hit_table` returned. Relevant items without a rank stand below the
        list, as missed.
    user : label or tuple
        The value of the list key, one for each of its columns.
    models : list of labels, optional
        The models to draw, from left to right. Default: all of the table.
    name_col : str, optional
        Column with the names of the items. Default: the ids.
    {ax_returns_raises}
    ColumnError, OptionError
        If a column is missing, or a user or model unknown.

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
    data = _lists_data(hit_table, user, models=models, name_col=name_col)
    found, missing = list(dict.fromkeys(data["model"])), data["rank"].isna()
    depth = int(data.loc[~missing, "rank"].max()) if not missing.all() else 0
    below = depth + 0.5 + missing.groupby(data["model"]).cumsum()
    data["place"] = data["rank"].astype("float64").where(~missing, below)
    last = float(data["place"].max())
    frame = style.Frame(ax, 1.0 + 2.2 * len(found), 1.6 + ROW_HEIGHT * last)
    hits = data[~missing].groupby("model", sort=False)["hit"].sum()
    fits = style.rows_that_fit(frame.ax)
    left = (
        f"; no room here for {amount((data['place'] > fits).sum(), 'item')}" if last > fits else ""
    )
    data, last, depth = data[data["place"] <= fits], min(last, fits), min(depth, fits)
    width = style.letters(style.room(frame.ax)[0] / len(found), 0.9) - 4
    names = data.groupby("model")["item"].transform(lambda own: short_names(own, width))
    where = data["place"].map(lambda at: "missed" if at > depth else f"rank {at:g}")
    said = data["model"] + ", " + where + ": " + data["item"]
    cells = pd.DataFrame({"x": data["model"].map(found.index), "y": data["place"]})
    cells["text"] = names.mask(data["hit"], "✓ " + names)
    cells["said"] = said.mask(data["hit"], said + ", a hit")
    cells["colour"] = np.where(data["hit"], HIT, "none")
    frame.tiles(cells, left=True)
    style.tick_names(frame.ax.xaxis, found)
    ranks = [*range(1, depth + 1)]
    missed = [depth + 1.5] if data["rank"].isna().any() else []
    frame.ax.set_yticks([*ranks, *missed], [*map(str, ranks), *["missed"] * len(missed)])
    of = JOINED_BY.join(map(str, user)) if isinstance(user, tuple) else user
    caption = "✓ hits: " + ", ".join(f"{model} {n}" for model, n in hits.items()) + left
    return frame.finish(f"Lists of {of}", "", "rank", caption)
