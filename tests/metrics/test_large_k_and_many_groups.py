"""Cut-offs and `by` values without bound: memory does not grow with k, and each `by` value costs
the same."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import recdf as rd

PRED = {"u": ["a", "x", "b"]}


@pytest.mark.few(8)
@pytest.mark.parametrize("k", [3, 2**16, 2**16 + 1, 2**16 + 2, 2**16 + 3, 10**6])
@pytest.mark.parametrize(
    ("discount", "weights"),
    [
        ("log", lambda i: 1 / np.log2(i + 1)),
        ("jk", lambda i: 1 / np.maximum(1, np.log2(i))),
        ("jk,log_base=70000.5", lambda i: 1 / np.maximum(1, np.log(i) / np.log(70000.5))),
        ("none", lambda i: np.ones(len(i))),
    ],
)
def test_ideal_k_sums_the_discounts_of_k_ranks(k, discount, weights):
    every = weights(np.arange(1, k + 1, dtype=float))
    expected = (every[0] + every[2]) / every.sum()
    found = (
        rd.evaluate({"u": ["a", "b"]}, PRED, f"ndcg(ideal=k,discount={discount})", k)
        .summary["value"]
        .iloc[0]
    )
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_billion_ranks_are_not_added_one_by_one():
    # The number is math.fsum of np.sum(1 / np.log2(ranks + 1)) over 2**20 ranks at a time.
    ideal, true = 35246003.7256477, {"u": ["a", "b"]}
    assert rd.ndcg(true, PRED, k=10**9, ideal="k") == pytest.approx(1.5 / ideal, rel=1e-12)
    assert rd.ndcg(true, PRED, k=2**31 - 1, ideal="k", discount="none") == pytest.approx(
        2 / (2**31 - 1), rel=1e-12
    )


def test_ideal_k_takes_no_memory_for_ranks_that_nobody_has():
    tracemalloc.start()
    try:
        rd.ndcg(
            {"u": ["a"]}, PRED, k=2 * 10**7, like="rectools"
        )  # whose ranks alone would take 160 MB
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20


@pytest.mark.long
def test_exposure_and_pooled_metrics_of_many_by_values_in_any_order():
    """Every `by` value alone gives what it gives among the others."""
    rng = np.random.default_rng(3)
    pred = pd.DataFrame(
        {
            "model": rng.permutation(np.repeat(np.arange(30), 20)),
            "user_id": rng.integers(0, 5, 600),
            "item_id": rng.integers(0, 12, 600),
            "score": rng.random(600),
        }
    ).drop_duplicates(["model", "user_id", "item_id"])
    true = pd.DataFrame(
        {"user_id": np.repeat(np.arange(5), 3), "item_id": np.tile([1, 4, 7], 5), "relevance": 2.0}
    )
    items = pd.DataFrame({"item_id": np.arange(12), "category": list("abc") * 4})
    given = {"items": items, "log": pd.DataFrame({"user_id": [1, 2], "item_id": [1, 2]})}
    metrics = ["coverage", "gini", "pop_reo(group_col=category)", "pooled_mae"]
    together = rd.evaluate(true, pred, metrics, k=3, by="model", **given).summary
    for model in pred["model"].unique():
        alone = rd.evaluate(true, pred[pred["model"] == model], metrics, k=3, **given).summary
        mine = together[together["model"] == model].drop(columns="model").reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, alone)
