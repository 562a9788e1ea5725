"""How much room a picture has: letters on a line, lines in some axes, names in their order, colours
of the texts.

Contract: matplotlib lays texts out only when a figure is drawn. What is asked before that is
estimated here from the size of the letters, on the safe side.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ...tables.cells import visible

if TYPE_CHECKING:  # matplotlib is an extra: only type checkers need its names
    from matplotlib.axes import Axes
else:
    Axes = Any

__all__: list[str] = []

MUTED, GRID = 0.68, 0.18  # shares of the ink in the colour of what stands back
OWN = "recdf"  # id of the figures that a picture made itself, which may grow
# The looks of all models of a page, where pictures stand on one; its titles, captions and legends
# are HTML.
PAGE: ContextVar[dict[str, Any] | None] = ContextVar("PAGE", default=None)


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
    alone = PAGE.get() is not None or (ax.figure is not None and ax.figure.get_gid() == OWN)
    return (0.85 if alone else 0.5) * room(ax)[0]


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
