"""All pictures: what each of them gives, the names that they show, and bad input. The numbers are
in test_plot_*.py."""

import dataclasses
import inspect
import io
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from display.plot_tables import effects, many_models
from matplotlib.axes import Axes
from quick import few

import recdf as rd


def a_gate(shop, budgets):
    old, new = (
        rd.evaluate(shop.true, shop.pred[shop.pred["model"] == name], ["ndcg@10", "recall@10"])
        for name in ("popularity", "knn")
    )
    return rd.gate(new, old, budgets)


def past_experiments():
    return pd.DataFrame({"x": [0.0, 1, 2, 4], "x_se": 0.1, "y": [0.1, 0.4, 1.2, 2.0], "y_se": 0.1})


def a_history(folder, model="a"):
    """Three nights of a job."""
    for night in range(1, 4):
        pred = pd.DataFrame({"model": model, "user_id": [1, 2], "item_id": [1, night]})
        true = {1: [1], 2: [1]}
        rd.evaluate(true, pred, "mrr@1", by="model").to_parquet(
            f"{folder}/2026-11-0{night}", overwrite=True
        )
    return rd.diagnostics.History(folder)


@pytest.fixture(scope="module")
def pictures(shop, result, exposed, tmp_path_factory):
    """Every picture with a call of its function and of its data."""
    users = result.per_user.merge(shop.users, on="user_id", validate="many_to_one")
    segments = rd.summarize(users, by=["model", "segment"], metrics=["ndcg@10"])
    ranks = rd.diagnostics.position_table(shop.true, shop.pred, k=5, by="model")
    compared = result.compare_models("ndcg@10", baseline="popularity")
    return {
        "curve": ((result,), {"metrics": "ndcg"}),
        "forest": ((compared,), {}),
        "tradeoff": ((result,), {}),
        "users": ((result, "ndcg@10"), {}),
        "winners": ((result, "ndcg@10"), {"model": "knn", "baseline": "popularity"}),
        "exposure": ((exposed,), {}),
        "longtail": ((exposed, shop.log), {}),
        "position": ((ranks,), {}),
        "heat": ((segments,), {"rows": "model", "columns": "segment"}),
        "over_time": ((effects(),), {}),
        "pairs": ((result.compare_models("ndcg@10"),), {}),
        "lists": ((rd.diagnostics.hit_table(shop.true, shop.pred, k=5, by="model"), "u0004"), {}),
        "proxy_metrics": ((past_experiments(),), {"offline": "x", "online": "y"}),
        "history": ((a_history(tmp_path_factory.mktemp("nights")),), {}),
    }


NAMES = [
    "curve",
    "exposure",
    "forest",
    "heat",
    "history",
    "lists",
    "longtail",
    "over_time",
    "pairs",
    "position",
    "proxy_metrics",
    "tradeoff",
    "users",
    "winners",
]


def test_there_are_fourteen_pictures_and_each_is_documented():
    assert sorted(rd.plot.__all__) == NAMES
    for name in NAMES:
        picture = getattr(rd.plot, name)
        assert picture.__doc__.count("Examples") == 1
        assert "ax" in inspect.signature(picture).parameters
        assert picture.data.__doc__.startswith("Return ")
        assert repr(picture) == f"<recdf picture {name}>"


@pytest.mark.long
@pytest.mark.parametrize("name", few(NAMES, ["forest"]))
def test_a_picture_serves_a_slide_and_changes_nothing_else(name, pictures):
    args, options = pictures[name]
    before = [one.copy() for one in args if isinstance(one, pd.DataFrame)]
    settings = dict(mpl.rcParams)
    _, given = plt.subplots()
    drawn = getattr(rd.plot, name)(*args, **options, ax=given)
    assert drawn is given
    assert isinstance(getattr(rd.plot, name)(*args, **options), Axes)  # a figure of its own
    assert dict(mpl.rcParams) == settings
    for one, old in zip(
        (one for one in args if isinstance(one, pd.DataFrame)), before, strict=True
    ):
        pd.testing.assert_frame_equal(one, old)
    assert drawn.get_title(loc="left")
    captions = [text.get_text() for text in drawn.texts if text.get_gid() == "caption"]
    assert len(captions) == 1
    assert captions[0]
    if name not in ("heat", "forest", "lists", "pairs"):
        assert drawn.get_xlabel()
        assert drawn.get_ylabel()
    given.figure.savefig(io.StringIO(), format="svg")


@pytest.mark.long
@pytest.mark.parametrize("name", few(NAMES, ["forest"]))
def test_data_is_a_plain_frame_and_needs_no_matplotlib(name, pictures, monkeypatch):
    args, options = pictures[name]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    data = getattr(rd.plot, name).data(*args, **options)
    assert isinstance(data.index, pd.RangeIndex)
    assert all(isinstance(column, str) for column in data.columns)
    with pytest.raises(rd.MissingExtraError, match=r"recdf\[plot\]"):
        getattr(rd.plot, name)(*args, **options)


# -- names


@pytest.mark.long
def test_names_from_data_are_letters(hostile):
    from .conftest import HOSTILE

    kept = HOSTILE[:8]  # beyond eight models, those of highlight= keep a colour and their name
    rows = hostile.per_user[hostile.per_user["model"].isin(kept)]
    few = type(hostile)(rows.reset_index(drop=True), hostile.summary, hostile.spec)
    for ax, others in (
        (rd.plot.curve(hostile, "ndcg", highlight=kept), ["2 others"]),
        (rd.plot.tradeoff(hostile, x="recall@3", y="ndcg@3", highlight=kept), ["2 others"]),
        (rd.plot.users(few, "ndcg@3"), []),
    ):
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        assert [text for text in texts if text.endswith(" others")] == others
        assert len(texts) >= 8 + len(others)  # a name that starts with _ is not left out
        assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())
        assert any("⟨U+202E⟩" in text for text in texts)
        ax.figure.savefig(io.StringIO(), format="svg")


def test_long_names_are_short_at_ticks_and_full_in_the_legend():
    table = many_models(3).replace(
        {"model": {"m1": "a-long-name-of-a-run-" + "x" * 40 + "-seed-1"}}
    )
    names = [
        text.get_text().replace("\n", "") for text in rd.plot.curve(table).get_legend().get_texts()
    ]
    assert "a-long-name-of-a-run-" + "x" * 40 + "-seed-1" in names
    grid = table[table["k"] == 2].assign(part="all")
    ticks = [
        tick.get_text()
        for tick in rd.plot.heat(grid, rows="model", columns="part").get_yticklabels()
    ]
    assert max(map(len, ticks)) <= 24
    assert any("…" in tick for tick in ticks)


def test_several_by_columns_are_one_name():
    table = many_models(2).assign(fold=[1, 1, 2, 2])[
        ["model", "fold", "metric", "k", "value", "ci_low", "ci_high", "n", "n_undefined"]
    ]
    assert list(dict.fromkeys(rd.plot.curve.data(table)["model"])) == ["m0 · 1", "m1 · 2"]


# -- bad input


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda r, e: rd.plot.curve(r, "ndgc"),
            rd.OptionError,
            "'coverage']; did you mean 'ndcg'?",
        ),
        (
            lambda r, e: rd.plot.curve(many_models(2).query("k == 1")),
            rd.OptionError,
            "no metric with values at two k",
        ),
        (
            lambda r, e: rd.plot.curve(r, "ndcg", highlight="kn"),
            rd.OptionError,
            "highlight='kn' is not a model",
        ),
        (lambda r, e: rd.plot.curve(r.per_user), rd.ColumnError, "result has no column 'metric'"),
        (lambda r, e: rd.plot.curve([1]), TypeError, "result is a list; expected an Evaluation"),
        (
            lambda r, e: rd.plot.curve(r, ax=plt.subplots()[1]),
            rd.OptionError,
            "ax holds 1 axes; this picture has 4",
        ),
        (
            lambda r, e: rd.plot.tradeoff(r, x="gini@10"),
            rd.OptionError,
            "x='gini@10' is not a metric",
        ),
        (
            lambda r, e: rd.plot.users(r, "ndcg@7"),
            rd.ColumnError,
            "per_user has no column 'ndcg@7'",
        ),
        (
            lambda r, e: rd.plot.winners(r, "ndcg@10", model="knn", baseline="knn"),
            rd.OptionError,
            "are both 'knn'",
        ),
        (
            lambda r, e: rd.plot.winners(r, "ndcg@10", model="knn", baseline="x"),
            rd.OptionError,
            "baseline='x' is not",
        ),
        (
            lambda r, e: rd.plot.exposure(e.drop(columns="share")),
            rd.ColumnError,
            "has no column 'share'",
        ),
        (lambda r, e: rd.plot.exposure(e.assign(shown=0)), rd.DataError, "no impressions"),
        (
            lambda r, e: rd.plot.longtail(e, pd.DataFrame({"item": [1]})),
            rd.ColumnError,
            "log has no column 'item_id'",
        ),
        (lambda r, e: rd.plot.longtail(e, e[["item_id"]].head(0)), rd.DataError, "log has no rows"),
        (
            lambda r, e: rd.plot.heat(r.summary, rows="model", columns="k"),
            rd.OptionError,
            "name one of",
        ),
        (
            lambda r, e: rd.plot.heat(r.summary, rows="model", columns="metric"),
            rd.OptionError,
            "several rows for",
        ),
        (
            lambda r, e: rd.plot.heat(r.summary, rows="modl", columns="k"),
            rd.ColumnError,
            "did you mean 'model'",
        ),
        (
            lambda r, e: rd.plot.position(r.summary),
            rd.ColumnError,
            "position_table has no column 'rank'",
        ),
        (lambda r, e: rd.plot.forest(r.summary), rd.ColumnError, "comparison has no column 'diff'"),
        (lambda r, e: rd.plot.curve(r, x="week"), rd.ColumnError, "result has no column 'week'"),
        (
            lambda r, e: rd.plot.tradeoff(r, highlight="kn"),
            rd.OptionError,
            "highlight='kn' is not a model",
        ),
        (
            lambda r, e: rd.plot.pairs(r.compare_models(["ndcg@2", "ndcg@5"])),
            rd.OptionError,
            "name one of",
        ),
        (
            lambda r, e: rd.plot.pairs(r.compare_models("ndcg@5"), metric="ndgc"),
            rd.OptionError,
            "metric='ndgc' is",
        ),
        (
            lambda r, e: rd.plot.pairs(r.summary),
            rd.ColumnError,
            "comparison has no column 'baseline'",
        ),
        (lambda r, e: rd.plot.lists(e, "u0001"), rd.ColumnError, "hit_table has no column 'rank'"),
        (
            lambda r, e: rd.plot.over_time(effects(), "ctr"),
            rd.OptionError,
            "metric='ctr' is not a metric",
        ),
        (
            lambda r, e: rd.plot.over_time(effects().assign(metric=list("aabbb"))),
            rd.OptionError,
            "name one of",
        ),
        (
            lambda r, e: rd.plot.over_time(effects().drop(columns="period")),
            rd.ColumnError,
            "effect has no column 'period'",
        ),
    ],
)
def test_bad_input_says_what_to_change(call, error, words, result, exposed):
    with pytest.raises(error) as raised:
        call(result, exposed)
    assert words in str(raised.value)


# -- the gallery of real data


def test_the_gallery_of_real_data_is_skipped_where_they_are_absent(tmp_path, capsys):
    script = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "draw_movielens.py"))
    script["main"]([str(tmp_path / "movielens")])
    assert capsys.readouterr().out.startswith(
        "draw_movielens: movielens is absent, so nothing is drawn"
    )
    assert list(tmp_path.iterdir()) == []


# -- gate


@pytest.mark.long
def test_the_numbers_of_a_gate_are_those_of_its_table(shop):
    """Every change, budget and verdict that is drawn stands so in the text of the gate."""
    gate = a_gate(shop, {"ndcg@10": "-2%", "recall@10": -0.01})
    panels = rd.plot.forest(gate)
    assert [panel.get_title(loc="left") for panel in panels] == [
        "Change in per cent of the baseline",
        "Change of recall@10",
    ]
    rows = repr(gate).splitlines()
    for panel, metric, place in zip(panels, ("ndcg@10", "recall@10"), (-0.02, -0.01), strict=True):
        panel.figure.canvas.draw()
        assert [one.get_text() for one in panel.get_yticklabels()] == [metric]
        (words,) = [
            one.get_text() for one in panel.child_axes[0].get_yticklabels() if one.get_text()
        ]
        change, rest = words.split("  ")
        verdict, budget = rest.split(", budget ")
        (row,) = [line for line in rows if metric in line and "[" in line]
        assert row.startswith(verdict)
        assert change in row
        assert f" {budget} " in row
        ends = gate.table.set_index("metric").loc[metric]
        lines = [line.get_xdata() for line in panel.lines]
        lines += [part[:, 0] for drawn in panel.collections for part in drawn.get_segments()]
        assert any(list(one) == [place, place] for one in lines)
        assert any(
            list(one) == pytest.approx([ends["change_low"], ends["change_high"]]) for one in lines
        )
        assert any(list(one) == [ends["change"]] for one in lines)


@pytest.mark.long
def test_colours_and_marks_of_a_gate_follow_its_verdicts(shop):
    gate = a_gate(shop, {"ndcg@10": "-2%"})
    signs = {
        "pass": "better",
        "fail": "worse",
        "undecided": "open",
        "not_gated": "open",
        "pass_but_worse": "open",
    }
    for verdict, sign in signs.items():
        one = dataclasses.replace(gate, table=gate.table.assign(effect=verdict))
        assert rd.plot.forest.data(one)["sign"].tolist() == [sign]
        marks = [
            line for line in rd.plot.forest(one).lines if line.get_marker() not in ("None", "")
        ]
        assert [line.get_marker() for line in marks] == [
            {"better": "^", "worse": "v", "open": "o"}[sign]
        ]


def test_a_pair_whose_verdict_is_withheld_has_no_shade_of_better_or_worse():
    """`c` gains .02 to .04 in each of 60 lists, which two lists that lose all would turn; `b` gains
    .3."""
    user = np.arange(60)
    gains = {"a": 0.0, "b": 0.3 + 0.05 * (user % 3), "c": 0.02 + 0.02 * (user % 2)}
    frames = {
        name: pd.DataFrame({"user_id": user, "ndcg@10": 0.3 + gain}) for name, gain in gains.items()
    }
    table = rd.compare_models(frames, "ndcg@10", details=True)
    held = table.loc[table["withheld"] != "", ["baseline", "model"]]
    assert [{*pair} for pair in held.to_numpy()] == [{"a", "c"}]
    ax = rd.plot.pairs(table)
    order = [text.get_text().split()[-1] for text in ax.get_yticklabels()]
    assert sorted(order) == ["a", "b", "c"]
    for box in ax.patches:
        row, column = (order[round(one + 0.5)] for one in box.get_xy()[::-1])
        red, _, blue, _ = box.get_facecolor()
        # Blue for the better one, orange for the worse one, and the same of both where none is.
        side = 0 if {row, column} == {"a", "c"} else 1 if row == "b" else -1
        assert np.sign(round(blue - red, 2)) == side
    (said,) = [text.get_text() for text in ax.texts if text.get_gid() == "caption"]
    assert "white: withheld" in " ".join(said.split())
