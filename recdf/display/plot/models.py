"""Pictures of a result: metrics over k or over time, trade-offs of two metrics, the users who gain,
lose or get nothing, and values as shades, such as segments by models."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...errors import DataError, OptionError
from ...evaluation.result import Evaluation
from ...evaluation.value_moments import CONFIDENCE
from ...experiments.metric_bounds import rounding_of
from ...judge.choices import Columns, as_columns
from ...judge.per_user_columns import unit_of
from ...tables.cells import doing, estimated, form_of, number, short_names
from ..given_tables import (
    JOINED_BY,
    chosen,
    column_names,
    count_text,
    direction_word,
    interval_percent,
    labels,
    model_rows,
    model_values,
    need,
    picked,
    summary_of,
)
from ..kinds import HEAD_ARROWS
from .picture import (
    BETTER,
    MANY_MODELS,
    REST,
    TICK_NAME_LENGTH,
    WORSE,
    Axes,
    Frame,
    Picture,
    Steps,
    best_first,
    by_model,
    highlighted,
    new_frames,
    of_few_or_best,
    says,
    spoken,
)

DIRECTION = {"larger": "higher is better", "smaller": "lower is better", "": ""}


@Picture
def curve(
    result: Any,
    metrics: Columns | None = None,
    *,
    x: str = "k",
    highlight: Columns | None = None,
    ax: Any = None,
) -> Steps:
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
    {axes_returns_raises}
    ColumnError, OptionError
        If a metric, a model or the column of `x` is unknown, or no metric has several k.

    Data
    ----
    One row per model, metric and k: `model`, `metric`, `better`, `k`, `value`, `ci_low`, `ci_high`,
    `n`, and `band`, which tells whether the interval of this model is drawn. With another x, its
    values stand in a column `x` instead of `k`, and `metric` is the column, such as "ndcg@10".

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
    over_k = x == "k"
    place = "k" if over_k else "x"
    table = summary_of(result, None if over_k else x)
    if over_k:
        table = table[table["k"].notna()].astype({"k": "int64"})
        known = table["metric"][table.groupby("metric")["k"].transform("nunique") > 1]
    else:
        known = table["metric"] = table["column"]
    what = "with values at two k or more" if over_k else "of the result"
    found = known.unique().tolist()
    wanted = as_columns(metrics) or found
    if not wanted:
        raise OptionError(
            f"the result has no metric {what}; evaluate with ⟦+k=[5, 10, 20]⟧, for instance"
        )
    names = list(dict.fromkeys(chosen("metrics", one, found, f"metric {what}") for one in wanted))
    parts = [table[table["metric"] == name].sort_values(place, kind="stable") for name in names]
    data = pd.concat(parts, ignore_index=True)
    models = table["model"].unique().tolist()
    # The values of the first metric at the largest k, or at the last time, decide who is best.
    last = parts[0][parts[0][place] == parts[0][place].iloc[-1]]
    end = last.set_index("model")["value"], last["better"].iloc[0]
    banded = highlighted(highlight, models)
    if len(models) > MANY_MODELS or banded:
        banded += best_first(*end)[:1]
    data["band"] = data["ci_low"].notna() & data["model"].isin(banded or models)
    yield data[["model", "metric", "better", place, "value", "ci_low", "ci_high", "n", "band"]]

    frames, axes = new_frames(ax, len(names))
    first = best_first(*end, highlight)
    for frame, (name, part) in zip(frames, data.groupby("metric", sort=False), strict=True):
        # Numbers and dates stand at themselves, other labels one after another.
        at = part[place]
        labels = at.map(str)
        if at.dtype.kind == "M":
            frame.date_ticks()
        elif at.dtype.kind in "iuf":
            frame.ax.locator_params(axis="x", integer=True)
        else:
            codes, each = pd.factorize(labels)
            at = pd.Series(codes, part.index)
            frame.tick_names(frame.ax.xaxis, [*each])
        of = part["model"] + (f", {name}@" if over_k else ", ") + labels
        part = part.assign(at=at, said=spoken(of, part))
        frame.lines(part, "at", "value", first)
        if over_k:
            frame.ax.set_xlim(left=0)
        if part["value"].min() >= 0:
            frame.ax.set_ylim(bottom=0)
        below = "k, items per list" if over_k else x
        frame.title(f"{name}@k" if over_k else str(name), below, DIRECTION[part["better"].iloc[0]])
    frames[:3][-1].legend()  # beside the first row
    said = "one number for all lists, without interval"
    if data["band"].any():
        said = f"bands: {interval_percent(result)}"
    per = "model" if over_k else f"model and {x}"
    frames[-1].caption(f"{said}; {count_text(data['n'], 'list')} per {per}")
    yield axes


@Picture
def tradeoff(
    result: Any,
    x: str = "coverage@10",
    y: str = "ndcg@10",
    *,
    highlight: Columns | None = None,
    ax: Axes | None = None,
) -> Steps:
    """Draw two metrics against each other, one point per model, with the line of models that no
    other beats on both.

    Parameters
    ----------
    result : Evaluation or DataFrame
        An evaluation of several models, or its summary.
    x, y : str, default "coverage@10" and "ndcg@10"
        Columns as the summary names them, such as "ndcg@10".
    highlight : str or list of str, optional
        Models that keep a colour of their own where there are more than eight, such as the
        baseline. The five best keep theirs too; all others are grey.
    {ax_returns_raises}
    OptionError
        If a metric is not in the summary.

    Notes
    -----
    The line counts differences of any size; `rd.compare_models` says which are real. A metric
    without a direction, such as popularity, counts as better when it is larger.

    Data
    ----
    One row per model: `model`, `x`, `x_low`, `x_high`, `y`, `y_low`, `y_high`, `pareto`, `n`.
    `pareto` tells that no other model is at least as good on both metrics and better on one.

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
    table = summary_of(result)
    parts = []
    for axis, name in (("x", x), ("y", y)):
        own = table[table["column"] == chosen(axis, name, table["column"], "metric of the summary")]
        own = own.set_index("model")[["value", "ci_low", "ci_high", "n"]]
        parts.append(own.set_axis([axis, f"{axis}_low", f"{axis}_high", "n"], axis=1))
    data = parts[0].drop(columns="n").join(parts[1], how="inner").dropna(subset=["x", "y"])
    data = data.reset_index()
    better = [direction_word(result, name) for name in (x, y)]
    signed = data[["x", "y"]].to_numpy(float) * [-1 if one == "smaller" else 1 for one in better]
    one = signed[:, None]
    other = signed[None]
    beaten = np.all(other >= one, axis=2) & np.any(other > one, axis=2)
    data.insert(7, "pareto", ~np.any(beaten, axis=1))
    yield data

    frame = Frame(ax)
    front = data[data["pareto"]].sort_values("x")
    best = best_first(data.set_index("model")["y"], better[1], highlight)
    for model, rows, look in by_model(data, best):
        if look is not REST:
            frame.ax.hlines(rows["y"], rows["x_low"], rows["x_high"], color=look.colour)
            frame.ax.vlines(rows["x"], rows["y_low"], rows["y_high"], color=look.colour)
        at = rows.iloc[0]
        said = f"{model}: {x}: {estimated(at['x'], at['x_low'], at['x_high'])}; "
        said += f"{y}: {estimated(at['y'], at['y_low'], at['y_high'])}"
        frame.line(rows["x"], rows["y"], look, [said], model, markersize=8, linestyle="none")
    frame.reference(front["x"], front["y"], "not beaten on both", "--")
    frame.ax.margins(0.12)
    yield frame.finish(
        f"{y} against {x}",
        x + HEAD_ARROWS[better[0]],
        y + HEAD_ARROWS[better[1]],
        f"bars: {interval_percent(result)} where the metric has one; "
        f"{count_text(data['n'], 'list')}; dashed: models that no other beats on both metrics",
    )


# -- users

USER_POINTS = 200  # of a curve of shares
BARS = 10  # on each side of zero


@Picture
def users(result: Evaluation, metric: str, *, ax: Axes | None = None) -> Steps:
    """Draw the share of lists with at most a value, one line per model with its band: who gets
    nothing, and how much the others get.

    Formula: share(x) = |{lists: value ≤ x}| / n ± √(ln(2/0.05) / 2n), the band of the whole curve.
    Where users have several lists, n is their effective number.

    Parameters
    ----------
    result : Evaluation
        An evaluation. Beyond four models, only the best has a band.
    metric : str
        Column of `per_user`, such as "ndcg@10".
    {ax_returns_raises}
    ColumnError, DataError
        If the column is missing or has no value.

    Notes
    -----
    The lower curve is the better one where more of the metric is better: fewer lists stay below
    each value. A curve that is lower everywhere is better for every threshold (it dominates).
    Curves that cross say that the mean hides a choice: few lists that are very good, or many that
    are fair. The legend says how many get exactly nothing. Source: Agarwal et al. (2021), Deep RL
    at the edge of the statistical precipice, section 4, whose performance profiles have the lists
    above a value.

    Data
    ----
    `model`, `value`, `share`, `ci_low`, `ci_high`, `n`: `share` of the lists of a model have at
    most `value`; the first row of a model is its smallest value.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, "hits@10", by="model")
    >>> rd.plot.users.data(result, "hits@10").head(3).round(3)
      model  value  share  ci_low  ci_high     n
    0   knn    0.0  0.555   0.520    0.590  1537
    1   knn    1.0  0.845   0.811    0.880  1537
    2   knn    2.0  0.949   0.915    0.984  1537
    >>> ax = rd.plot.users(result, "hits@10")
    """
    key = result.spec["user_col"]
    unit = result.spec.get("unit_col", unit_of(key))
    rows = model_rows(result)
    parts = []
    means = {}
    for model, values in model_values(result, metric).items():
        defined = ~np.isnan(values)
        ordered = np.sort(values[defined])
        n = len(ordered)
        if not n:
            continue
        lists = np.ones(n)
        if unit != key:
            lists = result.per_user[unit].take(rows[model][defined]).value_counts().to_numpy(float)
        # Dvoretzky, Kiefer and Wolfowitz: the whole curve stays within this distance of the true
        # one. So many independent lists carry as much as those of users with several.
        independent = n**2 / (lists**2).sum()
        reach = np.sqrt(np.log(2 / (1 - CONFIDENCE)) / (2 * independent))
        steps = np.unique(ordered)
        steps = steps[np.linspace(0, len(steps) - 1, min(USER_POINTS, len(steps))).astype(int)]
        share = np.searchsorted(ordered, steps, side="right") / n
        own = {"model": model, "value": steps, "share": share}
        own |= {"ci_low": (share - reach).clip(min=0), "ci_high": (share + reach).clip(max=1)}
        parts.append(pd.DataFrame(own | {"n": n}))
        means[model] = ordered.mean()
    if not parts:
        raise DataError(f"per_user[{metric!r}] has no value for any list; there is nothing to draw")
    data = pd.concat(parts, ignore_index=True)
    yield data

    frame = Frame(ax)
    least = data.groupby("model", sort=False).first()
    at_zero = 100 * least["share"].where(least["value"] == 0, 0.0)
    frame.suffix = {str(model): f"{share:.3g} % at 0" for model, share in at_zero.items()}
    best = best_first(pd.Series(means), direction_word(result, metric))
    data["band"] = of_few_or_best(data, best)
    frame.lines(data, "value", "share", best, step="post", markevery=[0])
    frame.ax.set_ylim(0, 1.02)
    yield frame.finish(
        "Who gets nothing",
        metric,
        "share of lists with at most this value",
        f"bands: 95 %, for the whole curve; {count_text(data['n'], 'list')} with a defined "
        f"{metric} per model; the mark is the share at the smallest value",
        shares="y",
    )


@Picture
def winners(
    result: Evaluation, metric: str, *, model: Any, baseline: Any, ax: Axes | None = None
) -> Steps:
    """Draw how many users gain and how many lose by a change of models, and by how much. Where a
    user has several lists, lists are counted.

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

    Data
    ----
    One row per bin of the difference model − baseline: `low`, `high`, `side`, `n`. `side` is
    "loses", "ties" (one row, from 0 to 0) or "gains". The counts add up to the users with a value
    for both.

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
    found = model_values(result, metric)
    rows = model_rows(result)
    one = chosen("model", model, found)
    other = chosen("baseline", baseline, found)
    if one == other:
        raise OptionError(f"model and baseline are both {one!r}; expected two models")
    key = result.spec["user_col"]
    keys = result.per_user[key]
    first, second = (keys.take(rows[name]).reset_index(drop=True) for name in (one, other))
    if not first.equals(second):
        raise DataError(
            f"{one!r} and {other!r} were not evaluated on the same lists; evaluate them in one "
            "call with ⟦+by=⟧"
        )
    both = found[one], found[other]
    moved = np.subtract(*both)
    moved = moved[~np.isnan(moved)]
    n = len(moved)
    moved = moved[np.abs(moved) > rounding_of(*both)]
    edges = np.linspace(0.0, np.abs(moved).max(initial=0) or 1.0, BARS + 1)
    losses, gains = (np.histogram(moved * sign, edges)[0] for sign in (-1, 1))
    data = pd.DataFrame(
        {
            "low": [*-edges[:0:-1], 0.0, *edges[:-1]],
            "high": [*-edges[-2::-1], 0.0, *edges[1:]],
            "side": ["loses"] * BARS + ["ties"] + ["gains"] * BARS,
            "n": [*losses[::-1], n - len(moved), *gains],
        }
    )
    yield data

    frame = Frame(ax)
    unit = "user" if len(key) == 1 else "list"
    totals = data.groupby("side")["n"].sum()
    for side, verb, colour, hatch in (
        ("gains", "gain", BETTER, ""),
        ("loses", "lose", WORSE, "//"),
    ):
        own = data[data["side"] == side]
        bars = frame.ax.bar(
            own["low"],
            own["n"],
            own["high"] - own["low"],
            align="edge",
            edgecolor=frame.tone(0),
            linewidth=0.8,
            color=colour,
            hatch=hatch,
        )
        ends = np.sort(own[["low", "high"]].abs()).tolist()
        for bar, (low, high), n in zip(bars, ends, own["n"], strict=True):
            form = form_of(low, high)
            says(bar, [f"{doing(n, verb, unit)} {number(low, form)} to {number(high, form)}"])
        frame.entries.append((bars, doing(totals[side], verb, unit), None))
    frame.ax.axvline(0, color=frame.tone(), linewidth=1)
    names = " − ".join(short_names([model, baseline], TICK_NAME_LENGTH))
    yield frame.finish(
        "Who gains and who loses",
        f"difference of {metric} per {unit}: {names}",
        f"{unit}s",
        f"{count_text([totals.sum()], unit)} with a value for both; not drawn: "
        f"{totals['ties']:,} with the same value",
    )


# -- values as shades


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
