"""A table that was written, read back, filtered or put into another order says what it said."""

import functools
import io

import numpy as np
import pandas as pd
import pytest
from experiments.test_default_columns import CALLS
from matplotlib.text import Text

import recdf as rd
from recdf.errors import OptionError
from recdf.experiments.decide.adjust_pvalues import adjustment
from recdf.judge.comparisons import segments_first
from recdf.tables.cells import columns_before

EX = rd.experiments
ROLES = {"ctr": "success", "load": ("guardrail", "+9%")}


def from_csv(table, **how):
    """The table from a file, where empty texts are nulls."""
    return pd.read_csv(io.StringIO(table.to_csv(index=False)), **how)


def sorted_columns(table):
    return table[sorted(table.columns)]


def metric_first(table):
    return table.set_index("metric").reset_index()


# Of dtypes, orders of columns and files.
CHANGED = {
    "csv": from_csv,
    "csv as Arrow reads it": lambda table: from_csv(
        table, engine="pyarrow", dtype_backend="pyarrow"
    ),
    "sorted": sorted_columns,
    "reversed": lambda table: table[table.columns[::-1]],
    "metric first": metric_first,
    "texts as objects": lambda table: table.assign(
        **{name: table[name].astype(object) for name in ["withheld", "remarks", "effect"]}
    ),
    "sorted in a file": lambda table: from_csv(sorted_columns(table)),
    "categories": lambda table: table.astype(
        dict.fromkeys(["metric", "control", "treatment", "verdict"], "category")
    ),
}


@pytest.fixture(scope="module")
def users():
    rng = np.random.default_rng(0)
    found = pd.DataFrame({"user_id": range(900), "variant": ["A", "B"] * 450})
    found["zone"] = rng.choice(["fi", "no", "se"], 900)
    found["ctr"] = rng.normal(1, 1, 900) + 0.5 * (found["variant"] == "B")
    found["load"] = rng.gamma(20, 5, 900)
    return found


@pytest.fixture(scope="module")
def compare(users):
    """Comparisons of all users, or within their zones."""

    def made(**options):
        return rd.compare_variants(
            users,
            ["ctr", "load"],
            control="A",
            expected={"A": 1, "B": 1},
            smaller_is_better="load",
            details=True,
            **options,
        )

    return made


@pytest.mark.few(2)
@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_changed_table_is_read_alike(compare, change):
    table, zones = compare(), compare(by="zone")
    other, other_zones = change(table), change(zones)
    for call in (
        lambda one, _: EX.role_verdicts(one, ROLES),
        lambda one, _: EX.decide_experiment(one, roles=ROLES),
        lambda _, parts: EX.segment_effects(parts, details=True),
        lambda _, parts: EX.report_table(parts).frame,
        lambda _, parts: rd.plot.forest.data(parts),
        lambda one, _: rd.plot.forest.data(EX.role_verdicts(one, ROLES)),
    ):
        want, found = call(table, zones), call(other, other_zones)
        found, want = (pd.DataFrame(one).astype(object) for one in (found, want))
        pd.testing.assert_frame_equal(found, want)
    roles = EX.role_verdicts(table, ROLES)
    drawn = rd.plot.forest.data(from_csv(roles))
    pd.testing.assert_frame_equal(drawn, rd.plot.forest.data(roles), check_dtype=False)
    with pytest.raises(OptionError, match=r"compares within \['zone'\]"):
        EX.decide_experiment(other_zones, roles=ROLES)


@pytest.mark.parametrize("change", [metric_first, sorted_columns, lambda table: table])
def test_one_segment_of_a_comparison_is_not_taken_for_all_users(compare, change):
    zones = change(compare(by="zone"))
    one = zones[zones["zone"] == "fi"]
    for table in (one, from_csv(one)):
        with pytest.raises(OptionError, match=r"compares within \['zone'\]"):
            EX.decide_experiment(table, roles=ROLES)
        assert EX.report_table(table).frame.columns[0] == "zone"
        assert rd.plot.forest.data(table)["label"].tolist() == ["fi", "fi"]


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["n", "p", "means", "MDE", "relative", "users", "difference"])
def test_a_segment_may_have_the_name_of_a_column_for_people(name, users, tmp_path, monkeypatch):
    """A column "n" of segments was overwritten with the numbers of users."""
    monkeypatch.setenv("COLUMNS", "60")
    data = users.rename(columns={"zone": name})
    table = rd.compare_variants(data, "ctr", control="A", by=name)
    shown = EX.report_table(table).frame
    assert shown.iloc[:, 0].tolist() == ["fi", "no", "se"]
    n = users.groupby(["zone", "variant"]).size()
    assert shown["n"].tolist() == [f"{n[one, 'B']} vs. {n[one, 'A']}" for one in ["fi", "no", "se"]]
    assert {"fi", "no", "se"} <= {*repr(table).split()}
    page = rd.report(experiment=table, path=tmp_path / "r.html").read_text(encoding="utf-8")
    for zone in ("fi", "no", "se"):
        assert f">{zone}<" in page
        assert f">{n[zone, 'B']} vs. {n[zone, 'A']}<" in page


@functools.cache
def of_three_models():
    shop = rd.sample_shop(n_users=400, n_items=100)
    result = rd.evaluate(shop.true, shop.pred, ["ndcg@10", "recall@10"], by="model")
    return result, result.compare_models()


def of_ndcg(table):
    return table[table["metric"] == "ndcg@10"]


HOLM = "is taken into account: the p-values are adjusted by Holm&#39;s method for 6 tests"
UNKNOWN = (
    "may not be taken into account: the p-values are adjusted in a way that these rows do not show"
)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda _, table: table, HOLM),
        (lambda _, table: from_csv(table), UNKNOWN),
        (lambda _, table: of_ndcg(table), UNKNOWN),
        (
            lambda result, _: result.compare_models(correction="none"),
            "is not taken into account: the p-values are",
        ),
        (lambda _, table: from_csv(of_ndcg(table)), UNKNOWN),
    ],
    ids=["as it is", "csv", "one metric", "no correction", "csv of one metric"],
)
def test_a_model_that_was_picked_among_several_is_said_to_be_so(made, said, tmp_path):
    result, table = of_three_models()
    path = rd.report(result, tmp_path / "r.html", comparison=made(result, table))
    assert f"That it was picked among several {said}" in path.read_text(encoding="utf-8")


def test_adjusted_p_values_of_a_file_stand_beside_empty_texts(compare):
    table = compare()
    found = EX.adjust_pvalues(from_csv(table), correction="bonferroni")
    assert found["p_adj"].tolist() == pytest.approx([*np.minimum(2 * table["p_value"], 1)])
    for name in ("withheld", "remarks", "unbalanced"):
        assert found[name].tolist() == table[name].tolist()
    plain = pd.DataFrame({"p_value": [0.1], "reason": [np.nan]})  # a table of the caller's own
    assert EX.adjust_pvalues(plain)["reason"].isna().all()


def from_json(table):
    """The table from a file that has no infinity."""
    return pd.read_json(io.StringIO(pd.DataFrame(table).to_json(double_precision=15)))


@pytest.mark.parametrize("side", ["greater", "less"])
def test_an_open_end_that_json_lost_is_open(compare, side, tmp_path):
    table = compare(alternative=side)
    back = from_json(table)
    lost = "ci_high" if side == "greater" else "ci_low"
    assert back[lost].isna().all()
    pages = [
        rd.report(path=tmp_path / f"{i}.html", experiment=one).read_text(encoding="utf-8")
        for i, one in enumerate((table, back))
    ]
    for page in pages:
        assert "The tests are one-sided" in page
        assert "one-sided interval" in page
    pd.testing.assert_frame_equal(
        EX.role_verdicts(back, {"ctr": "success"}), EX.role_verdicts(table, {"ctr": "success"})
    )


@pytest.mark.parametrize("unit", ["users", "clusters"])
def test_a_file_of_a_table_without_details_says_what_it_counts(users, unit, tmp_path):
    users = users.assign(home=np.arange(len(users)) // 2, variant=np.arange(len(users)) // 2 % 2)
    more = {"cluster": "home"} if unit == "clusters" else {}
    table = rd.compare_variants(users, "ctr", control=0, expected={0: 1, 1: 1}, **more)
    n = table["n_control"].iloc[0]
    for one in (table, from_csv(table)):
        path = rd.report(path=tmp_path / "p.html", experiment=one, overwrite=True)
        page = path.read_text(encoding="utf-8")
        assert f"{n:,} {unit} against {n:,}" in page
        texts = [text.get_text() for text in rd.plot.forest(one).figure.findobj(Text)]
        assert any(f"n = {2 * n:,} {unit}" in text for text in texts)


@pytest.mark.parametrize("p", [[0.0, 1.0], [1.0, 1.0]])
def test_numbers_that_no_correction_changes_do_not_say_that_there_is_none(p):
    table = pd.DataFrame({"metric": ["a", "b"], "p_value": p, "p_adj": p})
    assert adjustment(table).words == "adjusted in a way that these rows do not show"
    table = pd.DataFrame({"metric": ["a", "b"], "p_value": [0.3, 0.4], "p_adj": [0.3, 0.4]})
    assert adjustment(table).words == "not adjusted"


@pytest.mark.parametrize("back", [lambda table: table, from_csv], ids=["as it is", "csv"])
@pytest.mark.parametrize("details", [True, False])
def test_a_verdict_that_another_correction_does_not_bear_out_is_withheld(details, back, tmp_path):
    """Differences of 200 users with t of 0.5, 2.2 and 4.0, whose p are 0.62, 0.029 and 0.0001."""
    noise = np.random.default_rng(0).normal(size=200)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    users = pd.DataFrame({"model": np.repeat(["a", "b"], 200), "user_id": [*range(200)] * 2})
    shifts = {"none": 0.5, "some": 2.2, "much": 4.0}
    for name, t in shifts.items():
        users[name] = np.append(np.zeros(200), noise + t / np.sqrt(200))

    def compared(*metrics, **options):
        table = rd.compare_models(users, [*metrics], baseline="a", details=details, **options)
        return back(table)

    alone = compared(*shifts, correction="none")
    assert alone["effect"].tolist() == ["none", "better", "better"]
    found = EX.adjust_pvalues(alone)  # p of 0.62, 2 · 0.029 and 3 · 0.0001
    assert found["effect"].tolist() == ["none", "", "better"]
    assert found["withheld"].tolist() == ["", "other_correction", ""]
    assert found["remarks"].str.startswith("other_correction").tolist() == [False, True, False]
    assert found["verdict"].tolist()[1] == "check: adjusted in another way"
    assert found["verdict"].tolist()[2] == alone["verdict"].tolist()[2]
    page = rd.report(path=tmp_path / "p.html", experiment=found).read_text(encoding="utf-8")
    assert "b against a on some: check: adjusted in another way." in page
    # Cautions of an effect that the comparison had not shown were not asked.
    found = EX.adjust_pvalues(compared(*shifts, correction="holm"), correction="none")
    assert found["withheld"].tolist() == ["", "other_correction", ""]
    strict = EX.adjust_pvalues(alone, correction="none", confidence=0.99)
    assert strict["withheld"].tolist() == ["", "other_correction", ""]


@pytest.mark.few(4)
@pytest.mark.parametrize("name", CALLS)
def test_a_file_of_any_comparison_has_its_columns_of_segments(name):
    table = CALLS[name](details=True)
    segments = {"over_time": ["period"], "segments": ["land"]}.get(name, [])
    for one in (table, from_csv(table)):
        assert columns_before(segments_first(one), "metric") == segments


def test_a_table_of_an_earlier_release_is_to_be_made_anew(compare):
    old = compare().rename(columns={"n_typical_control": "n_typical"})
    for table in (old.drop(columns="n_typical_treatment"), from_csv(old)):
        with pytest.raises(rd.ColumnError, match="make the comparison anew, since an earlier"):
            EX.decide_experiment(table, roles=ROLES)


def test_segments_that_were_named_afterwards_tell_rows_apart(users, compare):
    zones = compare(by="zone")
    parts = [
        rd.compare_variants(part, ["ctr", "load"], control="A", details=True).assign(zone=zone)
        for zone, part in users.groupby("zone")
    ]
    found = EX.segment_effects(pd.concat(parts))
    pd.testing.assert_series_equal(found["q"], EX.segment_effects(zones)["q"])
    assert found.columns[0] == "zone"


def test_a_column_of_the_caller_is_no_segment(compare):
    table = compare().assign(owner=["Ann", "Bo"])
    for one in (table, from_csv(table)):
        found = EX.decide_experiment(one, roles=ROLES)
        pd.testing.assert_frame_equal(found, EX.decide_experiment(compare(), roles=ROLES))
        assert "owner" not in EX.report_table(one).frame


@pytest.mark.few(1)
@pytest.mark.parametrize("by", [None, "zone"])
def test_a_health_table_from_a_file_flags_nothing_that_it_did_not(users, by, tmp_path):
    health = EX.experiment_health(
        users[["user_id", "ctr"]], users[["user_id", "variant", "zone"]], by=by
    )
    read = from_csv(health)
    assert read["srm_flag"].isna().all()
    want, found = (
        rd.compare_variants(users, ["ctr", "load"], control="A", by=by, health=one, details=True)
        for one in (health, read)
    )
    pd.testing.assert_frame_equal(found, want)
    pages = []
    for one in (health, read):
        path = rd.report(
            experiment=want, health=one, path=tmp_path / "r.html", overwrite=True, title="t"
        )
        pages.append("Sample ratio as planned" in path.read_text(encoding="utf-8"))
    assert all(pages)


def test_an_estimate_that_is_not_to_be_used_stays_so_in_a_file(tmp_path):
    rng = np.random.default_rng(0)
    log = pd.DataFrame(
        {
            "user_id": np.repeat(range(300), 4),
            "reward": (rng.random(1200) < 0.3).astype(float),
            "propensity": rng.uniform(0.1, 0.9, 1200),
            "target_propensity": rng.uniform(0, 0.3, 1200),  # some of its mass is nowhere
        }
    )
    table = rd.ope.estimate(log)
    assert (table["effect"] == "").all()
    for one in (table, from_csv(table)):
        path = rd.report(off_policy=one, path=tmp_path / "r.html", overwrite=True)
        assert "none should be used" in path.read_text(encoding="utf-8")
