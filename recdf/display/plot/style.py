"""How every picture looks: colours with markers and lines beside them, names that fit, axes,
captions.

Contract: matplotlib is imported inside functions only, nothing changes its global settings, and a
text that comes from data is never read as mathematics (a model may be called `$x$`).
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ...errors import OptionError, not_loaded
from ...tables.cells import estimated, form_of, number, short_names, visible
from ..given_tables import check_model

if TYPE_CHECKING:  # matplotlib is an extra: only type checkers need its names
    from matplotlib.axes import Axes as Axes
    from matplotlib.text import Text
else:
    Axes = Any


# Eight colours that colour-blind readers can tell apart, each with a contrast of at least 3 to 1 on
# white and on the dark background of the report. The first three and the last are those of Okabe
# and Ito (2008) or close to them.
COLOURS = ("#0b77b8", "#d55e00", "#0a9a72", "#b05aa0", "#a87b00", "#6b6ecf", "#a0522d", "#7d7d7d")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
BEST = 5  # models that keep a colour where there are more models than colours

BETTER, WORSE, NEUTRAL = COLOURS[0], COLOURS[1], COLOURS[-1]
MARK_OF_SIGN = {"open": (NEUTRAL, "o"), "better": (BETTER, "^"), "worse": (WORSE, "v")}
ON_LIGHT = "#111111"  # texts in boxes that stay light in a dark style

TICK_NAME_LENGTH = 24  # characters of a name beside a tick or a point
LEGEND_WIDTH = 40  # characters of a line of the legend, which holds the full name

MUTED, GRID = 0.68, 0.18  # shares of the ink in the colour of what stands back
OWN = "recdf"  # id of the figures that a picture made itself, which may grow
# The looks of all models of a page, where pictures stand on one; its titles, captions and legends
# are HTML.
PAGE: ContextVar[dict[str, Any] | None] = ContextVar("PAGE", default=None)


class ModelLook(NamedTuple):
    """How one model is drawn wherever it appears: colour, marker and line say the same thing three
    times."""

    colour: str
    marker: str
    line: Any


TAKEN: dict[str, int] = {}  # the places in COLOURS of names that were drawn, of the whole session
REST = ModelLook("#8a8a8a", ".", "-")  # models beyond those that have a colour


def looks(
    names: Sequence[str], first: Sequence[str] = (), drawn: dict[str, int] | None = None
) -> dict[str, ModelLook]:
    """Return the look of every name. A name keeps the look that it got when it was first drawn, so
    that a model has one colour in all pictures of a notebook, and of a page.

    Beyond eight names, only those of `first` have a look of their own.
    """
    names, page = list(dict.fromkeys(names)), PAGE.get()
    if page is not None and any(name in page for name in names):
        return {name: page.get(name, REST) for name in names}
    own, most = names, len(COLOURS)
    if len(names) > most:
        own = list(dict.fromkeys(name for name in first if name in names))[:most]
    if drawn is None:
        drawn = TAKEN if page is None else {}  # a page is the same whatever was drawn before
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


class Frame:
    """The axes of one picture: marks are drawn on them, and `finish` writes what stands around.

    `entries` holds the lines of the legend: artist, name and look of each.
    """

    def __init__(self, ax: Axes | None, width: float = 6.4, height: float = 4.2) -> None:
        made = pyplot()
        if ax is None:
            figure, ax = made.subplots(figsize=(width, height), layout="constrained")
            figure.set_gid(OWN)
        self.ax: Axes = dress(ax)
        self.entries: list[tuple[Any, str, ModelLook | None]] = []

    def line(self, x: Any, y: Any, look: ModelLook, words: Sequence[str], **settings: Any) -> Any:
        """Draw a line or its points, of which each says a text; its name is that of the legend."""
        name = settings.pop("name", "")
        looks_like = {"color": look.colour, "marker": look.marker, "linestyle": look.line}
        (drawn,) = self.ax.plot(x, y, **{**looks_like, "markersize": 5, **settings})
        says(drawn, words, name)
        self.entries += [(drawn, name, look)] if name else []
        return drawn

    def lines(
        self,
        data: pd.DataFrame,
        x: str,
        y: str,
        first: Sequence[str] = (),
        *,
        words: Callable[[str, pd.DataFrame], Sequence[str]],
        step: str | None = None,
        every: int = 0,
        **settings: Any,
    ) -> None:
        """Draw one line per model, with a band where the column `band` says so; a mark stands at
        every point, or at about `every` of them."""
        banded = data["band"] if "band" in data.columns else pd.Series(False, data.index)
        for model, rows, look in by_model(data, first):
            own, given = banded[rows.index], {"linewidth": 1 if look is REST else 2} | settings
            if banded.any() and not own.any():
                given |= {"linewidth": 1.1, "alpha": 0.75}
            if every:
                given["markevery"] = max(1, len(rows) // every)
            if step:
                given["drawstyle"] = f"steps-{step}"
            self.line(rows[x], rows[y], look, words(model, rows), name=model, **given)
            if own.any():
                self.band(rows[own], x, look.colour, step=step)

    def band(self, rows: pd.DataFrame, x: str, colour: str, **settings: Any) -> None:
        ends = rows["ci_low"], rows["ci_high"]
        self.ax.fill_between(rows[x], *ends, color=colour, alpha=0.15, linewidth=0, **settings)

    def marks(
        self, x: pd.Series, y: Any, signs: pd.Series, said: Sequence[str], size: float, name: str
    ) -> None:
        """Draw one mark per difference with the look of its sign, hollow where it is open."""
        places, known = np.asarray(y), x.notna() & pd.notna(y)
        for sign, (colour, marker) in MARK_OF_SIGN.items():
            own = np.flatnonzero((signs == sign) & known)
            if len(own):
                look, fill = ModelLook(colour, marker, "none"), "none" if sign == "open" else colour
                words, own_x = [said[i] for i in own.tolist()], x.iloc[own]
                points_of = {"markersize": size, "markerfacecolor": fill}
                drawn = self.line(own_x, places[own], look, words, **points_of)
                says(drawn, words, name)

    def tiles(self, cells: pd.DataFrame, *, left: bool = False) -> None:
        """Draw a table from the top: one box for each row of `x`, `y`, `colour`, `text` and `said`,
        the text in its middle or at its left edge."""
        from matplotlib.colors import to_rgba
        from matplotlib.patches import Rectangle

        edge, size = tone(self.ax, GRID), points(0.9)
        one: Any
        for one in cells.itertuples():
            box = Rectangle((one.x - 0.5, one.y - 0.5), 1, 1, facecolor=one.colour, edgecolor=edge)
            says(self.ax.add_patch(box), [one.said])
            ink = ON_LIGHT if to_rgba(one.colour)[3] else tone(self.ax)
            at, side = (one.x - 0.44, "left") if left else (one.x, "center")
            text = self.ax.text(at, one.y, one.text, ha=side, va="center", fontsize=size, color=ink)
            plain_text(text)
        self.ax.grid(False)
        self.ax.tick_params(length=0)
        x, y = cells["x"], cells["y"]
        self.ax.set(xlim=(x.min() - 0.5, x.max() + 0.5), ylim=(y.max() + 0.5, y.min() - 0.5))

    def legend(self, suffix: Mapping[str, str] | None = None) -> tuple[list[Any], list[str]]:
        """Return the artists and names of the legend: those with a colour, and one line for all
        others."""
        own = [one for one in self.entries if one[2] is not REST]
        others = [one for one in self.entries if one[2] is REST]
        own, others = (own + others, []) if len(others) == 1 else (own, others)
        names = [
            f"{name} ({suffix[name]})" if suffix and name in suffix and not others else name
            for _, name, _ in own
        ]
        more = [f"{len(others)} others"] if others else []
        return [one[0] for one in [*own, *others[:1]]], [*names, *more]

    def finish(
        self,
        name: str,
        x: str,
        y: str,
        below: str,
        *,
        shares: str = "",
        suffix: Mapping[str, str] | None = None,
        beside: bool = True,
    ) -> Axes:
        """Write legend, names of the axes, title and caption. `shares` names the axes that show
        per cents."""
        for letter in shares:
            formatted(getattr(self.ax, f"{letter}axis"), "%")
        legend([self.ax], *self.legend(suffix), beside=beside)
        axis_names(self.ax, x, y)
        title(self.ax, name)
        caption(self.ax, below)
        return self.ax


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


def new_grid(
    axes: Any,
    n: int,
    rows: Sequence[int] = (),
    width: float = 8.0,
) -> np.ndarray:
    """Return `n` axes of small multiples as a flat array: the caller's, or those of a new figure.
    With `rows`, they stand below each other, each as high as its rows need."""
    if axes is None:
        shape = (n, 1) if rows else (-(-n // 3), min(3, n))
        inches = max(3.6 * shape[1], 4.8), 3.1 * shape[0] + 0.6
        if rows:
            inches = max(8.0, width), 1.0 + sum(0.36 * one + 0.62 for one in rows)
        heights = {"height_ratios": [one + 0.6 for one in rows] or None}
        figure, made = pyplot().subplots(
            *shape, figsize=inches, layout="constrained", squeeze=False, gridspec_kw=heights
        )
        figure.set_gid(OWN)
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
    ax.spines[["left", "bottom"]].set_color(tone(ax, MUTED))
    ax.tick_params(color=tone(ax, MUTED))
    ax.grid(True, color=tone(ax, GRID), linewidth=0.6)
    ax.set_axisbelow(True)
    axis: Any
    for axis, inches, apart in (
        (ax.xaxis, x_axis(ax), 0.62),
        (ax.yaxis, room(ax)[1], 0.35),
    ):
        own = (
            isinstance(axis.get_major_locator(), AutoLocator),
            isinstance(axis.get_major_formatter(), ScalarFormatter),
        )
        if all(own):
            axis.set_major_locator(AutoLocator())
            axis.get_major_locator().set_params(nbins=int(np.clip(inches / apart, 2, 9)))
            formatted(axis)  # no "+1e3" in a corner, where the title is
    return ax


def title(ax: Axes, text: str) -> None:
    words = visible(text) if PAGE.get() is not None else wrapped(text, right_of_labels(ax), 1.1)
    plain_text(ax.set_title(words, loc="left", fontsize=points(1.1)))


def axis_names(ax: Axes, x: str, y: str) -> None:
    plain_text(ax.set_xlabel(wrapped(x, min(room(ax)[0], right_of_labels(ax)))))
    plain_text(ax.set_ylabel(wrapped(y, 0.9 * room(ax)[1])))


def caption(ax: Axes, text: str, panels: int = 1) -> None:
    """Write what the marks mean below the axes: intervals, counts, what is left out."""
    outside = PAGE.get() is not None
    muted = tone(ax, MUTED)
    look: dict[str, Any] = {"ha": "left", "va": "top", "fontsize": points(0.85), "color": muted}
    if panels > 1 and _is_own(ax):  # below all panels, not below one
        across = ax.figure.bbox.width / ax.figure.dpi - 0.2
        said = wrapped(text, across, 0.85, 4)
        below = ax.figure.supxlabel(said, x=0.01, **look | {"va": "bottom"})
    else:
        left = 0.0 if outside else left_labels(ax)
        words = text if outside else wrapped(text, 1.2 * room(ax)[0] - 0.2, 0.85, 8)
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


def _is_own(ax: Axes) -> bool:
    """Whether the figure of some axes was made here, so that it may grow."""
    return ax.figure is not None and ax.figure.get_gid() == OWN


def plain_text(text: Text) -> Text:
    """Show a text as it stands: `$` and `_` of names are letters, and right-to-left names keep
    their place."""
    text.set_parse_math(False)
    text.set_text(in_order(text.get_text()))
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
    width, height = room(axis.axes)
    texts, fits, upright = short_names(names, length), len(names), False
    across = letters(width / max(len(names), 1)) - 1
    if axis.axis_name == "y":
        texts = short_names(names, min(length, letters(0.5 * width)))
        texts = [
            f"{one}{text}" for one, text in zip(before or [""] * len(texts), texts, strict=True)
        ]
        fits = rows_that_fit(axis.axes)
    elif across < min(8, max(map(len, texts), default=0)):
        texts, upright = short_names(names, letters(0.4 * height)), True
        fits = int(72 * width / points(1.3))
    elif across < max(map(len, texts), default=0):
        texts = ["\n".join(textwrap.wrap(text, across)) for text in short_names(names, 3 * across)]
    step = -(-len(names) // fits)
    axis.set_ticks(range(0, len(names), step))
    for label in axis.set_ticklabels(texts[::step], rotation=90 if upright else 0):
        plain_text(label)


def tick_numbers(axis: Any, places: Sequence[Any], texts: Sequence[str]) -> None:
    """Write texts at places of an axis from the last one back, without those that would touch their
    neighbour."""
    width = x_axis(axis.axes)
    at = np.asarray(places, dtype=np.float64)
    span = float(at.max() - at.min()) or 1.0
    kept: list[int] = []
    for i in range(len(at) - 1, -1, -1):
        half = 0.32 * points() / 72 * (len(texts[i]) + len(texts[kept[-1]]) + 2) if kept else 0.0
        if not kept or width * (at[kept[-1]] - at[i]) / span >= half:
            kept.append(i)
    axis.set_ticks([places[i] for i in kept[::-1]])
    for label in axis.set_ticklabels([texts[i] for i in kept[::-1]]):
        plain_text(label)


def legend_texts(names: Sequence[str], width: int = LEGEND_WIDTH, lines: int = 4) -> list[str]:
    """Return the names, wrapped; only a name of more lines than there are is cut. A page wraps them
    itself."""
    texts = [visible(name) for name in names]
    if PAGE.get() is None:
        # What stands in brackets behind a name is kept, so that what is cut is the name.
        ends = [
            f" ({text.rpartition(' (')[2]}" * bool(re.search(r" \(.*\)$", text)) for text in texts
        ]
        heads = [text.removesuffix(end) for text, end in zip(texts, ends, strict=True)]
        heads = short_names(heads, max(8, width * lines - max(map(len, ends), default=0)))
        whole = (head + end for head, end in zip(heads, ends, strict=True))
        texts = ["\n".join(textwrap.wrap(text, width)) for text in whole]
    # matplotlib leaves out labels that start with an underscore.
    return [f" {text}" if text.startswith("_") else text or " " for text in texts]


def legend(
    panels: Sequence[Axes], handles: Sequence[Any], names: Sequence[str], beside: bool = True
) -> None:
    """Add a legend with the names, wrapped: beside the axes, so that it covers nothing, or above
    all of several. A figure of our own grows by its width or its height."""
    if not handles:
        return
    ax = panels[0]
    figure: Any = ax.figure
    holder: Any = ax
    own = _is_own(ax)
    look: dict[str, Any] = {"frameon": False, "fontsize": points(0.9), "labelcolor": tone(ax)}
    if len(panels) > 1 and figure is not None and len(figure.axes) == len(panels):
        width = letters(figure.bbox.width / figure.dpi, 0.9)
        longest = min(max(map(len, names)), LEGEND_WIDTH)
        look |= {
            "loc": "outside upper left",
            "ncols": int(np.clip(width // (longest + 7), 1, len(names))),
        }
        holder, texts, grows = figure, legend_texts(names), (0, 1)
    else:
        if beside:
            look |= {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0}
        across, lines = LEGEND_WIDTH, 4
        if not own:
            inside = room(ax)
            look["labelspacing"] = 0.2
            lines = int(np.clip(0.6 * 72 * inside[1] / points(1.2) / len(handles), 1, 4))
            across = min(LEGEND_WIDTH, letters(0.4 * inside[0], 0.9))
        texts, grows = legend_texts(names, across, lines), (int(beside), 0)
    box = holder.legend(list(handles), texts, **look)
    for text in box.get_texts():
        plain_text(text)
    if own and any(grows) and PAGE.get() is None:
        extent = box.get_window_extent()
        needs = np.array([extent.width, extent.height]) / figure.dpi
        least = needs + 0.9 * np.array(grows[::-1])
        figure.set_size_inches(np.maximum(figure.get_size_inches() + needs * grows, least))


def formatted(axis: Any, sign: str = "") -> None:
    """Write the ticks of an axis in the digits that tell them apart; with "%", as per cents."""
    from matplotlib.ticker import FuncFormatter

    def text(place: float, _: Any) -> str:
        ticks = np.asarray(axis.get_majorticklocs(), dtype=np.float64)
        least = 1e-9 * np.abs(ticks).max(initial=0)  # what is smaller is 0, but for rounding
        form = form_of(*ticks[np.abs(ticks) > least], sign=sign, significant=9)
        return number(place if abs(place) > least else 0.0, form)

    axis.set_major_formatter(FuncFormatter(text))


# ------------------------------------------------------------------------------------------
# Room: matplotlib lays texts out only when a figure is drawn. What is asked before that is
# estimated from the size of the letters, on the safe side.


def tone(ax: Axes, share: float = 1.0) -> str:
    """Return the colour of the texts of some axes, mixed with their background: so a dark style
    stays legible."""
    from matplotlib.colors import to_hex, to_rgba

    backs = [to_rgba(one.get_facecolor()) for one in (ax, ax.figure) if one is not None]
    back = next((one for one in backs if one[3] > 0), (1.0, 1.0, 1.0, 1.0))
    pairs = zip(to_rgba(ax.xaxis.label.get_color())[:3], back[:3], strict=True)
    red, green, blue = (share * ink + (1 - share) * paper for ink, paper in pairs)
    return str(to_hex((red, green, blue)))


def points(share: float = 1.0) -> float:
    """Return a size of letters, as a share of the size that matplotlib's settings give."""
    from matplotlib import rcParams

    return share * float(rcParams["font.size"])


def room(ax: Axes) -> tuple[float, float]:
    """Return how wide and how high some axes may be, in inches, before labels and a legend take
    their part."""
    box, figure = ax.get_position(original=True), ax.figure
    return box.width * figure.bbox.width / figure.dpi, box.height * figure.bbox.height / figure.dpi


def x_axis(ax: Axes) -> float:
    """Return how long the x axis is, about: in the caller's axes a legend takes its part of
    them."""
    return (0.85 if PAGE.get() is not None or _is_own(ax) else 0.5) * room(ax)[0]


def rows_that_fit(ax: Axes) -> int:
    """Return how many lines of text stand in some axes, below each other."""
    return max(2, int((0.95 if PAGE.get() is not None else 0.65) * 72 * room(ax)[1] / points(1.3)))


def letters(inches: float, share: float = 1.0) -> int:
    """Return how many letters of a size stand in a length; a letter is about 0.6 of its size
    wide."""
    return max(6, int(inches * 72 / (0.6 * points(share))))


def wrapped(text: str, inches: float, share: float = 1.0, lines: int = 3) -> str:
    return textwrap.fill(visible(text), letters(inches, share), max_lines=lines, placeholder=" …")


def left_labels(ax: Axes) -> float:
    """Return how wide the labels of the ticks left of some axes are, about."""
    longest = max(
        (len(line) for label in ax.get_yticklabels() for line in label.get_text().split("\n")),
        default=0,
    )
    return longest * 0.58 * points() / 72


def right_of_labels(ax: Axes) -> float:
    """Return how wide a title may be, which begins where the axes do."""
    return 1.22 * room(ax)[0] - 0.4 - left_labels(ax)


def in_order(text: str) -> str:
    """Return a text whose right-to-left names do not turn their neighbours round: A − B stays A −
    B.

    A mark of the direction stands at the start of such a line and beside what joins names.
    """
    if text.isascii() or not any(
        unicodedata.bidirectional(letter) in ("R", "AL") for letter in text
    ):
        return text
    lines = (
        re.sub(r"( − | vs\. | · | against |[:,] | \()", "\u200e\\1\u200e", line)
        for line in text.split("\n")
    )
    return "\n".join(f"\u200e{line}" for line in lines)


def cell_fits(ax: Axes, shape: tuple[int, ...], length: int) -> bool:
    """Return whether a text of some letters stands in one cell of a table of shades."""
    return letters(room(ax)[0] / shape[1], 0.9) > max(length, 6) and shape[0] <= rows_that_fit(ax)


def dates(ax: Axes) -> None:
    """Write dates in short, with the year once."""
    import matplotlib.dates

    untyped: Any = matplotlib.dates
    locator = untyped.AutoDateLocator(minticks=2, maxticks=max(3, int(room(ax)[0] / 0.8)))
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))
