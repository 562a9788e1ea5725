"""Responses by the columns of clicks and purchases, in frames and in files, and the ratios that
they make."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

TRUE = pd.DataFrame(
    {
        "user_id": [1, 1, 1, 2, 2],
        "item_id": ["a", "b", "c", "a", "b"],
        "relevance": [1.0, 3.0, 0.0, 0.0, 1.0],
        "clicks": [3.0, 0.0, 0.0, 0.0, 0.5],
        "purchases": [0.0, 1.0, 0.0, 0.0, 0.0],
    }
)
PRED = pd.DataFrame({"user_id": [1, 1, 1, 2, 2], "item_id": ["c", "b", "a", "b", "a"]})
METRICS = ["shown", "clicked", "bought", "ctr", "conversion", "conversion(per=clicked)"]
EXPECTED = {
    2: {
        "shown": [2, 2],
        "clicked": [0, 0.5],
        "bought": [1, 0],
        "ctr": [0, 0.25],
        "conversion": [0.5, 0],
    },
    3: {
        "shown": [3, 2],
        "clicked": [1, 0.5],
        "bought": [1, 0],
        "ctr": [1 / 3, 0.25],
        "conversion": [1 / 3, 0],
    },
}


@pytest.mark.parametrize("k", EXPECTED)
def test_by_hand(k):
    found = rd.evaluate(TRUE, PRED, METRICS, k=k).per_user
    for name, values in EXPECTED[k].items():
        assert found[f"{name}@{k}"].tolist() == pytest.approx(values), name
    assert found[f"conversion(per=clicked)@{k}"].tolist() == pytest.approx(
        [np.nan if k == 2 else 1, 0], nan_ok=True
    )


@pytest.mark.parametrize("buckets", [1, 3])
def test_files_give_the_same(tmp_path, buckets):
    TRUE.to_parquet(tmp_path / "true.parquet")
    PRED.to_parquet(tmp_path / "pred.parquet")
    found = rd.evaluate_parquet(
        tmp_path / "true.parquet", tmp_path / "pred.parquet", METRICS, k=3, buckets=buckets
    )
    pd.testing.assert_frame_equal(found.per_user, rd.evaluate(TRUE, PRED, METRICS, k=3).per_user)


def test_the_order_of_rows_of_true_does_not_matter():
    for order in ([4, 2, 0, 3, 1], [1, 0, 2, 4, 3]):
        found = rd.evaluate(TRUE.take(order), PRED, METRICS, k=3).per_user.sort_values("user_id")
        assert found["ctr@3"].tolist() == pytest.approx(EXPECTED[3]["ctr"])


def test_within_groups_of_items():
    items = pd.DataFrame({"item_id": ["a", "b", "c"], "group": ["x", "y", "y"]})
    summary = rd.evaluate(TRUE, PRED, ["clicked"], k=3, items=items, item_by="group").summary
    assert summary.set_index("group").loc[["x", "y"], "value"].tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    ("value", "words"), [(-1.0, "negative numbers"), (np.nan, "null or infinite")]
)
def test_numbers_that_are_no_counts(value, words):
    with pytest.raises(rd.DataError, match=words):
        rd.evaluate(TRUE.assign(clicks=value), PRED, "ctr@3")


def test_revenue_per_list_is_the_mean_of_revenue():
    true, pred = TRUE.assign(price=[0, 8.0, 0, 0, 0]), PRED.assign(price=[0, 8.0, 0, 0, 0])
    result = rd.evaluate(true, pred, "revenue_per_list@3", value_col="price")
    assert result.summary["value"].tolist() == [4.0]
