"""`compare_models(by=)`: each segment as by itself, and all tests corrected as one family."""

import numpy as np
import pandas as pd
import pytest
from quick import few
from statsmodels.stats.multitest import multipletests

import recdf as rd

METRICS = ["ndcg@10", "recall@10"]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(4)
    users = pd.DataFrame({"user_id": range(240), "segment": np.tile(["new", "old", "late"], 80)})
    level = users["segment"].map({"new": 0.05, "old": 0.0, "late": -0.03})
    parts = [
        users.assign(model=model, **{name: rng.random(240) / 4 + i * level for name in METRICS})
        for i, model in enumerate("abc")
    ]
    return pd.concat(parts, ignore_index=True)


def by_hand(frame, segments, **options):
    """Each segment in a call of its own without correction, then one correction of all rows."""
    calls = []
    for name in segments:
        part = frame[frame["segment"] == name].drop(columns="segment")
        own = pd.DataFrame(
            rd.compare_models(part, METRICS, correction="none", **options, details=True)
        )
        calls.append(own.assign(segment=name))
    return pd.concat(calls, ignore_index=True)


@pytest.fixture(
    scope="module",
    params=few([{"baseline": "b"}, {}, {"test": "bootstrap", "n_resamples": 200}], 1),
    ids=["one baseline", "all pairs", "bootstrap"],
)
def options(request):
    return request.param


@pytest.fixture(scope="module")
def hand(frame, options):
    return by_hand(frame, ["late", "new", "old"], **options)


@pytest.mark.long
@pytest.mark.parametrize(
    ("correction", "theirs"),
    few(
        [
            ("holm", "holm"),
            ("bh", "fdr_bh"),
            ("hochberg", "simes-hochberg"),
            ("bonferroni", "bonferroni"),
            ("by", "fdr_by"),
            ("holm_sidak", "holm-sidak"),
        ],
        3,
    ),
)
def test_the_tests_of_all_segments_are_one_family(frame, correction, theirs, options, hand):
    table = rd.compare_models(
        frame, METRICS, by="segment", correction=correction, **options, details=True
    )
    assert list(table.columns[:4]) == ["segment", "metric", "baseline", "model"]
    same = ["segment", "metric", "baseline", "model", "n_users", "diff", "se", "p_value"]
    pd.testing.assert_frame_equal(pd.DataFrame(table)[same], hand[same], check_dtype=False)
    reject, p_adj = multipletests(hand["p_value"], 0.05, method=theirs)[:2]
    np.testing.assert_allclose(table["p_adj"], p_adj, atol=1e-12)
    assert table["reject"].tolist() == reject.tolist()
    said = table["effect"].isin(["better", "worse"]) | (table["withheld"] == "unseen_units")
    assert said.tolist() == reject.tolist()
    if "test" not in options and correction != "bh":
        assert ((table["ci_low"] > 0) | (table["ci_high"] < 0)).tolist() == reject.tolist()
        assert (table["ci_low"] <= hand["ci_low"]).all()  # the interval of a family is wider


@pytest.mark.long
def test_segments_come_from_a_frame_of_users_too(frame):
    users = frame.drop_duplicates("user_id")[["user_id", "segment"]]
    inside = rd.compare_models(frame, METRICS, by="segment", details=True)
    bare = frame.drop(columns="segment")
    pd.testing.assert_frame_equal(
        rd.compare_models(bare, METRICS, segments=users, details=True), inside
    )
    pd.testing.assert_frame_equal(
        rd.compare_models(bare, METRICS, by="segment", segments=users, details=True), inside
    )
    frames = {name: own.drop(columns="model") for name, own in bare.groupby("model")}
    pd.testing.assert_frame_equal(
        rd.compare_models(frames, METRICS, by="segment", segments=users, details=True), inside
    )


def test_amounts_of_many_values_become_bands(frame):
    spent = pd.DataFrame({"user_id": range(240), "spent": np.arange(240) / 2})
    table = rd.compare_models(
        frame.drop(columns="segment"), "ndcg@10", baseline="a", segments=spent, details=True
    )
    assert table["spent"].nunique() == 4
    assert (table["n_users"] == 60).all()


@pytest.mark.long
def test_lists_without_a_segment_are_said(frame):
    some = frame.assign(segment=frame["segment"].where(frame["segment"] != "late"))
    with pytest.warns(
        rd.errors.UnknownWarning, match="240 of 720 rows of per_user have no segment"
    ):
        table = rd.compare_models(some, METRICS, by="segment", baseline="a", details=True)
    assert sorted(set(table["segment"])) == ["new", "old"]
    multi = by_hand(frame, ["new", "old"], baseline="a")
    np.testing.assert_allclose(table["p_adj"], multipletests(multi["p_value"], method="holm")[1])


def test_a_segment_without_the_baseline_has_no_row(frame):
    part = frame[(frame["model"] != "a") | (frame["segment"] != "new")]
    assert set(
        rd.compare_models(part, METRICS, by="segment", baseline="a", details=True)["segment"]
    ) == {
        "late",
        "old",
    }
    with pytest.raises(
        rd.OptionError, match=r"no segment of \['segment'\] has lists of the baseline 'z'"
    ):
        rd.compare_models(frame, METRICS, by="segment", baseline="z", details=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "model"}, "also a column of the result"),
        ({"by": "country"}, "country"),
        (
            {"segments": pd.DataFrame({"user_id": [1], "x": [1], "y": [1]})},
            "name those to compare within",
        ),
        ({"segments": pd.DataFrame({"user_id": [1, 1], "x": [1, 2]})}, "several rows for 1 keys"),
    ],
)
def test_segments_that_are_none_are_refused(frame, options, message):
    with pytest.raises((rd.OptionError, rd.ColumnError), match=message):
        rd.compare_models(frame, METRICS, **options, details=True)


@pytest.mark.long
def test_the_method_of_a_result_and_the_leaderboard_give_the_same_rows():
    shop = rd.sample_shop()
    users = shop.users[["user_id", "segment"]]
    result = rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
    table = result.compare_models(
        by="segment", segments=users, baseline="popularity", correction="none", details=True
    )
    board = rd.leaderboard(result, baseline="popularity", segments=users, correction="none")
    own = board.comparisons[board.comparisons["segment"] == "segment"]
    same = [
        "model",
        "baseline",
        "metric",
        "n_users",
        "diff",
        "ci_low",
        "ci_high",
        "p_value",
        "verdict",
        "remarks",
    ]
    one, two = (
        pd.DataFrame(part).sort_values(["model", name]).reset_index(drop=True)
        for part, name in ((table, "segment"), (own, "group"))
    )
    assert one["segment"].tolist() == two["group"].tolist()
    pd.testing.assert_frame_equal(one[same], two[same], check_dtype=False)
    text = str(rd.experiments.report_table(table))
    assert "segment" in text


@pytest.mark.long
def test_a_result_with_a_carried_segment():
    shop = rd.sample_shop()
    pred = shop.pred.merge(shop.users[["user_id", "segment"]], on="user_id")
    result = rd.evaluate(shop.true, pred, "ndcg@10", by="model", carry="segment", users="pred")
    own = result.compare_models(by="segment", missing="drop", details=True)
    pd.testing.assert_frame_equal(
        own,
        rd.compare_models(result.per_user, "ndcg@10", by="segment", missing="drop", details=True),
    )
    models = result.per_user.rename(columns={"segment": "kind"})
    assert set(own["segment"]) == set(models["kind"].dropna())
