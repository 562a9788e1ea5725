"""`hit_table` with relevant items that were not shown, and with columns of pred."""

import pandas as pd
import pytest

import recdf as rd

hit_table = rd.diagnostics.hit_table


@pytest.fixture(scope="module")
def shop():
    return rd.sample_shop(n_users=400, n_items=100)


def test_missed_rows_by_hand():
    pred = pd.DataFrame(
        {
            "model": [*"xxxy"],
            "user_id": [1, 1, 2, 1],
            "item_id": ["a", "z", "q", "b"],
            "title": ["A", "Z", "Q", "B"],
        }
    )
    table = hit_table({1: ["a", "b"], 2: ["c"]}, pred, 1, by="model", carry="title", missed=True)
    rows = table[["model", "user_id", "item_id", "rank", "hit", "title"]].astype(object)
    rows = rows.where(rows.notna(), None).values.tolist()
    assert rows == [
        ["x", 1, "a", 1, True, "A"],
        ["x", 1, "b", None, False, None],
        ["x", 2, "q", 1, False, "Q"],
        ["x", 2, "c", None, False, None],
        ["y", 1, "b", 1, True, "B"],
        ["y", 1, "a", None, False, None],
        ["y", 2, "c", None, False, None],
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize("k", [1, 10])
def test_hits_and_missed_rows_are_all_relevant_rows(shop, k):
    table = hit_table(shop.true, shop.pred, k, by="model", missed=True)
    relevant = shop.true.drop_duplicates(["user_id", "item_id"])
    counts = table[table["gain"] > 0].groupby("model").size()
    assert (counts == len(relevant)).all()
    assert not table.duplicated(["model", "user_id", "item_id"]).any()
    plain = hit_table(shop.true, shop.pred, k, by="model")
    shown = table[table["rank"].notna()].reset_index(drop=True).astype({"rank": "int64"})
    pd.testing.assert_frame_equal(shown, plain)


def test_a_carried_column_needs_a_name_of_its_own(shop):
    with pytest.raises(rd.ColumnError, match="no column 'titel'"):
        hit_table(shop.true, shop.pred, by="model", carry="titel")
    with pytest.raises(rd.ColumnError, match="rename it"):
        hit_table(shop.true, shop.pred.assign(gain=1), by="model", carry="gain")
