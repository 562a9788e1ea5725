"""Pictures of items and ranks: concentration of exposure, the long tail, hit rate by position."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ...errors import DataError, OptionError
from ...tables.cells import amount, columns_before, estimated
from ..given_tables import count_text, labels, need
from ..kinds import TABLE_KINDS
from . import style
from .picture import drawn_from
from .style import Axes, best_first

__all__ = ["exposure", "longtail", "position"]

ITEM_POINTS = 200
# Upper edges of the bands of popularity, as shares of the items of the log.
BANDS = (0.01, 0.05, 0.2, 0.5, 1.0)
LOG = "past interactions"


def _by_and_item(exposure_table: pd.DataFrame) -> tuple[list[str], str]:
    """Return the columns of the recommenders and of the item, which stand before `shown`."""
    need(
        exposure_table,
        "exposure_table",
        TABLE_KINDS["exposure"].columns,
        "what rd.diagnostics.exposure_table returned",
    )
    before = columns_before(exposure_table, "shown")
    if not before:
        raise OptionError(
            "exposure_table has no item column before 'shown'; expected what "
            "rd.diagnostics.exposure_table returned"
        )
    return before[:-1], before[-1]


def _model_counts(exposure_table: pd.DataFrame, by: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return the rows of every model, by its label."""
    models = pd.Series(labels(exposure_table, by), index=exposure_table.index)
    return {str(model): rows for model, rows in exposure_table.groupby(models, sort=False)}


# -- Lorenz curve


def _exposure_data(exposure_table: pd.DataFrame) -> pd.DataFrame:
    """Return the frame that `exposure` draws: `model`, `share_of_items`, `share_of_impressions`,
    `gini`, `n_items`.

    {parameters_returns}
        Points of the Lorenz curve of every model, the least shown items first; `gini` is Σ (2j − n
        − 1) x_j / (n Σ x).
    """
    by, _ = _by_and_item(exposure_table)
    parts = []
    for model, rows in _model_counts(exposure_table, by).items():
        shown = np.sort(rows["shown"].to_numpy(dtype=np.float64))
        n, total = len(shown), shown.sum()
        if not total:
            continue
        places = np.unique(np.linspace(0, n, min(n, ITEM_POINTS) + 1).astype(np.int64))
        own = {
            "model": model,
            "share_of_items": places / n,
            "share_of_impressions": np.append(0.0, np.cumsum(shown) / total)[places],
            "gini": float(((2 * np.arange(1, n + 1) - n - 1) * shown).sum() / (n * total)),
            "n_items": n,
        }
        parts.append(pd.DataFrame(own))
    if not parts:
        raise DataError("exposure_table has no impressions; there is nothing to draw")
    return pd.concat(parts, ignore_index=True)


@drawn_from(_exposure_data)
def exposure(
    exposure_table: pd.DataFrame,
    *,
    highlight: str | Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how evenly impressions fall on items: the Lorenz curve of every model, with its Gini
    index.

    Parameters
    ----------
    exposure_table : DataFrame
        What `rd.diagnostics.exposure_table` returned. With `items=`, items that are never shown
        count.
    {highlight}
    {ax_returns_raises}
    ColumnError, DataError
        If the frame is not an exposure table, or nothing is shown.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> table = rd.diagnostics.exposure_table(shop.pred, by="model", items=shop.items)
    >>> rd.plot.exposure.data(table).groupby("model", sort=False)["gini"].first().round(3).to_dict()
    {'knn': 0.734, 'popularity': 0.978, 'random': 0.088}
    >>> ax = rd.plot.exposure(table)
    """
    data, frame = _exposure_data(exposure_table), style.Frame(ax)
    ginis = data.groupby("model", sort=False)["gini"].first()
    said = {str(model): f"Gini {gini:.3f}" for model, gini in ginis.items()}
    frame.lines(
        *(data, "share_of_items", "share_of_impressions"),
        best_first(ginis, "smaller", highlight),
        words=lambda model, _: [f"{model}: {said[model]}"],
        every=6,
    )
    even = style.ModelLook(style.tone(frame.ax, style.MUTED), "", (0, (2, 2)))
    name = "every item equally often"
    frame.line([0, 1], [0, 1], even, [name], name=name, linewidth=1, zorder=1)
    frame.ax.set(xlim=(0, 1), ylim=(0, 1.02))
    return frame.finish(
        "Concentration of exposure",
        "share of items, least shown first",
        "share of impressions",
        f"{count_text(data['n_items'], 'item')}; a curve further to the right leaves more items "
        "unseen",
        shares="xy",
        suffix=said,
    )


# -- long tail


def _longtail_data(exposure_table: pd.DataFrame, log: Any) -> pd.DataFrame:
    """Return the frame that `longtail` draws: `model`, `band`, `share`, `n_items`.

    {parameters_returns}
        One row per model and band; the last model is the log itself, its band "not in log" is 0.
    """
    by, item = _by_and_item(exposure_table)
    need(log, "log", [item], "past interactions with the item column of exposure_table")
    past = log[item].value_counts(sort=False).sort_values(ascending=False, kind="stable")
    if not len(past):
        raise DataError("log has no rows; popularity bands need past interactions")
    # An item at rank r of n belongs to the first band whose edge is at least r/n.
    ranks = np.arange(1, len(past) + 1) / len(past)
    band = pd.Series(np.searchsorted(BANDS, ranks - 1e-12), past.index)
    ends = [f"{100 * edge:g}" for edge in BANDS]
    names = [f"top {ends[0]} %", *(f"{one}–{end} %" for one, end in pairwise(ends)), "not in log"]
    shown = {
        model: rows.set_index(item)["shown"]
        for model, rows in _model_counts(exposure_table, by).items()
    }
    parts = []
    for model, counts in {**shown, LOG: past}.items():
        own = band.reindex(counts.index).fillna(len(BANDS)).astype(int)
        weight = np.bincount(own, counts.to_numpy(np.float64), len(names))
        sizes = [*np.bincount(band, minlength=len(BANDS)), (own == len(BANDS)).sum()]
        share = weight / (weight.sum() or 1.0)
        parts.append(
            pd.DataFrame({"model": model, "band": names, "share": share, "n_items": sizes})
        )
    return pd.concat(parts, ignore_index=True)


@drawn_from(_longtail_data)
def longtail(
    exposure_table: pd.DataFrame,
    log: Any,
    *,
    highlight: str | Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of impressions that goes to popular and to rare items, beside their share in
    the past.

    Parameters
    ----------
    exposure_table : DataFrame
        What `rd.diagnostics.exposure_table` returned.
    log : DataFrame
        Past interactions with the item column of the exposure table: an item's popularity is its
        number of rows.
    highlight : str or list of str, optional
        Models that keep a colour of their own where there are more than eight; all others are grey
        then.
    {ax_returns_raises}
    ColumnError, OptionError, DataError
        If a column is missing, or the log is empty.

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
    data = _longtail_data(exposure_table, log)
    frame, own = style.Frame(ax), data[data["model"] != LOG]
    marked = style.highlighted(highlight, own["model"].tolist())
    parts = style.by_model(
        own, list(dict.fromkeys([*marked, *own["model"]]))[: style.BEST + len(marked)]
    )
    grey = style.ModelLook(style.tone(frame.ax, 0.5), "|", "-")
    parts += [(LOG, data[data["model"] == LOG], grey)]
    bars, names = len(parts), list(dict.fromkeys(data["band"]))
    many = any(look is style.REST for _, _, look in parts)
    for i, (model, rows, look) in enumerate(parts):
        # Bars of a band stand side by side; those of many models would be hairlines, so marks lie
        # on one line.
        places = np.arange(len(names)) + (0 if many else (i - (bars - 1) / 2) * 0.8 / bars)
        shares = zip(names, rows["share"], strict=True)
        words = [f"{model}, {band}: {estimated(share, sign='%')}" for band, share in shares]
        if many:
            size = {"markersize": 14 if model == LOG else 6, "linestyle": "none"}
            frame.line(rows["share"], places, look, words, name=model, **size)
            continue
        drawn = frame.ax.barh(places, rows["share"], height=0.76 / bars, color=look.colour)
        for bar, text in zip(drawn, words, strict=True):
            style.says(bar, [text])
        frame.entries.append((drawn, model, look))
    style.tick_names(frame.ax.yaxis, names)
    frame.ax.invert_yaxis()
    frame.ax.grid(False, axis="y")
    n = int(data.loc[data["model"] == LOG, "n_items"].sum())
    return frame.finish(
        "Popular items and the long tail",
        "share of impressions",
        "items by popularity in the log",
        f"{amount(n, 'item')} in the log; grey: share of the past interactions",
        shares="x",
    )


# ------------------------------------------------------------------------------------------
# positions


def _position_data(position_table: pd.DataFrame) -> pd.DataFrame:
    """Return the frame that `position` draws: `model`, `rank`, `hit_rate`, `ci_low`, `ci_high`,
    `n`.

    {parameters_returns}
        One row per model and rank; `n` is the number of lists with an item at this rank.
    """
    columns = ("rank", "hit_rate", "ci_low", "ci_high")
    need(position_table, "position_table", columns, "what rd.diagnostics.position_table returned")
    by = columns_before(position_table, "rank")
    counted = next(
        (name for name in ("shown", "n_pred", "n") if name in position_table.columns), None
    )
    data = position_table[list(columns)].reset_index(drop=True)
    data.attrs = {}
    data.insert(0, "model", labels(position_table, by))
    data["n"] = np.nan if counted is None else position_table[counted].to_numpy()
    return data


@drawn_from(_position_data)
def position(
    position_table: pd.DataFrame,
    *,
    highlight: str | Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the hit rate at every rank, with intervals, models side by side.

    Parameters
    ----------
    position_table : DataFrame
        What `rd.diagnostics.position_table` returned.
    {highlight}
    {ax_returns_raises}
    ColumnError
        If the frame is not a position table.

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
    data, frame = _position_data(position_table), style.Frame(ax)
    tops = data[data["rank"] == data["rank"].min()].set_index("model")["hit_rate"]
    first = best_first(tops, "larger", highlight)
    own = [part for part in style.by_model(data, first) if part[2] is not style.REST]
    # A small step to the side, so that the intervals of two models do not lie on one another.
    step = min(0.16, 0.7 / max(len(own), 1))
    steps = {model: step * (i - (len(own) - 1) / 2) for i, (model, _, _) in enumerate(own)}
    data["at"] = data["rank"] + data["model"].map(steps).fillna(0)

    def words(model: str, rows: pd.DataFrame) -> list[str]:
        numbers = rows[["rank", "hit_rate", "ci_low", "ci_high"]].to_numpy(np.float64)
        return [style.spoken(f"{model}, rank {one[0]:g}", *one[1:]) for one in numbers]

    frame.lines(data, "at", "hit_rate", first, words=words, linewidth=0.8)
    for _, rows, look in own:
        at = data["at"][rows.index]
        frame.ax.vlines(at, rows["ci_low"], rows["ci_high"], color=look.colour, linewidth=1.4)
    ranks = sorted(set(data["rank"]))
    style.tick_numbers(frame.ax.xaxis, ranks, [f"{rank:g}" for rank in ranks])
    frame.ax.set_ylim(bottom=0)
    frame.ax.grid(False, axis="x")
    caption = f"bars: 95 % Wilson intervals; {count_text(data['n'], 'list')} per rank"
    return frame.finish(
        "Hit rate by rank", "rank", "hits per recommended item", caption, shares="y"
    )
