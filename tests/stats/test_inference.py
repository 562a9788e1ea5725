"""The numeric core against SciPy, statsmodels, other programs' recorded numbers and hand
calculation."""

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import recdf as rd
from recdf.stats import (
    always_valid,
    arms,
    many_tests,
    resampling,
    shares,
    student,
)
from recdf.stats.numbers import Correction

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "inference.json").read_text(encoding="utf-8")
)["experiment"]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_effect_is_welch_of_scipy(rng, alternative):
    control, treatment = rng.gamma(2, size=31), rng.gamma(2, 1.4, size=17)
    found = arms.effect(
        arms.arm(control), arms.arm(treatment), alternative=alternative, confidence=0.9
    )
    want = stats.ttest_ind(treatment, control, equal_var=False, alternative=alternative)
    interval = want.confidence_interval(0.9)
    np.testing.assert_allclose(
        [found.statistic, found.df, found.p_value, found.ci_low, found.ci_high],
        [want.statistic, want.df, want.pvalue, interval.low, interval.high],
        rtol=1e-9,
    )


def test_p_value_far_in_the_tail_does_not_underflow_to_zero():
    found = float(student.t_p_value(30.0, 1e5, "two-sided"))
    assert found == pytest.approx(2 * stats.t.sf(30, 1e5), rel=1e-9)
    assert 0 < found < 1e-190


def test_relative_interval_by_hand():
    control, treatment = arms.Arm(2.0, 0.04, 9.0), arms.Arm(3.0, 0.09, 19.0)
    found = arms.effect(control, treatment, relative="log")
    v_c, v_t = 0.04 / 4, 0.09 / 9
    df = (v_c + v_t) ** 2 / (v_c**2 / 9 + v_t**2 / 19)
    half = stats.t.ppf(0.975, df) * math.sqrt(v_c + v_t)
    assert found.rel_diff == pytest.approx(0.5)
    assert found.rel_ci_low == pytest.approx(1.5 * math.exp(-half) - 1, rel=1e-9)
    assert found.rel_ci_high == pytest.approx(1.5 * math.exp(half) - 1, rel=1e-9)
    # A mean that is not positive has no relative interval, and a control that is not has no
    # relative effect.
    negative = arms.effect(arms.Arm(-2.0, 0.04, 9.0), treatment)
    assert np.isnan([negative.rel_diff, negative.rel_ci_low]).all()


def test_ratio_by_hand():
    num, den = np.array([1.0, 2.0, 6.0]), np.array([2.0, 2.0, 4.0])
    found = arms.arm(num, den)
    ratio = 9 / 8
    z = (num - ratio * den) / (8 / 3)
    assert found.mean == pytest.approx(ratio)
    assert found.var == pytest.approx((z**2).sum() / 2 / 3)


@pytest.mark.parametrize("constant", [0.1, 1e9 / 3, 0.0])
def test_rounding_is_no_variance(constant):
    values = np.full(1000, constant)
    assert arms.arm(values).var == 0
    assert arms.arm(values * 7, np.full(1000, 7.0)).var == 0
    found = arms.effect(arms.arm(values), arms.arm(values + 1))
    assert np.isnan([found.se, found.statistic, found.p_value, found.ci_low]).all()


def test_one_arm_without_variance_still_has_a_test(rng):
    treatment = rng.normal(size=12)
    found = arms.effect(arms.arm(np.zeros(9)), arms.arm(treatment))
    # Only the treatment varies, so this is its one-sample test.
    want = stats.ttest_1samp(treatment, 0)
    assert found.p_value == pytest.approx(want.pvalue, rel=1e-9)
    assert found.df == pytest.approx(11)


def adjusted(y, x, arm):
    """The row of a comparison of two arms that is adjusted by a covariate."""
    users = pd.DataFrame({"variant": np.where(arm, "B", "A"), "y": y, "x": x})
    return rd.compare_variants(users, "y", control="A", covariates="x", details=True).iloc[0]


def test_cuped_is_the_regression_estimate(rng):
    sm = pytest.importorskip("statsmodels.regression.linear_model")
    x = rng.normal(size=400)
    y = 2 * x + rng.normal(size=400)
    arm = np.arange(400) % 2
    found = adjusted(y, x, arm)
    # theta is the slope of y on x over both arms, and a covariate leaves 1 - r^2 of the variance
    # (about).
    theta = sm.OLS(y, np.column_stack([np.ones_like(x), x])).fit().params[1]
    assert found["theta"] == pytest.approx(theta, rel=1e-9)
    parts = [(y[arm == a], x[arm == a]) for a in (0, 1)]
    residuals = [own - own.mean() - theta * (one - one.mean()) for own, one in parts]
    assert found["se"] ** 2 == pytest.approx(sum((z**2).sum() / 199 / 200 for z in residuals))
    means = [own.mean() - theta * (one.mean() - x.mean()) for own, one in parts]
    assert found["mean_control_adjusted"] == pytest.approx(means[0])
    assert found["diff"] == pytest.approx(means[1] - means[0])


def test_covariate_without_variance_changes_nothing(rng):
    y, arm = rng.normal(size=50), np.arange(50) >= 20
    found = adjusted(y, np.full(50, 0.1), arm)
    assert found["theta"] == 0.0
    welch = stats.ttest_ind(y[arm], y[~arm], equal_var=False)
    assert found["statistic"] == pytest.approx(welch.statistic)


STATSMODELS = {
    "holm": "holm",
    "bh": "fdr_bh",
    "bonferroni": "bonferroni",
    "hochberg": "simes-hochberg",
    "sidak": "sidak",
    "holm_sidak": "holm-sidak",
    "by": "fdr_by",
}


def test_every_correction_has_an_oracle():
    assert {*get_args(Correction)} == {*STATSMODELS, "none"}


@pytest.mark.long
@pytest.mark.parametrize(("method", "name"), STATSMODELS.items())
def test_adjust_golden_and_statsmodels(rng, method, name):
    recorded = GOLDEN["multipletests"]
    if name in recorded:
        np.testing.assert_allclose(
            many_tests.adjust(np.array(recorded["p"]), method), recorded[name], atol=1e-9
        )
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    for n in (1, 2, 57):
        p = np.round(rng.uniform(size=n) ** 3, 2)  # with ties, zeros and ones
        np.testing.assert_allclose(
            many_tests.adjust(p, method), multitest.multipletests(p, method=name)[1], atol=1e-12
        )
    tiny = np.array([1e-300, 2e-200, 1e-20, 0.5])  # 1 − p is 1 in floats
    np.testing.assert_allclose(
        many_tests.adjust(tiny, "sidak"), [4e-300, 8e-200, 4e-20, 1 - 0.5**4], rtol=1e-12
    )


def test_adjust_does_not_count_nan():
    found = many_tests.adjust(np.array([0.01, np.nan, 0.02]), "bonferroni")
    np.testing.assert_allclose(found, [0.02, np.nan, 0.04])
    assert many_tests.adjust(np.array([]), "holm").shape == (0,)


def test_share_test_golden_and_scipy():
    users = list(GOLDEN["srm"]["counts"].values())
    chi2, p = shares.share_tests([users], [GOLDEN["srm"]["expected"]])
    assert (chi2, p) == (
        pytest.approx(GOLDEN["srm"]["chi2"], abs=1e-9),
        pytest.approx(GOLDEN["srm"]["p"], abs=1e-9),
    )
    assert p == pytest.approx(GOLDEN["gbstats_srm"], abs=1e-9)
    assert shares.share_tests([users], [[1, 1, 1]])[1] == pytest.approx(
        GOLDEN["srm"]["p_equal_split"], abs=1e-9
    )
    want = stats.chisquare([30, 50, 20], [40, 40, 20])
    assert shares.share_tests([[30, 50, 20]], [[4, 4, 2]]) == (
        pytest.approx(want.statistic),
        pytest.approx(want.pvalue),
    )


def test_share_test_needs_eight_expected():
    assert np.isnan(shares.share_tests([[7, 7]], [[1, 1]])).all()
    assert not np.isnan(shares.share_tests([[8, 8]], [[1, 1]])).any()
    assert np.isnan(shares.share_tests([[100]], [[1]])).all()


def test_independence_is_chi2_contingency():
    table = [[90, 80, 70], [10, 20, 30]]
    want = stats.chi2_contingency(table, correction=False)
    assert shares.independence_test(table) == (
        pytest.approx(want.statistic),
        pytest.approx(want.pvalue),
    )
    assert np.isnan(shares.independence_test([[5, 6], [0, 0]])).all()


@pytest.mark.parametrize(
    ("n", "planned", "confidence"), [(40, 500, 0.95), (500, 500, 0.95), (9000, 500, 0.9)]
)
def test_one_sided_always_valid_bound_is_where_the_mixture_reaches_one_over_alpha(
    n, planned, confidence
):
    """The mixture of likelihood ratios over effects above 0 (half-normal) seldom ever reaches 1/α
    under no effect."""
    alpha = 1 - confidence
    multiplier = always_valid.always_valid_multiplier(n, planned, confidence, "greater")
    rho = math.sqrt((-2 * math.log(2 * alpha) + math.log(1 - 2 * math.log(2 * alpha))) / planned)

    def mixture(statistic):
        s = statistic * math.sqrt(n)

        def part(theta):
            return 2 * stats.norm.pdf(theta, scale=rho) * math.exp(theta * s - theta**2 * n / 2)

        return integrate.quad(part, 0, np.inf, points=None, limit=200)[0]

    assert mixture(multiplier) >= 1 / alpha
    assert mixture(0.95 * multiplier) < 1 / alpha
    half = multiplier / math.sqrt(n)  # Waudby-Smith et al. 2023, one-sided
    a = n * rho**2 + 1
    wanted = math.sqrt(2 * a / (n * rho) ** 2 * math.log(1 + math.sqrt(a) / (2 * alpha)))
    assert half == pytest.approx(wanted, rel=1e-12)
    for side, sign in (("greater", 1), ("less", -1)):
        statistics = sign * np.array([multiplier, 0.0, -multiplier])
        p = always_valid.always_valid_p(statistics, n, planned, confidence, side)
        np.testing.assert_allclose(p, [alpha, 1, 1], rtol=1e-9)
    assert (
        always_valid.always_valid_p(np.array([60.0]), n, planned, confidence, "greater")[0] < 1e-3
    )
    assert multiplier > stats.norm.ppf(confidence)


def test_the_one_sided_bound_is_nearer_at_the_planned_users():
    two, one = (
        always_valid.always_valid_multiplier(500, 500, 0.95, side)
        for side in ("two-sided", "greater")
    )
    assert one < two


def test_always_valid_p_and_interval_agree():
    # p equals alpha exactly where the interval touches 0.
    se, n, planned = 0.3, 1234, 5000
    multiplier = always_valid.always_valid_multiplier(n, planned, 0.9)
    assert always_valid.always_valid_p(multiplier * se / se, n, planned, 0.9) == pytest.approx(0.1)
    # and the interval is always wider than the fixed one.
    assert (
        always_valid.always_valid_multiplier(np.arange(10, 10000, 7), planned)
        > stats.norm.ppf(0.975)
    ).all()


def test_detectable_is_the_normal_power_formula():
    assert student.detectable(0.05, 0.8) == pytest.approx(
        stats.norm.ppf(0.975) + stats.norm.ppf(0.8), rel=1e-12
    )
    assert student.detectable(0.05, 0.8, "less") == pytest.approx(
        stats.norm.ppf(0.95) + stats.norm.ppf(0.8), rel=1e-12
    )


def test_equivalence_is_tost(rng):
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    d = rng.normal(0.05, 1, size=80)
    want = weightstats.DescrStatsW(d).ttost_mean(-0.3, 0.3)[0]
    se = d.std(ddof=1) / math.sqrt(80)
    assert student.equivalence_p(d.mean(), se, 79, 0.3) == pytest.approx(want, rel=1e-9)


# -------------------------------------------------------------------------------------------
# resampling


def test_poisson_table_has_mean_and_variance_one():
    table = resampling._POISSON
    assert len(table) == 2**16
    assert (table.mean(), table.var()) == (pytest.approx(1, abs=1e-4), pytest.approx(1, abs=1e-3))
    share = np.bincount(table.astype(int)) / 2**16
    np.testing.assert_allclose(share, stats.poisson.pmf(np.arange(8), 1), atol=3e-5)


@pytest.mark.parametrize("sums", [resampling.poisson_sums, resampling.sign_sums])
def test_replicates_do_not_depend_on_company_or_number(rng, sums):
    # 2,500 units and 1,500 replicates: a part of a tile on both sides.
    x, y = rng.normal(size=(2, 2500))
    both = sums([x, y], 1500, 3)
    np.testing.assert_allclose(sums([y], 1500, 3)[:, 0], both[:, 1], rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(sums([x], 100, 3)[:, 0], both[:100, 0], rtol=1e-12, atol=1e-10)
    # Zeros at the end are more units that add nothing.
    longer = np.concatenate([x, np.zeros(777)])
    np.testing.assert_allclose(sums([longer], 1500, 3)[:, 0], both[:, 0], rtol=1e-12, atol=1e-10)
    assert not np.allclose(sums([x], 100, 4)[:, 0], both[:100, 0])


def test_moments_of_replicates(rng):
    x = rng.normal(1, 2, size=3000)
    signs = resampling.sign_sums([x], 4000, 0)[:, 0]
    poisson = resampling.poisson_sums([x], 4000, 0)[:, 0]
    spread = math.sqrt((x**2).sum())
    assert signs.std() == pytest.approx(spread, rel=0.05)
    assert poisson.std() == pytest.approx(spread, rel=0.05)
    assert abs(signs.mean()) < 4 * spread / math.sqrt(4000)
    assert abs(poisson.mean() - x.sum()) < 4 * spread / math.sqrt(4000)


def test_recorded_replicates():
    """Machines and NumPy versions agree: the first replicates of a fixed seed, by the plain
    definition."""
    x = np.arange(1.0, 6.0)
    raw = np.random.PCG64(np.random.SeedSequence([5, 0, 0])).random_raw(3 * 1024 // 4)
    numbers = [int(word) >> shift & 0xFFFF for word in raw for shift in (0, 16, 32, 48)]
    limits = np.cumsum([24110, 24109, 12054, 4018, 1005, 200, 35, 5])
    for b in range(3):
        counted = [int((number >= limits).sum()) for number in numbers[1024 * b : 1024 * b + 5]]
        assert resampling.poisson_sums([x], 3, 5)[b, 0] == pytest.approx(np.dot(counted, x))


def test_exact_sign_flip_is_the_enumeration():
    small = json.loads(
        (Path(__file__).parents[1] / "golden" / "inference.json").read_text("utf-8")
    )["paired_models"]["exact_small"]
    d = np.array(small["d"])
    assert resampling.exact_sign_flip_p(d, "two-sided") == pytest.approx(
        small["p_exact"], abs=1e-12
    )
    flips = [np.dot(signs, np.abs(d)) for signs in itertools.product([1, -1], repeat=len(d))]
    share = np.mean(np.array(flips) >= d.sum() - 1e-12)
    assert resampling.exact_sign_flip_p(d, "greater") == pytest.approx(share)


def test_replicates_without_a_unit_are_left_out():
    replicates = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan], [3.0, np.nan]])
    assert resampling.standard_error(replicates)[0] == pytest.approx(1.0)
    low, high = resampling.quantile_interval(replicates, alternative="two-sided", confidence=0.5)
    assert (low[0], high[0]) == (1.5, 2.5)
    assert np.isnan(low[1])


@pytest.mark.long
def test_import_loads_no_scipy_and_resampling_needs_none():
    code = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "scipy": raise ImportError(name)
sys.meta_path.insert(0, Block())
import pandas as pd, recdf as rd
m = [i % 7 / 7 for i in range(40)]
f = pd.DataFrame({"user_id": range(40), "variant": ["A", "B"] * 20, "m": m})
rd.join_experiment(f[["user_id", "m"]], f[["user_id", "variant"]])
found = rd.compare_variants(f, "m", control="A", test="bootstrap", n_resamples=50)
assert found.p_value.notna().all()
rd.experiments.bootstrap_ci(f, "m"); rd.experiments.roll_up(f[["user_id", "m"]])
values = f[["user_id", "m"]]
pair = {"a": values, "b": values.assign(m=lambda x: x.m.iloc[::-1].to_numpy())}
for test in ("randomization", "bootstrap"):
    assert rd.compare_models(pair, test=test, n_resamples=50).p_value.notna().all()
needs_scipy = (
    lambda: rd.compare_variants(f, "m", control="A"),
    lambda: rd.experiments.plan_experiment(f, "m", n=40),
)
for call in needs_scipy:
    try:
        call()
    except ImportError as error:
        assert "pip install 'recdf[stats]'" in str(error), error
    else:
        raise SystemExit("no error")
assert "scipy" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
