"""The door: mappings, Arrow streams, catalogues, labelled candidates; an index is never data."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from registry.seeded import frames, quietly

import recdf as rd

TRUE = pd.DataFrame(
    {"user_id": [1, 1, 2], "item_id": ["a", "b", "c"], "relevance": [1.0, 2.0, 1.0]}
)
PRED = pd.DataFrame(
    {"user_id": [1, 1, 2, 2], "item_id": ["x", "a", "c", "y"], "score": [0.1, 0.9, 0.3, 0.2]}
)


# ---------------------------------------------------------------------------------------------
# mappings


def test_mappings_equal_frames():
    expected = rd.evaluate(TRUE, PRED, ["ndcg@2", "recall@2"], relevance_col="relevance").per_user
    true = {1: {"a": 1, "b": 2}, 2: {"c": 1}}
    pred = {1: {"x": 0.1, "a": 0.9}, 2: {"c": 0.3, "y": 0.2}}
    found = rd.evaluate(true, pred, ["ndcg@2", "recall@2"]).per_user
    pd.testing.assert_frame_equal(found, expected)
    pd.testing.assert_frame_equal(
        rd.evaluate(true, PRED, ["ndcg@2", "recall@2"]).per_user, expected
    )
    assert true == {1: {"a": 1, "b": 2}, 2: {"c": 1}}


def test_a_list_is_best_first_and_any_collection():
    for pred in (
        {1: ["a", "x"]},
        {1: ("a", "x")},
        {1: np.array(["a", "x"])},
        {1: pd.Series(["a", "x"])},
    ):
        assert rd.mrr({1: {"a"}}, pred) == 1.0
    assert rd.mrr({1: ["a"]}, {1: ["x", "a"]}) == 0.5


def test_a_user_of_a_mapping_without_items_is_of_the_population():
    true, pred = {"u": ["a"], "v": []}, {"u": ["a"], "w": ["a"], "x": []}
    found = rd.evaluate(true, pred, ["recall@1", "hitrate@1"])
    assert found.per_user["user_id"].tolist() == ["u", "v"]
    assert found.per_user["hitrate@1"].tolist() == [1.0, 0.0]
    assert found.per_user["recall@1"].isna().tolist() == [False, True]
    assert found.summary["n_undefined"].tolist() == [1, 0]
    assert rd.hitrate({"u": []}, {"u": ["a"]}) == 0.0


def test_mappings_take_the_names_of_columns():
    found = rd.mrr.per_user({"u": ["a"]}, {"u": ["a"]}, user_col="customer", item_col="sku")
    assert list(found.columns) == ["customer", "mrr@10"]


def test_from_dict():
    found = rd.logs.from_dict(
        {"u": ["a", "b"], "v": [], "w": ["c"]}, user_col="who", item_col="what"
    )
    pd.testing.assert_frame_equal(
        found, pd.DataFrame({"who": ["u", "u", "w"], "what": ["a", "b", "c"]})
    )
    numbered = rd.logs.from_dict({1: {10: 3, 11: 0.5}})  # may be either of the two frames
    expected = {
        "user_id": [1, 1],
        "item_id": [10, 11],
        "relevance": [3.0, 0.5],
        "score": [3.0, 0.5],
    }
    pd.testing.assert_frame_equal(numbered, pd.DataFrame(expected))
    found = rd.logs.from_dict({1: {10: 3, 11: 0.5}}, value_name="stars")
    pd.testing.assert_frame_equal(
        found, pd.DataFrame({"user_id": [1, 1], "item_id": [10, 11], "stars": [3.0, 0.5]})
    )
    assert list(rd.logs.from_dict({}).columns) == ["user_id", "item_id"]
    assert len(rd.logs.from_dict({"u": []})) == 0


def test_big_ids_of_mappings_stay_exact():
    big = 2**53 + 1
    found = rd.hitrate.per_user({big: [big], big + 1: [big]}, {big: [big], big + 1: [big - 1]})
    assert found["user_id"].tolist() == [big, big + 1]
    assert found["hitrate@10"].tolist() == [1.0, 0.0]


# ------------------------------------------------------------------------------------------------
# Arrow


def test_arrow_tables_equal_frames():
    true, pred = frames(5)
    options = {
        "score_col": "score",
        "nan_score": "last",
        "relevance_col": "relevance",
        "by": "model",
    }
    expected = quietly(rd.evaluate, true, pred, ["ndcg", "auc"], [1, 5], **options)
    found = quietly(
        rd.evaluate,
        pa.Table.from_pandas(true),
        pa.Table.from_pandas(pred),
        ["ndcg", "auc"],
        [1, 5],
        **options,
    )
    pd.testing.assert_frame_equal(found.per_user, expected.per_user, check_dtype=False)
    pd.testing.assert_frame_equal(found.summary, expected.summary, check_dtype=False)
    assert found.per_user["user_id"].dtype == pd.ArrowDtype(pa.int64())
    assert found.per_user["n_true"].dtype == "int64"


def test_polars_frames_and_series():
    polars = pytest.importorskip("polars")
    true, pred = polars.from_pandas(TRUE), polars.from_pandas(PRED)
    assert rd.mrr(true, pred) == 1.0
    assert rd.mrr(true, PRED) == 1.0
    assert rd.recall(true, pred, 2, users=polars.DataFrame({"user_id": [1]})) == 0.5
    assert rd.recall(true, pred, 2, users=polars.Series([1])) == 0.5
    items = polars.DataFrame({"item_id": ["a", "b", "c", "x", "y"]})
    assert rd.accuracy(true, pred, 2, items=items) == rd.accuracy(
        true, pred, 2, items=items["item_id"]
    )


@pytest.mark.parametrize("kind", ["Categorical", "Enum"])
def test_polars_categories(kind):
    polars = pytest.importorskip("polars")
    of = (
        polars.Categorical
        if kind == "Categorical"
        else polars.Enum(sorted({*TRUE["item_id"], *PRED["item_id"]}))
    )
    true, pred = (
        polars.from_pandas(f).with_columns(polars.col("item_id").cast(of)) for f in (TRUE, PRED)
    )
    assert rd.mrr(true, pred) == rd.mrr(TRUE, PRED)


def test_a_set_has_no_order():
    with pytest.raises(TypeError, match="no order"):
        rd.mrr({"u": ["a"]}, {"u": {"a", "b"}})
    assert rd.mrr({"u": {"a"}}, {"u": ["a", "b"]}) == 1.0


def test_duckdb_relations():
    duckdb = pytest.importorskip("duckdb")
    true = duckdb.sql("select * from (values (1, 'a'), (2, 'c')) t(user_id, item_id)")
    pred = duckdb.sql("select * from (values (1, 'x', 1), (1, 'a', 2)) t(user_id, item_id, score)")
    assert rd.mrr(true, pred) == 0.5


def test_ids_given_as_arrow_arrays():
    items = pa.array(["a", "b", "c", "x", "y"])
    expected = rd.accuracy(TRUE, PRED, 2, items=items.to_pylist())
    assert rd.accuracy(TRUE, PRED, 2, items=items) == expected
    assert rd.accuracy(TRUE, PRED, 2, items=pa.chunked_array([items])) == expected
    users = TRUE["user_id"].tolist()[:1]
    expected = rd.recall(TRUE, PRED, 2, users=users)
    for ids in (pa.array(users), pa.table({"user_id": users})):
        assert rd.recall(TRUE, PRED, 2, users=ids) == expected


def test_an_index_of_several_levels_holds_tuples():
    levels = pd.MultiIndex.from_tuples([("a", 1), ("b", 1)])
    with pytest.raises(rd.IdTypeError, match=r"items\['item_id'\] tuple ids \(\('a', 1\)"):
        rd.coverage(levels, PRED)
    pairs = pd.DataFrame({"user_id": [1, 1], "item_id": [("a", 1), ("c", 1)]})
    found = rd.recall(pairs, pairs, users=pd.Index([1]), items=[("a", 1), ("b", 1), ("c", 1)])
    assert found == 1.0


# --------------------------------------------------------------------------------------------
# catalogue


@pytest.mark.parametrize(
    "form",
    [
        list,
        tuple,
        set,
        dict.fromkeys,
        np.array,
        pd.Index,
        lambda ids: pd.Series(ids, index=[0] * len(ids)),
        lambda ids: pd.Series(ids * 2, dtype="category"),  # repeated ids are one candidate
        lambda ids: pd.DataFrame({"item_id": ids, "price": 1.0}, index=[0] * len(ids)),
    ],
)
def test_a_catalogue_in_any_form(form):
    items = form(["a", "b", "c", "x", "y"])
    found = rd.confusion.per_user(TRUE, PRED, 2, items=items)
    assert found[["tp@2", "fp@2", "fn@2", "tn@2"]].to_numpy().tolist() == [
        [1, 1, 1, 2],
        [1, 1, 0, 3],
    ]


def test_values_of_the_catalogue_stand_in_for_missing_columns():
    items = pd.DataFrame(
        {"item_id": list("abcxy"), "price": [2.0, 4.0, 6.0, 8.0, 10.0]}, index=[9] * 5
    )
    options = {"value_col": "price", "items": items}
    assert rd.revenue(TRUE, PRED, 2, **options) == 4.0
    assert rd.money_recall(TRUE, PRED, 2, **options) == pytest.approx((2 / 6 + 1) / 2, abs=1e-15)
    shown = PRED.assign(price=[1.0, 1.0, 5.0, 1.0])
    assert rd.revenue(TRUE, shown, 2, **options) == 3.0  # as recommended
    bought = TRUE.assign(price=[1.0, 3.0, 5.0])
    assert rd.money_recall(bought, PRED, 2, **options) == pytest.approx(
        (2 / 4 + 6 / 5) / 2, abs=1e-15
    )


def test_refunds_are_clipped_when_asked():
    pred, true = PRED.assign(price=[-5.0, 3.0, 2.0, 2.0]), TRUE.assign(price=[1.0, -1.0, 2.0])
    assert rd.money_precision(true, pred, 2, value_col="price", negative="clip") == 0.75
    assert rd.money_recall(true, pred, 2, value_col="price", negative="clip") == 2.0
    assert rd.money_ndcg(true, pred, 2, value_col="price", negative="clip") == 1.0


# -- labelled candidates


def test_from_labelled():
    lists = {
        "q": [1, 1, 2],
        "day": ["x", "x", "y"],
        "doc": ["a", "b", "a"],
        "label": [True, False, True],
    }
    frame = pd.DataFrame({**lists, "m1": [1, 2, 3], "m2": [0.5, 0.1, 0.2]}, index=[4, 4, 4])
    before = frame.copy(deep=True)
    true, pred = rd.logs.from_labelled(
        frame,
        relevance_col="label",
        score_cols=["m1", "m2"],
        user_col=["q", "day"],
        item_col="doc",
        model_col="who",
    )
    pd.testing.assert_frame_equal(frame, before)
    assert list(true.columns) == ["q", "day", "doc", "relevance"]
    assert true["relevance"].tolist() == [1.0, 0.0, 1.0]
    assert list(pred.columns) == ["who", "q", "day", "doc", "score"]
    assert pred["who"].tolist() == ["m1"] * 3 + ["m2"] * 3
    assert pred["score"].tolist() == [1, 2, 3, 0.5, 0.1, 0.2]
    found = rd.evaluate(true, pred, "mrr@2", user_col=["q", "day"], item_col="doc", by="who")
    assert found.per_user["mrr@2"].tolist() == [0.5, 1.0, 1.0, 1.0]


def test_from_labelled_names_what_is_missing():
    frame = pd.DataFrame({"user_id": [1], "item_id": [1], "label": ["yes"], "als": [1.0]})
    with pytest.raises(rd.ColumnError, match=r"'bpr'.*'als'"):
        rd.logs.from_labelled(frame, relevance_col="label", score_cols="bpr")
    with pytest.raises(rd.ColumnError, match="'relevant'"):
        rd.logs.from_labelled(frame, relevance_col="relevant", score_cols="als")
    with pytest.raises(rd.DataError, match=r"frame\['label'\]"):
        rd.logs.from_labelled(frame, relevance_col="label", score_cols="als")
    frame.columns = pd.MultiIndex.from_product([["a"], frame.columns])
    with pytest.raises(rd.ColumnError, match="on 2 levels"):
        rd.logs.from_labelled(frame, relevance_col="label", score_cols="als")


# -- odd frames


def test_the_index_is_no_data():
    true = TRUE.set_index("user_id", drop=False)  # the name is both an index level and a column
    pred = PRED.set_index(["item_id", "score"], drop=False)
    assert rd.mrr(true, pred) == 1.0


def test_column_names_that_are_no_strings():
    true, pred = (
        TRUE.set_axis([0, 1, 2], axis=1),
        PRED.assign(m="m").set_axis([0, 1, 2, ("by", "m")], axis=1),
    )
    result = rd.evaluate(
        true, pred, "ndcg@2", user_col=0, item_col=1, score_col=2, relevance_col=2, by=[("by", "m")]
    )
    assert list(result.per_user.columns) == ["('by', 'm')", "0", "n_true", "n_pred", "ndcg@2"]
    assert result.summary["('by', 'm')"].tolist() == ["m"]
    assert result.spec["user_col"] == ["0"]


def test_a_column_that_is_called_0_is_named_and_no_false():
    true = pd.DataFrame({"user_id": [1, 1], "item_id": ["a", "b"], 0: [3.0, 1.0], "f": [1, 2]})
    pred = pd.DataFrame({"user_id": [1, 1], "item_id": ["b", "a"], 0: [1.0, 2.0], "f": [2, 1]})
    assert rd.ndcg(true, pred, score_col=0, relevance_col=0) == 1.0
    profile = rd.diagnostics.data_profile(true, pred, score_col=0).set_index("quantity")["value"]
    assert profile["score_q50"] == 1.5
    with pytest.raises(rd.OptionError, match="are both given"):
        rd.ndcg(true, pred, score_col=0, rank_col="f")
    folds = [frame.rename(columns={0: "score", "f": 0}) for frame in (true, pred)]
    result = rd.evaluate(*folds, "recall", by=0, by_in_true=0)
    assert result.summary["value"].tolist() == [1.0, 1.0]


def test_results_of_columns_called_by_numbers_are_stored(tmp_path):
    true = TRUE.assign(weight=2.0).rename(columns={"relevance": 3, "weight": 5})
    pred = PRED.assign(device="tv").rename(columns={"score": 7, "device": 6})
    named = {"score_col": 7, "relevance_col": 3, "weight_col": 5, "carry": 6}
    result = rd.evaluate(true, pred, "ndcg@2", **named)
    assert {"5", "6", "ndcg@2"} < set(result.per_user.columns)
    result.to_parquet(tmp_path / "run")
    assert rd.read_parquet(tmp_path / "run") == result


def test_columns_that_are_not_named_may_hold_anything():
    true = TRUE.assign(junk=[[1], {}, None])
    pred = PRED.assign(junk=[[1], {}, None, 2])
    assert rd.mrr(true, pred) == 1.0


def test_a_view_of_a_frame():
    both = pd.concat([PRED, PRED.assign(score=-PRED["score"])])
    assert rd.mrr(TRUE, both.iloc[::2][:2]) == rd.mrr(TRUE, both.iloc[::2][:2].copy())


RUN = {1: {10: 0.1, 20: 0.9}, 2: {14: 0.2, 12: 0.7}}  # best first: 20, 10 and 12, 14
JUDGED = {1: {10: 2.0, 11: 1.0}, 2: {12: 1.0}}


def test_a_mapping_of_numbers_may_be_either_frame():
    assert (
        rd.mrr(rd.logs.from_dict(JUDGED), rd.logs.from_dict(RUN), k=2)
        == rd.mrr(JUDGED, RUN, k=2)
        == (0.5 + 1) / 2
    )
    assert rd.mrr(rd.logs.from_dict(JUDGED), {1: [20, 10], 2: [12]}, k=2) == 0.75
    assert rd.mrr(rd.logs.from_dict(JUDGED), rd.logs.from_dict({1: [20, 10], 2: [12]}), k=2) == 0.75


@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize("number", [float, np.float32])
def test_pairs_of_items_and_numbers_are_a_mapping_too(kind, number):
    pairs = {
        user: [kind((item, number(one))) for item, one in items.items()]
        for user, items in RUN.items()
    }
    assert rd.mrr(JUDGED, pairs, k=2) == 0.75
    assert rd.mrr(JUDGED, pairs | {3: []}, k=2) == 0.75
    true = {
        user: [kind((str(item), one)) for item, one in items.items()]
        for user, items in JUDGED.items()
    }
    # The gains of user 1 are 2 and 1, of which the list has the first one at rank 2.
    ndcg = (2 / np.log2(3)) / (2 + 1 / np.log2(3))
    found = rd.ndcg(true, {1: ["20", "10"], 2: ["12"]}, k=2)
    assert found == pytest.approx((ndcg + 1) / 2)
    frame = rd.logs.from_dict(pairs, value_name="score")
    assert frame["item_id"].tolist() == [10, 20, 14, 12]
    assert frame["score"].tolist() == pytest.approx([0.1, 0.9, 0.2, 0.7])
    assert rd.logs.from_dict({1: [kind((10, 0.5)), kind((10, 0.4))]})["item_id"].tolist() == [
        10,
        10,
    ]


def test_ids_of_two_parts_are_no_pairs():
    for ids in ([("shop", 7), ("shop", 8)], [("a", "b")], [("a", True)]):
        assert rd.logs.from_dict({1: ids})["item_id"].tolist() == ids
        assert rd.recall({1: ids}, {1: ids}, k=2) == 1.0
    with pytest.raises(
        rd.IdTypeError, match=r"of items with numbers are a mapping: \{item: number\}"
    ):
        rd.mrr({1: [10]}, {1: [(10, 2), (11, 1)]}, k=2)


class Run:
    def to_dict(self):
        return RUN


class Lists:
    def to_df(self):
        return rd.logs.from_dict(RUN)


@pytest.mark.parametrize(
    ("data", "method"), [(Run(), "to_dict"), (Lists(), "to_df"), (pd.Series([[1]]), "to_dict")]
)
def test_objects_of_other_libraries_say_what_they_can_become(data, method):
    with pytest.raises(TypeError, match=f"; pass what pred.{method}\\(\\) returns"):
        rd.mrr(JUDGED, data, k=2)
    with pytest.raises(TypeError, match=f"; pass what true.{method}\\(\\) returns"):
        rd.mrr(data, RUN, k=2)
