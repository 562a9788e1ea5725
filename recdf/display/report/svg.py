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
from collections.abc import Callable, Mapping
from typing import Any
from xml.etree import ElementTree

from ...errors import not_loaded
from ...tables.cells import visible
from ..page_blocks import Entry
from ..plot import picture

SIZE = (3.7, 2.75)  # inches: one card, readable at the width of a phone
FONT = 9.5
# Colours that the page decides, by their share of the ink: its ink, its muted ink, its lines, its
# background.
INK = "#1f2328"
TONES = {1.0: "ink", picture.MUTED: "muted", picture.GRID: "grid", 0.0: "paper"}


def drawing(
    draw: Callable[[Any], Any],
    number: int,
    *,
    size: tuple[float, float] = SIZE,
    looks: Mapping[str, picture.ModelLook] = {},
) -> picture.Drawing:
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
    inks = "text.color xtick.color ytick.color axes.labelcolor xtick.labelcolor ytick.labelcolor"
    sizes = "font.size axes.labelsize xtick.labelsize ytick.labelsize"
    settings: dict[Any, Any] = {
        **dict.fromkeys(inks.split(), INK),
        **dict.fromkeys(sizes.split(), FONT),
        "svg.fonttype": "none",
        "svg.hashsalt": f"recdf-{number}",
        "font.family": "DejaVu Sans",
        "hatch.linewidth": 0.8,
        "axes.facecolor": "#ffffff",
    }
    page = picture.Drawing(looks)
    before = picture.PAGE.set(page)
    try:
        with matplotlib.rc_context(settings), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            figure = Figure(figsize=size, layout="constrained")
            ax: Any = figure.add_subplot()
            figure.patch.set_visible(False)
            ax.patch.set_visible(False)
            draw(ax)
            # What an artist says is found again by its id.
            said: dict[str, tuple[str, list[str]]] = {}
            for i, artist in enumerate(ax.findobj(lambda one: hasattr(one, "recdf_says"))):
                artist.set_gid(f"says-{i}")
                said[f"says-{i}"] = artist.recdf_says
            tones = {picture.tone(ax, share): name for share, name in TONES.items()}
            stream = io.StringIO()
            # Not savefig, which draws twice.
            canvas = FigureCanvasSVG(figure)
            canvas.print_svg(stream, metadata={"Date": None, "Creator": None})
    finally:
        picture.PAGE.reset(before)
    root = _root(stream.getvalue(), number, said, tones)
    label = f"{page.title}. {page.caption}".strip(". ")
    root.attrib |= {"role": "img", "aria-label": label, "class": "picture"}
    page.svg = ElementTree.tostring(root, encoding="unicode")
    page.legend = [_entry(handle, name) for handle, name in page.legend]
    return page


def _entry(handle: Any, name: str) -> Entry:
    """Return a line of the legend, or the first of some bars, with what the template draws as its
    mark."""
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D

    if not isinstance(handle, Line2D):
        return Entry(name, to_hex(handle[0].get_facecolor()), filled=True)
    look: Any = handle.get_linestyle(), handle.get_marker()
    return Entry(name, to_hex(handle.get_color()), False, *look)


# -- markup


def _root(
    source: str,
    number: int,
    said: Mapping[str, tuple[str, list[str]]],
    tones: Mapping[str, str],
) -> ElementTree.Element:
    """Return the SVG without what a page does not need or does not allow: styles become attributes,
    colours of the page classes, and ids are unique among the pictures of a page."""
    root = ElementTree.fromstring(source)
    used = {*re.findall(r"""(?:url\(|href=")#([^")]+)""", source)}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style", "}title")):
                parent.remove(child)
    for element in list(root.iter()):
        element.tag = _local(element.tag)
        own = {_local(name): value for name, value in element.attrib.items()}
        # What a browser shows when a reader points at an artist: a text for each of its points, or
        # one for it.
        name, words = said.get(own.get("id", ""), ("", []))
        marks = element.findall(".//{*}use")
        if not (len(marks) == len(words) > 1):
            marks = [element]
            words = (words if len(words) == 1 else [name])[: len(words)]
        for mark, text in zip(marks, words, strict=False):
            tip = ElementTree.Element("title")
            tip.text = picture.in_order(visible(text))
            mark.insert(0, tip)
        own |= _styles(own.pop("style", ""))
        own["id"] = f"p{number}-{own['id']}" if own.get("id") in used else ""
        for name, value in own.items():
            # Two decimals of a point are enough to draw, and halve the page.
            value = re.sub(r"-?\d+\.\d{3,}", lambda found: f"{round(float(found[0]), 2):g}", value)
            own[name] = re.sub(r"(^|\()#(?![0-9a-f]{6}$)", rf"\1#p{number}-", value)
        inked = [name for name in ("fill", "stroke") if own.get(name) in tones]
        classes = [f"{name}-{tones[own.pop(name)]}" for name in inked]
        if element.tag == "text" and "fill" not in own and not classes:
            classes = ["fill-ink"]
        own["class"] = " ".join(classes)
        element.attrib = {name: value for name, value in own.items() if value}
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    return root


def _local(name: Any) -> str:
    return str(name).rpartition("}")[2]


def _styles(text: str) -> dict[str, str]:
    """Return the declarations of a style attribute as attributes; of the shorthand `font` the size
    and the weight. The page has one family of fonts."""
    found = dict(re.findall(r"([\w-]+): *([^;]+)", text))
    font = found.pop("font", "")
    found.pop("font-family", None)
    if size := re.search(r"([\d.]+)px", font):
        found["font-size"] = size[1]
    if "bold" in font:
        found["font-weight"] = "bold"
    return found
