"""Findings about several recommenders: a row for each, that counts its lists and says its own
numbers."""

import json

import numpy as np
import pandas as pd
import pytest

import recdf as rd


@pytest.fixture(scope="module")
def shop():
    return rd.sample_shop(n_users=400, n_items=100)


@pytest.fixture(scope="module")
def found(shop):
    lost = shop.true["user_id"].unique()[:500]
    pred = shop.pred[~((shop.pred["model"] == "knn") & shop.pred["user_id"].isin(lost))]
    return pred, rd.check(shop.true, pred, by="model")


def of(table, finding):
    return table[table["finding"] == finding].set_index("by")


@pytest.mark.long
def test_lists_are_counted_by_model(shop, found):
    pred, table = found
    users = set(shop.true["user_id"])
    served = {model: set(rows["user_id"]) for model, rows in pred.groupby("model")}
    without = of(table, "lists without recommendations")
    assert without["count"].to_dict() == {
        m: len(users - own) for m, own in served.items() if users - own
    }
    assert without.loc["knn", "share"] == pytest.approx(len(users - served["knn"]) / len(users))
    truthless = of(table, "lists without truth")["count"].to_dict()
    assert truthless == {m: len(own - users) for m, own in served.items() if own - users}
    assert not table["finding"].str.contains("users").any()


@pytest.mark.long
def test_ties_have_the_range_of_each_model(shop):
    place = shop.pred.groupby(["model", "user_id"]).cumcount()
    pred = shop.pred.assign(score=np.where(shop.pred["model"] == "knn", 1.0, -place.astype(float)))
    ties = of(rd.check(shop.true, pred, by="model", k=5), "ties across rank 5")
    assert ties.index.tolist() == ["knn"]
    ranges = json.loads(ties.loc["knn", "ranges"])
    gain = pred.merge(
        shop.true.drop_duplicates(["user_id", "item_id"]).assign(hit=1),
        how="left",
        on=["user_id", "item_id"],
    )["hit"].fillna(0)
    for place, sign in enumerate((1, -1)):  # hits last, hits first
        ordered = pred.assign(score=pred["score"] - sign * 1e-3 * gain.to_numpy())
        value = (
            rd.evaluate(shop.true, ordered, "ndcg@5", by="model")
            .summary.set_index("model")
            .loc["knn", "value"]
        )
        assert ranges["ndcg@5"][place] == pytest.approx(value, rel=1e-9)
    low, high = ranges["ndcg@5"]
    assert f"ndcg@5 from {low:.4g} to {high:.4g}" in ties.loc["knn", "effect"]


def test_it_shows_whose_lists_a_finding_is_about(found):
    assert "knn: lists without recommendations" in str(found[1])
    assert "knn: lists without recommendations" in found[1]._repr_html_()


def test_without_by_no_model_is_named(shop):
    table = rd.check(shop.true, shop.pred[shop.pred["model"] == "knn"].drop(columns="model"))
    assert len(table)
    assert set(table["by"]) == {""}


def test_a_model_with_ids_of_its_own_is_named(shop):
    pred = shop.pred.copy()
    own = (pred["model"] == "random").to_numpy()
    pred["item_id"] = np.where(own, "x" + pred["item_id"], pred["item_id"])
    table = rd.check(shop.true, pred, by="model")
    row = table[table["finding"] == "no item in common"].iloc[0]
    assert [row["severity"], row["by"], row["count"]] == ["error", "random", int(own.sum())]


@pytest.mark.parametrize("name", [0, ("a", "b")])
def test_recommenders_may_stand_in_a_column_whose_name_is_no_text(name):
    true = pd.DataFrame({"user_id": [1, 1, 2], "item_id": [1, 2, 3]})
    pred = pd.concat([true.assign(score=1.0, m=model) for model in "ab"])
    odd = pred.rename(columns={"m": name})
    assert rd.check(true, odd, 2, by=[name]).equals(rd.check(true, pred, 2, by="m"))
    assert rd.audit(true, odd, k=2, by=[name]).equals(rd.audit(true, pred, k=2, by="m"))
