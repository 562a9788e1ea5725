"""Pictures of effects: the intervals of `forest` and the days of `over_time`."""

import io

import numpy as np
import pandas as pd
import pytest
from display.plot_tables import effects

import recdf as rd


@pytest.fixture
def compared(result):
    return result.compare_models(
        ["ndcg@10", "first_rank@10"], baseline="popularity", missing="drop"
    )


@pytest.mark.long
def test_over_time_is_in_the_order_of_time():
    data = rd.plot.over_time.data(effects())
    assert data["time"].tolist() == [1, 2, 3, 4, 5]
    assert data["diff"].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert data["n"].tolist() == [22] * 5
    ax = rd.plot.over_time(effects())
    assert "all data up to its period" in " ".join(
        next(text.get_text() for text in ax.texts).split()
    )
    dated = effects().assign(
        period=pd.Timestamp("2026-01-01") + pd.to_timedelta(effects()["period"], unit="D")
    )
    rd.plot.over_time(dated).figure.savefig(io.BytesIO())


@pytest.fixture(scope="module")
def by_day():
    """Effects by day from a log of impressions: 40 users see one item a day for five days; from day
    3 on B clicks more.

    A user of A clicks on a day if user + day is a multiple of 4; one of B from day 3 on if it is a
    multiple of 2.
    """
    rows = [(user, day) for day in range(1, 6) for user in range(40)]
    log = pd.DataFrame(rows, columns=["user_id", "session_id"]).assign(item_id="tea", position=0)
    log["variant"] = np.where(log["user_id"] % 2, "B", "A")
    log["time"] = pd.Timestamp("2026-09-01 22:30", tz="UTC") + pd.to_timedelta(
        log["session_id"] - 1, unit="D"
    )
    every = np.where((log["variant"] == "B") & (log["session_id"] >= 3), 2, 4)
    clicked = (log["user_id"] // 2 + log["session_id"]) % every == 0
    clicks = log.loc[clicked, ["user_id", "item_id", "time"]].assign(
        time=lambda one: one["time"] + pd.Timedelta("1s")
    )
    lists = rd.from_impressions(log, time_col="time", clicks=clicks, window="1h")
    carry = {"time": "min", "variant": "constant"}
    visits = rd.evaluate(*lists, "clicked@1", user_col=["user_id", "session_id"], carry=carry)
    daily = rd.logs.time_slice(
        visits.per_user, "time", "1D", tz="Europe/Berlin"
    )  # half past midnight of the next day
    effect = rd.compare_variants(
        daily, "clicked@1", control="A", by="day", expected={"A": 0.5, "B": 0.5}
    )
    return daily, effect


@pytest.mark.long
def test_over_time_draws_effects_by_day_of_a_log(by_day, small, tmp_path):
    daily, effect = by_day
    data = rd.plot.over_time.data(effect)
    assert data["time"].tolist() == list(pd.date_range("2026-09-02", periods=5))
    assert data["diff"].tolist() == [
        0.0,
        0.0,
        0.25,
        0.25,
        0.25,
    ]  # 5 of 20 click, of B 10 from day 3 on
    assert data["n"].tolist() == [40] * 5
    means = rd.summarize(daily, by=["variant", "day"], metrics=["clicked@1"]).set_index(
        ["variant", "day"]
    )["value"]
    np.testing.assert_allclose(data["diff"], means["B"] - means["A"], atol=1e-12)
    ax = rd.plot.over_time(effect)
    (bars,) = ax.collections
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, data[["ci_low", "ci_high"]], atol=1e-12)
    assert ax.get_xlabel() == "day"
    caption = " ".join(next(text.get_text() for text in ax.texts).split())
    assert (
        "intervals that hold together, adjusted by Holm's method for 5 tests; n = 40 users"
        in caption
    )
    page = rd.report(small, tmp_path / "r.html", over_time=effect).read_text(encoding="utf-8")
    assert "Effect on clicked@1" in page


def read_back(table):
    """The table from a file, which keeps no record of how it was made."""
    return pd.read_csv(io.StringIO(table.to_csv(index=False)))


def test_over_time_of_a_file_says_what_its_intervals_hold_for(by_day):
    """It does not show how they were adjusted. Its columns may be in another order."""
    _, effect = by_day
    read = read_back(effect)
    first = read.set_index("metric").reset_index()
    days = pd.to_datetime(first["day"])
    captions = []
    for table in (read, first, read.iloc[2:4], effect.set_index("metric").reset_index()):
        data = rd.plot.over_time.data(table)
        assert pd.to_datetime(data["time"]).isin(days).all()
        captions.append(" ".join(rd.plot.over_time(table).texts[0].get_text().split()))
    together = "bars: intervals that hold together, adjusted by Holm's method for 5 tests"
    unknown = "bars: intervals, adjusted in a way that these rows do not show"
    for caption, said in zip(captions, [unknown] * 3 + [together], strict=True):
        assert caption.startswith(said + ";")
    alone = rd.plot.over_time(read.assign(p_adj=read["p_value"])).texts[0].get_text()
    assert "each of which holds for its own period alone" in " ".join(alone.split())


@pytest.mark.parametrize("kind", ["daily", "cumulative"])
def test_every_period_has_the_look_and_the_words_of_its_verdict(kind):
    verdicts = [
        "better",
        "worse, within the margin",
        "no difference shown",
        "check: tiny",
        "better",
    ]
    codes = ["better", "worse", "none", "", "better"]
    table = effects().sort_values("period")
    table = table.assign(verdict=verdicts, effect=codes, kind=kind, p_adj=0.5)
    data = rd.plot.over_time.data(table)
    assert data["verdict"].tolist() == verdicts
    assert data["sign"].tolist() == ["better", "worse", "open", "open", "better"]
    ax = rd.plot.over_time(table)
    marks = {
        line.get_marker(): line for line in ax.lines if line.get_marker() not in ("None", None, "")
    }
    assert {name: list(line.get_xdata()) for name, line in marks.items()} == {
        "^": [1, 5],
        "v": [2],
        "o": [3, 4],
    }
    assert [marks[name].get_markerfacecolor() == "none" for name in "^vo"] == [False, False, True]
    assert "filled: better (blue) or worse (orange)" in " ".join(ax.texts[0].get_text().split())
    assert (
        rd.plot.over_time.data(effects().drop(columns="verdict", errors="ignore"))["sign"].tolist()
        == ["open"] * 5
    )


@pytest.mark.long
def test_over_time_draws_a_cumulative_effect_of_a_log(by_day):
    daily, _ = by_day
    tables = []
    for day in daily["day"].unique():
        so_far = rd.experiments.roll_up(
            daily[daily["day"] <= day], ["user_id", "variant"], how={"clicked@1": "sum"}
        )
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
        {"better": "better", "worse": "worse"}.get(verdict, "open")
        for verdict in compared["verdict"]
    ]
    axes = rd.plot.forest(compared)
    assert [ax.get_title(loc="left") for ax in axes] == [
        "Difference of ndcg@10",
        "Difference of first_rank@10",
    ]
    for ax in axes:
        low, high = ax.get_xlim()
        assert low == -high  # zero is in the middle of every panel
        hollow = {
            place: line.get_markerfacecolor() == "none"
            for line in ax.lines
            if line.get_marker() in ("o", "^", "v")
            for place in line.get_ydata()
        }
        rows = data[data["metric"] == ax.get_title(loc="left").removeprefix("Difference of ")]
        assert hollow == dict(enumerate(rows["sign"] == "open"))


def test_forest_ends_an_open_interval_in_an_arrow(compared):
    one_sided = compared[compared["metric"] == "ndcg@10"].assign(ci_high=np.inf)
    ax = rd.plot.forest(one_sided)
    assert [line.get_marker() for line in ax.lines].count(">") == len(one_sided)
    assert max(max(line.get_xdata()) for line in ax.lines) <= ax.get_xlim()[1]


def test_forest_names_segments(compared):
    table = compared[compared["metric"] == "ndcg@10"].query("model == 'knn'")
    parts = pd.concat([table.assign(segment=name) for name in ("new", "old")])[
        ["segment", *table.columns]
    ]
    assert rd.plot.forest.data(parts)["label"].tolist() == ["new", "old"]
