"""The summary has a row for each recommender and metric that was asked for, and weights by user
hold in every fold."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

TRUE = pd.DataFrame({"user_id": ["a", "b"], "item_id": [1, 2]})
PRED = pd.DataFrame({"user_id": ["a", "z"], "item_id": [1, 2], "model": ["m", "n"]})
METRICS = ["recall@2", "ndcg@2", "coverage@2"]


@pytest.mark.filterwarnings("ignore::recdf.NoOverlapWarning")
@pytest.mark.parametrize("options", [{}, {"weight_col": {"a": 2.0, "b": 1.0, "z": 1.0}}])
def test_a_recommender_without_a_list_of_the_population_has_null_rows(options):
    found = rd.evaluate(TRUE, PRED, METRICS, by="model", users="both", items=[1, 2, 3], **options)
    rows = found.summary.set_index(["model", "metric"])
    assert rows.loc["m", "value"].tolist() == pytest.approx([1, 1, 1 / 3])
    assert rows.loc["n", "value"].isna().all()
    assert rows["n"].tolist() == [1, 1, 1, 0, 0, 0]
    assert found.per_user["model"].tolist() == ["m"]


@pytest.mark.filterwarnings("ignore::recdf.NoOverlapWarning")
def test_a_recommender_whose_lists_all_weigh_0_has_null_rows():
    weights = {"a": 1.0, "z": 0.0}
    found = rd.evaluate(TRUE, PRED, "hits@2", by="model", users="pred", weight_col=weights)
    assert found.summary["model"].tolist() == ["m", "n"]
    assert found.summary["value"].tolist() == pytest.approx([1, np.nan], nan_ok=True)


def test_the_warning_says_that_such_a_recommender_scores_0_where_it_has_lists():
    with pytest.warns(rd.NoOverlapWarning, match=r"score 0 in every list that they have: 'n';"):
        rd.evaluate(TRUE, PRED, "recall@2", by="model", users="both")


def test_a_mapping_of_weights_holds_in_every_fold():
    """By hand: fold 0 has user a, who hits, and user b, who does not; fold 1 has a and c."""
    true = pd.DataFrame(
        {"user_id": ["a", "b", "c", "a"], "item_id": [1, 2, 3, 4], "fold": [0, 0, 1, 1]}
    )
    pred = true.assign(item_id=[1, 9, 3, 9])
    weights = {"a": 2.0, "b": 1.0, "c": 1.0}
    options = {"by": "fold", "by_in_true": True}
    found = rd.evaluate(true, pred, "recall@2", weight_col=weights, **options)
    assert found.summary["value"].tolist() == pytest.approx([2 / 3, 1 / 3])
    users = pd.DataFrame({"user_id": [*weights], "w": [*weights.values()]})
    column = true.merge(users)
    same = rd.evaluate(column, pred, "recall@2", weight_col="w", **options)
    assert same.summary["value"].tolist() == pytest.approx([2 / 3, 1 / 3])
