"""`compare_variants` gives no false verdict from odd samples: constant and small arms, skew,
missing values, heavy users, clusters, power."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from experiments.verdicts import NUMBERS, arms, compare, payers
from scipy import stats

import recdf as rd
from recdf.experiments.samples import units_of
from recdf.judge.effects.means import estimate
from recdf.judge.users import ArmRows
from recdf.stats import resampling
from recdf.stats.arms import Sample, arm, effect

# -- constant arms, small arms


def test_constant_arm_has_no_t_test():
    # Was p = 1e-47 and "worse": only the control's spread was in the standard error.
    data = arms(np.r_[np.ones(200), np.zeros(1800)], np.zeros(20))
    for test in ("t", "bootstrap", "permutation"):
        found = compare(data, test=test)
        assert found[NUMBERS].isna().all()
        assert "constant_arm" in found["remarks"].split("; ")
        assert found["verdict"] == "check: constant arm"
    shares = compare(data, test="proportion")
    assert shares["p_value"] == pytest.approx(
        stats.fisher_exact([[0, 20], [200, 1800]]).pvalue, rel=1e-9
    )
    assert shares["p_value"] == pytest.approx(0.2514, abs=1e-4)
    assert shares["ci_low"] < 0 < shares["ci_high"]
    assert shares["verdict"] == "no difference shown (sample ratio not checked)"


@pytest.mark.long
def test_proportion_is_fisher_and_newcombe(rng):
    proportions = pytest.importorskip("statsmodels.stats.proportion")
    for n_c, n_t, p in ((15, 30, 0.1), (300, 250, 0.4)):
        data = arms((rng.random(n_c) < p) * 1.0, (rng.random(n_t) < p + 0.1) * 1.0)
        yes = data.groupby("variant")["m"].sum()
        for alternative in ("two-sided", "greater", "less"):
            found = rd.compare_variants(
                data,
                {"a": "m", "b": "m"},
                control="A",
                test={"a": "proportion"},
                alternative=alternative,
                details=True,
            )
            table = [[yes["B"], n_t - yes["B"]], [yes["A"], n_c - yes["A"]]]
            want = stats.fisher_exact(table, alternative=alternative).pvalue
            assert found["p_value"].iloc[0] == pytest.approx(want, rel=1e-9)
            assert found["method"].tolist() == ["proportion", "welch"]
        found = compare(data, test="proportion")
        low, high = proportions.confint_proportions_2indep(
            int(yes["B"]), n_t, int(yes["A"]), n_c, compare="diff", method="newcomb"
        )
        assert (found["ci_low"], found["ci_high"]) == (
            pytest.approx(low, rel=1e-6),
            pytest.approx(high, rel=1e-6),
        )


def test_all_against_none_is_decided_by_the_proportion():
    # Was "no difference shown", because neither arm has a variance.
    found = compare(arms(np.zeros(12), np.ones(9)))
    assert found["p_value"] == pytest.approx(stats.fisher_exact([[9, 0], [0, 12]]).pvalue, rel=1e-9)
    assert (found["method"], found["verdict"]) == (
        "proportion",
        "better (sample ratio not checked)",
    )
    # Two constants that are no shares: a difference, but nothing to test it with.
    assert compare(arms(np.full(50, 1.5), np.full(50, 2.5)))["verdict"] == "check: zero variance"
    assert compare(arms(np.full(50, 1.5), np.full(50, 1.5)))["verdict"].startswith(
        "no difference shown"
    )


def test_two_against_two_have_no_verdict():
    # Was "better".
    found = compare(arms([0.0, 1.0], [5.0, 6.0]))
    assert found["p_value"] < 0.05
    assert (found["remarks"], found["verdict"]) == (
        "tiny; unbounded; ratio_not_checked",
        "check: tiny arms",
    )
    enough = compare(arms(np.arange(20.0), np.arange(20.0) + 30))
    assert enough["verdict"].startswith("better")
    # A ratio has as many units as have something in the denominator.
    data = arms(np.arange(60.0), np.arange(60.0) + 30)
    data["n"] = np.where(data["user_id"] % 4 == 0, 1.0, 0.0)
    assert "tiny" in compare(data, {"m": ("m", "n")})["remarks"]


# -- skew


def test_skew_in_unequal_arms_is_named(rng):
    # 1,900 against 100 users of whom 5 % pay: a 95 % interval covered .72.
    data = arms(payers(rng, 1900), payers(rng, 100))
    found = compare(data)
    z = np.concatenate([part - part.mean() for _, part in data.groupby("variant")["m"]])
    k = stats.skew(z) * (1 / 100**2 - 1 / 1900**2) / (1 / 100 + 1 / 1900) ** 1.5
    assert abs(k) > 0.2
    assert (found["remarks"], found["verdict"]) == ("skewed; ratio_not_checked", "check: skewed")
    # With equal arms the skewness cancels.
    assert compare(arms(payers(rng, 1000), payers(rng, 1000)))["remarks"] == "ratio_not_checked"
    sequential = compare(data, sequential_n=4000)
    assert sequential[NUMBERS].isna().all()
    assert sequential["remarks"] == "skewed; sequential_refused; ratio_not_checked"


def test_cap_is_one_for_all_arms(rng):
    data = arms(payers(rng, 1900, 0.5), payers(rng, 100, 0.5))
    found = compare(data, cap={"m": 0.9})
    limit = np.quantile(data["m"], 0.9)
    assert found["cap"] == limit
    want = compare(data.assign(m=data["m"].clip(upper=limit)))
    for name in ("mean_control", "mean_treatment", "se", "p_value"):
        assert found[name] == pytest.approx(want[name])
    assert np.isnan(want["cap"])
    assert found["remarks"] == "ratio_not_checked"


@pytest.mark.long
def test_permutation_holds_its_level_where_t_does_not(rng):
    # Skewed values, 380 against 20 users: the t interval misses 0 far more often than in 5 % of the
    # runs.
    runs, rejected = 300, {"welch": 0, "permutation": 0}
    for seed in range(runs):
        control, treatment = payers(rng, 380, 0.3)[:, None], payers(rng, 20, 0.3)[:, None]
        observed, shuffled = resampling.permuted_t(control, treatment, 199, seed)
        p = resampling.sign_flip_p(shuffled, observed, "two-sided", 1e-9, scale=1.0)
        rejected["permutation"] += int(p[0] <= 0.05)
        welch = effect(arm(control[:, 0]), arm(treatment[:, 0]))
        rejected["welch"] += int(welch.p_value <= 0.05)
    assert rejected["permutation"] <= stats.binom.ppf(0.995, runs, 0.05)
    assert rejected["welch"] > stats.binom.ppf(0.999, runs, 0.05)


@pytest.mark.long
def test_permutation_is_scipys(rng):
    control, treatment = payers(rng, 60, 0.5), payers(rng, 30, 0.5) + 0.4

    def welch(a, b, axis=-1):
        return (b.mean(axis=axis) - a.mean(axis=axis)) / np.sqrt(
            a.var(axis=axis, ddof=1) / a.shape[axis] + b.var(axis=axis, ddof=1) / b.shape[axis]
        )

    for alternative in ("two-sided", "greater", "less"):
        found = compare(
            arms(control, treatment), test="permutation", n_resamples=4999, alternative=alternative
        )

        def extreme(a, b, axis=-1, alternative=alternative):
            t = welch(a, b, axis)
            return (
                np.abs(t) if alternative == "two-sided" else t if alternative == "greater" else -t
            )

        want = stats.permutation_test(
            (control, treatment),
            extreme,
            vectorized=True,
            n_resamples=4999,
            alternative="greater",
            rng=1,
        )
        assert found["statistic"] == pytest.approx(welch(control, treatment))
        assert found["p_value"] == pytest.approx(want.pvalue, abs=0.02)
        # The interval holds 0 where p is above 5 %.
        inside = found["ci_low"] <= 0 <= found["ci_high"]
        assert inside == (found["p_value"] > 0.05)


# -- missing values


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
    assert compare(alike, nan="drop")["remarks"] == "ratio_not_checked"


def test_few_missing_values_are_tested_exactly():
    # 1 of 100 against 0 of 9,900 was flagged with p = 3e-23.
    groups = pd.DataFrame({"user_id": range(10_000), "variant": ["A"] * 100 + ["B"] * 9900})
    health = rd.experiments.experiment_health(
        groups[["user_id"]].iloc[1:], groups, expected={"A": 1, "B": 99}
    )
    assert health["missing_p"].iloc[0] == pytest.approx(
        stats.fisher_exact([[1, 99], [0, 9900]]).pvalue, rel=1e-9
    )
    assert (health["missing_flag"] == "").all()
    # Three variants: the smallest p of one against all others, times three.
    three = pd.DataFrame({"user_id": range(130), "variant": ["A"] * 30 + ["B"] * 50 + ["C"] * 50})
    found = rd.experiments.experiment_health(three[["user_id"]].iloc[12:], three)["missing_p"].iloc[
        0
    ]
    assert found == pytest.approx(3 * stats.fisher_exact([[12, 18], [0, 100]]).pvalue, rel=1e-9)


def test_a_covariate_missing_in_one_arm_is_not_used(rng):
    # Missing for low users of the treatment: adjusting by it turned p = .80 into 2e-5.
    value = rng.normal(size=4000)
    past = value + rng.normal(0, 0.3, 4000)
    lost = (np.arange(4000) >= 2000) & (past < -0.5) & (rng.random(4000) < 0.5)
    data = arms(*np.split(value, 2), past=np.where(lost, np.nan, past))
    plain, found = compare(data), compare(data, covariates="past")
    assert found["remarks"] == "unequal_covariate_missing; ratio_not_checked"
    assert found["p_value"] == pytest.approx(plain["p_value"])
    assert found["n_covariate_missing"] == lost.sum()


def test_several_covariates_are_lins_regression(rng):
    sm = pytest.importorskip("statsmodels.regression.linear_model")
    n = 400
    x = rng.normal(size=(n, 2))
    t = np.arange(n) >= 250
    y = x[:, 0] * (1 + t) - x[:, 1] + 0.3 * t + rng.normal(size=n) * (1 + t)
    gaps = rng.random(n) < 0.2
    data = arms(
        y[:250],
        y[250:],
        a=np.where(gaps, np.nan, x[:, 0]),
        b=x[:, 1],
        twice=2 * x[:, 1],
        constant=3.0,
    )
    found = compare(data, covariates=["a", "b", "twice", "constant"])
    filled = np.column_stack([np.where(gaps, x[~gaps, 0].mean(), x[:, 0]), x[:, 1], gaps])
    centred = filled - filled.mean(axis=0)
    one = t[:, None] * 1.0
    fit = sm.OLS(y, np.hstack([np.ones((n, 1)), one, centred, one * centred])).fit(cov_type="HC2")
    assert found["diff"] == pytest.approx(fit.params[1], abs=1e-9)
    assert found["se"] == pytest.approx(fit.bse[1], abs=1e-9)
    assert (found["method"], found["n_covariate_missing"]) == ("welch+regression", gaps.sum())
    assert found["variance_reduction"] > 0.3
    shuffled = compare(data, covariates=["a", "b"], test="permutation", n_resamples=500)
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


# -- one user with much of it


def test_a_ratio_that_few_users_carry_has_no_verdict(rng):
    """400 users see 5 items each; one, who clicks nothing, sees as many as half of its arm does."""
    data = pd.DataFrame({"user_id": range(400), "variant": np.repeat(["A", "B"], 200), "shown": 5})
    data["clicks"] = rng.binomial(5, 0.1, 400)
    plain = rd.compare_variants(
        data, {"ctr": ("clicks", "shown")}, control="A", expected={"A": 0.5, "B": 0.5}, details=True
    )
    assert "few_users_carry" not in plain["remarks"].iloc[0]
    data.loc[0, ["shown", "clicks"]] = [1000, 0]
    options = {"control": "A", "expected": {"A": 0.5, "B": 0.5}}
    found = rd.compare_variants(data, {"ctr": ("clicks", "shown")}, **options, details=True).iloc[0]
    assert "few_users_carry" in found["remarks"].split("; ")
    assert found["verdict"] == "check: few users carry it"
    # As many equal users as the arm is worth: (1000 + 199 * 5)² / (1000² + 199 * 5²) is just below
    # 4.
    shuffled = rd.compare_variants(
        data,
        {"ctr": ("clicks", "shown")},
        test="permutation",
        n_resamples=200,
        **options,
        details=True,
    )
    assert "few_users_carry" not in shuffled["remarks"].iloc[0]


# -- clusters


def clustered(rng, n_clusters, sigma):
    size = np.maximum(1, rng.lognormal(3, sigma, 2 * n_clusters).astype(int))
    region = np.repeat(np.arange(2 * n_clusters), size)
    m = rng.normal(size=2 * n_clusters)[region] + rng.normal(size=size.sum())
    variant = np.where(region < n_clusters, "A", "B")
    return pd.DataFrame({"row": np.arange(len(m)), "region": region, "variant": variant, "m": m})


def test_few_clusters_are_named_and_their_variance_is_the_jackknifes(rng):
    data = clustered(rng, 9, 1.0)
    found = compare(data, cluster="region")
    assert found["remarks"] == "few_clusters; ratio_not_checked"
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
    assert many["remarks"] == "ratio_not_checked"


@pytest.mark.long
def test_few_unequal_clusters_cover(rng):
    # The delta method covered .80 to .90 with 10 clusters of unequal size.
    runs, covered = 1000, {"delta": 0, "jackknife": 0}
    for _ in range(runs):
        sides = []
        for _ in range(2):
            size = np.maximum(1.0, np.floor(rng.lognormal(3, 1.2, 10)))
            num = rng.normal(size=10) * size + rng.normal(size=10) * np.sqrt(size)
            sides.append((num, size))
        whole = Sample(*(np.concatenate(parts) for parts in zip(*sides, strict=True)))
        units = units_of(whole, ArmRows.of(np.arange(10), np.arange(10)))
        for name, clustered in (("delta", False), ("jackknife", True)):
            found = effect(*estimate(replace(units, clustered=clustered)).arms)
            covered[name] += bool(found.ci_low <= 0 <= found.ci_high)
    assert covered["jackknife"] >= stats.binom.ppf(0.005, runs, 0.95)
    assert covered["delta"] < 0.9 * runs


# -- power


def test_mde_of_a_sequential_test_is_wider_than_its_interval(rng):
    found = compare(arms(rng.normal(size=500), rng.normal(size=500)), sequential_n=2000)
    half = (found["ci_high"] - found["ci_low"]) / 2
    # Was 2.8 standard errors beside an interval of 3.2.
    assert found["mde"] == pytest.approx(half + stats.norm.ppf(0.8) * found["se"])


@pytest.mark.parametrize("effect", [3.0, 1.0, 0.3, 0.05])
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_planning_small_experiments_has_the_power_it_says(effect, share):
    # For 3 standard deviations the normal formula planned 2 against 2 users: a power of .19. With
    # fewer than 20 in an arm no verdict is given.
    power = pytest.importorskip("statsmodels.stats.power").TTestIndPower()
    past = pd.DataFrame({"m": np.linspace(1, 3, 50)})
    std = past["m"].std()
    plan = rd.experiments.plan_experiment(
        past, "m", rel_effect=effect * std / 2, control_share=share
    ).iloc[0]
    n_c, n_t = plan["n_control"], plan["n_treatment"]
    # statsmodels returns NaN for a power of 1.
    assert not power.power(effect, n_c, 0.05, ratio=n_t / n_c) < 0.8 - 1e-6
    assert min(n_c, n_t) >= 20
    if min(n_c, n_t) > 20:
        fewer = power.power(effect, n_c - 1, 0.05, ratio=(n_t - 1) / (n_c - 1))
        assert fewer < 0.8
    back = rd.experiments.plan_experiment(
        past, "m", n=int(n_c + n_t), control_share=n_c / (n_c + n_t)
    ).iloc[0]
    assert power.power(back["mde_abs"] / std, n_c, 0.05, ratio=n_t / n_c) == pytest.approx(
        0.8, abs=1e-5
    )


@pytest.mark.parametrize("strata", [None, "week"])
@pytest.mark.parametrize("huge", ["spend", "before", "visits"])
def test_a_regression_keeps_the_digits_of_huge_values(huge, strata):
    rng = np.random.default_rng(5)
    users = pd.DataFrame({"user_id": range(400), "variant": ["A", "B"] * 200})
    users["week"] = users["user_id"] // 2 % 2
    before, visits = rng.normal(0, 1, 400), rng.gamma(2, 1, 400)
    spend = before + visits + rng.normal(0, 1, 400)
    for name, values in {"spend": spend, "before": before, "visits": visits}.items():
        users[name] = np.rint(values * 2**12) / 2**12  # adding 1e12 loses no digit of it
    given = {"control": "A", "covariates": ["before", "visits"], "strata": strata, "details": True}
    expected = rd.compare_variants(users, "spend", **given)
    users[huge] += 1e12
    found = rd.compare_variants(users, "spend", **given)
    for name in ("diff", "se", "p_value", "variance_reduction", "balance_p"):
        assert found[name].item() == pytest.approx(expected[name].item(), rel=1e-9), name


def test_a_shift_is_seen_beside_a_tiny_covariate():
    rng, arm = np.random.default_rng(6), np.arange(1000) % 2
    noise = rng.normal(0, 3, 1000)
    users = pd.DataFrame({"user_id": range(1000), "variant": np.where(arm, "B", "A")})
    users["x"], users["y"], users["z"] = rng.normal(0, 1, (3, 1000))
    users["visits"], users["tiny"] = users["z"] + 1, noise * 1e-13
    users["before"] = noise + users["visits"] / 10 + 0.1 * arm
    past = {"x": "before", "y": "tiny", "z": "visits"}
    found = rd.compare_variants(users, ["x", "y", "z"], control="A", covariates=past, details=True)
    assert (found["balance_p"] < 1e-9).all()  # of the first covariate the shift alone is left
