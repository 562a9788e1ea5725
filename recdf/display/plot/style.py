"""How every picture looks: colours with markers and lines beside them, names that fit, axes,
captions.

Contract: matplotlib is imported inside functions only, nothing changes its global settings, and a
text that comes from data is never read as mathematics (a model may be called `$x$`).
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from functools import update_wrapper
from itertools import cycle
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from ...docstrings import fill
from ...errors import OptionError, not_loaded
from ...tables.cells import estimated, short_names, visible
from ..given_tables import check_model
from . import space

if TYPE_CHECKING:  # matplotlib is an extra: only type checkers need its names
    from matplotlib.axes import Axes as Axes
    from matplotlib.text import Text
else:
    Axes = Any

__all__: list[str] = []

# Eight colours that colour-blind readers can tell apart, each with a contrast of at least 3 to 1 on
# white and on the dark background of the report. The first three and the last are those of Okabe
# and Ito (2008) or close to them.
COLOURS = ("#0b77b8", "#d55e00", "#0a9a72", "#b05aa0", "#a87b00", "#6b6ecf", "#a0522d", "#7d7d7d")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
BEST = 5  # models that keep a colour where there are more models than colours

BETTER, WORSE, NEUTRAL = COLOURS[0], COLOURS[1], COLOURS[-1]

TICK_NAME_LENGTH = 24  # characters of a name beside a tick or a point
LEGEND_WIDTH = 40  # characters of a line of the legend, which holds the full name

# What the docstrings of several pictures say, and those of their `.data`. Later texts stand in
# earlier ones.
PARAMETER_TEXTS = {
    "ax_returns_raises": """\
ax : Axes, optional
    Where to draw. Default: a new figure.

Returns
-------
Axes{raises}""",
    "axes_returns_raises": """\
ax : Axes or list of Axes, optional
    Where to draw, one per metric. Default: a new figure.

Returns
-------
Axes or array of Axes
    One Axes for one metric, else a flat array.{raises}""",
    "highlight": """\
highlight : str or list of str, optional
    Models that keep a colour of their own where there are more than eight, such as the baseline.
    The five best keep theirs too; all others are grey.""",
    "raises": "\n\nRaises\n------\nMissingExtraError\n    If matplotlib is not installed.",
    "parameters_returns": """\
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
    """A function that draws a table, and `.data`, the function that returns the frame that is
    drawn."""

    def __init__(
        self, draw: Callable[PlotArguments, Drawn], data: Callable[Read, pd.DataFrame]
    ) -> None:
        self._draw, self.data = draw, data
        update_wrapper(self, draw)

    def __call__(self, *args: PlotArguments.args, **kwargs: PlotArguments.kwargs) -> Drawn:
        return self._draw(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<recdf picture {self._draw.__name__}>"


def drawn_from(
    data: Callable[Read, pd.DataFrame],
) -> Callable[[Callable[PlotArguments, Drawn]], Picture[PlotArguments, Drawn, Read]]:
    """Make a picture of a drawing function, beside the function that gives its data, with the
    `TEXTS` of both."""

    def with_data(draw: Callable[PlotArguments, Drawn]) -> Picture[PlotArguments, Drawn, Read]:
        names = ", ".join(inspect.signature(data).parameters)
        texts = {**PARAMETER_TEXTS, "names": names, "picture": draw.__name__}
        return Picture(fill(draw, texts), fill(data, texts))

    return with_data


class ModelLook(NamedTuple):
    """How one model is drawn wherever it appears: colour, marker and line say the same thing three
    times."""

    colour: str
    marker: str
    line: Any


REST = ModelLook("#8a8a8a", ".", "-")  # models beyond those that have a colour


def looks(names: Sequence[str], first: Sequence[str] = ()) -> dict[str, ModelLook]:
    """Return the look of every name, by its place in the order of first appearance.

    Beyond eight names, only those of `first` have a look of their own.
    """
    names, page = list(dict.fromkeys(names)), space.PAGE.get()
    if page is not None:
        return {name: page.get(name, REST) for name in names}
    many = len(names) > len(COLOURS)
    marked = (
        list(dict.fromkeys(name for name in first if name in names))[: len(COLOURS)]
        if many
        else names
    )
    own = zip(marked, map(ModelLook, COLOURS, MARKERS, cycle(LINES)), strict=False)
    return dict.fromkeys(names, REST) | dict(own)


def highlighted(highlight: Any, models: Sequence[str]) -> list[str]:
    """Return the labels of the models that `highlight=` names."""
    named = (
        [] if highlight is None else [highlight] if isinstance(highlight, str) else list(highlight)
    )
    return [check_model("highlight", name, models) for name in named]


def best_first(values: pd.Series, better: str, highlight: Any = None) -> list[str]:
    """Return the highlighted models and the five best of some values, whose index holds the
    models."""
    marked = highlighted(highlight, [str(name) for name in values.index])
    order = values.dropna().sort_values(ascending=better == "smaller", kind="stable")
    return [*marked, *[str(name) for name in order.index if str(name) not in marked][:BEST]]


def by_model(
    data: pd.DataFrame, first: Sequence[str] = ()
) -> list[tuple[str, pd.DataFrame, ModelLook]]:
    """Return the label, the rows and the look of every model, in the order of first appearance,
    grey ones first."""
    found = looks(data["model"].map(str).tolist(), first)
    parts = [
        (str(model), rows, found[str(model)]) for model, rows in data.groupby("model", sort=False)
    ]
    return sorted(parts, key=lambda part: part[2] is not REST)


def says(artist: Any, words: Sequence[str], name: str = "") -> None:
    """Keep what a page shows when a reader points at an artist: one text for each point, or the
    name alone."""
    artist.recdf_says = (name or words[0], list(words))


def spoken(name: str, value: Any, low: Any = np.nan, high: Any = np.nan) -> str:
    """Return a value with its interval in words, such as `knn: 0.185 [0.172, 0.198]`."""
    return f"{name}: {estimated(value, low, high)}"


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say which extra brings it."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise not_loaded("rd.plot", "matplotlib", "recdf[plot]", error) from error
    return matplotlib.pyplot


def new_axes(ax: Axes | None, width: float = 6.4, height: float = 4.2) -> Axes:
    """Return the axes to draw into: the caller's, or those of a new figure."""
    made = pyplot()
    if ax is None:
        figure, ax = made.subplots(figsize=(width, height), layout="constrained")
        figure.set_gid(space.OWN)
    return dress(ax)


def new_grid(
    axes: Any, n: int, columns: int = 3, size: tuple[float, float] = (3.6, 3.0)
) -> np.ndarray:
    """Return `n` axes of small multiples as a flat array: the caller's, or those of a new
    figure."""
    if axes is None:
        columns = min(columns, n)
        rows = -(-n // columns)
        inches = max(size[0] * columns, 4.8), size[1] * rows + 0.6
        figure, made = pyplot().subplots(
            rows, columns, figsize=inches, layout="constrained", squeeze=False
        )
        figure.set_gid(space.OWN)
        for spare in made.ravel()[n:]:
            figure.delaxes(spare)
        axes = made.ravel()[:n]
    found = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(found) != n:
        raise OptionError(
            f"ax holds {len(found)} axes; this picture has {n} panels, one per metric: pass {n} "
            "axes"
        )
    for one in found:
        dress(one)
    return found


def dress(ax: Axes) -> Axes:
    """Give axes a light grid and no frame, and their figure a layout in which no text is cut;
    nothing else changes."""
    from matplotlib.ticker import AutoLocator, ScalarFormatter

    whole: Any = ax.figure and ax.figure.figure  # of a subfigure, the figure around it
    if whole is not None and whole.get_layout_engine() is None:
        whole.set_layout_engine("constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(space.tone(ax, space.MUTED))
    ax.tick_params(color=space.tone(ax, space.MUTED))
    ax.grid(True, color=space.tone(ax, space.GRID), linewidth=0.6)
    ax.set_axisbelow(True)
    axis: Any
    for axis, inches, apart in (
        (ax.xaxis, space.x_axis(ax), 0.62),
        (ax.yaxis, space.room(ax)[1], 0.35),
    ):
        own = (
            isinstance(axis.get_major_locator(), AutoLocator),
            isinstance(axis.get_major_formatter(), ScalarFormatter),
        )
        if all(own):
            axis.set_major_locator(AutoLocator())
            axis.get_major_locator().set_params(nbins=int(np.clip(inches / apart, 2, 9)))
            axis.set_major_formatter(
                ScalarFormatter(useOffset=False)
            )  # no "+1e3" in a corner, where the title is
            axis.get_major_formatter().set_scientific(False)
    return ax


def title(ax: Axes, text: str) -> None:
    words = (
        visible(text)
        if space.PAGE.get() is not None
        else space.wrapped(text, space.right_of_labels(ax), 1.1)
    )
    plain_text(ax.set_title(words, loc="left", fontsize=space.points(1.1)))


def axis_names(ax: Axes, x: str, y: str) -> None:
    plain_text(ax.set_xlabel(space.wrapped(x, min(space.room(ax)[0], space.right_of_labels(ax)))))
    plain_text(ax.set_ylabel(space.wrapped(y, 0.9 * space.room(ax)[1])))


def caption(ax: Axes, text: str, panels: int = 1) -> None:
    """Write what the marks mean below the axes: intervals, counts, what is left out."""
    outside = space.PAGE.get() is not None
    muted = space.tone(ax, space.MUTED)
    look: dict[str, Any] = {
        "ha": "left",
        "va": "top",
        "fontsize": space.points(0.85),
        "color": muted,
    }
    if (
        panels > 1 and ax.figure is not None and ax.figure.get_gid() == space.OWN
    ):  # below all panels, not below one
        across = ax.figure.bbox.width / ax.figure.dpi - 0.2
        below = ax.figure.supxlabel(
            space.wrapped(text, across, 0.85, 4), x=0.01, **look | {"va": "bottom"}
        )
    else:
        left = 0.0 if outside else space.left_labels(ax)
        words = text if outside else space.wrapped(text, 1.2 * space.room(ax)[0] - 0.2, 0.85, 8)
        below = ax.annotate(  # below the ticks and the name of the axis
            words,
            xy=(0, 0),
            xycoords=("axes fraction", ax.xaxis.label),
            xytext=(-72 * left, -7),
            textcoords="offset points",
            annotation_clip=False,
            **look,
        )
    below.set_gid("caption")
    plain_text(below)


def plain_text(text: Text) -> Text:
    """Show a text as it stands: `$` and `_` of names are letters, and right-to-left names keep
    their place."""
    text.set_parse_math(False)
    text.set_text(space.in_order(text.get_text()))
    return text


def tick_names(
    axis: Any, names: Sequence[str], length: int = TICK_NAME_LENGTH, before: Sequence[str] = ()
) -> None:
    """Write shortened names at the ticks 0, 1, ...; the full ones stand in the legend or in the
    data.

    Below the axes, a name is wrapped to the width of its place, or stands upright where that is
    narrow. Where there are more names than lines, every second, third, ... one is written. `before`
    holds what stands before each name.
    """
    width, height = space.room(axis.axes)
    texts, fits, upright = short_names(names, length), len(names), False
    if axis.axis_name == "y":
        texts = short_names(names, min(length, space.letters(0.5 * width)))
        texts = (
            [f"{one}{text}" for one, text in zip(before, texts, strict=True)] if before else texts
        )
        fits = space.rows_that_fit(axis.axes)
    elif max(map(len, texts), default=0) > (
        across := space.letters(width / max(len(names), 1)) - 1
    ):
        upright = across < 8
        if upright:
            texts, fits = (
                short_names(names, space.letters(0.4 * height)),
                int(72 * width / space.points(1.3)),
            )
        else:
            texts = [
                "\n".join(textwrap.wrap(text, across)) for text in short_names(names, 3 * across)
            ]
    step = -(-len(names) // fits)
    axis.set_ticks(range(0, len(names), step))
    for label in axis.set_ticklabels(texts[::step], rotation=90 if upright else 0):
        plain_text(label)


def tick_numbers(axis: Any, places: Sequence[Any], texts: Sequence[str]) -> None:
    """Write texts at places of an axis from the last one back, without those that would touch their
    neighbour."""
    width = space.x_axis(axis.axes)
    at = np.asarray(places, dtype=np.float64)
    span = float(at.max() - at.min()) or 1.0
    kept: list[int] = []
    for i in range(len(at) - 1, -1, -1):
        half = (
            0.32 * space.points() / 72 * (len(texts[i]) + len(texts[kept[-1]]) + 2) if kept else 0.0
        )
        if not kept or width * (at[kept[-1]] - at[i]) / span >= half:
            kept.append(i)
    axis.set_ticks([places[i] for i in kept[::-1]])
    for label in axis.set_ticklabels([texts[i] for i in kept[::-1]]):
        plain_text(label)


def legend_texts(names: Sequence[str], width: int = LEGEND_WIDTH, lines: int = 4) -> list[str]:
    """Return the names, wrapped; only a name of more lines than there are is cut. A page wraps them
    itself."""
    texts = [visible(name) for name in names]
    if space.PAGE.get() is None:
        # What stands in brackets behind a name is kept, so that what is cut is the name.
        ends = [
            text[text.rindex(" (") :] if text.endswith(")") and " (" in text else ""
            for text in texts
        ]
        heads = [text.removesuffix(end) for text, end in zip(texts, ends, strict=True)]
        heads = short_names(heads, max(8, width * lines - max(map(len, ends), default=0)))
        texts = [
            "\n".join(textwrap.wrap(head + end, width))
            for head, end in zip(heads, ends, strict=True)
        ]
    # matplotlib leaves out labels that start with an underscore.
    return [f" {text}" if text.startswith("_") else text or " " for text in texts]


def legend(ax: Axes, handles: Sequence[Any], names: Sequence[str], beside: bool = True) -> None:
    """Add a legend with the names, wrapped; beside the axes, so that it covers nothing.

    A figure of our own grows by it. In the caller's, it takes less than half of the width, and
    names are shortened.
    """
    if not handles:
        return
    where: dict[str, Any] = (
        {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0} if beside else {}
    )
    own = ax.figure is not None and ax.figure.get_gid() == space.OWN
    width, height = space.room(ax)
    lines = int(np.clip(0.6 * 72 * height / space.points(1.2) / len(handles), 1, 4))
    where |= {} if own else {"labelspacing": 0.2}
    across = LEGEND_WIDTH if own else min(LEGEND_WIDTH, space.letters(0.4 * width, 0.9))
    texts = legend_texts(names, across, 4 if own else lines)
    box = ax.legend(
        list(handles),
        texts,
        frameon=False,
        fontsize=space.points(0.9),
        labelcolor=space.tone(ax),
        **where,
    )
    _dress_legend(box, ax.figure, (1, 0) if own and beside else None)


def _dress_legend(box: Any, figure: Any, grows: tuple[int, int] | None) -> None:
    """Show names as letters, and let a figure of our own grow by the width or the height of its
    legend."""
    for text in box.get_texts():
        plain_text(text)
    if grows is not None and space.PAGE.get() is None:
        extent = box.get_window_extent()
        needs = np.array([extent.width, extent.height]) / figure.dpi
        least = needs + 0.9 * np.array(grows[::-1])
        figure.set_size_inches(np.maximum(figure.get_size_inches() + needs * grows, least))


def shared_legend(panels: Sequence[Axes], handles: Sequence[Any], names: Sequence[str]) -> None:
    """Add one legend for small multiples above all of them, or beside the only one."""
    figure = panels[0].figure
    if len(panels) == 1 or figure is None or len(figure.axes) != len(panels):
        legend(panels[0], handles, names)
        return
    longest = max(len(name) for name in names)
    width = space.letters(figure.bbox.width / figure.dpi, 0.9)
    columns = max(1, min(len(names), width // (min(longest, LEGEND_WIDTH) + 7)))
    box = figure.legend(
        list(handles),
        legend_texts(names),
        loc="outside upper left",
        ncols=columns,
        frameon=False,
        fontsize=space.points(0.9),
        labelcolor=space.tone(panels[0]),
    )
    _dress_legend(box, figure, (0, 1) if figure.get_gid() == space.OWN else None)


def named(
    parts: Sequence[tuple[str, Any, ModelLook]], handles: Sequence[Any], suffix: Any = None
) -> tuple[list[Any], list[str]]:
    """Return the handles and names of a legend of models: those with a colour, and one line for all
    others."""
    pairs = [
        (handle, model)
        for (model, _, look), handle in zip(parts, handles, strict=True)
        if look is not REST
    ]
    others = [handle for (_, _, look), handle in zip(parts, handles, strict=True) if look is REST]
    names = [
        model if suffix is None or others else f"{model} ({suffix[model]})" for _, model in pairs
    ]
    found = [handle for handle, _ in pairs]
    if not others:
        return found, names
    return [*found, others[0]], [
        *names,
        f"{len(others)} other {'model' if len(others) == 1 else 'models'}",
    ]


def percent(axis: Any) -> None:
    """Show an axis of shares as per cents."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%".replace("-", "−")))
