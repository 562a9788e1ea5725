"""The tables beside the metrics, by hand and against the metrics that they explain."""

import math

import numpy as np
import pandas as pd
import pytest
from registry.seeded import distinct, frames, quietly

import recdf as rd


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True)


# ------------------------------------------------------------------------------------------
# exposure_table


def test_exposure_table():
    table = rd.diagnostics.exposure_table({1: ["b", "a"], 2: ["b", "z"]}, 2, items=["a", "b", "c"])
    second = 1 / math.log2(3)
    expected = pd.DataFrame(
        {
            "item_id": ["a", "b", "c", "z"],
            "shown": [1, 2, 0, 1],
            "share": [1 / 4, 2 / 4, 0.0, 1 / 4],
            "first_shown": [0, 2, 0, 0],
            "exposure": [second, 2.0, 0.0, second],
        }
    )
    pd.testing.assert_frame_equal(table, expected)
    alone = rd.diagnostics.exposure_table({1: ["b", "a"], 2: ["b", "z"]}, 1)
    assert alone[["item_id", "shown"]].to_numpy().tolist() == [["b", 2]]


def test_exposure_table_by_recommender_explains_the_metrics():
    _, pred = distinct(1)
    items = pd.DataFrame({"item_id": np.arange(16, dtype=np.int32)})
    table = rd.diagnostics.exposure_table(pred, 3, items=items, by="model")
    assert list(table.columns) == ["model", "item_id", "shown", "share", "first_shown", "exposure"]
    summary = quietly(
        rd.evaluate,
        None,
        pred,
        ["coverage", "entropy", "hhi"],
        k=3,
        items=items,
        by="model",
        users="pred",
    )
    for model, part in table.groupby("model"):
        values = summary.summary[summary.summary["model"] == model].set_index("metric")["value"]
        assert values["coverage"] == (part["shown"] > 0).mean()
        assert values["hhi"] == close((part["share"] ** 2).sum())
        assert part["share"].sum() == close(1.0)


@pytest.mark.parametrize("k", [2, None])
def test_exposure_adds_up_over_parts(k):
    _, pred = frames(2)
    pred = pred[pred["model"] == "a"].drop(columns="rank").dropna()
    whole = quietly(rd.diagnostics.exposure_table, pred, k, items=range(14)).set_index("item_id")
    part = pred["user_id"] % 2 == 0
    parts = [
        quietly(rd.diagnostics.exposure_table, some, k, items=range(14)).set_index("item_id")
        for some in (pred[part], pred[~part])
    ]
    for name in ("shown", "first_shown", "exposure"):
        assert (parts[0][name] + parts[1][name]).tolist() == close(whole[name].tolist())


# -----------------------------------------------------------------------------------------------
# hit_table


def test_hit_table():
    true = pd.DataFrame(
        {
            "user_id": [1, 1, 2],
            "item_id": ["a", "b", "c"],
            "relevance": [2.0, 0.0, 1.0],
            "price": 1.0,
        }
    )
    pred = pd.DataFrame(
        {
            "user_id": [2, 1, 1, 1],
            "item_id": ["x", "b", "z", "a"],
            "score": [0.5, 0.3, 0.2, 0.9],
            "price": [7.0, 5.0, 4.0, 3.0],
        },
        index=[9, 9, 9, 9],
    )
    found = rd.diagnostics.hit_table(true, pred, 2, relevance_col="relevance", value_col="price")
    expected = pd.DataFrame(
        {
            "user_id": [1, 1, 2],
            "item_id": ["a", "b", "x"],
            "rank": [1, 2, 1],
            "hit": [True, False, False],
            "gain": [2.0, 0.0, 0.0],
            "value": [3.0, 5.0, 7.0],
        }
    )
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize(
    "options", [{}, {"users": "all"}, {"duplicates": "keep"}, {"judged_only": True}]
)
def test_hit_table_gives_the_metrics(options):
    true, pred = frames(3)
    pred = pred.drop(columns="rank")
    given = {"by": "model", "nan_score": "last", "relevance_col": "relevance", **options}
    table = quietly(rd.diagnostics.hit_table, true, pred, 4, **given)
    result = quietly(rd.evaluate, true, pred, ["hits", "dcg", "precision"], k=4, **given).per_user
    keys = ["model", "user_id"]
    summed = (
        table.assign(dcg=table["gain"] / np.log2(table["rank"] + 1))
        .groupby(keys)
        .agg(hits=("hit", "sum"), dcg=("dcg", "sum"), n=("rank", "max"))
        .reset_index()
    )
    joined = result.merge(summed, on=keys, how="left").fillna(0.0)
    assert joined["hits@4"].tolist() == close(joined["hits"].tolist())
    assert joined["dcg@4"].tolist() == close(joined["dcg"].tolist())
    assert joined["n"].tolist() == np.minimum(joined["n_pred"], 4).tolist()
    assert table["rank"].between(1, 4).all()


# ------------------------------------------------------------------------------------------
# position_table


def test_position_table():
    true = {user: ["a"] for user in range(5)}
    pred = {0: ["a", "x"], 1: ["a"], 2: ["x", "a"], 3: ["x", "y"], 4: []}
    table = rd.diagnostics.position_table(true, pred, 3)
    assert table["rank"].tolist() == [1, 2, 3]
    assert table["shown"].tolist() == [4, 3, 0]
    assert table["hits"].tolist() == [2, 1, 0]
    assert table["hit_rate"].tolist() == close([1 / 2, 1 / 3, math.nan])
    # Wilson's interval, from the formula in the paper.
    z = 1.959963984540054
    n, p = 3, 1 / 3
    middle, half = (p + z * z / 2 / n), z * math.sqrt(p * (1 - p) / n + z * z / 4 / n**2)
    assert table.loc[1, ["ci_low", "ci_high"]].tolist() == close(
        [(middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)]
    )
    assert table.loc[2, ["ci_low", "ci_high"]].isna().all()


def test_position_table_equals_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    true, pred = distinct(4)
    table = quietly(rd.diagnostics.position_table, true, pred, 5, by="model")
    low, high = proportion.proportion_confint(table["hits"], table["shown"], method="wilson")
    assert table["ci_low"].tolist() == close(low.tolist())
    assert table["ci_high"].tolist() == close(high.tolist())


def test_position_table_by_recommender_sums_to_hits():
    true, pred = distinct(5)
    table = quietly(rd.diagnostics.position_table, true, pred, 6, by="model")
    hits = (
        quietly(rd.evaluate, true, pred, "hits", k=6, by="model")
        .per_user.groupby("model", sort=False)["hits@6"]
        .sum()
    )
    assert table.groupby("model", sort=False)["hits"].sum().tolist() == hits.tolist()
    # A long list cannot be shown at fewer ranks than a short one.
    assert (table.groupby("model")["shown"].diff().dropna() <= 0).all()


@pytest.mark.parametrize("table", [rd.diagnostics.hit_table, rd.diagnostics.position_table])
def test_tables_refuse_what_evaluate_refuses(table):
    with pytest.raises(rd.OptionError, match="k=0"):
        table({1: ["a"]}, {1: ["a"]}, 0)
    with pytest.raises(rd.OptionError, match=r"has no option 'usr'"):
        table({1: ["a"]}, {1: ["a"]}, usr="true")
    with pytest.raises(rd.IdTypeError):
        table({1: ["a"]}, {1: [2]})


def test_position_table_by_the_positions_on_the_page():
    """Positions from 0 with a hole, and one that is unknown; ranks close the hole."""
    true = {"u": ["a"], "v": ["b", "c"]}
    pred = pd.DataFrame(
        {
            "user_id": ["u", "u", "v", "v", "v"],
            "item_id": list("axbcy"),
            "position": [0, 3, 0, 3, None],
            "rank": [1, 2, 1, 2, 3],
        }
    )
    table = rd.diagnostics.position_table(true, pred, k=3, position_col="position")
    assert table[["position", "shown", "hits"]].to_numpy().tolist() == [[0, 2, 2], [3, 2, 1]]
    assert table["hit_rate"].tolist() == [1.0, 0.5]
    assert rd.diagnostics.position_table(true, pred, k=1, position_col="position")[
        "shown"
    ].tolist() == [2]
    by = pd.concat([pred.assign(model="x"), pred.assign(model="y", position=[1, 2, 1, 2, 4])])
    table = rd.diagnostics.position_table(true, by, k=3, position_col="position", by="model")
    assert table[table["shown"] > 0][["model", "position", "shown"]].to_numpy().tolist() == [
        ["x", 0, 2],
        ["x", 3, 2],
        ["y", 1, 2],
        ["y", 2, 2],
        ["y", 4, 1],
    ]


def test_profile_counts_the_judged_rows_of_each_model_whatever_the_order_of_users():
    true = pd.DataFrame({"user_id": [3, 1], "item_id": ["c", "a"]})
    pred = pd.DataFrame(
        {
            "model": list("xxxxyy"),
            "user_id": [1, 1, 2, 3, 1, 3],
            "item_id": ["a", "b", "a", "c", "z", "c"],
        }
    )
    table = rd.diagnostics.data_profile(true, pred, by="model")
    judged = table[table["quantity"] == "judged"].set_index("model")["value"]
    assert judged.to_dict() == {"x": pytest.approx(2 / 3), "y": 0.5}
    assert table[table["quantity"] == "unknown_users"]["value"].tolist() == [1 / 3, 0]


def test_profile_of_empty_pred_with_scores_has_no_quantiles():
    true = pd.DataFrame({"user_id": [1], "item_id": [2]})
    pred = pd.DataFrame({"user_id": [1], "item_id": [2], "score": [0.5]}).iloc[:0]
    table = rd.diagnostics.data_profile(true, pred).set_index("quantity")["value"]
    assert table["rows_pred"] == 0
    assert table.loc["score_q01":"score_q99"].isna().tolist() == [True] * 5


@pytest.mark.parametrize("position", [np.inf, -np.inf, 2.0**70])
def test_positions_that_are_none_are_refused(position):
    pred = pd.DataFrame({"user_id": 1, "item_id": [1, 2], "at": [1.0, position]})
    with pytest.raises(rd.DataError, match=r"pred\['at'\] holds .*; expected positions"):
        rd.diagnostics.position_table(pred, pred, 2, position_col="at")
