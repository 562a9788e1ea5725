"""Pictures of models: the lines of `curve` and the points of `tradeoff`."""

import numpy as np
import pandas as pd
import pytest
from display.plot_tables import many_models

import recdf as rd


def test_curve_draws_the_summary(result):
    data = rd.plot.curve.data(result, ["recall", "ndcg"])
    assert list(dict.fromkeys(data["metric"])) == ["recall", "ndcg"]
    summary = result.summary.set_index(["model", "metric", "k"])
    for row in data.itertuples():
        found = summary.loc[(row.model, row.metric, row.k)]
        assert (row.value, row.ci_low, row.ci_high, row.n) == tuple(
            found[["value", "ci_low", "ci_high", "n"]]
        )
    axes = rd.plot.curve(result, ["recall", "ndcg"])
    assert len(axes) == 2
    for line, (_, rows) in zip(
        axes[1].lines, data[data["metric"] == "ndcg"].groupby("model", sort=False), strict=True
    ):
        assert line.get_xdata().tolist() == [2, 5, 10]
        assert line.get_ydata().tolist() == rows["value"].tolist()
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes[0].lines}
    assert len({colour for colour, _, _ in looks}) == len({marker for _, marker, _ in looks}) == 3


def test_beyond_four_models_only_the_best_and_the_highlighted_have_bands():
    def banded(table, **options):
        data = rd.plot.curve.data(table, **options)
        return sorted(set(data.loc[data["band"], "model"]))

    assert banded(many_models(4)) == ["m0", "m1", "m2", "m3"]
    assert banded(many_models(6)) == ["m5"]
    assert banded(many_models(6), highlight="m2") == ["m2", "m5"]
    smaller = many_models(6).assign(metric="first_rank")
    assert banded(smaller) == ["m0"]
    ax = rd.plot.curve(many_models(6), highlight="m2")
    assert len(ax.collections) == 2


def test_tradeoff_marks_the_models_that_no_other_beats_on_both():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 5, (12, 2)) / 10
    rows = [
        {
            "model": f"m{i}",
            "metric": name,
            "k": 10,
            "value": value,
            "ci_low": np.nan,
            "ci_high": np.nan,
            "n": 5,
            "n_undefined": 0,
        }
        for i, pair in enumerate(values)
        for name, value in zip(("first_rank", "ndcg"), pair, strict=True)
    ]
    data = rd.plot.tradeoff.data(pd.DataFrame(rows), x="first_rank@10", y="ndcg@10")
    for i, (rank, gain) in enumerate(values):  # a smaller first_rank is better
        beaten = any((r <= rank and g >= gain) and (r < rank or g > gain) for r, g in values)
        assert data.loc[i, "pareto"] == (not beaten)


@pytest.mark.long
def test_curve_over_time_has_one_place_for_each_week(shop):
    weeks = pd.concat(
        [shop.pred.assign(week=f"2026-W{week}") for week in (9, 10, 11)], ignore_index=True
    )
    result = rd.evaluate(shop.true, weeks, ["ndcg@5", "recall@5"], by=["model", "week"])
    data = rd.plot.curve.data(result, "ndcg@5", x="week")
    assert list(dict.fromkeys(data["model"])) == ["knn", "popularity", "random"]
    assert list(dict.fromkeys(data["x"])) == sorted(["2026-W9", "2026-W10", "2026-W11"])
    summary = result.summary.set_index(["model", "week", "metric"])
    for row in data.itertuples():
        assert row.value == summary.loc[(row.model, row.x, "ndcg"), "value"]
    ax = rd.plot.curve(result, "ndcg@5", x="week")
    assert [label.get_text() for label in ax.get_xticklabels()] == list(dict.fromkeys(data["x"]))
    assert ax.get_title(loc="left") == "ndcg@5"
    dated = rd.plot.curve.data(
        result.summary.assign(week=pd.to_datetime("2026-03-02")).head(1), x="week"
    )
    assert dated["x"].tolist() == [pd.Timestamp("2026-03-02")]


@pytest.mark.long
def test_beyond_eight_models_the_highlighted_and_the_five_best_have_a_colour():
    ax = rd.plot.curve(many_models(12), highlight="m0")
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(names[:-1]) == sorted(["m0", "m11", "m10", "m9", "m8", "m7"])
    assert names[-1] == "6 others"
    grey = [line for line in ax.lines if line.get_color() == "#8a8a8a"]
    assert len(grey) == 6
    marked = {(line.get_color(), line.get_marker()) for line in ax.lines} - {("#8a8a8a", ".")}
    assert len({colour for colour, _ in marked}) == len({marker for _, marker in marked}) == 6
    eight = rd.plot.curve(many_models(8))
    assert (
        len({line.get_color() for line in eight.lines})
        == len({line.get_marker() for line in eight.lines})
        == 8
    )


@pytest.mark.long
def test_pairs_has_both_sides_of_every_pair(result):
    compared = result.compare_models("first_rank@10", missing="drop")  # smaller is better
    data = rd.plot.pairs.data(compared).set_index(["model", "other"])
    wide = result.per_user.pivot(index="user_id", columns="model", values="first_rank@10")
    for one, other in data.index:
        both = (wide[one] - wide[other]).dropna()
        assert np.isclose(data.loc[(one, other), "value"], both.mean())
        turned = {"better": "worse", "worse": "better", "open": "open"}
        assert data.loc[(other, one), "sign"] == turned[data.loc[(one, other), "sign"]]
    ax = rd.plot.pairs(compared)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "3"]
    assert ax.get_yticklabels()[0].get_text() == "1  knn"
    stars = [text.get_text().endswith("*") for text in ax.texts]
    assert sum(stars) == (data["sign"] != "open").sum()


def test_lists_shows_what_two_models_showed_one_user(shop):
    hits = rd.diagnostics.hit_table(shop.true, shop.pred, k=4, by="model")
    hits["title"] = "name of " + hits["item_id"]
    data = rd.plot.lists.data(hits, "u0004", models=["random", "knn"])
    own = hits[(hits["user_id"] == "u0004")]
    for model in ("random", "knn"):
        rows = own[own["model"] == model]
        assert data.loc[data["model"] == model, "item"].tolist() == rows["title"].tolist()
        assert data.loc[data["model"] == model, "hit"].tolist() == rows["hit"].tolist()
    missed = own.head(1).assign(
        item_id="i9999", title=None, hit=False, rank=pd.array([None], "Int64")
    )
    hits = pd.concat([hits.astype({"rank": "Int64"}), missed], ignore_index=True)
    drawn = rd.plot.lists(hits, "u0004", models=["knn", "random"])
    texts = [text.get_text() for text in drawn.texts]
    assert "i9999" in texts  # without a name, its id
    assert "missed" in [label.get_text() for label in drawn.get_yticklabels()]
    assert (
        sum(text.startswith("✓") for text in texts)
        == int(own[own["model"] != "popularity"]["hit"].sum()) + 1
    )
    with pytest.raises(rd.OptionError, match="user='nobody' has no list"):
        rd.plot.lists(hits, "nobody")
