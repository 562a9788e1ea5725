"""Pictures of a summary: metrics over k, and trade-offs of two metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import OptionError, closest
from ..given_tables import check_model, count_text, direction_word, interval_percent, summary_of
from . import style
from .style import Axes

__all__ = ["curve", "tradeoff"]

MANY_MODELS = 4  # beyond these, bands of all models would hide one another
DIRECTION_ARROWS = {"larger": " ↑", "smaller": " ↓", "": ""}
DIRECTION = {"larger": "higher is better", "smaller": "lower is better", "": ""}


# ------------------------------------------------------------------------------------------ curves over k


def _curve_data(
    result: Any, metrics: str | Sequence[str] | None = None, *, highlight: str | Sequence[str] | None = None
) -> pd.DataFrame:
    """Return what `curve` draws: `model`, `metric`, `better`, `k`, `value`, `ci_low`, `ci_high`, `n`, `band`.

    {parameters_returns}
        One row per model, metric and k; `band` tells whether the interval of this model is drawn.
    """
    table = summary_of(result)
    table = table[table["k"].notna()]
    depths = table.groupby("metric", sort=False)["k"].nunique()
    names = _wanted(metrics, [str(name) for name in depths.index[depths > 1]], "with values at two k or more")
    table = table[table["metric"].isin(names)]
    table["metric"] = pd.Categorical(table["metric"], names, ordered=True)
    table = table.sort_values(["metric", "k"], kind="stable")
    table = table.astype({"metric": "str", "k": "int64"}).reset_index(drop=True)
    models = list(dict.fromkeys(summary_of(result)["model"]))
    banded = _banded(table, models, names[0], highlight)
    table["band"] = table["model"].isin(banded) & table["ci_low"].notna()
    return table[["model", "metric", "better", "k", "value", "ci_low", "ci_high", "n", "band"]]


def _wanted(metrics: str | Sequence[str] | None, known: list[str], what: str) -> list[str]:
    """Return the names of the metrics to draw; by default all that are known."""
    names = [metrics] if isinstance(metrics, str) else list(metrics or known)
    if not names:
        raise OptionError(f"the result has no metric {what}; evaluate with k=[5, 10, 20], for instance")
    for name in names:
        if name not in known:
            raise OptionError(f"metrics names {name!r}; metrics {what} are {known}{closest(name, known)}")
    return list(dict.fromkeys(names))


def _banded(table: pd.DataFrame, models: list[str], metric: str, highlight: Any) -> list[str]:
    """Return the models whose intervals are drawn: the highlighted ones and the best one, or all if they are few."""
    marked = [] if highlight is None else [highlight] if isinstance(highlight, str) else list(highlight)
    marked = [check_model("highlight", name, models) for name in marked]
    if len(models) <= MANY_MODELS and not marked:
        return models
    last = table[table["metric"] == metric]
    last = last[last["k"] == last["k"].max()].dropna(subset="value")
    if not len(last):
        return marked
    best = last["value"].idxmin() if last["better"].iloc[0] == "smaller" else last["value"].idxmax()
    return [*marked, str(last["model"].loc[best])]


@style.drawn_from(_curve_data)
def curve(
    result: Any,
    metrics: str | Sequence[str] | None = None,
    *,
    highlight: str | Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Draw metrics over k, one line per model, one panel per metric.

    Parameters
    ----------
    result : Evaluation or DataFrame
        An evaluation at several k, or its summary.
    metrics : str or list of str, optional
        Names without a k, such as "ndcg". Default: every metric that has values at two k or more.
    highlight : str or list of str, optional
        Models whose intervals are drawn and whose lines are thick, such as the baseline. The model that is best by
        the first metric at the largest k is always among them. Default: all models, if they are at most four.
    {axes_returns_raises}
    OptionError
        If a metric or model is unknown, or no metric has several k.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, "ndcg", k=[5, 10], by="model")
    >>> rd.plot.curve.data(result)[["model", "metric", "k", "value"]].head(3).round(3)
            model metric  k  value
    0         knn   ndcg  5  0.159
    1  popularity   ndcg  5  0.118
    2      random   ndcg  5  0.006
    >>> ax = rd.plot.curve(result)
    """
    data = _curve_data(result, metrics, highlight=highlight)
    names = list(dict.fromkeys(data["metric"]))
    panels = style.new_grid(ax, len(names), size=(3.6, 3.1))
    models = list(dict.fromkeys(data["model"]))
    few_bands = bool(data["band"].any()) and data.loc[data["band"], "model"].nunique() < len(models)
    for panel, (metric, part) in zip(panels, data.groupby("metric", sort=False), strict=True):
        parts = style.by_model(part)
        handles = [_line(panel, rows, look, bool(few_bands and not rows["band"].any())) for _, rows, look in parts]
        ks = sorted(set(part["k"]))
        panel.set_xticks(ks if len(ks) <= 8 else ks[:: -(-len(ks) // 8)])
        if part["value"].min() >= 0:
            panel.set_ylim(bottom=0)
        style.title(panel, f"{metric}@k")
        style.axis_names(panel, "k, items per list", DIRECTION[part["better"].iloc[0]])
    style.shared_legend(list(panels), handles, models)
    bands = "bands" if not few_bands else "bands (of the best and the highlighted models)"
    alone = "one number for all lists, without interval"
    means = f"{bands}: {interval_percent(result)}" if data["band"].any() else alone
    first_of_last_row = panels[3 * ((len(panels) - 1) // 3)]
    style.caption(first_of_last_row, f"{means}; {count_text(data['n'])} lists per model")
    return panels[0] if len(panels) == 1 else panels


def _line(ax: Axes, rows: pd.DataFrame, look: style.ModelLook, faint: bool) -> Any:
    """Draw the line of one model, with its band if it has one."""
    width, alpha = (1.1, 0.75) if faint else (2.0, 1.0)
    (line,) = ax.plot(
        rows["k"], rows["value"], color=look.colour, marker=look.marker, linestyle=look.line,
        linewidth=width, markersize=5, alpha=alpha,
    )  # fmt: skip
    banded = rows[rows["band"]]
    if len(banded):
        ax.fill_between(banded["k"], banded["ci_low"], banded["ci_high"], color=look.colour, alpha=0.15, linewidth=0)
    return line


# ------------------------------------------------------------------------------------------ trade-offs


def _tradeoff_data(result: Any, x: str = "coverage@10", y: str = "ndcg@10") -> pd.DataFrame:
    """Return the frame that `tradeoff` draws: `model`, `x`, `x_low`, `x_high`, `y`, `y_low`, `y_high`, `pareto`, `n`.

    {parameters_returns}
        One row per model; `pareto` tells that no other model is at least as good on both metrics and better on one.
    """
    table = summary_of(result)
    known = list(dict.fromkeys(table["column"]))
    for argument, name in (("x", x), ("y", y)):
        if name not in known:
            raise OptionError(f"{argument}={name!r} is not in the summary; it has {known}{closest(name, known)}")
    sides = []
    for name, axis in ((x, "x"), (y, "y")):
        part = table[table["column"] == name].set_index("model")[["value", "ci_low", "ci_high", "n"]]
        sides.append(part.set_axis([axis, f"{axis}_low", f"{axis}_high", f"n_{axis}"], axis=1))
    data = sides[0].join(sides[1], how="inner").dropna(subset=["x", "y"]).reset_index()
    data["pareto"] = _not_dominated(
        _upward(data["x"], direction_word(result, x)), _upward(data["y"], direction_word(result, y))
    )
    data["n"] = data["n_y"]
    return data[["model", "x", "x_low", "x_high", "y", "y_low", "y_high", "pareto", "n"]]


def _upward(values: pd.Series, better: str) -> np.ndarray:
    """Return the values turned so that more is better; a metric without a direction is left as it is."""
    signed = values.to_numpy(dtype=np.float64)
    return -signed if better == "smaller" else signed


def _not_dominated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which points no other point beats, by being at least as good on both axes and better on one."""
    as_good = (x[None, :] >= x[:, None]) & (y[None, :] >= y[:, None])
    better = (x[None, :] > x[:, None]) | (y[None, :] > y[:, None])
    return np.asarray(~(as_good & better).any(axis=1))


@style.drawn_from(_tradeoff_data)
def tradeoff(result: Any, x: str = "coverage@10", y: str = "ndcg@10", *, ax: Axes | None = None) -> Axes:
    """Draw two metrics against each other, one point per model, with the line of models that no other beats on both.

    Parameters
    ----------
    result : Evaluation or DataFrame
        An evaluation of several models, or its summary.
    x, y : str, default "coverage@10" and "ndcg@10"
        Columns as the summary names them, such as "ndcg@10".
    {ax_returns_raises}
    OptionError
        If a metric is not in the summary.

    Notes
    -----
    The line counts differences of any size; whether a difference is real is the question of `rd.compare_models`.
    A metric without a direction, such as popularity, counts as better when it is larger.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, ["ndcg", "coverage"], by="model", items=shop.items)
    >>> rd.plot.tradeoff.data(result)[["model", "x", "y", "pareto"]].round(3)
            model      x      y  pareto
    0         knn  0.804  0.185    True
    1  popularity  0.040  0.139   False
    2      random  1.000  0.011    True
    >>> ax = rd.plot.tradeoff(result)
    """
    data = _tradeoff_data(result, x, y)
    ax = style.new_axes(ax)
    front = data[data["pareto"]].sort_values("x")
    (line,) = ax.plot(front["x"], front["y"], color=style.MUTED, linestyle="--", linewidth=1, zorder=1)
    handles = []
    for row, look in zip(data.itertuples(index=False), style.looks(data["model"].tolist()).values(), strict=True):
        handles.append(_draw_point(ax, row, look))
    ax.margins(0.12)
    style.legend(ax, [*handles, line], [*data["model"], "not beaten on both"])
    style.axis_names(
        ax, x + DIRECTION_ARROWS[direction_word(result, x)], y + DIRECTION_ARROWS[direction_word(result, y)]
    )
    style.title(ax, f"{y} against {x}")
    style.caption(ax, f"bars: {interval_percent(result)} where the metric has one; {count_text(data['n'])} lists; "
                      "dashed: models that no other beats on both metrics")  # fmt: skip
    return ax


def _draw_point(ax: Axes, row: Any, look: style.ModelLook) -> Any:
    """Draw one model with the bars of its intervals."""
    if not np.isnan(row.x_low):
        ax.hlines(row.y, row.x_low, row.x_high, color=look.colour, linewidth=1.4)
    if not np.isnan(row.y_low):
        ax.vlines(row.x, row.y_low, row.y_high, color=look.colour, linewidth=1.4)
    (point,) = ax.plot([row.x], [row.y], color=look.colour, marker=look.marker, markersize=8, linestyle="none")
    return point
