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
