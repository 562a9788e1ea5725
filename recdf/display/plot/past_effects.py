"""The picture of past experiments: what the offline metric said of each, and what the experiment found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...experiments.decide.proxy_metrics import proxy_metrics as relations
from ...tables.cells import digits_for, interval, number, visible
from . import space, style
from .style import Axes

__all__ = ["proxy_metrics"]

ONE_SIGMA = np.linspace(0, 2 * np.pi, 61)  # the points of an ellipse, by their angle


def _proxy_metrics_data(
    tests: pd.DataFrame, *, offline: str | Mapping[str, str], online: str | Mapping[str, str], cov: str | None = None,
    label_col: str | None = None, **options: Any,
) -> pd.DataFrame:  # fmt: skip
    """Return what `proxy_metrics` draws: `label`, `x`, `x_se`, `y`, `y_se`, `cov`, `line`, `naive`.

    {parameters_returns}
        One row per experiment; `line` and `naive` are the heights of both lines above x, which go through the mean.
    """
    found = relations(tests, offline=offline, online=online, cov=cov, **options)
    row = found.iloc[0]
    names = {"x": (row["offline"], offline), "y": (row["online"], online)}
    data = pd.DataFrame({"label": tests[label_col].map(visible) if label_col else np.arange(len(tests)).astype(str)})
    for axis, (name, given) in names.items():
        data[axis] = tests[name].to_numpy(np.float64)
        error = given[name] if isinstance(given, Mapping) else f"{name}_se"
        data[f"{axis}_se"] = tests[error].to_numpy(np.float64)
    data["cov"] = tests[cov].to_numpy(np.float64) if cov else 0.0
    for column, slope in (("line", row["slope"]), ("naive", row["naive_slope"])):
        data[column] = data["y"].mean() + slope * (data["x"] - data["x"].mean())
    data = data[["label", "x", "x_se", "y", "y_se", "cov", "line", "naive"]]
    data.attrs = {"recdf_proxy": row.to_dict()}
    return data


@style.drawn_from(_proxy_metrics_data)
def proxy_metrics(
    tests: pd.DataFrame, *, offline: str | Mapping[str, str], online: str | Mapping[str, str], cov: str | None = None,
    label_col: str | None = None, ax: Axes | None = None, **options: Any,
) -> Axes:  # fmt: skip
    """Draw past experiments, offline difference against online effect, with the line of the true effects.

    Parameters
    ----------
    tests : DataFrame
        As in `rd.experiments.proxy_metrics`: one row per experiment.
    offline, online : str or mapping
        The two columns of differences, one each; a mapping names the column of the standard errors.
    cov : str, optional
        Column of their sampling covariance.
    label_col : str, optional
        Column that names the experiments, for readers of the picture's data.
    options
        Further options of `rd.experiments.proxy_metrics`, such as `smaller_is_better`.
    {ax_returns_raises}

    Notes
    -----
    Each ellipse reaches one standard error from its experiment on both axes. It is tilted where both differences were
    measured on the same users. The dashed line is the ordinary regression, which noise pulls towards 0.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> tests = pd.DataFrame({"ndcg": [0.0, 0.01, 0.02, 0.03], "ndcg_se": 0.001, "ctr": [0.001, 0.004, 0.012, 0.014],
    ...                       "ctr_se": 0.001})
    >>> rd.plot.proxy_metrics.data(tests, offline="ndcg", online="ctr")[["x", "y", "line", "naive"]].round(4)
          x      y    line   naive
    0  0.00  0.001  0.0006  0.0007
    1  0.01  0.004  0.0053  0.0054
    2  0.02  0.012  0.0102  0.0101
    3  0.03  0.014  0.0149  0.0148
    >>> ax = rd.plot.proxy_metrics(tests, offline="ndcg", online="ctr")
    """
    data = _proxy_metrics_data(tests, offline=offline, online=online, cov=cov, label_col=label_col, **options)
    row = data.attrs["recdf_proxy"]
    ax = style.new_axes(ax)
    for at in (ax.axhline, ax.axvline):
        at(0, color=space.tone(ax, space.MUTED), linewidth=0.8)
    for _, one in data.iterrows():
        ax.plot(*_ellipse(one), color=style.COLOURS[0], linewidth=0.8, alpha=0.35)
    (points,) = ax.plot(data["x"], data["y"], color=style.COLOURS[0], marker="o", markersize=5, linestyle="none")
    style.says(points, [f"{one['label']}: {style.spoken('offline', one['x'])}; {style.spoken('online', one['y'])}"
                        for _, one in data.iterrows()], "experiments")  # fmt: skip
    ordered, lines = data.sort_values("x"), []
    if not np.isnan(row["slope"]):
        lines += ax.plot(ordered["x"], ordered["line"], color=style.COLOURS[1], linewidth=2)
    lines += ax.plot(ordered["x"], ordered["naive"], color=space.tone(ax, space.MUTED), linewidth=1, linestyle="--")
    style.legend(ax, [points, *lines], ["experiments", *["true effects"] * (len(lines) - 1), "naive regression"])
    style.axis_names(ax, f"offline difference of {row['offline']}", f"online effect on {row['online']}")
    style.title(ax, f"{row['online']} against {row['offline']}: {row['verdict']}")
    form = f".{digits_for(row['slope'], row['slope_low'], row['slope_high'])}f"
    slope = f"slope {number(row['slope'], form)} {interval(row['slope_low'], row['slope_high'], form)}".rstrip()
    style.caption(ax, f"{slope}; {row['n_tests']} experiments; ellipses: one standard error")
    return ax


def _ellipse(row: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the points one standard error from an experiment, tilted by the correlation of both errors."""
    tilt = row["cov"] / (row["x_se"] * row["y_se"])
    first, second = np.cos(ONE_SIGMA), tilt * np.cos(ONE_SIGMA) + np.sqrt(max(1 - tilt**2, 0)) * np.sin(ONE_SIGMA)
    return row["x"] + row["x_se"] * first, row["y"] + row["y_se"] * second
