"""Pictures: what is drawn is compared as data with hand-made numbers and slow oracles, and as artists of the axes."""

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
from matplotlib.axes import Axes

import recdf as rd


@pytest.fixture
def compared(result):
    return result.compare_models(["ndcg@10", "first_rank@10"], baseline="popularity", users="inner")


def pictures(shop, result, exposed):
    """Every picture with a call of its function and of its data."""
    users = result.per_user.merge(shop.users, on="user_id", validate="many_to_one")
    segments = rd.summarize(users, by=["model", "segment"], metrics=["ndcg@10"])
    ranks = rd.position_table(shop.true, shop.pred, k=5, by="model")
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
    }


def effects():
    """Five days of an effect, out of order."""
    return pd.DataFrame({
        "period": [3, 1, 2, 5, 4], "metric": "revenue", "kind": "cumulative", "diff": [0.3, 0.1, 0.2, 0.5, 0.4],
        "ci_low": [0.0, -1.0, -0.5, 0.3, 0.1], "ci_high": [0.6, 1.2, 0.9, 0.7, 0.7], "n_control": 10, "n_treatment": 12,
    })  # fmt: skip


NAMES = ["curve", "exposure", "forest", "heat", "longtail", "over_time", "position", "tradeoff", "users", "winners"]


def test_there_are_ten_pictures_and_each_is_documented():
    assert sorted(rd.plot.__all__) == NAMES
    for name in NAMES:
        picture = getattr(rd.plot, name)
        assert picture.__doc__.count("Examples") == 1
        assert "ax" in inspect.signature(picture).parameters
        assert picture.data.__doc__.startswith("Return ")
        assert repr(picture) == f"<recdf picture {name}>"


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_serves_a_slide_and_changes_nothing_else(name, shop, result, exposed):
    args, options = pictures(shop, result, exposed)[name]
    before = [one.copy() for one in args if isinstance(one, pd.DataFrame)]
    settings = dict(mpl.rcParams)
    _, given = plt.subplots()
    drawn = getattr(rd.plot, name)(*args, **options, ax=given)
    assert drawn is given
    assert isinstance(getattr(rd.plot, name)(*args, **options), Axes)  # a figure of its own
    assert dict(mpl.rcParams) == settings
    for one, old in zip((one for one in args if isinstance(one, pd.DataFrame)), before, strict=True):
        pd.testing.assert_frame_equal(one, old)
    assert drawn.get_title(loc="left")
    captions = [text.get_text() for text in drawn.texts if text.get_gid() == "caption"]
    assert len(captions) == 1
    assert captions[0]
    if name not in ("heat", "forest"):
        assert drawn.get_xlabel()
        assert drawn.get_ylabel()
    given.figure.savefig(io.StringIO(), format="svg")


@pytest.mark.parametrize("name", NAMES)
def test_data_is_a_plain_frame_and_needs_no_matplotlib(name, shop, result, exposed, monkeypatch):
    args, options = pictures(shop, result, exposed)[name]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    data = getattr(rd.plot, name).data(*args, **options)
    assert isinstance(data.index, pd.RangeIndex)
    assert all(isinstance(column, str) for column in data.columns)
    with pytest.raises(rd.MissingExtraError, match=r"recdf\[plot\]"):
        getattr(rd.plot, name)(*args, **options)


# ------------------------------------------------------------------------------------------ values


def test_curve_draws_the_summary(result):
    data = rd.plot.curve.data(result, ["recall", "ndcg"])
    assert list(dict.fromkeys(data["metric"])) == ["recall", "ndcg"]
    summary = result.summary.set_index(["model", "metric", "k"])
    for row in data.itertuples():
        found = summary.loc[(row.model, row.metric, row.k)]
        assert (row.value, row.ci_low, row.ci_high, row.n) == tuple(found[["value", "ci_low", "ci_high", "n"]])
    axes = rd.plot.curve(result, ["recall", "ndcg"])
    assert len(axes) == 2
    for line, (_, rows) in zip(axes[1].lines, data[data["metric"] == "ndcg"].groupby("model", sort=False), strict=True):
        assert line.get_xdata().tolist() == [2, 5, 10]
        assert line.get_ydata().tolist() == rows["value"].tolist()
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes[0].lines}
    assert len({colour for colour, _, _ in looks}) == len({marker for _, marker, _ in looks}) == 3


def many_models(n):
    """A summary by hand: model i has value i/100 at k = 1 and i/50 at k = 2."""
    return pd.DataFrame([
        {"model": f"m{i}", "metric": "ndcg", "k": k, "value": i * k / 100, "ci_low": 0.0, "ci_high": 1.0, "n": 9,
         "n_undefined": 0}
        for i in range(n) for k in (1, 2)
    ])  # fmt: skip


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
        {"model": f"m{i}", "metric": name, "k": 10, "value": value, "ci_low": np.nan, "ci_high": np.nan, "n": 5,
         "n_undefined": 0}
        for i, pair in enumerate(values) for name, value in zip(("first_rank", "ndcg"), pair, strict=True)
    ]  # fmt: skip
    data = rd.plot.tradeoff.data(pd.DataFrame(rows), x="first_rank@10", y="ndcg@10")
    for i, (rank, gain) in enumerate(values):  # a smaller first_rank is better
        beaten = any((r <= rank and g >= gain) and (r < rank or g > gain) for r, g in values)
        assert data.loc[i, "pareto"] == (not beaten)


def test_users_is_the_share_at_or_below_each_value(result):
    data = rd.plot.users.data(result, "ndcg@10")
    for model, rows in data.groupby("model"):
        values = result.per_user.loc[result.per_user["model"] == model, "ndcg@10"].dropna().tolist()
        for row in rows.itertuples():
            assert row.share == sum(value <= row.value for value in values) / len(values)
        assert rows["share"].iloc[-1] == 1
    frame = rd.plot.users.data(result.per_user, "ndcg@10", model_col="model")
    pd.testing.assert_frame_equal(data, frame)


@pytest.mark.parametrize("metric", ["ndcg@10", "recall@5"])
def test_winners_counts_what_compare_models_counts(result, metric):
    data = rd.plot.winners.data(result, metric, model="knn", baseline="popularity", bins=9)
    counted = data.groupby("side")["n"].sum()
    row = result.compare_models(metric, baseline="popularity").set_index("model").loc["knn"]
    assert (counted["gains"], counted["ties"], counted["loses"]) == (row["wins"], row["ties"], row["losses"])
    wide = result.per_user.pivot(index="user_id", columns="model", values=metric)
    difference = (wide["knn"] - wide["popularity"]).tolist()
    for bar in data[data["side"] == "gains"].itertuples():
        last = bar.high == data["high"].max()
        assert bar.n == sum(bar.low <= d < bar.high or (last and d == bar.high) for d in difference if d > 1e-12)
    assert data["low"].is_monotonic_increasing


def test_exposure_is_the_lorenz_curve_and_agrees_with_the_metric(shop, exposed):
    data = rd.plot.exposure.data(exposed)
    metric = rd.evaluate(shop.true, shop.pred, "gini@10", by="model", items=shop.items, users="pred").summary
    for model, rows in data.groupby("model"):
        assert rows["gini"].iloc[0] == pytest.approx(metric.set_index("model").loc[model, "value"], abs=1e-12)
        shown = sorted(exposed.loc[exposed["model"] == model, "shown"])
        for row in rows.itertuples():
            n = round(row.share_of_items * len(shown))
            assert row.share_of_impressions == pytest.approx(sum(shown[:n]) / sum(shown), abs=1e-12)


def test_longtail_by_hand():
    table = pd.DataFrame({"item_id": list("abcdx"), "shown": [4, 3, 2, 1, 10], "share": [0.2, 0.15, 0.1, 0.05, 0.5]})
    log = pd.DataFrame({"item_id": list("aaaabbbccd")})
    data = rd.plot.longtail.data(table, log, bands=(0.25, 0.5, 1.0))
    # a is the top quarter of the four items of the log, b the second, c and d the rest; x was never bought.
    own = data[data["model"] == "all lists"]
    assert own["band"].tolist() == ["top 25 %", "25–50 %", "50–100 %", "not in log"]
    assert own["share"].tolist() == [0.2, 0.15, 0.15, 0.5]
    assert own["n_items"].tolist() == [1, 1, 2, 1]
    assert data[data["model"] == "past interactions"]["share"].tolist() == [0.4, 0.3, 0.3, 0.0]


def test_position_draws_its_table(shop):
    table = rd.position_table(shop.true, shop.pred, k=4, by="model")
    data = rd.plot.position.data(table)
    assert data[["model", "rank", "hit_rate", "ci_low", "ci_high"]].equals(
        table[["model", "rank", "hit_rate", "ci_low", "ci_high"]]
    )
    ax = rd.plot.position(table)
    assert [line.get_ydata().tolist() for line in ax.lines] == [
        rows["hit_rate"].tolist() for _, rows in table.groupby("model", sort=False)
    ]


def test_heat_keeps_the_order_of_categories():
    sizes = pd.Categorical(["large", "small", "medium"], ["small", "medium", "large"], ordered=True)
    summary = pd.DataFrame({"model": "m", "size": sizes, "value": [3.0, 1.0, 2.0], "n": 1})
    assert rd.plot.heat.data(summary, rows="model", columns="size")["value"].tolist() == [1.0, 2.0, 3.0]
    ax = rd.plot.heat(summary, rows="model", columns="size")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["small", "medium", "large"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "model")


def test_heat_places_every_value_once():
    rows = [("a", "old", 1.0, 5), ("a", "new", 2.0, 6), ("b", "old", 3.0, 7)]
    table = pd.DataFrame(rows, columns=["model", "age", "value", "n"])
    ax = rd.plot.heat(table, rows="model", columns="age")
    assert ax.images[0].get_array().filled(np.nan).tolist()[0] == [1.0, 2.0]
    assert [text.get_text() for text in ax.texts if not text.get_gid()] == ["1.000", "2.000", "3.000", "–"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["old", "new"]


def test_over_time_is_in_the_order_of_time():
    data = rd.plot.over_time.data(effects())
    assert data["time"].tolist() == [1, 2, 3, 4, 5]
    assert data["diff"].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert data["n"].tolist() == [22] * 5
    ax = rd.plot.over_time(effects())
    assert "all data up to its period" in " ".join(next(text.get_text() for text in ax.texts).split())
    dated = effects().assign(period=pd.Timestamp("2026-01-01") + pd.to_timedelta(effects()["period"], unit="D"))
    rd.plot.over_time(dated).figure.savefig(io.BytesIO())


@pytest.fixture(scope="module")
def by_day():
    """Effects by day from a log of impressions: 40 users see one item a day for five days; from day 3 on B clicks more.

    A user of A clicks on a day if user + day is a multiple of 4; one of B from day 3 on if it is a multiple of 2.
    """
    rows = [(user, day) for day in range(1, 6) for user in range(40)]
    log = pd.DataFrame(rows, columns=["user_id", "session_id"]).assign(item_id="tea", position=0)
    log["variant"] = np.where(log["user_id"] % 2, "B", "A")
    log["time"] = pd.Timestamp("2026-09-01 22:30", tz="UTC") + pd.to_timedelta(log["session_id"] - 1, unit="D")
    every = np.where((log["variant"] == "B") & (log["session_id"] >= 3), 2, 4)
    clicked = (log["user_id"] // 2 + log["session_id"]) % every == 0
    clicks = log.loc[clicked, ["user_id", "item_id", "time"]].assign(time=lambda one: one["time"] + pd.Timedelta("1s"))
    lists = rd.from_impressions(log, time_col="time", clicks=clicks, window="1h")
    carry = {"time": "min", "variant": "constant"}
    visits = rd.evaluate(*lists, "clicked@1", user_col=["user_id", "session_id"], carry=carry)
    daily = rd.time_slice(visits.per_user, "time", "1D", tz="Europe/Berlin")  # half past midnight of the next day
    effect = rd.compare_variants(daily, "clicked@1", control="A", by="day", expected={"A": 0.5, "B": 0.5})
    return daily, effect


def test_over_time_draws_effects_by_day_of_a_log(by_day, small, tmp_path):
    daily, effect = by_day
    data = rd.plot.over_time.data(effect)
    assert data["time"].tolist() == list(pd.date_range("2026-09-02", periods=5))
    assert data["diff"].tolist() == [0.0, 0.0, 0.25, 0.25, 0.25]  # 5 of 20 click, of B 10 from day 3 on
    assert data["n"].tolist() == [40] * 5
    means = rd.summarize(daily, by=["variant", "day"], metrics=["clicked@1"]).set_index(["variant", "day"])["value"]
    np.testing.assert_allclose(data["diff"], means["B"] - means["A"], atol=1e-12)
    ax = rd.plot.over_time(effect)
    (bars,) = ax.collections
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, data[["ci_low", "ci_high"]], atol=1e-12)
    assert ax.get_xlabel() == "day"
    caption = " ".join(next(text.get_text() for text in ax.texts).split())
    assert "for its own period alone; n = 40 users" in caption
    page = rd.report(small, tmp_path / "r.html", over_time=effect).read_text(encoding="utf-8")
    assert "Effect on clicked@1" in page


def test_over_time_draws_a_cumulative_effect_of_a_log(by_day):
    daily, _ = by_day
    tables = []
    for day in daily["day"].unique():
        so_far = rd.roll_up(daily[daily["day"] <= day], ["user_id", "variant"], how={"clicked@1": "sum"})
        table = rd.compare_variants(so_far, "clicked@1", control="A", sequential_n=40)
        tables.append(table.assign(period=day, kind="cumulative"))
    effect = pd.concat(tables, ignore_index=True)
    data = rd.plot.over_time.data(effect)
    np.testing.assert_allclose(data["diff"], [0.0, 0.0, 0.25, 0.5, 0.75], atol=1e-12)
    assert (np.diff(data["n"]) == 0).all()
    ax = rd.plot.over_time(effect)
    assert len(ax.collections) == 1  # the band
    assert ax.get_title(loc="left") == "Effect on clicked@1, cumulative"


def test_forest_marks_only_what_holds(compared):
    data = rd.plot.forest.data(compared)
    assert data["sign"].tolist() == [
        {"better": "better", "worse": "worse"}.get(verdict, "open") for verdict in compared["verdict"]
    ]
    axes = rd.plot.forest(compared)
    assert [ax.get_title(loc="left") for ax in axes] == ["Difference of ndcg@10", "Difference of first_rank@10"]
    for ax in axes:
        low, high = ax.get_xlim()
        assert low == -high  # zero is in the middle of every panel
        points = [line for line in ax.lines if len(line.get_xdata()) == 1]
        hollow = [line.get_markerfacecolor() == "none" for line in points]
        rows = data[data["metric"] == ax.get_title(loc="left").removeprefix("Difference of ")]
        assert hollow == (rows["sign"] == "open").tolist()


def test_forest_ends_an_open_interval_in_an_arrow(compared):
    one_sided = compared[compared["metric"] == "ndcg@10"].assign(ci_high=np.inf)
    ax = rd.plot.forest(one_sided)
    assert [line.get_marker() for line in ax.lines].count(">") == len(one_sided)
    assert max(max(line.get_xdata()) for line in ax.lines) <= ax.get_xlim()[1]


def test_forest_names_segments(compared):
    table = compared[compared["metric"] == "ndcg@10"].query("model == 'knn'")
    parts = pd.concat([table.assign(segment=name) for name in ("new", "old")])[["segment", *table.columns]]
    assert rd.plot.forest.data(parts)["label"].tolist() == ["new", "old"]


# ------------------------------------------------------------------------------------------ names


def test_names_from_data_are_letters(hostile):
    from .conftest import HOSTILE

    for ax in (
        rd.plot.curve(hostile, "ndcg"),
        rd.plot.tradeoff(hostile, x="recall@3", y="ndcg@3"),
        rd.plot.users(hostile, "ndcg@3"),
    ):
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        assert len(texts) >= len(HOSTILE)  # a name that starts with _ is not left out
        assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())
        assert any("⟨U+202E⟩" in text for text in texts)
        ax.figure.savefig(io.StringIO(), format="svg")


def test_long_names_are_short_at_ticks_and_full_in_the_legend():
    table = many_models(3).replace({"model": {"m1": "a-long-name-of-a-run-" + "x" * 40 + "-seed-1"}})
    names = [text.get_text().replace("\n", "") for text in rd.plot.curve(table).get_legend().get_texts()]
    assert "a-long-name-of-a-run-" + "x" * 40 + "-seed-1" in names
    grid = table[table["k"] == 2].assign(part="all")
    ticks = [tick.get_text() for tick in rd.plot.heat(grid, rows="model", columns="part").get_yticklabels()]
    assert max(map(len, ticks)) == 24
    assert any("…" in tick for tick in ticks)


def test_several_by_columns_are_one_name():
    table = many_models(2).assign(fold=[1, 1, 2, 2])[["model", "fold", "metric", "k", "value", "ci_low", "ci_high", "n",
                                                       "n_undefined"]]  # fmt: skip
    assert list(dict.fromkeys(rd.plot.curve.data(table)["model"])) == ["m0 · 1", "m1 · 2"]


# ------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda r, e: rd.plot.curve(r, "ndgc"), rd.OptionError, "metrics names 'ndgc'; did you mean 'ndcg'"),
        (lambda r, e: rd.plot.curve(many_models(2).query("k == 1")), rd.OptionError, "no metric with values at two k"),
        (lambda r, e: rd.plot.curve(r, "ndcg", highlight="kn"), rd.OptionError, "highlight='kn' is not a model"),
        (lambda r, e: rd.plot.curve(r.per_user), rd.ColumnError, "result has no column 'metric'"),
        (lambda r, e: rd.plot.curve([1]), TypeError, "result is a list; expected an Evaluation"),
        (lambda r, e: rd.plot.curve(r, ax=plt.subplots()[1]), rd.OptionError, "ax holds 1 axes; this picture has 4"),
        (lambda r, e: rd.plot.tradeoff(r, x="gini@10"), rd.OptionError, "x='gini@10' is not in the summary"),
        (lambda r, e: rd.plot.users(r, "ndcg@7"), rd.ColumnError, "per_user has no column 'ndcg@7'"),
        (lambda r, e: rd.plot.winners(r, "ndcg@10", model="knn", baseline="knn"), rd.OptionError, "are both 'knn'"),
        (lambda r, e: rd.plot.winners(r, "ndcg@10", model="knn", baseline="x"), rd.OptionError, "baseline='x' is not"),
        (lambda r, e: rd.plot.winners(r, "ndcg@10", model="knn", baseline="random", bins=1), rd.OptionError, "bins=1"),
        (lambda r, e: rd.plot.exposure(e.drop(columns="share")), rd.ColumnError, "has no column 'share'"),
        (lambda r, e: rd.plot.exposure(e.assign(shown=0)), rd.DataError, "no impressions"),
        (lambda r, e: rd.plot.longtail(e, pd.DataFrame({"item": [1]})), rd.ColumnError, "log has no column 'item_id'"),
        (lambda r, e: rd.plot.longtail(e, e[["item_id"]], bands=(0.5, 0.2)), rd.OptionError, "growing shares"),
        (lambda r, e: rd.plot.longtail(e, e[["item_id"]].head(0)), rd.DataError, "log has no rows"),
        (lambda r, e: rd.plot.heat(r.summary, rows="model", columns="k"), rd.OptionError, "name the one to draw"),
        (lambda r, e: rd.plot.heat(r.summary, rows="model", columns="metric"), rd.OptionError, "several rows for"),
        (lambda r, e: rd.plot.heat(r.summary, rows="modl", columns="k"), rd.ColumnError, "did you mean 'model'"),
        (lambda r, e: rd.plot.position(r.summary), rd.ColumnError, "position_table has no column 'rank'"),
        (lambda r, e: rd.plot.forest(r.summary), rd.ColumnError, "comparison has no column 'diff'"),
        (lambda r, e: rd.plot.over_time(effects(), "ctr"), rd.OptionError, "metric='ctr' is not in effect"),
        (lambda r, e: rd.plot.over_time(effects().assign(metric=list("aabbb"))), rd.OptionError, "name one of"),
        (lambda r, e: rd.plot.over_time(effects(), time_col="day"), rd.ColumnError, "effect has no column 'day'"),
    ],
)
def test_bad_input_says_what_to_change(call, error, words, result, exposed):
    with pytest.raises(error) as raised:
        call(result, exposed)
    assert words in str(raised.value)


# ------------------------------------------------------------------------------------------ the gallery of real data


def test_the_gallery_of_real_data_is_skipped_where_they_are_absent(tmp_path, capsys):
    script = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "draw_movielens.py"))
    script["main"]([str(tmp_path / "movielens")])
    assert capsys.readouterr().out.startswith("draw_movielens: movielens is absent, so nothing is drawn")
    assert list(tmp_path.iterdir()) == []
