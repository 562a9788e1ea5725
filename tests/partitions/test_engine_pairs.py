"""Models of a result of Dask: compared in its buckets as the same rows in memory are."""

import numpy as np
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
    results_of,
)


def evaluated(true, pred, options):
    given = (dd.from_pandas(one.reset_index(drop=True), npartitions=2) for one in (true, pred))
    return rd.dask.evaluate(
        *given, ["ndcg", "recall", "mrr@1", "first_rank"], 5, partitions=3, **options
    )


@pytest.fixture(scope="module")
def result_under():
    return results_of(evaluated)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_models_are_compared_as_in_memory(result_under, name):
    with dask.config.set(scheduler="synchronous"):
        assert_same_pairs(result_under, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOARDS)
def test_a_leaderboard_is_that_of_memory(result_under, name):
    with dask.config.set(scheduler="synchronous"):
        assert_same_board(result_under, name)


@pytest.mark.slow
def test_errors_have_the_words_of_memory(result_under):
    with dask.config.set(scheduler="synchronous"):
        assert_errors_of_pairs(result_under)
        assert_errors_of_boards(result_under)


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
    (found, estimate), (expected, own) = (
        UnitSums.added(parts).tested(),
        UnitSums.of(sums, by).tested(),
    )
    wanted, values = arm(sums, by), linearise(sums, by)[1]
    assert np.allclose(own, wanted, rtol=1e-9)
    assert np.allclose(estimate, wanted, rtol=1e-9)
    skewed_by = abs(moments_of(values).skewness) / np.sqrt(n) / 0.14
    assert expected["skewed_by"] == pytest.approx(skewed_by, rel=1e-9)
    if not weighted:
        assert expected["d_z"] == pytest.approx(d.mean() / d.std(ddof=1), rel=1e-9)
    if weighted:  # sums do not tell which units are the farthest
        expected["diff_without_top"] = found["diff_without_top"]
    assert found == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_the_mean_difference_of_a_table_worked_by_hand():
    # d = 1, 2, 6 of weights 1, 1, 2: 15/4; Σ (w d − w 15/4)² = 2.75² + 1.75² + 4.5²
    parts = [
        UnitSums.of(np.array([1.0]), np.ones(1)),
        UnitSums.of(np.array([2.0, 12.0]), np.array([1.0, 2.0])),
    ]
    found, estimate = UnitSums.added(parts).tested()
    assert estimate.mean == 3.75
    assert estimate.var == pytest.approx((7.5625 + 3.0625 + 20.25) * 3 / 2 / 16, rel=1e-12)
    assert [found[name] for name in ("n_users", "wins", "losses")] == [3, 3, 0]
