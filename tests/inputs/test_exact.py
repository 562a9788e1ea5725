"""Numbers and ids keep every digit, in whatever dtype they come."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import recdf as rd

BIG = 2**53
TRUE = pd.DataFrame({"user_id": [1], "item_id": ["a"]})


def ranked(values, nan_score="raise", column="score", dtype=None):
    """Rank of item "a" among items whose scores are given; "a" is the first of them."""
    scores = pd.Series(values, dtype=dtype)
    pred = pd.DataFrame({"user_id": 1, "item_id": list("abcdef")[: len(scores)], column: scores})
    return 1 / rd.mrr(TRUE, pred, k=9, nan_score=nan_score, ties="worst")


# "a" has the larger score by 1, or the smaller rank, but for a float64 they are equal.
@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([BIG + 1, BIG, None], "Int64"),
        ([BIG + 1, BIG, None], object),
        ([2**63 + 2, 2**63 + 1, None], "UInt64"),
        ([2**63 + 2, 2**63 + 1, None], object),
        ([2**70 + 1, 2**70, None], object),
        ([BIG + 1, BIG, None], pd.ArrowDtype(pa.int64())),
        ([Decimal(BIG + 1), Decimal(BIG), None], object),
        ([Decimal("0.10000000000000000001"), Decimal("0.1"), None], object),
        (
            [Decimal("9007199254740993.5"), Decimal("9007199254740993.4"), None],
            pd.ArrowDtype(pa.decimal128(30, 1)),
        ),
        ([-BIG, -BIG - 1, None], "Int64"),
    ],
    ids=str,
)
def test_scores_beside_nulls_are_not_rounded(values, dtype):
    assert ranked(values, "last", dtype=dtype) == 1
    assert ranked(values, "drop", dtype=dtype) == 1
    swapped = [values[1], values[0], *values[2:]]
    assert ranked(swapped, "last", dtype=dtype) == 2
    assert ranked(swapped, "last", "rank", dtype) == 1


def test_ordinary_scores_are_kept_as_they_are():
    pred = pd.DataFrame({"user_id": 1, "item_id": ["a", "b"], "score": [Decimal("3.5"), None]})
    true = TRUE.assign(relevance=3.0)
    assert rd.mae(true, pred, nan_score="last") == 0.5
    big = pd.DataFrame({"user_id": 1, "item_id": ["a", "b"], "score": [BIG + 1, None]}).astype(
        {"score": "Int64"}
    )
    assert rd.mae(true, big, nan_score="last") == float(BIG + 1) - 3


# ------------------------------------------------------------------------------------------------
# ids


def hits(true_ids, pred_ids):
    """How many of the recommended ids are hits."""
    true = pd.DataFrame({"user_id": 1, "item_id": true_ids})
    pred = pd.DataFrame({"user_id": 1, "item_id": pred_ids})
    return rd.hits(true, pred, k=100)


@pytest.mark.filterwarnings("ignore::recdf.NoOverlapWarning")
def test_datetimes_of_mixed_units_are_instants():
    # In nanoseconds since 1970, the year 2603 wraps around to 2018 or so.
    far = np.array(["2603-10-12T12:34:56"], "datetime64[s]")
    wrapped = (far.astype("int64") * 10**9).view("datetime64[ns]")
    assert hits(far, wrapped) == 0
    assert hits(far, far.astype("datetime64[ms]")) == 1
    near = np.array(["2019-01-02T03:04:05"], "datetime64[s]")
    assert hits(near, near.astype("datetime64[ns]")) == 1
    both = np.concatenate([far, near])
    assert hits(both, np.concatenate([wrapped, near.astype("datetime64[ns]")])) == 1
    assert hits(pd.Series(far), far.astype("datetime64[us]")) == 1


@pytest.mark.parametrize(
    ("dtype", "limit"),
    [
        ("float32", 24),
        ("Float32", 24),
        (pd.ArrowDtype(pa.float32()), 24),
        ("float16", 11),
        ("float64", 53),
    ],
    ids=str,
)
def test_float_ids_may_have_lost_digits(dtype, limit):
    exact = pd.Series([2**limit - 1, 5] if limit > 11 else [2047, 5]).astype(dtype)
    assert hits(exact, [2**limit - 1, 7]) == 1
    rounded = pd.Series([2**limit, 5]).astype(dtype)
    with pytest.raises(rd.IdTypeError, match=rf"not whole numbers below 2\*\*{limit}"):
        hits(rounded, [2**limit, 7])


def odd_ids(dtype):
    """Three ids, two of them with lone surrogates; pandas makes neither a list nor a column of
    strings of them."""
    odd = pd.Index(["a\ud800", "b\udfff", "c"], dtype=object)
    return (
        pd.Series(odd)
        if dtype == "object"
        else pd.Series(pd.Categorical.from_codes([0, 1, 2], odd))
    )


PLAIN = pd.DataFrame({"user_id": ["a", "b", "c"], "item_id": ["a", "b", "c"]})
WITH_IDS = {
    "user_id": lambda ids: rd.evaluate(PLAIN.assign(user_id=ids), PLAIN, "hits@3"),
    "item_id": lambda ids: rd.evaluate(PLAIN, PLAIN.assign(item_id=ids), "hits@3"),
    "users": lambda ids: rd.evaluate(PLAIN, PLAIN, "hits@3", users=ids),
    "list of users": lambda ids: rd.evaluate(PLAIN, PLAIN, "hits@3", users=ids.tolist()),
    "items": lambda ids: rd.evaluate(PLAIN, PLAIN, "coverage@3", items=[*ids, "d"]),
    "mapping": lambda ids: rd.evaluate({ids[0]: ids.tolist()}, PLAIN, "hits@3"),
    "weights": lambda ids: rd.evaluate(PLAIN, PLAIN, "hits@3", weight_col=dict.fromkeys(ids, 1)),
}


@pytest.mark.parametrize("dtype", ["object", "category"])
@pytest.mark.parametrize("role", WITH_IDS)
def test_lone_surrogates_are_no_ids(role, dtype):
    """UTF-8 cannot encode them, so that no file and no engine has them."""
    with pytest.raises(rd.IdTypeError, match=r"\['\w+'\] has '[ab]\\ud...', a text with a lone"):
        WITH_IDS[role](odd_ids(dtype))


ODD = pd.Series(["\ud800", "\ud801"] * 20, dtype=object)
SOME = pd.DataFrame(
    {"user_id": range(40), "item_id": range(40), "m": [0.0, 1.0] * 20, "half": ["a", "b"] * 20}
)
LABELLED = {
    "by": lambda x: rd.evaluate(SOME, x.assign(label=ODD), "hits@3", by="label"),
    "by beside others": lambda x: rd.evaluate(
        SOME, x.assign(label=[True, "\ud800"] * 20), "hits@3", by="label"
    ),
    "category": lambda x: rd.evaluate(x, x, "categories@3", items=x.assign(category=ODD)),
    "lists": lambda x: rd.evaluate(
        x, x, "categories@3", items=x.assign(category=[[one] for one in ODD])
    ),
    "item_by": lambda x: rd.evaluate(x, x, "hits@3", items=x.assign(label=ODD), item_by="label"),
    "aspect": lambda x: rd.evaluate(
        x, x, "subtopic_recall@3", aspects=x[["item_id"]].assign(label=ODD)
    ),
    "segment": lambda x: rd.summarize(x.assign(label=ODD), by="label", metrics=["m"]),
    "variant": lambda x: rd.compare_variants(x.assign(variant=ODD), "m", control="\ud800"),
    "stratum": lambda x: rd.compare_variants(
        x.assign(label=ODD), "m", control="a", variant_col="half", strata="label"
    ),
    "model": lambda x: rd.compare_models(x.assign(model=ODD), "m"),
}


@pytest.mark.parametrize("role", LABELLED)
def test_lone_surrogates_are_no_labels_of_groups(role):
    """pandas 2 takes them all for one label, and pandas 3 fails on them."""
    with pytest.raises(
        rd.IdTypeError,
        match=r"\['(label|category|variant|model)'\] has '\\ud80.', a text with a lone",
    ):
        LABELLED[role](SOME)


def encoded(kind):
    """Users 1, 1, 2 and items a, b, a in columns of one kind of Arrow array."""
    users, items = pa.array([1, 1, 2]), pa.array(["a", "b", "a"])
    if kind == "runs":
        import pyarrow.compute as pc

        return pc.run_end_encode(users), pc.run_end_encode(items)
    with_null = pa.array([None, "a", "b"])
    return users, pa.DictionaryArray.from_arrays(pa.array([1, 2, 1], pa.int32()), with_null)


@pytest.mark.parametrize("kind", ["runs", "a null in the dictionary"])
def test_arrow_encodings_are_decoded_at_the_door(kind):
    users, items = encoded(kind)
    table = pa.table({"user_id": users, "item_id": items})
    frame = pd.DataFrame(
        {
            name: pd.Series(pd.ArrowDtype(table[name].type).__from_arrow__(table[name]))
            for name in table.column_names
        }
    )
    plain = pd.DataFrame({"user_id": [1, 1, 2], "item_id": ["a", "b", "a"]})
    for given in (table, frame):
        assert rd.recall.per_user(given, plain, k=5)["recall@5"].tolist() == [1.0, 1.0]
        result = rd.evaluate(plain, given, ["recall@5", "popularity@5"], log=given)
        assert result.per_user["recall@5"].tolist() == [1.0, 1.0]
        assert result.per_user["user_id"].tolist() == [1, 2]
        assert rd.check(plain, given, k=2)["severity"].eq("error").sum() == 0
    ids = {"users": frame["user_id"], "items": frame["item_id"].iloc[:2]}
    result = rd.evaluate(plain, plain, ["recall@5", "coverage@5"], **ids)
    assert result.summary["value"].tolist() == [1.0, 1.0]


def test_a_null_by_dictionary_is_a_null():
    items = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array([None, "a"]))
    table = pa.table({"user_id": [1, 1], "item_id": items})
    with pytest.raises(rd.NullKeyError, match=r"1 in pred\['item_id'\]"):
        rd.recall(TRUE, table, k=5)


@pytest.mark.parametrize("ids", [[np.float32(2e7), np.float32(3)], [10**400, 1.5]])
def test_numbers_among_objects_are_ids(ids):
    true = pd.DataFrame({"user_id": 0, "item_id": pd.Series(ids, dtype=object)})
    assert rd.recall(true, true.assign(rank=[1, 2]), k=2) == 1.0
