"""Input that is odd but no error, and what is warned about."""

import datetime as dt
import warnings

import pandas as pd
import pyarrow as pa
import pytest
from inputs.small_frames import PRED, TRUE

import recdf as rd


def run(metrics="ndcg@10", true=TRUE, pred=PRED, **options):
    """Evaluate in this file, which warnings are to name."""
    return rd.evaluate(true, pred, metrics, **options)


# ----------------------------------------------------------------------------------------------
# what is no error


def test_empty_pred_scores_zero():
    result = run(["hitrate@3", "recall@3", "ndcg@3"], pred=PRED[:0], relevance_col=False)
    assert result.per_user["user_id"].tolist() == [1, 2]
    assert result.per_user["n_pred"].tolist() == [0, 0]
    assert (result.per_user.iloc[:, 3:] == 0).all(axis=None)


def test_empty_pred_without_columns_of_ids_is_an_error():
    with pytest.raises(rd.ColumnError, match=r"pred has no column 'user_id'; it has none"):
        run(pred=pd.DataFrame())


@pytest.mark.parametrize(
    "columns", [{"user_id": [], "item_id": []}, {"user_id": pd.Series(dtype="str"), "item_id": []}]
)
def test_empty_frames_of_any_dtype(columns):
    """An empty column has no kind of ids, so it matches all."""
    result = run("recall@3", pred=pd.DataFrame(columns), relevance_col=False)
    assert result.per_user["recall@3"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("kind", [pa.uint64(), pa.dictionary(pa.int8(), pa.null())])
def test_empty_tables_of_arrow_without_chunks(kind):
    table = pa.Table.from_batches([], pa.schema([("user_id", kind), ("item_id", kind)]))
    with pytest.warns(rd.NoOverlapWarning):
        result = run("unseen@1", log=table, users="pred")
    assert result.per_user["unseen@1"].tolist() == [1.0, 1.0]
    result = run("recall@3", pred=table, relevance_col=False)
    assert result.per_user["recall@3"].tolist() == [0.0, 0.0]


def test_k_beyond_every_list_counts_missing_ranks_as_misses():
    assert run("precision@1000", relevance_col=False).per_user["precision@1000"].tolist() == [
        1 / 1000,
        1 / 1000,
    ]


def test_null_keys_are_dropped_and_counted_when_asked():
    true = TRUE.astype({"user_id": "Int64"})
    true.loc[1, "user_id"] = None
    pred = PRED.assign(item_id=[10, None, 12])
    result = run("recall@3", true=true, pred=pred, null_keys="drop", relevance_col=False)
    assert result.per_user["recall@3"].tolist() == [1.0, 1.0]
    assert result.spec["counts"] == {"true_null_keys": 1, "pred_null_keys": 1}


def test_null_scores_are_last_or_dropped_and_counted_when_asked():
    pred = PRED.assign(score=[None, 0.1, 0.5])
    assert run("mrr@3", pred=pred, nan_score="last", relevance_col=False).per_user[
        "mrr@3"
    ].tolist() == [0.5, 1.0]
    result = run("mrr@3", pred=pred, nan_score="drop", relevance_col=False)
    assert result.per_user["mrr@3"].tolist() == [0.0, 1.0]
    assert result.per_user["n_pred"].tolist() == [1, 1]
    assert result.spec["counts"] == {"pred_null_scores": 1}


# ----------------------------------------------------------------------------------------------
# warnings


def caught(*args, **options):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run(*args, **options)
    return found


def test_repeated_rows_give_one_warning_with_counts():
    found = caught(
        ["ndcg@3", "recall@3"],
        true=pd.concat([TRUE, TRUE[:1]]),
        pred=pd.concat([PRED, PRED, PRED[:1]]),
    )
    assert [w.category for w in found] == [rd.DuplicateWarning]
    assert "1 of true and 4 of pred" in str(found[0].message)
    assert found[0].filename == __file__


def test_repeated_recommendations_ask_for_by_where_it_is_not_given():
    words, pred = (
        "if pred holds several recommenders, pass the column of their names as by=",
        pd.concat([PRED, PRED]),
    )
    for expected, options in (
        (True, {"pred": pred}),
        (False, {"pred": pred.assign(model="a"), "by": "model"}),
        (False, {"true": pd.concat([TRUE, TRUE])}),
    ):
        (found,) = caught(**options)
        assert (words in str(found.message)) == expected


def test_repeated_rows_are_counted_in_the_spec():
    pred = pd.concat([PRED, PRED[:1]])
    for duplicates in ("drop", "keep"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rd.DuplicateWarning)
            assert run(pred=pred, duplicates=duplicates).spec["counts"] == {"pred_duplicates": 1}
    assert caught(pred=pred, duplicates="keep") == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"user_id": [7, 8, 9]}, ["user", "true['user_id']: 1, 2", "pred['user_id']: 7, 8"]),
        ({"item_id": [7, 8, 9]}, ["item", "true['item_id']: 10, 11", "pred['item_id']: 7, 8"]),
    ],
)
def test_disjoint_ids_give_one_warning_with_samples(change, words):
    found = caught(["ndcg@3", "recall@3"], pred=PRED.assign(**change))
    assert [w.category for w in found] == [rd.NoOverlapWarning]
    for word in words:
        assert word in str(found[0].message)
    assert found[0].filename == __file__


def test_no_hit_by_chance_is_no_warning():
    assert caught(pred=PRED.assign(user_id=[2, 2, 1])) == []


def test_disjoint_ids_warn_whatever_the_population():
    for users in ("pred", "both", "all", [1, 7]):
        if users == "both":
            continue
        found = caught("hitrate@3", pred=PRED.assign(user_id=[7, 8, 9]), users=users)
        assert [w.category for w in found] == [rd.NoOverlapWarning]


def test_warnings_can_be_filtered_by_class_and_name_the_caller():
    pred = pd.concat([PRED, PRED])
    for call in (
        lambda: run(pred=pred),
        lambda: rd.ndcg(TRUE, pred),
        lambda: rd.ndcg.per_user(TRUE, pred),
        lambda: rd.ndcg(TRUE.to_dict("list") and {1: [10]}, {1: [10, 10]}),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
        assert [(w.category, w.filename) for w in found] == [(rd.DuplicateWarning, __file__)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", rd.RecdfWarning)
            call()


def test_good_frames_give_no_warning():
    assert caught(pred=PRED.assign(model=dt.date(2026, 1, 1)), by="model") == []
