"""The bounds of a gate, against other libraries, hand cases and simulation."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from recdf.stats.always_valid import STAKES, Change, last_shown, log_capital

RNG = np.random.default_rng(0)


def change(
    d,
    allowed,
    *,
    scale=None,
    values=(0.0, 1.0),
    smaller=False,
    weight=None,
    looks=False,
    alpha=0.05,
):
    """A change of d per user, absolute unless there is a scale."""
    d = np.asarray(d, float)
    weight = np.ones(len(d)) if weight is None else weight
    relative = scale is not None
    reach = values[1] - values[0] if values else np.ptp(d)
    return Change(
        d,
        scale if relative else weight,
        weight,
        reach,
        values,
        smaller,
        relative,
        allowed,
        alpha,
        looks,
    )


def pair(n, seed=0):
    rng = np.random.default_rng(seed)
    base = rng.beta(2, 3, n)
    return np.clip(base + rng.normal(0.01, 0.1, n), 0, 1), base


def even(n):
    """Differences without skewness."""
    half = np.random.default_rng(4).normal(0, 0.2, n // 2)
    return 0.01 + np.concatenate([half, -half])


def test_t_is_that_of_scipy():
    d = even(400)
    found = change(d, -0.02)
    assert found.bound == "t"
    shifted = scipy_stats.ttest_1samp(d, -0.02, alternative="greater")
    assert found.p_value(-0.02, better=True) == pytest.approx(shifted.pvalue, rel=1e-9)
    assert found.ends() == pytest.approx(
        tuple(scipy_stats.ttest_1samp(d, 0).confidence_interval(0.9)), rel=1e-9
    )


def test_both_claims_are_the_two_tests_of_tost():
    from statsmodels.stats.weightstats import DescrStatsW

    found = change(even(400), -0.02)
    _, lower, upper = DescrStatsW(even(400)).ttost_mean(-0.02, 0.03)
    assert found.p_value(-0.02, better=True) == pytest.approx(lower[1], rel=1e-9)
    assert found.p_value(0.03, better=False) == pytest.approx(upper[1], rel=1e-9)


def test_skewness_takes_from_the_claim_that_it_favours_and_from_no_other():
    """Rare losses: T' = T + γ/(6√n)·(1 + 2T²) for "better", T for "worse"."""
    d = np.where(np.arange(3000) < 60, -1.0, 0.0) + RNG.normal(0, 0.05, 3000)
    found = change(d, -0.03)
    t = scipy_stats.ttest_1samp(d, -0.03, alternative="greater")
    gamma = scipy_stats.skew(d)
    assert gamma < 0
    corrected = t.statistic + gamma / (6 * np.sqrt(3000)) * (1 + 2 * t.statistic**2)
    assert found.p_value(-0.03, better=True) == pytest.approx(
        scipy_stats.t.sf(corrected, 2999), rel=1e-9
    )
    assert found.p_value(-0.03, better=False) == pytest.approx(1 - t.pvalue, rel=1e-9)
    assert found.p_value(-9.0, better=True) < 1e-6
    low, high = found.ends()
    assert found.p_value(low, better=True) == pytest.approx(0.05, rel=1e-6)
    assert high == pytest.approx(
        scipy_stats.ttest_1samp(d, 0).confidence_interval(0.9)[1], rel=1e-9
    )


def test_a_relative_bound_is_where_the_test_of_its_own_margin_turns():
    own, base = pair(400)
    found = change(own - base, -0.05, scale=base)
    low, high = found.ends()
    assert low < own.mean() / base.mean() - 1 < high
    for end, better in ((low, True), (high, False)):
        assert found.p_value(end, better=better) == pytest.approx(0.05, rel=1e-6)
        side = "greater" if better else "less"
        p = scipy_stats.ttest_1samp(own - (1 + end) * base, 0, alternative=side).pvalue
        assert p == pytest.approx(0.05, abs=0.003)  # the skewness is small


def capital(d, allowed, alpha=0.05):
    """ln K of the betting test, one value after another, as Waudby-Smith and Ramdas write it."""
    x = (d - (-1 - 0)) / 2
    m = (allowed + 1) / 2
    total, seen = 0.0, []
    for i in range(len(x)):
        means = [(0.5 + sum(seen[: j + 1])) / (j + 2) for j in range(i)]
        var = (0.25 + sum((seen[j] - means[j]) ** 2 for j in range(i))) / (i + 1)
        bet = min(np.sqrt(2 * np.log(1 / alpha) / (var * len(x))), 0.75 / m)
        total += np.log(1 + bet * (x[i] - m))
        seen.append(x[i])
    return total


def test_betting_is_the_product_of_its_bets():
    d = np.where(np.arange(60) % 20 == 3, -1.0, 0.0)
    found = change(d, -0.3)
    assert found.bound == "betting"
    shuffled = d[np.random.default_rng(0).permutation(60)]
    assert found.p_value(-0.3, better=True) == pytest.approx(
        min(1, np.exp(-capital(shuffled, -0.3))), rel=1e-9
    )


def test_at_its_bound_the_gambler_has_won_twenty_times_the_stake():
    d = np.where(RNG.random(300) < 0.05, -1.0, 0.0)
    for scale in (None, np.full(300, 0.5)):
        found = change(d, -0.2, scale=scale)
        low, high = found.ends()
        assert low < found.point < high
        assert found.p_value(low, better=True) == pytest.approx(0.05, rel=1e-3)
        assert found.p_value(high, better=False) == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize("n", [100, 1000, 10_000])
def test_identical_lists_pass_where_the_bets_do(n):
    low, high = change(np.zeros(n), -0.5).ends()
    assert low == pytest.approx(-4.1 / n, rel=0.05)
    assert high == -low


def test_one_user_shows_nothing():
    found = change([0.5], -0.1)
    assert found.bound == "betting"
    assert found.p_value(-0.1, better=True) > 0.05
    assert change([], -0.1).p_value(-0.1, better=True) != change([], -0.1).p_value(
        -0.1, better=True
    )  # NaN


def test_a_constant_loss_is_not_certain():
    """All users lose the same: t would have no error. The bets know that other users may lose
    more."""
    found = change(np.full(60, -0.01), -0.02)
    assert found.bound == "betting"
    assert found.p_value(-0.02, better=True) > 0.05


def test_skewed_without_bounds_has_no_bound():
    d = np.where(np.arange(3000) < 3, -100.0, 0.0)
    assert change(d, -3, values=None).bound == ""
    assert np.isnan(change(d, -3, values=None).ends()).all()


@pytest.mark.parametrize("n", [3, 4])
def test_t_needs_more_than_one_more_unit_could_change(n):
    """n users lose all: the summed squares are n − n²/4000, to be at least (1/.5)² = 4 without the
    tenth of a loss."""
    d = np.where(np.arange(4000) < n, -1.0, 0.0) + np.where(np.arange(4000) % 2, 0.01, -0.01)
    assert change(d, -0.1).bound == ("t" if n == 4 else "betting")
    assert change(d, -0.1, values=None).bound == ("t" if n == 4 else "")


def test_looks_do_not_depend_on_the_order():
    d = RNG.choice([-1.0, 0.0, 0.5], 200)
    assert change(d, -0.3, looks=True).ends() == pytest.approx(
        change(d[::-1], -0.3, looks=True).ends(), rel=1e-9
    )
    by_hand = np.log(np.mean([np.prod(1 + f * (np.array([0.2, -0.1]) / 0.4)) for f in STAKES]))
    assert log_capital(np.array([0.2, -0.1]), 0.4, None) == pytest.approx(by_hand, rel=1e-12)


def test_smaller_is_better_turns_the_sides():
    """candidate − baseline = −gain: bounds of the gain are those of the other metric with its sign
    turned."""
    own, base = pair(40)
    small = change(base - own, -0.1, smaller=True)
    large = change(own - base, -0.1)
    assert small.bound == large.bound == "betting"
    assert small.ends() == pytest.approx(tuple(-end for end in large.ends()[::-1]), rel=1e-6)


def test_weights_of_two_are_two_lists_of_a_unit():
    """A unit with two equal lists counts like one list in the t test of units."""
    own, base = pair(200)
    d = own - base
    assert change(2 * d, -0.02, weight=np.full(200, 2.0)).ends() == pytest.approx(
        change(d, -0.02).ends(), rel=1e-9
    )


def test_needed_users_pass_in_most_runs():
    own, base = pair(600, seed=3)
    found = change(own - base, -0.002)
    needed = int(found.needed())
    rng = np.random.default_rng(1)
    passed = 0
    for _ in range(200):
        d = rng.choice(own - base, needed)
        passed += change(d, -0.002).p_value(-0.002, better=True) <= 0.05
    assert found.bound == "t"
    assert 0.7 < passed / 200 < 0.9


# -- simulation, few runs


def rare_losses(rng, n):
    return np.where(
        rng.random(n) < 0.03, -1.0, np.where(rng.random(n) < 0.005, 1.0, 0.0)
    ), -0.03 + 0.97 * 0.005


def reciprocal_ranks(rng, n):
    ranks = np.array([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 0])
    i = rng.integers(0, 6, n)
    return ranks[np.where(rng.random(n) < 0.5, i, rng.integers(0, 6, n))] - ranks[i], 0.0


def collapse(rng, n):
    """All lists differ a little, and 2 % lose all they had: many samples hold none of these."""
    base = 0.05 + 0.9 * rng.beta(2, 3, n)
    d = np.where(rng.random(n) < 0.02, -base, rng.uniform(-0.02, 0.02, n))
    return d, -0.02 * (0.05 + 0.9 * 0.4)


@pytest.mark.few(1)
@pytest.mark.parametrize("n", [30, 100, 1000])
@pytest.mark.parametrize("draw", [rare_losses, reciprocal_ranks, collapse])
def test_wrong_passes_at_the_boundary(draw, n):
    """400 runs: 5 % pass at most, within chance. t passes up to 40 % of the rare losses
    (benchmarks/gates.py)."""
    rng = np.random.default_rng(n)
    wrong = 0
    for _ in range(400):
        d, mean = draw(rng, n)
        wrong += change(d, mean).p_value(mean, better=True) <= 0.05
    assert wrong <= 31  # P(Binomial(400, .05) > 31) = .006


@pytest.mark.long
def test_looks_after_each_user_miss_rarely():
    """300 users, a look after each tenth: a fixed interval misses in 15 % and more of the runs."""
    rng, missed, fixed = np.random.default_rng(5), 0, 0
    for _ in range(60):
        d, mean = reciprocal_ranks(rng, 300)
        looks = range(20, 301, 10)
        missed += any(
            change(d[:n], mean, looks=True).p_value(mean, better=True) <= 0.05 for n in looks
        )
        fixed += any(
            scipy_stats.ttest_1samp(d[:n], mean, alternative="greater").pvalue <= 0.05
            for n in looks
        )
    assert missed <= 7  # P(Binomial(60, .05) > 7) = .01
    assert fixed > missed


def test_an_end_that_does_not_exist_is_not_looked_for_until_numbers_overflow():
    asked = []
    assert last_shown(lambda u: bool(asked.append(u)), 0.5, 0.1, -math.inf) == -math.inf
    assert min(asked) > -1e18
