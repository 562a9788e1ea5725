"""What a reader of a picture would stumble over: ticks, cut words, rows without room, colours that
change."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.display.plot import picture as style
from recdf.display.plot.picture import Frame


@pytest.fixture
def compared():
    rng = np.random.default_rng(0)
    users = pd.DataFrame({"user_id": range(400), "variant": ["A", "B"] * 200})
    users["revenue"] = rng.normal(1, 0.1, 400) + 0.05 * (users["variant"] == "B")
    return rd.compare_variants(users, "revenue", control="A", expected={"A": 1, "B": 1})


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def scaled(table, size):
    return table.assign(**{name: table[name] * size for name in ("diff", "ci_low", "ci_high")})


def drawn_ticks(axis):
    low, high = sorted(axis.get_view_interval())
    pairs = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
    return [label.get_text() for at, label in pairs if low <= at <= high]


@pytest.mark.long
@pytest.mark.parametrize("size", [1e-12, 1e-9, 1e-3, 1.0, 1e6, 1e12, 1e15])
def test_ticks_are_short_and_differ_at_every_size(compared, size):
    ax = rd.plot.forest(scaled(compared, size))
    ax.figure.canvas.draw()
    texts = drawn_ticks(ax.xaxis)
    assert len(texts) >= 2
    assert len(set(texts)) == len(texts)
    assert max(map(len, texts)) <= 8
    box = ax.figure.bbox
    for label in ax.get_xticklabels():
        extent = label.get_window_extent()
        assert box.x0 - 1 <= extent.x0
        assert extent.x1 <= box.x1 + 1


def test_the_deciding_words_of_a_forest_are_whole(compared):
    said = "worse, but no difference shown where both have lists"
    rows = pd.concat([compared.assign(segment=name) for name in ("new", "old")])
    rows.insert(0, "segment", rows.pop("segment"))
    ax = rd.plot.forest(rows.assign(verdict=said))
    ax.figure.canvas.draw()
    texts = [label for child in ax.child_axes for label in child.get_yticklabels()]
    texts = [label for label in texts if label.get_text()]
    assert len(texts) == 2
    assert all(label.get_text().endswith(said) for label in texts)
    assert all(label.get_window_extent().x1 <= ax.figure.bbox.x1 + 1 for label in texts)


@pytest.mark.long
def test_small_axes_say_which_rows_have_no_room_and_keep_those_that_are_worse(compared):
    rows = pd.concat([compared.assign(segment=f"part {i}") for i in range(40)], ignore_index=True)
    rows.insert(0, "segment", rows.pop("segment"))
    rows.loc[35, "effect"] = "worse"
    ax = rd.plot.forest(rows, ax=plt.subplots(figsize=(3.7, 2.75))[1])
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert "part 35" in labels
    (below,) = [text.get_text() for text in ax.texts if text.get_gid() == "caption"]
    assert f"no room here for {40 - len(labels)} of 40 rows" in " ".join(below.split())
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    pairs = itertools.pairwise(sorted(boxes, key=lambda box: box.y0))
    assert all(one.y1 <= two.y0 + 0.5 for one, two in pairs)


def test_a_cumulative_line_does_not_stand_above_a_trend_that_is_not_its_own(compared):
    days = pd.concat([compared.assign(period=day) for day in range(1, 9)], ignore_index=True)
    days["diff"] = np.linspace(0.03, 0.29, 8)
    days = days.assign(
        kind="cumulative",
        ci_low=days["diff"] - 0.2,
        ci_high=days["diff"] + 0.2,
        trend=0.01,
        trend_ci_low=-0.02,
        trend_ci_high=0.04,
        trend_verdict="no trend shown",
    )
    ax = rd.plot.over_time(days)
    (below,) = [text.get_text() for text in ax.texts if text.get_gid() == "caption"]
    said = "of single periods, not of this line: trend: no trend shown, +0.010 [−0.020, +0.040]"
    assert said in " ".join(below.split())


def test_a_model_has_one_colour_in_all_pictures_of_a_notebook(monkeypatch):
    monkeypatch.setattr(style, "TAKEN", {})
    first = style.looks(["a", "b", "c"])
    assert style.looks(["c", "a"]) == {"c": first["c"], "a": first["a"]}
    assert style.looks(["d", "b"])["b"] == first["b"]
    many = style.looks([*"abcdefghijkl"], [*"lkjih"])
    assert len({many[name] for name in "lkjih"}) == 5
    assert many["a"] == style.REST
    assert style.looks([*"abc"]) == first
    # A page is the same whatever was drawn before it.
    assert style.looks(["c", "a"], (), {})["c"] == first["a"]


def test_a_single_series_without_a_colour_has_its_own_name():
    frame = Frame(None)
    frame.line([0, 1], [0, 1], style.ModelLook("#0b77b8", "o", "-"), ["a"], name="a")
    frame.line([0, 1], [0, 1], style.REST, ["b"], name="popularity · new")
    frame.legend()
    texts = frame.ax.get_legend().get_texts()
    assert [one.get_text() for one in texts] == ["a", "popularity · new"]
    frame.line([0, 1], [0, 1], style.REST, ["c"], name="c")
    frame.legend()
    assert [one.get_text() for one in frame.ax.get_legend().get_texts()] == ["a", "2 others"]
