"""How every picture looks: colours with markers and lines beside them, names that fit, axes, captions.

Contract: matplotlib is imported inside functions only, nothing changes its global settings, and a text that comes
from data is never read as mathematics (a model may be called `$x$`).
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from ...errors import MissingExtraError, OptionError
from ...tables.cells import shorten, visible

if TYPE_CHECKING:  # matplotlib is an extra: only type checkers need its names
    from matplotlib.axes import Axes as Axes
    from matplotlib.text import Text
else:
    Axes = Any

__all__: list[str] = []

# Eight colours that colour-blind readers can tell apart, each with a contrast of at least 3 to 1 on white and on
# the dark background of the report. The first five are those of Okabe and Ito (2008) or close to them.
COLOURS = ("#0b77b8", "#d55e00", "#0a9a72", "#b05aa0", "#7d7d7d", "#a87b00", "#6b6ecf", "#a0522d")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))

BETTER, WORSE, NEUTRAL = COLOURS[0], COLOURS[1], "#7d7d7d"
INK, MUTED, GRID = "#1f2328", "#656d76", "#d0d7de"

TICK_NAME_LENGTH = 24  # characters of a name beside a tick or a point
LEGEND_WIDTH = 40  # characters of a line of the legend, which holds the full name
CAPTION_SIZE = 8.5

# What the docstrings of several pictures say, and those of their `.data`. Later texts stand in earlier ones.
PARAMETER_TEXTS = {
    "{ax_returns_raises}": """\
ax : Axes, optional
    Where to draw. Default: a new figure.

Returns
-------
Axes{raises}""",
    "{axes_returns_raises}": """\
ax : Axes or list of Axes, optional
    Where to draw, one per metric. Default: a new figure.

Returns
-------
Axes or array of Axes
    One Axes for one metric, else a flat array.{raises}""",
    "{raises}": "\n\nRaises\n------\nMissingExtraError\n    If matplotlib is not installed.",
    "{parameters_returns}": """\
Parameters
----------
{names}
    As in `rd.plot.{picture}`.

Returns
-------
DataFrame""",
}

PlotArguments = ParamSpec("PlotArguments")
Read = ParamSpec("Read")
Drawn = TypeVar("Drawn")


class Picture(Generic[PlotArguments, Drawn, Read]):
    """A function that draws a table, and `.data`, the function that returns the frame that is drawn."""

    def __init__(self, draw: Callable[PlotArguments, Drawn], data: Callable[Read, pd.DataFrame]) -> None:
        self._draw, self.data = draw, data
        update_wrapper(self, draw)

    def __call__(self, *args: PlotArguments.args, **kwargs: PlotArguments.kwargs) -> Drawn:
        return self._draw(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<recdf picture {self._draw.__name__}>"


def drawn_from(
    data: Callable[Read, pd.DataFrame],
) -> Callable[[Callable[PlotArguments, Drawn]], Picture[PlotArguments, Drawn, Read]]:
    """Make a picture of a drawing function, beside the function that gives its data, with the `TEXTS` of both."""

    def with_data(draw: Callable[PlotArguments, Drawn]) -> Picture[PlotArguments, Drawn, Read]:
        words = {"{names}": ", ".join(inspect.signature(data).parameters), "{picture}": draw.__name__}
        for function in (draw, data):
            doc = inspect.getdoc(function) or ""
            for place, text in {**PARAMETER_TEXTS, **words}.items():
                doc = doc.replace(place, text)
            function.__doc__ = doc
        return Picture(draw, data)

    return with_data


class ModelLook(NamedTuple):
    """How one model is drawn wherever it appears: colour, marker and line say the same thing three times."""

    colour: str
    marker: str
    line: Any


def looks(names: Sequence[str]) -> dict[str, ModelLook]:
    """Return the look of every name, by its place in the order of first appearance."""
    return {
        name: ModelLook(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], LINES[i % len(LINES)])
        for i, name in enumerate(dict.fromkeys(names))
    }


def by_model(data: pd.DataFrame) -> list[tuple[str, pd.DataFrame, ModelLook]]:
    """Return the label, the rows and the look of every model, in the order of first appearance."""
    found = looks(data["model"].map(str).tolist())
    return [(str(model), rows, found[str(model)]) for model, rows in data.groupby("model", sort=False)]


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say which extra brings it."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise MissingExtraError(
            "rd.plot needs matplotlib, which is not installed; install it with: pip install 'recdf[plot]'"
        ) from error
    return matplotlib.pyplot


def new_axes(ax: Axes | None, width: float = 6.4, height: float = 4.2) -> Axes:
    """Return the axes to draw into: the caller's, or those of a new figure."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
    pyplot()
    return dress(ax)


def new_grid(axes: Any, n: int, columns: int = 3, size: tuple[float, float] = (3.6, 3.0)) -> np.ndarray:
    """Return `n` axes of small multiples as a flat array: the caller's, or those of a new figure."""
    if axes is None:
        columns = min(columns, n)
        rows = -(-n // columns)
        figure, made = pyplot().subplots(
            rows,
            columns,
            figsize=(max(size[0] * columns, 4.8), size[1] * rows + 0.6),
            layout="constrained",
            squeeze=False,
        )
        for spare in made.ravel()[n:]:
            figure.delaxes(spare)
        axes = made.ravel()[:n]
    found = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(found) != n:
        raise OptionError(f"ax holds {len(found)} axes; this picture has {n} panels, one per metric: pass {n} axes")
    for one in found:
        dress(one)
    return found


def dress(ax: Axes) -> Axes:
    """Give axes a light grid and no frame; only these axes are changed."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(MUTED)
    ax.tick_params(colors=MUTED, labelcolor=INK)
    ax.grid(True, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def title(ax: Axes, text: str) -> None:
    plain_text(ax.set_title(visible(text), loc="left", fontsize=11, color=INK))


def axis_names(ax: Axes, x: str, y: str) -> None:
    plain_text(ax.set_xlabel(textwrap.fill(visible(x), 44, max_lines=3), color=INK))
    plain_text(ax.set_ylabel(textwrap.fill(visible(y), 32, max_lines=3), color=INK))


def caption(ax: Axes, text: str) -> None:
    """Write what the marks mean below the axes: intervals, counts, what is left out."""
    below = ax.annotate(
        textwrap.fill(visible(text), 84),
        xy=(0, 0),
        xycoords=("axes fraction", ax.xaxis.label),  # below the ticks and the name of the axis, wherever these end
        xytext=(0, -7),
        textcoords="offset points",
        ha="left",
        va="top",
        fontsize=CAPTION_SIZE,
        color=MUTED,
        annotation_clip=False,
    )
    below.set_gid("caption")
    plain_text(below)


def plain_text(text: Text) -> Text:
    """Show a text as it stands: `$` and `_` of names are letters."""
    text.set_parse_math(False)
    return text


def tick_names(axis: Any, names: Sequence[str]) -> None:
    """Write shortened names at the ticks 0, 1, ...; the full ones stand in the legend or in the data."""
    axis.set_ticks(range(len(names)))
    for label in axis.set_ticklabels([shorten(visible(name), TICK_NAME_LENGTH) for name in names]):
        plain_text(label)


def legend_texts(names: Sequence[str]) -> list[str]:
    """Return the full names, wrapped; only a name of more than four lines is cut."""
    texts = ["\n".join(textwrap.wrap(visible(name), LEGEND_WIDTH, max_lines=4, placeholder="…")) for name in names]
    # matplotlib leaves out labels that start with an underscore.
    return [f" {text}" if text.startswith("_") else text or " " for text in texts]


def legend(ax: Axes, handles: Sequence[Any], names: Sequence[str], beside: bool = True) -> None:
    """Add a legend with the full names, wrapped; beside the axes, so that it covers nothing."""
    if not handles:
        return
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0} if beside else {}
    box = ax.legend(list(handles), legend_texts(names), frameon=False, fontsize=9, **where)
    for text in box.get_texts():
        plain_text(text)


def shared_legend(panels: Sequence[Axes], handles: Sequence[Any], names: Sequence[str]) -> None:
    """Add one legend for small multiples above all of them, or beside the only one."""
    figure = panels[0].figure
    if len(panels) == 1 or figure is None or len(figure.axes) != len(panels):
        legend(panels[0], handles, names)
        return
    longest = max(len(name) for name in names)
    columns = max(1, min(len(names), 96 // (min(longest, LEGEND_WIDTH) + 6)))
    box = figure.legend(
        list(handles), legend_texts(names), loc="outside upper left", ncols=columns, frameon=False, fontsize=9
    )
    for text in box.get_texts():
        plain_text(text)


def percent(axis: Any) -> None:
    """Show an axis of shares as per cents."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%".replace("-", "−")))
