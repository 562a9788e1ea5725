"""Pictures of users: who gets nothing from a model, and who gains and who loses by a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import DataError, OptionError
from ...experiments.choices import a_number, check_value
from ..given_tables import FloatArray, check_model, count_text, model_values, rows_by
from . import style
from .style import Axes

__all__ = ["users", "winners"]

USER_POINTS = 200  # of a curve of shares; a million users need no more ink than these
TIED_BELOW = 1e-12  # as in compare_models


# ------------------------------------------------------------------------------------------ distribution


def _users_data(result: Any, metric: str, *, model_col: str | None = None) -> pd.DataFrame:
    """Return the frame that `users` draws: `model`, `value`, `share`, `n`.

    {parameters_returns}
        `share` of the lists of a model have at most `value`; the first row of a model is its smallest value.
    """
    parts = []
    for model, values in model_values(result, metric, model_col).by_model.items():
        ordered = np.sort(values[~np.isnan(values)])
        if not len(ordered):
            continue
        steps = ordered[np.append(True, ordered[1:] != ordered[:-1])]
        if len(steps) > USER_POINTS:
            steps = steps[np.linspace(0, len(steps) - 1, USER_POINTS).astype(np.int64)]
        below = np.searchsorted(ordered, steps, side="right") / len(ordered)
        parts.append(pd.DataFrame({"model": model, "value": steps, "share": below, "n": len(ordered)}))
    if not parts:
        raise DataError(f"per_user[{metric!r}] has no value for any list; there is nothing to draw")
    return pd.concat(parts, ignore_index=True)


@style.drawn_from(_users_data)
def users(result: Any, metric: str, *, model_col: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the share of users who get at most a value, by model: who gets nothing, and how much the others get.

    Parameters
    ----------
    result : Evaluation or DataFrame
        An evaluation, or its `per_user`.
    metric : str
        Column of `per_user`, such as "ndcg@10".
    model_col : str, optional
        Column that tells the models of a frame apart. Default: the `by` columns of the evaluation.
    {ax_returns_raises}
    ColumnError, DataError
        If the column is missing or has no value.

    Notes
    -----
    The lower curve is the better one where more of the metric is better: fewer users stay below each value. The
    legend says how many get exactly nothing.

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
    handles, names = [], []
    for model, rows, look in style.by_model(data):
        (line,) = ax.plot(
            rows["value"], rows["share"], drawstyle="steps-post", color=look.colour, linestyle=look.line,
            marker=look.marker, markevery=[0], linewidth=2,
        )  # fmt: skip
        nothing = float(rows["share"].iloc[0]) if rows["value"].iloc[0] == 0 else 0.0
        handles.append(line)
        names.append(f"{model} ({nothing:.0%} at 0)")
    ax.set_ylim(0, 1.02)
    style.percent(ax.yaxis)
    style.axis_names(ax, metric, "share of users with at most this value")
    style.legend(ax, handles, names)
    style.title(ax, "Who gets nothing")
    style.caption(ax, f"all users with a defined {metric}; {count_text(data['n'])} per model; the mark is the share at "
                      "the smallest value")  # fmt: skip
    return ax


# ------------------------------------------------------------------------------------------ gains and losses


def _winners_data(result: Any, metric: str, *, model: Any, baseline: Any, bins: int = 21) -> pd.DataFrame:
    """Return the frame that `winners` draws: `low`, `high`, `side`, `n`.

    {parameters_returns}
        One row per bin of the difference model − baseline: `side` is "loses", "ties" (one row, from 0 to 0) or
        "gains". The counts add up to the users with a value for both.
    """
    check_value("bins", bins, a_number(2, whole=True))
    difference = _differences(result, metric, model, baseline)
    tied = np.abs(difference) <= TIED_BELOW
    moved = difference[~tied]
    reach = float(np.abs(moved).max()) if len(moved) else 1.0
    half = max(bins // 2, 1)
    edges = np.linspace(0.0, reach, half + 1)
    gains, losses = np.histogram(moved[moved > 0], edges)[0], np.histogram(-moved[moved < 0], edges)[0]
    return pd.DataFrame({
        "low": [*-edges[:0:-1], 0.0, *edges[:-1]],
        "high": [*-edges[-2::-1], 0.0, *edges[1:]],
        "side": ["loses"] * half + ["ties"] + ["gains"] * half,
        "n": [*losses[::-1], int(tied.sum()), *gains],
    })  # fmt: skip


def _differences(result: Any, metric: str, model: Any, baseline: Any) -> FloatArray:
    """Return the difference of two models for every list that has a value for both.

    The rows of two models of one evaluation stand in the same order of lists, which is checked.
    """
    found = model_values(result, metric).by_model
    pair = [check_model(name, label, list(found)) for name, label in (("model", model), ("baseline", baseline))]
    if pair[0] == pair[1]:
        raise OptionError(f"model and baseline are both {pair[0]!r}; expected two models")
    lists = keys_of(result, pair)
    if len(found[pair[0]]) != len(found[pair[1]]) or not lists[pair[0]].equals(lists[pair[1]]):
        raise DataError(
            f"{pair[0]!r} and {pair[1]!r} were not evaluated on the same lists; evaluate them in one call with by="
        )
    difference = found[pair[0]] - found[pair[1]]
    return difference[~np.isnan(difference)]


def keys_of(result: Any, models: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return the list keys of some models, in the order of `per_user`."""
    keys, by = list(result.spec["user_col"]), list(result.spec["by"])
    if not by:
        raise OptionError("the evaluation was made without by=; evaluate with by=, so that there are models to compare")
    of_model = rows_by(result.per_user, by)
    return {model: result.per_user[keys].take(of_model[model]).reset_index(drop=True) for model in models}


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
    Users with the same value for both are counted in the caption and not drawn: they would hide all others.

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
        bars = ax.bar(rows["low"], rows["n"], width=rows["high"] - rows["low"], align="edge", color=colour,
                      edgecolor="white", linewidth=0.8, hatch=hatch)  # fmt: skip
        handles.append(bars)
        names.append(f"{totals[side]:,} users {'gain' if side == 'gains' else 'lose'}")
    ax.axvline(0, color=style.INK, linewidth=1)
    style.legend(ax, handles, names, beside=False)
    style.axis_names(ax, f"difference of {metric} per user: {model} − {baseline}", "users")
    style.title(ax, "Who gains and who loses")
    style.caption(
        ax, f"n = {totals.sum():,} users with a value for both; {totals['ties']:,} with the same value are not drawn"
    )
    return ax
