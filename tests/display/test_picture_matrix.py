"""Every picture at every size: few and many models, short, long and right-to-left names, small
axes, dark, in a page.

What a reader sees is asked of matplotlib's renderer: no text outside its picture or over another,
none below 9 pixels, no axis whose labels repeat, no colour used twice without another mark, and in
a page the texts that matplotlib wrote. Every picture is drawn here for some combinations;
`--hypothesis-profile=soak` draws all of them.
"""

import itertools
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from display.plot_tables import effects
from hypothesis import settings
from matplotlib.colors import to_rgb
from matplotlib.text import Text

import recdf as rd
from recdf.display.plot import picture as style
from recdf.display.report.svg import SIZE, drawing

NAMES = {
    "short": "m{}",
    "long": "transformer-with-a-long-name-of-its-run-{:02}-trained-on-w48",  # 60 characters
    "right-to-left": "מודל שלום {}",
    "decimals": "mf_lr0.{:04}",
}
MODES = ("own figure", "small axes", "dark", "page")
ALL = list(itertools.product((1, 3, 12, 40), NAMES, MODES))
SOME = [
    (1, "decimals", "page"),
    pytest.param(3, "long", "small axes", marks=pytest.mark.long),
    pytest.param(3, "right-to-left", "page", marks=pytest.mark.long),
    pytest.param(12, "long", "dark", marks=pytest.mark.long),
    pytest.param(40, "long", "page", marks=pytest.mark.long),
]
PHONE = 300  # pixels of a picture on a phone: 360 without the margins of the page and of its card


def models(n, kind):
    return [NAMES[kind].format(i) for i in range(n)]


def tables(names):
    """What the pictures take, for models with these names, of 30 users."""
    rng, users = np.random.default_rng(0), 30
    true = pd.DataFrame(
        {"user_id": np.repeat(range(users), 3), "item_id": rng.integers(0, 20, users * 3)}
    )
    pred = pd.DataFrame(
        {
            "model": np.repeat(names, users * 10),
            "user_id": np.tile(np.repeat(range(users), 10), len(names)),
            "item_id": rng.integers(0, 25, users * 10 * len(names)),
        }
    ).drop_duplicates()
    true, items = true.drop_duplicates(), pd.DataFrame({"item_id": range(40)})
    result = rd.evaluate(
        true, pred, ["ndcg", "coverage"], k=[1, 2, 3, 5, 10, 50], by="model", items=items
    )
    return true, pred, items, result


def gate_of(result, names):
    """A gate of the second model against the first, with a segment of each name."""
    rows = [
        result.per_user[result.per_user["model"] == name].drop(columns="model")
        for name in names[1::-1]
    ]
    segment = {user: names[user % 2] for user in range(30)}
    own, base = (one.assign(group=one["user_id"].map(segment)) for one in rows)
    return rd.gate(own, base, {"ndcg@10": "-20%"}, by="group", min_lists=10)


def calls(names):
    """Every picture of these models, with what it takes."""
    true, pred, items, result = tables(names)
    exposed = rd.diagnostics.exposure_table(pred, by="model", items=items)
    grid = result.summary.query("metric == 'ndcg' and k == 10")
    grid = pd.concat(
        [
            grid.assign(segment=s, value=grid["value"] * f)
            for s, f in (("new", 1e-3), ("of the shop", 1))
        ]
    )
    found = {
        "curve": (rd.plot.curve, (result, "ndcg"), {}),
        "tradeoff": (rd.plot.tradeoff, (result,), {}),
        "users": (rd.plot.users, (result, "ndcg@10"), {}),
        "exposure": (rd.plot.exposure, (exposed,), {}),
        "longtail": (rd.plot.longtail, (exposed, true), {}),
        "position": (
            rd.plot.position,
            (rd.diagnostics.position_table(true, pred, k=10, by="model"),),
            {},
        ),
        "heat": (rd.plot.heat, (grid,), {"rows": "model", "columns": "segment"}),
        "lists": (
            rd.plot.lists,
            (rd.diagnostics.hit_table(true, pred, k=5, by="model"), 3),
            {"models": names[:2]},
        ),
        "over_time": (rd.plot.over_time, (effects().assign(metric=names[0]),), {}),
    }
    if len(names) > 1:
        two = {"model": names[1], "baseline": names[0]}
        found |= {
            "winners": (rd.plot.winners, (result, "ndcg@10"), two),
            "forest": (rd.plot.forest, (result.compare_models("ndcg@10", baseline=names[0]),), {}),
            "pairs": (rd.plot.pairs, (result.compare_models("ndcg@10"),), {}),
            "gate": (rd.plot.forest, (gate_of(result, names),), {}),
        }
    return found


def ticks(axis):
    """The labels of an axis that are drawn."""
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    at, labels = axis.get_majorticklocs(), axis.get_ticklabels()
    pairs = zip(at, labels, strict=True)
    return [
        label for place, label in pairs if low - slack <= place <= high + slack and label.get_text()
    ]


def texts(figure):
    """Every text that is drawn."""
    of_ticks = {
        label
        for ax in figure.axes
        for axis in (ax.xaxis, ax.yaxis)
        for label in axis.get_ticklabels()
    }
    drawn = [label for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for label in ticks(axis)]
    children = [child for ax in figure.axes for child in ax.child_axes]
    drawn += [label for child in children for label in ticks(child.yaxis)]
    of_ticks |= {
        label
        for child in children
        for axis in (child.xaxis, child.yaxis)
        for label in axis.get_ticklabels()
    }
    spare = {
        text for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for text in axis.findobj(Text)
    } - of_ticks
    names = {axis.label for ax in [*figure.axes, *children] for axis in (ax.xaxis, ax.yaxis)}
    spare = (spare | {text for child in children for text in child.findobj(Text)}) - names
    others = [
        t
        for t in figure.findobj(Text)
        if t.get_text().strip() and t.get_visible() and t not in of_ticks | spare
    ]
    return [*drawn, *others]


def assert_legible(figure, scale=1.0):
    """Texts lie apart, inside of the picture, large enough, in another colour than what is behind
    them."""
    figure.draw_without_rendering()
    found = texts(figure)
    boxes = np.array([text.get_window_extent().extents for text in found])
    edge = np.array([*figure.bbox.extents])
    for text, box in zip(found, boxes, strict=True):
        assert (box[:2] >= edge[:2] - 1).all(), (
            f"{text.get_text()!r} stands outside: {box} of {edge}"
        )
        assert (box[2:] <= edge[2:] + 1).all(), (
            f"{text.get_text()!r} stands outside: {box} of {edge}"
        )
        assert text.get_fontsize() * scale * figure.dpi / 72 >= 9
    low, high = (
        np.maximum(boxes[:, None, :2], boxes[None, :, :2]),
        np.minimum(boxes[:, None, 2:], boxes[None, :, 2:]),
    )
    over = np.argwhere(np.triu(((high - low) > 0.5).all(axis=2), 1))
    assert [(found[i].get_text(), found[j].get_text()) for i, j in over] == []
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            labels = [label.get_text() for label in ticks(axis)]
            assert len(set(labels)) == len(labels), labels
    return found


def assert_told_apart(figure):
    """No two lines of a legend look alike, and no two of its names."""
    for box in [
        one
        for one in [*figure.legends, *(ax.get_legend() for ax in figure.axes)]
        if one is not None
    ]:
        names = [text.get_text() for text in box.get_texts()]
        assert len(set(names)) == len(names)
        assert len(names) <= 10
        seen = [
            (one.get_color(), one.get_marker(), str(one.get_linestyle()))
            if hasattr(one, "get_marker")
            else (one.get_facecolor(), "", one.get_hatch())
            for one in box.legend_handles
        ]
        assert len(set(seen)) == len(seen)


def contrast(one, other):
    """The ratio of the luminances of two colours, as WCAG defines it."""

    def luminance(colour):
        parts = np.array(to_rgb(colour))
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [
            0.2126,
            0.7152,
            0.0722,
        ]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def in_a_page(draw, args, options, names):
    """Draw a picture as the report does, and compare what it says with what matplotlib wrote."""
    kept = []
    made = drawing(
        lambda ax: kept.append(draw(*args, **options, ax=ax)),
        1,
        looks=style.looks(names, names[:5]),
    )
    (ax,) = kept
    scale = PHONE / (72 * SIZE[0])
    found = assert_legible(ax.figure, scale)
    written = sorted(line for text in found for line in text.get_text().split("\n"))
    root = ElementTree.fromstring(made.svg)
    assert sorted("".join(one.itertext()) for one in root.iter("text")) == written
    assert (
        min(float(one.get("font-size").removesuffix("px")) for one in root.iter("text")) * scale
        >= 9
    )
    shown = [entry.name.replace("\u200e", "") for entry in made.legend]
    assert all(name in names or " " in name for name in shown)
    return made


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "kind", "mode"), ALL if settings.default.max_examples >= 1000 else SOME
)
def test_a_picture_is_legible(n, kind, mode):
    names = models(n, kind)
    for name, (draw, args, options) in calls(names).items():
        with (
            mpl.rc_context(),
            plt.style.context("dark_background" if mode == "dark" else "default"),
        ):
            if mode == "page":
                in_a_page(draw, args, options, names)
                continue
            ax = draw(
                *args,
                **options,
                ax=plt.subplots(figsize=(3.7, 2.75))[1] if mode == "small axes" else None,
            )
            found = assert_legible(ax.figure)
            assert_told_apart(ax.figure)
            if mode == "dark" and name not in (
                "heat",
                "pairs",
                "lists",
            ):  # cells are light in a dark style too
                assert min(contrast(text.get_color(), "black") for text in found) > 4.5
            plt.close(ax.figure)
