"""Two order statistics against the definition of their likelihood, counted value by value."""

import math

import numpy as np
import pytest

from recdf.stats.quantile_arms import design_effect, order_interval, quantile_arm, signed_root

C = 1.96


def cost(values, p, q, deff=1.0):
    """2 m KL(F ‖ p), with F the share around q that is nearest to p."""
    n = len(values)
    half = 0.5 if n / deff * min(p, 1 - p) >= 20 else 0.0
    up_to, below = (sum(values <= q) - half) / n, (sum(values < q) + half) / n
    if half == 0:
        up_to, below = sum(values <= q) / n, sum(values < q) / n
    share = up_to if up_to < p else below if below > p else p
    kl = share * math.log(share / p) if share > 0 else 0.0
    kl += (1 - share) * math.log((1 - share) / (1 - p)) if share < 1 else 0.0
    return 2 * n / deff * max(kl, 0.0)


def least(a, b, p, d):
    """T(D): the least cost of a value q of one arm and q + D of the other."""
    places = [*a, *(b - d), -np.inf, np.inf]
    return min(cost(a, p, q) + cost(b, p, q + d) for q in places)


DRAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.poisson(3, n) * 1.0,
    "gap": lambda rng, n: np.where(rng.random(n) < 0.5, 100.0, 0.0) + rng.normal(size=n),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("p", [0.3, 0.5, 0.9])
def test_the_test_and_the_ends_are_those_of_the_definition(name, p):
    rng = np.random.default_rng(3)
    a, b = DRAWS[name](rng, 60), DRAWS[name](rng, 45) + 1
    arms = quantile_arm(a, p), quantile_arm(b, p)
    assert signed_root(*arms) ** 2 == pytest.approx(least(a, b, p, 0.0), abs=0.02)
    low, high = order_interval(*arms, C)
    for end, out in ((low, -1), (high, 1)):
        if math.isfinite(end):
            assert least(a, b, p, end - out * 1e-9) <= C**2 + 1e-9
            assert least(a, b, p, end + out * 1e-9) > C**2


def test_the_interval_leaves_out_0_exactly_where_the_test_rejects():
    rng = np.random.default_rng(4)
    for i in range(300):
        draw = [*DRAWS.values()][i % 3]
        a, b = draw(rng, int(rng.integers(2, 200))), draw(rng, 120) + rng.choice([0, 1])
        unit = rng.integers(0, 30, len(b)) if i % 2 else None
        arms = quantile_arm(a, 0.7), quantile_arm(b, 0.7, unit)
        low, high = order_interval(*arms, C)
        assert (abs(signed_root(*arms)) > C) == (low > 0 or high < 0)


def test_an_order_statistic_that_does_not_exist_leaves_the_end_open():
    a = quantile_arm(np.arange(50.0), 0.99)
    assert order_interval(a, a, C) == (-math.inf, math.inf)
    low, high = order_interval(quantile_arm(np.arange(500.0), 0.99), a, C)
    assert (low > -math.inf, high) == (True, math.inf)


def test_the_design_effect_is_the_variance_by_clusters_over_that_by_rows():
    """Each of 4 clusters has one value twice: 2, 2, 0, 0 of 8 rows are at or below the quantile, so
    that the variance of the share is twice that of rows, times 4/3."""
    values, unit = np.array([1.0, 1, 2, 2, 3, 3, 4, 4]), np.repeat(np.arange(4), 2)
    assert design_effect(values, unit, 2.5) == (pytest.approx(2 * 4 / 3), 4)
    assert design_effect(values, 1000 * unit, 2.5) == (pytest.approx(2 * 4 / 3), 4)
    assert design_effect(values, np.arange(8) % 2, 2.5)[0] == 1.0
    assert design_effect(values, unit, 9.0) == (2.0, 4)  # nothing varies: units count


def test_steps_and_gaps_are_seen():
    rng = np.random.default_rng(5)
    prices = quantile_arm(rng.choice([4.99, 9.99, 49.99], 400, p=[0.2, 0.3, 0.5]), 0.5)
    assert prices.steps(C) == (True, None)
    slow = np.where(np.arange(2000) < 1900, 100.0, 900.0) + rng.normal(size=2000)
    few, (low, high) = quantile_arm(slow, 0.95).steps(C)
    assert not few
    assert 100 < low < 110
    assert 890 < high < 900
    assert quantile_arm(rng.normal(size=400), 0.5).steps(C) == (False, None)
