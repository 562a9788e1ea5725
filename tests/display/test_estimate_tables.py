"""Every table of `rd.experiments` survives parquet and a join, has a picture and its part of the
page, in its words."""

import html
import io
import re

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main

from .experiment_tables import ROLES, experiment_tables
from .planted import card_of
from .test_sentences import section

plt = pytest.importorskip("matplotlib.pyplot")
NAMES = list(experiment_tables())
BESIDE = ["find_srm", "aa_test", "role_verdicts", "plan_comparison", "plan_experiment", "plan_of_n"]


@pytest.fixture(scope="module")
def all_path(tmp_path_factory):
    tables = {
        name: table for name, table in experiment_tables().items() if name != "decide_experiment"
    }
    return rd.report(path=tmp_path_factory.mktemp("all") / "r.html", experiment=tables, roles=ROLES)


def through_parquet(table):
    file = io.BytesIO()
    table.to_parquet(file)
    return pd.read_parquet(file)


def plain(text):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def drawn_texts(drawn):
    panels = np.atleast_1d(drawn).ravel()
    texts = [text.get_text() for one in panels for text in one.figure.findobj(plt.Text)]
    plt.close(panels[0].figure)
    return " | ".join(texts)


@pytest.mark.few(5)
@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_tidy_and_survives_parquet_and_a_join(name):
    table = experiment_tables()[name]
    assert isinstance(table.index, pd.RangeIndex)
    assert all(isinstance(column, str) for column in table.columns)
    again = through_parquet(table)
    pd.testing.assert_frame_equal(again, pd.DataFrame(table), check_dtype=False)
    key = "metric" if "metric" in table.columns else table.columns[0]
    owners = pd.DataFrame({key: table[key].drop_duplicates(), "owner": "search"})
    assert (again.merge(owners, on=key, how="left", validate="m:1")["owner"] == "search").all()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("decide_experiment", "effect_over_time")]
)
def test_a_picture_says_the_verdicts_of_its_table(name):
    table = experiment_tables()[name]
    again = through_parquet(table)
    said = drawn_texts(rd.plot.forest(again))
    for verdict in table.get("verdict", []):
        assert verdict.partition(", unless")[0] in said  # a picture cuts long sentences
    pd.testing.assert_frame_equal(rd.plot.forest.data(again), rd.plot.forest.data(table))


def test_the_numbers_of_a_picture_are_those_of_the_table():
    tables = experiment_tables()
    aa, data = tables["aa_test"], rd.plot.forest.data(tables["aa_test"])
    assert data[["diff", "ci_low", "ci_high", "allowed"]].to_numpy().tolist() == (
        aa[["rejected", "rejected_low", "rejected_high", "alpha"]].to_numpy().tolist()
    )
    row = aa.iloc[0]
    assert data["numbers"].iloc[0] == (
        f"{row['rejected']:.1%} [{row['rejected_low']:.1%}, {row['rejected_high']:.1%}]"
    )
    assert row["recommended"]
    assert f"recommended: {row['recommended']}" in data["metric"].iloc[0]
    none = rd.plot.forest.data(aa.assign(recommended=""))
    assert none["metric"].str.endswith("recommended: none").all()
    ratio, data = tables["find_srm"].iloc[0], rd.plot.forest.data(tables["find_srm"]).iloc[0]
    assert (ratio["level"], ratio["explains"], data["sign"]) == ("tv", True, "worse")
    assert data["diff"] == ratio["n_variant"] / ratio["n_expected"] - 1
    assert data["numbers"] == (
        f"{ratio['n_variant']:,} users, planned {ratio['n_expected']:,.0f}; p <0.001, explains the "
        "whole"
    )
    roles, data = tables["role_verdicts"], rd.plot.forest.data(tables["role_verdicts"])
    assert data[["diff", "ci_low", "ci_high"]].to_numpy().tolist() == (
        roles[["change", "change_low", "change_high"]].to_numpy().tolist()
    )
    assert data["allowed"].tolist()[1:] == [-0.02, 4.0]
    plan, data = tables["plan_experiment"], rd.plot.forest.data(tables["plan_experiment"])
    assert data["diff"].tolist() == (plan["n_control"] + plan["n_treatment"]).tolist()
    assert all(
        f"{days:,.0f} days" in text for days, text in zip(plan["days"], data["words"], strict=True)
    )
    given = rd.plot.forest.data(tables["plan_of_n"])
    assert given["diff"].tolist() == tables["plan_of_n"]["mde_rel"].tolist()
    assert given["ci_low"].isna().all()


@pytest.mark.long
def test_the_page_takes_every_table_by_its_columns(all_path):
    tables, page = experiment_tables(), all_path.read_text(encoding="utf-8")
    for i, name in enumerate(name for name in NAMES if name in (*BESIDE, "compare_interleaved")):
        said = section(all_path, f"beside-{i}")
        for verdict in tables[name].get("verdict", []):
            assert verdict in said
        if name != "compare_interleaved":
            data = rd.plot.forest.data(tables[name])
            for text in [*data["numbers"], *data["label"]]:
                assert plain(text) in said
    for name in ("compare_quantiles", "compare_zero_inflated"):
        assert f"Effects, {name}" in page
    assert card_of(all_path)[2] == "do not ship"
    lines = card_of(all_path)[0]
    ratio = "Sample ratio by level, find_srm: device = tv: B: invalid: sample ratio, "
    assert ratio in lines["What could overturn it"]
    trend = tables["effect_over_time"]["trend_verdict"].iloc[0]
    assert f"Trend: {trend}" in lines["By how much"]
    found = tables["segment_effects"].query("metric == 'clicks'").iloc[0]
    assert (
        f"clicks, B against A: {found['verdict']} (Q = {found['q']:.4g} of 3 segments"
        in lines["For whom worse"]
    )
    assert (
        "in none of 3 segments" not in lines["For whom worse"]
    )  # no segment has a verdict of its own here
    inter = tables["compare_interleaved"].iloc[0]
    assert f"{inter['wins']:,} users prefer b, {inter['losses']:,} prefer a" in page


@pytest.mark.few(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("without_pictures")
def test_a_page_about_one_table(tmp_path, name):
    path = rd.report(
        path=tmp_path / "r.html", experiment=through_parquet(experiment_tables()[name])
    )
    said = plain(path.read_text(encoding="utf-8"))
    words = {"effect_over_time": "trend_verdict", "decide_experiment": "reasons"}.get(
        name, "verdict"
    )
    for verdict in experiment_tables()[name].get(words, []):
        assert verdict in said


@pytest.mark.long
@pytest.mark.usefixtures("without_pictures")
def test_the_words_of_segments_are_those_of_the_table_that_was_given(tmp_path):
    """A table with another correction or doubt is not tested again by the defaults."""
    tables = experiment_tables()
    apart = tables["segment_effects"].assign(verdict="check: tiny arms", p_adj=0.444)
    path = rd.report(
        path=tmp_path / "r.html", experiment=tables["compare_variants"], segments=apart
    )
    said = card_of(path)[0]["For whom worse"]
    assert "check: tiny arms (Q = " in said
    assert "p 0.444" in said


@pytest.mark.long
def test_the_effect_over_time_is_drawn_for_every_treatment_and_its_trend_is_said(tmp_path):
    rng = np.random.default_rng(3)
    people = pd.DataFrame({"user_id": range(300), "variant": ["A", "B", "C"] * 100, "seen": 0})
    rows = people.merge(pd.DataFrame({"day": range(8)}), how="cross")
    rows["ndcg"] = rng.normal(0.3, 0.05, len(rows)) + 0.1 * (rows["variant"] == "B") / (
        1 + rows["day"]
    )
    per_user = rows.groupby(["user_id", "variant"], as_index=False)["ndcg"].mean()
    equal = {"A": 1, "B": 1, "C": 1}
    table = rd.compare_variants(per_user, "ndcg", control="A", expected=equal, details=True)
    for kind in ("daily", "since_exposure", "cumulative"):
        days = rd.experiments.effect_over_time(
            rows,
            "ndcg",
            control="A",
            time_col="day",
            exposure_col="seen",
            kind=kind,
            expected=equal,
            details=True,
        )
        path = rd.report(path=tmp_path / f"{kind}.html", experiment=table, over_time=days)
        page = path.read_text(encoding="utf-8")
        assert "Effect of B on ndcg" in page
        assert "Effect of C on ndcg" in page
        assert "Trend: fades, −0.0" in card_of(path)[0]["By how much"].replace("-", "−")


@pytest.mark.long
def test_effects_over_time_of_every_metric_are_drawn(tmp_path):
    days = experiment_tables()["effect_over_time"]
    both = pd.concat([days, days.assign(metric="sales")], ignore_index=True)
    path = rd.report(
        path=tmp_path / "r.html", experiment=experiment_tables()["compare_variants"], over_time=both
    )
    page = path.read_text(encoding="utf-8")
    assert "Effect on clicks, since exposure" in page
    assert "Effect on sales, since exposure" in page


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (
            lambda t: {"a": t["effect_over_time"], "b": t["effect_over_time"]},
            "a second table for the part 'over_time' of the page",
        ),
        (
            lambda t: {"ranker": {"effects": t["compare_variants"]}, "layout": {}},
            r"experiment\['ranker'\] is a dict; expected what rd.compare_variants",
        ),
        (lambda t: {"a": t["aa_test"].iloc[:0]}, "has no rows"),
        (lambda t: {"a": t["aa_test"][["metric"]]}, "has no column"),
    ],
)
def test_a_table_that_cannot_be_shown_is_refused(tmp_path, tables, said):
    with pytest.raises((rd.RecdfError, ValueError, TypeError), match=said):
        rd.report(path=tmp_path / "r.html", experiment=tables(experiment_tables()))


@pytest.mark.long
def test_the_command_takes_several_tables(tmp_path, capsys):
    files = []
    for name in ("compare_variants", "aa_test", "compare_interleaved", "effect_over_time"):
        files.append(str(tmp_path / f"{name}.parquet"))
        experiment_tables()[name].to_parquet(files[-1])
    out = tmp_path / "r.html"
    assert main(["report", "--experiment", *files, "--out", str(out)]) == 0
    page = out.read_text(encoding="utf-8")
    assert "A/A test, aa_test" in page
    assert "Interleaved lists, compare_interleaved" in page
    assert "Effect on clicks, since exposure" in page
    assert main(["report", "--experiment", files[1], "--out", str(tmp_path / "s.html")]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("name", ["health", "check", "off_policy", "over_time"])
def test_what_is_no_table_is_refused(name, tmp_path):
    with pytest.raises(TypeError, match=f"^{name} is a list; expected .*rd\\."):
        rd.report(path=tmp_path / "r.html", **{name: []})


@pytest.mark.parametrize("name", ["health", "check"])
def test_numbers_of_rows_may_be_floats(name, tmp_path):
    shop = rd.sample_shop()
    users = pd.DataFrame({"user_id": range(40), "variant": ["A", "B"] * 20, "m": 1.0})
    table = {
        "health": rd.experiments.experiment_health(
            users[["user_id", "m"]], users[["user_id", "variant"]]
        ),
        "check": rd.check(shop.true, shop.pred, by="model"),
    }[name]
    counts = table.select_dtypes("integer").columns
    pages = [
        rd.report(path=tmp_path / f"{i}.html", **{name: one}).read_text(encoding="utf-8")
        for i, one in enumerate([table, table.astype(dict.fromkeys(counts, float))])
    ]
    assert pages[0].replace(".0", "") == pages[1].replace(".0", "")


def given(name):
    tables = experiment_tables()
    result = rd.evaluate({"u": ["a"]}, {"u": ["a"]}, ["recall", "ndcg"], k=[1, 2])
    return {
        "forest": (rd.plot.forest, tables["compare_variants"], {}),
        "heat": (rd.plot.heat, result.summary, {"rows": "metric", "columns": "k"}),
    }[name]


@pytest.mark.parametrize("name", ["forest", "heat"])
def test_tables_that_no_picture_can_show_are_refused(name):
    draw, table, more = given(name)
    with pytest.raises(rd.DataError, match="no rows"):
        draw(table.iloc[:0], **more)
    with pytest.raises(rd.ColumnError, match="columns of one name"):
        draw(pd.concat([table, table.iloc[:, :1]], axis=1), **more)
    two_levels = table.set_axis(pd.MultiIndex.from_product([table.columns, ["x"]]), axis=1)
    with pytest.raises(rd.ColumnError, match="has names of columns on 2 levels"):
        draw(two_levels, **more)
