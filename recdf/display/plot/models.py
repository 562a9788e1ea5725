"""Pictures of a summary: metrics over k or over time, and trade-offs of two metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import OptionError, closest
from ..given_tables import count_text, direction_word, interval_percent, summary_of
from ..leaderboard_values import floors_of
from . import space, style
from .style import Axes, best_first

__all__ = ["curve", "tradeoff"]

MANY_MODELS = 4  # beyond these, bands of all models would hide one another
DIRECTION_ARROWS = {"larger": " ↑", "smaller": " ↓", "": ""}
DIRECTION = {"larger": "higher is better", "smaller": "lower is better", "": ""}


# -- curves over k


def _curve_data(
    result: Any,
    metrics: str | Sequence[str] | None = None,
    *,
    x: str = "k",
    highlight: str | Sequence[str] | None = None,
    floors: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return what `curve` draws: `model`, `metric`, `better`, `k`, `value`, `ci_low`, `ci_high`,
    `n`, `band`.

    {parameters_returns}
        One row per model, metric and k; `band` tells whether the interval of this model is drawn.
        With another x, its values stand in a column `x` instead of `k`, and `metric` is the column,
        such as "ndcg@10".
    """
    table = summary_of(result, None if x == "k" else x)
    if x == "k":
        table = table[table["k"].notna()]
        depths = table.groupby("metric", sort=False)["k"].nunique()
        names = _wanted(
            metrics,
            [str(name) for name in depths.index[depths > 1]],
            "with values at two k or more",
        )
    else:
        table["metric"] = table["column"]
        names = _wanted(metrics, list(dict.fromkeys(table["column"])), "of the result")
    models = list(dict.fromkeys(table["model"]))
    table = table[table["metric"].isin(names)]
    table["metric"] = pd.Categorical(table["metric"], names, ordered=True)
    places = "k" if x == "k" else "x"
    table = table.sort_values(["metric", places], kind="stable")
    table = table.astype({"metric": "str"} | ({"k": "int64"} if x == "k" else {})).reset_index(
        drop=True
    )
    banded = _banded(table, places, models, highlight)
    table["band"] = table["model"].isin(banded) & table["ci_low"].notna()
    return table[["model", "metric", "better", places, "value", "ci_low", "ci_high", "n", "band"]]


def _wanted(metrics: str | Sequence[str] | None, known: list[str], what: str) -> list[str]:
    """Return the names of the metrics to draw; by default all that are known."""
    names = [metrics] if isinstance(metrics, str) else list(metrics or known)
    if not names:
        raise OptionError(
            f"the result has no metric {what}; evaluate with ⟦+k=[5, 10, 20]⟧, for instance"
        )
    for name in names:
        if name not in known:
            raise OptionError(
                f"metrics names {name!r}; metrics {what} are {known}{closest(name, known)}"
            )
    return list(dict.fromkeys(names))


def _at_the_end(table: pd.DataFrame, places: str) -> tuple[pd.Series, str]:
    """Return the values of the first metric at the largest k or at the last time, by model, and its
    direction."""
    first = table[table["metric"] == table["metric"].iloc[0]]
    last = first[first[places] == first[places].iloc[-1]]
    return last.set_index("model")["value"], str(first["better"].iloc[0])


def _banded(table: pd.DataFrame, places: str, models: list[str], highlight: Any) -> list[str]:
    """Return the models whose intervals are drawn: the highlighted ones and the best one, or all if
    they are few."""
    marked = style.highlighted(highlight, models)
    if (len(models) <= MANY_MODELS and not marked) or not len(table):
        return models
    return [*marked, *best_first(*_at_the_end(table, places))[:1]]


@style.drawn_from(_curve_data)
def curve(
    result: Any,
    metrics: str | Sequence[str] | None = None,
    *,
    x: str = "k",
    highlight: str | Sequence[str] | None = None,
    floors: pd.DataFrame | None = None,
    ax: Any = None,
) -> Any:
    """Draw metrics over k, or over time, one line per model, one panel per metric.

    Parameters
    ----------
    result : Evaluation or DataFrame
        An evaluation at several k, or its summary.
    metrics : str or list of str, optional
        Names without a k, such as "ndcg". Default: every metric that has values at two k or more.
        With another `x`: columns such as "ndcg@10"; default: all of them.
    x : str, default "k"
        A column of `by` instead of k, such as "week" of an evaluation with `by=["model", "week"]`,
        which `rd.logs.time_slice` makes.
    highlight : str or list of str, optional
        Models whose intervals are drawn and whose lines are thick, such as the baseline. The model
        that is best by the first metric at the largest k, or the last time, is always among them.
        Default: all models, if they are at most four. Beyond eight models, only these and the five
        best have a colour; the others are grey.
    floors : DataFrame, optional
        What `rd.audit` returned at the same k, or its table `floors`: chance and popularity become
        dashed lines.
    {axes_returns_raises}
    ColumnError, OptionError
        If a metric, a model or the column of `x` is unknown, or no metric has several k.

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
    data = _curve_data(result, metrics, x=x, highlight=highlight)
    places = "k" if x == "k" else "x"
    names = list(dict.fromkeys(data["metric"]))
    panels = style.new_grid(ax, len(names), size=(3.6, 3.1))
    count = data["model"].nunique()
    few_bands = bool(data["band"].any()) and data.loc[data["band"], "model"].nunique() < count
    first = best_first(*_at_the_end(data, places), highlight)
    for panel, (metric, part) in zip(panels, data.groupby("metric", sort=False), strict=True):
        at = _axis_places(part[places])
        parts = style.by_model(part, first)
        handles = [
            _line(
                panel,
                rows.assign(at=at.loc[rows.index]),
                look,
                bool(few_bands and not rows["band"].any()),
                [f"{model}, {metric}@{k}" if x == "k" else f"{model}, {k}" for k in rows[places]],
            )
            for model, rows, look in parts
        ]
        if floors is not None and x == "k":
            _levels_over_k(panel, floors_of(floors), str(metric))
        _place_ticks(panel, at, part[places])
        if part["value"].min() >= 0:
            panel.set_ylim(bottom=0)
        style.title(panel, f"{metric}@k" if x == "k" else str(metric))
        style.axis_names(
            panel, "k, items per list" if x == "k" else x, DIRECTION[part["better"].iloc[0]]
        )
    style.shared_legend(list(panels), *style.named(parts, handles))
    bands = "bands" if not few_bands else "bands (of the best and the highlighted models)"
    alone = "one number for all lists, without interval"
    means = f"{bands}: {interval_percent(result)}" if data["band"].any() else alone
    first_of_last_row = panels[3 * ((len(panels) - 1) // 3)]
    lists = f"{count_text(data['n'])} lists per " + ("model" if x == "k" else f"model and {x}")
    style.caption(first_of_last_row, f"{means}; {lists}", len(panels))
    return panels[0] if len(panels) == 1 else panels


def _levels_over_k(ax: Axes, floors: pd.DataFrame, metric: str) -> None:
    """Draw chance and popularity of an audit as light dashed lines with their names."""
    names = floors["metric"].str.rpartition("@")
    own = floors.assign(k=names[2])[names[0] == metric].drop_duplicates("k")
    for level in ("chance", "popularity"):
        if level in own and own[level].notna().any():
            ax.plot(
                own["k"].astype(int),
                own[level],
                color="0.6",
                linestyle="--",
                linewidth=1,
                label=f"_{level}",
            )
            at = own["k"].astype(int).iloc[-1], own[level].iloc[-1]
            ax.annotate(
                level, at, xytext=(0, 3), textcoords="offset points", ha="right", color="0.45"
            )


def _axis_places(values: pd.Series) -> pd.Series:
    """Return where values stand on an axis: numbers and dates at themselves, other labels one after
    another."""
    if pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_datetime64_any_dtype(
        values.dtype
    ):
        return values
    return pd.Series(pd.factorize(values.map(str))[0], index=values.index)


def _place_ticks(ax: Axes, at: pd.Series, values: pd.Series) -> None:
    """Name the places of an axis, as many as have room."""
    if pd.api.types.is_datetime64_any_dtype(at.dtype):
        space.dates(ax)
        return
    pairs = dict(zip(at, values.map(str), strict=True))
    style.tick_numbers(ax.xaxis, sorted(pairs), [pairs[place] for place in sorted(pairs)])


def _line(
    ax: Axes, rows: pd.DataFrame, look: style.ModelLook, faint: bool, names: Sequence[str]
) -> Any:
    """Draw the line of one model, with its band if it has one."""
    width, alpha = (1.1, 0.75) if faint else (2.0, 1.0)
    (line,) = ax.plot(
        rows["at"],
        rows["value"],
        color=look.colour,
        marker=look.marker,
        linestyle=look.line,
        linewidth=width,
        markersize=5,
        alpha=alpha,
    )
    bounds = zip(names, rows["value"], rows["ci_low"], rows["ci_high"], strict=True)
    style.says(line, [style.spoken(*one) for one in bounds], str(rows["model"].iloc[0]))
    banded = rows[rows["band"]]
    if len(banded):
        ax.fill_between(
            banded["at"],
            banded["ci_low"],
            banded["ci_high"],
            color=look.colour,
            alpha=0.15,
            linewidth=0,
        )
    return line


# ------------------------------------------------------------------------------------------
# trade-offs


def _tradeoff_data(result: Any, x: str = "coverage@10", y: str = "ndcg@10") -> pd.DataFrame:
    """Return the frame that `tradeoff` draws: `model`, `x`, `x_low`, `x_high`, `y`, `y_low`,
    `y_high`, `pareto`, `n`.

    {parameters_returns}
        One row per model; `pareto` tells that no other model is at least as good on both metrics
        and better on one.
    """
    table = summary_of(result)
    known = list(dict.fromkeys(table["column"]))
    for argument, name in (("x", x), ("y", y)):
        if name not in known:
            raise OptionError(
                f"⟦{argument}={name!r}⟧ is not in the summary; it has {known}{closest(name, known)}"
            )
    sides = []
    for name, axis in ((x, "x"), (y, "y")):
        part = table[table["column"] == name].set_index("model")[
            ["value", "ci_low", "ci_high", "n"]
        ]
        sides.append(part.set_axis([axis, f"{axis}_low", f"{axis}_high", f"n_{axis}"], axis=1))
    data = sides[0].join(sides[1], how="inner").dropna(subset=["x", "y"]).reset_index()
    data["pareto"] = _not_dominated(
        _upward(data["x"], direction_word(result, x)), _upward(data["y"], direction_word(result, y))
    )
    data["n"] = data["n_y"]
    return data[["model", "x", "x_low", "x_high", "y", "y_low", "y_high", "pareto", "n"]]


def _upward(values: pd.Series, better: str) -> np.ndarray:
    """Return the values turned so that more is better; a metric without a direction is left as it
    is."""
    signed = values.to_numpy(dtype=np.float64)
    return -signed if better == "smaller" else signed


def _not_dominated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which points no other point beats, by being at least as good on both axes and better
    on one."""
    as_good = (x[None, :] >= x[:, None]) & (y[None, :] >= y[:, None])
    better = (x[None, :] > x[:, None]) | (y[None, :] > y[:, None])
    return np.asarray(~(as_good & better).any(axis=1))


@style.drawn_from(_tradeoff_data)
def tradeoff(
    result: Any,
    x: str = "coverage@10",
    y: str = "ndcg@10",
    *,
    highlight: str | Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw two metrics against each other, one point per model, with the line of models that no
    other beats on both.

    Parameters
    ----------
    result : Evaluation or DataFrame
        An evaluation of several models, or its summary.
    x, y : str, default "coverage@10" and "ndcg@10"
        Columns as the summary names them, such as "ndcg@10".
    {highlight}
    {ax_returns_raises}
    OptionError
        If a metric is not in the summary.

    Notes
    -----
    The line counts differences of any size; whether a difference is real is the question of
    `rd.compare_models`. A metric without a direction, such as popularity, counts as better when it
    is larger.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(
    ...     shop.true, shop.pred, ["ndcg", "coverage"], by="model", items=shop.items
    ... )
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
    muted = space.tone(ax, space.MUTED)
    (line,) = ax.plot(front["x"], front["y"], color=muted, linestyle="--", linewidth=1, zorder=1)
    parts = style.by_model(
        data, best_first(data.set_index("model")["y"], direction_word(result, y), highlight)
    )
    handles, names = style.named(
        parts, [_draw_point(ax, rows.iloc[0], look, (x, y)) for _, rows, look in parts]
    )
    ax.margins(0.12)
    style.legend(ax, [*handles, line], [*names, "not beaten on both"])
    up = {name: DIRECTION_ARROWS[direction_word(result, name)] for name in (x, y)}
    style.axis_names(ax, x + up[x], y + up[y])
    style.title(ax, f"{y} against {x}")
    style.caption(
        ax,
        f"bars: {interval_percent(result)} where the metric has one; {count_text(data['n'])} "
        "lists; dashed: models that no other beats on both metrics",
    )
    return ax


def _draw_point(ax: Axes, row: pd.Series, look: style.ModelLook, axes: tuple[str, str]) -> Any:
    """Draw one model with the bars of its intervals."""
    if not np.isnan(row["x_low"]) and look is not style.REST:
        ax.hlines(row["y"], row["x_low"], row["x_high"], color=look.colour, linewidth=1.4)
    if not np.isnan(row["y_low"]) and look is not style.REST:
        ax.vlines(row["x"], row["y_low"], row["y_high"], color=look.colour, linewidth=1.4)
    (point,) = ax.plot(
        [row["x"]],
        [row["y"]],
        color=look.colour,
        marker=look.marker,
        markersize=8,
        linestyle="none",
    )
    both = (
        style.spoken(name, *row[[at, f"{at}_low", f"{at}_high"]])
        for at, name in zip("xy", axes, strict=True)
    )
    style.says(point, [f"{row['model']}: {'; '.join(both)}"])
    return point
