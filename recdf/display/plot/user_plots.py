"""Pictures of users: who gets nothing from a model, who reaches a value, and who gains and who
loses by a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from ...errors import DataError, OptionError
from ...evaluation.result import Evaluation
from ...evaluation.value_moments import CONFIDENCE
from ...judge.choices import a_number, check_value
from ...judge.per_user_columns import unit_of
from ...tables.cells import short_names
from ..given_tables import (
    FloatArray,
    check_model,
    count_text,
    direction_word,
    model_values,
    rows_by,
)
from . import space, style
from .style import Axes, best_first

__all__ = ["performance", "users", "winners"]

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
    ax = style.new_axes(ax)
    best = best_first(
        _model_means(result, metric, model_col), direction_word(result, metric), highlight
    )
    parts, handles, nothing = style.by_model(data, best), [], {}
    for model, rows, look in parts:
        (line,) = ax.plot(
            rows["value"],
            rows["share"],
            drawstyle="steps-post",
            color=look.colour,
            linestyle=look.line,
            marker=look.marker,
            markevery=[0],
            linewidth=1 if look is style.REST else 2,
        )
        at_zero = float(rows["share"].iloc[0]) if rows["value"].iloc[0] == 0 else 0.0
        nothing[model] = f"{100 * at_zero:.3g} % at 0"
        style.says(line, [f"{model}: {nothing[model]}"])
        handles.append(line)
    ax.set_ylim(0, 1.02)
    style.percent(ax.yaxis)
    style.axis_names(ax, metric, "share of users with at most this value")
    style.legend(ax, *style.named(parts, handles, nothing))
    style.title(ax, "Who gets nothing")
    style.caption(
        ax,
        f"all users with a defined {metric}; {count_text(data['n'])} per model; the mark is the "
        "share at the smallest value",
    )
    return ax


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
    ax = style.new_axes(ax)
    smaller = direction_word(result, metric) == "smaller"
    first = best_first(
        _model_means(result, metric, model_col), "smaller" if smaller else "larger", highlight
    )
    parts, handles = style.by_model(data, first), []
    marked = first[: len(first) - style.BEST + 1]
    step: Literal["pre", "post"] = "post" if smaller else "pre"
    for model, rows, look in parts:
        (line,) = ax.plot(
            rows["value"],
            rows["share"],
            drawstyle=f"steps-{step}",
            color=look.colour,
            linestyle=look.line,
            marker=look.marker,
            markevery=max(1, len(rows) // 6),
            markersize=5,
            linewidth=1 if look is style.REST else 2,
        )
        if len(parts) <= BANDS_UP_TO or model in marked:
            ax.fill_between(
                rows["value"],
                rows["ci_low"],
                rows["ci_high"],
                step=step,
                color=look.colour,
                alpha=0.15,
                linewidth=0,
            )
        style.says(line, [model])
        handles.append(line)
    ax.set_ylim(0, 1.02)
    style.percent(ax.yaxis)
    style.axis_names(
        ax, metric, f"share of lists with at {'most' if smaller else 'least'} this value"
    )
    style.legend(ax, *style.named(parts, handles))
    style.title(ax, f"Lists that reach a value of {metric}")
    style.caption(ax, f"bands: 95 %, for the whole curve; {count_text(data['n'])} lists per model")
    return ax


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
    ax = style.new_axes(ax)
    totals = data.groupby("side")["n"].sum()
    handles, names = [], []
    for side, colour, hatch in (("gains", style.BETTER, ""), ("loses", style.WORSE, "//")):
        rows = data[data["side"] == side]
        bars = ax.bar(
            rows["low"],
            rows["n"],
            width=rows["high"] - rows["low"],
            align="edge",
            color=colour,
            edgecolor=space.tone(ax, 0),
            linewidth=0.8,
            hatch=hatch,
        )
        word = "gain" if side == "gains" else "lose"
        for bar, low, high, n in zip(bars, rows["low"], rows["high"], rows["n"], strict=True):
            style.says(bar, [f"{n:,} users {word} {abs(low):.3g} to {abs(high):.3g}"])
        handles.append(bars)
        names.append(f"{totals[side]:,} users {word}")
    ax.axvline(0, color=space.tone(ax), linewidth=1)
    style.legend(ax, handles, names, beside=False)
    one, other = short_names([model, baseline], style.TICK_NAME_LENGTH)
    style.axis_names(ax, f"difference of {metric} per user: {one} − {other}", "users")
    style.title(ax, "Who gains and who loses")
    style.caption(
        ax,
        f"n = {totals.sum():,} users with a value for both; {totals['ties']:,} with the same value "
        "are not drawn",
    )
    return ax
