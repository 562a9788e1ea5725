"""Pictures of effects: comparisons and other estimates with their intervals, an effect over time,
and the differences of all pairs of models as shades."""

from __future__ import annotations

from typing import Any

import numpy as np
from pandas import DataFrame

from ...diagnostics.gate_records import Gate
from ...errors import ColumnError, OptionError
from ...experiments.decide.adjust_pvalues import adjustment
from ...judge.choices import Columns, as_columns
from ...judge.comparisons import (
    COMPARISON_COLUMNS,
    level_of,
    segments_first,
    sides_of,
    unit_of_rows,
)
from ...judge.verdict import VERDICT_COLUMNS, is_withheld, sign_of, turned
from ...tables.cells import (
    amount,
    as_written,
    columns_before,
    estimated,
    form_of,
    number,
    shorten,
    visible,
)
from ..given_tables import (
    JOINED_BY,
    chosen,
    count_text,
    direction_word,
    labels,
    need,
    need_gate,
    picked,
)
from ..kinds import DRAWN, record_of
from ..page_blocks import trend_words
from .picture import (
    COLOURS,
    MARK_OF_SIGN,
    Axes,
    Frame,
    Picture,
    Steps,
    new_frames,
    plain_text,
    points,
    spoken,
)

PERIOD_COLUMNS = ("metric", "diff", "ci_low", "ci_high")
BY_PERIOD = "one row per period, such as rd.experiments.effect_over_time returns"
SOURCE = "what compare_models or compare_variants returned"
LABEL_LENGTH = 34
VERDICT_LENGTH = 72
SHADES = ("#eb9d6a", "#f6f6f6", "#79b3d8")  # worse, equal, better: light enough for dark texts
COMPARED_PAIRS = ["metric", "baseline", "model", "diff", "n_users", *VERDICT_COLUMNS]
WORDS_FROM = 5.5  # inches between which labels, intervals and numbers have room


@Picture
def forest(comparison: DataFrame | Gate, *, by: Columns | None = None, ax: Any = None) -> Steps:
    """Draw differences with their intervals, one row each, one panel per metric, zero in the middle
    of every panel.

    Parameters
    ----------
    comparison : DataFrame or Gate
        What `rd.compare_models` or `rd.compare_variants` returned, all of it or some of its rows;
        or what `rd.experiments.segment_effects` made of it, whose shrunken effects are drawn as
        crosses. Also any other comparison of `rd.experiments` (quantiles, zero-inflated metrics,
        interleaved lists), and the estimates of `aa_test`, `find_srm`, `role_verdicts`,
        `plan_experiment` and `plan_comparison`. Or what `rd.gate` returned: the change of each
        metric and segment, beside the budget that it may not pass.
    by : str or list of str, optional
        Columns of segments that name the rows. Default: the columns before `metric`.
    {axes_returns_raises}
    ColumnError
        If the frame is not a comparison.

    Notes
    -----
    A filled mark is a difference that holds after the correction; a hollow one is open. An interval
    that has no bound on one side ends in an arrow. An upright line is what the verdict compares
    with: the level of an A/A test, the margin of a guardrail, the budget of a gate. Shares of
    splits and planned users have no zero in the middle. All relative changes of a gate share a
    panel; only the bound on the side of the loss decides whether a row passes.

    Data
    ----
    One row per row of the comparison: `metric`, `label`, `diff`, `ci_low`, `ci_high`, `p_adj`,
    `verdict`, `sign`, `n`. `sign` is "better", "worse" or "open", as the verdict says. Effects of
    segments have `shrunken` too. Of a table that is no comparison: `metric` (heading of the panel),
    `label`, `diff` and its interval, `allowed` (the upright line), `verdict`, `numbers` and `words`
    (texts), `percent` and `from_zero` (of the axis), `sign`.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
    >>> compared = result.compare_models(baseline="popularity")
    >>> rd.plot.forest.data(compared)[["label", "diff", "sign"]].round(3)
                       label   diff    sign
    0     knn vs. popularity  0.046  better
    1  random vs. popularity -0.128   worse
    >>> ax = rd.plot.forest(compared)
    """
    if isinstance(comparison, Gate):
        comparison = need_gate(comparison).table
    kind = record_of(comparison)
    if kind.read:
        drawn = map(kind.drawn, as_written(comparison).to_dict("records"))
        yield (data := DataFrame(drawn, columns=DRAWN.split()))
        yield _rows_of_panels(data, "{}", kind.axis, kind.caption, ax)
        return
    comparison = segments_first(need(comparison, "comparison", COMPARISON_COLUMNS, SOURCE))
    new, old = sides_of(comparison)
    segments = columns_before(comparison, "metric") if by is None else as_columns(by)
    need(comparison, "comparison", [old, new, *segments], SOURCE)
    pairs = list(map("{} vs. {}".format, comparison[new], comparison[old]))
    names = pairs
    if segments:
        parts = labels(comparison, segments)
        both = map(JOINED_BY.join, zip(parts, pairs, strict=True))
        names = parts if len({*pairs}) == 1 else list(both)
    counts = ["n_users"] if new == "model" else ["n_control", "n_treatment"]
    data = picked(comparison, ["metric", "diff", "ci_low", "ci_high", "p_adj", "verdict"])
    data.insert(1, "label", names)
    data["sign"] = [sign_of(row) for row in comparison.to_dict("records")]
    data["n"] = comparison[counts].sum(axis=1).to_numpy()
    marks = f"filled: better (blue) or worse (orange), p-values {adjustment(comparison).words}"
    if "shrunken" in comparison:
        data["shrunken"] = comparison["shrunken"].to_numpy()
        marks = (
            "crosses: effects shrunken to their mean; the verdict is about all segments of a metric"
        )
    yield data

    cells = data[["diff", "ci_low", "ci_high", "verdict"]].itertuples(index=False)
    data["words"] = [
        f"{estimated(one, low, high, '+')}  {shorten(visible(words), VERDICT_LENGTH)}".rstrip()
        for one, low, high, words in cells
    ]
    caption = f"{level_of(comparison)}intervals; "
    caption += f"{count_text(data['n'], unit_of_rows(comparison))}; {marks}"
    across = "difference in units of the metric, zero in the middle"
    yield _rows_of_panels(data, "Difference of {}", across, caption, ax)


def _rows_of_panels(data: DataFrame, name: str, across: str, caption: str, ax: Any) -> Any:
    """Draw rows of effects below each other, one panel for each metric, zero in the middle."""
    parts = list(data.groupby("metric", sort=False))
    longest = max(30, *map(len, data["words"])) + max(10, *map(len, data["label"]))
    sizes = [len(rows) for _, rows in parts]
    frames, axes = new_frames(ax, len(parts), sizes, 3.6 + 0.075 * longest)
    left = 0
    for frame, (metric, rows) in zip(frames, parts, strict=True):
        # Small axes show the rows that have room, those that are worse before all others.
        fits = frame.rows_that_fit
        if ax is not None and len(rows) > fits:
            order = rows["sign"].ne("worse").sort_values(kind="stable").index[:fits]
            left = left + len(rows) - fits
            rows = rows.loc[sorted(order)]
        _effects(frame, rows)
        frame.title(name.format(metric), across if frame is frames[-1] else "")
    if left:
        caption += f"; no room here for {left} of {amount(len(data), 'row')}: rows that are worse "
        caption += "come first"
    frames[-1].caption(caption)
    return axes


def _effects(frame: Frame, rows: DataFrame) -> None:
    """Draw one panel: a point and a line for each row, with its numbers to the right."""
    ax = frame.ax
    ink = frame.tone()
    places = np.arange(len(rows))
    columns = ["diff", "ci_low", "ci_high", "allowed", "shrunken"]
    ends = rows.reindex(columns=columns).to_numpy(float)
    reach = 1.12 * np.abs(ends[np.isfinite(ends)]).max(initial=0) or 1.0
    from_zero, percent = rows.reindex(columns=["from_zero", "percent"]).eq(True).all()
    ax.set_xlim(-0.04 * reach if from_zero else -reach, reach)
    ax.axvline(0, color=ink, linewidth=1)
    ax.grid(False, axis="y")
    colours = [MARK_OF_SIGN[sign][0] for sign in rows["sign"]]
    low, high = ends[:, 1:3].clip(-reach, reach).T
    ax.hlines(places, low, high, colors=colours, linewidth=2)
    for place, side in np.argwhere(np.isinf(ends[:, 1:3])):
        at, arrow = ((-reach, "<"), (reach, ">"))[side]
        ax.plot(at, place, color=colours[place], marker=arrow, clip_on=False)
    frame.marks(rows["diff"], places, rows["sign"], rows["label"] + ": " + rows["words"], 8)
    if "shrunken" in rows:
        ax.plot(ends[:, 4], places, color=ink, marker="x", markersize=7, linestyle="none")
    ax.vlines(ends[:, 3], places - 0.32, places + 0.32, color=ink)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    frame.tick_names(ax.yaxis, rows["label"].tolist(), LABEL_LENGTH)
    ax.yaxis.set_tick_params(length=0)
    if percent:
        frame.number_ticks(ax.xaxis, "%")
    if frame.width < WORDS_FROM:  # small axes: the numbers stand in the table
        return
    ax.locator_params(axis="x", nbins=4)  # between names and numbers, little is left
    right = ax.secondary_yaxis("right")
    right.set_yticks(places)
    plain_text(*right.set_yticklabels(rows["words"], fontsize=points(0.9)))
    right.spines["right"].set_visible(False)
    right.yaxis.set_tick_params(length=0, labelcolor=ink)


@Picture
def over_time(
    effect: DataFrame,
    metric: str | None = None,
    *,
    treatment: Any = None,
    control: Any = None,
    ax: Axes | None = None,
) -> Steps:
    """Draw the effect of a variant by period, with its intervals.

    Parameters
    ----------
    effect : DataFrame
        What `rd.experiments.effect_over_time` returned; or one row per period, with the column of
        the period before `metric`, `diff`, `ci_low` and `ci_high`, as `rd.compare_variants(...,
        by="day")` returns them.
    metric : str, optional
        The metric to draw. Needed where there are several.
    treatment : label, optional
        The variant to draw. Needed where there are several.
    control : label, optional
        What it is compared with. Needed in a table of all pairs.
    {ax_returns_raises}
    ColumnError, OptionError
        If a column is missing, or a metric or variant has to be named.

    Notes
    -----
    A filled mark is a period whose verdict is "better" or "worse"; a hollow one is open or
    withheld. Every period has a bar of its own, because its users are compared by themselves. Where
    a column `kind` says "cumulative", each row holds all data up to its period, and a band joins
    them. Such a band may be looked at every day only if its intervals were made for it, as those of
    `effect_over_time` are (`sequential_n=` of `rd.compare_variants`). The caption has the trend, if
    the table has one.

    Data
    ----
    One row per period, in the order of time: `time`, `diff`, `ci_low`, `ci_high`, `n`, `verdict`,
    `sign`. `verdict` is that of the table ("" if it has none), and `sign` is "better", "worse" or
    "open".

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> days = pd.DataFrame(
    ...     {
    ...         "period": [1, 2],
    ...         "metric": "revenue",
    ...         "diff": [0.4, 0.3],
    ...         "ci_low": [-0.2, 0.1],
    ...         "ci_high": [1.0, 0.5],
    ...     }
    ... )
    >>> rd.plot.over_time.data(days)[["time", "diff", "ci_low"]]
       time  diff  ci_low
    0     1   0.4    -0.2
    1     2   0.3     0.1
    >>> ax = rd.plot.over_time(days)
    """
    need(effect, "effect", PERIOD_COLUMNS, BY_PERIOD)
    effect = segments_first(effect)
    # The column of the period is `period`, or else the only one before `metric`, where `by=` puts
    # it.
    before = columns_before(effect, "metric")
    before = ["period"] if "period" in effect else [one for one in before if one != "kind"]
    if len(before) != 1:
        raise ColumnError(
            f"effect has no column 'period', nor one column before 'metric'; expected {BY_PERIOD}"
        )
    time_col = before[0]
    rows = effect
    of = ""
    for name, wanted, word in (
        ("metric", metric, ""),
        ("treatment", treatment, " of "),
        ("control", control, " against "),
    ):
        if name in rows and len(rows):
            label = chosen(name, wanted, rows[name], name)
            rows = rows[rows[name].map(str) == label]
            if word and effect[name].nunique() > 1:
                of += f"{word}{visible(label)}"
    rows = rows.sort_values(time_col, kind="stable", ignore_index=True)
    records = rows.to_dict("records")
    data = picked(rows, [time_col, "diff", "ci_low", "ci_high"]).rename(columns={time_col: "time"})
    data["n"] = rows.reindex(columns=["n_control", "n_treatment"]).sum(axis=1, min_count=1)
    data["verdict"] = [str(row.get("verdict", "")) for row in records]
    data["sign"] = list(map(sign_of, records))
    yield data

    frame = Frame(ax)
    time = data["time"]
    colour = COLOURS[0]
    first = records[0] if records else {}
    frame.ax.axhline(0, color=frame.tone(), linewidth=1)
    what = metric or first.get("metric", "")
    kind = str(first.get("kind", ""))
    trend = trend_words(first)
    holds = "the band holds on all days together"
    if kind == "cumulative":
        frame.band(data, "time", colour)
        frame.ax.plot(time, data["diff"], color=colour, linewidth=2)
        planned = effect.attrs.get("recdf_comparison", {}).get("sequential_n")
        if not (planned or str(first.get("method", "")).startswith("sequential")):
            holds = "made with sequential_n, the band may be read every day"
        promise = f"each point holds all data up to its period; {holds}"
        # The line of all data may climb where no trend of single periods is shown, and the reverse.
        trend = trend and f"of single periods, not of this line: {trend}"
    else:
        frame.ax.vlines(time, data["ci_low"], data["ci_high"], color=colour)
        promise = f"bars: {adjustment(effect).intervals}"
    found = zip(spoken(time, data, "diff"), data["verdict"], strict=True)
    said = [", ".join(filter(None, [one, visible(verdict)])) for one, verdict in found]
    frame.marks(time, data["diff"], data["sign"], said, 6, what)
    if time.dtype.kind == "M":
        frame.date_ticks()
    marks = "filled: better (blue) or worse (orange)" * any(data["sign"] != "open")
    below = filter(None, [promise, marks, count_text(data["n"], unit_of_rows(effect)), trend])
    title = f"Effect{of} on {what}" + f", {kind.replace('_', ' ')}" * bool(kind)
    yield frame.finish(title, time_col, f"difference of {what}", "; ".join(below))


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
        f"{count_text(data['n'], unit_of_rows(comparison))}; * holds, p-values "
        f"{adjustment(comparison).words}; blue: the row is better, orange: worse, white: "
        f"withheld{left * (len(shown) < len(order))}"
    )
    yield frame.finish(f"{what}: row − column", "the same models", "", caption)
