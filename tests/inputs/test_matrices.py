"""Sparse matrices and arrays of the best items: with labels, with positions, and what is wrong with
them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import recdf as rd

USERS, ITEMS = ["ann", "bob", "cat"], ["tea", "jam", "mug", "pen"]
BOUGHT = np.array([[1, 0, 2, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
SCORES = np.array([[0.1, 0.9, 0.5, 0.0], [0.0, 0.3, 0.0, 0.2], [0.7, 0.0, 0.0, 0.0]])
TRUE = pd.DataFrame(
    {"user_id": ["ann", "ann", "bob"], "item_id": ["tea", "mug", "pen"], "relevance": [1, 2, 1]}
)
PRED = pd.DataFrame(
    {
        "user_id": ["ann", "ann", "ann", "bob", "bob", "cat"],
        "item_id": ["tea", "jam", "mug", "jam", "pen", "tea"],
        "score": [0.1, 0.9, 0.5, 0.3, 0.2, 0.7],
    }
)
FORMATS = [
    sp.csr_array,
    sp.csc_array,
    sp.coo_array,
    sp.lil_array,
    sp.dok_array,
    sp.csr_matrix,
    sp.coo_matrix,
]
METRICS = ["ndcg@3", "recall@1", "mrr@3"]


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_sparse_matrix_is_the_long_frame(kind):
    labels = {"users": USERS, "items": ITEMS}
    true, pred = (
        rd.logs.from_sparse(kind(BOUGHT), **labels),
        rd.logs.from_sparse(kind(SCORES), **labels),
    )
    expected = rd.evaluate(TRUE, PRED, METRICS)
    found = rd.evaluate(true, pred, METRICS)
    pd.testing.assert_frame_equal(found.per_user, expected.per_user)
    pd.testing.assert_frame_equal(found.summary, expected.summary)
    assert list(true) == ["user_id", "item_id", "relevance", "score"]  # it may be true or pred
    assert found.spec["order"]["by"] == "score"
    # By hand: ann's list is jam, mug, tea, of which tea has gain 1 and mug 2; bob's is jam, pen.
    ann = (2 / np.log2(3) + 1 / 2) / (2 + 1 / np.log2(3))
    np.testing.assert_allclose(found.per_user["ndcg@3"], [ann, 1 / np.log2(3)])


@pytest.mark.parametrize(
    "labels",
    [
        list,
        tuple,
        np.array,
        pd.Series,
        pd.Index,
        lambda x: pd.Series(x, index=x).astype("category"),
    ],
)
def test_labels_come_in_any_collection(labels):
    found = rd.logs.from_sparse(
        sp.csr_array(SCORES), users=labels(USERS), items=labels(ITEMS), value_name="score"
    )
    pd.testing.assert_frame_equal(
        found.astype({"user_id": str, "item_id": str}),
        PRED.astype({"user_id": str, "item_id": str}),
    )


def test_positions_are_ids_without_labels():
    found = rd.logs.from_sparse(sp.csr_array(SCORES), user_col="u", item_col="i", value_name="s")
    assert found.to_dict("list") == {
        "u": [0, 0, 0, 1, 1, 2],
        "i": [0, 1, 2, 1, 3, 0],
        "s": [0.1, 0.9, 0.5, 0.3, 0.2, 0.7],
    }
    assert found["u"].dtype == found["i"].dtype == "int64"


def test_stored_zeros_are_rows_and_entries_that_stand_twice_are_added():
    twice = sp.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    found = rd.logs.from_sparse(twice, value_name="relevance")
    assert found.to_dict("list") == {"user_id": [0, 1], "item_id": [1, 0], "relevance": [3.0, 0.0]}
    rows = sp.csr_array(([1.0, 2.0], [1, 1], [0, 2]), shape=(1, 2))  # not in canonical form
    assert rd.logs.from_sparse(rows, value_name="n")["n"].tolist() == [3.0]
    assert rows.nnz == 2  # the input is not changed
    assert rd.logs.from_sparse(sp.csr_array(BOUGHT > 0))["relevance"].tolist() == [1.0, 1.0, 1.0]
    assert list(rd.logs.from_sparse(sp.csr_array((3, 4)))) == [
        "user_id",
        "item_id",
        "relevance",
        "score",
    ]


TOP = np.array([[1, 2, 0], [1, 3, -1], [0, -1, -1]])
TOP_SCORES = np.array([[0.9, 0.5, 0.1], [0.3, 0.2, -np.inf], [0.7, np.nan, -np.inf]])
RANKED = pd.DataFrame(
    {
        "user_id": PRED["user_id"],
        "item_id": ["jam", "mug", "tea", "jam", "pen", "tea"],
        "rank": [1, 2, 3, 1, 2, 1],
    }
)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "top",
    [
        TOP,
        TOP.astype("int32"),
        TOP.tolist(),
        np.ma.masked_equal(TOP, -1),
        np.ma.masked_array(np.where(TOP < 0, 7, TOP), TOP < 0),
        pd.DataFrame(TOP),
    ],
)
def test_the_best_items_of_each_user(top):
    pd.testing.assert_frame_equal(rd.logs.from_top_k(top, users=USERS, items=ITEMS), RANKED)
    scored = rd.logs.from_top_k(top, TOP_SCORES, users=USERS, items=ITEMS)
    assert scored["score"].tolist() == [0.9, 0.5, 0.1, 0.3, 0.2, 0.7]
    for pred in (RANKED, scored):
        pd.testing.assert_frame_equal(
            rd.evaluate(TRUE, pred, METRICS).summary, rd.evaluate(TRUE, PRED, METRICS).summary
        )


def test_scores_order_the_items_whatever_the_columns():
    order = np.array([2, 0, 1])  # as argpartition leaves them
    mixed = rd.logs.from_top_k(TOP[:, order], TOP_SCORES[:, order], users=USERS, items=ITEMS)
    assert rd.evaluate(TRUE, mixed, METRICS).summary.equals(
        rd.evaluate(TRUE, PRED, METRICS).summary
    )


def test_items_may_be_the_ids_themselves():
    found = rd.logs.from_top_k(np.array([["tea", "jam"], ["mug", None]], dtype=object))
    assert found.to_dict("list") == {
        "user_id": [0, 0, 1],
        "item_id": ["tea", "jam", "mug"],
        "rank": [1, 2, 1],
    }
    found = rd.logs.from_top_k([[7, 900], [-1, 7]], user_col="u", item_col="i")
    assert found.to_dict("list") == {"u": [0, 0, 1], "i": [7, 900, 7], "rank": [1, 2, 2]}
    assert len(rd.logs.from_top_k(np.empty((0, 3), dtype=int))) == 0


def test_distances_are_not_scores():
    with pytest.warns(
        rd.OrderWarning, match="scores rise along the rows of top.*pass scores=-scores"
    ) as found:
        rd.logs.from_top_k(TOP, -np.where(TOP < 0, -9, TOP_SCORES))
    assert [one.filename for one in found] == [__file__]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: rd.logs.from_sparse(BOUGHT),
            TypeError,
            "matrix is an? .*ndarray.*; expected a sparse matrix of SciPy",
        ),
        (
            lambda: rd.logs.from_sparse(sp.csr_array(BOUGHT), users=USERS[:2]),
            rd.DataError,
            "users holds 2 labels for 3",
        ),
        (
            lambda: rd.logs.from_sparse(sp.csr_array(BOUGHT), items=ITEMS * 2),
            rd.DataError,
            "items holds 8 labels for 4",
        ),
        (
            lambda: rd.logs.from_sparse(sp.csr_array(BOUGHT), users=["a", "b", "a"]),
            rd.DataError,
            r"users holds labels twice \('a'\)",
        ),
        (lambda: rd.logs.from_top_k([1, 2]), TypeError, "top has 1 dimensions; expected two"),
        (
            lambda: rd.logs.from_top_k([[0, 4]], items=ITEMS),
            rd.DataError,
            "items holds 4 labels for 5",
        ),
        (
            lambda: rd.logs.from_top_k([[0, -2]], items=ITEMS),
            rd.DataError,
            r"top holds negative positions \(-2\)",
        ),
        (
            lambda: rd.logs.from_top_k([["tea"]], items=ITEMS),
            TypeError,
            "top holds .* values; expected positions",
        ),
        (
            lambda: rd.logs.from_top_k([[0.5]]),
            TypeError,
            "top holds float64 values; expected positions",
        ),
        (
            lambda: rd.logs.from_top_k(TOP, TOP_SCORES[:, :2]),
            rd.DataError,
            r"shape \(3, 2\), and top has \(3, 3\)",
        ),
        (
            lambda: rd.logs.from_top_k(TOP, users=USERS[:1]),
            rd.DataError,
            "users holds 1 labels for 3",
        ),
        (
            lambda: rd.mrr(sp.csr_array(BOUGHT), PRED),
            TypeError,
            r"pass rd.logs.from_sparse\(true, users=\.\.\., items=",
        ),
        (
            lambda: rd.mrr(TRUE, sp.csr_matrix(SCORES)),
            TypeError,
            r"pass rd.logs.from_sparse\(pred, users=",
        ),
        (
            lambda: rd.check(TRUE, sp.csc_array(SCORES)),
            TypeError,
            r"pass rd.logs.from_sparse\(pred, users=",
        ),
        (
            lambda: rd.mrr(TRUE, TOP),
            TypeError,
            r"expected a DataFrame.*; pass rd.logs.from_top_k\(pred, users=",
        ),
        (lambda: rd.mrr(TRUE, list(TOP)), TypeError, r"dict\(enumerate\(pred\)\)"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("labels", [{"ann": 0, "bob": 1}, {0: "ann", 1: "bob"}])
def test_labels_in_a_mapping_are_an_error(labels):
    """Some map labels to positions and some positions to labels."""
    for call in (
        lambda: rd.logs.from_sparse(sp.csr_array([[1.0], [2.0]]), users=labels),
        lambda: rd.logs.from_top_k([[1], [2]], users=labels),
    ):
        with pytest.raises(
            TypeError, match="users is a mapping; expected the labels in a list, in the order of"
        ):
            call()
