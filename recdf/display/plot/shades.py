"""Values of a summary as a table of shades: segments by models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ...errors import OptionError, closest
from ...tables.cells import number
from ..given_tables import JOINED_BY, count_text, labels, need
from . import style
from .style import Axes

__all__ = ["heat"]


def _heat_data(summary: pd.DataFrame, *, rows: Any, columns: Any, metric: str | None = None) -> pd.DataFrame:
    """Return the frame that `heat` draws: `row`, `column`, `value`, `n`.

    {parameters_returns}
        One row per cell, in the order of the summary; categories with an order stand in it.
    """
    row_names = [rows] if isinstance(rows, str) else list(rows)
    column_names = [columns] if isinstance(columns, str) else list(columns)
    need(summary, "summary", [*row_names, *column_names, "value", "n"], "what rd.summarize returns")
    if "metric" in summary.columns:
        names = summary["metric"].astype(str) + summary["k"].map(lambda k: "" if pd.isna(k) else f"@{int(k)}")
        known = list(dict.fromkeys(names))
        if metric is None and len(known) > 1 and "metric" not in (*row_names, *column_names):
            raise OptionError(f"summary has {len(known)} metrics; name the one to draw in metric=: {known}")
        if metric is not None and metric not in known:
            raise OptionError(f"metric={metric!r} is not in the summary; it has {known}{closest(metric, known)}")
        summary = summary[names == metric] if metric is not None else summary
    ordered = [name for name in (*row_names, *column_names) if getattr(summary[name].dtype, "ordered", False)]
    summary = summary.sort_values(ordered, kind="stable") if ordered else summary
    data = pd.DataFrame({
        "row": labels(summary, row_names),
        "column": labels(summary, column_names),
        "value": summary["value"].to_numpy(dtype=np.float64, na_value=np.nan),
        "n": summary["n"].to_numpy(),
    })  # fmt: skip
    twice = data.duplicated(["row", "column"])
    if twice.any():
        cell = data.loc[twice, ["row", "column"]].iloc[0].tolist()
        raise OptionError(
            f"summary has several rows for the cell {cell}; name in rows= and columns= all columns that tell them apart"
        )
    return data


@style.drawn_from(_heat_data)
def heat(summary: pd.DataFrame, *, rows: Any, columns: Any, metric: str | None = None, ax: Axes | None = None) -> Axes:
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
    data = _heat_data(summary, rows=rows, columns=columns, metric=metric)
    wide = data.pivot(index="row", columns="column", values="value")
    grid = wide.reindex(index=list(dict.fromkeys(data["row"])), columns=list(dict.fromkeys(data["column"])))
    ax = style.new_axes(ax, width=2.2 + 1.2 * grid.shape[1], height=2.0 + 0.5 * grid.shape[0])
    ax.grid(False)
    low, high = np.nanmin(grid.to_numpy()), np.nanmax(grid.to_numpy())
    span = high - low
    ax.imshow(grid.to_numpy(), cmap="Blues", aspect="auto", vmin=low - 0.15 * span, vmax=high + 0.4 * span)
    cells = grid.to_numpy(dtype=np.float64)
    largest = float(np.nanmax(np.abs(cells)))
    digits = 0 if largest >= 1000 else 3 if largest < 10 else 1
    for i, j in np.ndindex(*grid.shape):
        value = cells[i, j]
        dark = high > low and (value - low) / (high - low) > 0.85
        ax.text(j, i, number(value, f",.{digits}f"), ha="center", va="center", fontsize=9,
                color="white" if dark else style.INK)  # fmt: skip
    style.axis_names(ax, _joined_names(columns), _joined_names(rows))
    style.tick_names(ax.xaxis, [str(name) for name in grid.columns])
    style.tick_names(ax.yaxis, [str(name) for name in grid.index])
    ax.tick_params(length=0)
    if grid.shape[1] > 6:
        ax.tick_params(axis="x", rotation=40)
    style.title(ax, metric or _only_metric(summary) or "value")
    style.caption(ax, f"mean of each cell, darker is larger; {count_text(data['n'])} lists per cell")
    return ax


def _joined_names(names: Any) -> str:
    """Join the names of several columns in the way in which the labels of their values are joined."""
    return names if isinstance(names, str) else JOINED_BY.join(names)


def _only_metric(summary: pd.DataFrame) -> str:
    """Return the name of the only metric of a summary, or an empty text if it has several."""
    if "metric" not in summary.columns or summary["metric"].nunique() != 1:
        return ""
    k = summary["k"].iloc[0]
    return str(summary["metric"].iloc[0]) + ("" if pd.isna(k) else f"@{int(k)}")
