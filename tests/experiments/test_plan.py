"""Plans of experiments and of comparisons: against the power functions of statsmodels, and by
simulation."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import TTestIndPower, TTestPower

import recdf as rd
from recdf.errors import DataError, DuplicateError, OptionError

EX = rd.experiments


def past(n=2000, seed=0):
    draw = np.random.default_rng(seed)
    users = pd.DataFrame(
        {"user_id": range(n), "shop": np.arange(n) // 20, "spend": draw.gamma(2, 5, n)}
    )
    users["shared"] = users["spend"] + np.repeat(draw.normal(0, 4, n // 20), 20)
    return users


@pytest.mark.parametrize(
    ("options", "alpha", "side"),
    [
        ({}, 0.05, "two-sided"),
        ({"alternative": "greater"}, 0.05, "larger"),
        ({"n_comparisons": 4}, 0.0125, "two-sided"),
        ({"alternative": "less", "alpha": 0.1, "power": 0.9}, 0.1, "larger"),
    ],
)
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_users_are_those_of_statsmodels(options, alpha, side, share):
    users = past()
    plan = EX.plan_experiment(users, "spend", rel_effect=0.1, control_share=share, **options).iloc[
        0
    ]
    effect = 0.1 * users["spend"].mean() / users["spend"].std()
    n = TTestIndPower().solve_power(
        effect, None, alpha, plan["power"], ratio=(1 - share) / share, alternative=side
    )
    assert plan["n_control"] == pytest.approx(n, abs=1 + 1e-6)
    back = EX.plan_experiment(
        users,
        "spend",
        n=int(plan["n_control"] + plan["n_treatment"]),
        control_share=share,
        **options,
    ).iloc[0]
    assert back["mde_rel"] == pytest.approx(0.1, rel=2e-3)


@pytest.mark.parametrize("n", [60, 5000])
def test_a_guardrail_has_the_power_that_statsmodels_says(n):
    users = past()
    plan = EX.plan_experiment(users, "spend", n=n, guardrails={"spend": -1.0}).iloc[0]
    effect = 1 / users["spend"].std()
    assert plan["power"] == pytest.approx(
        TTestIndPower().power(effect, n / 2, 0.05, alternative="larger"), abs=1e-9
    )
    shown = (
        TTestIndPower().solve_power(None, n / 2, 0.05, 0.8, alternative="larger")
        * users["spend"].std()
    )
    assert plan["mde_abs"] == pytest.approx(shown, rel=1e-5)
    assert plan["role"] == "guardrail"


@pytest.mark.long
def test_a_planned_guardrail_is_shown_safe_as_often_as_planned():
    draw = np.random.default_rng(3)
    users = pd.DataFrame({"spend": draw.normal(10, 5, 4000)})
    plan = EX.plan_experiment(users, "spend", guardrails={"spend": "-5%"}, power=0.8).iloc[0]
    n, runs = int(plan["n_control"]), 300
    metrics = {f"m{i}": draw.normal(10, 5, 2 * n) for i in range(runs)}
    frame = pd.DataFrame({"user_id": range(2 * n), "variant": ["A", "B"] * n, **metrics})
    table = rd.compare_variants(
        frame,
        list(metrics),
        control="A",
        expected={"A": 1, "B": 1},
        correction="none",
        details=True,
    )
    found = EX.role_verdicts(table, dict.fromkeys(metrics, ("guardrail", "-5%")))["effect"]
    safe = int(found.isin(["safe", "within_margin"]).sum())
    assert stats.binomtest(safe, runs, 0.8).pvalue > 0.005


def test_several_guardrails_share_the_chance_to_miss_one():
    users = past().assign(other=lambda t: t["spend"])
    both = EX.plan_experiment(
        users, ["spend", "other"], guardrails={"spend": "-5%", "other": "-5%"}
    )
    assert both["power"].tolist() == pytest.approx([0.9, 0.9])
    one = EX.plan_experiment(users, "spend", guardrails={"spend": "-5%"}, power=0.9)
    assert both["n_control"].tolist() == one["n_control"].tolist() * 2
    mixed = EX.plan_experiment(
        users, ["spend", "other"], rel_effect=0.05, guardrails={"other": "-5%"}
    )
    assert mixed["role"].tolist() == ["success", "guardrail"]


def test_a_relative_margin_of_what_grows_needs_more_users():
    """The control's part of the variance is (1 + u)²: by hand for many users."""
    users = past()
    mean, std = users["spend"].mean(), users["spend"].std()
    k = stats.norm.isf(0.05) + stats.norm.ppf(0.8)
    for margin in (-0.02, 0.02):
        plan = EX.plan_experiment(users, "spend", guardrails={"spend": f"{100 * margin}%"}).iloc[0]
        assert plan["n_control"] == pytest.approx(
            (k * std / (margin * mean)) ** 2 * (1 + (1 + margin) ** 2), abs=2
        )


def test_clusters_need_more_users_by_their_design_effect():
    users = past()
    plain, own = (
        EX.plan_experiment(users, "shared", rel_effect=0.05, cluster=c).iloc[0]
        for c in (None, "shop")
    )
    sums = users.groupby("shop")["shared"].mean()
    by_cluster = sums.var() / len(sums)
    assert own["design_effect"] == pytest.approx(
        by_cluster / (users["shared"].var() / len(users)), rel=1e-9
    )
    assert own["design_effect"] > 4
    assert np.isnan(plain["design_effect"])
    clusters = TTestIndPower().solve_power(
        0.05 * users["shared"].mean() / sums.std(), None, 0.05, 0.8
    )
    assert own["n_control"] / 20 == pytest.approx(clusters, abs=0.1)
    few = EX.plan_experiment(users, "shared", n=200, cluster="shop").iloc[0]
    effect = TTestIndPower().solve_power(None, 5, 0.05, 0.8)
    assert few["mde_abs"] == pytest.approx(effect * sums.std(), rel=1e-5)


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_a_sequential_plan_is_the_mde_of_the_sequential_comparison(alternative):
    draw = np.random.default_rng(5)
    users = pd.DataFrame(
        {"user_id": range(4000), "variant": ["A", "B"] * 2000, "m": draw.normal(10, 3, 4000)}
    )
    table = rd.compare_variants(
        users, "m", control="A", sequential_n=4000, alternative=alternative, details=True
    )
    plan = EX.plan_experiment(users, "m", n=4000, sequential=True, alternative=alternative)
    assert plan["mde_abs"].iloc[0] == pytest.approx(table["mde"].iloc[0], rel=1e-3)
    needed = EX.plan_experiment(
        users, "m", rel_effect=plan["mde_rel"].iloc[0], sequential=True, alternative=alternative
    ).iloc[0]
    assert needed["n_control"] + needed["n_treatment"] == pytest.approx(4000, abs=2)
    assert (
        needed["n_control"]
        > 1.2 * EX.plan_experiment(users, "m", rel_effect=0.05)["n_control"].iloc[0] / 2
    )


@pytest.mark.long
def test_the_interval_of_the_needed_users_covers_as_it_says():
    truth = EX.plan_experiment(past(400_000, 99), "spend", rel_effect=0.05).iloc[0]
    true = truth["n_control"] + truth["n_treatment"]
    covers = 0
    for seed in range(200):
        plan = EX.plan_experiment(past(1000, seed), "spend", rel_effect=0.05).iloc[0]
        covers += plan["n_low"] <= true <= plan["n_high"]
    assert stats.binomtest(covers, 200, 0.95).pvalue > 0.005


def test_days_follow_the_new_users_of_a_log():
    log = pd.DataFrame(
        {
            "user_id": [1, 2, 1, 3, 1, 4, 5],
            "at": pd.to_datetime(
                [
                    "2026-11-02 10:00",
                    "2026-11-02 23:59",
                    "2026-11-03",
                    "2026-11-05",
                    "2026-11-05",
                    "2026-11-05",
                    "2026-11-06",
                ],
                format="ISO8601",
            ),
        }
    )
    coming = EX.arrivals_by_day(log.sample(frac=1, random_state=1), time_col="at")
    assert coming["new_users"].tolist() == [2, 0, 0, 2, 1]
    assert coming["users"].tolist() == [2, 1, 0, 3, 1]
    users = pd.DataFrame({"m": [1.0, 2.0, 3.0]})
    days = lambda n, by=coming: EX.plan_experiment(users, "m", n=n, arrivals=by)["days"].iloc[0]  # noqa: E731
    assert [days(n) for n in (4, 5)] == [4, 5]
    assert [days(n, coming.iloc[::-1]) for n in (4, 5)] == [4, 5]
    assert [days(n, coming[coming["new_users"] > 0]) for n in (4, 5)] == [4, 5]
    assert days(5, coming.assign(day=coming["day"].dt.tz_localize("Europe/Berlin"))) == 5
    with pytest.raises(DataError, match=r"arrivals\['day'\] is null in some rows"):
        days(4, coming.assign(day=[pd.NaT, *coming["day"][1:]]))
    assert days(7) == 5 + 2  # one a day, the average of the last week, is added until there are 7
    assert days(70, [10] * 10) == 7
    assert days(150, [20, *[10] * 9]) == 10 + 4
    assert math.isnan(days(8, [4, *[0] * 7]))
    for wrong in ([], [-1], [None]):
        with pytest.raises(DataError, match="arrivals"):
            days(8, wrong)
    with pytest.raises(DataError, match="expected times"):
        EX.arrivals_by_day(log.assign(at=1), time_col="at")


def pilot(n=300, seed=0):
    draw = np.random.default_rng(seed)
    lists = draw.normal(0.4, 0.2, n)
    frames = [
        pd.DataFrame(
            {
                "model": model,
                "user_id": range(n),
                "person": np.arange(n) // 3,
                "ndcg": lists
                + draw.normal(effect, 0.1, n)
                + np.repeat(draw.normal(0, shared, n // 3), 3),
            }
        )
        for model, effect, shared in (("base", 0, 0), ("new", 0.02, 0.1), ("far", 0.1, 0))
    ]
    return pd.concat(frames, ignore_index=True)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("options", "alpha", "side"),
    [
        ({}, 0.05, "two-sided"),
        ({"alternative": "greater"}, 0.05, "larger"),
        ({"n_comparisons": 5}, 0.01, "two-sided"),
    ],
)
@pytest.mark.parametrize("diff", [0.01, 0.1])
def test_lists_are_those_of_statsmodels(options, alpha, side, diff):
    frame = pilot()
    plan = EX.plan_comparison(frame, "ndcg", baseline="base", diff=diff, **options)
    wide = frame.pivot_table(index="user_id", columns="model", values="ndcg")
    assert plan["model"].tolist() == ["far", "new"]
    for row in plan.to_dict("records"):
        std = (wide[row["model"]] - wide["base"]).std()
        assert row["std"] == pytest.approx(std, rel=1e-9)
        n = TTestPower().solve_power(diff / std, None, alpha, 0.8, alternative=side)
        assert row["n"] == max(30, math.ceil(n - 1e-4))  # with fewer there is no verdict
    back = EX.plan_comparison(frame, "ndcg", baseline="base", n=int(plan["n"].iloc[0]), **options)
    assert back["mde_abs"].iloc[0] == pytest.approx(plan["mde_abs"].iloc[0])
    relative = EX.plan_comparison(
        frame, "ndcg", baseline="base", rel_diff=diff / wide["base"].mean(), **options
    )
    assert relative["n"].tolist() == plan["n"].tolist()


def test_lists_of_one_person_count_by_their_design_effect():
    frame = pilot(3000)
    plan = EX.plan_comparison(
        frame, "ndcg", baseline="base", diff=0.01, unit_col="person"
    ).set_index("model")
    wide = frame.pivot_table(index=["user_id", "person"], columns="model", values="ndcg")
    means = (wide["new"] - wide["base"]).groupby("person").mean()
    people = TTestPower().solve_power(0.01 / means.std(), None, 0.05, 0.8)
    assert plan.loc["new", "n"] / 3 == pytest.approx(people, abs=0.4)
    assert plan.loc["new", "design_effect"] == pytest.approx(5 / 3, abs=0.15)
    assert plan.loc["far", "design_effect"] == pytest.approx(1, abs=0.2)


@pytest.mark.long
def test_the_interval_of_the_needed_lists_covers_as_it_says():
    true = EX.plan_comparison(
        pilot(90_000, 7), "ndcg", baseline="base", diff=0.01, unit_col="person"
    )["n"].iloc[0]
    covers = 0
    for seed in range(100):
        row = EX.plan_comparison(
            pilot(600, seed), "ndcg", baseline="base", diff=0.01, unit_col="person"
        ).iloc[0]
        covers += row["n_low"] <= true <= row["n_high"]
    assert stats.binomtest(covers, 100, 0.95).pvalue > 0.005


def alike_models(n, effect, std, draw):
    """Two models of n lists, whose ndcg differs a little in each of them."""
    base = draw.uniform(0.4, 0.6, n)
    models = {"base": base, "new": base + draw.normal(effect, std, n)}
    return pd.concat(
        pd.DataFrame({"model": name, "user_id": range(n), "ndcg@10": of})
        for name, of in models.items()
    )


def test_a_difference_of_few_lists_has_to_stand_against_three_more():
    """n lists have the mean ≥ ln(20)/n with the chance of 80 %: more than the t test needs."""
    effect, std = 0.02, 0.05
    frame = alike_models(3000, effect, std, np.random.default_rng(5))
    plan = EX.plan_comparison(frame, "ndcg@10", baseline="base", diff=effect).iloc[0]
    least = [
        stats.norm.ppf(0.8) * plan["std"] / math.sqrt(n) + math.log(20) / n
        for n in (plan["n"] - 1, plan["n"])
    ]
    assert least[0] > effect >= least[1]
    assert TTestPower().solve_power(effect / plan["std"], None, 0.05, 0.8) < plan["n"] / 2
    back = EX.plan_comparison(frame, "ndcg@10", baseline="base", n=int(plan["n"])).iloc[0]
    assert back["mde_abs"] == pytest.approx(least[1], rel=1e-9)


@pytest.mark.long
def test_a_planned_comparison_is_shown_as_often_as_planned():
    draw = np.random.default_rng(6)
    frame = alike_models(4000, 0.01, 0.05, draw)
    n = int(EX.plan_comparison(frame, "ndcg@10", baseline="base", diff=0.01)["n"].iloc[0])
    # Each metric is a run of its own: `ndcg@1` has the bounds of `ndcg@10`.
    of_call, calls, better = [f"ndcg@{i + 1}" for i in range(30)], 10, 0
    for _ in range(calls):
        base = draw.uniform(0.4, 0.6, (n, 30))
        new = base + draw.normal(0.01, 0.05, (n, 30))
        both = pd.DataFrame(np.r_[base, new], columns=of_call)
        both["user_id"], both["model"] = [*range(n)] * 2, np.repeat(["base", "new"], n)
        table = rd.compare_models(both, of_call, baseline="base", correction="none")
        better += table["effect"].tolist().count("better")
    assert stats.binomtest(better, 30 * calls, 0.8).pvalue > 0.005


def compared_often(name, draw, n):
    """The rows of 300 experiments without a correction. Each metric is one: those of a call have
    the names `name` and a number, so that all have the same bounds."""
    names, tables = [f"{name}{i + 1}" for i in range(30)], []
    for _ in range(10):
        frame = pd.DataFrame(draw(n), columns=names).assign(variant=["A", "B"] * n)
        options = {"control": "A", "correction": "none", "details": True}
        tables.append(rd.compare_variants(frame, names, **options))
    return pd.concat(tables, ignore_index=True)


@pytest.mark.long
@pytest.mark.parametrize("name", ["ndcg@", "revenue@"])
def test_a_planned_effect_of_small_spread_is_found_as_often_as_planned(name):
    """Revenue has a lower bound alone, which is as far from these values as those of ndcg are."""
    draw = np.random.default_rng(9)
    users = pd.DataFrame({f"{name}10": draw.normal(0.5, 0.02, 20_000)})
    plan = EX.plan_experiment(users, f"{name}10", rel_effect=0.02).iloc[0]
    n = int(plan["n_control"])
    assert TTestIndPower().solve_power(0.01 / 0.02, None, 0.05, 0.8) < n / 2
    table = compared_often(
        name,
        lambda n: draw.normal(0.5, 0.02, (2 * n, 30)) + np.tile([0, 0.01], n)[:, None],
        n,
    )
    better = table["effect"].tolist().count("better")
    assert stats.binomtest(better, len(table), 0.8).pvalue > 0.005
    assert table["mde"].mean() == pytest.approx(0.01, rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "draw_values", "margin"),
    [
        ("ndcg@", lambda draw, n: draw.normal(0.9, 0.02, n).clip(0, 1), -0.01),
        ("done", lambda draw, n: (draw.random(n) < 0.98).astype(float), -0.02),
    ],
)
def test_a_planned_guardrail_of_small_spread_is_safe_as_often_as_planned(name, draw_values, margin):
    draw, metric = np.random.default_rng(7), f"{name}10"
    users = pd.DataFrame({metric: draw_values(draw, 20_000)})
    plan = EX.plan_experiment(users, metric, guardrails={metric: margin}).iloc[0]
    n = int(plan["n_control"])
    table = compared_often(name, lambda n: draw_values(draw, (2 * n, 30)), n)
    roles = dict.fromkeys(table["metric"].unique(), ("guardrail", margin))
    runs = [table.iloc[i : i + 30] for i in range(0, len(table), 30)]
    judged = pd.concat(EX.role_verdicts(one, roles) for one in runs)
    safe = int(judged["effect"].isin(["safe", "within_margin"]).sum())
    assert stats.binomtest(safe, len(table), 0.8).pvalue > 0.002


def test_a_plan_counts_unseen_users_of_either_sign_and_of_the_column():
    """The smallest arm may lack three users at the farther bound: n ≥ ln(20)·.8/.006 and more."""
    users = pd.DataFrame({"ndcg@10": np.random.default_rng(10).normal(0.2, 0.01, 5000)})
    plans = [
        EX.plan_experiment(users, metric, rel_effect=0.03, control_share=0.9, **options).iloc[0]
        for metric, options in (
            ("ndcg@10", {}),
            ({"q": "ndcg@10"}, {}),
            ("ndcg@10", {"alternative": "greater"}),
        )
    ]
    n = [plan["n_treatment"] for plan in plans]
    assert n[0] == n[1] > math.log(20) * 0.8 / 0.006 > 3 * n[2]


@pytest.mark.parametrize("margin", [-0.01, -0.1, -0.6])
def test_the_smallest_margin_that_is_shown_does_not_depend_on_the_margin(margin):
    """With 100 users of mean m, k = ln(20) users at 0 take it by k·m/(100 + k)."""
    users = pd.DataFrame({"ndcg@10": np.random.default_rng(11).normal(0.9, 0.01, 5000)})
    plan = EX.plan_experiment(users, "ndcg@10", n=200, guardrails={"ndcg@10": margin}).iloc[0]
    error = plan["std"] * math.sqrt(2 / 100)
    k = math.log(20)
    least = stats.norm.ppf(0.8) * error + k * plan["mean"] / (100 + k)
    assert plan["mde_abs"] == pytest.approx(least, rel=1e-6)
    back = EX.plan_experiment(users, "ndcg@10", n=200, guardrails={"ndcg@10": -least}).iloc[0]
    assert back["power"] == pytest.approx(0.8, abs=1e-6)


def test_values_beyond_the_bounds_of_a_name_are_planned_as_those_of_any_other():
    users = pd.DataFrame({"ndcg@10": np.random.default_rng(12).normal(50, 1, 4000)})
    plans = [
        EX.plan_experiment(one, one.columns[0], rel_effect=0.01)
        for one in (users, users.rename(columns={"ndcg@10": "x"}))
    ]
    assert plans[0]["n_control"].tolist() == plans[1]["n_control"].tolist()


def test_a_plan_says_where_skewness_will_withhold_the_verdict():
    """The comparison of as many users without an effect is withheld, and that of equal arms not."""
    draw = np.random.default_rng(8)

    def spend(n):
        return (draw.random(n) < 0.05) * draw.lognormal(2, 1.5, n)

    users = pd.DataFrame({"spend": spend(200_000)})
    for share, remark in ((0.9, "skewed"), (0.5, "")):
        plan = EX.plan_experiment(users, "spend", rel_effect=0.3, control_share=share).iloc[0]
        assert plan["remarks"] == remark
        arms = [int(plan["n_control"]), int(plan["n_treatment"])]
        frame = pd.DataFrame({"variant": np.repeat(["A", "B"], arms), "spend": spend(sum(arms))})
        expected = dict(zip("AB", arms, strict=True))
        table = rd.compare_variants(frame, "spend", control="A", expected=expected, details=True)
        assert ("skewed" in table["remarks"].iloc[0]) == bool(remark)


def test_so_few_users_as_have_no_verdict_find_nothing(tmp_path):
    users = past()
    for share in (0.5, 0.95):
        plan = EX.plan_experiment(users, "spend", rel_effect=5.0, control_share=share).iloc[0]
        assert min(plan["n_control"], plan["n_treatment"]) == 20
    few = EX.plan_experiment(users, "spend", n=38)
    assert few[["mde_abs", "power"]].fillna(-1).values.tolist() == [[-1, 0]]
    page = rd.report(path=tmp_path / "plan.html", experiment={"": few})
    assert "nothing is likely to be shown on" in page.read_text(encoding="utf-8")
    assert EX.plan_experiment(users, "spend", n=40)["mde_abs"].iloc[0] > 0
    guard = EX.plan_experiment(users, "spend", n=38, guardrails={"spend": "-90%"})
    assert guard["power"].tolist() == [0]


@pytest.mark.few(1)
@pytest.mark.parametrize("lists", [1, 2])
def test_a_plan_takes_so_many_lists_that_20_users_differ_in_8_of_10_samples(lists):
    """One of 20 users gains .9: 150 users show that by t, of whom 7 or 8 differ."""
    draw = np.random.default_rng(5)
    user = np.repeat(np.arange(2000), lists)
    gain = 0.9 * (user % 20 == 0)
    frame = pd.DataFrame({"user_id": user, "list": np.arange(len(user)), "ndcg": 0.1})
    frame = pd.concat([frame.assign(model="a"), frame.assign(model="b", ndcg=0.1 + gain)])
    options = {"baseline": "a", "user_col": ["user_id", "list"]}
    plan = EX.plan_comparison(frame, "ndcg", diff=0.045, **options).iloc[0]
    n = int(plan["n"]) // lists
    assert plan["n"] == pytest.approx(n * lists, abs=1)
    seen = stats.binom.sf(19, n, 0.05)
    assert 0.78 < seen < 0.86
    few = EX.plan_comparison(frame, "ndcg", n=150 * lists, **options).iloc[0]
    assert np.isnan(few["mde_abs"])
    sample = frame[frame["user_id"].isin(draw.choice(2000, 150, replace=False))]
    table = rd.compare_models(sample, "ndcg", **options)
    assert table["withheld"].tolist() == ["few_lists_differ"]


def test_wrong_plans_are_refused():
    users, frame = past(), pilot()
    with pytest.raises(OptionError, match="exactly one"):
        EX.plan_experiment(users, ["spend", "shared"], guardrails={"spend": "-2%"})
    with pytest.raises(OptionError, match="exactly one"):
        EX.plan_experiment(users, "spend", n=100, rel_effect=0.1, guardrails={"spend": "-2%"})
    with pytest.raises(OptionError, match=r"guardrails\['spend'\]='two'"):
        EX.plan_experiment(users, "spend", guardrails={"spend": "two"})
    with pytest.raises(OptionError, match="never shown"):
        EX.plan_experiment(users, "spend", guardrails={"spend": 0})
    with pytest.raises(OptionError, match="n_comparisons"):
        EX.plan_experiment(users, "spend", n=100, n_comparisons=0)
    with pytest.raises(DataError, match="same value"):
        EX.plan_experiment(users.assign(m=1.0), "m", n=100)
    with pytest.raises(OptionError, match="is not a model; models are"):
        EX.plan_comparison(frame, "ndcg", baseline="old", diff=0.1)
    with pytest.raises(OptionError, match="exactly one"):
        EX.plan_comparison(frame, "ndcg", baseline="base")
    with pytest.raises(DuplicateError, match="several rows"):
        EX.plan_comparison(pd.concat([frame, frame]), "ndcg", baseline="base", diff=0.1)
    with pytest.raises(DataError, match="same value"):
        EX.plan_comparison(frame.assign(ndcg=0.5), "ndcg", baseline="base", diff=0.1)
    for wrong, words in (({"model": None}, "is null"), ({"ndcg": np.inf}, "is infinite")):
        some = frame.assign(**wrong)
        with pytest.raises(ValueError, match=words):
            EX.plan_comparison(some, "ndcg", baseline="base", diff=0.1)


def test_sessions_are_no_users():
    visits = pd.DataFrame({"user_id": [1, 1, 2, 3], "spend": [1.0, 2.0, 0.0, 4.0]})
    with pytest.raises(
        rd.DuplicateError, match=r"several rows per \['user_id'\].* pass cluster='user_id'"
    ):
        EX.plan_experiment(visits, "spend", n=100)
    assert len(EX.plan_experiment(visits, "spend", n=100, cluster="user_id")) == 1


def test_numbers_may_be_decimals(rng):
    users = pd.DataFrame({"user_id": range(50), "spend": rng.gamma(2, 1, 50)})
    found, expected = (
        rd.experiments.plan_experiment(users, "spend", rel_effect=kind("0.25"), alpha=0.05)
        for kind in (Decimal, float)
    )
    pd.testing.assert_frame_equal(found, expected)
