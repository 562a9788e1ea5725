"""The sample shop is deterministic, consistent, and holds the effects that its docstring
promises."""

import dataclasses
import functools

import numpy as np
import pandas as pd
import pytest

from recdf.datasets import Shop, sample_shop

FRAMES = [field.name for field in dataclasses.fields(Shop)]
COLUMNS = {
    "users": ["user_id", "segment", "channel", "personalised"],
    "items": ["item_id", "price", "category", "group", "is_new"],
    "log": ["user_id", "item_id", "timestamp", "value"],
    "true": ["user_id", "item_id", "timestamp", "value"],
    "pred": ["model", "user_id", "item_id", "score", "value"],
    "assignment": ["user_id", "variant", "pre_spend"],
    "shown": ["variant", "user_id", "item_id", "rank", "value"],
}
KEYS = {
    "users": ["user_id"],
    "items": ["item_id"],
    "log": ["user_id", "item_id"],
    "true": ["user_id", "item_id"],
    "pred": ["model", "user_id", "item_id"],
    "assignment": ["user_id"],
    "shown": ["user_id", "item_id"],
}


@functools.cache
def shop_of(seed):
    """The shop of a seed, to be read alone: several tests look at the same ones."""
    return sample_shop(seed)


@pytest.fixture(scope="module")
def shop():
    return shop_of(0)


def hits_at_10(lists, true, by):
    """Mean number of hits in the first 10 per user of `lists`, by the columns `by`."""
    top = lists[lists.groupby([*by, "user_id"]).cumcount() < 10]
    hits = top.merge(true[["user_id", "item_id"]], on=["user_id", "item_id"]).groupby(by).size()
    return hits / lists.groupby(by)["user_id"].nunique()


@pytest.mark.long
def test_same_seed_same_frames(shop):
    again = sample_shop()
    for name in FRAMES:
        pd.testing.assert_frame_equal(getattr(again, name), getattr(shop, name))


@pytest.mark.long
def test_other_seed_other_frames(shop):
    assert not shop_of(1).true.equals(shop.true)


@pytest.mark.long
@pytest.mark.parametrize("name", FRAMES)
def test_schema(shop, name):
    frame = getattr(shop, name)
    assert frame.columns.tolist() == COLUMNS[name]
    assert isinstance(frame.index, pd.RangeIndex)
    assert not frame.isna().to_numpy().any()
    assert not frame.duplicated(KEYS[name]).any()
    floats = {"price", "value", "score", "pre_spend"}.intersection(frame.columns)
    assert all(frame[column].dtype == np.float64 for column in floats)
    if "timestamp" in frame:
        assert frame["timestamp"].dtype == "datetime64[us]"


@pytest.mark.few(1)
@pytest.mark.parametrize("name", FRAMES)
def test_foreign_keys(shop, name):
    frame = getattr(shop, name)
    if "user_id" in frame:
        assert frame["user_id"].isin(shop.users["user_id"]).all()
    if "item_id" in frame:
        assert frame["item_id"].isin(shop.items["item_id"]).all()
    assert shop.assignment["user_id"].tolist() == shop.users["user_id"].tolist()


def test_money(shop):
    price = shop.items.set_index("item_id")["price"]
    assert (price > 0).all()
    assert (price == price.round(2)).all()
    for frame in (shop.log, shop.true, shop.pred, shop.shown):
        assert (frame["value"] == frame["item_id"].map(price)).all()
    spent = shop.log.groupby("user_id")["value"].sum()
    np.testing.assert_allclose(
        shop.assignment["pre_spend"], shop.assignment["user_id"].map(spent).fillna(0.0)
    )


def test_time(shop):
    assert shop.log["timestamp"].max() < shop.true["timestamp"].min()


def test_lists_are_ranked(shop):
    lists = shop.pred.groupby(["model", "user_id"])
    assert lists.size().max() == 20
    assert (lists["score"].diff().dropna() <= 0).all()
    rank = shop.shown.groupby("user_id").cumcount() + 1
    assert (shop.shown["rank"] == rank).all()
    assert (shop.shown.groupby("user_id")["variant"].nunique() == 1).all()
    served = shop.shown.merge(shop.assignment, on="user_id")
    assert (served["variant_x"] == served["variant_y"]).all()


def test_nothing_bought_before_is_recommended(shop):
    past = shop.log[["user_id", "item_id"]]
    for frame in (shop.pred, shop.shown, shop.true):
        assert frame.merge(past, on=["user_id", "item_id"]).empty


@pytest.mark.long
def test_holes(shop):
    users = set(shop.users["user_id"])
    opted_out = set(shop.users.loc[~shop.users["personalised"], "user_id"])
    assert opted_out
    assert users - set(shop.true["user_id"])
    assert users - set(shop.shown["user_id"]) == opted_out
    reached = {model: set(lists["user_id"]) for model, lists in shop.pred.groupby("model")}
    assert reached["popularity"] == reached["random"] == users - opted_out
    assert reached["knn"] == set(shop.log["user_id"]) - opted_out < reached["popularity"]
    unseen = ~shop.pred["item_id"].isin(shop.log["item_id"])
    assert set(shop.pred.loc[unseen, "model"]) == {"random"}
    launched = shop.items.loc[shop.items["is_new"], "item_id"]
    assert not shop.log["item_id"].isin(launched).any()
    assert shop.true["item_id"].isin(launched).any()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_quality_order_of_models(seed):
    shop = shop_of(seed)
    hits = hits_at_10(shop.pred, shop.true, ["model"])
    assert hits["knn"] > 1.2 * hits["popularity"]
    assert hits["popularity"] > 3 * hits["random"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_treatment_effect(seed):
    shop = sample_shop(seed, n_users=4000)
    hits = hits_at_10(shop.shown, shop.true, ["variant"])
    assert hits["B"] > 1.4 * hits["A"]
    # Spending rises too, by more than chance gives; what was spent before does not differ.
    spent = shop.true.groupby("user_id")["value"].sum()
    frame = shop.assignment.assign(spend=shop.assignment["user_id"].map(spent).fillna(0.0))
    by_variant = frame.groupby("variant")[["spend", "pre_spend"]]
    gap = by_variant.mean().diff().loc["B"]
    z = gap / np.sqrt((by_variant.var() / by_variant.count()).sum())
    assert z["spend"] > 2
    assert abs(z["pre_spend"]) < 3
    assert frame["spend"].corr(frame["pre_spend"]) > 0.3


def test_popularity_counts_buyers(shop):
    lists = shop.pred[shop.pred["model"] == "popularity"]
    assert (lists["score"] == lists["item_id"].map(shop.log["item_id"].value_counts())).all()


def test_knn_scores_are_those_of_the_definition():
    shop = sample_shop(n_users=40, n_items=30, n_recs=30)
    buyers = shop.log.groupby("item_id")["user_id"].agg(set).to_dict()
    basket = shop.log.groupby("user_id")["item_id"].agg(list).to_dict()
    lists = shop.pred[shop.pred["model"] == "knn"]
    assert len(lists)
    for row in lists.itertuples():
        a = buyers[row.item_id]
        expected = sum(
            len(a & buyers[i]) / np.sqrt(len(a) * len(buyers[i])) for i in basket[row.user_id]
        )
        assert row.score == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 30, 5), (30, 1, 5), (5, 4, 50)])
def test_tiny_shops(sizes):
    shop = sample_shop(0, *sizes)
    assert len(shop.users) == sizes[0]
    assert len(shop.items) == sizes[1]
    assert [getattr(shop, name).columns.tolist() for name in FRAMES] == [
        COLUMNS[name] for name in FRAMES
    ]


@pytest.mark.parametrize("name", ["n_users", "n_items", "n_recs"])
def test_sizes_below_one_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        sample_shop(**{name: 0})
