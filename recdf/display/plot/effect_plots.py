"""Pictures of comparisons: effects with their intervals, and an effect over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...diagnostics.gate_records import Gate, row_cells
from ...errors import ColumnError, OptionError
from ...experiments.decide.adjust_pvalues import adjustment
from ...judge.comparisons import COMPARISON_COLUMNS
from ...judge.verdict import sign_of
from ...tables.cells import estimated, shorten, visible
from ..given_tables import JOINED_BY, confidence_of, count_text, labels, need, need_gate
from ..kinds import estimates_frame, kind_of_estimates
from . import space, style
from .style import Axes

__all__ = ["forest", "gate", "over_time"]

BY_PERIOD = "one row per period, such as rd.experiments.effect_over_time returns"
SOURCE = "what compare_models or compare_variants returned"
LABEL_LENGTH = 34
MARK_OF_SIGN = {
    "open": (style.NEUTRAL, "o"),
    "better": (style.BETTER, "^"),
    "worse": (style.WORSE, "v"),
}
WORDS_FROM = 5.5  # inches between which labels, intervals and numbers have room


# -- forest


def _forest_data(
    comparison: pd.DataFrame, *, by: str | Sequence[str] | None = None
) -> pd.DataFrame:
    """Return what `forest` draws: `metric`, `label`, `diff`, `ci_low`, `ci_high`, `p_adj`,
    `verdict`, `sign`, `n`.

    {parameters_returns}
        One row per row of the comparison. `sign` is "better", "worse" or "open", as the verdict
        says. Effects of segments have `shrunken` too. Of a table that is no comparison: `metric`
        (heading of the panel), `label`, `diff` and its interval, `allowed` (the upright line),
        `verdict`, `numbers` and `words` (texts), `percent` and `from_zero` (of the axis), `sign`.
    """
    kind = kind_of_estimates(comparison)
    if kind is not None:
        return estimates_frame(kind, comparison)
    need(comparison, "comparison", COMPARISON_COLUMNS, SOURCE)
    models = "baseline" in comparison.columns
    base, other = ("baseline", "model") if models else ("control", "treatment")
    need(comparison, "comparison", [base, other], SOURCE)
    own = list(comparison.columns[: list(comparison.columns).index("metric")])
    segments = own if by is None else [by] if isinstance(by, str) else list(by)
    need(comparison, "comparison", segments, SOURCE)
    names = [
        f"{new} vs. {old}" for new, old in zip(comparison[other], comparison[base], strict=True)
    ]
    if segments:
        only_one = len(set(names)) == 1
        parts = labels(comparison, segments)
        names = (
            parts if only_one else [JOINED_BY.join(pair) for pair in zip(parts, names, strict=True)]
        )
    n = comparison["n_users"] if models else comparison["n_control"] + comparison["n_treatment"]
    data = comparison[["metric", "diff", "ci_low", "ci_high", "p_adj", "verdict"]].reset_index(
        drop=True
    )
    data.attrs = {}
    data.insert(1, "label", names)
    data["sign"] = [sign_of(row) for row in comparison.to_dict("records")]
    data["n"] = n.to_numpy()
    if "shrunken" in comparison.columns:
        data["shrunken"] = comparison["shrunken"].to_numpy()
    return data


@style.drawn_from(_forest_data)
def forest(
    comparison: pd.DataFrame, *, by: str | Sequence[str] | None = None, ax: Any = None
) -> Any:
    """Draw differences with their intervals, one row each, one panel per metric, zero in the middle
    of every panel.

    Parameters
    ----------
    comparison : DataFrame
        What `rd.compare_models` or `rd.compare_variants` returned, all of it or some of its rows;
        or what `rd.experiments.segment_effects` made of it, whose shrunken effects are drawn as
        crosses. Also any other comparison of `rd.experiments` (quantiles, zero-inflated metrics,
        interleaved lists), and the estimates of `aa_test`, `find_srm`, `role_verdicts`,
        `plan_experiment` and `plan_comparison`.
    by : str or list of str, optional
        Columns of segments that name the rows. Default: the columns before `metric`.
    {axes_returns_raises}
    ColumnError
        If the frame is not a comparison.

    Notes
    -----
    A filled mark is a difference that holds after the correction; a hollow one is open. An interval
    that has no bound on one side ends in an arrow. An upright line is what the verdict compares
    with: the level of an A/A test, the margin of a guardrail. Shares of splits and planned users
    have no zero in the middle.

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
    data = _forest_data(comparison, by=by)
    metrics = list(dict.fromkeys(data["metric"]))
    if ax is None:
        panels = _stacked_axes([int((data["metric"] == name).sum()) for name in metrics])
    else:
        panels = style.new_grid(ax, len(metrics))
    kind = kind_of_estimates(comparison)
    for panel, (metric, rows) in zip(panels, data.groupby("metric", sort=False), strict=True):
        _effects(panel, rows)
        style.title(panel, f"Difference of {metric}" if kind is None else str(metric))
        if kind is not None and rows["percent"].all():
            style.percent(panel.xaxis)
    if kind is not None:
        style.axis_names(panels[-1], kind.axis, "")
        style.caption(panels[-1], kind.caption)
        return panels[0] if len(panels) == 1 else panels
    style.axis_names(panels[-1], "difference in units of the metric, zero in the middle", "")
    confidence = confidence_of(comparison)
    level = "intervals" if confidence is None else f"{100 * confidence:g} % intervals"
    marks = f"filled: better (blue) or worse (orange), p-values {adjustment(comparison).words}"
    if "shrunken" in data.columns:
        marks = (
            "crosses: effects shrunken to their mean; the verdict is about all segments of a metric"
        )
    style.caption(panels[-1], f"{level}; {count_text(data['n'])} users; {marks}")
    return panels[0] if len(panels) == 1 else panels


def _stacked_axes(rows: Sequence[int]) -> np.ndarray:
    """Return axes of a new figure, one above the other, each as high as its rows need."""
    figure, made = style.pyplot().subplots(
        len(rows),
        1,
        figsize=(8.0, 1.0 + sum(0.36 * n + 0.62 for n in rows)),
        layout="constrained",
        squeeze=False,
        gridspec_kw={"height_ratios": [n + 0.6 for n in rows]},
    )
    figure.set_gid(space.OWN)
    return np.array([style.dress(one) for one in made.ravel()], dtype=object)


def _effects(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw one panel: a point and a line for each row, with its numbers to the right."""
    ends = rows.reindex(columns=["diff", "ci_low", "ci_high", "allowed"]).to_numpy(dtype=np.float64)
    finite = np.abs(ends[np.isfinite(ends)])
    reach = 1.12 * float(finite.max()) if len(finite) and finite.max() > 0 else 1.0
    ax.set_xlim(-0.04 * reach if rows.get("from_zero", pd.Series(False)).all() else -reach, reach)
    ax.axvline(0, color=space.tone(ax), linewidth=1)
    ax.grid(False, axis="y")
    row: Any
    for place, row in enumerate(rows.itertuples(index=False)):
        colour, marker = MARK_OF_SIGN.get(row.sign, MARK_OF_SIGN["open"])
        if not np.isnan(row.ci_low):
            ax.plot(
                np.clip([row.ci_low, row.ci_high], -reach, reach),
                [place, place],
                color=colour,
                linewidth=2,
            )
            for bound, arrow in ((row.ci_low, "<"), (row.ci_high, ">")):
                if np.isinf(bound):
                    ax.plot(
                        [np.copysign(reach, bound)],
                        [place],
                        color=colour,
                        marker=arrow,
                        clip_on=False,
                    )
        fill = colour if row.sign != "open" else "none"
        (point,) = ax.plot(
            [row.diff],
            [place],
            color=colour,
            marker=marker,
            markersize=8,
            markerfacecolor=fill,
            linestyle="none",
        )
        style.says(point, [f"{row.label}: {_words(row)}"])
        if "shrunken" in rows.columns:
            ax.plot(
                [row.shrunken],
                [place],
                color=space.tone(ax),
                marker="x",
                markersize=7,
                linestyle="none",
            )
        budget = getattr(row, "allowed", np.nan)
        if not np.isnan(budget):
            ax.plot(
                [budget, budget], [place - 0.32, place + 0.32], color=space.tone(ax), linewidth=2
            )
    ax.set_ylim(len(rows) - 0.4, -0.6)
    style.tick_names(ax.yaxis, rows["label"].tolist(), LABEL_LENGTH)
    ax.yaxis.set_tick_params(length=0)
    if space.room(ax)[0] < WORDS_FROM:  # small axes: the numbers stand in the table
        return
    ax.locator_params(axis="x", nbins=4)  # between names and numbers, little is left
    right = ax.secondary_yaxis("right")
    right.set_yticks(range(len(rows)))
    words = [_words(row) for row in rows.itertuples(index=False)]
    for label in right.set_yticklabels(words, fontsize=space.points(0.9)):
        style.plain_text(label)
    right.spines["right"].set_visible(False)
    right.yaxis.set_tick_params(length=0, labelcolor=space.tone(ax))


def _words(row: Any) -> str:
    """Return the numbers of one row as text: effect, interval and verdict."""
    if hasattr(row, "words"):
        return str(row.words)
    words = estimated(row.diff, row.ci_low, row.ci_high, "+"), shorten(visible(row.verdict), 36)
    return "  ".join(filter(None, words))


# -- gate


def _gate_data(gate: Gate) -> pd.DataFrame:
    """Return what `gate` draws: `metric`, `label`, `diff`, `ci_low`, `ci_high`, `allowed`,
    `relative`, `verdict`, ...

    {parameters_returns}
        One row per row of the gate. `diff` is its change; `sign` is "better" (it passes), "worse"
        (it fails) or "open", and `words` says the change and the verdict as the gate's own table
        does.
    """
    names = [
        "metric",
        "change",
        "change_low",
        "change_high",
        "allowed",
        "relative",
        "verdict",
        "n_users",
    ]
    data = need_gate(gate).table[names]
    data = data.set_axis(
        ["metric", "diff", "ci_low", "ci_high", "allowed", "relative", "verdict", "n"], axis=1
    )
    cells = [row_cells(row) for row in gate.table.to_dict("records")]
    data.insert(1, "label", [cell["metric"] for cell in cells])
    data["sign"] = [sign_of(row) for row in gate.table.to_dict("records")]
    data["words"] = [
        f"{cell['change']}  {cell['verdict']}, budget {cell['budget']}" for cell in cells
    ]
    return data


def gate_panels(table: pd.DataFrame) -> pd.Series:
    """Return the panel of each row of a gate: its metric, or none for all relative changes, which
    share one."""
    return table["metric"].mask(table["relative"], "")


@style.drawn_from(_gate_data)
def gate(gate: Gate, *, ax: Any = None) -> Any:
    """Draw the change of each metric and segment with its bounds, beside the budget that it may not
    pass.

    Parameters
    ----------
    gate : Gate
        What `rd.gate` returned.
    {axes_returns_raises}

    Notes
    -----
    The short upright line is the budget. All relative changes share a panel, and each metric with
    an absolute budget has one. Only the bound on the side of the loss decides whether a row passes.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> old, new = (
    ...     rd.evaluate(shop.true, shop.pred[shop.pred["model"] == name], "ndcg@10")
    ...     for name in ("popularity", "knn")
    ... )
    >>> gate = rd.gate(new, old, {"ndcg@10": "-2%"})
    >>> rd.plot.gate.data(gate)["words"].tolist()
    ['+33% [+24%, +44%]  pass, budget −2%']
    >>> ax = rd.plot.gate(gate)
    """
    data = _gate_data(gate)
    parts = list(data.groupby(gate_panels(data), sort=False))
    panels = (
        _stacked_axes([len(rows) for _, rows in parts])
        if ax is None
        else style.new_grid(ax, len(parts))
    )
    for panel, (metric, rows) in zip(panels, parts, strict=True):
        _effects(panel, rows)
        style.title(
            panel, f"Change of {metric}" if metric else "Change in per cent of the baseline"
        )
        if not metric:
            style.percent(panel.xaxis)
    said = (
        f"bounds hold one-sided with {gate.confidence:.0%}; {count_text(data['n'])} users; upright "
        "line: the budget"
    )
    style.caption(panels[-1], f"{said}; filled: passes (blue) or fails (orange)")
    return panels[0] if len(panels) == 1 else panels


# -- over time


def _over_time_data(
    effect: pd.DataFrame,
    metric: str | None = None,
    *,
    time_col: str | None = None,
    treatment: Any = None,
    control: Any = None,
) -> pd.DataFrame:
    """Return the frame that `over_time` draws: `time`, `diff`, `ci_low`, `ci_high`, `n`, `verdict`,
    `sign`, `trend`.

    {parameters_returns}
        One row per period, in the order of time. `verdict` is that of the table ("" if it has
        none), and `sign` is "better", "worse" or "open". `trend` is what the table says of it, the
        same in all rows.
    """
    need(effect, "effect", ["metric", "diff", "ci_low", "ci_high"], BY_PERIOD)
    time_col = _time_col(effect) if time_col is None else time_col
    need(effect, "effect", [time_col], BY_PERIOD)
    rows = effect
    for name, wanted in {"metric": metric, "treatment": treatment, "control": control}.items():
        if name not in rows.columns:
            continue
        found = rows[name].drop_duplicates().tolist()
        if wanted is None and len(found) > 1:
            raise OptionError(
                f"effect has {len(found)} values of {name!r}; name one of {found} in ⟦{name}=⟧"
            )
        if wanted is not None and wanted not in found:
            raise OptionError(f"⟦{name}={wanted!r}⟧ is not in effect[{name!r}]; it has {found}")
        rows = rows if wanted is None else rows[rows[name] == wanted]
    rows = rows.sort_values(time_col, kind="stable")
    arms = [name for name in ("n_control", "n_treatment") if name in rows.columns]
    data = rows[[time_col, "diff", "ci_low", "ci_high"]].set_axis(
        ["time", "diff", "ci_low", "ci_high"], axis=1
    )
    data = data.reset_index(drop=True)
    data.attrs = {}
    data["n"] = rows[arms].sum(axis=1).to_numpy() if arms else np.nan
    data["verdict"] = rows["verdict"].astype(str).to_numpy() if "verdict" in rows.columns else ""
    data["sign"] = [sign_of(row) for row in rows.to_dict("records")]
    data["trend"] = [trend_words(row) for row in rows.to_dict("records")]
    return data


def trend_words(row: Mapping[Any, Any]) -> str:
    """Return the verdict and the slope of the trend of a row, or nothing if it has none."""
    if "trend_verdict" not in row:
        return ""
    slope = estimated(row["trend"], row["trend_ci_low"], row["trend_ci_high"], "+")
    return f"trend: {visible(row['trend_verdict'])}" + (f", {slope} per day" if slope else "")


def _time_col(effect: pd.DataFrame) -> str:
    """Return the column of the period: `period`, else the only column before `metric`, where `by=`
    puts it."""
    before = list(effect.columns[: list(effect.columns).index("metric")])
    if "period" in effect.columns:
        return "period"
    if len(before) == 1:
        return str(before[0])
    raise ColumnError(
        f"effect has no column 'period'; name the column of the period in ⟦+time_col=⟧: {BY_PERIOD}"
    )


@style.drawn_from(_over_time_data)
def over_time(
    effect: pd.DataFrame,
    metric: str | None = None,
    *,
    time_col: str | None = None,
    treatment: Any = None,
    control: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the effect of a variant by period, with its intervals.

    Parameters
    ----------
    effect : DataFrame
        What `rd.experiments.effect_over_time` returned; or one row per period, with the column of
        the period, `metric`, `diff`, `ci_low` and `ci_high`, as `rd.compare_variants(...,
        by="day")` returns them.
    metric : str, optional
        The metric to draw. Needed where there are several.
    time_col : str, optional
        Column of the period: a date, or days since exposure. Default: `period`, else the only
        column before `metric`.
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
    data = _over_time_data(effect, metric, time_col=time_col, treatment=treatment, control=control)
    ax = style.new_axes(ax)
    ax.axhline(0, color=space.tone(ax), linewidth=1)
    what = metric if metric is not None else str(effect["metric"].iloc[0])
    kind = str(effect["kind"].iloc[0]) if "kind" in effect.columns and len(effect) else ""
    colour = style.COLOURS[0]
    if kind == "cumulative":
        ax.fill_between(
            data["time"], data["ci_low"], data["ci_high"], color=colour, alpha=0.18, linewidth=0
        )
        ax.plot(data["time"], data["diff"], color=colour, linewidth=2)
        promise = (
            "each point holds all data up to its period; made with sequential_n, the band may be "
            "read every day"
        )
        if (
            "method" in effect.columns
            and effect["method"].astype(str).str.startswith("sequential").all()
        ):
            promise = (
                "each point holds all data up to its period; the band holds on all days together"
            )
    else:
        reach = np.abs(
            data[["ci_low", "ci_high"]].to_numpy(np.float64).T - data["diff"].to_numpy(np.float64)
        )
        ax.errorbar(data["time"], data["diff"], reach, color=colour, linewidth=0, elinewidth=1.8)
        words = adjustment(effect).words if "p_adj" in effect.columns else "not adjusted"
        promise = "bars: intervals, each of which holds for its own period alone"
        if words.startswith("adjusted by"):
            promise = f"bars: intervals that hold together, {words}"
    _mark_periods(ax, data, what)
    several = "treatment" in effect.columns and effect["treatment"].nunique() > 1
    of = f" of {visible(treatment)}" if several else ""
    if "control" in effect.columns and effect["control"].nunique() > 1:
        of += f" against {visible(control)}"
    style.title(ax, f"Effect{of} on {what}" + (f", {kind.replace('_', ' ')}" if kind else ""))
    style.axis_names(
        ax, _time_col(effect) if time_col is None else time_col, f"difference of {what}"
    )
    if pd.api.types.is_datetime64_any_dtype(data["time"]):
        space.dates(ax)
    marks = "filled: better (blue) or worse (orange)" if (data["sign"] != "open").any() else ""
    said = [promise, marks, f"{count_text(data['n'])} users".strip(), *data["trend"].iloc[:1]]
    style.caption(ax, "; ".join(part for part in said if part not in ("", "users")))
    return ax


def _mark_periods(ax: Axes, data: pd.DataFrame, what: str) -> None:
    """Draw the difference of each period, with a mark that has the look of its verdict."""
    for sign, (colour, marker) in MARK_OF_SIGN.items():
        rows = data[data["sign"] == sign]
        if len(rows):
            fill = "none" if sign == "open" else colour
            (line,) = ax.plot(
                rows["time"],
                rows["diff"],
                color=colour,
                marker=marker,
                markersize=6,
                linestyle="none",
                markerfacecolor=fill,
            )
            bounds = zip(
                rows["time"].map(str), rows["diff"], rows["ci_low"], rows["ci_high"], strict=True
            )
            said = [style.spoken(*one) for one in bounds]
            style.says(
                line,
                [
                    ", ".join(filter(None, [one, visible(verdict)]))
                    for one, verdict in zip(said, rows["verdict"], strict=True)
                ],
                what,
            )
