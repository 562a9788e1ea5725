"""Simulated experiments without an effect: uniform p-values, and intervals that cover what they
say.

Every test runs the estimator itself on 2,000 simulated data sets at once (the core reduces the last
axis), with a fixed seed. 93.5 to 96.5 % is more than three standard errors of a coverage from 2,000
runs (0.5 %).
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from recdf.experiments.samples import units_of
from recdf.judge.effects.means import estimate
from recdf.judge.users import ArmRows
from recdf.stats import (
    always_valid,
    arms,
    many_tests,
    resampling,
    student,
)
from recdf.stats import shares as share_tests

pytestmark = pytest.mark.slow

RUNS = 2000
TRUTH = 1.0


@pytest.fixture
def rng(request):
    # A seed per test, so that adding one does not change the others.
    return np.random.default_rng(sum(map(ord, request.node.name)))


def users(rng, n):
    """Per-user values that look like a metric: many zeros, a skewed rest, mean 1; and a pre-period
    value."""
    active = rng.random((RUNS, n)) < 0.6
    taste = rng.gamma(2.0, 0.5, (RUNS, n))
    value = active * taste * rng.gamma(4.0, 0.25, (RUNS, n)) / 0.6
    return value, taste + rng.normal(0, 0.2, (RUNS, n))


# Below this a p of Kolmogorov and Smirnov is no chance: twenty tests of right p-values fail in 2 %
# of all seeds.
NOT_UNIFORM = 0.001


def check(found, truth=0.0):
    assert stats.kstest(np.ravel(found.p_value), "uniform").pvalue > NOT_UNIFORM
    coverage = np.mean((found.ci_low <= truth) & (truth <= found.ci_high))
    assert 0.935 <= coverage <= 0.965, coverage


def test_mean(rng):
    (c, _), (t, _) = users(rng, 300), users(rng, 200)
    found = arms.effect(arms.arm(c), arms.arm(t))
    check(found)
    relative = np.mean((found.rel_ci_low <= 0) & (found.rel_ci_high >= 0))
    assert 0.935 <= relative <= 0.965


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_one_sided_mean(rng, alternative):
    (c, _), (t, _) = users(rng, 300), users(rng, 300)
    check(arms.effect(arms.arm(c), arms.arm(t), alternative=alternative))


def ratio(rng, n):
    shown = rng.geometric(0.1, (RUNS, n)) + 4.0
    rate = rng.beta(2, 8, (RUNS, n))
    return rng.binomial(shown.astype(int), rate).astype(float), shown


def test_ratio(rng):
    check(arms.effect(arms.arm(*ratio(rng, 400)), arms.arm(*ratio(rng, 300))))


def cuped(control, treatment):
    """Both arms of every run, from samples of many runs."""
    return several(
        estimate(
            units_of(
                arms.Sample(*map(together, c[:2], t[:2]), (arms.Sample(*map(together, cx, tx)),)),
                ArmRows.of(np.arange(len(c[0])), np.arange(len(t[0]))),
            )
        ).arms
        for c, cx, t, tx in zip(*runs_of(control), *runs_of(treatment), strict=True)
    )


def together(control, treatment):
    return None if control is None else np.concatenate([control, treatment])


def runs_of(sample):
    """(num, den) of each run, and those of the covariate."""
    return [
        [(one.num[i], None if one.den is None else one.den[i]) for i in range(RUNS)]
        for one in (sample, sample.covariates[0])
    ]


def several(found):
    sides = zip(*found, strict=True)
    return [arms.Arm(*np.array(side, np.float64).T) for side in sides]


def test_cuped(rng):
    (c, cx), (t, tx) = users(rng, 300), users(rng, 200)
    control, treatment = cuped(
        *(arms.Sample(y, None, (arms.Sample(x),)) for y, x in ((c, cx), (t, tx)))
    )
    check(arms.effect(control, treatment))
    # The covariate is worth having, or the test would show little.
    assert np.mean(control.var / arms.arm(c).var) < 0.85


def test_ratio_cuped(rng):
    samples = []
    for n in (400, 300):
        num, den = ratio(rng, n)
        past = arms.Sample(num + rng.binomial(5, 0.5, num.shape), den + 5.0)
        samples.append(arms.Sample(num, den, (past,)))
    check(arms.effect(*cuped(*samples)))


def test_stratified(rng):
    # Strata with other means and spreads; which user is in which stratum is drawn once.
    strata = np.repeat(np.arange(4), [60, 120, 40, 180])
    level, spread = np.array([0.5, 1.0, 4.0, 0.0]), np.array([0.1, 1.0, 2.0, 0.5])
    both = ArmRows.of(strata, strata)
    values = level[strata] + spread[strata] * (rng.gamma(2, 0.5, (2, RUNS, len(strata))) - 1)
    units = [units_of(arms.Sample(together(*one)), both) for one in values.swapaxes(0, 1)]
    found = [estimate(replace(one, stratum=both.rows, n_strata=4)).arms for one in units]
    check(arms.effect(*several(found)))


def test_regression_on_covariates_with_gaps(rng):
    covered, runs = 0, 600
    for _ in range(runs):
        x = rng.normal(size=(150, 2))
        gaps = rng.random(150) < 0.2
        y = x[:, 0] + x[:, 1] ** 2 + rng.normal(size=150)
        filled = np.where(gaps, x[~gaps, 0].mean(), x[:, 0])
        past = tuple(map(arms.Sample, (filled, x[:, 1], gaps.astype(float))))
        both = ArmRows(None, (np.arange(150) >= 100).astype(np.int64))
        found = arms.effect(
            *estimate(units_of(arms.Sample(y, None, past), both, regressed=True)).arms
        )
        covered += bool(found.ci_low <= 0 <= found.ci_high)
    assert stats.binom.ppf(0.0005, runs, 0.95) <= covered <= stats.binom.ppf(0.9995, runs, 0.95)


def test_clustered(rng):
    sides, naive = [], []
    for n_clusters in (70, 60):
        size = rng.integers(1, 9, n_clusters)
        cluster = np.repeat(np.arange(n_clusters), size)
        values = rng.normal(TRUTH, 1, (RUNS, n_clusters))[:, cluster] + rng.normal(
            size=(RUNS, size.sum())
        )
        sums = np.add.reduceat(values, np.cumsum(size) - size, axis=1)
        sides.append(arms.arm(sums, np.broadcast_to(size.astype(float), sums.shape)))
        naive.append(arms.arm(values))
    check(arms.effect(*sides))
    # Taking rows for independent is what the cluster option is there against.
    assert np.mean(arms.effect(*naive).p_value < 0.05) > 0.2


def looks(rng, n, every):
    """Effect at every look at a growing experiment: differences and standard errors, (RUNS,
    looks)."""
    diff, variance = 0.0, 0.0
    sizes = np.arange(every, n + 1, every)
    for sign in (-1, 1):
        value, _ = users(rng, n)
        total, squares = (
            np.cumsum(value, axis=1)[:, sizes - 1],
            np.cumsum(value**2, axis=1)[:, sizes - 1],
        )
        diff = diff + sign * total / sizes
        variance = variance + (squares - total**2 / sizes) / (sizes - 1) / sizes
    return diff, np.sqrt(variance), 2 * sizes


def test_sequential_holds_under_fifty_looks(rng):
    diff, se, n = looks(rng, 2000, 40)
    assert diff.shape[1] == 50
    half = se * always_valid.always_valid_multiplier(n, 2000)
    p = always_valid.always_valid_p(diff / se, n, 2000)
    assert np.mean((np.abs(diff) <= half).all(axis=1)) >= 0.95
    assert np.mean((p <= 0.05).any(axis=1)) <= 0.05
    assert np.mean((p <= 0.2).any(axis=1)) <= 0.2
    # Looking as often at the fixed-size interval is wrong about three times in ten.
    assert np.mean((np.abs(diff) > 1.96 * se).any(axis=1)) > 0.2


@pytest.mark.parametrize(("alternative", "sign"), [("greater", 1), ("less", -1)])
def test_one_sided_sequential_holds_under_fifty_looks(rng, alternative, sign):
    diff, se, n = looks(rng, 2000, 40)
    half = se * always_valid.always_valid_multiplier(n, 2000, 0.95, alternative)
    p = always_valid.always_valid_p(diff / se, n, 2000, 0.95, alternative)
    assert np.mean((p <= 0.05).any(axis=1)) <= 0.05
    assert ((p <= 0.05) == (sign * diff >= half)).all()
    effect = sign * 0.05
    found = [
        np.mean(
            (always_valid.always_valid_p((diff + effect) / se, n, 2000, 0.95, side) <= 0.05).any(
                axis=1
            )
        )
        for side in ("two-sided", alternative)
    ]
    assert found[1] > found[0]  # the power that one side gives


def test_paired_t(rng):
    d = users(rng, 300)[0] - users(rng, 300)[0]
    check(arms.one_sample(arms.arm(d)))


def test_equivalence_at_the_margin(rng):
    # The true difference is the margin itself, where TOST must reject in 5 % of the runs.
    d = rng.normal(TRUTH, 3, (RUNS, 300))
    found = arms.arm(d)
    p = student.equivalence_p(found.mean, np.sqrt(found.var), found.df, TRUTH)
    assert 0.035 <= np.mean(p <= 0.05) <= 0.065


class Found:
    def __init__(self, p_value, ci):
        self.p_value, (self.ci_low, self.ci_high) = p_value, ci


def test_sign_flips(rng):
    d = (users(rng, 200)[0] - users(rng, 200)[0]).T
    n, mean = len(d), d.mean(axis=0)
    sums = resampling.sign_sums([*d.T, np.ones(n)], 1000, 0)
    flipped, ones = sums[:, :-1], sums[:, -1:]
    centred = (flipped - mean * ones) / n * np.sqrt(n / (n - 1))
    interval = resampling.sign_flip_interval(
        centred, mean, alternative="two-sided", confidence=0.95
    )
    check(Found(resampling.sign_flip_p(flipped, d.sum(axis=0), "two-sided"), interval))


def test_poisson_bootstrap_of_differences(rng):
    d = (users(rng, 300)[0] - users(rng, 300)[0]).T
    sums = resampling.poisson_sums([*d.T, np.ones(len(d))], 1000, 0)
    means = sums[:, :-1] / sums[:, -1:]
    interval = resampling.quantile_interval(means, alternative="two-sided", confidence=0.95)
    check(Found(resampling.bootstrap_effect(means, "two-sided", 0.95)["p_value"], interval))


def test_poisson_bootstrap_of_two_arms(rng):
    sides = []
    for side, n in enumerate((400, 400)):
        num, den = ratio(rng, n)
        sums = resampling.poisson_sums([np.ones(n), *num, *den], 1000, (0, side))
        sides.append(sums[:, 1 : RUNS + 1] / sums[:, RUNS + 1 :])
        # What makes the replicates compares each column with all before it: a few runs are enough.
        samples = [arms.Sample(a, b) for a, b in zip(num[:20], den[:20], strict=True)]
        found = resampling.replicate_estimates(samples, 1000, (0, side))
        np.testing.assert_array_equal(found, sides[side][:, :20])
    diff = sides[1] - sides[0]
    interval = resampling.quantile_interval(diff, alternative="two-sided", confidence=0.95)
    check(Found(resampling.bootstrap_effect(diff, "two-sided", 0.95)["p_value"], interval))


def test_sample_ratio(rng):
    shares = np.array([0.5, 0.3, 0.2])
    p = np.array(
        [share_tests.share_tests([row], [shares])[1] for row in rng.multinomial(5000, shares, RUNS)]
    )
    assert stats.kstest(p, "uniform").pvalue > NOT_UNIFORM


@pytest.mark.parametrize("method", ["holm", "bonferroni", "bh"])
def test_family_wise_error(rng, method):
    # No effect anywhere: holm, bonferroni and bh all keep the chance of any rejection at alpha.
    p = rng.random((RUNS, 10))
    rejected = np.mean([(many_tests.adjust(row, method) <= 0.05).any() for row in p])
    assert 0.035 <= rejected <= 0.065
