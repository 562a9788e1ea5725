"""Sums of products in cells: exact, the same in any order and cut, and what a slow sum gives."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recdf as rd
from recdf.judge.aggregates import Aggregates, Grid


def columns(rng, n):
    return [rng.exponential(1, n) + 5, rng.poisson(3, n) * 1.0, 1e12 + rng.normal(size=n)]


def slow(some):
    """n, means and Σ(x − mean)(y − mean), by fractions."""
    exact = [[Fraction(float(x)) for x in one] for one in some]
    means = [sum(one) / len(one) for one in exact]
    apart = [[x - m for x in one] for one, m in zip(exact, means, strict=True)]
    central = [[float(sum(x * y for x, y in zip(a, b, strict=True))) for b in apart] for a in apart]
    return [float(one) for one in means], central


@pytest.mark.parametrize("n_cells", [2, 30])
def test_they_are_those_of_a_slow_sum(n_cells):
    rng = np.random.default_rng(0)
    x, cell = columns(rng, 600), rng.integers(0, n_cells, 600)
    found = Aggregates.of(x, cell, n_cells)
    for c in range(0, n_cells, 7):
        means, central = slow([one[cell == c] for one in x])
        np.testing.assert_allclose(found.mean[c], means, rtol=1e-15)
        np.testing.assert_allclose(found.central[c], central, rtol=1e-12, atol=1e-12)
        assert found.n[c] == (cell == c).sum()


@pytest.mark.few(2)
@pytest.mark.parametrize("n", [3000, 300_000])
@pytest.mark.parametrize("n_cells", [2, 30])
def test_any_order_and_any_parts_give_the_same_bytes(n, n_cells):
    rng = np.random.default_rng(1)
    x, cell, order = columns(rng, n), rng.integers(0, n_cells, n), rng.permutation(n)
    whole = Aggregates.of(x, cell, n_cells)
    grid = Grid.of(whole.low, whole.high, n)
    parts = [
        Aggregates.of([one[rows] for one in x], cell[rows], n_cells, grid=grid)
        for rows in np.array_split(order, [10, n // 3])
    ]
    for other in (
        Aggregates.of([one[order] for one in x], cell[order], n_cells),
        replace(whole, sums=sum(one.sums for one in parts)),
    ):
        for name in ("n", "mean", "central"):
            assert getattr(other, name).tobytes() == getattr(whole, name).tobytes()


def test_cells_and_columns_are_those_of_their_rows():
    rng = np.random.default_rng(2)
    x, cell = columns(rng, 500), rng.integers(0, 4, 500)
    found = Aggregates.of(x, cell, 4)
    pooled = found.cells([[0, 2], [1, 3]]).columns([2, 0])
    again = Aggregates.of([x[2], x[0]], cell % 2, 2)
    np.testing.assert_array_equal(pooled.central, again.central)
    np.testing.assert_array_equal(pooled.mean, again.mean)


def test_squares_of_a_difference_keep_their_digits():
    rng = np.random.default_rng(3)
    x = rng.normal(1e6, 1, 400)
    y = x + rng.normal(0, 1e-6, 400)
    form = np.tile([1.0, -1.0], (2, 1))
    found = Aggregates.of([y, x], np.arange(400) % 2, 2).squares(form)
    z = (y - x)[::2]
    assert found[0] == pytest.approx(((z - z.mean()) ** 2).sum(), rel=1e-6)


@pytest.mark.parametrize("level", [1e6, 1e12])
def test_huge_values_with_a_small_spread_are_no_constant(level):
    rng = np.random.default_rng(4)
    data = pd.DataFrame({"variant": ["A", "B"] * 500})
    spread = rng.normal(0, 0.73, 1000) + 0.2 * (data["variant"] == "B")
    data["revenue"] = level + spread
    row = rd.compare_variants(data, "revenue", control="A", correction="none", details=True).iloc[0]
    above = data["revenue"] - level  # exact
    expected = stats.ttest_ind(
        above[data["variant"] == "B"], above[data["variant"] == "A"], equal_var=False
    )
    assert row["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)
    assert row["diff"] == pytest.approx(
        above[data["variant"] == "B"].mean() - above[data["variant"] == "A"].mean(), rel=1e-9
    )
    assert row["reject"]
