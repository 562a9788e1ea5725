"""`exclude=`: the rows of both frames with such a pair go out before lists are ranked, as if they
were not given."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recdf as rd

METRICS = [
    "ndcg",
    "recall",
    "precision",
    "mapr",
    "mrr",
    "hitrate",
    "first_rank",
    "err",
    "auc",
    "confusion@3",
]

TRUE = pd.DataFrame({"user_id": [1, 1, 2, 2, 3], "item_id": [10, 11, 10, 12, 13]})
PRED = pd.DataFrame(
    {
        "user_id": [1, 1, 1, 2, 2, 2, 3, 3],
        "item_id": [20, 10, 11, 10, 30, 12, 40, 41],
        "rank": [1, 2, 3, 1, 2, 3, 1, 2],
    }
)
SEEN = pd.DataFrame({"user_id": [1, 2, 2, 3, 3, 9], "item_id": [20, 10, 99, 40, 41, 10]})


def without(frame, seen, keys):
    """The rows of a frame whose pair is not in `seen`: the slow way."""
    pairs = set(zip(*(seen[name] for name in [*keys, "item_id"]), strict=True))
    rows = zip(*(frame[name] for name in [*keys, "item_id"]), strict=True)
    return frame[[row not in pairs for row in rows]]


def test_by_hand():
    """User 1 is left with 10, 11; user 2 with 30, 12, and wants 12 alone; user 3 has no
    recommendation."""
    result = rd.evaluate(TRUE, PRED, ["recall", "mrr", "precision"], k=2, exclude=SEEN)
    expected = pd.DataFrame(
        {
            "user_id": [1, 2, 3],
            "n_true": [2, 1, 1],
            "n_pred": [2, 2, 0],
            "recall@2": [1.0, 1.0, 0.0],
            "mrr@2": [1.0, 0.5, 0.0],
            "precision@2": [1.0, 0.5, 0.0],
        }
    )
    pd.testing.assert_frame_equal(result.per_user, expected)
    assert result.spec["counts"] == {"exclude_rows": 6, "true_excluded": 1, "pred_excluded": 4}
    table = result.spec["side_tables"]["exclude"]
    assert (table["columns"], table["rows"]) == (["user_id", "item_id"], 6)


def test_metrics_and_mappings_take_it():
    assert rd.recall(TRUE, PRED, k=2, exclude=SEEN) == pytest.approx(2 / 3)
    frame = rd.recall.per_user(TRUE, PRED, k=2, exclude=SEEN)
    assert frame["recall@2"].tolist() == [1.0, 1.0, 0.0]
    seen = {"ann": ["a"], "bob": ["c"]}
    assert rd.recall({"ann": ["b"]}, {"ann": ["a", "b"]}, k=1, exclude=seen) == 1.0


def test_a_user_of_a_mapping_stays_without_truth_and_one_of_a_frame_goes():
    true, pred, seen = (
        {"ann": ["a"], "bob": ["b"]},
        {"ann": ["a", "x"], "bob": ["b"]},
        {"ann": ["a"]},
    )
    result = rd.evaluate(true, pred, "recall", k=1, exclude=seen)
    assert result.per_user["n_true"].tolist() == [0, 1]
    assert result.per_user["recall@1"].isna().tolist() == [True, False]
    frame = pd.DataFrame({"user_id": ["ann", "bob"], "item_id": ["a", "b"]})
    assert rd.evaluate(frame, pred, "recall", k=1, exclude=seen).per_user["user_id"].tolist() == [
        "bob"
    ]
    kept = rd.evaluate(frame, pred, "recall", k=1, exclude=seen, users=["ann", "bob"])
    assert kept.per_user["n_true"].tolist() == [0, 1]


def test_metrics_of_pred_alone():
    result = rd.evaluate(
        None, PRED, "coverage", k=1, exclude=SEEN, items=[10, 11, 12, 30, 40, 50, 60, 70]
    )
    assert result.summary["value"].tolist() == [
        0.25
    ]  # 10 of user 1 and 30 of user 2; the catalogue stays whole
    assert "true_excluded" in result.spec["counts"]


@st.composite
def frames(draw):
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n_users, n_items = draw(st.integers(1, 6)), draw(st.integers(1, 9))

    def rows(n):
        return pd.DataFrame(
            {
                "user_id": rng.integers(0, n_users, n),
                "session": rng.integers(0, 2, n),
                "item_id": rng.integers(0, n_items, n),
            }
        )

    true, pred, seen = (
        rows(draw(st.integers(low, high))) for low, high in ((1, 25), (1, 50), (0, 20))
    )
    true["relevance"] = rng.integers(0, 4, len(true)).astype(float)
    pred["score"] = rng.integers(0, 6, len(pred)).astype(float)
    pred["model"] = rng.choice(["a", "b"], len(pred))
    order = draw(st.sampled_from(["user_id", None]))
    return tuple(
        one if order is None else one.sort_values(order, kind="stable")
        for one in (true, pred, seen)
    )


OPTIONS = st.fixed_dictionaries(
    {
        "users": st.sampled_from(["true", "pred", "both", "all"]),
        "ties": st.sampled_from(["item_desc", "item_asc", "row", "worst"]),
        "duplicates": st.sampled_from(["drop", "keep"]),
        "judged_only": st.booleans(),
        "min_relevance": st.sampled_from([None, 2.0]),
        "by": st.sampled_from([None, "model"]),
        "user_col": st.sampled_from(["user_id", ["user_id", "session"]]),
    },
    optional={"like": st.sampled_from(["ranx", "trec_eval"]), "rank_col": st.just("score")},
)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::recdf.RecdfWarning")
@given(frames(), OPTIONS, st.sampled_from([["user_id"], ["session"], ["user_id", "session"]]))
def test_as_if_the_rows_were_not_given(data, options, keys):
    """The result is that of the frames that plain Python filters. A recommender without rows stays
    in the result."""
    true, pred, seen = data
    keys = [name for name in keys if name in options["user_col"]] or ["user_id"]
    if options["user_col"] == "user_id":
        keys = ["user_id"]
    left = [without(frame, seen, keys) for frame in (true, pred)]
    try:
        expected = rd.evaluate(*left, METRICS, k=[1, 3], **options)
    except rd.RecdfError as error:
        if options["by"] and left[1].empty and len(left[0]) and options["users"] in ("true", "all"):
            # A frame without rows names no recommender; one that has lost its rows has empty lists.
            found = rd.evaluate(
                true, pred, METRICS, [1, 3], exclude=seen[[*keys, "item_id"]], **options
            )
            assert (found.per_user["n_pred"] == 0).all()
            return
        with pytest.raises(type(error)):
            rd.evaluate(true, pred, METRICS, k=[1, 3], exclude=seen[[*keys, "item_id"]], **options)
        return
    result = rd.evaluate(true, pred, METRICS, k=[1, 3], exclude=seen[[*keys, "item_id"]], **options)
    found = result.per_user
    if options["by"]:
        there = found["model"].isin(left[1]["model"])
        assert (found.loc[~there, "n_pred"] == 0).all()
        order = [
            "model",
            *([options["user_col"]] if options["user_col"] == "user_id" else options["user_col"]),
        ]
        found = found[there].sort_values(order, ignore_index=True)
        pd.testing.assert_frame_equal(
            found, expected.per_user.sort_values(order, ignore_index=True), rtol=1e-12
        )
    else:
        pd.testing.assert_frame_equal(result.per_user, expected.per_user, rtol=1e-12)
        pd.testing.assert_frame_equal(result.summary, expected.summary, rtol=1e-12)
    assert result.spec["counts"]["true_excluded"] == len(true) - len(left[0])
    assert result.spec.get("truth") == expected.spec.get("truth")


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["str", "category", "string", "int32", "Int64", "datetime64[ns]"])
def test_ids_of_any_dtype(kind):
    def cast(frame, to):
        return frame.assign(
            **{
                name: frame[name].map(make).astype(plain).astype(to)
                for name in ("user_id", "item_id")
            }
        )

    text = kind in ("str", "category", "string")
    make, plain = (
        ("i{}".format, "str") if text else (int, "datetime64[s]" if "date" in kind else "int64")
    )
    expected = rd.evaluate(TRUE, PRED, "recall", k=2, exclude=SEEN)
    result = rd.evaluate(
        cast(TRUE, plain), cast(PRED, plain), "recall", k=2, exclude=cast(SEEN, kind)
    )
    assert result.per_user["recall@2"].tolist() == expected.per_user["recall@2"].tolist()


@pytest.mark.parametrize("name", ["user_id", "item_id"])
def test_ids_of_another_type_are_an_error(name):
    seen = SEEN.astype({name: "str"})
    with pytest.raises(
        rd.IdTypeError,
        match=rf"true\['{name}'\] holds integer ids .* exclude\['{name}'\] string ids",
    ):
        rd.evaluate(TRUE, PRED, "recall", exclude=seen)


def test_nulls_and_repeated_rows():
    seen = pd.concat(
        [SEEN.astype({"user_id": "Int64"}), SEEN.astype({"user_id": "Int64"})], ignore_index=True
    )
    expected = rd.evaluate(TRUE, PRED, "recall", k=2, exclude=SEEN)
    repeated = rd.evaluate(TRUE, PRED, "recall", k=2, exclude=seen)
    pd.testing.assert_frame_equal(repeated.per_user, expected.per_user)
    seen.loc[0, "user_id"] = pd.NA
    with pytest.raises(rd.NullKeyError, match="exclude has null ids: 1 in exclude"):
        rd.evaluate(TRUE, PRED, "recall", k=2, exclude=seen)
    dropped = rd.evaluate(TRUE, PRED, "recall", k=2, exclude=seen, null_keys="drop")
    pd.testing.assert_frame_equal(dropped.per_user, expected.per_user)
    assert dropped.spec["counts"] == {
        "exclude_null_keys": 1,
        "exclude_rows": 11,
        "true_excluded": 1,
        "pred_excluded": 4,
    }


BAD = {
    "no item column": (
        pd.DataFrame({"user_id": [1]}),
        rd.ColumnError,
        "exclude has no column 'item_id'",
    ),
    "no user column": (
        pd.DataFrame({"item_id": [1]}),
        rd.ColumnError,
        "exclude has no column 'user_id'",
    ),
    "no frame": (5, TypeError, "exclude"),
}


@pytest.mark.parametrize(("seen", "error", "words"), BAD.values(), ids=BAD)
def test_bad_tables(seen, error, words):
    with pytest.raises(error, match=words):
        rd.evaluate(TRUE, PRED, "recall", exclude=seen)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (
            {"user_id": [70], "item_id": [10]},
            r"exclude= has no user of true or pred.*exclude\['user_id'\]: 70",
        ),
        (
            {"user_id": [1], "item_id": [77]},
            r"exclude= has no pair of true or pred.*exclude\['item_id'\]: 77",
        ),
        (
            {"user_id": [3], "item_id": [10]},
            "exclude= has no pair of true or pred, so no row was left out",
        ),
    ],
)
def test_an_exclusion_that_leaves_out_nothing_is_told(seen, words):
    with pytest.warns(rd.NoOverlapWarning, match=words):
        result = rd.evaluate(TRUE, PRED, "recall", exclude=pd.DataFrame(seen))
    assert result.spec["counts"] == {"exclude_rows": 1, "true_excluded": 0, "pred_excluded": 0}


def test_an_exclusion_of_all_truth_says_so():
    with pytest.raises(
        rd.EmptyPopulationError, match=r"true has 0 rows.*without the rows that exclude= left out$"
    ):
        rd.evaluate(TRUE, PRED, "recall", exclude=TRUE)


def test_a_notebook_says_what_was_left_out():
    result = rd.evaluate(TRUE, PRED, "recall", exclude=SEEN)
    assert "exclude= (6 rows) left out 4 rows of pred and 1 of true." in repr(result)
    assert "left out" not in repr(rd.evaluate(TRUE, PRED, "recall"))


def test_inputs_stay_as_they_are():
    seen, true, pred = SEEN.copy(), TRUE.copy(), PRED.copy()
    rd.evaluate(true, pred, "recall", exclude=seen.assign(time=1))
    for now, before in ((seen, SEEN), (true, TRUE), (pred, PRED)):
        pd.testing.assert_frame_equal(now, before)


def test_columns_beside_the_ids_do_not_count():
    plain, more = (
        rd.evaluate(TRUE, PRED, "recall", exclude=one) for one in (SEEN, SEEN.assign(time=1.5))
    )
    assert plain.spec == more.spec


@pytest.mark.long
def test_conventions_are_compared_without_the_rows():
    given = (METRICS[:3], 2)
    table = rd.diagnostics.compare_conventions(TRUE, PRED, *given, exclude=SEEN)
    left = [without(frame, SEEN, ["user_id"]) for frame in (TRUE, PRED)]
    pd.testing.assert_frame_equal(table, rd.diagnostics.compare_conventions(*left, *given))


@pytest.mark.long
def test_a_gate_sees_another_exclusion():
    result = rd.evaluate(TRUE, PRED, "recall", k=2)
    one, more = (rd.evaluate(TRUE, PRED, "recall", k=2, exclude=SEEN[:n]) for n in (1, 2))
    for pair in ((one, result), (result, one), (one, more), (one, one)):
        found = rd.gate(*pair, {"recall@2": "-0.5"}, min_lists=1)
        checks = found.checks.set_index("check")["found"]
        assert checks["exclude="] == ("same" if pair[0] is pair[1] else "differs")
        assert found.verdict == "undecided" or pair[0] is pair[1]
    assert (
        "exclude="
        not in rd.gate(result, result, {"recall@2": "-0.5"}, min_lists=1).checks["check"].tolist()
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("n_items", [7, 600], ids=["small catalogue", "large catalogue"])
@pytest.mark.parametrize(
    "block_rows",
    [500, 2**19],
)
@pytest.mark.parametrize("order", ["sorted", "shuffled", "users in another order"])
def test_rows_go_out_of_blocks_of_any_size(resized, n_items, block_rows, order):
    rng = np.random.default_rng(n_items)
    frames = []
    for users, n in (
        (300, 2000),
        (290, 4000),
        (320, 3000),
    ):  # some users occur in one of the frames only
        frame = pd.DataFrame(
            {"user_id": rng.integers(0, users, n), "item_id": rng.integers(0, n_items, n)}
        )
        frames.append(
            frame if order == "shuffled" else frame.sort_values("user_id", ignore_index=True)
        )
    true, pred, seen = frames
    if order == "users in another order":
        seen = seen.iloc[::-1]
    true, pred = true.drop_duplicates(), pred.drop_duplicates()
    left = [without(frame, seen, ["user_id"]) for frame in (true, pred)]
    resized(list_block_rows=block_rows, group_rows=2 * block_rows)
    found = rd.evaluate(true, pred, METRICS[:-1], k=3, exclude=seen)
    expected = rd.evaluate(*left, METRICS[:-1], k=3)
    by_user = [
        result.per_user.sort_values("user_id", ignore_index=True) for result in (found, expected)
    ]
    pd.testing.assert_frame_equal(*by_user)
    assert found.spec["counts"]["true_excluded"] == len(true) - len(left[0])
