"""Pictures of tables that diagnose: concentration of exposure, the long tail, hit rate by
position, the values of a job by date, and past experiments, whose offline and online differences
are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ...diagnostics.history import History
from ...errors import DataError, OptionError
from ...experiments.decide.proxy_metrics import error_columns
from ...experiments.decide.proxy_metrics import proxy_metrics as relations
from ...tables.cells import amount, columns_before, estimated
from ..given_tables import count_text, labels, need, need_history
from ..kinds import TABLE_KINDS
from . import style
from .picture import drawn_from
from .style import Axes, best_first

__all__ = ["exposure", "history", "longtail", "position", "proxy_metrics"]

ITEM_POINTS = 200
# Upper edges of the bands of popularity, as shares of the items of the log.
BANDS = (0.01, 0.05, 0.2, 0.5, 1.0)
LOG = "past interactions"
ONE_SIGMA = np.linspace(0, 2 * np.pi, 61)  # the points of an ellipse, by their angle


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


def _proxy_metrics_data(
    tests: pd.DataFrame,
    *,
    offline: str | Mapping[str, str],
    online: str | Mapping[str, str],
    cov: str | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Return what `proxy_metrics` draws: `label`, `x`, `x_se`, `y`, `y_se`, `cov`, `line`, `naive`.

    {parameters_returns}
        One row per experiment; `line` and `naive` are the heights of both lines above x, which go
        through the mean.
    """
    found = relations(tests, offline=offline, online=online, cov=cov, **options)
    if len(found) > 1:
        raise OptionError(
            f"⟦offline={offline!r}⟧ and ⟦online={online!r}⟧ are {len(found)} pairs; expected one "
            "of each"
        )
    row, data = found.iloc[0], tests[[]].reset_index(drop=True)
    data["label"] = data.index.astype(str)
    for axis, given in (
        ("x", error_columns("offline", offline)),
        ("y", error_columns("online", online)),
    ):
        for name, of in zip((axis, f"{axis}_se"), next(iter(given.items())), strict=True):
            data[name] = tests[of].to_numpy(np.float64)
    data["cov"] = tests[cov].to_numpy(np.float64) if cov else 0.0
    for column, slope in (("line", row["slope"]), ("naive", row["naive_slope"])):
        data[column] = data["y"].mean() + slope * (data["x"] - data["x"].mean())
    data.attrs = {"recdf_proxy": row.to_dict()}
    return data


@drawn_from(_proxy_metrics_data)
def proxy_metrics(
    tests: pd.DataFrame,
    *,
    offline: str | Mapping[str, str],
    online: str | Mapping[str, str],
    cov: str | None = None,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw past experiments, offline difference against online effect, with the line of the true
    effects.

    Parameters
    ----------
    tests : DataFrame
        As in `rd.experiments.proxy_metrics`: one row per experiment.
    offline, online : str or mapping
        The two columns of differences, one each; a mapping names the column of the standard errors.
    cov : str, optional
        Column of their sampling covariance.
    options
        Further options of `rd.experiments.proxy_metrics`, such as `smaller_is_better`.
    {ax_returns_raises}

    Notes
    -----
    Each ellipse reaches one standard error from its experiment on both axes. It is tilted where
    both differences were measured on the same users. The dashed line is the ordinary regression,
    which noise pulls towards 0.

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
    data = _proxy_metrics_data(tests, offline=offline, online=online, cov=cov, **options)
    row, records = data.attrs["recdf_proxy"], data.to_dict("records")
    frame = style.Frame(ax)
    muted = style.tone(frame.ax, style.MUTED)
    for at in (frame.ax.axhline, frame.ax.axvline):
        at(0, color=muted, linewidth=0.8)
    for one in records:
        frame.ax.plot(*_ellipse(one), color=style.COLOURS[0], linewidth=0.8, alpha=0.35)
    said = [
        f"{one['label']}: {style.spoken('offline', one['x'])}; {style.spoken('online', one['y'])}"
        for one in records
    ]
    points = style.ModelLook(style.COLOURS[0], "o", "none")
    frame.line(data["x"], data["y"], points, said, name="experiments")
    ordered = data.sort_values("x")
    for column, name, colour, line, width in (
        ("line", "true effects", style.COLOURS[1], "-", 2),
        ("naive", "naive regression", muted, "--", 1),
    ):
        if ordered[column].notna().any():
            look = style.ModelLook(colour, "", line)
            frame.line(ordered["x"], ordered[column], look, [name], name=name, linewidth=width)
    slope = estimated(row["slope"], row["slope_low"], row["slope_high"])
    return frame.finish(
        f"{row['online']} against {row['offline']}: {row['verdict']}",
        f"offline difference of {row['offline']}",
        f"online effect on {row['online']}",
        f"slope {slope}; {amount(row['n_tests'], 'experiment')}; ellipses: one standard error",
    )


def _ellipse(row: Mapping[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the points one standard error from an experiment, tilted by the correlation of both
    errors."""
    tilt = row["cov"] / (row["x_se"] * row["y_se"])
    across, up = np.cos(ONE_SIGMA), np.sin(ONE_SIGMA) * np.sqrt(max(1 - tilt**2, 0))
    return row["x"] + row["x_se"] * across, row["y"] + row["y_se"] * (tilt * across + up)


# -- a job


def _history_data(history: History, metric: str | None = None) -> pd.DataFrame:
    """Return what `history` draws: `model`, `date`, `value`, `ci_low`, `ci_high`, `changed`.

    {parameters_returns}
        One row per run and series; `changed` is true at the first run of a new level.
    """
    need_history(history)
    known = history.summary["column"].drop_duplicates().tolist()
    wanted = known[0] if metric is None else metric
    if wanted not in known:
        raise OptionError(f"no result has ⟦metric={metric!r}⟧; they have {known}")
    changes, rows = history.changes(wanted), history.summary[history.summary["column"] == wanted]
    before = columns_before(changes, "column")
    keys = [name for name in before if rows[name].nunique() > 1]
    begun = changes[changes["changed"].notna() & ~changes["effect"].isin(["", "none"])]
    own, at = (labels(one, keys) if keys else [wanted] * len(one) for one in (rows, begun))
    data = rows[["date", "value", "ci_low", "ci_high"]].reset_index(drop=True)
    data.insert(0, "model", own)
    levels = set(zip(at, begun["changed"], strict=True))
    data["changed"] = [pair in levels for pair in zip(own, data["date"], strict=True)]
    data.attrs = {"recdf_metric": wanted}
    return data


@drawn_from(_history_data)
def history(history: History, metric: str | None = None, *, ax: Axes | None = None) -> Axes:
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
    data = _history_data(history, metric)
    wanted, frame = data.attrs["recdf_metric"], style.Frame(ax)

    def words(name: str, rows: pd.DataFrame) -> list[str]:
        nights = zip(rows["date"], rows["value"], strict=True)
        return [style.spoken(f"{date:%Y-%m-%d}", value) for date, value in nights]

    frame.lines(data.assign(band=True), "date", "value", words=words, markersize=4)
    rings: dict[str, Any] = {
        "marker": "o",
        "markersize": 13,
        "markerfacecolor": "none",
        "linestyle": "none",
    }
    for _, rows, look in style.by_model(data):
        begun = rows[rows["changed"]]
        frame.ax.plot(begun["date"], begun["value"], color=look.colour, **rings)
    style.dates(frame.ax)
    caption = "bands: intervals of single nights; rings: a new level begins"
    return frame.finish(f"{wanted} by date", "date", wanted, caption)
