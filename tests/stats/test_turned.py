"""Three unseen units, and one more at either bound: by hand, and by samples that really have
them."""

import math

import numpy as np
import pytest
from scipy import stats

from recdf.stats.prediction_powered import PoweredMean
from recdf.stats.turned import (
    clopper_pearson,
    missing_by_chance,
    turned_by,
    turning_value,
    typical_units,
)


def test_three_units_may_be_missing():
    assert missing_by_chance(0.05) == pytest.approx(2.9957, abs=1e-4)


@pytest.mark.parametrize(
    ("mean", "n", "low", "high", "claim", "by"),
    [
        (0.02, 70, -1, 1, 0.0, 1.4),  # 1.4 losses of 1 take away the sum of 1.4
        (-0.02, 70, -1, 1, 0.0, 1.4),
        (0.5, 10, 0, 1, 0.25, 10.0),  # a surplus of 2.5, of which each at 0 takes 0.25
        (0.1, 60, -1, 1, 0.3, 60 * 0.2 / 0.7),  # below a claim, units at the upper bound
        (0.5, 10, 0, 1, 0.0, math.inf),  # nothing is below 0
    ],
)
def test_units_that_turn_a_mean(mean, n, low, high, claim, by):
    found = float(turned_by(mean, n, low, high, claim))
    assert found == pytest.approx(by)
    if math.isfinite(by):
        worst = low if mean > claim else high
        assert (n * mean + by * worst) / (n + by) == pytest.approx(claim)


def test_units_of_a_typical_weight():
    weights = np.array([1.0, 1, 1, 1, 4])
    kish = weights.sum() ** 2 / (weights**2).sum()
    assert typical_units(weights) == pytest.approx(math.sqrt(5 * kish))
    assert typical_units(np.ones(7)) == pytest.approx(7)
    assert typical_units(np.array([])) == 0.0


def test_the_value_that_turns_a_mean_without_bounds():
    more = missing_by_chance(0.05)
    value = turning_value(2.0, 60, 5.0, more)
    assert 60 * (2.0 - 5.0) + more * (value - 5.0) == pytest.approx(0)
    assert value == pytest.approx(5 + 60 * 3 / more)


def by_hand(values, bounds, confidence, more=()):
    """Student's interval joined with the one-sided ends of the samples with one more value; `more`
    is another sample whose mean is added."""
    tail, shift = (1 - confidence) / 2, np.mean(more) if len(more) else 0.0
    var = np.var(more, ddof=1) / len(more) if len(more) else 0.0
    found = []
    for sign, bound in zip((-1, 1), bounds, strict=True):
        of = []
        for sample, beyond in ((values, tail), (np.append(values, bound), 2 * tail)):
            se = math.sqrt(np.var(sample, ddof=1) / len(sample) + var)
            reach = stats.t.isf(beyond, len(sample) - 1) * se
            of.append(np.mean(sample) + shift + sign * reach)
        found.append(min(of) if sign < 0 else max(of))
    return found


@pytest.mark.parametrize("more", [(), (0.1, 0.4, 0.3, 0.35)])
@pytest.mark.parametrize("values", [(0.2, 0.9, 0.4, 0.7), (1.0, 1.0, 1.0, 1.0), (0.5, 0.5, 0.6)])
def test_ends_are_those_of_samples_with_one_more(values, more):
    values, n = np.array(values), len(values)
    added = np.mean(more) if more else 0.0
    var = np.var(more, ddof=1) / len(more) if more else 0.0
    of_both = values.mean() + added, values.var(ddof=1) / n + var
    found = PoweredMean(*of_both, n - 1, 0.0, added, var).ends(n, (0.0, 1.0))
    for confidence in (0.9, 0.95):
        expected = by_hand(values, (0, 1), confidence, more)
        np.testing.assert_allclose(found.interval(confidence), expected, rtol=1e-10)
    low, high = found.interval(0.95, "greater")
    assert high == math.inf
    assert low == pytest.approx(by_hand(values, (0, 1), 0.9, more)[0])


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_p_and_interval_are_one(alternative):
    found = PoweredMean(0.12, 0.05**2, 40, 0.0, 0.0, 0.0).ends(41, (-1.0, 1.0))
    for claim in (-0.05, 0.0, 0.05, 0.2, 0.3):
        p = found.p_value(alternative, claim)
        for level, outside in ((p * 1.001, True), (p * 0.999, False)):
            if level < 0.5:
                low, high = found.interval(1 - level, alternative)
                assert (claim < low or claim > high) == outside


def test_exact_interval_of_a_share():
    for yes in (0, 1, 7, 20):
        exact = stats.binomtest(yes, 20).proportion_ci(method="exact")
        np.testing.assert_allclose(clopper_pearson(yes, 20, 0.95), exact, rtol=1e-9)


def test_one_of_several_tests_lacks_more_units():
    """ln(m/.05) where a correction multiplies p by m; p of 0, and no test, are as one test."""
    p_adj = np.array([0.04, 0.02, 0.0, np.nan, 0.5])
    found = missing_by_chance(0.05, np.array([0.01, 0.02, 0.0, np.nan, 1.0]), p_adj)
    np.testing.assert_allclose(found, np.log(np.array([4.0, 1, 1, 1, 1]) / 0.05))
