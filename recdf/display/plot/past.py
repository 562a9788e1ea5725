"""Pictures of the past: experiments whose offline and online differences are known, and the values
of a job by date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...diagnostics.history import History
from ...errors import OptionError
from ...experiments.decide.proxy_metrics import error_columns
from ...experiments.decide.proxy_metrics import proxy_metrics as relations
from ...tables.cells import amount, columns_before, estimated
from ..given_tables import (
    labels,
    need_history,
)
from . import style
from .picture import drawn_from
from .style import Axes

__all__ = ["history", "proxy_metrics"]

ONE_SIGMA = np.linspace(0, 2 * np.pi, 61)  # the points of an ellipse, by their angle


def _proxy_metrics_data(
    tests: pd.DataFrame,
    *,
    offline: str | Mapping[str, str],
    online: str | Mapping[str, str],
    cov: str | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Return what `proxy_metrics` draws: `label`, `x`, `x_se`, `y`, `y_se`, `cov`, `line`, `naive`.

    {parameters_returns}
        One row per experiment; `line` and `naive` are the heights of both lines above x, which go
        through the mean.
    """
    found = relations(tests, offline=offline, online=online, cov=cov, **options)
    if len(found) > 1:
        raise OptionError(
            f"⟦offline={offline!r}⟧ and ⟦online={online!r}⟧ are {len(found)} pairs; expected one "
            "of each"
        )
    row, data = found.iloc[0], tests[[]].reset_index(drop=True)
    data["label"] = data.index.astype(str)
    for axis, given in (
        ("x", error_columns("offline", offline)),
        ("y", error_columns("online", online)),
    ):
        for name, of in zip((axis, f"{axis}_se"), next(iter(given.items())), strict=True):
            data[name] = tests[of].to_numpy(np.float64)
    data["cov"] = tests[cov].to_numpy(np.float64) if cov else 0.0
    for column, slope in (("line", row["slope"]), ("naive", row["naive_slope"])):
        data[column] = data["y"].mean() + slope * (data["x"] - data["x"].mean())
    data.attrs = {"recdf_proxy": row.to_dict()}
    return data


@drawn_from(_proxy_metrics_data)
def proxy_metrics(
    tests: pd.DataFrame,
    *,
    offline: str | Mapping[str, str],
    online: str | Mapping[str, str],
    cov: str | None = None,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw past experiments, offline difference against online effect, with the line of the true
    effects.

    Parameters
    ----------
    tests : DataFrame
        As in `rd.experiments.proxy_metrics`: one row per experiment.
    offline, online : str or mapping
        The two columns of differences, one each; a mapping names the column of the standard errors.
    cov : str, optional
        Column of their sampling covariance.
    options
        Further options of `rd.experiments.proxy_metrics`, such as `smaller_is_better`.
    {ax_returns_raises}

    Notes
    -----
    Each ellipse reaches one standard error from its experiment on both axes. It is tilted where
    both differences were measured on the same users. The dashed line is the ordinary regression,
    which noise pulls towards 0.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> tests = pd.DataFrame(
    ...     {
    ...         "ndcg": [0.0, 0.01, 0.02, 0.03],
    ...         "ndcg_se": 0.001,
    ...         "ctr": [0.001, 0.004, 0.012, 0.014],
    ...         "ctr_se": 0.001,
    ...     }
    ... )
    >>> rd.plot.proxy_metrics.data(tests, offline="ndcg", online="ctr")[
    ...     ["x", "y", "line", "naive"]
    ... ].round(4)
          x      y    line   naive
    0  0.00  0.001  0.0007  0.0007
    1  0.01  0.004  0.0054  0.0054
    2  0.02  0.012  0.0101  0.0101
    3  0.03  0.014  0.0148  0.0148
    >>> ax = rd.plot.proxy_metrics(tests, offline="ndcg", online="ctr")
    """
    data = _proxy_metrics_data(tests, offline=offline, online=online, cov=cov, **options)
    row, records = data.attrs["recdf_proxy"], data.to_dict("records")
    frame = style.Frame(ax)
    muted = style.tone(frame.ax, style.MUTED)
    for at in (frame.ax.axhline, frame.ax.axvline):
        at(0, color=muted, linewidth=0.8)
    for one in records:
        frame.ax.plot(*_ellipse(one), color=style.COLOURS[0], linewidth=0.8, alpha=0.35)
    said = [
        f"{one['label']}: {style.spoken('offline', one['x'])}; {style.spoken('online', one['y'])}"
        for one in records
    ]
    points = style.ModelLook(style.COLOURS[0], "o", "none")
    frame.line(data["x"], data["y"], points, said, name="experiments")
    ordered = data.sort_values("x")
    for column, name, colour, line, width in (
        ("line", "true effects", style.COLOURS[1], "-", 2),
        ("naive", "naive regression", muted, "--", 1),
    ):
        if ordered[column].notna().any():
            look = style.ModelLook(colour, "", line)
            frame.line(ordered["x"], ordered[column], look, [name], name=name, linewidth=width)
    slope = estimated(row["slope"], row["slope_low"], row["slope_high"])
    return frame.finish(
        f"{row['online']} against {row['offline']}: {row['verdict']}",
        f"offline difference of {row['offline']}",
        f"online effect on {row['online']}",
        f"slope {slope}; {amount(row['n_tests'], 'experiment')}; ellipses: one standard error",
    )


def _ellipse(row: Mapping[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the points one standard error from an experiment, tilted by the correlation of both
    errors."""
    tilt = row["cov"] / (row["x_se"] * row["y_se"])
    across, up = np.cos(ONE_SIGMA), np.sin(ONE_SIGMA) * np.sqrt(max(1 - tilt**2, 0))
    return row["x"] + row["x_se"] * across, row["y"] + row["y_se"] * (tilt * across + up)


# -- a job


def _history_data(history: History, metric: str | None = None) -> pd.DataFrame:
    """Return what `history` draws: `model`, `date`, `value`, `ci_low`, `ci_high`, `changed`.

    {parameters_returns}
        One row per run and series; `changed` is true at the first run of a new level.
    """
    need_history(history)
    known = history.summary["column"].drop_duplicates().tolist()
    wanted = known[0] if metric is None else metric
    if wanted not in known:
        raise OptionError(f"no result has ⟦metric={metric!r}⟧; they have {known}")
    changes, rows = history.changes(wanted), history.summary[history.summary["column"] == wanted]
    before = columns_before(changes, "column")
    keys = [name for name in before if rows[name].nunique() > 1]
    begun = changes[changes["changed"].notna() & ~changes["effect"].isin(["", "none"])]
    own, at = (labels(one, keys) if keys else [wanted] * len(one) for one in (rows, begun))
    data = rows[["date", "value", "ci_low", "ci_high"]].reset_index(drop=True)
    data.insert(0, "model", own)
    levels = set(zip(at, begun["changed"], strict=True))
    data["changed"] = [pair in levels for pair in zip(own, data["date"], strict=True)]
    data.attrs = {"recdf_metric": wanted}
    return data


@drawn_from(_history_data)
def history(history: History, metric: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw a metric over the runs of a job, one line per model or segment, with the nights at which
    it changed.

    Parameters
    ----------
    history : History
        The results of the job.
    metric : str, optional
        Column such as "ndcg@10". Default: the first.
    {ax_returns_raises}
    OptionError
        A metric that no result has.

    Notes
    -----
    A band is the interval of each night by itself. A ring marks the first night of a new level, as
    `changes` finds it.

    Examples
    --------
    >>> import pandas as pd, recdf as rd, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for day in pd.date_range("2026-11-01", periods=3):
    ...     rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1").to_parquet(f"{folder}/{day:%Y-%m-%d}")
    >>> rd.plot.history.data(rd.diagnostics.History(folder))[["model", "date", "value", "changed"]]
       model       date  value  changed
    0  mrr@1 2026-11-01    1.0    False
    1  mrr@1 2026-11-02    1.0    False
    2  mrr@1 2026-11-03    1.0    False
    >>> ax = rd.plot.history(rd.diagnostics.History(folder))
    """
    data = _history_data(history, metric)
    wanted, frame = data.attrs["recdf_metric"], style.Frame(ax)

    def words(name: str, rows: pd.DataFrame) -> list[str]:
        nights = zip(rows["date"], rows["value"], strict=True)
        return [style.spoken(f"{date:%Y-%m-%d}", value) for date, value in nights]

    frame.lines(data.assign(band=True), "date", "value", words=words, markersize=4)
    rings: dict[str, Any] = {
        "marker": "o",
        "markersize": 13,
        "markerfacecolor": "none",
        "linestyle": "none",
    }
    for _, rows, look in style.by_model(data):
        begun = rows[rows["changed"]]
        frame.ax.plot(begun["date"], begun["value"], color=look.colour, **rings)
    style.dates(frame.ax)
    caption = "bands: intervals of single nights; rings: a new level begins"
    return frame.finish(f"{wanted} by date", "date", wanted, caption)
