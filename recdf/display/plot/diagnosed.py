"""Pictures of tables that diagnose: concentration of exposure, the long tail, hit rate by
position, the lists of one user side by side, the values of a job by date, and past experiments,
whose offline and online differences are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from ...diagnostics.history import History
from ...errors import DataError, OptionError
from ...experiments.decide.proxy_metrics import error_columns
from ...experiments.decide.proxy_metrics import proxy_metrics as relations
from ...judge.per_user_columns import key_codes
from ...tables.cells import amount, columns_before, estimated, short_names
from ..given_tables import JOINED_BY, chosen, count_text, labels, need, need_history, picked
from .picture import (
    COLOURS,
    MUTED,
    Axes,
    Frame,
    ModelLook,
    Picture,
    Steps,
    best_first,
    by_model,
    letters,
    of_few_or_best,
    spoken,
)

ITEM_POINTS = 200
# Upper edges of the bands of popularity, as shares of the items of the log.
BANDS = (0.01, 0.05, 0.2, 0.5, 1.0)
HIT = "#cfe6d6"  # light in a dark style too, so that dark texts stand on it
ROW_HEIGHT = 0.3  # inches of an item of a list
LOG = "past interactions"


def _shown(exposure_table: DataFrame) -> tuple[str, dict[str, Series]]:
    """Return the item column, which stands before `shown`, and how often each model, by its label,
    shows each item."""
    source = "what rd.diagnostics.exposure_table returned"
    need(exposure_table, "exposure_table", ("shown", "share"), source)
    *by, item = columns_before(exposure_table, "shown")
    shown = exposure_table.set_index(item)["shown"].groupby(labels(exposure_table, by), sort=False)
    return item, {str(model): counts for model, counts in shown}


@Picture
def exposure(exposure_table: DataFrame, *, ax: Axes | None = None) -> Steps:
    """Draw how evenly impressions fall on items: the Lorenz curve of every model, with its Gini
    index.

    Parameters
    ----------
    exposure_table : DataFrame
        What `rd.diagnostics.exposure_table` returned. With `items=`, items that are never shown
        count.
    {ax_returns_raises}
    ColumnError, DataError
        If the frame is not an exposure table, or nothing is shown.

    Data
    ----
    Points of the Lorenz curve of every model, the least shown items first: `model`,
    `share_of_items`, `share_of_impressions`, `gini`, `n_items`. `gini` is Σ (2j − n − 1) x_j / (n Σ
    x).

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> table = rd.diagnostics.exposure_table(shop.pred, by="model", items=shop.items)
    >>> rd.plot.exposure.data(table).groupby("model", sort=False)["gini"].first().round(3).to_dict()
    {'knn': 0.734, 'popularity': 0.978, 'random': 0.088}
    >>> ax = rd.plot.exposure(table)
    """
    parts = []
    ginis = {}
    for model, counts in _shown(exposure_table)[1].items():
        shown = np.sort(counts.to_numpy(float))
        n = len(shown)
        total = shown.sum()
        if not total:
            continue
        places = np.unique(np.linspace(0, n, min(n, ITEM_POINTS) + 1).astype(int))
        ginis[model] = ((2 * np.arange(1, n + 1) - n - 1) * shown).sum() / (n * total)
        impressions = np.append(0.0, np.cumsum(shown) / total)[places]
        own = {"share_of_items": places / n, "share_of_impressions": impressions}
        parts.append(DataFrame({"model": model, **own, "gini": ginis[model], "n_items": n}))
    if not parts:
        raise DataError("exposure_table has no impressions; there is nothing to draw")
    data = pd.concat(parts, ignore_index=True)
    yield data

    frame = Frame(ax)
    first = best_first(Series(ginis), "smaller")
    frame.suffix = {model: f"Gini {gini:.3f}" for model, gini in ginis.items()}
    frame.lines(data, "share_of_items", "share_of_impressions", first, markevery=0.2)
    frame.reference([0, 1], [0, 1], "every item equally often", (0, (2, 2)))
    frame.ax.set(xlim=(0, 1), ylim=(0, 1.02))
    yield frame.finish(
        "Concentration of exposure",
        "share of items, least shown first",
        "share of impressions",
        f"{count_text(data['n_items'], 'item')}; a curve further to the right leaves more items "
        "unseen",
        shares="xy",
    )


@Picture
def longtail(
    exposure_table: DataFrame,
    log: Any,
    *,
    ax: Axes | None = None,
) -> Steps:
    """Draw the share of impressions that goes to popular and to rare items, beside their share in
    the past.

    Parameters
    ----------
    exposure_table : DataFrame
        What `rd.diagnostics.exposure_table` returned.
    log : DataFrame
        Past interactions with the item column of the exposure table: an item's popularity is its
        number of rows.
    {ax_returns_raises}
    ColumnError, OptionError, DataError
        If a column is missing, or the log is empty.

    Data
    ----
    One row per model and band: `model`, `band`, `share`, `n_items`. The last model is the log
    itself, its band "not in log" is 0.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> table = rd.diagnostics.exposure_table(shop.pred, by="model", items=shop.items)
    >>> data = rd.plot.longtail.data(table, shop.log)
    >>> data[data["band"] == "top 1 %"][["model", "share"]].round(3)
                    model  share
    0                 knn  0.072
    6          popularity  0.364
    12             random  0.006
    18  past interactions  0.036
    >>> ax = rd.plot.longtail(table, shop.log)
    """
    item, _ = _shown(exposure_table)
    need(log, "log", [item], "past interactions with the item column of exposure_table")
    # Codes are in the order of the ids: of equally popular items, the smaller id comes first.
    tables = [("exposure_table", exposure_table), ("log", log[[item]].dropna())]
    (codes, known), _ = key_codes(tables, [item])
    _, shown = _shown(exposure_table.assign(**{item: codes}))
    past = Series(known).value_counts().sort_index().sort_values(ascending=False, kind="stable")
    if not len(past):
        raise DataError("log has no rows; popularity bands need past interactions")
    # An item at rank r of n belongs to the first band whose edge is at least r/n.
    ranks = np.arange(1, len(past) + 1) / len(past)
    band = Series(np.searchsorted(BANDS, ranks - 1e-12), past.index)
    ends = [f"{100 * edge:g}" for edge in BANDS]
    names = [f"top {ends[0]} %", *(f"{one}–{end} %" for one, end in pairwise(ends)), "not in log"]
    frames = []
    for model, counts in {**shown, LOG: past}.items():
        own = band.reindex(counts.index).fillna(len(BANDS)).astype(int)
        weight = np.bincount(own, counts.to_numpy(float), len(names))
        sizes = [*np.bincount(band, minlength=len(BANDS)), (own == len(BANDS)).sum()]
        columns = {"band": names, "share": weight / (weight.sum() or 1.0), "n_items": sizes}
        frames.append(DataFrame({"model": model, **columns}))
    data = pd.concat(frames, ignore_index=True)
    yield data

    frame = Frame(ax)
    cells = data[["model", "band", "share"]].itertuples(index=False)
    said = [f"{model}, {one}: {estimated(share, sign='%')}" for model, one, share in cells]
    data = data.assign(at=data["band"].map(names.index), said=said, band=False)
    of_log = data[data["model"] == LOG]
    first = best_first(Series(0.0, [*shown]), "smaller")
    frame.lines(data.drop(of_log.index), "at", "share", first)
    frame.reference(of_log["at"], of_log["share"], LOG, "--")
    frame.tick_names(frame.ax.xaxis, names)
    frame.ax.set_ylim(bottom=0)
    yield frame.finish(
        "Popular items and the long tail",
        "items by popularity in the log",
        "share of impressions",
        f"{amount(len(past), 'item')} in the log; dashed: share of the past interactions",
        shares="y",
    )


@Picture
def position(position_table: DataFrame, *, ax: Axes | None = None) -> Steps:
    """Draw the hit rate at every rank, with intervals, models side by side.

    Parameters
    ----------
    position_table : DataFrame
        What `rd.diagnostics.position_table` returned. Beyond four models, only the one that is
        best at the first rank has a band.
    {ax_returns_raises}
    ColumnError
        If the frame is not a position table.

    Data
    ----
    One row per model and rank: `model`, `rank`, `hit_rate`, `ci_low`, `ci_high`, `n`; `n` is the
    number of lists with an item at this rank.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> table = rd.diagnostics.position_table(shop.true, shop.pred, k=10, by="model")
    >>> rd.plot.position.data(table)[["model", "rank", "hit_rate"]].head(2).round(3)
      model  rank  hit_rate
    0   knn     1     0.205
    1   knn     2     0.095
    >>> ax = rd.plot.position(table)
    """
    columns = ["rank", "hit_rate", "ci_low", "ci_high", "shown"]
    need(position_table, "position_table", columns, "what rd.diagnostics.position_table returned")
    data = picked(position_table, columns).rename(columns={"shown": "n"})
    data.insert(0, "model", labels(position_table, columns_before(position_table, "rank")))
    yield data

    tops = data[data["rank"] == data["rank"].min()].set_index("model")["hit_rate"]
    frame = Frame(ax)
    first = best_first(tops, "larger")
    said = spoken(data["model"] + ", rank " + data["rank"].map("{:g}".format), data, "hit_rate")
    data = data.assign(said=said, band=of_few_or_best(data, first))
    frame.lines(data, "rank", "hit_rate", first)
    frame.ax.locator_params(axis="x", integer=True)
    frame.ax.set_xlim(left=0)
    frame.ax.set_ylim(bottom=0)
    yield frame.finish(
        "Hit rate by rank",
        "rank",
        "hits per recommended item",
        f"bands: 95 % Wilson intervals; {count_text(data['n'], 'list')} per rank",
        shares="y",
    )


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


@Picture
def proxy_metrics(
    tests: DataFrame,
    *,
    offline: str | Mapping[str, str],
    online: str | Mapping[str, str],
    ax: Axes | None = None,
    **options: Any,
) -> Steps:
    """Draw past experiments, offline difference against online effect, with the line of the true
    effects.

    Parameters
    ----------
    tests : DataFrame
        As in `rd.experiments.proxy_metrics`: one row per experiment.
    offline, online : str or mapping
        The two columns of differences, one each; a mapping names the column of the standard errors.
    options
        Further options of `rd.experiments.proxy_metrics`, such as `smaller_is_better` and `cov`.
    {ax_returns_raises}

    Notes
    -----
    Each cross reaches one standard error from its experiment on both axes. The dashed line is the
    ordinary regression, which noise pulls towards 0.

    Data
    ----
    One row per experiment: `label`, `x`, `x_se`, `y`, `y_se`, `line`, `naive`. `line` and `naive`
    are the heights of both lines above x, which go through the mean.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> tests = pd.DataFrame(
    ...     {
    ...         "ndcg": [0.0, 0.01, 0.02, 0.03],
    ...         "ndcg_se": 0.001,
    ...         "ctr": [0.001, 0.004, 0.012, 0.014],
    ...         "ctr_se": 0.001,
    ...     }
    ... )
    >>> rd.plot.proxy_metrics.data(tests, offline="ndcg", online="ctr")[
    ...     ["x", "y", "line", "naive"]
    ... ].round(4)
          x      y    line   naive
    0  0.00  0.001  0.0007  0.0007
    1  0.01  0.004  0.0054  0.0054
    2  0.02  0.012  0.0101  0.0101
    3  0.03  0.014  0.0148  0.0148
    >>> ax = rd.plot.proxy_metrics(tests, offline="ndcg", online="ctr")
    """
    found = relations(tests, offline=offline, online=online, **options)
    if len(found) > 1:
        raise OptionError(
            f"⟦offline={offline!r}⟧ and ⟦online={online!r}⟧ are {len(found)} pairs; expected one "
            "of each"
        )
    row = found.iloc[0]
    data = tests[[]].reset_index(drop=True)
    data["label"] = data.index.astype(str)
    for axis, role, given in (("x", "offline", offline), ("y", "online", online)):
        names = next(iter(error_columns(role, given).items()))
        data[[axis, f"{axis}_se"]] = tests[[*names]].to_numpy(float)
    for column, slope in (("line", row["slope"]), ("naive", row["naive_slope"])):
        data[column] = data["y"].mean() + slope * (data["x"] - data["x"].mean())
    yield data

    frame = Frame(ax)
    for at in (frame.ax.axhline, frame.ax.axvline):
        at(0, color=frame.tone(MUTED), linewidth=0.8)
    x, y, x_se, y_se = (data[name] for name in ("x", "y", "x_se", "y_se"))
    frame.ax.hlines(y, x - x_se, x + x_se, color=COLOURS[0], linewidth=0.8, alpha=0.5)
    frame.ax.vlines(x, y - y_se, y + y_se, color=COLOURS[0], linewidth=0.8, alpha=0.5)
    cells = zip(data["label"], x, y, strict=True)
    said = [f"{name}: offline: {estimated(a)}; online: {estimated(b)}" for name, a, b in cells]
    frame.line(x, y, ModelLook(COLOURS[0], "o", "none"), said, "experiments")
    ordered = data.sort_values("x")
    if pd.notna(row["slope"]):
        name = "true effects"
        look = ModelLook(COLOURS[1], "", "-")
        frame.line(ordered["x"], ordered["line"], look, [name], name, linewidth=2)
    if pd.notna(row["naive_slope"]):
        frame.reference(ordered["x"], ordered["naive"], "naive regression", "--")
    slope = f"slope {estimated(row['slope'], row['slope_low'], row['slope_high'])}; "
    yield frame.finish(
        f"{row['online']} against {row['offline']}: {row['verdict']}",
        f"offline difference of {row['offline']}",
        f"online effect on {row['online']}",
        f"{slope * (row['withheld'] == '')}{amount(row['n_tests'], 'experiment')}; crosses: one "
        "standard error",
    )


@Picture
def history(history: History, metric: str | None = None, *, ax: Axes | None = None) -> Steps:
    """Draw a metric over the runs of a job, one line per model or segment, with the nights at which
    it changed.

    Parameters
    ----------
    history : History
        The results of the job.
    metric : str, optional
        Column such as "ndcg@10". Default: the first.
    {ax_returns_raises}
    OptionError
        A metric that no result has.

    Notes
    -----
    A band is the interval of each night by itself. A ring marks the first night of a new level, as
    `changes` finds it.

    Data
    ----
    One row per run and series: `model`, `date`, `value`, `ci_low`, `ci_high`, `changed`; `changed`
    is true at the first run of a new level.

    Examples
    --------
    >>> import pandas as pd, recdf as rd, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for day in pd.date_range("2026-11-01", periods=3):
    ...     rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1").to_parquet(f"{folder}/{day:%Y-%m-%d}")
    >>> rd.plot.history.data(rd.diagnostics.History(folder))[["model", "date", "value", "changed"]]
       model       date  value  changed
    0  mrr@1 2026-11-01    1.0    False
    1  mrr@1 2026-11-02    1.0    False
    2  mrr@1 2026-11-03    1.0    False
    >>> ax = rd.plot.history(rd.diagnostics.History(folder))
    """
    need_history(history)
    known = history.summary["column"].drop_duplicates().tolist()
    wanted = known[0] if metric is None else chosen("metric", metric, known, "metric of the job")
    changes = history.changes(wanted)
    rows = history.summary[history.summary["column"] == wanted]
    keys = [name for name in columns_before(changes, "column") if rows[name].nunique() > 1]
    begun = changes[changes["changed"].notna() & ~changes["effect"].isin(["", "none", "drifts"])]
    own, at = (labels(one, keys) if keys else [wanted] * len(one) for one in (rows, begun))
    data = picked(rows, ["date", "value", "ci_low", "ci_high"])
    data.insert(0, "model", own)
    levels = {*zip(at, begun["changed"], strict=True)}
    data["changed"] = [pair in levels for pair in zip(own, data["date"], strict=True)]
    yield data

    frame = Frame(ax)
    said = spoken(data["date"].dt.strftime("%Y-%m-%d"), data)
    frame.lines(data.assign(band=True, said=said), "date", "value", markersize=4)
    for _, rows, look in by_model(data):
        begun = rows[rows["changed"]]
        ring = {"markersize": 13, "markerfacecolor": "none"}
        frame.ax.plot(begun["date"], begun["value"], "o", color=look.colour, **ring)
    frame.date_ticks()
    caption = "bands: intervals of single nights; rings: a new level begins"
    yield frame.finish(f"{wanted} by date", "date", wanted, caption)
