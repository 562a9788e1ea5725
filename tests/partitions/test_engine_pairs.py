"""Models of a result of Dask: compared in its buckets as the same rows in memory are."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.experiments.compare.paired import UnitSums
from recdf.stats.arms import arm, linearise, moments_of

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

from partitions.pair_cases import (  # noqa: E402
    BOARDS,
    PAIRS,
    assert_errors_of_boards,
    assert_errors_of_pairs,
    assert_same_board,
    assert_same_pairs,
)


def evaluated(true, pred, options):
    given = (dd.from_pandas(one.reset_index(drop=True), npartitions=2) for one in (true, pred))
    return rd.dask.evaluate(
        *given, ["ndcg", "recall", "mrr@1", "first_rank"], 5, partitions=3, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_models_are_compared_as_in_memory(name):
    with dask.config.set(scheduler="synchronous"):
        assert_same_pairs(evaluated, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOARDS)
def test_a_leaderboard_is_that_of_memory(name):
    with dask.config.set(scheduler="synchronous"):
        assert_same_board(evaluated, name)


@pytest.mark.slow
def test_errors_have_the_words_of_memory():
    with dask.config.set(scheduler="synchronous"):
        assert_errors_of_pairs(evaluated)
        assert_errors_of_boards(evaluated)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [2, 15, 40, 500])
def test_sums_of_parts_are_those_of_all_units(n, weighted):
    rng = np.random.default_rng(n)
    d, weights = rng.normal(3, 1, n) ** 3, rng.integers(1, 4, n).astype(float)
    sums, by = (d * weights, weights) if weighted else (d, None)
    ends = np.sort(rng.integers(0, n + 1, 3)).tolist()
    parts = [
        UnitSums.of(sums[a:b], None if by is None else by[a:b])
        for a, b in zip([0, *ends], [*ends, n], strict=True)
    ]
    found, expected = UnitSums.added(parts).units(), UnitSums.of(sums, by).units()
    wanted, values = arm(sums, by), linearise(sums, by)[1]
    assert np.allclose(expected.estimate, wanted, rtol=1e-9)
    assert expected.skewness == pytest.approx(moments_of(values).skewness, rel=1e-9)
    if not weighted:
        assert expected.spread == pytest.approx(d.std(ddof=1), rel=1e-9)
    if weighted:  # sums do not tell which units are the farthest
        expected = expected._replace(without_top=found.without_top)
    for one, other in zip(found, expected, strict=True):
        assert one == other or np.allclose(one, other, rtol=1e-9, equal_nan=True), (found, expected)


def test_the_mean_difference_of_a_table_worked_by_hand():
    # d = 1, 2, 6 of weights 1, 1, 2: 15/4; Σ (w d − w 15/4)² = 2.75² + 1.75² + 4.5²
    parts = [
        UnitSums.of(np.array([1.0]), np.ones(1)),
        UnitSums.of(np.array([2.0, 12.0]), np.array([1.0, 2.0])),
    ]
    found = UnitSums.added(parts).units()
    assert found.estimate.mean == 3.75
    assert found.estimate.var == pytest.approx((7.5625 + 3.0625 + 20.25) * 3 / 2 / 16, rel=1e-12)
    assert pd.Series([found.n, found.wins, found.losses]).tolist() == [3, 3, 0]
