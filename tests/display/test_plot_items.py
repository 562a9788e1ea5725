"""Pictures of items: `exposure`, `longtail` and `position`."""

import pandas as pd
import pytest

import recdf as rd


def test_exposure_is_the_lorenz_curve_and_agrees_with_the_metric(shop, exposed):
    data = rd.plot.exposure.data(exposed)
    metric = rd.evaluate(
        shop.true, shop.pred, "gini@10", by="model", items=shop.items, users="pred"
    ).summary
    for model, rows in data.groupby("model"):
        assert rows["gini"].iloc[0] == pytest.approx(
            metric.set_index("model").loc[model, "value"], abs=1e-12
        )
        shown = sorted(exposed.loc[exposed["model"] == model, "shown"])
        for row in rows.itertuples():
            n = round(row.share_of_items * len(shown))
            assert row.share_of_impressions == pytest.approx(sum(shown[:n]) / sum(shown), abs=1e-12)


def test_longtail_by_hand():
    table = pd.DataFrame(
        {"item_id": list("abcdx"), "shown": [4, 3, 2, 1, 10], "share": [0.2, 0.15, 0.1, 0.05, 0.5]}
    )
    log = pd.DataFrame({"item_id": list("aaaabbbccd")})
    data = rd.plot.longtail.data(table, log)
    # a and b are the first half of the four items of the log, c and d the rest; x was never bought.
    own = data[data["model"] == "all lists"]
    assert own["band"].tolist() == [
        *("top 1 %", "1–5 %", "5–20 %", "20–50 %", "50–100 %", "not in log")
    ]
    assert own["share"].tolist() == pytest.approx([0, 0, 0, 0.35, 0.15, 0.5])
    assert own["n_items"].tolist() == [0, 0, 0, 2, 2, 1]
    past = data[data["model"] == "past interactions"]["share"].tolist()
    assert past == pytest.approx([0, 0, 0, 0.7, 0.3, 0])


@pytest.mark.parametrize("kind", ["float64", "category", object])
def test_longtail_matches_ids_and_no_order_of_rows(kind):
    """Ids of other types are the same ids; of equally popular items, those with the smaller ids
    are the head, as for `aplt`."""
    table = pd.DataFrame({"item_id": [3, 1, 2], "shown": [5, 3, 2], "share": [0.5, 0.3, 0.2]})
    log = pd.DataFrame({"item_id": [2, 3, 1, 1]})
    for rows in (log, log[::-1], pd.concat([log, pd.DataFrame({"item_id": [None]})])):
        data = rd.plot.longtail.data(table, rows.astype({"item_id": kind}))
        own = data[data["model"] == "all lists"].set_index("band")["share"]
        assert own[["20–50 %", "50–100 %", "not in log"]].tolist() == pytest.approx([0.3, 0.7, 0])
    assert rd.plot.longtail.data(table, log)["share"].tolist() == data["share"].tolist()
    four = pd.DataFrame({"item_id": [1, 2, 3, 4], "shown": [1, 2, 3, 4], "share": 0.25})
    for ids in ([1, 2, 3, 4], [4, 3, 2, 1]):
        data = rd.plot.longtail.data(four, pd.DataFrame({"item_id": ids}))
        own = data[data["model"] == "all lists"].set_index("band")["share"]
        assert own["20–50 %"] == pytest.approx(0.3)  # the items 1 and 2
    with pytest.raises(rd.IdTypeError, match="can never match"):
        rd.plot.longtail.data(table, log.astype(str))


def test_position_draws_its_table(shop):
    table = rd.diagnostics.position_table(shop.true, shop.pred, k=4, by="model")
    data = rd.plot.position.data(table)
    assert data[["model", "rank", "hit_rate", "ci_low", "ci_high"]].equals(
        table[["model", "rank", "hit_rate", "ci_low", "ci_high"]]
    )
    ax = rd.plot.position(table)
    assert [line.get_ydata().tolist() for line in ax.lines] == [
        rows["hit_rate"].tolist() for _, rows in table.groupby("model", sort=False)
    ]
