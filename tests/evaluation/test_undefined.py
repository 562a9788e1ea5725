"""`undefined="zero"`: a list without a value never counts as the best one, and is counted in any
case."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

TRUE = {"u": ["a"], "v": ["b"], "w": []}
PRED = {"u": ["c", "a"], "v": ["c"], "w": ["c", "a"]}
FEATURES = pd.DataFrame({"item_id": ["a", "b", "c"], "f": [1.0, -1.0, 1.0]})


def last_rank(lists):
    """Share of the list below its hit; smaller is better, in [0, 1]."""
    value = np.full(len(lists), np.nan)
    value[lists.hits.list] = 0.25
    return value


def loss(lists):
    """A negative error; larger is better, at most 0."""
    return np.where(lists.n_true > 0, -0.5, np.nan)


@pytest.fixture
def own():
    made = rd.metric(better="smaller")(last_rank), rd.metric(bounds=(None, 0.0))(loss)
    yield made
    from recdf.metrics.metric import METRICS

    for one in made:
        del METRICS[one.name]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "options", [{"undefined": "zero"}, {"like": "trec_eval"}, {"like": "ranx"}]
)
@pytest.mark.parametrize("weight", [False, True])
def test_an_undefined_list_is_not_the_best(own, options, weight):
    if weight:
        options = {**options, "weight_col": {"u": 2.0, "v": 1.0, "w": 1.0}}
    names = ["recall@2", "first_rank@2", "ils@2", "last_rank@2", "loss@2"]
    result = rd.evaluate(TRUE, PRED, names, features=FEATURES, **options)
    values = result.per_user.set_index("user_id")[names]
    assert values["recall@2"].tolist() == [
        1.0,
        0.0,
        0.0,
    ]  # undefined for w, which has no relevant item
    np.testing.assert_array_equal(
        values["first_rank@2"], [2.0, np.nan, np.nan]
    )  # ranks have no worst bound
    assert values["ils@2"].tolist() == [1.0, 1.0, 1.0]  # the list of v has one item
    assert values["last_rank@2"].tolist() == [0.25, 1.0, 1.0]
    np.testing.assert_array_equal(
        values["loss@2"], [-0.5, -0.5, np.nan]
    )  # 0 would be the best value there is
    summary = result.summary.set_index("metric")
    assert summary["n"].to_dict() == {
        "recall": 3,
        "first_rank": 1,
        "ils": 3,
        "last_rank": 3,
        "loss": 2,
    }
    assert summary["n_undefined"].to_dict() == {
        "recall": 1,
        "first_rank": 2,
        "ils": 1,
        "last_rank": 2,
        "loss": 1,
    }
    for called in (rd.first_rank, rd.recall):
        assert called(TRUE, PRED, k=2, **options) == pytest.approx(
            summary.loc[called.name, "value"]
        )
    assert own[0](TRUE, PRED, k=2, **options) == pytest.approx(summary.loc["last_rank", "value"])


def test_a_model_that_finds_nothing_is_not_the_best():
    true = pd.DataFrame({"user_id": range(40), "item_id": "a", "relevance": 5.0})
    rows = [
        ("finds", u, item, score) for u in range(40) for item, score in (("b", 4.0), ("a", 3.0))
    ]
    rows += [("nothing", u, "b", 4.0) for u in range(40)]
    pred = pd.DataFrame(rows, columns=["model", "user_id", "item_id", "score"])
    with pytest.warns(rd.NoOverlapWarning, match="'nothing'"):
        result = rd.evaluate(true, pred, ["first_rank@2", "rmse"], by="model", undefined="zero")
    board = rd.leaderboard(result).frame.set_index(["model", "metric"])
    for name in ("first_rank@2", "rmse"):
        assert board.loc[("finds", name), "value"] == 2.0
        assert board["place"].isna().all()  # there is nothing to be better than
        assert board.loc[("nothing", name), ["n", "n_undefined"]].tolist() == [0, 40]
        assert pd.isna(board.loc[("nothing", name), "value"])


def test_files_count_undefined_lists_too(tmp_path):
    true = pd.DataFrame({"user_id": range(20), "item_id": "a"})
    pred = pd.DataFrame({"user_id": range(20), "item_id": ["a", "b"] * 10})
    for name, frame in (("true", true), ("pred", pred)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    names = ["first_rank@2", "ndcg@2"]
    paths = (tmp_path / "true.parquet", tmp_path / "pred.parquet")
    options = {"users": [*range(25)], "undefined": "zero"}
    found = rd.evaluate_parquet(*paths, names, out=tmp_path / "out", buckets=3, **options).summary
    pd.testing.assert_frame_equal(found, rd.evaluate(true, pred, names, **options).summary)
    assert found[["n", "n_undefined"]].to_numpy().tolist() == [[10, 15], [25, 5]]


def test_conventions_say_how_many_lists_are_undefined():
    table = rd.diagnostics.compare_conventions(
        TRUE, PRED, ["recall"], 2, conventions=["trec_eval", "replay"]
    )
    assert table[["n", "n_undefined"]].to_numpy().tolist() == [[3, 1], [2, 1]]


def test_groups_of_items_count_undefined_lists():
    items = pd.DataFrame({"item_id": ["a", "b", "c"], "kind": ["x", "x", "y"]})
    found = rd.evaluate(
        TRUE, PRED, "recall@2", items=items, item_by="kind", users=["u", "w"], undefined="zero"
    ).summary
    assert found[["n", "n_undefined"]].to_numpy().tolist() == [[2, 1], [2, 1], [2, 2]]


@pytest.mark.filterwarnings("ignore::recdf.NoOverlapWarning")
def test_metrics_of_exposure_count_undefined_values():
    found = rd.evaluate(
        None, {1: [1]}, ["gini", "coverage"], items=[2], users="pred", undefined="zero"
    ).summary
    columns = ["metric", "value", "n", "n_undefined"]
    assert found[columns].to_numpy().tolist() == [["gini", 1.0, 1, 1], ["coverage", 0.0, 1, 0]]
