"""Pictures of users: the shares of `users` and the counts of `winners`."""

import math

import pandas as pd
import pytest
from matplotlib.text import Text

import recdf as rd


def test_users_is_the_share_at_or_below_each_value(result):
    data = rd.plot.users.data(result, "ndcg@10")
    for model, rows in data.groupby("model"):
        values = result.per_user.loc[result.per_user["model"] == model, "ndcg@10"].dropna().tolist()
        reach = math.sqrt(math.log(2 / 0.05) / (2 * len(values)))
        for row in rows.itertuples():
            assert row.share == sum(value <= row.value for value in values) / len(values)
            assert row.ci_low == pytest.approx(max(row.share - reach, 0))
            assert row.ci_high == pytest.approx(min(row.share + reach, 1))
            assert row.n == len(values)
        assert rows["share"].iloc[-1] == 1


@pytest.mark.parametrize("metric", ["ndcg@10", "recall@5"])
def test_winners_counts_what_compare_models_counts(result, metric):
    data = rd.plot.winners.data(result, metric, model="knn", baseline="popularity")
    counted = data.groupby("side")["n"].sum()
    row = result.compare_models(metric, baseline="popularity").set_index("model").loc["knn"]
    assert (counted["gains"], counted["ties"], counted["loses"]) == (
        row["wins"],
        row["ties"],
        row["losses"],
    )
    wide = result.per_user.pivot(index="user_id", columns="model", values=metric)
    difference = (wide["knn"] - wide["popularity"]).tolist()
    for bar in data[data["side"] == "gains"].itertuples():
        last = bar.high == data["high"].max()
        assert bar.n == sum(
            bar.low <= d < bar.high or (last and d == bar.high) for d in difference if d > 1e-12
        )
    assert data["low"].is_monotonic_increasing


def test_winners_of_users_with_several_lists_are_counted_as_lists():
    """Two lists of one user gain and the third stays; a comparison counts the user."""
    true = pd.DataFrame({"user_id": 1, "day": [1, 2, 3], "item_id": 5})
    old = true.assign(model="old", item_id=[6, 6, 5])
    pred = pd.concat([true.assign(model="new"), old])
    result = rd.evaluate(true, pred, "hitrate@1", by="model", user_col=["user_id", "day"])
    ax = rd.plot.winners(result, "hitrate@1", model="new", baseline="old")
    drawn = " ".join(text.get_text() for text in ax.figure.findobj(Text))
    assert "2 lists gain" in drawn
    assert "n = 3 lists with a value for both" in drawn
    assert "user" not in drawn
    assert result.compare_models(baseline="old")["wins"].tolist() == [1]


def test_winners_are_the_same_in_another_unit_of_money():
    """Ties are differences that are small beside the values."""
    shop, counts = rd.sample_shop(n_users=400, n_items=100), []
    for unit in (1, 1e-14, 1e14):
        pred = shop.pred.assign(value=shop.pred["value"] * unit)
        true = shop.true.assign(value=shop.true["value"] * unit)
        result = rd.evaluate(true, pred, "revenue@10", by="model", value_col="value")
        data = rd.plot.winners.data(result, "revenue@10", model="knn", baseline="popularity")
        counts.append(data.groupby("side")["n"].sum().to_dict())
    assert counts[0]["gains"] > 100
    assert counts[0] == counts[1] == counts[2]


def test_the_band_of_shares_counts_users_and_not_lists():
    true = pd.DataFrame({"user_id": [1, 1, 1, 2], "day": [1, 2, 3, 1], "item_id": 5})
    result = rd.evaluate(
        true, true.assign(model="m"), "ndcg@1", by="model", user_col=["user_id", "day"]
    )
    data = rd.plot.users.data(result, "ndcg@1")
    effective = (3 + 1) ** 2 / (3**2 + 1**2)
    assert data["ci_low"].iloc[0] == max(0, 1 - math.sqrt(math.log(2 / 0.05) / (2 * effective)))
    assert data["n"].iloc[0] == 4
