"""Roles of metrics and the decision: against statsmodels with a shifted null, by hand, and by
simulation."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

import recdf as rd
from recdf.errors import ColumnError, DataError, IdTypeError, OptionError

HALF = {"A": 1, "B": 1}
EX = rd.experiments


def experiment(n=4000, seed=0, **effects):
    """Users of two equal arms with normal metrics of mean 10 and standard deviation 3, and effects
    on them."""
    draw = np.random.default_rng(seed)
    treated = np.arange(n) % 2
    metrics = {name: draw.normal(10, 3, n) + effect * treated for name, effect in effects.items()}
    return pd.DataFrame({"user_id": range(n), "variant": ["A", "B"] * (n // 2), **metrics})


def compared(users, metrics, **options):
    return rd.compare_variants(
        users, metrics, control="A", **{"expected": HALF, **options}, details=True
    )


def one(table, role, **options):
    return EX.role_verdicts(table, {table["metric"].iloc[0]: role}, **options).iloc[0]


@pytest.mark.parametrize(("margin", "better"), [(-0.2, "larger"), (0.2, "smaller"), (0, "larger")])
def test_an_absolute_margin_is_a_t_test_with_a_shifted_null(margin, better):
    users = experiment(900, spend=0.1)
    users = users.drop(index=users.index[users["variant"] == "B"][:200])
    smaller = "spend" if better == "smaller" else None
    table = compared(
        users,
        "spend",
        smaller_is_better=smaller,
        larger_is_better=[],
        expected={"A": 450, "B": 250},
    )
    table = table if smaller else compared(users, "spend", expected={"A": 450, "B": 250})
    row = one(table, ("guardrail", margin))
    arms = [DescrStatsW(users.loc[users["variant"] == name, "spend"]) for name in "BA"]
    both = CompareMeans(*arms)
    larger = both.ttest_ind(alternative="larger", usevar="unequal", value=margin)[1]
    assert row["p_safe"] == pytest.approx(larger if better == "larger" else 1 - larger, rel=1e-9)
    assert row["p_harmed"] == pytest.approx(1 - row["p_safe"], rel=1e-9)
    low, high = both.tconfint_diff(alpha=0.1, usevar="unequal")  # both ends are one-sided at 5 %
    assert (row["change_low"], row["change_high"]) == pytest.approx((low, high), rel=1e-9)


@pytest.mark.parametrize(("margin", "smaller"), [("-2%", False), ("+3%", True), ("−2.5%", False)])
def test_a_relative_margin_compares_with_a_share_of_the_control(margin, smaller):
    users = experiment(1400, spend=-0.15)
    table = compared(users, "spend", smaller_is_better="spend" if smaller else None)
    row = one(table, ("guardrail", margin))
    a, b = (users.loc[users["variant"] == name, "spend"] for name in "AB")
    share = 1 + float(margin.replace("−", "-").rstrip("%")) / 100
    larger = CompareMeans(DescrStatsW(b), DescrStatsW(share * a)).ttest_ind("larger", "unequal")[1]
    assert row["p_safe"] == pytest.approx(1 - larger if smaller else larger, rel=1e-9)
    # Fieller's bounds are where T is at its quantile.
    for end, sign in ((row["change_low"], 1), (row["change_high"], -1)):
        scale = 1 + end
        t = (b.mean() - scale * a.mean()) / np.hypot(b.sem(), scale * a.sem())
        assert t == pytest.approx(sign * stats.t.isf(0.05, table["df"].iloc[0]), rel=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"covariates": "pre"},
        {"strata": "country"},
        {"covariates": ["pre", "age"]},
        {"cluster": "shop"},
    ],
)
def test_the_arms_are_those_of_the_estimate(options):
    users = experiment(2000, spend=-0.1, pre=0, age=0)
    users["spend"] += users["pre"] + users["age"]
    users["country"], users["shop"] = (
        users.index % 7,
        users.index // 2 % 60 * 2 + (users["variant"] == "B"),
    )
    table = compared(users.drop(columns="user_id"), "spend", **options)
    row, given = one(table, ("guardrail", "-2%")), table.iloc[0]
    assert np.hypot(given["se_control"], given["se_treatment"]) == pytest.approx(
        given["se"], rel=1e-12
    )
    side = "" if np.isnan(given["mean_control_adjusted"]) else "_adjusted"
    t = (given[f"mean_treatment{side}"] - 0.98 * given[f"mean_control{side}"]) / np.hypot(
        given["se_treatment"], 0.98 * given["se_control"]
    )
    assert row["p_safe"] == pytest.approx(
        stats.t.sf(t, given["df"]), rel=3e-3
    )  # the degrees differ a little
    wide = stats.t.isf(0.05, given["df"]) * given["se"]
    absolute = one(table, ("guardrail", -0.3))
    assert absolute["change_low"] == pytest.approx(given["diff"] - wide, rel=1e-9)


@pytest.mark.parametrize(
    ("effect", "n", "words"),
    [
        (0, 8000, "safe"),
        (-1, 8000, "harmed beyond the margin"),
        (-0.25, 60_000, "worse, within the margin"),
        (0, 100, "not shown safe"),
        (-0.5, 1000, "not shown safe"),
    ],
)
def test_the_four_words_of_a_guardrail(effect, n, words):
    table = compared(experiment(n, 1, spend=effect), "spend")
    row = one(table, ("guardrail", "-5%"))
    control, treatment = (table[f"mean_{side}"].iloc[0] for side in ("control", "treatment"))
    first, *rest = row["verdict"].split(", unless ")
    assert first == words
    assert bool(rest) == ("unbounded" in row["remarks"]) == (words != "not shown safe")
    for text in rest:
        said = re.fullmatch(
            r"3 in ([\d,]+) users( of the control)? have ([−\d.,]+) or (less|more)", text
        )
        # K more users of an arm at the value that is said take its mean to the margin.
        mean, claim = (control, treatment / 0.95) if said[2] else (treatment, control * 0.95)
        value = claim + n / 2 * (claim - mean) / np.log(20)
        number = float(said[3].replace("−", "-").replace(",", ""))
        assert (int(said[1].replace(",", "")), number) == (n // 2, pytest.approx(value, rel=5e-3))
        assert said[4] == ("less" if mean > claim else "more")
        assert number > 0  # spend of the other sign is said last


@pytest.mark.parametrize("margin", [-0.009, "-1%"])
def test_a_guardrail_that_three_unseen_users_would_turn_is_not_safe(margin):
    users = experiment(200, 4, x=0)  # near .9, without anybody who loses all
    table = compared(users.assign(**{"ndcg@10": 0.9 + (users["x"] - 10) * 0.003}), "ndcg@10")
    assert table["withheld"].iloc[0] == ""
    row = one(table, ("guardrail", margin))
    assert row["p_safe"] < 0.001
    # So many zeros beside the 100 users take their mean down to the margin.
    means = table[["mean_treatment", "mean_control"]].iloc[0]
    claim = means.iloc[1] * 0.99 if margin == "-1%" else means.iloc[1] - 0.009
    by = 100 * means.iloc[0] / claim - 100
    assert row["effect"] == "not_safe"
    assert row["note"] == f"check: {by:.2g} users who lose all would turn it"
    wide = one(table, ("guardrail", -0.1))
    assert (wide["effect"], wide["verdict"], wide["note"]) == ("safe", "safe", "")


@pytest.mark.parametrize("margin", [-0.02, -0.015])
def test_a_guardrail_of_weighted_means_counts_units_of_the_typical_weight(margin):
    users = experiment(400, 4, x=0)
    users["w"] = np.where(users.index % 50 < 2, 12.0, 1.0)
    users["ndcg@10"] = 0.9 + (users["x"] - 10) * 0.003
    table = compared(users, "ndcg@10", weight_col="w")
    weight = users.loc[users["variant"] == "B", "w"]
    typical = weight.sum() / np.sqrt((weight**2).mean())
    assert table["n_typical_treatment"].iloc[0] == pytest.approx(typical, rel=1e-12)
    mean, claim = table["mean_treatment"].iloc[0], table["mean_control"].iloc[0] + margin
    by = typical * (mean - claim) / claim
    row = one(table, ("guardrail", margin))
    assert by < np.log(20) < 200 * (mean - claim) / claim  # by the users it would be safe
    assert row["note"] == f"check: {by:.2g} users who lose all would turn it"


def test_a_guardrail_asks_what_users_of_a_small_control_could_do():
    """20 users of the control have .9 and 400 of the treatment as much; with k more users at 1 the
    control would have .9 + .02, the margin: (20·.9 + k)/(20 + k) = .92."""
    b = np.arange(420) >= 20
    users = pd.DataFrame({"user_id": range(420), "variant": np.where(b, "B", "A")})
    users["ndcg@10"] = 0.9 + 0.002 * (np.arange(420) % 2 - 0.5)
    table = compared(users, "ndcg@10", expected={"A": 20, "B": 400})
    row = one(table, ("guardrail", -0.02))
    assert row["effect"] == "safe"
    row = one(table, ("guardrail", -0.01))
    assert row["effect"] == "not_safe"
    assert row["note"] == f"check: {20 * 0.01 / 0.09:.1f} users who gain all would turn it"


def test_a_guardrail_without_bounds_names_the_arm_whose_users_turn_it():
    """3 more users of 100 at v make the control's mean m + .2: (100·m + 3·v)/103, about m + 6.9."""
    b = np.arange(2100) >= 100
    users = pd.DataFrame({"user_id": range(2100), "variant": np.where(b, "B", "A")})
    users["spend"] = 10 + 0.002 * (np.arange(2100) % 2 - 0.5)
    expected = {"A": 100, "B": 2000}
    table = compared(users, "spend", larger_is_better="spend", expected=expected)
    row = one(table, ("guardrail", -0.2))
    assert row["verdict"] == "safe, unless 3 in 100 users of the control have 16.9 or more"


@pytest.mark.parametrize("better", ["larger", "smaller"])
def test_an_arm_whose_bound_alone_is_unknown_is_named(better):
    """`hits` have 0 as their least value and no largest. Where less hits are a loss, hits of more
    users of the control make it one, and where more are, hits of users of the treatment. No user
    has fewer than 0."""
    b = np.arange(400) % 2
    users = pd.DataFrame({"user_id": range(400), "variant": np.where(b, "B", "A")})
    users["hits@10"] = 4.0 + np.arange(400) // 2 % 2
    sign = -1 if better == "larger" else 1
    table = compared(users, "hits@10", **{f"{better}_is_better": "hits@10"})
    # 200 users have 4.5, and with K more of v they have 5.5: (200·4.5 + K·v)/(200 + K) = 5.5.
    row = one(table, ("guardrail", sign * 1.0))
    of = " of the control" if better == "larger" else ""
    value = 5.5 + 200 / np.log(20)
    assert row["verdict"] == f"safe, unless 3 in 200 users{of} have {value:.1f} or more"
    assert "unbounded" in row["remarks"]


def test_the_bounds_of_a_guardrail_are_those_of_its_column():
    """Under another name, too, it is asked about its margin, which 60·.12/.41 users turn."""
    b = np.arange(120) % 2
    users = pd.DataFrame({"user_id": range(120), "variant": np.where(b, "B", "A")})
    users["ndcg@10"] = 0.5 + 0.02 * (np.arange(120) % 4 > 1) + 0.02 * b
    table = compared(users, {"q": "ndcg@10"})
    assert table["withheld"].tolist() == ["unseen_units"]
    row = one(table, ("guardrail", -0.1))
    assert (row["verdict"], row["note"]) == ("safe", "")


def test_a_guardrail_with_the_name_of_a_metric_and_other_values_has_no_bounds():
    users = experiment(2000, 3, x=0)
    users["precision@5"] = users["x"] + 50  # in per cent
    users["revenue"] = -users["x"]  # of refunds
    table = compared(users, ["precision@5", "revenue"], smaller_is_better="precision@5")
    roles = {"precision@5": ("guardrail", 3.0), "revenue": ("guardrail", -1.0)}
    found = EX.role_verdicts(table, roles)
    assert found["verdict"].str.startswith("safe, unless 3 in 1,000 users have ").all()


def test_clusters_are_no_users_in_what_would_turn_a_guardrail():
    users = experiment(4000, 1, spend=0).assign(team=lambda f: f.index % 200)
    row = one(compared(users, "spend", cluster="team"), ("guardrail", "-20%"))
    assert row["verdict"].startswith("safe, unless 3 in 100 clusters of the control have ")
    users["ndcg@10"] = 0.9 + (users["spend"] - 10) * 0.003
    row = one(compared(users, "ndcg@10", cluster="team"), ("guardrail", -0.02))
    assert row["note"].endswith(" clusters who lose all would turn it")


def test_another_level_of_confidence_asks_for_more_users():
    table = compared(experiment(4000, 1, spend=0), "spend", confidence=0.99)
    assert (
        ", unless 5 in 2,000 users of the control have "
        in one(table, ("guardrail", "-20%"))["verdict"]
    )


def test_names_that_are_no_texts_and_a_test_that_is_unknown_are_read():
    table = compared(experiment(4000, 1, spend=0), "spend")
    shown = [
        EX.role_verdicts(table.assign(metric=5), {5: ("guardrail", "-20%")}),
        EX.role_verdicts(table.assign(method=np.nan), {"spend": ("guardrail", "-20%")}),
    ]
    assert [one["effect"].iloc[0] for one in shown] == ["safe", "safe"]


def test_the_values_of_shares_tell_their_bounds():
    users = experiment(400).assign(failed=lambda f: (f.index < 16) * 1.0)
    row = one(compared(users, "failed", smaller_is_better="failed"), ("guardrail", 0.1))
    assert row["verdict"] == "safe"
    table = compared(users, "failed", smaller_is_better="failed", test="proportion")
    assert one(table, ("guardrail", 0.1))["verdict"] == "safe"


def many(n, runs, effect, seed=0):
    """Users of one experiment with a metric for each run."""
    return experiment(n, seed, **{f"m{i}": effect for i in range(runs)})


@pytest.mark.long
def test_a_guardrail_is_wrongly_safe_in_five_of_a_hundred_at_its_margin():
    runs = [f"m{i}" for i in range(400)]
    table = compared(many(300, 400, -0.5), runs, correction="none")  # exactly the margin
    found = EX.role_verdicts(table, dict.fromkeys(runs, ("guardrail", "-5%")))["effect"]
    for wrong in (found.isin(["safe", "within_margin"]), found == "harmed"):
        assert stats.binomtest(int(wrong.sum()), 400, 0.05).pvalue > 0.01


ROLES = {"ctr": "success", "spend": ("guardrail", "-5%"), "load": "diagnostic"}


def decision(users, roles=ROLES, **options):
    return EX.decide_experiment(compared(users, list(roles), **options), roles=roles).iloc[0]


@pytest.mark.parametrize(
    ("effects", "decided"),
    [
        ({"ctr": 0.5, "spend": 0, "load": 0}, "ship"),
        ({"ctr": 0.5, "spend": -1, "load": 0}, "do not ship"),
        ({"ctr": -0.5, "spend": 0, "load": 0}, "do not ship"),
        ({"ctr": 0, "spend": 0, "load": 0}, "keep running"),
        ({"ctr": 0.5, "spend": 0, "load": -2}, "ship"),
    ],
)
def test_a_decision_follows_from_success_and_guardrails(effects, decided):
    assert decision(experiment(8000, **effects))["decision"] == decided


def test_harms_come_first_and_a_diagnostic_is_named():
    row = decision(experiment(8000, ctr=0.5, spend=-1, load=-2))
    said = [text.split(" (")[0] for text in row["reasons"].split("; ")]
    assert said[0] == "spend: harmed beyond the margin, unless 3 in 4,000 users have 753 or more"
    assert [text.split(",")[0] for text in said[1:]] == ["load: worse", "ctr: better"]
    assert "margin −5%" in row["reasons"]
    assert (row["harms"], row["better"]) == ("spend, load", "ctr")


def test_a_guardrail_that_is_not_shown_safe_keeps_the_experiment_running():
    row = decision(experiment(100, 2, ctr=3, spend=0, load=0))
    assert (row["decision"], row["reasons"].split(" (")[0]) == (
        "keep running",
        "spend: not shown safe",
    )


@pytest.mark.parametrize("how", ["expected", "health"])
def test_a_broken_sample_ratio_is_invalid_and_shows_no_effect(how):
    users = experiment(8000, ctr=0.5, spend=0, load=0)
    users = users.drop(index=users.index[users["variant"] == "B"][:600])
    options = {"expected": HALF}
    if how == "health":
        health = EX.experiment_health(users, users[["user_id", "variant"]], expected=HALF)
        options = {"expected": None, "health": health}
    row = decision(users, **options)
    assert (row["decision"], row["reasons"]) == ("invalid", "invalid: sample ratio")


def test_variants_that_are_not_alike_are_invalid():
    users = experiment(8000, ctr=0.5, spend=0, load=0)
    late = users.index >= 4000
    users["week"] = np.where(late & (np.arange(8000) % 10 < 8), 2, 1)
    users["variant"] = np.where(late & (users["week"] == 2), "B", users["variant"])
    row = decision(users, time_col="week", expected=users["variant"].value_counts().to_dict())
    assert (row["decision"], row["reasons"]) == ("invalid", "check: shares of the variants change")


def test_a_sample_ratio_that_was_not_checked_is_said():
    assert decision(experiment(8000, ctr=0.5, spend=0, load=0), expected=None)["reasons"].endswith(
        "not checked"
    )


def test_one_decision_for_each_treatment():
    users = experiment(9000, ctr=0, spend=0, load=0)
    users["variant"] = np.array(["A", "B", "C"])[np.arange(9000) % 3]
    users.loc[users["variant"] == "C", "ctr"] += 1
    table = compared(users, list(ROLES), expected={"A": 1, "B": 1, "C": 1})
    found = EX.decide_experiment(table, roles=ROLES)
    assert dict(zip(found["treatment"], found["decision"], strict=True)) == {
        "B": "keep running",
        "C": "ship",
    }


@pytest.mark.long
def test_success_metrics_are_corrected_together_where_the_table_is_not():
    table = compared(many(200, 600, 0), [f"m{i}" for i in range(600)], correction="none")
    tables = [table.iloc[i : i + 6] for i in range(0, 600, 6)]
    found = [
        EX.decide_experiment(part, roles=dict.fromkeys(part["metric"], "success")).iloc[0]
        for part in tables
    ]
    better = [(part["effect"] == "better").any() for part in tables]
    shipped = [row["decision"] == "ship" for row in found]
    assert sum(better) > 6  # 14 % of runs have one by chance
    assert stats.binomtest(sum(shipped), 100, 0.025, alternative="greater").pvalue > 0.01
    alone = found[
        [one and not ships for one, ships in zip(better, shipped, strict=True)].index(True)
    ]
    assert "better alone, not among all success metrics" in alone["reasons"]


def test_a_correction_of_the_table_stays():
    users = experiment(4000, ctr=0.2, spend=0, load=0)
    table = compared(users, list(ROLES), correction="bonferroni")
    judged = EX.role_verdicts(table, ROLES)
    assert (
        judged["p_adj"].iloc[0]
        == table["p_adj"].iloc[0]
        == pytest.approx(3 * table["p_value"].iloc[0])
    )


def test_a_sequential_table_is_judged_by_its_own_interval():
    users = experiment(4000, ctr=0.5, spend=0, load=0)
    table = compared(users, list(ROLES), sequential_n=4000)
    row = EX.role_verdicts(table, {"spend": ("guardrail", "-5%")}).iloc[1]
    assert (row["change_low"], row["change_high"]) == tuple(
        table.loc[1, ["rel_ci_low", "rel_ci_high"]]
    )
    assert np.isnan(row["p_safe"])
    assert row["effect"] == ("safe" if table["rel_ci_low"].iloc[1] > -0.05 else "not_safe")


@pytest.mark.long
def test_looks_at_a_sequential_guardrail_are_seldom_wrong():
    runs = [f"m{i}" for i in range(100)]
    users, roles = many(2000, 100, -0.5), dict.fromkeys(runs, ("guardrail", "-5%"))
    wrong = np.zeros(100, bool)
    for n in range(200, 2001, 300):
        table = compared(users.head(n), runs, sequential_n=1000, correction="none")
        wrong |= (EX.role_verdicts(table, roles)["verdict"] != "not shown safe").to_numpy()
    assert stats.binomtest(int(wrong.sum()), 100, 0.05, alternative="greater").pvalue > 0.01


@pytest.mark.parametrize("test", ["permutation", "bootstrap", "proportion"])
def test_other_tests_are_judged_by_their_interval(test):
    draw = np.random.default_rng(2)
    users = experiment(3000).assign(paid=draw.random(3000) < 0.4)
    table = compared(users, "paid", test=test, n_resamples=500)
    row = one(table, ("guardrail", -0.1))
    assert (row["change_low"], row["verdict"]) == (table["ci_low"].iloc[0], "safe")
    row = one(table, ("guardrail", "-20%"))
    if test == "proportion":
        assert row["verdict"] == "not shown safe"
        assert "name the margin in units" in row["note"]
    else:
        assert (row["change_low"], row["verdict"]) == (table["rel_ci_low"].iloc[0], "safe")


def test_a_withheld_verdict_is_not_safe():
    users = experiment(4000, spend=0)
    users["spend"] = np.where(users.index % 500 == 0, 1e4, 1.0) + users["spend"] / 100
    table = compared(users, "spend")
    row = one(table, ("guardrail", "-90%"))
    assert table["verdict"].iloc[0] == "check: few units decide"
    assert (row["verdict"], row["note"]) == ("not shown safe", "check: few units decide")


def test_a_constant_guardrail_or_a_mean_below_0_is_not_shown_safe():
    users = experiment(200).assign(errors=0.0)
    row = one(compared(users, "errors"), ("guardrail", -0.1))
    assert (row["verdict"], row["note"]) == ("not shown safe", "zero variance")
    row = one(
        compared(experiment(200, spend=0).assign(spend=lambda t: t["spend"] - 20), "spend"),
        ("guardrail", "-2%"),
    )
    assert (row["verdict"], row["note"]) == ("not shown safe", "the control's mean is not above 0")


def test_the_table_may_come_from_a_file_or_from_moments(tmp_path):
    users = experiment(4000, ctr=0.5, spend=0, load=0)
    table = compared(users, list(ROLES))
    found = EX.decide_experiment(table, roles=ROLES)
    table.to_parquet(tmp_path / "t.parquet")
    stored = pd.read_parquet(tmp_path / "t.parquet")
    stored.attrs = {}
    pd.testing.assert_frame_equal(EX.decide_experiment(stored, roles=ROLES), found)
    moments = EX.variant_moments(users, list(ROLES))
    parts = EX.compare_variants_from_moments(
        moments, control="A", expected=HALF, larger_is_better=list(ROLES), details=True
    )
    pd.testing.assert_frame_equal(EX.decide_experiment(parts, roles=ROLES), found)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ({"ctr": "goal"}, "goal"),
        ({"ctr": "guardrail"}, r"expected 'success', 'diagnostic' or \('guardrail', '-2%'\)"),
        ({"ctr": ("success", "-2%")}, "expected 'success'"),
        ({"ctr": ("guardrail", "+2%")}, r"allows what is better.*expected -2%"),
        ({"ctr": ("guardrail", "two")}, r"guardrails\['ctr'\]='two'; expected a share"),
        ({"cvr": "success"}, "cvr"),
        ({}, "expected a mapping"),
        ({"ctr": ("guardrail", "-2%")}, "no metric has the role of success"),
    ],
)
def test_roles_that_are_none_are_refused(roles, said):
    table = compared(experiment(200, ctr=0, spend=0), ["ctr", "spend"])
    with pytest.raises(OptionError, match=said):
        EX.decide_experiment(table, roles=roles)


def test_tables_that_are_no_whole_experiment_are_refused():
    users = experiment(400, ctr=0).assign(country=lambda t: t.index % 2 // 1)
    table = compared(users, "ctr")
    with pytest.raises(OptionError, match=r"within \['country'\]; a decision is of all users"):
        EX.decide_experiment(compared(users, "ctr", by="country"), roles={"ctr": "success"})
    with pytest.raises(DataError, match="several rows of a metric"):
        EX.decide_experiment(pd.concat([table, table]), roles={"ctr": "success"})
    with pytest.raises(ColumnError, match="no column 'better'"):
        EX.decide_experiment(table.drop(columns="better"), roles={"ctr": ("guardrail", -1)})
    models = rd.compare_models(
        pd.DataFrame({"user_id": [1, 2, 3] * 2, "model": list("aaabbb"), "m": range(6)}),
        "m",
        details=True,
    )
    with pytest.raises(ColumnError, match=r"rd\.gate"):
        EX.decide_experiment(models, roles={"m": "success"})
    hits = rd.compare_variants(
        users.assign(hits=1.0 * users.index), "hits", control="A", details=True
    )
    with pytest.raises(OptionError, match="smaller_is_better"):
        EX.decide_experiment(hits, roles={"hits": ("guardrail", "-2%")})


@pytest.mark.long
def test_every_column_that_a_decision_reads_is_asked_for_by_name():
    table = compared(experiment(400, clicks=0.5, spend=0.0), ["clicks", "spend"])
    roles, said = {"clicks": "success", "spend": ("guardrail", "-5%")}, {}
    numbers = [name for name in table.columns if pd.api.types.is_float_dtype(table[name])]
    changed = [(f"no column {name!r}", table.drop(columns=name)) for name in table.columns]
    changed += [
        (f"table[{name!r}] holds string values", table.assign(**{name: "many"})) for name in numbers
    ]
    for words, given in changed:
        try:
            EX.decide_experiment(given, roles=roles)
        except (ColumnError, DataError) as error:
            said[words] = str(error)
    assert len(said) > 30
    assert all(words in text for words, text in said.items())


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        ("effect", "best", r"table\['effect'\] holds 'best', which is no code of a comparison"),
        ("effect", ["better"], r"table\['effect'\] holds \['better'\]"),
        ("effect", None, "no 'effect', and nothing in 'withheld', in 1 of 1 rows"),
        ("withheld", "later", r"table\['withheld'\] holds 'later'"),
        ("remarks", "tiny; later", r"table\['remarks'\] holds 'tiny; later'"),
        ("remarks", "\ud800", r"table\['remarks'\] holds"),
    ],
)
def test_a_cell_that_is_no_code_is_named(column, cell, said):
    table = compared(experiment(40, ctr=0.5), "ctr").astype({column: object})
    table[column] = pd.Series([cell], dtype=object)
    for call in (EX.decide_experiment, EX.role_verdicts):
        with pytest.raises(DataError, match=said):
            call(table, roles={"ctr": "success"})
    with pytest.raises(DataError, match=said.replace("table", "comparison")):
        EX.report_table(table)


def test_a_table_that_was_written_as_text_decides_the_same(tmp_path):
    users = experiment(400, ctr=3.0, load=0.0).assign(one=0.0)
    table = compared(users, ["ctr", "load", "one"])
    assert table["withheld"].tolist()[:2] == ["", ""]
    table.to_csv(tmp_path / "table.csv", index=False)
    read = pd.read_csv(tmp_path / "table.csv")
    assert read["withheld"].isna().any()
    roles = {"ctr": "success", "load": ("guardrail", "-9%"), "one": "success"}
    want, found = (EX.decide_experiment(one, roles=roles) for one in (table, read))
    pd.testing.assert_frame_equal(found, want, check_dtype=False)


@pytest.mark.parametrize("column", ["metric", "control", "treatment"])
def test_labels_of_a_table_that_have_no_hash_are_named(column):
    table = compared(experiment(40, ctr=0.5), "ctr").astype({column: object})
    table[column] = pd.Series([["B"]], dtype=object)
    with pytest.raises(IdTypeError, match=rf"table\['{column}'\] holds values that cannot tell"):
        EX.decide_experiment(table, roles={"ctr": "success"})


@pytest.mark.parametrize("role", [None, (), 0.5, {"guardrail": "-2%"}, (None, "-2%")])
def test_what_is_no_role_is_named(role):
    table = compared(experiment(40, ctr=0.5), "ctr")
    with pytest.raises(OptionError, match=r"roles\['ctr'\]="):
        EX.decide_experiment(table, roles={"ctr": role})


@pytest.mark.few(1)
@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_a_table_in_other_dtypes_is_decided_and_shown_alike(backend, tmp_path):
    table = compared(experiment(400, ctr=0.5, spend=0, load=0), list(ROLES))
    floats = table.select_dtypes("float").columns
    other = table.assign(**table[floats].astype("Float64"))
    if backend == "pyarrow":
        other = table.assign(**table[floats].astype("double[pyarrow]"))
    found = EX.decide_experiment(other, roles=ROLES)
    pd.testing.assert_frame_equal(found, EX.decide_experiment(table, roles=ROLES))
    pages = [
        rd.report(path=tmp_path / f"{i}.html", experiment=one, roles=ROLES).read_bytes()
        for i, one in enumerate([table, other])
    ]
    assert pages[0] == pages[1]


def test_values_beyond_the_bounds_of_a_name_tell_no_bounds():
    rng = np.random.default_rng(0)
    users = pd.DataFrame({"user_id": range(800), "variant": ["A"] * 400 + ["B"] * 400})
    hits = rng.binomial(5, 0.008, 800)
    users["half"] = rng.integers(0, 2, 800)
    users["precision@5"] = 20.0 * rng.binomial(5, 0.006, 800)  # means below 1, which tell nothing
    table = compared(users, "precision@5")
    assert table[["mean_control", "mean_treatment"]].iloc[0].max() < 1
    found = one(table, ("guardrail", -4.0))
    assert found["verdict"].startswith("safe, unless 3 in 400 users of the control have ")
    for scale, unless in ((0.2, False), (20.0, True)):  # a share, and in per cent
        users["precision@5"] = scale * hits
        for options in ({}, {"strata": "half"}):
            table = compared(users, "precision@5", **options)
            assert table["mean_treatment"].iloc[0] < 1
            found = one(table, ("guardrail", -0.04 * scale / 0.2))
            assert found["verdict"].startswith("safe")
            assert (", unless 3 in 400 users of the control have " in found["verdict"]) == unless


@pytest.mark.parametrize("details", [True, False])
def test_a_success_metric_without_a_better_side_says_why_it_cannot_ship(details):
    """Clicks of B are twice those of A, and nothing says which side of hits@20 is better."""
    users = pd.DataFrame({"user_id": range(400), "variant": ["A", "B"] * 200})
    users["hits@20"] = (users["user_id"] // 2 % 5) * (1 + (users["variant"] == "B"))
    given = {"control": "A", "expected": {"A": 1, "B": 1}, "details": details}
    roles = {"hits@20": "success"}
    why = "nothing says which side is better, so that it cannot ship"
    table = rd.compare_variants(users, "hits@20", **given)
    decided = rd.experiments.decide_experiment(table, roles=roles)
    assert decided["effect"].tolist() == ["keep_running"]
    assert decided["reasons"].iloc[0].endswith(f", p <0.001, {why})")
    table = rd.compare_variants(users, "hits@20", larger_is_better="hits@20", **given)
    decided = rd.experiments.decide_experiment(table, roles=roles)
    assert decided["effect"].tolist() == ["ship"]
    assert why not in decided["reasons"].iloc[0]
