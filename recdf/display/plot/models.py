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
from ...judge.per_user_columns import unit_of
from ...tables.cells import doing, form_of, number, short_names
from ..given_tables import (
    check_model,
    count_text,
    direction_word,
    interval_percent,
    model_values,
    summary_of,
)
from ..leaderboard_values import floors_of
from ..pairs import model_rows
from . import style
from .picture import drawn_from
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
    places, what = ("k", "with values at two k or more") if x == "k" else ("x", "of the result")
    if x == "k":
        table = table[table["k"].notna()].astype({"k": "int64"})
        known = table["metric"][table.groupby("metric")["k"].transform("nunique") > 1]
    else:
        known = table["metric"] = table["column"]
    names, models = _wanted(metrics, known.unique().tolist(), what), table["model"].unique()
    table = table[table["metric"].isin(names)].sort_values(places, kind="stable")
    table = table.sort_values(
        "metric", key=lambda own: own.map(names.index), kind="stable", ignore_index=True
    )
    banded = style.highlighted(highlight, models.tolist())
    if len(models) > MANY_MODELS or banded:
        banded += best_first(*_at_the_end(table, places))[:1]
    table["band"] = table["ci_low"].notna() & table["model"].isin(banded or models)
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


@drawn_from(_curve_data)
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
    places, per = ("k", "model") if x == "k" else ("x", f"model and {x}")
    parts = list(data.groupby("metric", sort=False))
    panels = style.new_grid(ax, len(parts))
    first = best_first(*_at_the_end(data, places), highlight)
    frames = list(map(style.Frame, panels))
    for frame, (metric, part) in zip(frames, parts, strict=True):
        named = f"{metric}@k" if x == "k" else str(metric)
        part = part.assign(at=_axis_places(part[places]))

        def words(model: str, rows: pd.DataFrame, named: str = named) -> list[str]:
            name = f"{model}, {named[:-1]}" if x == "k" else f"{model}, "
            ends = rows[[places, "value", "ci_low", "ci_high"]].itertuples(index=False)
            return [style.spoken(f"{name}{place}", *values) for place, *values in ends]

        frame.lines(part, "at", "value", first, words=words)
        if floors is not None and x == "k":
            _levels_over_k(frame.ax, floors_of(floors), str(metric))
        _place_ticks(frame.ax, part["at"], part[places])
        if part["value"].min() >= 0:
            frame.ax.set_ylim(bottom=0)
        style.title(frame.ax, named)
        below = "k, items per list" if x == "k" else x
        style.axis_names(frame.ax, below, DIRECTION[part["better"].iloc[0]])
    style.legend(list(panels), *frames[-1].legend())
    some = data.groupby("model")["band"].any().nunique() > 1
    bands = f"bands{' (of the best and the highlighted models)' * some}: {interval_percent(result)}"
    means = bands if data["band"].any() else "one number for all lists, without interval"
    first_of_last_row = panels[3 * ((len(panels) - 1) // 3)]
    said = f"{means}; {count_text(data['n'], 'list')} per {per}"
    style.caption(first_of_last_row, said, len(panels))
    return panels[0] if len(panels) == 1 else panels


def _levels_over_k(ax: Axes, floors: pd.DataFrame, metric: str) -> None:
    """Draw chance and popularity of an audit as light dashed lines with their names."""
    names = floors["metric"].str.rpartition("@")
    own = floors.assign(k=names[2].where(names[1] != "", "0").astype(int))
    own = own[names[0] == metric].drop_duplicates("k")
    for level in ("chance", "popularity"):
        if own[level].notna().any():
            look: Any = {"color": "0.6", "linestyle": "--", "linewidth": 1, "label": f"_{level}"}
            ax.plot(own["k"], own[level], **look)
            at = own["k"].iloc[-1], own[level].iloc[-1]
            where: Any = {"xytext": (0, 3), "textcoords": "offset points", "ha": "right"}
            ax.annotate(level, at, color="0.45", **where)


def _axis_places(values: pd.Series) -> pd.Series:
    """Return where values stand on an axis: numbers and dates at themselves, other labels one after
    another."""
    if values.dtype.kind in "iufM":
        return values
    return pd.Series(pd.factorize(values.map(str))[0], index=values.index)


def _place_ticks(ax: Axes, at: pd.Series, values: pd.Series) -> None:
    """Name the places of an axis, as many as have room."""
    if at.dtype.kind == "M":
        style.dates(ax)
        return
    pairs = sorted(dict(zip(at, values.map(str), strict=True)).items())
    style.tick_numbers(ax.xaxis, *zip(*pairs, strict=True))


# -- trade-offs


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
    parts, up = [], []
    for name, axis in ((x, "x"), (y, "y")):
        part = table[table["column"] == name].set_index("model")
        own = part[["value", "ci_low", "ci_high", "n"]]
        parts.append(own.set_axis([axis, f"{axis}_low", f"{axis}_high", f"n_{axis}"], axis=1))
    data = parts[0].join(parts[1], how="inner").dropna(subset=["x", "y"]).reset_index()
    # No other model is at least as good on both metrics and better on one.
    for name, axis in ((x, "x"), (y, "y")):
        sign = -1 if direction_word(result, name) == "smaller" else 1
        up.append(sign * data[axis].to_numpy(np.float64))
    one, other = np.array(up)[:, :, None], np.array(up)[:, None, :]
    beaten = np.all(other >= one, axis=0) & np.any(other > one, axis=0)
    data["pareto"] = ~np.any(beaten, axis=1)
    data["n"] = data["n_y"]
    return data[["model", "x", "x_low", "x_high", "y", "y_low", "y_high", "pareto", "n"]]


@drawn_from(_tradeoff_data)
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
    The line counts differences of any size; `rd.compare_models` says which are real. A metric
    without a direction, such as popularity, counts as better when it is larger.

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
        f"bars: {interval_percent(result)} where the metric has one; "
        f"{count_text(data['n'], 'list')}; dashed: models that no other beats on both metrics"
    )
    return frame.finish(f"{y} against {x}", x + up[x], y + up[y], caption)


# -- users

USER_POINTS, BARS = 200, 10  # of a curve of shares; on each side of zero
TIED_BELOW = 1e-12  # as in compare_models


def _users_data(result: Evaluation, metric: str) -> pd.DataFrame:
    """Return the frame that `users` draws: `model`, `value`, `share`, `n`.

    {parameters_returns}
        `share` of the lists of a model have at most `value`; the first row of a model is its
        smallest value.
    """
    return _value_shares(result, metric, least=False)


def _value_shares(result: Evaluation, metric: str, least: bool) -> pd.DataFrame:
    """Return the share of the lists of each model that have at least a value, or at most."""
    parts = []
    for model, values in model_values(result, metric).items():
        ordered = np.sort(values[~np.isnan(values)])
        steps = np.unique(ordered)
        steps = steps[np.linspace(0, len(steps) - 1, min(USER_POINTS, len(steps))).astype(int)]
        below = np.searchsorted(ordered, steps, side="left" if least else "right") / len(ordered)
        share = 1 - below if least else below
        parts.append(
            pd.DataFrame({"model": model, "value": steps, "share": share, "n": len(ordered)})
        )
    if not any(map(len, parts)):
        raise DataError(f"per_user[{metric!r}] has no value for any list; there is nothing to draw")
    return pd.concat(parts, ignore_index=True)


@drawn_from(_users_data)
def users(
    result: Evaluation,
    metric: str,
    *,
    highlight: str | Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of users who get at most a value, by model: who gets nothing, and how much the
    others get.

    Parameters
    ----------
    result : Evaluation
    metric : str
        Column of `per_user`, such as "ndcg@10".
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
    data = _users_data(result, metric)
    first = data.groupby("model", sort=False).first()
    at_zero = first["share"].where(first["value"] == 0, 0.0)
    nothing = {str(model): f"{100 * share:.3g} % at 0" for model, share in at_zero.items()}
    frame = style.Frame(ax)
    frame.lines(
        *(data, "value", "share", _best_means(result, metric, highlight)),
        words=lambda model, rows: [f"{model}: {nothing[model]}"],
        step="post",
        markevery=[0],
    )
    frame.ax.set_ylim(0, 1.02)
    caption = (
        f"all users with a defined {metric}; {count_text(data['n'], 'user')} per model; the mark "
        "is the share at the smallest value"
    )
    across = "share of users with at most this value"
    return frame.finish("Who gets nothing", metric, across, caption, shares="y", suffix=nothing)


def _performance_data(result: Evaluation, metric: str) -> pd.DataFrame:
    """Return what `performance` draws: `model`, `value`, `share`, `ci_low`, `ci_high`, `n`.

    {parameters_returns}
        `share` of the lists of a model have at least `value`, or at most, where smaller is better.
    """
    data = _value_shares(result, metric, least=direction_word(result, metric) != "smaller")
    n = data["model"].map(_effective_lists(result, metric))
    # Dvoretzky, Kiefer and Wolfowitz: the whole curve stays within this distance of the true one.
    reach = np.sqrt(np.log(2 / (1 - CONFIDENCE)) / (2 * n))
    data["ci_low"], data["ci_high"] = (
        (data["share"] + side * reach).clip(0, 1) for side in (-1, 1)
    )
    return data[["model", "value", "share", "ci_low", "ci_high", "n"]]


def _effective_lists(result: Evaluation, metric: str) -> dict[str, float]:
    """Return how many independent lists each model has: (Σ m)² / Σ m² for users with m lists."""
    key = list(result.spec["user_col"])
    unit, found = list(result.spec.get("unit_col", unit_of(key))), {}
    for model, rows in model_rows(result).items():
        own = result.per_user.take(rows)
        own = own[own[metric].notna()]
        lists = np.ones(len(own)) if unit == key else own[unit].value_counts().to_numpy(np.float64)
        found[model] = float(lists.sum() ** 2 / (lists**2).sum()) if len(lists) else 0.0
    return found


@drawn_from(_performance_data)
def performance(
    result: Evaluation,
    metric: str,
    *,
    highlight: str | Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of lists that reach a value, one line per model: a performance profile with
    its band.

    Formula: share(x) = |{lists: value ≥ x}| / n ± √(ln(2/0.05) / 2n), the band of the whole curve.
    Where users have several lists, n is their effective number.

    Parameters
    ----------
    result : Evaluation
        An evaluation.
    metric : str
        Column of `per_user`, such as "ndcg@10".
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
    are fair. Where smaller values are better, the line is the share with at most a value. Source:
    Agarwal et al. (2021), Deep RL at the edge of the statistical precipice, section 4.

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
    data, first = _performance_data(result, metric), _best_means(result, metric, highlight)
    marked = first[: len(first) - style.BEST + 1]
    data["band"] = data["model"].isin(marked) | (data["model"].nunique() <= MANY_MODELS)
    smaller, frame = direction_word(result, metric) == "smaller", style.Frame(ax)
    frame.lines(
        *(data, "value", "share", first),
        words=lambda model, _: [model],
        step="post" if smaller else "pre",
        every=6,
    )
    frame.ax.set_ylim(0, 1.02)
    across = f"share of lists with at {'most' if smaller else 'least'} this value"
    caption = f"bands: 95 %, for the whole curve; {count_text(data['n'], 'list')} per model"
    name = f"Lists that reach a value of {metric}"
    return frame.finish(name, metric, across, caption, shares="y")


def _best_means(result: Evaluation, metric: str, highlight: Any) -> list[str]:
    """Return the highlighted models, and those with the best means."""
    means = {
        model: pd.Series(values).mean() for model, values in model_values(result, metric).items()
    }
    return best_first(pd.Series(means), direction_word(result, metric), highlight)


# -- gains and losses


def _winners_data(result: Evaluation, metric: str, *, model: Any, baseline: Any) -> pd.DataFrame:
    """Return the frame that `winners` draws: `low`, `high`, `side`, `n`.

    {parameters_returns}
        One row per bin of the difference model − baseline: `side` is "loses", "ties" (one row, from
        0 to 0) or "gains". The counts add up to the users with a value for both.
    """
    found, rows = model_values(result, metric), model_rows(result)
    sides = {"model": model, "baseline": baseline}
    one, other = (check_model(name, label, list(found)) for name, label in sides.items())
    if one == other:
        raise OptionError(f"model and baseline are both {one!r}; expected two models")
    keys = result.per_user[list(result.spec["user_col"])]
    if (
        not keys.take(rows[one])
        .reset_index(drop=True)
        .equals(keys.take(rows[other]).reset_index(drop=True))
    ):
        raise DataError(
            f"{one!r} and {other!r} were not evaluated on the same lists; evaluate them in one "
            "call with ⟦+by=⟧"
        )
    moved = found[one] - found[other]
    moved = moved[~np.isnan(moved)]
    n, moved = len(moved), moved[np.abs(moved) > TIED_BELOW]
    edges = np.linspace(0.0, np.abs(moved).max(initial=0) or 1.0, BARS + 1)
    losses, gains = (np.histogram(moved[moved * sign > 0] * sign, edges)[0] for sign in (-1, 1))
    return pd.DataFrame(
        {
            "low": [*-edges[:0:-1], 0.0, *edges[:-1]],
            "high": [*-edges[-2::-1], 0.0, *edges[1:]],
            "side": ["loses"] * BARS + ["ties"] + ["gains"] * BARS,
            "n": [*losses[::-1], n - len(moved), *gains],
        }
    )


@drawn_from(_winners_data)
def winners(
    result: Evaluation, metric: str, *, model: Any, baseline: Any, ax: Axes | None = None
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
    {ax_returns_raises}
    ColumnError, OptionError, DataError
        If the column is missing, a model unknown, or the two were not evaluated on the same lists.

    Notes
    -----
    Users with the same value for both are in the caption alone.

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
    data = _winners_data(result, metric, model=model, baseline=baseline)
    frame, totals = style.Frame(ax), data.groupby("side")["n"].sum()
    for side, colour, hatch in (("gains", style.BETTER, ""), ("loses", style.WORSE, "//")):
        rows, verb = data[data["side"] == side], side.removesuffix("s")
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
            style.says(bar, [f"{doing(n, verb, 'user')} {span}"])
        frame.entries.append((bars, doing(totals[side], verb, "user"), None))
    frame.ax.axvline(0, color=style.tone(frame.ax), linewidth=1)
    one, other = short_names([model, baseline], style.TICK_NAME_LENGTH)
    across = f"difference of {metric} per user: {one} − {other}"
    caption = (
        f"{count_text([totals.sum()], 'user')} with a value for both; not drawn: "
        f"{totals['ties']:,} with the same value"
    )
    return frame.finish("Who gains and who loses", across, "users", caption, beside=False)
