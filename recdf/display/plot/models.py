"""Pictures of a result: metrics over k or over time, trade-offs of two metrics, and the users who
gain, lose or get nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import DataError, OptionError, closest
from ...evaluation.result import Evaluation
from ...evaluation.value_moments import CONFIDENCE
from ...judge.choices import a_number, check_value
from ...judge.per_user_columns import unit_of
from ...tables.cells import form_of, number, short_names
from ..given_tables import (
    FloatArray,
    check_model,
    count_text,
    direction_word,
    interval_percent,
    model_values,
    rows_by,
    summary_of,
)
from ..leaderboard_values import floors_of
from . import style
from .style import Axes, best_first

__all__ = ["curve", "performance", "tradeoff", "users", "winners"]

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
    few_bands = data.groupby("model")["band"].any().nunique() > 1
    first = best_first(*_at_the_end(data, places), highlight)
    at_k, frames = "@" if x == "k" else ", ", list(map(style.Frame, panels))
    for frame, (metric, part) in zip(frames, data.groupby("metric", sort=False), strict=True):
        part = part.assign(at=_axis_places(part[places]))

        def words(model: str, rows: pd.DataFrame, metric: str = str(metric)) -> list[str]:
            name = f"{model}, {metric}{at_k}" if x == "k" else f"{model}{at_k}"
            ends = zip(rows[places], rows["value"], rows["ci_low"], rows["ci_high"], strict=True)
            return [style.spoken(f"{name}{place}", *values) for place, *values in ends]

        frame.lines(part, "at", "value", first, words=words)
        if floors is not None and x == "k":
            _levels_over_k(frame.ax, floors_of(floors), str(metric))
        _place_ticks(frame.ax, part["at"], part[places])
        if part["value"].min() >= 0:
            frame.ax.set_ylim(bottom=0)
        style.title(frame.ax, f"{metric}@k" if x == "k" else str(metric))
        style.axis_names(
            frame.ax, "k, items per list" if x == "k" else x, DIRECTION[part["better"].iloc[0]]
        )
    style.shared_legend(list(panels), *frames[-1].legend())
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
        style.dates(ax)
        return
    pairs = dict(zip(at, values.map(str), strict=True))
    style.tick_numbers(ax.xaxis, sorted(pairs), [pairs[place] for place in sorted(pairs)])


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
    frame, front = style.Frame(ax), data[data["pareto"]].sort_values("x")
    best = best_first(data.set_index("model")["y"], direction_word(result, y), highlight)
    for model, rows, look in style.by_model(data, best):
        row = rows.iloc[0]
        both = [row[[at, f"{at}_low", f"{at}_high"]] for at in "xy"]
        if look is not style.REST:
            across, up = (np.abs(one.to_numpy()[1:, None] - one.iloc[0]) for one in both)
            bars: dict[str, Any] = {"ecolor": look.colour, "elinewidth": 1.4, "fmt": "none"}
            frame.ax.errorbar(row["x"], row["y"], up, across, **bars)
        said = "; ".join(style.spoken(name, *one) for name, one in zip((x, y), both, strict=True))
        points: dict[str, Any] = {"name": model, "markersize": 8, "linestyle": "none"}
        frame.line(rows["x"], rows["y"], look, [f"{model}: {said}"], **points)
    muted = style.ModelLook(style.tone(frame.ax, style.MUTED), "", "--")
    what = "not beaten on both"
    frame.line(front["x"], front["y"], muted, [what], name=what, linewidth=1, zorder=1)
    frame.ax.margins(0.12)
    up = {name: DIRECTION_ARROWS[direction_word(result, name)] for name in (x, y)}
    caption = (
        f"bars: {interval_percent(result)} where the metric has one; {count_text(data['n'])} "
        "lists; dashed: models that no other beats on both metrics"
    )
    return frame.finish(f"{y} against {x}", x + up[x], y + up[y], caption)


# ------------------------------------------------------------------------------------------
# users

USER_POINTS = 200  # of a curve of shares; a million users need no more ink than these
BANDS_UP_TO = 4  # models whose bands do not hide one another
TIED_BELOW = 1e-12  # as in compare_models


# ------------------------------------------------------------------------------------------
# distribution


def _users_data(result: Any, metric: str, *, model_col: str | None = None) -> pd.DataFrame:
    """Return the frame that `users` draws: `model`, `value`, `share`, `n`.

    {parameters_returns}
        `share` of the lists of a model have at most `value`; the first row of a model is its
        smallest value.
    """
    parts = []
    for model, values in model_values(result, metric, model_col).by_model.items():
        ordered = np.sort(values[~np.isnan(values)])
        if not len(ordered):
            continue
        steps = _steps(ordered)
        below = np.searchsorted(ordered, steps, side="right") / len(ordered)
        parts.append(
            pd.DataFrame({"model": model, "value": steps, "share": below, "n": len(ordered)})
        )
    if not parts:
        raise DataError(f"per_user[{metric!r}] has no value for any list; there is nothing to draw")
    return pd.concat(parts, ignore_index=True)


@style.drawn_from(_users_data)
def users(
    result: Any,
    metric: str,
    *,
    model_col: str | None = None,
    highlight: str | Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of users who get at most a value, by model: who gets nothing, and how much the
    others get.

    Parameters
    ----------
    result : Evaluation or DataFrame
        An evaluation, or its `per_user`.
    metric : str
        Column of `per_user`, such as "ndcg@10".
    model_col : str, optional
        Column that tells the models of a frame apart. Default: the `by` columns of the evaluation.
    {highlight}
    {ax_returns_raises}
    ColumnError, DataError
        If the column is missing or has no value.

    Notes
    -----
    The lower curve is the better one where more of the metric is better: fewer users stay below
    each value. The legend says how many get exactly nothing.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, "hits@10", by="model")
    >>> rd.plot.users.data(result, "hits@10").head(3).round(3)
      model  value  share     n
    0   knn    0.0  0.555  1537
    1   knn    1.0  0.845  1537
    2   knn    2.0  0.949  1537
    >>> ax = rd.plot.users(result, "hits@10")
    """
    data = _users_data(result, metric, model_col=model_col)
    best = best_first(
        _model_means(result, metric, model_col), direction_word(result, metric), highlight
    )
    first = data.groupby("model", sort=False).first()
    at_zero = first["share"].where(first["value"] == 0, 0.0)
    nothing = {str(model): f"{100 * share:.3g} % at 0" for model, share in at_zero.items()}
    frame = style.Frame(ax)
    frame.lines(
        *(data, "value", "share", best),
        words=lambda model, rows: [f"{model}: {nothing[model]}"],
        step="post",
        markevery=[0],
    )
    frame.ax.set_ylim(0, 1.02)
    caption = (
        f"all users with a defined {metric}; {count_text(data['n'])} per model; the mark is the "
        "share at the smallest value"
    )
    across = "share of users with at most this value"
    return frame.finish("Who gets nothing", metric, across, caption, shares="y", suffix=nothing)


# ------------------------------------------------------------------------------------------
# performance profiles


def _performance_data(result: Any, metric: str, *, model_col: str | None = None) -> pd.DataFrame:
    """Return what `performance` draws: `model`, `value`, `share`, `ci_low`, `ci_high`, `n`.

    {parameters_returns}
        `share` of the lists of a model have at least `value`, or at most, where smaller is better.
    """
    found = model_values(result, metric, model_col).by_model
    smaller = direction_word(result, metric) == "smaller"
    parts = []
    for model, values in found.items():
        defined = ~np.isnan(values)
        ordered = np.sort(values[defined])
        if not len(ordered):
            continue
        steps = _steps(ordered)
        below = np.searchsorted(ordered, steps, side="right" if smaller else "left") / len(ordered)
        share = below if smaller else 1 - below
        # Dvoretzky, Kiefer and Wolfowitz: the whole curve stays within this distance of the true
        # one.
        reach = np.sqrt(
            np.log(2 / (1 - CONFIDENCE)) / (2 * _effective_lists(result, model, defined))
        )
        parts.append(
            pd.DataFrame(
                {
                    "model": model,
                    "value": steps,
                    "share": share,
                    "ci_low": np.clip(share - reach, 0, 1),
                    "ci_high": np.clip(share + reach, 0, 1),
                    "n": len(ordered),
                }
            )
        )
    if not parts:
        raise DataError(f"per_user[{metric!r}] has no value for any list; there is nothing to draw")
    return pd.concat(parts, ignore_index=True)


def _steps(ordered: FloatArray) -> FloatArray:
    """Return the distinct values of a sorted array, at most `USER_POINTS` of them."""
    steps = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    places = np.linspace(0, len(steps) - 1, min(USER_POINTS, len(steps))).astype(np.int64)
    return np.asarray(steps[places])


def _effective_lists(result: Any, model: str, defined: np.ndarray) -> float:
    """Return how many independent lists a model has: (Σ m)² / Σ m² for users with m lists each."""
    if not isinstance(result, Evaluation):
        return float(defined.sum())
    key = list(result.spec["user_col"])
    unit = list(result.spec.get("unit_col", unit_of(key)))
    if unit == key:
        return float(defined.sum())
    own = rows_by(result.per_user, list(result.spec["by"]))[model]
    lists = result.per_user[unit].take(own[defined]).value_counts().to_numpy(np.float64)
    return float(lists.sum() ** 2 / (lists**2).sum())


@style.drawn_from(_performance_data)
def performance(
    result: Any,
    metric: str,
    *,
    model_col: str | None = None,
    highlight: str | Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of lists that reach a value, one line per model: a performance profile with
    its band.

    Formula: share(x) = |{lists: value ≥ x}| / n, with the band ±√(ln(2/0.05) / 2n), in which the
    whole curve lies in 95 % of all samples. Where users have several lists, n is their effective
    number.

    Parameters
    ----------
    result : Evaluation or DataFrame
        An evaluation, or its `per_user`, whose rows then count as independent.
    metric : str
        Column of `per_user`, such as "ndcg@10".
    model_col : str, optional
        Column that tells the models of a frame apart. Default: the `by` columns of the evaluation.
    highlight : str or list of str, optional
        Models that keep their colour and their band where there are many. The five best by the mean
        keep their colour too; beyond four models, only the best and these have a band.
    {ax_returns_raises}
    ColumnError, DataError
        If the column is missing or has no value.

    Notes
    -----
    A model whose line is above another's everywhere is better for every threshold (it dominates).
    Lines that cross say that the mean hides a choice: few lists that are very good, or many that
    are fair. Where smaller values are better, the line is the share with at most a value.

    Source: Agarwal et al. (2021), Deep RL at the edge of the statistical precipice, section 4.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, "hits@10", by="model")
    >>> rd.plot.performance.data(result, "hits@10").head(3).round(3)
      model  value  share  ci_low  ci_high     n
    0   knn    0.0  1.000   0.965    1.000  1537
    1   knn    1.0  0.445   0.410    0.480  1537
    2   knn    2.0  0.155   0.120    0.189  1537
    >>> ax = rd.plot.performance(result, "hits@10")
    """
    data = _performance_data(result, metric, model_col=model_col)
    smaller = direction_word(result, metric) == "smaller"
    first = best_first(
        _model_means(result, metric, model_col), "smaller" if smaller else "larger", highlight
    )
    marked = first[: len(first) - style.BEST + 1]
    data["band"] = data["model"].isin(marked) | (data["model"].nunique() <= BANDS_UP_TO)
    frame = style.Frame(ax)
    frame.lines(
        *(data, "value", "share", first),
        words=lambda model, _: [model],
        step="post" if smaller else "pre",
        every=6,
    )
    frame.ax.set_ylim(0, 1.02)
    across = f"share of lists with at {'most' if smaller else 'least'} this value"
    caption = f"bands: 95 %, for the whole curve; {count_text(data['n'])} lists per model"
    name = f"Lists that reach a value of {metric}"
    return frame.finish(name, metric, across, caption, shares="y")


def _model_means(result: Any, metric: str, model_col: str | None) -> pd.Series:
    """Return the mean of every model that has a value, which says what models are the best."""
    found = model_values(result, metric, model_col).by_model
    return pd.Series(
        {model: np.nanmean(values) for model, values in found.items() if not np.isnan(values).all()}
    )


# -- gains and losses


def _winners_data(
    result: Any, metric: str, *, model: Any, baseline: Any, bins: int = 21
) -> pd.DataFrame:
    """Return the frame that `winners` draws: `low`, `high`, `side`, `n`.

    {parameters_returns}
        One row per bin of the difference model − baseline: `side` is "loses", "ties" (one row, from
        0 to 0) or "gains". The counts add up to the users with a value for both.
    """
    check_value("bins", bins, a_number(2, whole=True))
    difference = _differences(result, metric, model, baseline)
    tied = np.abs(difference) <= TIED_BELOW
    moved = difference[~tied]
    reach = float(np.abs(moved).max()) if len(moved) else 1.0
    half = max(bins // 2, 1)
    edges = np.linspace(0.0, reach, half + 1)
    gains, losses = (
        np.histogram(moved[moved > 0], edges)[0],
        np.histogram(-moved[moved < 0], edges)[0],
    )
    return pd.DataFrame(
        {
            "low": [*-edges[:0:-1], 0.0, *edges[:-1]],
            "high": [*-edges[-2::-1], 0.0, *edges[1:]],
            "side": ["loses"] * half + ["ties"] + ["gains"] * half,
            "n": [*losses[::-1], int(tied.sum()), *gains],
        }
    )


def _differences(result: Any, metric: str, model: Any, baseline: Any) -> FloatArray:
    """Return the difference of two models for every list that has a value for both.

    The rows of two models of one evaluation stand in the same order of lists, which is checked.
    """
    found = model_values(result, metric).by_model
    pair = [
        check_model(name, label, list(found))
        for name, label in (("model", model), ("baseline", baseline))
    ]
    if pair[0] == pair[1]:
        raise OptionError(f"model and baseline are both {pair[0]!r}; expected two models")
    lists = keys_of(result, pair)
    if len(found[pair[0]]) != len(found[pair[1]]) or not lists[pair[0]].equals(lists[pair[1]]):
        raise DataError(
            f"{pair[0]!r} and {pair[1]!r} were not evaluated on the same lists; evaluate them in "
            "one call with ⟦+by=⟧"
        )
    difference = found[pair[0]] - found[pair[1]]
    return difference[~np.isnan(difference)]


def keys_of(result: Any, models: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return the list keys of some models, in the order of `per_user`."""
    keys, by = list(result.spec["user_col"]), list(result.spec["by"])
    if not by:
        raise OptionError(
            "the evaluation was made without ⟦by=⟧; evaluate with ⟦+by=⟧, so that there are models "
            "to compare"
        )
    of_model = rows_by(result.per_user, by)
    return {
        model: result.per_user[keys].take(of_model[model]).reset_index(drop=True)
        for model in models
    }


@style.drawn_from(_winners_data)
def winners(
    result: Any, metric: str, *, model: Any, baseline: Any, bins: int = 21, ax: Axes | None = None
) -> Axes:
    """Draw how many users gain and how many lose by a change of models, and by how much.

    Parameters
    ----------
    result : Evaluation
        An evaluation of both models.
    metric : str
        Column of `per_user`, such as "ndcg@10".
    model, baseline : label
        The models that are compared: the difference is model − baseline.
    bins : int, default 21
        Bars, half of them on each side of zero.
    {ax_returns_raises}
    ColumnError, OptionError, DataError
        If the column is missing, a model unknown, or the two were not evaluated on the same lists.

    Notes
    -----
    Users with the same value for both are counted in the caption and not drawn: they would hide all
    others.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
    >>> data = rd.plot.winners.data(result, "ndcg@10", model="knn", baseline="popularity")
    >>> data.groupby("side")["n"].sum().to_dict()
    {'gains': 536, 'loses': 280, 'ties': 721}
    >>> ax = rd.plot.winners(result, "ndcg@10", model="knn", baseline="popularity")
    """
    data = _winners_data(result, metric, model=model, baseline=baseline, bins=bins)
    frame, totals = style.Frame(ax), data.groupby("side")["n"].sum()
    for side, colour, hatch in (("gains", style.BETTER, ""), ("loses", style.WORSE, "//")):
        rows, word = data[data["side"] == side], "gain" if side == "gains" else "lose"
        bars = frame.ax.bar(
            rows["low"],
            rows["n"],
            width=rows["high"] - rows["low"],
            align="edge",
            color=colour,
            edgecolor=style.tone(frame.ax, 0),
            linewidth=0.8,
            hatch=hatch,
        )
        for bar, low, high, n in zip(bars, rows["low"], rows["high"], rows["n"], strict=True):
            ends = sorted(map(abs, (low, high)))
            span = " to ".join(number(end, form_of(*ends)) for end in ends)
            style.says(bar, [f"{n:,} users {word} {span}"])
        frame.entries.append((bars, f"{totals[side]:,} users {word}", None))
    frame.ax.axvline(0, color=style.tone(frame.ax), linewidth=1)
    one, other = short_names([model, baseline], style.TICK_NAME_LENGTH)
    across = f"difference of {metric} per user: {one} − {other}"
    caption = (
        f"n = {totals.sum():,} users with a value for both; {totals['ties']:,} with the same value "
        "are not drawn"
    )
    return frame.finish("Who gains and who loses", across, "users", caption, beside=False)
