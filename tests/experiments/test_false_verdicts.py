"""What an experiment must not say: data that once gave a clean number with a false verdict, one test each.

Every case was measured on an earlier version (2,000 runs, nominal 5 % or 95 %); the comment gives what it said.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recdf as rd
from recdf.errors import DataError, OptionError
from recdf.experiments.stats import effects, permutation
from recdf.experiments.stats.arms import Sample, arm, jackknife_arm
from recdf.experiments.stats.many_tests import adjust
from recdf.experiments.stats.student import equivalence_p

NUMBERS = ["se", "ci_low", "ci_high", "statistic", "df", "p_value", "p_adj", "mde"]


@pytest.fixture
def rng(request):
    return np.random.default_rng(sum(map(ord, request.node.originalname)))


def arms(control, treatment, **columns):
    n = len(control), len(treatment)
    return pd.DataFrame(
        {"user_id": range(sum(n)), "variant": ["A"] * n[0] + ["B"] * n[1], "m": np.concatenate([control, treatment]),
         **columns}
    )  # fmt: skip


def compare(data, metric="m", **options):
    table = rd.compare_variants(data, metric, control="A", **options)
    assert not np.isinf(table.select_dtypes("number").to_numpy(float, na_value=0)).any() or "alternative" in options
    return table.iloc[0]


def payers(rng, n, share=0.05, sigma=1.5):
    return (rng.random(n) < share) * rng.lognormal(0, sigma, n)


# ---------------------------------------------------------------------------------- constant arms, small arms


def test_constant_arm_has_no_t_test():
    # Was p = 1e-47 and "worse": only the control's spread was in the standard error.
    data = arms(np.r_[np.ones(200), np.zeros(1800)], np.zeros(20))
    for method in ("welch", "bootstrap", "permutation"):
        found = compare(data, method=method)
        assert found[NUMBERS].isna().all()
        assert "constant_arm" in found["warning"].split("; ")
        assert found["verdict"] == "check: constant arm"
    shares = compare(data, test="proportion")
    assert shares["p_value"] == pytest.approx(stats.fisher_exact([[0, 20], [200, 1800]]).pvalue, rel=1e-9)
    assert shares["p_value"] == pytest.approx(0.2514, abs=1e-4)
    assert shares["ci_low"] < 0 < shares["ci_high"]
    assert shares["verdict"] == "no difference shown (sample ratio not checked)"


def test_proportion_is_fisher_and_newcombe(rng):
    proportions = pytest.importorskip("statsmodels.stats.proportion")
    for n_c, n_t, p in ((15, 30, 0.1), (300, 250, 0.4)):
        data = arms((rng.random(n_c) < p) * 1.0, (rng.random(n_t) < p + 0.1) * 1.0)
        yes = data.groupby("variant")["m"].sum()
        for alternative in ("two-sided", "greater", "less"):
            found = rd.compare_variants(
                data, {"a": "m", "b": "m"}, control="A", test={"a": "proportion"}, alternative=alternative
            )
            table = [[yes["B"], n_t - yes["B"]], [yes["A"], n_c - yes["A"]]]
            want = stats.fisher_exact(table, alternative=alternative).pvalue
            assert found["p_value"].iloc[0] == pytest.approx(want, rel=1e-9)
            assert found["method"].tolist() == ["proportion", "welch"]
        found = compare(data, test="proportion")
        low, high = proportions.confint_proportions_2indep(
            int(yes["B"]), n_t, int(yes["A"]), n_c, compare="diff", method="newcomb"
        )
        assert (found["ci_low"], found["ci_high"]) == (pytest.approx(low, rel=1e-6), pytest.approx(high, rel=1e-6))


def test_all_against_none_is_decided_by_the_proportion():
    # Was "no difference shown", because neither arm has a variance.
    found = compare(arms(np.zeros(12), np.ones(9)))
    assert found["p_value"] == pytest.approx(stats.fisher_exact([[9, 0], [0, 12]]).pvalue, rel=1e-9)
    assert (found["method"], found["verdict"]) == ("proportion", "better (sample ratio not checked)")
    # Two constants that are no shares: a difference, but nothing to test it with.
    assert compare(arms(np.full(50, 1.5), np.full(50, 2.5)))["verdict"] == "check: zero variance"
    assert compare(arms(np.full(50, 1.5), np.full(50, 1.5)))["verdict"].startswith("no difference shown")


def test_two_against_two_have_no_verdict():
    # Was "better".
    found = compare(arms([0.0, 1.0], [5.0, 6.0]))
    assert found["p_value"] < 0.05
    assert (found["warning"], found["verdict"]) == ("tiny", "check: tiny arms")
    enough = compare(arms(np.arange(20.0), np.arange(20.0) + 30))
    assert enough["verdict"].startswith("better")
    # A ratio has as many units as have something in the denominator.
    data = arms(np.arange(60.0), np.arange(60.0) + 30)
    data["n"] = np.where(data["user_id"] % 4 == 0, 1.0, 0.0)
    assert "tiny" in compare(data, {"m": ("m", "n")})["warning"]


# ---------------------------------------------------------------------------------- skew


def test_skew_in_unequal_arms_is_named(rng):
    # 1,900 against 100 users of whom 5 % pay: a 95 % interval covered .72.
    data = arms(payers(rng, 1900), payers(rng, 100))
    found = compare(data)
    z = np.concatenate([part - part.mean() for _, part in data.groupby("variant")["m"]])
    k = stats.skew(z) * (1 / 100**2 - 1 / 1900**2) / (1 / 100 + 1 / 1900) ** 1.5
    assert abs(k) > 0.2
    assert (found["warning"], found["verdict"]) == ("skewed", "check: skewed")
    # With equal arms the skewness cancels.
    assert compare(arms(payers(rng, 1000), payers(rng, 1000)))["warning"] == ""
    sequential = compare(data, sequential_n=4000)
    assert sequential[NUMBERS].isna().all()
    assert sequential["warning"] == "skewed; sequential_refused"


def test_cap_is_one_for_all_arms(rng):
    data = arms(payers(rng, 1900, 0.5), payers(rng, 100, 0.5))
    found = compare(data, cap={"m": 0.9})
    limit = np.quantile(data["m"], 0.9)
    assert found["cap"] == limit
    want = compare(data.assign(m=data["m"].clip(upper=limit)))
    for name in ("mean_control", "mean_treatment", "se", "p_value"):
        assert found[name] == pytest.approx(want[name])
    assert np.isnan(want["cap"])
    assert found["warning"] == ""


def test_permutation_holds_its_level_where_t_does_not(rng):
    # Skewed values, 380 against 20 users: the t interval misses 0 far more often than in 5 % of the runs.
    runs, rejected = 300, {"welch": 0, "permutation": 0}
    for seed in range(runs):
        control, treatment = payers(rng, 380, 0.3)[:, None], payers(rng, 20, 0.3)[:, None]
        shuffled = permutation.permuted_t(np.concatenate([control, treatment]), 20, 199, seed)
        p = permutation.permutation_p(shuffled, permutation.observed_t(control, treatment), "two-sided")
        rejected["permutation"] += int(p[0] <= 0.05)
        welch = effects.effect(arm(control[:, 0]), arm(treatment[:, 0]))
        rejected["welch"] += int(welch.p_value <= 0.05)
    assert rejected["permutation"] <= stats.binom.ppf(0.995, runs, 0.05)
    assert rejected["welch"] > stats.binom.ppf(0.999, runs, 0.05)


def test_permutation_is_scipys(rng):
    control, treatment = payers(rng, 60, 0.5), payers(rng, 30, 0.5) + 0.4

    def welch(a, b, axis=-1):
        return (b.mean(axis=axis) - a.mean(axis=axis)) / np.sqrt(
            a.var(axis=axis, ddof=1) / a.shape[axis] + b.var(axis=axis, ddof=1) / b.shape[axis]
        )

    for alternative in ("two-sided", "greater", "less"):
        found = compare(arms(control, treatment), method="permutation", n_resamples=4999, alternative=alternative)

        def extreme(a, b, axis=-1, alternative=alternative):
            t = welch(a, b, axis)
            return np.abs(t) if alternative == "two-sided" else t if alternative == "greater" else -t

        want = stats.permutation_test(
            (control, treatment), extreme, vectorized=True, n_resamples=4999, alternative="greater", rng=1
        )
        assert found["statistic"] == pytest.approx(welch(control, treatment))
        assert found["p_value"] == pytest.approx(want.pvalue, abs=0.02)
        # The interval holds 0 where p is above 5 %.
        inside = found["ci_low"] <= 0 <= found["ci_high"]
        assert inside == (found["p_value"] > 0.05)


# ---------------------------------------------------------------------------------- missing values


def test_unequal_missing_values_withhold_the_verdict(rng):
    # 20 % of the low values of one arm are null: was "better" without a word.
    value = rng.normal(size=4000)
    treated = np.arange(4000) >= 2000
    lost = treated & (value < 0) & (rng.random(4000) < 0.2)
    data = arms(*np.split(np.where(lost, np.nan, value), 2))
    found = compare(data, nan="drop", expected={"A": 1, "B": 1})
    assert found["p_value"] < 0.05
    assert found["verdict"] == "check: unequal missing values"
    assert (found["n_dropped_control"], found["n_dropped_treatment"]) == (0, lost.sum())
    assert found["n_dropped"] == lost.sum()
    # As many in both arms: nothing to see.
    alike = arms(*np.split(np.where(rng.random(4000) < 0.1, np.nan, value), 2))
    assert compare(alike, nan="drop")["warning"] == ""


def test_few_missing_values_are_tested_exactly():
    # 1 of 100 against 0 of 9,900 was flagged with p = 3e-23.
    groups = pd.DataFrame({"user_id": range(10_000), "variant": ["A"] * 100 + ["B"] * 9900})
    health = rd.experiment_health(groups[["user_id"]].iloc[1:], groups, expected={"A": 1, "B": 99})
    assert health["missing_p"].iloc[0] == pytest.approx(stats.fisher_exact([[1, 99], [0, 9900]]).pvalue, rel=1e-9)
    assert (health["missing_flag"] == "").all()
    # Three variants: the smallest p of one against all others, times three.
    three = pd.DataFrame({"user_id": range(130), "variant": ["A"] * 30 + ["B"] * 50 + ["C"] * 50})
    found = rd.experiment_health(three[["user_id"]].iloc[12:], three)["missing_p"].iloc[0]
    assert found == pytest.approx(3 * stats.fisher_exact([[12, 18], [0, 100]]).pvalue, rel=1e-9)


def test_a_covariate_missing_in_one_arm_is_not_used(rng):
    # Missing for low users of the treatment: adjusting by it turned p = .80 into 2e-5.
    value = rng.normal(size=4000)
    past = value + rng.normal(0, 0.3, 4000)
    lost = (np.arange(4000) >= 2000) & (past < -0.5) & (rng.random(4000) < 0.5)
    data = arms(*np.split(value, 2), past=np.where(lost, np.nan, past))
    plain, found = compare(data), compare(data, covariates="past")
    assert found["warning"] == "unequal_covariate_missing"
    assert found["p_value"] == pytest.approx(plain["p_value"])
    assert found["n_covariate_missing"] == lost.sum()


def test_several_covariates_are_lins_regression(rng):
    sm = pytest.importorskip("statsmodels.regression.linear_model")
    n = 400
    x = rng.normal(size=(n, 2))
    t = np.arange(n) >= 250
    y = x[:, 0] * (1 + t) - x[:, 1] + 0.3 * t + rng.normal(size=n) * (1 + t)
    gaps = rng.random(n) < 0.2
    data = arms(y[:250], y[250:], a=np.where(gaps, np.nan, x[:, 0]), b=x[:, 1], twice=2 * x[:, 1], constant=3.0)
    found = compare(data, covariates=["a", "b", "twice", "constant"])
    filled = np.column_stack([np.where(gaps, x[~gaps, 0].mean(), x[:, 0]), x[:, 1], gaps])
    centred = filled - filled.mean(axis=0)
    one = t[:, None] * 1.0
    fit = sm.OLS(y, np.hstack([np.ones((n, 1)), one, centred, one * centred])).fit(cov_type="HC2")
    assert found["diff"] == pytest.approx(fit.params[1], abs=1e-9)
    assert found["se"] == pytest.approx(fit.bse[1], abs=1e-9)
    assert (found["method"], found["n_covariate_missing"]) == ("welch+regression", gaps.sum())
    assert found["variance_reduction"] > 0.3
    shuffled = compare(data, covariates=["a", "b"], method="permutation", n_resamples=500)
    assert shuffled["method"] == "permutation+regression"
    assert shuffled["se"] == pytest.approx(found["se"])


def test_cuped_beside_strata_uses_both():
    # theta ignored the strata: a standard error of .062 instead of .032.
    rng = np.random.default_rng(5)
    n = 2000
    stratum = np.arange(n) % 4
    past = -stratum + rng.normal(size=n)
    y = 2 * stratum + past + 0.3 * rng.normal(size=n)
    data = arms(y[: n // 2], y[n // 2 :], past=past, stratum=stratum)
    both = compare(data, covariates="past", strata="stratum")["se"]
    assert both < 0.6 * compare(data, covariates="past")["se"]
    assert both < 0.6 * compare(data, strata="stratum")["se"]
    assert both == pytest.approx(0.3 * np.sqrt(4 / n), rel=0.05)


# ---------------------------------------------------------------------------------- one user with much of it


def test_a_ratio_that_few_users_carry_has_no_verdict(rng):
    """400 users see 5 items each; one, who clicks nothing, sees as many as half of its arm does."""
    data = pd.DataFrame({"user_id": range(400), "variant": np.repeat(["A", "B"], 200), "shown": 5})
    data["clicks"] = rng.binomial(5, 0.1, 400)
    plain = rd.compare_variants(data, {"ctr": ("clicks", "shown")}, control="A", expected={"A": 0.5, "B": 0.5})
    assert "few_users_carry" not in plain["warning"].iloc[0]
    data.loc[0, ["shown", "clicks"]] = [1000, 0]
    options = {"control": "A", "expected": {"A": 0.5, "B": 0.5}}
    found = rd.compare_variants(data, {"ctr": ("clicks", "shown")}, **options).iloc[0]
    assert "few_users_carry" in found["warning"].split("; ")
    assert found["verdict"] == "check: few users carry it"
    # As many equal users as the arm is worth: (1000 + 199 * 5)² / (1000² + 199 * 5²) is just below 4.
    shuffled = rd.compare_variants(data, {"ctr": ("clicks", "shown")}, method="permutation", n_resamples=200, **options)
    assert "few_users_carry" not in shuffled["warning"].iloc[0]


# ---------------------------------------------------------------------------------- clusters


def clustered(rng, n_clusters, sigma):
    size = np.maximum(1, rng.lognormal(3, sigma, 2 * n_clusters).astype(int))
    region = np.repeat(np.arange(2 * n_clusters), size)
    m = rng.normal(size=2 * n_clusters)[region] + rng.normal(size=size.sum())
    variant = np.where(region < n_clusters, "A", "B")
    return pd.DataFrame({"row": np.arange(len(m)), "region": region, "variant": variant, "m": m})


def test_few_clusters_are_named_and_their_variance_is_the_jackknifes(rng):
    data = clustered(rng, 9, 1.0)
    found = compare(data, cluster="region")
    assert found["warning"] == "few_clusters"
    var, df = [], []
    for _, side in data.groupby("variant"):
        regions = side["region"].unique()
        left = [side.loc[side["region"] != region, "m"].mean() for region in regions]
        var.append((len(left) - 1) / len(left) * np.square(np.array(left) - side["m"].mean()).sum())
        size = side["region"].value_counts()
        df.append(size.sum() ** 2 / (size**2).sum() - 1)
    assert found["se"] == pytest.approx(np.sqrt(sum(var)))
    assert found["df"] == pytest.approx(sum(var) ** 2 / (var[0] ** 2 / df[0] + var[1] ** 2 / df[1]))
    many = compare(clustered(rng, 100, 0.1), cluster="region")
    assert many["warning"] == ""


def test_few_unequal_clusters_cover(rng):
    # The delta method covered .80 to .90 with 10 clusters of unequal size.
    runs, covered = 1000, {"delta": 0, "jackknife": 0}
    for _ in range(runs):
        sides = []
        for _ in range(2):
            size = np.maximum(1.0, np.floor(rng.lognormal(3, 1.2, 10)))
            sides.append(Sample(rng.normal(size=10) * size + rng.normal(size=10) * np.sqrt(size), size))
        for name, estimate in (("delta", lambda s: arm(s.num, s.den)), ("jackknife", jackknife_arm)):
            found = effects.effect(*map(estimate, sides))
            covered[name] += bool(found.ci_low <= 0 <= found.ci_high)
    assert covered["jackknife"] >= stats.binom.ppf(0.005, runs, 0.95)
    assert covered["delta"] < 0.9 * runs


# ---------------------------------------------------------------------------------- power


def test_mde_of_a_sequential_test_is_wider_than_its_interval(rng):
    found = compare(arms(rng.normal(size=500), rng.normal(size=500)), sequential_n=2000)
    half = (found["ci_high"] - found["ci_low"]) / 2
    # Was 2.8 standard errors beside an interval of 3.2.
    assert found["mde"] == pytest.approx(half + stats.norm.ppf(0.8) * found["se"])


@pytest.mark.parametrize("effect", [3.0, 1.0, 0.3, 0.05])
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_planning_small_experiments_has_the_power_it_says(effect, share):
    # For 3 standard deviations the normal formula planned 2 against 2 users: a power of .19.
    power = pytest.importorskip("statsmodels.stats.power").TTestIndPower()
    past = pd.DataFrame({"m": np.linspace(1, 3, 50)})
    std = past["m"].std()
    plan = rd.plan_experiment(past, "m", rel_effect=effect * std / 2, control_share=share).iloc[0]
    n_c, n_t = plan["n_control"], plan["n_treatment"]
    assert power.power(effect, n_c, 0.05, ratio=n_t / n_c) >= 0.8 - 1e-6
    if min(n_c, n_t) > 3:
        fewer = power.power(effect, n_c - 1, 0.05, ratio=(n_t - 1) / (n_c - 1))
        assert fewer < 0.8
    back = rd.plan_experiment(past, "m", n=int(n_c + n_t), control_share=n_c / (n_c + n_t)).iloc[0]
    assert power.power(back["mde_abs"] / std, n_c, 0.05, ratio=n_t / n_c) == pytest.approx(0.8, abs=1e-5)


# ---------------------------------------------------------------------------------- the sample ratio


def test_an_unchecked_sample_ratio_is_said(rng):
    # 10,000 against 5,000 users and no planned shares: was plainly "better".
    data = arms(rng.normal(size=10_000), rng.normal(0.2, 1, 5_000))
    assert compare(data)["verdict"] == "better (sample ratio not checked)"
    assert compare(data, expected={"A": 2, "B": 1})["verdict"] == "better"
    groups = data[["user_id", "variant"]]
    for expected, verdict in ((None, "invalid: sample ratio"), ({"A": 2, "B": 1}, "better")):
        health = rd.experiment_health(data[["user_id"]], groups, expected=expected)
        assert compare(data, health=health)["verdict"] == verdict
    with pytest.raises(OptionError, match="both given"):
        compare(data, health=health, expected={"A": 2, "B": 1})
    with pytest.raises(OptionError, match="no variant 'B'"):
        compare(data, health=health[health["variant"] == "A"])
    with pytest.raises(TypeError, match="health is a dict"):
        compare(data, health={})
    # Too few users to test the ratio is not a ratio that was checked.
    few = arms(np.arange(3.0), np.arange(3.0))
    assert rd.compare_variants(few, "m", control="A", expected={"A": 1, "B": 1})["verdict"].iloc[0].startswith("check")


def test_health_by_segment_speaks_for_its_segment(rng):
    data = arms(rng.normal(size=900), rng.normal(0.6, 1, 500), s=["x"] * 500 + ["y"] * 400 + ["x"] * 480 + ["y"] * 20)
    health = rd.experiment_health(data[["user_id"]], data[["user_id", "variant", "s"]], by="s")
    table = rd.compare_variants(data, "m", control="A", by="s", health=health)
    assert table["verdict"].tolist() == ["better", "invalid: sample ratio"]
    with pytest.raises(OptionError, match=r"not by \['s'\]"):
        compare(data, health=health)


def test_shares_that_change_over_time_are_named(rng):
    # Ramp-up 90/10 in a good week, 10/90 in a bad one: pooled +.67 of a true −.15.
    week = np.repeat([1, 2], 5000)
    treated = rng.random(10_000) < np.where(week == 1, 0.1, 0.9)
    m = np.where(week == 1, 0.0, 1.0) - 0.15 * treated + rng.normal(size=10_000)
    data = pd.DataFrame({"user_id": range(10_000), "variant": np.where(treated, "B", "A"), "week": week, "m": m})
    found = compare(data, time_col="week")
    assert found["diff"] > 0.5
    assert (found["warning"], found["verdict"]) == ("shares_change", "check: shares of the variants change")
    strata = compare(data, strata="week", time_col="week")
    assert strata["diff"] == pytest.approx(-0.15, abs=0.08)
    assert strata["verdict"].startswith("worse")
    days = data.assign(day=pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.permutation(10_000), unit="min"))
    assert compare(days, time_col="day")["warning"] == ""
    cohorts = data.assign(cohort=np.where(week == 1, "old", "new"))
    assert compare(cohorts, time_col="cohort")["warning"] == "shares_change"


# ---------------------------------------------------------------------------------- relative intervals


def test_relative_interval_agrees_with_the_test(rng):
    # The log interval contradicted p in up to 16 % of skewed runs without an effect.
    sides = arm(rng.lognormal(0, 1.5, (2000, 60))), arm(rng.lognormal(0, 1.5, (2000, 30)))
    contradicted = {}
    for relative in ("fieller", "log"):
        found = effects.effect(*sides, relative=relative)
        known = ~np.isnan(found.rel_ci_low)
        inside = (found.rel_ci_low <= 0) & (found.rel_ci_high >= 0)
        contradicted[relative] = np.mean((inside != (found.p_value > 0.05))[known])
    assert contradicted["fieller"] == 0
    assert contradicted["log"] > 0.02


def test_fieller_by_inverting_the_test(rng):
    data = arms(rng.gamma(2, size=80), rng.gamma(2, 1.2, 70))
    found = compare(data)
    c, t = (part["m"].to_numpy() for _, part in data.groupby("variant"))
    quantile = stats.t.ppf(0.975, found["df"])
    for limit in (found["rel_ci_low"] + 1, found["rel_ci_high"] + 1):
        se = np.sqrt(t.var(ddof=1) / len(t) + limit**2 * c.var(ddof=1) / len(c))
        assert abs(t.mean() - limit * c.mean()) == pytest.approx(quantile * se)
    # A control that may be 0 has no bounded ratio.
    assert np.isnan(compare(arms(rng.normal(0.1, 5, 50), rng.normal(0.1, 5, 50)))["rel_ci_low"])


# ---------------------------------------------------------------------------------- numbers that are no numbers


def test_huge_values_and_empty_denominators_are_named():
    # Values of 1e155 overflow when squared: the standard error was infinite.
    found = compare(arms(np.r_[np.full(20, 1e200), np.ones(20)], np.arange(40.0)))
    assert (found["warning"], found["verdict"]) == ("huge_values", "check: huge values")
    assert found[NUMBERS].isna().all()
    assert found["mean_control"] == pytest.approx(5e199)
    past = arms(np.arange(40.0), np.arange(40.0), past=np.r_[1e200, np.ones(79)], other=1.0)
    for covariates in ("past", ["past", "other"]):
        assert compare(past, covariates=covariates)["warning"] == "huge_values"
    data = arms(np.arange(1000.0), np.arange(1000.0) + 3)
    data["n"] = np.where(data["user_id"] % 25 == 0, 1.0, 0.0)
    assert "mostly_zero_denominator" in compare(data, {"r": ("m", "n")})["warning"]


def test_replicates_without_a_denominator_are_no_ratio(rng):
    # One user in twenty has something in the denominator: some replicates have none, and were infinite.
    data = arms(rng.random(40) + 1, rng.random(40) + 1)
    data["n"] = np.where(data["user_id"] % 20 == 0, 1.0, 0.0)
    found = compare(data, {"r": ("m", "n")}, method="bootstrap", n_resamples=200)
    assert np.isfinite(found[["se", "ci_low", "ci_high", "p_value"]].astype(float)).all()
    tiny = compare(arms([1e-160], [1e160]))
    assert tiny["rel_diff"] != np.inf


def test_users_without_lists_leave_the_ratio_and_are_counted():
    # After roll_up by sums a user without defined lists has a null sum over 0 lists: was an error for all metrics.
    sessions = pd.DataFrame(
        {"user_id": np.repeat(np.arange(100), 2), "n_pred": 10, "ndcg@10": np.tile([0.2, 0.5], 100) + 0.001}
    )
    sessions["ndcg@10"] += np.arange(200) / 1000
    sessions.loc[sessions["user_id"] < 5, "ndcg@10"] = np.nan
    users = rd.roll_up(sessions, how="sum")
    users["variant"] = np.where(users["user_id"] % 2, "A", "B")
    recipe = {"ndcg": ("ndcg@10", "ndcg@10__n"), "ctr": ("n_pred", "n_rows")}
    table = rd.compare_variants(users, recipe, control="A")
    assert table["n_dropped"].tolist() == [5, 0]
    known = sessions.dropna().assign(variant=lambda x: np.where(x["user_id"] % 2, "A", "B"))
    want = known.groupby("variant")["ndcg@10"].mean()
    assert table["diff"].iloc[0] == pytest.approx(want["B"] - want["A"])
    # A null numerator over lists that exist is a missing value.
    with pytest.raises(DataError, match="'ndcg' is null in 5 of 100"):
        rd.compare_variants(users.assign(**{"ndcg@10__n": 2}), {"ndcg": ("ndcg@10", "ndcg@10__n")}, control="A")


def test_one_control_has_one_mean(rng):
    past = rng.normal(size=900)
    data = pd.DataFrame(
        {"user_id": range(900), "variant": np.repeat(list("ABC"), 300), "past": past, "m": past + rng.normal(size=900)}
    )
    table = rd.compare_variants(data, "m", control="A", covariates="past")
    assert table["mean_control"].tolist() == [pytest.approx(data["m"][:300].mean())] * 2
    adjusted = table["mean_treatment_adjusted"] - table["mean_control_adjusted"]
    np.testing.assert_allclose(table["diff"], adjusted)
    assert rd.compare_variants(data, "m", control="A")["mean_control_adjusted"].isna().all()


# ---------------------------------------------------------------------------------- direction


def test_metrics_without_direction_are_higher_or_lower(rng):
    data = arms(rng.normal(size=200), rng.normal(1, 1, 200))
    data = data.assign(**{"arp@10": data["m"], "first_rank@10": data["m"], "hits@10": -data["m"]})
    table = rd.compare_variants(data, ["arp@10", "first_rank@10", "hits@10"], control="A", expected={"A": 1, "B": 1})
    assert table["verdict"].tolist() == ["higher", "worse", "lower"]
    table = rd.compare_variants(data, "arp@10", control="A", smaller_is_better="arp@10", expected={"A": 1, "B": 1})
    assert table["verdict"].tolist() == ["worse"]
    # The mean of a metric over lists has the direction of the metric.
    lists = data.assign(**{"first_rank@10__n": 1.0})
    ratio = {"rank": ("first_rank@10", "first_rank@10__n")}
    assert compare(lists, ratio, expected={"A": 1, "B": 1})["verdict"] == "worse"
    with pytest.raises(OptionError, match=r"\['m'\] are in smaller_is_better and in larger_is_better"):
        compare(data, smaller_is_better="m", larger_is_better="m")


def joined(metric, values, **options):
    per_user = pd.DataFrame({"user_id": range(len(values)), metric: values})
    groups = pd.DataFrame({"user_id": range(len(values) + 2), "variant": ["A", "B"] * (len(values) // 2 + 1)})
    return rd.join_experiment(per_user, groups, **{"missing": "zero", **options})


ZEROS = [
    ("ndcg@10", "zero", 0.0), ("hits@10", "zero", 0.0), ("revenue@10", "zero", 0.0), ("dcg@10", "zero", 0.0),
    ("first_rank@10", "zero", None), ("fallout@10", "zero", None), ("arp@10", "zero", None), ("mcc@10", "zero", None),
    ("fallout@10", "worst", 1.0), ("mcc@10", "worst", -1.0), ("first_rank@10", "worst", None),
    ("ndcg@10", "worst", 0.0), ("n_visits", "zero", 0.0), ("ndcg@10__n", "zero", 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("metric", "missing", "want"), ZEROS)
def test_a_missing_list_is_not_a_zero_of_every_metric(metric, missing, want):
    # first_rank and other metrics of which less is better got the best value there is: "better".
    found = joined(metric, [0.5, 0.25], missing=missing)
    assert found["has_metrics"].tolist() == [True, True, False, False]
    filled = found[metric].iloc[2:]
    assert filled.isna().all() if want is None else (filled == want).all()
    assert found.attrs["recdf_experiment"]["null_for_missing"] == ([metric] if want is None else [])


def test_a_metric_of_unknown_direction_names_the_argument():
    with pytest.raises(OptionError, match=r"per_user\['latency'\].*larger_is_better=.*smaller_is_better="):
        joined("latency", [0.5, 0.25])
    assert joined("latency", [0.5, 0.25], smaller_is_better="latency")["latency"].isna().sum() == 2
    assert joined("spend", [5, 2], larger_is_better="spend")["spend"].tolist() == [5, 2, 0, 0]
    # Nobody is missing: there is nothing to fill.
    per_user = pd.DataFrame({"user_id": [1, 2], "latency": [3.0, 4.0]})
    groups = pd.DataFrame({"user_id": [1, 2], "variant": ["A", "B"]})
    assert rd.join_experiment(per_user, groups, missing="zero")["latency"].tolist() == [3.0, 4.0]


# ---------------------------------------------------------------------------------- exposure


def visits():
    return pd.DataFrame(
        {"user_id": [1, 1, 2, 2, 3], "week": [1, 2, 1, 2, 2], "day": [2, 9, 3, 10, 12], "hits@10": [1.0, 2, 3, 4, 5]}
    )


def test_weeks_before_the_exposure_are_absent():
    # by="week" counted users who were not exposed yet as zeros.
    groups = pd.DataFrame({"user_id": [1, 2, 3, 4], "variant": list("ABAB"), "at": [1, 8, 11, 2]})
    found = rd.join_experiment(visits(), groups, by="week", missing="zero", exposure_col="at", time_col="day")
    cells = list(zip(found["week"], found["user_id"], found["hits@10"], strict=True))
    # User 2 was exposed in week 2, user 3 too; user 4 was exposed in week 1 and never came.
    assert cells == [(1, 1, 1.0), (1, 4, 0.0), (2, 1, 2.0), (2, 2, 4.0), (2, 3, 5.0), (2, 4, 0.0)]
    counts = found.attrs["recdf_experiment"]
    assert (counts["n_cells_before_exposure"], counts["n_missing"], counts["n_before_exposure"]) == (2, 2, 1)


@pytest.mark.parametrize("never", [None, np.nan, pd.NaT])
def test_users_who_were_never_exposed(never):
    groups = pd.DataFrame({"user_id": [1, 2, 3, 3], "variant": list("ABAA"), "at": [1, 3, never, never]})
    if never is pd.NaT:
        groups["at"] = pd.to_datetime(["2026-01-01", "2026-01-03", None, None])
    lists = visits().assign(day=visits()["day"] if never is not pd.NaT else pd.Timestamp("2026-01-20"))
    options = {"how": "sum", "exposure_col": "at", "time_col": "day"}
    found = rd.join_experiment(lists.drop(columns="week"), groups, **options)
    assert found["user_id"].tolist() == [1, 2]
    assert found.attrs["recdf_experiment"]["n_unexposed"] == 1
    with pytest.raises(DataError, match=r"1 users of assignment have no 'at' \(3\)"):
        rd.join_experiment(lists.drop(columns="week"), groups, unexposed="raise", **options)
    # A user with one time of exposure among nulls was exposed then.
    late = groups.assign(user_id=[1, 2, 3, 2]).iloc[[0, 3, 1, 2]].assign(variant=list("ABBA"))
    found = rd.join_experiment(lists.drop(columns="week"), late, **options)
    assert found["user_id"].tolist() == [1, 2]
    with pytest.raises(DataError, match="null in all 4 rows; nobody was exposed"):
        rd.join_experiment(lists, groups.assign(at=pd.NaT), **options)


# ---------------------------------------------------------------------------------- pairs of models


def pair(d, **options):
    frames = {name: pd.DataFrame({"user_id": range(len(d)), "m": v}) for name, v in (("a", d * 0), ("b", d))}
    return rd.compare_models(frames, **options).iloc[0]


def test_wilcoxons_verdict_follows_the_ranks():
    # 115 wins and 385 losses were "better": the sign of the mean beside the p of the ranks.
    d = np.r_[np.full(115, 10.0), np.full(385, -1.0)] + np.linspace(0, 1e-3, 500)
    found = pair(d, test="wilcoxon")
    assert (found["wins"], found["losses"]) == (115, 385)
    assert found["diff"] > 0
    assert found["verdict"] == "ranks lower"
    assert pair(-d, test="wilcoxon")["verdict"] == "ranks higher"
    signed = stats.rankdata(np.abs(d)) * np.sign(d)
    assert signed.sum() < 0
    assert pair(d)["verdict"] == "better"


@pytest.mark.parametrize("test", ["t", "wilcoxon", "randomization"])
def test_mostly_ties_are_named(test, rng):
    d = np.where(np.arange(400) < 20, rng.normal(size=400), 0.0)
    assert "mostly_zero" in pair(d, test=test, margin=0.5, n_resamples=200)["warning"].split("; ")
    assert "mostly_zero" not in pair(rng.normal(size=400), test=test, n_resamples=200)["warning"]


def test_better_within_the_margin(rng):
    # A difference of .001 with a margin of .01 was plainly "better".
    d = rng.normal(0.001, 0.001, 400)
    assert pair(d, margin=0.01)["verdict"] == "better, within the margin"
    assert pair(-d, margin=0.01)["verdict"] == "worse, within the margin"
    assert pair(d - d.mean(), margin=0.01)["verdict"] == "equivalent"
    assert pair(d, margin=0.0005)["verdict"] == "better"


def test_equivalence_of_many_metrics_is_adjusted(rng):
    # Ten metrics whose difference is the margin itself: some "equivalent" in 38 % of the runs.
    runs, any_raw, any_adjusted = 1000, 0, 0
    units = arm(rng.normal(0.1, 0.2, (runs, 10, 60)))
    for p in equivalence_p(units.mean, np.sqrt(units.var), units.df, 0.1):
        any_raw += (p <= 0.05).any()
        any_adjusted += (adjust(p, "holm") <= 0.05).any()
    assert any_adjusted <= stats.binom.ppf(0.995, runs, 0.05)
    assert any_raw > 0.3 * runs
    # The table decides by the adjusted p.
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    wide = pd.DataFrame(rng.normal(0.05, 0.2, (60, 10)), columns=[f"m{i}" for i in range(10)])
    frames = {"a": (wide * 0).assign(user_id=range(60)), "b": wide.assign(user_id=range(60))}
    table = rd.compare_models(frames, margin=0.1)
    np.testing.assert_allclose(
        table["p_equivalence_adj"], multitest.multipletests(table["p_equivalence"], method="holm")[1]
    )
    equivalent = table["verdict"].isin(["equivalent", "better, within the margin", "worse, within the margin"])
    assert equivalent.tolist() == (table["p_equivalence_adj"] <= 0.05).tolist()
    assert (table["p_equivalence"] <= 0.05).sum() > equivalent.sum() > 0


def test_huge_differences_are_named():
    found = pair(np.r_[1e200, np.ones(50)])
    assert (found["warning"], found["p_value"]) == ("huge_values", pytest.approx(np.nan, nan_ok=True))


def test_zero_for_a_model_that_lacks_users_is_no_gift():
    # users="zero" gave the model without a list the best rank there is.
    frames = {name: pd.DataFrame({"user_id": range(n), "first_rank@5": np.arange(n) % 5 + 1.0, "mrr@5": 0.5})
              for name, n in (("a", 40), ("b", 60))}  # fmt: skip
    with pytest.raises(OptionError, match=r"'first_rank@5' a 0 for 20 users.*users=\"inner\""):
        rd.compare_models(frames, users="zero")
    assert rd.compare_models(frames, "mrr@5", users="zero")["verdict"].tolist() == ["better"]
    inner = rd.compare_models(frames, users="inner")
    assert inner["n_users"].tolist() == [40, 40]


def test_bootstrap_of_huge_values_is_named():
    frame = pd.DataFrame({"user_id": range(30), "m": np.r_[1e200, np.ones(29)]})
    found = rd.bootstrap_ci(frame, "m", n_resamples=50).iloc[0]
    assert found["warning"] == "huge_values"
    assert found[["value", "se", "ci_low"]].isna().all()


BAD = [
    ("proportion of a mean", {"test": "proportion"}, DataError, "other than 0 and 1"),
    ("proportion with covariates", {"test": "proportion", "covariates": "m"}, OptionError, "takes no method="),
    ("test", {"test": "z"}, OptionError, "valid are 'mean', 'proportion'"),
    ("test of a metric", {"test": {"m": "z"}}, OptionError, r"test\['m'\]"),
    ("cap of another", {"cap": {"x": 0.9}}, OptionError, "not compared"),
    ("cap", {"cap": {"m": 99.9}}, OptionError, r"cap\['m'\]=99.9"),
    ("cap number", {"cap": 0.99}, OptionError, "mapping of metrics to quantiles"),
    ("relative", {"relative": "delta"}, OptionError, "'fieller', 'log'"),
    ("permutation of strata", {"method": "permutation", "strata": "s"}, OptionError, "does not take strata"),
    ("several in the bootstrap", {"method": "bootstrap", "covariates": ["m", "s"]}, OptionError, "takes one"),
    ("several in clusters", {"cluster": "user_id", "covariates": ["m", "s"]}, OptionError, "takes one"),
    ("time", {"time_col": "day"}, KeyError, "time_col"),
]


@pytest.mark.parametrize(("options", "error", "words"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_options(options, error, words):
    data = arms(np.arange(30.0), np.arange(30.0), s=np.arange(60) % 2)
    with pytest.raises(error, match=words):
        compare(data, **options)


def test_bad_ratio_options():
    data = arms(np.arange(30.0), np.arange(30.0), n=1.0)
    with pytest.raises(OptionError, match="a cap is for means"):
        compare(data, {"r": ("m", "n")}, cap={"r": 0.9})
    with pytest.raises(OptionError, match="takes one covariate"):
        compare(data, {"r": ("m", "n")}, covariates={"r": ["m", "n", "user_id"]})
