"""How every picture looks: colours with markers and lines beside them, and names that fit.

Contract: matplotlib is imported inside functions only, nothing changes its global settings, and a
text that comes from data is never read as mathematics (a model may be called `$x$`).
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...judge.choices import as_columns
from ...tables.cells import estimated, visible
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
MARK_OF_SIGN = {"open": (NEUTRAL, "o"), "better": (BETTER, "^"), "worse": (WORSE, "v")}
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


def best_first(values: pd.Series, better: str, highlight: Any = None) -> list[str]:
    """Return the highlighted models and the five best of some values, whose index holds the
    models."""
    marked = highlighted(highlight, values.index)
    order = values.dropna().sort_values(ascending=better == "smaller", kind="stable").index
    return [*marked, *[name for name in map(str, order) if name not in marked][:BEST]]


def of_few_or_best(data: DataFrame, best: Sequence[str]) -> pd.Series:
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
