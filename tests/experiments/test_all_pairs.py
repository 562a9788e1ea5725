"""All pairs of variants (control=None): the rows of one control at a time, corrected together, and
read as pairs."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

import recdf as rd

LABELS = ["metric", "control", "treatment"]
PAIRS = [("A", "B"), ("A", "C"), ("B", "C")]


def users(seed=0, n=900):
    rng = np.random.default_rng(seed)
    arm = np.arange(n) % 3
    frame = pd.DataFrame(
        {"user_id": range(n), "variant": np.array([*"ABC"])[arm], "half": (np.arange(n) // 3) % 2}
    )
    return frame.assign(shown=rng.poisson(8, n) + 1, past=rng.normal(5, 1, n)).assign(
        m=lambda one: one["past"] + rng.normal(0.25 * arm, 1),
        clicks=lambda one: rng.binomial(one["shown"], 0.2),
    )


PLAN = dict.fromkeys("ABC", 1)
METRICS = {"m": "m", "ctr": ("clicks", "shown")}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"covariates": {"m": "past"}},
        {"strata": "half"},
        {"by": "half"},
        {"relative": "log"},
        {"test": "bootstrap", "n_resamples": 100},
        {"sequential_n": 900},
        {"cap": {"m": 0.99}, "expected": PLAN},
    ],
)
def test_every_pair_has_the_row_of_its_own_control(options):
    data = users()
    table = rd.compare_variants(
        data, METRICS, control=None, correction="none", **options, details=True
    )
    own = ["half", *LABELS] if "by" in options else LABELS
    assert table[["control", "treatment"]].drop_duplicates().to_numpy().tolist() == [
        list(pair) for pair in PAIRS
    ]
    parts = [
        rd.compare_variants(data, METRICS, control=c, correction="none", **options, details=True)
        for c in "AB"
    ]
    wanted = pd.concat(parts).set_index(own).sort_index()
    found = table.set_index(own).sort_index()
    # What is tested together over the table has as many tests as the table has pairs.
    pd.testing.assert_frame_equal(
        pd.DataFrame(found).drop(columns="balance_p"),
        pd.DataFrame(wanted.loc[found.index]).drop(columns="balance_p"),
    )


@pytest.mark.long
def test_the_correction_takes_all_pairs_together():
    data = users(1)
    table = rd.compare_variants(data, "m", control=None, expected=PLAN, details=True)
    of = {name: own["m"] for name, own in data.groupby("variant")}
    p = [stats.ttest_ind(of[t], of[c], equal_var=False).pvalue for c, t in PAIRS]
    np.testing.assert_allclose(table["p_value"], p, rtol=1e-9)
    reject, p_adj = multipletests(p, method="holm")[:2]
    np.testing.assert_allclose(table["p_adj"], p_adj, rtol=1e-9)
    assert table["reject"].tolist() == reject.tolist()
    assert table["effect"].tolist() == ["better" if one else "none" for one in reject]
    primary = rd.compare_variants(data, METRICS, control=None, primary="m", details=True)
    np.testing.assert_allclose(primary.loc[primary["metric"] == "m", "p_adj"], p_adj, rtol=1e-9)


def test_a_pair_with_a_covariate_that_differs_is_named_alone():
    data = users(2)
    data.loc[data["variant"] == "C", "past"] += 2
    table = rd.compare_variants(
        data, "m", control=None, covariates="past", expected=PLAN, details=True
    ).set_index(LABELS[1:])
    assert table["unbalanced"].tolist() == ["", "past", "past"]
    assert table["verdict"].str.startswith("check: covariate differs").tolist() == [
        False,
        True,
        True,
    ]
    assert table.loc[("A", "B"), "balance_p"] > 0.01


def test_a_control_is_still_asked_for_and_still_checked():
    with pytest.raises(TypeError, match="control"):
        rd.compare_variants(users(), "m", details=True)
    with pytest.raises(rd.OptionError, match="control='D'"):
        rd.compare_variants(users(), "m", control="D", details=True)
    with pytest.raises(rd.OptionError, match="at least two"):
        rd.compare_variants(users().query("variant == 'A'"), "m", control=None, details=True)


@pytest.mark.long
def test_moments_quantiles_and_parts_compare_all_pairs():
    data = users(3)
    plain = rd.compare_variants(data, "m", control=None, details=True)
    moments = rd.experiments.variant_moments(data, "m")
    found = rd.experiments.compare_variants_from_moments(moments, control=None, details=True)
    names = ["control", "treatment", "diff", "p_adj", "verdict"]
    pd.testing.assert_frame_equal(pd.DataFrame(found[names]), pd.DataFrame(plain[names]), rtol=1e-9)
    tails = rd.experiments.compare_quantiles(data, "m", quantiles=0.5, control=None, details=True)
    against = rd.experiments.compare_quantiles(
        data, "m", quantiles=0.5, control="B", correction="none", details=True
    )
    assert tails["diff"].iloc[2] == pytest.approx(
        against.loc[against["treatment"] == "C", "diff"].iloc[0]
    )
    parts = rd.experiments.compare_zero_inflated(data, "clicks", control=None, details=True)
    assert len(parts) == 9


@pytest.mark.long
@pytest.mark.parametrize("kind", ["daily", "cumulative", "since_exposure"])
def test_effects_over_time_compare_all_pairs(kind):
    rng = np.random.default_rng(4)
    people = users(4, 300)[["user_id", "variant"]].assign(seen=rng.integers(0, 3, 300))
    rows = people.merge(pd.DataFrame({"day": range(6)}), how="cross")
    rows["m"] = rng.poisson(2 + (rows["variant"] == "C"))
    call = {
        "time_col": "day",
        "exposure_col": "seen",
        "kind": kind,
        "correction": "none",
        "sequential_n": 300,
    }
    call = (
        call
        if kind == "cumulative"
        else {name: one for name, one in call.items() if name != "sequential_n"}
    )
    table = rd.experiments.effect_over_time(rows, "m", control=None, **call, details=True)
    assert len(table) == 3 * table["period"].nunique()
    names = ["diff", "se", "p_value", "trend", "trend_se", "trend_verdict"]
    for control in "AB":
        own = rd.experiments.effect_over_time(
            rows, "m", control=control, **call, details=True
        ).set_index(["treatment", "period"])
        mine = table[table["control"] == control].set_index(["treatment", "period"])
        pd.testing.assert_frame_equal(
            pd.DataFrame(mine[names]), pd.DataFrame(own.loc[mine.index, names])
        )
    drawn = rd.plot.over_time.data(table, treatment="C", control="B")
    assert (
        drawn["diff"].tolist()
        == table.loc[(table["treatment"] == "C") & (table["control"] == "B"), "diff"].tolist()
    )
    with pytest.raises(rd.OptionError, match=r"control= is not given; name one of"):
        rd.plot.over_time.data(table, treatment="C")


@pytest.mark.long
def test_a_report_draws_the_effect_of_every_pair_over_time(tmp_path):
    rng = np.random.default_rng(6)
    people = users(6, 300)[["user_id", "variant"]].assign(seen=0)
    rows = people.merge(pd.DataFrame({"day": range(6)}), how="cross")
    rows["m"] = rng.poisson(
        3 + (rows["variant"] == "C") * (5 - rows["day"]) - (rows["variant"] == "B")
    )
    daily = rd.experiments.effect_over_time(
        rows, "m", control=None, time_col="day", exposure_col="seen", details=True
    )
    whole = rd.compare_variants(
        rows.groupby(["user_id", "variant"], as_index=False)["m"].sum(),
        "m",
        control=None,
        details=True,
    )
    path = rd.report(path=tmp_path / "all.html", experiment=whole.iloc[::-1], over_time=daily)
    page = path.read_text("utf-8")
    for pair in ("B against A", "C against A", "C against B"):
        assert f"Effect of {pair} on m" in page
    trend = daily.loc[(daily["treatment"] == "C") & (daily["control"] == "B"), "trend"].iloc[0]
    assert f"{trend:+.3f}".replace("-", "−")[:5] in page
    one = rd.experiments.effect_over_time(
        rows, "m", control="B", time_col="day", exposure_col="seen", details=True
    )
    against_b = whole[whole["control"] == "B"]
    page = rd.report(path=tmp_path / "one.html", experiment=against_b, over_time=one).read_text(
        "utf-8"
    )
    assert "Effect of C on m" in page
    assert "Effect of C against" not in page


def test_a_decision_needs_one_control():
    table = rd.compare_variants(users(), METRICS, control=None, expected=PLAN, details=True)
    roles = {"m": "success", "ctr": ("guardrail", "-50%")}
    assert len(rd.experiments.role_verdicts(table, roles)) == 6
    with pytest.raises(rd.OptionError, match=r"all pairs of variants.*control="):
        rd.experiments.decide_experiment(table, roles=roles)


@pytest.mark.long
def test_tables_and_pictures_name_both_variants(tmp_path):
    data = users(5)
    data.loc[data["variant"] == "B", "m"] -= 1
    table = rd.compare_variants(data, METRICS, control=None, expected=PLAN, details=True)
    names = ["B vs. A", "C vs. A", "C vs. B"]
    assert rd.experiments.report_table(table).frame["comparison"].tolist() == names * 2
    assert rd.plot.forest.data(table)["label"].tolist() == names * 2
    rd.plot.forest(table)
    within = rd.compare_variants(
        data, METRICS, control=None, by="half", expected=PLAN, details=True
    )
    assert len(rd.experiments.segment_effects(within, details=True)) == 12
    assert len(set(rd.plot.forest.data(within)["label"])) == 6
    rd.report(experiment=table, segments=within, path=tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "pairs of variants, harms first" in page
    assert "3 variants · 900 users" in page
    assert "B against A on m" in page
    assert "the control" not in page.split("<table")[0]


def test_one_control_is_still_named_as_the_control(tmp_path):
    table = rd.compare_variants(
        users(5).assign(m=lambda one: one["m"] - 2 * (one["variant"] == "B")),
        "m",
        control="A",
        expected=PLAN,
        details=True,
    )
    page = rd.report(path=tmp_path / "report.html", experiment=table).read_text("utf-8")
    assert "is worse than the control" in page
    assert "Effects: differences from A, harms first" in page
