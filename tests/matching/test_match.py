"""Matching: populations, order, ties, repeated rows, judged items; and names of columns."""

import decimal
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry.seeded import quietly

import recdf as rd

# -- by hand


def lists(text):
    """Frame of (user, item) rows from "u: a b, v: c"."""
    rows = [
        (user, item)
        for part in text.split(", ")
        for user, items in [part.split(": ")]
        for item in items.split()
    ]
    return pd.DataFrame(rows, columns=["user_id", "item_id"])


TRUE = lists("u: a b, v: c, w: d")
PRED = lists("x: a, v: z c, u: b a")


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        ("true", {"u": 1.0, "v": 0.5, "w": 0.0}),
        ("pred", {"x": 0.0, "v": 0.5, "u": 1.0}),
        ("both", {"u": 1.0, "v": 0.5}),
        ("all", {"u": 1.0, "v": 0.5, "w": 0.0, "x": 0.0}),
        (["w", "y", "v", "w"], {"w": 0.0, "y": 0.0, "v": 0.5}),
        (pd.Series(["x", "u"], index=[5, 5]), {"x": 0.0, "u": 1.0}),
        (pd.Index(["x", "u"]), {"x": 0.0, "u": 1.0}),
        (np.array(["x", "u"], dtype=object), {"x": 0.0, "u": 1.0}),
        (
            pd.DataFrame({"other": [1, 2], "user_id": ["x", "u"]}, index=[1, 1]),
            {"x": 0.0, "u": 1.0},
        ),
        (dict.fromkeys(["x", "u"]).keys(), {"x": 0.0, "u": 1.0}),
    ],
)
def test_population(users, expected):
    result = rd.evaluate(TRUE, PRED, "mrr@5", users=users)
    assert dict(zip(result.per_user["user_id"], result.per_user["mrr@5"], strict=True)) == expected
    assert result.per_user["user_id"].tolist() == list(expected)
    assert result.summary["value"].item() == pytest.approx(
        sum(expected.values()) / len(expected), abs=1e-15
    )
    assert result.summary["n"].item() == len(expected)


def test_population_per_value_of_by():
    pred = pd.concat([lists("u: b, v: c").assign(model="m"), lists("w: d, x: d").assign(model="n")])
    found = rd.evaluate(TRUE, pred, "hitrate@1", by="model").per_user
    assert list(zip(found["model"], found["user_id"], found["hitrate@1"], strict=True)) == [
        ("m", "u", 1.0),
        ("m", "v", 1.0),
        ("m", "w", 0.0),
        ("n", "u", 0.0),
        ("n", "v", 0.0),
        ("n", "w", 1.0),
    ]
    found = rd.evaluate(TRUE, pred, "hitrate@1", by="model", users="pred").per_user
    assert found[["model", "user_id"]].to_numpy().tolist() == [
        ["m", "u"],
        ["m", "v"],
        ["n", "w"],
        ["n", "x"],
    ]
    found = rd.evaluate(TRUE, pred, "hitrate@1", by="model", users="both").per_user
    assert found[["model", "user_id"]].to_numpy().tolist() == [["m", "u"], ["m", "v"], ["n", "w"]]
    found = rd.evaluate(TRUE, pred, "hitrate@1", by="model", users="all").per_user
    assert found[["model", "user_id"]].to_numpy().tolist() == [
        ["m", "u"],
        ["m", "v"],
        ["m", "w"],
        ["n", "u"],
        ["n", "v"],
        ["n", "w"],
        ["n", "x"],
    ]


def test_a_user_with_judged_items_alone_is_of_the_population():
    true = lists("u: a, v: b").assign(gain=[0.0, 1.0])
    result = rd.evaluate(true, PRED, ["hitrate@5", "recall@5"], relevance_col="gain", ties="row")
    assert result.per_user["n_true"].tolist() == [0, 1]
    assert result.per_user["hitrate@5"].tolist() == [0.0, 0.0]
    assert math.isnan(result.per_user["recall@5"][0])
    assert result.summary["n_undefined"].tolist() == [0, 1]


def test_counts_are_those_of_the_whole_list():
    pred = pd.concat([PRED, PRED.iloc[[1]]])
    found = quietly(rd.evaluate, TRUE, pred, "mrr@1").per_user
    assert found["n_true"].tolist() == [2, 1, 1]
    assert found["n_pred"].tolist() == [2, 2, 0]
    found = rd.evaluate(TRUE, pred, "mrr@1", duplicates="keep").per_user
    assert found["n_pred"].tolist() == [2, 3, 0]


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        ({}, {}, {"by": "row", "column": None}),
        ({"score": [1, 2]}, {}, {"by": "score", "column": "score"}),
        ({"rank": [2, 1]}, {}, {"by": "rank", "column": "rank"}),
        ({"rank": [2, 1], "score": [1, 2]}, {}, {"by": "rank", "column": "rank"}),
        (
            {"rank": [1, 2], "score": [1, 2]},
            {"score_col": "score"},
            {"by": "score", "column": "score"},
        ),
        (
            {"place": [2, 1], "score": [2, 1]},
            {"rank_col": "place"},
            {"by": "rank", "column": "place"},
        ),
        ({"rank": [1, 2], "score": [1, 2]}, {"by": "rank"}, {"by": "score", "column": "score"}),
    ],
)
def test_the_order_of_pred_and_its_record(columns, options, expected):
    pred = lists("u: x a").assign(**columns)
    result = quietly(
        rd.evaluate, lists("u: a"), pred, "mrr@5", **options
    )  # one by value has no item of true
    assert result.spec["order"] == expected
    assert result.per_user["mrr@5"].max() == (0.5 if expected["by"] == "row" else 1.0)


@pytest.mark.parametrize(
    ("ties", "expected"),
    [("item_desc", 1 / 2), ("item_asc", 1 / 3), ("row", 1 / 4), ("worst", 1 / 4)],
)
def test_ties(ties, expected):
    # By value 10 > 9 > 2 > 1; the hit is 9, in the last row.
    pred = pd.DataFrame({"user_id": 1, "item_id": [10, 2, 1, 9], "score": 0.5})
    true = pd.DataFrame({"user_id": [1], "item_id": [9]})
    for label in ("int64", "category"):
        assert (
            rd.mrr(true.astype({"item_id": label}), pred.astype({"item_id": label}), ties=ties)
            == expected
        )


def test_ties_of_strings_go_by_code_point():
    pred = pd.DataFrame(
        {"user_id": 1, "item_id": ["é", "10", "9", "B", "b", "😀", "", "ﬀ"], "score": 0}
    )
    true = pred[["user_id", "item_id"]]
    order = [
        "😀",
        "ﬀ",
        "é",
        "b",
        "B",
        "9",
        "10",
        "",
    ]  # U+1F600 is above U+FB00, though not in UTF-16
    for rank, item in enumerate(order, start=1):
        assert rd.mrr(true[true["item_id"] == item], pred, k=8) == 1 / rank


def test_ties_of_categories_ignore_their_order():
    pred = pd.DataFrame(
        {"user_id": 1, "item_id": pd.Categorical(["a", "b"], ["b", "a"], ordered=True), "score": 0}
    )
    assert rd.mrr(lists("1: b").astype({"user_id": int}), pred) == 1.0


def test_scores_tie_only_where_they_are_equal():
    pred = pd.DataFrame({"user_id": 1, "item_id": [1, 2], "score": [2**60 + 1, 2**60]})
    true = pd.DataFrame({"user_id": [1], "item_id": [1]})
    assert rd.mrr(true, pred, ties="raise") == 1.0  # as floats they would be equal
    assert rd.mrr(true, pred.assign(score=pred["score"].astype("uint64") + 2**63)) == 1.0
    assert rd.mrr(true, pred.assign(score=[0.0, -0.0])) == 0.5
    assert rd.mrr(true, pred.assign(score=[np.inf, np.inf])) == 0.5
    assert rd.mrr(true, pred.assign(score=[-np.inf, np.nan]), nan_score="last") == 1.0
    assert rd.mrr(true, pred.assign(score=[True, False])) == 1.0
    assert rd.mrr(true, pred.assign(score=pd.array([2, None], "Int64")), nan_score="last") == 1.0
    assert rd.mrr(true, pred.assign(score=[decimal.Decimal(2), decimal.Decimal(1)])) == 1.0


@pytest.mark.filterwarnings("ignore::recdf.RankWarning")
def test_tied_ranks_are_ties():
    pred = lists("u: a b").assign(rank=[1, 1])
    assert rd.mrr(lists("u: a"), pred) == 0.5
    with pytest.raises(rd.TieError):
        rd.mrr(lists("u: a"), pred, ties="raise")


def test_equal_scores_of_two_lists_are_no_tie():
    assert rd.mrr(TRUE, PRED.assign(score=[1, 2, 1, 2, 1]), ties="raise") == pytest.approx(
        (1 + 0.5) / 3
    )


def test_repeated_rows():
    true = lists("u: a b a").assign(gain=[1.0, 2.0, 3.0])
    pred = lists("u: x a x a b").assign(score=[5, 4, 6, 3, 2])
    options = {"relevance_col": "gain", "k": 10}
    assert (
        quietly(rd.dcg, true, pred, discount="none", **options) == 5.0
    )  # the larger gain of a, and b
    assert quietly(rd.mrr, true, pred, **options) == 0.5  # x at its best rank, then a
    assert rd.mrr(true, pred, duplicates="keep", **options) == 1 / 3
    assert (
        rd.dcg(true, pred, duplicates="keep", discount="none", **options) == 6.0
    )  # each a matches one row
    assert rd.recall(true, pred, duplicates="keep", **options) == 1.0


def test_condensed_lists_close_up_and_stay_in_the_population():
    true = lists("u: a b, v: c").assign(gain=[1.0, 0.0, 1.0])
    pred = lists("u: x b y a, v: z, w: z")
    found = rd.evaluate(
        true, pred, ["mrr@5", "precision(divisor=shown)@5"], relevance_col="gain", judged_only=True
    )
    assert found.per_user["mrr@5"].tolist() == [0.5, 0.0]
    assert found.per_user["n_pred"].tolist() == [2, 0]
    assert found.spec["counts"] == {"pred_unjudged": 3, "lists_judged_alike": 1}
    found = rd.evaluate(true, pred, "mrr@5", relevance_col="gain", judged_only=True, users="pred")
    assert found.per_user["user_id"].tolist() == ["u", "v", "w"]


def test_min_relevance_keeps_what_is_at_the_bound():
    true = lists("u: a b c").assign(gain=[0.4, 0.5, 0.6])
    assert rd.evaluate(
        true, lists("u: a b"), "hits@5", relevance_col="gain", min_relevance=0.5
    ).per_user[["n_true", "hits@5"]].to_numpy().tolist() == [[2, 1]]


def test_ids_beyond_2_to_53_stay_exact():
    big = 2**53
    true = pd.DataFrame({"user_id": [big, big + 1], "item_id": [-big - 1, big + 1]})
    pred = pd.DataFrame({"user_id": [big, big + 1], "item_id": [-big, big + 1]})
    assert rd.hitrate.per_user(true, pred)["hitrate@10"].tolist() == [0.0, 1.0]
    assert rd.hitrate.per_user(true, pred)["user_id"].tolist() == [big, big + 1]


NAMES = [
    0,
    5,
    ("a", "b"),
    ("user_id",),
    "",
    "rank",
    "score",
    "row",
    "item",
    "user",
    "code",
    "index",
    "level_0",
    "0",
    "@",
    "a@1",
    "ndcg@1",
    "é",
]


@pytest.mark.long
@given(st.lists(st.sampled_from(NAMES), min_size=5, max_size=5, unique=True), st.booleans())
def test_any_column_names(names, composite):
    """Columns may be called anything, or the call says which name is in the way."""
    user, other, item, by, number = names
    true, pred = {}, {}
    for name, values in ((user, [1, 2]), (other, [5, 5]), (item, [3, 4])):
        true[name], pred[name] = values, values
    pred[by], pred[number] = ["m", "m"], [0.5, 0.4]
    true, pred = (
        pd.DataFrame(
            frame.values(), index=pd.Index(list(frame), tupleize_cols=False)
        ).T.infer_objects()
        for frame in (true, pred)
    )
    user_col = [user, other] if composite else [user]
    try:
        result = rd.evaluate(
            true,
            pred,
            ["ndcg@1", "mrr@1"],
            user_col=user_col,
            item_col=item,
            by=[by],
            score_col=number,
        )
    except rd.RecdfError:
        # Only where a name stands for two things.
        taken = [*map(str, user_col), str(by), "ndcg@1", "mrr@1", "n_true", "n_pred"]
        assert (
            len({*taken}) < len(taken)
            or len({*user_col, item, by, number}) < len(user_col) + 3
            or len({user, other, item, by, number}) < 5
        )
        return
    assert list(result.per_user.columns) == [
        str(by),
        *map(str, user_col),
        "n_true",
        "n_pred",
        "ndcg@1",
        "mrr@1",
    ]
    assert result.per_user["mrr@1"].tolist() == [1.0, 1.0]
    assert result.summary.columns[0] == str(by)


def test_a_recommender_that_shares_no_item_is_warned_of():
    pred = pd.DataFrame({"model": ["a", "b"], "user_id": ["u", "u"], "item_id": ["x", "ix"]})
    with pytest.warns(rd.NoOverlapWarning, match="1 of 2 by values .* 'b'"):
        assert rd.evaluate(lists("u: x"), pred, "mrr@1", by="model").summary["value"].tolist() == [
            1.0,
            0.0,
        ]


@pytest.mark.parametrize(
    ("true", "options", "words"),
    [
        ("u: x", {"users": ["w"]}, "none of the given users is in true"),
        ("", {"users": "pred"}, "true has no rows"),
        ("u: x", {"relevance_col": "grade", "min_relevance": 9}, "no row of true is relevant"),
    ],
)
def test_no_possible_hit_is_warned_of(true, options, words):
    frame = pd.DataFrame({"user_id": ["u"], "item_id": ["x"], "grade": [1.0]}).head(
        1 if true else 0
    )
    with pytest.warns(rd.NoOverlapWarning, match=words):
        rd.evaluate(frame, lists("u: x"), "precision@1", **options)


def test_a_recommender_stays_when_all_its_rows_are_dropped():
    scores = [np.nan, 1, np.nan]
    pred = pd.DataFrame(
        {"model": list("bab"), "user_id": ["u"] * 3, "item_id": list("xxy"), "score": scores}
    )
    found = quietly(rd.evaluate, lists("u: x"), pred, "mrr@1", by="model", nan_score="drop").summary
    assert found[["model", "value"]].to_numpy().tolist() == [["b", 0.0], ["a", 1.0]]


@pytest.mark.parametrize("labels", [[0.1, 0.5], [True, False], [1, "one"], [(1, 2), (3, 4)]])
def test_by_values_are_labels_of_any_kind(labels):
    pred = pd.DataFrame({"model": pd.Series(labels), "user_id": ["u", "u"], "item_id": ["x", "x"]})
    found = rd.evaluate(lists("u: x"), pred, "mrr@1", by="model").per_user
    assert found["model"].tolist() == labels
    assert found["mrr@1"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", ["int64", "object", "str", "category"])
def test_a_frame_without_rows_has_no_say_in_the_dtype_of_the_keys(dtype):
    true = pd.DataFrame({"user_id": [3, 1], "item_id": [1, 2]})
    pred = true.iloc[:0].astype({"user_id": dtype}).assign(score=0.0)
    per_user = rd.evaluate(true, pred, "ndcg", users="all").per_user
    assert per_user["user_id"].dtype == "int64"
    assert per_user["user_id"].tolist() == [3, 1]


def test_a_by_value_whose_rows_are_dropped_may_have_been_the_only_fraction():
    frame = pd.DataFrame({"user_id": [1, 2, 3], "item_id": [1, 2, 3]})
    pred = frame.assign(alpha=[0.5, 1.0, 2.0], model=[None, "x", "y"])
    result = rd.evaluate(frame, pred, "recall@1", by=["alpha", "model"], null_keys="drop").summary
    assert result[["alpha", "model", "value"]].to_numpy().tolist() == [
        [1.0, "x", 1 / 3],
        [2.0, "y", 1 / 3],
    ]


@pytest.mark.parametrize(
    ("users", "words"),
    [
        ([1, True, 1, True], "mixes ids of several types: bool, int"),
        (
            [1, decimal.Decimal(1), decimal.Decimal(1), decimal.Decimal(1)],
            "mixes ids of several types",
        ),
        ([0.5, 0.5, 0.5, 1.5], "4 ids are not whole numbers"),
    ],
)
def test_equal_objects_of_several_types_are_refused(users, words):
    frame = pd.DataFrame({"user_id": pd.Series(users, dtype=object), "item_id": [1, 2, 3, 4]})
    with pytest.raises(rd.IdTypeError, match=words):
        rd.evaluate(frame, frame, "recall@1")


def test_a_frame_without_rows_may_have_ids_of_any_kind():
    days = pd.DataFrame({"user_id": pd.date_range("2020", periods=4), "item_id": range(4)})
    none = pd.DataFrame({"user_id": [1], "item_id": [1]}).iloc[:0]
    with pytest.warns(rd.NoOverlapWarning, match="true has no rows"):
        assert len(rd.evaluate(none, days, "recall@1", users="pred").per_user) == 4
