"""What a picture is, the drawer of all pictures, and how they look: colours with markers and lines
beside them, and names that fit.

Contract: a picture is a function that takes a table and yields twice: the frame that it draws, and
then the Axes on which a `Frame` has drawn it. So one function says what is drawn, with which marks,
and what stands around them. matplotlib is imported inside functions only, nothing changes its
global settings, and a text that comes from data is never read as mathematics (a model may be
called `$x$`).
"""

from __future__ import annotations

import inspect
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec

import numpy as np
from pandas import DataFrame, Series

from ...docstrings import says_as
from ...errors import DataError, OptionError, not_loaded
from ...judge.choices import as_columns
from ...tables.cells import estimated, form_of, number, short_names, visible
from ..given_tables import chosen

if TYPE_CHECKING:  # matplotlib is an extra: only type checkers need its names
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any


# Eight colours that colour-blind readers can tell apart, each with a contrast of at least 3 to 1 on
# white and on the dark background of the report. The first three and the last are those of Okabe
# and Ito (2008) or close to them.
COLOURS = ("#0b77b8", "#d55e00", "#0a9a72", "#b05aa0", "#a87b00", "#6b6ecf", "#a0522d", "#7d7d7d")
MARKERS = "os^DvPX<"
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MANY_MODELS = 4  # beyond these, bands of all models would hide one another
BEST = 5  # models that keep a colour where there are more models than colours

BETTER = COLOURS[0]
WORSE = COLOURS[1]
NEUTRAL = COLOURS[-1]
MARK_OF_SIGN = {  # colour, form and filling
    "open": (NEUTRAL, "o", "none"),
    "better": (BETTER, "^", BETTER),
    "worse": (WORSE, "v", WORSE),
}
ON_LIGHT = "#111111"  # texts in boxes that stay light in a dark style

# Shares of the ink in the colour of what stands back.
MUTED = 0.68
GRID = 0.18


class ModelLook(NamedTuple):
    """How one model is drawn wherever it appears: colour, marker and line say the same thing three
    times."""

    colour: str
    marker: str
    line: Any


@dataclass
class Drawing:
    """A picture on a page: the looks of all models of the page; the texts that it writes itself,
    title and caption; the lines of its legend, which are artists with their names until the page
    knows how it draws them; and the picture as SVG."""

    looks: Mapping[str, ModelLook]
    title: str = ""
    caption: str = ""
    legend: Sequence[Any] = ()
    svg: str = ""


PAGE: ContextVar[Drawing | None] = ContextVar("PAGE", default=None)

TAKEN: dict[str, int] = {}  # the places in COLOURS of names that were drawn, of the whole session
REST = ModelLook("#8a8a8a", ".", "-")  # models beyond those that have a colour


def looks(
    names: Iterable[str], first: Sequence[str] = (), drawn: dict[str, int] | None = None
) -> dict[str, ModelLook]:
    """Return the look of every name. A name keeps the look that it got when it was first drawn, so
    that a model has one colour in all pictures of a notebook, and of a page.

    Beyond eight names, only those of `first` have a look of their own.
    """
    names = list(dict.fromkeys(names))
    page = PAGE.get()
    if page and any(name in page.looks for name in names):
        return {name: page.looks.get(name, REST) for name in names}
    own = names
    most = len(COLOURS)
    if len(names) > most:
        own = [name for name in dict.fromkeys(first) if name in names][:most]
    if drawn is None:
        drawn = {} if page else TAKEN  # a page is the same whatever was drawn before
    some = most - (own is not names)  # the last colour is grey, as the others are
    places: dict[str, int] = {}
    for name in sorted(own, key=lambda one: one not in drawn):  # those that have one keep it
        # A place that nobody took, or else one that is free in this picture.
        wanted = (drawn.get(name, most), *range(len(drawn), some), *range(some), some)
        places[name] = next(n for n in wanted if n < most and n not in places.values())
        drawn.setdefault(name, places[name])
    return dict.fromkeys(names, REST) | {
        name: ModelLook(COLOURS[n], MARKERS[n], LINES[n % len(LINES)]) for name, n in places.items()
    }


def highlighted(highlight: Any, models: Iterable[Any]) -> list[str]:
    """Return the labels of the models that `highlight=` names."""
    known = [*map(str, models)]
    return [chosen("highlight", name, known) for name in as_columns(highlight)]


def best_first(values: Series, better: str, highlight: Any = None) -> list[str]:
    """Return the highlighted models and the five best of some values, whose index holds the
    models."""
    marked = highlighted(highlight, values.index)
    order = values.dropna().sort_values(ascending=better == "smaller", kind="stable").index
    return [*marked, *[name for name in map(str, order) if name not in marked][:BEST]]


def of_few_or_best(data: DataFrame, best: Sequence[str]) -> Series:
    """Tell for each row whether its model has a band: bands of many models would hide one
    another."""
    return data["model"].isin(best[:1]) | (data["model"].nunique() <= MANY_MODELS)


def by_model(data: DataFrame, first: Sequence[str] = ()) -> list[tuple[str, DataFrame, ModelLook]]:
    """Return the label, the rows and the look of every model, in the order of first appearance,
    grey ones first."""
    found = looks(data["model"].map(str), first)
    parts = [
        (str(model), rows, found[str(model)]) for model, rows in data.groupby("model", sort=False)
    ]
    return sorted(parts, key=lambda part: part[2] is not REST)


# -- texts


def spoken(names: Iterable[str], rows: DataFrame, value: str = "value") -> list[str]:
    """Return the value of each row with its interval in words, such as `knn: 0.185 [0.172,
    0.198]`."""
    numbers = rows[[value, "ci_low", "ci_high"]].to_numpy(float, na_value=np.nan)
    return [f"{name}: {estimated(*one)}" for name, one in zip(names, numbers, strict=True)]


def plain_text(*texts: Any) -> None:
    """Show texts as they stand: `$` and `_` of names are letters, and right-to-left names keep
    their place."""
    for text in texts:
        text.set_parse_math(False)
        text.set_text(in_order(text.get_text()))


def in_order(text: str) -> str:
    """Return a text whose right-to-left names do not turn their neighbours round: A − B stays A −
    B.

    A mark of the direction stands at the start of such a line and beside what joins names.
    """
    if not any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text):
        return text
    joined = re.sub(r"( − | vs\. | · | against |[:,] | \()", "\u200e\\1\u200e", text)
    return "\n".join(f"\u200e{line}" for line in joined.split("\n"))


def points(share: float = 1.0) -> float:
    """Return a size of letters, as a share of the size that matplotlib's settings give."""
    from matplotlib import rcParams

    return share * rcParams["font.size"]


def letters(inches: float, share: float = 1.0) -> int:
    """Return how many letters of a size stand in a length; a letter is about 0.6 of its size
    wide."""
    return max(6, int(inches * 72 / (0.6 * points(share))))


def wrapped(text: str, inches: float, share: float = 1.0, lines: int = 3) -> str:
    return textwrap.fill(visible(text), letters(inches, share), max_lines=lines, placeholder=" …")


def tone(ax: Any, share: float = 1.0) -> str:
    """Return the colour of the texts of some axes, mixed with their background: so a dark style
    stays legible."""
    from matplotlib.colors import to_hex, to_rgba

    backs = [to_rgba(one.get_facecolor()) for one in (ax, ax.figure)]
    back = np.array(next((one for one in backs if one[3] > 0), (1.0, 1.0, 1.0, 1.0)))
    mixed: Any = share * np.array(to_rgba(ax.xaxis.label.get_color())) + (1 - share) * back
    return to_hex(mixed)


# -- pictures

# What the docstrings of several pictures say. Later texts stand in earlier ones.
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
    "raises": "\n\nRaises\n------\nMissingExtraError\n    If matplotlib is not installed.",
}
OWN = "recdf"  # id of the figures that a picture made itself, which may grow
TICK_NAME_LENGTH = 24  # characters of a name beside a tick or a point
LEGEND_WIDTH = 40  # characters of a line of the legend, which holds the full name

PlotArguments = ParamSpec("PlotArguments")
Steps = Iterator[Any]  # of a picture: the frame that it draws, and then the Axes


class Picture(Generic[PlotArguments]):
    """A function that draws a table, and `.data`, the function that returns the frame that is
    drawn."""

    data: Callable[PlotArguments, DataFrame]
    __name__: str
    __signature__: inspect.Signature

    def __init__(self, steps: Callable[PlotArguments, Steps]) -> None:
        def data(*args: PlotArguments.args, **kwargs: PlotArguments.kwargs) -> DataFrame:
            return next(steps(*args, **kwargs))

        self._steps = steps
        self.data = data
        update_wrapper(self, says_as(PARAMETER_TEXTS)(steps))
        # The section `Data` of the docstring is that of the other function.
        doc, _, rest = str(steps.__doc__).partition("\n\nData\n----\n")
        columns, _, examples = rest.partition("\n\nExamples\n")
        self.__doc__ = f"{doc}\n\nExamples\n{examples}"
        self.__signature__ = inspect.signature(steps).replace(return_annotation="Axes")
        own = [one for name, one in self.__signature__.parameters.items() if name != "ax"]
        data.__signature__ = self.__signature__.replace(  # type: ignore[attr-defined]
            parameters=own, return_annotation="DataFrame"
        )
        data.__doc__ = (
            f"Return the frame that `rd.plot.{self.__name__}` draws with the same arguments, for "
            f"seaborn, altair or plotnine.\n\n{columns}"
        )

    def __call__(self, *args: PlotArguments.args, **kwargs: PlotArguments.kwargs) -> Any:
        steps = self._steps(*args, **kwargs)
        if next(steps).empty:
            raise DataError(f"rd.plot.{self.__name__}: the table has no rows to draw")
        return next(steps)

    def __repr__(self) -> str:
        return f"<recdf picture {self.__name__}>"


def says(artist: Any, words: Iterable[str], name: str = "") -> None:
    """Keep what a page shows when a reader points at an artist: one text for each point, or the
    name alone."""
    texts = list(words)
    artist.recdf_says = (name or texts[0], texts)


class Frame:
    """The axes of one picture: marks are drawn on them, and `finish` writes what stands around.

    `entries` holds the lines of the legend: artist, name and look of each. `suffix` holds what the
    legend, and a reader who points at a line, are told of a model.

    matplotlib lays texts out only when a figure is drawn. What is asked before that is estimated
    from the size of the letters, on the safe side.
    """

    def __init__(self, ax: Any, width: float = 6.4, height: float = 4.2) -> None:
        """Give axes a light grid and no frame, and their figure a layout in which no text is cut;
        nothing else changes."""
        _pyplot()
        if ax is None:
            (ax,) = _new_axes(figsize=(width, height))
        self.ax = ax  # any type, since matplotlib's own know fewer settings than it takes
        self.page = PAGE.get()
        self.entries: list[tuple[Any, str, ModelLook | None]] = []
        self.suffix: dict[str, str] = {}
        from matplotlib.ticker import AutoLocator, ScalarFormatter

        whole = ax.figure.figure  # of a subfigure, the figure around it
        if whole.get_layout_engine() is None:
            whole.set_layout_engine("constrained")
        muted = self.tone(MUTED)
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(muted)
        ax.tick_params(color=muted)
        ax.grid(True, color=self.tone(GRID), linewidth=0.6)
        ax.set_axisbelow(True)
        # In the caller's axes a legend takes its part of the width.
        across = (0.85 if self.page or self.is_own else 0.5) * self.width
        for axis, fit in ((ax.xaxis, across / 0.62), (ax.yaxis, self.height / 0.35)):
            ticks = axis.major
            if isinstance(ticks.locator, AutoLocator) and isinstance(
                ticks.formatter, ScalarFormatter
            ):
                axis.set_major_locator(AutoLocator())
                axis.get_major_locator().set_params(nbins=int(np.clip(fit, 2, 9)))
                self.number_ticks(axis)  # no "+1e3" in a corner, where the title is

    # -- room

    def tone(self, share: float = 1.0) -> str:
        return tone(self.ax, share)

    @property
    def is_own(self) -> bool:
        """Whether the figure was made here, so that it may grow."""
        return self.ax.figure.get_gid() == OWN

    @property
    def inches(self) -> Any:
        """How wide and how high the axes may be, before labels and a legend take their part."""
        figure = self.ax.figure
        return self.ax.get_position(original=True).size * figure.bbox.size / figure.dpi

    @property
    def width(self) -> float:
        return float(self.inches[0])

    @property
    def height(self) -> float:
        return float(self.inches[1])

    @property
    def rows_that_fit(self) -> int:
        """How many lines of text stand in the axes, below each other."""
        share = 0.95 if self.page else 0.65
        return max(2, int(share * 72 * self.height / points(1.3)))

    def cells_fit(self, rows: int, columns: int, length: int) -> bool:
        """Return whether a text of some letters stands in one cell of a table of shades."""
        return letters(self.width / columns, 0.9) > max(length, 6) and rows <= self.rows_that_fit

    def left_labels(self) -> float:
        """Return how wide the labels of the ticks left of the axes are, about."""
        texts = "\n".join(label.get_text() for label in self.ax.get_yticklabels())
        return max(map(len, texts.split("\n"))) * 0.58 * points() / 72

    # -- marks

    def line(
        self,
        x: Any,
        y: Any,
        look: ModelLook,
        words: Iterable[str],
        name: str = "",
        **settings: Any,
    ) -> Any:
        """Draw a line or its points, of which each says a text; its name is that of the legend."""
        own = {"color": look.colour, "marker": look.marker, "linestyle": look.line, "markersize": 5}
        (drawn,) = self.ax.plot(x, y, **own | settings)
        says(drawn, words, name)
        self.entries += [(drawn, name, look)] if name else []
        return drawn

    def reference(self, x: Any, y: Any, name: str, line: Any) -> None:
        """Draw a light line behind the others, to compare them with."""
        self.line(x, y, ModelLook(self.tone(MUTED), "", line), [name], name, linewidth=1, zorder=1)

    def lines(
        self,
        data: DataFrame,
        x: str,
        y: str,
        first: Sequence[str] = (),
        *,
        step: str | None = None,
        **settings: Any,
    ) -> None:
        """Draw one line per model, with a band where the column `band` says so. The column `said`
        tells of each point."""
        banded = data.get("band", Series(False, data.index))
        for model, rows, look in by_model(data, first):
            own = banded[rows.index]
            given = {"linewidth": 1 if look is REST else 2} | settings
            if banded.any() and not own.any():
                given |= {"linewidth": 1.1, "alpha": 0.75}
            if step:
                given["drawstyle"] = f"steps-{step}"
            words = f"{model}: {self.suffix[model]}" if model in self.suffix else model
            self.line(rows[x], rows[y], look, rows.get("said", [words]), model, **given)
            if own.any():
                self.band(rows[own], x, look.colour, step=step)

    def band(self, rows: DataFrame, x: str, colour: str, **settings: Any) -> None:
        ends = rows["ci_low"], rows["ci_high"]
        self.ax.fill_between(rows[x], *ends, color=colour, alpha=0.15, linewidth=0, **settings)

    def marks(
        self, x: Series, y: Any, signs: Series, said: Any, size: float, name: str = ""
    ) -> None:
        """Draw one mark per difference with the look of its sign, hollow where it is open."""
        marks = DataFrame({"x": x, "y": y, "said": said, "sign": signs}).dropna()
        for sign, (colour, marker, fill) in MARK_OF_SIGN.items():
            own = marks[marks["sign"] == sign]
            if len(own):
                look = ModelLook(colour, marker, "none")
                face = {"markersize": size, "markerfacecolor": fill}
                drawn = self.line(own["x"], own["y"], look, own["said"], "", **face)
                says(drawn, own["said"], name)

    def tiles(self, cells: DataFrame, *, left: bool = False) -> None:
        """Draw a table from the top: one box for each row of `x`, `y`, `colour`, `text` and `said`,
        the text in its middle or at its left edge."""
        from matplotlib.colors import to_rgba
        from matplotlib.patches import Rectangle

        edge = self.tone(GRID)
        at, side = (0.44, "left") if left else (0.0, "center")
        look = {"ha": side, "va": "center", "fontsize": points(0.9)}
        one: Any
        for one in cells.itertuples():
            box = Rectangle((one.x - 0.5, one.y - 0.5), 1, 1, facecolor=one.colour, edgecolor=edge)
            says(self.ax.add_patch(box), [one.said])
            ink = ON_LIGHT if to_rgba(one.colour)[3] else self.tone()
            plain_text(self.ax.text(one.x - at, one.y, one.text, color=ink, **look))
        self.ax.grid(False)
        self.ax.tick_params(length=0)
        x = cells["x"]
        y = cells["y"]
        self.ax.set(xlim=(x.min() - 0.5, x.max() + 0.5), ylim=(y.max() + 0.5, y.min() - 0.5))

    # -- ticks

    def tick_names(
        self,
        axis: Any,
        names: Sequence[str],
        length: int = TICK_NAME_LENGTH,
    ) -> None:
        """Write shortened names at the ticks 0, 1, ...; the full ones stand in the legend or in the
        data.

        Below the axes, a name is wrapped to the width of its place, or stands upright where that is
        narrow. Where there are more names than lines, every second, third, ... one is written.
        """
        texts = short_names(names, length)
        fits = len(names)
        turned = 0
        across = letters(self.width / max(fits, 1)) - 1
        longest = max(map(len, texts), default=0)
        if axis is self.ax.yaxis:
            texts = short_names(names, min(length, letters(0.5 * self.width)))
            fits = self.rows_that_fit
        elif across < min(8, longest):
            texts = short_names(names, letters(0.4 * self.height))
            turned = 90
            fits = int(72 * self.width / points(1.3))
        elif across < longest:
            texts = [textwrap.fill(text, across) for text in short_names(names, 3 * across)]
        step = -(-len(names) // fits)
        axis.set_ticks(range(0, len(names), step))
        plain_text(*axis.set_ticklabels(texts[::step], rotation=turned))

    def date_ticks(self) -> None:
        """Write dates in short, with the year once."""
        import matplotlib.dates

        untyped: Any = matplotlib.dates
        locator = untyped.AutoDateLocator(minticks=2, maxticks=max(3, int(self.width / 0.8)))
        self.ax.xaxis.set_major_locator(locator)
        self.ax.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))

    def number_ticks(self, axis: Any, sign: str = "") -> None:
        """Write the ticks of an axis in the digits that tell them apart; with "%", as per cents."""
        from matplotlib.ticker import FuncFormatter

        def text(place: float, _: Any) -> str:
            ticks = axis.get_majorticklocs()
            least = 1e-9 * np.abs(ticks).max(initial=0)  # what is smaller is 0, but for rounding
            form = form_of(*ticks[np.abs(ticks) > least], sign=sign, significant=9)
            return number(place if abs(place) > least else 0.0, form)

        axis.set_major_formatter(FuncFormatter(text))

    # -- what stands around

    def title(self, text: str, x: str, y: str = "") -> None:
        """Write the title and the names of the axes."""
        across = 1.22 * self.width - 0.4 - self.left_labels()
        plain_text(
            self.ax.set_xlabel(wrapped(x, min(self.width, across))),
            self.ax.set_ylabel(wrapped(y, 0.9 * self.height)),
        )
        if self.page:
            self.page.title = in_order(visible(text))
            return
        plain_text(self.ax.set_title(wrapped(text, across, 1.1), loc="left", fontsize=points(1.1)))

    def caption(self, text: str) -> None:
        """Write what the marks mean below the axes: intervals, counts, what is left out."""
        if self.page:
            self.page.caption = in_order(visible(text))
            return
        ax = self.ax
        below = ax.annotate(  # below the ticks and the name of the axis
            wrapped(text, 1.2 * self.width - 0.2, 0.85, 8),
            xy=(0, 0),
            xycoords=("axes fraction", ax.xaxis.label),
            xytext=(-72 * self.left_labels(), -7),
            textcoords="offset points",
            annotation_clip=False,
            ha="left",
            va="top",
            fontsize=points(0.85),
            color=self.tone(MUTED),
        )
        below.set_gid("caption")
        plain_text(below)

    def legend(self) -> None:
        """Add a legend with the names, wrapped, those with a colour before one line for all others,
        beside the axes, so that it covers nothing. A figure of our own grows by its width."""
        shown = sorted(self.entries, key=lambda one: one[2] is REST)
        told = self.suffix
        if (rest := sum(look is REST for _, _, look in shown)) > 1:
            told = {}
            shown[-rest:] = [(shown[-rest][0], f"{rest} others", REST)]
        handles = [one[0] for one in shown]
        ends = [f" ({told[name]})" if name in told else "" for _, name, _ in shown]
        names = [visible(name) for _, name, _ in shown]
        if self.page:
            texts = map(in_order, map(str.__add__, names, ends))
            self.page.legend = [*zip(handles, texts, strict=True)]
        if self.page or not handles:
            return
        across = LEGEND_WIDTH
        lines = 4
        look = {"fontsize": points(0.9), "labelcolor": self.tone(), "frameon": False}
        if not self.is_own:
            look["labelspacing"] = 0.2
            lines = int(np.clip(0.6 * 72 * self.height / points(1.2) / len(handles), 1, 4))
            across = min(LEGEND_WIDTH, letters(0.4 * self.width, 0.9))
        # Only a name of more lines than there are is cut, and what stands behind it is kept.
        cut = short_names(names, max(8, across * lines - max(map(len, ends))))
        lines_of = [textwrap.fill(name + end, across) for name, end in zip(cut, ends, strict=True)]
        # matplotlib leaves out labels that start with an underscore.
        written = [f" {text}" if text.startswith("_") else text or " " for text in lines_of]
        look |= {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0}
        box = self.ax.legend(handles, written, **look)
        plain_text(*box.get_texts())
        if self.is_own:
            figure = self.ax.figure
            extent = box.get_window_extent()
            width, height = figure.get_size_inches()
            least = extent.height / figure.dpi + 0.9
            figure.set_size_inches(width + extent.width / figure.dpi, max(height, least))

    def finish(self, name: str, x: str, y: str, below: str, *, shares: str = "") -> Any:
        """Write legend, names of the axes, title and caption. `shares` names the axes that show
        per cents."""
        for letter in shares:
            self.number_ticks(getattr(self.ax, f"{letter}axis"), "%")
        self.legend()
        self.title(name, x, y)
        self.caption(below)
        return self.ax


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise not_loaded("rd.plot", "matplotlib", "recdf[plot]", error) from error
    return matplotlib.pyplot


def _new_axes(*shape: int, **settings: Any) -> Any:
    """Return the axes of a new figure of our own, in a flat array."""
    figure, axes = _pyplot().subplots(*shape, layout="constrained", **settings)
    figure.set_gid(OWN)
    return np.ravel(axes)


def new_frames(
    axes: Any, n: int, rows: Sequence[int] = (), width: float = 8.0
) -> tuple[list[Frame], Any]:
    """Return `n` frames of small multiples, on the caller's axes or on those of a new figure, and
    what the picture returns: the only axes, or all in a flat array. With `rows`, they stand below
    each other, each as high as its rows need."""
    if axes is None and rows:
        inches = max(8.0, width), 1.0 + sum(0.36 * one + 0.62 for one in rows)
        axes = _new_axes(n, 1, figsize=inches, height_ratios=[one + 0.6 for one in rows])
    elif axes is None:
        down, across = -(-n // 3), min(3, n)
        made = _new_axes(down, across, figsize=(max(3.6 * across, 4.8), 3.1 * down + 0.6))
        axes, spare = np.split(made, [n])
        for one in spare:
            one.remove()
    found = np.asarray(axes, dtype=object).ravel()
    if len(found) != n:
        raise OptionError(
            f"ax holds {len(found)} axes; this picture has {n} panels, one per metric: pass {n} "
            "axes"
        )
    return [*map(Frame, found)], found[0] if n == 1 else found
