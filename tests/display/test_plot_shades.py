"""The picture `heat`: every value in its cell."""

import pandas as pd

import recdf as rd


def test_heat_keeps_the_order_of_categories():
    sizes = pd.Categorical(["large", "small", "medium"], ["small", "medium", "large"], ordered=True)
    summary = pd.DataFrame({"model": "m", "size": sizes, "value": [3.0, 1.0, 2.0], "n": 1})
    assert rd.plot.heat.data(summary, rows="model", columns="size")["value"].tolist() == [
        1.0,
        2.0,
        3.0,
    ]
    ax = rd.plot.heat(summary, rows="model", columns="size")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["small", "medium", "large"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "model")


def test_heat_places_every_value_once():
    rows = [("a", "old", 1.0, 5), ("a", "new", 2.0, 6), ("b", "old", 3.0, 7)]
    table = pd.DataFrame(rows, columns=["model", "age", "value", "n"])
    ax = rd.plot.heat(table, rows="model", columns="age")
    assert [box.get_xy() for box in ax.patches] == [
        *((-0.5, -0.5), (0.5, -0.5)),
        *((-0.5, 0.5), (0.5, 0.5)),
    ]
    assert [text.get_text() for text in ax.texts if not text.get_gid()] == [
        "1",
        "2",
        "3",
        "–",
    ]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["old", "new"]


def test_a_small_value_is_not_written_as_nothing():
    grid = pd.DataFrame(
        {
            "model": ["a", "b", "c"],
            "part": "all",
            "metric": "ndcg",
            "k": 10,
            "value": [0.165, 0.0004, 0.0],
            "n": 5,
        }
    )
    ax = rd.plot.heat(grid, rows="model", columns="part")
    assert [text.get_text() for text in ax.texts][:3] == ["0.165", "<0.001", "0.000"]
    tiny = rd.plot.heat(grid.assign(value=[0.0016, 0.0004, 0.0001]), rows="model", columns="part")
    assert [text.get_text() for text in tiny.texts][:3] == ["0.0016", "0.0004", "0.0001"]
