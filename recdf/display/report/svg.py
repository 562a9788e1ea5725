"""A matplotlib picture as SVG inside a page: no style attributes, colours of the page, texts
outside.

Why: the page's policy allows no inline style, so that a text that slipped through could not restyle
it; the colours of axes and texts are classes, so that they follow light and dark; the title, the
legend and the caption become HTML, which wraps on a phone.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from ...errors import not_loaded
from ...tables.cells import visible
from ..plot import style
from .page_blocks import Drawing, Entry

SIZE = (3.7, 2.75)  # inches: one card, readable at the width of a phone
FONT = 9.5
KEPT_ATTRIBUTES = [
    "fill",
    "stroke",
    "stroke-width",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-linecap",
    "stroke-linejoin",
    "opacity",
    "fill-opacity",
    "stroke-opacity",
    "text-anchor",
    "font-size",
    "font-weight",
    "font-style",
]
# Attributes that hold coordinates and lengths. Two decimals of a point are enough to draw, and
# halve the page; every other decimal is data: a tick, a name such as mf_lr0.0004.
LENGTHS = [
    "d",
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "cx",
    "cy",
    "r",
    "width",
    "height",
    "points",
    "transform",
    "viewBox",
    "stroke-width",
    "stroke-dasharray",
    "stroke-dashoffset",
    "font-size",
]
# Colours that the page decides, by their share of the ink: its ink, its muted ink, its lines, its
# background.
INK = "#1f2328"
TONES = {1.0: "ink", style.MUTED: "muted", style.GRID: "grid", 0.0: "paper"}


def drawing(
    draw: Callable[[Any], Any],
    number: int,
    *,
    size: tuple[float, float] = SIZE,
    looks: dict[str, style.ModelLook] | None = None,
) -> Drawing:
    """Return what `draw(ax)` draws, as SVG with its title, legend and caption beside it.

    `looks` are those of all models of the page, so that a model has one colour in all of its
    pictures.
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as error:
        raise not_loaded("rd.report", "matplotlib", "recdf[report]", error) from error
    # The page's fonts draw the letters, so that a letter that matplotlib's font lacks is no problem
    # here.
    inks = (
        "text.color",
        "axes.labelcolor",
        *(f"{axis}tick.{what}" for axis in "xy" for what in ("color", "labelcolor")),
    )
    sizes = ("font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize")
    settings: dict[Any, Any] = {
        **dict.fromkeys(inks, INK),
        **dict.fromkeys(sizes, FONT),
        "svg.fonttype": "none",
        "svg.hashsalt": f"recdf-{number}",
        "font.family": "DejaVu Sans",
        "hatch.linewidth": 0.8,
        "axes.facecolor": "#ffffff",
    }
    page = style.PAGE.set(looks or {})
    try:
        with matplotlib.rc_context(settings), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            figure = Figure(figsize=size, layout="constrained")
            ax = figure.add_subplot()
            figure.patch.set_visible(False)
            ax.patch.set_visible(False)
            draw(ax)
            title, caption, entries = _take_texts(ax)
            said = _mark_artists(ax)
            tones = {style.tone(ax, share): name for share, name in TONES.items()}
            stream = io.StringIO()
            # Not savefig, which draws twice.
            canvas: Any = FigureCanvasSVG(figure)
            canvas.print_svg(stream, metadata={"Date": None, "Creator": None})
    finally:
        style.PAGE.reset(page)
    svg = _inline(stream.getvalue(), number, f"{title}. {caption}".strip(". "), said, tones)
    return Drawing(title, svg, caption, entries, size[0] > SIZE[0])


# -- texts


def _take_texts(ax: Any) -> tuple[str, str, tuple[Entry, ...]]:
    """Take the title, the caption and the legend out of the axes, and return them."""
    title = ax.get_title(loc="left")
    ax.set_title("", loc="left")
    caption, box = "", ax.get_legend()
    entries: tuple[Entry, ...] = ()
    for text in [one for one in ax.texts if one.get_gid() == "caption"]:
        caption = " ".join(text.get_text().split())
        text.remove()
    if box is not None:
        names = (" ".join(text.get_text().split()) for text in box.get_texts())
        entries = tuple(map(_entry, box.legend_handles, names))
        box.remove()
    return title, caption, entries


def _mark_artists(ax: Any) -> dict[str, tuple[str, list[str]]]:
    """Give an id to each artist that says something, and return what it says by its id."""
    found: dict[str, tuple[str, list[str]]] = {}
    for artist in ax.findobj(lambda one: hasattr(one, "recdf_says")):
        artist.set_gid(f"says-{len(found)}")
        found[f"says-{len(found)}"] = artist.recdf_says
    return found


def _entry(handle: Any, name: str) -> Entry:
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D

    if not isinstance(handle, Line2D):
        return Entry(name, to_hex(handle.get_facecolor()), "", "", True)
    known = {"--": "5 3", "-.": "6 2 1 2", ":": "1.5 2.5", "None": "none"}
    dashes = known.get(str(handle.get_linestyle()), "")
    marker = str(handle.get_marker()).replace("None", "")
    return Entry(name, to_hex(handle.get_color()), marker, dashes, False)


# -- markup


def _inline(
    source: str,
    number: int,
    label: str,
    said: Mapping[str, tuple[str, list[str]]],
    tones: Mapping[str, str],
) -> str:
    """Return the SVG without what a page does not need or does not allow."""
    root = ElementTree.fromstring(source)
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style", "title"):
                parent.remove(child)
    used = set(re.findall(r"url\(#([^)]+)\)", source)) | set(re.findall(r'href="#([^"]+)"', source))
    for element in root.iter():
        element.tag = _local(element.tag)
        _say(element, *said.get(element.attrib.get("id", ""), ("", [])))
    for element in root.iter():
        _plain_attributes(element, used, number, tones)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-label": label, "class": "picture"}
    return ElementTree.tostring(root, encoding="unicode")


def _say(element: ElementTree.Element, name: str, words: Sequence[str]) -> None:
    """Add what a browser shows when a reader points at an artist: a text for each of its points, or
    one for it."""
    marks = [one for one in element.iter() if _local(one.tag) == "use"]
    whole = [(element, words[0] if len(words) == 1 else name)] if words else []
    for one, text in zip(marks, words, strict=True) if len(marks) == len(words) > 1 else whole:
        tip = ElementTree.Element("title")
        tip.text = style.in_order(visible(text))
        one.insert(0, tip)


def _local(name: Any) -> str:
    return str(name).rpartition("}")[2]


def _plain_attributes(
    element: ElementTree.Element, used: set[str], number: int, tones: Mapping[str, str]
) -> None:
    """Styles become attributes, colours of the page classes, and ids are unique among the pictures
    of a page."""
    own = {_local(name): value for name, value in element.attrib.items()}
    own |= _styles(own.pop("style", ""))
    if own.get("id") in used:
        own["id"] = f"p{number}-{own['id']}"
    else:
        own.pop("id", None)
    for name, value in own.items():
        if name in LENGTHS:
            own[name] = re.sub(
                r"-?\d+\.\d{3,}",
                lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."),
                value,
            )
        if "#" in value and name in ("href", "clip-path", "fill", "stroke"):
            own[name] = re.sub(r"(^|\()#(?![0-9a-f]{6}$)", rf"\1#p{number}-", value)
    tinted = [name for name in ("fill", "stroke") if own.get(name) in tones]
    classes = [f"{name}-{tones[own.pop(name)]}" for name in tinted]
    if element.tag == "text" and "fill" not in own and not classes:
        classes.append("fill-ink")
    if classes:
        own["class"] = " ".join(classes)
    element.attrib.clear()
    element.attrib.update(own)


def _styles(text: str) -> dict[str, str]:
    """Declarations of a style attribute as attributes; of the shorthand `font` the size and the
    weight."""
    found = {}
    for declaration in text.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name in KEPT_ATTRIBUTES:
            found[name] = value
        elif name == "font":
            size = re.search(r"([\d.]+)px", value)
            found |= {"font-size": size[1]} if size else {}
            found |= {"font-weight": "bold"} if "bold" in value else {}
    return found


# The corners of the mark of a legend, by matplotlib's marker.
CORNERS = {
    "s": "9.0,2.0 17.0,2.0 17.0,10.0 9.0,10.0",
    "^": "13.0,1.5 18.0,10.5 8.0,10.5",
    "v": "13.0,10.5 18.0,1.5 8.0,1.5",
    "D": "13.0,0.8 18.2,6.0 13.0,11.2 7.8,6.0",
    "|": "12.0,1.0 14.0,1.0 14.0,11.0 12.0,11.0",
    "<": "8.0,6.0 17.5,1.0 17.5,11.0",
    "P": "11.0,1.0 15.0,1.0 15.0,4.0 18.0,4.0 18.0,8.0 15.0,8.0 "
    "15.0,11.0 11.0,11.0 11.0,8.0 8.0,8.0 8.0,4.0 11.0,4.0",
    "X": "13.0,1.0 17.8,4.5 15.9,10.0 10.1,10.0 8.2,4.5",
}


def swatch(entry: Entry) -> dict[str, Any]:
    """Return the shape of a legend's mark as the template draws it: a line, and the points of its
    marker."""
    drawn = entry.dashes != "none"
    return {
        "line": drawn and not entry.filled,
        "dashes": entry.dashes * drawn,
        "round": entry.marker in ("o", "."),
        "points": CORNERS.get(entry.marker, ""),
    }
