"""Columns of a caller that are called like columns of a result are refused, never overwritten."""

import pandas as pd
import pytest

import recdf as rd

TRUE = pd.DataFrame({"user_id": [1, 2], "item_id": ["a", "b"]})
PRED = pd.DataFrame(
    {"model": ["m", "n"], "user_id": [1, 2], "item_id": ["a", "b"], "order": [1, 1]}
)
ITEMS = ["a", "b", "c"]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name", ["metric", "k", "value", "std", "se", "ci_low", "ci_high", "n", "n_undefined"]
)
@pytest.mark.parametrize("metrics", ["coverage@1", ["mrr@1", "coverage@1"], "mrr@1"])
def test_by_may_not_be_called_like_a_column_of_the_summary(name, metrics, tmp_path):
    pred = PRED.rename(columns={"model": name})
    with pytest.raises(
        rd.ColumnError, match=f"'{name}' has the name of a column of the summary; rename it"
    ):
        rd.evaluate(TRUE, pred, metrics, by=name, items=ITEMS)
    for role, frame in (("true", TRUE), ("pred", pred)):
        frame.to_parquet(tmp_path / f"{role}.parquet")
    with pytest.raises(
        rd.ColumnError, match=f"'{name}' has the name of a column of the summary; rename it"
    ):
        rd.evaluate_parquet(
            tmp_path / "true.parquet", tmp_path / "pred.parquet", metrics, by=name, items=ITEMS
        )


@pytest.mark.parametrize("name", ["__row__", "__place__"])
@pytest.mark.parametrize("old", ["user_id", "item_id", "model"])
def test_columns_that_files_are_read_with(name, old, tmp_path):
    options = {"user_col": "user_id", "item_col": "item_id", "by": "model"}
    options = {key: name if value == old else value for key, value in options.items()}
    for role, frame in (("true", TRUE), ("pred", PRED)):
        frame.rename(columns={old: name}).to_parquet(tmp_path / f"{role}.parquet")
    with pytest.raises(rd.ColumnError, match=f"'{name}' names a column that evaluate_parquet adds"):
        rd.evaluate_parquet(
            tmp_path / "true.parquet", tmp_path / "pred.parquet", "mrr@1", buckets=2, **options
        )
    frames = (frame.rename(columns={old: name}) for frame in (TRUE, PRED))
    assert len(rd.evaluate(*frames, "mrr@1", **options).per_user) == 4


@pytest.mark.parametrize("name", ["rank", "hit", "gain", "value"])
def test_hit_table(name):
    true, pred = (frame.rename(columns={"item_id": name}) for frame in (TRUE, PRED))
    with pytest.raises(rd.ColumnError, match=f"'{name}' has the name of a column of the table"):
        rd.diagnostics.hit_table(true, pred, item_col=name)


def test_position_and_exposure_table():
    with pytest.raises(rd.ColumnError, match="'hits' has the name of a column of the table"):
        rd.diagnostics.position_table(TRUE, PRED.rename(columns={"model": "hits"}), by="hits")
    with pytest.raises(rd.ColumnError, match="'share' has the name of a column of the table"):
        rd.diagnostics.exposure_table(PRED.rename(columns={"item_id": "share"}), item_col="share")


@pytest.mark.parametrize(
    ("model_col", "user_col"), [("user_id", "user_id"), ("score", "user_id"), ("model", "score")]
)
def test_from_labelled(model_col, user_col):
    frame = pd.DataFrame(
        {"user_id": [1], "score": [1], "item_id": ["a"], "label": [1], "als": [0.5]}
    )
    with pytest.raises(rd.ColumnError, match="names two columns of pred"):
        rd.logs.from_labelled(
            frame, relevance_col="label", score_cols="als", model_col=model_col, user_col=user_col
        )
